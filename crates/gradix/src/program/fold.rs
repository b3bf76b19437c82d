//! Subscripts that bring every value into a tensor, as choices between affine pieces, and back from the choices.
//!
//! ```text
//! x[wrap(i - 1)]     if i <= 0 then x[i + N - 1] else x[i - 1]         with i in 0..N
//! x[clamp(i + 1)]    if i <= N - 2 then x[i + 1] else x[N - 1]
//! pad(x[i - 1], v)   if i >= 1 then x[i - 1] else v
//! ```
//!
//! A piece that the ranges of the indices exclude is left out, wherever pieces are made or looked for: what is
//! recognised here becomes the same choice again when its text is resolved.

use super::affine::{Affine, Atom};
use super::build;
use super::constraint::{Constraint, Relation};
use super::expr::{Cond, CondId, Expr, ExprId, Exprs, Rewriter, Rules};
use super::{Index, Program, TensorId, TensorKind, distinct};
use gradix_int::Int;

/// A function that brings a subscript back into its tensor, `wrap` and `reflect` from a limited distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fold {
    /// Modulo the extent: for an extent `n` that is no number, from `-n..2*n`.
    Wrap,
    /// Mirrored at the first and the last element, from `-(n - 1)..=2*(n - 1)`.
    Reflect,
    /// The first or the last element.
    Clamp,
}

impl Fold {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Fold::Wrap => "wrap",
            Fold::Reflect => "reflect",
            Fold::Clamp => "clamp",
        }
    }

    /// The element of a dimension with this extent.
    pub fn pieces(self, e: &Affine, extent: &Affine) -> Pieces {
        let last = extent.shift(-1);
        match self {
            Fold::Wrap => wrap(e, extent),
            Fold::Reflect => reflect(e, &last),
            Fold::Clamp => Pieces::Affine(e.clone()).clamped(&Affine::constant(0).into(), &last.into()),
        }
    }
}

/// A subscript that is affine in each of finitely many cases.
#[derive(Clone, Debug, PartialEq)]
pub enum Pieces {
    /// In all cases.
    Affine(Affine),
    /// The first pieces where the condition holds, elsewhere the second.
    If(Constraint, Box<Pieces>, Box<Pieces>),
}

impl From<Affine> for Pieces {
    fn from(affine: Affine) -> Self {
        Pieces::Affine(affine)
    }
}

impl Pieces {
    fn choose(condition: Constraint, then: Pieces, otherwise: Pieces) -> Pieces {
        match condition.decided() {
            Some(true) => then,
            Some(false) => otherwise,
            None => Pieces::If(condition, Box::new(then), Box::new(otherwise)),
        }
    }

    /// Each case replaced by the pieces of its subscript.
    pub fn map(&self, f: &dyn Fn(&Affine) -> Pieces) -> Pieces {
        match self {
            Pieces::Affine(affine) => f(affine),
            Pieces::If(c, a, b) => Pieces::choose(c.clone(), a.map(f), b.map(f)),
        }
    }

    /// The pieces of a function of two subscripts.
    pub fn combine(&self, other: &Pieces, f: &dyn Fn(&Affine, &Affine) -> Pieces) -> Pieces {
        self.map(&|a| other.map(&|b| f(a, b)))
    }

    /// `min(self, other)`
    pub fn smaller(&self, other: &Pieces) -> Pieces {
        self.combine(other, &|a, b| {
            Pieces::choose(Constraint::at_most(a.clone(), b.clone()), a.clone().into(), b.clone().into())
        })
    }

    /// `max(self, other)`
    pub fn larger(&self, other: &Pieces) -> Pieces {
        self.combine(other, &|a, b| {
            Pieces::choose(Constraint::at_most(b.clone(), a.clone()), a.clone().into(), b.clone().into())
        })
    }

    /// `min(max(self, low), high)`
    pub fn clamped(&self, low: &Pieces, high: &Pieces) -> Pieces {
        self.larger(low).smaller(high)
    }

    /// Without the cases that the ranges exclude.
    fn within(&self, indices: &[Index]) -> Pieces {
        match self {
            Pieces::Affine(_) => self.clone(),
            Pieces::If(c, a, b) => match decided(c, indices) {
                Some(true) => a.within(indices),
                Some(false) => b.within(indices),
                None => Pieces::If(c.clone(), Box::new(a.within(indices)), Box::new(b.within(indices))),
            },
        }
    }
}

