//! The text of a program and what messages call it.

/// A program's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// What messages call it.
    pub name: String,
    /// The text.
    pub text: String,
}
