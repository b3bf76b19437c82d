//! Emitted C under AddressSanitizer and UndefinedBehaviorSanitizer, at sizes of 0, 1, 2 and more, with results that are the oracle's.
//!
//! `GRADIX_COUNT` sets how many examples there are, evenly spread, and how many random programs of each kind; `GRADIX_SEED` the first
//! seed. `make sanitize` takes all of them.

use crate::random::floors::floors;
use crate::random::generate::generate;
use crate::random::recurrences::recurrences;
use crate::subject::{Subject, compare, folder, main_file, resolved, run};
use crate::support::brute::is_delicate;
use crate::support::noise;
use crate::support::programs::files;
use gradix::domain::sizes::{Known, bind, choose};
use gradix::emit::Real;
use gradix::program::{ParamKind, Places, Program};
use gradix::{Int, Resolved};
use gradix_run::{Array, random};
use std::path::Path;
use std::process::Command;

/// What is undefined ends the program; numbers that have no integer are looked at, too.
const SANITIZERS: [&str; 4] =
    ["-fsanitize=address,undefined", "-fsanitize=float-cast-overflow", "-fno-sanitize-recover=all", "-O1"];
/// So many files are one program.
const TOGETHER: usize = 10;
/// Inputs and results are at most so many numbers: they are part of a program's text.
const MOST_ELEMENTS: usize = 3000;

#[test]
fn examples_and_their_gradients_are_clean() {
    let paths = files("../../examples");
    let count = setting("GRADIX_COUNT", 6).min(paths.len() as u64) as usize;
    let chosen = (0..count).map(|number| &paths[number * paths.len() / count]);
    let subject = |(number, path): (usize, &std::path::PathBuf)| {
        let text = std::fs::read_to_string(path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().replace('-', "_");
        example(&name, &text, if number % 2 == 0 { Real::F64 } else { Real::F32 })
    };
    let subjects: Vec<Subject> = chosen.enumerate().map(subject).collect();
    accept("examples", &subjects);
}

#[test]
fn random_programs_and_their_gradients_are_clean() {
    let (first, count) = (setting("GRADIX_SEED", 1), setting("GRADIX_COUNT", 3));
    let mut subjects = Vec::new();
    for seed in first..first + count {
        for (kind, text) in [("general", generate(seed)), ("floors", floors(seed)), ("steps", recurrences(seed))] {
            subjects.extend(random_subject(&format!("{kind}_{seed}"), &text, seed));
        }
    }
    assert!(subjects.len() as u64 * 2 > 3 * count, "only {} programs ran", subjects.len());
    accept("random", &subjects);
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// An example with its gradient, at sizes that suit it, and where possible at larger ones, 0, and 1.
fn example(name: &str, text: &str, real: Real) -> Subject {
    let (program, _) = resolved(text, true);
    let ast = gradix::syntax::parse(text).unwrap();
    let Resolved { program: function, places } = gradix::resolve(&ast, &[]).unwrap();
    let chosen = choose(&function, &Known::default(), &places).unwrap();
    let free = function.params.iter().zip(chosen).filter(|(param, _)| param.kind == ParamKind::Free);
    let chosen: Vec<(String, i64)> =
        free.map(|(param, size)| (param.name.clone(), i64::try_from(&size).unwrap())).collect();
    let scaled = |factor: i64, more: i64| -> Vec<(String, i64)> {
        chosen.iter().map(|(name, size)| (name.clone(), size * factor + more)).collect()
    };
    let mut subject = Subject::of(name, program.clone(), real);
    for given in [scaled(1, 0), scaled(3, 1), scaled(0, 1), scaled(0, 0)] {
        if let Some(sizes) = sizes(&program, &given, &places) {
            subject.add(sizes, &|name, shape| random::array(3, name, shape).unwrap());
        }
    }
    subject
}

/// A random program with its gradient, if gradix accepts it, at sizes that it can have.
fn random_subject(name: &str, text: &str, seed: u64) -> Option<Subject> {
    let ast = gradix::syntax::parse(text).ok()?;
    let Resolved { program: function, places } = gradix::resolve(&ast, &[]).ok()?;
    let options = gradix::derive::Options { with_results: true, ..Default::default() };
    let program = gradix::derive(&function, &options).ok()?.program;
    let mut subject = Subject::of(name, program.clone(), Real::F64);
    let free = || program.params.iter().filter(|param| param.kind == ParamKind::Free);
    let any = |trial| move |name: &str| 1 + (noise::at(seed, name, trial) as i64 & 0xffff) % 9;
    for size in [&any(1) as &dyn Fn(&str) -> i64, &any(2), &|_| 2, &|_| 1, &|_| 0] {
        let given: Vec<(String, i64)> = free().map(|param| (param.name.clone(), size(&param.name))).collect();
        let Some(sizes) = sizes(&program, &given, &places) else { continue };
        let data = |name: &str, shape: Vec<usize>| {
            let count = shape.iter().product();
            Array::new(shape, (0..count).map(|place| noise::value(seed, false, name, place)).collect())
        };
        let run = subject.add(sizes, &data);
        run.is_compared = !is_delicate(&program, &given, &run.inputs.iter().cloned().collect());
    }
    Some(subject)
}

/// These sizes, if the program can have them, and its arrays are small.
fn sizes(program: &Program, given: &[(String, i64)], places: &Places) -> Option<Vec<Int>> {
    let given = given.iter().map(|(name, size)| (name.clone(), Int::from(*size))).collect();
    let sizes = bind(program, &Known { given, shapes: Vec::new() }, places).ok()?;
    let tensors = program.inputs().chain(program.outputs.iter().copied());
    let elements =
        tensors.map(|id| gradix_run::gradient::shape(program, &sizes, id).unwrap().iter().product::<usize>());
    (elements.sum::<usize>() <= MOST_ELEMENTS).then_some(sizes)
}

/// Builds and runs them with the sanitizers, some at a time.
fn accept(name: &str, subjects: &[Subject]) {
    let folder = folder(&format!("sanitized-{name}"));
    if !has_sanitizers(&folder) {
        return;
    }
    for subjects in subjects.chunks(TOGETHER) {
        subjects.iter().for_each(|subject| subject.write(&folder));
        std::fs::write(folder.join("main.c"), main_file(subjects)).unwrap();
        let files = subjects.iter().map(|subject| format!("{}.c", subject.name)).chain(["main.c".to_string()]);
        run(gcc(&folder).args(files).args(["-lm", "-o", "run"]));
        let printed = run(&mut Command::new(folder.join("run")));
        compare(subjects, &printed, |subject| 1e3 * subject.rounding(), name);
    }
}

fn gcc(folder: &Path) -> Command {
    let mut command = Command::new("gcc");
    command.arg("-std=c99").args(SANITIZERS).current_dir(folder);
    command
}

/// Whether there is a gcc with sanitizers, which have to find a read behind an array; if not, that is told.
fn has_sanitizers(folder: &Path) -> bool {
    let text = "int main(int count, char **words)\n{\n    volatile int two[2] = {0};\n    (void)words;\n    return two[count + 1];\n}\n";
    std::fs::write(folder.join("behind.c"), text).unwrap();
    let is_built = gcc(folder).args(["behind.c", "-o", "behind"]).output().is_ok_and(|output| output.status.success());
    if !is_built {
        eprintln!("there is no gcc with sanitizers: emitted code is not run with them");
        return false;
    }
    let found = Command::new(folder.join("behind")).output().unwrap();
    assert!(!found.status.success() && !found.stderr.is_empty(), "the sanitizers find nothing");
    true
}
