//! In which order things are computed, and where they are stored: the loop representation.
//!
//! ```text
//! nest   ::= buffer… kernel…                       kernels run one after the other
//! kernel ::= work(first, last, item)… step…        items of work are independent: threads share them
//! step   ::= tile | leaf | together leaf…
//! tile   ::= for v = low to high by size: step…
//! leaf   ::= for … : target[…] (⊕)= body           one definition over a box of points
//! ```
//!
//! Variables are numbered within their kernel; in an [`Affine`], `Atom::Index(v)` is variable `v` and
//! `Atom::Param` a size. Items are those of a grid. Each of its dimensions binds three variables: the first and the last
//! value of an index that the item covers, and the number of the item along it; for the first dimension, these are the
//! first three variables of the kernel.
//! [`verify`](verify()) lists the invariants.

mod beside;
pub mod hold;
pub mod inside;
pub mod join;
mod peel;
pub mod print;
mod relocate;
mod share;
pub mod verify;

pub use crate::divide::Window;
pub use crate::scalar::Real;
pub use print::print;
pub use verify::{Check, Verified, verify};

use crate::program::{
    Affine, Atom, BinaryOp, Constraint, Expr, ExprId, Exprs, Param, ParamId, ParamKind, Range, ReduceOp, TensorId,
    Variable,
};
use crate::target::{PanelSize, Target};
use gradix_int::Int;
use std::collections::HashSet;

/// A variable of a kernel, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoopId(pub u32);

impl LoopId {
    /// As a position.
    pub fn number(self) -> usize {
        self.0 as usize
    }
}

impl Variable for LoopId {
    fn number(self) -> usize {
        self.number()
    }
}

/// Something for each variable of a kernel.
#[derive(Clone, Debug)]
pub struct ByLoop<T>(pub Vec<T>);

/// Something for each buffer.
#[derive(Clone, Debug)]
pub struct ByBuffer<T>(pub Vec<T>);

impl<T> std::ops::Index<TensorId> for ByBuffer<T> {
    type Output = T;
    fn index(&self, buffer: TensorId) -> &T {
        &self.0[buffer.0 as usize]
    }
}

impl<T> std::ops::IndexMut<TensorId> for ByBuffer<T> {
    fn index_mut(&mut self, buffer: TensorId) -> &mut T {
        &mut self.0[buffer.0 as usize]
    }
}

impl<T> std::ops::Index<LoopId> for ByLoop<T> {
    type Output = T;
    fn index(&self, variable: LoopId) -> &T {
        &self.0[variable.number()]
    }
}

impl<T> std::ops::IndexMut<LoopId> for ByLoop<T> {
    fn index_mut(&mut self, variable: LoopId) -> &mut T {
        &mut self.0[variable.number()]
    }
}

/// The first value that an item covers, in the first dimension of the work.
pub const FIRST: LoopId = LoopId(0);
/// The last value that an item covers, in the first dimension of the work.
pub const LAST: LoopId = LoopId(1);
/// The number of the item along the first dimension of the work.
pub const ITEM: LoopId = LoopId(2);

/// Everything that is run for one program.
#[derive(Clone, Debug)]
pub struct Nest {
    /// The sizes: the free ones are those of the program, in the same order.
    pub params: Vec<Param>,
    /// What holds for the sizes.
    pub context: Vec<Constraint>,
    /// By number: in an expression, the tensor of an access is the number of a buffer.
    pub buffers: Vec<Buffer>,
    /// All expressions.
    pub exprs: Exprs,
    /// By number.
    pub kernels: Vec<Kernel>,
    /// When each is run.
    pub stages: Vec<Stage>,
    /// The machine that decisions were made for.
    pub target: Target,
    /// Whether there is so little to do that plain loops were made: the time to compile them counts for more.
    pub plain: bool,
}

/// What is run, in order.
#[derive(Clone, Debug)]
pub enum Stage {
    /// A kernel, by number, if the steps at hand are below all of these numbers.
    Kernel(usize, Vec<(ParamId, Affine)>),
    /// Some stages for each step.
    Time(Time),
}

