//! Runs instructions: each is a loop over lanes, compiled for several instruction sets.
//!
//! This is one of the places of the virtual machine that touch memory without Rust's own checks; [`Machine::memory`]
//! makes up for them: what lies outside its buffer is never reached, whatever the nest says. The other promise, that
//! no two threads touch an element that one of them writes, is the nest's (items of work are independent).
#![allow(unsafe_code, reason = "loops over the caller's buffers; every access is checked once for its whole block")]

use super::code::{Domain, Instruction, Operation, Source};
use super::grouping::{Grouping, SPREAD};
use super::leaf::Plan;
use super::loops::{View, fold, gather, map, map_vectors, map2, map2_long, map3, repeat, spread, update, update2};
#[cfg(target_arch = "x86_64")]
use super::real::{Avx2, Avx512};
use super::real::{Baseline, Isa, Level, Real, maximum, minimum, multiply_add};
use super::scratch::Scratch;
use super::tile::{self, Vector};
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

/// What one thread needs to run a kernel.
pub struct Machine<T> {
    pub level: Level,
    pub buffers: Vec<Buffer<T>>,
    /// The values of the kernel's variables.
    pub point: Vec<i64>,
    pub scalars: Scratch<T>,
    /// [`ROWS`] values for each place.
    pub row_values: Scratch<T>,
    pub blocks: Scratch<T>,
    pub accumulator: Scratch<T>,
    /// Panels of contractions.
    pub panels: [Scratch<T>; 2],
    /// The accumulator is the target itself.
    pub in_place: bool,
    pub rows: usize,
    pub lanes: usize,
    /// The first of the lanes, within the block of the accumulator.
    pub lane: usize,
    /// The distance of the rows of a block.
    pub pitch: usize,
}

/// The leaf that is run.
pub struct Context<'a, T> {
    pub plan: &'a Plan<T>,
    pub grouping: &'a Grouping,
}

