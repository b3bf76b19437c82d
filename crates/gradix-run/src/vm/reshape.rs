//! The loops of a leaf in a form that leaves more of them to be taken in groups.
//!
//! *Shifted*: a reduction whose range moves along with an output counts from there, so that the range stands still.
//!
//! ```text
//! y[i] = sum[k in i..i + 8] x[k]     →     y[i] = sum[k in 0..8] x[i + k]
//! ```
//!
//! *Collapsed*: two loops that everything steps through as through one are one loop.
//!
//! ```text
//! y[i, j in 0..8] = x[i, j]          →     y[8*i + j] = x[8*i + j]
//! ```
//!
//! Every element stays what it was; of a reduction, the order of its terms too.

use super::grouping::Hints;
use super::leaf::{Loop, Plan};
use super::linear::{Bounds, Linear};

/// Shifts and collapses what can be.
pub fn reshape<T>(plan: &mut Plan<T>, hints: &mut Hints, magnitude: &dyn Fn(usize) -> i128) {
    for position in plan.outputs..plan.loops.len() {
        for output in 0..plan.outputs {
            shift(plan, position, plan.loops[output].variable, magnitude);
        }
    }
    while let Some((outer, inner)) = pairs(plan).find(|(outer, inner)| is_one_loop(plan, *outer, *inner)) {
        collapse(plan, outer, inner, hints);
    }
}

/// Past this, a shifted expression could overflow.
const LARGEST: i128 = 1 << 56;

/// Counts a loop of the reduction from a multiple of an output, if both ends of its range move with that.
fn shift<T>(plan: &mut Plan<T>, position: usize, output: usize, magnitude: &dyn Fn(usize) -> i128) {
    let Loop { variable, range } = &plan.loops[position];
    let (variable, Some(factor)) = (*variable, common_factor(range, output, &plan.middle())) else { return };
    let reach = i128::from(factor).abs().saturating_mul(magnitude(output));
    let weight = plan.expressions().map(|l| l.weight(variable)).max().unwrap_or(0).max(1);
    if reach.saturating_mul(weight) > LARGEST {
        return;
    }
    plan.expressions_mut().for_each(|l| l.substitute(variable, output, factor));
    plan.loops[position].range.sides_mut().for_each(|l| l.add(output, -factor));
}

/// The factor of a variable that the bounds that count at a point share.
fn common_factor(range: &Bounds, variable: usize, point: &[i64]) -> Option<i64> {
    let low = range.low.iter().max_by_key(|l| l.at(point))?.factor(variable);
    let high = range.high.iter().min_by_key(|h| h.at(point))?.factor(variable);
    (low == high && low != 0 && !range.bends_at(variable)).then_some(low)
}

/// Outputs in any order, and neighbours of the reduction.
fn pairs<T>(plan: &Plan<T>) -> impl Iterator<Item = (usize, usize)> + use<T> {
    let (outputs, count) = (plan.outputs, plan.loops.len());
    let of_outputs = (0..outputs).flat_map(move |outer| (0..outputs).map(move |inner| (outer, inner)));
    of_outputs.filter(|(outer, inner)| outer != inner).chain((outputs..count).zip(outputs + 1..count))
}

/// Whether every place steps through two loops as through one, and nothing else depends on them.
fn is_one_loop<T>(plan: &Plan<T>, outer: usize, inner: usize) -> bool {
    let (first, second) = (plan.loops[outer].variable, plan.loops[inner].variable);
    let Some((_, extent)) = constant_range(&plan.loops[inner].range) else { return false };
    let either = |l: &Linear| l.uses(first) || l.uses(second);
    let decides = plan.loops.iter().any(|l| l.range.uses(first) || l.range.uses(second))
        || plan.guards.iter().chain(&plan.graph.conditions).any(|c| either(&c.linear));
    let one = |l: &Linear| {
        let together = extent == 1 || l.factor(second).checked_mul(extent) == Some(l.factor(first));
        together && !l.bends_at(first) && !l.bends_at(second)
    };
    // A place that depends on them shows that their product is no larger than a buffer.
    let bounded = extent == 1 || plan.accesses.iter().any(|access| access.place.uses(second));
    !decides && bounded && plan.values().all(one)
}

/// The first value and the number of values of a range that depends on no variable and is not empty.
fn constant_range(range: &Bounds) -> Option<(i64, i64)> {
    let constant = |l: &Linear| l.terms.is_empty() && l.floors.is_empty();
    let (low, high) = range.low.iter().chain(&range.high).all(constant).then(|| range.at(&[]))?;
    (low <= high).then_some((low, high - low + 1))
}

fn collapse<T>(plan: &mut Plan<T>, outer: usize, inner: usize, hints: &mut Hints) {
    let Some((low, extent)) = constant_range(&plan.loops[inner].range) else { return };
    let (first, second) = (plan.loops[outer].variable, plan.loops[inner].variable);
    for linear in plan.values_mut() {
        let factor = linear.factor(second);
        linear.constant += factor * low;
        linear.add(second, -factor);
        if extent > 1 {
            linear.add(first, factor - linear.factor(first));
        }
    }
    plan.loops[outer].range.scale *= extent;
    plan.loops.remove(inner);
    plan.outputs -= usize::from(inner < plan.outputs);
    hints.join(outer, inner);
}

