//! `gradix eval`

use std::path::Path;
use std::process::{Child, Stdio};

use gradix_run::{Array, Dtype, files};

use crate::{command, data, example, gradix, prints, refuses, scratch, text};

/// Writes an array and gives the option that names it.
fn npy(test: &str, name: &str, shape: &[usize], elements: &[f64]) -> String {
    let path = scratch(&format!("{test}-{name}.npy"));
    files::write_npy(Path::new(&path), &Array::new(shape.to_vec(), elements.to_vec()), Dtype::F64).unwrap();
    format!("{name}={path}")
}

fn read(path: &str) -> Vec<(String, Array)> {
    files::read_npz(Path::new(path), |_| true).unwrap()
}

#[test]
fn results_are_computed_from_files() {
    let (a, b) = (npy("product", "a", &[2, 2], &[1.0, 2.0, 3.0, 4.0]), npy("product", "b", &[2], &[10.0, 100.0]));
    let output =
        gradix(&["eval", "-e", "input a[I, K], b[K]; c[i] = sum[k] a[i, k] * b[k]", "--input", &a, "--input", &b]);
    assert_eq!(prints(&output), "c[2] = [210. 430.]\n");
}

#[test]
fn scalars_are_given_as_numbers() {
    let output = gradix(&["eval", "-e", "input t; f = t^2 + 1", "--input", "t=-0.5", "--grad"]);
    assert_eq!(prints(&output), "f = 1.25\ndt = -1\n");
}

#[test]
fn derivatives_follow_the_results() {
    let x = npy("gradient", "x", &[3], &[1.0, -2.0, 0.5]);
    let output = gradix(&["eval", "-e", "input x[N]; f = sum[i] x[i]^3", "--input", &x, "--grad"]);
    assert_eq!(prints(&output), "f = -6.875\ndx[3] = [ 3.   12.    0.75]\n");
}

#[test]
fn the_upstream_derivative_is_an_input() {
    let (x, dy) = (npy("upstream", "x", &[2], &[3.0, 4.0]), npy("upstream", "dy", &[2], &[1.0, 10.0]));
    let program = ["eval", "-e", "input x[N]; y[i] = x[i]^2", "--input", &x, "--grad"];
    let output = gradix(&[&program[..], &["--input", &dy]].concat());
    assert_eq!(prints(&output), "y[2] = [ 9. 16.]\ndx[2] = [ 6. 80.]\n");
    let without = gradix(&program);
    let message = refuses(&without, 1);
    assert!(message.contains("'dy' is not given (the upstream derivative of 'y')"), "{message}");
    assert!(message.contains("help: give it with --input dy=FILE.npy, or fill"), "{message}");
}

#[test]
fn results_are_written_under_their_own_names() {
    let (x, out) = (npy("written", "x", &[2], &[1.0, 2.0]), scratch("written.npz"));
    let text = "input x[N]; y[i] = 2 * x[i]; s = sum[i] x[i]";
    let arguments = ["eval", "-e", text, "--input", &x, "--grad", "--random", "3", "-o", &out, "--quiet"];
    assert_eq!(prints(&gradix(&arguments)), "");
    let arrays = read(&out);
    let names: Vec<&str> = arrays.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["y", "s", "dx"]);
    assert_eq!((&arrays[0].1, &arrays[1].1), (&Array::new(vec![2], vec![2.0, 4.0]), &Array::scalar(3.0)));
    // dx = 2 dy + ds with ds = 1 by default.
    let dy = gradix_run::random::array(3, "dy", vec![2]).unwrap().data;
    assert_eq!(arrays[2].1.data, [2.0 * dy[0] + 1.0, 2.0 * dy[1] + 1.0]);
}

#[test]
fn what_was_written_can_be_read_and_other_arrays_are_ignored() {
    let (first, second) = (scratch("first.npz"), scratch("second.npz"));
    let double = ["eval", "-e", "input x[N]; x2[i] = 2 * x[i]; unused = 1", "--random", "1", "--param", "N=3"];
    data(&gradix(&[&double[..], &["-o", &first]].concat()));
    let half = ["eval", "-e", "input x2[N]; x[i] = x2[i] / 2", "--input", &first, "-o", &second];
    assert!(text(&gradix(&half).stderr).starts_with("wrote x to "));
    assert_eq!(read(&second), [("x".to_string(), gradix_run::random::array(1, "x", vec![3]).unwrap())]);
}