/// A size that goes through the values `0..steps`.
#[derive(Clone, Debug)]
pub struct Time {
    /// The size.
    pub param: ParamId,
    /// How many values there are, in other sizes.
    pub steps: Affine,
    /// Whether the last comes first.
    pub falling: bool,
    /// Which of the values, if not all.
    pub window: Option<Window>,
    /// What is run for each value.
    pub stages: Vec<Stage>,
}

/// Dense and row-major memory.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Its name.
    pub name: String,
    /// In sizes.
    pub extents: Vec<Affine>,
    /// Whose it is, and for how long.
    pub scope: Scope,
    /// Whether it is so large that it is written past the caches; no kernel reads it.
    pub streamed: bool,
    /// Of a local buffer: whether each thread of an item has the elements that it touches in registers.
    pub registers: bool,
    /// Of a local buffer: how its last dimension lies in memory, if not one element after the other.
    pub interleaved: Option<Interleaved>,
}

/// Elements that are so far `apart` lie `beside` each other, so many of them: with 16 and 4, elements 0, 16, 32, 48, then 1, 17, ….
/// A thread loads these at once, while neighbouring threads have neighbouring elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interleaved {
    /// From one of them to the next, in elements.
    pub apart: i64,
    /// How many there are.
    pub beside: i64,
}

/// Kernels are for sizes up to this, in either direction: what they compute from two of them has 64 bits.
pub const MAX_SIZE: i64 = 1 << 40;

/// The first and the last kernel that touches a buffer.
pub type Lifetime = (usize, usize);

/// Whose a buffer is, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The argument at this position: read only.
    Input(usize),
    /// The result at this position.
    Output(usize),
    /// Lives for the whole run.
    Run,
    /// Belongs to one kernel (by number); every item has its own, which its threads share, and starts with it undefined.
    Local(usize),
}

/// One function: loops over independent items of work.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// What it computes, in index notation.
    pub doc: Vec<String>,
    /// The names of its variables.
    pub variables: Vec<String>,
    /// How it is divided into items: the dimensions of a grid, of which the first has [`FIRST`], [`LAST`] and [`ITEM`].
    /// Items are counted with the last dimension first.
    pub work: Vec<Work>,
    /// What an item does, in order.
    pub steps: Vec<Step>,
}

/// A dimension of the grid of items: along it, item `n` covers the values from `low + n*step` to the next item's first, less
/// one.
#[derive(Clone, Debug)]
pub struct Work {
    /// The first value that an item covers.
    pub first: LoopId,
    /// The last value that an item covers.
    pub last: LoopId,
    /// The number of an item along this dimension.
    pub item: LoopId,
    /// The first value, in sizes.
    pub low: Affine,
    /// The last value, in sizes.
    pub high: Affine,
    /// How many values an item covers, in sizes.
    pub step: Affine,
    /// The number of items where it does not depend on sizes; some may then have nothing to do.
    pub parts: Option<i64>,
}

/// A part of a kernel.
#[derive(Clone, Debug)]
pub enum Step {
    /// A loop over tiles.
    Tile(Tile),
    /// A definition over a box.
    Leaf(Leaf),
    /// Definitions over the same box.
    Together(Together),
}

/// Leaves with the same loops: they may run one after the other, or point by point in this order. Lanes run over the
/// innermost loop, reductions have the same outputs, and what one reads of an earlier one is at the same point.
#[derive(Clone, Debug)]
pub struct Together {
    /// In order.
    pub leaves: Vec<Leaf>,
    /// How many values of the innermost loop around the lanes are taken at a time, where leaves add to the same elements for
    /// all of them.
    pub rows: Option<usize>,
    /// Local results that nothing else reads: they need not be stored.
    pub unstored: Vec<TensorId>,
}

/// `for v = max(low) to min(high) by size`
#[derive(Clone, Debug)]
pub struct Tile {
    /// The variable: the first value in the tile.
    pub variable: LoopId,
    /// Bounds in sizes and outer variables.
    pub range: Range,
    /// How far it advances.
    pub size: i64,
    /// What is done for each tile.
    pub steps: Vec<Step>,
    /// What stays in registers from one value to the next.
    pub held: Vec<Held>,
}

