//! Which definitions stand alone and which are part of others.
//!
//! After derivation some definitions are never read, some are read once, some often. This pass drops the
//! first, puts generated pointwise definitions into their only reader (where nothing is then computed
//! twice), keeps a reduction that is read once nested, and gives the others a name and a box of their own.

use crate::diagnostic::Diagnostic;
use crate::print::{fresh, fresh_where};
use crate::program::expr::{Rewriter, Rules};
use crate::program::{
    Affine, Atom, BinaryOp, Comparison, CondId, Constraint, Definition, Expr, ExprId, Exprs, Index, Param, ParamId,
    ParamKind, Program, Range, TensorId, TensorKind, UnaryOp,
};
use crate::{build, guard, nested, sizes, system};
use std::collections::{HashMap, HashSet};

/// Settles every definition, and says whether anything changed. Those in `generated` are the compiler's own
/// and may be put into their readers.
pub fn settle(
    program: &mut Program,
    generated: &HashSet<TensorId>,
    taken: &mut HashSet<String>,
) -> Result<bool, Diagnostic> {
    let mut changed = false;
    loop {
        drop_unread(program);
        let readers = readers(program);
        let mut plan = Plan::default();
        // Readers first: what is put into a reader that is itself put elsewhere waits for the next round.
        for definition in program.definitions.iter().rev() {
            let reads = readers.get(&definition.tensor).map_or(&[][..], Vec::as_slice);
            decide(program, definition, reads, generated, &mut plan);
        }
        if plan.inlined.is_empty() && plan.named.is_empty() {
            return Ok(changed);
        }
        changed = true;
        for tensor in std::mem::take(&mut plan.named) {
            let shift = give_name(program, tensor, taken)?;
            if shift.iter().any(|s| s.as_constant().is_none_or(|c| *c != gradix_int::Int::ZERO)) {
                plan.shifted.insert(tensor, shift);
            }
        }
        apply(program, plan);
    }
}

#[derive(Default)]
struct Plan {
    inlined: HashSet<TensorId>,
    named: Vec<TensorId>,
    shifted: HashMap<TensorId, Vec<Affine>>,
}

/// An access in some definition.
struct Read {
    reader: TensorId,
    /// How many indices the reading definition has.
    indices: usize,
    subscripts: Vec<Affine>,
    /// How many operations use the value.
    uses: usize,
    /// How many nodes the reading definition's body has.
    size: usize,
}

/// The most nodes that a body may have after another is put into it.
const MAX_INLINED: usize = 24;

fn size(exprs: &Exprs, body: ExprId) -> usize {
    exprs.postorder(body).len()
}

fn readers(program: &Program) -> HashMap<TensorId, Vec<Read>> {
    let mut readers: HashMap<TensorId, Vec<Read>> = HashMap::new();
    for definition in &program.definitions {
        let order = program.exprs.postorder(definition.body);
        let mut uses: HashMap<ExprId, usize> = HashMap::from([(definition.body, 1)]);
        for operand in order.iter().flat_map(|id| program.exprs.operands(*id)) {
            *uses.entry(operand).or_default() += 1;
        }
        let count = order.len();
        for id in order {
            if let Expr::Access(tensor, subscripts) = &program.exprs[id] {
                let (reader, indices) = (definition.tensor, definition.indices.len());
                let read = Read { reader, indices, subscripts: subscripts.clone(), uses: uses[&id], size: count };
                readers.entry(*tensor).or_default().push(read);
            }
        }
    }
    readers
}

fn decide(program: &Program, definition: &Definition, reads: &[Read], generated: &HashSet<TensorId>, plan: &mut Plan) {
    let tensor = definition.tensor;
    let is_nested = program[tensor].kind == TensorKind::Nested;
    if program.outputs.contains(&tensor) {
        return;
    }
    if definition.reduction.is_none() && (is_nested || generated.contains(&tensor)) {
        let once = matches!(reads, [r] if r.uses == 1 && bare(&r.subscripts) && r.subscripts.len() == r.indices);
        let kept = matches!(reads, [r] if !plan.inlined.contains(&r.reader) && r.size + size(&program.exprs, definition.body) <= MAX_INLINED);
        if once && kept || is_trivial(&program.exprs, definition.body) {
            plan.inlined.insert(tensor);
            return;
        }
    }
    if is_nested && !(definition.reduction.is_some() && matches!(reads, [r] if bare(&r.subscripts))) {
        plan.named.push(tensor);
    }
}

