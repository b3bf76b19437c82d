//! Random programs: how they are made, and how a failing one is made smaller.

#![allow(dead_code, reason = "each test uses a part of it")]

pub mod affine;
pub mod floors;
pub mod generate;
pub mod recurrences;
pub mod shrink;
pub mod whole;
