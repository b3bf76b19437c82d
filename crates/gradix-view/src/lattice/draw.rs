//! Lattices as SVG, after the lattice figures of the paper.
//!
//! On the left the space of the indices: the domain outlined in red, a solution as a black dot, the rest of the lattice
//! grey, other points of the domain as specks, the kernel as arrows. On the right the space of `z`, with the region that
//! the domain becomes there. With one index, the elements of the argument take the place of that.

use std::fmt::Write;

use super::panel::Panel;
use super::{Kernel, Lattice, Point, elements};
use crate::svg::{self, escaped};

/// All lattices, one below the other.
pub fn draw(lattices: &[Lattice]) -> String {
    let (mut body, mut top, mut width) = (String::new(), 0.0, 0.0f64);
    for lattice in lattices {
        let (drawing, size) = draw_one(lattice);
        let _ = writeln!(body, "<g transform=\"translate(0 {top})\">\n{drawing}</g>");
        top += size[1];
        width = width.max(size[0]);
    }
    svg::document(width.ceil(), top.ceil(), 13, &body)
}

const GREY: &str = "#a8a8a8";
/// Points that are there, and no more.
pub const PALE: &str = "#d9d9d9";

/// One lattice, and its width and height.
fn draw_one(lattice: &Lattice) -> (String, [f64; 2]) {
    let mut text = String::new();
    let _ = writeln!(text, "<text x=\"24\" y=\"32\" font-size=\"16\">{}</text>", escaped(&lattice.title));
    let (left, right) = panels(lattice);
    let mut size = [left.size[0] + 48.0, left.size[1] + 48.0];
    let _ = writeln!(text, "<g transform=\"translate(24 48)\">\n{}</g>", left.body);
    if let Some(right) = right {
        let _ = writeln!(text, "<g transform=\"translate({} 48)\">\n{}</g>", size[0], right.body);
        size = [size[0] + right.size[0] + 24.0, size[1].max(right.size[1] + 48.0)];
    }
    let title_width = 48.0 + 8.5 * lattice.title.chars().count() as f64;
    (text, [size[0].max(title_width), size[1] + 12.0])
}

fn panels(lattice: &Lattice) -> (Panel, Option<Panel>) {
    match &lattice.elements {
        Some(elements) if elements.extents.len() == 1 => (elements::vector(lattice, elements), None),
        Some(elements) => (index_space(lattice), Some(elements::matrix(lattice, elements))),
        None => (index_space(lattice), lattice.kernel.as_ref().and_then(kernel_space)),
    }
}

fn index_space(lattice: &Lattice) -> Panel {
    let flat = |point: &Point| flat(point, &lattice.axes);
    let domain: Vec<[i64; 2]> = unique(lattice.domain.iter().map(flat));
    let start = lattice.kernel.as_ref().map(|kernel| flat(&kernel.start));
    let shown: Vec<&str> = lattice.axes.iter().map(|&axis| lattice.names[axis].as_str()).collect();
    let hidden = (0..lattice.names.len()).find(|axis| !lattice.axes.contains(axis));
    let (names, caption) = match (shown.as_slice(), hidden) {
        ([a, b, ..], Some(axis)) => ([*a, *b], format!("indices ({a}, {b}); {} is perpendicular", lattice.names[axis])),
        ([a, b, ..], None) => ([*a, *b], format!("indices ({a}, {b})")),
        (one, _) => ([one[0], ""], format!("index {}", one[0])),
    };
    let window: Vec<[i64; 2]> = domain.iter().copied().chain(start).collect();
    let mut panel = Panel::around(&window, names, &caption);
    domain.iter().for_each(|&point| panel.dot(point, 2.0, PALE));
    match lattice.axes.len() {
        1 => outline(&mut panel, &lattice.domain, 0),
        _ => panel.polygon(&hull(&domain)),
    }
    if let Some(kernel) = &lattice.kernel {
        lines(&mut panel, kernel, &lattice.axes);
    }
    solutions(&mut panel, lattice, flat);
    if let Some(kernel) = &lattice.kernel {
        arrows(&mut panel, kernel, &lattice.axes);
        crosses(&mut panel, kernel, &lattice.axes);
    }
    panel
}

/// The coordinates of a point that are drawn.
fn flat(point: &[i64], axes: &[usize]) -> [i64; 2] {
    [0, 1].map(|place| axes.get(place).map_or(0, |&axis| point[axis]))
}

