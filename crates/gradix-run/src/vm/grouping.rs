//! Which loops of a leaf are taken in groups: as the lanes of instructions, and as rows of these.

use super::execute::PARTS;
use super::leaf::{Access, Loop, Node, Plan};
use super::linear::Linear;
use super::real::Real;

/// The loops that the schedule would take as lanes and as rows.
#[derive(Clone, Copy)]
pub struct Hints {
    pub lanes: Option<usize>,
    pub rows: Option<usize>,
}

impl Hints {
    /// Two loops become one at the place of the first.
    pub fn join(&mut self, outer: usize, inner: usize) {
        let joined = |position: usize| {
            let position = if position == inner { outer } else { position };
            position - usize::from(position > inner)
        };
        (self.lanes, self.rows) = (self.lanes.map(joined), self.rows.map(joined));
        self.rows = self.rows.filter(|rows| self.lanes != Some(*rows));
    }
}

/// Which variables run over vectors.
///
/// No range depends on them, and apart from lanes that are split no guard or index condition does (but for uneven rows),
/// so all points of a group do the same.
#[derive(Clone, Debug, Default)]
pub struct Grouping {
    /// The variable that runs along instructions, and its loop.
    pub lane: Option<(usize, usize)>,
    /// An output that instructions run across, and its loop. No index expression has it in a floor.
    pub row: Option<(usize, usize)>,
    /// A range of the reduction, a guard or an index condition depends on the row: groups end where they change.
    pub uneven: bool,
    /// Rows have this few lanes, and blocks run as one row; what does not lie so is put into blocks.
    pub packed: Option<i64>,
    /// The lane is a reduction.
    pub folded: bool,
    /// A guard or index condition depends on the lane: blocks are split where an outcome changes.
    pub split: bool,
    /// The reduction's other loops, from the outermost in.
    pub levels: Vec<usize>,
}

/// How the points of a leaf are taken in groups.
pub fn group<T: Real>(plan: &Plan<T>, hints: Hints) -> Grouping {
    let target = &plan.accesses[0];
    let shifted = |access: &Access| access.buffer == target.buffer && access.place != target.place;
    let lane = match plan.accesses.iter().any(shifted) {
        true => None,
        false => hints.lanes.filter(|p| plan.is_lane(*p) && !plan.is_short_fold(*p)).or_else(|| plan.best_lane()),
    };
    let mut levels: Vec<usize> = plan.loops[plan.outputs..].iter().map(|l| l.variable).collect();
    let Some(lane) = lane else { return Grouping { levels, ..Grouping::default() } };
    levels.retain(|variable| *variable != plan.loops[lane].variable);
    let row = plan.best_row(lane, hints.rows);
    let with_variable = |p: usize| (plan.loops[p].variable, p);
    Grouping {
        lane: Some(with_variable(lane)),
        row: row.map(with_variable),
        uneven: row.is_some_and(|row| !plan.is_free(row)),
        packed: row.and_then(|row| packed(plan, lane, row)),
        folded: lane >= plan.outputs,
        split: !plan.is_free(lane),
        levels,
    }
}

/// The number of lanes, if rows are so short that it pays to put all operands into blocks without gaps, whose rows run
/// as one. About how many cycles a row takes decides.
fn packed<T: Real>(plan: &Plan<T>, lane: usize, row: usize) -> Option<i64> {
    let extent = plan.extents()[lane];
    if lane >= plan.outputs || extent >= SPREAD as f64 || !plan.is_free(lane) {
        return None;
    }
    let (lane, row) = (plan.loops[lane].variable, plan.loops[row].variable);
    let steps = |access: &Access| (access.place.factor(row), access.place.factor(lane));
    let cost = |access: &Access| match steps(access) {
        (across, 1) if across == extent as i64 => 0,
        (0, 0) => 0,
        (0, _) | (_, 0) => 2,
        (_, 1) => 10,
        // It is put into a block anyway.
        _ => 0,
    };
    let computed = |node: &&Node<T>| matches!(node, Node::Unary(..) | Node::Binary(..) | Node::Select(..));
    let apart = 8 * plan.graph.nodes.iter().filter(computed).count();
    (plan.accesses.iter().map(cost).sum::<usize>() < apart).then_some(extent as i64)
}

/// Rows of fewer lanes can be spread.
pub const SPREAD: usize = 16;

impl<T: Real> Plan<T> {
    /// The output to take as rows beside these lanes: one of some length, the schedule's or else the innermost; if
    /// there is none, the longest.
    pub fn best_row(&self, lane: usize, hint: Option<usize>) -> Option<usize> {
        let extents = self.extents();
        let mut rows: Vec<usize> = hint.into_iter().chain((0..self.outputs).rev()).collect();
        rows.retain(|p| *p != lane && self.is_row(*p, lane));
        rows.sort_by(|a, b| extents[*b].min(LONG).total_cmp(&extents[*a].min(LONG)));
        rows.first().copied()
    }

