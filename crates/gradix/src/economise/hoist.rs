//! Pointwise parts that are computed more often than they have values.
//!
//! In `sum[d] exp(-s[i, j]) * (x[i, d] - z[j, d])` the function is evaluated for every `d`; `E[i, j] = exp(-s[i, j])` is
//! evaluated once. The same holds for a few of the factors of a product, for what depends on indices only by
//! way of `i + k`, and for a part that several definitions have in common. What `max` and `min` choose from and what
//! conditions compare is left alone.
//!
//! So is an element whose place is not straight: where `sum[k] h[k] * x[wrap(i - k)]` reads `x` round its end, a copy
//! `X[p] = x[wrap(p)]` goes on past the end, and `X[i - k]` is read by straight loops.

use super::body::{turns, weighs};
use super::canon::{Canon, Chain, Key, chain};
use super::choose::Provider;
use super::part::{direction_of, part};
use super::rewrite::{Ids, Rewrite};
use crate::domain::guard;
use crate::domain::system::Facts;
use crate::program::build::{self, Product};
use crate::program::expr::Rewriter;
use crate::program::{Affine, Atom, Cond, CondId, Constraint, Definition, Expr, ExprId, Exprs, Program, ReduceOp};
use crate::simplify::settle::is_trivial;
use crate::target::cost;
use gradix_int::Int;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Products of more factors than this are looked at in pairs.
const MAX_FACTORS: usize = 6;

/// The largest quotient by which an element at a remainder is told: once round a tensor, or twice.
const MAX_QUOTIENT: i64 = 2;

/// Where a node is evaluated, of all points at which the body is.
#[derive(Clone, Debug, PartialEq)]
pub enum Reached {
    /// Where these constraints hold (everywhere, if there are none).
    Where(Vec<Constraint>),
    /// Where values say so, or in several cases.
    Sometimes,
}

/// Where each node of a body is evaluated.
pub fn reached(exprs: &Exprs, body: ExprId) -> BTreeMap<ExprId, Reached> {
    let mut found: BTreeMap<ExprId, Reached> = BTreeMap::from([(body, Reached::Where(Vec::new()))]);
    let mut order = exprs.postorder(body);
    order.sort();
    for id in order.into_iter().rev() {
        let own = found[&id].clone();
        let mut see = |id: ExprId, new: Reached| {
            let known = found.entry(id).or_insert(new.clone());
            let everywhere = Reached::Where(Vec::new());
            *known = match (known == &new, *known == everywhere || new == everywhere) {
                (true, _) => new,
                (false, true) => everywhere,
                (false, false) => Reached::Sometimes,
            };
        };
        match exprs[id] {
            Expr::Constant(_) | Expr::Index(_) | Expr::Access(..) => {}
            Expr::Unary(_, a) => see(a, own),
            Expr::Binary(_, a, b) => {
                see(a, own.clone());
                see(b, own);
            }
            Expr::Select(c, a, b) => {
                condition(exprs, c, &own, &mut see);
                see(a, branch(exprs, &own, c, true));
                see(b, branch(exprs, &own, c, false));
            }
        }
    }
    found
}

/// The values that a condition compares: the second part of one is looked at where the first does not decide.
fn condition(exprs: &Exprs, id: CondId, own: &Reached, see: &mut dyn FnMut(ExprId, Reached)) {
    match exprs[id] {
        Cond::Index(_) => {}
        Cond::Compare(_, a, b) => [a, b].into_iter().for_each(|value| see(value, own.clone())),
        Cond::Not(a) => condition(exprs, a, own, see),
        Cond::And(a, b) => {
            condition(exprs, a, own, see);
            condition(exprs, b, &branch(exprs, own, a, true), see);
        }
        Cond::Or(a, b) => {
            condition(exprs, a, own, see);
            condition(exprs, b, &branch(exprs, own, a, false), see);
        }
    }
}

