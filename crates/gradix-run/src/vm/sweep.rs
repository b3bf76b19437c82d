//! Reductions row by row, with the results in registers: `c[m, n] = ⊕[k] f(a[m, k], b[m, k, n])`.
//!
//! Moving sums, windows, products of many small matrices, sums over an outer index: operands are used where they lie,
//! and nothing is prepared but a table of how far each term lies from the first. It is the same for all rows; where
//! the terms change with the row, rows are taken as far as they don't.
#![allow(unsafe_code, reason = "vector loops over operands that are checked once for all rows, lanes and terms")]

use super::execute::{Machine, block};
use super::grouping::Hints;
use super::leaf::{Access, Node, Outputs, Plan};
#[cfg(target_arch = "x86_64")]
use super::real::{Avx2, Avx512};
use super::real::{Baseline, Isa, Level, Real};
use super::tile::{self, Array, Step, Vector};
use gradix::program::{BinaryOp, ReduceOp};

/// How a leaf is a sweep.
pub struct Sweep<T> {
    rule: Rule,
    /// The variable along which lanes lie one after the other, and its loop.
    lane: (usize, usize),
    row: Option<(usize, usize)>,
    /// A range or guard depends on the row.
    uneven: bool,
    /// The terms are the same at all outputs.
    fixed: bool,
    operands: [Operand<T>; 2],
    /// The first operand has a lane for each of the second one's; else one value for all of them.
    paired: bool,
}

#[derive(Clone, Copy)]
enum Operand<T> {
    Access(usize),
    Constant(T),
}

/// What a term adds to an element.
#[derive(Clone, Copy)]
enum Rule {
    /// The operand itself; it stands on both sides.
    Plain(ReduceOp),
    Product,
    SquaredDifference,
}

/// The longest table of terms.
const TABLE: usize = 1024;
/// A contraction of so many terms for each pair of rows and lanes is better off on register tiles.
const LARGE: f64 = 32768.0;

/// Finds out whether a leaf is a sweep, and none that is better taken as a contraction.
pub fn sweep<T: Real>(plan: &Plan<T>, hints: Hints) -> Option<Sweep<T>> {
    let (rule, nodes) = recognise(plan)?;
    let large = plan.contraction.as_ref().and_then(|c| c.terms_per_tile(plan)).is_some_and(|terms| terms > LARGE);
    if large || !plan.graph.conditions.is_empty() || plan.reads_target() {
        return None;
    }
    let extents = plan.extents();
    let mut lanes: Vec<usize> = (0..plan.outputs).filter(|p| plan.is_free(*p) && plan.is_straight(*p)).collect();
    let unit = |p: usize| plan.accesses[0].place.factor(plan.loops[p].variable) == 1;
    lanes.sort_by(|a, b| (!unit(*a)).cmp(&!unit(*b)).then(extents[*b].total_cmp(&extents[*a])));
    let (lane, operands, paired) =
        lanes.into_iter().find_map(|lane| operands(plan, nodes, lane).map(|(o, paired)| (lane, o, paired)))?;
    let row = plan.best_row(lane, hints.rows);
    let uneven = row.is_some_and(|row| !plan.is_free(row));
    let with_variable = |p: usize| (plan.loops[p].variable, p);
    let (outputs, reduction) = plan.loops.split_at(plan.outputs);
    let fixed = !outputs.iter().any(|o| {
        reduction.iter().any(|l| l.range.uses(o.variable)) || plan.guards.iter().any(|g| g.linear.uses(o.variable))
    });
    Some(Sweep { rule, lane: with_variable(lane), row: row.map(with_variable), uneven, fixed, operands, paired })
}

