//! The C text that a generated file carries with it: vectors, memory, and the elementary functions.
//!
//! Functions work on vectors (GNU extensions), so that a compiler has nothing left to vectorise: `gx_exp(gx_v)` and, for
//! one number and with the same bits, `gx_exp_1(gx_t)`. A C file has one type of number: it says `#define GX_F64` or
//! `#define GX_F32` before the text. `lanes.c`, which is always there, has the types.
//!
//! An elementary function is within 2 ulp of the exact value everywhere (`tests/elementary.rs` of gradix-run measures it);
//! the exceptions, near roots, are in the comments of `lgamma.c` and `digamma.c`. The bits depend on the target's vectors
//! and fused arithmetic, but not on the surrounding code or on `-ffp-contract`; fast-math options would break them. No
//! function branches on its argument, except `sin`, `cos` and `tan` where one is huge.

use crate::emit::integers::{INTEGERS, INTERLEAVED};
pub use crate::emit::tree::Snippet;
use crate::scalar::{self, C};
use std::collections::BTreeSet;

/// The text of what is needed and of all that this needs, each once, after what is always there.
pub fn text<'a>(needed: impl IntoIterator<Item = &'a Snippet>) -> String {
    let mut names: BTreeSet<&str> = needed.into_iter().map(|snippet| snippet.name).collect();
    let mut chosen = Vec::new();
    for snippet in LIBRARY.iter().rev() {
        if names.contains(snippet.name) {
            names.extend(snippet.needs.iter().map(|used| used.name));
            chosen.push(snippet.text);
        }
    }
    chosen.push(include_str!("lanes.c"));
    chosen.reverse();
    chosen.join("\n")
}

/// The text that has the functions with these names (those of the language: `exp`, `atan2`), and vectors in memory.
pub fn functions<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    text(names.into_iter().map(function).chain([&MEMORY, &PARTIAL]))
}

/// What defines a function of the language, or a power that is made of roots.
pub fn function(name: &str) -> &'static Snippet {
    match name {
        "root" => return &ROOT,
        "root3" => return &ROOT3,
        _ => {}
    }
    let Some(C::Function(file)) = scalar::function(name).map(|row| row.c()) else {
        panic!("'{name}' is not an elementary function");
    };
    LIBRARY.iter().find(|snippet| snippet.name == file).expect("every function has a file")
}

macro_rules! library {
    ($($name:ident $file:literal: $($used:ident)*;)*) => {
        $(pub(super) static $name: Snippet = Snippet { name: $file, text: include_str!($file), needs: &[$(&$used),*] };)*
        /// Everything, each after what it uses.
        pub static LIBRARY: &[&Snippet] = &[&INTEGERS, &INTERLEAVED, $(&$name),*];
    };
}

