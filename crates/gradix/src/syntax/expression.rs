//! Tokens to expressions, by precedence climbing.
//!
//! The trees it makes are at most [`MAX_HEIGHT`] high, and nothing is nested deeper than [`MAX_NESTING`], so that
//! neither this parser nor any recursive function over its trees runs out of stack.

use super::ast::*;
use super::parse::{BRACKET_RULE, Parsed, Parser, error};
use super::token::{Token, TokenKind, shorten};
use super::words;
use super::{FREE_WORDS, FUNCTIONS, MAX_HEIGHT, MAX_NESTING, is_reserved};
use crate::diagnostic::{Diagnostic, Span};
use gradix_int::Int;

/// For `x = [1, 2, 3]` and `i in [0, N)`.
const ARRAY: &str =
    "brackets follow a name and hold indices; arrays are given as inputs (`input x[N]`), ranges are written `0..N`";

/// An expression and its height: 0 for a leaf, else one more than that of its highest part.
pub(super) struct Tree {
    pub expr: Box<Expr>,
    height: usize,
}

/// How tightly an operator binds, loosest first.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Level {
    Or,
    And,
    Not,
    Compare,
    Sum,
    Product,
    Unary,
}

impl Level {
    fn tighter(self) -> Level {
        match self {
            Level::Or => Level::And,
            Level::And => Level::Not,
            Level::Not => Level::Compare,
            Level::Compare => Level::Sum,
            Level::Sum => Level::Product,
            Level::Product | Level::Unary => Level::Unary,
        }
    }
}

/// An operator between two operands.
enum Infix {
    Binary(BinaryOp),
    Compare,
}

fn infix(kind: TokenKind) -> Option<(Level, Infix)> {
    let (level, op) = match kind {
        TokenKind::Or => (Level::Or, BinaryOp::Or),
        TokenKind::And => (Level::And, BinaryOp::And),
        TokenKind::Compare(_) => return Some((Level::Compare, Infix::Compare)),
        TokenKind::Plus => (Level::Sum, BinaryOp::Add),
        TokenKind::Minus => (Level::Sum, BinaryOp::Subtract),
        TokenKind::Star => (Level::Product, BinaryOp::Multiply),
        TokenKind::Slash => (Level::Product, BinaryOp::Divide),
        TokenKind::SlashSlash => (Level::Product, BinaryOp::FloorDivide),
        TokenKind::Percent => (Level::Product, BinaryOp::Remainder),
        _ => return None,
    };
    Some((level, Infix::Binary(op)))
}

