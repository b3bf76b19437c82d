//! From decisions to loops over memory: a [`Program`] and its [`Schedule`] to a [`Nest`].
//!
//! There is nothing left to choose. Leaves address whole tensors in the schedule; here, elements of what a group keeps to
//! itself get their places in a slab or in a ring.

use crate::nest::{FIRST, Kernel, Leaf, LoopId, Nest, Stage, Step, Tile};
use crate::program::expr::{Rewriter, Rules};
use crate::program::{Affine, ExprId, Exprs, Program, TensorId};
use crate::schedule::{Schedule, Slab};
use crate::target::Target;
use gradix_int::Int;
use std::collections::BTreeMap;

/// The loops of a schedule.
///
/// ```
/// use gradix::{domain::estimate::estimate, lower, nest::{Real, print}, schedule::{Manner, arrange, schedule}, target::AVX512};
/// let ast = gradix::syntax::parse("input x[N, K], w[K]; y[i] = sum[k] x[i, k] * w[k]").unwrap();
/// let (given, machine) = ([1000.into(), 100.into()], (Real::F64, &AVX512));
/// let program = gradix::resolve(&ast, &[]).unwrap().program;
/// let arranged = arrange(&program, &given, machine, Manner::Shared).unwrap();
/// let schedule = schedule(&arranged, &estimate(&arranged, &given), machine, Manner::Shared);
/// let nest = lower(&arranged, &schedule, &AVX512);
/// assert!(print(&nest).contains("sum k in 0..=K - 1 lanes"));
/// ```
pub fn lower(program: &Program, schedule: &Schedule, target: &Target) -> Nest {
    let Schedule { kernels, buffers, slabs, exprs, plain, .. } = schedule.clone();
    let (params, context) = (program.params.clone(), program.size_context());
    let stages = (0..kernels.len()).map(|number| Stage::Kernel(number, Vec::new())).collect();
    let mut nest = Nest { params, context, buffers, exprs, kernels, stages, target: *target, plain };
    for Kernel { steps, .. } in &mut nest.kernels {
        place(steps, &mut nest.exprs, &mut Places { slabs: &slabs, tile: FIRST });
    }
    nest
}

/// Gives all elements of some steps their places.
fn place(steps: &mut [Step], exprs: &mut Exprs, places: &mut Places) {
    for step in steps {
        match step {
            Step::Leaf(leaf) => place_leaf(leaf, exprs, places),
            Step::Together(together) => together.leaves.iter_mut().for_each(|leaf| place_leaf(leaf, exprs, places)),
            Step::Tile(Tile { variable, steps, .. }) => place(steps, exprs, &mut Places { tile: *variable, ..*places }),
        }
    }
}

fn place_leaf(leaf: &mut Leaf, exprs: &mut Exprs, places: &mut Places) {
    places.place(leaf.target, &mut leaf.subscripts);
    let mut rewriter = Rewriter::default();
    let mut placed = |id: &mut ExprId| *id = rewriter.rewrite(exprs, *id, places);
    placed(&mut leaf.body);
    if let Some(panels) = &mut leaf.panels {
        let operands = [&mut panels.by_row, &mut panels.by_lane, &mut panels.by_term];
        operands.into_iter().flatten().for_each(placed);
    }
}

/// Where elements are while a tile is computed.
struct Places<'a> {
    slabs: &'a BTreeMap<TensorId, Slab>,
    /// The variable of the tile.
    tile: LoopId,
}

impl Places<'_> {
    /// Subscripts of local buffers count from the start of the slab, or around the ring.
    fn place(&self, buffer: TensorId, subscripts: &mut [Affine]) {
        let Some(Slab { dimension, before, grid, ring }) = self.slabs.get(&buffer) else { return };
        for (dimension, first) in grid {
            subscripts[*dimension] = subscripts[*dimension].clone() - Affine::index(*first);
        }
        let at = subscripts[*dimension].clone();
        subscripts[*dimension] = match ring {
            None => at - Affine::index(self.tile).shift(-before),
            Some(rows) => {
                let rounds = at.floor_div(&Int::from(*rows));
                at.add_scaled(&-Int::from(*rows), &rounds)
            }
        };
    }
}

impl Rules for Places<'_> {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, mut subscripts: Vec<Affine>) -> ExprId {
        self.place(tensor, &mut subscripts);
        exprs.access(tensor, subscripts)
    }
}
