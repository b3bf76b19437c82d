//! Running gradix programs.

pub mod array;
pub mod check;
pub mod files;
pub mod gradient;
pub mod interp;
pub mod random;

pub use array::Array;
pub use check::check;
pub use files::Dtype;
pub use gradient::Gradient;
pub use interp::{Outcome, interp};
