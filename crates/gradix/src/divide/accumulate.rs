//! Sums over the steps of a recurrence, as sums that go along with them.
//!
//! ```text
//! da[s] = sum[n, t] dh[t, n, s] * h[t - 1, n, s]        where dh falls along t
//! da_run[t, n, s] = dh[t, n, s] * h[t - 1, n, s] + (if t <= T - 2 then da_run[t + 1, n, s] else 0);   da[s] = sum[n] da_run[0, n, s]
//! ```
//!
//! Only two steps of what runs along are kept. What a step has apart (`n`) stays apart, as long as it is no more than the step
//! itself: nothing is then summed across what threads or lanes share out.

use super::follow::{self, Followed};
use crate::domain::order::{self, Stage};
use crate::domain::{guard, system};
use crate::lift;
use crate::program::{
    Affine, Constraint, Definition, ExprId, Index, Program, Range, ReduceOp, TensorId, TensorKind, build, circles,
    names,
};
use crate::simplify;
use crate::target::Target;

/// The program with such sums where that pays.
pub fn accumulate(program: &Program, stages: &[Stage], sizes: &[f64], target: &Target) -> Option<Program> {
    let sums: Vec<usize> = stages
        .iter()
        .filter_map(|stage| match stage {
            Stage::Definition(number) => Some(*number),
            Stage::Level(_) => None,
        })
        .filter(|&number| is_plain_sum(&program.definitions[number]))
        .collect();
    let mut found: Vec<(TensorId, Followed)> = Vec::new();
    for number in sums {
        let before =
            stages.iter().take_while(|stage| **stage != Stage::Definition(number)).cloned().collect::<Vec<_>>();
        let definition = &program.definitions[number];
        let along =
            follow::followed(program, &before, number, definition.rank..definition.indices.len(), sizes, target);
        found.extend(along.map(|followed| (definition.tensor, followed)));
    }
    let mut whole = program.clone();
    let mut changed = false;
    for (tensor, followed) in found {
        changed |= run_along(&mut whole, tensor, &followed, sizes).is_some();
    }
    changed.then_some(whole)
}

/// Sums inside of expressions that would go along, if they had names.
pub fn nested(program: &Program, sizes: &[f64], target: &Target) -> Vec<TensorId> {
    let recurrent = circles::recurrent(program);
    let reads = |definition: &Definition, of: &dyn Fn(TensorId) -> bool| {
        program.exprs.accesses(definition.body).any(|(tensor, _)| of(tensor))
    };
    let is_open = |definition: &&Definition| {
        program[definition.tensor].kind == TensorKind::Nested
            && is_plain_sum(definition)
            && reads(definition, &|tensor| recurrent.contains_key(&tensor))
            && !program.definitions.iter().any(|reader| {
                recurrent.contains_key(&reader.tensor) && reads(reader, &|tensor| tensor == definition.tensor)
            })
    };
    let open: Vec<TensorId> = program.definitions.iter().filter(is_open).map(|definition| definition.tensor).collect();
    let mut named = program.clone();
    let Ok(()) = simplify::settle::name_some(&mut named, open.clone()) else { return Vec::new() };
    let Ok(stages) = order::order(&named) else { return Vec::new() };
    let goes_along = |tensor: &TensorId| {
        let number = named.definitions.iter().position(|definition| definition.tensor == *tensor)?;
        let definition = &named.definitions[number];
        let before: Vec<Stage> =
            stages.iter().take_while(|stage| **stage != Stage::Definition(number)).cloned().collect();
        let reduced = definition.rank..definition.indices.len();
        is_plain_sum(definition).then(|| follow::followed(&named, &before, number, reduced, sizes, target))?
    };
    open.into_iter().filter(|tensor| goes_along(tensor).is_some()).collect()
}

/// A sum over a box: bounds that are sizes, and no conditions.
fn is_plain_sum(definition: &Definition) -> bool {
    let plain = |index: &Index| {
        let Range { low, high } = &index.range;
        low.len() == 1 && high.len() == 1 && !low[0].uses_indices() && !high[0].uses_indices()
    };
    definition.reduction == Some(ReduceOp::Sum)
        && definition.conditions.is_empty()
        && definition.indices[definition.rank..].iter().all(plain)
}

/// Puts a sum that runs along in place of one over all steps.
fn run_along(program: &mut Program, tensor: TensorId, followed: &Followed, sizes: &[f64]) -> Option<()> {
    let place = program.definitions.iter().position(|definition| definition.tensor == tensor)?;
    let old = program.definitions[place].clone();
    let apart = kept_apart(program, &old, followed, sizes);
    let steps = old.indices[followed.index].range.high[0].shift(1);
    let (run, mut before) = running(program, &old, followed, &apart)?;

    let last = if followed.falling { Affine::constant(0) } else { steps.shift(-1) };
    let at = (0..apart.len()).map(|which| Affine::index(old.rank + which)).chain((0..old.rank).map(Affine::index));
    let end = program.exprs.access(run.tensor, std::iter::once(last).chain(at).collect());
    let some = Constraint::at_most(Affine::constant(1), steps);
    let context = program.size_context();
    let body = under(program, &context, some, end)?;
    before.push(run);

    let summed = apart.iter().map(|&index| old.indices[index].clone());
    let indices = old.indices[..old.rank].iter().cloned().chain(summed).collect();
    let reduction = (!apart.is_empty()).then_some(ReduceOp::Sum);
    program.definitions[place] = Definition { indices, reduction, body, ..old };
    program.definitions.splice(place..place, before);
    Some(())
}

