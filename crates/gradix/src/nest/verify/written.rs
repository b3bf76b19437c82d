//! That what is read has been written before, and that every element of a result is written.
//!
//! ```text
//! for i in tile..=tile + 7:  t[i - tile] = …              t is read at i - tile, for i in tile..=tile + 7:
//! for i in tile..=tile + 7:  y[i] = 2 * t[i - tile]       the leaf that writes that place is at the same i
//! ```
//!
//! For a place, the point at which a leaf would write it is found by solving the leaf's subscripts; what its loops and
//! guards say of that point are the conditions under which it does. Of the places to be covered, those are taken away, leaf
//! by leaf, until nothing is left. Where subscripts can't be solved for, or too many parts are left, nothing is claimed.

use super::super::{Kernel, Leaf, LoopId, Nest, Step, Tile, Work};
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
    /// The items of its kernel.
    work: &'a [Work],
    /// Whether it does not go on from what its target holds.
    pub starts: bool,
    /// What is added to the numbers of its variables, so that those of another kernel are different ones.
    base: u32,
}

impl Writer<'_> {
    /// Whether a buffer holds what this leaf says, and nothing from before.
    pub fn makes(&self, buffer: TensorId) -> bool {
        self.starts && self.leaf.target == buffer
    }

    fn moved(&self, affine: &Affine) -> Affine {
        if self.base == 0 {
            return affine.clone();
        }
        affine.substitute(&mut |atom| match atom {
            Atom::Index(v) => Some(Affine::index(self.own(LoopId(*v)))),
            Atom::Param(_) | Atom::Floor(..) => None,
        })
    }

    fn subscripts(&self) -> Vec<Affine> {
        self.leaf.subscripts.iter().map(|subscript| self.moved(subscript)).collect()
    }

    fn outputs(&self) -> Vec<LoopId> {
        self.leaf.loops[..self.leaf.outputs].iter().map(|l| self.own(l.variable)).collect()
    }

    /// The numbers of the item along each dimension.
    fn items(&self) -> Vec<LoopId> {
        self.work.iter().map(|work| self.own(work.item)).collect()
    }

    /// The only value that an item covers along each dimension in which it has no other one.
    fn only(&self) -> Vec<(LoopId, &Work)> {
        let is_one = |work: &&Work| work.parts.is_none() && work.step == Affine::constant(1);
        self.work.iter().filter(is_one).map(|work| (self.own(work.first), work)).collect()
    }

    /// What stands for one of its variables beside those of others.
    fn own(&self, variable: LoopId) -> LoopId {
        LoopId(variable.0 + self.base)
    }

    /// What holds for the outputs wherever the leaf writes.
    fn domain(&self) -> Vec<Constraint> {
        let outputs = self.leaf.loops[..self.leaf.outputs].iter().flat_map(|l| l.range.constraints(l.variable));
        let guards = self.leaf.guards.iter().filter(|_| self.leaf.reduction.is_none()).cloned();
        outputs.chain(guards).map(|constraint| constraint.rebuilt(self.moved(&constraint.affine))).collect()
    }
}

/// Places that are written nowhere, each as constraints that would have no solution otherwise; `None` where that can't be told.
pub type Uncovered = Option<Vec<Vec<Constraint>>>;

/// More parts of the places than this are not told apart.
const MAX_REGIONS: usize = 24;

/// What no writer before has written, of a place that is read in the same item, where `known` holds.
pub fn uncovered(writers: &[Writer], place: &[Affine], known: &Facts) -> Uncovered {
    let conditions = |writer: &Writer| Some(Point::of(writer, place, &[])?.conditions(writer));
    left(known, writers.iter().map(conditions).collect())
}

/// What these leaves of earlier kernels write in no item, of a place that a later kernel reads, or that is part of a
/// result, where `known` holds.
pub fn unwritten(writers: &[Writer], place: &[Affine], known: &Facts) -> Uncovered {
    let mut base = 0;
    let used = known.known().iter().map(|row| &row.affine).chain(place);
    used.for_each(|affine| affine.visit_indices(&mut |v| base = base.max(v as u32 + 1)));
    let moved = writers.iter().map(|writer| Writer { base, ..*writer });
    let by_some = |writer: Writer| {
        let only: Vec<LoopId> = writer.only().into_iter().map(|(first, _)| first).collect();
        Point::of(&writer, place, &only)?.by_some(&writer)
    };
    left(known, moved.map(by_some).collect())
}

