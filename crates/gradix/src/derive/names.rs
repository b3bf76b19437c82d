//! Names for the indices of derivatives.

use crate::program::names::fresh_where;
use crate::program::{Affine, Atom, Definition, Expr, Program, TensorId};
use gradix_int::Int;
use std::collections::HashSet;

/// Names for the dimensions of an input: those of the indices that read them, where possible bare; all
/// distinct, and none of those to be `avoided`.
pub fn dimensions(program: &Program, tensor: TensorId, avoided: &dyn Fn(&str) -> bool) -> Vec<String> {
    let rank = program[tensor].rank;
    let mut bare: Vec<Option<String>> = vec![None; rank];
    let mut near: Vec<Option<String>> = vec![None; rank];
    for definition in &program.definitions {
        for id in program.exprs.postorder(definition.body) {
            let Expr::Access(read, subscripts) = &program.exprs[id] else { continue };
            if *read != tensor {
                continue;
            }
            for (dimension, subscript) in subscripts.iter().enumerate() {
                if let Some(position) = subscript.as_index() {
                    let name = &definition.indices[position].name;
                    let elsewhere = bare.iter().enumerate().any(|(d, n)| d != dimension && n.as_ref() == Some(name));
                    if bare[dimension].is_none() && !elsewhere {
                        bare[dimension] = Some(name.clone());
                    }
                }
                near[dimension] = near[dimension].take().or_else(|| leading(definition, subscript));
            }
        }
    }
    let taken: Vec<String> = bare.iter().flatten().cloned().collect();
    let near = near.into_iter().map(|name| name.filter(|n| !taken.contains(n)));
    distinct(bare.into_iter().zip(near).map(|(bare, near)| bare.or(near)).collect(), avoided)
}

/// The index of a subscript that derivation solves for: the last output with a unit coefficient, or the first of all.
fn leading(definition: &Definition, subscript: &Affine) -> Option<String> {
    let unit = |i: &usize| {
        let factor = subscript.coefficient(&Atom::Index(*i as u32));
        factor == Int::ONE || factor == Int::NEG_ONE
    };
    let order = (0..definition.rank).rev().chain((definition.rank..definition.indices.len()).rev());
    let solved = order.clone().find(unit);
    let mut first = None;
    subscript.visit_indices(&mut |i| first = first.or(Some(i)));
    solved.or(first).map(|i| definition.indices[i].name.clone())
}

/// The wanted names where they are free, letters elsewhere.
pub fn distinct(wanted: Vec<Option<String>>, avoided: &dyn Fn(&str) -> bool) -> Vec<String> {
    let preferred: HashSet<String> = wanted.iter().flatten().cloned().collect();
    let mut names: Vec<String> = Vec::new();
    for name in wanted {
        let used = |n: &str| names.iter().any(|known| known == n) || avoided(n);
        let free = name.filter(|n| !used(n));
        let name = free.unwrap_or_else(|| {
            let letters = ["i", "j", "k", "l", "m", "n", "p", "q", "r", "s", "t", "u", "v", "w"];
            let letter = letters.iter().find(|l| !used(l) && !preferred.contains(**l));
            letter.map_or_else(|| fresh_where("i", used), |l| l.to_string())
        });
        names.push(name);
    }
    names
}
