//! Arrays by their strides, as views of storage.
//!
//! ```text
//! shape (N, M), strides (1, N)        transposed       storage [M, N],  read at [j, i]
//! shape (N),    strides (D)           a column         storage [N, D],  read at [i, 0]
//! shape (N),    strides (-1)          reversed         storage [N],     read at [N - 1 - i]
//! shape (F, K), strides (H, 1)        windows, K > H   storage [.],     read at [H*i + k]
//! ```

use gradix::Layout;
use std::cmp::Reverse;

/// How an array of this shape and these strides, in elements, lies in memory: the layout for
/// [`gradix::store`](gradix::store()), the extents of the storage, and how far from element 0 the storage starts, in
/// elements (0 or less). `None` if the array is dense and row-major already, as empty ones are.
///
/// The storage ends early: of its last row only what the array reaches is there.
///
/// Each layout of a program's inputs is compiled once. That of a dense array whose dimensions were permuted, reversed,
/// broadcast, or narrowed to ranges or single places has coefficients 1 and -1 and is the same for all sizes, apart from
/// dimensions of length 1, which do not count. Coefficients depend on lengths and strides where
///
/// - dimensions overlap: windows that are `H` apart have the coefficient `H`;
/// - a dimension is stepped through, and something moves in larger steps that are no multiples of this one: every third
///   column of a matrix has the coefficient 1 if rows are a multiple of three long, else 3.
pub fn layout(shape: &[usize], strides: &[isize]) -> Option<(Layout, Vec<usize>, isize)> {
    if is_dense(shape, strides) {
        return None;
    }
    let mut moving: Vec<usize> = (0..shape.len()).filter(|&j| shape[j] > 1 && strides[j] != 0).collect();
    moving.sort_by_key(|&j| Reverse(strides[j].unsigned_abs()));
    let mut groups: Vec<Group> = Vec::new();
    for j in moving {
        let step = strides[j].unsigned_abs();
        let unit = groups.last().map_or(step, |outer| gcd(outer.unit, step));
        groups.push(Group { members: vec![j], unit, reach: step.saturating_mul(shape[j] - 1) });
        while let [.., outer, inner] = groups.as_mut_slice()
            && inner.reach >= outer.unit
        {
            outer.join(inner);
            groups.pop();
        }
    }
    let sign = |j: usize, size: usize| if strides[j] < 0 { -(size as i64) } else { size as i64 };
    let mut dimensions: Vec<Vec<(usize, i64)>> = Vec::new();
    let mut extents = Vec::new();
    let mut outer = None;
    for Group { members, unit, reach } in &groups {
        let pairs = members.iter().map(|&j| (j, sign(j, strides[j].unsigned_abs() / unit)));
        dimensions.push(pairs.collect());
        extents.push(outer.map_or(reach / unit + 1, |outer: usize| outer / unit));
        outer = Some(*unit);
    }
    if let Some(unit) = outer.filter(|unit| *unit > 1) {
        dimensions.push(Vec::new());
        extents.push(unit);
    }
    let backwards = shape.iter().zip(strides).filter(|(_, stride)| **stride < 0);
    let start = backwards.map(|(length, stride)| stride * (*length as isize - 1)).sum();
    Some((Layout { dimensions }, extents, start))
}

/// Whether elements follow each other in row-major order. Where a dimension has one element its stride says nothing.
pub fn is_dense(shape: &[usize], strides: &[isize]) -> bool {
    let mut next = 1;
    let mut follows = |(&length, &stride): (&usize, &isize)| {
        let follows = length == 1 || stride == next;
        next = next.saturating_mul(length as isize);
        follows
    };
    shape.contains(&0) || shape.iter().zip(strides).rev().all(&mut follows)
}

/// Dimensions that share one of the storage.
struct Group {
    members: Vec<usize>,
    /// How far apart its elements are; a multiple of the next group's.
    unit: usize,
    /// How far the last element of the members is from the first.
    reach: usize,
}

