//! Smith and Hermite forms, solutions of integer equations and lattice reduction, held to their definitions and to
//! enumeration.

use std::collections::BTreeSet;

use crate::generator::{Generator, cube_points};
use gradix_int::{Int, Matrix, hermite, lll, smith, solve};

fn is_unimodular(matrix: &Matrix) -> bool {
    let determinant = matrix.determinant();
    determinant == Int::ONE || determinant == -Int::ONE
}

fn random_matrices(seed: u64, count: usize) -> impl Iterator<Item = Matrix> {
    let mut generator = Generator::new(seed);
    (0..count).map(move |index| {
        let magnitude = [1, 3, 9, 1_000_000_000_000_000][index % 4];
        let (rows, columns) = (generator.size(0, 4), generator.size(0, 5));
        generator.matrix(rows, columns, magnitude)
    })
}

#[test]
fn the_smith_form_is_u_a_v_with_a_chain_of_divisors() {
    for a in random_matrices(1, 3000) {
        let form = smith(&a);
        assert_eq!(form.u.mul(&a).mul(&form.v), form.s, "{a}");
        assert!(is_unimodular(&form.u) && is_unimodular(&form.v), "{a}");
        let divisors: Vec<&Int> = form.divisors().collect();
        assert!(divisors.iter().all(|divisor| **divisor > Int::ZERO), "{a}");
        assert!(divisors.windows(2).all(|pair| (pair[1] % pair[0]).is_zero()), "{a}");
        let expected = Matrix::from_fn(a.rows(), a.columns(), |i, j| {
            if i == j && i < form.rank { divisors[i].clone() } else { Int::ZERO }
        });
        assert_eq!(form.s, expected, "{a}");
    }
}

#[test]
fn the_product_of_divisors_is_the_determinant() {
    let mut generator = Generator::new(2);
    for _ in 0..500 {
        let size = generator.size(0, 4);
        let a = generator.matrix(size, size, 9);
        let form = smith(&a);
        let product: Int = if form.rank == size { form.divisors().product() } else { Int::ZERO };
        let determinant = a.determinant();
        assert!(product == determinant || product == -determinant, "{a}");
    }
}

#[test]
fn the_hermite_form_is_a_v_in_reduced_echelon_form() {
    for a in random_matrices(3, 3000) {
        let form = hermite(&a);
        assert_eq!(a.mul(&form.v), form.h, "{a}");
        assert!(is_unimodular(&form.v), "{a}");
        assert!(form.pivots.windows(2).all(|pair| pair[0] < pair[1]), "{a}");
        assert_eq!(form.pivots.len(), smith(&a).rank, "{a}");
        for j in 0..a.columns() {
            let column = form.h.column(j);
            assert_eq!(column.iter().position(|entry| !entry.is_zero()), form.pivots.get(j).copied(), "{a}");
        }
        for (j, &row) in form.pivots.iter().enumerate() {
            let pivot = &form.h[(row, j)];
            assert!(*pivot > Int::ZERO, "{a}");
            assert!((0..j).all(|left| form.h[(row, left)] >= Int::ZERO && form.h[(row, left)] < *pivot), "{a}");
        }
    }
}

#[test]
fn the_hermite_form_does_not_depend_on_the_basis() {
    let mut generator = Generator::new(4);
    for a in random_matrices(5, 1000).filter(|a| a.columns() > 1) {
        let mut other = a.clone();
        for _ in 0..5 {
            let source = generator.size(0, a.columns() - 1);
            let target = (source + generator.size(1, a.columns() - 1)) % a.columns();
            other.add_column(target, source, &generator.number(-3, 3).into());
        }
        assert_eq!(hermite(&a).h, hermite(&other).h, "{a}");
    }
}

#[test]
fn a_reduced_basis_spans_the_same_lattice() {
    for a in random_matrices(6, 1500) {
        let reduced = lll(&a);
        let form = hermite(&a);
        assert_eq!(reduced.columns(), form.pivots.len(), "{a}");
        assert_eq!(hermite(&reduced).h, form.h.block(0..a.rows(), 0..form.pivots.len()), "{a}");
    }
}

