//! The computation graph of a program and of its derivative, as data and in the language of Graphviz.
//!
//! As in figure 2 of the paper, nodes are operations and every edge points to an operand; what the function is made of
//! is blue, what the derivative adds is red. Results and derivatives are filled boxes, arguments are open ones. Equal
//! operations on equal operands are one node, also across definitions, so red nodes use blue ones where the derivative
//! uses values of the function. An element of a tensor is a node with an edge to the tensor.
//!
//! ```text
//! y = sin(x)^2      y ──→ ^2 ──→ sin ──→ x             blue
//!                   dx ──→ * ──→ dy, *…, cos ──→ x     red
//! ```

use crate::explain::range;
use crate::program::print;
use crate::program::{Comparison, Cond, CondId, Definition, Expr, ExprId, Program, TensorId, TensorKind};
use crate::scalar::BINARY;
use std::collections::HashMap;
use std::fmt::Write;

/// The graph of a program together with that of its derivative, which may be absent: every node after its operands.
///
/// ```
/// let ast = gradix::syntax::parse("input x\ny = sin(x)").unwrap();
/// let program = gradix::resolve(&ast, &[]).unwrap().program;
/// let nodes = gradix::explain::graph::graph(&program, None);
/// let labels: Vec<&str> = nodes.iter().map(|node| node.label.as_str()).collect();
/// assert_eq!((labels, nodes[1].operands.as_slice()), (vec!["x", "sin", "y"], &[0][..]));
/// ```
pub fn graph(program: &Program, derivative: Option<&Program>) -> Vec<Node> {
    let mut graph = Graph::default();
    graph.add(program, Part::Function);
    if let Some(derivative) = derivative {
        graph.add(derivative, Part::Derivative);
    }
    graph.nodes
}

/// The graph in the language of Graphviz.
///
/// ```
/// let ast = gradix::syntax::parse("input x\ny = sin(x)").unwrap();
/// let program = gradix::resolve(&ast, &[]).unwrap().program;
/// let dot = gradix::explain::graph::dot(&gradix::explain::graph::graph(&program, None));
/// assert!(dot.starts_with("digraph program {") && dot.contains("[label=\"sin\""), "{dot}");
/// ```
pub fn dot(nodes: &[Node]) -> String {
    let mut text = String::from(
        "digraph program {\n  ordering=out;\n  node [fontname=\"Helvetica\", fontsize=11, penwidth=1.5];\n",
    );
    text.push_str("  edge [arrowsize=0.6];\n");
    for (id, node) in nodes.iter().enumerate() {
        let _ = writeln!(text, "  n{id} [label=\"{}\", {}];", escaped(&node.label), style(node));
    }
    for (id, node) in nodes.iter().enumerate() {
        for (position, operand) in node.operands.iter().enumerate() {
            let role = node.role(position).map_or(String::new(), |role| format!(", label=\"{role}\", fontsize=9"));
            let _ = writeln!(text, "  n{id} -> n{operand} [color=\"{}\"{role}];", colour(node.part));
        }
    }
    text + "}\n"
}

/// A node of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What is written on it.
    pub label: String,
    /// What it stands for.
    pub shape: Shape,
    /// Where it comes from.
    pub part: Part,
    /// The nodes that it is computed from, all of them earlier in the list.
    pub operands: Vec<usize>,
    /// Whether the order of the operands matters.
    pub ordered: bool,
}

impl Node {
    /// What an operand is to a choice: what is compared comes first, then what is chosen.
    pub fn role(&self, operand: usize) -> Option<&'static str> {
        let is_choice = self.shape == Shape::Operation && self.label.starts_with("if ");
        match self.operands.len().checked_sub(operand)? {
            2 if is_choice => Some("then"),
            1 if is_choice => Some("else"),
            _ => None,
        }
    }
}

/// To which program a node belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The function.
    Function,
    /// Only the derivative.
    Derivative,
}

/// What a node stands for, and with that how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// An input, with its extents.
    Argument,
    /// An output.
    Result,
    /// A tensor on the way to the outputs.
    Defined,
    /// An element of a tensor, at other subscripts than those of its definition.
    Element,
    /// A number, or the value of an index.
    Number,
    /// A scalar operation, a reduction or a choice.
    Operation,
}

#[derive(Default)]
struct Graph {
    nodes: Vec<Node>,
    /// Equal nodes are shared.
    known: HashMap<(Shape, String, Vec<usize>), usize>,
    /// The node of every tensor, by name.
    tensors: HashMap<String, usize>,
}

