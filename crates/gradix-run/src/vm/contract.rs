//! Leaves in which operands are used again and again: `c[m, n] = ⊕[k] f(a[m, k], b[k, n])`.
//!
//! Matrix products, convolutions, distances and the like. Of all outputs two are taken as `m` and `n` such that every
//! part of the body depends on one of them at most; all loops of the reduction together are `k`, listed as a table of
//! *terms* (what guards exclude is not listed, so any shape of a reduction will do). Both operands are packed into
//! panels, a few terms at a time, as matrix libraries do, and the tiles of [`super::tile`] run on them. An operand may be
//! any expression: what is not a plain access is computed by block instructions while packing.
#![allow(unsafe_code, reason = "hands checked pointers to the register tiles")]

use super::code::{Code, Source, compile};
use super::execute::{Context, Machine, block, execute};
use super::grouping::{Grouping, Hints};
use super::leaf::{Node, Outputs, Plan};
use super::linear::Linear;
use super::real::{Level, Real};
use super::recognise::{Recognise, Recognised};
use super::scratch::Scratch;
use super::tile::{CopyCode, Form, Rule, Tile, TileCode, code, copy, form};
use gradix::program::ReduceOp;
use std::ops::Range;

/// How a leaf is a contraction.
pub struct Contraction<T> {
    rule: Rule,
    /// What runs over rows, if there is such an output, and what runs over lanes.
    sides: [Side<T>; 2],
    /// The variables of the terms.
    terms: Vec<usize>,
    /// The table of terms is the same at all other outputs.
    fixed: bool,
    /// The table of terms follows from the ranges of the reduction's loops at a point.
    boxed: bool,
}

/// One of the two operands.
struct Side<T> {
    grouping: Grouping,
    /// The access, if it is just that.
    plain: Option<usize>,
    code: Code<T>,
    /// The same at all other outputs, if the terms are.
    stationary: bool,
    /// The access is linear in the terms.
    straight: bool,
}

/// Terms that are packed at a time.
const TERMS: usize = 256;
/// Lanes and rows that are packed at a time.
const LANES: usize = 768;
const ROWS: usize = 128;
/// The longest table of terms.
const TABLE: usize = 1 << 14;
/// A stationary operand of up to this many elements stays packed.
const KEPT: usize = 1 << 18;

/// Finds out whether a leaf is a contraction.
pub fn contraction<T: Real>(plan: &mut Plan<T>, Hints { lanes, rows }: Hints) -> Option<Contraction<T>> {
    plan.reduction?;
    if !plan.graph.conditions.is_empty() || plan.reads_target() {
        return None;
    }
    let usable: Vec<usize> = (0..plan.outputs).filter(|p| plan.is_free(*p) && plan.is_straight(*p)).collect();
    let extents = plan.extents();
    let pairs = usable.iter().flat_map(|n| usable.iter().map(move |m| (*m, *n))).filter(|(m, n)| m != n);
    let mut pairs: Vec<(f64, usize, usize)> = pairs
        .map(|(m, n)| {
            let hinted = usize::from(lanes != Some(n)) + usize::from(rows != Some(m));
            let unit = plan.accesses[0].place.factor(plan.loops[n].variable) == 1;
            (cost(extents[m], extents[n]) + 0.1 * hinted as f64 + if unit { 0.0 } else { 0.2 }, m, n)
        })
        .collect();
    pairs.retain(|(cost, ..)| *cost < MOST_COST);
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let single = lanes.filter(|n| usable.contains(n)).map(|n| (None, n));
    let pairs = pairs.into_iter().map(|(_, m, n)| (Some(m), n));
    pairs.chain(single).find_map(|(m, n)| with(plan, m, n))
}

/// What a term costs, relative to one in the middle of a large matrix product: tiles that are not full, and packing.
fn cost(rows: f64, lanes: f64) -> f64 {
    let (few, many) = (rows.min(lanes).max(1.0), rows.max(lanes).max(1.0));
    let waste = (few / 8.0).ceil() * 8.0 / few * ((many / 16.0).ceil() * 16.0 / many);
    waste * (1.0 + 6.0 / few + 6.0 / many)
}

/// Above this, blocks are as good.
const MOST_COST: f64 = 16.0;

