//! Expressions in C: one statement for each node of the graph, scalar or over the lanes of a vector.
//!
//! Several instances of a body are written side by side: rows × vectors. A node is written once for all
//! instances that agree on what it depends on. The branches of a choice that index conditions decide stand in
//! the branches of an `if`, since what they read may not exist otherwise; other choices are made by masks.

use super::text::{Lines, Names, integer, literal};
use crate::nest::Nest;
use crate::program::expr::Number;
use crate::program::{BinaryOp, Comparison, Cond, CondId, Expr, ExprId, UnaryOp};
use crate::scalar::C;
use std::collections::{BTreeSet, HashMap};

/// How an instance names the variables that differ between instances.
#[derive(Clone, Default)]
pub struct Instances {
    /// The variable of the lanes, and its name in each vector.
    pub lanes: Option<(usize, Vec<String>)>,
    /// The variable of the rows, and its name in each row.
    pub rows: Option<(usize, Vec<String>)>,
    /// The variable of the columns, and its name in each; rows are then counted column by column.
    pub columns: Option<(usize, Vec<String>)>,
    /// Where vectors are not full: how many lanes of each count.
    pub partial: Vec<String>,
}

impl Instances {
    /// Which row and which column an instance has.
    fn place(&self, row: usize) -> (usize, usize) {
        let columns = self.columns.as_ref().map_or(1, |(_, names)| names.len());
        (row / columns, row % columns)
    }

    /// The variables get the names that they have in an instance.
    pub fn select(&self, (row, vector): Instance, variables: &mut [String]) {
        let (row, column) = self.place(row);
        for (of, number) in [(&self.rows, row), (&self.columns, column), (&self.lanes, vector)] {
            if let Some((variable, names)) = of {
                variables[*variable] = names[number].clone();
            }
        }
    }
}

/// Which row and which vector.
pub type Instance = (usize, usize);

/// By which of its variables a node differs between instances.
#[derive(Clone, Copy)]
struct Differs {
    by_row: bool,
    by_column: bool,
    by_lane: bool,
}

/// What stands for a node in an instance: its text, and whether it is a vector.
pub type Given = ((ExprId, Instance), (String, bool));

/// Writes expressions.
pub struct Values<'a> {
    pub nest: &'a Nest,
    pub names: &'a mut Names,
    pub lines: &'a mut Lines,
    pub functions: &'a mut BTreeSet<&'static str>,
    pub single: bool,
    pub instances: Instances,
    /// Nodes that stand for what has been packed: the text for an instance, and whether it is a vector.
    pub given: HashMap<(ExprId, Instance), (String, bool)>,
    done: HashMap<(ExprId, Instance), String>,
    depends: HashMap<ExprId, Differs>,
}

impl<'a> Values<'a> {
    pub fn new(
        nest: &'a Nest,
        names: &'a mut Names,
        lines: &'a mut Lines,
        functions: &'a mut BTreeSet<&'static str>,
        single: bool,
        instances: Instances,
    ) -> Self {
        let (given, done, depends) = (HashMap::new(), HashMap::new(), HashMap::new());
        Values { nest, names, lines, functions, single, instances, given, done, depends }
    }

    /// How a node differs between instances.
    fn depends(&mut self, id: ExprId) -> Differs {
        if let Some(&known) = self.depends.get(&id) {
            return known;
        }
        let count = self.names.variables.len();
        let used = self.nest.exprs.used_indices(id, count);
        let uses = |of: &Option<(usize, Vec<String>)>| of.as_ref().is_some_and(|(variable, _)| used[*variable]);
        let Instances { rows, columns, lanes, .. } = &self.instances;
        let mut found = Differs { by_row: uses(rows), by_column: uses(columns), by_lane: uses(lanes) };
        for ((packed, _), (_, vector)) in &self.given {
            if self.nest.exprs.postorder(id).contains(packed) {
                found.by_lane |= *vector;
            }
        }
        self.depends.insert(id, found);
        found
    }

