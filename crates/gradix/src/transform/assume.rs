//! A program for some sizes only.

use crate::program::build;
use crate::program::expr::{CondId, Rewriter, Rules};
use crate::program::{Affine, Atom, Constraint, ExprId, Exprs, Index, ParamId, ParamKind, Program};
use gradix_int::Int;

/// What code may rely on about a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assumed {
    /// Nothing but what the program says.
    Nothing,
    /// It is not zero: sums are then known to have terms, and more can be taken out of them.
    Positive,
    /// Its value: loops over it are unrolled, and what it divides has no remainder.
    Exactly(Int),
}

/// The program as it is at sizes of which this is known; there is one entry for every param.
///
/// ```
/// use gradix::{Assumed, assume};
/// let ast = gradix::syntax::parse("input x[N]; y[i in 0..N - 2] = sum[k in 0..N // 2] x[i]").unwrap();
/// let program = gradix::resolve(&ast, &[]).unwrap().program;
/// let special = assume(&program, &[Assumed::Exactly(7.into())]);
/// assert!(gradix::print(&special).unwrap().contains("y[i in 0..5] = sum[k in 0..3] x[i]"));
/// ```
pub fn assume(program: &Program, assumed: &[Assumed]) -> Program {
    let mut program = program.clone();
    let mut values = vec![None; program.params.len()];
    for (number, assumed) in assumed.iter().enumerate() {
        let least = match assumed {
            // The others follow from these.
            _ if program.params[number].kind != ParamKind::Free => continue,
            Assumed::Nothing => continue,
            Assumed::Positive => {
                let own = Affine::param(ParamId(number as u32));
                program.facts.retain(|fact| *fact != Constraint::non_negative(own.clone()));
                own.shift(-1)
            }
            Assumed::Exactly(value) => {
                values[number] = Some(value.clone());
                continue;
            }
        };
        program.facts.push(Constraint::non_negative(least));
    }
    if values.iter().any(Option::is_some) {
        insert(&mut program, values);
    }
    program
}

struct Values(Vec<Option<Int>>);

impl Values {
    fn within(&self, affine: &Affine) -> Affine {
        affine.substitute(&mut |atom| match atom {
            Atom::Param(ParamId(p)) => self.0[*p as usize].clone().map(Affine::constant),
            Atom::Index(_) | Atom::Floor(..) => None,
        })
    }

    fn of(&self, constraint: &Constraint) -> Constraint {
        constraint.rebuilt(self.within(&constraint.affine))
    }
}

impl Rules for Values {
    fn affine(&mut self, affine: &Affine) -> Affine {
        self.within(affine)
    }
    fn index(&mut self, exprs: &mut Exprs, affine: Affine) -> ExprId {
        build::index(exprs, affine)
    }
    fn select(&mut self, exprs: &mut Exprs, c: CondId, a: ExprId, b: ExprId) -> ExprId {
        build::select(exprs, c, a, b)
    }
}

/// Replaces params by their values, wherever they stand; as given sizes they stay where they are.
fn insert(program: &mut Program, values: Vec<Option<Int>>) {
    let mut values = Values(values);
    for param in &mut program.params {
        if let ParamKind::Smallest(parts) | ParamKind::Largest(parts) = &mut param.kind {
            parts.iter_mut().for_each(|part| *part = values.within(part));
        }
    }
    program.facts.iter_mut().for_each(|fact| *fact = values.of(fact));
    program.facts.retain(|fact| fact.decided() != Some(true));
    program.tensors.iter_mut().flat_map(|t| &mut t.extents).for_each(|extent| *extent = values.within(extent));
    let mut rewriter = Rewriter::default();
    for definition in &mut program.definitions {
        for Index { range, .. } in &mut definition.indices {
            *range = range.map(|bound| values.within(bound));
        }
        let constraints = definition.conditions.iter_mut().chain(&mut definition.assumptions);
        constraints.for_each(|constraint| *constraint = values.of(constraint));
        definition.body = rewriter.rewrite(&mut program.exprs, definition.body, &mut values);
    }
}