library! {
    IOTA "iota.c": ;
    MEMORY "memory.c": ;
    STREAM "stream.c": MEMORY;
    PARTIAL "partial.c": IOTA;
    SHUFFLES "shuffles.c": ;
    STRIDED "strided.c": MEMORY PARTIAL SHUFFLES;
    SELECT "select.c": ;
    ANY "any.c": ;
    SIGNS "signs.c": ;
    FMA "fma.c": ;
    LIMITS "limits.c": SELECT;
    MIN_MAX "min_max.c": SELECT;
    SQRT "sqrt.c": ;
    ROOT "root.c": SELECT SQRT;
    ROOT3 "root3.c": SIGNS ROOT;
    REDUCE "reduce.c": MEMORY;
    MASKS "masks.c": IOTA;
    EVENLY "evenly.c": ;
    SKEW "skew.c": ;
    PADDED "padded.c": ;
    CLEAR "clear.c": ;
    TURN "turn.c": SHUFFLES;
    TRANSPOSE "transpose.c": MEMORY SHUFFLES TURN;
    PUT "put.c": INTEGERS MEMORY PARTIAL STRIDED;
    PUT_SUM "put_sum.c": PUT;
    PUT_PROD "put_prod.c": PUT;
    PUT_MAX "put_max.c": MIN_MAX PUT;
    PUT_MIN "put_min.c": MIN_MAX PUT;
    POLY "poly.c": FMA;
    ROUNDED "rounded.c": ;
    PAIRS "pairs.c": FMA ROUNDED;
    QUOTIENT "quotient.c": FMA PAIRS;
    SCALE "scale.c": FMA ROUNDED;
    SPLIT "split.c": SELECT;
    RELU "relu.c": LIMITS;
    SIGN "sign.c": SELECT SIGNS;
    ROUND "round.c": SELECT SIGNS;
    HYPOT "hypot.c": SELECT SIGNS FMA MIN_MAX SQRT;
    CBRT "cbrt.c": SELECT SIGNS FMA POLY ROUNDED PAIRS SCALE SPLIT;
    EXP "exp.c": FMA LIMITS POLY SCALE;
    EXPM1 "expm1.c": SELECT SIGNS FMA LIMITS POLY PAIRS SCALE EXP;
    SINH "sinh.c": SELECT SIGNS FMA LIMITS POLY PAIRS QUOTIENT SCALE EXP;
    TANH "tanh.c": SIGNS FMA LIMITS PAIRS QUOTIENT EXPM1;
    SIGMOID "sigmoid.c": SELECT SIGNS FMA PAIRS QUOTIENT EXP;
    SOFTPLUS "softplus.c": SIGNS FMA LIMITS POLY QUOTIENT EXP;
    ERF "erf.c": SELECT SIGNS FMA LIMITS POLY PAIRS QUOTIENT SCALE EXP EXPM1;
    LOG "log.c": SELECT FMA POLY QUOTIENT SCALE SPLIT;
    LOG1P "log1p.c": SELECT FMA PAIRS QUOTIENT SCALE SPLIT LOG;
    LOG2 "log2.c": FMA ROUNDED PAIRS QUOTIENT SCALE SPLIT LOG;
    ASINH "asinh.c": SELECT SIGNS FMA LIMITS SQRT PAIRS QUOTIENT LOG1P;
    LOG_PAIR "log_pair.c": FMA POLY ROUNDED PAIRS QUOTIENT SCALE SPLIT;
    POW "pow.c": SELECT SIGNS FMA LIMITS PAIRS SCALE ROUND EXP LOG_PAIR;
    SIN "sin.c": SELECT ANY SIGNS FMA LIMITS POLY PAIRS;
    SIN_COS "sin_cos.c": FMA POLY ROUNDED PAIRS;
    TAN "tan.c": SELECT ANY SIGNS FMA POLY PAIRS QUOTIENT SIN;
    ASIN "asin.c": SELECT SIGNS FMA LIMITS SQRT POLY ROUNDED PAIRS;
    ATAN "atan.c": SELECT SIGNS FMA LIMITS POLY ROUNDED PAIRS QUOTIENT;
    LGAMMA "lgamma.c": SELECT SIGNS FMA POLY PAIRS ROUND LOG_PAIR SIN_COS;
    DIGAMMA "digamma.c": SELECT SIGNS FMA POLY ROUNDED PAIRS ROUND LOG_PAIR LGAMMA;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_function_of_the_language_has_a_text() {
        // `stop` is its argument.
        for &name in scalar::NAMES.iter().filter(|&&name| name != "stop") {
            assert!(defined(function(name)).contains(&format!("gx_{name}")), "{name}");
            assert!(defined(function(name)).contains(&format!("gx_{name}_1")), "{name}");
        }
    }

    #[test]
    fn a_snippet_needs_what_defines_the_names_that_it_mentions() {
        let mut owners = BTreeMap::new();
        for snippet in LIBRARY {
            owners.extend(defined(snippet).into_iter().map(|name| (name, snippet.name)));
        }
        for snippet in LIBRARY {
            let mut used: BTreeSet<&str> =
                mentioned(snippet).iter().filter_map(|word| owners.get(word).copied()).collect();
            used.remove(snippet.name);
            assert_eq!(used, snippet.needs.iter().map(|used| used.name).collect(), "{}", snippet.name);
        }
    }

    #[test]
    fn every_need_is_earlier() {
        for (place, snippet) in LIBRARY.iter().enumerate() {
            assert!(snippet.needs.iter().all(|used| LIBRARY[..place].contains(used)), "{}", snippet.name);
        }
    }

    #[test]
    fn what_is_needed_comes_once_and_in_order() {
        let text = functions(["tanh", "exp"]);
        let places =
            ["gx_all(", "gx_v gx_exp(", "gx_v gx_expm1(", "gx_v gx_tanh("].map(|name| text.find(name).unwrap());
        assert!(places.is_sorted());
        assert_eq!(text.matches("gx_v gx_exp(").count(), 1);
        assert!(!text.contains("gx_v gx_log("));
    }

    /// Macros that define a function: what stands before and after their argument in its name.
    const MACROS: [(&str, &str, &str); 5] = [
        ("GX_SCALAR(", "gx_", "_1"),
        ("GX_SCALAR2(", "gx_", "_1"),
        ("GX_REDUCE(", "gx_", ""),
        ("GX_SLOW(", "gx_", "_huge"),
        ("GX_PUT(", "gx_put_", ""),
    ];

    /// The argument of a macro that defines a function, and the function.
    fn invoked(line: &str) -> Option<(&str, String)> {
        MACROS.iter().find_map(|(name, before, after)| {
            let argument = line.strip_prefix(name)?.split([',', ')']).next()?;
            Some((argument, format!("{before}{argument}{after}")))
        })
    }

    /// The macros, functions and types that a snippet defines.
    fn defined(snippet: &Snippet) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for line in code(snippet.text).lines() {
            let word = match line.strip_prefix("#define ") {
                Some(rest) => words(rest).next(),
                None if ["GX_INLINE ", "GX_WHOLE ", "GX_MASK ", "static "]
                    .iter()
                    .any(|start| line.starts_with(start)) =>
                {
                    line.split('(').filter_map(|part| words(part).last()).find(|word| word.starts_with("gx_"))
                }
                None => line.strip_prefix("} ").and_then(|rest| words(rest).next()),
            };
            found.extend(word.map(String::from).into_iter().chain(invoked(line).map(|(_, name)| name)));
        }
        found.retain(|name| name.starts_with("gx_") || name.starts_with("GX_"));
        found
    }

    fn mentioned(snippet: &Snippet) -> BTreeSet<String> {
        let code = code(snippet.text);
        let functions = code.lines().filter_map(|line| Some(format!("gx_{}", invoked(line)?.0)));
        words(&code).map(String::from).chain(functions).collect()
    }

    fn code(text: &str) -> String {
        let mut parts = text.split("/*");
        let first = parts.next().unwrap_or_default().to_string();
        first + &parts.filter_map(|part| part.split_once("*/")).map(|(_, code)| code).collect::<String>()
    }

    fn words(text: &str) -> impl Iterator<Item = &str> {
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
    }
}
