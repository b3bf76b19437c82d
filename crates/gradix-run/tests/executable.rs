//! Programs made ready to run: every backend against the oracle, threads, sizes, memory, and what is told.

#[path = "support/programs.rs"]
mod programs;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Barrier;

use gradix::domain::sizes::{Known, bind, choose};
use gradix::program::Places;
use gradix::program::{ParamKind, Program};
use gradix::{Int, Resolved};
use gradix_run::native::{Cache, Settings};
use gradix_run::{Array, Backend, Dtype, Executable, gradient, interp, random};

/// A cache that only the tests use, and that is there for the next time.
fn settings() -> Settings {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("kernels");
    Settings { cache: Some(Cache { folder, limit: 256 << 20 }), ..Settings::from_environment() }
}

fn resolve(text: &str) -> Resolved {
    gradix::syntax::parse(text).and_then(|ast| gradix::resolve(&ast, &[])).unwrap()
}

fn program(text: &str) -> Program {
    resolve(text).program
}

fn executable(program: &Program, sizes: &[Int], dtype: Dtype, backend: Backend, threads: usize) -> Executable {
    let mut executable = Executable::with_settings(program, sizes, dtype, backend, Some(threads), &settings());
    let notes = executable.take_notes();
    assert_eq!((executable.backend(), notes), (backend, vec![]));
    executable
}

fn sizes(program: &Program, given: &[(&str, i64)]) -> Vec<Int> {
    let given = given.iter().map(|(name, size)| (name.to_string(), Int::from(*size))).collect();
    bind(program, &Known { given, shapes: Vec::new() }, &Places::default()).unwrap()
}

fn inputs(program: &Program, sizes: &[Int]) -> HashMap<String, Array> {
    let array = |id| random::array(4, &program[id].name, gradient::shape(program, sizes, id).unwrap()).unwrap();
    program.inputs().map(|id| (program[id].name.clone(), array(id))).collect()
}

/// Values agree if they are near in relation to the largest of their array, or the same where they are not finite.
fn agree(name: &str, results: &[(String, Array)], expected: &[(String, Array)], tolerance: f64) {
    assert_eq!(results.len(), expected.len(), "{name}");
    for ((result, array), (known, wanted)) in results.iter().zip(expected) {
        assert_eq!((result, &array.shape), (known, &wanted.shape), "{name}");
        let finite = wanted.data.iter().filter(|value| value.is_finite());
        let scale = finite.fold(1.0, |largest: f64, value| largest.max(value.abs()));
        for (position, (a, b)) in array.data.iter().zip(&wanted.data).enumerate() {
            let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * scale;
            assert!(same, "{name}: {result} is {a} and should be {b} at {position}");
        }
    }
}

/// Runs compiled code, on one thread and on three, against the oracle.
fn compare(name: &str, program: &Program, sizes: &[Int]) {
    let inputs = inputs(program, sizes);
    let expected = interp(program, sizes, &inputs, Dtype::F64).unwrap().results;
    let alone = executable(program, sizes, Dtype::F64, Backend::Native, 1).evaluate(sizes, &inputs).unwrap();
    agree(name, &alone, &expected, 1e-11);
    let shared = executable(program, sizes, Dtype::F64, Backend::Native, 3).evaluate(sizes, &inputs).unwrap();
    for ((result, a), (_, b)) in alone.iter().zip(&shared) {
        let bits = |array: &Array| array.data.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert!(bits(a) == bits(b), "{name}: {result} depends on the number of threads");
    }
}

#[test]
fn compiled_examples_agree_with_the_oracle() {
    for (name, text) in programs::examples() {
        let Resolved { program, places } = resolve(&text);
        let sizes = choose(&program, &Known::default(), &places).unwrap();
        compare(&name, &program, &sizes);
        let gradient = gradix::derive(&program, &Default::default()).unwrap();
        let own = gradient::carried(&program, &sizes, &gradient.program).unwrap();
        compare(&format!("gradient of {name}"), &gradient.program, &own);
    }
}

