//! The derivative of a maximum goes to the terms that are equal to it. These are computed again: in other loops, but
//! with the same rounding, or the derivative is lost.

use crate::common::*;
use gradix_run::{Dtype, Gradient};

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
    "input x[N, M], z[M, N]\na[k] = min[i] (sum[d] (x[i, d] - z[d, k])^2)\nb = max[k, i] (a[k] * x[i, 0] + a[i])",
];

#[test]
fn derivatives_of_extremes_go_to_the_terms_that_are_equal_to_them() {
    let mut failures = Vec::new();
    for text in PROGRAMS {
        let program = resolve(text).program;
        let derivative = Gradient::new(&program, None, None).unwrap().derivative;
        let given = [("N".to_string(), 40), ("M".to_string(), 23)];
        let sizes = sized(&derivative, &given).unwrap();
        let inputs = inputs(&derivative, &sizes);
        let expected = oracle(&derivative, &sizes, &inputs);
        for &backend in backends() {
            for assumed in [500, 9] {
                let (assumed, how) = (estimate(&derivative, assumed), (backend, Compiling::Usual));
                let mut subject = Subject::new(text, &derivative, &assumed, Dtype::F64, how, 2);
                let difference = difference(&subject.run(&sizes, &inputs), &expected, 1e-11);
                failures.extend(difference.map(|difference| format!("{}: {difference}", subject.name)));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
