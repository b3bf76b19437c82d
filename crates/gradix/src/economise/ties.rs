//! What a reduction chooses from is computed once where it is compared.
//!
//! ```text
//! a[k] = max[i] (v[k] * x[i] + u[i])                          a_terms[k, i] = v[k] * x[i] + u[i]
//! a_hits[k, i] = if v[k] * x[i] + u[i] == a[k] then …         a[k] = max[i] a_terms[k, i]
//!                                                             a_hits[k, i] = if a_terms[k, i] == a[k] then …
//! ```
//!
//! Computed twice, in different loops, the terms could be rounded in different ways, and none would be the largest.
//! Terms that are rounded at most once are the same wherever they are computed, and stay where they are. What has zeros
//! counted by the derivative of `prod` is treated in the same way.

use super::hoist::{Reached, reached};
use crate::diagnostic::Diagnostic;
use crate::domain::system;
use crate::lift;
use crate::program::constraint::exact_quotient;
use crate::program::expr::Rewriter;
use crate::program::{
    Affine, Atom, BinaryOp, Comparison, Cond, Constraint, Definition, Expr, ExprId, Exprs, Program, ReduceOp, TensorId,
    UnaryOp,
};
use crate::simplify::settle;
use gradix_int::Int;
use std::collections::HashSet;

/// Gives the terms of such reductions definitions of their own, which all that need them read.
pub fn store(program: &mut Program) -> Result<(), Diagnostic> {
    let context = program.size_context();
    let is_chosen_from = |d: &Definition| matches!(d.reduction, Some(ReduceOp::Max | ReduceOp::Min | ReduceOp::Prod));
    let reductions: Vec<TensorId> =
        program.definitions.iter().filter(|d| is_chosen_from(d)).map(|d| d.tensor).collect();
    for tensor in reductions {
        let place = program.definitions.iter().position(|d| d.tensor == tensor).expect("a defined tensor");
        let definition = program.definitions[place].clone();
        if is_rounded_once(&program.exprs, definition.body) {
            continue;
        }
        let first = first_place(program, &definition);
        let uses = uses(program, place, first, &context);
        if uses.iter().any(|u| equated(&program.exprs, program.definitions[u.place].body).contains(&u.node)) {
            share(program, place, first, uses, &context)?;
        }
    }
    Ok(())
}

/// Whether an expression has the same bits in all loops: at most one of its operations rounds, and not by much thought.
fn is_rounded_once(exprs: &Exprs, body: ExprId) -> bool {
    let operations = exprs.postorder(body).into_iter().map(|node| match exprs[node] {
        Expr::Constant(_) | Expr::Index(_) | Expr::Access(..) | Expr::Select(..) => 0,
        Expr::Unary(UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Relu, _) => 0,
        Expr::Binary(op, ..) if op.row().chooses => 0,
        Expr::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, ..) => 1,
        Expr::Unary(..) | Expr::Binary(..) => 2,
    });
    operations.sum::<usize>() <= 1 || settle::is_trivial(exprs, body)
}

/// Where the first definition can stand that reads what this one's body reads.
fn first_place(program: &Program, definition: &Definition) -> usize {
    let nodes = program.exprs.postorder(definition.body);
    let read: HashSet<TensorId> = nodes
        .iter()
        .filter_map(|id| match &program.exprs[*id] {
            Expr::Access(tensor, _) => Some(*tensor),
            _ => None,
        })
        .collect();
    program.definitions.iter().rposition(|d| read.contains(&d.tensor)).map_or(0, |last| last + 1)
}

/// A node that is a term of the reduction.
struct Use {
    place: usize,
    node: ExprId,
    /// The indices of the reduction's definition, in those of the reader.
    point: Vec<Affine>,
}

/// Where other definitions compute terms of the reduction at `place`.
fn uses(program: &mut Program, place: usize, first: usize, context: &[Constraint]) -> Vec<Use> {
    let reduction = program.definitions[place].clone();
    // An index that no term depends on only has to have some value.
    let used = program.exprs.used_indices(reduction.body, reduction.indices.len());
    let is_idle = |atom: &Atom| matches!(atom, Atom::Index(i) if !used[*i as usize]);
    let domain = system::project(&reduction.domain(), &is_idle).unwrap_or_else(|_| reduction.domain());
    let mut uses = Vec::new();
    for position in (first..program.definitions.len()).filter(|p| *p != place) {
        let reader = program.definitions[position].clone();
        for (node, reached) in reached(&program.exprs, reader.body) {
            let Some(point) = point(&mut program.exprs, &reduction, node) else { continue };
            let guard = match reached {
                Reached::Where(guard) => guard,
                Reached::Sometimes => Vec::new(),
            };
            let known = [context, &reader.domain(), &guard].concat();
            if domain.iter().all(|row| system::implies(&known, &row.with_indices(&point))) {
                uses.push(Use { place: position, node, point });
            }
        }
    }
    uses
}

