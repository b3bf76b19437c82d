//! Projections of polyhedra by Fourier-Motzkin elimination (section 4.2 of the paper).
//!
//! Of the inequalities with `x` every lower bound is set against every upper bound:
//!
//! ```text
//! a x + p ≥ 0,  -b x + q ≥ 0   ⟹   b p + a q ≥ 0        (a, b > 0)
//! ```
//!
//! A variable in an equality is replaced by what the equality says; unless its coefficient is ±1, the condition that it
//! comes out an integer is lost. The result holds all projections of integer points; each of its points extends to a rational point of the original.
//! The number of rows may square, so redundant rows are removed and a limit ends it.

use dashu_int::ops::Abs;

use crate::{Int, Polyhedron, Row};

/// An elimination would need more rows than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// The number of rows that it would need.
    pub rows: usize,
    /// The number of rows allowed.
    pub limit: usize,
}

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "elimination needs {} inequalities, more than the limit of {}", self.rows, self.limit)
    }
}

impl std::error::Error for TooLarge {}

impl Polyhedron {
    /// The projection along `variable`, in the same dimension: no row of the result has it. Rows that the others imply
    /// are left out. Fails if there are more than `limit` rows to start from, before redundant ones are removed.
    ///
    /// ```
    /// use gradix_int::{Polyhedron, Row};
    /// // 0 ≤ i ≤ j ≤ 9, without j
    /// let mut set = Polyhedron::new(2);
    /// set.add_inequality(Row::from_i64(&[1, 0], 0));
    /// set.add_inequality(Row::from_i64(&[-1, 1], 0));
    /// set.add_inequality(Row::from_i64(&[0, -1], 9));
    /// assert_eq!(set.eliminate(1, 100).unwrap().to_string(), "x0 >= 0 and -x0 + 9 >= 0");
    /// ```
    pub fn eliminate(&self, variable: usize, limit: usize) -> Result<Polyhedron, TooLarge> {
        let mut result = match self.smallest_equality(variable) {
            Some(equality) => self.substitute(variable, equality),
            None => self.set_bounds_against_each_other(variable, limit, &|_, _| Int::ZERO)?,
        };
        result.remove_redundant(&Polyhedron::new(self.dimension));
        Ok(result)
    }

    /// A part of the integer projection along `variable`: each of its integer points extends to one of this set (the
    /// 'dark shadow' of the Omega test; Pugh 1991). It is the whole projection where of each pair of bounds one has
    /// the coefficient ±1. `None` if an equality determines the variable with another coefficient.
    ///
    /// ```
    /// use gradix_int::{Polyhedron, Row};
    /// // 3 j ≤ i ≤ 3 j + 1, without j: over the rationals every i, but i = 2 has no j
    /// let mut set = Polyhedron::new(2);
    /// set.add_inequality(Row::from_i64(&[1, -3], 0));
    /// set.add_inequality(Row::from_i64(&[-1, 3], 1));
    /// assert_eq!(set.eliminate(1, 100).unwrap().to_string(), "true");
    /// assert!(set.eliminate_inside(1, 100).unwrap().unwrap().is_empty());
    /// ```
    pub fn eliminate_inside(&self, variable: usize, limit: usize) -> Result<Option<Polyhedron>, TooLarge> {
        let mut result = match self.smallest_equality(variable) {
            Some(place) if !(&self.equalities[place].coefficients[variable]).abs().is_one() => return Ok(None),
            Some(equality) => self.substitute(variable, equality),
            None => self.set_bounds_against_each_other(variable, limit, &|a, b| (a - Int::ONE) * (b - Int::ONE))?,
        };
        result.remove_redundant(&Polyhedron::new(self.dimension));
        Ok(Some(result))
    }

    /// The projection onto the variables in `keep`, in the same dimension; see [`Polyhedron::eliminate`].
    pub fn project(&self, keep: &[usize], limit: usize) -> Result<Polyhedron, TooLarge> {
        let gone = (0..self.dimension).filter(|variable| !keep.contains(variable)).collect();
        self.eliminate_all(gone, |set, variable| set.eliminate(variable, limit))
    }

