//! The one canonical layout of a program, so that equal programs are equal values.

use crate::domain::system;
use crate::lift;
use crate::program::expr::{Rewriter, Rules};
use crate::program::{
    Affine, Atom, Constraint, Definition, Expr, ExprId, Exprs, Index, Param, ParamId, ParamKind, Program, Range,
    TensorId, TensorKind, circles, names,
};
use std::collections::{HashMap, HashSet};

/// Brings a program into its one canonical layout: inputs first; every nested definition right before
/// its reader, in the order of reading; no unused node. With `prune`, inputs and sizes that nothing
/// mentions are dropped. Gives the new ids of old tensors and expressions.
pub fn tidy(program: &mut Program, prune: bool) -> (HashMap<TensorId, TensorId>, HashMap<ExprId, ExprId>) {
    program.facts.sort();
    program.facts.dedup();
    circles::sort(program);
    flatten_bounds(program);
    if prune {
        prune_params(program);
    }
    sort_params(program);
    sort_nested_outputs(program);
    name_indices(program);
    let number: HashMap<TensorId, usize> = program.definitions.iter().enumerate().map(|(i, d)| (d.tensor, i)).collect();
    let mut order = Vec::new();
    let mut owners = HashMap::new();
    for definition in &program.definitions {
        if program[definition.tensor].kind != TensorKind::Nested {
            let first = order.len();
            place(program, definition.tensor, &number, &mut order);
            owners.extend(order[first..].iter().map(|&i| (i, definition.tensor)));
        }
    }
    for (nested, owner) in owners {
        let Definition { tensor, reduction, .. } = program.definitions[nested];
        if let (TensorKind::Nested, Some(op)) = (program[tensor].kind, reduction) {
            program.tensors[tensor.0 as usize].name = format!("{}_{}", program[owner].name, op.name());
        }
    }
    let used = program.used_tensors();
    let inputs: Vec<TensorId> = program.inputs().filter(|t| !prune || used.contains(t)).collect();
    let kept: Vec<TensorId> = inputs.into_iter().chain(order.iter().map(|&i| program.definitions[i].tensor)).collect();
    let tensors: HashMap<TensorId, TensorId> =
        kept.iter().enumerate().map(|(new, &old)| (old, TensorId(new as u32))).collect();
    let mut definitions: Vec<Definition> = order.iter().map(|&i| program.definitions[i].clone()).collect();
    let mut exprs = Exprs::default();
    let mut moved = HashMap::new();
    for definition in &mut definitions {
        definition.tensor = tensors[&definition.tensor];
        definition.body = program.exprs.copy_into(definition.body, &tensors, &mut exprs, &mut moved);
    }
    program.tensors = kept.iter().map(|&t| program[t].clone()).collect();
    program.outputs = program.outputs.iter().map(|t| tensors[t]).collect();
    program.definitions = definitions;
    program.exprs = exprs;
    (tensors, moved)
}

/// A bound that is the largest of several sizes is several lower bounds, and likewise above.
fn flatten_bounds(program: &mut Program) {
    let Program { definitions, params, .. } = program;
    for index in definitions.iter_mut().flat_map(|d| d.indices[d.rank..].iter_mut()) {
        index.range = index.range.flattened(params);
    }
}

/// Puts the outputs of every nested definition into the order of the reader's indices.
fn sort_nested_outputs(program: &mut Program) {
    let mut orders: HashMap<TensorId, Vec<usize>> = HashMap::new();
    // Readers first, since their own order decides that of what they read.
    for place in (0..program.definitions.len()).rev() {
        let tensor = program.definitions[place].tensor;
        if let Some(order) = orders.get(&tensor) {
            match sorted_outputs(program, place, order) {
                Some(sorted) => program.definitions[place] = sorted,
                None => drop(orders.remove(&tensor)),
            }
        }
        for id in program.exprs.postorder(program.definitions[place].body) {
            let Expr::Access(tensor, subscripts) = &program.exprs[id] else { continue };
            let mut order: Vec<usize> = (0..subscripts.len()).collect();
            order.sort_by_key(|&d| subscripts[d].as_index());
            let is_sorted = order.iter().enumerate().all(|(new, old)| new == *old);
            if program[*tensor].kind == TensorKind::Nested && !is_sorted {
                orders.insert(*tensor, order);
            }
        }
    }
    if orders.is_empty() {
        return;
    }
    let mut rewriter = Rewriter::default();
    for definition in &mut program.definitions {
        definition.body = rewriter.rewrite(&mut program.exprs, definition.body, &mut Sorted(&orders));
    }
}

