//! Emitted C: it brings what it needs, and nothing else.

use gradix::emit::c::library::{LIBRARY, Snippet};
use gradix::emit::{Real, c};
use gradix::syntax::parse;
use gradix::{Int, compile, derive, resolve};
use std::collections::HashSet;
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
fn every_snippet_is_used() {
    for (name, text) in emitted() {
        for snippet in LIBRARY.iter().filter(|snippet| text.contains(snippet.text)) {
            let others = without_comments(&text.replace(snippet.text, ""));
            let mentioned: HashSet<&str> = words(&others).collect();
            let used = defined(snippet).iter().any(|name| mentioned.contains(&**name));
            assert!(used, "{name}: nothing of {} is used", snippet.name);
        }
    }
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

/// Names that a snippet defines: of macros and of functions, some of which macros define.
fn defined(snippet: &Snippet) -> Vec<String> {
    let mut found = Vec::new();
    for line in without_comments(snippet.text).lines() {
        let (head, rest) = line.split_once('(').unwrap_or((line, ""));
        if let Some(name) = line.strip_prefix("#define ") {
            found.extend(words(name).next().map(String::from));
        } else if ["GX_INLINE ", "GX_WHOLE ", "GX_MASK ", "static "].iter().any(|start| line.starts_with(start)) {
            found.extend(words(head).last().map(String::from));
        } else if line.starts_with("GX_") {
            let argument = words(rest).next().unwrap_or_default();
            found.extend([("gx_", ""), ("gx_", "_1"), ("gx_put_", "")].map(|(a, b)| format!("{a}{argument}{b}")));
        }
    }
    found
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or_default().to_string();
    first + &parts.filter_map(|part| part.split_once("*/")).map(|(_, code)| code).collect::<String>()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}
