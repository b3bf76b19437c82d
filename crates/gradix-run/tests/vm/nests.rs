//! Nests made by hand, one for every kind of leaf, against plain loops.

use crate::builder::{Builder, Shape, close, count, index, lanes, loops, number, plain, range};
use crate::machine::run;
use gradix::Int;
use gradix::nest::{FIRST, ITEM, LAST, Leaf, LoopId, Scope, Step, Tile, Together, Work};
use gradix::program::{Affine, BinaryOp, Comparison, Cond, Constraint, Expr, ParamId, Range, ReduceOp, UnaryOp};
use gradix_run::vm::Vm;

#[test]
fn lanes_with_all_kinds_of_strides() {
    // y[i, j] = a[i, j] + 2*b[j, i] + a[i, 40 - j] * b[2*j % …] with lanes over j, i, or none.
    for shape in [Shape::default(), lanes(0), lanes(1)] {
        let mut nest = Builder::new(1, Work::single());
        let (a, a_data) = nest.input("a", &[7, 41]);
        let (b, b_data) = nest.input("b", &[82, 7]);
        let y = nest.output(&[7, 41]);
        let (i, j) = (nest.variable(), nest.variable());
        let first = nest.read(a, &[index(i), index(j)]);
        let second = nest.read(b, &[index(j), index(i)]);
        let back = nest.read(a, &[index(i), number(40) - index(j)]);
        let apart = nest.read(b, &[index(j).scale(&Int::from(2)), index(i)]);
        let product = nest.binary(BinaryOp::Mul, back, apart);
        let two = nest.nest.exprs.constant(2.0);
        let second = nest.binary(BinaryOp::Mul, two, second);
        let sum = nest.binary(BinaryOp::Add, first, second);
        let body = nest.binary(BinaryOp::Sub, sum, product);
        let around = loops(&[(i, count(7)), (j, count(41))]);
        nest.leaf(plain(y, &[index(i), index(j)], around, body, shape));
        let mut expected = Vec::new();
        for i in 0..7 {
            for j in 0..41 {
                let product = a_data[i * 41 + 40 - j] * b_data[2 * j * 7 + i];
                expected.push(a_data[i * 41 + j] + 2.0 * b_data[j * 7 + i] - product);
            }
        }
        close(&nest.run(), &expected);
    }
}

#[test]
fn results_may_lie_apart_or_backwards() {
    // y[2*i] = x[i]^3 - i and y[2*N - 1 - 2*i] = …
    for shape in [Shape::default(), lanes(0)] {
        let mut nest = Builder::new(1, Work::single());
        let (x, data) = nest.input("x", &[1500]);
        let y = nest.output(&[3000]);
        let i = nest.variable();
        let value = nest.read(x, &[index(i)]);
        let three = nest.nest.exprs.constant(3.0);
        let cube = nest.binary(BinaryOp::Pow, value, three);
        let own = nest.nest.exprs.add(Expr::Index(index(i)));
        let body = nest.binary(BinaryOp::Sub, cube, own);
        let twice = index(i).scale(&Int::from(2));
        nest.leaf(plain(y, std::slice::from_ref(&twice), loops(&[(i, count(1500))]), body, shape.clone()));
        nest.leaf(plain(y, &[number(2999) - twice], loops(&[(i, count(1500))]), value, shape));
        let mut expected = vec![0.0; 3000];
        for i in 0..1500 {
            expected[2 * i] = data[i] * data[i] * data[i] - i as f64;
            expected[2999 - 2 * i] = data[i];
        }
        close(&nest.run(), &expected);
    }
}

#[test]
fn floors_in_lanes_are_evaluated_lane_by_lane() {
    // y[i] = x[i // 3] + i % 4; no schedule may take i as lanes, the vm does
    let mut nest = Builder::new(1, Work::single());
    let (x, data) = nest.input("x", &[100]);
    let y = nest.output(&[300]);
    let i = nest.variable();
    let value = nest.read(x, &[index(i).floor_div(&Int::from(3))]);
    let rest = nest.nest.exprs.add(Expr::Index(index(i).remainder(&Int::from(4))));
    let body = nest.binary(BinaryOp::Add, value, rest);
    nest.leaf(plain(y, &[index(i)], loops(&[(i, count(300))]), body, Shape::default()));
    close(&nest.run(), &(0..300).map(|i| data[i / 3] + (i % 4) as f64).collect::<Vec<_>>());
}

