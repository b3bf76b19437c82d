//! Diagnostics as text: the source line with the places marked, what is there, and the hints.
//!
//! ```text
//! error[unknown-name]: unknown name `z`
//!  --> f.gx:2:8
//!   |
//! 2 | y[i] = z[i]
//!   |        ^ not a tensor
//!   |
//!   = help: declare it: `input z[…]`
//! ```

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use gradix::diagnostic::{Diagnostic, Severity, Span};

use crate::Source;

/// All diagnostics, each ended by a newline, with an empty line between two.
pub fn render(diagnostics: &[Diagnostic], source: &Source, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let blocks: Vec<String> = diagnostics.iter().map(|diagnostic| block(diagnostic, source, &renderer)).collect();
    blocks.join("\n")
}

fn block(diagnostic: &Diagnostic, source: &Source, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Note => Level::NOTE,
    };
    let title = Group::with_title(level.primary_title(&*diagnostic.message).id(diagnostic.code));
    if diagnostic.labels.is_empty() {
        // Without source there is no margin for the hints to hang on: they are lines of their own.
        let hints = diagnostic.hints.iter().map(|hint| Group::with_title(Level::HELP.primary_title(&**hint)));
        return [title].into_iter().chain(hints).map(|group| renderer.render(&[group]) + "\n").collect();
    }
    let hints = diagnostic.hints.iter().map(|hint| Level::HELP.message(&**hint));
    renderer.render(&[title.element(snippet(diagnostic, source)).elements(hints)]) + "\n"
}

fn snippet<'a>(diagnostic: &'a Diagnostic, source: &'a Source) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let annotations = diagnostic.labels.iter().enumerate().map(|(position, label)| {
        let kind = if position == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
        let text = (!label.text.is_empty()).then_some(&*label.text);
        kind.span(inside(label.span, &source.text)).label(text)
    });
    Snippet::source(&*source.text).path(&*source.name).annotations(annotations)
}

