//! A sum that reads a large definition both by row and by column, summed apart.
//!
//! `sum[i] (s[i, j] * p[j] - s[j, i] * p[i])`, as derivatives of what acts between pairs have it, needs rows and columns of
//! `s` at a time, so that all of `s` would be stored. `sum[i] s[i, j] * p[j] - sum[i] s[j, i] * p[i]` can be summed while
//! `s` is made, row by row.

use super::canon::{Chain, chain, links, sum_of};
use super::rewrite::{asks_for_outputs, without};
use super::work::elements;
use super::{part_name, room, share};
use crate::program::build;
use crate::program::{Affine, Definition, ExprId, Exprs, Program, ReduceOp, TensorId};
use std::collections::HashSet;

/// Which indices each subscript uses.
type Order = Vec<Vec<bool>>;

/// Takes such sums apart; whether there are any.
pub fn orient(program: &mut Program, sizes: &[f64]) -> bool {
    let (room, lazy) = (room(program, sizes), share::lazy(program));
    let is_large = |d: &&Definition| d.rank > 1 && elements(d, sizes) > room;
    let large: HashSet<TensorId> = program.definitions.iter().filter(is_large).map(|d| d.tensor).collect();
    let mut changed = false;
    for site in std::mem::take(&mut program.definitions) {
        let fits = site.reduction == Some(ReduceOp::Sum) && !lazy.contains(&site.tensor);
        match fits.then(|| groups(&program.exprs, &site, &large)).flatten() {
            Some(groups) => {
                let main = apart(program, &site, &groups);
                program.definitions.push(main);
                changed = true;
            }
            None => program.definitions.push(site),
        }
    }
    changed
}

/// Terms of a sum with their signs, and how they read large tensors.
#[derive(Default)]
struct Group {
    reads: Vec<(TensorId, Order)>,
    terms: Vec<(bool, ExprId)>,
}

impl Group {
    /// How well a term with these reads fits: not at all if it reads a tensor in another order.
    fn fit(&self, reads: &[(TensorId, Order)]) -> Option<usize> {
        let conflicts = |(tensor, order): &(TensorId, Order)| reads.iter().any(|(t, o)| t == tensor && o != order);
        let alike = |(_, order): &&(TensorId, Order)| reads.iter().any(|(_, o)| o == order);
        (!self.reads.iter().any(conflicts)).then(|| self.reads.iter().filter(alike).count())
    }
}

/// The terms of a sum in groups none of which reads a large tensor in two orders, if several are needed.
fn groups(exprs: &Exprs, site: &Definition, large: &HashSet<TensorId>) -> Option<Vec<Group>> {
    if chain(exprs, site.body) != Some(Chain::Sum) || asks_for_outputs(site) {
        return None;
    }
    let mut groups: Vec<Group> = Vec::new();
    for (negative, term) in links(exprs, site.body, Chain::Sum) {
        let reads = reads(exprs, term, site.indices.len(), large);
        let own = Group { reads: reads.clone(), ..Group::default() };
        own.fit(&reads)?;
        let fits = groups.iter().enumerate().filter_map(|(place, group)| Some((group.fit(&reads)?, place)));
        // The best fit, and the first of those.
        let best = fits.max_by_key(|(fit, place)| (*fit, usize::MAX - place)).map(|(_, place)| place);
        let place = best.unwrap_or_else(|| {
            groups.push(Group::default());
            groups.len() - 1
        });
        groups[place].terms.push((negative, term));
        groups[place].reads.extend(reads);
    }
    (groups.len() > 1).then_some(groups)
}

/// The large tensors that a term reads, and in which order.
fn reads(exprs: &Exprs, term: ExprId, count: usize, large: &HashSet<TensorId>) -> Vec<(TensorId, Order)> {
    let of = exprs.accesses(term).filter(|(tensor, _)| large.contains(tensor));
    let uses = |subscript: &Affine| (0..count).map(|index| subscript.uses_index(index)).collect();
    of.map(|(tensor, subscripts)| (tensor, subscripts.iter().map(uses).collect())).collect()
}

/// Adds a sum for each group, and returns the definition that reads them.
fn apart(program: &mut Program, site: &Definition, groups: &[Group]) -> Definition {
    let mut sums = Vec::new();
    for group in groups {
        let body = sum_of(&mut program.exprs, &group.terms);
        let name = part_name(program, site.tensor, site.reduction);
        let tensor = program.add_nested(name, site.rank);
        sums.push(program.exprs.access(tensor, site.outputs()));
        program.definitions.push(Definition { tensor, body, ..site.clone() });
    }
    let body = build::total(&mut program.exprs, &sums);
    let reduced: Vec<usize> = (site.rank..site.indices.len()).collect();
    without(program, site, &reduced, body)
}
