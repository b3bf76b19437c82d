//! Compiled kernels on disk, shared by all processes of a user.
//!
//! ```text
//! folder/<key>/<checksum>-<length>.so
//! ```
//!
//! The key says what the library was made from, its name what it must contain. So one look at a file tells whether it
//! is whole, and there is nothing beside it that could disagree. A library is written under another name and then renamed:
//! others see all of it or nothing. (What a crash of the machine leaves half written is found out by its name.) Two
//! processes that make the same one at the same time both succeed. The time of modification is the time of the last use; when the whole grows past a limit, what was not used
//! for the longest time goes.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use std::{env, process};

use xxhash_rust::xxh3::xxh3_128;

/// A folder of compiled kernels.
#[derive(Clone, Debug)]
pub struct Cache {
    /// Where it is.
    pub folder: PathBuf,
    /// The most bytes that it holds.
    pub limit: u64,
}

/// What a compiled kernel was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(u128);

impl Key {
    /// The key of these texts in this order.
    pub fn of(parts: &[&str]) -> Key {
        let lengths = parts.iter().flat_map(|part| (part.len() as u64).to_le_bytes());
        let bytes: Vec<u8> = lengths.chain(parts.iter().flat_map(|part| part.bytes())).collect();
        Key(xxh3_128(&bytes))
    }
}

/// What is left behind by a process that was stopped goes after this time.
const ABANDONED: Duration = Duration::from_secs(3600);

impl Cache {
    /// The library of this key, if there is a whole one; whatever is damaged is removed.
    pub fn find(&self, key: Key) -> Option<PathBuf> {
        let entries = fs::read_dir(self.entry(key)).ok()?;
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        paths.retain(|path| !is_temporary(path));
        let (whole, damaged): (Vec<PathBuf>, Vec<PathBuf>) = paths.into_iter().partition(|path| is_whole(path));
        // In a folder that can't be written, damaged ones stay and are passed over.
        damaged.iter().for_each(|path| drop(fs::remove_file(path)));
        let found = whole.into_iter().next()?;
        let now = fs::FileTimes::new().set_modified(SystemTime::now());
        // A use that is not noted only makes the library look older than it is.
        let _ = File::open(&found).and_then(|file| file.set_times(now));
        Some(found)
    }

    /// Puts a library in, and others out when they are too many.
    pub fn store(&self, key: Key, library: &[u8]) -> io::Result<PathBuf> {
        let stored = match self.write(key, library) {
            // Another process may have removed the folder as empty just before the file was renamed into it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.write(key, library),
            result => result,
        }?;
        self.shrink(&stored);
        Ok(stored)
    }

    fn write(&self, key: Key, library: &[u8]) -> io::Result<PathBuf> {
        let entry = self.entry(key);
        create_private(&entry, true)?;
        let (path, temporary) = (entry.join(name(library)), entry.join(unique(TEMPORARY)));
        let written = File::create_new(&temporary).and_then(|mut file| file.write_all(library));
        let renamed = written.and_then(|()| fs::rename(&temporary, &path));
        if renamed.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        renamed.map(|()| path)
    }

    fn entry(&self, key: Key) -> PathBuf {
        self.folder.join(format!("{:032x}", key.0))
    }

    /// Removes what was not used for the longest time until the rest fits, and what was abandoned. Another process may
    /// do the same; what it has removed already is no failure.
    fn shrink(&self, keep: &Path) {
        let mut files = self.files();
        let now = SystemTime::now();
        let old = |file: &Entry| now.duration_since(file.used).is_ok_and(|age| age > ABANDONED);
        files.iter().filter(|file| is_temporary(&file.path) && old(file)).for_each(remove);
        files.retain(|file| !is_temporary(&file.path));
        files.sort_by_key(|file| file.used);
        let mut total: u64 = files.iter().map(|file| file.bytes).sum();
        for file in files.iter().filter(|file| file.path != keep) {
            if total <= self.limit {
                return;
            }
            total -= file.bytes;
            remove(file);
        }
    }

    fn files(&self) -> Vec<Entry> {
        let folders = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let files = folders.filter_map(|folder| fs::read_dir(folder.path()).ok()).flatten().flatten();
        let described = files.filter_map(|file| {
            let metadata = file.metadata().ok()?;
            Some(Entry { path: file.path(), bytes: metadata.len(), used: metadata.modified().ok()? })
        });
        described.collect()
    }
}

struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

fn remove(entry: &Entry) {
    let _ = fs::remove_file(&entry.path);
    // The folder goes when this was the last file in it; otherwise the system refuses.
    let _ = entry.path.parent().map(fs::remove_dir);
}

/// The name that a library with these bytes has.
fn name(library: &[u8]) -> String {
    format!("{:032x}-{}{}", xxh3_128(library), library.len(), env::consts::DLL_SUFFIX)
}

/// Whether a file contains what its name says.
fn is_whole(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| path.file_name().is_some_and(|found| found == &*name(&bytes)))
}

