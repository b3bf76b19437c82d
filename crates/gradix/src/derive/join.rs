//! Contributions over neighbouring sets of points, as one over both.
//!
//! What reads an element by way of the pieces of one subscript comes in as many contributions. They exclude each other, and
//! what they add is the same expression at elements that are one extent apart:
//!
//! ```text
//! (if i <= N - 2 then dw[i + 1] else 0) + (if i == N - 1 then dw[0] else 0)       dw[wrap(i + 1)]
//! sum[k in 0..N - i] dy[i + k] * h[k] + sum[k in N - i..N] dy[i + k - N] * h[k]   sum[k in 0..N] dy[wrap(i + k)] * h[k]
//! ```
//!
//! Two sets of points are joined where a row `c` of one holds in all of it and nowhere in the other, and the rows `R` that hold
//! in both say no more than that: the first set is `R` and `c`, the second `R` and not `c`. All of this is proven with the
//! polyhedra at hand, so the new sum has each point of the old ones once.

use super::assemble::Contribution;
use crate::domain::system::{self, Facts};
use crate::program::expr::{Rewriter, Rules};
use crate::program::fold::{self, Element};
use crate::program::{
    Affine, BinaryOp, Cond, CondId, Constraint, Expr, ExprId, Fold, Index, Program, Relation, TensorId, UnaryOp,
    distinct,
};
use crate::simplify;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Joins what can be joined. `outputs` are the indices of the element, `context` what is known of sizes.
pub fn join(
    program: &mut Program,
    outputs: &[Index],
    known: &[Constraint],
    contributions: Vec<Contribution>,
) -> Vec<Contribution> {
    let ranges = outputs.iter().enumerate().flat_map(|(position, index)| index.range.constraints(position));
    let context: Vec<Constraint> = ranges.chain(known.iter().cloned()).collect();
    let mut parts: Vec<Part> =
        contributions.into_iter().map(|c| Part::new(program, c, outputs.len(), &context)).collect();
    // In several dimensions, pieces of one are joined before those of the next.
    loop {
        let before = parts.len();
        let mut first = 0;
        while first < parts.len() {
            let joined = (first + 1..parts.len()).find_map(|second| {
                let pair = [&parts[first], &parts[second]];
                Some((second, joined(program, outputs.len(), pair, &context)?))
            });
            match joined {
                Some((second, part)) => {
                    parts.remove(second);
                    parts[first] = part;
                }
                None => first += 1,
            }
        }
        if parts.len() == before {
            break;
        }
    }
    parts.into_iter().map(|part| part.finish(program, &context)).collect()
}

/// A contribution while it is joined with others.
struct Part {
    contribution: Contribution,
    /// The points, as rows over the indices of the element and the free ones.
    rows: Vec<Constraint>,
    /// Accesses with subscripts that are to be taken modulo the extent, by dimension.
    wrapped: BTreeMap<ExprId, BTreeSet<usize>>,
}

impl Part {
    fn new(program: &mut Program, mut contribution: Contribution, rank: usize, context: &[Constraint]) -> Self {
        let free = contribution.free.iter().enumerate();
        let ranges = free.flat_map(|(place, index)| index.range.constraints(rank + place));
        let rows = ranges.chain(contribution.outer.iter().cloned()).chain(contribution.conditions.iter().cloned());
        let rows: Vec<Constraint> = rows.collect();
        // A value that reads the pieces of a subscript, too, is down to the one that belongs to these points.
        let exprs = &mut program.exprs;
        if exprs.postorder(contribution.value).iter().any(|id| matches!(exprs[*id], Expr::Select(..))) {
            contribution.value = simplify::assuming(exprs, contribution.value, [&rows, context].concat());
        }
        Part { rows, contribution, wrapped: BTreeMap::new() }
    }

    /// With `wrap` as the choice between pieces that it stands for, but for those that the domain excludes.
    fn finish(self, program: &mut Program, context: &[Constraint]) -> Contribution {
        let Part { mut contribution, rows, wrapped } = self;
        if wrapped.is_empty() {
            return contribution;
        }
        let mut choices = Vec::new();
        for (access, dimensions) in wrapped {
            let Expr::Access(tensor, subscripts) = program.exprs[access].clone() else { continue };
            let fold = |(d, e): (usize, Affine)| (dimensions.contains(&d).then_some(Fold::Wrap), e);
            let element = Element { tensor, subscripts: subscripts.into_iter().enumerate().map(fold).collect() };
            let extents = program[tensor].extents.clone();
            choices.push((access, fold::choice(&mut program.exprs, &extents, &element)));
        }
        let value = Rewriter::with(choices).rewrite(&mut program.exprs, contribution.value, &mut Same);
        contribution.value = simplify::assuming(&mut program.exprs, value, [rows.as_slice(), context].concat());
        contribution
    }
}

struct Same;

impl Rules for Same {}

