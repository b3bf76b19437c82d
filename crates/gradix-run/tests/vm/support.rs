//! What random programs are made with.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../support/noise.rs"]
pub mod noise;
