//! Lattice basis reduction after Lenstra, Lenstra and Lovász, in exact integers.
//!
//! The all-integer variant (Cohen, *A Course in Computational Algebraic Number Theory*, algorithm 2.6.7): with `b*_i`
//! the Gram-Schmidt vectors and `μ_ij` their coefficients, it keeps `d_i = |b*_1|² ⋯ |b*_i|²` and `λ_ij = d_j μ_ij`, which
//! are integers. Post-condition: the columns span the same lattice, `|μ_ij| ≤ 1/2`, and
//! `|b*_k|² ≥ (3/4 - μ²_{k,k-1}) |b*_{k-1}|²`.

use dashu_int::ops::DivEuclid;

use crate::matrix::dot;
use crate::{Int, Matrix, hermite};

/// A basis of short vectors of the lattice that the columns of `lattice` span.
///
/// Dependent columns are allowed; the result has as many columns as the lattice has dimensions.
///
/// ```
/// use gradix_int::{lll, Matrix};
/// let long = Matrix::from_rows(&[&[1, 4], &[1, 5]]);
/// assert_eq!(lll(&long), Matrix::from_rows(&[&[-1, 0], &[0, 1]]));
/// ```
pub fn lll(lattice: &Matrix) -> Matrix {
    let form = hermite(lattice);
    if form.pivots.len() == lattice.columns() {
        reduce_basis(lattice)
    } else {
        reduce_basis(&form.h.block(0..lattice.rows(), 0..form.pivots.len()))
    }
}

/// Reduces a basis, given as linearly independent columns.
pub(crate) fn reduce_basis(columns: &Matrix) -> Matrix {
    let mut basis = Basis::new(columns.transpose());
    let mut k = 1;
    while k < basis.vectors.rows() {
        basis.reduce_size(k, k - 1);
        if basis.is_ordered(k) {
            for l in (0..k - 1).rev() {
                basis.reduce_size(k, l);
            }
            k += 1;
        } else {
            basis.swap_with_previous(k);
            k = usize::max(k - 1, 1);
        }
    }
    basis.vectors.transpose()
}

struct Basis {
    /// The basis vectors `b_0, b_1, …` as rows.
    vectors: Matrix,
    /// `λ_ij` for `j < i`.
    lambda: Matrix,
    /// `d[i + 1]` belongs to `b_i`; `d[0] = 1`.
    d: Vec<Int>,
}

impl Basis {
    fn new(vectors: Matrix) -> Basis {
        let count = vectors.rows();
        let mut basis = Basis { vectors, lambda: Matrix::zero(count, count), d: vec![Int::ONE; count + 1] };
        for i in 0..count {
            basis.orthogonalise(i);
        }
        basis
    }

    fn orthogonalise(&mut self, i: usize) {
        for j in 0..=i {
            let mut product = dot(self.vectors.row(i), self.vectors.row(j));
            for l in 0..j {
                let correction = &self.lambda[(i, l)] * &self.lambda[(j, l)];
                product = (&self.d[l + 1] * product - correction) / &self.d[l];
            }
            if j < i {
                self.lambda[(i, j)] = product;
            } else {
                self.d[i + 1] = product;
            }
        }
    }

    /// Subtracts a multiple of `b_l` from `b_k`, so that `|μ_kl| ≤ 1/2`.
    fn reduce_size(&mut self, k: usize, l: usize) {
        let twice: Int = &self.lambda[(k, l)] * 2;
        let d = self.d[l + 1].clone();
        if -&d <= twice && twice <= d {
            return;
        }
        let modulus: Int = &d * 2;
        let quotient: Int = -(twice + &d).div_euclid(modulus);
        self.vectors.add_row(k, l, &quotient);
        self.lambda[(k, l)] += &quotient * d;
        for i in 0..l {
            let change = &quotient * &self.lambda[(l, i)];
            self.lambda[(k, i)] += change;
        }
    }

    /// Lovász' condition between `b_{k-1}` and `b_k`.
    fn is_ordered(&self, k: usize) -> bool {
        let lambda = &self.lambda[(k, k - 1)];
        4 * &self.d[k + 1] * &self.d[k - 1] >= 3 * &self.d[k] * &self.d[k] - 4 * lambda * lambda
    }

    fn swap_with_previous(&mut self, k: usize) {
        self.vectors.swap_rows(k, k - 1);
        for j in 0..k - 1 {
            let (a, b) = (self.lambda[(k, j)].clone(), self.lambda[(k - 1, j)].clone());
            self.lambda[(k, j)] = b;
            self.lambda[(k - 1, j)] = a;
        }
        let lambda = self.lambda[(k, k - 1)].clone();
        let d = (&self.d[k - 1] * &self.d[k + 1] + &lambda * &lambda) / &self.d[k];
        for i in k + 1..self.vectors.rows() {
            let last = self.lambda[(i, k)].clone();
            let changed = (&self.d[k + 1] * &self.lambda[(i, k - 1)] - &lambda * &last) / &self.d[k];
            self.lambda[(i, k - 1)] = (&d * last + &lambda * &changed) / &self.d[k + 1];
            self.lambda[(i, k)] = changed;
        }
        self.d[k] = d;
    }
}
