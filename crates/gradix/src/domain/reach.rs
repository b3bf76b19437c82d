//! How far an argument is read, and so how much of it a copy has to hold.
//!
//! An argument may be the storage of a view (see [`store`](crate::store())), whose extents are sizes of their own: what
//! lies past the view is not to be touched, and may be far more than what is read.

use super::guard::{self, Guard};
use super::system;
use crate::program::{Affine, Atom, Constraint, Expr, ParamId, Program, TensorId};

/// An argument, one of its dimensions, and the extents of what a copy holds.
pub type Held = ((TensorId, usize), Vec<Affine>);

/// Which sizes the definitions of a program mention.
pub struct Reach(Vec<bool>);

impl Reach {
    /// That of a program.
    pub fn of(program: &Program) -> Reach {
        Reach(program.used_params([]))
    }

    /// The extents of a box, from 0 on, that has every element of an argument that is read: all of it, unless one of its
    /// extents is a size that says nothing else. Then nothing past the last subscripts is in the box; `None` if they
    /// can't be told.
    pub fn held(&self, program: &Program, tensor: TensorId) -> Option<Vec<Affine>> {
        let extents = &program[tensor].extents;
        if extents.iter().all(|extent| self.is_mentioned(extent)) {
            return Some(extents.clone());
        }
        let reads = reads(program, tensor);
        let context = program.size_context();
        let held = |(dimension, extent)| held(&reads, dimension, extent, &context);
        extents.iter().enumerate().map(held).collect()
    }

    fn is_mentioned(&self, extent: &Affine) -> bool {
        let mut all = true;
        extent.visit_atoms(&mut |atom| {
            if let Atom::Param(ParamId(p)) = atom {
                all &= self.0[*p as usize];
            }
        });
        all
    }
}

/// The subscripts at which a tensor is read, each with what holds there.
fn reads(program: &Program, tensor: TensorId) -> Vec<(Vec<Affine>, Guard)> {
    let mut exprs = program.exprs.clone();
    let mut found = Vec::new();
    for definition in &program.definitions {
        if !program.exprs.reads(definition.body, tensor) {
            continue;
        }
        let domain = definition.domain();
        for (access, guards) in guard::guarded_accesses(&mut exprs, definition.body) {
            if let Expr::Access(read, subscripts) = &program.exprs[access]
                && *read == tensor
            {
                found.extend(guards.iter().map(|guard| (subscripts.clone(), [domain.as_slice(), guard].concat())));
            }
        }
    }
    found
}

/// A bound of some read that all of them keep, and that lies in the tensor.
fn held(reads: &[(Vec<Affine>, Guard)], dimension: usize, extent: &Affine, context: &[Constraint]) -> Option<Affine> {
    let is_index = |atom: &Atom| matches!(atom, Atom::Index(_));
    let known: Vec<Guard> = reads.iter().map(|(_, domain)| [context, domain].concat()).collect();
    let keeps = |last: &Affine| {
        let inside = Constraint::at_most(last.clone(), extent.shift(-1));
        let reads = reads.iter().zip(&known);
        let mut within = reads.map(|((subscripts, _), known)| (known, subscripts[dimension].clone()));
        system::implies(context, &inside)
            && within.all(|(known, subscript)| system::implies(known, &Constraint::at_most(subscript, last.clone())))
    };
    let bounds = reads.iter().filter_map(|(subscripts, domain)| {
        system::lower_bounds(&-subscripts[dimension].clone(), domain, &is_index).ok()
    });
    bounds.flatten().map(|bound| -bound).find(keeps).map(|last| last.shift(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much of `x` is held.
    fn check(text: &str, expected: Option<&[&str]>) {
        let program = crate::syntax::parse(text).and_then(|ast| crate::resolve(&ast, &[])).unwrap().program;
        let held = Reach::of(&program).held(&program, program.tensor("x").unwrap());
        let held = held.map(|held| {
            held.iter().map(|e| crate::program::print::affine(&program.params, &[], e)).collect::<Vec<_>>()
        });
        assert_eq!(held.as_deref(), expected.map(|e| e.iter().map(|e| e.to_string()).collect::<Vec<_>>()).as_deref());
    }

    #[test]
    fn what_is_read_of_an_argument_with_extents_of_its_own_is_held() {
        check("param N, M, E >= N, F >= M\ninput x[F, E]\ny[i in 0..N] = sum[j in 0..M] x[j, i]", Some(&["M", "N"]));
        check(
            "param N, K, E >= N, F >= 1\ninput x[E, F]\ny[i in 0..N + 1 - K] = sum[k in 0..K] x[i + k, 0]",
            Some(&["N", "1"]),
        );
    }

    #[test]
    fn conditions_count() {
        check(
            "param N, E >= N\ninput x[E]\ny[i in 0..N] = (if i > 0 then x[i - 1] else 0) + (if i < N - 1 then x[i + 1] else 0)",
            Some(&["N"]),
        );
    }

    #[test]
    fn all_of_an_argument_is_held_whose_sizes_say_more() {
        check("param N\ninput x[N]\ny[i in 0..N // 2] = x[2*i]", Some(&["N"]));
        check("input x[8]\ny[i in 0..2] = x[i]", Some(&["8"]));
    }

    #[test]
    fn a_reach_that_is_not_known_is_not_guessed() {
        check("param N, M, E\ninput x[E]\ny[i in 0..N] = x[i]\nz[i in 0..M] = x[i]", None);
    }
}
