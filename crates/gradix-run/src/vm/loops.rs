//! The loops over lanes that instructions are made of, for any function of the lanes' values.
//!
//! Each is a part of the code for one instruction set (everything here is inlined), which the compiler makes vector
//! code of.
#![allow(unsafe_code, reason = "memory that the caller has checked, once for a whole block")]
#![allow(clippy::needless_range_loop, reason = "adapters could become functions without the instructions of this set")]

use super::real::{Isa, Real};
use super::vector::{Step, Vector, WIDEST};
use gradix::target::cost;

/// An operand: rows of lanes in memory, or a value for each row.
#[derive(Clone, Copy)]
pub struct View<T> {
    pub pointer: *mut T,
    /// The distance from row to row.
    pub row: isize,
    /// Whether the lanes lie one after the other; else all have the same value.
    pub vector: bool,
}

impl<T: Real> View<T> {
    /// Where a row starts; it need not be there.
    #[inline(always)]
    pub fn at(self, row: usize) -> *mut T {
        self.pointer.wrapping_offset(row as isize * self.row)
    }

    /// Where a lane of a row is; it need not be there.
    #[inline(always)]
    pub fn lane_at(self, row: usize, lane: usize) -> *mut T {
        self.at(row).wrapping_add(if self.vector { lane } else { 0 })
    }

    /// # Safety
    /// The view holds this many lanes of that row, and nothing else reads or writes them while the slice lives.
    #[inline(always)]
    pub unsafe fn line_mut<'a>(self, row: usize, lanes: usize) -> &'a mut [T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.at(row), lanes) }
    }
}

/// One long row, where the rows of all operands follow each other.
#[inline(always)]
fn flat<T>((rows, lanes): (usize, usize), to: View<T>, operands: &[View<T>]) -> (usize, usize) {
    let mut follow = to.row == lanes as isize;
    for operand in operands {
        follow &= operand.row == if operand.vector { lanes as isize } else { 0 };
    }
    if follow { (1, rows * lanes) } else { (rows, lanes) }
}

/// Every element of the target becomes a function of the operands. Bit `n` of `MASK` says that
/// operand `n` has lanes; the others have a value for each row.
///
/// # Safety
/// The views hold the shape and are as the mask says, and no operand overlaps the target.
#[inline(always)]
pub unsafe fn update<T: Real, const N: usize, const MASK: usize>(
    shape: (usize, usize),
    to: View<T>,
    operands: [View<T>; N],
    f: impl Fn([T; N]) -> T,
) {
    let (rows, lanes) = flat(shape, to, &operands);
    for row in 0..rows {
        let line = to.at(row);
        let mut from = [line.cast_const(); N];
        for n in 0..N {
            from[n] = operands[n].at(row).cast_const();
        }
        let mut values = [T::ZERO; N];
        // SAFETY: the caller's promise.
        unsafe {
            for n in 0..N {
                if MASK >> n & 1 == 0 {
                    values[n] = *from[n];
                }
            }
            let mut lane = 0;
            // Short rows in whole vectors, without a look at where they lie.
            while N > 1 && rows > 1 && lanes < cost::SHORT_ROW_LINES * T::PER_LINE && lane + WIDEST <= lanes {
                let mut results = [T::ZERO; WIDEST];
                for i in 0..WIDEST {
                    for n in 0..N {
                        if MASK >> n & 1 == 1 {
                            values[n] = *from[n].add(lane + i);
                        }
                    }
                    results[i] = f(values);
                }
                *line.add(lane).cast::<[T; WIDEST]>() = results;
                lane += WIDEST;
            }
            for lane in lane..lanes {
                for n in 0..N {
                    if MASK >> n & 1 == 1 {
                        values[n] = *from[n].add(lane);
                    }
                }
                *line.add(lane) = f(values);
            }
        }
    }
}

/// Which operands have lanes.
#[inline(always)]
pub fn mask<T>(operands: &[View<T>]) -> usize {
    let mut mask = 0;
    for n in 0..operands.len() {
        mask |= usize::from(operands[n].vector) << n;
    }
    mask
}

