//! Where a diagnostic points to, as editors count: lines and columns from 1.

use gradix::diagnostic::Diagnostic;

use crate::Source;
use crate::render::inside;

/// A part of a text; columns are counted in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line of its first character, from 1.
    pub line: usize,
    /// The column of its first character, from 1.
    pub column: usize,
    /// The line of its end.
    pub end_line: usize,
    /// The column after its last character.
    pub end_column: usize,
}

/// What the message is about; `None` if no part of the text is at fault.
///
/// ```
/// use gradix_view::{Place, Source, place};
/// let source = Source { name: "f.gx".into(), text: "input x[N]\ny[i] = z[i]\n".into() };
/// let errors = gradix::resolve(&gradix::syntax::parse(&source.text).unwrap(), &[]).unwrap_err();
/// assert_eq!(place(&errors[0], &source), Some(Place { line: 2, column: 8, end_line: 2, end_column: 9 }));
/// ```
pub fn place(diagnostic: &Diagnostic, source: &Source) -> Option<Place> {
    let range = inside(diagnostic.labels.first()?.span, &source.text);
    let [(line, column), (end_line, end_column)] = [range.start, range.end].map(|byte| position(&source.text[..byte]));
    Some(Place { line, column, end_line, end_column })
}

/// The line and the column after a text.
fn position(before: &str) -> (usize, usize) {
    let line = before.rsplit('\n').next().unwrap_or(before);
    (1 + before.matches('\n').count(), 1 + line.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradix::diagnostic::Span;

    fn numbers(text: &str, start: usize, end: usize) -> [usize; 4] {
        let source = Source { name: "f.gx".into(), text: text.into() };
        let diagnostic = Diagnostic::error("code", "message").at(Span::new(start, end));
        let Place { line, column, end_line, end_column } = place(&diagnostic, &source).unwrap();
        [line, column, end_line, end_column]
    }

    #[test]
    fn columns_are_counted_in_characters() {
        assert_eq!(numbers("θ_1 = 漢字 + σ", 7, 13), [1, 7, 1, 9]);
    }

    #[test]
    fn a_place_may_have_several_lines() {
        assert_eq!(numbers("y =\r\n  1 +\n  2", 0, 15), [1, 1, 3, 4]);
    }

    #[test]
    fn places_outside_the_text_are_at_its_end() {
        assert_eq!(numbers("", 3, 9), [1, 1, 1, 1]);
        assert_eq!(numbers("y =\n", 4, 4), [1, 4, 1, 4]);
    }

    #[test]
    fn the_first_label_counts_and_there_may_be_none() {
        let source = Source { name: "f.gx".into(), text: "y = 1\ny = 2".into() };
        let diagnostic = Diagnostic::error("code", "message");
        assert_eq!(place(&diagnostic, &source), None);
        let both = diagnostic.at(Span::new(6, 7)).at(Span::new(0, 1));
        assert_eq!(place(&both, &source).map(|place| place.line), Some(2));
    }
}
