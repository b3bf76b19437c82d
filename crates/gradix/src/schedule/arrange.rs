//! What is computed again at each use, and what is copied into a better order first.

use super::ahead::ahead;
use super::block::block;
use super::demand::demand;
use super::device::merge;
use super::marks::marks;
use super::order::{order, with_last};
use super::slices::slices;
use super::turn::turn;
use super::{Manner, skew};
use crate::diagnostic::Diagnostic;
use crate::domain::estimate::{estimate as assumed, extents};
use crate::domain::reach::{Held, Reach};
use crate::lift;
use crate::program::expr::{Rewriter, Rules};
use crate::program::names;
use crate::program::{
    Affine, Atom, BinaryOp, Definition, Expr, ExprId, Exprs, Index, Program, Range, ReduceOp, TensorId, TensorKind,
    UnaryOp, elements,
};
use crate::scalar::Real;
use crate::simplify::settle;
use crate::target::{Target, cost};
use gradix_int::Int;
use std::collections::{HashMap, HashSet};

/// The program with cheap definitions put into their readers, dimensions in a better order, and copies in another order where
/// they pay, for elements of a type on a machine.
///
/// Every definition that results need then has a name and a box of its own.
pub fn arrange(
    program: &Program,
    given: &[Int],
    (real, target): (Real, &Target),
    manner: Manner,
) -> Result<Program, Diagnostic> {
    let mut program = named(program)?;
    if target.device.is_some() {
        return Ok(merge(&program, &assumed(&program, given)));
    }
    if manner != Manner::Plain {
        program = slices(&program, &assumed(&program, given));
    }
    let estimate = &assumed(&program, given);
    marks(&mut program);
    ahead(&mut program, estimate);
    inline(&mut program, estimate);
    turn(&mut program, estimate, target);
    order(&mut program, estimate, target);
    skew(&mut program, estimate, target);
    block(&mut program, estimate, real, target);
    transpose(&mut program, estimate, target);
    demand(&mut program, estimate);
    prelude(&mut program, estimate);
    Ok(program)
}

/// What is arranged: the definitions that results need, each with a name and a box of its own.
fn named(program: &Program) -> Result<Program, Diagnostic> {
    let mut program = program.clone();
    settle::drop_unread(&mut program);
    settle::name_all(&mut program)?;
    Ok(program)
}

/// What is small, next to no work, and needs arguments only comes first: it does not stand between others that are computed
/// together.
fn prelude(program: &mut Program, estimate: &[f64]) {
    let work = |definition: &Definition| extents(definition, estimate).iter().product::<f64>();
    let little = program.definitions.iter().map(work).sum::<f64>() / cost::WORK_PER_PRELUDE;
    let is_input = |tensor: TensorId| program[tensor].kind == TensorKind::Input;
    let is_first = |definition: &Definition| {
        let elements = program[definition.tensor].elements(estimate);
        work(definition).max(elements) <= little
            && program.exprs.accesses(definition.body).all(|(tensor, _)| is_input(tensor))
    };
    let (first, rest): (Vec<_>, Vec<_>) = program.definitions.iter().cloned().partition(is_first);
    program.definitions = first.into_iter().chain(rest).collect();
}

/// A definition of a few cheap operations on few elements is computed again wherever it is read, unless that is many times.
fn inline(program: &mut Program, estimate: &[f64]) {
    let mut bodies: HashMap<TensorId, ExprId> = HashMap::new();
    let mut definitions = std::mem::take(&mut program.definitions);
    let reads = count_reads(program, &definitions, estimate);
    let exact = read_exactly(program, &definitions);
    for definition in &mut definitions {
        let mut rules = Inline { bodies: &bodies };
        definition.body = Rewriter::default().rewrite(&mut program.exprs, definition.body, &mut rules);
        let (places, times) = reads.get(&definition.tensor).copied().unwrap_or_default();
        let points: f64 = extents(definition, estimate).iter().product();
        let seldom = times <= cost::RECOMPUTED_READS * points;
        if definition.reduction.is_none()
            && !program.outputs.contains(&definition.tensor)
            && !exact.contains(&definition.tensor)
            && seldom
            && (places <= 1 || !joins(program, definition))
            && (is_cheap(&program.exprs, definition.body, places <= 1) || is_multiple(program, definition))
        {
            bodies.insert(definition.tensor, definition.body);
        }
    }
    definitions.retain(|d| !bodies.contains_key(&d.tensor));
    program.definitions = definitions;
}

