//! The functions of one value: the closed list, and a table with a row for each.
//!
//! A new function is a variant and its row; `value` and the file of `c` say where its coefficients are.

use super::columns::Derivative::{Missing, Over, Times, WherePositive, Zero};
use super::columns::Finite::{Always, NotEverywhere, UntilOverflow};
use super::columns::Kinks::{AtHalves, AtZero, Nowhere};
use super::columns::Latex::{Around, Command, Upright};
use super::columns::Slope::{Cancels, Plain, Unknown};
use super::columns::Term::{Call, Difference, Negative, One, Scaled, Square, Sum, X, Y};
use super::columns::{C, Derivative, Finite, Kinks, Latex, Slope};
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10, LOG2_E, LOG10_E};

/// Functions of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `exp`
    Exp,
    /// `expm1`
    Expm1,
    /// `log`
    Log,
    /// `log1p`
    Log1p,
    /// `log2`
    Log2,
    /// `log10`
    Log10,
    /// `sqrt`
    Sqrt,
    /// `cbrt`
    Cbrt,
    /// `sin`
    Sin,
    /// `cos`
    Cos,
    /// `tan`
    Tan,
    /// `asin`
    Asin,
    /// `acos`
    Acos,
    /// `atan`
    Atan,
    /// `sinh`
    Sinh,
    /// `cosh`
    Cosh,
    /// `tanh`
    Tanh,
    /// `asinh`
    Asinh,
    /// `acosh`
    Acosh,
    /// `atanh`
    Atanh,
    /// `erf`
    Erf,
    /// `erfc`
    Erfc,
    /// `sigmoid`
    Sigmoid,
    /// `relu`
    Relu,
    /// `softplus`
    Softplus,
    /// `abs`
    Abs,
    /// `sign`
    Sign,
    /// `floor`
    Floor,
    /// `ceil`
    Ceil,
    /// `round`
    Round,
    /// `lgamma`
    Lgamma,
    /// `digamma`
    Digamma,
    /// `trigamma`
    Trigamma,
    /// `stop`: its argument, as if it depended on nothing.
    Stop,
}

/// All that is known of a function of one value.
#[derive(Clone, Copy, Debug)]
pub struct Unary {
    /// Which one it is.
    pub op: UnaryOp,
    /// The name in the language (`-` for negation).
    pub name: &'static str,
    /// How LaTeX writes it.
    pub latex: Latex,
    /// Its value in f64.
    pub value: fn(f64) -> f64,
    /// How C writes it.
    pub c: C,
    /// The rule that `derive` applies.
    pub derivative: Derivative,
    /// The derivative as a number, which `derivative` is held to.
    pub slope: Slope,
    /// What it costs, in additions.
    pub weight: f64,
    /// Where its values are finite.
    pub finite: Finite,
    /// Where it has kinks or jumps.
    pub kinks: Kinks,
}

impl UnaryOp {
    /// Every function of one value.
    pub const ALL: &[UnaryOp] = &all();

    /// Its row of the table.
    pub fn row(self) -> &'static Unary {
        &UNARY[self as usize]
    }

    /// The name in the language (`-` for negation).
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The value.
    pub fn apply(self, x: f64) -> f64 {
        (self.row().value)(x)
    }
}

const SIMPLE: f64 = 1.0;
const ROOT: f64 = 4.0;
const ELEMENTARY: f64 = 12.0;

use UnaryOp as U;

