//! Polyhedra and Fourier-Motzkin elimination, held to enumeration.

use crate::generator::{Generator, cube, cube_points};
use gradix_int::{Int, Matrix, Polyhedron, Row, Sample, fourier_motzkin};

const RADIUS: i64 = 3;

/// Calls `check` with random systems and the integer points that they have.
fn for_random_systems(seed: u64, count: usize, mut check: impl FnMut(&mut Generator, &Polyhedron, &[Vec<Int>])) {
    let mut generator = Generator::new(seed);
    for index in 0..count {
        let dimension = generator.size(1, 3);
        let set = generator.boxed_system(dimension, [1, 2, 5][index % 3], RADIUS);
        let mut points = cube_points(dimension, RADIUS);
        points.retain(|point| set.contains(point));
        check(&mut generator, &set, &points);
    }
}

#[test]
fn normalisation_keeps_the_points() {
    let mut generator = Generator::new(1);
    for _ in 0..3000 {
        let dimension = generator.size(1, 3);
        let (inequality, equality) = (generator.row(dimension, 6), generator.row(dimension, 6));
        let mut set = Polyhedron::new(dimension);
        set.add_inequality(inequality.clone());
        set.add_equality(equality.clone());
        for point in cube_points(dimension, 2) {
            let expected = inequality.evaluate(&point) >= Int::ZERO && equality.evaluate(&point).is_zero();
            assert_eq!(set.contains(&point), expected, "{inequality} >= 0, {equality} = 0");
        }
    }
}

#[test]
fn points_and_sample_agree_with_enumeration() {
    for_random_systems(2, 3000, |_, set, points| {
        assert_eq!(set.points(1000).as_deref(), Some(points), "{set}");
        let expected = points.first().map_or(Sample::Empty, |first| Sample::Point(first.clone()));
        assert_eq!(set.sample(10_000), expected, "{set}");
        assert!(!set.is_empty() || points.is_empty(), "{set}");
    });
}

#[test]
fn a_set_of_one_variable_is_decided_exactly() {
    let mut generator = Generator::new(3);
    for _ in 0..3000 {
        let set = generator.boxed_system(1, 6, 9);
        let points: Vec<Int> = (-9..=9).map(Int::from).filter(|x| set.contains(std::slice::from_ref(x))).collect();
        assert_eq!(set.is_empty(), points.is_empty(), "{set}");
        assert_eq!(set.bounds(0), (points.first().cloned(), points.last().cloned()), "{set}");
    }
}

#[test]
fn what_is_implied_holds_at_every_point() {
    let mut implied = 0;
    for_random_systems(4, 6000, |generator, set, points| {
        let row = generator.row(set.dimension(), 3);
        let holds = points.iter().all(|point| row.evaluate(point) >= Int::ZERO);
        if set.implies(&row) {
            implied += 1;
            assert!(holds, "{set} => {row}");
        }
        if set.implies_equality(&row) {
            assert!(points.iter().all(|point| row.evaluate(point).is_zero()), "{set} => {row} = 0");
        }
    });
    assert!(implied > 500, "{implied}");
}

#[test]
fn inequalities_that_equalities_make_opposite_are_solved_over_the_integers() {
    // i = 3 q, 3 q ≤ k ≤ i and 1 ≤ k - 3 p ≤ 2: k is a multiple of 3 that has a remainder.
    let (i, q, k, p) = (0, 1, 2, 3);
    let row = |terms: &[(usize, i64)], constant: i64| {
        let mut coefficients = [0; 4];
        terms.iter().for_each(|(variable, factor)| coefficients[*variable] = *factor);
        Row::from_i64(&coefficients, constant)
    };
    let mut set = Polyhedron::new(4);
    set.add_equality(row(&[(i, 1), (q, -3)], 0));
    set.add_inequality(row(&[(k, 1), (q, -3)], 0));
    set.add_inequality(row(&[(k, 1), (p, -3)], -1));
    set.add_inequality(row(&[(k, -1), (p, 3)], 2));
    assert!(!set.is_empty());
    assert!(set.implies(&row(&[(k, 1), (i, -1)], -1)));
    set.add_inequality(row(&[(i, 1), (k, -1)], 0));
    assert!(set.is_empty());
}

