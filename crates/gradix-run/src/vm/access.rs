//! Where the operands of instructions lie: buffers at the group of points that the machine is set to, and its own memory.
#![allow(unsafe_code, reason = "loops over the caller's buffers; every access is checked once for its whole block")]

use super::code::{BLOCK, Domain, Instruction, Source};
use super::execute::{Context, Machine, PARTS, block};
use super::leaf::{Access, Loop};
use super::linear::Linear;
use super::loops::{View, stream, transfer};
use super::real::{Isa, Real};
use gradix::nest::LoopId;

/// The most runs of terms that are listed, and the most terms of several runs: an instruction can't be stopped.
const MAX_RUNS: usize = 256;
const MAX_TERMS: usize = 1 << 20;

impl<T: Real> Machine<T> {
    /// The rows and lanes that an instruction works on.
    #[inline(always)]
    pub fn shape(&self, domain: Domain) -> (usize, usize) {
        (if domain.rows { self.rows } else { 1 }, if domain.lanes { self.lanes } else { 1 })
    }

    /// The view of a place that an instruction of this domain names.
    #[inline(always)]
    pub fn view(&mut self, context: &Context<'_, T>, source: Source, domain: Domain) -> View<T> {
        let memory = &mut self.memory;
        match source {
            Source::None => View { pointer: std::ptr::dangling_mut(), row: 0, vector: false },
            Source::Value(place, own) => {
                let row = if own.lanes { self.pitch } else { 1 };
                // Where there are no lanes, rows lie one after the other.
                let vector = own.lanes || own.rows && !domain.lanes;
                let pointer = memory.values.pointer(place, if own.lanes { block::<T>() } else { 1 });
                View { pointer, row: if own.rows { row as isize } else { 0 }, vector }
            }
            Source::Accumulator if !self.in_place => {
                let row = if context.grouping.folded { PARTS } else { self.pitch };
                let pointer = memory.accumulator.pointer(self.lane, block::<T>() - self.lane);
                View { pointer, row: row as isize, vector: true }
            }
            Source::Memory(access) => self.buffer(context, access),
            Source::Accumulator => self.buffer(context, 0),
        }
    }

    /// An access with its lanes one after the other.
    #[inline(always)]
    fn buffer(&self, context: &Context<'_, T>, access: usize) -> View<T> {
        let (pointer, [row, lane]) = self.strided(context, access, (self.rows, self.lanes));
        assert!(lane == 1 || self.lanes <= 1, "lanes lie one after the other");
        View { pointer, row, vector: true }
    }

    /// An operand for all terms that are listed.
    pub fn terms(&mut self, context: &Context<'_, T>, source: Source) -> View<T> {
        let Source::Memory(access) = source else { return self.view(context, source, BLOCK) };
        let Access { buffer, place, .. } = &context.plan.accesses[access];
        let [row, lane] = self.steps(context, place);
        let inner = self.terms.iter().map(|(variable, count)| (place.factor(*variable), *count));
        let reach = inner.chain([(row, self.rows), (lane, self.lanes)]);
        let pointer = self.buffers[*buffer].at(place.at(&self.point), reach);
        View { pointer, row: row as isize, vector: lane == 1 }
    }

    /// Lists the loops whose terms run at once, and goes to the first; gives up where there are too many runs of them.
    pub fn list(&mut self, loops: &[Loop]) -> bool {
        self.terms.clear();
        for Loop { variable, range } in loops {
            let (low, high) = range.at(&self.point);
            self.terms.push((*variable, (high - low + 1).max(0) as usize));
        }
        let (terms, outer) = (self.terms.iter(), self.terms[..loops.len() - 1].iter());
        let product =
            |counts: std::slice::Iter<'_, (LoopId, usize)>| counts.fold(1, |all: usize, (_, n)| all.saturating_mul(*n));
        if product(outer.clone()) > MAX_RUNS || outer.len() > 0 && product(terms) > MAX_TERMS {
            return false;
        }
        loops.iter().for_each(|l| self.point[l.variable] = l.range.at(&self.point).0);
        true
    }

