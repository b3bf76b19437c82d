//! Code that was made for one machine gives the right numbers there, and on every other one.
//!
//! Each preset's code is compiled with the options of those machines that this one can play, and run by the virtual
//! machine; the oracle tells what is right.

#![allow(unsafe_code, reason = "kernels take raw pointers")]

use gradix::derive::Options;
use gradix::domain::sizes::{Known, bind};
use gradix::nest::verify::Verified;
use gradix::program::Program;
use gradix::{Int, Target};
use gradix_run::gradient::shape;
use gradix_run::machine::Machine;
use gradix_run::native::{Compiler, Settings};
use gradix_run::{Array, Dtype, host, interp, random};
use std::collections::HashMap;

type Sizes = &'static [(&'static str, i64)];

/// A name, a program and its sizes: with blocks and register tiles, residue classes, sums in parts, lanes over sums, rings.
const PROGRAMS: [(&str, &str, Sizes); 5] = [
    (
        "dense",
        "input W[O, I], x[N, I], b[O]\ny[n, o] = tanh(sum[i] W[o, i] * x[n, i] + b[o])",
        &[("N", 27), ("I", 70), ("O", 211)],
    ),
    (
        "strided",
        "param N, O, C, K, T\ninput w[O, C, K], x[N, C, 2*T + K]\n\
         y[n, o, t in 0..T] = sum[c, k] w[o, c, k] * x[n, c, 2*t + k]",
        &[("N", 2), ("O", 9), ("C", 5), ("K", 3), ("T", 90)],
    ),
    ("columns", "input x[N, M], w[N]\ny[j] = sum[i] w[i] * x[i, j]^2", &[("N", 333), ("M", 5)]),
    ("pairs", "input a[N, K], b[M, K]\ny[i, j] = sum[k] a[i, k] * b[j, k]", &[("N", 21), ("M", 8), ("K", 600)]),
    (
        "stencil",
        "param N >= 3, M >= 3\ninput u[N, M]\nv[i, j in 0..M - 2] = exp(u[i, j]) * u[i, j + 2]\n\
         w[i in 0..N - 2, j in 0..M - 2] = v[i, j] * v[i + 2, j] + v[i + 1, j]",
        &[("N", 61), ("M", 150)],
    ),
];

#[test]
fn code_for_every_machine_gives_the_numbers_of_the_oracle() {
    for (name, text, given) in PROGRAMS {
        let program = gradix::syntax::parse(text).and_then(|ast| gradix::resolve(&ast, &[])).unwrap().program;
        let options = Options { with_results: true, ..Options::default() };
        let derivative = gradix::derive(&program, &options).unwrap().program;
        let subject = Subject::new(&derivative, given);
        for target in Target::PRESETS {
            let nest = gradix::compile(&derivative, &subject.sizes, Dtype::F64.real(), &target).unwrap().nest;
            let vm = Machine::vm(&derivative, nest.clone(), Dtype::F64).unwrap();
            subject.agrees(vm, &format!("{name} for {}, vm", target.name));
            if let Some(options) = played(&target)
                && let Some(machine) = native(&derivative, nest, options)
            {
                subject.agrees(machine, &format!("{name} for {}, {options:?}", target.name));
            }
        }
    }
}

/// Options that make of this machine the one that code was made for, where it can be: with fewer instructions than it has.
fn played(target: &Target) -> Option<&'static [&'static str]> {
    let is_x86 = cfg!(target_arch = "x86_64");
    match target.name {
        name if name == host().name => Some(&[]),
        "avx2" if is_x86 && host().name == "avx512" => Some(&["-mno-avx512f"]),
        "portable" if is_x86 => Some(&["-mno-avx"]),
        _ => None,
    }
}

fn native(program: &Program, nest: Verified, options: &[&str]) -> Option<Machine> {
    let settings = Settings { cache: None, ..Settings::from_environment() };
    let mut compiler: Compiler = settings.compiler().ok()?;
    compiler.arguments.extend(options.iter().map(Into::into));
    let made = Machine::native(program, nest, Dtype::F64, &compiler, &settings);
    Some(made.unwrap_or_else(|note| panic!("{options:?}: {}", note.message)).0)
}

/// A program at some sizes, with arguments and what is expected of it.
struct Subject {
    sizes: Vec<Int>,
    inputs: Vec<Array>,
    expected: Vec<(String, Array)>,
}

impl Subject {
    fn new(program: &Program, given: &[(&str, i64)]) -> Subject {
        let given = given.iter().map(|(name, size)| (name.to_string(), Int::from(*size))).collect();
        let sizes = bind(program, &Known { given, shapes: Vec::new() }, &Default::default()).unwrap();
        let array = |id| {
            let name = &program[id].name;
            (name.clone(), random::array(7, name, shape(program, &sizes, id).unwrap()).unwrap())
        };
        let named: Vec<(String, Array)> = program.inputs().map(array).collect();
        let inputs: HashMap<String, Array> = named.iter().cloned().collect();
        let expected = interp(program, &sizes, &inputs, Dtype::F64).unwrap().results;
        Subject { sizes, inputs: named.into_iter().map(|(_, array)| array).collect(), expected }
    }

    /// Runs on two threads, and compares every element.
    fn agrees(&self, mut machine: Machine, what: &str) {
        machine.prepare(&self.sizes, 2).unwrap_or_else(|note| panic!("{what}: {}", note.message));
        let inputs: Vec<*const f64> = self.inputs.iter().map(|array| array.data.as_ptr()).collect();
        let mut results: Vec<Vec<f64>> = self.expected.iter().map(|(_, a)| vec![f64::NAN; a.data.len()]).collect();
        let outputs: Vec<*mut f64> = results.iter_mut().map(|result| result.as_mut_ptr()).collect();
        // SAFETY: the arrays have the shapes of the program at these sizes, and don't overlap.
        unsafe { machine.run(&self.sizes, &inputs, &outputs, 2) };
        for ((name, expected), result) in self.expected.iter().zip(&results) {
            let scale = expected.data.iter().fold(1.0, |most: f64, value| most.max(value.abs()));
            let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * scale;
            assert!(result.iter().zip(&expected.data).all(is_close), "{what}: {name} is not that of the oracle");
        }
    }
}
