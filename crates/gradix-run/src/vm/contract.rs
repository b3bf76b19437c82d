//! Leaves whose operands are used again: `c[m, n] = ⊕[k] f(a[m, k], b[k, n])`, in register tiles.
//!
//! Matrix products, convolutions, distances and the like. The nest says which outputs are rows `m` and lanes `n`, which
//! parts of the body depend on them, what is read in place and what is kept; all loops of the reduction together are the
//! terms `k`. Both operands are packed into panels, some terms at a time, and the tiles of [`super::tile`] run on them. An
//! operand may be any expression: what is not a plain access is computed by block instructions while packing.
//!
//! Where the nest packs nothing and has the innermost loop of a sum in lanes, `c[m, n] = sum[k, l] f(a[m, k, l], b[n, k, l])`,
//! both operands are in place, and the terms are `k`.
#![allow(unsafe_code, reason = "hands checked pointers to the register tiles")]

use super::code::{BLOCK, Code, compile};
use super::execute::{Context, MAX_ROWS, Machine, block, execute};
use super::grouping::Grouping;
use super::leaf::{Access, Loop, Outputs, Plan};
use super::loops::line;
use super::real::{Isa, Level, Real, by_level};
use super::recognise::Recognise;
use super::tile::{self, Tile};
use super::vector::Rule;
use gradix::nest::{self, ByLoop, LoopId, Panels};
use gradix::program::{Expr, ExprId, ReduceOp, TensorId};
use gradix::target::{PanelSize, cost};
use std::collections::HashMap;

/// How a leaf is a contraction.
pub struct Contraction<T> {
    rule: Rule,
    /// What runs over rows, and what runs over lanes.
    sides: [Side<T>; 2],
    /// The position of the output for all of whose values packed rows are kept.
    kept: Option<usize>,
    /// Where lanes are packed to.
    scratch: TensorId,
    size: PanelSize,
    /// Whether the innermost loop of the reduction runs in lanes: then both sides are in place.
    along_lanes: bool,
}

/// One of the two operands.
struct Side<T> {
    /// The variable of its rows or lanes, and its loop.
    variable: LoopId,
    position: usize,
    grouping: Grouping,
    /// The access, if it is just that, and linear in rows or lanes and terms.
    plain: Option<usize>,
    /// Whether it is used in place, but for the rows or lanes of a tile that is not full.
    in_place: bool,
    code: Code<T>,
}

/// The contraction of a leaf, if there are tiles for the body; `copies` are expressions in its graph.
pub fn contraction<T: Real>(
    plan: &mut Plan<T>,
    leaf: &nest::Leaf,
    copies: &HashMap<ExprId, ExprId>,
) -> Option<Contraction<T>> {
    if !plan.body.conditions.is_empty() || !plan.guards.is_empty() || plan.reads_target() {
        return None;
    }
    match &leaf.panels {
        Some(panels) => packed(plan, leaf, panels, copies),
        None => along_lanes(plan, leaf),
    }
}

/// What panels ask for.
fn packed<T: Real>(
    plan: &mut Plan<T>,
    leaf: &nest::Leaf,
    panels: &Panels,
    copies: &HashMap<ExprId, ExprId>,
) -> Option<Contraction<T>> {
    let (lanes, (rows, _)) = (leaf.lanes()?, leaf.rows()?);
    let Panels { scratch, by_row, by_lane, by_term, rows_in_place, lanes_in_place, kept, size, .. } = panels;
    let nodes = |ids: &mut dyn Iterator<Item = &ExprId>| ids.filter_map(|id| copies.get(id).copied()).collect();
    let (by_row, by_lane) = (nodes(&mut by_row.iter().chain(by_term)), nodes(&mut by_lane.iter()));
    let (op, body) = (plan.reduction?, plan.body.root);
    let (rule, roots) = Recognise { exprs: &mut plan.body.exprs, by_row, by_lane }.body(op, body)?;
    let mut sides = [side(plan, rows, roots[0]), side(plan, lanes, roots[1])];
    let along = |access: usize| plan.accesses[access].place.factor(sides[1].variable) == 1;
    let lanes_in_place = *lanes_in_place && sides[1].plain.is_some_and(along);
    sides[0].in_place = *rows_in_place && sides[0].plain.is_some();
    sides[1].in_place = lanes_in_place;
    let rows = if kept.is_some() { size.rows } else { size.rows.max(cost::PACKED_ROWS_OF_VM) };
    let (scratch, size) = (*scratch, PanelSize { rows, ..*size });
    Some(Contraction { rule, sides, kept: *kept, scratch, size, along_lanes: false })
}

