//! Kernels for GPUs are compiled by NVIDIA's own compiler, which needs no GPU: all examples with their gradients.
//!
//! The compiler is a large download. The test takes one that is there (`$GRADIX_NVRTC`, the system's, or what `make nvrtc` has
//! put under `target`); without one, a line on stderr says that nothing was compiled.

use gradix::derive::Options;
use gradix::nest::Real;
use gradix::program::Program;
use gradix::target::SM_90;
use gradix_run::cuda::Compiler;
use std::io::Write;
use std::path::Path;
use std::process::Command;

#[test]
fn emitted_kernels_compile_with_the_compiler_of_cuda() {
    let Some(compiler) = compiler() else {
        // Not by a macro, whose text is kept back where a test passes.
        let _ =
            writeln!(std::io::stderr(), "there is no NVRTC: no kernel is compiled for a GPU (`make nvrtc` gets it)");
        return;
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compiled = 0;
    for entry in std::fs::read_dir(root.join("../../examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "gx") {
            continue;
        }
        // Both types and both widths, by turns: what differs between them is a name.
        let (real, narrow) = [(Real::F32, true), (Real::F64, false)][compiled % 2];
        let text = gradix::emit::cuda(&nest(&std::fs::read_to_string(&path).unwrap(), real), real);
        let code = compiler.compile(&text, 90, narrow, true);
        let code = code.unwrap_or_else(|note| panic!("{}: {note}\n{text}", path.display()));
        assert!(code.starts_with(b"//"), "PTX is text");
        compiled += 1;
    }
    assert!(compiled > 60);
}

/// NVIDIA's compiler, where there is one or one is asked for.
fn compiler() -> Option<Compiler> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nvrtc");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda/nvrtc.sh");
    let fetch = std::env::var_os("GRADIX_FETCH_NVRTC").is_some();
    if fetch || folder.exists() {
        let script = Command::new("bash").arg(script).arg(&folder).output().unwrap();
        assert!(script.status.success(), "{}", String::from_utf8_lossy(&script.stderr));
        return Some(Compiler::open(String::from_utf8(script.stdout).unwrap().trim().as_ref()).unwrap());
    }
    Compiler::load().ok()
}

/// A program with its gradient for a GPU.
fn nest(text: &str, real: Real) -> gradix::nest::Nest {
    let program = gradix::syntax::parse(text).and_then(|ast| gradix::resolve(&ast, &[])).unwrap().program;
    let options = Options { with_results: true, ..Options::default() };
    let program: Program = gradix::derive(&program, &options).unwrap().program;
    gradix::compile(&program, &[], real, &SM_90).unwrap().nest.into_nest()
}
