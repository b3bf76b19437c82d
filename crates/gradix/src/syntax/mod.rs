//! Text to [`Ast`] and back.
//!
//! ```text
//! program    = { statement ( newline | ";" ) }
//! statement  = "param" param { "," param } | "input" input { "," input } | "output" name { "," name }
//!            | name [ "[" binder { "," binder } "]" ] "=" expression
//! param      = name { ( ">=" | "<=" | "=" ) sum }
//! input      = name [ "[" expression { "," expression } "]" ]
//! binder     = name [ "in" sum ( ".." | "..=" ) sum ]
//! expression = "if" expression "then" expression "else" expression | or
//! or         = and { "or" and }
//! and        = not { "and" not }
//! not        = "not" not | comparison
//! comparison = sum { ( "<" | "<=" | ">" | ">=" | "==" | "!=" ) sum }
//! sum        = product { ( "+" | "-" ) product }
//! product    = unary { ( "*" | "/" | "//" | "%" ) unary }
//! unary      = "-" unary | power
//! power      = atom [ ( "^" | "**" ) unary ]
//! atom       = number | "pi" | "inf" | name | "(" expression ")"
//!            | name "[" expression { "," expression } "]" | function "(" expression { "," expression } ")"
//!            | ( "sum" | "prod" | "max" | "min" | "mean" | "logsumexp" ) "[" item { "," item } "]" product
//! item       = binder | expression
//! ```
//!
//! A reduction is an atom that reaches right over the whole product after it, so it can be the last factor of a
//! product (`2 * sum[k] a[k]`) and needs parentheses as an earlier one.
//!
//! `mean`, `logsumexp` and `stop` mean something only in programs that do not take them as names: see `words`.
//!
//! Deliberately absent: what a name means. Whether `x` is a tensor, an index or a size, and whether an expression
//! is a number or a condition, is the business of `resolve`.

pub mod ast;
mod expression;
pub(crate) mod foreign;
mod latex;
mod layout;
mod parse;
mod print;
mod token;
mod words;

pub use ast::Ast;
pub use latex::latex;
pub use parse::parse;
pub(crate) use print::print_definition;
pub use print::{print, print_expr};

use crate::scalar::NAMES;

/// Words with a meaning of their own.
pub const KEYWORDS: &[&str] =
    &["param", "input", "output", "if", "then", "else", "in", "and", "or", "not", "sum", "prod", "max", "min"];

/// Words that stand for a number.
pub const CONSTANTS: &[&str] = &["pi", "inf"];

/// Words with a meaning of their own that a program may take as names, which then mean that throughout.
pub const FREE_WORDS: &[&str] = &["mean", "logsumexp", "stop"];

/// The functions about subscripts.
const OF_SUBSCRIPTS: &[&str] = &["pad", "clamp", "wrap", "reflect"];

/// The functions: those of numbers, of which `max` and `min` are keywords too, and those about subscripts.
pub const FUNCTIONS: &[&str] = &functions();

const fn functions() -> [&'static str; NAMES.len() + OF_SUBSCRIPTS.len()] {
    let mut functions = [""; NAMES.len() + OF_SUBSCRIPTS.len()];
    let mut place = 0;
    while place < functions.len() {
        functions[place] = if place < NAMES.len() { NAMES[place] } else { OF_SUBSCRIPTS[place - NAMES.len()] };
        place += 1;
    }
    functions
}

/// Whether `name` is a keyword, a constant or a function, and so can't name anything else.
pub fn is_reserved(name: &str) -> bool {
    [KEYWORDS, CONSTANTS, FUNCTIONS].iter().any(|words| words.contains(&name)) && !FREE_WORDS.contains(&name)
}

/// The longest text that is accepted, in bytes: 4 MiB.
pub const MAX_SOURCE: usize = 4 << 20;

/// The most names, numbers, symbols and newlines that a text may have.
pub const MAX_TOKENS: usize = 2_000_000;

/// How deep parentheses, brackets, reductions, `if`s, exponents and prefix operators may be nested.
pub const MAX_NESTING: usize = 200;

/// How many operations may lie on the way from the top of an expression to a leaf, each operator of a chain
/// `a + b + c + …` counted: what keeps recursive functions over expressions within an ordinary stack.
pub const MAX_HEIGHT: usize = 1_000;

/// The most items in one pair of brackets or parentheses.
pub const MAX_ITEMS: usize = 50;

/// The largest integer literal: 2^62.
pub const MAX_INTEGER: u64 = 1 << 62;

/// The most errors that are reported for one text.
pub const MAX_ERRORS: usize = 20;