/// Whether the subscripts are distinct bare indices.
fn bare(subscripts: &[Affine]) -> bool {
    let positions: Option<HashSet<usize>> = subscripts.iter().map(Affine::as_index).collect();
    positions.is_some_and(|p| p.len() == subscripts.len())
}

/// Whether computing it again costs nothing worth mention: a number, an element, or a number times an element.
fn is_trivial(exprs: &Exprs, body: ExprId) -> bool {
    let is_number = |id: ExprId| exprs.postorder(id).iter().all(|n| !matches!(exprs[*n], Expr::Access(..) | Expr::Select(..)));
    match &exprs[body] {
        Expr::Access(..) => true,
        Expr::Unary(UnaryOp::Neg, a) => is_trivial(exprs, *a),
        Expr::Binary(BinaryOp::Mul, a, b) => is_number(*a) && is_trivial(exprs, *b) || is_trivial(exprs, *a) && is_number(*b),
        Expr::Binary(BinaryOp::Div, a, b) => is_trivial(exprs, *a) && is_number(*b),
        Expr::Constant(_) | Expr::Index(_) => true,
        Expr::Unary(..) | Expr::Binary(..) | Expr::Select(..) => false,
    }
}

fn apply(program: &mut Program, plan: Plan) {
    let mut bodies: HashMap<TensorId, ExprId> = HashMap::new();
    let mut rewriter = Rewriter::default();
    for definition in &mut program.definitions {
        let mut rules = Apply { plan: &plan, bodies: &bodies };
        definition.body = rewriter.rewrite(&mut program.exprs, definition.body, &mut rules);
        if plan.inlined.contains(&definition.tensor) {
            bodies.insert(definition.tensor, definition.body);
        }
    }
    program.definitions.retain(|d| !plan.inlined.contains(&d.tensor));
}

struct Apply<'a> {
    plan: &'a Plan,
    bodies: &'a HashMap<TensorId, ExprId>,
}

impl Rules for Apply<'_> {
    fn index(&mut self, exprs: &mut Exprs, affine: Affine) -> ExprId {
        build::index(exprs, affine)
    }
    fn compare(&mut self, exprs: &mut Exprs, op: Comparison, a: ExprId, b: ExprId) -> CondId {
        build::compare(exprs, op, a, b)
    }
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        if let Some(&body) = self.bodies.get(&tensor) {
            return nested::remap(exprs, body, &subscripts);
        }
        match self.plan.shifted.get(&tensor) {
            Some(shift) => {
                let moved = subscripts.into_iter().zip(shift).map(|(s, by)| s - by.clone());
                exprs.access(tensor, moved.collect())
            }
            None => exprs.access(tensor, subscripts),
        }
    }
    fn unary(&mut self, exprs: &mut Exprs, op: UnaryOp, a: ExprId) -> ExprId {
        build::unary(exprs, op, a)
    }
    fn binary(&mut self, exprs: &mut Exprs, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        build::binary(exprs, op, a, b)
    }
    fn select(&mut self, exprs: &mut Exprs, c: CondId, a: ExprId, b: ExprId) -> ExprId {
        build::select(exprs, c, a, b)
    }
}

