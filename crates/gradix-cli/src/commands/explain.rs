//! `gradix explain`: the integer algebra behind each derivative.

use crate::arguments::ExplainArguments;
use crate::failure::Failure;
use crate::source::Source;

/// Shows the matrices and the solved index sets behind the derivative of every argument access.
pub fn run(_arguments: &ExplainArguments, _source: &Source) -> Result<(), Failure> {
    Err(Failure::Message("`gradix explain` is not in this version".into()))
}
