//! Random trees, and random text.

mod support;

use gradix::diagnostic::Span;
use gradix::syntax::ast::*;
use gradix::syntax::{Ast, MAX_ERRORS, latex, parse, print, print_expr};
use support::tree::without_spans;

#[test]
fn random_trees_come_back_from_their_text() {
    for seed in 0..5_000 {
        let ast = Random(seed).ast();
        let text = print(&ast);
        let again = parse(&text).unwrap_or_else(|errors| panic!("seed {seed}\n{}", support::render(&text, &errors)));
        assert_eq!(without_spans(&again), ast, "seed {seed}\n{text}");
        assert_eq!(print(&again), text, "seed {seed}");
    }
}

#[test]
fn random_expressions_come_back_from_their_text() {
    for seed in 0..20_000 {
        let expr = Random(seed).expr(6);
        let text = format!("y = {}", print_expr(&expr));
        let again = parse(&text).unwrap_or_else(|errors| panic!("seed {seed}\n{}", support::render(&text, &errors)));
        let StatementKind::Definition(definition) = &without_spans(&again).statements[0].kind.clone() else { panic!() };
        assert_eq!(definition.body, expr, "seed {seed}\n{text}");
    }
}

#[test]
fn no_parenthesis_is_printed_in_vain() {
    for seed in 0..5_000 {
        let text = format!("y = {}", print_expr(&Random(seed).expr(4)));
        let tree = without_spans(&parse(&text).unwrap());
        for (open, close) in parentheses(&text) {
            let without = format!("{} {} {}", &text[..open], &text[open + 1..close], &text[close + 1..]);
            let same = parse(&without).is_ok_and(|ast| without_spans(&ast) == tree);
            assert!(!same || is_for_the_eye(&text, open), "seed {seed}\n{text}\n{without}");
        }
    }
}

/// Parentheses around a reduction as an exponent, and around a condition in a condition, are not needed but kind.
fn is_for_the_eye(text: &str, open: usize) -> bool {
    let reductions = ["sum[", "prod[", "max[", "min[", "mean[", "logsumexp["];
    let inside = &text[open + 1..];
    let exponent = text[..open].trim_end_matches('-').ends_with('^');
    inside.starts_with("if ") || (exponent && reductions.iter().any(|word| inside.starts_with(word)))
}

