//! Questions about constraints on indices and sizes, answered by exact integer algebra.
//!
//! A system has a column for every atom; `⌊e / c⌋` is a column `q` of its own with `0 <= e - c*q <= c - 1`.

use crate::diagnostic::Diagnostic;
use crate::program::hash::QuickMap;
use crate::program::{Affine, Atom, Constraint, Range, Relation, distinct};
use gradix_int::{Int, Polyhedron, Row, Sample};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;

/// The most rows that elimination may produce.
pub const MAX_ROWS: usize = 2_000;

/// Constraints as rows over numbered atoms.
#[derive(Default)]
struct System<'a> {
    columns: QuickMap<Atom, usize>,
    atoms: Vec<Atom>,
    rows: Vec<Cow<'a, Constraint>>,
}

impl<'a> System<'a> {
    fn new(constraints: impl IntoIterator<Item = &'a Constraint>) -> Self {
        let mut system = System::default();
        constraints.into_iter().for_each(|c| system.add(Cow::Borrowed(c)));
        system
    }

    fn add(&mut self, constraint: Cow<'a, Constraint>) {
        constraint.affine.terms().iter().for_each(|(atom, _)| self.column(atom));
        self.rows.push(constraint);
    }

    fn column(&mut self, atom: &Atom) {
        if self.columns.contains_key(atom) {
            return;
        }
        self.columns.insert(atom.clone(), self.atoms.len());
        self.atoms.push(atom.clone());
        if let Atom::Floor(inner, c) = atom {
            let remainder = inner.add_scaled(&-c.clone(), &Affine::atom(atom.clone()));
            let above = Affine::constant(c - Int::ONE) - remainder.clone();
            for affine in [remainder, above] {
                // Built directly: the canonical form would solve for the floor that is being defined.
                self.add(Cow::Owned(Constraint { affine, relation: Relation::NonNegative }));
            }
        }
    }

    fn row(&self, affine: &Affine) -> Row {
        row(&self.columns, affine)
    }

    /// The set, without the rows that equal one of `skipped`.
    fn polyhedron(&self, skipped: &[&Constraint]) -> Polyhedron {
        let mut polyhedron = Polyhedron::new(self.atoms.len());
        for constraint in self.rows.iter().filter(|c| !skipped.contains(&&***c)) {
            match constraint.relation {
                Relation::NonNegative => polyhedron.add_inequality(self.row(&constraint.affine)),
                Relation::Zero => polyhedron.add_equality(self.row(&constraint.affine)),
            }
        }
        let floors = self.atoms.iter().filter(|atom| matches!(atom, Atom::Floor(..)));
        for floor in floors.filter(|floor| self.is_known(floor, skipped)) {
            polyhedron.add_inequality(self.row(&Affine::atom((*floor).clone())));
        }
        polyhedron
    }

    /// Whether an atom is known not to be negative: a row says so, or it is the floor of a sum of such atoms. That is
    /// not a consequence of the rows for a floor, which hold for fractions, too.
    fn is_known(&self, atom: &Atom, skipped: &[&Constraint]) -> bool {
        match atom {
            Atom::Floor(inner, _) => {
                let known = |(atom, factor): &(Atom, Int)| *factor > Int::ZERO && self.is_known(atom, skipped);
                *inner.offset() >= Int::ZERO && inner.terms().iter().all(known)
            }
            Atom::Index(_) | Atom::Param(_) => self.rows.iter().filter(|row| !skipped.contains(&&***row)).any(|row| {
                let lower = |factor: &Int| *factor > Int::ZERO && *row.affine.offset() <= Int::ZERO;
                matches!(row.affine.terms(), [(own, factor)] if own == atom && lower(factor))
            }),
        }
    }

    /// The rows of a set as constraints, without those that always hold.
    fn constraints(&self, polyhedron: &Polyhedron) -> Vec<Constraint> {
        let inequalities = polyhedron.inequalities().iter().map(|r| Constraint::non_negative(self.affine(r)));
        let equalities = polyhedron.equalities().iter().map(|r| Constraint::zero(self.affine(r)));
        equalities.chain(inequalities).filter(|c| c.decided() != Some(true)).collect()
    }