/// The outputs of a nested definition have the names of the reader's indices, and no index has the name of
/// another one that is in scope where it is printed.
fn name_indices(program: &mut Program) {
    let reserved = names::reserved(program);
    // For a nested tensor: the names of its outputs, and all names in scope at its reader.
    let mut given: HashMap<TensorId, (Vec<String>, HashSet<String>)> = HashMap::new();
    for place in (0..program.definitions.len()).rev() {
        let definition = &mut program.definitions[place];
        let (outputs, mut scope) = given.remove(&definition.tensor).unwrap_or_default();
        for (position, index) in definition.indices.iter_mut().enumerate() {
            match outputs.get(position) {
                Some(name) => index.name = name.clone(),
                None => index.name = names::fresh_where(&index.name, |n| reserved.contains(n) || scope.contains(n)),
            }
            scope.insert(index.name.clone());
        }
        let names: Vec<String> = definition.indices.iter().map(|i| i.name.clone()).collect();
        for id in program.exprs.postorder(program.definitions[place].body) {
            if let Expr::Access(tensor, subscripts) = &program.exprs[id]
                && program[*tensor].kind == TensorKind::Nested
            {
                let bare = subscripts.iter().filter_map(Affine::as_index).map(|i| names[i].clone());
                given.insert(*tensor, (bare.collect(), scope.clone()));
            }
        }
    }
}

fn sorted_outputs(program: &mut Program, place: usize, order: &[usize]) -> Option<Definition> {
    let definition = program.definitions[place].clone();
    let mut map: Vec<Affine> = (0..definition.indices.len()).map(Affine::index).collect();
    for (new, &old) in order.iter().enumerate() {
        map[old] = Affine::index(new);
    }
    let moved = |index: &Index| Index { name: index.name.clone(), range: index.range.map(|b| b.with_indices(&map)) };
    let outputs = order.iter().map(|&old| moved(&definition.indices[old]));
    let mut indices: Vec<Index> = outputs.chain(definition.indices[definition.rank..].iter().map(moved)).collect();
    let mut assumptions: Vec<Constraint> = definition.assumptions.iter().map(|c| c.with_indices(&map)).collect();
    let forward = |position: usize, index: &Index| {
        let mut bounds = index.range.low.iter().chain(&index.range.high);
        bounds.any(|b| (position..definition.rank).any(|p| b.uses_index(p)))
    };
    if indices[..definition.rank].iter().enumerate().any(|(p, i)| forward(p, i)) {
        let rows: Vec<Constraint> = definition.output_domain().iter().map(|c| c.with_indices(&map)).collect();
        let positions: Vec<usize> = (0..definition.rank).collect();
        let context = program.size_context();
        let (ranges, rest) = match system::solve(rows.clone(), &positions, &context) {
            Ok(Some(solved)) => (solved.ranges, [solved.conditions, solved.outer].concat()),
            Ok(None) | Err(_) => (box_around(&rows, &positions, &context)?, rows),
        };
        indices.iter_mut().zip(ranges).for_each(|(index, range)| index.range = range);
        assumptions = rest;
    }
    let body = lift::remap(&mut program.exprs, definition.body, &map);
    let conditions = definition.conditions.iter().map(|c| c.with_indices(&map)).collect();
    Some(Definition { indices, assumptions, conditions, body, ..definition })
}

/// Bounds of each index in sizes alone.
fn box_around(rows: &[Constraint], positions: &[usize], context: &[Constraint]) -> Option<Vec<Range>> {
    let rows = [rows, context].concat();
    let is_index = |atom: &Atom| matches!(atom, Atom::Index(_));
    let range = |&position: &usize| {
        let index = Affine::index(position);
        let low = system::lower_bounds(&index, &rows, &is_index).ok()?;
        let high: Vec<Affine> = system::lower_bounds(&-index, &rows, &is_index).ok()?.into_iter().map(|h| -h).collect();
        (!low.is_empty() && !high.is_empty()).then_some(Range { low, high })
    };
    positions.iter().map(range).collect()
}

struct Sorted<'a>(&'a HashMap<TensorId, Vec<usize>>);

impl Rules for Sorted<'_> {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        match self.0.get(&tensor) {
            Some(order) => {
                let sorted = order.iter().map(|&d| subscripts[d].clone()).collect();
                exprs.access(tensor, sorted)
            }
            None => exprs.access(tensor, subscripts),
        }
    }
}

