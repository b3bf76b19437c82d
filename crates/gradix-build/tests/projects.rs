//! Small crates outside of the workspace, built by Cargo: what build scripts and the macro make of programs, and refuse.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// One folder for what all of them depend on.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Writes a crate that depends on gradix, with these files, and has Cargo do something.
fn cargo(command: &str, name: &str, files: &[(&str, &str)]) -> Output {
    let (folder, root) = (folder(name), root());
    let crates = root.join("crates");
    // Without symbols for debuggers, what build scripts and the crate have in common is built once.
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n[profile.dev]\ndebug = false\n\
         [dependencies]\ngradix-run = {{ path = {:?}, features = [\"macros\"] }}\n\
         [build-dependencies]\ngradix-build = {{ path = {:?} }}\n",
        crates.join("gradix-run"),
        crates.join("gradix-build"),
    );
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).unwrap();
    for (file, text) in files.iter().chain(&[("Cargo.toml", manifest.as_str()), ("Cargo.lock", &lock)]) {
        let path = folder.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([command, "--offline", "--quiet"]).current_dir(&folder);
    // What this test itself was compiled with is no part of it.
    cargo.env("CARGO_TARGET_DIR", self::folder("target")).env_remove("RUSTFLAGS").env("RUSTC_WRAPPER", "");
    cargo.output().unwrap()
}

/// What a crate prints.
fn printed(name: &str, files: &[(&str, &str)]) -> String {
    let output = cargo("run", name, files);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Why a crate can't be built.
fn refused(name: &str, build: &str, program: &str, main: &str) -> String {
    let output = cargo("check", name, &[("build.rs", build), ("src/f.gx", program), ("src/main.rs", main)]);
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

/// The block that follows a line of the page on Rust.
fn block(line: &str) -> String {
    let page = std::fs::read_to_string(root().join("docs/rust.md")).unwrap();
    let after = page.split_once(&format!("\n{line}\n")).unwrap_or_else(|| panic!("there is no line {line:?}")).1;
    let (_, block) = after.trim_start().split_once('\n').unwrap();
    block.split_once("```").unwrap().0.to_string()
}

#[test]
fn modules_compute_what_gradix_run_does() {
    let paper = std::fs::read_to_string(root().join("examples/paper.gx")).unwrap();
    let files = [
        ("build.rs", include_str!("project/build.rs")),
        ("src/main.rs", include_str!("project/src/main.rs")),
        ("src/words.gx", include_str!("project/src/words.gx")),
        ("src/shapes.gx", include_str!("project/src/shapes.gx")),
        ("src/paper.gx", &paper),
    ];
    assert_eq!(printed("held", &files), "all is well\n");
}

#[test]
fn the_page_on_rust_prints_what_it_says() {
    let files = ["src/rbf.gx", "build.rs", "src/main.rs"].map(|file| (file, block(&format!("`{file}`:"))));
    let files: Vec<(&str, &str)> = files.iter().map(|(file, text)| (*file, text.as_str())).collect();
    let after = block("It prints");
    assert_eq!(printed("page", &files), after);
}

#[test]
fn mistakes_are_found_when_the_crate_is_compiled() {
    const BUILD: &str =
        "fn main() -> Result<(), gradix_build::Error> { gradix_build::Program::new(\"src/f.gx\").compile() }";
    let error = refused("refused", BUILD, "input x[N]\ny[i] = z[i]\n", "fn main() {}");
    assert!(error.contains("error[unknown-name]: unknown name 'z'\n   --> src/f.gx:2:8"), "{error}");
    let main = "fn main() { let _ = gradix_run::program!(\"input x[N]; f = sum[i] x[i]*z[i]\"); }";
    let error = refused("refused", BUILD, "input x[N]\ny[i] = x[i]\n", main);
    let shown = block("It is a `&'static Compiled`, read once. A mistake is an error of the Rust compiler:");
    assert!(error.starts_with(&shown), "{error}");
    assert!(error.contains("src/main.rs:1:42"), "{error}");
}
