//! What the parts of a nest are called in C, and index expressions as values.

use super::integers::{floor_div, interleaved, larger, smaller};
use super::tree::{Operator, Type, Value};
use crate::nest::{Buffer, ByLoop, Kernel, LoopId, Nest, Scope};
use crate::program::{Affine, Atom, Constraint, ParamId, Range, Relation, TensorId, names, print};
use gradix_int::Int;
use std::collections::HashSet;
use std::fmt::Write;
use std::rc::Rc;

/// Names of sizes and buffers, the same in all kernels.
pub struct Common<'a> {
    nest: &'a Nest,
    params: Rc<[Value]>,
    buffers: Rc<[Value]>,
    strides: Rc<[Vec<Value>]>,
    taken: HashSet<String>,
}

/// What a kernel speaks of.
#[derive(Clone)]
pub struct Names<'a> {
    pub nest: &'a Nest,
    pub params: Rc<[Value]>,
    pub buffers: Rc<[Value]>,
    /// How many elements apart neighbours in each dimension of a buffer are: a number, or a name.
    pub strides: Rc<[Vec<Value>]>,
    /// What stands for each variable at the place where code is written.
    pub variables: ByLoop<Value>,
}

/// The arrays that the kernels of a nest are given, for the head of a file.
pub fn listed(nest: &Nest) -> impl Iterator<Item = String> + '_ {
    let touched = nest.touched();
    nest.buffer_ids().filter(move |buffer| touched.contains(buffer)).filter_map(|buffer| {
        let kind = match nest[buffer].scope {
            Scope::Input(_) => "input",
            Scope::Output(_) => "result",
            Scope::Run => "temporary",
            Scope::Local(_) => return None,
        };
        Some(format!("buffer[{}]   {}, {kind}", buffer.0, with_extents(nest, &nest[buffer])))
    })
}

/// A buffer as a program writes it: `x[N, M]`.
pub fn with_extents(nest: &Nest, buffer: &Buffer) -> String {
    let extents: Vec<String> = buffer.extents.iter().map(|e| print::affine(&nest.params, &[], e)).collect();
    format!("{}[{}]", buffer.name, extents.join(", "))
}

/// Words of C, and names that its headers or compilers may define as macros.
const C_WORDS: &str = "auto break case char const continue default do double else enum extern float for goto if inline \
    int long register restrict return short signed sizeof static struct switch typedef union unsigned void volatile \
    while bool true false complex imaginary asm typeof NULL INFINITY NAN SIZE_MAX PTRDIFF_MAX \
    INT64_MIN INT64_MAX EOF errno assert stdin stdout stderr unix linux";
/// Words of C++ besides.
const CPP_WORDS: &str = "alignas alignof and and_eq bitand bitor catch char8_t char16_t char32_t class compl concept \
    consteval constexpr constinit const_cast co_await co_return co_yield decltype delete dynamic_cast explicit export \
    friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public \
    reinterpret_cast requires static_assert static_cast template this thread_local throw try typeid typename using \
    virtual wchar_t xor xor_eq";
/// Names that the generated code uses itself, or functions that compilers know.
const OWN_WORDS: &str = "size buffer local begin end item first last sizes plan int64_t int32_t uint64_t uint32_t \
    uint8_t size_t memcpy memset malloc free calloc main y0 y1 yn j0 j1 jn gamma signgam";

/// Names of members of a struct, for C and C++.
pub fn members<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut taken: HashSet<String> =
        C_WORDS.split_whitespace().chain(CPP_WORDS.split_whitespace()).map(String::from).collect();
    names.into_iter().map(|name| names::fresh(&ascii(name), &mut taken)).collect()
}

