//! Straight-line code for the body of a leaf.
//!
//! Every node of the body becomes an instruction over all points of a group: a *block* of rows times lanes, or one
//! value for each row where it does not depend on the lanes, or one value. Index conditions are decided before
//! (there is one code for each combination of their outcomes), so no branch is left: a select by values computes both
//! sides and blends them. Instructions are in *levels*: level `r + 1` has what changes with the reduction's loop `r`,
//! level 0 what changes with none of them; where the lanes are a reduction, blocks have a last level of their own.

use super::execute::{MAX_ROWS, block_pitch};
use super::grouping::Grouping;
use super::leaf::Plan;
use super::linear::Linear;
use super::real::Real;
use super::vector::Rule;
use gradix::nest::LoopId;
use gradix::program::{BinaryOp, Comparison, Cond, CondId, Expr, ExprId, ReduceOp, UnaryOp};
use std::collections::HashMap;

/// The code for one combination of outcomes of the index conditions.
pub struct Code<T> {
    /// From what changes least often to what changes most.
    pub levels: Vec<Vec<Instruction>>,
    /// Single values that are set once, and their places.
    pub constants: Vec<(usize, T)>,
    /// How much memory all values have, in numbers.
    pub room: usize,
    /// The value of the body, where no instruction takes it up.
    pub result: Source,
    /// How the inner loops of the reduction run inside of one instruction, if they can.
    pub inner: Option<Inner>,
}

/// The codes of a leaf for some outcomes of its conditions on indices, those that were used last behind.
pub type Codes<T> = Vec<(Vec<bool>, Code<T>)>;

/// A rule, and operands that are there at all terms: accesses, or values that are the same for all of them.
#[derive(Clone, Copy, Debug)]
pub struct Inner {
    pub rule: Rule,
    /// How many of the reduction's loops run inside, besides lanes that are folded.
    pub loops: usize,
    /// The second has a value for each lane.
    pub operands: [Source; 2],
}

/// One operation on all points of a group.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    pub operation: Operation,
    pub domain: Domain,
    pub to: Source,
    pub operands: [Source; 3],
}

/// Whether an instruction computes a value for each row, and whether it does for each lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    pub rows: bool,
    pub lanes: bool,
}

/// One value.
const SCALAR: Domain = Domain { rows: false, lanes: false };
/// A value for each row.
const ROWS: Domain = Domain { rows: true, lanes: false };
/// One row that serves for all.
const LANES: Domain = Domain { rows: false, lanes: true };
/// A value for each point.
pub const BLOCK: Domain = Domain { rows: true, lanes: true };

impl Domain {
    /// That of an operation on values of both.
    fn with(self, other: Domain) -> Domain {
        Domain { rows: self.rows || other.rows, lanes: self.lanes || other.lanes }
    }

    /// How much memory its values have at most.
    fn room<T: Real>(self) -> usize {
        match self {
            SCALAR => T::PER_LINE,
            ROWS => MAX_ROWS,
            LANES | BLOCK => block_pitch::<T>(),
        }
    }
}

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    None,
    /// In the machine's own memory from this place on: as many numbers as its domain has.
    Value(usize, Domain),
    /// An access, used where it lies: its lanes one after the other, or one for all of them.
    Memory(usize),
    /// What a reduction has so far: a block, or where it is folded, some values for each row.
    Accumulator,
}

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation {
    /// An access.
    Load(usize),
    /// The number of an index expression.
    Index(usize),
    Unary(UnaryOp),
    Binary(BinaryOp),
    /// A value for each row, or for all, as one for each lane.
    Repeat,
    /// `a ^ 0.5`
    Root,
    /// `a*b + c`
    MultiplyAdd,
    /// `a*b - c`
    MultiplySubtract,
    /// `c - a*b`
    SubtractProduct,
    /// 1 or 0.
    Compare(Comparison),
    Not,
    And,
    Or,
    /// `a` where `c` is not 0, else `b`; operands `a, b, c`.
    Select,
    /// To the target.
    Store,
    /// To what a reduction has so far.
    Reduce(Rule),
}

/// The code for the node at `root`; where `finish` is set it goes on to the target or the accumulator.
pub fn compile<T: Real>(plan: &Plan<T>, grouping: &Grouping, outcomes: &[bool], root: ExprId, finish: bool) -> Code<T> {
    let mut build = Build { plan, grouping, outcomes, values: Vec::new() };
    let root = build.root(root);
    let root = if finish && plan.reduction.is_some() { build.repeated(root, BLOCK) } else { root };
    Emit::new(plan, grouping, build.values).emit(root, finish)
}

