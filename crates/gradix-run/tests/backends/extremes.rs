//! The derivative of a maximum goes to the terms that are equal to it: in other loops they have the same bits, or the
//! derivative is lost.

use crate::common::*;
use gradix::program::Program;
use gradix_run::{Array, Dtype, interp};

const PROGRAMS: &[&str] = &[
    "input x[N], u[N], v[M]\na[k] = max[i] (v[k] * x[i] + u[i])",
    "input x[N], u[N], v[M], z[M]\na[k] = max[i] (v[k] * x[i] + z[k] * u[i])",
    "input x[N], u[N], v[M]\na[k] = max[i] (v[k] + 2 * x[i] * u[i])",
    "input x[N], u[N], v[M]\nw[i] = x[i] * u[i]\na[k] = max[i] v[k] * w[i]",
    "input x[N], u[N], v[M]\nw[i] = x[i] * u[i] + 1\na[k] = min[i] (v[k] * w[i] - x[i])\nb[k] = v[k] * a[k]",
    "input x[N], u[N], v[M]\na[k] = max[i] (if i < k then v[k] * (x[i] * u[i]) else v[k] + x[i] * (2 * u[i]))",
    "input x[N], u[N], v[M]\na[k] = min[i] (v[k] * x[i] + u[i] - x[i] * x[i] * v[k] * 3)",
    "input x[N], u[N], v[M]\na[k] = max[i] exp(v[k] * x[i] + u[i]) / (1 + u[i]^2)",
    "input x[N], w[3], v[M]\na[i in 0..N] = max[p] (pad(x[i + p - 1], 0) * w[p] + 0.5)
b[k] = max[i] a[i] * v[k] * x[i]",
    "input x[N], u[N], v[M]\ny[k, i] = max(v[k] * x[i] + u[i], u[i] * v[k])\na[k] = max[i] relu(y[k, i] * x[i])",
    "input A[N, M], B[M, N]\nc[i, j] = max[k] (A[i, k] + B[k, j])",
    "input A[N, M], B[M, N], C[M]\nc[i, j] = max[k] (A[i, k] + B[k, j] * C[k])",
    "input A[N, M], B[M, N]\nc[i, j] = min[k] (A[i, k] - B[k, j])^2 / 3",
    "input x[2*N, 2*M]\ny[i in 0..N, j in 0..M] = max[p in 0..2, q in 0..2] x[2*i + p, 2*j + q]",
    "input x[N, M], w[3]\ny[i in 0..N, j] = max[p in 0..3, 0 <= i + p - 1 < N] (x[i + p - 1, j] * w[p] + w[0])",
    "input x[N, M]\ny[i in 0..N - 2, j in 0..M] = max[p in i..i + 3] (x[p, j]^2 - 3 * x[i, j])",
    "input x[N], u[N]\ny[i] = max[j in 0..=i] (x[i] * u[j] + x[j])\nz = max[j in 3..N] x[j] * u[j] * 2.5",
    "input x[N, M], u[M]\ns[i, j] = x[i, j] * u[j] * 0.3\nm[i] = max[j] s[i, j]
e[i, j] = exp(s[i, j] - m[i])\np[i, j] = e[i, j] / sum[k] e[i, k]",
    "input x[N, M], u[M]\nm[i] = max[j] (x[i, j] * u[j] + 0.1 * x[i, 0])
p[i, j] = exp(x[i, j] * u[j] + 0.1 * x[i, 0] - m[i])",
    "input x[N, 3], z[M, 3]\nd[i] = min[j] (sum[c] (x[i, c] - z[j, c])^2)\nf = max[i] sqrt(d[i])",
    "input x[N, 3], z[M, 3]\nd[i] = min[j] sqrt(sum[c] (x[i, c] - z[j, c])^2)\nf = max[i] d[i]",
    "input x[N], u[N], v[M]\na[k] = prod[i in 0..3] (v[k] * x[i] + u[i])",
    "input x[N], u[N]\nf = max[i] (x[i] * u[i] + 0.1)\nn = sum[i] (if x[i] * u[i] + 0.1 == f then x[i] else 0)",
    "input x[N, M], z[M, N]\na[k] = min[i] (sum[d] (x[i, d] - z[d, k])^2)\nb = max[k, i] (a[k] * x[i, 0] + a[i])",
];

/// Values that hardly ever tie.
fn random(program: &Program, sizes: &[gradix::Int]) -> Arrays {
    single_inputs(program, sizes)
}

/// Small integers: most values tie with others, and nothing is rounded.
fn integers(program: &Program, sizes: &[gradix::Int]) -> Arrays {
    filled(program, sizes, |name, shape| {
        let count = shape.iter().product();
        let value = |position: usize| ((position * position + 3 * position + name.len()) % 5) as f64 - 2.0;
        Array::new(shape, (0..count).map(value).collect())
    })
}

#[test]
fn derivatives_of_extremes_go_to_the_terms_that_are_equal_to_them() {
    let mut failures = Vec::new();
    for text in PROGRAMS {
        let program = resolve(text).program;
        let derivative = gradix::derive(&program, &Default::default()).unwrap().program;
        for (dtype, tolerance, assumed) in [(Dtype::F64, 1e-11, 500), (Dtype::F32, 1e-4, 9)] {
            let assumed = estimate(&derivative, assumed);
            for &backend in backends() {
                let how = (backend, Compiling::Usual);
                let mut subject = Subject::new(text, &derivative, &assumed, dtype, how, 2);
                for data in [random, integers] {
                    let given = [("N".to_string(), 40), ("M".to_string(), 23)];
                    let sizes = sized(&derivative, &given).unwrap();
                    let inputs = data(&derivative, &sizes);
                    let expected = interp(&derivative, &sizes, &inputs, dtype).unwrap().results;
                    let difference = difference(&subject.run(&sizes, &inputs), &expected, tolerance);
                    failures.extend(difference.map(|difference| format!("{}: {difference}", subject.name)));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Every term of the same value has its share, even if there is nothing but ties.
#[test]
fn terms_that_are_all_equal_share_the_derivative() {
    let program = resolve("input x[N], u[N], v[M]\na[k] = max[i] (v[k] * x[i] + 0.3 * u[i])").program;
    let derivative = gradix::derive(&program, &Default::default()).unwrap().program;
    let sizes = sized(&derivative, &[("N".to_string(), 37), ("M".to_string(), 5)]).unwrap();
    let inputs = filled(&derivative, &sizes, |name, shape| {
        let value = [0.1, 0.7, 1.3, 0.9][name.len() % 4 * usize::from(name != "da")];
        Array::new(shape.clone(), vec![value; shape[0]])
    });
    for &backend in backends() {
        for dtype in [Dtype::F64, Dtype::F32] {
            let how = (backend, Compiling::Usual);
            let mut subject = Subject::new("all equal", &derivative, &sizes, dtype, how, 1);
            let expected = interp(&derivative, &sizes, &inputs, dtype).unwrap().results;
            let largest = expected[0].1.data.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
            assert!(largest > 0.0);
            subject.agrees(&sizes, &inputs, &expected, 1e-6);
        }
    }
}
