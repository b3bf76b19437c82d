//! Words that mean something only in programs that do not take them as names: `mean`, `logsumexp` and `stop`.
//!
//! ```text
//! y = mean[k] x[k]                  the mean
//! mean[c] = sum[n] x[n, c]          a tensor of this program, wherever the word stands, above too
//! ```

use super::FREE_WORDS;
use super::ast::ReduceOp;
use super::token::{Token, TokenKind};
use crate::diagnostic::Span;

/// The words that a program takes as names, with the first place where it introduces each.
pub(super) struct Taken(Vec<(&'static str, Span)>);

impl Taken {
    /// Looks for the places where names are introduced: the beginnings of definitions, declarations, and indices in brackets.
    pub fn by(source: &str, tokens: &[Token]) -> Self {
        let mut taken = Taken(Vec::new());
        if !FREE_WORDS.iter().any(|word| source.contains(word)) {
            return taken;
        }
        for statement in tokens.split_inclusive(|token| token.kind == TokenKind::End) {
            let mut open = Vec::new();
            for (place, token) in statement.iter().enumerate() {
                match token.kind {
                    TokenKind::OpenBracket | TokenKind::OpenParen => open.push(token.kind),
                    TokenKind::CloseBracket | TokenKind::CloseParen => drop(open.pop()),
                    TokenKind::Name if introduces(statement, place, open.last().copied()) => {
                        taken.note(&source[token.span.start..token.span.end], token.span);
                    }
                    _ => {}
                }
            }
        }
        taken
    }

    fn note(&mut self, text: &str, span: Span) {
        let word = FREE_WORDS.iter().find(|word| **word == text);
        if let Some(word) = word.filter(|word| self.place(word).is_none()) {
            self.0.push((word, span));
        }
    }

    /// Where the program introduces a word as a name of its own.
    pub fn place(&self, text: &str) -> Option<Span> {
        self.0.iter().find(|(word, _)| *word == text).map(|(_, span)| *span)
    }
}

/// Whether the name at a place of a statement, between brackets of a kind, is introduced there.
fn introduces(statement: &[Token], place: usize, open: Option<TokenKind>) -> bool {
    use TokenKind::*;
    let kind = |place: usize| statement.get(place).map_or(End, |token| token.kind);
    let (before, after) = (place.checked_sub(1).map_or(End, kind), kind(place + 1));
    let is_index = open == Some(OpenBracket)
        && matches!(before, OpenBracket | Comma)
        && matches!(after, CloseBracket | Comma | In);
    let is_first = open.is_none() && matches!(before, Param | Input | Comma);
    let is_declared = matches!(kind(0), Param | Input) && (is_first || !matches!(after, OpenBracket | OpenParen));
    place == 0 || is_index || is_declared
}

/// The reduction that a free word stands for.
pub(super) fn reduction(text: &str) -> Option<ReduceOp> {
    match text {
        "mean" => Some(ReduceOp::Mean),
        "logsumexp" => Some(ReduceOp::LogSumExp),
        _ => None,
    }
}
