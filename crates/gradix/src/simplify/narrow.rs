//! Reductions over the ranges that they really have.
//!
//! ```text
//! sum[k] (if k <= i then x[k] else 0) sum[k in 0..=i] x[k]        a choice becomes a bound
//! sum[k, k <= i] x[k]                 sum[k in 0..=i] x[k]        a condition becomes a bound
//! sum[k, 2*(k // 3) >= i] x[k]        sum[k in 3*((i + 1) // 2)..N] x[k]    so does one on a quotient
//! sum[k in 3*i..3*i + 3] x[k // 3]    sum[k in 3*i..3*i + 3] x[i] a quotient with one value is it
//! sum[k in 0..=min(i, N - 1)] x[k]    sum[k in 0..=i] x[k]        a bound that never binds goes
//! sum[k in i..=i] x[k]                x[i]                        one point
//! sum[k in 5..3] x[k]                 0                           no point
//! ```

use crate::domain::{bounds, guard, system};
use crate::lift;
use crate::program::build;
use crate::program::expr::{Rewriter, Rules};
use crate::program::{
    Affine, Atom, Constraint, Definition, Expr, ExprId, Exprs, Index, Program, Range, ReduceOp, Relation, TensorId,
    TensorKind, distinct,
};
use gradix_int::Int;
use std::collections::HashMap;

/// Narrows the reductions that are `open`, and says whether one changed.
pub fn narrow(program: &mut Program, context: &[Constraint], open: &dyn Fn(&Definition) -> bool) -> bool {
    let mut changed = false;
    for place in 0..program.definitions.len() {
        if program.definitions[place].reduction.is_none() || !open(&program.definitions[place]) {
            continue;
        }
        let mut definition = program.definitions[place].clone();
        let outer = [context, &definition.output_domain()].concat();
        let rules = [
            no_point,
            choice_to_bounds,
            quotients_to_bounds,
            conditions_to_bounds,
            fixed_quotients,
            without_slack,
            one_point,
        ];
        let applied = rules.iter().filter(|rule| rule(&mut program.exprs, &mut definition, &outer)).count();
        if applied > 0 {
            program.definitions[place] = definition;
            changed = true;
        }
    }
    changed
}

/// Gives what is nested and read at one place the ranges that its text would have there, those of its reader, unless they
/// are wider, and excuses there what only the reader knows to be inside of its tensor. Says whether one changed.
pub fn to_readers(program: &mut Program, context: &[Constraint]) -> bool {
    let mut reads: HashMap<TensorId, Vec<(usize, Vec<Affine>)>> = HashMap::new();
    for (place, definition) in program.definitions.iter().enumerate() {
        for (tensor, subscripts) in program.exprs.accesses(definition.body) {
            reads.entry(tensor).or_default().push((place, subscripts.to_vec()));
        }
    }
    let mut changed = false;
    // Readers stand behind what they read.
    for place in (0..program.definitions.len()).rev() {
        let tensor = program.definitions[place].tensor;
        let once = reads.get(&tensor).filter(|_| program[tensor].kind == TensorKind::Nested).map(Vec::as_slice);
        let Some([(reader, subscripts)]) = once else { continue };
        let outputs: Option<Vec<usize>> = subscripts.iter().map(Affine::as_index).collect();
        let outputs = outputs.filter(|outputs| distinct(outputs.iter()).len() == outputs.len());
        let Some(read) = outputs.and_then(|outputs| as_read(program, place, *reader, &outputs, context)) else {
            continue;
        };
        let own = program.definitions[place].clone();
        let is_other = read.indices != own.indices || read.body != own.body;
        let is_wider = read.indices.iter().zip(&own.indices).any(|(read, own)| is_wider(&read.range, &own.range));
        if is_other && !is_wider && (stays_inside(program, &read, context) || !stays_inside(program, &own, context)) {
            program.definitions[place] = read;
            changed = true;
        }
    }
    changed
}

/// Whether a bound of the inner range is plainly past all of the outer one.
fn is_wider(outer: &Range, inner: &Range) -> bool {
    let is_less = |a: &Affine, b: &Affine| (b.clone() - a.clone()).as_constant().is_some_and(|n| *n > Int::ZERO);
    inner.low.iter().any(|low| outer.low.iter().all(|other| is_less(other, low)))
        || inner.high.iter().any(|high| outer.high.iter().all(|other| is_less(high, other)))
}

fn stays_inside(program: &mut Program, definition: &Definition, context: &[Constraint]) -> bool {
    bounds::stays_inside(program, definition.body, &[context, &definition.domain()].concat())
}