impl<'a> Common<'a> {
    pub fn new(nest: &'a Nest) -> Self {
        let words = C_WORDS.split_whitespace().chain(OWN_WORDS.split_whitespace());
        let mut taken: HashSet<String> = words.map(String::from).collect();
        let mut name = |text: &str| names::fresh(&ascii(text), &mut taken);
        let params = nest.params.iter().map(|param| Value::name(&name(&param.name), Type::Whole)).collect();
        let names: Vec<String> = nest.buffers.iter().map(|buffer| name(&buffer.name)).collect();
        let named = || nest.buffers.iter().zip(&names);
        let buffers = named().map(|(buffer, name)| Value::name(name, pointer(buffer.scope))).collect();
        let strides = named().map(|(buffer, name)| strides(name, &buffer.extents)).collect();
        Common { nest, params, buffers, strides, taken }
    }

    /// Outside of kernels, where there are no variables.
    pub fn outside(&self) -> Names<'a> {
        self.with(ByLoop(Vec::new()))
    }

    pub fn of(&self, kernel: &Kernel) -> Names<'a> {
        let mut own: HashSet<String> = HashSet::new();
        let name = |text: &String| {
            let free = names::fresh_where(&ascii(text), |name| self.taken.contains(name) || own.contains(name));
            own.insert(free.clone());
            free
        };
        let variables = ["first", "last", "item"].map(String::from).into_iter();
        let variables = variables.chain(kernel.variables[3..].iter().map(name));
        self.with(ByLoop(variables.map(|name| Value::name(&name, Type::Whole)).collect()))
    }

    fn with(&self, variables: ByLoop<Value>) -> Names<'a> {
        let (params, buffers, strides) = (self.params.clone(), self.buffers.clone(), self.strides.clone());
        Names { nest: self.nest, params, buffers, strides, variables }
    }
}

fn pointer(scope: Scope) -> Type {
    match scope {
        Scope::Input(_) => Type::GIVEN_REALS.alone(),
        Scope::Output(_) | Scope::Run | Scope::Local(_) => Type::REALS.alone(),
    }
}

fn strides(name: &str, extents: &[Affine]) -> Vec<Value> {
    let stride = |dimension: usize| {
        let mut inner = extents[dimension + 1..].iter();
        match inner.try_fold(Int::ONE, |product, extent| Some(product * extent.as_constant()?)) {
            Some(number) => Value::Whole(number),
            None => Value::name(&format!("gx_{name}_{dimension}"), Type::Whole),
        }
    };
    (0..extents.len()).map(stride).collect()
}

