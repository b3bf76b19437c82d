//! Fourier-Motzkin elimination for all right-hand sides at once (section 4.2, algorithm 3 of the paper).
//!
//! The system `A x ≥ b` is brought into a form in which the range of each variable follows from `b` and the variables
//! after it, and in which `b` alone decides whether there is a (rational) solution at all:
//!
//! ```text
//! max(L^i b + L̂^i x_{i+1…M}) ≤ x_i ≤ min(H^i b + Ĥ^i x_{i+1…M}),    0 ≥ F b
//! ```
//!
//! Each row during the elimination is a non-negative combination `y` of the original rows with `y A = 0` in the
//! eliminated columns. It is redundant for all `b` exactly if another row combines a proper subset of the same original
//! rows (then `y` is no extreme ray of the cone of these combinations), so only minimal subsets are kept.

use dashu_int::ops::{DivEuclid, Gcd};

use crate::matrix::dot;
use crate::{Int, Matrix, TooLarge};

/// The solved form of a system `A x ≥ b`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FourierMotzkin {
    /// The bounds of each variable, in the order of the variables.
    pub levels: Vec<Level>,
    /// The matrix `F`: there is a rational solution exactly if no element of `F b` is positive.
    pub feasibility: Matrix,
}

/// The bounds of one variable `x_i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// `L^i`, the lower bounds' factors of `b`, times the divisors.
    pub l: Matrix,
    /// `L̂^i`, the lower bounds' factors of `x_{i+1…M}`, times the divisors.
    pub l_hat: Matrix,
    /// The positive divisor of each lower bound.
    pub l_divisors: Vec<Int>,
    /// `H^i`, the upper bounds' factors of `b`, times the divisors.
    pub h: Matrix,
    /// `Ĥ^i`, the upper bounds' factors of `x_{i+1…M}`, times the divisors.
    pub h_hat: Matrix,
    /// The positive divisor of each upper bound.
    pub h_divisors: Vec<Int>,
}

/// Solves `A x ≥ b` for every `b`. Fails if more than `limit` rows would be needed at a time.
///
/// ```
/// use gradix_int::{fourier_motzkin, Matrix};
/// // x ≥ b0, x - y ≤ -b1, y ≤ -b2
/// let a = Matrix::from_rows(&[&[1, 0], &[-1, 1], &[0, -1]]);
/// let solved = fourier_motzkin(&a, 100).unwrap();
/// let b = [2.into(), 1.into(), (-5).into()];
/// assert!(solved.is_feasible(&b));
/// assert_eq!(solved.range(1, &b, &[]), (Some(3.into()), Some(5.into())));
/// assert_eq!(solved.range(0, &b, &[4.into()]), (Some(2.into()), Some(3.into())));
/// ```
pub fn fourier_motzkin(a: &Matrix, limit: usize) -> Result<FourierMotzkin, TooLarge> {
    let mut rows: Vec<Combination> = (0..a.rows()).map(|i| Combination::original(a, i)).collect();
    let mut levels = Vec::with_capacity(a.columns());
    for variable in 0..a.columns() {
        let (bounding, mut other): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| !row.x[variable].is_zero());
        let (lower, upper): (Vec<_>, Vec<_>) = bounding.into_iter().partition(|row| row.x[variable] > Int::ZERO);
        let count = other.len() + lower.len().saturating_mul(upper.len());
        if count > limit {
            return Err(TooLarge { rows: count, limit });
        }
        levels.push(Level::new(&lower, &upper, variable, a));
        for below in &lower {
            other.extend(upper.iter().map(|above| below.without(variable, above)));
        }
        rows = minimal(other);
    }
    let feasibility = Matrix::from_vectors(a.rows(), rows.into_iter().map(|row| row.b).collect());
    Ok(FourierMotzkin { levels, feasibility })
}

impl FourierMotzkin {
    /// Whether `A x ≥ b` has a rational solution.
    pub fn is_feasible(&self, b: &[Int]) -> bool {
        self.feasibility.apply(b).iter().all(|bound| *bound <= Int::ZERO)
    }

    /// The least and the greatest integer that `x_variable` may be, given the values of the variables `after` it;
    /// nothing where it is unbounded. The range may be empty, with the least above the greatest.
    pub fn range(&self, variable: usize, b: &[Int], after: &[Int]) -> (Option<Int>, Option<Int>) {
        let level = &self.levels[variable];
        let lower = |i: usize| {
            let bound: Int = dot(level.l.row(i), b) + dot(level.l_hat.row(i), after);
            -(-bound).div_euclid(&level.l_divisors[i])
        };
        let upper = |i: usize| {
            let bound: Int = dot(level.h.row(i), b) + dot(level.h_hat.row(i), after);
            bound.div_euclid(&level.h_divisors[i])
        };
        ((0..level.l.rows()).map(lower).max(), (0..level.h.rows()).map(upper).min())
    }

