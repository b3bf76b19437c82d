//! The tree as C text: indented, with as few parentheses as its reader and the compiler's warnings want.

use super::tree::{Code, Head, Operator, Routine, Type, Value};
use crate::nest::Real;
use crate::program::expr::Number;
use gradix_int::Int;
use std::fmt::Write;

/// A function, after an empty line.
pub fn routine(routine: &Routine) -> String {
    let Routine { doc, own, body, .. } = routine;
    let mut printer = Printer::default();
    printer.line(format!("\n/* {} */", doc.join("\n * ")));
    if !own {
        printer.line(format!("{};", head(routine)));
    }
    printer.line(head(routine));
    printer.under("{", body);
    printer.line("}");
    printer.text
}

/// A function that is in another file.
pub fn declaration(routine: &Routine) -> String {
    format!("\n{};\n", head(routine))
}

fn head(routine: &Routine) -> String {
    let Routine { name, own, parameters, .. } = routine;
    let parameters: Vec<String> = parameters.iter().map(|name| declared(name, false)).collect();
    let (start, between) = if *own { ("static GX_NOINLINE ", ",\n    ") } else { ("", ", ") };
    format!("{start}void {name}({})", parameters.join(between))
}

/// An expression.
pub fn value(value: &Value) -> String {
    match value {
        Value::Whole(number) => integer(number),
        Value::Real(number, real) => literal(*number, *real),
        Value::Name(name, _) => name.to_string(),
        Value::Made(operator, operands) => made(operator, operands, strength(value)),
    }
}

fn made(operator: &Operator, operands: &[Value], own: usize) -> String {
    let (sign, _) = written(operator);
    match (operator, operands) {
        (Operator::Call(callee), _) => {
            format!("{}({})", callee.name, operands.iter().map(value).collect::<Vec<_>>().join(", "))
        }
        (Operator::Element, [a, b]) => format!("{}[{}]", within(a, own), value(b)),
        (Operator::Cast(kind), [a]) => format!("({}){}", type_name(*kind), within(a, own)),
        (Operator::Choice, [test, yes, no]) => format!("{} ? {} : {}", within(test, own + 1), value(yes), value(no)),
        // A sign before a sign has parentheses between them.
        (_, [a]) => format!("{sign}{}", parenthesised(a, strength(a) < own || strength(a) == SIGN)),
        (_, [a, b]) => binary(operator, a, b, own),
        _ => unreachable!("operators have one or two operands"),
    }
}

/// How strongly the operands of something are held together by a sign before it.
const SIGN: usize = 9;

/// How an operator is written, and how strongly it holds its operands together.
fn written(operator: &Operator) -> (&'static str, usize) {
    match operator {
        Operator::Element | Operator::Call(_) => ("", 10),
        Operator::Cast(_) => ("", SIGN),
        Operator::Negative => ("-", SIGN),
        Operator::Not => ("!", SIGN),
        Operator::Opposite => ("~", SIGN),
        Operator::Held => ("*", SIGN),
        Operator::Times => ("*", 8),
        Operator::Over => ("/", 8),
        Operator::Plus => ("+", 7),
        Operator::Minus => ("-", 7),
        Operator::Below => ("<", 6),
        Operator::AtMost => ("<=", 6),
        Operator::AtLeast => (">=", 6),
        Operator::Equals => ("==", 5),
        Operator::Differs => ("!=", 5),
        Operator::Meet => ("&", 4),
        Operator::Join => ("|", 3),
        Operator::And => ("&&", 2),
        Operator::Or => ("||", 1),
        Operator::Choice => ("?", 0),
    }
}

/// How strongly the parts of a value hold together: a sign before a number is part of nothing.
fn strength(value: &Value) -> usize {
    match value {
        Value::Whole(number) => {
            if *number < Int::ZERO {
                0
            } else {
                10
            }
        }
        Value::Real(number, _) => {
            if number.value().is_sign_negative() {
                0
            } else {
                10
            }
        }
        Value::Name(..) => 10,
        // The sign of a product may be that of its first factor.
        Value::Made(Operator::Negative, operands) if matches!(operands[0], Value::Made(Operator::Times, _)) => 8,
        Value::Made(operator, _) => written(operator).1,
    }
}

