//! [`Ast`] to LaTeX: an `align*` of declarations and definitions, one row each. Needs the package `amsmath` and,
//! for the sets of numbers, `amssymb`.
//!
//! ```text
//! y[i] = sum[k in 0..N] x[i + k] / 2   →   y_{i} &= \sum_{k=0}^{N - 1} \frac{x_{i + k}}{2}
//! ```
//!
//! Parentheses stand where the eye needs them, which is not quite where the parser does: a fraction needs none, and
//! a minus in the middle of a formula does. The name `dx` is set as a differential if there is a tensor `x` or
//! `x` is a letter, `x_dot` with a dot, and `x_sum` as `x^{\mathrm{sum}}`; an index `j_1` is `j_{1}`.
//! Comments become comments; `output` statements leave no trace.

use super::Ast;
use super::ast::*;
use super::print::{self, Level, operand_levels};
use crate::scalar::{self, Latex};
use gradix_int::Int;
use std::collections::BTreeSet;

/// The program typeset; empty if there is nothing to show.
pub fn latex(ast: &Ast) -> String {
    let mut typesetter = Typesetter { out: String::new(), tensors: tensors(ast) };
    let mut rows = 0;
    for statement in &ast.statements {
        typesetter.comments(&statement.comments);
        typesetter.statement(&statement.kind, &mut rows);
        typesetter.comments(statement.line_comment.as_slice());
    }
    typesetter.comments(&ast.trailing_comments);
    let Typesetter { out, .. } = typesetter;
    match rows {
        0 => out.trim_start().to_string(),
        _ => format!("\\begin{{align*}}{out}\n\\end{{align*}}\n"),
    }
}

fn tensors(ast: &Ast) -> BTreeSet<&str> {
    ast.statements
        .iter()
        .flat_map(|statement| match &statement.kind {
            StatementKind::Input(inputs) => inputs.iter().map(|input| input.name.text.as_str()).collect(),
            StatementKind::Definition(definition) => vec![definition.name.text.as_str()],
            StatementKind::Param(_) | StatementKind::Output(_) => vec![],
        })
        .collect()
}

struct Typesetter<'a> {
    out: String,
    tensors: BTreeSet<&'a str>,
}

