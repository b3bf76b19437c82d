//! Ctrl-C while something is computed.

use std::cell::RefCell;

use gradix_run::interrupt;
use pyo3::marker::Ungil;
use pyo3::prelude::*;

thread_local! {
    /// What a handler of Python's raised.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Runs something without the lock of the interpreter. Signals are handled meanwhile, where Python handles them: on its
/// main thread. If a handler raises something, the computation stops, and that is the result.
pub fn detached<T: Ungil + Send>(py: Python<'_>, run: impl Ungil + Send + FnOnce() -> T) -> PyResult<T> {
    let result = py.detach(|| interrupt::unless(is_raised, run));
    RAISED.take().map_or(Ok(result), Err)
}

fn is_raised() -> bool {
    let raised = Python::attach(|py| py.check_signals()).err();
    let is_raised = raised.is_some();
    // It may be asked once more before the computation has stopped.
    RAISED.with_borrow_mut(|first| *first = first.take().or(raised));
    is_raised
}