/// With the innermost loop of a sum in lanes and two outputs unrolled.
fn along_lanes<T: Real>(plan: &mut Plan<T>, leaf: &nest::Leaf) -> Option<Contraction<T>> {
    let mut unrolled = leaf.unrolled().map(|(position, _)| position);
    let (lanes, positions) = (leaf.lanes()?, [unrolled.next()?, unrolled.next()?]);
    let mut loops = (plan.outputs..plan.loops.len()).chain(positions);
    let innermost = lanes >= plan.outputs && lanes + 1 == plan.loops.len();
    if plan.reduction != Some(ReduceOp::Sum) || !innermost || !loops.all(|p| plan.is_free(p)) {
        return None;
    }
    let (lane, variables) = (plan.loops[lanes].variable, positions.map(|p| plan.loops[p].variable));
    let of_side = |side: usize| {
        let is_operand = |id: &ExprId| match &plan.body.exprs[*id] {
            Expr::Access(..) => {
                let place = &plan.accesses[plan.body.numbers[id]].place;
                place.factor(lane) == 1 && !place.uses(variables[1 - side])
            }
            _ => false,
        };
        plan.body.exprs.postorder(plan.body.root).into_iter().filter(is_operand).collect::<Vec<ExprId>>()
    };
    let (by_row, by_lane, body) = (of_side(0), of_side(1), plan.body.root);
    let (rule, roots) = Recognise { exprs: &mut plan.body.exprs, by_row, by_lane }.body(ReduceOp::Sum, body)?;
    let sides = [0, 1].map(|n: usize| Side { in_place: true, ..side(plan, positions[n], roots[n]) });
    let plain = sides.iter().all(|side| side.plain.is_some());
    plain.then_some(Contraction { rule, sides, kept: None, scratch: TensorId(0), size: MAX_LISTED, along_lanes: true })
}

/// What is taken at a time where nothing is packed: terms are listed, and between tiles it is asked whether to stop.
const MAX_LISTED: PanelSize = PanelSize { terms: 1024, rows: 64, lanes: 1024 };

fn side<T: Real>(plan: &Plan<T>, position: usize, root: ExprId) -> Side<T> {
    let variable = plan.loops[position].variable;
    let terms = plan.loops.len().checked_sub(1).filter(|last| *last >= plan.outputs);
    let row = terms.filter(|last| plan.is_straight(plan.loops[*last].variable)).map(|p| (plan.loops[p].variable, p));
    let (lane, moving) = (Some((variable, position)), row.iter().map(|(variable, _)| *variable).collect());
    let grouping = Grouping { lane, row, moving, ..Grouping::default() };
    let straight = |access: &usize| {
        let place = &plan.accesses[*access].place;
        !place.bends_at(variable) && !plan.loops[plan.outputs..].iter().any(|l| place.bends_at(l.variable))
    };
    let plain = match plan.body.exprs[root] {
        Expr::Access(..) => Some(plan.body.numbers[&root]).filter(straight),
        _ => None,
    };
    Side { variable, position, plain, in_place: false, code: compile(plan, &grouping, &[], root, false), grouping }
}