/// Whether a definition makes one of several that have as many elements: its readers read less than they would of these.
fn joins(program: &Program, definition: &Definition) -> bool {
    let is_whole = |subscripts: &[Affine]| (0..definition.rank).all(|i| subscripts.iter().any(|s| s.uses_index(i)));
    let accesses = program.exprs.accesses(definition.body);
    let computed = accesses.filter(|(tensor, s)| program[*tensor].kind != TensorKind::Input && is_whole(s));
    definition.rank > 0 && computed.count() > 1
}

/// What is read where values are compared for equality, or by a `max` or `min` whose ties may be looked for: it is
/// computed once, so that it is the same in both places.
pub fn read_exactly(program: &Program, definitions: &[Definition]) -> HashSet<TensorId> {
    let exprs = &program.exprs;
    let mut found = HashSet::new();
    for definition in definitions {
        let nodes = exprs.postorder(definition.body);
        let extreme = matches!(definition.reduction, Some(ReduceOp::Max | ReduceOp::Min));
        let compares = nodes.iter().any(|id| match exprs[*id] {
            Expr::Select(c, ..) => !exprs.compared(c).is_empty(),
            _ => false,
        });
        if extreme || compares {
            found.extend(exprs.accesses(definition.body).map(|(tensor, _)| tensor));
        }
    }
    found
}

/// At how many places each tensor is read, and how often in all.
fn count_reads(program: &Program, definitions: &[Definition], estimate: &[f64]) -> HashMap<TensorId, (usize, f64)> {
    let mut reads: HashMap<TensorId, (usize, f64)> = HashMap::new();
    for definition in definitions {
        let points: f64 = extents(definition, estimate).iter().product();
        for (tensor, _) in program.exprs.accesses(definition.body) {
            let (places, times) = reads.entry(tensor).or_default();
            *places += 1;
            *times += points;
        }
    }
    reads
}

/// A few additions or multiplications, of as many elements and one more.
pub fn is_cheap(exprs: &Exprs, body: ExprId, once: bool) -> bool {
    let (mut operations, mut elements) = (0, 0);
    for id in exprs.postorder(body) {
        match &exprs[id] {
            Expr::Constant(_) | Expr::Index(_) => {}
            Expr::Access(..) => elements += 1,
            Expr::Unary(UnaryOp::Neg, _) => {}
            Expr::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, ..) => operations += 1,
            Expr::Unary(..) | Expr::Binary(..) | Expr::Select(..) => return false,
        }
    }
    let most = if once { cost::RECOMPUTED_ONCE_OPERATIONS } else { cost::RECOMPUTED_OPERATIONS };
    operations <= most && elements <= most + 1
}

/// Whether a definition is another one times a number, maybe zero where that is told by the indices.
fn is_multiple(program: &Program, definition: &Definition) -> bool {
    let exprs = &program.exprs;
    let inside = match exprs[definition.body] {
        Expr::Select(condition, inside, outside) if exprs.compared(condition).is_empty() => {
            exprs.as_constant(outside).map(|_| inside)
        }
        _ => None,
    };
    let Some((a, b)) = inside.and_then(|inside| match exprs[inside] {
        Expr::Binary(BinaryOp::Mul, a, b) => Some((a, b)),
        _ => None,
    }) else {
        return false;
    };
    let is_number = |id: ExprId| match &exprs[id] {
        Expr::Access(_, subscripts) => subscripts.is_empty(),
        Expr::Constant(_) => true,
        _ => false,
    };
    let is_other = |id: ExprId| match &exprs[id] {
        Expr::Access(tensor, subscripts) => {
            let own = (0..definition.rank).map(Some);
            program[*tensor].kind != TensorKind::Input && subscripts.iter().map(Affine::as_index).eq(own)
        }
        _ => false,
    };
    is_number(a) && is_other(b) || is_number(b) && is_other(a)
}

/// Puts bodies in place of accesses.
pub struct Inline<'a> {
    /// Of the definitions that are put into their readers.
    pub bodies: &'a HashMap<TensorId, ExprId>,
}

