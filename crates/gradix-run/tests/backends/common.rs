//! Executables for tests, inputs for them, and what it means to agree.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, Once};

use gradix::domain::sizes::{Known, bind, choose};
use gradix::nest::{Nest, evaluate};
use gradix::program::Places;
use gradix::program::print;
use gradix::program::{ParamKind, Program};
use gradix::{Int, Resolved};
use gradix_run::native::{Cache, Settings};
use gradix_run::{Array, Backend, Dtype, Executable, gradient, interp, random};

pub type Arrays = HashMap<String, Array>;
pub type Results = Vec<(String, Array)>;

/// How the C compiler is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiling {
    /// As for users.
    Usual,
    /// Less optimised, in a fraction of the time: what is computed must not depend on it.
    Quick,
}

/// The backends that there are here.
pub fn backends() -> &'static [Backend] {
    static TOLD: Once = Once::new();
    if settings(Compiling::Usual).compiler().is_ok() {
        return &[Backend::Vm, Backend::Native];
    }
    // Not by a macro, whose text is kept back where a test passes.
    TOLD.call_once(|| {
        let _ = writeln!(std::io::stderr(), "there is no C compiler: only the virtual machine is tested");
    });
    &[Backend::Vm]
}

pub fn has_native() -> bool {
    backends().contains(&Backend::Native)
}

/// A cache that only the tests use, and that is there for the next time.
fn settings(compiling: Compiling) -> Settings {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("backends");
    let mut settings = Settings::from_environment();
    if compiling == Compiling::Quick
        && let Ok(compiler) = settings.compiler()
        && let Some(script) = quick(&folder, &compiler.path.to_string_lossy())
    {
        settings.compiler = Some(script.into());
    }
    Settings { cache: Some(Cache { folder: folder.join("kernels"), limit: 256 << 20 }), ..settings }
}

/// A script that runs the compiler with less optimisation. It stays as it is where it exists: its date is part of the
/// keys of kernels.
#[cfg(unix)]
fn quick(folder: &std::path::Path, compiler: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    static WRITING: Mutex<()> = Mutex::new(());
    let _turn = WRITING.lock().unwrap();
    let (path, text) = (folder.join("cc"), format!("#!/bin/sh\nexec '{compiler}' \"$@\" -O1\n"));
    if std::fs::read_to_string(&path).ok().as_ref() != Some(&text) {
        std::fs::create_dir_all(folder).ok()?;
        std::fs::write(&path, text).ok()?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).ok()?;
    }
    Some(path)
}

#[cfg(not(unix))]
fn quick(_: &std::path::Path, _: &str) -> Option<PathBuf> {
    None
}

pub fn resolve(text: &str) -> Resolved {
    let resolved = gradix::syntax::parse(text).and_then(|ast| gradix::resolve(&ast, &[]));
    resolved.unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

/// A program that is being tested, made ready for one backend.
pub struct Subject<'a> {
    pub name: String,
    pub program: &'a Program,
    pub executable: Executable,
    backend: Backend,
    /// Whether a note said that the last run was left to the oracle.
    told: bool,
}

impl<'a> Subject<'a> {
    /// What was asked for is what computes, and nothing is noted.
    pub fn new(
        name: &str,
        program: &'a Program,
        estimate: &[Int],
        dtype: Dtype,
        (backend, compiling): (Backend, Compiling),
        threads: usize,
    ) -> Self {
        let settings = settings(compiling);
        let mut executable = Executable::with_settings(program, estimate, dtype, backend, Some(threads), &settings);
        let name = format!("{name} ({backend:?}, {dtype:?}, {threads} threads)");
        let notes = executable.take_notes();
        assert_eq!((executable.backend(), notes), (backend, vec![]), "{name}");
        Subject { name, program, executable, backend, told: false }
    }

    /// The results; a run that falls back on the oracle tests nothing, and is a failure.
    pub fn run(&mut self, sizes: &[Int], inputs: &Arrays) -> Results {
        let results = self.executable.evaluate(sizes, inputs);
        let results = results.unwrap_or_else(|error| panic!("{} at {sizes:?}: {error}", self.name));
        let (notes, backend) = (self.executable.take_notes(), self.executable.backend());
        assert_eq!((notes, backend), (vec![], self.backend), "{} at {}", self.name, shown(self.program, sizes));
        results
    }

    /// Runs it against what the oracle says.
    pub fn agrees(&mut self, sizes: &[Int], inputs: &Arrays, expected: &Results, tolerance: f64) {
        let results = self.run(sizes, inputs);
        self.compare(sizes, &results, expected, tolerance);
    }

    /// The same, or `false` if the run was left to the oracle.
    pub fn try_agrees(&mut self, sizes: &[Int], inputs: &Arrays, expected: &Results, tolerance: f64) -> bool {
        let results = self.executable.evaluate(sizes, inputs);
        let results = results.unwrap_or_else(|error| panic!("{} at {sizes:?}: {error}", self.name));
        self.compare(sizes, &results, expected, tolerance);
        let notes = self.executable.take_notes();
        assert!(notes.iter().all(|note| note.message.ends_with("; interp computes")), "{}: {notes:?}", self.name);
        let asked = self.executable.backend() == self.backend;
        // The same sizes again need no second note.
        self.told = !notes.is_empty() || self.told && !asked;
        assert_eq!(self.told, !asked, "{}: {notes:?}", self.name);
        asked
    }

