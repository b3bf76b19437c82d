//! A small tree of C, typed: what emitters build, and [`print`](super::print) writes. CUDA's C++ has the same.
//!
//! Whatever is asked of code is asked of the tree: the type of a value, whether a step is the number 1, which functions
//! are called. Text is made once, at the end, and never looked at.

use crate::nest::Real;
use crate::program::expr::Number;
use gradix_int::Int;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::{Add, Div, Mul, Neg, Not, Sub};
use std::rc::Rc;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Type {
    /// `void`
    Nothing,
    /// `int`: a small number, or whether something holds.
    Int,
    /// `int64_t`
    Whole,
    /// `gx_t`: the number type of the file.
    Real,
    /// `gx_v`: one number in each lane.
    Vector,
    /// `gx_i`: all bits set or none in each lane.
    Mask,
    /// The address of the first of several; `alone` is `restrict`.
    Pointer { to: &'static Type, constant: bool, alone: bool },
    /// `gx_t *const *`: the arrays that a kernel is given.
    Arrays,
}

impl Type {
    /// Numbers that are read and written.
    pub const REALS: Type = Type::Pointer { to: &Type::Real, constant: false, alone: false };
    /// Numbers that are read.
    pub const GIVEN_REALS: Type = Type::Pointer { to: &Type::Real, constant: true, alone: false };
    /// Integers that are read.
    pub const GIVEN_WHOLES: Type = Type::Pointer { to: &Type::Whole, constant: true, alone: false };

    /// The same, where nothing else points to what it points to.
    pub fn alone(self) -> Type {
        match self {
            Type::Pointer { to, constant, .. } => Type::Pointer { to, constant, alone: true },
            other => other,
        }
    }

    /// Whether it counts things or points to them: sums are the same in any order.
    pub fn is_exact(self) -> bool {
        matches!(self, Type::Int | Type::Whole | Type::Pointer { .. })
    }

    /// What it points to.
    pub fn target(self) -> Type {
        match self {
            Type::Pointer { to, .. } => *to,
            Type::Arrays => Type::REALS,
            other => other,
        }
    }
}

/// What values are made with.
#[derive(Clone, Debug, PartialEq)]
pub enum Operator {
    Negative,
    Not,
    /// `~`: in every lane.
    Opposite,
    /// `*p`
    Held,
    Cast(Type),
    Times,
    Over,
    Remainder,
    Plus,
    Minus,
    Below,
    AtMost,
    AtLeast,
    Equals,
    Differs,
    /// `&`: in every lane.
    Meet,
    /// `|`: in every lane.
    Join,
    And,
    Or,
    /// `a ? b : c`
    Choice,
    /// `a[b]`
    Element,
    Call(Callee),
}

/// An expression of C.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Whole(Int),
    /// A number of the file's type.
    Real(Number, Real),
    /// A variable, a constant, an array.
    Name(Rc<str>, Type),
    /// Made of others.
    Made(Operator, Vec<Value>),
}

/// What is called.
#[derive(Clone, Debug, PartialEq)]
pub struct Callee {
    pub name: Cow<'static, str>,
    pub result: Type,
    /// Where the library defines it.
    pub snippet: Option<&'static Snippet>,
}

/// A piece of C text that files carry with them if something needs it.
#[derive(Debug)]
pub struct Snippet {
    /// What it is called; no two have the same name.
    pub name: &'static str,
    /// The text itself.
    pub text: &'static str,
    /// What it uses, besides what is always there.
    pub needs: &'static [&'static Snippet],
}

impl PartialEq for Snippet {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// A statement of C.
#[derive(Clone, Debug, PartialEq)]
pub enum Code {
    /// `const kind name[length] = value;`
    Declare { name: Value, constant: bool, length: Option<Value>, value: Option<Value> },
    /// `__shared__ kind name[length];`: memory of a block of threads.
    Shared { name: Value, length: Value },
    /// `a = b;`
    Assign(Value, Value),
    /// `a += b;`
    Advance(Value, Value),
    /// A call.
    Do(Value),
    /// `(void)a;`: nothing is wrong if it is not used.
    Mention(Value),
    /// `continue;`
    Continue,
    /// Statements under a head; the second are those after `else`.
    Under(Head, Vec<Code>, Vec<Code>),
}

/// What statements stand under.
#[derive(Clone, Debug, PartialEq)]
pub enum Head {
    /// `{ … }`
    Block,
    /// `if (test)`
    If(Value),
    /// `for (int64_t a = b, …; test; advance, …)`
    For { start: Vec<(Value, Value)>, test: Value, advance: Vec<Code>, unrolled: bool },
    /// `#ifdef name`
    IfDefined(&'static str),
}

/// A function that returns nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Routine {
    pub doc: Vec<String>,
    pub name: String,
    /// Whether the file keeps it to itself; others are declared before they are defined.
    pub own: bool,
    pub parameters: Vec<Value>,
    pub body: Vec<Code>,
}

impl Callee {
    /// A function of the library.
    pub const fn of(name: &'static str, result: Type, snippet: &'static Snippet) -> Callee {
        Callee { name: Cow::Borrowed(name), result, snippet: Some(snippet) }
    }

