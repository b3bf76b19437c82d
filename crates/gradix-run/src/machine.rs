//! Running a nest's kernels on arrays, compiled or by the virtual machine.
//!
//! What depends on sizes alone (the places of temporaries, the number of items, the checks that no access leaves its
//! buffer) is worked out when the sizes change, and memory is kept from run to run. A run at the same sizes does nothing
//! but call.

#![allow(unsafe_code, reason = "kernels take raw pointers")]

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gradix::Int;
use gradix::emit::c::parts::parts;
use gradix::nest::{Buffer, ByBuffer, Lifetime, MAX_SIZE, Scope, Verified};
use gradix::program::{Param, ParamKind, Program, TensorId};
use gradix::timings::timed;

use crate::buffers::{Block, padded};
use crate::cuda::{self, Memory, Stream};
use crate::element::Element;
use crate::files::Dtype;
use crate::layout;
use crate::native::{self, Compiler, Kernels, Settings};
use crate::note::Note;
use crate::stages::Stages;
use crate::vm::Vm;
use crate::{memory, threads};

/// A nest that can be run, with the memory that it works in.
pub struct Machine {
    compiled: Arc<Compiled>,
    plan: Option<Plan>,
    temporaries: Option<Block>,
    locals: Vec<Block>,
    /// On a GPU, all arrays.
    device: Memory,
}

/// What does not depend on the sizes of a run.
struct Compiled {
    nest: Verified,
    /// The sizes that runs are given.
    params: Vec<Param>,
    dtype: Dtype,
    code: Code,
    lifetimes: ByBuffer<Option<Lifetime>>,
}

/// What runs the kernels.
enum Code {
    Native(Kernels),
    Cuda(cuda::Kernels),
    /// What it runs depends on the sizes, and is part of the plan.
    Vm,
}

/// Kernels for the virtual machine, for elements of one type.
pub enum Translated {
    /// Double precision.
    F64(Vm<f64>),
    /// Single precision.
    F32(Vm<f32>),
}

/// What follows from the sizes.
#[derive(Clone)]
struct Plan {
    sizes: Vec<Int>,
    /// The sizes as the kernels take them.
    numbers: Vec<i64>,
    /// The places of temporaries; 0 for other buffers.
    offsets: Vec<usize>,
    kernels: Vec<Share>,
    stages: Stages,
    translated: Option<Arc<Translated>>,
    /// The kernels on a GPU for these sizes.
    loaded: Option<Arc<cuda::Loaded>>,
    /// Of each buffer.
    bytes: Vec<usize>,
    temporary_bytes: usize,
    local_bytes: usize,
}

/// A kernel's work.
#[derive(Clone, Debug)]
struct Share {
    items: usize,
    /// It took less time than others need to wake up.
    quick: bool,
}

/// A kernel whose whole work takes less than this is not shared.
const QUICK: Duration = Duration::from_micros(15);

impl Machine {
    /// Compiles a nest that was made from `program`. An error says why that is not possible.
    pub fn native(
        program: &Program,
        nest: Verified,
        dtype: Dtype,
        compiler: &Compiler,
        settings: &Settings,
    ) -> Result<(Machine, Vec<Note>), Note> {
        let mut compiled = Compiled::new(program, nest, dtype);
        let texts = timed("emit", || parts(&compiled.nest, dtype.real(), threads::default_threads()));
        let (kernels, notes) =
            native::load(&texts, compiled.nest.kernels.len(), compiled.nest.plain, compiler, settings)?;
        compiled.code = Code::Native(kernels);
        Ok((Machine::from(Arc::new(compiled), None), notes))
    }

    /// Makes a nest ready for the GPU; an error says what is missing.
    pub fn cuda(program: &Program, nest: Verified, dtype: Dtype, settings: &Settings) -> Result<Machine, Note> {
        let mut compiled = Compiled::new(program, nest, dtype);
        compiled.code = Code::Cuda(cuda::Kernels::of(&compiled.nest, dtype.real(), settings)?);
        Ok(Machine::from(Arc::new(compiled), None))
    }

