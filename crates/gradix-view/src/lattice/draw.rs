//! Lattices as SVG, after the lattice figures of the paper.
//!
//! On the left the space of the indices: the domain outlined in red, a solution as a black dot, the rest of the lattice
//! grey, other points of the domain as specks, the kernel as arrows. On the right the space of `z`, with the region that
//! the domain becomes there.

use std::fmt::Write;

use super::{Kernel, Lattice, Point};
use crate::svg::{self, RED, escaped};

/// All lattices, one below the other.
pub fn draw(lattices: &[Lattice]) -> String {
    let (mut body, mut top, mut width) = (String::new(), 0.0, 0.0f64);
    for (number, lattice) in lattices.iter().enumerate() {
        let (drawing, size) = draw_one(lattice, number);
        let _ = writeln!(body, "<g transform=\"translate(0 {top})\">\n{drawing}</g>");
        top += size[1];
        width = width.max(size[0]);
    }
    svg::document(width, top, 13, &(HEAD.to_string() + &body))
}

/// The head of an arrow.
const HEAD: &str = "<defs><marker id=\"arrow\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" markerHeight=\"7\" \
orient=\"auto\"><path d=\"M0 1 L10 5 L0 9 z\"/></marker></defs>\n";

const GREY: &str = "#a8a8a8";
const PALE: &str = "#d9d9d9";

/// One lattice, and its width and height.
fn draw_one(lattice: &Lattice, number: usize) -> (String, [f64; 2]) {
    let mut text = String::new();
    let _ = writeln!(text, "<text x=\"24\" y=\"32\" font-size=\"16\">{}</text>", escaped(&lattice.title));
    let left = index_space(lattice, &format!("a{number}"));
    let mut size = [left.size[0] + 48.0, left.size[1] + 48.0];
    let _ = writeln!(text, "<g transform=\"translate(24 48)\">\n{}</g>", left.body);
    let right = lattice.kernel.as_ref().and_then(|kernel| kernel_space(kernel, &format!("z{number}")));
    if let Some(right) = right {
        let _ = writeln!(text, "<g transform=\"translate({} 48)\">\n{}</g>", size[0], right.body);
        size = [size[0] + right.size[0] + 24.0, size[1].max(right.size[1] + 48.0)];
    }
    let title_width = 48.0 + 8.5 * lattice.title.chars().count() as f64;
    (text, [size[0].max(title_width), size[1] + 12.0])
}

/// A coordinate system with integer ticks from `low` to `high`, and half a step more on all sides.
struct Panel {
    low: [i64; 2],
    high: [i64; 2],
    unit: f64,
    size: [f64; 2],
    clip: String,
    body: String,
}

/// The space for tick labels left and below, and for axis names right and above.
const BORDER: [f64; 2] = [34.0, 22.0];

impl Panel {
    /// A window on the points; `names` are those of the axes, and `caption` is written below.
    fn new(points: &[[i64; 2]], names: [&str; 2], caption: &str, clip: &str) -> Panel {
        let bound = |axis: usize| {
            let values = || points.iter().map(|point| point[axis]);
            (values().min().unwrap_or(0) - 1, values().max().unwrap_or(0) + 1)
        };
        // An axis without a name is not drawn, and needs no margin.
        let ((left, right), (bottom, top)) = (bound(0), if names[1].is_empty() { (0, 0) } else { bound(1) });
        let steps = [right - left + 1, top - bottom + 1].map(|steps| steps as f64);
        let unit = (440.0 / steps[0].max(steps[1])).clamp(14.0, 46.0);
        let inner = steps.map(|steps| steps * unit);
        let size =
            [(inner[0] + 2.0 * BORDER[0]).max(7.0 * caption.chars().count() as f64), inner[1] + 3.0 * BORDER[1] + 10.0];
        let (low, high) = ([left, bottom], [right, top]);
        let mut panel = Panel { low, high, unit, size, clip: clip.into(), body: String::new() };
        panel.frame(names, caption, inner);
        panel
    }

