//! Every function of the virtual machine against the oracle, in units of the last place.

use crate::builder::{Builder, count, index, lanes, loops, plain};
use crate::machine::run_at;
use gradix::Int;
use gradix::nest::Work;
use gradix::program::{BinaryOp, Expr, ExprId, UnaryOp};
use gradix_run::vm::Level;
use std::collections::HashMap;

#[test]
fn every_function_is_within_three_ulps_of_the_oracle() {
    let special = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1e-310, 1e-20, 1e20, -1e20, 1e300, 709.5, -744.0, -800.0, 1e10];
    let ends = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let spread = (0..400).map(|i| (i as f64 * 0.618).sin() * 10f64.powi(i % 9 - 4));
    let data: Vec<f64> = special.into_iter().chain(ends).chain(spread).collect();
    for (op, level) in UnaryOp::ALL.iter().flat_map(|op| LEVELS.map(|level| (op, level))) {
        let (wide, single) = apply(level, &data, &data, |nest, a, _| nest.nest.exprs.add(Expr::Unary(*op, a)));
        for (at, x) in data.iter().enumerate() {
            let expected = op.apply(*x);
            assert!(ulps(wide[at], expected) <= 3.0, "{}({x}) is {expected}, not {}", op.name(), wide[at]);
            let x = f64::from(*x as f32);
            let expected = op.apply(x);
            let error = ulps32(single[at], expected);
            assert!(error <= 2.0, "{}({x}) is {expected}, not {} ({error} ulps)", op.name(), single[at]);
        }
    }
}

#[test]
fn every_operation_on_two_values_is_within_three_ulps_of_the_oracle() {
    let values =
        [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 7.25, 1e-3, 1e5, -2.5, 0.3, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let left: Vec<f64> = values.iter().flat_map(|a| values.iter().map(move |_| *a)).collect();
    let right: Vec<f64> = values.iter().flat_map(|_| values).collect();
    let operations = [
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Mul,
        BinaryOp::Div,
        BinaryOp::Pow,
        BinaryOp::Min,
        BinaryOp::Max,
        BinaryOp::Atan2,
        BinaryOp::Hypot,
    ];
    for (op, level) in operations.into_iter().flat_map(|op| LEVELS.map(|level| (op, level))) {
        let (wide, single) = apply(level, &left, &right, |nest, a, b| nest.binary(op, a, b));
        for at in 0..left.len() {
            let (a, b) = (left[at], right[at]);
            let expected = op.apply(a, b);
            assert!(ulps(wide[at], expected) <= 3.0, "{a} {op:?} {b} is {expected}, not {}", wide[at]);
            let expected = op.apply(f64::from(a as f32), f64::from(b as f32));
            assert!(ulps32(single[at], expected) <= 2.0, "{a} {op:?} {b} is {expected}, not {}", single[at]);
        }
    }
}

const LEVELS: [Level; 3] = [Level::Baseline, Level::Avx2, Level::Avx512];

/// A function of two inputs at every place.
fn apply(
    level: Level,
    a: &[f64],
    b: &[f64],
    make: impl Fn(&mut Builder, ExprId, ExprId) -> ExprId,
) -> (Vec<f64>, Vec<f32>) {
    let mut nest = Builder::new(1, Work::single());
    let count_of = a.len() as i64;
    let (left, _) = nest.input("a", &[count_of]);
    let (right, _) = nest.input("b", &[count_of]);
    let y = nest.output(&[count_of]);
    let i = nest.variable();
    let (left, right) = (nest.read(left, &[index(i)]), nest.read(right, &[index(i)]));
    let body = make(&mut nest, left, right);
    nest.leaf(plain(y, &[index(i)], loops(&[(i, count(count_of))]), body, lanes(0)));
    let inputs = HashMap::from([("a".to_string(), a.to_vec()), ("b".to_string(), b.to_vec())]);
    let sizes = [Int::from(1)];
    let wide = run_at::<f64>(&nest.nest, &sizes, &inputs, 1, level).remove("y").unwrap();
    (wide, run_at::<f32>(&nest.nest, &sizes, &inputs, 1, level).remove("y").unwrap())
}

/// How far apart two numbers are; 0 if both are NaN.
fn ulps(found: f64, expected: f64) -> f64 {
    if found == expected || (found.is_nan() && expected.is_nan()) {
        return 0.0;
    }
    let unit = (expected.abs().to_bits() + 1).max(1);
    let unit = f64::from_bits(unit) - expected.abs();
    (found - expected).abs() / unit
}

/// The error of an f32 in units of its last place.
fn ulps32(found: f32, expected: f64) -> f64 {
    let rounded = expected as f32;
    if found == rounded || (found.is_nan() && rounded.is_nan()) {
        return 0.0;
    }
    let unit = f32::from_bits(rounded.abs().to_bits() + 1) - rounded.abs();
    (f64::from(found) - expected).abs() / f64::from(unit)
}
