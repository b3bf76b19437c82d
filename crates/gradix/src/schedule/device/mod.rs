//! The loops of a program on a GPU: items are blocks, whose threads share the outputs of a definition or the terms of a
//! reduction.
//!
//! ```text
//! pointwise, short sums    a thread for each element, neighbours along the last dimension of what is written
//! long sums                the threads of a block share the terms; what each of them has is added up as a tree
//! few long sums            the terms are divided among blocks, too: parts, which a kernel of its own combines in order
//! contractions             a tile of elements for a block, some in the registers of each thread; operands are staged
//! ```
//!
//! What a reader computes from an element alone is computed with it, before it is stored. First of all, `merge` puts into their
//! readers what takes less time to compute than to load.

mod contraction;
mod elements;
mod making;
mod merge;
mod tree;

pub use merge::merge;

use super::{Group, Member, Schedule};
use crate::domain::estimate::extents;
use crate::nest::{Buffer, Kernel, Scope};
use crate::program::{Affine, Definition, Exprs, ParamId, ParamKind, Program, TensorId, names, print};
use crate::scalar::Real;
use crate::target::Device;
use making::Making;
use std::collections::HashMap;

/// Decides for a whole program on a GPU: for sizes near `estimate`, right for all.
pub fn schedule(program: &Program, estimate: &[f64], real: Real, device: &Device, buffers: Vec<Buffer>) -> Schedule {
    let exprs = program.exprs.clone();
    let docs = print::definitions(program);
    let after = epilogues(program);
    let is_step = |param: &ParamId| matches!(program.params[param.0 as usize].kind, ParamKind::Time(_));
    let times = (0..program.params.len() as u32).map(ParamId).filter(is_step).collect();
    let mut making = Scheduling { program, estimate, real, device, times, exprs, buffers, kernels: Vec::new() };
    let is_after = |position: &usize| after.values().any(|reader| reader == position);
    for position in (0..program.definitions.len()).filter(|position| !is_after(position)) {
        let last = after.get(&position).map(|reader| &program.definitions[*reader]);
        let doc = std::iter::once(position).chain(after.get(&position).copied()).map(|p| docs[p].clone()).collect();
        making.definition(&program.definitions[position], last, doc);
    }
    let groups = (0..program.definitions.len()).map(|p| Group::alone(Member::new(p, None), 1, None)).collect();
    let Scheduling { exprs, buffers, kernels, .. } = making;
    Schedule { groups, kernels, buffers, slabs: Default::default(), exprs, plain: false }
}

/// The reductions that one pointwise definition reads, at the same place only, and nothing else reads: with its position.
fn epilogues(program: &Program) -> HashMap<usize, usize> {
    let reader = |producer: &Definition| {
        let is_reading = |d: &&Definition| program.exprs.reads(d.body, producer.tensor);
        let mut readers = program.definitions.iter().enumerate().filter(|(_, d)| is_reading(d));
        let (position, reader) = readers.next()?;
        let alone = readers.next().is_none() && !program.outputs.contains(&producer.tensor);
        (alone && is_at_same_place(program, producer, reader)).then_some(position)
    };
    let reductions = program.definitions.iter().enumerate().filter(|(_, d)| d.reduction.is_some());
    let found = reductions.filter_map(|(position, d)| Some((position, reader(d)?)));
    // A reader joins the last of the reductions that it reads: the others are stored before.
    let mut of_reader: HashMap<usize, usize> = HashMap::new();
    for (position, reader) in found {
        of_reader.insert(reader, position);
    }
    of_reader.into_iter().map(|(reader, position)| (position, reader)).collect()
}

/// Whether a pointwise definition has the outputs of a reduction, and reads only its own element of it, and of other
/// definitions only what stands before the reduction.
fn is_at_same_place(program: &Program, producer: &Definition, reader: &Definition) -> bool {
    let same = |(a, b): (&crate::program::Index, &crate::program::Index)| a.range == b.range;
    let own = |(tensor, at): (TensorId, &[Affine])| {
        tensor != producer.tensor || at.iter().enumerate().all(|(d, s)| s.as_index() == Some(d))
    };
    let place = |tensor: TensorId| program.definitions.iter().position(|d| d.tensor == tensor);
    let before = |tensor: TensorId| place(tensor) <= place(producer.tensor);
    reader.reduction.is_none()
        && reader.rank == producer.rank
        && reader.indices.iter().zip(&producer.indices).all(same)
        && program.exprs.accesses(reader.body).all(own)
        && program.exprs.accesses(reader.body).all(|(tensor, _)| before(tensor))
}

/// What is known while kernels are made.
struct Scheduling<'a> {
    program: &'a Program,
    estimate: &'a [f64],
    real: Real,
    device: &'a Device,
    /// The sizes that are steps.
    times: Vec<ParamId>,
    exprs: Exprs,
    /// The tensors, by number, then what else is needed.
    buffers: Vec<Buffer>,
    kernels: Vec<Kernel>,
}

impl Scheduling<'_> {
    /// The kernels of a definition, with a pointwise one that is computed from its elements alone.
    fn definition(&mut self, definition: &Definition, last: Option<&Definition>, doc: Vec<String>) {
        let sizes = extents(definition, self.estimate);
        let ways = [Self::contraction, Self::tree];
        if !ways.iter().any(|way| way(self, definition, last, &sizes, &doc)) {
            self.elements(definition, last, &sizes, doc);
        }
    }

    /// A buffer of an item; in the registers of its threads if they alone touch their parts.
    fn local(&mut self, name: &str, extents: &[i64], registers: bool) -> TensorId {
        let scope = Scope::Local(self.kernels.len());
        self.buffer(name, extents.iter().map(|extent| Affine::constant(*extent)).collect(), scope, registers)
    }

    fn buffer(&mut self, name: &str, extents: Vec<Affine>, scope: Scope, registers: bool) -> TensorId {
        let taken = |n: &str| self.buffers.iter().any(|t| t.name == n);
        let name = names::fresh_where(name, taken);
        self.buffers.push(Buffer { name, extents, scope, streamed: false, registers, interleaved: None });
        TensorId(self.buffers.len() as u32 - 1)
    }

    fn name_of(&self, tensor: TensorId) -> String {
        self.buffers[tensor.0 as usize].name.clone()
    }

    fn finish(&mut self, making: Making) {
        self.kernels.push(making.kernel);
    }

    fn start(&self, doc: Vec<String>) -> Making {
        Making::new(format!("kernel_{}", self.kernels.len()), doc, self.times.clone())
    }
}

/// The smallest power of two that is at least a number, and at most another one.
fn power_of_two(number: f64, most: i64) -> i64 {
    let mut power = 1;
    while (power as f64) < number && power < most {
        power *= 2;
    }
    power
}
