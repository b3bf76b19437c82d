//! A thread for each element: it takes all terms of its sum, one after the other.

use super::making::{Making, own_place, threads_of};
use super::{Scheduling, power_of_two};
use crate::lift;
use crate::nest::{Kind, Leaf, Loop};
use crate::program::{Affine, Definition, ExprId};
use crate::schedule::loops::unmixed;
use crate::target::cost;

impl Scheduling<'_> {
    /// A kernel with a thread for each element.
    pub fn elements(&mut self, definition: &Definition, last: Option<&Definition>, sizes: &[f64], doc: Vec<String>) {
        let mut making = self.start(doc);
        let lanes = self.lanes(definition, sizes);
        let (mut map, mut loops): (Vec<Affine>, Vec<(usize, Loop)>) = (Vec::new(), Vec::new());
        for (position, threads) in self.shape(lanes, &sizes[..definition.rank]).into_iter().enumerate() {
            let each = if Some(position) == lanes && last.is_none() { self.each(definition, sizes) } else { 1 };
            let place = making.output(definition, position, &map, threads, each);
            map.push(place.value);
            loops.extend(place.inside.map(|inside| (position, inside)));
        }
        making.close_grid();
        let is_divided = loops.iter().all(|(_, l)| l.range.low[0].as_index().is_some());
        if let Some(last) = last.filter(|_| !is_divided) {
            // An item has more values than threads: what they have does not stay in their registers.
            let (doc, after) = making.kernel.doc.split_at(1);
            self.elements(definition, None, sizes, doc.to_vec());
            return self.elements(last, None, sizes, after.to_vec());
        }
        if is_divided {
            // Neighbouring threads have neighbouring values of the last loop.
            loops.sort_by_key(|(position, _)| Some(*position) == lanes);
        }
        let outer: Vec<Loop> = loops.into_iter().map(|(_, l)| l).collect();
        let own = map.clone();
        let terms = self.terms(definition, &mut map, &mut making);
        let loops = outer.iter().cloned().chain(terms).collect();
        let whole = Leaf {
            outputs: outer.len(),
            reduction: definition.reduction,
            guards: definition.conditions.iter().map(|c| c.with_indices(&map)).collect(),
            ..Leaf::pointwise(definition.tensor, own.clone(), loops, self.mapped(definition.body, &map))
        };
        match last {
            None => making.leaf(whole),
            Some(last) => {
                let count: Vec<i64> = outer.iter().map(threads_of).collect();
                let at: Vec<Affine> = outer.iter().map(own_place).collect();
                let held = self.local(&self.name_of(definition.tensor), &count, true);
                making.leaf(Leaf { target: held, subscripts: at.clone(), ..whole });
                let value = self.exprs.access(held, at);
                self.store(&mut making, definition, Some(last), (&own, outer), value);
            }
        }
        self.finish(making);
    }

    /// How many elements a thread has, one after the other: where there are enough of them, several loads are then under way at the same
    /// time, and blocks are fewer.
    fn each(&self, definition: &Definition, sizes: &[f64]) -> i64 {
        let elements: f64 = sizes[..definition.rank].iter().product();
        let is_large = elements >= (self.device.resident_threads * cost::ELEMENTS_OF_THREAD) as f64;
        if is_large && definition.reduction.is_none() { cost::ELEMENTS_OF_THREAD } else { 1 }
    }

    /// The index that neighbouring threads have neighbouring values of: that of elements that lie side by side, in what is
    /// written and read. The last one of equal ones.
    fn lanes(&self, definition: &Definition, sizes: &[f64]) -> Option<usize> {
        let loads = |position: &usize| self.loads(definition, sizes, *position);
        (0..definition.rank).rev().min_by(|a, b| loads(a).total_cmp(&loads(b)))
    }

    /// How many threads each output has: as many as there are for the lanes; others have what is left, the last one first.
    fn shape(&self, lanes: Option<usize>, sizes: &[f64]) -> Vec<i64> {
        let (mut threads, mut left) = (vec![1; sizes.len()], self.device.block_threads);
        for position in lanes.into_iter().chain((0..sizes.len()).rev().filter(|p| Some(*p) != lanes)) {
            threads[position] = power_of_two(sizes[position], left);
            left /= threads[position];
        }
        threads
    }

    /// Loads and stores for one point if neighbouring threads have neighbouring values of an index.
    pub fn loads(&self, definition: &Definition, sizes: &[f64], lanes: usize) -> f64 {
        let written: Vec<Affine> = (0..definition.rank).map(Affine::index).collect();
        let terms: f64 = sizes[definition.rank..].iter().product();
        let reads = self.exprs.accesses(definition.body).map(|(_, at)| at);
        let idle = (cost::WARP_VALUES / sizes[lanes].max(1.0)).max(1.0);
        cost::transfers(reads, &written, terms, lanes) * idle
    }

    /// The loops over the terms; their variables follow in `map`.
    pub fn terms(&self, definition: &Definition, map: &mut Vec<Affine>, making: &mut Making) -> Vec<Loop> {
        let mut loops = Vec::new();
        for index in &definition.indices[map.len()..] {
            let variable = making.variable(&index.name);
            let range = index.range.map(|bound| bound.with_indices(map));
            loops.push(Loop { variable, range, kind: Kind::Serial });
            map.push(Affine::index(variable));
        }
        loops
    }

    /// An expression in the variables of a kernel.
    pub fn mapped(&mut self, body: ExprId, map: &[Affine]) -> ExprId {
        let body = lift::remap(&mut self.exprs, body, map);
        unmixed(&mut self.exprs, body)
    }

    /// Stores the elements of a definition, or what a reader makes of them.
    pub fn store(
        &mut self,
        making: &mut Making,
        definition: &Definition,
        last: Option<&Definition>,
        (own, loops): (&[Affine], Vec<Loop>),
        value: ExprId,
    ) {
        let (target, value) = match last {
            None => (definition.tensor, value),
            Some(last) => {
                let body = self.mapped(last.body, own);
                let read = self.exprs.access(definition.tensor, own.to_vec());
                (last.tensor, crate::program::expr::Rewriter::with([(read, value)]).copy(&mut self.exprs, body))
            }
        };
        making.leaf(Leaf::pointwise(target, own.to_vec(), loops, value));
    }
}
