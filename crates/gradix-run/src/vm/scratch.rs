//! Memory of a thread's own for intermediate results: aligned to cache lines, and only ever growing.
#![allow(unsafe_code, reason = "cache lines are read as the numbers that they hold")]

use super::real::Real;

/// A cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u64; 8]);

/// Numbers that start at a cache line.
pub struct Scratch<T> {
    lines: Vec<Line>,
    length: usize,
    element: std::marker::PhantomData<T>,
}

impl<T: Real> Scratch<T> {
    /// Nothing yet.
    pub fn new() -> Self {
        Scratch { lines: Vec::new(), length: 0, element: std::marker::PhantomData }
    }

    /// Grows to at least this many numbers; what it holds is undefined afterwards.
    pub fn reserve(&mut self, length: usize) {
        if length > self.length {
            self.lines = vec![Line([0; 8]); length.div_ceil(T::PER_LINE)];
            self.length = length;
        }
    }

    /// Where so many of the numbers start. It stays valid until the next `reserve`.
    #[inline(always)]
    pub fn pointer(&mut self, start: usize, length: usize) -> *mut T {
        assert!(start + length <= self.length, "scratch memory is reserved before its use");
        // SAFETY: the lines hold `self.length` numbers or more.
        unsafe { self.lines.as_mut_ptr().cast::<T>().add(start) }
    }

    /// Some of the numbers.
    #[inline(always)]
    pub fn part(&mut self, start: usize, length: usize) -> &mut [T] {
        // SAFETY: they exist, every pattern of bits is a number, and the scratch memory is borrowed as long as the slice.
        unsafe { std::slice::from_raw_parts_mut(self.pointer(start, length), length) }
    }
}
