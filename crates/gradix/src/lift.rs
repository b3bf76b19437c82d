//! Reductions inside expressions: definitions of their own, over just the indices that they use.

use crate::diagnostic::Diagnostic;
use crate::domain::system::{self, Facts, Unsolved};
use crate::domain::{bounds, guard};
use crate::program::expr::{Rewriter, Rules, WithIndices};
use crate::program::{
    Affine, Atom, Constraint, Definition, Expr, ExprId, Exprs, Index, Program, Range, Tensor, TensorId, TensorKind,
};

/// Adds `full`, a reduction whose outputs are all indices around it, as a nested definition over those
/// that it uses. Gives the access that stands for it and where each index went. An equal definition
/// behind one of the `shared` accesses is used again.
pub fn add(
    program: &mut Program,
    full: Definition,
    name: String,
    context: &[Constraint],
    shared: &[ExprId],
) -> Result<(ExprId, Vec<Affine>), Diagnostic> {
    let kept = kept_outputs(program, &full);
    add_over(program, full, &kept, name, context, shared)
}

/// The same for a reduction as the user wrote it: what it reads outside of a tensor is still to be found.
pub fn add_written(
    program: &mut Program,
    full: Definition,
    name: String,
    context: &[Constraint],
    shared: &[ExprId],
) -> Result<(ExprId, Vec<Affine>), Diagnostic> {
    let kept = kept_outputs(program, &full);
    let is_right = stays_inside(program, &full, context);
    let (definition, map) = narrowed_to(program, &full, &kept, context, is_right)?;
    Ok(insert(program, definition, map, &kept, name, context, shared))
}

/// What [`add_written`] makes of a reduction over the outputs at `kept`, where its `body` is known already.
pub fn as_read(
    program: &mut Program,
    full: &Definition,
    kept: &[usize],
    context: &[Constraint],
    body: ExprId,
) -> Result<Definition, Diagnostic> {
    let plain = Definition { body, ..narrowed_plain(program, full, kept, context)? };
    let excused = reading_inside(program, full, plain.clone(), kept, context);
    Ok(if excused == plain || stays_inside(program, full, context) { excused } else { plain })
}

fn stays_inside(program: &mut Program, full: &Definition, context: &[Constraint]) -> bool {
    bounds::stays_inside(program, full.body, &[context, &full.domain()].concat())
}

/// The positions of the outputs that a reduction uses.
fn kept_outputs(program: &Program, full: &Definition) -> Vec<usize> {
    let used = used_outputs(program, full);
    (0..full.rank).filter(|&i| used[i]).collect()
}

/// The same over the outputs at `kept`, among which are all that it uses.
pub fn add_over(
    program: &mut Program,
    full: Definition,
    kept: &[usize],
    name: String,
    context: &[Constraint],
    shared: &[ExprId],
) -> Result<(ExprId, Vec<Affine>), Diagnostic> {
    let (definition, map) = narrowed(program, &full, kept, context)?;
    Ok(insert(program, definition, map, kept, name, context, shared))
}

fn insert(
    program: &mut Program,
    definition: Definition,
    map: Vec<Affine>,
    kept: &[usize],
    name: String,
    context: &[Constraint],
    shared: &[ExprId],
) -> (ExprId, Vec<Affine>) {
    let mut definition = Definition { tensor: TensorId(program.tensors.len() as u32), ..definition };
    drop_needless_assumptions(program, &mut definition, context);
    let subscripts: Vec<Affine> = kept.iter().map(|&old| Affine::index(old)).collect();
    for &access in shared {
        let Expr::Access(tensor, existing) = &program.exprs[access] else { continue };
        let other = program.definition_of(*tensor).expect("a nested tensor is defined");
        if *existing == subscripts && (Definition { tensor: *tensor, ..definition.clone() }) == *other {
            return (access, map);
        }
    }
    let rank = kept.len();
    let tensor = program.add_tensor(Tensor { name, kind: TensorKind::Nested, extents: Vec::new(), rank });
    program.definitions.push(definition);
    (program.exprs.access(tensor, subscripts), map)
}

/// Makes `body` the value of a definition. A body that is nothing but the nested reduction that was added last,
/// over all outputs, becomes the definition's own; the tensor that it was is returned, and no longer defined.
pub fn define(
    program: &mut Program,
    tensor: TensorId,
    outputs: Vec<Index>,
    assumptions: Vec<Constraint>,
    body: ExprId,
) -> Option<TensorId> {
    let rank = outputs.len();
    if let Expr::Access(inner, subscripts) = &program.exprs[body]
        && program[*inner].kind == TensorKind::Nested
        && subscripts.iter().enumerate().all(|(i, s)| s.as_index() == Some(i))
        && subscripts.len() == rank
        && program.definitions.last().is_some_and(|d| d.tensor == *inner)
    {
        let inner = *inner;
        let nested = program.definitions.pop().expect("just seen");
        let indices = outputs.into_iter().chain(nested.indices[rank..].iter().cloned()).collect();
        program.definitions.push(Definition { tensor, indices, assumptions, ..nested });
        return Some(inner);
    }
    define_pointwise(program, tensor, outputs, assumptions, body);
    None
}