/// Runs all points of a leaf; the variables of work and tiles are set.
pub fn run<T: Real>(machine: &mut Machine<T>, plan: &Plan<T>, contraction: &Contraction<T>) {
    machine.slopes.0.fill(0);
    contraction.sides[0].grouping.row.iter().for_each(|(row, _)| machine.slopes[*row] = 1);
    Leaf {
        machine,
        plan,
        contraction,
        terms: Terms::default(),
        packed: [Packed::none(), Packed::none()],
        combine: false,
    }
    .outputs(0);
}

struct Leaf<'a, T> {
    machine: &'a mut Machine<T>,
    plan: &'a Plan<T>,
    contraction: &'a Contraction<T>,
    terms: Terms,
    /// Rows and lanes, as far as they are packed.
    packed: [Packed<T>; 2],
    /// Whether the target's old value counts.
    combine: bool,
}

/// Some rows or lanes of all terms at hand: tile by tile, term by term.
struct Packed<T> {
    panel: *mut T,
    /// Where each term starts in a tile.
    offsets: Vec<isize>,
    /// So many before them are used in place.
    in_place: usize,
}

impl<T> Packed<T> {
    fn none() -> Self {
        Packed { panel: std::ptr::dangling_mut(), offsets: Vec::new(), in_place: 0 }
    }
}

/// The terms at hand: at most so many as panels have.
#[derive(Default)]
struct Terms {
    /// How many values each loop of the reduction has.
    counts: Vec<usize>,
    /// Their first values.
    first: Vec<i64>,
    /// The numbers of the first term and of the one after the last.
    span: [usize; 2],
    /// How many values the innermost loop has, if it runs in lanes.
    lanes: usize,
    /// The values of the loops' variables, term by term, counted from the first ones.
    values: Vec<i64>,
    /// How far each term of a plain operand lies from the first one.
    deltas: [Vec<isize>; 2],
}

/// Some rows or lanes.
#[derive(Clone, Copy)]
struct Block {
    first: i64,
    count: usize,
}

impl Terms {
    /// How many terms from this one on differ in the innermost loop alone.
    fn run(&self, term: usize) -> usize {
        let Some(count) = self.counts.last() else { return 1 };
        let value = self.values[(term + 1) * self.counts.len() - 1] as usize;
        (count - value).min(self.span[1] - self.span[0] - term)
    }
}

impl Block {
    /// Parts of at most this size.
    fn parts(self, size: usize) -> impl Iterator<Item = Block> {
        let part = move |start| Block { first: self.first + start as i64, count: size.min(self.count - start) };
        (0..self.count).step_by(size).map(part)
    }
}

impl<T: Real> Outputs<T> for Leaf<'_, T> {
    fn at(&mut self) -> (&Plan<T>, &mut ByLoop<i64>) {
        (self.plan, &mut self.machine.point)
    }

    fn is_grouped(&self, position: usize) -> bool {
        let Contraction { sides: [rows, lanes], kept, .. } = self.contraction;
        [rows.position, lanes.position].contains(&position) || *kept == Some(position)
    }

    /// One point of the other outputs.
    fn groups(&mut self) {
        let ranges = self.plan.loops[self.plan.outputs..].iter().map(|l| l.range.at(&self.machine.point));
        let ranges: Vec<(i64, i64)> = ranges.collect();
        self.terms.first.clear();
        self.terms.first.extend(ranges.iter().map(|(low, _)| low));
        let mut counts: Vec<usize> = ranges.iter().map(|(low, high)| (high - low + 1).max(0) as usize).collect();
        let mut total = counts.iter().fold(1usize, |total, count| total.saturating_mul(*count));
        if self.contraction.along_lanes {
            self.terms.lanes = counts.pop().unwrap_or(0);
            total /= self.terms.lanes.max(1);
        }
        let rows = self.range(0);
        let most = self.contraction.size.terms;
        // An empty reduction is worth what it starts with.
        let total_or_none = if self.plan.accumulate { total } else { total.max(1) };
        for start in (0..total_or_none).step_by(most) {
            self.combine = self.plan.accumulate || start > 0;
            self.list(&counts, start, (start + most).min(total));
            self.chunk(rows);
        }
    }
}

