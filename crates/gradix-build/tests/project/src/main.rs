//! Modules made by the build script, held to `gradix_run`.

mod generated {
    include!(concat!(env!("OUT_DIR"), "/words.rs"));
    include!(concat!(env!("OUT_DIR"), "/words_gradient.rs"));
    include!(concat!(env!("OUT_DIR"), "/shapes.rs"));
    include!(concat!(env!("OUT_DIR"), "/paper.rs"));
}

use generated::{paper, shapes, words, words_gradient};

fn numbers(count: usize, seed: f64) -> Vec<f64> {
    (0..count).map(|n| (seed + n as f64).sin()).collect()
}

fn near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-12 * (1.0 + expected.abs()), "{found} is not {expected}");
    }
}

fn main() {
    names_are_kept_apart();
    shapes_follow_from_sizes();
    derivatives_are_those_asked_for();
    mistakes_name_the_array();
    println!("all is well");
}

fn names_are_kept_apart() {
    let program = gradix_run::program!(
        "param type, crate >= -2
         input self[type], new, σ
         fn[r in 0..type + crate] = self[r // 2] * new + σ^2
         loop = sum[i] self[i]"
    );
    let (x, dy) = (numbers(7, 1.0), numbers(5, 2.0));
    let call = || program.call().array("self", &x).array("new", 3.0).array("σ", 0.5).size("crate", -2);
    let expected = call().value().unwrap();
    let sizes = words::Sizes { r#type: 7, crate_: -2 };
    let results = words::compute(sizes, words::Inputs { self_: &x, new_1: 3.0, u3c3: 0.5 }).unwrap();
    near(&results.r#fn, &expected["fn"].data);
    near(&[results.r#loop], &expected["loop"].data);

    let expected = call().array("dfn", &dy).array("dloop", 2.0).value_and_grad().unwrap();
    let sizes = words_gradient::Sizes { r#type: 7, crate_: -2 };
    let inputs = words_gradient::Inputs { self_: &x, new_1: 3.0, u3c3: 0.5, dfn: &dy, dloop: 2.0 };
    let results = words_gradient::compute(sizes, inputs).unwrap();
    near(&results.dself, &expected["dself"].data);
    near(&[results.dnew, results.du3c3], &[expected["dnew"].data[0], expected["dσ"].data[0]]);
}

fn shapes_follow_from_sizes() {
    let program = gradix_run::compile(include_str!("shapes.gx")).unwrap();
    let mut workspace = vec![255; 10];
    for (n, k) in [(9, 3), (40, 40), (101, 17)] {
        let single = |count: usize, seed| numbers(count, seed).iter().map(|x| *x as f32).collect::<Vec<f32>>();
        let (x, w, v) = (single(n, 1.0), single(k, 2.0), single(k, 3.0));
        let (dy, ds) = (single((n - k) / 2 + 1, 4.0), single(k, 5.0));
        let call = program.call().array("x", &x).array("w", &w).array("v", &v).array("dy", &dy);
        let expected = call.array("ds", &ds).array("done", 2.0).value_and_grad().unwrap();
        let sizes = shapes::Sizes { N: n as i64, K: k as i64 };
        let inputs = shapes::Inputs { x: &x, w: &w, v: &v, dy: &dy, ds: &ds, done: 2.0 };
        let results = shapes::compute(sizes, inputs).unwrap();
        let (mut y, mut s, mut one) = (vec![0.0; dy.len()], vec![0.0; k], 0.0);
        let (mut dx, mut dw, mut dv) = (vec![0.0; n], vec![0.0; k], vec![0.0; k]);
        let outputs = shapes::Outputs {
            y: &mut y, s: &mut s, one: &mut one, dx: &mut dx, dw: &mut dw, dv: &mut dv,
        };
        shapes::run(sizes, inputs, outputs, &mut workspace).unwrap();
        assert_eq!(results, shapes::Results { y, s, one, dx, dw, dv });
        for (found, name) in [(&results.y, "y"), (&results.dx, "dx"), (&results.dw, "dw"), (&results.dv, "dv")] {
            let pairs = found.iter().zip(&expected[name].data);
            pairs.for_each(|(a, b)| assert!((a - b).abs() <= 1e-4, "{name}: {a} is not {b}"));
        }
    }
}

fn derivatives_are_those_asked_for() {
    let program = gradix_run::compile(include_str!("paper.gx")).unwrap();
    let (a, b, c, d, df) = (numbers(15, 1.0), numbers(20, 2.0), numbers(9, 3.0), numbers(7, 4.0), numbers(12, 5.0));
    let call = program.call().array("a", (&a, [3, 5])).array("b", (&b, [4, 5])).array("c", (&c, [3, 3]));
    let expected = call.array("d", &d).array("df", (&df, [3, 4])).wrt(&["a", "d"]).value_and_grad().unwrap();
    let inputs = paper::Inputs { a: &a, b: &b, c: &c, d: &d, df: &df };
    let paper::Results { f, da, dd } = paper::compute(paper::Sizes { I: 3, J: 4 }, inputs).unwrap();
    near(&f, &expected["f"].data);
    near(&da, &expected["da"].data);
    near(&dd, &expected["dd"].data);
}

fn mistakes_name_the_array() {
    let sizes = |n, k| shapes::Sizes { N: n, K: k };
    let compute = |sizes, x: &[f32]| {
        shapes::compute(sizes, shapes::Inputs { x, w: &[1.0], v: &[1.0], dy: &[1.0], ds: &[1.0], done: 0.0 })
    };
    assert!(compute(sizes(1, 1), &[1.0]).is_ok());
    let short = shapes::Error::Length { array: "x", expected: 2, found: 1 };
    assert_eq!(compute(sizes(2, 1), &[1.0]), Err(short));
    assert_eq!(short.to_string(), "'x' has 1 elements, and should have 2");
    assert_eq!(compute(sizes(-1, 1), &[1.0]), Err(shapes::Error::Sizes));
    assert_eq!(compute(sizes(i64::MAX, 1), &[1.0]), Err(shapes::Error::TooLarge));
}
