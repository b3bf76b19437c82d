//! Recurrences in place of reductions: what an element was a step before, and what is new.

use super::growth::{Direction, Growth, Pinned, growth, pinned};
use super::place::{Place, place};
use super::term::Sorted;
use super::{Site, masked, product};
use crate::domain::guard;
use crate::lift;
use crate::program::build;
use crate::program::{
    Affine, Cond, Constraint, Definition, Expr, ExprId, Exprs, Index, Program, ReduceOp, TensorId, TensorKind, UnaryOp,
    names,
};
use crate::target::cost;
use std::collections::HashMap;

/// What an element goes on from: `(previous + shift) * factor`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Carry {
    /// What is added to what it was.
    pub shift: Option<ExprId>,
    /// What that is multiplied by.
    pub factor: Option<ExprId>,
}

/// What makes two definitions the same: all but the name, in the indices of the site.
type Key = (ReduceOp, Direction, Vec<Affine>, Vec<Option<ExprId>>);

/// The definitions that were made, each once.
#[derive(Clone, Default)]
pub struct Recurrences(HashMap<Key, TensorId>);

/// No exponential of less than this is a number, in any type; and nothing is infinite that is subtracted from it.
const LOWEST_EXPONENT: f64 = -1e30;

impl Recurrences {
    /// One of them has become another tensor.
    pub fn rename(&mut self, from: TensorId, to: TensorId) {
        self.0.values_mut().filter(|known| **known == from).for_each(|known| *known = to);
    }

    /// The sum of a term over a set that grows, without what stands outside.
    pub fn sum(&mut self, program: &mut Program, site: &Site, rows: &[Constraint], sorted: &Sorted) -> Option<ExprId> {
        let Some((exponent, more)) = sorted.exponent else {
            return self.carried(program, site, rows, sorted, (None, sorted.ratio));
        };
        if site.moves(&program.exprs, more) {
            return self.relative(program, site, rows, sorted, (exponent, more));
        }
        let exprs = &mut program.exprs;
        let (all, ratio) = (exp(exprs, exponent), exp(exprs, more));
        let ratio = sorted.ratio.map_or(ratio, |known| build::multiply(exprs, known, ratio));
        self.carried(program, site, rows, sorted, (Some(all), Some(ratio)))
    }

    /// A sum whose terms are multiplied by a ratio at each step; `all` is one more factor of theirs.
    fn carried(
        &mut self,
        program: &mut Program,
        site: &Site,
        rows: &[Constraint],
        sorted: &Sorted,
        (all, ratio): (Option<ExprId>, Option<ExprId>),
    ) -> Option<ExprId> {
        let factor = match ratio {
            Some(ratio) => Some(self.before_steps(program, site, (ratio, "ratio"), true)?),
            None => None,
        };
        let factors: Vec<_> =
            sorted.inside.iter().chain(&sorted.both).copied().chain(all.map(|all| (false, all))).collect();
        let body = product(&mut program.exprs, &factors);
        let term = masked(&mut program.exprs, &sorted.inner_masks, body);
        let sum = self.add(program, site, (ReduceOp::Sum, rows), term, Carry { shift: None, factor })?;
        let Some((distance, slope)) = &sorted.slope else { return Some(sum) };
        // Each term is so much farther away than it was.
        let earlier = site.one_before(program, sum)?;
        let shift = build::scale(&mut program.exprs, slope.to_f64().value(), earlier);
        let body = build::multiply(&mut program.exprs, *distance, body);
        let term = masked(&mut program.exprs, &sorted.inner_masks, body);
        self.add(program, site, (ReduceOp::Sum, rows), term, Carry { shift: Some(shift), factor })
    }

    /// A sum with exponentials of data, relative to the largest of them.
    fn relative(
        &mut self,
        program: &mut Program,
        site: &Site,
        rows: &[Constraint],
        sorted: &Sorted,
        (exponent, more): (ExprId, ExprId),
    ) -> Option<ExprId> {
        // A name keeps the difference together: its parts may be large where it is small.
        let more = self.named(program, site, (more, "more"), true)?;
        let carry = Carry { shift: Some(more), factor: None };
        let largest = self.add(program, site, (ReduceOp::Max, rows), exponent, carry)?;
        let before = site.one_before(program, largest)?;
        let exprs = &mut program.exprs;
        // In this order it has what was lost when the largest exponent was rounded.
        let down = build::subtract(exprs, before, largest);
        let down = build::add(exprs, down, more);
        let ratio = exp(exprs, down);
        let ratio = sorted.ratio.map_or(ratio, |known| build::multiply(exprs, known, ratio));
        let relative = build::subtract(exprs, exponent, largest);
        let all = exp(exprs, relative);
        let sum = self.carried(program, site, rows, sorted, (Some(all), Some(ratio)))?;
        let scale = exp(&mut program.exprs, largest);
        Some(build::multiply(&mut program.exprs, scale, sum))
    }

