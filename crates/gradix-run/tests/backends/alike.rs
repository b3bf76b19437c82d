//! Programs of many equal steps: their kernels do the same with other arrays, and C has one function for them.

use crate::common::*;
use gradix::emit::{Real, c};
use gradix_run::{Dtype, interp};

/// Definitions `u1` to `u6`, each of which reads the one before by this body.
fn steps(inputs: &str, body: &str) -> String {
    let step = |t: usize| format!("u{t}[i in 0..N, j in 0..M] = {}\n", body.replace('P', &format!("u{}", t - 1)));
    format!("input {inputs}\n{}output u6\n", (1..=6).map(step).collect::<String>())
}

fn programs() -> [String; 3] {
    let ends = "P[i, j] + 0.1 * (P[clamp(i - 1), j] * P[clamp(i + 1), j] - P[i, clamp(j + 2)])";
    let product = "tanh(sum[k in 0..N] w[i, k] * P[k, j])";
    // The arrays of a step come in another order than those of the step before.
    let sum = "P[N - 1 - i, j] * sum[k in 0..M] a[j, k] * P[i, k]";
    [steps("u0[N, M]", ends), steps("u0[N, M], w[N, N]", product), steps("u0[N, M], a[M, M]", sum)]
}

#[test]
fn equal_steps_are_one_function() {
    let [ends, _, sum] = programs();
    for text in [ends, sum] {
        let program = resolve(&text).program;
        let compiled = gradix::compile(&program, &estimate(&program, 700), Real::F64, &gradix::target::AVX512).unwrap();
        let text = c(&compiled.nest, Real::F64);
        let calls = text.lines().filter(|line| line.trim_start().starts_with("gx_alike_")).count();
        assert!(calls >= 4, "{calls} calls\n{text}");
        assert_eq!(text.matches("static GX_NOINLINE void gx_alike_").count(), 1);
    }
}

#[test]
fn equal_steps_have_the_values_of_the_reference() {
    for text in programs() {
        let program = resolve(&text).program;
        let derivative = gradix::derive(&program, &Default::default()).unwrap().program;
        for program in [&program, &derivative] {
            for &backend in backends() {
                let how = (backend, Compiling::Usual);
                let mut subject = Subject::new(&text, program, &estimate(program, 700), Dtype::F64, how, 2);
                for (n, m) in [(1, 3), (5, 3), (43, 21)] {
                    let sizes = sized(program, &[("N".to_string(), n), ("M".to_string(), m)]).unwrap();
                    let inputs = single_inputs(program, &sizes);
                    let expected = interp(program, &sizes, &inputs, Dtype::F64).unwrap().results;
                    subject.agrees(&sizes, &inputs, &expected, 1e-11);
                }
            }
        }
    }
}
