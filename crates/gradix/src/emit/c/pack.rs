//! The packing of a contraction: what depends on rows, on lanes or on neither goes into its panel.

use super::lanes::Place;
use super::leaf::Writer;
use super::library;
use super::panel::{Contraction, Group, Parts, Span, any_differs};
use crate::emit::integers::{larger, smaller};
use crate::emit::tree::{Callee, Code, Type, Value};
use crate::emit::values::{Instance, Instances};
use crate::nest::{Loop, LoopId};
use crate::program::ExprId;

impl Contraction<'_> {
    pub fn pack_terms(&self, w: &mut Writer, parts: &Parts) {
        if self.panels.by_term.is_empty() {
            return;
        }
        let at = self.open_terms(w, parts);
        for (number, value) in numbers(w, &self.panels.by_term).into_iter().enumerate() {
            w.draft.assign(&parts.term_panel.at(&at + number * self.panels.size.terms), value);
        }
        self.close_terms(w, &at);
    }

    /// Packs what depends on the lanes, unless it is there or is read in place.
    pub fn pack_lanes(&self, w: &mut Writer, parts: &Parts, block: &Value) {
        let packed = &parts.tables.packed;
        if let Some(enough) = &parts.enough_lanes {
            w.draft.when(!enough.clone());
        } else if !packed.is_empty() {
            let mut place = vec![block.clone(), parts.last_lane.clone()];
            place.extend(parts.boxes.iter().flat_map(|span| [span.start.clone(), span.end.clone()]));
            place.extend(self.moving(w).into_iter().map(|v| w.names.variables[v].clone()));
            w.draft.when(any_differs(packed, &place));
            packed.iter().zip(&place).for_each(|(held, now)| w.draft.assign(held, now));
        }
        self.pack_lanes_from(w, parts, block);
        w.draft.close(usize::from(parts.enough_lanes.is_some() || !packed.is_empty()));
    }

    /// Term by term, so that neighbours in the lanes are read one after the other.
    fn pack_lanes_from(&self, w: &mut Writer, parts: &Parts, block: &Value) {
        let (lane, stop) = (w.variable(self.lane), &parts.last_lane);
        let panel = w.draft.fresh("panel", Type::REALS);
        let at = self.open_terms(w, parts);
        w.draft.start(&panel, &parts.lane_panel + &at * self.lane_term());
        w.draft.each(&lane, block, stop, self.width());
        let starts = w.side_by_side(&lane, "v", self.vectors, Value::width());
        w.draft.when((&lane + self.width() - 1).at_most(stop));
        self.store_lanes(w, &panel, starts.clone(), Vec::new());
        w.draft.otherwise();
        let left = |w: &mut Writer, start: &Value| {
            w.draft.constant("n", larger(0.into(), smaller(Value::width(), stop - start + 1)))
        };
        let partial = starts.iter().map(|start| left(w, start)).collect();
        self.store_lanes(w, &panel, starts, partial);
        w.draft.close(1);
        w.names.variables[self.lane.variable] = lane;
        w.draft.advance(&panel, self.lane_term() * &parts.terms);
        w.draft.close(1);
        self.close_terms(w, &at);
    }

    /// Packs some vectors of every operand.
    fn store_lanes(&self, w: &mut Writer, panel: &Value, starts: Vec<Value>, partial: Vec<Value>) {
        let points: Vec<Instance> = (0..self.vectors).map(|vector| (0, vector)).collect();
        let mut values = w.values(Instances::lanes(self.lane.variable, starts, partial));
        let each = |id: &ExprId| points.iter().map(|point| values.wide(*id, *point)).collect::<Vec<_>>();
        let found: Vec<Value> = self.panels.by_lane.iter().flat_map(each).collect();
        for (number, value) in found.into_iter().enumerate() {
            w.draft.run(Place::dense(panel + Value::from(number) * Value::width(), None).store(value));
        }
    }

    /// Packs what depends on the rows: along the terms, which are neighbours in the panel, or where rows lie side by side
    /// term by term.
    pub fn pack_rows(&self, w: &mut Writer, parts: &Parts, group: &Group) {
        if self.panels.rows_beside {
            return self.pack_rows_beside(w, parts, group);
        }
        let u = w.draft.fresh("u", Type::Whole);
        w.draft.steps(&u, 0, self.row_count, 1);
        let panels: Vec<Value> =
            (0..self.panels.by_row.len()).map(|n| self.row_panel(parts, n) + &u * self.panels.size.terms).collect();
        w.draft.when(u.at_least(&group.rows));
        for panel in &panels {
            let clear = Callee::of("gx_clear", Type::Nothing, &library::CLEAR);
            w.draft.run(clear.call([panel.clone(), parts.terms.clone()]));
        }
        w.draft.push(Code::Continue);
        w.draft.close(1);
        let row = w.variable(self.row);
        w.draft.fix(&row, &group.first + &u);
        let at = w.draft.variable("at", 0);
        let (inner, outer) = self.terms.split_last().expect("a reduction has loops");
        let (span, outer_spans) = parts.boxes.split_last().expect("a reduction has loops");
        for (l, span) in outer.iter().zip(outer_spans) {
            let v = w.variable(l);
            w.draft.each(&v, &span.start, &span.end, 1);
        }
        self.pack_row(w, inner, span, &panels, &at);
        w.draft.close(outer.len() + 1);
    }

    /// Where the rows of an operand are packed to.
    pub fn row_panel(&self, parts: &Parts, number: usize) -> Value {
        &parts.row_panel + number * self.row_count * self.panels.size.terms
    }

    /// Packs the terms of a row along the innermost loop.
    fn pack_row(&self, w: &mut Writer, inner: &Loop, span: &Span, panels: &[Value], at: &Value) {
        let (v, last) = (w.variable(inner), &span.end);
        w.draft.start(&v, &span.start);
        if self.panels.rows_in_lanes {
            w.draft.go_on(&v, (&v + Value::width() - 1).at_most(last), Value::width());
            self.pack_row_vector(w, inner, panels, at, None);
            w.draft.advance(at, Value::width());
            w.draft.close(1);
            w.draft.when(v.at_most(last));
            let n = w.draft.constant("n", last - &v + 1);
            self.pack_row_vector(w, inner, panels, at, Some(n.clone()));
            w.draft.advance(at, n);
        } else {
            w.draft.go_on(&v, v.at_most(last), 1);
            for (panel, value) in panels.iter().zip(numbers(w, &self.panels.by_row)) {
                w.draft.assign(&(panel + at).held(), value);
            }
            w.draft.advance(at, 1);
        }
        w.draft.close(1);
    }

    /// Packs a vector of terms of a row; `count` is the number of terms where there are fewer than lanes.
    fn pack_row_vector(&self, w: &mut Writer, inner: &Loop, panels: &[Value], at: &Value, count: Option<Value>) {
        let starts = vec![w.variable(inner)];
        let found = self.row_vectors(w, inner.variable, starts, count.clone().into_iter().collect());
        for (panel, value) in panels.iter().zip(found) {
            w.draft.run(Place::dense(panel + at, count.clone()).store(value));
        }
    }

    /// A vector of every operand that depends on the rows.
    fn row_vectors(&self, w: &mut Writer, variable: LoopId, starts: Vec<Value>, partial: Vec<Value>) -> Vec<Value> {
        let mut values = w.values(Instances::lanes(variable, starts, partial));
        self.panels.by_row.iter().map(|id| values.wide(*id, (0, 0))).collect()
    }

    /// Term by term, in vectors across the rows; rows that are not there are zeros.
    fn pack_rows_beside(&self, w: &mut Writer, parts: &Parts, group: &Group) {
        let (count, row) = (self.row_count, self.row.variable);
        let saved = w.names.variables[row].clone();
        let at = self.open_terms(w, parts);
        let start = w.draft.fresh("v", Type::Whole);
        w.draft.steps(&start, 0, count, Value::width());
        let held = w.draft.constant("n", larger(0.into(), smaller(Value::width(), &group.rows - &start)));
        let stored = w.draft.constant("n", smaller(Value::width(), Value::from(count) - &start));
        let found = self.row_vectors(w, row, vec![&group.first + &start], vec![held]);
        for (number, value) in found.into_iter().enumerate() {
            let place = self.row_panel(parts, number) + &at * count + &start;
            w.draft.run(Place::dense(place, Some(stored.clone())).store(value));
        }
        w.draft.close(1);
        w.names.variables[row] = saved;
        self.close_terms(w, &at);
    }
}

/// The numbers that some nodes are worth.
fn numbers(w: &mut Writer, ids: &[ExprId]) -> Vec<Value> {
    let mut values = w.values(Instances::default());
    ids.iter().map(|id| values.value(*id, (0, 0))).collect()
}
