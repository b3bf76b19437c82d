//! Linear programs over rows: from equalities and inequalities to a [`Tableau`], and the questions asked of it.
//!
//! Equalities are solved over the integers first, by unimodular changes of variables, so that a system such as
//! `2 x = 2 y + 1` is found empty and an inequality on the remaining variables can be tightened to integers:
//! `2 z - 1 ≥ 0` becomes `z - 1 ≥ 0`. What remains is decided over the rationals; for emptiness, two opposite inequalities
//! that are left (`i = 3 q`, `k ≥ 3 q`, `k ≤ i`: so `k = 3 q`) are equalities, too, and solved in their turn.
//!
//! Everything is computed in machine words, and once more in exact integers where one overflows.

use dashu_int::ops::DivEuclid;

use crate::scalar::Scalar;
use crate::tableau::{Minimum, OBJECTIVE, Tableau};
use crate::{Int, Row};

/// A set given by rows over the same variables.
#[derive(Clone, Copy)]
pub(crate) struct Constraints<'a> {
    pub(crate) dimension: usize,
    /// Forms that are zero.
    pub(crate) equalities: &'a [&'a Row],
    /// Forms that are not negative.
    pub(crate) inequalities: &'a [&'a Row],
}

/// The least value of a form on a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Optimum {
    /// The set is empty.
    Empty,
    /// There is none.
    Unbounded,
    /// The least rational value, rounded up to the next value that integer points can give the form.
    Value(Int),
}

/// Whether there is no point.
pub(crate) fn is_empty(constraints: Constraints) -> bool {
    exactly(|| find_empty::<i64>(constraints), || find_empty::<Int>(constraints))
}

/// The least value of `objective`.
pub(crate) fn minimum(constraints: Constraints, objective: &Row) -> Optimum {
    exactly(|| find_minimum::<i64>(constraints, objective), || find_minimum::<Int>(constraints, objective))
}

/// Which of the inequalities from `first` on do not follow from the rest, going from the last to the first.
/// Nothing if the set is empty.
pub(crate) fn irredundant(constraints: Constraints, first: usize) -> Option<Vec<bool>> {
    exactly(|| find_irredundant::<i64>(constraints, first), || find_irredundant::<Int>(constraints, first))
}

fn exactly<R, O>(
    quick: impl FnOnce() -> Result<R, O>,
    exact: impl FnOnce() -> Result<R, std::convert::Infallible>,
) -> R {
    quick().unwrap_or_else(|_| {
        let Ok(result) = exact();
        result
    })
}

fn find_empty<T: Scalar>(constraints: Constraints) -> Result<bool, T::Overflow> {
    let Some(mut dense) = solved::<T>(constraints, None)? else { return Ok(true) };
    loop {
        let fixed = dense.opposite_rows();
        if fixed.is_empty() {
            let forms = (0..constraints.inequalities.len()).collect();
            return Ok(!Tableau::new(dense.entries, dense.width - 1, forms)?.restore()?);
        }
        // Each takes a variable away, so this ends.
        dense = dense.with_equalities(&fixed);
        if !dense.solve_equalities(fixed.len())? {
            return Ok(true);
        }
    }
}

fn find_minimum<T: Scalar>(constraints: Constraints, objective: &Row) -> Result<Optimum, T::Overflow> {
    let Some(mut reduced) = reduce::<T>(constraints, Some(objective))? else { return Ok(Optimum::Empty) };
    if !reduced.tableau.restore()? {
        return Ok(Optimum::Empty);
    }
    // The objective's row is never pivoted on, so it is there.
    let Some(row) = reduced.tableau.row_of(OBJECTIVE) else { return Ok(Optimum::Unbounded) };
    if reduced.tableau.minimise(row, false)? == Minimum::Unbounded {
        return Ok(Optimum::Unbounded);
    }
    let (numerator, denominator) = reduced.tableau.value(row);
    let rounded_up = -(-numerator.to_int()).div_euclid(denominator.to_int());
    Ok(Optimum::Value(rounded_up * reduced.scale.to_int() + reduced.offset.to_int()))
}

fn find_irredundant<T: Scalar>(constraints: Constraints, first: usize) -> Result<Option<Vec<bool>>, T::Overflow> {
    let Some(mut reduced) = reduce::<T>(constraints, None)? else { return Ok(None) };
    if !reduced.tableau.restore()? {
        return Ok(None);
    }
    let mut kept = vec![true; constraints.inequalities.len() - first];
    for candidate in (first..constraints.inequalities.len()).rev() {
        kept[candidate - first] = !reduced.tableau.remove_if_implied(candidate)?;
    }
    Ok(Some(kept))
}

/// A tableau without equalities; the objective is `scale` times its form in the tableau, plus `offset`.
struct Reduced<T> {
    tableau: Tableau<T>,
    scale: T,
    offset: T,
}