/// The leaves of a kernel in order.
pub fn writers<'a>(nest: &Nest, kernel: &'a Kernel) -> Vec<Writer<'a>> {
    writers_in(nest, &kernel.work, &kernel.steps, None)
}

fn writers_in<'a>(nest: &Nest, work: &'a [Work], steps: &'a [Step], tile: Option<&'a Tile>) -> Vec<Writer<'a>> {
    let writer = |leaf: &'a Leaf| {
        let goes_on = leaf.accumulate || leaf.reads(&nest.exprs, leaf.target);
        Writer { leaf, tile, work, starts: !goes_on, base: 0 }
    };
    let of_step = |step: &'a Step| match step {
        Step::Tile(tile) => writers_in(nest, work, &tile.steps, Some(tile)),
        Step::Leaf(leaf) => vec![writer(leaf)],
        Step::Together(together) => together.leaves.iter().map(writer).collect(),
    };
    steps.iter().flat_map(of_step).collect()
}

/// The parts of a region in which no writer's conditions hold. Where the places of a writer could not be solved for, or too
/// many parts are left, that can't be told.
fn left(known: &Facts, writers: Vec<Option<Vec<Constraint>>>) -> Uncovered {
    let holds = |conditions: &Vec<Constraint>| conditions.iter().all(|condition| known.implies(condition));
    if writers.iter().flatten().any(holds) {
        return Some(Vec::new());
    }
    let mut regions = vec![known.known().to_vec()];
    let is_complete = writers.iter().all(Option::is_some);
    for conditions in writers.into_iter().flatten() {
        regions = regions.into_iter().flat_map(|region| outside(region, &conditions)).collect();
        if regions.is_empty() || regions.len() > MAX_REGIONS {
            break;
        }
    }
    (regions.is_empty() || is_complete && regions.len() <= MAX_REGIONS).then_some(regions)
}

/// The parts of a region in which one of the conditions fails; all of it, if that is so everywhere.
fn outside(region: Vec<Constraint>, conditions: &[Constraint]) -> Vec<Vec<Constraint>> {
    let open: Vec<&Constraint> = conditions.iter().filter(|condition| !region.contains(condition)).collect();
    let mut inside = region.clone();
    inside.extend(open.iter().copied().cloned());
    if system::is_empty(&inside) {
        return vec![region];
    }
    let (mut inside, mut parts) = (region.clone(), Vec::new());
    let known = Facts::new(region);
    for condition in open {
        if !known.implies(condition) {
            let failing = condition.negated().into_iter().map(|not| [inside.as_slice(), &[not]].concat());
            parts.extend(failing.filter(|failing| !system::is_empty(failing)));
        }
        inside.push(condition.clone());
    }
    parts
}

/// The values of a leaf's outputs at which it writes a place, and what has to hold for that.
struct Point {
    /// What stands for variables.
    values: Vec<(LoopId, Affine)>,
    /// The place is one that the leaf can write at all.
    fits: Vec<Constraint>,
    /// What the place is counted round, if it is a ring.
    ring: Option<(Affine, Int)>,
}

impl Point {
    /// Solves the subscripts for the outputs and for what tells the item, one after the other.
    fn of(writer: &Writer, place: &[Affine], only: &[LoopId]) -> Option<Point> {
        let items = writer.items();
        let mut open = [writer.outputs().as_slice(), &items, only].concat();
        let mut point = Point { values: Vec::new(), fits: Vec::new(), ring: None };
        let mut equations = Vec::new();
        for (subscript, at) in writer.subscripts().into_iter().zip(place) {
            match (round(&subscript), round(at)) {
                (Some((own, size)), Some((read, same))) if size == same => {
                    point.ring = Some((read.clone(), size));
                    equations.push((own, read));
                }
                _ => equations.push((subscript, at.clone())),
            }
        }
        while let Some((subscript, at)) = take_solvable(&mut equations, &open) {
            point.solve(subscript, at, &mut open, &items);
        }
        open.retain(|variable| !items.contains(variable) && !only.contains(variable));
        (equations.is_empty() && open.is_empty()).then_some(point)
    }

