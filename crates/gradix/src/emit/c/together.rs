//! Leaves with the same loops as C: one loop over vectors, in which each leaf is a statement.

use super::lanes::{Place, combine};
use super::leaf::Writer;
use crate::emit::integers::{larger, smaller};
use crate::emit::tree::{Code, Operator, Value};
use crate::emit::values::{Instance, Instances, Values};
use crate::nest::{Leaf, Loop, LoopId, Together};
use crate::program::{Expr, ExprId, Exprs, ReduceOp};
use std::ops::Range;

/// A reduction while it runs: its leaf, and the accumulator of each row and vector.
struct Running<'a> {
    leaf: &'a Leaf,
    op: ReduceOp,
    sums: Vec<Vec<Value>>,
}

/// What one of several leaves does at a point.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    /// Stores a value.
    Store,
    /// Combines a value with its accumulator.
    Reduce(ReduceOp),
    /// Adds a term to its target, or with `true` takes it from there, once for all rows.
    Add(ExprId, bool),
}

/// Some of the leaves that run together, for some rows.
#[derive(Clone)]
struct Statements<'a> {
    leaves: Vec<(&'a Leaf, Role)>,
    how: &'a Together,
    lane: &'a Loop,
    /// The variable of the rows, with what stands for it in those at hand.
    rows: Option<(LoopId, Vec<Value>)>,
}

/// Writes the leaves, which share their variables; lanes run over the innermost loop.
pub fn write(w: &mut Writer, how: &Together) {
    let (leaves, outputs) = (&how.leaves, how.outputs());
    let (lane, outer) = leaves[0].loops.split_last().expect("a loop for the lanes");
    let rows = how.rows.map(|count| (outer.len() - 1, count));
    let row = rows.map(|(position, _)| outer[position].variable);
    let roles: Vec<Role> = leaves.iter().map(|leaf| role(&w.names.nest.exprs, leaf, row)).collect();
    let saved = w.names.variables.clone();
    let opened = w.open_loops(&outer[..outputs - usize::from(rows.is_some())]);
    w.over_rows(&leaves[0], rows, &mut |w, names| {
        let rows = row.map(|variable| (variable, names.to_vec()));
        let together = Statements { leaves: leaves.iter().zip(roles.iter().copied()).collect(), how, lane, rows };
        let mut running = Vec::new();
        for leaf in leaves {
            if let Some(op) = leaf.reduction {
                running.push(Running { leaf, op, sums: w.accumulators(op, names.len().max(1), leaf.vectors()) });
            }
        }
        let opened = w.open_loops(&outer[outputs..]);
        together.branches(w, &running, &leaves[0]);
        w.draft.close(opened);
        together.finish(w, &running);
    });
    w.draft.close(opened);
    w.names.variables = saved;
}

/// What a leaf does, where several values of a variable are taken at a time.
fn role(exprs: &Exprs, leaf: &Leaf, row: Option<LoopId>) -> Role {
    match (leaf.reduction, row.filter(|row| leaf.shares(*row)), leaf.added(exprs)) {
        (Some(op), ..) => Role::Reduce(op),
        (None, Some(_), Some((term, takes))) => Role::Add(term, takes),
        (None, ..) => Role::Store,
    }
}

/// Whether a leaf leaves out values of an outer loop of another one.
fn is_narrow(leaf: &Leaf, first: &Leaf) -> bool {
    leaf.loops.iter().zip(&first.loops).any(|(own, other)| own.range != other.range)
}

/// Whether the variables are in the ranges of a leaf, where those are not the ranges of the loops.
fn within(w: &Writer, leaf: &Leaf, first: &Leaf) -> Value {
    let narrow = leaf.loops.iter().zip(&first.loops).filter(|(own, other)| own.range != other.range);
    let tests = narrow.flat_map(|(l, _)| {
        let ((low, high), v) = (w.range(l), w.variable(l));
        [low.at_most(&v), v.at_most(high)]
    });
    Value::joined(Operator::And, tests).expect("some range is narrow")
}

