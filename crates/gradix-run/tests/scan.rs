//! Recurrences in place of reductions: the same values, for every example, every case, and programs that are put together
//! from ranges and terms; on every backend; and where exponentials overflow or vanish.

#[path = "support/programs.rs"]
mod programs;

use gradix::derive::Options;
use gradix::domain::sizes::{Known, bind, choose};
use gradix::program::{ParamKind, Places, Program, circles, print, verify};
use gradix::{Int, Resolved, derive, resolve, scan, syntax};
use gradix_run::native::{Cache, Settings};
use gradix_run::{Array, Backend, Dtype, Executable, gradient, interp, random};
use std::collections::HashMap;
use std::path::PathBuf;

#[test]
fn examples_and_cases_keep_their_values() {
    let folders = ["../../examples", "../gradix/tests/cases/scan", "../gradix/tests/cases/economise"];
    let mut scanned = 0;
    for path in folders.into_iter().flat_map(programs::files) {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        match text.contains("==== ") {
            true => {
                for case in text.split("==== ").filter(|case| !case.is_empty()) {
                    let (title, rest) = case.split_once('\n').unwrap();
                    scanned += check(title, rest.split("---- ").next().unwrap());
                }
            }
            false => scanned += check(&name, &text),
        }
    }
    assert!(scanned > 30, "{scanned}");
}

fn resolved(name: &str, text: &str) -> Resolved {
    let resolved = syntax::parse(text).and_then(|ast| resolve(&ast, &[]));
    resolved.unwrap_or_else(|errors| panic!("{name}: {errors:?}"))
}

/// How many of the program and its derivative have recurrences now that had none.
fn check(name: &str, text: &str) -> usize {
    let Resolved { program, places } = resolved(name, text);
    let options = Options { with_results: !program.has_inputs(), ..Options::default() };
    let derivative = derive(&program, &options).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
    let smallest = choose(&program, &Known::default(), &places).unwrap();
    let free = program.params.iter().zip(&smallest).filter(|(param, _)| param.kind == ParamKind::Free);
    let given: Vec<(String, i64)> =
        free.map(|(param, size)| (param.name.clone(), i64::try_from(size).unwrap())).collect();
    both(name, &program, &derivative.program, &given)
}

fn both(name: &str, program: &Program, derivative: &Program, given: &[(String, i64)]) -> usize {
    let mut found = 0;
    for (what, program) in [("value", program), ("derivative", derivative)] {
        if let Some(sizes) = sized(program, given) {
            let name = format!("{name}, {what}");
            let scanned = scanned(&name, program);
            compare(&name, program, &scanned, &sizes, given);
            found += usize::from(has_more(program, &scanned));
        }
    }
    found
}

fn sized(program: &Program, given: &[(String, i64)]) -> Option<Vec<Int>> {
    let given = given.iter().map(|(name, size)| (name.clone(), Int::from(*size))).collect();
    bind(program, &Known { given, shapes: Vec::new() }, &Places::default()).ok()
}

fn values(program: &Program, sizes: &[Int]) -> HashMap<String, Array> {
    let array = |id| random::array(0, &program[id].name, gradient::shape(program, sizes, id).unwrap()).unwrap();
    program.inputs().map(|id| (program[id].name.clone(), array(id))).collect()
}

/// The program as it is made for large sizes, which is well formed.
fn scanned(name: &str, program: &Program) -> Program {
    let scanned = scan(program, &vec![4096.0; program.params.len()]).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(verify(&scanned), Ok(()), "{name}");
    let text = print::print(&scanned).unwrap();
    assert!(resolved(name, &text).program == scanned, "{name} prints as another program:\n{text}");
    scanned
}

/// Whether it has recurrences that it did not have.
fn has_more(program: &Program, scanned: &Program) -> bool {
    circles::circles(scanned).len() > circles::circles(program).len()
}

