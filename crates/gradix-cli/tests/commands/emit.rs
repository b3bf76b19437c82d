//! `gradix emit` and `gradix explain --stage`

use std::process::Command;

use crate::{example, gradix, prints, refuses, scratch, text};

#[test]
fn c_is_printed_for_results_and_derivatives() {
    let results = gradix(&["emit", &example("rbf"), "--values"]);
    assert!(prints(&results).contains("\nint rbf_run(const rbf_sizes *sizes"), "{}", prints(&results));
    let derivatives = gradix(&["emit", &example("rbf"), "--target", "c", "--wrt", "x"]);
    assert!(prints(&derivatives).contains("double *dx; /* dx[N, D] */"), "{}", prints(&derivatives));
    assert!(prints(&derivatives).contains("double *y; /* y[N] */") && !prints(&derivatives).contains(" dz["));
}

#[test]
fn what_is_emitted_is_c() {
    for dtype in ["f64", "f32"] {
        let (source, object) = (scratch(&format!("emitted-{dtype}.c")), scratch(&format!("emitted-{dtype}.o")));
        let output = gradix(&["emit", &example("attention"), "--dtype", dtype, "-o", &source]);
        assert_eq!((text(&output.stdout), output.status.code()), ("", Some(0)));
        assert_eq!(text(&output.stderr), format!("wrote {source}\n"));
        let arguments = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O1", "-c", &source, "-o", &object];
        let compiled = Command::new("cc").args(arguments).output().unwrap();
        assert!(compiled.status.success(), "{}", text(&compiled.stderr));
    }
}

#[test]
fn code_is_made_for_the_processor_that_is_named() {
    let emitted = |cpu: &str| prints(&gradix(&["emit", &example("mlp"), "--cpu", cpu])).to_string();
    for (cpu, bytes) in [("avx512", 64), ("avx2", 32), ("neon", 16), ("portable", 16)] {
        let head = format!("/* Made for {cpu}: ");
        assert!(emitted(cpu).contains(&head) && emitted(cpu).contains(&format!(" vectors of {bytes} bytes")), "{head}");
    }
    let arranged = |cpu: &str| stage(&["arranged", "--grad", "--cpu", cpu]);
    assert_ne!(arranged("avx512"), arranged("avx2"));
}

#[test]
fn a_processor_that_nobody_knows_is_refused() {
    let program = "input x[N]; y[i] = x[i]";
    for command in [&["emit", "-e", program][..], &["explain", "-e", program, "--stage", "nest"]] {
        let message = gradix(&[command, &["--cpu", "abacus"]].concat());
        let message = refuses(&message, 2);
        assert!(
            message.contains("'abacus'") && message.contains("known are avx512, avx2, neon, portable"),
            "{message}"
        );
    }
    refuses(&gradix(&["explain", "-e", program, "--cpu", "avx2"]), 2);
}

#[test]
fn the_same_program_gives_the_same_text() {
    let arguments = ["emit", &example("conv2d")];
    assert_eq!(prints(&gradix(&arguments)), prints(&gradix(&arguments)));
}

#[test]
fn kernels_for_a_gpu_come_with_host_code_if_that_is_asked_for() {
    let arguments = ["emit", &example("rbf"), "--target", "cuda", "--dtype", "f32"];
    let kernels = gradix(&arguments);
    let kernels = prints(&kernels);
    assert!(kernels.contains("extern \"C\" __global__ void __launch_bounds__(256, 2) gx_kernel_0(const gx_call call)"));
    assert!(!kernels.contains("#include") && !kernels.contains("rbf_run"));
    let whole = gradix(&[&arguments[..], &["--host"]].concat());
    let whole = prints(&whole);
    assert!(
        whole.contains("\nextern \"C\" int rbf_run(const rbf_sizes *sizes") && whole.contains("cudaStream_t stream")
    );
    assert!(whole.contains("static __global__ void") && !whole.contains("extern \"C\" __global__"));
}

#[test]
fn mistakes_are_told() {
    let program = "input x[N]; y[i] = x[i]";
    assert!(refuses(&gradix(&["emit", "-e", program, "--host"]), 2).contains("'--host' is for '--target cuda'"));
    let header = gradix(&["emit", "-e", program, "--target", "cuda", "--header"]);
    assert!(refuses(&header, 2).contains("'--target c'"));
    assert!(refuses(&gradix(&["emit", "-e", program, "--values", "--wrt", "x"]), 2).contains("leave out '--values'"));
    assert!(refuses(&gradix(&["emit", "-e", program, "--wrt", "z"]), 1).contains("no input 'z'"));
    assert!(refuses(&gradix(&["emit", "-e", program, "--target", "fortran"]), 2).contains("possible values: c"));
    let message = gradix(&["emit", "-e", program, "-o", "/nonexistent/y.c"]);
    assert!(refuses(&message, 1).starts_with("error: can't write /nonexistent/y.c: "));
}

