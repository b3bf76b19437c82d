//! Leaves with the same loops, run together: each point is loaded once for all of them, and what one computes the next has
//! in a register.
//!
//! ```text
//! for i: for j lanes: e[i, j] = exp(s[i, j] - m[i])          together over i, j:
//! for i: sum j lanes: z[i] = sum of e[i, j]                      e[i, j] = …;  z[i] = sum of e[i, j]
//! ```
//!
//! A leaf joins an earlier one if nothing that it reads is made in between, but for elements at the same point.

use crate::lift;
use crate::nest::{Leaf, Loop};
use crate::program::{Affine, Exprs, Range, TensorId};
use crate::target::cost;
use gradix_int::Int;

/// How far up a leaf may move, in steps: it bounds the time to compile.
const MAX_MOVED_STEPS: usize = 24;

/// Brings leaves together that may run together.
pub fn fuse(exprs: &mut Exprs, leaves: Vec<Leaf>) -> Vec<Vec<Leaf>> {
    let mut fused: Vec<Vec<Leaf>> = Vec::new();
    leaves.into_iter().for_each(|leaf| place(exprs, leaf, &mut fused));
    fused
}

/// Adds a leaf to the latest group that it can join, or at the end.
fn place(exprs: &mut Exprs, leaf: Leaf, fused: &mut Vec<Vec<Leaf>>) {
    for position in (fused.len().saturating_sub(MAX_MOVED_STEPS)..fused.len()).rev() {
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
    if group.len() >= cost::STATEMENTS_TOGETHER || !is_plain(leaf) || !group.iter().all(is_plain) {
        return None;
    }
    let leaf = renamed(exprs, leaf, first)?;
    // All that leave out values of an outer loop leave out the same.
    let ranges = |leaf: &Leaf| leaf.loops.iter().map(|l| l.range.clone()).collect::<Vec<_>>();
    let narrow = |other: &&Leaf| ranges(other) != ranges(first);
    if narrow(&&leaf) && group.iter().filter(narrow).any(|other| ranges(other) != ranges(&leaf)) {
        return None;
    }
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
    // What goes on from another leaf, or replaces some of what it makes, stays behind it.
    let follows = |other: &Leaf| {
        let alike = other.reduction.is_some() == leaf.reduction.is_some() && other.accumulate == leaf.accumulate;
        other.target == leaf.target && !alike
    };
    let read_later = |other: &Leaf| leaf.reads(exprs, other.target) && maker(other.target).is_none();
    let free = |other: &Leaf| !follows(other) && !other.reads(exprs, leaf.target) && !read_later(other);
    let own = |other: &Leaf| other.target != leaf.target && !other.reads(exprs, leaf.target);
    let fits = exprs.accesses(leaf.body).all(at_point) && later.iter().flatten().all(free) && group.iter().all(own);
    fits.then_some(leaf)
}

/// Whether lanes run over the innermost loop, and nothing else is special.
fn is_plain(leaf: &Leaf) -> bool {
    let innermost = leaf.lanes().is_some_and(|lanes| lanes + 1 == leaf.loops.len());
    leaf.guards.is_empty() && leaf.panels.is_none() && leaf.rows().is_none() && innermost
}

/// The leaf in the variables of another one with the same ranges.
fn renamed(exprs: &mut Exprs, leaf: &Leaf, first: &Leaf) -> Option<Leaf> {
    if leaf.loops.len() != first.loops.len() {
        return None;
    }
    let count = leaf.loops.iter().chain(&first.loops).map(|l| l.variable.number() + 1).max().unwrap_or(0).max(3);
    let mut largest = count;
    exprs.visit_affines(leaf.body, &mut |affine| affine.visit_indices(&mut |i| largest = largest.max(i + 1)));
    let mut see = |affine: &Affine| affine.visit_indices(&mut |i| largest = largest.max(i + 1));
    leaf.subscripts.iter().for_each(&mut see);
    leaf.loops.iter().flat_map(|l| l.range.low.iter().chain(&l.range.high)).for_each(&mut see);
    let mut map: Vec<Affine> = (0..largest).map(Affine::index).collect();
    for (own, other) in leaf.loops.iter().zip(&first.loops) {
        map[own.variable.number()] = Affine::index(other.variable);
    }
    let moved: Vec<Range> = leaf.loops.iter().map(|l| l.range.map(|bound| bound.with_indices(&map))).collect();
    let equal = |a: &[Affine], b: &[Affine]| a.len() == b.len() && a.iter().all(|bound| b.contains(bound));
    let same = |a: &Range, b: &Range| equal(&a.low, &b.low) && equal(&a.high, &b.high);
    // Where fewer values of an outer loop count, others are left out of a reduction.
    let fits = |(position, (own, other)): (usize, (&Range, &Loop))| {
        let outer = position + 1 < leaf.loops.len() && position >= leaf.outputs;
        same(own, &other.range) || outer && is_within(own, &other.range)
    };
    if !moved.iter().zip(&first.loops).enumerate().all(fits) {
        return None;
    }
    let mut renamed = leaf.clone();
    let range = |own: Range, other: &Range| if same(&own, other) { other.clone() } else { own };
    let loops = first.loops.iter().zip(moved);
    renamed.loops =
        loops.map(|(l, own)| Loop { variable: l.variable, range: range(own, &l.range), kind: l.kind }).collect();
    renamed.subscripts = leaf.subscripts.iter().map(|s| s.with_indices(&map)).collect();
    renamed.body = lift::remap(exprs, leaf.body, &map);
    Some(renamed)
}

/// Whether every bound of a range is one of another range, or implied by one that differs from it by a number.
fn is_within(own: &Range, other: &Range) -> bool {
    let at_least = |a: &Affine, b: &Affine| (a.clone() - b.clone()).as_constant().is_some_and(|d| *d >= Int::ZERO);
    other.low.iter().all(|low| own.low.iter().any(|bound| at_least(bound, low)))
        && other.high.iter().all(|high| own.high.iter().any(|bound| at_least(high, bound)))
}
