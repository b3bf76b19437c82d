//! Infinities and NaN: what is not read does not count, what is read does, and nothing of nothing is what the oracle
//! says.
//!
//! `inf - inf` and `0 * inf` may appear or vanish where expressions are rearranged; no program here depends on them.

use crate::common::*;
use gradix::program::{BinaryOp, Program, UnaryOp};
use gradix_run::{Array, Dtype, interp};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// Values that take turns in an input. Their number is odd, so that they meet all lanes of a vector.
const MIXTURES: [&[f64]; 4] = [
    &[1.5, -2.0, 0.0, 0.25, INF, -0.5, 3.0],
    &[2.0, NAN, -1.0, 0.5, 1.0],
    &[-INF, -1.0, -0.0, 0.75, 4.0, 0.5, -3.0],
    &[INF, 1.0, NAN, -INF, 0.0],
];
const SIZES: [i64; 5] = [40, 5, 1, 0, 7];

/// The inputs with special values hold them everywhere.
fn mixed(text: &str, tolerance: f64, with_gradient: bool) {
    for (number, mixture) in MIXTURES.iter().enumerate() {
        let value = |name: &str, position: usize| match name {
            "w" => 0.5 + 0.25 * (position % 3) as f64,
            _ => mixture[(position + name.len() + 3 * number) % mixture.len()],
        };
        check(text, &value, tolerance, with_gradient);
    }
}

/// Runs a program and its gradient where all sizes are the same, from inputs with the value of an element by name and
/// position; upstream derivatives are plain numbers.
fn check(text: &str, value: &dyn Fn(&str, usize) -> f64, tolerance: f64, with_gradient: bool) {
    let program = resolve(text).program;
    compare(&program, &program, value, tolerance);
    if with_gradient {
        let derivative = gradix::derive(&program, &Default::default()).unwrap().program;
        compare(&program, &derivative, value, tolerance);
    }
}

fn compare(original: &Program, program: &Program, value: &dyn Fn(&str, usize) -> f64, tolerance: f64) {
    let arguments: Vec<&str> = original.inputs().map(|id| &*original[id].name).collect();
    for &backend in backends() {
        for assumed in [500, 5] {
            let estimate = estimate(program, assumed);
            let how = (backend, Compiling::Usual);
            let mut subject = Subject::new("special values", program, &estimate, Dtype::F64, how, 2);
            let mut runs = 0;
            for size in SIZES {
                let Some(sizes) = sized(program, &all(program, size)) else { continue };
                let inputs = filled(program, &sizes, |name, shape| {
                    let count = shape.iter().product();
                    let plain = |position: usize| 1.0 + 0.5 * (position % 4) as f64;
                    let is_argument = arguments.contains(&name);
                    let element = |position| if is_argument { value(name, position) } else { plain(position) };
                    Array::new(shape, (0..count).map(element).collect())
                });
                subject.agrees(&sizes, &inputs, &oracle(program, &sizes, &inputs), tolerance);
                runs += 1;
            }
            assert!(runs > 0);
        }
    }
}

#[test]
fn branches_that_are_not_taken_do_not_count() {
    mixed(
        "input x[N]
a[i] = if x[i] > 0 then log(x[i]) else 0
b[i] = if x[i] > 0 then sqrt(x[i]) else -1
c[i] = if x[i] != 0 then 1 / x[i] else 0
d[i] = if x[i] < 1 and x[i] > -1 then atanh(x[i]) else x[i]
e[i] = if x[i] <= 1 then exp(x[i]) else 3
s = sum[i] (if abs(x[i]) < 3 then x[i]^2 else 0)
m = max[i] (if x[i] <= 2 then x[i] else -5)",
        1e-13,
        true,
    );
}

#[test]
fn comparisons_with_nan_are_false() {
    mixed(
        "input x[N], yy[N]
a[i] = if x[i] < yy[i] then 1 else 0
b[i] = if x[i] <= yy[i] then 1 else 0
c[i] = if x[i] == yy[i] then 1 else 0
d[i] = if x[i] != yy[i] then 1 else 0
e[i] = if not x[i] > yy[i] then 1 else 0
f[i] = if x[i] >= yy[i] or x[i] < 0 then 1 else 0
g[i] = if not (x[i] >= yy[i] and x[i] < 0) then yy[i] else 2",
        0.0,
        false,
    );
}

#[test]
fn special_values_go_through_reductions() {
    mixed(
        "input x[N, N], w[N]
a[i] = max[j] x[i, j]
b[j] = max[i] x[i, j]
c[i] = min[j] x[i, j]
d[j] = min[i] x[i, j]
e = max[i, j] x[i, j]
f = min[i, j] x[i, j]
g[i] = sum[j] abs(x[i, j])
h[j] = sum[i] abs(x[i, j])
k = sum[i, j] abs(x[i, j])
l[i, j] = max(x[i, j], w[j])
m[i, j] = min(w[i], x[i, j])
n[i, j] = relu(x[i, j]) + w[i]
o[i, j] = abs(x[i, j]) * w[j]",
        1e-13,
        false,
    );
}

