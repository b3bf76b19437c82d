//! Ranges that move with what would best be lanes or rows: triangles, bands, and conditions on the outputs of a reduction.
//!
//! ```text
//! for i: for d lanes: sum j in 0..=i                 for b: for i in block b unrolled: for d lanes: sum j in 0..=48*b
//!                                                    for b: for i in block b: for d lanes: sum j in 48*b + 1..=i, added
//! ```
//!
//! Some values of an output at a time have a part of the range in common, and that is a box: the *flat* part has lanes, rows
//! and panels as if nothing moved. What is left at either end is a *step* of the stairs.

use super::blocks;
use super::masks;
use super::{Looping, Making, shape};
use crate::domain::bounds;
use crate::domain::guard;
use crate::domain::system::{self, Facts};
use crate::nest::{Kind, Leaf, LoopId};
use crate::program::{Affine, Atom, Constraint, Expr, Range, Relation};
use crate::target::cost;
use gradix_int::Int;

/// A leaf as several, in order, so that ranges of most of its points move with neither lanes nor rows.
pub fn stairs(looping: &mut Looping, leaf: Leaf, making: &mut Making) -> Vec<Leaf> {
    if leaf.reduction.is_none() {
        return vec![leaf];
    }
    let Bounded { mut flat, mut given, outside } = bounded(looping, leaf, making);
    let (mut steps, mut cut) = (Vec::new(), Vec::new());
    while let Some(stair) = Stair::of(looping, &flat, (&given, &cut[..]), making) {
        if let Some(size) = &stair.block {
            let block = making.variable(&format!("{}_block", &making.kernel[stair.output]));
            flat = blocks::cut(looping, flat, &mut given, (stair.output, block), size);
            cut.push(block);
        }
        let (next, others) = stair.parts(looping, flat, &given, making);
        flat = next;
        // Steps go on from the flat part that they belong to, all of it.
        steps.splice(0..0, others);
    }
    std::iter::once(flat).chain(steps).chain(outside).collect()
}

/// The ranges that some loops had.
pub type Ranges = Vec<(LoopId, Range)>;

/// A reduction whose conditions on outputs have become bounds of these.
struct Bounded {
    flat: Leaf,
    /// The ranges of its outputs before: the reduction may be computed there, too, as `outside` comes after.
    given: Ranges,
    /// The neutral value, where the conditions fail.
    outside: Vec<Leaf>,
}

fn bounded(looping: &mut Looping, leaf: Leaf, making: &Making) -> Bounded {
    let (outputs, terms) = leaf.loops.split_at(leaf.outputs);
    let of_outputs = |guard: &Constraint| {
        let free = terms.iter().all(|term| !guard.affine.uses_index(term.variable));
        free && guard.relation == Relation::NonNegative && guard.affine.is_straight()
    };
    let (conditions, guards): (Vec<_>, Vec<_>) = leaf.guards.iter().cloned().partition(of_outputs);
    let unchanged = |leaf| Bounded { flat: leaf, given: Vec::new(), outside: Vec::new() };
    if conditions.is_empty() {
        return unchanged(leaf);
    }
    let domain: Vec<Constraint> =
        outputs.iter().flat_map(|l| l.range.constraints(l.variable).collect::<Vec<_>>()).collect();
    let solved = |more: &[Constraint]| {
        let variables: Vec<usize> = outputs.iter().map(|l| l.variable.number()).collect();
        let found = system::solve([domain.as_slice(), more].concat(), &variables, &making.context);
        let found = found.ok()?.filter(|solved| solved.conditions.is_empty() && solved.outer.is_empty());
        found.map(|solved| solved.ranges)
    };
    let Some(ranges) = solved(&conditions) else { return unchanged(leaf) };
    let (mut outside, mut before) = (Vec::new(), Vec::new());
    for condition in conditions.iter().filter(|_| !leaf.accumulate) {
        for failing in condition.negated() {
            let here = [before.as_slice(), &[failing]].concat();
            if system::is_empty(&[&making.context, domain.as_slice(), &here].concat()) {
                continue;
            }
            let Some(ranges) = solved(&here) else { return unchanged(leaf) };
            outside.push(neutral(looping, &leaf, ranges));
        }
        before.push(condition.clone());
    }
    let given = match leaf.accumulate {
        true => Vec::new(),
        false => outputs.iter().map(|l| (l.variable, l.range.clone())).collect(),
    };
    Bounded { flat: with_outputs(Leaf { guards, ..leaf }, ranges), given, outside }
}

