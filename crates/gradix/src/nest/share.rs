//! Items of work for a kernel that goes through steps: each takes some values of an output that no step reads across.
//!
//! ```text
//! work 0..=0 by 1:                                     work 0..=N - 1 by 1:
//!   tile t in 0..=T - 1:                                 tile t in 0..=T - 1:
//!     for n in 0..=N - 1: for s lanes:                     for n in first..=last: for s lanes:
//!       h[n, t, s] = a[n, s] * h[n, t - 1, s]                h[n, t, s] = a[n, s] * h[n, t - 1, s]
//! ```
//!
//! What comes out has to be proved like any other kernel: no two items touch an element that one of them writes.

use super::{FIRST, Kernel, Kind, LAST, Leaf, LoopId, Nest, Scope, Step, Work, leaves, verify};
use crate::program::{Affine, Expr, TensorId};
use crate::scalar::Real;
use crate::target::cost;
use std::collections::BTreeMap;

/// For some buffers, the dimension whose values are shared out.
type Dimensions = BTreeMap<TensorId, usize>;

/// Shares the work of a kernel with one item out, if there is an output for that. Sizes have the values of `estimate`.
/// Also gives the number of items.
pub fn share(nest: &Nest, kernel: &Kernel, estimate: &[f64]) -> Option<(f64, Kernel)> {
    let first = leaves(&kernel.steps).into_iter().find(|leaf| lasts(nest, leaf.target))?;
    let mut found: Vec<(f64, Kernel)> = Vec::new();
    for dimension in 0..first.subscripts.len() {
        let dimensions = reached(nest, kernel, first.target, dimension);
        let shared = dimensions.and_then(|dimensions| shared(nest, kernel, &dimensions, estimate));
        found.extend(shared.filter(|(_, kernel)| verify::items_are_apart(nest, kernel)));
    }
    let most = found.iter().map(|(items, _)| *items).fold(0.0, f64::max);
    let enough = most.min(cost::ITEMS_OF_STEPS);
    found.into_iter().find(|(items, _)| *items >= enough && *items > 1.0)
}

fn lasts(nest: &Nest, buffer: TensorId) -> bool {
    !matches!(nest[buffer].scope, Scope::Local(_))
}

/// From one dimension of a buffer, those of all others that a kernel writes; `None` if some access goes across.
fn reached(nest: &Nest, kernel: &Kernel, buffer: TensorId, dimension: usize) -> Option<Dimensions> {
    let mut found = Dimensions::from([(buffer, dimension)]);
    let leaves = leaves(&kernel.steps);
    loop {
        let before = found.len();
        for leaf in &leaves {
            let Some(variable) = variable(nest, leaf, &found)? else { continue };
            let own = leaf.subscripts.iter().position(|s| s.as_index() == Some(variable.number()))?;
            if *found.entry(leaf.target).or_insert(own) != own {
                return None;
            }
            // What an item makes for itself is made for its own values only.
            for (buffer, subscripts) in nest.exprs.accesses(leaf.body).filter(|(buffer, _)| !lasts(nest, *buffer)) {
                if let Some(own) = subscripts.iter().position(|s| s.as_index() == Some(variable.number())) {
                    found.entry(buffer).or_insert(own);
                }
            }
        }
        if found.len() == before {
            let is_shared = |leaf: &&Leaf| found.contains_key(&leaf.target) || !lasts(nest, leaf.target);
            return leaves.iter().all(is_shared).then_some(found);
        }
    }
}

/// The output of a leaf whose values are shared out, if it has to do with these dimensions at all; `None` if it can't be
/// shared out.
#[expect(clippy::option_option, reason = "none at all is not the same as none that will do")]
fn variable(nest: &Nest, leaf: &Leaf, dimensions: &Dimensions) -> Option<Option<LoopId>> {
    let reads = nest.exprs.postorder(leaf.body).into_iter().filter_map(|id| match &nest.exprs[id] {
        Expr::Access(buffer, subscripts) => Some((*buffer, subscripts.as_slice())),
        _ => None,
    });
    let accesses = reads.chain([(leaf.target, leaf.subscripts.as_slice())]);
    let subscripts: Vec<&Affine> =
        accesses.filter_map(|(buffer, subscripts)| Some(&subscripts[*dimensions.get(&buffer)?])).collect();
    let Some(one) = subscripts.first() else { return Some(None) };
    let variable = one.as_index()?;
    let outputs = leaf.loops[..leaf.outputs].iter();
    let own = outputs.map(|l| l.variable).find(|own| own.number() == variable)?;
    let fits = leaf.panels.is_none() && leaf.turn.is_none() && subscripts.iter().all(|other| other == one);
    fits.then_some(Some(own))
}

/// A kernel with its work shared out along these dimensions, and how many items there are.
fn shared(nest: &Nest, kernel: &Kernel, dimensions: &Dimensions, estimate: &[f64]) -> Option<(f64, Kernel)> {
    let lasting = || dimensions.iter().filter(|(buffer, _)| lasts(nest, **buffer));
    let (buffer, dimension) = lasting().next()?;
    let extent = &nest[*buffer].extents[*dimension];
    if lasting().any(|(buffer, dimension)| nest[*buffer].extents[*dimension] != *extent) {
        return None;
    }
    let mut kernel = kernel.clone();
    let mut wide = false;
    for leaf in leaves_mut(&mut kernel.steps) {
        let Some(variable) = variable(nest, leaf, dimensions)? else { continue };
        if loses_reuse(nest, leaf, variable, estimate) {
            return None;
        }
        let own = leaf.loops.iter_mut().find(|l| l.variable == variable)?;
        wide |= matches!(own.kind, Kind::Lanes(_));
        let whole = own.range == crate::program::Range::extent(extent.clone());
        if whole {
            (own.range.low, own.range.high) = (Vec::new(), Vec::new());
        }
        own.range.low.push(Affine::index(FIRST));
        own.range.high.push(Affine::index(LAST));
    }
    let step = if wide { nest.target.lanes(Real::F64) * cost::VECTORS_OF_STEPS } else { 1 };
    let items = (extent.estimate(&[], estimate) / step as f64).ceil();
    let (low, high) = (Affine::constant(0), extent.shift(-1));
    kernel.work = vec![Work::outermost(low, high, Affine::constant(step))];
    Some((items, kernel))
}

/// Whether a reduction reads much that serves for all values of a variable: they had better be taken together.
fn loses_reuse(nest: &Nest, leaf: &Leaf, variable: LoopId, estimate: &[f64]) -> bool {
    let bytes = |buffer: TensorId| {
        let extents = nest[buffer].extents.iter().map(|extent| extent.estimate(&[], estimate));
        extents.product::<f64>() * Real::F64.bytes() as f64
    };
    let serves_all = |(buffer, subscripts): (TensorId, &[Affine])| {
        !subscripts.iter().any(|s| s.uses_index(variable)) && bytes(buffer) > nest.target.l1_bytes as f64
    };
    leaf.reduction.is_some() && nest.exprs.accesses(leaf.body).any(serves_all)
}

fn leaves_mut(steps: &mut [Step]) -> Vec<&mut Leaf> {
    fn of_step(step: &mut Step) -> Vec<&mut Leaf> {
        match step {
            Step::Tile(tile) => leaves_mut(&mut tile.steps),
            Step::Leaf(leaf) => vec![leaf],
            Step::Together(together) => together.leaves.iter_mut().collect(),
        }
    }
    steps.iter_mut().flat_map(of_step).collect()
}