/// Every function at every pair of special values, also in single precision.
#[test]
fn functions_of_special_values_are_those_of_the_oracle() {
    let unary = UnaryOp::ALL.iter().filter(|op| **op != UnaryOp::Neg).map(|op| op.name());
    let binary = BinaryOp::FUNCTIONS.iter().map(|(name, _)| *name);
    let mut text = "input x[N]\n".to_string();
    unary.for_each(|name| text += &format!("y_{name}[i] = {name}(x[i])\n"));
    binary.for_each(|name| text += &format!("y_{name}[i, j] = {name}(x[i], x[j])\n"));
    let program = resolve(&text).program;
    let values = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, INF, -INF, NAN, 1e-30, -1e30, 200.0, -200.0, 1e4, 171.0, -3.0];
    let sizes = [values.len().into()];
    let inputs: Arrays = [("x".to_string(), Array::new(vec![values.len()], values.to_vec()))].into();
    for &backend in backends() {
        for (dtype, tolerance) in [(Dtype::F64, 1e-14), (Dtype::F32, 1e-6)] {
            let expected = interp(&program, &sizes, &inputs, dtype).unwrap().results;
            let mut subject = Subject::new("functions", &program, &sizes, dtype, (backend, Compiling::Usual), 1);
            let results = subject.run(&sizes, &inputs);
            for (result, wanted) in results.iter().zip(&expected) {
                for (position, (a, b)) in result.1.data.iter().zip(&wanted.1.data).enumerate() {
                    let near = (a - b).abs() <= tolerance * (1.0 + b.abs());
                    let same = a == b || a.is_nan() && b.is_nan() || near;
                    assert!(same, "{}: {} is {a} and should be {b} at {position}", subject.name, result.0);
                }
            }
        }
    }
}

/// A matrix with NaN above its diagonal, and a vector with NaN at both ends.
#[test]
fn what_is_outside_a_window_is_not_read() {
    let text = "param N >= 5
input x[N, N], w[N], v[N]
a[i] = sum[j in 0..=i] x[i, j]
b[i] = max[j in 0..=i] x[i, j]
c[i, j in 0..N] = sum[k in 0..=i] x[i, k] * w[j] * w[k]
d[j] = sum[i in j..N] x[i, j]
e = sum[i, j in 0..=i] x[i, j]^2
f[i in 0..N] = if 2 <= i < N - 2 then v[i] * w[i] else 0
g[i in 0..N] = sum[p in 0..5, 2 <= i + p - 2 < N - 2] w[p] * v[i + p - 2]
h[i in 0..N - 4] = v[i + 2] + w[i]
r[i in 0..N] = if 1 < i and i < N - 2 then max(v[i], w[i]) else w[i]
l = prod[i in 2..N - 2] v[i]
m[i, j] = if j <= i then exp(x[i, j]) else 0";
    for size in [5, 7, 12, 40] {
        let value = |name: &str, position: usize| {
            let (i, j) = (position / size, position % size);
            match name {
                "x" if j > i => NAN,
                "v" if position < 2 || position + 2 >= size => INF,
                _ => 0.5 + 0.125 * (position % 7) as f64,
            }
        };
        at(text, size, &value);
    }
}

/// A matrix with infinities on its diagonal, and a vector with NaN at odd places.
#[test]
fn what_a_condition_or_stride_leaves_out_is_not_read() {
    let text = "param N >= 1
input x[N, N], v[2*N], w[N]
a[i] = sum[j, j != i] x[i, j]
b[i] = max[j, j != i] x[i, j]
c[i] = sum[j] (if i == j then 0 else x[i, j] * w[j])
d[i] = v[2*i] * w[i]
e = sum[i in 0..N] v[2*i]
f[i in 0..N] = min[j in 0..N, (i + j) % 2 == 0] (if i == j then 1 else x[i, j])
g[i in 0..2*N] = if i % 2 == 0 then v[i] else 0
h[i, j] = if i != j then x[i, j] + w[j] else w[i]";
    for size in [1, 2, 5, 9, 40] {
        let value = |name: &str, position: usize| match name {
            "x" if position / size == position % size => -INF,
            "v" if position % 2 == 1 => NAN,
            _ => 0.5 + 0.125 * (position % 7) as f64,
        };
        at(text, size, &value);
    }
}

/// Value and gradient at one size, prepared for it and for a large one.
fn at(text: &str, size: usize, value: &dyn Fn(&str, usize) -> f64) {
    let original = resolve(text).program;
    let derivative = gradix::derive(&original, &Default::default()).unwrap().program;
    for program in [&original, &derivative] {
        let sizes = sized(program, &all(program, size as i64)).unwrap();
        let inputs = filled(program, &sizes, |name, shape| {
            let count = shape.iter().product();
            Array::new(shape, (0..count).map(|position| value(name, position)).collect())
        });
        let expected = oracle(program, &sizes, &inputs);
        for &backend in backends() {
            for assumed in [500, 5] {
                let how = (backend, Compiling::Usual);
                let mut subject = Subject::new("windows", program, &estimate(program, assumed), Dtype::F64, how, 2);
                subject.agrees(&sizes, &inputs, &expected, 1e-13);
            }
        }
    }
}

