//! That items of work are independent: no element that outlives an item is touched by two of them, unless all only read it.
//!
//! Items have consecutive parts `first..=last` of the outermost index, and numbers of their own. So it is enough that one
//! dimension of the buffer tells the item: in every access its subscript lies in `first..=last`, or in every access it is
//! the item's number.

use super::super::{FIRST, ITEM, Kernel, LAST, Nest, Scope, leaves};
use crate::domain::system::Facts;
use crate::program::{Affine, Constraint, TensorId};
use std::collections::BTreeMap;

/// What is left to show that each element has one item, for every buffer that a kernel writes: the dimensions that may
/// tell it.
pub struct Owners(BTreeMap<TensorId, Vec<Owner>>);

/// A dimension, and what could not be proved of it: nothing may satisfy all constraints of one of these.
struct Owner {
    dimension: usize,
    by_number: bool,
    unproved: Vec<Vec<Constraint>>,
}

impl Owners {
    /// Of a kernel that nothing has been seen of.
    pub fn new(nest: &Nest, kernel: &Kernel) -> Self {
        let written = leaves(&kernel.steps).into_iter().map(|leaf| leaf.target);
        let lasting = written.filter(|buffer| !matches!(nest[*buffer].scope, Scope::Local(_)));
        let ways = |buffer: TensorId| {
            let dimensions = (0..nest[buffer].extents.len()).flat_map(|d| [(d, true), (d, false)]);
            dimensions.map(|(dimension, by_number)| Owner { dimension, by_number, unproved: Vec::new() }).collect()
        };
        // One item is alone.
        let single = kernel.work.low == kernel.work.high;
        Owners(if single { BTreeMap::new() } else { lasting.map(|buffer| (buffer, ways(buffer))).collect() })
    }

    /// Takes an access into account, with what is known where it is made.
    pub fn see(&mut self, buffer: TensorId, subscripts: &[Affine], known: &Facts) {
        let Some(owners) = self.0.get_mut(&buffer) else { return };
        owners.retain_mut(|owner| owner.see(&subscripts[owner.dimension], known));
        // What needs no check is better than what does.
        if owners.iter().any(|owner| owner.unproved.is_empty()) {
            owners.retain(|owner| owner.unproved.is_empty());
        }
    }

    /// What is left to be checked when the sizes are known, or a buffer that items would share.
    pub fn finish(self) -> Result<Vec<(TensorId, Vec<Constraint>)>, TensorId> {
        let mut checks = Vec::new();
        for (buffer, owners) in self.0 {
            let fewest = owners.into_iter().min_by_key(|owner| owner.unproved.len()).ok_or(buffer)?;
            checks.extend(fewest.unproved.into_iter().map(|outside| (buffer, outside)));
        }
        Ok(checks)
    }
}

impl Owner {
    /// Whether a subscript may tell the item.
    fn see(&mut self, subscript: &Affine, known: &Facts) -> bool {
        if self.by_number {
            return *subscript == Affine::index(ITEM);
        }
        let (first, last) = (Affine::index(FIRST), Affine::index(LAST));
        // Without bounds by the item there is nothing to prove.
        let rows = || known.known().iter().map(|row| &row.affine);
        if !rows().any(|row| row.uses_index(FIRST)) || !rows().any(|row| row.uses_index(LAST)) {
            return false;
        }
        for inside in [subscript.clone() - first, last - subscript.clone()] {
            if !known.implies(&Constraint::non_negative(inside.clone())) {
                let outside = Constraint::at_most(inside, Affine::constant(-1));
                self.unproved.push([known.known(), &[outside]].concat());
            }
        }
        true
    }
}
