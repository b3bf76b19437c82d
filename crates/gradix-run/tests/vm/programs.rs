//! Whole programs, their values and their gradients, against the oracle.

use crate::machine::{run, sizes_of};
use crate::random::generate::generate;
use crate::random::recurrences::recurrences;
use crate::support::programs::examples;
use gradix::domain::sizes::{Known, bind, choose};
use gradix::nest::{Nest, Stage};
use gradix::program::{ParamKind, Program, circles};
use gradix::target::{AVX512, Target};
use gradix::{Int, Resolved};
use gradix_run::vm::Real;
use gradix_run::{Array, Dtype, gradient, interp, random};
use std::collections::HashMap;

#[test]
fn examples_agree_with_the_oracle() {
    for (name, text) in examples() {
        let resolved = gradix::syntax::parse(&text).and_then(|ast| gradix::resolve(&ast, &[])).unwrap();
        let gradient = gradix::derive(&resolved.program, &Default::default()).unwrap();
        for sizes in [smallest(&resolved), larger(&resolved)] {
            compare(&name, &resolved.program, &sizes);
            let own = gradient::carried(&resolved.program, &sizes, &gradient.program).unwrap();
            compare(&format!("gradient of {name}"), &gradient.program, &own);
        }
    }
}

/// Programs that refuse to be resolved or that have no small sizes are no concern of this test.
#[test]
fn random_programs_agree_with_the_oracle() {
    let mut compared = 0;
    for seed in 1..=150 {
        let text = generate(seed);
        let Ok(resolved) = gradix::syntax::parse(&text).and_then(|ast| gradix::resolve(&ast, &[])) else { continue };
        let Ok(sizes) = choose(&resolved.program, &Known::default(), &resolved.places) else { continue };
        compare(&format!("{text}\nseed {seed}"), &resolved.program, &sizes);
        compared += 1;
    }
    assert!(compared > 100, "{compared}");
}

/// A size at which items, vectors and diagonals are worth having.
const LONG: Option<i64> = Some(500);

/// Indices that no step reads across are shared out; two that are gone through in order are gone through along diagonals.
#[test]
fn recurrences_agree_with_the_oracle_with_items_and_diagonals() {
    let rows = "input a[N, T], x[N, T]; h[n in 0..N, t in 0..T] = a[n, t] * pad(h[n, t - 1], 0) + x[n, t]";
    let columns = "input a[T, N], x[T, N]; h[t in 0..T, n in 0..N] = a[t, n] * pad(h[t - 1, n], 0) + x[t, n]";
    let sums = "input a[N, T], x[N, T, K]
                h[n in 0..N, t in 0..T, k in 0..K] = x[n, t, k] + a[n, t] * (sum[j in 0..K] pad(h[n, t - 1, j], 0)) / K";
    let sweeps = "param K
                  input u0[N], f[N]
                  u[k in 0..=K, i in 0..N] = if k == 0 then u0[i] else 0.4 * sin(pad(u[k, i - 1], 0)) + 0.4 * pad(u[k - 1, i + 1], 1) * f[i]";
    let table = "input x[N, M]
                 s[i in 0..N, j in 0..M] =
                     x[i, j] + 0.3 * cos(pad(s[i - 1, j], 0)) + 0.3 * pad(s[i, j - 1], 0) - 0.2 * pad(s[i - 1, j - 1], 0)";
    let falling =
        "input x[N, M]; s[i in 0..N, j in 0..M] = x[i, j] + 0.5 * sin(pad(s[i + 1, j], 0)) * cos(pad(s[i, j - 1], 0))";
    let cases = [(rows, true, false), (columns, true, false), (sums, true, false), (sweeps, false, true)];
    let cases = [cases.as_slice(), &[(table, false, true), (falling, false, true)]].concat();
    for (text, items, diagonals) in cases {
        let resolved = gradix::syntax::parse(text).and_then(|ast| gradix::resolve(&ast, &[])).unwrap();
        let gradient = gradix::derive(&resolved.program, &Default::default()).unwrap();
        for size in [0, 1, 2, 5, 19] {
            for program in [&resolved.program, &gradient.program] {
                let free = program.params.iter().filter(|param| param.kind == ParamKind::Free);
                let given = free.map(|param| (param.name.clone(), Int::from(size))).collect();
                let sizes = bind(program, &Known { given, shapes: Vec::new() }, &Default::default()).unwrap();
                let assumed = vec![Int::from(500); sizes.len()];
                let target = Target { short_step_additions: i64::MAX, ..AVX512 };
                let nest = compare_on(text, program, &sizes, &assumed, &target);
                let several = nest.kernels.iter().any(|kernel| kernel.work.iter().any(|work| work.low != work.high));
                assert!(several || !items, "{text}");
                let waves = nest.buffers.iter().any(|buffer| buffer.name.ends_with("_wave"));
                assert_eq!(waves, diagonals, "{text}");
            }
        }
    }
}

