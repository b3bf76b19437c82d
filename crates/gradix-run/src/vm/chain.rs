//! Steps of a recurrence that are single numbers: the instructions of all leaves of a tile as one list, through which a loop
//! goes with a pointer for each operand.
//!
//! ```text
//! for t: s[t] = x[t] + s[t - 1]; z[t] = sin(s[t])
//!
//! Add to s + t of x + t, s + t - 1; Sin to z + t of s + t
//! ```
#![allow(unsafe_code, reason = "operands are checked once for a run of steps")]

use super::code::{Code, Instruction, Operation, Source};
use super::execute::{Blocks, Machine, operate};
use super::leaf::{Access, Plan};
use super::linear::{Bounds, Linear};
use super::loops::View;
use super::real::{Isa, Level, Real, by_level};
use gradix::nest::LoopId;

/// A tile whose leaves are single numbers.
pub struct Chain<T> {
    pub variable: LoopId,
    pub range: Bounds,
    pub size: i64,
    pub leaves: Vec<(Code<T>, Box<Plan<T>>)>,
}

/// The most steps that are taken without asking whether to stop.
const MAX_STEPS: i64 = 1 << 12;

/// Some steps.
struct Steps<'a, T> {
    chain: &'a Chain<T>,
    count: usize,
    links: Vec<Link<T>>,
    bends: Vec<Bend<'a, T>>,
}

/// An instruction: where its target and then its operands are at the first step, and how far they go from step to step.
struct Link<T> {
    operation: Operation,
    places: [*mut T; 4],
    strides: [isize; 4],
}

/// What is found anew at each step.
enum Bend<'a, T> {
    /// A place of a link, by number, that has no stride.
    Place(usize, usize, &'a Access),
    /// The number of an index expression.
    Number(*mut T, &'a Linear),
}

impl<T: Real> Chain<T> {
    /// Goes through all steps; the variables around are set.
    pub fn run(&self, machine: &mut Machine<T>) {
        machine.memory.values.reserve(self.leaves.iter().map(|(code, _)| code.room).sum());
        (machine.rows, machine.lanes) = (1, 1);
        let (mut first, last) = self.range.at(&machine.point);
        while first <= last {
            let count = ((last - first) / self.size + 1).min(MAX_STEPS) as usize;
            machine.point[self.variable] = first;
            let mut steps = Steps { chain: self, count, links: Vec::new(), bends: Vec::new() };
            let mut base = 0;
            for (code, plan) in &self.leaves {
                code.constants.iter().for_each(|(at, value)| machine.memory.values.part(base + at, 1)[0] = *value);
                code.levels.iter().flatten().for_each(|instruction| steps.push(machine, plan, instruction, base));
                base += code.room;
            }
            if machine.is_stopped(count.saturating_mul(steps.links.len())) {
                return;
            }
            // SAFETY: the level was detected, and all places are there at all steps.
            unsafe { run_at(machine.level, machine, &mut steps) };
            first += count as i64 * self.size;
        }
    }
}

impl<'a, T: Real> Steps<'a, T> {
    /// Adds an instruction of a leaf, whose values start at a place in memory.
    fn push(&mut self, machine: &mut Machine<T>, plan: &'a Plan<T>, instruction: &Instruction, base: usize) {
        let Instruction { operation, to, operands: [a, b, c], .. } = *instruction;
        let mut link = Link { operation, places: [std::ptr::dangling_mut(); 4], strides: [0; 4] };
        for (number, source) in [to, a, b, c].into_iter().enumerate() {
            match source {
                Source::Value(at, _) => link.places[number] = machine.memory.values.pointer(base + at, 1),
                Source::Memory(access) => self.access(machine, &plan.accesses[access], &mut link, number),
                Source::None | Source::Accumulator => {}
            }
        }
        match operation {
            Operation::Index(index) => self.bends.push(Bend::Number(link.places[0], &plan.body.indices[index])),
            _ => self.links.push(link),
        }
    }

    fn access(&mut self, machine: &Machine<T>, access: &'a Access, link: &mut Link<T>, number: usize) {
        let Access { buffer, place, .. } = access;
        let bends = place.bends_at(self.chain.variable);
        let stride = if bends { 0 } else { place.factor(self.chain.variable) * self.chain.size };
        link.places[number] = machine.buffers[*buffer].at(place.at(&machine.point), [(stride, self.count)]);
        link.strides[number] = stride as isize;
        if bends {
            self.bends.push(Bend::Place(self.links.len(), number, access));
        }
    }
}

by_level! { run_at<T>(machine: &mut Machine<T>, steps: &mut Steps<'_, T>) = run }

/// # Safety
/// All places are there at all steps.
#[inline(always)]
unsafe fn run<T: Real, I: Isa>(machine: &mut Machine<T>, steps: &mut Steps<'_, T>) {
    if let ([link], []) = (steps.links.as_slice(), steps.bends.as_slice())
        && link.is_plain()
    {
        // One instruction goes through its rows in order.
        return operate::<T, I>(link.operation, link.blocks(0, steps.count));
    }
    for step in 0..steps.count {
        for bend in &steps.bends {
            match bend {
                Bend::Place(link, number, Access { buffer, place, .. }) => {
                    steps.links[*link].places[*number] = machine.buffers[*buffer].at(place.at(&machine.point), []);
                }
                // SAFETY: the caller's promise.
                Bend::Number(to, linear) => unsafe { **to = T::of(linear.at(&machine.point) as f64) },
            }
        }
        for link in &steps.links {
            match link.operation {
                // SAFETY: the caller's promise.
                Operation::Store => unsafe { *link.place(0, step) = *link.place(1, step) },
                operation => operate::<T, I>(operation, link.blocks(step, 1)),
            }
        }
        machine.point[steps.chain.variable] += steps.chain.size;
    }
}

impl<T: Real> Link<T> {
    /// Whether nothing is read after the target is written.
    fn is_plain(&self) -> bool {
        let product =
            [Operation::MultiplyAdd, Operation::MultiplySubtract, Operation::SubtractProduct].contains(&self.operation);
        product || matches!(self.operation, Operation::Binary(_))
    }

    #[inline(always)]
    fn place(&self, number: usize, step: usize) -> *mut T {
        self.places[number].wrapping_offset(step as isize * self.strides[number])
    }

    /// The views of so many steps as rows.
    #[inline(always)]
    fn blocks(&self, step: usize, count: usize) -> Blocks<T> {
        Blocks {
            shape: (count, 1),
            to: self.view(0, step),
            operands: [self.view(1, step), self.view(2, step), self.view(3, step)],
        }
    }

    #[inline(always)]
    fn view(&self, number: usize, step: usize) -> View<T> {
        View { pointer: self.place(number, step), row: self.strides[number], vector: true }
    }
}
