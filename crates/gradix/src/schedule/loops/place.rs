//! One member of a group: its leaves.

use super::blocks;
use super::classes;
use super::pieces::{self, Piece};
use super::{Looping, Making, masks, pack, shape, stairs, turns};
use crate::lift;
use crate::nest::{FIRST, Kind, LAST, Leaf, Loop, LoopId, Work};
use crate::program::{Affine, Constraint, Definition, ExprId, Range, TensorId};
use crate::schedule::Member;

/// A definition in the variables of its kernel.
#[derive(Clone)]
pub struct Placed {
    /// What is written.
    pub target: TensorId,
    /// Where, in the variables of the outputs.
    pub subscripts: Vec<Affine>,
    /// The variables: outputs first.
    pub variables: Vec<LoopId>,
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

impl Placed {
    /// Its loops with these ranges.
    pub fn loops(&self, ranges: impl Iterator<Item = Range>) -> Vec<Loop> {
        self.variables
            .iter()
            .zip(ranges)
            .map(|(&variable, range)| Loop { variable, range, kind: Kind::Serial })
            .collect()
    }
}

impl Looping<'_> {
    /// The leaves of a definition in the variables of its kernel.
    pub fn leaves_of(&mut self, placed: Placed, making: &mut Making) -> Vec<Leaf> {
        let placed = blocks::blocks(self, placed, making);
        let turns = if self.plain { vec![placed] } else { turns::turns(self, placed, making) };
        let classes: Vec<Placed> = turns.into_iter().flat_map(|turn| classes::classes(self, turn, making)).collect();
        classes.iter().flat_map(|class| self.leaves(class, making)).collect()
    }

    /// A member of a group in the variables of its kernel; `part` is where a part of a reduction goes.
    pub fn place(
        &mut self,
        definition: &Definition,
        member: &Member,
        making: &mut Making,
        part: Option<TensorId>,
    ) -> Placed {
        let variables: Vec<LoopId> = definition.indices.iter().map(|index| making.variable(&index.name)).collect();
        let map: Vec<Affine> = variables.iter().map(|&v| Affine::index(v)).collect();
        let mut ranges: Vec<Range> =
            definition.indices.iter().map(|i| i.range.map(|bound| bound.with_indices(&map))).collect();
        if let Some(slab) = member.slab {
            making.within_slab(&mut ranges[slab], member);
        }
        making.within_grid(&mut ranges, member);
        let outputs = definition.rank;
        let target = part.unwrap_or(definition.tensor);
        let own: Vec<Affine> = variables[..outputs].iter().map(|&v| Affine::index(v)).collect();
        let subscripts: Vec<Affine> = match part {
            Some(_) => self.in_parts(definition, &own, Affine::index(crate::nest::ITEM)),
            None => own,
        };
        let body = lift::remap(&mut self.exprs, definition.body, &map);
        Placed {
            target,
            subscripts,
            outputs,
            ranges,
            conditions: definition.conditions.iter().map(|c| c.with_indices(&map)).collect(),
            reduction: definition.reduction,
            accumulate: part.is_some(),
            body: pieces::unmixed(&mut self.exprs, body),
            variables,
        }
    }

    /// Whether the place of an element in its buffer depends on a quotient of a variable: by a subscript, or around a ring.
    pub fn divides(&self, buffer: TensorId, subscripts: &[Affine], variable: LoopId) -> bool {
        let slab = self.slabs.get(&buffer).filter(|slab| slab.ring.is_some());
        subscripts.iter().any(|subscript| subscript.divides_index(variable))
            || slab.is_some_and(|slab| subscripts[slab.dimension].uses_index(variable))
    }

    fn leaves(&mut self, placed: &Placed, making: &mut Making) -> Vec<Leaf> {
        if self.plain {
            return vec![leaf(placed, pieces::whole(placed))];
        }
        let pieces = pieces::split(self, placed, making);
        let mut leaves: Vec<Leaf> =
            pieces.into_iter().flat_map(|piece| stairs::stairs(self, leaf(placed, piece), making)).collect();
        let number = self.kernels.len();
        for leaf in &mut leaves {
            shape::choose(self, leaf);
            masks::mask(self, leaf, making);
            pack::pack(self, leaf, number);
        }
        leaves
    }
}

impl Making {
    /// Restricts the further indices of the grid to what the item covers.
    pub fn within_grid(&self, ranges: &mut [Range], member: &Member) {
        for (&index, work) in member.grid.iter().zip(&self.kernel.work[1..]) {
            ranges[index] = Range { low: vec![Affine::index(work.first)], high: vec![Affine::index(work.last)] };
        }
    }

    /// Restricts the slab index to the slab at hand and what is needed before and after it.
    pub fn within_slab(&self, range: &mut Range, member: &Member) {
        let ((before, after), ahead) = (member.halo, member.halo.1 + member.ahead);
        let Work { low, high, .. } = &self.kernel.work[0];
        let (first, tile, last) = (Affine::index(FIRST), Affine::index(self.tile), Affine::index(LAST));
        if before == 0 && range.low.len() == 1 && range.low[0] == *low {
            range.low.clear();
        }
        if after == 0 && range.high[0] == *high {
            range.high.remove(0);
        }
        match self.rolling {
            true => range.low.extend([first.shift(-before), tile.shift(ahead)]),
            false => range.low.push(tile.shift(-before)),
        }
        range.high.push(last.shift(after));
        if self.tile != FIRST {
            range.high.push(tile.shift(self.size - 1 + ahead));
        }
    }
}

/// The loops of a piece.
fn leaf(placed: &Placed, piece: Piece) -> Leaf {
    let loops = placed.loops(piece.outputs.into_iter().chain(piece.terms));
    let leaf = Leaf::pointwise(placed.target, piece.subscripts, loops, piece.body);
    let Placed { outputs, accumulate, .. } = *placed;
    Leaf { outputs, reduction: piece.reduction, accumulate, guards: piece.guards, ..leaf }
}
