//! Random matrices and systems, the same in every run.

use gradix_int::{Int, Matrix, Polyhedron, Row};

/// The SplitMix64 generator.
pub struct Generator(u64);

impl Generator {
    pub fn new(seed: u64) -> Generator {
        Generator(seed)
    }

    /// A number from `low` to `high`, both included.
    pub fn number(&mut self, low: i64, high: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        low + ((z ^ (z >> 31)) % (high - low + 1) as u64) as i64
    }

    pub fn size(&mut self, low: usize, high: usize) -> usize {
        self.number(low as i64, high as i64) as usize
    }

    /// A vector, about a third of it zeros.
    pub fn vector(&mut self, length: usize, magnitude: i64) -> Vec<i64> {
        let entry = |_| if self.number(0, 2) == 0 { 0 } else { self.number(-magnitude, magnitude) };
        (0..length).map(entry).collect()
    }

    pub fn matrix(&mut self, rows: usize, columns: usize, magnitude: i64) -> Matrix {
        let entries: Vec<i64> = self.vector(rows * columns, magnitude);
        Matrix::from_fn(rows, columns, |i, j| entries[i * columns + j].into())
    }

    pub fn row(&mut self, dimension: usize, magnitude: i64) -> Row {
        Row::from_i64(&self.vector(dimension, magnitude), self.number(-2 * magnitude, 3 * magnitude))
    }

    /// A random system without the box.
    pub fn system(&mut self, dimension: usize, magnitude: i64) -> Polyhedron {
        let mut set = Polyhedron::new(dimension);
        for _ in 0..self.number(0, 5) {
            set.add_inequality(self.row(dimension, magnitude));
        }
        for _ in 0..self.number(-2, 2) {
            set.add_equality(self.row(dimension, magnitude));
        }
        set
    }

    /// A random system inside of `-radius ≤ x_i ≤ radius`, the bounds at random positions.
    pub fn boxed_system(&mut self, dimension: usize, magnitude: i64, radius: i64) -> Polyhedron {
        let mut set = Polyhedron::new(dimension);
        if self.number(0, 1) == 0 {
            set.intersect(&self.system(dimension, magnitude));
        }
        set.intersect(&cube(dimension, radius));
        set.intersect(&self.system(dimension, magnitude));
        set
    }
}

/// The set `-radius ≤ x_i ≤ radius`.
pub fn cube(dimension: usize, radius: i64) -> Polyhedron {
    let mut cube = Polyhedron::new(dimension);
    for variable in 0..dimension {
        let mut row = Row::variable(dimension, variable);
        row.constant = radius.into();
        cube.add_inequality(row.clone());
        row.coefficients[variable] = Int::from(-1);
        cube.add_inequality(row);
    }
    cube
}

/// All points of the cube, in lexicographic order.
pub fn cube_points(dimension: usize, radius: i64) -> Vec<Vec<Int>> {
    let mut points = vec![Vec::new()];
    for _ in 0..dimension {
        let extend = |point: Vec<Int>| {
            (-radius..=radius).map(move |value| point.iter().cloned().chain([value.into()]).collect())
        };
        points = points.into_iter().flat_map(extend).collect();
    }
    points
}
