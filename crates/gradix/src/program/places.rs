//! Where a program was written.

use super::{Constraint, ExprId, Fold, TensorId};
use crate::diagnostic::{Diagnostic, Label, Span};
use std::collections::HashMap;

/// Where the parts of a program stand in the source, for messages once the sizes are known.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Accesses, by the tensor whose definition they are in.
    pub accesses: HashMap<(TensorId, ExprId), Span>,
    /// The subscripts, by access and dimension, that `wrap` or `reflect` brings back into their tensor.
    pub folded: HashMap<(Span, usize), Fold>,
    /// Requirements on sizes, each with what asked for it and where.
    pub requirements: Vec<(Constraint, Diagnostic)>,
    /// The name of the first definition.
    pub definition: Option<Span>,
    /// Calls of functions that have no derivative.
    pub underived: Vec<(&'static str, Span)>,
    /// What is worth knowing about the program.
    pub notes: Vec<Diagnostic>,
    /// Requirements on sizes that follow from subscripts. Where one fails, a subscript leaves its tensor.
    pub implied: Vec<Constraint>,
}

impl Places {
    /// The errors of a derivation, at the calls that they are about, or else at the first definition.
    pub fn mark(&self, mut errors: Vec<Diagnostic>) -> Vec<Diagnostic> {
        for error in errors.iter_mut().filter(|error| error.code == "no-derivative" && error.labels.is_empty()) {
            let about = |function: &str| error.message.contains(&format!("'{function}'"));
            let calls = self.underived.iter().filter(|(function, _)| about(function)).map(|&(_, span)| span);
            let calls: Vec<Span> = calls.collect();
            let places = if calls.is_empty() { self.definition.into_iter().collect() } else { calls };
            error.labels = places.into_iter().map(|span| Label { span, text: String::new() }).collect();
        }
        errors
    }
}
