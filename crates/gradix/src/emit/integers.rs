//! Whole numbers in generated code: what its index expressions call.

use super::tree::{Callee, Snippet, Type, Value};
use crate::nest::Interleaved;
use gradix_int::Int;

/// Defines the functions of this module.
pub static INTEGERS: Snippet = Snippet { name: "integers.c", text: include_str!("integers.c"), needs: &[] };

/// Defines what only nests for GPUs call.
pub static INTERLEAVED: Snippet =
    Snippet { name: "interleaved.c", text: include_str!("interleaved.c"), needs: &[&INTEGERS] };

/// The larger of two.
pub fn larger(a: Value, b: Value) -> Value {
    Callee::of("gx_larger", Type::Whole, &INTEGERS).call([a, b])
}

/// The smaller of two.
pub fn smaller(a: Value, b: Value) -> Value {
    Callee::of("gx_smaller", Type::Whole, &INTEGERS).call([a, b])
}

/// Where an element of a buffer on a GPU lies whose neighbours are apart.
pub fn interleaved(place: Value, Interleaved { apart, beside }: Interleaved) -> Value {
    Callee::of("gx_interleaved", Type::Whole, &INTERLEAVED).call([place, apart.into(), beside.into()])
}

/// `⌊a / c⌋`
pub fn floor_div(a: Value, c: &Int) -> Value {
    Callee::of("gx_floor_div", Type::Whole, &INTEGERS).call([a, c.into()])
}
