//! What was written: the syntax tree, with the place of everything in the source.
//!
//! Index expressions and values share one `Expr`; `resolve` tells them apart.
//! A tree that was made by the compiler rather than by the parser has empty spans.

use crate::diagnostic::Span;
use gradix_int::Int;

/// A whole source text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ast {
    /// In the order of the text.
    pub statements: Vec<Statement>,
    /// Comments after the last statement; an empty one is a blank line.
    pub trailing_comments: Vec<String>,
}

/// One statement with the comments that belong to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// What it says.
    pub kind: StatementKind,
    /// Where.
    pub span: Span,
    /// Whole-line comments before it, without the `#` and the space behind it; an empty one is a blank line.
    pub comments: Vec<String>,
    /// A comment at the end of its line.
    pub line_comment: Option<String>,
    /// Whether a blank line stands before it (or its comments).
    pub blank_before: bool,
}

/// The four kinds of statement.
#[derive(Clone, Debug, PartialEq)]
pub enum StatementKind {
    /// `param N, M >= 1, K = 5`
    Param(Vec<ParamDeclaration>),
    /// `input x[N, D], t`
    Input(Vec<InputDeclaration>),
    /// `output y, k`
    Output(Vec<Name>),
    /// `y[i] = …`
    Definition(Definition),
}

/// An identifier and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    /// The identifier.
    pub text: String,
    /// Where.
    pub span: Span,
}

/// One param: `M >= 1 <= 2 * N`, `K = 5`.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamDeclaration {
    /// Its name.
    pub name: Name,
    /// `>=` ([`CompareOp::Ge`]), `<=` ([`CompareOp::Le`]) or `=` ([`CompareOp::Eq`]), any number of them, each with its side.
    pub bounds: Vec<(CompareOp, Expr)>,
}

/// One input: `x[N, D]` or the scalar `t`.
#[derive(Clone, Debug, PartialEq)]
pub struct InputDeclaration {
    /// Its name.
    pub name: Name,
    /// One extent for each dimension; none for a scalar.
    pub extents: Vec<Expr>,
}

/// `name[i, j in 0..N] = body`
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// The tensor.
    pub name: Name,
    /// Its indices; none for a scalar.
    pub indices: Vec<Binder>,
    /// The value of one element.
    pub body: Expr,
}

/// An index where it is introduced, with its range if it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Binder {
    /// The index.
    pub name: Name,
    /// `in lo..hi`
    pub range: Option<Range>,
}

/// `lo..hi` or `lo..=hi`
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// The first value.
    pub low: Expr,
    /// The end.
    pub high: Expr,
    /// Whether the end belongs to the range.
    pub inclusive: bool,
}

/// One item of the bracket of a reduction.
#[derive(Clone, Debug, PartialEq)]
pub enum ReduceItem {
    /// An index.
    Binder(Binder),
    /// A condition on the indices.
    Condition(Expr),
}

/// An expression and its place (for an operator: the whole of it, operands included).
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where.
    pub span: Span,
}

impl Expr {
    /// The expressions that it is made of.
    pub(crate) fn parts_mut(&mut self) -> Vec<&mut Expr> {
        match &mut self.kind {
            ExprKind::Integer(_) | ExprKind::Real(_) | ExprKind::Pi | ExprKind::Inf | ExprKind::Name(_) => Vec::new(),
            ExprKind::Access { subscripts: parts, .. } | ExprKind::Call { arguments: parts, .. } => {
                parts.iter_mut().collect()
            }
            ExprKind::Negate(a) | ExprKind::Not(a) => vec![a],
            ExprKind::Binary { left, right, .. } => vec![left, right],
            ExprKind::Compare { first, rest } => {
                std::iter::once(&mut **first).chain(rest.iter_mut().map(|(_, side)| side)).collect()
            }
            ExprKind::If { condition, then, otherwise } => vec![condition, then, otherwise],
            ExprKind::Reduce { items, body, .. } => {
                let conditions = items.iter_mut().filter_map(|item| match item {
                    ReduceItem::Condition(condition) => Some(condition),
                    ReduceItem::Binder(_) => None,
                });
                conditions.chain([&mut **body]).collect()
            }
        }
    }
}

/// The forms of an expression. Parentheses leave no trace but their effect.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// `3`
    Integer(Int),
    /// `0.5`, `1e-3`
    Real(f64),
    /// `pi`
    Pi,
    /// `inf`
    Inf,
    /// `x`: a param, an index or a scalar tensor.
    Name(String),
    /// `x[i, 2*j]`
    Access {
        /// The tensor.
        name: Name,
        /// At least one.
        subscripts: Vec<Expr>,
    },
    /// `exp(x[i])`, `max(a, b)`, `clamp(i - 1)`, `pad(x[i - 1], 0)`; also an unknown function.
    Call {
        /// The function as written; `max` and `min` too.
        function: Name,
        /// At least one.
        arguments: Vec<Expr>,
    },
    /// `-x`
    Negate(Box<Expr>),
    /// `not c`
    Not(Box<Expr>),
    /// `a + b`
    Binary {
        /// The operator.
        op: BinaryOp,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// `0 <= i + k < N`: one comparison or a chain.
    Compare {
        /// The leftmost side.
        first: Box<Expr>,
        /// At least one operator and side.
        rest: Vec<(CompareOp, Expr)>,
    },
    /// `if c then a else b`
    If {
        /// The condition.
        condition: Box<Expr>,
        /// Its value where the condition holds.
        then: Box<Expr>,
        /// Its value elsewhere.
        otherwise: Box<Expr>,
    },
    /// `sum[k in 0..=i, k != 2] body`
    Reduce {
        /// The operation.
        op: ReduceOp,
        /// The bracket, in order.
        items: Vec<ReduceItem>,
        /// What is reduced.
        body: Box<Expr>,
    },
}

/// Operators between two values, two index expressions, or two conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `//`
    FloorDivide,
    /// `%`
    Remainder,
    /// `^` or `**`
    Power,
    /// `and`
    And,
    /// `or`
    Or,
}

/// Comparison operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CompareOp {
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `==`
    Eq,
    /// `!=`
    Ne,
}

/// Reductions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReduceOp {
    /// Empty: 0.
    Sum,
    /// Empty: 1.
    Prod,
    /// Empty: -inf.
    Max,
    /// Empty: +inf.
    Min,
    /// Empty: NaN.
    Mean,
    /// Empty: -inf.
    LogSumExp,
}

impl ReduceOp {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Prod => "prod",
            ReduceOp::Max => "max",
            ReduceOp::Min => "min",
            ReduceOp::Mean => "mean",
            ReduceOp::LogSumExp => "logsumexp",
        }
    }
}
