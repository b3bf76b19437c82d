//! Pointwise scalar expressions: a hash-consed graph, so that equal expressions share an id.
//!
//! ```text
//! e ::= number | index expression | tensor[affine, …] | op(e) | op(e, e) | if c then e else e
//! c ::= affine >= 0 | affine == 0 | e < e | e <= e | e == e | not c | c and c | c or c
//! ```
//!
//! Operands are always older than the node that uses them: ids are a topological order.

use super::TensorId;
use super::affine::{Affine, to_f64};
use super::constraint::Constraint;
use super::hash::{Interned, NumberSet, QuickMap};
use super::op::{BinaryOp, Comparison, UnaryOp};
use std::collections::HashMap;

/// A value in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub u32);

/// A condition in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CondId(pub u32);

/// A number that can be a key: compared by its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Number(u64);

impl Number {
    /// From a float; every NaN is the same.
    pub fn new(value: f64) -> Self {
        Number(if value.is_nan() { f64::NAN } else { value }.to_bits())
    }

    /// The float.
    pub fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// One node. Operands are ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A number.
    Constant(Number),
    /// The number of an index expression.
    Index(Affine),
    /// An element of a tensor.
    Access(TensorId, Vec<Affine>),
    /// An operation on one value.
    Unary(UnaryOp, ExprId),
    /// An operation on two values.
    Binary(BinaryOp, ExprId, ExprId),
    /// `if c then a else b`; the branch that is not taken is not evaluated.
    Select(CondId, ExprId, ExprId),
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cond {
    /// Decided by the indices alone.
    Index(Constraint),
    /// Decided by values.
    Compare(Comparison, ExprId, ExprId),
    /// The opposite.
    Not(CondId),
    /// Both, from left to right.
    And(CondId, CondId),
    /// Either, from left to right.
    Or(CondId, CondId),
}

/// The graph of all expressions of a program.
#[derive(Clone, Debug, Default)]
pub struct Exprs {
    nodes: Interned<Expr>,
    conditions: Interned<Cond>,
}

impl PartialEq for Exprs {
    fn eq(&self, other: &Self) -> bool {
        self.nodes.values() == other.nodes.values() && self.conditions.values() == other.conditions.values()
    }
}

impl std::ops::Index<ExprId> for Exprs {
    type Output = Expr;
    fn index(&self, id: ExprId) -> &Expr {
        &self.nodes.values()[id.0 as usize]
    }
}

impl std::ops::Index<CondId> for Exprs {
    type Output = Cond;
    fn index(&self, id: CondId) -> &Cond {
        &self.conditions.values()[id.0 as usize]
    }
}

impl Exprs {
    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.values().len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.nodes.values().is_empty()
    }

    /// The id of an expression, new or known.
    pub fn add(&mut self, expr: Expr) -> ExprId {
        ExprId(self.nodes.add(expr))
    }

    /// The id of a condition, new or known. `a and (b and c)` is `(a and b) and c`, which is written without parentheses.
    pub fn add_condition(&mut self, condition: Cond) -> CondId {
        let nested = match condition {
            Cond::And(a, b) => match self[b] {
                Cond::And(first, last) => Some((Cond::And(a, first), last)),
                _ => None,
            },
            Cond::Or(a, b) => match self[b] {
                Cond::Or(first, last) => Some((Cond::Or(a, first), last)),
                _ => None,
            },
            Cond::Index(_) | Cond::Compare(..) | Cond::Not(_) => None,
        };
        let Some((first, last)) = nested else { return CondId(self.conditions.add(condition)) };
        let is_and = matches!(first, Cond::And(..));
        let first = self.add_condition(first);
        self.add_condition(if is_and { Cond::And(first, last) } else { Cond::Or(first, last) })
    }

    /// A number.
    pub fn constant(&mut self, value: f64) -> ExprId {
        self.add(Expr::Constant(Number::new(value)))
    }

    /// An element of a tensor.
    pub fn access(&mut self, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        self.add(Expr::Access(tensor, subscripts))
    }

