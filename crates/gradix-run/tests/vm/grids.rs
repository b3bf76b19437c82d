//! Items in several dimensions, threads of an item, and what is staged near by: the shapes of nests for GPUs, which any
//! machine can run.

use crate::builder::{Builder, close, index, loops, number, range};
use gradix::nest::verify::{Rule, holds};
use gradix::nest::{FIRST, ITEM, Kind, LAST, Leaf, Loop, LoopId, Scope, Step, Tile, Work, verify};
use gradix::program::{Affine, BinaryOp, Expr, ExprId, Range, ReduceOp, TensorId};
use gradix::{Int, program::Constraint};

/// `v` in a range, with a kind.
fn of_kind(variable: LoopId, range: Range, kind: Kind) -> Loop {
    Loop { kind, ..loops(&[(variable, range)]).remove(0) }
}

/// Whether a rule does not hold.
fn broken(nest: &Builder, rule: Rule) -> bool {
    let checks = verify(&nest.nest).unwrap();
    checks.iter().any(|check| check.rule == rule && !holds(check, &[Int::ONE]))
}

#[test]
fn a_grid_has_an_item_for_each_place_of_its_dimensions() {
    // y[i, j, k] = x[i, j, k] + 100 * (item of i) + (item of j); by 2 values of i and 3 of j an item
    let mut nest = Builder::new(1, Work::outermost(number(0), number(6), number(2)));
    let along = nest.divide(5, 3);
    let (x, data) = nest.input("x", &[7, 5, 33]);
    let y = nest.output(&[7, 5, 33]);
    let (i, j, k) = (nest.variable(), nest.variable(), nest.variable());
    let subscripts = [i, j, k].map(index);
    let value = nest.read(x, &subscripts);
    let place = nest.nest.exprs.add(Expr::Index(index(ITEM).scale(&Int::from(100)) + index(along.item)));
    let body = nest.binary(BinaryOp::Add, value, place);
    let rows = of_kind(i, range(index(FIRST), index(LAST)), Kind::Serial);
    let columns = of_kind(j, range(index(along.first), index(along.last)), Kind::Serial);
    let lanes = of_kind(k, range(number(0), number(32)), Kind::Lanes(1));
    nest.leaf(Leaf::pointwise(y, subscripts.to_vec(), vec![rows, columns, lanes], body));
    let items = |at: usize| (100 * (at / 165 / 2) + at / 33 % 5 / 3) as f64;
    close(&nest.run(), &data.iter().enumerate().map(|(at, x)| x + items(at)).collect::<Vec<_>>());
    assert_eq!(nest.nest.items(&nest.nest.kernels[0], &[Int::ONE]), Some(8));
}

#[test]
fn items_that_meet_along_one_dimension_of_a_grid_are_refused() {
    let mut nest = Builder::new(1, Work::outermost(number(0), number(6), number(2)));
    let along = nest.divide(5, 3);
    let y = nest.output(&[7, 5]);
    let (i, j) = (nest.variable(), nest.variable());
    let one = nest.nest.exprs.constant(1.0);
    let rows = of_kind(i, range(index(FIRST), index(LAST)), Kind::Serial);
    let columns = |high: Affine| of_kind(j, range(index(along.first), high), Kind::Serial);
    let leaf = |high| Leaf::pointwise(y, vec![index(i), index(j)], vec![rows.clone(), columns(high)], one);
    nest.leaf(leaf(index(along.last)));
    let meet = |nest: &Builder| broken(nest, Rule::OneItem);
    assert!(!meet(&nest));
    for high in [index(along.last).shift(1), number(4)] {
        nest.nest.kernels[0].steps = vec![Step::Leaf(leaf(high))];
        assert!(meet(&nest));
    }
    let column = Leaf::pointwise(y, vec![index(i), number(0)], vec![rows.clone()], one);
    nest.nest.kernels[0].steps = vec![Step::Leaf(column)];
    assert!(meet(&nest));
}

