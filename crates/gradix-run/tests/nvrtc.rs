//! Kernels for GPUs are compiled by NVIDIA's own compiler, which needs no GPU: all examples with their gradients.
//!
//! The compiler is a large download. The test takes one that is there (`$GRADIX_NVRTC`, the system's, or what `make nvrtc` has
//! put under `target`); without one, a line on stderr says that nothing was compiled.

use gradix::derive::Options;
use gradix::nest::Real;
use gradix::program::Program;
use gradix::target::SM_90;
use gradix_run::cuda::Compiler;
use std::collections::HashSet;
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
        let ptx = String::from_utf8_lossy(&code);
        assert!(ptx.starts_with("//"), "PTX is text");
        assert_eq!(sign_that_is_lost(&ptx), None, "{}", path.display());
        compiled += 1;
    }
    assert!(compiled > 60);
}

/// The largest or smallest of three numbers with 32 bits of which one is negated: the assemblers of CUDA 12.8 to 13.3 make an
/// instruction of it that does not negate.
fn sign_that_is_lost(ptx: &str) -> Option<&str> {
    let (mut negated, mut inner) = (HashSet::new(), HashSet::new());
    ptx.lines().find(|line| {
        let Some((operation, operands)) = line.trim().split_once(char::is_whitespace) else { return false };
        let operands: Vec<&str> = operands.split([',', ';']).map(str::trim).collect();
        let reads = |known: &HashSet<String>| operands.iter().skip(1).any(|name| known.contains(*name));
        let is_choice = matches!(operation, "max.s32" | "min.s32");
        let found = is_choice && reads(&inner);
        if operation == "neg.s32" || operation == "sub.s32" && operands.get(1) == Some(&"0") {
            negated.insert(operands[0].to_string());
        } else if is_choice && reads(&negated) {
            inner.insert(operands[0].to_string());
        }
        found
    })
}

#[test]
fn signs_that_are_lost_are_found() {
    let sound = "neg.s32 %r4, %r1;\nmax.s32 %r5, %r2, %r4;\nadd.s32 %r6, %r5, %r3;\nmax.s32 %r7, %r6, %r3;";
    assert_eq!(sign_that_is_lost(sound), None);
    let lost = "neg.s32 %r4, %r1;\n max.s32 \t%r5, %r2, %r4;\nmax.s32 %r6, %r5, %r3;";
    assert_eq!(sign_that_is_lost(lost), Some("max.s32 %r6, %r5, %r3;"));
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
