//! The loops over lanes that instructions are made of, for any function of the lanes' values.
//!
//! Each is a part of the code for one instruction set (everything here is inlined), which the compiler makes vector
//! code of.
#![allow(unsafe_code, reason = "slices of memory that the caller has checked, once for a whole block")]

use super::execute::PARTS;
use super::grouping::SPREAD;
use super::real::Real;
use super::tile::{Step, Vector};

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
    /// # Safety
    /// The view holds this many lanes of that row, and nothing writes them while the slice lives.
    #[inline(always)]
    pub unsafe fn line<'a>(self, row: usize, lanes: usize) -> &'a [T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.pointer.offset(row as isize * self.row), lanes) }
    }

    /// # Safety
    /// The view holds this many lanes of that row, and nothing else reads or writes them while the slice lives.
    #[inline(always)]
    pub unsafe fn line_mut<'a>(self, row: usize, lanes: usize) -> &'a mut [T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.offset(row as isize * self.row), lanes) }
    }

    /// # Safety
    /// The view holds a value for that row.
    #[inline(always)]
    pub unsafe fn value(self, row: usize) -> T {
        // SAFETY: the caller's promise.
        unsafe { *self.pointer.offset(row as isize * self.row) }
    }
}

/// As many lanes as the compiler takes at a time, or a multiple of it.
const CHUNK: usize = 64;

/// One long row, where the rows of all operands follow each other.
#[inline(always)]
pub fn flat<T, const N: usize>((rows, lanes): (usize, usize), views: [View<T>; N]) -> (usize, usize) {
    let flat = views.iter().all(|v| if v.vector { v.row == lanes as isize } else { v.row == 0 });
    if flat { (1, rows * lanes) } else { (rows, lanes) }
}

/// The function is called at one place only, so that it becomes a part of the loop however long it is.
///
/// # Safety
/// The views hold the shape, and no operand overlaps the target.
#[inline(always)]
pub unsafe fn map<T: Real>(shape: (usize, usize), to: View<T>, a: View<T>, f: impl Fn(T) -> T) {
    let (rows, lanes) = flat(shape, [to, a]);
    let computed = if a.vector { lanes } else { lanes.min(1) };
    for row in 0..rows {
        // SAFETY: the caller's promise.
        let (line, a) = unsafe { (to.line_mut(row, lanes), a.line(row, computed)) };
        let (first, rest) = line.split_at_mut(computed);
        first.iter_mut().zip(a).for_each(|(to, a)| *to = f(*a));
        if let Some(value) = first.last() {
            rest.fill(*value);
        }
    }
}

/// As [`map`], with a function of whole vectors; the last one of a line is filled up.
///
/// # Safety
/// The views hold the shape, and no operand overlaps the target.
#[inline(always)]
pub unsafe fn map_vectors<T: Real, V: Vector<T>>(shape: (usize, usize), to: View<T>, a: View<T>, f: impl Fn(V) -> V) {
    let (rows, lanes) = flat(shape, [to, a]);
    let computed = if a.vector { lanes } else { lanes.min(1) };
    let mut part = [T::ZERO; 16];
    assert!(V::WIDTH <= part.len());
    for row in 0..rows {
        // SAFETY: the caller's promise; whole vectors lie in the lines, others in `part`.
        unsafe {
            let (line, a) = (to.line_mut(row, lanes), a.line(row, computed));
            let (first, rest) = line.split_at_mut(computed);
            let mut from = a.chunks_exact(V::WIDTH);
            let mut into = first.chunks_exact_mut(V::WIDTH);
            for (from, into) in (&mut from).zip(&mut into) {
                f(V::load(from.as_ptr())).store(into.as_mut_ptr());
            }
            let (from, into) = (from.remainder(), into.into_remainder());
            if !from.is_empty() {
                part[..from.len()].copy_from_slice(from);
                f(V::load(part.as_ptr())).store(part.as_mut_ptr());
                into.copy_from_slice(&part[..from.len()]);
            }
            if let Some(value) = first.first() {
                rest.fill(*value);
            }
        }
    }
}

