//! Contributions to the derivative of one tensor, put together into its definition.

use super::gather::Gathered;
use crate::build::{self, Product};
use crate::diagnostic::Diagnostic;
use crate::program::{Atom, Constraint, Definition, Expr, ExprId, Exprs, Index, Program, Range, ReduceOp, TensorId};
use crate::{guard, nested};

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
    mut contribution: Contribution,
    context: &[Constraint],
) -> Result<ExprId, Diagnostic> {
    let rank = outputs.len();
    if contribution.free.is_empty() {
        return Ok(contribution.value);
    }
    let exprs = &mut program.exprs;
    let depends =
        |exprs: &Exprs, id: ExprId, count: usize| exprs.used_indices(id, rank + count)[rank..].contains(&true);
    let count = contribution.free.len();
    if let Expr::Select(c, a, b) = exprs[contribution.value].clone()
        && exprs.as_constant(b) == Some(0.0)
    {
        let probe = exprs.constant(1.0);
        let condition = exprs.add(Expr::Select(c, probe, b));
        if !depends(exprs, condition, count) {
            contribution.value = a;
            let inner = sum(program, tensor, outputs, assumptions, contribution, context)?;
            return Ok(build::select(&mut program.exprs, c, inner, b));
        }
    }
    let product = Product::of(exprs, contribution.value);
    let (inside, outside) = product.split(|factor| depends(exprs, factor, count));
    contribution.value = inside.build(exprs);
    let mut factor = outside.build(exprs);
    while let Some(points) = constant_count(exprs, &contribution, rank, context) {
        contribution.free.pop();
        factor = build::multiply(exprs, factor, points);
    }
    if contribution.free.is_empty() {
        return Ok(build::multiply(exprs, factor, contribution.value));
    }
    let full = Definition {
        tensor,
        indices: outputs.iter().cloned().chain(contribution.free).collect(),
        rank,
        reduction: Some(ReduceOp::Sum),
        conditions: contribution.conditions,
        assumptions: [assumptions, &contribution.outer].concat(),
        body: contribution.value,
    };
    let name = format!("{}_sum", program[tensor].name);
    let (access, _) = nested::add(program, full, name, context, &[])?;
    Ok(build::multiply(&mut program.exprs, factor, access))
}

/// The number of values of the innermost index, if nothing depends on it.
fn constant_count(
    exprs: &mut Exprs,
    contribution: &Contribution,
    rank: usize,
    context: &[Constraint],
) -> Option<ExprId> {
    let position = rank + contribution.free.len().checked_sub(1)?;
    let used = exprs.used_indices(contribution.value, position + 1)[position];
    if used || contribution.conditions.iter().any(|c| c.affine.uses_index(position)) {
        return None;
    }
    let [low] = contribution.free.last()?.range.low.as_slice() else { return None };
    let [high] = contribution.free.last()?.range.high.as_slice() else { return None };
    let count = (high.clone() - low.clone()).shift(1);
    // An outer sum over something that depends on its index is left as it is.
    let mut outer = false;
    count.visit_atoms(&mut |a| outer |= matches!(a, Atom::Index(i) if *i as usize >= rank));
    if outer {
        return None;
    }
    let never_negative = crate::system::implies(context, &Constraint::non_negative(count.clone()));
    let number = build::index(exprs, count);
    if never_negative {
        return Some(number);
    }
    let zero = exprs.constant(0.0);
    Some(build::binary(exprs, crate::program::BinaryOp::Max, number, zero))
}
