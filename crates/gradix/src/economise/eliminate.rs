//! The order in which a sum of products is summed.
//!
//! `sum[j, k] T[i, j, k] * B[j, r] * C[k, r]` is `sum[j] X[i, j, r] * B[j, r]` with
//! `X[i, j, r] = sum[k] T[i, j, k] * C[k, r]`: of the factors, those that use `k` are summed over `k` first.
//! Every set of reduction indices is one way; which is taken is a matter of cost.
//!
//! Where elements are read at a combination of reduction indices, that is tried in place of one of them:
//! `sum[i, k] d[i, l - i - k] * x[i + k]` is `sum[p] x[p] * S[p, l - p]` with `S[p, m] = sum[i] d[i, m]`.

use super::part::{direction_of, part};
use super::rewrite::{Ids, Rewrite, Risk, domain_without, without};
use crate::domain::system;
use crate::lift;
use crate::program::build::{self, Product};
use crate::program::{Affine, Atom, Constraint, Definition, ExprId, Index, Program, ReduceOp};
use gradix_int::Int;

/// With more reduction indices than this, only single ones are summed first.
const MAX_SUBSET_INDICES: usize = 4;

/// Sums over more indices than this are left in their own indices.
const MAX_COMBINED_INDICES: usize = 3;

/// The ways to sum over some indices first, of a sum as it is or over combinations of indices.
pub fn eliminations(program: &mut Program, site: &Definition, ids: &mut Ids, context: &[Constraint]) -> Vec<Rewrite> {
    let mut found = in_order(program, site, ids, context);
    for other in combined(program, site, context) {
        found.extend(in_order(program, &other, ids, context));
    }
    found
}

/// The same sum with a combination of reduction indices in place of one of them.
fn combined(program: &mut Program, site: &Definition, context: &[Constraint]) -> Vec<Definition> {
    let (rank, count) = (site.rank, site.indices.len());
    if site.reduction != Some(ReduceOp::Sum) || count - rank < 2 || count - rank > MAX_COMBINED_INDICES {
        return Vec::new();
    }
    let mut combinations: Vec<Affine> = Vec::new();
    program.exprs.visit_affines(site.body, &mut |affine| {
        let reduced = affine.terms().iter().filter(|(atom, _)| matches!(atom, Atom::Index(i) if *i as usize >= rank));
        let sum = reduced.fold(Affine::default(), |sum, (atom, c)| sum.add_scaled(c, &Affine::atom(atom.clone())));
        if let Some((direction, _)) = direction_of(&sum)
            && direction.terms().len() >= 2
            && !combinations.contains(&direction)
        {
            combinations.push(direction);
        }
    });
    combinations.iter().filter_map(|combination| over(program, site, combination, context)).collect()
}

/// The sum over `p`, which is a combination of reduction indices, and all of these but the last.
fn over(program: &mut Program, site: &Definition, combination: &Affine, context: &[Constraint]) -> Option<Definition> {
    let (rank, count) = (site.rank, site.indices.len());
    let single = |i: &usize| {
        let factor = combination.coefficient(&Atom::Index(*i as u32));
        factor == Int::ONE || factor == -Int::ONE
    };
    let replaced = (rank..count).rev().find(single)?;
    let factor = combination.coefficient(&Atom::Index(replaced as u32));
    // p comes first, the others follow in order.
    let mut map: Vec<Affine> = (0..rank).map(Affine::index).collect();
    let mut next = rank;
    map.extend((rank..count).map(|old| {
        next += usize::from(old != replaced);
        if old == replaced { Affine::default() } else { Affine::index(next) }
    }));
    let rest = combination.with_indices(&map);
    map[replaced] = (Affine::index(rank) - rest).scale(&factor);
    let rows = site.indices[rank..].iter().enumerate().flat_map(|(n, index)| {
        let own = map[rank + n].clone();
        let low = index.range.low.iter().map(|b| b.with_indices(&map));
        let low: Vec<Constraint> = low.map(|b| Constraint::at_most(b, own.clone())).collect();
        let high = index.range.high.iter().map(|b| Constraint::at_most(own.clone(), b.with_indices(&map)));
        low.into_iter().chain(high.collect::<Vec<_>>())
    });
    let rows: Vec<Constraint> = rows.chain(site.conditions.iter().map(|c| c.with_indices(&map))).collect();
    let positions: Vec<usize> = (rank..count).collect();
    let outer = [context, &site.output_domain()].concat();
    let solved = system::solve(rows, &positions, &outer).ok()??;
    if !solved.conditions.is_empty() || !solved.outer.is_empty() {
        return None;
    }
    let others = (rank..count).filter(|old| *old != replaced).map(|old| site.indices[old].name.clone());
    let names = std::iter::once(site.indices[replaced].name.clone()).chain(others);
    let reduced = names.zip(solved.ranges).map(|(name, range)| Index { name, range });
    let indices = site.indices[..rank].iter().cloned().chain(reduced).collect();
    let body = lift::remap(&mut program.exprs, site.body, &map);
    Some(Definition { indices, conditions: Vec::new(), body, ..site.clone() })
}

fn in_order(program: &mut Program, site: &Definition, ids: &mut Ids, context: &[Constraint]) -> Vec<Rewrite> {
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

/// All sets of indices that are not empty, or the single ones if there are many; of equal cost, the first is taken.
/// Inner ones come first: along them, elements mostly are neighbours.
fn sets(indices: &[usize]) -> Vec<Vec<usize>> {
    let count = indices.len();
    if count > MAX_SUBSET_INDICES {
        return indices.iter().rev().map(|&i| vec![i]).collect();
    }
    let has = |bits: usize, n: usize| bits >> (count - 1 - n) & 1 == 1;
    let chosen = |bits: usize| (0..count).filter(move |&n| has(bits, n)).map(|n| indices[n]);
    (1..1usize << count).map(|bits| chosen(bits).collect()).collect()
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
