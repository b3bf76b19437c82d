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

use super::lanes::neutral;
use super::leaf::{Writer, lanes_of};
use super::library;
use crate::emit::integers::smaller;
use crate::emit::tree::{Callee, Operator, Type, Value};
use crate::nest::{Leaf, Loop, LoopId, Nest, Panels};
use crate::program::{Affine, Expr, ExprId, ReduceOp, TensorId};
use crate::target::PanelSize;

/// Writes a leaf that has panels, rows and lanes.
pub fn write(w: &mut Writer, leaf: &Leaf) {
    let (Some(panels), Some(lanes), Some((rows, row_count)), Some(op)) =
        (&leaf.panels, leaf.lanes(), leaf.rows(), leaf.reduction)
    else {
        unreachable!("verified: panels come with lanes, rows and a reduction");
    };
    let apart = |p: &usize| *p == lanes || *p == rows || Some(*p) == panels.kept;
    let contraction = Contraction {
        leaf,
        panels,
        op,
        kept: panels.kept.map(|position| &leaf.loops[position]),
        others: (0..leaf.outputs).filter(|p| !apart(p)).map(|p| &leaf.loops[p]).collect(),
        vectors: leaf.vectors(),
        row_count,
        row: &leaf.loops[rows],
        lane: &leaf.loops[lanes],
        terms: &leaf.loops[leaf.outputs..],
    };
    w.draft.block();
    let tables = contraction.declare_tables(w);
    let opened = w.open_loops(contraction.others.iter().copied());
    contraction.write(w, tables);
    w.draft.close(opened + 1);
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
    pub vectors: usize,
    pub row_count: usize,
    pub row: &'a Loop,
    pub lane: &'a Loop,
    pub terms: &'a [Loop],
}

/// How far each term of a contraction is from the first.
#[derive(Default)]
pub struct Tables {
    /// For each operand that is read in place.
    pub by_row: Vec<Value>,
    pub by_lane: Vec<Value>,
    /// For packed operands in their place.
    pub packed_row: Option<Value>,
    pub packed_lane: Option<Value>,
    /// For how many values of each loop the tables hold.
    held: Vec<Value>,
    /// The lanes, the box and the outputs around for which lanes are packed, where they may serve once more.
    pub packed: Vec<Value>,
}

/// A loop of the reduction that is taken in steps: its bounds, how far it advances, and the part at hand.
pub struct Span {
    low: Value,
    high: Value,
    step: Value,
    pub start: Value,
    pub end: Value,
}

/// What the parts of a contraction share.
pub struct Parts {
    pub tables: Tables,
    pub row_panel: Value,
    pub term_panel: Value,
    pub lane_panel: Value,
    /// How many terms the box at hand has.
    pub terms: Value,
    /// Whether the target holds nothing yet.
    pub fresh: Value,
    pub first_row: Value,
    pub last_row: Value,
    pub last_lane: Value,
    /// Whether there are as many rows and lanes as the register tile has, where operands are read in place.
    pub enough_rows: Option<Value>,
    pub enough_lanes: Option<Value>,
    /// The box of the reduction at hand.
    pub boxes: Vec<Span>,
}

/// A group of rows: the first one, and how many there are.
pub struct Group {
    pub first: Value,
    pub rows: Value,
}

/// The access that an operand is that is read in place.
pub fn element(nest: &Nest, id: ExprId) -> (TensorId, &[Affine]) {
    match &nest.exprs[id] {
        Expr::Access(buffer, subscripts) => (*buffer, subscripts),
        _ => unreachable!("what is read in place is an element"),
    }
}

