//! A leaf as C loops: element by element, or over vectors with several rows and vectors at once.

use super::lanes::{Place, Vectors, all, combine, neutral, total};
use super::{library, panel, transpose};
use crate::emit::draft::Draft;
use crate::emit::integers::smaller;
use crate::emit::names::Names;
use crate::emit::tree::{Callee, Code, Head, Routine, Type, Value};
use crate::emit::values::{Instance, Instances, Values};
use crate::nest::{Kind, Leaf, Loop, LoopId, Real};
use crate::program::{ExprId, ReduceOp};

/// What is needed to write one kernel.
pub struct Writer<'a> {
    pub names: Names<'a>,
    pub draft: Draft,
    pub real: Real,
    /// Functions that several kernels call, each once.
    pub shared: &'a mut Vec<Routine>,
}

/// So many vectors, in lanes.
pub fn lanes_of(vectors: usize) -> Value {
    if vectors == 1 { Value::width() } else { Value::from(vectors) * Value::width() }
}

impl<'a> Writer<'a> {
    /// Writes a leaf.
    pub fn leaf(&mut self, leaf: &Leaf) {
        let saved = self.names.variables.clone();
        match (leaf.turn, leaf.lanes()) {
            (Some(turn), _) => transpose::write(self, leaf, &turn),
            (None, None) => self.scalar(leaf),
            (None, Some(_)) if leaf.panels.is_some() => panel::write(self, leaf),
            (None, Some(lanes)) if lanes < leaf.outputs => self.outputs_in_lanes(leaf, lanes),
            (None, Some(lanes)) => self.reduction_in_lanes(leaf, lanes),
        }
        self.names.variables = saved;
    }

    pub fn values(&mut self, instances: Instances) -> Values<'_, 'a> {
        Values::new(&mut self.names, &mut self.draft, self.real, &Vectors, instances)
    }

    pub fn variable(&self, l: &Loop) -> Value {
        self.names.variables[l.variable].clone()
    }

    pub fn range(&self, l: &Loop) -> (Value, Value) {
        (self.names.low(&l.range), self.names.high(&l.range))
    }

    pub fn open_loop(&mut self, l: &Loop) {
        let ((low, high), v) = (self.range(l), self.variable(l));
        if low != high {
            return self.draft.each_to(&v, low, high, 1);
        }
        self.draft.block();
        self.draft.fix(&v, low);
        self.draft.mention(&v);
    }

