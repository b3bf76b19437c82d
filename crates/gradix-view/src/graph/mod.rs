//! The computation graph of a program and of its derivative as a picture.
//!
//! It looks as [`gradix::explain::graph::dot`] does through Graphviz, and needs nothing but this: nodes stand in layers, operands
//! below what uses them; what the function is made of is blue, what the derivative adds is red. The steps are those of
//! every layered drawing:
//!
//! ```text
//! nodes ─layer→ layers ─levels→ bends ─order→ rows ─place→ coordinates ─draw→ SVG
//! ```

mod draw;
mod label;
mod layer;
mod levels;
mod order;
mod place;

use gradix::diagnostic::Diagnostic;
use gradix::explain::graph::{Node, Shape, graph};
use gradix::program::Program;
use levels::Levels;

/// The most nodes, and the most bends of their edges, that are drawn.
pub const MAX_NODES: usize = 4_000;
const MAX_BENDS: usize = 40_000;

/// The graph of a program together with that of its derivative, which may be absent, as SVG; refused if it is too large.
///
/// ```
/// let ast = gradix::syntax::parse("input x\ny = sin(x)").unwrap();
/// let program = gradix::resolve(&ast, &[]).unwrap().program;
/// let svg = gradix_view::graph::svg(&program, None).unwrap();
/// assert!(svg.starts_with("<svg ") && svg.contains(">sin</text>"), "{svg}");
/// ```
pub fn svg(program: &Program, derivative: Option<&Program>) -> Result<String, Diagnostic> {
    picture(&graph(program, derivative))
}

fn picture(nodes: &[Node]) -> Result<String, Diagnostic> {
    if nodes.len() > MAX_NODES {
        let message = format!("the graph has {} nodes, more than the {MAX_NODES} that can be drawn", nodes.len());
        return Err(too_large(message));
    }
    let operands: Vec<Vec<usize>> = nodes.iter().map(|node| node.operands.clone()).collect();
    let Some(mut levels) = Levels::new(nodes, layer::layers(&operands), MAX_BENDS) else {
        return Err(too_large("the graph has too many long edges to be drawn".into()));
    };
    order::order(&mut levels);
    let widths: Vec<f64> = nodes.iter().map(width).collect();
    let x = place::place(&levels, &widths);
    Ok(draw::draw(nodes, &levels, &x, &widths))
}

fn too_large(message: String) -> Diagnostic {
    Diagnostic::error("too-large", message).hint("draw a part of it: fewer results, fewer arguments")
}

