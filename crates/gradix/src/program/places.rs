//! Where a program was written.

use super::{Constraint, ExprId, TensorId};
use crate::diagnostic::{Diagnostic, Span};
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
    /// What is worth knowing about the program.
    pub notes: Vec<Diagnostic>,
    /// Requirements on sizes that follow from subscripts. Where one fails, a subscript leaves its tensor.
    pub implied: Vec<Constraint>,
}

/// A function that brings a subscript back into its tensor, from a limited distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// `wrap`
    Wrap,
    /// `reflect`
    Reflect,
}