/// A nested definition whose outputs are these indices of its reader, with what the reader says of them.
fn as_read(
    program: &mut Program,
    place: usize,
    reader: usize,
    outputs: &[usize],
    context: &[Constraint],
) -> Option<Definition> {
    let [own, reader] = [place, reader].map(|place| program.definitions[place].clone());
    let around = reader.indices.len();
    let ranges = reader.indices.iter().enumerate().flat_map(|(position, index)| index.range.constraints(position));
    let domain: Vec<Constraint> = context.iter().cloned().chain(ranges).collect();
    let chosen = guard::facts_around(&mut program.exprs, reader.body, own.tensor, &domain);
    let reduced = (0..own.indices.len() - own.rank).map(|place| around + place);
    let map: Vec<Affine> = outputs.iter().copied().chain(reduced).map(Affine::index).collect();
    let moved = |rows: &[Constraint]| rows.iter().map(|row| row.with_indices(&map)).collect::<Vec<_>>();
    let inner = own.indices[own.rank..].iter();
    let inner = inner.map(|i| Index { name: i.name.clone(), range: i.range.map(|bound| bound.with_indices(&map)) });
    let full = Definition {
        indices: reader.indices.into_iter().chain(inner).collect(),
        rank: around,
        conditions: moved(&own.conditions),
        assumptions: [reader.assumptions, reader.conditions, chosen, moved(&own.assumptions)].concat(),
        body: lift::remap(&mut program.exprs, own.body, &map),
        ..own
    };
    let mut own = program.definitions[place].clone();
    let narrowed = lift::as_read(program, &full, outputs, context, own.body).ok()?;
    let ranges = narrowed.indices.into_iter().map(|index| index.range);
    own.indices[..own.rank].iter_mut().zip(ranges).for_each(|(index, range)| index.range = range);
    own = Definition { assumptions: narrowed.assumptions, body: narrowed.body, ..own };
    lift::drop_needless_assumptions(program, &mut own, context);
    Some(own)
}

fn reduced_rows(definition: &Definition) -> Vec<Constraint> {
    let reduced = definition.indices.iter().enumerate().skip(definition.rank);
    let ranges = reduced.flat_map(|(position, index)| index.range.constraints(position).collect::<Vec<_>>());
    ranges.chain(definition.conditions.iter().cloned()).collect()
}

/// Whether only the sizes say how many values each reduction index has.
fn is_box(definition: &Definition) -> bool {
    let plain = |bounds: &[Affine]| matches!(bounds, [bound] if !bound.uses_indices());
    let mut ranges = definition.indices[definition.rank..].iter().map(|index| &index.range);
    definition.conditions.is_empty() && ranges.all(|range| plain(&range.low) && plain(&range.high))
}

/// A reduction over nothing is its neutral value.
fn no_point(exprs: &mut Exprs, definition: &mut Definition, outer: &[Constraint]) -> bool {
    let Some(op) = definition.reduction else { return false };
    let never = |range: &Range| {
        let pairs = range.low.iter().flat_map(|low| range.high.iter().map(move |high| (low, high)));
        pairs.into_iter().any(|(low, high)| Constraint::at_most(low.clone(), high.clone()).decided() == Some(false))
    };
    let plainly = definition.indices[definition.rank..].iter().any(|index| never(&index.range));
    // Where nothing reads the definition, whatever it says about its reduction is as good.
    let empty = || system::is_empty(&[outer, &reduced_rows(definition)].concat()) && !system::is_empty(outer);
    if !plainly && (is_box(definition) || !empty()) {
        return false;
    }
    definition.body = exprs.constant(op.neutral());
    definition.indices.truncate(definition.rank);
    definition.reduction = None;
    definition.conditions.clear();
    true
}

/// Terms that are neutral where indices say so are left out, if bounds can say so too.
fn choice_to_bounds(exprs: &mut Exprs, definition: &mut Definition, outer: &[Constraint]) -> bool {
    let Some(op) = definition.reduction else { return false };
    let Expr::Select(condition, value, neutral) = exprs[definition.body] else { return false };
    if exprs.as_constant(neutral) != Some(op.neutral()) {
        return false;
    }
    let Some(rows) = guard::conjunction(exprs, condition) else { return false };
    let reduced = |c: &Constraint| (definition.rank..definition.indices.len()).any(|p| c.affine.uses_index(p));
    let (moved, kept): (Vec<Constraint>, Vec<Constraint>) = rows.into_iter().partition(reduced);
    let mut bounded = definition.clone();
    bounded.conditions.extend(moved);
    let before = definition.conditions.len();
    if !conditions_to_bounds(exprs, &mut bounded, outer) || bounded.conditions.len() > before {
        return false;
    }
    bounded.body = match guard::all(exprs, &kept) {
        Some(condition) => build::select(exprs, condition, value, neutral),
        None => value,
    };
    *definition = bounded;
    true
}