/// Makes `body` the value of a definition without a reduction of its own.
pub fn define_pointwise(
    program: &mut Program,
    tensor: TensorId,
    outputs: Vec<Index>,
    assumptions: Vec<Constraint>,
    body: ExprId,
) {
    let (rank, reduction, conditions) = (outputs.len(), None, Vec::new());
    program.definitions.push(Definition { tensor, indices: outputs, rank, reduction, conditions, assumptions, body });
}

/// That the reader is evaluated at all matters only where the body could not be computed otherwise.
pub fn drop_needless_assumptions(program: &mut Program, definition: &mut Definition, context: &[Constraint]) {
    let needed: Vec<Constraint> = definition.assumptions.iter().filter(|c| c.affine.uses_indices()).cloned().collect();
    if needed.len() == definition.assumptions.len() {
        return;
    }
    let free = Definition { assumptions: needed.clone(), ..definition.clone() };
    let domain = [context, &free.domain()].concat();
    if bounds::stays_inside(program, definition.body, &domain) {
        definition.assumptions = needed;
    }
}

/// The same definition over the outputs at `kept` only (the others must not be used).
pub fn narrowed(
    program: &mut Program,
    full: &Definition,
    kept: &[usize],
    context: &[Constraint],
) -> Result<(Definition, Vec<Affine>), Diagnostic> {
    narrowed_to(program, full, kept, context, true)
}

/// The same as it stands: what it reads outside of tensors is still to be found.
pub fn narrowed_plain(
    program: &mut Program,
    full: &Definition,
    kept: &[usize],
    context: &[Constraint],
) -> Result<Definition, Diagnostic> {
    Ok(narrowed_to(program, full, kept, context, false)?.0)
}

/// The same; whether it `is_right` that no read of the full definition leaves its tensor.
fn narrowed_to(
    program: &mut Program,
    full: &Definition,
    kept: &[usize],
    context: &[Constraint],
    is_right: bool,
) -> Result<(Definition, Vec<Affine>), Diagnostic> {
    let mut map = vec![Affine::index(u32::MAX as usize); full.indices.len()];
    for (new, old) in kept.iter().copied().chain(full.rank..full.indices.len()).enumerate() {
        map[old] = Affine::index(new);
    }
    let (outputs, assumptions) = outputs_of(full, kept, context)?;
    let rename = |range: &Range| range.map(|bound| bound.with_indices(&map));
    let outer = kept.iter().zip(outputs).map(|(&old, range)| (full.indices[old].name.clone(), range));
    let inner = full.indices[full.rank..].iter().map(|i| (i.name.clone(), i.range.clone()));
    let indices = outer.chain(inner).map(|(name, range)| Index { name, range: rename(&range) }).collect();
    let definition = Definition {
        tensor: full.tensor,
        indices,
        rank: kept.len(),
        reduction: full.reduction,
        conditions: full.conditions.iter().map(|c| c.with_indices(&map)).collect(),
        assumptions: assumptions.iter().map(|c| c.with_indices(&map)).collect(),
        body: remap(&mut program.exprs, full.body, &map),
    };
    let definition = if is_right { reading_inside(program, full, definition, kept, context) } else { definition };
    Ok((definition, map))
}

/// What holds for outputs that went may be more than what is left says of the others (`i == 2*j` says that `i` is even).
/// Reads that need it are excused where they would leave their tensors: nothing looks at the value there.
fn reading_inside(
    program: &mut Program,
    full: &Definition,
    mut narrowed: Definition,
    kept: &[usize],
    context: &[Constraint],
) -> Definition {
    let ties = |c: &Constraint| {
        let (mut gone, mut stays) = (false, !c.affine.is_straight());
        c.affine.visit_indices(&mut |i| if kept.contains(&i) { stays = true } else { gone = true });
        gone && stays
    };
    let domain = [context, &narrowed.domain()].concat();
    let open = full.output_domain().iter().any(ties) && !bounds::stays_inside(program, narrowed.body, &domain);
    if open && bounds::can_leave(program, narrowed.body, &domain) {
        let mut excused = Excused { tensors: &program.tensors, domain: Facts::new(domain) };
        narrowed.body = Rewriter::default().rewrite(&mut program.exprs, narrowed.body, &mut excused);
    }
    narrowed
}

