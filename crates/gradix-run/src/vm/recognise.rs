//! Whether a body is a function of two operands, one for the rows and one for the lanes of a contraction.

use super::leaf::{Node, Plan};
use super::real::Real;
use super::tile::Rule;
use gradix::program::{BinaryOp, ReduceOp, UnaryOp};

/// What a body is.
pub struct Recognised {
    pub rule: Rule,
    /// What depends on rows or on neither, and what depends on lanes.
    pub operands: [Operand; 2],
}

/// A product of nodes, divided by others.
#[derive(Default)]
pub struct Operand {
    factors: Vec<usize>,
    divisors: Vec<usize>,
    negative: bool,
}

impl Operand {
    fn of(node: usize) -> Self {
        Operand { factors: vec![node], ..Operand::default() }
    }

    /// Adds the nodes that compute it, and gives the last one.
    pub fn append<T: Real>(self, plan: &mut Plan<T>) -> usize {
        let nodes = &mut plan.graph.nodes;
        let mut add = |node: Node<T>| {
            nodes.push(node);
            nodes.len() - 1
        };
        let mut factors = self.factors.into_iter();
        let mut value = factors.next().unwrap_or_else(|| add(Node::Constant(T::ONE)));
        for factor in factors {
            value = add(Node::Binary(BinaryOp::Mul, value, factor));
        }
        for divisor in self.divisors {
            value = add(Node::Binary(BinaryOp::Div, value, divisor));
        }
        if self.negative { add(Node::Unary(UnaryOp::Neg, value)) } else { value }
    }
}

/// Which nodes depend on rows and on lanes.
pub struct Recognise {
    pub by_row: Vec<bool>,
    pub by_lane: Vec<bool>,
}

impl Recognise {
    /// How the body of a leaf is made of a part that depends on rows and a part that depends on lanes.
    pub fn body<T: Real>(&self, plan: &Plan<T>) -> Option<Recognised> {
        let nodes = &plan.graph.nodes;
        let body = plan.graph.body;
        match (plan.reduction?, &nodes[body]) {
            (ReduceOp::Sum, Node::Unary(UnaryOp::Abs, difference)) => {
                let operands = self.difference(nodes, *difference)?;
                Some(Recognised { rule: Rule::AbsoluteDifference, operands })
            }
            (ReduceOp::Sum, _) => self.product(nodes, body),
            (ReduceOp::Max, _) => Some(Recognised { rule: Rule::LargestSum, operands: self.sum(nodes, body)? }),
            (ReduceOp::Min, _) => Some(Recognised { rule: Rule::SmallestSum, operands: self.sum(nodes, body)? }),
            (ReduceOp::Prod, _) => None,
        }
    }

    fn product<T: Real>(&self, nodes: &[Node<T>], body: usize) -> Option<Recognised> {
        let mut operands = [Operand::default(), Operand::default()];
        let mut mixed = Vec::new();
        let mut stack = vec![(body, false)];
        while let Some((node, divides)) = stack.pop() {
            match &nodes[node] {
                Node::Binary(BinaryOp::Mul, a, b) => stack.extend([(*b, divides), (*a, divides)]),
                Node::Binary(BinaryOp::Div, a, b) => stack.extend([(*b, !divides), (*a, divides)]),
                Node::Binary(BinaryOp::Pow, a, b) if is_two(&nodes[*b]) => stack.extend([(*a, divides), (*a, divides)]),
                Node::Unary(UnaryOp::Neg, a) => {
                    operands[0].negative = !operands[0].negative;
                    stack.push((*a, divides));
                }
                _ if self.by_row[node] && self.by_lane[node] => mixed.push((node, divides)),
                _ => {
                    let operand = &mut operands[usize::from(self.by_lane[node])];
                    if divides { operand.divisors.push(node) } else { operand.factors.push(node) }
                }
            }
            if stack.len() > 64 {
                return None;
            }
        }
        let alone = operands.iter().all(|o| o.factors.is_empty() && o.divisors.is_empty() && !o.negative);
        match mixed.as_slice() {
            [] if !operands[1].factors.is_empty() || !operands[1].divisors.is_empty() => {
                Some(Recognised { rule: Rule::Product, operands })
            }
            [(a, false), (b, false)] if a == b && alone => {
                let operands = self.difference(nodes, *a)?;
                Some(Recognised { rule: Rule::SquaredDifference, operands })
            }
            _ => None,
        }
    }

    /// `a - b` of a row and a lane; for what is symmetric in sign also `b - a`.
    fn difference<T: Real>(&self, nodes: &[Node<T>], node: usize) -> Option<[Operand; 2]> {
        match &nodes[node] {
            Node::Binary(BinaryOp::Sub, a, b) => self.apart(*a, *b),
            Node::Binary(BinaryOp::Add, a, b) => self.apart(*a, *b).map(negated_lanes),
            _ => None,
        }
    }

    fn sum<T: Real>(&self, nodes: &[Node<T>], node: usize) -> Option<[Operand; 2]> {
        match &nodes[node] {
            Node::Binary(BinaryOp::Add, a, b) => self.apart(*a, *b),
            Node::Binary(BinaryOp::Sub, a, b) => {
                let [mut first, mut second] = self.apart(*a, *b)?;
                (if second.factors == [*b] { &mut second } else { &mut first }).negative = true;
                Some([first, second])
            }
            _ => None,
        }
    }

    fn apart(&self, a: usize, b: usize) -> Option<[Operand; 2]> {
        let (row, lane) = if self.by_lane[b] { (a, b) } else { (b, a) };
        let apart = !self.by_lane[row] && self.by_lane[lane] && !self.by_row[lane];
        apart.then(|| [Operand::of(row), Operand::of(lane)])
    }
}

fn negated_lanes([row, mut lane]: [Operand; 2]) -> [Operand; 2] {
    lane.negative = true;
    [row, lane]
}

fn is_two<T: Real>(node: &Node<T>) -> bool {
    matches!(node, Node::Constant(value) if value.wide() == 2.0)
}