/// A node of the code before it has a place.
#[derive(Clone)]
struct Value<T> {
    kind: Kind<T>,
    /// Earlier values.
    operands: Vec<usize>,
    domain: Domain,
    level: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind<T> {
    Constant(T),
    Operation(Operation),
}

/// What is known of a condition.
enum Truth {
    Known(bool),
    /// The value that is 1 or 0.
    Value(usize),
}

const PRODUCT: Operation = Operation::Binary(BinaryOp::Mul);
const DIFFERENCE: Operation = Operation::Binary(BinaryOp::Sub);

/// Whether all operands of an operation must have lanes, since it is compiled once.
fn needs_lanes(operation: Operation) -> bool {
    matches!(operation, Operation::Select | Operation::Binary(BinaryOp::Pow | BinaryOp::Atan2 | BinaryOp::Hypot))
}

/// Makes values of nodes.
struct Build<'a, T> {
    plan: &'a Plan<T>,
    grouping: &'a Grouping,
    outcomes: &'a [bool],
    values: Vec<Value<T>>,
}

impl<T: Real> Build<'_, T> {
    /// Makes values of all that `root` is made of, and gives its own.
    fn root(&mut self, root: ExprId) -> usize {
        let (mut done, body) = (HashMap::new(), &self.plan.body);
        for id in body.exprs.postorder(root) {
            let value = match &body.exprs[id] {
                Expr::Constant(number) => self.constant(T::of(number.value())),
                Expr::Index(_) => self.leaf(Operation::Index(body.numbers[&id]), &body.indices[body.numbers[&id]]),
                Expr::Access(..) => {
                    let access = body.numbers[&id];
                    self.leaf(Operation::Load(access), &self.plan.accesses[access].place)
                }
                Expr::Unary(op, a) => self.value(Operation::Unary(*op), vec![done[a]]),
                Expr::Binary(op, a, b) => self.binary(*op, done[a], done[b]),
                Expr::Select(test, a, b) => match self.test(*test, &done) {
                    Truth::Known(outcome) => done[if outcome { a } else { b }],
                    Truth::Value(condition) => self.value(Operation::Select, vec![done[a], done[b], condition]),
                },
            };
            done.insert(id, value);
        }
        done[&root]
    }

    fn constant(&mut self, value: T) -> usize {
        self.add(Kind::Constant(value), Vec::new(), SCALAR, 0)
    }

    /// A condition, given the outcomes of those on indices.
    fn test(&mut self, test: CondId, done: &HashMap<ExprId, usize>) -> Truth {
        let body = &self.plan.body;
        match &body.exprs[test] {
            Cond::Index(asked) => {
                let number = body.asked.iter().position(|known| known == asked);
                Truth::Known(number.is_some_and(|number| self.outcomes[number]))
            }
            Cond::Compare(op, a, b) => Truth::Value(self.value(Operation::Compare(*op), vec![done[a], done[b]])),
            Cond::Not(a) => match self.test(*a, done) {
                Truth::Known(outcome) => Truth::Known(!outcome),
                Truth::Value(a) => Truth::Value(self.value(Operation::Not, vec![a])),
            },
            Cond::And(a, b) => self.both(Operation::And, false, [*a, *b], done),
            Cond::Or(a, b) => self.both(Operation::Or, true, [*a, *b], done),
        }
    }

    /// Two conditions as one: an outcome that is `decisive` is that of the whole.
    fn both(
        &mut self,
        operation: Operation,
        decisive: bool,
        tests: [CondId; 2],
        done: &HashMap<ExprId, usize>,
    ) -> Truth {
        match tests.map(|test| self.test(test, done)) {
            [Truth::Known(one), _] | [_, Truth::Known(one)] if one == decisive => Truth::Known(one),
            [Truth::Known(_), other] | [other, Truth::Known(_)] => other,
            [Truth::Value(a), Truth::Value(b)] => Truth::Value(self.value(operation, vec![a, b])),
        }
    }

    /// Powers that need no function are products, quotients and roots.
    fn binary(&mut self, op: BinaryOp, a: usize, b: usize) -> usize {
        let exponent = match (op, self.values[b].kind) {
            (BinaryOp::Pow, Kind::Constant(value)) => value.wide(),
            _ => return self.value(Operation::Binary(op), vec![a, b]),
        };
        let mut product = |a: usize, b: usize| self.value(PRODUCT, vec![a, b]);
        match exponent {
            2.0 => product(a, a),
            3.0 | 4.0 => {
                let square = product(a, a);
                product(square, if exponent == 3.0 { a } else { square })
            }
            -1.0 => {
                let one = self.constant(T::ONE);
                self.value(Operation::Binary(BinaryOp::Div), vec![one, a])
            }
            0.5 => self.value(Operation::Root, vec![a]),
            _ => self.value(Operation::Binary(op), vec![a, b]),
        }
    }

    /// A value that depends on variables by itself.
    fn leaf(&mut self, operation: Operation, linear: &Linear) -> usize {
        let moves = self.grouping.moving.iter().any(|v| linear.uses(*v));
        let domain = match self.grouping.lane {
            Some((lane, _)) if linear.uses(lane) && self.grouping.stacked && !moves => LANES,
            Some((lane, _)) if linear.uses(lane) => BLOCK,
            _ if moves => ROWS,
            _ => SCALAR,
        };
        let level = self.grouping.levels.iter().rposition(|v| linear.uses(*v)).map_or(0, |level| level + 1);
        self.add(Kind::Operation(operation), Vec::new(), domain, level)
    }

    fn value(&mut self, operation: Operation, mut operands: Vec<usize>) -> usize {
        let domain = operands.iter().map(|o| self.values[*o].domain).fold(SCALAR, Domain::with);
        if needs_lanes(operation) {
            operands.iter_mut().for_each(|operand| *operand = self.repeated(*operand, domain));
        }
        let level = operands.iter().map(|o| self.values[*o].level).max().unwrap_or(0);
        self.add(Kind::Operation(operation), operands, domain, level)
    }

    /// A value with as many numbers as a domain has.
    fn repeated(&mut self, value: usize, domain: Domain) -> usize {
        let Value { domain: own, level, .. } = self.values[value];
        if own == domain || own == LANES {
            return value;
        }
        self.add(Kind::Operation(Operation::Repeat), vec![value], domain, level)
    }

    fn add(&mut self, kind: Kind<T>, operands: Vec<usize>, domain: Domain, level: usize) -> usize {
        let last = self.grouping.folded && domain == BLOCK;
        let level = if last { self.grouping.levels.len() + 1 } else { level };
        self.values.push(Value { kind, operands, domain, level });
        self.values.len() - 1
    }
}

