//! Random programs and their gradients, held to the oracle.
//!
//! `GRADIX_SEED` sets the first seed and `GRADIX_COUNT` how many programs there are. A failure shows the program made as small
//! as was easy.

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
    let mut compared = 0;
    for seed in first..first + count {
        let text = generate(seed);
        match guarded(&text, seed, backend) {
            Ok(runs) => compared += usize::from(runs > 0),
            Err(_) => failures.push(smallest(&text, seed, backend)),
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n\n"));
    assert!(compared * 10 >= count as usize * 6, "only {compared} programs ran");
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn smallest(text: &str, seed: u64, backend: Backend) -> String {
    let ast = gradix::syntax::parse(text).expect("parsed before");
    let small = shrink(&ast, 200, &|text| guarded(text, seed, backend).is_err());
    let why = guarded(&small, seed, backend).err().unwrap_or_default();
    format!("---- seed {seed}:\n{small}\n{why}")
}

/// How many runs were compared. A panic is a failure like others.
fn guarded(text: &str, seed: u64, backend: Backend) -> Result<usize, String> {
    catch_unwind(AssertUnwindSafe(|| runs(text, seed, backend))).map_err(|payload| {
        let message = payload.downcast_ref::<String>().cloned();
        message.or_else(|| payload.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default()
    })
}

/// Programs that are refused, or can't have sizes of this kind, are no concern of this test.
fn runs(text: &str, seed: u64, backend: Backend) -> usize {
    let Ok(resolved) = gradix::syntax::parse(text).and_then(|ast| gradix::resolve(&ast, &[])) else { return 0 };
    let Ok(gradient) = Gradient::new(&resolved.program, None, None) else { return 0 };
    let sizes = [0, 1, 2].map(|trial| given(&resolved.program, seed, trial));
    let runs = [("value", &resolved.program), ("gradient", &gradient.derivative)].map(|(what, program)| {
        let assumed = estimate(program, if seed.is_multiple_of(2) { 500 } else { 6 });
        // Compiling the value too would take as long again.
        if backend == Backend::Native && what == "value" {
            return 0;
        }
        let how = (backend, Compiling::Quick);
        let mut subject: Option<Subject> = None;
        let mut runs = 0;
        for given in &sizes {
            let Some(sizes) = sized(program, given) else { continue };
            let inputs = filled(program, &sizes, |name, shape| data(seed, name, shape));
            if elements(&inputs) > 3000 || is_delicate(program, given, &inputs) {
                continue;
            }
            let expected = oracle(program, &sizes, &inputs);
            let subject = subject.get_or_insert_with(|| Subject::new(what, program, &assumed, Dtype::F64, how, 2));
            subject.agrees(&sizes, &inputs, &expected, 1e-9);
            runs += 1;
        }
        runs
    });
    runs.iter().sum()
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

/// Whether rounding could decide what the result is, or an infinity takes part in sums that may be arranged in another way.
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