fn wrap(e: &Affine, extent: &Affine) -> Pieces {
    if let Some(n) = extent.as_constant().filter(|n| **n > Int::ZERO) {
        return e.remainder(n).into();
    }
    let past = Constraint::at_most(extent.clone(), e.clone());
    let inside = Pieces::choose(past, (e.clone() - extent.clone()).into(), e.clone().into());
    Pieces::choose(below_zero(e), (e.clone() + extent.clone()).into(), inside)
}

fn reflect(e: &Affine, last: &Affine) -> Pieces {
    let past = Constraint::at_most(last.shift(1), e.clone());
    let inside = Pieces::choose(past, (last.scale(&Int::from(2)) - e.clone()).into(), e.clone().into());
    Pieces::choose(below_zero(e), (-e.clone()).into(), inside)
}

fn below_zero(e: &Affine) -> Constraint {
    Constraint::at_most(e.clone(), Affine::constant(-1))
}

/// What the ranges of the indices decide by themselves, each bound taken alone; no reasoning about sizes besides.
pub fn decided(constraint: &Constraint, indices: &[Index]) -> Option<bool> {
    if let Some(decided) = constraint.decided() {
        return Some(decided);
    }
    let positive = |bounds: &[Affine]| bounds.iter().any(|least| is_positive_or_zero(least, indices));
    let least = least(&constraint.affine, indices);
    let below = self::least(&-constraint.affine.clone().shift(1), indices);
    match constraint.relation {
        Relation::NonNegative if positive(&least) => Some(true),
        Relation::NonNegative if positive(&below) => Some(false),
        Relation::Zero => {
            let above: Vec<Affine> = least.iter().map(|bound| bound.shift(-1)).collect();
            (positive(&above) || positive(&below)).then_some(false)
        }
        Relation::NonNegative => None,
    }
}

/// The most bounds of one expression that are looked at.
const MAX_BOUNDS: usize = 8;

/// Lower bounds without indices.
fn least(affine: &Affine, indices: &[Index]) -> Vec<Affine> {
    let mut bounds = vec![affine.clone()];
    for (position, index) in indices.iter().enumerate().rev() {
        let atom = Atom::Index(position as u32);
        let replaced = bounds.iter().flat_map(|bound| {
            let factor = bound.coefficient(&atom);
            let rest = bound.add_scaled(&-factor.clone(), &Affine::atom(atom.clone()));
            let limits = if factor > Int::ZERO { &index.range.low } else { &index.range.high };
            match factor == Int::ZERO {
                true => vec![rest],
                false => limits.iter().map(|limit| rest.add_scaled(&factor, limit)).collect(),
            }
        });
        bounds = distinct(replaced.collect::<Vec<_>>());
        bounds.truncate(MAX_BOUNDS);
    }
    bounds.retain(|bound| !bound.uses_indices());
    bounds
}

/// Whether a size is not negative wherever all ranges have a value.
fn is_positive_or_zero(size: &Affine, indices: &[Index]) -> bool {
    let at_least_zero = |affine: &Affine| affine.as_constant().is_some_and(|number| *number >= Int::ZERO);
    let lengths = indices.iter().flat_map(|index| {
        let Index { range, .. } = index;
        range.high.iter().flat_map(|high| range.low.iter().map(|low| high.clone() - low.clone()))
    });
    at_least_zero(size) || lengths.into_iter().any(|length| at_least_zero(&(size.clone() - length)))
}

/// Takes the cases out of all bodies that ranges exclude.
pub fn drop_excluded(program: &mut Program) {
    for place in 0..program.definitions.len() {
        let definition = &program.definitions[place];
        let (body, indices) = (definition.body, definition.indices.clone());
        let mut rules = Excluded(&indices);
        let kept = Rewriter::default().rewrite(&mut program.exprs, body, &mut rules);
        // What is a nested reduction and nothing else would be a reduction itself.
        if !matches!(program.exprs[kept], Expr::Access(tensor, _) if program[tensor].kind == TensorKind::Nested) {
            program.definitions[place].body = kept;
        }
    }
}