#[test]
fn a_reduced_basis_is_short() {
    let mut generator = Generator::new(7);
    for _ in 0..300 {
        // A basis of all points, disguised by column operations.
        let size = generator.size(1, 4);
        let mut basis = Matrix::identity(size);
        for _ in 0..20 {
            let (target, source) = (generator.size(0, size - 1), generator.size(0, size - 1));
            if target != source {
                basis.add_column(target, source, &generator.number(-5, 5).into());
            }
        }
        let reduced = lll(&basis);
        let mut magnitudes: Vec<usize> = Vec::new();
        for j in 0..size {
            let column = reduced.column(j);
            assert_eq!(column.iter().map(|entry| entry * entry).sum::<Int>(), Int::ONE, "{basis}");
            magnitudes.extend(column.iter().position(|entry| !entry.is_zero()));
        }
        assert_eq!(BTreeSet::from_iter(magnitudes).len(), size, "{basis}");
    }
}

#[test]
fn pseudo_inverse_kernel_and_cokernel_satisfy_their_equations() {
    for a in random_matrices(8, 3000) {
        let solution = solve(&a);
        let inverse = &solution.pseudo_inverse;
        let scaled = Matrix::from_fn(a.rows(), a.columns(), |i, j| &a[(i, j)] * &inverse.denominator);
        assert_eq!(a.mul(&inverse.numerators).mul(&a), scaled, "{a}");
        assert!(a.mul(&solution.kernel).is_zero() && solution.cokernel.mul(&a).is_zero(), "{a}");
        assert_eq!(solution.kernel.columns(), a.columns() - solution.smith.rank, "{a}");
        assert_eq!(solution.cokernel.rows(), a.rows() - solution.smith.rank, "{a}");
        for j in 0..solution.kernel.columns() {
            let column = solution.kernel.column(j);
            assert!(column.iter().find(|entry| !entry.is_zero()).is_some_and(|first| *first > Int::ZERO), "{a}");
        }
    }
}

#[test]
fn the_solutions_are_those_found_by_enumeration() {
    let mut generator = Generator::new(9);
    for _ in 0..400 {
        let (rows, columns) = (generator.size(0, 3), generator.size(1, 3));
        let a = generator.matrix(rows, columns, 4);
        let solution = solve(&a);
        let points = cube_points(columns, 3);
        let reachable: BTreeSet<Vec<Int>> = points.iter().map(|x| a.apply(x)).collect();
        for b in reachable {
            let particular = solution.particular(&b).expect("b is reached");
            assert_eq!(a.apply(&particular), b, "{a}");
            for x in points.iter().filter(|x| a.apply(x) == b) {
                let difference: Vec<Int> = x.iter().zip(&particular).map(|(x, p)| x - p).collect();
                // The kernel spans every difference, over the integers.
                assert!(solve(&solution.kernel).particular(&difference).is_some(), "{a}");
            }
        }
    }
}

#[test]
fn a_right_hand_side_without_solution_is_refused() {
    let mut generator = Generator::new(10);
    for _ in 0..3000 {
        let (rows, columns) = (generator.size(1, 3), generator.size(1, 3));
        let a = generator.matrix(rows, columns, 4);
        let b: Vec<Int> = generator.vector(rows, 5).into_iter().map(Int::from).collect();
        // A x = b is solvable exactly if b lies in the lattice of A's columns: appending it leaves the Hermite form.
        let extended =
            Matrix::from_fn(rows, columns + 1, |i, j| if j < columns { a[(i, j)].clone() } else { b[i].clone() });
        let is_solvable = hermite(&extended).h.block(0..rows, 0..columns) == hermite(&a).h
            && hermite(&extended).pivots.len() == hermite(&a).pivots.len();
        assert_eq!(solve(&a).particular(&b).is_some(), is_solvable, "{a}\n{b:?}");
    }
}

#[test]
fn empty_and_zero_matrices_have_normal_forms() {
    for (rows, columns) in [(0, 0), (0, 3), (3, 0), (2, 3)] {
        let solution = solve(&Matrix::zero(rows, columns));
        assert_eq!(solution.smith.rank, 0);
        assert_eq!(solution.kernel, Matrix::identity(columns));
        assert_eq!(solution.cokernel, Matrix::identity(rows));
        assert_eq!(hermite(&Matrix::zero(rows, columns)).pivots, Vec::<usize>::new());
        assert_eq!(lll(&Matrix::zero(rows, columns)), Matrix::zero(rows, 0));
    }
}
