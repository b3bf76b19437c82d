//! One form for definitions that compute the same, whatever their indices are called and in whatever order they and the
//! terms and factors stand.
//!
//! Indices are numbered in the order in which a walk through the body meets them; the walk takes operands of sums and
//! products in an order that does not depend on indices. An output index that is first met as `i + c` counts from `c`.
//! Two equal keys are equal definitions; two equal definitions mostly have equal keys.

use super::number::Numbering;
use crate::program::build;
use crate::program::expr::Exprs;
use crate::program::{Affine, Atom, BinaryOp, Cond, CondId, Constraint, Definition, Expr, ExprId, ReduceOp, TensorId};
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

/// What a definition computes. Its body is a node of the [`Canon`]'s own graph.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    reduction: Option<ReduceOp>,
    rank: usize,
    ranges: Vec<(Vec<Affine>, Vec<Affine>)>,
    conditions: Vec<Constraint>,
    body: ExprId,
}

/// A definition in canonical form.
#[derive(Clone, Debug)]
pub struct Form {
    /// What it computes.
    pub key: Key,
    /// Each of its outputs in canonical ones.
    pub outputs: Vec<Affine>,
    /// Each canonical output in its own.
    pub canonical: Vec<Affine>,
}

/// What is known about the definitions of a program.
#[derive(Default)]
pub struct Canon {
    graph: Exprs,
    hashes: Vec<u64>,
    known: HashMap<Key, TensorId>,
    /// For a tensor: one that computes the same, and the canonical outputs in the tensor's own.
    classes: HashMap<TensorId, (TensorId, Vec<Affine>)>,
}

impl Canon {
    /// The form of a definition, which from now on is known: equal ones that follow count as the same tensor.
    pub fn learn(&mut self, exprs: &Exprs, definition: &Definition) -> Form {
        let form = self.form(exprs, definition);
        let class = *self.known.entry(form.key.clone()).or_insert(definition.tensor);
        self.classes.insert(definition.tensor, (class, form.canonical.clone()));
        form
    }

    /// The form of a definition.
    pub fn form(&mut self, exprs: &Exprs, definition: &Definition) -> Form {
        let shapes = self.shapes(exprs, definition);
        let mut numbering = Numbering::new(definition);
        self.walk(exprs, definition.body, &shapes, &mut numbering);
        numbering.finish(definition);
        let map = numbering.map;
        let body = self.rebuild(exprs, definition.body, &map);
        let bounds = |affines: &[Affine]| {
            let mut bounds: Vec<Affine> = affines.iter().map(|a| a.with_indices(&map)).collect();
            bounds.sort();
            bounds
        };
        let mut ranges: Vec<(usize, _)> = definition.indices[definition.rank..]
            .iter()
            .enumerate()
            .map(|(i, index)| {
                (numbering.places[definition.rank + i], (bounds(&index.range.low), bounds(&index.range.high)))
            })
            .collect();
        ranges.sort_by_key(|(place, _)| *place);
        let mut conditions: Vec<Constraint> = definition.conditions.iter().map(|c| c.with_indices(&map)).collect();
        conditions.sort();
        let mut canonical = vec![Affine::default(); definition.rank];
        for (own, place) in numbering.places[..definition.rank].iter().enumerate() {
            canonical[*place] = Affine::index(own) + numbering.offsets[own].clone();
        }
        let key = Key {
            reduction: definition.reduction,
            rank: definition.rank,
            ranges: ranges.into_iter().map(|(_, range)| range).collect(),
            conditions,
            body,
        };
        Form { key, outputs: map[..definition.rank].to_vec(), canonical }
    }

    /// An access in terms of the class of its tensor.
    fn access(&self, tensor: TensorId, subscripts: &[Affine]) -> (TensorId, Vec<Affine>) {
        match self.classes.get(&tensor) {
            Some((class, canonical)) => (*class, canonical.iter().map(|c| c.with_indices(subscripts)).collect()),
            None => (tensor, subscripts.to_vec()),
        }
    }