impl Contraction<'_> {
    pub fn rows_by_table(&self) -> bool {
        self.panels.rows_in_place && self.terms.len() > 1
    }

    pub fn lanes_by_table(&self) -> bool {
        self.panels.lanes_in_place && self.terms.len() > 1
    }

    /// How many lanes the register tile has.
    pub fn width(&self) -> Value {
        lanes_of(self.vectors)
    }

    /// How many numbers a term of all operands in lanes has in the lane panel.
    pub fn lane_term(&self) -> Value {
        lanes_of(self.panels.by_lane.len() * self.vectors)
    }

    /// Declares the tables, outside all loops: they are filled when the numbers of terms change.
    fn declare_tables(&self, w: &mut Writer) -> Tables {
        let (mut tables, terms) = (Tables::default(), self.panels.size.terms);
        if self.rows_by_table() {
            tables.by_row = self.panels.by_row.iter().map(|_| table(w, "row_at", terms)).collect();
            tables.packed_row = Some(counting_table(w, "row_at", terms, 1.into()));
        }
        if self.lanes_by_table() {
            tables.by_lane = self.panels.by_lane.iter().map(|_| table(w, "lane_at", terms)).collect();
            tables.packed_lane = Some(counting_table(w, "lane_at", terms, self.lane_term()));
        }
        if self.rows_by_table() || self.lanes_by_table() {
            tables.held = self.terms.iter().map(|_| w.draft.variable("held", -1)).collect();
        }
        if self.panels.lanes_stay {
            let count = self.moving(w).len() + 2 + 2 * self.terms.len();
            tables.packed = (0..count).map(|_| w.draft.variable("packed", i64::MIN)).collect();
        }
        tables
    }

    /// The outputs around that packed lanes depend on.
    pub fn moving(&self, w: &Writer) -> Vec<LoopId> {
        let (exprs, count) = (&w.names.nest.exprs, w.names.variables.0.len());
        let used: Vec<Vec<bool>> = self.panels.by_lane.iter().map(|id| exprs.used_indices(*id, count)).collect();
        let around = self.others.iter().map(|l| l.variable);
        around.filter(|v| used.iter().any(|used| used[v.number()])).collect()
    }

    fn write(&self, w: &mut Writer, tables: Tables) {
        let scratch = w.names.address(self.panels.scratch, &[Affine::constant(0)]);
        let row_panel = w.draft.constant("rows", scratch);
        let PanelSize { terms, rows, .. } = self.panels.size;
        let term_panel = w.draft.constant("terms", &row_panel + self.panels.by_row.len() * terms * rows);
        let lane_panel = w.draft.constant("lanes", &term_panel + self.panels.by_term.len() * terms);
        let (low, high) = w.range(self.row);
        let (first_row, last_row) = (w.draft.constant("m", low), w.draft.constant("m", high));
        let enough = (&last_row - &first_row + 1).at_least(self.row_count);
        let enough_rows = self.panels.rows_in_place.then(|| w.draft.constant("enough", enough));
        let parts = Parts {
            tables,
            row_panel,
            term_panel,
            lane_panel,
            terms: w.draft.fresh("count", Type::Whole),
            fresh: w.draft.fresh("fresh", Type::Int),
            first_row,
            last_row,
            last_lane: w.draft.fresh("stop", Type::Whole),
            enough_rows,
            enough_lanes: self.panels.lanes_in_place.then(|| w.draft.fresh("enough", Type::Int)),
            boxes: self.spans(w),
        };
        match self.kept {
            None => self.by_lanes(w, &parts),
            Some(blocks) => self.by_rows(w, parts, blocks),
        }
    }

    /// How far each loop of the reduction advances, so that a box has at most as many terms as a panel, and all have about as many.
    fn spans(&self, w: &mut Writer) -> Vec<Span> {
        let evenly = Callee::of("gx_evenly", Type::Whole, &library::EVENLY);
        let room = w.draft.variable("room", self.panels.size.terms);
        let mut spans = Vec::new();
        for l in self.terms.iter().rev() {
            let (low, high) = w.range(l);
            let (low, high) = (w.draft.constant("low", low), w.draft.constant("high", high));
            let step = w.draft.constant("step", evenly.clone().call([&high - &low + 1, room.clone()]));
            w.draft.assign(&room, &room / &step);
            let [start, end] = ["k"; 2].map(|stem| w.draft.fresh(stem, Type::Whole));
            spans.push(Span { low, high, step, start, end });
        }
        w.draft.mention(&room);
        spans.reverse();
        spans
    }

    /// A block of lanes at a time: for each box, lanes are packed and then rows, group by group.
    fn by_lanes(&self, w: &mut Writer, parts: &Parts) {
        let block = self.open_lanes(w, parts);
        self.start_fresh(w, parts);
        self.open_boxes(w, parts);
        self.pack_terms(w, parts);
        self.pack_lanes(w, parts, &block);
        self.rows(w, parts, &block);
        w.draft.assign(&parts.fresh, 0);
        w.draft.close(self.terms.len());
        if !self.leaf.accumulate {
            self.fill(w, parts, &block);
        }
        w.draft.close(2);
    }

    /// Some rows at a time: for each box, rows are packed and kept for all blocks of lanes.
    fn by_rows(&self, w: &mut Writer, mut parts: Parts, blocks: &Loop) {
        let height = self.panels.size.rows / self.row_count * self.row_count;
        self.start_fresh(w, &parts);
        self.open_boxes(w, &parts);
        self.pack_terms(w, &parts);
        let chunk = w.draft.fresh("chunk", Type::Whole);
        let (first, last) = (parts.first_row.clone(), parts.last_row.clone());
        w.draft.each(&chunk, &first, &last, height);
        parts.last_row = w.draft.constant("m", smaller(last.clone(), &chunk + height - 1));
        parts.first_row = chunk;
        let panels = parts.row_panel.clone();
        self.pack_chunk(w, &mut parts, &panels);
        w.open_loop(blocks);
        let block = self.open_lanes(w, &parts);
        self.pack_lanes(w, &parts, &block);
        let group = self.open_groups(w, &parts);
        parts.row_panel = w.draft.fresh("rows", Type::GIVEN_REALS);
        w.draft.fix(&parts.row_panel, self.own_panel(&panels, &group, &parts));
        self.kernel(w, &parts, &block, &group);
        w.draft.close(5);
        w.draft.assign(&parts.fresh, 0);
        w.draft.close(self.terms.len());
        if !self.leaf.accumulate {
            (parts.first_row, parts.last_row) = (first, last);
            w.open_loop(blocks);
            let block = self.open_lanes(w, &parts);
            self.fill(w, &parts, &block);
            w.draft.close(3);
        }
    }

    /// Packs all groups of the rows that are kept.
    fn pack_chunk(&self, w: &mut Writer, parts: &mut Parts, panels: &Value) {
        let group = self.open_groups(w, parts);
        parts.row_panel = w.draft.constant("rows", self.own_panel(panels, &group, parts));
        self.pack_rows(w, parts, &group);
        w.draft.close(1);
    }

    /// Where a group of rows is packed to, among those that are kept.
    fn own_panel(&self, panels: &Value, group: &Group, parts: &Parts) -> Value {
        let size = self.panels.by_row.len() * self.row_count * self.panels.size.terms;
        panels + (&group.first - &parts.first_row) / self.row_count * size
    }

    /// Opens the loop over blocks of lanes, and gives the first lane of a block.
    fn open_lanes(&self, w: &mut Writer, parts: &Parts) -> Value {
        let stop = &parts.last_lane;
        w.draft.block();
        let (low, high) = w.range(self.lane);
        let (first, last) = (w.draft.constant("n", low), w.draft.constant("n", high));
        let block = w.draft.fresh("block", Type::Whole);
        let block_width = Value::from(self.panels.size.lanes) / self.width() * self.width();
        w.draft.each(&block, &first, &last, block_width.clone());
        w.draft.fix(stop, smaller(last, &block + block_width - 1));
        if let Some(enough) = &parts.enough_lanes {
            w.draft.fix(enough, (stop - &block + 1).at_least(self.width()));
            w.draft.mention(enough);
        }
        block
    }

    fn start_fresh(&self, w: &mut Writer, parts: &Parts) {
        w.draft.start(&parts.fresh, if self.leaf.accumulate { 0 } else { 1 });
    }

    /// Opens the loops over boxes of the reduction.
    fn open_boxes(&self, w: &mut Writer, parts: &Parts) {
        for Span { low, high, step, start, end } in &parts.boxes {
            w.draft.each(start, low, high, step);
            w.draft.fix(end, smaller(high.clone(), start + step - 1));
        }
        let extents: Vec<Value> = parts.boxes.iter().map(|span| &span.end - &span.start + 1).collect();
        w.draft.fix(&parts.terms, Value::joined(Operator::Times, extents.clone()).expect("a reduction has loops"));
        if !parts.tables.held.is_empty() {
            self.fill_tables(w, &parts.tables, &extents);
        }
    }

    /// Fills the tables for a box of these numbers of terms, if they hold others.
    fn fill_tables(&self, w: &mut Writer, tables: &Tables, extents: &[Value]) {
        w.draft.when(any_differs(&tables.held, extents));
        for (held, extent) in tables.held.iter().zip(extents) {
            w.draft.assign(held, extent);
        }
        let at = w.draft.variable("at", 0);
        let mut counters = Vec::new();
        for held in &tables.held {
            let counter = w.draft.fresh("d", Type::Whole);
            w.draft.steps(&counter, 0, held, 1);
            counters.push(counter);
        }
        let by_row = tables.by_row.iter().zip(&self.panels.by_row);
        for (table, id) in by_row.chain(tables.by_lane.iter().zip(&self.panels.by_lane)) {
            let (buffer, subscripts) = element(w.names.nest, *id);
            let steps = self.terms.iter().map(|l| w.names.step(buffer, subscripts, l.variable));
            let moving = counters.iter().zip(steps).filter(|(_, step)| !step.is(0));
            let sum = Value::joined(Operator::Plus, moving.map(|(counter, step)| counter * step));
            w.draft.assign(&table.at(&at), sum.unwrap_or(0.into()));
        }
        w.draft.advance(&at, 1);
        w.draft.close(counters.len() + 1);
    }

    /// Opens the loop over groups of rows.
    fn open_groups(&self, w: &mut Writer, parts: &Parts) -> Group {
        let first = w.draft.fresh("group", Type::Whole);
        w.draft.each(&first, &parts.first_row, &parts.last_row, self.row_count);
        let rows = w.draft.constant("rows", smaller(self.row_count.into(), &parts.last_row - &first + 1));
        Group { first, rows }
    }

    /// Opens the loops over the terms of a box, with a counter.
    pub fn open_terms(&self, w: &mut Writer, parts: &Parts) -> Value {
        w.draft.block();
        let at = w.draft.variable("at", 0);
        for (l, span) in self.terms.iter().zip(&parts.boxes) {
            let v = w.variable(l);
            w.draft.each(&v, &span.start, &span.end, 1);
        }
        at
    }

    pub fn close_terms(&self, w: &mut Writer, at: &Value) {
        w.draft.advance(at, 1);
        w.draft.close(self.terms.len() + 1);
    }

    fn rows(&self, w: &mut Writer, parts: &Parts, block: &Value) {
        let group = self.open_groups(w, parts);
        let opened = parts.enough_rows.iter().map(|enough| w.draft.when(!enough.clone())).count();
        if !self.panels.by_row.is_empty() {
            self.pack_rows(w, parts, &group);
        }
        w.draft.close(opened);
        self.kernel(w, parts, block, &group);
        w.draft.close(1);
    }

    /// Without a single term, the results are the neutral value.
    fn fill(&self, w: &mut Writer, parts: &Parts, block: &Value) {
        let (row, lane) = (w.variable(self.row), w.variable(self.lane));
        w.draft.when(parts.fresh.clone());
        w.draft.each(&row, &parts.first_row, &parts.last_row, 1);
        w.draft.each(&lane, block, &parts.last_lane, 1);
        let target = w.names.element(self.leaf.target, &self.leaf.subscripts);
        w.draft.assign(&target, neutral(self.op, w.real));
        w.draft.close(3);
    }
}

/// Whether any of some values is not what it was.
pub fn any_differs(held: &[Value], now: &[Value]) -> Value {
    let tests = held.iter().zip(now).map(|(held, now)| held.differs(now));
    Value::joined(Operator::Or, tests).expect("there is something to compare")
}

/// A table for the terms of a box.
fn table(w: &mut Writer, stem: &str, terms: usize) -> Value {
    w.draft.array(stem, &Type::Whole, terms)
}

/// A table of terms that are as far apart as each other.
fn counting_table(w: &mut Writer, stem: &str, terms: usize, step: Value) -> Value {
    let (table, at) = (table(w, stem, terms), w.draft.fresh("at", Type::Whole));
    w.draft.steps(&at, 0, terms, 1);
    w.draft.assign(&table.at(&at), &at * step);
    w.draft.close(1);
    table
}
