//! The order in which a sum of products is summed.
//!
//! `sum[j, k] T[i, j, k] * B[j, r] * C[k, r]` is `sum[j] X[i, j, r] * B[j, r]` with
//! `X[i, j, r] = sum[k] T[i, j, k] * C[k, r]`: of the factors, those that use `k` are summed over `k` first.
//! Every set of reduction indices is one way; which is taken is a matter of cost.

use super::part::part;
use super::rewrite::{Ids, Rewrite, Risk, domain_without, without};
use crate::build::{self, Product};
use crate::program::{Constraint, Definition, ExprId, Program, ReduceOp};

/// With more reduction indices than this, only single ones are summed first.
const MAX_INDICES: usize = 4;

/// The ways to sum over some indices first.
pub fn eliminations(program: &mut Program, site: &Definition, ids: &mut Ids, context: &[Constraint]) -> Vec<Rewrite> {
    let reduced: Vec<usize> = (site.rank..site.indices.len()).collect();
    let on_outputs = |c: &Constraint| reduced.iter().all(|&i| !c.affine.uses_index(i));
    if site.reduction != Some(ReduceOp::Sum) || site.conditions.iter().any(on_outputs) {
        return Vec::new();
    }
    let product = Product::of(&program.exprs, site.body);
    if product.is_zero() {
        return Vec::new();
    }
    let sets = sets(&reduced);
    sets.iter().filter_map(|inner| elimination(program, site, &product, inner, ids, context)).collect()
}

/// All sets of indices that are not empty, or the single ones if there are many.
fn sets(indices: &[usize]) -> Vec<Vec<usize>> {
    if indices.len() > MAX_INDICES {
        return indices.iter().map(|&i| vec![i]).collect();
    }
    let chosen = |bits: usize| indices.iter().enumerate().filter(move |(n, _)| bits >> n & 1 == 1).map(|(_, &i)| i);
    (1..1usize << indices.len()).map(|bits| chosen(bits).collect()).collect()
}

fn elimination(
    program: &mut Program,
    site: &Definition,
    product: &Product,
    inner: &[usize],
    ids: &mut Ids,
    context: &[Constraint],
) -> Option<Rewrite> {
    let count = site.indices.len();
    let exprs = &mut program.exprs;
    let uses = |id: ExprId| {
        let used = exprs.used_indices(id, count);
        inner.iter().any(|&i| used[i])
    };
    let (with, rest) = product.clone().split(|id, _| uses(id));
    let whole = inner.len() == count - site.rank;
    with.parts().next()?;
    let body = with.build(exprs);
    let mut part = part(program, site, inner, body, &[], context)?;
    let is_all = whole && part.subscripts.iter().all(|s| s.as_index().is_some()) && part.subscripts.len() == site.rank;
    if is_all {
        return None;
    }
    part.definition.tensor = ids.next();
    let domain = domain_without(site, inner);
    let risk = |(factor, divides)| Risk { factor, divides, domain: domain.clone(), part: 0 };
    let risks = rest.parts().map(risk).collect();
    let access = program.exprs.access(part.definition.tensor, part.subscripts.clone());
    let rest = rest.build(&mut program.exprs);
    let body = build::multiply(&mut program.exprs, rest, access);
    let main = without(program, site, inner, body);
    Some(Rewrite { parts: vec![part], main, risks })
}