fn with_outputs(mut leaf: Leaf, ranges: Vec<Range>) -> Leaf {
    leaf.loops.iter_mut().zip(ranges).for_each(|(l, range)| l.range = range);
    leaf
}

/// The neutral value of a reduction for these values of its outputs.
fn neutral(looping: &mut Looping, leaf: &Leaf, ranges: Vec<Range>) -> Leaf {
    let op = leaf.reduction.expect("a reduction");
    let body = looping.exprs.constant(op.neutral());
    let loops = leaf.loops[..leaf.outputs].to_vec();
    with_outputs(Leaf::pointwise(leaf.target, leaf.subscripts.clone(), loops, body), ranges)
}

/// An output that would best be lanes or rows, and a loop whose range moves with it.
struct Stair {
    output: LoopId,
    moved: LoopId,
    /// Whether the output would be lanes.
    in_lanes: bool,
    /// How many of its values are taken at a time, if not all that there are.
    block: Option<Int>,
}

impl Stair {
    /// The next one, but for the loops over blocks that were cut.
    fn of(looping: &Looping, leaf: &Leaf, (given, cut): (&Ranges, &[LoopId]), making: &Making) -> Option<Stair> {
        let moves = |v: LoopId| leaf.loops.iter().position(|l| uses(&l.range, v));
        if !leaf.loops[..leaf.outputs].iter().any(|l| moves(l.variable).is_some()) {
            return None;
        }
        let extents = looping.extents(&leaf.loops);
        let wanted = as_if_flat(looping, leaf, cut, &extents);
        wanted.loops[..leaf.outputs].iter().enumerate().find_map(|(position, l)| {
            let (in_lanes, unit, most) = match l.kind {
                Kind::Lanes(_) => (true, looping.lanes, looping.lanes * cost::STAIR_VECTORS),
                Kind::Unrolled(count) => (false, count as f64, cost::STAIR_ROWS),
                Kind::Serial | Kind::Threads(_) => return None,
            };
            let moved = moves(l.variable)?;
            let at = Stair { output: l.variable, moved: leaf.loops[moved].variable, in_lanes, block: None };
            let range = &leaf.loops[moved].range;
            // A band has two steps for each flat part.
            let share = if [&range.low, &range.high].iter().all(|bounds| moving(bounds, l.variable).is_some()) {
                4.0
            } else {
                2.0
            };
            // What may be computed beyond the range leaves no steps.
            let whole = given.iter().any(|(v, range)| *v == at.moved && !uses(range, at.output));
            let room = if whole { most } else { most.min(extents[moved] / share) };
            let size = (room / unit).floor() * unit;
            let least = if in_lanes { unit } else { 2.0 * unit };
            let fits = at.splits(range) && extents[position] > unit && size >= least;
            let has_tile = uses(&leaf.loops[position].range, making.tile);
            let block = (extents[position] > size || !has_tile).then(|| Int::from(size as i64));
            fits.then_some(Stair { block, ..at })
        })
    }

    /// Whether at most one bound moves on either side, and in one direction.
    fn splits(&self, range: &Range) -> bool {
        let fits = |bounds: &[Affine]| {
            let mut moving = bounds.iter().filter(|bound| bound.uses_index(self.output));
            let even = moving.next().is_none_or(|bound| rises(bound, self.output).is_some());
            even && moving.next().is_none()
        };
        fits(&range.low) && fits(&range.high)
    }

