//! Copies of arguments with zeros around them, so that windows that reach beyond an argument need no other bounds.
//!
//! ```text
//! y[i in 0..N] = sum[k in max(0, 1 - i)..=min(2, N - i)] w[k] * x[i + k - 1]
//!
//! x_p[j in 0..N + 2] = if 1 <= j and j <= N then x[j - 1] else 0
//! y[i in 0..N] = sum[k in 0..=2] w[k] * x_p[i + k]
//! ```
//!
//! Terms that are left out on the left are zero on the right, where other factors are finite. All outputs then have the same
//! loops, and lines of the copy don't start at multiples of a power of two.

use super::{PAYS, elements, extents};
use crate::program::expr::{Rewriter, Rules};
use crate::program::names;
use crate::program::{
    Affine, Atom, BinaryOp, Cond, CondId, Constraint, Definition, Expr, ExprId, Exprs, Index, Program, Range, ReduceOp,
    Tensor, TensorId, TensorKind, UnaryOp,
};
use crate::system;
use gradix_int::Int;
use std::collections::{HashMap, HashSet};

/// The most zeros on a side.
const MOST: i64 = 16;
/// An output with fewer values may have loops of its own for each.
const MANY: f64 = 16.0;

/// For each dimension how many zeros stand before and behind the elements.
type Zeros = Vec<(Int, Int)>;

/// Replaces arguments by padded copies, which come first.
pub fn pad(program: &mut Program, estimate: &[f64]) {
    let mut taken: HashSet<String> = names::taken(program);
    let mut copies: HashMap<(TensorId, Zeros), TensorId> = HashMap::new();
    let mut made = Vec::new();
    for position in 0..program.definitions.len() {
        let Some(Padded { access, zeros, ranges }) = padded(program, position, estimate) else { continue };
        let Expr::Access(tensor, _) = program.exprs[access] else { continue };
        let copy = *copies.entry((tensor, zeros.clone())).or_insert_with(|| {
            made.push(copy(program, tensor, &zeros, &mut taken));
            made[made.len() - 1].tensor
        });
        let body = program.definitions[position].body;
        let mut rules = Moved { tensor, copy, zeros: &zeros };
        let body = Rewriter::default().rewrite(&mut program.exprs, body, &mut rules);
        let definition = &mut program.definitions[position];
        definition.body = body;
        for (index, range) in definition.indices.iter_mut().zip(ranges) {
            index.range = range;
        }
    }
    made.append(&mut program.definitions);
    program.definitions = made;
}

/// An access that is to read a copy, and the ranges that are left.
struct Padded {
    access: ExprId,
    zeros: Zeros,
    ranges: Vec<Range>,
}

/// The first factor of a sum of products that a copy pays for.
fn padded(program: &Program, position: usize, estimate: &[f64]) -> Option<Padded> {
    let definition = &program.definitions[position];
    let exprs = &program.exprs;
    if definition.reduction != Some(ReduceOp::Sum) || !definition.conditions.is_empty() {
        return None;
    }
    let sizes = extents(definition, estimate);
    let work: f64 = sizes.iter().product();
    let mut factors = Vec::new();
    find_factors(exprs, definition.body, &mut factors);
    factors.into_iter().find_map(|access| {
        let Expr::Access(tensor, subscripts) = &exprs[access] else { return None };
        let once = exprs.accesses(definition.body).filter(|(read, _)| read == tensor).count() == 1;
        if !once || program[*tensor].kind != TensorKind::Input || elements(&program[*tensor], estimate) * PAYS > work {
            return None;
        }
        let ranges = without_limits(definition, subscripts, &program[*tensor].extents, &sizes)?;
        let zeros = subscripts.iter().zip(&program[*tensor].extents).map(|(s, extent)| zeros(&ranges, s, extent));
        let padded = Padded { access, zeros: zeros.collect::<Option<_>>()?, ranges };
        is_inside(program, definition, &padded).then_some(padded)
    })
}

