//! A leaf of a nest with numbers for the sizes, and how its points are taken in groups.
//!
//! What is added to its own target, `y[j] = y[j] + e[i, j]`, is taken as a reduction that goes on: `y[j] += sum[i] e[i, j]`.

use super::code::{Code, compile};
use super::contract::{Contraction, contraction};
use super::failed;
use super::grouping::{Grouping, group};
use super::linear::{Bounds, Condition, Linear, Translator};
use super::real::Real;
use gradix::diagnostic::Diagnostic;
use gradix::nest::{Leaf, Nest};
use gradix::program::{BinaryOp, Comparison, Cond, CondId, Expr, ExprId, ReduceOp, TensorId, UnaryOp};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, RwLock};

/// One definition over a box of points.
pub struct Plan<T> {
    /// The target first, then what the body reads.
    pub accesses: Vec<Access>,
    /// The outputs, then the reduction, each from the outermost in.
    pub loops: Vec<Loop>,
    pub outputs: usize,
    pub reduction: Option<ReduceOp>,
    pub accumulate: bool,
    pub guards: Vec<Condition>,
    pub graph: Graph<T>,
    pub grouping: Grouping,
    /// Where it runs in register tiles: else instruction by instruction.
    pub contraction: Option<Box<Contraction<T>>>,
    /// The code where there are no conditions on indices.
    only: OnceLock<Arc<Code<T>>>,
    variants: RwLock<HashMap<Vec<bool>, Arc<Code<T>>>>,
}

/// Something that runs over the outputs of a plan: all but those that it takes in groups are loops around it.
pub trait Outputs<T: Real> {
    /// The plan, and the values of the variables.
    fn at(&mut self) -> (&Plan<T>, &mut [i64]);
    /// Whether the loop at this position belongs to a group.
    fn is_grouped(&self, position: usize) -> bool;
    /// One point of the loops.
    fn groups(&mut self);

    /// All points of the loops from this position on.
    fn outputs(&mut self, position: usize) {
        let (plan, point) = self.at();
        if position == plan.outputs {
            return self.groups();
        }
        let variable = plan.loops[position].variable;
        let (low, high) = plan.loops[position].range.at(point);
        if self.is_grouped(position) {
            return self.outputs(position + 1);
        }
        for value in low..=high {
            self.at().1[variable] = value;
            self.outputs(position + 1);
        }
    }
}

/// A loop of a leaf.
pub struct Loop {
    pub variable: usize,
    pub range: Bounds,
}

/// An element of a buffer.
#[derive(Clone, PartialEq)]
pub struct Access {
    pub buffer: usize,
    pub place: Linear,
}

/// The body: nodes in order.
pub struct Graph<T> {
    pub nodes: Vec<Node<T>>,
    /// The node of the body.
    pub body: usize,
    /// Numbers of index expressions.
    pub indices: Vec<Linear>,
    /// Conditions that the indices decide, each once.
    pub conditions: Vec<Condition>,
}

/// One node; operands are positions of earlier ones.
pub enum Node<T> {
    Constant(T),
    Index(usize),
    Access(usize),
    Unary(UnaryOp, usize),
    Binary(BinaryOp, usize, usize),
    Select(Test, usize, usize),
}

/// A condition of a select.
pub enum Test {
    /// Decided by the indices: the number of a condition.
    Index(usize),
    Compare(Comparison, usize, usize),
    Not(Box<Test>),
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
}

/// The translation of a leaf of a nest whose buffers have these extents.
pub fn plan<T: Real>(
    nest: &Nest,
    extents: &[Vec<i64>],
    translator: &mut Translator<'_>,
    leaf: &Leaf,
) -> Result<Plan<T>, Diagnostic> {
    let mut loops = Vec::with_capacity(leaf.loops.len());
    for l in &leaf.loops {
        let variable = l.variable.number();
        loops.push(Loop { variable, range: translator.range(variable, &l.range)? });
    }
    let guards = leaf.guards.iter().map(|g| translator.condition(g)).collect::<Result<Vec<_>, _>>()?;
    let addend = leaf.added(&nest.exprs).filter(|(_, taken)| !taken).map(|(addend, _)| addend);
    let (accesses, indices, conditions) = Default::default();
    let mut build = Build { nest, extents, translator, accesses, indices, conditions };
    build.access(leaf.target, &leaf.subscripts)?;
    let order = nest.exprs.postorder(addend.unwrap_or(leaf.body));
    let place: HashMap<ExprId, usize> = order.iter().enumerate().map(|(i, id)| (*id, i)).collect();
    let nodes = build.nodes(&order, &place)?;
    let Build { accesses, indices, conditions, .. } = build;
    let graph = Graph { body: nodes.len() - 1, nodes, indices, conditions };
    let mut plan = Plan {
        accesses,
        loops,
        outputs: leaf.outputs,
        reduction: if addend.is_some() { Some(ReduceOp::Sum) } else { leaf.reduction },
        accumulate: leaf.accumulate || addend.is_some(),
        guards,
        graph,
        grouping: Grouping::default(),
        contraction: None,
        only: OnceLock::new(),
        variants: RwLock::default(),
    };
    plan.grouping = group(&plan, leaf);
    plan.contraction = contraction(&mut plan, leaf, &place).map(Box::new);
    Ok(plan)
}

