//! Runs instructions: each is a loop over lanes, compiled for several instruction sets.
//!
//! This is one of the places of the virtual machine that touch memory without Rust's own checks; [`Buffer::at`] makes up
//! for them: what lies outside its buffer is never reached, whatever the nest says. The other promise, that no two
//! threads touch an element that one of them writes, is the nest's (items of work are independent).
#![allow(unsafe_code, reason = "loops over the caller's buffers; every access is checked once for its whole block")]

use super::code::{BLOCK, Codes, Inner, Instruction, Operation, Source};
use super::grouping::Grouping;
use super::leaf::Plan;
use super::loops::{Terms, View, exp_vectors, fetch, mask, reduce_rows, update};
use super::real::{Isa, Level, Real, by_level, maximum, minimum, multiply_add};
use super::scratch::Scratch;
use super::vector::{Rule, Step, Vector, WIDEST, with_rule};
use crate::interrupt;
use gradix::nest::{ByBuffer, ByLoop, LoopId};
use gradix::program::{BinaryOp, Comparison, UnaryOp};
use gradix::target::cost;

/// The most rows of a block.
pub const MAX_ROWS: usize = 256;
/// The most partial results of a folded reduction, which are combined in a fixed order.
pub const PARTS: usize = cost::FOLDED_VECTORS * WIDEST;

/// The most elements of a block.
pub const fn block<T>() -> usize {
    cost::BLOCK_BYTES / size_of::<T>()
}

/// The distance of blocks.
pub const fn block_pitch<T>() -> usize {
    block::<T>() + cost::BLOCK_GAP_BYTES / size_of::<T>()
}

/// A buffer of the caller's, or a part of its local memory.
#[derive(Clone, Copy)]
pub struct Buffer<T> {
    pub pointer: *mut T,
    pub length: usize,
}

impl<T> Buffer<T> {
    /// A pointer to the element at `start`, if all elements at these steps from it, so many of each, are inside.
    #[inline(always)]
    pub fn at(&self, start: i64, steps: impl IntoIterator<Item = (i64, usize)>) -> *mut T {
        let (mut first, mut last) = (start, start);
        for (step, count) in steps {
            let reach = step.saturating_mul(count as i64 - 1);
            first = first.saturating_add(reach.min(0));
            last = last.saturating_add(reach.max(0));
        }
        assert!(first >= 0 && (last as u64) < self.length as u64, "an access stays inside its buffer");
        // SAFETY: it is inside.
        unsafe { self.pointer.offset(start as isize) }
    }
}

/// What one thread needs to run a kernel.
pub struct Machine<T> {
    pub level: Level,
    pub buffers: ByBuffer<Buffer<T>>,
    /// The values of the kernel's variables.
    pub point: ByLoop<i64>,
    /// What each variable adds from row to row.
    pub slopes: ByLoop<i64>,
    pub memory: Memory<T>,
    /// The accumulator is the target itself.
    pub in_place: bool,
    /// The inner loops of a reduction that run inside of one instruction: their variables, and how many values each has.
    pub terms: Vec<(LoopId, usize)>,
    /// Where runs of terms along the last of these loops start, from the first term.
    pub runs: Vec<[isize; 2]>,
    pub rows: usize,
    pub lanes: usize,
    /// The first of the lanes, within the block of the accumulator.
    pub lane: usize,
    /// The distance of the rows of a block.
    pub pitch: usize,
    /// What instructions bring closer besides, for the next group: where it starts, and how many lines of the caches it has.
    pub ahead: (*const T, usize),
    /// The points since it was last asked whether to stop.
    pub points: usize,
    /// It is to stop: nobody will look at what it computes.
    pub stopped: bool,
}

/// It is asked whether to stop once in so many points, which are some microseconds to some milliseconds of work.
const MAX_POINTS_UNASKED: usize = 1 << 18;

impl<T> Machine<T> {
    /// Whether what is computed here is of no use any more, given that so many points are about to be computed.
    #[inline(always)]
    pub fn is_stopped(&mut self, points: usize) -> bool {
        self.points = self.points.saturating_add(points);
        if self.points > MAX_POINTS_UNASKED {
            self.points = 0;
            self.stopped |= interrupt::is_stopped();
        }
        self.stopped
    }
}