    /// Leaves the kernels of a nest that was made from `program` to the virtual machine.
    pub fn vm(program: &Program, nest: Verified, dtype: Dtype) -> Result<Machine, Note> {
        Ok(Machine::from(Arc::new(Compiled::new(program, nest, dtype)), None))
    }

    fn from(compiled: Arc<Compiled>, plan: Option<Plan>) -> Machine {
        Machine { compiled, plan, temporaries: None, locals: Vec::new(), device: Memory::default() }
    }

    /// Another one of the same code, which gets memory of its own when it is [prepared](Self::prepare).
    pub fn fork(&self) -> Machine {
        Machine::from(self.compiled.clone(), self.plan.clone())
    }

    /// Whether the kernels run on a GPU.
    pub fn is_cuda(&self) -> bool {
        matches!(self.compiled.code, Code::Cuda(_))
    }

    /// Whether the kernels are compiled.
    pub fn is_native(&self) -> bool {
        matches!(self.compiled.code, Code::Native(_))
    }

    /// Whether the loops are plain, for programs with little to do.
    pub fn is_plain(&self) -> bool {
        self.compiled.nest.plain
    }

    /// Makes everything ready for runs at these sizes; an error says why there can't be any.
    pub fn prepare(&mut self, sizes: &[Int], threads: usize) -> Result<(), Note> {
        if self.plan.as_ref().is_none_or(|plan| plan.sizes != sizes) {
            // A failure below must not leave a plan for other sizes behind.
            self.plan = None;
            self.plan = Some(self.compiled.plan(sizes)?);
        }
        let Some(plan) = &self.plan else { return Ok(()) };
        if self.is_cuda() {
            // A run gets memory when it knows on which stream it will be.
            return Ok(());
        }
        let threads = threads.min(plan.kernels.iter().map(|kernel| kernel.items).max().unwrap_or(0)).max(1);
        let lack = |block: &Block, bytes: usize| block.bytes() < bytes;
        let missing_locals = match self.locals.iter().any(|block| lack(block, plan.local_bytes)) {
            true => threads,
            false => threads.saturating_sub(self.locals.len()),
        };
        let grows = self.temporaries.as_ref().is_none_or(|block| lack(block, plan.temporary_bytes));
        let needed = plan.local_bytes.saturating_mul(missing_locals);
        if !memory::fits(needed.saturating_add(if grows { plan.temporary_bytes } else { 0 })) {
            return Err(too_large());
        }
        if grows {
            // The old one goes first.
            self.temporaries = None;
            self.temporaries = Some(Block::new(plan.temporary_bytes).ok_or_else(too_large)?);
        }
        self.locals.retain(|block| !lack(block, plan.local_bytes));
        while self.locals.len() < threads {
            self.locals.push(Block::new(plan.local_bytes).ok_or_else(too_large)?);
        }
        Ok(())
    }

    /// Computes the outputs on this many threads at most, and says whether it was not [stopped](crate::interrupt); an error says how a
    /// GPU failed. [`prepare`](Self::prepare) has been called with the same sizes
    /// and number of threads.
    ///
    /// # Panics
    ///
    /// If it has not, or if there is another number of arrays than the program has.
    ///
    /// # Safety
    ///
    /// As for [`Executable::run_at`](crate::Executable::run_at) on another backend than the interpreter.
    pub unsafe fn run<T: Element>(
        &mut self,
        sizes: &[Int],
        inputs: &[*const T],
        outputs: &[*mut T],
        threads: usize,
    ) -> Result<bool, Note> {
        assert_eq!(self.compiled.dtype, T::DTYPE, "the program was compiled for another type of numbers");
        if self.is_cuda() {
            // SAFETY: as the caller promises.
            return unsafe { self.run_from_host(sizes, inputs, outputs) };
        }
        let Compiled { code, nest, .. } = &*self.compiled;
        let plan = self.plan.as_mut().filter(|plan| plan.sizes == sizes).expect("the machine is prepared");
        let temporaries = self.temporaries.as_ref().expect("the machine is prepared");
        let pointer = |(number, buffer): (usize, &Buffer)| match buffer.scope {
            Scope::Input(position) => inputs[position].cast_mut(),
            Scope::Output(position) => outputs[position],
            // SAFETY: the block has `temporary_bytes`, and the plan puts every temporary inside them.
            Scope::Run => unsafe { temporaries.start().add(plan.offsets[number]) }.cast(),
            Scope::Local(_) => std::ptr::null_mut(),
        };
        let pointers: Vec<*mut T> = nest.buffers.iter().enumerate().map(pointer).collect();
        let locals: Vec<*mut T> = self.locals.iter().map(|block| block.start().cast()).collect();
        let translated = plan.translated.as_deref().and_then(T::translated);
        let threads = threads.min(locals.len());
        let Plan { numbers, kernels, stages, .. } = plan;
        let whole = stages.run(numbers, &mut |kernel, sizes| {
            let call = Call { code, translated, sizes, pointers: &pointers, locals: &locals, threads };
            // SAFETY: the call was made from sizes whose checks hold (at all steps), and from buffers with the elements that
            // the nest touches, as the caller promises.
            unsafe { call.kernel(kernel, &mut kernels[kernel]) }
        });
        Ok(whole)
    }