/// The tile of a product of a GPU: 16 rows and 16 columns an item, 8 terms staged at a time.
///
/// ```text
/// items i by 16, j by 16:
///   near[…] = 0
///   tile box by 8:
///     a_near[i, k] = a[i, k]          threads
///     b_near[j, k] = b[j, k]          threads
///     near[i, j] += sum of (a_near[i, k] + b_near[j, k])^2
///   y[i, j] = near[i, j]
/// ```
fn staged(rows: i64, columns: i64, terms: i64, room: i64) -> (Builder, [Vec<f64>; 2]) {
    let mut nest = Builder::new(1, Work::outermost(number(0), number(rows - 1), number(16)));
    let along = nest.divide(columns, 16);
    let ((a, left), (b, right)) = (nest.input("a", &[rows, terms]), nest.input("b", &[columns, terms]));
    let y = nest.output(&[rows, columns]);
    let [near_a, near_b] = ["near_a", "near_b"].map(|name| nest.buffer(name, Scope::Local(0), &[16, room].map(number)));
    let near = nest.buffer("near", Scope::Local(0), &[16, 16].map(number));
    let (boxes, i, j, k) = (nest.variable(), nest.variable(), nest.variable(), nest.variable());
    let threads =
        |v, [first, last]: [LoopId; 2], count| of_kind(v, range(index(first), index(last)), Kind::Threads(count));
    let (of_i, of_j) = (threads(i, [FIRST, LAST], 16), threads(j, [along.first, along.last], 16));
    let in_box = Range { low: vec![index(boxes)], high: vec![index(boxes).shift(7), number(terms - 1)] };
    let place = vec![index(i) - index(FIRST), index(j) - index(along.first)];
    let zero = nest.nest.exprs.constant(0.0);
    nest.leaf(Leaf::pointwise(near, place.clone(), vec![of_i.clone(), of_j.clone()], zero));
    let mut stage = |to: TensorId, from: TensorId, of: &Loop, first: LoopId| {
        let value = nest.read(from, &[index(of.variable), index(k)]);
        let subscripts = vec![index(of.variable) - index(first), index(k) - index(boxes)];
        let columns = of_kind(k, in_box.clone(), Kind::Threads(8));
        Step::Leaf(Leaf::pointwise(to, subscripts, vec![of.clone(), columns], value))
    };
    let mut steps = vec![stage(near_a, a, &of_i, FIRST), stage(near_b, b, &of_j, along.first)];
    let own = [i, j].into_iter().zip([FIRST, along.first]).zip([near_a, near_b]);
    let read = |((v, first), buffer): ((LoopId, LoopId), TensorId)| {
        nest.read(buffer, &[index(v) - index(first), index(k) - index(boxes)])
    };
    let read: Vec<ExprId> = own.map(read).collect();
    let sum = nest.binary(BinaryOp::Add, read[0], read[1]);
    let square = nest.binary(BinaryOp::Mul, sum, sum);
    let all = vec![of_i.clone(), of_j.clone(), of_kind(k, in_box.clone(), Kind::Serial)];
    let leaf = Leaf::pointwise(near, place.clone(), all, square);
    steps.push(Step::Leaf(Leaf { outputs: 2, reduction: Some(ReduceOp::Sum), accumulate: true, ..leaf }));
    let tile = Tile { variable: boxes, range: range(number(0), number(terms - 1)), size: 8, held: Vec::new(), steps };
    nest.nest.kernels[0].steps.push(Step::Tile(tile));
    let value = nest.read(near, &place);
    nest.leaf(Leaf::pointwise(y, vec![index(i), index(j)], vec![of_i, of_j], value));
    (nest, [left, right])
}

#[test]
fn operands_are_staged_by_the_threads_of_an_item() {
    let (rows, columns, terms) = (40, 21, 27);
    let (nest, [a, b]) = staged(rows, columns, terms, 8);
    let term = |i: i64, j: i64, k: i64| (a[(i * terms + k) as usize] + b[(j * terms + k) as usize]).powi(2);
    let sum = |at: i64| (0..terms).map(|k| term(at / columns, at % columns, k)).sum();
    close(&nest.run(), &(0..rows * columns).map(sum).collect::<Vec<f64>>());
    assert!(verify(&nest.nest).unwrap().is_empty(), "all is proved");
    let text = gradix::nest::print(&nest.nest);
    assert!(text.contains("for v8 in v3..=v4 threads x16:"), "{text}");
}

