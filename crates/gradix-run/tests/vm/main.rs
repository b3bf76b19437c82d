//! The virtual machine against the oracle and against plain loops.

mod builder;
mod contractions;
mod functions;
mod grids;
mod machine;
mod nests;
mod programs;
mod random;
mod rows;
mod support;
