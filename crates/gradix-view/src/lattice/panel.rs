//! A coordinate system on paper: axes with integer ticks, and points, lines and arrows by their coordinates.
//!
//! Nothing has an `id`, because all pictures of a page share their names: arrows have their heads drawn, and lines end where
//! the panel does.

use crate::svg::{RED, escaped};

/// From `low` to `high`, and half a step more on all sides.
pub struct Panel {
    pub low: [i64; 2],
    pub high: [i64; 2],
    pub unit: f64,
    pub size: [f64; 2],
    pub body: String,
    /// Where labels and arrows are, from left and top to right and bottom: no other label goes there.
    taken: Vec<[f64; 4]>,
}

/// The space for tick labels left and below, and for axis names right and above.
const BORDER: [f64; 2] = [34.0, 22.0];
/// How far an axis reaches beyond the panel.
const BEYOND: f64 = 14.0;
/// How many pieces of an arrow keep labels away.
const ALONG: usize = 16;
const NAME: &str = "font-style=\"italic\" font-size=\"14\"";
const TICK: &str = "text-anchor=\"middle\" font-size=\"11\"";

impl Panel {
    /// A window on the points and what is next to them; `names` are those of the axes, and `caption` is written below.
    pub fn around(points: &[[i64; 2]], names: [&str; 2], caption: &str) -> Panel {
        let bound = |axis: usize| {
            let values = || points.iter().map(|point| point[axis]);
            (values().min().unwrap_or(0) - 1, values().max().unwrap_or(0) + 1)
        };
        // An axis without a name is not drawn, and needs no margin.
        let ((left, right), (bottom, top)) = (bound(0), if names[1].is_empty() { (0, 0) } else { bound(1) });
        Panel::new([left, bottom], [right, top], names, caption)
    }

    /// A window of given bounds.
    pub fn new(low: [i64; 2], high: [i64; 2], names: [&str; 2], caption: &str) -> Panel {
        let steps = [0, 1].map(|axis| high[axis] - low[axis] + 1);
        let unit = unit(steps[0].max(steps[1]));
        let inner = steps.map(|steps| steps as f64 * unit);
        let width = (inner[0] + 2.0 * BORDER[0]).max(7.0 * caption.chars().count() as f64);
        let size = [width, inner[1] + 3.0 * BORDER[1] + 10.0];
        let mut panel = Panel { low, high, unit, size, body: String::new(), taken: Vec::new() };
        panel.frame(names, caption, inner);
        panel
    }

    fn frame(&mut self, names: [&str; 2], caption: &str, inner: [f64; 2]) {
        let ([left, top], [width, height]) = (BORDER, inner);
        let (right, bottom) = (left + width, top + height);
        self.axis([left, bottom], [right + BEYOND, bottom]);
        self.text([right + 10.0, bottom + 18.0], names[0], NAME);
        for tick in self.ticks() {
            let x = self.at([tick as f64, 0.0])[0];
            self.add(&format!("<path d=\"M{x} {bottom} v4\" stroke=\"black\"/>"));
            self.text([x, bottom + 18.0], &tick.to_string(), TICK);
        }
        self.text([left, bottom + 2.0 * BORDER[1] + 2.0], caption, "fill=\"#444\" font-size=\"12\"");
        if names[1].is_empty() {
            return;
        }
        self.axis([left, bottom], [left, top - BEYOND]);
        self.text([left - 9.0, top - 4.0], names[1], &format!("text-anchor=\"end\" {NAME}"));
        for tick in self.low[1]..=self.high[1] {
            let y = self.at([0.0, tick as f64])[1];
            self.add(&format!("<path d=\"M{left} {y} h-4\" stroke=\"black\"/>"));
            self.text([left - 8.0, y + 4.0], &tick.to_string(), "text-anchor=\"end\" font-size=\"11\"");
        }
    }

    /// One more horizontal axis, above, with the same ticks.
    pub fn upper_axis(&mut self, name: &str) {
        let [left, top] = BORDER;
        let right = left + (self.high[0] - self.low[0] + 1) as f64 * self.unit;
        self.axis([left, top], [right + BEYOND, top]);
        self.text([right + 10.0, top - 8.0], name, NAME);
        for tick in self.ticks() {
            let x = self.at([tick as f64, 0.0])[0];
            self.add(&format!("<path d=\"M{x} {top} v-4\" stroke=\"black\"/>"));
            self.text([x, top - 8.0], &tick.to_string(), TICK);
        }
    }

    /// The integers that are written at horizontal axes.
    fn ticks(&self) -> Vec<i64> {
        let every = if self.unit < 22.0 { 5 } else { 1 };
        (self.low[0]..=self.high[0]).filter(|tick| tick % every == 0).collect()
    }

    fn add(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    /// Where a point is drawn.
    pub fn at(&self, point: [f64; 2]) -> [f64; 2] {
        let x = BORDER[0] + (point[0] - self.low[0] as f64 + 0.5) * self.unit;
        let y = BORDER[1] + (self.high[1] as f64 - point[1] + 0.5) * self.unit;
        [x, y].map(rounded)
    }

    /// The radius of a dot.
    pub fn radius(&self) -> f64 {
        rounded((self.unit / 7.0).clamp(2.5, 5.0))
    }

    pub fn text(&mut self, [x, y]: [f64; 2], text: &str, style: &str) {
        self.add(&format!("<text x=\"{x}\" y=\"{y}\" {style}>{}</text>", escaped(text)));
    }

    pub fn dot(&mut self, point: [i64; 2], radius: f64, colour: &str) {
        let [x, y] = self.at(point.map(|value| value as f64));
        self.add(&format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{colour}\"/>"));
    }

