//! Which rule of register tiles the body of a contraction is, given the operands that the nest packs.

use super::vector::Rule;
use gradix::program::{BinaryOp, Expr, ExprId, Exprs, ReduceOp, UnaryOp};

/// The graph of a body, and which of its nodes are operands.
pub struct Recognise<'a> {
    pub exprs: &'a mut Exprs,
    /// What depends on rows or on neither.
    pub by_row: Vec<ExprId>,
    /// What depends on lanes.
    pub by_lane: Vec<ExprId>,
}

/// More factors than this are no contraction that anyone writes.
const MAX_FACTORS: usize = 64;

impl Recognise<'_> {
    /// The rule, and the nodes of what depends on rows and of what depends on lanes, if the body is one.
    pub fn body(&mut self, op: ReduceOp, body: ExprId) -> Option<(Rule, [ExprId; 2])> {
        match (op, &self.exprs[body]) {
            (ReduceOp::Sum, Expr::Unary(UnaryOp::Abs, a)) => Some((Rule::AbsoluteDifference, self.difference(*a)?)),
            (ReduceOp::Max, _) => Some((Rule::LargestSum, self.sum(body)?)),
            (ReduceOp::Min, _) => Some((Rule::SmallestSum, self.sum(body)?)),
            (ReduceOp::Sum, _) => {
                let square = self.square(body).filter(|a| self.side(*a).is_none());
                match square.and_then(|a| self.difference(a)) {
                    Some(operands) => Some((Rule::SquaredDifference, operands)),
                    None => Some((Rule::Product, self.product(body)?)),
                }
            }
            (ReduceOp::Prod | ReduceOp::LogSumExp, _) => None,
        }
    }

    /// 0 for what depends on rows or on neither, 1 for what depends on lanes, `None` for what is no operand.
    fn side(&self, node: ExprId) -> Option<usize> {
        let constant = matches!(self.exprs[node], Expr::Constant(_));
        if constant || self.by_row.contains(&node) { Some(0) } else { self.by_lane.contains(&node).then_some(1) }
    }

    fn square(&self, node: ExprId) -> Option<ExprId> {
        match self.exprs[node] {
            Expr::Binary(BinaryOp::Mul, a, b) if a == b => Some(a),
            Expr::Binary(BinaryOp::Pow, a, b) => (self.exprs.as_constant(b) == Some(2.0)).then_some(a),
            _ => None,
        }
    }

    /// The two operands of a sum or difference, each with whether it is subtracted: the row's first.
    fn pair(&self, node: ExprId) -> Option<[(ExprId, bool); 2]> {
        let (a, b, minus) = match self.exprs[node] {
            Expr::Binary(BinaryOp::Add, a, b) => (a, b, false),
            Expr::Binary(BinaryOp::Sub, a, b) => (a, b, true),
            _ => return None,
        };
        match (self.side(a)?, self.side(b)?) {
            (0, 1) => Some([(a, false), (b, minus)]),
            (1, 0) => Some([(b, minus), (a, false)]),
            _ => None,
        }
    }

    /// Operands whose difference is the node or its negation.
    fn difference(&mut self, node: ExprId) -> Option<[ExprId; 2]> {
        let [(row, first), (lane, second)] = self.pair(node)?;
        Some([row, self.signed(lane, first == second)])
    }

    /// Operands whose sum is the node.
    fn sum(&mut self, node: ExprId) -> Option<[ExprId; 2]> {
        let [row, lane] = self.pair(node)?;
        Some([self.signed(row.0, row.1), self.signed(lane.0, lane.1)])
    }

    /// Operands whose product is the node.
    fn product(&mut self, node: ExprId) -> Option<[ExprId; 2]> {
        let mut values: [Option<ExprId>; 2] = [None; 2];
        let (mut negative, mut divisors) = (false, Vec::new());
        let (mut stack, mut count) = (vec![(node, false)], 0);
        while let Some((node, divides)) = stack.pop() {
            count += 1;
            match (self.side(node), &self.exprs[node]) {
                _ if count > MAX_FACTORS => return None,
                (Some(side), _) if divides => divisors.push((side, node)),
                (Some(side), _) => {
                    values[side] = Some(values[side].map_or(node, |value| self.binary(BinaryOp::Mul, value, node)));
                }
                (None, Expr::Binary(BinaryOp::Mul, a, b)) => stack.extend([(*b, divides), (*a, divides)]),
                (None, Expr::Binary(BinaryOp::Div, a, b)) => stack.extend([(*b, !divides), (*a, divides)]),
                (None, Expr::Unary(UnaryOp::Neg, a)) => {
                    negative = !negative;
                    stack.push((*a, divides));
                }
                (None, _) => {
                    let factor = self.square(node)?;
                    stack.extend([(factor, divides); 2]);
                }
            }
        }
        let mut values = values.map(|value| value.unwrap_or_else(|| self.exprs.constant(1.0)));
        for (side, divisor) in divisors {
            values[side] = self.binary(BinaryOp::Div, values[side], divisor);
        }
        Some([self.signed(values[0], negative), values[1]])
    }

    fn signed(&mut self, node: ExprId, negative: bool) -> ExprId {
        if negative { self.exprs.add(Expr::Unary(UnaryOp::Neg, node)) } else { node }
    }

    fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        self.exprs.add(Expr::Binary(op, a, b))
    }
}