/// As [`map2`], with the function called at one place only.
///
/// # Safety
/// The views hold the shape, and no operand overlaps the target.
#[inline(always)]
pub unsafe fn map2_long<T: Real>(shape: (usize, usize), to: View<T>, a: View<T>, b: View<T>, f: impl Fn(T, T) -> T) {
    const PART: usize = 64;
    let (rows, lanes) = flat(shape, [to, a, b]);
    let take = |view: View<T>, row: usize, start: usize, part: &mut [T]| {
        // SAFETY: the caller's promise.
        match view.vector {
            true => part.copy_from_slice(unsafe { &view.line(row, lanes)[start..start + part.len()] }),
            false => part.fill(unsafe { view.value(row) }),
        }
    };
    let (mut left, mut right) = ([T::ZERO; PART], [T::ZERO; PART]);
    for row in 0..rows {
        // SAFETY: the caller's promise.
        let line = unsafe { to.line_mut(row, lanes) };
        for (number, part) in line.chunks_mut(PART).enumerate() {
            let count = part.len();
            take(a, row, number * PART, &mut left[..count]);
            take(b, row, number * PART, &mut right[..count]);
            let operands = left[..count].iter().zip(&right[..count]);
            part.iter_mut().zip(operands).for_each(|(to, (a, b))| *to = f(*a, *b));
        }
    }
}

/// # Safety
/// The views hold the shape, and no operand overlaps the target.
#[inline(always)]
pub unsafe fn map2<T: Real>(shape: (usize, usize), to: View<T>, a: View<T>, b: View<T>, f: impl Fn(T, T) -> T) {
    // SAFETY: the caller's promise.
    unsafe { update2(shape, to, a, b, |_, a, b| f(a, b)) }
}

/// # Safety
/// The views hold the shape, and no operand overlaps the target.
#[inline(always)]
pub unsafe fn map3<T: Real>(
    shape: (usize, usize),
    to: View<T>,
    a: View<T>,
    b: View<T>,
    c: View<T>,
    f: impl Fn(T, T, T) -> T,
) {
    let (rows, lanes) = flat(shape, [to, a, b, c]);
    for row in 0..rows {
        // SAFETY: the caller's promise.
        unsafe {
            let line = to.line_mut(row, lanes);
            // A scalar is read as a line of one element, whose value is taken before the loop.
            let value = |view: View<T>| view.value(row);
            let vector = |view: View<T>| view.line(row, lanes);
            // The last lanes are computed again as a whole chunk, rather than one by one.
            let (whole, last) = if lanes < CHUNK { (lanes, lanes) } else { (lanes / CHUNK * CHUNK, lanes - CHUNK) };
            macro_rules! lanes {
                ($i:ident, $a:expr, $b:expr, $c:expr) => {
                    for $i in 0..whole {
                        line[$i] = f($a, $b, $c);
                    }
                    if whole < lanes {
                        for $i in last..last + CHUNK {
                            line[$i] = f($a, $b, $c);
                        }
                    }
                };
            }
            match (a.vector, b.vector, c.vector) {
                (true, true, true) => {
                    let (a, b, c) = (vector(a), vector(b), vector(c));
                    lanes!(i, a[i], b[i], c[i]);
                }
                (true, true, false) => {
                    let (a, b, c) = (vector(a), vector(b), value(c));
                    lanes!(i, a[i], b[i], c);
                }
                (true, false, true) => {
                    let (a, b, c) = (vector(a), value(b), vector(c));
                    lanes!(i, a[i], b, c[i]);
                }
                (false, true, true) => {
                    let (a, b, c) = (value(a), vector(b), vector(c));
                    lanes!(i, a, b[i], c[i]);
                }
                (true, false, false) => {
                    let (a, b, c) = (vector(a), value(b), value(c));
                    lanes!(i, a[i], b, c);
                }
                (false, true, false) => {
                    let (a, b, c) = (value(a), vector(b), value(c));
                    lanes!(i, a, b[i], c);
                }
                (false, false, true) => {
                    let (a, b, c) = (value(a), value(b), vector(c));
                    lanes!(i, a, b, c[i]);
                }
                (false, false, false) => line.fill(f(value(a), value(b), value(c))),
            }
        }
    }
}