    /// A function that the compiler knows, or the file has itself.
    pub const fn known(name: Cow<'static, str>) -> Callee {
        Callee { name, result: Type::Nothing, snippet: None }
    }

    pub fn call<const N: usize>(self, arguments: [Value; N]) -> Value {
        Value::Made(Operator::Call(self), arguments.into())
    }
}

impl Value {
    pub fn name(name: &str, kind: Type) -> Value {
        Value::Name(name.into(), kind)
    }

    /// How many lanes a vector has.
    pub fn width() -> Value {
        Value::name("GX_W", Type::Whole)
    }

    /// Its type.
    pub fn kind(&self) -> Type {
        match self {
            Value::Whole(_) => Type::Whole,
            Value::Real(..) => Type::Real,
            Value::Name(_, kind) => *kind,
            Value::Made(operator, operands) => operator.kind(operands),
        }
    }

    pub fn is_vector(&self) -> bool {
        self.kind() == Type::Vector
    }

    /// Whether it is this number.
    pub fn is(&self, number: i64) -> bool {
        matches!(self, Value::Whole(value) if *value == Int::from(number))
    }

    pub fn at(&self, place: impl Into<Value>) -> Value {
        Value::Made(Operator::Element, vec![self.clone(), place.into()])
    }

    /// What stands at an address.
    pub fn held(self) -> Value {
        Value::Made(Operator::Held, vec![self])
    }

    pub fn opposite(self) -> Value {
        Value::Made(Operator::Opposite, vec![self])
    }

    pub fn cast(self, kind: Type) -> Value {
        Value::Made(Operator::Cast(kind), vec![self])
    }

    /// Two values with an operator between them; a whole number that changes nothing is left out.
    pub fn with(self, operator: Operator, other: impl Into<Value>) -> Value {
        let other = other.into();
        match operator {
            Operator::Plus if self.is(0) => other,
            Operator::Plus | Operator::Minus if other.is(0) => self,
            Operator::Times if self.is(1) || other.is(0) => other,
            Operator::Times | Operator::Over if self.is(0) || other.is(1) => self,
            _ => Value::Made(operator, vec![self, other]),
        }
    }

    /// `self ? yes : no`
    pub fn choose(&self, yes: impl Into<Value>, no: impl Into<Value>) -> Value {
        Value::Made(Operator::Choice, vec![self.clone(), yes.into(), no.into()])
    }

    /// Several, with an operator between them.
    pub fn joined(operator: Operator, all: impl IntoIterator<Item = Value>) -> Option<Value> {
        all.into_iter().reduce(|first, next| first.with(operator.clone(), next))
    }