/// The contraction with these outputs as rows and lanes, if it is one.
fn with<T: Real>(plan: &mut Plan<T>, m: Option<usize>, n: usize) -> Option<Contraction<T>> {
    let uses = |position: usize| plan.graph.depends(plan, plan.loops[position].variable);
    let by_row = m.map_or_else(|| vec![false; plan.graph.nodes.len()], uses);
    let recognised = Recognise { by_row, by_lane: uses(n) }.body(plan)?;
    let Recognised { rule, operands } = recognised;
    let [row_root, lane_root] = operands.map(|operand| operand.append(plan));
    let rows = side(plan, m, n, m, row_root);
    let lanes = side(plan, m, n, Some(n), lane_root);
    // Without rows nothing is used twice but the target; that pays only if nothing has to be packed.
    let in_place = |side: &Side<T>| {
        let variable = plan.loops[n].variable;
        side.plain.is_some_and(|access| plan.accesses[access].place.factor(variable) == 1)
    };
    if m.is_none() && !in_place(&lanes) {
        return None;
    }
    let terms: Vec<usize> = plan.loops[plan.outputs..].iter().map(|l| l.variable).collect();
    let others = outer_variables(plan, m, n);
    let fixed = !others.iter().any(|v| {
        plan.loops[plan.outputs..].iter().any(|l| l.range.uses(*v)) || plan.guards.iter().any(|g| g.linear.uses(*v))
    });
    let inner = |v: &usize| plan.loops[plan.outputs..].iter().any(|l| l.range.uses(*v));
    let boxed = !terms.iter().any(inner) && !plan.guards.iter().any(|g| others.iter().any(|v| g.linear.uses(*v)));
    Some(Contraction { rule, sides: [rows, lanes], terms, fixed, boxed })
}

fn outer_variables<T>(plan: &Plan<T>, m: Option<usize>, n: usize) -> Vec<usize> {
    let outputs = (0..plan.outputs).filter(|p| Some(*p) != m && *p != n);
    outputs.map(|p| plan.loops[p].variable).collect()
}

fn side<T: Real>(plan: &Plan<T>, m: Option<usize>, n: usize, own: Option<usize>, root: usize) -> Side<T> {
    let lane = own.map(|position| (plan.loops[position].variable, position));
    let grouping = Grouping { lane, ..Grouping::default() };
    let plain = match plan.graph.nodes[root] {
        Node::Access(access) => Some(access),
        _ => None,
    };
    let others = outer_variables(plan, m, n);
    let range = own.map(|position| &plan.loops[position].range);
    let moves = |v: usize| plan.graph.depends(plan, v)[root] || range.is_some_and(|range| range.uses(v));
    let stationary = !others.iter().any(|v| moves(*v));
    let bends = |access: usize| plan.loops.iter().any(|l| plan.accesses[access].place.bends_at(l.variable));
    let straight = plain.is_some_and(|access| !bends(access));
    Side { plain, code: compile(plan, &grouping, &[], root, false), grouping, stationary, straight }
}

impl<T: Real> Contraction<T> {
    /// About how many terms all pairs of rows and lanes have together, if there are rows.
    pub fn terms_per_tile(&self, plan: &Plan<T>) -> Option<f64> {
        let extents = plan.extents();
        let sides = self.sides.each_ref().map(|side| side.grouping.lane.map(|(_, position)| extents[position]));
        Some(sides[0]? * sides[1]? * extents[plan.outputs..].iter().product::<f64>())
    }
}

/// Runs all points of a leaf; the variables of work and tiles are set.
pub fn run<T: Real>(machine: &mut Machine<T>, plan: &Plan<T>, contraction: &Contraction<T>) {
    let panels = std::mem::replace(&mut machine.panels, [Scratch::new(), Scratch::new()]);
    let mut leaf = Leaf {
        machine,
        plan,
        contraction,
        panels,
        table: Vec::new(),
        whole: false,
        ranges: Vec::new(),
        packed: [false; 2],
        deltas: [Vec::new(), Vec::new()],
        starts: Vec::new(),
        in_place: (std::ptr::null(), Vec::new()),
        in_panel: Vec::new(),
    };
    leaf.outputs(0);
    leaf.machine.panels = leaf.panels;
}

