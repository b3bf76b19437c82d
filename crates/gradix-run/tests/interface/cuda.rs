//! Emitted CUDA C++ with its host code, as a program calls it: compiled for the processor, where a header of the tests' own
//! runs the threads.

use crate::subject::{Subject, compare, device_file, example, folder, resolved, run};
use gradix::Int;
use gradix::domain::sizes::{Known, bind};
use gradix::emit::Real;
use gradix::target::SM_90;
use gradix_run::random;
use std::path::Path;
use std::process::Command;

type Sizes = &'static [(&'static str, i64)];

#[test]
fn host_code_starts_all_kernels_on_a_stream() {
    if Command::new("c++").arg("--version").output().is_err() {
        return;
    }
    // A contraction, a long sum in parts, steps, sizes that are conditions of each other, and no argument at all.
    let programs: [(&str, String, Real, Sizes); 5] = [
        ("rbf", example("rbf"), Real::F32, &[("N", 37), ("M", 21), ("D", 3)]),
        ("norm", "input x[N]; f = sum[i] x[i]^2".into(), Real::F64, &[("N", 1000)]),
        ("steps", "input a[T], h0; h[t in 0..T] = a[t] * pad(h[t - 1], h0)".into(), Real::F64, &[("T", 9)]),
        ("window", "input x[N], w[K]; y[i] = sum[k] x[i + k] * w[k]".into(), Real::F64, &[("N", 50), ("K", 7)]),
        ("squares", "param N; output y; y[i in 0..N] = i^2".into(), Real::F32, &[("N", 300)]),
    ];
    for (name, text, real, given) in programs {
        let (program, places) = resolved(&text, name != "squares");
        let mut subject = Subject::made_for(name, program.clone(), real, &SM_90);
        for shrunk in [1, 5] {
            let given = given.iter().map(|(name, size)| (name.to_string(), Int::from(size / shrunk)));
            let sizes = bind(&program, &Known { given: given.collect(), shapes: Vec::new() }, &places).unwrap();
            subject.add(sizes, &|name, shape| random::array(7, name, shape).unwrap());
        }
        for options in [&[][..], &["-DGX_NARROW"]] {
            accept(&subject, options);
        }
    }
}

#[test]
fn sizes_that_32_bits_do_not_hold_are_refused() {
    let (program, _) = resolved("input x[N]; y[i] = 2 * x[i]", false);
    let subject = Subject::made_for("large", program, Real::F32, &SM_90);
    let text = subject.interface().cuda();
    assert!(text.contains("if (plan->temporary > (size_t)PTRDIFF_MAX || (sizeof(gx_whole) == 4 && !gx_fits(*plan)))"));
}

/// Builds a program with these options, runs it, and holds what it prints to the oracle.
fn accept(subject: &Subject, options: &[&str]) {
    let folder = folder(&format!("cuda_{}{}", subject.name, options.len()));
    std::fs::write(folder.join(format!("{}.cu", subject.name)), subject.interface().cuda()).unwrap();
    std::fs::write(folder.join("main.cpp"), device_file(subject)).unwrap();
    let (program, cuda) = (folder.join("main"), Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda"));
    let mut command = Command::new("c++");
    command.args(["-std=c++11", "-O1", "-U_FORTIFY_SOURCE"]).args(options).arg("-I").arg(&cuda);
    run(command.arg("-include").arg(cuda.join("emulator.h")).arg("-o").arg(&program).arg(folder.join("main.cpp")));
    let subjects = std::slice::from_ref(subject);
    compare(subjects, &run(&mut Command::new(&program)), Subject::rounding, &format!("{options:?}"));
}
