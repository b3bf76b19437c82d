//! A program made ready to run, again and again, on one of the backends.
//!
//! ```
//! use gradix_run::{Backend, Dtype, Executable};
//!
//! let ast = gradix::syntax::parse("input x[N]; y[i] = 2 * x[i]").unwrap();
//! let program = gradix::resolve(&ast, &[]).unwrap().program;
//! let sizes = [3.into()];
//! let mut executable = Executable::new(&program, &sizes, Dtype::F64, Backend::Interp, None);
//! let mut y = [0.0; 3];
//! executable.run(&sizes, &[&[1.0, 2.0, 3.0]], &mut [&mut y]).unwrap();
//! assert_eq!(y, [2.0, 4.0, 6.0]);
//! ```
//!
//! What was asked for and can't be done is done in another way if there is one: a [`Note`] says so.

#![allow(unsafe_code, reason = "arrays of which not every element exists are given as pointers")]

use std::collections::HashMap;
use std::sync::Arc;

use gradix::Int;
use gradix::diagnostic::Diagnostic;
use gradix::program::{Program, TensorId};
use gradix::target::SM_90;
use gradix::timings::timed;

use crate::array::{Array, element_count};
use crate::cuda::{self, Stream};
use crate::element::Element;
use crate::files::Dtype;
use crate::gradient::shape;
use crate::interp::interp;
use crate::machine::Machine;
use crate::native::Settings;
use crate::note::Note;
use crate::reliance::Reliance;
use crate::{interrupt, memory, threads};

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The fastest that there is: `Native` if there is a C compiler, otherwise `Vm`.
    Auto,
    /// Element by element, slow and obvious: what the others are held to.
    Interp,
    /// Bytecode; needs nothing.
    Vm,
    /// Code from the machine's C compiler.
    Native,
    /// A GPU.
    Cuda,
}

/// A program made ready to run. It holds memory for intermediate values from one run to the next.
pub struct Executable {
    program: Arc<Program>,
    dtype: Dtype,
    threads: usize,
    backend: Backend,
    settings: Settings,
    engine: Engine,
    /// What the engine relies on.
    reliance: Reliance,
    notes: Vec<Note>,
    /// For the sizes of the last run.
    prepared: Option<Prepared>,
}

enum Engine {
    Interp,
    Machine(Box<Machine>),
}

struct Prepared {
    sizes: Vec<Int>,
    inputs: Vec<Vec<usize>>,
    outputs: Vec<Vec<usize>>,
    /// The engine can't run at these sizes.
    refused: bool,
}

impl Executable {
    /// Prepares a program. It runs at all sizes, and best at those of `estimate`: where a small size is another one, a
    /// size is zero that was not, or the other way round, or there is far more to do, it is made again. Without a number
    /// of threads there is one for each core.
    pub fn new(
        program: &Program,
        estimate: &[Int],
        dtype: Dtype,
        backend: Backend,
        threads: Option<usize>,
    ) -> Executable {
        Self::with_settings(program, estimate, dtype, backend, threads, &Settings::from_environment())
    }

    /// The same with another compiler or cache than those of the environment.
    pub fn with_settings(
        program: &Program,
        estimate: &[Int],
        dtype: Dtype,
        backend: Backend,
        threads: Option<usize>,
        settings: &Settings,
    ) -> Executable {
        let threads = threads.unwrap_or_else(threads::default_threads).max(1);
        let (settings, reliance) = (settings.clone(), Reliance::on(program, estimate));
        let program = Arc::new(program.clone());
        let (engine, notes, prepared) = (Engine::Interp, Vec::new(), None);
        let mut executable =
            Executable { program, dtype, threads, backend, settings, engine, reliance, notes, prepared };
        executable.make();
        executable
    }

    /// Another one of the same program, which shares the compiled code and has memory of its own: both can run at the
    /// same time, in different threads. Nothing is compiled for it until it meets sizes that the code is not made for.
    pub fn fork(&self) -> Executable {
        let engine = match &self.engine {
            Engine::Interp => Engine::Interp,
            Engine::Machine(machine) => Engine::Machine(Box::new(machine.fork())),
        };
        Executable {
            program: self.program.clone(),
            settings: self.settings.clone(),
            reliance: self.reliance.clone(),
            engine,
            notes: Vec::new(),
            prepared: None,
            ..*self
        }
    }

