//! The order of the dimensions of what is stored for others to read: last the one along which it is written and read
//! in vectors.
//!
//! ```text
//! z[i, r, k] = sum[j] t[i, j, k] * b[j, r]            z[i, k, r] = sum[j] t[i, j, k] * b[j, r]
//! m[i, r]    = sum[k] c[k, r] * z[i, r, k]            m[i, r]    = sum[k] c[k, r] * z[i, k, r]
//! ```
//!
//! On the left `k` or `r` may run in the lanes of `z`, but whatever runs in those of `m`, something is read across its
//! rows. Costs are those of the lanes of a loop, in loads and stores; only what makes a difference is changed.

use crate::domain::estimate::extents;
use crate::lift;
use crate::program::expr::{Rewriter, Rules};
use crate::program::{Affine, Definition, Expr, Exprs, Program, TensorId, TensorKind};
use crate::scalar::Real;
use crate::target::{Target, cost};

/// Reorders the dimensions of definitions that are not results.
pub fn order(program: &mut Program, estimate: &[f64], target: &Target) {
    for position in 0..program.definitions.len() {
        let definition = &program.definitions[position];
        if program.outputs.contains(&definition.tensor) || !definition.is_box() {
            continue;
        }
        let (tensor, rank) = (definition.tensor, definition.rank);
        let price = |last: usize| price(program, position, last, estimate, target);
        // The first is the one most likely to be divided into slabs.
        let movable = usize::from(!is_turned(program, definition))..rank;
        let Some(best) = movable.min_by(|a, b| price(*a).total_cmp(&price(*b))) else { continue };
        if price(best) < cost::ORDER_COST_SHARE * price(rank - 1) {
            move_last(program, position, tensor, best);
        }
    }
}

/// Whether what is computed point by point from other definitions has its first dimension last, or at least not first, in
/// all of them: then slabs are of another one.
fn is_turned(program: &Program, definition: &Definition) -> bool {
    let computed = |tensor: TensorId| program[tensor].kind != TensorKind::Input;
    let reads = program.exprs.accesses(definition.body);
    let mut firsts = reads.filter(|(t, s)| computed(*t) && s.len() > 1).map(|(_, s)| s[0].uses_index(0)).peekable();
    definition.reduction.is_none() && definition.rank > 1 && firsts.peek().is_some() && firsts.all(|first| !first)
}

/// What a definition and all that read it cost, with one of its dimensions last.
fn price(program: &Program, position: usize, last: usize, estimate: &[f64], target: &Target) -> f64 {
    let tensor = program.definitions[position].tensor;
    let reads = |definition: &&Definition| definition.tensor == tensor || program.exprs.reads(definition.body, tensor);
    let touching = program.definitions.iter().filter(reads);
    touching.map(|definition| price_of(program, definition, (tensor, last), estimate, target)).sum()
}

/// Loads and stores of a definition, with the best of its loops in the lanes.
fn price_of(
    program: &Program,
    definition: &Definition,
    (moved, last): (TensorId, usize),
    estimate: &[f64],
    target: &Target,
) -> f64 {
    let sizes = extents(definition, estimate);
    let rank = definition.rank;
    let terms: f64 = sizes[rank..].iter().product();
    let placed = |tensor: TensorId, subscripts: &[Affine]| match tensor == moved {
        true => with_last(subscripts, last),
        false => subscripts.to_vec(),
    };
    let own: Vec<Affine> = (0..rank).map(Affine::index).collect();
    let own = placed(definition.tensor, &own);
    let reads: Vec<Vec<Affine>> = program.exprs.accesses(definition.body).map(|(t, s)| placed(t, s)).collect();
    let price = |lanes: usize| {
        let transfers = cost::transfers(reads.iter().map(Vec::as_slice), &own, terms, lanes);
        transfers + if lanes < rank { 0.0 } else { cost::DEPENDENT_SUM_LOADS }
    };
    let innermost = (sizes.len() > rank).then(|| sizes.len() - 1);
    let lanes = (0..rank).chain(innermost).filter(|&p| sizes[p] >= target.lanes(Real::F64) as f64);
    let points: f64 = sizes.iter().product();
    // Where no loop is long enough for lanes, all orders are alike.
    lanes.map(|p| price(p) * points).fold(f64::MAX, f64::min)
}

/// The same with one of them last.
pub fn with_last<T: Clone>(of: &[T], dimension: usize) -> Vec<T> {
    let mut moved = of.to_vec();
    let last = moved.remove(dimension);
    moved.push(last);
    moved
}

/// Moves a dimension of a definition last, for all that read it.
pub fn move_last(program: &mut Program, position: usize, tensor: TensorId, dimension: usize) {
    let slot = &mut program.tensors[tensor.0 as usize];
    slot.extents = with_last(&slot.extents, dimension);
    let definition = &mut program.definitions[position];
    let rank = definition.rank;
    definition.indices[dimension..rank].rotate_left(1);
    let place = |old: usize| match old {
        _ if old >= rank || old < dimension => old,
        _ if old == dimension => rank - 1,
        _ => old - 1,
    };
    let map: Vec<Affine> = (0..definition.indices.len()).map(|old| Affine::index(place(old))).collect();
    for index in &mut definition.indices[rank..] {
        index.range = index.range.map(|bound| bound.with_indices(&map));
    }
    let constraints = definition.conditions.iter_mut().chain(&mut definition.assumptions);
    constraints.for_each(|constraint| *constraint = constraint.with_indices(&map));
    definition.body = lift::remap(&mut program.exprs, definition.body, &map);
    for definition in &mut program.definitions {
        let mut rules = MoveLast { tensor, dimension };
        definition.body = Rewriter::default().rewrite(&mut program.exprs, definition.body, &mut rules);
    }
}

struct MoveLast {
    tensor: TensorId,
    dimension: usize,
}

impl Rules for MoveLast {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> crate::program::ExprId {
        let moves = tensor == self.tensor;
        let subscripts = if moves { with_last(&subscripts, self.dimension) } else { subscripts };
        exprs.add(Expr::Access(tensor, subscripts))
    }
}
