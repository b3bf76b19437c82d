//! The confirmation of derivatives itself: right ones pass, and wrong ones fail.

use gradix::Int;
use gradix::derive::{Derived, Mode, Options, derive};
use gradix::domain::sizes::{Known, choose};
use gradix::program::Places;
use gradix::program::expr::Rewriter;
use gradix::program::{BinaryOp, Expr, ExprId, Program};
use gradix_run::confirm::Finding;
use gradix_run::{Array, Dtype, confirm, gradient, interp, random};
use std::collections::HashMap;

/// Small programs, each with something that an index set has to get right.
const PROGRAMS: [(&str, &str); 14] = [
    ("stride", "input x[N], w[K]; y[i] = sum[k] x[2*i + k] * w[k]"),
    ("every third", "input x[3*N]; y[i in 0..N] = x[3*i + 1]^2"),
    ("diagonal", "input x[N, N], v[N]; y[i] = x[i, i] * v[i]"),
    ("diagonal of a sum", "input a[N, N], b[N]; f[i, j] = a[i, i] * b[j] + a[i, j]"),
    ("two coefficients", "input x[5*N]; y[i in 0..N, j in 0..N] = x[2*i + 3*j]^2"),
    ("quotient", "input x[N]; y[i in 0..3*N] = x[i // 3]"),
    ("remainder", "input x[2, H]; y[i in 0..2*H] = x[i % 2, i // 2]^2"),
    ("guard", "input x[N]; y[i] = if i > 0 then x[i] * x[i - 1] else x[i]"),
    ("triangle", "input a[N, N], x[N]; y[i] = sum[j in 0..=i] a[i, j] * x[j]"),
    ("condition of a sum", "input a[N, M]; y[i] = sum[j, (i + j) % 2 == 0] a[i, j]^2"),
    ("pad", "input x[N], w[3]; y[i in 0..N] = sum[k in 0..3] pad(x[i + k - 1], 0) * w[k]"),
    ("wrap", "input x[N]; y[i in 0..N] = x[wrap(i + 1)] * x[wrap(i - 1)]"),
    ("max", "input x[N, M]; m[i] = max[j in i..M] x[i, j]^2"),
    ("nested sum", "input a[I, K], b[J, K]; f[i, j] = exp(-sum[k] (a[i, k] - b[j, k])^2)"),
];

#[test]
fn right_derivatives_pass_in_every_mode() {
    for (name, text) in PROGRAMS {
        for mode in [Mode::Reverse, Mode::Forward, Mode::Jacobian] {
            passes(name, text, of_mode(mode));
        }
        passes(name, text, Options { with_results: true, ..Options::default() });
    }
    for text in [
        "input x[N], w[K]; f = sum[i in 0..=N - K] tanh(sum[k] x[i + k] * w[k])^2",
        "input x[N]; f = sum[i] x[i]^3 * x[N - 1 - i]; g = prod[i] x[i]",
        "input x[N, N], v[N], unused; f = max[i] (x[i, i] * v[i]^2) + sum[j] v[j]",
    ] {
        passes("second order", text, of_mode(Mode::Hessian));
    }
}

fn passes(name: &str, text: &str, options: Options) {
    let program = resolved(text);
    let derivative = derive(&program, &options).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
    let confirmed = confirm(&program, &derivative, &options)
        .unwrap_or_else(|mismatch| panic!("{name}: {}", mismatch.report(text, &options, &[], &derivative.program)));
    assert!(confirmed.sizes.len() >= 3 && confirmed.doubtful == 0, "{name}: {confirmed}");
    // A subscript that wraps around has a piece for either side, also where it leaves its tensor at one side only.
    assert!(confirmed.unreached.is_empty() || name == "wrap", "{name}: {confirmed}");
}

