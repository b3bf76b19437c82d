//! A leaf of a nest with numbers for the sizes, and how its points are taken in groups.
//!
//! What is added to its own target, `y[j] = y[j] + e[i, j]`, is taken as a reduction that goes on: `y[j] += sum[i] e[i, j]`.

use super::code::{Code, compile};
use super::contract::{Contraction, contraction};
use super::grouping::{Grouping, group};
use super::linear::{Bounds, Condition, Linear, Translator};
use super::real::Real;
use gradix::diagnostic::Diagnostic;
use gradix::nest::{ByBuffer, ByLoop, Leaf, LoopId, Nest};
use gradix::program::{Affine, Constraint, Expr, ExprId, Exprs, ReduceOp, TensorId};
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
    pub body: Body,
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
    fn at(&mut self) -> (&Plan<T>, &mut ByLoop<i64>);
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
    pub variable: LoopId,
    pub range: Bounds,
}

/// An element of a buffer.
#[derive(Clone, PartialEq)]
pub struct Access {
    pub buffer: TensorId,
    pub place: Linear,
}

/// What a leaf computes, in a graph of its own.
pub struct Body {
    pub exprs: Exprs,
    pub root: ExprId,
    /// Of an access or an index expression, which one it is.
    pub numbers: HashMap<ExprId, usize>,
    /// Index expressions whose value counts.
    pub indices: Vec<Linear>,
    /// Conditions that the indices decide, each once.
    pub conditions: Vec<Condition>,
    /// The same as they are in the graph.
    pub asked: Vec<Constraint>,
}

/// The translation of a leaf of a nest whose buffers have these extents.
pub fn plan<T: Real>(
    nest: &Nest,
    extents: &ByBuffer<Vec<i64>>,
    translator: &mut Translator<'_>,
    leaf: &Leaf,
) -> Result<Plan<T>, Diagnostic> {
    let mut loops = Vec::with_capacity(leaf.loops.len());
    for l in &leaf.loops {
        loops.push(Loop { variable: l.variable, range: translator.range(l.variable, &l.range)? });
    }
    let guards = leaf.guards.iter().map(|g| translator.condition(g)).collect::<Result<Vec<_>, _>>()?;
    let addend = leaf.added(&nest.exprs).filter(|(_, taken)| !taken).map(|(addend, _)| addend);
    let mut accesses = vec![access(extents, translator, leaf.target, &leaf.subscripts)?];
    let (mut exprs, mut copies) = Default::default();
    let root = nest.exprs.copy_into(addend.unwrap_or(leaf.body), &HashMap::new(), &mut exprs, &mut copies);
    let body = body(exprs, root, extents, translator, &mut accesses)?;
    let mut plan = Plan {
        accesses,
        loops,
        outputs: leaf.outputs,
        reduction: if addend.is_some() { Some(ReduceOp::Sum) } else { leaf.reduction },
        accumulate: leaf.accumulate || addend.is_some(),
        guards,
        body,
        grouping: Grouping::default(),
        contraction: None,
        only: OnceLock::new(),
        variants: RwLock::default(),
    };
    plan.grouping = group(&plan, leaf);
    plan.contraction = contraction(&mut plan, leaf, &copies).map(Box::new);
    Ok(plan)
}

impl<T: Real> Plan<T> {
    /// The code for these outcomes of the conditions on indices.
    pub fn variant(&self, outcomes: &[bool]) -> Arc<Code<T>> {
        let made = || Arc::new(compile(self, &self.grouping, outcomes, self.body.root, true));
        if outcomes.is_empty() {
            return self.only.get_or_init(made).clone();
        }
        let known = |variants: &HashMap<Vec<bool>, Arc<Code<T>>>| variants.get(outcomes).cloned();
        if let Some(code) = self.variants.read().ok().and_then(|variants| known(&variants)) {
            return code;
        }
        let code = made();
        if let Ok(mut variants) = self.variants.write() {
            if variants.len() >= MAX_VARIANTS {
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
const MAX_VARIANTS: usize = 256;

/// What is known of an expression; what it reads goes behind the accesses.
fn body(
    exprs: Exprs,
    root: ExprId,
    extents: &ByBuffer<Vec<i64>>,
    translator: &Translator<'_>,
    accesses: &mut Vec<Access>,
) -> Result<Body, Diagnostic> {
    let mut asked: Vec<Constraint> = Vec::new();
    for condition in exprs.index_conditions(root) {
        if !asked.contains(condition) {
            asked.push(condition.clone());
        }
    }
    let conditions = asked.iter().map(|c| translator.condition(c)).collect::<Result<Vec<_>, _>>()?;
    let (mut numbers, mut indices) = (HashMap::new(), Vec::new());
    for id in exprs.postorder(root) {
        match &exprs[id] {
            Expr::Access(tensor, subscripts) => {
                numbers.insert(id, accesses.len());
                accesses.push(access(extents, translator, *tensor, subscripts)?);
            }
            Expr::Index(affine) => {
                numbers.insert(id, indices.len());
                indices.push(translator.linear(affine)?);
            }
            Expr::Constant(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Select(..) => {}
        }
    }
    Ok(Body { exprs, root, numbers, indices, conditions, asked })
}

/// An element of a buffer; buffers have these extents.
fn access(
    extents: &ByBuffer<Vec<i64>>,
    translator: &Translator<'_>,
    tensor: TensorId,
    subscripts: &[Affine],
) -> Result<Access, Diagnostic> {
    let place = translator.place(subscripts, &extents[tensor])?;
    Ok(Access { buffer: tensor, place })
}