#[test]
fn random_inputs_do_not_depend_on_each_other() {
    let x = npy("random", "x", &[3], &[1.0, 1.0, 1.0]);
    let text = "input x[N], w[N]; y[i] = w[i] + 0 * x[i]";
    let alone = gradix(&["eval", "-e", text, "--random", "5", "--param", "N=3"]);
    let given = gradix(&["eval", "-e", text, "--random", "5", "--input", &x]);
    assert_eq!(prints(&alone), prints(&given));
    let other = gradix(&["eval", "-e", text, "--random", "6", "--input", &x]);
    assert_ne!(prints(&other), prints(&given));
}

#[test]
fn chosen_sizes_are_told_unless_quiet() {
    let arguments = ["eval", "-e", "input x[N], y[M]; f = sum[i] x[i]; g = sum[j] y[j]", "--random", "1"];
    let output = gradix(&arguments);
    assert!(data(&output).starts_with("f = "));
    assert_eq!(text(&output.stderr), "sizes: N = 3, M = 4\n");
    prints(&gradix(&[&arguments[..], &["--quiet"]].concat()));
}

#[test]
fn large_results_are_summarised() {
    let output =
        gradix(&["eval", "-e", "param N; input t; y[i in 0..N] = t * i", "--input", "t=1", "--param", "N=201"]);
    assert_eq!(prints(&output), "y[201]: min 0, max 200, mean 100\n");
}

#[test]
fn results_can_be_restricted() {
    let text = "input s, t; f = s * t; g = s + t";
    let arguments = ["eval", "-e", text, "--input", "s=2", "--input", "t=3", "--grad", "--of", "f", "--wrt", "t"];
    assert_eq!(prints(&gradix(&arguments)), "f = 6\ndt = 2\n");
    assert!(refuses(&gradix(&["eval", "-e", text, "--random", "1", "--of", "h"]), 1).contains("no result 'h'"));
    assert!(refuses(&gradix(&["eval", "-e", text, "--random", "1", "--wrt", "t"]), 2).contains("--grad"));
}

#[test]
fn single_precision_rounds() {
    let arguments = ["eval", "-e", "input t; f = t - 0.1", "--input", "t=0.1", "--dtype"];
    assert_eq!(prints(&gradix(&[&arguments[..], &["f64"]].concat())), "f = 0\n");
    let tenth = ["eval", "-e", "input t; f = (t * 3 - 0.3) * 1000000", "--input", "t=0.1", "--dtype", "f32"];
    assert_ne!(prints(&gradix(&tenth)), prints(&gradix(&[&tenth[..6], &["f64"]].concat())));
}

#[test]
fn threads_and_backend_do_not_change_the_result() {
    let arguments = ["eval", &example("rbf"), "--random", "2", "--grad", "--quiet"];
    let plain = gradix(&arguments);
    for backend in ["interp", "vm", "native"] {
        let other = gradix(&[&arguments[..], &["--backend", backend, "--threads", "1"]].concat());
        assert_eq!(prints(&plain), prints(&other), "{backend}");
    }
}

#[test]
fn a_compiler_that_is_missing_or_fails_is_noted() {
    let arguments = ["eval", "-e", "input t; f = t^2 + 1", "--input", "t=3", "--grad"];
    for (compiler, why) in [("/nonexistent", "that $CC names was not found"), ("false", "fails: exit status: 1")] {
        let output = command(&arguments).env("CC", compiler).output().unwrap();
        assert_eq!(data(&output), "f = 10\ndt = 6\n");
        let told = text(&output.stderr);
        assert!(told.starts_with("note: the C compiler '") && told.contains(why), "{told}");
        assert_eq!(told.lines().count(), 1, "one note for both: {told}");
        let quiet = command(&[&arguments[..], &["--quiet"]].concat()).env("CC", compiler).output().unwrap();
        assert_eq!(prints(&quiet), "f = 10\ndt = 6\n");
    }
}

#[test]
fn a_cache_that_can_not_be_written_is_noted() {
    let file = scratch("not-a-folder");
    std::fs::write(&file, b"").unwrap();
    let arguments = ["eval", "-e", "input t; f = t^2 + 2", "--input", "t=3", "--backend", "native"];
    let output = command(&arguments).env("GRADIX_CACHE", &file).output().unwrap();
    assert_eq!(data(&output), "f = 11\n");
    let expected = format!("note: compiled kernels can't be kept in {file}: ");
    assert!(text(&output.stderr).starts_with(&expected), "{}", text(&output.stderr));
}

