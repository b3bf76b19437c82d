//! Names, ranges and bounds: the normal form of right programs, and what is said about wrong ones.
//!
//! Sections: `program` (the printed normal form), `error`, `note`, `bind N=3 x=2,4` (sizes from values and shapes) and
//! `choose` (sizes for a trial run). `program` and `error` may be followed by sizes fixed from outside: `program M=4`.

mod support;

use gradix::diagnostic::{Diagnostic, Result};
use gradix::domain::sizes::{self, Known};
use gradix::program::Places;
use gradix::program::print;
use gradix::program::{Program, verify};
use gradix::resolve::MAX_INDICES;
use gradix::syntax::parse;
use gradix::{Int, Resolved, resolve};
use std::collections::BTreeSet;
use std::path::Path;
use support::Case;

#[test]
fn cases() {
    support::check("resolve", section);
}

fn section(case: &Case, name: &str) -> String {
    let mut words = name.split_whitespace();
    let kind = words.next().unwrap_or_default();
    let given: Vec<(&str, Vec<usize>)> = words.map(assignment).collect();
    let fixed = given.iter().map(|(name, value)| (name.to_string(), Int::from(value[0]))).collect::<Vec<_>>();
    let outer = if kind == "bind" || kind == "choose" { &[] } else { fixed.as_slice() };
    let resolved = parse(&case.source).and_then(|ast| resolve(&ast, outer));
    let known = || known(&resolved, &given);
    let places = || resolved.as_ref().map_or(Places::default(), |resolved| resolved.places.clone());
    match (kind, &resolved) {
        ("error", Err(errors)) => support::render(&case.source, errors),
        ("error", Ok(_)) => panic!("`{}` is accepted:\n{}", case.title, case.source),
        (_, Err(errors)) => panic!("`{}` is refused:\n{}", case.title, support::render(&case.source, errors)),
        ("program", Ok(resolved)) => checked(&resolved.program),
        ("note", Ok(resolved)) => support::render(&case.source, &resolved.places.notes),
        ("bind", Ok(Resolved { program, .. })) => sized(case, program, sizes::bind(program, &known(), &places())),
        ("choose", Ok(Resolved { program, .. })) => sized(case, program, sizes::choose(program, &known(), &places())),
        _ => panic!("unknown section `{name}`"),
    }
}

/// `N=3`, or the shape of an array: `x=2,4`.
fn assignment(word: &str) -> (&str, Vec<usize>) {
    let (name, value) = word.split_once('=').unwrap_or_else(|| panic!("`{word}` is no assignment"));
    (name, value.split(',').map(|number| number.parse().unwrap()).collect())
}

fn known(resolved: &Result<Resolved>, given: &[(&str, Vec<usize>)]) -> Known {
    let mut known = Known::default();
    for (name, value) in given {
        match resolved.as_ref().ok().and_then(|resolved| resolved.program.tensor(name)) {
            Some(tensor) => known.shapes.push((tensor, value.clone())),
            None => known.given.push((name.to_string(), Int::from(value[0]))),
        }
    }
    known
}

fn sized(case: &Case, program: &Program, sizes: Result<Vec<Int>>) -> String {
    match sizes {
        Ok(sizes) => {
            let shown = program.params.iter().zip(sizes).map(|(param, size)| format!("{} = {size}", param.name));
            shown.collect::<Vec<_>>().join(", ")
        }
        Err(errors) => support::render(&case.source, &errors),
    }
}

/// The printed program, which keeps every promise about programs and their text.
fn checked(program: &Program) -> String {
    assert_eq!(verify(program), Ok(()));
    let text = print::print(program).unwrap();
    let ast = parse(&text).unwrap_or_else(|errors| panic!("{}\n{text}", support::render(&text, &errors)));
    let again = resolve(&ast, &[]).unwrap_or_else(|errors| panic!("{}\n{text}", support::render(&text, &errors)));
    assert_eq!(print::print(&again.program).unwrap(), text, "printing is idempotent");
    assert!(again.program == *program, "the printed text is another program:\n{text}");
    text
}

fn errors(source: &str) -> Vec<Diagnostic> {
    parse(source).and_then(|ast| resolve(&ast, &[])).err().unwrap_or_default()
}

/// Every code that the compiler can report after parsing, and where a case for it would show.
#[test]
fn every_diagnostic_has_a_case() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut source = String::new();
    let mut cases = String::new();
    for part in ["src/resolve", "src/derive", "src/domain", "src/program/print.rs"] {
        source += &texts(&root.join(part));
    }
    for folder in ["tests/cases/resolve", "../gradix-run/tests/cases/derive"] {
        cases += &texts(&root.join(folder));
    }
    let codes = source.split("Diagnostic::error(\"").skip(1).filter_map(|rest| rest.split('"').next());
    let codes: BTreeSet<&str> = codes.collect();
    assert!(codes.len() > 20, "{codes:?}");
    let missing: Vec<_> = codes.iter().filter(|code| !cases.contains(&format!("\n{code}: "))).collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
}

fn texts(path: &Path) -> String {
    if path.is_file() {
        return std::fs::read_to_string(path).unwrap();
    }
    let entries = std::fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    entries.map(|entry| texts(&entry.unwrap().path())).collect()
}

#[test]
fn as_many_indices_as_allowed_are_accepted() {
    let indices = |count: usize| (0..count).map(|i| format!("i{i} in 0..2")).collect::<Vec<_>>().join(", ");
    assert_eq!(errors(&format!("y[{}] = 1", indices(MAX_INDICES))), []);
    let refused = errors(&format!("y[{}] = 1", indices(MAX_INDICES + 1)));
    assert_eq!(refused.iter().map(|error| error.code).collect::<Vec<_>>(), ["too-many-indices"]);
}

#[test]
fn errors_come_in_the_order_of_the_text() {
    let found = errors("input x[N]\ny[i] = u[i]\nz[i] = x[i, i]\nw[i] = v[i]");
    assert_eq!(found.len(), 3);
    assert!(found.is_sorted_by_key(|error| error.labels[0].span));
}

#[test]
fn users_of_a_broken_definition_are_not_blamed() {
    let found = errors("input x[N]\ny[i] = u[i]\nz[i] = y[i] + x[i]\nw[i] = z[i]\noutput w, z, y");
    assert_eq!(found.iter().map(|error| error.code).collect::<Vec<_>>(), ["unknown-name"], "{found:?}");
}