    /// A number for every node that does not depend on which index is which, nor on the order of terms and factors:
    /// nodes with equal keys have equal ones.
    pub fn shapes(&self, exprs: &Exprs, definition: &Definition) -> HashMap<ExprId, u64> {
        let mut shapes: HashMap<ExprId, u64> = HashMap::new();
        // Of a sum or a product: what its parts add up to.
        let mut loose: HashMap<ExprId, u64> = HashMap::new();
        for id in exprs.postorder(definition.body) {
            let part = |a: ExprId, kind: Chain| match chain(exprs, a) == Some(kind) {
                true => loose[&a],
                false => digest(&(7u8, shapes[&a])),
            };
            let number = match &exprs[id] {
                Expr::Constant(number) => digest(&(0u8, number)),
                Expr::Index(affine) => digest(&(1u8, shape_of(affine, definition.rank))),
                Expr::Access(tensor, subscripts) => {
                    let (class, subscripts) = self.access(*tensor, subscripts);
                    let subscripts: Vec<u64> = subscripts.iter().map(|s| shape_of(s, definition.rank)).collect();
                    digest(&(2u8, class, subscripts))
                }
                Expr::Unary(op, a) => digest(&(3u8, op, shapes[a])),
                Expr::Binary(op, a, b) => match chain(exprs, id) {
                    Some(kind) => {
                        let turned = *op == BinaryOp::Sub || *op == BinaryOp::Div;
                        let second = if turned { part(*b, kind).wrapping_neg() } else { part(*b, kind) };
                        let sum = part(*a, kind).wrapping_add(second);
                        loose.insert(id, sum);
                        digest(&(4u8, kind as u8, sum))
                    }
                    None => digest(&(5u8, op, shapes[a], shapes[b])),
                },
                Expr::Select(_, a, b) => digest(&(6u8, shapes[a], shapes[b])),
            };
            shapes.insert(id, number);
        }
        shapes
    }

