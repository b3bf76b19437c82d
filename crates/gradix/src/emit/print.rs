//! The tree as C text: indented, with as few parentheses as its reader and the compiler's warnings want.

use super::tree::{Code, Head, Operator, Prefix, Routine, Type, Value};
use crate::nest::Real;
use crate::program::expr::Number;
use gradix_int::Int;
use std::fmt::Write;

/// A function, after an empty line.
pub fn routine(routine: &Routine) -> String {
    let Routine { doc, name, own, parameters, body } = routine;
    let mut printer = Printer::default();
    printer.line(format!("\n/* {} */", doc.join("\n * ")));
    let parameters: Vec<String> = parameters.iter().map(|name| declared(name, false)).collect();
    let (start, between) = if *own { ("static GX_NOINLINE ", ",\n    ") } else { ("", ", ") };
    let head = format!("{start}void {name}({})", parameters.join(between));
    if !own {
        printer.line(format!("{head};"));
    }
    printer.line(head);
    printer.under("{", body);
    printer.line("}");
    printer.text
}

/// An expression.
pub fn value(value: &Value) -> String {
    match value {
        Value::Whole(number) => integer(number),
        Value::Real(number, real) => literal(*number, *real),
        Value::Name(name, _) => name.to_string(),
        Value::Prefix(prefix, a) => format!("{}{}", sign(*prefix), within(a, Strength::of(value))),
        Value::Binary(operator, both) => binary(*operator, &both[0], &both[1]),
        Value::Choice(all) => {
            let [test, yes, no] = &**all;
            format!("{} ? {} : {}", within(test, Strength::Binary(Operator::Or)), self::value(yes), self::value(no))
        }
        Value::Element(both) => format!("{}[{}]", within(&both[0], Strength::Whole), self::value(&both[1])),
        Value::Cast(kind, a) => format!("({}){}", type_name(*kind), within(a, Strength::Prefix)),
        Value::Call(callee, arguments) => {
            format!("{}({})", callee.name, arguments.iter().map(self::value).collect::<Vec<_>>().join(", "))
        }
    }
}

/// How strongly the parts of a value hold together.
#[derive(Clone, Copy, PartialEq)]
enum Strength {
    Whole,
    Prefix,
    Binary(Operator),
    Choice,
}

impl Strength {
    fn of(value: &Value) -> Strength {
        match value {
            Value::Whole(number) if *number < Int::ZERO => Strength::Choice,
            Value::Whole(_) | Value::Name(..) | Value::Element(_) | Value::Call(..) => Strength::Whole,
            Value::Real(number, _) if number.value().is_sign_negative() => Strength::Choice,
            Value::Real(..) => Strength::Whole,
            // The sign of a product may be that of its first factor.
            Value::Prefix(Prefix::Negative, a) => match **a {
                Value::Binary(Operator::Times, _) => Strength::Binary(Operator::Times),
                _ => Strength::Prefix,
            },
            Value::Prefix(..) | Value::Cast(..) => Strength::Prefix,
            Value::Binary(operator, _) => Strength::Binary(*operator),
            Value::Choice(_) => Strength::Choice,
        }
    }

    /// The larger, the stronger.
    fn level(self) -> usize {
        match self {
            Strength::Whole => 10,
            Strength::Prefix => 9,
            Strength::Binary(Operator::Times | Operator::Over) => 8,
            Strength::Binary(Operator::Plus | Operator::Minus) => 7,
            Strength::Binary(Operator::Below | Operator::AtMost | Operator::AtLeast) => 6,
            Strength::Binary(Operator::Equals | Operator::Differs) => 5,
            Strength::Binary(Operator::Meet) => 4,
            Strength::Binary(Operator::Join) => 3,
            Strength::Binary(Operator::And) => 2,
            Strength::Binary(Operator::Or) => 1,
            Strength::Choice => 0,
        }
    }
}

/// An operand of something that holds together this strongly; a sign before a sign has parentheses between them.
fn within(operand: &Value, strength: Strength) -> String {
    let weaker = Strength::of(operand).level() < strength.level();
    let signs = strength == Strength::Prefix && matches!(operand, Value::Prefix(..));
    parenthesised(operand, weaker || signs)
}

fn parenthesised(operand: &Value, needed: bool) -> String {
    let text = value(operand);
    if needed { format!("({text})") } else { text }
}

/// Whole numbers are multiplied and divided without spaces, and added from left to right. Where one kind of test is part
/// of another, parentheses help.
fn binary(operator: Operator, a: &Value, b: &Value) -> String {
    let own = Strength::Binary(operator);
    let logical = matches!(operator, Operator::Meet | Operator::Join | Operator::And | Operator::Or);
    let mixed = |operand: &Value| match Strength::of(operand) {
        Strength::Binary(inner) => logical && inner != operator && Strength::Binary(inner).level() < 5,
        Strength::Whole | Strength::Prefix | Strength::Choice => false,
    };
    let left = parenthesised(a, Strength::of(a).level() < own.level() || mixed(a));
    let in_order = operator == Operator::Plus && b.kind().is_exact();
    let stronger = Strength::of(b).level() > own.level() || in_order && Strength::of(b).level() == own.level();
    let right = parenthesised(b, !stronger || mixed(b));
    let tight = matches!(operator, Operator::Times | Operator::Over) && a.kind() == Type::Whole;
    if tight { format!("{left}{}{right}", symbol(operator)) } else { format!("{left} {} {right}", symbol(operator)) }
}

