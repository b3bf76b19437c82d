//! The derivative of a program, as a program.
//!
//! Reverse mode goes over the definitions from the last to the first. The adjoint `dT` of a tensor is the
//! sum of contributions, one for every access to it (see [`gather`] for the points that read an element
//! and [`adjoint`] for the value at each). Forward mode goes from the first to the last. Jacobians are
//! reverse mode with the indices of the result as batch indices and `df[α] = [α == α']`; Hessians are
//! Jacobians of gradients.

pub mod adjoint;
pub mod assemble;
mod forward;
pub mod gather;
mod names;
mod reduction;
mod reverse;
pub mod rules;
mod share;

use crate::diagnostic::{Diagnostic, Result, counted};
use crate::program::{Program, TensorId, verify};
use crate::simplify;
use crate::timings::timed;
use reverse::{Reverse, Seed};
use std::collections::{HashMap, HashSet};

/// Which derivative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// `dx = Σ df · ∂f/∂x`, given `df`.
    #[default]
    Reverse,
    /// `f_dot = Σ ∂f/∂x · x_dot`, given `x_dot`.
    Forward,
    /// `jac_f_x[α, β] = ∂f[α]/∂x[β]`
    Jacobian,
    /// `hess_f_x_y[β, γ] = ∂²f/∂x[β]∂y[γ]` of a scalar `f`.
    Hessian,
}

/// What to derive.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which derivative.
    pub mode: Mode,
    /// By which inputs; all if `None`.
    pub wrt: Option<Vec<String>>,
    /// Of which results; all if `None`.
    pub of: Option<Vec<String>>,
    /// In reverse mode, whether the results that are derived are results of the derivative program too, before the
    /// derivatives.
    pub with_results: bool,
}

/// The derivative of a program, and how the two belong together. Inputs of the program that the derivative reads are
/// inputs of it, under the same names.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The derivative. Its results are, in order, with `f` of [`of`](Self::of) and `x`, `y` of [`wrt`](Self::wrt):
    /// each `f` if asked for and each `dx`; each `f_dot`; `jac_f_x` for each `f` and each `x`; `hess_f_x_y` for each `f`,
    /// each `x` and each `y`.
    pub program: Program,
    /// The results that are derived, of the program.
    pub of: Vec<TensorId>,
    /// The inputs that are derived by, of the program.
    pub wrt: Vec<TensorId>,
    /// What the derivative is given besides inputs of the program: `df` for each `f` in reverse mode, `x_dot` for each
    /// `x` in forward mode.
    pub seeds: Vec<SeedInput>,
}

/// An upstream derivative or a tangent.
#[derive(Clone, Debug)]
pub struct SeedInput {
    /// The result or the input that it belongs to, of the program; it has its shape.
    pub of: TensorId,
    /// What it is called.
    pub name: String,
    /// The input of the derivative; `None` if nothing there depends on it.
    pub input: Option<TensorId>,
}

impl SeedInput {
    fn new(of: TensorId, input: TensorId, derivative: &Program) -> Self {
        SeedInput { of, name: derivative[input].name.clone(), input: Some(input) }
    }

    /// After the tensors of the derivative got new ids.
    fn moved(self, ids: &HashMap<TensorId, TensorId>) -> Self {
        SeedInput { input: self.input.and_then(|input| ids.get(&input).copied()), ..self }
    }
}

/// The derivative of a program.
///
/// ```
/// let ast = gradix::syntax::parse("input x[N]\nf[i, j in 0..3] = x[i]^2").unwrap();
/// let program = gradix::resolve(&ast, &[]).unwrap().program;
/// let derivative = gradix::derive(&program, &gradix::derive::Options::default()).unwrap();
/// let text = gradix::print(&derivative.program).unwrap();
/// assert!(text.contains("dx[i] = 2 * x[i] * sum[j] df[i, j]"), "{text}");
/// ```
pub fn derive(program: &Program, options: &Options) -> Result<Derived> {
    timed("derive", || derive_as(program, options))
}