    /// The value of a node that is a number.
    pub fn as_constant(&self, id: ExprId) -> Option<f64> {
        match &self[id] {
            Expr::Constant(number) => Some(number.value()),
            Expr::Index(affine) => affine.as_constant().map(to_f64),
            _ => None,
        }
    }

    /// The operands of a node; conditions are followed to the values they compare.
    pub fn operands(&self, id: ExprId) -> Vec<ExprId> {
        let mut operands = Vec::new();
        self.visit_operands(id, &mut |operand| operands.push(operand));
        operands
    }

    /// Calls `visit` for every operand of a node.
    pub fn visit_operands(&self, id: ExprId, visit: &mut dyn FnMut(ExprId)) {
        match &self[id] {
            Expr::Constant(_) | Expr::Index(_) | Expr::Access(..) => {}
            Expr::Unary(_, a) => visit(*a),
            Expr::Binary(_, a, b) => [*a, *b].into_iter().for_each(visit),
            Expr::Select(c, a, b) => {
                self.visit_condition(*c, &mut |part| {
                    if let Cond::Compare(_, a, b) = part {
                        [*a, *b].into_iter().for_each(&mut *visit);
                    }
                });
                [*a, *b].into_iter().for_each(visit);
            }
        }
    }

    /// The values that a condition compares.
    pub fn compared(&self, id: CondId) -> Vec<ExprId> {
        let mut found = Vec::new();
        self.visit_condition(id, &mut |c| {
            if let Cond::Compare(_, a, b) = c {
                found.extend([*a, *b]);
            }
        });
        found
    }

    /// Whether a condition only compares values.
    pub fn is_by_values(&self, id: CondId) -> bool {
        let mut found = true;
        self.visit_condition(id, &mut |c| found &= !matches!(c, Cond::Index(_)));
        found
    }

    /// Visits a condition and its parts.
    pub fn visit_condition<'a>(&'a self, id: CondId, visit: &mut dyn FnMut(&'a Cond)) {
        let condition = &self[id];
        visit(condition);
        match condition {
            Cond::Index(_) | Cond::Compare(..) => {}
            Cond::Not(a) => self.visit_condition(*a, visit),
            Cond::And(a, b) | Cond::Or(a, b) => {
                self.visit_condition(*a, visit);
                self.visit_condition(*b, visit);
            }
        }
    }

    /// Every node that `root` is made of, each once, operands before their users, first operand first.
    pub fn postorder(&self, root: ExprId) -> Vec<ExprId> {
        self.postorder_within(root, &|_| true)
    }

    /// What a derivative of `root` can flow through: without what `stop` holds.
    pub fn flowing(&self, root: ExprId) -> Vec<ExprId> {
        self.postorder_within(root, &|node| !matches!(node, Expr::Unary(UnaryOp::Stop, _)))
    }

    /// The same as `postorder`, without the operands of nodes that are not entered.
    fn postorder_within(&self, root: ExprId, enters: &dyn Fn(&Expr) -> bool) -> Vec<ExprId> {
        let mut order = Vec::new();
        // Operands are older than their users.
        let mut seen = NumberSet::up_to(root.0);
        let mut stack = vec![(root, false)];
        while let Some((id, done)) = stack.pop() {
            if done {
                order.push(id);
            } else if seen.insert(id.0) {
                stack.push((id, true));
                if !enters(&self[id]) {
                    continue;
                }
                let first = stack.len();
                self.visit_operands(id, &mut |operand| stack.push((operand, false)));
                stack[first..].reverse();
            }
        }
        order
    }

    /// Every access in the graph below `root`, each once.
    pub fn accesses(&self, root: ExprId) -> impl Iterator<Item = (TensorId, &[Affine])> {
        self.postorder(root).into_iter().filter_map(|id| match &self[id] {
            Expr::Access(tensor, subscripts) => Some((*tensor, subscripts.as_slice())),
            _ => None,
        })
    }

    /// Whether the graph below `root` reads a tensor.
    pub fn reads(&self, root: ExprId, tensor: TensorId) -> bool {
        self.accesses(root).any(|(read, _)| read == tensor)
    }