/// Runs instructions on the group of points that the machine is set to.
pub fn execute<T: Real>(machine: &mut Machine<T>, context: &Context<'_, T>, code: &[Instruction]) {
    match machine.level {
        // SAFETY: the level was detected.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { execute_avx512(machine, context, code) },
        // SAFETY: the level was detected.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { execute_avx2(machine, context, code) },
        _ => run::<T, Baseline>(machine, context, code),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
fn execute_avx512<T: Real>(machine: &mut Machine<T>, context: &Context<'_, T>, code: &[Instruction]) {
    run::<T, Avx512>(machine, context, code);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn execute_avx2<T: Real>(machine: &mut Machine<T>, context: &Context<'_, T>, code: &[Instruction]) {
    run::<T, Avx2>(machine, context, code);
}

#[inline(always)]
fn run<T: Real, I: Isa>(machine: &mut Machine<T>, context: &Context<'_, T>, code: &[Instruction]) {
    for instruction in code {
        match instruction.domain {
            Domain::Scalar => scalar(machine, context, instruction),
            Domain::Rows | Domain::Block => step::<T, I>(machine, context, instruction),
        }
    }
}

/// One instruction on one value: not worth code for every instruction set.
#[inline(never)]
fn scalar<T: Real>(machine: &mut Machine<T>, context: &Context<'_, T>, instruction: &Instruction) {
    let value = |source: Source| match source {
        Source::Scalar(place) => machine.scalars.get(place),
        _ => T::ZERO,
    };
    let [a, b, c] = instruction.operands.map(value);
    let result = match instruction.operation {
        Operation::Load(access) => machine.element(context, access),
        Operation::Index(number) => T::of_index(context.plan.graph.indices[number].at(&machine.point)),
        Operation::Unary(op) => T::of(op.apply(a.wide())),
        Operation::Binary(op) => binary_value(op, a, b),
        Operation::Root => root(a),
        Operation::MultiplyAdd => a * b + c,
        Operation::MultiplySubtract => a * b - c,
        Operation::SubtractProduct => c - a * b,
        Operation::Sum => a + b + c,
        Operation::Product => a * b * c,
        Operation::Compare(op) => truth(compare(op, a, b)),
        Operation::Not => T::ONE - a,
        Operation::And => a * b,
        Operation::Or => maximum(a, b),
        Operation::Select => select(a, b, c),
        // What is spread and the end of a body are on blocks.
        Operation::Spread
        | Operation::Store
        | Operation::Accumulate(_)
        | Operation::AddProduct
        | Operation::AddSquaredDifference
        | Operation::Fold(_)
        | Operation::FoldProduct
        | Operation::FoldSquaredDifference => return,
    };
    if let Source::Scalar(place) = instruction.to {
        machine.scalars.set(place, result);
    }
}

/// One instruction on a block, or on the values of all rows.
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
    let shape = if domain == Domain::Rows { (1, machine.rows) } else { (machine.rows, machine.lanes) };
    let [a, b, c] = instruction.operands.map(|source| machine.view(context, source, domain));
    // SAFETY: the views were checked for the shape, and the target of an instruction is none of its operands.
    unsafe {
        match instruction.operation {
            Operation::Unary(op) => unary::<T, I>(op, Blocks { shape, to, a, b }),
            Operation::Binary(op) => binary::<T, I>(op, Blocks { shape, to, a, b }),
            Operation::Spread if shape.1 <= SPREAD => spread(to, shape, |row| [a.value(row); SPREAD]),
            Operation::Spread => map(shape, to, a, |a| a),
            Operation::Root => map(shape, to, a, root),
            Operation::MultiplyAdd => map3(shape, to, a, b, c, multiply_add::<T, I>),
            Operation::MultiplySubtract => map3(shape, to, a, b, c, |a, b, c| multiply_add::<T, I>(a, b, -c)),
            Operation::SubtractProduct => map3(shape, to, a, b, c, |a, b, c| multiply_add::<T, I>(-a, b, c)),
            Operation::Sum => map3(shape, to, a, b, c, |a, b, c| a + b + c),
            Operation::Product => map3(shape, to, a, b, c, |a, b, c| a * b * c),
            Operation::Compare(Comparison::Lt) => map2(shape, to, a, b, |a, b| truth(a < b)),
            Operation::Compare(Comparison::Le) => map2(shape, to, a, b, |a, b| truth(a <= b)),
            Operation::Compare(Comparison::Eq) => map2(shape, to, a, b, |a, b| truth(a == b)),
            Operation::Not => map(shape, to, a, |a| T::ONE - a),
            Operation::And => map2(shape, to, a, b, |a, b| a * b),
            Operation::Or => map2(shape, to, a, b, maximum),
            Operation::Select => map3(shape, to, a, b, c, select),
            Operation::Accumulate(ReduceOp::Sum) => update(shape, to, a, |t, a| t + a),
            Operation::Accumulate(ReduceOp::Prod) => update(shape, to, a, |t, a| t * a),
            Operation::Accumulate(ReduceOp::Max) => update(shape, to, a, maximum),
            Operation::Accumulate(ReduceOp::Min) => update(shape, to, a, minimum),
            Operation::AddProduct => update2(shape, to, a, b, |t, a, b| multiply_add::<T, I>(a, b, t)),
            Operation::AddSquaredDifference => {
                update2(shape, to, a, b, |t, a, b| multiply_add::<T, I>(a - b, a - b, t));
            }
            Operation::Fold(ReduceOp::Sum) => fold::<T, I::Vector<T>, tile::Sum>(shape, to, a, a),
            Operation::Fold(ReduceOp::Prod) => fold::<T, I::Vector<T>, tile::Prod>(shape, to, a, a),
            Operation::Fold(ReduceOp::Max) => fold::<T, I::Vector<T>, tile::Largest>(shape, to, a, a),
            Operation::Fold(ReduceOp::Min) => fold::<T, I::Vector<T>, tile::Smallest>(shape, to, a, a),
            Operation::FoldProduct => fold::<T, I::Vector<T>, tile::Product>(shape, to, a, b),
            Operation::FoldSquaredDifference => fold::<T, I::Vector<T>, tile::SquaredDifference>(shape, to, a, b),
            Operation::Load(_) | Operation::Index(_) | Operation::Store => {}
        }
    }
}

#[inline(always)]
fn unary<T: Real, I: Isa>(op: UnaryOp, blocks: Blocks<T>) {
    match op {
        UnaryOp::Neg => blocks.map(|a| -a),
        UnaryOp::Exp => match <I::Vector<T>>::EXP {
            Some(exp) => blocks.map_vectors(exp),
            None => blocks.map(T::exp::<I>),
        },
        UnaryOp::Expm1 => blocks.map(T::expm1::<I>),
        UnaryOp::Log => blocks.map(T::log::<I>),
        UnaryOp::Log1p => blocks.map(T::log1p::<I>),
        UnaryOp::Sqrt => blocks.map(T::sqrt),
        UnaryOp::Sin => blocks.map_rare(T::sin::<I>, is_huge_angle, |a| T::of(op.apply(a.wide()))),
        UnaryOp::Cos => blocks.map_rare(T::cos::<I>, is_huge_angle, |a| T::of(op.apply(a.wide()))),
        UnaryOp::Tanh => blocks.map(T::tanh::<I>),
        UnaryOp::Erf => blocks.map(T::erf::<I>),
        UnaryOp::Sigmoid => blocks.map(T::sigmoid::<I>),
        UnaryOp::Relu => blocks.map(|a| maximum(a, T::ZERO)),
        UnaryOp::Softplus => blocks.map(T::softplus::<I>),
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
        BinaryOp::Pow => blocks.map2_long(T::pow::<I>),
        BinaryOp::Atan2 | BinaryOp::Hypot => blocks.map2_long(|a, b| T::of(op.apply(a.wide(), b.wide()))),
    }
}

/// An operation on two values; those that are one instruction stay in their type.
fn binary_value<T: Real>(op: BinaryOp, a: T, b: T) -> T {
    match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::Min => minimum(a, b),
        BinaryOp::Max => maximum(a, b),
        BinaryOp::Pow | BinaryOp::Atan2 | BinaryOp::Hypot => T::of(op.apply(a.wide(), b.wide())),
    }
}

/// The operands of a block instruction: views that were checked for the shape, `to` apart from the others.
struct Blocks<T> {
    shape: (usize, usize),
    to: View<T>,
    a: View<T>,
    b: View<T>,
}

impl<T: Real> Blocks<T> {
    #[inline(always)]
    fn map(self, function: impl Fn(T) -> T) {
        // SAFETY: what `Blocks` promises.
        unsafe { map(self.shape, self.to, self.a, function) }
    }

    #[inline(always)]
    fn map_vectors<V: Vector<T>>(self, function: impl Fn(V) -> V) {
        // SAFETY: what `Blocks` promises.
        unsafe { map_vectors(self.shape, self.to, self.a, function) }
    }

    /// A function that is another one for some rare arguments.
    #[inline(always)]
    fn map_rare(self, function: impl Fn(T) -> T, is_rare: impl Fn(T) -> bool, rare: impl Fn(T) -> T) {
        // SAFETY: what `Blocks` promises.
        unsafe {
            map(self.shape, self.to, self.a, function);
            for row in 0..self.shape.0 {
                // Only a vector has several values; a single one is the same for all lanes.
                let count = if self.a.vector { self.shape.1 } else { 1 };
                let from = self.a.line(row, count);
                // The whole line is looked at, so that the search is vector code.
                if from.iter().fold(false, |any, a| any | is_rare(*a)) {
                    let to = self.to.line_mut(row, self.shape.1);
                    for (lane, to) in to.iter_mut().enumerate() {
                        let a = from[if self.a.vector { lane } else { 0 }];
                        *to = if is_rare(a) { rare(a) } else { *to };
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn map2(self, function: impl Fn(T, T) -> T) {
        // SAFETY: what `Blocks` promises.
        unsafe { map2(self.shape, self.to, self.a, self.b, function) }
    }

    #[inline(always)]
    fn map2_long(self, function: impl Fn(T, T) -> T) {
        // SAFETY: what `Blocks` promises.
        unsafe { map2_long(self.shape, self.to, self.a, self.b, function) }
    }
}

#[inline(always)]
fn is_huge_angle<T: Real>(a: T) -> bool {
    a.abs() > T::LARGEST_ANGLE
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

#[inline(always)]
fn compare<T: Real>(op: Comparison, a: T, b: T) -> bool {
    match op {
        Comparison::Lt => a < b,
        Comparison::Le => a <= b,
        Comparison::Eq => a == b,
    }
}

#[inline(always)]
fn select<T: Real>(a: T, b: T, condition: T) -> T {
    if condition != T::ZERO { a } else { b }
}

impl<T: Real> Machine<T> {
    /// The view of a place that an instruction of this domain names.
    #[inline(always)]
    fn view(&mut self, context: &Context<'_, T>, source: Source, domain: Domain) -> View<T> {
        match source {
            Source::None => View { pointer: std::ptr::dangling_mut(), row: 0, vector: false },
            Source::Scalar(place) => View { pointer: self.scalars.pointer(place, 1), row: 0, vector: false },
            Source::Rows(place) => {
                let vector = domain == Domain::Rows;
                View { pointer: self.row_values.pointer(place * ROWS, ROWS), row: isize::from(!vector), vector }
            }
            Source::Block(place) => {
                let pointer = self.blocks.pointer(place * block::<T>(), block::<T>());
                View { pointer, row: self.pitch as isize, vector: true }
            }
            Source::Memory(access) => self.memory(context, access),
            Source::Accumulator if self.in_place => self.memory(context, 0),
            Source::Accumulator => {
                let row = if context.grouping.folded { PARTS } else { self.pitch };
                View {
                    pointer: self.accumulator.pointer(self.lane, block::<T>() - self.lane),
                    row: row as isize,
                    vector: true,
                }
            }
        }
    }

    /// An access with its lanes one after the other.
    #[inline(always)]
    fn memory(&self, context: &Context<'_, T>, access: usize) -> View<T> {
        let (pointer, row, lane) = self.strided(context, access, (self.rows, self.lanes));
        assert!(lane == 1 || self.lanes <= 1, "lanes lie one after the other");
        View { pointer, row, vector: true }
    }

    /// The first element of an access and the steps from row to row and lane to lane, with all of it inside its buffer.
    #[inline(always)]
    pub fn strided(&self, context: &Context<'_, T>, access: usize, shape: (usize, usize)) -> (*mut T, isize, isize) {
        let super::leaf::Access { buffer, place } = &context.plan.accesses[access];
        let step = |variable: Option<(usize, usize)>| variable.map_or(0, |(v, _)| place.factor(v));
        let (row, lane) = (step(context.grouping.row), step(context.grouping.lane));
        let start = place.at(&self.point);
        (self.buffers[*buffer].at(start, (row, lane), shape), row as isize, lane as isize)
    }

    /// One element.
    #[inline(always)]
    pub fn element(&self, context: &Context<'_, T>, access: usize) -> T {
        let super::leaf::Access { buffer, place } = &context.plan.accesses[access];
        let pointer = self.buffers[*buffer].at(place.at(&self.point), (0, 0), (1, 1));
        // SAFETY: it lies inside its buffer.
        unsafe { *pointer }
    }

    /// Writes the element of the target.
    pub fn set_element(&self, context: &Context<'_, T>, value: T) {
        let super::leaf::Access { buffer, place } = &context.plan.accesses[0];
        let pointer = self.buffers[*buffer].at(place.at(&self.point), (0, 0), (1, 1));
        // SAFETY: it lies inside its buffer.
        unsafe { *pointer = value };
    }

    #[inline(always)]
    fn load(&mut self, context: &Context<'_, T>, access: usize, instruction: &Instruction) {
        let to = self.view(context, instruction.to, instruction.domain);
        if instruction.domain == Domain::Rows {
            let (pointer, row, _) = self.strided(context, access, (self.rows, 1));
            // SAFETY: `strided` checked all rows.
            return unsafe { gather(to, (1, self.rows), pointer, 0, row) };
        }
        let lane = context.grouping.lane.map_or(0, |(lane, _)| lane);
        if context.plan.accesses[access].place.bends_at(lane) {
            for row in 0..self.rows {
                // SAFETY: `to` holds all rows.
                let line = unsafe { to.line_mut(row, self.lanes) };
                self.at_points(context, row, line, |machine| machine.element(context, access));
            }
            return;
        }
        let shape = (self.rows, self.lanes);
        let (pointer, row, lane) = self.strided(context, access, shape);
        // SAFETY: `strided` checked the whole block.
        unsafe {
            if row == 0 && to.row == shape.1 as isize {
                gather(to, (1, shape.1), pointer, 0, lane);
                repeat(to, shape);
            } else {
                gather(to, shape, pointer, row, lane);
            }
        }
    }

    #[inline(always)]
    fn index(&mut self, context: &Context<'_, T>, number: usize, instruction: &Instruction) {
        let to = self.view(context, instruction.to, instruction.domain);
        let linear = &context.plan.graph.indices[number];
        let step = |variable: Option<(usize, usize)>| variable.map_or(0, |(v, _)| linear.factor(v));
        let (row_step, lane_step) = (step(context.grouping.row), step(context.grouping.lane));
        if instruction.domain == Domain::Rows {
            let start = linear.at(&self.point);
            // SAFETY: a place for rows holds `ROWS` values.
            let line = unsafe { to.line_mut(0, self.rows) };
            line.iter_mut().enumerate().for_each(|(r, to)| *to = T::of_index(start + r as i64 * row_step));
            return;
        }
        let bends = context.grouping.lane.is_some_and(|(lane, _)| linear.bends_at(lane));
        for row in 0..self.rows {
            // SAFETY: `to` holds all rows.
            let line = unsafe { to.line_mut(row, self.lanes) };
            if bends {
                self.at_points(context, row, line, |machine| T::of_index(linear.at(&machine.point)));
            } else {
                let start = linear.at(&self.point) + row as i64 * row_step;
                line.iter_mut().enumerate().for_each(|(l, to)| *to = T::of_index(start + l as i64 * lane_step));
            }
        }
    }

    /// Fills a row with what `value` gives at each of its points.
    fn at_points(&mut self, context: &Context<'_, T>, row: usize, line: &mut [T], value: impl Fn(&Self) -> T) {
        let start = self.point.clone();
        if let Some((variable, _)) = context.grouping.row {
            self.point[variable] += row as i64;
        }
        for to in line {
            *to = value(self);
            if let Some((variable, _)) = context.grouping.lane {
                self.point[variable] += 1;
            }
        }
        self.point = start;
    }

    /// Writes a block to the target.
    #[inline(always)]
    pub fn store(&mut self, context: &Context<'_, T>, source: Source) {
        let from = self.view(context, source, Domain::Block);
        let lane = context.grouping.lane.map_or(0, |(lane, _)| lane);
        let shape = (self.rows, self.lanes);
        if context.plan.accesses[0].place.bends_at(lane) {
            return self.scatter(context, from);
        }
        let (pointer, row, lane) = self.strided(context, 0, shape);
        for r in 0..shape.0 {
            for l in 0..shape.1 {
                // SAFETY: `strided` checked the whole block, and `from` holds it.
                unsafe {
                    let value = *from.pointer.offset(r as isize * from.row + if from.vector { l as isize } else { 0 });
                    *pointer.offset(r as isize * row + l as isize * lane) = value;
                }
            }
        }
    }

    fn scatter(&mut self, context: &Context<'_, T>, from: View<T>) {
        let start = self.point.clone();
        for r in 0..self.rows {
            for l in 0..self.lanes {
                let groups = [(context.grouping.row, r), (context.grouping.lane, l)];
                for ((variable, _), step) in groups.into_iter().filter_map(|(group, step)| Some((group?, step))) {
                    self.point[variable] = start[variable] + step as i64;
                }
                // SAFETY: `from` holds the block.
                let value =
                    unsafe { *from.pointer.offset(r as isize * from.row + if from.vector { l as isize } else { 0 }) };
                self.set_element(context, value);
            }
        }
        self.point = start;
    }
}

impl<T> Buffer<T> {
    /// A pointer to the element at `start`, if all elements at these steps from it are inside.
    #[inline(always)]
    pub fn at(&self, start: i64, (row, lane): (i64, i64), (rows, lanes): (usize, usize)) -> *mut T {
        let reach = |step: i64, count: usize| step.saturating_mul(count as i64 - 1);
        let (across, along) = (reach(row, rows), reach(lane, lanes));
        let first = start.saturating_add(across.min(0)).saturating_add(along.min(0));
        let last = start.saturating_add(across.max(0)).saturating_add(along.max(0));
        assert!(first >= 0 && (last as u64) < self.length as u64, "an access stays inside its buffer");
        // SAFETY: it is inside.
        unsafe { self.pointer.offset(start as isize) }
    }
}

impl<T: Real> Machine<T> {
    /// The target's element if it is wanted, else another value.
    pub fn element_if(&self, context: &Context<'_, T>, wanted: bool, other: T) -> T {
        if wanted { self.element(context, 0) } else { other }
    }

    /// Starts the accumulator: with a value, or from what the target holds.
    pub fn start(&mut self, context: &Context<'_, T>, value: Option<T>) {
        if self.in_place && value.is_none() {
            return;
        }
        let to = self.view(context, Source::Accumulator, Domain::Block);
        for row in 0..self.rows {
            // SAFETY: the accumulator holds the block, and nothing else refers to it.
            let line = unsafe { to.line_mut(row, self.lanes) };
            match value {
                Some(value) => line.fill(value),
                None => self.at_points(context, row, line, |machine| machine.element(context, 0)),
            }
        }
    }
}
