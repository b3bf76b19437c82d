//! `gradix fmt`: the program in canonical form.

use gradix::syntax;
use gradix_view::Source;

use super::print;
use crate::arguments::FmtArguments;
use crate::failure::Failure;
use crate::source::refuse;

/// Prints the program in canonical form.
pub fn run(_arguments: &FmtArguments, source: &Source) -> Result<(), Failure> {
    let ast = syntax::parse(&source.text).map_err(|diagnostics| refuse(source, diagnostics))?;
    print(syntax::print(&ast).as_bytes())
}