const PRODUCT: &str = "input a[N, K], b[K, M]\nc[i, j] = sum[k] a[i, k] * b[k, j]\ns[i] = sum[j] exp(c[i, j])";

#[test]
fn one_executable_runs_at_all_sizes() {
    let program = program(PRODUCT);
    for backend in [Backend::Vm, Backend::Native] {
        let estimate = sizes(&program, &[("N", 64), ("M", 64), ("K", 64)]);
        let mut executable = executable(&program, &estimate, Dtype::F64, backend, 2);
        for (n, m, k) in [(1, 1, 1), (70, 33, 5), (3, 100, 130), (0, 4, 4), (4, 0, 4), (4, 4, 0), (70, 33, 5)] {
            let sizes = sizes(&program, &[("N", n), ("M", m), ("K", k)]);
            let inputs = inputs(&program, &sizes);
            let expected = interp(&program, &sizes, &inputs, Dtype::F64).unwrap().results;
            for _ in 0..2 {
                agree("product", &executable.evaluate(&sizes, &inputs).unwrap(), &expected, 1e-12);
            }
        }
        assert_eq!(executable.take_notes(), []);
    }
}

#[test]
fn single_precision_is_near_the_oracle() {
    let program = program(PRODUCT);
    let sizes = sizes(&program, &[("N", 20), ("M", 30), ("K", 40)]);
    let inputs = inputs(&program, &sizes);
    let expected = interp(&program, &sizes, &inputs, Dtype::F32).unwrap().results;
    for backend in [Backend::Interp, Backend::Vm, Backend::Native] {
        let results = executable(&program, &sizes, Dtype::F32, backend, 2).evaluate(&sizes, &inputs).unwrap();
        agree("product", &results, &expected, 1e-5);
        assert!(results.iter().all(|(_, array)| array.data.iter().all(|value| f64::from(*value as f32) == *value)));
    }
}

#[test]
fn raw_slices_of_both_types_are_run_on() {
    let program = program("input x[N], t\ny[i] = t * x[i]\ns = sum[i] x[i]");
    let sizes = [3.into()];
    for backend in [Backend::Interp, Backend::Vm, Backend::Native] {
        let (mut y, mut s) = ([0.0f32; 3], [0.0f32]);
        let mut single = executable(&program, &sizes, Dtype::F32, backend, 1);
        single.run(&sizes, &[&[1.0, 2.0, 4.0], &[0.5]], &mut [&mut y, &mut s]).unwrap();
        assert_eq!((y, s), ([0.5, 1.0, 2.0], [7.0]));
        let (mut y, mut s) = ([0.0f64; 3], [0.0f64]);
        let mut double = executable(&program, &sizes, Dtype::F64, backend, 1);
        double.run(&sizes, &[&[1.0, 2.0, 4.0], &[0.5]], &mut [&mut y, &mut s]).unwrap();
        assert_eq!((y, s), ([0.5, 1.0, 2.0], [7.0]));
    }
}

#[test]
fn arrays_that_do_not_fit_are_refused() {
    let program = program("input x[N]\ny[i] = 2 * x[i]");
    let sizes = [3.into()];
    for backend in [Backend::Interp, Backend::Vm, Backend::Native] {
        let mut executable = executable(&program, &sizes, Dtype::F64, backend, 1);
        let (mut three, mut two) = ([0.0; 3], [0.0; 2]);
        let mut refused = |inputs: &[&[f64]], outputs: &mut [&mut [f64]]| {
            executable.run(&sizes, inputs, outputs).unwrap_err().message
        };
        assert_eq!(refused(&[&[0.0; 2]], &mut [&mut three]), "the arrays do not fit the sizes");
        assert_eq!(refused(&[&[0.0; 3]], &mut [&mut two]), "the arrays do not fit the sizes");
        assert_eq!(refused(&[], &mut [&mut three]), "the arrays do not fit the sizes");
        assert_eq!(refused(&[&[0.0; 3]], &mut []), "the arrays do not fit the sizes");
        let other = executable.run::<f32>(&sizes, &[&[0.0; 3]], &mut [&mut [0.0; 3]]).unwrap_err().message;
        assert!(other.contains("another type of numbers"), "{other}");
        let absent = executable.evaluate(&sizes, &HashMap::new()).unwrap_err().message;
        assert_eq!(absent, "the input 'x' is not given");
    }
}

