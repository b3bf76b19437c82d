//! From 'which element does this point read?' to 'which points read this element?'.
//!
//! For an access `X[A·v + c]` in a definition with indices `v = (α, k)`, solves `A·v = β - c` over the
//! integers and rewrites the domain of `v` as ranges of what stays free. Equations of the domain
//! (`i % 2 == 0`, `α = α'`) are solved along with it, and `⌊e / d⌋` in an equation is one more unknown
//! `q` with `0 <= e - d*q <= d - 1`.
//!
//! ```text
//! f[i, j] = x[i + j]      β = i + j    →  j = β - i,  i in max(0, β - J + 1)..=min(I - 1, β)
//! f[i]    = x[2*i]        β = 2*i      →  i = β // 2  where β % 2 == 0
//! f[i]    = x[i, i]       β = (i, i)   →  i = β₀      where β₀ == β₁
//! ```

use crate::diagnostic::Diagnostic;
use crate::domain::guard::Guard;
use crate::domain::system::{self, Solved, Unsolved};
use crate::program::affine::{div_floor, gcd};
use crate::program::{Affine, Atom, Constraint, Definition, Range, Relation};
use gradix_int::{Int, Matrix};
use std::collections::HashMap;

/// The points that read one element. In its index space the batch indices come first, then the
/// element's own, then those that stay free.
#[derive(Clone, Debug)]
pub struct Gathered {
    /// Each index of the definition, then each batch index, in the new space.
    pub map: Vec<Affine>,
    /// The names of the free indices.
    pub free: Vec<String>,
    /// Their ranges.
    pub ranges: Vec<Range>,
    /// What else restricts them; each mentions a free index.
    pub conditions: Vec<Constraint>,
    /// What the element has to satisfy to be read at all; none mentions a free index.
    pub outer: Vec<Constraint>,
}

impl Gathered {
    /// An index expression in the new space, with what the conditions on the element say about it: where
    /// `e % d == r` holds, `d*(e // d)` is `e - r`, and an index that equals a size is that size.
    pub fn settled(&self, affine: &Affine) -> Affine {
        self.outer.iter().filter(|c| c.relation == Relation::Zero).fold(affine.clone(), |affine, condition| {
            let terms = condition.affine.terms();
            let floor = terms.iter().find(|(atom, _)| matches!(atom, Atom::Floor(..)));
            let index = terms.iter().find(|(atom, _)| matches!(atom, Atom::Index(_)));
            match (floor, index) {
                (Some((atom, factor)), _) => {
                    let present = affine.coefficient(atom);
                    match present != Int::ZERO && &present % factor == Int::ZERO {
                        true => affine.add_scaled(&-(present / factor), &condition.affine),
                        false => affine,
                    }
                }
                (None, Some((atom, factor))) if is_unit(factor) && indices(&condition.affine) == 1 => {
                    let value = condition.affine.scale(&-factor.clone()) + Affine::atom(atom.clone());
                    affine.substitute(&mut |a| (a == atom).then(|| value.clone()))
                }
                _ => affine,
            }
        })
    }
}

fn indices(affine: &Affine) -> usize {
    let mut count = 0;
    affine.visit_indices(&mut |_| count += 1);
    count
}

/// The spaces at hand: the definition's indices, then `batch` indices, then the element's `rank` indices.
#[derive(Clone, Copy)]
pub struct Spaces {
    /// Indices of the definition.
    pub own: usize,
    /// Batch indices.
    pub batch: usize,
    /// Dimensions of the tensor that is read.
    pub rank: usize,
}

impl Spaces {
    fn known(&self) -> usize {
        self.batch + self.rank
    }

    fn is_own(&self, index: u32) -> bool {
        (index as usize) < self.own || index as usize >= self.own + self.known()
    }
}

/// Solves for the points of `definition`, restricted to `guard`, that read the element. `context` holds
/// what is known of batch and element indices, in the new space. `None` if there are no such points.
pub fn gather(
    definition: &Definition,
    guard: &Guard,
    subscripts: &[Affine],
    spaces: Spaces,
    context: &[Constraint],
) -> Result<Option<Gathered>, Diagnostic> {
    let domain: Vec<Constraint> = definition.domain().into_iter().chain(guard.iter().cloned()).collect();
    for promote_all in [false, true] {
        let solution = solve_equations(definition, &domain, subscripts, spaces, promote_all);
        match ranges(definition, &domain, solution, spaces, context, promote_all) {
            Ok(gathered) => return Ok(gathered),
            Err(Unsolved::Unbounded(_)) if !promote_all => {}
            Err(Unsolved::Unbounded(_) | Unsolved::TooLarge) => break,
        }
    }
    Err(system::too_complex())
}

