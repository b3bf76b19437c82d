//! A part of a definition as a definition of its own, over as few points as it depends on.
//!
//! Of `sum[j, k] e[i - k, j]` the part `sum[j] e[i - k, j]` depends on `i` and `k`, but only by way of `i - k`: it is
//! `S[p] = sum[j] e[p, j]`, read at `S[i - k]`. In general the part is written in *directions*: few and short
//! combinations of outer indices, of which all that occur in it are made. These are used if they are fewer than the
//! indices themselves, or if their ranges are independent of each other and those of the indices are not.

use crate::domain::system;
use crate::lift;
use crate::program::expr::{Rewriter, Rules};
use crate::program::{Affine, Atom, Constraint, Definition, ExprId, Index, Program, Range, ReduceOp, TensorId};
use gradix_int::Int;

/// A definition, and where its reader reads it.
#[derive(Clone, Debug)]
pub struct Part {
    /// What is computed. Its tensor is not yet known to the program.
    pub definition: Definition,
    /// The element that stands for it, in the indices of the reader.
    pub subscripts: Vec<Affine>,
}

/// `sum[inner] body`, or just `body` if there are no `inner` indices, wherever the body of `site` is evaluated and
/// `guard` holds. `None` if it can't be computed apart.
pub fn part(
    program: &mut Program,
    site: &Definition,
    inner: &[usize],
    body: ExprId,
    guard: &[Constraint],
    context: &[Constraint],
) -> Option<Part> {
    let outer: Vec<usize> = (0..site.indices.len()).filter(|i| !inner.contains(i)).collect();
    let full = apart(program, site, (&outer, inner), body, guard)?;
    let used = lift::used_outputs(program, &full);
    let mut kept: Vec<usize> = (0..full.rank).filter(|&i| used[i]).collect();
    let mut definition = narrowed(program, &full, &kept, context)?;
    // What runs along the reader's last output comes last, if that leaves the ranges simple.
    if is_free(&definition) {
        let before = kept.clone();
        kept.sort_by_key(|&new| outer[new] + 1 == site.rank);
        if kept != before {
            definition = narrowed(program, &full, &kept, context)?;
        }
    }
    let bare: Vec<Affine> = kept.iter().map(|&new| Affine::index(outer[new])).collect();
    let plain = Part { definition, subscripts: bare };
    let occurring = occurring(program, &plain.definition);
    let last = kept.iter().position(|&new| outer[new] + 1 == site.rank);
    let short = Directions::shortest(occurring.clone()).ordered(last, &plain.definition);
    if occurring.is_empty() || short.basis.len() > kept.len() {
        return Some(plain);
    }
    // The combinations as they occur, and short ones: rather those whose ranges are independent of each other.
    let own =
        (occurring.len() == short.basis.len()).then(|| Directions::own(occurring).ordered(last, &plain.definition));
    let fewer = short.basis.len() < kept.len();
    if !fewer && is_free(&plain.definition) {
        return Some(plain);
    }
    let ways = own.iter().chain([&short]);
    let parts: Vec<Part> = ways.filter_map(|directions| along(program, &plain, directions, context)).collect();
    let boxed = parts.iter().find(|part| is_free(&part.definition)).cloned();
    match fewer {
        true => boxed.or_else(|| parts.last().cloned()),
        false => Some(boxed.unwrap_or(plain)),
    }
}