#[test]
fn every_mutation_that_changes_values_is_found() {
    let (mut found, mut missed, mut equal) = (0, Vec::new(), 0);
    for (name, text) in PROGRAMS {
        for mode in [Mode::Reverse, Mode::Forward, Mode::Jacobian] {
            let (program, options) = (resolved(text), of_mode(mode));
            let derived = derive(&program, &options).unwrap();
            for (what, mutant) in mutants(&derived.program) {
                let (derivative, mutant) = (&derived.program, Derived { program: mutant, ..derived.clone() });
                match confirm(&program, &mutant, &options) {
                    Err(mismatch) if same_values(&program, derivative, &mutant.program, mismatch.sizes.clone()) => {
                        panic!("{name}, {mode:?}, {what} is right: {mismatch:?}")
                    }
                    Err(_) => found += 1,
                    Ok(_) if same_values(&program, derivative, &mutant.program, Vec::new()) => equal += 1,
                    Ok(confirmed) => missed.push(format!("{name}, {mode:?}, {what}: {confirmed}")),
                }
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
    assert!(found >= 300 && equal < found / 3, "{found} were found, {equal} change nothing");
}

/// A derivative broken in all the ways in which one index set or one term can be wrong.
fn mutants(derivative: &Program) -> Vec<(String, Program)> {
    let mut mutants = Vec::new();
    for number in 0..derivative.definitions.len() {
        let definition = &derivative.definitions[number];
        for place in 0..definition.conditions.len() {
            let mut mutant = derivative.clone();
            mutant.definitions[number].conditions.remove(place);
            mutants.push(("a condition of a reduction dropped".to_string(), mutant));
        }
        for place in definition.rank..definition.indices.len() {
            for (low, high) in [(-1, 0), (0, 1), (1, 0), (0, -1)] {
                let mut mutant = derivative.clone();
                let range = &mut mutant.definitions[number].indices[place].range;
                range.low.iter_mut().for_each(|bound| *bound = bound.shift(low));
                range.high.iter_mut().for_each(|bound| *bound = bound.shift(high));
                mutants.push((format!("a range moved by {low}, {high}"), mutant));
            }
        }
        for id in derivative.exprs.postorder(definition.body) {
            for (what, replacement) in replacements(&derivative.exprs[id]) {
                let mut mutant = derivative.clone();
                let new = match replacement {
                    Replacement::Operand(operand) => operand,
                    Replacement::Node(node) => mutant.exprs.add(node),
                };
                let body = Rewriter::with([(id, new)]).copy(&mut mutant.exprs, definition.body);
                mutant.definitions[number].body = body;
                mutants.push((what.to_string(), mutant));
            }
        }
    }
    mutants
}

enum Replacement {
    Operand(ExprId),
    Node(Expr),
}

fn replacements(node: &Expr) -> Vec<(&'static str, Replacement)> {
    match node {
        Expr::Select(_, a, b) => vec![
            ("a condition dropped", Replacement::Operand(*a)),
            ("a condition that never holds", Replacement::Operand(*b)),
        ],
        Expr::Binary(BinaryOp::Add | BinaryOp::Sub, a, _) => vec![("a term dropped", Replacement::Operand(*a))],
        Expr::Binary(BinaryOp::Mul, a, _) => vec![("a factor dropped", Replacement::Operand(*a))],
        Expr::Access(tensor, subscripts) => {
            let shifted = |dimension: usize, by: i64| {
                let mut subscripts = subscripts.clone();
                subscripts[dimension] = subscripts[dimension].shift(by);
                ("a subscript shifted", Replacement::Node(Expr::Access(*tensor, subscripts)))
            };
            (0..subscripts.len()).flat_map(|dimension| [shifted(dimension, -1), shifted(dimension, 1)]).collect()
        }
        Expr::Binary(..) | Expr::Constant(_) | Expr::Index(_) | Expr::Unary(..) => Vec::new(),
    }
}

/// Whether two derivatives agree on random data at given sizes, or else at some that the confirmation has not chosen.
fn same_values(program: &Program, right: &Program, other: &Program, given: Vec<(String, Int)>) -> bool {
    let sizes = choose(program, &Known { given, shapes: Vec::new() }, &Places::default()).unwrap();
    let evaluated = |derivative: &Program| -> Option<Vec<(String, Array)>> {
        let own: Vec<Int> = gradient::carried(program, &sizes, derivative).ok()?;
        let array =
            |id| random::array(9, &derivative[id].name, gradient::shape(derivative, &own, id).unwrap()).unwrap();
        let data: HashMap<String, Array> =
            derivative.inputs().map(|id| (derivative[id].name.clone(), array(id))).collect();
        Some(interp(derivative, &own, &data, Dtype::F64).ok()?.results)
    };
    let (right, other) = (evaluated(right).unwrap(), evaluated(other));
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 || a.is_nan() && b.is_nan();
    other.is_some_and(|other| {
        right.iter().zip(&other).all(|((_, a), (_, b))| a.shape == b.shape && a.data.iter().zip(&b.data).all(close))
    })
}

/// A derivative that says something else than it should.
fn wrong(program: &Program, text: &str) -> Derived {
    Derived { program: resolved(text), ..derive(program, &Options::default()).unwrap() }
}

#[test]
fn a_wrong_element_is_named() {
    let text = "input x[N]; y[i in 0..N - 1] = x[i + 1]^2";
    let program = resolved(text);
    let wrong = wrong(&program, "input x[N], dy[N - 1]; dx[i in 0..N] = if i >= 1 then 2 * dy[i - 1] * x[i] else 0.5");
    let mismatch = confirm(&program, &wrong, &Options::default()).unwrap_err();
    let element = Finding::Element { derivative: "dx".into(), index: vec![0], found: 0.5, expected: 0.0 };
    assert_eq!(mismatch.finding, element);
    let report = mismatch.report(text, &of_mode(Mode::Reverse), &[("M".into(), 3.into())], &wrong.program);
    let size = format!("at N = {}: dx[0] is 0.5 and should be 0\n", mismatch.sizes[0].1);
    let line = format!("gradix {} derive --mode reverse --param M=3\n", env!("CARGO_PKG_VERSION"));
    for part in [size.as_str(), &line, text, "else 0.5"] {
        assert!(report.contains(part), "no '{part}' in\n{report}");
    }
}

#[test]
fn shapes_and_reads_outside_are_found() {
    let program = resolved("input x[N]; y[i] = x[i]^2");
    let finding = |text: &str| confirm(&program, &wrong(&program, text), &Options::default()).unwrap_err().finding;
    let longer = finding("input x[N], dy[N]; dx[i in 0..N + 1] = if i < N then 2 * dy[i] * x[i] else 0");
    assert!(matches!(longer, Finding::Shape { .. }), "{longer}");
    let refused = finding("param N >= 2; input x[N], dy[N]; dx[i] = 2 * dy[i] * x[i]");
    assert!(matches!(refused, Finding::Failure(_)), "{refused}");
}

#[test]
fn what_is_not_reached_or_not_judged_is_told() {
    let told = |text: &str| {
        let program = resolved(text);
        let derivative = derive(&program, &Options::default()).unwrap();
        confirm(&program, &derivative, &Options::default()).unwrap()
    };
    let far = told("input x[N], z[N]; y[i] = if i > 100 then z[i] else x[i]");
    assert_eq!(far.unreached, ["z[i] in y"]);
    assert!(far.to_string().ends_with("; never evaluated: z[i] in y"), "{far}");
    let infinite = told("input x[N]; y[i] = log(x[i] - x[i])");
    assert!(infinite.doubtful > 0 && infinite.to_string().ends_with(" elements not judged"), "{infinite}");
    let large = told("input x[3000, 3000]; f = sum[i, j] x[i, j]^2");
    assert!(large.cut_short && large.to_string() == "not verified: the sizes are too large", "{large}");
}

fn of_mode(mode: Mode) -> Options {
    Options { mode, ..Options::default() }
}

fn resolved(text: &str) -> Program {
    let resolved = gradix::syntax::parse(text).and_then(|ast| gradix::resolve(&ast, &[]));
    resolved.unwrap_or_else(|errors| panic!("{text}: {errors:?}")).program
}