    /// Makes the best engine that there is of what was asked for.
    fn make(&mut self) {
        let Executable { program, reliance, dtype, backend, settings, notes, .. } = self;
        self.engine = match engine(program, reliance, *dtype, *backend, settings, notes) {
            Ok(machine) => Engine::Machine(Box::new(machine)),
            Err(why) => {
                notes.extend(why.map(|note| instead(note, "interp")));
                Engine::Interp
            }
        };
    }

    /// Whether it runs at these sizes as it is: it was made for such sizes, and not for much less work.
    pub fn suits(&self, sizes: &[Int]) -> bool {
        let Engine::Machine(machine) = &self.engine else { return true };
        self.reliance.holds(&self.program, sizes) && (!machine.is_plain() || gradix::is_little(&self.program, sizes))
    }

    /// What computes: never `Auto`, and not what was asked for when that was not possible, be it for the sizes of the
    /// last run.
    pub fn backend(&self) -> Backend {
        match &self.engine {
            Engine::Interp => Backend::Interp,
            Engine::Machine(_) if self.prepared.as_ref().is_some_and(|prepared| prepared.refused) => Backend::Interp,
            Engine::Machine(machine) if machine.is_native() => Backend::Native,
            Engine::Machine(machine) if machine.is_cuda() => Backend::Cuda,
            Engine::Machine(_) => Backend::Vm,
        }
    }

    /// Lets this many threads compute from now on; one for each core without a number.
    pub fn set_threads(&mut self, threads: Option<usize>) {
        let threads = threads.unwrap_or_else(threads::default_threads).max(1);
        if threads != self.threads {
            self.threads = threads;
            self.prepared = None;
        }
    }

    /// What there is to tell since the last call.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// The bytes that runs have needed besides inputs and outputs, as far as the backend knows.
    pub fn peak_bytes(&self) -> Option<usize> {
        match &self.engine {
            Engine::Interp => None,
            Engine::Machine(machine) => Some(machine.held_bytes()),
        }
    }

    /// Computes the results: `inputs` and `outputs` are in the order of the program's, dense and row-major, at sizes that
    /// [`gradix::domain::sizes::bind`] gave.
    pub fn run<T: Element>(
        &mut self,
        sizes: &[Int],
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
    ) -> Result<(), Diagnostic> {
        self.prepare(sizes)?;
        let prepared = self.prepared.as_ref().expect("just prepared");
        let given = inputs.iter().map(|array| array.len()).chain(outputs.iter().map(|array| array.len()));
        let expected = prepared.inputs.iter().chain(&prepared.outputs).map(|shape| element_count(shape));
        let same_number = inputs.len() == prepared.inputs.len() && outputs.len() == prepared.outputs.len();
        if !same_number || !given.map(Some).eq(expected) {
            return Err(failed("the arrays do not fit the sizes"));
        }
        let inputs: Vec<*const T> = inputs.iter().map(|array| array.as_ptr()).collect();
        let outputs: Vec<*mut T> = outputs.iter_mut().map(|array| array.as_mut_ptr()).collect();
        // SAFETY: the slices have all elements of their arrays, and the outputs are borrowed exclusively.
        unsafe { self.run_at(sizes, &inputs, &outputs) }
    }