    /// A value that steps need and that does not depend on other steps: costly ones are computed before, for all steps.
    fn before_steps(
        &mut self,
        program: &mut Program,
        site: &Site,
        (value, what): (ExprId, &str),
        guarded: bool,
    ) -> Option<ExprId> {
        let exprs = &program.exprs;
        let order = exprs.postorder(value);
        let weight: f64 = order.iter().filter_map(|id| cost::operation(exprs, *id)).sum();
        let is_nested =
            |id: &ExprId| matches!(&exprs[*id], Expr::Access(t, _) if program[*t].kind == TensorKind::Nested);
        match weight < cost::SCAN_KEPT_ADDITIONS && !order.iter().any(is_nested) {
            true => Some(value),
            false => self.named(program, site, (value, what), guarded),
        }
    }

    /// A value as a definition; `guarded`, where there is a step before.
    fn named(
        &mut self,
        program: &mut Program,
        site: &Site,
        (value, what): (ExprId, &str),
        guarded: bool,
    ) -> Option<ExprId> {
        let used = program.exprs.used_indices(value, site.definition.indices.len());
        let guard = (guarded && used[site.direction.output]).then(|| site.has_before());
        let zero = program.exprs.constant(0.0);
        let body = match guard::all(&mut program.exprs, guard.as_slice()) {
            Some(condition) => build::select(&mut program.exprs, condition, value, zero),
            None => value,
        };
        let kept: Vec<usize> = (0..site.rank()).filter(|&output| used[output]).collect();
        let subscripts = kept.iter().map(|&output| Affine::index(output)).collect();
        let key = (ReduceOp::Sum, site.direction, extents(program, site, &kept), vec![Some(body)]);
        let tensor = match self.0.get(&key) {
            Some(&known) => known,
            None => {
                let tensor = new_tensor(program, site, &kept, what);
                self.0.insert(key, tensor);
                define(program, site, tensor, &kept, body);
                tensor
            }
        };
        Some(program.exprs.access(tensor, subscripts))
    }

    /// `⊕[κ in rows] body` by way of what it was a step before. Gives the element that stands for it.
    pub fn add(
        &mut self,
        program: &mut Program,
        site: &Site,
        (op, rows): (ReduceOp, &[Constraint]),
        body: ExprId,
        carry: Carry,
    ) -> Option<ExprId> {
        let neutral = if carry.shift.is_some() && op == ReduceOp::Max { LOWEST_EXPONENT } else { op.neutral() };
        let Growth { new, at_first } = growth(rows, &site.outer, site.direction, &site.extent)?;
        let added = added(program, site, (op, neutral), &new, body)?;
        let added = self.before_steps(program, site, (added, "new"), false)?;
        let first = match at_first {
            Some(rows) => first(program, site, (op, neutral), rows, body)?,
            None => program.exprs.constant(neutral),
        };
        let parts = vec![Some(added), Some(first), carry.shift, carry.factor];
        let uses = |output: usize| {
            let used = |part: &ExprId| program.exprs.used_indices(*part, site.definition.indices.len())[output];
            output == site.direction.output || parts.iter().flatten().any(used)
        };
        let kept: Vec<usize> = (0..site.rank()).filter(|&output| uses(output)).collect();
        let subscripts: Vec<Affine> = kept.iter().map(|&output| Affine::index(output)).collect();
        let key = (op, site.direction, extents(program, site, &kept), parts);
        if let Some(&known) = self.0.get(&key) {
            return Some(program.exprs.access(known, subscripts));
        }
        let tensor = new_tensor(program, site, &kept, op.name());
        self.0.insert(key, tensor);
        let before = site.before();
        let exprs = &mut program.exprs;
        let mut previous = exprs.access(tensor, subscripts.iter().map(|s| s.with_indices(&before)).collect());
        if let Some(shift) = carry.shift {
            previous = build::add(exprs, previous, shift);
        }
        if let Some(factor) = carry.factor {
            previous = build::multiply(exprs, factor, previous);
        }
        let condition = exprs.add_condition(Cond::Index(site.has_before()));
        let body = match exprs[added] {
            // Nothing is new where there is no step before.
            Expr::Select(own, new, nothing) if own == condition && exprs.as_constant(nothing) == Some(neutral) => {
                let both = build::binary(exprs, op.combine()?, previous, new);
                build::select(exprs, condition, both, first)
            }
            _ => {
                let previous = build::select(exprs, condition, previous, first);
                build::binary(exprs, op.combine()?, previous, added)
            }
        };
        define(program, site, tensor, &kept, body);
        Some(program.exprs.access(tensor, subscripts))
    }
}