/// `exp` of whole vectors; the last one of a line is filled up. (As an argument, the function would stand alone, without
/// the instructions of this set.)
///
/// # Safety
/// The views hold the shape, and the operand has lanes and does not overlap the target.
#[inline(always)]
pub unsafe fn exp_vectors<T: Real, V: Vector<T>>(shape: (usize, usize), to: View<T>, a: View<T>) {
    let (rows, lanes) = flat(shape, to, &[a]);
    for row in 0..rows {
        for start in (0..lanes).step_by(V::WIDTH) {
            let (from, into) = (a.at(row).wrapping_add(start), to.at(row).wrapping_add(start));
            let count = V::WIDTH.min(lanes - start);
            // SAFETY: the caller's promise.
            unsafe {
                match count == V::WIDTH {
                    true => V::load(from).exp().store(into),
                    false => V::load_part(from, count).exp().store_part(into, count),
                }
            }
        }
    }
}

/// The terms of a reduction's inner loops: where runs of them start, how long these are, and how far each operand goes
/// from one term to the next.
#[derive(Clone, Copy)]
pub struct Terms<'a, T> {
    pub runs: &'a [[isize; 2]],
    pub count: usize,
    pub steps: [isize; 2],
    /// What the target starts with, in place of what it holds.
    pub start: Option<T>,
}

/// Adds all terms to the target, with the results in registers. If only one operand has lanes, it is the second.
///
/// # Safety
/// The views hold the shape for all terms, the second operand has lanes, and none overlaps the target.
#[inline(always)]
pub unsafe fn reduce_rows<T: Real, I: Isa, R: Step>(
    shape: (usize, usize),
    to: View<T>,
    operands: [View<T>; 2],
    terms: Terms<'_, T>,
) {
    // SAFETY: the caller's promise.
    match operands[0].vector && !R::SINGLE {
        true => unsafe { reduce_lanes::<T, I, R, true>(shape, to, operands, terms) },
        false => unsafe { reduce_lanes::<T, I, R, false>(shape, to, operands, terms) },
    }
}

/// # Safety
/// As for [`reduce_rows`].
#[inline(always)]
unsafe fn reduce_lanes<T: Real, I: Isa, R: Step, const PAIRED: bool>(
    shape: (usize, usize),
    to: View<T>,
    operands: [View<T>; 2],
    terms: Terms<'_, T>,
) {
    let (rows, lanes) = flat(shape, to, &operands);
    for row in 0..rows {
        let mut lane = 0;
        macro_rules! vectors {
            ($count:literal, $left:expr) => {{
                let operands = [operands[0].lane_at(row, lane), operands[1].lane_at(row, lane)];
                // SAFETY: the caller's promise.
                unsafe {
                    reduce_vectors::<T, I::Vector<T>, R, PAIRED, $count>(to.lane_at(row, lane), operands, terms, $left)
                };
                $count
            }};
        }
        let width = <I::Vector<T>>::WIDTH;
        while lane < lanes {
            lane += width
                * match (lanes - lane) / width {
                    8.. => vectors!(8, width),
                    4.. => vectors!(4, width),
                    2.. => vectors!(2, width),
                    _ => vectors!(1, width.min(lanes - lane)),
                };
        }
    }
}

/// Of the last vector, so many lanes count.
///
/// # Safety
/// There are `N` vectors at the target and, for all terms, at the operands; only one number at the first, if not paired.
#[inline(always)]
unsafe fn reduce_vectors<T: Real, V: Vector<T>, R: Step, const PAIRED: bool, const N: usize>(
    to: *mut T,
    [a, b]: [*mut T; 2],
    terms: Terms<'_, T>,
    left: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut results = [V::all(T::ZERO); N];
        for n in 0..N {
            results[n] = match terms.start {
                Some(start) => V::all(start),
                None => load::<T, V, N>(to, n, left),
            };
        }
        for run in 0..terms.runs.len() {
            let [start_a, start_b] = *terms.runs.get_unchecked(run);
            let (a, b) = (a.wrapping_offset(start_a), b.wrapping_offset(start_b));
            for term in 0..terms.count as isize {
                let (a, b) = (a.wrapping_offset(term * terms.steps[0]), b.wrapping_offset(term * terms.steps[1]));
                for n in 0..N {
                    let a =
                        if PAIRED { load::<T, V, N>(a, n, left) } else { V::all(if R::SINGLE { T::ZERO } else { *a }) };
                    results[n] = R::step(results[n], a, load::<T, V, N>(b, n, left));
                }
            }
        }
        for n in 0..N {
            match N > 1 || left == V::WIDTH {
                true => results[n].store(to.add(n * V::WIDTH)),
                false => results[n].store_part(to, left),
            }
        }
    }
}