    /// All integer solutions of `A x ≥ b`, the last variable varying slowest; nothing if there are more than `limit` or
    /// a variable is unbounded.
    pub fn points(&self, b: &[Int], limit: usize) -> Option<Vec<Vec<Int>>> {
        let mut points = Vec::new();
        let complete = !self.is_feasible(b) || self.collect(b, Vec::new(), limit, &mut points);
        complete.then_some(points)
    }

    /// Adds the solutions that end in `after`; false if they can't be enumerated.
    fn collect(&self, b: &[Int], after: Vec<Int>, limit: usize, points: &mut Vec<Vec<Int>>) -> bool {
        if after.len() == self.levels.len() {
            points.push(after);
            return points.len() <= limit;
        }
        let (Some(mut value), Some(last)) = self.range(self.levels.len() - 1 - after.len(), b, &after) else {
            return false;
        };
        while value <= last {
            let mut extended = Vec::with_capacity(after.len() + 1);
            extended.push(value.clone());
            extended.extend_from_slice(&after);
            if !self.collect(b, extended, limit, points) {
                return false;
            }
            value += Int::ONE;
        }
        true
    }
}

/// The inequality `x · variables ≥ b · right-hand side`, where `b` are the factors of the original rows in it.
struct Combination {
    x: Vec<Int>,
    b: Vec<Int>,
}

impl Combination {
    fn original(a: &Matrix, i: usize) -> Combination {
        let mut b = vec![Int::ZERO; a.rows()];
        b[i] = Int::ONE;
        Combination { x: a.row(i).to_vec(), b }
    }

    /// The sum of this lower and that upper bound, scaled so that the variable cancels and no common divisor is left.
    fn without(&self, variable: usize, upper: &Combination) -> Combination {
        let (factor, upper_factor) = (-&upper.x[variable], &self.x[variable]);
        let sum = |low: &[Int], high: &[Int]| -> Vec<Int> {
            low.iter().zip(high).map(|(low, high)| low * &factor + high * upper_factor).collect()
        };
        let (mut x, mut b) = (sum(&self.x, &upper.x), sum(&self.b, &upper.b));
        let nonzero = x.iter().chain(&b).filter(|entry| !entry.is_zero());
        let divisor = nonzero.fold(Int::ZERO, |divisor, entry| divisor.gcd(entry).into());
        x.iter_mut().chain(&mut b).for_each(|entry| *entry /= &divisor);
        Combination { x, b }
    }

    /// Whether `other` combines a part of the same original rows, or all of them.
    fn covers(&self, other: &Combination) -> bool {
        self.b.iter().zip(&other.b).all(|(own, its)| its.is_zero() || !own.is_zero())
    }
}

/// The combinations of minimal sets of original rows, the first of equal ones.
fn minimal(rows: Vec<Combination>) -> Vec<Combination> {
    let is_minimal = |(index, row): (usize, &Combination)| {
        let is_better = |(other_index, other): (usize, &Combination)| {
            other_index != index && row.covers(other) && (other_index < index || !other.covers(row))
        };
        !rows.iter().enumerate().any(is_better)
    };
    let kept: Vec<bool> = rows.iter().enumerate().map(is_minimal).collect();
    rows.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(row, _)| row).collect()
}

impl Level {
    /// Lower bounds are `a x_i ≥ B b - A x_{i+1…M}`, upper bounds `a x_i ≤ -B b + A x_{i+1…M}`, both with `a > 0`.
    fn new(lower: &[Combination], upper: &[Combination], variable: usize, a: &Matrix) -> Level {
        let after = variable + 1..a.columns();
        let block = |rows: &[Combination], columns: usize, entry: &dyn Fn(&Combination, usize) -> Int| {
            Matrix::from_fn(rows.len(), columns, |i, j| entry(&rows[i], j))
        };
        Level {
            l: block(lower, a.rows(), &|row, j| row.b[j].clone()),
            l_hat: block(lower, after.len(), &|row, j| -&row.x[after.start + j]),
            l_divisors: lower.iter().map(|row| row.x[variable].clone()).collect(),
            h: block(upper, a.rows(), &|row, j| -&row.b[j]),
            h_hat: block(upper, after.len(), &|row, j| row.x[after.start + j].clone()),
            h_divisors: upper.iter().map(|row| -&row.x[variable]).collect(),
        }
    }
}