/// The point of the reduction whose term is `node`. Indices that no term depends on are 0.
fn point(exprs: &mut Exprs, reduction: &Definition, node: ExprId) -> Option<Vec<Affine>> {
    let mut equations = equations(exprs, reduction.body, node)?;
    let mut found: Vec<Option<Affine>> = vec![None; reduction.indices.len()];
    let mut progress = true;
    while std::mem::take(&mut progress) {
        for (term, value) in &mut equations {
            let known = |atom: &Atom| match atom {
                Atom::Index(i) => found[*i as usize].is_some(),
                Atom::Param(_) | Atom::Floor(..) => true,
            };
            let mut open = term.terms().iter().filter(|(atom, _)| !known(atom));
            let (Some((Atom::Index(index), factor)), None) = (open.next().cloned(), open.next()) else { continue };
            let rest = term.add_scaled(&-factor.clone(), &Affine::index(index as usize));
            let mut decided = true;
            rest.visit_indices(&mut |i| decided &= found[i].is_some());
            let map: Vec<Affine> = found.iter().map(|f| f.clone().unwrap_or_default()).collect();
            if let Some(quotient) = divided(&(value.clone() - rest.with_indices(&map)), &factor).filter(|_| decided) {
                found[index as usize] = Some(quotient);
                progress = true;
            }
        }
    }
    let used = exprs.used_indices(reduction.body, reduction.indices.len());
    if used.iter().zip(&found).any(|(used, found)| *used && found.is_none()) {
        return None;
    }
    let point: Vec<Affine> = found.into_iter().map(Option::unwrap_or_default).collect();
    (lift::remap(exprs, reduction.body, &point) == node).then_some(point)
}

/// An index expression divided by a number, if that leaves no fractions.
fn divided(affine: &Affine, by: &Int) -> Option<Affine> {
    let quotient = exact_quotient(affine, by);
    (quotient.scale(by) == *affine).then_some(quotient)
}

/// The index expressions of a term and those that stand in their place, if the expressions have the same form.
fn equations(exprs: &Exprs, term: ExprId, node: ExprId) -> Option<Vec<(Affine, Affine)>> {
    let (mut equations, mut seen, mut stack) = (Vec::new(), HashSet::new(), vec![(term, node)]);
    while let Some(pair) = stack.pop() {
        if !seen.insert(pair) {
            continue;
        }
        match (&exprs[pair.0], &exprs[pair.1]) {
            (Expr::Constant(a), Expr::Constant(b)) if a == b => {}
            (Expr::Index(a), Expr::Index(b)) => equations.push((a.clone(), b.clone())),
            (Expr::Access(t, a), Expr::Access(u, b)) if t == u => {
                equations.extend(a.iter().cloned().zip(b.iter().cloned()));
            }
            (Expr::Unary(f, a), Expr::Unary(g, b)) if f == g => stack.push((*a, *b)),
            (Expr::Binary(f, a, b), Expr::Binary(g, c, d)) if f == g => stack.extend([(*a, *c), (*b, *d)]),
            (Expr::Select(c, ..), Expr::Select(d, ..)) if exprs.compared(*c).len() == exprs.compared(*d).len() => {
                stack.extend(exprs.operands(pair.0).into_iter().zip(exprs.operands(pair.1)));
            }
            _ => return None,
        }
    }
    Some(equations)
}

/// The values that a body asks to be equal to others.
fn equated(exprs: &Exprs, body: ExprId) -> HashSet<ExprId> {
    let mut found = HashSet::new();
    for id in exprs.postorder(body) {
        if let Expr::Select(condition, ..) = exprs[id] {
            exprs.visit_condition(condition, &mut |part| {
                if let Cond::Compare(Comparison::Eq, a, b) = part {
                    found.extend([*a, *b]);
                }
            });
        }
    }
    found
}

/// Defines the terms before the place where they are used first, and reads them there.
fn share(
    program: &mut Program,
    place: usize,
    first: usize,
    uses: Vec<Use>,
    context: &[Constraint],
) -> Result<(), Diagnostic> {
    let reduction = program.definitions[place].clone();
    let terms = Definition {
        rank: reduction.indices.len(),
        reduction: None,
        conditions: Vec::new(),
        assumptions: [reduction.assumptions.as_slice(), &reduction.conditions].concat(),
        ..reduction.clone()
    };
    let name = format!("{}_terms", program[reduction.tensor].name);
    // Over all outputs where the ranges of those that are used can't be told from the others.
    let all: Vec<usize> = (0..terms.rank).collect();
    let (access, _) = lift::add(program, terms.clone(), name.clone(), context, &[])
        .or_else(|_| lift::add_over(program, terms, &all, name, context, &[]))?;
    let terms = program.definitions.pop().expect("just added");
    program.definitions[place].body = access;
    for Use { place, node, point } in uses {
        let element = lift::remap(&mut program.exprs, access, &point);
        let mut rewriter = Rewriter::with([(node, element)]);
        let body = rewriter.copy(&mut program.exprs, program.definitions[place].body);
        program.definitions[place].body = body;
    }
    program.definitions.insert(first, terms);
    Ok(())
}