/// `sum[inner] body` at all outer indices; `None` if their ranges depend on the inner ones.
fn apart(
    program: &mut Program,
    site: &Definition,
    (outer, inner): (&[usize], &[usize]),
    body: ExprId,
    guard: &[Constraint],
) -> Option<Definition> {
    let uses_inner = |affine: &Affine| inner.iter().any(|&i| affine.uses_index(i));
    let bounds = |i: usize| site.indices[i].range.low.iter().chain(&site.indices[i].range.high);
    if outer.iter().any(|&i| bounds(i).any(uses_inner)) {
        return None;
    }
    let mut map = vec![Affine::default(); site.indices.len()];
    outer.iter().chain(inner).enumerate().for_each(|(new, &old)| map[old] = Affine::index(new));
    let moved = |i: &usize| {
        let Index { name, range } = &site.indices[*i];
        Index { name: name.clone(), range: range.map(|b| b.with_indices(&map)) }
    };
    let (conditions, outside): (Vec<_>, Vec<_>) = site.conditions.iter().partition(|c| uses_inner(&c.affine));
    let assumptions = site.assumptions.iter().chain(outside).chain(guard);
    Some(Definition {
        tensor: site.tensor,
        indices: outer.iter().chain(inner).map(moved).collect(),
        rank: outer.len(),
        reduction: (!inner.is_empty()).then_some(ReduceOp::Sum),
        conditions: conditions.iter().map(|c| c.with_indices(&map)).collect(),
        assumptions: assumptions.map(|c| c.with_indices(&map)).collect(),
        body: lift::remap(&mut program.exprs, body, &map),
    })
}

/// Whether the outputs are independent of each other.
fn is_free(definition: &Definition) -> bool {
    definition.is_box() && definition.assumptions.iter().all(|c| !c.affine.uses_indices())
}

/// The same over the outputs at `kept`, which are all that it uses.
fn narrowed(program: &mut Program, full: &Definition, kept: &[usize], context: &[Constraint]) -> Option<Definition> {
    let alone = |affine: &Affine| {
        let mut fine = true;
        affine.visit_indices(&mut |i| fine &= kept.contains(&i));
        fine
    };
    let ranges = kept.iter().map(|&i| &full.indices[i].range);
    let closed = ranges.flat_map(|r| r.low.iter().chain(&r.high)).all(alone);
    // Where the others have no say, that they have a value at all does not matter.
    let free = closed && full.assumptions.iter().all(|c| alone(&c.affine));
    let full = match free {
        true => {
            let unbounded = |(i, index): (usize, &Index)| match i < full.rank && !kept.contains(&i) {
                true => Index { name: index.name.clone(), range: Range::extent(Affine::constant(1)) },
                false => index.clone(),
            };
            Definition { indices: full.indices.iter().enumerate().map(unbounded).collect(), ..full.clone() }
        }
        false => full.clone(),
    };
    let mut definition = lift::narrowed_plain(program, &full, kept, context).ok()?;
    definition.assumptions.retain(|c| c.affine.uses_indices());
    Some(definition)
}

/// Combinations of outputs.
struct Directions {
    /// Those that occur, each with its first coefficient positive and without a common divisor.
    occurring: Vec<Affine>,
    /// Short ones that all are made of.
    basis: Vec<Affine>,
    /// How those that occur are made: how often each of the basis.
    made: Vec<Vec<Int>>,
}

/// Of the outputs in a direction with `last`, that of the most values: sizes are more than any number, and `last` is before its equals.
fn longest(direction: &Affine, last: usize, definition: &Definition) -> usize {
    let count = |output: usize| match definition.indices[output].range.high.as_slice() {
        [high] => high.as_constant().cloned(),
        _ => None,
    };
    let shorter = |than: usize, output: &usize| match (count(than), count(*output)) {
        (Some(few), many) => many.is_none_or(|many| many > few),
        (None, _) => false,
    };
    let outputs = (0..definition.rank).filter(|output| direction.uses_index(*output));
    outputs
        .fold(last, |found, output| if direction.uses_index(last) && shorter(found, &output) { output } else { found })
}

/// The combinations of outputs that occur in a definition, as multiples of which all can be written.
fn occurring(program: &Program, definition: &Definition) -> Vec<Affine> {
    let rank = definition.rank;
    let mut found: Vec<Affine> = Vec::new();
    let mut see = |affine: &Affine| {
        each_linear(affine, &mut |linear| {
            let own = outputs_of(linear, rank);
            if let Some((direction, _)) = direction_of(&own)
                && !found.contains(&direction)
            {
                found.push(direction);
            }
        });
    };
    program.exprs.visit_affines(definition.body, &mut see);
    definition.conditions.iter().for_each(|c| see(&c.affine));
    for index in &definition.indices[rank..] {
        index.range.low.iter().chain(&index.range.high).for_each(&mut see);
    }
    found
}

