//! Results that are nothing but a recurrence: its steps are stored where the result is.
//!
//! ```text
//! dh[t] = dy[t] + a * dh[t + 1];   dx[t] = dh[t]                dx[t] = dy[t] + a * dx[t + 1]
//! ```

use crate::program::expr::{Renamed, Rewriter};
use crate::program::{Definition, Expr, Program, TensorId, TensorKind, circles};
use crate::simplify;

/// Makes such recurrences the results that they are copied to. The values are the same, and so are the extents.
pub fn in_place(whole: &mut Program) {
    let recurrent = circles::recurrent(whole);
    for result in whole.outputs.clone() {
        let source = whole.definition_of(result).and_then(|definition| copied(whole, definition));
        if let Some(source) = source.filter(|source| recurrent.contains_key(source)) {
            exchange(whole, source, result);
        }
    }
    simplify::settle::drop_unread(whole);
}

/// What a definition has a copy of, if it is no result itself.
fn copied(whole: &Program, definition: &Definition) -> Option<TensorId> {
    let Expr::Access(source, subscripts) = &whole.exprs[definition.body] else { return None };
    let is_whole = definition.reduction.is_none()
        && definition.conditions.is_empty()
        && *subscripts == definition.outputs()
        && whole[*source].kind == TensorKind::Defined
        && whole[*source].extents == whole[definition.tensor].extents;
    (is_whole && !whole.outputs.contains(source)).then_some(*source)
}

/// The definitions of both change places: the result is computed, and what it was a copy of is one of it.
fn exchange(whole: &mut Program, source: TensorId, result: TensorId) {
    for definition in &mut whole.definitions {
        let mut rules = Renamed { from: source, to: result };
        definition.body = Rewriter::default().rewrite(&mut whole.exprs, definition.body, &mut rules);
        definition.tensor = match definition.tensor {
            tensor if tensor == source => result,
            tensor if tensor == result => source,
            tensor => tensor,
        };
    }
}
