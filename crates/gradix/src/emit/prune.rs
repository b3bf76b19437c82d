//! The parts of a C text that another text needs.
//!
//! A part stands between empty lines, or on a line of its own that starts with one of the macros in [`MACROS`]. What
//! it defines are macros and functions; one that defines neither, such as a type, is always needed.

use crate::program::hash::QuickSet;
use std::borrow::Cow;

/// The parts of `library` that `users` needs, or that others need that are needed. In `library`, definitions come
/// before uses.
pub fn prune(library: &str, users: &str) -> String {
    let mut needed = QuickSet::default();
    need(users.lines(), &mut needed);
    let mut kept: Vec<String> = Vec::new();
    for part in parts(library).iter().rev() {
        let defined = defined(part);
        if defined.is_empty() || defined.iter().any(|name| needed.contains(&**name)) {
            need(part.iter().copied(), &mut needed);
            kept.push(part.join("\n"));
        }
    }
    kept.reverse();
    kept.join("\n\n") + "\n"
}

/// Macros that define a function: what stands before and after their argument in its name.
const MACROS: [(&str, &str, &str); 4] = [
    ("GX_SCALAR(", "gx_", "_1"),
    ("GX_SCALAR2(", "gx_", "_1"),
    ("GX_REDUCE(", "gx_", ""),
    ("GX_SLOW(", "gx_", "_huge"),
];

fn parts(library: &str) -> Vec<Vec<&str>> {
    let (mut parts, mut depth) = (vec![Vec::new()], 0);
    for line in library.lines() {
        depth += i32::from(line.starts_with("#if")) - i32::from(line.starts_with("#endif"));
        let alone = invoked(line).is_some();
        if depth == 0 && (line.is_empty() || alone) {
            parts.push(Vec::new());
        }
        if !line.is_empty() {
            parts.last_mut().expect("there is one").push(line);
        }
        if alone {
            parts.push(Vec::new());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The name that a line with one of the macros defines, and the argument.
fn invoked(line: &str) -> Option<(String, &str)> {
    MACROS.iter().find_map(|(name, before, after)| {
        let argument = line.strip_prefix(name)?.split([',', ')']).next()?;
        Some((format!("{before}{argument}{after}"), argument))
    })
}

/// The macros and functions that a part defines.
fn defined<'a>(part: &[&'a str]) -> Vec<Cow<'a, str>> {
    let mut found = Vec::new();
    for line in part {
        if let Some(rest) = line.strip_prefix("#define ") {
            found.extend(words(rest).next().map(Cow::from));
        } else if line.starts_with("GX_INLINE ") || line.starts_with("static ") {
            let before = line.split('(').next().unwrap_or_default();
            found.extend(words(before).last().map(Cow::from));
        } else {
            found.extend(invoked(line).map(|(name, _)| Cow::from(name)));
        }
    }
    found
}

/// Adds what the lines of a text mention outside of comments.
fn need<'a>(lines: impl Iterator<Item = &'a str>, needed: &mut QuickSet<Cow<'a, str>>) {
    let mut inside = false;
    for line in lines {
        let mut rest = line;
        while !rest.is_empty() {
            let (now, later, ends) = match rest.split_once(if inside { "*/" } else { "/*" }) {
                Some((now, later)) => (now, later, true),
                None => (rest, "", false),
            };
            if !inside {
                let own = |word: &&str| word.starts_with("gx_") || word.starts_with("GX_");
                needed.extend(words(now).filter(own).map(Cow::from));
            }
            inside ^= ends;
            rest = later;
        }
        needed.extend(invoked(line).map(|(_, argument)| Cow::from(format!("gx_{argument}"))));
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: &str = "typedef double gx_t;

#define GX_TWO 2

/* Calls gx_c only in a comment. */
GX_INLINE gx_t gx_a(gx_t x) {
    return x * GX_TWO;
}
GX_SCALAR(a)

GX_INLINE gx_t gx_b(gx_t x) { return gx_a(x); }

GX_INLINE gx_t gx_c(gx_t x) { return x; }
GX_SCALAR(c)
";

    fn mentioned(users: &str) -> Vec<String> {
        let kept = prune(LIBRARY, users);
        let names = ["gx_t;", "GX_TWO 2", "gx_a(gx_t", "GX_SCALAR(a)", "gx_b(gx_t", "gx_c(gx_t", "GX_SCALAR(c)"];
        names.into_iter().filter(|name| kept.contains(name)).map(String::from).collect()
    }

    #[test]
    fn what_is_needed_stays() {
        assert_eq!(mentioned("gx_t x;"), ["gx_t;"]);
        assert_eq!(mentioned("gx_b(x)"), ["gx_t;", "GX_TWO 2", "gx_a(gx_t", "gx_b(gx_t"]);
        assert_eq!(mentioned("gx_c_1(x)"), ["gx_t;", "gx_c(gx_t", "GX_SCALAR(c)"]);
        assert_eq!(mentioned("/* gx_b */ gx_a_1(x)"), ["gx_t;", "GX_TWO 2", "gx_a(gx_t", "GX_SCALAR(a)"]);
    }

    #[test]
    fn parts_with_conditions_stay_whole() {
        let library = "#if A\n#define GX_A 1\n\n#else\n#define GX_A 2\n#endif\n\n#define GX_B GX_A\n";
        assert_eq!(prune(library, "GX_B"), library.replace("\n\n#else", "\n#else"));
        assert_eq!(prune(library, ""), "\n");
    }
}
