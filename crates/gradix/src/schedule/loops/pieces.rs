//! Splitting an index space, so that loops contain no condition: interior and boundary, on and off a diagonal.
//!
//! The conditions on indices in a body, and the bounds of a reduction that depend on the index that is to be
//! vectorised, cut the space of the outputs. One piece is the *interior*, where each has the outcome that it has in
//! the middle; the others are what is left when one condition after the other fails.

use super::place::Placed;
use super::{Looping, Making, shape};
use crate::domain::{guard, system};
use crate::nest::LoopId;
use crate::program::build;
use crate::program::expr::{Rewriter, Rules};
use crate::program::{Affine, Atom, Cond, CondId, Constraint, Expr, ExprId, Exprs, Range, ReduceOp, Relation};
use crate::simplify;
use crate::target::cost;
use gradix_int::Int;

/// A part of the index space with its own body.
pub struct Piece {
    pub subscripts: Vec<Affine>,
    pub outputs: Vec<Range>,
    pub terms: Vec<Range>,
    pub guards: Vec<Constraint>,
    /// `None` where there are no terms: what the body says is the neutral value.
    pub reduction: Option<ReduceOp>,
    pub body: ExprId,
}

/// The most conditions that cut the space, as each may double the code; past that, they are tested where they stand.
const MAX_CUT_CONDITIONS: usize = 8;

/// The most pieces that edges are cut into: each has code of its own.
const MAX_PIECES: usize = 20;

/// The pieces of a definition; together they cover its outputs, and no two overlap.
pub fn split(looping: &mut Looping, placed: &Placed, making: &Making) -> Vec<Piece> {
    let known = [making.context.as_slice(), &output_domain(placed)].concat();
    let mut pieces = Vec::new();
    for mut region in by_equations(looping, placed, &known) {
        region.extend(with_terms(placed, &known));
        let voids = voids(looping, placed, making);
        let cuts = match voids.is_empty() {
            true => cuts(looping, placed, making, &known, &region),
            false => voids.clone(),
        };
        for part in refined(looping, placed, making, &known, parts(&known, region, cuts)) {
            match piece(looping, placed, &known, &part) {
                Ok(found) => {
                    let is_void = voids.iter().any(|void| part.contains(void));
                    pieces.extend(found.map(|piece| if is_void { neutral(looping, placed, piece) } else { piece }));
                }
                Err(Unsplit) => return vec![whole(placed)],
            }
        }
    }
    pieces
}

/// What has to hold of the outputs for a reduction to have terms, where it goes on from what is there: elsewhere there
/// is nothing to do.
fn with_terms(placed: &Placed, known: &[Constraint]) -> Vec<Constraint> {
    if !placed.accumulate {
        return Vec::new();
    }
    let terms = &placed.variables[placed.outputs..];
    let outputs = &placed.variables[..placed.outputs];
    let mut found = Vec::new();
    for range in &placed.ranges[placed.outputs..] {
        for (low, high) in range.low.iter().flat_map(|low| range.high.iter().map(move |high| (low, high))) {
            let some = undivided(low, high);
            let uses = |variables: &[LoopId]| variables.iter().any(|&v| some.affine.uses_index(v));
            if uses(outputs) && !uses(terms) && !system::implies(known, &some) && !found.contains(&some) {
                found.push(some);
            }
        }
    }
    found
}

/// Where a reduction has no terms, if that is so in the middle, as of sums that only a border has:
/// `sum[a in 0..4 - j] x[j + a]` has none for `j >= 4`.
fn voids(looping: &Looping, placed: &Placed, making: &Making) -> Vec<Constraint> {
    if placed.accumulate || placed.reduction.is_none() {
        return Vec::new();
    }
    let middle = looping.middle(placed, making);
    let terms = &placed.variables[placed.outputs..];
    let ranges = placed.ranges[placed.outputs..].iter();
    let pairs =
        ranges.flat_map(|range| range.low.iter().flat_map(|low| range.high.iter().map(move |high| (low, high))));
    let some = pairs.map(|(low, high)| undivided(low, high));
    let of_outputs = |some: &Constraint| !terms.iter().any(|&term| some.affine.uses_index(term));
    let fails = |some: &Constraint| some.affine.estimate(&middle, looping.estimate) < 0.0;
    let first = some.filter(of_outputs).filter(|some| some.affine.uses_indices() && !has_floor(some)).find(fails);
    first.map_or(Vec::new(), |some| some.negated())
}