fn symbol(operator: Operator) -> &'static str {
    match operator {
        Operator::Times => "*",
        Operator::Over => "/",
        Operator::Plus => "+",
        Operator::Minus => "-",
        Operator::Below => "<",
        Operator::AtMost => "<=",
        Operator::AtLeast => ">=",
        Operator::Equals => "==",
        Operator::Differs => "!=",
        Operator::Meet => "&",
        Operator::Join => "|",
        Operator::And => "&&",
        Operator::Or => "||",
    }
}

fn sign(prefix: Prefix) -> &'static str {
    match prefix {
        Prefix::Negative => "-",
        Prefix::Not => "!",
        Prefix::Opposite => "~",
        Prefix::At => "*",
    }
}

fn type_name(kind: Type) -> String {
    match kind {
        Type::Nothing => "void".into(),
        Type::Int => "int".into(),
        Type::Whole => "int64_t".into(),
        Type::Real => "gx_t".into(),
        Type::Vector => "gx_v".into(),
        Type::Mask => "gx_i".into(),
        Type::Arrays => "gx_t *const *".into(),
        Type::Pointer { to, constant, alone } => {
            format!(
                "{}{} *{}",
                if constant { "const " } else { "" },
                type_name(*to),
                if alone { "restrict " } else { "" }
            )
        }
    }
}

/// A name after its type.
fn declared(name: &Value, constant: bool) -> String {
    let (kind, name) = (name.kind(), value(name));
    match kind {
        Type::Pointer { .. } | Type::Arrays => {
            format!("{}{}{name}", type_name(kind), if constant { "const " } else { "" })
        }
        _ => format!("{}{} {name}", if constant { "const " } else { "" }, type_name(kind)),
    }
}

/// A whole number as C writes it.
fn integer(value: &Int) -> String {
    match i64::try_from(value) {
        Ok(i64::MIN) => "INT64_MIN".into(),
        Ok(value) if value.unsigned_abs() > i32::MAX as u64 => format!("INT64_C({value})"),
        _ => value.to_string(),
    }
}

/// A number as C writes it.
fn literal(number: Number, real: Real) -> String {
    let single = real == Real::F32;
    let value = if single { f64::from(number.value() as f32) } else { number.value() };
    if value.is_nan() {
        return "GX_NAN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "GX_INF".into() } else { "-GX_INF".into() };
    }
    if single { format!("{:?}f", value as f32) } else { format!("{value:?}") }
}

/// Indented lines.
#[derive(Default)]
struct Printer {
    text: String,
    depth: usize,
}

impl Printer {
    fn line(&mut self, line: impl AsRef<str>) {
        let _ = writeln!(self.text, "{}{}", "    ".repeat(self.depth), line.as_ref());
    }

    /// A line that ends in `{`, and what is inside.
    fn under(&mut self, line: &str, body: &[Code]) {
        self.line(line);
        self.depth += 1;
        body.iter().for_each(|code| self.code(code));
        self.depth -= 1;
    }

    fn code(&mut self, code: &Code) {
        match code {
            Code::Under(head, body, otherwise) => self.compound(head, body, otherwise),
            Code::Declare { .. }
            | Code::Assign(..)
            | Code::Advance(..)
            | Code::Do(_)
            | Code::Mention(_)
            | Code::Continue => self.line(format!("{};", simple(code))),
        }
    }

    fn compound(&mut self, head: &Head, body: &[Code], otherwise: &[Code]) {
        if let Head::IfDefined(name) = head {
            self.line(format!("#ifdef {name}"));
            body.iter().for_each(|code| self.code(code));
            return self.line("#endif");
        }
        if matches!(head, Head::For { unrolled: true, .. }) {
            self.line("GX_UNROLL");
        }
        self.under(&format!("{}{{", head_text(head)), body);
        if !otherwise.is_empty() {
            self.under("} else {", otherwise);
        }
        self.line("}");
    }
}

fn head_text(head: &Head) -> String {
    match head {
        Head::Block | Head::IfDefined(_) => String::new(),
        Head::If(test) => format!("if ({}) ", value(test)),
        Head::For { start, test, advance, .. } => {
            let kind = start.first().map(|(name, _)| format!("{} ", type_name(name.kind()))).unwrap_or_default();
            let start: Vec<String> =
                start.iter().map(|(name, from)| format!("{} = {}", value(name), value(from))).collect();
            let advance: Vec<String> = advance.iter().map(simple).collect();
            format!("for ({kind}{}; {}; {}) ", start.join(", "), value(test), advance.join(", "))
        }
    }
}

/// A statement that is not made of others.
fn simple(code: &Code) -> String {
    match code {
        Code::Declare { name, constant, length, value: start } => {
            let length = length.as_ref().map(|length| format!("[{}]", value(length))).unwrap_or_default();
            let start = start.as_ref().map(|start| format!(" = {}", value(start))).unwrap_or_default();
            format!("{}{length}{start}", element_declared(name, *constant, !length.is_empty()))
        }
        Code::Assign(place, new) => format!("{} = {}", value(place), value(new)),
        Code::Advance(place, by) if by.is(1) => format!("{}++", value(place)),
        Code::Advance(place, by) => format!("{} += {}", value(place), value(by)),
        Code::Do(call) => value(call),
        Code::Mention(name) => format!("(void){}", value(name)),
        Code::Continue => "continue".into(),
        Code::Under(..) => unreachable!("statements under a head are printed line by line"),
    }
}

/// A declaration: of an array by the type of its elements.
fn element_declared(name: &Value, constant: bool, array: bool) -> String {
    match name {
        Value::Name(text, kind) if array => declared(&Value::Name(text.clone(), kind.target()), constant),
        _ => declared(name, constant),
    }
}