    /// The flat part, and the steps.
    fn parts(&self, looping: &mut Looping, leaf: Leaf, given: &Ranges, making: &Making) -> (Leaf, Vec<Leaf>) {
        let place = |v: LoopId| leaf.loops.iter().position(|l| l.variable == v).expect("a loop of the leaf");
        let (output, moved) = (place(self.output), place(self.moved));
        let ends = Ends::of(&leaf.loops[output].range, self.output, making);
        let whole = leaf.loops[moved].range.clone();
        let with = |range: Range, accumulate: bool| {
            let mut part = leaf.clone();
            part.loops[moved].range = range;
            part.accumulate |= accumulate;
            part
        };
        let around = given.iter().find(|(v, range)| *v == self.moved && !uses(range, self.output));
        if let Some((_, around)) = around {
            let hull = with(joined(around, &ends.outer(&whole)), false);
            if stays_inside(looping, &hull, making) {
                return (hull, Vec::new());
            }
        }
        let is_term = moved >= leaf.outputs;
        let flat = with(ends.inner(&whole), false);
        let mut steps = Vec::new();
        for range in ends.steps(&whole) {
            let masked =
                if is_term && self.in_lanes { self.masked(looping, &leaf, &ends, &range, making) } else { None };
            steps.push(masked.unwrap_or_else(|| with(range, is_term)));
        }
        (flat, steps)
    }

    /// A step with all lanes alike: those that leave the range have the neutral value.
    fn masked(&self, looping: &mut Looping, leaf: &Leaf, ends: &Ends, range: &Range, making: &Making) -> Option<Leaf> {
        let mut step = leaf.clone();
        let place = leaf.loops.iter().position(|l| l.variable == self.moved)?;
        step.loops[place].range = ends.outer(range);
        step.accumulate = true;
        let bounds = range.low.iter().chain(&range.high);
        if !bounds.into_iter().all(masks::is_comparable) || !stays_inside(looping, &step, making) {
            return None;
        }
        let at = Affine::index(self.moved);
        let below = moving(&range.low, self.output).map(|low| at.clone() - low.clone());
        let above = moving(&range.high, self.output).map(|high| high.clone() - at.clone());
        let exprs = &mut looping.exprs;
        let none = exprs.constant(leaf.reduction?.neutral());
        for room in below.into_iter().chain(above) {
            let holds = masks::compared(exprs, &Constraint::non_negative(room));
            step.body = exprs.add(Expr::Select(holds, step.body, none));
        }
        Some(step)
    }
}

/// Whether a bound rises with a variable, or falls; `None` if parts of it differ.
fn rises(bound: &Affine, v: LoopId) -> Option<bool> {
    let moving = bound.terms().iter().filter_map(|(atom, factor)| match atom {
        Atom::Index(index) if LoopId(*index) == v => Some(Some(*factor > Int::ZERO)),
        Atom::Floor(inner, _) if inner.uses_index(v) => {
            Some(rises(inner, v).map(|rising| rising == (*factor > Int::ZERO)))
        }
        Atom::Index(_) | Atom::Floor(..) | Atom::Param(_) => None,
    });
    let found: Vec<Option<bool>> = moving.collect();
    let first = *found.first()?;
    first.filter(|_| found.iter().all(|other| *other == first))
}

fn uses(range: &Range, v: LoopId) -> bool {
    range.low.iter().chain(&range.high).any(|bound| bound.uses_index(v))
}

fn moving(bounds: &[Affine], v: LoopId) -> Option<&Affine> {
    bounds.iter().find(|bound| bound.uses_index(v))
}

/// The bounds of both.
fn joined(a: &Range, b: &Range) -> Range {
    let with = |a: &[Affine], b: &[Affine]| {
        let more = b.iter().filter(|bound| !a.contains(bound));
        a.iter().chain(more).cloned().collect()
    };
    Range { low: with(&a.low, &b.low), high: with(&a.high, &b.high) }
}

/// The leaf with the kinds that its loops would have if all ranges were numbers; those over blocks stay serial.
fn as_if_flat(looping: &Looping, leaf: &Leaf, cut: &[LoopId], extents: &[f64]) -> Leaf {
    let mut flat = leaf.clone();
    for (l, extent) in flat.loops.iter_mut().zip(extents) {
        let extent = if cut.contains(&l.variable) { 1 } else { *extent as i64 };
        l.range = Range::extent(Affine::constant(extent));
    }
    shape::choose(looping, &mut flat);
    flat
}