impl Group {
    /// Takes in the group after this one.
    fn join(&mut self, inner: &Group) {
        self.members.extend(&inner.members);
        self.members.sort();
        self.unit = inner.unit;
        self.reach = self.reach.saturating_add(inner.reach);
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dimensions(shape: &[usize], strides: &[isize]) -> Vec<Vec<(usize, i64)>> {
        layout(shape, strides).map(|(layout, ..)| layout.dimensions).unwrap_or_default()
    }

    /// A view of a dense array: its shape, its strides, and the place of its first element.
    #[derive(Clone, Debug)]
    struct View {
        shape: Vec<usize>,
        strides: Vec<isize>,
        first: isize,
    }

    impl View {
        fn dense(shape: &[usize]) -> View {
            let stride = |j: usize| shape[j + 1..].iter().product::<usize>() as isize;
            View { shape: shape.to_vec(), strides: (0..shape.len()).map(stride).collect(), first: 0 }
        }

        fn changed(mut self, random: &mut Random) -> View {
            let Some(j) = random.below(self.shape.len()) else { return self };
            let length = self.shape[j];
            match random.below(7).unwrap_or(0) {
                // A range of it, maybe empty, or one place.
                0 => {
                    let from = random.below(length + 1).unwrap_or(0);
                    self.first += from as isize * self.strides[j];
                    self.shape[j] = random.below(length - from + 1).unwrap_or(0);
                }
                1 if length > 0 => {
                    self.first += random.below(length).unwrap_or(0) as isize * self.strides[j];
                    self.shape.remove(j);
                    self.strides.remove(j);
                }
                2 if length > 0 => {
                    self.first += (length as isize - 1) * self.strides[j];
                    self.strides[j] *= -1;
                }
                3 => {
                    let step = 1 + random.below(4).unwrap_or(0);
                    self.shape[j] = length.div_ceil(step);
                    self.strides[j] *= step as isize;
                }
                4 => {
                    let other = random.below(self.shape.len()).unwrap_or(0);
                    self.shape.swap(j, other);
                    self.strides.swap(j, other);
                }
                5 => {
                    self.shape.insert(j, 1 + random.below(4).unwrap_or(0));
                    self.strides.insert(j, 0);
                }
                6 if length > 0 => {
                    let width = 1 + random.below(length).unwrap_or(0);
                    self.shape[j] = length - width + 1;
                    self.shape.push(width);
                    self.strides.push(self.strides[j]);
                }
                _ => {}
            }
            self
        }

        fn points(&self) -> Vec<Vec<usize>> {
            let mut points = vec![Vec::new()];
            for &length in &self.shape {
                points = points.iter().flat_map(|p| (0..length).map(move |i| [&p[..], &[i]].concat())).collect();
            }
            points
        }
    }

    /// Numbers that follow from a seed.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: usize) -> Option<usize> {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) as usize).checked_rem(limit)
        }
    }

    /// Every element lies where its storage subscripts say, and these are inside the storage.
    fn check(view: &View) {
        let View { shape, strides, first } = view;
        let place = |point: &[usize]| first + point.iter().zip(strides).map(|(i, s)| *i as isize * s).sum::<isize>();
        let Some((layout, extents, start)) = layout(shape, strides) else {
            let dense = View::dense(shape);
            let at = |point: &[usize]| point.iter().zip(&dense.strides).map(|(i, s)| *i as isize * s).sum::<isize>();
            return view.points().iter().for_each(|point| assert_eq!(place(point), first + at(point), "{view:?}"));
        };
        assert!(start <= 0 && !shape.contains(&0), "{view:?}");
        let least = layout.extents(shape);
        assert!(least.iter().zip(&extents).all(|(least, extent)| least <= extent), "{view:?}: {extents:?}");
        for point in view.points() {
            let subscript = |pairs: &Vec<(usize, i64)>| {
                let terms = pairs.iter().map(|&(j, c)| match c > 0 {
                    true => c as usize * point[j],
                    false => c.unsigned_abs() as usize * (shape[j] - 1 - point[j]),
                });
                terms.sum::<usize>()
            };
            let subscripts: Vec<usize> = layout.dimensions.iter().map(subscript).collect();
            assert!(subscripts.iter().zip(&extents).all(|(s, extent)| s < extent), "{view:?}: {subscripts:?}");
            let offset = subscripts.iter().zip(&extents).fold(0, |offset, (s, extent)| offset * extent + s);
            assert_eq!(first + start + offset as isize, place(&point), "{view:?} at {point:?}: {layout:?}");
        }
    }

    #[test]
    fn every_element_lies_where_its_subscripts_say() {
        let mut random = Random(1);
        let mut strided = 0;
        for _ in 0..20_000 {
            let rank = random.below(4).unwrap_or(0);
            let shape: Vec<usize> = (0..rank).map(|_| 1 + random.below(6).unwrap_or(0)).collect();
            let mut view = View::dense(&shape);
            for _ in 0..random.below(6).unwrap_or(0) {
                view = view.changed(&mut random);
            }
            strided += usize::from(layout(&view.shape, &view.strides).is_some());
            check(&view);
        }
        assert!(strided > 5000, "{strided}");
    }

    #[test]
    fn strides_that_no_slice_has_are_right_too() {
        let mut random = Random(2);
        for _ in 0..20_000 {
            let rank = random.below(5).unwrap_or(0);
            let shape = (0..rank).map(|_| random.below(5).unwrap_or(0)).collect();
            let strides = (0..rank).map(|_| random.below(61).unwrap_or(0) as isize - 30).collect();
            check(&View { shape, strides, first: 0 });
        }
    }

    #[test]
    fn dense_arrays_have_no_layout() {
        for (shape, strides) in [
            (&[][..], &[][..]),
            (&[3, 4], &[4, 1]),
            (&[1, 4], &[77, 1]),
            (&[3, 1, 4], &[4, 0, 1]),
            (&[3, 0], &[5, -2]),
            (&[1], &[-1]),
        ] {
            assert_eq!(layout(shape, strides), None, "{shape:?} {strides:?}");
        }
    }

    #[test]
    fn layouts_of_slices_do_not_depend_on_sizes() {
        for (n, m, d) in [(2, 3, 5), (7, 8, 9), (64, 128, 96), (100, 3, 13), (3, 4, 6)] {
            let (columns, depth) = (m as isize, d as isize);
            assert_eq!(dimensions(&[m, n], &[1, columns]), [[(1, 1)], [(0, 1)]], "transposed");
            assert_eq!(dimensions(&[n, m - 1], &[columns, 1]), [[(0, 1)], [(1, 1)]], "padded rows");
            assert_eq!(dimensions(&[n], &[columns]), [vec![(0, 1)], vec![]], "a column");
            assert_eq!(dimensions(&[n], &[-1]), [[(0, -1)]], "reversed");
            assert_eq!(dimensions(&[n], &[2]), [vec![(0, 1)], vec![]], "every second one");
            assert_eq!(dimensions(&[n, m], &[0, 1]), [[(1, 1)]], "rows that are all the same");
            assert_eq!(dimensions(&[n, m], &[1, 0]), [[(0, 1)]], "columns that are all the same");
            assert_eq!(dimensions(&[n, m], &[0, 0]), [[]; 0], "one number");
            assert_eq!(dimensions(&[n, m], &[-columns, -1]), [[(0, -1)], [(1, -1)]], "turned round");
            assert_eq!(dimensions(&[n, d], &[columns * depth, 1]), [[(0, 1)], [(1, 1)]], "a slice from the middle");
            assert_eq!(
                dimensions(&[n, m], &[columns * depth, depth]),
                [vec![(0, 1)], vec![(1, 1)], vec![]],
                "a slice from the end"
            );
            assert_eq!(dimensions(&[d, m, n], &[1, depth, depth * columns]), [[(2, 1)], [(1, 1)], [(0, 1)]], "axes");
            assert_eq!(dimensions(&[n, 2], &[1, 1]), [[(0, 1), (1, 1)]], "windows");
        }
    }

    #[test]
    fn windows_that_overlap_have_their_distance_as_a_coefficient() {
        assert_eq!(dimensions(&[10, 5], &[3, 1]), [[(0, 3), (1, 1)]]);
        assert_eq!(dimensions(&[10, 3], &[4, 1]), [[(0, 1)], [(1, 1)]], "these do not overlap");
        assert_eq!(dimensions(&[6, 7, 3, 2], &[10, 1, 10, 1]), [[(0, 1), (2, 1)], [(1, 1), (3, 1)]]);
        // What spills over into the next row is one dimension with it.
        assert_eq!(layout(&[3, 10, 5], &[100, 10, 7]).unwrap().1, [319]);
    }
}
