//! Residue classes: an output that occurs inside `⌊e / c⌋` is taken apart, `t = 6*t' + r`, so that the divisions
//! come out even and loops contain none. Of an index of a reduction that has to be in one class, `(5 - k) % 2 == 0`, the others
//! are left out: `k = 2*k' + 1`.

use super::place::Placed;
use super::{Looping, Making};
use crate::lift;
use crate::nest::LoopId;
use crate::program::affine::gcd;
use crate::program::{Affine, Atom, Constraint, Range};
use crate::schedule::skew;
use crate::target::cost;
use gradix_int::Int;

/// The definition as it is, or once for each residue of some of its outputs.
pub fn classes(looping: &mut Looping, placed: Placed, making: &Making) -> Vec<Placed> {
    let found = by_residue(looping, placed, making, &Int::from(cost::RESIDUE_CLASSES), true);
    let strided = found.into_iter().map(|placed| strided(looping, placed, making));
    strided.collect::<Vec<_>>().into_iter().filter_map(|placed| decided(looping, placed)).collect()
}

/// A class without conditions that always hold there. Where one never does, there are no terms: nothing is added, or the
/// neutral value is stored.
fn decided(looping: &mut Looping, mut placed: Placed) -> Option<Placed> {
    placed.conditions.retain(|condition| condition.decided() != Some(true));
    if !placed.conditions.iter().any(|condition| condition.decided() == Some(false)) {
        return Some(placed);
    }
    let none = looping.exprs.constant(placed.reduction?.neutral());
    let Placed { target, subscripts, outputs, accumulate, .. } = placed;
    let (mut variables, mut ranges) = (placed.variables, placed.ranges);
    variables.truncate(outputs);
    ranges.truncate(outputs);
    let (conditions, reduction, body) = (Vec::new(), None, none);
    let neutral = Placed { target, subscripts, variables, outputs, ranges, conditions, reduction, accumulate, body };
    (!accumulate).then_some(neutral)
}

/// At most so many classes: of the first output whatever divides it, of others only for the sake of the reduction.
fn by_residue(looping: &mut Looping, placed: Placed, making: &Making, most: &Int, is_first: bool) -> Vec<Placed> {
    let middle = looping.middle(&placed, making);
    let outputs = placed.variables[..placed.outputs].iter().rev();
    let taken_apart = outputs.copied().find_map(|v| {
        let modulus = modulus(looping, &placed, v, &middle, is_first);
        (modulus > Int::ONE && modulus <= *most).then_some((v, modulus))
    });
    let Some((v, modulus)) = taken_apart else { return vec![placed] };
    let (mut found, mut residue) = (Vec::new(), Int::ZERO);
    while residue < modulus {
        let class = class(looping, &placed, v, &modulus, &residue, &middle);
        found.extend(by_residue(looping, class, making, &(most / &modulus), false));
        residue += Int::ONE;
    }
    found
}

/// The same with steps for indices of the reduction that a condition holds to one class.
fn strided(looping: &mut Looping, mut placed: Placed, making: &Making) -> Placed {
    for position in placed.outputs..placed.variables.len() {
        let v = placed.variables[position];
        if let Some((modulus, residue)) = only_class(&placed, v) {
            let middle = looping.middle(&placed, making);
            placed = class(looping, &placed, v, &modulus, &residue, &middle);
        }
    }
    placed
}

/// The class of a variable that conditions leave, if they leave one of several.
fn only_class(placed: &Placed, v: LoopId) -> Option<(Int, Int)> {
    let of_condition = |condition: &Constraint| {
        let mut modulus = Int::ONE;
        floors(&condition.affine, v, &mut modulus);
        let (mut left, mut residue) = (None, Int::ZERO);
        while modulus <= Int::from(cost::RESIDUE_CLASSES) && residue < modulus {
            let outcome = condition.with_indices(&in_class(placed, v, &modulus, &residue)).decided()?;
            if outcome && left.replace(residue.clone()).is_some() {
                return None;
            }
            residue += Int::ONE;
        }
        left.filter(|_| modulus > Int::ONE).map(|residue| (modulus, residue))
    };
    placed.conditions.iter().find_map(of_condition)
}

/// `v` in terms of its number within a class, and every other variable as it is.
fn in_class(placed: &Placed, v: LoopId, modulus: &Int, residue: &Int) -> Vec<Affine> {
    let count = placed.variables.iter().max().map_or(0, |v| v.number() + 1);
    let mut map: Vec<Affine> = (0..count).map(Affine::index).collect();
    map[v.number()] = Affine::index(v).scale(modulus).shift(residue.clone());
    map
}

/// What an output has to be a multiple of, plus a residue, so that all divisions of it come out even. Of several bounds,
/// those that count in the middle do.
fn modulus(looping: &Looping, placed: &Placed, v: LoopId, middle: &[f64], in_body: bool) -> Int {
    let mut modulus = Int::ONE;
    let mut see = |affine: &Affine| floors(affine, v, &mut modulus);
    if in_body {
        looping.exprs.visit_affines(placed.body, &mut see);
    }
    placed.conditions.iter().for_each(|c| see(&c.affine));
    for range in &placed.ranges {
        see(skew::active(&range.low, middle, looping.estimate, true));
        see(skew::active(&range.high, middle, looping.estimate, false));
    }
    modulus
}

fn floors(affine: &Affine, v: LoopId, modulus: &mut Int) {
    for (atom, _) in affine.terms() {
        if let Atom::Floor(inner, c) = atom
            && inner.uses_index(v)
        {
            floors(inner, v, modulus);
            let factor = inner.step_of(v);
            let own = c / gcd(&factor, c);
            *modulus = &*modulus / gcd(modulus, &own) * own;
        }
    }
}

fn class(looping: &mut Looping, placed: &Placed, v: LoopId, modulus: &Int, residue: &Int, middle: &[f64]) -> Placed {
    let map = in_class(placed, v, modulus, residue);
    let mut class = placed.clone();
    for (&variable, range) in placed.variables.iter().zip(&mut class.ranges) {
        *range = range.map(|bound| bound.with_indices(&map));
        if variable == v {
            // v' runs from ⌈(low - r) / m⌉ to ⌊(high - r) / m⌋.
            let shifted = |a: &Affine| a.shift(-residue.clone());
            let up = |a: &Affine| shifted(a).shift(modulus - Int::ONE).floor_div(modulus);
            let low = range.low.iter().map(up).collect();
            let high = range.high.iter().map(|a| shifted(a).floor_div(modulus)).collect();
            *range = Range { low, high };
        }
    }
    replace(looping, &mut class, &map);
    let skews = skew::skews(&class.variables, &class.ranges, class.outputs, v, middle.to_vec(), looping.estimate);
    if !skews.is_empty() {
        let mut map = in_class(placed, v, &Int::ONE, &Int::ZERO);
        skew::apply(&mut map, &mut class.ranges, &class.variables, v, &skews);
        replace(looping, &mut class, &map);
    }
    class
}

/// Replaces variables everywhere but in the ranges.
fn replace(looping: &mut Looping, placed: &mut Placed, map: &[Affine]) {
    placed.body = lift::remap(&mut looping.exprs, placed.body, map);
    placed.subscripts = placed.subscripts.iter().map(|s| s.with_indices(map)).collect();
    placed.conditions = placed.conditions.iter().map(|c| c.with_indices(map)).collect();
}
