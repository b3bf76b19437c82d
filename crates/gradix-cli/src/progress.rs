//! What is shown on a terminal while something takes long.

use std::io::{IsTerminal, stderr};
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// What is done by then shows nothing.
const DELAY: Duration = Duration::from_millis(500);
/// How often the time is shown.
const PERIOD: Duration = Duration::from_millis(100);

/// A bar with an estimate of the time that is left.
pub struct Progress {
    quiet: bool,
    start: Instant,
    bar: OnceLock<ProgressBar>,
}

impl Progress {
    /// Nothing is done yet.
    pub fn new(quiet: bool) -> Self {
        Progress { quiet, start: Instant::now(), bar: OnceLock::new() }
    }

    /// So much is done.
    pub fn show(&self, done: usize, all: usize) {
        if self.quiet || self.start.elapsed() < DELAY {
            return;
        }
        // Indicatif draws nothing when standard error is not a terminal.
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} elements, {msg}").expect("a valid template");
        let bar = self.bar.get_or_init(|| ProgressBar::new(all as u64).with_style(style));
        let left = self.start.elapsed().mul_f64(all.saturating_sub(done) as f64 / done.max(1) as f64);
        bar.set_length(all as u64);
        bar.set_message(format!("about {} s left", left.as_secs() + 1));
        bar.set_position(done as u64);
    }

    /// All is done.
    pub fn finish(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

/// Does something of which only the time is known that it takes, if that.
pub fn timed<T>(quiet: bool, expected: Option<Duration>, run: impl FnOnce() -> T) -> T {
    if quiet || !stderr().is_terminal() {
        return run();
    }
    let (running, end) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if end.recv_timeout(DELAY) == Err(RecvTimeoutError::Timeout) {
                let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}").expect("a valid template");
                let spinner = ProgressBar::new_spinner().with_style(style).with_elapsed(DELAY);
                spinner.set_message(expected.map_or(String::new(), |all| format!("of about {} s", all.as_secs() + 1)));
                spinner.enable_steady_tick(PERIOD);
                let _ = end.recv();
                spinner.finish_and_clear();
            }
        });
        let result = run();
        drop(running);
        result
    })
}