/// The elements that a leaf without loops has written at so many values before, which its tile reads again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The position of the leaf in its tile.
    pub leaf: usize,
    /// How many there are: those at the last value, at the one before, …
    pub values: usize,
}

/// A loop of a leaf.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The variable.
    pub variable: LoopId,
    /// Bounds in sizes, tile variables and earlier loops of the leaf.
    pub range: Range,
    /// How its values are taken.
    pub kind: Kind,
}

/// How the values of a loop are taken.
///
/// Of lanes and unrolled loops no other loop's range depends, no guard and no index condition of the body: all do the
/// same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// One after the other.
    #[default]
    Serial,
    /// In vectors, so many at once: an output, or the innermost loop of the reduction.
    Lanes(usize),
    /// So many at once, in registers: an output beside the lanes.
    Unrolled(usize),
    /// Each by one of so many threads of the item, in any order: an output. A leaf begins when all threads have done what
    /// comes before. Where an item has one thread, it takes one value after the other.
    Threads(usize),
}

/// One definition over a box: for every point of the first `outputs` loops, `target[subscripts]` becomes the
/// reduction of `body` over the points of the other loops that pass the guards.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// What is written.
    pub target: TensorId,
    /// Where, in the variables of the outputs and of tiles.
    pub subscripts: Vec<Affine>,
    /// The outputs, then the reduction, each from the outermost in.
    pub loops: Vec<Loop>,
    /// How many of the loops are outputs.
    pub outputs: usize,
    /// What combines the values; `None` if and only if all loops are outputs.
    pub reduction: Option<ReduceOp>,
    /// Whether the reduction goes on from what the target holds.
    pub accumulate: bool,
    /// Conditions on the reduction that the ranges don't express. Without a reduction: points that fail are left alone.
    pub guards: Vec<Constraint>,
    /// The value at one point.
    pub body: ExprId,
    /// What is packed before it is used; it comes with lanes over an output, an unrolled loop, a reduction whose loops are
    /// bounded by sizes and tiles only, and no guards.
    pub panels: Option<Panels>,
    /// Where all that is read lies across the target: squares of the two loops are turned in registers.
    pub turn: Option<Turn>,
    /// Whether vectors start where lines of the caches do: some elements are then computed twice.
    pub aligned: bool,
    /// The kinds that came into question for its loops, the least costly first: that one was taken.
    pub considered: Vec<Candidate>,
}

/// A kind for each loop of a leaf, and what it costs.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// In the order of the loops.
    pub kinds: Vec<Kind>,
    /// Loads and stores for one point, in vectors that lie side by side.
    pub loads: f64,
}

/// The positions of two loops of a leaf: along them the target and what is read have their neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// That of the target.
    pub along_target: usize,
    /// That of what is read.
    pub along_source: usize,
}

/// The operands of a contraction that are packed: parts of the body that together hold all of its accesses.
#[derive(Clone, Debug, PartialEq)]
pub struct Panels {
    /// Where they are packed to; it has [`Panels::elements`] elements.
    pub scratch: TensorId,
    /// What depends on the rows, and not on the lanes.
    pub by_row: Vec<ExprId>,
    /// What depends on the lanes, and not on the rows.
    pub by_lane: Vec<ExprId>,
    /// What depends on neither.
    pub by_term: Vec<ExprId>,
    /// Whether what depends on the rows is read in place: elements, with no floor of a variable of the reduction.
    pub rows_in_place: bool,
    /// Whether what depends on the lanes is read in place: the same, and neighbours in the lanes.
    pub lanes_in_place: bool,
    /// Whether rows are packed in vectors along the innermost loop of the reduction.
    pub rows_in_lanes: bool,
    /// Whether rows are packed in vectors across the rows, which lie side by side.
    pub rows_beside: bool,
    /// The position of an output, if packed rows are kept for all of its values: blocks of lanes.
    pub kept: Option<usize>,
    /// Whether packed lanes serve for several values of the loops around.
    pub lanes_stay: bool,
    /// The position of the output whose next value's lanes are brought closer, where they are one block of memory in place.
    pub ahead: Option<usize>,
    /// How much is packed at a time; rows are those of a register tile where they are not kept.
    pub size: PanelSize,
}

