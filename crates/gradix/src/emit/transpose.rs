//! What is read across the order in which it is written, as C: squares of a vector's width are turned in registers.
//!
//! A copy is a call of one function; other values are computed for a square of places, along what is read.

use super::leaf::Writer;
use super::value::{Instances, combine, neutral};
use crate::nest::{Leaf, Loop, Shape};
use crate::program::affine::is_along;
use crate::program::{Affine, Expr, ExprId, Exprs};

/// The two loops along which the target and what is read have their neighbours.
pub struct Turn<'a> {
    along_target: &'a Loop,
    along_source: &'a Loop,
}

/// Finds out whether all that a leaf reads lies across its target.
pub fn recognise<'a>(writer: &Writer, leaf: &'a Leaf) -> Option<Turn<'a>> {
    let exprs = &writer.nest.exprs;
    let is_copy = matches!(exprs[leaf.body], Expr::Access(..));
    if !leaf.guards.is_empty() || !is_copy && leaf.shape.lanes.is_none() {
        return None;
    }
    let outputs = || leaf.loops[..leaf.outputs].iter();
    let along_target = outputs().find(|l| is_along(&leaf.subscripts, l.variable))?;
    let across = |l: &&Loop| l.variable != along_target.variable && is_read_along(exprs, leaf.body, l.variable);
    let along_source = outputs().find(across)?;
    let Shape { lanes, rows, panels, .. } = &leaf.shape;
    let in_lanes = || lanes.is_some_and(|position| leaf.loops[position].variable == along_source.variable);
    if leaf.reduction.is_some() && (leaf.accumulate || rows.is_some() || panels.is_some() || !in_lanes()) {
        return None;
    }
    let pair = [along_target.variable, along_source.variable];
    let bounds = leaf.loops.iter().flat_map(|l| l.range.low.iter().chain(&l.range.high));
    let free = |affine: &Affine| pair.iter().all(|&v| !affine.uses_index(v));
    let mut fits = bounds.into_iter().all(free) && leaf.subscripts.iter().all(Affine::is_straight);
    exprs.visit_affines(leaf.body, &mut |affine| fits &= affine.is_straight());
    fits &= exprs.index_conditions(leaf.body).iter().all(|c| free(&c.affine));
    fits.then_some(Turn { along_target, along_source })
}

/// Whether some elements are read along a variable, and all others don't depend on it.
fn is_read_along(exprs: &Exprs, body: ExprId, variable: usize) -> bool {
    let depends = |subscripts: &[Affine]| subscripts.iter().any(|s| s.uses_index(variable));
    let mut reads = exprs.accesses(body).filter(|(_, subscripts)| depends(subscripts)).peekable();
    reads.peek().is_some() && reads.all(|(_, subscripts)| is_along(subscripts, variable))
}

/// Writes a leaf in squares.
pub fn write(w: &mut Writer, leaf: &Leaf, turn: &Turn) {
    let pair = [turn.along_source, turn.along_target];
    let is_apart = |l: &&Loop| pair.iter().all(|p| p.variable != l.variable);
    let others: Vec<&Loop> = leaf.loops[..leaf.outputs].iter().filter(is_apart).collect();
    others.iter().for_each(|l| w.open_loop(l));
    w.lines.open("");
    w.shared.add("gx_turn".into(), TURN.into());
    match w.nest.exprs[leaf.body] {
        Expr::Access(..) if leaf.reduction.is_none() => copy(w, leaf, pair),
        _ => squares(w, leaf, pair),
    }
    w.close(others.len() + 1);
}

fn copy(w: &mut Writer, leaf: &Leaf, pair: [&Loop; 2]) {
    let Expr::Access(source, subscripts) = w.nest.exprs[leaf.body].clone() else {
        unreachable!("a copy reads an element");
    };
    let mut counts = Vec::new();
    for l in pair {
        let (low, high) = (w.names.low(&l.range), w.names.high(&l.range));
        let name = w.names.variables[l.variable].clone();
        w.lines.line(format!("const int64_t {name} = {low};"));
        counts.push(format!("{high} - {name} + 1"));
    }
    let to = w.names.address(w.nest, leaf.target, &leaf.subscripts);
    let from = w.names.address(w.nest, source, &subscripts);
    let to_step = w.names.step(w.nest, leaf.target, &leaf.subscripts, pair[0].variable);
    let from_step = w.names.step(w.nest, source, &subscripts, pair[1].variable);
    w.shared.add("gx_transpose".into(), TRANSPOSE.into());
    w.lines.line(format!("gx_transpose({to}, {to_step}, {from}, {from_step}, {}, {});", counts[0], counts[1]));
}