/// The unknowns: solved ones in terms of knowns and free ones.
struct Equations {
    solved: HashMap<Atom, Affine>,
    /// Floors that are unknowns of their own.
    floors: Vec<Atom>,
    /// Unknowns in order: indices, then floors and kernel parameters.
    unknowns: Vec<Atom>,
    /// Equations without unknowns.
    conditions: Vec<Constraint>,
}

fn solve_equations(
    definition: &Definition,
    domain: &[Constraint],
    subscripts: &[Affine],
    spaces: Spaces,
    promote_all: bool,
) -> Equations {
    let element = |d: usize| Affine::index(spaces.own + spaces.batch + d);
    let given = domain.iter().filter(|c| c.relation == Relation::Zero).map(|c| c.affine.clone());
    let read = subscripts.iter().enumerate().map(|(d, s)| s.clone() - element(d));
    let mut equations: Vec<Affine> = given.chain(read).collect();
    let mut floors = Vec::new();
    equations.iter().for_each(|e| collect_floors(e, spaces, &mut floors));
    if promote_all {
        domain.iter().for_each(|c| collect_floors(&c.affine, spaces, &mut floors));
    }
    let mut unknowns: Vec<Atom> = (0..spaces.own).map(|i| Atom::Index(i as u32)).collect();
    unknowns.extend(floors.iter().cloned());
    let mut system = Equations { solved: HashMap::new(), floors, unknowns, conditions: Vec::new() };
    let preference = preference(definition, &system.floors);
    loop {
        divide_by_common_factor(&mut equations, &mut system);
        let unit = preference.iter().find_map(|atom| {
            let place = equations.iter().position(|e| is_unit(&e.coefficient(atom)))?;
            Some((place, atom.clone()))
        });
        let Some((place, atom)) = unit else { break };
        let equation = equations.remove(place);
        let factor = equation.coefficient(&atom);
        let rest = equation.add_scaled(&-factor.clone(), &Affine::atom(atom.clone()));
        assign(&mut system, &mut equations, &atom, rest.scale(&-factor));
    }
    solve_by_smith_form(&mut equations, &mut system, spaces);
    system
}

/// Floors of unknown indices, those inside other floors too.
fn collect_floors(affine: &Affine, spaces: Spaces, floors: &mut Vec<Atom>) {
    affine.visit_atoms(&mut |atom| {
        if let Atom::Floor(inner, _) = atom {
            let mut own = false;
            inner.visit_atoms(&mut |a| own |= matches!(a, Atom::Index(i) if spaces.is_own(*i)));
            if own && !floors.contains(atom) {
                floors.push(atom.clone());
            }
        }
    });
}

/// Which unknown to solve for first, so that those that stay free read well: outputs before reduction
/// indices, the last first; then floors; then indices inside floors.
fn preference(definition: &Definition, floors: &[Atom]) -> Vec<Atom> {
    let inside = |i: usize| floors.iter().any(|f| matches!(f, Atom::Floor(inner, _) if inner.uses_index(i)));
    let outputs = (0..definition.rank).rev();
    let reduced = (definition.rank..definition.indices.len()).rev();
    let (within, plain): (Vec<usize>, Vec<usize>) = outputs.chain(reduced).partition(|&i| inside(i));
    let atom = |i: usize| Atom::Index(i as u32);
    plain.into_iter().map(atom).chain(floors.iter().cloned()).chain(within.into_iter().map(atom)).collect()
}

fn is_unit(factor: &Int) -> bool {
    *factor == Int::ONE || *factor == Int::NEG_ONE
}

/// Splits an equation into its unknowns and what is known.
fn parts(equation: &Affine, system: &Equations) -> (Vec<(Atom, Int)>, Affine) {
    let mut known = equation.clone();
    let mut unknown = Vec::new();
    for (atom, factor) in equation.terms() {
        if system.unknowns.contains(atom) {
            known = known.add_scaled(&-factor.clone(), &Affine::atom(atom.clone()));
            unknown.push((atom.clone(), factor.clone()));
        }
    }
    (unknown, known)
}

