//! A program, and what can be asked of it.

use std::sync::Arc;

use gradix::derive::{Derived, Mode, Options};
use gradix::explain::explain;
use gradix::program::print;
use gradix::program::{Program, TensorId};
use gradix::syntax::{self, Ast};
use gradix::{Diagnostic, Int, derive};
use gradix_run::check::{Settings, check, check_at_chosen};
use gradix_run::function::How;
use gradix_run::gradient::carried;
use gradix_run::{Backend, confirm};
use gradix_view::Source;
use gradix_view::lattice::{self, Lattice};
use pyo3::prelude::*;

use crate::errors::{Kind, error, guarded, refuse};
use crate::plan::{Plan, how};
use crate::signals;

/// A derivative beside its numeric value, as `Function::check` gives it.
type Comparison = (String, String, Vec<usize>, f64, usize, &'static str);
type Names = Option<Vec<String>>;
type Signature = Vec<(String, Vec<String>)>;

/// A program in index notation.
#[pyclass(frozen, module = "gradix._gradix")]
pub struct Function {
    source: Source,
    ast: Ast,
    /// The program in canonical form.
    text: String,
    how: How,
    run: Arc<gradix_run::Function>,
}

#[pymethods]
impl Function {
    /// The function that a text defines, at some fixed sizes, with what runs it; `name` is for messages.
    #[new]
    #[pyo3(signature = (text, name, sizes, backend, threads, /))]
    fn new(
        py: Python<'_>,
        text: String,
        name: String,
        sizes: Vec<(String, i64)>,
        backend: &Bound<'_, PyAny>,
        threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        guarded(py, || {
            let how = how(threads, Some(backend), How { backend: Backend::Auto, threads: None })?;
            let source = Source { name, text };
            let fixed = named(sizes);
            let resolved = py.detach(|| {
                let ast = syntax::parse(&source.text)?;
                let resolved = gradix::resolve(&ast, &fixed)?;
                // As it was written, unless sizes were fixed from outside.
                let text = if fixed.is_empty() {
                    syntax::print(&ast)
                } else {
                    print::print(&resolved.program).map_err(one)?
                };
                Ok((ast, text, resolved))
            });
            let (ast, text, resolved) =
                resolved.map_err(|errors: Vec<Diagnostic>| refuse(py, Kind::Source, &errors, &source))?;
            Ok(Function { source, ast, text, how, run: Arc::new(gradix_run::Function::new(resolved)) })
        })
    }

    /// The program in canonical form.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// The arguments, with their extents.
    #[getter]
    fn inputs(&self) -> Signature {
        self.signature(self.program().inputs())
    }

    /// The results, with their extents.
    #[getter]
    fn outputs(&self) -> Signature {
        self.signature(self.program().outputs.clone())
    }

    /// The sizes that calls may give, or that follow from the shapes of arrays.
    #[getter]
    fn sizes(&self) -> Vec<String> {
        gradix_run::function::free_names(self.program())
    }

    /// How to compute the results (`value`), derivatives (`grad`, `jvp`, `jacobian`, `hessian`) or both (`value_and_grad`).
    #[pyo3(signature = (what, wrt, of, /))]
    fn plan(&self, py: Python<'_>, what: &str, wrt: Names, of: Names) -> PyResult<Plan> {
        guarded(py, || {
            let derived = py.detach(|| plan(self.program(), what, wrt, of));
            let derived = derived.map_err(|errors| self.refuse_asked(py, Kind::Source, errors))?;
            Ok(Plan::new(py, Arc::clone(&self.run), self.source.clone(), self.how, derived))
        })
    }

    /// The text of a derivative, held to the function by enumeration if `verify` asks for it, and the names of what it takes
    /// besides the arguments: tangents, or upstream derivatives, also those that it does not depend on.
    #[pyo3(signature = (mode, wrt, of, inline, verify, /))]
    fn derive(
        &self,
        py: Python<'_>,
        mode: &str,
        wrt: Names,
        of: Names,
        inline: bool,
        verify: bool,
    ) -> PyResult<(String, Vec<String>)> {
        guarded(py, || {
            let refused = |errors| self.refuse_asked(py, Kind::Source, errors);
            let options = options(mode, wrt, of).map_err(refused)?;
            let derived = py.detach(|| derive(self.program(), &options)).map_err(refused)?;
            if verify {
                let confirmed = py.detach(|| confirm(self.program(), &derived, &options));
                let report =
                    confirmed.map_err(|wrong| wrong.report(&self.source.text, &options, &[], &derived.program));
                report.map_err(|report| error(py, Kind::Internal, report))?;
            }
            let tree = py.detach(|| print::ast(&derived.program, inline)).map_err(|error| refused(vec![error]))?;
            Ok((syntax::print(&tree), derived.seeds.into_iter().map(|seed| seed.name).collect()))
        })
    }

    /// The program for a batch: the arguments named get one more dimension, the first.
    #[pyo3(signature = (names, /))]
    fn batch(&self, py: Python<'_>, names: Vec<String>) -> PyResult<String> {
        guarded(py, || {
            let program = self.program();
            let mut chosen: Vec<TensorId> = Vec::new();
            for name in names {
                match program.inputs().find(|input| program[*input].name == name) {
                    Some(input) => chosen.push(input),
                    None => {
                        return Err(error(py, Kind::Argument, format!("the program has no argument '{name}'")));
                    }
                }
            }
            print::print(&gradix::batch(program, &chosen)).map_err(|error| self.refuse(py, Kind::Run, vec![error]))
        })
    }

    /// The program, and with `derivatives` those too, in the language of LaTeX.
    #[pyo3(signature = (derivatives, /))]
    fn latex(&self, py: Python<'_>, derivatives: bool) -> PyResult<String> {
        guarded(py, || {
            let text = py.detach(|| match derivatives {
                true => {
                    let options = Options { with_results: true, ..Options::default() };
                    let derivative = derive(self.program(), &options)?.program;
                    Ok(syntax::latex(&print::ast(&derivative, false).map_err(one)?))
                }
                false => Ok(syntax::latex(&self.ast)),
            });
            text.map_err(|errors| self.refuse(py, Kind::Run, errors))
        })
    }

    /// The computation graph as SVG, with or without that of the derivatives.
    #[pyo3(signature = (derivatives, /))]
    fn draw(&self, py: Python<'_>, derivatives: bool) -> PyResult<String> {
        guarded(py, || {
            let text = py.detach(|| {
                let wanted = derivatives && self.program().has_inputs();
                let gradient = wanted.then(|| derive(self.program(), &Options::default())).transpose()?;
                gradix_view::graph::svg(self.program(), gradient.as_ref().map(|gradient| &gradient.program))
                    .map_err(one)
            });
            text.map_err(|errors| self.refuse(py, Kind::Run, errors))
        })
    }

    /// The algebra behind the derivatives as text, and lattices as SVG, which is empty if there is nothing to draw.
    #[pyo3(signature = (wrt, at, sizes, /))]
    fn explain(
        &self,
        py: Python<'_>,
        wrt: Names,
        at: Option<Vec<i64>>,
        sizes: Vec<(String, i64)>,
    ) -> PyResult<(String, String)> {
        guarded(py, || {
            let refuse = |errors| self.refuse(py, Kind::Argument, errors);
            let reports = explain(self.program(), wrt.as_deref(), None).map_err(refuse)?;
            let text = gradix_view::explain::text(self.program(), &reports);
            let (given, places) = (named(sizes), self.run.places());
            lattice::known(self.program(), &given).map_err(refuse)?;
            if !reports.iter().any(|report| Lattice::can_draw(self.program(), report)) {
                return Ok((text, String::new()));
            }
            let sizes = gradix_view::explain::sizes(self.program(), &reports, &given, at.as_deref(), places);
            let sizes = sizes.map_err(|errors| self.refuse_asked(py, Kind::Shape, errors))?;
            let svg = gradix_view::explain::lattices(self.program(), &reports, &sizes, at.as_deref());
            Ok((text, svg.map_err(|message| error(py, Kind::Argument, message))?))
        })
    }

    /// Compares the derivatives with numeric differentiation, on random arrays. For each derivative: its name, its argument,
    /// its shape, the largest error, how many elements could not be measured, and the verdict.
    #[pyo3(signature = (order, seed, tolerance, sizes, /))]
    fn check(
        &self,
        py: Python<'_>,
        order: u32,
        seed: u64,
        tolerance: Option<f64>,
        sizes: Vec<(String, i64)>,
    ) -> PyResult<Vec<Comparison>> {
        guarded(py, || {
            let rows = signals::detached(py, || {
                let (given, settings) = (named(sizes), Settings { seed, tolerance, second: order > 1 });
                lattice::known(self.program(), &given)?;
                if !self.program().has_inputs() {
                    return Ok(Vec::new());
                }
                let first = derive(self.program(), &Options::default())?;
                let places = self.run.places();
                let found = check_at_chosen(self.program(), &first, &given, places, settings, &|_, _| ())?;
                let (sizes, mut rows) = (found.0, found.1.comparisons);
                if order > 1 && first.program.has_inputs() {
                    let sizes = carried(self.program(), &sizes, &first.program)?;
                    let second = derive(&first.program, &Options::default())?;
                    rows.extend(check(&first.program, &second, &sizes, settings, &|_, _| ())?.comparisons);
                }
                Ok(rows)
            })?;
            let rows = rows.map_err(|errors| self.refuse_asked(py, Kind::Run, errors))?.into_iter();
            let record = |row: gradix_run::check::Comparison| {
                let verdict = row.verdict();
                (row.derivative, row.argument, row.shape, row.error, row.skipped, verdict)
            };
            Ok(rows.map(record).collect())
        })
    }
}

impl Function {
    fn program(&self) -> &Program {
        self.run.program()
    }

    fn refuse(&self, py: Python<'_>, kind: Kind, errors: Vec<Diagnostic>) -> PyErr {
        refuse(py, kind, &self.run.places().mark(errors), &self.source)
    }

    /// What was asked for may be wrong, or else the error is of this kind.
    fn refuse_asked(&self, py: Python<'_>, kind: Kind, errors: Vec<Diagnostic>) -> PyErr {
        let asked = errors.iter().any(|error| matches!(error.code, "unknown-name" | "not-scalar"));
        self.refuse(py, if asked { Kind::Argument } else { kind }, errors)
    }

    fn signature(&self, tensors: impl IntoIterator<Item = TensorId>) -> Signature {
        let program = self.program();
        let extents =
            |tensor: TensorId| program[tensor].extents.iter().map(|extent| print::affine(&program.params, &[], extent));
        tensors.into_iter().map(|tensor| (program[tensor].name.clone(), extents(tensor).collect())).collect()
    }
}

/// What is computed if it is not the program itself.
fn plan(program: &Program, what: &str, wrt: Names, of: Names) -> gradix::Result<Option<Derived>> {
    let options = match what {
        "value" => return Ok(None),
        "grad" => options("reverse", wrt, of)?,
        "value_and_grad" => Options { with_results: true, ..options("reverse", wrt, of)? },
        "jvp" => options("forward", wrt, of)?,
        mode => options(mode, wrt, of)?,
    };
    derive(program, &options).map(Some)
}

fn options(mode: &str, wrt: Names, of: Names) -> gradix::Result<Options> {
    let mode = match mode {
        "reverse" => Mode::Reverse,
        "forward" => Mode::Forward,
        "jacobian" => Mode::Jacobian,
        "hessian" => Mode::Hessian,
        other => {
            let message = format!("there is no mode '{other}'");
            return Err(one(
                Diagnostic::error("unknown-name", message).hint("there is reverse, forward, jacobian, hessian")
            ));
        }
    };
    Ok(Options { mode, wrt, of, with_results: false })
}

/// Sizes by name, as the compiler takes them.
pub fn named(sizes: Vec<(String, i64)>) -> Vec<(String, Int)> {
    sizes.into_iter().map(|(name, size)| (name, Int::from(size))).collect()
}

fn one(error: Diagnostic) -> Vec<Diagnostic> {
    vec![error]
}
