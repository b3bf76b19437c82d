//! The scalar operations: two tables that tell all there is to know of each, and their values in f64.
//!
//! [`UNARY`] and [`BINARY`] have a row for every operation: its name, value, derivative and cost, where it is finite,
//! and how C and LaTeX write it. Whoever needs to know something of an operation looks it up there.
//!
//! Every function of the language is here under its own name, and gives the same bits on every platform: the
//! elementary ones are those of the `libm` crate, never the system's. NaN in gives NaN out, except where IEEE 754
//! says otherwise (`pow(1, NaN)`, `hypot(inf, NaN)`).
//!
//! `digamma` and `trigamma` follow Abramowitz & Stegun, section 6.3 and 6.4: the recurrence carries a positive
//! argument up to where the asymptotic series has full precision, and reflection carries a negative one to the
//! positive side. The relative error is about 1e-15, except near the roots of `digamma`, where the absolute one is.

mod binary;
mod columns;
mod real;
mod unary;

pub use binary::{BINARY, Binary, BinaryOp};
pub use columns::{C, Derivative, Finite, Kinks, Latex, Slope, Term};
pub use real::Real;
pub use unary::{UNARY, Unary, UnaryOp};

use std::f64::consts::PI;

pub use libm::{
    acos, asin, asinh, atan, atan2, atanh, cbrt, ceil, cos, cosh, erf, erfc, exp, expm1, fabs as abs, floor, hypot,
    lgamma, log, log1p, log2, log10, pow, round, sin, sinh, sqrt, tan, tanh,
};

/// The row of a function of the language: of one value, or of two.
pub enum Function {
    /// Of one value.
    One(&'static Unary),
    /// Of two values.
    Two(&'static Binary),
}

impl Function {
    /// How LaTeX writes it.
    pub fn latex(&self) -> Latex {
        match self {
            Function::One(row) => row.latex,
            Function::Two(row) => row.latex,
        }
    }

    /// How C writes it.
    pub fn c(&self) -> C {
        match self {
            Function::One(row) => row.c,
            Function::Two(row) => row.c,
        }
    }
}

/// The function that a program calls by this name.
pub fn function(name: &str) -> Option<Function> {
    let one = UNARY.iter().find(|row| row.name == name && row.op != UnaryOp::Neg).map(Function::One);
    one.or_else(|| BINARY.iter().find(|row| row.function == Some(name)).map(Function::Two))
}

/// The names of all functions.
pub const NAMES: &[&str] = &names();

const fn names() -> [&'static str; UNARY.len() - 1 + BinaryOp::FUNCTIONS.len()] {
    let mut names = [""; UNARY.len() - 1 + BinaryOp::FUNCTIONS.len()];
    let mut place = 0;
    while place < names.len() {
        names[place] = match place < UNARY.len() - 1 {
            // The first row is the negation.
            true => UNARY[place + 1].name,
            false => BinaryOp::FUNCTIONS[place + 1 - UNARY.len()].0,
        };
        place += 1;
    }
    names
}

/// The inverse of `cosh`; NaN below 1 (where `libm` has numbers for some arguments).
pub fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

/// The logistic function `1 / (1 + exp(-x))`, without overflow.
pub fn sigmoid(x: f64) -> f64 {
    let decay = exp(-abs(x));
    if x < 0.0 { decay / (1.0 + decay) } else { 1.0 / (1.0 + decay) }
}

/// `log(1 + exp(x))`, without overflow or cancellation.
pub fn softplus(x: f64) -> f64 {
    relu(x) + log1p(exp(-abs(x)))
}

/// `max(x, 0)`.
pub fn relu(x: f64) -> f64 {
    max(x, 0.0)
}

/// -1, 0 or 1.
pub fn sign(x: f64) -> f64 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        // 0 for both zeros, and NaN for NaN.
        x + 0.0
    }
}

/// The larger of two numbers; the second if they are equal.
pub fn max(x: f64, y: f64) -> f64 {
    if x > y || x.is_nan() { x } else { y }
}

/// The smaller of two numbers; the second if they are equal.
pub fn min(x: f64, y: f64) -> f64 {
    if x < y || x.is_nan() { x } else { y }
}

/// The derivative of `lgamma`.
///
/// -inf at 0, inf at -0, and NaN at the other poles, where the two sides have different signs.
pub fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        -1.0 / x
    } else if x < 0.0 {
        digamma_of_positive(1.0 - x) - PI * cot_pi(x)
    } else {
        digamma_of_positive(x)
    }
}

