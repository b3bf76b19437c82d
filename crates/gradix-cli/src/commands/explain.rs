//! `gradix explain`: the integer algebra behind each derivative, and the stages of compilation.

use gradix::explain::{AccessReport, explain};
use gradix::{Assumed, Program, Resolved, compile, emit};
use gradix_run::native::Settings;
use gradix_view::Source;
use gradix_view::explain::{chosen, lattices, sizes, text};
use gradix_view::lattice::Lattice;

use super::eval::tell_sizes;
use super::{note, print};
use crate::arguments::{ExplainArguments, Precision, Stage};
use crate::failure::Failure;
use crate::source::{refuse, resolve};

/// Shows the matrices and the solved index sets behind the derivative of every argument access.
pub fn run(arguments: &ExplainArguments, source: &Source) -> Result<(), Failure> {
    let resolved = resolve(source, &arguments.selection, arguments.program.quiet)?;
    if let Some(stage) = arguments.stage {
        return show(stage, arguments, &resolved.program, source);
    }
    let (wrt, of) = (arguments.selection.wrt(), arguments.selection.of());
    let reports = explain(&resolved.program, wrt.as_deref(), of.as_deref()).map_err(|errors| refuse(source, errors))?;
    let numbers: Vec<usize> = arguments.access.iter().map(|number| number.get() as usize).collect();
    let reports = chosen(reports, &numbers).map_err(Failure::Message)?;
    if arguments.svg.is_some() {
        draw(&resolved, &reports, arguments, source)?;
    }
    if reports.is_empty() {
        note(arguments.program.quiet, "no result depends on an argument");
    }
    print(text(&resolved.program, &reports).as_bytes())
}

/// Shows a stage of the results or of the derivatives, as they run at sizes that are not zero.
fn show(stage: Stage, arguments: &ExplainArguments, program: &Program, source: &Source) -> Result<(), Failure> {
    let (wrt, of) = (arguments.selection.wrt(), arguments.selection.of());
    if !arguments.grad && (wrt.is_some() || of.is_some()) {
        return Err(Failure::Usage("'--wrt' and '--of' restrict derivatives; add '--grad'".into()));
    }
    let program = match arguments.grad {
        true => {
            gradix::derive(program, &arguments.selection.options()).map_err(|errors| refuse(source, errors))?.program
        }
        false => program.clone(),
    };
    let program = gradix::assume(&program, &vec![Assumed::Positive; program.params.len()]);
    let real = arguments.dtype.unwrap_or(Precision::F64).dtype().real();
    let target = arguments.cpu.unwrap_or_else(|| Settings::from_environment().target());
    let compiled = gradix::compile(&program, &[], real, &target).map_err(|error| refuse(source, vec![error]))?;
    let text = match stage {
        Stage::Scanned => compiled.print(compile::Stage::Scanned),
        Stage::Economised => compiled.print(compile::Stage::Economised),
        Stage::Arranged => compiled.print(compile::Stage::Arranged),
        Stage::Schedule => compiled.print(compile::Stage::Schedule),
        Stage::Nest => compiled.print(compile::Stage::Nest),
        Stage::C if target.device.is_some() => Ok(emit::cuda(&compiled.nest, real)),
        Stage::C => Ok(emit::c(&compiled.nest, real)),
    };
    print(text.map_err(|error| refuse(source, vec![error]))?.as_bytes())
}

/// Draws every access with one, two or three indices into one file.
fn draw(
    resolved: &Resolved,
    reports: &[AccessReport],
    arguments: &ExplainArguments,
    source: &Source,
) -> Result<(), Failure> {
    let Resolved { program, places } = resolved;
    let Some(path) = &arguments.svg else { return Ok(()) };
    let at = (!arguments.at.is_empty()).then_some(arguments.at.as_slice());
    if at.is_some() && reports.iter().filter(|report| Lattice::can_draw(program, report)).count() > 1 {
        let message = "'--at' is the element of one access; choose the access with '--access'";
        return Err(Failure::Usage(message.into()));
    }
    let sizes = sizes(program, reports, &[], at, places).map_err(|errors| refuse(source, errors))?;
    tell_sizes(program, &sizes, arguments.program.quiet);
    let drawing = lattices(program, reports, &sizes, at).map_err(Failure::Message)?;
    let write = gradix_run::files::write_text(path, &drawing);
    write.map_err(|error| Failure::Message(format!("can't write {error}")))?;
    note(arguments.program.quiet, &format!("wrote {}", path.display()));
    Ok(())
}