/// # Safety
/// The views hold the shape, and no operand overlaps the target.
#[inline(always)]
pub unsafe fn update<T: Real>(shape: (usize, usize), to: View<T>, a: View<T>, f: impl Fn(T, T) -> T) {
    let (rows, lanes) = flat(shape, [to, a]);
    for row in 0..rows {
        // SAFETY: the caller's promise.
        unsafe {
            let line = to.line_mut(row, lanes);
            if a.vector {
                line.iter_mut().zip(a.line(row, lanes)).for_each(|(to, a)| *to = f(*to, *a));
            } else {
                let a = a.value(row);
                line.iter_mut().for_each(|to| *to = f(*to, a));
            }
        }
    }
}

/// # Safety
/// The views hold the shape, and no operand overlaps the target.
#[inline(always)]
pub unsafe fn update2<T: Real>(shape: (usize, usize), to: View<T>, a: View<T>, b: View<T>, f: impl Fn(T, T, T) -> T) {
    let (rows, lanes) = flat(shape, [to, a, b]);
    for row in 0..rows {
        // SAFETY: the caller's promise.
        unsafe {
            let line = to.line_mut(row, lanes);
            match (a.vector, b.vector) {
                (true, true) => {
                    let operands = a.line(row, lanes).iter().zip(b.line(row, lanes));
                    line.iter_mut().zip(operands).for_each(|(to, (a, b))| *to = f(*to, *a, *b));
                }
                (true, false) => {
                    let b = b.value(row);
                    line.iter_mut().zip(a.line(row, lanes)).for_each(|(to, a)| *to = f(*to, *a, b));
                }
                (false, true) => {
                    let a = a.value(row);
                    line.iter_mut().zip(b.line(row, lanes)).for_each(|(to, b)| *to = f(*to, a, *b));
                }
                (false, false) => {
                    let (a, b) = (a.value(row), b.value(row));
                    line.iter_mut().for_each(|to| *to = f(*to, a, b));
                }
            }
        }
    }
}

/// Lane `l` goes to part `l % PARTS`, so the result does not depend on how lanes are divided into blocks.
///
/// # Safety
/// The views hold the shape, `to` holds [`PARTS`] values for each row, and no operand overlaps it; the machine has the
/// instructions of the vectors.
#[inline(always)]
pub unsafe fn fold<T: Real, V: Vector<T>, R: Step>((rows, lanes): (usize, usize), to: View<T>, a: View<T>, b: View<T>) {
    let whole = lanes / PARTS * PARTS;
    for row in 0..rows {
        // SAFETY: the caller's promise.
        unsafe {
            let line = to.pointer.offset(row as isize * to.row);
            // Of the most vectors that there can be, only the first `PARTS / V::WIDTH` are used.
            let mut parts = [V::all(T::ZERO); PARTS / 2];
            for (n, part) in parts[..PARTS / V::WIDTH].iter_mut().enumerate() {
                *part = V::load(line.add(n * V::WIDTH));
            }
            let first = |view: View<T>| view.pointer.offset(row as isize * view.row).cast_const();
            let (left, right) = (first(a), first(b));
            macro_rules! chunks {
                ($at:ident, $a:expr, $b:expr) => {
                    for start in (0..whole).step_by(PARTS) {
                        for (n, part) in parts[..PARTS / V::WIDTH].iter_mut().enumerate() {
                            let $at = start + n * V::WIDTH;
                            *part = R::step(*part, $a, $b);
                        }
                    }
                };
            }
            match (a.vector, b.vector) {
                (true, true) => chunks!(at, V::load(left.add(at)), V::load(right.add(at))),
                (true, false) => {
                    let b = V::all(*right);
                    chunks!(at, V::load(left.add(at)), b);
                }
                (false, true) => {
                    let a = V::all(*left);
                    chunks!(at, a, V::load(right.add(at)));
                }
                (false, false) => {
                    let (a, b) = (V::all(*left), V::all(*right));
                    chunks!(_at, a, b);
                }
            }
            for (n, part) in parts[..PARTS / V::WIDTH].iter().enumerate() {
                part.store(line.add(n * V::WIDTH));
            }
            if whole < lanes {
                // The lanes that are left, as whole vectors of which a part counts.
                let (left, right) = (rest(a, row, whole, lanes), rest(b, row, whole, lanes));
                let mut values = [T::ZERO; PARTS];
                for at in (0..lanes - whole).step_by(V::WIDTH) {
                    let (a, b) = (V::load(left.as_ptr().add(at)), V::load(right.as_ptr().add(at)));
                    R::step(V::load(line.add(at)), a, b).store(values.as_mut_ptr().add(at));
                }
                std::slice::from_raw_parts_mut(line, lanes - whole).copy_from_slice(&values[..lanes - whole]);
            }
        }
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
            true => values[..lanes - start].copy_from_slice(&view.line(row, lanes)[start..]),
            false => values.fill(view.value(row)),
        }
    }
    values
}

