//! Values that are summed along their rows and along their columns: each is computed once, for both.

use crate::common::*;
use gradix_run::{Dtype, interp};

/// Whole matrices, triangles, bands that begin and end with the row, sums that are taken away, several at a time.
const PROGRAMS: &[&str] = &[
    "input t[N], x[N], u[N]\ny[i] = sum[k in 0..=i] exp(t[k] - t[i]) * x[k]",
    "input t[N], x[N], u[N]\ny[i] = sum[k in i..N] exp(t[k] * t[i]) * x[k] - u[i]",
    "input t[N], x[N], u[N]\ny[i] = -sum[k] tanh(t[k] - t[i]) * x[k] * u[i]",
    "input t[N], x[N], u[N]\ny[i] = sum[k in i..min(N, i + 9)] exp(t[k] - x[i]) * u[k]",
    "input t[N], x[N], u[N]\ny[i] = sum[k in max(0, i - 5)..min(N, i + 6)] sin(t[k] - x[i]) / (2 + u[k]^2)",
    "input t[N], x[M], u[N]\ny[i] = sum[k] exp(-(t[i] - x[k])^2 * u[i])\nz[k] = sum[i] exp(-(t[i] - x[k])^2 * u[i])",
    "input a[N, 3], b[M, 3], w[M]\ny[i] = sum[j] exp(-sum[d] (a[i, d] - b[j, d])^2) * w[j]",
    "input a[B, N], b[B, N]\ny[q, i] = sum[k in 0..=i] exp(a[q, k] - a[q, i]) * b[q, k]",
    "input a[N, 8], b[M, 8], w[M]\ny[i] = sum[j] exp(-sum[d] (a[i, d] - b[j, d])^2) * w[j]",
    "input a[N, 13], b[M, 13], w[M]\ny[i] = sum[j] exp(-sum[d] (a[i, d] - b[j, d])^2) * w[j]",
    "input a[N, 2], w[N]\nr[i, j] = exp(-sum[d] (a[i, d] - a[j, d])^2)\ny[i, d] = sum[j] w[j] * r[i, j] * (a[j, d] - a[i, d])",
    "input a[N, 4, 3], b[B, 4, M]\ny[q, o, h in 0..M] = sum[c, p] a[o, c, p] * pad(b[q, c, h + p - 1], 0)",
];

#[test]
fn sums_by_row_and_by_column_share_their_terms() {
    let mut failures = Vec::new();
    for text in PROGRAMS {
        let program = resolve(text).program;
        let derivative = gradix::derive(&program, &Default::default()).unwrap().program;
        for (dtype, tolerance) in [(Dtype::F64, 1e-11), (Dtype::F32, 1e-4)] {
            for &backend in backends() {
                let how = (backend, Compiling::Usual);
                let mut subject = Subject::new(text, &derivative, &estimate(&derivative, 700), dtype, how, 2);
                for (n, m) in [(1, 1), (3, 70), (61, 2), (130, 33)] {
                    let given = [("N".to_string(), n), ("M".to_string(), m), ("B".to_string(), 3)];
                    let sizes = sized(&derivative, &given).unwrap();
                    let inputs = single_inputs(&derivative, &sizes);
                    let expected = interp(&derivative, &sizes, &inputs, dtype).unwrap().results;
                    let difference = difference(&subject.run(&sizes, &inputs), &expected, tolerance);
                    failures.extend(difference.map(|d| format!("{} at {n}, {m}: {d}", subject.name)));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What is read under a condition does not bound a reduction: here there are terms behind the last row of `h`.
#[test]
fn terms_that_read_nothing_count() {
    let text = "param N >= 2, M\ninput f[N], g[2*M]\noutput h, x\nh[i, k in 0..N] = exp(g[i] * f[k])
x[i in 0..N] = sum[l in 0..=i] (1.5 + (if l < 2*M then h[l, N - l - 1] else 0.25)^2)";
    let program = resolve(text).program;
    for (n, m, assumed) in [(5, 2, 5), (90, 20, 90), (90, 60, 700)] {
        let sizes = sized(&program, &[("N".to_string(), n), ("M".to_string(), m)]).unwrap();
        let inputs = single_inputs(&program, &sizes);
        let expected = interp(&program, &sizes, &inputs, Dtype::F64).unwrap().results;
        for &backend in backends() {
            let how = (backend, Compiling::Usual);
            let mut subject = Subject::new(text, &program, &estimate(&program, assumed), Dtype::F64, how, 2);
            subject.agrees(&sizes, &inputs, &expected, 1e-11);
        }
    }
}
