//! Threads that share out the items of a kernel.
//!
//! One pool serves the whole process; its threads start when they are first needed and stay. The calling thread
//! always takes part and needs nobody: a thread that is late finds the work done and leaves it alone. So a call never
//! waits for a thread to wake up, works when no thread could be started, when the pool is busy with another call,
//! and in a process that was forked (where the threads of the parent do not exist).
//!
//! ```text
//! state = generation · open · active          one word, so that joining and closing can't miss each other
//!
//! caller:  publish the job, open ──▶ work ──▶ close ──▶ wait until nobody is active
//! worker:  wait for a new generation ──▶ join if open ──▶ work ──▶ leave
//! ```
//!
//! A worker that has just worked watches the state for a moment before it sleeps, so that kernels that follow each other
//! find it awake.

#![allow(unsafe_code, reason = "threads that outlive a call borrow its closure; no safe interface of std allows that")]

use crate::{cores, interrupt};
use std::cell::UnsafeCell;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock, TryLockError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// One thread for each core that this process may use, as it was when this was first asked: the system takes its time to
/// tell.
pub fn default_threads() -> usize {
    static CORES: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, NonZeroUsize::get));
    *CORES
}

/// Calls `body(thread, items)` for ranges that cover `0..items`, on at most `threads` threads at a time. Calls that run
/// at the same time have different values of `thread`, all below `threads`. It is false if the caller was
/// [asked to stop](interrupt) before all was done.
pub fn share_items(threads: usize, items: usize, body: &(dyn Fn(usize, Range<usize>) + Sync)) -> bool {
    match interrupt::is_possible() {
        true => POOL.share_until_stopped(threads, items, body),
        false => {
            POOL.share_items(threads, items, body);
            true
        }
    }
}

static POOL: Pool = Pool::new();

/// How long a thread watches for the next job before it sleeps: to wake up takes longer than many kernels.
const STAY: Duration = Duration::from_millis(10);
/// The same where there are more threads than cores, and how much of that it lets nobody else run.
const STAY_AMONG_MANY: Duration = Duration::from_millis(1);
const WATCH: Duration = Duration::from_micros(30);
/// Kernels are compiled code with small frames; what counts is that this is address space only.
const STACK: usize = 8 << 20;

const ACTIVE: u64 = (1 << 31) - 1;
const OPEN: u64 = 1 << 31;
const GENERATION: u64 = 1 << 32;

struct Pool {
    state: AtomicU64,
    /// Written by the one that holds `turn`, while nobody is active and the state is not open.
    job: UnsafeCell<Option<Job>>,
    turn: Mutex<()>,
    /// Worker `n` of a job (the caller is 0) is at `n - 1`.
    workers: RwLock<Vec<Thread>>,
}

// SAFETY: `job` is written only under `turn` while the state keeps workers out, and read only by workers that joined.
unsafe impl Sync for Pool {}

#[derive(Clone)]
struct Job {
    /// Borrowed from the caller, who does not return before every worker that joined has left.
    body: *const (dyn Fn(usize) + Sync),
    threads: usize,
    caller: Thread,
    /// The core of the caller.
    core: Option<usize>,
    panicked: *const AtomicBool,
}

impl Pool {
    const fn new() -> Self {
        Pool {
            state: AtomicU64::new(0),
            job: UnsafeCell::new(None),
            turn: Mutex::new(()),
            workers: RwLock::new(Vec::new()),
        }
    }

    fn share_items(&'static self, threads: usize, items: usize, body: &(dyn Fn(usize, Range<usize>) + Sync)) {
        let threads = threads.min(items);
        if threads <= 1 {
            if items > 0 {
                body(0, 0..items);
            }
            return;
        }
        let shares: Vec<Share> = (0..threads).map(|thread| Share::new(thread, threads, items)).collect();
        self.share(threads, &|thread| {
            while let Some(range) = shares[thread].take(Share::first_quarter) {
                body(thread, range);
            }
            for other in (thread + 1..threads).chain(0..thread) {
                while let Some(range) = shares[other].take(Share::last_half) {
                    body(thread, range);
                }
            }
        });
    }