/// The rule of a body, and the nodes of its operands.
fn recognise<T: Real>(plan: &Plan<T>) -> Option<(Rule, [usize; 2])> {
    let nodes = &plan.graph.nodes;
    let square = |node: usize| match nodes[node] {
        Node::Binary(BinaryOp::Pow, a, b) if matches!(nodes[b], Node::Constant(two) if two.wide() == 2.0) => Some(a),
        Node::Binary(BinaryOp::Mul, a, b) if a == b => Some(a),
        _ => None,
    };
    let (op, body) = (plan.reduction?, plan.graph.body);
    match (op, &nodes[body], square(body)) {
        (ReduceOp::Sum, _, Some(a)) => match nodes[a] {
            Node::Binary(BinaryOp::Sub, b, c) => Some((Rule::SquaredDifference, [b, c])),
            _ => Some((Rule::Product, [a, a])),
        },
        (ReduceOp::Sum, Node::Binary(BinaryOp::Mul, a, b), _) => Some((Rule::Product, [*a, *b])),
        _ => Some((Rule::Plain(op), [body, body])),
    }
}

/// The operands for these lanes, the one that has one value for all lanes first, and whether both have lanes.
fn operands<T: Real>(plan: &Plan<T>, nodes: [usize; 2], lane: usize) -> Option<([Operand<T>; 2], bool)> {
    let variable = plan.loops[lane].variable;
    let straight = |access: usize| plan.loops.iter().all(|l| !plan.accesses[access].place.bends_at(l.variable));
    let operand = |node: usize| match plan.graph.nodes[node] {
        Node::Access(access) if straight(access) => {
            Some((Operand::Access(access), plan.accesses[access].place.factor(variable)))
        }
        Node::Constant(value) => Some((Operand::Constant(value), 0)),
        _ => None,
    };
    let (a, b) = (operand(nodes[0])?, operand(nodes[1])?);
    match (a.1, b.1) {
        (1, 1) => Some(([a.0, b.0], true)),
        (0, 1) => Some(([a.0, b.0], false)),
        (1, 0) => Some(([b.0, a.0], false)),
        _ => None,
    }
}

/// Runs all points of a leaf; the variables of work and tiles are set.
pub fn run<T: Real>(machine: &mut Machine<T>, plan: &Plan<T>, sweep: &Sweep<T>) {
    machine.accumulator.reserve(block::<T>());
    let code = code(machine.level, sweep.rule, sweep.paired);
    Leaf { machine, plan, sweep, code, table: Vec::new(), reach: [(0, 0); 2], lasting: false }.outputs(0);
}

struct Leaf<'a, T> {
    machine: &'a mut Machine<T>,
    plan: &'a Plan<T>,
    sweep: &'a Sweep<T>,
    code: Code<T>,
    /// How far the terms of both operands lie from where the variables of the reduction are 0.
    table: Vec<[i64; 2]>,
    /// The nearest and the farthest of them.
    reach: [(i64, i64); 2],
    /// The table holds all terms, now and at the next outputs.
    lasting: bool,
}

impl<T: Real> Outputs<T> for Leaf<'_, T> {
    fn at(&mut self) -> (&Plan<T>, &mut [i64]) {
        (self.plan, &mut self.machine.point)
    }

    fn is_grouped(&self, position: usize) -> bool {
        [Some(self.sweep.lane), self.sweep.row].into_iter().flatten().any(|(_, p)| p == position)
    }

    /// All rows and lanes at this point of the other outputs.
    fn groups(&mut self) {
        let (plan, lane) = (self.plan, self.sweep.lane);
        let (low, high) = plan.loops[lane.1].range.at(&self.machine.point);
        let rows = self.sweep.row.map_or((0, 0), |(_, row)| plan.loops[row].range.at(&self.machine.point));
        if low > high || rows.0 > rows.1 {
            return;
        }
        let contiguous = plan.accesses[0].place.factor(lane.0) == 1;
        // What is not written in place is held in a block first.
        let width = if contiguous { high - low + 1 } else { (high - low + 1).min(block::<T>() as i64) };
        let most = if contiguous { i64::MAX } else { (block::<T>() as i64 / width).max(1) };
        let mut row = rows.0;
        while row <= rows.1 {
            let left = (rows.1 - row + 1).min(most) as usize;
            let height = self.even_rows(row, left);
            for first in (low..=high).step_by(width as usize) {
                self.machine.point[lane.0] = first;
                self.block((height, width.min(high - first + 1) as usize), contiguous);
            }
            row += height as i64;
        }
    }
}

