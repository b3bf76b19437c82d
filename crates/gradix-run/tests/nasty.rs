//! Small programs that break a careless derivation: one line each, with a name.
//!
//! All of them are checked like the random programs, on ordinary data and on data full of zeros and ties, and
//! derivatives are compared even where some other number is infinite.

mod support;

use gradix::derive::Options;
use gradix::program::print;
use gradix::{Int, derive, resolve, syntax};
use gradix_run::{Array, Dtype, interp};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use support::check::{Plan, Verdict, check};

#[rustfmt::skip]
const CASES: &[(&str, &str)] = &[
    // Index maps: strides, ranks, cokernels, divisibility.
    ("a stride leaves elements that nothing reads", "input x[2*N]; f[i in 0..N] = x[2*i]^2"),
    ("a shift leaves the first elements unread", "input x[N + 2]; f[i in 0..N] = x[i + 2]^2"),
    ("a diagonal", "input x[N, N]; f[i in 0..N] = x[i, i]^3"),
    ("a diagonal of sums", "input x[2*N, 2*N]; f[i in 0..N, j in 0..N] = sin(x[i + j, i + j])"),
    ("a sum of indices", "input x[N + M]; f[i in 0..N, j in 0..M] = x[i + j]^2"),
    ("strides with a common divisor", "input x[6*N]; f[i in 0..N, j in 0..N] = x[2*i + 4*j]^2"),
    ("coprime strides", "input x[5*N]; f[i in 0..N, j in 0..N] = x[2*i + 3*j]^2"),
    ("the paper's lattice", "input x[N + 4*M]; f[i in 0..N, j in 0..M, k in 0..M] = x[i - 2*j - 2*k + 4*M]^2"),
    ("pairwise common divisors", "input x[31*N]; f[i in 0..N, j in 0..N, k in 0..N] = x[6*i + 10*j + 15*k]^2"),
    ("steps that start anew at multiples, and read where they started", "input x[N]; h[t in 0..N] = if t % 3 != 0 then exp(h[t - 1]) * h[t - t % 3] else x[t]"),
    ("a reversal", "input x[N]; f[i in 0..N] = x[N - 1 - i]^2 * i"),
    ("halves", "input x[N]; f[i in 0..N] = x[i // 2]^2 * x[i]"),
    ("a remainder", "param N; input x[3]; f[i in 0..N] = x[i % 3]^2"),
    ("a half and the whole", "input x[2*N]; f[i in 0..N] = x[i // 2 + i]^2"),
    ("blocks of three", "input x[N + 3]; f[i in 0..N, j in 0..3] = x[3*(i // 3) + j]^2"),
    ("a negative multiple of a floor", "input x[4*N + 4]; f[i in 0..N] = x[4*N - 4*(i // 2)]^2"),
    ("remainder and quotient of one index", "input x[N + 1, 2]; f[i in 0..N] = x[i // 2, i % 2]^2"),
    ("nested quotients", "input x[N + 1]; f[i in 0..N] = x[(i // 2 + 1) // 2]^2"),
    ("a quotient of a sum", "input x[2*N]; f[i in 0..N] = sum[j in 0..N] x[(i + j) // 2] * x[j]"),
    ("more subscripts than indices", "input x[N, N, 2*N]; f[i in 0..N] = x[i, N - 1 - i, 2*i]^2"),
    ("only constants as subscripts", "param N >= 1; input x[N, 3]; f[i in 0..N] = x[0, 2] * i"),
    ("one tensor through several maps", "input x[N + 2]; f[i in 0..N] = x[i] * x[i + 1]^2 - x[i + 2] * x[N - i]"),
    ("a transpose", "input x[N, N]; f[i in 0..N, j in 0..N] = x[i, j] * x[j, i]"),
    ("a matrix product", "input a[N, K], b[K, M]; f[i, j] = sum[k] a[i, k] * b[k, j]"),
    ("rows of different divisors", "input x[2*N, 3*N]; f[i in 0..N, j in 0..N] = x[2*i, 3*j]^2 + x[i + j, i]"),
    ("two equations for one index", "input x[2*N, 3*N]; f[i in 0..N] = x[2*i, 3*i]^2"),
    // Ranges and conditions.
    ("a triangle", "input x[N, N]; f[i in 0..N] = sum[k in 0..=i] x[i, k]^2"),
    ("a band", "input x[N, N]; f[i in 0..N] = sum[k in max(0, i - 2)..=min(i, N - 1)] x[k, i]^2"),
    ("a triangle of triangles", "input x[N]; f[i in 0..N] = sum[k in 0..=i, l in k..=i] x[k] * x[l]"),
    ("a range that starts below 0", "input x[N + 2]; f[i in 0..N] = sum[k in -1..=1] x[i + k + 1] * k"),
    ("a guard", "input x[N]; f[i in 0..N] = if i > 0 and i < N - 1 then x[i - 1] * x[i + 1] else x[i]^2"),
    ("a guard before a value condition", "input x[N]; f[i in 0..N] = if i > 0 and x[i - 1] > 0 then x[i - 1]^2 else 1"),
    ("a convolution with a condition", "input x[N], w[K]; f[i in 0..N] = sum[k in 0..K, 0 <= i + k - 1 < N] w[k] * x[i + k - 1]"),
    ("an inequality as condition", "input x[N]; f[i in 0..N] = sum[k in 0..N, k != i] x[k] * x[i]"),
    ("divisibility as condition", "input x[N]; f[i in 0..N] = sum[k in 0..N, (i + k) % 2 == 0] x[k]^2"),
    ("either of two conditions", "input x[N]; f[i in 0..N] = sum[k in 0..N] (if k < i or k > i + 1 then x[k]^2 else 0)"),
    ("a floor in a range", "input x[N]; f[i in 0..N] = sum[k in i // 2..(i + N) // 2] x[k]^2"),
    ("a remainder in a range", "input x[N + 2]; f[i in 0..N] = sum[k in i % 2..=i % 2 + 1] x[k]^2"),
    ("an inner index hides an outer one", "input x[N]; f[i in 0..N] = x[i] * sum[i in 0..N] x[i]^2"),
    // Boundaries.
    ("zero padding", "input x[N]; f[i in 0..N] = pad(x[i - 1], 0) + 2 * pad(x[i + 1], 1.5)^2"),
    ("clamped subscripts", "param N >= 1; input x[N]; f[i in 0..N] = sum[k in -2..=2] x[clamp(i + k)]^2"),
    ("clamped between bounds", "param N >= 3; input x[N]; f[i in 0..N] = x[clamp(2*i - 1, 1, 2)]^2"),
    ("periodic subscripts", "param N >= 1; input x[N]; f[i in 0..N] = x[wrap(i - 1)] * x[wrap(i + 1)]"),
    ("mirrored subscripts", "param N >= 2; input x[N]; f[i in 0..N] = x[reflect(i - 1)] * x[reflect(i + 1)]^2"),
    ("the smaller subscript", "input x[N]; f[i in 0..N, j in 0..N] = x[min(i, j)] * x[max(i, j)]^2"),
    ("boundaries in two dimensions", "param N >= 1, M >= 1; input x[N, M]; f[i in 0..N, j in 0..M] = x[clamp(i - 1), wrap(j + 1)]^2"),
    // Values.
    ("an index as value", "input x[N]; f[i in 0..N] = x[i] * i / (N + 1) + (i // 2) * x[i]^2 + i % 3"),
    ("a product", "input x[N]; f = prod[i] x[i]"),
    ("a product of rows", "input x[N, M]; f[i] = prod[j] x[i, j]"),
    ("a product of a triangle", "input x[N]; f[i in 0..N] = prod[k in 0..=i] x[k]"),
    ("a largest value", "input x[N, M]; f[i] = max[j] x[i, j]"),
    ("a smallest value of a function", "input x[N]; f[i in 0..N] = min[k in 0..=i] x[k]^2 * x[i]"),
    ("the larger of two", "input x[N], y[N]; f[i] = max(x[i], y[i]) + min(x[i], 2*y[i])"),
    ("a power of 0", "input x[N]; f[i] = x[i]^0 + x[i]^1 + x[i]^2 + x[i]^3"),
    ("a variable exponent", "input x[N], y[N]; f[i] = abs(x[i])^(y[i]^2)"),
    ("kinks", "input x[N]; f[i] = relu(x[i]) + 2 * abs(x[i]) + sign(x[i]) + hypot(x[i], 0)"),
    ("a root in an untaken branch", "input x[N]; f[i] = if x[i] > 0 then sqrt(x[i]) else 0"),
    ("a root in an untaken branch of its user", "input x[N]; y[i] = sqrt(abs(x[i])); f[i] = if x[i] > 0 then y[i] else 0"),
    ("a root of a sum in an untaken branch", "input x[N]; f[i in 0..N] = if x[i] > 0 then sqrt(sum[k in 0..=i] abs(x[k])) else x[i]"),
    ("a sum of roots in an untaken branch", "input x[N]; f[i] = if x[i] > 0 then sum[k in 0..=i] sqrt(abs(x[i])) * k else 0"),
    ("a quotient in an untaken branch", "input x[N], y[N]; q[i] = x[i] / y[i]; f[i] = if y[i] != 0 then q[i] * x[i] else x[i]"),
    ("a logarithm of a masked sum", "input x[N]; f[i in 0..N] = sum[k in 0..N] (if x[k] > 0 then log(x[k]) * x[i] else 0)"),
    ("a function of a sum of functions of sums", "input x[N, N]; f[i in 0..N] = exp(-(sum[j in 0..N] tanh(sum[k in 0..=j] x[j, k]) * x[i, j])^2)"),
    ("a softmax", "input x[N]; m = max[i] x[i]; e[i] = exp(x[i] - m); f[i] = e[i] / sum[j] e[j]"),
    ("an empty sum", "input x[N]; f[i in 0..N] = x[i] * (1 + sum[k in i..i] x[k])"),
    ("an empty product", "input x[N]; f[i in 0..N] = x[i] * prod[k in 0..i] x[k]"),
    ("a chain of definitions", "input x[N]; a[i] = x[i]^2; b[i in 0..N] = a[i] * a[N - 1 - i]; c[i in 0..N] = sum[k in 0..=i] b[k] * a[i]; output c, b"),
    ("a scalar and an unused input", "input t, x[N], u[N, 2]; f[i] = t^2 * x[i]"),
    ("a tensor without elements", "input x[0, N]; f[j in 0..N] = 1 + sum[i in 0..0] x[i, j]^2"),
    ("names that are taken", "input x[N], dx[N], df[N], dx_1[N]; f[df_1 in 0..N] = x[df_1] * dx[df_1] * df[df_1] * dx_1[df_1]"),
    // Reductions of exponentials, means, and what stops.
    ("a stable softmax", "input x[N, M]; p[i, j] = exp(x[i, j] - logsumexp[k] x[i, k])"),
    ("a softmax over the first index", "input x[N, M]; p[i, j] = exp(x[i, j] - logsumexp[i] x[i, j])"),
    ("a softmax of a triangle", "input x[N, N]; p[i in 0..N, j in 0..N] = if j <= i then exp(x[i, j] - logsumexp[k in 0..=i] x[i, k]) else 0"),
    ("a softmax of a part", "input x[N + 2, M]; p[i in 0..N, j] = exp(x[i, j] - logsumexp[k] x[i, k]); q = logsumexp[i, j] x[i, j]^2"),
    ("a softmax that is read at one place", "param N >= 2, M >= 1; input x[N, M]; p[i, j] = exp(x[i, j] - logsumexp[k] x[i, k]); y = p[1, 0]"),
    ("exponentials in one another", "input x[N, M]; y = logsumexp[i] (x[i, 0] * logsumexp[j] (x[i, j] - logsumexp[k] x[k, j])); z[i] = logsumexp[j, j != i % 2] x[i, j]"),
    ("exponentials with two of their sums", "input x[N, N]; p[i, j] = exp(x[i, j] - logsumexp[k] x[i, k] + x[0, j] - logsumexp[k] x[k, j])"),
    ("exponentials of what is far away", "input x[N]; y[i in 0..N] = logsumexp[k] (1000 * x[k] - 900 * i)"),
    ("exponentials of backward and strided reads", "input x[2*N + 1]; y[i in 0..N] = logsumexp[k in 0..N] (x[2*k + 1] * x[2*N - i - k]) * x[i]"),
    ("masked terms", "input x[N, N]; y[i in 0..N] = logsumexp[j] (if j <= i then x[i, j] else -inf) + logsumexp[j in 0..N, j != i] x[i, j]"),
    ("exponentials of nothing", "input x[N]; y[i in 0..N] = if i < 1 then x[i] else logsumexp[k in 0..i] x[k]; z[i in 0..N] = exp(logsumexp[k in i + 1..N] x[k])"),
    ("means", "param N >= 1, M >= 1; input x[N, M]; m = mean[i, j] x[i, j]; v[i] = mean[j] (x[i, j] - m)^2; w = mean[i] sqrt(1 + v[i])"),
    ("a mean of one point", "input x[N]; y[i in 0..N] = mean[k in i..=i] x[k]^2"),
    ("means of triangles", "input x[N]; y[i in 0..N] = mean[k in 0..=i] x[k]^2 + mean[j in i..N, k in 0..=i] x[k] * x[j]"),
    ("means under conditions", "input x[N + 1]; y[i in 0..N] = mean[k in 0..N + 1, k != i] x[k]^2; z = mean[k, k % 2 == 0] x[k]^3"),
    ("a mean of quotients", "input x[N + 1]; y[i in 0..N] = mean[k in 0..=2*i // 3] x[k] * x[i - k]"),
    ("means in one another", "input x[N + 1, M + 1]; y[i] = mean[j] x[i, j] * mean[k] x[k, j]"),
    ("a mean in a recurrence", "input x[N]; h[t in 0..N] = if t == 0 then x[0] else 0.5 * x[t] + mean[s in 0..t] h[s]"),
    ("exponentials in a recurrence", "input x[T + 1, S + 1], w[S + 1, S + 1]; a[t in 0..=T, s] = x[t, s] + (if t == 0 then 0 else logsumexp[r in 0..=S] (a[t - 1, r] + w[r, s]))"),
    ("a smooth minimum over neighbours", "input x[N, N]; r[i in 0..N, j in 0..N] = x[i, j] - logsumexp[k in 0..3] (if k == 0 then -pad(r[i - 1, j], 1) else if k == 1 then -pad(r[i, j - 1], 1) else -pad(r[i - 1, j - 1], 1))"),
    ("what stops", "input x[N]; y[i] = x[i] * stop(x[i]^2) + stop(x[i]) - x[i]"),
    ("rounding that lets derivatives through", "input x[N]; y[i] = x[i] + stop(round(4 * x[i]) / 4 - x[i])"),
    ("a sum that stops", "input x[N, M]; y[i in 0..N] = stop(sum[j] x[i, j]^2) * x[i, 0]^2 + x[i, 0] / (2 + stop(max[j] x[i, j]))"),
    ("a definition that stops", "input x[N + 1]; s[i in 0..N] = sin(x[i]); t[i] = stop(s[i]) * x[i + 1]; y[i] = t[i]^2 + s[i]"),
    ("a condition that stops", "input x[N]; y[i] = if stop(x[i]) > 0.1 then x[i]^2 else stop(x[i])^2 * x[i]"),
    ("a recurrence that stops", "input x[N]; h[t in 0..N] = x[t] * pad(h[t - 1], 1) + stop(x[t] * pad(h[t - 2], 2))"),
    ("a shift that stops", "input x[N, M]; m[i] = stop(max[j] x[i, j]); y[i] = m[i] + log(sum[j] exp(x[i, j] - m[i]) + 0 * m[i])"),
    ("reductions as names", "input mean[N], stop; logsumexp[i] = mean[i] - stop; y = sum[i] logsumexp[i]^2"),
    ("reductions as indices", "input x[N, M]; y[mean, stop] = x[mean, stop]^2 * sum[logsumexp in 0..=mean] x[logsumexp, stop]"),
    // What random programs found.
    ("conditions on sizes that excuse a product", "input w[3*N + 24]; x = if 1 == N or 1 >= N - 1 then prod[j in 0..N] w[3*N + 7*j + 18] else 2"),
    ("a product that its reader knows to be inside", "param M >= 0; input y[2]; x[i in 0..M] = prod[j in -1..2, k in -i..1, 6*j == 3*(k // 2 + k // 4)] y[k % 4]"),
    ("a product with padding", "param N, M; input x[M - 1, M]; a = prod[i in 0..N] (if 0 <= -2*i then x[i, -2*i] else 0.25)"),
    ("a negative choice of an index", "param N >= 1; input x; w[i in 0..N] = -(if 0 <= 0 then i else 1) - x * -(if 0 <= -1 then 1 else 0)"),
    ("padding that is outside where it is not used", "param N >= 1; input x[2*N - 1]; y[j in 0..2*N - 1] = (prod[d in 0..=j] x[wrap(1 - j)]) * x[j]"),
    ("a sum without one index of a product", "param N; input x[M, M - 1]; w = prod[z in 1..N, z != 2] x[1, 2]"),
    ("a sum over a clamped row", "input s[N, 4, M + N], x[M]; f[i in 0..N, z in 0..M] = if 0 < s[1, clamp(z), 1] then sum[d in z..1] x[d] else 1"),
    ("parts of parts under a clamp", "param N >= 1; input x[N, N], y; w[l in 0..N, i in 0..N] = max[j in l - 1..=l + 1] y; a[i in 0..N] = x[1, 1]; g[i, j in 0..N - 1] = sum[k, k % 2 == 1] (k + x[i, clamp(2*j)]) * a[k]"),
    ("a zeroth power of a quotient", "input x[N]; f[i] = (i / x[i])^0"),
    ("a repeated term of an empty range", "input x[N + 1]; f[i in 0..N] = sum[j in 0..=i] x[i + 1]^2"),
    ("a largest value of equal terms", "input x[N + 1]; f[i in 0..N] = max[k in i..N] x[i]"),
    ("a bound on a size by one that is not needed", "param K >= 1, T >= 3*K - 2; input x[N, C, T]; f = sum[n, c, t] x[n, c, t]"),
    ("a size that is bounded and fixed", "param N >= 1 = 5; input x[N]; w = sum[z] x[z]"),
    ("a sum of nothing in front of an infinite value", "param M >= 2; input h[M]; w[i in 0..M] = sum[j in 0..i, i > M] min[z in 2..2] h[i]"),
    ("equal factors after substitution", "input x[3]; f[i in 0..1] = cbrt(3); g = min[i, z] x[1] * f[i] * f[z]"),
    ("a common part under a condition with several cases", "input x[N + 1]; y[i in 0..N] = if i == 0 or i == 2 then 0 else exp(x[i]) * x[i - 1] * x[i + 1]"),
    (
        "points of one-point ranges inside a sum",
        "param M >= 1; input dy; t[i in 0..9, k in 0..5] = \
         if k % 2 == 0 and k <= 1 then sum[j in max(0, 2*i + 2*(k // 2) - M)..=min(k // 2, 2*i + 2*(k // 2) - M + 1)] dy else 0",
    ),
    ("a range over the smaller of two sizes", "input x[min(N, M)], w[N], v[M]; y[i in 0..min(N, M)] = x[i] * w[i] * v[i]"),
    ("an index below its own remainder", "input y[5]; x[i in 0..5] = if i < i % 2 then y[i] else y[0]"),
    ("two quotients of an index of one value", "input y[6]; x[i in 0..1] = y[i // 2 + i // 3]"),
    ("a remainder above twice its index", "input y[6]; x[i in 0..3] = if i % 2 >= 2*i then y[i % 3] else 0"),
    (
        "a quotient that bounds itself",
        "input y[6]; x[i in 0..2, j in 0..6] = if j % 2 == 1 and j // 2 >= 3*(j // 2) // 2 then y[3*i + j // 2] else 0",
    ),
    ("two quotients of a last index", "param N >= 1; input y[N]; x[i in 0..N] = if i >= N - 1 then y[i // 2 + i // 3] else 0"),
    ("quotients of negative numbers", "input y[4, 8]; x[i in 0..7, j in 0..1] = y[(-2*j - 2) // 3 + (2*j - i) // 2 + 4, i]"),
    (
        "a sum that reads outside of a hole in its index, which a remainder folds",
        "input a[16], y[6]; f[i in 0..16] = if 3 <= i // 2 < 5 then a[i] else sum[j in 0..2] y[i % 10]^2 * a[j]",
    ),
    (
        "an extent that agrees with a largest size",
        "input y[max(3, K), max(K, N)]; w[i in 0..K] = i; a[i] = sum[k] w[i] * w[k] * y[i, 0]; b[j] = a[j]^2",
    ),
    ("a guarded factor", "param n >= 2; input x[n, n]; f = prod[j in 0..n] (if 0 <= j - 1 then x[1, 1] else 1)"),
];

