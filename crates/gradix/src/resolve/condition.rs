//! Conditions: comparisons of index expressions are constraints, others compare values.

use super::Resolver;
use super::body::Lowered;
use super::frame::Frame;
use crate::diagnostic::Diagnostic;
use crate::domain::guard;
use crate::program::build;
use crate::program::{Affine, Comparison, Cond, CondId, Constraint, ExprId};
use crate::syntax::ast::{self, CompareOp, ExprKind};

impl Resolver {
    pub(super) fn condition(&mut self, expr: &ast::Expr, frame: &mut Frame) -> Lowered<CondId> {
        match &expr.kind {
            ExprKind::Compare { first, rest } => {
                let mut whole: Option<CondId> = None;
                let mut left = self.side(first, frame)?;
                for (op, right) in rest {
                    let right = self.side(right, frame)?;
                    let part = self.comparison(*op, &left, &right);
                    whole = Some(match whole {
                        Some(whole) if build::decided(&self.program.exprs, whole) == Some(true) => part,
                        Some(whole) if build::decided(&self.program.exprs, part) == Some(true) => whole,
                        Some(whole) => self.program.exprs.add_condition(Cond::And(whole, part)),
                        None => part,
                    });
                    left = right;
                }
                Ok(whole.expect("a comparison has two sides"))
            }
            ExprKind::Not(a) => {
                let a = self.condition(a, frame)?;
                Ok(build::opposite(&mut self.program.exprs, a))
            }
            ExprKind::Binary { op: op @ (ast::BinaryOp::And | ast::BinaryOp::Or), left, right } => {
                let a = self.condition(left, frame)?;
                let assumed = frame.assumptions.len();
                let taken = *op == ast::BinaryOp::And;
                frame.assumptions.extend(guard::facts(&self.program.exprs, a, taken));
                let b = self.condition(right, frame)?;
                frame.assumptions.truncate(assumed);
                let exprs = &mut self.program.exprs;
                // What is the same everywhere takes no part in the condition.
                Ok(match (build::decided(exprs, a), build::decided(exprs, b)) {
                    (Some(outcome), _) => {
                        if outcome == taken {
                            b
                        } else {
                            a
                        }
                    }
                    (None, Some(outcome)) => {
                        if outcome == taken {
                            a
                        } else {
                            b
                        }
                    }
                    (None, None) => exprs.add_condition(if taken { Cond::And(a, b) } else { Cond::Or(a, b) }),
                })
            }
            _ => Err(Diagnostic::error("not-a-condition", "a condition is needed here, and this is a number")
                .at(expr.span)
                .hint("compare it, as in 'x[i] != 0'")),
        }
    }

    fn side(&mut self, expr: &ast::Expr, frame: &mut Frame) -> Lowered<Side> {
        let index = self.index_value(expr, frame)?;
        let value = self.value(expr, frame)?;
        Ok(Side { index, value })
    }

    fn comparison(&mut self, op: CompareOp, left: &Side, right: &Side) -> CondId {
        if let (Some(a), Some(b)) = (left.index.clone(), right.index.clone()) {
            let condition = match op {
                CompareOp::Lt => Constraint::at_most(a.shift(1), b),
                CompareOp::Le => Constraint::at_most(a, b),
                CompareOp::Gt => Constraint::at_most(b.shift(1), a),
                CompareOp::Ge => Constraint::at_most(b, a),
                CompareOp::Eq | CompareOp::Ne => Constraint::equal(a, b),
            };
            let id = self.program.exprs.add_condition(Cond::Index(condition));
            return if op == CompareOp::Ne { build::opposite(&mut self.program.exprs, id) } else { id };
        }
        let (a, b) = (left.value, right.value);
        let exprs = &mut self.program.exprs;
        match op {
            CompareOp::Lt => exprs.add_condition(Cond::Compare(Comparison::Lt, a, b)),
            CompareOp::Le => exprs.add_condition(Cond::Compare(Comparison::Le, a, b)),
            CompareOp::Gt => exprs.add_condition(Cond::Compare(Comparison::Lt, b, a)),
            CompareOp::Ge => exprs.add_condition(Cond::Compare(Comparison::Le, b, a)),
            CompareOp::Eq => exprs.add_condition(Cond::Compare(Comparison::Eq, a, b)),
            CompareOp::Ne => {
                let equal = exprs.add_condition(Cond::Compare(Comparison::Eq, a, b));
                exprs.add_condition(Cond::Not(equal))
            }
        }
    }
}

/// One side of a comparison: a value, and the index expression if it is one.
struct Side {
    index: Option<Affine>,
    value: ExprId,
}