    /// Starts the kernels on a stream of the GPU, on arrays that are there already, and does not wait for them; `false` if that was
    /// stopped. [`prepare`](Self::prepare) has been called with the same sizes.
    ///
    /// # Safety
    ///
    /// As for [`Executable::run_on_device`](crate::Executable::run_on_device).
    pub unsafe fn run_on_device(
        &mut self,
        sizes: &[Int],
        inputs: &[u64],
        outputs: &[u64],
        stream: Stream,
    ) -> Result<bool, Note> {
        let Compiled { code, nest, .. } = &*self.compiled;
        let Code::Cuda(kernels) = code else { return Err(Note::new("it was not compiled for a GPU")) };
        let plan = self.plan.as_mut().filter(|plan| plan.sizes == sizes).expect("the machine is prepared");
        let (gpu, device) = (kernels.gpu(), &mut self.device);
        gpu.driver().aside(|| {
            device.begin(gpu, stream)?;
            let start = device.temporaries(gpu, plan.temporary_bytes)?;
            let address = |(number, buffer): (usize, &Buffer)| match buffer.scope {
                Scope::Input(position) => inputs[position],
                Scope::Output(position) => outputs[position],
                Scope::Run => start + plan.offsets[number] as u64,
                Scope::Local(_) => 0,
            };
            let addresses: Vec<u64> = nest.buffers.iter().enumerate().map(address).collect();
            let items: Vec<usize> = plan.kernels.iter().map(|share| share.items).collect();
            let loaded = plan.loaded.clone().expect("the plan has kernels for these sizes");
            let mut failed = None;
            let whole = plan.stages.run(&mut plan.numbers, &mut |number, sizes| {
                // SAFETY: as the caller promises; the plan is that of sizes whose checks hold.
                failed = unsafe { kernels.launch(&loaded, (number, items[number]), sizes, &addresses, stream) }.err();
                failed.is_none()
            });
            device.end(gpu, stream)?;
            failed.map_or(Ok(whole), Err)
        })
    }

    /// Copies arguments to the GPU, runs all stages, and copies results back; `false` if the run was interrupted.
    ///
    /// # Safety
    ///
    /// As for [`run`](Self::run).
    unsafe fn run_from_host<T: Element>(
        &mut self,
        sizes: &[Int],
        inputs: &[*const T],
        outputs: &[*mut T],
    ) -> Result<bool, Note> {
        let compiled = self.compiled.clone();
        let Code::Cuda(kernels) = &compiled.code else { unreachable!("the code is for a GPU") };
        let (gpu, stream, nest) = (kernels.gpu(), Stream::default(), &compiled.nest);
        let bytes = self.plan.as_ref().map_or_else(Vec::new, |plan| plan.bytes.clone());
        self.device.settle()?;
        let (mut given, mut made, mut copies) = (vec![0; inputs.len()], vec![0; outputs.len()], Vec::new());
        let touched = nest.touched();
        let is_touched = |(number, _): &(usize, &Buffer)| touched.contains(&TensorId(*number as u32));
        for (number, buffer) in nest.buffers.iter().enumerate().filter(is_touched) {
            match buffer.scope {
                Scope::Input(position) => {
                    given[position] = self.device.array(gpu, number, bytes[number])?;
                    // SAFETY: as the caller promises.
                    unsafe { gpu.driver().upload(given[position], inputs[position].cast(), bytes[number])? };
                }
                Scope::Output(position) => {
                    made[position] = self.device.array(gpu, number, bytes[number])?;
                    copies.push((position, bytes[number]));
                }
                Scope::Run | Scope::Local(_) => {}
            }
        }
        // SAFETY: all arrays that are touched are on the device.
        let whole = unsafe { self.run_on_device(sizes, &given, &made, stream) };
        self.device.settle()?;
        for (position, bytes) in copies {
            // SAFETY: as the caller promises.
            unsafe { gpu.driver().download(outputs[position].cast(), made[position], bytes)? };
        }
        whole
    }

