//! Leaves of short rows and short reductions: shifted and collapsed loops, sweeps, packed rows.

use crate::builder::{Builder, Shape, close, count, index, lanes, loops, number, plain, range};
use crate::programs::compare;
use gradix::domain::sizes::{Known, bind};
use gradix::nest::{Leaf, LoopId, Work};
use gradix::program::{Affine, BinaryOp, Constraint, Expr, ExprId, ReduceOp, UnaryOp};
use gradix::{Int, Resolved};

/// Where `y[i, j]` of a matrix of these extents is stored.
#[derive(Clone, Copy, Debug)]
enum Layout {
    Plain,
    Backwards,
    Transposed,
}

impl Layout {
    fn subscripts(self, (i, j): (LoopId, LoopId), (rows, columns): (i64, i64)) -> [Affine; 2] {
        match self {
            Layout::Plain => [index(i), index(j)],
            Layout::Backwards => [number(rows - 1) - index(i), number(columns - 1) - index(j)],
            Layout::Transposed => [index(j), index(i)],
        }
    }

    fn extents(self, (rows, columns): (i64, i64)) -> [i64; 2] {
        if matches!(self, Layout::Transposed) { [columns, rows] } else { [rows, columns] }
    }

    fn place(self, (i, j): (usize, usize), (rows, columns): (usize, usize)) -> usize {
        match self {
            Layout::Plain => i * columns + j,
            Layout::Backwards => (rows - 1 - i) * columns + columns - 1 - j,
            Layout::Transposed => j * rows + i,
        }
    }
}

const LAYOUTS: [Layout; 3] = [Layout::Plain, Layout::Backwards, Layout::Transposed];
const SHAPES: [(i64, i64); 9] = [(0, 3), (3, 0), (1, 1), (1, 70), (5, 1), (70, 3), (300, 7), (5, 17), (40, 150)];

type Make = fn(&mut Builder, ExprId, ExprId) -> ExprId;
type Value = fn(f64, f64) -> f64;

/// What a term is made of: rules that sweeps know, and one that they don't.
const RULES: [(ReduceOp, Make, Value); 7] = [
    (ReduceOp::Sum, |_, _, b| b, |_, b| b),
    (ReduceOp::Prod, |_, _, b| b, |_, b| b),
    (ReduceOp::Max, |_, _, b| b, |_, b| b),
    (ReduceOp::Min, |_, _, b| b, |_, b| b),
    (ReduceOp::Sum, |n, a, b| n.binary(BinaryOp::Mul, b, a), |a, b| a * b),
    (ReduceOp::Sum, squared_difference, |a, b| (a - b) * (a - b)),
    (ReduceOp::Sum, |n, a, b| n.binary(BinaryOp::Max, a, b), f64::max),
];

fn squared_difference(nest: &mut Builder, a: ExprId, b: ExprId) -> ExprId {
    let difference = nest.binary(BinaryOp::Sub, a, b);
    nest.binary(BinaryOp::Mul, difference, difference)
}

/// `y[i, j] ⊕= f(a[k], b[k, j])` over `k in i..i + 4`, from row 2 on.
#[test]
fn windows_that_move_with_the_row() {
    for (shape, layout) in SHAPES.into_iter().flat_map(|shape| LAYOUTS.map(|layout| (shape, layout))) {
        for (op, make, value) in RULES {
            for (accumulate, guarded) in [(false, false), (true, false), (true, true)] {
                let (rows, columns) = shape;
                let mut nest = Builder::new(1, Work::single());
                let (a, a_data) = nest.input("a", &[rows + 3]);
                let (b, b_data) = nest.input("b", &[rows + 3, columns]);
                let y = nest.output(&layout.extents(shape));
                let [i, j, k, p, q] = std::array::from_fn(|_| nest.variable());
                let start = nest.nest.exprs.constant(0.25);
                let all = loops(&[(p, count(rows)), (q, count(columns))]);
                nest.leaf(plain(y, &layout.subscripts((p, q), shape), all, start, Shape::default()));
                let left = nest.read(a, &[index(k)]);
                let right = nest.read(b, &[index(k), index(j)]);
                let body = make(&mut nest, left, right);
                let window = range(index(i), index(i).shift(3));
                let around = loops(&[(i, count(rows)), (j, count(columns)), (k, window)]);
                let leaf = plain(y, &layout.subscripts((i, j), shape), around, body, lanes(1));
                let guards = if guarded { vec![Constraint::non_negative(index(i).shift(-2))] } else { Vec::new() };
                nest.leaf(Leaf { outputs: 2, reduction: Some(op), accumulate, guards, ..leaf });
                let (rows, columns) = (rows as usize, columns as usize);
                let mut expected = vec![0.0; rows * columns];
                for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
                    let window = if guarded && i < 2 { i..i } else { i..i + 4 };
                    let terms = window.map(|k| value(a_data[k], b_data[k * columns + j]));
                    let start = if accumulate { 0.25 } else { op.neutral() };
                    let total = terms.fold(start, |total, term| op.combine().unwrap().apply(total, term));
                    expected[layout.place((i, j), (rows, columns))] = total;
                }
                close(&nest.run(), &expected);
            }
        }
    }
}