fn place(program: &Program, tensor: TensorId, number: &HashMap<TensorId, usize>, order: &mut Vec<usize>) {
    let own = number[&tensor];
    for id in program.exprs.postorder(program.definitions[own].body) {
        if let Expr::Access(read, _) = &program.exprs[id]
            && program[*read].kind == TensorKind::Nested
        {
            place(program, *read, number, order);
        }
    }
    order.push(own);
}

/// Drops sizes that nothing mentions, and facts about them.
fn prune_params(program: &mut Program) {
    let read = program.used_tensors();
    let inputs = program.inputs().filter(|id| read.contains(id));
    let used = program.used_params(inputs.chain(program.definitions.iter().map(|d| d.tensor)));
    // What remains is what the facts say about the sizes that remain.
    let is_unused = |atom: &Atom| matches!(atom, Atom::Param(ParamId(p)) if !used[*p as usize]);
    let mut touched = false;
    program.facts.iter().for_each(|f| f.affine.visit_atoms(&mut |a| touched |= is_unused(a)));
    if touched {
        let plain = |f: &&Constraint| {
            let mut fine = true;
            f.affine.visit_atoms(&mut |a| fine &= !is_unused(a));
            fine
        };
        let kept: Vec<Constraint> = program.facts.iter().filter(plain).cloned().collect();
        let projected = system::project(&program.facts, &is_unused).unwrap_or_default();
        let implied = system::prune(projected, &kept).unwrap_or_default();
        program.facts = [kept, implied].concat();
        program.facts.sort();
    }
    let keep = (0..used.len()).filter(|&p| used[p]).collect();
    renumber_params(program, keep);
}

/// Given sizes first, then those that follow from them, in a fixed order.
fn sort_params(program: &mut Program) {
    let derived = |p: &usize| program.params[*p].kind != ParamKind::Free;
    let (mut follow, given): (Vec<usize>, Vec<usize>) = (0..program.params.len()).partition(derived);
    let depends = |p: usize| {
        program.params[p].kind.parts().iter().any(|part| {
            let mut found = false;
            part.visit_atoms(&mut |a| found |= matches!(a, Atom::Param(ParamId(q)) if derived(&(*q as usize))));
            found
        })
    };
    follow.sort_by_key(|&p| (depends(p), program.params[p].name.clone()));
    let order: Vec<usize> = given.into_iter().chain(follow).collect();
    if order.iter().enumerate().any(|(new, old)| new != *old) {
        renumber_params(program, order);
    }
}

/// Keeps the params at `order`, in that order.
fn renumber_params(program: &mut Program, order: Vec<usize>) {
    if order.len() == program.params.len() && order.iter().enumerate().all(|(new, old)| new == *old) {
        return;
    }
    let mut new = vec![ParamId(0); program.params.len()];
    order.iter().enumerate().for_each(|(place, &old)| new[old] = ParamId(place as u32));
    let mut map = |affine: &Affine| {
        affine.substitute(&mut |atom| match atom {
            Atom::Param(ParamId(p)) => Some(Affine::param(new[*p as usize])),
            Atom::Index(_) | Atom::Floor(..) => None,
        })
    };
    let mut params: Vec<Param> = order.iter().map(|&old| program.params[old].clone()).collect();
    for param in &mut params {
        param.kind.parts_mut().iter_mut().for_each(|p| *p = map(p));
    }
    program.params = params;
    program.facts.iter_mut().for_each(|f| *f = f.rebuilt(map(&f.affine)));
    program.facts.sort();
    program.tensors.iter_mut().flat_map(|t| &mut t.extents).for_each(|e| *e = map(e));
    let mut rewriter = Rewriter::default();
    for definition in &mut program.definitions {
        definition.indices.iter_mut().for_each(|i| i.range = i.range.map(&mut map));
        for constraint in definition.conditions.iter_mut().chain(&mut definition.assumptions) {
            *constraint = constraint.rebuilt(map(&constraint.affine));
        }
        definition.body = rewriter.rewrite(&mut program.exprs, definition.body, &mut MapAffine(&mut map));
    }
}

struct MapAffine<'a>(&'a mut dyn FnMut(&Affine) -> Affine);

impl Rules for MapAffine<'_> {
    fn affine(&mut self, affine: &Affine) -> Affine {
        (self.0)(affine)
    }
}
