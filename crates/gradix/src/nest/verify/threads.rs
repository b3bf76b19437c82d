//! That threads of an item don't wait for each other inside of a leaf: none touches what another one writes.
//!
//! Two points of a leaf that differ in a loop of threads are given variables of their own. That they write the same element,
//! or that one writes what the other reads, has to be impossible.

use super::super::{Kind, Leaf, LoopId};
use crate::domain::system;
use crate::program::{Affine, Constraint, Exprs};

/// Checks that loops of threads are outputs, that each value has elements of its own, and that it reads no others of the
/// target; `context` holds around the leaf.
pub fn apart(exprs: &Exprs, leaf: &Leaf, context: &[Constraint]) -> Result<(), &'static str> {
    let threads: Vec<usize> = (0..leaf.loops.len()).filter(|p| is_shared(leaf, *p)).collect();
    if threads.iter().any(|position| *position >= leaf.outputs) {
        return Err("a reduction over threads: each may have a part, and leaves of their own add up the parts");
    }
    let read = exprs.accesses(leaf.body).filter(|(buffer, _)| *buffer == leaf.target).map(|(_, at)| at);
    let touched: Vec<&[Affine]> = std::iter::once(leaf.subscripts.as_slice()).chain(read).collect();
    let meet = |position: &usize| touched.iter().any(|at| meets(leaf, *position, at, context));
    if threads.iter().any(meet) { Err("threads that touch what another one writes") } else { Ok(()) }
}

fn is_shared(leaf: &Leaf, position: usize) -> bool {
    matches!(leaf.loops[position].kind, Kind::Threads(_))
}

/// Whether a value of a loop may touch, at these subscripts, what another value of it writes.
fn meets(leaf: &Leaf, position: usize, touched: &[Affine], context: &[Constraint]) -> bool {
    let own = leaf.loops[position].variable;
    let other = Other::of(leaf, context, touched);
    let variable = Affine::index(own);
    let moved = other.moved(&variable);
    let mut rows: Vec<Constraint> = context.iter().cloned().chain(leaf.domain()).collect();
    rows.extend(leaf.domain().iter().map(|row| row.rebuilt(other.moved(&row.affine))));
    let places = leaf.subscripts.iter().zip(touched);
    rows.extend(places.map(|(write, touch)| Constraint::equal(write.clone(), other.moved(touch))));
    let orders = [(variable.clone(), moved.clone()), (moved, variable)];
    orders.into_iter().any(|(low, high)| {
        let apart = Constraint::at_most(low.shift(1), high);
        !system::is_empty(&[rows.as_slice(), &[apart]].concat())
    })
}

/// A second point of a leaf: its loops have variables beyond all others.
struct Other {
    loops: Vec<LoopId>,
    base: usize,
}

impl Other {
    fn of(leaf: &Leaf, context: &[Constraint], touched: &[Affine]) -> Other {
        let mut base = 0;
        let domain = leaf.domain();
        let rows = context.iter().chain(&domain).map(|row| &row.affine);
        let all = rows.chain(&leaf.subscripts).chain(touched);
        all.for_each(|affine| affine.visit_indices(&mut |v| base = base.max(v + 1)));
        Other { loops: leaf.loops.iter().map(|l| l.variable).collect(), base }
    }

    fn moved(&self, affine: &Affine) -> Affine {
        let place = |v: usize| if self.loops.contains(&LoopId(v as u32)) { self.base + v } else { v };
        let map: Vec<Affine> = (0..self.base).map(|v| Affine::index(place(v))).collect();
        affine.with_indices(&map)
    }
}