/// The sum up to each step, over the step, what it has apart, and the outputs; and what is nested in it.
fn running(
    program: &mut Program,
    old: &Definition,
    followed: &Followed,
    apart: &[usize],
) -> Option<(Definition, Vec<Definition>)> {
    let is_left = |index: &usize| *index >= old.rank && *index != followed.index && !apart.contains(index);
    let left: Vec<usize> = (0..old.indices.len()).filter(is_left).collect();
    let kept: Vec<usize> = [&[followed.index], apart, &(0..old.rank).collect::<Vec<_>>()].concat();
    let (rank, order) = (kept.len(), [kept, left.clone()].concat());
    let mut map = vec![Affine::constant(0); old.indices.len()];
    order.iter().enumerate().for_each(|(new, &index)| map[index] = Affine::index(new));
    let Index { name, range } = old.indices[followed.index].clone();
    let steps = range.high[0].shift(1);
    let time = Index { name, range: Range::extent(steps.clone()) };
    let others = order[1..].iter().map(|&index| old.indices[index].clone());
    let indices: Vec<Index> = std::iter::once(time).chain(others).collect();
    let mut taken = names::taken(program);
    let name = names::fresh(&format!("{}_run", program[old.tensor].name), &mut taken);
    let extents = indices[..rank].iter().map(|index| index.range.high[0].shift(1)).collect();
    let tensor = program.add_defined(name, extents);

    let own: Vec<Affine> = (0..rank).map(Affine::index).collect();
    let since = Constraint::at_most(range.low[0].clone(), Affine::index(0));
    let mut term = lift::remap(&mut program.exprs, old.body, &map);
    let mut nested = Vec::new();
    if !left.is_empty() {
        let name = names::fresh(&format!("{}_term", program[old.tensor].name), &mut taken);
        let id = program.add_nested(name, rank);
        let reduction = Some(ReduceOp::Sum);
        nested.push(Definition { rank, reduction, ..Definition::pointwise(id, indices.clone(), term) });
        nested[0].assumptions.push(since.clone());
        term = program.exprs.access(id, own.clone());
    }
    let known: Vec<Constraint> = program.size_context().into_iter().chain(indices[0].range.constraints(0)).collect();
    let term = under(program, &known, since, term)?;
    let (step, has_before) = match followed.falling {
        true => (1, Constraint::at_most(Affine::index(0), steps.shift(-2))),
        false => (-1, Constraint::at_most(Affine::constant(1), Affine::index(0))),
    };
    let earlier = program.exprs.access(tensor, [&[Affine::index(0).shift(step)], &own[1..]].concat());
    let earlier = under(program, &known, has_before, earlier)?;
    let body = build::add(&mut program.exprs, term, earlier);
    Some((Definition::pointwise(tensor, indices[..rank].to_vec(), body), nested))
}

/// A value where a condition holds, and 0 elsewhere.
fn under(program: &mut Program, known: &[Constraint], condition: Constraint, value: ExprId) -> Option<ExprId> {
    if system::implies(known, &condition) {
        return Some(value);
    }
    let (condition, zero) = (guard::all(&mut program.exprs, &[condition])?, program.exprs.constant(0.0));
    Some(build::select(&mut program.exprs, condition, value, zero))
}

/// The indices of the sum that a step has apart.
fn kept_apart(program: &Program, old: &Definition, followed: &Followed, sizes: &[f64]) -> Vec<usize> {
    let is_bare = |index: usize| {
        let mut reads = program.exprs.accesses(old.body).filter(|(tensor, _)| followed.tensors.contains(tensor));
        reads.any(|(_, subscripts)| subscripts.iter().any(|subscript| subscript.as_index() == Some(index)))
    };
    let from_0 = |index: usize| old.indices[index].range.low[0] == Affine::constant(0);
    let others = (old.rank..old.indices.len()).filter(|&index| index != followed.index && from_0(index));
    let apart: Vec<usize> = others.filter(|&index| is_bare(index)).collect();
    let values = |index: usize| old.indices[index].range.high[0].shift(1).estimate(&[], sizes);
    let elements: f64 = (0..old.rank).chain(apart.iter().copied()).map(values).product();
    let of_step = |tensor: &TensorId| program[*tensor].elements(sizes) / followed.steps;
    let most = followed.tensors.iter().map(of_step).fold(0.0, f64::max);
    if elements <= most { apart } else { Vec::new() }
}
