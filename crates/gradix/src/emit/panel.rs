//! A contraction as C: operands packed into panels, then a register-tiled kernel over the panels.
//!
//! ```text
//! for others, for a block of lanes, for a box of the reduction:
//!     pack what depends on the lanes           lane panels [block / NR][term][NR]
//!     for groups of rows:
//!         pack what depends on the rows        row panel [MR][term]
//!         for lane panels:  sums[MR][NR] ⊕= body(row panel, lane panel) over all terms
//! ```
//!
//! An operand that is used too few times to be worth packing is read in place: the kernel takes a pointer, and how far from
//! it each term is: a step, or a table if the reduction has several loops.
//!
//! Index maps and guards are resolved while packing; the kernel reads panels only, and the body in it may be
//! any expression of packed values. Panels are padded: edges do the same work as the middle, and store less.

use super::leaf::Writer;
use super::value::neutral;
use crate::nest::{LANE_BLOCK, Leaf, Loop, Panels, ROW_BLOCK, TERMS};
use crate::program::{Expr, ExprId, ReduceOp};

/// Writes a leaf that has panels, rows and lanes.
pub fn write(writer: &mut Writer, leaf: &Leaf) {
    let (Some(panels), Some(lanes), Some((rows, row_count)), Some(op)) =
        (&leaf.shape.panels, leaf.shape.lanes, leaf.shape.rows, leaf.reduction)
    else {
        unreachable!("verified: panels come with lanes, rows and a reduction");
    };
    let apart = |p: &usize| *p == lanes || *p == rows || Some(*p) == panels.kept;
    let others: Vec<&Loop> = (0..leaf.outputs).filter(|p| !apart(p)).map(|p| &leaf.loops[p]).collect();
    let kept = panels.kept.map(|position| &leaf.loops[position]);
    let contraction = Contraction {
        leaf,
        panels,
        op,
        kept,
        next: kept.or(others.last().copied()),
        others,
        vectors: leaf.shape.vectors.max(1),
        row_count,
        row: &leaf.loops[rows],
        lane: &leaf.loops[lanes],
        terms: &leaf.loops[leaf.outputs..],
    };
    writer.lines.open("");
    let tables = contraction.open_tables(writer);
    contraction.others.iter().for_each(|l| writer.open_loop(l));
    contraction.write(writer, tables);
    writer.close(contraction.others.len() + 1);
}

/// A leaf, and the loops of it that have a part of their own.
pub struct Contraction<'a> {
    pub leaf: &'a Leaf,
    pub panels: &'a Panels,
    pub op: ReduceOp,
    /// The blocks of lanes for which packed rows are kept.
    kept: Option<&'a Loop>,
    /// The loops around.
    others: Vec<&'a Loop>,
    /// The innermost of them.
    next: Option<&'a Loop>,
    pub vectors: usize,
    pub row_count: usize,
    pub row: &'a Loop,
    pub lane: &'a Loop,
    pub terms: &'a [Loop],
}

/// C names of the tables of a contraction: how far each term is from the first.
#[derive(Default)]
pub struct Tables {
    /// For each operand that is read in place.
    pub by_row: Vec<String>,
    pub by_lane: Vec<String>,
    /// For packed operands in their place.
    pub packed_row: String,
    pub packed_lane: String,
    /// For how many values of each loop the tables hold.
    pub held: Vec<String>,
    /// The lanes, the box and the outputs around for which lanes are packed, where they may serve once more.
    pub packed: Vec<String>,
}

/// C names that the parts of a contraction share.
pub struct Parts {
    pub tables: Tables,
    pub row_panel: String,
    pub term_panel: String,
    pub lane_panel: String,
    pub terms: String,
    pub fresh: String,
    pub first_row: String,
    pub last_row: String,
    pub last_lane: String,
    /// Whether there are as many rows and lanes as the register tile has, where operands are read in place.
    pub enough_rows: Option<String>,
    pub enough_lanes: Option<String>,
    /// The first and last value of each loop of the reduction in the box at hand.
    pub boxes: Vec<(String, String)>,
}

