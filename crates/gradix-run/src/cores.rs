//! The core that a thread runs on, where the system tells.

#![allow(unsafe_code, reason = "std has no interface to the scheduler")]

/// The core that this thread runs on.
pub fn current() -> Option<usize> {
    #[cfg(target_os = "linux")]
    return usize::try_from(linux::sched_getcpu()).ok();
    #[cfg(not(target_os = "linux"))]
    None
}

/// Moves this thread to another core, if it may run on any; later it may come back.
///
/// A thread that is woken up may find itself on the core of the one that woke it, and would wait there for its turn while
/// other cores are idle.
pub fn leave(core: usize) {
    #[cfg(target_os = "linux")]
    linux::leave(core);
    #[cfg(not(target_os = "linux"))]
    let _ = core;
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::c_int;

    /// A bit for each core.
    type Cores = [u64; 16];

    unsafe extern "C" {
        // SAFETY: takes nothing.
        pub safe fn sched_getcpu() -> c_int;
        fn sched_getaffinity(thread: c_int, bytes: usize, cores: *mut Cores) -> c_int;
        fn sched_setaffinity(thread: c_int, bytes: usize, cores: *const Cores) -> c_int;
    }

    pub fn leave(core: usize) {
        let mut all: Cores = [0; 16];
        // SAFETY: the system writes no more than this many bytes, and all bits mean something.
        let known = unsafe { sched_getaffinity(0, size_of::<Cores>(), &raw mut all) } >= 0;
        let mut others = all;
        if let Some(word) = others.get_mut(core / 64) {
            *word &= !(1 << (core % 64));
        }
        if known && others != [0; 16] {
            for cores in [others, all] {
                // SAFETY: the system reads this many bytes.
                unsafe { sched_setaffinity(0, size_of::<Cores>(), &raw const cores) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_leaves_its_core_where_there_is_another() {
        let cores = std::thread::available_parallelism().unwrap().get();
        let moved = (0..100).any(|_| {
            let before = current().unwrap();
            leave(before);
            current().unwrap() != before
        });
        // With one core to count on there may be others that it is allowed on.
        assert!(moved || cores == 1);
        assert_eq!(std::thread::available_parallelism().unwrap().get(), cores, "it may come back");
    }
}
