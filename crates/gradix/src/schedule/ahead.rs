//! What a choice by values needs and lanes would compute at every point, computed before.
//!
//! ```text
//! da[i, k] = sum[j] (if a[i, k] + b[k, j] == c[i, j] then dc[i, j] / t[i, j] else 0)
//!
//! g[i, j] = dc[i, j] / t[i, j]
//! da[i, k] = sum[j] (if a[i, k] + b[k, j] == c[i, j] then g[i, j] else 0)
//! ```
//!
//! A choice by values is a mask: both branches are computed for all lanes, however seldom one is taken.

use crate::domain::estimate::extents;
use crate::lift;
use crate::program::expr::Rewriter;
use crate::program::names;
use crate::program::{Affine, Definition, Expr, ExprId, Exprs, Index, Program};
use crate::target::cost;
use std::collections::HashSet;

/// Gives such parts definitions of their own.
pub fn ahead(program: &mut Program, estimate: &[f64]) {
    let mut taken: HashSet<String> = names::taken(program);
    let mut definitions = Vec::new();
    for mut definition in std::mem::take(&mut program.definitions) {
        for node in masked(&program.exprs, &definition) {
            let Some((part, at)) = part(program, &definition, node, estimate, &mut taken) else { continue };
            let element = program.exprs.access(part.tensor, at);
            definitions.push(part);
            let mut rewriter = Rewriter::with([(node, element)]);
            definition.body = rewriter.copy(&mut program.exprs, definition.body);
        }
        definitions.push(definition);
    }
    program.definitions = definitions;
}

/// The largest nodes in branches that values choose which are costly and use fewer indices than there are.
fn masked(exprs: &Exprs, definition: &Definition) -> Vec<ExprId> {
    let count = definition.indices.len();
    let mut found = Vec::new();
    let mut open = vec![(definition.body, false)];
    let mut seen: HashSet<(ExprId, bool)> = HashSet::new();
    while let Some((id, inside)) = open.pop() {
        if !seen.insert((id, inside)) {
            continue;
        }
        let fewer = exprs.used_indices(id, count).iter().any(|used| !used);
        if inside && fewer && is_costly(exprs, id) {
            if !found.contains(&id) {
                found.push(id);
            }
            continue;
        }
        match exprs[id] {
            Expr::Select(c, a, b) => {
                let inside = inside || exprs.is_by_values(c);
                open.extend([(a, inside), (b, inside)]);
            }
            _ => open.extend(exprs.operands(id).into_iter().map(|operand| (operand, inside))),
        }
    }
    found
}

/// Whether a node is an operation that takes much longer than an addition, of elements that conditions on indices have no say in.
fn is_costly(exprs: &Exprs, id: ExprId) -> bool {
    cost::operation(exprs, id).is_some_and(|weight| weight >= cost::MASKED_ADDITIONS)
        && exprs.index_conditions(id).is_empty()
        && exprs.accesses(id).next().is_some()
}

/// A node as a definition over the indices that it uses, and where it is read; `None` if that does not pay.
fn part(
    program: &mut Program,
    definition: &Definition,
    node: ExprId,
    estimate: &[f64],
    taken: &mut HashSet<String>,
) -> Option<(Definition, Vec<Affine>)> {
    // Conditions on indices around it may be what keeps its elements inside.
    if !program.exprs.index_conditions(definition.body).is_empty() || !definition.conditions.is_empty() {
        return None;
    }
    let used = program.exprs.used_indices(node, definition.indices.len());
    let kept: Vec<usize> = (0..definition.indices.len()).filter(|&i| used[i]).collect();
    let sizes = extents(definition, estimate);
    let points: f64 = sizes.iter().product();
    let elements: f64 = kept.iter().map(|&i| sizes[i]).product();
    let ranges = kept.iter().map(|&i| &definition.indices[i].range);
    let is_box = ranges.flat_map(|r| r.low.iter().chain(&r.high)).all(|bound| !bound.uses_indices());
    let from_zero = |i: &usize| {
        let range = &definition.indices[*i].range;
        matches!(range.low.as_slice(), [low] if *low == Affine::constant(0)) && range.high.len() == 1
    };
    if !is_box || !kept.iter().all(from_zero) || elements * cost::READS_PER_PART > points {
        return None;
    }
    let mut map = vec![Affine::default(); definition.indices.len()];
    kept.iter().enumerate().for_each(|(new, &old)| map[old] = Affine::index(new));
    let body = lift::remap(&mut program.exprs, node, &map);
    let indices: Vec<Index> = kept.iter().map(|&i| definition.indices[i].clone()).collect();
    let name = names::fresh(&format!("{}_part", program[definition.tensor].name), taken);
    let extents = indices.iter().map(|index| index.range.high[0].shift(1)).collect();
    let made = Definition::pointwise(program.add_defined(name, extents), indices, body);
    Some((made, kept.into_iter().map(Affine::index).collect()))
}
