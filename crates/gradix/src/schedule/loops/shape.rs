//! What runs in the lanes of vectors, what in rows of registers, and what is packed.
//!
//! The cost of a loop as the lanes is counted in loads and stores: neighbours in memory are cheap, others are not;
//! what does not depend on the lanes costs next to nothing.

use super::Looping;
use super::place::Placed;
use crate::nest::{Leaf, Loop, Panels, Scope, Shape};
use crate::program::{Affine, Atom, Expr, ExprId, Exprs, TensorId};
use crate::target::cost;
use gradix_int::Int;

/// The outputs that would best be lanes and rows, whatever ranges say.
pub fn preferred(looping: &Looping, placed: &Placed) -> Vec<usize> {
    let exprs = &looping.exprs;
    let extents = looping.extents(&placed.variables, &placed.ranges);
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

/// How a leaf is vectorised.
pub fn choose(looping: &Looping, leaf: &Leaf) -> Shape {
    let exprs = &looping.exprs;
    let variables: Vec<usize> = leaf.loops.iter().map(|l| l.variable).collect();
    let ranges: Vec<_> = leaf.loops.iter().map(|l| l.range.clone()).collect();
    let extents = looping.extents(&variables, &ranges);
    let body = Body::of(exprs, leaf.body);
    let mut best: Option<(f64, usize)> = None;
    for (position, l) in leaf.loops.iter().enumerate() {
        let innermost = position + 1 == leaf.loops.len();
        let repeats = leaf.reduction.is_none() && !leaf.subscripts.iter().any(|s| s.uses_index(l.variable));
        let inside = position >= leaf.outputs && !innermost || repeats;
        if inside || extents[position] < cost::UNROLLED_VALUES || !is_free(looping, leaf, &body, l.variable) {
            continue;
        }
        let terms: f64 = extents[leaf.outputs..].iter().product();
        let mut price = body.cost(&leaf.subscripts, l.variable, extents[position], terms, looping.lanes);
        if position >= leaf.outputs {
            // The lanes have to be summed up, and sums depend on each other unless there are many.
            let summing = cost::LANES_SUMMED_LOADS / extents[position] / looping.lanes;
            price = match columns(looping, leaf, &body, position, &extents) {
                Some(tile) => tile.cost(leaf, &body, l.variable) / looping.lanes + summing,
                None => price + summing + cost::DEPENDENT_SUM_LOADS,
            };
        }
        if best.is_none_or(|(least, _)| price < least) {
            best = Some((price, position));
        }
    }
    let Some((_, lanes)) = best else { return Shape::default() };
    if let Some(Columns { rows, columns }) = columns(looping, leaf, &body, lanes, &extents) {
        return Shape { lanes: Some(lanes), vectors: 1, rows: Some(rows), columns: Some(columns), panels: None };
    }
    let rows = rows(leaf, &body, lanes, &extents, looping);
    let vectors = vectors(leaf, lanes, rows, &extents, looping);
    Shape { lanes: Some(lanes), vectors, rows, columns: None, panels: None }
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
    fn cost(&self, leaf: &Leaf, body: &Body, lanes: usize) -> f64 {
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
fn is_free(looping: &Looping, leaf: &Leaf, body: &Body, variable: usize) -> bool {
    let bounds = leaf.loops.iter().flat_map(|l| l.range.low.iter().chain(&l.range.high));
    let fixed = bounds.chain(leaf.guards.iter().map(|g| &g.affine)).chain(&body.conditions);
    fixed.into_iter().all(|a| !a.uses_index(variable))
        && !body.divides(looping, variable)
        && !looping.divides(leaf.target, &leaf.subscripts, variable)
}

/// What a body reads and asks.
struct Body {
    accesses: Vec<(TensorId, Vec<Affine>)>,
    conditions: Vec<Affine>,
    numbers: Vec<Affine>,
}

impl Body {
    fn of(exprs: &Exprs, root: ExprId) -> Self {
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
    fn divides(&self, looping: &Looping, variable: usize) -> bool {
        self.numbers.iter().any(|number| number.divides_index(variable))
            || self.accesses.iter().any(|(buffer, subscripts)| looping.divides(*buffer, subscripts, variable))
    }

    /// Loads and stores for one element with this variable in the lanes.
    fn cost(&self, subscripts: &[Affine], v: usize, extent: f64, terms: f64, lanes: f64) -> f64 {
        let transfers = cost::transfers(self.accesses.iter().map(|(_, s)| s.as_slice()), subscripts, terms, v);
        let filled = (extent / lanes).ceil() * lanes / extent.max(1.0);
        (transfers + 1.0) * filled / lanes
    }
}

/// Whether elements are close together when a variable advances.
fn is_close(subscripts: &[Affine], v: usize) -> bool {
    let atom = Atom::Index(v as u32);
    let Some((last, others)) = subscripts.split_last() else { return true };
    let step = last.coefficient(&atom);
    let most = Int::from(cost::CLOSE_ELEMENTS);
    step != Int::ZERO && step <= most && step >= -most && !others.iter().any(|s| s.uses_index(v))
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

/// Packs the operands of a contraction, where rows share what depends on the lanes and the other way round.
pub fn pack(looping: &mut Looping, leaf: &mut Leaf, kernel: usize) {
    let Some(panels) = packed(looping, leaf) else { return };
    let (_, count) = leaf.shape.rows.expect("packed with rows");
    let scratch = scratch(looping, panels.elements(count), kernel);
    leaf.shape.panels = Some(Panels { scratch, ..panels });
}

/// The buffer of a kernel for packed operands, with this many elements at least.
fn scratch(looping: &mut Looping, elements: usize, kernel: usize) -> TensorId {
    let extent = Affine::constant(elements as i64);
    if let Some((_, known)) = looping.panels.filter(|(of, _)| *of == kernel) {
        let present = &mut looping.buffers[known.0 as usize].extents[0];
        if present.offset() < extent.offset() {
            *present = extent;
        }
        return known;
    }
    let new = looping.buffer("panels".into(), vec![extent], Scope::Local(kernel));
    looping.panels = Some((kernel, new));
    new
}

fn packed(looping: &Looping, leaf: &Leaf) -> Option<Panels> {
    let (lanes, (rows, count)) = (leaf.shape.lanes?, leaf.shape.rows?);
    leaf.reduction?;
    let terms = &leaf.loops[leaf.outputs..];
    let bounded = terms.iter().all(|l| {
        let inner = |a: &Affine| terms.iter().any(|t| a.uses_index(t.variable));
        !l.range.low.iter().chain(&l.range.high).any(inner)
    });
    if lanes >= leaf.outputs || (count as f64) < cost::PACKED_ROW_VALUES || !bounded || !leaf.guards.is_empty() {
        return None;
    }
    let exprs = &looping.exprs;
    let (row, lane) = (leaf.loops[rows].variable, leaf.loops[lanes].variable);
    let mut panels = Panels {
        scratch: leaf.target,
        by_row: vec![],
        by_lane: vec![],
        by_term: vec![],
        rows_in_place: false,
        lanes_in_place: false,
        rows_in_lanes: false,
        rows_beside: false,
        kept: None,
    };
    if !operands(exprs, leaf.body, (row, lane), &mut panels) {
        return None;
    }
    let variables: Vec<usize> = leaf.loops.iter().map(|l| l.variable).collect();
    let ranges: Vec<_> = leaf.loops.iter().map(|l| l.range.clone()).collect();
    let extents = looping.extents(&variables, &ranges);
    let straight = |buffer: TensorId, subscripts: &[Affine]| {
        !terms.iter().any(|term| looping.divides(buffer, subscripts, term.variable))
    };
    let width =
        |buffer: TensorId| looping.buffers[buffer.0 as usize].extents.last().map_or(1.0, |e| e.estimate(&[], looping.estimate));
    // Neighbours in the lanes, and terms that are not far apart (or used too seldom to be brought together).
    let along = |id: &ExprId| match &exprs[*id] {
        Expr::Access(buffer, subscripts) => {
            let narrow = width(*buffer) <= cost::NARROW_ROW_ELEMENTS || extents[rows] < cost::PACKED_ROWS;
            cost::access(subscripts, lane) == cost::NEIGHBOUR_LOADS && straight(*buffer, subscripts) && narrow
        }
        _ => false,
    };
    // Near each other from row to row or from term to term.
    let near = |id: &ExprId| match &exprs[*id] {
        Expr::Access(buffer, subscripts) => {
            let variables = terms.iter().map(|term| term.variable).chain([row]);
            straight(*buffer, subscripts) && variables.into_iter().any(|v| is_close(subscripts, v))
        }
        _ => false,
    };
    let beside =
        |id: &ExprId| matches!(&exprs[*id], Expr::Access(_, s) if cost::access(s, row) == cost::NEIGHBOUR_LOADS);
    // In a buffer so narrow that terms are not far apart either.
    let is_narrow = |buffer: TensorId| width(buffer) <= cost::NARROW_ROW_ELEMENTS;
    let close = |id: &ExprId| beside(id) && matches!(exprs[*id], Expr::Access(buffer, _) if is_narrow(buffer));
    let inner = terms.last().expect("a reduction has loops").variable;
    panels.lanes_in_place = panels.by_lane.iter().all(along);
    let blocks = (0..leaf.outputs).rfind(|p| *p != lanes && *p != rows);
    let blocks = blocks.filter(|p| panels.lanes_in_place && is_of_lanes(exprs, leaf, &panels, *p));
    let seldom = extents[lanes] * blocks.map_or(1.0, |p| extents[p]) < cost::PACKED_VECTORS * looping.lanes;
    panels.rows_in_place = panels.by_row.iter().all(near) && (seldom || panels.by_row.iter().all(close));
    panels.rows_beside = !panels.rows_in_place && panels.by_row.iter().all(beside);
    panels.kept = blocks.filter(|_| !panels.rows_in_place);
    panels.rows_in_lanes = panels.by_row.iter().all(|id| {
        let body = Body::of(exprs, *id);
        body.conditions.iter().all(|a| !a.uses_index(inner)) && !body.divides(looping, inner)
    });
    let few = panels.by_row.len() + panels.by_lane.len() <= cost::PACKED_OPERANDS;
    (few && !panels.by_row.is_empty() && !panels.by_lane.is_empty()).then_some(panels)
}

/// Whether an output moves what depends on the lanes, and nothing else of a contraction.
fn is_of_lanes(exprs: &Exprs, leaf: &Leaf, panels: &Panels, position: usize) -> bool {
    let (variable, lanes) = (leaf.loops[position].variable, leaf.shape.lanes);
    let uses = |id: &ExprId| {
        let mut used = false;
        exprs.visit_affines(*id, &mut |affine| used |= affine.uses_index(variable));
        used
    };
    let fixed = |(place, l): (usize, &Loop)| {
        Some(place) == lanes || !l.range.low.iter().chain(&l.range.high).any(|bound| bound.uses_index(variable))
    };
    panels.by_lane.iter().all(uses)
        && !panels.by_row.iter().chain(&panels.by_term).any(uses)
        && leaf.loops.iter().enumerate().all(fixed)
}

/// Finds the largest parts that depend on rows only, on lanes only or on neither; `false` if an element depends on
/// both, or if indices decide something.
fn operands(exprs: &Exprs, id: ExprId, (row, lane): (usize, usize), panels: &mut Panels) -> bool {
    let used = {
        let mut used = (false, false);
        exprs.visit_affines(id, &mut |a| {
            used.0 |= a.uses_index(row);
            used.1 |= a.uses_index(lane);
        });
        used
    };
    let has_access = exprs.postorder(id).iter().any(|n| matches!(exprs[*n], Expr::Access(..) | Expr::Index(_)));
    let list = match used {
        (true, true) => {
            return match &exprs[id] {
                Expr::Constant(_) => true,
                Expr::Index(_) | Expr::Access(..) => false,
                Expr::Unary(_, a) => operands(exprs, *a, (row, lane), panels),
                Expr::Binary(_, a, b) => {
                    operands(exprs, *a, (row, lane), panels) && operands(exprs, *b, (row, lane), panels)
                }
                Expr::Select(..) => false,
            };
        }
        _ if !has_access => return true,
        (true, false) => &mut panels.by_row,
        (false, true) => &mut panels.by_lane,
        (false, false) => &mut panels.by_term,
    };
    if !list.contains(&id) {
        list.push(id);
    }
    true
}
