//! The command line, as types: the single definition behind parsing, help, completions and manual pages.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use gradix::Target;
use gradix::derive::Options;
use gradix_run::native::Settings;

/// Exact symbolic derivatives of tensors defined in index notation
#[derive(Debug, Parser)]
#[command(name = "gradix", version, arg_required_else_help = true)]
#[command(after_help = "Example: the gradient of a squared norm

  gradix derive -e 'input x[N]; f = sum[i] x[i]^2'

'gradix help COMMAND' tells more about a command.")]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print the derivative program
    #[command(after_help = "Example: the derivative of a matrix product by its first factor

  gradix derive --wrt a -e 'input a[I, K], b[K, J]; c[i, j] = sum[k] a[i, k] * b[k, j]'")]
    Derive(DeriveArguments),
    /// Evaluate the results, and with --grad the derivatives too
    #[command(after_help = "Examples: with arrays from files, and with random ones

  gradix eval rbf.gx --input x=x.npy --input data.npz --grad -o out.npz
  gradix eval rbf.gx --random 1 --param N=4")]
    Eval(EvalArguments),
    /// Compare every derivative with numeric differentiation on random data
    #[command(after_help = "Example: first and second derivatives of a program

  gradix check rbf.gx --order 2")]
    Check(CheckArguments),
    /// Show the matrices and the solved index sets behind each derivative
    #[command(after_help = "Example: why a subsampling has a divisibility condition in its derivative

  gradix explain -e 'input x[N]; y[i in 0..N//2] = x[2*i]'

Example: a lattice of index pairs that read the same element, as a picture

  gradix explain -e 'input x[N]; y[i, j in 0..3] = x[i + 2*j]' --svg lattice.svg --at 4

Example: the loops that compute the derivatives of a matrix product

  gradix explain matmul.gx --stage nest --grad")]
    Explain(ExplainArguments),
    /// Print source code for the results or the derivatives
    #[command(after_help = "Example: the gradient of a squared norm in C, single precision

  gradix emit --dtype f32 -e 'input x[N]; f = sum[i] x[i]^2'

Example: a project with a library, its header, and a program that calls it

  gradix emit norm.gx --project norm")]
    Emit(EmitArguments),
    /// Time the results and the derivatives on each backend
    #[command(after_help = "Example: a matrix product and its derivatives

  gradix bench matmul.gx --param I=1024 --param J=1024 --param K=1024

The gradient's time includes whatever of the function it needs. Rates are those of the operations in the program as it is \
written, and of the bytes of its arguments and results.")]
    Bench(BenchArguments),
    /// Print the program in canonical form
    #[command(after_help = "Example:

  gradix fmt rbf.gx")]
    Fmt(FmtArguments),
    /// Print a completion script for a shell
    #[command(after_help = "Example: completions for bash, from the next login on

  gradix completions bash > ~/.local/share/bash-completion/completions/gradix")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, of gradix or of one command
    #[command(after_help = "Example:

  gradix man derive | man -l -")]
    Man {
        /// The command
        command: Option<String>,
    },
}

impl Command {
    /// Whether what is printed is JSON.
    pub fn is_for_programs(&self) -> bool {
        match self {
            Command::Derive(arguments) => arguments.format == Format::Json,
            Command::Eval(arguments) => arguments.json,
            Command::Check(arguments) => arguments.json,
            Command::Bench(arguments) => arguments.json,
            _ => false,
        }
    }

    /// Whether it tells how long passes take.
    pub fn has_timings(&self) -> bool {
        match self {
            Command::Eval(arguments) => arguments.timings,
            Command::Bench(arguments) => arguments.timings,
            Command::Explain(arguments) => arguments.timings,
            _ => false,
        }
    }
}

/// Where the program comes from, and how much is said about it.
#[derive(Args, Debug)]
pub struct ProgramArguments {
    /// The program; '-' reads standard input
    #[arg(required_unless_present = "text", conflicts_with = "text")]
    pub file: Option<PathBuf>,
    /// The program itself, in place of a file
    #[arg(short = 'e', value_name = "TEXT")]
    pub text: Option<String>,
    /// Print results and errors only
    #[arg(short, long)]
    pub quiet: bool,
}

/// Which sizes, results and arguments.
#[derive(Args, Debug)]
pub struct SelectionArguments {
    /// Fix a size; repeatable
    #[arg(long = "param", value_name = "NAME=SIZE", value_parser = parse_size)]
    pub params: Vec<(String, i64)>,
    /// Differentiate by these arguments only
    #[arg(long, value_name = "ARGUMENT,…", value_delimiter = ',')]
    pub wrt: Vec<String>,
    /// Differentiate these results only
    #[arg(long, value_name = "RESULT,…", value_delimiter = ',')]
    pub of: Vec<String>,
}