/// Gives every value a place, and writes the instructions.
struct Emit<'a, T> {
    plan: &'a Plan<T>,
    grouping: &'a Grouping,
    values: Vec<Value<T>>,
    sources: Vec<Source>,
    /// Uses by what is not yet written.
    uses: Vec<usize>,
    /// Whether a value is used at a deeper level than its own, and so keeps its place.
    kept: Vec<bool>,
    /// Blocks that are free for each level.
    free: Vec<Vec<usize>>,
    code: Code<T>,
}

impl<'a, T: Real> Emit<'a, T> {
    fn new(plan: &'a Plan<T>, grouping: &'a Grouping, values: Vec<Value<T>>) -> Self {
        let levels = grouping.levels.len() + 1 + usize::from(grouping.folded);
        let code = Code {
            levels: vec![Vec::new(); levels],
            constants: Vec::new(),
            room: 0,
            result: Source::None,
            inner: None,
        };
        let sources = vec![Source::None; values.len()];
        let (uses, kept, free) = (Vec::new(), Vec::new(), vec![Vec::new(); levels]);
        Emit { plan, grouping, values, sources, uses, kept, free, code }
    }

    fn emit(mut self, root: usize, finish: bool) -> Code<T> {
        let last = self.code.levels.len() - 1;
        self.count_uses(&[root]);
        self.fuse_products();
        let end = finish.then(|| self.end(root));
        self.count_uses(end.as_ref().map_or(&[root], |(_, operands)| operands));
        let direct = matches!(end, Some((Operation::Store, _))) && self.is_direct(root);
        for value in 0..self.values.len() {
            if self.uses[value] > 0 {
                self.write(value, direct && value == root);
            }
        }
        self.code.result = self.sources[root];
        if let Some((operation, operands)) = end.filter(|_| !direct) {
            let to = if operation == Operation::Store { Source::Memory(0) } else { Source::Accumulator };
            let operands = self.sources_of(&operands);
            self.code.inner = self.inner(operation, operands);
            self.code.levels[last].push(Instruction { operation, domain: BLOCK, to, operands });
        }
        self.code
    }

