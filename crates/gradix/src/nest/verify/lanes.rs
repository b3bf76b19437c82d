//! That lanes and unrolled loops do the same thing at every value, and that what is packed is all that is read.

use super::super::{Kind, Leaf, Loop, LoopId, Nest, Panels, Scope, Together, Turn};
use crate::program::{Affine, Expr, ExprId, Exprs, TensorId};
use gradix_int::Int;

/// The most lanes that a vector has, whatever code is compiled for: 64 bytes of f32.
const WIDEST_LANES: usize = 16;

/// Checks the kinds of the loops of a leaf of a kernel:
/// - one loop runs in lanes: an output, or the innermost loop; unrolled loops are other outputs;
/// - no range, guard or condition on indices depends on them, nor on the loops of squares, and no subscript or index value
///   by way of a division;
/// - what runs in lanes or squares reads its own target at the same point only;
/// - elements may be computed twice to have stores aligned: nothing is reduced, and the target is not read.
pub fn kinds(nest: &Nest, kernel: usize, leaf: &Leaf) -> Result<(), &'static str> {
    let lanes = leaf.lanes();
    let innermost = leaf.loops.len().wrapping_sub(1);
    if lanes.is_some_and(|lanes| lanes >= leaf.outputs && lanes != innermost) {
        return Err("lanes over a loop that is neither an output nor the innermost");
    }
    let turned = leaf.turn.map(|Turn { along_target, along_source }| [along_target, along_source]);
    let unrolled = leaf.unrolled().map(|(position, _)| position);
    if unrolled.chain(turned.into_iter().flatten()).any(|position| position >= leaf.outputs) {
        return Err("an unrolled loop or a square that is no output");
    }
    let serial = |l: &Loop| matches!(l.kind, Kind::Serial | Kind::Threads(_));
    let several = leaf.loops.iter().enumerate().filter(|(_, l)| !serial(l)).map(|(position, _)| position);
    let seen: Vec<usize> = several.chain(turned.into_iter().flatten()).collect();
    if leaf.loops.iter().filter(|l| matches!(l.kind, Kind::Lanes(_))).count() > 1 {
        return Err("lanes over two loops");
    }
    if seen.iter().any(|position| !is_even(&nest.exprs, leaf, leaf.loops[*position].variable)) {
        return Err("a range, guard or condition that depends on lanes, rows or squares");
    }
    if turned.is_some_and(|[a, b]| a == b || !leaf.guards.is_empty()) {
        return Err("squares of one loop, or under a guard");
    }
    if turned.is_some() && (leaf.accumulate || leaf.panels.is_some() || leaf.rows().is_some()) {
        return Err("squares of what goes on from before, is packed or unrolled");
    }
    let at_point = |(read, at): (_, &[Affine])| read != leaf.target || at == leaf.subscripts;
    if (lanes.is_some() || turned.is_some()) && !nest.exprs.accesses(leaf.body).all(at_point) {
        return Err("lanes that read what their neighbours write");
    }
    if leaf.aligned && (leaf.reduction.is_some() || leaf.reads(&nest.exprs, leaf.target)) {
        return Err("aligned stores of what can't be computed twice");
    }
    leaf.panels.as_ref().map_or(Ok(()), |panels| packed(nest, kernel, leaf, panels))
}

/// Checks leaves that run together:
/// - they have the same loops, with the lanes innermost;
/// - what one reads of another is a value at the same point, which may be in a register;
/// - rows that are taken at a time only add to what they share, and no reduction runs over them;
/// - what is not stored is local, and no other leaf of the kernel reads it.
pub fn together(nest: &Nest, kernel: usize, together: &Together) -> Result<(), &'static str> {
    let Together { leaves, rows, unstored } = together;
    let variables = |leaf: &Leaf| leaf.loops.iter().map(|l| l.variable).collect::<Vec<_>>();
    if leaves.windows(2).any(|pair| variables(&pair[0]) != variables(&pair[1])) {
        return Err("leaves together that have different loops");
    }
    if leaves.iter().any(|leaf| leaf.lanes().is_none_or(|lanes| lanes + 1 != leaf.loops.len())) {
        return Err("leaves together whose lanes are not innermost");
    }
    let at_point = |leaf: &Leaf, (read, at): (TensorId, &[Affine])| {
        let other = |maker: &&Leaf| maker.target == read && leaf.target != read;
        leaves.iter().find(other).is_none_or(|maker| maker.reduction.is_none() && maker.subscripts == at)
    };
    if !leaves.iter().all(|leaf| nest.exprs.accesses(leaf.body).all(|access| at_point(leaf, access))) {
        return Err("leaves together that read each other at another point");
    }
    let outer = &leaves[0].loops[..leaves[0].loops.len() - 1];
    let adds = |leaf: &Leaf, row: LoopId| !leaf.shares(row) || leaf.added(&nest.exprs).is_some();
    let fits = |row: &Loop| together.outputs() == outer.len() && leaves.iter().all(|leaf| adds(leaf, row.variable));
    if rows.is_some() && !outer.last().is_some_and(fits) {
        return Err("rows together that do more than add to what they share");
    }
    let own: Vec<*const Leaf> = leaves.iter().map(std::ptr::from_ref).collect();
    let all = super::super::leaves(&nest.kernels[kernel].steps);
    let others = || all.iter().filter(|leaf| !own.contains(&std::ptr::from_ref(**leaf)));
    let is_read = |buffer| others().any(|leaf| leaf.reads(&nest.exprs, buffer));
    match unstored.iter().all(|buffer| nest[*buffer].scope == Scope::Local(kernel) && !is_read(*buffer)) {
        true => Ok(()),
        false => Err("something is read that is not stored"),
    }
}