    /// Every condition on indices in the graph below `root`.
    pub fn index_conditions(&self, root: ExprId) -> Vec<&Constraint> {
        let mut found = Vec::new();
        for id in self.postorder(root) {
            if let Expr::Select(c, ..) = self[id] {
                self.visit_condition(c, &mut |part| {
                    if let Cond::Index(constraint) = part {
                        found.push(constraint);
                    }
                });
            }
        }
        found
    }

    /// Calls `visit` for every index expression in the graph below `root`: values, subscripts and conditions.
    pub fn visit_affines(&self, root: ExprId, visit: &mut dyn FnMut(&Affine)) {
        self.postorder(root).into_iter().for_each(|id| self.visit_own_affines(id, visit));
    }

    /// Calls `visit` for every index expression of a node itself.
    pub fn visit_own_affines(&self, id: ExprId, visit: &mut dyn FnMut(&Affine)) {
        match &self[id] {
            Expr::Index(affine) => visit(affine),
            Expr::Access(_, subscripts) => subscripts.iter().for_each(visit),
            Expr::Select(c, ..) => self.visit_condition(*c, &mut |c| {
                if let Cond::Index(constraint) = c {
                    visit(&constraint.affine);
                }
            }),
            Expr::Constant(_) | Expr::Unary(..) | Expr::Binary(..) => {}
        }
    }

    /// Copies what `root` is made of into another graph, with other ids for tensors; `done` holds what is copied.
    pub fn copy_into(
        &self,
        root: ExprId,
        tensors: &HashMap<TensorId, TensorId>,
        to: &mut Exprs,
        done: &mut HashMap<ExprId, ExprId>,
    ) -> ExprId {
        for id in self.postorder(root) {
            if done.contains_key(&id) {
                continue;
            }
            let node = match &self[id] {
                leaf @ (Expr::Constant(_) | Expr::Index(_)) => leaf.clone(),
                Expr::Access(tensor, subscripts) => {
                    Expr::Access(tensors.get(tensor).copied().unwrap_or(*tensor), subscripts.clone())
                }
                Expr::Unary(op, a) => Expr::Unary(*op, done[a]),
                Expr::Binary(op, a, b) => Expr::Binary(*op, done[a], done[b]),
                Expr::Select(c, a, b) => Expr::Select(self.copy_condition(*c, to, done), done[a], done[b]),
            };
            done.insert(id, to.add(node));
        }
        done[&root]
    }

    fn copy_condition(&self, id: CondId, to: &mut Exprs, done: &HashMap<ExprId, ExprId>) -> CondId {
        let copy = match &self[id] {
            Cond::Index(constraint) => Cond::Index(constraint.clone()),
            Cond::Compare(op, a, b) => Cond::Compare(*op, done[a], done[b]),
            Cond::Not(a) => Cond::Not(self.copy_condition(*a, to, done)),
            Cond::And(a, b) => Cond::And(self.copy_condition(*a, to, done), self.copy_condition(*b, to, done)),
            Cond::Or(a, b) => Cond::Or(self.copy_condition(*a, to, done), self.copy_condition(*b, to, done)),
        };
        to.add_condition(copy)
    }

    /// Which of the indices `0..count` occur below `root`.
    pub fn used_indices(&self, root: ExprId, count: usize) -> Vec<bool> {
        let mut used = vec![false; count];
        self.visit_affines(root, &mut |affine| affine.visit_indices(&mut |i| used[i] = true));
        used
    }
}

/// Rewrites a graph from the leaves up, each node once; what it has done it remembers.
#[derive(Default)]
pub struct Rewriter {
    done: QuickMap<ExprId, ExprId>,
    conditions: QuickMap<CondId, CondId>,
}

impl Rewriter {
    /// A rewriter for which some nodes are already done.
    pub fn with(done: impl IntoIterator<Item = (ExprId, ExprId)>) -> Self {
        Rewriter { done: done.into_iter().collect(), conditions: QuickMap::default() }
    }

