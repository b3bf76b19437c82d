//! Running gradix programs.

pub mod array;
pub mod files;