/// Conditions that bound an index become bounds.
fn conditions_to_bounds(_: &mut Exprs, definition: &mut Definition, outer: &[Constraint]) -> bool {
    let rank = definition.rank;
    let in_floor = |affine: &Affine| !affine.is_straight();
    let bounds = |c: &Constraint| {
        let used = (rank..definition.indices.len()).any(|p| c.affine.uses_index(p));
        used && c.relation == Relation::NonNegative && !in_floor(&c.affine)
    };
    if definition.reduction.is_none() || !definition.conditions.iter().any(bounds) {
        return false;
    }
    let positions: Vec<usize> = (rank..definition.indices.len()).collect();
    let Ok(Some(solved)) = system::solve(reduced_rows(definition), &positions, outer) else { return false };
    let conditions = [solved.conditions, solved.outer].concat();
    if conditions.len() >= definition.conditions.len() {
        return false;
    }
    definition.indices[rank..].iter_mut().zip(solved.ranges).for_each(|(index, range)| index.range = range);
    definition.conditions = conditions;
    true
}

/// Conditions on the quotient of an index become bounds of the index.
fn quotients_to_bounds(_: &mut Exprs, definition: &mut Definition, _: &[Constraint]) -> bool {
    let before = definition.conditions.len();
    for condition in std::mem::take(&mut definition.conditions) {
        let last = (definition.rank..definition.indices.len()).rev().find(|p| condition.affine.uses_index(*p));
        match last.and_then(|index| Some((index, quotient_bounds(&condition, index)?))) {
            Some((index, bounds)) => {
                let range = &mut definition.indices[index].range;
                range.low.extend(bounds.low);
                range.high.extend(bounds.high);
            }
            None => definition.conditions.push(condition),
        }
    }
    definition.conditions.len() < before
}

/// The bounds of an index that say the same as a condition on its quotient: `a*⌊(s*k + r) / d⌋ + rest >= 0`, where neither
/// `r` nor the rest depends on `k`; or `== 0`, where `a` is 1 or -1.
fn quotient_bounds(condition: &Constraint, index: usize) -> Option<Range> {
    let affine = &condition.affine;
    let mut with_index = affine.terms().iter().filter(|(atom, _)| Affine::atom(atom.clone()).uses_index(index));
    let (Some((quotient @ Atom::Floor(inner, d), a)), None) = (with_index.next(), with_index.next()) else {
        return None;
    };
    let (s, rest) = (inner.step_of(index), affine.add_scaled(&-a.clone(), &Affine::atom(quotient.clone())));
    let r = inner.add_scaled(&-s.clone(), &Affine::index(index));
    if s == Int::ZERO || r.uses_index(index) {
        return None;
    }
    // The least quotient, as a bound of s*k, or the largest.
    let least = |a: &Int| (-rest.clone()).shift(a - Int::ONE).floor_div(a).scale(d) - r.clone();
    let most = |a: &Int| rest.floor_div(a).scale(d).shift(d - Int::ONE) - r.clone();
    let (low, high) = match condition.relation {
        Relation::NonNegative if *a > Int::ZERO => (Some(least(a)), None),
        Relation::NonNegative => (None, Some(most(&-a.clone()))),
        // The quotient is a number, the rest or its negation.
        Relation::Zero if *a == Int::ONE => {
            (Some(least(a)), Some((-rest.clone()).scale(d).shift(d - Int::ONE) - r.clone()))
        }
        Relation::Zero if *a == -Int::ONE => (Some(rest.scale(d) - r.clone()), Some(most(&Int::ONE))),
        Relation::Zero => return None,
    };
    let up = |bound: Affine, s: &Int| bound.shift(s - Int::ONE).floor_div(s);
    let (low, high) = match s > Int::ZERO {
        true => (low.map(|low| up(low, &s)), high.map(|high| high.floor_div(&s))),
        false => (high.map(|high| up(-high, &-s.clone())), low.map(|low| (-low).floor_div(&-s.clone()))),
    };
    Some(Range { low: low.into_iter().collect(), high: high.into_iter().collect() })
}

