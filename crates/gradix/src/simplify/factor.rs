//! `sum[k] a * b[k]` is `a * sum[k] b[k]`: what can be taken out of a sum.
//!
//! Where the sum is empty its value is 0, whatever `a` is. So `a` comes out only if the sum is never
//! empty, or if `a` can be computed there and is finite.

use crate::domain::{bounds, system};
use crate::program::build::{self, Product};
use crate::program::{Affine, BinaryOp, Constraint, Definition, Expr, ExprId, Exprs, Program, ReduceOp, UnaryOp};
use crate::scalar::Finite;
use std::collections::HashSet;

/// Splits the body of a sum into what comes out and what stays; `None` if nothing comes out.
pub fn factor(program: &mut Program, sum: &Definition, context: &[Constraint]) -> Option<(ExprId, ExprId)> {
    if sum.reduction != Some(ReduceOp::Sum) {
        return None;
    }
    let outer: Vec<Constraint> = sum.output_domain().into_iter().chain(context.iter().cloned()).collect();
    let depends = |exprs: &Exprs, id| exprs.used_indices(id, sum.indices.len())[sum.rank..].contains(&true);
    let product = Product::of(&program.exprs, sum.body);
    let mut filled = None;
    let (inside, outside) = product.split(|id, divides| {
        if depends(&program.exprs, id) {
            return true;
        }
        is_risky(program, id, divides, &outer) && !*filled.get_or_insert_with(|| is_never_empty(sum, &outer))
    });
    let (inside, outside) = (inside.build(&mut program.exprs), outside.build(&mut program.exprs));
    let nothing = program.exprs.as_constant(outside).is_some_and(|number| number == 1.0 || !number.is_finite());
    (!nothing).then_some((outside, inside))
}

/// Whether a factor (or with `divides` a divisor) may be infinite or not even computable somewhere in the domain.
pub fn is_risky(program: &mut Program, id: ExprId, divides: bool, domain: &[Constraint]) -> bool {
    divides && (reads(&program.exprs, id) || can_vanish(&program.exprs, id, domain))
        || has_pole(&program.exprs, id)
        || is_infinite(&program.exprs, id)
        || reads_empty_extreme(program, id)
        || !bounds::stays_inside(program, id, domain)
}

/// Whether a divisor that reads nothing may be 0 somewhere in the domain.
fn can_vanish(exprs: &Exprs, id: ExprId, domain: &[Constraint]) -> bool {
    match &exprs[id] {
        Expr::Constant(number) => number.value() == 0.0,
        Expr::Index(affine) => {
            let known = system::Facts::new(domain);
            let signs = [affine.shift(-1), -affine.shift(1)];
            !signs.into_iter().any(|beyond| known.implies(&Constraint::non_negative(beyond)))
        }
        _ => true,
    }
}

/// Whether an expression reads a `max` or `min` that can be of nothing, and so infinite, or what such a one was simplified
/// to; also by way of other definitions.
fn reads_empty_extreme(program: &Program, root: ExprId) -> bool {
    let is_number = |definition: &Definition| is_infinite(&program.exprs, definition.body);
    if !program.definitions.iter().any(|definition| is_extreme(definition) || is_number(definition)) {
        return false;
    }
    let context = program.size_context();
    let mut seen = HashSet::new();
    let mut pending: Vec<&Definition> = Vec::new();
    for (tensor, _) in program.exprs.accesses(root) {
        let Some(definition) = program.definition_of(tensor) else { continue };
        let known = || [context.as_slice(), &definition.output_domain()].concat();
        if is_number(definition) || is_extreme(definition) && !is_never_empty(definition, &known()) {
            return true;
        }
        if seen.insert(tensor) {
            pending.push(definition);
        }
    }
    while let Some(reader) = pending.pop() {
        for (tensor, subscripts) in program.exprs.accesses(reader.body) {
            let Some(definition) = program.definition_of(tensor) else { continue };
            let is_empty = is_extreme(definition) && !is_filled_for(definition, subscripts, reader, &context);
            if is_empty || is_number(definition) {
                return true;
            }
            if seen.insert(tensor) {
                pending.push(definition);
            }
        }
    }
    false
}

/// Whether an infinite number is a factor or term of an expression, or of a branch of a choice.
fn is_infinite(exprs: &Exprs, root: ExprId) -> bool {
    let number = |id: &ExprId| exprs.as_constant(*id).is_some_and(|number| !number.is_finite());
    let (mut pending, mut seen) = (vec![root], HashSet::new());
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        match exprs[id] {
            Expr::Unary(UnaryOp::Neg, a) => pending.push(a),
            Expr::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div, a, b)
            | Expr::Select(_, a, b) => {
                pending.extend([a, b]);
            }
            _ if !reads(exprs, id) && exprs.postorder(id).iter().any(number) => return true,
            _ => {}
        }
    }
    false
}

