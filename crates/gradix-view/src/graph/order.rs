//! The order of the vertices in each layer, with few crossings of links.
//!
//! Layer by layer, downwards and upwards in turn, vertices are sorted by the mean place of their neighbours (Sugiyama,
//! Tagawa and Toda, 1981), then neighbours are exchanged as long as that removes crossings. The best order seen is kept.

use super::levels::Levels;

/// How many sweeps there are, and after how many in vain they end.
const SWEEPS: usize = 24;
const PATIENCE: usize = 6;
/// How often the neighbours in a layer are compared in a sweep.
const EXCHANGES: usize = 4;

/// Orders the rows, and the ports of nodes whose operands can be exchanged.
pub fn order(levels: &mut Levels) {
    let mut places = Places::new(levels);
    let mut best = (places.crossings(levels), levels.rows.clone());
    let mut vain = 0;
    for sweep in 0..SWEEPS {
        if best.0 == 0 || vain == PATIENCE {
            break;
        }
        places.sweep(levels, sweep % 2 == 0);
        let crossings = places.crossings(levels);
        vain = if crossings < best.0 { 0 } else { vain + 1 };
        if crossings < best.0 {
            best = (crossings, levels.rows.clone());
        }
    }
    levels.rows = best.1;
    places.read(levels);
    places.spread(levels);
}

/// The place of every vertex in its row.
struct Places(Vec<usize>);

impl Places {
    /// The order in which vertices are reached from the top, operands from left to right.
    fn new(levels: &mut Levels) -> Places {
        levels.rows.iter_mut().for_each(Vec::clear);
        let mut seen = vec![false; levels.layers.len()];
        let tops = (0..levels.nodes).filter(|&vertex| levels.above[vertex].is_empty());
        let mut stack: Vec<usize> = tops.rev().collect();
        while let Some(vertex) = stack.pop() {
            if std::mem::replace(&mut seen[vertex], true) {
                continue;
            }
            levels.rows[levels.layers[vertex]].push(vertex);
            stack.extend(levels.below[vertex].iter().rev().map(|&link| levels.links[link].lower));
        }
        let mut places = Places(vec![0; levels.layers.len()]);
        places.read(levels);
        places
    }

    fn read(&mut self, levels: &Levels) {
        levels.rows.iter().for_each(|row| self.read_row(row));
    }

    fn read_row(&mut self, row: &[usize]) {
        row.iter().enumerate().for_each(|(place, &vertex)| self.0[vertex] = place);
    }

    /// Where the other ends of the links of a vertex are, sorted.
    fn ends(&self, levels: &Levels, vertex: usize, upwards: bool) -> Vec<f64> {
        let links = if upwards { &levels.above[vertex] } else { &levels.below[vertex] };
        let mut ends: Vec<f64> = links
            .iter()
            .map(|&link| &levels.links[link])
            .map(|link| if upwards { self.0[link.upper] as f64 + link.offset() } else { self.0[link.lower] as f64 })
            .collect();
        ends.sort_by(f64::total_cmp);
        ends
    }

    /// Sorts every row by its neighbours above, from the top; or by those below, from the bottom.
    fn sweep(&mut self, levels: &mut Levels, downwards: bool) {
        let count = levels.rows.len();
        for step in 0..count {
            let row = if downwards { step } else { count - 1 - step };
            let mut vertices = std::mem::take(&mut levels.rows[row]);
            self.sort(levels, &mut vertices, downwards);
            self.exchange(levels, &mut vertices);
            self.read_row(&vertices);
            levels.rows[row] = vertices;
        }
    }

    /// Vertices without a neighbour stay where they are.
    fn sort(&self, levels: &Levels, row: &mut [usize], upwards: bool) {
        let mean = |vertex: usize| {
            let ends = self.ends(levels, vertex, upwards);
            (!ends.is_empty()).then(|| ends.iter().sum::<f64>() / ends.len() as f64)
        };
        let means: Vec<Option<f64>> = row.iter().map(|&vertex| mean(vertex)).collect();
        let mut moving: Vec<(f64, usize)> =
            row.iter().zip(&means).filter_map(|(&vertex, mean)| mean.map(|mean| (mean, vertex))).collect();
        moving.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut moving = moving.into_iter();
        for (vertex, mean) in row.iter_mut().zip(&means) {
            if mean.is_some() {
                *vertex = moving.next().map_or(*vertex, |(_, other)| other);
            }
        }
    }

