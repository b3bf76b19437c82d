//! Text to tokens: names, numbers, symbols, and the ends of statements.
//!
//! [`tokenize`] decides here, once, where statements end, so that the parser sees one [`TokenKind::End`] after
//! each statement and none elsewhere. Comments are set aside with their places. A piece of text that is no token
//! is reported and leaves a [`TokenKind::Bad`] behind, so that the parser does not report it a second time.

use super::ast::{CompareOp, ReduceOp};
use super::{CONSTANTS, KEYWORDS, MAX_ERRORS, MAX_INTEGER, MAX_TOKENS};
use crate::diagnostic::{Diagnostic, Span};

/// A token and its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub span: Span,
}

/// The kinds of token; a name's text is the source at its span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TokenKind {
    Name,
    Integer(u64),
    Real(f64),
    Param,
    Input,
    Output,
    If,
    Then,
    Else,
    In,
    And,
    Or,
    Not,
    Pi,
    Inf,
    /// `sum`, `prod`, `max`, `min`
    Reduce(ReduceOp),
    /// `<`, `<=`, …
    Compare(CompareOp),
    Plus,
    Minus,
    Star,
    Slash,
    SlashSlash,
    Percent,
    Power,
    Assign,
    Comma,
    Range,
    RangeInclusive,
    OpenParen,
    CloseParen,
    OpenBracket,
    CloseBracket,
    /// The end of a statement, placed right behind its last token.
    End,
    /// Something that was reported already.
    Bad,
    /// Only inside this file: [`end_statements`] turns it into [`TokenKind::End`] or drops it.
    Newline,
    /// Only inside this file: always becomes [`TokenKind::End`].
    Semicolon,
}

/// A comment: its place with the `#`, and its text without the `#`, the space behind it and trailing space.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Comment {
    pub span: Span,
    pub text: String,
}

/// A text taken apart; ends in [`TokenKind::End`] unless there are no tokens at all.
pub(super) struct Tokens {
    pub tokens: Vec<Token>,
    pub comments: Vec<Comment>,
    pub errors: Vec<Diagnostic>,
}

/// Takes `source` apart; gives up after [`MAX_ERRORS`] errors or [`MAX_TOKENS`] tokens.
pub(super) fn tokenize(source: &str) -> Tokens {
    let mut lexer = Lexer { source, position: 0, tokens: Vec::new(), comments: Vec::new(), errors: Vec::new() };
    while lexer.position < source.len() && lexer.errors.len() < MAX_ERRORS {
        if lexer.tokens.len() == MAX_TOKENS {
            let errors = vec![too_many_tokens(lexer.position)];
            return Tokens { tokens: Vec::new(), comments: Vec::new(), errors };
        }
        lexer.step();
    }
    let tokens = end_statements(&lexer.tokens);
    Tokens { tokens, comments: lexer.comments, errors: lexer.errors }
}

fn too_many_tokens(position: usize) -> Diagnostic {
    Diagnostic::error(
        "source-too-large",
        format!("the text has more than {MAX_TOKENS} names, numbers, symbols and lines"),
    )
    .at(Span::new(position, position))
}

struct Lexer<'a> {
    source: &'a str,
    position: usize,
    tokens: Vec<Token>,
    comments: Vec<Comment>,
    errors: Vec<Diagnostic>,
}