/// Copies the first row to all others.
///
/// # Safety
/// The target holds the shape without gaps, and its first row is there.
#[inline(always)]
pub unsafe fn repeat<T: Real>(to: View<T>, (rows, lanes): (usize, usize)) {
    // SAFETY: the caller's promise.
    let all = unsafe { to.line_mut(0, rows * lanes) };
    let mut done = lanes;
    while done < all.len() {
        let (from, rest) = all.split_at_mut(done);
        let count = done.min(rest.len());
        rest[..count].copy_from_slice(&from[..count]);
        done += count;
    }
}

/// Rows of at most [`SPREAD`] lanes, each with the first of what `values` gives.
///
/// # Safety
/// The target holds the shape.
#[inline(always)]
pub unsafe fn spread<T: Real>(to: View<T>, (rows, lanes): (usize, usize), values: impl Fn(usize) -> [T; SPREAD]) {
    // What a row writes beyond its end, the next ones write again.
    let whole = if to.row == lanes as isize { rows.saturating_sub(SPREAD.div_ceil(lanes.max(1))) } else { 0 };
    // SAFETY: the caller's promise; `SPREAD` lanes from a row before `whole` on end before the last one does.
    unsafe {
        for row in 0..whole {
            to.pointer.add(row * lanes).cast::<[T; SPREAD]>().write_unaligned(values(row));
        }
        for row in whole..rows {
            to.line_mut(row, lanes).copy_from_slice(&values(row)[..lanes]);
        }
    }
}

/// # Safety
/// The source holds all elements at these steps, and `to` the shape; they don't overlap.
#[inline(always)]
pub unsafe fn gather<T: Real>(to: View<T>, shape: (usize, usize), from: *const T, row: isize, lane: isize) {
    for r in 0..shape.0 {
        // SAFETY: the caller's promise.
        unsafe {
            let line = to.line_mut(r, shape.1);
            let start = from.offset(r as isize * row);
            line.iter_mut().enumerate().for_each(|(l, to)| *to = *start.offset(l as isize * lane));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_spread_and_repeated_up_to_the_last_lane_and_not_beyond() {
        for (rows, lanes) in (0..40).flat_map(|rows| (1..=SPREAD).map(move |lanes| (rows, lanes))) {
            let count = rows * lanes;
            let mut values = vec![-1.0; count + SPREAD];
            let to = View { pointer: values.as_mut_ptr(), row: lanes as isize, vector: true };
            // SAFETY: the target holds the shape.
            unsafe { spread(to, (rows, lanes), |row| [row as f64; SPREAD]) };
            assert!(values[..count].iter().enumerate().all(|(i, v)| *v == (i / lanes) as f64));
            if rows > 0 {
                (0..lanes).for_each(|lane| values[lane] = lane as f64);
                let to = View { pointer: values.as_mut_ptr(), row: lanes as isize, vector: true };
                // SAFETY: the target holds the shape, and its first row is set.
                unsafe { repeat(to, (rows, lanes)) };
                assert!(values[..count].iter().enumerate().all(|(i, v)| *v == (i % lanes) as f64));
            }
            assert!(values[count..].iter().all(|v| *v == -1.0));
        }
    }
}
