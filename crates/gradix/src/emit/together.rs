//! Leaves with the same loops as C: one loop over vectors, in which each leaf is a statement.

use super::leaf::Writer;
use super::value::{Instance, Instances, combine, neutral, store};
use crate::nest::Leaf;
use crate::program::{Expr, ExprId, Exprs, ReduceOp};

/// A reduction while it runs: its leaf, and the accumulator of each vector.
struct Running<'a> {
    leaf: &'a Leaf,
    op: ReduceOp,
    sums: Vec<String>,
}

/// Writes the leaves, which share their variables; lanes run over the innermost loop.
pub fn write(w: &mut Writer, leaves: &[Leaf]) {
    let first = &leaves[0];
    let (lane, outer) = first.loops.split_last().expect("a loop for the lanes");
    let reductions = || leaves.iter().filter_map(|leaf| leaf.reduction.map(|op| (leaf, op)));
    let outputs = reductions().map(|(leaf, _)| leaf.outputs).min().unwrap_or(outer.len());
    let vectors = if reductions().next().is_some() { VECTORS } else { 1 };
    let saved = w.names.variables.clone();
    outer[..outputs].iter().for_each(|l| w.open_loop(l));
    w.lines.open("");
    let mut running = Vec::new();
    for (leaf, op) in reductions() {
        let start = neutral(op, w.single);
        let sums: Vec<String> = (0..vectors).map(|_| w.names.fresh("sum")).collect();
        sums.iter().for_each(|sum| w.lines.line(format!("gx_v {sum} = gx_all({start});")));
        running.push(Running { leaf, op, sums });
    }
    outer[outputs..].iter().for_each(|l| w.open_loop(l));
    w.lines.open("");
    let align = w.aligned(leaves, lane);
    w.over_lanes(lane, vectors, align, &mut |w, instances, count| statements(w, leaves, &running, instances, count));
    w.close(1 + outer.len() - outputs);
    for Running { leaf, op, sums } in &running {
        let whole = sums[1..].iter().fold(sums[0].clone(), |all, sum| combine(*op, &all, sum, true, w.functions));
        let mut total = format!("gx_h{}({whole})", op.name());
        let address = w.names.address(w.nest, leaf.target, &leaf.subscripts);
        if leaf.accumulate {
            total = combine(*op, &format!("*({address})"), &total, false, w.functions);
        }
        w.lines.line(format!("*({address}) = {total};"));
    }
    w.close(1 + outputs);
    w.names.variables = saved;
}

/// Vectors that are taken at a time where something is reduced, so that sums don't wait for each other.
const VECTORS: usize = 2;

/// All leaves at one place, in order; what a leaf has made is known to the next.
fn statements(w: &mut Writer, leaves: &[Leaf], running: &[Running], instances: Instances, vectors: usize) {
    let partial = instances.partial.first().cloned();
    let nest = w.nest;
    let mut lines = Vec::new();
    {
        let mut values = w.values(instances.clone());
        let variable = instances.lanes.as_ref().map(|(variable, _)| *variable).expect("lanes");
        let mut reductions = running.iter();
        for leaf in leaves {
            let points: Vec<Instance> = (0..vectors).map(|vector| (0, vector)).collect();
            let found: Vec<String> = points.iter().map(|point| values.wide(leaf.body, *point)).collect();
            if leaf.reduction.is_some() {
                let Running { op, sums, .. } = reductions.next().expect("as many as there are reductions");
                for (sum, value) in sums.iter().zip(&found) {
                    let mut combined = combine(*op, sum, value, true, values.functions);
                    if let Some(n) = &partial {
                        combined = format!("gx_select(gx_below({n}), {combined}, {sum})");
                    }
                    values.lines.line(format!("{sum} = {combined};"));
                }
                continue;
            }
            for (point, value) in points.iter().zip(&found) {
                values.select_instance(*point);
                let address = values.names.address(nest, leaf.target, &leaf.subscripts);
                let step = values.names.step(nest, leaf.target, &leaf.subscripts, variable);
                let streamed = nest.streamed.contains(&leaf.target);
                lines.push(store(streamed, &address, &step, partial.as_deref(), value));
                for id in same_element(&nest.frame.exprs, leaves, leaf) {
                    values.given.insert((id, *point), (value.clone(), true));
                }
            }
        }
    }
    lines.iter().for_each(|line| w.lines.line(line));
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
