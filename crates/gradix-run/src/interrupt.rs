//! Stopping what takes long: the thread that calls asks, now and then, whether to go on.
//!
//! It asks between items of work, inside of those of the vm, and while it waits for the interpreter. What was computed by
//! then is lost.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gradix::diagnostic::Diagnostic;

/// How often it is asked at most.
pub const PERIOD: Duration = Duration::from_millis(50);

/// The code of the error that says that something was stopped.
pub const INTERRUPTED: &str = "interrupted";

/// Whether to stop.
type Question = fn() -> bool;

thread_local! {
    static QUESTION: Cell<Option<(Question, Instant)>> = const { Cell::new(None) };
    /// Says whether what this thread has a share in was stopped.
    static STOPPED: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Runs something that stops soon after `asked`, which this thread calls meanwhile, says so.
pub fn unless<T>(asked: Question, run: impl FnOnce() -> T) -> T {
    struct Restore(Option<(Question, Instant)>);
    impl Drop for Restore {
        fn drop(&mut self) {
            QUESTION.set(self.0);
        }
    }
    let _after_panics_too = Restore(QUESTION.replace(Some((asked, Instant::now()))));
    run()
}

/// Whether this thread may be asked to stop.
pub fn is_possible() -> bool {
    QUESTION.get().is_some()
}

/// Whether this thread is to stop, if it is time to ask.
pub fn is_due() -> bool {
    let Some((asked, last)) = QUESTION.get() else { return false };
    if last.elapsed() < PERIOD {
        return false;
    }
    let stop = asked();
    QUESTION.set(Some((asked, Instant::now())));
    stop
}

/// Runs this thread's share of a computation, which `stopped` stops; on the thread that calls, so does what it asks.
pub fn shared(stopped: &Arc<AtomicBool>, run: impl FnOnce()) {
    struct Restore(Option<Arc<AtomicBool>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            STOPPED.replace(self.0.take());
        }
    }
    let _after_panics_too = Restore(STOPPED.replace(Some(stopped.clone())));
    run();
}

/// Whether the computation that this thread has a share in is to stop: then nobody will look at its results.
pub fn is_stopped() -> bool {
    STOPPED.with_borrow(|stopped| {
        stopped.as_ref().is_some_and(|stopped| {
            if is_due() {
                stopped.store(true, Ordering::Relaxed);
            }
            stopped.load(Ordering::Relaxed)
        })
    })
}

/// What a computation that was stopped gives.
pub fn stopped() -> Diagnostic {
    Diagnostic::error(INTERRUPTED, "the computation was interrupted")
}
