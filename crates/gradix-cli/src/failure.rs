//! Why a command stopped, and what the user sees of it.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use gradix::diagnostic::Diagnostic;
use gradix_view::{Source, render};

/// Why a command stopped.
pub enum Failure {
    /// The program is at fault, at places in its text.
    Diagnostics(Source, Vec<Diagnostic>),
    /// Something else is at fault: a file, an array.
    Message(String),
    /// The command line is at fault, in a way that its definition can't express.
    Usage(String),
}

impl Failure {
    /// Tells the user, and gives the exit code.
    pub fn report(&self) -> ExitCode {
        let (text, code) = match self {
            Failure::Diagnostics(source, diagnostics) => (render(diagnostics, source, colour()), 1),
            Failure::Message(message) => (format!("error: {message}\n"), 1),
            Failure::Usage(message) => (format!("error: {message}\n\nFor more information, try '--help'.\n"), 2),
        };
        // Nobody is left to be told when this fails.
        let _ = io::stderr().write_all(text.as_bytes());
        ExitCode::from(code)
    }
}

/// Tells what is no failure.
pub fn tell(source: &Source, notes: &[Diagnostic]) {
    // Nobody is left to be told when this fails.
    let _ = io::stderr().write_all(render(notes, source, colour()).as_bytes());
}

/// Whether standard error takes colours: on a terminal, unless the user opted out (<https://no-color.org>).
fn colour() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
