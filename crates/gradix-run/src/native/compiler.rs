//! The machine's C compiler: where it is, what identifies it, and running it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant, UNIX_EPOCH};
use std::{env, io, thread};

use crate::note::Note;

/// A C compiler, and the options that it is always given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    /// The program.
    pub path: PathBuf,
    /// Arguments before all others, from `$CC`.
    pub arguments: Vec<OsString>,
}

/// Values are those of IEEE arithmetic: no reordering, no assumption that there is no NaN. `errno` and the exception
/// flags are nobody's business, which lets functions and selects be vectorised; `a*b + c` may be one operation.
const FLAGS: [&str; 6] = [
    "-std=c11",
    if cfg!(target_arch = "aarch64") { "-mcpu=native" } else { "-march=native" },
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
];

/// How much is optimised: all that pays in kernels that run for long, or what takes little time.
fn effort(plain: bool) -> &'static str {
    if plain { "-O1" } else { "-O2" }
}

/// The longest that a compiler may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// A compiler at work.
struct Started {
    child: Child,
    messages: PathBuf,
    made: PathBuf,
}

/// Why there is no library.
#[derive(Debug)]
pub enum Failure {
    /// The folder can't be used: another one may do.
    Folder(io::Error),
    /// The compiler can't be run, or refuses the text.
    Compiler(Note),
}

impl Compiler {
    /// What `command` (the value of `$CC`) names; without it, the first of `cc`, `gcc` and `clang` that there is.
    pub fn find(command: Option<&OsStr>, search: Option<&OsStr>) -> Result<Compiler, Note> {
        let Some(command) = command.filter(|command| !command.is_empty()) else {
            let found = ["cc", "gcc", "clang"].iter().find_map(|name| locate(Path::new(name), search));
            let path = found.ok_or_else(|| {
                Note::new("there is no C compiler (cc, gcc or clang)").hint("install one, or name it in $CC")
            })?;
            return Ok(Compiler { path, arguments: Vec::new() });
        };
        if let Some(path) = locate(Path::new(command), search) {
            return Ok(Compiler { path, arguments: Vec::new() });
        }
        // `$CC` may hold options, or a launcher such as ccache before the compiler.
        let text = command.to_string_lossy();
        let mut words = text.split_whitespace();
        let found = words.next().and_then(|first| locate(Path::new(first), search));
        let path = found.ok_or_else(|| Note::new(format!("the C compiler '{text}' that $CC names was not found")))?;
        Ok(Compiler { path, arguments: words.map(OsString::from).collect() })
    }

    /// Text that changes whenever the compiler or its options do. Nothing is run for it: the size and date of the
    /// file stand for its version.
    pub fn identity(&self, plain: bool) -> String {
        let file = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let (size, date) = fs::metadata(&file).map_or((0, 0), |metadata| {
            let date = metadata.modified().ok().and_then(|date| date.duration_since(UNIX_EPOCH).ok());
            (metadata.len(), date.map_or(0, |date| date.as_nanos()))
        });
        format!("{} {size} {date} {:?} {} {FLAGS:?}", file.display(), self.arguments, effort(plain))
    }

    /// Makes a shared library from C texts. Whatever is written is in `folder`.
    pub fn compile(&self, texts: &[String], plain: bool, folder: &Path) -> Result<PathBuf, Failure> {
        let library = folder.join(format!("kernel{}", env::consts::DLL_SUFFIX));
        if let [text] = texts {
            let source = folder.join("kernel.c");
            fs::write(&source, text).map_err(Failure::Folder)?;
            self.finish(vec![self.start(&["-shared"], &[source], &library, plain, folder)?])?;
            return Ok(library);
        }
        let (mut started, mut objects) = (Vec::new(), Vec::new());
        for (number, text) in texts.iter().enumerate() {
            let source = folder.join(format!("kernel{number}.c"));
            fs::write(&source, text).map_err(Failure::Folder)?;
            objects.push(source.with_extension("o"));
            started.push(self.start(&["-c"], &[source], &objects[number], plain, folder)?);
        }
        self.finish(started)?;
        self.finish(vec![self.start(&["-shared"], &objects, &library, plain, folder)?])?;
        Ok(library)
    }

    /// Starts the compiler.
    fn start(
        &self,
        what: &[&str],
        sources: &[PathBuf],
        made: &Path,
        plain: bool,
        folder: &Path,
    ) -> Result<Started, Failure> {
        // Messages go to a file: nobody has to read while the compiler writes.
        let messages = made.with_extension("messages");
        let stderr = File::create(&messages).map_err(Failure::Folder)?;
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).arg(effort(plain)).args(FLAGS).args(what).arg("-o").arg(made).args(sources);
        if what.contains(&"-shared") {
            command.arg("-lm");
        }
        command.env("TMPDIR", folder).env("LC_ALL", "C");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
        let child = command.spawn().map_err(|error| self.fails(&error.to_string()))?;
        Ok(Started { child, messages, made: made.to_path_buf() })
    }

    /// Waits for all that was started; an error is that of the first that failed.
    fn finish(&self, started: Vec<Started>) -> Result<(), Failure> {
        let outcomes: Vec<Result<(), Failure>> = started.into_iter().map(|one| self.finish_one(one)).collect();
        outcomes.into_iter().collect()
    }

    fn finish_one(&self, Started { child, messages, made }: Started) -> Result<(), Failure> {
        let status = wait(child).map_err(|error| self.fails(&error.to_string()))?;
        if status.success() && made.is_file() {
            return Ok(());
        }
        let said = fs::read(&messages).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        if said.contains("No space left on device") {
            return Err(Failure::Folder(io::ErrorKind::StorageFull.into()));
        }
        let errors: Vec<&str> = said.lines().filter(|line| line.contains("error")).collect();
        let line = errors.first().copied().or(said.lines().next()).map(str::trim).filter(|line| !line.is_empty());
        Err(self.fails(line.map(str::to_string).unwrap_or_else(|| status.to_string()).as_str()))
    }

    fn fails(&self, why: &str) -> Failure {
        let short: String = why.chars().take(300).collect();
        Failure::Compiler(Note::new(format!("the C compiler '{}' fails: {short}", self.path.display())))
    }
}

/// The file that a command of this name runs: a path as it is, a bare name by way of the search path.
fn locate(command: &Path, search: Option<&OsStr>) -> Option<PathBuf> {
    let candidates: Vec<PathBuf> = match command.components().count() {
        0 => Vec::new(),
        1 if command.parent() == Some(Path::new("")) => {
            let folders = search.map(|search| env::split_paths(search).collect::<Vec<_>>()).unwrap_or_default();
            folders.into_iter().map(|folder| folder.join(command)).collect()
        }
        _ => vec![command.to_path_buf()],
    };
    let suffix =
        |path: PathBuf| if cfg!(windows) && path.extension().is_none() { path.with_extension("exe") } else { path };
    candidates.into_iter().map(suffix).find(|path| is_executable(path))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

/// Waits for a process, and ends it when it takes too long.
fn wait(mut child: Child) -> io::Result<ExitStatus> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if start.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("it took more than {PATIENCE:?}")));
        }
        thread::sleep(Duration::from_millis(1));
    }
}
