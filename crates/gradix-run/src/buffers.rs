//! Memory that kernels work in: aligned, not initialised, kept between runs.
//!
//! A block is only ever handed out as a raw pointer, because other threads write to it; nothing in Rust reads it.

#![allow(unsafe_code, reason = "memory with an alignment of its own comes from the allocator as a raw pointer")]

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;

/// Kernels may rely on their own memory to start at a multiple of this: a cache line, and the widest vector.
pub const ALIGNMENT: usize = 64;

/// From this size on, memory is asked for in large pages.
const LARGE: usize = 4 << 20;
/// The size of a large page on x86-64, and on ARM with small pages of 4 KiB.
const LARGE_PAGE: usize = 2 << 20;

/// A piece of memory whose contents are undefined until a kernel writes them.
#[derive(Debug)]
pub struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a block owns its memory, as a `Vec` does, and no method reads or writes it.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// At least this many bytes; `None` if they are not to be had.
    pub fn new(bytes: usize) -> Option<Block> {
        let alignment = if bytes >= LARGE { LARGE_PAGE } else { ALIGNMENT };
        let layout = Layout::from_size_align(bytes.max(ALIGNMENT), alignment).ok()?;
        // SAFETY: the layout has a size other than 0.
        let start = NonNull::new(unsafe { alloc(layout) })?;
        if bytes >= LARGE {
            advise_large_pages(start, bytes);
        }
        Some(Block { start, layout })
    }

    /// The first byte; a multiple of [`ALIGNMENT`].
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and this is the only owner.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// The next multiple of [`ALIGNMENT`]; `None` past all memory.
pub fn padded(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(ALIGNMENT)
}

/// One page fault for 2 MiB in place of 512. Where the system does not know this, nothing is lost.
#[cfg(target_os = "linux")]
fn advise_large_pages(start: NonNull<u8>, bytes: usize) {
    unsafe extern "C" {
        fn madvise(start: *mut u8, bytes: usize, advice: i32) -> i32;
    }
    const MADV_HUGEPAGE: i32 = 14;
    // SAFETY: whole large pages inside a live allocation; the advice does not change what memory holds.
    unsafe { madvise(start.as_ptr(), bytes / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise_large_pages(_start: NonNull<u8>, _bytes: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_and_large_enough() {
        for bytes in [0, 1, 64, 1000, LARGE - 1, LARGE, LARGE + 12_345] {
            let block = Block::new(bytes).unwrap();
            assert!(block.bytes() >= bytes && block.start().addr().is_multiple_of(ALIGNMENT), "{bytes}");
        }
    }

    #[test]
    fn blocks_past_all_memory_are_refused() {
        assert!(Block::new(usize::MAX).is_none() && Block::new(isize::MAX as usize - 64).is_none());
    }

    #[test]
    fn sizes_are_padded_to_whole_lines() {
        assert_eq!([padded(0), padded(1), padded(64), padded(65)], [Some(0), Some(64), Some(64), Some(128)]);
        assert_eq!(padded(usize::MAX), None);
    }
}
