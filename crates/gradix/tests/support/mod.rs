//! Case files: text in, text out.
//!
//! A file holds one case, or several that begin with a line `==== title`. A case is a source text, followed by
//! sections that begin with a line `---- name` and hold what is expected. With `BLESS=1` in the environment
//! [`check`] rewrites the sections instead of comparing them.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

pub mod tree;

use gradix::diagnostic::{Diagnostic, Span};
use std::path::{Path, PathBuf};

/// One source text and what is expected of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// From its line `====`; empty if it has none.
    pub title: String,
    pub source: String,
    /// Name and text, in the order of the file.
    pub sections: Vec<(String, String)>,
}

/// Compares every section of every case in `tests/cases/<folder>/*.gx` with what `actual(case, section)` says.
pub fn check(folder: &str, actual: impl Fn(&Case, &str) -> String) {
    let bless = std::env::var_os("BLESS").is_some();
    let mut failures = Vec::new();
    for path in files(folder) {
        let cases = read(&path);
        let mut blessed = cases.clone();
        for (case, new) in cases.iter().zip(&mut blessed) {
            assert!(!case.sections.is_empty(), "{}: case `{}` expects nothing", path.display(), case.title);
            for ((name, expected), (_, text)) in case.sections.iter().zip(&mut new.sections) {
                *text = with_newline(actual(case, name));
                if !bless && text != expected {
                    failures.push(format!("{}: {} ({name})\n{expected}--- is now\n{text}", path.display(), case.title));
                }
            }
        }
        if bless && blessed != cases {
            bless_file(&path, &blessed);
        }
    }
    assert!(failures.is_empty(), "{}\n{} sections differ; BLESS=1 accepts them", failures.join("\n"), failures.len());
}

/// The case files of one stage, in order.
pub fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "gx"));
    paths.sort();
    assert!(!paths.is_empty(), "no cases in {}", folder.display());
    paths
}

/// The cases of one file.
pub fn read(path: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut cases = Vec::new();
    for line in text.split_inclusive('\n') {
        let title = line.strip_prefix("==== ");
        if title.is_some() || cases.is_empty() {
            let title = title.unwrap_or_default().trim_end().to_string();
            cases.push(Case { title, source: String::new(), sections: Vec::new() });
        }
        let Some(case) = cases.last_mut().filter(|_| title.is_none()) else { continue };
        match (line.strip_prefix("---- "), case.sections.last_mut()) {
            (Some(name), _) => case.sections.push((name.trim_end().to_string(), String::new())),
            (None, Some((_, text))) => text.push_str(line),
            (None, None) => case.source.push_str(line),
        }
    }
    cases
}

fn bless_file(path: &Path, cases: &[Case]) {
    let mut text = String::new();
    for case in cases {
        if !case.title.is_empty() {
            text += &format!("==== {}\n", case.title);
        }
        text += &case.source;
        for (name, section) in &case.sections {
            text += &format!("---- {name}\n{section}");
        }
    }
    std::fs::write(path, text).unwrap();
}

fn with_newline(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Diagnostics as plain text: `code: message`, then the places and the hints.
pub fn render(source: &str, diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        text += &format!("{}: {}\n", diagnostic.code, diagnostic.message);
        for label in &diagnostic.labels {
            text += format!("  at {} {}", place(source, label.span), label.text).trim_end();
            text += "\n";
        }
        for hint in &diagnostic.hints {
            text += &format!("  hint: {hint}\n");
        }
    }
    text
}

fn place(source: &str, span: Span) -> String {
    format!("{}..{}", line_and_column(source, span.start), line_and_column(source, span.end))
}

/// Both from 1, columns in characters.
fn line_and_column(source: &str, position: usize) -> String {
    let before = &source[..position];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    format!("{}:{}", 1 + before.matches('\n').count(), 1 + before[line_start..].chars().count())
}
