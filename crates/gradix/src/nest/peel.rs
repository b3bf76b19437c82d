//! A loop over steps in pieces, without the conditions that the step alone decides.
//!
//! ```text
//! for t in 0..=T - 1:                            for t in 0..=min(0, T - 1):
//!   if t >= 1: s[t] = x[t] + s[t - 1]              s[t] = x[t]
//!   if t <= 0: s[t] = x[t]                       for t in 1..=T - 1:
//!                                                  s[t] = x[t] + s[t - 1]
//! ```
//!
//! The pieces follow each other in the order of the steps, and together have each step once. What a piece computes for itself
//! and does not read is left out.

use super::{Leaf, LoopId, Step, Tile, leaves};
use crate::domain::system;
use crate::program::{Affine, Cond, Constraint, Expr, ExprId, Exprs, Relation, TensorId};
use crate::simplify;
use gradix_int::Int;

/// The most pieces of a loop: each has code of its own.
const MAX_PIECES: usize = 9;

/// What is known where a loop stands.
pub struct Place<'a> {
    /// Of sizes and the variables around.
    pub known: Vec<Constraint>,
    /// The variables around.
    pub around: Vec<LoopId>,
    /// Whether nothing outside of the step that writes a buffer reads it.
    pub is_own: &'a dyn Fn(TensorId) -> bool,
}

/// The pieces of a loop over single values.
pub fn peel(exprs: &mut Exprs, tile: Tile, place: &Place) -> Vec<Tile> {
    let (mut open, mut done) = (vec![tile], Vec::new());
    while let Some(tile) = open.pop() {
        let known = inside(&tile, &place.known);
        if system::is_empty(&known) {
            continue;
        }
        let steps = settled(exprs, tile.steps, &known, place.is_own);
        let range = system::without_idle_bounds(&tile.range, &place.known);
        let tile = Tile { steps, range, ..tile };
        let room = open.len() + done.len() + 2 <= MAX_PIECES;
        match cut(exprs, &tile, &known, &place.around).filter(|_| room) {
            Some(cut) => {
                let (first, second) = sides(&tile, &cut);
                open.extend([second, first]);
            }
            None => done.push(tile),
        }
    }
    done
}

fn inside(tile: &Tile, known: &[Constraint]) -> Vec<Constraint> {
    known.iter().cloned().chain(tile.range.constraints(tile.variable)).collect()
}

/// The values before and after a condition changes.
fn sides(tile: &Tile, cut: &Constraint) -> (Tile, Tile) {
    let (variable, factor) = (Affine::index(tile.variable), cut.affine.step_of(tile.variable));
    let rest = cut.affine.add_scaled(&-factor.clone(), &variable);
    let (mut first, mut second) = (tile.clone(), tile.clone());
    // v + rest >= 0 from -rest on; rest - v >= 0 up to rest.
    let start = if factor == Int::ONE { -rest } else { rest.shift(1) };
    first.range.high.push(start.shift(-1));
    second.range.low.push(start);
    (first, second)
}

/// A condition on the variable of a tile that changes along it.
fn cut(exprs: &Exprs, tile: &Tile, known: &[Constraint], around: &[LoopId]) -> Option<Constraint> {
    let variable = tile.variable;
    let is_unit = |factor: Int| factor == Int::ONE || factor == Int::NEG_ONE;
    let bound_here = |affine: &Affine| {
        let mut fine = is_unit(affine.step_of(variable)) && !affine.divides_index(variable);
        affine.visit_indices(&mut |v| fine &= v == variable.number() || around.iter().any(|a| a.number() == v));
        fine
    };
    let is_open = |c: &Constraint| {
        !system::implies(known, c) && !c.negated().iter().all(|negated| system::implies(known, negated))
    };
    let conditions = conditions(exprs, &tile.steps).into_iter().filter(|c| bound_here(&c.affine));
    let halves = conditions.flat_map(|c| match c.relation {
        Relation::NonNegative => vec![c],
        Relation::Zero => vec![Constraint::non_negative(c.affine.clone()), Constraint::non_negative(-c.affine)],
    });
    let mut halves = halves;
    halves.find(is_open)
}

/// The conditions on indices of some steps: guards, and those in bodies.
fn conditions(exprs: &Exprs, steps: &[Step]) -> Vec<Constraint> {
    let mut found: Vec<Constraint> = Vec::new();
    for leaf in leaves(steps) {
        found.extend(leaf.guards.iter().cloned());
        for id in exprs.postorder(leaf.body) {
            let Expr::Select(c, ..) = exprs[id] else { continue };
            exprs.visit_condition(c, &mut |condition| {
                if let Cond::Index(constraint) = condition {
                    found.push(constraint.clone());
                }
            });
        }
    }
    crate::program::distinct(found)
}

/// Steps where more is known: without what never runs there, and what nobody reads.
fn settled(exprs: &mut Exprs, steps: Vec<Step>, known: &[Constraint], is_own: &dyn Fn(TensorId) -> bool) -> Vec<Step> {
    let mut kept: Vec<Step> = steps.into_iter().filter_map(|step| settle(exprs, step, known)).collect();
    while let Some(unread) = kept.iter().position(|step| is_unread(exprs, step, &kept, is_own)) {
        kept.remove(unread);
    }
    kept
}

/// A step where more is known; `None` if it never runs.
fn settle(exprs: &mut Exprs, step: Step, known: &[Constraint]) -> Option<Step> {
    match step {
        Step::Leaf(leaf) => settle_leaf(exprs, leaf, known).map(Step::Leaf),
        Step::Together(_) => Some(step),
        Step::Tile(tile) => {
            let known = inside(&tile, known);
            let steps = tile.steps.into_iter().filter_map(|step| settle(exprs, step, &known)).collect::<Vec<_>>();
            (!steps.is_empty() && !system::is_empty(&known)).then_some(Step::Tile(Tile { steps, ..tile }))
        }
    }
}

fn settle_leaf(exprs: &mut Exprs, mut leaf: Leaf, known: &[Constraint]) -> Option<Leaf> {
    let guards = std::mem::take(&mut leaf.guards);
    leaf.guards = guards.into_iter().filter(|guard| !system::implies(known, guard)).collect();
    let here = [known, &leaf.domain()].concat();
    // A reduction without terms is worth something.
    if leaf.reduction.is_none() && system::is_empty(&here) {
        return None;
    }
    if leaf.panels.is_none() && has_choices(exprs, leaf.body) {
        leaf.body = simplify::assuming(exprs, leaf.body, here);
    }
    Some(leaf)
}

fn has_choices(exprs: &Exprs, body: ExprId) -> bool {
    exprs.postorder(body).into_iter().any(|id| matches!(exprs[id], Expr::Select(..)))
}

/// Whether a step makes something for its neighbours that none of them reads.
fn is_unread(exprs: &Exprs, step: &Step, steps: &[Step], is_own: &dyn Fn(TensorId) -> bool) -> bool {
    let Step::Leaf(Leaf { target, .. }) = step else { return false };
    let reads = |leaf: &Leaf| leaf.target != *target && leaf.reads(exprs, *target);
    is_own(*target) && !leaves(steps).into_iter().any(reads)
}
