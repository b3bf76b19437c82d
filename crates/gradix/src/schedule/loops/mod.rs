//! The loops of every group: what is cut into pieces, what runs in lanes and in register tiles, what is packed, and what
//! runs together.
//!
//! Leaves address whole tensors here; `lower` gives each access its place in a slab or in a ring.

mod across;
mod assumed;
mod blocks;
mod classes;
mod fuse;
mod masks;
mod pack;
mod parts;
mod pieces;
mod place;
mod shape;
mod stairs;
mod stores;
mod turns;
mod unread;

pub use pack::{Parts, operands};
pub use pieces::unmixed;

use super::{Group, Member, Schedule, Slab, Sums};
use crate::nest::{Buffer, FIRST, Kernel, LAST, Leaf, LoopId, Scope, Step, Tile, Work};
use crate::program::{
    Affine, Constraint, Definition, Exprs, Index, Program, Range, Tensor, TensorId, TensorKind, names, print,
};
use crate::scalar::Real;
use crate::target::{Target, cost};
use across::Tried;
use gradix_int::Int;
use std::collections::BTreeMap;

/// Decides on the loops of groups: for sizes near `estimate`, right for all. Plain ones have no vectors, no tiles of
/// registers and no pieces.
pub fn loops(
    program: &Program,
    mut groups: Vec<Group>,
    estimate: &[f64],
    (real, target): (Real, &Target),
    plain: bool,
) -> Schedule {
    let buffers = buffers(program, estimate, real, target);
    let mut looping = Looping {
        program,
        estimate,
        target,
        lanes: target.lanes(real) as f64,
        plain,
        exprs: program.exprs.clone(),
        buffers,
        kernels: Vec::new(),
        context: program.size_context(),
        slabs: BTreeMap::new(),
        panels: None,
        width: 1.0,
        first: 0.0,
        ends: Vec::new(),
        docs: print::definitions(program),
    };
    groups.iter_mut().for_each(|group| group.sums = looping.group(group));
    let Looping { exprs, buffers, kernels, slabs, .. } = looping;
    Schedule { groups, kernels, buffers, slabs, exprs, plain }
}

/// The buffers of all tensors, as long as none is found to be local.
pub fn buffers(program: &Program, estimate: &[f64], real: Real, target: &Target) -> Vec<Buffer> {
    (0..program.tensors.len() as u32).map(|id| buffer(program, TensorId(id), estimate, real, target)).collect()
}

/// The buffer of a tensor, as long as it is not found to be local.
fn buffer(program: &Program, tensor: TensorId, estimate: &[f64], real: Real, target: &Target) -> Buffer {
    let Tensor { name, kind, extents, .. } = program[tensor].clone();
    let scope = match (kind, program.outputs.iter().position(|output| *output == tensor)) {
        (TensorKind::Input, _) => Scope::Input(program.inputs().position(|input| input == tensor).unwrap_or(0)),
        (TensorKind::Defined | TensorKind::Nested, Some(position)) => Scope::Output(position),
        (TensorKind::Defined | TensorKind::Nested, None) => Scope::Run,
    };
    let is_output = matches!(scope, Scope::Output(_));
    let streamed = is_output && is_streamed(program, tensor, estimate, real, target);
    Buffer { name, extents, scope, streamed, registers: false, interleaved: None }
}

/// Whether a result is large and nothing reads it.
fn is_streamed(program: &Program, tensor: TensorId, estimate: &[f64], real: Real, target: &Target) -> bool {
    let bytes = program[tensor].elements(estimate) * real.bytes() as f64;
    let mut bodies = program.definitions.iter().map(|definition| definition.body);
    let is_read = bodies.any(|body| program.exprs.reads(body, tensor));
    bytes >= target.streamed_bytes as f64 && !is_read
}

/// What is known while kernels are made.
struct Looping<'a> {
    program: &'a Program,
    estimate: &'a [f64],
    target: &'a Target,
    /// The number of lanes of a vector.
    lanes: f64,
    plain: bool,
    exprs: Exprs,
    /// The tensors, by number, then what else is needed.
    buffers: Vec<Buffer>,
    kernels: Vec<Kernel>,
    context: Vec<Constraint>,
    slabs: BTreeMap<TensorId, Slab>,
    /// The buffer for packed operands that the leaves of a kernel share, which run one after the other.
    panels: Option<(usize, TensorId)>,
    /// The height of the slab at hand, and the first value of one in the middle.
    width: f64,
    first: f64,
    /// The last value along each further dimension of the grid, in an item that starts at 0; and where a tile starts.
    ends: Vec<(LoopId, f64)>,
    /// The definitions as text.
    docs: Vec<String>,
}

