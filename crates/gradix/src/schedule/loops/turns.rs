//! A reduction index of few values, with which the range of another moves, is written out: one leaf for each value, which adds
//! to what the leaves before it found.
//!
//! ```text
//! dx[k] = sum[t in 0..=1, i in …] dy[i] * h[k + 64*t - i]        dx[k]  = sum[i in max(0, k - 4)..=k] dy[i] * h[k - i]
//!                                                                dx[k] += sum[i in k + 60..64] dy[i] * h[k + 64 - i]
//! ```
//!
//! So turns of `wrap` are told apart by the bounds of loops. The value with the most terms comes first. Others have many terms for what
//! they read and store again, or terms at a border only; windows of few terms in each row are left as they are.

use super::place::Placed;
use super::{Looping, Making};
use crate::domain::system;
use crate::lift;
use crate::program::{Affine, Atom, Constraint, ReduceOp};
use crate::target::cost;
use gradix_int::Int;

/// The most values that are written out: once round at either end.
const MAX_TURNS: i64 = 4;

/// The definition as it is, or once for each value of such an index.
pub fn turns(looping: &mut Looping, placed: Placed, making: &Making) -> Vec<Placed> {
    let Some((low, high)) = values(&placed, making) else { return vec![placed] };
    let mut found: Vec<(f64, Placed)> = Vec::new();
    let mut value = low;
    while value <= high {
        let turn = at(looping, &placed, &value);
        let extents = looping.extents(&turn.loops(turn.ranges.iter().cloned()));
        found.push((extents[turn.outputs..].iter().product(), turn));
        value += Int::ONE;
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let pays = |terms: &f64| !(1.0..cost::TURN_TERMS).contains(terms);
    if !found[1..].iter().all(|(terms, _)| pays(terms)) {
        return vec![placed];
    }
    let accumulate =
        |(place, (_, turn)): (usize, (f64, Placed))| Placed { accumulate: turn.accumulate || place > 0, ..turn };
    found.into_iter().enumerate().map(accumulate).collect()
}

/// The least and the greatest value of the outermost index of the reduction, where others move with it.
fn values(placed: &Placed, making: &Making) -> Option<(Int, Int)> {
    let (first, others) = placed.variables[placed.outputs..].split_first()?;
    let moves = placed.ranges[placed.outputs + 1..].iter().flat_map(|r| r.low.iter().chain(&r.high));
    let moved = moves.into_iter().any(|bound| bound.uses_index(*first));
    if !moved || others.is_empty() || placed.reduction == Some(ReduceOp::LogSumExp) {
        return None;
    }
    let domain = domain(placed, placed.outputs + 1);
    let known = [making.context.as_slice(), &domain].concat();
    let low = system::minimum(&known, &Atom::Index(first.0))?;
    let below = Atom::Index(u32::MAX);
    let mirrored = Constraint::equal(Affine::atom(below.clone()), -Affine::index(*first));
    let high = -system::minimum(&[known.as_slice(), &[mirrored]].concat(), &below)?;
    (high > low && high.clone() - low.clone() < Int::from(MAX_TURNS)).then_some((low, high))
}

/// What holds for the first variables.
fn domain(placed: &Placed, count: usize) -> Vec<Constraint> {
    let ranges = placed.variables.iter().zip(&placed.ranges).take(count);
    ranges.flat_map(|(&v, range)| range.constraints(v).collect::<Vec<_>>()).collect()
}

/// The definition at a value of the outermost index of its reduction.
fn at(looping: &mut Looping, placed: &Placed, value: &Int) -> Placed {
    let (position, mut turn) = (placed.outputs, placed.clone());
    let variable = turn.variables.remove(position);
    let own = turn.ranges.remove(position);
    let count = placed.variables.iter().max().map_or(0, |v| v.0 as usize + 1);
    let mut map: Vec<Affine> = (0..count).map(Affine::index).collect();
    map[variable.0 as usize] = Affine::constant(value.clone());
    turn.ranges.iter_mut().for_each(|range| *range = range.map(|bound| bound.with_indices(&map)));
    turn.body = lift::remap(&mut looping.exprs, placed.body, &map);
    // Where the index has the value at all: that is told by the other ranges, mostly.
    let terms = domain(&turn, turn.variables.len());
    let own = own.constraints(variable).map(|c| c.with_indices(&map)).collect::<Vec<_>>();
    let open = own.into_iter().filter(|c| c.decided() != Some(true) && !system::implies(&terms, c));
    turn.conditions = placed.conditions.iter().map(|c| c.with_indices(&map)).chain(open).collect();
    turn
}