/// What bounds the values of an output that are taken at a time, on either side the nearest first.
struct Ends {
    output: LoopId,
    low: Vec<Affine>,
    high: Vec<Affine>,
}

impl Ends {
    fn of(range: &Range, output: LoopId, making: &Making) -> Ends {
        let sorted = |bounds: &[Affine]| {
            let mut bounds = bounds.to_vec();
            bounds.sort_by_key(|bound| (bound.as_constant().is_none(), !bound.uses_index(making.tile)));
            bounds
        };
        Ends { output, low: sorted(&range.low), high: sorted(&range.high) }
    }

    /// A bound at each end on the side where it is least, or greatest.
    fn all<'a>(&'a self, bound: &'a Affine, least: bool) -> impl Iterator<Item = Affine> + 'a {
        let ends = if (rises(bound, self.output) == Some(true)) == least { &self.low } else { &self.high };
        ends.iter().map(|end| {
            bound.substitute(&mut |atom| match atom {
                Atom::Index(index) if LoopId(*index) == self.output => Some(end.clone()),
                Atom::Index(_) | Atom::Floor(..) | Atom::Param(_) => None,
            })
        })
    }

    /// The same at the nearest end.
    fn at(&self, bound: &Affine, least: bool) -> Affine {
        self.all(bound, least).next().expect("a range has bounds")
    }

    /// What is in the range for all values.
    fn inner(&self, range: &Range) -> Range {
        let each = |bounds: &[Affine], least| {
            let at = |bound: &Affine| if bound.uses_index(self.output) { self.at(bound, least) } else { bound.clone() };
            bounds.iter().map(at).collect()
        };
        Range { low: each(&range.low, false), high: each(&range.high, true) }
    }

    /// What is in the range for some values.
    fn outer(&self, range: &Range) -> Range {
        let each = |bounds: &[Affine], least| {
            let (moving, fixed): (Vec<&Affine>, Vec<&Affine>) = bounds.iter().partition(|b| b.uses_index(self.output));
            fixed.into_iter().cloned().chain(moving.into_iter().flat_map(|bound| self.all(bound, least))).collect()
        };
        Range { low: each(&range.low, true), high: each(&range.high, false) }
    }

    /// What is before and after the inner range.
    fn steps(&self, range: &Range) -> Vec<Range> {
        let mut found = Vec::new();
        let first = moving(&range.low, self.output).map(|low| self.at(low, false));
        if let Some(first) = &first {
            let high = range.high.iter().cloned().chain([first.shift(-1)]).collect();
            found.push(Range { low: range.low.clone(), high });
        }
        if let Some(high) = moving(&range.high, self.output) {
            let last = self.at(high, true);
            let fixed = range.low.iter().filter(|bound| !bound.uses_index(self.output));
            let low = fixed.cloned().chain(first).chain([last.shift(1)]).collect();
            found.push(Range { low, high: range.high.clone() });
        }
        found
    }
}

/// Whether all that a leaf reads exists.
pub fn stays_inside(looping: &mut Looping, leaf: &Leaf, making: &Making) -> bool {
    let domain = [making.context.as_slice(), &leaf.domain()].concat();
    let accesses = guard::guarded_accesses(&mut looping.exprs, leaf.body);
    accesses.iter().all(|(access, guards)| {
        let Expr::Access(tensor, subscripts) = &looping.exprs[*access] else { return true };
        let Some(tensor) = looping.program.tensors.get(tensor.0 as usize) else { return false };
        let pairs = subscripts.iter().zip(&tensor.extents);
        let needed: Vec<Constraint> = pairs.flat_map(|(at, extent)| bounds::inside(at, extent)).collect();
        guards.iter().all(|guard| {
            let known = Facts::new([domain.as_slice(), guard.as_slice()].concat());
            needed.iter().all(|row| known.implies(row))
        })
    })
}