impl<T: Real> Leaf<'_, T> {
    /// Goes to a row; how many from there on, up to `most`, have the same terms.
    fn even_rows(&mut self, row: i64, most: usize) -> usize {
        let Some((variable, _)) = self.sweep.row else { return 1 };
        self.machine.point[variable] = row;
        if self.sweep.uneven { self.plan.even_rows(&mut self.machine.point, variable, most) } else { most }
    }

    /// Some rows and lanes, from the point on.
    fn block(&mut self, shape: (usize, usize), in_place: bool) {
        let target = &self.plan.accesses[0];
        let step = |variable: Option<(usize, usize)>| variable.map_or(0, |(v, _)| target.place.factor(v));
        let steps = (step(self.sweep.row), step(Some(self.sweep.lane)));
        let start = target.place.at(&self.machine.point);
        let target = self.machine.buffers[target.buffer].at(start, steps, shape);
        let strides = (steps.0 as isize, steps.1 as isize);
        if in_place {
            return self.terms(shape, target, strides.0);
        }
        let held = self.machine.accumulator.pointer(0, shape.0 * shape.1);
        // SAFETY: the block holds the shape, and all of the target was checked.
        unsafe {
            if self.plan.accumulate {
                exchange(shape, held, target, strides, |held, target| *held = *target);
            }
            self.terms(shape, held, shape.1 as isize);
            exchange(shape, held, target, strides, |held, target| *target = *held);
        }
    }

    /// Reduces all terms into rows of `to`, a table at a time.
    fn terms(&mut self, shape: (usize, usize), to: *mut T, row: isize) {
        self.plan.loops[self.plan.outputs..].iter().for_each(|l| self.machine.point[l.variable] = 0);
        let origins = self.sweep.operands.map(|operand| match operand {
            Operand::Access(access) => self.plan.accesses[access].place.at(&self.machine.point),
            Operand::Constant(_) => 0,
        });
        let neutral = T::of(self.plan.reduction.map_or(0.0, ReduceOp::neutral));
        let mut start = (!self.plan.accumulate).then_some(neutral);
        let to = Place { pointer: to, row };
        if !self.lasting {
            self.table.clear();
            self.lasting = self.sweep.fixed;
            self.list(0, [0, 0], &mut |leaf| {
                leaf.measure();
                leaf.rows(shape, to, origins, start.take());
                leaf.table.clear();
                leaf.lasting = false;
            });
            self.measure();
        }
        self.rows(shape, to, origins, start.take());
    }

    /// Notes how far the terms of the table reach.
    fn measure(&mut self) {
        let reach = |side: usize| {
            let places = self.table.iter().map(|term| term[side]);
            places.fold((i64::MAX, i64::MIN), |(least, most), place| (least.min(place), most.max(place)))
        };
        self.reach = [reach(0), reach(1)];
    }

    /// Lists the terms from a loop of the reduction on, and calls `full` where the table is.
    fn list(&mut self, depth: usize, before: [i64; 2], full: &mut dyn FnMut(&mut Self)) {
        let plan = self.plan;
        let Some(l) = plan.loops.get(plan.outputs + depth) else {
            if plan.guards.iter().all(|g| g.holds(&self.machine.point)) {
                if self.table.len() == TABLE {
                    full(self);
                }
                self.table.push(before);
            }
            return;
        };
        let (low, high) = l.range.at(&self.machine.point);
        let factors = self.sweep.operands.map(|operand| match operand {
            Operand::Access(access) => plan.accesses[access].place.factor(l.variable),
            Operand::Constant(_) => 0,
        });
        if plan.guards.is_empty() && plan.outputs + depth + 1 == plan.loops.len() {
            // The terms of the innermost loop, in pieces that the table has room for.
            let mut value = low;
            while value <= high {
                let end = high.min(value + (TABLE - self.table.len()) as i64 - 1);
                let terms = value..=end;
                self.table.extend(terms.map(|v| [before[0] + factors[0] * v, before[1] + factors[1] * v]));
                value = end + 1;
                if value <= high {
                    full(self);
                }
            }
            return;
        }
        for value in low..=high {
            self.machine.point[l.variable] = value;
            self.list(depth + 1, [before[0] + factors[0] * value, before[1] + factors[1] * value], full);
        }
    }

    /// The terms of the table.
    fn rows(&self, shape: (usize, usize), to: Place<T>, origins: [i64; 2], start: Option<T>) {
        let constants = self.sweep.operands.map(|operand| match operand {
            Operand::Access(_) => T::ZERO,
            Operand::Constant(value) => value,
        });
        let operands = [0, 1].map(|side| match self.sweep.operands[side] {
            Operand::Access(access) => self.operand(access, side, shape, origins[side]),
            Operand::Constant(_) => Place { pointer: (&raw const constants[side]).cast_mut(), row: 0 },
        });
        // SAFETY: the target was checked by the caller, and the operands for all terms, rows and lanes.
        unsafe { (self.code)(&Rows { shape, to, operands, terms: &self.table, start }) };
    }

    /// Where an operand is if the variables of the reduction are 0, with all of its terms inside its buffer.
    fn operand(&self, access: usize, side: usize, shape: (usize, usize), origin: i64) -> Place<T> {
        let Access { buffer, place } = &self.plan.accesses[access];
        let step = |variable: Option<(usize, usize)>| variable.map_or(0, |(v, _)| place.factor(v));
        let steps = (step(self.sweep.row), step(Some(self.sweep.lane)));
        let buffer = self.machine.buffers[*buffer];
        let (least, most) = self.reach[side];
        if least <= most {
            buffer.at(origin + least, steps, shape);
            buffer.at(origin + most, steps, shape);
        }
        Place { pointer: buffer.pointer.wrapping_offset(origin as isize), row: steps.0 as isize }
    }
}