/// Turns a nested definition into a named one over a box that starts at 0. Gives the amount by which
/// subscripts have to be lowered.
fn give_name(program: &mut Program, tensor: TensorId, taken: &mut HashSet<String>) -> Result<Vec<Affine>, Diagnostic> {
    let place = program.definitions.iter().position(|d| d.tensor == tensor).expect("a defined tensor");
    let mut definition = program.definitions[place].clone();
    let context = program.size_context();
    let domain: Vec<Constraint> = definition.output_domain().into_iter().chain(context.iter().cloned()).collect();
    let mut shift = Vec::new();
    let mut extents = Vec::new();
    for position in 0..definition.rank {
        let index = Affine::index(position);
        let low = match system::implies(&domain, &Constraint::non_negative(index.clone())) {
            true => Affine::constant(0),
            false => bound(program, &index, &domain, false)?,
        };
        let last = bound_above(program, &definition.indices[position].range, &index, &domain)?;
        extents.push((last - low.clone()).shift(1));
        shift.push(low);
    }
    let outside = (definition.rank..definition.indices.len()).map(Affine::index);
    let moved = (0..definition.rank).map(|p| Affine::index(p) + shift[p].clone());
    let map: Vec<Affine> = moved.chain(outside).collect();
    let rows: Vec<Constraint> = definition.output_domain().iter().map(|c| c.with_indices(&map)).collect();
    let boxed: Vec<Range> = extents.iter().cloned().map(Range::extent).collect();
    let known = boxed.iter().enumerate().flat_map(|(p, r)| r.constraints(p).collect::<Vec<_>>());
    let known: Vec<Constraint> = known.chain(context).collect();
    let open = system::prune(rows, &known).unwrap_or_default();
    let body = nested::remap(&mut program.exprs, definition.body, &map);
    definition.body = match definition.reduction {
        Some(_) => body,
        None => {
            let zero = program.exprs.constant(0.0);
            let condition = guard::all(&mut program.exprs, &open);
            condition.map_or(body, |c| build::select(&mut program.exprs, c, body, zero))
        }
    };
    definition.conditions = definition.conditions.iter().map(|c| c.with_indices(&map)).collect();
    if definition.reduction.is_some() {
        definition.conditions.extend(open);
    }
    definition.assumptions.clear();
    let ranges = boxed.into_iter().chain(definition.indices[definition.rank..].iter().map(|i| i.range.map(|b| b.with_indices(&map))));
    let named = definition.indices.iter().zip(ranges);
    definition.indices = named.map(|(index, range)| Index { name: index.name.clone(), range }).collect();
    program.definitions[place] = definition;
    let record = &mut program.tensors[tensor.0 as usize];
    record.kind = TensorKind::Defined;
    record.name = fresh(&record.name, taken);
    record.extents = extents;
    Ok(shift)
}

/// The largest value of an index: its own bound in sizes where there is just one, otherwise what all of them say.
fn bound_above(program: &mut Program, range: &Range, index: &Affine, domain: &[Constraint]) -> Result<Affine, Diagnostic> {
    match range.high.as_slice() {
        [high] if !high.uses_indices() => Ok(high.clone()),
        _ => Ok(-bound(program, &-index.clone(), domain, false)?),
    }
}

/// The smallest value of `affine` in sizes.
fn bound(program: &mut Program, affine: &Affine, domain: &[Constraint], smallest: bool) -> Result<Affine, Diagnostic> {
    let bounds = system::lower_bounds(affine, domain, &|a| matches!(a, Atom::Index(_)))?;
    if bounds.is_empty() {
        return Err(system::too_complex());
    }
    Ok(sizes::derived(program, bounds, smallest))
}

/// Removes definitions that no result needs.
pub fn drop_unread(program: &mut Program) {
    let mut needed: HashSet<TensorId> = program.outputs.iter().copied().collect();
    for definition in program.definitions.iter().rev() {
        if needed.contains(&definition.tensor) {
            for id in program.exprs.postorder(definition.body) {
                if let Expr::Access(tensor, _) = &program.exprs[id] {
                    needed.insert(*tensor);
                }
            }
        }
    }
    program.definitions.retain(|d| needed.contains(&d.tensor));
}

