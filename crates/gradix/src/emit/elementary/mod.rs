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

use crate::scalar::{self, C};
use std::collections::BTreeSet;

/// The C text of the functions with these names, and of all that they need, each once.
///
/// The names are those of the language: `exp`, `atan2`; the prelude, with `abs`, `min`, `max` and `sqrt`, is always there.
pub fn source(needed: &BTreeSet<&str>) -> String {
    let files: BTreeSet<&str> = needed.iter().map(|name| file(name)).collect();
    let mut chosen: Vec<&Snippet> = Vec::new();
    for snippet in SNIPPETS.iter().rev() {
        let used = chosen.iter().any(|later| later.uses.contains(&snippet.file));
        if files.contains(snippet.file) || used || snippet.file == "prelude.c" {
            chosen.push(snippet);
        }
    }
    chosen.iter().rev().map(|snippet| snippet.text).collect::<Vec<_>>().join("\n")
}

/// The file that defines a function.
fn file(name: &str) -> &'static str {
    match scalar::function(name).map(|row| row.c()) {
        Some(C::Function(file)) => file,
        Some(C::Sign(_)) | None => panic!("'{name}' is not an elementary function"),
    }
}

/// One C file.
struct Snippet {
    file: &'static str,
    /// The files whose definitions it uses, besides the prelude: all are earlier in the table.
    uses: &'static [&'static str],
    text: &'static str,
}

macro_rules! snippets {
    ($($file:literal: $($used:literal)*;)*) => {
        &[$(Snippet { file: $file, uses: &[$($used),*], text: include_str!($file) }),*]
    };
}

/// Every snippet, after all those that it uses.
const SNIPPETS: &[Snippet] = snippets! {
    "prelude.c": ;
    "relu.c": ;
    "sign.c": ;
    "round.c": ;
    "hypot.c": ;
    "cbrt.c": ;
    "exp.c": ;
    "expm1.c": "exp.c";
    "sinh.c": "exp.c";
    "tanh.c": "exp.c" "expm1.c";
    "sigmoid.c": "exp.c";
    "softplus.c": "exp.c";
    "erf.c": "exp.c" "expm1.c";
    "log.c": ;
    "log1p.c": "log.c";
    "log2.c": "log.c";
    "asinh.c": "log.c" "log1p.c";
    "pow.c": "round.c" "exp.c" "log.c";
    "sin.c": ;
    "tan.c": "sin.c";
    "asin.c": ;
    "atan.c": ;
    "lgamma.c": "round.c" "exp.c" "log.c" "pow.c" "sin.c" "tan.c";
    "digamma.c": "round.c" "exp.c" "log.c" "pow.c" "sin.c" "tan.c" "lgamma.c";
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_the_language_has_a_text() {
        for &name in scalar::NAMES {
            let text = source(&BTreeSet::from([name]));
            assert!(text.contains(&format!("gx_v gx_{name}(")), "{name}");
        }
    }

    #[test]
    fn every_use_is_of_an_earlier_snippet() {
        for (place, snippet) in SNIPPETS.iter().enumerate() {
            let earlier = |used: &&str| SNIPPETS[..place].iter().any(|other| other.file == *used);
            assert!(snippet.uses.iter().all(earlier), "{}", snippet.file);
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