    /// Opens loops, and gives their number.
    pub fn open_loops<'l>(&mut self, loops: impl IntoIterator<Item = &'l Loop>) -> usize {
        loops.into_iter().map(|l| self.open_loop(l)).count()
    }

    /// Opens the guards of a leaf, and gives how much is open then.
    fn open_guards(&mut self, leaf: &Leaf) -> usize {
        self.names.all(&leaf.guards).map(|test| self.draft.when(test)).into_iter().count()
    }

    /// The number that a node is worth.
    fn number(&mut self, id: ExprId) -> Value {
        self.values(Instances::default()).value(id, (0, 0))
    }

    fn scalar(&mut self, leaf: &Leaf) {
        let opened = self.open_loops(&leaf.loops[..leaf.outputs]);
        self.element(leaf);
        self.draft.close(opened);
    }

    /// One element of a leaf.
    pub fn element(&mut self, leaf: &Leaf) {
        let target = self.names.element(leaf.target, &leaf.subscripts);
        let Some(op) = leaf.reduction else {
            let opened = self.open_guards(leaf);
            let value = self.number(leaf.body);
            self.draft.assign(&target, value);
            return self.draft.close(opened);
        };
        let start = if leaf.accumulate { target.clone() } else { neutral(op, self.real) };
        let sum = self.draft.variable("sum", start);
        let opened = self.open_loops(&leaf.loops[leaf.outputs..]) + self.open_guards(leaf);
        let value = self.number(leaf.body);
        self.draft.assign(&sum, combine(op, &sum, value, None));
        self.draft.close(opened);
        self.draft.assign(&target, sum);
    }

    /// Lanes over an output: `others { rows { lanes { reduction } } }`.
    fn outputs_in_lanes(&mut self, leaf: &Leaf, lanes: usize) {
        let rows = leaf.rows();
        let set_apart = |position: usize| position == lanes || rows.is_some_and(|(r, _)| r == position);
        let opened = self.open_loops((0..leaf.outputs).filter(|p| !set_apart(*p)).map(|p| &leaf.loops[p]));
        let lane = &leaf.loops[lanes];
        let aligned = Some(leaf).filter(|leaf| leaf.aligned);
        self.over_rows(leaf, rows, &mut |writer, row_names| {
            let range = writer.range(lane);
            writer.over_lanes(range, lane.variable, leaf.vectors(), aligned, &mut |writer, instances, count| {
                let rows = rows.map(|(r, _)| (leaf.loops[r].variable, row_names.to_vec()));
                writer.body_in_lanes(leaf, Instances { rows, ..instances }, row_names.len().max(1), count);
            });
        });
        self.draft.close(opened);
    }

    /// The lanes: first in groups of vectors, then vector by vector, of which the last may not be full. To have the
    /// stores of a leaf aligned, the first group overlaps the second.
    pub fn over_lanes(
        &mut self,
        (low, high): (Value, Value),
        variable: LoopId,
        vectors: usize,
        aligned: Option<&Leaf>,
        inside: &mut dyn FnMut(&mut Self, Instances, usize),
    ) {
        let v = self.names.variables[variable].clone();
        let end = self.draft.constant("end", high);
        self.draft.start(&v, low);
        let skew = aligned.map(|leaf| {
            let address = self.names.address(leaf.target, &leaf.subscripts);
            let skew = Callee::of("gx_skew", Type::Whole, &library::SKEW).call([address, &end - &v]);
            self.draft.variable("skew", skew)
        });
        self.open_groups_of_lanes(&v, &end, vectors, skew);
        let starts = self.side_by_side(&v, "v", vectors, Value::width());
        inside(self, Instances::lanes(variable, starts, Vec::new()), vectors);
        self.names.variables[variable] = v.clone();
        self.draft.close(1);
        self.draft.go_on(&v, v.at_most(&end), Value::width());
        let count = self.draft.constant("n", smaller(Value::width(), &end - &v + 1));
        inside(self, Instances::lanes(variable, vec![v.clone()], vec![count]), 1);
        self.names.variables[variable] = v;
        self.draft.close(1);
    }

    /// Opens the loop over groups of vectors, of which the first is shorter by the skew.
    fn open_groups_of_lanes(&mut self, v: &Value, end: &Value, vectors: usize, skew: Option<Value>) {
        let width = lanes_of(vectors);
        let test = (v + &width - 1).at_most(end);
        let advance = match skew {
            None => vec![Code::Advance(v.clone(), width)],
            Some(skew) => vec![Code::Advance(v.clone(), width - &skew), Code::Assign(skew, 0.into())],
        };
        self.draft.open(Head::For { start: Vec::new(), test, advance, unrolled: false });
    }

    /// A value, and those that follow at a distance, by name.
    pub fn side_by_side(&mut self, first: &Value, stem: &str, count: usize, apart: Value) -> Vec<Value> {
        let far = |number: usize| if apart.is(1) { number.into() } else { Value::from(number) * &apart };
        let others = (1..count).map(|number| self.draft.constant(stem, first + far(number)));
        std::iter::once(first.clone()).chain(others).collect()
    }

    /// The rows: first in groups, then one by one.
    pub fn over_rows(
        &mut self,
        leaf: &Leaf,
        rows: Option<(usize, usize)>,
        inside: &mut dyn FnMut(&mut Self, &[Value]),
    ) {
        self.draft.block();
        let Some((position, count)) = rows else {
            inside(self, &[]);
            return self.draft.close(1);
        };
        let l = &leaf.loops[position];
        let ((low, high), r) = (self.range(l), self.variable(l));
        let end = self.draft.constant("end", high);
        self.draft.start(&r, low);
        let groups: &[usize] = if count == 1 { &[1] } else { &[count, 1] };
        for group in groups {
            self.draft.go_on(&r, (&r + (group - 1)).at_most(&end), *group);
            let names = self.side_by_side(&r, "r", *group, 1.into());
            inside(self, &names);
            self.names.variables[l.variable] = r.clone();
            self.draft.close(1);
        }
        self.draft.close(1);
    }

    fn body_in_lanes(&mut self, leaf: &Leaf, instances: Instances, rows: usize, vectors: usize) {
        let points: Vec<Instance> = (0..rows).flat_map(|r| (0..vectors).map(move |v| (r, v))).collect();
        let Some(op) = leaf.reduction else {
            let opened = self.open_guards(leaf);
            let found = self.vectors(leaf.body, &points, &instances);
            self.store(leaf, &instances, &points, found);
            return self.draft.close(opened);
        };
        let mut sums = Vec::new();
        for point in &points {
            let start = match leaf.accumulate {
                true => self.place(leaf, &instances, *point).load(),
                false => all(neutral(op, self.real)),
            };
            sums.push(self.draft.variable("sum", start));
        }
        let opened = self.open_loops(&leaf.loops[leaf.outputs..]) + self.open_guards(leaf);
        let found = self.vectors(leaf.body, &points, &instances);
        for (sum, value) in sums.iter().zip(found) {
            self.draft.assign(sum, combine(op, sum, value, None));
        }
        self.draft.close(opened);
        self.store(leaf, &instances, &points, sums);
    }

    /// What a node is worth at some points.
    fn vectors(&mut self, id: ExprId, points: &[Instance], instances: &Instances) -> Vec<Value> {
        let mut values = self.values(instances.clone());
        points.iter().map(|point| values.wide(id, *point)).collect()
    }

    fn store(&mut self, leaf: &Leaf, instances: &Instances, points: &[Instance], values: Vec<Value>) {
        for (point, value) in points.iter().zip(values) {
            let store = self.place(leaf, instances, *point).store(value);
            self.draft.run(store);
        }
    }

    /// Where the target of a leaf is for an instance.
    fn place(&mut self, leaf: &Leaf, instances: &Instances, instance: Instance) -> Place {
        instances.select(instance, &mut self.names.variables);
        let variable = instances.lanes.as_ref().map(|(variable, _)| *variable).expect("lanes");
        Place {
            address: self.names.address(leaf.target, &leaf.subscripts),
            step: self.names.step(leaf.target, &leaf.subscripts, variable),
            count: instances.partial.first().cloned(),
            streamed: self.names.nest[leaf.target].streamed && !leaf.accumulate,
        }
    }

    /// Lanes over the innermost loop of the reduction: `outputs { rows { columns { reduction { lanes } } } }`.
    fn reduction_in_lanes(&mut self, leaf: &Leaf, lanes: usize) {
        let mut unrolled = leaf.unrolled();
        let (rows, columns) = (unrolled.next(), unrolled.next());
        let apart = |p: &usize| !matches!(leaf.loops[*p].kind, Kind::Serial | Kind::Threads(_));
        let opened = self.open_loops((0..leaf.outputs).filter(|p| !apart(p)).map(|p| &leaf.loops[p]));
        self.over_rows(leaf, rows, &mut |writer, row_names| {
            writer.over_rows(leaf, columns, &mut |writer, column_names| {
                let named = |of: Option<(usize, usize)>, names: &[Value]| {
                    of.map(|(position, _)| (leaf.loops[position].variable, names.to_vec()))
                };
                let (rows, columns) = (named(rows, row_names), named(columns, column_names));
                let count = row_names.len().max(1) * column_names.len().max(1);
                writer.reduce_in_lanes(leaf, lanes, Instances { rows, columns, ..Instances::default() }, count);
            });
        });
        self.draft.close(opened);
    }

    /// Accumulators, some for each of some elements.
    pub fn accumulators(&mut self, op: ReduceOp, elements: usize, vectors: usize) -> Vec<Vec<Value>> {
        let start = all(neutral(op, self.real));
        let mut sums = |_| (0..vectors).map(|_| self.draft.variable("sum", &start)).collect();
        (0..elements).map(&mut sums).collect()
    }

    /// The elements of some rows and columns.
    fn reduce_in_lanes(&mut self, leaf: &Leaf, lanes: usize, elements: Instances, count: usize) {
        let op = leaf.reduction.expect("lanes of a reduction");
        let vectors = leaf.vectors();
        let sums = self.accumulators(op, count, vectors);
        let opened = self.open_loops(&leaf.loops[leaf.outputs..lanes]) + self.open_guards(leaf);
        let range = self.range(&leaf.loops[lanes]);
        self.over_lanes(range, leaf.loops[lanes].variable, vectors, None, &mut |writer, instances, vectors| {
            let partial = instances.partial.first().cloned();
            let Instances { rows, columns, .. } = elements.clone();
            let points: Vec<Instance> = (0..count).flat_map(|e| (0..vectors).map(move |v| (e, v))).collect();
            let found = writer.vectors(leaf.body, &points, &Instances { rows, columns, ..instances });
            for ((element, vector), value) in points.into_iter().zip(found) {
                let sum = &sums[element][vector];
                writer.draft.assign(sum, combine(op, sum, value, partial.as_ref()));
            }
        });
        self.draft.close(opened);
        for (number, sums) in sums.iter().enumerate() {
            elements.select((number, 0), &mut self.names.variables);
            self.finish(leaf, op, sums);
        }
    }

    /// Stores an element whose accumulators are complete.
    pub fn finish(&mut self, leaf: &Leaf, op: ReduceOp, sums: &[Value]) {
        let held = self.names.address(leaf.target, &leaf.subscripts).held();
        let total = total(op, sums);
        let value = if leaf.accumulate { combine(op, &held, total, None) } else { total };
        self.draft.assign(&held, value);
    }
}
