//! What conditions say about indices.
//!
//! A condition mixes tests of indices and of values; derivation and bounds checks need the part about
//! indices as constraints, in disjoint cases.

use crate::domain::system::{self, Facts};
use crate::program::build;
use crate::program::{Affine, Atom, Cond, CondId, Constraint, Expr, ExprId, Exprs, TensorId};
use std::collections::{BTreeMap, HashMap};

/// Index constraints that hold together.
pub type Guard = Vec<Constraint>;

/// The most cases in which one expression is looked at; beyond, only what they have in common is kept.
const MAX_CASES: usize = 64;

/// Whether a condition compares values.
pub fn has_values(exprs: &Exprs, id: CondId) -> bool {
    !exprs.compared(id).is_empty()
}

/// The constraints of a condition that is nothing but constraints joined by `and`.
pub fn conjunction(exprs: &Exprs, id: CondId) -> Option<Vec<Constraint>> {
    match &exprs[id] {
        Cond::Index(constraint) => Some(vec![constraint.clone()]),
        Cond::And(a, b) => Some([conjunction(exprs, *a)?, conjunction(exprs, *b)?].concat()),
        Cond::Compare(..) | Cond::Not(_) | Cond::Or(..) => None,
    }
}

/// Constraints that hold wherever the condition has this outcome (not all that could be said).
pub fn facts(exprs: &Exprs, id: CondId, outcome: bool) -> Vec<Constraint> {
    match (&exprs[id], outcome) {
        (Cond::Index(constraint), true) => vec![constraint.clone()],
        (Cond::Index(constraint), false) => match constraint.negated().as_slice() {
            [single] => vec![single.clone()],
            _ => Vec::new(),
        },
        (Cond::Not(a), _) => facts(exprs, *a, !outcome),
        (Cond::And(a, b), true) | (Cond::Or(a, b), false) => {
            [facts(exprs, *a, outcome), facts(exprs, *b, outcome)].concat()
        }
        (Cond::And(..), false) | (Cond::Or(..), true) | (Cond::Compare(..), _) => Vec::new(),
    }
}

/// Constraints that hold wherever a condition on indices has this outcome in the domain, and whether it says more than they do.
/// Of `i != 0` with `i in 0..N`, only `i >= 1` is left.
pub fn facts_within(exprs: &mut Exprs, id: CondId, outcome: bool, domain: &[Constraint]) -> (Vec<Constraint>, bool) {
    let mut known = facts(exprs, id, outcome);
    if build::decided(exprs, id).is_some() || has_values(exprs, id) {
        return (known, false);
    }
    let mut cases = cases(exprs, id, outcome);
    if cases.len() == 1 {
        return (known, false);
    }
    cases.retain(|(guard, _)| !system::is_empty(&[domain, guard.as_slice()].concat()));
    match cases.as_slice() {
        [(only, _)] => known.extend(only.iter().cloned()),
        _ => return (known, true),
    }
    (known, false)
}

/// What the choices around the one place where an expression reads a tensor say there; nothing if it reads it at several.
pub fn facts_around(exprs: &mut Exprs, root: ExprId, tensor: TensorId, domain: &[Constraint]) -> Vec<Constraint> {
    let mut reads: HashMap<ExprId, usize> = HashMap::new();
    for id in exprs.postorder(root) {
        let own = usize::from(matches!(&exprs[id], Expr::Access(read, _) if *read == tensor));
        let below: usize = exprs.operands(id).iter().map(|operand| reads[operand]).fold(own, usize::saturating_add);
        reads.insert(id, below);
    }
    let (mut at, mut known) = (root, Vec::new());
    while reads[&at] == 1 {
        if let Expr::Select(c, a, b) = exprs[at]
            && reads[&a] + reads[&b] == 1
        {
            let around = [domain, known.as_slice()].concat();
            known.extend(facts_within(exprs, c, reads[&a] == 1, &around).0);
        }
        match exprs.operands(at).into_iter().find(|operand| reads[operand] == 1) {
            Some(next) => at = next,
            None => return known,
        }
    }
    Vec::new()
}

