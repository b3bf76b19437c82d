//! `gradix fmt`: the program in canonical form.

use gradix::syntax;

use super::print;
use crate::arguments::FmtArguments;
use crate::failure::Failure;
use crate::source::Source;

/// Prints the program in canonical form.
pub fn run(_arguments: &FmtArguments, source: &Source) -> Result<(), Failure> {
    let ast = syntax::parse(&source.text).map_err(|diagnostics| source.refuse(diagnostics))?;
    print(syntax::print(&ast).as_bytes())
}