fn derive_as(program: &Program, options: &Options) -> Result<Derived> {
    let wrt = select(program, program.inputs().collect(), options.wrt.as_deref(), "input")?;
    let of = select(program, program.outputs.clone(), options.of.as_deref(), "result")?;
    if !program.has_inputs() && !options.with_results {
        return Err(vec![no_arguments()]);
    }
    let one = |d: Diagnostic| vec![d];
    match options.mode {
        Mode::Reverse => {
            let mut reverse = Reverse::new(program, &wrt);
            let inputs: Vec<(TensorId, TensorId)> = of.iter().map(|&f| (f, reverse.seed_input(f))).collect();
            let adjoints = inputs.iter().map(|&(f, input)| (f, Seed::Input(input))).collect();
            let mut results = if options.with_results { of.clone() } else { Vec::new() };
            results.extend(reverse.run(adjoints, &wrt, |_, x| format!("d{x}")).map_err(one)?);
            let seeds: Vec<SeedInput> =
                inputs.into_iter().map(|(f, input)| SeedInput::new(f, input, &reverse.out)).collect();
            let (program, moved) = finish(reverse, results, true).map_err(one)?;
            Ok(Derived { program, of, wrt, seeds: seeds.into_iter().map(|seed| seed.moved(&moved)).collect() })
        }
        Mode::Forward => forward::forward(program, of, wrt).map_err(one),
        Mode::Jacobian => {
            let program = jacobian(program, &of, &wrt, &|f, x| format!("jac_{f}_{x}")).map_err(one)?;
            Ok(Derived { program, of, wrt, seeds: Vec::new() })
        }
        Mode::Hessian => {
            let program = hessian(program, &of, &wrt)?;
            Ok(Derived { program, of, wrt, seeds: Vec::new() })
        }
    }
}

fn no_arguments() -> Diagnostic {
    let message = "the program has no arguments, so there is nothing to differentiate by";
    Diagnostic::error("no-derivative", message).hint("declare what varies, as in 'input x[N]'")
}

fn select(program: &Program, known: Vec<TensorId>, names: Option<&[String]>, what: &str) -> Result<Vec<TensorId>> {
    let Some(names) = names else { return Ok(known) };
    let mut chosen = Vec::new();
    let mut wrong = Vec::new();
    for name in names {
        match known.iter().find(|t| program[**t].name == *name) {
            Some(&tensor) if chosen.contains(&tensor) => {}
            Some(&tensor) => chosen.push(tensor),
            None => {
                let list: Vec<&str> = known.iter().map(|t| program[*t].name.as_str()).collect();
                let message = format!("the program has no {what} '{name}'");
                wrong.push(Diagnostic::error("unknown-name", message).hint(format!("there is {}", list.join(", "))));
            }
        }
    }
    if wrong.is_empty() { Ok(chosen) } else { Err(wrong) }
}

fn jacobian(
    program: &Program,
    of: &[TensorId],
    wrt: &[TensorId],
    name: &dyn Fn(&str, &str) -> String,
) -> std::result::Result<Program, Diagnostic> {
    let mut reverse = Reverse::new(program, wrt);
    let mut results = Vec::new();
    for &f in of {
        reverse.batch_over(f);
        let f_name = program[f].name.clone();
        results.extend(reverse.run(vec![(f, Seed::Delta)], wrt, |_, x| name(&f_name, x))?);
    }
    Ok(finish(reverse, results, true)?.0)
}

fn hessian(program: &Program, of: &[TensorId], wrt: &[TensorId]) -> Result<Program> {
    if let Some(&f) = of.iter().find(|f| program[**f].rank > 0) {
        let message = format!(
            "the Hessian is of a scalar result, and '{}' has {}",
            program[f].name,
            counted(program[f].rank, "dimension")
        );
        return Err(vec![Diagnostic::error("not-scalar", message).hint("sum it up, or choose a scalar result")]);
    }
    let run = || -> std::result::Result<Program, Diagnostic> {
        let mut reverse = Reverse::new(program, wrt);
        let mut results = Vec::new();
        for &f in of {
            let f_name = program[f].name.clone();
            results.extend(reverse.run(vec![(f, Seed::One)], wrt, |_, x| format!("hess_{f_name}_{x}"))?);
        }
        let (gradients, moved) = finish(reverse, results, false)?;
        let wrt: Vec<TensorId> = wrt.iter().map(|x| moved[x]).collect();
        jacobian(&gradients, &gradients.outputs, &wrt, &|g, y| format!("{g}_{y}"))
    };
    run().map_err(|d| vec![d])
}

