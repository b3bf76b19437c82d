//! Several emitted files in one program, sizes and pointers that are refused, and the example that files come with.

use crate::subject::{Sizes, Subject, WARNINGS, compare, compilers, example, folder, main_file, run};
use gradix::emit::Real;
use std::process::Command;

fn subjects() -> Vec<Subject> {
    let matmul: Sizes = &[("N", 37), ("M", 29), ("K", 41)];
    let attention: Sizes = &[("T", 70), ("S", 35), ("D", 5), ("E", 3)];
    let words =
        "param N >= 1, σ >= 0; input new[N], double; y[i] = new[i] * double; f = max[i] y[i]; z[i in 0..σ] = i*f";
    let shorter = "param M, N >= 2*M; input x[N], w[M]; y[i in 0..N - 2*M + 1] = sum[k] x[i + 2*k] * w[k]";
    vec![
        Subject::new("matmul", &example("matmul"), false, Real::F64, matmul),
        Subject::new("matmul_gradient", &example("matmul"), true, Real::F32, matmul),
        Subject::new(
            "softmax_gradient",
            "input x[N, K]; y[i, j] = exp(x[i, j]) / sum[k] exp(x[i, k])",
            true,
            Real::F64,
            &[("N", 13), ("K", 70)],
        ),
        Subject::new("attention_gradient", &example("attention"), true, Real::F32, attention),
        Subject::new("words", words, true, Real::F64, &[("N", 5), ("σ", 3)]),
        Subject::new("shorter", shorter, true, Real::F32, &[("N", 9), ("M", 3)]),
        Subject::new("nothing", "input x[N]; y[i] = 2*x[i]; f = sum[i] x[i]", true, Real::F64, &[("N", 0)]),
        Subject::new("alone", "f[i in 0..3] = i + 1", false, Real::F64, &[]),
        Subject::new(
            "grid",
            "input x[B, C, N]; s[b, c, i] = sum[j] exp(x[b, c, i] * x[b, c, j])",
            true,
            Real::F64,
            &[("B", 3), ("C", 9), ("N", 90)],
        ),
        Subject::new("steps", &example("gray_scott_steps"), true, Real::F64, &[("H", 9), ("W", 35), ("T", 4)]),
        Subject::new("substitution", &example("substitution"), true, Real::F32, &[("N", 23)]),
        Subject::new("no_steps", &example("heat_steps"), true, Real::F64, &[("N", 7), ("T", 0)]),
    ]
}

#[test]
fn several_files_and_their_headers_make_one_program_in_c_and_in_cpp() {
    let (folder, subjects) = (folder("one-program"), subjects());
    subjects.iter().for_each(|subject| subject.write(&folder));
    let main = main_file(&subjects);
    ["new_1", "double_1", "u3c3"].iter().for_each(|name| assert!(main.contains(&format!(".{name} = ")), "{name}"));
    ["main.c", "main.cpp"].iter().for_each(|file| std::fs::write(folder.join(file), &main).unwrap());
    for [c, cpp] in compilers() {
        let sources = subjects.iter().map(|subject| format!("{}.c", subject.name));
        run(Command::new(c).args(WARNINGS).args(["-std=c99", "-O1", "-c"]).args(sources).current_dir(&folder));
        let objects: Vec<String> = subjects.iter().map(|subject| format!("{}.o", subject.name)).collect();
        for (compiler, standard, file) in [(c, "-std=c99", "main.c"), (cpp, "-std=c++11", "main.cpp")] {
            let mut command = Command::new(compiler);
            run(command
                .args(WARNINGS)
                .args([standard, file, "-o", "run"])
                .args(&objects)
                .arg("-lm")
                .current_dir(&folder));
            compare(&subjects, &run(&mut Command::new(folder.join("run"))), Subject::rounding, compiler);
        }
    }
}

#[test]
fn sizes_that_can_not_be_are_refused() {
    let folder = folder("bad-sizes");
    let text = "param M, N >= 2*M; input x[N, N, N], w[M]; y[i in 0..N - 2*M + 1] = sum[k] x[0, 0, i + 2*k] * w[k]";
    let subject = Subject::new("bad", text, false, Real::F64, &[("N", 9), ("M", 3)]);
    subject.write(&folder);
    let cases = [(5, 3), (-1, 0), (5, -1), (1 << 39, 1), (1 << 41, 1), (i64::MAX, i64::MAX), (i64::MIN, 0), (0, 0)];
    let code = |(n, m): (i64, i64)| {
        let sizes = format!("bad_sizes sizes = {{.N = INT64_C({n}), .M = INT64_C({m})}};")
            .replace("INT64_C(-9223372036854775808)", "INT64_MIN");
        format!(
            "    {{ const {sizes} printf(\"%d %d\\n\", bad_run(&sizes, &in, &out, NULL), bad_workspace_bytes(&sizes) == SIZE_MAX); }}\n"
        )
    };
    let calls: String = cases.into_iter().map(code).collect();
    let main = format!(
        "#include \"bad.h\"\n#include <stdio.h>\nint main(void)\n{{\n    double y[9] = {{0}};\n    \
        const bad_inputs in = {{NULL, NULL}};\n    const bad_outputs out = {{y}};\n{calls}    \
        printf(\"%d\\n\", bad_run(NULL, &in, &out, NULL));\n    return 0;\n}}\n"
    );
    std::fs::write(folder.join("main.c"), main).unwrap();
    for [c, _] in compilers() {
        run(Command::new(c)
            .args(WARNINGS)
            .args(["-std=c99", "main.c", "bad.c", "-lm", "-o", "run"])
            .current_dir(&folder));
        // Without elements, no array is needed.
        let expected = "1 1\n1 1\n1 1\n3 1\n3 1\n3 1\n1 1\n0 0\n2\n";
        assert_eq!(run(&mut Command::new(folder.join("run"))), expected, "{c}");
    }
}

#[test]
fn the_example_runs_at_the_sizes_that_it_is_made_for() {
    let folder = folder("example");
    let subject = Subject::new("norm", "input x[N]; f = sum[i] x[i]^2", true, Real::F32, &[("N", 3)]);
    let interface = subject.interface();
    subject.write(&folder);
    std::fs::write(folder.join("main.c"), interface.example(&[3.into()])).unwrap();
    std::fs::write(folder.join("CMakeLists.txt"), interface.cmake()).unwrap();
    for [c, _] in compilers() {
        run(Command::new(c)
            .args(WARNINGS)
            .args(["-std=c99", "main.c", "norm.c", "-lm", "-o", "run"])
            .current_dir(&folder));
        assert_eq!(run(&mut Command::new(folder.join("run"))), "f: 1.36111\ndx[N]: 2 1 0.666667\n");
    }
    if Command::new("cmake").arg("--version").output().is_ok() {
        run(Command::new("cmake").args(["-S", ".", "-B", "build"]).current_dir(&folder));
        run(Command::new("cmake").args(["--build", "build"]).current_dir(&folder));
    }
}

#[test]
fn sizes_are_held_to_what_64_bits_hold() {
    let limit = |text: &str| {
        let header = Subject::new("long", text, false, Real::F64, &[("N", 0)]).interface().header();
        let (_, rest) = header.split_once("a size is past ").unwrap();
        rest.split_once(',').unwrap().0.parse::<i64>().unwrap()
    };
    assert_eq!(limit("input x[N]; y[i] = x[i]"), 1 << 40);
    assert_eq!(limit("param N <= 0; y[i in 0..1000000000000*N] = i"), 1 << 21);
}
