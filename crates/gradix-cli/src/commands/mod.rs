//! The commands: each takes its arguments and the program's text, and prints what was asked for.

mod bench;
mod check;
mod derive;
mod emit;
mod eval;
mod explain;
mod fmt;

use std::io::{self, Write};

use clap::CommandFactory;
use gradix::timings::{Lap, record, timed};

use crate::arguments::{Arguments, Command};
use crate::failure::Failure;
use crate::source::read;

/// Runs a command, and tells how long the passes took if that is asked for.
pub fn run(command: &Command) -> Result<(), Failure> {
    if !command.has_timings() {
        return dispatch(command);
    }
    let (result, laps) = record(|| timed("in all", || dispatch(command)));
    eprint!("{}", timings(&laps));
    result
}

/// What passes took, one line for each, indented under the pass that called them.
fn timings(laps: &[Lap]) -> String {
    let line = |lap: &Lap| {
        let times = if lap.calls > 1 { format!("  ({} times)", lap.calls) } else { String::new() };
        let name = format!("{:indent$}{}", "", lap.name, indent = 2 * lap.depth);
        format!("{:9.1} ms  {name}{times}\n", lap.duration.as_secs_f64() * 1e3)
    };
    laps.iter().map(line).collect()
}

fn dispatch(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Derive(arguments) => derive::run(arguments, &read(&arguments.program)?),
        Command::Eval(arguments) => eval::run(arguments, &read(&arguments.program)?),
        Command::Check(arguments) => check::run(arguments, &read(&arguments.program)?),
        Command::Explain(arguments) => explain::run(arguments, &read(&arguments.program)?),
        Command::Emit(arguments) => emit::run(arguments, &read(&arguments.program)?),
        Command::Bench(arguments) => bench::run(arguments, &read(&arguments.program)?),
        Command::Fmt(arguments) => fmt::run(arguments, &read(&arguments.program)?),
        Command::Completions { shell } => completions(*shell),
        Command::Man { command } => man(command.as_deref()),
    }
}

/// Writes data to standard output. A reader that has seen enough is no failure.
fn print(text: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Message(format!("can't write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Tells something besides the data, on standard error.
fn note(quiet: bool, text: &str) {
    if !quiet {
        eprintln!("{text}");
    }
}

fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "gradix", &mut script);
    print(&script)
}

/// The page of a command, or of the whole.
fn man(command: Option<&str>) -> Result<(), Failure> {
    let mut page = Arguments::command();
    page.build();
    if let Some(name) = command {
        let found = page.find_subcommand(name).cloned();
        page = found.ok_or_else(|| Failure::Usage(format!("there is no command '{name}'")))?;
    }
    let mut text = Vec::new();
    let man = clap_mangen::Man::new(page).source(concat!("gradix ", env!("CARGO_PKG_VERSION")));
    man.render(&mut text).expect("writing to memory does not fail");
    print(&text)
}
