//! Stopping what takes long: the thread that calls asks, now and then, whether to go on.
//!
//! It asks between items of work, and while it waits for the interpreter. What was computed by then is lost.

use std::cell::Cell;
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

/// What a computation that was stopped gives.
pub fn stopped() -> Diagnostic {
    Diagnostic::error(INTERRUPTED, "the computation was interrupted")
}
