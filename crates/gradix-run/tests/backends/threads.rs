//! Results don't depend on the number of threads, nor on the run: to the last bit, at sizes with several items of work
//! and several tiles.

use crate::common::*;
use gradix_run::Dtype;

type Program = (&'static str, &'static str, &'static [(&'static str, i64)]);

const PROGRAMS: &[Program] = &[
    (
        "sums of everything",
        "input x[N, M]\ns = sum[i, j] sin(x[i, j])\nl = sum[i, j] exp(x[i, j]^2)\nm = max[i, j] x[i, j]",
        &[("N", 200), ("M", 170)],
    ),
    ("a long sum", "input x[N], y[N]\ns = sum[i] x[i] * y[i]", &[("N", 100_000)]),
    (
        "a stencil of a stencil",
        "input u[H, W]
v[i in 0..H, j in 0..W] = pad(u[i - 1, j], 0) + pad(u[i + 1, j], 0) + pad(u[i, j - 1], 0) + u[i, j]^2
w[i in 0..H, j in 0..W] = pad(v[i - 1, j], 0) * pad(v[i + 1, j], 1) + pad(v[i, j + 2], 0) - v[i, j]",
        &[("H", 600), ("W", 260)],
    ),
    ("a product", "input a[N, K], b[K, M]\nc[i, j] = sum[k] a[i, k] * b[k, j]", &[("N", 30), ("K", 270), ("M", 400)]),
    (
        "attention",
        "param S >= 1, D >= 1
input q[T, D], k[S, D], v[S, E]
s[i, j] = (sum[d] q[i, d] * k[j, d]) / sqrt(D)
m[i] = max[j] s[i, j]
e[i, j] = exp(s[i, j] - m[i])
z[i] = sum[j] e[i, j]
y[i, c] = (sum[j] e[i, j] * v[j, c]) / z[i]",
        &[("T", 130), ("S", 100), ("D", 64), ("E", 40)],
    ),
    (
        "a kernel of distances",
        "input x[N, D], z[M, D], w[M]\nk[i, j] = exp(-sum[d] (x[i, d] - z[j, d])^2)\ny[i] = sum[j] k[i, j] * w[j]",
        &[("N", 150), ("M", 140), ("D", 20)],
    ),
    (
        "a convolution with a stride",
        "param H >= 3, W >= 3\ninput x[C, H, W], w[O, C, 3, 3]
y[o, i, j] = sum[c, p, q] x[c, 2*i + p, 2*j + q] * w[o, c, p, q]",
        &[("C", 5), ("H", 81), ("W", 66), ("O", 9)],
    ),
    (
        "triangular sums",
        "input x[N], h[N]\ny[t in 0..N] = sum[s in 0..=t] h[t - s] * x[s]\nl = sum[t] y[t]^2",
        &[("N", 500)],
    ),
    (
        "norms over columns",
        "param N >= 2, C >= 1\ninput x[N, C], g[C]
mean[c] = (sum[n] x[n, c]) / N
var[c] = (sum[n] (x[n, c] - mean[c])^2) / N
y[n, c] = g[c] * (x[n, c] - mean[c]) / sqrt(var[c] + 0.01)",
        &[("N", 600), ("C", 130)],
    ),
];

#[test]
fn results_are_the_same_for_all_numbers_of_threads() {
    PROGRAMS.iter().step_by(2).for_each(|program| check(program, Dtype::F64, 1e-11));
}

#[test]
fn more_results_are_the_same_for_all_numbers_of_threads() {
    PROGRAMS.iter().skip(1).step_by(2).for_each(|program| check(program, Dtype::F64, 1e-11));
}

#[test]
fn results_in_single_precision_are_the_same_for_all_numbers_of_threads() {
    PROGRAMS[..4].iter().for_each(|program| check(program, Dtype::F32, 2e-4));
}

fn check(&(name, text, given): &Program, dtype: Dtype, tolerance: f64) {
    let program = resolve(text).program;
    let derivative = gradix::derive(&program, &Default::default()).unwrap().program;
    let given: Vec<(String, i64)> = given.iter().map(|(name, size)| (name.to_string(), *size)).collect();
    for (what, program) in [("value", &program), ("gradient", &derivative)] {
        let name = format!("{name}, {what}");
        let sizes = sized(program, &given).unwrap();
        let nest = gradix::compile(program, &sizes, gradix::nest::Real::F64, &gradix::target::AVX512).unwrap().nest;
        let own = sizes_of(&nest, &sizes);
        let items = nest.kernels.iter().filter_map(|kernel| nest.items(kernel, &own)).max();
        assert!(items.is_some_and(|items| items >= 3), "{name}: {items:?} items of work test nothing");
        let inputs = single_inputs(program, &sizes);
        let expected = oracle(program, &sizes, &inputs);
        for &backend in backends() {
            let how = (backend, Compiling::Usual);
            let mut alone = Subject::new(&name, program, &sizes, dtype, how, 1);
            alone.agrees(&sizes, &inputs, &expected, tolerance);
            let first = alone.run(&sizes, &inputs);
            for threads in [1, 2, 3, 7] {
                let mut subject = Subject::new(&name, program, &sizes, dtype, how, threads);
                (0..3).for_each(|_| same(&subject.name.clone(), &subject.run(&sizes, &inputs), &first));
            }
        }
    }
}

fn same(name: &str, results: &Results, first: &Results) {
    for ((result, a), (_, b)) in results.iter().zip(first) {
        let same = a.data.iter().zip(&b.data).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same, "{name}: {result} is not that of the first run on one thread");
    }
}
