//! Names that are in use, and names that are not.

use super::{Program, TensorKind};
use crate::syntax::is_reserved;
use std::collections::HashSet;

/// Every name that is in use: params, tensors and indices.
pub fn taken(program: &Program) -> HashSet<String> {
    let indices = program.definitions.iter().flat_map(|d| d.indices.iter().map(|i| i.name.clone()));
    reserved(program).into_iter().chain(indices).collect()
}

/// The names of sizes and tensors, which an index can't have.
pub fn reserved(program: &Program) -> HashSet<String> {
    let named = program.tensors.iter().filter(|t| t.kind != TensorKind::Nested).map(|t| t.name.clone());
    named.chain(program.params.iter().map(|p| p.name.clone())).collect()
}

/// The name itself or the next free of `name_1`, `name_2`, …, which is then taken.
pub fn fresh(name: &str, taken: &mut HashSet<String>) -> String {
    let free = fresh_where(name, |n| taken.contains(n));
    taken.insert(free.clone());
    free
}

/// The name itself or the first of `name_1`, `name_2`, … that is not taken and no word of the language.
pub fn fresh_where(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let numbered = (1..).map(|number| format!("{name}_{number}"));
    std::iter::once(name.to_string())
        .chain(numbered)
        .find(|n| !taken(n) && !is_reserved(n))
        .expect("numbers do not end")
}
