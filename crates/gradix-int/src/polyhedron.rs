//! Sets of integer points given by linear inequalities and equalities.
//!
//! Invariants of a [`Polyhedron`]: every row has `dimension` coefficients without a common divisor; the constants of
//! inequalities are rounded down to fit; the first coefficient of an equality is positive; no row is a constant, except that `-1 ≥ 0` is the only row of a set that was
//! found empty while it was built; no two inequalities have the same coefficients, and no two equalities are equal.
//!
//! Emptiness, implication and bounds are decided exactly over the rationals, after solving the equalities (for emptiness and
//! implication also pairs of inequalities that are then opposite) over the integers and tightening the inequalities. So `is_empty` and `implies` may answer false for an integer reason that
//! no single row shows; they never answer true wrongly. [`Polyhedron::sample`] is exact over the integers.

use std::fmt;

use dashu_int::ops::DivRem;

use crate::linear_program::{self, Constraints, Optimum};
use crate::{Int, Row};

/// The integer points `x` with `row(x) ≥ 0` for all inequalities and `row(x) = 0` for all equalities.
///
/// ```
/// use gradix_int::{Polyhedron, Row};
/// // 0 ≤ i, i + j ≤ 4, 2 ≤ 3 j
/// let mut set = Polyhedron::new(2);
/// set.add_inequality(Row::from_i64(&[1, 0], 0));
/// set.add_inequality(Row::from_i64(&[-1, -1], 4));
/// set.add_inequality(Row::from_i64(&[0, 3], -2));
/// assert_eq!(set.bounds(0), (Some(0.into()), Some(3.into())));
/// assert!(set.implies(&Row::from_i64(&[0, 1], -1)));
/// assert!(!set.implies(&Row::from_i64(&[1, 1], -2)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Polyhedron {
    pub(crate) dimension: usize,
    pub(crate) inequalities: Vec<Row>,
    pub(crate) equalities: Vec<Row>,
}

impl Polyhedron {
    /// All points with `dimension` coordinates.
    pub fn new(dimension: usize) -> Polyhedron {
        Polyhedron { dimension, inequalities: Vec::new(), equalities: Vec::new() }
    }

    /// The number of variables.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The forms that are not negative.
    pub fn inequalities(&self) -> &[Row] {
        &self.inequalities
    }

    /// The forms that are zero.
    pub fn equalities(&self) -> &[Row] {
        &self.equalities
    }

    /// Restricts the set to `row ≥ 0`. A row that a parallel one implies is not stored, one that implies a parallel
    /// one takes its place.
    ///
    /// # Panics
    /// If the row has not as many coefficients as the set has dimensions.
    pub fn add_inequality(&mut self, row: Row) {
        assert_eq!(row.dimension(), self.dimension, "the row has another dimension");
        if self.is_marked_empty() {
            return;
        }
        let row = row.tightened();
        if row.is_constant() {
            if row.constant < Int::ZERO {
                self.set_empty();
            }
        } else if let Some(parallel) = self.inequalities.iter_mut().find(|other| other.coefficients == row.coefficients)
        {
            if row.constant < parallel.constant {
                *parallel = row;
            }
        } else {
            self.inequalities.push(row);
        }
    }

    /// Restricts the set to `row = 0`.
    ///
    /// # Panics
    /// If the row has not as many coefficients as the set has dimensions.
    pub fn add_equality(&mut self, mut row: Row) {
        assert_eq!(row.dimension(), self.dimension, "the row has another dimension");
        if self.is_marked_empty() {
            return;
        }
        let divisor = row.divisor();
        if divisor.is_zero() {
            if !row.constant.is_zero() {
                self.set_empty();
            }
            return;
        }
        let (quotient, remainder) = row.constant.div_rem(&divisor);
        if !remainder.is_zero() {
            return self.set_empty();
        }
        row.constant = quotient;
        row.coefficients.iter_mut().for_each(|c| *c /= &divisor);
        if row.coefficients.iter().find(|c| !c.is_zero()).is_some_and(|first| *first < Int::ZERO) {
            row = row.negated();
        }
        if !self.equalities.contains(&row) {
            self.equalities.push(row);
        }
    }

    /// Restricts the set to the points that are also in `other`.
    ///
    /// # Panics
    /// If the dimensions differ.
    pub fn intersect(&mut self, other: &Polyhedron) {
        other.inequalities.iter().for_each(|row| self.add_inequality(row.clone()));
        other.equalities.iter().for_each(|row| self.add_equality(row.clone()));
    }

    /// Whether `point` is in the set.
    pub fn contains(&self, point: &[Int]) -> bool {
        self.inequalities.iter().all(|row| row.evaluate(point) >= Int::ZERO)
            && self.equalities.iter().all(|row| row.evaluate(point).is_zero())
    }