#[test]
fn arrays_past_all_memory_are_refused() {
    let program = program("param N\ny[i in 0..N] = i");
    for backend in [Backend::Vm, Backend::Native] {
        let mut executable = executable(&program, &[10.into()], Dtype::F64, backend, 1);
        for size in [i64::MAX, 1 << 58, 1 << 46] {
            let refused = executable.evaluate(&[size.into()], &HashMap::new()).unwrap_err().message;
            assert!(refused.contains("memory") || refused.contains("elements in all"), "{refused}");
        }
    }
}

#[test]
fn memory_is_kept_from_run_to_run() {
    let program = program(PRODUCT);
    let small = sizes(&program, &[("N", 10), ("M", 10), ("K", 10)]);
    let large = sizes(&program, &[("N", 200), ("M", 200), ("K", 10)]);
    let mut executable = executable(&program, &large, Dtype::F64, Backend::Native, 1);
    assert_eq!(executable.peak_bytes(), Some(0));
    let mut held = Vec::new();
    for sizes in [&large, &small, &large] {
        executable.evaluate(sizes, &inputs(&program, sizes)).unwrap();
        held.push(executable.peak_bytes().unwrap());
    }
    assert!(held[0] > 0 && held.iter().all(|bytes| *bytes == held[0]), "{held:?}");
}

#[test]
fn without_a_compiler_the_vm_computes() {
    let program = program("input x[N]\ny[i] = 2 * x[i]");
    let none = Settings { compiler: None, search: None, ..settings() };
    let named = Settings { compiler: Some("/nonexistent".into()), ..settings() };
    let sizes = [2.into()];
    let told = |backend, settings: &Settings| {
        let mut executable = Executable::with_settings(&program, &sizes, Dtype::F64, backend, None, settings);
        let mut y = [0.0; 2];
        executable.run(&sizes, &[&[1.0, 2.0]], &mut [&mut y]).unwrap();
        assert_eq!((y, executable.backend()), ([2.0, 4.0], Backend::Vm));
        executable.take_notes().into_iter().map(|note| note.message).collect::<Vec<_>>()
    };
    assert_eq!(told(Backend::Auto, &none), Vec::<String>::new());
    assert_eq!(told(Backend::Native, &none), ["there is no C compiler (cc, gcc or clang); vm computes"]);
    let missing = ["the C compiler '/nonexistent' that $CC names was not found; vm computes"];
    assert_eq!(
        (told(Backend::Auto, &named), told(Backend::Native, &named)),
        (missing.map(String::from).to_vec(), missing.map(String::from).to_vec())
    );
}

#[test]
fn sizes_of_the_examples_are_free() {
    // The tests above rely on programs that are not specialised to one set of sizes.
    assert!(program(PRODUCT).params.iter().all(|param| param.kind == ParamKind::Free));
}

/// Code that is made for sizes that are not zero takes factors out of sums that then have terms. At other sizes it would
/// be wrong: `0 / 0` instead of an empty sum.
#[test]
fn a_size_that_becomes_zero_is_no_error() {
    let program = program("input q[N, D], z[N]; y[i] = sum[d] q[i, d] / z[i]");
    let made_for = sizes(&program, &[("N", 300), ("D", 200)]);
    for backend in [Backend::Vm, Backend::Native] {
        let mut executable = executable(&program, &made_for, Dtype::F64, backend, 2);
        for given in [[("N", 300), ("D", 200)], [("N", 4), ("D", 0)], [("N", 0), ("D", 5)], [("N", 4), ("D", 3)]] {
            let sizes = sizes(&program, &given);
            let mut inputs = inputs(&program, &sizes);
            if given[1].1 == 0 {
                inputs.get_mut("z").unwrap().data.fill(0.0);
            }
            let expected = interp(&program, &sizes, &inputs, Dtype::F64).unwrap().results;
            let results = executable.evaluate(&sizes, &inputs).unwrap();
            agree(&format!("{given:?}"), &results, &expected, 1e-12);
            assert_eq!((executable.backend(), executable.take_notes()), (backend, vec![]));
        }
    }
}