#[test]
fn what_fails_at_a_rational_point_of_a_box_is_not_implied() {
    // Difference constraints have integral vertices, so over them the rational answer is the integer answer.
    let mut generator = Generator::new(5);
    for _ in 0..6000 {
        let dimension = generator.size(1, 3);
        let mut difference = || {
            let mut row = Row::constant(dimension, generator.number(-3, 4).into());
            row.coefficients[generator.size(0, dimension - 1)] += Int::ONE;
            row.coefficients[generator.size(0, dimension - 1)] -= Int::ONE;
            row
        };
        let mut set = cube(dimension, RADIUS);
        for _ in 0..4 {
            set.add_inequality(difference());
        }
        let row = difference();
        let points: Vec<_> = cube_points(dimension, RADIUS).into_iter().filter(|point| set.contains(point)).collect();
        assert_eq!(set.is_empty(), points.is_empty(), "{set}");
        assert_eq!(set.implies(&row), points.iter().all(|point| row.evaluate(point) >= Int::ZERO), "{set} => {row}");
        let least = points.iter().map(|point| row.evaluate(point)).min();
        let greatest = points.iter().map(|point| row.evaluate(point)).max();
        assert_eq!((set.minimum(&row), set.maximum(&row)), (least, greatest), "{set}: {row}");
    }
}

#[test]
fn bounds_enclose_every_point() {
    for_random_systems(6, 3000, |generator, set, points| {
        let row = generator.row(set.dimension(), 4);
        let (least, greatest) = (set.minimum(&row), set.maximum(&row));
        assert_eq!(least.is_none(), set.is_empty(), "{set}");
        for point in points {
            let value = row.evaluate(point);
            assert!(least.as_ref().is_some_and(|least| *least <= value), "{set}: {row}");
            assert!(greatest.as_ref().is_some_and(|greatest| value <= *greatest), "{set}: {row}");
        }
    });
}

#[test]
fn removing_redundant_rows_keeps_the_points_and_leaves_no_redundant_row() {
    for_random_systems(7, 3000, |generator, set, points| {
        let context = generator.system(set.dimension(), 3);
        let mut reduced = set.clone();
        reduced.remove_redundant(&context);
        let within = |set: &Polyhedron, point: &[Int]| set.contains(point) && context.contains(point);
        for point in cube_points(set.dimension(), RADIUS + 2) {
            assert_eq!(within(&reduced, &point), within(set, &point), "{set} in {context}");
        }
        assert!(points.iter().all(|point| reduced.contains(point)), "{set} in {context}");
        assert_eq!(reduced.equalities(), set.equalities());
        for (index, row) in reduced.inequalities().iter().enumerate().filter(|(_, row)| !row.is_constant()) {
            let mut rest = context.clone();
            reduced.equalities().iter().for_each(|row| rest.add_equality(row.clone()));
            let others = reduced.inequalities().iter().enumerate().filter(|(other, _)| *other != index);
            others.for_each(|(_, row)| rest.add_inequality(row.clone()));
            assert!(!rest.implies(row), "{row} is left of {set} in {context}");
        }
    });
}

#[test]
fn elimination_is_the_projection() {
    for_random_systems(8, 1500, |generator, set, points| {
        let variable = generator.size(0, set.dimension() - 1);
        let projection = set.eliminate(variable, 1000).expect("few rows");
        let rows = || projection.inequalities().iter().chain(projection.equalities());
        assert!(rows().all(|row| row.coefficients[variable].is_zero()), "{set}");
        assert!(points.iter().all(|point| projection.contains(point)), "{set}");
        let fixed = |point: &[Int]| {
            // Scaled by 60, a rational extension is an integer one; 60 x is bounded by the scaled rows.
            let mut scaled = Polyhedron::new(1);
            let restrict = |row: &Row| {
                let rest: Int = row.evaluate(point) - &row.coefficients[variable] * &point[variable];
                Row::new(vec![row.coefficients[variable].clone()], rest * 60)
            };
            set.inequalities().iter().for_each(|row| scaled.add_inequality(restrict(row)));
            set.equalities().iter().for_each(|row| scaled.add_equality(restrict(row)));
            !scaled.is_empty()
        };
        for point in cube_points(set.dimension(), RADIUS).iter().filter(|point| projection.contains(point)) {
            assert!(fixed(point), "{point:?} of {projection} does not extend to {set}");
        }
    });
}

#[test]
fn projection_contains_the_projected_points() {
    for_random_systems(9, 1000, |generator, set, points| {
        let keep = [generator.size(0, set.dimension() - 1)];
        let projection = set.project(&keep, 1000).expect("few rows");
        assert!(points.iter().all(|point| projection.contains(point)), "{set}");
        let rows = || projection.inequalities().iter().chain(projection.equalities());
        let is_kept = |(variable, coefficient): (usize, &Int)| keep.contains(&variable) || coefficient.is_zero();
        assert!(rows().all(|row| row.coefficients.iter().enumerate().all(is_kept)), "{set} to {projection}");
    });
}

