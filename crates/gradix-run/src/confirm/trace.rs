//! A program evaluated point by point, with a record of every computation.
//!
//! Nothing is asked about index sets: ranges are run through, conditions are tested, and every access adds to
//! whatever element it happens to read.

use super::tape::{Tape, Value};
use crate::array::Array;
use crate::code::{Code, Linear, Node, Test, failed, holds, offset};
use crate::files::Dtype;
use crate::gradient::shape;
use gradix::Int;
use gradix::diagnostic::Diagnostic;
use gradix::program::{Program, TensorId, TensorKind, circles};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Why an evaluation stopped.
pub enum Halt {
    /// It is more work than there should be.
    Work,
    /// It can't be carried out.
    Failed,
}

impl From<Diagnostic> for Halt {
    fn from(_: Diagnostic) -> Self {
        Halt::Failed
    }
}

/// The work that is left to do, in steps of about the same cost.
pub struct Meter(pub usize);

impl Meter {
    pub fn spend(&mut self, steps: usize) -> Result<(), Halt> {
        self.0 = self.0.checked_sub(steps).ok_or(Halt::Work)?;
        Ok(())
    }
}

/// What was evaluated.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// Accesses: by definition, and place in its body.
    pub reached: HashSet<(TensorId, usize)>,
    /// For each index of a definition the smallest and the largest value.
    spans: HashMap<TensorId, Vec<(i64, i64)>>,
}

impl Coverage {
    /// Whether every index of a definition took several values.
    pub fn is_wide(&self, definition: TensorId) -> bool {
        self.spans.get(&definition).is_some_and(|spans| spans.iter().all(|(low, high)| low < high))
    }

    fn note(&mut self, definition: TensorId, place: &[i64]) {
        let spans = self.spans.entry(definition).or_insert_with(|| place.iter().map(|&i| (i, i)).collect());
        spans.iter_mut().zip(place).for_each(|(span, &i)| *span = (span.0.min(i), span.1.max(i)));
    }
}

/// What an evaluation left behind.
pub struct Trace {
    pub tape: Tape,
    pub coverage: Coverage,
    tensors: HashMap<TensorId, (Vec<usize>, Vec<Value>)>,
}

impl Trace {
    /// The elements of an input or of a named definition.
    pub fn elements(&self, tensor: TensorId) -> &[Value] {
        &self.tensors[&tensor].1
    }
}

/// Evaluates everything that has a name; `arguments` are the inputs to derive by.
pub fn trace(
    program: &Program,
    sizes: &[Int],
    inputs: &HashMap<String, Array>,
    arguments: &[TensorId],
    meter: &mut Meter,
) -> Result<Trace, Halt> {
    let trace = Trace { tape: Tape::default(), coverage: Coverage::default(), tensors: HashMap::new() };
    let recurrent = circles::recurrent(program).into_keys().collect();
    let mut tracer = Tracer { program, codes: HashMap::new(), remembered: HashMap::new(), recurrent, trace, meter };
    for id in program.inputs() {
        let Array { shape, data } = &inputs[&program[id].name];
        let tape = &mut tracer.trace.tape;
        let is_argument = arguments.contains(&id);
        let value = |&number: &f64| if is_argument { tape.argument(number) } else { Value::constant(number) };
        let values = data.iter().map(value).collect();
        tracer.trace.tensors.insert(id, (shape.clone(), values));
    }
    for definition in &program.definitions {
        let code = Rc::new(Code::new(program, definition, sizes, Dtype::F64)?);
        tracer.codes.insert(definition.tensor, code);
    }
    for definition in &program.definitions {
        if program[definition.tensor].kind != TensorKind::Nested {
            let shape = shape(program, sizes, definition.tensor).ok_or(Halt::Work)?;
            let values = tracer.all(definition.tensor, &shape)?;
            tracer.trace.tensors.insert(definition.tensor, (shape, values));
        }
    }
    Ok(tracer.trace)
}

struct Tracer<'a> {
    program: &'a Program,
    codes: HashMap<TensorId, Rc<Code>>,
    /// Elements of nested definitions and of recurrences, which are computed when they are first read.
    remembered: HashMap<(TensorId, Vec<i64>), Value>,
    recurrent: HashSet<TensorId>,
    trace: Trace,
    meter: &'a mut Meter,
}

/// The values of a body's nodes at one point, where they are known.
struct Point<'a> {
    tensor: TensorId,
    code: &'a Code,
    place: &'a [i64],
    known: Vec<Option<Value>>,
}

