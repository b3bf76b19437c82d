//! Runs a leaf: loops over groups of points around the instructions of its body.
//!
//! ```text
//! for outputs that are neither rows nor lanes:
//!   for groups of rows and lanes:                 (of rows alone, where the lanes are a reduction)
//!     for the reduction's loops:
//!       the levels of the code that have changed
//! ```
//!
//! A leaf that can't be taken in groups runs the same way, with groups of one point.

use super::code::{Code, Codes, Inner, Source, compile};
use super::execute::{Context, MAX_ROWS, Machine, PARTS, block, execute, execute_inner};
use super::grouping::Grouping;
use super::leaf::{Loop, Outputs, Plan};
use super::real::Real;
use super::vector::Rule;
use gradix::nest::{ByLoop, LoopId};
use gradix::target::cost;

/// Runs all points of a leaf; the variables of work and tiles are set.
pub fn run<T: Real>(machine: &mut Machine<T>, plan: &Plan<T>) {
    let is_empty = |l: &Loop| matches!(l.range.at(&machine.point), (low, high) if low > high);
    if plan.loops[..plan.outputs].first().is_some_and(is_empty) {
        return;
    }
    machine.ahead = (std::ptr::null(), 0);
    machine.memory.accumulator.reserve(block::<T>());
    if let Some((row, _)) = plan.grouping.row {
        machine.slopes.0.fill(0);
        machine.slopes[row] = 1;
    }
    let context = Context { plan, grouping: &plan.grouping };
    let changing = plan.body.conditions.iter().any(|c| plan.grouping.levels.iter().any(|v| c.linear.uses(*v)));
    let codes = std::mem::take(machine.memory.codes_of(plan));
    let mut leaf = Leaf { machine, context, codes, ready: false, dirty: 0, changing, start: None };
    leaf.outputs(0);
    *leaf.machine.memory.codes_of(plan) = leaf.codes;
}

/// The elements of a block: fewer where a leaf has many instructions, each of which may have a block of its own.
fn most_lanes<T>(nodes: usize) -> usize {
    let share = cost::BLOCKS_OF_NODES.iter().find(|(most, _)| nodes <= *most);
    block::<T>() / share.map_or(1, |(_, share)| *share)
}

struct Leaf<'a, T> {
    machine: &'a mut Machine<T>,
    context: Context<'a, T>,
    /// The last one is for the point at hand, once it is ready.
    codes: Codes<T>,
    ready: bool,
    /// The levels from here on must run.
    dirty: usize,
    /// The outcomes change within a reduction.
    changing: bool,
    /// What the accumulator starts with, if it holds nothing yet.
    start: Option<T>,
}

impl<T: Real> Outputs<T> for Leaf<'_, T> {
    fn at(&mut self) -> (&Plan<T>, &mut ByLoop<i64>) {
        (self.context.plan, &mut self.machine.point)
    }

    fn is_grouped(&self, position: usize) -> bool {
        let Grouping { lane, row, .. } = self.context.grouping;
        [lane, row].into_iter().flatten().any(|(_, p)| *p == position)
    }

    /// All groups of rows and lanes at this point of the other outputs.
    fn groups(&mut self) {
        let (plan, grouping) = (self.context.plan, self.context.grouping);
        let range = |group: Option<(LoopId, usize)>, point: &ByLoop<i64>| match group {
            Some((_, position)) => plan.loops[position].range.at(point),
            None => (0, 0),
        };
        let lanes = if grouping.folded { (0, 0) } else { range(grouping.lane, &self.machine.point) };
        let row_loop = grouping.row.filter(|_| !grouping.stacked);
        let rows = range(row_loop, &self.machine.point);
        if lanes.0 > lanes.1 || rows.0 > rows.1 {
            return;
        }
        let most = most_lanes::<T>(plan.body.exprs.len());
        let mut width = if grouping.folded { most } else { (lanes.1 - lanes.0 + 1).min(most as i64) as usize };
        let height = if grouping.folded { cost::FOLDED_ROWS } else { (most / pitch::<T>(width)).clamp(1, MAX_ROWS) };
        let mut row = rows.0;
        while row <= rows.1 {
            self.set(row_loop, row);
            let left = height.min((rows.1 - row + 1) as usize);
            self.machine.rows = self.even_rows(left);
            row += self.machine.rows as i64;
            if grouping.folded {
                // A power of two, so that a block has whole groups of parts.
                width = most / self.machine.rows.next_power_of_two();
            }
            for lane in (lanes.0..=lanes.1).step_by(width) {
                self.machine.lanes = width.min((lanes.1 - lane + 1) as usize);
                self.set(grouping.lane.filter(|_| !grouping.folded), lane);
                self.machine.pitch = pitch::<T>(if grouping.folded { width } else { self.machine.lanes });
                self.group(width);
            }
        }
    }
}

