//! A program as a function of arrays in memory, to be called again and again, from any thread.
//!
//! ```text
//! shapes ─bind→ Bound (sizes, shapes of results)             remembered for the last few shapes
//! type, backend, layouts ─→ Variant                          compiled once
//! Variant, sizes ─→ an Executable that nobody uses ─run→ results    one for each call at a time
//! ```
//!
//! Arrays may have any strides: one that is not dense and row-major is read where it lies, by a program whose
//! subscripts say so ([`gradix::store`](gradix::store())). It is copied if it is so small that this takes less time than to
//! look closely, if there is code for many other layouts already, and where the reference interpreter computes.

#![allow(unsafe_code, reason = "arrays of other languages come as pointers with strides")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gradix::diagnostic::{Diagnostic, Result};
use gradix::domain::sizes::{self, Known};
use gradix::program::Places;
use gradix::program::{ParamKind, Program, TensorId};
use gradix::transform::store::Layout;
use gradix::{Int, Resolved};

use crate::cuda::Stream;
use crate::element::Element;
use crate::executable::{Backend, Executable, shapes, too_large};
use crate::files::Dtype;
use crate::note::Note;
use crate::recent::Recent;
use crate::view::View;
use crate::{memory, strided};

/// A program, and what was made of it so far.
pub struct Function {
    program: Program,
    places: Places,
    bound: Recent<Shapes, Bound>,
    variants: Mutex<Vec<Arc<Variant>>>,
}

/// What runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    /// Which backend.
    pub backend: Backend,
    /// How many threads; `None` is one for each core.
    pub threads: Option<usize>,
}

/// A program at some sizes.
#[derive(Debug)]
pub struct Bound {
    /// The value of every size of the program.
    pub sizes: Vec<Int>,
    /// The shapes of the inputs, in order.
    pub inputs: Vec<Vec<usize>>,
    /// The shapes of the results, in order.
    pub outputs: Vec<Vec<usize>>,
}

/// Shapes of the inputs that there are, and sizes by name.
#[derive(PartialEq)]
struct Shapes {
    arrays: Vec<Option<Vec<usize>>>,
    given: Vec<(String, Int)>,
}

/// A non-dense array of at most this many bytes is copied: that takes at most 10 µs, and code of its own some 100 ms.
const SMALL: usize = 16 << 10;

/// Arrays in yet another layout are copied, so that views whose strides follow no rule do not fill the memory with code.
const MAX_VARIANTS: usize = 64;

