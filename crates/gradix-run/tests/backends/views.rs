//! Programs on views of larger arrays: every program in `examples/` with its gradient, all inputs at random strides, gives
//! what it gives for dense arrays.
//!
//! The views lie right before or right after memory that can't be touched, and what lies between their elements is not a
//! number: code that reads what the program does not read fails.
#![allow(
    unsafe_code,
    reason = "memory that can't be touched comes from the system; arrays are given by where they start"
)]

use crate::common::*;
use crate::examples::{self, examples};
use gradix::derive::Options;
use gradix::domain::sizes::{Known, bind};
use gradix::program::Places;
use gradix::program::{Program, TensorId};
use gradix::{Int, Layout};
use gradix_run::{Array, Backend, Element, gradient, random, strided};

#[test]
fn stored_examples_have_the_bits_of_dense_ones() {
    each_example(|subject| {
        let storage = subject.views.iter().map(|view| (subject.program[view.tensor].name.clone(), view.storage()));
        let results = oracle(&subject.stored, &subject.stored_sizes(), &storage.collect());
        let bits = |results: &Results| -> Vec<u64> {
            results.iter().flat_map(|(_, array)| array.data.iter().map(|value| value.to_bits())).collect()
        };
        assert_eq!(bits(&results), bits(&subject.expected), "{}", subject.name);
    });
}

#[test]
fn stored_examples_on_the_virtual_machine_touch_nothing_else() {
    each_example(|subject| {
        subject.agrees::<f64>((Backend::Vm, Compiling::Usual), 1e-11);
        subject.agrees::<f32>((Backend::Vm, Compiling::Usual), 2e-4);
    });
}

/// Compilers are slow: a third of the examples in double precision, a third in single.
#[test]
fn compiled_examples_that_are_stored_touch_nothing_else() {
    if has_native() {
        each_example(|subject| match third(&subject.name) {
            0 => subject.agrees::<f64>((Backend::Native, Compiling::Quick), 1e-11),
            1 => subject.agrees::<f32>((Backend::Native, Compiling::Quick), 2e-4),
            _ => {}
        });
    }
}

/// The code then relies on small sizes, and where there is little to do it is plain loops.
#[test]
fn stored_examples_that_are_prepared_for_their_sizes_touch_nothing_else() {
    each_example(|subject| {
        let sizes = subject.stored_sizes();
        subject.agrees_when_made_for::<f64>(&sizes, (Backend::Vm, Compiling::Usual), 1e-11);
        if has_native() && third(&subject.name) == 2 {
            subject.agrees_when_made_for::<f64>(&sizes, (Backend::Native, Compiling::Usual), 1e-11);
        }
    });
}

/// In which third of the examples one is.
fn third(name: &str) -> u32 {
    name.bytes().map(u32::from).sum::<u32>() % 3
}

/// Contractions that copy arguments into another order first, at sizes that fill their tiles.
#[test]
fn copies_of_arguments_hold_what_is_read() {
    let text = "input x[N, K], w[M, K], v[K]
        y[i, j] = sum[k] x[i, k] * w[j, k]
        z[i, j] = max[k] x[k, i] * w[j, k] * v[k]";
    let resolved = resolve(text);
    let sizes = estimate(&resolved.program, examples::ASSUMED);
    let nest =
        gradix::compile(&resolved.program, &sizes, gradix::nest::Real::F64, &gradix::target::AVX512).unwrap().nest;
    assert!(gradix::emit::c(&nest, gradix::emit::Real::F64).contains("w_b["), "nothing is copied");
    let sizes = ["N", "K", "M"].into_iter().zip([67, 67, 90]).map(|(name, size)| (name.to_string(), size));
    for seed in 0..8 {
        let subject =
            Stored::random(format!("copies {seed}"), &resolved.program, &sizes.clone().collect::<Vec<_>>(), seed);
        for &backend in backends() {
            subject.agrees::<f64>((backend, Compiling::Quick), 1e-11);
            subject.agrees::<f32>((backend, Compiling::Quick), 2e-4);
        }
    }
}

/// Nothing of an empty view is there, and its storage has whatever extents will do.
#[test]
fn empty_views_are_not_touched() {
    let text = "param N, M\ninput x[N, M], w[M]
        y[i] = sum[j] x[i, j] * w[j]
        s[j] = max[i] x[i, j] / w[j]";
    let program = resolve(text).program;
    let layouts = [vec![vec![(1, 1)], vec![(0, -1)]], vec![vec![(0, -2)], vec![]]];
    for (n, m) in [(0, 3), (3, 0), (0, 0), (2, 3)] {
        let sizes = sized(&program, &[("N".to_string(), n), ("M".to_string(), m)]).unwrap();
        let views = program.inputs().zip(&layouts).map(|(tensor, dimensions)| {
            let shape = gradient::shape(&program, &sizes, tensor).unwrap();
            let layout = Layout { dimensions: dimensions.clone() };
            let extents = layout.extents(&shape);
            let length = if shape.contains(&0) { 0 } else { extents.iter().product() };
            let dense = Array::new(shape.clone(), vec![0.5; shape.iter().product()]);
            View { tensor, layout, extents, memory: vec![0.5; length], dense, strides: Vec::new() }
        });
        let stored = Stored::new(format!("empty {n} {m}"), &program, sizes.clone(), views.collect());
        for &backend in backends() {
            stored.agrees::<f64>((backend, Compiling::Quick), 1e-11);
        }
    }
}

