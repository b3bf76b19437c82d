//! C text to kernels that can be called: compile, keep, load.
//!
//! ```text
//! text ─key→ in this process? on disk? ─no→ compile ─store→ load → kernels
//! ```
//!
//! Whatever goes wrong with the cache is noted, and the kernels come from a temporary folder; only a compiler that is
//! missing or fails leaves nothing to run.

mod cache;
mod compiler;
mod library;
pub mod peak;
mod processor;

pub use cache::{Cache, Key};
pub use compiler::Compiler;
pub use library::{Kernels, Library};

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{env, fs};

use crate::note::Note;
use gradix::timings::timed;

/// Where compiled kernels are kept and what compiles them.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The command that compiles, as in `$CC`.
    pub compiler: Option<OsString>,
    /// Where compilers are looked for, as in `$PATH`.
    pub search: Option<OsString>,
    /// Where kernels are kept; `None` if the system has no place for such things.
    pub cache: Option<Cache>,
    /// Where things are made; the first one that can be used is.
    pub workshops: Vec<PathBuf>,
}

/// 256 MiB: some thousands of programs.
const DEFAULT_LIMIT: u64 = 256 << 20;
/// How many libraries stay loaded although nobody uses them.
const MAX_LOADED: usize = 64;
/// Changes with the interface between kernels and what calls them.
const INTERFACE: &str = "gradix kernels 1";

impl Settings {
    /// What the environment says: `CC`, `PATH`, `GRADIX_CACHE` (a folder), `GRADIX_CACHE_MIB` (its limit), and the
    /// places that the system has for such things.
    pub fn from_environment() -> Settings {
        let limit = env::var("GRADIX_CACHE_MIB").ok().and_then(|text| text.parse::<u64>().ok());
        let limit = limit.map_or(DEFAULT_LIMIT, |mib| mib.saturating_mul(1 << 20));
        let cache = cache_folder().map(|folder| Cache { folder, limit });
        let cache_folder = cache.iter().map(|cache| cache.folder.clone());
        let workshops = std::iter::once(env::temp_dir()).chain(cache_folder).collect();
        Settings { compiler: env::var_os("CC"), search: env::var_os("PATH"), cache, workshops }
    }

    /// The compiler, if there is one.
    pub fn compiler(&self) -> Result<Compiler, Note> {
        Compiler::find(self.compiler.as_deref(), self.search.as_deref())
    }
}

/// `$GRADIX_CACHE`, or the folder `gradix` where the system keeps what can be made again.
fn cache_folder() -> Option<PathBuf> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let absolute = |path: &PathBuf| path.is_absolute();
    if let Some(folder) = variable("GRADIX_CACHE") {
        return Some(folder);
    }
    let home = variable("HOME").filter(absolute);
    let base = match env::consts::OS {
        "windows" => variable("LOCALAPPDATA"),
        "macos" => home.map(|home| home.join("Library/Caches")),
        _ => variable("XDG_CACHE_HOME").filter(absolute).or_else(|| home.map(|home| home.join(".cache"))),
    };
    base.map(|base| base.join("gradix"))
}

/// The kernels of C texts that belong together, `count` of them, and what is to be told. An error says why there are none.
/// What is `plain` is compiled sooner, and runs longer.
pub fn load(
    texts: &[String],
    count: usize,
    plain: bool,
    compiler: &Compiler,
    settings: &Settings,
) -> Result<(Kernels, Vec<Note>), Note> {
    let (compiled_by, compiled_for) = (compiler.identity(plain), processor::identity());
    let described = [INTERFACE, &compiled_by, &compiled_for].into_iter();
    let key = Key::of(&described.chain(texts.iter().map(String::as_str)).collect::<Vec<_>>());
    let strange = |error: String| Note::new(format!("a compiled kernel can't be used: {error}"));
    if let Some(library) = loaded(key) {
        return Ok((library.kernels(count).map_err(strange)?, Vec::new()));
    }
    let kept = settings.cache.as_ref().and_then(|cache| cache.find(key));
    if let Some(library) = kept.and_then(|path| Library::open(&path).ok())
        && let Ok(kernels) = library.kernels(count)
    {
        keep_loaded(key, library);
        return Ok((kernels, Vec::new()));
    }
    let (library, notes) = make(texts, key, compiler, plain, settings)?;
    let kernels = library.kernels(count).map_err(strange)?;
    keep_loaded(key, library);
    Ok((kernels, notes))
}

