//! Expressions as code: one statement for each node of the graph, of one number or of the lanes of a vector.
//!
//! Several instances of a body are written side by side: rows × vectors. A node is written once for all
//! instances that agree on what it depends on. The branches of a choice that index conditions decide stand in
//! the branches of an `if`, since what they read may not exist otherwise; other choices are made by masks.
//!
//! What vectors and functions are called is the [`Language`]'s business.

use super::draft::Draft;
use super::names::Names;
use super::tree::{Callee, Code, Operator, Type, Value};
use crate::nest::Real;
use crate::nest::{ByLoop, LoopId};
use crate::program::expr::Number;
use crate::program::{Affine, BinaryOp, Comparison, Cond, CondId, Expr, ExprId, Exprs, TensorId, UnaryOp};
use crate::scalar::C;
use gradix_int::Int;
use std::collections::HashMap;

/// How values that differ from lane to lane are made, and what functions are called.
pub trait Language {
    /// `start`, `start + step`, … in the lanes.
    fn indices(&self, start: Value, step: &Int) -> Value;
    /// From memory, elements that are `step` apart; `count` is how many there are, if it is not all.
    fn load(&self, address: Value, step: Value, count: Option<&Value>) -> Value;
    /// The same number in all lanes.
    fn all(&self, number: Value) -> Value;
    /// The same answer in all lanes.
    fn truth(&self, test: Value) -> Value;
    /// `a` in the lanes where a mask is set, `b` elsewhere.
    fn select(&self, mask: Value, a: Value, b: Value) -> Value;
    /// A function of the language, of vectors or of numbers.
    fn function(&self, name: &str, vector: bool) -> Callee;
}

/// What stands for the variables that differ between instances.
#[derive(Clone, Default)]
pub struct Instances {
    /// The variable of the lanes, and the first lane of each vector.
    pub lanes: Option<(LoopId, Vec<Value>)>,
    /// The variable of the rows, and its value in each row.
    pub rows: Option<(LoopId, Vec<Value>)>,
    /// The variable of the columns, and its value in each; rows are then counted column by column.
    pub columns: Option<(LoopId, Vec<Value>)>,
    /// Where vectors are not full: how many lanes of each count.
    pub partial: Vec<Value>,
}

/// Which row and which vector.
pub type Instance = (usize, usize);

impl Instances {
    /// Instances that differ in the lanes only.
    pub fn lanes(variable: LoopId, starts: Vec<Value>, partial: Vec<Value>) -> Self {
        Instances { lanes: Some((variable, starts)), partial, ..Instances::default() }
    }

    /// Which row and which column an instance has.
    fn place(&self, row: usize) -> (usize, usize) {
        let columns = self.columns.as_ref().map_or(1, |(_, names)| names.len());
        (row / columns, row % columns)
    }

    /// The variables get the values that they have in an instance.
    pub fn select(&self, (row, vector): Instance, variables: &mut ByLoop<Value>) {
        let (row, column) = self.place(row);
        for (of, number) in [(&self.rows, row), (&self.columns, column), (&self.lanes, vector)] {
            if let Some((variable, values)) = of {
                variables[*variable] = values[number].clone();
            }
        }
    }
}

/// By which of its variables a node differs between instances.
#[derive(Clone, Copy)]
struct Differs {
    by_row: bool,
    by_column: bool,
    by_lane: bool,
}

/// Writes expressions.
pub struct Values<'a, 'n> {
    pub names: &'a mut Names<'n>,
    pub draft: &'a mut Draft,
    pub real: Real,
    pub language: &'a dyn Language,
    pub instances: Instances,
    /// What stands for nodes that are at hand.
    pub given: HashMap<(ExprId, Instance), Value>,
    done: HashMap<(ExprId, Instance), Value>,
    depends: HashMap<ExprId, Differs>,
}

impl<'a, 'n> Values<'a, 'n> {
    pub fn new(
        names: &'a mut Names<'n>,
        draft: &'a mut Draft,
        real: Real,
        language: &'a dyn Language,
        instances: Instances,
    ) -> Self {
        let (given, done, depends) = (HashMap::new(), HashMap::new(), HashMap::new());
        Values { names, draft, real, language, instances, given, done, depends }
    }