    fn frame(&mut self, names: [&str; 2], caption: &str, inner: [f64; 2]) {
        let ([left, top], [width, height]) = (BORDER, inner);
        let (right, bottom) = (left + width, top + height);
        let clip = self.clip.clone();
        self.add(&format!(
            "<clipPath id=\"{clip}\"><rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"/></clipPath>"
        ));
        let axis = "stroke=\"black\" stroke-width=\"0.8\" marker-end=\"url(#arrow)\"";
        self.add(&format!("<path d=\"M{left} {bottom} H{}\" {axis}/>", right + 14.0));
        self.text([right + 10.0, bottom + 18.0], names[0], "font-style=\"italic\" font-size=\"14\"");
        let every = if self.unit < 22.0 { 5 } else { 1 };
        for tick in (self.low[0]..=self.high[0]).filter(|tick| tick % every == 0) {
            let x = self.at([tick as f64, 0.0])[0];
            self.add(&format!("<path d=\"M{x} {bottom} v4\" stroke=\"black\"/>"));
            self.text([x, bottom + 18.0], &tick.to_string(), "text-anchor=\"middle\" font-size=\"11\"");
        }
        self.text([left, bottom + 2.0 * BORDER[1] + 2.0], caption, "fill=\"#444\" font-size=\"12\"");
        if names[1].is_empty() {
            return;
        }
        self.add(&format!("<path d=\"M{left} {bottom} V{}\" {axis}/>", top - 14.0));
        self.text([left - 16.0, top - 4.0], names[1], "font-style=\"italic\" font-size=\"14\"");
        for tick in self.low[1]..=self.high[1] {
            let y = self.at([0.0, tick as f64])[1];
            self.add(&format!("<path d=\"M{left} {y} h-4\" stroke=\"black\"/>"));
            self.text([left - 8.0, y + 4.0], &tick.to_string(), "text-anchor=\"end\" font-size=\"11\"");
        }
    }

    fn add(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    /// Where a point is drawn.
    fn at(&self, point: [f64; 2]) -> [f64; 2] {
        let x = BORDER[0] + (point[0] - self.low[0] as f64 + 0.5) * self.unit;
        let y = BORDER[1] + (self.high[1] as f64 - point[1] + 0.5) * self.unit;
        [x, y].map(|value| (value * 100.0).round() / 100.0)
    }

    fn text(&mut self, [x, y]: [f64; 2], text: &str, style: &str) {
        self.add(&format!("<text x=\"{x}\" y=\"{y}\" {style}>{}</text>", escaped(text)));
    }

    fn dot(&mut self, point: [i64; 2], radius: f64, colour: &str) {
        let [x, y] = self.at(point.map(|value| value as f64));
        self.add(&format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{colour}\"/>"));
    }

    fn polygon(&mut self, corners: &[[f64; 2]]) {
        let corners: Vec<String> =
            corners.iter().map(|&corner| self.at(corner)).map(|[x, y]| format!("{x},{y}")).collect();
        let style = format!(
            "fill=\"{RED}\" fill-opacity=\"0.05\" stroke=\"{RED}\" stroke-width=\"2\" stroke-linejoin=\"round\""
        );
        let clip = self.clip.clone();
        self.add(&format!("<polygon points=\"{}\" {style} clip-path=\"url(#{clip})\"/>", corners.join(" ")));
    }

    fn line(&mut self, from: [f64; 2], to: [f64; 2], style: &str) {
        let ([a, b], [c, d]) = (self.at(from), self.at(to));
        self.add(&format!("<path d=\"M{a} {b} L{c} {d}\" {style}/>"));
    }

    /// A cross with its label, `l` before it and `h` behind it.
    fn cross(&mut self, point: [f64; 2], label: &str) {
        let [x, y] = self.at(point);
        self.add(&format!(
            "<path d=\"M{} {} l8 8 m0 -8 l-8 8\" stroke=\"{RED}\" stroke-width=\"2\"/>",
            x - 4.0,
            y - 4.0
        ));
        let place = if label == "l" { [x - 14.0, y - 8.0] } else { [x + 9.0, y + 15.0] };
        self.text(place, label, &format!("fill=\"{RED}\" font-style=\"italic\" font-weight=\"bold\""));
    }

    /// An arrow with its label beside it, nearer to the head.
    fn arrow(&mut self, from: [f64; 2], to: [f64; 2], label: &str) {
        self.line(from, to, "stroke=\"black\" stroke-width=\"2\" marker-end=\"url(#arrow)\"");
        let [x, y] = self.at([0, 1].map(|axis| from[axis] + 0.7 * (to[axis] - from[axis])));
        let across = match (to[0] - from[0], to[1] - from[1]) {
            (0.0, _) => [7.0, 4.0],
            (_, rise) if rise < 0.0 => [6.0, -9.0],
            _ => [-14.0, -9.0],
        };
        self.text([x + across[0], y + across[1]], label, "font-weight=\"bold\"");
    }
}

