//! Emitted C as a compiler sees it: every part of the library brings what it needs, and nothing is warned of.

use gradix::emit::Real;
use gradix::emit::c::interface::Interface;
use gradix::emit::c::library::{LIBRARY, text};
use std::path::Path;
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut count = 0;
    for path in files.filter(|path| path.extension().is_some_and(|ending| ending == "gx")) {
        let ast = gradix::syntax::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let program = gradix::resolve(&ast, &[]).unwrap().program;
        let derivative = gradix::derive(&program, &Default::default()).unwrap().program;
        for (program, real) in [(program, Real::F32), (derivative, Real::F64)] {
            let nest = gradix::compile(&program, &[], real, &gradix::target::AVX512).unwrap().nest;
            let interface = Interface { name: "example", program: &program, nest: &nest, real };
            accept(&path.display().to_string(), &interface.source(), "-Wunused-function");
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