    /// Meets the indices of an expression.
    fn walk(&self, exprs: &Exprs, root: ExprId, shapes: &HashMap<ExprId, u64>, numbering: &mut Numbering) {
        let mut seen = HashSet::new();
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            if !seen.insert(id) {
                continue;
            }
            match &exprs[id] {
                Expr::Constant(_) => {}
                Expr::Index(affine) => numbering.meet(affine),
                Expr::Access(tensor, subscripts) => {
                    self.access(*tensor, subscripts).1.iter().for_each(|s| numbering.meet(s));
                }
                Expr::Select(c, ..) => {
                    exprs.visit_condition(*c, &mut |c| {
                        if let Cond::Index(constraint) = c {
                            numbering.meet(&constraint.affine);
                        }
                    });
                    stack.extend(exprs.operands(id).into_iter().rev());
                }
                Expr::Unary(..) | Expr::Binary(..) => {
                    let mut parts: Vec<ExprId> = match chain(exprs, id) {
                        Some(kind) => {
                            let mut parts: Vec<(bool, ExprId)> = links(exprs, id, kind);
                            parts.sort_by_key(|(second, part)| (*second, shapes[part]));
                            parts.into_iter().map(|(_, part)| part).collect()
                        }
                        None => exprs.operands(id),
                    };
                    parts.reverse();
                    stack.extend(parts);
                }
            }
        }
    }

    /// The expression in the graph of canonical ones.
    fn rebuild(&mut self, exprs: &Exprs, root: ExprId, map: &[Affine]) -> ExprId {
        let order = exprs.postorder(root);
        // Inner links of a chain are taken apart by its outermost one.
        let mut needed: HashSet<ExprId> = HashSet::from([root]);
        for &id in order.iter().rev() {
            if needed.contains(&id) {
                match chain(exprs, id) {
                    Some(kind) => needed.extend(links(exprs, id, kind).into_iter().map(|(_, part)| part)),
                    None => needed.extend(exprs.operands(id)),
                }
            }
        }
        let mut done: HashMap<ExprId, ExprId> = HashMap::new();
        for id in order.into_iter().filter(|id| needed.contains(id)) {
            let new = match &exprs[id] {
                Expr::Constant(number) => self.add(Expr::Constant(*number)),
                Expr::Index(affine) => self.add(Expr::Index(affine.with_indices(map))),
                Expr::Access(tensor, subscripts) => {
                    let (class, subscripts) = self.access(*tensor, subscripts);
                    self.add(Expr::Access(class, subscripts.iter().map(|s| s.with_indices(map)).collect()))
                }
                Expr::Unary(op, a) => self.add(Expr::Unary(*op, done[a])),
                Expr::Binary(op, a, b) => match chain(exprs, id) {
                    Some(kind) => self.chained(links(exprs, id, kind), kind, &done),
                    None => self.add(Expr::Binary(*op, done[a], done[b])),
                },
                Expr::Select(c, a, b) => {
                    let c = self.condition(exprs, *c, map, &done);
                    self.add(Expr::Select(c, done[a], done[b]))
                }
            };
            done.insert(id, new);
        }
        done[&root]
    }

    fn chained(&mut self, links: Vec<(bool, ExprId)>, kind: Chain, done: &HashMap<ExprId, ExprId>) -> ExprId {
        let (first, second) = match kind {
            Chain::Sum => (BinaryOp::Add, BinaryOp::Sub),
            Chain::Product => (BinaryOp::Mul, BinaryOp::Div),
        };
        let mut parts: Vec<(bool, u64, ExprId)> =
            links.into_iter().map(|(other, id)| (other, self.hashes[done[&id].0 as usize], done[&id])).collect();
        parts.sort();
        let mut parts = parts.into_iter();
        let (_, _, start) = parts.next().expect("a chain has parts");
        parts.fold(start, |sum, (other, _, part)| self.add(Expr::Binary(if other { second } else { first }, sum, part)))
    }

    fn condition(&mut self, exprs: &Exprs, id: CondId, map: &[Affine], done: &HashMap<ExprId, ExprId>) -> CondId {
        let mut part = |id: CondId| self.condition(exprs, id, map, done);
        let new = match &exprs[id] {
            Cond::Index(constraint) => Cond::Index(constraint.with_indices(map)),
            Cond::Compare(op, a, b) => Cond::Compare(*op, done[a], done[b]),
            Cond::Not(a) => Cond::Not(part(*a)),
            Cond::And(a, b) => Cond::And(part(*a), part(*b)),
            Cond::Or(a, b) => Cond::Or(part(*a), part(*b)),
        };
        self.graph.add_condition(new)
    }

    fn add(&mut self, expr: Expr) -> ExprId {
        let hash = match &expr {
            Expr::Unary(op, a) => digest(&(op, self.hashes[a.0 as usize])),
            Expr::Binary(op, a, b) => digest(&(op, self.hashes[a.0 as usize], self.hashes[b.0 as usize])),
            Expr::Select(_, a, b) => digest(&(self.hashes[a.0 as usize], self.hashes[b.0 as usize])),
            Expr::Constant(_) | Expr::Index(_) | Expr::Access(..) => digest(&expr),
        };
        let id = self.graph.add(expr);
        if id.0 as usize == self.hashes.len() {
            self.hashes.push(hash);
        }
        id
    }
}

/// Operations whose parts may stand in any order.
#[derive(Clone, Copy, PartialEq)]
pub enum Chain {
    /// Of terms.
    Sum,
    /// Of factors.
    Product,
}