impl<T> Plan<T> {
    /// About the middle point of the leaf.
    pub fn middle(&self) -> Vec<i64> {
        let mut point = self.sample.clone();
        for l in &self.loops {
            let (low, high) = l.range.at(&point);
            point[l.variable] = low + (high - low) / 2;
        }
        point
    }

    /// The places of accesses and the numbers of index expressions.
    fn values(&self) -> impl Iterator<Item = &Linear> {
        self.accesses.iter().map(|access| &access.place).chain(&self.graph.indices)
    }

    fn values_mut(&mut self) -> impl Iterator<Item = &mut Linear> {
        self.accesses.iter_mut().map(|access| &mut access.place).chain(&mut self.graph.indices)
    }

    /// All index expressions.
    fn expressions(&self) -> impl Iterator<Item = &Linear> {
        let conditions = self.guards.iter().chain(&self.graph.conditions).map(|c| &c.linear);
        self.values().chain(conditions).chain(self.loops.iter().flat_map(|l| l.range.low.iter().chain(&l.range.high)))
    }

    fn expressions_mut(&mut self) -> impl Iterator<Item = &mut Linear> {
        let places = self.accesses.iter_mut().map(|access| &mut access.place).chain(&mut self.graph.indices);
        let conditions = self.guards.iter_mut().chain(&mut self.graph.conditions).map(|c| &mut c.linear);
        places.chain(conditions).chain(self.loops.iter_mut().flat_map(|l| l.range.sides_mut()))
    }
}

impl Linear {
    /// Adds a multiple of a variable.
    fn add(&mut self, variable: usize, factor: i64) {
        let factor = self.factor(variable) + factor;
        self.terms.retain(|(v, _)| *v != variable);
        if factor != 0 {
            let place = self.terms.partition_point(|(v, _)| *v < variable);
            self.terms.insert(place, (variable, factor));
        }
    }

    /// Puts `variable + factor · output` for the variable.
    fn substitute(&mut self, variable: usize, output: usize, factor: i64) {
        self.add(output, factor * self.factor(variable));
        self.floors.iter_mut().for_each(|floor| floor.inner.substitute(variable, output, factor));
    }

    /// The most that a step of a variable adds to any part of the expression.
    fn weight(&self, variable: usize) -> i128 {
        let inside =
            |floor: &super::linear::Floor| floor.inner.weight(variable) * i128::from(floor.factor).abs().max(1);
        i128::from(self.factor(variable)).abs() + self.floors.iter().map(inside).sum::<i128>()
    }
}

impl Bounds {
    fn sides_mut(&mut self) -> impl Iterator<Item = &mut Linear> {
        self.low.iter_mut().chain(&mut self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::linear::Floor;

    fn linear(constant: i64, terms: &[(usize, i64)], floors: Vec<Floor>) -> Linear {
        Linear { constant, terms: terms.to_vec(), floors }
    }

    #[test]
    fn what_is_substituted_has_the_value_at_the_shifted_point() {
        let floor = Floor { inner: linear(1, &[(1, -3)], Vec::new()), divisor: 2, factor: 5 };
        let before = linear(7, &[(0, 4), (1, -2)], vec![floor]);
        for factor in -2..3 {
            let mut after = before.clone();
            after.substitute(1, 0, factor);
            for (output, variable) in (-4..5).flat_map(|o| (-4..5).map(move |v| (o, v))) {
                assert_eq!(after.at(&[output, variable]), before.at(&[output, variable + factor * output]));
            }
        }
        assert_eq!(before.weight(1), 2 + 15);
    }

    #[test]
    fn only_what_moves_at_both_ends_is_shifted() {
        let bound = |constant: i64, factor: i64| linear(constant, &[(0, factor)], Vec::new());
        let factor = |low: Vec<Linear>, high: Vec<Linear>, output: usize| {
            common_factor(&Bounds { low, high, scale: 1 }, output, &[4, 0])
        };
        assert_eq!(factor(vec![bound(0, 2)], vec![bound(5, 2)], 0), Some(2));
        assert_eq!(factor(vec![bound(0, 0), bound(-3, 1)], vec![bound(9, 0), bound(3, 1)], 0), Some(1));
        assert_eq!(factor(vec![bound(0, 0), bound(1, -1)], vec![bound(2, 0), bound(9, -1)], 0), None);
        assert_eq!(factor(vec![bound(0, 1)], vec![bound(5, 0)], 0), None);
        assert_eq!(factor(vec![bound(0, 1)], vec![bound(5, -1)], 0), None);
        assert_eq!(factor(vec![bound(0, 1)], vec![bound(5, 1)], 1), None);
    }

    #[test]
    fn a_scaled_range_has_as_many_values_for_each() {
        let bound = |constant: i64| vec![linear(constant, &[], Vec::new())];
        assert_eq!(Bounds { low: bound(-1), high: bound(2), scale: 3 }.at(&[]), (-3, 8));
        assert_eq!(constant_range(&Bounds { low: bound(4), high: bound(3), scale: 3 }), None);
        assert_eq!(constant_range(&Bounds { low: bound(4), high: bound(4), scale: 3 }), Some((12, 3)));
    }
}