impl Lexer<'_> {
    /// Takes one token, comment or run of space.
    fn step(&mut self) {
        let rest = &self.source[self.position..];
        let Some(first) = rest.chars().next() else { return };
        match first {
            '\n' => self.push(TokenKind::Newline, 1),
            '#' => self.comment(rest),
            _ if is_space(first) => self.position += first.len_utf8(),
            _ if is_name_start(first) => self.name(rest),
            _ if first.is_ascii_digit() => self.number(rest),
            _ => match symbol(rest) {
                Some((kind, length)) => self.push(kind, length),
                None => self.stray(rest),
            },
        }
    }

    /// Adds a token of `length` bytes.
    fn push(&mut self, kind: TokenKind, length: usize) {
        let span = Span::new(self.position, self.position + length);
        self.tokens.push(Token { kind, span });
        self.position = span.end;
    }

    fn bad(&mut self, length: usize, code: &'static str, message: String, hint: String) {
        let error = Diagnostic::error(code, message).at(Span::new(self.position, self.position + length));
        self.push(TokenKind::Bad, length);
        self.errors.push(if hint.is_empty() { error } else { error.hint(hint) });
    }

    fn comment(&mut self, rest: &str) {
        let line = rest.split('\n').next().unwrap_or(rest);
        let text = line[1..].strip_prefix(' ').unwrap_or(&line[1..]).trim_end();
        // An empty text is a blank line between comments; a bare `#` is kept apart from it.
        let text = if text.is_empty() { " " } else { text }.to_string();
        let span = Span::new(self.position, self.position + line.len());
        self.comments.push(Comment { span, text });
        self.position = span.end;
    }

    fn name(&mut self, rest: &str) {
        let text = &rest[..count(rest, is_name_part)];
        self.push(keyword(text).unwrap_or(TokenKind::Name), text.len());
    }

    fn number(&mut self, rest: &str) {
        let (length, real) = number_length(rest);
        let text = &rest[..length];
        let tail = &rest[length..];
        if tail.starts_with(is_name_part) {
            return self.number_with_letters(text, tail);
        }
        if tail.starts_with('.') && !tail.starts_with("..") {
            let hint = format!("a number has digits on both sides of the point: write `{}.0`", shorten(text));
            return self.bad(length + 1, "bad-number", "this number ends in a point".into(), hint);
        }
        let kind = if real { finite_real(text) } else { small_integer(text) };
        match kind {
            Some(kind) => self.push(kind, length),
            None => self.number_too_large(length, real),
        }
    }

    fn number_with_letters(&mut self, text: &str, tail: &str) {
        let letters = &tail[..count(tail, is_name_part)];
        let (number, name) = (shorten(text), shorten(letters));
        let hint = if letters.starts_with('_') {
            "digits can't be grouped with `_`".into()
        } else if text == "0" && letters.starts_with(['x', 'b', 'o']) {
            "numbers are decimal".into()
        } else if matches!(letters, "e" | "E") {
            format!("an exponent needs digits: `{number}e3`")
        } else {
            format!("a product needs an operator: `{number} * {name}`")
        };
        let message = format!("the number `{number}` runs into `{name}`");
        self.bad(text.len() + letters.len(), "bad-number", message, hint);
    }

    fn number_too_large(&mut self, length: usize, real: bool) {
        let (message, hint) = if real {
            ("this number is too large for a 64-bit float", "the constant `inf` is infinity")
        } else {
            ("this integer is larger than 2^62", "write it as a real number, with a point or an exponent")
        };
        self.bad(length, "number-too-large", message.into(), hint.into());
    }

    /// Reports what no token begins with; a run of such characters is reported once.
    fn stray(&mut self, rest: &str) {
        if rest.starts_with('.') && rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
            let length = 1 + number_length(&rest[1..]).0;
            let hint = format!("a number has digits on both sides of the point: write `0{}`", shorten(&rest[..length]));
            return self.bad(length, "bad-number", "this number begins with a point".into(), hint);
        }
        let first = rest.chars().next().unwrap_or_default();
        let length = rest
            .char_indices()
            .find(|&(at, c)| at > 0 && (c == '\n' || c == '#' || is_space(c) || is_name_part(c) || starts_symbol(c)))
            .map_or(rest.len(), |(at, _)| at);
        let shown = shorten(&rest[..length]);
        let noun = if length == first.len_utf8() { "character" } else { "characters" };
        self.bad(length, "stray-character", format!("stray {noun} `{shown}`"), stray_hint(rest, first).into());
    }
}

fn is_space(c: char) -> bool {
    c.is_whitespace() && c != '\n' || c == '\u{feff}'
}

