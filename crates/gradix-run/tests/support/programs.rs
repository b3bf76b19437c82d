//! The programs that lie in the repository as files.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::{Path, PathBuf};

/// All programs in a folder, by name; it is relative to this crate.
pub fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "gx"));
    paths.sort();
    paths
}

/// Name and text of each example.
pub fn examples() -> Vec<(String, String)> {
    let paths = files("../../examples");
    assert!(paths.len() > 40);
    let name = |path: &PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}