/// Memory of a thread's own. It is kept from one run to the next.
pub struct Memory<T> {
    /// The values of instructions.
    pub values: Scratch<T>,
    pub accumulator: Scratch<T>,
    /// The packed rows of a contraction.
    pub panel: Scratch<T>,
    /// By the number of the leaf.
    codes: Vec<Codes<T>>,
}

impl<T: Real> Memory<T> {
    /// Nothing yet.
    pub fn new() -> Self {
        Memory { values: Scratch::new(), accumulator: Scratch::new(), panel: Scratch::new(), codes: Vec::new() }
    }

    /// The codes of a leaf that this thread has made.
    pub fn codes_of(&mut self, plan: &Plan<T>) -> &mut Codes<T> {
        if self.codes.len() <= plan.number {
            self.codes.resize_with(plan.number + 1, Codes::new);
        }
        &mut self.codes[plan.number]
    }
}

/// The leaf that is run.
pub struct Context<'a, T> {
    pub plan: &'a Plan<T>,
    pub grouping: &'a Grouping,
}

/// Runs instructions on the group of points that the machine is set to.
pub fn execute<T: Real>(machine: &mut Machine<T>, context: &Context<'_, T>, code: &[Instruction]) {
    // SAFETY: the level was detected.
    unsafe { execute_at(machine.level, machine, context, code) }
}

