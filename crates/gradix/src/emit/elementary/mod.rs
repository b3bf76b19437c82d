//! The elementary functions as C text that a generated file carries with it.
//!
//! They work on vectors (GNU extensions), so that a compiler has nothing left to vectorise: `gx_exp(gx_v)` and, for one
//! number and with the same bits, `gx_exp_1(gx_t)`. A C file has one type of number: it says `#define GX_F64` or
//! `#define GX_F32` before the text. `prelude.c` lists the types and what else the text defines.
//!
//! A function is within 2 ulp of the exact value everywhere (`tests/elementary.rs` of gradix-run measures it); the
//! exceptions, near roots, are in the comments of `lgamma.c` and `digamma.c`. The bits depend on the target's vectors and
//! fused arithmetic, but not on the surrounding code or on `-ffp-contract`; fast-math options would break them. No
//! function branches on its argument, except `sin`, `cos` and `tan` where one is huge.

use std::collections::BTreeSet;

/// The C text of the functions with these names, and of all that they need, each once.
///
/// The names are those of the language: `exp`, `atan2`; the prelude, with `abs`, `min`, `max` and `sqrt`, is always there.
pub fn source(needed: &BTreeSet<&str>) -> String {
    let known = |name: &&str| SNIPPETS.iter().any(|snippet| snippet.functions.contains(name));
    assert!(needed.iter().all(known), "not all are elementary functions: {needed:?}");
    let mut chosen: Vec<&Snippet> = Vec::new();
    for snippet in SNIPPETS.iter().rev() {
        let called = snippet.functions.iter().any(|name| needed.contains(name));
        let used = chosen.iter().any(|later| later.uses.contains(&snippet.functions[0]));
        if called || used || snippet.functions[0] == "abs" {
            chosen.push(snippet);
        }
    }
    chosen.iter().rev().map(|snippet| snippet.text).collect::<Vec<_>>().join("\n")
}

/// One C file.
struct Snippet {
    /// The functions of the language that it defines; the first is also the snippet's name.
    functions: &'static [&'static str],
    /// The snippets whose definitions it uses, besides the prelude: all are earlier in the table.
    uses: &'static [&'static str],
    text: &'static str,
}

macro_rules! snippets {
    ($($file:literal: $($function:literal)* => $($used:literal)*;)*) => {
        &[$(Snippet { functions: &[$($function),*], uses: &[$($used),*], text: include_str!($file) }),*]
    };
}

/// Every snippet, after all those that it uses.
const SNIPPETS: &[Snippet] = snippets! {
    "prelude.c": "abs" "min" "max" "sqrt" => ;
    "relu.c": "relu" => ;
    "sign.c": "sign" => ;
    "round.c": "floor" "ceil" "round" => ;
    "hypot.c": "hypot" => ;
    "cbrt.c": "cbrt" => ;
    "exp.c": "exp" => ;
    "expm1.c": "expm1" => "exp";
    "sinh.c": "sinh" "cosh" => "exp";
    "tanh.c": "tanh" => "exp" "expm1";
    "sigmoid.c": "sigmoid" => "exp";
    "softplus.c": "softplus" => "exp";
    "erf.c": "erf" "erfc" => "exp" "expm1";
    "log.c": "log" => ;
    "log1p.c": "log1p" => "log";
    "log2.c": "log2" "log10" => "log";
    "asinh.c": "asinh" "acosh" "atanh" => "log" "log1p";
    "pow.c": "pow" => "floor" "exp" "log";
    "sin.c": "sin" "cos" => ;
    "tan.c": "tan" => "sin";
    "asin.c": "asin" "acos" => ;
    "atan.c": "atan" "atan2" => ;
    "lgamma.c": "lgamma" => "floor" "exp" "log" "pow" "sin" "tan";
    "digamma.c": "digamma" "trigamma" => "floor" "exp" "log" "pow" "sin" "tan" "lgamma";
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::op::{BinaryOp, UnaryOp};

    #[test]
    fn every_function_of_the_language_has_a_text() {
        let unary = UnaryOp::ALL.iter().map(|op| op.name()).filter(|name| *name != "-");
        for name in unary.chain(BinaryOp::FUNCTIONS.iter().map(|(name, _)| *name)) {
            let text = source(&BTreeSet::from([name]));
            assert!(text.contains(&format!("gx_v gx_{name}(")), "{name}");
        }
    }

    #[test]
    fn every_use_is_of_an_earlier_snippet() {
        for (place, snippet) in SNIPPETS.iter().enumerate() {
            let earlier = |used: &&str| SNIPPETS[..place].iter().any(|other| other.functions[0] == *used);
            assert!(snippet.uses.iter().all(earlier), "{:?}", snippet.functions);
        }
    }

    #[test]
    fn what_is_needed_comes_once_and_in_order() {
        let text = source(&BTreeSet::from(["tanh", "exp"]));
        let places =
            ["gx_all(", "gx_v gx_exp(", "gx_v gx_expm1(", "gx_v gx_tanh("].map(|name| text.find(name).unwrap());
        assert!(places.is_sorted());
        assert_eq!(text.matches("gx_v gx_exp(").count(), 1);
        assert!(!text.contains("gx_v gx_log("));
    }
}
