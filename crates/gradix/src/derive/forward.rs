//! Forward mode: the tangent of every definition, from the first to the last.

use super::{Derived, SeedInput, complete, reduction, rules};
use crate::diagnostic::Diagnostic;
use crate::lift;
use crate::program::build;
use crate::program::names::{self, fresh};
use crate::program::{Definition, Expr, ExprId, Program, ReduceOp, Tensor, TensorId, TensorKind, UnaryOp, circles};
use std::collections::{HashMap, HashSet};

/// `f_dot` for every result, given `x_dot` for every input.
pub fn forward(program: &Program, of: Vec<TensorId>, wrt: Vec<TensorId>) -> Result<Derived, Diagnostic> {
    let mut out = program.clone();
    let mut taken = names::taken(program);
    let mut generated = HashSet::new();
    let mut tangents: HashMap<TensorId, TensorId> = HashMap::new();
    let active = circles::varying(program, wrt.iter().copied());
    let mut seeds = Vec::new();
    for &x in &wrt {
        let name = fresh(&format!("{}_dot", program[x].name), &mut taken);
        let record = Tensor { name, kind: TensorKind::Input, ..program[x].clone() };
        let tangent = out.add_tensor(record);
        tangents.insert(x, tangent);
        seeds.push(SeedInput::new(x, tangent, &out));
    }
    let mut results = Vec::new();
    for definition in &program.definitions {
        let tensor = definition.tensor;
        let record = program[tensor].clone();
        if !active.contains(&tensor) && !of.contains(&tensor) {
            continue;
        }
        let name = format!("{}_dot", record.name);
        let tangent = match record.kind {
            TensorKind::Nested => out.add_nested(name, record.rank),
            TensorKind::Defined | TensorKind::Input => {
                let name = fresh(&name, &mut taken);
                out.add_tensor(Tensor { name, ..record })
            }
        };
        tangents.insert(tensor, tangent);
    }
    for definition in &program.definitions {
        let tensor = definition.tensor;
        let wanted = of.contains(&tensor);
        let Some(&tangent) = tangents.get(&tensor) else { continue };
        define_tangent(&mut out, definition, tangent, &tangents)?;
        match wanted {
            true => results.push((of.iter().position(|f| *f == tensor), tangent)),
            false => {
                generated.insert(tangent);
            }
        }
    }
    results.sort();
    out.outputs = results.into_iter().map(|(_, t)| t).collect();
    let given = program.definitions.iter().map(|definition| definition.tensor).collect();
    let moved = complete(&mut out, &given, generated, &mut taken, true)?;
    let seeds = seeds.into_iter().map(|seed| seed.moved(&moved)).collect();
    Ok(Derived { program: out, of, wrt, seeds })
}

fn define_tangent(
    out: &mut Program,
    definition: &Definition,
    tangent: TensorId,
    tangents: &HashMap<TensorId, TensorId>,
) -> Result<(), Diagnostic> {
    let context = out.size_context();
    let inner = tangent_of(out, definition.body, tangents)?;
    let inner = match inner {
        Some(inner) => {
            let (path, value) = reduction::through_reduction(out, definition, inner, &context, &|_| false)?;
            path.masked(&mut out.exprs, value)
        }
        None => out.exprs.constant(0.0),
    };
    let reduction = definition.reduction.map(|_| ReduceOp::Sum);
    if reduction.is_none() || out.exprs.as_constant(inner) == Some(0.0) {
        let outputs = definition.indices[..definition.rank].to_vec();
        lift::define_pointwise(out, tangent, outputs, definition.assumptions.clone(), inner);
        return Ok(());
    }
    let full = Definition { tensor: tangent, reduction, body: inner, ..definition.clone() };
    let name = format!("{}_sum", out[tangent].name);
    let (access, _) = lift::add(out, full, name, &context, &[])?;
    let outputs = definition.indices[..definition.rank].to_vec();
    lift::define_pointwise(out, tangent, outputs, definition.assumptions.clone(), access);
    Ok(())
}

/// The tangent of an expression; `None` where it is 0 everywhere.
fn tangent_of(
    out: &mut Program,
    root: ExprId,
    tangents: &HashMap<TensorId, TensorId>,
) -> Result<Option<ExprId>, Diagnostic> {
    let mut found: HashMap<ExprId, Option<ExprId>> = HashMap::new();
    for id in out.exprs.flowing(root) {
        let e = &mut out.exprs;
        let tangent = match e[id].clone() {
            Expr::Constant(_) | Expr::Index(_) => None,
            Expr::Access(tensor, subscripts) => tangents.get(&tensor).map(|t| e.access(*t, subscripts)),
            Expr::Unary(UnaryOp::Stop, _) => None,
            Expr::Unary(op, x) => match found[&x] {
                Some(dx) => rules::through_unary(e, op, x, id, dx)?,
                None => None,
            },
            Expr::Binary(op, a, b) => {
                let first = found[&a].and_then(|da| rules::through_binary(e, op, (a, b), id, da, (true, false)).0);
                let second = found[&b].and_then(|db| rules::through_binary(e, op, (a, b), id, db, (false, true)).1);
                match (first, second) {
                    (Some(first), Some(second)) => Some(build::add(e, first, second)),
                    (first, second) => first.or(second),
                }
            }
            Expr::Select(c, a, b) => match (found[&a], found[&b]) {
                (None, None) => None,
                (da, db) => {
                    let zero = e.constant(0.0);
                    Some(build::select(e, c, da.unwrap_or(zero), db.unwrap_or(zero)))
                }
            },
        };
        found.insert(id, tangent);
    }
    Ok(found[&root])
}
