//! Forms of other notations, each with what it is in this language, written out for the very line.
//!
//! Only statements that are wrong already come here, so that no right program is refused:
//!
//! ```text
//! y[i] = x[i] if c else 0        →   if c then x[i] else 0
//! y[i] = np.exp(X.T[i, j])       →   exp(X.T[i, j]), then X[j, i]
//! for i in range(N): s += x[i]   →   s = sum[i in 0..N] x[i]
//! ```

use super::token::{Token, TokenKind};
use super::words::Taken;
use super::{FUNCTIONS, words};
use crate::diagnostic::{Diagnostic, Span};

/// Longer statements are no slips of a habit, and looking into every bracket of them would take too long.
const LONGEST_STATEMENT_TOKENS: usize = 500;

/// What a wrong statement, the first of `tokens`, says in another notation.
pub(super) fn recognise(source: &str, tokens: &[Token], taken: &Taken) -> Option<Diagnostic> {
    let line = Line { source, tokens, taken };
    if line.places().len() > LONGEST_STATEMENT_TOKENS {
        return None;
    }
    let forms: [&dyn Fn() -> Option<Form>; 10] = [
        &|| line.loop_header(),
        &|| line.function(),
        &|| line.lambda(),
        &|| line.dotted(),
        &|| line.comprehension(),
        &|| line.range_call(),
        &|| line.random(),
        &|| line.big_operator(),
        &|| line.reduction(),
        &|| line.conditional(),
    ];
    let Form { message, span, hint } = forms.iter().find_map(|form| form())?;
    Some(Diagnostic::error("other-notation", message).at(span).hint(hint))
}

/// The function of this language that a function of another one is.
pub(crate) fn function(name: &str) -> Option<&'static str> {
    const SAME: &[(&str, &str)] = &[
        ("absolute", "abs"),
        ("arccos", "acos"),
        ("arccosh", "acosh"),
        ("arcsin", "asin"),
        ("arcsinh", "asinh"),
        ("arctan", "atan"),
        ("arctan2", "atan2"),
        ("arctanh", "atanh"),
        ("expit", "sigmoid"),
        ("fabs", "abs"),
        ("fmax", "max"),
        ("fmin", "min"),
        ("gammaln", "lgamma"),
        ("ln", "log"),
        ("logistic", "sigmoid"),
        ("maximum", "max"),
        ("minimum", "min"),
        ("power", "pow"),
        ("sgn", "sign"),
        ("stop_gradient", "stop"),
    ];
    let known = FUNCTIONS.iter().find(|known| **known == name).copied();
    known.or_else(|| SAME.iter().find(|(other, _)| *other == name).map(|(_, own)| *own))
}

/// Whether a word is a reduction in programs that do not take it as a name.
pub(crate) fn is_reduction(word: &str) -> bool {
    words::reduction(word).is_some()
}

/// The reduction that a sign such as `Σ` or a name such as `sum_` begins with, and what is behind it.
fn big_operator(word: &str) -> Option<(&'static str, &str)> {
    const SIGNS: &[(&str, &str)] = &[("Σ", "sum"), ("∑", "sum"), ("Π", "prod"), ("∏", "prod")];
    const NAMES: &[(&str, &str)] = &[("sum_", "sum"), ("prod_", "prod"), ("max_", "max"), ("min_", "min")];
    let sign = SIGNS.iter().find_map(|(sign, op)| Some((*op, word.strip_prefix(sign)?)));
    sign.or_else(|| NAMES.iter().find(|(name, _)| *name == word).map(|(_, op)| (*op, "")))
}

/// The indices in the name of a reduction such as `sum_i`, and the reduction.
pub(crate) fn reduction_with_indices(name: &str) -> Option<(&str, String)> {
    let (op, indices) = name.split_once('_')?;
    let named = matches!(op, "sum" | "prod" | "max" | "min") || words::reduction(op).is_some();
    let named = named && !indices.is_empty();
    named.then(|| (op, indices_in(indices).join(", ")))
}

