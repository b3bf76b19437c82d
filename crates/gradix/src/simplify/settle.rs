//! Which definitions stand alone and which are part of others.
//!
//! After derivation some definitions are never read, some are read once, some often. This pass drops the
//! first, puts generated pointwise definitions into their only reader (where nothing is then computed
//! twice), keeps a reduction that is read once nested, and gives the others a name and a box of their own.

use crate::diagnostic::Diagnostic;
use crate::domain::{bounds, extent, guard, system};
use crate::lift;
use crate::program::build;
use crate::program::expr::{Rewriter, Rules};
use crate::program::names::fresh;
use crate::program::{
    Affine, Atom, BinaryOp, Comparison, CondId, Constraint, Definition, Expr, ExprId, Exprs, Index, ParamId, ParamKind,
    Program, Range, TensorId, TensorKind, UnaryOp, circles,
};
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
        changed |= narrow_nested(program)?;
        changed |= merge_whole(program);
        let readers = readers(program);
        let mut plan = Plan { recurrent: circles::recurrent(program), ..Plan::default() };
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

/// Drops outputs of nested definitions that nothing in them depends on any more; a named reduction that does
/// not depend on all of its outputs reads a nested one that is computed once.
fn narrow_nested(program: &mut Program) -> Result<bool, Diagnostic> {
    let context = program.size_context();
    let mut kept: HashMap<TensorId, Vec<usize>> = HashMap::new();
    let mut changed = false;
    for mut definition in std::mem::take(&mut program.definitions) {
        let used = lift::used_outputs(program, &definition);
        let tensor = definition.tensor;
        let assumed = definition.assumptions.len();
        lift::drop_needless_assumptions(program, &mut definition, &context);
        changed |= definition.assumptions.len() < assumed;
        if definition.reduction.is_none() || !used.contains(&false) {
            program.definitions.push(definition);
            continue;
        }
        changed = true;
        if program[tensor].kind == TensorKind::Nested {
            let positions: Vec<usize> = (0..definition.rank).filter(|&i| used[i]).collect();
            let mut narrowed = lift::narrowed(program, &definition, &positions, &context)?.0;
            lift::drop_needless_assumptions(program, &mut narrowed, &context);
            program.definitions.push(narrowed);
            program.tensors[tensor.0 as usize].rank = positions.len();
            kept.insert(tensor, positions);
        } else {
            let (name, outputs) = (program[tensor].name.clone(), definition.indices[..definition.rank].to_vec());
            let (access, _) = lift::add(program, definition, name, &context, &[])?;
            lift::define_pointwise(program, tensor, outputs, Vec::new(), access);
        }
    }
    let mut rewriter = Rewriter::default();
    for definition in program.definitions.iter_mut().filter(|_| !kept.is_empty()) {
        definition.body = rewriter.rewrite(&mut program.exprs, definition.body, &mut Narrowed(&kept));
    }
    Ok(changed)
}

/// A named definition that is nothing but a nested reduction over all of its outputs becomes that reduction.
fn merge_whole(program: &mut Program) -> bool {
    let is_whole = |definition: &Definition| match &program.exprs[definition.body] {
        Expr::Access(inner, subscripts) => {
            let identity = subscripts.iter().enumerate().all(|(i, s)| s.as_index() == Some(i));
            let named = program[definition.tensor].kind == TensorKind::Defined && definition.reduction.is_none();
            let whole = named && identity && subscripts.len() == definition.rank;
            (whole && program[*inner].kind == TensorKind::Nested).then_some(*inner)
        }
        _ => None,
    };
    let wholes: HashMap<TensorId, TensorId> =
        program.definitions.iter().filter_map(|d| is_whole(d).map(|inner| (inner, d.tensor))).collect();
    let readers = readers(program);
    let single = |inner: &TensorId| readers.get(inner).is_some_and(|reads| reads.len() == 1);
    let reduced = |d: &Definition| d.reduction.is_some() && wholes.contains_key(&d.tensor) && single(&d.tensor);
    let moved: HashMap<TensorId, Definition> =
        program.definitions.iter().filter(|d| reduced(d)).map(|d| (wholes[&d.tensor], d.clone())).collect();
    for definition in &mut program.definitions {
        if let Some(inner) = moved.get(&definition.tensor) {
            let outputs = definition.indices[..definition.rank].iter();
            let indices = outputs.chain(&inner.indices[inner.rank..]).cloned().collect();
            let (tensor, assumptions) = (definition.tensor, definition.assumptions.clone());
            *definition = Definition { tensor, indices, assumptions, ..inner.clone() };
        }
    }
    if !moved.is_empty() {
        drop_unread(program);
    }
    !moved.is_empty()
}

