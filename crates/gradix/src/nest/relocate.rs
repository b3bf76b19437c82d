//! Steps of a kernel with other sizes, variables and buffers.

use super::{Leaf, LoopId, Panels, Step};
use crate::program::expr::{Rewriter, Rules};
use crate::program::{Affine, ExprId, Exprs, Range, TensorId};

/// What becomes of the parts of steps.
pub trait Relocation {
    /// An index expression.
    fn affine(&self, affine: &Affine) -> Affine;
    /// A variable that a loop binds.
    fn variable(&self, variable: LoopId) -> LoopId;
    /// A buffer, and the subscripts of an element there; these are moved already.
    fn place(&self, buffer: TensorId, subscripts: &mut Vec<Affine>) -> TensorId;
}

/// Relocates steps, whose expressions are in `exprs`.
pub fn relocate(steps: &mut [Step], exprs: &mut Exprs, to: &dyn Relocation) {
    for step in steps {
        match step {
            Step::Leaf(leaf) => relocate_leaf(leaf, exprs, to),
            Step::Together(together) => {
                let place = |buffer: &mut TensorId| *buffer = to.place(*buffer, &mut Vec::new());
                together.unstored.iter_mut().for_each(place);
                together.leaves.iter_mut().for_each(|leaf| relocate_leaf(leaf, exprs, to));
            }
            Step::Tile(tile) => {
                (tile.variable, tile.range) = (to.variable(tile.variable), range(&tile.range, to));
                relocate(&mut tile.steps, exprs, to);
            }
        }
    }
}

fn relocate_leaf(leaf: &mut Leaf, exprs: &mut Exprs, to: &dyn Relocation) {
    leaf.subscripts = leaf.subscripts.iter().map(|subscript| to.affine(subscript)).collect();
    leaf.target = to.place(leaf.target, &mut leaf.subscripts);
    for one in &mut leaf.loops {
        (one.variable, one.range) = (to.variable(one.variable), range(&one.range, to));
    }
    leaf.guards.iter_mut().for_each(|guard| *guard = guard.rebuilt(to.affine(&guard.affine)));
    let mut rewriter = Rewriter::default();
    let mut moved = |id: &mut ExprId| *id = rewriter.rewrite(exprs, *id, &mut Moved(to));
    moved(&mut leaf.body);
    if let Some(Panels { scratch, by_row, by_lane, by_term, .. }) = &mut leaf.panels {
        *scratch = to.place(*scratch, &mut Vec::new());
        [by_row, by_lane, by_term].into_iter().flatten().for_each(moved);
    }
}

fn range(range: &Range, to: &dyn Relocation) -> Range {
    range.map(|bound| to.affine(bound))
}

struct Moved<'a>(&'a dyn Relocation);

impl Rules for Moved<'_> {
    fn affine(&mut self, affine: &Affine) -> Affine {
        self.0.affine(affine)
    }

    fn access(&mut self, exprs: &mut Exprs, buffer: TensorId, mut subscripts: Vec<Affine>) -> ExprId {
        let buffer = self.0.place(buffer, &mut subscripts);
        exprs.access(buffer, subscripts)
    }
}
