//! The loops of every group: what is cut into pieces, what runs in lanes and in register tiles, what is packed, and what
//! runs together.
//!
//! Leaves address whole tensors here; `lower` gives each access its place in a slab or in a ring.

mod across;
mod blocks;
mod classes;
mod fuse;
mod pack;
mod pieces;
mod place;
mod shape;
mod stores;
mod unread;

use super::{Group, Member, Schedule, Slab, extents, lanes};
use crate::nest::{Buffer, FIRST, ITEM, Kernel, Kind, LAST, Leaf, Loop, LoopId, Scope, Step, Tile, Work};
use crate::program::{
    Affine, Constraint, Definition, Exprs, Index, Program, Range, Tensor, TensorId, TensorKind, names, print,
};
use crate::scalar::Real;
use crate::target::{Target, cost};
use gradix_int::Int;
use std::collections::BTreeMap;

/// Decides on the loops of groups: for sizes near `estimate`, right for all. Plain ones have no vectors, no tiles of
/// registers and no pieces.
pub fn loops(
    program: &Program,
    groups: Vec<Group>,
    estimate: &[f64],
    (real, target): (Real, &Target),
    plain: bool,
) -> Schedule {
    let buffers =
        (0..program.tensors.len() as u32).map(|id| buffer(program, TensorId(id), estimate, real, target)).collect();
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
        docs: print::definitions(program),
    };
    groups.iter().for_each(|group| looping.group(group));
    let Looping { exprs, buffers, kernels, slabs, .. } = looping;
    Schedule { groups, kernels, buffers, slabs, exprs, plain }
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
    Buffer { name, extents, scope, streamed: is_output && is_streamed(program, tensor, estimate, real, target) }
}

/// Whether a result is large and nothing reads it.
fn is_streamed(program: &Program, tensor: TensorId, estimate: &[f64], real: Real, target: &Target) -> bool {
    let bytes = program[tensor].elements(estimate) * real.bytes() as f64;
    let mut bodies = program.definitions.iter().map(|definition| definition.body);
    let is_read = bodies.any(|body| program.exprs.accesses(body).any(|(read, _)| read == tensor));
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
    /// The height of the slab at hand.
    width: f64,
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
    /// Whether members keep what they need beside the slab from tile to tile.
    rolling: bool,
    context: Vec<Constraint>,
}