    pub fn is_vector(&mut self, id: ExprId) -> bool {
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
    pub fn value(&mut self, id: ExprId, instance: Instance) -> String {
        if let Some((text, _)) = self.given.get(&(id, instance)) {
            return text.clone();
        }
        let instance = self.key(id, instance);
        if let Some(name) = self.done.get(&(id, instance)) {
            return name.clone();
        }
        let exprs = &self.nest.exprs;
        let text = match exprs[id].clone() {
            Expr::Constant(number) => return literal(number, self.single),
            Expr::Index(affine) => {
                self.select_instance(instance);
                let start = self.names.affine(&affine);
                match (self.instances.lanes.clone(), self.is_vector(id)) {
                    (Some((variable, _)), true) => {
                        let factor = affine.coefficient(&crate::program::Atom::Index(variable as u32));
                        format!("gx_all((gx_t)({start})) + (gx_t){} * gx_iota()", integer(&factor))
                    }
                    _ => format!("(gx_t)({start})"),
                }
            }
            Expr::Access(buffer, subscripts) => {
                self.select_instance(instance);
                match (self.instances.lanes.clone(), self.is_vector(id)) {
                    (Some((variable, _)), true) => {
                        let address = self.names.address(self.nest, buffer, &subscripts);
                        let step = self.names.step(self.nest, buffer, &subscripts, variable);
                        load(&address, &step, self.instances.partial.get(instance.1).map(String::as_str))
                    }
                    _ => self.names.element(self.nest, buffer, &subscripts),
                }
            }
            Expr::Unary(op, a) => {
                let vector = self.is_vector(id);
                let a = self.value(a, instance);
                self.unary(op, &a, vector)
            }
            Expr::Binary(op, a, b) => self.binary(op, a, b, id, instance),
            Expr::Select(c, a, b) => return self.select(id, c, a, b, instance),
        };
        let name = self.names.fresh("e");
        let kind = if self.is_vector(id) { "gx_v" } else { "gx_t" };
        self.lines.line(format!("const {kind} {name} = {text};"));
        self.done.insert((id, instance), name.clone());
        name
    }

    pub fn select_instance(&mut self, instance: Instance) {
        self.instances.select(instance, &mut self.names.variables);
    }

    fn unary(&mut self, op: UnaryOp, a: &str, vector: bool) -> String {
        if let C::Sign(sign) = op.row().c {
            return format!("{sign}{a}");
        }
        self.functions.insert(op.name());
        let suffix = if vector { "" } else { "_1" };
        format!("gx_{}{suffix}({a})", op.name())
    }

    fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId, id: ExprId, instance: Instance) -> String {
        let vector = self.is_vector(id);
        if op == BinaryOp::Pow
            && let Some(exponent) = self.nest.exprs.as_constant(b).filter(|e| e.fract() == 0.0 && e.abs() <= 32.0)
        {
            let base = self.value(a, instance);
            return self.whole_power(&base, exponent as i32, vector);
        }
        let (left, right) = (self.value(a, instance), self.value(b, instance));
        match op.row().function {
            Some(function) => self.call(function, vector, &[(a, left), (b, right)]),
            None => format!("{left} {} {right}", op.name()),
        }
    }

    fn call(&mut self, function: &'static str, vector: bool, arguments: &[(ExprId, String)]) -> String {
        self.functions.insert(function);
        let arguments: Vec<String> = arguments
            .iter()
            .map(|(id, text)| match vector && !self.is_vector(*id) {
                true => format!("gx_all({text})"),
                false => text.clone(),
            })
            .collect();
        format!("gx_{function}{}({})", if vector { "" } else { "_1" }, arguments.join(", "))
    }

    /// `x^n` by squaring.
    fn whole_power(&mut self, base: &str, exponent: i32, vector: bool) -> String {
        let kind = if vector { "gx_v" } else { "gx_t" };
        let one = literal(Number::new(1.0), self.single);
        let (mut result, mut square, mut rest) = (None::<String>, base.to_string(), exponent.unsigned_abs());
        while rest > 0 {
            if rest % 2 == 1 {
                result = Some(result.map_or(square.clone(), |r| format!("{r} * {square}")));
            }
            rest /= 2;
            if rest > 0 {
                let name = self.names.fresh("e");
                self.lines.line(format!("const {kind} {name} = {square} * {square};"));
                square = name;
            }
        }
        let result = result.unwrap_or_else(|| if vector { format!("gx_all({one})") } else { one.clone() });
        if exponent < 0 { format!("{one} / ({result})") } else { result }
    }

    /// A choice: by indices in branches, by values with masks.
    fn select(&mut self, id: ExprId, c: CondId, a: ExprId, b: ExprId, instance: Instance) -> String {
        let name = self.names.fresh("e");
        let vector = self.is_vector(id);
        let exprs = &self.nest.exprs;
        if !exprs.compared(c).is_empty() {
            let text = match (vector, self.condition_is_vector(c)) {
                (true, true) => {
                    let mask = self.mask(c, instance);
                    let (a, b) = (self.wide(a, instance), self.wide(b, instance));
                    format!("gx_select({mask}, {a}, {b})")
                }
                (true, false) => {
                    let test = self.test(c, instance);
                    let (a, b) = (self.wide(a, instance), self.wide(b, instance));
                    format!("({test}) ? {a} : {b}")
                }
                (false, _) => {
                    let test = self.test(c, instance);
                    let (a, b) = (self.value(a, instance), self.value(b, instance));
                    format!("({test}) ? {a} : {b}")
                }
            };
            self.lines.line(format!("const {} {name} = {text};", if vector { "gx_v" } else { "gx_t" }));
        } else {
            self.select_instance(instance);
            let test = self.test(c, instance);
            self.lines.line(format!("{} {name};", if vector { "gx_v" } else { "gx_t" }));
            self.lines.open(format!("if ({test})"));
            self.branch(&name, a, vector, instance);
            self.lines.otherwise();
            self.branch(&name, b, vector, instance);
            self.lines.close();
        }
        self.done.insert((id, instance), name.clone());
        name
    }

