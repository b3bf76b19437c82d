//! What every reader multiplies a part by is multiplied in where the part is computed.
//!
//! ```text
//! E[i, j] = exp(-s[i, j])                            E[i, j] = exp(-s[i, j]) * dy[i]
//! dw[j] = sum[i] E[i, j] * dy[i]                     dw[j] = sum[i] E[i, j]
//! dx[i] = sum[j] E[i, j] * dy[i] * z[j]              dx[i] = sum[j] E[i, j] * z[j]
//! ```
//!
//! So it is done once for all readers, and they read less.

use super::canon::{Chain, chain};
use super::share;
use super::work::{Work, work};
use crate::domain::{bounds, guard};
use crate::lift;
use crate::program::build::{self, Product};
use crate::program::expr::Rewriter;
use crate::program::{Affine, Constraint, Definition, Expr, ExprId, Exprs, Program, TensorId};
use crate::simplify::settle::is_trivial;
use std::collections::{BTreeSet, HashMap, HashSet};

/// A product in which a part is read.
struct Use {
    /// The position of the definition.
    reader: usize,
    /// The whole product.
    root: ExprId,
    product: Product,
    /// What stands beside the part: as it is, whether it divides, and in the indices of the part.
    beside: Vec<(ExprId, bool, ExprId)>,
}

/// For each definition, the products in which each tensor is a factor.
type Products = HashMap<TensorId, HashMap<TensorId, Vec<ExprId>>>;

/// For each tensor, what reads it, or once did.
type Readers = HashMap<TensorId, BTreeSet<TensorId>>;

/// Moves common factors and divisors into the parts; says whether there were any.
pub fn absorb(program: &mut Program, sizes: &[f64], context: &[Constraint]) -> bool {
    let lazy = share::lazy(program);
    let is_part = |d: &&Definition| {
        !program.outputs.contains(&d.tensor)
            && d.reduction.is_none()
            && !lazy.contains(&d.tensor)
            && !is_trivial(&program.exprs, d.body)
    };
    let parts: HashSet<TensorId> = program.definitions.iter().filter(is_part).map(|d| d.tensor).collect();
    let (mut products, mut readers) = (Products::new(), Readers::new());
    for definition in &program.definitions {
        let own = products_of(&program.exprs, definition.body);
        own.keys().for_each(|tensor| _ = readers.entry(*tensor).or_default().insert(definition.tensor));
        products.insert(definition.tensor, own);
    }
    let mut pending: Vec<TensorId> =
        program.definitions.iter().map(|d| d.tensor).filter(|tensor| parts.contains(tensor)).collect();
    let mut changed = false;
    while let Some(part) = pending.pop() {
        let Some(relieved) = absorb_into(program, part, &readers, &products, sizes, context) else { continue };
        changed = true;
        // What it has taken in may be what those beside it were waiting for.
        for definition in relieved.into_iter().chain([part]).filter_map(|tensor| program.definition_of(tensor)) {
            let new = products_of(&program.exprs, definition.body);
            let before = &products[&definition.tensor];
            let read = program.exprs.accesses(definition.body).map(|(tensor, _)| tensor);
            pending.extend(read.filter(|t| parts.contains(t) && new.get(t) != before.get(t)));
            new.keys().for_each(|tensor| _ = readers.entry(*tensor).or_default().insert(definition.tensor));
            products.insert(definition.tensor, new);
        }
        pending.push(part);
    }
    changed
}

/// For each tensor, the products in which it is a factor, each once. What is no factor of another product is one itself.
fn products_of(exprs: &Exprs, body: ExprId) -> HashMap<TensorId, Vec<ExprId>> {
    let mut products: HashMap<TensorId, Vec<ExprId>> = HashMap::new();
    for root in roots(exprs, body) {
        for (base, _) in Product::of(exprs, root).parts() {
            if let Expr::Access(tensor, _) = &exprs[base] {
                let known = products.entry(*tensor).or_default();
                if known.last() != Some(&root) {
                    known.push(root);
                }
            }
        }
    }
    products
}

/// Moves something into a part, and tells which definitions read it.
fn absorb_into(
    program: &mut Program,
    part: TensorId,
    readers: &Readers,
    products: &Products,
    sizes: &[f64],
    context: &[Constraint],
) -> Option<BTreeSet<TensorId>> {
    let place = program.definitions.iter().position(|d| d.tensor == part)?;
    let uses = uses(program, part, readers.get(&part)?, products)?;
    let (first, others) = uses.split_first()?;
    let everywhere = |(_, divides, own): &(ExprId, bool, ExprId)| {
        others.iter().all(|other| other.beside.iter().any(|(_, d, o)| (d, o) == (divides, own)))
    };
    let common: Vec<(ExprId, bool)> =
        first.beside.iter().filter(|b| everywhere(b)).map(|(_, divides, own)| (*own, *divides)).collect();
    let changed = uses.iter().map(|one| program.definitions[one.reader].tensor).collect();
    common.into_iter().any(|factor| move_in(program, place, &uses, factor, sizes, context)).then_some(changed)
}