/// Whole squares with the lanes along what is read, and then the places that are left, one by one.
fn squares(w: &mut Writer, leaf: &Leaf, pair: [&Loop; 2]) {
    let names = pair.map(|l| w.names.variables[l.variable].clone());
    let ends = pair.map(|l| {
        let (low, high) = (w.names.low(&l.range), w.names.high(&l.range));
        let names = ["begin", "end", "whole"].map(|what| w.names.fresh(what));
        let [begin, end, whole] = &names;
        w.lines.line(format!("const int64_t {begin} = {low}, {end} = {high};"));
        w.lines
            .line(format!("const int64_t {whole} = {begin} + gx_larger(0, {end} - {begin} + 1)/GX_SQUARE*GX_SQUARE;"));
        names
    });
    let [[source_begin, source_end, source_whole], [target_begin, target_end, target_whole]] = &ends;
    let (square, row) = (w.names.fresh("square"), w.names.fresh("row"));
    let corner = w.names.fresh("corner");
    w.lines.line("#ifdef GX_SHUFFLES");
    w.lines.open(format!("for (int64_t {corner} = {target_begin}; {corner} < {target_whole}; {corner} += GX_W)"));
    w.lines.open(format!(
        "for (int64_t {} = {source_begin}; {} < {source_whole}; {} += GX_W)",
        names[0], names[0], names[0]
    ));
    w.lines.line(format!("gx_v {square}[GX_W];"));
    let each_row = format!("for (int {row} = 0; {row} < GX_W; {row}++)");
    if let Some(op) = leaf.reduction {
        w.lines.line("GX_UNROLL");
        w.lines.line(format!("{each_row} {square}[{row}] = gx_all({});", neutral(op, w.single)));
    }
    let terms = &leaf.loops[leaf.outputs..];
    terms.iter().for_each(|l| w.open_loop(l));
    w.lines.line("GX_UNROLL");
    w.lines.open(&each_row);
    w.lines.line(format!("const int64_t {} = {corner} + {row};", names[1]));
    let lanes = Some((pair[0].variable, vec![names[0].clone()]));
    let mut value = w.values(Instances { lanes, ..Instances::default() }).wide(leaf.body, (0, 0));
    if let Some(op) = leaf.reduction {
        value = combine(op, &format!("{square}[{row}]"), &value, true, w.functions);
    }
    w.lines.line(format!("{square}[{row}] = {value};"));
    w.close(1 + terms.len());
    w.lines.line(format!("gx_turn({square});"));
    let saved = w.names.variables.clone();
    w.names.variables[pair[1].variable] = corner.clone();
    let to = w.names.address(w.nest, leaf.target, &leaf.subscripts);
    let step = w.names.step(w.nest, leaf.target, &leaf.subscripts, pair[0].variable);
    w.names.variables = saved;
    w.lines.line("GX_UNROLL");
    w.lines
        .line(format!("for (int {row} = 0; {row} < GX_W; {row}++) gx_store({to} + {row}*({step}), {square}[{row}]);"));
    w.close(2);
    w.lines.line("#endif");
    w.lines.open(format!("for (int64_t {} = {target_begin}; {} <= {target_end}; {}++)", names[1], names[1], names[1]));
    let from = format!("{} < {target_whole} ? {source_whole} : {source_begin}", names[1]);
    w.lines.open(format!("for (int64_t {} = {from}; {} <= {source_end}; {}++)", names[0], names[0], names[0]));
    w.element(leaf);
    w.close(2);
}

/// Interleaving the two halves of a list of rows, once for every doubling, turns a square.
const TURN: &str = "\
#ifdef GX_SHUFFLES
#define GX_SQUARE GX_W
/* Exchanges rows and lanes. */
GX_INLINE void gx_turn(gx_v *a)
{
    gx_v b[GX_W];
    GX_UNROLL
    for (int s = 1; s < GX_W; s *= 2) {
        GX_UNROLL
        for (int i = 0; i < GX_W/2; i++) {
            b[2*i] = GX_LOW(a[i], a[i + GX_W/2]);
            b[2*i + 1] = GX_HIGH(a[i], a[i + GX_W/2]);
        }
        GX_UNROLL
        for (int i = 0; i < GX_W; i++) a[i] = b[i];
    }
}
#else
/* No place is in a square. */
#define GX_SQUARE ((int64_t)1 << 62)
#endif
";

/// A copy across.
const TRANSPOSE: &str = "\
/* to[r*to_step + l] = from[l*from_step + r] */
static GX_NOINLINE void gx_transpose(gx_t *restrict to, int64_t to_step, const gx_t *restrict from, int64_t from_step,
    int64_t rows, int64_t lanes)
{
#ifdef GX_SHUFFLES
    const int64_t done = rows / GX_W * GX_W, whole = lanes / GX_W * GX_W;
    for (int64_t r = 0; r < done; r += GX_W) {
        for (int64_t l = 0; l < whole; l += GX_W) {
            gx_v a[GX_W];
            GX_UNROLL
            for (int i = 0; i < GX_W; i++) a[i] = gx_load(from + (l + i)*from_step + r);
            gx_turn(a);
            GX_UNROLL
            for (int i = 0; i < GX_W; i++) gx_store(to + (r + i)*to_step + l, a[i]);
        }
        for (int64_t l = whole; l < lanes; l++) {
            for (int i = 0; i < GX_W; i++) to[(r + i)*to_step + l] = from[l*from_step + r + i];
        }
    }
#else
    const int64_t done = 0;
#endif
    for (int64_t r = done; r < rows; r++) {
        for (int64_t l = 0; l < lanes; l++) to[r*to_step + l] = from[l*from_step + r];
    }
}
";
