//! `gradix derive`: the derivative program.

use gradix::derive::{self, Options};
use gradix::{Program, graph, print, syntax};
use gradix_view::Source;

use super::print as write;
use crate::arguments::{DeriveArguments, Format, Mode};
use crate::failure::Failure;
use crate::json::json;
use crate::source::{refuse, resolve};

/// Prints the derivative program.
pub fn run(arguments: &DeriveArguments, source: &Source) -> Result<(), Failure> {
    if arguments.inline && matches!(arguments.format, Format::Json | Format::Dot | Format::Svg) {
        return Err(Failure::Usage("'--inline' is for the formats text and latex".into()));
    }
    let program = resolve(source, &arguments.selection)?.program;
    let derivative = gradix::derive(&program, &options(arguments)).map_err(|errors| refuse(source, errors))?;
    let text = match arguments.format {
        Format::Text => syntax::print(&tree(&derivative, arguments.inline, source)?),
        Format::Latex => syntax::latex(&tree(&derivative, arguments.inline, source)?).trim_end().to_string() + "\n",
        Format::Json => json(&derivative),
        Format::Dot => graph::dot(&graph::graph(&program, Some(&derivative))),
        Format::Svg => {
            gradix_view::graph::svg(&program, Some(&derivative)).map_err(|error| refuse(source, vec![error]))?
        }
    };
    write(text.as_bytes())
}

fn options(arguments: &DeriveArguments) -> Options {
    let mode = match arguments.mode {
        Mode::Reverse => derive::Mode::Reverse,
        Mode::Forward => derive::Mode::Forward,
        Mode::Jacobian => derive::Mode::Jacobian,
        Mode::Hessian => derive::Mode::Hessian,
    };
    Options { mode, wrt: arguments.selection.wrt(), of: arguments.selection.of(), with_results: false }
}

fn tree(program: &Program, inline: bool, source: &Source) -> Result<syntax::ast::Ast, Failure> {
    print::ast(program, inline).map_err(|error| refuse(source, vec![error]))
}
