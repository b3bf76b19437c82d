//! Pointwise definitions that are computed again at each use, where that takes less time than to store and to load them.
//!
//! ```text
//! e[i, j] = exp(-s[i, j]) * dy[i]          dx[i] = sum[j] exp(-s[i, j]) * dy[i]
//! dx[i] = sum[j] e[i, j]             →     dz[j] = sum[i] exp(-s[i, j]) * dy[i]
//! dz[j] = sum[i] e[i, j]
//! ```
//!
//! An element of memory takes a GPU as long as dozens of operations.

use super::epilogues;
use crate::domain::estimate::extents;
use crate::program::expr::Rewriter;
use crate::program::{Affine, Definition, ExprId, Exprs, Program, TensorId};
use crate::schedule::arrange::{Inline, read_exactly};
use crate::target::cost;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The program without those definitions.
pub fn merge(program: &Program, estimate: &[f64]) -> Program {
    let mut merged = program.clone();
    let after: HashSet<usize> = epilogues(program).into_values().collect();
    let exact = read_exactly(program, &program.definitions);
    let mut bodies: HashMap<TensorId, ExprId> = HashMap::new();
    let mut definitions = std::mem::take(&mut merged.definitions);
    for (position, definition) in definitions.iter_mut().enumerate() {
        let mut rules = Inline { bodies: &bodies };
        definition.body = Rewriter::default().rewrite(&mut merged.exprs, definition.body, &mut rules);
        let readers: Vec<&Definition> =
            program.definitions.iter().filter(|d| program.exprs.reads(d.body, definition.tensor)).collect();
        // What is computed with the sums that it reads costs no load: only what is stored in its place could take its place.
        let stays = after.contains(&position) && !matches!(readers[..], [reader] if reader.reduction.is_none());
        if definition.reduction.is_none()
            && !program.outputs.contains(&definition.tensor)
            && !exact.contains(&definition.tensor)
            && !stays
            && pays(program, &merged.exprs, definition, &readers, estimate)
        {
            bodies.insert(definition.tensor, definition.body);
        }
    }
    definitions.retain(|definition| !bodies.contains_key(&definition.tensor));
    merged.definitions = definitions;
    merged
}

/// Whether it takes less time to compute a definition wherever it is read; `exprs` has its body with what was merged into it.
fn pays(program: &Program, exprs: &Exprs, definition: &Definition, readers: &[&Definition], estimate: &[f64]) -> bool {
    let elements: f64 = extents(definition, estimate).iter().product();
    let of = |tensor: TensorId| program[tensor].elements(estimate);
    let nodes = exprs.postorder(definition.body);
    let operations: f64 = nodes.iter().filter_map(|id| cost::operation(exprs, *id)).sum();
    let needed: BTreeSet<TensorId> = exprs.accesses(definition.body).map(|(tensor, _)| tensor).collect();
    let loaded: f64 = needed.iter().map(|tensor| of(*tensor).min(elements)).sum();
    let within = exprs.accesses(definition.body).count() as f64;
    let (mut stored, mut again) = (elements + loaded, 0.0);
    for reader in readers {
        let sizes = extents(reader, estimate);
        let points: f64 = sizes.iter().product();
        let known: BTreeSet<TensorId> = program.exprs.accesses(reader.body).map(|(tensor, _)| tensor).collect();
        let places: Vec<&[Affine]> = program
            .exprs
            .accesses(reader.body)
            .filter(|(tensor, _)| *tensor == definition.tensor)
            .map(|(_, at)| at)
            .collect();
        let times: f64 = places.iter().map(|at| points / shared(reader, &sizes, at)).sum();
        let fresh: f64 = needed.difference(&known).map(|tensor| of(*tensor).min(points)).sum();
        stored += elements + cost::CACHED_LOAD * times;
        again += fresh + times * (operations / cost::OPERATIONS_PER_ELEMENT + cost::CACHED_LOAD * within);
        if places.len() * nodes.len() > MAX_MERGED_NODES {
            return false;
        }
    }
    again <= stored
}

/// The most nodes that a body grows by.
const MAX_MERGED_NODES: usize = 400;

/// By how many points of a reader a value that it reads is shared, once it is staged.
fn shared(reader: &Definition, sizes: &[f64], at: &[Affine]) -> f64 {
    let is_idle = |p: &usize| !at.iter().any(|subscript| subscript.uses_index(*p)) && sizes[*p] >= cost::STAGED_VALUES;
    let idle = (0..reader.rank).any(|p| is_idle(&p));
    if reader.reduction.is_some() && idle { cost::STAGED_VALUES } else { 1.0 }
}