impl Parser<'_> {
    /// An expression of any form.
    pub fn expression(&mut self) -> Parsed<Tree> {
        match self.peek().kind {
            TokenKind::If => self.nested(Self::conditional),
            _ => self.operators(Level::Or),
        }
    }

    /// An expression with nothing looser than `+` and `-`: one side of a range or of a param's bound.
    /// Raises `height` to its own.
    pub fn sum(&mut self, height: &mut usize) -> Parsed<Expr> {
        let tree = self.operators(Level::Sum)?;
        *height = tree.height.max(*height);
        Ok(*tree.expr)
    }

    /// A whole expression, as in a list; raises `height` to its own.
    pub fn part(&mut self, height: &mut usize) -> Parsed<Expr> {
        let tree = self.expression()?;
        *height = tree.height.max(*height);
        Ok(*tree.expr)
    }

    /// Every recursion passes through here.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting == MAX_NESTING {
            return Err(too_deep(self.peek().span));
        }
        self.nesting += 1;
        let result = inner(self);
        self.nesting -= 1;
        result
    }

    fn conditional(&mut self) -> Parsed<Tree> {
        let start = self.advance().span;
        let condition = self.expression()?;
        self.word(TokenKind::Then, "`then` after the condition", start)?;
        let then = self.expression()?;
        self.word(TokenKind::Else, "`else`", start)?;
        let otherwise = self.expression()?;
        let span = start.to(otherwise.expr.span);
        let height = condition.height.max(then.height).max(otherwise.height);
        let kind = ExprKind::If { condition: condition.expr, then: then.expr, otherwise: otherwise.expr };
        above(height, kind, span)
    }

    fn word(&mut self, kind: TokenKind, what: &str, start: Span) -> Parsed<Token> {
        self.take(kind).ok_or_else(|| {
            let hint = match self.peek().kind {
                TokenKind::Assign => "`==` compares; `=` only defines",
                _ => "a condition is written `if c then a else b`; it always has both branches",
            };
            Box::new(self.unexpected_but(&format!("expected {what}"), hint).label(start, "of this `if`"))
        })
    }

    /// A chain of operators that bind at least as tightly as `loosest`.
    fn operators(&mut self, loosest: Level) -> Parsed<Tree> {
        let mut left = match self.peek().kind {
            TokenKind::Not if loosest <= Level::Not => self.nested(Self::not)?,
            _ => self.unary()?,
        };
        while let Some((level, infix)) = infix(self.peek().kind).filter(|(level, _)| *level >= loosest) {
            left = match infix {
                Infix::Compare => self.comparison(left)?,
                Infix::Binary(op) => {
                    self.advance();
                    let right = self.operators(level.tighter())?;
                    binary(op, left, right)?
                }
            };
        }
        Ok(left)
    }

    fn not(&mut self) -> Parsed<Tree> {
        let start = self.advance().span;
        let operand = self.operators(Level::Not)?;
        let span = start.to(operand.expr.span);
        above(operand.height, ExprKind::Not(operand.expr), span)
    }

    /// The comparisons that follow the side `first`.
    fn comparison(&mut self, first: Tree) -> Parsed<Tree> {
        let mut rest = Vec::new();
        let (mut span, mut height) = (first.expr.span, first.height);
        while let TokenKind::Compare(op) = self.peek().kind {
            self.advance();
            let side = self.operators(Level::Sum)?;
            span = span.to(side.expr.span);
            height = height.max(side.height);
            rest.push((op, *side.expr));
        }
        above(height, ExprKind::Compare { first: first.expr, rest }, span)
    }

    fn unary(&mut self) -> Parsed<Tree> {
        match self.peek().kind {
            TokenKind::Minus => self.nested(Self::negation),
            _ => self.power(),
        }
    }

    fn negation(&mut self) -> Parsed<Tree> {
        let start = self.advance().span;
        let operand = self.unary()?;
        let span = start.to(operand.expr.span);
        above(operand.height, ExprKind::Negate(operand.expr), span)
    }

    fn power(&mut self) -> Parsed<Tree> {
        let base = self.atom()?;
        if self.take(TokenKind::Power).is_none() {
            return Ok(base);
        }
        let exponent = self.nested(Self::unary)?;
        binary(BinaryOp::Power, base, exponent)
    }

    fn atom(&mut self) -> Parsed<Tree> {
        let Token { kind, span } = self.peek();
        let kind = match kind {
            TokenKind::Integer(value) => ExprKind::Integer(Int::from(value)),
            TokenKind::Real(value) => ExprKind::Real(value),
            TokenKind::Pi => ExprKind::Pi,
            TokenKind::Inf => ExprKind::Inf,
            TokenKind::Name => return self.named(),
            TokenKind::OpenParen => return self.nested(Self::parenthesis),
            TokenKind::Reduce(op) => return self.reduction_or_call(op),
            _ => return Err(self.not_an_operand()),
        };
        self.advance();
        Ok(leaf(kind, span))
    }

    fn not_an_operand(&self) -> Box<Diagnostic> {
        let Token { kind, span } = self.peek();
        let operand = |word: &str| format!("`{word}` can't begin an operand");
        match kind {
            TokenKind::If => error("needs-parentheses", operand("if"), span, "write `(if c then a else b)`"),
            TokenKind::Not => error("needs-parentheses", operand("not"), span, "write `(not c)`"),
            TokenKind::Plus => self.unexpected_but("expected an expression", "there is no sign `+`, only `-`"),
            TokenKind::OpenBracket => self.unexpected_but("expected an expression", ARRAY),
            _ => self.unexpected("expected an expression"),
        }
    }

    fn parenthesis(&mut self) -> Parsed<Tree> {
        let open = self.advance();
        let mut tree = self.expression()?;
        let close = self.close(open, TokenKind::CloseParen)?;
        tree.expr.span = open.span.to(close.span);
        Ok(tree)
    }

    /// A name, and the brackets or parentheses behind it.
    fn named(&mut self) -> Parsed<Tree> {
        let text = self.text(self.peek().span);
        let taken = self.taken.place(text);
        let known = FUNCTIONS.contains(&text) && taken.is_none();
        match (self.peek_second(), words::reduction(text).filter(|_| taken.is_none())) {
            (TokenKind::OpenBracket, Some(op)) => self.nested(|parser| parser.reduction(op)),
            (TokenKind::OpenParen, _) => match taken {
                Some(introduced) => Err(self.call_of_name(introduced)),
                None => self.nested(Self::call),
            },
            (TokenKind::OpenBracket, None) if known => Err(self.function_with_brackets()),
            (TokenKind::OpenBracket, None) => self.nested(Self::access),
            _ if known => Err(self.function_without_arguments()),
            _ => {
                let span = self.advance().span;
                Ok(leaf(ExprKind::Name(text.to_string()), span))
            }
        }
    }

    fn function_with_brackets(&self) -> Box<Diagnostic> {
        let span = self.peek().span;
        let name = self.text(span);
        let message = format!("the function `{name}` is followed by a bracket");
        error("wrong-bracket", message, span, &format!("{BRACKET_RULE}: write `{name}(…)`"))
    }

    fn function_without_arguments(&self) -> Box<Diagnostic> {
        let span = self.peek().span;
        let name = self.text(span);
        let hint = match FREE_WORDS.contains(&name) {
            true => format!("write `{name}(…)`"),
            false => format!("write `{name}(…)`; a function can't be used as a name"),
        };
        error("reserved-name", format!("the function `{name}` has no arguments"), span, &hint)
    }

    /// `stop(x)` in a program in which `stop` is a tensor.
    fn call_of_name(&self, introduced: Span) -> Box<Diagnostic> {
        let span = self.peek().span;
        let name = self.text(span);
        let message = format!("`{name}` is a name of this program, and no function");
        let hint = format!("for a product write `{name} * (…)`; for the function, give the name to nothing else");
        Box::new(error("bad-call", message, span, &hint).label(introduced, "introduced here"))
    }

    fn call(&mut self) -> Parsed<Tree> {
        let span = self.advance().span;
        let function = Name { text: self.text(span).to_string(), span };
        let mut height = 0;
        let arguments = self.list(TokenKind::CloseParen, |parser| parser.part(&mut height))?;
        above(height, ExprKind::Call { function, arguments }, span.to(self.previous().span))
    }

    fn access(&mut self) -> Parsed<Tree> {
        let span = self.advance().span;
        let name = Name { text: self.text(span).to_string(), span };
        let mut height = 0;
        let subscripts = self.bracket(|parser| parser.part(&mut height))?;
        above(height, ExprKind::Access { name, subscripts }, span.to(self.previous().span))
    }

    fn reduction_or_call(&mut self, op: ReduceOp) -> Parsed<Tree> {
        let callable = FUNCTIONS.contains(&self.text(self.peek().span));
        match self.peek_second() {
            TokenKind::OpenBracket => self.nested(|parser| parser.reduction(op)),
            TokenKind::OpenParen if callable => self.nested(Self::call),
            _ => Err(self.reduction_without_bracket()),
        }
    }

    fn reduction_without_bracket(&self) -> Box<Diagnostic> {
        let span = self.peek().span;
        let word = self.text(span);
        if self.peek_second() == TokenKind::OpenParen {
            let message = format!("`{word}` is followed by a parenthesis");
            return error("wrong-bracket", message, span, &format!("{BRACKET_RULE}: write `{}`", self.bracketed(word)));
        }
        let hint = format!("write `{word}[k] …`; the keyword `{word}` can't be used as a name");
        error("reserved-name", format!("`{word}` needs indices in brackets"), span, &hint)
    }

    /// What `sum(k) …` and `sum(x)` are meant as.
    fn bracketed(&self, word: &str) -> String {
        let kind = |ahead| self.peek_at(ahead).map_or(TokenKind::End, |token| token.kind);
        let named = (kind(2), kind(3)) == (TokenKind::Name, TokenKind::CloseParen);
        match self.peek_at(2).filter(|_| named).map(|name| self.text(name.span)) {
            Some(index) if matches!(kind(4), TokenKind::Name | TokenKind::OpenParen) => format!("{word}[{index}] …"),
            Some(tensor) => format!("{word}[k] {tensor}[k]"),
            None => format!("{word}[k] …"),
        }
    }

    fn reduction(&mut self, op: ReduceOp) -> Parsed<Tree> {
        let word = self.advance().span;
        if self.peek_second() == TokenKind::CloseBracket {
            return Err(self.no_index(word, self.peek().span));
        }
        let mut height = 0;
        let items = self.bracket(|parser| parser.item(&mut height))?;
        if !items.iter().any(|item| matches!(item, ReduceItem::Binder(_))) {
            return Err(self.no_index(word, self.previous().span));
        }
        let body = self.operators(Level::Product)?;
        let span = word.to(body.expr.span);
        above(height.max(body.height), ExprKind::Reduce { op, items, body: body.expr }, span)
    }

    fn no_index(&self, word: Span, last: Span) -> Box<Diagnostic> {
        let name = self.text(word);
        let hint = format!("name what it runs over: `{name}[k] …` or `{name}[k in 0..N] …`");
        error("no-index", format!("this `{name}` has no index"), word.to(last), &hint)
    }

    fn item(&mut self, height: &mut usize) -> Parsed<ReduceItem> {
        if self.begins_binder() {
            return Ok(ReduceItem::Binder(self.binder(height)?));
        }
        let condition = self.part(height)?;
        match is_condition(&condition) {
            true => Ok(ReduceItem::Condition(condition)),
            false => Err(self.neither_index_nor_condition(&condition)),
        }
    }

    /// Whether a word stands where an expression that begins with it could not go on.
    fn begins_binder(&self) -> bool {
        let Token { kind, span } = self.peek();
        match self.peek_second() {
            TokenKind::In | TokenKind::Comma | TokenKind::CloseBracket | TokenKind::End => {
                kind == TokenKind::Name || is_reserved(self.text(span))
            }
            TokenKind::Assign | TokenKind::Integer(_) | TokenKind::Name => kind == TokenKind::Name,
            _ => false,
        }
    }

    fn neither_index_nor_condition(&self, expr: &Expr) -> Box<Diagnostic> {
        let text = shorten(self.text(expr.span));
        let hint = "the bracket of a reduction lists indices (`k`, `k in 0..N`) and conditions (`k != i`)";
        error("no-index", format!("`{text}` is neither an index nor a condition"), expr.span, hint)
    }
}

