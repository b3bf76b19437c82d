//! What a confirmation tells.

use super::Place;
use gradix::Int;
use gradix::derive::{Mode, Options};
use gradix::program::Program;
use gradix::program::print;
use std::fmt::{self, Display};

/// The names and values of sizes.
type Sizes = Vec<(String, Int)>;

/// At which sizes a derivative was confirmed, and what was left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Confirmed {
    /// Where every element agrees.
    pub sizes: Vec<Sizes>,
    /// Where rounding would decide.
    pub undecided: Vec<Sizes>,
    /// Accesses that were evaluated at none of the sizes, each with the definition that it stands in.
    pub unreached: Vec<String>,
    /// How many elements were not judged, because something infinite or very large is behind them.
    pub doubtful: usize,
    /// Whether more sizes would have been too much work.
    pub cut_short: bool,
}

/// One line, such as `verified at N = 1; N = 2; N = 3`.
impl Display for Confirmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.sizes.first() else {
            let reason = if self.cut_short { "the sizes are too large" } else { "no small sizes can be judged" };
            return write!(f, "not verified: {reason}");
        };
        f.write_str("verified")?;
        if !first.is_empty() {
            let shown: Vec<String> = self.sizes.iter().map(listed).collect();
            write!(f, " at {}", shown.join("; "))?;
        }
        if !self.unreached.is_empty() {
            write!(f, "; never evaluated: {}", self.unreached.join(", "))?;
        }
        match self.doubtful {
            0 => Ok(()),
            1 => f.write_str("; 1 element not judged"),
            count => write!(f, "; {count} elements not judged"),
        }
    }
}

/// A derivative that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// The sizes.
    pub sizes: Sizes,
    /// What is wrong.
    pub finding: Finding,
}

/// What is wrong with a derivative.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// An element has another value than it should have.
    Element {
        /// The derivative's name.
        derivative: String,
        /// Which element.
        index: Vec<i64>,
        /// Its value.
        found: f64,
        /// The value that it should have.
        expected: f64,
    },
    /// A derivative has another shape than it should have.
    Shape {
        /// The derivative's name.
        derivative: String,
        /// Its shape.
        found: Vec<usize>,
        /// The shape that it should have.
        expected: Vec<usize>,
    },
    /// The derivative can't be evaluated where the function can.
    Failure(String),
}

impl Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Element { derivative, index, found, expected } if index.is_empty() => {
                write!(f, "{derivative} is {found} and should be {expected}")
            }
            Finding::Element { derivative, index, found, expected } => {
                write!(f, "{derivative}{index:?} is {found} and should be {expected}")
            }
            Finding::Shape { derivative, found, expected } => {
                write!(f, "{derivative} has the shape {found:?} and should have {expected:?}")
            }
            Finding::Failure(message) => write!(f, "the derivative can't be evaluated: {message}"),
        }
    }
}

impl Mismatch {
    /// All that is needed to find the cause: the version, what was asked for, where it is wrong, and both programs.
    pub fn report(&self, text: &str, options: &Options, params: &[(String, Int)], derivative: &Program) -> String {
        let sizes = if self.sizes.is_empty() { String::new() } else { format!("at {}: ", listed(&self.sizes)) };
        let derivative = print::print(derivative).unwrap_or_else(|error| error.message);
        format!(
            "internal error: the derivative is wrong, by a mistake in gradix\n\
             {sizes}{}\n\
             please report this, with all that follows\n\n\
             gradix {} {}\n\n\
             ---- program\n{}\n\
             ---- derivative\n{}",
            self.finding,
            env!("CARGO_PKG_VERSION"),
            command(options, params),
            text.trim_end(),
            derivative.trim_end(),
        )
    }
}

/// The command line that asks for a derivative.
fn command(options: &Options, params: &[(String, Int)]) -> String {
    let mode = match options.mode {
        Mode::Reverse => "reverse",
        Mode::Forward => "forward",
        Mode::Jacobian => "jacobian",
        Mode::Hessian => "hessian",
    };
    let chosen = |option: &str, names: &Option<Vec<String>>| {
        names.as_ref().map(|names| format!(" --{option} {}", names.join(","))).unwrap_or_default()
    };
    let params: String = params.iter().map(|(name, size)| format!(" --param {name}={size}")).collect();
    format!("derive --mode {mode}{}{}{params}", chosen("wrt", &options.wrt), chosen("of", &options.of))
}

fn listed(sizes: &Sizes) -> String {
    sizes.iter().map(|(name, size)| format!("{name} = {size}")).collect::<Vec<_>>().join(", ")
}

/// An access in words, such as `x[2*i] in y`.
pub fn access(program: &Program, (tensor, place): Place) -> String {
    let definition = program.definition_of(tensor).expect("a definition has this access");
    let names: Vec<&str> = definition.indices.iter().map(|index| index.name.as_str()).collect();
    let id = program.exprs.postorder(definition.body)[place];
    let tensors: Vec<&str> = program.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    let text = print::expression(&program.params, &program.exprs, &tensors, &names, id);
    format!("{text} in {}", program[tensor].name)
}