impl SelectionArguments {
    /// The arguments to derive by; `None` stands for all.
    pub fn wrt(&self) -> Option<Vec<String>> {
        (!self.wrt.is_empty()).then(|| self.wrt.clone())
    }

    /// The results to derive; `None` stands for all.
    pub fn of(&self) -> Option<Vec<String>> {
        (!self.of.is_empty()).then(|| self.of.clone())
    }

    /// The reverse-mode derivative that is chosen.
    pub fn options(&self) -> Options {
        Options { wrt: self.wrt(), of: self.of(), ..Options::default() }
    }
}

/// Arguments of `derive`.
#[derive(Args, Debug)]
pub struct DeriveArguments {
    /// The program.
    #[command(flatten)]
    pub program: ProgramArguments,
    /// Its parts.
    #[command(flatten)]
    pub selection: SelectionArguments,
    /// Which derivative
    #[arg(long, value_enum, default_value_t = Mode::Reverse)]
    pub mode: Mode,
    /// How it is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// One expression per derivative and no temporaries
    #[arg(long)]
    pub inline: bool,
    /// Hold every element to the function first, by enumeration at a few small sizes
    #[arg(long)]
    pub verify: bool,
}

/// Which derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// From the derivative df of each result f to the derivative dx of each argument x
    Reverse,
    /// From the tangent x_dot of each argument x to the tangent f_dot of each result f
    Forward,
    /// All derivatives of each result f by each argument x, as jac_f_x
    Jacobian,
    /// All second derivatives of a scalar result f, as hess_f_x_y
    Hessian,
}

/// How a program is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The language of the input
    Text,
    /// Formulas for a LaTeX document
    Latex,
    /// For other programs to read
    Json,
    /// The computation graph, the function blue and the derivative red, for Graphviz
    Dot,
    /// The same graph as a picture
    Svg,
}

/// Arguments of `eval`.
#[derive(Args, Debug)]
pub struct EvalArguments {
    /// The program.
    #[command(flatten)]
    pub program: ProgramArguments,
    /// Its parts.
    #[command(flatten)]
    pub selection: SelectionArguments,
    /// An argument from an .npy file, a scalar as a number, or those in an .npz file by their names; repeatable
    #[arg(long = "input", value_name = "NAME=FILE.npy|NAME=NUMBER|FILE.npz", value_parser = parse_input)]
    pub inputs: Vec<Input>,
    /// Fill the arguments not given with uniform random numbers from -1 to 1
    #[arg(long, value_name = "SEED")]
    pub random: Option<u64>,
    /// Evaluate the derivatives too
    #[arg(long)]
    pub grad: bool,
    /// Write every result to this .npz file, under its own name
    #[arg(short, long, value_name = "FILE.npz", value_parser = parse_output)]
    pub output: Option<PathBuf>,
    /// How it is computed.
    #[command(flatten)]
    pub execution: ExecutionArguments,
    /// Results or errors as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Tell how long each pass takes, on standard error
    #[arg(long)]
    pub timings: bool,
}

/// How things are computed.
#[derive(Args, Debug)]
pub struct ExecutionArguments {
    /// The type of numbers
    #[arg(long, value_enum, default_value_t = Precision::F64)]
    pub dtype: Precision,
    /// What computes
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    pub backend: Backend,
    /// How many threads compute [default: one per core]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// How much the steps of a recurrence may take, as in 500M or 4G: past that, segments are computed again [default: half
    /// of the memory]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub memory: Option<u64>,
}

impl ExecutionArguments {
    /// What the environment says, with what was given here.
    pub fn settings(&self) -> Settings {
        let settings = Settings::from_environment();
        Settings { memory: self.memory.or(settings.memory), ..settings }
    }
}

/// A number of bytes, with K, M, G or T for powers of 1024.
fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let power = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KIB" => 1,
        "M" | "MIB" => 2,
        "G" | "GIB" => 3,
        "T" | "TIB" => 4,
        _ => return Err("a number of bytes is expected, as in 500M or 4G".into()),
    };
    let number: u64 = digits.parse().map_err(|_| "a number of bytes is expected, as in 500M or 4G".to_string())?;
    number.checked_mul(1 << (10 * power)).ok_or_else(|| "that is more than there can be".to_string())
}

/// Arrays for a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// One argument from an `.npy` file.
    One(String, PathBuf),
    /// A scalar.
    Number(String, f64),
    /// The arguments that an `.npz` file holds.
    Many(PathBuf),
}

/// The type of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Precision {
    /// Double precision
    F64,
    /// Single precision
    F32,
}

