//! Contributions to the derivative of one tensor, put together into its definition.

use super::gather::Gathered;
use super::join;
use crate::diagnostic::Diagnostic;
use crate::domain::{bounds, guard, system};
use crate::lift;
use crate::program::build;
use crate::program::{
    BinaryOp, Cond, CondId, Constraint, Definition, Expr, ExprId, Exprs, Index, Program, Range, ReduceOp, Relation,
    TensorId,
};
use crate::simplify::factor;
use gradix_int::Int;

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
    let known = [assumptions, context].concat();
    let mut terms = Vec::new();
    for contribution in join::join(program, outputs, &known, contributions) {
        let outer = contribution.outer.clone();
        terms.push((outer, sum(program, tensor, outputs, assumptions, contribution, context)?));
    }
    let ranges = outputs.iter().enumerate().flat_map(|(position, index)| index.range.constraints(position));
    let known: Vec<Constraint> = ranges.chain(known).collect();
    let exprs = &mut program.exprs;
    let terms: Vec<ExprId> = terms.into_iter().map(|term| masked(exprs, term)).collect();
    let whole = build::total(exprs, &terms);
    Ok(choices(exprs, whole, &known))
}

/// The most terms that are compared with each other.
const MAX_CHOICES: usize = 24;

/// What is added where rows hold.
type Term = (Vec<Constraint>, ExprId);

fn masked(exprs: &mut Exprs, (rows, term): Term) -> ExprId {
    let zero = exprs.constant(0.0);
    match guard::all(exprs, &rows) {
        Some(condition) => build::select(exprs, condition, term, zero),
        None => term,
    }
}

/// Terms of a sum of which one counts at a time, as choices:
/// `(if i == 0 then a else 0) + (if i >= 1 then b else 0)` is `if i == 0 then a else b`.
fn choices(exprs: &mut Exprs, whole: ExprId, known: &[Constraint]) -> ExprId {
    let (mut plain, mut terms) = (Vec::new(), Vec::new());
    collect(exprs, whole, 1.0, &mut plain, &mut terms);
    let count = terms.len();
    if count > MAX_CHOICES {
        return whole;
    }
    share_equations(exprs, &mut terms);
    let mut first = count;
    while first > 0 {
        first -= 1;
        let neighbour = (first + 1..terms.len()).find_map(|second| {
            let sets = [&terms[first].0, &terms[second].0].map(Vec::as_slice);
            let union = join::union(sets, known, preferred(exprs, [terms[first].1, terms[second].1]))?;
            Some((second, system::prune(union.rows, known)?, union.cut, union.in_first))
        });
        if let Some((second, rows, cut, in_first)) = neighbour {
            let (a, b) = (terms[first].1, terms.remove(second).1);
            let condition = exprs.add_condition(Cond::Index(cut));
            let (a, b) = if in_first { (a, b) } else { (b, a) };
            terms[first] = (rows, build::select(exprs, condition, a, b));
            first = terms.len();
        }
    }
    if terms.len() == count {
        return whole;
    }
    plain.extend(terms.into_iter().map(|term| masked(exprs, term)).collect::<Vec<_>>());
    build::total(exprs, &plain)
}

/// `if i == 0 then a else b`, but `if i <= N - 2 then x[i + 1] else x[N - 1]`, which may be an element of its own.
fn preferred(exprs: &Exprs, values: [ExprId; 2]) -> Relation {
    match values.map(|id| &exprs[id]) {
        [Expr::Access(a, _), Expr::Access(b, _)] if a == b => Relation::NonNegative,
        _ => Relation::Zero,
    }
}

/// The terms of a sum, apart from those under conditions on indices.
fn collect(exprs: &mut Exprs, id: ExprId, factor: f64, plain: &mut Vec<ExprId>, terms: &mut Vec<Term>) {
    let rows = match exprs[id] {
        Expr::Binary(BinaryOp::Add, a, b) => {
            collect(exprs, a, factor, plain, terms);
            return collect(exprs, b, factor, plain, terms);
        }
        Expr::Binary(BinaryOp::Sub, a, b) => {
            collect(exprs, a, factor, plain, terms);
            return collect(exprs, b, -factor, plain, terms);
        }
        Expr::Select(c, a, b) if exprs.as_constant(b) == Some(0.0) => {
            guard::conjunction(exprs, c).map(|rows| (rows, a))
        }
        _ => None,
    };
    match rows {
        Some((rows, value)) => terms.push((rows, build::scale(exprs, factor, value))),
        None => plain.push(build::scale(exprs, factor, id)),
    }
}

/// Where an equation tells terms apart that are restricted differently besides, the rest goes inside:
/// of `q == 0`, `q == 1 and t >= 1` and `q == 2` just the equations are left.
fn share_equations(exprs: &mut Exprs, terms: &mut [Term]) {
    let split = |rows: &[Constraint]| -> (Vec<Constraint>, Vec<Constraint>) {
        rows.iter().cloned().partition(|row| row.relation == Relation::Zero)
    };
    let parts: Vec<_> = terms.iter().map(|(rows, _)| split(rows)).collect();
    for (place, (equations, rest)) in parts.iter().enumerate() {
        let excludes = |a: &Constraint, b: &Constraint| {
            (a.affine.clone() - b.affine.clone()).as_constant().is_some_and(|number| *number != Int::ZERO)
        };
        let differs = parts.iter().any(|(others, other_rest)| {
            other_rest != rest && equations.iter().any(|a| others.iter().any(|b| excludes(a, b)))
        });
        if differs && !rest.is_empty() {
            terms[place] = (equations.clone(), masked(exprs, (rest.clone(), terms[place].1)));
        }
    }
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
    full.assumptions.extend(guard::facts(&program.exprs, c, true));
    Some(c)
}