/// `g*(…) + known == 0` needs `known % g == 0` and becomes `… + known // g == 0`.
fn divide_by_common_factor(equations: &mut Vec<Affine>, system: &mut Equations) {
    let mut kept = Vec::new();
    for equation in equations.drain(..) {
        // The element's own indices come out with a positive sign.
        let (_, known) = parts(&equation, system);
        let element = known.terms().iter().find(|(a, _)| matches!(a, Atom::Index(_)));
        let equation = if element.is_some_and(|(_, c)| *c < Int::ZERO) { -equation } else { equation };
        let (unknown, known) = parts(&equation, system);
        let common = unknown.iter().fold(Int::ZERO, |g, (_, c)| gcd(&g, c));
        if common == Int::ZERO {
            system.conditions.push(Constraint::zero(known));
        } else if common == Int::ONE {
            kept.push(equation);
        } else {
            let (condition, quotient) = exact_division(&known, &common);
            system.conditions.push(condition);
            let reduced = unknown
                .iter()
                .fold(quotient, |sum, (atom, factor)| sum.add_scaled(&(factor / &common), &Affine::atom(atom.clone())));
            kept.push(reduced);
        }
    }
    *equations = kept;
}

/// When a divisor divides `e + c`, and the quotient there: `e % d == r` with `r = -c mod d`, and `e // d + (r + c) / d`.
fn exact_division(value: &Affine, divisor: &Int) -> (Constraint, Affine) {
    let constant = value.offset().clone();
    let linear = value.shift(-constant.clone());
    let rest = -&constant - div_floor(&-&constant, divisor) * divisor;
    let condition = Constraint::equal(linear.remainder(divisor), Affine::constant(rest.clone()));
    (condition, linear.floor_div(divisor).shift((rest + constant) / divisor))
}

fn assign(system: &mut Equations, equations: &mut [Affine], atom: &Atom, value: Affine) {
    let floors = &system.floors;
    let replace = |affine: &Affine| {
        affine.substitute(&mut |a| match a {
            a if a == atom => Some(value.clone()),
            Atom::Floor(..) if floors.contains(a) => Some(Affine::atom(a.clone())),
            _ => None,
        })
    };
    equations.iter_mut().for_each(|e| *e = replace(e));
    system.solved.values_mut().for_each(|v| *v = replace(v));
    system.unknowns.retain(|a| a != atom);
    system.solved.insert(atom.clone(), value);
}

/// What no unit coefficient settles: `U A V = S`, so `x = V·S†·U·b + K·z` where `C·b = 0` and `S` divides `U·b`.
fn solve_by_smith_form(equations: &mut Vec<Affine>, system: &mut Equations, spaces: Spaces) {
    if equations.is_empty() {
        return;
    }
    let split: Vec<_> = equations.iter().map(|e| parts(e, system)).collect();
    let mut columns: Vec<Atom> = split.iter().flat_map(|(u, _)| u.iter().map(|(a, _)| a.clone())).collect();
    columns.sort_by_key(|a| system.unknowns.iter().position(|u| u == a));
    columns.dedup();
    let entry = |i: usize, j: usize| {
        let found = split[i].0.iter().find(|(a, _)| *a == columns[j]);
        found.map_or(Int::ZERO, |(_, c)| c.clone())
    };
    let matrix = Matrix::from_fn(split.len(), columns.len(), entry);
    let solution = gradix_int::solve(&matrix);
    let (smith, kernel) = (&solution.smith, &solution.kernel);
    let right: Vec<Affine> = split.iter().map(|(_, known)| -known.clone()).collect();
    let mut diagonal = Vec::new();
    for row in 0..split.len() {
        let value = (0..split.len()).fold(Affine::default(), |sum, j| sum.add_scaled(&smith.u[(row, j)], &right[j]));
        if row >= smith.rank {
            system.conditions.push(Constraint::zero(value));
            continue;
        }
        let divisor = &smith.s[(row, row)];
        if *divisor == Int::ONE {
            diagonal.push(value);
            continue;
        }
        let (condition, quotient) = exact_division(&value, divisor);
        system.conditions.push(condition);
        diagonal.push(quotient);
    }
    let first = spaces.own + spaces.known();
    let parameters: Vec<Atom> = (0..kernel.columns()).map(|k| Atom::Index((first + k) as u32)).collect();
    let particular = reduced_columns(&smith.v, smith.rank, kernel);
    for (row, atom) in columns.iter().enumerate() {
        let fixed =
            diagonal.iter().enumerate().fold(Affine::default(), |sum, (j, d)| sum.add_scaled(&particular[j][row], d));
        let value = parameters
            .iter()
            .enumerate()
            .fold(fixed, |sum, (k, p)| sum.add_scaled(&kernel[(row, k)], &Affine::atom(p.clone())));
        assign(system, &mut [], atom, value);
    }
    system.unknowns.extend(parameters);
    equations.clear();
}

