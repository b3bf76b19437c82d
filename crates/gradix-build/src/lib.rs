//! gradix programs as functions in Rust, made by a build script: no gradix and no C compiler when they run.
//!
//! `build.rs`, with `gradix-build` among the `[build-dependencies]`:
//!
//! ```no_run
//! fn main() -> Result<(), gradix_build::Error> {
//!     gradix_build::Program::new("src/rbf.gx").gradient(true).compile()
//! }
//! ```
//!
//! and where it is called:
//!
//! ```ignore
//! include!(concat!(env!("OUT_DIR"), "/rbf.rs"));
//!
//! let sizes = rbf::Sizes { N: 3, M: 4, D: 2 };
//! let inputs = rbf::Inputs { x: &x, z: &z, w: &w, dy: &dy };
//! let rbf::Results { y, dx, dz, dw } = rbf::compute(sizes, inputs)?;
//! ```
//!
//! The module has the program in its documentation, the structs that are named after what it computes, `compute`, which
//! makes new arrays, and `run`, which writes into those of the caller and allocates nothing once its workspace has grown.
//! Lengths and sizes are checked; `Error` says which array does not fit. Functions run on the thread that calls, and may be
//! called from any number of threads.
//!
//! The build script needs GCC or Clang, for the code has their vectors. It is made for the processors that the crate is
//! compiled for: `RUSTFLAGS="-C target-cpu=native"` (or `x86-64-v3`, `x86-64-v4`) gives wider vectors than the default.

mod module;

use gradix::derive::Options;
use gradix::diagnostic::Diagnostic;
use gradix::domain::sizes::{Known, choose};
use gradix::emit::Real;
use gradix::emit::c::interface::Interface;
use gradix::nest::Verified;
use gradix::program::Places;
use gradix::program::print::print;
use gradix::target::{AVX2, AVX512, NEON, PORTABLE};
use gradix::{Int, Target};
use gradix_view::{Source, render};
use std::fmt;
use std::path::{Path, PathBuf};

/// A program, and what is to be made of it.
#[must_use = "nothing is made before `compile`"]
#[derive(Clone, Debug)]
pub struct Program {
    file: PathBuf,
    name: Option<String>,
    derivatives: Option<Options>,
    sizes: Vec<(String, Int)>,
    real: Real,
}

/// What went wrong, with the place in the program where there is one.
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The message: it is what a build script that returns the error shows.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

impl Program {
    /// The program in a file, whose path is relative to the folder of `Cargo.toml`.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Program { file: file.into(), name: None, derivatives: None, sizes: Vec::new(), real: Real::F64 }
    }

    /// The name of the module and of its file; that of the program's file unless given.
    pub fn name(self, name: &str) -> Self {
        Program { name: Some(name.into()), ..self }
    }

    /// Whether the derivatives by all arguments are computed besides the results.
    pub fn gradient(self, wanted: bool) -> Self {
        let derivatives = wanted.then(|| Options { with_results: true, ..Options::default() });
        Program { derivatives, ..self }
    }

    /// The results with the derivatives by these arguments only.
    pub fn wrt(self, arguments: &[&str]) -> Self {
        let wrt = Some(arguments.iter().map(ToString::to_string).collect());
        let derivatives = Some(Options { with_results: true, wrt, ..self.derivatives.unwrap_or_default() });
        Program { derivatives, ..self }
    }

    /// Fixes a size: small ones make faster code.
    pub fn size(mut self, name: &str, size: i64) -> Self {
        self.sizes.push((name.into(), size.into()));
        self
    }

    /// Single precision in place of double.
    pub fn f32(self) -> Self {
        Program { real: Real::F32, ..self }
    }

    /// Makes the library and the module, `NAME.rs` in `OUT_DIR`.
    pub fn compile(self) -> Result<(), Error> {
        println!("cargo::rerun-if-changed={}", self.file.display());
        let text = std::fs::read_to_string(&self.file).map_err(|error| unusable("read", &self.file, &error))?;
        let source = Source { name: self.file.display().to_string(), text };
        let program = self.program(&source.text).map_err(|errors| refused(&errors, &source))?;
        let target = target(&variable("CARGO_CFG_TARGET_ARCH")?, &variable("CARGO_CFG_TARGET_FEATURE")?);
        let nest = nest(&program, self.real, &target).map_err(|error| refused(&[error], &source))?;
        let (name, folder) = (self.module()?, PathBuf::from(variable("OUT_DIR")?));
        // Crates that are linked together may have modules of the same name, also those that differ in their versions.
        let symbols = [variable("CARGO_PKG_NAME")?, variable("CARGO_PKG_VERSION")?, name.clone()].join("_");
        let symbols: String = symbols.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let interface = Interface { name: &symbols, program: &program, nest: &nest, real: self.real };
        let unproven = interface.unproven();
        if !unproven.is_empty() {
            let way = "fix sizes with 'size', or run it with gradix-run, which looks at the sizes at hand";
            return Err(Error(format!("no safe function: it can't be shown that the code {}; {way}", unproven[0])));
        }
        let [c, rust] = ["c", "rs"].map(|extension| folder.join(format!("{name}.{extension}")));
        for (file, text) in [(&c, interface.source()), (&rust, module::text(&name, &interface))] {
            std::fs::write(file, text).map_err(|error| unusable("write", file, &error))?;
        }
        library(&c, &symbols, &target)
    }

    /// What is computed.
    fn program(&self, text: &str) -> Result<gradix::program::Program, Vec<Diagnostic>> {
        let resolved = gradix::resolve(&gradix::syntax::parse(text)?, &self.sizes)?;
        let program = match &self.derivatives {
            None => resolved.program,
            Some(options) => {
                let derived = gradix::derive(&resolved.program, options);
                derived.map_err(|errors| resolved.places.mark(errors))?.program
            }
        };
        print(&program).map_err(|error| vec![error])?;
        Ok(program)
    }

    fn module(&self) -> Result<String, Error> {
        let stem = self.file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = self.name.clone().or(stem).unwrap_or_default();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_part);
        match is_name && !module::is_word(&name) {
            true => Ok(name),
            false => Err(Error(format!("'{name}' can't name a module: choose another with 'name'"))),
        }
    }
}

