//! Value-preserving simplification of whole programs; the local rules are in [`crate::build`].

use crate::build::Build;
use crate::guard;
use crate::program::expr::{Rewriter, Rules};
use crate::program::{BinaryOp, Cond, CondId, Constraint, ExprId, Exprs, Program, UnaryOp};
use crate::system;
use std::collections::HashMap;

/// Simplifies every body: local rules, and conditions that the domain decides.
pub fn simplify_bodies(program: &mut Program) {
    let context = program.size_context();
    for number in 0..program.definitions.len() {
        let definition = &program.definitions[number];
        let mut domain: Vec<Constraint> = definition.domain();
        domain.extend(context.iter().cloned());
        let mut rules = Simplify { domain, known: HashMap::new() };
        let body = definition.body;
        program.definitions[number].body = Rewriter::default().rewrite(&mut program.exprs, body, &mut rules);
    }
}

struct Simplify {
    domain: Vec<Constraint>,
    known: HashMap<Constraint, Option<bool>>,
}

impl Simplify {
    fn decide(&mut self, constraint: &Constraint) -> Option<bool> {
        if let Some(known) = self.known.get(constraint) {
            return *known;
        }
        let never = || constraint.negated().iter().all(|c| system::implies(&self.domain, c)) && constraint.negated().len() == 1
            || system::is_empty(&[self.domain.as_slice(), std::slice::from_ref(constraint)].concat());
        let outcome = if system::implies(&self.domain, constraint) {
            Some(true)
        } else if never() {
            Some(false)
        } else {
            None
        };
        self.known.insert(constraint.clone(), outcome);
        outcome
    }

    /// The condition without the parts that the domain decides: `Ok` if something is left.
    fn reduce(&mut self, exprs: &mut Exprs, id: CondId) -> Result<CondId, bool> {
        match exprs[id].clone() {
            Cond::Index(constraint) => self.decide(&constraint).map_or(Ok(id), Err),
            Cond::Compare(..) => crate::build::decided(exprs, id).map_or(Ok(id), Err),
            Cond::Not(a) => match self.reduce(exprs, a) {
                Ok(a) => Ok(guard::negate(exprs, a)),
                Err(outcome) => Err(!outcome),
            },
            Cond::And(a, b) => match (self.reduce(exprs, a), self.reduce(exprs, b)) {
                (Err(false), _) | (_, Err(false)) => Err(false),
                (Err(true), other) | (other, Err(true)) => other,
                (Ok(a), Ok(b)) if a == b => Ok(a),
                (Ok(a), Ok(b)) => Ok(exprs.add_condition(Cond::And(a, b))),
            },
            Cond::Or(a, b) => match (self.reduce(exprs, a), self.reduce(exprs, b)) {
                (Err(true), _) | (_, Err(true)) => Err(true),
                (Err(false), other) | (other, Err(false)) => other,
                (Ok(a), Ok(b)) if a == b => Ok(a),
                (Ok(a), Ok(b)) => Ok(exprs.add_condition(Cond::Or(a, b))),
            },
        }
    }
}

impl Rules for Simplify {
    fn index(&mut self, exprs: &mut Exprs, affine: crate::program::Affine) -> ExprId {
        Build.index(exprs, affine)
    }
    fn unary(&mut self, exprs: &mut Exprs, op: UnaryOp, a: ExprId) -> ExprId {
        Build.unary(exprs, op, a)
    }
    fn binary(&mut self, exprs: &mut Exprs, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        Build.binary(exprs, op, a, b)
    }
    fn select(&mut self, exprs: &mut Exprs, c: CondId, a: ExprId, b: ExprId) -> ExprId {
        match self.reduce(exprs, c) {
            Ok(c) => Build.select(exprs, c, a, b),
            Err(outcome) => if outcome { a } else { b },
        }
    }
}