/// Moves one factor, if that lowers the work and it can be computed wherever the part is.
fn move_in(
    program: &mut Program,
    place: usize,
    uses: &[Use],
    (factor, divides): (ExprId, bool),
    sizes: &[f64],
    context: &[Constraint],
) -> bool {
    let mut part = program.definitions[place].clone();
    let (body, guard) = match program.exprs[part.body] {
        Expr::Select(c, a, b) if program.exprs.as_constant(b) == Some(0.0) => {
            match guard::conjunction(&program.exprs, c) {
                Some(guard) => (a, guard),
                None => return false,
            }
        }
        _ => (part.body, Vec::new()),
    };
    let domain = [context, &part.domain(), &guard].concat();
    if !bounds::stays_inside(program, factor, &domain) {
        return false;
    }
    let exprs = &mut program.exprs;
    let product = if divides { build::divide(exprs, body, factor) } else { build::multiply(exprs, body, factor) };
    part.body = Rewriter::with([(body, product)]).copy(exprs, part.body);
    let mut changed: HashMap<usize, Definition> = HashMap::from([(place, part)]);
    for one in uses {
        let reader = changed.entry(one.reader).or_insert_with(|| program.definitions[one.reader].clone());
        let (own, ..) = one.beside.iter().find(|(_, d, o)| (*d, *o) == (divides, factor)).expect("it is beside all");
        let rest = one.product.clone().without(*own, divides).build(&mut program.exprs);
        reader.body = Rewriter::with([(one.root, rest)]).copy(&mut program.exprs, reader.body);
    }
    let each = |definition: &Definition| work(&program.exprs, definition, sizes);
    let before = changed.keys().map(|p| each(&program.definitions[*p])).fold(Work::default(), std::ops::Add::add);
    let after = changed.values().map(each).fold(Work::default(), std::ops::Add::add);
    if after.operations > before.operations || after.weight >= before.weight {
        return false;
    }
    changed.into_iter().for_each(|(position, definition)| program.definitions[position] = definition);
    // It follows all that it reads now; its readers do, too.
    let read = program
        .exprs
        .accesses(factor)
        .filter_map(|(tensor, _)| program.definitions.iter().position(|definition| definition.tensor == tensor));
    let last = read.max().unwrap_or(place).max(place);
    program.definitions[place..=last].rotate_left(1);
    true
}

/// All products in which a part is read; `None` if it is read in another way.
fn uses(program: &mut Program, part: TensorId, readers: &BTreeSet<TensorId>, products: &Products) -> Option<Vec<Use>> {
    let mut found = Vec::new();
    for reader in 0..program.definitions.len() {
        let Definition { tensor, indices, .. } = &program.definitions[reader];
        if readers.contains(tensor) {
            let (roots, count) = (products[tensor].get(&part), indices.len());
            for root in roots.into_iter().flatten() {
                found.push(used(&mut program.exprs, reader, *root, part, count)?);
            }
        }
    }
    Some(found)
}

/// The nodes that are no factors of other products.
fn roots(exprs: &Exprs, body: ExprId) -> Vec<ExprId> {
    let is_product = |id: ExprId| chain(exprs, id) == Some(Chain::Product);
    let nodes = exprs.postorder(body);
    let mut roots: Vec<ExprId> =
        nodes.iter().filter(|id| !is_product(**id)).flat_map(|id| exprs.operands(*id)).collect();
    roots.push(body);
    roots.sort();
    roots.dedup();
    roots
}

fn used(exprs: &mut Exprs, reader: usize, root: ExprId, part: TensorId, count: usize) -> Option<Use> {
    let product = Product::of(exprs, root);
    let is_read = |exprs: &Exprs, id: ExprId| exprs.reads(id, part);
    let reading: Vec<(ExprId, bool)> = product.parts().filter(|(base, _)| is_read(exprs, *base)).collect();
    let [(access, false)] = reading.as_slice() else { return None };
    let Expr::Access(_, subscripts) = exprs[*access].clone() else { return None };
    if !product.is_simple(*access) {
        return None;
    }
    let inverse = inverse(&subscripts, count)?;
    let map: Vec<Affine> = inverse.iter().map(|index| index.clone().unwrap_or_default()).collect();
    let mut beside = Vec::new();
    for (base, divides) in product.parts().filter(|(base, _)| base != access) {
        let known = exprs.used_indices(base, count).iter().zip(&inverse).all(|(used, own)| !used || own.is_some());
        if known {
            beside.push((base, divides, lift::remap(exprs, base, &map)));
        }
    }
    Some(Use { reader, root, product, beside })
}

/// The indices of a reader in those of what it reads, where each subscript is an index of its own plus a number.
fn inverse(subscripts: &[Affine], count: usize) -> Option<Vec<Option<Affine>>> {
    let mut inverse = vec![None; count];
    for (dimension, subscript) in subscripts.iter().enumerate() {
        let offset = subscript.offset().clone();
        let index = subscript.shift(-offset.clone()).as_index()?;
        if inverse[index].replace(Affine::index(dimension).shift(-offset)).is_some() {
            return None;
        }
    }
    Some(inverse)
}
