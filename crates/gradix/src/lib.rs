//! Exact symbolic derivatives of tensors defined in index notation.

pub mod bounds;
pub mod build;
pub mod derive;
pub mod diagnostic;
pub mod explain;
pub mod graph;
pub mod guard;
pub mod nested;
pub mod print;
pub mod program;
pub mod resolve;
pub mod scalar;
pub mod settle;
pub mod simplify;
pub mod sizes;
pub mod syntax;
pub mod system;

pub use diagnostic::{Diagnostic, Result};
pub use derive::derive;
pub use program::Program;
pub use gradix_int::Int;
pub use simplify::simplify;
pub use resolve::{Resolved, resolve};
