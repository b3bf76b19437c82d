//! The operations on two values: the closed list, and a table with a row for each.
//!
//! A new function is a variant, its row, and a rule in `derive::rules`: the rules of two operands choose between them.

use super::columns::Finite::{Always, NotEverywhere};
use super::columns::Latex::{Command, Upright};
use super::columns::{C, Finite, Latex};

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

/// All that is known of an operation on two values.
#[derive(Clone, Copy, Debug)]
pub struct Binary {
    /// Which one it is.
    pub op: BinaryOp,
    /// The operator, or the name of the function.
    pub name: &'static str,
    /// The name of the function, if it can be written as one.
    pub function: Option<&'static str>,
    /// How LaTeX writes it.
    pub latex: Latex,
    /// Its value in f64.
    pub value: fn(f64, f64) -> f64,
    /// How C writes it.
    pub c: C,
    /// The derivatives by both operands as numbers, written apart from the rules of `derive`.
    pub slopes: fn(f64, f64) -> [f64; 2],
    /// What it costs, in additions.
    pub weight: f64,
    /// Division and powers are finite where their operands say so.
    pub finite: Finite,
    /// Whether the operands can be exchanged.
    pub commutative: bool,
    /// Whether the value is one of the operands, with a kink where they are equal.
    pub chooses: bool,
}

impl BinaryOp {
    /// The operations that are written as functions.
    pub const FUNCTIONS: &[(&str, BinaryOp)] = &functions();

    /// Its row of the table.
    pub fn row(self) -> &'static Binary {
        &BINARY[self as usize]
    }

    /// The operator or the name of the function.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The value.
    pub fn apply(self, a: f64, b: f64) -> f64 {
        (self.row().value)(a, b)
    }

    /// Whether it takes a routine and not an instruction.
    pub fn is_elementary(self) -> bool {
        self.row().weight >= ELEMENTARY
    }
}

const SIMPLE: f64 = 1.0;
const DIVISION: f64 = 4.0;
const ELEMENTARY: f64 = 20.0;

use BinaryOp as B;

/// The operations on two values, in the order of their variants.
#[rustfmt::skip]
pub const BINARY: &[Binary] = &[
    Binary {
        op: B::Add, name: "+", function: None, latex: Latex::Sign, value: |a, b| a + b, c: C::Sign("+"),
        slopes: |_, _| [1.0, 1.0],
        weight: SIMPLE, finite: Always, commutative: true, chooses: false,
    },
    Binary {
        op: B::Sub, name: "-", function: None, latex: Latex::Sign, value: |a, b| a - b, c: C::Sign("-"),
        slopes: |_, _| [1.0, -1.0],
        weight: SIMPLE, finite: Always, commutative: false, chooses: false,
    },
    Binary {
        op: B::Mul, name: "*", function: None, latex: Latex::Sign, value: |a, b| a * b, c: C::Sign("*"),
        slopes: |a, b| [b, a],
        weight: SIMPLE, finite: Always, commutative: true, chooses: false,
    },
    Binary {
        op: B::Div, name: "/", function: None, latex: Latex::Sign, value: |a, b| a / b, c: C::Sign("/"),
        slopes: |a, b| [1.0 / b, -a / (b * b)],
        weight: DIVISION, finite: NotEverywhere, commutative: false, chooses: false,
    },
    Binary {
        op: B::Pow, name: "^", function: Some("pow"), latex: Latex::Power, value: libm::pow, c: C::Function("pow.c"),
        slopes: |a, b| [power_by_base(a, b), power_by_exponent(a, b)],
        weight: ELEMENTARY, finite: NotEverywhere, commutative: false, chooses: false,
    },
    Binary {
        op: B::Min, name: "min", function: Some("min"), latex: Command("\\min"), value: minimum,
        c: C::Function("min_max.c"),
        slopes: |a, b| [share(a, b), share(b, a)],
        weight: SIMPLE, finite: Always, commutative: true, chooses: true,
    },
    Binary {
        op: B::Max, name: "max", function: Some("max"), latex: Command("\\max"), value: |a, b| -minimum(-a, -b),
        c: C::Function("min_max.c"),
        slopes: |a, b| [share(b, a), share(a, b)],
        weight: SIMPLE, finite: Always, commutative: true, chooses: true,
    },
    Binary {
        op: B::Atan2, name: "atan2", function: Some("atan2"), latex: Upright, value: libm::atan2,
        c: C::Function("atan.c"),
        slopes: |a, b| [b / (a * a + b * b), -a / (a * a + b * b)],
        weight: ELEMENTARY, finite: NotEverywhere, commutative: false, chooses: false,
    },
    Binary {
        op: B::Hypot, name: "hypot", function: Some("hypot"), latex: Upright, value: libm::hypot,
        c: C::Function("hypot.c"),
        slopes: |a, b| if a == 0.0 && b == 0.0 { [0.0, 0.0] } else { [a / a.hypot(b), b / a.hypot(b)] },
        weight: ELEMENTARY, finite: Always, commutative: true, chooses: false,
    },
];

/// The smaller value; NaN if either is.
fn minimum(a: f64, b: f64) -> f64 {
    if a.is_nan() || a < b { a } else { b }
}

fn power_by_base(x: f64, y: f64) -> f64 {
    if y == 0.0 { 0.0 } else { y * libm::pow(x, y - 1.0) }
}

fn power_by_exponent(x: f64, y: f64) -> f64 {
    if x == 0.0 && y > 0.0 { 0.0 } else { libm::pow(x, y) * x.ln() }
}

/// The part of the smaller of two values that `a` is.
fn share(a: f64, b: f64) -> f64 {
    if a == b { 0.5 } else { f64::from(a < b) }
}

/// How many operations are written as functions; every variant has to stand in its own row.
const fn count() -> usize {
    let (mut count, mut place) = (0, 0);
    while place < BINARY.len() {
        assert!(BINARY[place].op as usize == place, "rows are in the order of the variants");
        count += BINARY[place].function.is_some() as usize;
        place += 1;
    }
    count
}

const fn functions() -> [(&'static str, BinaryOp); count()] {
    let mut functions = [("", BinaryOp::Add); count()];
    let (mut filled, mut place) = (0, 0);
    while place < BINARY.len() {
        if let Some(name) = BINARY[place].function {
            functions[filled] = (name, BINARY[place].op);
            filled += 1;
        }
        place += 1;
    }
    functions
}