/// Both ways to run a recurrence, whatever its steps cost.
#[test]
fn recurrences_agree_with_the_oracle_with_steps_inside_and_outside_of_kernels() {
    let mut texts: Vec<String> = (1..=60).map(recurrences).collect();
    let with_steps =
        ["cholesky", "gru", "heat_steps", "hmm", "leapfrog", "runge_kutta", "soft_dtw", "substitution", "tridiagonal"];
    let named = |(name, text): (String, String)| with_steps.contains(&name.as_str()).then_some(text);
    texts.extend(examples().into_iter().filter_map(named));
    assert_eq!(texts.len(), 60 + with_steps.len());
    for text in texts {
        let resolved = gradix::syntax::parse(&text).and_then(|ast| gradix::resolve(&ast, &[])).unwrap();
        let gradient = gradix::derive(&resolved.program, &Default::default()).unwrap();
        let sizes = choose(&resolved.program, &Known::default(), &resolved.places).unwrap();
        let own = gradient::carried(&resolved.program, &sizes, &gradient.program).unwrap();
        for (short_step_additions, inside, assumed) in
            [(-1, false, None), (i64::MAX, true, None), (i64::MAX, true, LONG)]
        {
            let target = Target { short_step_additions, ..AVX512 };
            for (program, sizes) in [(&resolved.program, &sizes), (&gradient.program, &own)] {
                let assumed = assumed.map_or(sizes.clone(), |size: i64| vec![Int::from(size); sizes.len()]);
                let nest = compare_on(&text, program, sizes, &assumed, &target);
                let outside = nest.stages.iter().any(|stage| matches!(stage, Stage::Time(_)));
                assert_eq!(outside, !inside && !circles::circles(program).is_empty(), "{text}");
            }
        }
    }
}

/// Sizes of 0, and reductions that are empty at some of their outputs; the terms then read what is not there.
#[test]
fn reductions_of_nothing_agree_with_the_oracle() {
    let texts = [
        "input x[N], z[N]
a = sum[j] x[2] * z[j]
b[i in 0..N + 4] = max[j in i..N] (x[i] + z[j])
c[i in 0..N + 4] = sum[j, i < N] sin(x[i] * z[j])
d[i in 0..N + 4] = prod[j in 0..=min(i, 1), i < N] (z[j] - x[i])
e[i in 0..2*N] = if i < N then max[j in i..N] x[i] * z[j] else 1",
        "input x[N], z[N, K], u[K, N]
a[i in 0..N] = max[j in 0..i] exp(x[j] * x[i])
b[i in 0..N] = sum[j in i + 3..N] x[i + 3] * x[j]
f[i] = max[k] z[i, k]
g[i] = sum[k] sin(z[i, k]) * z[i, 0]
h[i, j] = sum[k] z[i, k] * u[k, j]
m[i, j] = max[k] (z[i, k] + u[k, j])
o[i in 0..N] = min[k, k > i] z[i, k] * u[i, 0]
p = prod[i] x[i]",
    ];
    let mut compared = 0;
    for text in texts {
        let Resolved { program, .. } = gradix::syntax::parse(text).and_then(|ast| gradix::resolve(&ast, &[])).unwrap();
        let derivative = gradix::derive(&program, &Default::default()).unwrap().program;
        for program in [&program, &derivative] {
            for (n, k) in [(0, 0), (0, 5), (5, 0), (3, 1), (9, 40), (40, 9)] {
                let given = [("N", n), ("K", k)].map(|(name, size)| (name.to_string(), Int::from(size)));
                let known = given.into_iter().filter(|(name, _)| program.params.iter().any(|p| p.name == *name));
                let known = Known { given: known.collect(), shapes: Vec::new() };
                let Ok(sizes) = bind(program, &known, &Default::default()) else { continue };
                compare(text, program, &sizes);
                compared += 1;
            }
        }
    }
    assert!(compared > 15, "{compared}");
}