impl Panels {
    /// The space for the operands.
    pub fn elements(&self) -> usize {
        let PanelSize { terms, rows, lanes } = self.size;
        terms * (self.by_row.len() * rows + self.by_term.len() + self.by_lane.len() * lanes)
    }
}

impl Nest {
    /// The buffers, by number.
    pub fn buffer_ids(&self) -> impl Iterator<Item = TensorId> + use<> {
        (0..self.buffers.len() as u32).map(TensorId)
    }

    /// The elements of a buffer for these sizes, `None` past all memory.
    pub fn elements(&self, buffer: TensorId, sizes: &[Int]) -> Option<usize> {
        let extents = self[buffer].extents.iter().map(|e| evaluate(e, sizes).max(Int::ZERO));
        let count = extents.fold(Int::ONE, |product, extent| product * extent);
        usize::try_from(&count).ok()
    }

    /// How many items of work a kernel has for these sizes, `None` past all memory.
    pub fn items(&self, kernel: &Kernel, sizes: &[Int]) -> Option<usize> {
        let counts = kernel.work.iter().map(|work| work.items(sizes));
        let count = counts.fold(Int::ONE, |product, count| product * count);
        usize::try_from(&count).ok()
    }

    /// The buffers that some kernel reads or writes.
    pub fn touched(&self) -> HashSet<TensorId> {
        let leaves = self.kernels.iter().flat_map(|kernel| leaves(&kernel.steps));
        leaves.flat_map(|leaf| self.touched_by(leaf)).collect()
    }

    /// The lifetime of every buffer; `None` if nothing touches it.
    pub fn lifetimes(&self) -> ByBuffer<Option<Lifetime>> {
        let mut lifetimes: ByBuffer<Option<Lifetime>> = ByBuffer(vec![None; self.buffers.len()]);
        let loops = self.loops();
        for (number, kernel) in self.kernels.iter().enumerate() {
            // What is touched at one step may be needed at the next.
            let around = loops.iter().filter(|(start, end)| (*start..=*end).contains(&number));
            let (start, end) =
                around.fold((number, number), |(first, last), (start, end)| (first.min(*start), last.max(*end)));
            for buffer in leaves(&kernel.steps).into_iter().flat_map(|leaf| self.touched_by(leaf)) {
                let lifetime = &mut lifetimes[buffer];
                *lifetime = Some((lifetime.map_or(start, |(first, _)| first.min(start)), end));
            }
        }
        lifetimes
    }

    /// The first and the last kernel of each outermost loop over steps.
    fn loops(&self) -> Vec<(usize, usize)> {
        fn kernels(stages: &[Stage]) -> Vec<usize> {
            let each = |stage: &Stage| match stage {
                Stage::Kernel(number, _) => vec![*number],
                Stage::Time(time) => kernels(&time.stages),
            };
            stages.iter().flat_map(each).collect()
        }
        let inside = self.stages.iter().filter_map(|stage| match stage {
            Stage::Time(time) => Some(kernels(&time.stages)),
            Stage::Kernel(..) => None,
        });
        inside.filter_map(|numbers| Some((*numbers.iter().min()?, *numbers.iter().max()?))).collect()
    }

    /// The buffers that a leaf reads or writes.
    pub fn touched_by(&self, leaf: &Leaf) -> impl Iterator<Item = TensorId> + '_ {
        self.exprs.accesses(leaf.body).map(|(buffer, _)| buffer).chain([leaf.target])
    }

    /// The buffers that belong to a kernel.
    pub fn locals(&self, kernel: usize) -> impl Iterator<Item = TensorId> + '_ {
        self.buffer_ids().filter(move |buffer| self[*buffer].scope == Scope::Local(kernel))
    }

    /// All sizes, from those that are given: one for each free one.
    pub fn sizes(&self, given: &[Int]) -> Vec<Int> {
        let (mut sizes, mut given) = (Vec::new(), given.iter());
        for param in &self.params {
            let size = match &param.kind {
                ParamKind::Free => given.next().cloned().unwrap_or(Int::ZERO),
                // It takes its values while the kernels run.
                ParamKind::Time(_) => Int::ZERO,
                ParamKind::Fixed(value) => value.clone(),
                ParamKind::Smallest(parts) => {
                    parts.iter().map(|part| evaluate(part, &sizes)).min().unwrap_or(Int::ZERO)
                }
                ParamKind::Largest(parts) => parts.iter().map(|part| evaluate(part, &sizes)).max().unwrap_or(Int::ZERO),
            };
            sizes.push(size);
        }
        sizes
    }
}

