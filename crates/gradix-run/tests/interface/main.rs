//! Emitted files as programs in C and C++ use them, through their headers, beside the oracle.

mod cuda;
mod programs;
#[path = "../random/mod.rs"]
mod random;
mod sanitized;
mod subject;
#[path = "../support/mod.rs"]
mod support;
