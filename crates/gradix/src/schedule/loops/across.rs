//! Sums over the slab index, taken row by row.
//!
//! ```text
//! e[i, k] = exp(t[i] - t[k])                       together over i, k:
//! y[i] = sum[k] e[i, k] * x[k]                         e[i, k] = …;  y[i] = sum of e[i, k] * x[k]
//! z[k] = sum[i] e[i, k] * x[i]                         z[k] = z[k] + e[i, k] * x[i]
//! ```
//!
//! Column by column, all rows of `e` would be written and read again. With the sums in memory, each element is used for
//! both while it is in a register. But each addition loads and stores its sum, which pays only where what is added is in
//! a register already: so both ways are candidates, by what the leaves of a tile load and store.

use super::place::Placed;
use super::{Looping, Making, pieces};
use crate::nest::{Buffer, Leaf, Step, Together};
use crate::program::{Affine, BinaryOp, Cond, Constraint, Expr, Exprs, Range, ReduceOp, TensorId};
use crate::schedule::{Group, Member, Sums};
use crate::target::cost;

/// The leaves of a tile with some sums row by row, and what belongs to them.
pub struct Tried {
    pub making: Making,
    pub steps: Vec<Step>,
    buffers: Vec<Buffer>,
    panels: Option<(usize, TensorId)>,
    sums: Sums,
}