/// Whether a condition on indices mentions a size.
pub fn tests_sizes(exprs: &Exprs, id: CondId) -> bool {
    match &exprs[id] {
        Cond::Index(constraint) => {
            let mut found = false;
            constraint.affine.visit_atoms(&mut |atom| found |= matches!(atom, Atom::Param(_)));
            found
        }
        Cond::Compare(..) => false,
        Cond::Not(a) => tests_sizes(exprs, *a),
        Cond::And(a, b) | Cond::Or(a, b) => tests_sizes(exprs, *a) || tests_sizes(exprs, *b),
    }
}

/// The conjunction of constraints as a condition; `None` if there are none.
pub fn all(exprs: &mut Exprs, constraints: &[Constraint]) -> Option<CondId> {
    let mut whole = None;
    for constraint in constraints {
        let part = exprs.add_condition(Cond::Index(constraint.clone()));
        whole = Some(match whole {
            Some(whole) => exprs.add_condition(Cond::And(whole, part)),
            None => part,
        });
    }
    whole
}

/// `if every subscript is inside its extent then access else padding`
pub fn inside(exprs: &mut Exprs, subscripts: &[Affine], extents: &[Affine], access: ExprId, padding: ExprId) -> ExprId {
    let bounds = subscripts.iter().zip(extents).flat_map(|(subscript, extent)| {
        [Constraint::non_negative(subscript.clone()), Constraint::at_most(subscript.clone(), extent.shift(-1))]
    });
    let bounds: Vec<Constraint> = bounds.collect();
    if bounds.iter().any(|c| c.decided() == Some(false)) {
        return padding;
    }
    let open: Vec<Constraint> = bounds.into_iter().filter(|c| c.decided().is_none()).collect();
    match all(exprs, &open) {
        Some(condition) => exprs.add(Expr::Select(condition, access, padding)),
        None => access,
    }
}

/// A case of a condition: constraints, and what values still have to satisfy.
pub type Case = (Guard, Option<CondId>);

/// The disjoint cases in which a condition has this outcome.
pub fn cases(exprs: &mut Exprs, id: CondId, outcome: bool) -> Vec<Case> {
    match (exprs[id].clone(), outcome) {
        (Cond::Index(constraint), true) => vec![(vec![constraint], None)],
        (Cond::Index(constraint), false) => constraint.negated().into_iter().map(|c| (vec![c], None)).collect(),
        (Cond::Compare(..), true) => vec![(Vec::new(), Some(id))],
        (Cond::Compare(..), false) => vec![(Vec::new(), Some(build::opposite(exprs, id)))],
        (Cond::Not(a), _) => cases(exprs, a, !outcome),
        (Cond::And(a, b), true) | (Cond::Or(a, b), false) => {
            let (first, second) = (cases(exprs, a, outcome), cases(exprs, b, outcome));
            both(exprs, &first, &second)
        }
        (Cond::And(a, b), false) | (Cond::Or(a, b), true) => {
            let mut found = cases(exprs, a, outcome);
            let (rest, second) = (cases(exprs, a, !outcome), cases(exprs, b, outcome));
            found.extend(both(exprs, &rest, &second));
            found
        }
    }
}

fn both(exprs: &mut Exprs, first: &[Case], second: &[Case]) -> Vec<Case> {
    let mut found = Vec::new();
    for (guard, values) in first {
        for (other, more) in second {
            let values = match (*values, *more) {
                (Some(a), Some(b)) => Some(exprs.add_condition(Cond::And(a, b))),
                (a, b) => a.or(b),
            };
            found.push((join(guard, other), values));
        }
    }
    found
}

