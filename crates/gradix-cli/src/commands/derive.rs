//! `gradix derive`: the derivative program.

use crate::arguments::DeriveArguments;
use crate::failure::Failure;
use crate::source::Source;

/// Prints the derivative program.
pub fn run(_arguments: &DeriveArguments, _source: &Source) -> Result<(), Failure> {
    Err(Failure::Message("`gradix derive` is not in this version".into()))
}