impl Typesetter<'_> {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn comments(&mut self, comments: &[String]) {
        for comment in comments.iter().filter(|comment| !comment.trim().is_empty()) {
            self.out.extend(["\n% ", comment]);
        }
    }

    fn statement(&mut self, kind: &StatementKind, rows: &mut usize) {
        match kind {
            StatementKind::Param(params) => params.iter().for_each(|param| self.row(rows, |t| t.param(param))),
            StatementKind::Input(inputs) => inputs.iter().for_each(|input| self.row(rows, |t| t.input(input))),
            StatementKind::Output(_) => {}
            StatementKind::Definition(definition) => self.row(rows, |t| t.definition(definition)),
        }
    }

    /// A new row; the `\\` that separates it stands at its beginning, since comments may lie between.
    fn row(&mut self, rows: &mut usize, content: impl FnOnce(&mut Self)) {
        self.push(if *rows == 0 { "\n" } else { "\n\\\\ " });
        *rows += 1;
        content(self);
    }

    fn param(&mut self, param: &ParamDeclaration) {
        self.index(&param.name.text);
        self.push(" &");
        let fixed = param.bounds.iter().any(|(op, _)| *op == CompareOp::Eq);
        self.push(if fixed { "" } else { "\\in \\mathbb{N}" });
        for (position, (op, side)) in param.bounds.iter().enumerate() {
            if position > 0 || !fixed {
                self.push(",\\; ");
                self.index(&param.name.text);
                self.push(" ");
            }
            self.push(compare_sign(*op));
            self.push(" ");
            self.expr(side, Level::Sum, false);
        }
    }

    fn input(&mut self, input: &InputDeclaration) {
        self.tensor(&input.name.text);
        self.push(" &\\in \\mathbb{R}");
        let Some((first, rest)) = input.extents.split_first() else { return };
        let loosest = if rest.is_empty() { Level::If } else { Level::Product };
        self.push("^{");
        self.expr(first, loosest, false);
        for extent in rest {
            self.push(" \\times ");
            self.expr(extent, loosest, false);
        }
        self.push("}");
    }

    fn definition(&mut self, definition: &Definition) {
        self.tensor(&definition.name.text);
        self.subscripts(&definition.indices, |t, binder| t.index(&binder.name.text));
        self.push(" &= ");
        self.expr(&definition.body, Level::If, false);
        for (position, binder) in definition.indices.iter().filter(|binder| binder.range.is_some()).enumerate() {
            self.push(if position == 0 { ",\\qquad " } else { ",\\; " });
            self.membership(binder);
        }
    }

    fn subscripts<T>(&mut self, items: &[T], one: impl Fn(&mut Self, &T)) {
        if items.is_empty() {
            return;
        }
        self.push("_{");
        self.list(items, ",\\,", one);
        self.push("}");
    }

    fn list<T>(&mut self, items: &[T], separator: &str, one: impl Fn(&mut Self, &T)) {
        for (position, item) in items.iter().enumerate() {
            self.push(if position == 0 { "" } else { separator });
            one(self, item);
        }
    }

    /// `lo \le k < hi`, or just `k`
    fn membership(&mut self, binder: &Binder) {
        if let Some(range) = &binder.range {
            self.expr(&range.low, Level::Sum, false);
            self.push(" \\le ");
        }
        self.index(&binder.name.text);
        if let Some(range) = &binder.range {
            self.push(if range.inclusive { " \\le " } else { " < " });
            self.expr(&range.high, Level::Sum, false);
        }
    }

    /// The name of a tensor: what follows its base stands above, since indices stand below. `dk_sum` is `\mathrm{d}k^{\mathrm{sum}}`.
    fn tensor(&mut self, name: &str) {
        let (base, suffixes) = taken_apart(name);
        let (accents, marks): (Vec<&str>, Vec<&str>) =
            suffixes.into_iter().partition(|suffix| accent(suffix).is_some());
        self.out.extend(accents.iter().filter_map(|suffix| accent(suffix)).flat_map(|accent| [accent, "{"]));
        self.base(base);
        accents.iter().for_each(|_| self.push("}"));
        match marks.as_slice() {
            [] => {}
            [number] if is_number(number) => self.out.extend(["^{(", number, ")}"]),
            marks => {
                self.push("^{");
                self.list(marks, ",\\,", |t, mark| t.word(mark));
                self.push("}");
            }
        }
    }

    /// The name of an index or a size: what follows its base stands below.
    fn index(&mut self, name: &str) {
        let (base, suffixes) = taken_apart(name);
        self.base(base);
        self.subscripts(&suffixes, |t, suffix| t.word(suffix));
    }

    /// A differential has an upright d.
    fn base(&mut self, base: &str) {
        let differential = |rest: &&str| self.tensors.contains(rest) || is_letter(rest);
        match base.strip_prefix('d').filter(differential) {
            Some(rest) => {
                self.push("\\mathrm{d}");
                self.base(rest);
            }
            None => self.word(base),
        }
    }

    /// One letter, Greek or not, is set as it is; anything longer upright.
    fn word(&mut self, word: &str) {
        if GREEK.iter().any(|(_, greek)| *greek == word) {
            self.out.extend(["\\", word]);
        } else if word.chars().count() == 1 && word != "_" || is_number(word) {
            self.letters(word);
        } else {
            self.push("\\mathrm{");
            self.letters(word);
            self.push("}");
        }
    }

    /// A Greek letter becomes a command, which must not run into the next letter.
    fn letters(&mut self, name: &str) {
        let mut rest = name.chars().peekable();
        while let Some(letter) = rest.next() {
            match GREEK.iter().find(|(greek, _)| *greek == letter) {
                Some((_, word)) => {
                    self.out.extend(["\\", word]);
                    self.push(if rest.peek().is_some_and(|next| *next != '_') { " " } else { "" });
                }
                None if letter == '_' => self.push("\\_"),
                None => self.out.push(letter),
            }
        }
    }

    /// Typesets `expr` where only what binds at least as tightly as `loosest` can stand without parentheses, and
    /// where, if `followed`, a reduction would seem to reach over what comes next.
    fn expr(&mut self, expr: &Expr, loosest: Level, followed: bool) {
        let reaches = followed && matches!(expr.kind, ExprKind::Reduce { .. });
        match level(&expr.kind) >= loosest && !reaches {
            true => self.bare(expr, followed),
            false => self.fenced("\\left(", expr, "\\right)"),
        }
    }

    fn fenced(&mut self, open: &str, expr: &Expr, close: &str) {
        self.push(open);
        self.bare(expr, false);
        self.push(close);
    }

    /// An operand that stands to the right of a sign, where a minus of its own needs parentheses.
    fn right(&mut self, expr: &Expr, loosest: Level, followed: bool) {
        match leads_with_minus(expr) && level(&expr.kind) >= loosest {
            true => self.fenced("\\left(", expr, "\\right)"),
            false => self.expr(expr, loosest, followed),
        }
    }

    fn bare(&mut self, expr: &Expr, followed: bool) {
        match &expr.kind {
            ExprKind::Integer(value) => self.push(&value.to_string()),
            ExprKind::Real(value) => self.real(*value),
            ExprKind::Pi => self.push("\\pi"),
            ExprKind::Inf => self.push("\\infty"),
            ExprKind::Name(name) if self.tensors.contains(name.as_str()) => self.tensor(name),
            ExprKind::Name(name) => self.index(name),
            ExprKind::Access { name, subscripts } => self.access(name, subscripts),
            ExprKind::Call { function, arguments } => self.call(&function.text, arguments),
            ExprKind::Negate(operand) => {
                self.push("-");
                self.right(operand, Level::Unary, followed);
            }
            ExprKind::Not(operand) => {
                self.push("\\lnot ");
                self.expr(operand, Level::Power, false);
            }
            ExprKind::Binary { op, left, right } => self.binary(*op, left, right, followed),
            ExprKind::Compare { first, rest } => self.compare(first, rest),
            ExprKind::If { .. } => self.cases(expr),
            ExprKind::Reduce { op, items, body } => {
                self.signs(*op, items);
                self.right(body, Level::Product, false);
            }
        }
    }

    /// Scientific notation as `1.5 \cdot 10^{-7}`.
    fn real(&mut self, value: f64) {
        let text = format!("{value:?}").replace("inf", "\\infty");
        match text.split_once('e') {
            Some(("1", exponent)) => self.out.extend(["10^{", exponent, "}"]),
            Some((mantissa, exponent)) => self.out.extend([mantissa, " \\cdot 10^{", exponent, "}"]),
            None => self.push(&text),
        }
    }

    fn access(&mut self, name: &Name, subscripts: &[Expr]) {
        self.tensor(&name.text);
        self.subscripts(subscripts, |t, subscript| t.expr(subscript, Level::If, false));
    }

    fn call(&mut self, function: &str, arguments: &[Expr]) {
        let latex = scalar::function(function).map(|row| row.latex());
        match (latex, arguments) {
            (Some(Latex::Around(before, after)), [x]) => self.fenced(before, x, after),
            (Some(Latex::Power), [base, exponent]) => self.binary(BinaryOp::Power, base, exponent, false),
            _ => {
                match latex {
                    Some(Latex::Command(command)) => self.push(command),
                    _ => self.upright(function),
                }
                self.push("\\left(");
                self.list(arguments, ",\\, ", |t, argument| t.expr(argument, Level::If, false));
                self.push("\\right)");
            }
        }
    }

    fn upright(&mut self, function: &str) {
        self.push("\\operatorname{");
        self.letters(function);
        self.push("}");
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr, followed: bool) {
        match op {
            BinaryOp::Or => self.infix(op, left, " \\lor ", right, false),
            BinaryOp::And => self.infix(op, left, " \\land ", right, false),
            BinaryOp::Add => self.infix(op, left, " + ", right, false),
            BinaryOp::Subtract => self.infix(op, left, " - ", right, false),
            BinaryOp::Multiply => self.infix(op, left, times(left, right), right, followed),
            BinaryOp::Divide => self.fraction(left, right),
            BinaryOp::FloorDivide => {
                self.push("\\left\\lfloor ");
                self.fraction(left, right);
                self.push("\\right\\rfloor");
            }
            BinaryOp::Remainder => self.infix(op, left, " \\bmod ", right, true),
            BinaryOp::Power => {
                match is_raised(left) {
                    true => self.fenced("\\left(", left, "\\right)"),
                    false => self.expr(left, Level::Atom, true),
                }
                self.push("^{");
                self.expr(right, Level::If, false);
                self.push("}");
            }
        }
    }

    fn infix(&mut self, op: BinaryOp, left: &Expr, sign: &str, right: &Expr, followed: bool) {
        let (left_level, right_level) = operand_levels(op);
        self.expr(left, left_level, left_level == Level::Product);
        self.push(sign);
        self.right(right, right_level, followed);
    }

    fn fraction(&mut self, left: &Expr, right: &Expr) {
        self.fenced("\\frac{", left, "}{");
        self.fenced("", right, "}");
    }

    fn compare(&mut self, first: &Expr, rest: &[(CompareOp, Expr)]) {
        self.expr(first, Level::Sum, false);
        for (op, side) in rest {
            self.out.extend([" ", compare_sign(*op), " "]);
            self.expr(side, Level::Sum, false);
        }
    }

    /// A chain of `else if` gives one row for each branch.
    fn cases(&mut self, expr: &Expr) {
        self.push("\\begin{cases} ");
        let mut expr = expr;
        while let ExprKind::If { condition, then, otherwise } = &expr.kind {
            self.expr(then, Level::If, false);
            self.push(" & \\text{if } ");
            self.expr(condition, Level::Or, false);
            self.push(" \\\\ ");
            expr = otherwise;
        }
        self.expr(expr, Level::If, false);
        self.push(" & \\text{otherwise} \\end{cases}");
    }

    /// The signs of a reduction: with conditions one sign above a stack, else one for each index with a range.
    fn signs(&mut self, op: ReduceOp, items: &[ReduceItem]) {
        let binders = || items.iter().filter_map(as_binder);
        let limits = matches!(op, ReduceOp::Sum | ReduceOp::Prod) && binders().count() == items.len();
        if limits && binders().any(|binder| binder.range.is_some()) {
            return binders().for_each(|binder| self.sign_with_limits(op, binder));
        }
        self.push(reduce_sign(op));
        let stacked = items.len() > 1 && items.iter().any(|item| as_binder(item).is_none_or(|b| b.range.is_some()));
        self.push(if stacked { "_{\\substack{" } else { "_{" });
        self.list(items, if stacked { " \\\\ " } else { ",\\," }, |t, item| match item {
            ReduceItem::Binder(binder) => t.membership(binder),
            ReduceItem::Condition(condition) => t.expr(condition, Level::If, false),
        });
        self.push(if stacked { "}} " } else { "} " });
    }

    /// `\sum_{k=lo}^{hi}`, with the last value on top.
    fn sign_with_limits(&mut self, op: ReduceOp, binder: &Binder) {
        self.push(reduce_sign(op));
        self.push("_{");
        self.index(&binder.name.text);
        if let Some(range) = &binder.range {
            self.push("=");
            self.expr(&range.low, Level::Sum, false);
            self.push("}^{");
            match range.inclusive {
                true => self.expr(&range.high, Level::Sum, false),
                false => self.expr(&one_less(&range.high), Level::Sum, false),
            }
        }
        self.push("} ");
    }
}