/// An operand of something that holds together this strongly.
fn within(operand: &Value, own: usize) -> String {
    parenthesised(operand, strength(operand) < own)
}

fn parenthesised(operand: &Value, needed: bool) -> String {
    let text = value(operand);
    if needed { format!("({text})") } else { text }
}

/// Whole numbers are multiplied and divided without spaces, and added from left to right. Where one kind of test is part
/// of another, parentheses help.
fn binary(operator: &Operator, a: &Value, b: &Value, own: usize) -> String {
    let mixed =
        |operand: &Value| (1..5).contains(&own) && (1..5).contains(&strength(operand)) && strength(operand) != own;
    let in_order = *operator == Operator::Plus && b.kind().is_exact() && strength(b) == own;
    let left = parenthesised(a, strength(a) < own || mixed(a));
    let right = parenthesised(b, strength(b) <= own && !in_order || mixed(b));
    let between = if own == 8 && a.kind() == Type::Whole { "" } else { " " };
    format!("{left}{between}{}{between}{right}", written(operator).0)
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
            simple => self.line(format!("{};", self::simple(simple))),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::tree::Callee;

    fn whole(name: &str) -> Value {
        Value::name(name, Type::Whole)
    }

    fn real(name: &str) -> Value {
        Value::name(name, Type::Real)
    }

    #[test]
    fn parentheses_stand_where_they_change_something() {
        let [a, b, c] = ["a", "b", "c"].map(whole);
        let cases = [
            ((&a + &b) * &c, "(a + b)*c"),
            (&a + &b * &c, "a + b*c"),
            (&a - (&b - &c), "a - (b - c)"),
            (&a + (&b - &c), "a + b - c"),
            (&a / (&b * &c), "a/(b*c)"),
            (-(&a * &b) + &c, "-a*b + c"),
            (&c / -(&a * &b), "c/(-a*b)"),
            (-(-a.clone()), "-(-a)"),
            (!(a.below(&b)), "!(a < b)"),
            (Value::from(-3) * &a, "(-3)*a"),
            ((&a + 1).at_most(&b).and(c.equals(0)), "a + 1 <= b && c == 0"),
            (a.and(&b).with(Operator::Or, &c), "(a && b) || c"),
            (a.below(&b).choose(&a + 1, &b), "a < b ? a + 1 : b"),
            ((&a + &b).held(), "*(a + b)"),
            ((&a + &b).cast(Type::Real), "(gx_t)(a + b)"),
            (Callee::known("f".into()).call([&a + 1, b.at(&c + 2)]), "f(a + 1, b[c + 2])"),
        ];
        cases.into_iter().for_each(|(tree, text)| assert_eq!(value(&tree), text));
    }

    #[test]
    fn sums_of_reals_keep_their_order() {
        assert_eq!(value(&(real("x") + (real("y") + real("z")))), "x + (y + z)");
        assert_eq!(value(&(real("x") * real("y") + real("z"))), "x * y + z");
    }

    #[test]
    fn whole_numbers_that_change_nothing_are_left_out() {
        let a = whole("a");
        for same in [&a + 0, &a - 0, &a * 1, &a / 1, Value::from(0) + &a, Value::from(1) * &a] {
            assert_eq!(same, a);
        }
        assert_eq!(Value::from(0) * &a, Value::from(0));
        let zero = Value::Real(Number::new(0.0), Real::F64);
        assert_eq!(value(&(real("x") + zero)), "x + 0.0");
    }

    #[test]
    fn literals_have_the_type_of_the_file() {
        let literal = |number: f64, real| value(&Value::Real(Number::new(number), real));
        assert_eq!([literal(0.1, Real::F64), literal(0.1, Real::F32)], ["0.1", "0.1f"]);
        assert_eq!([literal(f64::NEG_INFINITY, Real::F64), literal(f64::NAN, Real::F32)], ["-GX_INF", "GX_NAN"]);
        assert_eq!(value(&(real("x") - Value::Real(Number::new(-2.0), Real::F64))), "x - (-2.0)");
        assert_eq!(value(&Value::from(1i64 << 40)), "INT64_C(1099511627776)");
    }
}
