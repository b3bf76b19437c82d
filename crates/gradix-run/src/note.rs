//! What a run tells besides its results: it went on, but not as asked for.

use std::fmt;

/// One remark to the user. Lower case, no final stop, as a diagnostic's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What happened.
    pub message: String,
    /// What can be done about it; may be empty.
    pub hint: String,
}

impl Note {
    /// A remark without a hint.
    pub fn new(message: impl Into<String>) -> Self {
        Note { message: message.into(), hint: String::new() }
    }

    /// The same with a hint.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Note { hint: hint.into(), ..self }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, "\nhelp: {}", self.hint) }
    }
}
