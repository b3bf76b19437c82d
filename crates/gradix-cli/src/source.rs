//! The program's text: read from a file, from standard input or from the command line, and resolved.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use gradix::diagnostic::Diagnostic;
use gradix::syntax::{self, MAX_SOURCE};
use gradix::timings::timed;
use gradix::{Int, Resolved};
use gradix_view::Source;

use crate::arguments::{ProgramArguments, SelectionArguments};
use crate::failure::{Failure, tell};

/// Reads the program that the arguments name.
pub fn read(arguments: &ProgramArguments) -> Result<Source, Failure> {
    match (&arguments.text, &arguments.file) {
        (Some(text), _) => Ok(Source { name: "command line".into(), text: text.clone() }),
        (None, Some(path)) if path != Path::new("-") => {
            let name = path.display().to_string();
            from_reader(name.clone(), File::open(path).map_err(|error| unreadable(&name, &error))?)
        }
        _ => from_reader("standard input".into(), io::stdin().lock()),
    }
}

/// The program, at the sizes that are fixed on the command line. What is worth knowing about it is told.
pub fn resolve(source: &Source, selection: &SelectionArguments, quiet: bool) -> Result<Resolved, Failure> {
    let fixed: Vec<(String, Int)> =
        selection.params.iter().map(|(name, size)| (name.clone(), Int::from(*size))).collect();
    let ast = timed("parse", || syntax::parse(&source.text)).map_err(|errors| refuse(source, errors))?;
    let resolved = timed("resolve", || gradix::resolve(&ast, &fixed)).map_err(|errors| refuse(source, errors))?;
    if !quiet {
        tell(source, &resolved.places.notes);
    }
    Ok(resolved)
}

/// The failure of a command that found this wrong with the text.
pub fn refuse(source: &Source, diagnostics: Vec<Diagnostic>) -> Failure {
    Failure::Diagnostics(source.clone(), diagnostics)
}

fn from_reader(name: String, reader: impl Read) -> Result<Source, Failure> {
    let mut bytes = Vec::new();
    reader.take(MAX_SOURCE as u64 + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&name, &error))?;
    if bytes.len() > MAX_SOURCE {
        let line = line_at(&bytes, MAX_SOURCE);
        return Err(Failure::Message(format!(
            "{name} is longer than {} MiB, which end in line {line}",
            MAX_SOURCE >> 20
        )));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source { name, text }),
        Err(error) => Err(not_text(&name, error.as_bytes(), error.utf8_error().valid_up_to())),
    }
}

fn unreadable(name: &str, error: &io::Error) -> Failure {
    Failure::Message(format!("can't read {name}: {error}"))
}

fn not_text(name: &str, bytes: &[u8], position: usize) -> Failure {
    let line = line_at(bytes, position);
    Failure::Message(format!("{name} is not UTF-8 text: byte 0x{:02x} in line {line}", bytes[position]))
}

/// The number of the line that holds this byte.
fn line_at(bytes: &[u8], position: usize) -> usize {
    1 + bytes[..position].iter().filter(|&&byte| byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Result<String, String> {
        match from_reader("f.gx".into(), bytes) {
            Ok(source) => Ok(source.text),
            Err(Failure::Message(message)) => Err(message),
            Err(_) => unreachable!("reading gives plain messages"),
        }
    }

    #[test]
    fn text_is_read_up_to_the_limit() {
        assert_eq!(text("σ = 1".as_bytes()), Ok("σ = 1".into()));
        assert!(text(&vec![b' '; MAX_SOURCE]).is_ok());
        assert_eq!(text(&vec![b' '; MAX_SOURCE + 1]), Err("f.gx is longer than 4 MiB, which end in line 1".into()));
    }

    #[test]
    fn bytes_that_are_not_text_are_located() {
        assert_eq!(text(b"y = 1\nx = \xff"), Err("f.gx is not UTF-8 text: byte 0xff in line 2".into()));
        assert_eq!(text(b"\xc3"), Err("f.gx is not UTF-8 text: byte 0xc3 in line 1".into()));
    }
}
