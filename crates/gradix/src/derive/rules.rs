//! The derivative of every scalar operation: `adjoint` times the partial derivative.
//!
//! Functions of one value have theirs in their table; those of two operands are here.
//! `x` is the operand and `y` the value of the operation, so that a rule can use it again.
//! At a kink the derivative is 0; ties of `min` and `max` share it evenly.

use crate::diagnostic::Diagnostic;
use crate::program::build::{self, divide, multiply, scale, subtract, unary, whole_power};
use crate::program::{BinaryOp, Cond, ExprId, Exprs, UnaryOp};
use crate::scalar::{Derivative, Term};

/// `adjoint * ∂op(x)/∂x`; `None` where that is 0 everywhere.
pub fn through_unary(
    exprs: &mut Exprs,
    op: UnaryOp,
    x: ExprId,
    y: ExprId,
    adjoint: ExprId,
) -> Result<Option<ExprId>, Diagnostic> {
    let e = exprs;
    Ok(Some(match op.row().derivative {
        Derivative::Zero => return Ok(None),
        Derivative::Times(number, terms) => {
            let terms: Vec<ExprId> = terms.iter().map(|part| term(e, part, x, y)).collect();
            let scaled = times_number(e, number, adjoint);
            terms.into_iter().fold(scaled, |product, d| multiply(e, product, d))
        }
        Derivative::Over(number, divisor) => {
            let d = term(e, &divisor, x, y);
            let scaled = times_number(e, number, adjoint);
            divide(e, scaled, d)
        }
        Derivative::WherePositive => {
            let zero = e.constant(0.0);
            let c = build::less(e, zero, x);
            build::select(e, c, adjoint, zero)
        }
        Derivative::Missing(hint) => {
            let message = format!("the derivative of '{}' is not a function of this language", op.name());
            return Err(Diagnostic::error("no-derivative", message).hint(hint));
        }
    }))
}

fn term(e: &mut Exprs, part: &Term, x: ExprId, y: ExprId) -> ExprId {
    let inner = |e: &mut Exprs, part| term(e, part, x, y);
    match part {
        Term::X => x,
        Term::Y => y,
        Term::One => e.constant(1.0),
        Term::Scaled(number, a) => {
            let a = inner(e, a);
            scale(e, *number, a)
        }
        Term::Square(a) => {
            let a = inner(e, a);
            whole_power(e, a, 2.0)
        }
        Term::Sum(a, b) => {
            let (a, b) = (inner(e, a), inner(e, b));
            build::add(e, a, b)
        }
        Term::Difference(a, b) => {
            let (a, b) = (inner(e, a), inner(e, b));
            subtract(e, a, b)
        }
        Term::Negative(a) => {
            let a = inner(e, a);
            build::negate(e, a)
        }
        Term::Call(op, a) => {
            let a = inner(e, a);
            unary(e, *op, a)
        }
    }
}

fn times_number(e: &mut Exprs, number: f64, a: ExprId) -> ExprId {
    match number {
        1.0 => a,
        -1.0 => build::negate(e, a),
        _ => scale(e, number, a),
    }
}