/// What stands behind the base of a name because the compiler put it there; numbers do, too.
const SUFFIXES: &[&str] = &["sum", "prod", "max", "min", "dot", "adj", "hits", "ties", "zeros", "part"];

/// The base of a name and what stands behind it: numbers, what the compiler adds, and all behind a single letter.
fn taken_apart(name: &str) -> (&str, Vec<&str>) {
    let (mut base, mut suffixes) = (name, Vec::new());
    let letter =
        name.split('_').next().filter(|first| is_letter(first) && !name.contains("__") && !name.ends_with('_'));
    while let Some((rest, suffix)) = base.rsplit_once('_') {
        let splits = letter.is_some() || is_number(suffix) || SUFFIXES.contains(&suffix);
        if !splits || rest.is_empty() || rest.ends_with('_') {
            break;
        }
        base = rest;
        suffixes.insert(0, suffix);
    }
    (base, suffixes)
}

fn is_letter(word: &str) -> bool {
    word.chars().count() == 1 && word != "_" || GREEK.iter().any(|(_, greek)| *greek == word)
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Tangents have a dot, and adjoints of parts a bar.
fn accent(suffix: &str) -> Option<&'static str> {
    match suffix {
        "dot" => Some("\\dot"),
        "adj" => Some("\\bar"),
        _ => None,
    }
}