struct Excluded<'a>(&'a [Index]);

impl Rules for Excluded<'_> {
    fn select(&mut self, exprs: &mut Exprs, c: CondId, a: ExprId, b: ExprId) -> ExprId {
        let choice = exprs.add(Expr::Select(c, a, b));
        let (condition, outcome) = open(exprs, c, self.0);
        let kept = match outcome {
            None => return exprs.add(Expr::Select(condition, a, b)),
            Some(true) => a,
            Some(false) => b,
        };
        // What depends on fewer indices would be a definition of its own.
        let shorter = exprs.add(Expr::Select(condition, a, b));
        let used = |id| exprs.used_indices(id, self.0.len());
        [kept, shorter].into_iter().find(|&id| used(id) == used(choice)).unwrap_or(choice)
    }
}

/// The conjunction without the parts that the ranges decide, but for one if they decide it; and what they decide.
fn open(exprs: &mut Exprs, id: CondId, indices: &[Index]) -> (CondId, Option<bool>) {
    match exprs[id].clone() {
        Cond::Index(constraint) => (id, decided(&constraint, indices)),
        Cond::And(a, b) => match (open(exprs, a, indices), open(exprs, b, indices)) {
            (never @ (_, Some(false)), _) | ((_, Some(true)), never) | (never, (_, Some(true))) => never,
            (_, never @ (_, Some(false))) => never,
            ((a, None), (b, None)) => (exprs.add_condition(Cond::And(a, b)), None),
        },
        Cond::Compare(..) | Cond::Not(_) | Cond::Or(..) => (id, None),
    }
}

/// One element of a tensor; each subscript with what is done to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    /// The tensor.
    pub tensor: TensorId,
    /// The subscripts.
    pub subscripts: Vec<(Option<Fold>, Affine)>,
}

/// A choice between elements of one tensor as one of them, with `wrap`, `reflect` or `clamp` in its subscripts.
/// `indices` are those of the definition that it is in.
pub fn element(exprs: &Exprs, extents: &[Affine], indices: &[Index], choice: ExprId) -> Option<Element> {
    let mut leaves = Vec::new();
    collect(exprs, choice, &mut leaves).then_some(())?;
    let tensor = leaves.first()?.0;
    let same = leaves.iter().all(|(read, _)| *read == tensor) && leaves[0].1.len() == extents.len();
    let subscripts = same.then(|| subscripts(exprs, extents, indices, choice, 0))??;
    Some(Element { tensor, subscripts })
}

/// The tensor that all cases of a choice read.
pub fn chosen(exprs: &Exprs, choice: ExprId) -> Option<TensorId> {
    let mut leaves = Vec::new();
    let found = matches!(exprs[choice], Expr::Select(..)) && collect(exprs, choice, &mut leaves);
    found.then(|| leaves[0].0).filter(|tensor| leaves.iter().all(|(read, _)| read == tensor))
}

/// The most cases of one element: three in each of four dimensions.
const MAX_CASES: usize = 81;

/// The elements that a choice by indices is between. Says whether it is nothing else.
fn collect<'a>(exprs: &'a Exprs, id: ExprId, leaves: &mut Vec<(TensorId, &'a [Affine])>) -> bool {
    match &exprs[id] {
        Expr::Access(tensor, subscripts) => leaves.push((*tensor, subscripts)),
        Expr::Select(c, a, b) => {
            let by_indices = matches!(exprs[*c], Cond::Index(_));
            return by_indices && collect(exprs, *a, leaves) && collect(exprs, *b, leaves);
        }
        _ => return false,
    }
    leaves.len() <= MAX_CASES
}

type Subscripts = Vec<(Option<Fold>, Affine)>;