fn smallest(Resolved { program, places }: &Resolved) -> Vec<Int> {
    choose(program, &Known::default(), places).unwrap()
}

/// Twice as large, where that is allowed and little work.
fn larger(resolved: &Resolved) -> Vec<Int> {
    let Resolved { program, places } = resolved;
    let smallest = smallest(resolved);
    let free = program.params.iter().zip(&smallest).filter(|(p, _)| p.kind == ParamKind::Free);
    let given = free.map(|(param, size)| (param.name.clone(), size * Int::from(2))).collect();
    bind(program, &Known { given, shapes: Vec::new() }, places).unwrap_or(smallest)
}

/// In plain loops, as small sizes are lowered, and like large ones.
pub fn compare(name: &str, program: &Program, sizes: &[Int]) {
    compare_as(name, program, sizes, sizes);
    compare_as(name, program, sizes, &vec![Int::from(500); sizes.len()]);
}

/// Lowered for sizes that are like the estimate.
fn compare_as(name: &str, program: &Program, sizes: &[Int], estimate: &[Int]) {
    compare_on(name, program, sizes, estimate, &AVX512);
}

/// The same for a machine; gives what was run.
fn compare_on(name: &str, program: &Program, sizes: &[Int], estimate: &[Int], target: &Target) -> Nest {
    let array = |id| random::array(0, &program[id].name, gradient::shape(program, sizes, id).unwrap()).unwrap();
    let inputs: HashMap<String, Array> = program.inputs().map(|id| (program[id].name.clone(), array(id))).collect();
    let expected = interp(program, sizes, &inputs, Dtype::F64).unwrap().results;
    let nest = gradix::compile(program, estimate, gradix::nest::Real::F64, target).unwrap().nest;
    let own = sizes_of(&nest, sizes);
    let data = inputs.into_iter().map(|(name, array)| (name, array.data)).collect();
    let exact = run::<f64>(&nest, &own, &data, 1);
    check(name, &nest, &expected, &exact, 1e-12);
    let shared = run::<f64>(&nest, &own, &data, 3);
    for (tensor, _) in &expected {
        let same = exact[tensor].iter().zip(&shared[tensor]).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same, "{name}: {tensor} depends on the number of threads");
    }
    check(name, &nest, &expected, &run::<f32>(&nest, &own, &data, 1), 1e-4);
    nest.into_nest()
}

fn check<T: Real>(
    name: &str,
    nest: &gradix::nest::Nest,
    expected: &[(String, Array)],
    found: &HashMap<String, Vec<T>>,
    tolerance: f64,
) {
    for (tensor, wanted) in expected {
        let values = &found[tensor];
        assert_eq!(values.len(), wanted.data.len(), "{name}: {tensor}");
        let scale = wanted.data.iter().filter(|v| v.is_finite()).fold(1.0, |scale, v| f64::max(scale, v.abs()));
        for (position, (a, b)) in values.iter().zip(&wanted.data).enumerate() {
            let a = a.wide();
            let fine = a == *b || (a - b).abs() <= tolerance * scale || (a.is_nan() && b.is_nan());
            let shown = gradix::nest::print(nest);
            assert!(fine, "{name}: {tensor} is {a} at {position} and should be {b}\n{shown}");
        }
    }
}