impl<T: Real> Leaf<'_, T> {
    /// The rows or lanes at the point.
    fn range(&self, side: usize) -> Block {
        let (low, high) = self.plan.loops[self.contraction.sides[side].position].range.at(&self.machine.point);
        Block { first: low, count: (high - low + 1).max(0) as usize }
    }

    /// Lists some terms, unless these are there.
    fn list(&mut self, counts: &[usize], start: usize, end: usize) {
        let terms = &mut self.terms;
        if terms.counts == counts && terms.span == [start, end] {
            return;
        }
        (terms.counts, terms.span) = (counts.to_vec(), [start, end]);
        terms.values = vec![0; (end - start) * counts.len()];
        for (term, values) in (start..end).zip(terms.values.chunks_exact_mut(counts.len().max(1))) {
            let mut rest = term;
            for (value, count) in values.iter_mut().zip(counts).rev() {
                (*value, rest) = ((rest % count) as i64, rest / count);
            }
        }
        for (side, deltas) in self.contraction.sides.iter().zip(&mut terms.deltas) {
            let Some(access) = side.plain else { continue };
            let factor = |l: &Loop| self.plan.accesses[access].place.factor(l.variable);
            let factors: Vec<i64> = self.plan.loops[self.plan.outputs..].iter().map(factor).collect();
            let values = |term: usize| &terms.values[term * counts.len()..][..counts.len()];
            let delta = |term: usize| values(term).iter().zip(&factors).map(|(v, f)| v * f).sum::<i64>() as isize;
            *deltas = (0..end - start).map(delta).collect();
        }
    }

    fn count(&self) -> usize {
        self.terms.span[1] - self.terms.span[0]
    }

    /// The terms at hand for all rows and lanes.
    fn chunk(&mut self, rows: Block) {
        let (_, [height, _]) = self.tile(1);
        for rows in rows.parts(self.contraction.size.rows) {
            self.pack(0, rows, height);
            self.each_kept(&mut |leaf| {
                let lanes = leaf.range(1);
                let (vectors, [_, width]) = leaf.tile(lanes.count);
                for lanes in lanes.parts(leaf.contraction.size.lanes / width * width) {
                    leaf.pack(1, lanes, width);
                    leaf.tiles([rows, lanes], vectors, [height, width]);
                }
            });
        }
    }

    /// The vectors, and the rows and lanes, of tiles for so many lanes.
    fn tile(&self, lanes: usize) -> (usize, [usize; 2]) {
        if self.contraction.along_lanes {
            return (1, tile::dots(self.machine.level));
        }
        let vectors = tile::vectors::<T>(self.machine.level, lanes);
        (vectors, tile::size::<T>(self.machine.level, vectors))
    }

    /// Calls `f` at each value of the output that rows are kept for, or once.
    fn each_kept(&mut self, f: &mut dyn FnMut(&mut Self)) {
        let Some(position) = self.contraction.kept else { return f(self) };
        let Loop { variable, range } = &self.plan.loops[position];
        let (low, high) = range.at(&self.machine.point);
        for value in low..=high {
            self.machine.point[*variable] = value;
            f(self);
        }
    }

    /// Packs some rows or lanes for tiles of so many, but for those that are used in place.
    fn pack(&mut self, side: usize, block: Block, unit: usize) {
        let terms = self.count();
        let in_place = match self.contraction.sides[side].in_place {
            true if self.contraction.along_lanes => block.count,
            true => block.count / unit * unit,
            false => 0,
        };
        let rest = Block { first: block.first + in_place as i64, count: block.count - in_place };
        let packed = &mut self.packed[side];
        packed.in_place = in_place;
        packed.offsets.clear();
        packed.offsets.extend((0..terms).map(|term| (term * unit) as isize));
        if rest.count == 0 || self.machine.is_stopped(rest.count * terms) {
            return;
        }
        let panel = self.panel(side, rest.count.next_multiple_of(unit) * terms);
        self.packed[side].panel = panel;
        match self.contraction.sides[side].plain {
            Some(_) => self.copy(side, rest, unit, panel),
            None => self.compute(side, rest, unit, panel),
        }
    }

    /// Room for so many packed numbers.
    fn panel(&mut self, side: usize, elements: usize) -> *mut T {
        if side == 1 {
            return self.machine.buffers[self.contraction.scratch].at(0, [(1, elements.max(1))]);
        }
        self.machine.memory.panel.reserve(elements);
        self.machine.memory.panel.pointer(0, elements)
    }

    /// All tiles of some rows and lanes that are packed, as far as they are not used in place.
    fn tiles(&mut self, blocks: [Block; 2], vectors: usize, [height, width]: [usize; 2]) {
        let [rows, lanes] = blocks;
        let terms = self.count();
        let (target, strides) = self.target(rows, lanes);
        let found = [0, 1].map(|side| self.contraction.sides[side].in_place.then(|| self.find(side, blocks[side])));
        let operand = |packed: &Packed<T>, side: usize, start: usize| match found[side] {
            Some((first, step)) if start < packed.in_place => {
                ((first.wrapping_offset(start as isize * step), step), self.terms.deltas[side].as_ptr())
            }
            _ => {
                let panel = packed.panel.wrapping_add((start - packed.in_place) * terms);
                ((panel.cast_const(), 1), packed.offsets.as_ptr())
            }
        };
        let (neutral, combine) = (T::of(self.plan.reduction.map_or(0.0, ReduceOp::neutral)), self.combine);
        let along = self.contraction.along_lanes.then_some(self.terms.lanes);
        for lane in (0..lanes.count).step_by(width) {
            if self.machine.is_stopped(rows.count * width * terms * along.unwrap_or(1)) {
                return;
            }
            let (b, lane_offsets) = operand(&self.packed[1], 1, lane);
            for row in (0..rows.count).step_by(height) {
                let (a, row_offsets) = operand(&self.packed[0], 0, row);
                let (operands, offsets) = ([a, b], [row_offsets, lane_offsets]);
                let to = target.wrapping_offset(row as isize * strides[0] + lane as isize * strides[1]);
                let shape = [height.min(rows.count - row), width.min(lanes.count - lane)];
                let tile =
                    Tile { vectors, terms, operands, offsets, lanes: along, to, strides, shape, neutral, combine };
                // SAFETY: panels hold whole tiles for all terms; what is used in place and the target were checked.
                unsafe { tile::run(self.machine.level, self.contraction.rule, &tile) };
            }
        }
    }

    /// The target of some rows and lanes, and its steps, with all of it inside its buffer.
    fn target(&mut self, rows: Block, lanes: Block) -> (*mut T, [isize; 2]) {
        let Access { buffer, place, .. } = &self.plan.accesses[0];
        let sides = &self.contraction.sides;
        let steps = [0, 1].map(|side| place.factor(sides[side].variable));
        self.machine.point[sides[0].variable] = rows.first;
        self.machine.point[sides[1].variable] = lanes.first;
        let start = place.at(&self.machine.point);
        let target = self.machine.buffers[*buffer].at(start, [(steps[0], rows.count), (steps[1], lanes.count)]);
        (target, steps.map(|step| step as isize))
    }

    /// The first element of a plain operand at the first term, and its step, with some rows or lanes of all terms at hand
    /// inside its buffer.
    fn find(&mut self, side: usize, block: Block) -> (*const T, isize) {
        let Side { variable, plain, .. } = &self.contraction.sides[side];
        let Access { buffer, place, .. } = &self.plan.accesses[plain.unwrap_or(0)];
        self.machine.point[*variable] = block.first;
        self.set_term(None);
        let (step, origin) = (place.factor(*variable), place.at(&self.machine.point));
        let buffer = self.machine.buffers[*buffer];
        let deltas = &self.terms.deltas[side];
        for delta in [deltas.iter().min(), deltas.iter().max()].into_iter().flatten() {
            buffer.at(origin + *delta as i64, [(step, block.count), (1, self.terms.lanes.max(1))]);
        }
        (buffer.pointer.wrapping_offset(origin as isize), step as isize)
    }

    /// Sets the variables of the reduction to one of the terms at hand, or to their first values.
    fn set_term(&mut self, term: Option<usize>) {
        let loops = &self.plan.loops[self.plan.outputs..];
        for (number, l) in loops.iter().enumerate() {
            let value = term.map_or(0, |term| self.terms.values[term * self.terms.counts.len() + number]);
            self.machine.point[l.variable] = self.terms.first[number] + value;
        }
    }

    /// Copies some rows or lanes of the terms at hand: tile by tile, term by term.
    fn copy(&mut self, side: usize, block: Block, width: usize, panel: *mut T) {
        let (first, step) = self.find(side, block);
        let terms = self.count();
        for begin in (0..block.count).step_by(width) {
            let count = width.min(block.count - begin);
            let (from, tile) = (first.wrapping_offset(begin as isize * step), panel.wrapping_add(begin * terms));
            let lines = Lines { from, step, deltas: &self.terms.deltas[side], count, width };
            // SAFETY: the caller's panel has whole tiles for all terms, and `find` checked all of the block.
            unsafe { copy_lines(self.machine.level, lines, tile) };
        }
    }

    /// The same for an operand that has to be computed: some terms at a time, as the rows of a block.
    fn compute(&mut self, side: usize, lanes: Block, width: usize, panel: *mut T) {
        let Side { variable, grouping, code, .. } = &self.contraction.sides[side];
        let context = Context { plan: self.plan, grouping };
        let terms = self.count();
        self.machine.prepare(code);
        let most = if grouping.row.is_some() { (block::<T>() / lanes.count).clamp(1, MAX_ROWS) } else { 1 };
        let mut term = 0;
        while term < terms {
            self.set_term(Some(term));
            self.machine.point[*variable] = lanes.first;
            let rows = self.terms.run(term).min(most);
            (self.machine.rows, self.machine.lanes, self.machine.pitch) = (rows, lanes.count, lanes.count);
            code.levels.iter().for_each(|level| execute(self.machine, &context, level));
            let values = self.machine.view(&context, code.result, BLOCK);
            for (row, begin) in (0..rows).flat_map(|row| (0..lanes.count).step_by(width).map(move |lane| (row, lane))) {
                let count = width.min(lanes.count - begin);
                let to = panel.wrapping_add(begin * terms + (term + row) * width);
                // SAFETY: the caller's panel has whole tiles for all terms, and there are as many values.
                unsafe { padded(values.lane_at(row, begin), isize::from(values.vector), count, to, width) };
            }
            term += rows;
        }
    }
}

/// Where the numbers of a tile are: so many at these steps, from each of some distances on.
#[derive(Clone, Copy)]
struct Lines<'a, T> {
    from: *const T,
    step: isize,
    deltas: &'a [isize],
    count: usize,
    width: usize,
}

by_level! { copy_lines<T>(lines: Lines<'_, T>, to: *mut T) = copy_all }

/// # Safety
/// All lines exist, and there is room for as many of the width.
#[inline(always)]
unsafe fn copy_all<T: Real, I: Isa>(lines: Lines<'_, T>, to: *mut T) {
    let Lines { from, step, deltas, count, width } = lines;
    for (term, delta) in deltas.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { padded(from.wrapping_offset(*delta), step, count, to.add(term * width), width) };
    }
}

/// Copies some numbers, and zeros up to a width.
///
/// # Safety
/// There are `count` numbers at these steps, and room for `width`.
#[inline(always)]
unsafe fn padded<T: Real>(from: *const T, step: isize, count: usize, to: *mut T, width: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        line(from, step, to, 1, count);
        (count..width).for_each(|at| *to.add(at) = T::ZERO);
    }
}