    /// Takes over what an equation says of the variables that are open.
    fn solve(&mut self, subscript: Affine, at: Affine, open: &mut Vec<LoopId>, items: &[LoopId]) {
        let own: Vec<LoopId> = open.iter().copied().filter(|v| subscript.uses_index(*v)).collect();
        // A number of an item that the place has, too, is the same one.
        let is_same = |own: &[LoopId]| matches!(own, [one] if items.contains(one) && at.uses_index(*one));
        if own.is_empty() || is_same(&own) {
            return self.fits.push(Constraint::equal(self.at(&subscript), at));
        }
        let mut rest = at - self.at(&own.iter().fold(subscript.clone(), without));
        let mut own: Vec<(LoopId, Int)> = own.into_iter().map(|v| (v, subscript.step_of(v))).collect();
        own.sort_by_key(|(_, factor)| std::cmp::Reverse(factor.clone()));
        let last = own.len() - 1;
        for (position, (variable, factor)) in own.into_iter().enumerate() {
            let value = match position == last {
                true => self.divided(&rest, factor.clone()),
                false => rest.floor_div(&factor),
            };
            rest = rest.add_scaled(&-factor, &value);
            self.values.push((variable, value));
            open.retain(|v| *v != variable);
        }
    }

    fn value(&self, variable: LoopId) -> Option<&Affine> {
        self.values.iter().find(|(own, _)| *own == variable).map(|(_, value)| value)
    }

