//! A kernel that is being made: its grid and its variables.

use crate::nest::{FIRST, ITEM, Kernel, Kind, LAST, Leaf, Loop, LoopId, Step, Work};
use crate::program::{Affine, Atom, Definition, ParamId, Range};

/// A kernel that is being made.
pub struct Making {
    pub kernel: Kernel,
    /// The sizes that are steps: the items of a kernel are the same at all of them.
    times: Vec<ParamId>,
}

/// What stands for an index of a definition in a kernel.
#[derive(Clone)]
pub struct Place {
    /// Its value.
    pub value: Affine,
    /// The loop over its values inside an item, if an item has more than one.
    pub inside: Option<Loop>,
}

impl Making {
    pub fn new(name: String, doc: Vec<String>, times: Vec<ParamId>) -> Making {
        let variables = ["first", "last", "item"].map(String::from).to_vec();
        Making { kernel: Kernel { name, doc, variables, work: Vec::new(), steps: Vec::new() }, times }
    }

    pub fn variable(&mut self, name: &str) -> LoopId {
        self.kernel.variables.push(name.to_string());
        LoopId(self.kernel.variables.len() as u32 - 1)
    }

    /// A dimension of the grid: so many values of a range for each item, or so many items.
    pub fn divide(&mut self, name: &str, low: &Affine, high: &Affine, step: Affine, parts: Option<i64>) -> Work {
        let [first, last, item] = match self.kernel.work.is_empty() {
            true => [FIRST, LAST, ITEM],
            false => ["first", "last", "item"].map(|end| self.variable(&format!("{end}_{name}"))),
        };
        let work = Work { first, last, item, low: low.clone(), high: high.clone(), step, parts };
        self.kernel.work.push(work.clone());
        work
    }

    /// A dimension of the grid for so many parts of the terms of a sum, in whole multiples of `unit` of one index.
    pub fn part(&mut self, definition: &Definition, position: usize, unit: i64, parts: i64) -> Option<Work> {
        let index = &definition.indices[position];
        let (low, high) = bounds(&index.range, &self.times)?;
        let all = parts * unit;
        let step = (high.clone() - low.clone()).shift(all).floor_div(&all.into()).scale(&unit.into());
        Some(self.divide(&index.name, low, high, step, Some(parts)))
    }

    /// An output, of which an item has so many values, one for each thread at a time; `each` is how many a thread has in turn.
    pub fn output(
        &mut self,
        definition: &Definition,
        position: usize,
        map: &[Affine],
        threads: i64,
        each: i64,
    ) -> Place {
        let index = &definition.indices[position];
        let count = threads * each;
        let kind = if threads > 1 { Kind::Threads(threads as usize) } else { Kind::Serial };
        if let Some((low, high)) = bounds(&index.range, &self.times) {
            let work = self.divide(&index.name, low, high, Affine::constant(count), None);
            let (first, last) = (Affine::index(work.first), Affine::index(work.last));
            if count == 1 {
                return Place { value: first, inside: None };
            }
            let variable = self.variable(&index.name);
            let inside = Loop { variable, range: Range { low: vec![first], high: vec![last] }, kind };
            return Place { value: Affine::index(variable), inside: Some(inside) };
        }
        let variable = self.variable(&index.name);
        let range = index.range.map(|bound| bound.with_indices(map));
        Place { value: Affine::index(variable), inside: Some(Loop { variable, range, kind }) }
    }

    /// Everything in one item, if nothing has divided the work.
    pub fn close_grid(&mut self) {
        if self.kernel.work.is_empty() {
            self.kernel.work.push(Work::single());
        }
    }

    pub fn leaf(&mut self, leaf: Leaf) {
        self.kernel.steps.push(Step::Leaf(leaf));
    }
}

/// The bounds of a range in sizes that are no steps, if it has one of each.
pub fn bounds<'a>(range: &'a Range, times: &[ParamId]) -> Option<(&'a Affine, &'a Affine)> {
    match (range.low.as_slice(), range.high.as_slice()) {
        ([low], [high]) if is_fixed(low, times) && is_fixed(high, times) => Some((low, high)),
        _ => None,
    }
}

fn is_fixed(bound: &Affine, times: &[ParamId]) -> bool {
    let mut fixed = !bound.uses_indices();
    bound.visit_atoms(&mut |atom| fixed &= !matches!(atom, Atom::Param(param) if times.contains(param)));
    fixed
}

/// The number of threads of a loop.
pub fn threads_of(l: &Loop) -> i64 {
    match l.kind {
        Kind::Threads(count) => count as i64,
        Kind::Serial | Kind::Lanes(_) | Kind::Unrolled(_) => 1,
    }
}

/// The place of a value of a loop among those of its item.
pub fn own_place(l: &Loop) -> Affine {
    Affine::index(l.variable) - l.range.low[0].clone()
}
