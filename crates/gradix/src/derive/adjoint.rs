//! Reverse accumulation inside one body: one pass over the graph for all accesses.
//!
//! Contributions are kept apart by the index constraints and value conditions under which they flow, so
//! that a branch that is not taken contributes nothing at all, whatever its own derivative is.

use super::rules;
use crate::diagnostic::Diagnostic;
use crate::domain::guard::{self, Guard};
use crate::domain::system;
use crate::program::build::{self, Product};
use crate::program::{Cond, CondId, Constraint, Expr, ExprId, Exprs, TensorId, UnaryOp};
use std::collections::{BTreeMap, HashSet};

/// Where a contribution flows: index constraints, and conditions on values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    /// Index constraints that hold.
    pub guard: Guard,
    /// Other conditions that hold: on values, or on indices in more than one case.
    pub values: Vec<CondId>,
}

/// The derivative of the result by one access, along one path.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The access in the body.
    pub access: ExprId,
    /// Where it holds.
    pub path: Path,
    /// `adjoint of the result · ∂body/∂access`
    pub value: ExprId,
}

/// The most paths that are kept apart at one node.
const MAX_PATHS: usize = 64;

/// The derivatives of `root`, whose adjoint is `seed`, by every access to a tensor that is `active`.
/// Where a rule wants the value of `root` itself, it gets `value`. `domain` holds wherever `root` is evaluated.
pub fn adjoint(
    exprs: &mut Exprs,
    root: ExprId,
    value: ExprId,
    seed: (Path, ExprId),
    domain: &[Constraint],
    active: &dyn Fn(TensorId) -> bool,
) -> Result<Vec<Flow>, Diagnostic> {
    let live = active_nodes(exprs, root, active);
    let mut pending: BTreeMap<ExprId, Vec<(Path, ExprId)>> = BTreeMap::new();
    if live.contains(&root) {
        pending.insert(root, vec![seed]);
    }
    let mut flows = Vec::new();
    while let Some((id, adjoints)) = pending.pop_last() {
        let y = if id == root { value } else { id };
        for (path, adjoint) in limited(exprs, adjoints) {
            match exprs[id].clone() {
                Expr::Constant(_) | Expr::Index(_) => {}
                Expr::Access(..) => flows.push(Flow { access: id, path, value: adjoint }),
                Expr::Unary(op, x) => {
                    if let Some(d) = rules::through_unary(exprs, op, x, y, adjoint)? {
                        send(exprs, &mut pending, &live, x, (path, d), domain);
                    }
                }
                Expr::Binary(op, a, b) => {
                    let wanted = (live.contains(&a), live.contains(&b));
                    let (da, db) = rules::through_binary(exprs, op, (a, b), y, adjoint, wanted);
                    for (operand, d) in [(a, da), (b, db)] {
                        if let Some(d) = d {
                            send(exprs, &mut pending, &live, operand, (path.clone(), d), domain);
                        }
                    }
                }
                Expr::Select(c, a, b) => {
                    for (branch, outcome) in [(a, true), (b, false)] {
                        if !live.contains(&branch) {
                            continue;
                        }
                        let condition = if outcome { c } else { build::opposite(exprs, c) };
                        let path = path.narrowed(exprs, condition, domain);
                        send(exprs, &mut pending, &live, branch, (path, adjoint), domain);
                    }
                }
            }
        }
    }
    flows.reverse();
    Ok(flows)
}

impl Path {
    /// The path where a condition holds too: as index constraints where the domain leaves it one case, otherwise as it is
    /// and with what all cases have in common.
    fn narrowed(&self, exprs: &mut Exprs, condition: CondId, domain: &[Constraint]) -> Path {
        let mut path = self.clone();
        let mut cases = guard::cases(exprs, condition, true);
        let is_straight = |(case, _): &guard::Case| case.iter().all(|row| row.affine.is_straight());
        if cases.len() > 1 && cases.iter().all(is_straight) {
            cases.retain(|(case, _)| !system::is_empty(&[domain, &self.guard, case].concat()));
        }
        let (constraints, rest) = match cases.as_slice() {
            [(constraints, rest)] => (constraints.clone(), *rest),
            _ => (guard::facts(exprs, condition, true), Some(condition)),
        };
        path.guard = guard::join(&self.guard, &constraints);
        path.values.extend(rest.filter(|c| !self.values.contains(c)));
        path
    }

    /// `if the conditions on values hold then value else 0`. Those on indices alone come first: they excuse what the others read.
    pub fn masked(&self, exprs: &mut Exprs, value: ExprId) -> ExprId {
        let mut all: Option<CondId> = None;
        let (compared, indexed): (Vec<CondId>, Vec<CondId>) =
            self.values.iter().partition(|&&condition| guard::has_values(exprs, condition));
        for condition in indexed.into_iter().chain(compared) {
            all = Some(match all {
                Some(all) => exprs.add_condition(Cond::And(all, condition)),
                None => condition,
            });
        }
        match all {
            Some(all) => {
                let zero = exprs.constant(0.0);
                build::select(exprs, all, value, zero)
            }
            None => value,
        }
    }
}

fn send(
    exprs: &mut Exprs,
    pending: &mut BTreeMap<ExprId, Vec<(Path, ExprId)>>,
    live: &HashSet<ExprId>,
    to: ExprId,
    (mut path, mut value): (Path, ExprId),
    domain: &[Constraint],
) {
    if !live.contains(&to) {
        return;
    }
    // A rule that chooses (as for `relu`) narrows the path instead of multiplying by 0.
    while let Expr::Select(c, a, b) = exprs[value] {
        if exprs.as_constant(b) != Some(0.0) {
            break;
        }
        path = path.narrowed(exprs, c, domain);
        value = a;
    }
    if Product::of(exprs, value).is_zero() {
        return;
    }
    let known = pending.entry(to).or_default();
    match known.iter_mut().find(|(p, _)| *p == path) {
        Some((_, sum)) => *sum = build::add(exprs, *sum, value),
        None => known.push((path, value)),
    }
}

fn active_nodes(exprs: &Exprs, root: ExprId, active: &dyn Fn(TensorId) -> bool) -> HashSet<ExprId> {
    let mut live = HashSet::new();
    for id in exprs.postorder(root) {
        let flows = match &exprs[id] {
            Expr::Constant(_) | Expr::Index(_) | Expr::Unary(UnaryOp::Stop, _) => false,
            Expr::Access(tensor, _) => active(*tensor),
            Expr::Unary(_, a) => live.contains(a),
            Expr::Binary(_, a, b) | Expr::Select(_, a, b) => live.contains(a) || live.contains(b),
        };
        if flows {
            live.insert(id);
        }
    }
    live
}

/// Past the limit, paths are joined: each contribution is masked by its own conditions instead.
fn limited(exprs: &mut Exprs, adjoints: Vec<(Path, ExprId)>) -> Vec<(Path, ExprId)> {
    if adjoints.len() <= MAX_PATHS {
        return adjoints;
    }
    let mut terms = Vec::new();
    for (path, value) in adjoints {
        let value = path.masked(exprs, value);
        let zero = exprs.constant(0.0);
        terms.push(match guard::all(exprs, &path.guard) {
            Some(condition) => build::select(exprs, condition, value, zero),
            None => value,
        });
    }
    let sum = build::total(exprs, &terms);
    vec![(Path::default(), sum)]
}
