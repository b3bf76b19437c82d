//! `logsumexp` as a maximum and a sum of exponentials; `stop`, which has done its work, goes.
//!
//! ```text
//! T[i] = logsumexp[j] x[i,j]        m[i] = max[j] x[i,j]
//! p[i,j] = exp(x[i,j] - T[i])       c[i] = if abs(m[i]) < inf then m[i] else max(min(m[i], 3e38), -3e38)
//!                                   s[i] = sum[j] exp(x[i,j] - c[i])
//!                                   T[i] = c[i] + log(s[i])
//!                                   p[i,j] = exp(x[i,j] - c[i]) / s[i]
//! ```
//!
//! So the exponentials of a softmax are those of its sum. The shift `c` is finite: where all terms are -inf, the sum is 0 and
//! its logarithm -inf; where one is +inf, so is the sum.

use crate::lift;
use crate::program::build;
use crate::program::expr::{Rewriter, Rules};
use crate::program::{BinaryOp, Comparison, Definition, Expr, ExprId, Exprs, Program, ReduceOp, TensorId, UnaryOp};
use std::collections::HashMap;

/// A shift in the place of an infinite one: large, so that finite terms vanish beside an infinite one, and finite in f32, too.
const MAX_SHIFT: f64 = 3e38;

/// Writes out every `logsumexp`, and drops every `stop`.
pub fn write_out(program: &mut Program) {
    let mut written = Written::default();
    for definition in std::mem::take(&mut program.definitions) {
        match definition.reduction {
            Some(ReduceOp::LogSumExp) => {
                let parts = parts(program, &definition);
                written.0.insert(definition.tensor, parts);
            }
            _ => program.definitions.push(definition),
        }
    }
    let mut rewriter = Rewriter::default();
    for definition in &mut program.definitions {
        definition.body = rewriter.rewrite(&mut program.exprs, definition.body, &mut written);
    }
}

/// The shift and the sum of each `logsumexp`.
#[derive(Default)]
struct Written(HashMap<TensorId, (TensorId, TensorId)>);

/// Defines the shift, the sum, and what they give.
fn parts(program: &mut Program, definition: &Definition) -> (TensorId, TensorId) {
    let (rank, outputs) = (definition.rank, definition.outputs());
    let name = program[definition.tensor].name.clone();
    let [largest, shift, sum] = ["max", "shift", "sum"].map(|part| program.add_nested(format!("{name}_{part}"), rank));
    let pointwise = |program: &mut Program, tensor, body| {
        let indices = definition.indices[..rank].to_vec();
        lift::define_pointwise(program, tensor, indices, definition.assumptions.clone(), body);
    };
    program.definitions.push(Definition { tensor: largest, reduction: Some(ReduceOp::Max), ..definition.clone() });
    let exprs = &mut program.exprs;
    let largest = exprs.access(largest, outputs.clone());
    let body = finite(exprs, largest);
    pointwise(program, shift, body);
    let exprs = &mut program.exprs;
    let [shifted, total] = [shift, sum].map(|tensor| exprs.access(tensor, outputs.clone()));
    let difference = build::subtract(exprs, definition.body, shifted);
    let body = build::unary(exprs, UnaryOp::Exp, difference);
    let logarithm = build::unary(exprs, UnaryOp::Log, total);
    let result = build::add(exprs, shifted, logarithm);
    let summed = Definition { tensor: sum, reduction: Some(ReduceOp::Sum), body, ..definition.clone() };
    program.definitions.push(summed);
    pointwise(program, definition.tensor, result);
    (shift, sum)
}

/// The number itself, or the nearest one that is finite; NaN stays.
fn finite(exprs: &mut Exprs, number: ExprId) -> ExprId {
    let [most, least, infinite] = [MAX_SHIFT, -MAX_SHIFT, f64::INFINITY].map(|value| exprs.constant(value));
    let magnitude = build::unary(exprs, UnaryOp::Abs, number);
    let is_finite = build::compare(exprs, Comparison::Lt, magnitude, infinite);
    let bounded = build::binary(exprs, BinaryOp::Min, number, most);
    let bounded = build::binary(exprs, BinaryOp::Max, bounded, least);
    build::select(exprs, is_finite, number, bounded)
}

impl Rules for Written {
    fn unary(&mut self, exprs: &mut Exprs, op: UnaryOp, a: ExprId) -> ExprId {
        match op {
            UnaryOp::Stop => a,
            UnaryOp::Exp => self.exponential(exprs, a),
            _ => exprs.add(Expr::Unary(op, a)),
        }
    }
}

impl Written {
    /// `exp(a)`, divided by sums where `a` has something subtracted from it that is written out.
    fn exponential(&self, exprs: &mut Exprs, mut a: ExprId) -> ExprId {
        let mut sums = Vec::new();
        while let Some((shifted, sum)) = self.shifted(exprs, a, false) {
            a = shifted;
            sums.push(sum);
        }
        let value = exprs.add(Expr::Unary(UnaryOp::Exp, a));
        sums.into_iter().fold(value, |value, sum| exprs.add(Expr::Binary(BinaryOp::Div, value, sum)))
    }

    /// A sum of terms with the shift in the place of one that is subtracted, and the sum that belongs to it. `negative` is the
    /// sign of `id`.
    fn shifted(&self, exprs: &mut Exprs, id: ExprId, negative: bool) -> Option<(ExprId, ExprId)> {
        match exprs[id].clone() {
            Expr::Access(tensor, subscripts) if negative => {
                let (shift, sum) = *self.0.get(&tensor)?;
                Some((exprs.access(shift, subscripts.clone()), exprs.access(sum, subscripts)))
            }
            Expr::Unary(UnaryOp::Neg, a) => {
                let (a, sum) = self.shifted(exprs, a, !negative)?;
                Some((exprs.add(Expr::Unary(UnaryOp::Neg, a)), sum))
            }
            Expr::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) => {
                if let Some((a, sum)) = self.shifted(exprs, a, negative) {
                    return Some((exprs.add(Expr::Binary(op, a, b)), sum));
                }
                let (b, sum) = self.shifted(exprs, b, negative != (op == BinaryOp::Sub))?;
                Some((exprs.add(Expr::Binary(op, a, b)), sum))
            }
            _ => None,
        }
    }
}
