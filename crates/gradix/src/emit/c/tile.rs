//! The innermost part of a contraction as C: the register tile, a function, and its calls.

use super::lanes::{Place, all, combine, load, neutral, put};
use super::leaf::{Writer, lanes_of};
use super::panel::{Contraction, Group, Parts, element};
use crate::emit::integers::smaller;
use crate::emit::tree::{Callee, Operator, Routine, Type, Value};
use crate::emit::values::{Instance, Instances};
use crate::program::ExprId;

/// What the function takes.
struct Parameters {
    /// How many terms there are.
    terms: Value,
    /// For each operand by rows: the first one, how far apart rows are, and terms.
    rows: Vec<[Value; 3]>,
    /// For each operand by lanes: the first one, and how far apart terms are.
    lanes: Vec<[Value; 2]>,
    /// For each operand by terms: the first one.
    each: Vec<Value>,
    /// What is brought closer.
    ahead: Option<Value>,
    /// Where the sums are, and how far apart their rows.
    tile: Value,
    step: Value,
    /// Whether the tile holds nothing yet.
    fresh: Value,
}

impl Parameters {
    fn new(contraction: &Contraction, ahead: bool) -> Self {
        let named = |stem: &str, number: usize, kind: Type| Value::name(&format!("{stem}{number}"), kind);
        let terms = |by_table: bool| if by_table { Type::GIVEN_WHOLES.alone() } else { Type::Whole };
        let (reals, panels) = (Type::GIVEN_REALS.alone(), contraction.panels);
        let (by_row, by_lane) = (terms(contraction.rows_by_table()), terms(contraction.lanes_by_table()));
        let row = |n| [named("rows", n, reals), named("row_step", n, Type::Whole), named("row_term", n, by_row)];
        Parameters {
            terms: Value::name("terms", Type::Whole),
            rows: (0..panels.by_row.len()).map(row).collect(),
            lanes: (0..panels.by_lane.len())
                .map(|n| [named("lanes", n, reals), named("lane_term", n, by_lane)])
                .collect(),
            each: (0..panels.by_term.len()).map(|n| named("each", n, reals)).collect(),
            ahead: ahead.then(|| Value::name("ahead", Type::GIVEN_REALS)),
            tile: Value::name("tile", Type::REALS.alone()),
            step: Value::name("step", Type::Whole),
            fresh: Value::name("fresh", Type::Int),
        }
    }

    /// In the order in which they are given.
    fn list(self) -> Vec<Value> {
        let Parameters { terms, rows, lanes, each, ahead, tile, step, fresh } = self;
        let operands = rows.into_iter().flatten().chain(lanes.into_iter().flatten()).chain(each).chain(ahead);
        std::iter::once(terms).chain(operands).chain([tile, step, fresh]).collect()
    }
}

/// How far a term is: by a table, or so many steps.
fn distance(term: &Value, at: &Value) -> Value {
    if term.kind() == Type::Whole { at * term } else { term.at(at) }
}

