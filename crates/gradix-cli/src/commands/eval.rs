//! `gradix eval`: the values of the results, and of the derivatives.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use gradix::derive::{Derived, Options, derive};
use gradix::diagnostic::Diagnostic;
use gradix::domain::sizes::{self, Known};
use gradix::program::print::affine;
use gradix::program::{ParamKind, Tensor, TensorId};
use gradix::{Int, Program, Resolved};
use gradix_run::gradient::{carried, shape};
use gradix_run::{Array, Backend, Executable, Note, files, random};
use gradix_view::Source;
use serde_json::{Map, Value, json};

use super::bench::{INTERP_SECONDS, operations};
use super::{note, print};
use crate::arguments::{EvalArguments, ExecutionArguments, Input};
use crate::failure::Failure;
use crate::json::{integer, real};
use crate::progress::timed;
use crate::show::show;
use crate::source::{refuse, resolve};

/// Evaluates the results, and with `--grad` the derivatives too.
pub fn run(arguments: &EvalArguments, source: &Source) -> Result<(), Failure> {
    let Resolved { program, places } = resolve(source, &arguments.selection, arguments.program.quiet)?;
    let gradient = match arguments.grad {
        true => Some(derive(&program, &Options { with_results: true, ..arguments.selection.options() })),
        false => None,
    };
    let gradient = gradient.transpose().map_err(|errors| refuse(source, places.mark(errors)))?;
    let left_out = left_out(&program, arguments, source)?;
    let slots = slots(&program, gradient.as_ref());
    let mut arrays = read(arguments, &slots)?;

    let known = Known { given: Vec::new(), shapes: shapes(&slots, &arrays) };
    let sizes = match sizes::bind(&program, &known, &places) {
        Err(_) if arguments.random.is_some() => {
            let sizes = sizes::choose(&program, &known, &places).map_err(|errors| refuse(source, errors))?;
            tell_sizes(&program, &sizes, arguments.program.quiet);
            sizes
        }
        bound => bound.map_err(|errors| refuse(source, errors))?,
    };
    tell_empty(&program, &sizes, arguments.program.quiet);
    fill(&program, &sizes, &slots, arguments, &mut arrays)?;
    let values = evaluate(&program, &sizes, gradient.as_ref(), &arrays, arguments, source)?;
    let wanted = values.into_iter().filter(|(name, _)| !left_out.contains(name)).collect();
    deliver(wanted, json_sizes(&program, &sizes), arguments)
}

/// Tells the sizes that were chosen.
pub fn tell_sizes(program: &Program, sizes: &[Int], quiet: bool) {
    let free = program.params.iter().zip(sizes).filter(|(param, _)| param.kind == ParamKind::Free);
    let sizes: Vec<String> = free.map(|(param, size)| format!("{} = {size}", param.name)).collect();
    if !sizes.is_empty() {
        note(quiet, &format!("sizes: {}", sizes.join(", ")));
    }
}

/// The same as JSON.
pub fn json_sizes(program: &Program, sizes: &[Int]) -> Value {
    let free = program.params.iter().zip(sizes).filter(|(param, _)| param.kind == ParamKind::Free);
    free.map(|(param, size)| (param.name.clone(), integer(size))).collect::<Map<_, _>>().into()
}

/// Tells of results that are empty though no argument is, as of a kernel that is longer than its signal.
fn tell_empty(program: &Program, sizes: &[Int], quiet: bool) {
    let is_empty = |id: &TensorId| shape(program, sizes, *id).is_some_and(|shape| shape.contains(&0));
    if program.inputs().any(|id| is_empty(&id)) {
        return;
    }
    for &id in program.outputs.iter().filter(|id| is_empty(id)) {
        let extents: Vec<String> =
            program[id].extents.iter().map(|extent| affine(&program.params, &[], extent)).collect();
        let Tensor { name, .. } = &program[id];
        note(quiet, &format!("note: the result '{name}' is empty: it has the extents [{}]", extents.join(", ")));
    }
}

