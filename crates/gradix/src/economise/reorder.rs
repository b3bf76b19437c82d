//! The order of the indices of a reduction.
//!
//! ```text
//! sum[i in 0..512, t in 1 - (k - 2*i + 3) // 1024..2 - (k - 2*i + 1020) // 1024] …       most i have no t
//! sum[t in 0..=2, i in max(0, …)..=min(511, …)] …                                         each t has a range of i
//! ```
//!
//! Both orders have the same terms; that in which loops go through fewer values is taken, where it is far fewer.

use super::work::points;
use crate::domain::system;
use crate::lift;
use crate::program::{Affine, Atom, Constraint, Definition, Index, Program, Relation};
use crate::target::cost;
use gradix_int::Int;

/// Reorders the indices of reductions, and says whether one changed.
pub fn reorder(program: &mut Program, sizes: &[f64], context: &[Constraint]) -> bool {
    let (mut changed, mut next) = (false, program.clone());
    for place in 0..program.definitions.len() {
        let site = program.definitions[place].clone();
        let before = visits(&site, sizes);
        let inner = site.rank + 1..site.indices.len();
        let moved = inner.filter(|index| moves(&site, *index));
        let others: Vec<Definition> = moved.filter_map(|index| outermost(&mut next, &site, index, context)).collect();
        let priced = others.into_iter().map(|other| (visits(&other, sizes), other));
        let best = priced.min_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((_, other)) = best.filter(|(after, _)| *after < cost::REORDERED_VISITS_SHARE * before) {
            next.definitions[place] = other;
            changed = true;
        }
    }
    if changed {
        *program = next;
    }
    changed
}

/// How many values the loops of a reduction go through.
fn visits(definition: &Definition, sizes: &[f64]) -> f64 {
    (definition.rank + 1..=definition.indices.len()).map(|count| points(definition, count, sizes)).sum()
}

/// Whether the range of an index moves with others of the reduction.
fn moves(site: &Definition, index: usize) -> bool {
    let range = &site.indices[index].range;
    let mut bounds = range.low.iter().chain(&range.high);
    bounds.any(|bound| (site.rank..index).any(|other| bound.uses_index(other)))
}

/// The same reduction with one index before all others.
fn outermost(program: &mut Program, site: &Definition, index: usize, context: &[Constraint]) -> Option<Definition> {
    let (rank, count) = (site.rank, site.indices.len());
    let order: Vec<usize> = std::iter::once(index).chain((rank..count).filter(|other| *other != index)).collect();
    let mut map: Vec<Affine> = (0..count).map(Affine::index).collect();
    order.iter().enumerate().for_each(|(place, old)| map[*old] = Affine::index(rank + place));
    let ranges = (rank..count).flat_map(|old| site.indices[old].range.constraints(old).collect::<Vec<_>>());
    let rows = ranges.chain(site.conditions.iter().cloned()).map(|row| straight(&row, index).with_indices(&map));
    let positions: Vec<usize> = (rank..count).collect();
    let outer = [context, &site.output_domain()].concat();
    let solved = system::solve(rows.collect(), &positions, &outer).ok()??;
    if !solved.conditions.is_empty() || !solved.outer.is_empty() {
        return None;
    }
    let names = order.iter().map(|old| site.indices[*old].name.clone());
    let reduced = names.zip(solved.ranges).map(|(name, range)| Index { name, range });
    let indices = site.indices[..rank].iter().cloned().chain(reduced).collect();
    let body = lift::remap(&mut program.exprs, site.body, &map);
    Some(Definition { indices, conditions: Vec::new(), body, ..site.clone() })
}

/// `t >= ⌊e / c⌋` as `c*t + c - 1 >= e`, and `t <= ⌊e / c⌋` as `c*t <= e`.
fn straight(row: &Constraint, index: usize) -> Constraint {
    if row.relation != Relation::NonNegative || !row.affine.uses_index(index) {
        return row.clone();
    }
    let quotient = row.affine.terms().iter().find_map(|(atom, factor)| match atom {
        Atom::Floor(inner, c) if inner.uses_indices() => {
            Some((atom.clone(), (**inner).clone(), c.clone(), factor.clone()))
        }
        _ => None,
    });
    let Some((atom, inner, c, factor)) = quotient else { return row.clone() };
    let rest = row.affine.add_scaled(&-factor.clone(), &Affine::atom(atom)).scale(&c);
    match (factor == Int::ONE, factor == Int::NEG_ONE) {
        (true, _) => straight(&Constraint::non_negative(inner + rest), index),
        (_, true) => straight(&Constraint::non_negative(rest.shift(c - Int::ONE) - inner), index),
        _ => row.clone(),
    }
}
