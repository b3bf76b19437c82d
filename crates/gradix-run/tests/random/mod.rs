//! Random programs: how they are made, and how a failing one is made smaller.

pub mod affine;
pub mod generate;
pub mod shrink;
