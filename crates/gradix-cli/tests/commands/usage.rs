//! What every command has in common: where things are printed, exit codes, help.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::{gradix, gradix_with_input, prints, refuses, text};

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
    assert!(refuses(&output, 2).contains("possible values: auto, interp, vm, native, cuda"));
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

#[test]
fn with_json_there_is_one_object_whatever_happens() {
    let object = |arguments: &[&str], code: i32| -> serde_json::Value {
        let output = gradix(arguments);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(code), ""));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let eval = object(
        &["eval", "--json", "--param", "N=2", "--input", "a=2", "-qe", "param N; input a; y[i in 0..N] = a / i"],
        0,
    );
    let expected = serde_json::json!({ "sizes": {},
        "results": { "y": { "shape": [2], "values": ["inf", 2.0] } }, "errors": [] });
    assert_eq!(eval, expected);
    let error = object(&["eval", "--json", "-qe", "input x[N]\ny[i] = z[i]"], 1);
    let expected = serde_json::json!({ "errors": [{ "code": "unknown-name", "message": "unknown name 'z'",
        "file": "command line", "line": 2, "column": 8, "span": [18, 19],
        "hints": ["declare it with 'param' or 'input', or bind it as an index"] }] });
    assert_eq!(error, expected);
    for arguments in
        [&["check", "--json", "-qe"][..], &["derive", "--format", "json", "-qe"], &["bench", "--json", "-qe"]]
    {
        assert_eq!(object(&[arguments, &["input x[N]\ny[i] = z[i]"]].concat(), 1), expected, "{arguments:?}");
    }
    assert_eq!(object(&["check", "--json", "/nonexistent.gx"], 1)["errors"][0]["line"], serde_json::Value::Null);
    assert_eq!(object(&["check", "--json", "-qe", "y = 1"], 0)["derivatives"], serde_json::json!([]));
}

#[test]
fn a_check_as_json_has_what_it_found_and_what_is_wrong() {
    let check = |program: &str, option: &str| {
        let output = gradix(&["check", "--json", option, "-qe", program]);
        (output.status.code(), serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap())
    };
    let (code, report) = check("input x[N]; y[i] = exp(x[i])", "--order=1");
    assert_eq!(
        (code, &report["errors"], &report["sizes"]),
        (Some(0), &serde_json::json!([]), &serde_json::json!({ "N": 3 }))
    );
    let row = &report["derivatives"][0];
    assert_eq!((&row["name"], &row["argument"], &row["verdict"]), (&"dx".into(), &"x".into(), &"ok".into()));
    let (code, report) = check("input x[N]; y[i] = if x[i] > 5 then x[i]^2 else 0", "--strict");
    assert_eq!((code, &report["derivatives"][0]["verdict"]), (Some(1), &"not checked".into()));
    assert_eq!(report["errors"][0]["message"], "1 of 1 derivative could not be checked");
    let (code, report) = check("input x[N]; y[i] = exp(sin(3*x[i]))", "--tol=1e-300");
    assert_eq!((code, &report["derivatives"][0]["verdict"]), (Some(1), &"failed".into()));
}