    /// A dot that is not filled.
    pub fn ring(&mut self, point: [i64; 2], radius: f64) {
        let [x, y] = self.at(point.map(|value| value as f64));
        self.add(&format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"white\" stroke=\"black\"/>"));
    }

    /// The outline of a domain.
    pub fn polygon(&mut self, corners: &[[f64; 2]]) {
        let corners: Vec<String> =
            corners.iter().map(|&corner| self.at(corner)).map(|[x, y]| format!("{x},{y}")).collect();
        let style = format!(
            "fill=\"{RED}\" fill-opacity=\"0.05\" stroke=\"{RED}\" stroke-width=\"2\" stroke-linejoin=\"round\""
        );
        self.add(&format!("<polygon points=\"{}\" {style}/>", corners.join(" ")));
    }

    pub fn line(&mut self, from: [f64; 2], to: [f64; 2], style: &str) {
        let (from, to) = (self.at(from), self.at(to));
        self.stroke(from, to, style);
    }

    /// A cross with its label, `l` before it and `h` behind it.
    pub fn cross(&mut self, point: [f64; 2], label: &str) {
        let [x, y] = self.at(point);
        self.add(&format!(
            "<path d=\"M{} {} l8 8 m0 -8 l-8 8\" stroke=\"{RED}\" stroke-width=\"2\"/>",
            x - 4.0,
            y - 4.0
        ));
        self.taken.push([x - 4.0, y - 4.0, x + 4.0, y + 4.0]);
        let mut places = [[x + 9.0, y + 15.0], [x + 9.0, y - 8.0], [x - 14.0, y + 15.0], [x - 14.0, y - 8.0]];
        if label == "l" {
            places.reverse();
        }
        self.label(&places, label, &format!("fill=\"{RED}\" font-style=\"italic\" font-weight=\"bold\""));
    }

    /// Text at the first of these places where nothing is in its way.
    pub fn label(&mut self, places: &[[f64; 2]], text: &str, style: &str) {
        let around = |[x, y]: [f64; 2]| [x, y - 10.0, x + 8.0 * text.chars().count() as f64, y + 2.0];
        let meets = |a: [f64; 4], b: [f64; 4]| a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
        let free = |place: &&[f64; 2]| self.taken.iter().all(|other| !meets(around(**place), *other));
        let place = *places.iter().find(free).unwrap_or(&places[0]);
        self.taken.push(around(place));
        self.text(place, text, style);
    }

    /// An arrow with its label beside it, nearer to the head.
    pub fn arrow(&mut self, from: [f64; 2], to: [f64; 2], label: &str) {
        let (start, end) = (self.at(from), self.at(to));
        self.arrow_on_paper(start, end, 13.0, "stroke-width=\"2\"");
        let [x, y] = self.at([0, 1].map(|axis| from[axis] + 0.7 * (to[axis] - from[axis])));
        let across = match (to[0] - from[0], to[1] - from[1]) {
            (0.0, _) => [[7.0, 4.0], [-16.0, 4.0]],
            (_, rise) if rise < 0.0 => [[6.0, -9.0], [-16.0, 14.0]],
            _ => [[-14.0, -9.0], [6.0, 14.0]],
        };
        self.label(&across.map(|[right, down]| [x + right, y + down]), label, "font-weight=\"bold\"");
        let along = (0..=ALONG).map(|part| part as f64 / ALONG as f64);
        let points = along.map(|part| [0, 1].map(|axis| start[axis] + part * (end[axis] - start[axis])));
        self.taken.extend(points.map(|[x, y]| [x - 2.0, y - 2.0, x + 2.0, y + 2.0]));
    }

    fn axis(&mut self, from: [f64; 2], to: [f64; 2]) {
        self.arrow_on_paper(from, to, 6.0, "stroke-width=\"0.8\"");
    }

    /// A line with a head at its end.
    fn arrow_on_paper(&mut self, from: [f64; 2], to: [f64; 2], head: f64, style: &str) {
        let along = [0, 1].map(|axis| to[axis] - from[axis]);
        let length = along[0].hypot(along[1]);
        let [x, y] = along.map(|part| part / length * head.min(0.7 * length));
        let [a, b, c, d, e, f] =
            [to[0] - x, to[1] - y, to[0] - x - 0.4 * y, to[1] - y + 0.4 * x, 0.8 * y, -0.8 * x].map(rounded);
        self.stroke(from, [a, b], &format!("stroke=\"black\" {style}"));
        self.add(&format!("<path d=\"M{} {} L{c} {d} l{e} {f} z\"/>", to[0], to[1]));
    }

    fn stroke(&mut self, [a, b]: [f64; 2], [c, d]: [f64; 2], style: &str) {
        self.add(&format!("<path d=\"M{a} {b} L{c} {d}\" {style}/>"));
    }
}

/// How long a step is if there are so many.
pub fn unit(steps: i64) -> f64 {
    (440.0 / steps as f64).clamp(14.0, 46.0)
}

fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
