//! What the tests of whole programs share: an evaluator that knows nothing of the compiler, and the checks
//! that hold the compiler to it.

#![allow(dead_code, reason = "each test uses a part of it")]

pub mod brute;
pub mod check;
pub mod noise;
pub mod programs;
pub mod scope;
pub mod tape;
