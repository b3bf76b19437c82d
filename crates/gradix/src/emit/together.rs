//! Leaves with the same loops as C: one loop over vectors, in which each leaf is a statement.

use super::leaf::Writer;
use super::value::{Instance, Instances, Values, combine, load, neutral, store};
use crate::nest::{Leaf, Loop};
use crate::program::{BinaryOp, Expr, ExprId, Exprs, ReduceOp, TensorId};
use std::ops::Range;

/// A reduction while it runs: its leaf, and the accumulator of each row and vector.
struct Running<'a> {
    leaf: &'a Leaf,
    op: ReduceOp,
    sums: Vec<Vec<String>>,
}

/// Leaves that run together.
#[derive(Clone, Copy)]
struct Together<'a> {
    leaves: &'a [Leaf],
    /// Those of them whose results nothing else reads: they stay in registers.
    unstored: &'a [TensorId],
    lane: &'a Loop,
    /// The innermost loop around the lanes, where several of its values are taken at a time, and how many.
    rows: Option<(usize, usize)>,
}

/// Writes the leaves, which share their variables; lanes run over the innermost loop.
pub fn write(w: &mut Writer, leaves: &[Leaf], unstored: &[TensorId]) {
    let (lane, outer) = leaves[0].loops.split_last().expect("a loop for the lanes");
    let reductions = || leaves.iter().filter_map(|leaf| leaf.reduction.map(|op| (leaf, op)));
    let outputs = reductions().map(|(leaf, _)| leaf.outputs).min().unwrap_or(outer.len());
    // What rows add to one after the other is loaded and stored once for several of them.
    let exprs = &w.nest.exprs;
    let shared = |row: &Loop| leaves.iter().any(|leaf| is_shared(leaf, row.variable));
    let known = |row: &Loop| leaves.iter().all(|leaf| !is_shared(leaf, row.variable) || adds(exprs, leaf).is_some());
    let row = outer.last().filter(|row| outputs == outer.len() && shared(row) && known(row));
    let rows = row.map(|_| (outer.len() - 1, ROWS));
    let together = Together { leaves, unstored, lane, rows };
    let vectors = if rows.is_none() && reductions().next().is_some() { VECTORS } else { 1 };
    let narrow = leaves.iter().find(|leaf| is_narrow(leaf, &leaves[0]));
    let saved = w.names.variables.clone();
    let around = outputs - usize::from(rows.is_some());
    outer[..around].iter().for_each(|l| w.open_loop(l));
    w.over_rows(&leaves[0], rows, &mut |w, row_names| {
        let mut running = Vec::new();
        for (leaf, op) in reductions() {
            let start = neutral(op, w.single);
            let mut sum = || {
                let sum = w.names.fresh("sum");
                w.lines.line(format!("gx_v {sum} = gx_all({start});"));
                sum
            };
            let sums = (0..row_names.len().max(1)).map(|_| (0..vectors).map(|_| sum()).collect()).collect();
            running.push(Running { leaf, op, sums });
        }
        outer[outputs..].iter().for_each(|l| w.open_loop(l));
        match narrow {
            None => together.lanes(w, &running, row_names, vectors),
            Some(leaf) => {
                let test = within(w, leaf, &leaves[0]);
                w.lines.open(format!("if ({test})"));
                together.lanes(w, &running, row_names, vectors);
                w.lines.otherwise();
                let wide = leaves.iter().filter(|leaf| !is_narrow(leaf, &leaves[0])).cloned().collect::<Vec<_>>();
                Together { leaves: &wide, ..together }.lanes(w, &running, row_names, vectors);
                w.lines.close();
            }
        }
        w.close(outer.len() - outputs);
        together.finish(w, &running, row_names);
    });
    w.close(around);
    w.names.variables = saved;
}

/// Whether a leaf leaves out values of an outer loop of another one.
fn is_narrow(leaf: &Leaf, first: &Leaf) -> bool {
    leaf.loops.iter().zip(&first.loops).any(|(own, other)| own.range != other.range)
}

/// Whether the variables are in the ranges of a leaf, where those are not the ranges of the loops.
fn within(w: &mut Writer, leaf: &Leaf, first: &Leaf) -> String {
    let narrow = leaf.loops.iter().zip(&first.loops).filter(|(own, other)| own.range != other.range);
    let tests = narrow.map(|(l, _)| {
        let (low, high) = (w.names.low(&l.range), w.names.high(&l.range));
        let v = &w.names.variables[l.variable];
        format!("{low} <= {v} && {v} <= {high}")
    });
    tests.collect::<Vec<_>>().join(" && ")
}

