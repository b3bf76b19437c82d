//! `gradix explain`: the integer algebra behind each derivative.

use gradix::explain::{AccessReport, Case, explain};
use gradix::sizes::{self, Known};
use gradix::{Program, Resolved};
use gradix_int::{Int, Matrix};
use gradix_run::Gradient;

use super::eval::tell_sizes;
use super::{note, print};
use crate::arguments::ExplainArguments;
use crate::failure::Failure;
use crate::lattice::Lattice;
use crate::source::Source;
use crate::svg;

/// Shows the matrices and the solved index sets behind the derivative of every argument access.
pub fn run(arguments: &ExplainArguments, source: &Source) -> Result<(), Failure> {
    let resolved = source.resolve(&arguments.selection)?;
    let (wrt, of) = (arguments.selection.wrt(), arguments.selection.of());
    if arguments.schedule {
        return schedule(&resolved.program, wrt, of, source);
    }
    let reports = explain(&resolved.program, wrt.as_deref(), of.as_deref()).map_err(|errors| source.refuse(errors))?;
    let reports = chosen(reports, arguments)?;
    if arguments.svg.is_some() {
        draw(&resolved, &reports, arguments, source)?;
    }
    if reports.is_empty() {
        note(arguments.program.quiet, "no result depends on an argument");
    }
    let texts: Vec<String> = reports.iter().map(|report| text(&resolved.program, report)).collect();
    print(texts.join("\n").as_bytes())
}

/// Shows what was decided for the results and for the derivatives, and the loops that come of it.
fn schedule(
    program: &Program,
    wrt: Option<Vec<String>>,
    of: Option<Vec<String>>,
    source: &Source,
) -> Result<(), Failure> {
    let gradient = Gradient::new(program, wrt, of).map_err(|errors| source.refuse(errors))?;
    // As it runs at sizes that are not zero.
    let loops = |program: &Program| {
        let program = &gradix::assume(program, &vec![gradix::Assumed::Positive; program.params.len()]);
        let decisions = gradix::explain_schedule(program, &[]).map_err(|error| source.refuse(vec![error]))?;
        let nest = gradix::lower(program, &[]).map_err(|error| source.refuse(vec![error]))?;
        Ok(format!("{decisions}\n{}", gradix::nest::print(&nest)))
    };
    let (results, derivatives) = (loops(program)?, loops(&gradient.derivative)?);
    print(format!("results\n\n{results}\nderivatives\n\n{derivatives}").as_bytes())
}

fn chosen(reports: Vec<AccessReport>, arguments: &ExplainArguments) -> Result<Vec<AccessReport>, Failure> {
    let wanted: Vec<usize> = arguments.access.iter().map(|number| number.get() as usize).collect();
    if let Some(number) = wanted.iter().find(|number| reports.iter().all(|report| report.number != **number)) {
        let numbers: Vec<String> = reports.iter().map(|report| report.number.to_string()).collect();
        let known = if numbers.is_empty() { "none".into() } else { numbers.join(", ") };
        return Err(Failure::Message(format!("there is no access {number} here\nhelp: there is {known}")));
    }
    Ok(reports.into_iter().filter(|report| wanted.is_empty() || wanted.contains(&report.number)).collect())
}

/// Draws every access with two or three indices into one file.
fn draw(
    resolved: &Resolved,
    reports: &[AccessReport],
    arguments: &ExplainArguments,
    source: &Source,
) -> Result<(), Failure> {
    let Resolved { program, places } = resolved;
    let Some(path) = &arguments.svg else { return Ok(()) };
    let sizes = sizes::choose(program, &Known::default(), places).map_err(|errors| source.refuse(errors))?;
    tell_sizes(program, &sizes, arguments.program.quiet);
    let drawable: Vec<&AccessReport> = reports.iter().filter(|report| Lattice::can_draw(program, report)).collect();
    match (drawable.len(), arguments.at.is_empty()) {
        (0, _) => return Err(Failure::Message("there is no access with two or three indices to draw".into())),
        (2.., false) => {
            let message = "'--at' is the element of one access; choose the access with '--access'";
            return Err(Failure::Usage(message.into()));
        }
        _ => {}
    }
    let at = (!arguments.at.is_empty()).then_some(arguments.at.as_slice());
    let lattices: Result<Vec<Option<Lattice>>, String> =
        drawable.iter().map(|report| Lattice::new(program, report, &sizes, at)).collect();
    let lattices: Vec<Lattice> = lattices.map_err(Failure::Message)?.into_iter().flatten().collect();
    if lattices.is_empty() {
        return Err(Failure::Message("no point reads an element at these sizes".into()));
    }
    let drawing = svg::draw(&lattices);
    let write = std::fs::write(path, drawing);
    write.map_err(|error| Failure::Message(format!("can't write {}: {error}", path.display())))?;
    note(arguments.program.quiet, &format!("wrote {}", path.display()));
    Ok(())
}

