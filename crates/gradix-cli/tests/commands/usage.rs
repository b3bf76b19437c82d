//! What every command has in common: where things are printed, exit codes, help.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::{gradix, gradix_with_input, prints, refuses};

#[test]
fn fmt_prints_the_canonical_form() {
    assert_eq!(prints(&gradix(&["fmt", "-e", "input x[N];y[i]=x[i]*2"])), "input x[N]\ny[i] = x[i] * 2\n");
}

#[test]
fn fmt_keeps_its_own_output() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/rbf.gx");
    let once = gradix(&["fmt", example]);
    let twice = gradix_with_input(&["fmt", "-"], prints(&once).as_bytes());
    assert_eq!(prints(&twice), prints(&once));
}

#[test]
fn errors_in_the_program_are_shown_in_its_text() {
    let output = gradix_with_input(&["fmt", "-"], b"input x[N]\ny[i] = x[i\n");
    let message = refuses(&output, 1);
    assert!(message.starts_with("error["), "{message}");
    assert!(message.contains("--> standard input:2:") && message.contains("2 | y[i] = x[i\n"), "{message}");
    assert!(!message.contains('\x1b'), "{message}");
}

#[test]
fn files_that_can_not_be_read_are_named() {
    let message = gradix(&["fmt", "absent.gx"]);
    assert!(refuses(&message, 1).starts_with("error: can't read absent.gx: "));
    let folder = gradix(&["fmt", env!("CARGO_MANIFEST_DIR")]);
    assert!(refuses(&folder, 1).starts_with("error: can't read /"));
}

#[test]
fn bytes_that_are_not_text_are_refused() {
    let output = gradix_with_input(&["fmt", "-"], b"y = 1\n\xff\n");
    assert_eq!(refuses(&output, 1), "error: standard input is not UTF-8 text: byte 0xff in line 2\n");
}

#[test]
fn wrong_usage_has_its_own_exit_code() {
    for arguments in [
        &[][..],
        &["fmt"],
        &["nonsense"],
        &["fmt", "a.gx", "-e", "y = 1"],
        &["fmt", "a.gx", "b.gx"],
        &["derive", "a.gx", "--mode", "sideways"],
        &["derive", "a.gx", "--param", "N"],
        &["eval", "a.gx", "--input", "x.npy"],
        &["eval", "a.gx", "-o", "out.csv"],
        &["eval", "a.gx", "--threads", "0"],
        &["check", "a.gx", "--order", "3"],
        &["check", "a.gx", "--tol", "-1"],
        &["explain", "a.gx", "--access", "0"],
        &["completions", "nonsense"],
        &["man", "nonsense"],
    ] {
        assert!(!refuses(&gradix(arguments), 2).is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_backend_that_is_not_there_is_refused_with_those_that_are() {
    let output = gradix(&["eval", "a.gx", "--backend", "abacus"]);
    assert!(refuses(&output, 2).contains("possible values: auto, interp, vm, native"));
}

#[test]
fn every_command_has_help_with_an_example() {
    for command in ["derive", "eval", "check", "explain", "emit", "bench", "fmt", "completions", "man"] {
        let output = gradix(&[command, "--help"]);
        assert!(prints(&output).contains(&format!("\n  gradix {command}")), "{command}");
    }
    assert!(prints(&gradix(&["--help"])).contains("\n  gradix derive -e"));
    assert!(prints(&gradix(&["--version"])).starts_with("gradix "));
}

#[test]
fn completions_are_written_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(prints(&gradix(&["completions", shell])).contains("explain"), "{shell}");
    }
}

#[test]
fn manual_pages_are_written_for_every_command() {
    assert!(prints(&gradix(&["man"])).contains("gradix\\-derive(1)"));
    for command in ["derive", "eval", "check", "explain", "emit", "bench", "fmt", "completions", "man"] {
        let page = gradix(&["man", command]);
        assert!(prints(&page).contains(&format!(".TH gradix-{command} 1")), "{command}");
    }
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gradix"))
        .args(["fmt", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(b"y = 1\n").unwrap();
    prints(&child.wait_with_output().unwrap());
}
