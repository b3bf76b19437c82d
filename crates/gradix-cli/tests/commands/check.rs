//! `gradix check`

use crate::{data, example, gradix, prints, refuses, text};

#[test]
fn every_derivative_has_an_aligned_line() {
    let output = gradix(&["check", &example("paper"), "--quiet"]);
    let lines: Vec<Vec<&str>> =
        prints(&output).lines().map(|line| line.split("  ").filter(|c| !c.is_empty()).collect()).collect();
    let first: Vec<(&str, &str)> = lines.iter().map(|line| (line[0].trim(), line[2].trim())).collect();
    assert_eq!(first, [("da", "[3, 5]"), ("db", "[4, 5]"), ("dc", "[3, 3]"), ("dd", "[7]")]);
    let place = |line: &str| line.find(" ok").unwrap();
    let places: Vec<usize> = prints(&output).lines().map(place).collect();
    assert!(places.iter().all(|found| *found == places[0]), "{}", prints(&output));
}

#[test]
fn second_derivatives_are_checked_too() {
    let output = gradix(&["check", &example("rbf"), "--order", "2"]);
    let lines: Vec<&str> = data(&output).lines().collect();
    assert_eq!(lines.iter().filter(|line| line.starts_with("1: d")).count(), 3);
    assert_eq!(lines.iter().filter(|line| line.starts_with("2: d")).count(), 4);
    assert!(lines.iter().all(|line| line.ends_with("  ok")), "{}", data(&output));
    assert!(text(&output.stderr).starts_with("sizes: N = 3, M = 4, D = 5\n"));
}

#[test]
fn a_derivative_that_is_out_of_tolerance_fails() {
    let output = gradix(&["check", "-e", "input x[N]; y[i] = exp(sin(3*x[i]))", "--tol", "1e-300", "--quiet"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).starts_with("dx  by x  [3]  ") && text(&output.stdout).contains("FAILED at ["));
    assert_eq!(text(&output.stderr), "error: 1 derivative of 1 differs from numeric differentiation\n");
}

#[test]
fn seeds_change_the_data() {
    let run = |seed: &str| gradix(&["check", "-e", "input x[N]; y[i] = exp(x[i])", "--seed", seed, "--quiet"]);
    assert_eq!(prints(&run("1")), prints(&run("1")));
    assert_ne!(prints(&run("1")), prints(&run("2")));
}

#[test]
fn inputs_are_drawn_from_where_the_results_are_finite() {
    let output = gradix(&["check", "-e", "input x[N]; y[i] = log(x[i])"]);
    assert!(data(&output).ends_with("ok\n"));
    assert!(text(&output.stderr).contains("inputs are drawn from (0, 1)"), "{}", text(&output.stderr));
}

#[test]
fn a_function_without_numeric_derivatives_is_not_called_right() {
    let output = gradix(&["check", "-e", "input x[N]; y[i] = log(-1 - x[i]^2)", "--quiet"]);
    assert!(prints(&output).contains("not checked"), "{}", prints(&output));
}

#[test]
fn arguments_and_sizes_can_be_chosen() {
    let output = gradix(&["check", &example("matmul"), "--wrt", "a", "--param", "K=2"]);
    assert!(data(&output).starts_with("da  by a  [3, 2]  "), "{}", data(&output));
    assert!(refuses(&gradix(&["check", &example("matmul"), "--wrt", "q", "--quiet"]), 1).contains("'q'"));
}

#[test]
fn a_derivative_that_is_0_everywhere_is_not_called_right() {
    let check = |text: &str| gradix(&["check", "--strict", "-e", text]);
    // Whole numbers, and larger sizes, show what small random ones do not.
    let embedding = check("input t[V, D], row[N]; y[i, d] = sum[v] (if row[i] == v then t[v, d]^2 else 0)");
    assert!(data(&embedding).starts_with("dt    by t    [3, 4]  ") && !data(&embedding).contains("not checked"));
    let delay = check("param T; input x[T]; y[i in 0..T] = if i >= 8 then x[i - 8]^2 else 0");
    assert!(text(&delay.stderr).contains("sizes: T = 12") && data(&delay).ends_with("  ok\n"), "{}", data(&delay));
    assert_eq!(
        prints(&gradix(&["check", "--strict", "-qe", "input x[N]; y[i] = floor(x[i])"])),
        "dx  by x  [3]  0  ok\n"
    );
    let never = "input x[N]; y[i] = if x[i] > 5 then x[i]^2 else 0";
    assert_eq!(
        prints(&gradix(&["check", "-qe", never])),
        "dx  by x  [3]  0  not checked: it is 0 everywhere at these sizes and data\n"
    );
    let strict = gradix(&["check", "--strict", "-qe", never]);
    assert_eq!(
        (strict.status.code(), text(&strict.stderr)),
        (Some(1), "error: 1 of 1 derivative could not be checked\n")
    );
}