impl Graph {
    fn add(&mut self, program: &Program, part: Part) {
        for id in program.inputs().filter(|&id| !self.tensors.contains_key(&program[id].name)).collect::<Vec<_>>() {
            let node = self.push(tensor_label(program, id), Shape::Argument, part, Vec::new());
            self.tensors.insert(program[id].name.clone(), node);
        }
        for definition in &program.definitions {
            let tensor = &program[definition.tensor];
            if tensor.kind == TensorKind::Nested || self.tensors.contains_key(&tensor.name) {
                continue;
            }
            let names: Vec<String> = definition.indices[..definition.rank].iter().map(|i| i.name.clone()).collect();
            let value = self.value(program, definition, names.clone(), part);
            let shape = if program.outputs.contains(&definition.tensor) { Shape::Result } else { Shape::Defined };
            let node = self.push(element_label(&tensor.name, &names), shape, part, vec![value]);
            self.tensors.insert(tensor.name.clone(), node);
        }
    }

    fn push(&mut self, label: String, shape: Shape, part: Part, operands: Vec<usize>) -> usize {
        let ordered = operands.len() > 1 && !BINARY.iter().any(|row| row.commutative && row.name == label);
        self.nodes.push(Node { label, shape, part, operands, ordered });
        self.nodes.len() - 1
    }

    fn shared(&mut self, label: String, shape: Shape, part: Part, operands: Vec<usize>) -> usize {
        let key = (shape, label.clone(), operands.clone());
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let node = self.push(label, shape, part, operands);
        self.known.insert(key, node);
        node
    }

    /// The value of a definition whose output indices have these names.
    fn value(&mut self, program: &Program, definition: &Definition, mut names: Vec<String>, part: Part) -> usize {
        names.extend(definition.indices[definition.rank..].iter().map(|index| index.name.clone()));
        let borrowed: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut done: HashMap<ExprId, usize> = HashMap::new();
        for id in program.exprs.postorder(definition.body) {
            let node = self.expr(program, id, &borrowed, &done, part);
            done.insert(id, node);
        }
        let body = done[&definition.body];
        let Some(op) = definition.reduction else { return body };
        let binder = |p: usize| format!("{} in {}", names[p], range(program, &borrowed, &definition.indices[p].range));
        let reduced = (definition.rank..names.len()).map(binder);
        let conditions = definition.conditions.iter().map(|c| print::constraint(&program.params, &borrowed, c));
        let label = format!("{}[{}]", op.name(), reduced.chain(conditions).collect::<Vec<_>>().join(", "));
        self.shared(label, Shape::Operation, part, vec![body])
    }

    fn expr(
        &mut self,
        program: &Program,
        id: ExprId,
        names: &[&str],
        done: &HashMap<ExprId, usize>,
        part: Part,
    ) -> usize {
        let operands = program.exprs.operands(id).iter().map(|operand| done[operand]).collect();
        let label = match &program.exprs[id] {
            Expr::Constant(number) => number.value().to_string(),
            Expr::Index(affine) => print::affine(&program.params, names, affine),
            Expr::Unary(op, _) => op.name().to_string(),
            Expr::Binary(op, ..) => op.name().to_string(),
            Expr::Select(condition, ..) => format!("if {}", test(program, *condition, names)),
            Expr::Access(tensor, subscripts) => {
                let subscripts: Vec<String> =
                    subscripts.iter().map(|s| print::affine(&program.params, names, s)).collect();
                return self.access(program, *tensor, subscripts, part);
            }
        };
        match &program.exprs[id] {
            // A number that many operations share would tie distant parts of the drawing together.
            Expr::Constant(_) | Expr::Index(_) => self.push(label, Shape::Number, part, operands),
            _ => self.shared(label, Shape::Operation, part, operands),
        }
    }

    /// A nested tensor is its value; any other is a node, from which an element differs unless the subscripts are its own.
    fn access(&mut self, program: &Program, tensor: TensorId, subscripts: Vec<String>, part: Part) -> usize {
        if program[tensor].kind == TensorKind::Nested {
            let definition = program.definition_of(tensor).expect("a nested tensor is defined");
            return self.value(program, definition, subscripts, part);
        }
        let label = element_label(&program[tensor].name, &subscripts);
        // Inside a circle, an element of another step stands for itself, so that the graph has no circle.
        let Some(&node) = self.tensors.get(&program[tensor].name) else {
            return self.shared(label, Shape::Element, part, Vec::new());
        };
        if self.nodes[node].label == label { node } else { self.shared(label, Shape::Element, part, vec![node]) }
    }
}

fn colour(part: Part) -> &'static str {
    match part {
        Part::Function => "blue",
        Part::Derivative => "red",
    }
}