/// The places of matching parentheses, but not those of calls.
fn parentheses(text: &str) -> Vec<(usize, usize)> {
    let (mut open, mut pairs) = (Vec::new(), Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' => open.push(at),
            ')' => pairs.extend(open.pop().map(|start| (start, at))),
            _ => {}
        }
    }
    pairs.retain(|&(start, _)| !text[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
    pairs
}

#[test]
fn random_bytes_are_answered() {
    for seed in 0..3_000 {
        let mut random = Random(seed);
        let bytes: Vec<u8> = (0..random.below(200)).map(|_| random.below(256) as u8).collect();
        answer(&String::from_utf8_lossy(&bytes));
        let ascii: String = (0..random.below(200)).map(|_| (random.below(95) as u8 + 32) as char).collect();
        answer(&ascii);
    }
}

#[test]
fn random_tokens_are_answered() {
    for seed in 0..20_000 {
        let mut random = Random(seed);
        let soup: String = (0..random.below(40)).map(|_| *random.one_of(SOUP)).collect();
        answer(&soup);
        answer(&format!("y[i] = {soup}"));
    }
}

#[test]
fn damaged_programs_are_answered() {
    let sources: Vec<String> =
        support::files("syntax").iter().flat_map(|path| support::read(path)).map(|case| case.source).collect();
    for seed in 0..5_000 {
        let mut random = Random(seed);
        let mut characters: Vec<char> = random.one_of(&sources).chars().collect();
        for _ in 0..=random.below(3) {
            let at = random.below(characters.len() + 1);
            match random.below(3) {
                0 => characters.truncate(at),
                1 => drop(characters.splice(at..characters.len().min(at + 1), [])),
                _ => drop(characters.splice(at..at, random.one_of(SOUP).chars().collect::<Vec<_>>())),
            }
        }
        answer(&characters.into_iter().collect::<String>());
    }
}

const SOUP: &[&str] = &[
    "param",
    "input",
    "output",
    "if",
    "then",
    "else",
    "in",
    "and",
    "or",
    "not",
    "sum",
    "prod",
    "max",
    "min",
    "pi",
    "inf",
    "x",
    "σ",
    "exp",
    "clamp",
    "0",
    "1.5",
    "2e",
    ".5",
    "5.",
    "99999999999999999999",
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "^",
    "**",
    "<",
    "<=",
    "==",
    "!=",
    "=",
    ",",
    "..",
    "..=",
    "(",
    ")",
    "[",
    "]",
    "(",
    ")",
    "[",
    "]",
    ";",
    "\n",
    "\n",
    " ",
    " ",
    " ",
    "# c",
    "@",
    "é",
    "∑",
    "\r\n",
    "!",
    "&&",
    "sum[k] ",
    "sum[k in 0..N] ",
    "x[i]",
    "if c then ",
];

/// The parser says yes or no; a no has marked places, and a yes can be printed and read again.
fn answer(source: &str) {
    match parse(source) {
        Ok(ast) => {
            let text = print(&ast);
            let again = parse(&text).unwrap_or_else(|errors| panic!("{source}\n{}", support::render(&text, &errors)));
            assert_eq!(without_spans(&again), without_spans(&ast), "{source}\n{text}");
            latex(&ast);
        }
        Err(errors) => {
            assert!((1..=MAX_ERRORS).contains(&errors.len()));
            for label in errors.iter().flat_map(|error| &error.labels) {
                assert!(source.get(label.span.start..label.span.end).is_some(), "{source}");
            }
        }
    }
}

/// SplitMix64, and trees that the parser could have made.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e3779b97f4a7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn chance(&mut self) -> bool {
        self.below(2) == 0
    }

    fn one_of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    fn list<T>(&mut self, least: usize, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..least + self.below(3)).map(|_| one(self)).collect()
    }

    fn ast(&mut self) -> Ast {
        let mut statements = self.list(0, Self::statement);
        if let Some(first) = statements.first_mut() {
            first.blank_before = false;
        }
        let mut trailing_comments = self.list(0, Self::comment);
        if !statements.is_empty() && !trailing_comments.is_empty() && self.chance() {
            trailing_comments.insert(0, String::new());
        }
        Ast { statements, trailing_comments }
    }

    fn statement(&mut self) -> Statement {
        let kind = match self.below(6) {
            0 => StatementKind::Param(self.list(1, Self::param)),
            1 => StatementKind::Input(self.list(1, Self::input)),
            2 => StatementKind::Output(self.list(1, Self::name)),
            _ => StatementKind::Definition(self.definition()),
        };
        let mut comments = self.list(0, Self::comment);
        if comments.len() > 1 && self.chance() {
            comments.insert(1, String::new());
        }
        let line_comment = self.chance().then(|| self.comment());
        Statement { kind, span: Span::default(), comments, line_comment, blank_before: self.chance() }
    }

    fn comment(&mut self) -> String {
        self.one_of(&[" ", "a comment", "## heading", "!", "  indented", "größer", "#", "x = 1; y"]).to_string()
    }

    fn definition(&mut self) -> Definition {
        Definition { name: self.name(), indices: self.list(0, |random| random.binder(2)), body: self.expr(4) }
    }

    fn param(&mut self) -> ParamDeclaration {
        let bound =
            |random: &mut Self| (*random.one_of(&[CompareOp::Ge, CompareOp::Le, CompareOp::Eq]), random.expr(2));
        ParamDeclaration { name: self.name(), bounds: self.list(0, bound) }
    }

    fn input(&mut self) -> InputDeclaration {
        InputDeclaration { name: self.name(), extents: self.list(0, |random| random.expr(2)) }
    }

    fn word(&mut self) -> String {
        self.one_of(&["x", "y", "k_1", "σ", "_", "N", "weights", "summe", "e1"]).to_string()
    }

    fn name(&mut self) -> Name {
        Name { text: self.word(), span: Span::default() }
    }

    fn binder(&mut self, depth: usize) -> Binder {
        let range =
            self.chance().then(|| Range { low: self.expr(depth), high: self.expr(depth), inclusive: self.chance() });
        Binder { name: self.name(), range }
    }

    fn expr(&mut self, depth: usize) -> Expr {
        let kind = if depth == 0 { self.leaf() } else { self.branch(depth - 1) };
        Expr { kind, span: Span::default() }
    }

    fn boxed(&mut self, depth: usize) -> Box<Expr> {
        Box::new(self.expr(depth))
    }

    fn leaf(&mut self) -> ExprKind {
        match self.below(6) {
            0 => ExprKind::Integer((self.next() >> (2 + self.below(62))).into()),
            1 => ExprKind::Real(self.real()),
            2 => ExprKind::Pi,
            3 => ExprKind::Inf,
            _ => ExprKind::Name(self.word()),
        }
    }

    fn real(&mut self) -> f64 {
        let any = f64::from_bits(self.next() >> 1);
        let plain = self.below(1000) as f64 / 8.0;
        if any.is_finite() && self.chance() { any } else { plain }
    }

    fn branch(&mut self, depth: usize) -> ExprKind {
        match self.below(14) {
            0..=1 => self.leaf(),
            2 => ExprKind::Access { name: self.name(), subscripts: self.list(1, |random| random.expr(depth)) },
            3 => ExprKind::Call { function: self.function(), arguments: self.list(1, |random| random.expr(depth)) },
            4..=5 => ExprKind::Negate(self.boxed(depth)),
            6 => ExprKind::Not(self.boxed(depth)),
            7 => ExprKind::Compare { first: self.boxed(depth), rest: self.list(1, |random| random.side(depth)) },
            8 => ExprKind::If { condition: self.boxed(depth), then: self.boxed(depth), otherwise: self.boxed(depth) },
            9..=10 => self.reduce(depth),
            _ => ExprKind::Binary { op: *self.one_of(BINARY), left: self.boxed(depth), right: self.boxed(depth) },
        }
    }

    fn function(&mut self) -> Name {
        let text = self.one_of(&["exp", "max", "min", "clamp", "unknown"]).to_string();
        Name { text, span: Span::default() }
    }

    fn side(&mut self, depth: usize) -> (CompareOp, Expr) {
        use CompareOp::*;
        (*self.one_of(&[Lt, Le, Gt, Ge, Eq, Ne]), self.expr(depth))
    }

    fn reduce(&mut self, depth: usize) -> ExprKind {
        use ReduceOp::*;
        let mut items = self.list(0, |random| random.item(depth));
        items.insert(0, ReduceItem::Binder(self.binder(depth.min(2))));
        ExprKind::Reduce { op: *self.one_of(&[Sum, Prod, Max, Min, Mean, LogSumExp]), items, body: self.boxed(depth) }
    }

    fn item(&mut self, depth: usize) -> ReduceItem {
        if self.chance() {
            return ReduceItem::Binder(self.binder(depth.min(2)));
        }
        let kind = match self.below(3) {
            0 => ExprKind::Not(self.boxed(depth)),
            1 => ExprKind::Binary { op: BinaryOp::Or, left: self.boxed(depth), right: self.boxed(depth) },
            _ => ExprKind::Compare { first: self.boxed(depth), rest: self.list(1, |random| random.side(depth)) },
        };
        ReduceItem::Condition(Expr { kind, span: Span::default() })
    }
}

const BINARY: &[BinaryOp] = &[
    BinaryOp::Add,
    BinaryOp::Subtract,
    BinaryOp::Multiply,
    BinaryOp::Divide,
    BinaryOp::FloorDivide,
    BinaryOp::Remainder,
    BinaryOp::Power,
    BinaryOp::And,
    BinaryOp::Or,
];
