//! The portable backend: a nest as instructions over blocks of elements.
//!
//! [`Vm::new`] puts in numbers for the sizes and makes a plan of every leaf; [`Vm::kernel`] runs items of a kernel's
//! work. It needs no compiler and no instruction set in particular: the loops of `execute` and the register tiles of
//! `tile` are compiled for several, and the best one that the machine has is taken.
//!
//! ```text
//! leaf ─plan→ Plan ─compile→ Code        one code for each combination of outcomes of the conditions on indices
//!               │
//!               └─contraction→ panels and register tiles, where the nest packs and the body is f(a[m, k], b[k, n])
//! ```
//!
//! The numbers are the same from run to run and for any number of threads: every element is computed in an order that
//! depends on its leaf alone.

mod access;
mod block;
mod chain;
mod code;
mod contract;
mod elementary;
mod execute;
mod grouping;
mod leaf;
mod linear;
mod loops;
mod real;
mod recognise;
mod scratch;
mod tile;
mod vector;
#[cfg(target_arch = "x86_64")]
mod wide_exp;

pub use real::{Level, Real};

use chain::Chain;
use code::compile;
use execute::{Buffer, Machine, Memory};
use gradix::Int;
use gradix::diagnostic::Diagnostic;
use gradix::nest::{ByBuffer, ByLoop, LoopId, Nest, Step, Work, along, evaluate};
use gradix::program::{Affine, Param, ParamId, ParamKind, TensorId};
use leaf::{Plan, plan};
use linear::{Bounds, Translator};
use std::cell::Cell;
use std::ops::Range;
use std::sync::Mutex;

/// A nest that is ready to run for one set of sizes.
pub struct Vm<T> {
    level: Level,
    /// The elements of each buffer.
    lengths: ByBuffer<usize>,
    kernels: Vec<Items<T>>,
    /// The sizes that change from step to step: of every kernel, they are the last variables.
    times: Vec<ParamId>,
    /// Memory that no thread uses now.
    idle: Mutex<Vec<Memory<T>>>,
}

/// A kernel.
struct Items<T> {
    /// Along each dimension of the grid.
    grid: Vec<Along>,
    /// How many there are along each.
    counts: Vec<usize>,
    count: usize,
    variables: usize,
    /// Its local buffers, and where in local memory each starts.
    locals: Vec<(TensorId, usize)>,
    local_elements: usize,
    steps: Vec<Part<T>>,
}

/// The values that items cover along a dimension of their grid, and the variables that tell which.
struct Along {
    low: i64,
    high: i64,
    step: i64,
    /// For the first value, the last one, and the number of the item.
    variables: [LoopId; 3],
}

enum Part<T> {
    Tile { variable: LoopId, range: Bounds, size: i64, steps: Vec<Part<T>> },
    Chain(Chain<T>),
    Leaf(Box<Plan<T>>),
}

impl<T: Real> Vm<T> {
    /// Translates a nest for these sizes.
    pub fn new(nest: &Nest, sizes: &[Int]) -> Result<Self, Diagnostic> {
        let lengths = nest.buffer_ids().map(|buffer| nest.elements(buffer, sizes).ok_or_else(too_large));
        let lengths = ByBuffer(lengths.collect::<Result<_, _>>()?);
        let numbers = Translator::new(sizes, 0);
        let shape = |b: TensorId| nest[b].extents.iter().map(|e| Ok(numbers.number(e)?.max(0))).collect();
        let extents = ByBuffer(nest.buffer_ids().map(shape).collect::<Result<Vec<Vec<i64>>, Diagnostic>>()?);
        let context = Sizes { nest, sizes, lengths: &lengths, extents: &extents, plans: Cell::new(0) };
        let kernels = (0..nest.kernels.len()).map(|k| context.kernel(k)).collect::<Result<_, _>>()?;
        let times = times(nest).into_iter().map(|(param, _)| param).collect();
        Ok(Vm { level: Level::detect(), lengths, kernels, times, idle: Mutex::default() })
    }

    /// The same with no better instruction set than this one.
    pub fn limited(mut self, level: Level) -> Self {
        self.level = self.level.min(level);
        self
    }

    /// How many items of work a kernel has.
    pub fn items(&self, kernel: usize) -> usize {
        self.kernels[kernel].count
    }

    /// How many numbers the local memory of a kernel holds.
    pub fn local_elements(&self, kernel: usize) -> usize {
        self.kernels[kernel].local_elements
    }