/// Both have the same values.
fn compare(name: &str, program: &Program, scanned: &Program, sizes: &[Int], given: &[(String, i64)]) {
    let text = print::print(scanned).unwrap();
    let own = sized(scanned, given).unwrap_or_else(|| panic!("{name}: sizes no longer fit\n{text}"));
    let inputs = values(program, sizes);
    let run = |program: &Program, sizes: &[Int]| {
        let outcome = interp(program, sizes, &inputs, Dtype::F64);
        outcome.unwrap_or_else(|error| panic!("{name}: {error}\n{text}")).results
    };
    agree(&format!("{name}\n{text}"), &run(scanned, &own), &run(program, sizes), 1e-10);
}

/// Values agree if they are near in relation to the largest of their array, or the same where they are not finite.
fn agree(name: &str, results: &[(String, Array)], expected: &[(String, Array)], tolerance: f64) {
    assert_eq!(results.len(), expected.len(), "{name}");
    for ((result, array), (known, wanted)) in results.iter().zip(expected) {
        assert_eq!((result, &array.shape), (known, &wanted.shape), "{name}");
        let finite = wanted.data.iter().filter(|value| value.is_finite());
        let scale = finite.fold(1e-300, |largest: f64, value| largest.max(value.abs()));
        for (position, (a, b)) in array.data.iter().zip(&wanted.data).enumerate() {
            let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * scale;
            assert!(same, "{name}: {result} is {a} and should be {b} at {position}");
        }
    }
}

const RANGES: [&str; 12] = [
    "k in 0..=i",
    "k in 0..i",
    "k in i..N",
    "k in i + 1..N",
    "k in 0..=i - 2",
    "k in 0..min(i + 3, N)",
    "k in 0..=i // 2",
    "k in max(0, i - 3)..=i",
    "k in 0..N, k <= i, k != 3",
    "k in 0..=i, l in 0..2",
    "k in 0..=i, l in 0..=i",
    "k in i..N, l in i..=k",
];

/// Terms of sums, of `k` and the output `i`.
const TERMS: [&str; 22] = [
    "x[k]",
    "w[i] * x[k] / 3",
    "x[k] / w[i]",
    "x[k] * log(abs(w[i]))",
    "a^(i - k) * x[k]",
    "(a / 3)^(2*i - 2*k) * x[k] * w[i]",
    "0.5^(k - i) * x[k]",
    "exp(-(t[i] - t[k])) * x[k]",
    "exp(a * (t[i] - t[k])) * x[k] * w[i]",
    "exp(t[k] * x[k] - w[i]) * a^(i - k) * t[k]",
    "exp(-a * (i - k)) * x[k]",
    "exp(x[k] - a * (i - k))",
    "(i - k) * x[k]",
    "(2*i - 3*k + 1) * a^(i - k) * x[k]",
    "(i - k) * exp(t[i] - t[k]) * x[k]",
    "(x[k] * w[i] + t[k] * exp(t[i]))",
    "(if x[k] > 0 then x[k] else w[i] * t[k])",
    "(if k < i then x[k] else t[k])",
    "(if w[i] > 0 then x[k] / w[i] else t[k])",
    "(if k + 1 < i and x[k] > 0 then x[k] * w[i] else a^(i - k))",
    "(prod[m in k + 1..=i] x[m]) * t[k]",
    "(sum[m in 0..3] x[k] * m) * w[i]",
];

/// Terms of products and extrema.
const CHOICES: [&str; 4] = ["x[k]", "(1 + x[k] / 10)", "x[k] * t[k] + 1", "(if k % 3 == 0 then x[k] else t[k])"];

fn programs() -> Vec<String> {
    let inputs = "input x[N], t[N], w[N], a\n";
    let mut programs = Vec::new();
    for range in RANGES {
        programs.extend(TERMS.map(|term| format!("{inputs}y[i in 0..N] = sum[{range}] {term}")));
        for op in ["prod", "max", "min"] {
            programs.extend(CHOICES.map(|term| format!("{inputs}y[i in 0..N] = {op}[{range}] {term}")));
        }
    }
    programs
}