fn is_name_start(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

fn is_name_part(c: char) -> bool {
    is_name_start(c) || c.is_ascii_digit()
}

fn starts_symbol(c: char) -> bool {
    "+-*/%^=,;<>!.()[]".contains(c)
}

/// The number of bytes of `text` before the first character that is not `wanted`.
fn count(text: &str, wanted: impl Fn(char) -> bool) -> usize {
    text.find(|c| !wanted(c)).unwrap_or(text.len())
}

/// The length of the number that `text` begins with, and whether it has a point or an exponent.
fn number_length(text: &str) -> (usize, bool) {
    let digits = |from: usize| count(&text[from..], |c| c.is_ascii_digit());
    let whole = digits(0);
    let mut end = whole;
    if text[end..].starts_with('.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits(end + 1 + sign);
        end += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    (end, end > whole)
}

fn small_integer(text: &str) -> Option<TokenKind> {
    text.parse().ok().filter(|&value| value <= MAX_INTEGER).map(TokenKind::Integer)
}

fn finite_real(text: &str) -> Option<TokenKind> {
    text.parse().ok().filter(|value: &f64| value.is_finite()).map(TokenKind::Real)
}

fn keyword(text: &str) -> Option<TokenKind> {
    let kind = match text {
        "param" => TokenKind::Param,
        "input" => TokenKind::Input,
        "output" => TokenKind::Output,
        "if" => TokenKind::If,
        "then" => TokenKind::Then,
        "else" => TokenKind::Else,
        "in" => TokenKind::In,
        "and" => TokenKind::And,
        "or" => TokenKind::Or,
        "not" => TokenKind::Not,
        "sum" => TokenKind::Reduce(ReduceOp::Sum),
        "prod" => TokenKind::Reduce(ReduceOp::Prod),
        "max" => TokenKind::Reduce(ReduceOp::Max),
        "min" => TokenKind::Reduce(ReduceOp::Min),
        "pi" => TokenKind::Pi,
        "inf" => TokenKind::Inf,
        _ => return None,
    };
    debug_assert!(KEYWORDS.contains(&text) || CONSTANTS.contains(&text));
    Some(kind)
}

/// The symbol that `text` begins with, and its length; longer ones first.
fn symbol(text: &str) -> Option<(TokenKind, usize)> {
    const SYMBOLS: &[(&str, TokenKind)] = &[
        ("..=", TokenKind::RangeInclusive),
        ("..", TokenKind::Range),
        ("**", TokenKind::Power),
        ("//", TokenKind::SlashSlash),
        ("<=", TokenKind::Compare(CompareOp::Le)),
        (">=", TokenKind::Compare(CompareOp::Ge)),
        ("==", TokenKind::Compare(CompareOp::Eq)),
        ("!=", TokenKind::Compare(CompareOp::Ne)),
        ("<", TokenKind::Compare(CompareOp::Lt)),
        (">", TokenKind::Compare(CompareOp::Gt)),
        ("+", TokenKind::Plus),
        ("-", TokenKind::Minus),
        ("*", TokenKind::Star),
        ("/", TokenKind::Slash),
        ("%", TokenKind::Percent),
        ("^", TokenKind::Power),
        ("=", TokenKind::Assign),
        (",", TokenKind::Comma),
        (";", TokenKind::Semicolon),
        ("(", TokenKind::OpenParen),
        (")", TokenKind::CloseParen),
        ("[", TokenKind::OpenBracket),
        ("]", TokenKind::CloseBracket),
    ];
    SYMBOLS.iter().find(|(symbol, _)| text.starts_with(symbol)).map(|&(symbol, kind)| (kind, symbol.len()))
}

/// What to write instead; empty when nothing is likely.
fn stray_hint(rest: &str, first: char) -> &'static str {
    match first {
        '&' => "write `and`",
        '|' => "write `or`; an absolute value is `abs(x)`",
        '!' => "write `not`; `!=` is one symbol, and a factorial is `exp(lgamma(n + 1))`",
        '−' | '–' | '—' => "write `-`",
        '×' | '·' | '∙' | '⋅' => "write `*`",
        '÷' => "write `/`",
        '≤' => "write `<=`",
        '≥' => "write `>=`",
        '≠' => "write `!=`",
        '∞' => "write `inf`",
        '∑' => "write `sum[k] …`",
        '∏' => "write `prod[k] …`",
        '√' => "write `sqrt(x)`",
        '∈' => "write `in`",
        '²' => "write `^2`",
        '³' => "write `^3`",
        '₀'..='₉' => "digits in names are plain: `x1` or `x_1`",
        '?' => "write `if c then a else b`",
        '\'' | '"' => "names have letters, digits and `_`, and there is no text",
        '{' | '}' => "brackets `[ ]` hold indices, parentheses `( )` hold values",
        ':' if rest.starts_with(":=") => "write `=`",
        ':' => "a range belongs to an index, `k in lo..hi`; for a slice, read `x[k]` over that range",
        '.' => "a range is written `lo..hi`, a product `a * b`, and functions come first, as in `sum[k] x[k]`",
        '@' => "a product of matrices is written `sum[k] a[i, k] * b[k, j]`",
        '\\' => "a line is continued by ending it in an operator or inside parentheses",
        _ => "",
    }
}

/// Keeps as [`TokenKind::End`] just the newlines and semicolons that end a statement.
///
/// A newline does not count while a bracket is open or after a token that [`continues`]. A line that can only be
/// a new statement closes open brackets, so that a forgotten `)` spoils one statement and not the rest of the text.
fn end_statements(raw: &[Token]) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::with_capacity(raw.len() + 1);
    let mut open = 0usize;
    for (at, &token) in raw.iter().enumerate() {
        let ends = match token.kind {
            TokenKind::Newline if open > 0 => begins_statement(&raw[at + 1..]),
            TokenKind::Newline => !tokens.last().is_some_and(|last| continues(last.kind)),
            TokenKind::Semicolon => true,
            _ => false,
        };
        match token.kind {
            _ if ends => {
                open = 0;
                push_end(&mut tokens);
            }
            TokenKind::Newline => {}
            TokenKind::OpenParen | TokenKind::OpenBracket => {
                open += 1;
                tokens.push(token);
            }
            TokenKind::CloseParen | TokenKind::CloseBracket => {
                open = open.saturating_sub(1);
                tokens.push(token);
            }
            _ => tokens.push(token),
        }
    }
    push_end(&mut tokens);
    tokens
}

