//! Reductions inside expressions: definitions of their own, over just the indices that they use.

use crate::bounds;
use crate::diagnostic::Diagnostic;
use crate::program::expr::{Rewriter, WithIndices};
use crate::program::{
    Affine, Atom, Constraint, Definition, Expr, ExprId, Exprs, Index, Program, Range, Tensor, TensorId, TensorKind,
};
use crate::system::{self, Unsolved};

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
    let used = used_outputs(program, &full);
    let kept: Vec<usize> = (0..full.rank).filter(|&i| used[i]).collect();
    add_over(program, full, &kept, name, context, shared)
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
    let mut definition = Definition { tensor: TensorId(program.tensors.len() as u32), ..definition };
    drop_needless_assumptions(program, &mut definition, context);
    let subscripts: Vec<Affine> = kept.iter().map(|&old| Affine::index(old)).collect();
    for &access in shared {
        let Expr::Access(tensor, existing) = &program.exprs[access] else { continue };
        let other = program.definition_of(*tensor).expect("a nested tensor is defined");
        if *existing == subscripts && (Definition { tensor: *tensor, ..definition.clone() }) == *other {
            return Ok((access, map));
        }
    }
    let rank = kept.len();
    let tensor = program.add_tensor(Tensor { name, kind: TensorKind::Nested, extents: Vec::new(), rank });
    program.definitions.push(definition);
    Ok((program.exprs.access(tensor, subscripts), map))
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
    Ok((definition, map))
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
    match system::solve(rows, kept, context) {
        Ok(Some(solved)) => Ok((solved.ranges, [solved.conditions, solved.outer].concat())),
        Ok(None) => Ok((kept.iter().map(|_| Range::extent(Affine::constant(0))).collect(), own)),
        Err(Unsolved::TooLarge | Unsolved::Unbounded(_)) => Err(system::too_complex()),
    }
}
