//! The fast backends against the oracle: precision, threads, sizes other than the assumed ones, special values, the
//! cases of derivatives, and random programs.
//!
//! Without a C compiler only the virtual machine is looked at, and a line on stderr says so.

mod alike;
mod batches;
#[path = "../../../gradix/tests/support/mod.rs"]
mod case_files;
mod common;
mod derivatives;
mod examples;
mod extremes;
mod generated;
mod gpu;
mod parts;
#[path = "../random/mod.rs"]
mod random;
mod special;
mod sums;
#[path = "../support/mod.rs"]
mod support;
mod threads;
#[cfg(target_os = "linux")]
mod views;