/// The first `rank` columns of `v`, each made short by subtracting multiples of the kernel's columns.
fn reduced_columns(v: &Matrix, rank: usize, kernel: &Matrix) -> Vec<Vec<Int>> {
    let dot = |a: &[Int], b: &[Int]| a.iter().zip(b).fold(Int::ZERO, |s, (x, y)| s + x * y);
    let two = Int::from(2);
    (0..rank)
        .map(|j| {
            let mut column = v.column(j);
            for k in 0..kernel.columns() {
                let direction = kernel.column(k);
                let length = dot(&direction, &direction);
                let times = div_floor(&(&two * dot(&column, &direction) + &length), &(&two * &length));
                column.iter_mut().zip(&direction).for_each(|(c, d)| *c = &*c - &times * d);
            }
            column
        })
        .collect()
}

/// Solves the domain for what stays free, in the new space.
fn ranges(
    definition: &Definition,
    domain: &[Constraint],
    mut system: Equations,
    spaces: Spaces,
    context: &[Constraint],
    promote_all: bool,
) -> Result<Option<Gathered>, Unsolved> {
    let defining = settle_floors(&mut system, promote_all);
    let known = spaces.known();
    let mut place: HashMap<Atom, usize> = HashMap::new();
    (0..known).for_each(|p| {
        place.insert(Atom::Index((spaces.own + p) as u32), p);
    });
    for (offset, atom) in system.unknowns.iter().enumerate() {
        place.insert(atom.clone(), known + offset);
    }
    let rename = |affine: &Affine| {
        affine.substitute(&mut |atom| {
            if let Some(value) = system.solved.get(atom) {
                return Some(value.substitute(&mut |a| place.get(a).map(|&p| Affine::index(p))));
            }
            place.get(atom).map(|&p| Affine::index(p))
        })
    };
    let inequalities = domain.iter().filter(|c| c.relation == Relation::NonNegative).chain(&defining);
    let mut rows: Vec<Constraint> = inequalities.map(|c| Constraint::non_negative(rename(&c.affine))).collect();
    let equalities = system.conditions.iter().map(|c| Constraint::zero(rename(&c.affine)));
    let Some(outer) = system::prune(equalities.collect(), context) else { return Ok(None) };
    let inner_context = [context, &outer].concat();
    rows.dedup();
    let positions: Vec<usize> = (known..known + system.unknowns.len()).collect();
    let Some(solved) = system::solve(rows, &positions, &inner_context)? else { return Ok(None) };
    let map = (0..spaces.own + spaces.batch).map(|i| rename(&Affine::index(i))).collect();
    let free = free_names(definition, &system);
    let outer = [outer, solved.outer.clone()].concat();
    let gathered = Gathered { map, free, ranges: Vec::new(), conditions: Vec::new(), outer };
    let mut gathered = substitute_points(gathered, solved, known);
    for place in 0..gathered.outer.len() {
        let others = gathered.outer.iter().enumerate().filter(|(other, _)| *other != place).map(|(_, c)| c);
        let known: Vec<Constraint> = context.iter().chain(others).cloned().collect();
        gathered.outer[place] = tightened(&gathered.outer[place], &known);
    }
    let settled = gathered.outer.iter().map(|c| match c.relation {
        Relation::NonNegative => c.rebuilt(gathered.settled(&c.affine)),
        Relation::Zero => c.clone(),
    });
    let Some(outer) = system::prune(settled.collect(), context) else { return Ok(None) };
    gathered.outer = outer;
    Ok(Some(gathered))
}

