//! Runs instructions: each is a loop over lanes, compiled for several instruction sets.
//!
//! This is one of the places of the virtual machine that touch memory without Rust's own checks; [`Buffer::at`] makes up
//! for them: what lies outside its buffer is never reached, whatever the nest says. The other promise, that no two
//! threads touch an element that one of them writes, is the nest's (items of work are independent).
#![allow(unsafe_code, reason = "loops over the caller's buffers; every access is checked once for its whole block")]

use super::code::{Domain, Inner, Instruction, Operation, Source};
use super::elementary::{self, LARGEST_ANGLE};
use super::grouping::Grouping;
use super::leaf::Plan;
use super::loops::{Terms, View, exp_vectors, fold, reduce, update};
use super::real::{Isa, Level, Real, by_level, maximum, minimum, multiply_add};
use super::scratch::Scratch;
use super::vector::{Array, Step, Vector, with_rule};
use gradix::program::{BinaryOp, Comparison, ReduceOp, UnaryOp};

/// The most rows of a block.
pub const ROWS: usize = 256;
/// The partial results of a folded reduction, which are combined in a fixed order.
pub const PARTS: usize = 32;

/// The most elements of a block: few enough for several to stay in the innermost cache.
pub const fn block<T>() -> usize {
    8192 / size_of::<T>()
}

/// A buffer of the caller's, or a part of its local memory.
#[derive(Clone, Copy)]
pub struct Buffer<T> {
    pub pointer: *mut T,
    pub length: usize,
}