/// A piece without terms.
fn neutral(looping: &mut Looping, placed: &Placed, piece: Piece) -> Piece {
    let none = placed.reduction.map_or(0.0, ReduceOp::neutral);
    let body = looping.exprs.constant(none);
    Piece { terms: Vec::new(), guards: Vec::new(), reduction: None, body, ..piece }
}

/// Cutting would leave conditions on outputs, which a reduction can't have.
struct Unsplit;

/// A definition as it stands.
pub fn whole(placed: &Placed) -> Piece {
    let (outputs, terms) = placed.ranges.split_at(placed.outputs);
    Piece {
        subscripts: placed.subscripts.clone(),
        outputs: outputs.to_vec(),
        terms: terms.to_vec(),
        guards: placed.conditions.clone(),
        reduction: placed.reduction,
        body: placed.body,
    }
}

fn output_domain(placed: &Placed) -> Vec<Constraint> {
    let outputs = placed.variables[..placed.outputs].iter().zip(&placed.ranges);
    outputs.flat_map(|(&v, range)| range.constraints(v).collect::<Vec<_>>()).collect()
}

fn term_domain(placed: &Placed) -> Vec<Constraint> {
    let terms = placed.variables.iter().zip(&placed.ranges).skip(placed.outputs);
    let ranges = terms.flat_map(|(&v, range)| range.constraints(v).collect::<Vec<_>>());
    ranges.chain(placed.conditions.iter().cloned()).collect()
}

/// The index conditions below a body that mention no index of the reduction.
fn conditions(exprs: &Exprs, placed: &Placed, body: ExprId) -> Vec<Constraint> {
    let mut found: Vec<Constraint> = Vec::new();
    let terms = &placed.variables[placed.outputs..];
    for id in exprs.postorder(body) {
        if let Expr::Select(c, ..) = exprs[id] {
            exprs.visit_condition(c, &mut |condition| {
                if let Cond::Index(constraint) = condition
                    && !terms.iter().any(|&t| constraint.affine.uses_index(t))
                    && !found.contains(constraint)
                {
                    found.push(constraint.clone());
                }
            });
        }
    }
    found
}

fn has_floor(constraint: &Constraint) -> bool {
    !constraint.affine.is_straight()
}

/// On and off diagonals: at most two equations are told apart.
fn by_equations(looping: &Looping, placed: &Placed, known: &[Constraint]) -> Vec<Vec<Constraint>> {
    let all = conditions(&looping.exprs, placed, placed.body);
    let equations = all.into_iter().filter(|c| c.relation == Relation::Zero && !has_floor(c)).take(2);
    let mut regions: Vec<Vec<Constraint>> = vec![Vec::new()];
    for equation in equations {
        let mut cut = Vec::new();
        for region in regions {
            for side in std::iter::once(equation.clone()).chain(equation.negated()) {
                let side = [region.as_slice(), &[side]].concat();
                if !system::is_empty(&[known, &side].concat()) {
                    cut.push(side);
                }
            }
        }
        regions = cut;
    }
    regions
}

/// The conditions that hold in the interior of a region.
fn cuts(
    looping: &mut Looping,
    placed: &Placed,
    making: &Making,
    known: &[Constraint],
    region: &[Constraint],
) -> Vec<Constraint> {
    let middle = looping.middle(placed, making);
    let here = [known, region].concat();
    let domain = [here.as_slice(), &term_domain(placed)].concat();
    let exprs = &mut looping.exprs;
    let body = match conditions(exprs, placed, placed.body).is_empty() {
        true => placed.body,
        false => simplify::assuming(exprs, placed.body, domain),
    };
    let mut cuts = Vec::new();
    for condition in conditions(exprs, placed, body) {
        if condition.relation == Relation::Zero || has_floor(&condition) {
            continue;
        }
        let holds = condition.affine.estimate(&middle, looping.estimate) >= 0.0;
        cuts.push(if holds { condition } else { condition.negated().remove(0) });
    }
    cuts.extend(bound_cuts(looping, placed, &middle));
    match system::prune(cuts, &here) {
        Some(cuts) if cuts.len() <= MAX_CUT_CONDITIONS => cuts,
        Some(_) | None => Vec::new(),
    }
}