    /// An expression at this point.
    fn at(&self, affine: &Affine) -> Affine {
        affine.substitute(&mut |atom| match atom {
            Atom::Index(variable) => self.value(LoopId(*variable)).cloned(),
            Atom::Param(_) | Atom::Floor(..) => None,
        })
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
    fn conditions(self, writer: &Writer) -> Vec<Constraint> {
        let mut found = Vec::new();
        for constraint in writer.domain() {
            let own = constraint.rebuilt(self.at(&constraint.affine));
            match (&self.ring, writer.tile) {
                (Some(ring), Some(tile)) => found.extend(around(own, ring, tile)),
                _ => found.push(own),
            }
        }
        found.extend(self.fits);
        found.retain(|condition| condition.decided() != Some(true));
        found
    }

    /// What has to hold for the leaf to write the place in some item and tile.
    fn by_some(self, writer: &Writer) -> Option<Vec<Constraint>> {
        let items = writer.work.iter().map(|work| (work, work.variables().map(|variable| writer.own(variable))));
        let of_item: Vec<LoopId> = items.clone().flat_map(|(_, [first, last, _])| [first, last]).collect();
        let own = writer.domain();
        let own = own.iter().map(|c| undivided(&c.rebuilt(self.at(&c.affine)), &of_item)).collect();
        let mut found = match writer.tile {
            Some(tile) => {
                let variable = writer.own(tile.variable);
                joined(own, (variable, variable), tile.size - 1, &tile.range.map(|bound| writer.moved(bound)))?
            }
            None => own,
        };
        for (work, [first, last, item]) in items {
            let range = Range { low: vec![work.low.clone()], high: vec![work.high.clone()] };
            found = joined(found, (first, last), 0, &range)?;
            if let (Some(parts), Some(value)) = (work.parts, self.value(item)) {
                found.push(Constraint::non_negative(value.clone()));
                found.push(Constraint::at_most(value.clone(), Affine::constant(parts - 1)));
            }
        }
        for (first, work) in writer.only() {
            let ends = |value: &Affine| {
                [
                    Constraint::at_most(work.low.clone(), value.clone()),
                    Constraint::at_most(value.clone(), work.high.clone()),
                ]
            };
            found.extend(self.value(first).into_iter().flat_map(ends));
        }
        found.extend(self.fits);
        found.retain(|condition| condition.decided() != Some(true));
        Some(found)
    }
}

/// In a ring, what earlier tiles have written is there as long as no later value has taken its place.
fn around(own: Constraint, (at, size): &(Affine, Int), tile: &Tile) -> Vec<Constraint> {
    let factor = own.affine.step_of(tile.variable);
    match factor.cmp(&Int::ZERO) {
        Ordering::Equal => vec![own],
        // A lower bound: that of the first tile.
        Ordering::Less => {
            let bounded = without(own.affine.clone(), &tile.variable);
            tile.range.low.iter().map(|start| own.rebuilt(bounded.add_scaled(&factor, start))).collect()
        }
        // An upper bound: the last value that has been written.
        Ordering::Greater => {
            let last = own.affine.clone() + at.clone();
            vec![Constraint::at_most(last, at.shift(size - Int::ONE)), own]
        }
    }
}

/// The constraints for consecutive pieces `low..=high + more` of a range together: what a piece bounds is bounded by the
/// range. `None` if it bounds more than one expression, as then not all need have the same piece.
fn joined(
    constraints: Vec<Constraint>,
    (low, high): (LoopId, LoopId),
    more: i64,
    range: &Range,
) -> Option<Vec<Constraint>> {
    let uses = |c: &Constraint| c.affine.uses_index(low) || c.affine.uses_index(high);
    let (pieces, mut found): (Vec<Constraint>, Vec<Constraint>) = distinct(constraints).into_iter().partition(uses);
    if !pieces.is_empty() {
        // There is a piece at all.
        let ends = range.low.iter().flat_map(|low| range.high.iter().map(move |high| (low.clone(), high.clone())));
        found.extend(ends.map(|(low, high)| Constraint::at_most(low, high)));
    }
    let (mut least, mut greatest): (Option<Affine>, Option<Affine>) = (None, None);
    for Constraint { affine, .. } in pieces {
        // e - low >= 0, or high + more - e >= 0; of several, the strictest counts.
        match affine.step_of(low) == Int::NEG_ONE {
            true => least = Some(stricter(affine + Affine::index(low), least, Ordering::Less)?),
            false => greatest = Some(stricter(Affine::index(high).shift(more) - affine, greatest, Ordering::Greater)?),
        }
    }
    if least.iter().chain(&greatest).any(|e| e.uses_index(low) || e.uses_index(high)) {
        return None;
    }
    if let (Some(least), Some(greatest)) = (&least, &greatest) {
        // `e` and `e + d` in one piece: with d > 0, those at the ends of pieces are in none.
        let gap = greatest.clone() - least.clone();
        found.extend((*gap.as_constant()? > Int::ZERO).then(|| Constraint::non_negative(Affine::constant(-1))));
    }
    if let Some(e) = least {
        found.extend(range.low.iter().map(|low| Constraint::at_most(low.clone(), e.clone())));
    }
    if let Some(e) = greatest {
        found.extend(range.high.iter().map(|high| Constraint::at_most(e.clone(), high.clone())));
    }
    Some(distinct(found))
}

/// Of two expressions, the one that is smaller or greater than the other; `None` if that is not so everywhere.
fn stricter(a: Affine, b: Option<Affine>, wanted: Ordering) -> Option<Affine> {
    let Some(b) = b else { return Some(a) };
    let (less, more) = if wanted == Ordering::Less { (&a, &b) } else { (&b, &a) };
    let is_first = system::implies(&[], &Constraint::at_most(less.clone(), more.clone()));
    let is_second = || system::implies(&[], &Constraint::at_most(more.clone(), less.clone()));
    if is_first { Some(a) } else { is_second().then_some(b) }
}

/// An equation whose open variables are determined by it: one, or two of which one counts inside the other's steps.
fn take_solvable(equations: &mut Vec<(Affine, Affine)>, open: &[LoopId]) -> Option<(Affine, Affine)> {
    let solvable = |(subscript, _): &(Affine, Affine)| {
        let own: Vec<Int> = open.iter().filter(|v| subscript.uses_index(**v)).map(|v| subscript.step_of(*v)).collect();
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

/// `e`, and what it is counted round: `e % size`. Of the many `e`, the one that is shifted least.
fn round(affine: &Affine) -> Option<(Affine, Int)> {
    affine.terms().iter().find_map(|(atom, _)| match atom {
        Atom::Floor(inner, size) if inner.remainder(size) == *affine => {
            let half = size / Int::from(2);
            let rounds = div_floor(&(inner.offset() + &half), size);
            Some((inner.shift(-(rounds * size)), size.clone()))
        }
        _ => None,
    })
}

/// `v >= ⌊e / c⌋` as `c*v >= e - c + 1`, and `v <= ⌊e / c⌋` as `c*v <= e`, where `e` has to do with the item.
fn undivided(constraint: &Constraint, ends: &[LoopId]) -> Constraint {
    let of_item = |inner: &Affine| ends.iter().any(|end| inner.uses_index(*end));
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

fn without(affine: Affine, variable: &LoopId) -> Affine {
    let factor = affine.step_of(*variable);
    affine.add_scaled(&-factor, &Affine::index(*variable))
}