/// Whether a name has something above it, so that a power needs parentheses.
fn is_raised(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Name(name) => taken_apart(name).1.iter().any(|suffix| accent(suffix).is_none()),
        ExprKind::Access { name, .. } => taken_apart(&name.text).1.iter().any(|suffix| accent(suffix).is_none()),
        _ => false,
    }
}

fn as_binder(item: &ReduceItem) -> Option<&Binder> {
    match item {
        ReduceItem::Binder(binder) => Some(binder),
        ReduceItem::Condition(_) => None,
    }
}

/// `expr - 1`, with its constant counted down.
fn one_less(expr: &Expr) -> Expr {
    let at = |kind| Expr { kind, span: expr.span };
    if let Some(counted) = counted_down(expr) {
        return counted;
    }
    let right = Box::new(at(ExprKind::Integer(Int::from(1))));
    at(ExprKind::Binary { op: BinaryOp::Subtract, left: Box::new(expr.clone()), right })
}

/// An expression with one less in the place of its constant, at its end or its beginning; `None` if it has none.
fn counted_down(expr: &Expr) -> Option<Expr> {
    let at = |kind| Expr { kind, span: expr.span };
    match &expr.kind {
        ExprKind::Integer(value) => {
            let less = value.clone() - Int::from(1);
            Some(at(if less < Int::from(0) {
                ExprKind::Negate(Box::new(at(ExprKind::Integer(-less))))
            } else {
                ExprKind::Integer(less)
            }))
        }
        ExprKind::Binary { op, left, right } if matches!(op, BinaryOp::Add | BinaryOp::Subtract) => {
            if let ExprKind::Integer(value) = &right.kind {
                let step = Int::from(if *op == BinaryOp::Add { -1 } else { 1 });
                let size = value.clone() + step;
                let kind = ExprKind::Binary {
                    op: *op,
                    left: left.clone(),
                    right: Box::new(at(ExprKind::Integer(size.clone()))),
                };
                return Some(if size == Int::from(0) { (**left).clone() } else { at(kind) });
            }
            let left = counted_down(left)?;
            if *op == BinaryOp::Subtract && matches!(&left.kind, ExprKind::Integer(zero) if *zero == Int::from(0)) {
                return Some(at(ExprKind::Negate(right.clone())));
            }
            Some(at(ExprKind::Binary { op: *op, left: Box::new(left), right: right.clone() }))
        }
        _ => None,
    }
}

