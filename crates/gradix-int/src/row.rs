//! Affine forms with integer coefficients, the rows of systems.

use std::fmt;

use dashu_int::ops::{Abs, DivEuclid, Gcd};

use crate::Int;
use crate::matrix::dot;

/// The affine form `coefficients · x + constant`: as an inequality it is `≥ 0`, as an equality `= 0`.
///
/// ```
/// use gradix_int::Row;
/// let row = Row::from_i64(&[1, -2, 0], 3);
/// assert_eq!(row.to_string(), "x0 - 2*x1 + 3");
/// assert_eq!(row.evaluate(&[1.into(), 5.into(), 7.into()]), (-6).into());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    /// One factor per variable.
    pub coefficients: Vec<Int>,
    /// What is added.
    pub constant: Int,
}

impl Row {
    /// The form `coefficients · x + constant`.
    pub fn new(coefficients: Vec<Int>, constant: Int) -> Row {
        Row { coefficients, constant }
    }

    /// The form `coefficients · x + constant`.
    pub fn from_i64(coefficients: &[i64], constant: i64) -> Row {
        Row { coefficients: coefficients.iter().map(|&c| c.into()).collect(), constant: constant.into() }
    }

    /// The constant form.
    pub fn constant(dimension: usize, constant: Int) -> Row {
        Row { coefficients: vec![Int::ZERO; dimension], constant }
    }

    /// The form `x_variable`.
    pub fn variable(dimension: usize, variable: usize) -> Row {
        let mut row = Row::constant(dimension, Int::ZERO);
        row.coefficients[variable] = Int::ONE;
        row
    }

    /// The number of variables.
    pub fn dimension(&self) -> usize {
        self.coefficients.len()
    }

    /// The value at `x`.
    pub fn evaluate(&self, x: &[Int]) -> Int {
        dot(&self.coefficients, x) + &self.constant
    }

    /// Whether no variable occurs.
    pub fn is_constant(&self) -> bool {
        self.coefficients.iter().all(Int::is_zero)
    }

    /// The form with all signs changed.
    pub fn negated(&self) -> Row {
        Row { coefficients: self.coefficients.iter().map(|c| -c).collect(), constant: -&self.constant }
    }

    /// The inequality that holds at exactly those integer points where this one does not: `-row - 1 ≥ 0`.
    pub fn complement(&self) -> Row {
        let mut complement = self.negated();
        complement.constant -= Int::ONE;
        complement
    }

    /// `factor · self + other_factor · other`
    pub fn combine(&self, factor: &Int, other: &Row, other_factor: &Int) -> Row {
        let sum = |a: &Int, b: &Int| factor * a + other_factor * b;
        let coefficients = self.coefficients.iter().zip(&other.coefficients).map(|(a, b)| sum(a, b)).collect();
        Row { coefficients, constant: sum(&self.constant, &other.constant) }
    }

    /// The greatest common divisor of the coefficients, zero for a constant form.
    pub fn divisor(&self) -> Int {
        let mut divisor = Int::ZERO;
        for coefficient in self.coefficients.iter().filter(|c| !c.is_zero()) {
            divisor = if divisor.is_zero() { coefficient.abs() } else { divisor.gcd(coefficient).into() };
            if divisor.is_one() {
                break;
            }
        }
        divisor
    }

    /// The tightest inequality with the same integer points: coefficients without a common divisor, constant rounded down.
    pub fn tightened(mut self) -> Row {
        let divisor = self.divisor();
        if divisor > Int::ONE {
            self.coefficients.iter_mut().for_each(|c| *c /= &divisor);
            self.constant = self.constant.div_euclid(divisor);
        }
        self
    }

    /// The variable and its coefficient, if there is exactly one.
    pub(crate) fn single(&self) -> Option<(usize, &Int)> {
        let mut nonzero = self.coefficients.iter().enumerate().filter(|(_, c)| !c.is_zero());
        let first = nonzero.next()?;
        nonzero.next().is_none().then_some(first)
    }
}

/// As a sum, with the variables called `x0`, `x1`, ….
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms = self.coefficients.iter().enumerate().filter(|(_, c)| !c.is_zero());
        let mut is_first = true;
        for (variable, coefficient) in terms {
            write_sign(f, coefficient, is_first)?;
            match coefficient.abs() {
                magnitude if magnitude.is_one() => write!(f, "x{variable}")?,
                magnitude => write!(f, "{magnitude}*x{variable}")?,
            }
            is_first = false;
        }
        if is_first || !self.constant.is_zero() {
            write_sign(f, &self.constant, is_first)?;
            write!(f, "{}", (&self.constant).abs())?;
        }
        Ok(())
    }
}

fn write_sign(f: &mut fmt::Formatter<'_>, value: &Int, is_first: bool) -> fmt::Result {
    match (*value < Int::ZERO, is_first) {
        (true, true) => write!(f, "-"),
        (true, false) => write!(f, " - "),
        (false, true) => Ok(()),
        (false, false) => write!(f, " + "),
    }
}
