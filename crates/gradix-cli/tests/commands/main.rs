//! The binary from outside: what it prints where, and its exit codes.

mod bench;
mod check;
mod derive;
mod documents;
mod emit;
mod eval;
mod explain;
mod survey;
mod usage;

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn gradix(arguments: &[&str]) -> Output {
    gradix_with_input(arguments, b"")
}

fn gradix_with_input(arguments: &[&str], input: &[u8]) -> Output {
    let mut child =
        command(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

/// The binary with a cache that only the tests use, and without a compiler of the user's choice.
fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradix"));
    command.args(arguments).env("GRADIX_CACHE", scratch("kernels")).env_remove("CC");
    command
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

/// Data on standard output, nothing on standard error, exit code 0.
fn prints(output: &Output) -> &str {
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    text(&output.stdout)
}

/// A message on standard error, nothing on standard output, and this exit code.
fn refuses(output: &Output, code: i32) -> &str {
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(code), ""), "{}", text(&output.stderr));
    text(&output.stderr)
}

/// Data on standard output and exit code 0, whatever is told besides.
fn data(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// An example program that comes with gradix.
fn example(name: &str) -> String {
    format!("{}/../../examples/{name}.gx", env!("CARGO_MANIFEST_DIR"))
}

/// A path for a file of one test.
fn scratch(name: &str) -> String {
    format!("{}/{name}", env!("CARGO_TARGET_TMPDIR"))
}
