//! `gradix check`: derivatives against numeric differentiation.

use crate::arguments::CheckArguments;
use crate::failure::Failure;
use crate::source::Source;

/// Compares every derivative with numeric differentiation on random data.
pub fn run(_arguments: &CheckArguments, _source: &Source) -> Result<(), Failure> {
    Err(Failure::Message("`gradix check` is not in this version".into()))
}
