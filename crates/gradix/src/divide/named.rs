//! Reductions that recurrences read and that are no part of them, as definitions of their own.
//!
//! ```text
//! h[t, i] = tanh(h[t - 1, i] + sum[j] w[i, j] * x[t, j])      s[t, i] = sum[j] w[i, j] * x[t, j];   h[t, i] = tanh(h[t - 1, i] + s[t, i])
//! ```

use super::ordered;
use crate::diagnostic::Diagnostic;
use crate::domain::order::{self, Level};
use crate::program::{Definition, Program, TensorId, TensorKind, circles, distinct};
use crate::simplify;
use std::collections::HashSet;

/// Nested definitions that a circle reads and that are no part of it are computed before it, all at once.
pub fn outside(program: &Program) -> Result<Program, Diagnostic> {
    let mut whole = program.clone();
    let recurrent = circles::recurrent(program);
    let is_outside =
        |d: &&Definition| program[d.tensor].kind == TensorKind::Nested && !recurrent.contains_key(&d.tensor);
    let in_circle = |tensor: TensorId| {
        let mut readers = program.definitions.iter().filter(|d| program.exprs.reads(d.body, tensor));
        readers.any(|reader| recurrent.contains_key(&reader.tensor))
    };
    let named = program.definitions.iter().filter(is_outside).map(|d| d.tensor).filter(|&t| in_circle(t));
    simplify::settle::name_some(&mut whole, named.collect())?;
    simplify::tidy::tidy(&mut whole, false);
    Ok(whole)
}

/// Nested reductions that a level inside of another one reads, and that depend on nothing of it, are computed before it, for all
/// of its values.
pub fn before_levels(whole: Program) -> Result<Program, Diagnostic> {
    fn inner(stages: &[order::Stage]) -> Vec<usize> {
        let levels = stages.iter().filter_map(|stage| match stage {
            order::Stage::Level(level) => Some(level),
            order::Stage::Definition(_) => None,
        });
        let members = |level: &Level| level.members.iter().map(|(number, _)| *number).collect::<Vec<_>>();
        levels.flat_map(|level| [members(level), inner(&level.stages)].concat()).collect()
    }
    let inside = |program: &Program| -> Result<Vec<usize>, Diagnostic> {
        let outermost = ordered(program)?;
        let levels = outermost.iter().filter_map(|stage| match stage {
            order::Stage::Level(level) => Some(inner(&level.stages)),
            order::Stage::Definition(_) => None,
        });
        Ok(levels.flatten().collect())
    };
    let members = inside(&whole)?;
    let bodies = members.iter().map(|&number| whole.definitions[number].body);
    let reads: HashSet<TensorId> =
        bodies.flat_map(|body| whole.exprs.accesses(body).map(|(tensor, _)| tensor).collect::<Vec<_>>()).collect();
    let is_reduction = |d: &&Definition| whole[d.tensor].kind == TensorKind::Nested && d.reduction.is_some();
    let nested: Vec<TensorId> = whole.definitions.iter().filter(is_reduction).map(|d| d.tensor).collect();
    let (mut before, mut restricted) = (Vec::new(), Vec::new());
    for tensor in nested.into_iter().filter(|tensor| reads.contains(tensor)) {
        let fits = |restricted: &[TensorId]| -> Result<bool, Diagnostic> {
            let with = with_names(&whole, &[tensor], restricted)?;
            Ok(inside(&with).is_ok_and(|now| now.len() == members.len()))
        };
        if fits(&[])? {
            before.push(tensor);
        } else if fits(&[tensor])? {
            before.push(tensor);
            restricted.push(tensor);
        }
    }
    let with = with_names(&whole, &before, &restricted)?;
    Ok(if before.is_empty() || ordered(&with).is_err() { whole } else { with })
}

/// Gives nested reductions names; some of them have no terms where nothing reads them.
fn with_names(program: &Program, nested: &[TensorId], restricted: &[TensorId]) -> Result<Program, Diagnostic> {
    let mut named = program.clone();
    for definition in named.definitions.iter_mut().filter(|definition| restricted.contains(&definition.tensor)) {
        definition.conditions = distinct([definition.conditions.clone(), definition.assumptions.clone()].concat());
    }
    simplify::settle::name_some(&mut named, nested.to_vec())?;
    simplify::tidy::tidy(&mut named, false);
    Ok(named)
}
