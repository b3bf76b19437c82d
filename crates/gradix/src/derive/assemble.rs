//! Contributions to the derivative of one tensor, put together into its definition.

use super::gather::Gathered;
use crate::diagnostic::Diagnostic;
use crate::domain::{bounds, guard};
use crate::lift;
use crate::program::build;
use crate::program::{CondId, Constraint, Definition, Expr, ExprId, Exprs, Index, Program, Range, ReduceOp, TensorId};
use crate::simplify::factor;

/// A part of a derivative: `if outer then sum[free in ranges, conditions] value else 0`.
#[derive(Clone, Debug)]
pub struct Contribution {
    /// Conditions on the element.
    pub outer: Vec<Constraint>,
    /// The free indices.
    pub free: Vec<Index>,
    /// What restricts them besides their ranges.
    pub conditions: Vec<Constraint>,
    /// What is summed.
    pub value: ExprId,
}

impl Contribution {
    /// From the points that read the element and the value at each, in the new space.
    pub fn new(gathered: &Gathered, value: ExprId) -> Self {
        let named = gathered.free.iter().zip(&gathered.ranges);
        let free = named.map(|(name, range)| Index { name: name.clone(), range: range.clone() }).collect();
        let (outer, conditions) = (gathered.outer.clone(), gathered.conditions.clone());
        Contribution { outer, free, conditions, value }
    }

    fn same_points(&self, other: &Contribution) -> bool {
        let ranges = |c: &Contribution| c.free.iter().map(|i| i.range.clone()).collect::<Vec<Range>>();
        self.outer == other.outer && self.conditions == other.conditions && ranges(self) == ranges(other)
    }
}

/// Adds a contribution, to an earlier one over the same points if there is one.
pub fn merge(exprs: &mut Exprs, contributions: &mut Vec<Contribution>, new: Contribution) {
    match contributions.iter_mut().find(|c| c.same_points(&new)) {
        Some(known) => known.value = build::add(exprs, known.value, new.value),
        None => contributions.push(new),
    }
}

/// The value of one element of `tensor`, whose output indices are `outputs`: the sum of all contributions.
/// Sums become nested definitions.
pub fn assemble(
    program: &mut Program,
    tensor: TensorId,
    outputs: &[Index],
    assumptions: &[Constraint],
    contributions: Vec<Contribution>,
    context: &[Constraint],
) -> Result<ExprId, Diagnostic> {
    let mut terms = Vec::new();
    for contribution in contributions {
        let outer = contribution.outer.clone();
        let term = sum(program, tensor, outputs, assumptions, contribution, context)?;
        let zero = program.exprs.constant(0.0);
        terms.push(match guard::all(&mut program.exprs, &outer) {
            Some(condition) => build::select(&mut program.exprs, condition, term, zero),
            None => term,
        });
    }
    Ok(build::total(&mut program.exprs, &terms))
}

/// `sum[free] value` with everything that does not depend on `free` in front.
fn sum(
    program: &mut Program,
    tensor: TensorId,
    outputs: &[Index],
    assumptions: &[Constraint],
    contribution: Contribution,
    context: &[Constraint],
) -> Result<ExprId, Diagnostic> {
    if contribution.free.is_empty() {
        return Ok(contribution.value);
    }
    let mut full = Definition {
        tensor,
        indices: outputs.iter().cloned().chain(contribution.free).collect(),
        rank: outputs.len(),
        reduction: Some(ReduceOp::Sum),
        conditions: contribution.conditions,
        assumptions: [assumptions, &contribution.outer].concat(),
        body: contribution.value,
    };
    let mask = independent_mask(program, &mut full, context);
    let mut front = program.exprs.constant(1.0);
    if let Some((outside, inside)) = factor::factor(program, &full, context) {
        (front, full.body) = (outside, inside);
    }
    let mut filled: Vec<Constraint> = Vec::new();
    while let Some((count, positive)) = factor::innermost_count(&mut program.exprs, &full, context) {
        full.indices.pop();
        front = build::multiply(&mut program.exprs, front, count);
        filled.extend(positive);
    }
    let rest = if full.indices.len() == full.rank {
        filled.append(&mut full.conditions);
        full.body
    } else {
        full.assumptions.extend(filled.iter().cloned());
        let name = format!("{}_sum", program[tensor].name);
        lift::add(program, full, name, context, &[])?.0
    };
    let exprs = &mut program.exprs;
    let mut value = build::multiply(exprs, front, rest);
    let zero = exprs.constant(0.0);
    if let Some(condition) = guard::all(exprs, &filled) {
        value = build::select(exprs, condition, value, zero);
    }
    Ok(mask.map_or(value, |condition| build::select(exprs, condition, value, zero)))
}

/// Takes `if c then … else 0` off the body of a sum where `c` does not depend on its indices and can be
/// tested even where the sum is empty.
fn independent_mask(program: &mut Program, full: &mut Definition, context: &[Constraint]) -> Option<CondId> {
    let exprs = &mut program.exprs;
    let Expr::Select(c, a, b) = exprs[full.body] else { return None };
    let one = exprs.constant(1.0);
    let probe = exprs.add(Expr::Select(c, one, b));
    let depends = exprs.used_indices(probe, full.indices.len())[full.rank..].contains(&true);
    if depends || exprs.as_constant(b) != Some(0.0) {
        return None;
    }
    let outer: Vec<Constraint> = full.output_domain().into_iter().chain(context.iter().cloned()).collect();
    if !bounds::stays_inside(program, probe, &outer) {
        return None;
    }
    full.body = a;
    Some(c)
}
