//! One member of a group: its leaves.

use super::blocks;
use super::classes;
use super::pieces::{self, Piece};
use super::{Lowering, Making, shape};
use crate::nest::{LAST, Leaf, Loop, Step};
use crate::nested;
use crate::program::expr::{Rewriter, Rules};
use crate::program::{Affine, Constraint, Definition, ExprId, Exprs, Range, TensorId};
use crate::schedule::Member;
use std::collections::HashMap;

/// A definition in the variables of its kernel.
#[derive(Clone)]
pub struct Placed {
    /// What is written.
    pub target: TensorId,
    /// Where, in the variables of the outputs.
    pub subscripts: Vec<Affine>,
    /// The variables: outputs first.
    pub variables: Vec<usize>,
    /// How many are outputs.
    pub outputs: usize,
    /// The bounds of each.
    pub ranges: Vec<Range>,
    /// What restricts the reduction.
    pub conditions: Vec<Constraint>,
    pub reduction: Option<crate::program::ReduceOp>,
    pub accumulate: bool,
    pub body: ExprId,
}

impl Lowering<'_> {
    /// The steps that compute a member in the slab at hand; `part` is where a part of a reduction goes.
    pub fn member(
        &mut self,
        definition: &Definition,
        member: &Member,
        making: &mut Making,
        part: Option<TensorId>,
    ) -> Vec<Step> {
        let placed = self.place(definition, member, making, part);
        let placed = blocks::blocks(self, placed, making);
        let mut steps = Vec::new();
        for class in classes::classes(self, placed, making) {
            steps.extend(self.leaves(&class, making).into_iter().map(Step::Leaf));
        }
        steps
    }

    fn place(
        &mut self,
        definition: &Definition,
        member: &Member,
        making: &mut Making,
        part: Option<TensorId>,
    ) -> Placed {
        let variables: Vec<usize> = definition.indices.iter().map(|index| making.variable(&index.name)).collect();
        let map: Vec<Affine> = variables.iter().map(|&v| Affine::index(v)).collect();
        let mut ranges: Vec<Range> =
            definition.indices.iter().map(|i| i.range.map(|bound| bound.with_indices(&map))).collect();
        if let Some(slab) = member.slab {
            let (tile, last) = (Affine::index(making.tile), Affine::index(LAST));
            let (before, after) = member.halo;
            ranges[slab].low.push(tile.shift(-before));
            ranges[slab].high.push(last.shift(after));
            if making.tile != crate::nest::FIRST {
                ranges[slab].high.push(tile.shift(making.size - 1 + after));
            }
            if before == 0 && ranges[slab].low.len() == 2 && ranges[slab].low[0] == making.kernel.work.low {
                ranges[slab].low.remove(0);
            }
            if after == 0 && ranges[slab].high[0] == making.kernel.work.high {
                ranges[slab].high.remove(0);
            }
        }
        let outputs = definition.rank;
        let target = part.unwrap_or(definition.tensor);
        let own: Vec<Affine> = variables[..outputs].iter().map(|&v| Affine::index(v)).collect();
        let subscripts: Vec<Affine> = match part {
            Some(_) => self.in_parts(definition, &own, Affine::index(crate::nest::ITEM)),
            None => own,
        };
        let subscripts = self.shifted(target, subscripts, making);
        let body = nested::remap(&mut self.nest.frame.exprs, definition.body, &map);
        let body = self.with_locals(body, making);
        Placed {
            target,
            subscripts,
            outputs,
            ranges,
            conditions: definition.conditions.iter().map(|c| c.with_indices(&map)).collect(),
            reduction: definition.reduction,
            accumulate: part.is_some(),
            body: pieces::unmixed(&mut self.nest.frame.exprs, body),
            variables,
        }
    }

    /// Subscripts of local buffers count from the start of the slab.
    fn shifted(&self, buffer: TensorId, mut subscripts: Vec<Affine>, making: &Making) -> Vec<Affine> {
        if let Some((dimension, before)) = self.slabs.get(&buffer) {
            let start = Affine::index(making.tile).shift(-before);
            subscripts[*dimension] = subscripts[*dimension].clone() - start;
        }
        subscripts
    }

    fn with_locals(&mut self, body: ExprId, making: &Making) -> ExprId {
        let mut exprs = std::mem::take(&mut self.nest.frame.exprs);
        let mut rules = Shift { lowering: self, making };
        let body = Rewriter::default().rewrite(&mut exprs, body, &mut rules);
        self.nest.frame.exprs = exprs;
        body
    }

    fn leaves(&mut self, placed: &Placed, making: &mut Making) -> Vec<Leaf> {
        if self.nest.plain {
            return vec![leaf(placed, pieces::whole(placed))];
        }
        let mut leaves = Vec::new();
        for piece in pieces::split(self, placed, making) {
            leaves.push(leaf(placed, piece));
        }
        let number = self.nest.kernels.len();
        for leaf in &mut leaves {
            leaf.shape = shape::choose(self, leaf);
            shape::pack(self, leaf, number);
        }
        leaves
    }
}

/// The loops of a piece.
fn leaf(placed: &Placed, piece: Piece) -> Leaf {
    let ranges = piece.outputs.into_iter().chain(piece.terms);
    let loops = placed.variables.iter().zip(ranges).map(|(&variable, range)| Loop { variable, range });
    Leaf {
        target: placed.target,
        subscripts: piece.subscripts,
        outputs: placed.outputs,
        loops: loops.collect(),
        reduction: placed.reduction,
        accumulate: placed.accumulate,
        guards: piece.guards,
        body: piece.body,
        shape: Default::default(),
    }
}

struct Shift<'a, 'b> {
    lowering: &'a Lowering<'b>,
    making: &'a Making,
}

impl Rules for Shift<'_, '_> {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        let subscripts = self.lowering.shifted(tensor, subscripts, self.making);
        exprs.access(tensor, subscripts)
    }
}

/// Local buffers: the dimension that counts from the start of the slab, and how far before the slab it begins.
pub type Slabs = HashMap<TensorId, (usize, i64)>;