    /// The same for arrays by where they start. What the program does not read of them need not be there: a program that
    /// [`gradix::store`](gradix::store()) made runs on views where they lie.
    ///
    /// # Safety
    ///
    /// At these sizes, which [`gradix::domain::sizes::bind`] gave:
    /// - every element of an input that the program reads is there, is not written during the call, and lies where it
    ///   does in a dense, row-major array of the input's shape that starts at the pointer. If
    ///   [`backend`](Self::backend) is [`Backend::Interp`] after [`prepare`](Self::prepare) with these sizes, that holds
    ///   for all elements, read or not;
    /// - every output has room for all elements of its shape, which nobody else reads or writes during the call, and
    ///   which are no part of an input or of another output;
    /// - pointers to arrays with at least one element are aligned.
    pub unsafe fn run_at<T: Element>(
        &mut self,
        sizes: &[Int],
        inputs: &[*const T],
        outputs: &[*mut T],
    ) -> Result<(), Diagnostic> {
        if T::DTYPE != self.dtype {
            return Err(failed("the arrays have another type of numbers than the program was prepared for"));
        }
        self.prepare(sizes)?;
        let prepared = self.prepared.as_ref().expect("just prepared");
        if inputs.len() != prepared.inputs.len() || outputs.len() != prepared.outputs.len() {
            return Err(failed("the arrays do not fit the sizes"));
        }
        match &mut self.engine {
            // SAFETY: as the caller promises. The machine is prepared for these sizes.
            Engine::Machine(machine) if !prepared.refused => unsafe {
                if !machine.run(sizes, inputs, outputs, self.threads).map_err(|note| failed(note.to_string()))? {
                    return Err(interrupt::stopped());
                }
            },
            Engine::Machine(_) | Engine::Interp => {
                let names = self.program.inputs().map(|tensor| self.program[tensor].name.clone());
                // SAFETY: all elements of the inputs are there, as the caller promises for the interpreter.
                let arrays = inputs.iter().zip(&prepared.inputs).map(|(input, shape)| unsafe { copied(*input, shape) });
                let outcome = interp(&self.program, sizes, &names.zip(arrays).collect(), self.dtype)?;
                for (output, (_, array)) in outputs.iter().zip(outcome.results) {
                    for (position, value) in array.data.into_iter().enumerate() {
                        // SAFETY: the output has room for all elements, as the caller promises.
                        unsafe { output.add(position).write(T::from_f64(value)) };
                    }
                }
            }
        }
        Ok(())
    }

    /// Starts the computation on a stream of the GPU, on arrays that are there already, given by their addresses; whoever waits for
    /// the stream finds the results. An error says why there is no GPU to do so.
    ///
    /// # Safety
    ///
    /// As for [`run_at`](Self::run_at), of memory of the first device, from the start of the computation on the stream to its
    /// end; the stream is one of that device and lives until this executable is dropped or runs on another one.
    pub unsafe fn run_on_device(
        &mut self,
        sizes: &[Int],
        inputs: &[u64],
        outputs: &[u64],
        stream: Stream,
    ) -> Result<(), Diagnostic> {
        self.prepare(sizes)?;
        let prepared = self.prepared.as_ref().expect("just prepared");
        if inputs.len() != prepared.inputs.len() || outputs.len() != prepared.outputs.len() {
            return Err(failed("the arrays do not fit the sizes"));
        }
        match &mut self.engine {
            Engine::Machine(machine) if !prepared.refused && machine.is_cuda() => {
                // SAFETY: as the caller promises. The machine is prepared for these sizes.
                let whole = unsafe { machine.run_on_device(sizes, inputs, outputs, stream) };
                let whole = whole.map_err(|note| failed(note.to_string()))?;
                if whole { Ok(()) } else { Err(interrupt::stopped()) }
            }
            Engine::Machine(_) | Engine::Interp => {
                let why: Vec<String> = self.notes.drain(..).map(|note| note.to_string()).collect();
                Err(failed(format!("what is on a GPU can't be computed: {}", why.join("; "))))
            }
        }
    }

    /// The seconds that a GPU takes for one run on arrays that are there already, by its own clock.
    pub fn seconds_on_device(&mut self, sizes: &[Int], arrays: &cuda::Arrays) -> Result<f64, Diagnostic> {
        self.prepare(sizes)?;
        let prepared = self.prepared.as_ref().expect("just prepared");
        let expected = prepared.inputs.iter().chain(&prepared.outputs).map(|shape| element_count(shape));
        if arrays.dtype != self.dtype || !arrays.elements.iter().copied().map(Some).eq(expected) {
            return Err(failed("the arrays do not fit the sizes"));
        }
        let [inputs, outputs] = [&arrays.inputs, &arrays.outputs].map(|blocks| blocks.iter().map(cuda::Block::address));
        let (inputs, outputs): (Vec<u64>, Vec<u64>) = (inputs.collect(), outputs.collect());
        let gpu = cuda::Gpu::get().map_err(|note| failed(note.to_string()))?;
        let mut outcome = Ok(());
        let seconds = gpu.driver().timed(&mut || {
            // SAFETY: the arrays are on the device, have the elements of the program's, and are borrowed.
            outcome = unsafe { self.run_on_device(sizes, &inputs, &outputs, Stream::default()) };
            Ok(())
        });
        outcome.and(seconds.map_err(|note| failed(note.to_string())))
    }