impl Precision {
    /// The same as the library has it.
    pub fn dtype(self) -> gradix_run::Dtype {
        match self {
            Precision::F64 => gradix_run::Dtype::F64,
            Precision::F32 => gradix_run::Dtype::F32,
        }
    }
}

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// The fastest that there is
    Auto,
    /// Element by element, slow and obvious
    Interp,
    /// Bytecode, needs nothing
    Vm,
    /// Code from the machine's C compiler ($CC, or cc, gcc, clang)
    Native,
    /// A GPU: NVIDIA's driver, and its run-time compiler
    Cuda,
}

impl Backend {
    /// The same as the library has it.
    pub fn backend(self) -> gradix_run::Backend {
        match self {
            Backend::Auto => gradix_run::Backend::Auto,
            Backend::Interp => gradix_run::Backend::Interp,
            Backend::Vm => gradix_run::Backend::Vm,
            Backend::Native => gradix_run::Backend::Native,
            Backend::Cuda => gradix_run::Backend::Cuda,
        }
    }
}

/// Arguments of `check`.
#[derive(Args, Debug)]
pub struct CheckArguments {
    /// The program.
    #[command(flatten)]
    pub program: ProgramArguments,
    /// Its parts.
    #[command(flatten)]
    pub selection: SelectionArguments,
    /// Where the random numbers start
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// 2 checks the derivatives of the derivatives too
    #[arg(long, value_name = "1|2", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub order: u8,
    /// The largest error that passes, relative to the size of the derivative [default: what can be measured]
    #[arg(long, value_name = "ERROR", value_parser = parse_tolerance)]
    pub tol: Option<f64>,
    /// Fail if a derivative is 0 everywhere or has no numeric derivative, so that nothing was checked
    #[arg(long)]
    pub strict: bool,
    /// The report or errors as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `explain`.
#[derive(Args, Debug)]
pub struct ExplainArguments {
    /// The program.
    #[command(flatten)]
    pub program: ProgramArguments,
    /// Its parts.
    #[command(flatten)]
    pub selection: SelectionArguments,
    /// Draw the index sets of accesses with one, two or three indices into this file
    #[arg(long, value_name = "FILE.svg")]
    pub svg: Option<PathBuf>,
    /// The element to draw, such as 3 or 1,2 [default: the one that is read most often]
    #[arg(long, value_name = "INDEX,…", value_delimiter = ',', requires = "svg", allow_negative_numbers = true)]
    pub at: Vec<i64>,
    /// Only these accesses, by their numbers in the full list
    #[arg(long, value_name = "NUMBER,…", value_delimiter = ',')]
    pub access: Vec<NonZeroU64>,
    /// Show a value on the way from the program to its code instead
    #[arg(long, value_enum, conflicts_with_all = ["svg", "access"])]
    pub stage: Option<Stage>,
    /// Show that stage of the derivatives, not of the results
    #[arg(long, requires = "stage")]
    pub grad: bool,
    /// The processor that it is for: avx512, avx2, neon or portable [default: this machine's]
    #[arg(long, value_name = "NAME", value_parser = parse_cpu, requires = "stage")]
    pub cpu: Option<Target>,
    /// The type of numbers at that stage [default: f64]
    #[arg(long, value_enum, requires = "stage")]
    pub dtype: Option<Precision>,
    /// Tell how long each pass takes, on standard error
    #[arg(long)]
    pub timings: bool,
}

/// A value on the way from a program to its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stage {
    /// The program with recurrences in place of reductions over ranges that grow
    Scanned,
    /// The program with fewer operations
    Economised,
    /// The program that is scheduled: with copies, and without what is computed again at each use
    Arranged,
    /// What is computed together and where it is kept, with the reasons
    Schedule,
    /// The buffers and the loops
    Nest,
    /// Source code in C
    C,
}

/// Arguments of `emit`.
#[derive(Args, Debug)]
pub struct EmitArguments {
    /// The program.
    #[command(flatten)]
    pub program: ProgramArguments,
    /// Its parts.
    #[command(flatten)]
    pub selection: SelectionArguments,
    /// The language
    #[arg(long, value_enum, value_name = "LANGUAGE", default_value_t = Language::C)]
    pub target: Language,
    /// The machine that decisions suit: avx512, avx2, neon, portable or, a GPU, sm_90 [default: this one]
    #[arg(long, value_name = "NAME", value_parser = parse_cpu)]
    pub cpu: Option<Target>,
    /// The type of numbers
    #[arg(long, value_enum, default_value_t = Precision::F64)]
    pub dtype: Precision,
    /// The results only, without the derivatives
    #[arg(long)]
    pub values: bool,
    /// What functions and types begin with, as in NAME_run [default: the name of the program's file]
    #[arg(long)]
    pub name: Option<String>,
    /// The header, for C and C++, in place of the code
    #[arg(long)]
    pub header: bool,
    /// With --target cuda: a function in C++, too, that starts all kernels on a stream
    #[arg(long)]
    pub host: bool,
    /// Write the code, its header, a program that calls it and a CMakeLists.txt to this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["header", "output"])]
    pub project: Option<PathBuf>,
    /// Write to this file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// A language of source code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// C99 with the vector types of GCC and Clang
    C,
    /// CUDA C++: a kernel for each step
    Cuda,
}

