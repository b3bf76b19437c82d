//! Exact integer linear algebra.
//!
//! | question | answer |
//! | --- | --- |
//! | which integers solve `A x = b`, for every `b`? | [`solve`]: pseudo-inverse, kernel and cokernel, from the [`smith`] form |
//! | what is a canonical, what a short basis of a lattice? | [`hermite`], [`lll`] |
//! | which integers solve `A x ≥ b`, for every `b`? | [`fourier_motzkin`]: the range of each variable in turn |
//! | is a set of integer points empty, does it imply an inequality, what are its bounds, points, projections? | [`Polyhedron`] |
//!
//! All numbers are [`Int`], which grow as needed; nothing wraps and nothing is rounded unless it says so. The methods
//! are those of section 4 of the paper *Automatic Differentiation for Tensor Algebras*, with the integer conditions
//! that it leaves out. Linear programs inside run in machine words and fall back to [`Int`] when one overflows.
//!
//! # A line of points
//!
//! Which `α` with `0 ≤ α₁ ≤ 6` and `0 ≤ α₂ ≤ 4` have `α₁ - 2 α₂ = -1`? They are `I β + K z` for three values of `z`
//! (the paper's first lattice figure).
//!
//! ```
//! use gradix_int::{Int, Matrix, fourier_motzkin, solve};
//!
//! let solution = solve(&Matrix::from_rows(&[&[1, -2]]));
//! assert_eq!(solution.kernel, Matrix::from_rows(&[&[2], &[1]]));
//! assert_eq!(solution.particular(&[(-1).into()]), Some(vec![(-1).into(), 0.into()]));
//!
//! // -1 + 2 z ≥ 0,  -1 + 2 z ≤ 6,  z ≥ 0,  z ≤ 4
//! let system = Matrix::from_rows(&[&[2], &[-2], &[1], &[-1]]);
//! let b: Vec<Int> = [1, -7, 0, -4].map(Int::from).into();
//! let solved = fourier_motzkin(&system, 100)?;
//! assert!(solved.is_feasible(&b));
//! assert_eq!(solved.range(0, &b, &[]), (Some(1.into()), Some(3.into())));
//! # Ok::<(), gradix_int::TooLarge>(())
//! ```
//!
//! # A plane of points
//!
//! Which `α` with `0 ≤ α₁ ≤ 6` and `0 ≤ α₂ ≤ 4` have `α₁ - 2 α₂ - 2 α₃ = 3`? With `α = (3, 0, 0) + K z` the box is a
//! parallelogram in `z`, with 15 points: `-1 ≤ z₂ ≤ 5` and `max(-1, -z₂) ≤ z₁ ≤ min(1, 4 - z₂)` (the paper's second
//! lattice figure; its box is read off the drawing, in which `α₃` is not bounded, and its kernel is corrected).
//!
//! ```
//! use gradix_int::{Matrix, Polyhedron, Row, solve};
//!
//! let solution = solve(&Matrix::from_rows(&[&[1, -2, -2]]));
//! assert_eq!(solution.kernel, Matrix::from_rows(&[&[2, 0], &[1, 1], &[0, -1]]));
//! assert_eq!(solution.particular(&[3.into()]), Some(vec![3.into(), 0.into(), 0.into()]));
//!
//! let mut z = Polyhedron::new(2);
//! z.add_inequality(Row::from_i64(&[2, 0], 3)); //        α₁ = 3 + 2 z₁ ≥ 0
//! z.add_inequality(Row::from_i64(&[-2, 0], 3)); //   6 - α₁ = 3 - 2 z₁ ≥ 0
//! z.add_inequality(Row::from_i64(&[1, 1], 0)); //        α₂ = z₁ + z₂ ≥ 0
//! z.add_inequality(Row::from_i64(&[-1, -1], 4)); //  4 - α₂ = 4 - z₁ - z₂ ≥ 0
//! assert_eq!(z.to_string(), "x0 + 1 >= 0 and -x0 + 1 >= 0 and x0 + x1 >= 0 and -x0 - x1 + 4 >= 0");
//! assert_eq!(z.bounds(1), (Some((-1).into()), Some(5.into())));
//! assert_eq!(z.points(100).map(|points| points.len()), Some(15));
//! ```

mod eliminate;
mod fourier_motzkin;
mod hermite;
mod linear_program;
mod lll;
mod matrix;
mod polyhedron;
mod redundant;
mod row;
mod sample;
mod scalar;
mod smith;
mod solve;
mod tableau;

pub use dashu_int::IBig as Int;

pub use eliminate::TooLarge;
pub use fourier_motzkin::{FourierMotzkin, Level, fourier_motzkin};
pub use hermite::{Hermite, hermite};
pub use lll::lll;
pub use matrix::Matrix;
pub use polyhedron::Polyhedron;
pub use row::Row;
pub use sample::Sample;
pub use smith::{Smith, smith};
pub use solve::{IntegerSolution, RationalMatrix, solve};
