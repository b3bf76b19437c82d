//! Running gradix programs.

pub mod array;
pub mod files;
pub mod interp;

pub use array::Array;
pub use files::Dtype;
pub use interp::{Outcome, interp};
