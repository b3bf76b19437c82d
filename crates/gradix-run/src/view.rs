//! Arrays of any strides, as they lie in memory.

#![allow(unsafe_code, reason = "the elements are behind a pointer")]

use crate::strided::is_dense;

/// An array that lies somewhere in memory: a pointer, which only `unsafe` functions follow, and where to go from there.
#[derive(Debug)]
pub struct View<'a, T> {
    /// The element whose indices are all 0.
    pub start: *const T,
    /// The extents.
    pub shape: &'a [usize],
    /// For each dimension the distance of neighbours, in elements; `None` if the array is dense and row-major.
    pub strides: Option<&'a [isize]>,
}

impl<T> Clone for View<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for View<'_, T> {}

impl<'a, T> View<'a, T> {
    /// An array in C order.
    pub fn dense(start: *const T, shape: &'a [usize]) -> Self {
        View { start, shape, strides: None }
    }

    /// An array of any strides.
    pub fn strided(start: *const T, shape: &'a [usize], strides: &'a [isize]) -> Self {
        let dense = is_dense(shape, strides);
        View { start, shape, strides: if dense { None } else { Some(strides) } }
    }

    /// How many elements there are; no array in memory has more than fit a `usize`, but one with strides of 0 may.
    pub fn elements(&self) -> usize {
        self.shape.iter().fold(1, |elements, &extent| elements.saturating_mul(extent))
    }

    /// The first byte, and the one behind the last: where elements lie, and perhaps others between them.
    pub fn span(&self) -> (usize, usize) {
        let start = self.start.addr();
        if self.elements() == 0 {
            return (start, start);
        }
        let Some(strides) = self.strides else { return (start, start + self.elements() * size_of::<T>()) };
        let ends = self.shape.iter().zip(strides).map(|(&extent, &stride)| (extent as isize - 1) * stride);
        let (low, high) = ends.fold((0, 0), |(low, high), end| (low + end.min(0), high + end.max(0)));
        let size = size_of::<T>() as isize;
        (start.wrapping_add_signed(low * size), start.wrapping_add_signed((high + 1) * size))
    }
}

impl<T: Copy> View<'_, T> {
    /// The elements in C order.
    ///
    /// # Safety
    ///
    /// They can be read.
    pub unsafe fn copy(&self) -> Vec<T> {
        let mut copy = Vec::with_capacity(self.elements());
        // SAFETY: as the caller promises.
        unsafe {
            match self.strides {
                None => copy.extend_from_slice(std::slice::from_raw_parts(self.start, self.elements())),
                Some(strides) => push(&mut copy, self.start, self.shape, strides),
            }
        }
        copy
    }
}

/// # Safety
///
/// The elements can be read.
unsafe fn push<T: Copy>(copy: &mut Vec<T>, start: *const T, shape: &[usize], strides: &[isize]) {
    // SAFETY: as the caller promises; only elements of the array are pointed to.
    unsafe {
        match (shape, strides) {
            ([extent], [stride]) => {
                copy.extend((0..*extent as isize).map(|place| *start.wrapping_offset(place * stride)));
            }
            ([extent, shape @ ..], [stride, strides @ ..]) => {
                for place in 0..*extent as isize {
                    push(copy, start.wrapping_offset(place * stride), shape, strides);
                }
            }
            _ => copy.push(*start),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static DATA: [i32; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];

    fn elements(start: usize, shape: &[usize], strides: &[isize]) -> Vec<i32> {
        // SAFETY: the tests stay inside.
        unsafe { View::strided(&raw const DATA[start], shape, strides).copy() }
    }

    #[test]
    fn elements_are_in_row_major_order() {
        assert_eq!(elements(0, &[3, 4], &[4, 1]), DATA);
        assert_eq!(elements(0, &[2, 3], &[1, 4]), [0, 4, 8, 1, 5, 9]);
        assert_eq!(elements(11, &[2, 2], &[-4, -3]), [11, 8, 7, 4]);
        assert_eq!(elements(5, &[2, 2], &[0, 1]), [5, 6, 5, 6]);
        assert_eq!((elements(7, &[], &[]), elements(0, &[0, 3], &[9, 9])), (vec![7], vec![]));
    }

    #[test]
    fn arrays_without_gaps_are_dense() {
        for (shape, strides, expected) in [
            (&[3, 4][..], &[4, 1][..], true),
            (&[3, 4], &[5, 1], false),
            (&[4, 3], &[1, 4], false),
            (&[1, 4], &[99, 1], true),
            (&[3, 1], &[1, -7], true),
            (&[0, 4], &[1, 7], true),
            (&[3], &[-1], false),
            (&[3], &[0], false),
            (&[], &[], true),
        ] {
            assert_eq!(is_dense(shape, strides), expected, "{shape:?} {strides:?}");
        }
    }

    #[test]
    fn a_span_holds_all_elements() {
        let start = DATA.as_ptr().addr();
        let span = |place: usize, shape: &[usize], strides: &[isize]| {
            let (low, high) = View::strided(&raw const DATA[place], shape, strides).span();
            ((low - start) / 4, (high - start) / 4)
        };
        assert_eq!(span(0, &[3, 4], &[4, 1]), (0, 12));
        assert_eq!(span(11, &[2, 2], &[-4, -3]), (4, 12));
        assert_eq!(span(5, &[2, 2], &[4, 0]), (5, 10));
        assert_eq!(span(5, &[0], &[1]), (5, 5));
    }
}
