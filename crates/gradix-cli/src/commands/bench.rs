//! `gradix bench`: how long results and derivatives take on each backend.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use gradix::domain::estimate::estimate;
use gradix::domain::sizes::{self, Known};
use gradix::economise::work;
use gradix::program::TensorId;
use gradix::{Int, Program, Resolved};
use gradix_run::cuda::Arrays;
use gradix_run::gradient::{carried, shape};
use gradix_run::native::{Settings, peak};
use gradix_run::{Backend, Dtype, Element, Executable, random, threads};
use gradix_view::Source;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Map, Value, json};

use super::eval::{tell_notes, tell_sizes};
use super::{note, print};
use crate::arguments::BenchArguments;
use crate::failure::Failure;
use crate::source::{refuse, resolve};

/// Times results and derivatives.
pub fn run(arguments: &BenchArguments, source: &Source) -> Result<(), Failure> {
    let quiet = arguments.program.quiet;
    let Resolved { program, places } = resolve(source, &arguments.selection, arguments.program.quiet)?;
    let sizes = match sizes::bind(&program, &Known::default(), &places) {
        Ok(sizes) => sizes,
        Err(_) => {
            let sizes = sizes::choose(&program, &Known::default(), &places);
            let sizes = sizes.map_err(|errors| refuse(source, errors))?;
            tell_sizes(&program, &sizes, quiet);
            sizes
        }
    };
    let gradient = program.has_inputs().then(|| gradix::derive(&program, &arguments.selection.options()));
    let gradient = gradient.transpose().map_err(|errors| refuse(source, places.mark(errors)))?;
    let gradient_sizes = gradient.as_ref().map(|gradient| carried(&program, &sizes, &gradient.program));
    let gradient_sizes = gradient_sizes.transpose().map_err(|errors| refuse(source, errors))?;
    let mut tasks = vec![Task::new("value", &program, &sizes, arguments.json)];
    let gradient = gradient.iter().zip(&gradient_sizes);
    tasks.extend(gradient.map(|(gradient, sizes)| Task::new("gradient", &gradient.program, sizes, arguments.json)));
    let backends = match arguments.execution.backend.backend() {
        Backend::Auto => vec![Backend::Interp, Backend::Vm, Backend::Native],
        one => vec![one],
    };

    let progress = progress(quiet, tasks.len() * backends.len());
    let mut rows = Vec::new();
    for task in &tasks {
        for &backend in &backends {
            progress.set_message(format!("{} on {}", task.what, name(backend)));
            let row = match arguments.execution.dtype.dtype() {
                Dtype::F64 => measure::<f64>(task, backend, arguments, source),
                Dtype::F32 => measure::<f32>(task, backend, arguments, source),
            };
            rows.extend(row?);
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    if arguments.json {
        return print(rows.iter().map(|row| row.json(arguments) + "\n").collect::<String>().as_bytes());
    }
    let dtype = arguments.execution.dtype.dtype();
    let peak = match backends[..] {
        [Backend::Cuda] => gradix_run::cuda::peak::measure(dtype),
        _ => peak::measure(dtype, thread_count(arguments), &Settings::from_environment()),
    };
    print(table(&rows, peak.ok()).as_bytes())
}

/// A program to time.
struct Task<'a> {
    what: &'static str,
    program: &'a Program,
    sizes: &'a [Int],
    /// Operations on values, as the oracle counts them.
    operations: f64,
    /// Those that run, by kind, if that is asked for.
    kinds: BTreeMap<&'static str, f64>,
    /// The elements of arguments and results.
    elements: f64,
    /// The shapes of the arguments, and of the results, by name.
    shapes: [Value; 2],
}

impl<'a> Task<'a> {
    fn new(what: &'static str, program: &'a Program, sizes: &'a [Int], json: bool) -> Self {
        let operations = operations(program, sizes);
        let kinds = if json { kinds(program, sizes) } else { BTreeMap::new() };
        let arrays: Vec<TensorId> = program.inputs().chain(program.outputs.iter().copied()).collect();
        let count =
            |tensor| shape(program, sizes, tensor).map_or(0.0, |shape| shape.iter().map(|&n| n as f64).product());
        let elements = arrays.iter().copied().map(count).sum();
        let named = |tensor: TensorId| (program[tensor].name.clone(), json!(shape(program, sizes, tensor)));
        let inputs: Map<_, _> = program.inputs().map(named).collect();
        let results: Map<_, _> = program.outputs.iter().copied().map(named).collect();
        Task { what, program, sizes, operations, kinds, elements, shapes: [inputs.into(), results.into()] }
    }
}

/// How many operations on values a program takes, as the oracle counts them.
pub fn operations(program: &Program, sizes: &[Int]) -> f64 {
    let numbers: Vec<f64> = sizes.iter().map(|size| size.to_f64().value()).collect();
    program.definitions.iter().map(|d| work::work(&program.exprs, d, &numbers).operations).sum()
}

/// The operations on values that are left after rewriting, by kind: of a program with recurrences, all that it has.
fn kinds(program: &Program, sizes: &[Int]) -> BTreeMap<&'static str, f64> {
    let sizes = estimate(program, sizes);
    let scanned = gradix::scan(program, &sizes).unwrap_or_else(|_| program.clone());
    let economised = gradix::economise(&scanned, &sizes).unwrap_or(scanned);
    let named = program.params.iter().map(|param| param.name.clone());
    let assumed: HashMap<String, f64> = named.zip(sizes).collect();
    work::kinds(&economised, &work::sizes(&economised, &assumed))
}

