//! What the compiler tells the user: plain values, rendered at the edges.
//!
//! A message is lower case, names the thing found and has no final stop; a hint says how to fix it.
//! Labels mark places in the source text; the first one is the place the message is about.

use std::fmt;

/// A range of bytes in the source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

impl Span {
    /// The range `start..end`.
    pub fn new(start: usize, end: usize) -> Self {
        Span { start, end }
    }

    /// The smallest range that holds both.
    pub fn to(self, other: Span) -> Span {
        Span::new(self.start.min(other.start), self.end.max(other.end))
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The program is refused.
    Error,
    /// The program is accepted; this is worth knowing.
    Note,
}

/// A marked place in the source, with an optional text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What is there; may be empty.
    pub text: String,
}

/// One message to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or note.
    pub severity: Severity,
    /// A stable name such as `unknown-name`, listed in `docs/errors.md`.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// Where; empty when no source text is at fault.
    pub labels: Vec<Label>,
    /// How to fix it.
    pub hints: Vec<String>,
}

impl Diagnostic {
    /// An error with no place yet.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Error, code, message: message.into(), labels: Vec::new(), hints: Vec::new() }
    }

    /// The same, to be known and not to be mended.
    pub fn as_note(self) -> Self {
        Diagnostic { severity: Severity::Note, ..self }
    }

    /// Marks a place.
    pub fn at(self, span: Span) -> Self {
        self.label(span, "")
    }

    /// Marks a place and says what is there.
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)
    }
}

impl std::error::Error for Diagnostic {}

/// A number of things, as in `1 dimension` or `2 dimensions`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The value, or everything that is wrong.
pub type Result<T, E = Vec<Diagnostic>> = std::result::Result<T, E>;