    /// Computes the results from arrays by name, as [`interp`] does.
    pub fn evaluate(
        &mut self,
        sizes: &[Int],
        inputs: &HashMap<String, Array>,
    ) -> Result<Vec<(String, Array)>, Diagnostic> {
        self.prepare(sizes)?;
        let prepared = self.prepared.as_ref().expect("just prepared");
        if prepared.refused || matches!(self.engine, Engine::Interp) {
            return Ok(interp(&self.program, sizes, inputs, self.dtype)?.results);
        }
        let shapes = prepared.outputs.clone();
        let mut arrays = Vec::new();
        for (tensor, shape) in self.program.inputs().zip(&prepared.inputs) {
            let name = &self.program[tensor].name;
            let array = inputs.get(name).ok_or_else(|| failed(format!("the input '{name}' is not given")))?;
            if array.shape != *shape {
                return Err(failed(format!("the input '{name}' has a shape that does not fit the sizes")));
            }
            arrays.push(array);
        }
        let elements = shapes.iter().filter_map(|shape| element_count(shape)).fold(0, usize::saturating_add);
        if !memory::fits(elements.saturating_mul(size_of::<f64>())) {
            return Err(too_large());
        }
        let results: Option<Vec<Array>> = shapes.into_iter().map(Array::zeros).collect();
        let mut results = results.ok_or_else(too_large)?;
        match self.dtype {
            Dtype::F64 => {
                let inputs: Vec<&[f64]> = arrays.iter().map(|array| &*array.data).collect();
                let mut outputs: Vec<&mut [f64]> = results.iter_mut().map(|array| &mut *array.data).collect();
                self.run(sizes, &inputs, &mut outputs)?;
            }
            Dtype::F32 => {
                let rounded = |array: &Array| array.data.iter().map(|value| *value as f32).collect::<Vec<f32>>();
                let inputs: Vec<Vec<f32>> = arrays.into_iter().map(rounded).collect();
                let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
                let mut outputs: Vec<Vec<f32>> = results.iter().map(rounded).collect();
                let mut places: Vec<&mut [f32]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
                self.run(sizes, &inputs, &mut places)?;
                for (array, output) in results.iter_mut().zip(outputs) {
                    array.data.iter_mut().zip(output).for_each(|(place, value)| *place = f64::from(value));
                }
            }
        }
        let names = self.program.outputs.iter().map(|&tensor| self.program[tensor].name.clone());
        Ok(names.zip(results).collect())
    }

    /// Works out what depends on sizes alone, and gets the memory, as a run at these sizes does first.
    /// [`backend`](Self::backend) then says what that run will be on.
    pub fn prepare(&mut self, sizes: &[Int]) -> Result<(), Diagnostic> {
        if self.prepared.as_ref().is_some_and(|prepared| prepared.sizes == sizes) {
            return Ok(());
        }
        self.prepared = None;
        if !self.suits(sizes) {
            self.reliance.renew(&self.program, sizes);
            self.make();
        }
        let inputs = shapes(&self.program, sizes, &mut self.program.inputs())?;
        let outputs = shapes(&self.program, sizes, &mut self.program.outputs.iter().copied())?;
        let mut refused = false;
        if let Engine::Machine(machine) = &mut self.engine
            && let Err(note) = machine.prepare(sizes, self.threads)
        {
            self.notes.push(instead(note, "interp"));
            refused = true;
        }
        self.prepared = Some(Prepared { sizes: sizes.to_vec(), inputs, outputs, refused });
        Ok(())
    }
}

/// A dense array of this shape.
///
/// # Safety
///
/// All of its elements are there, one after the other from the pointer on.
unsafe fn copied<T: Element>(pointer: *const T, shape: &[usize]) -> Array {
    let count: usize = shape.iter().product();
    // SAFETY: as the caller promises.
    let data = (0..count).map(|position| unsafe { pointer.add(position).read() }.to_f64());
    Array { shape: shape.to_vec(), data: data.collect() }
}