#[test]
fn processes_share_a_cache() {
    let folder = scratch("shared-kernels");
    let _ = std::fs::remove_dir_all(&folder);
    let arguments = ["eval", "-e", "input t; f = t^2 + 3", "--input", "t=3", "--backend", "native"];
    let start =
        || command(&arguments).env("GRADIX_CACHE", &folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let running: Vec<Child> = (0..4).map(|_| start().unwrap()).collect();
    for child in running {
        assert_eq!(prints(&child.wait_with_output().unwrap()), "f = 12\n");
    }
    let entries: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(entries.len(), 1, "one program, one entry: {entries:?}");
    // Damaged ones are not loaded.
    for library in std::fs::read_dir(&entries[0]).unwrap() {
        let path = library.unwrap().path();
        let half = std::fs::metadata(&path).unwrap().len() / 2;
        std::fs::File::options().write(true).open(&path).unwrap().set_len(half).unwrap();
    }
    let again = start().unwrap().wait_with_output().unwrap();
    assert_eq!(prints(&again), "f = 12\n");
}

#[test]
fn mistakes_in_the_data_are_named() {
    let (x, square) = (npy("wrong", "x", &[3], &[0.0; 3]), npy("wrong", "w", &[2, 2], &[0.0; 4]));
    let text = "input x[N], w[N]; y[i] = x[i] * w[i]";
    for (arguments, expected) in [
        (&["--input", "z=1.5", "--random", "1"][..], "the program has no input 'z'\nhelp: there is x, w\n"),
        (&["--input", &x], "error: 'w' is not given\n"),
        (&["--input", &x, "--input", &square], "'w' has 1 dimension"),
        (&["--input", "x=absent.npy"], "absent.npy: no such file"),
        (&["--param", "N=2", "--input", &x, "--random", "1"], "length 3"),
        (&["--param", "M=2", "--random", "1"], "'M'"),
        (&[], "the size 'N' is not known"),
    ] {
        let output = gradix(&[&["eval", "-e", text], arguments].concat());
        assert!(refuses(&output, 1).contains(expected), "{arguments:?}: {}", refuses(&output, 1));
    }
}

#[test]
fn subscripts_that_leave_a_tensor_are_shown_in_the_source() {
    let x = npy("outside", "x", &[3], &[0.0; 3]);
    let output = gradix(&["eval", "-e", "param K; input x[N]; y[i in 0..K] = x[i]", "--param", "K=4", "--input", &x]);
    let message = refuses(&output, 1);
    assert!(message.starts_with("error[out-of-bounds]") && message.contains("--> command line:1:"), "{message}");
}

#[test]
fn an_empty_result_of_arguments_that_are_not_is_told() {
    let text = "input x[N], w[K]; y[i] = sum[k] x[i + k] * w[k]";
    let (x, w) = (npy("longer", "x", &[2], &[1.0; 2]), npy("longer", "w", &[4], &[1.0; 4]));
    let output = gradix(&["eval", "-e", text, "--input", &x, "--input", &w]);
    assert_eq!(crate::text(&output.stderr), "note: the result 'y' is empty: it has the extents [N - K + 1]\n");
    assert_eq!(prints(&gradix(&["eval", "-q", "-e", text, "--input", &x, "--input", &w])), data(&output));
}

#[test]
fn a_folder_that_is_missing_is_named() {
    let output = gradix(&["eval", "-e", "y = 1", "-o", "/nonexistent/y.npz"]);
    let message = "error: can't write /nonexistent/y.npz: there is no folder '/nonexistent' to write it into\n";
    assert_eq!(refuses(&output, 1), message);
}

#[test]
fn timings_tell_of_every_pass() {
    let output = gradix(&[
        "eval",
        "-e",
        "input x[N]; y = sum[i] x[i]^2",
        "--random",
        "1",
        "--grad",
        "--backend",
        "vm",
        "--timings",
    ]);
    let told = text(&output.stderr);
    let names = told.lines().filter_map(|line| line.split_once(" ms  ")).map(|(_, name)| name.trim_end().to_string());
    let names: Vec<String> = names.collect();
    let expected = ["in all", "  parse", "  resolve", "  derive", "  compile", "    economise", "    verify", "  run"];
    let places: Vec<_> = expected.iter().map(|name| names.iter().position(|found| found == name)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{told}");
    let output = gradix(&["explain", "-e", "input x; y = x^2", "--stage", "nest", "--timings"]);
    assert!(text(&output.stdout).contains("kernel") && text(&output.stderr).contains(" ms    verify"));
}