    /// Visits it and all that it is made of.
    pub fn visit(&self, visit: &mut dyn FnMut(&Value)) {
        visit(self);
        if let Value::Made(_, operands) = self {
            operands.iter().for_each(|value| value.visit(visit));
        }
    }
}

/// Other names for some names.
pub type Renamed = HashMap<Rc<str>, Rc<str>>;

impl Value {
    pub fn renamed(&self, names: &Renamed) -> Value {
        match self {
            Value::Whole(_) | Value::Real(..) => self.clone(),
            Value::Name(name, kind) => Value::Name(names.get(name).unwrap_or(name).clone(), *kind),
            Value::Made(operator, operands) => {
                Value::Made(operator.clone(), operands.iter().map(|value| value.renamed(names)).collect())
            }
        }
    }
}

impl Code {
    pub fn renamed(&self, names: &Renamed) -> Code {
        let new = |value: &Value| value.renamed(names);
        let all = |code: &[Code]| code.iter().map(|code| code.renamed(names)).collect();
        match self {
            Code::Declare { name, constant, length, value } => {
                let (length, value) = (length.as_ref().map(new), value.as_ref().map(new));
                Code::Declare { name: new(name), constant: *constant, length, value }
            }
            Code::Shared { name, length } => Code::Shared { name: new(name), length: new(length) },
            Code::Assign(a, b) => Code::Assign(new(a), new(b)),
            Code::Advance(a, b) => Code::Advance(new(a), new(b)),
            Code::Do(value) => Code::Do(new(value)),
            Code::Mention(value) => Code::Mention(new(value)),
            Code::Continue => Code::Continue,
            Code::Under(head, body, otherwise) => Code::Under(head.renamed(names), all(body), all(otherwise)),
        }
    }
}

impl Head {
    fn renamed(&self, names: &Renamed) -> Head {
        match self {
            Head::Block | Head::IfDefined(_) => self.clone(),
            Head::If(test) => Head::If(test.renamed(names)),
            Head::For { start, test, advance, unrolled } => Head::For {
                start: start.iter().map(|(name, from)| (name.renamed(names), from.renamed(names))).collect(),
                test: test.renamed(names),
                advance: advance.iter().map(|code| code.renamed(names)).collect(),
                unrolled: *unrolled,
            },
        }
    }
}

impl Operator {
    fn kind(&self, operands: &[Value]) -> Type {
        use Operator::{
            AtLeast, AtMost, Below, Differs, Equals, Join, Meet, Minus, Negative, Opposite, Over, Plus, Remainder,
            Times,
        };
        let first = operands.first().map_or(Type::Nothing, Value::kind);
        let vector = operands.iter().any(Value::is_vector);
        match self {
            Operator::Call(callee) => callee.result,
            Operator::Cast(kind) => *kind,
            Operator::Choice => operands[1].kind(),
            Operator::Element | Operator::Held => first.target(),
            Times | Over | Plus | Minus if vector => Type::Vector,
            Times | Over | Remainder | Plus | Minus | Meet | Join | Negative | Opposite => first,
            Below | AtMost | AtLeast | Equals | Differs if vector => Type::Mask,
            Below | AtMost | AtLeast | Equals | Differs | Operator::And | Operator::Or | Operator::Not => Type::Int,
        }
    }
}

impl Code {
    /// Visits all values in it.
    pub fn visit(&self, visit: &mut dyn FnMut(&Value)) {
        match self {
            Code::Declare { length, value, .. } => length.iter().chain(value).for_each(|value| value.visit(visit)),
            Code::Assign(a, b) | Code::Advance(a, b) => [a, b].into_iter().for_each(|value| value.visit(visit)),
            Code::Do(value) | Code::Mention(value) | Code::Shared { length: value, .. } => value.visit(visit),
            Code::Continue => {}
            Code::Under(head, body, otherwise) => {
                head.visit(visit);
                body.iter().chain(otherwise).for_each(|code| code.visit(visit));
            }
        }
    }
}

impl Head {
    fn visit(&self, visit: &mut dyn FnMut(&Value)) {
        match self {
            Head::Block | Head::IfDefined(_) => {}
            Head::If(test) => test.visit(visit),
            Head::For { start, test, advance, .. } => {
                start.iter().for_each(|(_, value)| value.visit(visit));
                test.visit(visit);
                advance.iter().for_each(|code| code.visit(visit));
            }
        }
    }
}

impl From<&Value> for Value {
    fn from(value: &Value) -> Value {
        value.clone()
    }
}

impl From<&Int> for Value {
    fn from(value: &Int) -> Value {
        Value::Whole(value.clone())
    }
}

macro_rules! whole_numbers {
    ($($number:ty)*) => {$(
        impl From<$number> for Value {
            fn from(value: $number) -> Value {
                Value::Whole(value.into())
            }
        }
    )*};
}

whole_numbers! { i32 i64 usize }

macro_rules! operators {
    ($($trait:ident $method:ident $operator:ident;)*) => {$(
        impl<T: Into<Value>> $trait<T> for Value {
            type Output = Value;
            fn $method(self, other: T) -> Value {
                self.with(Operator::$operator, other)
            }
        }
        impl<T: Into<Value>> $trait<T> for &Value {
            type Output = Value;
            fn $method(self, other: T) -> Value {
                self.clone().with(Operator::$operator, other)
            }
        }
    )*};
}

operators! {
    Add add Plus;
    Sub sub Minus;
    Mul mul Times;
    Div div Over;
}

macro_rules! comparisons {
    ($($method:ident $operator:ident;)*) => {
        impl Value {$(
            pub fn $method(&self, other: impl Into<Value>) -> Value {
                self.clone().with(Operator::$operator, other)
            }
        )*}
    };
}

comparisons! {
    at_most AtMost;
    at_least AtLeast;
    below Below;
    equals Equals;
    differs Differs;
    and And;
}

impl Neg for Value {
    type Output = Value;
    fn neg(self) -> Value {
        Value::Made(Operator::Negative, vec![self])
    }
}

impl Not for Value {
    type Output = Value;
    fn not(self) -> Value {
        Value::Made(Operator::Not, vec![self])
    }
}