#[test]
fn programs_from_ranges_and_terms_keep_their_values() {
    let (mut values, mut derivatives) = (0, 0);
    for text in programs() {
        let Resolved { program, .. } = resolved(&text, &text);
        let derivative = derive(&program, &Options::default()).unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
        for (found, program) in [(&mut values, &program), (&mut derivatives, &derivative.program)] {
            let scanned = scanned(&text, program);
            *found += usize::from(has_more(program, &scanned));
            for size in [0, 1, 2, 7] {
                let given = [("N".to_string(), size)];
                let sizes = sized(program, &given).unwrap();
                compare(&format!("{text}\nat {size}"), program, &scanned, &sizes, &given);
            }
        }
    }
    // Most of them are recurrences in disguise.
    assert!(values > 240 && derivatives > 120, "{values} {derivatives}");
}

/// Programs whose recurrences run, at sizes at which they pay.
const RUN: [&str; 15] = [
    "input x[N]; y[i in 0..N] = sum[k in 0..=i] x[k]",
    "input x[N], w[N]; y[i in 0..N] = sum[k in i + 1..N] x[k] / w[i]",
    "input x[N], a; y[i in 0..N] = sum[k in 0..=i] (a / 2)^(i - k) * x[k]",
    "input x[N, C], a[C]; y[i in 0..N, c] = sum[k in 0..i] (a[c] / 2)^(i - k) * x[k, c]",
    "input x[N], t[N]; y[i in 0..N] = sum[k in 0..=i] exp(-(t[i] - t[k])) * x[k]",
    "input x[B, N], t[B, N]; y[b, i in 0..N] = sum[k in 0..=i] exp(t[b, k] - t[b, i]) * x[b, k]",
    "input x[N], c; y[i in 0..N] = sum[k in 0..=i] exp(-abs(c) * (i - k)) * x[k]",
    "input x[N, M]; y[i in 0..N, j in 0..M] = sum[k in 0..=i, l in 0..=j] x[k, l]",
    "input x[N]; y = prod[k] (1.2 + x[k])",
    "input x[N]; y[i in 0..N] = prod[k in 0..=i] (1 + x[k] / 10)",
    "input x[N], a[B]; y[b, i in 0..N] = prod[k in i..N] (1 + a[b] * x[k] / 10)",
    "input x[N]; y[i in 0..N] = max[k in 0..=i] x[k]; z[i in 0..N] = min[k in i..N] x[k] * y[k]",
    "input x[N], a[N]; s[i in 0..N] = sum[k in 0..=i] x[k]; h[t in 0..N] = a[t] * pad(h[t - 1], 0) + s[t]",
    "input x[N], w[N]; y = sum[i, k in 0..=i] w[i] * x[k]",
    "input q[N, D], k[N, D], v[N]; y[i in 0..N] = sum[j in 0..=i] (sum[d] q[i, d] * k[j, d]) * v[j]; z[i in 0..N] = sum[j in 0..=i] v[j]",
];

#[test]
fn every_backend_agrees_with_the_oracle() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("kernels");
    let settings = Settings { cache: Some(Cache { folder, limit: 256 << 20 }), ..Settings::from_environment() };
    for text in RUN {
        let program = resolved(text, text).program;
        let derivative = derive(&program, &Options::default()).unwrap().program;
        for (what, program) in [("value", &program), ("gradient", &derivative)] {
            let given = ["N", "M", "C", "B", "D"].map(|name| (name.to_string(), if name == "N" { 200 } else { 6 }));
            let known = given.iter().filter(|(name, _)| program.params.iter().any(|param| param.name == *name));
            let sizes = sized(program, &known.cloned().collect::<Vec<_>>()).unwrap();
            let inputs = values(program, &sizes);
            let expected = interp(program, &sizes, &inputs, Dtype::F64).unwrap().results;
            for (dtype, tolerance) in [(Dtype::F64, 1e-11), (Dtype::F32, 1e-4)] {
                for backend in [Backend::Vm, Backend::Native] {
                    let run = |threads| {
                        Executable::with_settings(program, &sizes, dtype, backend, Some(threads), &settings)
                            .evaluate(&sizes, &inputs)
                            .unwrap()
                    };
                    let (alone, shared) = (run(1), run(3));
                    agree(&format!("{text}, {what}, {backend:?}, {dtype:?}"), &alone, &expected, tolerance);
                    assert!(alone == shared, "{text}, {what}: the number of threads changes the result");
                }
            }
        }
    }
}