/// Solves the equalities and tightens the inequalities; nothing if an equality has no integer solution.
/// The inequalities keep their positions as numbers of forms.
fn reduce<T: Scalar>(constraints: Constraints, objective: Option<&Row>) -> Result<Option<Reduced<T>>, T::Overflow> {
    let Some(mut dense) = solved::<T>(constraints, objective)? else { return Ok(None) };
    let (width, inequalities) = (dense.width, constraints.inequalities.len());
    let objective_row = &mut dense.entries[inequalities * width..];
    let (mut scale, mut offset) = (T::ONE, T::ZERO);
    if let Some(constant) = objective_row.last_mut() {
        offset = std::mem::replace(constant, T::ZERO);
        scale = tighten(objective_row)?;
    }
    let forms = (0..inequalities).chain(objective.map(|_| OBJECTIVE)).collect();
    let tableau = Tableau::new(dense.entries, width - 1, forms)?;
    Ok(Some(Reduced { tableau, scale, offset }))
}

/// The inequalities, tightened, and then the objective, in the variables that the equalities leave; nothing if an equality
/// has no integer solution.
fn solved<T: Scalar>(constraints: Constraints, objective: Option<&Row>) -> Result<Option<Dense<T>>, T::Overflow> {
    let mut dense = Dense::<T>::new(constraints, objective)?;
    Ok(dense.solve_equalities(constraints.equalities.len())?.then_some(dense))
}

/// Divides coefficients by their greatest common divisor, which is returned, and rounds the constant down.
fn tighten<T: Scalar>(row: &mut [T]) -> Result<T, T::Overflow> {
    let constant = row.len() - 1;
    let divisor = gcd(&row[..constant])?;
    if divisor <= T::ONE {
        return Ok(T::ONE);
    }
    for coefficient in &mut row[..constant] {
        *coefficient = coefficient.quotient(&divisor)?;
    }
    row[constant] = floor(&row[constant], &divisor)?;
    Ok(divisor)
}

/// The greatest common divisor, zero for zeros.
fn gcd<T: Scalar>(coefficients: &[T]) -> Result<T, T::Overflow> {
    let mut divisor = T::ZERO;
    for coefficient in coefficients.iter().filter(|coefficient| !coefficient.is_zero()) {
        divisor = divisor.gcd(coefficient)?;
        if divisor == T::ONE {
            break;
        }
    }
    Ok(divisor)
}

/// `⌊a / d⌋` for `d > 0`.
fn floor<T: Scalar>(a: &T, d: &T) -> Result<T, T::Overflow> {
    let quotient = a.quotient(d)?;
    let exceeds = a.minus_product(&quotient, d)? < T::ZERO;
    if exceeds { quotient.minus_product(&T::ONE, &T::ONE) } else { Ok(quotient) }
}

/// Equalities, inequalities and objective, as rows of coefficients and a constant.
struct Dense<T> {
    entries: Vec<T>,
    width: usize,
    /// How many rows behind the equalities are inequalities.
    inequalities: usize,
    /// The variables that equalities have fixed.
    solved: Vec<bool>,
}

impl<T: Scalar> Dense<T> {
    fn new(constraints: Constraints, objective: Option<&Row>) -> Result<Self, T::Overflow> {
        let rows = constraints.equalities.iter().chain(constraints.inequalities).copied().chain(objective);
        let width = constraints.dimension + 1;
        let count = constraints.equalities.len() + constraints.inequalities.len() + usize::from(objective.is_some());
        let mut entries = Vec::with_capacity(count * width);
        for row in rows {
            for entry in row.coefficients.iter().chain([&row.constant]) {
                entries.push(T::from_int(entry)?);
            }
        }
        let (inequalities, solved) = (constraints.inequalities.len(), vec![false; constraints.dimension]);
        Ok(Dense { entries, width, inequalities, solved })
    }

    /// Fixes one variable by an equality; false if it has no integer solution.
    ///
    /// Euclid's algorithm on columns gathers the equality in one variable: with `a_k` its smallest coefficient and
    /// `a_j = q a_k + r`, the variable `x'_k = x_k + q x_j` leaves the coefficient `r` for `x_j`.
    fn solve(&mut self, equality: usize) -> Result<bool, T::Overflow> {
        let row = equality * self.width;
        loop {
            let Some(smallest) = self.smallest_coefficient(row) else {
                return Ok(self.entries[row + self.width - 1].is_zero());
            };
            let mut alone = true;
            for column in 0..self.width - 1 {
                if column == smallest || self.solved[column] || self.entries[row + column].is_zero() {
                    continue;
                }
                let quotient = self.entries[row + column].quotient(&self.entries[row + smallest])?;
                self.subtract_column(row, column, smallest, &quotient)?;
                alone &= self.entries[row + column].is_zero();
            }
            if alone {
                return self.fix(row, smallest);
            }
        }
    }

    fn smallest_coefficient(&self, row: usize) -> Option<usize> {
        (0..self.width - 1)
            .filter(|&column| !self.solved[column] && !self.entries[row + column].is_zero())
            .min_by(|&a, &b| self.entries[row + a].compare_magnitude(&self.entries[row + b]))
    }