impl Looping<'_> {
    /// The leaves of a tile with those sums row by row that make them load and store least, and what was considered, the
    /// best first: of all that could be, one after the other is taken column by column as long as that helps.
    pub fn least(
        &mut self,
        group: &Group,
        part: &dyn Fn(&Member) -> Option<TensorId>,
        making: &Making,
    ) -> (Tried, Vec<Sums>) {
        let mut best = self.with_sums(self.across(group), group, part, making);
        let mut considered = vec![best.sums.clone()];
        loop {
            let without = |left_out: &usize| best.sums.by_rows.iter().copied().filter(|d| d != left_out).collect();
            let fewer: Vec<Vec<usize>> = best.sums.by_rows.iter().map(without).collect();
            let fewer = fewer.into_iter().map(|by_rows| self.with_sums(by_rows, group, part, making));
            let fewer: Vec<Tried> = fewer.collect();
            considered.extend(fewer.iter().map(|tried| tried.sums.clone()));
            match fewer.into_iter().min_by(|a, b| a.sums.loads.total_cmp(&b.sums.loads)) {
                Some(tried) if tried.sums.loads < best.sums.loads => best = tried,
                _ => break,
            }
        }
        considered.sort_by(|a, b| a.loads.total_cmp(&b.loads));
        (self.buffers, self.panels) = (best.buffers.clone(), best.panels);
        (best, considered)
    }

    fn with_sums(
        &mut self,
        by_rows: Vec<usize>,
        group: &Group,
        part: &dyn Fn(&Member) -> Option<TensorId>,
        making: &Making,
    ) -> Tried {
        let (buffers, mut making) = (self.buffers.clone(), making.clone());
        self.panels = None;
        let inside = self.inside(group, part, &by_rows, &mut making);
        let steps = self.steps(inside);
        let loads = self.transfers(&steps);
        let (panels, buffers) = (self.panels, std::mem::replace(&mut self.buffers, buffers));
        Tried { making, steps, buffers, panels, sums: Sums { by_rows, loads } }
    }

    /// What leaves load and store, in vectors that lie side by side.
    fn transfers(&self, steps: &[Step]) -> f64 {
        let each = |step: &Step| match step {
            Step::Tile(tile) => self.transfers(&tile.steps),
            Step::Leaf(leaf) => self.transfers_of(leaf, &[], &[], 1),
            Step::Together(Together { leaves, rows, unstored }) => {
                let made: Vec<TensorId> = leaves.iter().map(|leaf| leaf.target).collect();
                leaves.iter().map(|leaf| self.transfers_of(leaf, &made, unstored, rows.unwrap_or(1))).sum()
            }
        };
        steps.iter().map(each).sum()
    }

    /// Those of a leaf, beside others that make something for it in registers, so many rows at a time.
    fn transfers_of(&self, leaf: &Leaf, made: &[TensorId], unstored: &[TensorId], rows: usize) -> f64 {
        let extents = self.extents(&leaf.loops);
        let points: f64 = extents.iter().product();
        let Some(innermost) = leaf.lanes().or(leaf.loops.len().checked_sub(1)) else { return 0.0 };
        let (lanes, width) = (leaf.loops[innermost].variable, if leaf.lanes().is_some() { self.lanes } else { 1.0 });
        let reads = self.exprs.accesses(leaf.body).filter(|(read, _)| *read != leaf.target && !made.contains(read));
        let loads: f64 = reads.map(|(_, subscripts)| cost::access(subscripts, lanes)).sum();
        let writes = match leaf.added(&self.exprs) {
            // Loaded and stored.
            Some(_) => 2.0 / rows as f64,
            None if unstored.contains(&leaf.target) => 0.0,
            None => 1.0 / extents[leaf.outputs..].iter().product::<f64>().max(1.0),
        };
        points / width * (loads + writes * cost::access(&leaf.subscripts, lanes))
    }

    /// The members whose sums could be taken row by row: those that read a pointwise member at the same place.
    pub fn across(&self, group: &Group) -> Vec<usize> {
        let program = self.program;
        let makes = |tensor: TensorId, subscripts: &[Affine], rank: usize| {
            let maker = group.members.iter().find(|m| program.definitions[m.definition].tensor == tensor);
            let at_point = subscripts.iter().map(Affine::as_index).eq(std::iter::once(rank).chain(0..rank).map(Some));
            at_point
                && maker.is_some_and(|maker| {
                    maker.slab == Some(0) && program.definitions[maker.definition].reduction.is_none()
                })
        };
        let fits = |member: &&Member| {
            let definition = &program.definitions[member.definition];
            let (rank, count) = (definition.rank, definition.indices.len());
            let is_sum = definition.reduction == Some(ReduceOp::Sum) && definition.conditions.is_empty();
            let over_slab = member.slab == Some(rank) && count == rank + 1 && rank > 0;
            let mut accesses = program.exprs.accesses(definition.body);
            is_sum && over_slab && accesses.any(|(tensor, subscripts)| makes(tensor, subscripts, rank))
        };
        match self.plain {
            true => Vec::new(),
            false => group.members.iter().filter(fits).map(|member| member.definition).collect(),
        }
    }

    /// A part of a sum over the slab index, row by row: the slab index is the outermost loop, and each point adds to the
    /// element that its row shares with others.
    pub fn turned(&mut self, mut placed: Placed) -> Placed {
        placed.variables.rotate_right(1);
        placed.ranges.rotate_right(1);
        let (slab, outputs) = placed.variables.split_first().expect("the slab index");
        // What bounds the slab index by outputs is a condition on the point.
        let uses_outputs = |bound: &mut Affine| outputs.iter().any(|v| bound.uses_index(*v));
        let Range { low, high } = &mut placed.ranges[0];
        let low = low.extract_if(.., uses_outputs).map(|b| Constraint::at_most(b, Affine::index(*slab)));
        let high = high.extract_if(.., uses_outputs).map(|b| Constraint::at_most(Affine::index(*slab), b));
        let exprs = &mut self.exprs;
        let held = exprs.access(placed.target, placed.subscripts.clone());
        let mut body = exprs.add(Expr::Binary(BinaryOp::Add, held, placed.body));
        for condition in low.chain(high) {
            let condition = exprs.add_condition(Cond::Index(condition));
            body = exprs.add(Expr::Select(condition, body, held));
        }
        let outputs = placed.variables.len();
        let body = pieces::unmixed(exprs, body);
        Placed { outputs, reduction: None, accumulate: false, body, ..placed }
    }
}

/// Whether a leaf only copies each element onto itself.
pub fn is_idle(exprs: &Exprs, leaf: &Leaf) -> bool {
    matches!(&exprs[leaf.body], Expr::Access(read, at) if *read == leaf.target && *at == leaf.subscripts)
}
