//! Dense matrices of exact integers, with the elementary row and column operations that the normal forms are made of.

use std::fmt;
use std::ops::{Index, IndexMut};

use crate::Int;

/// A `rows × columns` matrix of integers; either size may be zero.
///
/// ```
/// use gradix_int::Matrix;
/// let a = Matrix::from_rows(&[&[1, -2], &[0, 3]]);
/// assert_eq!(a.mul(&Matrix::identity(2)), a);
/// assert_eq!(a.determinant(), 3.into());
/// assert_eq!(a.to_string(), "[1 -2]\n[0  3]");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    entries: Vec<Int>,
}

impl Matrix {
    /// The zero matrix.
    pub fn zero(rows: usize, columns: usize) -> Matrix {
        Matrix { rows, columns, entries: vec![Int::ZERO; rows * columns] }
    }

    /// The identity matrix.
    pub fn identity(size: usize) -> Matrix {
        let mut identity = Matrix::zero(size, size);
        for i in 0..size {
            identity[(i, i)] = Int::ONE;
        }
        identity
    }

    /// The matrix with entry `entry(i, j)` in row `i` and column `j`.
    pub fn from_fn(rows: usize, columns: usize, mut entry: impl FnMut(usize, usize) -> Int) -> Matrix {
        let mut entries = Vec::with_capacity(rows * columns);
        for i in 0..rows {
            entries.extend((0..columns).map(|j| entry(i, j)));
        }
        Matrix { rows, columns, entries }
    }

    /// The matrix with these rows; without rows it has no columns either.
    ///
    /// # Panics
    /// If the rows differ in length.
    pub fn from_rows(rows: &[&[i64]]) -> Matrix {
        let columns = rows.first().map_or(0, |row| row.len());
        assert!(rows.iter().all(|row| row.len() == columns), "rows differ in length");
        Matrix::from_fn(rows.len(), columns, |i, j| rows[i][j].into())
    }

