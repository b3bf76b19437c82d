//! Where the vertices of each layer stand from left to right, near their neighbours above and below.
//!
//! A layer with wished places `d` and weights `w` gets the `x` that minimises `Σ wᵢ (xᵢ - dᵢ)²` where
//! `xᵢ₊₁ - xᵢ >= sᵢ`, which is an isotonic regression (Barlow et al., 1972): sets of vertices that push each other stand
//! where their mean wish is. Layers are placed one after the other, downwards and upwards in turn.
//!
//! What counts in the end is the sum of `|Δx|` over all links, because then some links are exactly straight. It is a sum
//! of squares with the weights `1 / |Δx|`, which are bounded ever less from sweep to sweep.

use super::levels::{Levels, Link};

/// How often all layers are placed, and how often of these, at the end, by the neighbours on both sides.
const SWEEPS: usize = 48;
const LAST: usize = 24;
/// The least distance between two nodes, and between a bend and anything.
const NODE_GAP: f64 = 22.0;
const BEND_GAP: f64 = 12.0;
/// Distances below which weights don't grow: at first, and at last.
const FARTHEST: f64 = 256.0;
const NEAREST: f64 = 0.5;

/// The middle of every vertex; `widths` are those of the nodes. The leftmost node begins at 0.
pub fn place(levels: &Levels, widths: &[f64]) -> Vec<f64> {
    let mut placement = Placement::new(levels, widths);
    for sweep in 0..SWEEPS {
        let (downwards, both) = (sweep % 2 == 0, sweep >= SWEEPS - LAST);
        for step in 0..levels.rows.len() {
            let row = if downwards { step } else { levels.rows.len() - 1 - step };
            placement.place_row(row, both || downwards, both || !downwards);
        }
        placement.near = (0.8 * placement.near).max(NEAREST);
    }
    let left = (0..levels.layers.len()).map(|vertex| placement.x[vertex] - placement.half(vertex));
    let left = left.fold(f64::INFINITY, f64::min);
    placement.x.iter().map(|x| x - left).collect()
}

/// How far from the middle a link leaves the upper vertex.
pub fn departure(link: &Link, width: f64) -> f64 {
    link.offset() * (width - 14.0).clamp(0.0, 16.0 * link.port.1 as f64)
}

struct Placement<'a> {
    levels: &'a Levels,
    widths: &'a [f64],
    x: Vec<f64>,
    near: f64,
}

impl<'a> Placement<'a> {
    fn new(levels: &'a Levels, widths: &'a [f64]) -> Self {
        let mut placement = Placement { levels, widths, x: vec![0.0; levels.layers.len()], near: FARTHEST };
        for row in &levels.rows {
            let wishes: Vec<(f64, f64)> = vec![(0.0, 1.0); row.len()];
            placement.settle(row, &wishes);
        }
        placement
    }

    fn half(&self, vertex: usize) -> f64 {
        self.widths.get(vertex).map_or(0.0, |width| width / 2.0)
    }

    fn place_row(&mut self, row: usize, above: bool, below: bool) {
        let row = &self.levels.rows[row];
        let wishes: Vec<(f64, f64)> = row.iter().map(|&vertex| self.wish(vertex, above, below)).collect();
        self.settle(row, &wishes);
    }

    /// Where a vertex would like to stand, and how much.
    fn wish(&self, vertex: usize, above: bool, below: bool) -> (f64, f64) {
        let levels = self.levels;
        let (mut sum, mut weights) = (0.0, 0.0);
        let mut pull = |link: &Link, x: f64| {
            let weight = self.weight(link) / (x - self.x[vertex]).abs().max(self.near);
            (sum, weights) = (sum + weight * x, weights + weight);
        };
        let departure = |link: &Link| departure(link, 2.0 * self.half(link.upper));
        for link in levels.above[vertex].iter().filter(|_| above).map(|&link| &levels.links[link]) {
            pull(link, self.x[link.upper] + departure(link));
        }
        for link in levels.below[vertex].iter().filter(|_| below).map(|&link| &levels.links[link]) {
            pull(link, self.x[link.lower] - departure(link));
        }
        if weights > 0.0 { (sum / weights, weights) } else { (self.x[vertex], 0.1) }
    }

    /// Long edges are to be straight.
    fn weight(&self, link: &Link) -> f64 {
        match (self.levels.is_bend(link.upper), self.levels.is_bend(link.lower)) {
            (true, true) => 8.0,
            (false, false) => 1.0,
            _ => 2.0,
        }
    }

    fn gap(&self, left: usize, right: usize) -> f64 {
        let bend = self.levels.is_bend(left) || self.levels.is_bend(right);
        self.half(left) + self.half(right) + if bend { BEND_GAP } else { NODE_GAP }
    }

    /// Places a row by pooling neighbours that are too near to each other.
    fn settle(&mut self, row: &[usize], wishes: &[(f64, f64)]) {
        // With the least distances taken off, places have to be in order, and no more.
        let mut taken = vec![0.0; row.len()];
        for right in 1..row.len() {
            taken[right] = taken[right - 1] + self.gap(row[right - 1], row[right]);
        }
        // Each pool: its place, its weight, how many vertices it has.
        let mut pools: Vec<(f64, f64, usize)> = Vec::new();
        for (&(wish, weight), taken) in wishes.iter().zip(&taken) {
            let mut pool = (wish - taken, weight, 1);
            while let Some(&(place, weight, count)) = pools.last().filter(|last| last.0 > pool.0) {
                pools.pop();
                let sum = weight + pool.1;
                pool = ((place * weight + pool.0 * pool.1) / sum, sum, count + pool.2);
            }
            pools.push(pool);
        }
        let places = pools.iter().flat_map(|&(place, _, count)| std::iter::repeat_n(place, count));
        for ((&vertex, place), taken) in row.iter().zip(places).zip(&taken) {
            self.x[vertex] = place + taken;
        }
    }
}
