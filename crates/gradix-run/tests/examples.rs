//! Every program in `examples/`: its values, its derivatives of first and second order, and the work that they take.
//!
//! `data/examples.txt` has, for every example, the shapes of its inputs and the values of its results. The inputs are
//! computed by [`element`] on both sides. The values were written by `data/examples.py`, which calls
//! `examples/reference.py`: NumPy code that knows nothing of gradix.

use gradix::derive::{Mode, Options};
use gradix::domain::sizes::{Known, bind, choose};
use gradix::program::Places;
use gradix::program::{ParamKind, Program};
use gradix::{Int, Resolved};
use gradix_run::check::{Settings, check};
use gradix_run::{Array, Dtype, Outcome, confirm, gradient, interp, random};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// One example with what is expected of it.
#[derive(Default)]
struct Expected {
    inputs: Vec<(String, Vec<usize>)>,
    results: Vec<(String, Array)>,
}

impl Expected {
    /// The sizes that the shapes of the inputs tell: small ones, so that every element can be moved.
    fn sizes(&self, name: &str, Resolved { program, places }: &Resolved) -> Vec<Int> {
        let shapes = self.inputs.iter().map(|(input, shape)| (program.tensor(input).unwrap(), shape.clone())).collect();
        let sizes = bind(program, &Known { given: Vec::new(), shapes }, places);
        sizes.unwrap_or_else(|errors| panic!("{name}: {errors:?}"))
    }
}

#[test]
fn values_agree_with_the_reference() {
    for (name, expected) in expectations() {
        let resolved = example(&name);
        let sizes = expected.sizes(&name, &resolved);
        let numbered = expected.inputs.iter().zip(1..).map(|((input, shape), number)| {
            let data = (0..shape.iter().product()).map(|position| element(number, position)).collect();
            (input.clone(), Array::new(shape.clone(), data))
        });
        let results = run(&name, &resolved.program, &sizes, &numbered.collect()).results;
        assert_eq!(results.len(), expected.results.len(), "{name}");
        for (result, wanted) in &expected.results {
            let (_, array) = results.iter().find(|(known, _)| known == result).unwrap();
            assert_eq!(array.shape, wanted.shape, "{name}: {result}");
            for (a, b) in array.data.iter().zip(&wanted.data) {
                assert!((a - b).abs() <= 1e-10 * (1.0 + b.abs()), "{name}: {result} is {a} and should be {b}");
            }
        }
    }
}

/// The element at a (row-major) position, from 0, of an example's input with this number, from 1.
fn element(number: usize, position: usize) -> f64 {
    (12.9898 * (position + 1) as f64 + 78.233 * number as f64).sin()
}

