//! `gradix check`: derivatives against numeric differentiation.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use gradix::derive::{Derived, Options, derive};
use gradix::diagnostic::counted;
use gradix::domain::sizes::{self, Known};
use gradix::{Int, Program, Resolved};
use gradix_run::check::{Comparison, INTERVALS, Report, Settings, Worst, check, larger};
use gradix_run::gradient::carried;
use gradix_view::Source;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use super::eval::{json_sizes, tell_sizes};
use super::{note, print};
use crate::arguments::CheckArguments;
use crate::failure::Failure;
use crate::json::real;
use crate::show::single;
use crate::source::{refuse, resolve};

/// Compares every derivative with numeric differentiation on random data.
pub fn run(arguments: &CheckArguments, source: &Source) -> Result<(), Failure> {
    let quiet = arguments.program.quiet;
    let Resolved { program, places } = resolve(source, &arguments.selection, quiet)?;
    if !program.has_inputs() {
        note(quiet, "there is nothing to check: the program has no arguments");
        return deliver(&[], json!({}), arguments);
    }
    let mut sizes = sizes::choose(&program, &Known::default(), &places).map_err(|errors| refuse(source, errors))?;
    let first = derive(&program, &arguments.selection.options());
    let first = first.map_err(|errors| refuse(source, places.mark(errors)))?;
    let mut rows = compare(&program, &first, &sizes, arguments, source)?;
    let vacuous = |rows: &[Comparison]| rows.iter().filter(|row| row.vacuous).count();
    let mut trial = sizes.clone();
    for _ in 0..ENLARGEMENTS {
        match larger(&program, &trial, &places) {
            Some(larger) if vacuous(&rows) > 0 => trial = larger,
            _ => break,
        }
        let more = compare(&program, &first, &trial, arguments, source)?;
        if vacuous(&more) < vacuous(&rows) {
            (sizes, rows) = (trial.clone(), more);
        }
    }
    tell_sizes(&program, &sizes, quiet);
    if arguments.order == 2 && first.program.has_inputs() {
        let sizes = carried(&program, &sizes, &first.program).map_err(|errors| refuse(source, errors))?;
        let second = derive(&first.program, &Options::default()).map_err(|errors| refuse(source, errors))?;
        let more = compare(&first.program, &second, &sizes, arguments, source)?;
        let numbered = |order, rows: Vec<Comparison>| rows.into_iter().map(move |row| numbered(order, row));
        rows = numbered(1, rows).chain(numbered(2, more)).collect();
    }
    deliver(&rows, json_sizes(&program, &sizes), arguments)
}

/// Prints the report, with what is wrong as part of it where a program reads it.
fn deliver(rows: &[Comparison], sizes: Value, arguments: &CheckArguments) -> Result<(), Failure> {
    let found = verdict(rows, arguments.strict);
    if !arguments.json {
        print(table(rows).as_bytes())?;
        return found;
    }
    let errors = found.as_ref().err().map(Failure::errors).unwrap_or_default();
    let derivatives: Vec<Value> = rows.iter().map(object).collect();
    let report = json!({ "sizes": sizes, "derivatives": derivatives, "errors": errors });
    print(format!("{report}\n").as_bytes())?;
    found.map_err(|_| Failure::Printed)
}

/// Whether all derivatives are right, or none is wrong.
fn verdict(rows: &[Comparison], strict: bool) -> Result<(), Failure> {
    let failed = rows.iter().filter(|row| !row.passed).count();
    let unchecked = rows.iter().filter(|row| is_unchecked(row)).count();
    if failed == 0 && (unchecked == 0 || !strict) {
        return Ok(());
    }
    if failed == 0 {
        let message = format!("{unchecked} of {} could not be checked", counted(rows.len(), "derivative"));
        return Err(Failure::Message(message));
    }
    let (what, differ) = if failed == 1 { ("derivative", "differs") } else { ("derivatives", "differ") };
    Err(Failure::Message(format!("{failed} {what} of {} {differ} from numeric differentiation", rows.len())))
}

