//! Emitted C: it brings what it needs, and nothing else.

use gradix::emit::{Real, c};
use gradix::syntax::parse;
use gradix::{Int, compile, derive, resolve};
use std::collections::HashMap;
use std::path::Path;

/// Reading `<immintrin.h>` takes GCC longer than most kernels do; only Clang has no other names for instructions.
const INCLUDES: [&str; 3] = ["<stdint.h>", "<immintrin.h>", "<arm_neon.h>"];

#[test]
fn no_header_is_read_that_is_not_needed() {
    for (name, text) in emitted() {
        let includes: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("#include ")).collect();
        assert_eq!(includes, INCLUDES, "{name}");
        assert!(text.contains("#if defined(__clang__) && defined(__SSE2__)\n#include <immintrin.h>"), "{name}");
        assert!(text.contains("#elif defined(__aarch64__)\n#include <arm_neon.h>"), "{name}");
    }
}

#[test]
fn every_function_is_used() {
    for (name, text) in emitted() {
        let code =
            without_comments(&text).replace("GX_SCALAR(", "GX_SCALAR(gx_").replace("GX_SCALAR2(", "GX_SCALAR2(gx_");
        let mut mentioned: HashMap<&str, usize> = HashMap::new();
        words(&code).for_each(|word| *mentioned.entry(word).or_default() += 1);
        for function in functions(&text) {
            assert!(mentioned[&*function] > 1, "{name}: {function} is not used");
        }
    }
}

#[test]
fn functions_are_found() {
    let text =
        "GX_INLINE gx_v gx_a(gx_v x) { return x; }\nstatic inline int64_t gx_b(int64_t a)\nvoid gx_kernel_0(int x)\n";
    assert_eq!(functions(text), ["gx_a", "gx_b"]);
}

/// Every example and its derivative, for large sizes and for small ones.
fn emitted() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found = Vec::new();
    for path in files.filter(|path| path.extension().is_some_and(|e| e == "gx")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let program = resolve(&parse(&text).unwrap(), &[]).unwrap().program;
        let derivative = derive(&program, &Default::default()).unwrap().program;
        for (what, program) in [("value", &program), ("derivative", &derivative)] {
            for size in [512, 5] {
                let compiled =
                    compile(program, &vec![Int::from(size); program.params.len()], Real::F64, &gradix::target::AVX512)
                        .unwrap();
                found.push((format!("{}, {what} at {size}", path.display()), c(&compiled.nest, Real::F64)));
            }
        }
    }
    assert!(found.len() > 160);
    found
}

/// The functions that a text keeps to itself.
fn functions(text: &str) -> Vec<String> {
    let own = text.lines().filter(|line| line.starts_with("GX_INLINE ") || line.starts_with("static "));
    own.filter_map(|line| words(line.split('(').next()?).last().map(String::from)).collect()
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or_default().to_string();
    first + &parts.filter_map(|part| part.split_once("*/")).map(|(_, code)| code).collect::<String>()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}
