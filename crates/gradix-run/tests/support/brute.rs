//! An evaluator that walks the syntax tree, element by element, and takes derivatives by scattering: slow,
//! obvious, and independent of `resolve`, `derive` and `interp`.

use super::scope::{Point, Scope, compare, definitions, inputs};
use super::tape::{Slope, Tape, Value};
use gradix::program::Program;
use gradix::syntax::ast::{Ast, BinaryOp, Definition, Expr, ExprKind, ReduceOp, StatementKind};
use gradix_run::Array;
use std::collections::{BTreeMap, HashMap};

/// A program run at some sizes on some inputs.
pub struct Brute {
    pub scope: Scope,
    pub tape: Tape,
    definitions: HashMap<String, Definition>,
    /// The elements that are known so far.
    tensors: HashMap<String, Vec<Option<Value>>>,
}

/// Evaluates every definition. No subscript may leave its tensor (see [`Scope::violation`]).
pub fn brute(ast: &Ast, sizes: &BTreeMap<String, i64>, data: &HashMap<String, Array>) -> Brute {
    let (scope, tape, tensors) = (Scope::new(ast, sizes), Tape::default(), HashMap::new());
    let definitions_by_name = definitions(ast).map(|d| (d.name.text.clone(), d.clone())).collect();
    let mut brute = Brute { scope, tape, definitions: definitions_by_name, tensors };
    for input in inputs(ast) {
        let numbers = &data[&input.name.text].data;
        let values = numbers.iter().map(|&number| Some(brute.tape.input(number))).collect();
        brute.tensors.insert(input.name.text.clone(), values);
    }
    for definition in definitions(ast) {
        let count = brute.scope.shapes[&definition.name.text].iter().product::<i64>();
        brute.tensors.insert(definition.name.text.clone(), vec![None; count as usize]);
    }
    for definition in definitions(ast) {
        let name = &definition.name.text;
        for place in 0..brute.tensors[name].len() {
            brute.element(name, place);
        }
    }
    brute
}

/// Whether rounding could decide what a result is, or an infinity takes part in sums that may be arranged in another way.
pub fn is_delicate(program: &Program, given: &[(String, i64)], inputs: &HashMap<String, Array>) -> bool {
    let ast = gradix::syntax::parse(&gradix::print(program).unwrap()).unwrap();
    let sizes: BTreeMap<String, i64> = given.iter().cloned().collect();
    Scope::new(&ast, &sizes).violation(&ast).is_some() || {
        let tape = brute(&ast, &sizes, inputs).tape;
        tape.delicate || tape.infinite
    }
}

/// The names of the results.
pub fn outputs(ast: &Ast) -> Vec<String> {
    for statement in &ast.statements {
        if let StatementKind::Output(names) = &statement.kind {
            return names.iter().map(|name| name.text.clone()).collect();
        }
    }
    let mut used = Vec::new();
    for definition in definitions(ast) {
        let own = &definition.name.text;
        super::scope::visit(&definition.body, &mut |e| match &e.kind {
            ExprKind::Access { name, .. } if name.text != *own => used.push(name.text.clone()),
            ExprKind::Name(name) if name != own => used.push(name.clone()),
            _ => {}
        });
    }
    definitions(ast).map(|d| d.name.text.clone()).filter(|name| !used.contains(name)).collect()
}

impl Brute {
    pub fn array(&self, name: &str) -> Array {
        let shape = self.scope.shapes[name].iter().map(|&extent| extent as usize).collect();
        Array::new(shape, self.elements(name).map(|value| value.number).collect())
    }

