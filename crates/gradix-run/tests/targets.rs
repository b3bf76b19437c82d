//! Code that was made for one machine gives the right numbers there, and on every other one.
//!
//! Each preset's code is compiled with the options of those machines that this one can play, and run by the virtual
//! machine; the oracle tells what is right.

#[path = "support/trial.rs"]
mod trial;

use gradix::derive::Options;
use gradix::domain::sizes::{Known, bind};
use gradix::nest::verify::Verified;
use gradix::program::Program;
use gradix::{Int, Target};
use gradix_run::machine::Machine;
use gradix_run::native::{Compiler, Settings};
use gradix_run::{Dtype, host};
use trial::Trial;

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
        let given = given.iter().map(|(name, size)| (name.to_string(), Int::from(*size))).collect();
        let sizes = bind(&derivative, &Known { given, shapes: Vec::new() }, &Default::default()).unwrap();
        let trial = Trial::<f64>::new(&derivative, sizes.clone());
        for target in Target::PRESETS {
            let nest = gradix::compile(&derivative, &sizes, Dtype::F64.real(), &target).unwrap().nest;
            let mut vm = Machine::vm(&derivative, nest.clone(), Dtype::F64).unwrap();
            trial.agrees(&mut vm, 1e-12, &format!("{name} for {}, vm", target.name));
            if let Some(options) = played(&target)
                && let Some(mut machine) = native(&derivative, nest, options)
            {
                trial.agrees(&mut machine, 1e-12, &format!("{name} for {}, {options:?}", target.name));
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
