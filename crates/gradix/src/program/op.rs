//! The scalar operations: their names, values and counts.
//!
//! A new function of one argument is a line in `unary!`, a rule in `derive::rules` and a test case.

use crate::scalar;

macro_rules! unary {
    ($($variant:ident $name:literal $function:expr;)*) => {
        /// Functions of one value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum UnaryOp {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl UnaryOp {
            /// Every function of one value.
            pub const ALL: &[UnaryOp] = &[$(UnaryOp::$variant),*];

            /// The name in the language (`-` for negation).
            pub fn name(self) -> &'static str {
                match self { $(UnaryOp::$variant => $name),* }
            }

            /// The value.
            pub fn apply(self, x: f64) -> f64 {
                match self { $(UnaryOp::$variant => { let f: fn(f64) -> f64 = $function; f(x) }),* }
            }
        }
    };
}

unary! {
    Neg "-" |x| -x;
    Exp "exp" libm::exp;
    Expm1 "expm1" libm::expm1;
    Log "log" libm::log;
    Log1p "log1p" libm::log1p;
    Log2 "log2" libm::log2;
    Log10 "log10" libm::log10;
    Sqrt "sqrt" libm::sqrt;
    Cbrt "cbrt" libm::cbrt;
    Sin "sin" libm::sin;
    Cos "cos" libm::cos;
    Tan "tan" libm::tan;
    Asin "asin" libm::asin;
    Acos "acos" libm::acos;
    Atan "atan" libm::atan;
    Sinh "sinh" libm::sinh;
    Cosh "cosh" libm::cosh;
    Tanh "tanh" libm::tanh;
    Asinh "asinh" libm::asinh;
    Acosh "acosh" scalar::acosh;
    Atanh "atanh" libm::atanh;
    Erf "erf" scalar::erf;
    Erfc "erfc" scalar::erfc;
    Sigmoid "sigmoid" scalar::sigmoid;
    Relu "relu" scalar::relu;
    Softplus "softplus" scalar::softplus;
    Abs "abs" libm::fabs;
    Sign "sign" scalar::sign;
    Floor "floor" libm::floor;
    Ceil "ceil" libm::ceil;
    Round "round" libm::round;
    Lgamma "lgamma" scalar::lgamma;
    Digamma "digamma" scalar::digamma;
    Trigamma "trigamma" scalar::trigamma;
}

/// Operations on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BinaryOp {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`
    Div,
    /// `a ^ b`
    Pow,
    /// `min(a, b)`
    Min,
    /// `max(a, b)`
    Max,
    /// `atan2(a, b)`
    Atan2,
    /// `hypot(a, b)`
    Hypot,
}

impl BinaryOp {
    /// The operator or the name of the function.
    pub fn name(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Pow => "^",
            BinaryOp::Min => "min",
            BinaryOp::Max => "max",
            BinaryOp::Atan2 => "atan2",
            BinaryOp::Hypot => "hypot",
        }
    }

    /// The operations that are written as functions.
    pub const FUNCTIONS: &[(&str, BinaryOp)] = &[
        ("min", BinaryOp::Min),
        ("max", BinaryOp::Max),
        ("pow", BinaryOp::Pow),
        ("atan2", BinaryOp::Atan2),
        ("hypot", BinaryOp::Hypot),
    ];

    /// The value.
    pub fn apply(self, a: f64, b: f64) -> f64 {
        match self {
            BinaryOp::Add => a + b,
            BinaryOp::Sub => a - b,
            BinaryOp::Mul => a * b,
            BinaryOp::Div => a / b,
            BinaryOp::Pow => libm::pow(a, b),
            BinaryOp::Min => minimum(a, b),
            BinaryOp::Max => -minimum(-a, -b),
            BinaryOp::Atan2 => libm::atan2(a, b),
            BinaryOp::Hypot => libm::hypot(a, b),
        }
    }
}

/// The smaller value; NaN if either is.
fn minimum(a: f64, b: f64) -> f64 {
    if a.is_nan() || a < b { a } else { b }
}

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

pub use crate::syntax::ast::ReduceOp;

impl ReduceOp {
    /// The value of an empty reduction.
    pub fn neutral(self) -> f64 {
        match self {
            ReduceOp::Sum => 0.0,
            ReduceOp::Prod => 1.0,
            ReduceOp::Max => f64::NEG_INFINITY,
            ReduceOp::Min => f64::INFINITY,
        }
    }

    /// The operation that combines two values.
    pub fn combine(self) -> BinaryOp {
        match self {
            ReduceOp::Sum => BinaryOp::Add,
            ReduceOp::Prod => BinaryOp::Mul,
            ReduceOp::Max => BinaryOp::Max,
            ReduceOp::Min => BinaryOp::Min,
        }
    }

    /// The keyword.
    pub fn name(self) -> &'static str {
        match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Prod => "prod",
            ReduceOp::Max => "max",
            ReduceOp::Min => "min",
        }
    }
}
