//! What is written and never read: the half of a local buffer that lies beyond the diagonal, and the like.
//!
//! ```text
//! e[i, j] = if j <= i then … else 0          the zeros are written only if
//! y[i] = sum[j in 0..=i] e[i, j]             something reads them; nothing does
//! ```

use crate::nest::{Leaf, Step};
use crate::program::{Affine, Constraint, Expr, Exprs, TensorId};
use crate::system;

/// The steps without those that fill a part of a local buffer which no other step reads. `is_local` tells which buffers
/// nothing but these steps touch; `context` is what holds for the variables.
pub fn drop_unread(
    exprs: &Exprs,
    steps: Vec<Step>,
    is_local: &dyn Fn(TensorId) -> bool,
    context: &[Constraint],
) -> Vec<Step> {
    let all: Vec<Leaf> = steps.iter().filter_map(leaf).cloned().collect();
    let is_read = |filled: &Leaf| all.iter().any(|reader| reads(exprs, reader, filled, context));
    let is_idle = |step: &Step| leaf(step).is_some_and(|l| fills(exprs, l) && is_local(l.target) && !is_read(l));
    steps.into_iter().filter(|step| !is_idle(step)).collect()
}

fn leaf(step: &Step) -> Option<&Leaf> {
    match step {
        Step::Leaf(leaf) => Some(leaf),
        Step::Tile(_) | Step::Together(_) => None,
    }
}

fn fills(exprs: &Exprs, leaf: &Leaf) -> bool {
    leaf.reduction.is_none() && matches!(exprs[leaf.body], Expr::Constant(_))
}

/// Whether a leaf may read an element that another one writes.
fn reads(exprs: &Exprs, reader: &Leaf, filled: &Leaf, context: &[Constraint]) -> bool {
    let shared = |v: usize| filled.loops.iter().any(|l| l.variable == v);
    let accesses = exprs.accesses(reader.body).filter(|(tensor, _)| *tensor == filled.target);
    accesses.into_iter().any(|(_, subscripts)| {
        let meet = |(a, b): (&Affine, &Affine)| Constraint::zero(a.clone() - b.clone());
        let same = subscripts.iter().zip(&filled.subscripts).map(meet);
        let rows: Vec<Constraint> =
            context.iter().cloned().chain(filled.domain()).chain(reader.domain()).chain(same).collect();
        reader.loops.iter().any(|l| shared(l.variable)) || !system::is_empty(&rows)
    })
}
