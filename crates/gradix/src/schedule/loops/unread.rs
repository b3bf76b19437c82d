//! What is written and never read: the half of a local buffer that lies beyond the diagonal, and the like.
//!
//! ```text
//! e[i, j] = if j <= i then … else 0          the zeros are written only if
//! y[i] = sum[j in 0..=i] e[i, j]             something reads them; nothing does
//! ```

use super::Making;
use crate::domain::{guard, system};
use crate::nest::{Leaf, LoopId};
use crate::program::{Affine, Constraint, Expr, Exprs, TensorId};
use crate::schedule::Slab;
use std::collections::BTreeMap;

/// The leaves without those that fill a part of a local buffer which no other one reads. `is_local` tells which buffers
/// nothing but these leaves touch. What is written around a ring at one value of the variable of tiles may be read at
/// another one.
pub fn drop_unread(
    exprs: &mut Exprs,
    leaves: Vec<Leaf>,
    is_local: &dyn Fn(TensorId) -> bool,
    slabs: &BTreeMap<TensorId, Slab>,
    making: &Making,
) -> Vec<Leaf> {
    if !leaves.iter().any(|leaf| fills(exprs, leaf) && is_local(leaf.target)) {
        return leaves;
    }
    let readings: Vec<Reading> = leaves.iter().flat_map(|leaf| readings(exprs, leaf, is_local)).collect();
    let is_read = |filled: &Leaf| readings.iter().any(|reading| reading.meets(filled, slabs, making));
    let is_idle = |leaf: &Leaf| fills(exprs, leaf) && is_local(leaf.target) && !is_read(leaf);
    leaves.into_iter().filter(|leaf| !is_idle(leaf)).collect()
}

fn fills(exprs: &Exprs, leaf: &Leaf) -> bool {
    leaf.reduction.is_none() && matches!(exprs[leaf.body], Expr::Constant(_))
}

/// An element of a local buffer that is read, and where.
struct Reading {
    tensor: TensorId,
    subscripts: Vec<Affine>,
    variables: Vec<LoopId>,
    domain: Vec<Constraint>,
    guards: Vec<guard::Guard>,
}

fn readings(exprs: &mut Exprs, leaf: &Leaf, is_local: &dyn Fn(TensorId) -> bool) -> Vec<Reading> {
    if !exprs.accesses(leaf.body).any(|(tensor, _)| is_local(tensor)) {
        return Vec::new();
    }
    let variables: Vec<LoopId> = leaf.loops.iter().map(|l| l.variable).collect();
    let accesses = guard::guarded_accesses(exprs, leaf.body);
    let reading = |(id, guards)| match &exprs[id] {
        Expr::Access(tensor, subscripts) if is_local(*tensor) => {
            let (tensor, subscripts, variables) = (*tensor, subscripts.clone(), variables.clone());
            Some(Reading { tensor, subscripts, variables, domain: leaf.domain(), guards })
        }
        _ => None,
    };
    accesses.into_iter().filter_map(reading).collect()
}

impl Reading {
    /// Whether it may be of an element that a leaf writes.
    fn meets(&self, filled: &Leaf, slabs: &BTreeMap<TensorId, Slab>, making: &Making) -> bool {
        if self.tensor != filled.target {
            return false;
        }
        if filled.loops.iter().any(|l| self.variables.contains(&l.variable)) {
            return true;
        }
        let mut last = making.tile.number();
        let mut rows: Vec<Constraint> = making.context.iter().chain(&self.domain).cloned().collect();
        let written = filled.domain();
        rows.iter().chain(&written).for_each(|c| c.affine.visit_indices(&mut |v| last = last.max(v)));
        // A ring lives on from tile to tile, and different places of it may be the same element.
        let ring = slabs.get(&self.tensor).filter(|slab| slab.ring.is_some()).map(|slab| slab.dimension);
        let elsewhere: Vec<Affine> = (0..=last)
            .map(|v| Affine::index(if ring.is_some() && v == making.tile.number() { last + 1 } else { v }))
            .collect();
        rows.extend(written.iter().map(|c| c.with_indices(&elsewhere)));
        let pairs = self.subscripts.iter().zip(&filled.subscripts).enumerate();
        let told = pairs.filter(|(d, (a, b))| Some(*d) != ring && a.is_straight() && b.is_straight());
        rows.extend(told.map(|(_, (a, b))| Constraint::zero(a.clone() - b.with_indices(&elsewhere))));
        self.guards.iter().any(|guard| !system::is_empty(&[rows.as_slice(), guard.as_slice()].concat()))
    }
}