fn branch(exprs: &Exprs, own: &Reached, condition: CondId, outcome: bool) -> Reached {
    let Reached::Where(known) = own else { return Reached::Sometimes };
    let more = match (outcome, &exprs[condition]) {
        (true, _) => guard::conjunction(exprs, condition),
        (false, Cond::Index(constraint)) => Some(constraint.negated()).filter(|rows| rows.len() == 1),
        (false, _) => None,
    };
    more.map_or(Reached::Sometimes, |more| Reached::Where(guard::join(known, &more)))
}

/// The ways to compute a part of the body apart.
pub fn hoists(
    program: &mut Program,
    site: &Definition,
    ids: &mut Ids,
    context: &[Constraint],
    common: &HashSet<ExprId>,
) -> Vec<Rewrite> {
    let mut reached = reached(&program.exprs, site.body);
    let compared = compared(&program.exprs, site.body);
    reached.retain(|id, _| !compared.contains(id));
    let fewer = with_fewer_points(&program.exprs, site);
    let is_exact = matches!(site.reduction, Some(ReduceOp::Max | ReduceOp::Min));
    let mut found = Vec::new();
    for (&node, place) in &reached {
        let Reached::Where(guard) = place else { continue };
        let whole = node == site.body && site.reduction.is_none();
        let repeated = fewer.contains(&node) || common.contains(&node);
        let is_costly = !is_exact && weighs(&program.exprs, node, cost::LEAST_ADDITIONS);
        let is_border = fewer.contains(&node) && site.reduction.is_some() && is_border(&program.exprs, node, site.rank);
        if !whole && (repeated && is_costly || is_border) {
            found.extend(hoist(program, site, node, node, None, guard, ids, context));
        }
        if is_exact {
            continue;
        }
        if chain(&program.exprs, node) == Some(Chain::Product) {
            for (group, rest) in groups(program, site, node) {
                found.extend(hoist(program, site, node, group, Some(rest), guard, ids, context));
            }
        }
    }
    found
}

/// An element, or a choice of elements by indices, that keeps the loops of a reduction from being straight.
fn is_border(exprs: &Exprs, node: ExprId, rank: usize) -> bool {
    let nodes = exprs.postorder(node);
    let copies = |id: &ExprId| match exprs[*id] {
        Expr::Constant(_) | Expr::Access(..) => true,
        Expr::Select(c, ..) => exprs.compared(c).is_empty(),
        Expr::Index(_) | Expr::Unary(..) | Expr::Binary(..) => false,
    };
    turns(exprs, node, rank) && nodes.iter().all(copies)
}

/// Everything that a condition compares. It has to stay as it is, to the last bit: a derivative of `max` asks which terms
/// equal the largest.
fn compared(exprs: &Exprs, body: ExprId) -> HashSet<ExprId> {
    let conditions = exprs.postorder(body).into_iter().filter_map(|id| match exprs[id] {
        Expr::Select(c, ..) => Some(c),
        _ => None,
    });
    let values = conditions.flat_map(|c| exprs.compared(c));
    values.flat_map(|value| exprs.postorder(value)).collect()
}

/// The nodes that depend on fewer combinations of indices than there are indices.
fn with_fewer_points(exprs: &Exprs, site: &Definition) -> HashSet<ExprId> {
    let count = site.indices.len();
    let mut seen: HashMap<ExprId, Vec<Affine>> = HashMap::new();
    for id in exprs.postorder(site.body) {
        // As many combinations as there are indices tell enough, if they use all of them.
        let mut forms: Vec<Affine> = Vec::new();
        let mut see = |form: &Affine| {
            let enough = forms.len() >= count && use_all(&forms, count);
            if !enough && !forms.contains(form) {
                forms.push(form.clone());
            }
        };
        exprs.operands(id).iter().flat_map(|operand| &seen[operand]).for_each(&mut see);
        // `i - k` and `k - i` are one combination.
        let combination = |affine: &Affine| direction_of(&without_sizes(affine)).map(|(direction, _)| direction);
        exprs.visit_own_affines(id, &mut |affine| combination(affine).iter().for_each(&mut see));
        seen.insert(id, forms);
    }
    let has_fewer = |forms: &[Affine]| forms.len() < count || !use_all(forms, count);
    seen.into_iter().filter(|(_, forms)| has_fewer(forms)).map(|(id, _)| id).collect()
}