impl Statements<'_> {
    fn row_count(&self) -> usize {
        self.rows.as_ref().map_or(1, |(_, names)| names.len())
    }

    /// The lanes of all leaves or, where some leave out values of an outer loop, of those that don't.
    fn branches(&self, w: &mut Writer, running: &[Running], first: &Leaf) {
        let Some((leaf, _)) = self.leaves.iter().find(|(leaf, _)| is_narrow(leaf, first)) else {
            return self.lanes(w, running);
        };
        w.draft.when(within(w, leaf, first));
        self.lanes(w, running);
        w.draft.otherwise();
        let wide = self.leaves.iter().filter(|(leaf, _)| !is_narrow(leaf, first)).copied().collect();
        Statements { leaves: wide, ..self.clone() }.lanes(w, running);
        w.draft.close(1);
    }

    /// All lanes of some rows.
    fn lanes(&self, w: &mut Writer, running: &[Running]) {
        let Loop { range, .. } = self.lane;
        let moves = |row: LoopId| range.low.iter().chain(&range.high).any(|bound| bound.uses_index(row));
        match &self.rows {
            Some((row, names)) if names.len() > 1 && moves(*row) => self.lanes_apart(w, running, *row, names),
            _ => {
                let pointwise = self.leaves.iter().all(|(leaf, _)| leaf.reduction.is_none());
                let aligned = self.leaves.iter().map(|(leaf, _)| *leaf).find(|leaf| pointwise && leaf.aligned);
                let range = w.range(self.lane);
                self.lanes_in(w, running, range, aligned, 0..self.row_count());
            }
        }
    }

    /// Where rows begin or end at different lanes, those that not all of them have come first and last, row by row.
    fn lanes_apart(&self, w: &mut Writer, running: &[Running], row: LoopId, names: &[Value]) {
        let saved = w.names.variables.clone();
        let mut ends = Vec::new();
        for name in names {
            w.names.variables[row] = name.clone();
            let (low, high) = w.range(self.lane);
            ends.push((w.draft.constant("low", low), w.draft.constant("high", high)));
        }
        w.names.variables = saved;
        let (lows, highs): (Vec<Value>, Vec<Value>) = ends.iter().cloned().unzip();
        let low = w.draft.constant("low", lows.into_iter().reduce(larger).expect("there are rows"));
        let high = w.draft.constant("high", highs.into_iter().reduce(smaller).expect("there are rows"));
        for (number, (first, last)) in ends.iter().enumerate() {
            let before = (first.clone(), smaller(last.clone(), &low - 1));
            self.lanes_in(w, running, before, None, number..number + 1);
        }
        self.lanes_in(w, running, (low.clone(), high.clone()), None, 0..names.len());
        for (number, (_, last)) in ends.iter().enumerate() {
            let after = (larger(low.clone(), &high + 1), last.clone());
            self.lanes_in(w, running, after, None, number..number + 1);
        }
    }

    /// Some lanes of some rows.
    fn lanes_in(
        &self,
        w: &mut Writer,
        running: &[Running],
        range: (Value, Value),
        aligned: Option<&Leaf>,
        rows: Range<usize>,
    ) {
        w.draft.block();
        w.over_lanes(range, self.lane.variable, self.how.leaves[0].vectors(), aligned, &mut |w, instances, vectors| {
            let instances = Instances { rows: self.rows.clone(), ..instances };
            self.statements(w, running, instances, rows.clone(), vectors);
        });
        w.draft.close(1);
    }

    /// Stores the reductions of some rows.
    fn finish(&self, w: &mut Writer, running: &[Running]) {
        for Running { leaf, op, sums } in running {
            for (number, sums) in sums.iter().enumerate() {
                if let Some((variable, names)) = &self.rows {
                    w.names.variables[*variable] = names[number].clone();
                }
                w.finish(leaf, *op, sums);
            }
        }
    }

    /// All leaves at some places, in order; what a leaf has made is known to the next. Stores come last.
    fn statements(
        &self,
        w: &mut Writer,
        running: &[Running],
        instances: Instances,
        rows: Range<usize>,
        vectors: usize,
    ) {
        let points: Vec<Instance> = rows.flat_map(|row| (0..vectors).map(move |vector| (row, vector))).collect();
        let partial = instances.partial.first().cloned();
        let mut values = w.values(instances);
        let mut stores = Vec::new();
        for (leaf, role) in &self.leaves {
            match role {
                Role::Reduce(op) => {
                    let own = running.iter().find(|running| running.leaf.target == leaf.target);
                    let sums = &own.expect("every reduction runs").sums;
                    for point in &points {
                        let (value, sum) = (values.wide(leaf.body, *point), &sums[point.0][point.1]);
                        values.draft.assign(sum, combine(*op, sum, value, partial.as_ref()));
                    }
                }
                Role::Add(term, takes) => {
                    stores
                        .extend((0..vectors).map(|vector| self.add(&mut values, leaf, *term, *takes, &points, vector)));
                }
                Role::Store => points.iter().for_each(|point| stores.extend(self.store(&mut values, leaf, *point))),
            }
        }
        stores.into_iter().for_each(|store| w.draft.push(store));
    }

    /// Adds a term of all rows to what one vector of a target holds.
    fn add(
        &self,
        values: &mut Values,
        leaf: &Leaf,
        term: ExprId,
        takes: bool,
        points: &[Instance],
        vector: usize,
    ) -> Code {
        let place = self.place(values, leaf, (points[0].0, vector), false);
        let mut sum = place.load();
        for point in points.iter().filter(|point| point.1 == vector) {
            let term = values.wide(term, *point);
            sum = if takes { sum - term } else { sum + term };
        }
        Code::Do(place.store(sum))
    }

    /// Computes one vector of a target, and what stores it if it is stored.
    fn store(&self, values: &mut Values, leaf: &Leaf, point: Instance) -> Option<Code> {
        let nest = values.names.nest;
        let value = values.wide(leaf.body, point);
        for id in same_element(&nest.exprs, &self.leaves, leaf) {
            values.given.insert((id, point), value.clone());
        }
        let place = self.place(values, leaf, point, nest[leaf.target].streamed);
        (!self.how.unstored.contains(&leaf.target)).then(|| Code::Do(place.store(value)))
    }

    fn place(&self, values: &mut Values, leaf: &Leaf, point: Instance, streamed: bool) -> Place {
        values.select_instance(point);
        Place {
            address: values.names.address(leaf.target, &leaf.subscripts),
            step: values.names.step(leaf.target, &leaf.subscripts, self.lane.variable),
            count: values.instances.partial.first().cloned(),
            streamed,
        }
    }
}

/// The nodes that read what a leaf writes at the same point.
fn same_element(exprs: &Exprs, leaves: &[(&Leaf, Role)], leaf: &Leaf) -> Vec<ExprId> {
    let nodes = leaves.iter().flat_map(|(other, _)| exprs.postorder(other.body));
    let reads = |id: &ExprId| match &exprs[*id] {
        Expr::Access(target, subscripts) => *target == leaf.target && *subscripts == leaf.subscripts,
        _ => false,
    };
    nodes.filter(reads).collect()
}
