//! What random programs are made with, and the programs that are there.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../support/noise.rs"]
pub mod noise;

#[path = "../support/programs.rs"]
pub mod programs;
