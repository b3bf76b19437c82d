//! Reductions over the slab index, in a fixed number of parts: each item clears its part and adds to it, and a kernel of its
//! own combines the parts in order.

use super::{Looping, Making};
use crate::domain::estimate::extents;
use crate::nest::{ITEM, Kind, Leaf, Loop, Scope};
use crate::program::{Affine, Definition, Index, Range, TensorId};
use crate::schedule::{Group, Member, lanes};
use crate::target::cost;

impl Looping<'_> {
    /// A buffer with one part for each item, for every member that reduces over the slab index.
    pub fn partials(&mut self, group: &Group) -> Vec<(usize, TensorId)> {
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
    pub fn in_parts(&self, definition: &Definition, dimensions: &[Affine], part: Affine) -> Vec<Affine> {
        let lanes = lanes(self.program, definition, self.estimate, self.target);
        let mut order: Vec<usize> = (0..definition.rank).collect();
        order.sort_by_key(|position| Some(*position) == lanes);
        std::iter::once(part).chain(order.into_iter().map(|position| dimensions[position].clone())).collect()
    }

    /// A leaf that sets this item's part to the neutral value.
    pub fn cleared(&mut self, member: &Member, buffer: TensorId, making: &mut Making) -> Leaf {
        let definition = &self.program.definitions[member.definition];
        let mut ranges: Vec<Range> = definition.indices.iter().map(|index| index.range.clone()).collect();
        making.within_grid(&mut ranges, member);
        let output = |(index, range): (&Index, Range)| Loop {
            variable: making.variable(&index.name),
            range,
            kind: Kind::Serial,
        };
        let outputs = definition.indices[..definition.rank].iter();
        let mut outputs: Vec<Loop> = outputs.zip(ranges).map(output).collect();
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
    pub fn combined(&mut self, definition: &Definition, buffer: TensorId) {
        let op = definition.reduction.expect("what has parts is a reduction");
        let rank = definition.rank;
        let part =
            Index { name: "part".into(), range: Range::extent(self.buffers[buffer.0 as usize].extents[0].clone()) };
        let indices: Vec<_> = definition.indices[..rank].iter().cloned().chain([part]).collect();
        let own: Vec<Affine> = (0..rank).map(Affine::index).collect();
        let subscripts = self.in_parts(definition, &own, Affine::index(rank));
        let body = self.exprs.access(buffer, subscripts);
        let whole = Definition::pointwise(definition.tensor, indices, body);
        let whole = Definition { rank, reduction: Some(op), ..whole };
        let group = self.sharing(&whole);
        let doc = vec![format!("{}: its parts, combined in order", self.program[definition.tensor].name)];
        let mut making = self.making(&group, &whole, doc);
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
        Group::alone(Member::new(0, slab), tile, None)
    }
}
