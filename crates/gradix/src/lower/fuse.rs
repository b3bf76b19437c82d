//! Leaves with the same loops, run together: each point is loaded once for all of them, and what one computes the next has
//! in a register.
//!
//! ```text
//! for i: for j lanes: e[i, j] = exp(s[i, j] - m[i])          together over i, j:
//! for i: sum j lanes: z[i] = sum of e[i, j]                      e[i, j] = …;  z[i] = sum of e[i, j]
//! ```
//!
//! A leaf joins an earlier one if nothing that it reads is made in between, but for elements at the same point.

use crate::nest::{Leaf, Step};
use crate::nested;
use crate::program::{Affine, Exprs, Range, TensorId};

/// More statements than this don't share registers well.
const MAX_TOGETHER: usize = 6;

/// How far up a leaf may move.
const MAX_DISTANCE: usize = 24;

/// Brings leaves together, in place.
pub fn fuse(exprs: &mut Exprs, steps: Vec<Step>) -> Vec<Step> {
    let mut fused: Vec<Vec<Leaf>> = Vec::new();
    let mut others = false;
    for step in steps.iter().cloned() {
        match step {
            Step::Leaf(leaf) => place(exprs, leaf, &mut fused),
            Step::Together(_) | Step::Tile(_) => others = true,
        }
    }
    if others {
        return steps;
    }
    let step = |mut leaves: Vec<Leaf>| match leaves.len() {
        1 => Step::Leaf(leaves.remove(0)),
        _ => Step::Together(leaves),
    };
    fused.into_iter().map(step).collect()
}

/// Adds a leaf to the latest group that it can join, or at the end.
fn place(exprs: &mut Exprs, leaf: Leaf, fused: &mut Vec<Vec<Leaf>>) {
    for position in (fused.len().saturating_sub(MAX_DISTANCE)..fused.len()).rev() {
        if let Some(joined) = joined(exprs, &leaf, &fused[position], &fused[position + 1..]) {
            fused[position].push(joined);
            return;
        }
    }
    fused.push(vec![leaf]);
}

/// The leaf in the variables of a group, if it may run together with it, before all that come later.
fn joined(exprs: &mut Exprs, leaf: &Leaf, group: &[Leaf], later: &[Vec<Leaf>]) -> Option<Leaf> {
    let first = &group[0];
    if group.len() >= MAX_TOGETHER || !is_plain(leaf) || !group.iter().all(is_plain) {
        return None;
    }
    let leaf = renamed(exprs, leaf, first)?;
    let prefixes = group.iter().chain([&leaf]).filter(|l| l.reduction.is_some()).map(|l| l.outputs);
    let prefixes: Vec<usize> = prefixes.collect();
    if prefixes.windows(2).any(|pair| pair[0] != pair[1]) {
        return None;
    }
    // What the group makes is read at the same point; other pieces of it don't matter then.
    let maker = |target: TensorId| group.iter().find(|other| other.target == target);
    let at_point = |(target, subscripts): (TensorId, &[Affine])| {
        maker(target).is_none_or(|maker| maker.reduction.is_none() && maker.subscripts == subscripts)
    };
    let reads = |reader: &Leaf, target: TensorId| exprs.accesses(reader.body).any(|(read, _)| read == target);
    let free =
        |other: &Leaf| !reads(other, leaf.target) && (!reads(&leaf, other.target) || maker(other.target).is_some());
    let own = |other: &Leaf| other.target != leaf.target && !reads(other, leaf.target);
    let fits = exprs.accesses(leaf.body).all(at_point) && later.iter().flatten().all(free) && group.iter().all(own);
    fits.then_some(leaf)
}

/// Whether lanes run over the innermost loop, and nothing else is special.
fn is_plain(leaf: &Leaf) -> bool {
    let shape = &leaf.shape;
    leaf.guards.is_empty()
        && shape.panels.is_none()
        && shape.rows.is_none()
        && shape.lanes.is_some_and(|lanes| lanes + 1 == leaf.loops.len())
}

/// The leaf in the variables of another one with the same ranges.
fn renamed(exprs: &mut Exprs, leaf: &Leaf, first: &Leaf) -> Option<Leaf> {
    if leaf.loops.len() != first.loops.len() {
        return None;
    }
    let count = leaf.loops.iter().chain(&first.loops).map(|l| l.variable + 1).max().unwrap_or(0).max(3);
    let mut largest = count;
    exprs.visit_affines(leaf.body, &mut |affine| affine.visit_indices(&mut |i| largest = largest.max(i + 1)));
    let mut see = |affine: &Affine| affine.visit_indices(&mut |i| largest = largest.max(i + 1));
    leaf.subscripts.iter().for_each(&mut see);
    leaf.loops.iter().flat_map(|l| l.range.low.iter().chain(&l.range.high)).for_each(&mut see);
    let mut map: Vec<Affine> = (0..largest).map(Affine::index).collect();
    for (own, other) in leaf.loops.iter().zip(&first.loops) {
        map[own.variable] = Affine::index(other.variable);
    }
    let same = |own: &Range, other: &Range| {
        let equal = |a: &[Affine], b: &[Affine]| {
            let moved: Vec<Affine> = a.iter().map(|bound| bound.with_indices(&map)).collect();
            moved.len() == b.len() && moved.iter().all(|bound| b.contains(bound))
        };
        equal(&own.low, &other.low) && equal(&own.high, &other.high)
    };
    if !leaf.loops.iter().zip(&first.loops).all(|(own, other)| same(&own.range, &other.range)) {
        return None;
    }
    let mut renamed = leaf.clone();
    renamed.loops = first.loops.clone();
    renamed.subscripts = leaf.subscripts.iter().map(|s| s.with_indices(&map)).collect();
    renamed.body = nested::remap(exprs, leaf.body, &map);
    Some(renamed)
}
