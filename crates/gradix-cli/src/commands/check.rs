//! `gradix check`: derivatives against numeric differentiation.

use gradix::Resolved;
use gradix::derive::{Options, derive};
use gradix::diagnostic::counted;
use gradix_run::check::{Comparison, INTERVALS, Report, Settings, Worst, check, check_at_chosen};
use gradix_run::gradient::carried;
use gradix_view::Source;
use serde_json::{Value, json};

use super::eval::{json_sizes, tell_sizes};
use super::{note, print};
use crate::arguments::CheckArguments;
use crate::failure::Failure;
use crate::json::real;
use crate::progress::Progress;
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
    let first = derive(&program, &arguments.selection.options());
    let first = first.map_err(|errors| refuse(source, places.mark(errors)))?;
    let found =
        measured(arguments, |settings, progress| check_at_chosen(&program, &first, &[], &places, settings, progress));
    let (sizes, report) = found.map_err(|errors| refuse(source, errors))?;
    let mut rows = told(report, quiet);
    tell_sizes(&program, &sizes, quiet);
    if arguments.order == 2 && first.program.has_inputs() {
        let sizes = carried(&program, &sizes, &first.program).map_err(|errors| refuse(source, errors))?;
        let second = derive(&first.program, &Options::default()).map_err(|errors| refuse(source, errors))?;
        let more = measured(arguments, |settings, progress| check(&first.program, &second, &sizes, settings, progress));
        let more = told(more.map_err(|errors| refuse(source, errors))?, quiet);
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
    let unchecked = rows.iter().filter(|row| row.verdict() == "not checked").count();
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

/// What is found with a bar for the time that it takes.
fn measured<T>(
    arguments: &CheckArguments,
    find: impl FnOnce(Settings, &(dyn Fn(usize, usize) + Sync)) -> gradix::Result<T>,
) -> gradix::Result<T> {
    let settings = Settings { seed: arguments.seed, tolerance: arguments.tol, second: arguments.order == 2 };
    let progress = Progress::new(arguments.program.quiet);
    let found = find(settings, &|done, all| progress.show(done, all));
    progress.finish();
    found
}

/// The comparisons; what they were made on is told, if it is not the usual.
fn told(Report { interval, comparisons }: Report, quiet: bool) -> Vec<Comparison> {
    if interval != INTERVALS[0] {
        let (low, high) = interval;
        note(quiet, &format!("inputs are drawn from ({low}, {high}), where the results are finite"));
    }
    comparisons
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
    json!({ "name": row.derivative, "argument": row.argument, "shape": row.shape, "error": real(row.error),
        "verdict": row.verdict(), "skipped": row.skipped, "worst": row.worst.as_ref().map(worst) })
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