/// Bounds of the reduction that depend on the lanes or rows give way to those that don't.
fn bound_cuts(looping: &Looping, placed: &Placed, middle: &[f64]) -> Vec<Constraint> {
    let mut cuts = Vec::new();
    if placed.reduction.is_none() {
        return cuts;
    }
    for v in shape::preferred(looping, placed) {
        for range in &placed.ranges[placed.outputs..] {
            for (bounds, is_low) in [(&range.low, true), (&range.high, false)] {
                let (mixed, plain): (Vec<&Affine>, Vec<&Affine>) = bounds.iter().partition(|b| b.uses_index(v));
                // The one that counts in the middle.
                let strictness = |bound: &Affine| {
                    let value = bound.estimate(middle, looping.estimate);
                    if is_low { value } else { -value }
                };
                let stricter = |a: &&Affine, b: &&Affine| strictness(a).total_cmp(&strictness(b));
                let Some(plain) = plain.iter().copied().max_by(stricter) else { continue };
                for bound in mixed {
                    let (low, high) = if is_low { (bound, plain) } else { (plain, bound) };
                    cuts.push(undivided(low, high));
                }
            }
        }
    }
    let outputs_only = |c: &Constraint| placed.variables[placed.outputs..].iter().all(|&t| !c.affine.uses_index(t));
    cuts.retain(|c| outputs_only(c) && c.decided().is_none());
    cuts
}

/// `low <= high`, without one of the divisions of indices.
fn undivided(low: &Affine, high: &Affine) -> Constraint {
    // ⌊e / c⌋ and what stands beside it
    let division = |side: &Affine| {
        side.terms().iter().find_map(|(atom, one)| match atom {
            Atom::Floor(inner, c) if *one == Int::ONE && inner.uses_indices() => {
                Some(((**inner).clone(), c.clone(), side.clone() - Affine::atom(atom.clone())))
            }
            _ => None,
        })
    };
    match (division(low), division(high)) {
        // ⌊e / c⌋ + rest <= high  where  e <= c*(high - rest) + c - 1
        (Some((inner, c, rest)), _) => Constraint::at_most(inner, (high.clone() - rest).scale(&c).shift(c - Int::ONE)),
        // low <= ⌊e / c⌋ + rest  where  c*(low - rest) <= e
        (None, Some((inner, c, rest))) => Constraint::at_most((low.clone() - rest).scale(&c), inner),
        (None, None) => Constraint::at_most(low.clone(), high.clone()),
    }
}

/// The interior, then what is left where one cut after the other fails.
fn parts(known: &[Constraint], region: Vec<Constraint>, cuts: Vec<Constraint>) -> Vec<Vec<Constraint>> {
    let mut parts = vec![[region.as_slice(), &cuts].concat()];
    let mut inside = region;
    for cut in cuts {
        for outside in cut.negated() {
            let part = [inside.as_slice(), &[outside]].concat();
            if !system::is_empty(&[known, &part].concat()) {
                parts.push(part);
            }
        }
        inside.push(cut);
    }
    parts
}

/// The parts, where borders of a pointwise definition that still have conditions on what would best be lanes are cut again:
/// corners apart, an edge runs in vectors, too.
fn refined(
    looping: &mut Looping,
    placed: &Placed,
    making: &Making,
    known: &[Constraint],
    mut parts: Vec<Vec<Constraint>>,
) -> Vec<Vec<Constraint>> {
    let lanes = shape::preferred(looping, placed).first().copied();
    let is_edged = placed.reduction.is_none() && placed.outputs > 1 && parts.len() > 1;
    let Some(lanes) = lanes.filter(|_| is_edged) else { return parts };
    let mut done = vec![parts.remove(0)];
    while let Some(part) = parts.pop() {
        let mut cuts = cuts(looping, placed, making, known, &part);
        let wanted =
            cuts.iter().any(|cut| cut.affine.uses_index(lanes)) && is_long(looping, placed, known, &part, lanes);
        cuts.retain(|cut| wanted && !part.contains(cut));
        match self::parts(known, part.clone(), cuts) {
            cut if cut.len() > 1 && done.len() + parts.len() + cut.len() <= MAX_PIECES => parts.extend(cut),
            _ => done.push(part),
        }
    }
    done[1..].reverse();
    done
}

/// Whether a part has vectors along a variable.
fn is_long(
    looping: &mut Looping,
    placed: &Placed,
    known: &[Constraint],
    part: &[Constraint],
    variable: LoopId,
) -> bool {
    let Ok(Some(Piece { outputs, terms, .. })) = piece(looping, placed, known, part) else { return false };
    let extents = looping.extents(&placed.loops(outputs.into_iter().chain(terms)));
    let place = placed.variables.iter().position(|own| *own == variable);
    place.is_some_and(|place| extents[place] >= cost::EDGE_VECTORS * looping.lanes)
}