    fn exchange(&self, levels: &Levels, row: &mut [usize]) {
        let mut ends: Vec<[Vec<f64>; 2]> =
            row.iter().map(|&vertex| [true, false].map(|upwards| self.ends(levels, vertex, upwards))).collect();
        for _ in 0..EXCHANGES {
            let mut exchanged = false;
            for left in 1..row.len() {
                let (now, then) = (crossings(&ends[left - 1], &ends[left]), crossings(&ends[left], &ends[left - 1]));
                if then < now {
                    row.swap(left - 1, left);
                    ends.swap(left - 1, left);
                    exchanged = true;
                }
            }
            if !exchanged {
                break;
            }
        }
    }

    /// How many pairs of links cross.
    fn crossings(&self, levels: &Levels) -> usize {
        levels.rows.iter().map(|row| self.crossings_below(levels, row)).sum()
    }

    fn crossings_below(&self, levels: &Levels, row: &[usize]) -> usize {
        let links = row.iter().flat_map(|&vertex| &levels.below[vertex]).map(|&link| &levels.links[link]);
        let mut ends: Vec<(f64, usize)> =
            links.map(|link| (self.0[link.upper] as f64 + link.offset(), self.0[link.lower])).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut lowers: Vec<usize> = ends.into_iter().map(|(_, lower)| lower).collect();
        inversions(&mut lowers)
    }

    /// Operands that can be exchanged leave their node in the order in which they stand.
    fn spread(&self, levels: &mut Levels) {
        for vertex in 0..levels.nodes {
            let links = &levels.below[vertex];
            let unordered = links.iter().all(|&link| levels.links[link].port.1 == 1);
            let mut sorted = links.clone();
            sorted.sort_by_key(|&link| self.0[levels.links[link].lower]);
            for (place, link) in sorted.into_iter().enumerate().filter(|_| unordered) {
                levels.links[link].port = (place, levels.below[vertex].len());
            }
        }
    }
}

/// The crossings of the links of two neighbours, the first one on the left; the ends above and below are sorted.
fn crossings(left: &[Vec<f64>; 2], right: &[Vec<f64>; 2]) -> usize {
    let between = |left: &[f64], right: &[f64]| -> usize {
        let mut before = 0;
        let mut count = 0;
        for end in left {
            while right.get(before).is_some_and(|other| other < end) {
                before += 1;
            }
            count += before;
        }
        count
    };
    between(&left[0], &right[0]) + between(&left[1], &right[1])
}

/// How many pairs are in the wrong order, by merging; the values end up sorted.
fn inversions(values: &mut [usize]) -> usize {
    if values.len() < 2 {
        return 0;
    }
    let middle = values.len() / 2;
    let (left, right) = values.split_at_mut(middle);
    let mut count = inversions(left) + inversions(right);
    let (left, right) = (left.to_vec(), right.to_vec());
    let (mut a, mut b) = (0, 0);
    for value in values.iter_mut() {
        if b == right.len() || a < left.len() && left[a] <= right[b] {
            *value = left[a];
            a += 1;
        } else {
            *value = right[b];
            b += 1;
            count += left.len() - a;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inversions_are_counted() {
        assert_eq!(inversions(&mut [1, 2, 2, 3]), 0);
        assert_eq!(inversions(&mut [3, 1, 2, 0]), 5);
    }

    #[test]
    fn crossings_of_neighbours_are_counted_above_and_below() {
        let (a, b) = ([vec![0.0, 2.0], vec![]], [vec![1.0], vec![4.0]]);
        assert_eq!((crossings(&a, &b), crossings(&b, &a)), (1, 1));
        assert_eq!(crossings(&[vec![5.0], vec![1.0]], &[vec![4.0], vec![0.0, 1.0]]), 2);
    }
}
