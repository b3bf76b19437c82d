//! What the rows of the tables of scalar operations are made of, besides numbers and functions of numbers.

use super::UnaryOp;

/// What the adjoint becomes on its way through a function of `x` with the value `y`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Derivative {
    /// The derivative is 0 wherever there is one.
    Zero,
    /// `number * adjoint * term * …`
    Times(f64, &'static [Term]),
    /// `number * adjoint / term`
    Over(f64, Term),
    /// `if 0 < x then adjoint else 0`
    WherePositive,
    /// The language has no function for it; with a hint for those who ask.
    Missing(&'static str),
}

/// A part of a derivative: an expression of `x` and `y`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Term {
    /// `x`
    X,
    /// `y`
    Y,
    /// `1`
    One,
    /// `number * a`
    Scaled(f64, &'static Term),
    /// `a^2`
    Square(&'static Term),
    /// `a + b`
    Sum(&'static Term, &'static Term),
    /// `a - b`
    Difference(&'static Term, &'static Term),
    /// `-a`
    Negative(&'static Term),
    /// `function(a)`
    Call(UnaryOp, &'static Term),
}

/// The derivative as a number, written apart from [`Derivative`] and in another form where there is one.
#[derive(Clone, Copy, Debug)]
pub enum Slope {
    /// A number whose rounding errors are in proportion to it.
    Plain(fn(f64) -> f64),
    /// Where [`Derivative`] is the small difference of larger numbers, and how large these are.
    Cancels(fn(f64) -> f64, fn(f64) -> f64),
    /// There is no function for it.
    Unknown,
}

/// Whether a value is finite for finite arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finite {
    /// For all of them.
    Always,
    /// Arguments of moderate size are enough for infinity.
    UntilOverflow,
    /// There are arguments, other than by overflow, for which it is infinite or NaN.
    NotEverywhere,
}

/// Where a function has kinks or jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinks {
    /// It is smooth.
    Nowhere,
    /// At 0.
    AtZero,
    /// At multiples of 1/2, or some of them.
    AtHalves,
}

/// How LaTeX writes an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latex {
    /// As the operators are written.
    Sign,
    /// As an exponent.
    Power,
    /// A command before the arguments in parentheses.
    Command(&'static str),
    /// The name in the language, upright.
    Upright,
    /// What stands before and after the argument.
    Around(&'static str, &'static str),
}

/// How C writes an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum C {
    /// As its argument.
    Argument,
    /// An operator.
    Sign(&'static str),
    /// `gx_NAME`, which this file of `emit/c/library` defines.
    Function(&'static str),
}