/// Both parts as one, if they are neighbours.
fn joined(program: &mut Program, rank: usize, [a, b]: [&Part; 2], context: &[Constraint]) -> Option<Part> {
    let free = a.contribution.free.len();
    if free != b.contribution.free.len() || !is_alike(program, a.contribution.value, b.contribution.value) {
        return None;
    }
    let in_a = Facts::new([&a.rows, context].concat());
    let in_b = Facts::new([&b.rows, context].concat());
    let rows = union([&a.rows, &b.rows], context, Relation::NonNegative)?.rows;
    let sides = [(&in_a, &a.wrapped), (&in_b, &b.wrapped)];
    let mut zip = Zip { program, sides, wrapped: BTreeMap::new(), done: HashMap::new() };
    let value = zip.zip(a.contribution.value, b.contribution.value)?;
    let wrapped = zip.wrapped;
    let contribution = solved(&a.contribution, rank, &rows, context)?;
    Some(Part { contribution: Contribution { value, ..contribution }, rows, wrapped })
}

/// A contribution over other points.
fn solved(like: &Contribution, rank: usize, rows: &[Constraint], context: &[Constraint]) -> Option<Contribution> {
    let free = like.free.len();
    if free == 0 {
        let outer = system::prune(rows.to_vec(), context)?;
        return Some(Contribution { outer, ..like.clone() });
    }
    let positions: Vec<usize> = (rank..rank + free).collect();
    let solved = system::solve(rows.to_vec(), &positions, context).ok()??;
    let free = like.free.iter().zip(solved.ranges).map(|(index, range)| Index { name: index.name.clone(), range });
    Some(Contribution { outer: solved.outer, free: free.collect(), conditions: solved.conditions, value: like.value })
}

/// Two sets as one, cut in two again by a condition.
pub struct Union {
    /// The rows of both.
    pub rows: Vec<Constraint>,
    /// What holds in one of them only.
    pub cut: Constraint,
    /// In which: the first, or else the second.
    pub in_first: bool,
}

/// The union of two sets that are disjoint and next to each other. The cut is of the relation `first` if such a row does.
pub fn union(sets: [&[Constraint]; 2], context: &[Constraint], first: Relation) -> Option<Union> {
    let halves = sets.map(|rows| distinct(rows.iter().flat_map(inequalities)));
    let facts = sets.map(|rows| Facts::new([rows, context].concat()));
    let all = halves.iter().flatten().cloned();
    let rows = distinct(all.filter(|row| facts.iter().all(|set| set.implies(row))));
    let is = |cut: &Constraint, set: &[Constraint]| {
        let part = Facts::new([rows.as_slice(), context, std::slice::from_ref(cut)].concat());
        set.iter().all(|row| part.implies(row))
    };
    let separates = |row: &&Constraint, own: usize| {
        inequalities(row).iter().any(|half| {
            let opposite = below(half);
            facts[1 - own].implies(&opposite) && is(half, &halves[own]) && is(&opposite, &halves[1 - own])
        })
    };
    let second = if first == Relation::Zero { Relation::NonNegative } else { Relation::Zero };
    let cut = [first, second].into_iter().find_map(|relation| {
        let of = |own: usize| sets[own].iter().filter(|row| row.relation == relation).find(|row| separates(row, own));
        of(0).map(|row| (row.clone(), true)).or_else(|| of(1).map(|row| (row.clone(), false)))
    });
    cut.map(|(cut, in_first)| Union { rows, cut, in_first })
}

/// An equation as two inequalities.
fn inequalities(row: &Constraint) -> Vec<Constraint> {
    match row.relation {
        Relation::NonNegative => vec![row.clone()],
        Relation::Zero => {
            vec![Constraint::non_negative(row.affine.clone()), Constraint::non_negative(-row.affine.clone())]
        }
    }
}

/// The opposite of an inequality.
fn below(row: &Constraint) -> Constraint {
    Constraint::non_negative(-row.affine.clone().shift(1))
}

/// Whether two expressions are the same but for subscripts of tensors that have extents.
fn is_alike(program: &Program, a: ExprId, b: ExprId) -> bool {
    let kinds = |id| program.exprs.postorder(id).into_iter().map(|id| kind(program, id)).collect::<Vec<_>>();
    a == b || kinds(a) == kinds(b)
}

#[derive(PartialEq)]
enum Kind {
    Access(TensorId),
    Unary(UnaryOp),
    Binary(BinaryOp),
    Choice,
    Leaf(ExprId),
}

fn kind(program: &Program, id: ExprId) -> Kind {
    match &program.exprs[id] {
        Expr::Access(tensor, subscripts) if program[*tensor].extents.len() == subscripts.len() => Kind::Access(*tensor),
        Expr::Unary(op, _) => Kind::Unary(*op),
        Expr::Binary(op, ..) => Kind::Binary(*op),
        Expr::Select(..) => Kind::Choice,
        Expr::Constant(_) | Expr::Index(_) | Expr::Access(..) => Kind::Leaf(id),
    }
}

