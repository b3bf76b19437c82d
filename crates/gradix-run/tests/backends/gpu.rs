//! Kernels for GPUs. Unless `GRADIX_GPU=device` asks for the machine's own (`make test-cuda`), they run on the processor: a driver and
//! a compiler of the tests' own stand in for CUDA's (`tests/cuda/driver.cpp`, `tests/cuda/emulator.h`). Everything but the
//! two libraries is what runs on a GPU.

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

/// Whether the machine's own GPU is asked for; a test fails where there is none.
fn is_device() -> bool {
    std::env::var("GRADIX_GPU").is_ok_and(|which| which == "device")
}

/// Whether there is a GPU, or an emulated one: that takes a compiler for C++.
fn has_gpu() -> bool {
    static MADE: OnceLock<bool> = OnceLock::new();
    *MADE.get_or_init(|| is_device() || has_emulated())
}

fn has_emulated() -> bool {
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

/// One in so many is tested: `GRADIX_EMULATED` says otherwise, by a number or with `all`, which takes minutes.
fn every(usual: usize) -> usize {
    match std::env::var("GRADIX_EMULATED") {
        Ok(how) if how == "all" => 1,
        Ok(how) => how.parse().unwrap_or(usual),
        Err(_) => usual,
    }
}

/// Some of these, or the one that `GRADIX_ONLY` names; those that fail are listed at the end.
fn some<T: std::panic::RefUnwindSafe>(
    all: Vec<(String, T)>,
    usual: usize,
    test: &(dyn Fn(&str, &T) + std::panic::RefUnwindSafe),
) {
    if !has_gpu() {
        return;
    }
    let fails = |(name, subject): &(String, T)| catch_unwind(|| test(name, subject)).is_err();
    let only = std::env::var("GRADIX_ONLY").ok();
    let step = if only.is_some() { 1 } else { every(usual) };
    let is_asked = |(name, _): &(String, T)| only.as_ref().is_none_or(|only| name == only);
    let failed: Vec<String> =
        all.into_iter().step_by(step).filter(is_asked).filter(fails).map(|(name, _)| name).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

const CUDA: (Backend, Compiling) = (Backend::Cuda, Compiling::Usual);

#[test]
fn examples_on_a_gpu_agree_with_the_oracle() {
    some(examples(), 6, &|name, text| check(name, text, ASSUMED, Dtype::F64, CUDA, 1e-11));
}

#[test]
fn examples_in_single_precision_on_a_gpu_are_near_the_oracle() {
    some(examples(), 10, &|name, text| check(name, text, ASSUMED, Dtype::F32, CUDA, 2e-4));
}

#[test]
fn random_programs_on_a_gpu_agree_with_the_oracle() {
    if has_gpu() {
        let count = (150 / every(20)) as u64;
        crate::generated::check(crate::generated::GENERAL, Backend::Cuda, 3001, count);
        crate::generated::check(crate::generated::FLOORS, Backend::Cuda, 3001, count);
    }
}

#[test]
fn cases_of_derivatives_on_a_gpu_agree_with_the_oracle() {
    some(derivatives::programs(), 25, &|title, resolved| {
        derivatives::check(title, resolved, CUDA);
    });
}

/// The same under AddressSanitizer, in a process of its own: memory of the device, of blocks and of threads is all that
/// kernels touch.
#[test]
fn kernels_touch_no_memory_but_their_own() {
    if is_device() {
        return; // Emulated ones only: on a device, `compute-sanitizer` asks.
    }
    let found = Command::new("c++").arg("-print-file-name=libasan.so").output().ok();
    let library = found.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    let Some(library) = library.filter(|path| path.is_absolute() && cfg!(target_os = "linux")) else {
        let _ = writeln!(std::io::stderr(), "there is no AddressSanitizer: no kernel for a GPU is run under it");
        return;
    };
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "gpu::examples_on_a_gpu_agree_with_the_oracle"]);
    child.env("LD_PRELOAD", library).env("ASAN_OPTIONS", "detect_leaks=0");
    child.env("GRADIX_EMULATED_FLAGS", "-fsanitize=address").env("GRADIX_EMULATED", every(20).to_string());
    let output = child.output().unwrap();
    let [told, wrong] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success() && told.contains("1 passed"), "{told}\n{wrong}");
}

/// Where two threads or two blocks touch what one of them writes, their order shows.
#[test]
fn results_do_not_depend_on_the_order_of_threads_and_blocks() {
    if is_device() {
        return; // Nobody chooses it there; the test below repeats what it gets.
    }
    let named = |text: &&str| (text.to_string(), text.to_string());
    let own = [
        "input a[N, K], b[M, K]; y[i, j] = sum[k] (a[i, k] + b[j, k])^2",
        "input x[N, M]; s = sum[i, j] x[i, j]^2; m[j] = max[i] x[i, j]",
        "input x[N], w[M]; y[i in 0..N - M + 1] = sum[k] x[i + k] * w[k]",
    ];
    let programs = own.iter().map(named).collect();
    some(programs, 1, &|_, text| same_in_both_orders(text));
    some(examples(), 10, &|_, text| same_in_both_orders(text));
}

fn same_in_both_orders(text: &str) {
    let path = std::env::var_os("GRADIX_CUDA_DRIVER").unwrap();
    // SAFETY: it is loaded already.
    let library = unsafe { libloading::Library::new(path) }.unwrap();
    // SAFETY: the driver of the tests has it.
    let reverse: libloading::Symbol<unsafe extern "C" fn(i32)> = unsafe { library.get(b"emulator_reverse") }.unwrap();
    // SAFETY: it sets a number.
    let found = bits(text, 2, &|order| unsafe { reverse(order) });
    assert_eq!(found[0], found[1], "{text}");
}

#[test]
fn results_are_the_same_bits_each_time() {
    let times = if is_device() { 20 } else { 2 };
    some(examples(), 10, &|name, text| {
        let found = bits(text, times, &|_| ());
        assert!(found.iter().all(|one| *one == found[0]), "{name}");
    });
}

/// The bits of all results and derivatives in single precision, run so many times, with something done before each.
fn bits(text: &str, times: i32, before: &dyn Fn(i32)) -> Vec<Vec<u64>> {
    let resolved = resolve(text);
    let program = gradix::derive(&resolved.program, &Default::default()).unwrap().program;
    let mut subject = Subject::new(text, &program, &estimate(&program, ASSUMED), Dtype::F32, CUDA, 1);
    // Odd ones if possible, and otherwise the smallest.
    let all = crate::examples::sizes(&resolved);
    let sizes = all.iter().rev().skip(1).chain(all.last()).find_map(|given| sized(&program, given)).unwrap();
    let inputs = single_inputs(&program, &sizes);
    let mut run = |time: i32| {
        before(time);
        let results = subject.run(&sizes, &inputs);
        results.into_iter().flat_map(|(_, array)| array.data.to_vec()).map(f64::to_bits).collect()
    };
    (0..times).map(&mut run).collect()
}