impl std::ops::Index<TensorId> for Nest {
    type Output = Buffer;
    fn index(&self, buffer: TensorId) -> &Buffer {
        &self.buffers[buffer.0 as usize]
    }
}

impl std::ops::IndexMut<TensorId> for Nest {
    fn index_mut(&mut self, buffer: TensorId) -> &mut Buffer {
        &mut self.buffers[buffer.0 as usize]
    }
}

impl std::ops::Index<LoopId> for Kernel {
    type Output = str;
    /// What a variable is called.
    fn index(&self, variable: LoopId) -> &str {
        &self.variables[variable.number()]
    }
}

impl Together {
    /// How many loops are around all accumulators.
    pub fn outputs(&self) -> usize {
        let reductions = self.leaves.iter().filter(|leaf| leaf.reduction.is_some());
        reductions.map(|leaf| leaf.outputs).min().unwrap_or(self.leaves[0].loops.len() - 1)
    }
}

impl Tile {
    /// A loop over single values.
    pub fn each(variable: LoopId, range: Range, steps: Vec<Step>) -> Self {
        Tile { variable, range, size: 1, steps, held: Vec::new() }
    }
}

impl Work {
    /// A first dimension.
    pub fn outermost(low: Affine, high: Affine, step: Affine) -> Self {
        Work { first: FIRST, last: LAST, item: ITEM, low, high, step, parts: None }
    }

    /// All in one item.
    pub fn single() -> Self {
        Work::outermost(Affine::constant(0), Affine::constant(0), Affine::constant(1))
    }

    /// Whether there is one item along this dimension, for any sizes.
    pub fn is_single(&self) -> bool {
        self.low == self.high
    }

    /// The variables that it binds.
    pub fn variables(&self) -> [LoopId; 3] {
        [self.first, self.last, self.item]
    }

    /// How many items there are along this dimension for these sizes.
    pub fn items(&self, sizes: &[Int]) -> Int {
        if let Some(parts) = self.parts {
            return Int::from(parts);
        }
        let span = evaluate(&(self.high.clone() - self.low.clone()), sizes);
        let step = evaluate(&self.step, sizes).max(Int::ONE);
        if span < Int::ZERO { Int::ZERO } else { span / step + Int::ONE }
    }

    /// What holds of its variables in every item: `low <= first`, `last <= high`, `last < first + step`, and the number. Where
    /// there are as many items as it takes, none is empty: `first <= last`.
    pub fn domain(&self) -> Vec<Constraint> {
        let [first, last, item] = self.variables().map(Affine::index);
        let below = match self.parts {
            Some(parts) => Constraint::at_most(item.clone(), Affine::constant(parts - 1)),
            None => Constraint::at_most(first.clone(), last.clone()),
        };
        let bounds = [
            Constraint::at_most(self.low.clone(), first.clone()),
            Constraint::at_most(last.clone(), self.high.clone()),
            Constraint::at_most(last, (first + self.step.clone()).shift(-1)),
            Constraint::non_negative(item),
        ];
        bounds.into_iter().chain([below]).collect()
    }
}

/// The number of an item along each of these dimensions of its grid, of which the last is counted first.
pub fn along(mut item: usize, counts: &[usize], place: &mut dyn FnMut(usize, usize)) {
    for (dimension, &count) in counts.iter().enumerate().rev() {
        place(dimension, item % count);
        item /= count;
    }
}

impl Leaf {
    /// `target[subscripts] = body` for all points of some loops.
    pub fn pointwise(target: TensorId, subscripts: Vec<Affine>, loops: Vec<Loop>, body: ExprId) -> Self {
        Leaf {
            target,
            subscripts,
            outputs: loops.len(),
            loops,
            reduction: None,
            accumulate: false,
            guards: Vec::new(),
            body,
            panels: None,
            turn: None,
            aligned: false,
            considered: Vec::new(),
        }
    }