/// A view of memory that holds nothing else.
struct View {
    tensor: TensorId,
    /// For messages.
    strides: Vec<isize>,
    layout: Layout,
    /// The extents of the storage.
    extents: Vec<usize>,
    /// From the first byte of the view to the last.
    memory: Vec<f64>,
    dense: Array,
}

impl View {
    /// Dimensions in any order, with gaps, steps and directions, some of them broadcast or overlapping.
    fn random(program: &Program, tensor: TensorId, shape: Vec<usize>, random: &mut Random) -> View {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        (1..order.len()).for_each(|place| order.swap(place, random.below(place + 1)));
        let mut strides = vec![0; shape.len()];
        let (mut unit, mut last) = (1 + random.below(2) * random.below(3), 0);
        for j in order {
            let (step, gap, kind) = (1 + random.below(2) * random.below(3), random.below(3), random.below(12));
            let stride = match kind {
                0 => 0,
                1 => last,
                _ => unit * step,
            };
            unit = unit.max(stride) * (step * shape[j].saturating_sub(1) + 1 + gap);
            last = stride;
            strides[j] = if random.below(4) == 0 { -(stride as isize) } else { stride as isize };
        }
        let (layout, extents, start) = strided::layout(&shape, &strides).unwrap_or_else(|| {
            let dimensions = (0..shape.len()).map(|j| vec![(j, 1)]).collect();
            (Layout { dimensions }, shape.clone(), 0)
        });
        let reach = |(n, s): (&usize, &isize)| n.saturating_sub(1) * s.unsigned_abs();
        let length: usize =
            if shape.contains(&0) { 0 } else { shape.iter().zip(&strides).map(reach).sum::<usize>() + 1 };
        let numbers = random::array(random.below(1000) as u64, &program[tensor].name, vec![length]).unwrap().data;
        let mut memory = vec![f64::NAN; length];
        let mut data = Vec::new();
        for place in places(&shape, &strides) {
            let place = (place - start) as usize;
            memory[place] = f64::from(numbers[place] as f32);
            data.push(memory[place]);
        }
        let dense = Array::new(shape, data);
        View { tensor, strides, layout, extents, memory, dense }
    }

    /// All of the storage; what is not there is not a number.
    fn storage(&self) -> Array {
        let mut data = self.memory.clone();
        data.resize(self.extents.iter().product::<usize>().max(data.len()), f64::NAN);
        data.truncate(self.extents.iter().product());
        Array::new(self.extents.clone(), data)
    }
}

/// Where each element lies, from element 0.
fn places(shape: &[usize], strides: &[isize]) -> Vec<isize> {
    let mut places = vec![0];
    for (&length, &stride) in shape.iter().zip(strides) {
        places = places.iter().flat_map(|place| (0..length as isize).map(move |i| place + i * stride)).collect();
    }
    places
}

/// A program with views for all of its inputs.
struct Stored<'a> {
    name: String,
    program: &'a Program,
    stored: Program,
    sizes: Vec<Int>,
    views: Vec<View>,
    /// What the reference gives for dense arrays.
    expected: Results,
}

