//! Contractions made by hand, packed and in place, against plain loops.

use crate::builder::{Builder, Shape, close, count, index, lanes, loops, number, plain};
use gradix::Int;
use gradix::nest::{Kind, Leaf, Work};
use gradix::program::{BinaryOp, Expr, ExprId, Range, ReduceOp, UnaryOp};

/// `y[i, j] = ⊕[k] f(a[i, k], b[k, j])` for many shapes: full and partial tiles, one and several blocks of terms.
#[test]
fn contractions_of_all_shapes() {
    type Make = fn(&mut Builder, ExprId, ExprId) -> ExprId;
    type Value = fn(f64, f64) -> f64;
    let rules: [(ReduceOp, Make, Value); 6] = [
        (ReduceOp::Sum, |n, a, b| n.binary(BinaryOp::Mul, a, b), |a, b| a * b),
        (ReduceOp::Sum, |n, a, b| squared(n, BinaryOp::Sub, a, b), |a, b| (a - b) * (a - b)),
        (ReduceOp::Sum, |n, a, b| squared(n, BinaryOp::Add, a, b), |a, b| (a + b) * (a + b)),
        (ReduceOp::Sum, distance, |a, b| (a - b).abs()),
        (ReduceOp::Max, |n, a, b| n.binary(BinaryOp::Add, a, b), |a, b| a + b),
        (ReduceOp::Min, |n, a, b| n.binary(BinaryOp::Sub, b, a), |a, b| b - a),
    ];
    for (m, n, k) in
        [(1, 1, 1), (2, 70, 5), (3, 100, 3), (8, 24, 7), (9, 25, 500), (110, 33, 16), (30, 3, 20), (17, 800, 2)]
    {
        for (op, make, value) in rules {
            for (transposed, accumulate, in_place) in
                [(false, false, false), (true, false, false), (false, true, false), (false, false, true)]
            {
                let mut nest = Builder::new(1, Work::single());
                let (a, a_data) = nest.input("a", &[m, k]);
                let (b, b_data) = if transposed { nest.input("b", &[n, k]) } else { nest.input("b", &[k, n]) };
                let y = nest.output(&[m, n]);
                let (i, j, l) = (nest.variable(), nest.variable(), nest.variable());
                let (p, q) = (nest.variable(), nest.variable());
                let start = nest.nest.exprs.constant(0.25);
                let all = loops(&[(p, count(m)), (q, count(n))]);
                nest.leaf(plain(y, &[index(p), index(q)], all, start, Shape::default()));
                let left = nest.read(a, &[index(i), index(l)]);
                let place = if transposed { [index(j), index(l)] } else { [index(l), index(j)] };
                let right = nest.read(b, &place);
                let body = make(&mut nest, left, right);
                let around = loops(&[(i, count(m)), (j, count(n)), (l, count(k))]);
                let mut shape = nest.packed(1, &[left], &[right], &[]);
                shape.panels.as_mut().unwrap().lanes_in_place = in_place;
                let leaf = plain(y, &[index(i), index(j)], around, body, shape);
                nest.leaf(Leaf { outputs: 2, reduction: Some(op), accumulate, ..leaf });
                let (m, n, k) = (m as usize, n as usize, k as usize);
                let mut expected = Vec::new();
                for i in 0..m {
                    for j in 0..n {
                        let b_at = |l: usize| if transposed { b_data[j * k + l] } else { b_data[l * n + j] };
                        let terms = (0..k).map(|l| value(a_data[i * k + l], b_at(l)));
                        let start = if accumulate { 0.25 } else { op.neutral() };
                        expected.push(terms.fold(start, |total, term| op.combine().unwrap().apply(total, term)));
                    }
                }
                close(&nest.run(), &expected);
            }
        }
    }
}

fn squared(nest: &mut Builder, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
    let inner = nest.binary(op, a, b);
    let two = nest.nest.exprs.constant(2.0);
    nest.binary(BinaryOp::Pow, inner, two)
}

fn distance(nest: &mut Builder, a: ExprId, b: ExprId) -> ExprId {
    let inner = nest.binary(BinaryOp::Sub, a, b);
    nest.nest.exprs.add(Expr::Unary(UnaryOp::Abs, inner))
}

#[test]
fn operands_of_a_contraction_may_be_computed() {
    // y[i, j] = sum[k] -exp(a[i, k]) * w[k] * b[k, j] / (2 + b[j, k])
    let mut nest = Builder::new(1, Work::single());
    let (a, a_data) = nest.input("a", &[13, 300]);
    let (b, b_data) = nest.input("b", &[300, 300]);
    let (w, w_data) = nest.input("w", &[300]);
    let y = nest.output(&[13, 300]);
    let (i, j, k) = (nest.variable(), nest.variable(), nest.variable());
    let left = nest.read(a, &[index(i), index(k)]);
    let left = nest.nest.exprs.add(Expr::Unary(UnaryOp::Exp, left));
    let left = nest.nest.exprs.add(Expr::Unary(UnaryOp::Neg, left));
    let weight = nest.read(w, &[index(k)]);
    let right = nest.read(b, &[index(k), index(j)]);
    let below = nest.read(b, &[index(j), index(k)]);
    let two = nest.nest.exprs.constant(2.0);
    let below = nest.binary(BinaryOp::Add, two, below);
    let right = nest.binary(BinaryOp::Div, right, below);
    let left = nest.binary(BinaryOp::Mul, left, weight);
    let body = nest.binary(BinaryOp::Mul, left, right);
    let around = loops(&[(i, count(13)), (j, count(300)), (k, count(300))]);
    let shape = nest.packed(1, &[left], &[right], &[]);
    let leaf = plain(y, &[index(i), index(j)], around, body, shape);
    nest.leaf(Leaf { outputs: 2, reduction: Some(ReduceOp::Sum), ..leaf });
    let mut expected = Vec::new();
    for i in 0..13 {
        for j in 0..300 {
            let term =
                |k: usize| -a_data[i * 300 + k].exp() * w_data[k] * b_data[k * 300 + j] / (2.0 + b_data[j * 300 + k]);
            expected.push((0..300).map(term).sum());
        }
    }
    close(&nest.run(), &expected);
}