/// A vector of several, or a part of the only one.
///
/// # Safety
/// It is there.
#[inline(always)]
unsafe fn load<T: Real, V: Vector<T>, const N: usize>(from: *const T, n: usize, left: usize) -> V {
    // SAFETY: the caller's promise.
    unsafe {
        match N > 1 || left == V::WIDTH {
            true => V::load(from.add(n * V::WIDTH)),
            false => V::load_part(from, left),
        }
    }
}

/// Brings a line of the caches closer, if there is one.
#[inline(always)]
pub fn fetch<T>(from: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: nothing is read, wherever it points.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(from.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = from;
}

/// Copies so many numbers past the caches: whole vectors that start where a vector may.
///
/// # Safety
/// Both hold as many, and they don't overlap.
#[inline(always)]
pub unsafe fn stream<T: Real, V: Vector<T>>(from: *const T, to: *mut T, count: usize) {
    let head = to.align_offset(V::WIDTH * size_of::<T>()).min(count);
    let whole = head + (count - head) / V::WIDTH * V::WIDTH;
    // SAFETY: the caller's promise.
    unsafe {
        line(from, 1, to, 1, head);
        (head..whole).step_by(V::WIDTH).for_each(|i| V::load(from.add(i)).stream(to.add(i)));
        line(from.add(whole), 1, to.add(whole), 1, count - whole);
    }
}

/// Copies a block from some steps to others: along whichever of rows and lanes lies closer, where that is not the same
/// on both sides in small squares, so that lines of the cache are used while they are there.
///
/// # Safety
/// Both hold all elements at their steps, and they don't overlap.
#[inline(always)]
pub unsafe fn transfer<T: Real>(shape: (usize, usize), from: (*mut T, [isize; 2]), to: (*mut T, [isize; 2])) {
    if shape == (1, 1) {
        // SAFETY: the caller's promise.
        return unsafe { *to.0 = *from.0 };
    }
    let rows_first = |steps: [isize; 2]| steps[0].abs() < steps[1].abs();
    let turned = shape.1 == 1 || shape.0 > 1 && rows_first(from.1) && rows_first(to.1);
    let [outer, inner] = if turned { [shape.1, shape.0] } else { [shape.0, shape.1] };
    let (from_steps, to_steps) = match turned {
        true => ([from.1[1], from.1[0]], [to.1[1], to.1[0]]),
        false => (from.1, to.1),
    };
    // SAFETY: the caller's promise.
    unsafe {
        let crossed = outer > 1 && rows_first(from_steps) != rows_first(to_steps);
        let square = if crossed { cost::SQUARE_ELEMENTS } else { inner.max(1) };
        for begin in (0..inner).step_by(square) {
            for o in 0..outer as isize {
                let from = from.0.offset(o * from_steps[0] + begin as isize * from_steps[1]);
                let to = to.0.offset(o * to_steps[0] + begin as isize * to_steps[1]);
                line(from, from_steps[1], to, to_steps[1], square.min(inner - begin));
            }
        }
    }
}

/// Copies so many elements at some steps to others.
///
/// # Safety
/// Both hold as many, and they don't overlap.
#[inline(always)]
pub unsafe fn line<T: Real>(from: *const T, step: isize, to: *mut T, to_step: isize, count: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match (step, to_step) {
            // Some vectors, without a call.
            (1, 1) if count <= cost::SHORT_LINE_ELEMENTS && count.is_multiple_of(4) => {
                (0..count).step_by(4).for_each(|i| *to.add(i).cast::<[T; 4]>() = *from.add(i).cast::<[T; 4]>());
            }
            (1, 1) => std::ptr::copy_nonoverlapping(from, to, count),
            (0, 1) => std::slice::from_raw_parts_mut(to, count).fill(*from),
            (-1, 1) => (0..count).for_each(|i| *to.add(i) = *from.sub(i)),
            (2, 1) => (0..count).for_each(|i| *to.add(i) = *from.add(2 * i)),
            (_, 1) => (0..count).for_each(|i| *to.add(i) = *from.offset(i as isize * step)),
            _ => (0..count as isize).for_each(|i| *to.offset(i * to_step) = *from.offset(i * step)),
        }
    }
}
