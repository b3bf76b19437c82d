//! The computation graph as SVG, once it is known where everything stands.
//!
//! Edges leave a node in the order of its operands, from left to right, and are vertical where they pass a layer, so
//! that they never touch a node on the way.

use std::fmt::Write;

use gradix::explain::graph::{Node, Part, Shape};

use super::label::{FONT_SIZE, shortened};
use super::levels::Levels;
use super::place::departure;
use crate::svg::{self, BLUE, RED, escaped};

/// The height of a layer, and of a box in it.
pub const HEIGHT: f64 = 26.0;
/// The height of a node that is text only.
const PLAIN: f64 = 17.0;
/// The least distance between two layers; they are further apart where edges go far to the side.
const GAP: f64 = 28.0;
const MORE_GAP: f64 = 44.0;
const MARGIN: f64 = 16.0;
/// How far below the graph the legend stands, and how wide it is.
const LEGEND: f64 = 24.0;
const LEGEND_WIDTH: f64 = 240.0;
/// How far to the side an edge may go for each step down where it passes a layer: it may not touch a node there.
const STEEPEST: f64 = 0.6;
/// How wide and how high the head of an arrow is.
const HEAD: [f64; 2] = [6.0, 8.0];

/// The picture; `x` is the middle of every vertex and `widths` are those of the nodes.
pub fn draw(nodes: &[Node], levels: &Levels, x: &[f64], widths: &[f64]) -> String {
    let picture = Picture { nodes, levels, x, widths, tops: tops(levels, x) };
    let right = nodes.iter().enumerate().map(|(id, _)| x[id] + widths[id] / 2.0);
    let right = x.iter().copied().chain(right).fold(0.0, f64::max);
    let bottom = picture.tops.last().map_or(0.0, |top| top + HEIGHT);
    let mut body = format!("<g transform=\"translate({MARGIN} {MARGIN})\">\n<g fill=\"none\" stroke-width=\"1.2\">\n");
    (0..levels.edges.len()).for_each(|edge| body += &picture.edge(edge));
    body += "</g>\n";
    body += &picture.heads();
    body += &picture.roles();
    body += "<g text-anchor=\"middle\">\n";
    (0..nodes.len()).for_each(|id| body += &picture.node(id));
    body += "</g>\n";
    let mut size = [right, bottom];
    if nodes.iter().any(|node| node.part == Part::Derivative) {
        body += &legend(bottom + LEGEND);
        size = [right.max(LEGEND_WIDTH), bottom + LEGEND];
    }
    body += "</g>\n";
    let [width, height] = size.map(|length| (length + 2.0 * MARGIN).ceil());
    svg::document(width, height, FONT_SIZE as u32, &body)
}

/// What the colours mean.
fn legend(y: f64) -> String {
    let entry = |x: f64, part: Part, text: &str| {
        let (colour, middle, x, after) = (colour(part), short(y - 4.0), short(x + 4.0), short(x + 13.0));
        format!(
            "<circle cx=\"{x}\" cy=\"{middle}\" r=\"4\" fill=\"{colour}\"/><text x=\"{after}\" y=\"{}\">{text}</text>\n",
            short(y)
        )
    };
    let entries =
        entry(0.0, Part::Function, "the function") + &entry(92.0, Part::Derivative, "added by the derivative");
    format!("<g font-size=\"11\" fill=\"#444\">\n{entries}</g>\n")
}

/// Where each layer begins.
fn tops(levels: &Levels, x: &[f64]) -> Vec<f64> {
    let mut aside = vec![0.0f64; levels.rows.len()];
    for link in &levels.links {
        let layer = levels.layers[link.upper];
        aside[layer] = aside[layer].max((x[link.upper] - x[link.lower]).abs());
    }
    let mut top = 0.0;
    let next = |aside: &f64| {
        let here = top;
        top += HEIGHT + GAP + (aside / 10.0).min(MORE_GAP);
        here
    };
    aside.iter().map(next).collect()
}