#[test]
fn public_names_begin_with_the_name() {
    let program = "input x[N]; y[i] = x[i]";
    let header = |arguments: &[&str]| prints(&gradix(&[&["emit", "--header"], arguments].concat())).to_string();
    assert!(header(&["-e", program]).contains("int program_run("));
    assert!(header(&[&example("conv2d"), "--name", "Conv_2"]).contains("int Conv_2_run("));
    assert!(header(&[&example("conv2d")]).contains("int conv2d_run("));
    let strange = scratch("2 strange-näme.gx");
    std::fs::write(&strange, program).unwrap();
    assert!(header(&[&strange]).contains("int program_2_strange_n_me_run("));
    for name in ["", "2x", "a-b", "näme", "gx_y", "_y", "a b"] {
        let output = gradix(&["emit", "-e", program, "--name", name]);
        assert!(refuses(&output, 1).starts_with(&format!("error: '{name}' can't begin")), "{name}");
    }
}

#[test]
fn a_project_is_written_once() {
    let folder = scratch("project");
    let _ = std::fs::remove_dir_all(&folder);
    let arguments = ["emit", &example("rbf"), "--project", &folder];
    let output = gradix(&arguments);
    let names = ["rbf.c", "rbf.h", "main.c", "CMakeLists.txt"];
    let wrote: String = names.iter().map(|name| format!("wrote {folder}/{name}\n")).collect();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), wrote.as_str()));
    let again = gradix(&arguments);
    assert_eq!(refuses(&again, 1), format!("error: {folder}/rbf.c exists already, and is not overwritten\n"));
    let build = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "main.c", "rbf.c", "-lm", "-o", "example"];
    let built = Command::new("cc").args(build).current_dir(&folder).output().unwrap();
    assert!(built.status.success(), "{}", text(&built.stderr));
    let run = Command::new(format!("{folder}/example")).output().unwrap();
    assert!(run.status.success() && text(&run.stdout).starts_with("y[N]: "), "{}", text(&run.stdout));
}

#[test]
fn mistakes_about_projects_are_told() {
    let program = "input x[N]; y[i] = x[i]";
    let refused = |arguments: &[&str], code| {
        refuses(&gradix(&[&["emit", "-e", program, "--project"], arguments].concat()), code).to_string()
    };
    let file = scratch("not-a-folder");
    std::fs::write(&file, "").unwrap();
    assert!(refused(&[&file], 1).starts_with(&format!("error: can't write {file}: ")));
    assert!(refused(&[&scratch("main-project"), "--name", "main"], 1).contains("choose another '--name'"));
    refused(&["folder", "-o", "file.c"], 2);
    refused(&["folder", "--header"], 2);
}

fn stage(arguments: &[&str]) -> String {
    let program = example("matmul");
    let arguments: Vec<&str> = ["explain", &program, "--stage"].into_iter().chain(arguments.iter().copied()).collect();
    prints(&gradix(&arguments)).to_string()
}

#[test]
fn every_stage_is_shown_for_results_and_derivatives() {
    for name in ["scanned", "economised", "arranged", "schedule", "nest", "c"] {
        let (results, derivatives) = (stage(&[name]), stage(&[name, "--grad"]));
        assert!(results.lines().count() > 1 && !results.contains("da["), "{results}");
        assert!(derivatives.contains("da["), "{derivatives}");
        assert!(!stage(&[name, "--grad", "--wrt", "b"]).contains("da["));
    }
}

#[test]
fn stages_show_decisions_loops_and_buffers() {
    let schedule = stage(&["schedule", "--cpu", "avx2"]);
    assert!(schedule.starts_with("for avx2: fewest operations: "), "{schedule}");
    assert!(schedule.contains("group 1: ") && schedule.contains("operations: 2*N*M*K"), "{schedule}");
    let nest = stage(&["nest", "--grad"]);
    assert!(nest.contains("output da[N, K]") && nest.contains("kernel "), "{nest}");
    assert!(stage(&["c", "--dtype", "f32"]).contains("float"));
    let small = stage(&["schedule", "--cpu", "neon", "--param", "N=4", "--param", "M=4", "--param", "K=4"]);
    assert!(small.starts_with("for neon: plain loops: "), "{small}");
}

#[test]
fn mistakes_about_stages_are_told() {
    refuses(&gradix(&["explain", "a.gx", "--stage", "nest", "--svg", "x.svg"]), 2);
    refuses(&gradix(&["explain", "a.gx", "--grad"]), 2);
    refuses(&gradix(&["explain", "a.gx", "--dtype", "f32"]), 2);
    let program = "input x[N]; y[i] = x[i]";
    let message = gradix(&["explain", "-e", program, "--stage", "nest", "--wrt", "x"]);
    assert!(refuses(&message, 2).contains("add '--grad'"));
}
