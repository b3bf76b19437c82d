//! Emitted C as a compiler sees it: every part of the library brings what it needs, and nothing is warned of.

#[path = "support/programs.rs"]
mod programs;

use gradix::emit::Real;
use gradix::emit::c::interface::Interface;
use gradix::emit::c::library::{LIBRARY, text};
use std::process::Command;

#[test]
fn every_snippet_compiles_with_exactly_what_it_needs() {
    for real in ["GX_F64", "GX_F32"] {
        for snippet in LIBRARY {
            accept(snippet.name, &format!("#define {real}\n{}", text([*snippet])), "-Wno-unused-function");
        }
    }
}

#[test]
fn examples_and_their_derivatives_compile_without_a_warning() {
    let mut count = 0;
    for (name, text) in programs::examples() {
        let ast = gradix::syntax::parse(&text).unwrap();
        let program = gradix::resolve(&ast, &[]).unwrap().program;
        let derivative = gradix::derive(&program, &Default::default()).unwrap().program;
        for (program, real) in [(program, Real::F32), (derivative, Real::F64)] {
            let nest = gradix::compile(&program, &[], real, &gradix::target::AVX512).unwrap().nest;
            let interface = Interface { name: "example", program: &program, nest: &nest, real };
            accept(&name, &interface.source(), "-Wunused-function");
            count += 1;
        }
    }
    assert!(count > 80);
}

/// Has the compiler read a text; what it warns of is an error.
fn accept(name: &str, text: &str, option: &str) {
    use std::io::Write;
    let mut command = Command::new("cc");
    command.args([
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-pedantic",
        "-Werror",
        option,
        "-march=native",
        "-fsyntax-only",
        "-xc",
        "-",
    ]);
    command.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        eprintln!("no C compiler: emitted code is not tested");
        return;
    };
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
}