impl Function {
    /// The function that a program defines.
    pub fn new(resolved: Resolved) -> Self {
        let Resolved { program, places } = resolved;
        Function { program, places, bound: Recent::new(RECENT), variants: Mutex::new(Vec::new()) }
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// For how many combinations of types, backends and layouts there is code.
    pub fn variants(&self) -> usize {
        lock(&self.variants).len()
    }

    /// Where its parts stand in the source.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// The sizes that follow from the shapes of arrays, in the order of the inputs, and from those given by name; all
    /// bounds and requirements are checked.
    pub fn bind(&self, arrays: &[Option<&[usize]>], given: &[(String, Int)]) -> Result<Arc<Bound>> {
        let known = |key: &Shapes| {
            let same = |(known, array): (&Option<Vec<usize>>, &Option<&[usize]>)| known.as_deref() == *array;
            key.given == given && key.arrays.len() == arrays.len() && key.arrays.iter().zip(arrays).all(same)
        };
        self.bound.find_or_add(known, || {
            let inputs = self.program.inputs().zip(arrays);
            let shapes = inputs.filter_map(|(tensor, array)| Some((tensor, array.as_ref()?.to_vec()))).collect();
            let sizes = sizes::bind(&self.program, &Known { given: given.to_vec(), shapes }, &self.places)?;
            let arrays = arrays.iter().map(|array| array.map(<[usize]>::to_vec)).collect();
            Ok((Shapes { arrays, given: given.to_vec() }, self.at(sizes)?))
        })
    }

    /// The same at sizes that another program has, whose derivative this is: sizes go by their names.
    pub fn bind_like(&self, other: &Program, sizes: &[Int]) -> Result<Arc<Bound>> {
        self.bind(&[], &free_sizes(other, sizes))
    }

    fn at(&self, sizes: Vec<Int>) -> Result<Bound> {
        let of = |tensors: Vec<TensorId>| shapes(&self.program, &sizes, &mut tensors.into_iter());
        let inputs = of(self.program.inputs().collect()).map_err(|error| vec![error])?;
        let outputs = of(self.program.outputs.clone()).map_err(|error| vec![error])?;
        Ok(Bound { sizes, inputs, outputs })
    }

    /// Computes the results, and says what there is to tell.
    ///
    /// # Safety
    ///
    /// Views and outputs are in the order of the program's inputs and results. The views have the shapes of `bound`, which
    /// this function made, and all their elements can be read. The outputs are dense and row-major with the shapes of
    /// `bound`, can be written, and overlap neither each other nor a view; nobody else uses them during the call.
    pub unsafe fn run<T: Element>(
        &self,
        bound: &Bound,
        how: How,
        inputs: &[View<'_, T>],
        outputs: &[*mut T],
    ) -> Result<Vec<Note>, Diagnostic> {
        if inputs.iter().all(|view| view.strides.is_none()) {
            // SAFETY: as the caller promises.
            return unsafe { self.run_dense(bound, how, inputs, outputs) };
        }
        let laid: Vec<Option<(Layout, Vec<usize>, isize)>> = inputs.iter().map(|view| laid(view, how)).collect();
        let copies = inputs.iter().zip(&laid).map(|(view, laid)| match laid {
            // SAFETY: as the caller promises.
            None if view.strides.is_some() => unsafe { copy(view) },
            _ => Ok(Vec::new()),
        });
        let copies = copies.collect::<Result<Vec<Vec<T>>, Diagnostic>>()?;
        if laid.iter().all(Option::is_none) {
            let dense = inputs.iter().zip(&copies).map(|(view, copy)| match view.strides {
                Some(_) => View::dense(copy.as_ptr(), view.shape),
                None => *view,
            });
            // SAFETY: copies have the elements of their views; the rest is as the caller promises.
            return unsafe { self.run_dense(bound, how, &dense.collect::<Vec<_>>(), outputs) };
        }
        let pointers = inputs.iter().zip(&laid).zip(&copies).map(|((view, laid), copy)| match (laid, view.strides) {
            (Some((_, _, offset)), _) => view.start.wrapping_offset(*offset),
            (None, Some(_)) => copy.as_ptr(),
            (None, None) => view.start,
        });
        let pointers: Vec<*const T> = pointers.collect();
        let (layouts, extents) =
            laid.into_iter().map(|laid| laid.map(|(layout, extents, _)| (layout, extents)).unzip()).unzip();
        if let Some(variant) = self.variant(T::DTYPE, how.backend, layouts) {
            let sizes = variant.sizes(&self.program, &bound.sizes, extents)?;
            // SAFETY: the layouts say where the elements lie that the program reads; the rest is as the caller promises.
            if let Some(told) = unsafe { variant.run(&sizes, how.threads, &pointers, outputs) }? {
                return Ok(told);
            }
        }
        // SAFETY: as the caller promises.
        let copies = inputs.iter().map(|view| unsafe { copy(view) }).collect::<Result<Vec<Vec<T>>, Diagnostic>>()?;
        let dense = inputs.iter().zip(&copies).map(|(view, copy)| View::dense(copy.as_ptr(), view.shape));
        // SAFETY: as above.
        unsafe { self.run_dense(bound, how, &dense.collect::<Vec<_>>(), outputs) }
    }

    /// Starts the computation on a stream of the GPU, on arrays that are there already, given by their addresses.
    ///
    /// # Safety
    ///
    /// As for [`Executable::run_on_device`], at the sizes of `bound`, which this function made; the stream lives as long as
    /// this function.
    pub unsafe fn run_on_device(
        &self,
        bound: &Bound,
        dtype: Dtype,
        inputs: &[u64],
        outputs: &[u64],
        stream: Stream,
    ) -> Result<Vec<Note>, Diagnostic> {
        let variant = self.variant(dtype, Backend::Cuda, Vec::new()).expect("there is room for arrays in C order");
        let (group, mut executable) = variant.take(&bound.sizes)?;
        // SAFETY: as the caller promises.
        let outcome = unsafe { executable.run_on_device(&bound.sizes, inputs, outputs, stream) };
        let told = executable.take_notes();
        lock(&variant.groups)[group].push(executable);
        outcome.map(|()| told)
    }

    /// As [`run`](Self::run), for arrays in C order.
    ///
    /// # Safety
    ///
    /// As for [`run`](Self::run).
    unsafe fn run_dense<T: Element>(
        &self,
        bound: &Bound,
        how: How,
        inputs: &[View<'_, T>],
        outputs: &[*mut T],
    ) -> Result<Vec<Note>, Diagnostic> {
        let pointers: Vec<*const T> = inputs.iter().map(|view| view.start).collect();
        let variant = self.variant(T::DTYPE, how.backend, Vec::new()).expect("there is room for arrays in C order");
        // SAFETY: as the caller promises; arrays in C order are what the program expects.
        let told = unsafe { variant.run(&bound.sizes, how.threads, &pointers, outputs) }?;
        Ok(told.expect("whole arrays can be run by everything"))
    }

    /// The variant for some layouts; none of them for arrays in C order. `None` if there are too many already.
    fn variant(&self, dtype: Dtype, backend: Backend, layouts: Vec<Option<Layout>>) -> Option<Arc<Variant>> {
        let mut variants = lock(&self.variants);
        let same =
            |variant: &&Arc<Variant>| (variant.dtype, variant.backend, &variant.layouts) == (dtype, backend, &layouts);
        if let Some(variant) = variants.iter().find(same) {
            return Some(Arc::clone(variant));
        }
        if !layouts.is_empty() && variants.len() >= MAX_VARIANTS {
            return None;
        }
        let laid = self.program.inputs().zip(&layouts).filter_map(|(tensor, layout)| Some((tensor, layout.clone()?)));
        let program = gradix::store(&self.program, &laid.collect::<Vec<_>>());
        let variant = Variant {
            dtype,
            backend,
            layouts,
            program,
            sizes: Recent::new(RECENT),
            groups: Mutex::default(),
            making: Mutex::default(),
            choices: Recent::new(RECENT),
        };
        variants.push(Arc::new(variant));
        variants.last().cloned()
    }
}

/// How an array lies in memory, if it is to be read there.
fn laid<T>(view: &View<'_, T>, how: How) -> Option<(Layout, Vec<usize>, isize)> {
    let is_small = view.elements().saturating_mul(size_of::<T>()) <= SMALL;
    let strides = view.strides.filter(|_| !is_small && how.backend != Backend::Interp)?;
    strided::layout(view.shape, strides)
}

/// The elements in C order, if there is memory for them: what is broadcast may have more than there ever was.
///
/// # Safety
///
/// They can be read.
unsafe fn copy<T: Element>(view: &View<'_, T>) -> Result<Vec<T>, Diagnostic> {
    match memory::fits(view.elements().saturating_mul(size_of::<T>())) {
        // SAFETY: as the caller promises.
        true => Ok(unsafe { view.copy() }),
        false => Err(too_large()),
    }
}

/// A program for arrays of one type that lie in memory in one way, and one backend.
struct Variant {
    dtype: Dtype,
    backend: Backend,
    /// For each input that is not dense, how it lies; empty if all are dense.
    layouts: Vec<Option<Layout>>,
    program: Program,
    /// The sizes of `program`, by those of the function and the extents of what is stored.
    sizes: Recent<(Vec<Int>, Storage), Vec<Int>>,
    /// Executables, in groups that have the same code, and whose sizes it suits. Sizes are always run by the first group that
    /// suits them, so that the same call gives the same bits whatever was called in between.
    groups: Mutex<Vec<Group>>,
    /// Held by who makes a group.
    making: Mutex<()>,
    /// The group for some sizes.
    choices: Recent<Vec<Int>, usize>,
}

/// The extents of what each input is stored in, if it is not dense.
type Storage = Vec<Option<Vec<usize>>>;

/// Executables that nobody uses. The last one is never taken away, so that there is always one to fork.
type Group = Vec<Executable>;

impl Variant {
    /// The sizes of the stored program.
    fn sizes(&self, program: &Program, sizes: &[Int], extents: Storage) -> Result<Arc<Vec<Int>>, Diagnostic> {
        let found = self.sizes.find_or_add(
            |(known, storage)| known == sizes && *storage == extents,
            || {
                let stored = self.program.inputs().zip(&extents);
                let shapes = stored.filter_map(|(tensor, storage)| Some((tensor, storage.clone()?))).collect();
                let known = Known { given: free_sizes(program, sizes), shapes };
                Ok(((sizes.to_vec(), extents.clone()), sizes::bind(&self.program, &known, &Places::default())?))
            },
        );
        found.map_err(|mut errors: Vec<Diagnostic>| errors.swap_remove(0))
    }

    /// Runs the program; `None` if the interpreter would compute, which reads all of a stored array, where there may be
    /// nothing.
    ///
    /// # Safety
    ///
    /// As for [`Executable::run_at`].
    unsafe fn run<T: Element>(
        &self,
        sizes: &[Int],
        threads: Option<usize>,
        inputs: &[*const T],
        outputs: &[*mut T],
    ) -> Result<Option<Vec<Note>>, Diagnostic> {
        let (group, mut executable) = self.take(sizes)?;
        executable.set_threads(threads);
        let mut run = || {
            executable.prepare(sizes)?;
            if !self.layouts.is_empty() && executable.backend() == Backend::Interp {
                return Ok(None);
            }
            // SAFETY: as the caller promises.
            unsafe { executable.run_at(sizes, inputs, outputs) }?;
            Ok(Some(executable.take_notes()))
        };
        let outcome = run();
        lock(&self.groups)[group].push(executable);
        outcome
    }

    /// An executable for these sizes that nobody else uses, and its group. Where there is code for them, nobody waits for
    /// what is made for others; where there is none, whoever comes while something is made waits, for it may be what they
    /// need.
    fn take(&self, sizes: &[Int]) -> Result<(usize, Executable), Diagnostic> {
        let place = match self.suited(sizes) {
            Some(place) => place,
            None => {
                let _one_at_a_time = lock(&self.making);
                self.suited(sizes).map_or_else(|| self.make(sizes), Ok)?
            }
        };
        let group = &mut lock(&self.groups)[place];
        let executable = group.pop().expect("one is never taken away");
        if group.is_empty() {
            group.push(executable.fork());
        }
        Ok((place, executable))
    }

    /// The first group that suits these sizes. Groups are only ever added, so that it stays the first.
    fn suited(&self, sizes: &[Int]) -> Option<usize> {
        let groups = lock(&self.groups);
        let suits = |group: &Group| group.last().is_some_and(|executable| executable.suits(sizes));
        let first = || groups.iter().position(suits).map(|place| (sizes.to_vec(), place)).ok_or(());
        self.choices.find_or_add(|known| known == sizes, first).ok().map(|place| *place)
    }

    /// Makes a group for these sizes. It takes over from the last one which sizes change, and so are no part of the code.
    /// The groups are not locked while it compiles; to be called by one thread at a time.
    fn make(&self, sizes: &[Int]) -> Result<usize, Diagnostic> {
        let last = lock(&self.groups).last().and_then(|group| group.last()).map(Executable::fork);
        let executable = match last {
            None => Executable::new(&self.program, sizes, self.dtype, self.backend, None),
            Some(mut executable) => {
                executable.prepare(sizes)?;
                executable
            }
        };
        let mut groups = lock(&self.groups);
        groups.push(vec![executable]);
        Ok(groups.len() - 1)
    }
}

/// The names of the sizes that are not fixed by the program.
pub fn free_names(program: &Program) -> Vec<String> {
    program.params.iter().filter(|param| param.kind == ParamKind::Free).map(|param| param.name.clone()).collect()
}

/// The sizes that are not fixed by the program, by name.
fn free_sizes(program: &Program, sizes: &[Int]) -> Vec<(String, Int)> {
    let free = program.params.iter().zip(sizes).filter(|(param, _)| param.kind == ParamKind::Free);
    free.map(|(param, size)| (param.name.clone(), size.clone())).collect()
}

/// How many sizes are remembered.
const RECENT: usize = 16;

/// What is behind a mutex stays whole when a holder panics: it is only read, pushed to and popped from.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Barrier, mpsc};
    use std::time::Duration;

    fn variant() -> Arc<Variant> {
        let text = "input x[N]; y[i] = sum[j] x[i] * x[j]";
        let resolved = gradix::syntax::parse(text).and_then(|ast| gradix::resolve(&ast, &[])).unwrap();
        Function::new(resolved).variant(Dtype::F64, Backend::Vm, Vec::new()).expect("the first one")
    }

    /// Runs at `N = size`, and gives the bits of the sum over `x = 0.1, 0.2, …`.
    fn bits(variant: &Variant, size: usize) -> Vec<u64> {
        let x: Vec<f64> = (1..=size).map(|i| i as f64 / 10.0).collect();
        let mut y = vec![0.0; size];
        // SAFETY: both arrays have `N` elements.
        unsafe { variant.run(&[Int::from(size)], Some(1), &[x.as_ptr()], &[y.as_mut_ptr()]) }.unwrap();
        y.into_iter().map(f64::to_bits).collect()
    }

    #[test]
    fn what_is_ready_does_not_wait_for_what_is_made() {
        let variant = variant();
        let expected = bits(&variant, 70);
        // As if another thread compiled.
        let making = lock(&variant.making);
        let (done, ready) = mpsc::channel();
        let (same, other) = (Arc::clone(&variant), Arc::clone(&variant));
        let other_done = done.clone();
        let threads = [
            std::thread::spawn(move || done.send((70, bits(&same, 70))).unwrap()),
            std::thread::spawn(move || other_done.send((0, bits(&other, 0))).unwrap()),
        ];
        assert_eq!(ready.recv_timeout(Duration::from_secs(60)).expect("it does not wait"), (70, expected));
        assert!(ready.try_recv().is_err(), "there is no code for an empty array");
        drop(making);
        assert_eq!(ready.recv_timeout(Duration::from_secs(60)).expect("it is made"), (0, Vec::new()));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn threads_that_need_the_same_code_make_it_once() {
        let sizes = [70, 0, 90, 3];
        let calls = |variant: &Variant| sizes.map(|size| bits(variant, size));
        let alone = variant();
        let expected = calls(&alone);
        let (shared, start) = (variant(), Barrier::new(8));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    assert_eq!(calls(&shared), expected);
                });
            }
        });
        assert_eq!(lock(&shared.groups).len(), lock(&alone.groups).len());
    }
}