/// Calls `exchange` for every element of a block and its element of the target.
///
/// # Safety
/// The block has the shape, without gaps, and the target has it at these strides.
unsafe fn exchange<T>(
    (rows, lanes): (usize, usize),
    block: *mut T,
    target: *mut T,
    strides: (isize, isize),
    exchange: impl Fn(&mut T, &mut T),
) {
    for row in 0..rows {
        for lane in 0..lanes {
            // SAFETY: the caller's promise; the block is none of the caller's buffers.
            unsafe {
                let target = target.offset(row as isize * strides.0 + lane as isize * strides.1);
                exchange(&mut *block.add(row * lanes + lane), &mut *target);
            }
        }
    }
}

/// The first of some rows of lanes, and how far they are apart.
#[derive(Clone, Copy)]
struct Place<T> {
    pointer: *mut T,
    row: isize,
}

impl<T> Place<T> {
    #[inline(always)]
    fn at(self, row: usize) -> *mut T {
        self.pointer.wrapping_offset(row as isize * self.row)
    }
}

/// What the code of a sweep works on.
struct Rows<'a, T> {
    shape: (usize, usize),
    to: Place<T>,
    operands: [Place<T>; 2],
    /// How far each term lies from the operands' places.
    terms: &'a [[i64; 2]],
    /// What the results start with, if not with what is there.
    start: Option<T>,
}