/// `adjoint * ∂op(a, b)/∂a` and the same for `b`; `None` where that is 0 everywhere.
pub fn through_binary(
    exprs: &mut Exprs,
    op: BinaryOp,
    (a, b): (ExprId, ExprId),
    y: ExprId,
    adjoint: ExprId,
    wanted: (bool, bool),
) -> (Option<ExprId>, Option<ExprId>) {
    let e = exprs;
    let first = wanted.0.then(|| match op {
        BinaryOp::Add | BinaryOp::Sub => adjoint,
        BinaryOp::Mul => multiply(e, adjoint, b),
        BinaryOp::Div => divide(e, adjoint, b),
        BinaryOp::Pow => through_base(e, a, b, adjoint),
        BinaryOp::Min => shared(e, a, b, adjoint),
        BinaryOp::Max => shared(e, b, a, adjoint),
        BinaryOp::Atan2 => {
            let d = sum_of_squares(e, a, b);
            let n = multiply(e, adjoint, b);
            divide(e, n, d)
        }
        BinaryOp::Hypot => along(e, a, y, adjoint),
    });
    let second = wanted.1.then(|| match op {
        BinaryOp::Add => adjoint,
        BinaryOp::Sub => build::negate(e, adjoint),
        BinaryOp::Mul => multiply(e, adjoint, a),
        BinaryOp::Div => {
            let n = multiply(e, adjoint, y);
            let n = build::negate(e, n);
            divide(e, n, b)
        }
        BinaryOp::Pow => through_exponent(e, a, b, y, adjoint),
        BinaryOp::Min => shared(e, b, a, adjoint),
        BinaryOp::Max => shared(e, a, b, adjoint),
        BinaryOp::Atan2 => {
            let d = sum_of_squares(e, a, b);
            let n = multiply(e, adjoint, a);
            let n = build::negate(e, n);
            divide(e, n, d)
        }
        BinaryOp::Hypot => along(e, b, y, adjoint),
    });
    (first, second)
}

/// `n * x^(n - 1)` for a number `n`; otherwise `y * x^(y - 1)`, and 0 where `x` and `y` are 0.
fn through_base(e: &mut Exprs, x: ExprId, y: ExprId, adjoint: ExprId) -> ExprId {
    if let Some(n) = e.as_constant(y) {
        if n == 0.0 {
            return e.constant(0.0);
        }
        let d = whole_power(e, x, n - 1.0);
        let a = scale(e, n, adjoint);
        return multiply(e, a, d);
    }
    let (zero, one) = (e.constant(0.0), e.constant(1.0));
    let less = subtract(e, y, one);
    let d = build::power(e, x, less);
    let d = multiply(e, y, d);
    let d = multiply(e, adjoint, d);
    let (x_zero, y_zero) = (build::equal(e, x, zero), build::equal(e, y, zero));
    let both = e.add_condition(Cond::And(x_zero, y_zero));
    build::select(e, both, zero, d)
}

/// `x^y * log(x)`, and 0 where `x` is 0 and `y` positive.
fn through_exponent(e: &mut Exprs, x: ExprId, y: ExprId, value: ExprId, adjoint: ExprId) -> ExprId {
    let zero = e.constant(0.0);
    let d = unary(e, UnaryOp::Log, x);
    let d = multiply(e, value, d);
    let d = multiply(e, adjoint, d);
    let (x_zero, y_positive) = (build::equal(e, x, zero), build::less(e, zero, y));
    let both = e.add_condition(Cond::And(x_zero, y_positive));
    build::select(e, both, zero, d)
}

/// All of it where `chosen < other`, half where they are equal.
fn shared(e: &mut Exprs, chosen: ExprId, other: ExprId, adjoint: ExprId) -> ExprId {
    let zero = e.constant(0.0);
    let half = scale(e, 0.5, adjoint);
    let tie = build::equal(e, chosen, other);
    let tied = build::select(e, tie, half, zero);
    let wins = build::less(e, chosen, other);
    build::select(e, wins, adjoint, tied)
}

/// `adjoint * a / y`, and 0 at the kink of `hypot`.
fn along(e: &mut Exprs, a: ExprId, y: ExprId, adjoint: ExprId) -> ExprId {
    let zero = e.constant(0.0);
    let kink = build::equal(e, y, zero);
    let n = multiply(e, adjoint, a);
    let d = divide(e, n, y);
    build::select(e, kink, zero, d)
}

fn sum_of_squares(e: &mut Exprs, a: ExprId, b: ExprId) -> ExprId {
    let (a, b) = (whole_power(e, a, 2.0), whole_power(e, b, 2.0));
    build::add(e, a, b)
}