impl Directions {
    /// Those that occur are the basis.
    fn own(occurring: Vec<Affine>) -> Self {
        let count = occurring.len();
        let unit = |d: usize| (0..count).map(|k| if k == d { Int::ONE } else { Int::ZERO }).collect();
        Directions { basis: occurring.clone(), made: (0..count).map(unit).collect(), occurring }
    }

    /// One is subtracted from another while that makes it shorter.
    fn shortest(occurring: Vec<Affine>) -> Self {
        let mut found = Self::own(occurring);
        while found.shorten() {}
        found
    }

    /// Those with the output `last` come last, and do not fall both along it and along that of the most values: so neighbours
    /// along it are neighbours of the part.
    fn ordered(mut self, last: Option<usize>, definition: &Definition) -> Self {
        let Some(last) = last else { return self };
        for (place, direction) in self.basis.iter_mut().enumerate() {
            let falls = |output: usize| direction.coefficient(&Atom::Index(output as u32)) < Int::ZERO;
            if falls(last) && falls(longest(direction, last, definition)) {
                *direction = -direction.clone();
                self.made.iter_mut().for_each(|made| made[place] = -made[place].clone());
            }
        }
        let mut order: Vec<usize> = (0..self.basis.len()).collect();
        order.sort_by_key(|&d| self.basis[d].uses_index(last));
        self.basis = order.iter().map(|&d| self.basis[d].clone()).collect();
        for made in &mut self.made {
            *made = order.iter().map(|&d| made[d].clone()).collect();
        }
        self
    }

    fn shorten(&mut self) -> bool {
        let count = self.basis.len();
        let pairs = (0..count).flat_map(|j| (0..count).map(move |i| (j, i))).filter(|(j, i)| i != j);
        for (j, i) in pairs {
            for sign in [Int::ONE, -Int::ONE] {
                let rest = self.basis[j].add_scaled(&-sign.clone(), &self.basis[i]);
                if rest.terms().len() >= self.basis[j].terms().len() {
                    continue;
                }
                // basis[j] is sign * basis[i] + rest, and rest is factor times a direction.
                let rest = direction_of(&rest);
                for made in &mut self.made {
                    let times = made[j].clone();
                    made[i] = &made[i] + &(&sign * &times);
                    made[j] = rest.as_ref().map_or(Int::ZERO, |(_, factor)| &times * factor);
                }
                match rest {
                    Some((direction, _)) => self.basis[j] = direction,
                    None => {
                        self.basis.remove(j);
                        self.made.iter_mut().for_each(|made| drop(made.remove(j)));
                    }
                }
                return true;
            }
        }
        false
    }
}

/// The expression itself and those inside `⌊e / c⌋`.
fn each_linear(affine: &Affine, visit: &mut dyn FnMut(&Affine)) {
    visit(affine);
    for (atom, _) in affine.terms() {
        if let Atom::Floor(inner, _) = atom {
            each_linear(inner, visit);
        }
    }
}

/// The terms that are outputs.
fn outputs_of(affine: &Affine, rank: usize) -> Affine {
    let is_output = |atom: &Atom| matches!(atom, Atom::Index(i) if (*i as usize) < rank);
    let terms = affine.terms().iter().filter(|(atom, _)| is_output(atom));
    terms.fold(Affine::default(), |sum, (atom, c)| sum.add_scaled(c, &Affine::atom(atom.clone())))
}