#[test]
fn a_program_made_for_little_runs_when_it_grows() {
    let program = program("input x[N, K], w[K, M]; y[i, j] = sum[k] x[i, k] * w[k, j]");
    for backend in [Backend::Vm, Backend::Native] {
        let small = sizes(&program, &[("N", 3), ("K", 4), ("M", 5)]);
        let mut executable = executable(&program, &small, Dtype::F64, backend, 2);
        for size in [3, 70, 5] {
            let sizes = sizes(&program, &[("N", size), ("K", size + 1), ("M", 2 * size)]);
            let inputs = inputs(&program, &sizes);
            let expected = interp(&program, &sizes, &inputs, Dtype::F64).unwrap().results;
            agree(&format!("{size}"), &executable.evaluate(&sizes, &inputs).unwrap(), &expected, 1e-12);
        }
    }
}

#[test]
fn large_results_and_rows_off_the_boundaries_of_vectors_are_whole() {
    let text = "input x[N, M]; z[i, j] = x[i, j] - 1
        y[i in 0..N, j in 0..M] = if 0 < j and j < M - 2 then x[i, j - 1] * x[i, j + 2] else 0";
    let program = program(text);
    for (rows, columns) in [(1100, 2003), (1100, 2048)] {
        let sizes = sizes(&program, &[("N", rows), ("M", columns)]);
        let inputs = inputs(&program, &sizes);
        for dtype in [Dtype::F64, Dtype::F32] {
            let expected = interp(&program, &sizes, &inputs, dtype).unwrap().results;
            let mut executable = executable(&program, &sizes, dtype, Backend::Native, 2);
            agree(&format!("{columns}"), &executable.evaluate(&sizes, &inputs).unwrap(), &expected, 0.0);
        }
    }
}

#[test]
fn reductions_are_stored_across_what_they_read() {
    let text = "input x[N, M], w[K]
        s[j in 0..M, i in 0..N - 5] = sum[k in 0..6] x[i + k, j]
        p[j in 0..M, i in 0..N + 1 - K] = sum[k in 0..K] w[k] * x[i + k, j]^2
        m[j in 0..M, i in 0..N - 5] = max[k in 0..6] x[i + k, j] * x[i, j]";
    let program = program(text);
    let nest = gradix::compile(
        &program,
        &[200.into(), 100.into(), 12.into()],
        gradix::nest::Real::F64,
        &gradix::target::AVX512,
    )
    .unwrap()
    .nest;
    assert!(gradix::emit::c(&nest, gradix::emit::Real::F64).contains("gx_turn("));
    for (rows, columns) in [(200, 100), (61, 203), (70, 3), (6, 90)] {
        let sizes = sizes(&program, &[("N", rows), ("M", columns), ("K", 5)]);
        compare(&format!("{rows} {columns}"), &program, &sizes);
    }
}

