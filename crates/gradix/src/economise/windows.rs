//! Reductions over windows that move with an output.
//!
//! `y[i] = sum[k in i..i + 64] t[k]` takes 64 operations for each element; windows of neighbours have most terms in common.
//! With blocks `S[p] = sum[q in 0..8] t[p + q]` it is `sum[b in 0..8] S[i + 8*b]`, which together take 16:
//!
//! ```text
//! y[i] = sum[k in i + a..=i + b] t[k]        S[p] = sum[q in 0..n] t[p + q]
//!                                            y[i] = sum[b in 0..W // n] S[i + a + n*b]  +  sum[k in i + a + n*(W // n)..=i + b] t[k]
//! ```
//!
//! with `W = b - a + 1`. Other bounds of `k`, where the window reaches beyond a tensor, become bounds of `q`. The
//! same holds for products, `max` and `min`. Nothing is subtracted, so that nothing cancels.

use super::part::Part;
use super::rewrite::{Ids, Rewrite};
use crate::lift;
use crate::program::build;
use crate::program::{Affine, Atom, Definition, ExprId, Index, Program, Range, ReduceOp};
use crate::target::cost;
use gradix_int::Int;

/// A window: the terms from `step*i + first` to `step*i + last`, of those that the other bounds let pass.
struct Window {
    /// The output that it moves with.
    output: usize,
    step: Int,
    first: Affine,
    last: Affine,
    /// Bounds of the terms that don't move.
    low: Vec<Affine>,
    high: Vec<Affine>,
    /// The value of a term, which depends on its index and on outputs other than this one.
    body: ExprId,
}

/// The ways to reduce over blocks first.
pub fn windows(program: &mut Program, site: &Definition, ids: &mut Ids, sizes: &[f64]) -> Vec<Rewrite> {
    let plain = |index: &Index| index.range.low.len() == 1 && index.range.high.len() == 1;
    let single = site.indices.len() == site.rank + 1 && site.conditions.is_empty() && site.assumptions.is_empty();
    if site.reduction.is_none() || !single || !site.is_box() || !site.indices[..site.rank].iter().all(plain) {
        return Vec::new();
    }
    let turns = (0..site.rank).flat_map(|output| [0, 1, -1].map(|turn| (output, turn)));
    let window = turns.into_iter().find_map(|(output, turn)| window(program, site, output, turn));
    let Some(window) = window else { return Vec::new() };
    let width = (window.last.clone() - window.first.clone()).shift(1);
    let terms = width.estimate(&[], sizes);
    if terms < cost::WINDOW_TERMS {
        return Vec::new();
    }
    let block = Int::from(1i64 << (terms.log2() / 2.0).round() as i64);
    let (parts, body) = blocks(program, site, &window, &width, &block, ids);
    let main = Definition { indices: site.indices[..site.rank].to_vec(), reduction: None, body, ..site.clone() };
    vec![Rewrite { parts, main, risks: Vec::new() }]
}

/// The outputs in the order in which they are read; one that is not moves the window, and stands where the terms do.
fn order(program: &Program, site: &Definition) -> Vec<usize> {
    let accesses = program.exprs.accesses(site.body);
    let widest = accesses.max_by_key(|(_, subscripts)| subscripts.len()).map_or(&[][..], |(_, subscripts)| subscripts);
    let place = |index: usize| widest.iter().position(|s| s.uses_index(index));
    let mut order: Vec<usize> = (0..site.rank).collect();
    order.sort_by_key(|&output| place(output).or(place(site.rank)));
    order
}

/// The window in terms of `k + turn*i`, if the body depends on `i` in no other way.
fn window(program: &mut Program, site: &Definition, output: usize, turn: i64) -> Option<Window> {
    let term = site.rank;
    let (turn, own) = (Int::from(turn), Affine::index(output));
    let mut map: Vec<Affine> = (0..=term).map(Affine::index).collect();
    map[term] = Affine::index(term).add_scaled(&-turn.clone(), &own);
    let body = lift::remap(&mut program.exprs, site.body, &map);
    if program.exprs.used_indices(body, term + 1)[output] {
        return None;
    }
    let absolute = |bound: &Affine| bound.add_scaled(&turn, &own);
    let range = site.indices[term].range.map(absolute);
    let (first, step, low) = moving(&range.low, output)?;
    let (last, other, high) = moving(&range.high, output)?;
    (step == other).then_some(Window { output, step, first, last, low, high, body })
}

