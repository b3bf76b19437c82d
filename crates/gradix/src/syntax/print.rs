//! [`Ast`] to text: the canonical form of a program.
//!
//! One statement in a line, with its comments; at most one blank line at a time; parentheses only where the tree
//! needs them. `parse(print(ast))` is `ast` but for its spans, for every tree that the parser can make, and so
//! `print` changes nothing in its own output. Trees of the compiler may also hold negative numbers and infinite
//! reals; these print as what computes them (`-3`, `-inf`).
//!
//! ```text
//! y[i]=2*sum[k]a[ 2*i+k ]*(b[k]);   →   y[i] = 2 * sum[k] a[2*i + k] * b[k]
//! ```

use super::Ast;
use super::ast::*;
use std::fmt::Write;

/// The program in canonical form; ends in a newline unless it is empty.
pub fn print(ast: &Ast) -> String {
    let mut out = String::new();
    for (position, statement) in ast.statements.iter().enumerate() {
        if statement.blank_before && position > 0 {
            out.push('\n');
        }
        print_comments(&mut out, &statement.comments);
        out.push_str(&statement_text(&statement.kind));
        if let Some(comment) = &statement.line_comment {
            out.push(' ');
            out.push_str(&comment_text(comment));
        }
        out.push('\n');
    }
    print_comments(&mut out, &ast.trailing_comments);
    out
}

/// An expression in canonical form.
pub fn print_expr(expr: &Expr) -> String {
    print_with(Style::Value, |printer| printer.expr(expr, Level::If, false))
}

/// A definition in canonical form.
pub(crate) fn print_definition(definition: &Definition) -> String {
    statement_text(&StatementKind::Definition(definition.clone()))
}

/// Each on its line; an empty one is a blank line.
fn print_comments(out: &mut String, comments: &[String]) {
    for comment in comments {
        match comment.is_empty() {
            true if out.is_empty() || out.ends_with("\n\n") => {}
            true => out.push('\n'),
            false => out.extend([&comment_text(comment), "\n"]),
        }
    }
}

fn comment_text(text: &str) -> String {
    match text.trim_end() {
        "" => "#".to_string(),
        text if text.starts_with(['#', '!']) => format!("#{text}"),
        text => format!("# {text}"),
    }
}

/// A statement without its comments.
fn statement_text(kind: &StatementKind) -> String {
    match kind {
        StatementKind::Param(params) => format!("param {}", join(params, param_text)),
        StatementKind::Input(inputs) => format!("input {}", join(inputs, input_text)),
        StatementKind::Output(names) => format!("output {}", join(names, |name| name.text.clone())),
        StatementKind::Definition(definition) => definition_text(definition),
    }
}

fn join<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn param_text(param: &ParamDeclaration) -> String {
    let mut text = param.name.text.clone();
    for (op, side) in &param.bounds {
        let symbol = if *op == CompareOp::Eq { "=" } else { compare_symbol(*op) };
        let side = print_with(Style::Index, |printer| printer.expr(side, Level::Sum, false));
        text.extend([" ", symbol, " ", &side]);
    }
    text
}

fn input_text(input: &InputDeclaration) -> String {
    let mut text = input.name.text.clone();
    if !input.extents.is_empty() {
        text += &print_with(Style::Index, |printer| printer.list('[', &input.extents, ']'));
    }
    text
}

fn definition_text(definition: &Definition) -> String {
    let indices = join(&definition.indices, binder_text);
    let brackets = if indices.is_empty() { indices } else { format!("[{indices}]") };
    format!("{}{brackets} = {}", definition.name.text, print_expr(&definition.body))
}

fn binder_text(binder: &Binder) -> String {
    print_with(Style::Index, |printer| printer.binder(binder))
}

fn print_with(style: Style, write: impl FnOnce(&mut Printer)) -> String {
    let mut printer = Printer { out: String::new(), style };
    write(&mut printer);
    printer.out
}

/// Inside brackets `*` has no spaces.
#[derive(Clone, Copy, PartialEq)]
enum Style {
    Value,
    Index,
}

/// How tightly the outermost operator of an expression binds, loosest first.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub enum Level {
    If,
    Or,
    And,
    Not,
    Compare,
    Sum,
    Product,
    Unary,
    Power,
    Atom,
}

struct Printer {
    out: String,
    style: Style,
}

impl Printer {
    /// Prints `expr` where only what binds at least as tightly as `loosest` can stand without parentheses, and
    /// where, if `followed`, a reduction would take what comes next into its body.
    fn expr(&mut self, expr: &Expr, loosest: Level, followed: bool) {
        let swallows = followed && matches!(expr.kind, ExprKind::Reduce { .. });
        if level(&expr.kind) >= loosest && !swallows {
            return self.bare(expr, followed);
        }
        self.out.push('(');
        self.bare(expr, false);
        self.out.push(')');
    }

    fn bare(&mut self, expr: &Expr, followed: bool) {
        match &expr.kind {
            ExprKind::Integer(value) => self.write(value),
            ExprKind::Real(value) => self.real(*value),
            ExprKind::Pi => self.out.push_str("pi"),
            ExprKind::Inf => self.out.push_str("inf"),
            ExprKind::Name(name) => self.out.push_str(name),
            ExprKind::Access { name, subscripts } => self.access(name, subscripts),
            ExprKind::Call { function, arguments } => self.call(function, arguments),
            ExprKind::Negate(operand) => self.prefix("-", operand, Level::Unary, followed),
            ExprKind::Not(operand) => self.prefix("not ", operand, Level::Not, followed),
            ExprKind::Binary { op, left, right } => self.binary(*op, left, right, followed),
            ExprKind::Compare { first, rest } => self.compare(first, rest),
            ExprKind::If { condition, then, otherwise } => self.conditional(condition, then, otherwise),
            ExprKind::Reduce { op, items, body } => self.reduce(*op, items, body),
        }
    }

