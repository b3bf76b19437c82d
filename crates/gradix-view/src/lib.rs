//! What gradix shows people: diagnostics, explanations and pictures.
//!
//! Everything here is a function from values of the compiler to text or SVG. Nothing reads arguments, opens files or
//! prints: the command and other front ends do that.

pub mod explain;
pub mod graph;
pub mod lattice;
pub mod place;
pub mod render;
pub mod source;
mod svg;

pub use place::{Place, place};
pub use render::render;
pub use source::Source;
