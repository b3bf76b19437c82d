//! The Smith normal form, after section 4.1 (algorithm 1) of the paper.
//!
//! Every integer matrix `A` has unimodular `U` and `V` with `U A V = S = diag(α₁, …, α_R, 0, …, 0)`,
//! `α_i > 0` and `α_i | α_{i+1}`. For example
//!
//! ```text
//!     ⎡2 4⎤                         ⎡2 0⎤
//! A = ⎣6 8⎦   has the Smith form S = ⎣0 4⎦.
//! ```

use dashu_int::ops::{Abs, DivRem};

use crate::{Int, Matrix};

/// The Smith normal form of a matrix `A`: `S = U A V`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Smith {
    /// The unimodular transform of the rows.
    pub u: Matrix,
    /// The normal form: diagonal, positive up to `rank` and zero after it, each entry dividing the next.
    pub s: Matrix,
    /// The unimodular transform of the columns.
    pub v: Matrix,
    /// The number of non-zero diagonal entries, which is the rank of `A`.
    pub rank: usize,
}

/// Computes the Smith normal form of `a`, which may be zero or empty.
///
/// ```
/// use gradix_int::{smith, Matrix};
/// let a = Matrix::from_rows(&[&[2, 4], &[6, 8]]);
/// let form = smith(&a);
/// assert_eq!(form.s, Matrix::from_rows(&[&[2, 0], &[0, 4]]));
/// assert_eq!(form.u.mul(&a).mul(&form.v), form.s);
/// ```
pub fn smith(a: &Matrix) -> Smith {
    let mut form = Smith { u: Matrix::identity(a.rows()), s: a.clone(), v: Matrix::identity(a.columns()), rank: 0 };
    while let Some(pivot) = form.smallest_entry() {
        form.move_to_corner(pivot);
        form.clear_corner();
        form.rank += 1;
    }
    form
}

impl Smith {
    /// The diagonal entries `α₁, …, α_R`, called the elementary divisors.
    pub fn divisors(&self) -> impl Iterator<Item = &Int> {
        (0..self.rank).map(|i| &self.s[(i, i)])
    }

    /// The position of the smallest non-zero entry outside of the finished part; the first of equals.
    fn smallest_entry(&self) -> Option<(usize, usize)> {
        let rows = self.rank..self.s.rows();
        rows.flat_map(|i| (self.rank..self.s.columns()).map(move |j| (i, j)))
            .filter(|&at| !self.s[at].is_zero())
            .min_by_key(|&at| (&self.s[at]).abs())
    }

    fn move_to_corner(&mut self, (i, j): (usize, usize)) {
        let corner = self.rank;
        self.s.swap_rows(corner, i);
        self.u.swap_rows(corner, i);
        self.s.swap_columns(corner, j);
        self.v.swap_columns(corner, j);
        if self.s[(corner, corner)] < Int::ZERO {
            self.s.negate_column(corner);
            self.v.negate_column(corner);
        }
    }

    /// Makes the corner entry the greatest common divisor of all entries from it on, and zeroes its row and column.
    ///
    /// Every round that does not finish replaces the corner by a smaller remainder, so the loop ends.
    fn clear_corner(&mut self) {
        let corner = self.rank;
        loop {
            if let Some(at) = self.reduce_column().or_else(|| self.reduce_row()) {
                self.move_to_corner(at);
            } else if let Some(i) = self.undivided_row() {
                // Brings an entry that the corner does not divide into the corner's row.
                self.s.add_row(corner, i, &Int::ONE);
                self.u.add_row(corner, i, &Int::ONE);
            } else {
                return;
            }
        }
    }

    /// Subtracts multiples of the corner's row from the rows below; the position of a remainder, if there is one.
    fn reduce_column(&mut self) -> Option<(usize, usize)> {
        let corner = self.rank;
        for i in corner + 1..self.s.rows() {
            let (quotient, remainder) = (&self.s[(i, corner)]).div_rem(&self.s[(corner, corner)]);
            if !quotient.is_zero() {
                self.s.add_row(i, corner, &-&quotient);
                self.u.add_row(i, corner, &-quotient);
            }
            if !remainder.is_zero() {
                return Some((i, corner));
            }
        }
        None
    }

    /// Subtracts multiples of the corner's column from the columns right of it; the position of a remainder.
    fn reduce_row(&mut self) -> Option<(usize, usize)> {
        let corner = self.rank;
        for j in corner + 1..self.s.columns() {
            let (quotient, remainder) = (&self.s[(corner, j)]).div_rem(&self.s[(corner, corner)]);
            if !quotient.is_zero() {
                self.s.add_column(j, corner, &-&quotient);
                self.v.add_column(j, corner, &-quotient);
            }
            if !remainder.is_zero() {
                return Some((corner, j));
            }
        }
        None
    }

    /// A row with an entry that the corner does not divide.
    fn undivided_row(&self) -> Option<usize> {
        let corner = &self.s[(self.rank, self.rank)];
        (self.rank + 1..self.s.rows()).find(|&i| self.s.row(i).iter().any(|entry| !(entry % corner).is_zero()))
    }
}