#[test]
fn reductions_with_lanes_over_outputs_over_the_reduction_and_without() {
    let combine = |op: ReduceOp, a: f64, b: f64| op.combine().unwrap().apply(a, b);
    for op in [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min] {
        for accumulate in [false, true] {
            for shape in [Shape::default(), lanes(0), lanes(1)] {
                // y[i] ⊕= exp(a[i, k]) over k in 0..37
                let mut nest = Builder::new(1, Work::single());
                let (a, data) = nest.input("a", &[11, 37]);
                let y = nest.output(&[11]);
                let (i, k, j) = (nest.variable(), nest.variable(), nest.variable());
                let half = nest.nest.exprs.constant(0.5);
                nest.leaf(plain(y, &[index(j)], loops(&[(j, count(11))]), half, Shape::default()));
                let value = nest.read(a, &[index(i), index(k)]);
                let body = nest.nest.exprs.add(Expr::Unary(UnaryOp::Exp, value));
                let around = loops(&[(i, count(11)), (k, count(37))]);
                let leaf = plain(y, &[index(i)], around, body, shape);
                nest.leaf(Leaf { outputs: 1, reduction: Some(op), accumulate, ..leaf });
                let start = if accumulate { 0.5 } else { op.neutral() };
                let row = |i: usize| data[i * 37..][..37].iter().fold(start, |total, v| combine(op, total, v.exp()));
                close(&nest.run(), &(0..11).map(row).collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn leaves_that_run_together_hand_on_what_they_compute() {
    // p[i, j] = x[i, j]^2; y[i] = sum[j] p[i, j]; y[rows + j] = sum[i] p[i, j], added up row by row
    for (rows, columns) in [(5, 9001), (300, 33), (4, 0), (1, 1)] {
        let mut nest = Builder::new(1, Work::single());
        let (x, data) = nest.input("x", &[rows, columns]);
        let y = nest.output(&[rows + columns]);
        let part = nest.buffer("p", Scope::Local(0), &[number(rows), number(columns)]);
        let [i, j] = std::array::from_fn(|_| nest.variable());
        let zero = nest.nest.exprs.constant(0.0);
        let below = [index(j).shift(rows)];
        nest.leaf(plain(y, &below, loops(&[(j, count(columns))]), zero, lanes(0)));
        let (own, read) = (nest.read(x, &[index(i), index(j)]), nest.read(part, &[index(i), index(j)]));
        let held = nest.read(y, &below);
        let (square, added) = (nest.binary(BinaryOp::Mul, own, own), nest.binary(BinaryOp::Add, held, read));
        let around = || loops(&[(i, count(rows)), (j, count(columns))]);
        let sum = plain(y, &[index(i)], around(), read, lanes(1));
        let leaves = vec![
            plain(part, &[index(i), index(j)], around(), square, lanes(1)),
            Leaf { outputs: 1, reduction: Some(ReduceOp::Sum), ..sum },
            plain(y, &below, around(), added, lanes(1)),
        ];
        nest.nest.kernels[0].steps.push(Step::Together(Together { leaves, rows: None, unstored: Vec::new() }));
        let squares: Vec<f64> = data.iter().map(|x| x * x).collect();
        let mut expected: Vec<f64> =
            (0..rows as usize).map(|i| squares[i * columns as usize..][..columns as usize].iter().sum()).collect();
        expected.extend((0..columns as usize).map(|j| squares.iter().skip(j).step_by(columns as usize).sum::<f64>()));
        close(&nest.run(), &expected);
    }
}

#[test]
fn a_convolution_with_guards_and_an_output_that_shifts_its_range() {
    // y[o, i, j] = sum[c, p, q] x[c, i + p - 1, j + q] * w[o, c, p, q] where i + p is odd or p is 0, inside x
    let mut nest = Builder::new(1, Work::single());
    let (x, x_data) = nest.input("x", &[3, 9, 30]);
    let (w, w_data) = nest.input("w", &[10, 3, 3, 3]);
    let y = nest.output(&[10, 9, 28]);
    let v: Vec<LoopId> = (0..6).map(|_| nest.variable()).collect();
    let (o, i, j, c, p, q) = (v[0], v[1], v[2], v[3], v[4], v[5]);
    let left = nest.read(x, &[index(c), index(i) + index(p).shift(-1), index(j) + index(q)]);
    let right = nest.read(w, &[index(o), index(c), index(p), index(q)]);
    let body = nest.binary(BinaryOp::Mul, left, right);
    let rows = Range { low: vec![number(0), number(1) - index(i)], high: vec![number(2), number(9) - index(i)] };
    let around = loops(&[(o, count(10)), (i, count(9)), (j, count(28)), (c, count(3)), (p, rows), (q, count(3))]);
    let guard = Constraint::zero((index(i) + index(p).scale(&Int::from(2)) + index(c)).remainder(&Int::from(2)));
    let leaf = plain(y, &[index(o), index(i), index(j)], around, body, Shape { rows: Some((0, 8)), ..lanes(2) });
    nest.leaf(Leaf { outputs: 3, reduction: Some(ReduceOp::Sum), guards: vec![guard], ..leaf });
    let mut expected = Vec::new();
    for (o, i, j) in (0..10).flat_map(|o| (0..9).flat_map(move |i| (0..28).map(move |j| (o, i, j)))) {
        let mut sum = 0.0;
        for (c, p, q) in (0..3).flat_map(|c| (0..3).flat_map(move |p| (0..3).map(move |q| (c, p, q)))) {
            if (1..10).contains(&(i + p)) && (i + 2 * p + c) % 2 == 0 {
                sum += x_data[(c * 9 + i + p - 1) * 30 + j + q] * w_data[((o * 3 + c) * 3 + p) * 3 + q];
            }
        }
        expected.push(sum);
    }
    close(&nest.run(), &expected);
}

#[test]
fn an_untaken_side_is_not_read() {
    // y[i, j] = (if i >= 1 and x[i - 1, j] > 0 then x[i - 1, j] else -1) + (if x[i, j] > 0 or i == 0 then 1 else 2)
    for shape in [Shape::default(), lanes(1)] {
        let mut nest = Builder::new(1, Work::single());
        let (x, data) = nest.input("x", &[20, 30]);
        let y = nest.output(&[20, 30]);
        let (i, j) = (nest.variable(), nest.variable());
        let before = nest.read(x, &[index(i).shift(-1), index(j)]);
        let own = nest.read(x, &[index(i), index(j)]);
        let exprs = &mut nest.nest.exprs;
        let [zero, one, two, less] = [0.0, 1.0, 2.0, -1.0].map(|value| exprs.constant(value));
        let inside = exprs.add_condition(Cond::Index(Constraint::non_negative(index(i).shift(-1))));
        let positive = exprs.add_condition(Cond::Compare(Comparison::Lt, zero, before));
        let both = exprs.add_condition(Cond::And(inside, positive));
        let first = exprs.add(Expr::Select(both, before, less));
        let above = exprs.add_condition(Cond::Compare(Comparison::Le, own, zero));
        let above = exprs.add_condition(Cond::Not(above));
        let start = exprs.add_condition(Cond::Index(Constraint::zero(index(i))));
        let either = exprs.add_condition(Cond::Or(above, start));
        let second = exprs.add(Expr::Select(either, one, two));
        let body = exprs.add(Expr::Binary(BinaryOp::Add, first, second));
        let around = loops(&[(i, count(20)), (j, count(30))]);
        nest.leaf(plain(y, &[index(i), index(j)], around, body, shape));
        let mut expected = Vec::new();
        for i in 0..20 {
            for j in 0..30 {
                let before = if i >= 1 { data[(i - 1) * 30 + j] } else { -1.0 };
                let first = if before > 0.0 { before } else { -1.0 };
                expected.push(first + if data[i * 30 + j] > 0.0 || i == 0 { 1.0 } else { 2.0 });
            }
        }
        close(&nest.run(), &expected);
    }
}

#[test]
fn conditions_that_change_within_a_reduction() {
    // y[j] = sum[k] if k >= 3 then x[k - 3, j] * exp(z[j]) else z[j]
    for shape in [Shape::default(), lanes(0)] {
        let mut nest = Builder::new(1, Work::single());
        let (x, x_data) = nest.input("x", &[5, 50]);
        let (z, z_data) = nest.input("z", &[50]);
        let y = nest.output(&[50]);
        let (j, k) = (nest.variable(), nest.variable());
        let before = nest.read(x, &[index(k).shift(-3), index(j)]);
        let own = nest.read(z, &[index(j)]);
        let growth = nest.nest.exprs.add(Expr::Unary(UnaryOp::Exp, own));
        let product = nest.binary(BinaryOp::Mul, before, growth);
        let exprs = &mut nest.nest.exprs;
        let inside = exprs.add_condition(Cond::Index(Constraint::non_negative(index(k).shift(-3))));
        let body = exprs.add(Expr::Select(inside, product, own));
        let leaf = plain(y, &[index(j)], loops(&[(j, count(50)), (k, count(8))]), body, shape);
        nest.leaf(Leaf { outputs: 1, reduction: Some(ReduceOp::Sum), ..leaf });
        let term = |k: usize, j: usize| if k >= 3 { x_data[(k - 3) * 50 + j] * z_data[j].exp() } else { z_data[j] };
        close(&nest.run(), &(0..50).map(|j| (0..8).map(|k| term(k, j)).sum()).collect::<Vec<_>>());
    }
}

#[test]
fn guards_leave_points_alone_and_empty_ranges_do_nothing() {
    for shape in [Shape::default(), lanes(1)] {
        let mut nest = Builder::new(1, Work::single());
        let y = nest.output(&[6, 10]);
        let (p, q, i, j) = (nest.variable(), nest.variable(), nest.variable(), nest.variable());
        let [one, two] = [1.0, 2.0].map(|value| nest.nest.exprs.constant(value));
        nest.leaf(plain(y, &[index(p), index(q)], loops(&[(p, count(6)), (q, count(10))]), one, Shape::default()));
        let around = loops(&[(i, count(6)), (j, count(10))]);
        let odd = Constraint::zero(index(i).shift(1).remainder(&Int::from(2)));
        let leaf = plain(y, &[index(i), index(j)], around, two, shape.clone());
        nest.leaf(Leaf { guards: vec![odd], ..leaf.clone() });
        let nothing = loops(&[(i, range(number(3), number(2))), (j, count(10))]);
        nest.leaf(Leaf { loops: nothing, ..leaf });
        let expected: Vec<f64> = (0..60).map(|at| if (at / 10) % 2 == 1 { 2.0 } else { 1.0 }).collect();
        close(&nest.run(), &expected);
    }
}

#[test]
fn empty_reductions_give_the_neutral_value() {
    for op in [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min] {
        for shape in [Shape::default(), lanes(0), lanes(1), lanes(2), Shape { rows: Some((0, 4)), ..lanes(1) }] {
            let mut nest = Builder::new(1, Work::single());
            let (a, _) = nest.input("a", &[5, 7]);
            let (b, _) = nest.input("b", &[7, 9]);
            let y = nest.output(&[5, 9]);
            let (i, j, k) = (nest.variable(), nest.variable(), nest.variable());
            let (left, right) = (nest.read(a, &[index(i), index(k)]), nest.read(b, &[index(k), index(j)]));
            let body = nest.binary(if op == ReduceOp::Sum { BinaryOp::Mul } else { BinaryOp::Add }, left, right);
            let around = loops(&[(i, count(5)), (j, count(9)), (k, range(number(4), number(3)))]);
            let leaf = plain(y, &[index(i), index(j)], around, body, shape);
            nest.leaf(Leaf { outputs: 2, reduction: Some(op), ..leaf });
            close(&nest.run(), &[op.neutral(); 45]);
        }
    }
}

#[test]
fn items_tiles_and_local_buffers() {
    // t[i - first, j] = x[i, j]^2 by tiles of 16 columns, then y[i] = sum[j] t[i - first, j]; by 5 rows an item
    let n = Affine::param(ParamId(0));
    let work = Work::outermost(number(0), n.shift(-1), number(5));
    let mut nest = Builder::new(23, work);
    let (x, data) = nest.input("x", &[23, 50]);
    let y = nest.buffer("y", Scope::Output(0), &[n]);
    let pad = nest.buffer("pad", Scope::Local(0), &[number(3)]);
    let t = nest.buffer("t", Scope::Local(0), &[number(5), number(50)]);
    let (tile, i, j, k, l) = (nest.variable(), nest.variable(), nest.variable(), nest.variable(), nest.variable());
    let own = nest.nest.exprs.add(Expr::Index(index(ITEM)));
    nest.leaf(plain(pad, &[number(2)], Vec::new(), own, Shape::default()));
    let value = nest.read(x, &[index(i), index(j)]);
    let square = nest.binary(BinaryOp::Mul, value, value);
    let columns = Range { low: vec![index(tile)], high: vec![index(tile).shift(15), number(49)] };
    let around = loops(&[(i, range(index(FIRST), index(LAST))), (j, columns)]);
    let place = index(i) - index(FIRST);
    let leaf = plain(t, &[place, index(j)], around, square, lanes(1));
    let steps = vec![Step::Leaf(leaf)];
    nest.nest.kernels[0].steps.push(Step::Tile(Tile { size: 16, ..Tile::each(tile, count(50), steps) }));
    let value = nest.read(t, &[index(k) - index(FIRST), index(l)]);
    let offset = nest.read(pad, &[number(2)]);
    let body = nest.binary(BinaryOp::Add, value, offset);
    let around = loops(&[(k, range(index(FIRST), index(LAST))), (l, count(50))]);
    let leaf = plain(y, &[index(k)], around, body, lanes(1));
    nest.leaf(Leaf { outputs: 1, reduction: Some(ReduceOp::Sum), ..leaf });
    let row = |i: usize| data[i * 50..][..50].iter().map(|v| v * v + (i / 5) as f64).sum();
    close(&nest.run(), &(0..23).map(row).collect::<Vec<_>>());
    let sizes = [Int::from(23)];
    let (one, many) =
        (run::<f64>(&nest.nest, &sizes, &nest.inputs, 1), run::<f64>(&nest.nest, &sizes, &nest.inputs, 4));
    assert_eq!(one["y"], many["y"]);
}

#[test]
fn sizes_past_all_memory_are_refused() {
    let n = Affine::param(ParamId(0));
    let mut nest = Builder::new(1, Work::single());
    let y = nest.buffer("y", Scope::Output(0), &[n.clone(), n.clone()]);
    let (i, j) = (nest.variable(), nest.variable());
    let one = nest.nest.exprs.constant(1.0);
    let all = loops(&[(i, Range::extent(n.clone())), (j, Range::extent(n))]);
    nest.leaf(plain(y, &[index(i), index(j)], all, one, lanes(1)));
    assert!(Vm::<f64>::new(&nest.nest, &[Int::from(100)]).is_ok());
    assert!(Vm::<f64>::new(&nest.nest, &[Int::from(1i64 << 31)]).is_err());
    assert!(Vm::<f64>::new(&nest.nest, &[Int::from(1i64 << 62)]).is_err());
}

#[test]
fn lanes_are_split_where_conditions_and_guards_change() {
    // y[i] = sum[j, 2*j <= 60 + i] if 3*j >= 2*i then x[j] * i else if i == j + 9 then 7 else x[49 - j]
    // Lanes are left to the machine: over i where its results lie side by side, else over j.
    for apart in [1, 2] {
        let mut nest = Builder::new(1, Work::single());
        let (x, data) = nest.input("x", &[50]);
        let y = nest.output(&[45 * apart]);
        let (i, j) = (nest.variable(), nest.variable());
        let (own, other) = (nest.read(x, &[index(j)]), nest.read(x, &[number(49) - index(j)]));
        let times = |factor: i64, variable: LoopId| index(variable).scale(&Int::from(factor));
        let exprs = &mut nest.nest.exprs;
        let value = exprs.add(Expr::Index(index(i)));
        let product = exprs.add(Expr::Binary(BinaryOp::Mul, own, value));
        let seven = exprs.constant(7.0);
        let nine = exprs.add_condition(Cond::Index(Constraint::zero(index(i) - index(j).shift(9))));
        let rest = exprs.add(Expr::Select(nine, seven, other));
        let above = exprs.add_condition(Cond::Index(Constraint::non_negative(times(3, j) - times(2, i))));
        let body = exprs.add(Expr::Select(above, product, rest));
        let around = loops(&[(i, count(45)), (j, count(50))]);
        let guard = Constraint::non_negative(index(i).shift(60) - times(2, j));
        let leaf = plain(y, &[times(apart, i)], around, body, Shape::default());
        nest.leaf(Leaf { outputs: 1, reduction: Some(ReduceOp::Sum), guards: vec![guard], ..leaf });
        let term = |i: usize, j: usize| match () {
            () if 3 * j >= 2 * i => data[j] * i as f64,
            () if i == j + 9 => 7.0,
            () => data[49 - j],
        };
        let sum = |i: usize| (0..50).filter(|j| 2 * j <= 60 + i).map(|j| term(i, j)).sum();
        let found: Vec<f64> = nest.run().into_iter().step_by(apart as usize).collect();
        close(&found, &(0..45).map(sum).collect::<Vec<_>>());
    }
}

#[test]
fn steps_that_are_single_numbers() {
    // s[t % 2] = sin(s[(t + 1) % 2]) + x[N - t] * t; y[t] = if s[t % 2] < 0 then y[t - 1] - s[t % 2] else y[t - 1] * 0.5;
    // z[t] = z[t - 1] + x[t], and the same backwards, each alone
    let steps = 9001;
    let mut nest = Builder::new(1, Work::single());
    let (x, data) = nest.input("x", &[steps]);
    let y = nest.output(&[3 * steps]);
    let ring = nest.buffer("s", Scope::Local(0), &[number(2)]);
    let [t, u, v] = std::array::from_fn(|_| nest.variable());
    let slot = |lag: i64| [index(t).shift(lag).remainder(&Int::from(2))];
    let (zero, half) = (nest.nest.exprs.constant(0.0), nest.nest.exprs.constant(0.5));
    let single = |target, at: Affine, body| Step::Leaf(plain(target, &[at], Vec::new(), body, Shape::default()));
    for at in [0, steps, 3 * steps - 1] {
        nest.nest.kernels[0].steps.push(single(y, number(at), half));
    }
    nest.nest.kernels[0].steps.push(single(ring, number(0), half));
    let (before, now) = (nest.read(ring, &slot(1)), nest.read(ring, &slot(0)));
    let back = nest.read(x, &[number(steps) - index(t)]);
    let own = nest.nest.exprs.add(Expr::Index(index(t)));
    let sine = nest.nest.exprs.add(Expr::Unary(UnaryOp::Sin, before));
    let product = nest.binary(BinaryOp::Mul, back, own);
    let state = nest.binary(BinaryOp::Add, sine, product);
    let last = nest.read(y, &[index(t).shift(-1)]);
    let (less, scaled) = (nest.binary(BinaryOp::Sub, last, now), nest.binary(BinaryOp::Mul, last, half));
    let negative = nest.nest.exprs.add_condition(Cond::Compare(Comparison::Lt, now, zero));
    let choice = nest.nest.exprs.add(Expr::Select(negative, less, scaled));
    let both = vec![single(ring, slot(0)[0].clone(), state), single(y, index(t), choice)];
    let rising = [index(u).shift(steps - 1), index(u).shift(steps)];
    let falling = [number(3 * steps) - index(v), number(3 * steps - 1) - index(v)];
    let sum = |nest: &mut Builder, [from, to]: [Affine; 2], at: Affine| {
        let (held, term) = (nest.read(y, &[from]), nest.read(x, &[at]));
        let body = nest.binary(BinaryOp::Add, held, term);
        vec![single(y, to, body)]
    };
    let sums = [(u, sum(&mut nest, rising, index(u))), (v, sum(&mut nest, falling, index(v)))];
    for (variable, steps_of) in [(t, both)].into_iter().chain(sums) {
        let range = range(number(1), number(steps - 1));
        let tile = Tile { variable, range, size: 1, steps: steps_of, held: Vec::new() };
        nest.nest.kernels[0].steps.push(Step::Tile(tile));
    }
    let n = steps as usize;
    let mut expected = vec![0.5; 3 * n];
    let mut state = 0.5f64;
    for t in 1..n {
        state = state.sin() + data[n - t] * t as f64;
        expected[t] = if state < 0.0 { expected[t - 1] - state } else { expected[t - 1] * 0.5 };
        expected[n + t] = expected[n + t - 1] + data[t];
        expected[3 * n - 1 - t] = expected[3 * n - t] + data[t];
    }
    close(&nest.run(), &expected);
}
