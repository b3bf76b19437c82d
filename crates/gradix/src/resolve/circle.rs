//! Definitions that read each other in a circle are resolved together: all ranges first, then all bodies.

use super::declare::{collect_names, definitions};
use super::{Resolver, Symbol};
use crate::program::circles::{components, grouped};
use crate::syntax::ast::{Ast, Definition};
use std::collections::{HashMap, HashSet};

/// Definitions that are resolved together, in the order of their lines.
pub(super) struct Unit<'a> {
    members: Vec<&'a Definition>,
    is_circle: bool,
}

/// The definitions of a program in an order in which they can be resolved: a circle after all that it uses of the lines
/// before its last one.
pub(super) fn units(ast: &Ast) -> Vec<Unit<'_>> {
    let all: Vec<&Definition> = definitions(ast).collect();
    let mut lines: HashMap<&str, usize> = HashMap::new();
    for (line, definition) in all.iter().enumerate() {
        lines.entry(&definition.name.text).or_insert(line);
    }
    let reads = |definition: &&Definition| {
        let mut names = HashSet::new();
        collect_names(&definition.body, &mut names);
        let mut reads: Vec<usize> = names.iter().filter_map(|name| lines.get(name.as_str()).copied()).collect();
        reads.sort();
        reads
    };
    let reads: Vec<Vec<usize>> = all.iter().map(reads).collect();
    let component = components(&reads);
    // A name that is used before its line, outside of a circle, is an error of its user.
    let earlier = |(line, reads): (usize, &Vec<usize>)| {
        let allowed = |read: &&usize| **read < line || component[**read] == component[line];
        reads.iter().filter(allowed).copied().collect::<Vec<_>>()
    };
    let allowed: Vec<Vec<usize>> = reads.iter().enumerate().map(earlier).collect();
    let unit = |lines: Vec<usize>| {
        let is_circle = lines.len() > 1 || reads[lines[0]].contains(&lines[0]);
        Unit { members: lines.into_iter().map(|line| all[line]).collect(), is_circle }
    };
    grouped(&allowed, &component).into_iter().map(unit).collect()
}

impl Resolver {
    /// Resolves a definition, or all of a circle.
    pub(super) fn define_unit(&mut self, unit: &Unit) {
        if let (false, [definition]) = (unit.is_circle, unit.members.as_slice()) {
            return self.define(definition);
        }
        let declared = |name: &str| matches!(self.symbols.get(name), Some(Symbol::Declared(_)));
        self.circle = unit.members.iter().map(|d| d.name.text.clone()).filter(|name| declared(name)).collect();
        let outlined: Vec<_> = unit.members.iter().map(|definition| self.outline(definition)).collect();
        for (definition, outline) in unit.members.iter().zip(outlined) {
            if let Some(outline) = outline {
                self.define_outlined(definition, outline);
            }
        }
        self.circle.clear();
    }
}
