//! What a contraction packs before it is used: parts of its body that depend on the rows of the register tile, on its lanes,
//! or on neither.

use super::Looping;
use super::shape::Body;
use crate::nest::{Leaf, Loop, LoopId, Panels, Scope};
use crate::program::{Affine, Expr, ExprId, Exprs, TensorId};
use crate::target::{PanelSize, cost};
use gradix_int::Int;

/// Packs the operands of a contraction, where rows share what depends on the lanes and the other way round.
pub fn pack(looping: &mut Looping, leaf: &mut Leaf, kernel: usize) {
    let packed = Contraction::of(looping, leaf).and_then(|contraction| contraction.panels());
    let Some(panels) = packed else { return };
    let scratch = scratch(looping, panels.elements(), kernel);
    leaf.panels = Some(Panels { scratch, ..panels });
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

/// A leaf with lanes over an output, rows, and a reduction over a box.
struct Contraction<'a> {
    looping: &'a Looping<'a>,
    leaf: &'a Leaf,
    /// The positions of both.
    lanes: usize,
    rows: usize,
    /// The variables of both.
    lane: LoopId,
    row: LoopId,
    terms: &'a [Loop],
    extents: Vec<f64>,
}

impl<'a> Contraction<'a> {
    fn of(looping: &'a Looping, leaf: &'a Leaf) -> Option<Self> {
        let (lanes, (rows, count)) = (leaf.lanes()?, leaf.rows()?);
        leaf.reduction?;
        let terms = &leaf.loops[leaf.outputs..];
        let bounds = terms.iter().flat_map(|l| l.range.low.iter().chain(&l.range.high));
        let is_box = !bounds.into_iter().any(|bound| terms.iter().any(|term| bound.uses_index(term.variable)));
        let many = count as f64 >= cost::PACKED_ROW_VALUES;
        let (lane, row) = (leaf.loops[lanes].variable, leaf.loops[rows].variable);
        let extents = looping.extents(&leaf.loops);
        let fits = lanes < leaf.outputs && many && is_box && leaf.guards.is_empty();
        fits.then_some(Contraction { looping, leaf, lanes, rows, lane, row, terms, extents })
    }

    /// What is packed, if that pays; where to is left open.
    fn panels(&self) -> Option<Panels> {
        let exprs = &self.looping.exprs;
        let mut parts = Parts::default();
        let known = operands(exprs, self.leaf.body, (self.row, self.lane), &mut parts);
        let Parts { by_row, by_lane, by_term } = parts;
        let few = by_row.len() + by_lane.len() <= cost::PACKED_OPERANDS;
        if !known || !few || by_row.is_empty() || by_lane.is_empty() {
            return None;
        }
        let is = |ids: &[ExprId], what: fn(&Self, TensorId, &[Affine]) -> bool| {
            ids.iter().all(|id| matches!(&exprs[*id], Expr::Access(buffer, s) if what(self, *buffer, s)))
        };
        let lanes_in_place = is(&by_lane, Self::is_along);
        let blocks = self.others().last().filter(|_| lanes_in_place);
        let kept = blocks.filter(|p| self.is_of_lanes(&by_lane, &[&by_row, &by_term], *p));
        let lane_values = self.extents[self.lanes] * kept.map_or(1.0, |p| self.extents[p]);
        let seldom = lane_values < cost::PACKED_VECTORS * self.looping.lanes;
        let rows_in_place = is(&by_row, Self::is_near) && (seldom || is(&by_row, Self::is_close_beside));
        let kept = kept.filter(|_| !rows_in_place);
        let tile_rows = self.leaf.rows().map_or(1, |(_, count)| count);
        let size = self.looping.target.panels();
        Some(Panels {
            scratch: self.leaf.target,
            rows_in_place,
            lanes_in_place,
            rows_in_lanes: by_row.iter().all(|id| self.runs_along_terms(*id)),
            rows_beside: !rows_in_place && is(&by_row, Self::is_beside),
            kept,
            lanes_stay: !lanes_in_place && self.others().any(|p| !self.moves(&by_lane, p)),
            ahead: self.ahead(&by_lane, kept).filter(|_| lanes_in_place),
            size: PanelSize { rows: if kept.is_some() { size.rows } else { tile_rows }, ..size },
            by_row,
            by_lane,
            by_term,
        })
    }