fn text(program: &Program, report: &AccessReport) -> String {
    let mut text = format!("access {}: {}\n  in {}\n\n", report.number, report.access, report.statement);
    match report.element.is_empty() {
        true => text += "  a scalar: every point of the definition reads it\n\n",
        false => text += &algebra(report),
    }
    let element = format!("{}[{}]", program[report.tensor].name, report.element.join(", "));
    let element = if report.element.is_empty() { program[report.tensor].name.clone() } else { element };
    report.cases.iter().for_each(|case| text += &points(case, &element));
    text += "  contribution\n";
    report.contribution.iter().for_each(|line| text += &format!("    {line}\n"));
    text
}

/// The matrices and what follows from them.
fn algebra(report: &AccessReport) -> String {
    let solution = &report.solution;
    let mut text =
        format!("  β = A α + c with β = ({}), α = ({})\n", report.element.join(", "), report.columns.join(", "));
    text += &beside(&[matrix("A", &integers(&report.matrix)), matrix("c", &column(&report.offset))]);
    for floor in &report.floors {
        text += &format!("    where {} = {} is one more unknown with {}\n", floor.name, floor.value, floor.bounds);
    }
    let smith = &solution.smith;
    text += "\n  Smith form U A V = S\n";
    text += &beside(&[
        matrix("U", &integers(&smith.u)),
        matrix("V", &integers(&smith.v)),
        matrix("S", &integers(&smith.s)),
    ]);
    let inverse = &solution.pseudo_inverse;
    text += "\n  solutions α = I (β - c) + K z: pseudo-inverse I, kernel K, cokernel C\n";
    text += &beside(&[
        matrix("I", &rationals(&inverse.numerators, &inverse.denominator)),
        matrix("K", &integers(&solution.kernel)),
        matrix("C", &integers(&solution.cokernel)),
    ]);
    text += &format!("\n  C (β - c) = 0: {}\n", or(&report.equations, "always"));
    text + &format!("  divisibility: {}\n\n", or(&report.divisibility, "always"))
}

fn or(texts: &[String], otherwise: &str) -> String {
    if texts.is_empty() { otherwise.into() } else { texts.join(" and ") }
}

/// Which points read the element.
fn points(case: &Case, element: &str) -> String {
    let under =
        if case.conditions.is_empty() { String::new() } else { format!(" where {}", case.conditions.join(" and ")) };
    let Some(points) = &case.points else { return format!("  no point{under} reads {element}\n\n") };
    let mut text = format!("  points{under} that read {element}\n");
    if !points.outer.is_empty() {
        text += &format!("    only if {}\n", points.outer.join(" and "));
    }
    points.solved.iter().for_each(|(name, value)| text += &format!("    {name} = {value}\n"));
    points.free.iter().for_each(|(name, range)| text += &format!("    {name} in {range}\n"));
    if !points.conditions.is_empty() {
        text += &format!("    with {}\n", points.conditions.join(" and "));
    }
    text + "\n"
}

type Cells = Vec<Vec<String>>;

fn integers(matrix: &Matrix) -> Cells {
    matrix.iter_rows().map(|row| row.iter().map(Int::to_string).collect()).collect()
}

fn rationals(numerators: &Matrix, denominator: &Int) -> Cells {
    let entry = |numerator: &Int| {
        let common = gradix::program::affine::gcd(numerator, denominator);
        let (above, below) = (numerator / &common, denominator / &common);
        if below == Int::ONE { above.to_string() } else { format!("{above}/{below}") }
    };
    numerators.iter_rows().map(|row| row.iter().map(entry).collect()).collect()
}

fn column(entries: &[String]) -> Cells {
    entries.iter().map(|entry| vec![entry.clone()]).collect()
}

/// A matrix with its name, as lines of equal width.
fn matrix(name: &str, cells: &Cells) -> Vec<String> {
    if cells.iter().all(Vec::is_empty) {
        return vec![format!("{name} = ()")];
    }
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..cells[0].len()).map(width).collect();
    let last = cells.len() - 1;
    let line = |(number, row): (usize, &Vec<String>)| {
        let padded =
            row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}")).collect::<Vec<_>>().join(" ");
        let (open, close) = match number {
            _ if last == 0 => ('(', ')'),
            0 => ('⎡', '⎤'),
            _ if number == last => ('⎣', '⎦'),
            _ => ('⎢', '⎥'),
        };
        let label = if number == 0 { format!("{name} = ") } else { " ".repeat(name.chars().count() + 3) };
        format!("{label}{open}{padded}{close}")
    };
    cells.iter().enumerate().map(line).collect()
}

/// Blocks of lines side by side.
fn beside(blocks: &[Vec<String>]) -> String {
    let height = blocks.iter().map(Vec::len).max().unwrap_or(0);
    let row = |number: usize| {
        let part = |block: &Vec<String>| {
            let width = block.iter().map(|line| line.chars().count()).max().unwrap_or(0);
            format!("{:<width$}", block.get(number).map_or("", String::as_str))
        };
        format!("    {}", blocks.iter().map(part).collect::<Vec<_>>().join("    ")).trim_end().to_string() + "\n"
    };
    (0..height).map(row).collect()
}
