//! The loops over lanes that instructions are made of, for any function of the lanes' values.
//!
//! Each is a part of the code for one instruction set (everything here is inlined), which the compiler makes vector
//! code of.
#![allow(unsafe_code, reason = "memory that the caller has checked, once for a whole block")]

use super::execute::PARTS;
use super::real::{Isa, Real};
use super::vector::{Array, Step, Vector};
use std::mem::MaybeUninit;

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

    /// # Safety
    /// The view holds this many lanes of that row, and nothing else reads or writes them while the slice lives.
    #[inline(always)]
    pub unsafe fn line_mut<'a>(self, row: usize, lanes: usize) -> &'a mut [T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.at(row), lanes) }
    }
}

/// As many lanes as are computed in one go where values are repeated.
const CHUNK: usize = 256;

/// One long row, where the rows of all operands follow each other.
#[inline(always)]
fn flat<T>((rows, lanes): (usize, usize), to: View<T>, operands: &[View<T>]) -> (usize, usize) {
    let follows = |v: &View<T>| if v.vector { v.row == lanes as isize } else { v.row == 0 };
    if follows(&to) && operands.iter().all(follows) { (1, rows * lanes) } else { (rows, lanes) }
}

/// Every element of the target becomes a function of what it was and of the operands. The function is called at one place
/// only, so that it becomes a part of the loop however long it is; what is the same for all lanes is repeated before.
///
/// # Safety
/// The views hold the shape, and no operand overlaps the target.
#[inline(always)]
pub unsafe fn update<T: Real, const N: usize>(
    shape: (usize, usize),
    to: View<T>,
    operands: [View<T>; N],
    f: impl Fn(T, [T; N]) -> T,
) {
    let (rows, lanes) = flat(shape, to, &operands);
    let mut repeated = [const { MaybeUninit::<[T; CHUNK]>::uninit() }; N];
    let chunk = if operands.iter().all(|operand| operand.vector) { lanes.max(1) } else { CHUNK };
    let mut from = [to.pointer.cast_const(); N];
    for row in 0..rows {
        for n in 0..N {
            if !operands[n].vector && (row == 0 || operands[n].row != 0) {
                // SAFETY: the caller's promise, and the chunk has room for as many.
                unsafe { repeat(*operands[n].at(row), &mut repeated[n], lanes.min(CHUNK)) };
            }
        }
        for start in (0..lanes).step_by(chunk) {
            let line = to.at(row).wrapping_add(start);
            for n in 0..N {
                let place = operands[n].at(row).wrapping_add(start);
                from[n] = if operands[n].vector { place } else { repeated[n].as_ptr().cast() };
            }
            for lane in 0..chunk.min(lanes - start) {
                let mut values = [T::ZERO; N];
                // SAFETY: the caller's promise, and as many values are repeated.
                unsafe {
                    for n in 0..N {
                        values[n] = *from[n].add(lane);
                    }
                    *line.add(lane) = f(*line.add(lane), values);
                }
            }
        }
    }
}

#[inline(always)]
fn repeat<T: Real>(value: T, to: &mut MaybeUninit<[T; CHUNK]>, count: usize) {
    for lane in 0..count.min(CHUNK) {
        // SAFETY: the chunk has as many.
        unsafe { to.as_mut_ptr().cast::<T>().add(lane).write(value) };
    }
}

/// `exp` of whole vectors; the last one of a line is filled up. (As an argument, the function would stand alone, without
/// the instructions of this set.)
///
/// # Safety
/// The views hold the shape, and the operand has lanes and does not overlap the target.
#[inline(always)]
pub unsafe fn exp_vectors<T: Real, V: Vector<T>>(shape: (usize, usize), to: View<T>, a: View<T>) {
    let (rows, lanes) = flat(shape, to, &[a]);
    let mut part = [T::ZERO; 16];
    assert!(V::WIDTH <= part.len() && a.vector, "whole vectors");
    for row in 0..rows {
        for start in (0..lanes).step_by(V::WIDTH) {
            let (from, into) = (a.at(row).wrapping_add(start), to.at(row).wrapping_add(start));
            let count = V::WIDTH.min(lanes - start);
            // SAFETY: the caller's promise; whole vectors lie in the lines, others in `part`.
            unsafe {
                if count == V::WIDTH {
                    V::load(from).exp().store(into);
                } else {
                    std::ptr::copy_nonoverlapping(from, part.as_mut_ptr(), count);
                    V::load(part.as_ptr()).exp().store(part.as_mut_ptr());
                    std::ptr::copy_nonoverlapping(part.as_ptr(), into, count);
                }
            }
        }
    }
}

/// The terms of the innermost loop of a reduction: how many, and how far each operand goes from one to the next.
#[derive(Clone, Copy)]
pub struct Terms {
    pub count: usize,
    pub steps: [isize; 2],
}

/// Adds all terms to the target, with the results in registers. If only one operand has lanes, it is the second.
///
/// # Safety
/// The views hold the shape for all terms, the second operand has lanes, and none overlaps the target.
#[inline(always)]
pub unsafe fn reduce<T: Real, I: Isa, R: Step>(
    shape: (usize, usize),
    to: View<T>,
    operands: [View<T>; 2],
    terms: Terms,
) {
    // SAFETY: the caller's promise.
    match operands[0].vector {
        true => unsafe { reduce_rows::<T, I, R, true>(shape, to, operands, terms) },
        false => unsafe { reduce_rows::<T, I, R, false>(shape, to, operands, terms) },
    }
}