/// Vectors that are taken at a time where something is reduced, so that sums don't wait for each other.
const VECTORS: usize = 2;
/// Rows that are taken at a time where something adds to one element for each of them.
const ROWS: usize = 4;

impl Together<'_> {
    /// All lanes of some rows. Where rows begin or end at different lanes, those that not all of them have come first and
    /// last, row by row.
    fn lanes(&self, w: &mut Writer, running: &[Running], row_names: &[String], vectors: usize) {
        let Loop { variable, range } = self.lane;
        let row = self.row(row_names);
        let moves = |row: usize| range.low.iter().chain(&range.high).any(|bound| bound.uses_index(row));
        let Some((row, _)) = row.as_ref().filter(|(row, names)| names.len() > 1 && moves(*row)) else {
            w.lines.open("");
            let align = w.aligned(self.leaves, self.lane);
            w.over_lanes(self.lane, vectors, align, &mut |w, instances, count| {
                let instances = Instances { rows: row.clone(), ..instances };
                self.statements(w, running, instances, 0..row_names.len().max(1), count);
            });
            return w.lines.close();
        };
        let saved = w.names.variables.clone();
        let mut ends = Vec::new();
        for name in row_names {
            w.names.variables[*row] = name.clone();
            let [low, high] = ["low", "high"].map(|stem| w.names.fresh(stem));
            w.lines.line(format!("const int64_t {low} = {};", w.names.low(range)));
            w.lines.line(format!("const int64_t {high} = {};", w.names.high(range)));
            ends.push((low, high));
        }
        w.names.variables = saved;
        let [low, high] = ["low", "high"].map(|stem| w.names.fresh(stem));
        let of_all = |function: &str, all: Vec<&String>| {
            let first = all[0].clone();
            all[1..].iter().fold(first, |found, next| format!("{function}({found}, {next})"))
        };
        w.lines.line(format!("const int64_t {low} = {};", of_all("gx_larger", ends.iter().map(|e| &e.0).collect())));
        w.lines.line(format!("const int64_t {high} = {};", of_all("gx_smaller", ends.iter().map(|e| &e.1).collect())));
        let single = |number: usize| number..number + 1;
        let before = ends
            .iter()
            .enumerate()
            .map(|(number, (first, last))| (single(number), (first.clone(), format!("gx_smaller({last}, {low} - 1)"))));
        let after = ends
            .iter()
            .enumerate()
            .map(|(number, (_, last))| (single(number), (format!("gx_larger({low}, {high} + 1)"), last.clone())));
        let all = (0..row_names.len(), (low.clone(), high.clone()));
        let parts: Vec<(Range<usize>, (String, String))> = before.chain([all]).chain(after).collect();
        for (rows, range) in parts {
            w.lines.open("");
            w.over_lanes_in(range, *variable, vectors, None, &mut |w, instances, count| {
                let instances = Instances { rows: self.row(row_names), ..instances };
                self.statements(w, running, instances, rows.clone(), count);
            });
            w.lines.close();
        }
    }

    /// The variable of the rows, with its names.
    fn row(&self, names: &[String]) -> Option<(usize, Vec<String>)> {
        self.rows.map(|(position, _)| (self.leaves[0].loops[position].variable, names.to_vec()))
    }

    /// Stores the reductions of some rows.
    fn finish(&self, w: &mut Writer, running: &[Running], row_names: &[String]) {
        for Running { leaf, op, sums } in running {
            for (number, sums) in sums.iter().enumerate() {
                if let Some((variable, names)) = self.row(row_names) {
                    w.names.variables[variable] = names[number].clone();
                }
                let whole =
                    sums[1..].iter().fold(sums[0].clone(), |all, sum| combine(*op, &all, sum, true, w.functions));
                let mut total = format!("gx_h{}({whole})", op.name());
                let address = w.names.address(w.nest, leaf.target, &leaf.subscripts);
                if leaf.accumulate {
                    total = combine(*op, &format!("*({address})"), &total, false, w.functions);
                }
                w.lines.line(format!("*({address}) = {total};"));
            }
        }
    }

    /// All leaves at one place, in order; what a leaf has made is known to the next.
    fn statements(
        &self,
        w: &mut Writer,
        running: &[Running],
        instances: Instances,
        rows: Range<usize>,
        vectors: usize,
    ) {
        let partial = instances.partial.first().cloned();
        let nest = w.nest;
        let points: Vec<Instance> = rows.flat_map(|row| (0..vectors).map(move |vector| (row, vector))).collect();
        let row = instances.rows.as_ref().map(|(variable, _)| *variable);
        let variable = instances.lanes.as_ref().map(|(variable, _)| *variable).expect("lanes");
        let mut lines = Vec::new();
        let mut values = w.values(instances);
        for leaf in self.leaves {
            if let Some(Running { op, sums, .. }) = running.iter().find(|running| running.leaf.target == leaf.target) {
                for point in &points {
                    let (value, sum) = (values.wide(leaf.body, *point), &sums[point.0][point.1]);
                    let mut combined = combine(*op, sum, &value, true, values.functions);
                    if let Some(n) = &partial {
                        combined = format!("gx_select(gx_below({n}), {combined}, {sum})");
                    }
                    values.lines.line(format!("{sum} = {combined};"));
                }
                continue;
            }
            let target = |values: &mut Values, point: Instance| {
                values.select_instance(point);
                let address = values.names.address(nest, leaf.target, &leaf.subscripts);
                (address, values.names.step(nest, leaf.target, &leaf.subscripts, variable))
            };
            let shared = row.is_some_and(|row| is_shared(leaf, row));
            if let Some((term, takes)) = adds(&nest.exprs, leaf).filter(|_| shared) {
                let sign = if takes { "-" } else { "+" };
                for vector in 0..vectors {
                    let (address, step) = target(&mut values, (points[0].0, vector));
                    let mut sum = load(&address, &step, partial.as_deref());
                    for point in points.iter().filter(|point| point.1 == vector) {
                        sum = format!("{sum} {sign} {}", values.wide(term, *point));
                    }
                    lines.push(store(false, &address, &step, partial.as_deref(), &sum));
                }
                continue;
            }
            let streamed = nest[leaf.target].streamed;
            for point in &points {
                let value = values.wide(leaf.body, *point);
                let (address, step) = target(&mut values, *point);
                if !self.unstored.contains(&leaf.target) {
                    lines.push(store(streamed, &address, &step, partial.as_deref(), &value));
                }
                for id in same_element(&nest.exprs, self.leaves, leaf) {
                    values.given.insert((id, *point), (value.clone(), true));
                }
            }
        }
        lines.iter().for_each(|line| w.lines.line(line));
    }
}