/// A combination of indices as a multiple of its direction.
pub fn direction_of(affine: &Affine) -> Option<(Affine, Int)> {
    let (_, first) = affine.terms().first()?;
    let common = affine.terms().iter().fold(Int::ZERO, |g, (_, c)| crate::program::affine::gcd(&g, c));
    let factor = if *first < Int::ZERO { -common } else { common };
    let parts = affine.terms().iter().map(|(atom, c)| (atom, c / &factor));
    let direction = parts.fold(Affine::default(), |sum, (a, c)| sum.add_scaled(&c, &Affine::atom(a.clone())));
    Some((direction, factor))
}

/// The definition with the directions as its outputs.
fn along(program: &mut Program, plain: &Part, directions: &Directions, context: &[Constraint]) -> Option<Part> {
    let Part { definition, subscripts: bare } = plain;
    let basis = &directions.basis;
    let (rank, count) = (definition.rank, basis.len());
    // New outputs have numbers past all others until the old ones are gone.
    let far = definition.indices.len();
    let mut rows = definition.output_domain();
    rows.extend(basis.iter().enumerate().map(|(n, d)| Constraint::equal(Affine::index(far + n), d.clone())));
    let is_old = |atom: &Atom| matches!(atom, Atom::Index(i) if (*i as usize) < rank);
    let projected = system::project(&rows, &is_old).ok()?;
    let near: Vec<Affine> = (0..far).map(|_| Affine::default()).chain((0..count).map(Affine::index)).collect();
    let projected: Vec<Constraint> = projected.iter().map(|c| c.with_indices(&near)).collect();
    let positions: Vec<usize> = (0..count).collect();
    let solved = system::solve(projected, &positions, context).ok()??;
    let mut rules = Along { directions, rank };
    let reduced = definition.indices[rank..].iter();
    let names = basis.iter().map(|d| name_of(definition, d));
    let outputs = names.zip(solved.ranges).map(|(name, range)| Index { name, range });
    let inner: Vec<Index> =
        reduced.map(|index| Index { name: index.name.clone(), range: index.range.map(|b| rules.affine(b)) }).collect();
    let conditions = definition.conditions.iter().map(|c| c.rebuilt(rules.affine(&c.affine))).collect();
    let body = Rewriter::default().rewrite(&mut program.exprs, definition.body, &mut rules);
    let definition = Definition {
        tensor: TensorId(u32::MAX),
        indices: outputs.chain(inner).collect(),
        rank: count,
        reduction: definition.reduction,
        conditions,
        assumptions: [solved.conditions, solved.outer]
            .concat()
            .into_iter()
            .filter(|c| c.affine.uses_indices())
            .collect(),
        body,
    };
    Some(Part { definition, subscripts: basis.iter().map(|d| d.with_indices(bare)).collect() })
}

/// The name of the first index in a direction.
fn name_of(definition: &Definition, direction: &Affine) -> String {
    let mut first = None;
    direction.visit_indices(&mut |i| first = first.or(Some(i)));
    definition.indices[first.unwrap_or(0)].name.clone()
}

/// Writes outputs as multiples of directions.
struct Along<'a> {
    directions: &'a Directions,
    rank: usize,
}

impl Rules for Along<'_> {
    fn affine(&mut self, affine: &Affine) -> Affine {
        let own = outputs_of(affine, self.rank);
        let mut new = Affine::constant(affine.offset().clone());
        if let Some((direction, factor)) = direction_of(&own) {
            let known = self.directions.occurring.iter().position(|d| *d == direction).expect("a known direction");
            for (place, times) in self.directions.made[known].iter().enumerate() {
                new = new.add_scaled(&(&factor * times), &Affine::index(place));
            }
        }
        for (atom, coefficient) in affine.terms() {
            let value = match atom {
                Atom::Index(i) if (*i as usize) < self.rank => continue,
                Atom::Index(i) => Affine::index(*i as usize - self.rank + self.directions.basis.len()),
                Atom::Param(_) => Affine::atom(atom.clone()),
                Atom::Floor(inner, c) => self.affine(inner).floor_div(c),
            };
            new = new.add_scaled(coefficient, &value);
        }
        new
    }
}