by_level! { execute_at<T>(machine: &mut Machine<T>, context: &Context<'_, T>, code: &[Instruction]) = run }

#[inline(always)]
unsafe fn run<T: Real, I: Isa>(machine: &mut Machine<T>, context: &Context<'_, T>, code: &[Instruction]) {
    // No closure: that would be a function of its own, without the instructions of this set.
    for (number, instruction) in code.iter().enumerate() {
        let (start, lines) = machine.ahead;
        if lines > 0 {
            // A share each, so that nothing waits for it.
            let share = lines * number / code.len()..lines * (number + 1) / code.len();
            share.for_each(|line| fetch(start.wrapping_add(line * T::PER_LINE)));
        }
        step::<T, I>(machine, context, instruction);
    }
}

/// Runs all terms of a reduction's inner loops, which are listed; the accumulator starts at a value, if one is given.
pub fn execute_inner<T: Real>(machine: &mut Machine<T>, context: &Context<'_, T>, inner: &Inner, start: Option<T>) {
    let place = |source: Source| match source {
        Source::Memory(access) => Some(&context.plan.accesses[access].place),
        _ => None,
    };
    let Some((count, steps)) = machine.list_runs(inner.operands.map(place)) else { return };
    let to = machine.view(context, Source::Accumulator, BLOCK);
    let shape = (machine.rows, machine.lanes);
    let operands = inner.operands.map(|source| machine.terms(context, source));
    let points = [machine.runs.len(), count, shape.1].iter().fold(shape.0, |points, n| points.saturating_mul(*n));
    if machine.is_stopped(points) {
        return;
    }
    let terms = Terms { runs: &machine.runs, count, steps, start };
    match context.grouping.folded {
        true => fold(machine.level, inner.rule, shape.0, to, operands, terms),
        false => reduce(machine.level, inner.rule, shape, to, operands, terms),
    }
}

/// Adds terms to all elements of a shape; of operands for all terms, which were checked, the second has lanes.
fn reduce<T: Real>(
    level: Level,
    rule: Rule,
    shape: (usize, usize),
    to: View<T>,
    operands: [View<T>; 2],
    terms: Terms<'_, T>,
) {
    // SAFETY: the level was detected, and the caller's promise.
    with_rule!(rule, Code => unsafe { reduce_at::<T, Code>(level, shape, to, operands, terms) });
}

by_level! { reduce_at<T, R: Step>(shape: (usize, usize), to: View<T>, operands: [View<T>; 2], terms: Terms<'_, T>) = reduce_rows }

/// Adds runs of lanes that are terms themselves to the parts of each row: lane `l` of a run to part `l` modulo their
/// number, however lanes are divided into blocks.
fn fold<T: Real>(level: Level, rule: Rule, rows: usize, to: View<T>, operands: [View<T>; 2], terms: Terms<'_, T>) {
    let parts = cost::FOLDED_VECTORS * level.width::<T>();
    let (whole, rest) = (terms.count / parts, terms.count % parts);
    if whole > 0 {
        let steps = operands.map(|view| if view.vector { parts as isize } else { 0 });
        reduce(level, rule, (rows, parts), to, operands, Terms { count: whole, steps, ..terms });
    }
    if rest > 0 {
        let operands = operands.map(|view| View { pointer: view.lane_at(0, whole * parts), ..view });
        reduce(level, rule, (rows, rest), to, operands, Terms { count: 1, ..terms });
    }
}

/// One instruction on a block, on the values of all rows, or on one value.
#[inline(always)]
fn step<T: Real, I: Isa>(machine: &mut Machine<T>, context: &Context<'_, T>, instruction: &Instruction) {
    let domain = instruction.domain;
    match instruction.operation {
        Operation::Load(access) => return machine.load(context, access, instruction),
        Operation::Index(number) => return machine.index(context, number, instruction),
        Operation::Store if context.plan.streamed => return machine.stream::<I>(context, instruction.operands[0]),
        Operation::Store => return machine.store(context, instruction.operands[0]),
        _ => {}
    }
    let to = machine.view(context, instruction.to, domain);
    // One by one: `map` would make a function of the closure, and views would go through memory.
    let a = machine.view(context, instruction.operands[0], domain);
    let b = machine.view(context, instruction.operands[1], domain);
    let c = machine.view(context, instruction.operands[2], domain);
    let blocks = Blocks { shape: machine.shape(domain), to, operands: [a, b, c] };
    match instruction.operation {
        Operation::Reduce(rule) => blocks.reduce(machine.level, rule, context.grouping),
        operation => operate::<T, I>(operation, blocks),
    }
}

/// What an instruction computes of its operands.
#[inline(always)]
pub fn operate<T: Real, I: Isa>(operation: Operation, blocks: Blocks<T>) {
    match operation {
        Operation::Unary(op) => unary::<T, I>(op, blocks),
        Operation::Binary(op) => binary::<T, I>(op, blocks),
        Operation::Repeat => blocks.repeat(),
        Operation::Root => blocks.map(|a| root(a)),
        Operation::MultiplyAdd => blocks.map_product(|a, b, c| multiply_add::<T, I>(a, b, c)),
        Operation::MultiplySubtract => blocks.map_product(|a, b, c| multiply_add::<T, I>(a, b, -c)),
        Operation::SubtractProduct => blocks.map_product(|a, b, c| multiply_add::<T, I>(-a, b, c)),
        Operation::Compare(Comparison::Lt) => blocks.map2(|a, b| truth(a < b)),
        Operation::Compare(Comparison::Le) => blocks.map2(|a, b| truth(a <= b)),
        Operation::Compare(Comparison::Eq) => blocks.map2(|a, b| truth(a == b)),
        Operation::Not => blocks.map(|a| T::ONE - a),
        Operation::And => blocks.map2(|a, b| a * b),
        Operation::Or => blocks.map2(|a, b| maximum(a, b)),
        Operation::Select => blocks.select(),
        Operation::Load(_) | Operation::Index(_) | Operation::Store | Operation::Reduce(_) => {}
    }
}

#[inline(always)]
fn unary<T: Real, I: Isa>(op: UnaryOp, blocks: Blocks<T>) {
    match op {
        UnaryOp::Neg => blocks.map(|a| -a),
        UnaryOp::Stop => blocks.map(|a| a),
        UnaryOp::Exp if <I::Vector<T>>::HAS_EXP => blocks.exp::<I::Vector<T>>(),
        UnaryOp::Exp => blocks.map(|a| a.exp::<I>()),
        UnaryOp::Expm1 => blocks.map(|a| a.expm1::<I>()),
        UnaryOp::Log => blocks.map(|a| a.log::<I>()),
        UnaryOp::Log1p => blocks.map(|a| a.log1p::<I>()),
        UnaryOp::Sqrt => blocks.map(T::sqrt),
        UnaryOp::Sin => blocks.map_angle(op, |a| a.sin::<I>()),
        UnaryOp::Cos => blocks.map_angle(op, |a| a.cos::<I>()),
        UnaryOp::Tanh => blocks.map(|a| a.tanh::<I>()),
        UnaryOp::Erf => blocks.map(|a| a.erf::<I>()),
        UnaryOp::Sigmoid => blocks.map(|a| a.sigmoid::<I>()),
        UnaryOp::Relu => blocks.map(|a| maximum(a, T::ZERO)),
        UnaryOp::Softplus => blocks.map(|a| a.softplus::<I>()),
        UnaryOp::Abs => blocks.map(T::abs),
        UnaryOp::Sign => blocks.map(sign),
        UnaryOp::Floor => blocks.map(T::floor),
        UnaryOp::Ceil => blocks.map(T::ceil),
        UnaryOp::Round => blocks.map(T::round),
        UnaryOp::Log2
        | UnaryOp::Log10
        | UnaryOp::Cbrt
        | UnaryOp::Tan
        | UnaryOp::Asin
        | UnaryOp::Acos
        | UnaryOp::Atan
        | UnaryOp::Sinh
        | UnaryOp::Cosh
        | UnaryOp::Asinh
        | UnaryOp::Acosh
        | UnaryOp::Atanh
        | UnaryOp::Erfc
        | UnaryOp::Lgamma
        | UnaryOp::Digamma
        | UnaryOp::Trigamma => blocks.map(|a| T::of(op.apply(a.wide()))),
    }
}

#[inline(always)]
fn binary<T: Real, I: Isa>(op: BinaryOp, blocks: Blocks<T>) {
    match op {
        BinaryOp::Add => blocks.map2(|a, b| a + b),
        BinaryOp::Sub => blocks.map2(|a, b| a - b),
        BinaryOp::Mul => blocks.map2(|a, b| a * b),
        BinaryOp::Div => blocks.map2(|a, b| a / b),
        BinaryOp::Min => blocks.map2(minimum),
        BinaryOp::Max => blocks.map2(maximum),
        BinaryOp::Pow => blocks.map_lanes(|a, b| a.pow::<I>(b)),
        BinaryOp::Atan2 | BinaryOp::Hypot => blocks.map_lanes(|a, b| T::of(op.apply(a.wide(), b.wide()))),
    }
}

/// The operands of an instruction: views that were checked for the shape, `to` apart from the others.
pub struct Blocks<T> {
    pub shape: (usize, usize),
    pub to: View<T>,
    pub operands: [View<T>; 3],
}

impl<T: Real> Blocks<T> {
    /// A function of lanes.
    #[inline(always)]
    fn map(self, f: impl Fn(T) -> T) {
        // SAFETY: what `Blocks` promises; one operand has lanes.
        unsafe { update::<T, 1, 1>(self.shape, self.to, [self.operands[0]], |[a]| f(a)) }
    }

    /// A function that the reference has to compute for huge arguments, which are rare.
    #[inline(always)]
    fn map_angle(self, op: UnaryOp, f: impl Fn(T) -> T) {
        let (shape, to, [a, ..]) = (self.shape, self.to, self.operands);
        self.map(f);
        for row in 0..shape.0 {
            // SAFETY: what `Blocks` promises.
            let is_huge = |lane: usize| unsafe { *a.at(row).add(lane) }.abs() > T::LARGEST_ANGLE;
            // The whole line is looked at, so that the search is vector code.
            if (0..shape.1).fold(false, |any, lane| any | is_huge(lane)) {
                for lane in (0..shape.1).filter(|lane| is_huge(*lane)) {
                    // SAFETY: what `Blocks` promises.
                    unsafe { *to.at(row).add(lane) = T::of(op.apply((*a.at(row).add(lane)).wide())) };
                }
            }
        }
    }

    #[inline(always)]
    fn exp<V: Vector<T>>(self) {
        // SAFETY: what `Blocks` promises.
        unsafe { exp_vectors::<T, V>(self.shape, self.to, self.operands[0]) }
    }

    /// A function of two operands, one of which may have a value for each row only.
    #[inline(always)]
    fn map2(self, f: impl Fn(T, T) -> T) {
        let f = |[a, b]: [T; 2]| f(a, b);
        let (shape, to, [a, b, _]) = (self.shape, self.to, self.operands);
        // SAFETY: what `Blocks` promises; the code has lanes for one of them.
        unsafe {
            match mask(&[a, b]) {
                1 => update::<T, 2, 1>(shape, to, [a, b], f),
                2 => update::<T, 2, 2>(shape, to, [a, b], f),
                _ => update::<T, 2, 3>(shape, to, [a, b], f),
            }
        }
    }

    /// A long function of two operands that both have lanes: it is compiled once.
    #[inline(always)]
    fn map_lanes(self, f: impl Fn(T, T) -> T) {
        let [a, b, _] = self.operands;
        // SAFETY: what `Blocks` promises; the code has lanes for both.
        unsafe { update::<T, 2, 3>(self.shape, self.to, [a, b], |[a, b]| f(a, b)) }
    }

    /// A function of `a*b` and `c`: if one of the factors has no lanes, it is the first.
    #[inline(always)]
    fn map_product(self, f: impl Fn(T, T, T) -> T) {
        let (shape, to, mut operands) = (self.shape, self.to, self.operands);
        let f = |[a, b, c]: [T; 3]| f(a, b, c);
        if !operands[1].vector {
            operands.swap(0, 1);
        }
        // SAFETY: what `Blocks` promises; products that are fused have lanes.
        unsafe {
            match mask(&operands) {
                2 => update::<T, 3, 2>(shape, to, operands, f),
                3 => update::<T, 3, 3>(shape, to, operands, f),
                6 => update::<T, 3, 6>(shape, to, operands, f),
                _ => update::<T, 3, 7>(shape, to, operands, f),
            }
        }
    }

    #[inline(always)]
    fn select(self) {
        let f = |[a, b, condition]: [T; 3]| if condition != T::ZERO { a } else { b };
        // SAFETY: what `Blocks` promises; the code has lanes for all.
        unsafe { update::<T, 3, 7>(self.shape, self.to, self.operands, f) }
    }

    #[inline(always)]
    fn repeat(self) {
        // SAFETY: what `Blocks` promises.
        unsafe { update::<T, 1, 0>(self.shape, self.to, [self.operands[0]], |[a]| a) }
    }

    /// Adds a term, or where rows or lanes are terms, as many.
    #[inline(always)]
    fn reduce(self, level: Level, rule: Rule, grouping: &Grouping) {
        let ((rows, lanes), [a, b, _]) = (self.shape, self.operands);
        let operands = if b.vector { [a, b] } else { [b, a] };
        let one = Terms { runs: &[[0, 0]], count: 1, steps: [0, 0], start: None };
        match (grouping.folded, grouping.stacked) {
            (true, _) => fold(level, rule, rows, self.to, operands, Terms { count: lanes, ..one }),
            (_, true) => {
                let terms = Terms { count: rows, steps: operands.map(|view| view.row), ..one };
                reduce(level, rule, (1, lanes), self.to, operands, terms);
            }
            _ => reduce(level, rule, (rows, lanes), self.to, operands, one),
        }
    }
}

#[inline(always)]
fn sign<T: Real>(a: T) -> T {
    if a > T::ZERO {
        T::ONE
    } else if a < T::ZERO {
        -T::ONE
    } else {
        a + T::ZERO
    }
}

/// `a ^ 0.5`: other than `sqrt`, it is `inf` at `-inf`, and 0 at -0.
#[inline(always)]
fn root<T: Real>(a: T) -> T {
    if a == -T::INFINITY { T::INFINITY } else { a.sqrt() + T::ZERO }
}

#[inline(always)]
fn truth<T: Real>(outcome: bool) -> T {
    if outcome { T::ONE } else { T::ZERO }
}
