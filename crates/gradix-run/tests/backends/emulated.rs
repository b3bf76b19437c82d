//! Kernels for GPUs, run on the processor: a driver and a compiler of the tests' own stand in for CUDA's
//! (`tests/cuda/driver.cpp`, `tests/cuda/emulator.h`). Everything but the two libraries is what runs on a GPU.

#![allow(unsafe_code, reason = "the environment is set before anything reads it")]

use crate::common::*;
use crate::derivatives;
use crate::examples::{ASSUMED, check, examples};
use gradix_run::{Backend, Dtype};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Whether there is an emulated GPU: it takes a compiler for C++.
pub fn has_emulated() -> bool {
    static MADE: OnceLock<bool> = OnceLock::new();
    *MADE.get_or_init(|| {
        driver(&std::env::var("GRADIX_EMULATED_FLAGS").unwrap_or_default())
            .inspect(|path| {
                // SAFETY: nothing in this process has asked for a GPU yet, and other names of the environment stay.
                unsafe {
                    std::env::set_var("GRADIX_CUDA_DRIVER", path);
                    std::env::set_var("GRADIX_NVRTC", path);
                }
            })
            .or_else(|| {
                // Not by a macro, whose text is kept back where a test passes.
                let _ = writeln!(std::io::stderr(), "there is no compiler for C++: no kernel for a GPU is run");
                None
            })
            .is_some()
    })
}

/// The library with the emulated driver and compiler, which compiles kernels with these flags.
fn driver(flags: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda");
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("emulated-{}.so", std::process::id()));
    let text = |name: &str, text: String| format!("-D{name}=\"{}\"", text.replace('"', "\\\""));
    // Kernels that were kept are those of this very emulator.
    let mut hasher = DefaultHasher::new();
    let files = ["driver.cpp", "threads.h", "emulator.h"].map(|file| std::fs::read(folder.join(file)).unwrap());
    (files, flags).hash(&mut hasher);
    let mut command = Command::new("c++");
    command.args(["-std=c++17", "-O1", "-U_FORTIFY_SOURCE", "-shared", "-fPIC"]).args(flags.split_whitespace());
    command.arg(text("EMULATOR_H", folder.join("emulator.h").display().to_string()));
    command.arg(text("EMULATOR_FLAGS", flags.to_string()));
    command.arg(format!("-DEMULATOR_VERSION={}", hasher.finish() % 1_000_000_007));
    command.arg("-o").arg(&path).arg(folder.join("driver.cpp")).arg("-ldl");
    let made = command.status().ok()?;
    assert!(made.success(), "the emulated driver compiles");
    Some(path)
}

/// Whether all is asked for, which takes minutes.
fn is_thorough() -> bool {
    std::env::var_os("GRADIX_EMULATED").is_some_and(|how| how == "all")
}

/// One in so many of the examples, or all if these are asked for; those that fail are listed at the end.
fn some(every: usize, dtype: Dtype, tolerance: f64) {
    if !has_emulated() {
        return;
    }
    let fails = |(name, text): &(String, String)| {
        let how = (Backend::Cuda, Compiling::Usual);
        catch_unwind(|| check(name, text, ASSUMED, dtype, how, tolerance)).is_err()
    };
    let every = if is_thorough() { 1 } else { every };
    let failed: Vec<String> = examples().into_iter().step_by(every).filter(fails).map(|(name, _)| name).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn examples_on_an_emulated_gpu_agree_with_the_oracle() {
    some(6, Dtype::F64, 1e-11);
}

#[test]
fn examples_in_single_precision_on_an_emulated_gpu_are_near_the_oracle() {
    some(10, Dtype::F32, 2e-4);
}

#[test]
fn random_programs_on_an_emulated_gpu_agree_with_the_oracle() {
    if has_emulated() {
        let count = if is_thorough() { 150 } else { 8 };
        crate::generated::check(crate::generated::GENERAL, Backend::Cuda, 3001, count);
        crate::generated::check(crate::generated::FLOORS, Backend::Cuda, 3001, count);
    }
}

#[test]
fn cases_of_derivatives_on_an_emulated_gpu_agree_with_the_oracle() {
    if has_emulated() {
        let programs = derivatives::programs();
        let every = if is_thorough() { 1 } else { programs.len().div_ceil(6) };
        for (title, resolved) in programs.iter().step_by(every) {
            assert!(derivatives::check(title, resolved, (Backend::Cuda, Compiling::Usual)));
        }
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
