//! A program as a function of Rust's arrays: the front door of this crate.
//!
//! ```
//! # fn main() -> Result<(), gradix_run::Error> {
//! let rbf = gradix_run::compile(
//!     "input x[N, D], z[M, D], w[M]
//!      y[i] = sum[j] exp(-sum[d] (x[i, d] - z[j, d])^2) * w[j]",
//! )?;
//! let (x, z, w) = ([0.0; 6], [1.0; 8], [1.0; 4]);
//! let call = || rbf.call().array("x", (&x, [3, 2])).array("z", (&z, [4, 2])).array("w", &w);
//! let y = call().value()?;
//! assert_eq!(y["y"].shape, [3]);
//! let g = call().array("dy", &[1.0, 1.0, 1.0]).value_and_grad()?;
//! assert_eq!(g["dw"].data, [3.0 * f64::exp(-2.0); 4]);
//! # Ok(())
//! # }
//! ```
//!
//! With `ndarray` (a feature that is on by default) arrays are `ndarray`'s, of any strides and either type of numbers:
//!
//! ```
//! # #[cfg(feature = "ndarray")]
//! # fn main() -> Result<(), gradix_run::Error> {
//! use ndarray::{Array2, ArrayD, array};
//! let f = gradix_run::compile("input a[N, K], b[K, M]; c[i, j] = sum[k] a[i, k] * b[k, j]")?;
//! let a = array![[1.0f32, 2.0], [3.0, 4.0]];
//! let mut c = Array2::zeros((2, 2));
//! f.call().array("a", &a).array("b", a.t()).output("c", &mut c).value()?;
//! assert_eq!(c, a.dot(&a.t()));
//! let tangent: ArrayD<f32> = f.call().array("a", &a).array("b", &a).array("a_dot", &a).jvp()?.take("c_dot").into();
//! assert_eq!(tangent, a.dot(&a).into_dyn());
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "ndarray"))]
//! # fn main() {}
//! ```
//!
//! What is wrong is said with the place in the program, or the name of the array:
//!
//! ```
//! let error = gradix_run::compile("input x[N]; y[i] = z[i]").err().unwrap();
//! assert!(error.to_string().contains("'z'"));
//! let f = gradix_run::compile("input x[N]; y[i] = x[i]^2").unwrap();
//! assert_eq!(f.call::<f64>().value().err().unwrap().to_string(), "the argument 'x' is missing");
//! ```

mod arrays;

pub use arrays::{ArrayMut, ArrayRef, Dense, Results};

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use gradix::derive::{Derived, Mode, Options, SeedInput};
use gradix::diagnostic::Diagnostic;
use gradix::program::{Places, Program, TensorId};
use gradix::{Int, Resolved};
use gradix_view::Source;

use crate::element::Element;
use crate::executable::Backend;
use crate::function::{Bound, Function, How};

/// What is wrong with a program or with a call; prints as the command does, with the place in the source marked.
#[derive(Debug)]
pub struct Error {
    /// One after the other.
    pub diagnostics: Vec<Diagnostic>,
    text: String,
}

