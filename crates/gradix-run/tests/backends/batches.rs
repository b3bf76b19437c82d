//! A batch at once is the same as one after the other: every program in `examples/` and its gradient, with all inputs or a
//! single one in a batch, stacks the bits of what the program gives for each, and the derivative of a batch is the batch of
//! derivatives.

use crate::common::*;
use crate::examples::{self, examples};
use gradix::Int;
use gradix::program::print;
use gradix::program::{Program, TensorId};
use gradix_run::{Array, gradient, random};

/// How many there are at once.
const COUNTS: [usize; 3] = [0, 1, 3];

#[test]
fn a_batch_stacks_the_bits_of_its_parts() {
    each_batch(|batch| {
        for count in COUNTS {
            let inputs = batch.inputs(count);
            let results = oracle(&batch.wide, &batch.sizes(count), &batch.stacked(&inputs));
            let single: Vec<Results> = inputs.iter().map(|own| oracle(batch.program, batch.own_sizes, own)).collect();
            let all = oracle(batch.program, batch.own_sizes, &batch.own_inputs(0));
            for (result, (name, array)) in results.iter().enumerate() {
                let parts: Vec<&Array> = single.iter().map(|results| &results[result].1).collect();
                let expected = match array.shape.len() == all[result].1.shape.len() {
                    true => all[result].1.clone(),
                    false => stack(&all[result].1.shape, &parts),
                };
                let bits = |array: &Array| array.data.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                assert_eq!(array.shape, expected.shape, "{}: {name}", batch.name);
                assert_eq!(bits(array), bits(&expected), "{}: {name} of {count}", batch.name);
            }
        }
    });
}

#[test]
fn a_batch_comes_back_equal_from_its_text() {
    each_batch(|batch| {
        let text = print::print(&batch.wide).unwrap();
        assert_eq!(resolve(&text).program, batch.wide, "{}: {text}", batch.name);
    });
}

/// Where an argument is not in the batch, all of it contributes to the derivative.
#[test]
fn the_derivative_of_a_batch_is_the_batch_of_derivatives() {
    const COUNT: usize = 3;
    each_batch(|batch| {
        if batch.is_derivative {
            return;
        }
        let derivative = gradix::derive(batch.program, &Default::default()).unwrap();
        let wide = gradix::derive(&batch.wide, &Default::default()).unwrap();
        let sizes = gradient::carried(batch.program, batch.own_sizes, &derivative.program).unwrap();
        let wide_sizes = gradient::carried(&batch.wide, &batch.sizes(COUNT), &wide.program).unwrap();
        let is_wide = |tensor: TensorId| batch.wide[tensor].rank > batch.program[tensor].rank;
        // What does not depend on the batch would count once, and not for each.
        let still = derivative.seeds.iter().filter(|seed| !is_wide(seed.of));
        let still: Vec<&String> = still.map(|seed| &seed.name).collect();
        let at = |number: usize| {
            let mut own = batch.own_inputs(number);
            for id in derivative.program.inputs() {
                let name = &derivative.program[id].name;
                let shape = gradient::shape(&derivative.program, &sizes, id).unwrap();
                own.entry(name.clone()).or_insert_with(|| match still.contains(&name) {
                    true => Array::zeros(shape).unwrap(),
                    false => random::array(number as u64, name, shape).unwrap(),
                });
            }
            own
        };
        let inputs: Vec<Arrays> = (0..COUNT).map(at).collect();
        let stacked = wide.program.inputs().map(|id| {
            let name = wide.program[id].name.clone();
            let parts: Vec<&Array> = inputs.iter().map(|own| &own[&name]).collect();
            let is_wide = wide.program[id].rank > parts[0].shape.len();
            let array = if is_wide { stack(&parts[0].shape, &parts) } else { parts[0].clone() };
            (name, array)
        });
        let results = oracle(&wide.program, &wide_sizes, &stacked.collect());
        let single: Vec<Results> = inputs.iter().map(|own| oracle(&derivative.program, &sizes, own)).collect();
        let expected = (0..results.len()).map(|result| {
            let parts: Vec<&Array> = single.iter().map(|results| &results[result].1).collect();
            let is_wide = results[result].1.shape.len() > parts[0].shape.len();
            let array = if is_wide { stack(&parts[0].shape, &parts) } else { sum(&parts) };
            (single[0][result].0.clone(), array)
        });
        let difference = difference(&results, &expected.collect(), 1e-11);
        assert_eq!(difference, None, "{}", batch.name);
    });
}

