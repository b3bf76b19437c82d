//! Blocks: an output `o` at which something is read as `w[o // 32, …, o % 32]` becomes two loops, over blocks and over
//! the values in a block, so that subscripts contain no division. So does an output of which some values are taken at a time, and
//! one that stands for a group and a place in it, as channels of `w[f, c % 8]` and `x[8*(c // 8) + f]` do: the places share what
//! the group reads.

use super::place::Placed;
use super::stairs::Ranges;
use super::{Looping, Making};
use crate::nest::{Kind, Leaf, Loop, LoopId};
use crate::program::expr::{Rewriter, Rules};
use crate::program::{Affine, Atom, Constraint, Expr, Range};
use gradix_int::Int;

/// The reduction as it is, or with one of its outputs in blocks.
pub fn blocks(looping: &mut Looping, placed: Placed, making: &mut Making) -> Placed {
    match divided(looping, &placed).or_else(|| grouped(looping, &placed)) {
        Some((position, size)) => split(looping, placed, making, position, size),
        None => placed,
    }
}

/// The position of an output, and the size of its blocks, where both quotient and remainder are subscripts of an access
/// and a block is wide enough for a loop in lanes.
fn divided(looping: &Looping, placed: &Placed) -> Option<(usize, Int)> {
    placed.reduction?;
    let (exprs, least) = (&looping.exprs, Int::from(looping.target.wide() as i64));
    let nodes = exprs.postorder(placed.body);
    let accesses = nodes.iter().filter_map(|id| match &exprs[*id] {
        Expr::Access(_, subscripts) => Some(subscripts),
        _ => None,
    });
    accesses.into_iter().find_map(|subscripts| {
        subscripts.iter().find_map(|subscript| {
            let [(Atom::Floor(inner, size), _)] = subscript.terms() else { return None };
            let variable = inner.as_index()?;
            let position = placed.variables[..placed.outputs].iter().position(|v| v.number() == variable)?;
            let remainder = inner.remainder(size);
            (*size >= least && subscripts.contains(&remainder)).then(|| (position, size.clone()))
        })
    })
}

/// The position of an output and the size of its groups, where it is divided by that alone. Of the last output, places would
/// be neighbours that are not beside each other.
fn grouped(looping: &Looping, placed: &Placed) -> Option<(usize, Int)> {
    placed.reduction?;
    let outputs = placed.variables[..placed.outputs].split_last()?.1;
    let mut affines: Vec<Affine> = placed.conditions.iter().map(|c| c.affine.clone()).collect();
    looping.exprs.visit_affines(placed.body, &mut |affine| affines.push(affine.clone()));
    affines.extend(placed.ranges.iter().flat_map(|range| range.low.iter().chain(&range.high)).cloned());
    outputs.iter().enumerate().rev().find_map(|(position, variable)| {
        let atoms = affines.iter().flat_map(Affine::terms).map(|(atom, _)| atom);
        let mut quotients = atoms.filter(|atom| matches!(atom, Atom::Floor(inner, _) if inner.uses_index(*variable)));
        let Atom::Floor(inner, size) = quotients.next()? else { return None };
        let whole = Affine::index(*variable);
        let same = quotients.all(|other| matches!(other, Atom::Floor(i, s) if i == inner && s == size));
        (**inner == whole && same && !size.is_zero()).then(|| (position, size.clone()))
    })
}

fn split(looping: &mut Looping, placed: Placed, making: &mut Making, position: usize, size: Int) -> Placed {
    let lane = placed.variables[position];
    let name = format!("{}_block", &making.kernel[lane]);
    let block = making.variable(&name);
    let mut rules = Split { lane, block, size };
    let mut split = placed.clone();
    split.body = Rewriter::default().rewrite(&mut looping.exprs, placed.body, &mut rules);
    split.subscripts = placed.subscripts.iter().map(|s| rules.affine(s)).collect();
    split.conditions = placed.conditions.iter().map(|c: &Constraint| c.rebuilt(rules.affine(&c.affine))).collect();
    split.ranges = placed.ranges.iter().map(|range| range.map(|bound| rules.affine(bound))).collect();
    let whole = &placed.ranges[position];
    split.ranges[position] = rules.in_block(whole);
    split.ranges.insert(position, whole.map(|bound| bound.floor_div(&rules.size)));
    split.variables.insert(position, block);
    split.outputs += 1;
    split
}

/// A leaf with one of its outputs in blocks; so are the ranges that are given.
pub fn cut(
    looping: &mut Looping,
    mut leaf: Leaf,
    given: &mut Ranges,
    (lane, block): (LoopId, LoopId),
    size: &Int,
) -> Leaf {
    let mut rules = Split { lane, block, size: size.clone() };
    leaf.body = Rewriter::default().rewrite(&mut looping.exprs, leaf.body, &mut rules);
    leaf.subscripts = leaf.subscripts.iter().map(|s| rules.affine(s)).collect();
    leaf.guards = leaf.guards.iter().map(|c: &Constraint| c.rebuilt(rules.affine(&c.affine))).collect();
    let position = leaf.loops.iter().position(|l| l.variable == lane).expect("a loop of the leaf");
    let whole = leaf.loops[position].range.clone();
    let others = leaf.loops.iter_mut().map(|l| &mut l.range).chain(given.iter_mut().map(|(_, range)| range));
    others.for_each(|range| *range = range.map(|bound| rules.affine(bound)));
    leaf.loops[position].range = rules.in_block(&whole);
    let range = whole.map(|bound| bound.floor_div(&rules.size));
    leaf.loops.insert(position, Loop { variable: block, range, kind: Kind::Serial });
    leaf.outputs += 1;
    leaf
}

/// `lane` becomes `size*block + lane`, and its quotient `block`.
struct Split {
    lane: LoopId,
    block: LoopId,
    size: Int,
}

impl Split {
    /// The values in a block of those in a range.
    fn in_block(&self, range: &Range) -> Range {
        let start = Affine::index(self.block).scale(&self.size);
        let inner = |bound: &Affine| bound.clone() - start.clone();
        let starts = |low: &&Affine| low.as_constant() != Some(&Int::ZERO);
        let low = range.low.iter().filter(starts).map(inner);
        let low = std::iter::once(Affine::constant(0)).chain(low).collect();
        let high = std::iter::once(Affine::constant(&self.size - Int::ONE)).chain(range.high.iter().map(inner));
        Range { low, high: high.collect() }
    }
}

impl Rules for Split {
    fn affine(&mut self, affine: &Affine) -> Affine {
        affine.substitute(&mut |atom| match atom {
            Atom::Floor(inner, size) if *size == self.size && inner.as_index() == Some(self.lane.number()) => {
                Some(Affine::index(self.block))
            }
            Atom::Index(v) if LoopId(*v) == self.lane => {
                Some(Affine::index(self.block).scale(&self.size) + Affine::index(self.lane))
            }
            _ => None,
        })
    }
}
