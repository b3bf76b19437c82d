//! Explanations: the integer algebra behind each derivative, as text and as pictures of lattices.

use gradix::Program;
use gradix::domain::order::{explained, order};
use gradix::explain::{AccessReport, Case};
use gradix_int::{Int, Matrix};

use crate::lattice::{self, Lattice};

pub use crate::lattice::sizes;

/// The order of recurrences, and the matrices and the solved index sets behind accesses, one after the other.
///
/// ```
/// let ast = gradix::syntax::parse("input x[N]\ny[i in 0..N // 2] = x[2*i]").unwrap();
/// let program = gradix::resolve(&ast, &[]).unwrap().program;
/// let reports = gradix::explain::explain(&program, None, None).unwrap();
/// assert!(gradix_view::explain::text(&program, &reports).contains("divisibility: β % 2 == 0"));
/// ```
pub fn text(program: &Program, reports: &[AccessReport]) -> String {
    let accesses = reports.iter().map(|report| access(program, report));
    let texts: Vec<String> = orders(program).into_iter().chain(accesses).collect();
    texts.join("\n")
}

/// The order in which recurrences are computed, and why every read is earlier.
fn orders(program: &Program) -> Option<String> {
    let lines = explained(program, &order(program).ok()?);
    (!lines.is_empty()).then(|| lines.iter().fold("order\n".to_string(), |text, line| format!("{text}  {line}\n")))
}

/// The reports with these numbers, all if there are none.
pub fn chosen(reports: Vec<AccessReport>, numbers: &[usize]) -> Result<Vec<AccessReport>, String> {
    if let Some(number) = numbers.iter().find(|number| reports.iter().all(|report| report.number != **number)) {
        let known: Vec<String> = reports.iter().map(|report| report.number.to_string()).collect();
        let known = if known.is_empty() { "none".into() } else { known.join(", ") };
        return Err(format!("there is no access {number} here\nhelp: there is {known}"));
    }
    Ok(reports.into_iter().filter(|report| numbers.is_empty() || numbers.contains(&report.number)).collect())
}

/// The points that read one element, for every access with one, two or three indices, as SVG.
///
/// The element is `at`, which makes sense for one such access only, or the one that most points read.
pub fn lattices(
    program: &Program,
    reports: &[AccessReport],
    sizes: &[Int],
    at: Option<&[i64]>,
) -> Result<String, String> {
    let drawable: Vec<&AccessReport> = reports.iter().filter(|report| Lattice::can_draw(program, report)).collect();
    match (drawable.len(), at) {
        (0, _) => return Err("there is no access with one, two or three indices to draw".into()),
        (2.., Some(_)) => return Err("an element belongs to one access, and there are several to draw".into()),
        _ => {}
    }
    let lattices: Result<Vec<Option<Lattice>>, String> =
        drawable.iter().map(|report| Lattice::new(program, report, sizes, at)).collect();
    let lattices: Vec<Lattice> = lattices?.into_iter().flatten().collect();
    if lattices.is_empty() {
        return Err("no point reads an element at these sizes".into());
    }
    Ok(lattice::draw(&lattices))
}

fn access(program: &Program, report: &AccessReport) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use gradix::explain::explain;

    fn resolved(text: &str) -> (Program, Vec<AccessReport>) {
        let program = gradix::resolve(&gradix::syntax::parse(text).unwrap(), &[]).unwrap().program;
        let reports = explain(&program, None, None).unwrap();
        (program, reports)
    }

    #[test]
    fn reports_are_chosen_by_number() {
        let (_, reports) = resolved("input x[N], y[N]\nf[i] = x[i] + y[i]");
        let numbers = |wanted: &[usize]| -> Result<Vec<usize>, String> {
            Ok(chosen(reports.clone(), wanted)?.iter().map(|report| report.number).collect())
        };
        assert_eq!((numbers(&[]), numbers(&[2])), (Ok(vec![1, 2]), Ok(vec![2])));
        assert_eq!(numbers(&[3]), Err("there is no access 3 here\nhelp: there is 1, 2".into()));
    }

    #[test]
    fn an_element_is_drawn_for_one_access_only() {
        let (program, reports) = resolved("input a[N], b[N]\ny[i, j in 0..2] = a[i] + b[i]");
        let draw = |reports, at| lattices(&program, reports, &[Int::from(4)], at);
        assert!(draw(&reports, None).unwrap().starts_with("<svg "));
        assert!(draw(&reports, Some(&[1])).unwrap_err().contains("several"));
        assert!(draw(&reports[..1], Some(&[1])).unwrap().contains("a[i] = a[1]"));
        assert!(draw(&[], None).unwrap_err().contains("no access"));
    }
}