    fn affine(&self, row: &Row) -> Affine {
        let constant = Affine::constant(row.constant.clone());
        row.coefficients
            .iter()
            .zip(&self.atoms)
            .filter(|(c, _)| **c != Int::ZERO)
            .fold(constant, |sum, (c, atom)| sum.add_scaled(c, &Affine::atom(atom.clone())))
    }
}

/// Whether no integer values satisfy them all (as far as exact rational reasoning with integer rounding can tell).
pub fn is_empty(constraints: &[Constraint]) -> bool {
    if constraints.iter().any(|c| c.decided() == Some(false)) {
        return true;
    }
    System::new(constraints).polyhedron(&[]).is_empty()
}

/// Whether `constraint` holds wherever the context does.
pub fn implies(context: &[Constraint], constraint: &Constraint) -> bool {
    Facts::new(context).implies(constraint)
}

/// Drops bounds that another one makes superfluous.
pub fn without_idle_bounds(range: &Range, known: &[Constraint]) -> Range {
    let thin = |bounds: &[Affine], is_low: bool| {
        let mut kept = bounds.to_vec();
        for position in (0..kept.len()).rev() {
            let beaten = |other: &Affine| {
                let (low, high) = if is_low { (&kept[position], other) } else { (other, &kept[position]) };
                implies(known, &Constraint::at_most(low.clone(), high.clone()))
            };
            if kept.len() > 1 && kept.iter().enumerate().any(|(i, other)| i != position && beaten(other)) {
                kept.remove(position);
            }
        }
        kept
    };
    Range { low: thin(&range.low, true), high: thin(&range.high, false) }
}

/// Constraints about which several questions are asked: their rows are set up once, when the first one needs them.
pub struct Facts<'a> {
    known: Cow<'a, [Constraint]>,
    rows: OnceCell<(QuickMap<Atom, usize>, Polyhedron)>,
}

impl<'a> Facts<'a> {
    /// Constraints that hold together.
    pub fn new(known: impl Into<Cow<'a, [Constraint]>>) -> Self {
        Facts { known: known.into(), rows: OnceCell::new() }
    }

    /// The constraints.
    pub fn known(&self) -> &[Constraint] {
        &self.known
    }

    /// Whether `constraint` holds wherever they do.
    pub fn implies(&self, constraint: &Constraint) -> bool {
        if let Some(decided) = constraint.decided() {
            return decided || is_empty(&self.known);
        }
        if is_evident(self.known.iter(), constraint) {
            return true;
        }
        let (columns, polyhedron) = self.rows.get_or_init(|| {
            let system = System::new(&*self.known);
            let polyhedron = system.polyhedron(&[]);
            (system.columns, polyhedron)
        });
        if constraint.affine.terms().iter().all(|(atom, _)| columns.contains_key(atom)) {
            return implied_by(polyhedron, &row(columns, &constraint.affine), constraint.relation);
        }
        let mut system = System::new(&*self.known);
        constraint.affine.terms().iter().for_each(|(atom, _)| system.column(atom));
        implied_by(&system.polyhedron(&[]), &system.row(&constraint.affine), constraint.relation)
    }
}

fn implied_by(polyhedron: &Polyhedron, row: &Row, relation: Relation) -> bool {
    match relation {
        Relation::NonNegative => polyhedron.implies(row),
        Relation::Zero => polyhedron.implies_equality(row),
    }
}

fn row(columns: &QuickMap<Atom, usize>, affine: &Affine) -> Row {
    let mut coefficients = vec![Int::ZERO; columns.len()];
    for (atom, coefficient) in affine.terms() {
        coefficients[columns[atom]] = coefficient.clone();
    }
    Row { coefficients, constant: affine.offset().clone() }
}

/// Whether one row of the context says so, or for an inequality the bounds of its atoms alone. Most questions end here.
fn is_evident<'a>(context: impl Iterator<Item = &'a Constraint> + Clone, constraint: &Constraint) -> bool {
    let states = |row: &Constraint| {
        row.relation == constraint.relation
            && row.affine.terms() == constraint.affine.terms()
            && (row.affine.offset() == constraint.affine.offset()
                || row.relation == Relation::NonNegative && row.affine.offset() < constraint.affine.offset())
    };
    context.clone().any(states)
        || constraint.relation == Relation::NonNegative
            && least(context, &constraint.affine).is_some_and(|least| least >= Int::ZERO)
}

