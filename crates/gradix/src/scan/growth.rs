//! Index sets that grow with an output: what was in the set stays in it, and what is new is thin.
//!
//! ```text
//! {k | 0 <= k <= i}           rising i      new at i: k == i
//! {k | i <= k < N}            falling i     new at i: k == i
//! {k, l | 0 <= k, l <= i}     rising i      new at i: k == i with l <= i, and l == i with k < i
//! ```
//!
//! With `S(i)` the set and `i'` the value before `i` (`i - 1`, or `i + 1` if `i` falls), `S(i')` is part of `S(i)` for all
//! values and sizes, and `S(i) = S(i') ∪ new` without points in common. Both are proven with the polyhedra.

use crate::domain::system::{self, Facts, Solved};
use crate::program::{Affine, Constraint, Index, Relation};
use gradix_int::Int;

/// Which output a set grows with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Direction {
    /// Its position.
    pub output: usize,
    /// Whether it falls.
    pub falling: bool,
}

impl Direction {
    /// The indices one step before: `i - 1` for the output, all others as they are.
    pub fn before(self, count: usize) -> Vec<Affine> {
        let mut map: Vec<Affine> = (0..count).map(Affine::index).collect();
        map[self.output] = map[self.output].shift(-self.step());
        map
    }

    /// How far the output goes at a step.
    pub fn step(self) -> Int {
        if self.falling { -Int::ONE } else { Int::ONE }
    }

    /// The first value, of so many.
    pub fn first(self, extent: &Affine) -> Affine {
        if self.falling { extent.shift(-1) } else { Affine::constant(0) }
    }

    /// That there is a step before.
    pub fn has_before(self, extent: &Affine) -> Constraint {
        let own = Affine::index(self.output);
        match self.falling {
            true => Constraint::at_most(own.shift(2), extent.clone()),
            false => Constraint::at_most(Affine::constant(1), own),
        }
    }
}

/// How a set grows.
#[derive(Clone, Debug)]
pub struct Growth {
    /// What is new at a step, in disjoint pieces.
    pub new: Vec<Vec<Constraint>>,
    /// What was in the set before the first step, if that may be anything: constraints at the first step.
    pub at_first: Option<Vec<Constraint>>,
}

/// Pieces that are new at a step, at most: each is computed on its own.
const MAX_PIECES: usize = 3;

/// How the set of these rows grows in a direction, if it does. `outer` holds for sizes and outputs.
pub fn growth(rows: &[Constraint], outer: &[Constraint], direction: Direction, extent: &Affine) -> Option<Growth> {
    let count = highest(rows).max(direction.output + 1);
    let before = direction.before(count);
    let moves = |row: &&Constraint| row.affine.uses_index(direction.output);
    let moving: Vec<&Constraint> = rows.iter().filter(moves).collect();
    let shifted: Vec<Constraint> = rows.iter().map(|row| row.with_indices(&before)).collect();
    let earlier = Facts::new([outer, &shifted].concat());
    if moving.is_empty() || !moving.iter().all(|row| earlier.implies(row)) {
        return None;
    }
    let now = Facts::new([outer, rows].concat());
    let added: Vec<Constraint> = moving.iter().map(|row| row.with_indices(&before)).collect();
    let added: Vec<Constraint> = added.into_iter().filter(|row| !now.implies(row)).collect();
    let mut new = Vec::new();
    for (place, row) in added.iter().enumerate() {
        let [opposite] = row.negated().try_into().ok()?;
        new.push([rows, &added[..place], &[opposite]].concat());
    }
    let at_first = Constraint::equal(Affine::index(direction.output), direction.first(extent));
    let starts_empty = system::is_empty(&[outer, &shifted, std::slice::from_ref(&at_first)].concat());
    let fits = !new.is_empty() && new.len() <= MAX_PIECES;
    fits.then_some(Growth { new, at_first: (!starts_empty).then_some(shifted) })
}

fn highest(rows: &[Constraint]) -> usize {
    let mut count = 0;
    rows.iter().for_each(|row| row.affine.visit_indices(&mut |index| count = count.max(index + 1)));
    count
}

/// A set solved for the indices of a reduction: those that have one value are gone.
#[derive(Clone, Debug)]
pub struct Pinned {
    /// Every index of the definition, in the outputs and the indices that are left.
    pub map: Vec<Affine>,
    /// What is left to reduce over, behind the outputs.
    pub left: Vec<Index>,
    /// What else has to hold.
    pub conditions: Vec<Constraint>,
}

/// A piece that is thin has so many values of one of its indices, at most.
const MAX_NEW_VALUES: i64 = 8;

impl Pinned {
    /// Whether one of the indices of the reduction has but a few values, whatever the sizes.
    pub fn is_thin(&self, rank: usize, outer: &[Constraint]) -> bool {
        let mut known = outer.to_vec();
        self.left.len() < self.map.len() - rank
            || self.left.iter().enumerate().any(|(place, Index { range, .. })| {
                let pairs = range.low.iter().flat_map(|low| range.high.iter().map(move |high| (low, high)));
                let mut few = pairs.map(|(low, high)| Constraint::at_most(high.clone(), low.shift(MAX_NEW_VALUES - 1)));
                let is_few = few.any(|few| system::implies(&known, &few));
                known.extend(range.constraints(rank + place));
                is_few
            })
    }
}

/// Solves rows for the indices behind the outputs. `None` if nothing satisfies them.
pub fn pinned(indices: &[Index], rank: usize, rows: Vec<Constraint>, outer: &[Constraint]) -> Option<Pinned> {
    let positions: Vec<usize> = (rank..indices.len()).collect();
    let rows = rows.into_iter().flat_map(|row| as_bounds(row, &positions)).collect();
    let Solved { ranges, conditions, outer: others } = system::solve(rows, &positions, outer).ok()??;
    let mut map: Vec<Affine> = (0..rank).map(Affine::index).collect();
    let (mut left, mut bounds): (Vec<Index>, Vec<Constraint>) = (Vec::new(), Vec::new());
    for (index, range) in indices[rank..].iter().zip(ranges) {
        let range = range.map(|bound| bound.with_indices(&map));
        match range.low.iter().find(|low| range.high.contains(low)).cloned() {
            Some(value) => {
                bounds.extend(range.low.iter().map(|low| Constraint::at_most(low.clone(), value.clone())));
                bounds.extend(range.high.iter().map(|high| Constraint::at_most(value.clone(), high.clone())));
                map.push(value);
            }
            None => {
                map.push(Affine::index(rank + left.len()));
                left.push(Index { name: index.name.clone(), range });
            }
        }
    }
    let rows = conditions.iter().chain(&others).map(|row| row.with_indices(&map));
    let conditions = rows.chain(bounds).filter(|row| row.decided() != Some(true)).collect();
    Some(Pinned { map, left, conditions })
}

/// An equation of the indices at these positions, as a bound from below and one from above.
fn as_bounds(row: Constraint, positions: &[usize]) -> Vec<Constraint> {
    match row.relation == Relation::Zero && positions.iter().any(|&position| row.affine.uses_index(position)) {
        true => vec![Constraint::non_negative(row.affine.clone()), Constraint::non_negative(-row.affine)],
        false => vec![row],
    }
}