    /// Solves `a x + c = 0`, where `x` is the only variable of the row; false if `a` does not divide `c`.
    fn fix(&mut self, row: usize, column: usize) -> Result<bool, T::Overflow> {
        let constant = self.width - 1;
        let quotient = self.entries[row + constant].quotient(&self.entries[row + column])?;
        self.subtract_column(row, constant, column, &quotient)?;
        self.solved[column] = true;
        Ok(self.entries[row + constant].is_zero())
    }

    /// Subtracts `factor` times the column `source` from the column `target`, from `row` on.
    fn subtract_column(&mut self, row: usize, target: usize, source: usize, factor: &T) -> Result<(), T::Overflow> {
        for entries in self.entries[row..].chunks_exact_mut(self.width) {
            if !entries[source].is_zero() {
                entries[target] = entries[target].minus_product(factor, &entries[source])?;
            }
        }
        Ok(())
    }

    /// Solves the first rows for a variable each, drops both, and tightens the inequalities behind; false if there is no integer
    /// solution.
    fn solve_equalities(&mut self, equalities: usize) -> Result<bool, T::Overflow> {
        for equality in 0..equalities {
            if !self.solve(equality)? {
                return Ok(false);
            }
        }
        self.drop_solved(equalities);
        let inequalities = self.inequalities;
        self.entries.chunks_exact_mut(self.width).take(inequalities).try_for_each(|row| tighten(row).map(|_| ()))?;
        Ok(true)
    }

    /// The same rows with some of them as equalities in front.
    fn with_equalities(self, rows: &[usize]) -> Self {
        let row = |row: &usize| &self.entries[row * self.width..(row + 1) * self.width];
        let entries = rows.iter().map(row).chain([self.entries.as_slice()]).flatten().cloned().collect();
        Dense { entries, solved: vec![false; self.width - 1], ..self }
    }

    /// Rows that are not constant and whose opposite is another row, the first of each pair.
    fn opposite_rows(&self) -> Vec<usize> {
        let rows: Vec<&[T]> = self.entries.chunks_exact(self.width).collect();
        let is_opposite = |a: &[T], b: &[T]| a.iter().zip(b).all(|(a, b)| a.negate().is_ok_and(|a| a == *b));
        let is_first = |&row: &usize| {
            let varies = rows[row][..self.width - 1].iter().any(|entry| !entry.is_zero());
            varies && rows[row + 1..].iter().any(|other| is_opposite(rows[row], other))
        };
        (0..rows.len()).filter(is_first).collect()
    }

    /// Drops the equalities and the variables that they have fixed.
    fn drop_solved(&mut self, equalities: usize) {
        if equalities == 0 {
            return;
        }
        let (width, solved) = (self.width, &self.solved);
        let is_kept = |index: usize| {
            let column = index % width;
            index >= equalities * width && !(column < width - 1 && solved[column])
        };
        let mut index = 0;
        self.entries.retain(|_| {
            index += 1;
            is_kept(index - 1)
        });
        self.width -= self.solved.iter().filter(|&&solved| solved).count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random numbers from -4 to 4, by Knuth's linear congruences.
    fn random_rows(state: &mut u64, dimension: usize, count: usize) -> Vec<Row> {
        let mut number = || {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*state >> 33) as i64 % 9 - 4
        };
        let mut row = || Row::from_i64(&(0..dimension).map(|_| number()).collect::<Vec<_>>(), number());
        (0..count).map(|_| row()).collect()
    }

    #[test]
    fn words_and_exact_integers_give_the_same_answers() {
        // Miri takes a thousand times as long.
        let rounds = if cfg!(miri) { 21 } else { 2000 };
        let mut state = 1;
        for round in 0..rounds {
            let dimension = 1 + round % 7;
            let rows = random_rows(&mut state, dimension, 12);
            let rows: Vec<&Row> = rows.iter().collect();
            let (equalities, rest) = rows.split_at(round % 3);
            let (objective, inequalities) = (rest[0], &rest[1..]);
            let constraints = Constraints { dimension, equalities, inequalities };
            assert_eq!(find_empty::<i64>(constraints).ok(), find_empty::<Int>(constraints).ok());
            assert_eq!(
                find_minimum::<i64>(constraints, objective).ok(),
                find_minimum::<Int>(constraints, objective).ok()
            );
            assert_eq!(find_irredundant::<i64>(constraints, 2).ok(), find_irredundant::<Int>(constraints, 2).ok());
        }
    }

    #[test]
    fn words_that_overflow_are_computed_again_in_exact_integers() {
        const LARGE: i64 = 3_000_000_000_000_000_019;
        let rows = [
            Row::from_i64(&[LARGE, LARGE - 2, 1], -LARGE),
            Row::from_i64(&[-LARGE, LARGE - 4, 3], LARGE),
            Row::from_i64(&[7, -LARGE, LARGE - 6], 5),
        ];
        let rows: Vec<&Row> = rows.iter().collect();
        let constraints = Constraints { dimension: 3, equalities: &[], inequalities: &rows };
        assert!(find_minimum::<i64>(constraints, &Row::from_i64(&[3, 5, LARGE], 0)).is_err());
        assert_eq!(minimum(constraints, &Row::from_i64(&[LARGE, LARGE - 2, 1], 0)), Optimum::Value(LARGE.into()));
    }
}
