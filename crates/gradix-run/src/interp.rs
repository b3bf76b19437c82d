//! The oracle: evaluates a program directly, element by element, short and obvious.
//!
//! Named definitions are computed in order, each element once; those of a recurrence in the order that was proven for them,
//! level by level. Nested ones are computed where they are
//! first read and remembered, so that a branch that is not taken costs nothing. Every access is checked,
//! and every arithmetic operation is counted.

use crate::array::Array;
use crate::code::{Code, Linear, Node, Test, failed, holds, offset};
use crate::files::Dtype;
use crate::interrupt;
use gradix::Int;
use gradix::diagnostic::Diagnostic;
use gradix::domain::order::{Level, Stage, order};
use gradix::program::{Places, Program, TensorId, TensorKind, UnaryOp};
use gradix::scalar;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The most elements that one run may hold.
pub const MAX_ELEMENTS: usize = 1 << 28;

/// What a run gives.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The results in order.
    pub results: Vec<(String, Array)>,
    /// How many arithmetic operations on values were performed.
    pub operations: u64,
}

/// Evaluates the results. `sizes` has a value for every param, and `inputs` an array for every input.
pub fn interp(
    program: &Program,
    sizes: &[Int],
    inputs: &HashMap<String, Array>,
    dtype: Dtype,
) -> Result<Outcome, Diagnostic> {
    let (caller, stopped) = (thread::current(), AtomicBool::new(false));
    // Expressions may nest deeply, and the evaluator follows them by recursion.
    let run = || {
        let outcome = Machine::new(program, sizes, inputs, dtype, &stopped).and_then(Machine::run);
        caller.unpark();
        outcome
    };
    thread::scope(|scope| {
        let builder = thread::Builder::new().stack_size(STACK);
        let thread = builder.spawn_scoped(scope, run).map_err(|e| failed(format!("no thread can be started: {e}")))?;
        while interrupt::is_possible() && !thread.is_finished() {
            thread::park_timeout(interrupt::PERIOD);
            if interrupt::is_due() {
                stopped.store(true, Ordering::Relaxed);
            }
        }
        thread.join().unwrap_or_else(|_| Err(failed("the evaluation failed")))
    })
}

/// The memory for a recursion as deep as an expression may be.
pub(crate) const STACK: usize = 1 << 29;

/// Values of one definition's nodes at the point at hand.
#[derive(Default)]
struct Scratch {
    values: Vec<f64>,
    stamps: Vec<u64>,
    stamp: u64,
}

struct Machine<'a> {
    program: &'a Program,
    arrays: HashMap<TensorId, Array>,
    remembered: HashMap<TensorId, HashMap<Vec<i64>, f64>>,
    code: HashMap<TensorId, std::rc::Rc<Code>>,
    scratch: HashMap<TensorId, Scratch>,
    sizes: &'a [Int],
    dtype: Dtype,
    operations: u64,
    elements: usize,
    stopped: &'a AtomicBool,
}

impl<'a> Machine<'a> {
    fn new(
        program: &'a Program,
        sizes: &'a [Int],
        inputs: &HashMap<String, Array>,
        dtype: Dtype,
        stopped: &'a AtomicBool,
    ) -> Result<Self, Diagnostic> {
        let mut machine = Machine {
            program,
            arrays: HashMap::new(),
            remembered: HashMap::new(),
            code: HashMap::new(),
            scratch: HashMap::new(),
            sizes,
            dtype,
            operations: 0,
            elements: 0,
            stopped,
        };
        for id in program.inputs() {
            let name = &program[id].name;
            let array = inputs.get(name).ok_or_else(|| failed(format!("the input '{name}' is not given")))?;
            if array.shape != machine.shape(id)? {
                return Err(failed(format!("the input '{name}' has a shape that does not fit the sizes")));
            }
            let data = array.data.iter().map(|&v| dtype.round(v)).collect();
            machine.arrays.insert(id, Array { shape: array.shape.clone(), data });
        }
        Ok(machine)
    }

    fn run(mut self) -> Result<Outcome, Diagnostic> {
        for definition in &self.program.definitions {
            let code = Code::new(self.program, definition, self.sizes, self.dtype)?;
            self.code.insert(definition.tensor, std::rc::Rc::new(code));
            if self.program[definition.tensor].kind == TensorKind::Nested {
                self.remembered.insert(definition.tensor, HashMap::new());
                continue;
            }
            let shape = self.shape(definition.tensor)?;
            let data = vec![f64::NAN; shape.iter().product()];
            self.arrays.insert(definition.tensor, Array { shape, data });
        }
        let stages = order(self.program).map_err(|error| error.describe(self.program, &Places::default()))?;
        self.compute(&stages, &mut HashMap::new())?;
        let results = self.program.outputs.iter().map(|t| (self.program[*t].name.clone(), self.arrays[t].clone()));
        Ok(Outcome { results: results.collect(), operations: self.operations })
    }