struct Leaf<'a, T> {
    machine: &'a mut Machine<T>,
    plan: &'a Plan<T>,
    contraction: &'a Contraction<T>,
    panels: [Scratch<T>; 2],
    /// The values of the terms' variables, term by term.
    table: Vec<i64>,
    /// The table holds all terms.
    whole: bool,
    /// The ranges of the reduction's loops that it was made for.
    ranges: Vec<(i64, i64)>,
    /// The operands that are packed for all outputs.
    packed: [bool; 2],
    /// How far each term of a plain operand lies from where its variables are 0, while the table stays.
    deltas: [Vec<i64>; 2],
    /// Where each term of a plain operand starts.
    starts: Vec<*const T>,
    /// Lanes that are used where they lie: the first one of the first term, and where each term starts from there.
    in_place: (*const T, Vec<isize>),
    /// Where each term starts in a panel.
    in_panel: Vec<isize>,
}

/// What is done at one point of the other outputs.
#[derive(Clone, Copy)]
struct Work<T> {
    /// Which operand runs over rows, and which over lanes.
    order: [usize; 2],
    /// Their first values.
    first: [i64; 2],
    counts: [usize; 2],
    /// The size of a tile.
    tile: [usize; 2],
    code: TileCode<T>,
    copy: CopyCode<T>,
    /// The first element of the target, and its steps.
    to: *mut T,
    strides: [isize; 2],
}

impl<T: Real> Outputs<T> for Leaf<'_, T> {
    fn at(&mut self) -> (&Plan<T>, &mut [i64]) {
        (self.plan, &mut self.machine.point)
    }

    fn is_grouped(&self, position: usize) -> bool {
        let mut groups = self.contraction.sides.iter().filter_map(|side| side.grouping.lane);
        groups.any(|(_, p)| p == position)
    }

    /// One point of the other outputs.
    fn groups(&mut self) {
        let Some(work) = self.work() else { return };
        let mut combines = self.plan.accumulate;
        if !self.is_same_table() {
            self.clear();
            self.whole = true;
            self.packed = [false; 2];
            self.list(0, &work, &mut combines);
        }
        if !self.table.is_empty() {
            self.terms(&work, combines);
        } else if !combines {
            self.fill(&work);
        }
    }
}