impl Rules for Inline<'_> {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        match self.bodies.get(&tensor) {
            Some(&body) => lift::remap(exprs, body, &subscripts),
            None => exprs.access(tensor, subscripts),
        }
    }
}

/// Indices of reductions whose bounds move with the output in the lanes count from there.
fn skew(program: &mut Program, estimate: &[f64], target: &Target) {
    for position in 0..program.definitions.len() {
        let definition = &program.definitions[position];
        let Some(v) = lanes(program, definition, estimate, target) else { continue };
        let indices: Vec<usize> = (0..definition.indices.len()).collect();
        let mut ranges: Vec<Range> = definition.indices.iter().map(|i| i.range.clone()).collect();
        let skews = skew::skews(&indices, &ranges, definition.rank, v, Vec::new(), estimate);
        if skews.is_empty() {
            continue;
        }
        let mut map: Vec<Affine> = indices.iter().map(|&i| Affine::index(i)).collect();
        skew::apply(&mut map, &mut ranges, &indices, v, &skews);
        let body = lift::remap(&mut program.exprs, definition.body, &map);
        let definition = &mut program.definitions[position];
        definition.body = body;
        definition.conditions = definition.conditions.iter().map(|c| c.with_indices(&map)).collect();
        for (index, range) in definition.indices.iter_mut().zip(ranges) {
            index.range = range;
        }
    }
}

/// An argument that a contraction would read across its rows is first copied with that dimension last.
fn transpose(program: &mut Program, estimate: &[f64], target: &Target) {
    let mut taken: HashSet<String> = names::taken(program);
    let mut copies: HashMap<(TensorId, usize), TensorId> = HashMap::new();
    let mut made = Vec::new();
    let reach = Reach::of(program);
    for position in 0..program.definitions.len() {
        let definition = program.definitions[position].clone();
        let narrow = narrow(program, &definition, estimate, target);
        let Some(lanes) = narrow.or_else(|| lanes(program, &definition, estimate, target)) else { continue };
        let wanted = across(program, &definition, lanes, &reach, estimate);
        if wanted.is_empty() {
            continue;
        }
        for (key, held) in &wanted {
            if !copies.contains_key(key) {
                let copy = transposed(program, *key, held, &mut taken);
                copies.insert(*key, copy.tensor);
                made.push(copy);
            }
        }
        let wanted: Vec<(TensorId, usize)> = wanted.into_iter().map(|(key, _)| key).collect();
        let mut rules = Transpose { copies: &copies, wanted: &wanted, lanes };
        program.definitions[position].body =
            Rewriter::default().rewrite(&mut program.exprs, definition.body, &mut rules);
    }
    made.append(&mut program.definitions);
    program.definitions = made;
}

/// The output that a reduction runs over in vectors: the last one with enough values, if possible one along which
/// everything has its neighbours, or at least one that no bound of the reduction depends on.
pub fn lanes(program: &Program, definition: &Definition, estimate: &[f64], target: &Target) -> Option<usize> {
    definition.reduction?;
    let sizes = extents(definition, estimate);
    let moves = |p: usize| {
        let terms = definition.indices[definition.rank..].iter();
        terms.flat_map(|i| i.range.low.iter().chain(&i.range.high)).any(|bound| bound.uses_index(p))
    };
    let wide = |p: &usize| sizes[*p] >= target.wide();
    let outputs = || (0..definition.rank).rev().filter(wide);
    let last = definition.rank.checked_sub(1);
    let along = |p: &usize| Some(*p) == last && runs_along(program, definition, *p);
    outputs().find(along).or_else(|| outputs().find(|&p| !moves(p))).or_else(|| outputs().next())
}

/// Whether all that a body reads is the same for all values of an index, or has its elements side by side.
pub fn runs_along(program: &Program, definition: &Definition, index: usize) -> bool {
    let atom = Atom::Index(index as u32);
    program.exprs.postorder(definition.body).into_iter().all(|id| match &program.exprs[id] {
        Expr::Access(_, subscripts) => match subscripts.split_last() {
            Some((last, others)) => {
                let step = last.coefficient(&atom);
                !others.iter().any(|s| s.uses_index(index)) && (step == Int::ONE || !last.uses_index(index))
            }
            None => true,
        },
        _ => true,
    })
}