/// The machine to decide for: the widest vectors that the compiler may use.
fn target(architecture: &str, features: &str) -> Target {
    let has = |names: &[&str]| names.iter().all(|name| features.split(',').any(|feature| feature == *name));
    match architecture {
        "x86_64" if has(&["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"]) => AVX512,
        "x86_64" if has(&["avx2", "fma", "bmi2"]) => AVX2,
        "aarch64" => NEON,
        _ => PORTABLE,
    }
}

/// The loops: plain ones where it can't be shown that fast ones are right at all sizes.
fn nest(program: &gradix::program::Program, real: Real, target: &Target) -> Result<Verified, Diagnostic> {
    let fast = gradix::compile(program, &[], real, target)?.nest;
    if fast.checks().is_empty() {
        return Ok(fast);
    }
    let Ok(small) = choose(program, &Known::default(), &Places::default()) else { return Ok(fast) };
    Ok(gradix::compile(program, &small, real, target)?.nest)
}

/// Has the C compiler make a library, and Cargo link it.
fn library(file: &Path, name: &str, target: &Target) -> Result<(), Error> {
    let mut build = cc::Build::new();
    // Also in debug builds: loops are all that there is, and nobody steps through them.
    build.file(file).opt_level(2).warnings(false).flags(target.options.split_whitespace());
    build.flags(["-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math"]);
    build.try_compile(&format!("gradix_{name}")).map_err(|error| Error(format!("{}: {error}", file.display())))?;
    if variable("CARGO_CFG_TARGET_FAMILY")?.split(',').any(|family| family == "unix") {
        println!("cargo::rustc-link-lib=m");
    }
    Ok(())
}

/// What Cargo tells build scripts.
fn variable(name: &str) -> Result<String, Error> {
    std::env::var(name).map_err(|_| Error(format!("${name} is not set: this is for build scripts, which Cargo runs")))
}

fn refused(errors: &[Diagnostic], source: &Source) -> Error {
    Error(render(errors, source, false).trim_end().to_string())
}

fn unusable(verb: &str, file: &Path, error: &std::io::Error) -> Error {
    Error(format!("can't {verb} {}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_made_for_the_processors_that_rust_compiles_for() {
        assert_eq!(target("x86_64", "fxsr,sse,sse2"), PORTABLE);
        assert_eq!(target("x86_64", "avx,avx2,bmi1,bmi2,fma,sse2"), AVX2);
        assert_eq!(target("x86_64", "avx2,avx512bw,avx512cd,avx512dq,avx512f,avx512vl,bmi2,fma"), AVX512);
        assert_eq!(target("aarch64", "neon"), NEON);
        assert_eq!(target("riscv64", ""), PORTABLE);
    }

    #[test]
    fn the_file_or_the_caller_names_the_module() {
        assert_eq!(Program::new("src/rbf.gx").module().unwrap(), "rbf");
        assert_eq!(Program::new("src/conv-1d.gx").name("conv").module().unwrap(), "conv");
        let error = Program::new("src/conv-1d.gx").module().unwrap_err();
        assert_eq!(error.to_string(), "'conv-1d' can't name a module: choose another with 'name'");
        assert!(Program::new("loop.gx").module().is_err());
    }
}