#[test]
fn results_are_the_same_bits_wherever_the_arrays_lie() {
    let text = "input u[N, M], a, b
        v[i in 0..N, j in 0..M] = if 0 < i < N - 1 and 0 < j < M - 1 then
            a * exp(-b * u[i, j]^2) * (u[i - 1, j] + u[i + 1, j] - 2 * u[i, j] + b * u[i, j - 1] * u[i, j + 1]) -
            u[i, j] * a + b / (1 + u[i, j]^2) else u[i, j] * a + b";
    let gradient = gradix::derive(&program(text), &Default::default()).unwrap();
    for program in [program(text), gradient.program] {
        let sizes = sizes(&program, &[("N", 40), ("M", 403)]);
        let inputs = inputs(&program, &sizes);
        let arrays: Vec<&Array> = program.inputs().map(|id| &inputs[&program[id].name]).collect();
        let length = |tensor| gradient::shape(&program, &sizes, tensor).unwrap().iter().product::<usize>();
        for backend in [Backend::Vm, Backend::Native] {
            let mut executable = executable(&program, &sizes, Dtype::F64, backend, 2);
            let mut at = |offset: usize| -> Vec<Vec<u64>> {
                let moved = |data: &[f64]| [&vec![0.0; offset][..], data].concat();
                let given: Vec<Vec<f64>> = arrays.iter().map(|array| moved(&array.data)).collect();
                let mut results: Vec<Vec<f64>> =
                    program.outputs.iter().map(|tensor| vec![0.0; offset + length(*tensor)]).collect();
                let given: Vec<&[f64]> = given.iter().map(|data| &data[offset..]).collect();
                let mut places: Vec<&mut [f64]> = results.iter_mut().map(|data| &mut data[offset..]).collect();
                executable.run(&sizes, &given, &mut places).unwrap();
                places.iter().map(|place| place.iter().map(|value| value.to_bits()).collect()).collect()
            };
            let first = at(0);
            (1..9).for_each(|offset| assert!(at(offset) == first, "{backend:?} at {offset}"));
        }
    }
}

#[test]
fn terms_whose_indices_are_tied_to_others_are_compiled() {
    let text = "param N, M; input x[M + N - 1, M + 1]
        w[i in 0..2*N] = prod[j in i..2, k in i..2, k - 1 == 3*j - 1] sin(x[j, k])";
    let gradient = gradix::derive(&program(text), &Default::default()).unwrap();
    for (rows, columns) in [(3, 4), (70, 80)] {
        let sizes = sizes(&gradient.program, &[("N", rows), ("M", columns)]);
        compare(&format!("{rows} {columns}"), &gradient.program, &sizes);
    }
}

#[test]
fn forks_run_at_the_same_time_and_give_the_same_bits() {
    let program = program(PRODUCT);
    let sizes = sizes(&program, &[("N", 70), ("M", 90), ("K", 50)]);
    let inputs = inputs(&program, &sizes);
    let bits = |results: &[(String, Array)]| -> Vec<u64> {
        results.iter().flat_map(|(_, array)| array.data.iter().map(|value| value.to_bits())).collect()
    };
    for backend in [Backend::Interp, Backend::Vm, Backend::Native] {
        let mut first = executable(&program, &sizes, Dtype::F64, backend, 2);
        let unprepared = first.fork();
        let expected = bits(&first.evaluate(&sizes, &inputs).unwrap());
        let forks = [unprepared, first.fork(), first];
        let together = Barrier::new(forks.len());
        std::thread::scope(|scope| {
            for mut fork in forks {
                scope.spawn(|| {
                    for _ in 0..5 {
                        together.wait();
                        assert_eq!(bits(&fork.evaluate(&sizes, &inputs).unwrap()), expected, "{backend:?}");
                    }
                    assert_eq!((fork.backend(), fork.take_notes()), (backend, vec![]));
                    drop(fork);
                });
            }
        });
    }
}

#[test]
fn a_fork_outlives_what_it_was_made_from() {
    let program = program("input x[N]\ny[i] = 2 * x[i]");
    let sizes = [3.into()];
    let mut first = executable(&program, &sizes, Dtype::F64, Backend::Native, 1);
    first.prepare(&sizes).unwrap();
    let mut fork = first.fork();
    assert_eq!((fork.backend(), fork.peak_bytes()), (first.backend(), Some(0)));
    drop(first);
    let mut y = [0.0; 3];
    fork.run(&sizes, &[&[1.0, 2.0, 4.0]], &mut [&mut y]).unwrap();
    assert_eq!(y, [2.0, 4.0, 8.0]);
}

