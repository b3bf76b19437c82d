//! What the C emitter decides by itself, until the schedule does: each function looks at parts of a nest and returns
//! plain data, which the code that writes C obeys.

use crate::nest::{Leaf, Loop, Nest, Scope, Shape, Step};
use crate::program::affine::is_along;
use crate::program::{Affine, BinaryOp, Expr, ExprId, Exprs, ReduceOp, TensorId};

/// The positions of two loops of a leaf: along them the target and what is read have their neighbours.
pub struct Turn {
    pub along_target: usize,
    pub along_source: usize,
}

/// Whether all that a leaf reads lies across its target.
pub fn turn(nest: &Nest, leaf: &Leaf) -> Option<Turn> {
    let exprs = &nest.exprs;
    let is_copy = matches!(exprs[leaf.body], Expr::Access(..));
    if !leaf.guards.is_empty() || !is_copy && leaf.shape.lanes.is_none() {
        return None;
    }
    let variable = |position: usize| leaf.loops[position].variable;
    let along_target = (0..leaf.outputs).find(|p| is_along(&leaf.subscripts, variable(*p)))?;
    let across = |p: &usize| *p != along_target && is_read_along(exprs, leaf.body, variable(*p));
    let along_source = (0..leaf.outputs).find(across)?;
    let Shape { lanes, rows, panels, .. } = &leaf.shape;
    let in_lanes = *lanes == Some(along_source);
    if leaf.reduction.is_some() && (leaf.accumulate || rows.is_some() || panels.is_some() || !in_lanes) {
        return None;
    }
    let pair = [along_target, along_source].map(variable);
    let bounds = leaf.loops.iter().flat_map(|l| l.range.low.iter().chain(&l.range.high));
    let free = |affine: &Affine| pair.iter().all(|&v| !affine.uses_index(v));
    let mut fits = bounds.into_iter().all(free) && leaf.subscripts.iter().all(Affine::is_straight);
    exprs.visit_affines(leaf.body, &mut |affine| fits &= affine.is_straight());
    fits &= exprs.index_conditions(leaf.body).iter().all(|c| free(&c.affine));
    fits.then_some(Turn { along_target, along_source })
}

/// Whether some elements are read along a variable, and all others don't depend on it.
fn is_read_along(exprs: &Exprs, body: ExprId, variable: usize) -> bool {
    let depends = |subscripts: &[Affine]| subscripts.iter().any(|s| s.uses_index(variable));
    let mut reads = exprs.accesses(body).filter(|(_, subscripts)| depends(subscripts)).peekable();
    reads.peek().is_some() && reads.all(|(_, subscripts)| is_along(subscripts, variable))
}

/// Which of some leaves has its stores aligned, if it makes no difference that some elements are computed twice.
pub fn aligned<'l>(nest: &Nest, leaves: &[&'l Leaf], lanes: &Loop) -> Option<&'l Leaf> {
    let exprs = &nest.exprs;
    let reads_itself = |leaf: &Leaf| exprs.accesses(leaf.body).any(|(read, _)| read == leaf.target);
    let fits = leaves.iter().all(|leaf| leaf.reduction.is_none() && !reads_itself(leaf));
    let is_kept = |leaf: &&&Leaf| !matches!(nest[leaf.target].scope, Scope::Local(_));
    let leaf = leaves.iter().find(is_kept).or(leaves.first()).copied().filter(|_| fits)?;
    is_along(&leaf.subscripts, lanes.variable).then_some(leaf)
}

/// How leaves run together.
pub struct Together {
    /// How many loops are around all accumulators.
    pub outputs: usize,
    /// The position of the innermost loop around the lanes, where several of its values are taken at a time, and how many.
    pub rows: Option<(usize, usize)>,
    /// How many vectors are taken at a time.
    pub vectors: usize,
    /// Results that nothing else reads: they stay in registers.
    pub unstored: Vec<TensorId>,
    /// What each leaf does at a point.
    pub roles: Vec<Role>,
}

/// What one of several leaves does at a point.
#[derive(Clone, Copy, PartialEq)]
pub enum Role {
    /// Stores a value.
    Store,
    /// Combines a value with its accumulator.
    Reduce(ReduceOp),
    /// Adds a term to its target, or with `true` takes it from there, once for all rows.
    Add(ExprId, bool),
}

/// Vectors that are taken at a time where something is reduced, so that sums don't wait for each other.
const VECTORS: usize = 2;
/// Rows that are taken at a time where something adds to one element for each of them.
const ROWS: usize = 4;

