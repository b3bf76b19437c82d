//! Terms of a sum, and how each goes on from one step to the next.
//!
//! ```text
//! dy[i] * exp(-c * (t[i] - t[k])) * x[k]        outside: dy[i]; inside: x[k]; exponent -c * (t[i] - t[k])
//! a^(i - k) * x[k]                              inside: x[k]; a times what it was
//! (i - k) * x[k]                                inside: x[k]; x[k] more than it was
//! ```

use super::Site;
use super::growth::{Direction, growth, pinned};
use super::place::{Place, place};
use crate::economise::canon::{Chain, chain, links};
use crate::program::build;
use crate::program::{
    Affine, BinaryOp, CondId, Constraint, Expr, ExprId, Exprs, Program, ReduceOp, TensorKind, UnaryOp,
};
use gradix_int::Int;

/// A product, and the conditions under which it is added.
#[derive(Clone, Debug, Default)]
pub struct Term {
    /// Conditions on values.
    pub masks: Vec<CondId>,
    /// Factors, and (with `true`) divisors.
    pub factors: Vec<(bool, ExprId)>,
}

/// Terms that a body is taken apart into, at most.
const MAX_TERMS: usize = 8;

/// The terms of a body. What does not go with the steps, and what depends on nothing else, stays together.
pub fn terms(exprs: &mut Exprs, site: &Site, body: ExprId) -> Option<Vec<Term>> {
    let mut found = Vec::new();
    collect(exprs, site, Term::default(), vec![(false, body)], &mut found)?;
    Some(found)
}

fn collect(
    exprs: &mut Exprs,
    site: &Site,
    mut term: Term,
    mut open: Vec<(bool, ExprId)>,
    found: &mut Vec<Term>,
) -> Option<()> {
    while let Some((divides, factor)) = open.pop() {
        let is_both = site.moves(exprs, factor) && site.is_reduced(exprs, factor);
        match exprs[factor] {
            _ if exprs.as_constant(factor) == Some(0.0) && !divides => return Some(()),
            Expr::Unary(UnaryOp::Neg, inner) => {
                let minus = exprs.constant(-1.0);
                open.extend([(divides, inner), (false, minus)]);
            }
            _ if chain(exprs, factor) == Some(Chain::Product) => {
                let parts = links(exprs, factor, Chain::Product);
                open.extend(parts.into_iter().map(|(below, part)| (below != divides, part)));
            }
            Expr::Select(c, a, b) if is_both && !divides => {
                let opposite = build::opposite(exprs, c);
                for (mask, branch) in [(c, a), (opposite, b)] {
                    let mut under = term.clone();
                    under.masks.push(mask);
                    collect(exprs, site, under, [open.as_slice(), &[(false, branch)]].concat(), found)?;
                }
                return Some(());
            }
            _ if is_both && !divides && chain(exprs, factor) == Some(Chain::Sum) => {
                for part in apart(exprs, site, factor)? {
                    collect(exprs, site, term.clone(), [open.as_slice(), &[(false, part)]].concat(), found)?;
                }
                return Some(());
            }
            _ => term.factors.push((divides, factor)),
        }
    }
    found.push(term);
    (found.len() <= MAX_TERMS).then_some(())
}

/// The terms of a sum: those that don't move together. `None` where the difference of two elements of one tensor would be
/// taken apart, which may be small where they are large.
fn apart(exprs: &mut Exprs, site: &Site, sum: ExprId) -> Option<Vec<ExprId>> {
    let (moving, still): (Vec<_>, Vec<_>) =
        links(exprs, sum, Chain::Sum).into_iter().partition(|(_, link)| site.moves(exprs, *link));
    let elements = |links: &[(bool, ExprId)]| -> Vec<_> {
        let read = links.iter().filter_map(|(_, link)| match &exprs[*link] {
            Expr::Access(tensor, _) => Some(*tensor),
            _ => None,
        });
        read.collect()
    };
    let (first, second) = (elements(&moving), elements(&still));
    let twice = first.iter().enumerate().any(|(place, tensor)| first[..place].contains(tensor));
    if twice || first.iter().any(|tensor| second.contains(tensor)) {
        return None;
    }
    let mut parts: Vec<ExprId> =
        moving.iter().map(|&(negative, link)| if negative { build::negate(exprs, link) } else { link }).collect();
    if !still.is_empty() {
        parts.push(crate::economise::canon::sum_of(exprs, &still));
    }
    Some(parts)
}

