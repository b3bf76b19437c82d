//! `gradix bench`

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::{command, data, gradix, prints, refuses, scratch, text};

const PRODUCT: &str = "input a[N, K], b[K, M]; c[i, j] = sum[k] a[i, k] * b[k, j]";

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_backend_is_timed() {
    let sizes = ["--param", "N=5", "--param", "M=6", "--param", "K=7"];
    let output = gradix(&[&["bench", "-e", PRODUCT, "--json", "--seconds", "0"], &sizes[..]].concat());
    let rows = objects(prints(&output));
    let named: Vec<(&str, &str)> =
        rows.iter().map(|row| (row["what"].as_str().unwrap(), row["backend"].as_str().unwrap())).collect();
    let expected = ["value", "gradient"].map(|what| ["interp", "vm", "native"].map(|backend| (what, backend)));
    assert_eq!(named, expected.concat());
    for row in &rows {
        let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"));
        assert_eq!(row["dtype"], "f64");
        assert!(0.0 < number("min_s") && number("min_s") <= number("median_s"), "{row}");
        // One multiplication and one addition for each of 5 * 6 * 7 points, and twice that for the gradient.
        assert_eq!(number("operations"), if row["what"] == "value" { 420.0 } else { 840.0 });
    }
    // a, b and c; then a, b and dc, and da and db.
    assert_eq!((rows[0]["bytes"].as_f64(), rows[3]["bytes"].as_f64()), (Some(856.0), Some(1472.0)));
    assert!(rows[2]["peak_bytes"].is_u64() && rows[0]["peak_bytes"].is_null());
}

#[test]
fn one_backend_can_be_chosen() {
    let arguments = ["bench", "-e", PRODUCT, "--seconds", "0.01", "--backend", "native", "--dtype", "f32", "--quiet"];
    let output = gradix(&[&arguments[..], &["--json", "--threads", "2", "--wrt", "b"]].concat());
    let rows = objects(prints(&output));
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row["backend"] == "native" && row["dtype"] == "f32" && row["threads"] == 2));
}

#[test]
fn a_table_is_printed_for_people() {
    let output = gradix(&["bench", "-e", PRODUCT, "--seconds", "0", "--backend", "native"]);
    let lines: Vec<&str> = data(&output).lines().collect();
    assert!(lines.len() == 3 && lines[0].trim().starts_with("backend ") && lines[0].contains("GFLOP/s"), "{lines:?}");
    assert!(lines[1].starts_with("value     native ") && lines[2].starts_with("gradient  native "), "{lines:?}");
    assert!(lines[1].contains(" %") && lines[1].ends_with(" MiB"), "{lines:?}");
    assert!(text(&output.stderr).starts_with("sizes: N = "));
}

#[test]
fn what_would_take_the_oracle_too_long_is_left_out() {
    let sizes = ["--param", "N=2000", "--param", "M=2000", "--param", "K=2000"];
    let arguments = ["bench", "-e", PRODUCT, "--seconds", "0", "--backend", "interp", "--json"];
    let output = gradix(&[&arguments[..], &sizes].concat());
    assert_eq!(data(&output), "");
    let expected = "note: value on interp is left out: it would take too long\n";
    assert!(text(&output.stderr).starts_with(expected), "{}", text(&output.stderr));
}

#[test]
fn mistakes_are_told() {
    assert!(refuses(&gradix(&["bench", "-e", PRODUCT, "--seconds=-1"]), 2).contains("from 0 to 3600"));
    assert!(refuses(&gradix(&["bench", "-e", PRODUCT, "--param", "Q=1"]), 1).contains("'Q'"));
}

#[test]
fn without_a_gpu_it_is_left_out_and_why() {
    let arguments = ["bench", "-e", PRODUCT, "--seconds", "0", "--backend", "cuda", "--json"];
    let output = command(&arguments).env("GRADIX_CUDA_DRIVER", "/nowhere").output().unwrap();
    assert_eq!(data(&output), "");
    let told = text(&output.stderr);
    assert!(told.contains("note: gradient on cuda is left out: there is no CUDA driver (libcuda.so.1)"), "{told}");
}

/// A driver of the tests' own runs kernels on the processor; its clock stands in for the device's.
#[test]
fn a_gpu_is_timed_by_its_own_clock() {
    let cuda = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gradix-run/tests/cuda");
    let library = scratch("emulated.so");
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O1", "-U_FORTIFY_SOURCE", "-shared", "-fPIC", "-DEMULATOR_VERSION=2"]);
    compiler.arg("-DEMULATOR_FLAGS=\"\"").arg(format!("-DEMULATOR_H=\"{}\"", cuda.join("emulator.h").display()));
    let compiled = compiler.args(["-o", &library]).arg(cuda.join("driver.cpp")).arg("-ldl").output().unwrap();
    assert!(compiled.status.success(), "{}", text(&compiled.stderr));
    let arguments = ["bench", "-e", PRODUCT, "--seconds", "0", "--backend", "cuda"];
    let output =
        command(&arguments).env("GRADIX_CUDA_DRIVER", &library).env("GRADIX_NVRTC", &library).output().unwrap();
    let lines: Vec<&str> = data(&output).lines().collect();
    assert!(lines[1].starts_with("value     cuda ") && lines[2].starts_with("gradient  cuda "), "{lines:?}");
    assert!(lines[1].contains(" %") && lines[1].ends_with(" MiB"), "{lines:?}");
}