/// A value that the expression does not go below, by rows with one atom each; nothing if an atom has no such bound.
fn least<'a>(context: impl Iterator<Item = &'a Constraint> + Clone, affine: &Affine) -> Option<Int> {
    let mut sum = affine.offset().clone();
    for (atom, factor) in affine.terms() {
        // From ±atom + c >= 0 follows factor * atom >= -|factor| * c, if the signs agree.
        let slack = |row: &Constraint| match (row.relation, row.affine.terms()) {
            (Relation::NonNegative, [(own, sign)])
                if own == atom && sign.sign() == factor.sign() && (sign.is_one() || *sign == Int::NEG_ONE) =>
            {
                Some(factor * sign * row.affine.offset())
            }
            _ => None,
        };
        sum -= context.clone().filter_map(slack).min()?;
    }
    Some(sum)
}

/// The constraints that the context and the others don't imply; earlier ones are kept first.
/// `None` if nothing satisfies them.
pub fn prune(constraints: Vec<Constraint>, context: &[Constraint]) -> Option<Vec<Constraint>> {
    if constraints.iter().any(|c| c.decided() == Some(false)) {
        return None;
    }
    let mut open: Vec<Constraint> = Vec::new();
    for constraint in constraints {
        if constraint.decided() != Some(true) && !context.contains(&constraint) && !open.contains(&constraint) {
            open.push(constraint);
        }
    }
    if open.is_empty() {
        return Some(open);
    }
    let system = System::new(context.iter().chain(&open));
    if system.polyhedron(&[]).is_empty() {
        return None;
    }
    let mut implied: Vec<&Constraint> = Vec::new();
    for candidate in open.iter().rev() {
        implied.push(candidate);
        let rest = context.iter().chain(&open).filter(|row| !implied.contains(row));
        if !is_evident(rest, candidate)
            && !implied_by(&system.polyhedron(&implied), &system.row(&candidate.affine), candidate.relation)
        {
            implied.pop();
        }
    }
    Some(open.iter().filter(|constraint| !implied.contains(constraint)).cloned().collect())
}

/// What the constraints say about everything but the atoms that `eliminate` picks.
/// A floor of an eliminated atom is eliminated too.
pub fn project(constraints: &[Constraint], eliminate: &dyn Fn(&Atom) -> bool) -> Result<Vec<Constraint>, Diagnostic> {
    let system = System::new(constraints);
    let kept = kept_columns(&system, eliminate);
    let polyhedron = system.polyhedron(&[]).project(&kept, MAX_ROWS).map_err(|_| too_complex())?;
    Ok(system.constraints(&polyhedron))
}

/// The columns of all atoms but those that `eliminate` picks and floors of them.
fn kept_columns(system: &System, eliminate: &dyn Fn(&Atom) -> bool) -> Vec<usize> {
    let hit = |atom: &Atom| {
        let mut hit = eliminate(atom);
        if let Atom::Floor(inner, _) = atom {
            inner.visit_atoms(&mut |a| hit |= eliminate(a));
        }
        hit
    };
    (0..system.atoms.len()).filter(|&column| !hit(&system.atoms[column])).collect()
}

/// Constraints on everything but the atoms that `eliminate` picks (and floors of them) which are enough: wherever they
/// hold, there are integers for those atoms with which all of `constraints` hold. `None` if none are found.
pub fn project_inside(constraints: &[Constraint], eliminate: &dyn Fn(&Atom) -> bool) -> Option<Vec<Constraint>> {
    let system = System::new(constraints);
    let kept = kept_columns(&system, eliminate);
    Some(system.constraints(&system.polyhedron(&[]).project_inside(&kept, MAX_ROWS)?))
}

/// What an index set becomes when it is solved for its indices.
#[derive(Clone, Debug, PartialEq)]
pub struct Solved {
    /// The range of each index, in the order given; it may be empty for some outer values.
    pub ranges: Vec<Range>,
    /// What else restricts the indices.
    pub conditions: Vec<Constraint>,
    /// What does not mention them.
    pub outer: Vec<Constraint>,
}

