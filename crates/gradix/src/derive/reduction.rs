//! What an element of the body contributes to a reduction: the adjoint of `⊕[k] body` becomes that of `body`.
//!
//! ```text
//! sum    1
//! prod   the product of the other values: T / body where no value is 0, otherwise what stands before times what stands after
//! logsumexp    exp(body - T), and 0 where T is -inf
//! max    1 / (number of values that are the largest) where body is the largest, else 0
//! ```

use super::adjoint::Path;
use crate::diagnostic::Diagnostic;
use crate::domain::system;
use crate::lift;
use crate::program::build;
use crate::program::{
    Affine, CondId, Constraint, Definition, Expr, ExprId, Exprs, Index, Program, ReduceOp, TensorId, TensorKind,
    UnaryOp,
};

/// `adjoint` of the result turned into that of the body at one point, and where it flows. The derivatives of tensors that are
/// `plain` are not 0 where their values are NaN.
pub fn through_reduction(
    program: &mut Program,
    definition: &Definition,
    adjoint: ExprId,
    context: &[Constraint],
    plain: &dyn Fn(TensorId) -> bool,
) -> Result<(Path, ExprId), Diagnostic> {
    match definition.reduction {
        None | Some(ReduceOp::Sum) => Ok((Path::default(), adjoint)),
        Some(ReduceOp::Max | ReduceOp::Min) => {
            let hit = hit(program, definition, context)?;
            let count = count_where(program, definition, hit, "ties");
            let share = build::divide(&mut program.exprs, adjoint, count);
            Ok((Path { guard: Vec::new(), values: vec![hit] }, share))
        }
        Some(ReduceOp::LogSumExp) => {
            let exprs = &mut program.exprs;
            let result = exprs.access(definition.tensor, definition.outputs());
            let nothing = exprs.constant(f64::NEG_INFINITY);
            let is_nothing = build::equal(exprs, result, nothing);
            let difference = build::subtract(exprs, definition.body, result);
            let share = build::unary(exprs, UnaryOp::Exp, difference);
            let mut path = Path { guard: Vec::new(), values: vec![build::opposite(exprs, is_nothing)] };
            let (share, softmax) = softmax(program, definition, share, context);
            // Where the result is -inf, the softmax is NaN, and so is what it sends to the same terms.
            if softmax.is_some_and(plain) {
                path.values.clear();
            }
            Ok((path, build::multiply(&mut program.exprs, adjoint, share)))
        }
        Some(ReduceOp::Prod) => {
            let others = others(program, definition, context)?;
            Ok((Path::default(), build::multiply(&mut program.exprs, adjoint, others)))
        }
    }
}

/// The tensor that is defined as `share` at all points of a reduction, and its element; `share` itself if there is none.
fn softmax(
    program: &mut Program,
    definition: &Definition,
    share: ExprId,
    context: &[Constraint],
) -> (ExprId, Option<TensorId>) {
    let count = definition.indices.len();
    let domain = [context, &definition.domain()].concat();
    let is_named = |d: &&Definition| program[d.tensor].kind == TensorKind::Defined && d.reduction.is_none();
    let same_rank = program.definitions.iter().filter(is_named).filter(|d| d.rank == count);
    let candidates: Vec<Definition> = same_rank.filter(|d| is_exponential(&program.exprs, d.body)).cloned().collect();
    for candidate in candidates {
        for order in orders(count) {
            let place: Vec<Affine> = order.into_iter().map(Affine::index).collect();
            let covers = |row: &Constraint| system::implies(&domain, &row.with_indices(&place));
            if lift::remap(&mut program.exprs, candidate.body, &place) == share
                && candidate.output_domain().iter().all(covers)
            {
                return (program.exprs.access(candidate.tensor, place), Some(candidate.tensor));
            }
        }
    }
    (share, None)
}

fn is_exponential(exprs: &Exprs, body: ExprId) -> bool {
    matches!(exprs[body], Expr::Unary(UnaryOp::Exp, _))
}

/// More indices are looked at in the order in which they stand only.
const MAX_PERMUTED: usize = 4;

/// The orders of so many indices.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count > MAX_PERMUTED {
        return vec![(0..count).collect()];
    }
    (0..count).fold(vec![Vec::new()], |shorter, last| {
        let inserted = |order: &Vec<usize>| -> Vec<Vec<usize>> {
            let at = |place: usize| [&order[..place], &[last], &order[place..]].concat();
            (0..=last).rev().map(at).collect()
        };
        shorter.iter().flat_map(inserted).collect()
    })
}