fn index_space(lattice: &Lattice, clip: &str) -> Panel {
    let flat = |point: &Point| lattice.axes.map(|axis| point[axis]);
    let domain: Vec<[i64; 2]> = unique(lattice.domain.iter().map(flat));
    let solutions: Vec<[i64; 2]> = unique(lattice.solutions.iter().map(flat));
    let others: Vec<[i64; 2]> = unique(lattice.lattice.iter().map(flat).filter(|point| !solutions.contains(point)));
    let start = lattice.kernel.as_ref().map(|kernel| flat(&kernel.start));
    let [a, b] = lattice.axes.map(|axis| lattice.names[axis].as_str());
    let hidden = (0..lattice.names.len()).find(|axis| !lattice.axes.contains(axis));
    let caption = match hidden {
        Some(axis) => format!("indices ({a}, {b}); {} is perpendicular", lattice.names[axis]),
        None => format!("indices ({a}, {b})"),
    };
    let window: Vec<[i64; 2]> = domain.iter().copied().chain(start).collect();
    let mut panel = Panel::new(&window, [a, b], &caption, clip);
    domain.iter().for_each(|&point| panel.dot(point, 2.0, PALE));
    panel.polygon(&hull(&domain));
    if let Some(kernel) = &lattice.kernel {
        lines(&mut panel, kernel, lattice.axes);
    }
    let radius = (panel.unit / 7.0).clamp(2.5, 5.0);
    others.iter().for_each(|&point| panel.dot(point, radius, GREY));
    solutions.iter().for_each(|&point| panel.dot(point, radius, "black"));
    if let Some(kernel) = &lattice.kernel {
        arrows(&mut panel, kernel, lattice.axes);
    }
    panel
}

/// A one-dimensional lattice lies on a line, which enters and leaves the domain at `l` and `h`.
fn lines(panel: &mut Panel, kernel: &Kernel, axes: [usize; 2]) {
    let [column] = kernel.columns.as_slice() else { return };
    let at = |z: f64| axes.map(|axis| kernel.origin[axis] as f64 + z * column[axis] as f64);
    if axes.iter().all(|&axis| column[axis] == 0) {
        return;
    }
    let style = format!("stroke=\"{GREY}\" stroke-width=\"1\" clip-path=\"url(#{})\"", panel.clip);
    panel.line(at(-100.0), at(100.0), &style);
    if let Some((low, high)) = interval(&kernel.rows).filter(|(low, high)| low <= high) {
        panel.cross(at(low), "l");
        panel.cross(at(high), "h");
    }
}

/// The columns of the kernel, from `I (β - c)` if that is near.
fn arrows(panel: &mut Panel, kernel: &Kernel, axes: [usize; 2]) {
    let start = axes.map(|axis| kernel.start[axis] as f64);
    for (number, column) in kernel.columns.iter().enumerate() {
        let end = axes.map(|axis| (kernel.start[axis] + column[axis]) as f64);
        let label = if kernel.columns.len() == 1 { "K".into() } else { format!("K{}", subscript(number + 1)) };
        if end != start {
            panel.arrow(start, end, &label);
        }
    }
    if kernel.start == kernel.origin {
        let downwards = kernel.columns.iter().any(|column| column[axes[1]] < 0);
        let [x, y] = panel.at(start);
        panel.text([x + 5.0, if downwards { y - 10.0 } else { y + 18.0 }], "I(β−c)", "font-size=\"12\"");
    }
}

/// The space of `z`, if it has one or two dimensions.
fn kernel_space(kernel: &Kernel, clip: &str) -> Option<Panel> {
    if kernel.columns.is_empty() {
        return None;
    }
    let flat = |point: &Point| [point[0], point.get(1).copied().unwrap_or(0)];
    let inside: Vec<[i64; 2]> = kernel.points.iter().map(flat).collect();
    let region = match kernel.columns.len() {
        1 => interval(&kernel.rows).map(|(low, high)| vec![[low, 0.0], [high, 0.0]])?,
        2 => region(&kernel.rows),
        _ => return None,
    };
    let corners = region.iter().flat_map(|corner| [corner.map(|v| v.floor() as i64), corner.map(|v| v.ceil() as i64)]);
    let window: Vec<[i64; 2]> = inside.iter().copied().chain(corners).chain([[0, 0]]).collect();
    let bounded = window.iter().flatten().all(|value| value.abs() <= 60);
    if region.is_empty() || !bounded {
        return None;
    }
    let count = match inside.len() {
        1 => "1 point".to_string(),
        count => format!("{count} points"),
    };
    let (names, caption) = match kernel.columns.len() {
        1 => (["z", ""], format!("kernel z: {count}")),
        _ => (["z₁", "z₂"], format!("kernel (z₁, z₂): {count}")),
    };
    let mut panel = Panel::new(&window, names, &caption, clip);
    panel.polygon(&region);
    let radius = (panel.unit / 7.0).clamp(2.5, 5.0);
    for y in panel.low[1]..=panel.high[1] {
        for x in panel.low[0]..=panel.high[0] {
            panel.dot([x, y], radius, if inside.contains(&[x, y]) { "black" } else { GREY });
        }
    }
    Some(panel)
}