impl<'a> Stored<'a> {
    fn new(name: String, program: &'a Program, sizes: Vec<Int>, views: Vec<View>) -> Stored<'a> {
        let layouts: Vec<(TensorId, Layout)> = views.iter().map(|view| (view.tensor, view.layout.clone())).collect();
        let stored = gradix::store(program, &layouts);
        let dense = views.iter().map(|view| (program[view.tensor].name.clone(), view.dense.clone())).collect();
        let expected = oracle(program, &sizes, &dense);
        Stored { name, program, stored, sizes, views, expected }
    }

    /// With random strides.
    fn random(name: String, program: &'a Program, given: &[(String, i64)], seed: usize) -> Stored<'a> {
        let sizes = sized(program, given).unwrap();
        let mut random = Random(seed as u64);
        let shape = |tensor| gradient::shape(program, &sizes, tensor).unwrap();
        let views = program.inputs().map(|tensor| View::random(program, tensor, shape(tensor), &mut random)).collect();
        Stored::new(name, program, sizes, views)
    }

    fn stored_sizes(&self) -> Vec<Int> {
        let given = self.program.params.iter().zip(&self.sizes);
        let given = given.map(|(param, size)| (param.name.clone(), size.clone())).collect();
        let shapes = self.views.iter().map(|view| {
            let name = &self.program[view.tensor].name;
            (self.stored.tensor(name).unwrap(), view.extents.clone())
        });
        let known = Known { given, shapes: shapes.collect() };
        let bound = bind(&self.stored, &known, &Places::default());
        bound.unwrap_or_else(|errors| panic!("{}: {errors:?}", self.name))
    }

    /// Prepared for large sizes, and run at its own.
    fn agrees<T: Element>(&self, how: (Backend, Compiling), tolerance: f64) {
        self.agrees_when_made_for::<T>(&estimate(&self.stored, examples::ASSUMED), how, tolerance);
    }

    fn agrees_when_made_for<T: Element>(&self, estimate: &[Int], how: (Backend, Compiling), tolerance: f64) {
        // What was run last when a process ends for touching what it must not.
        println!("{} ({how:?}, {:?})", self.name, T::DTYPE);
        let mut subject = Subject::new(&self.name, &self.stored, estimate, T::DTYPE, how, 2);
        let sizes = self.stored_sizes();
        for end in [Edge::First, Edge::Last] {
            let memory: Vec<Fenced<T>> = self.views.iter().map(|view| Fenced::new(&view.memory, end)).collect();
            let inputs: Vec<*const T> = memory.iter().map(|memory| memory.start).collect();
            let shapes = self.expected.iter().map(|(_, array)| array.data.len());
            let mut results: Vec<Vec<T>> = shapes.map(|length| vec![T::from_f64(0.0); length]).collect();
            let outputs: Vec<*mut T> = results.iter_mut().map(|result| result.as_mut_ptr()).collect();
            // SAFETY: the views are all there, and the outputs have room.
            unsafe { subject.executable.run_at(&sizes, &inputs, &outputs) }.unwrap();
            assert_eq!(subject.executable.take_notes(), [], "{}", self.name);
            assert_eq!(subject.executable.backend(), how.0, "{}", self.name);
            let arrays = results.iter().zip(&self.expected).map(|(data, (name, array))| {
                let data = data.iter().map(|value| value.to_f64()).collect();
                (name.clone(), Array::new(array.shape.clone(), data))
            });
            let difference = difference(&arrays.collect(), &self.expected, tolerance);
            let strides: Vec<&Vec<isize>> = self.views.iter().map(|view| &view.strides).collect();
            assert_eq!(difference, None, "{} at strides {strides:?}", self.name);
        }
    }
}

/// Each example with its gradient, at odd sizes and random strides.
fn each_example(check: impl Fn(Stored)) {
    for (seed, (name, text)) in examples().into_iter().enumerate() {
        let resolved = resolve(&text);
        let program =
            gradix::derive(&resolved.program, &Options { with_results: true, ..Options::default() }).unwrap().program;
        let [.., odd, smallest] = &examples::sizes(&resolved)[..] else { panic!("{name} has no sizes") };
        let given = if sized(&program, odd).is_some() { odd } else { smallest };
        check(Stored::random(name, &program, given, seed));
    }
}

/// Numbers that follow from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// At which end of some numbers the memory begins that can't be touched.
#[derive(Clone, Copy, PartialEq)]
enum Edge {
    First,
    Last,
}

/// Numbers that lie beside memory that can't be touched.
struct Fenced<T> {
    start: *const T,
    mapped: (*mut u8, usize),
}

/// A multiple of the page size of every system that tests run on.
const PAGE: usize = 1 << 16;

mod system {
    unsafe extern "C" {
        pub fn mmap(start: *mut u8, bytes: usize, access: i32, flags: i32, file: i32, offset: i64) -> *mut u8;
        pub fn mprotect(start: *mut u8, bytes: usize, access: i32) -> i32;
        pub fn munmap(start: *mut u8, bytes: usize) -> i32;
    }
}

impl<T: Element> Fenced<T> {
    fn new(numbers: &[f64], edge: Edge) -> Self {
        const READ_AND_WRITE: i32 = 3;
        const PRIVATE_AND_ANONYMOUS: i32 = 0x22;
        let bytes = size_of_val(numbers) / size_of::<f64>() * size_of::<T>();
        let inner = bytes.next_multiple_of(PAGE);
        let whole = inner + 2 * PAGE;
        // SAFETY: new memory, of which the first and the last page are closed; the numbers lie between them.
        unsafe {
            let mapped = system::mmap(std::ptr::null_mut(), whole, READ_AND_WRITE, PRIVATE_AND_ANONYMOUS, -1, 0);
            assert_ne!(mapped as isize, -1);
            assert_eq!(system::mprotect(mapped, PAGE, 0), 0);
            assert_eq!(system::mprotect(mapped.add(PAGE + inner), PAGE, 0), 0);
            let start = mapped.add(if edge == Edge::First { PAGE } else { PAGE + inner - bytes }).cast::<T>();
            numbers.iter().enumerate().for_each(|(place, number)| start.add(place).write(T::from_f64(*number)));
            Fenced { start, mapped: (mapped, whole) }
        }
    }
}

impl<T> Drop for Fenced<T> {
    fn drop(&mut self) {
        // SAFETY: it was mapped as a whole, and nothing refers to it any more.
        unsafe { system::munmap(self.mapped.0, self.mapped.1) };
    }
}