#[test]
fn the_projection_to_one_variable_has_its_bounds() {
    let mut generator = Generator::new(14);
    for _ in 0..300 {
        // Difference constraints, over which nothing is lost between rationals and integers.
        let dimension = generator.size(2, 6);
        let mut set = cube(dimension, 9);
        for _ in 0..8 {
            let mut row = Row::constant(dimension, generator.number(-1, 6).into());
            row.coefficients[generator.size(0, dimension - 1)] += Int::ONE;
            row.coefficients[generator.size(0, dimension - 1)] -= Int::ONE;
            set.add_inequality(row);
        }
        let variable = generator.size(0, dimension - 1);
        let projection = set.project(&[variable], 10_000).expect("few rows");
        assert_eq!(projection.is_empty(), set.is_empty(), "{set}");
        assert_eq!(projection.bounds(variable), set.bounds(variable), "{set}");
    }
}

#[test]
fn a_minimum_is_the_largest_implied_bound() {
    let mut generator = Generator::new(15);
    for _ in 0..1500 {
        let dimension = generator.size(1, 10);
        let set = generator.boxed_system(dimension, 4, 20);
        let row = generator.row(dimension, 5);
        let Some(least) = set.minimum(&row) else {
            assert!(set.is_empty(), "{set}");
            continue;
        };
        let at_least = |bound: Int| Row::new(row.coefficients.clone(), &row.constant - bound);
        assert!(set.implies(&at_least(least.clone())), "{set}: {row}");
        assert!(!set.implies(&at_least(least + Int::ONE)), "{set}: {row}");
    }
}

#[test]
fn large_dense_systems_are_decided() {
    let mut generator = Generator::new(16);
    for _ in 0..10 {
        let dimension = 14;
        let mut set = cube(dimension, 100);
        for _ in 0..25 {
            set.add_inequality(generator.row(dimension, 50));
        }
        let (least, greatest) = set.bounds(0);
        assert_eq!(least.is_none(), set.is_empty());
        assert!(least <= greatest);
        set.remove_redundant(&Polyhedron::new(dimension));
        assert_eq!(set.bounds(0), (least, greatest));
    }
}

#[test]
fn an_elimination_past_the_limit_is_refused() {
    let mut set = Polyhedron::new(2);
    for slope in 1..=20 {
        set.add_inequality(Row::from_i64(&[slope, 1], slope * slope));
        set.add_inequality(Row::from_i64(&[slope, -1], slope * slope));
    }
    let refused = set.eliminate(1, 100).expect_err("20 times 20 rows");
    assert_eq!((refused.rows, refused.limit), (400, 100));
    assert!(set.eliminate(1, 400).is_ok());
}

#[test]
fn fourier_motzkin_enumerates_the_integer_points() {
    let mut generator = Generator::new(10);
    for _ in 0..1500 {
        let columns = generator.size(0, 3);
        let rows = generator.size(0, 4);
        let a = generator.matrix(rows, columns, 3);
        // The box makes the system bounded.
        let boxed = Matrix::from_fn(rows + 2 * columns, columns, |i, j| match i.checked_sub(rows) {
            None => a[(i, j)].clone(),
            Some(bound) if bound / 2 == j => Int::from(if bound % 2 == 0 { 1 } else { -1 }),
            Some(_) => Int::ZERO,
        });
        let solved = fourier_motzkin(&boxed, 10_000).expect("few rows");
        for _ in 0..3 {
            let mut b: Vec<Int> = generator.vector(rows, 6).into_iter().map(Int::from).collect();
            b.extend((0..2 * columns).map(|_| Int::from(-RADIUS)));
            let satisfies = |x: &[Int]| boxed.apply(x).iter().zip(&b).all(|(left, right)| left >= right);
            let mut expected: Vec<_> = cube_points(columns, RADIUS).into_iter().filter(|x| satisfies(x)).collect();
            expected.sort_by(|x, y| x.iter().rev().cmp(y.iter().rev()));
            assert_eq!(solved.points(&b, 10_000), Some(expected), "{boxed}\n>= {b:?}");
            assert_eq!(solved.is_feasible(&b), is_rationally_feasible(&boxed, &b), "{boxed}\n>= {b:?}");
        }
    }
}

/// Feasibility of `A x ≥ b` over the rationals: scaled by 6, tightening rows with entries up to 3 rounds nothing.
fn is_rationally_feasible(a: &Matrix, b: &[Int]) -> bool {
    let scale = Int::from(6);
    let mut set = Polyhedron::new(a.columns());
    for (coefficients, bound) in a.iter_rows().zip(b) {
        set.add_inequality(Row::new(coefficients.to_vec(), -(bound * &scale)));
    }
    !set.is_empty()
}