/// A program, and the same for a batch of some of its inputs.
struct Batch<'a> {
    name: String,
    is_derivative: bool,
    program: &'a Program,
    own_sizes: &'a [Int],
    batched: Vec<TensorId>,
    wide: Program,
}

impl Batch<'_> {
    fn sizes(&self, count: usize) -> Vec<Int> {
        let names = self.program.params.iter().map(|param| param.name.clone());
        let numbers = self.own_sizes.iter().map(|size| i64::try_from(size).unwrap());
        let new = free(&self.wide).into_iter().find(|name| !free(self.program).contains(name)).unwrap();
        let given: Vec<(String, i64)> = names.zip(numbers).chain([(new, count as i64)]).collect();
        sized(&self.wide, &given).unwrap()
    }

    /// Inputs of the program: the same in all parts of a batch, unless they are what it is a batch of.
    fn own_inputs(&self, number: usize) -> Arrays {
        let is_batched = |name: &str| self.batched.iter().any(|tensor| self.program[*tensor].name == name);
        filled(self.program, self.own_sizes, |name, shape| {
            random::array(if is_batched(name) { 10 + number as u64 } else { 4 }, name, shape).unwrap()
        })
    }

    fn inputs(&self, count: usize) -> Vec<Arrays> {
        (0..count).map(|number| self.own_inputs(number)).collect()
    }

    fn stacked(&self, inputs: &[Arrays]) -> Arrays {
        let mut stacked = self.own_inputs(0);
        for name in self.batched.iter().map(|tensor| &self.program[*tensor].name) {
            let parts: Vec<&Array> = inputs.iter().map(|own| &own[name]).collect();
            stacked.insert(name.clone(), stack(&stacked[name].shape, &parts));
        }
        stacked
    }
}

/// All examples and their gradients, with all inputs in a batch and with each one alone.
fn each_batch(check: impl Fn(Batch)) {
    for (example, text) in examples() {
        let resolved = resolve(&text);
        let given = examples::sizes(&resolved).pop().unwrap();
        let derivative = gradix::derive(&resolved.program, &Default::default()).unwrap().program;
        for (is_derivative, program) in [(false, &resolved.program), (true, &derivative)] {
            let own_sizes = &sized(program, &given).unwrap();
            let all: Vec<TensorId> = program.inputs().collect();
            for batched in std::iter::once(all.clone()).chain(all.iter().map(|input| vec![*input])) {
                let of = if is_derivative { "the gradient of " } else { "" };
                let names: Vec<&str> = batched.iter().map(|tensor| program[*tensor].name.as_str()).collect();
                let name = format!("{of}{example} by {}", names.join(", "));
                let wide = gradix::batch(program, &batched);
                check(Batch { name, is_derivative, program, own_sizes, batched, wide });
            }
        }
    }
}

/// Arrays of this shape along a new first dimension.
fn stack(shape: &[usize], parts: &[&Array]) -> Array {
    let data = parts.iter().flat_map(|part| part.data.iter().copied()).collect();
    Array::new([&[parts.len()], shape].concat(), data)
}

fn sum(parts: &[&Array]) -> Array {
    let mut total = parts[0].clone();
    for part in &parts[1..] {
        total.data.iter_mut().zip(&part.data).for_each(|(sum, value)| *sum += value);
    }
    total
}