    /// Runs items of a kernel, at the steps that some of the `sizes` say. `buffers` are in the order of the nest (those of local ones are not used), and `local`
    /// is this thread's local memory: the kernel's local buffers in order, each padded to whole cache lines.
    ///
    /// # Panics
    /// If the items are not the kernel's, or an access leaves its buffer (which no nest that passes `verify` does).
    ///
    /// # Safety
    /// Every buffer that is not local has as many elements as the nest says, and `local` has [`Vm::local_elements`]
    /// that no other thread uses. While this runs nothing else touches the buffers but this function, in other threads,
    /// for other items of the same kernel; and the nest is right in that items don't write what others read or write.
    #[allow(unsafe_code, reason = "buffers are shared by threads that write different parts of them")]
    pub unsafe fn kernel(&self, kernel: usize, sizes: &[i64], buffers: &[*mut T], local: *mut T, items: Range<usize>) {
        let plan = &self.kernels[kernel];
        assert!(items.end <= plan.count && buffers.len() == self.lengths.0.len(), "items and buffers of the nest");
        let given = buffers.iter().zip(&self.lengths.0);
        let mut all = ByBuffer(given.map(|(pointer, length)| Buffer { pointer: *pointer, length: *length }).collect());
        for (buffer, start) in &plan.locals {
            // SAFETY: local memory has room for all local buffers.
            all[*buffer].pointer = unsafe { local.add(*start) };
        }
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        let mut machine = Machine {
            level: self.level,
            buffers: all,
            point: ByLoop(vec![0; plan.variables]),
            slopes: ByLoop(vec![0; plan.variables]),
            memory: idle.unwrap_or_else(Memory::new),
            in_place: false,
            terms: Vec::new(),
            runs: Vec::new(),
            rows: 1,
            lanes: 1,
            lane: 0,
            pitch: 1,
            ahead: (std::ptr::null(), 0),
            points: 0,
            stopped: false,
        };
        for (place, time) in self.times.iter().enumerate() {
            machine.point.0[plan.variables - self.times.len() + place] = sizes[time.0 as usize];
        }
        plan.run(&mut machine, items);
        // What was written past the caches is there before others are told that this is done.
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every machine of this architecture has it.
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
        if let Ok(mut idle) = self.idle.lock() {
            idle.push(machine.memory);
        }
    }
}

impl<T: Real> Items<T> {
    fn run(&self, machine: &mut Machine<T>, items: Range<usize>) {
        for item in items {
            along(item, &self.counts, &mut |dimension, number| self.grid[dimension].bind(number, &mut machine.point));
            run_parts(&self.steps, machine);
        }
    }
}

impl Along {
    /// The values of its variables in the item of this number.
    fn bind(&self, number: usize, point: &mut ByLoop<i64>) {
        let [first, last, item] = self.variables;
        point[first] = self.low + number as i64 * self.step;
        point[last] = (point[first] + self.step - 1).min(self.high);
        point[item] = number as i64;
    }
}

fn run_parts<T: Real>(parts: &[Part<T>], machine: &mut Machine<T>) {
    for part in parts {
        match part {
            Part::Tile { variable, range, size, steps } => {
                let (low, high) = range.at(&machine.point);
                let mut value = low;
                while value <= high && !machine.is_stopped(1) {
                    machine.point[*variable] = value;
                    run_parts(steps, machine);
                    value += size;
                }
            }
            Part::Chain(chain) => chain.run(machine),
            Part::Leaf(plan) => match &plan.contraction {
                Some(contraction) => contract::run(machine, plan, contraction),
                None => block::run(machine, plan),
            },
        }
    }
}

struct Sizes<'a> {
    nest: &'a Nest,
    sizes: &'a [Int],
    lengths: &'a ByBuffer<usize>,
    extents: &'a ByBuffer<Vec<i64>>,
    /// How many leaves there are so far.
    plans: Cell<usize>,
}

