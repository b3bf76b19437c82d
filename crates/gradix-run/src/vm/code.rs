//! Straight-line code for the body of a leaf.
//!
//! Every node of the body becomes an instruction over all points of a group: a *block* of rows times lanes, or one
//! value for each row where it does not depend on the lanes, or one value. Index conditions are decided before
//! (there is one code for each combination of their outcomes), so no branch is left: a select by values computes both
//! sides and blends them. Instructions are in *levels*: level `r + 1` has what changes with the reduction's loop `r`,
//! level 0 what changes with none of them; where the lanes are a reduction, blocks have a last level of their own.

use super::grouping::Grouping;
use super::leaf::{Node, Plan, Test};
use super::real::Real;
use gradix::program::{BinaryOp, Comparison, ReduceOp, UnaryOp};

/// The code for one combination of outcomes of the index conditions.
pub struct Code<T> {
    /// From what changes least often to what changes most.
    pub levels: Vec<Vec<Instruction>>,
    /// Single values that are set once.
    pub constants: Vec<(usize, T)>,
    /// How many single values there are.
    pub scalars: usize,
    /// How many values for each row there are.
    pub rows: usize,
    /// How many blocks there are.
    pub blocks: usize,
    /// The value of the body, where no instruction takes it up.
    pub result: Source,
}

/// One operation on all points of a group.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    pub operation: Operation,
    pub domain: Domain,
    pub to: Source,
    pub operands: [Source; 3],
}

/// How many values an instruction computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Domain {
    Scalar,
    Rows,
    Block,
}

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    None,
    Scalar(usize),
    Rows(usize),
    Block(usize),
    /// An access whose lanes lie one after the other, and where they are packed its rows too.
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
    /// A value for each row, in all lanes.
    Spread,
    /// `a ^ 0.5`
    Root,
    /// `a*b + c`
    MultiplyAdd,
    /// `a*b - c`
    MultiplySubtract,
    /// `c - a*b`
    SubtractProduct,
    /// `a + b + c`
    Sum,
    /// `a * b * c`
    Product,
    /// 1 or 0.
    Compare(Comparison),
    Not,
    And,
    Or,
    /// `a` where `c` is not 0, else `b`; operands `a, b, c`.
    Select,
    /// To the target.
    Store,
    Accumulate(ReduceOp),
    /// `accumulator + a*b`
    AddProduct,
    /// `accumulator + (a - b)^2`
    AddSquaredDifference,
    Fold(ReduceOp),
    /// The same of folded reductions.
    FoldProduct,
    /// The same of folded reductions.
    FoldSquaredDifference,
}

/// The code for the node at `root`; where `finish` is set it goes on to the target or the accumulator.
pub fn compile<T: Real>(plan: &Plan<T>, grouping: &Grouping, outcomes: &[bool], root: usize, finish: bool) -> Code<T> {
    let mut build = Build { plan, grouping, outcomes, values: Vec::new(), spread: Vec::new() };
    let root = build.values(root);
    Emit::new(plan, grouping, build.values).emit(root, finish)
}

/// A node of the code before it has a place.
#[derive(Clone)]
struct Value<T> {
    kind: Kind<T>,
    operands: [usize; 3],
    domain: Domain,
    level: usize,
    uses: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind<T> {
    Constant(T),
    Operation(Operation),
}

const NO: usize = usize::MAX;

struct Build<'a, T> {
    plan: &'a Plan<T>,
    grouping: &'a Grouping,
    outcomes: &'a [bool],
    values: Vec<Value<T>>,
    /// What was spread, and to which value.
    spread: Vec<(usize, usize)>,
}

enum Decided {
    Yes(bool),
    Value(usize),
}