/// Compiles in the first folder where that is possible.
fn make(
    texts: &[String],
    key: Key,
    compiler: &Compiler,
    plain: bool,
    settings: &Settings,
) -> Result<(Library, Vec<Note>), Note> {
    let mut reasons = Vec::new();
    for workshop in &settings.workshops {
        let made = Workshop::new(workshop).map_err(compiler::Failure::Folder).and_then(|folder| {
            let path = timed("C compiler", || compiler.compile(texts, plain, &folder.0))?;
            Ok((folder, path))
        });
        match made {
            Ok((_folder, path)) => return open(&path, key, settings),
            Err(compiler::Failure::Folder(error)) => reasons.push(format!("{}: {error}", workshop.display())),
            Err(compiler::Failure::Compiler(note)) => return Err(note),
        }
    }
    Err(Note::new(format!("there is no folder to compile in ({})", reasons.join("; "))))
}

/// Stores a library and loads it from there; if that is not possible, from where it was made.
fn open(path: &Path, key: Key, settings: &Settings) -> Result<(Library, Vec<Note>), Note> {
    let mut notes = Vec::new();
    let stored = settings.cache.as_ref().and_then(|cache| {
        let stored = fs::read(path).and_then(|bytes| cache.store(key, &bytes));
        stored.map_err(|error| notes.push(not_kept(&cache.folder, &error))).ok()
    });
    if let Some(Ok(library)) = stored.map(|path| Library::open(&path)) {
        return Ok((library, notes));
    }
    let library =
        Library::open(path).map_err(|error| Note::new(format!("a compiled kernel can't be loaded: {error}")))?;
    Ok((library, notes))
}

fn not_kept(folder: &Path, error: &std::io::Error) -> Note {
    Note::new(format!("compiled kernels can't be kept in {}: {error}", folder.display()))
        .hint("name a folder that can be written to in $GRADIX_CACHE")
}

/// A folder that exists while something is made in it. (A library that was loaded from it stays usable.)
struct Workshop(PathBuf);

