//! That what is read has been written before, and that every element of a result is written.
//!
//! ```text
//! for i in tile..=tile + 7:  t[i - tile] = …              t is read at i - tile, for i in tile..=tile + 7:
//! for i in tile..=tile + 7:  y[i] = 2 * t[i - tile]       the leaf that writes that place is at the same i
//! ```
//!
//! For a place, the point at which a leaf would write it is found by solving the leaf's subscripts; what its loops and
//! guards say of that point are the conditions under which it does. Of the places to be covered, those are taken away, leaf
//! by leaf, until nothing is left.

use super::super::{FIRST, ITEM, Kernel, LAST, Leaf, Nest, Step, Tile, Work};
use crate::domain::system::{self, Facts};
use crate::program::affine::div_floor;
use crate::program::{Affine, Atom, Constraint, Range, Relation, TensorId, distinct};
use gradix_int::Int;
use std::cmp::Ordering;

/// A leaf, and the tiles in which it runs.
#[derive(Clone, Copy)]
pub struct Writer<'a> {
    pub leaf: &'a Leaf,
    pub tile: Option<&'a Tile>,
}

/// Places that are written nowhere, each as constraints that would have no solution otherwise.
pub type Uncovered = Vec<Vec<Constraint>>;

/// More parts of the places than this are not told apart.
const MAX_REGIONS: usize = 24;

/// What no writer before has written, of a place that is read in the same item, where `known` holds.
pub fn uncovered(writers: &[Writer], place: &[Affine], known: &Facts) -> Uncovered {
    let conditions = |writer: &Writer| Point::of(writer, place)?.conditions(writer);
    let all: Vec<Vec<Constraint>> = writers.iter().filter_map(conditions).collect();
    if all.iter().any(|conditions| conditions.iter().all(|condition| known.implies(condition))) {
        return Vec::new();
    }
    left(known.known(), all)
}

/// What no item of these kernels writes, of a place that a later kernel reads, or that is part of a result, where `known`
/// holds.
pub fn unwritten(nest: &Nest, kernels: &[Kernel], buffer: TensorId, place: &[Affine], known: &Facts) -> Uncovered {
    let makes = |writer: &Writer| writer.leaf.target == buffer && !reads_target(nest, writer.leaf);
    let mut all = Vec::new();
    for kernel in kernels {
        let writers = writers(&kernel.steps, None).into_iter().filter(makes);
        all.extend(writers.filter_map(|writer| Point::of(&writer, place)?.by_some(&writer, &kernel.work)));
    }
    if all.iter().any(|conditions| conditions.iter().all(|condition| known.implies(condition))) {
        return Vec::new();
    }
    left(known.known(), all)
}

/// Whether a leaf goes on from what its target holds.
pub fn reads_target(nest: &Nest, leaf: &Leaf) -> bool {
    leaf.accumulate || nest.exprs.accesses(leaf.body).any(|(read, _)| read == leaf.target)
}

/// The leaves in order.
pub fn writers<'a>(steps: &'a [Step], tile: Option<&'a Tile>) -> Vec<Writer<'a>> {
    let of_step = |step: &'a Step| match step {
        Step::Tile(tile) => writers(&tile.steps, Some(tile)),
        Step::Leaf(leaf) => vec![Writer { leaf, tile }],
        Step::Together(leaves) => leaves.iter().map(|leaf| Writer { leaf, tile }).collect(),
    };
    steps.iter().flat_map(of_step).collect()
}

/// The parts of a region in which no list of conditions holds.
fn left(region: &[Constraint], taken: Vec<Vec<Constraint>>) -> Uncovered {
    let mut regions = vec![region.to_vec()];
    for conditions in taken {
        let mut rest = Vec::new();
        for mut inside in regions {
            for condition in &conditions {
                let failing = condition.negated().into_iter().map(|not| [inside.as_slice(), &[not]].concat());
                rest.extend(failing.filter(|failing| !system::is_empty(failing)));
                inside.push(condition.clone());
            }
        }
        regions = rest;
        if regions.is_empty() || regions.len() > MAX_REGIONS {
            break;
        }
    }
    regions
}

/// The values of a leaf's outputs at which it writes a place, and what has to hold for that.
struct Point {
    /// What stands for each variable.
    values: Vec<Affine>,
    /// The place is one that the leaf can write at all.
    fits: Vec<Constraint>,
    /// What the place is counted round, if it is a ring.
    ring: Option<(Affine, Int)>,
}

