//! Why a command stopped, and what the user sees of it.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use gradix::diagnostic::Diagnostic;
use gradix_view::{Source, place, render};
use serde_json::{Value, json};

/// Why a command stopped.
pub enum Failure {
    /// The program is at fault, at places in its text.
    Diagnostics(Source, Vec<Diagnostic>),
    /// Something else is at fault: a file, an array.
    Message(String),
    /// The command line is at fault, in a way that its definition can't express.
    Usage(String),
    /// As a message, and part of what was printed.
    Printed,
}

impl Failure {
    /// Tells the user, or a program on standard output, and gives the exit code.
    pub fn report(&self, as_json: bool) -> ExitCode {
        let (text, code) = match self {
            Failure::Diagnostics(source, diagnostics) => (render(diagnostics, source, colour()), 1),
            Failure::Message(message) => (format!("error: {message}\n"), 1),
            Failure::Usage(message) => (format!("error: {message}\n\nFor more information, try '--help'.\n"), 2),
            Failure::Printed => (String::new(), 1),
        };
        // Nobody is left to be told when one of these fails.
        let _ = match self {
            Failure::Diagnostics(..) | Failure::Message(_) if as_json => {
                writeln!(io::stdout(), "{}", json!({ "errors": self.errors() }))
            }
            _ => io::stderr().write_all(text.as_bytes()),
        };
        ExitCode::from(code)
    }

    /// `[{ "code", "message", "file", "line", "column", "span": [start, end], "hints" }]`, where the span is in bytes and
    /// what is not known is null.
    pub fn errors(&self) -> Vec<Value> {
        let message = |message: &String| {
            vec![json!({ "code": null, "message": message, "file": null, "line": null,
            "column": null, "span": null, "hints": [] })]
        };
        match self {
            Failure::Diagnostics(source, diagnostics) => diagnostics.iter().map(|one| error(one, source)).collect(),
            Failure::Message(text) | Failure::Usage(text) => message(text),
            Failure::Printed => Vec::new(),
        }
    }
}

fn error(diagnostic: &Diagnostic, source: &Source) -> Value {
    let place = place(diagnostic, source);
    json!({
        "code": diagnostic.code,
        "message": diagnostic.message,
        "file": source.name,
        "line": place.map(|place| place.line),
        "column": place.map(|place| place.column),
        "span": diagnostic.labels.first().map(|label| [label.span.start, label.span.end]),
        "hints": diagnostic.hints,
    })
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