/// The innermost index of a reduction, if that should run in vectors, as the last output has few values: a product of two
/// tensors, of which one is computed and has its elements side by side.
fn narrow(program: &Program, definition: &Definition, estimate: &[f64], target: &Target) -> Option<usize> {
    definition.reduction?;
    let (index, sizes) = (definition.indices.len() - 1, extents(definition, estimate));
    let (columns, rows) = (definition.rank.checked_sub(1)?, definition.rank.checked_sub(2)?);
    let reads: Vec<(TensorId, &[Affine])> = program.exprs.accesses(definition.body).collect();
    let is_computed = |tensor: TensorId| program[tensor].kind != TensorKind::Input;
    let uses = |s: &[Affine], index: usize| s.iter().any(|s| s.uses_index(index));
    let alone = |s: &[Affine]| !(uses(s, index) && uses(s, rows) && uses(s, columns));
    let beside = |s: &[Affine]| cost::access(s, index) <= cost::NEIGHBOUR_LOADS;
    let fits = sizes[columns] < target.wide()
        && sizes[rows] >= target.wide()
        && sizes[index] >= cost::NARROW_OUTPUT_TERMS
        && reads.iter().all(|(tensor, s)| alone(s) && (beside(s) || !is_computed(*tensor)))
        && reads.iter().any(|(tensor, s)| is_computed(*tensor) && uses(s, index) && beside(s));
    fits.then_some(index)
}

/// The arguments, and which dimension, that a reduction would read across rows, if everything else is read along them;
/// each with the extents of what a copy holds.
fn across(program: &Program, definition: &Definition, lanes: usize, reach: &Reach, estimate: &[f64]) -> Vec<Held> {
    let work: f64 = extents(definition, estimate).iter().product();
    let mut found: Vec<Held> = Vec::new();
    for id in program.exprs.postorder(definition.body) {
        let Expr::Access(tensor, subscripts) = &program.exprs[id] else { continue };
        let moving: Vec<usize> = (0..subscripts.len()).filter(|&d| subscripts[d].uses_index(lanes)).collect();
        let (dimension, last) = match moving.as_slice() {
            [] => continue,
            [dimension] => (*dimension, subscripts.len() - 1),
            _ => return Vec::new(),
        };
        let one = subscripts[dimension].coefficient(&Atom::Index(lanes as u32)) == Int::ONE;
        let key = (*tensor, dimension);
        let known = found.iter().any(|(other, _)| *other == key);
        if dimension != last && one && !known && program[*tensor].kind == TensorKind::Input {
            let held = reach.held(program, *tensor);
            let pays = |held: &Vec<Affine>| elements(held, estimate) * cost::READS_PER_COPIED_ELEMENT <= work;
            found.extend(held.filter(pays).map(|held| (key, held)));
        }
    }
    found
}

fn transposed(
    program: &mut Program,
    (tensor, dimension): (TensorId, usize),
    held: &[Affine],
    taken: &mut HashSet<String>,
) -> Definition {
    let source = program[tensor].clone();
    let extents = with_last(held, dimension);
    let indices = Index::numbered(&extents);
    let name = names::fresh(&format!("{}_t", source.name), taken);
    let rank = source.rank;
    let copy = program.add_defined(name, extents);
    // Position `p` of the source is the copy's index at the place it moved to.
    let mut subscripts: Vec<Affine> = (0..rank - 1).map(Affine::index).collect();
    subscripts.insert(dimension, Affine::index(rank - 1));
    let body = program.exprs.access(tensor, subscripts);
    Definition::pointwise(copy, indices, body)
}

struct Transpose<'a> {
    copies: &'a HashMap<(TensorId, usize), TensorId>,
    wanted: &'a [(TensorId, usize)],
    lanes: usize,
}

impl Rules for Transpose<'_> {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        let moving: Vec<usize> = (0..subscripts.len()).filter(|&d| subscripts[d].uses_index(self.lanes)).collect();
        match moving.as_slice() {
            [dimension] if self.wanted.contains(&(tensor, *dimension)) => {
                exprs.access(self.copies[&(tensor, *dimension)], with_last(&subscripts, *dimension))
            }
            _ => exprs.access(tensor, subscripts),
        }
    }
}