    /// Whether an output can be taken as rows: in some number at a time, all of them do the same.
    fn is_row(&self, position: usize, lane: usize) -> bool {
        let (variable, lane) = (self.loops[position].variable, self.loops[lane].variable);
        let inner = &self.loops[self.outputs..];
        let of_group = |v: usize| v == lane || inner.iter().any(|l| l.variable == v);
        let apart = |l: &Linear| !l.uses(variable) || !l.variables().any(of_group);
        let mut conditions = self.guards.iter().chain(&self.graph.conditions).map(|c| &c.linear);
        position < self.outputs
            && !self.is_repeated(position)
            && self.is_straight(position)
            && !self.loops[..self.outputs].iter().any(|l| l.range.uses(variable))
            && inner.iter().all(|l| !l.range.uses(variable) || !l.range.variables().any(of_group))
            && !inner.iter().any(|l| l.range.bends_at(variable))
            && conditions.all(|l| apart(l) && !l.bends_at(variable))
    }

    /// How many rows from the point on, up to `most`, have the same ranges and outcomes of conditions.
    pub fn even_rows(&self, point: &mut [i64], row: usize, most: usize) -> usize {
        let conditions = self.guards.iter().chain(&self.graph.conditions);
        let run = conditions.map(|c| c.run(point, row)).fold(most as i64, i64::min);
        let moving = || self.loops[self.outputs..].iter().map(|l| &l.range).filter(|range| range.uses(row));
        let first: Vec<(i64, i64)> = moving().map(|range| range.at(point)).collect();
        let start = point[row];
        let mut is_same = |count: i64| {
            point[row] = start + count;
            let same = moving().zip(&first).all(|(range, first)| range.at(point) == *first);
            point[row] = start;
            same
        };
        // A lower end is convex in the row and an upper end concave, so what is the same at the next row is the same
        // up to some row and never after.
        if first.is_empty() || run == 1 || is_same(1) && is_same(run - 1) {
            return run as usize;
        }
        if !is_same(1) {
            return 1;
        }
        let (mut same, mut other) = (1, run - 1);
        while same + 1 < other {
            let middle = same + (other - same) / 2;
            if is_same(middle) { same = middle } else { other = middle }
        }
        same as usize + 1
    }

    /// Whether no range, guard or index condition depends on a loop that may be taken as lanes.
    pub fn is_free(&self, position: usize) -> bool {
        let Some(Loop { variable, .. }) = self.loops.get(position) else { return false };
        let innermost = position + 1 == self.loops.len();
        (position < self.outputs || innermost)
            && !self.loops.iter().any(|l| l.range.uses(*variable))
            && !self.guards.iter().chain(&self.graph.conditions).any(|c| c.linear.uses(*variable))
    }

    /// Whether a loop is a reduction of so few terms that putting them together takes longer than they do.
    fn is_short_fold(&self, position: usize) -> bool {
        position >= self.outputs && self.extents()[position] < PARTS as f64
    }

    fn is_lane(&self, position: usize) -> bool {
        !self.is_repeated(position) && (self.is_free(position) || self.is_splittable(position))
    }

    /// Whether all values of an output write to the same elements, one after the other.
    fn is_repeated(&self, position: usize) -> bool {
        position < self.outputs && !self.accesses[0].place.uses(self.loops[position].variable)
    }

    /// Whether a loop may be taken as lanes if these are split where a guard or condition changes.
    fn is_splittable(&self, position: usize) -> bool {
        let Some(Loop { variable, .. }) = self.loops.get(position) else { return false };
        (position < self.outputs || position + 1 == self.loops.len())
            && !self.loops.iter().any(|l| l.range.uses(*variable))
            && !self.guards.iter().chain(&self.graph.conditions).any(|c| c.linear.bends_at(*variable))
    }

    /// Whether every index expression is linear in a loop's variable.
    pub fn is_straight(&self, position: usize) -> bool {
        let variable = self.loops[position].variable;
        let places = self.accesses.iter().map(|access| &access.place);
        !places.chain(&self.graph.indices).any(|linear| linear.bends_at(variable))
    }

    /// About how many values each loop has.
    pub fn extents(&self) -> Vec<f64> {
        let middle = self.middle();
        let extent = |(low, high): (i64, i64)| (high - low + 1).max(0) as f64;
        self.loops.iter().map(|l| extent(l.range.at(&middle))).collect()
    }

    /// The innermost output with contiguous results, else the innermost reduction, else the innermost output. Of equals,
    /// those that need no splitting come first; of short ones in any case.
    fn best_lane(&self) -> Option<usize> {
        let extents = self.extents();
        let unit = |p: &usize| *p < self.outputs && self.accesses[0].place.factor(self.loops[*p].variable) == 1;
        let mut usable: Vec<usize> = (0..self.loops.len()).rev().filter(|p| self.is_lane(*p)).collect();
        usable.sort_by_key(|p| match extents[*p] < SHORT {
            false => (false, !unit(p), !self.is_free(*p)),
            true => (true, !self.is_free(*p), !unit(p)),
        });
        usable.first().copied()
    }
}

/// Loops of fewer values are not worth vectors.
const SHORT: f64 = 8.0;
/// More rows than this are not better.
const LONG: f64 = 32.0;
