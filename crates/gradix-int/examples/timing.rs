//! How long typical questions take: `cargo run --release --example timing`.

use std::hint::black_box;
use std::time::Instant;

use gradix_int::{Matrix, Polyhedron, Row, fourier_motzkin, solve};

fn main() {
    let (convolution, context) = (convolution(), sizes());
    let mut both = convolution.clone();
    both.intersect(&context);
    println!("{} variables, {} inequalities", both.dimension(), both.inequalities().len());
    let parallel = Row::from_i64(&[0, 0, 0, 0, 0, 1, 0, 0, 0], 3);
    let interval = Row::from_i64(&[1, 2, 3, 0, 0, 1, 1, 1, 0], -4);
    let derived = Row::from_i64(&[1, 0, 0, 0, 0, 0, 0, 0, 0], -1);
    let chained = Row::from_i64(&[1, 1, 1, 1, 0, -1, -1, -1, -1], -4);
    let unknown = Row::from_i64(&[1, -1, 0, 0, 0, 0, 0, 0, 0], 0);
    report("implies, a parallel row", || both.implies(&parallel));
    report("implies, single bounds", || both.implies(&interval));
    report("implies, one step", || both.implies(&derived));
    report("implies, sum of four rows", || both.implies(&chained));
    report("implies, does not follow", || both.implies(&unknown));
    report("is_empty", || both.is_empty());
    report("bounds", || both.bounds(5));
    report("remove_redundant", || {
        let mut reduced = convolution.clone();
        reduced.remove_redundant(&context);
        reduced
    });
    report("eliminate", || both.eliminate(7, 200));
    report("sample", || both.sample(1000));
    let access = Matrix::from_rows(&[&[1, 0, 0, 0, 0], &[0, 2, 0, 1, 0], &[0, 0, 2, 0, 1]]);
    report("solve", || solve(&access));
    let kernel = solve(&access).kernel;
    let system = Matrix::from_fn(10, kernel.columns(), |i, j| &kernel[(i % 5, j)] * if i < 5 { 1 } else { -1 });
    report("fourier_motzkin", || fourier_motzkin(&system, 1000));
}

/// `0 ≤ i < I` for four indices, twice the one plus another inside of a fifth size, and a few rows that follow:
/// variables are `I J K L M, i j k l`.
fn convolution() -> Polyhedron {
    let mut set = Polyhedron::new(9);
    for index in 0..4 {
        let mut row = Row::variable(9, 5 + index);
        set.add_inequality(row.clone());
        row = row.negated();
        row.coefficients[index] = 1.into();
        row.constant = (-1).into();
        set.add_inequality(row);
    }
    set.add_inequality(Row::from_i64(&[0, 0, 0, 0, 0, 2, 1, 0, 0], 0));
    set.add_inequality(Row::from_i64(&[0, 0, 0, 0, 1, -2, -1, 0, 0], -1));
    set.add_inequality(Row::from_i64(&[2, 1, 0, 0, 0, -2, -1, 0, 0], -3));
    set.add_inequality(Row::from_i64(&[1, 0, 1, 0, 0, -1, 0, -1, 0], -2));
    set
}

/// Every size is at least one, and `M = 2 (I - 1) + J` at most.
fn sizes() -> Polyhedron {
    let mut set = Polyhedron::new(9);
    for size in 0..5 {
        let mut row = Row::variable(9, size);
        row.constant = (-1).into();
        set.add_inequality(row);
    }
    set.add_inequality(Row::from_i64(&[-2, -1, 0, 0, 1, 0, 0, 0, 0], 2));
    set
}

/// Prints the average time of a call, after some to warm up.
fn report<R>(name: &str, mut call: impl FnMut() -> R) {
    const CALLS: u32 = 10_000;
    for _ in 0..CALLS / 10 {
        black_box(call());
    }
    let start = Instant::now();
    for _ in 0..CALLS {
        black_box(call());
    }
    println!("{name:<28}{:>8.2} µs", start.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS));
}
