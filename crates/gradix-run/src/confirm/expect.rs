//! What every element of a derivative should be at certain data, found by way of a [`trace`].

use super::Subject;
use super::tape::{Slope, Value};
use super::trace::{Coverage, Halt, Meter, Trace, trace};
use crate::array::Array;
use crate::gradient::{carried, shape};
use gradix::Int;
use gradix::derive::{Mode, SeedInput};
use gradix::program::TensorId;
use std::collections::HashMap;

/// One result of a derivative program.
pub struct Expected {
    pub shape: Vec<usize>,
    pub slopes: Vec<Slope>,
}

/// All results, in order.
#[derive(Default)]
pub struct Expectation {
    pub results: Vec<Expected>,
    /// Whether some comparison of values was so close that rounding decides it.
    pub delicate: bool,
    /// Whether something in the function is not finite.
    pub infinite: bool,
    /// What of the function was evaluated.
    pub coverage: Vec<Coverage>,
}

impl Expectation {
    /// How many elements can't be judged.
    pub fn doubtful(&self) -> usize {
        self.results.iter().flat_map(|result| &result.slopes).filter(|slope| slope.doubtful).count()
    }

    fn note(&mut self, trace: &Trace) {
        self.delicate |= trace.tape.delicate;
        self.infinite |= trace.tape.infinite;
        self.coverage.push(trace.coverage.clone());
    }
}

/// The results of the derivative at these sizes and data.
pub fn expect(
    subject: &Subject,
    sizes: &[Int],
    data: &HashMap<String, Array>,
    meter: &mut Meter,
) -> Result<Expectation, Halt> {
    if subject.options.mode == Mode::Hessian {
        return hessian(subject, sizes, data, meter);
    }
    let trace = trace(subject.program, sizes, data, &subject.derived.wrt, meter)?;
    let mut expectation = Expectation::default();
    expectation.note(&trace);
    expectation.results = match subject.options.mode {
        Mode::Reverse => reverse(subject, sizes, data, &trace),
        Mode::Forward => forward(subject, sizes, data, &trace),
        Mode::Jacobian | Mode::Hessian => jacobian(subject, sizes, &trace, meter)?,
    };
    Ok(expectation)
}

fn reverse(subject: &Subject, sizes: &[Int], data: &HashMap<String, Array>, trace: &Trace) -> Vec<Expected> {
    let seeds = seeded(subject, data, trace);
    let value = |&f: &TensorId| {
        let slopes = trace.elements(f).iter().map(|value| Slope::exact(value.number)).collect();
        Expected { shape: subject.shape(sizes, f), slopes }
    };
    let results = subject.derived.of.iter().filter(|_| subject.options.with_results).map(value);
    let by = |&x: &TensorId| Expected {
        shape: subject.shape(sizes, x),
        slopes: trace.tape.scatter(&seeds, trace.elements(x)),
    };
    results.chain(subject.derived.wrt.iter().map(by)).collect()
}

fn forward(subject: &Subject, sizes: &[Int], data: &HashMap<String, Array>, trace: &Trace) -> Vec<Expected> {
    let tangents = seeded(subject, data, trace);
    let of = |&f: &TensorId| Expected {
        shape: subject.shape(sizes, f),
        slopes: trace.tape.push(&tangents, trace.elements(f)),
    };
    subject.derived.of.iter().map(of).collect()
}

/// The elements that have an upstream derivative or a tangent, each with it.
fn seeded(subject: &Subject, data: &HashMap<String, Array>, trace: &Trace) -> Vec<(Value, f64)> {
    let pairs = |seed: &SeedInput| trace.elements(seed.of).iter().copied().zip(data[&seed.name].data.clone());
    subject.derived.seeds.iter().flat_map(pairs).collect()
}

fn jacobian(subject: &Subject, sizes: &[Int], trace: &Trace, meter: &mut Meter) -> Result<Vec<Expected>, Halt> {
    let wanted: Vec<_> =
        subject.derived.wrt.iter().map(|&x| (subject.shape(sizes, x), trace.elements(x).to_vec())).collect();
    let mut results = Vec::new();
    for &f in &subject.derived.of {
        results.extend(rows(trace, (subject.shape(sizes, f), trace.elements(f)), &wanted, meter)?);
    }
    Ok(results)
}

/// `∂result[α]/∂x[β]` for each `x` of `wanted`: one scatter for each `α`.
fn rows(
    trace: &Trace,
    (shape, result): (Vec<usize>, &[Value]),
    wanted: &[(Vec<usize>, Vec<Value>)],
    meter: &mut Meter,
) -> Result<Vec<Expected>, Halt> {
    let joined = |own: &[usize]| shape.iter().chain(own).copied().collect();
    let mut blocks: Vec<Expected> =
        wanted.iter().map(|(own, _)| Expected { shape: joined(own), slopes: Vec::new() }).collect();
    let all: Vec<Value> = wanted.iter().flat_map(|(_, elements)| elements.iter().copied()).collect();
    for &element in result {
        meter.spend(trace.tape.len() + all.len())?;
        let row = trace.tape.scatter(&[(element, 1.0)], &all);
        let mut rest = row.as_slice();
        for (block, (_, elements)) in blocks.iter_mut().zip(wanted) {
            let (own, others) = rest.split_at(elements.len());
            block.slopes.extend(own);
            rest = others;
        }
    }
    Ok(blocks)
}

/// The Jacobian of the gradient of each result: what the gradient reads and how is found by tracing it, too.
fn hessian(
    subject: &Subject,
    sizes: &[Int],
    data: &HashMap<String, Array>,
    meter: &mut Meter,
) -> Result<Expectation, Halt> {
    let derived = subject.gradient.as_ref().expect("a Hessian comes with a gradient");
    let gradient = &derived.program;
    let own = carried(subject.program, sizes, gradient).map_err(|mut errors| errors.swap_remove(0))?;
    let named = |x: TensorId| gradient.tensor(&subject.program[x].name);
    let arguments: Vec<TensorId> = derived.wrt.iter().filter_map(|&x| named(x)).collect();
    let mut expectation = Expectation::default();
    for f in &derived.of {
        let mut data = data.clone();
        let seed = |seed: &SeedInput| Array::scalar(if seed.of == *f { 1.0 } else { 0.0 });
        data.extend(derived.seeds.iter().map(|one| (one.name.clone(), seed(one))));
        let trace = trace(gradient, &own, &data, &arguments, meter)?;
        expectation.note(&trace);
        // An argument that the gradient does not read is none of its inputs.
        let elements = |x: TensorId| match named(x) {
            Some(id) => trace.elements(id).to_vec(),
            None => vec![Value::constant(0.0); subject.shape(sizes, x).iter().product()],
        };
        let wanted: Vec<_> = derived.wrt.iter().map(|&y| (subject.shape(sizes, y), elements(y))).collect();
        for &dx in &gradient.outputs {
            let shape = shape(gradient, &own, dx).ok_or(Halt::Work)?;
            expectation.results.extend(rows(&trace, (shape, trace.elements(dx)), &wanted, meter)?);
        }
    }
    Ok(expectation)
}