/// The derivative of `digamma`; inf at the poles.
pub fn trigamma(x: f64) -> f64 {
    if x <= 0.0 {
        let ratio = PI / sin(PI * offset_from_integer(x));
        ratio * ratio - trigamma_of_positive(1.0 - x)
    } else {
        trigamma_of_positive(x)
    }
}

/// From here on the asymptotic series below have full precision.
const ASYMPTOTIC: f64 = 10.0;

/// `ψ(x) = ψ(x+1) - 1/x`, and `ψ(x) ~ log x - 1/(2x) - Σ B₂ₖ / (2k x²ᵏ)`.
fn digamma_of_positive(mut x: f64) -> f64 {
    const SERIES: [f64; 7] =
        [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32760.0, 1.0 / 12.0];
    let mut shift = 0.0;
    while x < ASYMPTOTIC {
        shift += 1.0 / x;
        x += 1.0;
    }
    let z = 1.0 / x / x;
    log(x) - 0.5 / x - z * polynomial(&SERIES, z) - shift
}

/// `ψ₁(x) = ψ₁(x+1) + 1/x²`, and `ψ₁(x) ~ 1/x + 1/(2x²) + Σ B₂ₖ / x²ᵏ⁺¹`.
fn trigamma_of_positive(mut x: f64) -> f64 {
    const SERIES: [f64; 9] = [
        1.0 / 6.0,
        -1.0 / 30.0,
        1.0 / 42.0,
        -1.0 / 30.0,
        5.0 / 66.0,
        -691.0 / 2730.0,
        7.0 / 6.0,
        -3617.0 / 510.0,
        43867.0 / 798.0,
    ];
    let mut shift = 0.0;
    while x < ASYMPTOTIC {
        shift += 1.0 / x / x;
        x += 1.0;
    }
    let z = 1.0 / x / x;
    shift + (1.0 + 0.5 / x + z * polynomial(&SERIES, z)) / x
}

/// `Σ coefficients[k] z^k`.
fn polynomial(coefficients: &[f64], z: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * z + coefficient)
}

/// `cot(πx)`, and NaN where that is infinite.
fn cot_pi(x: f64) -> f64 {
    let offset = offset_from_integer(x);
    if offset == 0.0 {
        f64::NAN
    } else if abs(offset) < 0.25 {
        1.0 / tan(PI * offset)
    } else {
        tan(PI * (0.5 - abs(offset))).copysign(offset)
    }
}