/// A kernel that is being made.
#[derive(Clone)]
struct Making {
    kernel: Kernel,
    /// The variable of the tile, its size, and what holds for the variables.
    tile: LoopId,
    size: i64,
    /// How many values of each further index of the grid an item has.
    grid: Vec<i64>,
    /// Whether members keep what they need beside the slab from tile to tile.
    rolling: bool,
    context: Vec<Constraint>,
}

impl Looping<'_> {
    /// Makes the kernels of a group; gives the sums that could be taken row by row.
    fn group(&mut self, group: &Group) -> Vec<Sums> {
        let number = self.kernels.len();
        let doc = group.members.iter().map(|m| self.docs[m.definition].clone()).collect();
        let mut making = self.making(group, &self.program.definitions[group.members[0].definition], doc);
        let (start, last) = (Affine::index(FIRST).shift(-group.lead()), Affine::index(LAST));
        if group.members[0].slab.is_some() && (group.tiles > 1 || group.parts.is_some()) {
            making.tile = making.variable("tile");
            making.context.push(Constraint::at_most(start.clone(), Affine::index(making.tile)));
            making.context.push(Constraint::at_most(Affine::index(making.tile), last.clone()));
            self.ends.push((making.tile, self.first));
        }
        self.place_locals(group, &making, number);
        let partial = self.partials(group);
        let is_part = |m: &Member| partial.iter().find(|(d, _)| *d == m.definition).map(|(_, buffer)| *buffer);
        let (Tried { mut making, steps: inside, .. }, sums) = self.least(group, &is_part, &making);
        let mut before: Vec<Vec<Leaf>> = Vec::new();
        for member in &group.members {
            before.extend(is_part(member).map(|buffer| vec![self.cleared(member, buffer, &mut making)]));
        }
        making.kernel.steps = self.steps(before);
        if making.tile == FIRST {
            making.kernel.steps.extend(inside);
        } else {
            let range = Range { low: vec![start], high: vec![last] };
            let tile = Tile { size: group.tile, ..Tile::each(making.tile, range, inside) };
            making.kernel.steps.push(Step::Tile(tile));
        }
        self.kernels.push(making.kernel);
        for (definition, buffer) in partial {
            self.combined(&self.program.definitions[definition].clone(), buffer);
        }
        sums
    }

    /// The leaves of a tile, those together that run together; members of `across` are summed row by row.
    fn inside(
        &mut self,
        group: &Group,
        part: &dyn Fn(&Member) -> Option<TensorId>,
        across: &[usize],
        making: &mut Making,
    ) -> Vec<Vec<Leaf>> {
        let number = self.kernels.len();
        let mut inside = Vec::new();
        for member in &group.members {
            let definition = &self.program.definitions[member.definition];
            let mut placed = self.place(definition, member, making, part(member));
            if across.contains(&member.definition) {
                placed = self.turned(placed);
            }
            inside.extend(self.leaves_of(placed, making));
        }
        let exprs = &mut self.exprs;
        inside.retain(|leaf| !across::is_idle(exprs, leaf));
        let buffers = &self.buffers;
        let is_local = |tensor: TensorId| buffers[tensor.0 as usize].scope == Scope::Local(number);
        let inside = unread::drop_unread(exprs, inside, &is_local, &self.slabs, making);
        fuse::fuse(exprs, inside)
    }

    /// A kernel without steps, whose work is divided as the first member says.
    fn making(&mut self, group: &Group, first: &Definition, doc: Vec<String>) -> Making {
        self.width = group.tile as f64;
        let member = &group.members[0];
        let range = member.slab.map(|slab| &first.indices[slab].range);
        let outermost = range.map_or_else(Work::single, |range| work(range, group));
        let name = format!("kernel_{}", self.kernels.len());
        let variables = ["first", "last", "item"].map(String::from).to_vec();
        let kernel = Kernel { name, doc, variables, work: vec![outermost], steps: Vec::new() };
        let (tile, size, grid, rolling) = (FIRST, group.tile, group.grid.clone(), group.rolling);
        let mut making = Making { kernel, tile, size, grid, rolling, context: self.context.clone() };
        for (&index, &size) in member.grid.iter().zip(&group.grid) {
            making.divide(&first.indices[index], size);
        }
        for Work { first, last, low, high, .. } in &making.kernel.work {
            making.context.push(Constraint::at_most(low.clone(), Affine::index(*first)));
            making.context.push(Constraint::at_most(Affine::index(*last), high.clone()));
        }
        let Work { low, high, .. } = &making.kernel.work[0];
        let (low, high) = (low.estimate(&[], self.estimate), high.estimate(&[], self.estimate));
        self.first = low + ((high - low) / 2.0 / self.width).floor().max(0.0) * self.width;
        let further = making.kernel.work[1..].iter().zip(&group.grid);
        self.ends = further.map(|(work, size)| (work.last, (size - 1) as f64)).collect();
        making
    }

    /// Local members get a buffer of the size of a slab.
    fn place_locals(&mut self, group: &Group, making: &Making, number: usize) {
        for member in group.members.iter().filter(|m| m.local) {
            let definition = &self.program.definitions[member.definition];
            let slot = definition.tensor.0 as usize;
            self.buffers[slot].scope = Scope::Local(number);
            if let Some(slab) = member.slab.filter(|&p| p < definition.rank) {
                let rows = group.tile + member.halo.0 + member.halo.1;
                let tensor = &mut self.buffers[slot];
                tensor.extents[slab] = Affine::constant(rows);
                for (&dimension, &values) in member.grid.iter().zip(&group.grid) {
                    tensor.extents[dimension] = Affine::constant(values);
                }
                if slab + 1 < definition.rank
                    && let Some(width) = tensor.extents.last_mut()
                    && width.estimate(&[], self.estimate) % cost::ALIASED_ROW_ELEMENTS == 0.0
                {
                    *width = width.shift(cost::ROW_GAP_LINES * self.target.line_bytes / Real::F64.bytes());
                }
                let ring = (group.rolling && member.halo != (0, 0)).then_some(rows);
                let firsts = making.kernel.work[1..].iter().map(|work| work.first);
                let grid = member.grid.iter().copied().zip(firsts).collect();
                let before = member.halo.0;
                self.slabs.insert(definition.tensor, Slab { dimension: slab, before, grid, ring });
            }
        }
    }

    fn buffer(&mut self, name: String, extents: Vec<Affine>, scope: Scope) -> TensorId {
        let taken = |n: &str| self.buffers.iter().any(|t| t.name == n);
        let name = names::fresh_where(&name, taken);
        self.buffers.push(Buffer { name, extents, scope, streamed: false, registers: false, interleaved: None });
        TensorId(self.buffers.len() as u32 - 1)
    }
}