/// Settles, simplifies and verifies what reverse mode has built; with `prune`, inputs that it does not need go. Gives the
/// new ids of its tensors, too.
fn finish(
    reverse: Reverse,
    results: Vec<TensorId>,
    prune: bool,
) -> std::result::Result<(Program, HashMap<TensorId, TensorId>), Diagnostic> {
    let Reverse { mut out, generated, mut taken, .. } = reverse;
    out.outputs = results;
    let moved = complete(&mut out, generated, &mut taken, prune)?;
    Ok((out, moved))
}

/// The last steps of every mode. Gives the new ids of tensors.
fn complete(
    out: &mut Program,
    generated: HashSet<TensorId>,
    taken: &mut HashSet<String>,
    prune: bool,
) -> std::result::Result<HashMap<TensorId, TensorId>, Diagnostic> {
    let moved = simplify::run(out, generated, taken, prune)?;
    debug_assert_eq!(verify(out), Ok(()));
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn derived(text: &str, mode: Mode) -> (Program, Derived) {
        let program = crate::resolve(&crate::syntax::parse(text).unwrap(), &[]).unwrap().program;
        let derived = derive(&program, &Options { mode, ..Options::default() }).unwrap();
        (program, derived)
    }

    /// `f: df`, or `f: df -` if the derivative does not take it.
    fn seeds(text: &str, mode: Mode) -> Vec<String> {
        let (program, derived) = derived(text, mode);
        let shown = |seed: &SeedInput| match seed.input {
            Some(input) => format!("{}: {}", program[seed.of].name, derived.program[input].name),
            None => format!("{}: {} -", program[seed.of].name, seed.name),
        };
        derived.seeds.iter().map(shown).collect()
    }

    #[test]
    fn seeds_are_inputs_of_the_derivative_whatever_they_are_called() {
        let text = "input x[N], df[N], x_dot\nf[dg] = x[dg]*df[dg]\ng = x_dot*sum[i] x[i]^2";
        assert_eq!(seeds(text, Mode::Reverse), ["f: df_1", "g: dg_1"]);
        assert_eq!(seeds(text, Mode::Forward), ["x: x_dot_1", "df: df_dot", "x_dot: x_dot_dot"]);
        assert!(seeds(text, Mode::Jacobian).is_empty());
    }

    #[test]
    fn a_seed_that_no_derivative_needs_is_no_input() {
        assert_eq!(seeds("input x[N]\nf[i] = x[i]^2\ng = 3", Mode::Reverse), ["f: df", "g: dg -"]);
        assert_eq!(seeds("input x[N], y\nf[i] = x[i]^2", Mode::Forward), ["x: x_dot", "y: y_dot -"]);
    }

    #[test]
    fn arguments_and_results_are_in_the_order_that_was_asked_for() {
        let (program, _) = derived("input x[N], y[N]\nf = sum[i] x[i]*y[i]\ng = x[0]", Mode::Reverse);
        let names = |names: [&str; 2]| Some(names.map(String::from).to_vec());
        let options = Options { wrt: names(["y", "x"]), of: names(["g", "f"]), ..Options::default() };
        let derived = derive(&program, &options).unwrap();
        let shown = |ids: &[TensorId], of: &Program| ids.iter().map(|&id| of[id].name.clone()).collect::<Vec<_>>();
        assert_eq!(shown(&derived.wrt, &program), ["y", "x"]);
        assert_eq!(shown(&derived.program.outputs, &derived.program), ["dy", "dx"]);
        assert_eq!(shown(&derived.of, &program), ["g", "f"]);
    }
}