impl<T: Real> Build<'_, T> {
    /// Makes values of all nodes that `root` needs, and gives its own.
    fn values(&mut self, root: usize) -> usize {
        let needed = self.needed(root);
        let mut done = vec![NO; root + 1];
        for position in (0..=root).filter(|p| needed[*p]) {
            let nodes = &self.plan.graph.nodes;
            done[position] = match &nodes[position] {
                Node::Constant(value) => self.constant(*value),
                Node::Index(number) => {
                    let linear = &self.plan.graph.indices[*number];
                    self.leaf(Operation::Index(*number), |variable| linear.uses(variable))
                }
                Node::Access(number) => {
                    let place = &self.plan.accesses[*number].place;
                    self.leaf(Operation::Load(*number), |variable| place.uses(variable))
                }
                Node::Unary(op, a) => self.value(Operation::Unary(*op), &[done[*a]]),
                Node::Binary(op, a, b) => self.binary(*op, done[*a], done[*b]),
                Node::Select(test, a, b) => match self.test(test, &done) {
                    Decided::Yes(true) => done[*a],
                    Decided::Yes(false) => done[*b],
                    Decided::Value(c) => self.value(Operation::Select, &[done[*a], done[*b], c]),
                },
            };
        }
        done[root]
    }

    /// What is evaluated, given the outcomes of the conditions on indices.
    fn needed(&self, root: usize) -> Vec<bool> {
        let mut needed = vec![false; root + 1];
        needed[root] = true;
        for position in (0..=root).rev() {
            if !needed[position] {
                continue;
            }
            match &self.plan.graph.nodes[position] {
                Node::Constant(_) | Node::Index(_) | Node::Access(_) => {}
                Node::Unary(_, a) => needed[*a] = true,
                Node::Binary(_, a, b) => {
                    needed[*a] = true;
                    needed[*b] = true;
                }
                Node::Select(test, a, b) => {
                    let decided = self.decided(test);
                    needed[*a] |= decided != Some(false);
                    needed[*b] |= decided != Some(true);
                    self.compared(test, &mut needed);
                }
            }
        }
        needed
    }

    fn decided(&self, test: &Test) -> Option<bool> {
        match test {
            Test::Index(number) => Some(self.outcomes[*number]),
            Test::Compare(..) => None,
            Test::Not(a) => self.decided(a).map(|a| !a),
            Test::And(a, b) => match (self.decided(a), self.decided(b)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), other) | (other, Some(true)) => other,
                (None, None) => None,
            },
            Test::Or(a, b) => match (self.decided(a), self.decided(b)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), other) | (other, Some(false)) => other,
                (None, None) => None,
            },
        }
    }

    fn compared(&self, test: &Test, needed: &mut [bool]) {
        match test {
            _ if self.decided(test).is_some() => {}
            Test::Index(_) => {}
            Test::Compare(_, a, b) => {
                needed[*a] = true;
                needed[*b] = true;
            }
            Test::Not(a) => self.compared(a, needed),
            Test::And(a, b) | Test::Or(a, b) => {
                self.compared(a, needed);
                self.compared(b, needed);
            }
        }
    }

    fn test(&mut self, test: &Test, done: &[usize]) -> Decided {
        if let Some(outcome) = self.decided(test) {
            return Decided::Yes(outcome);
        }
        match test {
            Test::Index(number) => Decided::Yes(self.outcomes[*number]),
            Test::Compare(op, a, b) => Decided::Value(self.value(Operation::Compare(*op), &[done[*a], done[*b]])),
            Test::Not(a) => match self.test(a, done) {
                Decided::Yes(outcome) => Decided::Yes(!outcome),
                Decided::Value(a) => Decided::Value(self.value(Operation::Not, &[a])),
            },
            Test::And(a, b) => self.both(Operation::And, a, b, done),
            Test::Or(a, b) => self.both(Operation::Or, a, b, done),
        }
    }

    /// Two conditions of which, as the whole is undecided, a decided one does not matter.
    fn both(&mut self, operation: Operation, a: &Test, b: &Test, done: &[usize]) -> Decided {
        match (self.test(a, done), self.test(b, done)) {
            (Decided::Value(a), Decided::Value(b)) => Decided::Value(self.value(operation, &[a, b])),
            (Decided::Yes(_), other) | (other, Decided::Yes(_)) => other,
        }
    }

    fn binary(&mut self, op: BinaryOp, a: usize, b: usize) -> usize {
        let exponent = match (op, self.values[b].kind) {
            (BinaryOp::Pow, Kind::Constant(value)) => value.wide(),
            _ => return self.value(Operation::Binary(op), &[a, b]),
        };
        let product = Operation::Binary(BinaryOp::Mul);
        if exponent == 2.0 {
            self.value(product, &[a, a])
        } else if exponent == 3.0 {
            let square = self.value(product, &[a, a]);
            self.value(product, &[square, a])
        } else if exponent == 4.0 {
            let square = self.value(product, &[a, a]);
            self.value(product, &[square, square])
        } else if exponent == -1.0 {
            let one = self.constant(T::ONE);
            self.value(Operation::Binary(BinaryOp::Div), &[one, a])
        } else if exponent == 0.5 {
            self.value(Operation::Root, &[a])
        } else {
            self.value(Operation::Binary(op), &[a, b])
        }
    }

    fn constant(&mut self, value: T) -> usize {
        self.add(Kind::Constant(value), &[], Domain::Scalar, 0)
    }

    /// A value that depends on variables by itself.
    fn leaf(&mut self, operation: Operation, uses: impl Fn(usize) -> bool) -> usize {
        let domain = match (self.grouping.lane, self.grouping.row) {
            (Some((lane, _)), _) if uses(lane) => Domain::Block,
            (_, Some((row, _))) if uses(row) => Domain::Rows,
            _ => Domain::Scalar,
        };
        let level = self.grouping.levels.iter().rposition(|v| uses(*v)).map_or(0, |level| level + 1);
        self.add(Kind::Operation(operation), &[], domain, level)
    }

    fn value(&mut self, operation: Operation, operands: &[usize]) -> usize {
        let domain = operands.iter().map(|o| self.values[*o].domain).max().unwrap_or(Domain::Scalar);
        let level = operands.iter().map(|o| self.values[*o].level).max().unwrap_or(0);
        let operands: Vec<usize> = match (domain, self.grouping.packed) {
            (Domain::Block, Some(_)) => operands.iter().map(|o| self.spread(*o)).collect(),
            _ => operands.to_vec(),
        };
        self.add(Kind::Operation(operation), &operands, domain, level)
    }

    /// A block of what has a value for each row.
    fn spread(&mut self, value: usize) -> usize {
        let Value { domain: Domain::Rows, level, .. } = self.values[value] else { return value };
        if let Some((_, block)) = self.spread.iter().find(|(v, _)| *v == value) {
            return *block;
        }
        let block = self.add(Kind::Operation(Operation::Spread), &[value], Domain::Block, level);
        self.spread.push((value, block));
        block
    }

    fn add(&mut self, kind: Kind<T>, operands: &[usize], domain: Domain, level: usize) -> usize {
        let level =
            if self.grouping.folded && domain == Domain::Block { self.grouping.levels.len() + 1 } else { level };
        let mut places = [NO; 3];
        places[..operands.len()].copy_from_slice(operands);
        operands.iter().for_each(|o| self.values[*o].uses += 1);
        self.values.push(Value { kind, operands: places, domain, level, uses: 0 });
        self.values.len() - 1
    }
}