impl Making {
    fn variable(&mut self, name: &str) -> LoopId {
        self.kernel.variables.push(name.to_string());
        LoopId(self.kernel.variables.len() as u32 - 1)
    }

    /// Adds a dimension to the grid of items: so many values of an index for each.
    fn divide(&mut self, index: &Index, values: i64) {
        let [first, last, item] = ["first", "last", "item"].map(|end| self.variable(&format!("{end}_{}", index.name)));
        let (low, high) = (index.range.low[0].clone(), index.range.high[0].clone());
        self.kernel.work.push(Work { first, last, item, low, high, step: Affine::constant(values), parts: None });
    }
}

/// How the values of the slab index are divided into items.
fn work(range: &Range, group: &Group) -> Work {
    // Bounds in other indices are those of the loops inside.
    let plain = |bounds: &[Affine]| bounds.iter().find(|b| !b.uses_indices()).unwrap_or(&bounds[0]).clone();
    let (low, high) = (plain(&range.low), plain(&range.high));
    match group.parts {
        None => Work::outermost(low, high, Affine::constant(group.tile * group.tiles)),
        Some(parts) => {
            // As many whole tiles as all parts need.
            let unit = Int::from(parts * group.tile);
            let extent = (high.clone() - low.clone()).shift(1);
            let step = extent.shift(&unit - Int::ONE).floor_div(&unit).scale(&Int::from(group.tile));
            Work { parts: Some(parts), ..Work::outermost(low, high, step) }
        }
    }
}
