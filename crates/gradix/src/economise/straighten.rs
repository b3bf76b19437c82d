//! Reductions over what elements are read at.
//!
//! `sum[k in 0..=i] d[i - k]` is `sum[k in 0..=i] d[k]`: where a reduction index occurs only together with outputs, it counts
//! from there instead. Sums that differ in nothing else become equal.

use crate::lift;
use crate::program::{Affine, Atom, Definition, ExprId, Exprs, Program};
use gradix_int::Int;

/// Straightens every reduction, and says whether one changed.
pub fn straighten(program: &mut Program) -> bool {
    let mut changed = false;
    for place in 0..program.definitions.len() {
        let mut definition = program.definitions[place].clone();
        for index in definition.rank..definition.indices.len() {
            changed |= straightened(&mut program.exprs, &mut definition, index);
        }
        program.definitions[place] = definition;
    }
    changed
}

fn straightened(exprs: &mut Exprs, definition: &mut Definition, index: usize) -> bool {
    let Some((rest, factor)) = offset(exprs, definition, index, definition.body) else { return false };
    let mut map: Vec<Affine> = (0..definition.indices.len()).map(Affine::index).collect();
    map[index] = (Affine::index(index) - rest.clone()).scale(&factor);
    for (position, other) in definition.indices.iter_mut().enumerate() {
        if position != index {
            other.range = other.range.map(|bound| bound.with_indices(&map));
        }
    }
    let range = &mut definition.indices[index].range;
    let moved = range.map(|bound| bound.scale(&factor) + rest.clone());
    *range = if factor == Int::ONE { moved } else { crate::program::Range { low: moved.high, high: moved.low } };
    definition.conditions = definition.conditions.iter().map(|c| c.with_indices(&map)).collect();
    definition.body = lift::remap(exprs, definition.body, &map);
    true
}

/// What stands beside an index where it first occurs, and its factor there; `None` if it also occurs alone, or
/// with other indices of the reduction.
fn offset(exprs: &Exprs, definition: &Definition, index: usize, body: ExprId) -> Option<(Affine, Int)> {
    let atom = Atom::Index(index as u32);
    let mut first: Option<(Affine, Int)> = None;
    let mut fits = true;
    exprs.visit_affines(body, &mut |affine| {
        if !affine.uses_index(index) {
            return;
        }
        let factor = affine.coefficient(&atom);
        let rest = affine.add_scaled(&-factor.clone(), &Affine::index(index));
        let reduced = (definition.rank..definition.indices.len()).any(|r| rest.uses_index(r));
        fits &= (factor == Int::ONE || factor == -Int::ONE) && !reduced && rest.uses_indices();
        first.get_or_insert((rest, factor));
    });
    first.filter(|_| fits)
}
