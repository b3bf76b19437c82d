//! Other ways to write a reduction, in which it may grow: counted from an output, in pieces, one index at a time.
//!
//! ```text
//! sum[k in 0..=i] a^k * x[i - k]                       sum[k in 0..=i] a^(i - k) * x[k]
//! sum[k in 0..N] (if k <= i then x[k] else z[k])       sum[k in 0..=i] x[k] + sum[k in i + 1..N] z[k]
//! sum[i, k in 0..=i] w[i] * x[k]                       sum[i] S[i]  with  S[i] = sum[k in 0..=i] w[i] * x[k]
//! sum[k in 0..=i] p[i, k],  p[i, k] = w[i] * x[k]      sum[k in 0..=i] w[i] * x[k]
//! ```

use super::Site;
use super::place::{Place, place};
use crate::domain::system;
use crate::lift;
use crate::program::expr::Rewriter;
use crate::program::{Affine, Constraint, Definition, Expr, ExprId, Exprs, Index, Program, Range, TensorId, circles};
use crate::simplify;

/// Whether what a reduction is over, or what of it counts, depends on an output.
pub fn is_grown(definition: &Definition, exprs: &Exprs, output: usize) -> bool {
    let ranges = definition.indices[definition.rank..].iter().map(|index| &index.range);
    let bounds = ranges.flat_map(|range| range.low.iter().chain(&range.high));
    bounds.chain(definition.conditions.iter().map(|row| &row.affine)).any(|affine| affine.uses_index(output))
        || exprs.index_conditions(definition.body).iter().any(|row| row.affine.uses_index(output))
}

/// The definition as it is, and with the index of its reduction counted from an output.
pub fn turned(program: &mut Program, definition: &Definition, output: usize) -> Vec<Definition> {
    let mut found = vec![definition.clone()];
    let (rank, count) = (definition.rank, definition.indices.len());
    if count == rank + 1 && definition.conditions.is_empty() {
        for sign in [1, -1] {
            // k is i + sign * k'.
            let mut map: Vec<Affine> = (0..count).map(Affine::index).collect();
            map[rank] = Affine::index(output) + Affine::index(rank).scale(&sign.into());
            let mut next = definition.clone();
            let moved =
                next.indices[rank].range.map(|bound| (bound.clone() - Affine::index(output)).scale(&sign.into()));
            let turned = Range { low: moved.high.clone(), high: moved.low.clone() };
            next.indices[rank].range = if sign == 1 { moved } else { turned };
            next.body = lift::remap(&mut program.exprs, definition.body, &map);
            found.push(next);
        }
    }
    found
}

/// The definition with what others compute for each value of an output and each term, in place of their elements; `None` if there
/// is no such element.
pub fn written_out(program: &mut Program, definition: &Definition, output: usize) -> Option<Definition> {
    let (context, recurrent) = (program.size_context(), circles::recurrent(program));
    let domain = [context.as_slice(), &definition.domain()].concat();
    let at = Place { around: &definition.indices, domain: &domain, context: &context };
    let is_both = |subscripts: &[Affine]| {
        let uses = |index: usize| subscripts.iter().any(|subscript| subscript.uses_index(index));
        uses(output) && (definition.rank..definition.indices.len()).any(uses)
    };
    let elements = program.exprs.accesses(definition.body).filter(|(_, subscripts)| is_both(subscripts));
    let elements: Vec<_> = elements.map(|(tensor, subscripts)| (tensor, subscripts.to_vec())).collect();
    let mut done = Vec::new();
    for (tensor, subscripts) in elements.into_iter().filter(|(tensor, _)| !recurrent.contains_key(tensor)) {
        if let Some(body) = program.definition_of(tensor).filter(|d| d.reduction.is_none()).map(|d| d.body) {
            let element = program.exprs.access(tensor, subscripts.clone());
            done.push((element, place(program, body, &subscripts, &at)?));
        }
    }
    if done.is_empty() {
        return None;
    }
    let body = Rewriter::with(done).copy(&mut program.exprs, definition.body);
    Some(Definition { body, ..definition.clone() })
}

/// Pieces of a set in which conditions on indices that move have one outcome, with the body in each.
pub fn pieces(program: &mut Program, site: &Site, rows: &[Constraint]) -> Option<Vec<(Vec<Constraint>, ExprId)>> {
    let mut open = vec![(rows.to_vec(), site.definition.body)];
    let mut done = Vec::new();
    while let Some((rows, body)) = open.pop() {
        if open.len() + done.len() > MAX_PIECES {
            return None;
        }
        let is_both = |row: &&&Constraint| {
            let is_reduced = (site.rank()..site.definition.indices.len()).any(|index| row.affine.uses_index(index));
            is_reduced && row.affine.uses_index(site.direction.output)
        };
        let Some(row) = program.exprs.index_conditions(body).iter().find(is_both).map(|row| (*row).clone()) else {
            done.push((rows, body));
            continue;
        };
        for side in std::iter::once(row.clone()).chain(row.negated()) {
            let rows = [rows.as_slice(), &[side]].concat();
            let domain = [site.outer.as_slice(), &rows].concat();
            if !system::is_empty(&domain) {
                let decided = simplify::assuming(&mut program.exprs, body, domain);
                (decided != body).then_some(())?;
                open.push((rows, decided));
            }
        }
    }
    done.reverse();
    Some(done)
}

/// Pieces of a reduction, at most.
const MAX_PIECES: usize = 6;

/// A sum over several indices as a sum of sums over one of them, which is a definition of its own.
pub fn with_part(program: &mut Program, definition: &Definition, inner: usize) -> Option<TensorId> {
    let count = definition.indices.len();
    let outer: Vec<usize> = (0..count).filter(|&index| index != inner).collect();
    let bounds = |index: usize| definition.indices[index].range.low.iter().chain(&definition.indices[index].range.high);
    if outer.iter().any(|&index| bounds(index).any(|bound| bound.uses_index(inner))) {
        return None;
    }
    let mut map = vec![Affine::default(); count];
    outer.iter().chain([&inner]).enumerate().for_each(|(new, &old)| map[old] = Affine::index(new));
    let moved = |&index: &usize| {
        let Index { name, range } = &definition.indices[index];
        Index { name: name.clone(), range: range.map(|bound| bound.with_indices(&map)) }
    };
    let (own, others): (Vec<_>, Vec<_>) =
        definition.conditions.iter().cloned().partition(|row| row.affine.uses_index(inner));
    let full = Definition {
        tensor: definition.tensor,
        indices: outer.iter().chain([&inner]).map(moved).collect(),
        rank: count - 1,
        reduction: definition.reduction,
        conditions: own.iter().map(|row| row.with_indices(&map)).collect(),
        assumptions: definition.assumptions.iter().chain(&others).map(|row| row.with_indices(&map)).collect(),
        body: lift::remap(&mut program.exprs, definition.body, &map),
    };
    let context = program.size_context();
    let name = program[definition.tensor].name.clone();
    let (body, _) = lift::add(program, full, name, &context, &[]).ok()?;
    let Expr::Access(part, _) = program.exprs[body] else { return None };
    let place = program.definitions.iter().position(|d| d.tensor == definition.tensor)?;
    let conditions = others.iter().map(|row| row.with_indices(&map)).collect();
    let indices = outer.iter().map(moved).collect();
    program.definitions[place] = Definition { indices, conditions, body, ..definition.clone() };
    Some(part)
}
