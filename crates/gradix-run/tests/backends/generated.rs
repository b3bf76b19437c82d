//! Random programs and their gradients, held to the oracle.
//!
//! `GRADIX_SEED` sets the first seed and `GRADIX_COUNT` how many programs there are. A failure shows the program made
//! as small as was easy.

use crate::common::*;
use crate::random::generate::generate;
use crate::random::shrink::shrink;
use crate::support::brute::brute;
use crate::support::noise;
use crate::support::scope::Scope;
use gradix::program::Program;
use gradix_run::{Array, Backend, Dtype, Gradient};
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn random_programs_on_the_virtual_machine_agree_with_the_oracle() {
    check(Backend::Vm, 1, 150);
}

#[test]
fn random_compiled_programs_agree_with_the_oracle() {
    if has_native() {
        check(Backend::Native, 1001, 25);
    }
}

fn check(backend: Backend, first: u64, count: u64) {
    let (first, count) = (setting("GRADIX_SEED", first), setting("GRADIX_COUNT", count));
    let mut failures = Vec::new();
    let (mut compared, mut left) = (0, 0);
    for seed in first..first + count {
        let text = generate(seed);
        match guarded(&text, seed, backend) {
            Ok(runs) => {
                compared += usize::from(runs.compared > 0);
                left += usize::from(runs.left > 0);
            }
            Err(why) => failures.push(smallest(&text, seed, backend, kind(&why))),
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n\n"));
    assert!(compared * 10 >= count as usize * 6, "only {compared} programs ran");
    assert!(left * 25 <= compared, "{left} programs of {compared} were left to the oracle");
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

fn smallest(text: &str, seed: u64, backend: Backend, wrong: &str) -> String {
    let ast = gradix::syntax::parse(text).expect("parsed before");
    let small = shrink(&ast, 200, &|text| guarded(text, seed, backend).is_err_and(|why| kind(&why) == wrong));
    let why = guarded(&small, seed, backend).err().unwrap_or_default();
    format!("---- seed {seed}:\n{small}\n{why}")
}

/// Failures with different causes are mostly of different kinds.
fn kind(why: &str) -> &'static str {
    if why.contains(" and should be ") { "values" } else { "panics" }
}

/// A panic is a failure like others.
fn guarded(text: &str, seed: u64, backend: Backend) -> Result<Runs, String> {
    catch_unwind(AssertUnwindSafe(|| runs(text, seed, backend))).map_err(|payload| {
        let message = payload.downcast_ref::<String>().cloned();
        message.or_else(|| payload.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default()
    })
}

/// Programs that are refused, or can't have sizes of this kind, are no concern of this test.
fn runs(text: &str, seed: u64, backend: Backend) -> Runs {
    let mut runs = Runs::default();
    let Ok(resolved) = gradix::syntax::parse(text).and_then(|ast| gradix::resolve(&ast, &[])) else { return runs };
    let Ok(gradient) = Gradient::new(&resolved.program, None, None) else { return runs };
    // Compiling the value too would take as long again.
    let value = (backend != Backend::Native).then_some(("value", &resolved.program));
    for (what, program) in value.into_iter().chain([("gradient", &gradient.derivative)]) {
        let assumed = estimate(program, if seed.is_multiple_of(2) { 500 } else { 6 });
        let mut subject: Option<Subject> = None;
        for trial in 0..3 {
            let given = given(&resolved.program, seed, trial);
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

fn given(program: &Program, seed: u64, trial: usize) -> Vec<(String, i64)> {
    let number = |name: &str| noise::at(seed, name, trial) as i64 & 0xffff;
    let size = |name: &str| if trial == 2 { number(name) % 3 } else { 1 + number(name) % 9 };
    free(program).into_iter().map(|name| (name.clone(), size(&name))).collect()
}

fn data(seed: u64, name: &str, shape: Vec<usize>) -> Array {
    let count = shape.iter().product();
    Array::new(shape, (0..count).map(|place| noise::value(seed, seed.is_multiple_of(3), name, place)).collect())
}

fn elements(inputs: &Arrays) -> usize {
    inputs.values().map(|array| array.data.len()).sum()
}

/// Whether rounding could decide what the result is, or an infinity takes part in sums that may be arranged in another
/// way.
fn is_delicate(program: &Program, given: &[(String, i64)], inputs: &Arrays) -> bool {
    let text = gradix::print::print(program).unwrap();
    let ast = gradix::syntax::parse(&text).unwrap();
    let sizes: BTreeMap<String, i64> = given.iter().cloned().collect();
    let inputs: HashMap<String, Array> = inputs.clone();
    Scope::new(&ast, &sizes).violation(&ast).is_some() || {
        let tape = brute(&ast, &sizes, &inputs).tape;
        tape.delicate || tape.infinite
    }
}