/// One expression that is the first where its side holds and the second where the other does.
struct Zip<'a> {
    program: &'a mut Program,
    /// What holds on each side, and what is wrapped there.
    sides: [(&'a Facts<'a>, &'a BTreeMap<ExprId, BTreeSet<usize>>); 2],
    wrapped: BTreeMap<ExprId, BTreeSet<usize>>,
    done: HashMap<(ExprId, ExprId), ExprId>,
}

impl Zip<'_> {
    fn zip(&mut self, a: ExprId, b: ExprId) -> Option<ExprId> {
        if let Some(done) = self.done.get(&(a, b)) {
            return Some(*done);
        }
        let new = match (self.program.exprs[a].clone(), self.program.exprs[b].clone()) {
            (Expr::Access(tensor, first), Expr::Access(other, second)) if tensor == other => {
                self.access(tensor, (a, &first), (b, &second))?
            }
            (Expr::Unary(op, x), Expr::Unary(other, y)) if op == other => {
                let x = self.zip(x, y)?;
                self.program.exprs.add(Expr::Unary(op, x))
            }
            (Expr::Binary(op, x, y), Expr::Binary(other, u, v)) if op == other => {
                let (x, y) = (self.zip(x, u)?, self.zip(y, v)?);
                self.program.exprs.add(Expr::Binary(op, x, y))
            }
            (Expr::Select(c, x, y), Expr::Select(other, u, v)) => {
                let c = self.condition(c, other)?;
                let (x, y) = (self.zip(x, u)?, self.zip(y, v)?);
                self.program.exprs.add(Expr::Select(c, x, y))
            }
            _ if a == b => a,
            _ => return None,
        };
        self.done.insert((a, b), new);
        Some(new)
    }

    fn condition(&mut self, a: CondId, b: CondId) -> Option<CondId> {
        let new = match (self.program.exprs[a].clone(), self.program.exprs[b].clone()) {
            (Cond::Index(first), Cond::Index(second)) => return (first == second).then_some(a),
            (Cond::Compare(op, x, y), Cond::Compare(other, u, v)) if op == other => {
                Cond::Compare(op, self.zip(x, u)?, self.zip(y, v)?)
            }
            (Cond::Not(x), Cond::Not(y)) => Cond::Not(self.condition(x, y)?),
            (Cond::And(x, y), Cond::And(u, v)) => Cond::And(self.condition(x, u)?, self.condition(y, v)?),
            (Cond::Or(x, y), Cond::Or(u, v)) => Cond::Or(self.condition(x, u)?, self.condition(y, v)?),
            _ => return None,
        };
        Some(self.program.exprs.add_condition(new))
    }

    fn access(&mut self, tensor: TensorId, a: (ExprId, &[Affine]), b: (ExprId, &[Affine])) -> Option<ExprId> {
        let extents = self.program[tensor].extents.clone();
        let has = |side: usize, id: ExprId, d: usize| self.sides[side].1.get(&id).is_some_and(|set| set.contains(&d));
        let mut wrapped = BTreeSet::new();
        let mut subscripts = Vec::new();
        for (d, (first, second)) in a.1.iter().zip(b.1).enumerate() {
            let wraps = [has(0, a.0, d), has(1, b.0, d)];
            let (e, wrap) = match first == second {
                true => (first.clone(), wraps[0] || wraps[1]),
                false => self.subscript([first, second], wraps, extents.get(d)?)?,
            };
            subscripts.push(e);
            if wrap {
                wrapped.insert(d);
            }
        }
        let access = self.program.exprs.access(tensor, subscripts);
        if !wrapped.is_empty() {
            self.wrapped.entry(access).or_default().extend(wrapped);
        }
        Some(access)
    }

    /// A subscript that is both, each on its own side, and whether it has to be wrapped.
    fn subscript(&self, both: [&Affine; 2], wraps: [bool; 2], extent: &Affine) -> Option<(Affine, bool)> {
        // The shorter one reads better.
        let sides = if both[1].terms().len() < both[0].terms().len() { [1, 0] } else { [0, 1] };
        for (side, other) in [(sides[0], sides[1]), (sides[1], sides[0])] {
            let (e, value) = (both[side], both[other]);
            if wraps[other] {
                continue;
            }
            if self.equals(other, e, value) {
                return Some((e.clone(), wraps[side]));
            }
            let next = [e.clone() - extent.clone(), e.clone() + extent.clone()];
            if extent.as_constant().is_none() && next.iter().any(|e| self.equals(other, e, value)) {
                return Some((e.clone(), true));
            }
        }
        None
    }

    fn equals(&self, side: usize, a: &Affine, b: &Affine) -> bool {
        let facts = self.sides[side].0;
        facts.implies(&Constraint::at_most(a.clone(), b.clone()))
            && facts.implies(&Constraint::at_most(b.clone(), a.clone()))
    }
}
