//! Sizes that are assumed where decisions depend on them.

use crate::program::{Affine, Atom, Definition, ParamId, ParamKind, Program, TensorKind};
use crate::target::cost;
use gradix_int::Int;

/// The sizes as numbers. Those that are not given are assumed: free ones large enough for every argument to have
/// elements, the others computed from them.
pub fn estimate(program: &Program, given: &[Int]) -> Vec<f64> {
    let mut free: Vec<f64> = given.iter().map(|v| v.to_f64().value()).collect();
    free.resize(program.params.len().max(free.len()), cost::ASSUMED_SIZE);
    let mut values = completed(program, &free, given.len());
    for _ in 0..MAX_DOUBLINGS {
        let named = program.tensors.iter().filter(|t| t.kind != TensorKind::Nested);
        let Some(short) = named.flat_map(|t| &t.extents).find(|e| e.estimate(&[], &values) < cost::ASSUMED_EXTENT)
        else {
            break;
        };
        let changed = grow(short, given.len(), &mut free);
        if !changed {
            break;
        }
        values = completed(program, &free, given.len());
    }
    values
}

/// The assumed number of values of every index of a definition, in the middle of those before it.
pub fn extents(definition: &Definition, estimate: &[f64]) -> Vec<f64> {
    in_middle(&|share| extents_at(definition, estimate, &|_| share))
}

/// The same where each index has gone through a share of its values.
pub fn extents_at(definition: &Definition, estimate: &[f64], share: &dyn Fn(usize) -> f64) -> Vec<f64> {
    let mut point: Vec<f64> = Vec::new();
    let mut extents = Vec::new();
    for (position, index) in definition.indices.iter().enumerate() {
        let at = |affine: &Affine| affine.estimate(&point, estimate);
        let low = index.range.low.iter().map(at).fold(f64::NEG_INFINITY, f64::max);
        let high = index.range.high.iter().map(at).fold(f64::INFINITY, f64::min);
        extents.push((high - low + 1.0).max(0.0));
        point.push(low + (high - low) * share(position));
    }
    extents
}

/// Extents where indices have gone through a share of their values: half of them, unless that leaves nothing for others. Of
/// `k in t + 1..=i`, the middle of all `i` has none where `t` is in the middle of its steps.
pub fn in_middle(at: &dyn Fn(f64) -> Vec<f64>) -> Vec<f64> {
    let has_points = |extents: &Vec<f64>| extents.iter().all(|extent| *extent >= 1.0);
    let middle = at(cost::MIDDLE);
    match has_points(&middle) {
        true => middle,
        false => cost::BESIDE_MIDDLE.map(at).into_iter().find(has_points).unwrap_or(middle),
    }
}

/// Doubles the assumed sizes that make an expression larger; says whether there are any.
fn grow(affine: &Affine, given: usize, free: &mut [f64]) -> bool {
    let mut changed = false;
    for (atom, factor) in affine.terms().iter().filter(|(_, factor)| *factor > Int::ZERO) {
        changed |= match atom {
            Atom::Param(ParamId(p)) if *p as usize >= given => {
                free[*p as usize] *= 2.0;
                *factor > Int::ZERO
            }
            Atom::Floor(inner, _) => grow(inner, given, free),
            Atom::Param(_) | Atom::Index(_) => false,
        };
    }
    changed
}

/// How often assumed sizes are doubled, at most: no extent grows for ever.
const MAX_DOUBLINGS: usize = 8;

fn completed(program: &Program, free: &[f64], given: usize) -> Vec<f64> {
    let mut values = free[..given].to_vec();
    for (param, assumed) in program.params.iter().zip(free).skip(given) {
        let at = |a: &Affine| a.estimate(&[], &values);
        let value = match &param.kind {
            ParamKind::Free => *assumed,
            ParamKind::Time(steps) => at(steps) / 2.0,
            ParamKind::Fixed(value) => value.to_f64().value(),
            ParamKind::Smallest(parts) => parts.iter().map(at).fold(f64::INFINITY, f64::min),
            ParamKind::Largest(parts) => parts.iter().map(at).fold(f64::NEG_INFINITY, f64::max),
        };
        values.push(value);
    }
    values
}