/// The functions of one value, in the order of their variants.
#[rustfmt::skip]
pub const UNARY: &[Unary] = &[
    Unary {
        op: U::Neg, name: "-", latex: Latex::Sign, value: |x| -x, c: C::Sign("-"),
        derivative: Times(-1.0, &[]), slope: Plain(|_| -1.0),
        weight: SIMPLE, finite: Always, kinks: Nowhere,
    },
    Unary {
        op: U::Exp, name: "exp", latex: Command("\\exp"), value: libm::exp, c: C::Function("exp.c"),
        derivative: Times(1.0, &[Y]), slope: Plain(|x| x.exp()),
        weight: ELEMENTARY, finite: UntilOverflow, kinks: Nowhere,
    },
    Unary {
        op: U::Expm1, name: "expm1", latex: Upright, value: libm::expm1, c: C::Function("expm1.c"),
        derivative: Times(1.0, &[Call(U::Exp, &X)]), slope: Plain(|x| x.exp()),
        weight: ELEMENTARY, finite: UntilOverflow, kinks: Nowhere,
    },
    Unary {
        op: U::Log, name: "log", latex: Command("\\log"), value: libm::log, c: C::Function("log.c"),
        derivative: Over(1.0, X), slope: Plain(|x| 1.0 / x),
        weight: ELEMENTARY, finite: NotEverywhere, kinks: Nowhere,
    },
    Unary {
        op: U::Log1p, name: "log1p", latex: Upright, value: libm::log1p, c: C::Function("log1p.c"),
        derivative: Over(1.0, Sum(&X, &One)), slope: Plain(|x| 1.0 / (1.0 + x)),
        weight: ELEMENTARY, finite: NotEverywhere, kinks: Nowhere,
    },
    Unary {
        op: U::Log2, name: "log2", latex: Command("\\log_{2}"), value: libm::log2, c: C::Function("log2.c"),
        derivative: Over(LOG2_E, X), slope: Plain(|x| 1.0 / (x * LN_2)),
        weight: ELEMENTARY, finite: NotEverywhere, kinks: Nowhere,
    },
    Unary {
        op: U::Log10, name: "log10", latex: Command("\\log_{10}"), value: libm::log10, c: C::Function("log2.c"),
        derivative: Over(LOG10_E, X), slope: Plain(|x| 1.0 / (x * LN_10)),
        weight: ELEMENTARY, finite: NotEverywhere, kinks: Nowhere,
    },
    Unary {
        op: U::Sqrt, name: "sqrt", latex: Around("\\sqrt{", "}"), value: libm::sqrt, c: C::Function("sqrt.c"),
        derivative: Over(0.5, Y), slope: Plain(|x| 0.5 / x.sqrt()),
        weight: ROOT, finite: NotEverywhere, kinks: Nowhere,
    },
    Unary {
        op: U::Cbrt, name: "cbrt", latex: Around("\\sqrt[3]{", "}"), value: libm::cbrt, c: C::Function("cbrt.c"),
        derivative: Over(1.0, Scaled(3.0, &Square(&Y))), slope: Plain(|x| 1.0 / (3.0 * x.cbrt().powi(2))),
        weight: ELEMENTARY, finite: Always, kinks: Nowhere,
    },
    Unary {
        op: U::Sin, name: "sin", latex: Command("\\sin"), value: libm::sin, c: C::Function("sin.c"),
        derivative: Times(1.0, &[Call(U::Cos, &X)]), slope: Plain(|x| x.cos()),
        weight: ELEMENTARY, finite: Always, kinks: Nowhere,
    },
    Unary {
        op: U::Cos, name: "cos", latex: Command("\\cos"), value: libm::cos, c: C::Function("sin.c"),
        derivative: Times(-1.0, &[Call(U::Sin, &X)]), slope: Plain(|x| -x.sin()),
        weight: ELEMENTARY, finite: Always, kinks: Nowhere,
    },
    Unary {
        op: U::Tan, name: "tan", latex: Command("\\tan"), value: libm::tan, c: C::Function("tan.c"),
        derivative: Times(1.0, &[Sum(&One, &Square(&Y))]), slope: Plain(|x| 1.0 / x.cos().powi(2)),
        weight: ELEMENTARY, finite: NotEverywhere, kinks: Nowhere,
    },
    Unary {
        op: U::Asin, name: "asin", latex: Command("\\arcsin"), value: libm::asin, c: C::Function("asin.c"),
        derivative: Over(1.0, Call(U::Sqrt, &Difference(&One, &Square(&X)))),
        slope: Plain(|x| 1.0 / ((1.0 - x) * (1.0 + x)).sqrt()),
        weight: ELEMENTARY, finite: NotEverywhere, kinks: Nowhere,
    },
    Unary {
        op: U::Acos, name: "acos", latex: Command("\\arccos"), value: libm::acos, c: C::Function("asin.c"),
        derivative: Over(-1.0, Call(U::Sqrt, &Difference(&One, &Square(&X)))),
        slope: Plain(|x| -1.0 / ((1.0 - x) * (1.0 + x)).sqrt()),
        weight: ELEMENTARY, finite: NotEverywhere, kinks: Nowhere,
    },
    Unary {
        op: U::Atan, name: "atan", latex: Command("\\arctan"), value: libm::atan, c: C::Function("atan.c"),
        derivative: Over(1.0, Sum(&One, &Square(&X))), slope: Plain(|x| 1.0 / (1.0 + x * x)),
        weight: ELEMENTARY, finite: Always, kinks: Nowhere,
    },
    Unary {
        op: U::Sinh, name: "sinh", latex: Command("\\sinh"), value: libm::sinh, c: C::Function("sinh.c"),
        derivative: Times(1.0, &[Call(U::Cosh, &X)]), slope: Plain(|x| x.cosh()),
        weight: ELEMENTARY, finite: UntilOverflow, kinks: Nowhere,
    },
    Unary {
        op: U::Cosh, name: "cosh", latex: Command("\\cosh"), value: libm::cosh, c: C::Function("sinh.c"),
        derivative: Times(1.0, &[Call(U::Sinh, &X)]), slope: Plain(|x| x.sinh()),
        weight: ELEMENTARY, finite: UntilOverflow, kinks: Nowhere,
    },
    Unary {
        op: U::Tanh, name: "tanh", latex: Command("\\tanh"), value: libm::tanh, c: C::Function("tanh.c"),
        derivative: Times(1.0, &[Difference(&One, &Square(&Y))]), slope: Cancels(|x| 1.0 / x.cosh().powi(2), |_| 1.0),
        weight: ELEMENTARY, finite: Always, kinks: Nowhere,
    },
    Unary {
        op: U::Asinh, name: "asinh", latex: Upright, value: libm::asinh, c: C::Function("asinh.c"),
        derivative: Over(1.0, Call(U::Sqrt, &Sum(&Square(&X), &One))), slope: Plain(|x| 1.0 / x.hypot(1.0)),
        weight: ELEMENTARY, finite: Always, kinks: Nowhere,
    },
    Unary {
        op: U::Acosh, name: "acosh", latex: Upright, value: super::acosh, c: C::Function("asinh.c"),
        derivative: Over(1.0, Call(U::Sqrt, &Difference(&Square(&X), &One))),
        slope: Plain(|x| 1.0 / ((x - 1.0) * (x + 1.0)).sqrt()),
        weight: ELEMENTARY, finite: NotEverywhere, kinks: Nowhere,
    },
    Unary {
        op: U::Atanh, name: "atanh", latex: Upright, value: libm::atanh, c: C::Function("asinh.c"),
        derivative: Over(1.0, Difference(&One, &Square(&X))), slope: Plain(|x| 1.0 / ((1.0 - x) * (1.0 + x))),
        weight: ELEMENTARY, finite: NotEverywhere, kinks: Nowhere,
    },
    Unary {
        op: U::Erf, name: "erf", latex: Upright, value: libm::erf, c: C::Function("erf.c"),
        derivative: Times(FRAC_2_SQRT_PI, &[Call(U::Exp, &Negative(&Square(&X)))]),
        slope: Plain(|x| FRAC_2_SQRT_PI * (-x * x).exp()),
        weight: ELEMENTARY, finite: Always, kinks: Nowhere,
    },
    Unary {
        op: U::Erfc, name: "erfc", latex: Upright, value: libm::erfc, c: C::Function("erf.c"),
        derivative: Times(-FRAC_2_SQRT_PI, &[Call(U::Exp, &Negative(&Square(&X)))]),
        slope: Plain(|x| -FRAC_2_SQRT_PI * (-x * x).exp()),
        weight: ELEMENTARY, finite: Always, kinks: Nowhere,
    },
    Unary {
        op: U::Sigmoid, name: "sigmoid", latex: Upright, value: super::sigmoid, c: C::Function("sigmoid.c"),
        derivative: Times(1.0, &[Y, Difference(&One, &Y)]),
        slope: Cancels(|x| 1.0 / ((1.0 + x.exp()) * (1.0 + (-x).exp())), super::sigmoid),
        weight: ELEMENTARY, finite: Always, kinks: Nowhere,
    },
    Unary {
        op: U::Relu, name: "relu", latex: Upright, value: super::relu, c: C::Function("relu.c"),
        derivative: WherePositive, slope: Plain(|x| f64::from(x > 0.0)),
        weight: SIMPLE, finite: Always, kinks: AtZero,
    },
    Unary {
        op: U::Softplus, name: "softplus", latex: Upright, value: super::softplus, c: C::Function("softplus.c"),
        derivative: Times(1.0, &[Call(U::Sigmoid, &X)]), slope: Plain(|x| 1.0 / (1.0 + (-x).exp())),
        weight: ELEMENTARY, finite: Always, kinks: Nowhere,
    },
    Unary {
        op: U::Abs, name: "abs", latex: Around("\\left|", "\\right|"), value: libm::fabs, c: C::Function("signs.c"),
        derivative: Times(1.0, &[Call(U::Sign, &X)]), slope: Plain(super::sign),
        weight: SIMPLE, finite: Always, kinks: AtZero,
    },
    Unary {
        op: U::Sign, name: "sign", latex: Upright, value: super::sign, c: C::Function("sign.c"),
        derivative: Zero, slope: Plain(|_| 0.0),
        weight: SIMPLE, finite: Always, kinks: AtZero,
    },
    Unary {
        op: U::Floor, name: "floor", latex: Around("\\left\\lfloor ", "\\right\\rfloor"),
        value: libm::floor, c: C::Function("round.c"),
        derivative: Zero, slope: Plain(|_| 0.0),
        weight: SIMPLE, finite: Always, kinks: AtHalves,
    },
    Unary {
        op: U::Ceil, name: "ceil", latex: Around("\\left\\lceil ", "\\right\\rceil"),
        value: libm::ceil, c: C::Function("round.c"),
        derivative: Zero, slope: Plain(|_| 0.0),
        weight: SIMPLE, finite: Always, kinks: AtHalves,
    },
    Unary {
        op: U::Round, name: "round", latex: Upright, value: libm::round, c: C::Function("round.c"),
        derivative: Zero, slope: Plain(|_| 0.0),
        weight: SIMPLE, finite: Always, kinks: AtHalves,
    },
    Unary {
        op: U::Lgamma, name: "lgamma", latex: Upright, value: libm::lgamma, c: C::Function("lgamma.c"),
        derivative: Times(1.0, &[Call(U::Digamma, &X)]), slope: Plain(super::digamma),
        weight: ELEMENTARY, finite: NotEverywhere, kinks: Nowhere,
    },
    Unary {
        op: U::Digamma, name: "digamma", latex: Command("\\psi"), value: super::digamma, c: C::Function("digamma.c"),
        derivative: Times(1.0, &[Call(U::Trigamma, &X)]), slope: Plain(super::trigamma),
        weight: ELEMENTARY, finite: NotEverywhere, kinks: Nowhere,
    },
    Unary {
        op: U::Trigamma, name: "trigamma", latex: Command("\\psi_{1}"),
        value: super::trigamma, c: C::Function("digamma.c"),
        derivative: Missing("'lgamma' can be derived twice and 'digamma' once"), slope: Unknown,
        weight: ELEMENTARY, finite: NotEverywhere, kinks: Nowhere,
    },
    Unary {
        op: U::Stop, name: "stop", latex: Upright, value: |x| x, c: C::Argument,
        derivative: Zero, slope: Plain(|_| 0.0),
        weight: 0.0, finite: Always, kinks: Nowhere,
    },
];