/// `x` less the nearest integer, without rounding; NaN at the infinities.
fn offset_from_integer(x: f64) -> f64 {
    x - round(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds `function` to values computed with 60 digits.
    fn check(function: fn(f64) -> f64, relative: f64, absolute: f64, expected: &[(f64, f64)]) {
        for &(x, y) in expected {
            let found = function(x);
            assert!(abs(found - y) <= relative * abs(y) + absolute, "at {x:?}: found {found:?}, expected {y:?}");
        }
    }

    #[test]
    fn acosh_is_defined_from_one_on() {
        for x in [-f64::INFINITY, -1e300, -5.0, -2.5, -2.0, -1.0, 0.0, 0.5, 1.0 - f64::EPSILON, f64::NAN] {
            assert!(acosh(x).is_nan(), "at {x:?}");
        }
        check(acosh, 1e-15, 0.0, &[(1.0, 0.0), (1.5, 0.9624236501192069), (10.0, 2.993222846126381)]);
        assert_eq!(acosh(f64::INFINITY), f64::INFINITY);
    }

    #[test]
    fn digamma_is_exact_to_rounding() {
        #[rustfmt::skip]
        let expected = [
            (1e-300, -9.999999999999999e+299), (1e-10, -10000000000.577215), (0.001, -1000.5755719318103),
            (0.1, -10.423754940411076), (0.5, -1.9635100260214235), (1.0, -0.5772156649015329),
            (1.25, -0.22745353337626542), (1.4616321449683622, -9.241265521729427e-17), (1.5, 0.03648997397857652),
            (2.0, 0.42278433509846713), (3.7, 1.1671535393615113), (5.0, 1.5061176684318005),
            (9.999, 2.2516474172057355), (10.0, 2.251752589066721), (10.5, 2.3030010342976865),
            (25.0, 3.198742512851974), (123.456, 4.811829323828985), (100000.0, 11.512920464961896),
            (1e+16, 36.841361487904734), (1e+300, 690.7755278982137), (-1e-10, 9999999999.422785),
            (-0.001, 999.4211381978913), (-0.1, 9.245073050052948), (-0.25, 2.9141391202135276),
            (-0.5, 0.03648997397857652), (-0.504083008264455, 4.042965717222496e-15), (-0.75, -2.894120200042932),
            (-0.999, -999.5745709308084), (-1.001, 1000.4201391970025), (-1.5, 0.7031566406452432),
            (-1.573498473162391, -6.4658805047957276e-15), (-2.9999, -9998.743581706345), (-3.2, 5.635370221172645),
            (-10.25, 5.516858419886273), (-25.5, 3.2581581591584294), (-100.125, 12.195880442483347),
            (-1000.75, 3.7674118863554633), (-1000000.5, 13.815511557963816),
            (-4503599627370495.5, 36.04365338911715),
        ];
        check(digamma, 2e-15, 1e-15, &expected);
    }

    #[test]
    fn trigamma_is_exact_to_rounding() {
        #[rustfmt::skip]
        let expected = [
            (1e-100, 1e+200), (1e-10, 1e+20), (0.001, 1000001.6425331958), (0.1, 101.43329915079275),
            (0.5, 4.934802200544679), (1.0, 1.6449340668482264), (1.25, 1.1973291545071107),
            (1.4616321449683622, 0.9676722454476212), (1.5, 0.9348022005446793), (2.0, 0.6449340668482264),
            (3.7, 0.3100378576700383), (5.0, 0.22132295573711533), (9.999, 0.10517738667672887),
            (10.0, 0.10516633568168575), (10.5, 0.09991695605912673), (25.0, 0.04081066325722558),
            (123.456, 0.008132945834278198), (100000.0, 1.0000050000166667e-05), (1e+16, 1.0000000000000001e-16),
            (1e+300, 1e-300), (-1e-10, 1e+20), (-0.001, 1000001.6473414317), (-0.1, 101.92253995947719),
            (-0.25, 18.541879647671607), (-0.5, 8.934802200544679), (-0.504083008264455, 8.939798558792134),
            (-0.75, 18.975106932284888), (-0.999, 1000002.6445361981), (-1.001, 1000002.645344648),
            (-1.5, 9.379246644989124), (-1.573498473162391, 9.941513615924187), (-2.9999, 100000003.00561517),
            (-3.2, 28.298186402194034), (-10.25, 19.646252424622652), (-25.5, 9.831147601489777),
            (-100.125, 67.38393659650153), (-1000.75, 19.73821005070119),
        ];
        check(trigamma, 2e-15, 0.0, &expected);
    }

    #[test]
    fn lgamma_is_exact_to_rounding() {
        #[rustfmt::skip]
        let expected = [
            (1e-300, 690.7755278982137), (1e-10, 23.025850929882736), (0.1, 2.252712651734206),
            (0.5, 0.5723649429247001), (0.999, 0.0005780385328913802), (1.5, -0.12078223763524522),
            (2.001, 0.000423106734800117), (3.7, 1.428072326665388), (10.0, 12.801827480081469),
            (25.0, 54.78472939811232), (123.456, 469.6055471299295), (100000.0, 1051287.7089736569),
            (1e+16, 3.584136148790473e+17), (1e+300, 6.897755278982137e+302), (-1e-10, 23.025850929998178),
            (-0.1, 2.3689613327287886), (-0.5, 1.2655121234846454), (-1.5, 0.860047015376481),
            (-2.9999, 7.418706529543074), (-3.2, -0.37243213612996867), (-10.25, -14.20399790093109),
            (-100.125, -362.21044642584553),
        ];
        check(lgamma, 2e-15, 2e-15, &expected);
    }

    #[test]
    fn erf_is_exact_to_rounding() {
        #[rustfmt::skip]
        let expected = [
            (1e-300, 1.1283791670955126e-300), (1e-10, 1.1283791670955126e-10), (0.1, 0.1124629160182849),
            (0.5, 0.5204998778130465), (0.84, 0.7651427114549945), (1.0, 0.8427007929497149),
            (1.25, 0.9229001282564583), (2.0, 0.9953222650189527), (3.0, 0.9999779095030014),
            (5.9, 0.9999999999999999), (-0.3, -0.3286267594591274), (-2.5, -0.999593047982555),
        ];
        check(erf, 1e-15, 0.0, &expected);
    }

    #[test]
    fn erfc_keeps_its_precision_in_the_tail() {
        #[rustfmt::skip]
        let expected = [
            (1e-10, 0.999999999887162), (0.1, 0.887537083981715), (0.5, 0.4795001221869535),
            (1.0, 0.15729920705028513), (1.25, 0.07709987174354177), (2.0, 0.004677734981047266),
            (5.0, 1.537459794428035e-12), (10.0, 2.088487583762545e-45), (20.0, 5.395865611607901e-176),
            (26.5, 2.2109076642637343e-307), (-0.3, 1.3286267594591274), (-2.5, 1.999593047982555), (-6.0, 2.0),
        ];
        check(erfc, 1e-15, 0.0, &expected);
    }

    #[test]
    fn sigmoid_neither_overflows_nor_cancels() {
        #[rustfmt::skip]
        let expected = [
            (0.0, 0.5), (1e-10, 0.500000000025), (0.5, 0.6224593312018546), (3.0, 0.9525741268224333),
            (36.0, 0.9999999999999998), (100.0, 1.0), (-0.5, 0.37754066879814546), (-3.0, 0.04742587317756678),
            (-36.0, 2.3195228302435686e-16), (-700.0, 9.85967654375977e-305),
        ];
        check(sigmoid, 1e-15, 0.0, &expected);
    }

    #[test]
    fn softplus_neither_overflows_nor_cancels() {
        #[rustfmt::skip]
        let expected = [
            (0.0, std::f64::consts::LN_2), (1e-10, 0.6931471806099453), (0.5, 0.9740769841801067),
            (3.0, 3.048587351573742), (36.0, 36.0), (700.0, 700.0), (1e+300, 1e+300), (-0.5, 0.4740769841801067),
            (-3.0, 0.04858735157374206), (-36.0, 2.319522830243569e-16), (-700.0, 9.85967654375977e-305),
        ];
        check(softplus, 1e-15, 0.0, &expected);
    }

    #[test]
    fn digamma_at_its_poles_and_limits() {
        assert_eq!(digamma(0.0), f64::NEG_INFINITY);
        assert_eq!(digamma(-0.0), f64::INFINITY);
        assert_eq!(digamma(f64::INFINITY), f64::INFINITY);
        for x in [-1.0, -2.0, -1e300, f64::NEG_INFINITY, f64::NAN] {
            assert!(digamma(x).is_nan(), "at {x}");
        }
    }

    #[test]
    fn trigamma_at_its_poles_and_limits() {
        for x in [0.0, -0.0, -1.0, -2.0, -1e300] {
            assert_eq!(trigamma(x), f64::INFINITY, "at {x}");
        }
        assert_eq!(trigamma(f64::INFINITY), 0.0);
        assert!(trigamma(f64::NEG_INFINITY).is_nan() && trigamma(f64::NAN).is_nan());
    }

    #[test]
    fn lgamma_at_its_poles_and_limits() {
        for x in [0.0, -0.0, -1.0, -2.0, -1e300, f64::INFINITY] {
            assert_eq!(lgamma(x), f64::INFINITY, "at {x}");
        }
        assert!(lgamma(f64::NAN).is_nan());
    }

    #[test]
    fn sign_is_zero_at_both_zeros() {
        assert_eq!([sign(2.5), sign(-1e-300), sign(f64::NEG_INFINITY)], [1.0, -1.0, -1.0]);
        assert!(sign(0.0).to_bits() == 0 && sign(-0.0).to_bits() == 0);
    }

    #[test]
    fn round_takes_halves_away_from_zero() {
        assert_eq!([0.5, 1.5, -0.5, -2.5, 0.49999999999999994].map(round), [1.0, 2.0, -1.0, -3.0, 0.0]);
    }

    #[test]
    fn relu_is_zero_up_to_zero() {
        assert_eq!([-3.0, -0.0, 0.0, 2.0, f64::INFINITY].map(relu), [0.0, 0.0, 0.0, 2.0, f64::INFINITY]);
    }

    #[test]
    fn min_and_max_choose() {
        assert_eq!((min(1.0, 2.0), min(2.0, 1.0), max(1.0, 2.0), max(2.0, 1.0)), (1.0, 1.0, 2.0, 2.0));
    }

    #[test]
    fn nan_passes_through() {
        for function in [sigmoid, softplus, relu, sign, erf, erfc, abs, floor, ceil, round, expm1, log1p] {
            assert!(function(f64::NAN).is_nan());
        }
        for function in [min, max] {
            assert!(function(f64::NAN, 1.0).is_nan() && function(1.0, f64::NAN).is_nan());
        }
    }

    #[test]
    fn expm1_and_log1p_keep_small_arguments() {
        assert_eq!((expm1(1e-20), log1p(1e-20)), (1e-20, 1e-20));
    }
}
