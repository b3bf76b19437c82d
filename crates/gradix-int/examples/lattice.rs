//! The two lattice figures of the paper, drawn as text: which `α` in a box have `A α = β`?
//!
//! Both figures draw the box from 0 to 6 and from 0 to 4. In the second one nothing bounds `α₃`, the axis perpendicular
//! to the drawing; with `1 ≤ α`, as its text has it, there would be 12 instead of its 15 points. The kernel printed in its
//! caption is a misprint; the columns (2, 1, 0) and (0, 1, -1), found here, fit the drawing.

use gradix_int::{Int, Matrix, fourier_motzkin, solve};

fn main() {
    println!("A = (1 -2), β = -1");
    show(&Matrix::from_rows(&[&[1, -2]]), -1);
    println!("\nA = (1 -2 -2), β = 3");
    show(&Matrix::from_rows(&[&[1, -2, -2]]), 3);
}

fn show(a: &Matrix, beta: i64) {
    let solution = solve(a);
    let origin = solution.particular(&[beta.into()]).expect("the first coefficient is 1");
    println!("I β = {}\nK =\n{}", vector(&origin), solution.kernel);

    // 0 ≤ Iβ + K z ≤ (6, 4) in the first two coordinates, as  K z ≥ -Iβ  and  -K z ≥ Iβ - (6, 4)
    let (sign, least) = ([1, -1, 1, -1], [0, -6, 0, -4]);
    let system = Matrix::from_fn(4, solution.kernel.columns(), |i, j| &solution.kernel[(i / 2, j)] * sign[i]);
    let b: Vec<Int> = (0..4).map(|i| least[i] - &origin[i / 2] * sign[i]).collect();
    let solved = fourier_motzkin(&system, 100).expect("four rows");

    let points = solved.points(&b, 100).expect("the box is bounded");
    println!("{} points", points.len());
    for z in points {
        let offset = solution.kernel.apply(&z);
        let alpha: Vec<Int> = origin.iter().zip(&offset).map(|(start, offset)| start + offset).collect();
        println!("z = {:<10} α = {}", vector(&z), vector(&alpha));
    }
}

fn vector(values: &[Int]) -> String {
    format!("({})", values.iter().map(Int::to_string).collect::<Vec<_>>().join(", "))
}