/// Both guards, each constraint once, in a fixed order.
pub fn join(a: &[Constraint], b: &[Constraint]) -> Guard {
    let mut joined: Guard = a.iter().chain(b).filter(|c| c.decided() != Some(true)).cloned().collect();
    joined.sort();
    joined.dedup();
    joined
}

/// Every access below `root` with the guards under which it is evaluated.
pub fn guarded_accesses(exprs: &mut Exprs, root: ExprId) -> Vec<(ExprId, Vec<Guard>)> {
    let mut pending: BTreeMap<ExprId, Vec<Guard>> = BTreeMap::from([(root, vec![Vec::new()])]);
    let mut found = Vec::new();
    while let Some((id, guards)) = pending.pop_last() {
        let guards = limited(guards);
        match exprs[id].clone() {
            Expr::Constant(_) | Expr::Index(_) => {}
            Expr::Access(..) => found.push((id, guards)),
            Expr::Unary(_, a) => extend(&mut pending, a, &guards, &[]),
            Expr::Binary(_, a, b) => {
                extend(&mut pending, a, &guards, &[]);
                extend(&mut pending, b, &guards, &[]);
            }
            Expr::Select(c, a, b) => {
                for (value, guard) in compared(exprs, c, &[Vec::new()]) {
                    extend(&mut pending, value, &guards, &guard);
                }
                for (branch, outcome) in [(a, true), (b, false)] {
                    for (guard, _) in cases(exprs, c, outcome) {
                        extend(&mut pending, branch, &guards, &guard);
                    }
                }
            }
        }
    }
    found.reverse();
    found
}

/// What is known where guards hold, kept for each of them.
pub struct Guarded {
    known: Vec<Constraint>,
    cases: Vec<(Guard, Facts<'static>)>,
}

impl Guarded {
    /// With what is known whatever the guards say.
    pub fn new(known: Vec<Constraint>) -> Self {
        Guarded { known, cases: Vec::new() }
    }

    /// What is known whatever the guards say.
    pub fn known(&self) -> &[Constraint] {
        &self.known
    }

    /// What is known where a guard holds.
    pub fn under(&mut self, guard: &[Constraint]) -> &Facts<'static> {
        let place = self.cases.iter().position(|(case, _)| case == guard).unwrap_or_else(|| {
            self.cases.push((guard.to_vec(), Facts::new([&self.known, guard].concat())));
            self.cases.len() - 1
        });
        &self.cases[place].1
    }
}

fn extend(pending: &mut BTreeMap<ExprId, Vec<Guard>>, id: ExprId, guards: &[Guard], more: &[Constraint]) {
    let known = pending.entry(id).or_default();
    for guard in guards {
        let guard = join(guard, more);
        if !known.contains(&guard) {
            known.push(guard);
        }
    }
}

/// Every compared value with what holds where it is evaluated, in each of the cases given.
fn compared(exprs: &mut Exprs, id: CondId, guards: &[Guard]) -> Vec<(ExprId, Guard)> {
    match exprs[id].clone() {
        Cond::Index(_) => Vec::new(),
        Cond::Compare(_, a, b) => guards.iter().flat_map(|g| [(a, g.clone()), (b, g.clone())]).collect(),
        Cond::Not(a) => compared(exprs, a, guards),
        Cond::And(a, b) | Cond::Or(a, b) => {
            let mut found = compared(exprs, a, guards);
            let outcome = matches!(exprs[id], Cond::And(..));
            let reached = cases(exprs, a, outcome);
            let inner = guards.iter().flat_map(|g| reached.iter().map(|(more, _)| join(g, more))).collect();
            found.extend(compared(exprs, b, &limited(inner)));
            found
        }
    }
}

fn limited(guards: Vec<Guard>) -> Vec<Guard> {
    if guards.len() <= MAX_CASES {
        return guards;
    }
    let common = guards[0].iter().filter(|c| guards.iter().all(|g| g.contains(c))).cloned().collect();
    vec![common]
}
