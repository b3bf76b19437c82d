//! Sums over the slab index, taken row by row.
//!
//! ```text
//! e[i, k] = exp(t[i] - t[k])                       together over i, k:
//! y[i] = sum[k] e[i, k] * x[k]                         e[i, k] = …;  y[i] = sum of e[i, k] * x[k]
//! z[k] = sum[i] e[i, k] * x[i]                         z[k] = z[k] + e[i, k] * x[i]
//! ```
//!
//! Column by column, all rows of `e` would be written and read again. With the sums in memory, each element is used for
//! both while it is in a register.

use super::place::Placed;
use super::{Looping, pieces};
use crate::nest::Leaf;
use crate::program::{Affine, BinaryOp, Cond, Constraint, Expr, Exprs, Range, ReduceOp, TensorId};
use crate::schedule::{Group, Member};

impl Looping<'_> {
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

/// A part that some leaf adds to away from what is added: then there is nothing to gain from going row by row.
pub fn alone<'a>(exprs: &Exprs, fused: &[Vec<Leaf>], parts: &'a [(usize, TensorId)]) -> Option<&'a (usize, TensorId)> {
    let is_alone = |leaves: &Vec<Leaf>, part: TensorId| {
        let makes = |read: TensorId| read != part && leaves.iter().any(|leaf| leaf.target == read);
        let idle = |leaf: &Leaf| !exprs.accesses(leaf.body).any(|(read, _)| makes(read));
        leaves.iter().any(|leaf| leaf.target == part && idle(leaf))
    };
    parts.iter().find(|(_, part)| fused.iter().any(|leaves| is_alone(leaves, *part)))
}

/// Whether a leaf only copies each element onto itself.
pub fn is_idle(exprs: &Exprs, leaf: &Leaf) -> bool {
    matches!(&exprs[leaf.body], Expr::Access(read, at) if *read == leaf.target && *at == leaf.subscripts)
}