    /// The matrix with these rows and `columns` columns.
    ///
    /// # Panics
    /// If a row is not of length `columns`.
    pub fn from_vectors(columns: usize, rows: Vec<Vec<Int>>) -> Matrix {
        assert!(rows.iter().all(|row| row.len() == columns), "a row has the wrong length");
        Matrix { rows: rows.len(), columns, entries: rows.into_iter().flatten().collect() }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The entry in row `i` and column `j`, if there is one.
    pub fn get(&self, i: usize, j: usize) -> Option<&Int> {
        (i < self.rows && j < self.columns).then(|| &self[(i, j)])
    }

    /// Replaces the entry in row `i` and column `j`.
    pub fn set(&mut self, i: usize, j: usize, value: Int) {
        self[(i, j)] = value;
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> &[Int] {
        &self.entries[i * self.columns..(i + 1) * self.columns]
    }

    /// Column `j`.
    pub fn column(&self, j: usize) -> Vec<Int> {
        (0..self.rows).map(|i| self[(i, j)].clone()).collect()
    }

    /// The rows in order.
    pub fn iter_rows(&self) -> impl Iterator<Item = &[Int]> {
        (0..self.rows).map(|i| self.row(i))
    }

    /// The transposed matrix.
    pub fn transpose(&self) -> Matrix {
        Matrix::from_fn(self.columns, self.rows, |i, j| self[(j, i)].clone())
    }

    /// The rows and columns within the given ranges.
    pub fn block(&self, rows: std::ops::Range<usize>, columns: std::ops::Range<usize>) -> Matrix {
        Matrix::from_fn(rows.len(), columns.len(), |i, j| self[(rows.start + i, columns.start + j)].clone())
    }

    /// The product `self · other`.
    ///
    /// # Panics
    /// If `other` has not as many rows as `self` has columns.
    pub fn mul(&self, other: &Matrix) -> Matrix {
        assert_eq!(self.columns, other.rows, "inner sizes differ");
        Matrix::from_fn(self.rows, other.columns, |i, j| {
            (0..self.columns).map(|k| &self[(i, k)] * &other[(k, j)]).sum()
        })
    }

    /// The product `self · x` with a column vector.
    ///
    /// # Panics
    /// If `x` has not as many elements as `self` has columns.
    pub fn apply(&self, x: &[Int]) -> Vec<Int> {
        assert_eq!(self.columns, x.len(), "inner sizes differ");
        self.iter_rows().map(|row| dot(row, x)).collect()
    }

    /// Whether every entry is zero.
    pub fn is_zero(&self) -> bool {
        self.entries.iter().all(Int::is_zero)
    }

    /// Exchanges two rows.
    pub fn swap_rows(&mut self, a: usize, b: usize) {
        for j in 0..self.columns {
            self.entries.swap(a * self.columns + j, b * self.columns + j);
        }
    }

    /// Exchanges two columns.
    pub fn swap_columns(&mut self, a: usize, b: usize) {
        for i in 0..self.rows {
            self.entries.swap(i * self.columns + a, i * self.columns + b);
        }
    }

    /// Adds `factor` times row `source` to row `target`.
    pub fn add_row(&mut self, target: usize, source: usize, factor: &Int) {
        for j in 0..self.columns {
            let change = factor * &self[(source, j)];
            self[(target, j)] += change;
        }
    }

    /// Adds `factor` times column `source` to column `target`.
    pub fn add_column(&mut self, target: usize, source: usize, factor: &Int) {
        for i in 0..self.rows {
            let change = factor * &self[(i, source)];
            self[(i, target)] += change;
        }
    }

    /// Changes the sign of a column.
    pub fn negate_column(&mut self, j: usize) {
        for i in 0..self.rows {
            self[(i, j)] = -&self[(i, j)];
        }
    }

    /// The determinant, by fraction-free (Bareiss) elimination.
    ///
    /// # Panics
    /// If the matrix is not square.
    pub fn determinant(&self) -> Int {
        assert_eq!(self.rows, self.columns, "the matrix is not square");
        let mut a = self.clone();
        let (mut sign, mut previous) = (Int::ONE, Int::ONE);
        for k in 0..a.rows {
            let Some(pivot) = (k..a.rows).find(|&i| !a[(i, k)].is_zero()) else { return Int::ZERO };
            if pivot != k {
                a.swap_rows(pivot, k);
                sign = -sign;
            }
            for i in k + 1..a.rows {
                for j in k + 1..a.columns {
                    // Exact: every intermediate entry is a minor of the matrix.
                    a[(i, j)] = (&a[(i, j)] * &a[(k, k)] - &a[(i, k)] * &a[(k, j)]) / &previous;
                }
            }
            previous = a[(k, k)].clone();
        }
        sign * previous
    }
}

/// The scalar product of two vectors of equal length.
pub(crate) fn dot(a: &[Int], b: &[Int]) -> Int {
    a.iter().zip(b).filter(|(x, _)| !x.is_zero()).map(|(x, y)| x * y).sum()
}

impl Index<(usize, usize)> for Matrix {
    type Output = Int;

    fn index(&self, (i, j): (usize, usize)) -> &Int {
        assert!(j < self.columns, "column {j} of {}", self.columns);
        &self.entries[i * self.columns + j]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut Int {
        assert!(j < self.columns, "column {j} of {}", self.columns);
        &mut self.entries[i * self.columns + j]
    }
}

/// One bracketed line per row, columns aligned to the right.
impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |i: usize, j: usize| self[(i, j)].to_string();
        let width = |j| (0..self.rows).map(|i| text(i, j).len()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns).map(width).collect();
        for i in 0..self.rows {
            let line: Vec<String> = (0..self.columns).map(|j| format!("{:>1$}", text(i, j), widths[j])).collect();
            write!(f, "{}[{}]", if i == 0 { "" } else { "\n" }, line.join(" "))?;
        }
        Ok(())
    }
}