impl<T: Real> Plan<T> {
    /// The code for these outcomes of the conditions on indices.
    pub fn variant(&self, outcomes: &[bool]) -> Arc<Code<T>> {
        let made = || Arc::new(compile(self, &self.grouping, outcomes, self.graph.body, true));
        if outcomes.is_empty() {
            return self.only.get_or_init(made).clone();
        }
        let known = |variants: &HashMap<Vec<bool>, Arc<Code<T>>>| variants.get(outcomes).cloned();
        if let Some(code) = self.variants.read().ok().and_then(|variants| known(&variants)) {
            return code;
        }
        let code = made();
        if let Ok(mut variants) = self.variants.write() {
            if variants.len() >= MOST_VARIANTS {
                variants.clear();
            }
            variants.insert(outcomes.to_vec(), code.clone());
        }
        code
    }

    /// Whether the body reads what the leaf writes, at the same element or at another.
    pub fn reads_target(&self) -> bool {
        self.accesses[1..].iter().any(|access| access.buffer == self.accesses[0].buffer)
    }
}

/// Past this many, the codes of a leaf are made anew.
const MOST_VARIANTS: usize = 256;

struct Build<'a, 'b> {
    nest: &'a Nest,
    extents: &'a [Vec<i64>],
    translator: &'a Translator<'b>,
    accesses: Vec<Access>,
    indices: Vec<Linear>,
    conditions: Vec<Condition>,
}

impl Build<'_, '_> {
    fn nodes<T: Real>(&mut self, order: &[ExprId], place: &HashMap<ExprId, usize>) -> Result<Vec<Node<T>>, Diagnostic> {
        let exprs = &self.nest.exprs;
        let mut nodes = Vec::with_capacity(order.len());
        for id in order {
            nodes.push(match &exprs[*id] {
                Expr::Constant(number) => Node::Constant(T::of(number.value())),
                Expr::Index(affine) => {
                    self.indices.push(self.translator.linear(affine)?);
                    Node::Index(self.indices.len() - 1)
                }
                Expr::Access(tensor, subscripts) => Node::Access(self.access(*tensor, subscripts)?),
                Expr::Unary(op, a) => Node::Unary(*op, place[a]),
                Expr::Binary(op, a, b) => Node::Binary(*op, place[a], place[b]),
                Expr::Select(c, a, b) => Node::Select(self.test(*c, place)?, place[a], place[b]),
            });
        }
        Ok(nodes)
    }

    fn access(&mut self, tensor: TensorId, subscripts: &[gradix::program::Affine]) -> Result<usize, Diagnostic> {
        let buffer = tensor.0 as usize;
        let extents = self.extents.get(buffer).filter(|e| e.len() == subscripts.len());
        let extents = extents.ok_or_else(|| failed("an access does not fit its buffer"))?;
        let place = self.translator.place(subscripts, extents)?;
        self.accesses.push(Access { buffer, place });
        Ok(self.accesses.len() - 1)
    }

    fn test(&mut self, id: CondId, place: &HashMap<ExprId, usize>) -> Result<Test, Diagnostic> {
        Ok(match &self.nest.exprs[id] {
            Cond::Index(constraint) => Test::Index(self.condition(self.translator.condition(constraint)?)),
            Cond::Compare(op, a, b) => Test::Compare(*op, place[a], place[b]),
            Cond::Not(a) => Test::Not(Box::new(self.test(*a, place)?)),
            Cond::And(a, b) => Test::And(Box::new(self.test(*a, place)?), Box::new(self.test(*b, place)?)),
            Cond::Or(a, b) => Test::Or(Box::new(self.test(*a, place)?), Box::new(self.test(*b, place)?)),
        })
    }

    fn condition(&mut self, condition: Condition) -> usize {
        let known = self.conditions.iter().position(|c| *c == condition);
        known.unwrap_or_else(|| {
            self.conditions.push(condition);
            self.conditions.len() - 1
        })
    }
}
