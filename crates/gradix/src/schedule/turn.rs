//! The order of the dimensions of what is computed on the way.
//!
//! `s[l, i] = sum[k] d[i + k, l]` is computed along `l`, and each vector would be stored across the rows of `s`. Where all
//! readers are pointwise, it is stored as `s[i, l]`: they turn it when they read it, a square of registers at a time.

use super::arrange::runs_along;
use super::extents;
use crate::nested;
use crate::program::expr::{Rewriter, Rules};
use crate::program::{Affine, Definition, ExprId, Exprs, Index, Program, TensorId};

/// Indices with fewer values are not worth it.
const WIDE: f64 = 16.0;

/// Moves the dimension last along which a reduction is computed.
pub fn turn(program: &mut Program, estimate: &[f64]) {
    for position in 0..program.definitions.len() {
        if let Some(along) = dimension(program, &program.definitions[position], estimate) {
            let order: Vec<usize> =
                (0..program.definitions[position].rank).filter(|p| *p != along).chain([along]).collect();
            reorder(program, position, &order);
        }
    }
}

/// The output along which everything is read, if it is not the last one, and that is not.
fn dimension(program: &Program, definition: &Definition, estimate: &[f64]) -> Option<usize> {
    let last = definition.rank.checked_sub(1).filter(|last| *last > 0)?;
    let ranges = definition.indices[..definition.rank].iter().map(|index| &index.range);
    let is_box = ranges.flat_map(|range| range.low.iter().chain(&range.high)).all(|bound| !bound.uses_indices());
    if definition.reduction.is_none() || !is_box || program.outputs.contains(&definition.tensor) {
        return None;
    }
    let is_read =
        |reader: &Definition| program.exprs.accesses(reader.body).any(|(tensor, _)| tensor == definition.tensor);
    let pointwise =
        program.definitions.iter().filter(|reader| is_read(reader)).all(|reader| reader.reduction.is_none());
    let reads = |p: usize| program.exprs.used_indices(definition.body, definition.indices.len())[p];
    let is_along = |p: usize| reads(p) && runs_along(program, definition, p);
    if !pointwise || is_along(last) {
        return None;
    }
    let sizes = extents(definition, estimate);
    (0..last).rev().find(|&p| sizes[p] >= WIDE && is_along(p))
}

fn reorder(program: &mut Program, position: usize, order: &[usize]) {
    let definition = program.definitions[position].clone();
    let mut map: Vec<Affine> = (0..definition.indices.len()).map(Affine::index).collect();
    order.iter().enumerate().for_each(|(new, &old)| map[old] = Affine::index(new));
    let moved = |old: usize| {
        let Index { name, range } = &definition.indices[old];
        Index { name: name.clone(), range: range.map(|bound| bound.with_indices(&map)) }
    };
    let terms = definition.rank..definition.indices.len();
    let tensor = &mut program.tensors[definition.tensor.0 as usize];
    tensor.extents = order.iter().map(|&old| tensor.extents[old].clone()).collect();
    program.definitions[position] = Definition {
        indices: order.iter().copied().chain(terms).map(moved).collect(),
        conditions: definition.conditions.iter().map(|c| c.with_indices(&map)).collect(),
        assumptions: definition.assumptions.iter().map(|c| c.with_indices(&map)).collect(),
        body: nested::remap(&mut program.exprs, definition.body, &map),
        ..definition
    };
    let mut rules = Reorder { tensor: definition.tensor, order };
    for reader in &mut program.definitions {
        reader.body = Rewriter::default().rewrite(&mut program.exprs, reader.body, &mut rules);
    }
}

struct Reorder<'a> {
    tensor: TensorId,
    order: &'a [usize],
}

impl Rules for Reorder<'_> {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        let subscripts = match tensor == self.tensor {
            true => self.order.iter().map(|&old| subscripts[old].clone()).collect(),
            false => subscripts,
        };
        exprs.access(tensor, subscripts)
    }
}
