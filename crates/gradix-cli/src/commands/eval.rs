//! `gradix eval`: the values of the results, and of the derivatives.

use crate::arguments::EvalArguments;
use crate::failure::Failure;
use crate::source::Source;

/// Evaluates the results, and with `--grad` the derivatives too.
pub fn run(_arguments: &EvalArguments, _source: &Source) -> Result<(), Failure> {
    Err(Failure::Message("`gradix eval` is not in this version".into()))
}