impl Looping<'_> {
    fn group(&mut self, group: &Group) {
        let number = self.kernels.len();
        let lead = group.members.iter().find_map(|m| m.slab.map(|p| (m, p)));
        let range = lead.map(|(m, p)| self.program.definitions[m.definition].indices[p].range.clone());
        let doc = group.members.iter().map(|m| self.docs[m.definition].clone()).collect();
        let mut making = self.making(group, range.as_ref(), doc);
        let (start, last) = (Affine::index(FIRST).shift(-group.lead()), Affine::index(LAST));
        if range.is_some() && (group.tiles > 1 || group.parts.is_some()) {
            making.tile = making.variable("tile");
            making.context.push(Constraint::at_most(start.clone(), Affine::index(making.tile)));
            making.context.push(Constraint::at_most(Affine::index(making.tile), last.clone()));
        }
        self.place_locals(group, number);
        let partial = self.partials(group);
        let is_part = |m: &Member| partial.iter().find(|(d, _)| *d == m.definition).map(|(_, buffer)| *buffer);
        let (mut across, buffers) = (self.across(group), self.buffers.len());
        let (inside, mut making) = loop {
            let mut making = making.clone();
            self.buffers.truncate(buffers);
            self.panels = None;
            let inside = self.inside(group, &is_part, &across, &mut making);
            let tried: Vec<_> = partial.iter().filter(|(d, _)| across.contains(d)).copied().collect();
            match across::alone(&self.exprs, &inside, &tried) {
                Some((definition, _)) => across.retain(|d| d != definition),
                None => break (inside, making),
            }
        };
        let clear =
            |(d, buffer): &(usize, TensorId)| vec![self.cleared(&self.program.definitions[*d], *buffer, &mut making)];
        let before: Vec<Vec<Leaf>> = partial.iter().map(clear).collect();
        let inside = self.steps(inside);
        making.kernel.steps = self.steps(before);
        if making.tile == FIRST {
            making.kernel.steps.extend(inside);
        } else {
            let range = Range { low: vec![start], high: vec![last] };
            let tile = Tile { variable: making.tile, range, size: group.tile, steps: inside };
            making.kernel.steps.push(Step::Tile(tile));
        }
        self.kernels.push(making.kernel);
        for (definition, buffer) in partial {
            self.combined(&self.program.definitions[definition].clone(), buffer);
        }
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

    /// A kernel without steps, for a slab index of this range.
    fn making(&mut self, group: &Group, range: Option<&Range>, doc: Vec<String>) -> Making {
        self.width = group.tile as f64;
        let work = range.map_or_else(Work::single, |range| work(range, group));
        let mut context = self.context.clone();
        context.push(Constraint::at_most(work.low.clone(), Affine::index(FIRST)));
        context.push(Constraint::at_most(Affine::index(LAST), work.high.clone()));
        let name = format!("kernel_{}", self.kernels.len());
        let variables = ["first", "last", "item"].map(String::from).to_vec();
        let kernel = Kernel { name, doc, variables, work, steps: Vec::new() };
        Making { kernel, tile: FIRST, size: group.tile, rolling: group.rolling, context }
    }

    /// Local members get a buffer of the size of a slab.
    fn place_locals(&mut self, group: &Group, number: usize) {
        for member in group.members.iter().filter(|m| m.local) {
            let definition = &self.program.definitions[member.definition];
            let slot = definition.tensor.0 as usize;
            self.buffers[slot].scope = Scope::Local(number);
            if let Some(slab) = member.slab.filter(|&p| p < definition.rank) {
                let rows = group.tile + member.halo.0 + member.halo.1;
                let tensor = &mut self.buffers[slot];
                tensor.extents[slab] = Affine::constant(rows);
                if slab + 1 < definition.rank
                    && let Some(width) = tensor.extents.last_mut()
                    && width.estimate(&[], self.estimate) % cost::ALIASED_ROW_ELEMENTS == 0.0
                {
                    *width = width.shift(cost::ROW_GAP_LINES * self.target.line_bytes / Real::F64.bytes());
                }
                let ring = (group.rolling && member.halo != (0, 0)).then_some(rows);
                self.slabs.insert(definition.tensor, Slab { dimension: slab, before: member.halo.0, ring });
            }
        }
    }

    /// A buffer with one part for each item, for every member that reduces over the slab index.
    fn partials(&mut self, group: &Group) -> Vec<(usize, TensorId)> {
        let Some(parts) = group.parts else { return Vec::new() };
        let mut found = Vec::new();
        for member in &group.members {
            let definition = &self.program.definitions[member.definition];
            if member.slab.is_some_and(|p| p >= definition.rank) {
                let tensor = &self.program[definition.tensor];
                let extents = self.in_parts(definition, &tensor.extents, Affine::constant(parts));
                let name = format!("{}_parts", tensor.name);
                let buffer = self.buffer(name, extents, Scope::Run);
                found.push((member.definition, buffer));
            }
        }
        found
    }

    /// What stands for the dimensions of a definition, in the order of its parts: the part, and last what runs in lanes.
    fn in_parts(&self, definition: &Definition, dimensions: &[Affine], part: Affine) -> Vec<Affine> {
        let lanes = lanes(self.program, definition, self.estimate, self.target);
        let mut order: Vec<usize> = (0..definition.rank).collect();
        order.sort_by_key(|position| Some(*position) == lanes);
        std::iter::once(part).chain(order.into_iter().map(|position| dimensions[position].clone())).collect()
    }

    fn buffer(&mut self, name: String, extents: Vec<Affine>, scope: Scope) -> TensorId {
        let taken = |n: &str| self.buffers.iter().any(|t| t.name == n);
        let name = names::fresh_where(&name, taken);
        self.buffers.push(Buffer { name, extents, scope, streamed: false });
        TensorId(self.buffers.len() as u32 - 1)
    }

    /// A leaf that sets this item's part to the neutral value.
    fn cleared(&mut self, definition: &Definition, buffer: TensorId, making: &mut Making) -> Leaf {
        let mut outputs: Vec<Loop> = definition.indices[..definition.rank]
            .iter()
            .map(|index| Loop {
                variable: making.variable(&index.name),
                range: index.range.clone(),
                kind: Kind::Serial,
            })
            .collect();
        let own: Vec<Affine> = outputs.iter().map(|l| Affine::index(l.variable)).collect();
        let subscripts = self.in_parts(definition, &own, Affine::index(ITEM));
        let op = definition.reduction.expect("what has parts is a reduction");
        let body = self.exprs.constant(op.neutral());
        let last = subscripts.last().and_then(Affine::as_index);
        if let Some(lanes) = outputs.iter_mut().find(|l| Some(l.variable.number()) == last && !self.plain) {
            lanes.kind = Kind::Lanes(1);
        }
        Leaf::pointwise(buffer, subscripts, outputs, body)
    }

    /// A kernel that combines the parts in order.
    fn combined(&mut self, definition: &Definition, buffer: TensorId) {
        let op = definition.reduction.expect("what has parts is a reduction");
        let rank = definition.rank;
        let part =
            Index { name: "part".into(), range: Range::extent(self.buffers[buffer.0 as usize].extents[0].clone()) };
        let indices: Vec<_> = definition.indices[..rank].iter().cloned().chain([part]).collect();
        let own: Vec<Affine> = (0..rank).map(Affine::index).collect();
        let subscripts = self.in_parts(definition, &own, Affine::index(rank));
        let body = self.exprs.access(buffer, subscripts);
        let whole = Definition {
            tensor: definition.tensor,
            indices,
            rank,
            reduction: Some(op),
            conditions: Vec::new(),
            assumptions: Vec::new(),
            body,
        };
        let group = self.sharing(&whole);
        let doc = vec![format!("{}: its parts, combined in order", self.program[definition.tensor].name)];
        let range = group.members[0].slab.map(|slab| whole.indices[slab].range.clone());
        let mut making = self.making(&group, range.as_ref(), doc);
        let placed = self.place(&whole, &group.members[0], &mut making, None);
        let leaves = self.leaves_of(placed, &mut making);
        making.kernel.steps = self.steps(leaves.into_iter().map(|leaf| vec![leaf]).collect());
        self.kernels.push(making.kernel);
    }

    /// How the elements of what is combined are shared out: by the first index, if there are enough of them.
    fn sharing(&self, whole: &Definition) -> Group {
        let sizes = extents(whole, self.estimate);
        let items = (sizes.iter().product::<f64>() / cost::ITEM_POINTS).floor().min(self.target.items as f64);
        let bounds = whole.indices.first().map_or((0, 0), |index| (index.range.low.len(), index.range.high.len()));
        let shared = whole.rank > 1 && items > 1.0 && whole.is_box() && bounds == (1, 1);
        let (slab, tile) = match shared {
            true => (Some(0), (sizes[0] / items).ceil() as i64),
            false => (None, 1),
        };
        let member = Member { definition: 0, slab, halo: (0, 0), ahead: 0, local: false };
        Group { members: vec![member], tile, tiles: 1, parts: None, considered: Vec::new(), rolling: false }
    }

    /// The assumed number of values of each loop.
    fn extents(&self, loops: &[Loop]) -> Vec<f64> {
        let mut middle = vec![0.0; loops.iter().map(|l| l.variable.number() + 1).max().unwrap_or(0).max(3)];
        let mut extents = Vec::new();
        for l in loops {
            let (low, high) = self.span(&l.range, &middle);
            extents.push((high - low + 1.0).max(0.0));
            middle[l.variable.number()] = (low + high) / 2.0;
        }
        extents
    }

    /// Assumed bounds; those of slabs don't count.
    fn span(&self, range: &Range, middle: &[f64]) -> (f64, f64) {
        let at = |a: &&Affine| a.estimate(middle, self.estimate);
        let own = |a: &&Affine| !a.uses_index(FIRST) && !a.uses_index(LAST);
        let low = range.low.iter().filter(own).map(|a| at(&a)).fold(f64::NEG_INFINITY, f64::max);
        let high = range.high.iter().filter(own).map(|a| at(&a)).fold(f64::INFINITY, f64::min);
        let width = self.width;
        match (low.is_finite(), high.is_finite()) {
            (true, true) => (low, high.min(low + self.slab_extent(range) - 1.0)),
            (true, false) => (low, low + width - 1.0),
            (false, true) => (high - width + 1.0, high),
            (false, false) => (0.0, width - 1.0),
        }
    }

    /// The values that the bounds of a slab leave.
    fn slab_extent(&self, range: &Range) -> f64 {
        let at = |a: &Affine| a.estimate(&[0.0, self.width - 1.0], self.estimate);
        let low = range.low.iter().filter(|a| a.uses_index(FIRST)).map(at).fold(f64::NEG_INFINITY, f64::max);
        let high = range.high.iter().filter(|a| a.uses_index(LAST)).map(at).fold(f64::INFINITY, f64::min);
        (high - low + 1.0).max(0.0)
    }

    /// The assumed middle of the space, by variable.
    fn middle(&self, placed: &place::Placed, making: &Making) -> Vec<f64> {
        let mut middle = vec![0.0; making.kernel.variables.len()];
        let work = &making.kernel.work;
        let (low, high) = (work.low.estimate(&[], self.estimate), work.high.estimate(&[], self.estimate));
        let half = making.size as f64 / 2.0;
        middle[FIRST.number()] = ((low + high) / 2.0 - half).max(low);
        middle[LAST.number()] = ((low + high) / 2.0 + half).min(high);
        middle[making.tile.number()] = middle[FIRST.number()];
        for (&v, range) in placed.variables.iter().zip(&placed.ranges) {
            let low = range.low.iter().map(|a| a.estimate(&middle, self.estimate));
            let high = range.high.iter().map(|a| a.estimate(&middle, self.estimate));
            middle[v.number()] = (low.fold(f64::NEG_INFINITY, f64::max) + high.fold(f64::INFINITY, f64::min)) / 2.0;
        }
        middle
    }
}

impl Making {
    fn variable(&mut self, name: &str) -> LoopId {
        self.kernel.variables.push(name.to_string());
        LoopId(self.kernel.variables.len() as u32 - 1)
    }
}

/// How the values of the slab index are divided into items.
fn work(range: &Range, group: &Group) -> Work {
    // Bounds in other indices are those of the loops inside.
    let plain = |bounds: &[Affine]| bounds.iter().find(|b| !b.uses_indices()).unwrap_or(&bounds[0]).clone();
    let (low, high) = (plain(&range.low), plain(&range.high));
    match group.parts {
        None => Work { low, high, step: Affine::constant(group.tile * group.tiles), parts: None },
        Some(parts) => {
            // As many whole tiles as all parts need.
            let unit = Int::from(parts * group.tile);
            let extent = (high.clone() - low.clone()).shift(1);
            let step = extent.shift(&unit - Int::ONE).floor_div(&unit).scale(&Int::from(group.tile));
            Work { low, high, step, parts: Some(parts) }
        }
    }
}