/// The loops over a part; `None` if it has no points.
fn piece(
    looping: &mut Looping,
    placed: &Placed,
    known: &[Constraint],
    part: &[Constraint],
) -> Result<Option<Piece>, Unsplit> {
    let (outputs, terms) = placed.ranges.split_at(placed.outputs);
    let (mut outputs, mut guards) = (outputs.to_vec(), placed.conditions.clone());
    let context: Vec<Constraint> = known[..known.len() - output_domain(placed).len()].to_vec();
    if !part.is_empty() {
        let rows = output_domain(placed).into_iter().chain(part.iter().flat_map(inequalities));
        let variables: Vec<usize> = placed.variables[..placed.outputs].iter().map(|v| v.number()).collect();
        match system::solve(rows.collect(), &variables, &context) {
            Ok(None) => return Ok(None),
            Ok(Some(solved)) => {
                outputs = solved.ranges;
                guards.extend(solved.conditions);
                guards.extend(solved.outer);
            }
            Err(_) => return Err(Unsplit),
        }
        if placed.reduction.is_some() && guards.len() > placed.conditions.len() {
            return Err(Unsplit);
        }
    }
    let here = [known, part].concat();
    let own = &placed.variables[..placed.outputs];
    let moves = |range: &Range| range.low.iter().chain(&range.high).any(|b| own.iter().any(|v| b.uses_index(*v)));
    // Slabs stay as they stand: sums over them run within the loops of others.
    let terms = terms.iter().map(|range| match part.is_empty() && !moves(range) {
        true => range.clone(),
        false => system::without_idle_bounds(range, &here),
    });
    let terms = terms.collect();
    let domain = [here, term_domain(placed)].concat();
    let exprs = &mut looping.exprs;
    let conditional = exprs.postorder(placed.body).iter().any(|id| matches!(exprs[*id], Expr::Select(..)));
    let body = if conditional { simplify::assuming(exprs, placed.body, domain) } else { placed.body };
    let body = unmixed(exprs, body);
    Ok(Some(Piece { subscripts: placed.subscripts.clone(), outputs, terms, guards, reduction: placed.reduction, body }))
}

/// An equation as a bound on either side. With other factors than 1, bounds would be rounded, and no more equal.
fn inequalities(constraint: &Constraint) -> Vec<Constraint> {
    let is_whole = |(atom, factor): &(Atom, Int)| match atom {
        Atom::Index(_) => *factor == Int::ONE || *factor == -Int::ONE,
        Atom::Param(_) => true,
        Atom::Floor(..) => false,
    };
    match constraint.relation {
        Relation::Zero if constraint.affine.terms().iter().all(is_whole) => {
            [constraint.affine.clone(), -constraint.affine.clone()].map(Constraint::non_negative).to_vec()
        }
        Relation::Zero | Relation::NonNegative => vec![constraint.clone()],
    }
}

/// Every choice is made either by indices or by values: `if i > 0 and x > 0` becomes two choices.
pub fn unmixed(exprs: &mut Exprs, body: ExprId) -> ExprId {
    Rewriter::default().rewrite(exprs, body, &mut Unmix)
}

struct Unmix;

impl Rules for Unmix {
    fn select(&mut self, exprs: &mut Exprs, c: CondId, a: ExprId, b: ExprId) -> ExprId {
        if !guard::has_values(exprs, c) || !has_indices(exprs, c) {
            return exprs.add(Expr::Select(c, a, b));
        }
        match exprs[c].clone() {
            Cond::Index(_) | Cond::Compare(..) => build::select(exprs, c, a, b),
            Cond::Not(x) => self.select(exprs, x, b, a),
            Cond::And(x, y) => {
                let inner = self.select(exprs, y, a, b);
                self.select(exprs, x, inner, b)
            }
            Cond::Or(x, y) => {
                let inner = self.select(exprs, y, a, b);
                self.select(exprs, x, a, inner)
            }
        }
    }
}

fn has_indices(exprs: &Exprs, c: CondId) -> bool {
    let mut found = false;
    exprs.visit_condition(c, &mut |condition| found |= matches!(condition, Cond::Index(_)));
    found
}