    /// Rewrites everything below `root` by the rules.
    pub fn rewrite(&mut self, exprs: &mut Exprs, root: ExprId, rules: &mut dyn Rules) -> ExprId {
        for id in exprs.postorder(root) {
            if self.done.contains_key(&id) {
                continue;
            }
            let new = match exprs[id].clone() {
                Expr::Constant(_) => id,
                Expr::Index(affine) => {
                    let affine = rules.affine(&affine);
                    rules.index(exprs, affine)
                }
                Expr::Access(tensor, subscripts) => {
                    let subscripts = subscripts.iter().map(|s| rules.affine(s)).collect();
                    rules.access(exprs, tensor, subscripts)
                }
                Expr::Unary(op, a) => rules.unary(exprs, op, self.done[&a]),
                Expr::Binary(op, a, b) => rules.binary(exprs, op, self.done[&a], self.done[&b]),
                Expr::Select(c, a, b) => {
                    let c = self.condition(exprs, c, rules);
                    rules.select(exprs, c, self.done[&a], self.done[&b])
                }
            };
            self.done.insert(id, new);
        }
        self.done[&root]
    }

    /// From now on, a node becomes this one.
    pub fn put(&mut self, id: ExprId, new: ExprId) {
        self.done.insert(id, new);
    }

    /// Copies everything below `root`, with what is done in place of the nodes that it is for.
    pub fn copy(&mut self, exprs: &mut Exprs, root: ExprId) -> ExprId {
        self.rewrite(exprs, root, &mut Copy)
    }

    fn condition(&mut self, exprs: &mut Exprs, id: CondId, rules: &mut dyn Rules) -> CondId {
        if let Some(&new) = self.conditions.get(&id) {
            return new;
        }
        let new = match exprs[id].clone() {
            Cond::Index(constraint) => Cond::Index(constraint.rebuilt(rules.affine(&constraint.affine))),
            Cond::Compare(op, a, b) => return rules.compare(exprs, op, self.done[&a], self.done[&b]),
            Cond::Not(a) => Cond::Not(self.condition(exprs, a, rules)),
            Cond::And(a, b) => Cond::And(self.condition(exprs, a, rules), self.condition(exprs, b, rules)),
            Cond::Or(a, b) => Cond::Or(self.condition(exprs, a, rules), self.condition(exprs, b, rules)),
        };
        let new = exprs.add_condition(new);
        self.conditions.insert(id, new);
        new
    }
}

struct Copy;

impl Rules for Copy {}

/// What a [`Rewriter`] does with each kind of node; the defaults copy.
pub trait Rules {
    /// An index expression.
    fn affine(&mut self, affine: &Affine) -> Affine {
        affine.clone()
    }
    /// The number of an index expression that is rewritten.
    fn index(&mut self, exprs: &mut Exprs, affine: Affine) -> ExprId {
        exprs.add(Expr::Index(affine))
    }
    /// An access whose subscripts are rewritten.
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        exprs.access(tensor, subscripts)
    }
    /// An operation on one value.
    fn unary(&mut self, exprs: &mut Exprs, op: UnaryOp, a: ExprId) -> ExprId {
        exprs.add(Expr::Unary(op, a))
    }
    /// An operation on two values.
    fn binary(&mut self, exprs: &mut Exprs, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        exprs.add(Expr::Binary(op, a, b))
    }
    /// A comparison.
    fn compare(&mut self, exprs: &mut Exprs, op: Comparison, a: ExprId, b: ExprId) -> CondId {
        exprs.add_condition(Cond::Compare(op, a, b))
    }
    /// A choice.
    fn select(&mut self, exprs: &mut Exprs, c: CondId, a: ExprId, b: ExprId) -> ExprId {
        exprs.add(Expr::Select(c, a, b))
    }
}

/// Reads another tensor in place of one.
pub struct Renamed {
    /// The one that was read.
    pub from: TensorId,
    /// The one that is.
    pub to: TensorId,
}

impl Rules for Renamed {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        exprs.access(if tensor == self.from { self.to } else { tensor }, subscripts)
    }
}

/// Replaces indices: position `p` becomes `map[p]`.
pub struct WithIndices<'a>(pub &'a [Affine]);

impl Rules for WithIndices<'_> {
    fn affine(&mut self, affine: &Affine) -> Affine {
        affine.with_indices(self.0)
    }
}