#[test]
fn fourier_motzkin_refuses_to_grow_past_the_limit() {
    let rows: Vec<[i64; 2]> = (1..=20).flat_map(|slope| [[slope, 1], [-slope, 1]]).collect();
    let rows: Vec<&[i64]> = rows.iter().map(|row| row.as_slice()).collect();
    let refused = fourier_motzkin(&Matrix::from_rows(&rows), 100).expect_err("20 times 20 rows");
    assert_eq!((refused.rows, refused.limit), (400, 100));
}

#[test]
fn large_coefficients_do_not_overflow() {
    const HUGE: i64 = 4_000_000_000_000_000_000;
    let mut generator = Generator::new(11);
    for _ in 0..500 {
        let dimension = generator.size(1, 4);
        // Scaling the variables' ranges by a huge factor scales every answer.
        let mut small = Polyhedron::new(dimension);
        let mut large = Polyhedron::new(dimension);
        for row in cube(dimension, 3).inequalities() {
            small.add_inequality(row.clone());
            large.add_inequality(Row::new(row.coefficients.clone(), &row.constant * HUGE));
        }
        for _ in 0..4 {
            let mut row = Row::constant(dimension, generator.number(0, 3).into());
            row.coefficients[generator.size(0, dimension - 1)] += Int::ONE;
            row.coefficients[generator.size(0, dimension - 1)] -= Int::ONE;
            small.add_inequality(row.clone());
            large.add_inequality(Row::new(row.coefficients.clone(), &row.constant * HUGE));
        }
        for variable in 0..dimension {
            let scaled = |bound: Option<Int>| bound.map(|bound| bound * HUGE);
            let (least, greatest) = small.bounds(variable);
            assert_eq!(large.bounds(variable), (scaled(least), scaled(greatest)), "{small}");
        }
        let dense: Vec<Int> = (0..dimension).map(|_| Int::from(generator.number(HUGE / 2, HUGE))).collect();
        let objective = Row::new(dense, Int::ZERO);
        let vertex = large.maximum(&objective).expect("the set is bounded");
        assert!(large.implies(&Row::new(objective.negated().coefficients, vertex.clone())));
        assert!(!large.implies(&Row::new(objective.negated().coefficients, vertex - Int::ONE)));
    }
}

#[test]
fn dense_systems_with_huge_numbers_agree_with_small_ones() {
    // Multiplying each row by a huge factor changes nothing, but without normalisation every pivot would overflow.
    for_random_systems(12, 500, |generator, set, points| {
        let mut scaled = Polyhedron::new(set.dimension());
        let factor = Int::from(generator.number(1_000_000_000_000_000, 9_000_000_000_000_000));
        for row in set.inequalities() {
            scaled.add_inequality(row.combine(&factor, row, &Int::ZERO));
        }
        for row in set.equalities() {
            scaled.add_equality(row.combine(&factor, row, &Int::ZERO));
        }
        assert_eq!(scaled.points(1000).as_deref(), Some(points), "{set}");
    });
}

#[test]
fn unbounded_sets_have_samples_but_no_list_of_points() {
    let mut generator = Generator::new(13);
    for _ in 0..1000 {
        let dimension = generator.size(1, 3);
        let set = generator.system(dimension, 4);
        match set.sample(500) {
            Sample::Point(point) => assert!(set.contains(&point), "{set}"),
            Sample::Empty => assert!(!cube_points(dimension, 6).iter().any(|point| set.contains(point)), "{set}"),
            Sample::Unknown => assert!(!set.is_empty(), "{set}"),
        }
    }
    assert_eq!(Polyhedron::new(2).points(100), None);
    assert_eq!(Polyhedron::new(2).sample(100), Sample::Point(vec![Int::ZERO, Int::ZERO]));
}

#[test]
fn a_set_without_variables_is_one_point_or_none() {
    let mut set = Polyhedron::new(0);
    assert_eq!(set.points(10), Some(vec![vec![]]));
    assert_eq!(set.sample(10), Sample::Point(vec![]));
    set.add_equality(Row::constant(0, Int::ONE));
    assert_eq!(set.points(10), Some(vec![]));
    assert_eq!(set.sample(10), Sample::Empty);
    assert!(set.is_empty() && set.implies(&Row::constant(0, Int::from(-5))));
}

#[test]
fn an_equality_without_integer_solution_makes_the_set_empty() {
    // 2 x = 4 y + 1, and the same spread over two equalities: x = 2 z, x = 4 y + 1
    let mut set = Polyhedron::new(2);
    set.add_equality(Row::from_i64(&[2, -4], -1));
    assert!(set.is_empty());
    let mut set = Polyhedron::new(3);
    set.add_equality(Row::from_i64(&[1, 0, -2], 0));
    set.add_equality(Row::from_i64(&[1, -4, 0], -1));
    assert!(set.is_empty());
}
