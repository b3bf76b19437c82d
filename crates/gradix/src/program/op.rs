//! The operations of programs: the scalar ones, which [`crate::scalar`] has in tables, comparisons and reductions.

pub use crate::scalar::{BinaryOp, UnaryOp};
use crate::syntax::ast;

/// Comparisons of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Comparison {
    /// `a < b`
    Lt,
    /// `a <= b`
    Le,
    /// `a == b`
    Eq,
}

impl Comparison {
    /// Whether it holds.
    pub fn apply(self, a: f64, b: f64) -> bool {
        match self {
            Comparison::Lt => a < b,
            Comparison::Le => a <= b,
            Comparison::Eq => a == b,
        }
    }
}

/// What combines the values of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReduceOp {
    /// Their sum.
    Sum,
    /// Their product.
    Prod,
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// `log(sum exp)` without overflow: written out as maximum and sum before loops are made.
    LogSumExp,
}

impl ast::ReduceOp {
    /// What the values are combined by; a mean is a sum that is then divided.
    pub fn folded(self) -> ReduceOp {
        match self {
            ast::ReduceOp::Sum | ast::ReduceOp::Mean => ReduceOp::Sum,
            ast::ReduceOp::Prod => ReduceOp::Prod,
            ast::ReduceOp::Max => ReduceOp::Max,
            ast::ReduceOp::Min => ReduceOp::Min,
            ast::ReduceOp::LogSumExp => ReduceOp::LogSumExp,
        }
    }
}

impl ReduceOp {
    /// The value of an empty reduction.
    pub fn neutral(self) -> f64 {
        match self {
            ReduceOp::Sum => 0.0,
            ReduceOp::Prod => 1.0,
            ReduceOp::Max | ReduceOp::LogSumExp => f64::NEG_INFINITY,
            ReduceOp::Min => f64::INFINITY,
        }
    }

    /// The operation that combines two values; `logsumexp` takes all values at once.
    pub fn combine(self) -> Option<BinaryOp> {
        match self {
            ReduceOp::Sum => Some(BinaryOp::Add),
            ReduceOp::Prod => Some(BinaryOp::Mul),
            ReduceOp::Max => Some(BinaryOp::Max),
            ReduceOp::Min => Some(BinaryOp::Min),
            ReduceOp::LogSumExp => None,
        }
    }

    /// How it is written.
    pub fn written(self) -> ast::ReduceOp {
        match self {
            ReduceOp::Sum => ast::ReduceOp::Sum,
            ReduceOp::Prod => ast::ReduceOp::Prod,
            ReduceOp::Max => ast::ReduceOp::Max,
            ReduceOp::Min => ast::ReduceOp::Min,
            ReduceOp::LogSumExp => ast::ReduceOp::LogSumExp,
        }
    }

    /// The word for it.
    pub fn name(self) -> &'static str {
        self.written().word()
    }
}
