//! Programs as functions of Rust's arrays.

use gradix_run::compiled::{Dense, Results};
use gradix_run::{Backend, Compiled, compile};
use ndarray::{Array, Array1, Array2, ArrayD, array, s};

const PRODUCT: &str = "input a[N, K], b[K, M]; c[i, j] = sum[k] a[i, k] * b[k, j]";

fn message<T>(result: Result<Results<T>, gradix_run::Error>) -> String {
    result.err().expect("it is refused").to_string()
}

#[test]
fn views_of_any_strides_are_read_where_they_lie() {
    let f = compile(PRODUCT).unwrap();
    let whole = Array::from_shape_fn((9, 14), |(i, j)| (3 * i + 5 * j) as f64 / 7.0);
    let (a, b) = (whole.slice(s![..;-2, 1..;3]), whole.t());
    let b = b.slice(s![2..;2, ..6]);
    let (a, b) = (a.slice(s![.., ..5]), b.slice(s![..5, ..]));
    for backend in [Backend::Interp, Backend::Vm, Backend::Native] {
        let c: ArrayD<f64> =
            f.call().array("a", a).array("b", b).backend(backend).threads(2).value().unwrap().take("c").into();
        assert!((c - a.dot(&b).into_dyn()).iter().all(|error| error.abs() < 1e-12));
    }
}

#[test]
fn results_are_written_into_given_views() {
    let f = compile("input x[N]; y[i] = 2 * x[i]; z[i, j in 0..2] = x[i] + j").unwrap();
    let x = array![1.0f32, 2.0, 3.0];
    let (mut y, mut z) = (Array1::from_elem(6, 9.0f32), Array2::zeros((2, 3)));
    let left = f
        .call()
        .array("x", &x)
        .output("y", y.slice_mut(s![..;-2]))
        .output("z", z.view_mut().reversed_axes())
        .value()
        .unwrap();
    assert_eq!(left.iter().count(), 0);
    assert_eq!(y, array![9.0, 6.0, 9.0, 4.0, 9.0, 2.0]);
    assert_eq!(z, array![[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]);
    let mut dense = Dense { shape: vec![3], data: vec![0.0f32; 3] };
    let mut rest = f.call().array("x", &x).output("y", &mut dense).value().unwrap();
    assert_eq!((dense.data, rest.take("z").shape), (vec![2.0, 4.0, 6.0], vec![3, 2]));
    let mut empty: Vec<f32> = Vec::new();
    let none: &[f32] = &[];
    assert_eq!(f.call().array("x", none).output("y", (&mut empty, [0])).value().unwrap()["z"].shape, [0, 2]);
}

#[test]
fn derivatives_have_their_upstreams_and_tangents() {
    let f = compile("input x[N], w; y[i] = w * x[i]^2; l = sum[i] y[i]; output y, l").unwrap();
    let (x, w) = (vec![1.0, 2.0], 3.0);
    let call = || f.call().array("x", &x).array("w", w);
    let g = call().of(&["l"]).grad().unwrap();
    assert_eq!(
        (g["dx"].data.as_slice(), g["dw"].data.as_slice(), g["dw"].shape.len()),
        (&[6.0, 12.0][..], &[5.0][..], 0)
    );
    let both = call().array("dy", &[1.0, 0.0]).array("dl", 2.0).wrt(&["x"]).value_and_grad().unwrap();
    let names: Vec<&str> = both.iter().map(|(name, _)| name).collect();
    assert_eq!((names, both["dx"].data.as_slice()), (vec!["y", "l", "dx"], &[18.0, 24.0][..]));
    let tangent = call().array("x_dot", &[1.0, 0.0]).jvp().unwrap();
    assert_eq!((tangent["y_dot"].data.as_slice(), tangent["l_dot"].data[0]), (&[6.0, 0.0][..], 6.0));
    assert_eq!(message(call().grad()), "the upstream derivative 'dy' is missing");
}

#[test]
fn what_is_wrong_with_a_call_is_said_by_name() {
    let f = compile(PRODUCT).unwrap();
    let a = [1.0, 2.0, 3.0, 4.0];
    let call = |shape: [usize; 2]| f.call().array("a", (&a, shape));
    assert_eq!(message(call([2, 2]).value()), "the argument 'b' is missing");
    assert_eq!(message(call([2, 2]).array("x", &a).value()), "there is no argument 'x'; there is a, b");
    assert_eq!(message(call([2, 2]).array("da", &a).value()), "there is no argument 'da'; there is a, b");
    assert_eq!(message(call([2, 2]).array("a", &a).value()), "'a' is given twice");
    assert_eq!(message(call([2, 3]).value()), "'a' has 4 elements, which is not the shape [2, 3]");
    assert!(message(call([2, 2]).array("b", (&a, [4, 1])).value()).contains("'b'"));
    assert!(message(call([2, 2]).array("b", &a).value()).contains("'b'"));
    let mut c = [0.0; 2];
    let short = call([2, 2]).array("b", (&a, [2, 2])).output("c", (&mut c, [2, 1])).value();
    assert_eq!(message(short), "'c' has the shape [2, 1], and should have [2, 2]");
    assert!(message(call([2, 2]).array("b", (&a, [2, 2])).array("dc", &a).grad()).contains("'dc'"));
    assert!(message(call([2, 2]).array("b", (&a, [2, 2])).wrt(&["q"]).grad()).contains("'q'"));
}

#[test]
fn programs_are_refused_with_their_place_and_sizes_can_be_given() {
    let error = compile("input x[N]\ny[i] = x[i +").err().unwrap();
    assert!(error.to_string().contains("program:2:") && error.to_string().contains('^'), "{error}");
    let f: Compiled = compile("param T; y[t in 0..T] = t^2").unwrap();
    assert!(message(f.call::<f64>().value()).contains("'T'"));
    assert_eq!(f.call::<f64>().size("T", 3).value().unwrap()["y"].data, [0.0, 1.0, 4.0]);
}

#[test]
fn threads_share_a_program() {
    let f = compile("input x[N]; l = sum[i] x[i]^3").unwrap();
    std::thread::scope(|scope| {
        for n in 1..5 {
            let f = &f;
            scope.spawn(move || {
                let x = vec![f64::from(n); 10];
                assert_eq!(f.call().array("x", &x).grad().unwrap()["dx"].data, [3.0 * f64::from(n * n); 10]);
            });
        }
    });
}
