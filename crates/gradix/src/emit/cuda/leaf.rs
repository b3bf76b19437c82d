//! A leaf on the threads of a block: each takes some of the values of the loops that threads share.
//!
//! A buffer in registers has, in each thread, the elements that the thread touches: along each of its dimensions as many as the
//! extent over the number of threads. Leaves that touch one are written out for all of them, side by side. Where values
//! are past the end of a loop, the last one stands for them, and nothing is stored.

use super::is_shared;
use crate::emit::draft::Draft;
use crate::emit::integers::smaller;
use crate::emit::names::Names;
use crate::emit::tree::{Callee, Operator, Type, Value};
use crate::emit::values::{Instance, Instances, Language, Values};
use crate::nest::{Kernel, Kind, Leaf, Loop, LoopId, Nest, Real, Scope, Tile, leaves};
use crate::program::expr::Number;
use crate::program::{Affine, Expr, ExprId, ReduceOp, TensorId};
use gradix_int::Int;
use std::collections::HashMap;

/// How many threads a leaf keeps busy.
pub fn threads(leaf: &Leaf) -> usize {
    leaf.loops.iter().map(count).product()
}

/// How many threads share the values of a loop.
pub fn count(l: &Loop) -> usize {
    match l.kind {
        Kind::Threads(count) => count,
        Kind::Serial | Kind::Lanes(_) | Kind::Unrolled(_) => 1,
    }
}

/// Writes one kernel.
pub struct Writer<'a> {
    pub names: Names<'a>,
    pub draft: Draft,
    pub real: Real,
    /// The threads of a block.
    threads: usize,
    /// What is written, and its number.
    pub kernel: &'a Kernel,
    number: usize,
    /// What threads share and have touched since the last barrier, and whether they wrote it; `None` where a tile begins or ends.
    since: Option<Vec<(TensorId, bool)>>,
    /// Loops of threads that have all of their values here.
    whole: Vec<LoopId>,
    /// The elements that a thread has of each buffer in registers.
    registers: HashMap<TensorId, Vec<Value>>,
}

impl<'a> Writer<'a> {
    pub fn new(names: Names<'a>, real: Real, kernel: &'a Kernel, number: usize, threads: usize) -> Self {
        let mut writer = Writer {
            names,
            draft: Draft::default(),
            real,
            threads,
            kernel,
            number,
            since: Some(Vec::new()),
            whole: Vec::new(),
            registers: HashMap::new(),
        };
        writer.declare_registers();
        writer
    }