/// Solves constraints for the indices at `positions` (outermost first) by Fourier–Motzkin elimination:
/// each gets bounds in earlier ones and what lies outside. `None` if the set is empty for all outer values;
/// an index that stays without a bound is reported as `Err(position)`.
pub fn solve(
    constraints: Vec<Constraint>,
    positions: &[usize],
    context: &[Constraint],
) -> Result<Option<Solved>, Unsolved> {
    // Equations and rows with a floor of an index give no bound, so they don't make one that does redundant.
    let bounds = |c: &Constraint| positions.iter().all(|&p| is_linear(c, p));
    let (linear, other): (Vec<_>, Vec<_>) = constraints.into_iter().partition(bounds);
    let Some(mut rows) = prune(linear, context) else { return Ok(None) };
    let Some(other) = prune(other, &[context, &rows].concat()) else { return Ok(None) };
    rows.extend(other);
    // The flag marks rows made by elimination: where they fail, an inner range is empty.
    let mut live: Vec<(Constraint, bool)> = rows.into_iter().map(|c| (c, false)).collect();
    let mut ranges = Vec::new();
    let mut conditions = Vec::new();
    for (depth, &position) in positions.iter().enumerate().rev() {
        let (mentioned, rest): (Vec<_>, Vec<_>) = live.into_iter().partition(|(c, _)| c.affine.uses_index(position));
        live = rest;
        let (linear, other): (Vec<_>, Vec<_>) = mentioned.into_iter().partition(|(c, _)| is_linear(c, position));
        conditions.extend(other.into_iter().filter(|(_, made)| !made).map(|(c, _)| c));
        let range = range_of(&linear, position).ok_or(Unsolved::Unbounded(position))?;
        ranges.push(range);
        let made = combinations(&linear, position, &positions[..depth]);
        if live.len() + made.len() > MAX_ROWS {
            return Err(Unsolved::TooLarge);
        }
        let known: Vec<Constraint> = context.iter().chain(live.iter().map(|(c, _)| c)).cloned().collect();
        let Some(made) = prune(made, &known) else { return Ok(None) };
        live.extend(made.into_iter().map(|c| (c, true)));
    }
    ranges.reverse();
    conditions.reverse();
    let outer = live.into_iter().filter(|(_, made)| !made).map(|(c, _)| c).collect();
    Ok(Some(Solved { ranges, conditions, outer }))
}

/// Why a set could not be solved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unsolved {
    /// The index at this position has no linear bound.
    Unbounded(usize),
    /// Elimination produced more than [`MAX_ROWS`] rows.
    TooLarge,
}

/// The error for index sets past the limit.
pub fn too_complex() -> Diagnostic {
    Diagnostic::error("too-complex", format!("an index set needs more than {MAX_ROWS} inequalities to solve"))
        .hint("split the definition into several with simpler ranges and conditions")
}

fn is_linear(constraint: &Constraint, position: usize) -> bool {
    constraint.relation == Relation::NonNegative && !constraint.affine.divides_index(position)
}

/// `a*z + r >= 0` gives `z >= ⌈-r/a⌉`, `-a*z + r >= 0` gives `z <= ⌊r/a⌋`.
fn range_of(rows: &[(Constraint, bool)], position: usize) -> Option<Range> {
    let (mut low, mut high) = (Vec::new(), Vec::new());
    for (row, _) in rows {
        let (a, rest) = split(&row.affine, position);
        if a > Int::ZERO {
            low.push((-rest).shift(&a - Int::ONE).floor_div(&a));
        } else {
            high.push(rest.floor_div(&-a));
        }
    }
    let (low, high) = (distinct(low), distinct(high));
    (!low.is_empty() && !high.is_empty()).then_some(Range { low, high })
}

fn split(affine: &Affine, position: usize) -> (Int, Affine) {
    let atom = Atom::Index(position as u32);
    let a = affine.coefficient(&atom);
    let rest = affine.add_scaled(&-a.clone(), &Affine::atom(atom));
    (a, rest)
}

fn combinations(rows: &[(Constraint, bool)], position: usize, outer: &[usize]) -> Vec<Constraint> {
    let parts: Vec<(Int, Affine)> = rows.iter().map(|(row, _)| split(&row.affine, position)).collect();
    let mut made = Vec::new();
    for (a, below) in parts.iter().filter(|(a, _)| *a > Int::ZERO) {
        for (b, above) in parts.iter().filter(|(b, _)| *b < Int::ZERO) {
            let row = Constraint::non_negative(below.scale(&-b.clone()).add_scaled(a, above));
            if row.decided() == Some(false) || outer.iter().any(|&p| row.affine.uses_index(p)) {
                made.push(row);
            }
        }
    }
    made
}

