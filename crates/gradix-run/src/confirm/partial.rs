//! The derivative of every scalar operation at a number, by formulas apart from the rules that `derive` uses.

use gradix::program::{BinaryOp, UnaryOp};
use gradix::scalar::Slope;

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
    match op.row().slope {
        Slope::Plain(slope) => slope(x).into(),
        Slope::Cancels(slope, magnitude) => Partial { value: slope(x), magnitude: magnitude(x) },
        Slope::Unknown => f64::NAN.into(),
    }
}

/// `∂op(x, y)/∂x` and `∂op(x, y)/∂y`; ties of `min` and `max` share it evenly.
pub fn binary(op: BinaryOp, x: f64, y: f64) -> [Partial; 2] {
    (op.row().slopes)(x, y).map(Partial::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradix::scalar::BINARY;

    #[test]
    fn partial_derivatives_agree_with_differences() {
        const STEP: f64 = 1e-5;
        let close = |partial: Partial, ahead: f64, behind: f64| {
            let slope = (ahead - behind) / (2.0 * STEP);
            (partial.value - slope).abs() <= 1e-6 * (1.0 + slope.abs()) || slope.is_nan()
        };
        assert_eq!(unary(UnaryOp::Stop, 0.3).value, 0.0);
        let known = |op: &&UnaryOp| !matches!(op.row().slope, Slope::Unknown) && **op != UnaryOp::Stop;
        for &op in UnaryOp::ALL.iter().filter(known) {
            for x in [-0.7, 0.3, 0.8, 1.6] {
                assert!(close(unary(op, x), op.apply(x + STEP), op.apply(x - STEP)), "{op:?} at {x}");
            }
        }
        for op in BINARY.iter().map(|row| row.op) {
            for (x, y) in [(0.4, 1.7), (1.2, -0.6)] {
                let [by_x, by_y] = binary(op, x, y);
                assert!(close(by_x, op.apply(x + STEP, y), op.apply(x - STEP, y)), "{op:?} at {x}, {y}");
                assert!(close(by_y, op.apply(x, y + STEP), op.apply(x, y - STEP)), "{op:?} at {x}, {y}");
            }
        }
    }
}