impl Contraction<'_> {
    /// A function for the register tile: `row_count` × `vectors` accumulators over all terms of a box. Contractions of
    /// the same form share it.
    fn micro(&self, w: &mut Writer, ahead: bool) -> Callee {
        let outer = std::mem::take(&mut w.draft);
        let parameters = Parameters::new(self, ahead);
        self.micro_body(w, &parameters);
        let body = std::mem::replace(&mut w.draft, outer).finish();
        let parameters = parameters.list();
        let is_same = |known: &&Routine| known.parameters == parameters && known.body == body;
        if let Some(known) = w.shared.iter().find(is_same) {
            return Callee::known(known.name.clone().into());
        }
        let name = format!("gx_tile_{}", w.shared.len());
        let doc = vec![format!("{} rows of {} vectors, reduced over terms.", self.row_count, self.vectors)];
        w.shared.push(Routine { doc, name: name.clone(), own: true, parameters, body });
        Callee::known(name.into())
    }

    fn micro_body(&self, w: &mut Writer, parameters: &Parameters) {
        let Parameters { terms, tile, step, fresh, ahead, .. } = parameters;
        let points: Vec<Instance> = (0..self.row_count).flat_map(|r| (0..self.vectors).map(move |v| (r, v))).collect();
        let places: Vec<Value> =
            points.iter().map(|(r, v)| tile + Value::from(*r) * step + lanes_of_vector(*v)).collect();
        let mut sums = Vec::new();
        for ((row, vector), place) in points.iter().zip(&places) {
            let sum = Value::name(&format!("sum_{row}_{vector}"), Type::Vector);
            let start = fresh.choose(all(neutral(self.op, w.real)), load(place.clone(), 1.into(), None));
            w.draft.start(&sum, start);
            sums.push(sum);
        }
        let at = Value::name("at", Type::Whole);
        w.draft.steps(&at, 0, terms, 1);
        if let Some(ahead) = ahead {
            let prefetch = Callee::known("__builtin_prefetch".into());
            w.draft.run(prefetch.call([ahead + &at * Value::width(), 0.into(), 2.into()]));
        }
        self.term(w, parameters, &at, &sums);
        w.draft.close(1);
        for (sum, place) in sums.into_iter().zip(places) {
            w.draft.run(Place::dense(place, None).store(sum));
        }
    }

    /// One term of all sums: row by row, so that few values of rows are held at a time.
    fn term(&self, w: &mut Writer, parameters: &Parameters, at: &Value, sums: &[Value]) {
        let (rows, vectors) = (self.row_count, self.vectors);
        let mut given: Vec<((ExprId, Instance), Value)> = Vec::new();
        for (number, (id, [lanes, term])) in self.panels.by_lane.iter().zip(&parameters.lanes).enumerate() {
            for vector in 0..vectors {
                let name = Value::name(&format!("b{number}_{vector}"), Type::Vector);
                w.draft.fix(&name, load(lanes + distance(term, at) + lanes_of_vector(vector), 1.into(), None));
                given.extend((0..rows).map(|row| ((*id, (row, vector)), name.clone())));
            }
        }
        for (number, (id, each)) in self.panels.by_term.iter().zip(&parameters.each).enumerate() {
            let name = Value::name(&format!("c{number}"), Type::Real);
            w.draft.fix(&name, each.at(at));
            given.extend((0..rows).flat_map(|r| (0..vectors).map(move |v| (r, v))).map(|p| ((*id, p), name.clone())));
        }
        let nowhere = Value::Whole(0.into());
        let instances = Instances {
            lanes: Some((self.lane.variable, vec![nowhere.clone(); vectors])),
            rows: Some((self.row.variable, vec![nowhere; rows])),
            ..Instances::default()
        };
        for (row, sums) in sums.chunks(vectors).enumerate() {
            for (number, (id, [start, step, term])) in self.panels.by_row.iter().zip(&parameters.rows).enumerate() {
                let name = Value::name(&format!("a{number}_{row}"), Type::Real);
                w.draft.fix(&name, start.at(Value::from(row) * step + distance(term, at)));
                given.extend((0..vectors).map(|vector| ((*id, (row, vector)), name.clone())));
            }
            let mut values = w.values(instances.clone());
            values.given = given.iter().cloned().collect();
            let found: Vec<Value> = (0..vectors).map(|vector| values.wide(self.leaf.body, (row, vector))).collect();
            for (sum, value) in sums.iter().zip(found) {
                w.draft.assign(sum, combine(self.op, sum, value, None));
            }
        }
    }

    /// Calls the register-tiled kernel on every lane panel, straight into the target where that is possible. What is
    /// read in place is read for a whole tile, which begins earlier where there is less left.
    pub fn kernel(&self, w: &mut Writer, parts: &Parts, block: &Value, group: &Group) {
        let ahead = self.ahead(w, parts, block, &group.first);
        let micro = self.micro(w, ahead.is_some());
        let (lane, stop) = (w.variable(self.lane), &parts.last_lane);
        let first_row = earlier(w, &parts.enough_rows, &group.first, &parts.last_row - self.row_count + 1);
        let panel = w.draft.fresh("panel", Type::GIVEN_REALS);
        w.draft.start(&panel, &parts.lane_panel);
        w.draft.each(&lane, block, stop, self.width());
        let first_lane = earlier(w, &parts.enough_lanes, &lane, stop - self.width() + 1);
        let mut operands = vec![parts.terms.clone()];
        operands.extend(self.row_operands(w, parts, &first_row, &first_lane));
        operands.extend(self.lane_operands(w, parts, &first_row, &first_lane, &panel));
        operands.extend((0..self.panels.by_term.len()).map(|n| &parts.term_panel + n * self.panels.size.terms));
        operands.extend(ahead);
        let corner = match (&parts.enough_rows, &parts.enough_lanes) {
            (None, None) => None,
            _ => Some((&group.first - first_row) * self.width() + (&lane - first_lane)),
        };
        self.calls(w, parts, group, &micro, &operands, corner);
        w.draft.advance(&panel, self.lane_term() * &parts.terms);
        w.draft.close(1);
    }

    /// A whole tile goes into the target; one that is not, or whose target has no neighbours in the lanes, goes by way of a
    /// tile of its own, of which the part behind a corner is stored.
    fn calls(
        &self,
        w: &mut Writer,
        parts: &Parts,
        group: &Group,
        micro: &Callee,
        operands: &[Value],
        corner: Option<Value>,
    ) {
        let (lane, stop, width) = (w.variable(self.lane), &parts.last_lane, self.width());
        let call = |rest: [Value; 3]| {
            Value::Made(Operator::Call(micro.clone()), operands.iter().cloned().chain(rest).collect())
        };
        let saved = std::mem::replace(&mut w.names.variables[self.row.variable], group.first.clone());
        let address = w.names.address(self.leaf.target, &self.leaf.subscripts);
        let [row_step, lane_step] =
            [self.row, self.lane].map(|l| w.names.step(self.leaf.target, &self.leaf.subscripts, l.variable));
        w.names.variables[self.row.variable] = saved;
        if lane_step.is(1) {
            let whole = group.rows.equals(self.row_count).and((&lane + &width - 1).at_most(stop));
            w.draft.when(whole);
            w.draft.run(call([address.clone(), row_step.clone(), parts.fresh.clone()]));
            w.draft.otherwise();
        } else {
            w.draft.block();
        }
        let tile = w.draft.array("tile", &Type::Real, lanes_of(self.row_count * self.vectors));
        w.draft.run(call([tile.clone(), width.clone(), 1.into()]));
        let own = corner.map_or(tile.clone(), |corner| tile + corner);
        let lanes = smaller(width.clone(), stop - lane + 1);
        let (rows, fresh) = (group.rows.clone(), parts.fresh.clone());
        w.draft.run(put(self.op).call([address, row_step, lane_step, own, width, rows, lanes, fresh]));
        w.draft.close(1);
    }

    fn row_operands(&self, w: &Writer, parts: &Parts, first_row: &Value, first_lane: &Value) -> Vec<Value> {
        let all_terms = self.panels.size.terms;
        let operand = |(number, id): (usize, &ExprId)| {
            let packed = self.row_panel(parts, number);
            let Some(enough) = &parts.enough_rows else {
                let (row_step, term) = if self.panels.rows_beside { (1, self.row_count) } else { (all_terms, 1) };
                return [packed, row_step.into(), term.into()];
            };
            let (address, [row_step, term]) = self.in_place(w, *id, parts, first_row, first_lane);
            let terms = match (parts.tables.by_row.get(number), &parts.tables.packed_row) {
                (Some(table), Some(packed)) => enough.choose(table, packed),
                _ => enough.choose(term, 1),
            };
            [enough.choose(address, packed), enough.choose(row_step, all_terms), terms]
        };
        self.panels.by_row.iter().enumerate().flat_map(operand).collect()
    }

    fn lane_operands(
        &self,
        w: &Writer,
        parts: &Parts,
        first_row: &Value,
        first_lane: &Value,
        panel: &Value,
    ) -> Vec<Value> {
        let operand = |(number, id): (usize, &ExprId)| {
            let packed = panel + lanes_of_vector(number * self.vectors);
            let Some(enough) = &parts.enough_lanes else {
                return [packed, self.lane_term()];
            };
            let (address, [_, term]) = self.in_place(w, *id, parts, first_row, first_lane);
            let terms = match (parts.tables.by_lane.get(number), &parts.tables.packed_lane) {
                (Some(table), Some(packed)) => enough.choose(table, packed),
                _ => enough.choose(term, self.lane_term()),
            };
            [enough.choose(address, packed), terms]
        };
        self.panels.by_lane.iter().enumerate().flat_map(operand).collect()
    }

    /// What is read next: each group of rows brings a part of it closer.
    fn ahead(&self, w: &mut Writer, parts: &Parts, block: &Value, group: &Value) -> Option<Value> {
        let (next, operand) = (&self.leaf.loops[self.panels.ahead?], self.panels.by_lane[0]);
        let (now, (_, last)) = (w.variable(next), w.range(next));
        w.names.variables[next.variable] = smaller(&now + 1, last);
        let (address, _) = self.in_place(w, operand, parts, group, block);
        w.names.variables[next.variable] = now;
        let part = smaller((group - &parts.first_row) / self.row_count, (self.vectors - 1).into());
        Some(address + part * &parts.terms * Value::width())
    }

    /// The address of an operand at the first row, lane and term, and how far apart rows and terms are.
    fn in_place(&self, w: &Writer, id: ExprId, parts: &Parts, row: &Value, lane: &Value) -> (Value, [Value; 2]) {
        let (buffer, subscripts) = element(w.names.nest, id);
        let mut names = w.names.clone();
        names.variables[self.row.variable] = row.clone();
        names.variables[self.lane.variable] = lane.clone();
        for (l, span) in self.terms.iter().zip(&parts.boxes) {
            names.variables[l.variable] = span.start.clone();
        }
        let steps = [self.row, &self.terms[0]].map(|l| names.step(buffer, subscripts, l.variable));
        (names.address(buffer, subscripts), steps)
    }
}

/// The lanes before a vector.
fn lanes_of_vector(vector: usize) -> Value {
    Value::from(vector) * Value::width()
}

/// Where a tile begins: where it should, or earlier where it is read in place and there is less left.
fn earlier(w: &mut Writer, enough: &Option<Value>, at: &Value, latest: Value) -> Value {
    match enough {
        None => at.clone(),
        Some(enough) => w.draft.constant("first", enough.choose(smaller(at.clone(), latest), at)),
    }
}