    /// How often each value is used by what these need; what is not used is not written.
    fn count_uses(&mut self, roots: &[usize]) {
        (self.uses, self.kept) = (vec![0; self.values.len()], vec![false; self.values.len()]);
        roots.iter().for_each(|root| self.uses[*root] += 1);
        for (value, Value { operands, level, .. }) in self.values.iter().enumerate().rev() {
            let used = self.uses[value] > 0;
            for operand in operands.iter().filter(|_| used) {
                self.uses[*operand] += 1;
                self.kept[*operand] |= self.values[*operand].level != *level;
            }
        }
    }

    /// `a*b + c` and the like as one instruction, where the product has no other use.
    fn fuse_products(&mut self) {
        // What is compared elsewhere, too, is rounded as it is there.
        let compares = self.values.iter().any(|value| value.kind == Kind::Operation(Operation::Select));
        let alone = self.plan.is_single() && !compares;
        for value in 0..self.values.len() {
            let Value { kind: Kind::Operation(operation), operands, domain, level } = &self.values[value] else {
                continue;
            };
            if *domain != BLOCK && !alone {
                continue;
            }
            let (operation, level, [a, b]) = match (operation, operands.as_slice()) {
                (Operation::Binary(BinaryOp::Add) | &DIFFERENCE, [a, b]) => (*operation, *level, [*a, *b]),
                _ => continue,
            };
            let fits = |operand: usize| {
                let Value { kind, domain: other, level: own, .. } = &self.values[operand];
                *kind == Kind::Operation(PRODUCT) && (self.uses[operand], other, *own) == (1, domain, level)
            };
            let (operation, product, other) = match (fits(a), fits(b)) {
                (true, _) if operation == DIFFERENCE => (Operation::MultiplySubtract, a, b),
                (true, _) => (Operation::MultiplyAdd, a, b),
                (_, true) if operation == DIFFERENCE => (Operation::SubtractProduct, b, a),
                (_, true) => (Operation::MultiplyAdd, b, a),
                (false, false) => continue,
            };
            let mut operands = self.values[product].operands.clone();
            operands.push(other);
            self.values[value].kind = Kind::Operation(operation);
            self.values[value].operands = operands;
        }
    }

    /// What becomes of the body's value.
    fn end(&self, root: usize) -> (Operation, Vec<usize>) {
        let Some(op) = self.plan.reduction else { return (Operation::Store, vec![root]) };
        let Value { kind, operands, domain, .. } = &self.values[root];
        if op != ReduceOp::Sum || *domain != BLOCK || *kind != Kind::Operation(PRODUCT) {
            return (Operation::Reduce(Rule::of(op)), vec![root, root]);
        }
        let factor = &self.values[operands[0]];
        let squared = operands[0] == operands[1] && factor.kind == Kind::Operation(DIFFERENCE);
        match squared && self.uses[operands[0]] == 2 {
            true => (Operation::Reduce(Rule::SquaredDifference), factor.operands.clone()),
            false => (Operation::Reduce(Rule::Product), operands.clone()),
        }
    }

    /// Inner loops as one instruction, as many as a term is made of accesses that are linear in their variables.
    fn inner(&self, operation: Operation, operands: [Source; 3]) -> Option<Inner> {
        let Operation::Reduce(rule) = operation else { return None };
        let least = usize::from(!self.grouping.folded);
        let found = |loops: &usize| self.inner_operands(*loops, operands).is_some();
        let loops = (least..=self.grouping.levels.len()).take_while(found).last()?;
        Some(Inner { rule, loops, operands: self.inner_operands(loops, operands)? })
    }

