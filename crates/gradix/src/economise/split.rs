//! A sum of terms that depend on different indices, summed apart.
//!
//! `sum[j] p[i, j] * (x[i, d] - z[j, d])` is `x[i, d] * sum[j] p[i, j] - sum[j] p[i, j] * z[j, d]`. A square is never
//! multiplied out, nor a product of two sums that read the same tensor: `sum[d] (x[d] - z[d]) * (x[d] - w[d])` is
//! small where the points are close, and its parts are not. For the same reason the difference of two elements of one
//! tensor stays together.

use super::canon::{Chain, chain, links, sum_of};
use super::eliminate::eliminations;
use super::part::part;
use super::rewrite::{Ids, Rewrite, Risk, asks_for_outputs, without};
use super::work::{Work, work};
use crate::program::build::{self, Product};
use crate::program::{Constraint, Definition, Expr, ExprId, Exprs, Program, ReduceOp, TensorId};
use crate::simplify::factor;
use crate::target::cost;
use std::collections::{BTreeMap, HashSet};
use std::ops::Add;

/// The most groups into which a sum is split.
const MAX_GROUPS: usize = 6;

/// The ways to split a sum.
pub fn splits(
    program: &mut Program,
    site: &Definition,
    ids: &mut Ids,
    sizes: &[f64],
    context: &[Constraint],
) -> Vec<Rewrite> {
    if site.reduction != Some(ReduceOp::Sum) || asks_for_outputs(site) {
        return Vec::new();
    }
    let product = Product::of(&program.exprs, site.body);
    let is_sum = |(id, divides): &(ExprId, bool)| !divides && chain(&program.exprs, *id) == Some(Chain::Sum);
    let sums: Vec<ExprId> = product.parts().filter(is_sum).map(|(id, _)| id).collect();
    let mut found = Vec::new();
    for factor in sums {
        let (own, rest) = product.clone().split(|id, divides| id == factor && !divides);
        // A power of the sum is not multiplied out.
        if own.build(&mut program.exprs) != factor || shares_tensor(&program.exprs, factor, &rest) {
            continue;
        }
        let rest = rest.build(&mut program.exprs);
        for groups in groupings(&program.exprs, factor, site) {
            if takes_difference_apart(&program.exprs, &groups) {
                continue;
            }
            found.extend(split(program, site, &groups, rest, ids, sizes, context));
        }
    }
    found
}

fn tensors(exprs: &Exprs, root: ExprId) -> HashSet<TensorId> {
    let accesses = exprs.postorder(root).into_iter().filter_map(|id| match &exprs[id] {
        Expr::Access(tensor, _) => Some(*tensor),
        _ => None,
    });
    accesses.collect()
}

/// Whether another sum in the product reads a tensor of this one.
fn shares_tensor(exprs: &Exprs, factor: ExprId, rest: &Product) -> bool {
    let own = tensors(exprs, factor);
    let other_sums = rest.parts().filter(|(id, _)| chain(exprs, *id) == Some(Chain::Sum));
    other_sums.into_iter().any(|(id, _)| !own.is_disjoint(&tensors(exprs, id)))
}

/// Whether one group adds what another one subtracts of the same tensor: where `x[i] - x[j]` is small or 0, the parts of
/// `sum[j] p[i, j] * (x[i] - x[j])` need not be.
fn takes_difference_apart(exprs: &Exprs, groups: &Groups) -> bool {
    let read = |group: &[(bool, ExprId)], sign: bool| -> HashSet<TensorId> {
        group.iter().filter(|(negative, _)| *negative == sign).flat_map(|(_, term)| tensors(exprs, *term)).collect()
    };
    let pairs =
        groups.iter().enumerate().flat_map(|(n, a)| groups.iter().enumerate().map(move |(m, b)| (n != m, a, b)));
    pairs.into_iter().any(|(apart, a, b)| apart && !read(a, false).is_disjoint(&read(b, true)))
}

/// Terms with their signs, grouped.
type Groups = Vec<Vec<(bool, ExprId)>>;

/// The terms of a sum grouped by the reduction indices that they use, and by all indices.
fn groupings(exprs: &Exprs, sum: ExprId, site: &Definition) -> Vec<Groups> {
    let count = site.indices.len();
    let group = |first: usize| {
        let mut groups: BTreeMap<Vec<bool>, Vec<(bool, ExprId)>> = BTreeMap::new();
        for (negative, term) in links(exprs, sum, Chain::Sum) {
            groups.entry(exprs.used_indices(term, count)[first..].to_vec()).or_default().push((negative, term));
        }
        let mut groups: Groups = groups.into_values().collect();
        let order = links(exprs, sum, Chain::Sum);
        groups.sort_by_key(|group| order.iter().position(|term| *term == group[0]));
        groups
    };
    let (coarse, fine) = (group(site.rank), group(0));
    let same = coarse.len() == fine.len();
    let useful = |groups: &Groups| (2..=MAX_GROUPS).contains(&groups.len());
    [coarse, if same { Vec::new() } else { fine }].into_iter().filter(useful).collect()
}

/// Each group times the rest, summed on its own.
fn split(
    program: &mut Program,
    site: &Definition,
    groups: &Groups,
    rest: ExprId,
    ids: &mut Ids,
    sizes: &[f64],
    context: &[Constraint],
) -> Option<Rewrite> {
    let mut rewrite = Rewrite { parts: Vec::new(), main: site.clone(), risks: Vec::new() };
    let reduced: Vec<usize> = (site.rank..site.indices.len()).collect();
    let mut terms = Vec::new();
    for group in groups {
        let sum = sum_of(&mut program.exprs, group);
        let body = build::multiply(&mut program.exprs, sum, rest);
        let mut term = Definition { body, ..site.clone() };
        let mut outside = program.exprs.constant(1.0);
        if let Some((front, inside)) = factor::factor(program, &term, context) {
            (outside, term.body) = (front, inside);
        }
        let inner = best(program, &term, ids, sizes, context);
        let first = rewrite.parts.len();
        rewrite.risks.extend(inner.risks.into_iter().map(|risk| Risk { part: risk.part + first, ..risk }));
        rewrite.parts.extend(inner.parts);
        let own: Vec<usize> = (site.rank..inner.main.indices.len()).collect();
        let access = match own.is_empty() {
            true => inner.main.body,
            false => {
                let mut part = part(program, &inner.main, &own, inner.main.body, &[], context)?;
                part.definition.tensor = ids.next();
                let access = program.exprs.access(part.definition.tensor, part.subscripts.clone());
                rewrite.parts.push(part);
                access
            }
        };
        terms.push(build::multiply(&mut program.exprs, outside, access));
    }
    let body = build::total(&mut program.exprs, &terms);
    rewrite.main = without(program, site, &reduced, body);
    Some(rewrite)
}

/// The definition as it is, or the cheapest way to sum over some of its indices first.
fn best(program: &mut Program, term: &Definition, ids: &mut Ids, sizes: &[f64], context: &[Constraint]) -> Rewrite {
    let plain = Rewrite { parts: Vec::new(), main: term.clone(), risks: Vec::new() };
    let ways = eliminations(program, term, ids, context);
    let exprs = &program.exprs;
    let total = |way: &Rewrite| {
        let parts = way.parts.iter().map(|part| work(exprs, &part.definition, sizes));
        parts.fold(work(exprs, &way.main, sizes), Work::add).weight
    };
    ways.into_iter()
        .fold(plain, |best, way| if total(&way) < cost::SPLIT_COST_SHARE * total(&best) { way } else { best })
}