impl Sizes<'_> {
    fn kernel<T: Real>(&self, number: usize) -> Result<Items<T>, Diagnostic> {
        let kernel = &self.nest.kernels[number];
        let times = times(self.nest);
        let variables = kernel.variables.len() + times.len();
        let mut translator = Translator::new(self.sizes, variables);
        for (place, (param, steps)) in times.into_iter().enumerate() {
            let steps = i64::try_from(&evaluate(steps, self.sizes)).map_err(|_| too_large())?;
            translator.bind_time(param, LoopId((kernel.variables.len() + place) as u32), steps)?;
        }
        let count = self.nest.items(kernel, self.sizes).ok_or_else(too_large)?;
        let (mut grid, mut counts) = (Vec::new(), Vec::new());
        for work in &kernel.work {
            let count = usize::try_from(&work.items(self.sizes)).map_err(|_| too_large())?;
            grid.push(self.along(work, count, &mut translator)?);
            counts.push(count);
        }
        let steps = self.parts(&kernel.steps, &mut translator)?;
        let (mut locals, mut local_elements) = (Vec::new(), 0usize);
        for buffer in self.nest.locals(number) {
            locals.push((buffer, local_elements));
            let padded = self.lengths[buffer].checked_next_multiple_of(T::PER_LINE);
            local_elements = padded.and_then(|length| local_elements.checked_add(length)).ok_or_else(too_large)?;
        }
        Ok(Items { grid, counts, count, variables, locals, local_elements, steps })
    }

    /// A dimension of a grid, along which there are so many items.
    fn along(&self, work: &Work, count: usize, translator: &mut Translator<'_>) -> Result<Along, Diagnostic> {
        let Work { low, high, step, .. } = work;
        let (low, high) = (translator.number(low)?, translator.number(high)?);
        let step = translator.number(step)?.max(1);
        let count_magnitude = i128::try_from(count).map_err(|_| too_large())?;
        let magnitude = count_magnitude.checked_mul(i128::from(step)).ok_or_else(too_large)?;
        let magnitude = magnitude + i128::from(low.abs()).max(i128::from(high.abs()));
        let number = (count / 2) as i64;
        let start = low.saturating_add(number.saturating_mul(step));
        let [first, last, item] = work.variables();
        translator.bind(first, magnitude, start)?;
        translator.bind(last, magnitude, start.saturating_add(step - 1))?;
        translator.bind(item, count_magnitude, number)?;
        Ok(Along { low, high, step, variables: [first, last, item] })
    }

    fn parts<T: Real>(&self, steps: &[Step], translator: &mut Translator<'_>) -> Result<Vec<Part<T>>, Diagnostic> {
        let mut parts = Vec::with_capacity(steps.len());
        for step in steps {
            let leaves = match step {
                Step::Tile(tile) => {
                    let range = translator.range(tile.variable, &tile.range)?;
                    let steps = self.parts(&tile.steps, translator)?;
                    parts.push(tiles(tile.variable, range, tile.size.max(1), steps));
                    continue;
                }
                Step::Leaf(leaf) => std::slice::from_ref(leaf),
                // One after the other: what they hand on is in the cache.
                Step::Together(together) => &together.leaves,
            };
            for leaf in leaves {
                parts.push(Part::Leaf(Box::new(plan(
                    self.nest,
                    self.extents,
                    translator,
                    (leaf, self.plans.replace(self.plans.get() + 1)),
                )?)));
            }
        }
        Ok(parts)
    }
}

/// A loop over tiles.
fn tiles<T: Real>(variable: LoopId, range: Bounds, size: i64, steps: Vec<Part<T>>) -> Part<T> {
    if !steps.iter().all(|part| matches!(part, Part::Leaf(plan) if plan.is_single())) {
        return Part::Tile { variable, range, size, steps };
    }
    let plan = |part| if let Part::Leaf(plan) = part { Some(plan) } else { None };
    let with_code = |plan: Box<Plan<T>>| (compile(&plan, &plan.grouping, &[], plan.body.root, true), plan);
    Part::Chain(Chain { variable, range, size, leaves: steps.into_iter().filter_map(plan).map(with_code).collect() })
}

/// The sizes that change from step to step, and how many steps each has.
fn times(nest: &Nest) -> Vec<(ParamId, &Affine)> {
    let is_time = |(_, param): &(ParamId, &Param)| matches!(param.kind, ParamKind::Time(_));
    let params = (0..).map(ParamId).zip(&nest.params).filter(is_time);
    params.filter_map(|(id, param)| Some((id, param.kind.parts().first()?))).collect()
}

fn too_large() -> Diagnostic {
    failed("the sizes are past all memory")
}

fn failed(message: &str) -> Diagnostic {
    Diagnostic::error("run", message)
}