/// More terms than a table holds, in two loops of which one depends on the other, with a guard.
#[test]
fn sums_of_many_terms() {
    for accumulate in [false, true] {
        let mut nest = Builder::new(1, Work::single());
        let (a, data) = nest.input("a", &[70, 70, 3]);
        let y = nest.output(&[3]);
        let [j, k, l, p] = std::array::from_fn(|_| nest.variable());
        let start = nest.nest.exprs.constant(0.25);
        nest.leaf(plain(y, &[index(p)], loops(&[(p, count(3))]), start, Shape::default()));
        let body = nest.read(a, &[index(k), index(l), index(j)]);
        let around = loops(&[(j, count(3)), (k, count(70)), (l, range(number(0), index(k)))]);
        let leaf = plain(y, &[index(j)], around, body, lanes(0));
        let guards = vec![Constraint::zero((index(k) + index(l)).remainder(&Int::from(2)))];
        nest.leaf(Leaf { outputs: 1, reduction: Some(ReduceOp::Sum), accumulate, guards, ..leaf });
        let pairs = || (0..70).flat_map(|k| (0..=k).map(move |l| (k, l))).filter(|(k, l)| (k + l) % 2 == 0);
        assert!(pairs().count() > 1024);
        let total = |j: usize| pairs().map(|(k, l)| data[(k * 70 + l) * 3 + j]).sum::<f64>();
        let start = if accumulate { 0.25 } else { 0.0 };
        close(&nest.run(), &(0..3).map(|j| start + total(j)).collect::<Vec<_>>());
    }
}

/// `y[i, j] = exp(x[i, j] * g[j]) * s[i] - x[N - 1 - i, j]`, in rows without gaps and with.
#[test]
fn short_rows_of_pointwise_expressions() {
    let shapes = [(0, 3), (1, 1), (7, 1), (1000, 1), (1, 3), (300, 3), (1100, 4), (50, 15), (50, 16), (9, 40)];
    for ((rows, columns), gap) in shapes.into_iter().flat_map(|shape| [0, 2].map(|gap| (shape, gap))) {
        let mut nest = Builder::new(1, Work::single());
        let (x, x_data) = nest.input("x", &[rows, columns]);
        let (g, g_data) = nest.input("g", &[columns]);
        let (s, s_data) = nest.input("s", &[rows]);
        let y = nest.output(&[rows, columns + gap]);
        let [i, j, p, q] = std::array::from_fn(|_| nest.variable());
        let zero = nest.nest.exprs.constant(0.0);
        let all = loops(&[(p, count(rows)), (q, count(columns + gap))]);
        nest.leaf(plain(y, &[index(p), index(q)], all, zero, Shape::default()));
        let own = nest.read(x, &[index(i), index(j)]);
        let across = nest.read(x, &[number(rows - 1) - index(i), index(j)]);
        let (column, row) = (nest.read(g, &[index(j)]), nest.read(s, &[index(i)]));
        let product = nest.binary(BinaryOp::Mul, own, column);
        let growth = nest.nest.exprs.add(Expr::Unary(UnaryOp::Exp, product));
        let scaled = nest.binary(BinaryOp::Mul, growth, row);
        let body = nest.binary(BinaryOp::Sub, scaled, across);
        let around = loops(&[(i, count(rows)), (j, count(columns))]);
        nest.leaf(plain(y, &[index(i), index(j)], around, body, lanes(1)));
        let (rows, columns, gap) = (rows as usize, columns as usize, gap as usize);
        let mut expected = vec![0.0; rows * (columns + gap)];
        for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
            let growth = (x_data[i * columns + j] * g_data[j]).exp();
            expected[i * (columns + gap) + j] = growth * s_data[i] - x_data[(rows - 1 - i) * columns + j];
        }
        close(&nest.run(), &expected);
    }
}

#[test]
fn programs_of_short_rows_agree_with_the_oracle() {
    let texts = [
        "input x[N + 3, K], g[K], s[N]
a[i in 0..N, j] = sum[k in i..i + 4] x[k, j]
b[i in 0..N, j] = max[k in max(0, i - 2)..=min(N - 1, i + 1)] x[k, j] * g[j]
c[j, i in 0..N] = sum[k in 0..3] x[i + k, j]
d[i in 0..N, j] = max(x[i, j] * g[j] + s[i], 0)
e[i in 0..N, j] = if i < 3 then x[i + 1, j] * s[i] else if i + j < N then exp(x[i, j]) else g[j]
f[i in 0..N] = sum[j] x[i, j] * g[j]
h[i in 0..N, j in 0..K] = prod[k in 0..4, (i + k) % 2 == 0] x[i + k, K - 1 - j]",
        "input x[N, K, K], y[N, K, K], s[N], t[K, K]
a[b, i, j] = s[b] * x[b, i, j] * y[b, i, j] + x[b, i, j]
c[b, i, j] = x[b, i, j] * t[i, j] + x[b, j, i]
d[b, i, j] = sum[k] x[b, i, k] * y[b, k, j]
e[b, i, j] = sum[k] x[b, i, k] * y[b, j, k]
f[b] = sum[i, j] x[b, i, j] * y[b, i, j] * t[i, j]
g[i, j] = min[b] x[b, i, j]",
    ];
    let mut compared = 0;
    for text in texts {
        let Resolved { program, .. } = gradix::syntax::parse(text).and_then(|ast| gradix::resolve(&ast, &[])).unwrap();
        let derivative = gradix::derive(&program, &Default::default()).unwrap().program;
        for (program, (n, k)) in [&program, &derivative]
            .into_iter()
            .flat_map(|program| [(0, 3), (5, 0), (1, 1), (40, 3), (9, 17)].map(|sizes| (program, sizes)))
        {
            let given = [("N", n), ("K", k)].map(|(name, size)| (name.to_string(), Int::from(size)));
            let known = Known { given: given.into_iter().collect(), shapes: Vec::new() };
            let Ok(sizes) = bind(program, &known, &Default::default()) else { continue };
            compare(text, program, &sizes);
            compared += 1;
        }
    }
    assert!(compared > 15, "{compared}");
}