/// A term, sorted by what its factors depend on.
#[derive(Clone, Debug, Default)]
pub struct Sorted {
    /// Conditions that are the same for all points that are summed.
    pub outer_masks: Vec<CondId>,
    /// Factors that are.
    pub outside: Vec<(bool, ExprId)>,
    /// Conditions that are the same at all steps.
    pub inner_masks: Vec<CondId>,
    /// Factors that are.
    pub inside: Vec<(bool, ExprId)>,
    /// Factors of both kinds but for exponentials.
    pub both: Vec<(bool, ExprId)>,
    /// What they are times what they were a step before.
    pub ratio: Option<ExprId>,
    /// The exponent of all exponentials of both kinds, and how much it is more than a step before.
    pub exponent: Option<(ExprId, ExprId)>,
    /// A factor that is the number of an index expression, and how much it is more than a step before.
    pub slope: Option<(ExprId, Int)>,
}

/// A term sorted; `None` if there is a factor for which it is not known how it goes on. `rows` are where it is summed.
pub fn sorted(program: &mut Program, site: &Site, rows: &[Constraint], term: &Term) -> Option<Sorted> {
    let mut sorted = Sorted::default();
    for &mask in &term.masks {
        let (one, zero) = (program.exprs.constant(1.0), program.exprs.constant(0.0));
        let probe = program.exprs.add(Expr::Select(mask, one, zero));
        match (site.moves(&program.exprs, probe), site.is_reduced(&program.exprs, probe)) {
            (true, true) => return None,
            (false, true) => sorted.inner_masks.push(mask),
            (_, false) => sorted.outer_masks.push(mask),
        }
    }
    for &(divides, factor) in &term.factors {
        match (site.moves(&program.exprs, factor), site.is_reduced(&program.exprs, factor)) {
            (_, false) => sorted.outside.push((divides, factor)),
            (false, true) => sorted.inside.push((divides, factor)),
            (true, true) => step_of(program, site, rows, (divides, factor), &mut sorted)?,
        }
    }
    Some(sorted)
}

/// How a factor of both kinds goes on.
fn step_of(
    program: &mut Program,
    site: &Site,
    rows: &[Constraint],
    (divides, factor): (bool, ExprId),
    sorted: &mut Sorted,
) -> Option<()> {
    let ratio = match program.exprs[factor].clone() {
        Expr::Unary(UnaryOp::Exp, exponent) => {
            let more = difference(program, site, exponent)?;
            let turned = |exprs: &mut Exprs, id| if divides { build::negate(exprs, id) } else { id };
            let (exponent, more) = (turned(&mut program.exprs, exponent), turned(&mut program.exprs, more));
            let (e, m) = match sorted.exponent {
                Some((e, m)) => (build::add(&mut program.exprs, e, exponent), build::add(&mut program.exprs, m, more)),
                None => (exponent, more),
            };
            sorted.exponent = Some((e, m));
            return Some(());
        }
        Expr::Index(affine) if !divides && sorted.slope.is_none() => {
            let more = affine.clone() - affine.with_indices(&site.before());
            sorted.slope = Some((factor, more.as_constant()?.clone()));
            return Some(());
        }
        Expr::Binary(BinaryOp::Pow, base, exponent) => {
            let constant = !site.moves(&program.exprs, base) && !site.is_reduced(&program.exprs, base);
            let more = difference(program, site, exponent).filter(|more| !site.moves(&program.exprs, *more))?;
            constant.then(|| power(&mut program.exprs, base, more, divides))?
        }
        Expr::Access(tensor, subscripts) if !divides && program[tensor].kind != TensorKind::Input => {
            product_step(program, site, rows, tensor, &subscripts)?
        }
        _ => return None,
    };
    sorted.both.push((divides, factor));
    sorted.ratio = Some(match sorted.ratio {
        Some(known) => build::multiply(&mut program.exprs, known, ratio),
        None => ratio,
    });
    Some(())
}

/// `base ^ more`, or one over it.
fn power(exprs: &mut Exprs, base: ExprId, more: ExprId, divides: bool) -> ExprId {
    let more = if divides { build::negate(exprs, more) } else { more };
    match exprs.as_constant(more) {
        Some(number) if number < 0.0 => {
            let (one, power) = (exprs.constant(1.0), build::whole_power(exprs, base, -number));
            build::divide(exprs, one, power)
        }
        _ => build::power(exprs, base, more),
    }
}

