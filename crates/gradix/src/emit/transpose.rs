//! A copy into another order as C: squares of a vector's width are turned in registers.

use super::leaf::Writer;
use crate::nest::{Leaf, Loop};
use crate::program::{Affine, Atom, Expr, TensorId};
use crate::schedule::is_along;

/// What a copy reads, and the two loops along which target and source have their neighbours.
pub struct Copy<'a> {
    source: (TensorId, Vec<Affine>),
    along_target: &'a Loop,
    along_source: &'a Loop,
}

/// Finds out whether a leaf is a copy whose source lies across its target.
pub fn recognise<'a>(writer: &Writer, leaf: &'a Leaf) -> Option<Copy<'a>> {
    let Expr::Access(source, subscripts) = &writer.nest.frame.exprs[leaf.body] else { return None };
    if leaf.reduction.is_some() || !leaf.guards.is_empty() {
        return None;
    }
    let along_target = leaf.loops.iter().find(|l| is_along(&leaf.subscripts, l.variable))?;
    let along_source = leaf.loops.iter().find(|l| is_along(subscripts, l.variable))?;
    let pair = [along_target.variable, along_source.variable];
    let bounds = leaf.loops.iter().flat_map(|l| l.range.low.iter().chain(&l.range.high));
    let places = leaf.subscripts.iter().chain(subscripts);
    let straight = bounds.into_iter().all(|b| pair.iter().all(|&v| !b.uses_index(v)))
        && places.into_iter().all(|s| s.terms().iter().all(|(atom, _)| !matches!(atom, Atom::Floor(..))));
    (pair[0] != pair[1] && straight).then(|| Copy { source: (*source, subscripts.clone()), along_target, along_source })
}

/// Writes a copy.
pub fn write(w: &mut Writer, leaf: &Leaf, copy: &Copy) {
    let pair = [copy.along_source, copy.along_target];
    let is_apart = |l: &&Loop| pair.iter().all(|p| p.variable != l.variable);
    let others: Vec<&Loop> = leaf.loops.iter().filter(is_apart).collect();
    others.iter().for_each(|l| w.open_loop(l));
    w.lines.open("");
    let mut counts = Vec::new();
    for l in pair {
        let (low, high) = (w.names.low(&l.range), w.names.high(&l.range));
        let name = w.names.variables[l.variable].clone();
        w.lines.line(format!("const int64_t {name} = {low};"));
        counts.push(format!("{high} - {name} + 1"));
    }
    let (source, subscripts) = &copy.source;
    let to = w.names.address(w.nest, leaf.target, &leaf.subscripts);
    let from = w.names.address(w.nest, *source, subscripts);
    let to_step = w.names.step(w.nest, leaf.target, &leaf.subscripts, pair[0].variable);
    let from_step = w.names.step(w.nest, *source, subscripts, pair[1].variable);
    w.shared.add("gx_transpose".into(), FUNCTION.into());
    w.lines.line(format!("gx_transpose({to}, {to_step}, {from}, {from_step}, {}, {});", counts[0], counts[1]));
    w.close(others.len() + 1);
}

/// Interleaving the two halves of a list of rows, once for every doubling, turns a square.
const FUNCTION: &str = "\
/* to[r*to_step + l] = from[l*from_step + r] */
static GX_NOINLINE void gx_transpose(gx_t *restrict to, int64_t to_step, const gx_t *restrict from, int64_t from_step,
    int64_t rows, int64_t lanes)
{
#ifdef GX_SHUFFLES
    const int64_t done = rows / GX_W * GX_W, whole = lanes / GX_W * GX_W;
    for (int64_t r = 0; r < done; r += GX_W) {
        for (int64_t l = 0; l < whole; l += GX_W) {
            gx_v a[GX_W], b[GX_W];
            GX_UNROLL
            for (int i = 0; i < GX_W; i++) a[i] = gx_load(from + (l + i)*from_step + r);
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
