//! The derivative of every scalar operation: `adjoint` times the partial derivative.
//!
//! `x` is the operand and `y` the value of the operation, so that a rule can use it again.
//! At a kink the derivative is 0; ties of `min` and `max` share it evenly.

use crate::build::{self, divide, multiply, scale, subtract, unary, whole_power};
use crate::diagnostic::Diagnostic;
use crate::guard;
use crate::program::{BinaryOp, Cond, ExprId, Exprs, UnaryOp};
use std::f64::consts;

/// `adjoint * ∂op(x)/∂x`; `None` where that is 0 everywhere.
pub fn through_unary(
    exprs: &mut Exprs,
    op: UnaryOp,
    x: ExprId,
    y: ExprId,
    adjoint: ExprId,
) -> Result<Option<ExprId>, Diagnostic> {
    let e = exprs;
    let one = e.constant(1.0);
    let square = |e: &mut Exprs, a| whole_power(e, a, 2.0);
    Ok(Some(match op {
        UnaryOp::Neg => build::negate(e, adjoint),
        UnaryOp::Exp => multiply(e, adjoint, y),
        UnaryOp::Expm1 => {
            let d = unary(e, UnaryOp::Exp, x);
            multiply(e, adjoint, d)
        }
        UnaryOp::Log => divide(e, adjoint, x),
        UnaryOp::Log1p => {
            let d = build::add(e, x, one);
            divide(e, adjoint, d)
        }
        UnaryOp::Log2 => {
            let a = scale(e, consts::LOG2_E, adjoint);
            divide(e, a, x)
        }
        UnaryOp::Log10 => {
            let a = scale(e, consts::LOG10_E, adjoint);
            divide(e, a, x)
        }
        UnaryOp::Sqrt => {
            let a = scale(e, 0.5, adjoint);
            divide(e, a, y)
        }
        UnaryOp::Cbrt => {
            let d = square(e, y);
            let d = scale(e, 3.0, d);
            divide(e, adjoint, d)
        }
        UnaryOp::Sin => {
            let d = unary(e, UnaryOp::Cos, x);
            multiply(e, adjoint, d)
        }
        UnaryOp::Cos => {
            let d = unary(e, UnaryOp::Sin, x);
            let a = build::negate(e, adjoint);
            multiply(e, a, d)
        }
        UnaryOp::Tan => {
            let d = square(e, y);
            let d = build::add(e, one, d);
            multiply(e, adjoint, d)
        }
        UnaryOp::Asin => {
            let d = root_of_one_minus_square(e, x);
            divide(e, adjoint, d)
        }
        UnaryOp::Acos => {
            let d = root_of_one_minus_square(e, x);
            let a = build::negate(e, adjoint);
            divide(e, a, d)
        }
        UnaryOp::Atan => {
            let d = square(e, x);
            let d = build::add(e, one, d);
            divide(e, adjoint, d)
        }
        UnaryOp::Sinh => {
            let d = unary(e, UnaryOp::Cosh, x);
            multiply(e, adjoint, d)
        }
        UnaryOp::Cosh => {
            let d = unary(e, UnaryOp::Sinh, x);
            multiply(e, adjoint, d)
        }
        UnaryOp::Tanh => {
            let d = square(e, y);
            let d = subtract(e, one, d);
            multiply(e, adjoint, d)
        }
        UnaryOp::Asinh => {
            let d = square(e, x);
            let d = build::add(e, d, one);
            let d = unary(e, UnaryOp::Sqrt, d);
            divide(e, adjoint, d)
        }
        UnaryOp::Acosh => {
            let d = square(e, x);
            let d = subtract(e, d, one);
            let d = unary(e, UnaryOp::Sqrt, d);
            divide(e, adjoint, d)
        }
        UnaryOp::Atanh => {
            let d = square(e, x);
            let d = subtract(e, one, d);
            divide(e, adjoint, d)
        }
        UnaryOp::Erf => {
            let d = bell(e, x);
            let a = scale(e, consts::FRAC_2_SQRT_PI, adjoint);
            multiply(e, a, d)
        }
        UnaryOp::Erfc => {
            let d = bell(e, x);
            let a = scale(e, -consts::FRAC_2_SQRT_PI, adjoint);
            multiply(e, a, d)
        }
        UnaryOp::Sigmoid => {
            let d = subtract(e, one, y);
            let a = multiply(e, adjoint, y);
            multiply(e, a, d)
        }
        UnaryOp::Relu => {
            let zero = e.constant(0.0);
            let c = build::less(e, zero, x);
            build::select(e, c, adjoint, zero)
        }
        UnaryOp::Softplus => {
            let d = unary(e, UnaryOp::Sigmoid, x);
            multiply(e, adjoint, d)
        }
        UnaryOp::Abs => {
            let d = unary(e, UnaryOp::Sign, x);
            multiply(e, adjoint, d)
        }
        UnaryOp::Sign | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round => return Ok(None),
        UnaryOp::Lgamma => {
            let d = unary(e, UnaryOp::Digamma, x);
            multiply(e, adjoint, d)
        }
        UnaryOp::Digamma => {
            let d = unary(e, UnaryOp::Trigamma, x);
            multiply(e, adjoint, d)
        }
        UnaryOp::Trigamma => {
            return Err(Diagnostic::error(
                "no-derivative",
                "the derivative of 'trigamma' is not a function of this language",
            )
            .hint("'lgamma' can be derived twice and 'digamma' once"));
        }
    }))
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

fn root_of_one_minus_square(e: &mut Exprs, x: ExprId) -> ExprId {
    let one = e.constant(1.0);
    let square = whole_power(e, x, 2.0);
    let rest = subtract(e, one, square);
    unary(e, UnaryOp::Sqrt, rest)
}

fn sum_of_squares(e: &mut Exprs, a: ExprId, b: ExprId) -> ExprId {
    let (a, b) = (whole_power(e, a, 2.0), whole_power(e, b, 2.0));
    build::add(e, a, b)
}

fn bell(e: &mut Exprs, x: ExprId) -> ExprId {
    let square = whole_power(e, x, 2.0);
    let negative = build::negate(e, square);
    unary(e, UnaryOp::Exp, negative)
}

/// `if not condition then value else 0`, written without `not` where possible.
pub fn unless(exprs: &mut Exprs, condition: crate::program::CondId, value: ExprId) -> ExprId {
    let zero = exprs.constant(0.0);
    let opposite = guard::negate(exprs, condition);
    build::select(exprs, opposite, value, zero)
}
