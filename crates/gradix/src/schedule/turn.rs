//! The order of the dimensions of what is computed on the way.
//!
//! `s[l, i] = sum[k] d[i + k, l]` is computed along `l`, and each vector would be stored across the rows of `s`. Where all
//! readers are pointwise, it is stored as `s[i, l]`: they turn it when they read it, a square of registers at a time.

use super::arrange::runs_along;
use super::order::move_last;
use crate::domain::estimate::extents;
use crate::program::{Definition, Program};
use crate::target::Target;

/// Moves the dimension last along which a reduction is computed.
pub fn turn(program: &mut Program, estimate: &[f64], target: &Target) {
    for position in 0..program.definitions.len() {
        if let Some(along) = dimension(program, &program.definitions[position], estimate, target) {
            let tensor = program.definitions[position].tensor;
            move_last(program, position, tensor, along);
        }
    }
}

/// The output along which everything is read, if it is not the last one, and that is not.
fn dimension(program: &Program, definition: &Definition, estimate: &[f64], target: &Target) -> Option<usize> {
    let last = definition.rank.checked_sub(1).filter(|last| *last > 0)?;
    if definition.reduction.is_none() || !definition.is_box() || program.outputs.contains(&definition.tensor) {
        return None;
    }
    let is_read = |reader: &Definition| program.exprs.reads(reader.body, definition.tensor);
    let pointwise =
        program.definitions.iter().filter(|reader| is_read(reader)).all(|reader| reader.reduction.is_none());
    let reads = |p: usize| program.exprs.used_indices(definition.body, definition.indices.len())[p];
    let is_along = |p: usize| reads(p) && runs_along(program, definition, p);
    if !pointwise || is_along(last) {
        return None;
    }
    let sizes = extents(definition, estimate);
    (0..last).rev().find(|&p| sizes[p] >= target.wide() && is_along(p))
}