fn style(node: &Node) -> String {
    let colour = colour(node.part);
    match node.shape {
        Shape::Argument => format!("shape=box, color={colour}"),
        Shape::Result => format!("shape=box, style=filled, color={colour}, fontcolor=white"),
        Shape::Defined => format!("shape=box, style=rounded, color={colour}"),
        Shape::Element | Shape::Number => format!("shape=plain, fontcolor={colour}"),
        Shape::Operation => format!("shape=ellipse, color={colour}"),
    }
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"")
}

/// An input with its extents.
fn tensor_label(program: &Program, id: TensorId) -> String {
    let extents: Vec<String> = program[id].extents.iter().map(|e| print::affine(&program.params, &[], e)).collect();
    element_label(&program[id].name, &extents)
}

fn element_label(name: &str, subscripts: &[String]) -> String {
    if subscripts.is_empty() { name.to_string() } else { format!("{name}[{}]", subscripts.join(", ")) }
}

/// A condition; `a` and `b` stand for values, which are operands of the node.
fn test(program: &Program, id: CondId, names: &[&str]) -> String {
    match &program.exprs[id] {
        Cond::Index(constraint) => print::constraint(&program.params, names, constraint),
        Cond::Compare(Comparison::Lt, ..) => "a < b".into(),
        Cond::Compare(Comparison::Le, ..) => "a <= b".into(),
        Cond::Compare(Comparison::Eq, ..) => "a == b".into(),
        Cond::Not(a) => format!("not ({})", test(program, *a, names)),
        Cond::And(a, b) => format!("{} and {}", grouped(program, *a, names), grouped(program, *b, names)),
        Cond::Or(a, b) => format!("{} or {}", grouped(program, *a, names), grouped(program, *b, names)),
    }
}

fn grouped(program: &Program, id: CondId, names: &[&str]) -> String {
    let text = test(program, id, names);
    if matches!(program.exprs[id], Cond::Or(..)) { format!("({text})") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str) -> Program {
        crate::resolve(&crate::syntax::parse(text).unwrap(), &[]).unwrap().program
    }

    fn both(text: &str) -> Vec<Node> {
        let program = resolved(text);
        let derivative = crate::derive(&program, &Default::default()).unwrap().program;
        graph(&program, Some(&derivative))
    }

    fn labels(nodes: &[Node], part: Part) -> Vec<&str> {
        nodes.iter().filter(|node| node.part == part).map(|node| node.label.as_str()).collect()
    }

    #[test]
    fn the_function_is_blue_and_the_derivative_red() {
        let nodes = both("input x\ny = sin(x)");
        assert_eq!(labels(&nodes, Part::Function), ["x", "sin", "y"]);
        assert_eq!(labels(&nodes, Part::Derivative), ["dy", "cos", "*", "dx"]);
        let cos = nodes.iter().find(|node| node.label == "cos").unwrap();
        assert_eq!(nodes[cos.operands[0]].label, "x");
    }

    #[test]
    fn equal_operations_are_one_node() {
        let nodes = both("input a[N], b[N]\nf[i] = exp(a[i] * b[i])\ng[i] = sin(a[i] * b[i])");
        let products = nodes.iter().filter(|node| node.label == "*" && node.part == Part::Function).count();
        assert_eq!(products, 1);
    }

    #[test]
    fn operands_come_first_and_their_order_is_told() {
        let nodes = both("input x[N], y[N]\nf[i] = (x[i] + y[i]) / max(x[i], y[i])");
        for (id, node) in nodes.iter().enumerate() {
            assert!(node.operands.iter().all(|&operand| operand < id), "{}", node.label);
        }
        let ordered = |label: &str| nodes.iter().find(|node| node.label == label).unwrap().ordered;
        assert_eq!(["+", "/", "max", "f[i]"].map(ordered), [false, true, false, false]);
    }

    #[test]
    fn sums_and_conditions_are_labelled() {
        let program = resolved("input x[N]\ny[i in 0..N] = sum[k in 0..=i] (if k > 2 then x[k] else 1)");
        let dot = dot(&graph(&program, None));
        for label in ["sum[k in 0..=i]", "if k >= 3", "x[N]", "x[k]", "y[i]"] {
            assert!(dot.contains(&format!("label=\"{label}\"")), "{label} in {dot}");
        }
    }

    #[test]
    fn a_long_chain_has_a_graph_of_its_own_length() {
        let mut text = String::from("input x0\n");
        (1..200).for_each(|i| text += &format!("x{i} = x{0} * x{0}\n", i - 1));
        assert!(graph(&resolved(&text), None).len() < 600);
    }
}