/// Whether all values of a variable write to the same element.
fn is_shared(leaf: &Leaf, variable: usize) -> bool {
    leaf.reduction.is_none() && !leaf.subscripts.iter().any(|subscript| subscript.uses_index(variable))
}

/// What a pointwise leaf adds to its target or, with `true`, takes from it.
fn adds(exprs: &Exprs, leaf: &Leaf) -> Option<(ExprId, bool)> {
    let is_held =
        |id: ExprId| matches!(&exprs[id], Expr::Access(read, at) if *read == leaf.target && *at == leaf.subscripts);
    let reads_held = |id: ExprId| exprs.accesses(id).any(|(read, _)| read == leaf.target);
    match exprs[leaf.body] {
        Expr::Binary(BinaryOp::Add, held, term) if is_held(held) && !reads_held(term) => Some((term, false)),
        Expr::Binary(BinaryOp::Add, term, held) if is_held(held) && !reads_held(term) => Some((term, false)),
        Expr::Binary(BinaryOp::Sub, held, term) if is_held(held) && !reads_held(term) => Some((term, true)),
        _ => None,
    }
}

/// The nodes that read what a leaf writes at the same point.
fn same_element(exprs: &Exprs, leaves: &[Leaf], leaf: &Leaf) -> Vec<ExprId> {
    let nodes = leaves.iter().flat_map(|other| exprs.postorder(other.body));
    let reads = |id: &ExprId| match &exprs[*id] {
        Expr::Access(target, subscripts) => *target == leaf.target && *subscripts == leaf.subscripts,
        _ => false,
    };
    nodes.filter(reads).collect()
}