/// Gives every value a place, and writes the instructions.
struct Emit<'a, T> {
    plan: &'a Plan<T>,
    grouping: &'a Grouping,
    values: Vec<Value<T>>,
    sources: Vec<Source>,
    /// Uses by instructions that are not yet written.
    pending: Vec<usize>,
    /// Whether a value is needed at a deeper level than its own, and so keeps its place.
    kept: Vec<bool>,
    free: Vec<Vec<usize>>,
    code: Code<T>,
}

impl<'a, T: Real> Emit<'a, T> {
    fn new(plan: &'a Plan<T>, grouping: &'a Grouping, values: Vec<Value<T>>) -> Self {
        let levels = grouping.levels.len() + 1 + usize::from(grouping.folded);
        let code = Code {
            levels: vec![Vec::new(); levels],
            constants: Vec::new(),
            scalars: 0,
            rows: 0,
            blocks: 0,
            result: Source::None,
        };
        let count = values.len();
        Emit {
            plan,
            grouping,
            values,
            sources: vec![Source::None; count],
            pending: vec![0; count],
            kept: vec![false; count],
            free: vec![Vec::new(); levels],
            code,
        }
    }

    fn emit(mut self, root: usize, finish: bool) -> Code<T> {
        let last = self.code.levels.len() - 1;
        self.fuse_products();
        let end = finish.then(|| self.end(root)).flatten();
        self.fuse_chains();
        self.note_uses(end.map(|(_, operands)| operands), root, last);
        let direct = matches!(end, Some((Operation::Store, _))) && self.is_direct(root);
        for value in 0..self.values.len() {
            if self.values[value].uses > 0 {
                self.write(value, direct && value == root);
            }
        }
        self.code.result = self.sources[root];
        if let Some((operation, operands)) = end.filter(|_| !direct) {
            let to = if operation == Operation::Store { Source::Memory(0) } else { Source::Accumulator };
            let operands = operands.map(|o| self.source(o));
            self.code.levels[last].push(Instruction { operation, domain: Domain::Block, to, operands });
        }
        self.code
    }