    /// The bytes that are held besides inputs and outputs.
    pub fn held_bytes(&self) -> usize {
        self.temporaries.iter().chain(&self.locals).map(Block::bytes).sum::<usize>() + self.device.bytes()
    }
}

impl Compiled {
    /// Without compiled kernels: for the virtual machine.
    fn new(program: &Program, nest: Verified, dtype: Dtype) -> Compiled {
        let (lifetimes, params) = (nest.lifetimes(), program.params.clone());
        Compiled { nest, params, dtype, code: Code::Vm, lifetimes }
    }

    fn plan(&self, sizes: &[Int]) -> Result<Plan, Note> {
        let nest_sizes = self.nest_sizes(sizes);
        let number = |size: &Int| i64::try_from(size).ok().filter(|size| (-MAX_SIZE..=MAX_SIZE).contains(size));
        let numbers: Option<Vec<i64>> = nest_sizes.iter().map(number).collect();
        let numbers = numbers.ok_or_else(too_large)?;
        if let Some(check) = self.nest.checks().iter().find(|check| !gradix::nest::verify::holds(check, &nest_sizes)) {
            let (rule, name) = (check.rule, &self.nest[check.buffer].name);
            return Err(Note::new(format!("it could not be shown that fast code {rule} '{name}'")));
        }
        let width = match self.dtype {
            Dtype::F64 => size_of::<f64>(),
            Dtype::F32 => size_of::<f32>(),
        };
        let buffers = self.nest.buffer_ids();
        let elements: Option<Vec<usize>> = buffers.map(|buffer| self.nest.elements(buffer, &nest_sizes)).collect();
        let elements = elements.ok_or_else(too_large)?;
        let bytes: Option<Vec<usize>> = elements.iter().map(|count| count.checked_mul(width)).collect();
        let bytes = bytes.ok_or_else(too_large)?;
        let whole: Option<Vec<usize>> = bytes.iter().map(|bytes| padded(*bytes)).collect();
        let whole = whole.ok_or_else(too_large)?;
        let items = self.nest.kernels.iter().map(|kernel| self.nest.items(kernel, &nest_sizes));
        let items = items.map(|items| items.filter(|items| i64::try_from(*items).is_ok()));
        let kernels: Option<Vec<Share>> = items.map(|items| Some(Share { items: items?, quick: false })).collect();
        let (offsets, temporary_bytes) = self.place_temporaries(&whole).ok_or_else(too_large)?;
        let local_bytes = self.local_bytes(&whole).ok_or_else(too_large)?;
        let kernels = kernels.ok_or_else(too_large)?;
        let translated = match (&self.code, self.dtype) {
            (Code::Native(_) | Code::Cuda(_), _) => None,
            (Code::Vm, Dtype::F64) => Some(Vm::new(&self.nest, &nest_sizes).map(Translated::F64)),
            (Code::Vm, Dtype::F32) => Some(Vm::new(&self.nest, &nest_sizes).map(Translated::F32)),
        };
        let translated = translated.transpose().map_err(|error| Note::new(error.message))?.map(Arc::new);
        let stages = Stages::new(&self.nest.stages, &nest_sizes).ok_or_else(too_large)?;
        let loaded = match &self.code {
            Code::Cuda(kernels) => Some(kernels.at(&self.nest, &numbers, &elements)?),
            Code::Native(_) | Code::Vm => None,
        };
        let sizes = sizes.to_vec();
        Ok(Plan { sizes, numbers, offsets, kernels, stages, translated, loaded, bytes, temporary_bytes, local_bytes })
    }