fn is_condition(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Compare { .. } | ExprKind::Not(_) => true,
        ExprKind::Binary { op, .. } => matches!(op, BinaryOp::And | BinaryOp::Or),
        ExprKind::If { then, .. } => is_condition(then),
        ExprKind::Integer(_) | ExprKind::Real(_) | ExprKind::Pi | ExprKind::Inf | ExprKind::Name(_) => false,
        ExprKind::Access { .. } | ExprKind::Call { .. } | ExprKind::Negate(_) | ExprKind::Reduce { .. } => false,
    }
}

fn binary(op: BinaryOp, left: Tree, right: Tree) -> Parsed<Tree> {
    let span = left.expr.span.to(right.expr.span);
    let height = left.height.max(right.height);
    above(height, ExprKind::Binary { op, left: left.expr, right: right.expr }, span)
}

fn leaf(kind: ExprKind, span: Span) -> Tree {
    Tree { expr: Box::new(Expr { kind, span }), height: 0 }
}

/// The tree whose highest part has height `height`.
fn above(height: usize, kind: ExprKind, span: Span) -> Parsed<Tree> {
    match height < MAX_HEIGHT {
        true => Ok(Tree { expr: Box::new(Expr { kind, span }), height: height + 1 }),
        false => Err(too_high(span)),
    }
}

fn too_high(span: Span) -> Box<Diagnostic> {
    let message = format!("this expression has more than {MAX_HEIGHT} operations on top of each other");
    error("too-deep", message, span, "split it into several definitions, or group a long chain with parentheses")
}

fn too_deep(span: Span) -> Box<Diagnostic> {
    let message = format!("this is nested more than {MAX_NESTING} deep");
    error("too-deep", message, span, "split the expression into several definitions")
}