impl<T: Real> Leaf<'_, T> {
    fn set(&mut self, group: Option<(LoopId, usize)>, value: i64) {
        if let Some((variable, _)) = group {
            self.machine.point[variable] = value;
        }
    }

    /// How many of so many rows from the point on do the same.
    fn even_rows(&mut self, most: usize) -> usize {
        match self.context.grouping.row.filter(|_| self.context.grouping.uneven) {
            Some((variable, _)) => {
                self.context.plan.even_rows(&mut self.machine.point, &mut self.machine.slopes, variable, most)
            }
            None => most,
        }
    }

    /// One group of outputs; `width` lanes at once where they are a reduction.
    fn group(&mut self, width: usize) {
        self.dirty = 0;
        let guarded = self.context.plan.reduction.is_none() && !self.context.grouping.split;
        if guarded && !self.context.plan.guards.iter().all(|g| g.holds(&self.machine.point)) {
            return;
        }
        if !self.changing && !self.context.grouping.split {
            self.decide();
        }
        let (plan, grouping) = (self.context.plan, self.context.grouping);
        if plan.streamed {
            self.machine.ahead = self.machine.next_rows(&self.context);
        }
        let Some(op) = plan.reduction else { return self.block() };
        let neutral = T::of(op.neutral());
        if grouping.folded {
            self.machine.memory.accumulator.part(0, self.machine.rows * PARTS).fill(neutral);
            self.machine.lanes = 1;
            if plan.accumulate {
                // The first part of each row goes on from its target.
                self.machine.start(&self.context, None);
            }
            self.reduce(0, &mut |leaf| leaf.fold(width));
            return self.finish_fold(Rule::of(op));
        }
        self.machine.in_place = is_in_place(plan);
        match plan.accumulate {
            true => self.machine.start(&self.context, None),
            false => self.start = Some(neutral),
        }
        self.reduce(0, &mut |leaf| {
            leaf.begin();
            leaf.block();
        });
        self.begin();
        if !std::mem::replace(&mut self.machine.in_place, false) {
            self.machine.store(&self.context, Source::Accumulator);
        }
    }

    /// Calls `body` at all points of the reduction's loops but the lanes.
    fn reduce(&mut self, depth: usize, body: &mut dyn FnMut(&mut Self)) {
        let (plan, grouping) = (self.context.plan, self.context.grouping);
        if self.inner(depth) {
            return;
        }
        if depth == grouping.levels.len() {
            if grouping.split || plan.guards.iter().all(|g| g.holds(&self.machine.point)) {
                if self.changing && !grouping.split {
                    self.decide();
                }
                body(self);
            }
            return;
        }
        let variable = grouping.levels[depth];
        let (low, high) = plan.loops[plan.outputs + depth].range.at(&self.machine.point);
        let most = match grouping.stacked && depth + 1 == grouping.levels.len() {
            true => (most_lanes::<T>(plan.body.exprs.len()) / self.machine.pitch).clamp(1, MAX_ROWS),
            false => 1,
        };
        for value in (low..=high).step_by(most) {
            if self.machine.is_stopped(self.machine.rows * self.machine.lanes) {
                break;
            }
            self.machine.point[variable] = value;
            if most > 1 {
                self.machine.rows = most.min((high - value + 1) as usize);
            }
            self.dirty = self.dirty.min(depth + 1);
            self.reduce(depth + 1, body);
        }
        if most > 1 {
            self.machine.rows = 1;
        }
    }

    /// Runs the loops of a reduction from this depth on inside of one instruction, if it can be.
    fn inner(&mut self, depth: usize) -> bool {
        let (plan, levels) = (self.context.plan, &self.context.grouping.levels);
        let plain = plan.guards.is_empty() && !self.changing && !self.context.grouping.split;
        let inner = self.codes.last().filter(|_| plain).and_then(|(_, code)| code.inner);
        let folded = self.context.grouping.folded;
        let fits = |inner: &Inner| depth + inner.loops >= levels.len() && (folded || depth < levels.len());
        let Some(inner) = inner.filter(fits) else { return false };
        let fits = self.machine.list(&plan.loops[plan.outputs + depth..]);
        if fits && self.machine.terms.iter().all(|(_, count)| *count > 0) {
            self.levels(levels.len() - depth + usize::from(folded));
            if folded {
                // They are terms.
                self.machine.lanes = 1;
            }
            let start = self.start.take();
            execute_inner(self.machine, &self.context, &inner, start);
        }
        fits
    }

    /// Sets the accumulator to what a reduction starts with, unless it has been.
    fn begin(&mut self) {
        if let Some(value) = self.start.take() {
            self.machine.start(&self.context, Some(value));
        }
    }

    /// A block at one point of the reduction's other loops: all at once, or in parts that do the same.
    fn block(&mut self) {
        let Some((variable, _)) = self.context.grouping.lane.filter(|_| self.context.grouping.split) else {
            return self.levels(0);
        };
        let plan = self.context.plan;
        let (first, lanes) = (self.machine.point[variable], self.machine.lanes);
        let mut lane = 0;
        while lane < lanes {
            self.machine.point[variable] = first + lane as i64;
            let conditions = plan.guards.iter().chain(&plan.body.conditions);
            let run = conditions.map(|c| c.run(&self.machine.point, variable)).fold(i64::MAX, i64::min);
            self.machine.lanes = run.min((lanes - lane) as i64) as usize;
            self.machine.lane = if self.context.grouping.folded { 0 } else { lane };
            lane += self.machine.lanes;
            if plan.guards.iter().all(|g| g.holds(&self.machine.point)) {
                self.decide();
                self.dirty = 0;
                self.levels(0);
            }
        }
        (self.machine.lane, self.machine.lanes) = (0, lanes);
        self.machine.point[variable] = first;
    }

    /// Takes the code for the outcomes of the index conditions at this point.
    fn decide(&mut self) {
        let (plan, point) = (self.context.plan, &self.machine.point);
        let outcomes = || plan.body.conditions.iter().map(|c| c.holds(point));
        match self.codes.iter().rposition(|(known, _)| outcomes().eq(known.iter().copied())) {
            Some(known) if self.ready && known + 1 == self.codes.len() => return,
            Some(known) => self.codes[known..].rotate_left(1),
            None => {
                let outcomes: Vec<bool> = outcomes().collect();
                let code = compile(plan, &plan.grouping, &outcomes, plan.body.root, true);
                self.codes.drain(..(self.codes.len() + 1).saturating_sub(MAX_CODES));
                self.codes.push((outcomes, code));
            }
        }
        if let Some((_, code)) = self.codes.last() {
            self.machine.prepare(code);
        }
        (self.ready, self.dirty) = (true, 0);
    }

    /// Runs the levels that have changed, without the last `kept` ones.
    fn levels(&mut self, kept: usize) {
        let Some((_, code)) = self.codes.last() else { return };
        let end = code.levels.len() - kept;
        for level in &code.levels[self.dirty.min(end)..end] {
            execute(self.machine, &self.context, level);
        }
        self.dirty = usize::MAX;
    }

    /// Folds all lanes at one point of the reduction's other loops.
    fn fold(&mut self, width: usize) {
        let Some((variable, position)) = self.context.grouping.lane else { return };
        let split = self.context.grouping.split;
        let (low, high) = self.context.plan.loops[position].range.at(&self.machine.point);
        if low > high {
            // What the terms have in common may lie outside its buffer where there are none.
            return;
        }
        if !split {
            self.levels(1);
        }
        let mut lane = low;
        while lane <= high && !self.machine.is_stopped(self.machine.rows * width) {
            self.machine.point[variable] = lane;
            self.machine.lanes = width.min((high - lane + 1) as usize);
            lane += width as i64;
            match self.codes.last().and_then(|(_, code)| code.levels.last()) {
                Some(last) if !split => execute(self.machine, &self.context, last),
                _ => self.block(),
            }
        }
    }

    /// Combines the parts of each row, always in the same order, and writes the results.
    fn finish_fold(&mut self, rule: Rule) {
        let count = cost::FOLDED_VECTORS * self.machine.level.width::<T>();
        for row in 0..self.machine.rows {
            rule.combine(self.machine.memory.accumulator.part(row * PARTS, count));
        }
        self.machine.lanes = 1;
        self.machine.store(&self.context, Source::Accumulator);
    }
}

/// Past this many, the code of a leaf that was not used for the longest time is made anew.
const MAX_CODES: usize = 64;

/// The distance of rows: without gaps where they are short, so that they run as one; else in whole cache lines.
fn pitch<T: Real>(lanes: usize) -> usize {
    if lanes < cost::SHORT_ROW_LINES * T::PER_LINE { lanes.max(1) } else { lanes.next_multiple_of(T::PER_LINE) }
}

/// Whether the target can hold what a reduction has so far.
fn is_in_place<T: Real>(plan: &Plan<T>) -> bool {
    let place = &plan.accesses[0].place;
    let contiguous = plan.grouping.lane.is_some_and(|(lane, _)| place.factor(lane) == 1 && !place.bends_at(lane));
    contiguous && !plan.reads_target()
}

impl<T: Real> Machine<T> {
    /// Makes room for a code and sets its constants.
    pub fn prepare(&mut self, code: &Code<T>) {
        self.memory.values.reserve(code.room);
        code.constants.iter().for_each(|(place, value)| self.memory.values.part(*place, 1)[0] = *value);
    }
}
