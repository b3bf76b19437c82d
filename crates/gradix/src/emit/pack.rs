//! The packing of a contraction: what depends on rows, on lanes or on neither goes into its panel.

use super::leaf::Writer;
use super::panel::{Contraction, Parts};
use super::value::{Instances, store};
use crate::nest::TERMS;

impl Contraction<'_> {
    pub fn pack_terms(&self, w: &mut Writer, parts: &Parts) {
        if self.panels.by_term.is_empty() {
            return;
        }
        w.lines.open("");
        let at = self.open_terms(w, parts);
        let found: Vec<String> = {
            let mut values = w.values(Instances::default());
            self.panels.by_term.iter().map(|id| values.value(*id, (0, 0))).collect()
        };
        for (number, value) in found.iter().enumerate() {
            w.lines.line(format!("{}[{at} + {}] = {value};", parts.term_panel, number * TERMS));
        }
        self.close_terms(w, &at);
        w.lines.close();
    }

    pub fn pack_lanes(&self, w: &mut Writer, parts: &Parts, block: &str) {
        let lane = &w.names.variables[self.lane.variable].clone();
        let packed = &parts.tables.packed;
        let mut place = vec![block.to_string(), parts.last_lane.clone()];
        place.extend(parts.boxes.iter().flat_map(|(first, last)| [first.clone(), last.clone()]));
        place.extend(self.lanes_stay(w).into_iter().flatten().map(|v| w.names.variables[v].clone()));
        if let Some(enough) = &parts.enough_lanes {
            w.lines.open(format!("if (!{enough})"));
        } else if !packed.is_empty() {
            let differ: Vec<String> = packed.iter().zip(&place).map(|(held, now)| format!("{held} != {now}")).collect();
            w.lines.open(format!("if ({})", differ.join(" || ")));
            packed.iter().zip(&place).for_each(|(held, now)| w.lines.line(format!("{held} = {now};")));
        }
        self.pack_lanes_from(w, parts, block, lane);
        if parts.enough_lanes.is_some() || !packed.is_empty() {
            w.lines.close();
        }
    }

    /// Term by term, so that neighbours in the lanes are read one after the other.
    fn pack_lanes_from(&self, w: &mut Writer, parts: &Parts, block: &str, lane: &str) {
        let operands = self.panels.by_lane.len();
        let width = self.vectors;
        let panel = w.names.fresh("panel");
        w.lines.open("");
        let at = self.open_terms(w, parts);
        w.lines.line(format!("gx_t *{panel} = {} + {at}*{operands}*{width}*GX_W;", parts.lane_panel));
        let (stop, step) = (&parts.last_lane, format!("{width}*GX_W"));
        w.lines.open(format!("for (int64_t {lane} = {block}; {lane} <= {stop}; {lane} += {step})"));
        let mut names = vec![lane.to_string()];
        for number in 1..width {
            names.push(w.names.fresh("v"));
            w.lines.line(format!("const int64_t {} = {lane} + {number}*GX_W;", names[number]));
        }
        for whole in [true, false] {
            match whole {
                true => w.lines.open(format!("if ({lane} + {step} - 1 <= {stop})")),
                false => w.lines.otherwise(),
            }
            let mut partial = Vec::new();
            if !whole {
                for name in &names {
                    let n = w.names.fresh("n");
                    let left = format!("gx_larger(0, gx_smaller(GX_W, {stop} - {name} + 1))");
                    w.lines.line(format!("const int64_t {n} = {left};"));
                    partial.push(n);
                }
            }
            let instances =
                Instances { lanes: Some((self.lane.variable, names.clone())), partial, ..Instances::default() };
            let mut values = w.values(instances);
            let mut found = Vec::new();
            for (number, id) in self.panels.by_lane.iter().enumerate() {
                for vector in 0..width {
                    found.push((number, vector, values.wide(*id, (0, vector))));
                }
            }
            for (number, vector, value) in found {
                let offset = format!("({number}*{width} + {vector})*GX_W");
                w.lines.line(format!("gx_store({panel} + {offset}, {value});"));
            }
        }
        w.names.variables[self.lane.variable] = lane.to_string();
        w.lines.close();
        w.lines.line(format!("{panel} += {operands}*{width}*GX_W*{};", parts.terms));
        w.lines.close();
        self.close_terms(w, &at);
        w.lines.close();
    }

    /// Packs what depends on the rows: along the terms, which are neighbours in the panel, or where rows lie side by side
    /// term by term.
    pub fn pack_rows(&self, w: &mut Writer, parts: &Parts, (group, rows): &(String, String)) {
        if self.panels.rows_beside {
            return self.pack_rows_beside(w, parts, group, rows);
        }
        let row = w.names.variables[self.row.variable].clone();
        let count = self.row_count;
        let (panel, terms) = (&parts.row_panel, &parts.terms);
        let u = w.names.fresh("u");
        w.lines.open(format!("for (int64_t {u} = 0; {u} < {count}; {u}++)"));
        w.lines.open(format!("if ({u} >= {rows})"));
        for number in 0..self.panels.by_row.len() {
            let place = format!("{panel} + {} + {u}*{TERMS}", number * count * TERMS);
            w.lines.line(format!("__builtin_memset({place}, 0, (uint64_t){terms}*sizeof(gx_t));"));
        }
        w.lines.line("continue;");
        w.lines.close();
        w.lines.line(format!("const int64_t {row} = {group} + {u};"));
        let at = w.names.fresh("at");
        w.lines.line(format!("int64_t {at} = 0;"));
        let (inner, outer) = self.terms.split_last().expect("a reduction has loops");
        let (bounds, outer_bounds) = parts.boxes.split_last().expect("a reduction has loops");
        for (l, (start, end)) in outer.iter().zip(outer_bounds) {
            let v = w.names.variables[l.variable].clone();
            w.lines.open(format!("for (int64_t {v} = {start}; {v} <= {end}; {v}++)"));
        }
        let v = w.names.variables[inner.variable].clone();
        let (first, last) = bounds;
        w.lines.line(format!("int64_t {v} = {first};"));
        if self.panels.rows_in_lanes {
            w.lines.open(format!("for (; {v} + GX_W - 1 <= {last}; {v} += GX_W)"));
            self.pack_row_vector(w, &u, &at, &v, None, panel);
            w.lines.line(format!("{at} += GX_W;"));
            w.lines.close();
            w.lines.open(format!("if ({v} <= {last})"));
            let n = w.names.fresh("n");
            w.lines.line(format!("const int64_t {n} = {last} - {v} + 1;"));
            self.pack_row_vector(w, &u, &at, &v, Some(&n), panel);
            w.lines.line(format!("{at} += {n};"));
        } else {
            w.lines.open(format!("for (; {v} <= {last}; {v}++)"));
            let mut values = w.values(Instances::default());
            let found: Vec<String> = self.panels.by_row.iter().map(|id| values.value(*id, (0, 0))).collect();
            for (number, value) in found.iter().enumerate() {
                w.lines.line(format!("{panel}[{} + {u}*{TERMS} + {at}] = {value};", number * count * TERMS));
            }
            w.lines.line(format!("{at}++;"));
        }
        w.close(outer.len() + 2);
    }

    /// Term by term, in vectors across the rows; rows that are not there are zeros.
    fn pack_rows_beside(&self, w: &mut Writer, parts: &Parts, group: &str, rows: &str) {
        let (count, row) = (self.row_count, self.row.variable);
        let saved = w.names.variables[row].clone();
        w.lines.open("");
        let at = self.open_terms(w, parts);
        let [start, held, stored] = ["v", "n", "n"].map(|s| w.names.fresh(s));
        w.lines.open(format!("for (int64_t {start} = 0; {start} < {count}; {start} += GX_W)"));
        w.lines.line(format!("const int64_t {held} = gx_larger(0, gx_smaller(GX_W, {rows} - {start}));"));
        w.lines.line(format!("const int64_t {stored} = gx_smaller(GX_W, {count} - {start});"));
        let lanes = Some((row, vec![format!("({group} + {start})")]));
        let mut values = w.values(Instances { lanes, partial: vec![held], ..Instances::default() });
        let found: Vec<String> = self.panels.by_row.iter().map(|id| values.wide(*id, (0, 0))).collect();
        for (number, value) in found.iter().enumerate() {
            let place = format!("{} + {} + {at}*{count} + {start}", parts.row_panel, number * count * TERMS);
            w.lines.line(store(false, &place, "1", Some(&stored), value));
        }
        w.lines.close();
        w.names.variables[row] = saved;
        self.close_terms(w, &at);
        w.lines.close();
    }

    /// Packs a vector of terms of a row; `partial` is the number of terms where there are fewer than lanes.
    fn pack_row_vector(&self, w: &mut Writer, u: &str, at: &str, v: &str, partial: Option<&str>, panel: &str) {
        let inner = self.terms.last().expect("a reduction has loops").variable;
        let lanes = Some((inner, vec![v.to_string()]));
        let partial: Vec<String> = partial.into_iter().map(String::from).collect();
        let mut values = w.values(Instances { lanes, partial: partial.clone(), ..Instances::default() });
        let found: Vec<String> = self.panels.by_row.iter().map(|id| values.wide(*id, (0, 0))).collect();
        for (number, value) in found.iter().enumerate() {
            let place = format!("{panel} + {} + {u}*{TERMS} + {at}", number * self.row_count * TERMS);
            w.lines.line(store(false, &place, "1", partial.first().map(String::as_str), value));
        }
    }
}
