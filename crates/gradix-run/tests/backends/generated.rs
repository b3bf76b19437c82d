//! Random programs and their gradients, held to the oracle.
//!
//! `GRADIX_SEED` sets the first seed and `GRADIX_COUNT` how many programs there are. A failure shows the program made
//! as small as was easy.

use crate::common::*;
use crate::random::floors::floors;
use crate::random::generate::generate;
use crate::random::shrink::shrink;
use crate::support::brute::is_delicate;
use crate::support::noise;
use gradix::program::Program;
use gradix_run::{Array, Backend, Dtype};
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn random_programs_on_the_virtual_machine_agree_with_the_oracle() {
    check(GENERAL, Backend::Vm, 1, 150);
}

#[test]
fn random_compiled_programs_agree_with_the_oracle() {
    if has_native() {
        check(GENERAL, Backend::Native, 1001, 25);
    }
}

#[test]
fn random_floors_on_the_virtual_machine_agree_with_the_oracle() {
    check(FLOORS, Backend::Vm, 1, 150);
}

#[test]
fn random_compiled_floors_agree_with_the_oracle() {
    if has_native() {
        check(FLOORS, Backend::Native, 1001, 25);
    }
}

/// Where programs come from.
#[derive(Clone, Copy)]
pub struct Source {
    generate: fn(u64) -> String,
    /// The sizes of the first trials, the same for all params.
    sizes: &'static [i64],
    /// One in so many programs may be left to the oracle.
    left: usize,
}

pub const GENERAL: Source = Source { generate, sizes: &[], left: 25 };
pub const FLOORS: Source = Source { generate: floors, sizes: &[1, 2], left: 10 };

pub fn check(source: Source, backend: Backend, first: u64, count: u64) {
    let (first, count) = (setting("GRADIX_SEED", first), setting("GRADIX_COUNT", count));
    let mut failures = Vec::new();
    let (mut compared, mut left) = (0, Vec::new());
    for seed in first..first + count {
        let text = (source.generate)(seed);
        let subject = |text: &str| guarded(text, source, seed, backend);
        match subject(&text) {
            Ok(runs) => {
                compared += usize::from(runs.compared > 0);
                left.extend((runs.left > 0).then_some(seed));
            }
            Err(why) => failures.push(format!("---- seed {seed}:\n{}", smallest(&text, kind(&why), &subject))),
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n\n"));
    assert!(compared * 10 >= count as usize * 6, "only {compared} programs ran");
    assert!(left.len() * source.left <= compared, "seeds {left:?} of {compared} were left to the oracle");
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// How many runs at some sizes were compared, and how many the backend could not do.
#[derive(Default)]
struct Runs {
    compared: usize,
    left: usize,
}

fn smallest(text: &str, wrong: &str, subject: &dyn Fn(&str) -> Result<Runs, String>) -> String {
    let ast = gradix::syntax::parse(text).expect("parsed before");
    let small = shrink(&ast, 200, &|text| subject(text).is_err_and(|why| kind(&why) == wrong));
    let why = subject(&small).err().unwrap_or_default();
    format!("{small}\n{why}")
}

/// Failures with different causes are mostly of different kinds.
fn kind(why: &str) -> &'static str {
    if why.contains(" and should be ") { "values" } else { "panics" }
}

/// A panic is a failure like others.
fn guarded(text: &str, source: Source, seed: u64, backend: Backend) -> Result<Runs, String> {
    catch_unwind(AssertUnwindSafe(|| runs(text, source, seed, backend))).map_err(|payload| {
        let message = payload.downcast_ref::<String>().cloned();
        message.or_else(|| payload.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default()
    })
}

/// Programs that are refused, or can't have sizes of this kind, are no concern of this test.
fn runs(text: &str, source: Source, seed: u64, backend: Backend) -> Runs {
    let mut runs = Runs::default();
    let Ok(resolved) = gradix::syntax::parse(text).and_then(|ast| gradix::resolve(&ast, &[])) else { return runs };
    let Ok(gradient) = gradix::derive(&resolved.program, &Default::default()) else { return runs };
    // Compiling the value too would take as long again.
    let value = (backend == Backend::Vm).then_some(("value", &resolved.program));
    for (what, program) in value.into_iter().chain([("gradient", &gradient.program)]) {
        let assumed = estimate(program, if seed.is_multiple_of(2) { 500 } else { 6 });
        let mut subject: Option<Subject> = None;
        // Without a size to choose, every run is the same.
        let trials = if free(program).is_empty() { 1 } else { 3 };
        for trial in 0..trials {
            let given = given(&resolved.program, source, seed, trial);
            let Some(sizes) = sized(program, &given) else { continue };
            let inputs = filled(program, &sizes, |name, shape| data(seed, name, shape));
            if elements(&inputs) > 3000 || is_delicate(program, &given, &inputs) {
                continue;
            }
            let expected = oracle(program, &sizes, &inputs);
            let how = (backend, Compiling::Quick);
            let subject = subject.get_or_insert_with(|| Subject::new(what, program, &assumed, Dtype::F64, how, 2));
            match subject.try_agrees(&sizes, &inputs, &expected, 1e-9) {
                true => runs.compared += 1,
                false => runs.left += 1,
            }
        }
    }
    runs
}

fn given(program: &Program, source: Source, seed: u64, trial: usize) -> Vec<(String, i64)> {
    let number = |name: &str| noise::at(seed, name, trial) as i64 & 0xffff;
    let size = |name: &str| match source.sizes.get(trial) {
        Some(&size) => size,
        None if source.sizes.is_empty() && trial == 2 => number(name) % 3,
        None => 1 + number(name) % 9,
    };
    free(program).into_iter().map(|name| (name.clone(), size(&name))).collect()
}

fn data(seed: u64, name: &str, shape: Vec<usize>) -> Array {
    let count = shape.iter().product();
    Array::new(shape, (0..count).map(|place| noise::value(seed, seed.is_multiple_of(3), name, place)).collect())
}

fn elements(inputs: &Arrays) -> usize {
    inputs.values().map(|array| array.data.len()).sum()
}