    /// The operands of a term, if so many inner loops can run inside of one instruction.
    fn inner_operands(&self, loops: usize, operands: [Source; 3]) -> Option<[Source; 2]> {
        let outer = self.grouping.levels.len() - loops;
        let lane = self.grouping.lane.filter(|_| self.grouping.folded).map(|(lane, _)| lane);
        let variables: Vec<LoopId> = self.grouping.levels[outer..].iter().copied().chain(lane).collect();
        let bounds = &self.plan.loops[self.plan.outputs + outer..];
        if bounds.iter().any(|l| variables.iter().any(|v| l.range.uses(*v))) {
            return None;
        }
        let straight = |access: usize| !variables.iter().any(|v| self.plan.accesses[access].place.bends_at(*v));
        let inside = || self.code.levels[outer + 1..].iter().flatten();
        let fits = |i: &Instruction| matches!(i.operation, Operation::Load(a) if straight(a) && !i.domain.lanes);
        let operand = |source: Source| match inside().find(|i| i.to == source).map(|i| i.operation) {
            Some(Operation::Load(access)) => Source::Memory(access),
            _ => source,
        };
        let has_lanes = |source: Source| match source {
            Source::Memory(access) => self.is_contiguous(access),
            Source::Value(_, domain) => domain.lanes,
            Source::None | Source::Accumulator => false,
        };
        let operands = match operands.map(operand) {
            [a, b, _] if has_lanes(b) => [a, b],
            [a, b, _] => [b, a],
        };
        let reads = |source: &Source| !matches!(source, Source::Memory(access) if !straight(*access));
        let fits = inside().all(fits) && operands.iter().all(reads) && has_lanes(operands[1]);
        fits.then_some(operands)
    }

    /// Whether the instruction for the body's value can write to the target itself.
    fn is_direct(&self, root: usize) -> bool {
        let Value { kind, domain, .. } = &self.values[root];
        let computed = matches!(kind, Kind::Operation(_)) && self.contiguous(root).is_none();
        let lies = *domain == BLOCK && self.is_contiguous(0) && !self.plan.reads_target();
        // A function may look at its operand again.
        let apart = !self.plan.reads_target() || !matches!(kind, Kind::Operation(Operation::Unary(_)));
        computed && !self.plan.streamed && (lies || self.plan.is_single() && apart)
    }

    fn is_contiguous(&self, access: usize) -> bool {
        let place = &self.plan.accesses[access].place;
        self.grouping.lane.is_some_and(|(lane, _)| place.factor(lane) == 1 && !place.bends_at(lane))
    }

    /// The access that instructions can use in place.
    fn contiguous(&self, value: usize) -> Option<usize> {
        match self.values[value] {
            Value { kind: Kind::Operation(Operation::Load(access)), domain, .. } => {
                Some(access).filter(|access| domain.lanes && self.is_contiguous(*access) || self.plan.is_single())
            }
            _ => None,
        }
    }

    fn write(&mut self, value: usize, direct: bool) {
        let Value { kind, operands, domain, level } = self.values[value].clone();
        let operation = match (kind, self.contiguous(value)) {
            (Kind::Constant(number), _) => {
                let place = self.new_place(SCALAR, level);
                self.sources[value] = Source::Value(place, SCALAR);
                return self.code.constants.push((place, number));
            }
            (_, Some(access)) => {
                self.sources[value] = Source::Memory(access);
                return;
            }
            (Kind::Operation(operation), None) => operation,
        };
        let to = match direct {
            true => Source::Memory(0),
            false => Source::Value(self.new_place(domain, level), domain),
        };
        let sources = self.sources_of(&operands);
        self.release(&operands, level);
        self.sources[value] = to;
        self.code.levels[level].push(Instruction { operation, domain, to, operands: sources });
    }

    /// Frees the blocks of operands that nothing else uses.
    fn release(&mut self, operands: &[usize], level: usize) {
        for operand in operands {
            self.uses[*operand] -= 1;
            let last = self.uses[*operand] == 0 && !self.kept[*operand];
            if let (true, Source::Value(place, Domain { lanes: true, .. })) = (last, self.sources[*operand]) {
                self.free[level].push(place);
            }
        }
    }

    /// A place for the values of a domain: one of a block that is free, or a new one.
    fn new_place(&mut self, domain: Domain, level: usize) -> usize {
        if let Some(place) = self.free[level].pop_if(|_| domain.lanes) {
            return place;
        }
        self.code.room += domain.room::<T>();
        self.code.room - domain.room::<T>()
    }

    fn sources_of(&self, values: &[usize]) -> [Source; 3] {
        std::array::from_fn(|n| values.get(n).map_or(Source::None, |value| self.sources[*value]))
    }
}