    /// Computes stages in order; `fixed` has the indices, by definition, that levels around them give a value.
    fn compute(&mut self, stages: &[Stage], fixed: &mut HashMap<usize, Vec<(usize, usize)>>) -> Result<(), Diagnostic> {
        for stage in stages {
            match stage {
                Stage::Definition(number) => {
                    self.compute_elements(*number, fixed.get(number).map_or(&[], Vec::as_slice))?;
                }
                Stage::Level(Level { members, falling, stages, .. }) => {
                    let extent = |&(number, index): &(usize, usize)| {
                        self.arrays[&self.program.definitions[number].tensor].shape[index]
                    };
                    let steps = members.iter().map(extent).max().unwrap_or(0);
                    for step in 0..steps {
                        let value = if *falling { steps - 1 - step } else { step };
                        for &(number, index) in members {
                            fixed.entry(number).or_default().push((index, value));
                        }
                        self.compute(stages, fixed)?;
                        for (number, _) in members {
                            fixed.entry(*number).or_default().pop();
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Computes the elements of a definition at which these indices have these values.
    fn compute_elements(&mut self, number: usize, fixed: &[(usize, usize)]) -> Result<(), Diagnostic> {
        let tensor = self.program.definitions[number].tensor;
        let (code, shape) = (self.code[&tensor].clone(), self.arrays[&tensor].shape.clone());
        let mut ranges: Vec<(usize, usize)> = shape.iter().map(|&extent| (0, extent)).collect();
        for &(index, value) in fixed {
            ranges[index] = (value, (value + 1).min(shape[index]));
        }
        if ranges.iter().any(|(low, high)| low >= high) {
            return Ok(());
        }
        let mut point: Vec<i64> = ranges.iter().map(|&(low, _)| low as i64).collect();
        let count: usize = ranges.iter().map(|(low, high)| high - low).product();
        for _ in 0..count {
            let value = self.element(tensor, &code, &point)?;
            let place = offset(&point, &shape).ok_or_else(|| failed("an element is outside of its tensor"))?;
            self.arrays.get_mut(&tensor).expect("a named tensor").data[place] = value;
            for (position, &(low, high)) in point.iter_mut().zip(&ranges).rev() {
                *position += 1;
                if (*position as usize) < high {
                    break;
                }
                *position = low as i64;
            }
        }
        Ok(())
    }

    fn shape(&mut self, tensor: TensorId) -> Result<Vec<usize>, Diagnostic> {
        let too_large = || failed(format!("the arrays have more than {MAX_ELEMENTS} elements in all"));
        let mut shape = Vec::new();
        let mut count = 1usize;
        for extent in &self.program[tensor].extents {
            let extent = usize::try_from(Linear::new(extent, self.sizes)?.at(&[]).max(0)).map_err(|_| too_large())?;
            count = count.checked_mul(extent).ok_or_else(too_large)?;
            shape.push(extent);
        }
        self.elements = self.elements.saturating_add(count);
        if self.elements > MAX_ELEMENTS { Err(too_large()) } else { Ok(shape) }
    }

    /// The value of one element.
    fn element(&mut self, tensor: TensorId, code: &Code, outputs: &[i64]) -> Result<f64, Diagnostic> {
        let mut point = outputs.to_vec();
        let Some(op) = code.reduction else { return self.body(tensor, code, &point) };
        point.resize(code.indices.len(), 0);
        if let Some(combine) = op.combine() {
            let mut total = op.neutral();
            self.reduce(tensor, code, code.rank, &mut point, &mut |machine, value| {
                machine.operations += 1;
                total = machine.dtype.round(combine.apply(total, value));
            })?;
            return Ok(total);
        }
        let mut values = Vec::new();
        self.reduce(tensor, code, code.rank, &mut point, &mut |_, value| values.push(value))?;
        Ok(self.logsumexp(&values))
    }

    /// Each term is compared, subtracted from, taken to `exp`, and added; besides, the largest is tested, and there is a logarithm to add.
    fn logsumexp(&mut self, values: &[f64]) -> f64 {
        self.operations += 4 * values.len() as u64 + 4;
        let round = |value| self.dtype.round(value);
        let largest = values.iter().copied().fold(f64::NEG_INFINITY, scalar::max);
        if largest.is_infinite() {
            return largest;
        }
        let terms = values.iter().map(|&value| round(scalar::exp(round(value - largest))));
        let sum = terms.fold(0.0, |sum, term| round(sum + term));
        round(largest + round(scalar::log(sum)))
    }

    /// Takes the values of a reduction in order.
    fn reduce(
        &mut self,
        tensor: TensorId,
        code: &Code,
        depth: usize,
        point: &mut Vec<i64>,
        take: &mut dyn FnMut(&mut Self, f64),
    ) -> Result<(), Diagnostic> {
        if depth == code.indices.len() {
            if code.includes(point) {
                let value = self.body(tensor, code, point)?;
                take(self, value);
            }
            return Ok(());
        }
        for value in code.indices[depth].at(point) {
            point[depth] = i64::try_from(value).map_err(|_| failed("an index is too large"))?;
            self.reduce(tensor, code, depth + 1, point, take)?;
        }
        Ok(())
    }

    fn body(&mut self, tensor: TensorId, code: &Code, point: &[i64]) -> Result<f64, Diagnostic> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(interrupt::stopped());
        }
        let mut scratch = self.scratch.remove(&tensor).unwrap_or_default();
        scratch.values.resize(code.nodes.len(), 0.0);
        scratch.stamps.resize(code.nodes.len(), 0);
        scratch.stamp += 1;
        let value = self.node(code, code.nodes.len() - 1, point, &mut scratch);
        self.scratch.insert(tensor, scratch);
        value
    }

    fn node(&mut self, code: &Code, id: usize, point: &[i64], scratch: &mut Scratch) -> Result<f64, Diagnostic> {
        if scratch.stamps[id] == scratch.stamp {
            return Ok(scratch.values[id]);
        }
        let value = match &code.nodes[id] {
            Node::Constant(value) => *value,
            Node::Index(linear) => self.dtype.round(linear.at(point) as f64),
            Node::Access(tensor, subscripts) => self.read(*tensor, subscripts, point)?,
            Node::Unary(op, a) => {
                let a = self.node(code, *a, point, scratch)?;
                self.operations += u64::from(*op != UnaryOp::Stop);
                self.dtype.round(op.apply(a))
            }
            Node::Binary(op, a, b) => {
                let (a, b) = (self.node(code, *a, point, scratch)?, self.node(code, *b, point, scratch)?);
                self.operations += 1;
                self.dtype.round(op.apply(a, b))
            }
            Node::Select(test, a, b) => {
                let taken = if self.passes(test, code, point, scratch)? { *a } else { *b };
                self.node(code, taken, point, scratch)?
            }
        };
        scratch.stamps[id] = scratch.stamp;
        scratch.values[id] = value;
        Ok(value)
    }

    fn passes(&mut self, test: &Test, code: &Code, point: &[i64], scratch: &mut Scratch) -> Result<bool, Diagnostic> {
        Ok(match test {
            Test::Index(linear, relation) => holds(linear.at(point), *relation),
            Test::Compare(op, a, b) => {
                self.operations += 1;
                op.apply(self.node(code, *a, point, scratch)?, self.node(code, *b, point, scratch)?)
            }
            Test::Not(a) => !self.passes(a, code, point, scratch)?,
            Test::And(a, b) => self.passes(a, code, point, scratch)? && self.passes(b, code, point, scratch)?,
            Test::Or(a, b) => self.passes(a, code, point, scratch)? || self.passes(b, code, point, scratch)?,
        })
    }

    fn read(&mut self, tensor: TensorId, subscripts: &[Linear], point: &[i64]) -> Result<f64, Diagnostic> {
        let mut place = Vec::with_capacity(subscripts.len());
        for subscript in subscripts {
            place.push(i64::try_from(subscript.at(point)).map_err(|_| failed("a subscript is too large"))?);
        }
        if self.program[tensor].kind == TensorKind::Nested {
            if let Some(&value) = self.remembered[&tensor].get(&place) {
                return Ok(value);
            }
            let code = self.code[&tensor].clone();
            let value = self.element(tensor, &code, &place)?;
            self.elements += 1;
            if self.elements > MAX_ELEMENTS {
                return Err(failed(format!("more than {MAX_ELEMENTS} intermediate values are needed")));
            }
            self.remembered.get_mut(&tensor).expect("a nested tensor").insert(place, value);
            return Ok(value);
        }
        let array = &self.arrays[&tensor];
        let outside = || {
            let name = &self.program[tensor].name;
            failed(format!("'{name}' was read at {place:?}, outside its shape {:?}", array.shape))
        };
        offset(&place, &array.shape).map(|offset| array.data[offset]).ok_or_else(outside)
    }
}