/// Whether a node is a sum or a product.
pub fn chain(exprs: &Exprs, id: ExprId) -> Option<Chain> {
    match &exprs[id] {
        Expr::Binary(BinaryOp::Add | BinaryOp::Sub, ..) => Some(Chain::Sum),
        Expr::Binary(BinaryOp::Mul | BinaryOp::Div, ..) => Some(Chain::Product),
        Expr::Constant(_) | Expr::Index(_) | Expr::Access(..) | Expr::Select(..) => None,
        Expr::Unary(..) | Expr::Binary(..) => None,
    }
}

/// The terms of a sum, or the factors of a product; `true` for those subtracted or divided by.
pub fn links(exprs: &Exprs, root: ExprId, kind: Chain) -> Vec<(bool, ExprId)> {
    let mut found = Vec::new();
    let mut stack = vec![(false, root)];
    while let Some((second, id)) = stack.pop() {
        match &exprs[id] {
            Expr::Binary(op, a, b) if chain(exprs, id) == Some(kind) => {
                let turned = matches!(op, BinaryOp::Sub | BinaryOp::Div);
                stack.push((second != turned, *b));
                stack.push((second, *a));
            }
            _ => found.push((second, id)),
        }
    }
    found
}

/// The sum of such terms.
pub fn sum_of(exprs: &mut Exprs, terms: &[(bool, ExprId)]) -> ExprId {
    let signed: Vec<ExprId> =
        terms.iter().map(|&(negative, t)| if negative { build::negate(exprs, t) } else { t }).collect();
    build::total(exprs, &signed)
}

fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A number for an index expression whatever its indices, its sizes and its constant are.
fn shape_of(affine: &Affine, rank: usize) -> u64 {
    let mut parts: Vec<u64> = Vec::new();
    for (atom, coefficient) in affine.terms() {
        match atom {
            Atom::Index(i) => parts.push(digest(&((*i as usize) < rank, coefficient))),
            Atom::Floor(inner, c) => parts.push(digest(&(shape_of(inner, rank), c, coefficient))),
            Atom::Param(_) => {}
        }
    }
    parts.sort();
    digest(&parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the two results of a program have equal keys.
    fn equal(text: &str) -> bool {
        let program = crate::resolve(&crate::syntax::parse(text).unwrap(), &[]).unwrap().program;
        let mut canon = Canon::default();
        let forms = program.definitions.iter().map(|d| (d.tensor, canon.learn(&program.exprs, d)));
        let results: Vec<_> = forms.filter(|(tensor, _)| program.outputs.contains(tensor)).collect();
        results[0].1.key == results[1].1.key
    }

    #[test]
    fn names_and_orders_do_not_count() {
        assert!(equal("input a[N,M], b[L,M]\nf[i,j] = sum[k] a[i,k]*b[j,k]\ng[q,p] = sum[l] b[q,l]*a[p,l]"));
        assert!(equal("input a[N], b[N]\nf[i] = a[i] - b[i] + 1\ng[j] = 1 + a[j] - b[j]"));
    }

    #[test]
    fn definitions_of_equal_definitions_are_equal() {
        assert!(equal("input a[N,M]\nf = sum[i] exp(sum[k] a[i,k])\ng = sum[j] exp(sum[l] a[j,l])"));
    }

    #[test]
    fn a_shift_of_an_output_does_not_count() {
        assert!(equal("input a[N+1]\nf[i in 0..N] = a[i]^2\ng[i in 0..N] = a[i+1]^2"));
    }

    #[test]
    fn what_differs_is_told_apart() {
        assert!(!equal("input a[N], b[N]\nf[i] = a[i] - b[i]\ng[i] = b[i] - a[i]"));
        assert!(!equal("input a[N,N]\nf[i] = sum[k] a[i,k]\ng[i] = sum[k] a[k,i]"));
        assert!(!equal("input a[N,N]\nf[i in 0..N] = sum[k in 0..=i] a[i,k]\ng[i] = sum[k] a[i,k]"));
        assert!(!equal(
            "input a[N]\nf[i in 0..N] = if i >= 1 then a[i] else 0\ng[i in 0..N] = if i >= 2 then a[i] else 0"
        ));
    }
}