    fn compare(&self, sizes: &[Int], results: &Results, expected: &Results, tolerance: f64) {
        if let Some(difference) = difference(results, expected, tolerance) {
            let text = print::print(self.program).unwrap();
            panic!("{} at {}: {difference}\n{text}", self.name, shown(self.program, sizes));
        }
    }
}

pub fn oracle(program: &Program, sizes: &[Int], inputs: &Arrays) -> Results {
    let outcome = interp(program, sizes, inputs, Dtype::F64);
    outcome.unwrap_or_else(|error| panic!("{error}\n{}", print::print(program).unwrap())).results
}

/// What differs first: values are the same if they are near in relation to the largest of their array, or equal where
/// they are not finite.
pub fn difference(results: &Results, expected: &Results, tolerance: f64) -> Option<String> {
    assert_eq!(results.len(), expected.len());
    for ((result, array), (known, wanted)) in results.iter().zip(expected) {
        assert_eq!((result, &array.shape), (known, &wanted.shape));
        let finite = wanted.data.iter().filter(|value| value.is_finite());
        let scale = finite.fold(1.0, |largest: f64, value| largest.max(value.abs()));
        for (position, (a, b)) in array.data.iter().zip(&wanted.data).enumerate() {
            if !(a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * scale) {
                return Some(format!("{result} is {a} and should be {b} at {position} of {:?}", array.shape));
            }
        }
    }
    None
}

pub fn shown(program: &Program, sizes: &[Int]) -> String {
    let each = program.params.iter().zip(sizes).map(|(param, size)| format!("{} = {size}", param.name));
    each.collect::<Vec<_>>().join(", ")
}

/// Sizes of a program with these values, if it can have them.
pub fn sized(program: &Program, given: &[(String, i64)]) -> Option<Vec<Int>> {
    let given = given.iter().map(|(name, size)| (name.clone(), Int::from(*size))).collect();
    bind(program, &Known { given, shapes: Vec::new() }, &Places::default()).ok()
}

/// The names of the sizes that can be chosen.
pub fn free(program: &Program) -> Vec<String> {
    let free = program.params.iter().filter(|param| param.kind == ParamKind::Free);
    free.map(|param| param.name.clone()).collect()
}

/// The same for all free sizes.
pub fn all(program: &Program, size: i64) -> Vec<(String, i64)> {
    free(program).into_iter().map(|name| (name, size)).collect()
}

/// Small sizes of a program at which it computes something.
pub fn smallest(resolved: &Resolved) -> Vec<(String, i64)> {
    let sizes = choose(&resolved.program, &Known::default(), &resolved.places).unwrap();
    let params = resolved.program.params.iter().zip(&sizes).filter(|(param, _)| param.kind == ParamKind::Free);
    params.map(|(param, size)| (param.name.clone(), i64::try_from(size).unwrap())).collect()
}

/// Assumed sizes: the free ones are all the same, whether or not the program can have that.
pub fn estimate(program: &Program, size: i64) -> Vec<Int> {
    let free = vec![Int::from(size); program.params.len()];
    completed(program, free, 0)
}

/// The sizes of a nest, from those of the program that it was made of.
pub fn sizes_of(nest: &Nest, given: &[Int]) -> Vec<Int> {
    nest.sizes(given)
}

/// Sizes from this one on are computed from the others, unless they are free.
fn completed(program: &Program, mut sizes: Vec<Int>, first: usize) -> Vec<Int> {
    sizes.resize(program.params.len(), Int::ZERO);
    for (position, param) in program.params.iter().enumerate().skip(first) {
        let parts = |parts: &[gradix::program::Affine]| parts.iter().map(|a| evaluate(a, &sizes)).collect::<Vec<_>>();
        match &param.kind {
            ParamKind::Free | ParamKind::Time(_) => {}
            ParamKind::Fixed(value) => sizes[position] = value.clone(),
            ParamKind::Smallest(affines) => sizes[position] = parts(affines).into_iter().min().unwrap(),
            ParamKind::Largest(affines) => sizes[position] = parts(affines).into_iter().max().unwrap(),
        }
    }
    sizes
}

/// Random numbers in (-1, 1).
pub fn inputs(program: &Program, sizes: &[Int]) -> Arrays {
    filled(program, sizes, |name, shape| random::array(4, name, shape).unwrap())
}

/// Random numbers that single precision has.
pub fn single_inputs(program: &Program, sizes: &[Int]) -> Arrays {
    let mut arrays = inputs(program, sizes);
    let data = arrays.values_mut().flat_map(|array| array.data.iter_mut());
    data.for_each(|value| *value = f64::from(*value as f32));
    arrays
}

pub fn filled(program: &Program, sizes: &[Int], array: impl Fn(&str, Vec<usize>) -> Array) -> Arrays {
    let filled = |id| array(&program[id].name, gradient::shape(program, sizes, id).unwrap());
    program.inputs().map(|id| (program[id].name.clone(), filled(id))).collect()
}
