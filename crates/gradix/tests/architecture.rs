//! One direction: a module uses only modules earlier in the flow.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The modules in the order of the flow: each uses only those before it.
const ORDER: &[&str] = &[
    "timings",
    "diagnostic",
    "scalar",
    "syntax",
    "program",
    "target",
    "domain",
    "lift",
    "simplify",
    "resolve",
    "derive",
    "transform",
    "economise",
    "scan",
    "explain",
    "waves",
    "divide",
    "nest",
    "schedule",
    "lower",
    "compile",
    "emit",
];

#[test]
fn a_module_uses_only_modules_earlier_in_the_flow() {
    let place = |name: &str| ORDER.iter().position(|known| *known == name);
    let later = |(module, used): &(String, String)| place(used) > place(module);
    let wrong: Vec<_> = uses().into_iter().filter(later).collect();
    assert!(wrong.is_empty(), "(module, what it uses): {wrong:#?}");
}

#[test]
fn every_module_is_in_the_flow() {
    let used = uses().into_iter().map(|(_, used)| used);
    let modules: BTreeSet<String> = files().into_iter().map(|(module, _)| module).chain(used).collect();
    assert_eq!(modules, ORDER.iter().map(|name| name.to_string()).collect());
}

/// Where a function of the language is named, and why there: everything else looks it up in the table.
const PLACES: &[(&str, &str)] = &[
    ("gradix/src/scalar/unary.rs", "its variant and its row of the table"),
    ("gradix/src/scalar/mod.rs", "its value, if no library has it"),
    ("gradix/src/emit/c/library/digamma.c", "its coefficients, for vectors in C"),
    ("gradix/src/emit/cuda/functions.cu", "its formula, where CUDA has no such function"),
    ("gradix-run/src/vm/execute.rs", "its loop over a block, compiled for each type and instruction set"),
];

#[test]
fn a_function_is_named_in_few_places() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folders = std::fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path().join("src"));
    let all = folders.filter(|folder| folder.is_dir()).flat_map(|folder| sources(&folder, &["rs", "c", "cu"]));
    let names = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap().to_lowercase();
        text.split(|c: char| !is_word(c)).any(|word| word == "trigamma" || word == "gx_trigamma")
    };
    let found: BTreeSet<PathBuf> = all.filter(names).map(|path| path.strip_prefix(crates).unwrap().into()).collect();
    assert_eq!(found, PLACES.iter().map(|(path, _)| PathBuf::from(path)).collect());
}

/// The passes that decide, and the constants that they may have: limits of the time that compiling takes, and numbers of
/// variables and tensors.
const DECIDING: [&str; 6] = ["compile", "estimate", "economise", "schedule", "lower", "nest"];
const NO_DECISIONS: [&str; 12] = [
    "WIDEST_LANES",
    "SHOWN_CANDIDATES",
    "SAMPLED_POINTS",
    "FIRST_PART_ID",
    "FIRST",
    "LAST",
    "ITEM",
    "FIRST_UNKNOWN",
    // Of the virtual machine: how wide vectors and lines of the cache are.
    "PARTS",
    "PER_LINE",
    "WIDEST",
    "WIDTH",
];

#[test]
fn a_number_that_decides_speed_stands_in_the_table_of_costs() {
    let deciding = files().into_iter().filter(|(module, _)| DECIDING.contains(&module.as_str())).map(|(_, path)| path);
    let vm = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gradix-run/src/vm");
    let mathematics = |path: &PathBuf| path.ends_with("elementary.rs") || path.ends_with("wide_exp.rs");
    let mut found = Vec::new();
    for path in deciding.chain(sources(&vm, &["rs"]).into_iter().filter(|path| !mathematics(path))) {
        let code = code(&path);
        let constants =
            code.lines().filter_map(|line| line.trim_start().trim_start_matches("pub ").strip_prefix("const "));
        let numbers = constants.filter_map(|constant| constant.split_once(": ")).filter(|(_, kind)| is_number(kind));
        let names = numbers.map(|(name, _)| name.to_string());
        found.extend(names.filter(|name| !name.starts_with("MAX_") && !NO_DECISIONS.contains(&name.as_str())));
    }
    // The roots that spread samples evenly are mathematics.
    assert_eq!(found, ["ROOTS"]);
}

fn is_number(kind: &str) -> bool {
    let kind = kind.trim_start_matches('[');
    ["f64", "f32", "i64", "i32", "u64", "u32", "usize"].iter().any(|number| kind.starts_with(number))
}

/// Every pair of a module and another one that it uses.
fn uses() -> BTreeSet<(String, String)> {
    let mut uses = BTreeSet::new();
    for (module, path) in files() {
        for used in used_modules(&code(&path)) {
            if used != module {
                uses.insert((module.clone(), used));
            }
        }
    }
    uses
}

/// The modules that follow `crate::` in a text, alone or in braces.
fn used_modules(code: &str) -> Vec<String> {
    let mut used = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let items = match rest.strip_prefix('{') {
            Some(list) => top_level(list),
            None => vec![rest],
        };
        let names = items.into_iter().map(|item| item.trim_start().split(|c: char| !is_word(c)).next().unwrap_or(""));
        used.extend(names.filter(|name| name.starts_with(char::is_lowercase)).map(str::to_string));
    }
    used
}

/// The items of a list in braces, up to its end.
fn top_level(list: &str) -> Vec<&str> {
    let (mut items, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                items.push(&list[start..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// A file without its tests and comments. Unit tests stand at the end, and may use everything.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The source files, each with the top-level module that it belongs to; `lib.rs` belongs to none.
fn files() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&root).unwrap() {
        let path = entry.unwrap().path();
        let module = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(sources(&path, &["rs"]).into_iter().map(|path| (module.clone(), path)));
        } else if module != "lib" {
            found.push((module, path));
        }
    }
    found.sort();
    found
}

/// The files of a folder and of those in it whose names end in one of these ways.
fn sources(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let inner = entries.flat_map(|path| if path.is_dir() { sources(&path, endings) } else { vec![path] });
    inner.filter(|path| path.extension().is_some_and(|own| endings.iter().any(|ending| own == *ending))).collect()
}

#[test]
fn uses_are_found_in_every_form() {
    let code = "use crate::{a::{b, c}, d};\nuse crate::e::f;\nlet x = crate::g::h(crate::Type);\n";
    assert_eq!(used_modules(code), ["a", "d", "e", "g"]);
}