const TEMPORARY: &str = "part-";

fn is_temporary(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(TEMPORARY))
}

/// A name that no other process and no other thread of this one uses.
pub fn unique(prefix: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    format!("{prefix}{}-{}-{time:x}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Creates a folder that nobody else may write to, because what is in it will be executed. With `above`, those above it
/// are created too, and it may exist.
pub fn create_private(folder: &Path, above: bool) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(above);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache in a folder of its own that goes with it.
    struct Fresh(Cache);

    fn cache(limit: u64) -> Fresh {
        Fresh(Cache { folder: env::temp_dir().join(unique("gradix-cache-test-")), limit })
    }

    impl std::ops::Deref for Fresh {
        type Target = Cache;
        fn deref(&self) -> &Cache {
            &self.0
        }
    }

    impl Drop for Fresh {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    fn age(path: &Path, seconds: u64) {
        let then = SystemTime::now() - Duration::from_secs(seconds);
        File::open(path).unwrap().set_times(fs::FileTimes::new().set_modified(then)).unwrap();
    }

    fn key(text: &str) -> Key {
        Key::of(&[text])
    }

    #[test]
    fn keys_tell_where_a_text_ends() {
        assert_ne!(Key::of(&["ab", "c"]), Key::of(&["a", "bc"]));
        assert_ne!(Key::of(&["ab"]), Key::of(&["ab", ""]));
        assert_eq!(Key::of(&["ab", "c"]), Key::of(&["ab", "c"]));
    }

    #[test]
    fn what_was_stored_is_found() {
        let cache = cache(1000);
        assert_eq!(cache.find(key("a")), None);
        let path = cache.store(key("a"), b"library").unwrap();
        assert_eq!(cache.find(key("a")), Some(path.clone()));
        assert_eq!((fs::read(path).unwrap(), cache.find(key("b"))), (b"library".to_vec(), None));
    }

    #[test]
    fn damaged_libraries_are_removed() {
        let cache = cache(1000);
        for damage in [&b"librarx"[..], b"lib", b"", b"library, and more"] {
            let path = cache.store(key("a"), b"library").unwrap();
            fs::write(&path, damage).unwrap();
            assert_eq!(cache.find(key("a")), None, "{damage:?}");
            assert!(!path.exists());
        }
    }

    #[test]
    fn half_written_libraries_are_not_seen() {
        let cache = cache(1000);
        let path = cache.store(key("a"), b"library").unwrap();
        let half = path.with_file_name(unique(TEMPORARY));
        fs::rename(&path, &half).unwrap();
        assert_eq!(cache.find(key("a")), None);
        assert!(half.exists(), "another process may still be writing it");
    }

    #[test]
    fn what_was_not_used_for_the_longest_time_goes_first() {
        let cache = cache(25);
        let paths = ["a", "b", "c"].map(|name| cache.store(key(name), b"0123456789").unwrap());
        assert!(!paths[0].exists() || !paths[1].exists(), "30 bytes are too many");
        let [a, b] = ["a", "b"].map(|name| cache.store(key(name), b"0123456789").unwrap());
        age(&a, 20);
        age(&b, 10);
        cache.find(key("a")).unwrap();
        cache.store(key("d"), b"0123456789").unwrap();
        assert!(a.exists() && !b.exists());
        let folders = fs::read_dir(&cache.folder).unwrap().count();
        assert_eq!(folders, 2, "folders go with their last file");
    }

    #[test]
    fn a_library_above_the_limit_is_kept_until_the_next() {
        let cache = cache(5);
        let first = cache.store(key("a"), b"0123456789").unwrap();
        assert!(first.exists());
        cache.store(key("b"), b"0123456789").unwrap();
        assert!(!first.exists());
    }

    #[test]
    fn what_was_abandoned_goes_after_a_while() {
        let cache = cache(1000);
        let path = cache.store(key("a"), b"library").unwrap();
        let [old, new] = [1, 2].map(|_| path.with_file_name(unique(TEMPORARY)));
        fs::write(&old, b"x").unwrap();
        fs::write(&new, b"x").unwrap();
        age(&old, 7200);
        cache.store(key("b"), b"library").unwrap();
        assert!(!old.exists() && new.exists() && path.exists());
    }

    #[test]
    fn many_can_store_and_find_at_once() {
        let cache = cache(100);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let cache = &*cache;
                scope.spawn(move || {
                    for round in 0..50 {
                        let text = format!("library {}", (thread + round) % 7);
                        let stored = cache.store(key(&text), text.as_bytes());
                        assert!(stored.is_ok(), "{stored:?}");
                        // It may be gone again by now, but if it is found it is whole.
                        if let Some(path) = cache.find(key(&text))
                            && let Ok(bytes) = fs::read(path)
                        {
                            assert_eq!(bytes, text.as_bytes());
                        }
                    }
                });
            }
        });
    }
}