fn is_extreme(definition: &Definition) -> bool {
    matches!(definition.reduction, Some(ReduceOp::Max | ReduceOp::Min | ReduceOp::LogSumExp))
}

/// Whether a reduction has a term wherever its reader is evaluated.
fn is_filled_for(reduction: &Definition, subscripts: &[Affine], reader: &Definition, context: &[Constraint]) -> bool {
    let first = reader.indices.len();
    let inner = (0..reduction.indices.len() - reduction.rank).map(|place| Affine::index(first + place));
    let map: Vec<Affine> = subscripts.iter().cloned().chain(inner).collect();
    let mut known = [context, &reader.domain()].concat();
    for (place, index) in reduction.indices[reduction.rank..].iter().enumerate() {
        let range = index.range.map(|bound| bound.with_indices(&map));
        let pairs = range.low.iter().flat_map(|low| range.high.iter().map(move |high| (low, high)));
        let mut rows = pairs.map(|(low, high)| Constraint::at_most(low.clone(), high.clone()));
        if !rows.all(|row| system::implies(&known, &row)) {
            return false;
        }
        known.extend(range.constraints(first + place));
    }
    reduction.conditions.iter().all(|c| system::implies(&known, &c.with_indices(&map)))
}

/// Whether every range of a reduction has a value for all outer values.
pub fn is_never_empty(sum: &Definition, outer: &[Constraint]) -> bool {
    let mut known = outer.to_vec();
    for (position, index) in sum.indices.iter().enumerate().skip(sum.rank) {
        let pairs = index.range.low.iter().flat_map(|low| index.range.high.iter().map(move |high| (low, high)));
        let mut rows = pairs.map(|(low, high)| Constraint::at_most(low.clone(), high.clone()));
        if !rows.all(|row| system::implies(&known, &row)) {
            return false;
        }
        known.extend(index.range.constraints(position));
    }
    sum.conditions.is_empty()
}

/// The number of values of the innermost index of a sum, if neither the body nor a condition depends on
/// it, and where that number is positive (`None` if everywhere).
pub fn innermost_count(
    exprs: &mut Exprs,
    sum: &Definition,
    context: &[Constraint],
) -> Option<(ExprId, Option<Constraint>)> {
    if sum.reduction != Some(ReduceOp::Sum) {
        return None;
    }
    let position = sum.indices.len().checked_sub(1).filter(|&last| last >= sum.rank)?;
    let used = exprs.used_indices(sum.body, position + 1)[position];
    if used || sum.conditions.iter().any(|c| c.affine.uses_index(position)) {
        return None;
    }
    let range = &sum.indices[position].range;
    let ([low], [high]) = (range.low.as_slice(), range.high.as_slice()) else { return None };
    let count: Affine = (high.clone() - low.clone()).shift(1);
    if (sum.rank..position).any(|outer| count.uses_index(outer)) {
        return None;
    }
    let positive = Constraint::non_negative(count.shift(-1));
    let known: Vec<Constraint> = sum.output_domain().into_iter().chain(context.iter().cloned()).collect();
    let always = system::implies(&known, &positive);
    Some((build::index(exprs, count), (!always).then_some(positive)))
}

/// Whether an expression can be infinite or NaN where the tensors that it reads are finite.
pub fn can_be_infinite(program: &Program, root: ExprId) -> bool {
    let exprs = &program.exprs;
    let grows = |op: UnaryOp| op.row().finite == Finite::UntilOverflow;
    has_pole(exprs, root)
        || reads_empty_extreme(program, root)
        || exprs.postorder(root).iter().any(|id| matches!(exprs[*id], Expr::Unary(op, _) if grows(op)))
}

/// Whether an expression can be infinite or NaN for finite values, other than by growing too large.
fn has_pole(exprs: &Exprs, root: ExprId) -> bool {
    exprs.postorder(root).iter().any(|id| match &exprs[*id] {
        Expr::Constant(number) => !number.value().is_finite(),
        Expr::Index(_) | Expr::Access(..) | Expr::Select(..) => false,
        Expr::Binary(BinaryOp::Div, _, b) => reads(exprs, *b),
        Expr::Binary(BinaryOp::Pow, a, n) => {
            let whole = exprs.as_constant(*n).is_some_and(|n| n >= 0.0 && n.fract() == 0.0);
            !whole && (reads(exprs, *a) || reads(exprs, *n))
        }
        Expr::Binary(op, ..) => op.row().finite == Finite::NotEverywhere,
        Expr::Unary(op, a) => op.row().finite == Finite::NotEverywhere && reads(exprs, *a),
    })
}

/// Whether an expression reads a tensor.
fn reads(exprs: &Exprs, root: ExprId) -> bool {
    exprs.postorder(root).iter().any(|id| matches!(exprs[*id], Expr::Access(..)))
}