/// A quotient that is the same at both ends of an index's range is what it is there.
fn fixed_quotients(exprs: &mut Exprs, definition: &mut Definition, _: &[Constraint]) -> bool {
    let mut fixed = Fixed(definition.indices.clone());
    let body = Rewriter::default().rewrite(exprs, definition.body, &mut fixed);
    let mut new = Definition { body, ..definition.clone() };
    new.conditions.iter_mut().for_each(|c| *c = c.rebuilt(fixed.affine(&c.affine)));
    new.conditions.retain(|c| c.decided() != Some(true));
    new.indices[new.rank..].iter_mut().for_each(|index| index.range = index.range.map(|bound| fixed.affine(bound)));
    let changed = new != *definition;
    *definition = new;
    changed
}

/// Replaces quotients of indices with these ranges.
struct Fixed(Vec<Index>);

impl Fixed {
    /// The value of `⌊inner / c⌋`, if an index does not matter for it.
    fn quotient(&self, inner: &Affine, c: &Int) -> Option<Affine> {
        let Fixed(indices) = self;
        (0..indices.len()).rev().find_map(|position| {
            let step = inner.step_of(position);
            if step.is_zero() || inner.divides_index(position) {
                return None;
            }
            let rest = inner.add_scaled(&-step.clone(), &Affine::index(position));
            let at = |bound: &Affine| rest.add_scaled(&step, bound).floor_div(c);
            let Range { low, high } = &indices[position].range;
            let highest: Vec<Affine> = high.iter().map(at).collect();
            low.iter().map(at).find(|lowest| highest.contains(lowest))
        })
    }
}

impl Rules for Fixed {
    fn affine(&mut self, affine: &Affine) -> Affine {
        affine.substitute(&mut |atom| match atom {
            Atom::Floor(inner, c) => self.quotient(inner, c),
            Atom::Index(_) | Atom::Param(_) => None,
        })
    }
    fn index(&mut self, exprs: &mut Exprs, affine: Affine) -> ExprId {
        build::index(exprs, affine)
    }
}

/// Of several bounds, one that another is always stricter than goes.
fn without_slack(_: &mut Exprs, definition: &mut Definition, outer: &[Constraint]) -> bool {
    let mut known = outer.to_vec();
    let mut changed = false;
    for position in definition.rank..definition.indices.len() {
        let range = &mut definition.indices[position].range;
        changed |= keep_strict(&mut range.low, |strict, slack| {
            system::implies(&known, &Constraint::at_most(slack.clone(), strict.clone()))
        });
        changed |= keep_strict(&mut range.high, |strict, slack| {
            system::implies(&known, &Constraint::at_most(strict.clone(), slack.clone()))
        });
        known.extend(range.constraints(position));
    }
    changed
}

fn keep_strict(bounds: &mut Vec<Affine>, beats: impl Fn(&Affine, &Affine) -> bool) -> bool {
    let before = bounds.len();
    for place in (0..bounds.len()).rev() {
        let beaten = bounds.iter().enumerate().any(|(other, strict)| other != place && beats(strict, &bounds[place]));
        if bounds.len() > 1 && beaten {
            bounds.remove(place);
        }
    }
    bounds.len() < before
}

/// An index with one value is replaced by it. Not in `max` and `min`: where derivatives ask which term is the largest, each
/// has to be computed as it was, to the last bit.
fn one_point(exprs: &mut Exprs, definition: &mut Definition, _: &[Constraint]) -> bool {
    let Some(op @ (ReduceOp::Sum | ReduceOp::Prod)) = definition.reduction else { return false };
    let single = |index: &Index| index.range.low.len() == 1 && index.range.low == index.range.high;
    let found = definition.indices.iter().skip(definition.rank).position(single);
    let Some(position) = found.map(|place| place + definition.rank) else { return false };
    let value = definition.indices.remove(position).range.low.remove(0);
    let map: Vec<Affine> = (0..=definition.indices.len())
        .map(|old| match old.cmp(&position) {
            std::cmp::Ordering::Less => Affine::index(old),
            std::cmp::Ordering::Equal => value.clone(),
            std::cmp::Ordering::Greater => Affine::index(old - 1),
        })
        .collect();
    for index in &mut definition.indices[position..] {
        index.range = index.range.map(|bound| bound.with_indices(&map));
    }
    definition.conditions.iter_mut().for_each(|c| *c = c.with_indices(&map));
    definition.conditions.retain(|c| c.decided() != Some(true));
    definition.body =
        Rewriter::default().rewrite(exprs, definition.body, &mut build::Placed { map: &map, zero: false });
    if definition.indices.len() == definition.rank {
        definition.reduction = None;
        if let Some(condition) = guard::all(exprs, &std::mem::take(&mut definition.conditions)) {
            let neutral = exprs.constant(op.neutral());
            definition.body = build::select(exprs, condition, definition.body, neutral);
        }
    }
    true
}