struct Narrowed<'a>(&'a HashMap<TensorId, Vec<usize>>);

impl Rules for Narrowed<'_> {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        let subscripts = match self.0.get(&tensor) {
            Some(kept) => kept.iter().map(|&i| subscripts[i].clone()).collect(),
            None => subscripts,
        };
        exprs.access(tensor, subscripts)
    }
}

#[derive(Default)]
struct Plan {
    inlined: HashSet<TensorId>,
    /// What belongs to a circle, with its number.
    recurrent: HashMap<TensorId, usize>,
    /// The circles of which a definition is put into its readers: the others wait for the next round.
    opened: HashSet<usize>,
    named: Vec<TensorId>,
    shifted: HashMap<TensorId, Vec<Affine>>,
}

/// An access in some definition.
struct Read {
    reader: TensorId,
    /// How many indices the reading definition has.
    indices: usize,
    subscripts: Vec<Affine>,
    /// How often it would be written if nothing were shared.
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
        for id in order.iter().rev() {
            let times = uses[id];
            for operand in program.exprs.operands(*id) {
                let known = uses.entry(operand).or_default();
                *known = known.saturating_add(times);
            }
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
        let circle = plan.recurrent.get(&tensor);
        let stays = circle.is_some() && circles::reads_itself(program, definition);
        if !stays && (once && kept || is_trivial(&program.exprs, definition.body)) {
            if circle.is_none_or(|&circle| plan.opened.insert(circle)) {
                plan.inlined.insert(tensor);
            }
            return;
        }
    }
    if is_nested && !(definition.reduction.is_some() && matches!(reads, [r] if r.uses == 1 && bare(&r.subscripts))) {
        plan.named.push(tensor);
    }
}

/// Whether the subscripts are distinct bare indices.
fn bare(subscripts: &[Affine]) -> bool {
    let positions: Option<HashSet<usize>> = subscripts.iter().map(Affine::as_index).collect();
    positions.is_some_and(|p| p.len() == subscripts.len())
}

/// Whether computing it again costs nothing worth mention: a number, an element, or a number times an element.
pub fn is_trivial(exprs: &Exprs, body: ExprId) -> bool {
    let is_number =
        |id: ExprId| exprs.postorder(id).iter().all(|n| !matches!(exprs[*n], Expr::Access(..) | Expr::Select(..)));
    match &exprs[body] {
        Expr::Access(..) => true,
        Expr::Unary(UnaryOp::Neg | UnaryOp::Stop, a) => is_trivial(exprs, *a),
        Expr::Binary(BinaryOp::Mul, a, b) => {
            is_number(*a) && is_trivial(exprs, *b) || is_trivial(exprs, *a) && is_number(*b)
        }
        Expr::Binary(BinaryOp::Div, a, b) => is_trivial(exprs, *a) && is_number(*b),
        Expr::Constant(_) | Expr::Index(_) => true,
        Expr::Unary(..) | Expr::Binary(..) | Expr::Select(..) => false,
    }
}

