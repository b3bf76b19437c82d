//! Tokens to [`Ast`]: statements and declarations.
//!
//! A statement that can't be understood is reported once, at the first thing that does not fit, and skipped; the
//! next one is read as if nothing had happened. Expressions are in `expression.rs`.

use super::ast::*;
use super::foreign;
use super::layout::Layout;
use super::token::{Token, TokenKind, Tokens, shorten, tokenize};
use super::words::Taken;
use super::{Ast, MAX_ERRORS, MAX_ITEMS, MAX_SOURCE, is_reserved};
use crate::diagnostic::{Diagnostic, Result, Span};

/// Reads a whole text, or says everything that is wrong with it (at most [`MAX_ERRORS`] errors, in the order of
/// the text). Takes time linear in the length of the text, whatever is in it.
pub fn parse(source: &str) -> Result<Ast> {
    if source.len() > MAX_SOURCE {
        return Err(vec![source_too_large(source.len())]);
    }
    let Tokens { tokens, comments, mut errors } = tokenize(source);
    let taken = Taken::by(source, &tokens);
    let mut parser = Parser { source, tokens: &tokens, taken: &taken, first: 0, position: 0, nesting: 0 };
    let mut layout = Layout::new(source, &comments);
    let mut statements = Vec::new();
    while parser.position < tokens.len() && errors.len() < 2 * MAX_ERRORS {
        match parser.statement() {
            Ok((kind, span)) => statements.push(layout.attach(kind, span)),
            Err(error) => {
                let rest = &tokens[parser.first..];
                let is_news = parser.skip_statement();
                match foreign::recognise(source, rest, &taken) {
                    Some(error) => parser.replace_errors(&mut errors, error),
                    None => errors.extend(is_news.then_some(*error)),
                }
            }
        }
    }
    if errors.is_empty() {
        return Ok(Ast { statements, trailing_comments: layout.rest() });
    }
    errors.sort_by_key(|error| error.labels.first().map(|label| label.span));
    errors.truncate(MAX_ERRORS);
    Err(errors)
}

fn source_too_large(length: usize) -> Diagnostic {
    let message = format!("the text is {length} bytes long, and at most {MAX_SOURCE} are accepted");
    Diagnostic::error("source-too-large", message).at(Span::new(MAX_SOURCE, MAX_SOURCE))
}

/// What one step of the parser gives: the first error ends the statement. The box keeps stack frames small.
pub(super) type Parsed<T> = Result<T, Box<Diagnostic>>;

/// An error at a place; an empty hint is none.
pub(super) fn error(code: &'static str, message: String, span: Span, hint: &str) -> Box<Diagnostic> {
    let error = Diagnostic::error(code, message).at(span);
    Box::new(if hint.is_empty() { error } else { error.hint(hint) })
}

/// The tokens, and how far they are read. There is an [`TokenKind::End`] behind every statement, and no step goes
/// past it but the one that ends the statement.
pub(super) struct Parser<'a> {
    pub source: &'a str,
    tokens: &'a [Token],
    pub taken: &'a Taken,
    /// The first token of this statement.
    first: usize,
    /// The next token.
    position: usize,
    /// How deep in expressions.
    pub nesting: usize,
}

impl<'a> Parser<'a> {
    pub fn peek(&self) -> Token {
        self.tokens[self.position]
    }

    pub fn peek_second(&self) -> TokenKind {
        self.tokens.get(self.position + 1).map_or(TokenKind::End, |token| token.kind)
    }

    /// The token `ahead` of the next one.
    pub fn peek_at(&self, ahead: usize) -> Option<Token> {
        self.tokens.get(self.position + ahead).copied()
    }

    pub fn at(&self, kind: TokenKind) -> bool {
        self.peek().kind == kind
    }

    pub fn advance(&mut self) -> Token {
        let token = self.peek();
        self.position += 1;
        token
    }

    pub fn take(&mut self, kind: TokenKind) -> Option<Token> {
        self.at(kind).then(|| self.advance())
    }