/// `e >= 0` where the context says `e <= 0` is `e == 0`.
fn tightened(constraint: &Constraint, context: &[Constraint]) -> Constraint {
    let opposite = Constraint::non_negative(-constraint.affine.clone());
    let equal = constraint.relation == Relation::NonNegative && system::implies(context, &opposite);
    if equal { Constraint::zero(constraint.affine.clone()) } else { constraint.clone() }
}

/// A floor that was made an unknown but follows from the others goes back to being an expression. Gives
/// the inequalities that define the remaining ones.
fn settle_floors(system: &mut Equations, promote_all: bool) -> Vec<Constraint> {
    let mut defining = Vec::new();
    for atom in system.floors.clone() {
        let Atom::Floor(inner, c) = &atom else { continue };
        let value = inner.substitute(&mut |a| match system.solved.get(a) {
            Some(value) => Some(value.clone()),
            None if system.floors.contains(a) => Some(Affine::atom(a.clone())),
            None => None,
        });
        let free = system.unknowns.contains(&atom);
        let mut depends = false;
        value.visit_atoms(&mut |a| depends |= system.floors.contains(a));
        if free && !depends && !promote_all {
            let value = value.floor_div(c);
            assign(system, &mut [], &atom, value);
            continue;
        }
        let remainder = inner.add_scaled(&-c.clone(), &Affine::atom(atom.clone()));
        let above = Affine::constant(c - Int::ONE) - remainder.clone();
        defining.extend([remainder, above].map(|affine| Constraint { affine, relation: Relation::NonNegative }));
    }
    defining
}

/// Free indices keep their names; a floor takes the name of an index that it replaces.
fn free_names(definition: &Definition, system: &Equations) -> Vec<String> {
    let own = |i: u32| definition.indices.get(i as usize).map(|index| index.name.clone());
    let solved = |i: &usize| system.solved.contains_key(&Atom::Index(*i as u32));
    system
        .unknowns
        .iter()
        .map(|atom| match atom {
            Atom::Index(i) => own(*i).unwrap_or_else(|| "z".to_string()),
            Atom::Floor(inner, _) => {
                let mut inside = Vec::new();
                inner.visit_indices(&mut |i| inside.push(i));
                inside.iter().find(|i| solved(i)).and_then(|&i| own(i as u32)).unwrap_or_else(|| "z".to_string())
            }
            Atom::Param(_) => unreachable!("a size is never unknown"),
        })
        .collect()
}

/// An index whose range is at most one point is replaced by that point; its other bounds become conditions. Whatever is
/// then left without a free index is a condition on the element: also a condition that the index stood in.
fn substitute_points(mut gathered: Gathered, solved: Solved, known: usize) -> Gathered {
    let count = solved.ranges.len();
    let mut values: Vec<Affine> = (0..known).map(Affine::index).collect();
    let mut next = known;
    let mut free = Vec::new();
    let mut rows = Vec::new();
    for (offset, range) in solved.ranges.iter().enumerate() {
        let range = range.map(|b| b.with_indices(&extended(&values, known + count)));
        if let Some(point) = range.low.iter().find(|low| range.high.contains(low)).cloned() {
            let below = range.low.iter().map(|low| Constraint::at_most(low.clone(), point.clone()));
            let above = range.high.iter().map(|high| Constraint::at_most(point.clone(), high.clone()));
            rows.extend(below.chain(above));
            values.push(point);
            continue;
        }
        values.push(Affine::index(next));
        next += 1;
        free.push(gathered.free[offset].clone());
        gathered.ranges.push(range);
    }
    gathered.free = free;
    gathered.map = gathered.map.iter().map(|a| a.with_indices(&values)).collect();
    // Those of the points are in the new space already.
    rows.extend(solved.conditions.iter().map(|c| c.with_indices(&values)));
    rows.retain(|c| c.decided() != Some(true));
    let (inner, outer): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|c| (known..next).any(|p| c.affine.uses_index(p)));
    gathered.conditions = inner;
    gathered.outer.extend(outer);
    gathered
}

/// A range mentions earlier indices only; the rest of the map is never looked at.
fn extended(values: &[Affine], count: usize) -> Vec<Affine> {
    let mut all = values.to_vec();
    all.resize(count, Affine::default());
    all
}