fn apply(program: &mut Program, plan: Plan) {
    let mut bodies: HashMap<TensorId, ExprId> = HashMap::new();
    let mut rewriter = Rewriter::default();
    // In a circle, a reader may stand before what is put into it.
    let is_inlined = |definition: &Definition| plan.inlined.contains(&definition.tensor);
    for inlined in [true, false] {
        for definition in program.definitions.iter_mut().filter(|d| is_inlined(d) == inlined) {
            let mut rules = Apply { plan: &plan, bodies: &bodies };
            definition.body = rewriter.rewrite(&mut program.exprs, definition.body, &mut rules);
            if inlined {
                bodies.insert(definition.tensor, definition.body);
            }
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
            return lift::remap(exprs, body, &subscripts);
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

/// Gives every nested definition a name and a box of its own.
pub fn name_all(program: &mut Program) -> Result<(), Diagnostic> {
    let nested = program.definitions.iter().map(|d| d.tensor).filter(|t| program[*t].kind == TensorKind::Nested);
    let nested = nested.collect();
    name_some(program, nested)
}

/// Gives some nested definitions a name and a box of their own.
pub fn name_some(program: &mut Program, nested: Vec<TensorId>) -> Result<(), Diagnostic> {
    let mut taken = crate::program::names::taken(program);
    let mut plan = Plan::default();
    for tensor in nested {
        let shift = give_name(program, tensor, &mut taken)?;
        if shift.iter().any(|s| s.as_constant().is_none_or(|c| *c != gradix_int::Int::ZERO)) {
            plan.shifted.insert(tensor, shift);
        }
    }
    apply(program, plan);
    Ok(())
}

/// Turns a nested definition into a named one over a box that starts at 0. Gives the amount by which
/// subscripts have to be lowered.
fn give_name(program: &mut Program, tensor: TensorId, taken: &mut HashSet<String>) -> Result<Vec<Affine>, Diagnostic> {
    let place = program.definitions.iter().position(|d| d.tensor == tensor).expect("a defined tensor");
    let mut definition = program.definitions[place].clone();
    let context = program.size_context();
    let (shift, extents) = enclosing_box(program, &definition, &context)?;
    let outside = (definition.rank..definition.indices.len()).map(Affine::index);
    let moved = (0..definition.rank).map(|p| Affine::index(p) + shift[p].clone());
    let map: Vec<Affine> = moved.chain(outside).collect();
    let rows: Vec<Constraint> = definition.output_domain().iter().map(|c| c.with_indices(&map)).collect();
    let boxed: Vec<Range> = extents.iter().cloned().map(Range::extent).collect();
    let known = boxed.iter().enumerate().flat_map(|(p, r)| r.constraints(p).collect::<Vec<_>>());
    let known: Vec<Constraint> = known.chain(context).collect();
    let mut open = system::prune(rows, &known).unwrap_or_else(|| vec![Constraint::non_negative(Affine::constant(-1))]);
    let body = lift::remap(&mut program.exprs, definition.body, &map);
    // That the reader is evaluated at all matters only where the body could not be computed otherwise.
    let reduced = definition.indices.iter().enumerate().skip(definition.rank);
    let inner = reduced.flat_map(|(p, i)| i.range.map(|b| b.with_indices(&map)).constraints(p).collect::<Vec<_>>());
    let inner: Vec<Constraint> = inner.chain(definition.conditions.iter().map(|c| c.with_indices(&map))).collect();
    let needed: Vec<Constraint> = open.iter().filter(|c| c.affine.uses_indices()).cloned().collect();
    if needed.len() < open.len() && bounds::stays_inside(program, body, &[known, needed.clone(), inner].concat()) {
        open = needed;
    }
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
    let ranges = boxed
        .into_iter()
        .chain(definition.indices[definition.rank..].iter().map(|i| i.range.map(|b| b.with_indices(&map))));
    let named = definition.indices.iter().zip(ranges);
    definition.indices = named.map(|(index, range)| Index { name: index.name.clone(), range }).collect();
    program.definitions[place] = definition;
    let record = &mut program.tensors[tensor.0 as usize];
    record.kind = TensorKind::Defined;
    record.name = fresh(&record.name, taken);
    record.extents = extents;
    Ok(shift)
}

/// The first place and the extent of the outputs of a definition in each dimension.
fn enclosing_box(
    program: &mut Program,
    definition: &Definition,
    context: &[Constraint],
) -> Result<(Vec<Affine>, Vec<Affine>), Diagnostic> {
    let domain: Vec<Constraint> = definition.output_domain().into_iter().chain(context.iter().cloned()).collect();
    if system::is_empty(&domain) {
        let nothing = vec![Affine::constant(0); definition.rank];
        return Ok((nothing.clone(), nothing));
    }
    let (mut first, mut extents) = (Vec::new(), Vec::new());
    for position in 0..definition.rank {
        let index = Affine::index(position);
        if let Some(step) = only_value(program, &index, &domain)? {
            first.push(step);
            extents.push(Affine::constant(1));
            continue;
        }
        let low = match system::implies(&domain, &Constraint::non_negative(index.clone())) {
            true => Affine::constant(0),
            false => bound(program, &index, &domain, false)?,
        };
        let end = end_above(program, &definition.indices[position].range, &index, &domain)?;
        extents.push(end - low.clone());
        first.push(low);
    }
    Ok((first, extents))
}

/// The value of an index that has just one, which moves from step to step.
fn only_value(program: &Program, index: &Affine, domain: &[Constraint]) -> Result<Option<Affine>, Diagnostic> {
    let is_time = |param: &crate::program::Param| matches!(param.kind, ParamKind::Time(_));
    if !program.params.iter().any(is_time) {
        return Ok(None);
    }
    let is_index = |atom: &Atom| matches!(atom, Atom::Index(_));
    let below = system::lower_bounds(index, domain, &is_index)?;
    let above = system::lower_bounds(&-index.clone(), domain, &is_index)?;
    Ok(match (below.as_slice(), above.as_slice()) {
        ([low], [high]) if *low == -high.clone() && mentions_time(program, low) => Some(low.clone()),
        _ => None,
    })
}

fn mentions_time(program: &Program, affine: &Affine) -> bool {
    let mut found = false;
    affine.visit_atoms(&mut |atom| found |= is_time(program, atom));
    found
}

fn is_time(program: &Program, atom: &Atom) -> bool {
    matches!(atom, Atom::Param(ParamId(p)) if matches!(program.params[*p as usize].kind, ParamKind::Time(_)))
}

/// One more than the largest value of an index: by its own bound in sizes where there is just one, otherwise by what all of them
/// say.
fn end_above(
    program: &mut Program,
    range: &Range,
    index: &Affine,
    domain: &[Constraint],
) -> Result<Affine, Diagnostic> {
    match range.high.as_slice() {
        [high] if !high.uses_indices() && !mentions_time(program, high) => Ok(high.shift(1)),
        _ => Ok(-bound(program, &-index.shift(1), domain, false)?),
    }
}

/// The smallest value of `affine` in sizes, at any step.
fn bound(program: &mut Program, affine: &Affine, domain: &[Constraint], smallest: bool) -> Result<Affine, Diagnostic> {
    let varies = |atom: &Atom| matches!(atom, Atom::Index(_)) || is_time(program, atom);
    let bounds = system::lower_bounds(affine, domain, &varies)?;
    if bounds.is_empty() {
        return Err(system::too_complex());
    }
    Ok(extent::extent(program, bounds, smallest))
}

/// Removes definitions that no result needs.
pub fn drop_unread(program: &mut Program) {
    let bodies: HashMap<TensorId, ExprId> = program.definitions.iter().map(|d| (d.tensor, d.body)).collect();
    let mut needed: HashSet<TensorId> = program.outputs.iter().copied().collect();
    let mut open = program.outputs.clone();
    while let Some(tensor) = open.pop() {
        let Some(&body) = bodies.get(&tensor) else { continue };
        open.extend(program.exprs.accesses(body).map(|(read, _)| read).filter(|&read| needed.insert(read)));
    }
    program.definitions.retain(|d| needed.contains(&d.tensor));
}
