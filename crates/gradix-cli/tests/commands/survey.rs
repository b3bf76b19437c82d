//! The survey of all programs, on two of them at tiny sizes.

use std::process::Command;

use crate::scratch;

#[test]
fn the_survey_measures_and_writes_a_table() {
    if Command::new("python3").arg("--version").output().is_err()
        || Command::new("gcc").arg("--version").output().is_err()
    {
        return eprintln!("there is no Python or no GCC, and the survey is not tested");
    }
    let [sizes, results, table] =
        ["sizes.json", "results.json", "survey.md"].map(|name| scratch(&format!("survey-{name}")));
    std::fs::write(&sizes, r#"{"rbf": {"N": 5, "M": 4, "D": 3}, "trace@small": {"N": 6}}"#).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/survey/survey.py");
    let options = [
        "--fresh",
        "--seconds",
        "0",
        "--jax",
        "none",
        "--dtypes",
        "f64",
        "--threads",
        "1",
        "--binary",
        env!("CARGO_BIN_EXE_gradix"),
    ];
    let files = ["--sizes", &sizes, "--results", &results, "--output", &table];
    let output = Command::new("python3").arg(script).args(options).args(files).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&table).unwrap();
    let rows = |name: &str| text.lines().filter(|line| line.starts_with(name) && line.contains(" % |")).count();
    assert_eq!([rows("| rbf | N=5, M=4, D=3 | f"), rows("| trace@small | N=6 | f")], [1, 1], "{text}");
    assert!(text.contains("| `exp` | ") && text.contains("| bytes |"), "{text}");
}