/// `ij` and `i_j` are `i` and `j`.
pub(crate) fn indices_in(suffix: &str) -> Vec<String> {
    match suffix.contains('_') {
        true => suffix.split('_').filter(|part| !part.is_empty()).map(str::to_string).collect(),
        false => suffix.chars().map(String::from).collect(),
    }
}

/// What is said about a form.
struct Form {
    message: String,
    span: Span,
    hint: String,
}

/// The tokens from the beginning of a statement on.
struct Line<'a> {
    source: &'a str,
    tokens: &'a [Token],
    taken: &'a Taken,
}

impl<'a> Line<'a> {
    fn kind(&self, at: usize) -> TokenKind {
        self.tokens.get(at).map_or(TokenKind::End, |token| token.kind)
    }

    fn word(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| &self.source[token.span.start..token.span.end])
    }

    /// The text of the tokens `from..to`.
    fn text(&self, from: usize, to: usize) -> &'a str {
        if from >= to { "" } else { &self.source[self.tokens[from].span.start..self.tokens[to - 1].span.end] }
    }

    fn span(&self, from: usize, to: usize) -> Span {
        self.tokens[from].span.to(self.tokens[to - 1].span)
    }

    /// The first token from `from` on, outside of brackets opened since, that is `wanted` or ends what stands there.
    fn until(&self, from: usize, wanted: impl Fn(TokenKind) -> bool) -> usize {
        let mut open = 0usize;
        for at in from.. {
            match self.kind(at) {
                TokenKind::End => return at,
                kind if open == 0 && wanted(kind) => return at,
                TokenKind::OpenParen | TokenKind::OpenBracket => open += 1,
                TokenKind::CloseParen | TokenKind::CloseBracket if open == 0 => return at,
                TokenKind::CloseParen | TokenKind::CloseBracket => open -= 1,
                _ => {}
            }
        }
        unreachable!("there is an end")
    }

    /// What stands between the bracket at `open` and its partner, item by item, and the place behind the partner.
    fn items(&self, open: usize) -> (Vec<&'a str>, usize) {
        let (mut items, mut at) = (Vec::new(), open);
        loop {
            let end = self.until(at + 1, |kind| kind == TokenKind::Comma);
            items.push(self.text(at + 1, end));
            at = end;
            if self.kind(at) != TokenKind::Comma {
                return (items, (at + 1).min(self.tokens.len()));
            }
        }
    }

    /// The places of this statement's tokens.
    fn places(&self) -> std::ops::Range<usize> {
        0..self.tokens.iter().position(|token| token.kind == TokenKind::End).unwrap_or(self.tokens.len())
    }

    fn find<T>(&self, form: impl FnMut(usize) -> Option<T>) -> Option<T> {
        self.places().find_map(form)
    }

    fn is_colon(&self, at: usize) -> bool {
        self.kind(at) == TokenKind::Bad && self.word(at) == ":"
    }

    /// `for i in range(N): y[i] = …`, the body in this statement or in the next one.
    fn loop_header(&self) -> Option<Form> {
        if self.word(0) != "for" || self.kind(1) != TokenKind::Name || self.kind(2) != TokenKind::In {
            return None;
        }
        let colon = self.places().find(|&at| self.is_colon(at)).unwrap_or(self.places().end);
        let range = self.range_of(3).unwrap_or_else(|| self.text(3, colon).to_string());
        let range = if range.contains("..") { range } else { "0..N".into() };
        let binder = format!("{} in {range}", self.word(1));
        let body = colon + 1;
        let body = if self.kind(body) == TokenKind::End { body + 1 } else { body };
        let written = self.loop_body(body.min(self.tokens.len()), &binder);
        let hint = match written {
            Some(written) => format!("an index runs over its range where it is introduced: write `{written}`"),
            None => {
                format!("an index runs over its range where it is introduced: `y[{binder}] = …`, `sum[{binder}] …`")
            }
        };
        Some(Form { message: "there are no loops".into(), span: self.span(0, colon.max(1)), hint })
    }

    /// The definition that a loop's body is.
    fn loop_body(&self, from: usize, binder: &str) -> Option<String> {
        let body = Line { tokens: &self.tokens[from..], ..*self };
        let assign = body.until(0, |kind| kind == TokenKind::Assign);
        let (value, index) = (body.text(assign + 1, body.places().end), binder.split(' ').next()?);
        if body.kind(0) != TokenKind::Name || value.is_empty() || body.kind(assign) != TokenKind::Assign {
            return None;
        }
        if body.kind(assign - 1) == TokenKind::Plus {
            let value = if value.contains(['+', '-']) { format!("({value})") } else { value.to_string() };
            return Some(format!("{} = sum[{binder}] {value}", body.text(0, assign - 1)));
        }
        let at = (1..assign).find(|&at| body.word(at) == index)?;
        Some(body.bound_from_zero(at, at + 1, assign, binder))
    }

    /// This definition with the index at `from..to` bound by `binder`; a range that starts later becomes a condition.
    fn bound_from_zero(&self, from: usize, to: usize, assign: usize, binder: &str) -> String {
        let (index, range) = binder.split_once(" in ").unwrap_or((binder, "0..N"));
        let (low, high) = range.split_once("..").unwrap_or(("0", range));
        let (left, right) = (self.text(0, from), self.text(to, assign));
        let value = self.text(assign + 1, self.places().end);
        match low {
            "0" => format!("{left}{binder}{right} = {value}"),
            _ => format!("{left}{index} in 0..{high}{right} = if {index} >= {low} then {value} else 0"),
        }
    }

    /// `range(N)` and `range(a, b)` at `at` as a range of this language.
    fn range_of(&self, at: usize) -> Option<String> {
        if self.word(at) != "range" || self.kind(at + 1) != TokenKind::OpenParen {
            return None;
        }
        match self.items(at + 1).0.as_slice() {
            [high] => Some(format!("0..{high}")),
            [low, high] => Some(format!("{low}..{high}")),
            _ => None,
        }
    }

    fn range_call(&self) -> Option<Form> {
        self.find(|at| {
            let range = self.range_of(at + 1).filter(|_| self.kind(at) == TokenKind::In && at > 0)?;
            let end = self.items(at + 2).1;
            let binder = format!("{} in {range}", self.word(at - 1));
            let assign = self.until(0, |kind| kind == TokenKind::Assign);
            let hint = match at < assign && !range.starts_with("0..") {
                true => format!(
                    "an index of a definition starts at 0: write `{}`",
                    self.bound_from_zero(at - 1, end, assign, &binder)
                ),
                false => format!("write `{binder}`"),
            };
            Some(Form { message: "a range is written `lo..hi`".into(), span: self.span(at + 1, end), hint })
        })
    }

    /// `sum(x[i] for i in range(N))`, `y = [x[i] for i in range(N)]`
    fn comprehension(&self) -> Option<Form> {
        self.find(|at| {
            let binds =
                self.word(at) == "for" && self.kind(at + 1) == TokenKind::Name && self.kind(at + 2) == TokenKind::In;
            let range = self.range_of(at + 3).filter(|_| binds && at > 1)?;
            let (start, end) = (self.start_of(at), self.items(at + 4).1);
            let (body, binder) = (self.text(start, at), format!("{} in {range}", self.word(at + 1)));
            let written = match (self.kind(start.checked_sub(2)?), self.kind(start - 1)) {
                (TokenKind::Reduce(_), TokenKind::OpenParen) => format!("{}[{binder}] ({body})", self.word(start - 2)),
                (TokenKind::Assign, TokenKind::OpenBracket) => format!("{}[{binder}] = {body}", self.word(0)),
                _ => return None,
            };
            let message = "an index is bound where it is introduced, before its use".into();
            Some(Form { message, span: self.span(start, end), hint: format!("write `{written}`") })
        })
    }

    /// `def f(x): return x^2`
    fn function(&self) -> Option<Form> {
        if self.word(0) != "def" || self.kind(1) != TokenKind::Name || self.kind(2) != TokenKind::OpenParen {
            return None;
        }
        let (arguments, end) = self.items(2);
        let value = self.places().find(|&at| self.word(at) == "return");
        let value = value.map_or("…", |at| self.text(at + 1, self.places().end));
        let arguments = arguments.join(", ");
        let hint = format!(
            "write `input {arguments}` (with the extents of each, as in `x[N]`), and then `{} = {value}`",
            self.word(1)
        );
        let message = "there are no functions of one's own: a program is one".into();
        Some(Form { message, span: self.span(0, end), hint })
    }

    fn lambda(&self) -> Option<Form> {
        let at = self.places().find(|&at| self.word(at) == "lambda")?;
        let colon = self.places().find(|&place| place > at && self.is_colon(place))?;
        let value = self.text(colon + 1, self.places().end);
        let hint = format!("declare what it takes, `input {}`, and write `{}`", self.text(at + 1, colon), {
            format!("{}{value}", if at > 0 { format!("{} ", self.text(0, at)) } else { String::new() })
        });
        let message = "there are no functions of one's own: a program is one".into();
        Some(Form { message, span: self.span(at, colon + 1), hint })
    }

    /// `np.exp(x[i])`, `X.T[i, j]`, `x.sum()`, `np.pi`
    fn dotted(&self) -> Option<Form> {
        let at = self.find(|at| {
            let parts = self.kind(at) == TokenKind::Name && self.word(at + 1) == "." && !self.word(at + 2).is_empty();
            parts.then_some(at)
        })?;
        let (owner, part) = (self.word(at), self.word(at + 2));
        let calls = self.kind(at + 3) == TokenKind::OpenParen;
        let (items, end) = if calls || self.kind(at + 3) == TokenKind::OpenBracket {
            self.items(at + 3)
        } else {
            (Vec::new(), at + 3)
        };
        let reversed = || items.iter().rev().copied().collect::<Vec<_>>().join(", ");
        let hint = match (part, function(part)) {
            ("T", _) if !items.is_empty() => {
                format!("write its subscripts in the other order: `{owner}[{}]`", reversed())
            }
            ("T", _) => format!("write its subscripts in the other order: `{owner}[j, i]` for `{owner}[i, j]`"),
            ("pi" | "inf", _) => format!("write `{part}`"),
            ("shape" | "size", _) => format!("sizes have names: those in the declaration `input {owner}[…]`"),
            ("sum" | "prod" | "max" | "min" | "mean", _) if calls => {
                let tensor = if items == [""] { owner } else { items[0] };
                format!("a reduction names its index: `{}`", reduced(part, tensor))
            }
            (_, Some(own)) if calls => format!("write `{own}({})`", items.join(", ")),
            _ if calls => "tensors have no methods, and functions have plain names, as in `exp(x[i])`".into(),
            _ => format!("a product is written `{owner} * {part}`, a range `lo..hi`"),
        };
        Some(Form { message: format!("`{owner}.{part}`: names have no parts"), span: self.span(at, end), hint })
    }

    /// `rand()`
    fn random(&self) -> Option<Form> {
        self.find(|at| {
            let named = matches!(self.word(at), "rand" | "random" | "randn" | "uniform" | "normal");
            let empty = self.kind(at + 1) == TokenKind::OpenParen && self.kind(at + 2) == TokenKind::CloseParen;
            let hint = "declare an input for them, as in `input noise[N]`, and give it values";
            (named && empty).then(|| Form {
                message: "there are no random numbers in a program".into(),
                span: self.span(at, at + 3),
                hint: hint.into(),
            })
        })
    }

    /// `Σ_i x[i]`, `sum_{i, j} a[i, j]`, `∑_{i=1}^{N} x[i]`
    fn big_operator(&self) -> Option<Form> {
        self.find(|at| {
            let (op, rest) = big_operator(self.word(at)).filter(|_| self.taken.place(self.word(at)).is_none())?;
            let (below, next) = match rest.is_empty() && self.word(at + 1).starts_with('_') {
                true => (self.word(at + 1), at + 2),
                false => (rest, at + 1),
            };
            let (indices, end) = match (below.trim_start_matches('_'), self.kind(next)) {
                (_, TokenKind::Bad) => self.between_braces(next)?,
                ("", TokenKind::OpenBracket) => (self.items(next).0.join(", "), self.items(next).1),
                (indices, _) if op != self.word(at).trim_end_matches('_') => (indices_in(indices).join(", "), next),
                _ => return None,
            };
            if indices.is_empty() || !self.begins_operand(end) {
                return None;
            }
            let body = self.text(end, self.end_of_product(end));
            let message = "the indices of a reduction stand in brackets behind its name".into();
            Some(Form { message, span: self.span(at, end), hint: format!("write `{op}[{indices}] {body}`") })
        })
    }

    /// What stands between the braces at `open`, a range if there is one, and the place behind; `{i=1}^{N}` is `i in 1..=N`.
    fn between_braces(&self, open: usize) -> Option<(String, usize)> {
        let closing = |from: usize| self.places().find(|&at| at > from && self.word(at) == "}");
        let close = closing(open).filter(|_| self.word(open) == "{")?;
        let text = self.text(open + 1, close);
        let Some((index, low)) = text.split_once('=') else { return Some((text.to_string(), close + 1)) };
        let (high, end) = match (self.kind(close + 1), self.word(close + 2)) {
            (TokenKind::Power, "{") => (self.text(close + 3, closing(close + 2)?), closing(close + 2)? + 1),
            (TokenKind::Power, high) => (high, close + 3),
            _ => return None,
        };
        Some((format!("{} in {}..={high}", index.trim(), low.trim()), end))
    }

    /// `sum_i x[i]`, `mean[i] x[i]`, `argmax[i] x[i]`
    fn reduction(&self) -> Option<Form> {
        self.find(|at| {
            let word = self.word(at);
            if self.kind(at) != TokenKind::Name {
                return None;
            }
            if let Some((op, indices)) = reduction_with_indices(word).filter(|_| self.begins_operand(at + 1)) {
                let body = self.text(at + 1, self.end_of_product(at + 1));
                let message = format!("`{word}` is a name; the indices of a reduction stand in brackets");
                return Some(Form {
                    message,
                    span: self.span(at, at + 1),
                    hint: format!("write `{op}[{indices}] {body}`"),
                });
            }
            let is_known = words::reduction(word).is_some() && self.taken.place(word).is_none();
            if is_known || self.kind(at + 1) != TokenKind::OpenBracket {
                return None;
            }
            let (items, end) = self.items(at + 1);
            if !self.begins_operand(end) {
                return None;
            }
            let body = self.text(end, self.end_of_product(end));
            let hint = self.reduction_hint(word.trim_end_matches('_'), &items, body)?;
            let message = match self.taken.place(word) {
                Some(_) => format!("`{word}` is a name of this program, and no reduction"),
                None => format!("there is no reduction `{word}`"),
            };
            Some(Form { message, span: self.span(at, end), hint })
        })
    }

    fn reduction_hint(&self, word: &str, items: &[&str], body: &str) -> Option<String> {
        let list = items.join(", ");
        let index = items[0].split(' ').next().unwrap_or_default();
        let (bound, used) = self.result_indices();
        let place = |largest: &str| {
            format!(
                "write `m{bound} = {largest}[{list}] {body}` above, and for the first index that attains it \
                 `min[{list}] (if {body} == m{used} then {index} else inf)`"
            )
        };
        Some(match word {
            _ if self.taken.place(word).is_some() => {
                format!("for the reduction, give the name `{word}` to nothing else")
            }
            "mean" | "average" | "avg" => format!("write `mean[{list}] {body}`"),
            "lse" | "log_sum_exp" => format!("write `logsumexp[{list}] {body}`"),
            "softmax" => format!("write `exp({body} - logsumexp[{list}] {body})`"),
            "argmax" => place("max"),
            "argmin" => place("min"),
            "norm" => format!("write `sqrt(sum[{list}] ({body})^2)`"),
            _ => return None,
        })
    }

    /// The bracket of the definition that this is, as written and without ranges.
    fn result_indices(&self) -> (String, String) {
        if self.kind(1) != TokenKind::OpenBracket {
            return Default::default();
        }
        let items = self.items(1).0;
        let names: Vec<&str> = items.iter().filter_map(|item| item.split(' ').next()).collect();
        (format!("[{}]", items.join(", ")), format!("[{}]", names.join(", ")))
    }

    fn begins_operand(&self, at: usize) -> bool {
        use TokenKind::*;
        matches!(self.kind(at), Name | Integer(_) | Real(_) | Pi | Inf | OpenParen | Reduce(_))
    }

    fn end_of_product(&self, from: usize) -> usize {
        use TokenKind::*;
        self.until(from, |kind| matches!(kind, Plus | Minus | Compare(_) | And | Or | Comma | If | Then | Else))
    }

    /// `a if c else b`
    fn conditional(&self) -> Option<Form> {
        let at = self.find(|at| self.is_infix_if(at).then_some(at))?;
        let start = self.start_of(at);
        let end = self.until(at + 1, |kind| kind == TokenKind::Comma);
        let hint = format!("write `{}`", self.condition_first(start, end)?);
        let message = "the condition comes first: `if c then a else b`".into();
        Some(Form { message, span: self.span(start, end), hint })
    }

    fn is_infix_if(&self, at: usize) -> bool {
        use TokenKind::*;
        let operand = |kind| matches!(kind, Name | Integer(_) | Real(_) | Pi | Inf | CloseParen | CloseBracket);
        at > 0 && operand(self.kind(at - 1)) && self.kind(at) == If
    }

    /// The tokens `from..to`, each condition that stands behind a value put before it.
    fn condition_first(&self, from: usize, to: usize) -> Option<String> {
        let at = self.until(from, |kind| kind == TokenKind::If);
        if at >= to || !self.is_infix_if(at) {
            return Some(self.text(from, to).to_string());
        }
        let otherwise = self.until(at + 1, |kind| matches!(kind, TokenKind::Then | TokenKind::Else)).min(to);
        let (condition, value) = (self.text(at + 1, otherwise), self.text(from, at));
        if otherwise == to && !condition.is_empty() {
            return Some(format!("if {condition} then {value} else 0"));
        }
        if self.kind(otherwise) != TokenKind::Else {
            return None;
        }
        Some(format!("if {condition} then {value} else {}", self.condition_first(otherwise + 1, to)?))
    }

    /// Where the expression begins that stands before `at`.
    fn start_of(&self, at: usize) -> usize {
        let mut open = 0usize;
        for place in (0..at).rev() {
            match self.kind(place) {
                TokenKind::CloseParen | TokenKind::CloseBracket => open += 1,
                TokenKind::OpenParen | TokenKind::OpenBracket | TokenKind::Comma | TokenKind::Assign if open == 0 => {
                    return place + 1;
                }
                TokenKind::OpenParen | TokenKind::OpenBracket => open -= 1,
                _ => {}
            }
        }
        0
    }
}

/// `sum[k] x[k]` for the reduction `sum` and the tensor `x`.
fn reduced(reduction: &str, tensor: &str) -> String {
    let is_name = tensor.chars().all(|c| c == '_' || c.is_alphanumeric());
    let body = if is_name { format!("{tensor}[k]") } else { "…".into() };
    format!("{reduction}[k] {body}")
}
