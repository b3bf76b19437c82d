//! The programs of `cases/derive` and their derivatives on the backends.

use crate::case_files::{files, read};
use crate::common::*;
use gradix::Resolved;
use gradix_run::{Backend, Dtype};

#[test]
fn cases_on_the_virtual_machine_agree_with_the_oracle() {
    let how = (Backend::Vm, Compiling::Usual);
    let ran = programs().iter().filter(|(title, resolved)| check(title, resolved, how)).count();
    assert!(ran > 100, "{ran}");
}

#[test]
fn compiled_cases_agree_with_the_oracle() {
    if has_native() {
        let programs = programs();
        let some = programs.iter().step_by(programs.len().div_ceil(30));
        some.for_each(|(title, resolved)| assert!(check(title, resolved, (Backend::Native, Compiling::Quick))));
    }
}

/// Those that can be derived.
pub fn programs() -> Vec<(String, Resolved)> {
    let cases = files("derive").into_iter().flat_map(|path| read(&path));
    let derived = cases.filter(|case| case.sections.iter().any(|(name, _)| name.starts_with("derive")));
    derived.map(|case| (case.title.clone(), resolve(&case.source))).collect()
}

/// At the smallest sizes and at larger ones, with inputs from two intervals; whether there is anything to run.
pub fn check(title: &str, resolved: &Resolved, how: (Backend, Compiling)) -> bool {
    let program = &resolved.program;
    let Ok(gradient) = gradix::derive(program, &Default::default()) else { return false };
    let small = smallest(resolved);
    let larger = small.iter().map(|(name, size)| (name.clone(), 3 * size + 1)).collect();
    for (what, program) in [("value", program), ("gradient", &gradient.program)] {
        let mut subject =
            Subject::new(&format!("{title}, {what}"), program, &estimate(program, 500), Dtype::F64, how, 2);
        let mut runs = 0;
        for given in [&small, &larger] {
            let Some(sizes) = sized(program, given) else { continue };
            for shift in [0.0, 1.25] {
                let mut inputs = inputs(program, &sizes);
                inputs.values_mut().flat_map(|array| array.data.iter_mut()).for_each(|value| *value += shift);
                subject.agrees(&sizes, &inputs, &oracle(program, &sizes, &inputs), 1e-11);
                runs += 1;
            }
        }
        assert!(runs > 0, "{title}, {what} was not run");
    }
    true
}
