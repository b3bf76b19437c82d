//! Names for the indices of derivatives.

use crate::program::names::fresh_where;
use crate::program::{Affine, Atom, Definition, Expr, Program, TensorId};
use gradix_int::Int;
use std::collections::HashSet;

/// Names for the dimensions of an input: those of the indices that read them, where possible bare; all
/// distinct, and none of those to be `avoided`.
pub fn dimensions(
    program: &Program,
    given: &[Definition],
    tensor: TensorId,
    avoided: &dyn Fn(&str) -> bool,
) -> Vec<String> {
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
    distinct(bare.into_iter().zip(near).map(|(bare, near)| bare.or(near)).collect(), given, avoided)
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

/// The wanted names where they are free. Where one is not, the next letter, if it is the name of no index of the definitions
/// `given`, which may run over something else; otherwise the wanted name with a number. Letters where none is wanted.
pub fn distinct(wanted: Vec<Option<String>>, given: &[Definition], avoided: &dyn Fn(&str) -> bool) -> Vec<String> {
    let preferred: HashSet<String> = wanted.iter().flatten().cloned().collect();
    let is_index = |name: &str| given.iter().any(|definition| definition.indices.iter().any(|i| i.name == name));
    let mut names: Vec<String> = Vec::new();
    for name in wanted {
        let used = |n: &str| names.iter().any(|known| known == n) || avoided(n);
        let is_free = |n: &&str| !used(n) && !preferred.contains(*n);
        let letters = ["i", "j", "k", "l", "m", "n", "p", "q", "r", "s", "t", "u", "v", "w"];
        let name = match name {
            Some(name) if !used(&name) => name,
            Some(name) => match next_letter(&name).filter(|next| is_free(&next.as_str()) && !is_index(next)) {
                Some(next) => next,
                None => fresh_where(&name, |n| !is_free(&n)),
            },
            None => letters.iter().find(|l| is_free(l)).map_or_else(|| fresh_where("i", used), |l| l.to_string()),
        };
        names.push(name);
    }
    names
}

/// `j` for `i`.
fn next_letter(name: &str) -> Option<String> {
    match name.as_bytes() {
        [letter @ b'a'..=b'y'] => Some(char::from(letter + 1).to_string()),
        _ => None,
    }
}