    /// What becomes of the body's value; `None` where points are taken one by one.
    fn end(&mut self, root: usize) -> Option<(Operation, [usize; 3])> {
        self.grouping.lane?;
        let Some(op) = self.plan.reduction else { return Some((Operation::Store, [root, NO, NO])) };
        let folded = self.grouping.folded;
        let plain = if folded { Operation::Fold(op) } else { Operation::Accumulate(op) };
        let Value { kind, operands: [a, b, _], domain, uses: 0, .. } = self.values[root] else {
            return Some((plain, [root, NO, NO]));
        };
        if op != ReduceOp::Sum || domain != Domain::Block || kind != Kind::Operation(PRODUCT) {
            return Some((plain, [root, NO, NO]));
        }
        self.values[a].uses -= 1;
        self.values[b].uses -= 1;
        let Value { kind, operands: [c, d, _], .. } = self.values[a];
        if a == b && self.values[a].uses == 0 && kind == Kind::Operation(DIFFERENCE) {
            self.values[c].uses -= 1;
            self.values[d].uses -= 1;
            let operation = if folded { Operation::FoldSquaredDifference } else { Operation::AddSquaredDifference };
            return Some((operation, [c, d, NO]));
        }
        let operation = if folded { Operation::FoldProduct } else { Operation::AddProduct };
        Some((operation, [a, b, NO]))
    }

    /// `a*b + c` and the like as one instruction, where the product has no other use.
    fn fuse_products(&mut self) {
        for value in 0..self.values.len() {
            let Value { kind, operands: [a, b, _], domain: Domain::Block, level, .. } = self.values[value] else {
                continue;
            };
            let fits = |o: usize| {
                let operand = &self.values[o];
                operand.kind == Kind::Operation(PRODUCT)
                    && (operand.uses, operand.domain, operand.level) == (1, Domain::Block, level)
            };
            let (operation, product, other) = match kind {
                Kind::Operation(Operation::Binary(BinaryOp::Add)) if fits(a) => (Operation::MultiplyAdd, a, b),
                Kind::Operation(Operation::Binary(BinaryOp::Add)) if fits(b) => (Operation::MultiplyAdd, b, a),
                Kind::Operation(DIFFERENCE) if fits(a) => (Operation::MultiplySubtract, a, b),
                Kind::Operation(DIFFERENCE) if fits(b) => (Operation::SubtractProduct, b, a),
                _ => continue,
            };
            let [c, d, _] = self.values[product].operands;
            self.values[product].uses = 0;
            self.values[value].kind = Kind::Operation(operation);
            self.values[value].operands = [c, d, other];
        }
    }

    /// `(a + b) + c` and `(a * b) * c` as one instruction, where the first part has no other use.
    fn fuse_chains(&mut self) {
        for value in 0..self.values.len() {
            let Value { kind, operands: [a, b, _], domain: Domain::Block, level, .. } = self.values[value] else {
                continue;
            };
            let operation = match kind {
                Kind::Operation(Operation::Binary(BinaryOp::Add)) => Operation::Sum,
                Kind::Operation(PRODUCT) => Operation::Product,
                _ => continue,
            };
            let fits = |o: usize| {
                let operand = &self.values[o];
                operand.kind == kind && (operand.uses, operand.domain, operand.level) == (1, Domain::Block, level)
            };
            let (inner, other) = match (fits(a), fits(b)) {
                (true, _) => (a, b),
                (_, true) => (b, a),
                (false, false) => continue,
            };
            let [c, d, _] = self.values[inner].operands;
            self.values[inner].uses = 0;
            self.values[value].kind = Kind::Operation(operation);
            self.values[value].operands = [c, d, other];
        }
    }