#[test]
fn a_stage_that_is_too_small_or_left_out_is_found() {
    assert!(broken(&staged(40, 21, 27, 7).0, Rule::Inside));
    for number in 0..2 {
        let (mut nest, _) = staged(40, 21, 27, 8);
        let Step::Tile(tile) = &mut nest.nest.kernels[0].steps[1] else { panic!("a tile") };
        tile.steps.remove(number);
        assert!(broken(&nest, Rule::WrittenBefore), "stage {number}");
        let (mut nest, _) = staged(40, 21, 27, 8);
        let Step::Tile(tile) = &mut nest.nest.kernels[0].steps[1] else { panic!("a tile") };
        let Step::Leaf(leaf) = &mut tile.steps[number] else { panic!("a leaf") };
        leaf.guards.push(Constraint::at_most(index(leaf.loops[1].variable), Affine::constant(25)));
        assert!(broken(&nest, Rule::WrittenBefore), "a part of stage {number}");
    }
}

/// `y[i] = sum[k] x[i, k]` by 8 threads an item: each adds every eighth term, then they add up in a tree. In a step of it, `last`
/// threads add what lies a distance away.
fn tree(last: impl Fn(i64) -> i64) -> (Builder, Vec<f64>) {
    let mut nest = Builder::new(1, Work::outermost(number(0), number(4), number(1)));
    let (x, data) = nest.input("x", &[5, 50]);
    let y = nest.output(&[5]);
    let sums = nest.buffer("sums", Scope::Local(0), &[number(8)]);
    let (t, terms) = (nest.variable(), nest.variable());
    let threads = |high: Vec<Affine>| of_kind(t, Range { low: vec![number(0)], high }, Kind::Threads(8));
    let leaf = |high: Vec<Affine>, value| Leaf::pointwise(sums, vec![index(t)], vec![threads(high)], value);
    let (zero, here) = (nest.nest.exprs.constant(0.0), nest.read(sums, &[index(t)]));
    nest.leaf(leaf(vec![number(7)], zero));
    let value = nest.read(x, &[index(FIRST), index(terms) + index(t)]);
    let more = nest.binary(BinaryOp::Add, here, value);
    let steps = vec![Step::Leaf(leaf(vec![number(7), number(49) - index(terms)], more))];
    let all = Tile { variable: terms, range: range(number(0), number(49)), size: 8, held: Vec::new(), steps };
    nest.nest.kernels[0].steps.push(Step::Tile(all));
    for distance in [4, 2, 1] {
        let there = nest.read(sums, &[index(t).shift(distance)]);
        let both = nest.binary(BinaryOp::Add, here, there);
        nest.leaf(leaf(vec![number(last(distance))], both));
    }
    let value = nest.read(sums, &[number(0)]);
    nest.leaf(Leaf::pointwise(y, vec![index(FIRST)], Vec::new(), value));
    (nest, data)
}

#[test]
fn a_reduction_by_threads_is_a_tree_in_fixed_order() {
    let (nest, data) = tree(|distance| distance - 1);
    let sum = |row: &[f64]| {
        let mut sums: Vec<f64> = (0..8).map(|t| row.iter().skip(t).step_by(8).fold(0.0, |sum, x| sum + x)).collect();
        for half in [4, 2, 1] {
            (0..half).for_each(|t| sums[t] += sums[t + half]);
        }
        sums[0]
    };
    let found = nest.run();
    assert_eq!(found, data.chunks(50).map(sum).collect::<Vec<_>>(), "the bits of that order");
}

#[test]
fn threads_that_read_or_write_what_others_write_are_refused() {
    // Each of 8 threads reads what another one writes in the same step.
    let (nest, _) = tree(|distance| 7 - distance);
    assert!(verify(&nest.nest).unwrap_err().contains("threads"));
    // All threads write one element.
    let mut nest = Builder::new(1, Work::single());
    let (x, _) = nest.input("x", &[9]);
    let y = nest.output(&[5]);
    let t = nest.variable();
    let value = nest.read(x, &[index(t)]);
    let threads = |high: i64| vec![of_kind(t, range(number(0), number(high)), Kind::Threads(8))];
    nest.leaf(Leaf::pointwise(y, vec![index(t).floor_div(&Int::from(2))], threads(8), value));
    assert!(verify(&nest.nest).unwrap_err().contains("threads"));
    // A reduction over threads is no leaf.
    let leaf = Leaf::pointwise(y, vec![number(0)], threads(8), value);
    nest.nest.kernels[0].steps = vec![Step::Leaf(Leaf { outputs: 0, reduction: Some(ReduceOp::Sum), ..leaf })];
    assert!(verify(&nest.nest).unwrap_err().contains("threads"));
}