    /// Whether the set is empty, over the rationals after integer tightening.
    pub fn is_empty(&self) -> bool {
        self.is_marked_empty() || self.is_empty_with(None)
    }

    /// Whether `row ≥ 0` at every point.
    ///
    /// # Panics
    /// If the row has not as many coefficients as the set has dimensions.
    pub fn implies(&self, row: &Row) -> bool {
        assert_eq!(row.dimension(), self.dimension, "the row has another dimension");
        self.is_marked_empty() || self.obviously_implies(row) || self.is_empty_with(Some(&row.complement()))
    }

    /// Whether `row = 0` at every point.
    ///
    /// # Panics
    /// If the row has not as many coefficients as the set has dimensions.
    pub fn implies_equality(&self, row: &Row) -> bool {
        self.equalities.contains(row) || (self.implies(row) && self.implies(&row.negated()))
    }

    /// The least and the greatest value of a variable, rounded to integers; nothing where it is unbounded or the set
    /// is empty.
    pub fn bounds(&self, variable: usize) -> (Option<Int>, Option<Int>) {
        let row = Row::variable(self.dimension, variable);
        (self.minimum(&row), self.maximum(&row))
    }

    /// The least value of a form, rounded up to an integer; nothing where it is unbounded or the set is empty.
    pub fn minimum(&self, row: &Row) -> Option<Int> {
        match self.optimum(row) {
            Optimum::Value(value) => Some(value),
            Optimum::Empty | Optimum::Unbounded => None,
        }
    }

    /// The greatest value of a form, rounded down to an integer; nothing where it is unbounded or the set is empty.
    pub fn maximum(&self, row: &Row) -> Option<Int> {
        self.minimum(&row.negated()).map(|value| -value)
    }

    pub(crate) fn optimum(&self, row: &Row) -> Optimum {
        assert_eq!(row.dimension(), self.dimension, "the row has another dimension");
        let equalities: Vec<&Row> = self.equalities.iter().collect();
        let inequalities: Vec<&Row> = self.inequalities.iter().collect();
        linear_program::minimum(self.constraints(&equalities, &inequalities), row)
    }

    pub(crate) fn constraints<'a>(&self, equalities: &'a [&'a Row], inequalities: &'a [&'a Row]) -> Constraints<'a> {
        Constraints { dimension: self.dimension, equalities, inequalities }
    }

    fn is_empty_with(&self, extra: Option<&Row>) -> bool {
        let equalities: Vec<&Row> = self.equalities.iter().collect();
        let inequalities: Vec<&Row> = self.inequalities.iter().chain(extra).collect();
        linear_program::is_empty(self.constraints(&equalities, &inequalities))
    }

    /// Whether the set was found empty while it was built.
    pub(crate) fn is_marked_empty(&self) -> bool {
        self.inequalities.last().is_some_and(Row::is_constant)
    }

    /// Makes the set empty: its only row is then `-1 ≥ 0`.
    fn set_empty(&mut self) {
        self.equalities.clear();
        self.inequalities = vec![Row::constant(self.dimension, -Int::ONE)];
    }

    /// Whether a parallel inequality or the bounds of single variables show that `row ≥ 0`.
    fn obviously_implies(&self, row: &Row) -> bool {
        let is_weaker = |other: &Row| other.constant <= row.constant && other.coefficients == row.coefficients;
        self.inequalities.iter().any(is_weaker) || bounds_imply(self.inequalities.iter(), row)
    }
}

/// Whether the bounds of single variables among `rows` show that `row ≥ 0`.
pub(crate) fn bounds_imply<'a>(rows: impl Iterator<Item = &'a Row>, row: &Row) -> bool {
    let mut unbounded = row.coefficients.iter().filter(|c| !c.is_zero()).count();
    let mut least = row.constant.clone();
    for bound in rows {
        if unbounded == 0 {
            break;
        }
        // A tightened row of one variable is ±x + c ≥ 0, and no two have the same coefficients.
        let Some((variable, direction)) = bound.single() else { continue };
        let coefficient = &row.coefficients[variable];
        if !coefficient.is_zero() && coefficient.sign() == direction.sign() {
            // a x ≥ -|a| c in both directions.
            least -= coefficient * direction * &bound.constant;
            unbounded -= 1;
        }
    }
    unbounded == 0 && least >= Int::ZERO
}

/// The rows joined by `and`, or `true` without any.
impl fmt::Display for Polyhedron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let equalities = self.equalities.iter().map(|row| format!("{row} = 0"));
        let inequalities = self.inequalities.iter().map(|row| format!("{row} >= 0"));
        let rows: Vec<String> = equalities.chain(inequalities).collect();
        f.write_str(if rows.is_empty() { "true" } else { "" })?;
        f.write_str(&rows.join(" and "))
    }
}
