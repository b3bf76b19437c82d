//! That items of work are independent: no element that outlives an item is touched by two of them, unless all only read it.
//!
//! Two items differ along some dimension of their grid. There they have consecutive parts `first..=last` of an index, and
//! numbers of their own. So it is enough that for each dimension of the grid, one of the buffer tells where the item is: in
//! every access its subscript lies in `first..=last`, or in every access it is the item's number.

use super::super::{Kernel, Nest, Scope, Work, leaves};
use crate::domain::system::Facts;
use crate::program::{Affine, Constraint, TensorId};

/// What is left to show that each element has one item, for every buffer that a kernel writes and every dimension of its
/// grid.
pub struct Owners<'a>(Vec<Telling<'a>>);

/// The dimensions of a buffer that may tell where along a dimension of the grid an item is.
struct Telling<'a> {
    buffer: TensorId,
    work: &'a Work,
    owners: Vec<Owner>,
}

/// A dimension, and what could not be proved of it: nothing may satisfy all constraints of one of these.
struct Owner {
    dimension: usize,
    by_number: bool,
    unproved: Vec<Vec<Constraint>>,
}

impl<'a> Owners<'a> {
    /// Of a kernel that nothing has been seen of.
    pub fn new(nest: &Nest, kernel: &'a Kernel) -> Self {
        let mut written: Vec<TensorId> = leaves(&kernel.steps).into_iter().map(|leaf| leaf.target).collect();
        written.retain(|buffer| !matches!(nest[*buffer].scope, Scope::Local(_)));
        written.sort();
        written.dedup();
        let ways = |buffer: TensorId| {
            let dimensions = (0..nest[buffer].extents.len()).flat_map(|d| [(d, true), (d, false)]);
            dimensions.map(|(dimension, by_number)| Owner { dimension, by_number, unproved: Vec::new() }).collect()
        };
        // One item is alone.
        let several = || kernel.work.iter().filter(|work| !work.is_single());
        let tellings = |buffer| several().map(move |work| Telling { buffer, work, owners: ways(buffer) });
        Owners(written.into_iter().flat_map(tellings).collect())
    }

    /// Takes an access into account, with what is known where it is made.
    pub fn see(&mut self, buffer: TensorId, subscripts: &[Affine], known: &Facts) {
        let tellings = self.0.iter_mut().filter(|telling| telling.buffer == buffer);
        tellings.for_each(|telling| telling.see(subscripts, known));
    }

    /// What is left to be checked when the sizes are known, or a buffer that items would share.
    pub fn finish(self) -> Result<Vec<(TensorId, Vec<Constraint>)>, TensorId> {
        let mut checks = Vec::new();
        for Telling { buffer, owners, .. } in self.0 {
            let fewest = owners.into_iter().min_by_key(|owner| owner.unproved.len()).ok_or(buffer)?;
            checks.extend(fewest.unproved.into_iter().map(|outside| (buffer, outside)));
        }
        Ok(checks)
    }
}

impl Telling<'_> {
    fn see(&mut self, subscripts: &[Affine], known: &Facts) {
        let Telling { work, owners, .. } = self;
        // What needs no check is better than what does.
        let is_proved = |owner: &Owner| owner.is_proved(&subscripts[owner.dimension], work, known);
        let proved: Vec<bool> = owners.iter().map(is_proved).collect();
        if !proved.contains(&true) {
            return owners.retain_mut(|owner| owner.see(&subscripts[owner.dimension], work, known));
        }
        let mut proved = proved.into_iter();
        owners.retain(|_| proved.next() == Some(true));
    }
}

impl Owner {
    /// What may not be negative if a subscript tells the item; `None` if it can't.
    fn asked(&self, subscript: &Affine, work: &Work) -> Option<Vec<Affine>> {
        let [first, last, item] = work.variables().map(Affine::index);
        match self.by_number {
            true => (*subscript == item).then(Vec::new),
            false => Some(vec![subscript.clone() - first, last - subscript.clone()]),
        }
    }

    /// Whether this and all subscripts before are known to tell the item.
    fn is_proved(&self, subscript: &Affine, work: &Work, known: &Facts) -> bool {
        let holds = |inside: Affine| known.implies(&Constraint::non_negative(inside));
        self.unproved.is_empty() && self.asked(subscript, work).is_some_and(|asked| asked.into_iter().all(holds))
    }

    /// Whether a subscript may tell the item; what can't be proved of it is left.
    fn see(&mut self, subscript: &Affine, work: &Work, known: &Facts) -> bool {
        let Some(asked) = self.asked(subscript, work) else { return false };
        for inside in asked {
            if !known.implies(&Constraint::non_negative(inside.clone())) {
                let outside = Constraint::at_most(inside, Affine::constant(-1));
                self.unproved.push([known.known(), &[outside]].concat());
            }
        }
        true
    }
}