    pub fn nest(&self) -> &'a Nest {
        self.names.nest
    }

    /// A variable for each element that a thread has in registers.
    fn declare_registers(&mut self) {
        let nest = self.nest();
        for buffer in nest.locals(self.number).filter(|id| nest[*id].registers) {
            let written = leaves(&self.kernel.steps).into_iter().find(|leaf| leaf.target == buffer);
            let Some(leaf) = written else { continue };
            let each = self.each(leaf, buffer);
            let count: usize = each.iter().product();
            let zero = Value::Real(Number::new(0.0), self.real);
            let held = (0..count).map(|_| self.draft.variable("held", &zero)).collect();
            self.registers.insert(buffer, held);
        }
    }

    /// How many elements a thread has along each dimension of a buffer in registers.
    fn each(&self, leaf: &Leaf, buffer: TensorId) -> Vec<usize> {
        let extents = self.nest()[buffer].extents.iter().map(|e| e.as_constant().and_then(|n| usize::try_from(n).ok()));
        let shared = leaf.loops.iter().filter(|l| is_shared(l.kind)).map(count);
        extents.zip(shared).map(|(extent, threads)| extent.unwrap_or(threads).div_ceil(threads)).collect()
    }

    /// The buffer in registers that a leaf writes or reads.
    fn held_by(&self, leaf: &Leaf) -> Option<TensorId> {
        self.nest().touched_by(leaf).find(|buffer| self.nest()[*buffer].registers)
    }

    /// Writes a leaf, after a barrier if it meets another one in what threads share.
    pub fn leaf(&mut self, leaf: &Leaf) {
        let saved = self.names.variables.clone();
        self.wait(leaf);
        let opened = self.open_threads(leaf);
        match (self.held_by(leaf), self.staged(leaf)) {
            (Some(buffer), _) => self.in_registers(leaf, buffer),
            (None, Some(each)) => self.side_by_side(leaf, &each),
            (None, None) => self.in_turn(leaf),
        }
        self.draft.close(opened);
        self.names.variables = saved;
    }

    /// The loops of a leaf's threads that have all of their values where a tile has, if the leaf adds to what threads have in
    /// registers.
    pub fn whole_in(&self, tile: &Tile, leaf: &Leaf) -> Option<Vec<LoopId>> {
        let first = Affine::index(tile.variable);
        let ends: Vec<Affine> = tile.range.high.iter().map(|high| high.clone() - first.clone()).collect();
        let is_whole = |l: &&Loop| {
            let [low] = l.range.low.as_slice() else { return false };
            let all = low.clone().shift(tile.size - 1);
            *low == Affine::constant(0) && l.range.high.iter().all(|high| *high == all || ends.contains(high))
        };
        let is_added = self.registers.contains_key(&leaf.target) && leaf.guards.is_empty();
        let whole = leaf.loops.iter().filter(|l| is_shared(l.kind)).filter(is_whole).map(|l| l.variable);
        Some(whole.collect::<Vec<LoopId>>()).filter(|whole| is_added && !whole.is_empty())
    }

    /// Writes a leaf where these loops of threads have all of their values.
    pub fn leaf_of_whole_tile(&mut self, leaf: &Leaf, whole: &[LoopId]) {
        self.whole = whole.to_vec();
        self.leaf(leaf);
        self.whole.clear();
    }

    /// A barrier, if a leaf meets what came before in memory that threads share.
    fn wait(&mut self, leaf: &Leaf) {
        let nest = self.nest();
        let own: Vec<TensorId> = nest.touched_by(leaf).filter(|buffer| !nest[*buffer].registers).collect();
        let meets = |(buffer, written): &(TensorId, bool)| own.contains(buffer) && (*written || *buffer == leaf.target);
        let needed = match &self.since {
            Some(since) => since.iter().any(meets),
            None => self.meets_another(leaf),
        };
        if needed {
            self.draft.run(Callee::known("__syncthreads".into()).call([]));
            self.since = Some(Vec::new());
        }
        if let Some(since) = &mut self.since {
            since.extend(own.into_iter().map(|buffer| (buffer, buffer == leaf.target)));
        }
    }

    /// To be called where a tile begins and where it ends: what its leaves touch may have been touched for the value before.
    pub fn forget(&mut self) {
        self.since = None;
    }

    /// Whether a leaf touches what another one of the kernel writes, or writes what another one touches, in memory that
    /// threads share.
    fn meets_another(&self, leaf: &Leaf) -> bool {
        let nest = self.nest();
        let is_shared = |buffer: &TensorId| !nest[*buffer].registers;
        let own: Vec<TensorId> = nest.touched_by(leaf).filter(is_shared).collect();
        let others = leaves(&self.kernel.steps).into_iter().filter(|other| !std::ptr::eq(*other, leaf));
        let mut others = others.peekable();
        let touches = |other: &Leaf, buffer: TensorId| nest.touched_by(other).any(|touched| touched == buffer);
        others.any(|other| {
            is_shared(&other.target) && own.contains(&other.target)
                || is_shared(&leaf.target) && touches(other, leaf.target)
        })
    }

    /// Opens what restricts a leaf to its threads, and gives the number of what is open. The loops that threads share start at
    /// the thread's first value; neighbouring threads have neighbouring values of the last one.
    fn open_threads(&mut self, leaf: &Leaf) -> usize {
        let needed = threads(leaf);
        if needed == self.threads {
            return 0;
        }
        self.draft.when(self.thread().below(needed));
        1
    }

    fn thread(&self) -> Value {
        Value::name("threadIdx.x", Type::Int).cast(Type::Whole)
    }

    /// The thread's number along a loop that threads share: the last such loop of a leaf goes fastest. It is computed without
    /// signs, and with a remainder even where that changes nothing: compilers see that it is small, and find what lies side by side.
    pub fn along(&self, leaf: &Leaf, position: usize) -> Value {
        let behind: usize = leaf.loops[position + 1..].iter().map(count).product();
        let thread = Value::name("threadIdx.x", Type::Int);
        let own = if behind == 1 { thread } else { thread / behind };
        own.with(Operator::Remainder, count(&leaf.loops[position])).cast(Type::Whole)
    }

    pub fn range(&self, l: &Loop) -> (Value, Value) {
        (self.names.low(&l.range), self.names.high(&l.range))
    }

    /// Opens the loop over the values that the thread takes, one after the other.
    fn open_loop(&mut self, leaf: &Leaf, position: usize) {
        let l = &leaf.loops[position];
        let ((low, high), v) = (self.range(l), self.names.variables[l.variable].clone());
        match l.kind {
            Kind::Threads(threads) => {
                let low = low + self.along(leaf, position);
                self.draft.each_to(&v, low, high, threads);
            }
            Kind::Serial | Kind::Lanes(_) | Kind::Unrolled(_) => self.draft.each_to(&v, low, high, 1),
        }
    }

    pub fn values(&mut self, instances: Instances) -> Values<'_, 'a> {
        Values::new(&mut self.names, &mut self.draft, self.real, &Numbers, instances)
    }

    /// Element by element.
    fn in_turn(&mut self, leaf: &Leaf) {
        (0..leaf.outputs).for_each(|position| self.open_loop(leaf, position));
        let target = self.names.element(leaf.target, &leaf.subscripts);
        match leaf.reduction {
            None => {
                let opened = self.open_guards(leaf);
                let value = self.values(Instances::default()).value(leaf.body, (0, 0));
                self.draft.assign(&target, value);
                self.draft.close(opened);
            }
            Some(op) => {
                let start = if leaf.accumulate { target.clone() } else { neutral(op, self.real) };
                let sum = self.draft.variable("sum", start);
                let terms = leaf.outputs..leaf.loops.len();
                let opened = terms.map(|position| self.open_loop(leaf, position)).count() + self.open_guards(leaf);
                let value = self.values(Instances::default()).value(leaf.body, (0, 0));
                self.draft.assign(&sum, combine(op, &sum, value));
                self.draft.close(opened);
                self.draft.assign(&target, sum);
            }
        }
        self.draft.close(leaf.outputs);
    }

    fn open_guards(&mut self, leaf: &Leaf) -> usize {
        self.names.all(&leaf.guards).map(|test| self.draft.when(test)).into_iter().count()
    }

    /// All elements that a thread has in registers, side by side.
    fn in_registers(&mut self, leaf: &Leaf, buffer: TensorId) {
        let each = self.each(leaf, buffer);
        let shared: Vec<usize> = (0..leaf.outputs).filter(|p| is_shared(leaf.loops[*p].kind)).collect();
        let mut sides: Vec<(usize, Vec<Value>)> = Vec::new();
        let mut inside: Vec<Vec<Value>> = Vec::new();
        let is_near = self.stays_near(leaf, &shared, &each);
        for (&position, &each) in shared.iter().zip(&each) {
            let l = &leaf.loops[position];
            let (low, high) = self.range(l);
            let end = self.draft.constant("end", high);
            let first = low + self.along(leaf, position);
            let first = self.draft.constant("first", first);
            let (mut names, mut tests) = (Vec::new(), Vec::new());
            for number in 0..each {
                let place = &first + count(l) * number;
                tests.push(place.clone().at_most(&end));
                let value = match is_near || self.whole.contains(&l.variable) {
                    true => place,
                    false => smaller(place, end.clone()),
                };
                names.push(self.draft.constant("v", value));
            }
            match each {
                1 => self.names.variables[l.variable] = names.remove(0),
                _ => sides.push((position, names)),
            }
            inside.push(tests);
        }
        let instances = instances(leaf, &sides);
        if let Some(op) = leaf.reduction.filter(|_| !leaf.accumulate) {
            let start = neutral(op, self.real);
            self.registers[&leaf.target].iter().for_each(|held| self.draft.assign(held, &start));
        }
        let points: usize = each.iter().product();
        let terms = leaf.outputs..leaf.loops.len();
        let guards = if is_near { self.guards_before(leaf, &instances, points) } else { None };
        let tests = (&inside[..], guards.as_deref());
        let whole = leaf.loops[terms.clone()].first().filter(|_| terms.len() == 1).and_then(whole_tile);
        if let Some((count, low, others)) = &whole {
            self.open_whole_tile(leaf.loops[leaf.outputs].variable, *count, low, others);
            self.points(leaf, instances.clone(), tests, points);
            self.draft.close(1);
            self.draft.otherwise();
        }
        let opened = terms.map(|position| self.open_loop(leaf, position)).count();
        self.points(leaf, instances, tests, points);
        self.draft.close(opened + usize::from(whole.is_some()));
    }

    /// What the guards of a reduction say of each point, if they are the same for all terms: it is computed before the first.
    fn guards_before(&mut self, leaf: &Leaf, instances: &Instances, points: usize) -> Option<Vec<Value>> {
        let uses_terms = |l: &Loop| leaf.guards.iter().any(|guard| guard.affine.uses_index(l.variable));
        if leaf.guards.is_empty() || leaf.reduction.is_none() || leaf.loops[leaf.outputs..].iter().any(uses_terms) {
            return None;
        }
        let mut known: Vec<(Value, Value)> = Vec::new();
        let mut test = |point: usize| {
            instances.select((point, 0), &mut self.names.variables);
            let test = self.names.all(&leaf.guards).expect("there are guards");
            match known.iter().find(|(text, _)| *text == test) {
                Some((_, name)) => name.clone(),
                None => {
                    let name = self.draft.constant("in", test.clone());
                    known.push((test, name.clone()));
                    name
                }
            }
        };
        Some((0..points).map(&mut test).collect())
    }

    /// Opens a choice, of which the first branch is for tiles with all of their values, and in it the loop over these, written out.
    fn open_whole_tile(&mut self, variable: LoopId, count: i64, low: &Affine, others: &[&Affine]) {
        let last = low.clone().shift(count - 1);
        let fits = others.iter().map(|other| self.names.affine(&last).at_most(self.names.affine(other)));
        let fits = Value::joined(Operator::And, fits).unwrap_or(1.into());
        self.draft.when(fits);
        let step = self.draft.fresh("step", Type::Whole);
        self.draft.unrolled(&step, count.into());
        let (name, low) = (self.names.variables[variable].clone(), self.names.affine(low));
        self.draft.fix(&name, low + step);
    }

    /// Whether a leaf reads nothing but what threads have in registers, and what is staged for its whole tile: where its values are
    /// past the end of a loop, it may read what is there.
    fn stays_near(&self, leaf: &Leaf, shared: &[usize], each: &[usize]) -> bool {
        let nest = self.nest();
        let room = |place: &Affine, extent: &Affine| {
            shared.iter().zip(each).all(|(position, each)| {
                let l = &leaf.loops[*position];
                let covers = extent.as_constant().is_some_and(|extent| *extent >= Int::from((count(l) * each) as i64));
                !place.uses_index(l.variable) || covers && *place == Affine::index(l.variable) - l.range.low[0].clone()
            })
        };
        let is_near = |(buffer, at): (TensorId, &[Affine])| {
            self.registers.contains_key(&buffer)
                || matches!(nest[buffer].scope, Scope::Local(_))
                    && at.iter().zip(&nest[buffer].extents).all(|(place, extent)| room(place, extent))
        };
        self.registers.contains_key(&leaf.target) && nest.exprs.accesses(leaf.body).all(is_near)
    }

    /// What becomes of each of the elements that a thread has.
    fn points(
        &mut self,
        leaf: &Leaf,
        instances: Instances,
        (inside, guards): (&[Vec<Value>], Option<&[Value]>),
        points: usize,
    ) {
        let accesses = self.held_accesses(leaf.body);
        let is_whole = self.covers_its_item(leaf);
        let mut given: HashMap<(ExprId, Instance), Value> = HashMap::new();
        for (id, buffer) in accesses {
            for point in 0..points {
                given.insert((id, (point, 0)), self.registers[&buffer][point].clone());
            }
        }
        let mut done = None;
        if leaf.guards.is_empty() || guards.is_some() {
            let mut values = self.values(instances.clone());
            values.given = given.clone();
            done = Some((0..points).map(|point| values.value(leaf.body, (point, 0))).collect::<Vec<Value>>());
        }
        for point in 0..points {
            instances.select((point, 0), &mut self.names.variables);
            let test = self.test(point, inside, is_whole && self.registers.contains_key(&leaf.target));
            let mut opened = test.map(|test| self.draft.when(test)).into_iter().count();
            opened += match guards {
                Some(guards) => {
                    self.draft.when(guards[point].clone());
                    1
                }
                None => self.open_guards(leaf),
            };
            let value = match &done {
                Some(done) => done[point].clone(),
                None => {
                    let mut values = self.values(instances.clone());
                    values.given = given.clone();
                    values.value(leaf.body, (point, 0))
                }
            };
            instances.select((point, 0), &mut self.names.variables);
            let target = match self.registers.get(&leaf.target) {
                Some(held) => held[point].clone(),
                None => self.names.element(leaf.target, &leaf.subscripts),
            };
            let value = match leaf.reduction {
                Some(op) => combine(op, &target, value),
                None => value,
            };
            self.draft.assign(&target, value);
            self.draft.close(opened);
        }
    }

    /// The accesses of a body to buffers in registers.
    fn held_accesses(&self, body: ExprId) -> Vec<(ExprId, TensorId)> {
        let exprs = &self.nest().exprs;
        let held = |id: ExprId| match &exprs[id] {
            Expr::Access(buffer, _) if self.registers.contains_key(buffer) => Some((id, *buffer)),
            _ => None,
        };
        exprs.postorder(body).into_iter().filter_map(held).collect()
    }

    /// Whether the loops that threads share are as long as the item is in each dimension: what lies past their ends belongs to
    /// no element at all.
    fn covers_its_item(&self, leaf: &Leaf) -> bool {
        let is_item = |l: &&Loop| self.kernel.work.iter().any(|work| l.range.high == [Affine::index(work.last)]);
        leaf.loops.iter().filter(|l| is_shared(l.kind)).all(|l| is_item(&l) || self.whole.contains(&l.variable))
    }

    /// Whether a point is none that a value stands for.
    fn test(&self, mut point: usize, inside: &[Vec<Value>], never: bool) -> Option<Value> {
        if never {
            return None;
        }
        let mut tests = Vec::new();
        for tests_of_side in inside.iter().rev() {
            tests.push(tests_of_side[point % tests_of_side.len()].clone());
            point /= tests_of_side.len();
        }
        Value::joined(Operator::And, tests.into_iter().rev())
    }
}