impl Contraction<'_> {
    /// Whether operands that are read in place need tables.
    fn has_tables(&self) -> bool {
        self.terms.len() > 1
    }

    pub fn rows_by_table(&self) -> bool {
        self.panels.rows_in_place && self.has_tables()
    }

    pub fn lanes_by_table(&self) -> bool {
        self.panels.lanes_in_place && self.has_tables()
    }

    /// Declares the tables, outside all loops: they are filled when the numbers of terms change.
    fn open_tables(&self, w: &mut Writer) -> Tables {
        let mut tables = Tables::default();
        let declare = |w: &mut Writer, stem: &str| {
            let name = w.names.fresh(stem);
            w.lines.line(format!("int64_t {name}[{TERMS}];"));
            name
        };
        if self.rows_by_table() {
            tables.by_row = self.panels.by_row.iter().map(|_| declare(w, "row_at")).collect();
            tables.packed_row = declare(w, "row_at");
        }
        if self.lanes_by_table() {
            tables.by_lane = self.panels.by_lane.iter().map(|_| declare(w, "lane_at")).collect();
            tables.packed_lane = declare(w, "lane_at");
        }
        let packed_step = format!("{}*{}*GX_W", self.panels.by_lane.len(), self.vectors);
        let packed = [(&tables.packed_row, "1"), (&tables.packed_lane, &packed_step)];
        for (table, step) in packed.iter().filter(|(table, _)| !table.is_empty()) {
            w.lines.line(format!("for (int64_t at = 0; at < {TERMS}; at++) {table}[at] = at*({step});"));
        }
        if self.rows_by_table() || self.lanes_by_table() {
            for _ in self.terms {
                let held = w.names.fresh("held");
                w.lines.line(format!("int64_t {held} = -1;"));
                tables.held.push(held);
            }
        }
        if let Some(moving) = self.lanes_stay(w) {
            let count = moving.len() + 2 + 2 * self.terms.len();
            tables.packed = (0..count).map(|_| w.names.fresh("packed")).collect();
            let none: Vec<String> = tables.packed.iter().map(|name| format!("{name} = INT64_MIN")).collect();
            w.lines.line(format!("int64_t {};", none.join(", ")));
        }
        tables
    }

    /// The outputs around that packed lanes depend on, if they are the same for all values of another one.
    pub fn lanes_stay(&self, w: &Writer) -> Option<Vec<usize>> {
        let exprs = &w.nest.exprs;
        let used: Vec<Vec<bool>> =
            self.panels.by_lane.iter().map(|id| exprs.used_indices(*id, w.names.variables.len())).collect();
        let around = self.others.iter().map(|l| l.variable);
        let moving: Vec<usize> = around.filter(|v| used.iter().any(|used| used[*v])).collect();
        (!self.panels.lanes_in_place && moving.len() < self.others.len()).then_some(moving)
    }

    /// Fills the tables for a box of these numbers of terms, if they hold others.
    fn fill_tables(&self, w: &mut Writer, tables: &Tables, extents: &[String]) {
        if tables.held.is_empty() {
            return;
        }
        let differ: Vec<String> = tables.held.iter().zip(extents).map(|(held, e)| format!("{held} != {e}")).collect();
        w.lines.open(format!("if ({})", differ.join(" || ")));
        for (held, extent) in tables.held.iter().zip(extents) {
            w.lines.line(format!("{held} = {extent};"));
        }
        let at = w.names.fresh("at");
        w.lines.line(format!("int64_t {at} = 0;"));
        let mut counters = Vec::new();
        for held in &tables.held {
            let counter = w.names.fresh("d");
            w.lines.open(format!("for (int64_t {counter} = 0; {counter} < {held}; {counter}++)"));
            counters.push(counter);
        }
        let by_row = tables.by_row.iter().zip(&self.panels.by_row);
        for (table, id) in by_row.chain(tables.by_lane.iter().zip(&self.panels.by_lane)) {
            let Expr::Access(buffer, subscripts) = w.nest.exprs[*id].clone() else {
                unreachable!("what is read in place is an element");
            };
            let steps = self.terms.iter().zip(&counters).filter_map(|(l, counter)| {
                let step = w.names.step(w.nest, buffer, &subscripts, l.variable);
                (step != "0").then(|| format!("{counter}*({step})"))
            });
            let steps: Vec<String> = steps.collect();
            let sum = if steps.is_empty() { "0".into() } else { steps.join(" + ") };
            w.lines.line(format!("{table}[{at}] = {sum};"));
        }
        w.lines.line(format!("{at}++;"));
        w.close(counters.len() + 1);
    }

    fn write(&self, w: &mut Writer, tables: Tables) {
        let scratch = w.names.address(w.nest, self.panels.scratch, &[crate::program::Affine::constant(0)]);
        let [row_panel, term_panel, lane_panel] = ["rows", "terms", "lanes"].map(|s| w.names.fresh(s));
        let (rows, terms) = (self.panels.by_row.len(), self.panels.by_term.len());
        w.lines.line(format!("gx_t *restrict const {row_panel} = {scratch};"));
        let after_rows = rows * TERMS * if self.kept.is_some() { ROW_BLOCK } else { self.row_count };
        w.lines.line(format!("gx_t *restrict const {term_panel} = {row_panel} + {after_rows};"));
        w.lines.line(format!("gx_t *restrict const {lane_panel} = {term_panel} + {};", terms * TERMS));
        let [first_row, last_row] = ["m"; 2].map(|s| w.names.fresh(s));
        w.lines.line(format!("const int64_t {first_row} = {};", w.names.low(&self.row.range)));
        w.lines.line(format!("const int64_t {last_row} = {};", w.names.high(&self.row.range)));
        let enough_rows = self.panels.rows_in_place.then(|| {
            let enough = w.names.fresh("enough");
            w.lines.line(format!("const int {enough} = {last_row} - {first_row} + 1 >= {};", self.row_count));
            enough
        });
        let (steps, bounds) = self.steps(w);
        let [fresh, count] = ["fresh", "count"].map(|s| w.names.fresh(s));
        let boxes: Vec<(String, String)> = bounds.iter().map(|_| (w.names.fresh("k"), w.names.fresh("k"))).collect();
        let parts = Parts {
            tables,
            row_panel,
            term_panel,
            lane_panel,
            terms: count,
            fresh,
            first_row,
            last_row,
            last_lane: w.names.fresh("stop"),
            enough_rows,
            enough_lanes: self.panels.lanes_in_place.then(|| w.names.fresh("enough")),
            boxes,
        };
        match self.kept {
            None => self.by_lanes(w, &parts, &steps, &bounds),
            Some(blocks) => self.by_rows(w, parts, &steps, &bounds, blocks),
        }
    }

    /// A block of lanes at a time: for each box, lanes are packed and then rows, group by group.
    fn by_lanes(&self, w: &mut Writer, parts: &Parts, steps: &[String], bounds: &[(String, String)]) {
        let block = self.open_lanes(w, parts);
        self.open_fresh(w, parts);
        self.open_boxes(w, parts, steps, bounds);
        self.pack_terms(w, parts);
        self.pack_lanes(w, parts, &block);
        self.rows(w, parts, &block);
        w.lines.line(format!("{} = 0;", parts.fresh));
        w.close(self.terms.len());
        if !self.leaf.accumulate {
            self.fill(w, parts, &block);
        }
        w.close(2);
    }

    /// Some rows at a time: for each box, rows are packed and kept for all blocks of lanes.
    fn by_rows(&self, w: &mut Writer, mut parts: Parts, steps: &[String], bounds: &[(String, String)], blocks: &Loop) {
        let count = self.row_count;
        let height = ROW_BLOCK / count * count;
        self.open_fresh(w, &parts);
        self.open_boxes(w, &parts, steps, bounds);
        self.pack_terms(w, &parts);
        let chunk = w.names.fresh("chunk");
        let (first, last) = (parts.first_row.clone(), parts.last_row.clone());
        w.lines.open(format!("for (int64_t {chunk} = {first}; {chunk} <= {last}; {chunk} += {height})"));
        let end = w.names.fresh("m");
        w.lines.line(format!("const int64_t {end} = gx_smaller({last}, {chunk} + {height} - 1);"));
        (parts.first_row, parts.last_row) = (chunk.clone(), end);
        let group = self.open_groups(w, &parts);
        let panels = std::mem::replace(&mut parts.row_panel, w.names.fresh("rows"));
        let size = self.panels.by_row.len() * count * TERMS;
        let own = format!("{panels} + ({} - {chunk})/{count}*{size}", group.0);
        w.lines.line(format!("gx_t *restrict const {} = {own};", parts.row_panel));
        self.pack_rows(w, &parts, &group);
        w.lines.close();
        w.open_loop(blocks);
        let block = self.open_lanes(w, &parts);
        self.pack_lanes(w, &parts, &block);
        let group = self.open_groups(w, &parts);
        let own = format!("{panels} + ({} - {chunk})/{count}*{size}", group.0);
        w.lines.line(format!("const gx_t *const {} = {own};", parts.row_panel));
        self.kernel(w, &parts, &block, &group);
        w.close(5);
        w.lines.line(format!("{} = 0;", parts.fresh));
        w.close(self.terms.len());
        if !self.leaf.accumulate {
            (parts.first_row, parts.last_row) = (first, last);
            w.open_loop(blocks);
            let block = self.open_lanes(w, &parts);
            self.fill(w, &parts, &block);
            w.close(3);
        }
    }

    /// Opens the loop over blocks of lanes, and names the first and the last lane of a block.
    fn open_lanes(&self, w: &mut Writer, parts: &Parts) -> String {
        let (width, stop) = (self.vectors, &parts.last_lane);
        let [block, first, last] = ["block", "n", "n"].map(|s| w.names.fresh(s));
        w.lines.open("");
        w.lines.line(format!("const int64_t {first} = {};", w.names.low(&self.lane.range)));
        w.lines.line(format!("const int64_t {last} = {};", w.names.high(&self.lane.range)));
        let block_width = format!("({LANE_BLOCK}/({width}*GX_W)*({width}*GX_W))");
        w.lines.open(format!("for (int64_t {block} = {first}; {block} <= {last}; {block} += {block_width})"));
        w.lines.line(format!("const int64_t {stop} = gx_smaller({last}, {block} + {block_width} - 1);"));
        if let Some(enough) = &parts.enough_lanes {
            w.lines.line(format!("const int {enough} = {stop} - {block} + 1 >= {width}*GX_W;"));
            w.lines.line(format!("(void){enough};"));
        }
        block
    }

    fn open_fresh(&self, w: &mut Writer, parts: &Parts) {
        w.lines.line(format!("int {} = {};", parts.fresh, if self.leaf.accumulate { 0 } else { 1 }));
    }

    /// Opens the loops over boxes of the reduction.
    fn open_boxes(&self, w: &mut Writer, parts: &Parts, steps: &[String], bounds: &[(String, String)]) {
        for ((step, (low, high)), (start, end)) in steps.iter().zip(bounds).zip(&parts.boxes) {
            w.lines.open(format!("for (int64_t {start} = {low}; {start} <= {high}; {start} += {step})"));
            w.lines.line(format!("const int64_t {end} = gx_smaller({high}, {start} + {step} - 1);"));
        }
        let extents: Vec<String> = parts.boxes.iter().map(|(a, b)| format!("({b} - {a} + 1)")).collect();
        w.lines.line(format!("const int64_t {} = {};", parts.terms, extents.join(" * ")));
        self.fill_tables(w, &parts.tables, &extents);
    }

    /// Opens the loop over groups of rows: the first row, and how many there are.
    fn open_groups(&self, w: &mut Writer, parts: &Parts) -> (String, String) {
        let (first, last, count) = (&parts.first_row, &parts.last_row, self.row_count);
        let [group, rows] = ["group", "rows"].map(|s| w.names.fresh(s));
        w.lines.open(format!("for (int64_t {group} = {first}; {group} <= {last}; {group} += {count})"));
        w.lines.line(format!("const int64_t {rows} = gx_smaller({count}, {last} - {group} + 1);"));
        (group, rows)
    }

    /// How far each loop of the reduction advances, so that a box has at most `TERMS` terms, and all have about as many.
    fn steps(&self, w: &mut Writer) -> (Vec<String>, Vec<(String, String)>) {
        let (mut steps, mut bounds) = (Vec::new(), Vec::new());
        let room = w.names.fresh("room");
        w.lines.line(format!("int64_t {room} = {TERMS};"));
        for l in self.terms.iter().rev() {
            let [low, high, step] = ["low", "high", "step"].map(|s| w.names.fresh(s));
            let texts = [w.names.low(&l.range), w.names.high(&l.range)];
            w.lines.line(format!("const int64_t {low} = {}, {high} = {};", texts[0], texts[1]));
            w.lines.line(format!("const int64_t {step} = gx_evenly({high} - {low} + 1, {room});"));
            w.lines.line(format!("{room} /= {step};"));
            steps.push(step);
            bounds.push((low, high));
        }
        w.lines.line(format!("(void){room};"));
        (steps.into_iter().rev().collect(), bounds.into_iter().rev().collect())
    }

    /// Opens the loops over the terms of a box, with a counter.
    pub fn open_terms(&self, w: &mut Writer, parts: &Parts) -> String {
        let at = w.names.fresh("at");
        w.lines.line(format!("int64_t {at} = 0;"));
        for (l, (start, end)) in self.terms.iter().zip(&parts.boxes) {
            let v = w.names.variables[l.variable].clone();
            w.lines.open(format!("for (int64_t {v} = {start}; {v} <= {end}; {v}++)"));
        }
        at
    }

    pub fn close_terms(&self, w: &mut Writer, at: &str) {
        w.lines.line(format!("{at}++;"));
        w.close(self.terms.len());
    }

    fn rows(&self, w: &mut Writer, parts: &Parts, block: &str) {
        let group = self.open_groups(w, parts);
        if let Some(enough) = &parts.enough_rows {
            w.lines.open(format!("if (!{enough})"));
        }
        if !self.panels.by_row.is_empty() {
            self.pack_rows(w, parts, &group);
        }
        if parts.enough_rows.is_some() {
            w.lines.close();
        }
        self.kernel(w, parts, block, &group);
        w.lines.close();
    }

    /// Calls the register-tiled kernel on every lane panel, straight into the target where that is possible. What is
    /// read in place is read for a whole tile, which begins earlier where there is less left.
    fn kernel(&self, w: &mut Writer, parts: &Parts, block: &str, (group, rows): &(String, String)) {
        let (count, width, lanes) = (self.row_count, self.vectors, self.panels.by_lane.len());
        let ahead = self.ahead(w, parts, block, group);
        let micro = self.micro(w, ahead.is_some());
        let panel = w.names.fresh("panel");
        let lane = w.names.variables[self.lane.variable].clone();
        let (stop, fresh) = (&parts.last_lane, &parts.fresh);
        let first = |w: &mut Writer, enough: &Option<String>, at: &str, last: &str, size: String| match enough {
            None => at.to_string(),
            Some(enough) => {
                let name = w.names.fresh("first");
                let earlier = format!("gx_smaller({at}, {last} - {size} + 1)");
                w.lines.line(format!("const int64_t {name} = {enough} ? {earlier} : {at};"));
                name
            }
        };
        let first_row = first(w, &parts.enough_rows, group, &parts.last_row, count.to_string());
        w.lines.line(format!("const gx_t *{panel} = {};", parts.lane_panel));
        w.lines.open(format!("for (int64_t {lane} = {block}; {lane} <= {stop}; {lane} += {width}*GX_W)"));
        let first_lane = first(w, &parts.enough_lanes, &lane, stop, format!("{width}*GX_W"));
        let (row_variable, lane_variable) = (self.row.variable, self.lane.variable);
        let saved = w.names.variables.clone();
        w.names.variables[row_variable] = group.to_string();
        let address = w.names.address(w.nest, self.leaf.target, &self.leaf.subscripts);
        let row_step = w.names.step(w.nest, self.leaf.target, &self.leaf.subscripts, row_variable);
        let lane_step = w.names.step(w.nest, self.leaf.target, &self.leaf.subscripts, lane_variable);
        w.names.variables = saved;
        let terms = &parts.terms;
        let mut operands: Vec<String> = Vec::new();
        for (number, id) in self.panels.by_row.iter().enumerate() {
            let packed = format!("{} + {}", parts.row_panel, number * count * TERMS);
            operands.extend(match &parts.enough_rows {
                Some(enough) => {
                    let (address, steps) = self.in_place(w, *id, parts, &first_row, &first_lane);
                    let terms = match parts.tables.by_row.get(number) {
                        Some(table) => format!("{enough} ? {table} : {}", parts.tables.packed_row),
                        None => format!("{enough} ? {} : 1", steps[1]),
                    };
                    let row_step = format!("{enough} ? {} : {TERMS}", steps[0]);
                    vec![format!("{enough} ? {address} : {packed}"), row_step, terms]
                }
                None if self.panels.rows_beside => vec![packed, "1".into(), count.to_string()],
                None => vec![packed, TERMS.to_string(), "1".into()],
            });
        }
        for (number, id) in self.panels.by_lane.iter().enumerate() {
            let packed = (format!("{panel} + {number}*{width}*GX_W"), format!("{lanes}*{width}*GX_W"));
            operands.extend(match &parts.enough_lanes {
                Some(enough) => {
                    let (address, steps) = self.in_place(w, *id, parts, &first_row, &first_lane);
                    let (own, other) = match parts.tables.by_lane.get(number) {
                        Some(table) => (table, &parts.tables.packed_lane),
                        None => (&steps[1], &packed.1),
                    };
                    [format!("{enough} ? {address} : {}", packed.0), format!("{enough} ? {own} : {other}")]
                }
                None => [packed.0, packed.1],
            });
        }
        let terms_at = (0..self.panels.by_term.len()).map(|n| format!("{} + {}", parts.term_panel, n * TERMS));
        operands.extend(terms_at);
        operands.extend(ahead);
        let operands = operands.join(", ");
        let call = |to: &str, step: &str, fresh: &str| format!("{micro}({terms}, {operands}, {to}, {step}, {fresh});");
        let whole = format!("{rows} == {count} && {lane} + {width}*GX_W - 1 <= {stop}");
        if lane_step == "1" {
            w.lines.open(format!("if ({whole})"));
            w.lines.line(call(&address, &row_step, fresh));
            w.lines.otherwise();
        } else {
            w.lines.open("");
        }
        let tile = w.names.fresh("tile");
        w.lines.line(format!("gx_t {tile}[{count}*{width}*GX_W];"));
        w.lines.line(call(&tile, &format!("{width}*GX_W"), "1"));
        let shape = format!("{rows}, gx_smaller({width}*GX_W, {stop} - {lane} + 1)");
        let put = self.put(w);
        let own = match (&parts.enough_rows, &parts.enough_lanes) {
            (None, None) => tile,
            _ => format!("{tile} + ({group} - {first_row})*({width}*GX_W) + ({lane} - {first_lane})"),
        };
        w.lines.line(format!("{put}({address}, {row_step}, {lane_step}, {own}, {width}*GX_W, {shape}, {fresh});"));
        w.lines.close();
        w.lines.line(format!("{panel} += {lanes}*{width}*GX_W*{terms};"));
        w.lines.close();
    }

    /// What is read next of the operand in lanes, where that is one block of memory in place: each group of rows brings a
    /// quarter of it closer.
    fn ahead(&self, w: &mut Writer, parts: &Parts, block: &str, group: &str) -> Option<String> {
        let ([id], Some(next), Some(_), 1) =
            (self.panels.by_lane.as_slice(), self.next, &parts.enough_lanes, self.terms.len())
        else {
            return None;
        };
        let Expr::Access(_, subscripts) = w.nest.exprs[*id].clone() else { return None };
        if !subscripts.iter().any(|s| s.uses_index(next.variable))
            || subscripts.iter().any(|s| s.uses_index(self.row.variable))
        {
            return None;
        }
        let (saved, last) = (w.names.variables[next.variable].clone(), w.names.high(&next.range));
        w.names.variables[next.variable] = format!("gx_smaller({saved} + 1, {last})");
        let (address, _) = self.in_place(w, *id, parts, group, block);
        w.names.variables[next.variable] = saved;
        let (count, first, terms) = (self.row_count, &parts.first_row, &parts.terms);
        let quarter = format!("gx_smaller(({group} - {first})/{count}, {})", self.vectors - 1);
        Some(format!("{address} + {quarter}*{terms}*GX_W"))
    }

    /// The address of an operand at the first row, lane and term, and how far apart rows and terms are.
    fn in_place(&self, w: &mut Writer, id: ExprId, parts: &Parts, group: &str, lane: &str) -> (String, [String; 2]) {
        let Expr::Access(buffer, subscripts) = w.nest.exprs[id].clone() else {
            unreachable!("what is read in place is an element");
        };
        let saved = w.names.variables.clone();
        w.names.variables[self.row.variable] = group.to_string();
        w.names.variables[self.lane.variable] = lane.to_string();
        for (l, (start, _)) in self.terms.iter().zip(&parts.boxes) {
            w.names.variables[l.variable] = start.clone();
        }
        let term = self.terms[0].variable;
        let address = w.names.address(w.nest, buffer, &subscripts);
        let steps = [self.row.variable, term].map(|v| w.names.step(w.nest, buffer, &subscripts, v));
        w.names.variables = saved;
        (address, steps)
    }

    /// Without a single term, the results are the neutral value.
    fn fill(&self, w: &mut Writer, parts: &Parts, block: &str) {
        let (row, lane) = (w.names.variables[self.row.variable].clone(), w.names.variables[self.lane.variable].clone());
        w.lines.open(format!("if ({})", parts.fresh));
        let (first, last, stop) = (&parts.first_row, &parts.last_row, &parts.last_lane);
        w.lines.open(format!("for (int64_t {row} = {first}; {row} <= {last}; {row}++)"));
        w.lines.open(format!("for (int64_t {lane} = {block}; {lane} <= {stop}; {lane}++)"));
        let target = w.names.element(w.nest, self.leaf.target, &self.leaf.subscripts);
        w.lines.line(format!("{target} = {};", neutral(self.op, w.single)));
        w.close(3);
    }
}