#[test]
fn nasty_programs_keep_every_promise() {
    let mut wrong = Vec::new();
    for (number, (name, line)) in CASES.iter().enumerate() {
        let text = line.replace("; ", "\n");
        for special in [false, true] {
            let seed = number as u64;
            let plan = Plan { seed, special, small: false, runs: 4, infinities: special, jacobian: true, second: true };
            match catch_unwind(AssertUnwindSafe(|| check(&text, plan))) {
                Ok(Ok(Verdict::Held { runs, .. })) if runs > 0 => {}
                Ok(Ok(other)) => wrong.push(format!("{name}: {line}\n    {other:?}")),
                Ok(Err(failures)) => {
                    let kinds = failures.iter().map(|f| format!("\n    {}: {}\n{}", f.kind, f.detail, f.derivative));
                    wrong.push(format!("{name}: {line}{}", kinds.collect::<String>()));
                }
                Err(_) => wrong.push(format!("{name}: {line}\n    panicked")),
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n\n"));
}

/// The results of a program at these sizes.
fn evaluate(text: &str, sizes: &[(&str, i64)], data: &[(&str, Array)]) -> Vec<(String, Array)> {
    let program = resolve(&syntax::parse(text).unwrap(), &[]).unwrap().program;
    run(&program, sizes, data)
}

fn run(program: &gradix::Program, sizes: &[(&str, i64)], data: &[(&str, Array)]) -> Vec<(String, Array)> {
    let given = sizes.iter().map(|(name, size)| (name.to_string(), Int::from(*size))).collect();
    let known = gradix::domain::sizes::Known { given, shapes: Vec::new() };
    let sizes = gradix::domain::sizes::bind(program, &known, &Default::default()).unwrap();
    let data: HashMap<String, Array> = data.iter().map(|(name, array)| (name.to_string(), array.clone())).collect();
    interp(program, &sizes, &data, Dtype::F64).unwrap().results
}

fn derivative(text: &str) -> gradix::Program {
    derive(&resolve(&syntax::parse(text).unwrap(), &[]).unwrap().program, &Options::default()).unwrap().program
}

#[track_caller]
fn assert_close(found: &Array, expected: &[f64]) {
    assert_eq!(found.data.len(), expected.len());
    for (a, b) in found.data.iter().zip(expected) {
        assert!((a - b).abs() <= 1e-12 * (1.0 + b.abs()), "found {:?}, expected {expected:?}", found.data);
    }
}

/// `Π x` is the polynomial `x₀x₁x₂x₃`: its derivatives of both orders are products of the others.
#[test]
fn products_are_derived_exactly_in_the_presence_of_zeros() {
    let text = "input x[N]\nf = prod[i] x[i]";
    let first = derivative(text);
    let second = derive(&first, &Options::default()).unwrap().program;
    for x in [[2.0, 3.0, 5.0, 7.0], [2.0, 0.0, 5.0, 7.0], [0.0, 3.0, 0.0, 7.0], [0.0, 0.0, 0.0, 7.0], [0.0; 4]] {
        let without = |skipped: &[usize]| (0..4).filter(|i| !skipped.contains(i)).map(|i| x[i]).product::<f64>();
        let x_array = Array::new(vec![4], x.to_vec());
        let data = [("x", x_array.clone()), ("df", Array::scalar(1.5))];
        assert_close(&evaluate(text, &[("N", 4)], &data)[0].1, &[without(&[])]);
        let gradient: Vec<f64> = (0..4).map(|i| 1.5 * without(&[i])).collect();
        assert_close(&run(&first, &[("N", 4)], &data)[0].1, &gradient);
        for row in 0..4 {
            let mut seed = vec![0.0; 4];
            seed[row] = 1.0;
            let data = [data[0].clone(), data[1].clone(), ("ddx", Array::new(vec![4], seed))];
            let hessian: Vec<f64> = (0..4).map(|i| if i == row { 0.0 } else { 1.5 * without(&[i, row]) }).collect();
            let found = run(&second, &[("N", 4)], &data);
            assert_close(&found[0].1, &hessian);
            assert_close(&found[1].1, &[without(&[row])]);
        }
    }
}

#[test]
fn ties_share_the_derivative_evenly() {
    let x = Array::new(vec![4], vec![1.0, 3.0, 3.0, 3.0]);
    let data = [("x", x), ("df", Array::scalar(1.0))];
    let largest = run(&derivative("input x[N]\nf = max[i] x[i]"), &[("N", 4)], &data);
    assert_close(&largest[0].1, &[0.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0]);
    let larger = run(&derivative("input x[N]\nf = max(x[1], x[2])"), &[("N", 4)], &data);
    assert_close(&larger[0].1, &[0.0, 0.5, 0.5, 0.0]);
}

#[test]
fn an_unread_element_has_derivative_0() {
    let data = [("x", Array::new(vec![6], vec![1.0; 6])), ("df", Array::new(vec![3], vec![1.0; 3]))];
    let strided = run(&derivative("input x[2*N]\nf[i in 0..N] = x[2*i]"), &[("N", 3)], &data);
    assert_close(&strided[0].1, &[1.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
    let data = [("x", Array::new(vec![5], vec![1.0; 5])), ("df", Array::new(vec![3], vec![1.0; 3]))];
    let shifted = run(&derivative("input x[N + 2]\nf[i in 0..N] = x[i + 2]"), &[("N", 3)], &data);
    assert_close(&shifted[0].1, &[0.0, 0.0, 1.0, 1.0, 1.0]);
}

/// The example of section 7 of the paper with the derivatives printed there.
const PAPER: &str = "input a[3, 5], b[4, 5], c[3, 3], d[8]
f[i in 0..3, j in 0..4] = exp(-sum[k in 0..5] ((a[i, k] + b[j, k])**2 * c[i, i] + d[i + k]**3))";
const PRINTED: &str = "input a[3, 5], b[4, 5], c[3, 3], d[8], df[3, 4]
da[p in 0..3, q in 0..5] = sum[z in 0..=3] (-(df[p, z] * exp(-sum[k in 0..=4] ((a[p, k] + b[z, k])**2 * c[p, p] + d[p + k]**3)))) * c[p, p] * 2 * (a[p, q] + b[z, q])**(2 - 1)
db[p in 0..4, q in 0..5] = sum[z in 0..=2] (-(df[z, p] * exp(-sum[k in 0..=4] ((a[z, k] + b[p, k])**2 * c[z, z] + d[z + k]**3)))) * c[z, z] * 2 * (a[z, q] + b[p, q])**(2 - 1)
dc[p in 0..3, q in 0..3] = if p + -q == 0 then sum[y in 0..=4] (sum[z in 0..=3] (a[q, y] + b[z, y])**2 * (-(df[q, z] * exp(-sum[k in 0..=4] ((a[q, k] + b[z, k])**2 * c[q, q] + d[q + k]**3))))) else 0
dd[p in 0..8] = sum[y in max(0, -2 + p)..=min(4, p)] (sum[z in 0..=3] (-(df[p + -y, z] * exp(-sum[k in 0..=4] ((a[p + -y, k] + b[z, k])**2 * c[p + -y, p + -y] + d[p + -y + k]**3)))) * 3 * d[p]**(3 - 1))";

#[test]
fn the_derivatives_printed_in_the_paper_are_ours() {
    let shapes = [("a", vec![3, 5]), ("b", vec![4, 5]), ("c", vec![3, 3]), ("d", vec![8]), ("df", vec![3, 4])];
    let filled = shapes.map(|(name, shape): (&str, Vec<usize>)| {
        let count = shape.iter().product();
        let data = (0..count).map(|place| 0.6 * support::noise::value(7, false, name, place)).collect();
        (name, Array::new(shape, data))
    });
    let expected = evaluate(PRINTED, &[], &filled);
    let ours = derivative(PAPER);
    let inline = syntax::print(&print::ast(&ours, true).unwrap());
    let inline = resolve(&syntax::parse(&inline).unwrap(), &[]).unwrap().program;
    for program in [&ours, &inline] {
        let found = run(program, &[], &filled);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["da", "db", "dc", "dd"]);
        for ((_, found), (_, expected)) in found.iter().zip(&expected) {
            assert_close(found, &expected.data);
        }
    }
}
