//! Long sums: the threads of a block share the terms, and what each of them has is added up as a tree.
//!
//! ```text
//! items of y:                                    part[t] = 0                     for t threads
//!   tile box by 256: part[t] += x[i, box + t]    for t threads
//!   sums[t] = part[t]; sums[t] += sums[t + 128] for t in 0..128; … + 64; …; y[i] = sums[0]
//! ```
//!
//! Where that makes too few items to fill the machine, the terms are divided among items, too, in a number of parts that
//! depends on the assumed sizes alone. A second kernel combines the parts in order.

use super::making::{bounds, own_place};
use super::{Scheduling, power_of_two};
use crate::nest::{Kind, Leaf, Loop, Scope, Step, Tile};
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
    /// In how many parts the terms are divided among items.
    parts: Option<i64>,
}

impl Scheduling<'_> {
    /// A kernel in which blocks share the terms, if that pays.
    pub fn tree(&mut self, definition: &Definition, last: Option<&Definition>, sizes: &[f64], doc: &[String]) -> bool {
        let Some((op, sharing)) = definition.reduction.zip(self.sharing(definition, sizes)) else { return false };
        match sharing.parts {
            None => self.shared(definition, last, (op, &sharing), None, doc.to_vec()),
            Some(parts) => {
                let extents = &self.program[definition.tensor].extents;
                let all = std::iter::once(Affine::constant(parts)).chain(extents.iter().cloned()).collect();
                let name = format!("{}_parts", self.name_of(definition.tensor));
                let buffer = self.buffer(&name, all, Scope::Run, false);
                self.shared(definition, None, (op, &sharing), Some(buffer), doc[..1].to_vec());
                self.combined(definition, last, buffer, parts);
            }
        }
        true
    }

    /// How terms are shared, if that is better than a thread for each element.
    fn sharing(&self, definition: &Definition, sizes: &[f64]) -> Option<Sharing> {
        let rank = definition.rank;
        let elements: f64 = sizes[..rank].iter().product();
        let is_free = |position: &usize| {
            let range = &definition.indices[*position].range;
            let mut uses = false;
            let mut see = |bound: &Affine| bound.visit_indices(&mut |i| uses |= i >= rank && i > *position);
            range.low.iter().chain(&range.high).for_each(&mut see);
            !uses
        };
        let resident = self.device.resident_threads as f64;
        // With a thread for each element, the machine is filled to this share.
        let filled = (elements / resident).min(1.0);
        let alone = (0..rank).map(|p| self.loads(definition, sizes, p)).fold(f64::INFINITY, f64::min);
        let alone = if rank == 0 { cost::SAME_ELEMENT_LOADS } else { alone } / filled;
        let of = |index: usize| {
            let threads = power_of_two(sizes[index], self.device.block_threads);
            let rows = self.rows(definition, sizes, self.device.block_threads / threads);
            let loads = self.loads(definition, sizes, index);
            let items = (elements / rows.map_or(1.0, |(_, count)| count as f64)).max(1.0);
            let blocks = resident / self.device.block_threads as f64;
            let most = (sizes[index] / (threads as f64 * cost::PART_TERMS_OF_THREAD)).floor();
            let wanted = (blocks / items).floor().min(most).min(cost::MAX_DEVICE_PARTS);
            let parts = (wanted >= 2.0 && bounds(&definition.indices[index].range).is_some()).then_some(wanted as i64);
            let filled = (items * parts.unwrap_or(1) as f64 / blocks).min(1.0);
            let terms: f64 = sizes[rank..].iter().product();
            let added = cost::TREE_STEP_LOADS * (threads as f64).log2() / terms.max(1.0) * threads as f64;
            ((loads + added) / filled, Sharing { index, threads, rows, parts })
        };
        let candidates = (rank..definition.indices.len()).filter(is_free).map(of);
        let (cost, sharing) = candidates.min_by(|a, b| a.0.total_cmp(&b.0))?;
        (cost < alone && sharing.threads > 1).then_some(sharing)
    }

    /// The output of which a block has several values, where its threads are more than a sum has terms: the bounds of the
    /// terms must be the same for all of them.
    fn rows(&self, definition: &Definition, sizes: &[f64], count: i64) -> Option<(usize, i64)> {
        let row = definition.rank.checked_sub(1).filter(|_| count > 1)?;
        let terms = &definition.indices[definition.rank..];
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
        let index = &definition.indices[sharing.index];
        let part = sharing.parts.and_then(|count| {
            let (low, high) = bounds(&index.range)?;
            let unit = count * sharing.threads;
            let step = (high.clone() - low.clone()).shift(unit).floor_div(&unit.into()).scale(&sharing.threads.into());
            Some(making.divide(&index.name, low, high, step, Some(count)))
        });
        let (mut map, mut rows): (Vec<Affine>, Vec<Loop>) = (Vec::new(), Vec::new());
        for position in 0..definition.rank {
            let threads = sharing.rows.filter(|(row, _)| *row == position).map_or(1, |(_, count)| count);
            let place = making.output(definition, position, &map, threads, 1);
            map.push(place.value);
            rows.extend(place.inside);
        }
        making.close_grid();
        let own = map.clone();
        let t = making.variable("t");
        let threads = |high: Vec<Affine>| Loop {
            variable: t,
            range: Range { low: vec![Affine::constant(0)], high },
            kind: Kind::Threads(sharing.threads as usize),
        };
        let all = threads(vec![Affine::constant(sharing.threads - 1)]);
        let extents: Vec<i64> = sharing.rows.iter().map(|(_, count)| *count).chain([sharing.threads]).collect();
        let place = |at: Affine| -> Vec<Affine> { rows.iter().map(own_place).chain([at]).collect() };
        let (held, sums) = (self.local("part", &extents, true), self.local("sums", &extents, false));
        let outer = |t: Loop| -> Vec<Loop> { rows.iter().cloned().chain([t]).collect() };
        let neutral = self.exprs.constant(op.neutral());
        making.leaf(Leaf::pointwise(held, place(Affine::index(t)), outer(all.clone()), neutral));
        // The terms, from the outermost index in: tiles up to the shared one.
        let mut tiles: Vec<Tile> = Vec::new();
        for index in &definition.indices[definition.rank..sharing.index] {
            let variable = making.variable(&index.name);
            tiles.push(Tile::each(variable, index.range.map(|b| b.with_indices(&map)), Vec::new()));
            map.push(Affine::index(variable));
        }
        let first = making.variable("box");
        let mut range = index.range.map(|bound| bound.with_indices(&map));
        if let Some(work) = &part {
            range = Range { low: vec![Affine::index(work.first)], high: vec![Affine::index(work.last)] };
        }
        let high = range.high.iter().map(|high| high.clone() - Affine::index(first));
        let inside = threads(std::iter::once(Affine::constant(sharing.threads - 1)).chain(high).collect());
        tiles.push(Tile { size: sharing.threads, ..Tile::each(first, range, Vec::new()) });
        map.push(Affine::index(first) + Affine::index(t));
        let terms = self.terms(definition, &mut map, &mut making);
        let body = self.mapped(definition.body, &map);
        let guards = definition.conditions.iter().map(|c| c.with_indices(&map)).collect();
        let leaf = self.added(held, place(Affine::index(t)), outer(inside), terms, op, body);
        let mut inner = Step::Leaf(Leaf { guards, ..leaf });
        for tile in tiles.into_iter().rev() {
            inner = Step::Tile(Tile { steps: vec![inner], ..tile });
        }
        making.kernel.steps.push(inner);
        let value = self.exprs.access(held, place(Affine::index(t)));
        making.leaf(Leaf::pointwise(sums, place(Affine::index(t)), outer(all), value));
        let mut apart = sharing.threads / 2;
        while apart > 0 {
            let there = self.exprs.access(sums, place(Affine::index(t).shift(apart)));
            let few = outer(threads(vec![Affine::constant(apart - 1)]));
            let leaf = self.added(sums, place(Affine::index(t)), few, Vec::new(), op, there);
            making.leaf(leaf);
            apart /= 2;
        }
        let value = self.exprs.access(sums, place(Affine::constant(0)));
        match (parts, part) {
            (Some(buffer), Some(work)) => {
                let at = std::iter::once(Affine::index(work.item)).chain(own).collect();
                making.leaf(Leaf::pointwise(buffer, at, rows, value));
            }
            _ => self.store(&mut making, definition, last, (&own, rows), value),
        }
        self.finish(making);
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

    /// A kernel that combines parts in order.
    fn combined(&mut self, definition: &Definition, last: Option<&Definition>, buffer: TensorId, parts: i64) {
        let rank = definition.rank;
        let part = Index { name: "part".into(), range: Range::extent(Affine::constant(parts)) };
        let at: Vec<Affine> = std::iter::once(rank).chain(0..rank).map(Affine::index).collect();
        let whole = Definition {
            tensor: definition.tensor,
            indices: definition.indices[..rank].iter().cloned().chain([part]).collect(),
            rank,
            reduction: definition.reduction,
            conditions: Vec::new(),
            assumptions: Vec::new(),
            body: self.exprs.access(buffer, at),
        };
        let doc = vec![format!("{}: its parts, combined in order", self.name_of(definition.tensor))];
        let sizes = super::extents(&whole, self.estimate);
        if !self.tree(&whole, last, &sizes, &doc) {
            self.elements(&whole, last, &sizes, doc);
        }
    }
}
