//! Every program in `examples/` and every case of `simplify` and `economise`, with its derivative: the cheaper program has
//! the same values, takes no more operations, prints as what it is and does not become cheaper again.

#[path = "support/programs.rs"]
mod programs;

use gradix::derive::Options;
use gradix::domain::sizes::{Known, bind, choose};
use gradix::program::Places;
use gradix::program::print;
use gradix::program::{ParamKind, Program, verify};
use gradix::{Int, Resolved, derive, economise, resolve, syntax};
use gradix_run::{Array, Dtype, Outcome, gradient, interp, random};
use std::collections::HashMap;

#[test]
fn examples_become_cheaper_and_keep_their_values() {
    for (name, text) in programs::examples() {
        check(&name, &text);
    }
}

#[test]
fn cases_become_cheaper_and_keep_their_values() {
    for folder in ["../gradix/tests/cases/simplify", "../gradix/tests/cases/economise"] {
        for path in programs::files(folder) {
            let text = std::fs::read_to_string(&path).unwrap();
            for case in text.split("==== ").filter(|case| !case.is_empty()) {
                let (title, rest) = case.split_once('\n').unwrap();
                check(title, rest.split("---- ").next().unwrap());
            }
        }
    }
}

fn check(name: &str, text: &str) {
    let resolved = syntax::parse(text).and_then(|ast| resolve(&ast, &[]));
    let Resolved { program, places } = resolved.unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
    let options = Options { with_results: !program.has_inputs(), ..Options::default() };
    let derivative = derive(&program, &options).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
    let smallest = choose(&program, &Known::default(), &places).unwrap();
    for factor in [1, 2] {
        let free = program.params.iter().zip(&smallest).filter(|(param, _)| param.kind == ParamKind::Free);
        let given: Vec<(String, Int)> =
            free.map(|(param, size)| (param.name.clone(), size * Int::from(factor))).collect();
        for (what, program) in [("value", &program), ("derivative", &derivative.program)] {
            if let Some(sizes) = sized(program, &given) {
                compare(&format!("{name}, {what}"), program, &sizes, &given);
            }
        }
    }
}

fn sized(program: &Program, given: &[(String, Int)]) -> Option<Vec<Int>> {
    bind(program, &Known { given: given.to_vec(), shapes: Vec::new() }, &Places::default()).ok()
}

/// Both at the sizes that are then run, where operations are counted, and at others.
fn compare(name: &str, program: &Program, sizes: &[Int], given: &[(String, Int)]) {
    let numbers: Vec<f64> = sizes.iter().map(|size| size.to_f64().value()).collect();
    let before = run(name, program, sizes);
    // A `logsumexp` takes what its maximum and its sum take.
    let prepared = economise::prepared(program).unwrap_or_else(|error| panic!("{name}: {error}"));
    let most = before.operations.max(run(name, &prepared, sizes).operations);
    for (estimate, exact) in [(numbers, true), (vec![512.0; sizes.len()], false)] {
        let cheap = economised(name, program, &estimate);
        let own = sized(&cheap, given).unwrap_or_else(|| panic!("{name}: sizes no longer fit"));
        let after = run(name, &cheap, &own);
        let text = print::print(&cheap).unwrap();
        assert!(!exact || after.operations <= most, "{name}: more operations\n{text}");
        for ((result, a), (_, b)) in before.results.iter().zip(&after.results) {
            let scale = a.data.iter().filter(|v| v.is_finite()).fold(1e-300, |scale: f64, v| scale.max(v.abs()));
            assert_eq!(a.shape, b.shape, "{name}: {result}\n{text}");
            for (a, b) in a.data.iter().zip(&b.data) {
                let close = (a - b).abs() <= 1e-10 * scale || a == b || a.is_nan() && b.is_nan();
                assert!(close, "{name}: {result} is {b} and should be {a}\n{text}");
            }
        }
    }
}

/// The cheaper program, which is well formed.
fn economised(name: &str, program: &Program, estimate: &[f64]) -> Program {
    let cheap = economise(program, estimate).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(verify(&cheap), Ok(()), "{name}");
    let text = print::print(&cheap).unwrap();
    let again = resolve(&syntax::parse(&text).unwrap(), &[]);
    let again = again.unwrap_or_else(|errors| panic!("{name}: {errors:?}\n{text}")).program;
    assert!(again == cheap, "{name} prints as another program:\n{text}");
    let assumed: HashMap<&str, f64> =
        program.params.iter().map(|param| &*param.name).zip(estimate.iter().copied()).collect();
    let same: Vec<f64> =
        cheap.params.iter().map(|param| assumed.get(&*param.name).copied().unwrap_or(f64::NAN)).collect();
    let twice = print::print(&economise(&cheap, &same).unwrap()).unwrap();
    assert_eq!(text, twice, "{name} becomes cheaper again");
    cheap
}

fn run(name: &str, program: &Program, sizes: &[Int]) -> Outcome {
    let array = |id| random::array(0, &program[id].name, gradient::shape(program, sizes, id).unwrap()).unwrap();
    let inputs: HashMap<String, Array> = program.inputs().map(|id| (program[id].name.clone(), array(id))).collect();
    interp(program, sizes, &inputs, Dtype::F64).unwrap_or_else(|error| panic!("{name}: {error}"))
}
