//! Expressions at other values of their indices.
//!
//! Reductions inside an expression are definitions that are read by bare indices. At other values each is a definition of
//! its own: `sum[d] q[i, d] * k[j, d]` at `j = i` is `sum[d] q[i, d] * k[i, d]`.

use crate::domain::guard;
use crate::lift;
use crate::program::build;
use crate::program::expr::Rewriter;
use crate::program::{Affine, Constraint, Definition, Expr, ExprId, Index, Program, TensorId, TensorKind};

/// Where an expression is put.
pub struct Place<'a> {
    /// The indices that there are.
    pub around: &'a [Index],
    /// What holds for them.
    pub domain: &'a [Constraint],
    /// What is known of sizes.
    pub context: &'a [Constraint],
}

/// The expression with its indices replaced.
pub fn place(program: &mut Program, body: ExprId, map: &[Affine], at: &Place) -> Option<ExprId> {
    let mut done = Vec::new();
    for (access, guards) in guard::guarded_accesses(&mut program.exprs, body) {
        let Expr::Access(tensor, subscripts) = program.exprs[access].clone() else { continue };
        if program[tensor].kind == TensorKind::Nested {
            let subscripts: Vec<Affine> = subscripts.iter().map(|s| s.with_indices(map)).collect();
            let guard = match guards.as_slice() {
                [guard] => guard.iter().map(|row| row.with_indices(map)).collect(),
                _ => Vec::new(),
            };
            done.push((access, nested(program, tensor, &subscripts, guard, at)?));
        }
    }
    Some(Rewriter::with(done).rewrite(&mut program.exprs, body, &mut build::Placed { map, zero: true }))
}

/// A nested definition at these values of its outputs, as another one.
fn nested(
    program: &mut Program,
    tensor: TensorId,
    subscripts: &[Affine],
    guard: Vec<Constraint>,
    at: &Place,
) -> Option<ExprId> {
    let inner = program.definition_of(tensor)?.clone();
    let rank = at.around.len();
    let reduced = (0..inner.indices.len() - inner.rank).map(|place| Affine::index(rank + place));
    let map: Vec<Affine> = subscripts.iter().cloned().chain(reduced).collect();
    let ranges = inner.indices[inner.rank..]
        .iter()
        .map(|index| Index { name: index.name.clone(), range: index.range.map(|bound| bound.with_indices(&map)) });
    let indices: Vec<Index> = at.around.iter().cloned().chain(ranges).collect();
    let own: Vec<Constraint> = inner.conditions.iter().map(|row| row.with_indices(&map)).collect();
    let reduced = indices.iter().enumerate().skip(rank);
    let inside: Vec<Constraint> =
        reduced.flat_map(|(p, index)| index.range.constraints(p).collect::<Vec<_>>()).collect();
    let domain = [at.domain, &guard, &inside, &own].concat();
    let body = place(program, inner.body, &map, &Place { around: &indices, domain: &domain, context: at.context })?;
    inner.reduction?;
    let name = program[tensor].name.clone();
    let about_outputs = |row: &&Constraint| {
        let mut fine = row.affine.uses_indices();
        row.affine.visit_indices(&mut |index| fine &= index < rank);
        fine
    };
    let assumptions = at.domain.iter().chain(&guard).filter(about_outputs).cloned().collect();
    let full = Definition { tensor, indices, rank, reduction: inner.reduction, conditions: own, assumptions, body };
    Some(lift::add(program, full, name, at.context, &[]).ok()?.0)
}
