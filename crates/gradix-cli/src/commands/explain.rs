//! `gradix explain`: the integer algebra behind each derivative.

use gradix::explain::{AccessReport, explain};
use gradix::nest::Real;
use gradix::{Program, Resolved};
use gradix_run::Gradient;
use gradix_view::Source;
use gradix_view::explain::{chosen, lattices, sizes, text};
use gradix_view::lattice::Lattice;

use super::eval::tell_sizes;
use super::{note, print};
use crate::arguments::ExplainArguments;
use crate::failure::Failure;
use crate::source::{refuse, resolve};

/// Shows the matrices and the solved index sets behind the derivative of every argument access.
pub fn run(arguments: &ExplainArguments, source: &Source) -> Result<(), Failure> {
    let resolved = resolve(source, &arguments.selection)?;
    let (wrt, of) = (arguments.selection.wrt(), arguments.selection.of());
    if arguments.schedule {
        return schedule(&resolved.program, wrt, of, source);
    }
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

/// Shows what was decided for the results and for the derivatives, and the loops that come of it.
fn schedule(
    program: &Program,
    wrt: Option<Vec<String>>,
    of: Option<Vec<String>>,
    source: &Source,
) -> Result<(), Failure> {
    let gradient = Gradient::new(program, wrt, of).map_err(|errors| refuse(source, errors))?;
    // As it runs at sizes that are not zero.
    let loops = |program: &Program| {
        let program = &gradix::assume(program, &vec![gradix::Assumed::Positive; program.params.len()]);
        let compiled = gradix::compile(program, &[], Real::F64).map_err(|error| refuse(source, vec![error]))?;
        let decisions = gradix::schedule::print(&compiled.arranged, &compiled.schedule);
        Ok(format!("{decisions}\n{}", gradix::nest::print(&compiled.nest)))
    };
    let (results, derivatives) = (loops(program)?, loops(&gradient.derivative)?);
    print(format!("results\n\n{results}\nderivatives\n\n{derivatives}").as_bytes())
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
    let write = std::fs::write(path, drawing);
    write.map_err(|error| Failure::Message(format!("can't write {}: {error}", path.display())))?;
    note(arguments.program.quiet, &format!("wrote {}", path.display()));
    Ok(())
}