/// What a program does not read need not be there.
#[test]
#[allow(unsafe_code)]
fn arrays_are_given_by_where_they_start() {
    let program = program("param N\ninput x[N, 3]\ny[i] = 2 * x[i, 0]");
    let sizes = [3.into()];
    let x = [1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 4.0];
    for backend in [Backend::Vm, Backend::Native] {
        let mut executable = executable(&program, &sizes, Dtype::F64, backend, 1);
        let mut y = [0.0; 3];
        // SAFETY: the first column is all there.
        unsafe { executable.run_at(&sizes, &[x.as_ptr()], &[y.as_mut_ptr()]) }.unwrap();
        assert_eq!(y, [2.0, 4.0, 8.0], "{backend:?}");
        // SAFETY: nothing is read or written.
        let other = unsafe { executable.run_at::<f64>(&sizes, &[], &[]) }.unwrap_err().message;
        assert_eq!(other, "the arrays do not fit the sizes");
    }
}

/// Fields with two steps back, a network whose weights are summed over all steps, and two states that read each other; each with what
/// of the gradient is no sum over steps.
const TRAJECTORIES: [(&str, &[&str]); 3] = [
    (
        "param N, T; input u0[N], c[N]
         u[t in 0..=T, i in 0..N] = if t < 2 then u0[i] else
             sin(u[t - 1, i] - c[i] * u[t - 2, i] + (u[t - 1, wrap(i - 1)] + u[t - 1, wrap(i + 1)]) / 4)
         loss = sum[i] u[T, i]^2
         output loss",
        &["du0"],
    ),
    (
        "param N, T >= 1; input x[T, N], w[N, N]
         h[t in 0..T, i in 0..N] = tanh(x[t, i] + sum[j in 0..N] w[i, j] * pad(h[t - 1, j], 0) / 8)
         loss = sum[t, i] h[t, i]^2
         output loss",
        &["dx"],
    ),
    (
        "param N, T; input p0[N], q0[N], k
         p[t in 0..=T, i in 0..N] = if t == 0 then p0[i] else p[t - 1, i] - k^2 * sin(q[t - 1, i])
         q[t in 0..=T, i in 0..N] = if t == 0 then q0[i] else q[t - 1, i] + p[t, i] / 8
         loss = sum[i] p[T, i] * q[T, i]
         output loss",
        &["dp0", "dq0"],
    ),
];

#[test]
fn what_does_not_fit_into_memory_is_computed_again_with_the_same_bits() {
    for (text, by_step) in TRAJECTORIES {
        let function = program(text);
        let gradient = gradix::derive(&function, &gradix::derive::Options::default()).unwrap().program;
        for (steps, backend) in [(400, Backend::Vm), (400, Backend::Native), (397, Backend::Vm), (17, Backend::Vm)] {
            let sizes = sizes(&gradient, &[("N", 40), ("T", steps)]);
            let inputs = inputs(&gradient, &sizes);
            let run = |memory: Option<u64>, threads: usize| {
                let settings = Settings { memory, ..settings() };
                let mut executable =
                    Executable::with_settings(&gradient, &sizes, Dtype::F64, backend, Some(threads), &settings);
                assert_eq!((executable.backend(), executable.take_notes()), (backend, vec![]), "{text}");
                (executable.evaluate(&sizes, &inputs).unwrap(), executable.peak_bytes().unwrap())
            };
            let ((whole, all), (again, few)) = (run(None, 1), run(Some(1024), 3));
            let expected = interp(&gradient, &sizes, &inputs, Dtype::F64).unwrap().results;
            agree(text, &whole, &expected, 1e-11);
            agree(text, &again, &expected, 1e-11);
            for ((name, array), (_, same)) in
                whole.iter().zip(&again).filter(|((name, _), _)| by_step.contains(&name.as_str()))
            {
                let bits = |array: &Array| array.data.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(array), bits(same), "{text}: {name}, {steps} steps on {backend:?}");
            }
            assert!(steps < 390 || few < all / 2, "{text}: {few} bytes instead of {all}");
        }
    }
}
