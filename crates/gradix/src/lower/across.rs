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

use super::leaves::Placed;
use super::{Lowering, Making};
use crate::nest::{ITEM, Leaf, Step};
use crate::nested;
use crate::program::{Affine, BinaryOp, Cond, Constraint, Definition, Expr, Exprs, Range, ReduceOp, TensorId};
use crate::schedule::{Group, Member};

impl Lowering<'_> {
    /// The members whose sums could be taken row by row: those that read a pointwise member at the same place.
    pub fn across(&self, group: &Group) -> Vec<usize> {
        let program = self.program;
        let makes = |tensor: TensorId, subscripts: &[Affine], slab: usize| {
            let maker = group.members.iter().find(|m| program.definitions[m.definition].tensor == tensor);
            maker.is_some_and(|maker| {
                let made = &program.definitions[maker.definition];
                let order = std::iter::once(slab).chain(0..made.rank - 1);
                maker.slab == Some(0)
                    && made.reduction.is_none()
                    && subscripts.iter().map(Affine::as_index).eq(order.map(Some))
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
        match self.nest.plain {
            true => Vec::new(),
            false => group.members.iter().filter(fits).map(|member| member.definition).collect(),
        }
    }

    /// A part of a sum over the slab index, row by row: the slab index is the outermost loop, and each point adds to the
    /// element that its row shares with others.
    pub fn place_across(
        &mut self,
        definition: &Definition,
        member: &Member,
        making: &mut Making,
        part: TensorId,
    ) -> Placed {
        let variables: Vec<usize> = definition.indices.iter().map(|index| making.variable(&index.name)).collect();
        let map: Vec<Affine> = variables.iter().map(|&v| Affine::index(v)).collect();
        let mut ranges: Vec<Range> =
            definition.indices.iter().map(|i| i.range.map(|bound| bound.with_indices(&map))).collect();
        let (slab, rank) = (variables[definition.rank], definition.rank);
        making.within_slab(&mut ranges[rank], member);
        // What bounds the slab index by outputs is a condition on the point.
        let uses_outputs = |bound: &Affine| variables[..rank].iter().any(|v| bound.uses_index(*v));
        let Range { low, high } = &mut ranges[rank];
        let low = low.extract_if(.., |bound| uses_outputs(bound)).map(|b| Constraint::at_most(b, Affine::index(slab)));
        let high =
            high.extract_if(.., |bound| uses_outputs(bound)).map(|b| Constraint::at_most(Affine::index(slab), b));
        let conditions: Vec<Constraint> = low.chain(high).collect();
        let own: Vec<Affine> = map[..rank].to_vec();
        let subscripts = self.in_parts(definition, &own, Affine::index(ITEM));
        let exprs = &mut self.nest.frame.exprs;
        let term = nested::remap(exprs, definition.body, &map);
        let held = exprs.access(part, subscripts.clone());
        let mut body = exprs.add(Expr::Binary(BinaryOp::Add, held, term));
        for condition in conditions {
            let condition = exprs.add_condition(Cond::Index(condition));
            body = exprs.add(Expr::Select(condition, body, held));
        }
        let last_first = |mut all: Vec<_>| {
            all.rotate_right(1);
            all
        };
        let variables = last_first(variables.into_iter().zip(ranges).collect());
        let (variables, ranges): (Vec<usize>, Vec<Range>) = variables.into_iter().unzip();
        let (outputs, conditions) = (variables.len(), Vec::new());
        Placed {
            target: part,
            subscripts,
            outputs,
            ranges,
            conditions,
            reduction: None,
            accumulate: false,
            body: super::pieces::unmixed(&mut self.nest.frame.exprs, body),
            variables,
        }
    }
}

/// A buffer that some step adds to without making what is added: then there is nothing to gain from going row by row.
pub fn alone<'a>(exprs: &Exprs, steps: &[Step], parts: &'a [(usize, TensorId)]) -> Option<&'a (usize, TensorId)> {
    let is_alone = |step: &Step, part: TensorId| match step {
        Step::Leaf(leaf) => leaf.target == part,
        Step::Together(leaves) => {
            let makes = |read: TensorId| read != part && leaves.iter().any(|leaf| leaf.target == read);
            let idle = |leaf: &Leaf| !exprs.accesses(leaf.body).any(|(read, _)| makes(read));
            leaves.iter().any(|leaf| leaf.target == part && idle(leaf))
        }
        Step::Tile(_) => false,
    };
    parts.iter().find(|(_, part)| steps.iter().any(|step| is_alone(step, *part)))
}

/// Whether a leaf only copies each element onto itself.
pub fn is_idle(exprs: &Exprs, step: &Step) -> bool {
    let Step::Leaf(leaf) = step else { return false };
    matches!(&exprs[leaf.body], Expr::Access(read, at) if *read == leaf.target && *at == leaf.subscripts)
}
