//! Where the operands of instructions lie: buffers at the group of points that the machine is set to, and its own memory.
#![allow(unsafe_code, reason = "loops over the caller's buffers; every access is checked once for its whole block")]

use super::code::{Domain, Instruction, Source};
use super::execute::{Context, Machine, PARTS, ROWS, block};
use super::leaf::Access;
use super::linear::Linear;
use super::loops::{View, gather};
use super::real::Real;

impl<T: Real> Machine<T> {
    /// The rows and lanes that an instruction works on.
    #[inline(always)]
    pub fn shape(&self, domain: Domain) -> (usize, usize) {
        match domain {
            Domain::Scalar => (1, 1),
            Domain::Rows => (1, self.rows),
            Domain::Block => (self.rows, self.lanes),
        }
    }

    /// The view of a place that an instruction of this domain names.
    #[inline(always)]
    pub fn view(&mut self, context: &Context<'_, T>, source: Source, domain: Domain) -> View<T> {
        let memory = &mut self.memory;
        match source {
            Source::None => View { pointer: std::ptr::dangling_mut(), row: 0, vector: false },
            Source::Scalar(place) => View { pointer: memory.scalars.pointer(place, 1), row: 0, vector: false },
            Source::Rows(place) => {
                let vector = domain == Domain::Rows;
                View { pointer: memory.rows.pointer(place * ROWS, ROWS), row: isize::from(!vector), vector }
            }
            Source::Block(place) => {
                let pointer = memory.blocks.pointer(place * block::<T>(), block::<T>());
                View { pointer, row: self.pitch as isize, vector: true }
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

    /// An operand for so many values of a variable from the point on, and the step from one to the next.
    pub fn terms(
        &mut self,
        context: &Context<'_, T>,
        source: Source,
        variable: usize,
        count: usize,
    ) -> (View<T>, isize) {
        let Source::Memory(access) = source else { return (self.view(context, source, Domain::Block), 0) };
        let Access { buffer, place } = &context.plan.accesses[access];
        let [row, lane] = self.steps(context, place);
        let (start, step) = (place.at(&self.point), place.factor(variable));
        let counts = [self.rows, self.lanes, count];
        let pointer = self.buffers[*buffer].at(start, [row, lane, step], counts);
        (View { pointer, row: row as isize, vector: lane == 1 }, step as isize)
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
        let Access { buffer, place } = &context.plan.accesses[access];
        let steps = self.steps(context, place);
        let pointer = self.buffers[*buffer].at(place.at(&self.point), steps, [rows, lanes]);
        (pointer, steps.map(|step| step as isize))
    }

    /// One element.
    #[inline(always)]
    fn element(&self, context: &Context<'_, T>, access: usize) -> *mut T {
        let Access { buffer, place } = &context.plan.accesses[access];
        self.buffers[*buffer].at(place.at(&self.point), [], [])
    }

    /// The element of the target at the point.
    pub fn target(&self, context: &Context<'_, T>) -> T {
        // SAFETY: it lies inside its buffer.
        unsafe { *self.element(context, 0) }
    }

    /// Writes the element of the target at the point.
    pub fn set_target(&self, context: &Context<'_, T>, value: T) {
        // SAFETY: it lies inside its buffer.
        unsafe { *self.element(context, 0) = value };
    }

    /// Reads an access.
    #[inline(always)]
    pub fn load(&mut self, context: &Context<'_, T>, access: usize, instruction: &Instruction) {
        let to = self.view(context, instruction.to, instruction.domain);
        let bends = context.grouping.lane.is_some_and(|(lane, _)| context.plan.accesses[access].place.bends_at(lane));
        let (shape, block) = (self.shape(instruction.domain), (self.rows, self.lanes));
        // SAFETY: `to` holds the shape, and `strided` and `element` check what they are asked for.
        unsafe {
            match instruction.domain {
                Domain::Scalar => *to.pointer = *self.element(context, access),
                Domain::Rows => {
                    let (pointer, [row, _]) = self.strided(context, access, (self.rows, 1));
                    gather(to, shape, pointer, [0, row]);
                }
                Domain::Block if bends => {
                    self.at_points(context, block, |machine, r, l| {
                        *to.at(r).add(l) = *machine.element(context, access)
                    });
                }
                Domain::Block => {
                    let (pointer, steps) = self.strided(context, access, block);
                    gather(to, shape, pointer, steps);
                }
            }
        }
    }

    /// The numbers of an index expression.
    #[inline(always)]
    pub fn index(&mut self, context: &Context<'_, T>, number: usize, instruction: &Instruction) {
        let to = self.view(context, instruction.to, instruction.domain);
        let linear = &context.plan.graph.indices[number];
        let (shape, start) = (self.shape(instruction.domain), linear.at(&self.point));
        let [row, lane] = match (instruction.domain, self.steps(context, linear)) {
            (Domain::Rows, [row, _]) => [0, row],
            (Domain::Scalar | Domain::Block, steps) => steps,
        };
        let bends = context.grouping.lane.is_some_and(|(lane, _)| linear.bends_at(lane));
        // SAFETY: `to` holds the shape.
        unsafe {
            if bends && instruction.domain == Domain::Block {
                return self.at_points(context, shape, |machine, r, l| {
                    *to.at(r).add(l) = T::of(linear.at(&machine.point) as f64);
                });
            }
            for r in 0..shape.0 {
                let line = to.line_mut(r, shape.1).iter_mut().enumerate();
                line.for_each(|(l, to)| *to = T::of((start + r as i64 * row + l as i64 * lane) as f64));
            }
        }
    }

    /// Calls a function at each point of a block.
    fn at_points(&mut self, context: &Context<'_, T>, shape: (usize, usize), mut f: impl FnMut(&Self, usize, usize)) {
        let start = self.point.clone();
        for (r, l) in (0..shape.0).flat_map(|r| (0..shape.1).map(move |l| (r, l))) {
            for (value, (start, slope)) in self.point.iter_mut().zip(start.iter().zip(&self.slopes)) {
                *value = start + slope * r as i64;
            }
            if let Some((variable, _)) = context.grouping.lane {
                self.point[variable] += l as i64;
            }
            f(self, r, l);
        }
        self.point = start;
    }

    /// Writes a block to the target.
    #[inline(always)]
    pub fn store(&mut self, context: &Context<'_, T>, source: Source) {
        let from = self.view(context, source, Domain::Block);
        let shape = (self.rows, self.lanes);
        let value = |r: usize, l: usize| from.at(r).wrapping_add(if from.vector { l } else { 0 });
        if context.grouping.lane.is_some_and(|(lane, _)| context.plan.accesses[0].place.bends_at(lane)) {
            // SAFETY: `from` holds the block.
            return self
                .at_points(context, shape, |machine, r, l| unsafe { machine.set_target(context, *value(r, l)) });
        }
        let (pointer, [row, lane]) = self.strided(context, 0, shape);
        for r in 0..shape.0 {
            for l in 0..shape.1 {
                // SAFETY: `strided` checked the whole block, and `from` holds it.
                unsafe { *pointer.offset(r as isize * row + l as isize * lane) = *value(r, l) };
            }
        }
    }

    /// Starts the accumulator: with a value, or from what the target holds.
    pub fn start(&mut self, context: &Context<'_, T>, value: Option<T>) {
        if self.in_place && value.is_none() {
            return;
        }
        let to = self.view(context, Source::Accumulator, Domain::Block);
        let shape = (self.rows, self.lanes);
        // SAFETY: the accumulator holds the block, and nothing else refers to it.
        unsafe {
            match value {
                Some(value) => (0..shape.0).for_each(|row| to.line_mut(row, shape.1).fill(value)),
                None => self.at_points(context, shape, |machine, r, l| *to.at(r).add(l) = machine.target(context)),
            }
        }
    }
}
