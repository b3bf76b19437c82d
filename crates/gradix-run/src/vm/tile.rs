//! Register tiles: `c[i, j] ⊕= f(a[k, i], b[k, j])` for a few rows and vectors, with all of `c` in registers.
//!
//! A term of `a` is a column of rows and one of `b` a row of lanes, at any place: so they can be used where they lie as well
//! as from panels.
#![allow(unsafe_code, reason = "vector instructions, on panels and targets that the caller has checked")]
#![allow(clippy::needless_range_loop, reason = "adapters could become functions without the instructions of this set")]

use super::real::{Isa, Level, Real, by_level};
use super::vector::{Array, Rule, Step, Vector, WIDEST, with_rule};
use gradix::target::cost;

/// The work of one tile.
pub struct Tile<T> {
    /// How many vectors it has: up to as many as there are registers for.
    pub vectors: usize,
    pub terms: usize,
    /// Where rows and columns are counted from, and their distances; columns are lanes unless `lanes` says otherwise.
    pub operands: [(*const T, isize); 2],
    /// Where each term starts, from the operands.
    pub offsets: [*const isize; 2],
    /// How many lanes follow each start, where these are terms of a sum, too: `c[i, j] += f(a[i, k], b[j, k])`.
    pub lanes: Option<usize>,
    /// The first element of the target.
    pub to: *mut T,
    /// Its distances from row to row and column to column.
    pub strides: [isize; 2],
    /// How many of the rows and columns are written.
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
        lanes.next_multiple_of(vectors * level.width::<T>()) as f64 * cost::NARROW_TILE_COSTS[vectors + 2 - most]
    };
    (1..=most).min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap_or(1)
}

/// Runs a tile.
///
/// # Safety
/// The first operand has all rows at each of `terms` offsets, and the second whole vectors; or where lanes are terms, both
/// have these for each row and column that is written. The target has its shape, and the machine has the instructions of the
/// level.
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

/// The rows and columns of a tile whose lanes are terms.
pub fn dots(level: Level) -> [usize; 2] {
    [if level == Level::Avx512 { 4 } else { 2 }, 4]
}

/// Where lanes are terms. Those that are left over are zeros, which add nothing; where a tile has more rows or columns than
/// are written, the last one is computed again.
///
/// # Safety
/// As for [`run`].
#[inline(always)]
pub unsafe fn dot<T: Real, V: Vector<T>, R: Step, const M: usize, const N: usize>(work: &Tile<T>, lanes: usize) {
    let mut sums = [[V::all(T::ZERO); N]; M];
    let whole = lanes / V::WIDTH * V::WIDTH;
    let left = lanes - whole;
    // SAFETY: the caller's promise.
    unsafe {
        for term in 0..work.terms {
            let (a, b) = (work.places::<M>(0, term), work.places::<N>(1, term));
            let mut lane = 0;
            while lane < whole {
                dot_step::<T, V, R, M, N>(&mut sums, a, b, |from| V::load(from.add(lane)));
                lane += V::WIDTH;
            }
            if left > 0 {
                dot_step::<T, V, R, M, N>(&mut sums, a, b, |from| V::load_part(from.add(whole), left));
            }
        }
        let mut values = [T::ZERO; MAX_NUMBERS];
        for i in 0..M {
            for j in 0..N {
                values[i * N + j] = total(sums[i][j]);
            }
        }
        write::<T, R>(work, &values, N);
    }
}

impl<T> Tile<T> {
    /// Where a term starts in the rows or columns of a tile.
    ///
    /// # Safety
    /// There are as many terms.
    #[inline(always)]
    unsafe fn places<const N: usize>(&self, side: usize, term: usize) -> [*const T; N] {
        let (first, step) = self.operands[side];
        // SAFETY: the caller's promise.
        let start = first.wrapping_offset(unsafe { *self.offsets[side].add(term) });
        let mut places = [start; N];
        for n in 0..N {
            places[n] = start.wrapping_offset(n.min(self.shape[side] - 1) as isize * step);
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

/// The sum of all lanes, halves with halves.
#[inline(always)]
fn total<T: Real, V: Vector<T>>(vector: V) -> T {
    let mut values = [T::ZERO; WIDEST];
    // SAFETY: no vector is wider.
    unsafe { vector.store(values.as_mut_ptr()) };
    let mut half = V::WIDTH / 2;
    while half > 0 {
        for n in 0..half {
            values[n] = values[n] + values[n + half];
        }
        half /= 2;
    }
    values[0]
}

/// The most numbers that a tile holds.
const MAX_NUMBERS: usize = 8 * 48;

/// # Safety
/// As for [`run`].
#[inline(always)]
pub unsafe fn tile<T: Real, V: Vector<T>, R: Step, const M: usize, const N: usize>(work: &Tile<T>) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[V::all(work.neutral); N]; M];
        for term in 0..work.terms {
            let row = work.operands[1].0.offset(*work.offsets[1].add(term));
            let column = work.operands[0].0.offset(*work.offsets[0].add(term));
            let mut lanes = [V::all(T::ZERO); N];
            for j in 0..N {
                lanes[j] = V::load(row.add(j * V::WIDTH));
            }
            for i in 0..M {
                let a = V::all(*column.offset(i as isize * work.operands[0].1));
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
            let mut values = [T::ZERO; MAX_NUMBERS];
            for (i, sums) in sums.iter().enumerate() {
                for (j, sum) in sums.iter().enumerate() {
                    sum.store(values.as_mut_ptr().add((i * N + j) * V::WIDTH));
                }
            }
            write::<T, R>(work, &values, N * V::WIDTH);
        }
    }
}

/// Writes a part of a tile, or one whose columns are apart.
///
/// # Safety
/// The target has its shape.
unsafe fn write<T: Real, R: Step>(work: &Tile<T>, values: &[T; MAX_NUMBERS], width: usize) {
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