#[test]
fn packed_rows_are_kept_for_blocks_of_lanes() {
    // y[i, 32*b + j] = sum[k, l in p] w[k] * a[i, k + l] * z[b, k + l, j], with 32 lanes in all blocks but the last
    let (rows, blocks, columns) = (101, 3, 71);
    for in_place in [false, true] {
        let mut nest = Builder::new(1, Work::single());
        let (a, a_data) = nest.input("a", &[rows, 12]);
        let (z, z_data) = nest.input("z", &[blocks, 12, 32]);
        let (w, w_data) = nest.input("w", &[10]);
        let y = nest.output(&[rows, columns]);
        let [i, b, j, k, l] = std::array::from_fn(|_| nest.variable());
        let weight = nest.read(w, &[index(k)]);
        let left = nest.read(a, &[index(i), index(k) + index(l)]);
        let right = nest.read(z, &[index(b), index(k) + index(l), index(j)]);
        let rest = nest.binary(BinaryOp::Mul, weight, right);
        let body = nest.binary(BinaryOp::Mul, left, rest);
        let start = index(b).scale(&Int::from(32));
        let lanes = Range { low: vec![number(0)], high: vec![number(31), number(columns - 1) - start.clone()] };
        let around = loops(&[(i, count(rows)), (b, count(blocks)), (j, lanes), (k, count(10)), (l, count(3))]);
        let mut shape = nest.packed(2, &[left], &[right], &[weight]);
        let panels = shape.panels.as_mut().unwrap();
        (panels.lanes_in_place, panels.kept) = (in_place, Some(1));
        let leaf = plain(y, &[index(i), start + index(j)], around, body, shape);
        nest.leaf(Leaf { outputs: 3, reduction: Some(ReduceOp::Sum), ..leaf });
        let mut expected = Vec::new();
        for (i, j) in (0..rows as usize).flat_map(|i| (0..columns as usize).map(move |j| (i, j))) {
            let term =
                |k: usize, l: usize| w_data[k] * a_data[i * 12 + k + l] * z_data[(j / 32 * 12 + k + l) * 32 + j % 32];
            expected.push((0..10).flat_map(|k| (0..3).map(move |l| (k, l))).map(|(k, l)| term(k, l)).sum());
        }
        close(&nest.run(), &expected);
    }
}

#[test]
fn reductions_in_lanes_with_two_unrolled_loops() {
    // y[i, j] = sum or max[k, l] a[i, k, l] * b[j, k, l] or a[i, k, l] + b[j, k, l]
    let shapes = [(5, 7, 19), (1, 2, 3), (8, 4, 40)];
    let rules = [(ReduceOp::Sum, BinaryOp::Mul), (ReduceOp::Max, BinaryOp::Add)];
    for ((rows, columns, length), (reduction, op)) in shapes.into_iter().flat_map(|s| rules.map(|r| (s, r))) {
        let mut nest = Builder::new(1, Work::single());
        let (a, a_data) = nest.input("a", &[rows, 3, length]);
        let (b, b_data) = nest.input("b", &[columns, 3, length]);
        let y = nest.output(&[rows, columns]);
        let [i, j, k, l] = std::array::from_fn(|_| nest.variable());
        let left = nest.read(a, &[index(i), index(k), index(l)]);
        let right = nest.read(b, &[index(j), index(k), index(l)]);
        let body = nest.binary(op, left, right);
        let around = loops(&[(i, count(rows)), (j, count(columns)), (k, count(3)), (l, count(length))]);
        let mut leaf = plain(y, &[index(i), index(j)], around, body, lanes(3));
        (leaf.loops[0].kind, leaf.loops[1].kind) = (Kind::Unrolled(4), Kind::Unrolled(4));
        nest.leaf(Leaf { outputs: 2, reduction: Some(reduction), ..leaf });
        let terms = 3 * length as usize;
        let expected = a_data.chunks(terms).flat_map(|a| b_data.chunks(terms).map(move |b| (a, b)));
        let expected = expected.map(|(a, b)| match reduction {
            ReduceOp::Sum => a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>(),
            _ => a.iter().zip(b).map(|(a, b)| a + b).fold(f64::NEG_INFINITY, f64::max),
        });
        close(&nest.run(), &expected.collect::<Vec<_>>());
    }
}
