//! The innermost parts of a contraction as C functions: the register tile, and what stores a tile in pieces.

use super::leaf::Writer;
use super::panel::Contraction;
use super::text::Lines;
use super::value::{Given, Instances, combine, neutral};

impl Contraction<'_> {
    /// A function that combines a tile with the target, unless the target holds nothing yet.
    pub fn put(&self, w: &mut Writer) -> String {
        let name = format!("gx_put_{}", self.op.name());
        let mut text = PUT.replace("gx_put", &name);
        for (held, new) in [
            ("gx_load(to)", "gx_load(from)"),
            ("gx_load_n(to, n)", "gx_load_n(from, n)"),
            ("gx_load_s(to, 2)", "gx_load(from)"),
            ("*to", "*from"),
        ] {
            let both = combine(self.op, held, new, held != "*to", w.functions);
            text = text.replace(&format!("both({held}, {new})"), &both);
        }
        w.shared.add(name.clone(), text);
        name
    }

    /// A function for the register tile: `row_count` × `vectors` accumulators over all terms of a box. Contractions of
    /// the same form share it.
    pub fn micro(&self, w: &mut Writer, ahead: bool) -> String {
        let (count, width) = (self.row_count, self.vectors);
        let points: Vec<(usize, usize)> = (0..count).flat_map(|r| (0..width).map(move |v| (r, v))).collect();
        let sums: Vec<String> = points.iter().map(|(r, v)| format!("sum_{r}_{v}")).collect();
        let outer = std::mem::replace(&mut w.lines, Lines::at(1));
        let next = w.names.restart();
        for ((row, vector), sum) in points.iter().zip(&sums) {
            let held = format!("gx_load(tile + {row}*step + {vector}*GX_W)");
            w.lines.line(format!("gx_v {sum} = fresh ? gx_all({}) : {held};", neutral(self.op, w.single)));
        }
        w.lines.open("for (int64_t at = 0; at < terms; at++)");
        if ahead {
            w.lines.line("__builtin_prefetch(ahead + at*GX_W, 0, 2);");
        }
        self.body(w, &points, &sums);
        w.lines.close();
        for ((row, vector), sum) in points.iter().zip(&sums) {
            w.lines.line(format!("gx_store(tile + {row}*step + {vector}*GX_W, {sum});"));
        }
        w.names.resume(next);
        let body = std::mem::replace(&mut w.lines, outer).text;
        let mut arguments = vec!["int64_t terms".to_string()];
        let terms = |by_table: bool, name: &str, n: usize| match by_table {
            true => format!("const int64_t *restrict {name}{n}"),
            false => format!("int64_t {name}{n}"),
        };
        for n in 0..self.panels.by_row.len() {
            let term = terms(self.rows_by_table(), "row_term", n);
            arguments.push(format!("const gx_t *restrict rows{n}, int64_t row_step{n}, {term}"));
        }
        for n in 0..self.panels.by_lane.len() {
            let term = terms(self.lanes_by_table(), "lane_term", n);
            arguments.push(format!("const gx_t *restrict lanes{n}, {term}"));
        }
        (0..self.panels.by_term.len()).for_each(|n| arguments.push(format!("const gx_t *restrict each{n}")));
        arguments.extend(ahead.then(|| "const gx_t *ahead".to_string()));
        arguments.push("gx_t *restrict tile, int64_t step, int fresh".into());
        let arguments = arguments.join(",\n    ");
        w.shared.function("gx_tile", |name| {
            format!(
                "/* {count} rows of {width} vectors, reduced over terms. */\n\
                 static GX_NOINLINE void {name}({arguments})\n{{\n{body}}}\n"
            )
        })
    }

    fn body(&self, w: &mut Writer, points: &[(usize, usize)], sums: &[String]) {
        let width = self.vectors;
        let mut given: Vec<Given> = Vec::new();
        let place = |by_table: bool, term: &str, n: usize| match by_table {
            true => format!("{term}{n}[at]"),
            false => format!("at*{term}{n}"),
        };
        for (number, id) in self.panels.by_lane.iter().enumerate() {
            for vector in 0..width {
                let name = format!("b{number}_{vector}");
                let offset = format!("{} + {vector}*GX_W", place(self.lanes_by_table(), "lane_term", number));
                w.lines.line(format!("const gx_v {name} = gx_load(lanes{number} + {offset});"));
                let instances = (0..self.row_count).map(|row| (row, vector));
                given.extend(instances.map(|p| ((*id, p), (name.clone(), true))));
            }
        }
        for (number, id) in self.panels.by_term.iter().enumerate() {
            let name = format!("c{number}");
            w.lines.line(format!("const gx_t {name} = each{number}[at];"));
            given.extend(points.iter().map(|p| ((*id, *p), (name.clone(), false))));
        }
        let instances = Instances {
            lanes: Some((self.lane.variable, vec![String::new(); width])),
            rows: Some((self.row.variable, vec![String::new(); self.row_count])),
            columns: None,
            partial: Vec::new(),
        };
        // Row by row, so that few values of rows are held at a time.
        for row in 0..self.row_count {
            for (number, id) in self.panels.by_row.iter().enumerate() {
                let offset = format!("{row}*row_step{number} + {}", place(self.rows_by_table(), "row_term", number));
                let name = format!("a{number}_{row}");
                w.lines.line(format!("const gx_t {name} = rows{number}[{offset}];"));
                given.extend((0..width).map(|vector| ((*id, (row, vector)), (name.clone(), false))));
            }
            let mut values = w.values(instances.clone());
            values.given = given.iter().cloned().collect();
            let found: Vec<String> = (0..width).map(|vector| values.wide(self.leaf.body, (row, vector))).collect();
            for (vector, value) in found.iter().enumerate() {
                let sum = &sums[row * width + vector];
                let combined = combine(self.op, sum, value, true, w.functions);
                w.lines.line(format!("{sum} = {combined};"));
            }
        }
    }
}

/// What stores a tile; `both` stands for what combines two values.
const PUT: &str = "\
/* Combines rows x lanes elements of a tile with the target; a fresh target holds nothing yet. */
static GX_NOINLINE void gx_put(gx_t *target, int64_t row_step, int64_t lane_step, const gx_t *tile,
    int64_t width, int64_t rows, int64_t lanes, int fresh)
{
    for (int64_t u = 0; u < rows; u++) {
        int64_t v = 0;
        for (; lane_step == 1 && v + GX_W <= lanes; v += GX_W) {
            gx_t *const to = target + u*row_step + v;
            const gx_t *const from = tile + u*width + v;
            gx_store(to, fresh ? gx_load(from) : both(gx_load(to), gx_load(from)));
        }
        for (; lane_step == 1 && v < lanes; v += GX_W) {
            const int64_t n = gx_smaller(GX_W, lanes - v);
            gx_t *const to = target + u*row_step + v;
            const gx_t *const from = tile + u*width + v;
            gx_store_n(to, fresh ? gx_load_n(from, n) : both(gx_load_n(to, n), gx_load_n(from, n)), n);
        }
        for (; lane_step == 2 && v + GX_W <= lanes; v += GX_W) {
            gx_t *const to = target + u*row_step + 2*v;
            const gx_t *const from = tile + u*width + v;
            gx_store_s(to, 2, fresh ? gx_load(from) : both(gx_load_s(to, 2), gx_load(from)));
        }
        for (; v < lanes; v++) {
            gx_t *const to = target + u*row_step + v*lane_step;
            const gx_t *const from = tile + u*width + v;
            *to = fresh ? *from : both(*to, *from);
        }
    }
}
";