#[test]
fn reductions_of_nothing_are_those_of_the_oracle() {
    let plain = |_: &str, position: usize| 0.5 + 0.125 * (position % 7) as f64;
    let text = "input x[N], z[N, K], u[K, N]
a[i in 0..N] = max[j in 0..i] x[j]
b[i in 0..N] = min[j in i + 1..N] x[j]
c[i in 0..N] = sum[j in i + 3..N] x[j]
d[i in 0..N] = prod[j in i + 2..N - 1] x[j]
e[i in 0..N] = exp(max[j in 0..i] x[j])
f[i] = max[k] z[i, k]
g[i] = sum[k] z[i, k]
h[i, j] = sum[k] z[i, k] * u[k, j]
m[i, j] = max[k] (z[i, k] + u[k, j])
o[i] = min[k, k > i] z[i, k]
p = max[i] x[i]
q = min[i] x[i]
r = prod[i] x[i]
s = sum[i] x[i]";
    check(text, &plain, 1e-13, true);
    let program = resolve(text).program;
    for (n, k) in [(5, 0), (0, 5), (40, 1), (1, 40)] {
        let given = [("N".to_string(), n), ("K".to_string(), k)];
        for &backend in backends() {
            let how = (backend, Compiling::Usual);
            let mut subject = Subject::new("nothing", &program, &estimate(&program, 500), Dtype::F64, how, 2);
            let sizes = sized(&program, &given).unwrap();
            let inputs = inputs(&program, &sizes);
            subject.agrees(&sizes, &inputs, &oracle(&program, &sizes, &inputs), 1e-13);
        }
    }
}

/// Terms that don't depend on the index of a reduction are not read where that has no values.
#[test]
fn terms_of_empty_reductions_are_not_read() {
    let text = "input x[N], z[N]
a = sum[j] x[2] * z[j]
b[i in 0..N + 4] = max[j in i..N] (x[i] + z[j])
c[i in 0..N + 4] = sum[j, i < N] sin(x[i] * z[j])
d[i in 0..N + 4] = prod[j in 0..=min(i, 1), i < N] (z[j] - x[i])
e[i in 0..2*N] = if i < N then max[j in i..N] x[i] * z[j] else 1";
    let program = resolve(text).program;
    for size in [0, 3, 9] {
        at(text, size, &|_, position| 0.5 + 0.125 * (position % 7) as f64);
    }
    assert_eq!(sized(&program, &all(&program, 1)), None, "x[2] is read");
}

/// `-inf` for what is masked is an idiom: the whole row of weights may be 0, and derivatives stay finite.
#[test]
fn masks_of_minus_infinity_give_the_oracles_softmax() {
    let text = "param N >= 1
input x[N, N], v[N, N]
s[i, j] = if j <= i then x[i, j] else -inf
m[i] = max[j] s[i, j]
e[i, j] = exp(s[i, j] - m[i])
z[i] = sum[j] e[i, j]
y[i, c] = (sum[j] e[i, j] * v[j, c]) / z[i]";
    let plain = |name: &str, position: usize| ((position * 7 + name.len()) % 13) as f64 / 4.0 - 1.5;
    check(text, &plain, 1e-13, true);
}

/// Infinite terms, terms of -inf and NaN, of rows, columns and triangles, with derivatives.
#[test]
fn logarithms_of_sums_of_exponentials_of_special_values_are_those_of_the_oracle() {
    mixed(
        "input x[N, N]
a[i] = logsumexp[j] x[i, j]
b[j] = logsumexp[i] (x[i, j] - 1)
c[i] = logsumexp[j in 0..=i] x[i, j]
d = logsumexp[i, j] x[i, j]
p[i, j] = exp(x[i, j] - a[i])
m[i] = mean[j, j >= i] x[i, j]",
        1e-13,
        false,
    );
    mixed("input x[N, N]\na[i] = logsumexp[j] x[i, j]", 1e-13, true);
    mixed("input x[N, N]\nb[j] = logsumexp[i, i != j] x[i, j]", 1e-13, true);
}

/// A row that is masked altogether has a logarithm of -inf, and derivatives of 0.
#[test]
fn masked_rows_of_logsumexp_have_derivatives_of_0() {
    let text = "input x[N, N], w[N]
s[i, j] = if j < i then x[i, j] else -inf
a[i] = logsumexp[j] s[i, j]
y[i] = if i > 0 then a[i] * w[i] else w[i]";
    let plain = |name: &str, position: usize| ((position * 7 + name.len()) % 13) as f64 / 4.0 - 1.5;
    check(text, &plain, 1e-13, true);
    let program = gradix::derive(&resolve(text).program, &Default::default()).unwrap().program;
    let sizes = sized(&program, &all(&program, 5)).unwrap();
    let found = oracle(&program, &sizes, &inputs(&program, &sizes));
    assert!(found.iter().all(|(_, array)| array.data.iter().all(|value| value.is_finite())), "{found:?}");
}