/// Brings a program into its one canonical layout: inputs first; every nested definition right before
/// its reader, in the order of reading; no unused node. With `prune`, inputs and sizes that nothing
/// mentions are dropped. Gives the new ids of old tensors and expressions.
pub fn tidy(program: &mut Program, prune: bool) -> (HashMap<TensorId, TensorId>, HashMap<ExprId, ExprId>) {
    program.facts.sort();
    program.facts.dedup();
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
    if prune {
        prune_params(program);
    }
    (tensors, moved)
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

/// The outputs of a nested definition have the names of the reader's indices, and no two indices of one
/// definition have the same name.
fn name_indices(program: &mut Program) {
    let reserved = crate::derive::names::reserved(program);
    let mut given: HashMap<TensorId, Vec<String>> = HashMap::new();
    for place in (0..program.definitions.len()).rev() {
        let definition = &mut program.definitions[place];
        let mut used: HashSet<String> = HashSet::new();
        for (position, index) in definition.indices.iter_mut().enumerate() {
            if let Some(name) = given.get(&definition.tensor).and_then(|names| names.get(position)) {
                index.name = name.clone();
            }
            index.name = fresh_where(&index.name, |n| reserved.contains(n) || used.contains(n));
            used.insert(index.name.clone());
        }
        let names: Vec<String> = definition.indices.iter().map(|i| i.name.clone()).collect();
        for id in program.exprs.postorder(program.definitions[place].body) {
            if let Expr::Access(tensor, subscripts) = &program.exprs[id]
                && program[*tensor].kind == TensorKind::Nested
            {
                let bare = subscripts.iter().filter_map(Affine::as_index).map(|i| names[i].clone());
                given.insert(*tensor, bare.collect());
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
        let rows = definition.output_domain().iter().map(|c| c.with_indices(&map)).collect();
        let positions: Vec<usize> = (0..definition.rank).collect();
        let solved = system::solve(rows, &positions, &program.size_context()).ok()??;
        indices.iter_mut().zip(solved.ranges).for_each(|(index, range)| index.range = range);
        assumptions = [solved.conditions, solved.outer].concat();
    }
    let body = nested::remap(&mut program.exprs, definition.body, &map);
    let conditions = definition.conditions.iter().map(|c| c.with_indices(&map)).collect();
    Some(Definition { indices, assumptions, conditions, body, ..definition })
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
    let mut used = vec![false; program.params.len()];
    let mut see = |affine: &Affine| {
        affine.visit_atoms(&mut |atom| {
            if let Atom::Param(ParamId(p)) = atom {
                used[*p as usize] = true;
            }
        })
    };
    program.tensors.iter().flat_map(|t| &t.extents).for_each(&mut see);
    for definition in &program.definitions {
        definition.indices.iter().flat_map(|i| i.range.low.iter().chain(&i.range.high)).for_each(&mut see);
        definition.conditions.iter().chain(&definition.assumptions).for_each(|c| see(&c.affine));
        program.exprs.visit_affines(definition.body, &mut see);
    }
    for param in &program.params {
        if let ParamKind::Smallest(parts) | ParamKind::Largest(parts) = &param.kind {
            parts.iter().for_each(&mut see);
        }
    }
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
    let mut new = Vec::new();
    let mut count = 0;
    for &used in &used {
        new.push(ParamId(count));
        count += u32::from(used);
    }
    if count as usize == used.len() {
        return;
    }
    let mut map = |affine: &Affine| {
        affine.substitute(&mut |atom| match atom {
            Atom::Param(ParamId(p)) => Some(Affine::param(new[*p as usize])),
            Atom::Index(_) | Atom::Floor(..) => None,
        })
    };
    let mut params: Vec<Param> = Vec::new();
    for (param, used) in program.params.iter().zip(&used) {
        if *used {
            params.push(param.clone());
        }
    }
    for param in &mut params {
        if let ParamKind::Smallest(parts) | ParamKind::Largest(parts) = &mut param.kind {
            parts.iter_mut().for_each(|p| *p = map(p));
        }
    }
    program.params = params;
    program.facts.iter_mut().for_each(|f| *f = f.rebuilt(map(&f.affine)));
    program.tensors.iter_mut().flat_map(|t| &mut t.extents).for_each(|e| *e = map(e));
    let mut rewriter = Rewriter::default();
    for definition in &mut program.definitions {
        definition.indices.iter_mut().for_each(|i| i.range = i.range.map(&mut map));
        for constraint in definition.conditions.iter_mut().chain(&mut definition.assumptions) {
            *constraint = constraint.rebuilt(map(&constraint.affine));
        }
        definition.body = rewriter.rewrite(&mut program.exprs, definition.body, &mut MapAffine(&mut map));
    }
    let bodies: Vec<ExprId> = program.definitions.iter().map(|d| d.body).collect();
    let (exprs, bodies) = program.exprs.compacted(&bodies);
    program.exprs = exprs;
    program.definitions.iter_mut().zip(bodies).for_each(|(d, b)| d.body = b);
}

struct MapAffine<'a>(&'a mut dyn FnMut(&Affine) -> Affine);

impl Rules for MapAffine<'_> {
    fn affine(&mut self, affine: &Affine) -> Affine {
        (self.0)(affine)
    }
}
