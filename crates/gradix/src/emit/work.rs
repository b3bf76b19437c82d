//! The grid of items: how many there are along a dimension, and what one covers.

use super::draft::Draft;
use super::integers::{larger, smaller};
use super::names::Names;
use super::tree::Value;
use crate::nest::Work;

/// How many items there are along a dimension; where there are none, nothing asks.
pub fn count(names: &Names, work: &Work) -> Value {
    match work.parts {
        Some(parts) => parts.into(),
        None => {
            let [low, high, step] = [&work.low, &work.high, &work.step].map(|affine| names.affine(affine));
            larger(1.into(), (high - low) / step + 1)
        }
    }
}

/// The values that an item covers along a dimension.
pub fn covered(names: &Names, draft: &mut Draft, work: &Work) {
    let [low, high, step] = [&work.low, &work.high, &work.step].map(|affine| names.affine(affine));
    let [first, last, item] = work.variables().map(|v| names.variables[v].clone());
    draft.fix(&first, low + &item * &step);
    draft.fix(&last, smaller(high, &first + step - 1));
    draft.mention(&first);
    draft.mention(&last);
}
