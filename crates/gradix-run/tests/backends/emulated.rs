//! Kernels for GPUs, run on the processor: a driver and a compiler of the tests' own stand in for CUDA's
//! (`tests/cuda/driver.cpp`, `tests/cuda/emulator.h`). Everything but the two libraries is what runs on a GPU.

#![allow(unsafe_code, reason = "the environment is set before anything reads it")]

use crate::common::*;
use crate::examples::{ASSUMED, check, examples};
use gradix_run::{Backend, Dtype};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Whether there is an emulated GPU: it takes a compiler for C++.
pub fn has_emulated() -> bool {
    static MADE: OnceLock<bool> = OnceLock::new();
    *MADE.get_or_init(|| {
        driver("")
            .inspect(|path| {
                // SAFETY: nothing in this process has asked for a GPU yet, and other names of the environment stay.
                unsafe {
                    std::env::set_var("GRADIX_CUDA_DRIVER", path);
                    std::env::set_var("GRADIX_NVRTC", path);
                }
            })
            .is_some()
    })
}

/// The library with the emulated driver and compiler, which compiles kernels with these flags.
fn driver(flags: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda");
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("emulated-{}.so", std::process::id()));
    let defined = |name: &str, text: String| format!("-D{name}=\"{}\"", text.replace('"', "\\\""));
    let header = defined("EMULATOR_H", folder.join("emulator.h").display().to_string());
    let flags = defined("EMULATOR_FLAGS", flags.to_string());
    let mut command = Command::new("c++");
    command.args(["-std=c++17", "-O1", "-shared", "-fPIC", &header, &flags, "-o"]).arg(&path);
    command.arg(folder.join("driver.cpp")).arg("-ldl");
    let made = command.status().ok()?;
    assert!(made.success(), "the emulated driver compiles");
    Some(path)
}

/// Every program, and then all that fail.
fn all(programs: Vec<(String, String)>, dtype: Dtype, tolerance: f64) {
    if !has_emulated() {
        return;
    }
    let fails = |(name, text): &(String, String)| {
        let how = (Backend::Cuda, Compiling::Usual);
        catch_unwind(|| check(name, text, ASSUMED, dtype, how, tolerance)).is_err()
    };
    let failed: Vec<String> = programs.into_iter().filter(fails).map(|(name, _)| name).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn examples_on_an_emulated_gpu_agree_with_the_oracle() {
    all(examples(), Dtype::F64, 1e-11);
}

#[test]
fn examples_in_single_precision_on_an_emulated_gpu_are_near_the_oracle() {
    all(examples().into_iter().step_by(3).collect(), Dtype::F32, 2e-4);
}

#[test]
fn random_programs_on_an_emulated_gpu_agree_with_the_oracle() {
    if has_emulated() {
        crate::generated::check(crate::generated::GENERAL, Backend::Cuda, 3001, 15);
        crate::generated::check(crate::generated::FLOORS, Backend::Cuda, 3001, 15);
    }
}

/// Where two threads or two blocks touch what one of them writes, their order shows.
#[test]
fn results_do_not_depend_on_the_order_of_threads_and_blocks() {
    let Some(path) = has_emulated().then(|| std::env::var_os("GRADIX_CUDA_DRIVER").unwrap()) else { return };
    // SAFETY: it is loaded already.
    let library = unsafe { libloading::Library::new(path) }.unwrap();
    // SAFETY: the driver of the tests has it.
    let reverse: libloading::Symbol<unsafe extern "C" fn(i32)> = unsafe { library.get(b"emulator_reverse") }.unwrap();
    for text in [
        "input a[N, K], b[M, K]; y[i, j] = sum[k] (a[i, k] + b[j, k])^2",
        "input x[N, M]; s = sum[i, j] x[i, j]^2; m[j] = max[i] x[i, j]",
        "input x[N], w[M]; y[i in 0..N - M + 1] = sum[k] x[i + k] * w[k]",
    ] {
        let program = gradix::derive(&resolve(text).program, &Default::default()).unwrap().program;
        let (assumed, sizes) = (estimate(&program, 700), estimate(&program, 83));
        let mut subject = Subject::new(text, &program, &assumed, Dtype::F32, (Backend::Cuda, Compiling::Usual), 1);
        let inputs = single_inputs(&program, &sizes);
        let mut bits = |order: i32| {
            // SAFETY: it sets a number.
            unsafe { reverse(order) };
            let results = subject.run(&sizes, &inputs);
            results.into_iter().flat_map(|(_, array)| array.data.to_vec()).map(f64::to_bits).collect::<Vec<_>>()
        };
        assert_eq!(bits(0), bits(1), "{text}");
    }
}