/// Values that satisfy all constraints, if some are found within the limit of the search.
pub enum Found {
    /// The value of every atom that is an index or a param.
    Values(HashMap<Atom, Int>),
    /// There are none.
    Nothing,
    /// The search was cut short.
    Unknown,
}

/// Searches for integer values that satisfy all constraints.
pub fn find(constraints: &[Constraint], limit: usize) -> Found {
    if constraints.iter().any(|c| c.decided() == Some(false)) {
        return Found::Nothing;
    }
    let system = System::new(constraints);
    match system.polyhedron(&[]).sample(limit) {
        Sample::Point(point) => Found::Values(system.atoms.into_iter().zip(point).collect()),
        Sample::Empty => Found::Nothing,
        Sample::Unknown => Found::Unknown,
    }
}

/// The smallest value of `affine` over the constraints as the largest of expressions without the eliminated atoms.
pub fn lower_bounds(
    affine: &Affine,
    constraints: &[Constraint],
    eliminate: &dyn Fn(&Atom) -> bool,
) -> Result<Vec<Affine>, Diagnostic> {
    let target = Atom::Index(u32::MAX);
    let mut rows = vec![Constraint::equal(Affine::atom(target.clone()), affine.clone())];
    rows.extend(constraints.iter().cloned());
    let projected = project(&rows, &|atom| *atom != target && eliminate(atom))?;
    let mut bounds = Vec::new();
    for constraint in projected {
        let a = constraint.affine.coefficient(&target);
        let rest = constraint.affine.add_scaled(&-a.clone(), &Affine::atom(target.clone()));
        match constraint.relation {
            Relation::Zero if a == Int::ONE => return Ok(vec![-rest]),
            Relation::Zero if a == Int::NEG_ONE => return Ok(vec![rest]),
            Relation::NonNegative if a > Int::ZERO => bounds.push((-rest).shift(&a - Int::ONE).floor_div(&a)),
            Relation::NonNegative | Relation::Zero => {}
        }
    }
    Ok(bounds)
}

/// The smallest value that an atom takes over the constraints (rounded up from the rational one), if it has one.
pub fn minimum(constraints: &[Constraint], atom: &Atom) -> Option<Int> {
    let mut system = System::new(constraints);
    system.column(atom);
    system.polyhedron(&[]).minimum(&system.row(&Affine::atom(atom.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_least(affine: Affine) -> Constraint {
        Constraint::non_negative(affine)
    }

    #[test]
    fn bounds_of_single_atoms_add_up() {
        let (i, j) = (Affine::index(0), Affine::index(1));
        let known = [at_least(i.shift(-1)), at_least(-j.shift(-3))];
        let sum = i.scale(&Int::from(2)) - j;
        assert_eq!(least(known.iter(), &sum), Some(Int::from(-1)));
        assert!(is_evident(known.iter(), &at_least(sum.shift(1))) && !is_evident(known.iter(), &at_least(sum)));
    }

    #[test]
    fn facts_answer_about_atoms_that_they_do_not_mention() {
        let (i, j, k) = (Affine::index(0), Affine::index(1), Affine::index(2));
        let known = [at_least(j.clone() - i.clone()), at_least(k.clone() - j.clone())];
        let facts = Facts::new(&known[..]);
        assert!(facts.implies(&at_least(k.clone() - i.clone())) && !facts.implies(&at_least(i.clone() - k.clone())));
        let half = |affine: &Affine| affine.floor_div(&Int::from(2));
        assert!(facts.implies(&at_least(half(&k).scale(&Int::from(2)).shift(1) - i)));
        assert!(!facts.implies(&at_least(Affine::index(3))));
    }

    #[test]
    fn of_constraints_that_imply_each_other_the_first_is_kept() {
        let (i, j) = (Affine::index(0), Affine::index(1));
        let known = [Constraint::equal(i.clone(), j.clone())];
        let rows = vec![at_least(i.clone()), at_least(j), at_least(i.shift(1))];
        assert_eq!(prune(rows, &known), Some(vec![at_least(i)]));
    }
}
