//! How much memory a gradient takes besides its arguments and results: no more than its results, twice its arguments and
//! the definitions that the user named take together, and a few MiB.
//!
//! Nothing is run: the memory is that of the buffers of the nest, placed as a run places them. What the virtual machine
//! needs for the block of points at hand is not counted.

#[path = "support/programs.rs"]
mod programs;

use gradix::derive::Options;
use gradix::domain::sizes::{Known, bind};
use gradix::nest::{Nest, Real, Scope};
use gradix::program::Places;
use gradix::program::{ParamKind, Program, TensorId, TensorKind, circles};
use gradix::{Int, Resolved};
use gradix_run::buffers::padded;
use gradix_run::gradient::shape;
use gradix_run::layout;
use std::collections::BTreeMap;
use std::path::Path;

/// What may be stored however small the program is: 524 288 numbers, and the ends of cache lines.
const FREE: usize = 4 << 20;
/// What each thread may have: packed operands for a contraction, of at most six kinds of 384 terms for 256 lanes
/// (4.1 MiB for five by lane and one by row), and slabs of which 229 376 numbers (1.8 MiB) are alive at a time.
const LOCAL: usize = 6 << 20;

/// What takes more: maxima keep a mark for each of their terms; what runs along diagonals is stored along them, with as much again
/// for the corners.
const KNOWN: [(&str, &str); 2] = [("soft_dtw", "dr_wave"), ("viterbi", "v_max_hits")];

type Sizes = Vec<(String, i64)>;

#[test]
fn gradients_take_no_more_memory_than_their_arguments_and_results() {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for (name, text, sizes) in workloads().into_iter().chain(examples()) {
        let needed = needed(&text, &sizes);
        if needed.temporary > needed.allowed + FREE || needed.local > LOCAL {
            found.entry(name).or_insert(needed.largest);
        }
    }
    let known = KNOWN.map(|(name, largest)| (name.to_string(), largest.to_string()));
    assert_eq!(found, BTreeMap::from(known), "(program, its largest temporary)");
}

/// Bytes in double precision.
#[derive(Debug)]
struct Needed {
    /// Results, twice the arguments, and what the user named.
    allowed: usize,
    /// The block of temporaries.
    temporary: usize,
    /// The local buffers of a thread.
    local: usize,
    /// The name of the largest temporary.
    largest: String,
}

fn needed(text: &str, given: &[(String, i64)]) -> Needed {
    let Resolved { program, .. } = gradix::resolve(&gradix::syntax::parse(text).unwrap(), &[]).unwrap();
    let derivative = gradix::derive(&program, &Options { with_results: true, ..Options::default() }).unwrap().program;
    let sizes = bound(&derivative, given);
    let nest = gradix::compile(&derivative, &sizes, Real::F64, &gradix::target::AVX512).unwrap().nest;
    let nest_sizes = nest.sizes(&given.iter().map(|(_, size)| Int::from(*size)).collect::<Vec<_>>());
    let bytes = |buffer: TensorId| padded(nest.elements(buffer, &nest_sizes).unwrap() * size_of::<f64>()).unwrap();
    let lifetimes = nest.lifetimes();
    let alive = |buffer: &TensorId| lifetimes[*buffer].is_some();
    let temporaries: Vec<TensorId> = nest.buffer_ids().filter(|t| nest[*t].scope == Scope::Run).filter(alive).collect();
    let requests: Vec<_> = temporaries.iter().filter_map(|&t| Some((bytes(t), lifetimes[t]?))).collect();
    let largest = temporaries.iter().max_by_key(|buffer| bytes(**buffer));
    let local = |kernel: usize| nest.locals(kernel).map(bytes).sum::<usize>();
    Needed {
        allowed: allowed(&program, given) + results(&derivative, &sizes),
        temporary: layout::place(&requests).unwrap().1,
        local: (0..nest.kernels.len()).map(local).max().unwrap_or(0),
        largest: largest.map_or(String::new(), |&buffer| name(&nest, buffer)),
    }
}