/// # Safety
/// As for [`reduce`].
#[inline(always)]
unsafe fn reduce_rows<T: Real, I: Isa, R: Step, const PAIRED: bool>(
    shape: (usize, usize),
    to: View<T>,
    operands: [View<T>; 2],
    terms: Terms,
) {
    let (rows, lanes) = flat(shape, to, &operands);
    for row in 0..rows {
        let mut lane = 0;
        macro_rules! vectors {
            ($vector:ty, $count:literal) => {
                while lane + $count * <$vector>::WIDTH <= lanes {
                    let place = |view: View<T>| view.at(row).wrapping_add(if view.vector { lane } else { 0 });
                    // SAFETY: the caller's promise.
                    unsafe {
                        reduce_vectors::<T, $vector, R, PAIRED, $count>(place(to), operands.map(|o| place(o)), terms);
                    }
                    lane += $count * <$vector>::WIDTH;
                }
            };
        }
        vectors!(I::Vector<T>, 8);
        vectors!(I::Vector<T>, 2);
        vectors!(I::Vector<T>, 1);
        vectors!(Array<T, 4, I>, 1);
        vectors!(Array<T, 1, I>, 1);
    }
}

/// # Safety
/// There are `N` vectors at the target and, for all terms, at the operands; only one number at the first, if not paired.
#[inline(always)]
unsafe fn reduce_vectors<T: Real, V: Vector<T>, R: Step, const PAIRED: bool, const N: usize>(
    to: *mut T,
    [a, b]: [*mut T; 2],
    terms: Terms,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut results = [V::all(T::ZERO); N];
        results.iter_mut().enumerate().for_each(|(n, result)| *result = V::load(to.add(n * V::WIDTH)));
        for term in 0..terms.count as isize {
            let (a, b) = (a.wrapping_offset(term * terms.steps[0]), b.wrapping_offset(term * terms.steps[1]));
            for (n, result) in results.iter_mut().enumerate() {
                let a = if PAIRED { V::load(a.add(n * V::WIDTH)) } else { V::all(*a) };
                *result = R::step(*result, a, V::load(b.add(n * V::WIDTH)));
            }
        }
        results.iter().enumerate().for_each(|(n, result)| result.store(to.add(n * V::WIDTH)));
    }
}

/// Lane `l` goes to part `l % PARTS`, so the result does not depend on how lanes are divided into blocks.
///
/// # Safety
/// The views hold the shape, `to` holds [`PARTS`] values for each row, and no operand overlaps it; the machine has the
/// instructions of the vectors.
#[inline(always)]
pub unsafe fn fold<T: Real, V: Vector<T>, R: Step>((rows, lanes): (usize, usize), to: View<T>, operands: [View<T>; 2]) {
    let whole = lanes / PARTS * PARTS;
    for row in 0..rows {
        // SAFETY: the caller's promise.
        unsafe {
            let line = to.at(row);
            // Of the most vectors that there can be, only the first `PARTS / V::WIDTH` are used.
            let mut parts = [V::all(T::ZERO); PARTS / 2];
            for (n, part) in parts[..PARTS / V::WIDTH].iter_mut().enumerate() {
                *part = V::load(line.add(n * V::WIDTH));
            }
            let places = operands.map(|o| o.at(row).cast_const());
            let load = |n: usize, lane: usize| match operands[n].vector {
                true => V::load(places[n].add(lane)),
                false => V::all(*places[n]),
            };
            for start in (0..whole).step_by(PARTS) {
                for (n, part) in parts[..PARTS / V::WIDTH].iter_mut().enumerate() {
                    *part = R::step(*part, load(0, start + n * V::WIDTH), load(1, start + n * V::WIDTH));
                }
            }
            for (n, part) in parts[..PARTS / V::WIDTH].iter().enumerate() {
                part.store(line.add(n * V::WIDTH));
            }
            if whole < lanes {
                fold_rest::<T, V, R>(line, operands.map(|o| rest(o, row, whole, lanes)), lanes - whole);
            }
        }
    }
}

/// Folds the lanes that are left, as whole vectors of which a part counts.
///
/// # Safety
/// There are at most [`PARTS`], and as many at `line`.
#[inline(always)]
unsafe fn fold_rest<T: Real, V: Vector<T>, R: Step>(line: *mut T, [a, b]: [[T; PARTS]; 2], count: usize) {
    let mut values = [T::ZERO; PARTS];
    // SAFETY: the caller's promise.
    unsafe {
        for at in (0..count).step_by(V::WIDTH) {
            let (a, b) = (V::load(a.as_ptr().add(at)), V::load(b.as_ptr().add(at)));
            R::step(V::load(line.add(at)), a, b).store(values.as_mut_ptr().add(at));
        }
        std::slice::from_raw_parts_mut(line, count).copy_from_slice(&values[..count]);
    }
}

/// The lanes of a row from `start` on, and zeros after them.
///
/// # Safety
/// The view holds the lanes, and there are at most [`PARTS`].
#[inline(always)]
unsafe fn rest<T: Real>(view: View<T>, row: usize, start: usize, lanes: usize) -> [T; PARTS] {
    let mut values = [T::ZERO; PARTS];
    // SAFETY: the caller's promise.
    unsafe {
        match view.vector {
            true => std::ptr::copy_nonoverlapping(view.at(row).add(start), values.as_mut_ptr(), lanes - start),
            false => values.fill(*view.at(row)),
        }
    }
    values
}

/// # Safety
/// The source holds all elements at these steps, and `to` the shape; they don't overlap.
#[inline(always)]
pub unsafe fn gather<T: Real>(to: View<T>, shape: (usize, usize), from: *const T, [row, lane]: [isize; 2]) {
    for r in 0..shape.0 {
        // SAFETY: the caller's promise.
        unsafe {
            let start = from.offset(r as isize * row);
            to.line_mut(r, shape.1).iter_mut().enumerate().for_each(|(l, to)| *to = *start.offset(l as isize * lane));
        }
    }
}
