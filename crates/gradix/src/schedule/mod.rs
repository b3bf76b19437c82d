//! What is computed together, and where it is kept.
//!
//! Definitions are gathered in *groups*. The definitions of a group share one outermost index, the *slab* index, and
//! are computed slab by slab: a few values of that index at a time, one definition after the other. What a group
//! needs for itself only then lives in a small local buffer; what reduces over the slab index is summed up from slab
//! to slab, in a fixed number of parts that are combined in order.

mod ahead;
mod arrange;
mod block;
mod demand;
mod device;
mod group;
mod loops;
mod marks;
mod order;
pub mod print;
pub mod skew;
mod slices;
pub mod sweep;
mod turn;

pub use arrange::{arrange, lanes};
pub use print::print;

use crate::nest::{Buffer, Kernel, LoopId};
use crate::program::{Exprs, Program, TensorId};
use crate::scalar::Real;
use crate::target::Target;
use std::collections::BTreeMap;

/// The decisions for a whole program.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// What is computed together, in order.
    pub groups: Vec<Group>,
    /// The loops of each group, and of what combines parts; their leaves address whole tensors.
    pub kernels: Vec<Kernel>,
    /// The tensors, by number, and what else is needed: parts of reductions, packed operands.
    pub buffers: Vec<Buffer>,
    /// Which buffers hold a slab.
    pub slabs: BTreeMap<TensorId, Slab>,
    /// The expressions of the loops.
    pub exprs: Exprs,
    /// Whether loops are plain.
    pub plain: bool,
}

/// How a local buffer holds a slab.
#[derive(Clone, Debug)]
pub struct Slab {
    /// The dimension of the slab index.
    pub dimension: usize,
    /// How far before the slab it begins.
    pub before: i64,
    /// The dimensions of further indices of the grid, each with the variable at which the item begins.
    pub grid: Vec<(usize, LoopId)>,
    /// If it is kept from tile to tile: its extent, and each value of the slab index has its place modulo that.
    pub ring: Option<i64>,
}

/// Definitions that are computed together.
#[derive(Clone, Debug)]
pub struct Group {
    /// In order.
    pub members: Vec<Member>,
    /// How many values of the slab index are taken at a time.
    pub tile: i64,
    /// How many tiles an item of work has.
    pub tiles: i64,
    /// How many values of each further index of the grid an item has.
    pub grid: Vec<i64>,
    /// The number of partial reductions, where a member reduces over the slab index.
    pub parts: Option<i64>,
    /// Which indices could be the slab index, each that of the first member, with its cost; the first was taken.
    pub considered: Vec<(Option<usize>, f64)>,
    /// Which sums over the slab index could be taken row by row, the best first; it was taken.
    pub sums: Vec<Sums>,
    /// Whether what members need beside a slab is kept from tile to tile; otherwise each tile computes it again.
    pub rolling: bool,
}

impl Group {
    /// A tile to an item, in a grid of one dimension.
    fn new(members: Vec<Member>, tile: i64, parts: Option<i64>) -> Group {
        let (grid, considered, sums) = Default::default();
        Group { members, tile, tiles: 1, grid, parts, considered, sums, rolling: false }
    }

    /// One definition, a tile to an item.
    pub fn alone(member: Member, tile: i64, parts: Option<i64>) -> Group {
        Group::new(vec![member], tile, parts)
    }

    /// How many values before its first one an item starts, so that what is kept is there when it is needed.
    pub fn lead(&self) -> i64 {
        let beside = self.members.iter().map(|member| member.halo.0 + member.halo.1).max();
        if self.rolling { beside.unwrap_or(0) } else { 0 }
    }
}

/// Sums over the slab index that are taken row by row.
#[derive(Clone, Debug)]
pub struct Sums {
    /// The definitions; all others are taken column by column.
    pub by_rows: Vec<usize>,
    /// What the leaves of a tile load and store then, in vectors that lie side by side.
    pub loads: f64,
}

/// One definition in a group.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its position in the program.
    pub definition: usize,
    /// Which of its indices is the slab index; `None` if the group has none.
    pub slab: Option<usize>,
    /// Its further indices of the grid of items: outputs, at which members read each other.
    pub grid: Vec<usize>,
    /// How far before and after the slab it is computed, for readers at shifted places.
    pub halo: (i64, i64),
    /// How far after the slab a reduction over the slab index is, so that it runs where what it reads is made.
    pub ahead: i64,
    /// Whether it lives in a buffer of the group only.
    pub local: bool,
}

impl Member {
    /// A definition that nothing is computed around, by this index.
    pub fn new(definition: usize, slab: Option<usize>) -> Member {
        Member { definition, slab, grid: Vec::new(), halo: (0, 0), ahead: 0, local: false }
    }
}

/// Decides for a whole program, a type of elements and a machine.
pub fn schedule(program: &Program, estimate: &[f64], (real, target): (Real, &Target), manner: Manner) -> Schedule {
    if let Some(device) = &target.device {
        return device::schedule(program, estimate, real, device, loops::buffers(program, estimate, real, target));
    }
    let groups = match manner {
        Manner::Shared | Manner::Plain => group::group(program, estimate, target),
        Manner::OneItem => group::alone(program),
    };
    loops::loops(program, groups, estimate, (real, target), manner == Manner::Plain)
}

/// What loops are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Much work, which threads share.
    Shared,
    /// Little work: plain loops, which are compiled soon.
    Plain,
    /// Little work at each of many steps: each definition is one item, in vectors.
    OneItem,
}
