//! How many values loops are assumed to have, and where the middle of their space is.

use super::place::Placed;
use super::{Looping, Making};
use crate::domain::estimate::in_middle;
use crate::nest::{FIRST, ITEM, LAST, Loop};
use crate::program::{Affine, Range};

impl Looping<'_> {
    /// The assumed number of values of each loop.
    pub fn extents(&self, loops: &[Loop]) -> Vec<f64> {
        in_middle(&|share| self.extents_at(loops, share))
    }

    /// The same where each variable has gone through a share of its values.
    fn extents_at(&self, loops: &[Loop], share: f64) -> Vec<f64> {
        let of_work = self.ends.iter().map(|(last, _)| last.number()).max().unwrap_or(0).max(ITEM.number());
        let highest = loops.iter().map(|l| l.variable.number()).max().unwrap_or(0).max(of_work);
        let mut middle = vec![0.0; highest + 1];
        (middle[FIRST.number()], middle[LAST.number()]) = (self.first, self.first + self.width - 1.0);
        self.ends.iter().for_each(|(last, value)| middle[last.number()] = *value);
        let mut extents = Vec::new();
        for l in loops {
            let (low, high) = self.span(&l.range, &middle);
            extents.push((high - low + 1.0).max(0.0));
            middle[l.variable.number()] = low + (high - low) * share;
        }
        extents
    }

    /// Assumed bounds; those of slabs don't count.
    fn span(&self, range: &Range, middle: &[f64]) -> (f64, f64) {
        let at = |a: &&Affine| a.estimate(middle, self.estimate);
        let own = |a: &&Affine| !a.uses_index(FIRST) && !a.uses_index(LAST);
        let low = range.low.iter().filter(own).map(|a| at(&a)).fold(f64::NEG_INFINITY, f64::max);
        let high = range.high.iter().filter(own).map(|a| at(&a)).fold(f64::INFINITY, f64::min);
        let width = self.width;
        match (low.is_finite(), high.is_finite()) {
            (true, true) => (low, high.min(low + self.slab_extent(range) - 1.0)),
            (true, false) => (low, low + width - 1.0),
            (false, true) => (high - width + 1.0, high),
            (false, false) => {
                let low = range.low.iter().map(|a| at(&a)).fold(f64::NEG_INFINITY, f64::max);
                (low, range.high.iter().map(|a| at(&a)).fold(f64::INFINITY, f64::min))
            }
        }
    }

    /// The values that the bounds of a slab leave.
    fn slab_extent(&self, range: &Range) -> f64 {
        let at = |a: &Affine| a.estimate(&[0.0, self.width - 1.0], self.estimate);
        let low = range.low.iter().filter(|a| a.uses_index(FIRST)).map(at).fold(f64::NEG_INFINITY, f64::max);
        let high = range.high.iter().filter(|a| a.uses_index(LAST)).map(at).fold(f64::INFINITY, f64::min);
        (high - low + 1.0).max(0.0)
    }

    /// The assumed middle of the space, by variable.
    pub fn middle(&self, placed: &Placed, making: &Making) -> Vec<f64> {
        let mut middle = vec![0.0; making.kernel.variables.len()];
        for (work, size) in making.kernel.work.iter().zip(std::iter::once(&making.size).chain(&making.grid)) {
            let (low, high) = (work.low.estimate(&[], self.estimate), work.high.estimate(&[], self.estimate));
            let half = *size as f64 / 2.0;
            middle[work.first.number()] = ((low + high) / 2.0 - half).max(low);
            middle[work.last.number()] = ((low + high) / 2.0 + half).min(high);
        }
        middle[making.tile.number()] = middle[FIRST.number()];
        for (&v, range) in placed.variables.iter().zip(&placed.ranges) {
            let low = range.low.iter().map(|a| a.estimate(&middle, self.estimate));
            let high = range.high.iter().map(|a| a.estimate(&middle, self.estimate));
            middle[v.number()] = (low.fold(f64::NEG_INFINITY, f64::max) + high.fold(f64::INFINITY, f64::min)) / 2.0;
        }
        middle
    }
}
