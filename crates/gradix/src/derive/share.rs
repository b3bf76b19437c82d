//! Parts that several flows of one definition have in common, computed once.
//!
//! The derivative by each of many accesses repeats what lies between the result and the point where
//! they part: in `y[i] = tanh(a*x[i-1] + b*x[i] + c*x[i+1])` all of them contain `dy[i] * (1 - tanh(…)^2)`.
//! Where repeating it would cost a multiple of the function, it becomes a definition of its own.

use super::adjoint::Flow;
use crate::diagnostic::Diagnostic;
use crate::domain::bounds;
use crate::domain::guard::Guard;
use crate::lift;
use crate::program::expr::Rewriter;
use crate::program::{BinaryOp, Constraint, Definition, Expr, ExprId, Exprs, Index, Program, ReduceOp, UnaryOp};
use std::collections::{BTreeMap, HashMap};

/// A part that costs less than this is computed again.
const MIN_COST: u64 = 3;

/// What a function costs, in additions.
const ELEMENTARY_COST: u64 = 8;

/// Replaces costly common parts of the flows by accesses to new definitions over the indices of
/// `definition` and then the `batch` indices.
pub fn share(
    program: &mut Program,
    definition: &Definition,
    batch: &[Index],
    flows: &mut [Flow],
    context: &[Constraint],
) -> Result<(), Diagnostic> {
    // A sum would need an intermediate value for each of its terms, so it has to be worth more.
    let allowed = if definition.reduction.is_some() { 8 } else { 3 };
    let total: u64 = flows.iter().map(|f| cost(&program.exprs, f.value)).sum();
    let exponential = if definition.reduction == Some(ReduceOp::LogSumExp) { ELEMENTARY_COST } else { 0 };
    if total <= allowed * (cost(&program.exprs, definition.body) + exponential + 1) {
        return Ok(());
    }
    let mut groups: BTreeMap<Guard, Vec<usize>> = BTreeMap::new();
    for (number, flow) in flows.iter().enumerate() {
        groups.entry(flow.path.guard.clone()).or_default().push(number);
    }
    for (guard, members) in groups {
        let roots: Vec<ExprId> = members.iter().map(|&m| flows[m].value).collect();
        let mut replaced = HashMap::new();
        for part in common_parts(&program.exprs, &roots) {
            let indices: Vec<Index> = definition.indices.iter().chain(batch).cloned().collect();
            let full = Definition {
                tensor: definition.tensor,
                rank: indices.len(),
                indices,
                reduction: None,
                conditions: Vec::new(),
                assumptions: [definition.assumptions.as_slice(), &definition.conditions, &guard].concat(),
                body: part,
            };
            // Of a condition on indices in several cases, nothing is left around a part that stands alone.
            let conditional = members.iter().any(|&member| !flows[member].path.values.is_empty());
            if conditional && !bounds::stays_inside(program, part, &[context, &full.domain()].concat()) {
                continue;
            }
            let name = format!("{}_adj", program[definition.tensor].name);
            replaced.insert(part, lift::add(program, full, name, context, &[])?.0);
        }
        let mut rewriter = Rewriter::with(replaced);
        for &member in &members {
            flows[member].value = rewriter.copy(&mut program.exprs, flows[member].value);
        }
    }
    Ok(())
}

/// The largest parts that at least two roots contain.
fn common_parts(exprs: &Exprs, roots: &[ExprId]) -> Vec<ExprId> {
    let mut counts: HashMap<ExprId, usize> = HashMap::new();
    let orders: Vec<Vec<ExprId>> = roots.iter().map(|r| exprs.postorder(*r)).collect();
    orders.iter().flatten().for_each(|id| *counts.entry(*id).or_default() += 1);
    let mut parts = Vec::new();
    let mut consider = |id: ExprId, above: usize| {
        if counts[&id] > above && counts[&id] >= 2 && cost(exprs, id) >= MIN_COST && !parts.contains(&id) {
            parts.push(id);
        }
    };
    for (root, order) in roots.iter().zip(&orders) {
        consider(*root, 1);
        for id in order {
            exprs.operands(*id).into_iter().for_each(|operand| consider(operand, counts[id]));
        }
    }
    parts.sort();
    parts
}

/// What an expression costs, roughly, in additions.
fn cost(exprs: &Exprs, root: ExprId) -> u64 {
    let price = |id: &ExprId| match &exprs[*id] {
        Expr::Constant(_) | Expr::Index(_) | Expr::Access(..) => 0,
        Expr::Unary(UnaryOp::Neg | UnaryOp::Stop, _) => 0,
        Expr::Unary(..) => ELEMENTARY_COST,
        Expr::Binary(op, ..) if *op == BinaryOp::Div || op.is_elementary() => 4,
        Expr::Binary(..) | Expr::Select(..) => 1,
    };
    exprs.postorder(root).iter().map(price).sum()
}