/// One factor that is 0 leaves its own derivative, two leave none.
#[test]
fn the_derivative_of_a_running_product_is_exact_where_factors_are_0() {
    let texts = [
        "input x[N]; y[i in 0..N] = prod[k in 0..=i] x[k]",
        "input x[N]; y[i in 0..N] = prod[k in 0..=i] (1 + x[k] / 2)",
        "input x[N], a[B]; y[b, i in 0..N] = prod[k in i..N] (a[b] + x[k])",
        "input x[N], a[B]; y[b, i in 0..N] = prod[k in 0..i] (a[b] * x[k])",
    ];
    for text in texts {
        let program = resolved(text, text).program;
        let derivative = derive(&program, &Options::default()).unwrap().program;
        let scanned = scanned(text, &derivative);
        let given = [("N", 6), ("B", 2)].map(|(name, size)| (name.to_string(), size));
        let known = given.iter().filter(|(name, _)| derivative.params.iter().any(|param| param.name == *name));
        let known: Vec<_> = known.cloned().collect();
        let [sizes, own] = [&derivative, &scanned].map(|program| sized(program, &known).unwrap());
        assert!(has_more(&derivative, &scanned), "{text}");
        for zeros in [&[][..], &[0], &[3], &[5], &[1, 4], &[0, 1, 5]] {
            let mut inputs = values(&derivative, &sizes);
            // Where the factor is 1 + x / 2 or a + x, -2 makes it 0.
            let zero = if text.contains('+') { -2.0 } else { 0.0 };
            zeros.iter().for_each(|&place| inputs.get_mut("x").unwrap().data[place] = zero);
            inputs.entry("a".to_string()).and_modify(|a| a.data.fill(2.0));
            let run = |program: &Program, sizes: &[Int]| interp(program, sizes, &inputs, Dtype::F64).unwrap().results;
            agree(&format!("{text}, 0 at {zeros:?}"), &run(&scanned, &own), &run(&derivative, &sizes), 1e-14);
        }
    }
}

/// Exponentials that overflow or vanish on the way, but not in the sum as it is written.
#[test]
fn a_causal_kernel_is_as_good_as_it_is_written() {
    let text = "input x[N], t[N]; y[i in 0..N] = sum[k in 0..=i] exp(-(t[i] - t[k])) * x[k]";
    let program = resolved(text, text).program;
    let times: [&[f64]; 8] = [
        &[0.0, 1.0, 2.0, 3.0],
        &[0.0, -2000.0, 0.0, 1.0],
        &[0.0, 2000.0, 0.0, 1.0],
        &[2000.0, 0.0, 1000.0, 2001.0],
        &[1e9, 1e9 + 0.25, 1e9 + 0.125, 1e9 + 1.0],
        &[-1e9, 1e9, -1e9, 1e9],
        &[-700.0, 0.0, 700.0, 1400.0],
        &[700.0, 0.0, -700.0, 700.0],
    ];
    for time in times {
        for signs in [[1.0, 0.5, 2.0, 1.5], [1.0, -1.0, 1e-3, -3.0]] {
            let size = Int::from(time.len() as i64);
            let array = |data: &[f64]| Array { shape: vec![data.len()], data: data.to_vec() };
            let inputs = HashMap::from([("x".to_string(), array(&signs)), ("t".to_string(), array(time))]);
            let run = |program: &Program| {
                interp(program, std::slice::from_ref(&size), &inputs, Dtype::F64).unwrap().results.remove(0).1.data
            };
            let (written, found) = (run(&program), run(&scanned(text, &program)));
            for (position, (a, b)) in written.iter().zip(&found).enumerate() {
                let largest = (0..=position).map(|k| ((time[k] - time[position]).exp() * signs[k]).abs());
                let scale = largest.fold(0.0, f64::max);
                let same = a == b || (a - b).abs() <= 1e-12 * scale || !a.is_finite();
                assert!(same, "t = {time:?}, x = {signs:?}: {b} and not {a} at {position}");
            }
        }
    }
}
