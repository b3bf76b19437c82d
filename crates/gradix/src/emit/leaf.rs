//! A leaf as C loops: element by element, or over vectors with several rows and vectors at once.

use super::panel;
use super::text::{Lines, Names, Shared};
use super::transpose;
use super::value::{Instance, Instances, Values, combine, neutral, store};
use crate::nest::{Leaf, Loop, Nest, Scope, Shape};
use crate::program::ReduceOp;
use crate::program::affine::is_along;
use std::collections::BTreeSet;

/// What is needed to write one kernel.
pub struct Writer<'a> {
    pub nest: &'a Nest,
    pub names: Names,
    pub lines: Lines,
    pub functions: &'a mut BTreeSet<&'static str>,
    pub shared: &'a mut Shared,
    pub single: bool,
}

impl Writer<'_> {
    /// Writes a leaf.
    pub fn leaf(&mut self, leaf: &Leaf) {
        let names = self.names.variables.clone();
        if let Some(copy) = transpose::recognise(self, leaf) {
            transpose::write(self, leaf, &copy);
            return;
        }
        match leaf.shape.lanes {
            None => self.scalar(leaf),
            Some(_) if leaf.shape.panels.is_some() => panel::write(self, leaf),
            Some(lanes) if lanes < leaf.outputs => self.outputs_in_lanes(leaf, lanes),
            Some(lanes) => self.reduction_in_lanes(leaf, lanes),
        }
        self.names.variables = names;
    }

    pub fn values(&mut self, instances: Instances) -> Values<'_> {
        Values::new(self.nest, &mut self.names, &mut self.lines, self.functions, self.single, instances)
    }

    pub fn open_loop(&mut self, l: &Loop) {
        let (low, high) = (self.names.low(&l.range), self.names.high(&l.range));
        let v = self.names.variables[l.variable].clone();
        if low == high {
            self.lines.open("");
            self.lines.line(format!("const int64_t {v} = {low};"));
            self.lines.line(format!("(void){v};"));
        } else {
            let end = self.names.fresh("end");
            self.lines.open(format!("for (int64_t {v} = {low}, {end} = {high}; {v} <= {end}; {v}++)"));
        }
    }

    pub fn open_guards(&mut self, leaf: &Leaf) -> bool {
        if leaf.guards.is_empty() {
            return false;
        }
        let test = self.names.all(&leaf.guards);
        self.lines.open(format!("if ({test})"));
        true
    }

    pub fn close(&mut self, count: usize) {
        (0..count).for_each(|_| self.lines.close());
    }

    fn scalar(&mut self, leaf: &Leaf) {
        leaf.loops[..leaf.outputs].iter().for_each(|l| self.open_loop(l));
        self.element(leaf);
        self.close(leaf.outputs);
    }

    /// One element of a leaf.
    pub fn element(&mut self, leaf: &Leaf) {
        let target = self.names.element(self.nest, leaf.target, &leaf.subscripts);
        match leaf.reduction {
            None => {
                let guarded = self.open_guards(leaf);
                let value = self.values(Instances::default()).value(leaf.body, (0, 0));
                self.lines.line(format!("{target} = {value};"));
                self.close(guarded as usize);
            }
            Some(op) => {
                let accumulator = self.names.fresh("sum");
                let start = if leaf.accumulate { target.clone() } else { neutral(op, self.single) };
                self.lines.line(format!("gx_t {accumulator} = {start};"));
                leaf.loops[leaf.outputs..].iter().for_each(|l| self.open_loop(l));
                let guarded = self.open_guards(leaf);
                let value = self.values(Instances::default()).value(leaf.body, (0, 0));
                let combined = combine(op, &accumulator, &value, false, self.functions);
                self.lines.line(format!("{accumulator} = {combined};"));
                self.close(guarded as usize + leaf.loops.len() - leaf.outputs);
                self.lines.line(format!("{target} = {accumulator};"));
            }
        }
    }

    /// Lanes over an output: `others { rows { lanes { reduction } } }`.
    fn outputs_in_lanes(&mut self, leaf: &Leaf, lanes: usize) {
        let rows = leaf.shape.rows;
        let set_apart = |position: usize| position == lanes || rows.is_some_and(|(r, _)| r == position);
        let others: Vec<&Loop> = (0..leaf.outputs).filter(|p| !set_apart(*p)).map(|p| &leaf.loops[p]).collect();
        others.iter().for_each(|l| self.open_loop(l));
        let vectors = leaf.shape.vectors.max(1);
        self.over_rows(leaf, rows, &mut |writer, row_names| {
            let align = writer.aligned(std::slice::from_ref(leaf), &leaf.loops[lanes]);
            writer.over_lanes(&leaf.loops[lanes], vectors, align, &mut |writer, instances, count| {
                let rows = rows.map(|(r, _)| (leaf.loops[r].variable, row_names.to_vec()));
                writer.body_in_lanes(leaf, Instances { rows, ..instances }, row_names.len().max(1), count);
            });
        });
        self.close(others.len());
    }

    /// The target whose stores are aligned, if it makes no difference that some elements are computed twice.
    pub fn aligned<'l>(&self, leaves: &'l [Leaf], lanes: &Loop) -> Option<&'l Leaf> {
        let exprs = &self.nest.exprs;
        let reads_itself = |leaf: &Leaf| exprs.accesses(leaf.body).any(|(read, _)| read == leaf.target);
        let fits = leaves.iter().all(|leaf| leaf.reduction.is_none() && !reads_itself(leaf));
        let is_kept = |leaf: &&Leaf| !matches!(self.nest.buffers[leaf.target.0 as usize].scope, Scope::Local(_));
        let leaf = leaves.iter().find(is_kept).or(leaves.first()).filter(|_| fits)?;
        is_along(&leaf.subscripts, lanes.variable).then_some(leaf)
    }

    /// The lanes of a loop, from its first to its last.
    pub fn over_lanes(
        &mut self,
        l: &Loop,
        vectors: usize,
        aligned: Option<&Leaf>,
        inside: &mut dyn FnMut(&mut Self, Instances, usize),
    ) {
        let range = (self.names.low(&l.range), self.names.high(&l.range));
        self.over_lanes_in(range, l.variable, vectors, aligned, inside);
    }

    /// The lanes: first in groups of vectors, then vector by vector, of which the last may not be full. To have the
    /// stores of a leaf aligned, the first group overlaps the second.
    pub fn over_lanes_in(
        &mut self,
        (low, high): (String, String),
        variable: usize,
        vectors: usize,
        aligned: Option<&Leaf>,
        inside: &mut dyn FnMut(&mut Self, Instances, usize),
    ) {
        let v = self.names.variables[variable].clone();
        let end = self.names.fresh("end");
        self.lines.line(format!("const int64_t {end} = {high};"));
        self.lines.line(format!("int64_t {v} = {low};"));
        let skew = aligned.map(|leaf| {
            let skew = self.names.fresh("skew");
            let address = self.names.address(self.nest, leaf.target, &leaf.subscripts);
            self.lines.line(format!("int64_t {skew} = gx_skew({address}, {end} - {v});"));
            skew
        });
        for (count, whole) in [(vectors, true), (1, false)] {
            let width = if count == 1 { "GX_W".to_string() } else { format!("{count}*GX_W") };
            let test = if whole { format!("{v} + {width} - 1 <= {end}") } else { format!("{v} <= {end}") };
            let next = match skew.as_ref().filter(|_| whole) {
                Some(skew) => format!("{v} += {width} - {skew}, {skew} = 0"),
                None => format!("{v} += {width}"),
            };
            self.lines.open(format!("for (; {test}; {next})"));
            let mut names = vec![v.clone()];
            for number in 1..count {
                names.push(self.names.fresh("v"));
                self.lines.line(format!("const int64_t {} = {v} + {number}*GX_W;", names[number]));
            }
            let partial: Vec<String> = (!whole).then(|| self.lanes_left(&v, &end)).into_iter().collect();
            inside(self, Instances { lanes: Some((variable, names)), partial, ..Instances::default() }, count);
            self.names.variables[variable] = v.clone();
            self.lines.close();
        }
    }

    /// The rows: first in groups, then one by one.
    pub fn over_rows(
        &mut self,
        leaf: &Leaf,
        rows: Option<(usize, usize)>,
        inside: &mut dyn FnMut(&mut Self, &[String]),
    ) {
        let Some((position, count)) = rows else {
            self.lines.open("");
            inside(self, &[]);
            self.lines.close();
            return;
        };
        let l = &leaf.loops[position];
        let (low, high) = (self.names.low(&l.range), self.names.high(&l.range));
        let r = self.names.variables[l.variable].clone();
        let end = self.names.fresh("end");
        self.lines.open("");
        self.lines.line(format!("const int64_t {end} = {high};"));
        self.lines.line(format!("int64_t {r} = {low};"));
        for group in [count, 1] {
            self.lines.open(format!("for (; {r} + {} <= {end}; {r} += {group})", group - 1));
            let mut names = vec![r.clone()];
            for number in 1..group {
                names.push(self.names.fresh("r"));
                self.lines.line(format!("const int64_t {} = {r} + {number};", names[number]));
            }
            inside(self, &names);
            self.names.variables[l.variable] = r.clone();
            self.lines.close();
            if count == 1 {
                break;
            }
        }
        self.lines.close();
    }

    fn body_in_lanes(&mut self, leaf: &Leaf, instances: Instances, rows: usize, vectors: usize) {
        let points: Vec<(usize, usize)> = (0..rows).flat_map(|r| (0..vectors).map(move |v| (r, v))).collect();
        let partial = instances.partial.first().cloned();
        let streamed = self.nest[leaf.target].streamed && !leaf.accumulate;
        let Some(op) = leaf.reduction else {
            let guarded = self.open_guards(leaf);
            let mut values = self.values(instances.clone());
            let found: Vec<String> = points.iter().map(|p| values.wide(leaf.body, *p)).collect();
            for (point, value) in points.iter().zip(found) {
                let (address, step) = self.target(leaf, &instances, *point);
                self.lines.line(store(streamed, &address, &step, partial.as_deref(), &value));
            }
            self.close(guarded as usize);
            return;
        };
        let mut accumulators = Vec::new();
        for point in &points {
            let name = self.names.fresh("sum");
            let start = match leaf.accumulate {
                true => {
                    let (address, step) = self.target(leaf, &instances, *point);
                    super::value::load(&address, &step, partial.as_deref())
                }
                false => format!("gx_all({})", neutral(op, self.single)),
            };
            self.lines.line(format!("gx_v {name} = {start};"));
            accumulators.push(name);
        }
        leaf.loops[leaf.outputs..].iter().for_each(|l| self.open_loop(l));
        let guarded = self.open_guards(leaf);
        let mut values = self.values(instances.clone());
        let found: Vec<String> = points.iter().map(|p| values.wide(leaf.body, *p)).collect();
        for (name, value) in accumulators.iter().zip(found) {
            let combined = combine(op, name, &value, true, self.functions);
            self.lines.line(format!("{name} = {combined};"));
        }
        self.close(guarded as usize + leaf.loops.len() - leaf.outputs);
        for (point, name) in points.iter().zip(&accumulators) {
            let (address, step) = self.target(leaf, &instances, *point);
            self.lines.line(store(streamed, &address, &step, partial.as_deref(), name));
        }
    }

    /// How many lanes there are from `v` to `end`, at most a vector's.
    fn lanes_left(&mut self, v: &str, end: &str) -> String {
        let n = self.names.fresh("n");
        self.lines.line(format!("const int64_t {n} = gx_smaller(GX_W, {end} - {v} + 1);"));
        n
    }

    /// The address of the target for an instance, and how far apart its lanes are.
    fn target(&mut self, leaf: &Leaf, instances: &Instances, instance: Instance) -> (String, String) {
        instances.select(instance, &mut self.names.variables);
        let step = match &instances.lanes {
            Some((variable, _)) => self.names.step(self.nest, leaf.target, &leaf.subscripts, *variable),
            None => "0".to_string(),
        };
        (self.names.address(self.nest, leaf.target, &leaf.subscripts), step)
    }

    /// Lanes over the innermost loop of the reduction: `outputs { rows { columns { reduction { lanes } } } }`.
    fn reduction_in_lanes(&mut self, leaf: &Leaf, lanes: usize) {
        let Shape { rows, columns, .. } = leaf.shape;
        let apart = |p: &usize| rows.iter().chain(&columns).any(|(position, _)| position == p);
        let others: Vec<&Loop> = (0..leaf.outputs).filter(|p| !apart(p)).map(|p| &leaf.loops[p]).collect();
        others.iter().for_each(|l| self.open_loop(l));
        self.over_rows(leaf, rows, &mut |writer, row_names| {
            writer.over_rows(leaf, columns, &mut |writer, column_names| {
                let named = |of: Option<(usize, usize)>, names: &[String]| {
                    of.map(|(position, _)| (leaf.loops[position].variable, names.to_vec()))
                };
                let (rows, columns) = (named(rows, row_names), named(columns, column_names));
                let count = row_names.len().max(1) * column_names.len().max(1);
                writer.reduce_in_lanes(leaf, lanes, Instances { rows, columns, ..Instances::default() }, count);
            });
        });
        self.close(others.len());
    }

    /// The elements of some rows and columns.
    fn reduce_in_lanes(&mut self, leaf: &Leaf, lanes: usize, elements: Instances, count: usize) {
        let op = leaf.reduction.unwrap_or(ReduceOp::Sum);
        let vectors = leaf.shape.vectors.max(1);
        let start = neutral(op, self.single);
        let mut accumulators: Vec<Vec<String>> = Vec::new();
        for _ in 0..count {
            let names: Vec<String> = (0..vectors).map(|_| self.names.fresh("sum")).collect();
            names.iter().for_each(|name| self.lines.line(format!("gx_v {name} = gx_all({start});")));
            accumulators.push(names);
        }
        leaf.loops[leaf.outputs..lanes].iter().for_each(|l| self.open_loop(l));
        let guarded = self.open_guards(leaf);
        self.lanes_of_reduction(leaf, lanes, op, &elements, &accumulators);
        self.close(guarded as usize + lanes - leaf.outputs);
        for (number, names) in accumulators.iter().enumerate() {
            let mut whole = names[0].clone();
            for name in &names[1..] {
                whole = combine(op, &whole, name, true, self.functions);
            }
            let mut total = format!("gx_h{}({whole})", op.name());
            let (address, _) = self.target(leaf, &elements, (number, 0));
            if leaf.accumulate {
                total = combine(op, &format!("*({address})"), &total, false, self.functions);
            }
            self.lines.line(format!("*({address}) = {total};"));
        }
    }

    fn lanes_of_reduction(
        &mut self,
        leaf: &Leaf,
        lanes: usize,
        op: ReduceOp,
        elements: &Instances,
        accumulators: &[Vec<String>],
    ) {
        self.over_lanes(&leaf.loops[lanes], accumulators[0].len(), None, &mut |writer, instances, count| {
            let partial = instances.partial.clone();
            let Instances { rows, columns, .. } = elements.clone();
            let mut values = writer.values(Instances { rows, columns, ..instances });
            let mut found = Vec::new();
            for element in 0..accumulators.len() {
                for vector in 0..count {
                    found.push((element, vector, values.wide(leaf.body, (element, vector))));
                }
            }
            for (element, vector, value) in found {
                let name = &accumulators[element][vector];
                let mut combined = combine(op, name, &value, true, writer.functions);
                if let Some(n) = partial.first() {
                    combined = format!("gx_select(gx_below({n}), {combined}, {name})");
                }
                writer.lines.line(format!("{name} = {combined};"));
            }
        });
    }
}
