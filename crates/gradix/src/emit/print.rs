//! The tree as C text: indented, with as few parentheses as its reader and the compiler's warnings want.

use super::tree::{Code, Head, Operator, Routine, Type, Value};
use crate::nest::Real;
use crate::program::expr::Number;
use gradix_int::Int;
use std::fmt::Write;

/// How a language spells what is not the same in all languages of the family.
pub struct Spelling {
    /// The type of a whole number.
    pub whole: &'static str,
    /// That nothing else points to what a pointer points to.
    pub alone: &'static str,
}

/// That of C99.
pub const C99: Spelling = Spelling { whole: "int64_t", alone: "restrict" };

/// An expression of C.
pub fn value(value: &Value) -> String {
    C99.value(value)
}

/// Statements one level deep, between braces.
pub fn block(spelling: &Spelling, head: &str, body: &[Code]) -> String {
    let mut printer = Printer::new(spelling);
    printer.under(head, body);
    printer.line("}");
    printer.text
}

/// A function of C, after an empty line.
pub fn routine(routine: &Routine) -> String {
    let Routine { doc, own, body, .. } = routine;
    let mut printer = Printer::new(&C99);
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
    let parameters: Vec<String> = parameters.iter().map(|name| C99.declared(name, false)).collect();
    let (start, between) = if *own { ("static GX_NOINLINE ", ",\n    ") } else { ("", ", ") };
    format!("{start}void {name}({})", parameters.join(between))
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
        Operator::Remainder => ("%", 8),
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

impl Spelling {
    /// An expression.
    pub fn value(&self, value: &Value) -> String {
        match value {
            Value::Whole(number) => integer(number),
            Value::Real(number, real) => literal(*number, *real),
            Value::Name(name, _) => name.to_string(),
            Value::Made(operator, operands) => self.made(operator, operands, strength(value)),
        }
    }

    fn made(&self, operator: &Operator, operands: &[Value], own: usize) -> String {
        let (sign, _) = written(operator);
        match (operator, operands) {
            (Operator::Call(callee), _) => {
                format!(
                    "{}({})",
                    callee.name,
                    operands.iter().map(|operand| self.value(operand)).collect::<Vec<_>>().join(", ")
                )
            }
            (Operator::Element, [a, b]) => format!("{}[{}]", self.within(a, own), self.value(b)),
            (Operator::Cast(kind), [a]) => format!("({}){}", self.type_name(*kind), self.within(a, own)),
            (Operator::Choice, [test, yes, no]) => {
                format!("{} ? {} : {}", self.within(test, own + 1), self.value(yes), self.value(no))
            }
            // A sign before a sign has parentheses between them.
            (_, [a]) => format!("{sign}{}", self.parenthesised(a, strength(a) < own || strength(a) == SIGN)),
            (_, [a, b]) => self.binary(operator, a, b, own),
            _ => unreachable!("operators have one or two operands"),
        }
    }

    /// An operand of something that holds together this strongly.
    fn within(&self, operand: &Value, own: usize) -> String {
        self.parenthesised(operand, strength(operand) < own)
    }

    fn parenthesised(&self, operand: &Value, needed: bool) -> String {
        let text = self.value(operand);
        if needed { format!("({text})") } else { text }
    }

    /// Whole numbers are multiplied and divided without spaces, and added from left to right. Where one kind of test is part
    /// of another, parentheses help.
    fn binary(&self, operator: &Operator, a: &Value, b: &Value, own: usize) -> String {
        let mixed =
            |operand: &Value| (1..5).contains(&own) && (1..5).contains(&strength(operand)) && strength(operand) != own;
        let in_order = *operator == Operator::Plus && b.kind().is_exact() && strength(b) == own;
        let left = self.parenthesised(a, strength(a) < own || mixed(a));
        let right = self.parenthesised(b, strength(b) <= own && !in_order || mixed(b));
        let between = if own == 8 && a.kind() == Type::Whole { "" } else { " " };
        format!("{left}{between}{}{between}{right}", written(operator).0)
    }

    fn type_name(&self, kind: Type) -> String {
        match kind {
            Type::Nothing => "void".into(),
            Type::Int => "int".into(),
            Type::Whole => self.whole.into(),
            Type::Real => "gx_t".into(),
            Type::Vector => "gx_v".into(),
            Type::Mask => "gx_i".into(),
            Type::Arrays => "gx_t *const *".into(),
            Type::Pointer { to, constant, alone } => {
                format!(
                    "{}{} *{}",
                    if constant { "const " } else { "" },
                    self.type_name(*to),
                    if alone { format!("{} ", self.alone) } else { String::new() }
                )
            }
        }
    }

    /// A name after its type.
    fn declared(&self, name: &Value, constant: bool) -> String {
        let (kind, name) = (name.kind(), self.value(name));
        match kind {
            Type::Pointer { .. } | Type::Arrays => {
                format!("{}{}{name}", self.type_name(kind), if constant { "const " } else { "" })
            }
            _ => format!("{}{} {name}", if constant { "const " } else { "" }, self.type_name(kind)),
        }
    }

    fn head_text(&self, head: &Head) -> String {
        match head {
            Head::Block | Head::IfDefined(_) => String::new(),
            Head::If(test) => format!("if ({}) ", self.value(test)),
            Head::For { start, test, advance, .. } => {
                let kind =
                    start.first().map(|(name, _)| format!("{} ", self.type_name(name.kind()))).unwrap_or_default();
                let start: Vec<String> =
                    start.iter().map(|(name, from)| format!("{} = {}", self.value(name), self.value(from))).collect();
                let advance: Vec<String> = advance.iter().map(|code| self.simple(code)).collect();
                format!("for ({kind}{}; {}; {}) ", start.join(", "), self.value(test), advance.join(", "))
            }
        }
    }

    /// A statement that is not made of others.
    fn simple(&self, code: &Code) -> String {
        match code {
            Code::Declare { name, constant, length, value: start } => {
                let length = length.as_ref().map(|length| format!("[{}]", self.value(length))).unwrap_or_default();
                let start = start.as_ref().map(|start| format!(" = {}", self.value(start))).unwrap_or_default();
                format!("{}{length}{start}", self.element_declared(name, *constant, !length.is_empty()))
            }
            Code::Shared { name, length } => {
                format!("__shared__ GX_ALIGNED {}[{}]", self.element_declared(name, false, true), self.value(length))
            }
            Code::Assign(place, new) => format!("{} = {}", self.value(place), self.value(new)),
            Code::Advance(place, by) if by.is(1) => format!("{}++", self.value(place)),
            Code::Advance(place, by) => format!("{} += {}", self.value(place), self.value(by)),
            Code::Do(call) => self.value(call),
            Code::Mention(name) => format!("(void){}", self.value(name)),
            Code::Continue => "continue".into(),
            Code::Under(..) => unreachable!("statements under a head are printed line by line"),
        }
    }

    /// A declaration: of an array by the type of its elements.
    fn element_declared(&self, name: &Value, constant: bool, array: bool) -> String {
        match name {
            Value::Name(text, kind) if array => self.declared(&Value::Name(text.clone(), kind.target()), constant),
            _ => self.declared(name, constant),
        }
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
struct Printer<'a> {
    spelling: &'a Spelling,
    text: String,
    depth: usize,
}

impl<'a> Printer<'a> {
    fn new(spelling: &'a Spelling) -> Self {
        Printer { spelling, text: String::new(), depth: 0 }
    }

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
            simple => self.line(format!("{};", self.spelling.simple(simple))),
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
        self.under(&format!("{}{{", self.spelling.head_text(head)), body);
        if !otherwise.is_empty() {
            self.under("} else {", otherwise);
        }
        self.line("}");
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