fn name(nest: &Nest, buffer: TensorId) -> String {
    nest[buffer].name.clone()
}

/// Twice the arguments of the gradient (those of the program, and the derivatives of its results) and what is named.
fn allowed(program: &Program, given: &[(String, i64)]) -> usize {
    let (sizes, recurrent) = (bound(program, given), circles::recurrent(program));
    let factor = |tensor: TensorId| match program[tensor].kind {
        TensorKind::Input => 2,
        TensorKind::Defined if program.outputs.contains(&tensor) => 2,
        // The adjoint of a recurrence has to be stored as the recurrence has.
        TensorKind::Defined if recurrent.contains_key(&tensor) => 3,
        TensorKind::Defined => 1,
        TensorKind::Nested => 0,
    };
    let tensors = (0..program.tensors.len() as u32).map(TensorId).filter(|tensor| factor(*tensor) > 0);
    tensors.map(|tensor| factor(tensor) * array_bytes(program, &sizes, tensor)).sum()
}

fn results(program: &Program, sizes: &[Int]) -> usize {
    program.outputs.iter().map(|&tensor| array_bytes(program, sizes, tensor)).sum()
}

fn array_bytes(program: &Program, sizes: &[Int], tensor: TensorId) -> usize {
    shape(program, sizes, tensor).unwrap().iter().product::<usize>() * size_of::<f64>()
}

/// The sizes of a program, of which some may not be mentioned any more.
fn bound(program: &Program, given: &[(String, i64)]) -> Vec<Int> {
    let given = given.iter().map(|(name, size)| (name.clone(), Int::from(*size))).collect();
    bind(program, &Known { given, shapes: Vec::new() }, &Places::default()).unwrap()
}

/// The programs of the benchmark, at a quarter of the sizes that are timed, at these, and at four times as much.
fn workloads() -> Vec<(String, String, Sizes)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
    let list = std::fs::read_to_string(folder.join("workloads.json")).unwrap();
    let between = |text: &str, start: &str, end: &str| {
        let (_, rest) = text.split_once(start).unwrap();
        rest.split_once(end).unwrap().0.to_string()
    };
    let mut found = Vec::new();
    for entry in list.split("{\"id\"").skip(1) {
        let path = folder.join("workloads").join(between(entry, "\"file\": \"", "\""));
        let sizes = between(entry, "\"sizes\": {", "}");
        let sizes = sizes.split(',').map(|size| size.split_once(':').unwrap());
        let sizes: Sizes =
            sizes.map(|(name, size)| (name.trim().trim_matches('"').into(), size.trim().parse().unwrap())).collect();
        for (times, over) in [(1, 4), (1, 1), (4, 1)] {
            let sizes = sizes.iter().map(|(name, size)| (name.clone(), size * times / over)).collect();
            found.push((stem(&path), std::fs::read_to_string(&path).unwrap(), sizes));
        }
    }
    assert_eq!(found.len(), 30);
    found
}

/// The examples, with all sizes the same.
fn examples() -> Vec<(String, String, Sizes)> {
    let mut found = Vec::new();
    for (example, text) in programs::examples() {
        let program = gradix::resolve(&gradix::syntax::parse(&text).unwrap(), &[]).unwrap().program;
        let free = program.params.iter().filter(|param| param.kind == ParamKind::Free);
        let names: Vec<String> = free.map(|param| param.name.clone()).collect();
        let size = |name: &String| match (names.len(), example.as_str(), name.as_str()) {
            (_, "conv1d", "K") => 5,
            (0 | 1, ..) => 4000,
            (2, ..) => 2000,
            (3, ..) => 400,
            (4, ..) => 100,
            _ => 48,
        };
        let sizes = names.iter().map(|name| (name.clone(), size(name))).collect();
        found.push((example, text, sizes));
    }
    found
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}
