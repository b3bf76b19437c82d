//! Any box of a derivative can be computed alone, and is that part of the whole: of every program in `examples/`, a
//! random box of each derivative, none of it and all of it.
//!
//! The reference gives the same bits. The others have another schedule for the part than for the whole, which may add up
//! in another order; they are held to the reference with the tolerance of the other tests.

use crate::common::*;
use crate::examples::{self, examples};
use gradix::Int;
use gradix::program::{Program, TensorId};
use gradix_run::{Array, Backend, Dtype, gradient, interp};
use std::ops::Range;

#[test]
fn a_part_of_a_derivative_has_the_bits_of_the_whole() {
    each_part(0..3, |subject| {
        for (dtype, whole) in [(Dtype::F64, subject.whole), (Dtype::F32, subject.single)] {
            let part = interp(&subject.part, subject.sizes, subject.inputs, dtype).unwrap().results;
            let expected = subject.cut(whole);
            let bits = |array: &Array| array.data.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            assert_eq!(part.len(), 1);
            assert_eq!(part[0].1.shape, expected.shape, "{}", subject.name);
            assert_eq!(bits(&part[0].1), bits(&expected), "{} ({dtype:?})", subject.name);
        }
    });
}

#[test]
fn a_part_on_the_virtual_machine_is_near_that_of_the_whole() {
    each_part(0..3, |subject| {
        subject.agrees(Dtype::F64, (Backend::Vm, Compiling::Usual), 1e-11);
        subject.agrees(Dtype::F32, (Backend::Vm, Compiling::Usual), 2e-4);
    });
}

#[test]
fn a_compiled_part_is_near_that_of_the_whole() {
    if has_native() {
        each_part(0..1, |subject| subject.agrees(Dtype::F64, (Backend::Native, Compiling::Quick), 1e-11));
    }
}

#[test]
fn a_compiled_part_in_single_precision_is_near_that_of_the_whole() {
    if has_native() {
        each_part(0..1, |subject| subject.agrees(Dtype::F32, (Backend::Native, Compiling::Quick), 2e-4));
    }
}

/// A part of a derivative, with what it takes to compute it.
struct Part<'a> {
    name: String,
    sizes: &'a [Int],
    inputs: &'a Arrays,
    /// What the reference says about the whole.
    whole: &'a Results,
    /// The same in single precision.
    single: &'a Results,
    result: usize,
    ranges: Vec<Range<usize>>,
    part: Program,
}

impl Part<'_> {
    /// The same part of the result.
    fn cut(&self, results: &Results) -> Array {
        let whole = &results[self.result].1;
        let mut data = Vec::new();
        let mut index: Vec<usize> = self.ranges.iter().map(|range| range.start).collect();
        let mut left = self.ranges.iter().map(|range| range.len()).product::<usize>();
        while left > 0 {
            data.push(whole.data[index.iter().zip(&whole.shape).fold(0, |offset, (i, extent)| offset * extent + i)]);
            left -= 1;
            for (place, range) in index.iter_mut().zip(&self.ranges).rev() {
                *place += 1;
                if *place < range.end {
                    break;
                }
                *place = range.start;
            }
        }
        Array { shape: self.ranges.iter().map(|range| range.len()).collect(), data }
    }

    fn agrees(&self, dtype: Dtype, how: (Backend, Compiling), tolerance: f64) {
        let assumed = estimate(&self.part, examples::ASSUMED);
        let mut subject = Subject::new(&self.name, &self.part, &assumed, dtype, how, 2);
        let expected = vec![(self.whole[self.result].0.clone(), self.cut(self.whole))];
        subject.agrees(self.sizes, self.inputs, &expected, tolerance);
    }
}

/// Parts of each derivative of each example: a random box, nothing, and all of it, as far as they are asked for.
fn each_part(kinds: Range<usize>, check: impl Fn(Part)) {
    let mut filled = 0;
    for (name, text) in examples() {
        let resolved = resolve(&text);
        let program = gradix::derive(&resolved.program, &Default::default()).unwrap().program;
        let [.., odd, smallest] = &examples::sizes(&resolved)[..] else { panic!("{name} has no sizes") };
        let sizes = sized(&program, odd).or_else(|| sized(&program, smallest)).unwrap();
        let inputs = single_inputs(&program, &sizes);
        let whole = oracle(&program, &sizes, &inputs);
        let single = interp(&program, &sizes, &inputs, Dtype::F32).unwrap().results;
        for (result, &tensor) in program.outputs.iter().enumerate() {
            let kinds = if program[tensor].rank == 0 { 0..1 } else { kinds.clone() };
            for kind in kinds {
                let ranges = ranges(&program, &sizes, tensor, kind);
                let name = format!("{name}: {}{ranges:?}", program[tensor].name);
                let asked: Vec<_> = ranges.iter().map(|range| Some(range.start as u64..range.end as u64)).collect();
                let part = gradix::restrict(&program, &program[tensor].name, &asked);
                let part = part.unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
                let (sizes, inputs, whole, single) = (&sizes[..], &inputs, &whole, &single);
                assert_eq!(part.params, program.params, "{name}");
                filled += usize::from(ranges.iter().all(|range| !range.is_empty()));
                check(Part { name, sizes, inputs, whole, single, result, ranges, part });
            }
        }
    }
    assert!(filled > 100);
}

fn ranges(program: &Program, sizes: &[Int], tensor: TensorId, kind: usize) -> Vec<Range<usize>> {
    let shape = gradient::shape(program, sizes, tensor).unwrap();
    let numbers = gradix_run::random::array(5, &program[tensor].name, vec![2 * shape.len()]).unwrap().data;
    let below = |number: f64, limit: usize| ((number + 1.0) / 2.0 * limit as f64) as usize % limit;
    let random = |(dimension, &extent): (usize, &usize)| {
        let first = below(numbers[2 * dimension], extent.max(1));
        first..first + below(numbers[2 * dimension + 1], (extent - first).max(1)) + extent.min(1)
    };
    match kind {
        0 => shape.iter().enumerate().map(random).collect(),
        1 => shape.iter().map(|extent| extent / 2..extent / 2).collect(),
        _ => shape.iter().map(|&extent| 0..extent).collect(),
    }
}
