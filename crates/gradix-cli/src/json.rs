//! A program as JSON, for other programs to read. The structure is stable; `version` counts changes that break readers.
//!
//! ```text
//! program    { "format": "gradix-program", "version": 1, "params": [param], "facts": [constraint],
//!              "inputs": [{ "name", "extents": [affine] }], "definitions": [definition], "outputs": [name] }
//! param      { "name", "kind": "free" | "fixed" | "smallest" | "largest",
//!              "value": integer (if fixed), "of": [affine] (if smallest or largest) }
//! definition { "name", "nested": bool, "extents": [affine] (unless nested), "indices": [index], "rank": integer,
//!              "reduction": "sum" | "prod" | "max" | "min" | null, "conditions": [constraint],
//!              "nodes": [node], "body": id }
//! index      { "name", "low": [affine], "high": [affine] }
//! node       { "id", "op": "constant", "value": number | "inf" | "-inf" | "nan" }
//!            { "id", "op": "index", "value": affine }
//!            { "id", "op": "access", "tensor": name, "subscripts": [affine] }
//!            { "id", "op": "if", "condition": condition, "operands": [id, id] }
//!            { "id", "op": function or operator, "operands": [id, …] }
//! condition  { "test": "index", "constraint": constraint }
//!            { "test": "<" | "<=" | "==", "operands": [id, id] }
//!            { "test": "not", "of": [condition] }        { "test": "and" | "or", "of": [condition, condition] }
//! constraint { "text", "relation": ">= 0" | "== 0", "affine": affine }
//! affine     { "text", "terms": { name: integer, … }, "floors": [{ "factor": integer, "of": affine, "divisor": integer }],
//!              "constant": integer }
//! ```
//!
//! A definition is `name[first rank indices] = reduction[other indices, conditions] body`; its nodes are a graph, operands
//! first. An index runs from the largest of `low` to the smallest of `high`, both included. An affine is the sum of its
//! terms (indices and params by name), `factor * (of // divisor)`, and its constant; `text` is the same in the language.
//! A nested definition is a reduction inside an expression: one access reads it, by indices. An integer past 64 bits is a
//! string.

use std::collections::{HashMap, HashSet};

use gradix::Int;
use gradix::program::print;
use gradix::program::{
    Affine, Atom, Comparison, Cond, CondId, Constraint, Definition, Expr, ExprId, ParamId, ParamKind, Program,
    Relation, TensorKind, UnaryOp, names,
};
use serde_json::{Map, Value, json};