impl Names<'_> {
    /// A sum of whole numbers times variables and sizes.
    pub fn affine(&self, affine: &Affine) -> Value {
        let mut sum: Option<Value> = None;
        let mut add = |value: Value, negative: bool| {
            sum = Some(match (sum.take(), negative) {
                (None, false) => value,
                (None, true) => -value,
                (Some(sum), false) => sum + value,
                (Some(sum), true) => sum - value,
            });
        };
        for (atom, factor) in affine.terms() {
            let (size, negative) = magnitude(factor);
            let atom = self.atom(atom);
            add(if size == Int::ONE { atom } else { Value::from(&size) * atom }, negative);
        }
        let (size, negative) = magnitude(affine.offset());
        if affine.terms().is_empty() {
            return Value::from(affine.offset());
        }
        if size != Int::ZERO {
            add(Value::Whole(size), negative);
        }
        sum.expect("there are terms")
    }

    fn atom(&self, atom: &Atom) -> Value {
        match atom {
            Atom::Index(v) => self.variables[LoopId(*v)].clone(),
            Atom::Param(ParamId(p)) => self.params[*p as usize].clone(),
            Atom::Floor(inner, c) => floor_div(self.affine(inner), c),
        }
    }

    /// The largest of the lower bounds.
    pub fn low(&self, range: &Range) -> Value {
        self.extreme(larger, &range.low)
    }

    /// The smallest of the upper bounds.
    pub fn high(&self, range: &Range) -> Value {
        self.extreme(smaller, &range.high)
    }

    /// The largest or smallest of bounds.
    pub fn extreme(&self, choose: fn(Value, Value) -> Value, bounds: &[Affine]) -> Value {
        let values = bounds.iter().rev().map(|bound| self.affine(bound));
        values.reduce(|last, next| choose(next, last)).expect("a range has bounds")
    }

    pub fn constraint(&self, constraint: &Constraint) -> Value {
        let affine = self.affine(&constraint.affine);
        match constraint.relation {
            Relation::NonNegative => affine.at_least(0),
            Relation::Zero => affine.equals(0),
        }
    }

    /// All constraints, if there are any.
    pub fn all(&self, constraints: &[Constraint]) -> Option<Value> {
        Value::joined(Operator::And, constraints.iter().map(|constraint| self.constraint(constraint)))
    }

    pub fn buffer(&self, buffer: TensorId) -> &Value {
        &self.buffers[buffer.0 as usize]
    }

    /// How many elements a buffer has for each value of its first dimensions.
    pub fn elements(&self, buffer: TensorId, dimensions: usize) -> Value {
        let extents = self.nest[buffer].extents[dimensions..].iter();
        Value::joined(Operator::Times, extents.map(|e| larger(0.into(), self.affine(e)))).unwrap_or(1.into())
    }

    fn stride(&self, buffer: TensorId, dimension: usize) -> Value {
        self.strides[buffer.0 as usize][dimension].clone()
    }

    /// The place of an element, in elements from the start of its buffer; `None` for the first.
    fn offset(&self, buffer: TensorId, subscripts: &[Affine]) -> Option<Value> {
        let places = subscripts.iter().enumerate().filter(|(_, s)| s.as_constant() != Some(&Int::ZERO));
        let parts = places.map(|(dimension, subscript)| {
            let (stride, place) = (self.stride(buffer, dimension), self.affine(subscript));
            let layout = self.nest[buffer].interleaved.filter(|_| dimension + 1 == subscripts.len());
            let place = layout.map_or(place.clone(), |layout| interleaved(place, layout));
            if stride.is(1) { place } else { place * stride }
        });
        Value::joined(Operator::Plus, parts)
    }

    /// The address of an element.
    pub fn address(&self, buffer: TensorId, subscripts: &[Affine]) -> Value {
        let start = self.buffer(buffer).clone();
        match self.offset(buffer, subscripts) {
            None => start,
            Some(offset) => start + offset,
        }
    }

    /// An element.
    pub fn element(&self, buffer: TensorId, subscripts: &[Affine]) -> Value {
        self.buffer(buffer).at(self.offset(buffer, subscripts).unwrap_or(0.into()))
    }

    /// How far apart the elements of an access are when a variable advances by 1.
    pub fn step(&self, buffer: TensorId, subscripts: &[Affine], variable: LoopId) -> Value {
        let factors = subscripts.iter().map(|subscript| subscript.step_of(variable)).enumerate();
        let parts = factors.filter(|(_, factor)| *factor != Int::ZERO).map(|(dimension, factor)| {
            let stride = self.stride(buffer, dimension);
            match (stride.is(1), factor == Int::ONE) {
                (true, _) => Value::Whole(factor),
                (false, true) => stride,
                (false, false) => Value::Whole(factor) * stride,
            }
        });
        Value::joined(Operator::Plus, parts).unwrap_or(0.into())
    }
}

/// A number without its sign, and whether that is negative.
fn magnitude(number: &Int) -> (Int, bool) {
    let negative = *number < Int::ZERO;
    (if negative { -number.clone() } else { number.clone() }, negative)
}

/// Letters, digits and `_` only.
fn ascii(text: &str) -> String {
    let mut plain = String::new();
    for c in text.chars() {
        match c.is_ascii_alphanumeric() || c == '_' {
            true => plain.push(c),
            false => drop(write!(plain, "u{:x}", c as u32)),
        }
    }
    // Names of two kinds belong to the generated code or to the compiler.
    if plain.starts_with("gx_") || plain.starts_with('_') { format!("n{plain}") } else { plain }
}
