//! What runs in the lanes of vectors, and what in rows of registers.
//!
//! The cost of a loop as the lanes is counted in loads and stores: neighbours in memory are cheap, others are not;
//! what does not depend on the lanes costs next to nothing.

use super::Looping;
use super::place::Placed;
use crate::nest::{Candidate, Kind, Leaf, LoopId};
use crate::program::{Affine, Expr, ExprId, Exprs, TensorId};
use crate::target::cost;

/// The outputs that would best be lanes and rows, whatever ranges say.
pub fn preferred(looping: &Looping, placed: &Placed) -> Vec<LoopId> {
    let exprs = &looping.exprs;
    let extents = looping.extents(&placed.loops(placed.ranges.iter().cloned()));
    let body = Body::of(exprs, placed.body);
    let terms: f64 = extents[placed.outputs..].iter().product();
    let bounds: Vec<&Affine> =
        placed.ranges[placed.outputs..].iter().flat_map(|r| r.low.iter().chain(&r.high)).collect();
    let price = |position: usize| {
        let v = placed.variables[position];
        let moves = bounds.iter().any(|b| b.uses_index(v));
        let moving = if moves { cost::MOVING_BOUNDS_LOADS } else { 0.0 };
        body.cost(&placed.subscripts, v, extents[position], terms, looping.lanes) + moving
    };
    let Some(lanes) = (0..placed.outputs).rev().min_by(|a, b| price(*a).total_cmp(&price(*b))) else {
        return Vec::new();
    };
    let shares = |p: &usize| body.accesses.iter().any(|(_, s)| s.iter().all(|s| !s.uses_index(placed.variables[*p])));
    let rows =
        (0..placed.outputs).rev().filter(|p| *p != lanes && extents[*p] >= cost::PREFERRED_ROW_VALUES).find(shares);
    std::iter::once(lanes).chain(rows).map(|p| placed.variables[p]).collect()
}

/// Decides which loops of a leaf run in lanes and which are unrolled: the least costly of its candidates.
pub fn choose(looping: &Looping, leaf: &mut Leaf) {
    let extents = looping.extents(&leaf.loops);
    let body = Body::of(&looping.exprs, leaf.body);
    let candidate = |lanes: usize| {
        let variable = leaf.loops[lanes].variable;
        let inside = lanes >= leaf.outputs && lanes + 1 < leaf.loops.len() || leaf.shares(variable);
        let fits = !inside && extents[lanes] >= cost::UNROLLED_VALUES && is_free(looping, leaf, &body, variable);
        fits.then(|| with_lanes(looping, leaf, &body, lanes, &extents))
    };
    let mut candidates: Vec<Candidate> = (0..leaf.loops.len()).filter_map(candidate).collect();
    candidates.sort_by(|a, b| a.loads.total_cmp(&b.loads));
    if let Some(best) = candidates.first() {
        leaf.loops.iter_mut().zip(&best.kinds).for_each(|(l, kind)| l.kind = *kind);
    }
    leaf.considered = candidates;
}

/// The kinds of loops that go best with one of them in lanes, and their cost.
fn with_lanes(looping: &Looping, leaf: &Leaf, body: &Body, lanes: usize, extents: &[f64]) -> Candidate {
    let variable = leaf.loops[lanes].variable;
    let terms: f64 = extents[leaf.outputs..].iter().product();
    let loads = body.cost(&leaf.subscripts, variable, extents[lanes], terms, looping.lanes);
    // Lanes over a reduction have to be summed up, and sums depend on each other unless there are many.
    let summing = cost::LANES_SUMMED_LOADS / extents[lanes] / looping.lanes;
    let mut kinds = vec![Kind::Serial; leaf.loops.len()];
    let mut unroll = |(position, count): (usize, usize)| kinds[position] = Kind::Unrolled(count);
    if let Some(tile) = columns(looping, leaf, body, lanes, extents) {
        [tile.rows, tile.columns].into_iter().for_each(unroll);
        kinds[lanes] = Kind::Lanes(1);
        return Candidate { kinds, loads: tile.cost(leaf, body, variable) / looping.lanes + summing };
    }
    let rows = rows(leaf, body, lanes, extents, looping);
    rows.into_iter().for_each(&mut unroll);
    kinds[lanes] = Kind::Lanes(vectors(leaf, lanes, rows, extents, looping));
    let reduced = if lanes < leaf.outputs { 0.0 } else { summing + cost::DEPENDENT_SUM_LOADS };
    Candidate { kinds, loads: loads + reduced }
}