    fn elements(&self, name: &str) -> impl Iterator<Item = Value> + '_ {
        self.tensors[name].iter().map(|value| value.expect("it is evaluated"))
    }

    /// An element, which is evaluated when it is first asked for: this is all the order that there is.
    fn element(&mut self, name: &str, place: usize) -> Value {
        if let Some(value) = self.tensors[name][place] {
            return value;
        }
        let definition = self.definitions[name].clone();
        let (mut point, mut rest) = (Point::new(), place as i64);
        for (binder, extent) in definition.indices.iter().zip(&self.scope.shapes[name]).rev() {
            point.insert(0, (binder.name.text.clone(), rest % extent));
            rest /= extent;
        }
        let value = self.value(&definition.body, &mut point);
        self.tensors.get_mut(name).expect("a definition")[place] = Some(value);
        value
    }

    /// The derivatives of `Σ seeds · results` by each of `wanted`.
    pub fn gradient(&self, seeds: &[(String, Array)], wanted: &[String]) -> Vec<Vec<Slope>> {
        let values = seeds.iter().flat_map(|(name, seed)| self.elements(name).zip(seed.data.clone()));
        let seeds: Vec<(Value, f64)> = values.collect();
        let all: Vec<Value> = wanted.iter().flat_map(|name| self.elements(name)).collect();
        let mut slopes = self.tape.scatter(&seeds, &all).into_iter();
        wanted.iter().map(|name| slopes.by_ref().take(self.tensors[name].len()).collect()).collect()
    }

    fn value(&mut self, expr: &Expr, point: &mut Point) -> Value {
        match &expr.kind {
            ExprKind::Integer(_) => self.number(expr, point),
            ExprKind::Real(number) => Value::constant(*number),
            ExprKind::Pi => Value::constant(std::f64::consts::PI),
            ExprKind::Inf => Value::constant(f64::INFINITY),
            ExprKind::Name(name) => {
                let hidden = point.iter().any(|(index, _)| index == name);
                match self.tensors.contains_key(name) && !hidden {
                    true => self.element(name, 0),
                    false => self.number(expr, point),
                }
            }
            ExprKind::Access { name, subscripts } => {
                let place = self.scope.place(&name.text, subscripts, point);
                let place = place.expect("a legal subscript").expect("a place inside the tensor");
                self.element(&name.text, place)
            }
            ExprKind::Negate(a) => {
                let a = self.value(a, point);
                self.tape.unary("-", a)
            }
            ExprKind::Binary { op: BinaryOp::FloorDivide | BinaryOp::Remainder, .. } => self.number(expr, point),
            ExprKind::Binary { op, left, right } => {
                let (a, b) = (self.value(left, point), self.value(right, point));
                self.tape.binary(symbol(*op), a, b)
            }
            ExprKind::Call { function, arguments } if function.text == "pad" => {
                let ExprKind::Access { name, subscripts } = &arguments[0].kind else { panic!("pad of an access") };
                match self.scope.place(&name.text, subscripts, point).expect("a legal subscript") {
                    Some(place) => self.element(&name.text, place),
                    None => self.value(&arguments[1], point),
                }
            }
            // Sizes may be the smallest or largest of any number of others.
            ExprKind::Call { function, .. }
                if ["min", "max"].contains(&function.text.as_str()) && self.scope.integer(expr, point).is_some() =>
            {
                self.number(expr, point)
            }
            ExprKind::Call { function, arguments } => {
                let values: Vec<Value> = arguments.iter().map(|a| self.value(a, point)).collect();
                match *values.as_slice() {
                    [a] => self.tape.unary(&function.text, a),
                    [a, b] => self.tape.binary(&function.text, a, b),
                    _ => panic!("'{}' of {} values", function.text, values.len()),
                }
            }
            ExprKind::If { condition, then, otherwise } => {
                let taken = if self.condition(condition, point) { then } else { otherwise };
                self.value(taken, point)
            }
            ExprKind::Reduce { op, items, body } => {
                let mut points = Vec::new();
                self.scope.each_point(items, body, point, &mut |point| points.push(point.clone()));
                let values: Vec<Value> = points.iter_mut().map(|point| self.value(body, point)).collect();
                match op {
                    ReduceOp::Sum => self.tape.sum(&values),
                    ReduceOp::Prod => self.tape.product(&values),
                    ReduceOp::Max => self.tape.extreme(&values, 1.0),
                    ReduceOp::Min => self.tape.extreme(&values, -1.0),
                    ReduceOp::Mean => self.tape.mean(&values),
                    ReduceOp::LogSumExp => self.tape.logsumexp(&values),
                }
            }
            ExprKind::Not(_) | ExprKind::Compare { .. } => panic!("a condition is not a number"),
        }
    }

    fn number(&self, expr: &Expr, point: &Point) -> Value {
        Value::constant(self.scope.integer(expr, point).expect("an index expression") as f64)
    }

    fn condition(&mut self, expr: &Expr, point: &mut Point) -> bool {
        match &expr.kind {
            ExprKind::Not(a) => !self.condition(a, point),
            ExprKind::Binary { op: BinaryOp::And, left, right } => {
                self.condition(left, point) && self.condition(right, point)
            }
            ExprKind::Binary { op: BinaryOp::Or, left, right } => {
                self.condition(left, point) || self.condition(right, point)
            }
            ExprKind::Compare { first, rest } => {
                let mut left = self.value(first, point).number;
                rest.iter().all(|(op, side)| {
                    let right = self.value(side, point).number;
                    self.tape.compare(left, right);
                    compare(std::mem::replace(&mut left, right), *op, right)
                })
            }
            _ => panic!("a number is not a condition"),
        }
    }
}

fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Subtract => "-",
        BinaryOp::Multiply => "*",
        BinaryOp::Divide => "/",
        BinaryOp::Power => "pow",
        BinaryOp::FloorDivide | BinaryOp::Remainder | BinaryOp::And | BinaryOp::Or => panic!("not a value operation"),
    }
}