    /// The positions of outputs other than rows and lanes.
    fn others(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..self.leaf.outputs).filter(|position| *position != self.lanes && *position != self.rows)
    }

    /// Whether some parts depend on a loop.
    fn moves(&self, parts: &[ExprId], position: usize) -> bool {
        let variable = self.leaf.loops[position].variable;
        let mut used = false;
        let mut see = |affine: &Affine| used |= affine.uses_index(variable);
        parts.iter().for_each(|part| self.looping.exprs.visit_affines(*part, &mut see));
        used
    }

    /// Whether an output moves all that depends on the lanes, and nothing else.
    fn is_of_lanes(&self, by_lane: &[ExprId], others: &[&[ExprId]], position: usize) -> bool {
        let variable = self.leaf.loops[position].variable;
        let fixed = |(place, l): (usize, &Loop)| {
            place == self.lanes || !l.range.low.iter().chain(&l.range.high).any(|bound| bound.uses_index(variable))
        };
        by_lane.iter().all(|part| self.moves(&[*part], position))
            && !others.iter().any(|parts| self.moves(parts, position))
            && self.leaf.loops.iter().enumerate().all(fixed)
    }

    /// The output whose next value's lanes are brought closer: they are one operand, and other rows read the same.
    fn ahead(&self, by_lane: &[ExprId], kept: Option<usize>) -> Option<usize> {
        let next = kept.or(self.others().last())?;
        let fits = by_lane.len() == 1 && self.terms.len() == 1;
        (fits && self.moves(by_lane, next) && !self.moves(by_lane, self.rows)).then_some(next)
    }

    /// Whether a part can be computed in vectors along the innermost loop of the reduction.
    fn runs_along_terms(&self, part: ExprId) -> bool {
        let inner = self.terms.last().expect("a reduction has loops").variable;
        let body = Body::of(&self.looping.exprs, part);
        body.conditions.iter().all(|a| !a.uses_index(inner)) && !body.divides(self.looping, inner)
    }

    fn is_straight(&self, buffer: TensorId, subscripts: &[Affine]) -> bool {
        !self.terms.iter().any(|term| self.looping.divides(buffer, subscripts, term.variable))
    }

    fn is_narrow(&self, buffer: TensorId) -> bool {
        let width = self.looping.buffers[buffer.0 as usize].extents.last();
        width.map_or(1.0, |e| e.estimate(&[], self.looping.estimate)) <= cost::NARROW_ROW_ELEMENTS
    }

    /// Neighbours in the lanes, and terms that are not far apart (or used too seldom to be brought together).
    fn is_along(&self, buffer: TensorId, subscripts: &[Affine]) -> bool {
        let narrow = self.is_narrow(buffer) || self.extents[self.rows] < cost::PACKED_ROWS;
        let neighbours = cost::access(subscripts, self.lane) == cost::NEIGHBOUR_LOADS;
        neighbours && self.is_straight(buffer, subscripts) && narrow
    }

    /// Near each other from row to row or from term to term.
    fn is_near(&self, buffer: TensorId, subscripts: &[Affine]) -> bool {
        let mut variables = self.terms.iter().map(|term| term.variable).chain([self.row]);
        self.is_straight(buffer, subscripts) && variables.any(|v| is_close(subscripts, v))
    }

    /// Neighbours from row to row.
    fn is_beside(&self, _: TensorId, subscripts: &[Affine]) -> bool {
        cost::access(subscripts, self.row) == cost::NEIGHBOUR_LOADS
    }

    /// The same in a buffer so narrow that terms are not far apart either.
    fn is_close_beside(&self, buffer: TensorId, subscripts: &[Affine]) -> bool {
        self.is_beside(buffer, subscripts) && self.is_narrow(buffer)
    }
}

/// Parts of a body by what they depend on: the rows, the lanes, or neither.
#[derive(Default)]
pub struct Parts {
    pub by_row: Vec<ExprId>,
    pub by_lane: Vec<ExprId>,
    pub by_term: Vec<ExprId>,
}

/// Finds the largest parts that depend on rows only, on lanes only or on neither; `false` if an element depends on
/// both, or if indices decide something.
pub fn operands(exprs: &Exprs, id: ExprId, (row, lane): (LoopId, LoopId), parts: &mut Parts) -> bool {
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
                Expr::Unary(_, a) => operands(exprs, *a, (row, lane), parts),
                Expr::Binary(_, a, b) => {
                    operands(exprs, *a, (row, lane), parts) && operands(exprs, *b, (row, lane), parts)
                }
                // Values are chosen with masks.
                Expr::Select(c, ..) => {
                    exprs.is_by_values(*c)
                        && exprs.operands(id).iter().all(|operand| operands(exprs, *operand, (row, lane), parts))
                }
            };
        }
        _ if !has_access => return true,
        (true, false) => &mut parts.by_row,
        (false, true) => &mut parts.by_lane,
        (false, false) => &mut parts.by_term,
    };
    if !list.contains(&id) {
        list.push(id);
    }
    true
}

/// Whether elements are close together when a variable advances.
fn is_close(subscripts: &[Affine], v: LoopId) -> bool {
    let Some((last, others)) = subscripts.split_last() else { return true };
    let step = last.step_of(v);
    let most = Int::from(cost::CLOSE_ELEMENTS);
    step != Int::ZERO && step <= most && step >= -most && !others.iter().any(|s| s.uses_index(v))
}
