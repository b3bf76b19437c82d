//! Random programs.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../random/affine.rs"]
pub mod affine;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../random/generate.rs"]
pub mod generate;
#[path = "../random/recurrences.rs"]
pub mod recurrences;