impl Point {
    /// Solves the subscripts for the outputs, one after the other.
    fn of(writer: &Writer, place: &[Affine]) -> Option<Point> {
        let Leaf { subscripts, loops, outputs, .. } = writer.leaf;
        let mut open: Vec<usize> = loops[..*outputs].iter().map(|l| l.variable).collect();
        open.push(ITEM);
        let mut point = Point { values: identity(writer.leaf, place), fits: Vec::new(), ring: None };
        let mut equations = Vec::new();
        for (subscript, at) in subscripts.iter().zip(place) {
            match (round(subscript), round(at)) {
                (Some((own, size)), Some((read, same))) if size == same => {
                    point.ring = Some((read.clone(), size));
                    equations.push((own, read));
                }
                _ => equations.push((subscript.clone(), at.clone())),
            }
        }
        while let Some((subscript, at)) = take_solvable(&mut equations, &open) {
            point.solve(subscript, at, &mut open);
        }
        open.retain(|variable| *variable != ITEM);
        (equations.is_empty() && open.is_empty()).then_some(point)
    }

    /// Takes over what an equation says of the variables that are open.
    fn solve(&mut self, subscript: Affine, at: Affine, open: &mut Vec<usize>) {
        let own: Vec<usize> = open.iter().copied().filter(|v| subscript.uses_index(*v)).collect();
        // A number of an item that the place has, too, is the same one.
        if own.is_empty() || own == [ITEM] && at.uses_index(ITEM) {
            return self.fits.push(Constraint::equal(subscript.with_indices(&self.values), at));
        }
        let mut rest = at - own.iter().fold(subscript.clone(), without).with_indices(&self.values);
        let mut own: Vec<(usize, Int)> = own.into_iter().map(|v| (v, factor(&subscript, v))).collect();
        own.sort_by_key(|(_, factor)| std::cmp::Reverse(factor.clone()));
        let last = own.len() - 1;
        for (position, (variable, factor)) in own.into_iter().enumerate() {
            let value = match position == last {
                true => self.divided(&rest, factor.clone()),
                false => rest.floor_div(&factor),
            };
            rest = rest.add_scaled(&-factor, &value);
            self.values[variable] = value;
            open.retain(|v| *v != variable);
        }
    }

    /// `(e + c) / factor`, where that comes out even: `⌊e / factor⌋` and a number, so that all residues of `e` are told by
    /// the same division.
    fn divided(&mut self, rest: &Affine, factor: Int) -> Affine {
        if factor == Int::ONE || factor == Int::NEG_ONE {
            return rest.scale(&factor);
        }
        let constant = rest.offset().clone();
        let moving = rest.shift(-constant.clone());
        let residue = -(&constant - div_floor(&constant, &factor) * &factor);
        let residue = if residue < Int::ZERO { residue + &factor } else { residue };
        self.fits.push(Constraint::equal(moving.remainder(&factor), Affine::constant(residue.clone())));
        moving.floor_div(&factor).shift((constant + residue) / factor)
    }

    /// What has to hold for the leaf to write the place in the item and tile at hand, or in an earlier tile of it.
    fn conditions(self, writer: &Writer) -> Option<Vec<Constraint>> {
        let mut found = Vec::new();
        for constraint in domain(writer.leaf) {
            let own = constraint.with_indices(&self.values);
            match (&self.ring, writer.tile) {
                (Some(ring), Some(tile)) => found.extend(around(own, ring, tile)),
                _ => found.push(own),
            }
        }
        found.extend(self.fits);
        found.retain(|condition| condition.decided() != Some(true));
        Some(found)
    }

    /// What has to hold for the leaf to write the place in some item and tile.
    fn by_some(self, writer: &Writer, work: &Work) -> Option<Vec<Constraint>> {
        let own: Vec<Constraint> =
            domain(writer.leaf).iter().map(|c| undivided(&c.with_indices(&self.values))).collect();
        let mut found = match writer.tile {
            Some(tile) => joined(own, (tile.variable, tile.variable), tile.size - 1, &tile.range)?,
            None => own,
        };
        let range = Range { low: vec![work.low.clone()], high: vec![work.high.clone()] };
        found = joined(found, (FIRST, LAST), 0, &range)?;
        if let Some(parts) = work.parts.filter(|_| self.values[ITEM] != Affine::index(ITEM)) {
            found.push(Constraint::non_negative(self.values[ITEM].clone()));
            found.push(Constraint::at_most(self.values[ITEM].clone(), Affine::constant(parts - 1)));
        }
        found.extend(self.fits);
        found.retain(|condition| condition.decided() != Some(true));
        Some(found)
    }
}

/// In a ring, what earlier tiles have written is there as long as no later value has taken its place.
fn around(own: Constraint, (at, size): &(Affine, Int), tile: &Tile) -> Vec<Constraint> {
    let factor = factor(&own.affine, tile.variable);
    match factor.cmp(&Int::ZERO) {
        Ordering::Equal => vec![own],
        // A lower bound: that of the first tile.
        Ordering::Less => {
            let bounded = without(own.affine.clone(), &tile.variable);
            vec![own.rebuilt(bounded.add_scaled(&factor, &tile.range.low[0]))]
        }
        // An upper bound: the last value that has been written.
        Ordering::Greater => {
            let last = own.affine.clone() + at.clone();
            vec![Constraint::at_most(last, at.shift(size - Int::ONE)), own]
        }
    }
}

