//! Definitions with numbers for the sizes, as [`interp`](crate::interp()) and [`confirm`](crate::confirm()) evaluate them:
//! one point at a time, nodes of the body in order.

use crate::files::Dtype;
use gradix::Int;
use gradix::diagnostic::Diagnostic;
use gradix::program::{
    Affine, Atom, BinaryOp, Comparison, Cond, CondId, Constraint, Definition, Expr, ExprId, ParamId, Program, Range,
    ReduceOp, Relation, TensorId, UnaryOp,
};
use std::collections::HashMap;

/// An index expression with numbers for the sizes.
pub struct Linear {
    terms: Vec<(usize, i128)>,
    floors: Vec<(Linear, i128, i128)>,
    constant: i128,
}

impl Linear {
    pub fn new(affine: &Affine, sizes: &[Int]) -> Result<Self, Diagnostic> {
        let mut linear = Linear { terms: Vec::new(), floors: Vec::new(), constant: number(affine.offset())? };
        for (atom, factor) in affine.terms() {
            let factor = number(factor)?;
            match atom {
                Atom::Index(i) => linear.terms.push((*i as usize, factor)),
                Atom::Param(ParamId(p)) => linear.constant += factor * number(&sizes[*p as usize])?,
                Atom::Floor(inner, divisor) => {
                    linear.floors.push((Linear::new(inner, sizes)?, number(divisor)?, factor))
                }
            }
        }
        Ok(linear)
    }

    pub fn at(&self, point: &[i64]) -> i128 {
        let plain: i128 = self.terms.iter().map(|(i, c)| c * point[*i] as i128).sum();
        let floors: i128 = self.floors.iter().map(|(inner, d, c)| c * inner.at(point).div_euclid(*d)).sum();
        self.constant + plain + floors
    }
}

fn number(value: &Int) -> Result<i128, Diagnostic> {
    let small = i64::try_from(value).map(i128::from);
    small.map_err(|_| failed("a number in an index expression is too large"))
}

pub fn failed(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("run", message)
}

/// The values of an index, by its bounds.
pub struct Bounds {
    low: Vec<Linear>,
    high: Vec<Linear>,
}

impl Bounds {
    /// The values, where earlier indices are at `point`.
    pub fn at(&self, point: &[i64]) -> std::ops::RangeInclusive<i128> {
        let low = self.low.iter().map(|l| l.at(point)).max().unwrap_or(0);
        let high = self.high.iter().map(|h| h.at(point)).min().unwrap_or(-1);
        low..=high
    }
}

pub enum Node {
    Constant(f64),
    Index(Linear),
    Access(TensorId, Vec<Linear>),
    Unary(UnaryOp, usize),
    Binary(BinaryOp, usize, usize),
    Select(Test, usize, usize),
}

pub enum Test {
    Index(Linear, Relation),
    Compare(Comparison, usize, usize),
    Not(Box<Test>),
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
}

/// A definition with numbers for the sizes: nodes in order, the last one the body.
pub struct Code {
    pub rank: usize,
    pub indices: Vec<Bounds>,
    conditions: Vec<(Linear, Relation)>,
    pub reduction: Option<ReduceOp>,
    pub nodes: Vec<Node>,
}

impl Code {
    pub fn new(program: &Program, definition: &Definition, sizes: &[Int], dtype: Dtype) -> Result<Self, Diagnostic> {
        let order = program.exprs.postorder(definition.body);
        let place: HashMap<ExprId, usize> = order.iter().enumerate().map(|(i, id)| (*id, i)).collect();
        let mut nodes = Vec::with_capacity(order.len());
        for id in &order {
            nodes.push(match &program.exprs[*id] {
                Expr::Constant(number) => Node::Constant(dtype.round(number.value())),
                Expr::Index(affine) => Node::Index(Linear::new(affine, sizes)?),
                Expr::Access(tensor, subscripts) => Node::Access(*tensor, linears(subscripts, sizes)?),
                Expr::Unary(op, a) => Node::Unary(*op, place[a]),
                Expr::Binary(op, a, b) => Node::Binary(*op, place[a], place[b]),
                Expr::Select(c, a, b) => Node::Select(test(program, *c, &place, sizes)?, place[a], place[b]),
            });
        }
        let bounds = |range: &Range| -> Result<Bounds, Diagnostic> {
            Ok(Bounds { low: linears(&range.low, sizes)?, high: linears(&range.high, sizes)? })
        };
        let indices = definition.indices.iter().map(|i| bounds(&i.range)).collect::<Result<_, _>>()?;
        let condition = |c: &Constraint| Ok((Linear::new(&c.affine, sizes)?, c.relation));
        let conditions = definition.conditions.iter().map(condition).collect::<Result<_, Diagnostic>>()?;
        Ok(Code { rank: definition.rank, indices, conditions, reduction: definition.reduction, nodes })
    }

    /// Whether a point inside the ranges is one of the reduction.
    pub fn includes(&self, point: &[i64]) -> bool {
        self.conditions.iter().all(|(linear, relation)| holds(linear.at(point), *relation))
    }
}

fn linears(affines: &[Affine], sizes: &[Int]) -> Result<Vec<Linear>, Diagnostic> {
    affines.iter().map(|affine| Linear::new(affine, sizes)).collect()
}

fn test(program: &Program, id: CondId, place: &HashMap<ExprId, usize>, sizes: &[Int]) -> Result<Test, Diagnostic> {
    let part = |id: &CondId| test(program, *id, place, sizes).map(Box::new);
    Ok(match &program.exprs[id] {
        Cond::Index(constraint) => Test::Index(Linear::new(&constraint.affine, sizes)?, constraint.relation),
        Cond::Compare(op, a, b) => Test::Compare(*op, place[a], place[b]),
        Cond::Not(a) => Test::Not(part(a)?),
        Cond::And(a, b) => Test::And(part(a)?, part(b)?),
        Cond::Or(a, b) => Test::Or(part(a)?, part(b)?),
    })
}

pub fn holds(value: i128, relation: Relation) -> bool {
    match relation {
        Relation::NonNegative => value >= 0,
        Relation::Zero => value == 0,
    }
}

/// Where an element lies in an array of this shape; `None` outside of it.
pub fn offset(place: &[i64], shape: &[usize]) -> Option<usize> {
    place.iter().zip(shape).try_fold(0, |offset, (&position, &extent)| {
        let position = usize::try_from(position).ok().filter(|position| *position < extent)?;
        Some(offset * extent + position)
    })
}
