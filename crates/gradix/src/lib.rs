//! Exact symbolic derivatives of tensors defined in index notation.

pub mod bounds;
pub mod build;
pub mod derive;
pub mod diagnostic;
pub mod economise;
pub mod emit;
pub mod explain;
pub mod extent;
pub mod factor;
pub mod graph;
pub mod guard;
pub mod lower;
pub mod narrow;
pub mod nest;
pub mod nested;
pub mod print;
pub mod program;
pub mod resolve;
pub mod restrict;
pub mod scalar;
pub mod schedule;
pub mod settle;
pub mod simplify;
pub mod sizes;
pub mod syntax;
pub mod system;
pub mod tidy;

pub use derive::derive;
pub use diagnostic::{Diagnostic, Result};
pub use economise::economise;
pub use gradix_int::Int;
pub use lower::{Assumed, assume, explain_schedule, is_little, lower, lower_as, lower_verified};
pub use program::Program;
pub use resolve::{Resolved, resolve};
pub use restrict::restrict;
pub use simplify::simplify;