/// The constraints for consecutive pieces `low..=high + more` of a range together: where `e` is bounded by a piece from
/// below and from above, it is bounded by the range. `None` if a piece bounds something on one side only.
fn joined(
    constraints: Vec<Constraint>,
    (low, high): (usize, usize),
    more: i64,
    range: &Range,
) -> Option<Vec<Constraint>> {
    let uses = |c: &Constraint| c.affine.uses_index(low) || c.affine.uses_index(high);
    let (pieces, mut found): (Vec<Constraint>, Vec<Constraint>) = distinct(constraints).into_iter().partition(uses);
    let above = |c: &Constraint| factor(&c.affine, low) == Int::NEG_ONE;
    for lower in pieces.iter().filter(|c| above(c)) {
        // e - low >= 0, and with it high + more - e >= 0
        let bounded = lower.affine.clone() + Affine::index(low);
        let upper = Constraint::at_most(bounded.clone(), Affine::index(high).shift(more));
        if bounded.uses_index(low) || bounded.uses_index(high) || !pieces.contains(&upper) {
            return None;
        }
        found.extend(range.low.iter().map(|low| Constraint::at_most(low.clone(), bounded.clone())));
        found.extend(range.high.iter().map(|high| Constraint::at_most(bounded.clone(), high.clone())));
    }
    let paired = pieces.iter().filter(|c| above(c)).count();
    (pieces.len() == 2 * paired).then(|| distinct(found))
}

/// What holds for the outputs wherever a leaf writes.
fn domain(leaf: &Leaf) -> Vec<Constraint> {
    let outputs = leaf.loops[..leaf.outputs].iter().flat_map(|l| l.range.constraints(l.variable));
    let guards = leaf.guards.iter().filter(|_| leaf.reduction.is_none()).cloned();
    outputs.chain(guards).collect()
}

/// An equation whose open variables are determined by it: one, or two of which one counts inside the other's steps.
fn take_solvable(equations: &mut Vec<(Affine, Affine)>, open: &[usize]) -> Option<(Affine, Affine)> {
    let solvable = |(subscript, _): &(Affine, Affine)| {
        let own: Vec<Int> = open.iter().filter(|v| subscript.uses_index(**v)).map(|v| factor(subscript, *v)).collect();
        match own.as_slice() {
            [] => true,
            [one] => *one == Int::NEG_ONE || *one > Int::ZERO,
            [a, b] => (*a == Int::ONE && *b > Int::ONE) || (*b == Int::ONE && *a > Int::ONE),
            _ => false,
        }
    };
    let place = equations.iter().position(solvable)?;
    Some(equations.remove(place))
}

/// `e`, and what it is counted round: `e % size`.
fn round(affine: &Affine) -> Option<(Affine, Int)> {
    affine.terms().iter().find_map(|(atom, _)| match atom {
        Atom::Floor(inner, size) if inner.remainder(size) == *affine => Some(((**inner).clone(), size.clone())),
        _ => None,
    })
}

/// `v >= ⌊e / c⌋` as `c*v >= e - c + 1`, and `v <= ⌊e / c⌋` as `c*v <= e`, where `e` has to do with the item.
fn undivided(constraint: &Constraint) -> Constraint {
    let of_item = |inner: &Affine| inner.uses_index(FIRST) || inner.uses_index(LAST);
    let division = constraint.affine.terms().iter().find_map(|(atom, one)| match atom {
        Atom::Floor(inner, c) if of_item(inner) && (*one == Int::ONE || *one == Int::NEG_ONE) => {
            Some((atom.clone(), one.clone(), (**inner).clone(), c.clone()))
        }
        _ => None,
    });
    let Some((atom, one, inner, c)) = division.filter(|_| constraint.relation == Relation::NonNegative) else {
        return constraint.clone();
    };
    let rest = constraint.affine.add_scaled(&-one.clone(), &Affine::atom(atom)).scale(&c);
    let slack = if one == Int::ONE { Int::ZERO } else { c - Int::ONE };
    Constraint::non_negative(rest.add_scaled(&one, &inner).shift(slack))
}

fn factor(affine: &Affine, variable: usize) -> Int {
    affine.coefficient(&Atom::Index(variable as u32))
}

fn without(affine: Affine, variable: &usize) -> Affine {
    let factor = factor(&affine, *variable);
    affine.add_scaled(&-factor, &Affine::index(*variable))
}

/// Every variable for itself.
fn identity(leaf: &Leaf, place: &[Affine]) -> Vec<Affine> {
    let mut last = ITEM;
    let mut see = |affine: &Affine| affine.visit_indices(&mut |v| last = last.max(v));
    place.iter().chain(&leaf.subscripts).for_each(&mut see);
    domain(leaf).iter().for_each(|constraint| see(&constraint.affine));
    leaf.loops.iter().for_each(|l| see(&Affine::index(l.variable)));
    (0..=last).map(Affine::index).collect()
}