/// Two outputs that are unrolled beside lanes over a reduction: positions and how often.
struct Columns {
    rows: (usize, usize),
    columns: (usize, usize),
}

/// The rows and columns beside lanes over a reduction, where all has its neighbours in the lanes, and each vector that is
/// read serves all rows or all columns.
fn columns(looping: &Looping, leaf: &Leaf, body: &Body, lanes: usize, extents: &[f64]) -> Option<Columns> {
    let apart = |s: &[Affine]| cost::access(s, leaf.loops[lanes].variable) > cost::NEIGHBOUR_LOADS;
    if lanes < leaf.outputs || body.accesses.iter().any(|(_, s)| apart(s)) {
        return None;
    }
    let uses = |s: &[Affine], position: usize| s.iter().any(|s| s.uses_index(leaf.loops[position].variable));
    let fits = |p: &usize| {
        let used = body.accesses.iter().any(|(_, s)| uses(s, *p));
        used && extents[*p] >= cost::UNROLLED_VALUES && is_free(looping, leaf, body, leaf.loops[*p].variable)
    };
    let mut outputs: Vec<usize> = (0..leaf.outputs).filter(fits).collect();
    outputs.sort_by(|a, b| extents[*a].total_cmp(&extents[*b]));
    let (&columns, &rows) = (outputs.first()?, outputs.get(1)?);
    if body.accesses.iter().any(|(_, s)| uses(s, lanes) && uses(s, rows) && uses(s, columns)) {
        return None;
    }
    let all = extents[columns] <= cost::ALL_COLUMNS;
    let width = if all { extents[columns] as usize } else { cost::REDUCED_TILE_COLUMNS };
    let height = (looping.target.column_sums() / width).min(extents[rows] as usize);
    Some(Columns { rows: (rows, height), columns: (columns, width) })
}

impl Columns {
    /// Loads and operations for one term of one element, in vectors.
    fn cost(&self, leaf: &Leaf, body: &Body, lanes: LoopId) -> f64 {
        let shared = |s: &[Affine], (position, count): (usize, usize)| {
            let used = s.iter().any(|s| s.uses_index(leaf.loops[position].variable));
            if used { 1.0 } else { count as f64 }
        };
        let moving = body.accesses.iter().filter(|(_, s)| cost::access(s, lanes) == cost::NEIGHBOUR_LOADS);
        let loads = moving.map(|(_, s)| 1.0 / shared(s, self.rows) / shared(s, self.columns));
        1.0 + loads.sum::<f64>()
    }
}

/// Whether nothing but subscripts and values depends on a variable, and on no floor of it.
fn is_free(looping: &Looping, leaf: &Leaf, body: &Body, variable: LoopId) -> bool {
    let bounds = leaf.loops.iter().flat_map(|l| l.range.low.iter().chain(&l.range.high));
    let fixed = bounds.chain(leaf.guards.iter().map(|g| &g.affine)).chain(&body.conditions);
    fixed.into_iter().all(|a| !a.uses_index(variable))
        && !body.divides(looping, variable)
        && !looping.divides(leaf.target, &leaf.subscripts, variable)
}

/// What a body reads and asks.
pub struct Body {
    accesses: Vec<(TensorId, Vec<Affine>)>,
    pub conditions: Vec<Affine>,
    numbers: Vec<Affine>,
}