    /// Eliminates variables one after the other, the cheapest first.
    fn eliminate_all<E>(
        &self,
        mut remaining: Vec<usize>,
        eliminate: impl Fn(&Polyhedron, usize) -> Result<Polyhedron, E>,
    ) -> Result<Polyhedron, E> {
        let mut result = self.clone();
        while let Some(index) = (0..remaining.len()).min_by_key(|&index| result.elimination_cost(remaining[index])) {
            result = eliminate(&result, remaining.remove(index))?;
        }
        Ok(result)
    }

    /// A part of the integer projection onto the variables in `keep`; see [`Polyhedron::eliminate_inside`]. `None` where that
    /// is, or where there are too many rows.
    pub fn project_inside(&self, keep: &[usize], limit: usize) -> Option<Polyhedron> {
        let gone = (0..self.dimension).filter(|variable| !keep.contains(variable)).collect();
        self.eliminate_all(gone, |set, variable| set.eliminate_inside(variable, limit).ok().flatten().ok_or(())).ok()
    }

    /// The equality with the smallest coefficient of a variable: one with ±1 loses nothing over the integers.
    fn smallest_equality(&self, variable: usize) -> Option<usize> {
        (0..self.equalities.len())
            .filter(|&index| !self.equalities[index].coefficients[variable].is_zero())
            .min_by_key(|&index| (&self.equalities[index].coefficients[variable]).abs())
    }

    /// Replaces a variable by what an equality says that it is.
    fn substitute(&self, variable: usize, equality: usize) -> Polyhedron {
        let source = &self.equalities[equality];
        let pivot = &source.coefficients[variable];
        let without = |row: &Row| {
            let coefficient = &row.coefficients[variable];
            if coefficient.is_zero() {
                return row.clone();
            }
            // Scaled by |pivot|, so that inequalities keep their direction.
            row.combine(&pivot.abs(), source, &-(coefficient * pivot.signum()))
        };
        let mut result = Polyhedron::new(self.dimension);
        let others = self.equalities.iter().enumerate().filter(|(index, _)| *index != equality);
        others.for_each(|(_, row)| result.add_equality(without(row)));
        self.inequalities.iter().for_each(|row| result.add_inequality(without(row)));
        result
    }

    /// Of a lower bound `a x ≥ …` and an upper bound `b x ≤ …`, the second is asked to lie `margin(a, b)` above the first
    /// (when both are scaled to `a b x`).
    fn set_bounds_against_each_other(
        &self,
        variable: usize,
        limit: usize,
        margin: &dyn Fn(&Int, &Int) -> Int,
    ) -> Result<Polyhedron, TooLarge> {
        let (lower, upper, other) = self.split_by_sign(variable);
        let rows = other.len() + lower.len().saturating_mul(upper.len());
        if rows > limit {
            return Err(TooLarge { rows, limit });
        }
        let mut result = Polyhedron { equalities: self.equalities.clone(), ..Polyhedron::new(self.dimension) };
        other.into_iter().for_each(|row| result.add_inequality(row.clone()));
        for below in lower {
            for above in &upper {
                let (a, b) = (&below.coefficients[variable], -&above.coefficients[variable]);
                let mut row = below.combine(&b, above, a);
                row.constant -= margin(a, &b);
                result.add_inequality(row);
            }
        }
        Ok(result)
    }

    /// The inequalities that bound a variable from below, from above, and not at all.
    fn split_by_sign(&self, variable: usize) -> (Vec<&Row>, Vec<&Row>, Vec<&Row>) {
        let (bounding, other): (Vec<&Row>, Vec<&Row>) =
            self.inequalities.iter().partition(|row| !row.coefficients[variable].is_zero());
        let (lower, upper) = bounding.into_iter().partition(|row| row.coefficients[variable] > Int::ZERO);
        (lower, upper, other)
    }

    /// First whether the elimination of a variable loses integer conditions, which others then might not find; then how many
    /// rows it adds at most, compared to how many it removes.
    fn elimination_cost(&self, variable: usize) -> (bool, isize) {
        let is_unit = |row: &Row| (&row.coefficients[variable]).abs().is_one();
        if let Some(place) = self.smallest_equality(variable) {
            return (!is_unit(&self.equalities[place]), isize::MIN);
        }
        let (lower, upper, _) = self.split_by_sign(variable);
        let is_exact = lower.iter().all(|row| is_unit(row)) || upper.iter().all(|row| is_unit(row));
        (!is_exact, (lower.len() * upper.len()) as isize - (lower.len() + upper.len()) as isize)
    }
}