    fn write(&mut self, value: impl std::fmt::Display) {
        // Writing to a `String` can't fail.
        let _ = write!(self.out, "{value}");
    }

    fn real(&mut self, value: f64) {
        match value {
            f64::INFINITY => self.out.push_str("inf"),
            f64::NEG_INFINITY => self.out.push_str("-inf"),
            _ if value.is_nan() => self.out.push_str("(inf - inf)"),
            _ => self.write(format_args!("{value:?}")),
        }
    }

    fn access(&mut self, name: &Name, subscripts: &[Expr]) {
        self.out.push_str(&name.text);
        let style = std::mem::replace(&mut self.style, Style::Index);
        self.list('[', subscripts, ']');
        self.style = style;
    }

    fn call(&mut self, function: &Name, arguments: &[Expr]) {
        self.out.push_str(&function.text);
        self.list('(', arguments, ')');
    }

    fn list(&mut self, open: char, items: &[Expr], close: char) {
        self.out.push(open);
        for (position, item) in items.iter().enumerate() {
            self.separator(position);
            self.expr(item, Level::If, false);
        }
        self.out.push(close);
    }

    fn separator(&mut self, position: usize) {
        if position > 0 {
            self.out.push_str(", ");
        }
    }

    fn prefix(&mut self, symbol: &str, operand: &Expr, loosest: Level, followed: bool) {
        self.out.push_str(symbol);
        self.expr(operand, loosest, followed);
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr, followed: bool) {
        let (left_level, right_level) = operand_levels(op);
        let product = left_level >= Level::Product;
        self.expr(left, left_level, product);
        match op {
            BinaryOp::Power => self.out.push('^'),
            BinaryOp::Multiply if self.style == Style::Index => self.out.push('*'),
            _ => self.out.extend([" ", binary_symbol(op), " "]),
        }
        // A reduction as an exponent is legal, but hard to read.
        self.expr(right, right_level, (product && followed) || op == BinaryOp::Power);
    }

    fn compare(&mut self, first: &Expr, rest: &[(CompareOp, Expr)]) {
        self.expr(first, Level::Sum, false);
        for (op, side) in rest {
            self.out.extend([" ", compare_symbol(*op), " "]);
            self.expr(side, Level::Sum, false);
        }
    }

    /// A condition in a condition or in the first branch gets parentheses only to be easy to read.
    fn conditional(&mut self, condition: &Expr, then: &Expr, otherwise: &Expr) {
        self.prefix("if ", condition, Level::Or, false);
        self.prefix(" then ", then, Level::Or, false);
        self.prefix(" else ", otherwise, Level::If, false);
    }

    fn reduce(&mut self, op: ReduceOp, items: &[ReduceItem], body: &Expr) {
        self.out.push_str(op.word());
        self.out.push('[');
        let style = std::mem::replace(&mut self.style, Style::Index);
        for (position, item) in items.iter().enumerate() {
            self.separator(position);
            match item {
                ReduceItem::Binder(binder) => self.binder(binder),
                ReduceItem::Condition(condition) => self.expr(condition, Level::If, false),
            }
        }
        self.style = style;
        self.prefix("] ", body, Level::Product, false);
    }

    fn binder(&mut self, binder: &Binder) {
        self.out.push_str(&binder.name.text);
        if let Some(Range { low, high, inclusive }) = &binder.range {
            self.prefix(" in ", low, Level::Sum, false);
            self.prefix(if *inclusive { "..=" } else { ".." }, high, Level::Sum, false);
        }
    }
}

/// How loosely the operands of an operator may bind without parentheses: the left and the right one.
pub fn operand_levels(op: BinaryOp) -> (Level, Level) {
    use BinaryOp::*;
    match op {
        Or => (Level::Or, Level::And),
        And => (Level::And, Level::Not),
        Add | Subtract => (Level::Sum, Level::Product),
        Multiply | Divide | FloorDivide | Remainder => (Level::Product, Level::Unary),
        Power => (Level::Atom, Level::Unary),
    }
}

/// How tightly an expression binds.
pub fn level(kind: &ExprKind) -> Level {
    match kind {
        ExprKind::If { .. } => Level::If,
        ExprKind::Binary { op: BinaryOp::Power, .. } => Level::Power,
        ExprKind::Binary { op, .. } => operand_levels(*op).0,
        ExprKind::Not(_) => Level::Not,
        ExprKind::Compare { .. } => Level::Compare,
        ExprKind::Negate(_) | ExprKind::Reduce { .. } => Level::Unary,
        ExprKind::Integer(value) if *value < 0.into() => Level::Unary,
        ExprKind::Real(value) if value.is_sign_negative() && !value.is_nan() => Level::Unary,
        ExprKind::Integer(_) | ExprKind::Real(_) | ExprKind::Pi | ExprKind::Inf => Level::Atom,
        ExprKind::Name(_) | ExprKind::Access { .. } | ExprKind::Call { .. } => Level::Atom,
    }
}

fn binary_symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Subtract => "-",
        BinaryOp::Multiply => "*",
        BinaryOp::Divide => "/",
        BinaryOp::FloorDivide => "//",
        BinaryOp::Remainder => "%",
        BinaryOp::Power => "^",
        BinaryOp::And => "and",
        BinaryOp::Or => "or",
    }
}

fn compare_symbol(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Lt => "<",
        CompareOp::Le => "<=",
        CompareOp::Gt => ">",
        CompareOp::Ge => ">=",
        CompareOp::Eq => "==",
        CompareOp::Ne => "!=",
    }
}
