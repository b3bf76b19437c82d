//! The commands shown in README and docs print what the documents say.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What differs from run to run, or from machine to machine.
const CHANGING: [&str; 1] = ["gradix bench"];

/// A command in a document, and what follows it.
struct Shown {
    place: String,
    command: String,
    output: String,
}

/// The commands of the blocks of a document: lines that start with `$ `, each with the lines up to the next one.
fn commands(file: &Path) -> Vec<Shown> {
    let text = std::fs::read_to_string(file).unwrap();
    let mut found: Vec<Shown> = Vec::new();
    let (mut inside, mut shown) = (false, false);
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            (inside, shown) = (!inside, false);
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            shown = true;
            let place = format!("{}:{}", file.display(), number + 1);
            found.push(Shown { place, command: command.to_string(), output: String::new() });
        } else if shown {
            found.last_mut().unwrap().output.push_str(&format!("{line}\n"));
        }
    }
    found
}

/// What a command prints, with `gradix` on the path and the examples where the documents have them.
fn printed(command: &str, folder: &Path) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_gradix")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{command} 2>&1")]).current_dir(folder).env("PATH", path);
    shell.env("GRADIX_CACHE", super::scratch("kernels")).env_remove("CC");
    String::from_utf8(shell.output().unwrap().stdout).unwrap()
}

/// Whether something is printed as shown, where a line of dots stands for any number of lines.
fn is_as_shown(shown: &str, printed: &str) -> bool {
    let lines: Vec<&str> = shown.trim_end().lines().collect();
    let mut parts = lines.split(|line| ["…", "..."].contains(line));
    let printed: Vec<&str> = printed.trim_end().lines().collect();
    let first = parts.next().unwrap_or_default();
    if !printed.starts_with(first) {
        return false;
    }
    let (mut rest, mut last) = (&printed[first.len()..], None);
    for part in parts.map(|part| part.strip_prefix(&[""]).unwrap_or(part)) {
        let Some(place) = (0..=rest.len()).find(|place| rest[*place..].starts_with(part)) else { return false };
        rest = &rest[place + part.len()..];
        last = Some(part);
    }
    rest.is_empty() || last.is_some_and(<[&str]>::is_empty)
}

#[test]
fn commands_print_what_the_documents_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let documents = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut documents: Vec<PathBuf> = documents.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    documents.push(root.join("README.md"));
    documents.sort();
    let folder = PathBuf::from(super::scratch("documents"));
    std::fs::create_dir_all(folder.join("docs")).unwrap();
    let _ = std::os::unix::fs::symlink(root.join("examples"), folder.join("examples"));
    let of_gradix = |shown: &Shown| shown.command.starts_with("gradix");
    let steady = |shown: &Shown| !CHANGING.iter().any(|changing| shown.command.starts_with(changing));
    let all = documents.iter().flat_map(|file| commands(file));
    let shown: Vec<Shown> = all.filter(|shown| of_gradix(shown) && steady(shown)).collect();
    assert!(shown.len() > 50, "only {} commands were found", shown.len());
    let mut wrong = String::new();
    for Shown { place, command, output } in shown {
        let printed = printed(&command, &folder);
        if !is_as_shown(&output, &printed) {
            wrong.push_str(&format!("\n{place}: {command}\n--- shown\n{output}--- printed\n{printed}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The text of a page without its blocks of code.
fn prose(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    let mut inside = false;
    let mut outside = |line: &&str| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence
    };
    text.lines().filter(|line| outside(line)).map(|line| format!("{line}\n")).collect()
}

/// Where the links of a page lead to.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|after| Some(after.split_once(')')?.0))
}

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
}

#[test]
fn links_lead_somewhere_and_the_book_has_every_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let is_page = |path: &PathBuf| path.extension().is_some_and(|e| e == "md") && !path.ends_with("SUMMARY.md");
    let docs: Vec<PathBuf> =
        std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()).filter(is_page).collect();
    let others =
        ["README.md", "examples/README.md", "crates/gradix-py/README.md", "crates/gradix-py/examples/README.md"];
    let mut wrong = Vec::new();
    for page in docs.iter().cloned().chain(others.map(|other| root.join(other))) {
        let text = prose(&page);
        for link in links(&text).filter(|link| !link.contains("://")) {
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let headings = || {
                prose(&target)
                    .lines()
                    .filter(|line| line.starts_with('#'))
                    .map(|line| anchor(line.trim_start_matches('#').trim()))
                    .collect::<Vec<_>>()
            };
            if !target.exists() || !place.is_empty() && !headings().contains(&place.to_string()) {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let summary = prose(&root.join("docs/SUMMARY.md"));
    let mut named: Vec<PathBuf> = links(&summary).map(|link| root.join("docs").join(link)).collect();
    // The first page is README, under another name.
    let mut pages: Vec<PathBuf> = docs.into_iter().chain([root.join("docs/index.md")]).collect();
    named.sort();
    pages.sort();
    assert_eq!(named, pages);
}

#[test]
fn dots_stand_for_any_lines() {
    let printed = "a\nb\nc\nd\n";
    for (shown, expected) in [
        ("a\nb\nc\nd", true),
        ("a\nb\nc", false),
        ("a\n…\nd", true),
        ("…\nc\nd", true),
        ("a\n…", true),
        ("…\nc", false),
        ("a\n…\nx\n…", false),
        ("", false),
    ] {
        assert_eq!(is_as_shown(shown, printed), expected, "{shown}");
    }
}
