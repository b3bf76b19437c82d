//! Other variables for a reduction, so that its bounds don't move with an output.
//!
//! In `dy[l] = sum[i in l-9..=l, …] d[i, l-i] * x[i]` the bounds of `i` move with `l`; with `i + l` in place of `i` they
//! are `-9..=0`, and the same for all lanes of a vector. At the ends of the tensors other bounds take over; the middle
//! of the index space decides.

use crate::program::{Affine, Range, Variable};
use gradix_int::Int;

/// For each index of the reduction, the multiple of output `v` that is to be added to it, where that helps.
/// `indices` are the atoms of the ranges in order, the first `outputs` of them outputs; `middle` has assumed values for
/// other atoms.
pub fn skews<V: Variable>(
    indices: &[V],
    ranges: &[Range],
    outputs: usize,
    v: V,
    mut middle: Vec<f64>,
    estimate: &[f64],
) -> Vec<(usize, Int)> {
    let count = indices.iter().map(|index| index.number() + 1).max().unwrap_or(0);
    middle.resize(count.max(middle.len()), 0.0);
    let mut found = Vec::new();
    for (position, (&index, range)) in indices.iter().zip(ranges).enumerate() {
        let (low, high) = (active(&range.low, &middle, estimate, true), active(&range.high, &middle, estimate, false));
        middle[index.number()] = (low.estimate(&middle, estimate) + high.estimate(&middle, estimate)) / 2.0;
        if position < outputs {
            continue;
        }
        let (below, above) = (low.step_of(v), high.step_of(v));
        if below == above && below != Int::ZERO {
            found.push((position, below));
        }
    }
    found
}

/// The bound that counts in the middle.
pub fn active<'a>(bounds: &'a [Affine], middle: &[f64], estimate: &[f64], is_low: bool) -> &'a Affine {
    let key = |a: &&Affine| if is_low { a.estimate(middle, estimate) } else { -a.estimate(middle, estimate) };
    bounds.iter().max_by(|a, b| key(a).total_cmp(&key(b))).expect("a range has bounds")
}

/// What the skews put in place of each index: `map` has an entry for every atom.
pub fn apply<V: Variable>(map: &mut [Affine], ranges: &mut [Range], indices: &[V], v: V, skews: &[(usize, Int)]) {
    for (position, factor) in skews {
        let index = indices[*position];
        map[index.number()] = Affine::index(index).add_scaled(factor, &Affine::index(v));
    }
    for (position, range) in ranges.iter_mut().enumerate() {
        let by = skews.iter().find(|(p, _)| *p == position).map(|(_, factor)| factor);
        *range = range.map(|bound| {
            let bound = bound.with_indices(map);
            by.map_or(bound.clone(), |factor| bound.add_scaled(&-factor.clone(), &Affine::index(v)))
        });
    }
}