/// The values of a single index, in a row of a panel.
pub fn outline(panel: &mut Panel, domain: &[Point], row: i64) {
    let values = || domain.iter().map(|point| point[0] as f64);
    let (low, high) = (values().fold(f64::INFINITY, f64::min) - 0.4, values().fold(f64::NEG_INFINITY, f64::max) + 0.4);
    let (bottom, top) = (row as f64 - 0.4, row as f64 + 0.4);
    if low < high {
        panel.polygon(&[[low, bottom], [high, bottom], [high, top], [low, top]]);
    }
}

/// The solutions, and the rest of the lattice around them.
pub fn solutions(panel: &mut Panel, lattice: &Lattice, flat: impl Fn(&Point) -> [i64; 2]) {
    let radius = panel.radius();
    let inside = unique(lattice.solutions.iter().map(&flat));
    let outside = unique(lattice.lattice.iter().map(&flat).filter(|point| !inside.contains(point)));
    outside.iter().for_each(|&point| panel.dot(point, radius, GREY));
    inside.iter().for_each(|&point| panel.dot(point, radius, "black"));
}

/// A one-dimensional lattice lies on a line.
fn lines(panel: &mut Panel, kernel: &Kernel, axes: &[usize]) {
    let [column] = kernel.columns.as_slice() else { return };
    let (origin, column) = (flat(&kernel.origin, axes), flat(column, axes));
    let Some(ends) = interval(&window(panel, origin, column)) else { return };
    let [first, last] = [ends.0, ends.1].map(|z| on_line(origin, column, z));
    panel.line(first, last, &format!("stroke=\"{GREY}\" stroke-width=\"1\""));
}

/// The line enters and leaves the domain at `l` and `h`.
fn crosses(panel: &mut Panel, kernel: &Kernel, axes: &[usize]) {
    let [column] = kernel.columns.as_slice() else { return };
    let (origin, column) = (flat(&kernel.origin, axes), flat(column, axes));
    let seen = interval(&window(panel, origin, column)).is_some();
    if let Some((low, high)) = interval(&kernel.rows).filter(|(low, high)| seen && low <= high) {
        panel.cross(on_line(origin, column, low), "l");
        panel.cross(on_line(origin, column, high), "h");
    }
}

fn on_line(origin: [i64; 2], column: [i64; 2], z: f64) -> [f64; 2] {
    [0, 1].map(|axis| origin[axis] as f64 + z * column[axis] as f64)
}

/// Where a line is inside of a panel.
fn window(panel: &Panel, origin: [i64; 2], column: [i64; 2]) -> Vec<(Vec<i64>, i64)> {
    let bounds = |axis: usize| {
        let (low, high) = (2 * (origin[axis] - panel.low[axis]) + 1, 2 * (panel.high[axis] - origin[axis]) + 1);
        [(vec![2 * column[axis]], low), (vec![-2 * column[axis]], high)]
    };
    [0, 1].into_iter().flat_map(bounds).collect()
}

/// The columns of the kernel, from `I (β - c)` if that is near.
fn arrows(panel: &mut Panel, kernel: &Kernel, axes: &[usize]) {
    let start = flat(&kernel.start, axes).map(|value| value as f64);
    for (number, column) in kernel.columns.iter().enumerate() {
        let step = flat(column, axes);
        let label = if kernel.columns.len() == 1 { "K".into() } else { format!("K{}", subscript(number + 1)) };
        if step != [0, 0] {
            panel.arrow(start, [0, 1].map(|axis| start[axis] + step[axis] as f64), &label);
        }
    }
    if kernel.start == kernel.origin {
        let downwards = kernel.columns.iter().any(|column| flat(column, axes)[1] < 0);
        let [x, y] = panel.at(start);
        let mut places = [[x + 5.0, y + 18.0], [x + 5.0, y - 10.0]];
        if downwards {
            places.reverse();
        }
        panel.label(&places, "I(β−c)", "font-size=\"12\"");
    }
}

/// The space of `z`, if it has one or two dimensions.
fn kernel_space(kernel: &Kernel) -> Option<Panel> {
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
    let mut panel = Panel::around(&window, names, &caption);
    panel.polygon(&region);
    let radius = panel.radius();
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