    /// Lists where runs of terms start in two operands; gives the length of a run and its steps, if there are terms.
    pub fn list_runs(&mut self, places: [Option<&Linear>; 2]) -> Option<(usize, [isize; 2])> {
        let steps = |variable: LoopId| places.map(|place| place.map_or(0, |place| place.factor(variable)) as isize);
        let ((variable, length), outer) = self.terms.split_last()?;
        self.runs.clear();
        self.runs.push([0, 0]);
        for (variable, count) in outer.iter().rev() {
            let step = steps(*variable);
            for at in 0..self.runs.len() * count.saturating_sub(1) {
                let [a, b] = self.runs[at];
                self.runs.push([a + step[0], b + step[1]]);
            }
        }
        let filled = self.terms.iter().all(|(_, count)| *count > 0);
        filled.then(|| (*length, steps(*variable)))
    }

    /// How much an index expression grows from row to row and from lane to lane.
    #[inline(always)]
    fn steps(&self, context: &Context<'_, T>, linear: &Linear) -> [i64; 2] {
        let row = if context.grouping.row.is_some() { linear.along(&self.slopes) } else { 0 };
        [row, context.grouping.lane.map_or(0, |(lane, _)| linear.factor(lane))]
    }

    /// The first element of an access and the steps from row to row and lane to lane, with all of it inside its buffer.
    #[inline(always)]
    fn strided(&self, context: &Context<'_, T>, access: usize, (rows, lanes): (usize, usize)) -> (*mut T, [isize; 2]) {
        let Access { buffer, place, .. } = &context.plan.accesses[access];
        let steps = self.steps(context, place);
        let pointer = self.buffers[*buffer].at(place.at(&self.point), [(steps[0], rows), (steps[1], lanes)]);
        (pointer, steps.map(|step| step as isize))
    }

    /// Reads an access.
    #[inline(always)]
    pub fn load(&mut self, context: &Context<'_, T>, access: usize, instruction: &Instruction) {
        let to = self.view(context, instruction.to, instruction.domain);
        let shape = self.shape(instruction.domain);
        // SAFETY: `to` holds the shape.
        unsafe { self.exchange(context, access, shape, (to.pointer, [to.row, 1]), false) }
    }

    /// The numbers of an index expression.
    #[inline(always)]
    pub fn index(&mut self, context: &Context<'_, T>, number: usize, instruction: &Instruction) {
        let to = self.view(context, instruction.to, instruction.domain);
        let linear = &context.plan.body.indices[number];
        let [_, step] = self.steps(context, linear);
        self.pieces(context, linear, self.shape(instruction.domain), |machine, row, lane, count| {
            let start = linear.at(&machine.point);
            // SAFETY: `to` holds the shape.
            let line = unsafe { std::slice::from_raw_parts_mut(to.at(row).add(lane), count) };
            line.iter_mut().enumerate().for_each(|(n, to)| *to = T::of((start + n as i64 * step) as f64));
        });
    }

    /// Copies a block from an access to memory with these steps, or back.
    ///
    /// # Safety
    /// The memory holds the block, and nothing else refers to it.
    #[inline(always)]
    unsafe fn exchange(
        &mut self,
        context: &Context<'_, T>,
        access: usize,
        shape: (usize, usize),
        memory: (*mut T, [isize; 2]),
        back: bool,
    ) {
        let place = &context.plan.accesses[access].place;
        let copy = |shape, buffer, memory| match back {
            // SAFETY: `strided` checks the buffer, and the caller promises the memory.
            true => unsafe { transfer(shape, memory, buffer) },
            false => unsafe { transfer(shape, buffer, memory) },
        };
        if shape.1 == 1 || !context.grouping.lane.is_some_and(|(lane, _)| place.bends_at(lane)) {
            return copy(shape, self.strided(context, access, shape), memory);
        }
        let (pointer, steps) = memory;
        self.pieces(context, place, shape, |machine, r, l, count| {
            let memory = pointer.wrapping_offset(r as isize * steps[0] + l as isize * steps[1]);
            copy((1, count), machine.strided(context, access, (1, count)), (memory, steps));
        });
    }