    pub fn text(&self, span: Span) -> &'a str {
        &self.source[span.start..span.end]
    }

    /// The token that was read last.
    pub fn previous(&self) -> Token {
        self.tokens[self.position - 1]
    }

    fn statement(&mut self) -> Parsed<(StatementKind, Span)> {
        self.first = self.position;
        self.nesting = 0;
        let first = self.peek();
        let kind = match first.kind {
            TokenKind::Param => StatementKind::Param(self.declarations(Self::param)?),
            TokenKind::Input => StatementKind::Input(self.declarations(Self::input)?),
            TokenKind::Output => StatementKind::Output(self.declarations(|parser| parser.name("a result"))?),
            _ => StatementKind::Definition(self.definition()?),
        };
        let span = first.span.to(self.previous().span);
        match self.take(TokenKind::End) {
            Some(_) => Ok((kind, span)),
            None => Err(self.no_end(first.kind)),
        }
    }

    fn no_end(&self, statement: TokenKind) -> Box<Diagnostic> {
        let expected = "expected the end of the statement";
        match (statement, self.peek().kind) {
            (_, TokenKind::CloseParen) => self.unexpected_but(expected, "no `(` is open here"),
            (_, TokenKind::CloseBracket) => self.unexpected_but(expected, "no `[` is open here"),
            (TokenKind::Param | TokenKind::Input | TokenKind::Output, TokenKind::Name) => {
                self.unexpected_but(expected, "declarations are separated by `,`, and have no types")
            }
            _ => self.unexpected(expected),
        }
    }

    /// Goes behind the end of this statement; whether its error is news, and not only due to what is reported already.
    fn skip_statement(&mut self) -> bool {
        let rest = &self.tokens[self.first..];
        let length = rest.iter().take_while(|token| token.kind != TokenKind::End).count();
        self.position = self.first + length + 1;
        rest[..length].iter().all(|token| token.kind != TokenKind::Bad)
    }

    /// Puts `error` in the place of all that is said about this statement.
    fn replace_errors(&self, errors: &mut Vec<Diagnostic>, error: Diagnostic) {
        let statement = self.tokens[self.first].span.to(self.previous().span);
        let inside = |at: Span| statement.start <= at.start && at.end <= statement.end;
        errors.retain(|error| !error.labels.first().is_some_and(|label| inside(label.span)));
        errors.push(error);
    }

    fn declarations<T>(&mut self, one: impl Fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.advance();
        let mut all = vec![one(self)?];
        while self.take(TokenKind::Comma).is_some() {
            all.push(one(self)?);
        }
        Ok(all)
    }

    fn param(&mut self) -> Parsed<ParamDeclaration> {
        let name = self.name("a param")?;
        let mut bounds = Vec::new();
        loop {
            let op = match self.peek().kind {
                TokenKind::Assign => CompareOp::Eq,
                TokenKind::Compare(op @ (CompareOp::Ge | CompareOp::Le)) => op,
                TokenKind::Compare(_) => return Err(self.wrong_bound()),
                TokenKind::OpenBracket => return Err(self.param_with_brackets(&name)),
                _ => return Ok(ParamDeclaration { name, bounds }),
            };
            self.advance();
            bounds.push((op, self.sum(&mut 0)?));
        }
    }

    fn wrong_bound(&self) -> Box<Diagnostic> {
        let found = self.peek();
        let hint = match found.kind {
            TokenKind::Compare(CompareOp::Gt) => "`N > e` is `N >= e + 1`",
            TokenKind::Compare(CompareOp::Lt) => "`N < e` is `N <= e - 1`",
            TokenKind::Compare(CompareOp::Eq) => "a param is fixed with `=`",
            _ => "a param is bounded by `>=` and `<=`, and fixed with `=`",
        };
        let message = format!("`{}` is no bound of a param", self.text(found.span));
        error("unexpected-token", message, found.span, hint)
    }

    fn param_with_brackets(&self, name: &Name) -> Box<Diagnostic> {
        let message = format!("the param `{}` has brackets", shorten(&name.text));
        let hint = "a param is one integer; tensors are declared with `input`";
        error("unexpected-token", message, self.peek().span, hint)
    }

    fn input(&mut self) -> Parsed<InputDeclaration> {
        let name = self.name("an input")?;
        let mut extents = Vec::new();
        if self.at(TokenKind::OpenBracket) {
            extents = self.bracket(|parser| parser.part(&mut 0))?;
        } else if self.at(TokenKind::OpenParen) {
            return Err(self.parenthesis_for_bracket(&name));
        }
        Ok(InputDeclaration { name, extents })
    }

    fn definition(&mut self) -> Parsed<Definition> {
        let name = self.defined_name()?;
        let mut indices = Vec::new();
        if self.at(TokenKind::OpenBracket) {
            indices = self.bracket(|parser| parser.binder(&mut 0))?;
        } else if self.at(TokenKind::OpenParen) {
            return Err(self.parenthesis_for_bracket(&name));
        }
        if self.take(TokenKind::Assign).is_none() {
            return Err(self.missing_assign(&name));
        }
        let body = self.part(&mut 0)?;
        Ok(Definition { name, indices, body })
    }

    fn defined_name(&mut self) -> Parsed<Name> {
        match (self.peek().kind, self.peek_second()) {
            (TokenKind::Name, _) | (_, TokenKind::Assign) => self.name("a tensor"),
            _ => Err(self.unexpected_but(
                "expected a statement",
                "a statement is `param …`, `input …`, `output …`, or a definition such as `y[i] = x[i]`",
            )),
        }
    }

    fn parenthesis_for_bracket(&self, name: &Name) -> Box<Diagnostic> {
        let name = shorten(&name.text);
        let message = format!("`{name}` is followed by a parenthesis");
        error("wrong-bracket", message, self.peek().span, &format!("{BRACKET_RULE}: write `{name}[…]`"))
    }

    fn missing_assign(&self, name: &Name) -> Box<Diagnostic> {
        let hint = match (self.peek().kind, self.peek_second()) {
            (TokenKind::Compare(CompareOp::Eq), _) => "a definition is written with one `=`; `==` compares",
            (kind, TokenKind::Assign) if is_arithmetic(kind) => {
                "a name is defined once; to accumulate, write a reduction such as `sum[k] …`"
            }
            _ if name.text == "return" => "results are named: `output y`, and without that all that nothing else reads",
            _ if matches!(name.text.as_str(), "import" | "from") => "functions such as `exp` and `sqrt` are known",
            _ => "a definition is written `name[i, j] = expression`, and an argument is declared: `input x[N]`",
        };
        self.unexpected_but(&format!("expected `=` after `{}`", shorten(&name.text)), hint)
    }

    /// A name that is free to be used; `what` says for what.
    pub fn name(&mut self, what: &str) -> Parsed<Name> {
        let Token { kind, span } = self.peek();
        let text = self.text(span);
        match kind {
            TokenKind::Name if !is_reserved(text) => {
                self.advance();
                Ok(Name { text: text.to_string(), span })
            }
            _ if is_reserved(text) => Err(reserved_name(text, span, what)),
            _ => Err(self.unexpected(&format!("expected the name of {what}"))),
        }
    }

    /// `k` or `k in lo..hi`; raises `height` to that of its parts.
    pub fn binder(&mut self, height: &mut usize) -> Parsed<Binder> {
        if matches!(self.peek().kind, TokenKind::Integer(_) | TokenKind::Minus | TokenKind::OpenParen) {
            return Err(self.unexpected_but("expected the name of an index", PLAIN_INDEX));
        }
        let name = self.name("an index")?;
        let range = match self.peek().kind {
            TokenKind::In => Some(self.range(&name, height)?),
            TokenKind::Comma | TokenKind::CloseBracket | TokenKind::End => None,
            _ => return Err(self.not_a_binder(&name)),
        };
        Ok(Binder { name, range })
    }

    fn not_a_binder(&self, name: &Name) -> Box<Diagnostic> {
        let name = shorten(&name.text);
        let hint = match self.peek().kind {
            TokenKind::Assign | TokenKind::Integer(_) | TokenKind::Name | TokenKind::OpenParen => {
                format!("a range is written `{name} in lo..hi`")
            }
            _ => PLAIN_INDEX.to_string(),
        };
        self.unexpected_but(&format!("expected `,`, `]` or `in` after the index `{name}`"), &hint)
    }

    fn range(&mut self, name: &Name, height: &mut usize) -> Parsed<Range> {
        self.advance();
        let low = self.sum(height)?;
        let inclusive = match self.peek().kind {
            TokenKind::Range => false,
            TokenKind::RangeInclusive => true,
            _ => return Err(self.missing_range_end(name, &low)),
        };
        self.advance();
        let high = self.sum(height)?;
        Ok(Range { low, high, inclusive })
    }

    fn missing_range_end(&self, name: &Name, low: &Expr) -> Box<Diagnostic> {
        let (name, low) = (shorten(&name.text), shorten(self.text(low.span)));
        let hint = format!("a range is written `lo..hi`, without `hi`, or `lo..=hi`: perhaps `{name} in 0..{low}`");
        self.unexpected_but(&format!("expected `..` in the range of `{name}`"), &hint)
    }

    /// `[ one, one, … ]`, at least one of them
    pub fn bracket<T>(&mut self, one: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.list(TokenKind::CloseBracket, one)
    }

    /// What an open bracket or parenthesis and its partner `close` hold.
    pub fn list<T>(&mut self, close: TokenKind, mut one: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let open = self.advance();
        if self.at(close) {
            return Err(self.empty_list(open));
        }
        let mut all = vec![one(self)?];
        while self.take(TokenKind::Comma).is_some() {
            if all.len() == MAX_ITEMS {
                return Err(self.too_many_items(open));
            }
            all.push(one(self)?);
        }
        self.close(open, close)?;
        Ok(all)
    }

    pub fn close(&mut self, open: Token, close: TokenKind) -> Parsed<Token> {
        self.take(close).ok_or_else(|| self.unclosed(open))
    }

    fn empty_list(&self, open: Token) -> Box<Diagnostic> {
        let (noun, hint) = match open.kind {
            TokenKind::OpenBracket => ("brackets", "a scalar is written without brackets"),
            _ => ("parentheses", "a function needs at least one argument"),
        };
        let span = open.span.to(self.peek().span);
        error("empty-brackets", format!("there is nothing in these {noun}"), span, hint)
    }

    fn too_many_items(&self, open: Token) -> Box<Diagnostic> {
        let message = format!("more than {MAX_ITEMS} items follow this `{}`", self.text(open.span));
        error("too-many-items", message, open.span, "")
    }

    fn unclosed(&self, open: Token) -> Box<Diagnostic> {
        let (open_text, close_text) = match open.kind {
            TokenKind::OpenBracket => ("[", "]"),
            _ => ("(", ")"),
        };
        let mut error = self.unexpected(&format!("expected `{close_text}`"));
        if matches!(self.peek().kind, TokenKind::End | TokenKind::CloseParen | TokenKind::CloseBracket) {
            error.code = "unclosed-bracket";
        }
        Box::new(error.label(open.span, format!("to close this `{open_text}`")))
    }

    /// The error that the next token does not fit: `expected` says what would.
    pub fn unexpected(&self, expected: &str) -> Box<Diagnostic> {
        self.unexpected_but(expected, self.hint_at(self.peek().kind))
    }

    /// The same with a hint of one's own; an empty one is none.
    pub fn unexpected_but(&self, expected: &str, hint: &str) -> Box<Diagnostic> {
        let found = self.peek();
        let message = format!("{expected}, found {}", self.describe(found));
        error("unexpected-token", message, found.span, hint)
    }

    fn describe(&self, token: Token) -> String {
        let text = shorten(self.text(token.span));
        match token.kind {
            TokenKind::End if self.source[token.span.end..].trim().is_empty() => "the end of the text".into(),
            TokenKind::End => "the end of the statement".into(),
            TokenKind::Name => format!("the name `{text}`"),
            TokenKind::Integer(_) | TokenKind::Real(_) => format!("the number `{text}`"),
            _ => format!("`{text}`"),
        }
    }

    /// What is likely meant where an operator or an end was expected; empty when nothing is.
    fn hint_at(&self, found: TokenKind) -> &'static str {
        match found {
            TokenKind::Range | TokenKind::RangeInclusive => "a range belongs to an index: `k in lo..hi`",
            _ if !self.is_behind_operand() => "",
            TokenKind::Assign if self.is_continued() => CONTINUED,
            TokenKind::Assign => "`==` compares; `=` only defines, once in a statement",
            TokenKind::OpenBracket => {
                "all subscripts of a tensor stand in one pair of brackets, `x[i, j]`, behind its name"
            }
            TokenKind::Name | TokenKind::Integer(_) | TokenKind::Real(_) | TokenKind::Pi => PRODUCT,
            TokenKind::OpenParen | TokenKind::Reduce(_) => PRODUCT,
            _ => "",
        }
    }

    fn is_behind_operand(&self) -> bool {
        use TokenKind::*;
        self.position > self.first
            && matches!(self.previous().kind, Name | Integer(_) | Real(_) | Pi | Inf | CloseParen | CloseBracket)
    }

    /// Whether this statement began in an earlier line.
    fn is_continued(&self) -> bool {
        let statement = Span::new(self.tokens[self.first].span.start, self.peek().span.start);
        self.text(statement).contains('\n')
    }
}

const PRODUCT: &str = "a product needs `*`; a new statement begins on a new line or after `;`";

const CONTINUED: &str = "this statement began in an earlier line; a line that ends in an operator goes on in the next";

const PLAIN_INDEX: &str = "an index is introduced by its plain name; arithmetic belongs in the subscripts on the right, \
    and so do first elements: `h[t in 0..T] = if t == 0 then … else … h[t - 1] …`";

/// The rule that makes the notation readable.
pub(super) const BRACKET_RULE: &str = "brackets hold indices, parentheses hold values";

fn is_arithmetic(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::Plus | TokenKind::Minus | TokenKind::Star | TokenKind::Slash)
}

fn reserved_name(text: &str, span: Span, what: &str) -> Box<Diagnostic> {
    let noun = match text {
        _ if super::KEYWORDS.contains(&text) => "keyword",
        _ if super::CONSTANTS.contains(&text) => "constant",
        _ => "function",
    };
    let message = format!("the {noun} `{text}` can't be the name of {what}");
    error("reserved-name", message, span, &format!("choose another name, such as `{text}_1`"))
}