    /// Removes what nothing uses, and notes how often and how deep the rest is used.
    fn note_uses(&mut self, end: Option<[usize; 3]>, root: usize, last: usize) {
        let mut users: Vec<(usize, usize)> = Vec::new();
        match end {
            Some(operands) => users.extend(operands.iter().filter(|o| **o != NO).map(|o| (*o, last))),
            None => users.push((root, last + 1)),
        }
        self.values.iter_mut().for_each(|value| value.uses = 0);
        users.iter().for_each(|(o, _)| self.values[*o].uses += 1);
        let mut stack: Vec<usize> = users.iter().map(|(o, _)| *o).collect();
        let mut seen = vec![false; self.values.len()];
        while let Some(value) = stack.pop() {
            if std::mem::replace(&mut seen[value], true) {
                continue;
            }
            for operand in self.values[value].operands.into_iter().filter(|o| *o != NO) {
                self.values[operand].uses += 1;
                users.push((operand, self.values[value].level));
                stack.push(operand);
            }
        }
        for (operand, level) in users {
            self.pending[operand] += 1;
            self.kept[operand] |= level != self.values[operand].level;
        }
    }

    /// Whether the instruction for the body's value can write to the target itself.
    fn is_direct(&self, root: usize) -> bool {
        let Value { kind, domain, .. } = &self.values[root];
        let computed = matches!(kind, Kind::Operation(_)) && self.contiguous(root).is_none();
        computed && *domain == Domain::Block && self.is_contiguous(0) && !self.plan.reads_target()
    }

    fn is_contiguous(&self, access: usize) -> bool {
        let place = &self.plan.accesses[access].place;
        let across = self.grouping.row.map(|(row, _)| place.factor(row));
        let gaps = self.grouping.packed.is_some() && self.grouping.packed != across;
        self.grouping.lane.is_some_and(|(lane, _)| place.factor(lane) == 1 && !place.bends_at(lane)) && !gaps
    }

    /// The access that instructions can use in place.
    fn contiguous(&self, value: usize) -> Option<usize> {
        match self.values[value] {
            Value { kind: Kind::Operation(Operation::Load(access)), domain: Domain::Block, .. } => {
                self.is_contiguous(access).then_some(access)
            }
            _ => None,
        }
    }

    fn write(&mut self, value: usize, direct: bool) {
        let Value { kind, operands, domain, level, .. } = self.values[value];
        let operation = match kind {
            Kind::Constant(number) => {
                self.sources[value] = self.new_scalar();
                self.code.constants.push((self.code.scalars - 1, number));
                return;
            }
            Kind::Operation(operation) => operation,
        };
        if let Some(access) = self.contiguous(value) {
            self.sources[value] = Source::Memory(access);
            return;
        }
        let to = match domain {
            _ if direct => Source::Memory(0),
            Domain::Scalar => self.new_scalar(),
            Domain::Rows => {
                self.code.rows += 1;
                Source::Rows(self.code.rows - 1)
            }
            Domain::Block => Source::Block(self.free[level].pop().unwrap_or_else(|| {
                self.code.blocks += 1;
                self.code.blocks - 1
            })),
        };
        let sources = operands.map(|o| self.source(o));
        for operand in operands.into_iter().filter(|o| *o != NO) {
            self.pending[operand] -= 1;
            if let (0, false, Source::Block(block)) = (self.pending[operand], self.kept[operand], self.sources[operand])
            {
                self.free[level].push(block);
            }
        }
        self.sources[value] = to;
        self.code.levels[level].push(Instruction { operation, domain, to, operands: sources });
    }

    fn new_scalar(&mut self) -> Source {
        self.code.scalars += 1;
        Source::Scalar(self.code.scalars - 1)
    }

    fn source(&self, value: usize) -> Source {
        if value == NO { Source::None } else { self.sources[value] }
    }
}

const PRODUCT: Operation = Operation::Binary(BinaryOp::Mul);
const DIFFERENCE: Operation = Operation::Binary(BinaryOp::Sub);