/// # Safety
/// The target has all rows and lanes, the operands have them for all terms, and nothing else uses the target.
type Code<T> = unsafe fn(&Rows<'_, T>);

fn code<T: Real>(level: Level, rule: Rule, paired: bool) -> Code<T> {
    match (rule, paired) {
        (Rule::Plain(ReduceOp::Sum), _) => code_of::<T, tile::Sum, true>(level),
        (Rule::Plain(ReduceOp::Prod), _) => code_of::<T, tile::Prod, true>(level),
        (Rule::Plain(ReduceOp::Max), _) => code_of::<T, tile::Largest, true>(level),
        (Rule::Plain(ReduceOp::Min), _) => code_of::<T, tile::Smallest, true>(level),
        (Rule::Product, true) => code_of::<T, tile::Product, true>(level),
        (Rule::Product, false) => code_of::<T, tile::Product, false>(level),
        (Rule::SquaredDifference, true) => code_of::<T, tile::SquaredDifference, true>(level),
        (Rule::SquaredDifference, false) => code_of::<T, tile::SquaredDifference, false>(level),
    }
}

fn code_of<T: Real, R: Step, const PAIRED: bool>(level: Level) -> Code<T> {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => avx512::<T, R, PAIRED>,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2::<T, R, PAIRED>,
        _ => rows::<T, Baseline, R, PAIRED>,
    }
}

/// # Safety
/// As for [`Code`], and the machine has these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn avx512<T: Real, R: Step, const PAIRED: bool>(work: &Rows<'_, T>) {
    // SAFETY: the caller's promise.
    unsafe { rows::<T, Avx512, R, PAIRED>(work) }
}

/// # Safety
/// As for [`Code`], and the machine has these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<T: Real, R: Step, const PAIRED: bool>(work: &Rows<'_, T>) {
    // SAFETY: the caller's promise.
    unsafe { rows::<T, Avx2, R, PAIRED>(work) }
}

/// # Safety
/// As for [`Code`], and the machine has the instructions.
#[inline(always)]
unsafe fn rows<T: Real, I: Isa, R: Step, const PAIRED: bool>(work: &Rows<'_, T>) {
    let (rows, lanes) = work.shape;
    for row in 0..rows {
        let mut lane = 0;
        macro_rules! vectors {
            ($vector:ty, $count:literal) => {
                while lane + $count * <$vector>::WIDTH <= lanes {
                    // SAFETY: the caller's promise.
                    unsafe { vectors::<T, $vector, R, PAIRED, $count>(work, row, lane) };
                    lane += $count * <$vector>::WIDTH;
                }
            };
        }
        vectors!(I::Vector<T>, 8);
        vectors!(I::Vector<T>, 2);
        vectors!(I::Vector<T>, 1);
        vectors!(Array<T, 4, I>, 1);
        vectors!(Array<T, 1, I>, 3);
        vectors!(Array<T, 1, I>, 2);
        vectors!(Array<T, 1, I>, 1);
    }
}

/// Some vectors of a row.
///
/// # Safety
/// As for [`Code`], and the machine has the instructions of the vectors.
#[inline(always)]
unsafe fn vectors<T: Real, V: Vector<T>, R: Step, const PAIRED: bool, const N: usize>(
    work: &Rows<'_, T>,
    row: usize,
    lane: usize,
) {
    let to = work.to.at(row).wrapping_add(lane);
    let [a, b] = work.operands.map(|operand| operand.at(row).cast_const());
    let (a, b) = (if PAIRED { a.wrapping_add(lane) } else { a }, b.wrapping_add(lane));
    // SAFETY: the caller's promise.
    unsafe {
        let mut results = [V::all(work.start.unwrap_or(T::ZERO)); N];
        if work.start.is_none() {
            results.iter_mut().enumerate().for_each(|(n, result)| *result = V::load(to.add(n * V::WIDTH)));
        }
        for [left, right] in work.terms {
            let (a, b) = (a.wrapping_offset(*left as isize), b.wrapping_offset(*right as isize));
            for (n, result) in results.iter_mut().enumerate() {
                let a = if PAIRED { V::load(a.add(n * V::WIDTH)) } else { V::all(*a) };
                *result = R::step(*result, a, V::load(b.add(n * V::WIDTH)));
            }
        }
        results.iter().enumerate().for_each(|(n, result)| result.store(to.add(n * V::WIDTH)));
    }
}
