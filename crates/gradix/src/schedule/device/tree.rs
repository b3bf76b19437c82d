//! Long sums: the threads of a block share the terms, and what each of them has is added up as a tree.
//!
//! ```text
//! items of y:                                    part[t] = 0                     for t threads
//!   tile box by 256: part[t] += x[i, box + t]    for t threads
//!   sums[t] = part[t]; sums[t] += sums[t + 128] for t in 0..128; … + 64; …; y[i] = sums[0]
//! ```
//!
//! Where neighbouring elements of a sum lie side by side along an output and not along the terms, a block has a warp's width of
//! outputs, and its threads share the terms of each. Where all that makes too few items to fill the machine, the terms are
//! divided among items, too, along the index with the most, in a number of parts that depends on the assumed sizes alone. A
//! second kernel combines the parts in order.

use super::making::{Making, bounds, own_place};
use super::{Scheduling, power_of_two};
use crate::nest::{Kind, Leaf, Loop, LoopId, Scope, Step, Tile, Work};
use crate::program::{Affine, Definition, Expr, ExprId, Index, Range, ReduceOp, TensorId};
use crate::target::cost;

/// How the terms of a sum are shared.
struct Sharing {
    /// The index that threads share, by position.
    index: usize,
    /// By how many.
    threads: i64,
    /// The output of which a block has several values, and how many.
    rows: Option<(usize, i64)>,
    /// The index along which the terms are divided among items, by position, and in how many parts.
    parts: Option<(usize, i64)>,
}

impl Sharing {
    /// Whether neighbouring threads have neighbouring values of the output that a block has several of, not of the terms.
    fn is_wide(&self) -> bool {
        self.rows.is_some_and(|(_, count)| count >= cost::WARP_VALUES as i64)
    }
}

/// What the leaves of a block have in common.
struct Block {
    /// Which of the threads that share terms, and how many these are.
    t: LoopId,
    threads: i64,
    /// The outputs of which a block has several values.
    rows: Vec<Loop>,
    /// 1 if neighbouring threads have neighbouring values of these.
    wide: usize,
}

impl Block {
    /// What belongs to the rows and to the threads, in the order of the loops, of which the last goes fastest.
    fn in_order<T>(&self, rows: Vec<T>, threads: T) -> Vec<T> {
        let mut all = rows;
        all.push(threads);
        all.rotate_right(self.wide);
        all
    }

    /// The place of what thread `at` has.
    fn place(&self, at: Affine) -> Vec<Affine> {
        self.in_order(self.rows.iter().map(own_place).collect(), at)
    }

    fn own(&self) -> Vec<Affine> {
        self.place(Affine::index(self.t))
    }

    /// The loops of the first threads, up to other bounds.
    fn first(&self, count: i64, bounds: Vec<Affine>) -> Vec<Loop> {
        let high = std::iter::once(Affine::constant(count - 1)).chain(bounds).collect();
        let range = Range { low: vec![Affine::constant(0)], high };
        self.in_order(self.rows.clone(), Loop { variable: self.t, range, kind: Kind::Threads(self.threads as usize) })
    }

    fn all(&self) -> Vec<Loop> {
        self.first(self.threads, Vec::new())
    }
}