/// How much an expression is more than one step before, if that is the same at all points that are reduced. Differences are
/// taken where they stand: of `c * (t[i] - t[k])` it is `c * (t[i] - t[i - 1])`.
pub fn difference(program: &mut Program, site: &Site, id: ExprId) -> Option<ExprId> {
    let exprs = &mut program.exprs;
    if !site.moves(exprs, id) {
        return Some(exprs.constant(0.0));
    }
    if let Expr::Index(affine) = &exprs[id] {
        let more = affine.clone() - affine.with_indices(&site.before());
        let is_reduced = (site.rank()..site.definition.indices.len()).any(|index| more.uses_index(index));
        return (!is_reduced).then(|| build::index(exprs, more));
    }
    if !site.is_reduced(exprs, id) {
        let earlier = site.one_before(program, id)?;
        return Some(build::subtract(&mut program.exprs, id, earlier));
    }
    match exprs[id] {
        Expr::Unary(UnaryOp::Neg, a) => {
            let more = difference(program, site, a)?;
            Some(build::negate(&mut program.exprs, more))
        }
        Expr::Binary(BinaryOp::Add | BinaryOp::Sub, ..) => {
            let mut total = program.exprs.constant(0.0);
            for (negative, link) in links(&program.exprs, id, Chain::Sum) {
                let more = difference(program, site, link)?;
                let combine = if negative { build::subtract } else { build::add };
                total = combine(&mut program.exprs, total, more);
            }
            Some(total)
        }
        Expr::Binary(op @ (BinaryOp::Mul | BinaryOp::Div), a, b) => {
            let is_fixed = |exprs: &Exprs, id| !site.moves(exprs, id) && !site.is_reduced(exprs, id);
            if is_fixed(exprs, b) {
                let more = difference(program, site, a)?;
                return Some(build::binary(&mut program.exprs, op, more, b));
            }
            let fixed = op == BinaryOp::Mul && is_fixed(exprs, a);
            let more = fixed.then(|| difference(program, site, b))??;
            Some(build::multiply(&mut program.exprs, a, more))
        }
        Expr::Constant(_) | Expr::Index(_) | Expr::Access(..) | Expr::Select(..) => None,
        Expr::Unary(..) | Expr::Binary(..) => None,
    }
}

/// What a product over a set that grows with the steps, too, is multiplied by: the same at all points that are summed.
fn product_step(
    program: &mut Program,
    site: &Site,
    rows: &[Constraint],
    tensor: crate::program::TensorId,
    subscripts: &[Affine],
) -> Option<ExprId> {
    let inner = program.definition_of(tensor)?.clone();
    if inner.reduction != Some(ReduceOp::Prod) || inner.indices.len() != inner.rank + 1 {
        return None;
    }
    let (count, direction) = (site.definition.indices.len(), site.direction);
    let map: Vec<Affine> = subscripts.iter().cloned().chain([Affine::index(count)]).collect();
    let body = crate::lift::remap(&mut program.exprs, inner.body, &map);
    let term = &inner.indices[inner.rank];
    let range = term.range.map(|bound| bound.with_indices(&map));
    let own = inner.conditions.iter().map(|row| row.with_indices(&map));
    let own: Vec<Constraint> = range.constraints(count).chain(own).collect();
    let used = program.exprs.used_indices(body, count + 1);
    if used[direction.output] || used[site.rank()..count].contains(&true) {
        return None;
    }
    // What was summed a step before.
    let before = direction.before(count);
    let earlier: Vec<Constraint> = rows.iter().map(|row| row.with_indices(&before)).collect();
    let outer = [site.outer.as_slice(), rows, &earlier].concat();
    let grown = growth(&own, &outer, direction, &site.extent)?;
    let [piece] = grown.new.as_slice() else { return None };
    let indices: Vec<_> = site.definition.indices.iter().chain([term]).cloned().collect();
    let point = pinned(&indices, count, piece.clone(), &outer)?;
    let value = &point.map[count];
    let fixed = (site.rank()..count).all(|index| !value.uses_index(index));
    if !point.left.is_empty() || !point.conditions.is_empty() || !fixed {
        return None;
    }
    let at = Place { around: site.outputs(), domain: &site.outer, context: &site.context };
    place(program, body, &point.map, &at)
}

impl Direction {
    /// Whether an expression depends on the output.
    pub fn moves(self, exprs: &Exprs, id: ExprId, count: usize) -> bool {
        exprs.used_indices(id, count)[self.output]
    }
}
