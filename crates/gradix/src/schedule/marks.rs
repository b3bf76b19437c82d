//! Marks, compared again where they are read.
//!
//! ```text
//! c_hits[i, k, j] = if a[i, k] + b[k, j] == c[i, j] then 1 else 0
//! da[i, k] = sum[j] (if c_hits[i, k, j] == 1 then g[i, j] else 0)
//!
//! da[i, k] = sum[j] (if a[i, k] + b[k, j] == c[i, j] then g[i, j] else 0)
//! ```
//!
//! A comparison of what is at hand takes less time than to store its outcome for all points, and to load it again. It is made
//! of the same values in the same way, so it has the same outcome.

use super::arrange::is_cheap;
use crate::lift;
use crate::program::expr::{Rewriter, Rules};
use crate::program::{Affine, Comparison, Cond, CondId, Definition, Expr, ExprId, Exprs, Program, TensorId};
use std::collections::{HashMap, HashSet};

/// Puts marks into the conditions that ask for them.
pub fn marks(program: &mut Program) {
    let is_mark = |d: &&Definition| {
        d.rank > 0 && d.reduction.is_none() && !program.outputs.contains(&d.tensor) && is_mark(&program.exprs, d.body)
    };
    let mut bodies: HashMap<TensorId, ExprId> =
        program.definitions.iter().filter(is_mark).map(|d| (d.tensor, d.body)).collect();
    let read_otherwise = |d: &Definition| reads_but_to_ask(&program.exprs, d.body);
    let kept: HashSet<TensorId> = program.definitions.iter().flat_map(read_otherwise).collect();
    bodies.retain(|tensor, _| !kept.contains(tensor));
    if bodies.is_empty() {
        return;
    }
    program.definitions.retain(|d| !bodies.contains_key(&d.tensor));
    let mut definitions = std::mem::take(&mut program.definitions);
    for definition in &mut definitions {
        let mut rules = Ask { bodies: &bodies };
        definition.body = Rewriter::default().rewrite(&mut program.exprs, definition.body, &mut rules);
    }
    program.definitions = definitions;
}

/// Whether a body is 1 or 0, by comparisons that cost next to nothing.
fn is_mark(exprs: &Exprs, body: ExprId) -> bool {
    let Expr::Select(c, a, b) = exprs[body] else { return false };
    let numbers = exprs.as_constant(a) == Some(1.0) && exprs.as_constant(b) == Some(0.0);
    let compared = exprs.compared(c);
    numbers && !compared.is_empty() && compared.iter().all(|id| is_cheap(exprs, *id, false))
}

/// The tensors that are read, but for elements that are compared with 1.
fn reads_but_to_ask(exprs: &Exprs, body: ExprId) -> HashSet<TensorId> {
    let mut asked: HashSet<ExprId> = HashSet::new();
    let mut others: HashSet<ExprId> = HashSet::new();
    for id in exprs.postorder(body) {
        let mut conditions = match exprs[id] {
            Expr::Select(c, a, b) => {
                others.extend([a, b]);
                vec![c]
            }
            _ => {
                others.extend(exprs.operands(id));
                Vec::new()
            }
        };
        while let Some(c) = conditions.pop() {
            match exprs[c] {
                Cond::Index(_) => {}
                Cond::Compare(op, a, b) => match asks(exprs, op, a, b) {
                    Some(element) => drop(asked.insert(element)),
                    None => others.extend([a, b]),
                },
                Cond::Not(a) => conditions.push(a),
                Cond::And(a, b) | Cond::Or(a, b) => conditions.extend([a, b]),
            }
        }
    }
    others.insert(body);
    let reads = others.into_iter().filter_map(|id| match exprs[id] {
        Expr::Access(tensor, _) => Some(tensor),
        _ => None,
    });
    reads.collect()
}

/// The element that is compared with 1.
fn asks(exprs: &Exprs, op: Comparison, a: ExprId, b: ExprId) -> Option<ExprId> {
    let is_one = |id: ExprId| exprs.as_constant(id) == Some(1.0);
    let is_element = |id: ExprId| matches!(exprs[id], Expr::Access(..));
    match (is_element(a) && is_one(b), is_element(b) && is_one(a)) {
        (true, _) => Some(a),
        (_, true) => Some(b),
        (false, false) => None,
    }
    .filter(|_| op == Comparison::Eq)
}

struct Ask<'a> {
    bodies: &'a HashMap<TensorId, ExprId>,
}

impl Rules for Ask<'_> {
    fn compare(&mut self, exprs: &mut Exprs, op: Comparison, a: ExprId, b: ExprId) -> CondId {
        let mark = asks(exprs, op, a, b).and_then(|element| match &exprs[element] {
            Expr::Access(tensor, subscripts) => Some((*self.bodies.get(tensor)?, subscripts.clone())),
            _ => None,
        });
        let found = mark.and_then(|(body, at): (ExprId, Vec<Affine>)| {
            let moved = lift::remap(exprs, body, &at);
            match exprs[moved] {
                Expr::Select(c, ..) => Some(c),
                _ => None,
            }
        });
        found.unwrap_or_else(|| exprs.add_condition(Cond::Compare(op, a, b)))
    }
}
