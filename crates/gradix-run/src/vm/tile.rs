//! Register tiles: `c[i, j] ⊕= f(a[k, i], b[k, j])` for a few rows and vectors, with all of `c` in registers.
//!
//! A term of `a` is a column of rows and one of `b` a row of lanes, at any place: so they can be used where they lie as well
//! as from panels.
#![allow(unsafe_code, reason = "vector instructions, on panels and targets that the caller has checked")]
#![allow(clippy::needless_range_loop, reason = "adapters could become functions without the instructions of this set")]

use super::real::{Isa, Level, Real, by_level};
use super::vector::{Array, Rule, Step, Vector, WIDEST, with_rule};
use gradix::program::ReduceOp;

/// The work of one tile.
pub struct Tile<T> {
    /// How many vectors it has: up to as many as there are registers for.
    pub vectors: usize,
    /// Whether it has half the rows.
    pub low: bool,
    pub terms: usize,
    /// Where rows are counted from, and the distance of rows.
    pub a: *const T,
    pub a_step: isize,
    /// Where lanes are counted from.
    pub b: *const T,
    /// Where each term starts, from `a` and from `b`.
    pub offsets: [*const isize; 2],
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
pub fn size<T>(level: Level, vectors: usize) -> [usize; 2] {
    [if level == Level::Avx512 { 8 } else { 4 }, vectors * level.width::<T>()]
}

/// The vectors of tiles for so many lanes that waste least on their edge; narrow ones load more for each term.
pub fn vectors<T>(level: Level, lanes: usize) -> usize {
    let most = if level == Level::Baseline { 2 } else { 3 };
    let cost = |vectors: &usize| {
        lanes.next_multiple_of(vectors * level.width::<T>()) as f64 * [1.2, 1.08, 1.0][vectors + 2 - most]
    };
    (1..=most).min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap_or(1)
}

/// Runs a tile.
///
/// # Safety
/// `a` has all rows and `b` all lanes of the tile at each of `terms` offsets, and the target has its shape; the machine
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

/// The work of a tile whose lanes are the reduction: `c[i, j] ⊕= f(a[i, k], b[j, k])`.
pub struct Dot<'a, T> {
    /// The first elements, and the distances from row to row and from column to column.
    pub operands: [(*mut T, isize); 2],
    /// How many rows and columns there are; the tile computes the last one again where it has more.
    pub counts: [usize; 2],
    /// Where lanes start, from the first elements.
    pub runs: &'a [[isize; 2]],
    /// How many lanes follow each start.
    pub lanes: usize,
    pub neutral: T,
}

/// The most results of a tile whose lanes are the reduction.
pub const DOTS: usize = 16;

/// The rows and columns of such a tile.
pub fn dots(level: Level) -> [usize; 2] {
    match level {
        Level::Avx512 => [4, 4],
        Level::Avx2 | Level::Baseline => [2, 4],
    }
}

/// Runs a tile whose lanes are the reduction.
///
/// # Safety
/// The operands have all rows or columns and lanes; the machine has the instructions of the level.
pub unsafe fn run_dot<T: Real>(level: Level, rule: Rule, work: &Dot<'_, T>, sums: &mut [T; DOTS]) {
    // SAFETY: the caller's promise.
    with_rule!(rule, Code => unsafe { run_dot_rule::<T, Code>(level, work, sums) });
}

by_level! { run_dot_rule<T, R: Step>(work: &Dot<'_, T>, sums: &mut [T; DOTS]) = dot_of_isa }

/// # Safety
/// As for [`run_dot`].
#[inline(always)]
unsafe fn dot_of_isa<T: Real, I: Isa, R: Step>(work: &Dot<'_, T>, sums: &mut [T; DOTS]) {
    // SAFETY: the caller's promise.
    unsafe { I::dot::<T, R>(work, sums) }
}

/// Adds the terms to the sums, of which there is one for each row and column of the tile.
///
/// # Safety
/// As for [`run_dot`].
#[inline(always)]
pub unsafe fn dot<T: Real, V: Vector<T>, R: Step, const M: usize, const N: usize>(
    work: &Dot<'_, T>,
    totals: &mut [T; DOTS],
) {
    let mut sums = [[V::all(work.neutral); N]; M];
    let whole = work.lanes / V::WIDTH * V::WIDTH;
    let left = work.lanes - whole;
    for run in 0..work.runs.len() {
        let a: [*const T; M] = work.places(0, run);
        let b: [*const T; N] = work.places(1, run);
        // SAFETY: the caller's promise.
        unsafe {
            let mut lane = 0;
            while lane < whole {
                dot_step::<T, V, R, M, N>(&mut sums, a, b, |from| V::load(from.add(lane)));
                lane += V::WIDTH;
            }
            if left > 0 {
                let mut last = sums;
                dot_step::<T, V, R, M, N>(&mut last, a, b, |from| V::load_part(from.add(whole), left));
                for i in 0..M {
                    for j in 0..N {
                        sums[i][j] = last[i][j].first(sums[i][j], left);
                    }
                }
            }
        }
    }
    for i in 0..M {
        for j in 0..N {
            totals[i * N + j] = combine::<T, R>(totals[i * N + j], across::<T, V, R>(sums[i][j]));
        }
    }
}

impl<T> Dot<'_, T> {
    /// Where a run starts in the rows or columns of a tile.
    #[inline(always)]
    fn places<const N: usize>(&self, side: usize, run: usize) -> [*const T; N] {
        let (first, step) = self.operands[side];
        let mut places = [first.cast_const(); N];
        for n in 0..N {
            places[n] = first.wrapping_offset(self.runs[run][side] + n.min(self.counts[side] - 1) as isize * step);
        }
        places
    }
}

/// One vector of each row and column.
///
/// # Safety
/// Vectors can be loaded from all operands.
#[inline(always)]
unsafe fn dot_step<T: Real, V: Vector<T>, R: Step, const M: usize, const N: usize>(
    sums: &mut [[V; N]; M],
    a: [*const T; M],
    b: [*const T; N],
    load: impl Fn(*const T) -> V,
) {
    let mut columns = [V::all(T::ZERO); N];
    for j in 0..N {
        columns[j] = load(b[j]);
    }
    for i in 0..M {
        let row = load(a[i]);
        for j in 0..N {
            sums[i][j] = R::step(sums[i][j], row, columns[j]);
        }
    }
}

/// The lanes of a vector combined: halves with halves.
#[inline(always)]
fn across<T: Real, V: Vector<T>, R: Step>(vector: V) -> T {
    let mut values = [T::ZERO; WIDEST];
    // SAFETY: no vector is wider.
    unsafe { vector.store(values.as_mut_ptr()) };
    let mut half = V::WIDTH / 2;
    while half > 0 {
        for n in 0..half {
            values[n] = combine::<T, R>(values[n], values[n + half]);
        }
        half /= 2;
    }
    values[0]
}

#[inline(always)]
fn combine<T: Real, R: Step>(a: T, b: T) -> T {
    R::combine(Array::<T, 1>::all(a), Array::all(b)).0[0]
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
            let row = work.b.offset(*work.offsets[1].add(term));
            let column = work.a.offset(*work.offsets[0].add(term));
            let mut lanes = [V::all(T::ZERO); N];
            for j in 0..N {
                lanes[j] = V::load(row.add(j * V::WIDTH));
            }
            for i in 0..M {
                let a = V::all(*column.offset(i as isize * work.a_step));
                for j in 0..N {
                    sums[i][j] = R::step(sums[i][j], a, lanes[j]);
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