/// The best that there is of what was asked for. Without one, the oracle is left; an error may say why.
fn engine(
    program: &Program,
    reliance: &Reliance,
    dtype: Dtype,
    backend: Backend,
    settings: &Settings,
    notes: &mut Vec<Note>,
) -> Result<Machine, Option<Note>> {
    if backend == Backend::Cuda {
        match on_gpu(program, reliance, dtype, settings) {
            Ok(machine) => return Ok(machine),
            Err(note) => notes.push(instead(note, "the processor")),
        }
    }
    let compiler = match backend {
        Backend::Interp => return Err(None),
        Backend::Vm => None,
        Backend::Native => Some(settings.compiler()),
        // That there is no compiler is nothing to speak of, unless one was named.
        Backend::Auto | Backend::Cuda => {
            Some(settings.compiler()).filter(|found| found.is_ok() || settings.compiler.is_some())
        }
    };
    let compiled = timed("compile", || {
        let program = timed("assume", || reliance.program(program));
        gradix::compile(&program, reliance.sizes(), dtype.real(), &settings.target())
    });
    let refused = |error: Diagnostic| Note::new(format!("the program can't be compiled: {}", error.message));
    let nest = compiled.map_err(refused)?.nest;
    let native = |compiler| Machine::native(program, nest.clone(), dtype, &compiler, settings);
    match compiler.map(|found| found.and_then(native)) {
        Some(Ok((machine, told))) => {
            notes.extend(told);
            return Ok(machine);
        }
        Some(Err(note)) => notes.push(instead(note, "vm")),
        None => {}
    }
    Ok(Machine::vm(program, nest, dtype)?)
}

/// A program made ready for the GPU.
fn on_gpu(program: &Program, reliance: &Reliance, dtype: Dtype, settings: &Settings) -> Result<Machine, Note> {
    // What is missing is told before anything is compiled.
    cuda::Gpu::get()?;
    let compiled = gradix::compile(&reliance.program(program), reliance.sizes(), dtype.real(), &SM_90);
    let refused = |error: Diagnostic| Note::new(format!("the program can't be compiled: {}", error.message));
    Machine::cuda(program, compiled.map_err(refused)?.nest, dtype, settings)
}

fn instead(note: Note, backend: &str) -> Note {
    Note { message: format!("{}; {backend} computes", note.message), ..note }
}

/// The shapes of some tensors.
pub(crate) fn shapes(
    program: &Program,
    sizes: &[Int],
    tensors: &mut dyn Iterator<Item = TensorId>,
) -> Result<Vec<Vec<usize>>, Diagnostic> {
    let shapes: Option<Vec<Vec<usize>>> = tensors.map(|tensor| shape(program, sizes, tensor)).collect();
    let shapes = shapes.filter(|shapes| shapes.iter().all(|shape| element_count(shape).is_some()));
    shapes.ok_or_else(too_large)
}

fn failed(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("run", message)
}

/// What is said of arrays that no memory holds.
pub(crate) fn too_large() -> Diagnostic {
    failed("the arrays do not fit into memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each run at these sizes `N`, whether the engine was made for it, and whether its loops are plain.
    fn made(sizes: &[i64]) -> Vec<(bool, bool)> {
        let text = "input x[N, N], w[N, N]; y[i, j] = sum[k] x[i, k] * w[k, j]";
        let program = gradix::syntax::parse(text).and_then(|ast| gradix::resolve(&ast, &[])).unwrap().program;
        let at = |size: i64| vec![Int::from(size); program.params.len()];
        let mut executable = Executable::new(&program, &at(sizes[0]), Dtype::F64, Backend::Vm, Some(1));
        let mut run = |&size: &i64| {
            executable.prepare(&at(size)).unwrap();
            let Engine::Machine(machine) = &executable.engine else { panic!("the vm refuses") };
            (executable.reliance.sizes() == at(size), machine.is_plain())
        };
        sizes.iter().map(&mut run).collect()
    }

    #[test]
    fn a_program_that_was_small_is_made_again_when_it_grows() {
        assert_eq!(made(&[3, 4, 70, 5]), [(true, true), (false, true), (true, false), (false, false)]);
    }

    #[test]
    fn a_program_is_made_again_when_a_size_becomes_zero_or_is_zero_no_longer() {
        let is_made: Vec<bool> = made(&[70, 0, 70, 90]).into_iter().map(|(is_made, _)| is_made).collect();
        assert_eq!(is_made, [true, true, true, false]);
    }
}