    /// Calls a function at the first of each run of lanes along which an index expression is linear.
    fn pieces(
        &mut self,
        context: &Context<'_, T>,
        linear: &Linear,
        (rows, lanes): (usize, usize),
        mut f: impl FnMut(&Self, usize, usize, usize),
    ) {
        let Some((lane, _)) = context.grouping.lane else { return (0..rows).for_each(|r| f(self, r, 0, 1)) };
        for r in 0..rows {
            // The lane's range may move from row to row.
            let first = self.point[lane];
            let mut l = 0;
            while l < lanes {
                self.point[lane] = first + l as i64;
                let count = linear.straight(&self.point, lane).min((lanes - l) as i64) as usize;
                f(self, r, l, count);
                l += count;
            }
            self.point[lane] = first;
            self.next_row(context, 1);
        }
        self.next_row(context, -(rows as i64));
    }

    /// Goes so many rows on.
    fn next_row(&mut self, context: &Context<'_, T>, rows: i64) {
        context.grouping.moving.iter().for_each(|v| self.point[*v] += rows * self.slopes[*v]);
    }

    /// Writes a block to the target.
    #[inline(always)]
    pub fn store(&mut self, context: &Context<'_, T>, source: Source) {
        let from = self.view(context, source, BLOCK);
        // SAFETY: `from` holds the block.
        let memory = (from.pointer, [from.row, isize::from(from.vector)]);
        unsafe { self.exchange(context, 0, self.shape(BLOCK), memory, true) };
    }

    /// Where those rows start that the next group reads, of the access that reads the furthest, and how many lines of the caches
    /// they have.
    pub fn next_rows(&self, context: &Context<'_, T>) -> (*const T, usize) {
        let read = context.plan.accesses[1..].iter().filter(|access| self.steps(context, &access.place)[1] == 1);
        let Some(Access { buffer, place, .. }) = read.max_by_key(|access| access.place.at(&self.point)) else {
            return (std::ptr::null(), 0);
        };
        let rows = self.rows as i64 * self.steps(context, place)[0];
        let lines = if rows > 0 { self.rows * self.lanes.div_ceil(T::PER_LINE) } else { 0 };
        (self.buffers[*buffer].pointer.wrapping_offset((place.at(&self.point) + rows) as isize), lines)
    }

    /// Writes a block past the caches, if its lanes lie one after the other.
    #[inline(always)]
    pub fn stream<I: Isa>(&mut self, context: &Context<'_, T>, source: Source) {
        let from = self.view(context, source, BLOCK);
        let bends = context.grouping.lane.is_none_or(|(lane, _)| context.plan.accesses[0].place.bends_at(lane));
        let (to, [row, step]) = match bends {
            true => (std::ptr::null_mut(), [0, 0]),
            false => self.strided(context, 0, self.shape(BLOCK)),
        };
        if bends || step != 1 || !from.vector {
            return self.store(context, source);
        }
        for number in 0..self.rows {
            // SAFETY: both hold the block.
            unsafe {
                stream::<T, I::Vector<T>>(from.at(number), to.wrapping_offset(number as isize * row), self.lanes)
            };
        }
    }

    /// Starts the accumulator: with a value, or from what the target holds.
    pub fn start(&mut self, context: &Context<'_, T>, value: Option<T>) {
        if self.in_place && value.is_none() {
            return;
        }
        let to = self.view(context, Source::Accumulator, BLOCK);
        // SAFETY: the accumulator holds the block, and nothing else refers to it.
        unsafe {
            match value {
                Some(value) => (0..self.rows).for_each(|row| to.line_mut(row, self.lanes).fill(value)),
                None => self.exchange(context, 0, self.shape(BLOCK), (to.pointer, [to.row, 1]), false),
            }
        }
    }
}
