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
use reverse::{Reverse, Seed};
use std::collections::HashSet;

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

/// The derivative of a program.
///
/// ```
/// let ast = gradix::syntax::parse("input x[N]\nf[i, j in 0..3] = x[i]^2").unwrap();
/// let program = gradix::resolve(&ast, &[]).unwrap().program;
/// let derivative = gradix::derive(&program, &gradix::derive::Options::default()).unwrap();
/// let text = gradix::print::print(&derivative).unwrap();
/// assert!(text.contains("dx[i] = 2 * x[i] * sum[j] df[i, j]"), "{text}");
/// ```
pub fn derive(program: &Program, options: &Options) -> Result<Program> {
    let wrt = select(program, program.inputs().collect(), options.wrt.as_deref(), "input")?;
    let of = select(program, program.outputs.clone(), options.of.as_deref(), "result")?;
    let one = |d: Diagnostic| vec![d];
    match options.mode {
        Mode::Reverse => {
            let mut reverse = Reverse::new(program, &wrt);
            let seeds = of.iter().map(|&f| (f, reverse.seed_input(f))).collect();
            let mut results = if options.with_results { of.clone() } else { Vec::new() };
            results.extend(reverse.run(seeds, &wrt, |_, x| format!("d{x}")).map_err(one)?);
            finish(reverse, results, true).map_err(one)
        }
        Mode::Forward => forward::forward(program, &of, &wrt).map_err(one),
        Mode::Jacobian => jacobian(program, &of, &wrt, &|f, x| format!("jac_{f}_{x}")).map_err(one),
        Mode::Hessian => hessian(program, &of, &wrt),
    }
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
    finish(reverse, results, true)
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
        let gradients = finish(reverse, results, false)?;
        let wrt: Vec<TensorId> = wrt.iter().filter_map(|t| gradients.tensor(&program[*t].name)).collect();
        jacobian(&gradients, &gradients.outputs, &wrt, &|g, y| format!("{g}_{y}"))
    };
    run().map_err(|d| vec![d])
}

/// Settles, simplifies and verifies what reverse mode has built; with `prune`, inputs that it does not need go.
fn finish(reverse: Reverse, results: Vec<TensorId>, prune: bool) -> std::result::Result<Program, Diagnostic> {
    let Reverse { mut out, generated, mut taken, .. } = reverse;
    out.outputs = results;
    complete(&mut out, generated, &mut taken, prune)?;
    Ok(out)
}

/// The last steps of every mode.
fn complete(
    out: &mut Program,
    generated: HashSet<TensorId>,
    taken: &mut HashSet<String>,
    prune: bool,
) -> std::result::Result<(), Diagnostic> {
    simplify::run(out, generated, taken, prune)?;
    debug_assert_eq!(verify(out), Ok(()));
    Ok(())
}