impl Scheduling<'_> {
    /// A kernel in which blocks share the terms, if that pays.
    pub fn tree(&mut self, definition: &Definition, last: Option<&Definition>, sizes: &[f64], doc: &[String]) -> bool {
        let Some((op, sharing)) = definition.reduction.zip(self.sharing(definition, sizes)) else { return false };
        match sharing.parts {
            None => self.shared(definition, last, (op, &sharing), None, doc.to_vec()),
            Some((_, parts)) => {
                let buffer = self.buffer_of_parts(definition, parts);
                self.shared(definition, None, (op, &sharing), Some(buffer), doc[..1].to_vec());
                self.combined(definition, last, buffer, parts);
            }
        }
        true
    }

    /// How terms are shared, if that is better than a thread for each element.
    fn sharing(&self, definition: &Definition, sizes: &[f64]) -> Option<Sharing> {
        let rank = definition.rank;
        if definition.indices[..rank].iter().any(|index| bounds(&index.range, &self.times).is_none()) {
            return None;
        }
        let elements: f64 = sizes[..rank].iter().product();
        let is_free = |position: &usize| {
            let range = &definition.indices[*position].range;
            let mut uses = false;
            let mut see = |bound: &Affine| bound.visit_indices(&mut |i| uses |= i >= rank && i > *position);
            range.low.iter().chain(&range.high).for_each(&mut see);
            !uses
        };
        let resident = self.device.resident_threads as f64;
        let blocks = resident / self.device.block_threads as f64;
        // With a thread for each element, the machine is filled to this share.
        let filled = (elements / resident).min(1.0);
        let alone = (0..rank).map(|p| self.loads(definition, sizes, p)).fold(f64::INFINITY, f64::min);
        let alone = if rank == 0 { cost::SAME_ELEMENT_LOADS } else { alone } / filled;
        let of = |(index, rows): (usize, Option<(usize, i64)>)| {
            let beside = rows.map_or(1, |(_, count)| count);
            let threads = power_of_two(sizes[index], self.device.block_threads / beside);
            let items = (elements / beside as f64).max(1.0);
            let parts = self.parts(definition, sizes, (index, threads), items);
            let sharing = Sharing { index, threads, rows, parts };
            let lanes = rows.filter(|_| sharing.is_wide()).map_or(index, |(row, _)| row);
            let loads = self.loads(definition, sizes, lanes);
            let filled = (items * parts.map_or(1, |(_, parts)| parts) as f64 / blocks).min(1.0);
            let terms: f64 = sizes[rank..].iter().product();
            let added = cost::TREE_STEP_LOADS * (threads as f64).log2() / terms.max(1.0) * threads as f64;
            ((loads + added) / filled, sharing)
        };
        let candidates = (rank..definition.indices.len()).filter(is_free);
        let candidates = candidates.flat_map(|index| {
            let few = power_of_two(sizes[index], self.device.block_threads);
            let left = self.rows(definition, sizes, rank.checked_sub(1), self.device.block_threads / few);
            let wide = (0..rank).filter_map(|row| self.rows(definition, sizes, Some(row), cost::WARP_VALUES as i64));
            std::iter::once(left).chain(wide.map(Some)).map(move |rows| (index, rows))
        });
        let (cost, sharing) = candidates.map(of).min_by(|a, b| a.0.total_cmp(&b.0))?;
        (cost < alone && sharing.threads > 1).then_some(sharing)
    }

    /// The index along which the terms are divided among items, and in how many parts: so many that these items fill the machine.
    fn parts(
        &self,
        definition: &Definition,
        sizes: &[f64],
        (index, threads): (usize, i64),
        items: f64,
    ) -> Option<(usize, i64)> {
        let blocks = self.device.resident_threads as f64 / self.device.block_threads as f64;
        // What a block takes of its terms for each value of an index: a thread is to have some.
        let of_thread: f64 = sizes[definition.rank..].iter().product::<f64>() / threads as f64;
        let most = (of_thread / cost::PART_TERMS_OF_THREAD).floor();
        let of = |position: usize| {
            let unit = if position == index { threads as f64 } else { 1.0 };
            let own = (sizes[position] / unit).floor().min(most).min(cost::MAX_DEVICE_PARTS);
            (position, (blocks / items).floor().min(own))
        };
        let is_used = |position: usize| {
            let ranges = definition.indices.iter().map(|i| &i.range);
            ranges.flat_map(|range| range.low.iter().chain(&range.high)).any(|bound| bound.uses_index(position))
        };
        let is_plain = |position: &usize| {
            bounds(&definition.indices[*position].range, &self.times).is_some() && !is_used(*position)
        };
        let found = (definition.rank..definition.indices.len()).filter(is_plain).map(of);
        let (position, parts) = found.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
        (parts >= 2.0).then_some((position, parts as i64))
    }

    /// An output of which a block has several values, at most so many: the bounds of the terms must be the same for all of them.
    fn rows(&self, definition: &Definition, sizes: &[f64], row: Option<usize>, count: i64) -> Option<(usize, i64)> {
        let row = row.filter(|_| count > 1)?;
        let terms = &definition.indices[row + 1..];
        let moves = terms.iter().any(|i| i.range.low.iter().chain(&i.range.high).any(|b| b.uses_index(row)));
        let rows = power_of_two(sizes[row], count);
        (!moves && rows > 1).then_some((row, rows))
    }

    /// The kernel in which blocks share terms; parts of sums go to a buffer.
    fn shared(
        &mut self,
        definition: &Definition,
        last: Option<&Definition>,
        (op, sharing): (ReduceOp, &Sharing),
        parts: Option<TensorId>,
        doc: Vec<String>,
    ) {
        let mut making = self.start(doc);
        let part = sharing.parts.and_then(|(position, count)| {
            let unit = if position == sharing.index { sharing.threads } else { 1 };
            Some((position, making.part(definition, position, unit, count)?))
        });
        let (mut own, mut rows): (Vec<Affine>, Vec<Loop>) = (Vec::new(), Vec::new());
        for position in 0..definition.rank {
            let threads = sharing.rows.filter(|(row, _)| *row == position).map_or(1, |(_, count)| count);
            let place = making.output(definition, position, &own, threads, 1);
            own.push(place.value);
            rows.extend(place.inside);
        }
        making.close_grid();
        let wide = usize::from(sharing.is_wide());
        let block = Block { t: making.variable("t"), threads: sharing.threads, rows, wide };
        let extents = block.in_order(sharing.rows.iter().map(|(_, count)| *count).collect(), sharing.threads);
        let (held, sums) = (self.local("part", &extents, true), self.local("sums", &extents, false));
        let neutral = self.exprs.constant(op.neutral());
        making.leaf(Leaf::pointwise(held, block.own(), block.all(), neutral));
        let step =
            self.terms_of_block(&mut making, definition, (op, sharing, part.as_ref()), &block, (held, own.clone()));
        making.kernel.steps.push(step);
        let value = self.added_up(&mut making, op, &block, (held, sums));
        match (parts, part) {
            (Some(buffer), Some((_, work))) => {
                let at = std::iter::once(Affine::index(work.item)).chain(own).collect();
                making.leaf(Leaf::pointwise(buffer, at, block.rows, value));
            }
            _ => self.store(&mut making, definition, last, (&own, block.rows), value),
        }
        self.finish(making);
    }

    /// The tiles in which each thread takes its terms; `own` stands for the outputs.
    fn terms_of_block(
        &mut self,
        making: &mut Making,
        definition: &Definition,
        (op, sharing, part): (ReduceOp, &Sharing, Option<&(usize, Work)>),
        block: &Block,
        (held, own): (TensorId, Vec<Affine>),
    ) -> Step {
        let range_of = |position: usize, map: &[Affine]| match part {
            Some((divided, work)) if *divided == position => {
                Range { low: vec![Affine::index(work.first)], high: vec![Affine::index(work.last)] }
            }
            _ => definition.indices[position].range.map(|bound| bound.with_indices(map)),
        };
        let (mut map, mut tiles, mut terms) = (own, Vec::new(), Vec::new());
        let mut inside = Vec::new();
        for (position, index) in definition.indices.iter().enumerate().skip(definition.rank) {
            let name = if position == sharing.index { "box" } else { &index.name };
            let (variable, range) = (making.variable(name), range_of(position, &map));
            map.push(Affine::index(variable));
            if position == sharing.index {
                let high = range.high.iter().map(|high| high.clone() - Affine::index(variable));
                inside = block.first(sharing.threads, high.collect());
                map[position] = Affine::index(variable) + Affine::index(block.t);
            }
            match position <= sharing.index {
                true => tiles.push(Tile::each(variable, range, Vec::new())),
                false => terms.push(Loop { variable, range, kind: Kind::Serial }),
            }
        }
        if let Some(shared) = tiles.last_mut() {
            shared.size = sharing.threads;
        }
        let body = self.mapped(definition.body, &map);
        let guards = definition.conditions.iter().map(|c| c.with_indices(&map)).collect();
        let leaf = self.added(held, block.own(), inside, terms, op, body);
        let leaf = Step::Leaf(Leaf { guards, ..leaf });
        tiles.into_iter().rev().fold(leaf, |inner, tile| Step::Tile(Tile { steps: vec![inner], ..tile }))
    }

    /// The tree over what threads have, and the value that is then in its root.
    fn added_up(
        &mut self,
        making: &mut Making,
        op: ReduceOp,
        block: &Block,
        (held, sums): (TensorId, TensorId),
    ) -> ExprId {
        let value = self.exprs.access(held, block.own());
        making.leaf(Leaf::pointwise(sums, block.own(), block.all(), value));
        let mut apart = block.threads / 2;
        while apart > 0 {
            let there = self.exprs.access(sums, block.place(Affine::index(block.t).shift(apart)));
            let leaf = self.added(sums, block.own(), block.first(apart, Vec::new()), Vec::new(), op, there);
            making.leaf(leaf);
            apart /= 2;
        }
        self.exprs.access(sums, block.place(Affine::constant(0)))
    }

    /// A leaf that combines what its target holds with more terms.
    fn added(
        &mut self,
        target: TensorId,
        at: Vec<Affine>,
        outputs: Vec<Loop>,
        terms: Vec<Loop>,
        op: ReduceOp,
        body: ExprId,
    ) -> Leaf {
        if terms.is_empty() {
            let held = self.exprs.access(target, at.clone());
            let combine = op.combine().expect("two values at a time");
            let both = self.exprs.add(Expr::Binary(combine, held, body));
            return Leaf::pointwise(target, at, outputs, both);
        }
        let count = outputs.len();
        let leaf = Leaf::pointwise(target, at, outputs.into_iter().chain(terms).collect(), body);
        Leaf { outputs: count, reduction: Some(op), accumulate: true, ..leaf }
    }

    /// Room for so many parts of each element.
    pub fn buffer_of_parts(&mut self, definition: &Definition, parts: i64) -> TensorId {
        let extents = &self.program[definition.tensor].extents;
        let all = std::iter::once(Affine::constant(parts)).chain(extents.iter().cloned()).collect();
        let name = format!("{}_parts", self.name_of(definition.tensor));
        self.buffer(&name, all, Scope::Run, false)
    }

    /// A kernel that combines parts in order.
    pub fn combined(&mut self, definition: &Definition, last: Option<&Definition>, buffer: TensorId, parts: i64) {
        let rank = definition.rank;
        let part = Index { name: "part".into(), range: Range::extent(Affine::constant(parts)) };
        let at: Vec<Affine> = std::iter::once(rank).chain(0..rank).map(Affine::index).collect();
        let indices = definition.indices[..rank].iter().cloned().chain([part]).collect();
        let whole = Definition::pointwise(definition.tensor, indices, self.exprs.access(buffer, at));
        let whole = Definition { rank, reduction: definition.reduction, ..whole };
        let doc = vec![format!("{}: its parts, combined in order", self.name_of(definition.tensor))];
        let sizes = super::extents(&whole, self.estimate);
        if !self.tree(&whole, last, &sizes, &doc) {
            self.elements(&whole, last, &sizes, doc);
        }
    }
}