    /// The sizes of the nest, from those of the program: the free ones are the same.
    fn nest_sizes(&self, sizes: &[Int]) -> Vec<Int> {
        let free = self.params.iter().zip(sizes).filter(|(param, _)| param.kind == ParamKind::Free);
        self.nest.sizes(&free.map(|(_, size)| size.clone()).collect::<Vec<_>>())
    }

    fn place_temporaries(&self, bytes: &[usize]) -> Option<(Vec<usize>, usize)> {
        let used = |buffer: TensorId| (self.nest[buffer].scope == Scope::Run).then_some(self.lifetimes[buffer]?);
        let temporaries: Vec<(usize, Lifetime)> =
            self.nest.buffer_ids().filter_map(|buffer| Some((buffer.0 as usize, used(buffer)?))).collect();
        let requests: Vec<(usize, Lifetime)> =
            temporaries.iter().map(|&(buffer, life)| (bytes[buffer], life)).collect();
        let (places, total) = layout::place(&requests)?;
        let mut offsets = vec![0; bytes.len()];
        temporaries.iter().zip(places).for_each(|(&(buffer, _), place)| offsets[buffer] = place);
        Some((offsets, total))
    }

    /// What the kernel with the most local memory needs.
    fn local_bytes(&self, bytes: &[usize]) -> Option<usize> {
        let of_kernel = |number: usize| {
            let locals = self.nest.locals(number);
            locals.map(|TensorId(buffer)| bytes[buffer as usize]).try_fold(0usize, usize::checked_add)
        };
        (0..self.nest.kernels.len()).map(of_kernel).try_fold(0, |most, bytes| Some(bytes?.max(most)))
    }
}

/// What a kernel is called with, apart from the items.
struct Call<'a, T> {
    code: &'a Code,
    translated: Option<&'a Vm<T>>,
    sizes: &'a [i64],
    pointers: &'a [*mut T],
    locals: &'a [*mut T],
    threads: usize,
}

// SAFETY: the pointers are only passed on; `items` says what has to hold for what they point to.
unsafe impl<T: Element> Sync for Call<'_, T> {}

impl<T: Element> Call<'_, T> {
    /// Runs a kernel on all threads, unless it is quick; `false` if it was interrupted.
    ///
    /// # Safety
    ///
    /// The call was made from sizes whose checks hold, and from buffers with the elements that the nest touches.
    unsafe fn kernel(&self, number: usize, share: &mut Share) -> bool {
        let threads = if share.quick { 1 } else { self.threads.min(share.items) };
        let start = Instant::now();
        // SAFETY: as the caller promises; `share_items` gives each item once, inside `0..items`, and different numbers to
        // threads at work, so that every call has the local memory of `thread` to itself.
        let run = |thread: usize, items: Range<usize>| unsafe { self.items(number, thread, items) };
        if share.quick && share.items > 0 {
            run(0, 0..share.items);
        } else if !threads::share_items(threads, share.items, &run) {
            return false;
        }
        share.quick = start.elapsed() * threads as u32 <= if share.quick { 2 * QUICK } else { QUICK };
        true
    }

    /// # Safety
    ///
    /// As for [`Kernels::call`] and [`Vm::kernel`], which ask for the same; the local memory is that of `thread`.
    unsafe fn items(&self, kernel: usize, thread: usize, items: Range<usize>) {
        let local = self.locals[thread];
        match (self.code, self.translated) {
            // SAFETY: as the caller promises. The number of items fits, the plan has seen to that.
            (Code::Native(kernels), _) => unsafe {
                kernels.call(kernel, self.sizes, self.pointers, local, items.start as i64, items.end as i64);
            },
            // SAFETY: as the caller promises.
            (Code::Vm, Some(vm)) => unsafe { T::run(vm, kernel, self.sizes, self.pointers, local, items) },
            (Code::Cuda(_), _) => unreachable!("kernels on a GPU are launched whole"),
            (Code::Vm, None) => unreachable!("the plan has kernels for this type"),
        }
    }
}

fn too_large() -> Note {
    Note::new("these sizes are too large for fast code on this machine")
}