    /// The same item by item, until the caller, which is thread 0, is asked to stop, or an item finds that it is.
    fn share_until_stopped(
        &'static self,
        threads: usize,
        items: usize,
        body: &(dyn Fn(usize, Range<usize>) + Sync),
    ) -> bool {
        let stopped = Arc::new(AtomicBool::new(false));
        let items_of_thread = |thread: usize, range: Range<usize>| {
            interrupt::shared(&stopped, || {
                for item in range {
                    if interrupt::is_stopped() {
                        return;
                    }
                    body(thread, item..item + 1);
                }
            });
        };
        // The caller asks while it waits for others, too.
        interrupt::shared(&stopped, || self.share_items(threads, items, &items_of_thread));
        !stopped.load(Ordering::Relaxed)
    }

    /// Calls `body(0)` here and, on those workers that come before it is done, `body(1)`, … below `threads`.
    fn share(&'static self, threads: usize, body: &(dyn Fn(usize) + Sync)) {
        let turn = match self.turn.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
            Err(TryLockError::WouldBlock) => return body(0),
        };
        self.start_workers(threads - 1);
        let panicked = AtomicBool::new(false);
        // SAFETY: only the lifetime changes; `close` below returns after the last worker has left the body.
        let erased: *const (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(std::ptr::from_ref(body)) };
        let (caller, core) = (thread::current(), cores::current());
        let job = Job { body: erased, threads, caller, core, panicked: &raw const panicked };
        // SAFETY: this thread has the turn, and the state has not been open since the last job was closed.
        unsafe { *self.job.get() = Some(job) };
        self.state.fetch_add(GENERATION + OPEN, Ordering::Release);
        self.wake_next(0, threads);
        // A worker that wakes up on this core needs it for a moment, to go to another one.
        thread::yield_now();
        let own = catch_unwind(AssertUnwindSafe(|| body(0)));
        self.close(threads);
        drop(turn);
        if let Err(panic) = own {
            resume_unwind(panic);
        }
        assert!(!panicked.load(Ordering::Relaxed), "a worker panicked");
    }

    /// Lets nobody else join, and waits for those who did.
    fn close(&self, threads: usize) {
        let mut state = self.state.fetch_and(!OPEN, Ordering::AcqRel);
        let start = Instant::now();
        while state & ACTIVE != 0 {
            // They may be at long items.
            interrupt::is_stopped();
            wait(start, threads, || thread::park_timeout(interrupt::PERIOD));
            state = self.state.load(Ordering::Acquire);
        }
    }

    /// How many threads there are, with the caller.
    fn size(&self) -> usize {
        self.workers.read().map_or(1, |workers| workers.len() + 1)
    }

    /// Sees to it that there are this many workers, as far as the system allows.
    fn start_workers(&'static self, count: usize) {
        if self.workers.read().is_ok_and(|workers| workers.len() >= count) {
            return;
        }
        let Ok(mut workers) = self.workers.write() else { return };
        while workers.len() < count {
            let number = workers.len() + 1;
            let generation = self.state.load(Ordering::Acquire) / GENERATION;
            let builder = thread::Builder::new().name(format!("gradix-{number}")).stack_size(STACK);
            let Ok(handle) = builder.spawn(move || self.work(number, generation)) else { return };
            workers.push(handle.thread().clone());
        }
    }

    /// Wakes the two workers below this one in the tree with the caller at its root.
    fn wake_next(&self, number: usize, threads: usize) {
        let Ok(workers) = self.workers.read() else { return };
        for next in [2 * number + 1, 2 * number + 2] {
            if let Some(worker) = workers.get(next - 1).filter(|_| next < threads) {
                worker.unpark();
            }
        }
    }

    /// What a worker does as long as the process lives.
    fn work(&self, number: usize, mut seen: u64) {
        loop {
            seen = self.wait_for_another(seen);
            if self.join(seen) {
                // SAFETY: a worker that joined may read the job until it leaves.
                let Some(job) = (unsafe { (*self.job.get()).clone() }) else { unreachable!("an open job is there") };
                if number < job.threads {
                    if let Some(core) = job.core.filter(|core| cores::current() == Some(*core)) {
                        cores::leave(core);
                    }
                    self.wake_next(number, job.threads);
                    // SAFETY: the caller waits for this worker to leave before the body goes.
                    let body = unsafe { &*job.body };
                    if catch_unwind(AssertUnwindSafe(|| body(number))).is_err() {
                        // SAFETY: as above.
                        unsafe { &*job.panicked }.store(true, Ordering::Relaxed);
                    }
                }
                self.leave(&job.caller);
            }
        }
    }

    /// The number of a job after this one: watches for a moment, then sleeps.
    fn wait_for_another(&self, seen: u64) -> u64 {
        let (start, threads) = (Instant::now(), self.size());
        loop {
            let generation = self.state.load(Ordering::Acquire) / GENERATION;
            if generation != seen {
                return generation;
            }
            wait(start, threads, thread::park);
        }
    }

    /// Whether this job still takes workers; if so, one more is active.
    fn join(&self, generation: u64) -> bool {
        let joined = |state: u64| (state / GENERATION == generation && state & OPEN != 0).then_some(state + 1);
        self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, joined).is_ok()
    }

    fn leave(&self, caller: &Thread) {
        let before = self.state.fetch_sub(1, Ordering::AcqRel);
        if before & (OPEN | ACTIVE) == 1 {
            caller.unpark();
        }
    }
}