/// The accesses that are factors of all terms.
fn find_factors(exprs: &Exprs, id: ExprId, found: &mut Vec<ExprId>) {
    match exprs[id] {
        Expr::Access(..) => found.push(id),
        Expr::Unary(UnaryOp::Neg, a) | Expr::Binary(BinaryOp::Div, a, _) => find_factors(exprs, a, found),
        Expr::Binary(BinaryOp::Mul, a, b) => [a, b].into_iter().for_each(|side| find_factors(exprs, side, found)),
        Expr::Constant(_) | Expr::Index(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Select(..) => {}
    }
}

/// The ranges without bounds of the reduction that say no more than that the subscripts are inside; `None` if there are
/// no such bounds that move with an output of many values.
fn without_limits(
    definition: &Definition,
    subscripts: &[Affine],
    extents: &[Affine],
    sizes: &[f64],
) -> Option<Vec<Range>> {
    let mut ranges: Vec<Range> = definition.indices.iter().map(|index| index.range.clone()).collect();
    let mut moves = false;
    for (subscript, extent) in subscripts.iter().zip(extents) {
        for (term, Range { low, high }) in ranges.iter_mut().enumerate().skip(definition.rank) {
            let own = Affine::index(term);
            let step = subscript.coefficient(&Atom::Index(term as u32));
            // Where the subscript is 0, and where it is the last one.
            let (start, end) = match step {
                _ if step == Int::ONE => (own.clone() - subscript.clone(), own - subscript.clone() + extent.shift(-1)),
                _ if step == -Int::ONE => (own.clone() + subscript.clone() - extent.shift(-1), own + subscript.clone()),
                _ => continue,
            };
            let far = |bound: &Affine| (0..definition.rank).any(|o| sizes[o] >= MANY && bound.uses_index(o));
            for (bounds, limit) in [(low, start), (high, end)] {
                if bounds.len() > 1 && bounds.contains(&limit) {
                    bounds.retain(|bound| *bound != limit);
                    moves |= far(&limit);
                }
            }
        }
    }
    moves.then_some(ranges)
}

/// How far a subscript goes beyond its dimension, if it is a number.
fn zeros(ranges: &[Range], subscript: &Affine, extent: &Affine) -> Option<(Int, Int)> {
    let (least, most) = (extreme(ranges, subscript, false)?, extreme(ranges, subscript, true)?);
    let before = -least.as_constant()?.clone();
    let behind = (most - extent.shift(-1)).as_constant()?.clone();
    let (before, behind) = (before.max(Int::ZERO), behind.max(Int::ZERO));
    (before <= Int::from(MOST) && behind <= Int::from(MOST)).then_some((before, behind))
}

/// The least or the largest value of a subscript, in sizes, where each index has one bound on either side.
fn extreme(ranges: &[Range], subscript: &Affine, largest: bool) -> Option<Affine> {
    let mut value = Affine::constant(subscript.offset().clone());
    for (atom, factor) in subscript.terms() {
        let bound = match atom {
            Atom::Index(index) => {
                let range = &ranges[*index as usize];
                let bounds = if largest == (*factor > Int::ZERO) { &range.high } else { &range.low };
                let [bound] = bounds.as_slice() else { return None };
                bound.clone()
            }
            Atom::Param(_) => Affine::atom(atom.clone()),
            Atom::Floor(..) => return None,
        };
        if bound.uses_indices() {
            return None;
        }
        value = value.add_scaled(factor, &bound);
    }
    Some(value)
}

/// Whether everything else that is read stays inside without the bounds.
fn is_inside(program: &Program, definition: &Definition, padded: &Padded) -> bool {
    let exprs = &program.exprs;
    let ranges = padded.ranges.iter().enumerate();
    let mut domain = program.size_context();
    domain.extend(ranges.flat_map(|(index, range)| range.constraints(index).collect::<Vec<_>>()));
    exprs.postorder(definition.body).into_iter().all(|id| match &exprs[id] {
        Expr::Access(tensor, subscripts) if id != padded.access => {
            subscripts.iter().zip(&program[*tensor].extents).all(|(subscript, extent)| {
                let last = extent.shift(-1);
                let inside =
                    [Constraint::non_negative(subscript.clone()), Constraint::at_most(subscript.clone(), last)];
                inside.iter().all(|row| system::implies(&domain, row))
            })
        }
        Expr::Select(..) => false,
        _ => true,
    })
}

/// `copy[j] = if before <= j and j < before + extent then tensor[j - before] else 0`
fn copy(program: &mut Program, tensor: TensorId, zeros: &Zeros, taken: &mut HashSet<String>) -> Definition {
    let source = program[tensor].clone();
    let grown = |(extent, (before, behind)): (&Affine, &(Int, Int))| extent.shift(before + behind);
    let extents: Vec<Affine> = source.extents.iter().zip(zeros).map(grown).collect();
    let ranges = extents.iter().cloned().map(Range::extent).enumerate();
    let indices = ranges.map(|(p, range)| Index { name: format!("i{p}"), range }).collect();
    let name = names::fresh(&format!("{}_p", source.name), taken);
    let rank = source.rank;
    let copy = program.add_tensor(Tensor { name, kind: TensorKind::Defined, extents, rank });
    let places: Vec<Affine> = zeros.iter().enumerate().map(|(p, z)| Affine::index(p).shift(-z.0.clone())).collect();
    let mut rows = Vec::new();
    for (place, (extent, (before, behind))) in places.iter().zip(source.extents.iter().zip(zeros)) {
        rows.extend((*before > Int::ZERO).then(|| Constraint::non_negative(place.clone())));
        rows.extend((*behind > Int::ZERO).then(|| Constraint::at_most(place.clone(), extent.shift(-1))));
    }
    let (element, zero) = (program.exprs.access(tensor, places), program.exprs.constant(0.0));
    let body = match all(&mut program.exprs, rows) {
        Some(inside) => program.exprs.add(Expr::Select(inside, element, zero)),
        None => element,
    };
    let (reduction, conditions, assumptions) = (None, Vec::new(), Vec::new());
    Definition { tensor: copy, indices, rank, reduction, conditions, assumptions, body }
}

fn all(exprs: &mut Exprs, rows: Vec<Constraint>) -> Option<CondId> {
    let conditions: Vec<CondId> = rows.into_iter().map(|row| exprs.add_condition(Cond::Index(row))).collect();
    conditions.into_iter().reduce(|a, b| exprs.add_condition(Cond::And(a, b)))
}

struct Moved<'a> {
    tensor: TensorId,
    copy: TensorId,
    zeros: &'a Zeros,
}

impl Rules for Moved<'_> {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        if tensor != self.tensor {
            return exprs.access(tensor, subscripts);
        }
        let places = subscripts.iter().zip(self.zeros).map(|(subscript, (before, _))| subscript.shift(before.clone()));
        exprs.access(self.copy, places.collect())
    }
}