struct Picture<'a> {
    nodes: &'a [Node],
    levels: &'a Levels,
    x: &'a [f64],
    widths: &'a [f64],
    tops: Vec<f64>,
}

impl Picture<'_> {
    /// The middle of the layer of a vertex.
    fn middle(&self, vertex: usize) -> f64 {
        self.tops[self.levels.layers[vertex]] + HEIGHT / 2.0
    }

    /// Where the links into a vertex end, and those from it begin.
    fn upper_end(&self, vertex: usize) -> f64 {
        self.middle(vertex) - self.nodes.get(vertex).map_or(HEIGHT, |node| height(node.shape)) / 2.0
    }

    /// Behind the outline, which may be round.
    fn lower_end(&self, vertex: usize) -> f64 {
        match self.nodes.get(vertex).map(|node| node.shape) {
            Some(Shape::Element | Shape::Number) => self.middle(vertex) + PLAIN / 2.0,
            Some(Shape::Operation | Shape::Defined | Shape::Argument | Shape::Result) => self.middle(vertex),
            None => self.middle(vertex) + HEIGHT / 2.0,
        }
    }

    /// Where links of a part arrive at a vertex: beside each other if both parts do.
    fn arrival(&self, vertex: usize, part: Part) -> f64 {
        let links = || self.levels.above[vertex].iter().map(|&link| &self.levels.links[link]);
        let mean = |part: Part| {
            let places: Vec<f64> = links().filter(|link| link.part == part).map(|link| self.x[link.upper]).collect();
            (!places.is_empty()).then(|| places.iter().sum::<f64>() / places.len() as f64)
        };
        match (mean(Part::Function), mean(Part::Derivative)) {
            (Some(function), Some(derivative)) => {
                let left = if function <= derivative { Part::Function } else { Part::Derivative };
                self.x[vertex] + if part == left { -HEAD[0] / 2.0 - 1.0 } else { HEAD[0] / 2.0 + 1.0 }
            }
            _ => self.x[vertex],
        }
    }

    /// What the edges of choices mean, where they leave.
    fn roles(&self) -> String {
        let operands = self.nodes.iter().flat_map(|node| (0..node.operands.len()).map(move |place| (node, place)));
        let mut text = String::new();
        for (edge, (node, place)) in self.levels.edges.iter().zip(operands) {
            let Some(role) = node.role(place) else { continue };
            let first = &self.levels.links[edge.start];
            let x = self.x[first.upper] + departure(first, self.widths[first.upper]);
            let (x, anchor) = if role == "then" { (x - 3.0, "end") } else { (x + 3.0, "start") };
            let (x, y) = (short(x), short(self.middle(first.upper) + HEIGHT / 2.0 + 9.0));
            let style = format!("font-size=\"9\" text-anchor=\"{anchor}\" fill=\"{}\"", colour(node.part));
            let _ = writeln!(text, "<text x=\"{x}\" y=\"{y}\" {style}>{role}</text>");
        }
        text
    }

    /// A smooth curve, vertical at both ends. It turns between layers only, and passes them in a straight line.
    fn edge(&self, edge: usize) -> String {
        let links = &self.levels.links[self.levels.edges[edge].clone()];
        let (first, last) = (links[0], links[links.len() - 1]);
        let x = self.x[first.upper] + departure(&first, self.widths[first.upper]);
        let mut path = format!("M{} {}", short(x), short(self.lower_end(first.upper)));
        let mut points = vec![[x, self.middle(first.upper)]];
        points.extend(links.iter().map(|link| [self.x[link.lower], self.middle(link.lower)]));
        let mut start = ([x, points[0][1] + HEIGHT / 2.0], 0.0);
        for three in points.windows(3) {
            let ([x, y], slope) = (three[1], slope(three));
            let beside = slope * HEIGHT / 2.0;
            path += &curve(start, ([x - beside, y - HEIGHT / 2.0], slope));
            start = ([x + beside, y + HEIGHT / 2.0], slope);
        }
        let end = match self.levels.is_bend(last.lower) {
            true => [self.x[last.lower], self.middle(last.lower)],
            false => [self.arrival(last.lower, last.part), self.upper_end(last.lower) - HEAD[1] + 1.0],
        };
        format!("<path d=\"{path}{}\" stroke=\"{}\"/>\n", curve(start, (end, 0.0)), colour(first.part))
    }

    /// Arrows end vertically, all of one colour and node at one place.
    fn heads(&self) -> String {
        let mut text = String::new();
        for part in [Part::Function, Part::Derivative] {
            let mut path = String::new();
            for vertex in 0..self.nodes.len() {
                let mut links = self.levels.above[vertex].iter().map(|&link| &self.levels.links[link]);
                if links.any(|link| link.part == part) {
                    let (x, y) = (short(self.arrival(vertex, part)), short(self.upper_end(vertex)));
                    let [width, height] = HEAD;
                    let _ = write!(path, "M{x} {y}l{} {}h{width}z", -width / 2.0, -height);
                }
            }
            if !path.is_empty() {
                let _ = writeln!(text, "<path d=\"{path}\" fill=\"{}\"/>", colour(part));
            }
        }
        text
    }

    fn node(&self, id: usize) -> String {
        let node = &self.nodes[id];
        let (colour, width, height) = (colour(node.part), self.widths[id], height(node.shape));
        let (x, y) = (self.x[id], self.middle(id));
        let outline = |radius: f64, fill: &str| {
            let (left, top) = (short(x - width / 2.0), short(y - height / 2.0));
            format!(
                "<rect x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{height}\" rx=\"{radius}\" fill=\"{fill}\" \
                 stroke=\"{colour}\" stroke-width=\"1.5\"/>",
                short(width)
            )
        };
        let (outline, ink) = match node.shape {
            Shape::Argument => (outline(0.0, "white"), "black"),
            Shape::Result => (outline(0.0, colour), "white"),
            Shape::Defined => (outline(6.0, "white"), "black"),
            Shape::Element | Shape::Number => (String::new(), colour),
            Shape::Operation => (outline(height / 2.0, "white"), "black"),
        };
        let (label, title) = (escaped(&shortened(&node.label)), escaped(&node.label));
        let (x, y) = (short(x), short(y + 0.35 * FONT_SIZE));
        format!("<g><title>{title}</title>{outline}<text x=\"{x}\" y=\"{y}\" fill=\"{ink}\">{label}</text></g>\n")
    }
}

