//! The column Hermite normal form: the canonical basis of the lattice that the columns of a matrix span.
//!
//! `H = A V` with `V` unimodular, where the first `rank` columns of `H` are non-zero, the first non-zero entry of each
//! (its pivot) is positive and lies below that of the column before, every entry left of a pivot is reduced to
//! `0 ≤ entry < pivot`, and the remaining columns are zero.

use dashu_int::ops::{Abs, DivEuclid};

use crate::{Int, Matrix};

/// The column Hermite normal form of a matrix `A`: `H = A V`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hermite {
    /// The normal form.
    pub h: Matrix,
    /// The unimodular transform of the columns.
    pub v: Matrix,
    /// The row of the pivot of each non-zero column, increasing; as many as the rank of `A`.
    pub pivots: Vec<usize>,
}

/// Computes the column Hermite normal form of `a`, which may be zero or empty.
///
/// ```
/// use gradix_int::{hermite, Matrix};
/// let form = hermite(&Matrix::from_rows(&[&[4, 6], &[1, 1]]));
/// assert_eq!(form.h, Matrix::from_rows(&[&[2, 0], &[0, 1]]));
/// ```
pub fn hermite(a: &Matrix) -> Hermite {
    let mut form = Hermite { h: a.clone(), v: Matrix::identity(a.columns()), pivots: Vec::new() };
    for row in 0..a.rows() {
        form.finish_row(row);
    }
    form
}

impl Hermite {
    /// Gathers what is left of `row` in one column by Euclid's algorithm and reduces the entries left of it.
    fn finish_row(&mut self, row: usize) {
        let target = self.pivots.len();
        loop {
            let nonzero = |j: &usize| !self.h[(row, *j)].is_zero();
            let smallest = (target..self.h.columns()).filter(nonzero).min_by_key(|&j| (&self.h[(row, j)]).abs());
            let Some(column) = smallest else { return };
            self.h.swap_columns(target, column);
            self.v.swap_columns(target, column);
            if self.h[(row, target)] < Int::ZERO {
                self.h.negate_column(target);
                self.v.negate_column(target);
            }
            self.reduce(row, target, target + 1..self.h.columns());
            if (target + 1..self.h.columns()).all(|j| self.h[(row, j)].is_zero()) {
                break;
            }
        }
        self.reduce(row, target, 0..target);
        self.pivots.push(row);
    }

    /// Reduces the entries of `row` in `columns` modulo its entry in column `pivot`.
    fn reduce(&mut self, row: usize, pivot: usize, columns: std::ops::Range<usize>) {
        for j in columns {
            let quotient = (&self.h[(row, j)]).div_euclid(&self.h[(row, pivot)]);
            if !quotient.is_zero() {
                self.h.add_column(j, pivot, &-&quotient);
                self.v.add_column(j, pivot, &-quotient);
            }
        }
    }
}
