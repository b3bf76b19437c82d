//! The gradix command line.
//!
//! Data goes to standard output, messages to standard error. The exit code is 0, 1 when the program or its data are
//! at fault, and 2 for wrong usage.

mod arguments;
mod commands;
mod failure;
mod json;
mod progress;
mod show;
mod source;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments = arguments::Arguments::parse();
    match commands::run(&arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(arguments.command.is_for_programs()),
    }
}