    /// What is written inside a branch is not known outside.
    fn branch(&mut self, name: &str, id: ExprId, vector: bool, instance: Instance) {
        let outside = self.done.clone();
        let text = if vector { self.wide(id, instance) } else { self.value(id, instance) };
        self.lines.line(format!("{name} = {text};"));
        self.done = outside;
    }

    /// A value as a vector.
    pub fn wide(&mut self, id: ExprId, instance: Instance) -> String {
        let text = self.value(id, instance);
        if self.is_vector(id) { text } else { format!("gx_all({text})") }
    }

    fn condition_is_vector(&mut self, c: CondId) -> bool {
        let compared = self.nest.exprs.compared(c);
        compared.into_iter().any(|id| self.is_vector(id))
    }

    /// A condition on scalars.
    fn test(&mut self, c: CondId, instance: Instance) -> String {
        match self.nest.exprs[c].clone() {
            Cond::Index(constraint) => {
                self.select_instance(instance);
                self.names.constraint(&constraint)
            }
            Cond::Compare(op, a, b) => {
                let (a, b) = (self.value(a, instance), self.value(b, instance));
                format!("{a} {} {b}", comparison(op))
            }
            Cond::Not(a) => format!("!({})", self.test(a, instance)),
            Cond::And(a, b) => format!("({}) && ({})", self.test(a, instance), self.test(b, instance)),
            Cond::Or(a, b) => format!("({}) || ({})", self.test(a, instance), self.test(b, instance)),
        }
    }

    /// A condition over lanes.
    fn mask(&mut self, c: CondId, instance: Instance) -> String {
        match self.nest.exprs[c].clone() {
            Cond::Index(constraint) => {
                self.select_instance(instance);
                format!("gx_truth({})", self.names.constraint(&constraint))
            }
            Cond::Compare(op, a, b) => {
                let (a, b) = (self.wide(a, instance), self.wide(b, instance));
                format!("(gx_i)({a} {} {b})", comparison(op))
            }
            Cond::Not(a) => format!("~({})", self.mask(a, instance)),
            Cond::And(a, b) => format!("(({}) & ({}))", self.mask(a, instance), self.mask(b, instance)),
            Cond::Or(a, b) => format!("(({}) | ({}))", self.mask(a, instance), self.mask(b, instance)),
        }
    }
}

fn comparison(op: Comparison) -> &'static str {
    match op {
        Comparison::Lt => "<",
        Comparison::Le => "<=",
        Comparison::Eq => "==",
    }
}

/// A vector from memory.
pub fn load(address: &str, step: &str, partial: Option<&str>) -> String {
    match (step, partial) {
        ("1", None) => format!("gx_load({address})"),
        ("1", Some(n)) => format!("gx_load_n({address}, {n})"),
        (_, None) => format!("gx_load_s({address}, {step})"),
        (_, Some(n)) => format!("gx_load_sn({address}, {step}, {n})"),
    }
}

/// A vector to memory.
pub fn store(streamed: bool, address: &str, step: &str, partial: Option<&str>, value: &str) -> String {
    match (step, partial) {
        ("1", None) if streamed => format!("gx_stream({address}, {value});"),
        ("1", None) => format!("gx_store({address}, {value});"),
        ("1", Some(n)) => format!("gx_store_n({address}, {value}, {n});"),
        (_, None) => format!("gx_store_s({address}, {step}, {value});"),
        (_, Some(n)) => format!("gx_store_sn({address}, {step}, {value}, {n});"),
    }
}

/// Combines an accumulator with a value.
pub fn combine(
    op: crate::program::ReduceOp,
    accumulator: &str,
    value: &str,
    vector: bool,
    functions: &mut BTreeSet<&'static str>,
) -> String {
    use crate::program::ReduceOp;
    let suffix = if vector { "" } else { "_1" };
    match op {
        ReduceOp::Sum => format!("{accumulator} + {value}"),
        ReduceOp::Prod => format!("{accumulator} * {value}"),
        ReduceOp::Max | ReduceOp::Min => {
            functions.insert(op.name());
            format!("gx_{}{suffix}({accumulator}, {value})", op.name())
        }
    }
}

/// The value of an empty reduction.
pub fn neutral(op: crate::program::ReduceOp, single: bool) -> String {
    literal(Number::new(op.neutral()), single)
}
