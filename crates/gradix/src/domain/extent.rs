//! Sizes that are the smallest or largest of others.

use crate::domain::system;
use crate::program::{Affine, Atom, Constraint, Param, ParamId, ParamKind, Program, distinct, flattened};
use gradix_int::Int;

/// The smallest (or largest) of several expressions in params: one of them if that is always the one,
/// otherwise a size of its own.
pub fn extent(program: &mut Program, parts: Vec<Affine>, smallest: bool) -> Affine {
    // Only that sizes are not too small counts, so that the form does not depend on the order of declarations.
    let is_lower = |fact: &&Constraint| matches!(fact.affine.terms(), [(Atom::Param(_), c)] if *c > Int::ZERO);
    let context: Vec<Constraint> = program.facts.iter().filter(is_lower).cloned().collect();
    let mut kept = distinct(parts.into_iter().flat_map(|part| flattened(&program.params, &part, smallest)));
    for position in (0..kept.len()).rev() {
        let beaten = |other: &Affine| {
            let (low, high) = if smallest { (other, &kept[position]) } else { (&kept[position], other) };
            system::implies(&context, &Constraint::at_most(low.clone(), high.clone()))
        };
        if kept.len() > 1 && kept.iter().enumerate().any(|(i, other)| i != position && beaten(other)) {
            kept.remove(position);
        }
    }
    if kept.len() == 1 {
        return kept.remove(0);
    }
    let kind = if smallest { ParamKind::Smallest(kept) } else { ParamKind::Largest(kept) };
    // Of `max(-2, 1 - N)` and `-min(2, N - 1)`, it is the second.
    match kind.opposite().filter(|_| kind.rising() < 0) {
        Some(opposite) => -derived(program, opposite),
        None => derived(program, kind),
    }
}

/// The size of this kind, a new one if there is none.
fn derived(program: &mut Program, mut kind: ParamKind) -> Affine {
    // Sizes that follow from others are numbered as they come up: what mentions one is ordered by its text.
    kind.parts_mut().sort_by_cached_key(|part| match mentions_derived_size(program, part) {
        true => (Some(crate::program::print::affine(&program.params, &[], part)), part.clone()),
        false => (None, part.clone()),
    });
    let parts: Vec<String> =
        kind.parts().iter().map(|p| crate::program::print::affine(&program.params, &[], p)).collect();
    if let Some(known) = program.params.iter().position(|p| p.kind == kind) {
        return Affine::param(ParamId(known as u32));
    }
    let word = if matches!(kind, ParamKind::Smallest(_)) { "min" } else { "max" };
    let name = format!("{word}({})", parts.join(", "));
    program.params.push(Param { name, kind });
    Affine::param(ParamId(program.params.len() as u32 - 1))
}

/// Whether an expression mentions a size that is the smallest or largest of others.
pub fn mentions_derived_size(program: &Program, affine: &Affine) -> bool {
    let mut found = false;
    affine.visit_atoms(&mut |atom| {
        found |= matches!(atom, Atom::Param(ParamId(p)) if program.params[*p as usize].kind != ParamKind::Free);
    });
    found
}