/// The results that `--of` leaves out.
fn left_out(program: &Program, arguments: &EvalArguments, source: &Source) -> Result<Vec<String>, Failure> {
    if !arguments.grad && !arguments.selection.wrt.is_empty() {
        return Err(Failure::Usage("'--wrt' restricts derivatives; add '--grad'".into()));
    }
    let Some(of) = arguments.selection.of() else { return Ok(Vec::new()) };
    let all: Vec<String> = program.outputs.iter().map(|&id| program[id].name.clone()).collect();
    if let Some(name) = of.iter().find(|name| !all.contains(name)) {
        let error = Diagnostic::error("unknown-name", format!("the program has no result '{name}'"));
        return Err(refuse(source, vec![error.hint(format!("there is {}", all.join(", ")))]));
    }
    Ok(all.into_iter().filter(|name| !of.contains(name)).collect())
}

/// Something that takes an array: an argument, or the upstream derivative of a result, which has the result's shape.
struct Slot {
    name: String,
    tensor: TensorId,
    upstream: bool,
}

fn slots(program: &Program, gradient: Option<&Derived>) -> Vec<Slot> {
    let arguments = program.inputs().map(|tensor| Slot { name: program[tensor].name.clone(), tensor, upstream: false });
    let upstream = gradient.iter().flat_map(|gradient| &gradient.seeds);
    let upstream = upstream.map(|seed| Slot { name: seed.name.clone(), tensor: seed.of, upstream: true });
    arguments.chain(upstream).collect()
}

/// The arrays of the command line; a later one replaces an earlier one of the same name.
fn read(arguments: &EvalArguments, slots: &[Slot]) -> Result<HashMap<String, Array>, Failure> {
    let known = |name: &str| slots.iter().any(|slot| slot.name == name);
    let unreadable = |error: files::FileError| Failure::Message(error.to_string());
    let mut arrays = HashMap::new();
    for input in &arguments.inputs {
        match input {
            Input::One(name, _) | Input::Number(name, _) if !known(name) => return Err(unknown(name, slots)),
            Input::One(name, path) => {
                arrays.insert(name.clone(), files::read_npy(path).map_err(unreadable)?);
            }
            Input::Number(name, value) => {
                arrays.insert(name.clone(), Array::scalar(*value));
            }
            Input::Many(path) => arrays.extend(files::read_npz(path, known).map_err(unreadable)?),
        }
    }
    Ok(arrays)
}

fn unknown(name: &str, slots: &[Slot]) -> Failure {
    let names: Vec<&str> = slots.iter().map(|slot| &*slot.name).collect();
    let known = if names.is_empty() { "it has none".into() } else { format!("there is {}", names.join(", ")) };
    Failure::Message(format!("the program has no input '{name}'\nhelp: {known}"))
}

fn shapes(slots: &[Slot], arrays: &HashMap<String, Array>) -> Vec<(TensorId, Vec<usize>)> {
    slots.iter().filter_map(|slot| Some((slot.tensor, arrays.get(&slot.name)?.shape.clone()))).collect()
}

/// Adds what was not given: random numbers if asked for, and 1 for the upstream derivative of a scalar.
fn fill(
    program: &Program,
    sizes: &[Int],
    slots: &[Slot],
    arguments: &EvalArguments,
    arrays: &mut HashMap<String, Array>,
) -> Result<(), Failure> {
    let mut missing = Vec::new();
    for slot in slots {
        if arrays.contains_key(&slot.name) {
            continue;
        }
        let array = match arguments.random {
            _ if slot.upstream && program[slot.tensor].rank == 0 => Array::scalar(1.0),
            Some(seed) => shape(program, sizes, slot.tensor)
                .and_then(|shape| random::array(seed, &slot.name, shape))
                .ok_or_else(|| Failure::Message(format!("'{}' does not fit into memory", slot.name)))?,
            None => {
                missing.push(slot);
                continue;
            }
        };
        arrays.insert(slot.name.clone(), array);
    }
    let Some(first) = missing.first() else { return Ok(()) };
    let names: Vec<String> = missing.iter().map(|slot| format!("'{}'", slot.name)).collect();
    let what = if missing.len() == 1 { "is" } else { "are" };
    let role = match first.upstream {
        true => format!(" (the upstream derivative of '{}')", program[first.tensor].name),
        false => String::new(),
    };
    let value = if program[first.tensor].rank == 0 { "NUMBER" } else { "FILE.npy" };
    let help = format!("give it with --input {}={value}, or fill what is not given with --random SEED", first.name);
    Err(Failure::Message(format!("{} {what} not given{role}\nhelp: {help}", names.join(", "))))
}

