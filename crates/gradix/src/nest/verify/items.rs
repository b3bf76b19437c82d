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
        // What needs no check is better than what does.
        let is_proved = |owner: &Owner| owner.is_proved(&subscripts[owner.dimension], known);
        let proved: Vec<bool> = owners.iter().map(is_proved).collect();
        if !proved.contains(&true) {
            return owners.retain_mut(|owner| owner.see(&subscripts[owner.dimension], known));
        }
        let mut proved = proved.into_iter();
        owners.retain(|_| proved.next() == Some(true));
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
    /// What may not be negative if a subscript tells the item; `None` if it can't.
    fn asked(&self, subscript: &Affine) -> Option<Vec<Affine>> {
        match self.by_number {
            true => (*subscript == Affine::index(ITEM)).then(Vec::new),
            false => Some(vec![subscript.clone() - Affine::index(FIRST), Affine::index(LAST) - subscript.clone()]),
        }
    }

    /// Whether this and all subscripts before are known to tell the item.
    fn is_proved(&self, subscript: &Affine, known: &Facts) -> bool {
        let holds = |inside: Affine| known.implies(&Constraint::non_negative(inside));
        self.unproved.is_empty() && self.asked(subscript).is_some_and(|asked| asked.into_iter().all(holds))
    }

    /// Whether a subscript may tell the item; what can't be proved of it is left.
    fn see(&mut self, subscript: &Affine, known: &Facts) -> bool {
        let Some(asked) = self.asked(subscript) else { return false };
        for inside in asked {
            if !known.implies(&Constraint::non_negative(inside.clone())) {
                let outside = Constraint::at_most(inside, Affine::constant(-1));
                self.unproved.push([known.known(), &[outside]].concat());
            }
        }
        true
    }
}