/// One measurement.
struct Row {
    what: &'static str,
    backend: Backend,
    /// From the program to the first results.
    first: Duration,
    /// All later runs, the shortest first.
    runs: Vec<Duration>,
    peak_bytes: Option<usize>,
    operations: f64,
    kinds: BTreeMap<&'static str, f64>,
    bytes: f64,
    shapes: [Value; 2],
}

/// What the oracle takes for an operation, roughly, and the longest that it is waited for.
pub const INTERP_SECONDS: f64 = 1e-7;
const PATIENCE: f64 = 10.0;

/// Runs a program again and again; nothing if it can't be done on this backend in reasonable time.
fn measure<T: Element>(
    task: &Task,
    backend: Backend,
    arguments: &BenchArguments,
    source: &Source,
) -> Result<Option<Row>, Failure> {
    let quiet = arguments.program.quiet;
    let skip = |why: &str| {
        note(quiet, &format!("note: {} on {} is left out: {why}", task.what, name(backend)));
        Ok(None)
    };
    if backend == Backend::Interp && task.operations * INTERP_SECONDS > PATIENCE {
        return skip("it would take too long");
    }
    let (inputs, mut outputs) = arrays::<T>(task)?;
    let inputs: Vec<&[T]> = inputs.iter().map(Vec::as_slice).collect();
    let mut places: Vec<&mut [T]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    let start = Instant::now();
    let (threads, settings) = (Some(thread_count(arguments)), arguments.execution.settings());
    let mut executable = Executable::with_settings(task.program, task.sizes, T::DTYPE, backend, threads, &settings);
    if executable.backend() != backend {
        let why: Vec<String> = executable.take_notes().iter().map(|note| note.message.clone()).collect();
        return skip(&why.join("; "));
    }
    // A GPU is timed by its own clock, with arrays that stay there.
    let device = (backend == Backend::Cuda)
        .then(|| Arrays::new(&inputs, &places.iter().map(|place| place.len()).collect::<Vec<_>>()));
    let device = device.transpose().map_err(|note| Failure::Message(note.to_string()))?;
    let mut once = || {
        let start = Instant::now();
        let done = match &device {
            Some(arrays) => executable.seconds_on_device(task.sizes, arrays).map(Duration::from_secs_f64),
            None => executable.run(task.sizes, &inputs, &mut places).map(|()| start.elapsed()),
        };
        done.map_err(|error| refuse(source, vec![error]))
    };
    once()?;
    let first = start.elapsed();
    // Pages are touched, threads and clocks wake up; the oracle has nothing to warm up.
    let start = Instant::now();
    while backend != Backend::Interp && start.elapsed() < WARM_UP {
        once()?;
    }
    let start = Instant::now();
    let slow = backend == Backend::Interp && first.as_secs_f64() > arguments.seconds;
    let mut runs = vec![if slow { first } else { once()? }];
    while !slow && start.elapsed().as_secs_f64() < arguments.seconds && runs.len() < MAX_RUNS {
        runs.push(once()?);
    }
    runs.sort();
    tell_notes(&executable.take_notes(), quiet);
    let (operations, bytes) = (task.operations, task.elements * size_of::<T>() as f64);
    let (peak_bytes, kinds, shapes) = (executable.peak_bytes(), task.kinds.clone(), task.shapes.clone());
    Ok(Some(Row { what: task.what, backend, first, runs, peak_bytes, operations, kinds, bytes, shapes }))
}