fn exp(exprs: &mut Exprs, id: ExprId) -> ExprId {
    build::unary(exprs, UnaryOp::Exp, id)
}

/// What is new at a step, all pieces together; `None` if one of them is not thin.
fn added(
    program: &mut Program,
    site: &Site,
    (op, neutral): (ReduceOp, f64),
    new: &[Vec<Constraint>],
    body: ExprId,
) -> Option<ExprId> {
    let mut added = None;
    for piece in new {
        let pinned = pinned(&site.definition.indices, site.rank(), piece.clone(), &site.outer);
        let Some(pinned) = pinned else { continue };
        if !pinned.is_thin(site.rank(), &site.outer) {
            return None;
        }
        let value = reduced(program, site, (op, neutral), piece, &pinned, body)?;
        added = Some(match added {
            Some(known) => build::binary(&mut program.exprs, op.combine()?, known, value),
            None => value,
        });
    }
    Some(added.unwrap_or_else(|| program.exprs.constant(neutral)))
}

/// What is in the set before the first step.
fn first(
    program: &mut Program,
    site: &Site,
    of: (ReduceOp, f64),
    rows: Vec<Constraint>,
    body: ExprId,
) -> Option<ExprId> {
    let mut map: Vec<Affine> = (0..site.definition.indices.len()).map(Affine::index).collect();
    map[site.direction.output] = site.direction.first(&site.extent);
    let rows: Vec<Constraint> = rows.iter().map(|row| row.with_indices(&map)).collect();
    let Some(pinned) = pinned(&site.definition.indices, site.rank(), rows.clone(), &site.outer) else {
        return Some(program.exprs.constant(of.1));
    };
    let at = Place { around: &site.definition.indices, domain: &site.outer, context: &site.context };
    let body = place(program, body, &map, &at)?;
    reduced(program, site, of, &rows, &pinned, body)
}

/// `⊕ body` over a set that is solved, with `neutral` where there is none.
pub fn reduced(
    program: &mut Program,
    site: &Site,
    (op, neutral): (ReduceOp, f64),
    rows: &[Constraint],
    Pinned { map, left, conditions }: &Pinned,
    body: ExprId,
) -> Option<ExprId> {
    let around: Vec<Index> = site.outputs().iter().chain(left).cloned().collect();
    let rows = rows.iter().map(|row| row.with_indices(map));
    let domain: Vec<Constraint> = site.outer.iter().cloned().chain(rows).collect();
    let at = Place { around: &around, domain: &domain, context: &site.context };
    let body = place(program, body, map, &at)?;
    if left.is_empty() {
        let other = program.exprs.constant(neutral);
        return Some(match guard::all(&mut program.exprs, conditions) {
            Some(condition) => build::select(&mut program.exprs, condition, body, other),
            None => body,
        });
    }
    let full = Definition {
        tensor: site.definition.tensor,
        indices: around,
        rank: site.rank(),
        reduction: Some(op),
        conditions: conditions.clone(),
        assumptions: Vec::new(),
        body,
    };
    let name = program[site.definition.tensor].name.clone();
    Some(lift::add(program, full, name, &site.context, &[]).ok()?.0)
}

fn extents(program: &Program, site: &Site, kept: &[usize]) -> Vec<Affine> {
    kept.iter().map(|&output| program[site.definition.tensor].extents[output].clone()).collect()
}

/// A tensor over some of the outputs.
fn new_tensor(program: &mut Program, site: &Site, kept: &[usize], what: &str) -> TensorId {
    let name = format!("{}_{what}", program[site.definition.tensor].name);
    let name = names::fresh(&name, &mut names::taken(program));
    let extents = extents(program, site, kept);
    program.add_defined(name, extents)
}

/// Defines such a tensor by an expression in the outputs.
fn define(program: &mut Program, site: &Site, tensor: TensorId, kept: &[usize], body: ExprId) {
    let mut map = vec![Affine::default(); site.definition.indices.len()];
    kept.iter().enumerate().for_each(|(new, &old)| map[old] = Affine::index(new));
    let body = lift::remap(&mut program.exprs, body, &map);
    let indices = kept.iter().map(|&output| site.definition.indices[output].clone()).collect();
    lift::define_pointwise(program, tensor, indices, Vec::new(), body);
}
