//! The graph with a bend in every layer that an edge passes, so that links join neighbouring layers only.
//!
//! Edges from the same part of the graph to the same operand share their bends: they run together once they met.
//!
//! ```text
//!   a           a
//!   │ b    →    │ b          two edges to x, which share the bend ·
//!   │ │         └─·
//!    x            x
//! ```

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use gradix::explain::graph::{Node, Part};

/// Vertices are the nodes, then the bends.
pub struct Levels {
    /// The layer of every vertex.
    pub layers: Vec<usize>,
    /// The vertices of each layer, from left to right.
    pub rows: Vec<Vec<usize>>,
    /// Every link once.
    pub links: Vec<Link>,
    /// The links of each edge, up to where it joins another one.
    pub edges: Vec<Range<usize>>,
    /// The links from above, of every vertex.
    pub above: Vec<Vec<usize>>,
    /// The links to below, of every vertex.
    pub below: Vec<Vec<usize>>,
    /// How many vertices are nodes.
    pub nodes: usize,
}

/// A piece of an edge, from one layer to the next.
#[derive(Clone, Copy)]
pub struct Link {
    /// Where it begins.
    pub upper: usize,
    /// Where it ends.
    pub lower: usize,
    /// Its place among what leaves the upper vertex, and how many places there are.
    pub port: (usize, usize),
    /// The part of the graph that it belongs to.
    pub part: Part,
}

impl Link {
    /// Where it leaves the upper vertex: from -½ on the left to ½ on the right.
    pub fn offset(&self) -> f64 {
        (self.port.0 as f64 + 0.5) / self.port.1 as f64 - 0.5
    }
}

impl Levels {
    /// The levels, their rows in no order yet; `None` if there are more than `most` bends.
    pub fn new(nodes: &[Node], mut layers: Vec<usize>, most: usize) -> Option<Levels> {
        let mut bends: HashMap<(usize, bool, usize), usize> = HashMap::new();
        let (mut links, mut edges) = (Vec::new(), Vec::new());
        for (id, node) in nodes.iter().enumerate() {
            for (position, &operand) in node.operands.iter().enumerate() {
                let first = links.len();
                let mut port = if node.ordered { (position, node.operands.len()) } else { (0, 1) };
                let (mut upper, mut joined) = (id, false);
                for layer in layers[id] + 1..layers[operand] {
                    let bend = bends.entry((operand, node.part == Part::Function, layer));
                    joined = matches!(bend, Entry::Occupied(_));
                    let lower = *bend.or_insert(layers.len());
                    links.push(Link { upper, lower, port, part: node.part });
                    if joined {
                        break;
                    }
                    layers.push(layer);
                    (upper, port) = (lower, (0, 1));
                }
                if !joined {
                    links.push(Link { upper, lower: operand, port, part: node.part });
                }
                edges.push(first..links.len());
                if bends.len() > most {
                    return None;
                }
            }
        }
        Some(Levels::from_links(layers, links, edges, nodes.len()))
    }

    fn from_links(layers: Vec<usize>, links: Vec<Link>, edges: Vec<Range<usize>>, nodes: usize) -> Levels {
        let mut rows = vec![Vec::new(); layers.iter().max().map_or(0, |last| last + 1)];
        layers.iter().enumerate().for_each(|(vertex, &layer)| rows[layer].push(vertex));
        let (mut above, mut below) = (vec![Vec::new(); layers.len()], vec![Vec::new(); layers.len()]);
        for (id, link) in links.iter().enumerate() {
            below[link.upper].push(id);
            above[link.lower].push(id);
        }
        Levels { layers, rows, links, edges, above, below, nodes }
    }

    /// Whether a vertex is a bend.
    pub fn is_bend(&self, vertex: usize) -> bool {
        vertex >= self.nodes
    }
}