    /// The position of the loop in lanes.
    pub fn lanes(&self) -> Option<usize> {
        self.loops.iter().position(|l| matches!(l.kind, Kind::Lanes(_)))
    }

    /// How many vectors are held at once.
    pub fn vectors(&self) -> usize {
        let vectors = self.loops.iter().find_map(|l| if let Kind::Lanes(count) = l.kind { Some(count) } else { None });
        vectors.unwrap_or(1)
    }

    /// The positions of unrolled loops, and how often each is.
    pub fn unrolled(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let count = |l: &Loop| if let Kind::Unrolled(count) = l.kind { Some(count) } else { None };
        self.loops.iter().enumerate().filter_map(move |(position, l)| Some((position, count(l)?)))
    }

    /// The first of them.
    pub fn rows(&self) -> Option<(usize, usize)> {
        self.unrolled().next()
    }

    /// Whether it is pointwise, and all values of a variable write to the same element.
    pub fn shares(&self, variable: LoopId) -> bool {
        self.reduction.is_none() && !self.subscripts.iter().any(|subscript| subscript.uses_index(variable))
    }

    /// Whether its body reads a buffer.
    pub fn reads(&self, exprs: &Exprs, buffer: TensorId) -> bool {
        exprs.reads(self.body, buffer)
    }

    /// What it adds to its target or, with `true`, takes from it, if it is pointwise and does no more.
    pub fn added(&self, exprs: &Exprs) -> Option<(ExprId, bool)> {
        let is_held =
            |id: ExprId| matches!(&exprs[id], Expr::Access(read, at) if *read == self.target && *at == self.subscripts);
        let reads_held = |id: ExprId| exprs.reads(id, self.target);
        match exprs[self.body] {
            Expr::Binary(BinaryOp::Add, held, term) if is_held(held) && !reads_held(term) => Some((term, false)),
            Expr::Binary(BinaryOp::Add, term, held) if is_held(held) && !reads_held(term) => Some((term, false)),
            Expr::Binary(BinaryOp::Sub, held, term) if is_held(held) && !reads_held(term) => Some((term, true)),
            _ => None,
        }
    }

    /// What holds for the variables of its loops and wherever the body is evaluated.
    pub fn domain(&self) -> Vec<Constraint> {
        let ranges = self.loops.iter().flat_map(|l| l.range.constraints(l.variable).collect::<Vec<_>>());
        ranges.chain(self.guards.iter().cloned()).collect()
    }
}

/// The leaves of some steps, in order.
pub fn leaves(steps: &[Step]) -> Vec<&Leaf> {
    fn of_step(step: &Step) -> Vec<&Leaf> {
        match step {
            Step::Tile(tile) => leaves(&tile.steps),
            Step::Leaf(leaf) => vec![leaf],
            Step::Together(together) => together.leaves.iter().collect(),
        }
    }
    steps.iter().flat_map(of_step).collect()
}

/// Does something with every expression of some steps.
fn for_each_expr(steps: &mut [Step], each: &mut dyn FnMut(&mut ExprId)) {
    let of_leaf = |leaf: &mut Leaf, each: &mut dyn FnMut(&mut ExprId)| {
        each(&mut leaf.body);
        if let Some(Panels { by_row, by_lane, by_term, .. }) = &mut leaf.panels {
            [by_row, by_lane, by_term].into_iter().flatten().for_each(each);
        }
    };
    for step in steps {
        match step {
            Step::Tile(tile) => for_each_expr(&mut tile.steps, each),
            Step::Leaf(leaf) => of_leaf(leaf, each),
            Step::Together(together) => together.leaves.iter_mut().for_each(|leaf| of_leaf(leaf, each)),
        }
    }
}

/// The value of an expression in sizes.
pub fn evaluate(affine: &Affine, sizes: &[Int]) -> Int {
    affine.evaluate(&|atom| match atom {
        Atom::Param(ParamId(p)) => sizes[*p as usize].clone(),
        Atom::Index(_) | Atom::Floor(..) => Int::ZERO,
    })
}