/// The part of an index expression that changes from point to point.
fn without_sizes(affine: &Affine) -> Affine {
    let indices = affine.terms().iter().filter(|(atom, _)| !matches!(atom, Atom::Param(_)));
    indices.fold(Affine::default(), |sum, (atom, c)| sum.add_scaled(c, &Affine::atom(atom.clone())))
}

fn use_all(forms: &[Affine], count: usize) -> bool {
    (0..count).all(|index| forms.iter().any(|form| form.uses_index(index)))
}

/// The costly parts that occur in several of the definitions, or are one of them.
pub fn common(program: &Program, canon: &mut Canon, existing: &HashMap<Key, Provider>) -> Vec<HashSet<ExprId>> {
    let exprs = &program.exprs;
    let mut costly: Vec<Vec<(ExprId, u64)>> = Vec::new();
    // Equal parts have equal shapes, which are found for all nodes at once; only where shapes meet keys are compared.
    let mut met: HashMap<u64, usize> = HashMap::new();
    for site in &program.definitions {
        let shapes = canon.shapes(exprs, &pointwise(site, site.body));
        let order =
            exprs.postorder(site.body).into_iter().filter(|id| weighs(exprs, *id, cost::SHARED_VALUE_ADDITIONS));
        let own: Vec<(ExprId, u64)> = order.map(|id| (id, shapes[&id])).collect();
        own.iter().for_each(|(_, shape)| *met.entry(*shape).or_default() += 1);
        // It is there for others, masked or not.
        let masked = matches!(exprs[site.body], Expr::Select(..)).then(|| exprs.operands(site.body));
        masked.into_iter().flatten().chain([site.body]).for_each(|id| *met.entry(shapes[&id]).or_default() += 1);
        costly.push(own);
    }
    let mut seen: HashMap<Key, usize> = HashMap::new();
    let mut nodes: Vec<Vec<(ExprId, Key)>> = Vec::new();
    for (site, own) in program.definitions.iter().zip(costly) {
        let own = own.into_iter().filter(|(_, shape)| met[shape] > 1);
        let keyed = own.map(|(id, _)| (id, canon.form(exprs, &pointwise(site, id)).key));
        let keyed: Vec<(ExprId, Key)> = keyed.collect();
        keyed.iter().for_each(|(_, key)| *seen.entry(key.clone()).or_default() += 1);
        nodes.push(keyed);
    }
    let is_common = |key: &Key| seen[key] > 1 || existing.contains_key(key);
    let each = |keyed: Vec<(ExprId, Key)>| keyed.into_iter().filter(|(_, key)| is_common(key)).map(|(id, _)| id);
    nodes.into_iter().map(|keyed| each(keyed).collect()).collect()
}

/// A node as a definition over all indices around it.
fn pointwise(site: &Definition, node: ExprId) -> Definition {
    let assumptions = site.assumptions.iter().chain(&site.conditions).cloned().collect();
    let (rank, reduction, conditions) = (site.indices.len(), None, Vec::new());
    Definition { rank, reduction, conditions, assumptions, body: node, ..site.clone() }
}

/// Some of the factors of a product and the others, where the former use fewer indices.
fn groups(program: &mut Program, site: &Definition, node: ExprId) -> Vec<(ExprId, ExprId)> {
    let count = site.indices.len();
    let exprs = &mut program.exprs;
    let product = Product::of(exprs, node);
    let uses: Vec<(ExprId, bool, Vec<bool>)> =
        product.parts().map(|(id, divides)| (id, divides, exprs.used_indices(id, count))).collect();
    if uses.len() < 3 || uses.len() > 16 {
        return Vec::new();
    }
    let all = union(uses.iter().map(|(_, _, used)| used), count);
    let mut sets: Vec<Vec<bool>> = Vec::new();
    for bits in 1u32..1 << uses.len() {
        if uses.len() > MAX_FACTORS && bits.count_ones() != 2 || bits.count_ones() < 2 {
            continue;
        }
        let chosen = uses.iter().enumerate().filter(|(n, _)| bits >> n & 1 == 1).map(|(_, (_, _, used))| used);
        let set = union(chosen, count);
        if set != all && !sets.contains(&set) {
            sets.push(set);
        }
    }
    let mut found = Vec::new();
    for set in sets {
        let fits = |id: ExprId, divides: bool| {
            let own = uses.iter().find(|(other, d, _)| *other == id && *d == divides);
            own.is_some_and(|(_, _, used)| used.iter().zip(&set).all(|(used, allowed)| !used || *allowed))
        };
        let (group, rest) = product.clone().split(fits);
        if group.parts().all(|(_, divides)| divides) {
            continue;
        }
        found.push((group.build(exprs), rest.build(exprs)));
    }
    found
}

