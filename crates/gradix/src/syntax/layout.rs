//! Comments and blank lines: which statement they belong to.
//!
//! A comment before the end of a statement stands above it, also if it was inside; one behind it in the same line
//! stays there.

use super::ast::{Statement, StatementKind};
use super::token::Comment;
use crate::diagnostic::Span;

/// Hands each statement the comments and the blank line before it.
pub(super) struct Layout<'a> {
    source: &'a str,
    /// Not handed out yet.
    comments: &'a [Comment],
    /// Where the last thing that was handed out ends; none at the start of the text.
    end: Option<usize>,
}

impl<'a> Layout<'a> {
    pub fn new(source: &'a str, comments: &'a [Comment]) -> Self {
        Layout { source, comments, end: None }
    }

    /// The statement with its comments; statements come in the order of the text.
    pub fn attach(&mut self, kind: StatementKind, span: Span) -> Statement {
        let mut comments = self.comments_before(span.end);
        // Comments inside the statement leave its start behind them.
        if self.end.is_none_or(|end| end <= span.start) && self.blank_line_before(span.start) {
            comments.push(String::new());
        }
        let blank_before = comments.first().is_some_and(String::is_empty);
        comments.drain(..usize::from(blank_before));
        self.end = Some(span.end);
        let line_comment = self.line_comment(span.end);
        Statement { kind, span, comments, line_comment, blank_before }
    }

    /// The comments that begin before `limit`; an empty one is a blank line.
    fn comments_before(&mut self, limit: usize) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some((comment, rest)) = self.comments.split_first().filter(|(first, _)| first.span.start < limit) {
            if self.blank_line_before(comment.span.start) {
                lines.push(String::new());
            }
            lines.push(comment.text.clone());
            self.end = Some(comment.span.end);
            self.comments = rest;
        }
        lines
    }

    /// The comment that follows `end` with nothing but space and `;` between.
    fn line_comment(&mut self, end: usize) -> Option<String> {
        let (comment, rest) = self.comments.split_first()?;
        let between = &self.source[end..comment.span.start];
        if between.contains(|c: char| c == '\n' || !(c == ';' || c.is_whitespace())) {
            return None;
        }
        self.end = Some(comment.span.end);
        self.comments = rest;
        Some(comment.text.clone())
    }

    fn blank_line_before(&self, position: usize) -> bool {
        let Some(end) = self.end else { return false };
        let behind_first = self.source[end..position].split_once('\n');
        let inner = behind_first.and_then(|(_, rest)| rest.rsplit_once('\n'));
        inner.is_some_and(|(lines, _)| lines.split('\n').any(|line| line.trim().is_empty()))
    }

    /// The comments after the last statement.
    pub fn rest(mut self) -> Vec<String> {
        self.comments_before(usize::MAX)
    }
}