/// How far to the side a smooth curve goes for each step down, at the middle one of three points.
fn slope(points: &[[f64; 2]]) -> f64 {
    let [above, below] = [0, 1].map(|from| {
        let ([a, b], [c, d]) = (points[from], points[from + 1]);
        (c - a) / (d - b)
    });
    // As in a monotone interpolation, so that nothing swings out.
    if above * below > 0.0 { above.signum() * above.abs().min(below.abs()).min(STEEPEST) } else { 0.0 }
}

/// A line to where a curve starts, and the curve; each end has a point and a slope.
fn curve(([x, y], leave): ([f64; 2], f64), ([to, end], arrive): ([f64; 2], f64)) -> String {
    let reach = 0.45 * (end - y);
    let numbers = [x, y, x + leave * reach, y + reach, to - arrive * reach, end - reach, to, end];
    let [x, y, rest @ ..] = numbers.map(|value| short(value).to_string());
    format!("L{x} {y}C{}", rest.join(" "))
}

fn height(shape: Shape) -> f64 {
    match shape {
        Shape::Element | Shape::Number => PLAIN,
        Shape::Argument | Shape::Result | Shape::Defined | Shape::Operation => HEIGHT,
    }
}

fn colour(part: Part) -> &'static str {
    match part {
        Part::Function => BLUE,
        Part::Derivative => RED,
    }
}

/// A tenth of a pixel is fine enough.
fn short(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