impl<T: Real> Leaf<'_, T> {
    /// Whether the terms are those of the table.
    fn is_same_table(&mut self) -> bool {
        let Contraction { fixed, boxed, .. } = self.contraction;
        let loops = &self.plan.loops[self.plan.outputs..];
        let same =
            self.whole && loops.iter().zip(&self.ranges).all(|(l, known)| l.range.at(&self.machine.point) == *known);
        if self.whole && *fixed || same && *boxed {
            return true;
        }
        self.ranges.clear();
        self.ranges.extend(loops.iter().map(|l| l.range.at(&self.machine.point)));
        false
    }

    fn work(&mut self) -> Option<Work<T>> {
        let mut order = [0, 1];
        let mut first = [0; 2];
        let mut counts = [1; 2];
        for (number, side) in self.contraction.sides.iter().enumerate() {
            if let Some((variable, position)) = side.grouping.lane {
                let (low, high) = self.plan.loops[position].range.at(&self.machine.point);
                if low > high {
                    return None;
                }
                self.machine.point[variable] = low;
                (first[number], counts[number]) = (low, (high - low + 1) as usize);
            }
        }
        let level = self.machine.level;
        if counts[1] < counts[0] && counts[1] <= T::PER_LINE / 2 {
            order.swap(0, 1);
            first.swap(0, 1);
            counts.swap(0, 1);
        }
        let choice = choose::<T>(level, counts);
        let target = &self.plan.accesses[0];
        let steps = order.map(|number| {
            self.contraction.sides[number].grouping.lane.map_or(0, |(variable, _)| target.place.factor(variable))
        });
        let start = target.place.at(&self.machine.point);
        let to = self.machine.buffers[target.buffer].at(start, (steps[0], steps[1]), (counts[0], counts[1]));
        let (rows, lanes) = form::<T>(level, choice);
        let code = code::<T>(level, self.contraction.rule, choice);
        let strides = steps.map(|step| step as isize);
        let copy = copy::<T>(level, choice);
        Some(Work { order, first, counts, tile: [rows, lanes], code, copy, to, strides })
    }

    /// Lists the terms from a loop of the reduction on; a full table is worked off.
    fn list(&mut self, depth: usize, work: &Work<T>, combines: &mut bool) {
        let (plan, terms) = (self.plan, &self.contraction.terms);
        if depth == terms.len() {
            if !plan.guards.iter().all(|g| g.holds(&self.machine.point)) {
                return;
            }
            if self.table.len() == TABLE * terms.len() {
                self.whole = false;
                self.terms(work, *combines);
                *combines = true;
                self.clear();
            }
            self.table.extend(terms.iter().map(|v| self.machine.point[*v]));
            return;
        }
        let (low, high) = plan.loops[plan.outputs + depth].range.at(&self.machine.point);
        for value in low..=high {
            self.machine.point[terms[depth]] = value;
            self.list(depth + 1, work, combines);
        }
    }

    fn clear(&mut self) {
        self.table.clear();
        self.deltas.iter_mut().for_each(Vec::clear);
    }

    /// Works off the table.
    fn terms(&mut self, work: &Work<T>, combines: bool) {
        let count = self.table.len() / self.contraction.terms.len();
        let lasting = self.whole && (self.contraction.fixed || self.contraction.boxed);
        let padded = [0, 1].map(|axis| work.counts[axis].next_multiple_of(work.tile[axis]));
        let kept = [0, 1].map(|axis| {
            lasting && self.contraction.sides[work.order[axis]].stationary && count.saturating_mul(padded[axis]) <= KEPT
        });
        let blocks = [ROWS, LANES];
        let most = [0, 1].map(|axis| match kept[axis] {
            true => padded[axis],
            false => padded[axis].min((blocks[axis] / work.tile[axis]).max(1) * work.tile[axis]),
        });
        let direct = !kept[1] && work.counts[0] <= 2 * work.tile[0] && self.is_contiguous(work.order[1]);
        for axis in [0, 1] {
            let chunks = if kept[axis] { count.next_multiple_of(TERMS) } else { TERMS };
            self.panels[axis].reserve(most[axis] * chunks);
        }
        self.in_panel.clear();
        self.in_panel.extend((0..TERMS).map(|term| (term * work.tile[1]) as isize));
        for start in (0..count).step_by(TERMS) {
            let terms = start..(start + TERMS).min(count);
            let combine = combines || start > 0;
            let place = |axis: usize| if kept[axis] { start * padded[axis] } else { 0 };
            for lane in (0..work.counts[1]).step_by(most[1]) {
                let lanes = lane..(lane + most[1]).min(work.counts[1]);
                if direct {
                    self.point_at(work, &terms, &lanes);
                } else if !(kept[1] && self.packed[1]) {
                    self.pack(work, 1, &terms, &lanes, place(1));
                }
                for row in (0..work.counts[0]).step_by(most[0]) {
                    let rows = row..(row + most[0]).min(work.counts[0]);
                    if !(kept[0] && self.packed[0]) {
                        self.pack(work, 0, &terms, &rows, place(0));
                    }
                    self.tiles(work, &terms, rows, &lanes, [place(0), place(1)], combine, direct);
                }
            }
        }
        self.packed = kept;
    }

    fn is_contiguous(&self, side: usize) -> bool {
        let side = &self.contraction.sides[side];
        let step = |access: usize, variable: usize| self.plan.accesses[access].place.factor(variable);
        side.plain.zip(side.grouping.lane).is_some_and(|(access, (variable, _))| step(access, variable) == 1)
    }

    /// All tiles of a block of packed rows and packed lanes (or lanes where they are, if `direct`).
    #[allow(clippy::too_many_arguments, reason = "ranges of three loops")]
    fn tiles(
        &mut self,
        work: &Work<T>,
        terms: &Range<usize>,
        rows: Range<usize>,
        lanes: &Range<usize>,
        places: [usize; 2],
        combine: bool,
        direct: bool,
    ) {
        let [height, width] = work.tile;
        let neutral = neutral(self.plan);
        for lane in lanes.clone().step_by(width) {
            let in_place = direct && lane + width <= lanes.end;
            if direct && !in_place {
                self.pack(work, 1, terms, &(lane..lanes.end), 0);
            }
            let panel = if direct { 0 } else { places[1] + (lane - lanes.start) * terms.len() };
            let (b, offsets): (*const T, *const isize) = match in_place {
                // SAFETY: `point_at` checked all lanes of the block.
                true => (unsafe { self.in_place.0.add(lane - lanes.start) }, self.in_place.1.as_ptr()),
                false => (self.panels[1].pointer(panel, width * terms.len()), self.in_panel.as_ptr()),
            };
            for row in rows.clone().step_by(height) {
                let from = places[0] + (row - rows.start) * terms.len();
                let a = self.panels[0].pointer(from, height * terms.len());
                let shape = (height.min(rows.end - row), width.min(lanes.end - lane));
                // SAFETY: `work` checked the whole target.
                let to = unsafe { work.to.offset(row as isize * work.strides[0] + lane as isize * work.strides[1]) };
                let strides = (work.strides[0], work.strides[1]);
                let tile = Tile { terms: terms.len(), a, b, offsets, to, strides, shape, neutral, combine };
                // SAFETY: panels hold whole tiles for all terms; in place, whole tiles were checked.
                unsafe { (work.code)(&tile) };
            }
        }
    }

    /// Notes where the terms of contiguous lanes are.
    fn point_at(&mut self, work: &Work<T>, terms: &Range<usize>, lanes: &Range<usize>) {
        self.find(work, 1, terms, lanes);
        let size = size_of::<T>() as isize;
        let first = self.starts[0];
        let offsets = self.starts.iter().map(|start| (*start as isize - first as isize) / size);
        self.in_place.0 = first;
        self.in_place.1.clear();
        self.in_place.1.extend(offsets);
    }

    /// Finds the first element of every term of a plain operand, with all of `range` inside its buffer.
    fn find(&mut self, work: &Work<T>, axis: usize, terms: &Range<usize>, range: &Range<usize>) -> isize {
        let number = work.order[axis];
        let side = &self.contraction.sides[number];
        let access = &self.plan.accesses[side.plain.unwrap_or(0)];
        let step = side.grouping.lane.map_or(0, |(variable, _)| access.place.factor(variable));
        let buffer = self.machine.buffers[access.buffer];
        self.set(work, axis, range.start);
        self.starts.clear();
        if side.straight {
            if self.deltas[number].is_empty() {
                self.measure(number, &access.place);
            }
            self.contraction.terms.iter().for_each(|v| self.machine.point[*v] = 0);
            let origin = access.place.at(&self.machine.point);
            let deltas = &self.deltas[number][terms.clone()];
            let (least, most) = deltas.iter().fold((i64::MAX, i64::MIN), |(l, m), d| (l.min(*d), m.max(*d)));
            let first = buffer.at(origin + least, (0, step), (1, range.len()));
            buffer.at(origin + most, (0, step), (1, range.len()));
            // SAFETY: the nearest and the farthest term are inside, and so are those between them.
            self.starts
                .extend(deltas.iter().map(|delta| unsafe { first.offset((delta - least) as isize) }.cast_const()));
        } else {
            for term in terms.clone() {
                self.term(term);
                let start = access.place.at(&self.machine.point);
                self.starts.push(buffer.at(start, (0, step), (1, range.len())));
            }
        }
        step as isize
    }

    /// Notes what the terms of the table add to a place.
    fn measure(&mut self, number: usize, place: &Linear) {
        let factors: Vec<i64> = self.contraction.terms.iter().map(|v| place.factor(*v)).collect();
        let delta = |term: &[i64]| term.iter().zip(&factors).map(|(value, factor)| value * factor).sum();
        self.deltas[number] = self.table.chunks_exact(factors.len()).map(delta).collect();
    }

    fn set(&mut self, work: &Work<T>, axis: usize, position: usize) {
        if let Some((variable, _)) = self.contraction.sides[work.order[axis]].grouping.lane {
            self.machine.point[variable] = work.first[axis] + position as i64;
        }
    }

    fn term(&mut self, term: usize) {
        let variables = &self.contraction.terms;
        let values = &self.table[term * variables.len()..];
        variables.iter().zip(values).for_each(|(v, value)| self.machine.point[*v] = *value);
    }

    /// Packs some rows or lanes of some terms: tile by tile, term by term.
    fn pack(&mut self, work: &Work<T>, axis: usize, terms: &Range<usize>, range: &Range<usize>, place: usize) {
        if self.contraction.sides[work.order[axis]].plain.is_none() {
            return self.compute(work, axis, terms, range, place);
        }
        let step = self.find(work, axis, terms, range);
        let width = work.tile[axis];
        for (number, begin) in (0..range.len()).step_by(width).enumerate() {
            let count = width.min(range.len() - begin);
            let panel = self.panels[axis].part(place + number * width * terms.len(), width * terms.len());
            if step == 1 && count == width && axis == 1 {
                // SAFETY: the panel has a whole tile for all terms, and `find` checked the whole range.
                unsafe { (work.copy)(panel.as_mut_ptr(), &self.starts, begin) };
                continue;
            }
            for (line, start) in panel.chunks_exact_mut(width).zip(&self.starts) {
                let (filled, rest) = line.split_at_mut(count);
                // SAFETY: `find` checked the whole range.
                unsafe {
                    let start = start.offset(begin as isize * step);
                    // A call for a few numbers takes longer than they do.
                    if step == 1 && count > T::PER_LINE {
                        filled.copy_from_slice(std::slice::from_raw_parts(start, count));
                    } else {
                        filled.iter_mut().enumerate().for_each(|(i, to)| *to = *start.offset(i as isize * step));
                    }
                }
                rest.fill(T::ZERO);
            }
        }
    }

    /// The same for an operand that has to be computed.
    fn compute(&mut self, work: &Work<T>, axis: usize, terms: &Range<usize>, range: &Range<usize>, place: usize) {
        let side = &self.contraction.sides[work.order[axis]];
        let context = Context { plan: self.plan, grouping: &side.grouping };
        let width = work.tile[axis];
        let most = block::<T>() / width * width;
        self.machine.prepare(&side.code);
        for (k, term) in terms.clone().enumerate() {
            self.term(term);
            for begin in (0..range.len()).step_by(most) {
                let count = most.min(range.len() - begin);
                self.set(work, axis, range.start + begin);
                (self.machine.rows, self.machine.lanes, self.machine.pitch) = (1, count, count);
                side.code.levels.iter().for_each(|level| execute(self.machine, &context, level));
                for (number, from) in (0..count).step_by(width).enumerate() {
                    let tile = place + (begin / width + number) * width * terms.len() + k * width;
                    let line = self.panels[axis].part(tile, width);
                    let filled = width.min(count - from);
                    match side.code.result {
                        Source::Block(b) => {
                            let values = self.machine.blocks.part(b * block::<T>() + from, filled);
                            line[..filled].copy_from_slice(values);
                        }
                        Source::Scalar(s) => line[..filled].fill(self.machine.scalars.get(s)),
                        Source::None | Source::Rows(_) | Source::Memory(_) | Source::Accumulator => {}
                    }
                    line[filled..].fill(T::ZERO);
                }
            }
        }
    }

    /// An empty reduction.
    fn fill(&mut self, work: &Work<T>) {
        for row in 0..work.counts[0] {
            for lane in 0..work.counts[1] {
                let step = row as isize * work.strides[0] + lane as isize * work.strides[1];
                // SAFETY: `work` checked the whole target.
                unsafe { *work.to.offset(step) = neutral(self.plan) };
            }
        }
    }
}

fn neutral<T: Real>(plan: &Plan<T>) -> T {
    T::of(plan.reduction.map_or(0.0, ReduceOp::neutral))
}

/// The form that wastes least on the edges.
fn choose<T: Real>(level: Level, counts: [usize; 2]) -> Form {
    if counts[0] <= 2 {
        return Form::Flat;
    }
    let cost = |choice: Form| counts[1].next_multiple_of(form::<T>(level, choice).1) as f64;
    // A narrow tile loads a little more for each product.
    if cost(Form::Narrow) * 1.08 < cost(Form::Tall) { Form::Narrow } else { Form::Tall }
}