fn evaluate(
    program: &Program,
    sizes: &[Int],
    gradient: Option<&Derived>,
    arrays: &HashMap<String, Array>,
    arguments: &EvalArguments,
    source: &Source,
) -> Result<Vec<(String, Array)>, Failure> {
    let mut notes = Vec::new();
    let mut run = |program: &Program, sizes: &[Int]| {
        let mut executable = executable(program, sizes, &arguments.execution);
        let is_slow = executable.backend() == Backend::Interp;
        let seconds = is_slow.then(|| operations(program, sizes) * INTERP_SECONDS);
        let expected = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let results = timed(arguments.program.quiet, expected, || {
            gradix::timings::timed("run", || executable.evaluate(sizes, arrays))
        });
        notes.extend(executable.take_notes());
        results.map_err(|error| refuse(source, vec![error]))
    };
    let values = match gradient {
        None => run(program, sizes)?,
        Some(gradient) => {
            let sizes = carried(program, sizes, &gradient.program).map_err(|errors| refuse(source, errors))?;
            run(&gradient.program, &sizes)?
        }
    };
    tell_notes(&notes, arguments.program.quiet);
    Ok(values)
}

/// The program on the backend that was asked for, or the next best.
pub fn executable(program: &Program, sizes: &[Int], execution: &ExecutionArguments) -> Executable {
    let threads = execution.threads.map(NonZeroUsize::get);
    Executable::new(program, sizes, execution.dtype.dtype(), execution.backend.backend(), threads)
}

/// Tells every note once.
pub fn tell_notes(notes: &[Note], quiet: bool) {
    for (position, told) in notes.iter().enumerate() {
        if !notes[..position].contains(told) {
            note(quiet, &format!("note: {told}"));
        }
    }
}

fn deliver(values: Vec<(String, Array)>, sizes: Value, arguments: &EvalArguments) -> Result<(), Failure> {
    if let Some(path) = &arguments.output {
        write(path, &values, arguments)?;
    }
    if arguments.json {
        let results: Map<String, Value> =
            values.iter().map(|(name, array)| (name.clone(), result(array, arguments.output.is_none()))).collect();
        let object = json!({ "sizes": sizes, "results": results, "errors": [] });
        return print(format!("{object}\n").as_bytes());
    }
    match arguments.output {
        Some(_) => Ok(()),
        None => print(values.iter().map(|(name, array)| show(name, array)).collect::<String>().as_bytes()),
    }
}

/// A result: its shape, and unless they are written elsewhere its elements in C order.
fn result(array: &Array, with_values: bool) -> Value {
    match with_values {
        true => json!({ "shape": array.shape, "values": array.data.iter().map(|x| real(*x)).collect::<Vec<_>>() }),
        false => json!({ "shape": array.shape }),
    }
}

fn write(path: &Path, values: &[(String, Array)], arguments: &EvalArguments) -> Result<(), Failure> {
    let named: Vec<(&str, &Array)> = values.iter().map(|(name, array)| (&**name, array)).collect();
    files::write_npz(path, &named, arguments.execution.dtype.dtype())
        .map_err(|error| Failure::Message(format!("can't write {error}")))?;
    let names: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
    note(arguments.program.quiet, &format!("wrote {} to {}", names.join(", "), path.display()));
    Ok(())
}
