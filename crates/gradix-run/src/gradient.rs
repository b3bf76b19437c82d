//! A program's reverse-mode derivative, and how the two belong together: which input of the derivative is the upstream
//! derivative of which result, which of its results is the derivative by which argument, and what its sizes are.

use gradix::derive::{Mode, Options};
use gradix::diagnostic::Result;
use gradix::program::{Atom, ParamId, ParamKind, Program, TensorId, names};
use gradix::resolve::Places;
use gradix::sizes::{self, Known};
use gradix::{Int, derive};

/// The derivative of a program whose ids these are.
#[derive(Clone, Debug)]
pub struct Gradient {
    /// From the arguments and the upstream derivatives to the derivatives by the arguments.
    pub derivative: Program,
    /// The derived results, each with the name of its upstream derivative. One that no derivative needs is no input.
    pub upstream: Vec<(TensorId, String)>,
    /// The arguments derived by, in the order of the derivative's results.
    pub wrt: Vec<TensorId>,
}

impl Gradient {
    /// The derivative by some arguments (all if `None`) of some results (all if `None`).
    pub fn new(program: &Program, wrt: Option<Vec<String>>, of: Option<Vec<String>>) -> Result<Gradient> {
        Self::derived(program, wrt, of, false)
    }

    /// The same, and the derivative program gives the results too, before the derivatives.
    pub fn with_results(program: &Program, wrt: Option<Vec<String>>, of: Option<Vec<String>>) -> Result<Gradient> {
        Self::derived(program, wrt, of, true)
    }

    fn derived(
        program: &Program,
        wrt: Option<Vec<String>>,
        of: Option<Vec<String>>,
        with_results: bool,
    ) -> Result<Gradient> {
        let options = Options { mode: Mode::Reverse, wrt: wrt.clone(), of: of.clone(), with_results };
        let derivative = derive(program, &options)?;
        let wrt = chosen(program, wrt, program.inputs().collect());
        Ok(Gradient { derivative, upstream: upstream(program, of), wrt })
    }

    /// The sizes of the derivative, from those of the program.
    pub fn sizes(&self, program: &Program, sizes: &[Int]) -> Result<Vec<Int>> {
        carried(program, sizes, &self.derivative)
    }
}

/// The sizes of a program's derivative, in any mode, from those of the program.
pub fn carried(program: &Program, sizes: &[Int], derivative: &Program) -> Result<Vec<Int>> {
    let given = free(program, sizes).map(|(name, size)| (name.to_string(), size.clone())).collect();
    sizes::bind(derivative, &Known { given, shapes: Vec::new() }, &Places::default())
}

/// The sizes that a user gives, with their names.
pub fn free<'a>(program: &'a Program, sizes: &'a [Int]) -> impl Iterator<Item = (&'a str, &'a Int)> {
    let free = program.params.iter().zip(sizes).filter(|(param, _)| param.kind == ParamKind::Free);
    free.map(|(param, size)| (param.name.as_str(), size))
}

/// The upstream inputs of a program's reverse-mode derivative, of some results (all if `None`): the results, each with the
/// name of its upstream derivative.
pub fn upstream(program: &Program, of: Option<Vec<String>>) -> Vec<(TensorId, String)> {
    let mut taken = names::taken(program);
    let of = chosen(program, of, program.outputs.clone());
    of.into_iter().map(|f| (f, names::fresh(&format!("d{}", program[f].name), &mut taken))).collect()
}

/// The tangent inputs of a program's forward-mode derivative, by some arguments (all if `None`): the arguments, each with the
/// name of its tangent.
pub fn tangents(program: &Program, wrt: Option<Vec<String>>) -> Vec<(TensorId, String)> {
    let mut taken = names::taken(program);
    let wrt = chosen(program, wrt, program.inputs().collect());
    wrt.into_iter().map(|x| (x, names::fresh(&format!("{}_dot", program[x].name), &mut taken))).collect()
}

/// The shape of a tensor; `None` if an extent is past all memory.
pub fn shape(program: &Program, sizes: &[Int], tensor: TensorId) -> Option<Vec<usize>> {
    let size = |atom: &Atom| match atom {
        Atom::Param(ParamId(p)) => sizes[*p as usize].clone(),
        Atom::Index(_) | Atom::Floor(..) => Int::ZERO,
    };
    let extents = program[tensor].extents.iter().map(|extent| extent.evaluate(&size).max(Int::ZERO));
    extents.map(|extent| usize::try_from(&extent).ok()).collect()
}

/// The tensors of these names, each once; `derive` has checked them.
pub(crate) fn chosen(program: &Program, names: Option<Vec<String>>, all: Vec<TensorId>) -> Vec<TensorId> {
    let Some(names) = names else { return all };
    let mut chosen = Vec::new();
    for tensor in names.iter().filter_map(|name| program.tensor(name)) {
        if !chosen.contains(&tensor) {
            chosen.push(tensor);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gradient(text: &str, wrt: Option<&str>) -> (Program, Gradient) {
        let program = gradix::resolve(&gradix::syntax::parse(text).unwrap(), &[]).unwrap().program;
        let gradient = Gradient::new(&program, wrt.map(|name| vec![name.into()]), None).unwrap();
        (program, gradient)
    }

    #[test]
    fn upstream_derivatives_are_inputs_of_the_derivative() {
        let (_, gradient) = gradient("input x[N], df[N]\nf[dg] = x[dg]*df[dg]\ng = sum[i] x[i]^2", None);
        let names: Vec<&str> = gradient.upstream.iter().map(|(_, name)| &**name).collect();
        assert_eq!(names, ["df_1", "dg_1"]);
        assert!(names.iter().all(|name| gradient.derivative.tensor(name).is_some()));
    }

    #[test]
    fn results_are_in_the_order_of_the_arguments() {
        let (program, gradient) = gradient("input x[N], y[N]\nf = sum[i] x[i]*y[i]", Some("y"));
        assert_eq!(gradient.wrt, [program.tensor("y").unwrap()]);
        let results: Vec<&str> = gradient.derivative.outputs.iter().map(|&t| &*gradient.derivative[t].name).collect();
        assert_eq!(results, ["dy"]);
    }

    #[test]
    fn sizes_are_carried_over_by_name() {
        let (program, gradient) = gradient("param K = 2\ninput x[N + 1]\ny[i in 0..N] = x[i + 1]", None);
        assert_eq!(gradient.sizes(&program, &[7.into()]).unwrap(), [7.into()]);
        assert_eq!(shape(&program, &[7.into()], program.tensor("x").unwrap()), Some(vec![8]));
        assert_eq!(shape(&program, &[(-7).into()], program.tensor("x").unwrap()), Some(vec![0]));
    }
}