/// Of some bounds, the one that moves with an output, by how much, and the others, which don't move.
fn moving(bounds: &[Affine], output: usize) -> Option<(Affine, Int, Vec<Affine>)> {
    let (moving, fixed): (Vec<Affine>, Vec<Affine>) = bounds.iter().cloned().partition(|bound| bound.uses_indices());
    let [bound] = moving.as_slice() else { return None };
    let step = bound.coefficient(&Atom::Index(output as u32));
    let rest = bound.add_scaled(&-step.clone(), &Affine::index(output));
    let moves = step == Int::ONE || step == -Int::ONE;
    (moves && !rest.uses_indices()).then_some((rest, step, fixed))
}

fn blocks(
    program: &mut Program,
    site: &Definition,
    window: &Window,
    width: &Affine,
    block: &Int,
    ids: &mut Ids,
) -> (Vec<Part>, ExprId) {
    let Window { output, step, first, .. } = window;
    let (rank, op) = (site.rank, site.reduction.and_then(ReduceOp::combine).expect("a window is reduced"));
    let count = width.floor_div(block);
    let Range { low, high } = &site.indices[*output].range;
    // The first block starts where the earliest window does; places are counted from there.
    let nearest = if *step == Int::ONE { low[0].clone() } else { -high[0].clone() };
    let start = nearest + first.clone();
    let extent = (high[0].clone() - low[0].clone()).shift(1) + width.shift(-block.clone());
    let sums = block_sums(program, site, window, &start, extent, block, ids);

    let outputs: Vec<Affine> = (0..rank).map(Affine::index).collect();
    let own = Affine::index(*output).scale(step) + first.clone();
    let place = own.clone().add_scaled(block, &Affine::index(rank)) - start;
    let places: Vec<Affine> =
        sums.subscripts.iter().map(|s| if s.as_index() == Some(*output) { place.clone() } else { s.clone() }).collect();
    let body = program.exprs.access(sums.definition.tensor, places);
    let whole = reduced(site, Range { low: vec![Affine::constant(0)], high: vec![count.shift(-1)] }, body, ids);
    let read = |program: &mut Program, part: &Part| program.exprs.access(part.definition.tensor, outputs.clone());
    if count.scale(block) == *width {
        let body = read(program, &whole);
        return (vec![sums, whole], body);
    }
    let from = own.clone() + count.scale(block);
    let to = Affine::index(*output).scale(step) + window.last.clone();
    let low = std::iter::once(from).chain(window.low.iter().cloned()).collect();
    let high = std::iter::once(to).chain(window.high.iter().cloned()).collect();
    let rest = reduced(site, Range { low, high }, window.body, ids);

    let [a, b] = [&whole, &rest].map(|part| read(program, part));
    let body = build::binary(&mut program.exprs, op, a, b);
    (vec![sums, whole, rest], body)
}

/// The reductions of blocks of terms, by the place of the first one, in the outputs that terms depend on.
fn block_sums(
    program: &mut Program,
    site: &Definition,
    window: &Window,
    start: &Affine,
    extent: Affine,
    block: &Int,
    ids: &mut Ids,
) -> Part {
    let rank = site.rank;
    let used = program.exprs.used_indices(window.body, rank + 1);
    let kept: Vec<usize> = order(program, site).into_iter().filter(|&i| used[i] || i == window.output).collect();
    let mut map = vec![Affine::default(); rank + 1];
    kept.iter().enumerate().for_each(|(new, &old)| map[old] = Affine::index(new));
    let place = map[window.output].clone() + start.clone();
    let within = kept.len();
    map[rank] = place.clone() + Affine::index(within);
    let index = |&old: &usize| match old == window.output {
        true => Index { name: site.indices[rank].name.clone(), range: Range::extent(extent.clone()) },
        false => site.indices[old].clone(),
    };
    let low = std::iter::once(Affine::constant(0)).chain(window.low.iter().map(|b| b.clone() - place.clone()));
    let high = std::iter::once(Affine::constant(block - Int::ONE))
        .chain(window.high.iter().map(|b| b.clone() - place.clone()));
    let inner =
        Index { name: site.indices[rank].name.clone(), range: Range { low: low.collect(), high: high.collect() } };
    let definition = Definition {
        tensor: ids.next(),
        indices: kept.iter().map(index).chain([inner]).collect(),
        rank: within,
        body: lift::remap(&mut program.exprs, window.body, &map),
        ..site.clone()
    };
    Part { definition, subscripts: kept.iter().map(|&old| Affine::index(old)).collect() }
}

/// The same outputs, reduced over another range.
fn reduced(site: &Definition, range: Range, body: ExprId, ids: &mut Ids) -> Part {
    let term = Index { name: site.indices[site.rank].name.clone(), range };
    let indices = site.indices[..site.rank].iter().cloned().chain([term]).collect();
    let definition = Definition { tensor: ids.next(), indices, body, ..site.clone() };
    Part { definition, subscripts: (0..site.rank).map(Affine::index).collect() }
}
