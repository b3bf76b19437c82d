//! Errors as exceptions of the family `gradix.GradixError`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gradix::Diagnostic;
use gradix_run::Note;
use gradix_view::{Source, place, render};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The name of an exception in `gradix._errors`.
#[derive(Clone, Copy)]
pub enum Kind {
    /// The program's text is at fault.
    Source,
    /// An argument is missing, unknown or not a thing that can be an argument.
    Argument,
    /// Shapes or sizes do not fit.
    Shape,
    /// The type of an array's elements can't be used.
    Dtype,
    /// The computation could not be done.
    Run,
    /// A defect of gradix.
    Internal,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Source => "SourceError",
            Kind::Argument => "ArgumentError",
            Kind::Shape => "ShapeError",
            Kind::Dtype => "DtypeError",
            Kind::Run => "RunError",
            Kind::Internal => "InternalError",
        }
    }
}

/// An exception with a plain message.
pub fn error(py: Python<'_>, kind: Kind, message: impl Into<String>) -> PyErr {
    let made = module(py).and_then(|module| module.getattr(kind.name())?.call1((message.into(),)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// An exception that tells everything that is wrong, with the places in the source.
pub fn refuse(py: Python<'_>, kind: Kind, diagnostics: &[Diagnostic], source: &Source) -> PyErr {
    let diagnostics: Vec<Diagnostic> = diagnostics.iter().map(in_python).collect();
    let text = render(&diagnostics, source, false);
    let records: Vec<_> = diagnostics
        .iter()
        .map(|diagnostic| {
            let place =
                place(diagnostic, source).map(|place| (place.line, place.column, place.end_line, place.end_column));
            (diagnostic.code, diagnostic.message.clone(), place, diagnostic.hints.clone())
        })
        .collect();
    let made = module(py).and_then(|module| {
        module.getattr(kind.name())?.call_method1("_from", (text.trim_end(), records, &source.text))
    });
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The diagnostic with hints about the command line in Python's words.
fn in_python(diagnostic: &Diagnostic) -> Diagnostic {
    let words = |hint: &String| {
        let (before, rest) = hint.split_once("(on the command line: --param ")?;
        let (assignment, after) = rest.split_once(')')?;
        let (name, value) = assignment.split_once('=')?;
        let value = if value == "…" { "..." } else { value };
        Some(format!("{before}(in Python: compile(..., sizes={{'{name}': {value}}})){after}"))
    };
    let hints = diagnostic.hints.iter().map(|hint| words(hint).unwrap_or(hint.clone())).collect();
    Diagnostic { hints, ..diagnostic.clone() }
}

/// Tells what there is to tell as warnings.
pub fn warn(py: Python<'_>, notes: &[Note]) -> PyResult<()> {
    notes.iter().try_for_each(|note| module(py)?.call_method1("warn", (note.to_string(),)).map(drop))
}

/// Runs what may have a defect: a panic becomes an exception.
pub fn guarded<T>(py: Python<'_>, run: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let message = format!("a defect of gradix: {}", text.unwrap_or("a part of it failed"));
        Err(error(py, Kind::Internal, message))
    })
}

fn module<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("gradix._errors").map(Bound::unbind))?;
    Ok(module.bind(py).clone())
}
