//! Whether whole numbers of 32 bits hold all that kernels compute at some sizes.

use gradix::nest::{Nest, Step, leaves};
use gradix::program::affine::to_f64;
use gradix::program::{Affine, Atom, Range};

/// Whether no index, no place in a buffer and nothing on the way to one needs more than 32 bits. An index is at most as large as the
/// largest size, or as the largest buffer; so a sum of multiples of indices is bounded by its factors.
pub fn suffices(nest: &Nest, sizes: &[i64], elements: &[usize]) -> bool {
    let largest = sizes.iter().map(|size| size.unsigned_abs() as f64).fold(1.0, f64::max);
    let buffers = elements.iter().map(|count| *count as f64).fold(1.0, f64::max);
    let mut most = 0f64;
    visit(nest, &mut |affine| most = most.max(reach(affine, largest)));
    // An item may start and end a little past what it covers.
    let steps = nest.kernels.iter().flat_map(|kernel| &kernel.work).map(|work| reach(&work.step, largest));
    let step = steps.fold(1024.0, f64::max);
    const HALF: f64 = (1u64 << 30) as f64;
    buffers + step < HALF && most + step < HALF
}

/// The largest magnitude of an expression whose atoms are at most so large.
fn reach(affine: &Affine, largest: f64) -> f64 {
    let atom = |atom: &Atom| match atom {
        Atom::Index(_) | Atom::Param(_) => 2.0 * largest,
        Atom::Floor(inner, _) => reach(inner, largest),
    };
    let terms = affine.terms().iter().map(|(own, factor)| atom(own) * to_f64(factor).abs());
    terms.sum::<f64>() + to_f64(affine.offset()).abs()
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
