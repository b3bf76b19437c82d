//! Vectors in C: what they are made of, and what is done with them.

use super::library as lib;
use crate::emit::tree::{Callee, Snippet, Type, Value};
use crate::emit::values::Language;
use crate::nest::Real;
use crate::program::ReduceOp;
use crate::program::expr::Number;
use gradix_int::Int;

/// The vector types of GCC and Clang, with the functions of the [library](lib).
pub struct Vectors;

impl Language for Vectors {
    fn indices(&self, start: Value, step: &Int) -> Value {
        let iota = Callee::of("gx_iota", Type::Vector, &lib::IOTA).call([]);
        all(start.cast(Type::Real)) + Value::from(step).cast(Type::Real) * iota
    }

    fn load(&self, address: Value, step: Value, count: Option<&Value>) -> Value {
        load(address, step, count)
    }

    fn all(&self, number: Value) -> Value {
        all(number)
    }

    fn truth(&self, test: Value) -> Value {
        Callee::of("gx_truth", Type::Mask, &lib::MASKS).call([test])
    }

    fn select(&self, mask: Value, a: Value, b: Value) -> Value {
        Callee::of("gx_select", Type::Vector, &lib::SELECT).call([mask, a, b])
    }

    fn function(&self, name: &str, vector: bool) -> Callee {
        let snippet = Some(lib::function(name));
        match vector {
            true => Callee { name: format!("gx_{name}").into(), result: Type::Vector, snippet },
            false => Callee { name: format!("gx_{name}_1").into(), result: Type::Real, snippet },
        }
    }
}

/// The same number in all lanes.
pub fn all(number: Value) -> Value {
    Callee { name: "gx_all".into(), result: Type::Vector, snippet: None }.call([number])
}

/// A vector from memory.
pub fn load(address: Value, step: Value, count: Option<&Value>) -> Value {
    let of = |name, snippet| Callee::of(name, Type::Vector, snippet);
    match (step.is(1), count) {
        (true, None) => of("gx_load", &lib::MEMORY).call([address]),
        (true, Some(n)) => of("gx_load_n", &lib::PARTIAL).call([address, n.clone()]),
        (false, None) => of("gx_load_s", &lib::STRIDED).call([address, step]),
        (false, Some(n)) => of("gx_load_sn", &lib::STRIDED).call([address, step, n.clone()]),
    }
}

/// A vector to memory past the caches.
pub const STREAM: Callee = Callee::of("gx_stream", Type::Nothing, &lib::STREAM);

/// What comes after the last of those.
pub fn streamed() -> Value {
    Callee::of("gx_streamed", Type::Nothing, &lib::STREAM).call([])
}

/// Where a vector goes to.
pub struct Place {
    pub address: Value,
    pub step: Value,
    /// How many lanes are stored, if it is not all.
    pub count: Option<Value>,
    /// Whether it goes past the caches where it can.
    pub streamed: bool,
}

impl Place {
    /// Neighbours in memory.
    pub fn dense(address: Value, count: Option<Value>) -> Place {
        Place { address, step: 1.into(), count, streamed: false }
    }

    pub fn load(&self) -> Value {
        load(self.address.clone(), self.step.clone(), self.count.as_ref())
    }

    /// A vector to memory.
    pub fn store(self, value: Value) -> Value {
        let Place { address, step, count, streamed } = self;
        let of = |name, snippet| Callee::of(name, Type::Nothing, snippet);
        match (step.is(1), count) {
            (true, None) if streamed => STREAM.call([address, value]),
            (true, None) => of("gx_store", &lib::MEMORY).call([address, value]),
            (true, Some(n)) => of("gx_store_n", &lib::PARTIAL).call([address, value, n]),
            (false, None) => of("gx_store_s", &lib::STRIDED).call([address, step, value]),
            (false, Some(n)) => of("gx_store_sn", &lib::STRIDED).call([address, step, value, n]),
        }
    }
}

const WRITTEN_OUT: &str = "a nest that is verified has maxima and sums instead";

/// Combines an accumulator with a value; with a number of lanes, in the first ones only.
pub fn combine(op: ReduceOp, accumulator: &Value, value: Value, count: Option<&Value>) -> Value {
    let combined = match op {
        ReduceOp::Sum => accumulator + value,
        ReduceOp::Prod => accumulator * value,
        ReduceOp::Max | ReduceOp::Min => {
            Vectors.function(op.name(), accumulator.is_vector()).call([accumulator.clone(), value])
        }
        ReduceOp::LogSumExp => unreachable!("{WRITTEN_OUT}"),
    };
    let below = |n: &Value| Callee::of("gx_below", Type::Mask, &lib::MASKS).call([n.clone()]);
    match count {
        Some(n) => Vectors.select(below(n), combined, accumulator.clone()),
        None => combined,
    }
}

/// All lanes of several accumulators as one number.
pub fn total(op: ReduceOp, accumulators: &[Value]) -> Value {
    let first = accumulators[0].clone();
    let whole = accumulators[1..].iter().fold(first, |whole, next| combine(op, &whole, next.clone(), None));
    let name = match op {
        ReduceOp::Sum => "gx_hsum",
        ReduceOp::Prod => "gx_hprod",
        ReduceOp::Max => "gx_hmax",
        ReduceOp::Min => "gx_hmin",
        ReduceOp::LogSumExp => unreachable!("{WRITTEN_OUT}"),
    };
    Callee::of(name, Type::Real, &lib::REDUCE).call([whole])
}

/// What combines a tile with its target.
pub fn put(op: ReduceOp) -> Callee {
    let (name, snippet): (_, &'static Snippet) = match op {
        ReduceOp::Sum => ("gx_put_sum", &lib::PUT_SUM),
        ReduceOp::Prod => ("gx_put_prod", &lib::PUT_PROD),
        ReduceOp::Max => ("gx_put_max", &lib::PUT_MAX),
        ReduceOp::Min => ("gx_put_min", &lib::PUT_MIN),
        ReduceOp::LogSumExp => unreachable!("{WRITTEN_OUT}"),
    };
    Callee::of(name, Type::Nothing, snippet)
}

/// The value of an empty reduction.
pub fn neutral(op: ReduceOp, real: Real) -> Value {
    Value::Real(Number::new(op.neutral()), real)
}
