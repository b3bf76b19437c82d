//! The gradix command line.
fn main() {}
