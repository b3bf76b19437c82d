//! Every program in `examples/` and its gradient, prepared for large sizes and run at small ones, where tiles and
//! vectors have odd ends or nothing to do.

use crate::common::*;
pub use crate::support::programs::examples;
use gradix::Resolved;
use gradix::program::Program;
use gradix_run::{Backend, Dtype};

/// The sizes that executables are prepared for.
pub const ASSUMED: i64 = 500;
/// Sizes for which plain loops are made.
const FEW: i64 = 4;
/// The fewest sizes at which each program must run, besides odd ones.
const SAME: [i64; 5] = [1, 2, 3, 7, 0];

#[test]
fn examples_on_the_virtual_machine_agree_with_the_oracle() {
    for (name, text) in examples() {
        check(&name, &text, ASSUMED, Dtype::F64, (Backend::Vm, Compiling::Usual), 1e-11);
    }
}

#[test]
fn examples_in_single_precision_on_the_virtual_machine_are_near_the_oracle() {
    for (name, text) in examples() {
        check(&name, &text, ASSUMED, Dtype::F32, (Backend::Vm, Compiling::Usual), 2e-4);
    }
}

#[test]
fn compiled_examples_in_single_precision_are_near_the_oracle() {
    compiled(0);
}

#[test]
fn more_compiled_examples_in_single_precision_are_near_the_oracle() {
    compiled(1);
}

/// Every second example: compiling takes the time, and two tests do it at once.
fn compiled(first: usize) {
    if has_native() {
        for (name, text) in examples().into_iter().skip(first).step_by(2) {
            check(&name, &text, ASSUMED, Dtype::F32, (Backend::Native, Compiling::Quick), 2e-4);
        }
    }
}

#[test]
fn examples_that_are_prepared_for_small_sizes_agree_with_the_oracle() {
    for (name, text) in examples() {
        check(&name, &text, FEW, Dtype::F64, (Backend::Vm, Compiling::Usual), 1e-11);
        if has_native() {
            check(&name, &text, FEW, Dtype::F64, (Backend::Native, Compiling::Usual), 1e-11);
        }
    }
}

pub fn check(name: &str, text: &str, assumed: i64, dtype: Dtype, how: (Backend, Compiling), tolerance: f64) {
    let resolved = resolve(text);
    let program = &resolved.program;
    let derivative = gradix::derive(program, &Default::default()).unwrap().program;
    for (what, program) in [("value", program), ("gradient", &derivative)] {
        let assumed = estimate(program, assumed);
        let mut subject = Subject::new(&format!("{name}, {what}"), program, &assumed, dtype, how, 2);
        let runs = sizes(&resolved).into_iter().filter(|given| compare(&mut subject, given, tolerance));
        assert!(runs.count() >= 2, "{name} can't run at the sizes that it is tested at");
    }
}

/// Whether the program can run at these sizes.
fn compare(subject: &mut Subject, given: &[(String, i64)], tolerance: f64) -> bool {
    let Some(sizes) = sized(subject.program, given) else { return false };
    let program: &Program = subject.program;
    let inputs = single_inputs(program, &sizes);
    subject.agrees(&sizes, &inputs, &oracle(program, &sizes, &inputs), tolerance);
    true
}

/// Odd sizes that are different from each other, sizes that are all the same, and those that were found to be allowed.
pub fn sizes(resolved: &Resolved) -> Vec<Vec<(String, i64)>> {
    let program = &resolved.program;
    let names = free(program);
    let base = match names.len() {
        0..=2 => 37,
        3 => 17,
        4 => 10,
        _ => 6,
    };
    let odd = names.iter().zip([4, 1, 6, 2, 5, 3].iter().cycle()).map(|(name, more)| (name.clone(), base + more));
    let mut all: Vec<Vec<(String, i64)>> = SAME.iter().map(|&size| all(program, size)).collect();
    all.extend([odd.collect(), smallest(resolved)]);
    all
}