    fn exprs(&self) -> &'n Exprs {
        &self.names.nest.exprs
    }

    /// How a node differs between instances.
    fn depends(&mut self, id: ExprId) -> Differs {
        if let Some(&known) = self.depends.get(&id) {
            return known;
        }
        let used = self.exprs().used_indices(id, self.names.variables.0.len());
        let uses = |of: &Option<(LoopId, Vec<Value>)>| of.as_ref().is_some_and(|(variable, _)| used[variable.number()]);
        let Instances { rows, columns, lanes, .. } = &self.instances;
        let mut found = Differs { by_row: uses(rows), by_column: uses(columns), by_lane: uses(lanes) };
        let vectors: Vec<ExprId> =
            self.given.iter().filter(|(_, value)| value.is_vector()).map(|((id, _), _)| *id).collect();
        found.by_lane |= !vectors.is_empty() && self.exprs().postorder(id).iter().any(|id| vectors.contains(id));
        self.depends.insert(id, found);
        found
    }

    fn is_vector(&mut self, id: ExprId) -> bool {
        self.depends(id).by_lane
    }

    /// The instance that writes a node for this one.
    fn key(&mut self, id: ExprId, (row, vector): Instance) -> Instance {
        let differs = self.depends(id);
        let column = self.instances.place(row).1;
        let own = match (differs.by_row, differs.by_column) {
            (true, true) => row,
            (true, false) => row - column,
            (false, true) => column,
            (false, false) => 0,
        };
        (own, if differs.by_lane { vector } else { 0 })
    }

    /// The name or literal of a node's value, which is written if it is new.
    pub fn value(&mut self, id: ExprId, instance: Instance) -> Value {
        if let Some(value) = self.given.get(&(id, instance)) {
            return value.clone();
        }
        let instance = self.key(id, instance);
        if let Some(name) = self.done.get(&(id, instance)) {
            return name.clone();
        }
        let value = match &self.exprs()[id] {
            Expr::Constant(number) => return Value::Real(*number, self.real),
            Expr::Index(affine) => self.index(affine, instance, id),
            Expr::Access(buffer, subscripts) => self.access(*buffer, subscripts, instance, id),
            Expr::Unary(op, a) => self.unary(*op, *a, instance),
            Expr::Binary(op, a, b) => self.binary(*op, *a, *b, instance),
            Expr::Select(c, a, b) => self.select(id, *c, [*a, *b], instance),
        };
        let name = if let Value::Name(..) = value { value } else { self.draft.constant("e", value) };
        self.done.insert((id, instance), name.clone());
        name
    }

    /// A value as a vector.
    pub fn wide(&mut self, id: ExprId, instance: Instance) -> Value {
        self.formed(id, true, instance)
    }

    /// A value as a vector or a number.
    fn formed(&mut self, id: ExprId, vector: bool, instance: Instance) -> Value {
        let value = self.value(id, instance);
        self.fit(value, vector)
    }

    pub fn select_instance(&mut self, instance: Instance) {
        self.instances.select(instance, &mut self.names.variables);
    }

    /// The variable of the lanes, if a node differs by it.
    fn lane(&mut self, id: ExprId) -> Option<LoopId> {
        let differs = self.is_vector(id);
        self.instances.lanes.as_ref().filter(|_| differs).map(|(variable, _)| *variable)
    }

    fn index(&mut self, affine: &Affine, instance: Instance, id: ExprId) -> Value {
        self.select_instance(instance);
        let start = self.names.affine(affine);
        match self.lane(id) {
            Some(variable) => self.language.indices(start, &affine.step_of(variable)),
            None => start.cast(Type::Real),
        }
    }

    fn access(&mut self, buffer: TensorId, subscripts: &[Affine], instance: Instance, id: ExprId) -> Value {
        self.select_instance(instance);
        match self.lane(id) {
            Some(variable) => {
                let address = self.names.address(buffer, subscripts);
                let step = self.names.step(buffer, subscripts, variable);
                self.language.load(address, step, self.instances.partial.get(instance.1))
            }
            None => self.names.element(buffer, subscripts),
        }
    }

    fn unary(&mut self, op: UnaryOp, a: ExprId, instance: Instance) -> Value {
        let a = self.value(a, instance);
        match op.row().c {
            C::Argument => a,
            C::Sign(_) => -a,
            C::Function(_) => self.language.function(op.name(), a.is_vector()).call([a]),
        }
    }

    fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId, instance: Instance) -> Value {
        let whole = |e: &f64| op == BinaryOp::Pow && e.fract() == 0.0 && e.abs() <= 32.0;
        if let Some(exponent) = self.exprs().as_constant(b).filter(whole) {
            let base = self.value(a, instance);
            return self.whole_power(base, exponent as i32);
        }
        let half = |e: &f64| op == BinaryOp::Pow && (2.0 * e).fract() == 0.0 && e.abs() <= MAX_ROOT_EXPONENT;
        if let Some(exponent) = self.exprs().as_constant(b).filter(half) {
            let base = self.value(a, instance);
            return self.half_power(base, exponent);
        }
        let [a, b] = [a, b].map(|id| self.value(id, instance));
        let operator = match op {
            BinaryOp::Add => Operator::Plus,
            BinaryOp::Sub => Operator::Minus,
            BinaryOp::Mul => Operator::Times,
            BinaryOp::Div => Operator::Over,
            BinaryOp::Pow | BinaryOp::Min | BinaryOp::Max | BinaryOp::Atan2 | BinaryOp::Hypot => {
                let name = op.row().function.expect("what is no operator has a name");
                let vector = a.is_vector() || b.is_vector();
                return self.language.function(name, vector).call([a, b].map(|value| self.fit(value, vector)));
            }
        };
        a.with(operator, b)
    }

    /// A number as a vector where vectors are wanted.
    fn fit(&self, value: Value, vector: bool) -> Value {
        if vector && !value.is_vector() { self.language.all(value) } else { value }
    }

    /// `x^(n + 1/2)` by a root.
    fn half_power(&mut self, base: Value, exponent: f64) -> Value {
        let (vector, whole) = (base.is_vector(), exponent.abs().floor() as i32);
        let name = if whole % 2 == 0 { "root" } else { "root3" };
        let root = self.language.function(name, vector).call([base.clone()]);
        let power = if whole < 2 { root } else { root * self.whole_power(base, whole / 2 * 2) };
        let one = self.fit(Value::Real(Number::new(1.0), self.real), vector);
        if exponent < 0.0 { one / power } else { power }
    }

    /// `x^n` by squaring.
    fn whole_power(&mut self, base: Value, exponent: i32) -> Value {
        let (one, vector) = (Value::Real(Number::new(1.0), self.real), base.is_vector());
        let (mut result, mut square, mut rest) = (None::<Value>, base, exponent.unsigned_abs());
        while rest > 0 {
            if rest % 2 == 1 {
                result = Some(result.map_or(square.clone(), |result| result * &square));
            }
            rest /= 2;
            if rest > 0 {
                square = self.draft.constant("e", &square * &square);
            }
        }
        let result = result.unwrap_or_else(|| self.fit(one.clone(), vector));
        if exponent < 0 { one / result } else { result }
    }

    /// A choice: by indices in branches, which give a name, by values with masks.
    fn select(&mut self, id: ExprId, c: CondId, [a, b]: [ExprId; 2], instance: Instance) -> Value {
        let vector = self.is_vector(id);
        let compared = self.exprs().compared(c);
        if compared.is_empty() {
            return self.branches(c, [a, b], vector, instance);
        }
        let masked = vector && compared.into_iter().any(|id| self.is_vector(id));
        let test = if masked { self.mask(c, instance) } else { self.test(c, instance) };
        let (a, b) = (self.formed(a, vector, instance), self.formed(b, vector, instance));
        if masked { self.language.select(test, a, b) } else { test.choose(a, b) }
    }

    /// What is written inside a branch is not known outside.
    fn branches(&mut self, c: CondId, [a, b]: [ExprId; 2], vector: bool, instance: Instance) -> Value {
        let name = self.draft.fresh("e", if vector { Type::Vector } else { Type::Real });
        let test = self.test(c, instance);
        self.draft.push(Code::Declare { name: name.clone(), constant: false, length: None, value: None });
        self.draft.when(test);
        for (id, last) in [(a, false), (b, true)] {
            let outside = self.done.clone();
            let value = self.formed(id, vector, instance);
            self.draft.assign(&name, value);
            self.done = outside;
            if last { self.draft.close(1) } else { self.draft.otherwise() }
        }
        name
    }

    /// A condition on numbers.
    fn test(&mut self, c: CondId, instance: Instance) -> Value {
        match &self.exprs()[c] {
            Cond::Index(constraint) => {
                self.select_instance(instance);
                self.names.constraint(constraint)
            }
            Cond::Compare(op, a, b) => self.value(*a, instance).with(comparison(*op), self.value(*b, instance)),
            Cond::Not(a) => !self.test(*a, instance),
            Cond::And(a, b) => self.test(*a, instance).and(self.test(*b, instance)),
            Cond::Or(a, b) => self.test(*a, instance).with(Operator::Or, self.test(*b, instance)),
        }
    }

    /// A condition over lanes.
    fn mask(&mut self, c: CondId, instance: Instance) -> Value {
        match &self.exprs()[c] {
            Cond::Index(constraint) => {
                self.select_instance(instance);
                self.language.truth(self.names.constraint(constraint))
            }
            Cond::Compare(op, a, b) => {
                let (a, b) = (self.wide(*a, instance), self.wide(*b, instance));
                a.with(comparison(*op), b).cast(Type::Mask)
            }
            Cond::Not(a) => self.mask(*a, instance).opposite(),
            Cond::And(a, b) => self.mask(*a, instance).with(Operator::Meet, self.mask(*b, instance)),
            Cond::Or(a, b) => self.mask(*a, instance).with(Operator::Join, self.mask(*b, instance)),
        }
    }
}

/// The largest exponent with a half for which a power is made of a root: a few roundings.
const MAX_ROOT_EXPONENT: f64 = 3.5;

fn comparison(op: Comparison) -> Operator {
    match op {
        Comparison::Lt => Operator::Below,
        Comparison::Le => Operator::AtMost,
        Comparison::Eq => Operator::Equals,
    }
}