/// As tightly as in a text, but for what is set in another way: a remainder is set like a sum, so that it gets
/// parentheses among factors and terms.
fn level(kind: &ExprKind) -> Level {
    match kind {
        ExprKind::Binary { op: BinaryOp::Remainder, .. } => Level::Sum,
        ExprKind::Binary { op: BinaryOp::Divide, .. } => Level::Power,
        ExprKind::Binary { op: BinaryOp::FloorDivide, .. } => Level::Atom,
        ExprKind::Real(value) if format!("{value:?}").contains(['e', '-']) => Level::Product,
        ExprKind::Call { function, .. } if function.text == "pow" => Level::Power,
        _ => print::level(kind),
    }
}

fn leads_with_minus(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Negate(_) => true,
        ExprKind::Integer(value) => *value < 0.into(),
        ExprKind::Real(value) => value.is_sign_negative(),
        ExprKind::Binary { op: BinaryOp::Multiply, left, .. } => leads_with_minus(left),
        _ => false,
    }
}

/// Factors stand side by side, but two numbers need a sign between them.
fn times(left: &Expr, right: &Expr) -> &'static str {
    match begins_with_digit(right) {
        true => " \\cdot ",
        false if matches!(left.kind, ExprKind::Integer(_) | ExprKind::Real(_)) => " ",
        false => " \\, ",
    }
}

fn begins_with_digit(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Integer(_) | ExprKind::Real(_) => true,
        ExprKind::Binary { op: BinaryOp::Power | BinaryOp::Multiply, left, .. } => begins_with_digit(left),
        ExprKind::Binary { op: BinaryOp::Divide, .. } => true,
        _ => false,
    }
}

fn compare_sign(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Lt => "<",
        CompareOp::Le => "\\le",
        CompareOp::Gt => ">",
        CompareOp::Ge => "\\ge",
        CompareOp::Eq => "=",
        CompareOp::Ne => "\\ne",
    }
}

fn reduce_sign(op: ReduceOp) -> &'static str {
    match op {
        ReduceOp::Sum => "\\sum",
        ReduceOp::Prod => "\\prod",
        ReduceOp::Max => "\\max",
        ReduceOp::Min => "\\min",
        ReduceOp::Mean => "\\operatorname{mean}",
        ReduceOp::LogSumExp => "\\operatorname{logsumexp}",
    }
}

/// Greek letters that have a command, and its name.
#[rustfmt::skip]
const GREEK: &[(char, &str)] = &[
    ('α', "alpha"), ('β', "beta"), ('γ', "gamma"), ('δ', "delta"), ('ε', "varepsilon"), ('ζ', "zeta"),
    ('η', "eta"), ('θ', "theta"), ('ι', "iota"), ('κ', "kappa"), ('λ', "lambda"), ('μ', "mu"), ('ν', "nu"),
    ('ξ', "xi"), ('π', "pi"), ('ρ', "rho"), ('σ', "sigma"), ('ς', "varsigma"), ('τ', "tau"), ('υ', "upsilon"),
    ('φ', "varphi"), ('χ', "chi"), ('ψ', "psi"), ('ω', "omega"), ('ϵ', "epsilon"), ('ϕ', "phi"), ('ϑ', "vartheta"),
    ('Γ', "Gamma"), ('Δ', "Delta"), ('Θ', "Theta"), ('Λ', "Lambda"), ('Ξ', "Xi"), ('Π', "Pi"), ('Σ', "Sigma"),
    ('Υ', "Upsilon"), ('Φ', "Phi"), ('Ψ', "Psi"), ('Ω', "Omega"),
];
