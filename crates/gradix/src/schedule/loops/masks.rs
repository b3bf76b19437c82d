//! Conditions on indices that lanes don't have in common, as masks.
//!
//! ```text
//! for i: sum j: if i != j then m[j] * f(i, j) else 0       for i lanes: sum j: m[j] * f(i, j) where i - j is not 0
//! ```
//!
//! Lanes do the same thing, so an index condition keeps its indices out of them; a comparison of values is a mask. Indices are
//! compared as numbers then, where all that is read exists whatever the conditions say.

use super::{Looping, Making, shape, stairs};
use crate::nest::Leaf;
use crate::program::expr::Exprs;
use crate::program::{Affine, Atom, Comparison, Cond, CondId, Constraint, Expr, ExprId, Relation};
use crate::target::cost;
use gradix_int::Int;
use std::collections::HashMap;

/// Takes masks in place of conditions on indices, if lanes are much better for it.
pub fn mask(looping: &mut Looping, leaf: &mut Leaf, making: &Making) {
    let fits = |constraint: &Constraint| is_comparable(&constraint.affine);
    let conditions = looping.exprs.index_conditions(leaf.body);
    if !conditions.iter().copied().chain(&leaf.guards).all(fits) || conditions.is_empty() && leaf.guards.is_empty() {
        return;
    }
    // Pointwise, borders are pieces.
    let Some(neutral) = leaf.reduction.map(|op| op.neutral()) else { return };
    let mut masked = leaf.clone();
    masked.body = by_values(&mut looping.exprs, leaf.body);
    for guard in std::mem::take(&mut masked.guards) {
        let exprs = &mut looping.exprs;
        let none = exprs.constant(neutral);
        let holds = compared(exprs, &guard);
        masked.body = exprs.add(Expr::Select(holds, masked.body, none));
    }
    shape::choose(looping, &mut masked);
    let loads = |leaf: &Leaf| leaf.considered.first().map_or(f64::INFINITY, |best| best.loads);
    let (before, after) = (loads(leaf), loads(&masked));
    if after.is_finite() && after <= cost::MASKED_LOADS_SHARE * before && stairs::stays_inside(looping, &masked, making)
    {
        *leaf = masked;
    }
}

/// The largest step from lane to lane: where lanes differ in a condition, all its numbers are below 2^24, and exact in any type.
const MAX_STEP: i64 = 1024;

/// Whether an index expression can be compared as a number.
pub fn is_comparable(affine: &Affine) -> bool {
    let most = Int::from(MAX_STEP);
    affine.terms().iter().all(|(atom, factor)| match atom {
        Atom::Index(_) => *factor <= most && *factor >= -most.clone(),
        Atom::Param(_) => true,
        Atom::Floor(..) => !affine.uses_indices(),
    })
}

/// A condition on indices as one on numbers.
pub fn compared(exprs: &mut Exprs, constraint: &Constraint) -> CondId {
    let (zero, value) = (exprs.constant(0.0), exprs.add(Expr::Index(constraint.affine.clone())));
    let (op, a, b) = match constraint.relation {
        Relation::NonNegative => (Comparison::Le, zero, value),
        Relation::Zero => (Comparison::Eq, zero, value),
    };
    exprs.add_condition(Cond::Compare(op, a, b))
}

/// A body in which all is decided by values.
fn by_values(exprs: &mut Exprs, body: ExprId) -> ExprId {
    let mut new: HashMap<ExprId, ExprId> = HashMap::new();
    for id in exprs.postorder(body) {
        let node = match exprs[id].clone() {
            node @ (Expr::Constant(_) | Expr::Index(_) | Expr::Access(..)) => node,
            Expr::Unary(op, a) => Expr::Unary(op, new[&a]),
            Expr::Binary(op, a, b) => Expr::Binary(op, new[&a], new[&b]),
            Expr::Select(c, a, b) => Expr::Select(condition(exprs, c, &new), new[&a], new[&b]),
        };
        let made = exprs.add(node);
        new.insert(id, made);
    }
    new[&body]
}

fn condition(exprs: &mut Exprs, id: CondId, new: &HashMap<ExprId, ExprId>) -> CondId {
    let made = match exprs[id].clone() {
        Cond::Index(constraint) => return compared(exprs, &constraint),
        Cond::Compare(op, a, b) => Cond::Compare(op, new[&a], new[&b]),
        Cond::Not(a) => Cond::Not(condition(exprs, a, new)),
        Cond::And(a, b) => Cond::And(condition(exprs, a, new), condition(exprs, b, new)),
        Cond::Or(a, b) => Cond::Or(condition(exprs, a, new), condition(exprs, b, new)),
    };
    exprs.add_condition(made)
}