/// How leaves of a kernel with these steps run together.
pub fn together(nest: &Nest, leaves: &[Leaf], steps: &[Step]) -> Together {
    let exprs = &nest.exprs;
    let outer = &leaves[0].loops[..leaves[0].loops.len() - 1];
    let reductions = || leaves.iter().filter(|leaf| leaf.reduction.is_some());
    let outputs = reductions().map(|leaf| leaf.outputs).min().unwrap_or(outer.len());
    // What rows add to one after the other is loaded and stored once for several of them.
    let shared = |row: &Loop| leaves.iter().any(|leaf| is_shared(leaf, row.variable));
    let known = |row: &Loop| leaves.iter().all(|leaf| !is_shared(leaf, row.variable) || adds(exprs, leaf).is_some());
    let row = outer.last().filter(|row| outputs == outer.len() && shared(row) && known(row));
    let role = |leaf: &Leaf| match (leaf.reduction, row, adds(exprs, leaf)) {
        (Some(op), ..) => Role::Reduce(op),
        (None, Some(row), Some((term, takes))) if is_shared(leaf, row.variable) => Role::Add(term, takes),
        (None, ..) => Role::Store,
    };
    Together {
        outputs,
        rows: row.map(|_| (outer.len() - 1, ROWS)),
        vectors: if row.is_none() && reductions().next().is_some() { VECTORS } else { 1 },
        unstored: unstored(nest, leaves, steps),
        roles: leaves.iter().map(role).collect(),
    }
}

/// The local results of leaves that run together which no other leaf of the kernel reads.
fn unstored(nest: &Nest, leaves: &[Leaf], all: &[Step]) -> Vec<TensorId> {
    let is_local = |target: TensorId| matches!(nest[target].scope, Scope::Local(_));
    let made = leaves.iter().filter(|leaf| leaf.reduction.is_none()).map(|leaf| leaf.target);
    let mut others = Vec::new();
    leaves_but(all, leaves, &mut others);
    let reads = |leaf: &&Leaf, target| nest.exprs.accesses(leaf.body).any(|(tensor, _)| tensor == target);
    made.filter(|target| is_local(*target) && !others.iter().any(|leaf| reads(leaf, *target))).collect()
}

/// All leaves but some that run together.
fn leaves_but<'a>(steps: &'a [Step], but: &[Leaf], found: &mut Vec<&'a Leaf>) {
    for step in steps {
        match step {
            Step::Leaf(leaf) => found.push(leaf),
            Step::Together(leaves) if std::ptr::eq(leaves.as_slice(), but) => {}
            Step::Together(leaves) => found.extend(leaves),
            Step::Tile(tile) => leaves_but(&tile.steps, but, found),
        }
    }
}

/// Whether all values of a variable write to the same element.
fn is_shared(leaf: &Leaf, variable: usize) -> bool {
    leaf.reduction.is_none() && !leaf.subscripts.iter().any(|subscript| subscript.uses_index(variable))
}

/// What a pointwise leaf adds to its target or, with `true`, takes from it.
fn adds(exprs: &Exprs, leaf: &Leaf) -> Option<(ExprId, bool)> {
    let is_held =
        |id: ExprId| matches!(&exprs[id], Expr::Access(read, at) if *read == leaf.target && *at == leaf.subscripts);
    let reads_held = |id: ExprId| exprs.accesses(id).any(|(read, _)| read == leaf.target);
    match exprs[leaf.body] {
        Expr::Binary(BinaryOp::Add, held, term) if is_held(held) && !reads_held(term) => Some((term, false)),
        Expr::Binary(BinaryOp::Add, term, held) if is_held(held) && !reads_held(term) => Some((term, false)),
        Expr::Binary(BinaryOp::Sub, held, term) if is_held(held) && !reads_held(term) => Some((term, true)),
        _ => None,
    }
}

/// The operand in lanes whose next block is brought closer while one is used, and the position of the loop that leads to
/// it: an operand that is one block of memory in place.
pub struct Ahead {
    pub operand: ExprId,
    pub next: usize,
}

/// Whether a contraction brings closer what it reads next.
pub fn ahead(nest: &Nest, leaf: &Leaf) -> Option<Ahead> {
    let (panels, (rows, _), lanes) = (leaf.shape.panels.as_ref()?, leaf.shape.rows?, leaf.shape.lanes?);
    let others = (0..leaf.outputs).rev().find(|position| *position != rows && *position != lanes);
    let next = panels.kept.or(others)?;
    let [operand] = *panels.by_lane.as_slice() else { return None };
    let Expr::Access(_, subscripts) = &nest.exprs[operand] else { return None };
    let uses = |position: usize| subscripts.iter().any(|s| s.uses_index(leaf.loops[position].variable));
    let fits = panels.lanes_in_place && leaf.loops.len() - leaf.outputs == 1 && uses(next) && !uses(rows);
    fits.then_some(Ahead { operand, next })
}
