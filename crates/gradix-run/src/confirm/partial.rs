//! The derivative of every scalar operation at a number, by the formulas of a table of derivatives.
//!
//! They are written apart from the rules that `derive` uses, and in other forms where there are any.

use gradix::program::{BinaryOp, UnaryOp};
use gradix::scalar;
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10};

/// A partial derivative, and the magnitude that its rounding errors are to be compared with: where it is the small
/// difference of larger numbers in the program that is examined, that of these numbers.
#[derive(Clone, Copy, Debug)]
pub struct Partial {
    pub value: f64,
    pub magnitude: f64,
}

impl From<f64> for Partial {
    fn from(value: f64) -> Self {
        Partial { value, magnitude: value.abs() }
    }
}

/// `∂op(x)/∂x`; 0 at a kink.
pub fn unary(op: UnaryOp, x: f64) -> Partial {
    let value = match op {
        UnaryOp::Neg => -1.0,
        UnaryOp::Exp | UnaryOp::Expm1 => x.exp(),
        UnaryOp::Log => 1.0 / x,
        UnaryOp::Log1p => 1.0 / (1.0 + x),
        UnaryOp::Log2 => 1.0 / (x * LN_2),
        UnaryOp::Log10 => 1.0 / (x * LN_10),
        UnaryOp::Sqrt => 0.5 / x.sqrt(),
        UnaryOp::Cbrt => 1.0 / (3.0 * x.cbrt().powi(2)),
        UnaryOp::Sin => x.cos(),
        UnaryOp::Cos => -x.sin(),
        UnaryOp::Tan => 1.0 / x.cos().powi(2),
        UnaryOp::Asin => 1.0 / ((1.0 - x) * (1.0 + x)).sqrt(),
        UnaryOp::Acos => -1.0 / ((1.0 - x) * (1.0 + x)).sqrt(),
        UnaryOp::Atan => 1.0 / (1.0 + x * x),
        UnaryOp::Sinh => x.cosh(),
        UnaryOp::Cosh => x.sinh(),
        UnaryOp::Tanh => return Partial { value: 1.0 / x.cosh().powi(2), magnitude: 1.0 },
        UnaryOp::Asinh => 1.0 / x.hypot(1.0),
        UnaryOp::Acosh => 1.0 / ((x - 1.0) * (x + 1.0)).sqrt(),
        UnaryOp::Atanh => 1.0 / ((1.0 - x) * (1.0 + x)),
        UnaryOp::Erf => FRAC_2_SQRT_PI * (-x * x).exp(),
        UnaryOp::Erfc => -FRAC_2_SQRT_PI * (-x * x).exp(),
        UnaryOp::Sigmoid => {
            let value = 1.0 / ((1.0 + x.exp()) * (1.0 + (-x).exp()));
            return Partial { value, magnitude: scalar::sigmoid(x) };
        }
        UnaryOp::Relu => f64::from(x > 0.0),
        UnaryOp::Softplus => 1.0 / (1.0 + (-x).exp()),
        UnaryOp::Abs => scalar::sign(x),
        UnaryOp::Sign | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round => 0.0,
        UnaryOp::Lgamma => scalar::digamma(x),
        UnaryOp::Digamma => scalar::trigamma(x),
        UnaryOp::Trigamma => f64::NAN,
    };
    value.into()
}

/// `∂op(x, y)/∂x` and `∂op(x, y)/∂y`; ties of `min` and `max` share it evenly.
pub fn binary(op: BinaryOp, x: f64, y: f64) -> [Partial; 2] {
    let [by_x, by_y] = match op {
        BinaryOp::Add => [1.0, 1.0],
        BinaryOp::Sub => [1.0, -1.0],
        BinaryOp::Mul => [y, x],
        BinaryOp::Div => [1.0 / y, -x / (y * y)],
        BinaryOp::Pow => [power_by_base(x, y), power_by_exponent(x, y)],
        BinaryOp::Min => [share(x, y), share(y, x)],
        BinaryOp::Max => [share(y, x), share(x, y)],
        BinaryOp::Atan2 => [y / (x * x + y * y), -x / (x * x + y * y)],
        BinaryOp::Hypot if x == 0.0 && y == 0.0 => [0.0, 0.0],
        BinaryOp::Hypot => [x / x.hypot(y), y / x.hypot(y)],
    };
    [by_x.into(), by_y.into()]
}

fn power_by_base(x: f64, y: f64) -> f64 {
    if y == 0.0 { 0.0 } else { y * scalar::pow(x, y - 1.0) }
}

fn power_by_exponent(x: f64, y: f64) -> f64 {
    if x == 0.0 && y > 0.0 { 0.0 } else { scalar::pow(x, y) * x.ln() }
}

/// The part of the smaller of two values that `a` is.
fn share(a: f64, b: f64) -> f64 {
    if a == b { 0.5 } else { f64::from(a < b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_derivatives_agree_with_differences() {
        const STEP: f64 = 1e-5;
        let close = |partial: Partial, ahead: f64, behind: f64| {
            let slope = (ahead - behind) / (2.0 * STEP);
            (partial.value - slope).abs() <= 1e-6 * (1.0 + slope.abs()) || slope.is_nan()
        };
        for &op in UnaryOp::ALL.iter().filter(|op| **op != UnaryOp::Trigamma) {
            for x in [-0.7, 0.3, 0.8, 1.6] {
                assert!(close(unary(op, x), op.apply(x + STEP), op.apply(x - STEP)), "{op:?} at {x}");
            }
        }
        use BinaryOp::*;
        for op in [Add, Sub, Mul, Div, Pow, Min, Max, Atan2, Hypot] {
            for (x, y) in [(0.4, 1.7), (1.2, -0.6)] {
                let [by_x, by_y] = binary(op, x, y);
                assert!(close(by_x, op.apply(x + STEP, y), op.apply(x - STEP, y)), "{op:?} at {x}, {y}");
                assert!(close(by_y, op.apply(x, y + STEP), op.apply(x, y - STEP)), "{op:?} at {x}, {y}");
            }
        }
    }
}