/// How long a program runs before it is timed.
const WARM_UP: Duration = Duration::from_millis(100);
/// More runs say nothing new.
const MAX_RUNS: usize = 100_000;

type Values<T> = Vec<Vec<T>>;

/// Random arguments, and places for the results.
fn arrays<T: Element>(task: &Task) -> Result<(Values<T>, Values<T>), Failure> {
    let program = task.program;
    let too_large = |tensor: TensorId| Failure::Message(format!("'{}' does not fit into memory", program[tensor].name));
    let input = |tensor: TensorId| {
        let shape = shape(program, task.sizes, tensor);
        let array = shape.and_then(|shape| random::array(1, &program[tensor].name, shape));
        array.map(|array| array.data.into_iter().map(T::from_f64).collect()).ok_or_else(|| too_large(tensor))
    };
    let output = |&tensor: &TensorId| {
        let count = shape(program, task.sizes, tensor)
            .and_then(|shape| shape.into_iter().try_fold(1usize, usize::checked_mul))
            .ok_or_else(|| too_large(tensor))?;
        let mut values = Vec::new();
        values.try_reserve_exact(count).map_err(|_| too_large(tensor))?;
        values.resize(count, T::from_f64(0.0));
        Ok(values)
    };
    let inputs = program.inputs().map(input).collect::<Result<_, _>>()?;
    Ok((inputs, program.outputs.iter().map(output).collect::<Result<_, Failure>>()?))
}

impl Row {
    fn median(&self) -> f64 {
        self.runs[self.runs.len() / 2].as_secs_f64()
    }

    fn json(&self, arguments: &BenchArguments) -> String {
        let dtype = match arguments.execution.dtype.dtype() {
            Dtype::F64 => "f64",
            Dtype::F32 => "f32",
        };
        json!({
            "backend": name(self.backend),
            "dtype": dtype,
            "what": self.what,
            "median_s": self.median(),
            "min_s": self.runs[0].as_secs_f64(),
            "peak_bytes": self.peak_bytes,
            "first_s": self.first.as_secs_f64(),
            "runs": self.runs.len(),
            "threads": thread_count(arguments),
            "operations": self.operations,
            "kinds": self.kinds,
            "bytes": self.bytes,
            "inputs": self.shapes[0],
            "results": self.shapes[1],
        })
        .to_string()
    }
}

/// One aligned line for each measurement, below a line of headings.
fn table(rows: &[Row], peak: Option<peak::Peak>) -> String {
    let headings = ["", "backend", "median", "shortest", "first", "GFLOP/s", "GB/s", "of peak", "memory"];
    let mut lines = vec![headings.map(String::from)];
    lines.extend(rows.iter().map(|row| {
        let (operations, bytes) = (row.operations / row.median(), row.bytes / row.median());
        // What comes nearer to its limit is what limits.
        let share = peak.map(|peak| (operations / peak.operations).max(bytes / peak.bytes));
        [
            row.what.to_string(),
            name(row.backend).to_string(),
            time(row.median()),
            time(row.runs[0].as_secs_f64()),
            time(row.first.as_secs_f64()),
            format!("{:.3}", operations / 1e9),
            format!("{:.3}", bytes / 1e9),
            share.map_or("-".into(), |share| format!("{:.1} %", 100.0 * share)),
            row.peak_bytes.map_or("-".into(), |bytes| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))),
        ]
    }));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let padded = |line: &[String; 9]| {
        let left = line[..2].iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        let right = line[2..].iter().zip(&widths[2..]).map(|(cell, &width)| format!("{cell:>width$}"));
        left.chain(right).collect::<Vec<_>>().join("  ").trim_end().to_string() + "\n"
    };
    lines.iter().map(padded).collect()
}

/// Seconds in the unit that suits them.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.2} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

fn name(backend: Backend) -> &'static str {
    match backend {
        Backend::Auto => "auto",
        Backend::Interp => "interp",
        Backend::Vm => "vm",
        Backend::Native => "native",
        Backend::Cuda => "cuda",
    }
}

fn thread_count(arguments: &BenchArguments) -> usize {
    arguments.execution.threads.map_or_else(threads::default_threads, NonZeroUsize::get)
}

/// A bar on a terminal.
fn progress(quiet: bool, length: usize) -> ProgressBar {
    // Indicatif draws nothing when standard error is not a terminal.
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}").expect("a valid template");
    ProgressBar::with_draw_target(Some(length as u64), target).with_style(style)
}