fn push_end(tokens: &mut Vec<Token>) {
    if let Some(last) = tokens.last().filter(|last| last.kind != TokenKind::End) {
        let span = Span::new(last.span.end, last.span.end);
        tokens.push(Token { kind: TokenKind::End, span });
    }
}

/// Whether a line that ends in this token goes on in the next one.
fn continues(kind: TokenKind) -> bool {
    use TokenKind::*;
    match kind {
        Plus | Minus | Star | Slash | SlashSlash | Percent | Power | Compare(_) | And | Or | Not => true,
        Assign | Comma | Then | Else => true,
        Name | Integer(_) | Real(_) | Param | Input | Output | If | In | Pi | Inf | Reduce(_) => false,
        Range | RangeInclusive | OpenParen | CloseParen | OpenBracket | CloseBracket => false,
        End | Bad | Newline | Semicolon => false,
    }
}

/// Whether a line is `name =`, `name[…] =`, or begins with a declaration's keyword.
fn begins_statement(line: &[Token]) -> bool {
    let kind = |at: usize| line.get(at).map(|token| token.kind);
    match (kind(0), kind(1)) {
        (Some(TokenKind::Param | TokenKind::Input | TokenKind::Output), _) => true,
        (Some(TokenKind::Name), Some(TokenKind::Assign)) => true,
        (Some(TokenKind::Name), Some(TokenKind::OpenBracket)) => {
            matching_bracket(line).is_some_and(|close| kind(close + 1) == Some(TokenKind::Assign))
        }
        _ => false,
    }
}

/// Where the first bracket of the line is closed, if that is in the same line.
fn matching_bracket(line: &[Token]) -> Option<usize> {
    let mut open = 0usize;
    for (at, token) in line.iter().enumerate() {
        match token.kind {
            TokenKind::OpenBracket | TokenKind::OpenParen => open += 1,
            TokenKind::CloseBracket | TokenKind::CloseParen if open <= 1 => return Some(at),
            TokenKind::CloseBracket | TokenKind::CloseParen => open -= 1,
            TokenKind::Newline | TokenKind::Semicolon => return None,
            _ => {}
        }
    }
    None
}

/// The text, cut where it is too long for a message.
pub(super) fn shorten(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_string(),
    }
}
