//! Systems of linear integer equations `A x = b`, solved for all right-hand sides at once (section 4.1 of the paper).
//!
//! With the Smith form `S = U A V` of rank `R`: the *pseudo-inverse* is `I = V S† U`, the *kernel* `K` is a basis of
//! the last columns of `V`, and the *cokernel* `C` the last rows of `U`. Then
//!
//! ```text
//! A I A = A,    A K = 0,    C A = 0,
//! { x ∈ ℤ^M | A x = b } = { I b + K z | z ∈ ℤ^(M-R) }    if C b = 0 and I b is integral, else empty.
//! ```

use dashu_int::ops::DivRem;

use crate::lll::reduce_basis;
use crate::{Int, Matrix, Smith, smith};

/// All solutions of `A x = b`, for every `b`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntegerSolution {
    /// The Smith normal form of `A`.
    pub smith: Smith,
    /// The pseudo-inverse `I`, which is rational.
    pub pseudo_inverse: RationalMatrix,
    /// The kernel `K`: its columns are a reduced basis of `{ x | A x = 0 }`, the first non-zero entry of each positive,
    /// in decreasing lexicographic order.
    pub kernel: Matrix,
    /// The cokernel `C`: its rows are a basis of `{ y | y A = 0 }`.
    pub cokernel: Matrix,
}

/// A rational matrix, as an integer matrix over a common divisor in lowest terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RationalMatrix {
    /// The numerators.
    pub numerators: Matrix,
    /// The common denominator, which is positive.
    pub denominator: Int,
}

/// Solves `A x = b` for every `b`.
///
/// ```
/// use gradix_int::{solve, Matrix};
/// let solution = solve(&Matrix::from_rows(&[&[1, -2, -2]]));
/// assert_eq!(solution.pseudo_inverse.numerators, Matrix::from_rows(&[&[1], &[0], &[0]]));
/// assert_eq!(solution.kernel, Matrix::from_rows(&[&[2, 0], &[1, 1], &[0, -1]]));
/// ```
pub fn solve(a: &Matrix) -> IntegerSolution {
    let smith = smith(a);
    let rank = smith.rank;
    let kernel = ordered(&reduce_basis(&smith.v.block(0..a.columns(), rank..a.columns())));
    let cokernel = smith.u.block(rank..a.rows(), 0..a.rows());
    IntegerSolution { pseudo_inverse: pseudo_inverse(&smith), kernel, cokernel, smith }
}

/// `I = V S† U`. The largest divisor `α_R` is a common denominator, since it is a multiple of all others.
fn pseudo_inverse(smith: &Smith) -> RationalMatrix {
    let largest = smith.divisors().last().cloned().unwrap_or(Int::ONE);
    let scaled: Vec<Int> = smith.divisors().map(|divisor| &largest / divisor).collect();
    let scaled_u = Matrix::from_fn(smith.rank, smith.u.columns(), |i, j| &scaled[i] * &smith.u[(i, j)]);
    let v = smith.v.block(0..smith.v.rows(), 0..smith.rank);
    // In lowest terms already: V and U are unimodular, so the gcd of the numerators is that of `scaled`, whose last is 1.
    RationalMatrix { numerators: v.mul(&scaled_u), denominator: largest }
}

/// The same columns up to sign, each with its first non-zero entry positive, in decreasing lexicographic order.
fn ordered(basis: &Matrix) -> Matrix {
    let oriented = |j| {
        let column = basis.column(j);
        let negative = column.iter().find(|entry| !entry.is_zero()).is_some_and(|first| *first < Int::ZERO);
        if negative { column.into_iter().map(|entry| -entry).collect() } else { column }
    };
    let mut columns: Vec<Vec<Int>> = (0..basis.columns()).map(oriented).collect();
    columns.sort_by(|a, b| b.cmp(a));
    Matrix::from_vectors(basis.rows(), columns).transpose()
}

impl IntegerSolution {
    /// The solution `I b` of `A x = b`, or nothing when there is no integer solution. All others differ from it by `K z`.
    ///
    /// # Panics
    /// If `b` has not as many elements as `A` has rows.
    ///
    /// ```
    /// use gradix_int::{solve, Matrix};
    /// let even = solve(&Matrix::from_rows(&[&[2]]));
    /// assert_eq!(even.particular(&[6.into()]), Some(vec![3.into()]));
    /// assert_eq!(even.particular(&[7.into()]), None);
    /// ```
    pub fn particular(&self, b: &[Int]) -> Option<Vec<Int>> {
        if self.cokernel.apply(b).iter().any(|entry| !entry.is_zero()) {
            return None;
        }
        let exact = |numerator: Int| {
            let (quotient, remainder) = numerator.div_rem(&self.pseudo_inverse.denominator);
            remainder.is_zero().then_some(quotient)
        };
        self.pseudo_inverse.numerators.apply(b).into_iter().map(exact).collect()
    }
}
