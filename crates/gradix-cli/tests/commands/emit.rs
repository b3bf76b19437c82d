//! `gradix emit` and `gradix explain --schedule`

use std::process::Command;

use crate::{example, gradix, prints, refuses, scratch, text};

#[test]
fn c_is_printed_for_results_and_derivatives() {
    let results = gradix(&["emit", &example("rbf"), "--values"]);
    assert!(prints(&results).contains("void gx_kernel_0(const int64_t *size"), "{}", prints(&results));
    let derivatives = gradix(&["emit", &example("rbf"), "--target", "c", "--wrt", "x"]);
    assert!(prints(&derivatives).contains(" dx[N, D], result"), "{}", prints(&derivatives));
    assert!(prints(&derivatives).contains(" y[N], result") && !prints(&derivatives).contains(" dz["));
}

#[test]
fn what_is_emitted_is_c() {
    for dtype in ["f64", "f32"] {
        let (source, object) = (scratch(&format!("emitted-{dtype}.c")), scratch(&format!("emitted-{dtype}.o")));
        let output = gradix(&["emit", &example("attention"), "--dtype", dtype, "-o", &source]);
        assert_eq!((text(&output.stdout), output.status.code()), ("", Some(0)));
        assert_eq!(text(&output.stderr), format!("wrote {source}\n"));
        let arguments = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-c", &source, "-o", &object];
        let compiled = Command::new("cc").args(arguments).output().unwrap();
        assert!(compiled.status.success(), "{}", text(&compiled.stderr));
    }
}

#[test]
fn the_same_program_gives_the_same_text() {
    let arguments = ["emit", &example("conv2d")];
    assert_eq!(prints(&gradix(&arguments)), prints(&gradix(&arguments)));
}

#[test]
fn mistakes_are_told() {
    let program = "input x[N]; y[i] = x[i]";
    assert!(refuses(&gradix(&["emit", "-e", program, "--values", "--wrt", "x"]), 2).contains("leave out '--values'"));
    assert!(refuses(&gradix(&["emit", "-e", program, "--wrt", "z"]), 1).contains("no input 'z'"));
    assert!(refuses(&gradix(&["emit", "-e", program, "--target", "fortran"]), 2).contains("possible values: c"));
    let message = gradix(&["emit", "-e", program, "-o", "/nonexistent/y.c"]);
    assert!(refuses(&message, 1).starts_with("error: can't write /nonexistent/y.c: "));
}

#[test]
fn the_schedule_shows_loops_and_buffers() {
    let output = gradix(&["explain", &example("matmul"), "--schedule"]);
    let shown = prints(&output);
    assert!(shown.contains("group 1: ") && shown.contains("operations: 2*N*M*K"), "{shown}");
    let (results, derivatives) = shown.split_once("\nderivatives\n").unwrap();
    assert!(results.starts_with("results\n") && results.contains("output c[N, M]"), "{shown}");
    assert!(derivatives.contains("output da[N, K]") && derivatives.contains("kernel "), "{shown}");
    refuses(&gradix(&["explain", "a.gx", "--schedule", "--svg", "x.svg"]), 2);
}