/// A moment, for one of several threads that has been waiting since `start`; where that is long, it sleeps.
fn wait(start: Instant, threads: usize, sleep: impl Fn()) {
    let (waited, many) = (start.elapsed(), threads > default_threads());
    match waited {
        _ if waited > if many { STAY_AMONG_MANY } else { STAY } => sleep(),
        _ if many && waited > WATCH => thread::yield_now(),
        _ => std::hint::spin_loop(),
    }
}

/// The items that a thread begins with, the same in every kernel of a run, so that it finds what it has written in its
/// cache. Whoever has done its own takes from the end of others.
#[repr(align(64))]
struct Share(Mutex<Range<usize>>);

impl Share {
    fn new(thread: usize, threads: usize, items: usize) -> Self {
        let start = |thread: usize| items / threads * thread + (items % threads).min(thread);
        Share(Mutex::new(start(thread)..start(thread + 1)))
    }

    /// A part of what is left.
    fn take(&self, part: impl Fn(&mut Range<usize>) -> Range<usize>) -> Option<Range<usize>> {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!left.is_empty()).then(|| part(&mut left))
    }

    fn first_quarter(left: &mut Range<usize>) -> Range<usize> {
        let end = left.start + left.len().div_ceil(4);
        std::mem::replace(left, end..left.end).start..end
    }

    fn last_half(left: &mut Range<usize>) -> Range<usize> {
        let start = left.end - left.len().div_ceil(2);
        start..std::mem::replace(left, left.start..start).end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn pool() -> &'static Pool {
        Box::leak(Box::new(Pool::new()))
    }

    /// How often each item was done.
    fn counts(pool: &'static Pool, threads: usize, items: usize) -> Vec<usize> {
        let counts: Vec<AtomicUsize> = (0..items).map(|_| AtomicUsize::new(0)).collect();
        pool.share_items(threads, items, &|_, range| {
            counts[range].iter().for_each(|count| _ = count.fetch_add(1, Ordering::Relaxed));
        });
        counts.into_iter().map(AtomicUsize::into_inner).collect()
    }

    #[test]
    fn every_item_is_done_once() {
        let pool = pool();
        for threads in [1, 2, 3, 8] {
            for items in [0, 1, 2, 7, 1000] {
                assert_eq!(counts(pool, threads, items), vec![1; items], "{threads} threads");
            }
        }
    }

    #[test]
    fn jobs_that_follow_each_other_do_not_mix() {
        let pool = pool();
        (0..2000).for_each(|round| assert_eq!(counts(pool, 4, 1 + round % 9), vec![1; 1 + round % 9]));
    }

    #[test]
    fn threads_at_work_have_different_numbers() {
        let pool = pool();
        let inside: Vec<AtomicBool> = (0..4).map(|_| AtomicBool::new(false)).collect();
        pool.share_items(4, 64, &|thread, _| {
            assert!(!inside[thread].swap(true, Ordering::AcqRel), "two threads with the number {thread}");
            thread::sleep(Duration::from_micros(50));
            inside[thread].store(false, Ordering::Release);
        });
    }

    #[test]
    fn other_threads_take_part() {
        let others = AtomicUsize::new(0);
        pool().share_items(2, 64, &|thread, _| {
            others.fetch_add(thread, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(1));
        });
        assert!(others.into_inner() > 0);
    }

    #[test]
    fn a_pool_that_is_busy_is_not_waited_for() {
        let pool = pool();
        let done = AtomicUsize::new(0);
        let count = |thread: usize, range: Range<usize>| _ = done.fetch_add(range.len() + thread, Ordering::Relaxed);
        pool.share_items(2, 4, &|_, range| range.for_each(|_| pool.share_items(2, 4, &count)));
        assert_eq!(done.into_inner(), 16);
    }

    #[test]
    fn callers_from_several_threads_do_not_disturb_each_other() {
        let pool = pool();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..200).for_each(|_| assert_eq!(counts(pool, 3, 50), vec![1; 50])));
            }
        });
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_lives_on() {
        let pool = pool();
        for thread in [0, 1] {
            let reached = AtomicBool::new(false);
            let run = catch_unwind(AssertUnwindSafe(|| {
                pool.share(2, &|number| {
                    let start = Instant::now();
                    // Whoever does not panic waits for the one who does.
                    while number != thread && !reached.load(Ordering::Acquire) && start.elapsed().as_secs() < 10 {
                        thread::yield_now();
                    }
                    reached.store(true, Ordering::Release);
                    assert!(number != thread, "as intended");
                });
            }));
            assert!(run.is_err());
        }
        assert_eq!(counts(pool, 2, 100), vec![1; 100]);
    }

    #[test]
    fn a_caller_that_is_asked_to_stop_does_no_more_items() {
        let done = AtomicUsize::new(0);
        let slow = |_, range: Range<usize>| {
            done.fetch_add(range.len(), Ordering::Relaxed);
            thread::sleep(interrupt::PERIOD / 2);
        };
        for threads in [1, 2] {
            done.store(0, Ordering::Relaxed);
            assert!(!interrupt::unless(|| true, || share_items(threads, 1000, &slow)));
            assert!(done.load(Ordering::Relaxed) < 100);
        }
        assert!(interrupt::unless(|| false, || share_items(2, 5, &slow)));
        assert!(share_items(2, 5, &slow));
    }

    #[test]
    fn an_item_can_find_that_it_is_to_stop() {
        let waits = |_, _: Range<usize>| {
            while !interrupt::is_stopped() {
                thread::sleep(Duration::from_millis(1));
            }
        };
        for threads in [1, 2] {
            assert!(!interrupt::unless(|| true, || share_items(threads, 2, &waits)));
            assert!(!interrupt::is_stopped());
        }
    }

    #[test]
    fn a_caller_that_waits_for_a_long_item_is_asked_to_stop() {
        let joined = AtomicBool::new(false);
        let items = |thread, _: Range<usize>| match thread {
            0 => thread::sleep(Duration::from_millis(1)),
            _ => {
                joined.store(true, Ordering::Relaxed);
                while !interrupt::is_stopped() {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        };
        // Another test may have the pool for a while.
        while !joined.load(Ordering::Relaxed) {
            let all = interrupt::unless(|| true, || share_items(2, 8, &items));
            assert!(!all || !joined.load(Ordering::Relaxed));
        }
    }

    #[test]
    fn shares_cover_the_items() {
        let shares: Vec<Share> = (0..3).map(|thread| Share::new(thread, 3, 11)).collect();
        let taken = |share: &Share, part: fn(&mut Range<usize>) -> Range<usize>| {
            std::iter::from_fn(|| share.take(part)).collect::<Vec<_>>()
        };
        assert_eq!(taken(&shares[0], Share::first_quarter), [0..1, 1..2, 2..3, 3..4]);
        assert_eq!(taken(&shares[1], Share::last_half), [6..8, 5..6, 4..5]);
        assert_eq!(shares[2].take(Share::first_quarter), Some(8..9));
        assert_eq!(taken(&shares[2], Share::last_half), [10..11, 9..10]);
    }
}