impl Error {
    fn new(diagnostics: Vec<Diagnostic>, source: &Source) -> Self {
        let text = match diagnostics.as_slice() {
            // Of a call, not of the program.
            [one] if one.labels.is_empty() && one.code == ARGUMENT => one.message.clone(),
            _ => gradix_view::render(&diagnostics, source, false).trim_end().to_string(),
        };
        Error { diagnostics, text }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

/// The code of what is wrong with the arrays of a call.
const ARGUMENT: &str = "argument";

fn wrong(message: impl Into<String>) -> Vec<Diagnostic> {
    vec![Diagnostic::error(ARGUMENT, message)]
}

/// A program that is ready to be called, again and again and from any thread.
pub struct Compiled {
    source: Source,
    function: Arc<Function>,
    /// Derivatives that were asked for.
    derivatives: Mutex<Vec<(Wanted, Arc<Derivative>)>>,
}

/// What is computed of a program.
#[derive(Clone, PartialEq)]
struct Wanted {
    what: What,
    wrt: Option<Vec<String>>,
    of: Option<Vec<String>>,
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    Value,
    Gradient { with_results: bool },
    Tangent,
}

/// A derivative program, and what it is given besides the program's arguments.
struct Derivative {
    function: Arc<Function>,
    seeds: Vec<SeedInput>,
}

/// Reads a program.
pub fn compile(text: &str) -> Result<Compiled, Error> {
    let source = Source { name: "program".to_string(), text: text.to_string() };
    let resolved = gradix::syntax::parse(text).and_then(|ast| gradix::resolve(&ast, &[]));
    let resolved = resolved.map_err(|errors| Error::new(errors, &source))?;
    Ok(Compiled { source, function: Arc::new(Function::new(resolved)), derivatives: Mutex::default() })
}

impl Compiled {
    /// The program.
    pub fn program(&self) -> &Program {
        self.function.program()
    }

    /// A call, to which arrays of `f64` or `f32` are given by name.
    pub fn call<T: Element>(&self) -> Call<'_, T> {
        let wanted = Wanted { what: What::Value, wrt: None, of: None };
        let how = How { backend: Backend::Auto, threads: None };
        Call { compiled: self, wanted, arrays: Vec::new(), outputs: Vec::new(), sizes: Vec::new(), how }
    }

    /// What computes something.
    fn derivative(&self, wanted: &Wanted) -> Result<Arc<Derivative>, Vec<Diagnostic>> {
        let known = || self.derivatives.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, derivative)) = known().iter().find(|(known, _)| known == wanted) {
            return Ok(derivative.clone());
        }
        let Wanted { what, wrt, of } = wanted.clone();
        let (mode, with_results) = match what {
            What::Value => {
                return Ok(Arc::new(Derivative { function: self.function.clone(), seeds: Vec::new() }));
            }
            What::Gradient { with_results } => (Mode::Reverse, with_results),
            What::Tangent => (Mode::Forward, false),
        };
        let Derived { program, seeds, .. } = gradix::derive(self.program(), &Options { mode, wrt, of, with_results })?;
        let function = Arc::new(Function::new(Resolved { program, places: Places::default() }));
        let derivative = Arc::new(Derivative { function, seeds });
        known().push((wanted.clone(), derivative.clone()));
        Ok(derivative)
    }
}