/// The span as a range of whole characters of the text; what lies past the last line is at its end.
pub(crate) fn inside(span: Span, text: &str) -> Range<usize> {
    let last = text.trim_end_matches(['\n', '\r']).len();
    let start = (0..=span.start.min(last)).rev().find(|&position| text.is_char_boundary(position)).unwrap_or(0);
    let end = (span.end.min(last)..=last).find(|&position| text.is_char_boundary(position)).unwrap_or(last);
    start..end.max(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, diagnostic: Diagnostic, expected: &[&str]) {
        let source = Source { name: "f.gx".into(), text: text.into() };
        assert_eq!(render(&[diagnostic], &source, false).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_place_is_marked_with_its_label_and_hints() {
        let diagnostic = Diagnostic::error("unknown-name", "unknown name `z`");
        #[rustfmt::skip]
        check("input x[N]\ny[i] = z[i]\n", diagnostic.label(Span::new(18, 19), "not a tensor").hint("declare it"), &[
            "error[unknown-name]: unknown name `z`",
            " --> f.gx:2:8",
            "  |",
            "2 | y[i] = z[i]",
            "  |        ^ not a tensor",
            "  |",
            "  = help: declare it",
        ]);
    }

    #[test]
    fn without_a_place_there_is_no_margin() {
        let diagnostic = Diagnostic::error("too-large", "the text is too long");
        check("", diagnostic.clone(), &["error[too-large]: the text is too long"]);
        check("", diagnostic.hint("split it"), &["error[too-large]: the text is too long", "help: split it"]);
    }

    #[test]
    fn several_places_are_marked() {
        let diagnostic = Diagnostic::error("defined-twice", "`y` is defined twice")
            .label(Span::new(17, 18), "again here")
            .label(Span::new(0, 1), "first here");
        #[rustfmt::skip]
        check("y = 1\n\n\n\n\n\n\n# a\n\ny = 2", diagnostic, &[
            "error[defined-twice]: `y` is defined twice",
            "  --> f.gx:10:1",
            "   |",
            " 1 | y = 1",
            "   | - first here",
            "...",
            "10 | y = 2",
            "   | ^ again here",
        ]);
    }

    #[test]
    fn several_diagnostics_have_an_empty_line_between_them() {
        let source = Source { name: "f.gx".into(), text: "y".into() };
        let diagnostics = [Diagnostic::error("one", "first"), Diagnostic::error("two", "second")];
        assert_eq!(render(&diagnostics, &source, false), "error[one]: first\n\nerror[two]: second\n");
    }

    #[test]
    fn wide_characters_are_marked_whole() {
        let diagnostic = Diagnostic::error("unknown-name", "unknown name `漢字`").at(Span::new(7, 13));
        #[rustfmt::skip]
        check("θ_1 = 漢字 + σ", diagnostic, &[
            "error[unknown-name]: unknown name `漢字`",
            " --> f.gx:1:7",
            "  |",
            "1 | θ_1 = 漢字 + σ",
            "  |       ^^^^",
        ]);
    }

    #[test]
    fn places_outside_the_text_are_moved_into_it() {
        assert_eq!(inside(Span::new(5, 9), ""), 0..0);
        assert_eq!(inside(Span::new(1, 1), "σ"), 0..2);
        assert_eq!(inside(Span::new(2, 1), "y = 1"), 2..2);
        assert_eq!(inside(Span::new(usize::MAX, usize::MAX), "y"), 1..1);
    }

    #[test]
    fn the_end_of_the_text_can_be_marked() {
        let diagnostic = Diagnostic::error("code", "message");
        let head = ["error[code]: message", " --> f.gx:1:1", "  |", "1 |", "  | ^"];
        check("", diagnostic.clone().at(Span::new(0, 0)), &head);
        #[rustfmt::skip]
        check("y =", diagnostic.at(Span::new(3, 3)), &[
            "error[code]: message", " --> f.gx:1:4", "  |", "1 | y =", "  |    ^",
        ]);
    }

    #[test]
    fn a_place_after_the_last_newline_is_the_end_of_the_last_line() {
        for text in ["y =\n", "y =\r\n", "y ="] {
            let end = Span::new(text.len(), text.len());
            let source = Source { name: "f.gx".into(), text: text.into() };
            let rendered = render(&[Diagnostic::error("code", "message").at(end)], &source, false);
            let lines: Vec<&str> = rendered.lines().collect();
            assert_eq!(lines, ["error[code]: message", " --> f.gx:1:4", "  |", "1 | y =", "  |    ^"], "{text:?}");
        }
    }

    #[test]
    fn every_span_can_be_rendered() {
        let source = Source { name: "f.gx".into(), text: "σ\t\r\n\n漢 = \u{301}\u{1f600}\n".into() };
        for start in 0..source.text.len() + 2 {
            for end in 0..source.text.len() + 2 {
                let diagnostic = Diagnostic::error("code", "message").label(Span::new(start, end), "here");
                assert!(render(&[diagnostic], &source, false).starts_with("error[code]: message\n"));
            }
        }
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let text = format!("y = {}z{}", "x + ".repeat(100_000), " + x".repeat(100_000));
        let source = Source { name: "f.gx".into(), text };
        let diagnostic = Diagnostic::error("unknown-name", "unknown name `z`").at(Span::new(400_004, 400_005));
        let rendered = render(&[diagnostic], &source, false);
        assert!(rendered.len() < 1000 && rendered.contains("x + z + x"), "{rendered}");
    }

    #[test]
    fn colours_are_used_only_when_asked_for() {
        let source = Source { name: "f.gx".into(), text: "y".into() };
        let diagnostics = [Diagnostic::error("code", "message").at(Span::new(0, 1))];
        assert!(render(&diagnostics, &source, true).contains('\x1b'));
        assert!(!render(&diagnostics, &source, false).contains('\x1b'));
    }
}