/// Where `a·z + b >= 0` for all rows, with one `z`.
fn interval(rows: &[(Vec<i64>, i64)]) -> Option<(f64, f64)> {
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    for (coefficients, constant) in rows {
        let (a, b) = (coefficients[0] as f64, *constant as f64);
        match a {
            a if a > 0.0 => low = low.max(-b / a),
            a if a < 0.0 => high = high.min(-b / a),
            _ => {}
        }
    }
    (low.is_finite() && high.is_finite()).then_some((low, high))
}

/// The corners of the region where all rows hold: a large square, cut by one half-plane after the other.
fn region(rows: &[(Vec<i64>, i64)]) -> Vec<[f64; 2]> {
    let far = 1e4;
    let mut corners = vec![[-far, -far], [far, -far], [far, far], [-far, far]];
    for (coefficients, constant) in rows {
        let side = |p: [f64; 2]| coefficients[0] as f64 * p[0] + coefficients[1] as f64 * p[1] + *constant as f64;
        let mut kept = Vec::new();
        for (number, &corner) in corners.iter().enumerate() {
            let next = corners[(number + 1) % corners.len()];
            let (here, there) = (side(corner), side(next));
            if here >= 0.0 {
                kept.push(corner);
            }
            if here * there < 0.0 {
                let part = here / (here - there);
                kept.push([0, 1].map(|axis| corner[axis] + part * (next[axis] - corner[axis])));
            }
        }
        corners = kept;
    }
    corners
}

/// The convex hull of points, by Andrew's monotone chain.
fn hull(points: &[[i64; 2]]) -> Vec<[f64; 2]> {
    let mut sorted = points.to_vec();
    sorted.sort();
    let turn = |o: [i64; 2], a: [i64; 2], b: [i64; 2]| (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
    let chain = |points: &mut dyn Iterator<Item = [i64; 2]>| {
        let mut kept: Vec<[i64; 2]> = Vec::new();
        for point in points {
            while kept.len() >= 2 && turn(kept[kept.len() - 2], kept[kept.len() - 1], point) <= 0 {
                kept.pop();
            }
            kept.push(point);
        }
        kept.pop();
        kept
    };
    let (below, above) = (chain(&mut sorted.iter().copied()), chain(&mut sorted.iter().rev().copied()));
    let corners = if sorted.len() == 1 { sorted } else { below.into_iter().chain(above).collect() };
    corners.into_iter().map(|point| point.map(|value| value as f64)).collect()
}

fn unique(points: impl Iterator<Item = [i64; 2]>) -> Vec<[i64; 2]> {
    let mut points: Vec<[i64; 2]> = points.collect();
    points.sort();
    points.dedup();
    points
}

fn subscript(number: usize) -> String {
    number
        .to_string()
        .chars()
        .map(|digit| char::from_u32('₀' as u32 + digit as u32 - '0' as u32).unwrap_or(digit))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_planes_cut_a_region() {
        let square = region(&[(vec![1, 0], 0), (vec![-1, 0], 2), (vec![0, 1], 0), (vec![0, -1], 2)]);
        assert_eq!(square.len(), 4);
        assert!(square.iter().flatten().all(|value| *value == 0.0 || *value == 2.0), "{square:?}");
        assert!(region(&[(vec![1, 0], -1), (vec![-1, 0], 0)]).is_empty());
    }

    #[test]
    fn a_hull_has_the_corners_only() {
        let points: Vec<[i64; 2]> = (0..3).flat_map(|x| (0..=x).map(move |y| [x, y])).collect();
        assert_eq!(hull(&points), [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0]]);
        assert_eq!(hull(&[[1, 2]]), [[1.0, 2.0]]);
    }

    #[test]
    fn bounds_meet_in_an_interval() {
        assert_eq!(interval(&[(vec![2], 1), (vec![-2], 7)]), Some((-0.5, 3.5)));
        assert_eq!(interval(&[(vec![2], 1)]), None);
    }
}
