//! A leaf of a nest with numbers for the sizes, and how its points are taken in groups.

use super::code::{Code, compile};
use super::contract::{Contraction, contraction};
use super::failed;
use super::grouping::{Grouping, Hints, group};
use super::linear::{Bounds, Condition, Linear, Translator};
use super::real::Real;
use super::reshape::reshape;
use super::sweep::{Sweep, sweep};
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
    /// Set where the leaf runs on register tiles.
    pub contraction: Option<Contraction<T>>,
    /// Set where it runs row by row, with the results in registers.
    pub sweep: Option<Sweep<T>>,
    /// Values of the variables of work and tiles, for estimates.
    pub sample: Vec<i64>,
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

/// The translation of a leaf; `extents` are those of all buffers, and `sample` has likely values of the variables of
/// work and tiles.
pub fn plan<T: Real>(
    nest: &Nest,
    leaf: &Leaf,
    extents: &[Vec<i64>],
    sample: Vec<i64>,
    translator: &mut Translator<'_>,
) -> Result<Plan<T>, Diagnostic> {
    let translate = |l: &gradix::nest::Loop, translator: &mut Translator<'_>| {
        Ok(Loop { variable: l.variable.number(), range: translator.range(l.variable.number(), &l.range)? })
    };
    let loops = leaf.loops.iter().map(|l| translate(l, translator)).collect::<Result<Vec<_>, Diagnostic>>()?;
    let guards = leaf.guards.iter().map(|g| translator.condition(g)).collect::<Result<Vec<_>, _>>()?;
    let mut build =
        Build { nest, extents, translator, accesses: Vec::new(), indices: Vec::new(), conditions: Vec::new() };
    build.access(leaf.target, &leaf.subscripts)?;
    let nodes = build.nodes(leaf.body)?;
    let Build { accesses, indices, conditions, .. } = build;
    let graph = Graph { body: nodes.len() - 1, nodes, indices, conditions };
    let mut hints = Hints { lanes: leaf.lanes(), rows: leaf.rows().map(|(position, _)| position) };
    let mut plan = Plan {
        accesses,
        loops,
        outputs: leaf.outputs,
        reduction: leaf.reduction,
        accumulate: leaf.accumulate,
        guards,
        graph,
        grouping: Grouping::default(),
        contraction: None,
        sweep: None,
        sample,
        only: OnceLock::new(),
        variants: RwLock::default(),
    };
    reshape(&mut plan, &mut hints, &|variable| translator.magnitude(variable));
    plan.grouping = group(&plan, hints);
    plan.contraction = contraction(&mut plan, hints);
    plan.sweep = sweep(&plan, hints);
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

impl<T> Graph<T> {
    /// Which nodes depend on a variable.
    pub fn depends(&self, plan: &Plan<T>, variable: usize) -> Vec<bool> {
        let mut depends: Vec<bool> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            depends.push(match node {
                Node::Constant(_) => false,
                Node::Index(number) => self.indices[*number].uses(variable),
                Node::Access(number) => plan.accesses[*number].place.uses(variable),
                Node::Unary(_, a) => depends[*a],
                Node::Binary(_, a, b) => depends[*a] || depends[*b],
                Node::Select(test, a, b) => depends[*a] || depends[*b] || self.decides(test, &depends, variable),
            });
        }
        depends
    }

    fn decides(&self, test: &Test, depends: &[bool], variable: usize) -> bool {
        match test {
            Test::Index(number) => self.conditions[*number].linear.uses(variable),
            Test::Compare(_, a, b) => depends[*a] || depends[*b],
            Test::Not(a) => self.decides(a, depends, variable),
            Test::And(a, b) | Test::Or(a, b) => {
                self.decides(a, depends, variable) || self.decides(b, depends, variable)
            }
        }
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
    fn nodes<T: Real>(&mut self, body: ExprId) -> Result<Vec<Node<T>>, Diagnostic> {
        let exprs = &self.nest.exprs;
        let order = exprs.postorder(body);
        let place: HashMap<ExprId, usize> = order.iter().enumerate().map(|(i, id)| (*id, i)).collect();
        let mut nodes = Vec::with_capacity(order.len());
        for id in &order {
            nodes.push(match &exprs[*id] {
                Expr::Constant(number) => Node::Constant(T::of(number.value())),
                Expr::Index(affine) => {
                    self.indices.push(self.translator.linear(affine)?);
                    Node::Index(self.indices.len() - 1)
                }
                Expr::Access(tensor, subscripts) => Node::Access(self.access(*tensor, subscripts)?),
                Expr::Unary(op, a) => Node::Unary(*op, place[a]),
                Expr::Binary(op, a, b) => Node::Binary(*op, place[a], place[b]),
                Expr::Select(c, a, b) => Node::Select(self.test(*c, &place)?, place[a], place[b]),
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
