//! Programs as functions of arrays in memory.

#![allow(unsafe_code, reason = "the arrays are given by pointers")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use gradix_run::function::How;
use gradix_run::{Backend, Function, View, interrupt};

const TEXT: &str = "input x[N, D], z[M, D], w[M]; y[i] = sum[j] exp(-sum[d] (x[i, d] - z[j, d])^2) * w[j]";
const HOW: How = How { backend: Backend::Vm, threads: Some(2) };

fn function(text: &str) -> Function {
    Function::new(gradix::syntax::parse(text).and_then(|ast| gradix::resolve(&ast, &[])).unwrap())
}

fn numbers(count: usize) -> Vec<f64> {
    (0..count).map(|place| ((place * 37 + 11) % 97) as f64 / 97.0 - 0.5).collect()
}

/// Memory, where in it an array begins, its shape and its strides.
type Given<'a> = (&'a [f64], usize, &'a [usize], &'a [isize]);

/// The results for some arrays.
fn run(function: &Function, how: How, arrays: &[Given<'_>]) -> Vec<f64> {
    let shapes: Vec<Option<&[usize]>> = arrays.iter().map(|(_, _, shape, _)| Some(*shape)).collect();
    let bound = function.bind(&shapes, &[]).unwrap();
    let views =
        arrays.iter().map(|(data, start, shape, strides)| View::strided(data[*start..].as_ptr(), shape, strides));
    let views: Vec<View<'_, f64>> = views.collect();
    let mut result = vec![f64::NAN; bound.outputs[0].iter().product()];
    // SAFETY: the tests give views that stay inside of their memory.
    unsafe { function.run(&bound, how, &views, &[result.as_mut_ptr()]) }.unwrap();
    result
}

fn dense(function: &Function, how: How, n: usize, m: usize) -> Vec<f64> {
    let (x, z, w) = (numbers(3 * n), numbers(3 * m), numbers(m));
    run(function, how, &[(&x, 0, &[n, 3], &[3, 1]), (&z, 0, &[m, 3], &[3, 1]), (&w, 0, &[m], &[1])])
}

#[test]
fn arrays_are_read_where_they_lie() {
    let function = function("input x[N, M]; y[i] = sum[j] x[i, j] * (j + 1)");
    let data = numbers(200 * 300);
    let element = |start: usize, i: usize, j: usize, strides: [isize; 2]| {
        data[start.checked_add_signed(i as isize * strides[0] + j as isize * strides[1]).unwrap()]
    };
    for (start, shape, strides) in [
        (0, [200, 300], [300, 1]),
        (0, [300, 200], [1, 300]),
        (7, [200, 290], [300, 1]),
        (59_999, [200, 300], [-300, -1]),
        (3, [90, 99], [600, 3]),
        (0, [150, 150], [0, 2]),
        (0, [250, 40], [1, 1]),
    ] {
        for backend in [Backend::Vm, Backend::Native, Backend::Interp] {
            let got = run(&function, How { backend, threads: None }, &[(&data, start, &shape, &strides)]);
            for (i, value) in got.iter().enumerate() {
                let terms = (0..shape[1]).map(|j| element(start, i, j, strides) * (j + 1) as f64);
                let expected: f64 = terms.sum();
                assert!((value - expected).abs() < 1e-9, "{backend:?} {shape:?} {strides:?}: {value} {expected}");
            }
        }
    }
}

#[test]
fn the_same_call_gives_the_same_bits_whatever_was_called_in_between() {
    let function = function(TEXT);
    let sizes = [(3, 2), (70, 40), (300, 7), (50, 60), (0, 5), (1, 1)];
    let first: Vec<Vec<f64>> = sizes.iter().map(|&(n, m)| dense(&function, HOW, n, m)).collect();
    for threads in [None, Some(1), Some(3)] {
        for (place, &(n, m)) in sizes.iter().enumerate().rev() {
            assert_eq!(dense(&function, How { threads, ..HOW }, n, m), first[place], "{n} {m}");
        }
    }
}

#[test]
fn threads_share_a_function() {
    let function = Arc::new(function(TEXT));
    let expected: Vec<Vec<f64>> = (1..6).map(|n| dense(&function, HOW, 40 * n, 50)).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..40 {
                    let n = 1 + round % 5;
                    assert_eq!(dense(&function, HOW, 40 * n, 50), expected[n - 1]);
                }
            });
        }
    });
}

#[test]
fn many_layouts_do_not_make_code_without_end() {
    let function = function("input x[N, M]; y[i] = sum[j] x[i, j]");
    let data = vec![1.0; 20_000];
    for step in 1..100 {
        let got = run(&function, HOW, &[(&data, 0, &[50, 60], &[step, 2])]);
        assert!(got.iter().all(|value| *value == 60.0), "{step}");
    }
    assert!((10..=65).contains(&function.variants()), "{}", function.variants());
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let function = function(TEXT);
    let errors = function.bind(&[Some(&[5, 3]), Some(&[4, 2]), Some(&[4])], &[]).unwrap_err();
    assert_eq!(errors[0].code, "wrong-shape");
}

/// All steps of a recurrence are one item of work, and so is a long sum beside others.
#[test]
fn a_caller_that_is_asked_to_stop_does_not_wait_for_an_item() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let programs = [
        "input x[N]; h[t in 0..5000000] = sin(x[0] + pad(h[t - 1], 0)); y = h[4999999]",
        "input x[N]; y[i] = sum[j in 0..30000, k in 0..30000] sin(x[i] * j + k)",
    ];
    for text in programs {
        let function = function(text);
        let data = numbers(2);
        let bound = function.bind(&[Some(&[2])], &[]).unwrap();
        let views = [View::strided(data.as_ptr(), &[2], &[1])];
        let mut results: Vec<Vec<f64>> = bound.outputs.iter().map(|shape| vec![0.0; shape.iter().product()]).collect();
        let pointers: Vec<*mut f64> = results.iter_mut().map(|result| result.as_mut_ptr()).collect();
        // SAFETY: the view and the results are as large as the arrays.
        let run = || unsafe { function.run(&bound, HOW, &views, &pointers) };
        // The first time may be before the item.
        ASKED.store(0, Ordering::Relaxed);
        let outcome = interrupt::unless(|| ASKED.fetch_add(1, Ordering::Relaxed) > 1, run);
        assert_eq!(outcome.unwrap_err().code, interrupt::INTERRUPTED, "{text}");
    }
}
