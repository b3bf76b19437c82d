//! Copies of arguments in blocks of lanes, which a contraction reads from end to end.
//!
//! ```text
//! y[n, o] = sum[i] x[n, i] * w[o, i]
//!
//! w_b[b, i, l] = w[32*b + l, i]
//! y[n, o] = sum[i] x[n, i] * w_b[o // 32, i, o % 32]
//! ```
//!
//! The copy is made once; otherwise every item of work would pack the argument for itself, or read it across rows that
//! lie far apart. Where the loops are made, `o` becomes two of them, over blocks and over lanes.

use super::arrange::lanes;
use super::order::with_last;
use crate::domain::estimate::extents;
use crate::domain::reach::{Held, Reach};
use crate::program::affine::is_along;
use crate::program::expr::{Rewriter, Rules};
use crate::program::names;
use crate::program::{
    Affine, Cond, Constraint, Definition, Expr, ExprId, Exprs, Index, Program, TensorId, TensorKind, elements,
};
use crate::scalar::Real;
use crate::target::{Target, cost};
use gradix_int::Int;
use std::collections::{HashMap, HashSet};

/// Replaces arguments by copies in blocks of a few vectors.
pub fn block(program: &mut Program, estimate: &[f64], real: Real, target: &Target) {
    let size = Int::from(cost::BLOCK_VECTORS * target.lanes(real));
    let mut taken: HashSet<String> = names::taken(program);
    let mut copies: HashMap<(TensorId, usize), TensorId> = HashMap::new();
    let mut made = Vec::new();
    let reach = Reach::of(program);
    for position in 0..program.definitions.len() {
        let definition = program.definitions[position].clone();
        let Some(lanes) = lanes(program, &definition, estimate, target) else { continue };
        let wanted = wanted(program, &definition, lanes, &size, &reach, estimate).unwrap_or_default();
        for (key, held) in &wanted {
            copies.entry(*key).or_insert_with(|| {
                let copy = copy(program, *key, held, &size, &mut taken);
                made.push(copy);
                made[made.len() - 1].tensor
            });
        }
        let wanted: Vec<(TensorId, usize)> = wanted.into_iter().map(|(key, _)| key).collect();
        if !wanted.is_empty() {
            let mut rules = Blocked { copies: &copies, wanted: &wanted, lanes, size: &size };
            let body = Rewriter::default().rewrite(&mut program.exprs, definition.body, &mut rules);
            program.definitions[position].body = body;
        }
    }
    made.append(&mut program.definitions);
    program.definitions = made;
}

/// The arguments, each with the dimension of the lanes, that a contraction reads across wide rows, and the extents of
/// what a copy holds; `None` if it is not one that could read them in blocks.
fn wanted(
    program: &Program,
    definition: &Definition,
    lanes: usize,
    size: &Int,
    reach: &Reach,
    estimate: &[f64],
) -> Option<Vec<Held>> {
    let sizes = extents(definition, estimate);
    let (rank, innermost) = (definition.rank, definition.indices.len() - 1);
    let few = cost::BLOCKS_PER_COPY * size.to_f64().value();
    if sizes[lanes] < few || sizes[lanes] <= cost::NARROW_ROW_ELEMENTS || !is_plain(definition, lanes) {
        return None;
    }
    let work: f64 = sizes.iter().product();
    let mut found: Vec<Held> = Vec::new();
    for id in program.exprs.postorder(definition.body) {
        let (tensor, subscripts) = match &program.exprs[id] {
            Expr::Access(tensor, subscripts) => (*tensor, subscripts),
            Expr::Select(..) | Expr::Index(_) => return None,
            Expr::Constant(_) | Expr::Unary(..) | Expr::Binary(..) => continue,
        };
        let reduces = (rank..=innermost).any(|term| subscripts.iter().any(|s| s.uses_index(term)));
        let moving: Vec<usize> = (0..subscripts.len()).filter(|&d| subscripts[d].uses_index(lanes)).collect();
        match moving.as_slice() {
            [] => {}
            [dimension] if reduces && subscripts[*dimension].as_index() == Some(lanes) => {
                let key = (tensor, *dimension);
                if found.iter().any(|(other, _)| *other == key) {
                    continue;
                }
                let input = Some(tensor).filter(|tensor| program[*tensor].kind == TensorKind::Input);
                let held = reach.held(program, input?)?;
                if elements(&held, estimate) * cost::READS_PER_COPIED_ELEMENT > work {
                    return None;
                }
                found.push((key, held));
            }
            [_] if !reduces && is_along(subscripts, lanes) => {}
            _ => return None,
        }
    }
    Some(found)
}

/// Whether an index counts from 0, and nothing about the reduction depends on it.
fn is_plain(definition: &Definition, index: usize) -> bool {
    let range = &definition.indices[index].range;
    let from_zero = range.low.iter().all(|low| low.as_constant() == Some(&Int::ZERO));
    let fixed = range.high.len() == 1 && !range.high[0].uses_indices();
    let mut bounds = definition.indices.iter().flat_map(|other| other.range.low.iter().chain(&other.range.high));
    let conditions = definition.conditions.iter().map(|c| &c.affine);
    from_zero && fixed && !bounds.any(|b| b.uses_index(index)) && !conditions.into_iter().any(|c| c.uses_index(index))
}

/// `copy[b, …, l] = tensor[…, size*b + l, …]`, and zeros behind the last of them.
fn copy(
    program: &mut Program,
    (tensor, dimension): (TensorId, usize),
    held: &[Affine],
    size: &Int,
    taken: &mut HashSet<String>,
) -> Definition {
    let source = program[tensor].clone();
    let rank = source.rank + 1;
    let last = held[dimension].shift(-1);
    let blocks = last.floor_div(size).shift(1);
    let mut extents = vec![blocks];
    extents.extend(with_last(held, dimension));
    extents[rank - 1] = Affine::constant(size.clone());
    let indices = Index::numbered(&extents);
    let name = names::fresh(&format!("{}_b", source.name), taken);
    let copy = program.add_defined(name, extents);
    let place = Affine::index(0).scale(size) + Affine::index(rank - 1);
    let mut subscripts: Vec<Affine> = (1..rank - 1).map(Affine::index).collect();
    subscripts.insert(dimension, place.clone());
    let (element, zero) = (program.exprs.access(tensor, subscripts), program.exprs.constant(0.0));
    let inside = program.exprs.add_condition(Cond::Index(Constraint::at_most(place, last)));
    let body = program.exprs.add(Expr::Select(inside, element, zero));
    Definition::pointwise(copy, indices, body)
}

struct Blocked<'a> {
    copies: &'a HashMap<(TensorId, usize), TensorId>,
    wanted: &'a [(TensorId, usize)],
    lanes: usize,
    size: &'a Int,
}

impl Rules for Blocked<'_> {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        let at_lanes = |d: &usize| subscripts[*d].as_index() == Some(self.lanes);
        let dimension = (0..subscripts.len()).find(|d| self.wanted.contains(&(tensor, *d)) && at_lanes(d));
        let Some(dimension) = dimension else { return exprs.access(tensor, subscripts) };
        let lanes = &subscripts[dimension];
        let mut places = vec![lanes.floor_div(self.size)];
        places.extend(with_last(&subscripts, dimension));
        *places.last_mut().expect("there is one") = lanes.remainder(self.size);
        exprs.access(self.copies[&(tensor, dimension)], places)
    }
}