/// Replaces accesses that may leave their tensors by 0 where they do.
struct Excused<'a> {
    tensors: &'a [Tensor],
    domain: Facts<'static>,
}

impl Rules for Excused<'_> {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        let access = exprs.access(tensor, subscripts.clone());
        let record = &self.tensors[tensor.0 as usize];
        if record.kind == TensorKind::Nested {
            return access;
        }
        let rows = subscripts.iter().zip(&record.extents).flat_map(|(s, extent)| bounds::inside(s, extent));
        let open: Vec<Constraint> = rows.filter(|row| !self.domain.implies(row)).collect();
        let zero = exprs.constant(0.0);
        guard::all(exprs, &open).map_or(access, |condition| exprs.add(Expr::Select(condition, access, zero)))
    }
}

/// The expression with its indices replaced.
pub fn remap(exprs: &mut Exprs, root: ExprId, map: &[Affine]) -> ExprId {
    let identity = map.iter().enumerate().all(|(i, a)| a.as_index() == Some(i));
    if identity {
        return root;
    }
    Rewriter::default().rewrite(exprs, root, &mut WithIndices(map))
}

/// Which outputs the body, the conditions or the ranges of a reduction mention.
pub fn used_outputs(program: &Program, full: &Definition) -> Vec<bool> {
    let mut used = program.exprs.used_indices(full.body, full.indices.len());
    let mut see = |affine: &Affine| affine.visit_indices(&mut |i| used[i] = true);
    full.conditions.iter().for_each(|c| see(&c.affine));
    for index in &full.indices[full.rank..] {
        index.range.low.iter().chain(&index.range.high).for_each(&mut see);
    }
    used.truncate(full.rank);
    used
}

/// The ranges of the kept outputs and the assumptions on them, without the other outputs.
fn outputs_of(
    full: &Definition,
    kept: &[usize],
    context: &[Constraint],
) -> Result<(Vec<Range>, Vec<Constraint>), Diagnostic> {
    let alone = |affine: &Affine| {
        let mut fine = true;
        affine.visit_indices(&mut |i| fine &= kept.contains(&i));
        fine
    };
    let written: Vec<Range> = kept.iter().map(|&i| full.indices[i].range.clone()).collect();
    let closed = written.iter().flat_map(|r| r.low.iter().chain(&r.high)).all(alone);
    let (own, foreign): (Vec<_>, Vec<_>) = full.assumptions.iter().cloned().partition(|c| alone(&c.affine));
    if closed && foreign.is_empty() && kept.len() == full.rank {
        return Ok((written, own));
    }
    let eliminated = |atom: &Atom| matches!(atom, Atom::Index(i) if !kept.contains(&(*i as usize)));
    let known: Vec<Constraint> = kept
        .iter()
        .filter(|_| closed)
        .flat_map(|&i| full.indices[i].range.constraints(i).collect::<Vec<_>>())
        .chain(context.iter().cloned())
        .collect();
    let projected = system::project(&full.output_domain(), &eliminated)?;
    let Some(rows) = system::prune(projected, &known) else {
        let never = Constraint::non_negative(Affine::constant(-1));
        return Ok((kept.iter().map(|_| Range::extent(Affine::constant(0))).collect(), vec![never]));
    };
    if closed {
        return Ok((written, rows));
    }
    let solved = match system::solve(rows.clone(), kept, context) {
        Err(Unsolved::Unbounded(_)) => {
            let hull = hull(&[context, &full.output_domain()].concat(), kept)?;
            system::solve([rows, hull].concat(), kept, context)
        }
        solved => solved,
    };
    match solved {
        Ok(Some(solved)) => Ok((solved.ranges, [solved.conditions, solved.outer].concat())),
        Ok(None) => Ok((kept.iter().map(|_| Range::extent(Affine::constant(0))).collect(), own)),
        Err(Unsolved::TooLarge | Unsolved::Unbounded(_)) => Err(system::too_complex()),
    }
}

/// Bounds of indices in sizes alone, which rows that have floors of an index may have made redundant.
fn hull(domain: &[Constraint], positions: &[usize]) -> Result<Vec<Constraint>, Diagnostic> {
    let is_index = |atom: &Atom| matches!(atom, Atom::Index(_));
    let mut rows = Vec::new();
    for index in positions.iter().map(|&p| Affine::index(p)) {
        let below = system::lower_bounds(&index, domain, &is_index)?;
        let above = system::lower_bounds(&-index.clone(), domain, &is_index)?;
        rows.extend(below.into_iter().map(|low| Constraint::at_most(low, index.clone())));
        rows.extend(above.into_iter().map(|high| Constraint::at_most(index.clone(), -high)));
    }
    Ok(rows)
}
