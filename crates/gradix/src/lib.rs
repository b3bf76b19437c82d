//! Exact symbolic derivatives of tensors defined in index notation.

pub mod diagnostic;
pub mod syntax;