/// The subscripts from a dimension on.
fn subscripts(
    exprs: &Exprs,
    extents: &[Affine],
    indices: &[Index],
    choice: ExprId,
    dimension: usize,
) -> Option<Subscripts> {
    let Some(extent) = extents.get(dimension) else {
        return matches!(exprs[choice], Expr::Access(..)).then(Vec::new);
    };
    let mut leaves = Vec::new();
    collect(exprs, choice, &mut leaves);
    let read = distinct(leaves.iter().map(|(_, subscripts)| &subscripts[dimension]));
    let with_rest = |fold: Option<Fold>, e: &Affine, below: Vec<ExprId>| {
        let mut rests = below.into_iter().map(|choice| subscripts(exprs, extents, indices, choice, dimension + 1));
        let rest = rests.next()??;
        let same = rests.all(|other| other.as_ref() == Some(&rest));
        same.then(|| [vec![(fold, e.clone())], rest].concat())
    };
    if let [e] = read.as_slice() {
        return with_rest(None, e, vec![choice]);
    }
    let folds = [Fold::Wrap, Fold::Reflect, Fold::Clamp];
    let candidates = folds.into_iter().flat_map(|fold| read.iter().map(move |e| (fold, *e)));
    candidates.into_iter().find_map(|(fold, e)| {
        let mut below = Vec::new();
        let pieces = fold.pieces(e, extent).within(indices);
        cases(exprs, choice, &pieces, dimension, &mut below).then_some(())?;
        with_rest(Some(fold), e, below)
    })
}

/// Whether a choice is between these pieces in a dimension; gives what is chosen in each case.
fn cases(exprs: &Exprs, choice: ExprId, pieces: &Pieces, dimension: usize, below: &mut Vec<ExprId>) -> bool {
    match (pieces, &exprs[choice]) {
        (Pieces::If(constraint, first, second), Expr::Select(c, a, b)) => {
            matches!(&exprs[*c], Cond::Index(known) if known == constraint)
                && cases(exprs, *a, first, dimension, below)
                && cases(exprs, *b, second, dimension, below)
        }
        (Pieces::Affine(affine), _) => {
            let mut leaves = Vec::new();
            below.push(choice);
            collect(exprs, choice, &mut leaves);
            leaves.iter().all(|(_, subscripts)| subscripts[dimension] == *affine)
        }
        (Pieces::If(..), _) => false,
    }
}

/// Whether `if c then access else …` tests just what keeps the subscripts inside: `pad(access, …)`.
pub fn is_padded(exprs: &Exprs, extents: &[Affine], indices: &[Index], c: CondId, subscripts: &[Affine]) -> bool {
    let mut tested = Vec::new();
    let mut rest = c;
    while let Cond::And(front, last) = exprs[rest] {
        tested.push(last);
        rest = front;
    }
    tested.push(rest);
    let tests = tested.iter().rev().map(|part| match &exprs[*part] {
        Cond::Index(constraint) => Some(constraint.clone()),
        Cond::Compare(..) | Cond::Not(_) | Cond::And(..) | Cond::Or(..) => None,
    });
    let bounds = subscripts.iter().zip(extents).flat_map(|(subscript, extent)| {
        let above = Constraint::at_most(subscript.clone(), extent.shift(-1));
        [Constraint::non_negative(subscript.clone()), above]
    });
    let wanted = bounds.filter(|bound| decided(bound, indices) != Some(true)).map(Some);
    extents.len() == subscripts.len() && tests.eq(wanted)
}

/// The choice that an element stands for.
pub fn choice(exprs: &mut Exprs, extents: &[Affine], element: &Element) -> ExprId {
    let folded = element.subscripts.iter().zip(extents);
    let pieces: Vec<Pieces> = folded
        .map(|((fold, e), extent)| match fold {
            Some(fold) => fold.pieces(e, extent),
            None => e.clone().into(),
        })
        .collect();
    spread(exprs, element.tensor, &pieces, &mut Vec::new())
}

fn spread(exprs: &mut Exprs, tensor: TensorId, pieces: &[Pieces], done: &mut Vec<Affine>) -> ExprId {
    match pieces.split_first() {
        None => exprs.access(tensor, done.clone()),
        Some((Pieces::Affine(affine), rest)) => {
            done.push(affine.clone());
            let chosen = spread(exprs, tensor, rest, done);
            done.pop();
            chosen
        }
        Some((Pieces::If(constraint, a, b), rest)) => {
            let [a, b] = [a, b].map(|branch| {
                let pieces = [std::slice::from_ref(&**branch), rest].concat();
                spread(exprs, tensor, &pieces, done)
            });
            let condition = exprs.add_condition(Cond::Index(constraint.clone()));
            build::select(exprs, condition, a, b)
        }
    }
}
