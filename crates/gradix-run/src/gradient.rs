//! What a program and its derivative have in common: sizes and shapes.

use gradix::Int;
use gradix::diagnostic::Result;
use gradix::domain::sizes::{self, Known};
use gradix::program::Places;
use gradix::program::{Atom, ParamId, ParamKind, Program, TensorId};

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

/// The shape of a tensor; `None` if an extent is past all memory.
pub fn shape(program: &Program, sizes: &[Int], tensor: TensorId) -> Option<Vec<usize>> {
    let size = |atom: &Atom| match atom {
        Atom::Param(ParamId(p)) => sizes[*p as usize].clone(),
        Atom::Index(_) | Atom::Floor(..) => Int::ZERO,
    };
    let extents = program[tensor].extents.iter().map(|extent| extent.evaluate(&size).max(Int::ZERO));
    extents.map(|extent| usize::try_from(&extent).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_carried_over_by_name() {
        let text = "param K = 2\ninput x[N + 1]\ny[i in 0..N] = x[i + 1]";
        let program = gradix::resolve(&gradix::syntax::parse(text).unwrap(), &[]).unwrap().program;
        let derivative = gradix::derive(&program, &Default::default()).unwrap().program;
        assert_eq!(carried(&program, &[7.into()], &derivative).unwrap(), [7.into()]);
        assert_eq!(shape(&program, &[7.into()], program.tensor("x").unwrap()), Some(vec![8]));
        assert_eq!(shape(&program, &[(-7).into()], program.tensor("x").unwrap()), Some(vec![0]));
    }
}