impl<T> Buffer<T> {
    /// A pointer to the element at `start`, if all elements at these steps from it are inside.
    #[inline(always)]
    pub fn at<const N: usize>(&self, start: i64, steps: [i64; N], counts: [usize; N]) -> *mut T {
        let (mut first, mut last) = (start, start);
        for (step, count) in steps.into_iter().zip(counts) {
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
    pub buffers: Vec<Buffer<T>>,
    /// The values of the kernel's variables.
    pub point: Vec<i64>,
    /// What each variable adds from row to row.
    pub slopes: Vec<i64>,
    pub memory: Memory<T>,
    /// The accumulator is the target itself.
    pub in_place: bool,
    pub rows: usize,
    pub lanes: usize,
    /// The first of the lanes, within the block of the accumulator.
    pub lane: usize,
    /// The distance of the rows of a block.
    pub pitch: usize,
}

/// Memory of a thread's own. It is kept from one run to the next.
pub struct Memory<T> {
    pub scalars: Scratch<T>,
    /// [`ROWS`] values for each place.
    pub rows: Scratch<T>,
    pub blocks: Scratch<T>,
    pub accumulator: Scratch<T>,
    /// The packed rows of a contraction.
    pub panel: Scratch<T>,
}

impl<T: Real> Memory<T> {
    /// Nothing yet.
    pub fn new() -> Self {
        let [scalars, rows, blocks, accumulator, panel] = std::array::from_fn(|_| Scratch::new());
        Memory { scalars, rows, blocks, accumulator, panel }
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
    for instruction in code {
        step::<T, I>(machine, context, instruction);
    }
}

/// Runs so many terms of an innermost loop from the point on.
pub fn execute_inner<T: Real>(
    machine: &mut Machine<T>,
    context: &Context<'_, T>,
    inner: &Inner,
    variable: usize,
    count: usize,
) {
    let to = machine.view(context, Source::Accumulator, Domain::Block);
    let shape = (machine.rows, machine.lanes);
    let [a, b] = inner.operands.map(|source| machine.terms(context, source, variable, count));
    let terms = Terms { count, steps: [a.1, b.1] };
    // SAFETY: the level was detected, and the views were checked for the shape and all terms.
    with_rule!(inner.rule, Code => unsafe { reduce_at::<T, Code>(machine.level, shape, to, [a.0, b.0], terms) });
}

by_level! { reduce_at<T, R: Step>(shape: (usize, usize), to: View<T>, operands: [View<T>; 2], terms: Terms) = reduce }

/// One instruction on a block, on the values of all rows, or on one value.
#[inline(always)]
fn step<T: Real, I: Isa>(machine: &mut Machine<T>, context: &Context<'_, T>, instruction: &Instruction) {
    let domain = instruction.domain;
    match instruction.operation {
        Operation::Load(access) => return machine.load(context, access, instruction),
        Operation::Index(number) => return machine.index(context, number, instruction),
        Operation::Store => return machine.store(context, instruction.operands[0]),
        _ => {}
    }
    let to = machine.view(context, instruction.to, domain);
    let [a, b, c] = instruction.operands.map(|source| machine.view(context, source, domain));
    let blocks = Blocks { shape: machine.shape(domain), to, operands: [a, b, c] };
    match instruction.operation {
        Operation::Unary(op) => unary::<T, I>(op, blocks),
        Operation::Binary(op) => binary::<T, I>(op, blocks),
        Operation::Root => blocks.map(root),
        Operation::MultiplyAdd => blocks.map3(multiply_add::<T, I>),
        Operation::MultiplySubtract => blocks.map3(|a, b, c| multiply_add::<T, I>(a, b, -c)),
        Operation::SubtractProduct => blocks.map3(|a, b, c| multiply_add::<T, I>(-a, b, c)),
        Operation::Compare(Comparison::Lt) => blocks.map2(|a, b| truth(a < b)),
        Operation::Compare(Comparison::Le) => blocks.map2(|a, b| truth(a <= b)),
        Operation::Compare(Comparison::Eq) => blocks.map2(|a, b| truth(a == b)),
        Operation::Not => blocks.map(|a| T::ONE - a),
        Operation::And => blocks.map2(|a, b| a * b),
        Operation::Or => blocks.map2(maximum),
        Operation::Select => blocks.map3(|a, b, condition| if condition != T::ZERO { a } else { b }),
        Operation::Accumulate(rule) => with_rule!(rule, Code => blocks.accumulate::<I, Code>()),
        Operation::Fold(rule) => with_rule!(rule, Code => blocks.fold::<I, Code>()),
        Operation::Load(_) | Operation::Index(_) | Operation::Store => {}
    }
}

#[inline(always)]
fn unary<T: Real, I: Isa>(op: UnaryOp, blocks: Blocks<T>) {
    match op {
        UnaryOp::Neg => blocks.map(|a| -a),
        UnaryOp::Exp if <I::Vector<T>>::HAS_EXP && blocks.operands[0].vector => blocks.exp::<I::Vector<T>>(),
        UnaryOp::Exp => blocks.map_wide(elementary::exp::<I>),
        UnaryOp::Expm1 => blocks.map_wide(elementary::expm1::<I>),
        UnaryOp::Log => blocks.map_wide(elementary::log::<I>),
        UnaryOp::Log1p => blocks.map_wide(elementary::log1p::<I>),
        UnaryOp::Sqrt => blocks.map(T::sqrt),
        UnaryOp::Sin => blocks.map_angle(elementary::sin::<I>, |a| op.apply(a)),
        UnaryOp::Cos => blocks.map_angle(elementary::cos::<I>, |a| op.apply(a)),
        UnaryOp::Tanh => blocks.map_wide(elementary::tanh::<I>),
        UnaryOp::Erf => blocks.map_wide(elementary::erf::<I>),
        UnaryOp::Sigmoid => blocks.map_wide(elementary::sigmoid::<I>),
        UnaryOp::Relu => blocks.map(|a| maximum(a, T::ZERO)),
        UnaryOp::Softplus => blocks.map_wide(elementary::softplus::<I>),
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
        | UnaryOp::Trigamma => blocks.map_wide(|a| op.apply(a)),
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
        BinaryOp::Pow => blocks.map2(|a, b| T::of(elementary::pow::<I>(a.wide(), b.wide()))),
        BinaryOp::Atan2 | BinaryOp::Hypot => blocks.map2(|a, b| T::of(op.apply(a.wide(), b.wide()))),
    }
}

/// The operands of an instruction: views that were checked for the shape, `to` apart from the others.
struct Blocks<T> {
    shape: (usize, usize),
    to: View<T>,
    operands: [View<T>; 3],
}

impl<T: Real> Blocks<T> {
    #[inline(always)]
    fn map(self, f: impl Fn(T) -> T) {
        // SAFETY: what `Blocks` promises.
        unsafe { update(self.shape, self.to, [self.operands[0]], |_, [a]| f(a)) }
    }

    /// A function in f64.
    #[inline(always)]
    fn map_wide(self, f: impl Fn(f64) -> f64) {
        self.map(|a| T::of(f(a.wide())));
    }

    /// A function in f64 that is another one for huge arguments, which are rare.
    #[inline(always)]
    fn map_angle(self, f: impl Fn(f64) -> f64, huge: impl Fn(f64) -> f64) {
        let (shape, to, [a, ..]) = (self.shape, self.to, self.operands);
        self.map_wide(f);
        for row in 0..shape.0 {
            // SAFETY: what `Blocks` promises.
            let at = |lane: usize| unsafe { *a.at(row).add(if a.vector { lane } else { 0 }) }.wide();
            // The whole line is looked at, so that the search is vector code.
            if (0..shape.1).fold(false, |any, lane| any | (at(lane).abs() > LARGEST_ANGLE)) {
                for lane in (0..shape.1).filter(|lane| at(*lane).abs() > LARGEST_ANGLE) {
                    // SAFETY: what `Blocks` promises.
                    unsafe { *to.at(row).add(lane) = T::of(huge(at(lane))) };
                }
            }
        }
    }

    #[inline(always)]
    fn exp<V: Vector<T>>(self) {
        // SAFETY: what `Blocks` promises.
        unsafe { exp_vectors::<T, V>(self.shape, self.to, self.operands[0]) }
    }

    #[inline(always)]
    fn map2(self, f: impl Fn(T, T) -> T) {
        let [a, b, _] = self.operands;
        // SAFETY: what `Blocks` promises.
        unsafe { update(self.shape, self.to, [a, b], |_, [a, b]| f(a, b)) }
    }

    #[inline(always)]
    fn map3(self, f: impl Fn(T, T, T) -> T) {
        // SAFETY: what `Blocks` promises.
        unsafe { update(self.shape, self.to, self.operands, |_, [a, b, c]| f(a, b, c)) }
    }

    #[inline(always)]
    fn accumulate<I: Isa, R: Step>(self) {
        let [a, b, _] = self.operands;
        let one = Array::<T, 1, I>::all;
        // SAFETY: what `Blocks` promises.
        unsafe { update(self.shape, self.to, [a, b], |sum, [a, b]| R::step(one(sum), one(a), one(b)).0[0]) }
    }

    #[inline(always)]
    fn fold<I: Isa, R: Step>(self) {
        let [a, b, _] = self.operands;
        // SAFETY: what `Blocks` promises; the machine has the instructions that it runs.
        unsafe { fold::<T, I::Vector<T>, R>(self.shape, self.to, [a, b]) }
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