/// Whether nothing but subscripts and values depends on a variable, and on no division of it.
fn is_even(exprs: &Exprs, leaf: &Leaf, variable: LoopId) -> bool {
    let bounds = leaf.loops.iter().flat_map(|l| l.range.low.iter().chain(&l.range.high));
    let mut decided = bounds.chain(leaf.guards.iter().map(|guard| &guard.affine));
    let straight = |affine: &Affine| !affine.divides_index(variable);
    let mut body = true;
    exprs.visit_affines(leaf.body, &mut |affine| body &= straight(affine));
    let conditions = exprs.index_conditions(leaf.body);
    !decided.any(|affine| affine.uses_index(variable))
        && !conditions.iter().any(|condition| condition.affine.uses_index(variable))
        && leaf.subscripts.iter().all(straight)
        && body
}

/// Checks what a contraction packs:
/// - it has lanes over an output, rows and a reduction whose box is the same for all of them, and no guards;
/// - the parts hold every element that the body reads, each by what it may depend on;
/// - what is read in place are elements that a step from term to term reaches;
/// - the buffer for packed operands is the kernel's own, and holds them.
fn packed(nest: &Nest, kernel: usize, leaf: &Leaf, panels: &Panels) -> Result<(), &'static str> {
    let (Some(lanes), Some((rows, count)), Some(_)) = (leaf.lanes(), leaf.rows(), leaf.reduction) else {
        return Err("panels without lanes, rows and a reduction");
    };
    let terms: Vec<LoopId> = leaf.loops[leaf.outputs..].iter().map(|l| l.variable).collect();
    let (row, lane) = (leaf.loops[rows].variable, leaf.loops[lanes].variable);
    let bounds = leaf.loops[leaf.outputs..].iter().flat_map(|l| l.range.low.iter().chain(&l.range.high));
    let moves = |bound: &Affine| terms.iter().any(|term| bound.uses_index(*term));
    if lanes >= leaf.outputs || !leaf.guards.is_empty() || bounds.into_iter().any(moves) {
        return Err("panels of a reduction that is no box");
    }
    let exprs = &nest.exprs;
    let depends = |parts: &[ExprId], variable: LoopId| parts.iter().any(|part| uses(exprs, *part, variable));
    let Panels { by_row, by_lane, by_term, .. } = panels;
    if depends(by_row, lane) || depends(by_lane, row) || depends(by_term, lane) || depends(by_term, row) {
        return Err("a packed part that depends on what its panel does not");
    }
    if panels.kept.is_some_and(|kept| {
        kept >= leaf.outputs || [by_row, by_term].iter().any(|parts| depends(parts, leaf.loops[kept].variable))
    }) {
        return Err("packed rows are kept for blocks that they depend on");
    }
    let parts: Vec<ExprId> = [by_row, by_lane, by_term].into_iter().flatten().copied().collect();
    if !is_covered(exprs, leaf.body, &parts) {
        return Err("an element that no panel has");
    }
    let straight = |part: &ExprId, along: Option<LoopId>| is_in_place(exprs, *part, &terms, along);
    if panels.rows_in_place && !by_row.iter().all(|part| straight(part, None))
        || panels.lanes_in_place && !by_lane.iter().all(|part| straight(part, Some(lane)))
    {
        return Err("an operand that can't be read in place");
    }
    let room = nest[panels.scratch].extents.first().and_then(Affine::as_constant);
    let fits = room.is_some_and(|room| *room >= Int::from(panels.elements() as i64));
    let whole_tiles = panels.size.rows >= count && panels.size.lanes >= leaf.vectors() * WIDEST_LANES;
    match fits && whole_tiles && nest[panels.scratch].scope == Scope::Local(kernel) {
        true => Ok(()),
        false => Err("packed operands that don't fit their buffer"),
    }
}

fn uses(exprs: &Exprs, part: ExprId, variable: LoopId) -> bool {
    let mut used = false;
    exprs.visit_affines(part, &mut |affine| used |= affine.uses_index(variable));
    used
}

/// Whether every element and index value of an expression stands in one of the parts.
fn is_covered(exprs: &Exprs, id: ExprId, parts: &[ExprId]) -> bool {
    if parts.contains(&id) {
        return true;
    }
    match &exprs[id] {
        Expr::Constant(_) => true,
        Expr::Access(..) | Expr::Index(_) => false,
        Expr::Select(c, ..) => {
            exprs.is_by_values(*c) && exprs.operands(id).iter().all(|operand| is_covered(exprs, *operand, parts))
        }
        Expr::Unary(_, a) => is_covered(exprs, *a, parts),
        Expr::Binary(_, a, b) => is_covered(exprs, *a, parts) && is_covered(exprs, *b, parts),
    }
}

/// Whether a part is an element, the same distance apart from term to term, and from lane to lane one after the other.
fn is_in_place(exprs: &Exprs, part: ExprId, terms: &[LoopId], along: Option<LoopId>) -> bool {
    let Expr::Access(_, subscripts) = &exprs[part] else { return false };
    let even = subscripts.iter().all(|s| terms.iter().all(|term| !s.divides_index(*term)));
    even && along.is_none_or(|lane| crate::program::affine::is_along(subscripts, lane))
}
