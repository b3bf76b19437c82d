//! A leaf of a nest with numbers for the sizes, and how its points are taken in groups.
//!
//! What is added to its own target, `y[j] = y[j] + e[i, j]`, is taken as a reduction that goes on: `y[j] += sum[i] e[i, j]`.

use super::contract::{Contraction, contraction};
use super::grouping::{Grouping, group};
use super::linear::{Bounds, Condition, Linear, Translator};
use super::real::Real;
use gradix::Int;
use gradix::diagnostic::Diagnostic;
use gradix::nest::{ByBuffer, ByLoop, Leaf, LoopId, Nest};
use gradix::program::affine::gcd;
use gradix::program::{Affine, Constraint, Expr, ExprId, Exprs, ReduceOp, TensorId};
use std::collections::HashMap;

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
    /// The target is written past the caches.
    pub streamed: bool,
    pub grouping: Grouping,
    /// Where it runs in register tiles: else instruction by instruction.
    pub contraction: Option<Box<Contraction<T>>>,
    /// Among all leaves.
    pub number: usize,
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
        if position == self.at().0.outputs {
            return self.groups();
        }
        if self.is_grouped(position) {
            return self.outputs(position + 1);
        }
        let (plan, point) = self.at();
        let variable = plan.loops[position].variable;
        let (low, high) = plan.loops[position].range.at(point);
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
pub struct Access {
    pub buffer: TensorId,
    pub place: Linear,
    /// Whether the leaf may write it, at whichever point.
    pub is_own: bool,
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

/// The translation of a leaf, which has a number, of a nest whose buffers have these extents.
pub fn plan<T: Real>(
    nest: &Nest,
    extents: &ByBuffer<Vec<i64>>,
    translator: &mut Translator<'_>,
    (leaf, number): (&Leaf, usize),
) -> Result<Plan<T>, Diagnostic> {
    let mut loops = Vec::with_capacity(leaf.loops.len());
    for l in &leaf.loops {
        loops.push(Loop { variable: l.variable, range: translator.range(l.variable, &l.range)? });
    }
    let guards = leaf.guards.iter().map(|g| translator.condition(g)).collect::<Result<Vec<_>, _>>()?;
    let adds = |(addend, taken): (ExprId, bool)| (!taken && !leaf.loops.is_empty()).then_some(addend);
    let addend = leaf.added(&nest.exprs).and_then(adds);
    let mut accesses = vec![access(extents, translator, leaf, (leaf.target, &leaf.subscripts))?];
    let (mut exprs, mut copies) = Default::default();
    let root = nest.exprs.copy_into(addend.unwrap_or(leaf.body), &HashMap::new(), &mut exprs, &mut copies);
    let body = body((exprs, root), extents, translator, leaf, &mut accesses)?;
    let mut plan = Plan {
        accesses,
        loops,
        outputs: leaf.outputs,
        reduction: if addend.is_some() { Some(ReduceOp::Sum) } else { leaf.reduction },
        accumulate: leaf.accumulate || addend.is_some(),
        guards,
        body,
        streamed: nest[leaf.target].streamed,
        grouping: Grouping::default(),
        contraction: None,
        number,
    };
    plan.grouping = group(&plan, leaf);
    plan.contraction = contraction(&mut plan, leaf, &copies).map(Box::new);
    Ok(plan)
}

impl<T: Real> Plan<T> {
    /// Whether the body reads what the leaf writes, at the same element or at another.
    pub fn reads_target(&self) -> bool {
        self.accesses[1..].iter().any(|access| access.is_own)
    }

    /// Whether it is a single number, whose operands are used where they lie.
    pub fn is_single(&self) -> bool {
        self.loops.is_empty() && self.guards.is_empty() && self.body.conditions.is_empty()
    }
}

/// What is known of an expression; what it reads goes behind the accesses.
fn body(
    (exprs, root): (Exprs, ExprId),
    extents: &ByBuffer<Vec<i64>>,
    translator: &Translator<'_>,
    leaf: &Leaf,
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
                accesses.push(access(extents, translator, leaf, (*tensor, subscripts))?);
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

/// An element that a leaf touches; buffers have these extents.
fn access(
    extents: &ByBuffer<Vec<i64>>,
    translator: &Translator<'_>,
    leaf: &Leaf,
    (buffer, subscripts): (TensorId, &[Affine]),
) -> Result<Access, Diagnostic> {
    let place = translator.place(subscripts, &extents[buffer])?;
    Ok(Access { buffer, place, is_own: buffer == leaf.target && !is_apart(leaf, subscripts) })
}

/// Whether a leaf writes no element at these subscripts of its target, whatever the points: in some dimension nothing depends on its
/// loops, and the subscripts always differ, as those of `u[t % 2, i]` and `u[(t + 1) % 2, i + 1]`.
fn is_apart(leaf: &Leaf, subscripts: &[Affine]) -> bool {
    subscripts.iter().zip(&leaf.subscripts).any(|(read, written)| {
        let moves = |variable: LoopId| read.uses_index(variable) || written.uses_index(variable);
        let difference = read.clone() - written.clone();
        let common = difference.terms().iter().fold(Int::ZERO, |common, (_, factor)| gcd(&common, factor));
        let differs =
            |offset: &Int| if common == Int::ZERO { *offset != Int::ZERO } else { offset % &common != Int::ZERO };
        differs(difference.offset()) && !leaf.loops.iter().any(|l| moves(l.variable))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradix::nest::{Kind, Loop};
    use gradix::program::Range;

    #[test]
    fn what_a_step_reads_of_other_steps_is_apart_from_what_it_writes() {
        // for i: u[t % 2, i] = …
        let (t, i) = (Affine::index(LoopId(0)), Affine::index(LoopId(1)));
        let ring = |lag: i64| t.shift(lag).remainder(&Int::from(2));
        let around = Loop { variable: LoopId(1), range: Range::extent(Affine::constant(9)), kind: Kind::Serial };
        let exprs = &mut Exprs::default();
        let leaf = Leaf::pointwise(TensorId(0), vec![ring(0), i.clone()], vec![around], exprs.constant(0.0));
        let apart = |first: Affine, second: Affine| is_apart(&leaf, &[first, second]);
        assert!(apart(ring(1), i.clone()) && apart(ring(-1), i.shift(1)));
        assert!(!apart(ring(0), i.clone()) && !apart(ring(2), i.shift(1)));
        // The element that another lane writes, and another step, which may be of the same parity.
        assert!(!apart(ring(0), i.shift(-1)) && !apart(t.clone(), i.clone()));
    }
}
