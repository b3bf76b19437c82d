//! Sizes that are assumed where decisions depend on them.

use crate::program::{Affine, Atom, ParamId, ParamKind, Program, TensorKind};
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