fn width(node: &Node) -> f64 {
    let text = label::width(&label::shortened(&node.label));
    match node.shape {
        Shape::Element | Shape::Number => text + 6.0,
        Shape::Argument | Shape::Result | Shape::Defined => (text + 16.0).max(draw::HEIGHT + 6.0),
        Shape::Operation => (text + 20.0).max(draw::HEIGHT + 6.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradix::explain::graph::Part;

    fn node(label: &str, shape: Shape, part: Part, operands: Vec<usize>) -> Node {
        Node { label: label.into(), shape, part, ordered: operands.len() > 1, operands }
    }

    /// Nodes that read one or two of those some places before them; the last ones belong to the derivative.
    fn chained(count: usize, distance: usize) -> Vec<Node> {
        let operands = |id: usize| match id {
            0 => Vec::new(),
            id if id.is_multiple_of(3) => vec![id - 1],
            id => vec![id - 1, id.saturating_sub(2 + id * 7 % distance)],
        };
        let part = |id: usize| if 2 * id < count { Part::Function } else { Part::Derivative };
        (0..count).map(|id| node("+", Shape::Operation, part(id), operands(id))).collect()
    }

    fn drawn(nodes: &[Node]) -> (Levels, Vec<f64>, Vec<f64>) {
        let operands: Vec<Vec<usize>> = nodes.iter().map(|node| node.operands.clone()).collect();
        let mut levels = Levels::new(nodes, layer::layers(&operands), MAX_BENDS).unwrap();
        order::order(&mut levels);
        let widths: Vec<f64> = nodes.iter().map(width).collect();
        let x = place::place(&levels, &widths);
        (levels, x, widths)
    }

    #[test]
    fn every_link_goes_to_the_next_layer_and_every_edge_to_its_operand() {
        let nodes = chained(300, 40);
        let (levels, ..) = drawn(&nodes);
        assert!(levels.links.iter().all(|link| levels.layers[link.lower] == levels.layers[link.upper] + 1));
        let mut edges = levels.edges.iter();
        for (id, operand) in nodes.iter().enumerate().flat_map(|(id, node)| node.operands.iter().map(move |o| (id, *o)))
        {
            let links = &levels.links[edges.next().unwrap().clone()];
            assert_eq!(links[0].upper, id);
            let mut end = links[links.len() - 1].lower;
            while levels.is_bend(end) {
                assert_eq!(levels.below[end].len(), 1);
                end = levels.links[levels.below[end][0]].lower;
            }
            assert_eq!(end, operand);
        }
        assert!(edges.next().is_none());
    }

    #[test]
    fn nodes_and_bends_of_a_layer_never_overlap() {
        let nodes = chained(300, 40);
        let (levels, x, widths) = drawn(&nodes);
        let half = |vertex: usize| widths.get(vertex).map_or(0.0, |width| width / 2.0);
        assert_eq!(levels.rows.iter().map(Vec::len).sum::<usize>(), levels.layers.len());
        for pair in levels.rows.iter().flat_map(|row| row.windows(2)) {
            assert!(x[pair[1]] - x[pair[0]] > half(pair[0]) + half(pair[1]) + 10.0);
        }
        assert!((0..x.len()).all(|vertex| x[vertex] - half(vertex) >= 0.0));
    }

    #[test]
    fn a_tree_has_no_crossings_and_a_chain_is_straight() {
        // 6 = (4 = 0 - 1) - (5 = 2 - 3)
        let operation = |operands| node("-", Shape::Operation, Part::Function, operands);
        let mut nodes: Vec<Node> =
            ["a", "b", "c", "d"].map(|name| node(name, Shape::Argument, Part::Function, vec![])).into();
        nodes.extend([operation(vec![0, 1]), operation(vec![2, 3]), operation(vec![4, 5])]);
        assert_eq!(drawn(&nodes).0.rows, [vec![6], vec![4, 5], vec![0, 1, 2, 3]]);
        let chain: Vec<Node> = (0..9_usize).map(|id| operation(id.checked_sub(1).into_iter().collect())).collect();
        let (_, x, _) = drawn(&chain);
        assert!(x.iter().all(|place| *place == x[0]), "{x:?}");
    }

    #[test]
    fn operands_leave_in_their_order_unless_they_can_be_exchanged() {
        let argument = |name| node(name, Shape::Argument, Part::Function, vec![]);
        let operation = |operands, ordered| Node { ordered, ..node("?", Shape::Operation, Part::Function, operands) };
        // Both read the same two arguments, in opposite orders.
        let both = |ordered| {
            let nodes = [argument("a"), argument("b"), operation(vec![0, 1], ordered), operation(vec![1, 0], ordered)];
            let (levels, ..) = drawn(&nodes);
            let ends = |id: usize| {
                let mut links: Vec<_> = levels.below[id].iter().map(|&link| levels.links[link]).collect();
                links.sort_by_key(|link| link.port);
                links.iter().map(|link| link.lower).collect::<Vec<_>>()
            };
            (ends(2), ends(3))
        };
        assert_eq!(both(true), (vec![0, 1], vec![1, 0]));
        let (first, second) = both(false);
        assert_eq!(first, second);
    }

    #[test]
    fn large_graphs_are_drawn_or_refused() {
        assert_eq!(picture(&chained(2000, 20)).unwrap().matches("<title>").count(), 2000);
        let refused = |nodes: &[Node]| picture(nodes).unwrap_err().message;
        assert!(refused(&chained(MAX_NODES + 1, 20)).contains("4001 nodes"));
        // Every node of a chain is read again by the last one.
        let mut nodes: Vec<Node> = chained(1000, 1);
        nodes.push(node("sum", Shape::Operation, Part::Function, (0..1000).collect()));
        assert!(refused(&nodes).contains("long edges"));
    }
}