/// Whether the body is the largest (or smallest) value. Anything but an element is compared where it is
/// computed, in a definition of its own: elsewhere it might be computed in another order and round otherwise.
fn hit(program: &mut Program, definition: &Definition, context: &[Constraint]) -> Result<CondId, Diagnostic> {
    let result = program.exprs.access(definition.tensor, definition.outputs());
    let equal = build::equal(&mut program.exprs, definition.body, result);
    if matches!(program.exprs[definition.body], Expr::Access(..)) {
        return Ok(equal);
    }
    let (one, zero) = (program.exprs.constant(1.0), program.exprs.constant(0.0));
    let body = build::select(&mut program.exprs, equal, one, zero);
    let full = Definition {
        rank: definition.indices.len(),
        reduction: None,
        conditions: Vec::new(),
        assumptions: [definition.assumptions.as_slice(), &definition.conditions].concat(),
        body,
        ..definition.clone()
    };
    let name = format!("{}_hits", program[definition.tensor].name);
    let (hits, _) = lift::add(program, full, name, context, &[])?;
    Ok(build::equal(&mut program.exprs, hits, one))
}

/// How many points of the reduction satisfy a condition, as a definition of its own.
fn count_where(program: &mut Program, definition: &Definition, condition: CondId, what: &str) -> ExprId {
    let (one, zero) = (program.exprs.constant(1.0), program.exprs.constant(0.0));
    let body = build::select(&mut program.exprs, condition, one, zero);
    let name = format!("{}_{what}", program[definition.tensor].name);
    let tensor = program.add_nested(name, definition.rank);
    program.definitions.push(Definition { tensor, reduction: Some(ReduceOp::Sum), body, ..definition.clone() });
    program.exprs.access(tensor, definition.outputs())
}

/// The product of all values but the one at hand.
fn others(program: &mut Program, definition: &Definition, context: &[Constraint]) -> Result<ExprId, Diagnostic> {
    let zero = program.exprs.constant(0.0);
    let vanishes = build::equal(&mut program.exprs, definition.body, zero);
    let zeros = count_where(program, definition, vanishes, "zeros");
    let result = program.exprs.access(definition.tensor, definition.outputs());
    let quotient = build::divide(&mut program.exprs, result, definition.body);
    let own = definition.indices.len() - 1;
    let before = beside(program, definition, |other| Constraint::at_most(other.shift(1), Affine::index(own)), context)?;
    let after = beside(program, definition, |other| Constraint::at_most(Affine::index(own).shift(1), other), context)?;
    let product = build::multiply(&mut program.exprs, before, after);
    let none = build::equal(&mut program.exprs, zeros, zero);
    Ok(build::select(&mut program.exprs, none, quotient, product))
}

/// The product over the points of the (single) reduction index that stand on one side of the point at hand.
fn beside(
    program: &mut Program,
    definition: &Definition,
    side: impl FnOnce(Affine) -> Constraint,
    context: &[Constraint],
) -> Result<ExprId, Diagnostic> {
    let own = definition.indices.len() - 1;
    debug_assert_eq!(own, definition.rank, "a product runs over one index");
    let mut map: Vec<Affine> = (0..own).map(Affine::index).collect();
    map.push(Affine::index(own + 1));
    let other = &definition.indices[own];
    let range = other.range.map(|b| b.with_indices(&map));
    let mut rows: Vec<Constraint> = definition.conditions.iter().map(|c| c.with_indices(&map)).collect();
    rows.extend(range.constraints(own + 1));
    rows.push(side(Affine::index(own + 1)));
    let known = [context, &definition.domain()].concat();
    let solved = match system::solve(rows, &[own + 1], &known) {
        Ok(Some(solved)) => solved,
        Ok(None) => return Ok(program.exprs.constant(1.0)),
        Err(_) => return Err(system::too_complex()),
    };
    let mut indices = definition.indices.clone();
    indices.push(Index { name: other.name.clone(), range: solved.ranges[0].clone() });
    let conditions = [solved.conditions, solved.outer].concat();
    let full = Definition {
        tensor: definition.tensor,
        indices,
        rank: own + 1,
        reduction: Some(ReduceOp::Prod),
        conditions,
        assumptions: [definition.assumptions.as_slice(), &definition.conditions].concat(),
        body: lift::remap(&mut program.exprs, definition.body, &map),
    };
    let name = format!("{}_prod", program[definition.tensor].name);
    Ok(lift::add(program, full, name, context, &[])?.0)
}