fn compare(
    program: &Program,
    gradient: &Derived,
    sizes: &[Int],
    arguments: &CheckArguments,
    source: &Source,
) -> Result<Vec<Comparison>, Failure> {
    let settings = Settings { seed: arguments.seed, tolerance: arguments.tol };
    let progress = Progress::new(arguments.program.quiet);
    let report = check(program, gradient, sizes, settings, &|done, all| progress.show(done, all));
    progress.finish();
    let Report { interval, comparisons } = report.map_err(|errors| refuse(source, errors))?;
    if interval != INTERVALS[0] {
        let (low, high) = interval;
        note(arguments.program.quiet, &format!("inputs are drawn from ({low}, {high}), where the results are finite"));
    }
    Ok(comparisons)
}

/// How often sizes are doubled at which a derivative is 0.
const ENLARGEMENTS: usize = 3;

/// Whether nothing was found out about a derivative.
fn is_unchecked(row: &Comparison) -> bool {
    row.vacuous || row.elements() > 0 && row.skipped == row.elements()
}

/// The name with its order, where there are two.
fn numbered(order: usize, row: Comparison) -> Comparison {
    Comparison { derivative: format!("{order}: {}", row.derivative), ..row }
}

/// One aligned line for each derivative: its name, the argument, the shape, the largest error and the verdict.
fn table(rows: &[Comparison]) -> String {
    let cells: Vec<[String; 5]> = rows.iter().map(cells).collect();
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..5).map(width).collect();
    let line = |row: &[String; 5]| {
        let padded = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_string() + "\n"
    };
    cells.iter().map(line).collect()
}

fn cells(row: &Comparison) -> [String; 5] {
    let extents: Vec<String> = row.shape.iter().map(usize::to_string).collect();
    let shape = if extents.is_empty() { "scalar".into() } else { format!("[{}]", extents.join(", ")) };
    let error = if row.error == 0.0 { "0".into() } else { format!("{:.1e}", row.error) };
    [row.derivative.clone(), format!("by {}", row.argument), shape, error, remark(row)]
}

/// `{ "name", "argument", "shape", "error", "verdict", "skipped", "worst": { "index", "symbolic", "numeric" } }`
fn object(row: &Comparison) -> Value {
    let worst = |Worst { index, symbolic, numeric }: &Worst| json!({ "index": index, "symbolic": real(*symbolic), "numeric": real(*numeric) });
    let verdict = match row {
        _ if !row.passed => "failed",
        _ if is_unchecked(row) => "not checked",
        _ => "ok",
    };
    json!({ "name": row.derivative, "argument": row.argument, "shape": row.shape, "error": real(row.error),
        "verdict": verdict, "skipped": row.skipped, "worst": row.worst.as_ref().map(worst) })
}

fn remark(row: &Comparison) -> String {
    let elements = row.elements();
    if row.vacuous && row.passed {
        let why = if elements == 0 { "it has no elements" } else { "it is 0 everywhere" };
        return format!("not checked: {why} at these sizes and data");
    }
    let skipped = match row.skipped {
        0 => String::new(),
        all if all == elements => return "not checked: no element has a numeric derivative".into(),
        some if row.is_doubtful() => format!(", but {some} of {elements} elements have no numeric derivative"),
        some => format!(", {some} of {elements} elements skipped at kinks"),
    };
    match &row.worst {
        Some(worst) if !row.passed => {
            let place = if worst.index.is_empty() { String::new() } else { format!(" at {:?}", worst.index) };
            format!("FAILED{place}: {} instead of {}{skipped}", single(worst.symbolic), single(worst.numeric))
        }
        _ => format!("ok{skipped}"),
    }
}

/// A bar on a terminal, once the work has taken a while.
struct Progress {
    quiet: bool,
    start: Instant,
    bar: OnceLock<ProgressBar>,
}

impl Progress {
    const DELAY: Duration = Duration::from_millis(500);

    fn new(quiet: bool) -> Self {
        Progress { quiet, start: Instant::now(), bar: OnceLock::new() }
    }

    fn show(&self, done: usize, all: usize) {
        if self.quiet || self.start.elapsed() < Self::DELAY {
            return;
        }
        // Indicatif draws nothing when standard error is not a terminal.
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} elements").expect("a valid template");
        self.bar.get_or_init(|| ProgressBar::new(all as u64).with_style(style)).set_position(done as u64);
    }

    fn finish(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}