/// The values of at most two loops side by side.
fn instances(leaf: &Leaf, sides: &[(usize, Vec<Value>)]) -> Instances {
    let mut sides = sides.iter().map(|(position, names)| (leaf.loops[*position].variable, names.clone()));
    Instances { rows: sides.next(), columns: sides.next(), ..Instances::default() }
}

/// How many values a loop over a part of a tile has unless something else ends before, where it starts, and what ends before.
fn whole_tile(l: &Loop) -> Option<(i64, &Affine, Vec<&Affine>)> {
    let low = l.range.low.first().filter(|low| l.range.low.len() == 1 && low.as_index().is_some())?;
    let length = |high: &Affine| (high.clone() - low.clone()).as_constant().and_then(|n| i64::try_from(n).ok());
    let count = l.range.high.iter().find_map(length)? + 1;
    Some((count, low, l.range.high.iter().filter(|high| length(high).is_none()).collect()))
}

/// The value of an empty reduction.
fn neutral(op: ReduceOp, real: Real) -> Value {
    Value::Real(Number::new(op.neutral()), real)
}

/// Combines an accumulator with a value.
fn combine(op: ReduceOp, accumulator: &Value, value: Value) -> Value {
    match op {
        ReduceOp::Sum => accumulator + value,
        ReduceOp::Prod => accumulator * value,
        ReduceOp::Max | ReduceOp::Min => Numbers.function(op.name(), false).call([accumulator.clone(), value]),
        ReduceOp::LogSumExp => unreachable!("a nest that is verified has maxima and sums instead"),
    }
}

/// Numbers only: a thread has no lanes.
struct Numbers;

const NO_LANES: &str = "threads have no lanes";

impl Language for Numbers {
    fn indices(&self, _: Value, _: &Int) -> Value {
        unreachable!("{NO_LANES}")
    }

    fn load(&self, _: Value, _: Value, _: Option<&Value>) -> Value {
        unreachable!("{NO_LANES}")
    }

    fn all(&self, number: Value) -> Value {
        number
    }

    fn truth(&self, _: Value) -> Value {
        unreachable!("{NO_LANES}")
    }

    fn select(&self, _: Value, _: Value, _: Value) -> Value {
        unreachable!("{NO_LANES}")
    }

    fn function(&self, name: &str, _: bool) -> Callee {
        Callee { name: format!("gx_{name}").into(), result: Type::Real, snippet: None }
    }
}