/// Arguments of `bench`.
#[derive(Args, Debug)]
pub struct BenchArguments {
    /// The program.
    #[command(flatten)]
    pub program: ProgramArguments,
    /// Its parts.
    #[command(flatten)]
    pub selection: SelectionArguments,
    /// What is timed; with the backend 'auto', all of them are.
    #[command(flatten)]
    pub execution: ExecutionArguments,
    /// How long each is repeated
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = parse_seconds)]
    pub seconds: f64,
    /// One JSON object per line
    #[arg(long)]
    pub json: bool,
    /// Tell how long each pass takes, on standard error
    #[arg(long)]
    pub timings: bool,
}

/// Arguments of `fmt`.
#[derive(Args, Debug)]
pub struct FmtArguments {
    /// The program.
    #[command(flatten)]
    pub program: ProgramArguments,
}

fn parse_size(text: &str) -> Result<(String, i64), String> {
    let (name, size) = text.split_once('=').filter(|(name, _)| is_name(name)).ok_or("expected NAME=SIZE")?;
    let is_whole = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let size = size.parse().map_err(|_| match is_whole(size.trim_start_matches(['-', '+'])) {
        true => format!("'{size}' is past all sizes"),
        false => format!("'{size}' is not an integer"),
    })?;
    Ok((name.into(), size))
}

fn parse_cpu(text: &str) -> Result<Target, String> {
    let known = Target::PRESETS.map(|target| target.name).join(", ");
    Target::named(text).ok_or_else(|| format!("there is no machine of that name; known are {known}"))
}

fn parse_input(text: &str) -> Result<Input, String> {
    match text.split_once('=').filter(|(name, _)| is_name(name)) {
        Some((name, path)) if path.ends_with(".npz") => {
            Err(format!("{name}=… takes an .npy file; an .npz file has names of its own"))
        }
        Some((name, value)) => Ok(match value.parse() {
            Ok(number) => Input::Number(name.into(), number),
            Err(_) => Input::One(name.into(), value.into()),
        }),
        None if text.ends_with(".npz") => Ok(Input::Many(text.into())),
        None => Err("expected NAME=FILE.npy, NAME=NUMBER or FILE.npz".into()),
    }
}

fn parse_output(text: &str) -> Result<PathBuf, String> {
    if text.ends_with(".npz") { Ok(text.into()) } else { Err("expected the name of an .npz file".into()) }
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.parse().ok();
    seconds.filter(|value| (0.0..=3600.0).contains(value)).ok_or_else(|| "expected a number from 0 to 3600".into())
}

fn parse_tolerance(text: &str) -> Result<f64, String> {
    let tolerance: Option<f64> = text.parse().ok();
    tolerance.filter(|value| *value > 0.0).ok_or_else(|| "expected a positive number".into())
}

/// Whether a program could use this as a name, as far as can be said without one.
fn is_name(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !text.starts_with(|c: char| c.is_numeric())
        && !text.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn inputs_name_one_array_or_many() {
        assert_eq!(parse_input("σ=a=b.npy"), Ok(Input::One("σ".into(), "a=b.npy".into())));
        assert_eq!(parse_input("t=-5e-1"), Ok(Input::Number("t".into(), -0.5)));
        assert_eq!(parse_input("./n=1/data.npz"), Ok(Input::Many("./n=1/data.npz".into())));
        assert!(
            parse_input("x=data.npz").is_err() && parse_input("data.npy").is_err() && parse_input("=a.npy").is_err()
        );
    }

    #[test]
    fn sizes_are_integers() {
        assert_eq!(parse_size("N=3"), Ok(("N".into(), 3)));
        assert_eq!(parse_size("K_1=-2"), Ok(("K_1".into(), -2)));
        for wrong in ["N", "N=", "N=x", "=3", "N=1.5", "2=2", "N=99999999999999999999"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tolerances_are_positive() {
        assert_eq!(parse_tolerance("1e-3"), Ok(1e-3));
        assert!(["0", "-1", "NaN", "x"].iter().all(|text| parse_tolerance(text).is_err()));
    }
}