/// The program as indented JSON, ended by a newline.
pub fn json(program: &Program) -> String {
    let sizes = Scope { program, names: Vec::new() };
    let inputs =
        program.inputs().map(|id| json!({ "name": program[id].name, "extents": sizes.affines(&program[id].extents) }));
    let value = json!({
        "format": "gradix-program",
        "version": 1,
        "params": program.params.iter().map(|param| sizes.param(&param.name, &param.kind)).collect::<Vec<_>>(),
        "facts": sizes.constraints(&program.facts),
        "inputs": inputs.collect::<Vec<_>>(),
        "definitions": program.definitions.iter().map(|one| definition(program, one)).collect::<Vec<_>>(),
        "outputs": program.outputs.iter().map(|&id| &*program[id].name).collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

fn definition(program: &Program, definition: &Definition) -> Value {
    let mut taken: HashSet<String> = program.params.iter().map(|param| param.name.clone()).collect();
    let names = definition.indices.iter().map(|index| names::fresh(&index.name, &mut taken)).collect();
    let scope = Scope { program, names };
    let tensor = &program[definition.tensor];
    let indices = definition.indices.iter().zip(&scope.names).map(|(index, name)| {
        json!({ "name": name, "low": scope.affines(&index.range.low), "high": scope.affines(&index.range.high) })
    });
    let order = program.exprs.postorder(definition.body);
    let place: HashMap<ExprId, usize> = order.iter().enumerate().map(|(number, id)| (*id, number)).collect();
    let nodes: Vec<Value> = order.iter().map(|&id| scope.node(id, &place)).collect();
    let mut fields = Map::new();
    fields.insert("name".into(), json!(tensor.name));
    fields.insert("nested".into(), json!(tensor.kind == TensorKind::Nested));
    if tensor.kind != TensorKind::Nested {
        fields.insert("extents".into(), json!(scope.affines(&tensor.extents)));
    }
    fields.insert("indices".into(), indices.collect());
    fields.insert("rank".into(), json!(definition.rank));
    fields.insert("reduction".into(), json!(definition.reduction.map(|op| op.name())));
    fields.insert("conditions".into(), json!(scope.constraints(&definition.conditions)));
    fields.insert("nodes".into(), json!(nodes));
    fields.insert("body".into(), json!(place[&definition.body]));
    Value::Object(fields)
}

/// A program and the names of the indices at hand.
struct Scope<'a> {
    program: &'a Program,
    names: Vec<String>,
}

impl Scope<'_> {
    fn param(&self, name: &str, kind: &ParamKind) -> Value {
        match kind {
            ParamKind::Free => json!({ "name": name, "kind": "free" }),
            ParamKind::Time(steps) => json!({ "name": name, "kind": "time", "steps": self.affine(steps) }),
            ParamKind::Fixed(value) => json!({ "name": name, "kind": "fixed", "value": integer(value) }),
            ParamKind::Smallest(of) => json!({ "name": name, "kind": "smallest", "of": self.affines(of) }),
            ParamKind::Largest(of) => json!({ "name": name, "kind": "largest", "of": self.affines(of) }),
        }
    }

    fn node(&self, id: ExprId, place: &HashMap<ExprId, usize>) -> Value {
        let number = place[&id];
        match &self.program.exprs[id] {
            Expr::Constant(constant) => json!({ "id": number, "op": "constant", "value": real(constant.value()) }),
            Expr::Index(affine) => json!({ "id": number, "op": "index", "value": self.affine(affine) }),
            Expr::Access(tensor, subscripts) => {
                let name = &self.program[*tensor].name;
                json!({ "id": number, "op": "access", "tensor": name, "subscripts": self.affines(subscripts) })
            }
            Expr::Unary(UnaryOp::Neg, a) => json!({ "id": number, "op": "neg", "operands": [place[a]] }),
            Expr::Unary(op, a) => json!({ "id": number, "op": op.name(), "operands": [place[a]] }),
            Expr::Binary(op, a, b) => json!({ "id": number, "op": op.name(), "operands": [place[a], place[b]] }),
            Expr::Select(c, a, b) => {
                json!({ "id": number, "op": "if", "condition": self.test(*c, place), "operands": [place[a], place[b]] })
            }
        }
    }

    fn test(&self, id: CondId, place: &HashMap<ExprId, usize>) -> Value {
        match &self.program.exprs[id] {
            Cond::Index(constraint) => json!({ "test": "index", "constraint": self.constraint(constraint) }),
            Cond::Compare(op, a, b) => json!({ "test": comparison(*op), "operands": [place[a], place[b]] }),
            Cond::Not(a) => json!({ "test": "not", "of": [self.test(*a, place)] }),
            Cond::And(a, b) => json!({ "test": "and", "of": [self.test(*a, place), self.test(*b, place)] }),
            Cond::Or(a, b) => json!({ "test": "or", "of": [self.test(*a, place), self.test(*b, place)] }),
        }
    }

    fn constraints(&self, constraints: &[Constraint]) -> Vec<Value> {
        constraints.iter().map(|constraint| self.constraint(constraint)).collect()
    }

    fn constraint(&self, constraint: &Constraint) -> Value {
        let relation = match constraint.relation {
            Relation::NonNegative => ">= 0",
            Relation::Zero => "== 0",
        };
        let text = print::constraint(&self.program.params, &self.borrowed(), constraint);
        json!({ "text": text, "relation": relation, "affine": self.affine(&constraint.affine) })
    }

    fn affines(&self, affines: &[Affine]) -> Vec<Value> {
        affines.iter().map(|affine| self.affine(affine)).collect()
    }

    fn affine(&self, affine: &Affine) -> Value {
        let (mut terms, mut floors) = (Map::new(), Vec::new());
        for (atom, factor) in affine.terms() {
            match atom {
                Atom::Index(position) => {
                    terms.insert(self.names[*position as usize].clone(), integer(factor));
                }
                Atom::Param(ParamId(param)) => {
                    terms.insert(self.program.params[*param as usize].name.clone(), integer(factor));
                }
                Atom::Floor(inner, divisor) => floors
                    .push(json!({ "factor": integer(factor), "of": self.affine(inner), "divisor": integer(divisor) })),
            }
        }
        let text = print::affine(&self.program.params, &self.borrowed(), affine);
        json!({ "text": text, "terms": terms, "floors": floors, "constant": integer(affine.offset()) })
    }

    fn borrowed(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }
}

pub fn integer(value: &Int) -> Value {
    i64::try_from(value).map_or_else(|_| json!(value.to_string()), |small| json!(small))
}

/// JSON has no infinities and no NaN.
pub fn real(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { json!(value.to_string().to_lowercase()) }
}

fn comparison(op: Comparison) -> &'static str {
    match op {
        Comparison::Lt => "<",
        Comparison::Le => "<=",
        Comparison::Eq => "==",
    }
}