impl Body {
    pub fn of(exprs: &Exprs, root: ExprId) -> Self {
        let conditions = exprs.index_conditions(root).iter().map(|c| c.affine.clone()).collect();
        let mut body = Body { accesses: Vec::new(), conditions, numbers: Vec::new() };
        for id in exprs.postorder(root) {
            match &exprs[id] {
                Expr::Access(buffer, subscripts) => body.accesses.push((*buffer, subscripts.clone())),
                Expr::Index(affine) => body.numbers.push(affine.clone()),
                Expr::Constant(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Select(..) => {}
            }
        }
        body
    }

    /// Whether something depends on a floor of a variable.
    pub fn divides(&self, looping: &Looping, variable: LoopId) -> bool {
        self.numbers.iter().any(|number| number.divides_index(variable))
            || self.accesses.iter().any(|(buffer, subscripts)| looping.divides(*buffer, subscripts, variable))
    }

    /// Loads and stores for one element with this variable in the lanes.
    fn cost(&self, subscripts: &[Affine], v: LoopId, extent: f64, terms: f64, lanes: f64) -> f64 {
        let transfers = cost::transfers(self.accesses.iter().map(|(_, s)| s.as_slice()), subscripts, terms, v);
        let filled = (extent / lanes).ceil() * lanes / extent.max(1.0);
        (transfers + 1.0) * filled / lanes
    }
}

/// Another output loop whose values share operands.
fn rows(leaf: &Leaf, body: &Body, lanes: usize, extents: &[f64], looping: &Looping) -> Option<(usize, usize)> {
    leaf.reduction?;
    let uses =
        |subscripts: &[Affine], position: usize| subscripts.iter().any(|s| s.uses_index(leaf.loops[position].variable));
    let shares = |position: &usize| body.accesses.iter().any(|(_, s)| !uses(s, *position));
    // What depends on rows and lanes can't be packed.
    let mixes = |position: usize| body.accesses.iter().any(|(_, s)| uses(s, position) && uses(s, lanes));
    let idle = |position: usize| !body.accesses.iter().any(|(_, s)| uses(s, position));
    let fits = |position: &usize| {
        let many = extents[*position] >= cost::UNROLLED_VALUES;
        *position != lanes && many && is_free(looping, leaf, body, leaf.loops[*position].variable)
    };
    let rank = |p: usize| (!mixes(p) && !idle(p) && extents[p] >= cost::PACKED_ROW_VALUES, extents[p]);
    let better = |a: &usize, b: &usize| {
        let (a, b) = (rank(*a), rank(*b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    };
    let best = (0..leaf.outputs).filter(fits).filter(shares).max_by(better);
    best.map(|position| {
        let count = match lanes < leaf.outputs {
            true => registers(extents[lanes], extents[position], looping).1,
            false => cost::REDUCED_TILE_ROWS,
        };
        (position, count.min(extents[position].max(cost::UNROLLED_VALUES) as usize))
    })
}

/// How many vectors and rows the register tile has: as many sums as registers hold, few of them idle, and few loads for
/// each.
fn registers(lanes: f64, rows: f64, looping: &Looping) -> (usize, usize) {
    let width = looping.lanes;
    let idle = |extent: f64, step: f64| (extent / step).ceil() * step / extent.max(1.0);
    let price = |vectors: usize, count: usize| {
        let (v, r) = (vectors as f64, count as f64);
        let waiting = (cost::SUMS_UNDER_WAY / (v * r)).max(1.0);
        let loads = 1.0 + cost::TILE_LOAD_PRODUCTS * (cost::UNALIGNED_VECTOR_LOADS * v + r) / (v * r);
        idle(lanes, v * width) * idle(rows, r) * waiting * loads
    };
    // Fewer lanes than a tile has could not be read in place.
    let fits = |v: &usize| *v == 1 || *v as f64 * width <= lanes;
    let tiles = (1..=cost::TILE_VECTORS).filter(fits).flat_map(|v| cost::TILE_ROWS.map(|r| (v, r)));
    let tiles = tiles.filter(|(v, r)| v * r <= looping.target.tile_sums());
    tiles.min_by(|a, b| price(a.0, a.1).total_cmp(&price(b.0, b.1))).unwrap_or(cost::PLAIN_TILE)
}

fn vectors(leaf: &Leaf, lanes: usize, rows: Option<(usize, usize)>, extents: &[f64], looping: &Looping) -> usize {
    let extent = extents[lanes];
    let full = (extent / looping.lanes).floor().max(1.0) as usize;
    match (leaf.reduction.is_some(), rows) {
        (false, _) => 1,
        (true, Some((position, _))) if lanes < leaf.outputs => registers(extent, extents[position], looping).0,
        (true, Some(_)) => 1,
        (true, None) => full.min(cost::SUM_VECTORS),
    }
}
