//! Numeric differentiation finds wrong derivatives and passes right ones.

use gradix::derive::Derived;
use gradix::program::Program;
use gradix_run::check;
use gradix_run::check::{Report, Settings};

fn program(text: &str) -> Program {
    gradix::resolve(&gradix::syntax::parse(text).unwrap(), &[]).unwrap().program
}

fn sizes(program: &Program) -> Vec<gradix::Int> {
    gradix::domain::sizes::choose(program, &Default::default(), &Default::default()).unwrap()
}

fn checked(program: &Program, gradient: &Derived, settings: Settings) -> Report {
    check(program, gradient, &sizes(program), settings, &|_, _| {}).unwrap()
}

fn right(text: &str) -> Report {
    let program = program(text);
    checked(&program, &gradix::derive(&program, &Default::default()).unwrap(), Settings::default())
}

/// Checks `derivative` as if it were what `derive` had given for `text`.
fn wrong(text: &str, derivative: &str, settings: Settings) -> Report {
    let function = program(text);
    let mut gradient = gradix::derive(&function, &Default::default()).unwrap();
    gradient.program = program(derivative);
    checked(&function, &gradient, settings)
}

#[test]
fn right_derivatives_pass() {
    let report = right("input x[N, D], w[D]\ny[i] = exp(sum[d] x[i, d] * w[d])\ns = sum[i] sin(y[i])");
    assert_eq!(report.interval, (-1.0, 1.0));
    assert_eq!(report.comparisons.len(), 2);
    for comparison in &report.comparisons {
        assert!(comparison.passed && comparison.skipped == 0 && comparison.error < 1e-7, "{comparison:?}");
    }
}

#[test]
fn a_wrong_factor_fails_and_the_element_is_named() {
    let report =
        wrong("input x[N]\nf = sum[i] x[i]^3", "input x[N], df\ndx[i] = 2.9 * df * x[i]^2", Settings::default());
    let comparison = &report.comparisons[0];
    assert!(!comparison.passed && comparison.error > 0.01, "{comparison:?}");
    let worst = comparison.worst.as_ref().unwrap();
    assert!(worst.index.len() == 1 && (worst.symbolic / worst.numeric - 2.9 / 3.0).abs() < 1e-6, "{worst:?}");
}

#[test]
fn one_wrong_element_fails() {
    let derivative = "input x[N], df\ndx[i] = if i == 2 then 0 else 2 * df * x[i]";
    let report = wrong("input x[N]\nf = sum[i] x[i]^2", derivative, Settings::default());
    assert!(!report.comparisons[0].passed);
    assert_eq!(report.comparisons[0].worst.as_ref().unwrap().index, [2]);
}

#[test]
fn a_derivative_that_is_not_a_number_fails() {
    let derivative = "input x[N], df\ndx[i] = 2 * df * x[i] + 0 / (x[i] - x[i])";
    let report = wrong("input x[N]\nf = sum[i] x[i]^2", derivative, Settings::default());
    assert!(!report.comparisons[0].passed && report.comparisons[0].error == f64::INFINITY);
}

#[test]
fn the_tolerance_can_be_given() {
    let (text, derivative) = ("input x[N]\nf = sum[i] x[i]^3", "input x[N], df\ndx[i] = 2.9 * df * x[i]^2");
    assert!(
        wrong(text, derivative, Settings { seed: 0, tolerance: Some(0.1), ..Settings::default() }).comparisons[0]
            .passed
    );
    assert!(
        !wrong(text, derivative, Settings { seed: 0, tolerance: Some(0.01), ..Settings::default() }).comparisons[0]
            .passed
    );
}

#[test]
fn kinks_are_skipped_and_counted() {
    let at = gradix_run::random::array(0, "x", vec![4]).unwrap().data[1];
    let report = right(&format!("param N = 4\ninput x[N]\ny[i] = abs(x[i] - ({at:?}))"));
    let comparison = &report.comparisons[0];
    assert!(comparison.passed && comparison.skipped == 1 && comparison.is_doubtful(), "{comparison:?}");
}

#[test]
fn ties_and_steps_are_no_kinks() {
    let report = right("input x[N]\ny[i] = max(x[i], x[i]) + abs(x[i] - x[i]) + floor(3 * x[i])");
    assert!(report.comparisons[0].passed && report.comparisons[0].skipped == 0, "{report:?}");
}

#[test]
fn inputs_are_moved_to_where_the_results_are_finite() {
    let report = right("input x[N]\ny[i] = log(x[i]) * sqrt(x[i])");
    assert!(report.interval == (0.0, 1.0) && report.comparisons[0].passed, "{report:?}");
    let report = right("input x[N]\ny[i] = acosh(x[i])");
    assert!(report.interval == (1.0, 2.0) && report.comparisons[0].passed, "{report:?}");
}

#[test]
fn a_function_that_is_nowhere_finite_is_doubtful() {
    let report = right("input x[N]\ny[i] = log(-1 - x[i]^2)");
    assert!(report.comparisons[0].is_doubtful() && report.comparisons[0].skipped == 3, "{report:?}");
}

#[test]
fn arguments_that_nothing_depends_on_have_derivative_zero() {
    let report = right("input x[N], t\ny[i] = x[i] * 2");
    assert!(report.comparisons.iter().all(|c| c.passed && c.skipped == 0 && c.error < 1e-7), "{report:?}");
}

#[test]
fn what_stop_holds_does_not_move() {
    for text in [
        "input x[N]\ny[i] = x[i] * stop(x[i]^2)",
        "input x[N, M]\ny[i in 0..N] = x[i, 0] * stop(sum[j] sin(x[i, j])) + stop(mean[i, j] x[i, j])^2 * x[i, 0]",
        "input x[N], a[N]\nh[t in 0..N] = a[t] * stop(pad(h[t - 1], 1)) + x[t] * pad(h[t - 1], 2)",
    ] {
        let report = right(text);
        let fine = |row: &check::Comparison| row.passed && row.skipped == 0 && !row.vacuous;
        assert!(report.comparisons.iter().all(fine), "{text}\n{report:?}");
    }
    let moved = "input x[N], dy[N]\ndx[i] = 3 * dy[i] * x[i]^2";
    let report = wrong("input x[N]\ny[i] = x[i] * stop(x[i]^2)", moved, Settings::default());
    assert!(!report.comparisons[0].passed);
}
