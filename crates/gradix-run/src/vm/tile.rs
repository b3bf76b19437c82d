//! Register tiles: `c[i, j] ⊕= f(a[k, i], b[k, j])` for a few rows and vectors, with all of `c` in registers.
//!
//! `a` is packed, the values of all rows for one term after the other. A term of `b` is a row of lanes at any place, so
//! that it can be used where it lies as well as from a panel.
#![allow(unsafe_code, reason = "vector instructions, on panels and targets that the caller has checked")]

use super::real::{Isa, Level, Real, by_level};
use super::vector::{Array, Rule, Step, Vector, with_rule};
use gradix::program::ReduceOp;

/// The work of one tile.
pub struct Tile<T> {
    /// Whether it has two vectors, and not as many as there are registers for.
    pub narrow: bool,
    pub terms: usize,
    /// `terms` times the rows of the tile.
    pub a: *const T,
    /// Where lanes are counted from.
    pub b: *const T,
    /// Where each term starts, from `b`.
    pub offsets: *const isize,
    /// The first element of the target.
    pub to: *mut T,
    /// Its distances from row to row and lane to lane.
    pub strides: [isize; 2],
    /// How many of the rows and lanes are written.
    pub shape: [usize; 2],
    /// The value that a reduction starts with.
    pub neutral: T,
    /// Whether the target's old value counts.
    pub combine: bool,
}

/// The rows and lanes of a tile.
pub fn size<T>(level: Level, narrow: bool) -> [usize; 2] {
    let (rows, vectors, bytes) = match level {
        Level::Avx512 => (8, 3, 64),
        Level::Avx2 => (4, 3, 32),
        Level::Baseline => (4, 2, 16),
    };
    [rows, if narrow { 2 } else { vectors } * bytes / size_of::<T>()]
}

/// Runs a tile.
///
/// # Safety
/// `a` has all terms, `b` has all lanes of the tile at each of `terms` offsets, and the target has its shape; the machine
/// has the instructions of the level.
pub unsafe fn run<T: Real>(level: Level, rule: Rule, work: &Tile<T>) {
    // SAFETY: the caller's promise.
    with_rule!(rule, Code => unsafe { run_rule::<T, Code>(level, work) });
}

by_level! { run_rule<T, R: Step>(work: &Tile<T>) = of_isa }

/// # Safety
/// As for [`run`].
#[inline(always)]
unsafe fn of_isa<T: Real, I: Isa, R: Step>(work: &Tile<T>) {
    // SAFETY: the caller's promise.
    unsafe { I::tile::<T, R>(work) }
}

/// The most numbers that a tile holds.
const MOST: usize = 8 * 48;

/// # Safety
/// As for [`run`].
#[inline(always)]
pub unsafe fn tile<T: Real, V: Vector<T>, R: Step, const M: usize, const N: usize>(work: &Tile<T>) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[V::all(work.neutral); N]; M];
        for term in 0..work.terms {
            let row = work.b.offset(*work.offsets.add(term));
            let mut lanes = [V::all(T::ZERO); N];
            for (j, lane) in lanes.iter_mut().enumerate() {
                *lane = V::load(row.add(j * V::WIDTH));
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let a = V::all(*work.a.add(term * M + i));
                for (sum, lane) in sums.iter_mut().zip(lanes) {
                    *sum = R::step(*sum, a, lane);
                }
            }
        }
        if work.shape == [M, N * V::WIDTH] && work.strides[1] == 1 {
            for (i, sums) in sums.iter().enumerate() {
                let line = work.to.offset(i as isize * work.strides[0]);
                for (j, sum) in sums.iter().enumerate() {
                    let to = line.add(j * V::WIDTH);
                    let value = if work.combine { R::combine(V::load(to), *sum) } else { *sum };
                    value.store(to);
                }
            }
        } else {
            let mut values = [T::ZERO; MOST];
            for (i, sums) in sums.iter().enumerate() {
                for (j, sum) in sums.iter().enumerate() {
                    sum.store(values.as_mut_ptr().add((i * N + j) * V::WIDTH));
                }
            }
            write::<T, R>(work, &values, N * V::WIDTH);
        }
    }
}

/// Writes a part of a tile, or one whose lanes are apart.
///
/// # Safety
/// The target has its shape.
unsafe fn write<T: Real, R: Step>(work: &Tile<T>, values: &[T; MOST], width: usize) {
    for i in 0..work.shape[0] {
        for j in 0..work.shape[1] {
            // SAFETY: the caller's promise.
            unsafe {
                let to = work.to.offset(i as isize * work.strides[0] + j as isize * work.strides[1]);
                let value = Array::<T, 1>::all(values[i * width + j]);
                (if work.combine { R::combine(Array::load(to), value) } else { value }).store(to);
            }
        }
    }
}