#[test]
fn every_example_is_expected_and_every_input_listed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let programs = files.filter(|path| path.extension().is_some_and(|extension| extension == "gx"));
    let names: BTreeSet<String> = programs.map(|path| path.file_stem().unwrap().to_string_lossy().into()).collect();
    assert_eq!(names, expectations().keys().cloned().collect());
    for (name, expected) in expectations() {
        let program = example(&name).program;
        let inputs: Vec<String> = program.inputs().map(|id| program[id].name.clone()).collect();
        assert_eq!(inputs, expected.inputs.iter().map(|(input, _)| input.clone()).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn gradients_agree_with_differences_of_the_values() {
    for (name, expected) in expectations() {
        let resolved = example(&name);
        differentiate(&name, &resolved.program, &expected.sizes(&name, &resolved));
    }
}

#[test]
fn second_derivatives_agree_with_differences_of_the_gradients() {
    for (name, expected) in expectations() {
        let resolved = example(&name);
        let gradient = gradix::derive(&resolved.program, &Default::default()).unwrap();
        let sizes = gradient::carried(&resolved.program, &expected.sizes(&name, &resolved), &gradient.program).unwrap();
        differentiate(&name, &gradient.program, &sizes);
    }
}

#[test]
fn derivatives_of_every_mode_are_confirmed_by_enumeration() {
    for name in expectations().keys() {
        let program = example(name).program;
        let scalar = program.outputs.iter().all(|f| program[*f].rank == 0);
        for mode in [Mode::Reverse, Mode::Forward, Mode::Jacobian, Mode::Hessian] {
            if mode != Mode::Hessian || scalar {
                confirmed(name, &program, mode);
            }
        }
        let gradient = confirmed(name, &program, Mode::Reverse);
        confirmed(name, &gradient, Mode::Reverse);
    }
}

fn confirmed(name: &str, program: &Program, mode: Mode) -> Program {
    let options = Options { mode, ..Options::default() };
    let derivative = gradix::derive(program, &options).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
    let confirmed = confirm(program, &derivative, &options)
        .unwrap_or_else(|mismatch| panic!("{}", mismatch.report(name, &options, &[], &derivative.program)));
    assert!(confirmed.sizes.len() >= 3 && confirmed.doubtful == 0, "{name}, {mode:?}: {confirmed}");
    derivative.program
}

fn differentiate(name: &str, program: &Program, sizes: &[Int]) {
    let gradient = gradix::derive(program, &Default::default()).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
    let report = check(program, &gradient, sizes, Settings::default(), &|_, _| {});
    for comparison in report.unwrap_or_else(|errors| panic!("{name}: {errors:?}")).comparisons {
        assert!(comparison.passed && !comparison.is_doubtful(), "{name}: {comparison:?}");
    }
}

/// The gradient takes at most this many times the work of the function.
///
/// The work is the number of operations on values. To that of the function the number of its inputs' elements is
/// added: a derivative has as many elements as its input, whatever the function reads of it.
const WORK: u64 = 6;

#[test]
fn a_gradient_takes_a_small_multiple_of_the_work_of_its_function() {
    let mut wrong = Vec::new();
    for name in expectations().keys() {
        let resolved = example(name);
        let program = &resolved.program;
        let gradient = gradix::derive(program, &Default::default()).unwrap();
        let (sizes, function) = large(name, &resolved);
        let derivative = &gradient.program;
        let own = gradient::carried(program, &sizes, derivative).unwrap();
        let work = run(name, derivative, &own, &inputs(derivative, &own)).operations;
        let elements: usize = inputs(program, &sizes).values().map(|array| array.data.len()).sum();
        if work > WORK * (function + elements as u64) {
            wrong.push(format!("{name}: {work} operations after {function} on {elements} elements, sizes {sizes:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Sizes three times as large as the smallest where these are allowed and not much work, else twice or once;
/// and the operations of the function.
fn large(name: &str, Resolved { program, places }: &Resolved) -> (Vec<Int>, u64) {
    let smallest = choose(program, &Known::default(), places).unwrap();
    let work = |sizes: &[Int]| run(name, program, sizes, &inputs(program, sizes)).operations;
    let mut best = (smallest.clone(), work(&smallest));
    for factor in [2, 3] {
        if let Some(sizes) = scaled(program, places, &smallest, factor).filter(|_| best.1 < MODERATE) {
            best = (sizes.clone(), work(&sizes));
        }
    }
    best
}

/// Above this many operations the sizes are not increased further.
const MODERATE: u64 = 20_000;

fn scaled(program: &Program, places: &Places, sizes: &[Int], factor: i64) -> Option<Vec<Int>> {
    let free = program.params.iter().zip(sizes).filter(|(param, _)| param.kind == ParamKind::Free);
    let given = free.map(|(param, size)| (param.name.clone(), size * Int::from(factor))).collect();
    bind(program, &Known { given, shapes: Vec::new() }, places).ok()
}

fn inputs(program: &Program, sizes: &[Int]) -> HashMap<String, Array> {
    let array = |id| random::array(0, &program[id].name, gradient::shape(program, sizes, id).unwrap()).unwrap();
    program.inputs().map(|id| (program[id].name.clone(), array(id))).collect()
}

fn run(name: &str, program: &Program, sizes: &[Int], inputs: &HashMap<String, Array>) -> Outcome {
    interp(program, sizes, inputs, Dtype::F64).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn example(name: &str) -> Resolved {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name).with_extension("gx");
    let text = std::fs::read_to_string(path).unwrap();
    let resolved = gradix::syntax::parse(&text).and_then(|ast| gradix::resolve(&ast, &[]));
    resolved.unwrap_or_else(|errors| panic!("{name}: {errors:?}"))
}

/// Reads `data/examples.txt`: a name, then its inputs and results with their shapes, each result with its values.
fn expectations() -> BTreeMap<String, Expected> {
    let mut examples: BTreeMap<String, Expected> = BTreeMap::new();
    let mut name = "";
    let mut lines = include_str!("data/examples.txt").lines().filter(|line| !line.starts_with('#'));
    while let Some(line) = lines.next() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let shape = || words[2..].iter().map(|extent| extent.parse().unwrap()).collect::<Vec<usize>>();
        match words[0] {
            "input" => examples.get_mut(name).unwrap().inputs.push((words[1].into(), shape())),
            "result" => {
                let values = lines.next().unwrap().split_whitespace().map(|value| value.parse().unwrap()).collect();
                examples.get_mut(name).unwrap().results.push((words[1].into(), Array::new(shape(), values)));
            }
            _ => {
                name = words[0];
                examples.insert(name.into(), Expected::default());
            }
        }
    }
    examples
}