/// The arrays and options of one call.
#[must_use = "a call computes nothing before `value`, `grad`, `value_and_grad` or `jvp`"]
pub struct Call<'a, T> {
    compiled: &'a Compiled,
    wanted: Wanted,
    arrays: Vec<(String, ArrayRef<'a, T>)>,
    outputs: Vec<(String, ArrayMut<'a, T>)>,
    sizes: Vec<(String, Int)>,
    how: How,
}

impl<'a, T: Element> Call<'a, T> {
    /// An argument, an upstream derivative (`dy`) or a tangent (`x_dot`).
    pub fn array(mut self, name: &str, array: impl Into<ArrayRef<'a, T>>) -> Self {
        self.arrays.push((name.to_string(), array.into()));
        self
    }

    /// Where a result is written to; without it, results are new arrays.
    pub fn output(mut self, name: &str, array: impl Into<ArrayMut<'a, T>>) -> Self {
        self.outputs.push((name.to_string(), array.into()));
        self
    }

    /// A size that no array tells.
    pub fn size(mut self, name: &str, size: i64) -> Self {
        self.sizes.push((name.to_string(), Int::from(size)));
        self
    }

    /// Derivatives by these arguments only.
    pub fn wrt(mut self, arguments: &[&str]) -> Self {
        self.wanted.wrt = Some(arguments.iter().map(ToString::to_string).collect());
        self
    }

    /// Derivatives of these results only.
    pub fn of(mut self, results: &[&str]) -> Self {
        self.wanted.of = Some(results.iter().map(ToString::to_string).collect());
        self
    }

    /// What computes.
    pub fn backend(mut self, backend: Backend) -> Self {
        self.how.backend = backend;
        self
    }

    /// The number of threads; one for each core by default. Results are the same bits for any number.
    pub fn threads(mut self, threads: usize) -> Self {
        self.how.threads = Some(threads);
        self
    }

    /// The results.
    pub fn value(self) -> Result<Results<T>, Error> {
        self.run(What::Value)
    }

    /// The derivatives `dx` by all arguments, given `dy` for each result `y`; that of a scalar result is 1 by default.
    pub fn grad(self) -> Result<Results<T>, Error> {
        self.run(What::Gradient { with_results: false })
    }

    /// The results and the derivatives, which have much in common.
    pub fn value_and_grad(self) -> Result<Results<T>, Error> {
        self.run(What::Gradient { with_results: true })
    }

    /// The tangents `y_dot` of all results, given `x_dot` for arguments `x`; one that is not given is 0.
    pub fn jvp(self) -> Result<Results<T>, Error> {
        self.run(What::Tangent)
    }

    fn run(mut self, what: What) -> Result<Results<T>, Error> {
        self.wanted.what = what;
        let source = &self.compiled.source;
        self.computed().map_err(|errors| Error::new(errors, source))
    }

    fn computed(self) -> Result<Results<T>, Vec<Diagnostic>> {
        let compiled = self.compiled;
        let derivative = compiled.derivative(&self.wanted)?;
        self.known(&derivative)?;
        let base = self.bound()?;
        let constants = self.seeds(&derivative, &base)?;
        let function = &derivative.function;
        let bound = match self.wanted.what {
            What::Value => base,
            _ => function.bind_like(compiled.program(), &base.sizes)?,
        };
        let program = function.program();
        let find = |tensor: TensorId| {
            let given = self.arrays.iter().find(|(name, _)| *name == program[tensor].name).map(|(_, array)| array);
            given.or_else(|| constants.iter().find(|(name, _)| *name == program[tensor].name).map(|(_, array)| array))
        };
        let inputs: Vec<&ArrayRef<'_, T>> = program.inputs().filter_map(find).collect();
        for ((tensor, array), shape) in program.inputs().zip(&inputs).zip(&bound.inputs) {
            let name = &program[tensor].name;
            if array.shape != *shape {
                return Err(wrong(format!("'{name}' has the shape {:?}, and should have {shape:?}", array.shape)));
            }
        }
        let names = program.outputs.iter().map(|output| program[*output].name.clone()).collect();
        arrays::run(function, &bound, self.how, &inputs, names, self.outputs)
    }

    /// Whether all names are those of something, and arrays are whole.
    fn known(&self, derivative: &Derivative) -> Result<(), Vec<Diagnostic>> {
        let (base, program) = (self.compiled.program(), derivative.function.program());
        let arguments = base.inputs().map(|input| base[input].name.as_str());
        let inputs: Vec<&str> = arguments.chain(derivative.seeds.iter().map(|seed| seed.name.as_str())).collect();
        let outputs: Vec<&str> = program.outputs.iter().map(|output| program[*output].name.as_str()).collect();
        let given = self.arrays.iter().map(|(name, array)| (name, &array.fault, &inputs, "argument"));
        let written = self.outputs.iter().map(|(name, array)| (name, &array.fault, &outputs, "result"));
        for (name, fault, names, noun) in given.chain(written) {
            if !names.contains(&name.as_str()) {
                return Err(wrong(format!("there is no {noun} '{name}'; there is {}", names.join(", "))));
            }
            if let Some(fault) = fault {
                return Err(wrong(format!("'{name}' {fault}")));
            }
        }
        match repeated(&self.arrays).or(repeated(&self.outputs)) {
            Some(name) => Err(wrong(format!("'{name}' is given twice"))),
            None => Ok(()),
        }
    }

    /// The sizes of the program itself, from its arguments.
    fn bound(&self) -> Result<Arc<Bound>, Vec<Diagnostic>> {
        let program = self.compiled.program();
        let mut shapes = Vec::new();
        for input in program.inputs() {
            let name = &program[input].name;
            let given = self.arrays.iter().find(|(given, _)| given == name);
            let (_, array) = given.ok_or_else(|| wrong(format!("the argument '{name}' is missing")))?;
            shapes.push(Some(array.shape.as_slice()));
        }
        self.compiled.function.bind(&shapes, &self.sizes)
    }

    /// The upstream derivatives and tangents that are not given.
    fn seeds(
        &self,
        derivative: &Derivative,
        bound: &Bound,
    ) -> Result<Vec<(String, ArrayRef<'static, T>)>, Vec<Diagnostic>> {
        let program = self.compiled.program();
        let mut found = Vec::new();
        for SeedInput { of, name, .. } in &derivative.seeds {
            let argument = program.inputs().position(|input| input == *of);
            let result = program.outputs.iter().position(|output| output == of);
            let shape = argument.map(|n| &bound.inputs[n]).or(result.map(|n| &bound.outputs[n]));
            let shape = shape.cloned().unwrap_or_default();
            match self.arrays.iter().any(|(given, _)| given == name) {
                true => {}
                false if argument.is_some() => found.push((name.clone(), ArrayRef::constant(T::from_f64(0.0), shape))),
                false if shape.is_empty() => found.push((name.clone(), ArrayRef::constant(T::from_f64(1.0), shape))),
                false => return Err(wrong(format!("the upstream derivative '{name}' is missing"))),
            }
        }
        Ok(found)
    }
}

/// A name that stands twice in a list.
fn repeated<A>(arrays: &[(String, A)]) -> Option<&str> {
    let earlier = |place: usize| arrays[..place].iter().any(|(name, _)| *name == arrays[place].0);
    (0..arrays.len()).find(|place| earlier(*place)).map(|place| arrays[place].0.as_str())
}
