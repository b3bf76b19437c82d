//! How results leave the registers: which stores are aligned, what is turned first, what need not be stored at all, and how
//! many rows and vectors leaves take at a time that run together.

use super::Looping;
use crate::nest::{Kind, Leaf, Loop, LoopId, Scope, Step, Together, Turn};
use crate::program::affine::is_along;
use crate::program::{Affine, Expr, ExprId, Exprs, TensorId};
use crate::target::cost;

impl Looping<'_> {
    /// The steps of leaves, those together that run together. They are all that touch local results.
    pub fn steps(&self, fused: Vec<Vec<Leaf>>) -> Vec<Step> {
        let mut steps = Vec::new();
        for position in 0..fused.len() {
            let mut leaves = fused[position].clone();
            let others = fused.iter().enumerate().filter(|(other, _)| *other != position).flat_map(|(_, of)| of);
            self.align(&mut leaves);
            steps.push(match leaves.len() {
                1 => {
                    let mut leaf = leaves.remove(0);
                    leaf.turn = self.turn(&leaf);
                    leaf.aligned &= leaf.turn.is_none();
                    Step::Leaf(leaf)
                }
                _ => Step::Together(self.together(leaves, others)),
            });
        }
        steps
    }

    /// Whether all that a leaf reads lies across its target.
    fn turn(&self, leaf: &Leaf) -> Option<Turn> {
        let (exprs, lanes) = (&self.exprs, leaf.lanes());
        let is_copy = matches!(exprs[leaf.body], Expr::Access(..));
        if !leaf.guards.is_empty() || !is_copy && lanes.is_none() {
            return None;
        }
        let variable = |position: usize| leaf.loops[position].variable;
        let along_target = (0..leaf.outputs).find(|p| is_along(&leaf.subscripts, variable(*p)))?;
        let across = |p: &usize| *p != along_target && is_read_along(exprs, leaf.body, variable(*p));
        let along_source = (0..leaf.outputs).find(across)?;
        let special = leaf.accumulate || leaf.rows().is_some() || leaf.panels.is_some() || lanes != Some(along_source);
        let pair = [along_target, along_source].map(variable);
        let bounds = leaf.loops.iter().flat_map(|l| l.range.low.iter().chain(&l.range.high));
        let free = |affine: &Affine| pair.iter().all(|&v| !affine.uses_index(v));
        let is_ring = |buffer: TensorId| self.slabs.get(&buffer).is_some_and(|slab| slab.ring.is_some());
        let mut fits = bounds.into_iter().all(free) && leaf.subscripts.iter().all(Affine::is_straight);
        exprs.visit_affines(leaf.body, &mut |affine| fits &= affine.is_straight());
        fits &= exprs.index_conditions(leaf.body).iter().all(|c| free(&c.affine));
        fits &= !is_ring(leaf.target) && !exprs.accesses(leaf.body).any(|(read, _)| is_ring(read));
        fits &= leaf.reduction.is_none() || !special;
        fits.then_some(Turn { along_target, along_source })
    }

    /// Has the stores of one of some leaves aligned, if it makes no difference that some elements are computed twice: what is
    /// kept rather than what is local.
    fn align(&self, leaves: &mut [Leaf]) {
        let pointwise = |leaf: &Leaf| leaf.reduction.is_none();
        if leaves.iter().any(|leaf| pointwise(leaf) && leaf.reads(&self.exprs, leaf.target)) {
            return;
        }
        let kept = leaves.iter().position(|leaf| pointwise(leaf) && !self.is_local(leaf.target));
        let Some(leaf) = kept.or(leaves.iter().position(pointwise)).map(|position| &mut leaves[position]) else {
            return;
        };
        let lanes = leaf.lanes().map(|lanes| leaf.loops[lanes].variable);
        leaf.aligned = lanes.is_some_and(|lanes| is_along(&leaf.subscripts, lanes));
    }

    fn is_local(&self, buffer: TensorId) -> bool {
        matches!(self.buffers[buffer.0 as usize].scope, Scope::Local(_))
    }

    /// How leaves run together, beside others of their kernel.
    fn together<'l>(&self, mut leaves: Vec<Leaf>, others: impl Iterator<Item = &'l Leaf> + Clone) -> Together {
        let reductions = || leaves.iter().filter(|leaf| leaf.reduction.is_some());
        let outer = leaves[0].loops.len() - 1;
        let around = reductions().map(|leaf| leaf.outputs).min().unwrap_or(outer) == outer;
        // What rows add to one after the other is loaded and stored once for several of them.
        let row = leaves[0].loops[..outer].last().filter(|_| around).map(|l| l.variable);
        let shares = |row: &LoopId| leaves.iter().any(|leaf| leaf.shares(*row));
        let known = |row: &LoopId| leaves.iter().all(|leaf| !leaf.shares(*row) || leaf.added(&self.exprs).is_some());
        let rows = row.filter(|row| shares(row) && known(row)).map(|_| cost::TOGETHER_ROWS);
        let vectors = if rows.is_none() && reductions().next().is_some() { cost::TOGETHER_VECTORS } else { 1 };
        let made = leaves.iter().filter(|leaf| leaf.reduction.is_none()).map(|leaf| leaf.target);
        let unread =
            |target: &TensorId| self.is_local(*target) && !others.clone().any(|leaf| leaf.reads(&self.exprs, *target));
        let unstored = made.filter(unread).collect();
        let lanes = leaves.iter_mut().filter_map(|leaf| leaf.loops.last_mut());
        lanes.for_each(|l: &mut Loop| l.kind = Kind::Lanes(vectors));
        Together { leaves, rows, unstored }
    }
}

/// Whether some elements are read along a variable, and all others don't depend on it.
fn is_read_along(exprs: &Exprs, body: ExprId, variable: LoopId) -> bool {
    let depends = |subscripts: &[Affine]| subscripts.iter().any(|s| s.uses_index(variable));
    let mut reads = exprs.accesses(body).filter(|(_, subscripts)| depends(subscripts)).peekable();
    reads.peek().is_some() && reads.all(|(_, subscripts)| is_along(subscripts, variable))
}
