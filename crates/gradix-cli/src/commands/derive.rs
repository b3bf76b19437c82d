//! `gradix derive`: the derivative program.

use gradix::derive::{self, Derived, Options};
use gradix::explain::graph;
use gradix::program::print;
use gradix::{Int, Program, Resolved, syntax};
use gradix_run::confirm;
use gradix_view::Source;

use super::{note, print as write};
use crate::arguments::{DeriveArguments, Format, Mode};
use crate::failure::Failure;
use crate::json::json;
use crate::source::{refuse, resolve};

/// Prints the derivative program.
pub fn run(arguments: &DeriveArguments, source: &Source) -> Result<(), Failure> {
    if arguments.inline && matches!(arguments.format, Format::Json | Format::Dot | Format::Svg) {
        return Err(Failure::Usage("'--inline' is for the formats text and latex".into()));
    }
    let Resolved { program, places } = resolve(source, &arguments.selection, arguments.program.quiet)?;
    let derived = gradix::derive(&program, &options(arguments));
    let derived = derived.map_err(|errors| refuse(source, places.mark(errors)))?;
    if arguments.verify {
        verify(arguments, source, &program, &derived)?;
    }
    let derivative = derived.program;
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

/// Holds the derivative to the program. That nothing could be compared is told even to those who want to hear little.
fn verify(arguments: &DeriveArguments, source: &Source, program: &Program, derived: &Derived) -> Result<(), Failure> {
    let options = options(arguments);
    let confirmed = confirm(program, derived, &options).map_err(|mismatch| {
        let params: Vec<(String, Int)> =
            arguments.selection.params.iter().map(|(name, size)| (name.clone(), Int::from(*size))).collect();
        Failure::Message(mismatch.report(&source.text, &options, &params, &derived.program))
    })?;
    note(arguments.program.quiet && !confirmed.sizes.is_empty(), &confirmed.to_string());
    Ok(())
}

fn options(arguments: &DeriveArguments) -> Options {
    let mode = match arguments.mode {
        Mode::Reverse => derive::Mode::Reverse,
        Mode::Forward => derive::Mode::Forward,
        Mode::Jacobian => derive::Mode::Jacobian,
        Mode::Hessian => derive::Mode::Hessian,
    };
    Options { mode, ..arguments.selection.options() }
}

fn tree(program: &Program, inline: bool, source: &Source) -> Result<syntax::ast::Ast, Failure> {
    print::ast(program, inline).map_err(|error| refuse(source, vec![error]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Arguments, Command};
    use clap::Parser;

    #[test]
    fn a_wrong_derivative_is_reported_with_all_that_is_needed() {
        let text = "input x[N], w[K]; y[i] = sum[k] x[2*i + k] * w[k]";
        let line = ["gradix", "derive", "--verify", "--wrt", "x", "--param", "K=3", "-e", text];
        let Command::Derive(arguments) = Arguments::parse_from(line).command else { unreachable!("it is 'derive'") };
        let source = Source { name: "command line".into(), text: text.into() };
        let program = resolve(&source, &arguments.selection, true).ok().unwrap().program;
        let derived = gradix::derive(&program, &options(&arguments)).unwrap();
        assert!(verify(&arguments, &source, &program, &derived).is_ok());
        let wrong = print::print(&derived.program).unwrap().replace("w[k - 2*i]", "w[0]");
        let wrong = gradix::resolve(&syntax::parse(&wrong).unwrap(), &[]).unwrap().program;
        let wrong = Derived { program: wrong, ..derived };
        let Err(Failure::Message(report)) = verify(&arguments, &source, &program, &wrong) else { panic!("it passes") };
        let version = format!("gradix {} derive --mode reverse --wrt x --param K=3", env!("CARGO_PKG_VERSION"));
        for part in ["internal error", "at N = ", "dx[", " is ", " and should be ", &version, text, "dy[i] * w[0]"] {
            assert!(report.contains(part), "no '{part}' in\n{report}");
        }
    }
}