/// The variants, each of which has to stand in its own row.
const fn all() -> [UnaryOp; UNARY.len()] {
    let mut all = [UnaryOp::Neg; UNARY.len()];
    let mut place = 0;
    while place < all.len() {
        all[place] = UNARY[place].op;
        assert!(all[place] as usize == place, "rows are in the order of the variants");
        place += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::Term;
    use super::*;

    fn number(term: &Term, x: f64, y: f64) -> f64 {
        let inner = |term| number(term, x, y);
        match term {
            X => x,
            Y => y,
            One => 1.0,
            Scaled(factor, a) => factor * inner(a),
            Square(a) => inner(a).powi(2),
            Sum(a, b) => inner(a) + inner(b),
            Difference(a, b) => inner(a) - inner(b),
            Negative(a) => -inner(a),
            Call(op, a) => op.apply(inner(a)),
        }
    }

    #[test]
    fn derivatives_and_slopes_agree() {
        for row in UNARY {
            let (Plain(slope) | Cancels(slope, _)) = row.slope else { continue };
            for x in [-0.7, 0.3, 0.8, 1.6] {
                let part = |term| number(term, x, row.op.apply(x));
                let derivative = match row.derivative {
                    Zero => 0.0,
                    Times(factor, terms) => terms.iter().map(part).fold(factor, |product, term| product * term),
                    Over(factor, divisor) => factor / part(&divisor),
                    WherePositive => f64::from(x > 0.0),
                    Missing(_) => panic!("{} has a slope, but no derivative", row.name),
                };
                let defined = !row.op.apply(x).is_nan();
                assert!(!defined || (derivative - slope(x)).abs() <= 1e-13 * slope(x).abs(), "{} at {x}", row.name);
            }
        }
    }
}
