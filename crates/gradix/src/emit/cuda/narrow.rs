//! Whether whole numbers of 32 bits hold all that kernels compute at some sizes.
//!
//! An index is at most as large as the largest size, so that what a sum of multiples of indices reaches is a multiple of that and
//! a constant; a place in a buffer is less than its elements.

use crate::nest::{Nest, Step, leaves};
use crate::program::affine::to_f64;
use crate::program::{Affine, Atom, Range};

/// What magnitudes are at most: a multiple of the largest size, and a constant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reach {
    /// The multiple.
    pub factor: f64,
    /// The constant.
    pub offset: f64,
}

/// An item may start and end a little past what it covers.
const SPARE: f64 = 1024.0;
/// Sums of two numbers below this have 32 bits.
pub const HALF: f64 = (1u64 << 30) as f64;

/// Whether no index, no place in a buffer and nothing on the way to one needs more than 32 bits, with buffers of so many elements.
pub fn suffices(nest: &Nest, sizes: &[i64], elements: &[usize]) -> bool {
    let largest = sizes.iter().map(|size| size.unsigned_abs() as f64).fold(1.0, f64::max);
    let buffers = elements.iter().map(|count| *count as f64).fold(1.0, f64::max);
    let (indices, steps) = reaches(nest);
    buffers + steps.at(largest) < HALF && indices.at(largest) + steps.at(largest) < HALF
}

/// The reach of all index expressions, and that of the steps from item to item.
pub fn reaches(nest: &Nest) -> (Reach, Reach) {
    let mut indices = Reach::default();
    visit(nest, &mut |affine| indices = indices.most(reach(affine)));
    let steps = nest.kernels.iter().flat_map(|kernel| &kernel.work).map(|work| reach(&work.step));
    (indices, steps.fold(Reach { factor: 0.0, offset: SPARE }, Reach::most))
}

impl Reach {
    fn at(self, largest: f64) -> f64 {
        self.factor * largest + self.offset
    }

    fn most(self, other: Reach) -> Reach {
        Reach { factor: self.factor.max(other.factor), offset: self.offset.max(other.offset) }
    }
}

/// The largest magnitude of an expression.
fn reach(affine: &Affine) -> Reach {
    let atom = |atom: &Atom| match atom {
        Atom::Index(_) | Atom::Param(_) => Reach { factor: 2.0, offset: 0.0 },
        Atom::Floor(inner, _) => reach(inner),
    };
    let constant = Reach { factor: 0.0, offset: to_f64(affine.offset()).abs() };
    affine.terms().iter().fold(constant, |sum, (own, factor)| {
        let (own, factor) = (atom(own), to_f64(factor).abs());
        Reach { factor: sum.factor + factor * own.factor, offset: sum.offset + factor * own.offset }
    })
}

/// Every index expression of a nest.
fn visit(nest: &Nest, see: &mut dyn FnMut(&Affine)) {
    let range = |range: &Range, see: &mut dyn FnMut(&Affine)| range.low.iter().chain(&range.high).for_each(see);
    fn tiles(steps: &[Step], see: &mut dyn FnMut(&Range)) {
        for step in steps {
            if let Step::Tile(tile) = step {
                see(&tile.range);
                tiles(&tile.steps, see);
            }
        }
    }
    nest.buffers.iter().flat_map(|buffer| &buffer.extents).for_each(&mut *see);
    for kernel in &nest.kernels {
        kernel.work.iter().flat_map(|work| [&work.low, &work.high, &work.step]).for_each(&mut *see);
        tiles(&kernel.steps, &mut |bounds| range(bounds, see));
        for leaf in leaves(&kernel.steps) {
            leaf.subscripts.iter().for_each(&mut *see);
            leaf.loops.iter().for_each(|l| range(&l.range, see));
            leaf.guards.iter().for_each(|guard| see(&guard.affine));
            nest.exprs.visit_affines(leaf.body, see);
        }
    }
}