impl Tracer<'_> {
    fn all(&mut self, tensor: TensorId, shape: &[usize]) -> Result<Vec<Value>, Halt> {
        let count = shape.iter().try_fold(1usize, |count, extent| count.checked_mul(*extent)).ok_or(Halt::Work)?;
        let is_recurrent = self.recurrent.contains(&tensor);
        let element = |number: usize| match is_recurrent {
            true => self.remembered(tensor, place_of(number, shape)),
            false => self.element(tensor, &place_of(number, shape)),
        };
        (0..count).map(element).collect()
    }

    fn element(&mut self, tensor: TensorId, outputs: &[i64]) -> Result<Value, Halt> {
        let code = self.codes[&tensor].clone();
        let Some(op) = code.reduction else { return self.body(tensor, &code, outputs) };
        let mut terms = Vec::new();
        let mut place = outputs.to_vec();
        place.resize(code.indices.len(), 0);
        self.terms(tensor, &code, code.rank, &mut place, &mut terms)?;
        Ok(self.trace.tape.reduce(op, &terms))
    }

    /// The values of the body at all points of a reduction.
    fn terms(
        &mut self,
        tensor: TensorId,
        code: &Code,
        depth: usize,
        place: &mut Vec<i64>,
        terms: &mut Vec<Value>,
    ) -> Result<(), Halt> {
        if depth == code.indices.len() {
            if code.includes(place) {
                terms.push(self.body(tensor, code, place)?);
            }
            return Ok(());
        }
        for value in code.indices[depth].at(place) {
            self.meter.spend(1)?;
            place[depth] = i64::try_from(value).map_err(|_| failed("an index is too large"))?;
            self.terms(tensor, code, depth + 1, place, terms)?;
        }
        Ok(())
    }

    fn body(&mut self, tensor: TensorId, code: &Code, place: &[i64]) -> Result<Value, Halt> {
        self.meter.spend(code.nodes.len())?;
        self.trace.coverage.note(tensor, place);
        let mut point = Point { tensor, code, place, known: vec![None; code.nodes.len()] };
        self.node(&mut point, code.nodes.len() - 1)
    }

    fn node(&mut self, point: &mut Point, id: usize) -> Result<Value, Halt> {
        if let Some(value) = point.known[id] {
            return Ok(value);
        }
        let code = point.code;
        let value = match &code.nodes[id] {
            Node::Constant(number) => Value::constant(*number),
            Node::Index(linear) => Value::constant(linear.at(point.place) as f64),
            Node::Access(tensor, subscripts) => {
                self.trace.coverage.reached.insert((point.tensor, id));
                self.read(*tensor, subscripts, point.place)?
            }
            Node::Unary(op, a) => {
                let a = self.node(point, *a)?;
                self.trace.tape.unary(*op, a)
            }
            Node::Binary(op, a, b) => {
                let (a, b) = (self.node(point, *a)?, self.node(point, *b)?);
                self.trace.tape.binary(*op, a, b)
            }
            Node::Select(test, a, b) => {
                let taken = if self.passes(test, point)? { *a } else { *b };
                self.node(point, taken)?
            }
        };
        point.known[id] = Some(value);
        Ok(value)
    }

    fn passes(&mut self, test: &Test, point: &mut Point) -> Result<bool, Halt> {
        Ok(match test {
            Test::Index(linear, relation) => holds(linear.at(point.place), *relation),
            Test::Compare(op, a, b) => {
                let (a, b) = (self.node(point, *a)?.number, self.node(point, *b)?.number);
                self.trace.tape.compare(a, b);
                op.apply(a, b)
            }
            Test::Not(a) => !self.passes(a, point)?,
            Test::And(a, b) => self.passes(a, point)? && self.passes(b, point)?,
            Test::Or(a, b) => self.passes(a, point)? || self.passes(b, point)?,
        })
    }

    fn read(&mut self, tensor: TensorId, subscripts: &[Linear], place: &[i64]) -> Result<Value, Halt> {
        let number = |subscript: &Linear| i64::try_from(subscript.at(place));
        let place: Result<Vec<i64>, _> = subscripts.iter().map(number).collect();
        let place = place.map_err(|_| failed("a subscript is too large"))?;
        if self.program[tensor].kind == TensorKind::Nested || self.recurrent.contains(&tensor) {
            return self.remembered(tensor, place);
        }
        let (shape, values) = &self.trace.tensors[&tensor];
        let outside = || failed(format!("'{}' was read outside its shape", self.program[tensor].name)).into();
        offset(&place, shape).map(|offset| values[offset]).ok_or_else(outside)
    }

    fn remembered(&mut self, tensor: TensorId, place: Vec<i64>) -> Result<Value, Halt> {
        if let Some(&value) = self.remembered.get(&(tensor, place.clone())) {
            return Ok(value);
        }
        let value = self.element(tensor, &place)?;
        self.remembered.insert((tensor, place), value);
        Ok(value)
    }
}

/// The indices of the element with this number.
pub fn place_of(mut number: usize, shape: &[usize]) -> Vec<i64> {
    let mut place = vec![0; shape.len()];
    for (position, extent) in place.iter_mut().zip(shape).rev() {
        *position = (number % extent) as i64;
        number /= extent;
    }
    place
}
