//! `gradix emit`: source code for the results and the derivatives.

use gradix::derive::Options;
use gradix::{Resolved, emit};
use gradix_view::Source;

use super::{note, print};
use crate::arguments::{EmitArguments, Language};
use crate::failure::Failure;
use crate::source::{refuse, resolve};

/// Prints source code.
pub fn run(arguments: &EmitArguments, source: &Source) -> Result<(), Failure> {
    let selection = &arguments.selection;
    let restricted = !selection.wrt.is_empty() || !selection.of.is_empty();
    if restricted && arguments.values {
        return Err(Failure::Usage("'--wrt' and '--of' restrict derivatives; leave out '--values'".into()));
    }
    let Resolved { mut program, places } = resolve(source, selection, arguments.program.quiet)?;
    if !arguments.values {
        let options = Options { with_results: true, ..selection.options() };
        program = gradix::derive(&program, &options).map_err(|errors| refuse(source, places.mark(errors)))?.program;
    }
    let (real, target) = (arguments.dtype.dtype().real(), arguments.cpu.unwrap_or_else(gradix_run::host));
    let nest = gradix::compile(&program, &[], real, &target).map_err(|error| refuse(source, vec![error]))?.nest;
    let text = match arguments.target {
        Language::C => emit::c(&nest, real),
    };
    let Some(path) = &arguments.output else { return print(text.as_bytes()) };
    let write = gradix_run::files::write_text(path, &text);
    write.map_err(|error| Failure::Message(format!("can't write {error}")))?;
    note(arguments.program.quiet, &format!("wrote {}", path.display()));
    Ok(())
}
