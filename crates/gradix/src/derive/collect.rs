//! Common factors of sums: `2 * (dw[i] - dw[i] * c^2)` is `2 * dw[i] * (1 - c^2)`.
//!
//! What is compared stays as it is: whether a term is the largest is asked of the very numbers that the maximum is of, and
//! a product rounds otherwise.

use crate::program::build::{self, Build};
use crate::program::expr::Rewriter;
use crate::program::{BinaryOp, Expr, ExprId, Exprs, Program, TensorId};
use std::collections::HashSet;

/// Takes common factors out of the sums of all definitions but those that were `given`. Says whether there were any.
pub fn collect(program: &mut Program, given: &HashSet<TensorId>) -> bool {
    let mut changed = false;
    for definition in program.definitions.iter_mut().filter(|definition| !given.contains(&definition.tensor)) {
        let body = collected(&mut program.exprs, definition.body);
        changed |= body != definition.body;
        definition.body = body;
    }
    changed
}

fn collected(exprs: &mut Exprs, root: ExprId) -> ExprId {
    let order = exprs.postorder(root);
    let is_sum = |exprs: &Exprs, id| matches!(exprs[id], Expr::Binary(BinaryOp::Add | BinaryOp::Sub, ..));
    let mut terms = compared(exprs, &order);
    for &id in order.iter().filter(|&&id| is_sum(exprs, id)) {
        exprs.visit_operands(id, &mut |operand| {
            terms.insert(operand);
        });
    }
    let mut rewriter = Rewriter::default();
    for id in order.into_iter().filter(|id| !terms.contains(id)).collect::<Vec<_>>() {
        let new = rewriter.rewrite(exprs, id, &mut Build);
        if is_sum(exprs, new) {
            let product = build::factored(exprs, new);
            rewriter.put(id, product);
        }
    }
    rewriter.rewrite(exprs, root, &mut Build)
}

/// Everything in the values that conditions compare.
fn compared(exprs: &Exprs, order: &[ExprId]) -> HashSet<ExprId> {
    let values = order.iter().flat_map(|id| match exprs[*id] {
        Expr::Select(condition, ..) => exprs.compared(condition),
        _ => Vec::new(),
    });
    values.flat_map(|value| exprs.postorder(value)).collect()
}