impl Workshop {
    fn new(parent: &Path) -> std::io::Result<Workshop> {
        let folder = parent.join(cache::unique("gradix-"));
        if !parent.is_dir() {
            cache::create_private(parent, true)?;
        }
        // One that exists already was made by somebody else, who could put something into it.
        cache::create_private(&folder, false)?;
        Ok(Workshop(folder))
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The libraries that were used last in this process, the latest at the end.
static LOADED: Mutex<VecDeque<(Key, Library)>> = Mutex::new(VecDeque::new());

fn loaded(key: Key) -> Option<Library> {
    let mut loaded = LOADED.lock().ok()?;
    let position = loaded.iter().position(|(other, _)| *other == key)?;
    let entry = loaded.remove(position)?;
    let library = entry.1.clone();
    loaded.push_back(entry);
    Some(library)
}

fn keep_loaded(key: Key, library: Library) {
    let Ok(mut loaded) = LOADED.lock() else { return };
    loaded.push_back((key, library));
    if loaded.len() > MAX_LOADED {
        loaded.pop_front();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A folder of one test that goes with it.
    pub struct Folder(pub PathBuf);

    impl Folder {
        pub fn new() -> Folder {
            let folder = env::temp_dir().join(cache::unique("gradix-test-"));
            cache::create_private(&folder, false).unwrap();
            Folder(folder)
        }

        /// An executable script in this folder.
        #[cfg(unix)]
        fn script(&self, name: &str, text: &str) -> OsString {
            use std::os::unix::fs::PermissionsExt;
            let path = self.0.join(name);
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path.into()
        }

        /// Settings with a cache and a workshop in this folder.
        pub fn settings(&self) -> Settings {
            let cache = Some(Cache { folder: self.0.join("cache"), limit: DEFAULT_LIMIT });
            let workshops = vec![self.0.join("workshop")];
            Settings { compiler: None, search: env::var_os("PATH"), cache, workshops }
        }

        /// How many whole libraries are kept.
        fn kept(&self) -> usize {
            let entries = fs::read_dir(self.0.join("cache")).into_iter().flatten().flatten();
            entries.map(|entry| fs::read_dir(entry.path()).unwrap().count()).sum()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// A text with one kernel; every `number` makes another one.
    fn text(number: usize) -> String {
        format!(
            "#include <stdint.h>\n/* {number} */\nvoid gx_kernel_0(const int64_t *size, double *const *buffer, double *local, \
             int64_t begin, int64_t end) {{ buffer[0][0] = {number}; }}\n"
        )
    }

    fn forget_loaded() {
        LOADED.lock().unwrap().clear();
    }

    /// The message of what was noted or failed when a text was loaded for so many kernels.
    fn told(settings: &Settings, number: usize, kernels: usize) -> String {
        let found = settings.compiler();
        match found.and_then(|compiler| load(&[text(number)], kernels, false, &compiler, settings)) {
            Ok((_, notes)) => notes.iter().map(Note::to_string).collect(),
            Err(note) => format!("failed: {note}"),
        }
    }

    #[test]
    fn a_missing_compiler_is_named() {
        let folder = Folder::new();
        let named = Settings { compiler: Some("/nonexistent".into()), ..folder.settings() };
        assert_eq!(told(&named, 0, 1), "failed: the C compiler '/nonexistent' that $CC names was not found");
        let none = Settings { search: Some(folder.0.clone().into()), ..folder.settings() };
        assert!(told(&none, 0, 1).starts_with("failed: there is no C compiler (cc, gcc or clang)\nhelp: "));
    }

    #[cfg(unix)]
    #[test]
    fn a_compiler_that_fails_is_quoted() {
        let folder = Folder::new();
        let script = folder.script("broken", "echo 'warning: strange' >&2; echo 'error: no such option' >&2; exit 1");
        let settings = Settings { compiler: Some(script.clone()), ..folder.settings() };
        let expected = format!("failed: the C compiler '{}' fails: error: no such option", script.display());
        assert_eq!(told(&settings, 1, 1), expected);
        let silent = Settings { compiler: Some(folder.script("silent", "exit 3")), ..folder.settings() };
        assert!(told(&silent, 1, 1).ends_with("fails: exit status: 3"));
        let lazy = Settings { compiler: Some(folder.script("lazy", "exit 0")), ..folder.settings() };
        assert!(told(&lazy, 1, 1).contains("lazy' fails: exit status: 0"));
        assert_eq!(folder.kept(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn the_compiler_may_have_arguments() {
        let folder = Folder::new();
        let settings = Settings { compiler: Some("cc -DEXTRA".into()), ..folder.settings() };
        let compiler = settings.compiler().unwrap();
        assert_eq!((compiler.path.ends_with("cc"), compiler.arguments.clone()), (true, vec!["-DEXTRA".into()]));
        let plain = Settings { compiler: Some("cc".into()), ..folder.settings() }.compiler().unwrap();
        assert_ne!(plain.identity(false), compiler.identity(false));
        assert_ne!(plain.identity(false), plain.identity(true));
    }

    #[cfg(unix)]
    #[test]
    fn a_text_is_compiled_once() {
        let folder = Folder::new();
        let log = folder.0.join("log");
        let script = folder.script("counting", &format!("echo run >> {}; exec cc \"$@\"", log.display()));
        let settings = Settings { compiler: Some(script), ..folder.settings() };
        let runs = || fs::read_to_string(&log).map_or(0, |text| text.lines().count());
        assert_eq!(told(&settings, 2, 1), "");
        assert_eq!(told(&settings, 2, 1), "");
        assert_eq!((runs(), folder.kept()), (1, 1));
        forget_loaded();
        assert_eq!(told(&settings, 2, 1), "");
        assert_eq!(runs(), 1, "it is on disk");
        assert_eq!(told(&settings, 3, 1), "");
        assert_eq!((runs(), folder.kept()), (2, 2));
        assert_eq!(fs::read_dir(folder.0.join("workshop")).unwrap().count(), 0, "nothing is left behind");
    }

    #[test]
    fn texts_are_linked_into_one_library() {
        let folder = Folder::new();
        let settings = folder.settings();
        let other = text(9).replace("gx_kernel_0", "gx_kernel_1");
        let load = |texts: &[String]| load(texts, 2, false, &settings.compiler().unwrap(), &settings);
        assert!(load(&[text(8), other.clone()]).is_ok_and(|(_, notes)| notes.is_empty()));
        assert_eq!(folder.kept(), 1);
        let broken = load(&[text(8), other.replace("buffer[0][0]", "nothing")]).unwrap_err().to_string();
        assert!(broken.contains("fails: ") && broken.contains("error"), "{broken}");
        assert_eq!(fs::read_dir(folder.0.join("workshop")).unwrap().count(), 0, "nothing is left behind");
    }

    #[test]
    fn a_damaged_library_is_made_again() {
        let folder = Folder::new();
        let settings = folder.settings();
        assert_eq!(told(&settings, 4, 1), "");
        forget_loaded();
        let entry = fs::read_dir(folder.0.join("cache")).unwrap().next().unwrap().unwrap();
        let path = fs::read_dir(entry.path()).unwrap().next().unwrap().unwrap().path();
        let whole = fs::read(&path).unwrap();
        // Renamed, not rewritten: it may still be loaded in this process.
        fs::remove_file(&path).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        assert_eq!(told(&settings, 4, 1), "");
        let again = fs::read_dir(entry.path()).unwrap().next().unwrap().unwrap().path();
        assert!(fs::read(&again).unwrap().len() >= whole.len());
    }

    #[test]
    fn a_cache_that_can_not_be_written_is_done_without() {
        let folder = Folder::new();
        // A file in place of the folder: unlike permissions, that stops an administrator too.
        fs::write(folder.0.join("cache"), b"").unwrap();
        let message = told(&folder.settings(), 5, 1);
        let expected = format!("compiled kernels can't be kept in {}: ", folder.0.join("cache").display());
        assert!(message.starts_with(&expected) && message.contains("\nhelp: "), "{message}");
        let without = Settings { cache: None, ..folder.settings() };
        assert_eq!(told(&without, 6, 1), "");
    }

    #[test]
    fn another_workshop_is_used_when_one_can_not_be() {
        let folder = Folder::new();
        fs::write(folder.0.join("file"), b"").unwrap();
        let (bad, good) = (folder.0.join("file"), folder.0.join("good"));
        let settings = Settings { workshops: vec![bad.clone(), good], ..folder.settings() };
        assert_eq!(told(&settings, 7, 1), "");
        let settings = Settings { workshops: vec![bad], ..folder.settings() };
        let message = told(&settings, 8, 1);
        assert!(message.starts_with("failed: there is no folder to compile in ("), "{message}");
    }

    #[cfg(unix)]
    #[test]
    fn a_full_disk_is_not_the_compiler() {
        let folder = Folder::new();
        let once = "case $TMPDIR in */full/*) echo 'fatal error: x.o: No space left on device' >&2; exit 1;; esac
            exec cc \"$@\"";
        let settings = Settings {
            compiler: Some(folder.script("once", once)),
            workshops: vec![folder.0.join("full"), folder.0.join("empty")],
            ..folder.settings()
        };
        assert_eq!(told(&settings, 9, 1), "");
    }

    #[test]
    fn a_library_without_the_kernels_is_not_used() {
        let folder = Folder::new();
        let message = told(&folder.settings(), 10, 2);
        assert!(message.starts_with("failed: a compiled kernel can't be used: "), "{message}");
    }
}