fn union<'a>(sets: impl Iterator<Item = &'a Vec<bool>>, count: usize) -> Vec<bool> {
    sets.fold(vec![false; count], |all, set| all.iter().zip(set).map(|(a, b)| *a || *b).collect())
}

/// An element at a remainder, as a choice between those at the few quotients that there are.
fn unwrapped(exprs: &mut Exprs, element: ExprId, known: &Facts) -> Option<ExprId> {
    let Expr::Access(tensor, subscripts) = exprs[element].clone() else { return None };
    let quotient = subscripts.iter().flat_map(Affine::terms).find_map(|(atom, _)| match atom {
        Atom::Floor(inner, c) if inner.uses_indices() && inner.is_straight() => {
            Some((atom.clone(), (**inner).clone(), c.clone()))
        }
        _ => None,
    });
    let (atom, inner, c) = quotient?;
    let start = |q: i64| Constraint::at_most(Affine::constant(&c * Int::from(q)), inner.clone());
    let end = |q: i64| Constraint::at_most(inner.clone(), Affine::constant(&c * Int::from(q + 1) - Int::ONE));
    let low = (-MAX_QUOTIENT..=MAX_QUOTIENT).rev().find(|q| known.implies(&start(*q)))?;
    let high = (low..=MAX_QUOTIENT).find(|q| known.implies(&end(*q)))?;
    let mut found = None;
    for q in low..=high {
        let at = |affine: &Affine| affine.substitute(&mut |other| (*other == atom).then(|| Affine::constant(q)));
        let straight = exprs.access(tensor, subscripts.iter().map(at).collect());
        let value = unwrapped(exprs, straight, known).unwrap_or(straight);
        found = Some(match found {
            None => value,
            Some(before) => {
                let holds = exprs.add_condition(Cond::Index(start(q)));
                exprs.add(Expr::Select(holds, value, before))
            }
        });
    }
    found
}

/// The site with `node` replaced by an access to `value`, times the rest.
#[allow(clippy::too_many_arguments, reason = "one node, what stands for it, and where")]
fn hoist(
    program: &mut Program,
    site: &Definition,
    node: ExprId,
    value: ExprId,
    rest: Option<ExprId>,
    guard: &[Constraint],
    ids: &mut Ids,
    context: &[Constraint],
) -> Option<Rewrite> {
    let reads = |id: &ExprId| matches!(program.exprs[*id], Expr::Access(..));
    if !program.exprs.postorder(value).iter().any(reads) {
        return None;
    }
    let mut part = part(program, site, &[], value, guard, context)?;
    if is_trivial(&program.exprs, value) {
        let known = [context, &part.definition.output_domain()].concat();
        part.definition.body = unwrapped(&mut program.exprs, part.definition.body, &Facts::new(known))?;
    }
    part.definition.tensor = ids.next();
    let access = program.exprs.access(part.definition.tensor, part.subscripts.clone());
    let new = match rest {
        Some(rest) => build::multiply(&mut program.exprs, rest, access),
        None => access,
    };
    let mut rewriter = Rewriter::with([(node, new)]);
    let body = rewriter.copy(&mut program.exprs, site.body);
    let main = Definition { body, ..site.clone() };
    Some(Rewrite { parts: vec![part], main, risks: Vec::new() })
}
