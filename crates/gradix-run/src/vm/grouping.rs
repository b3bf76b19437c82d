//! Which loops of a leaf are taken in groups: as the lanes of instructions, and as rows of these.
//!
//! They are those that the nest has in lanes and unrolled. Where it names no lanes, since conditions depend on every loop or there is
//! little to do, the innermost output is taken; and where it names no rows, the innermost other output of some length, as
//! instructions are worth their while on many elements only.

use super::leaf::{Access, Loop, Plan};
use super::linear::Linear;
use super::real::Real;
use gradix::nest::Leaf;
use gradix::target::cost;

/// Which variables run over vectors.
///
/// No range depends on the lanes, and apart from lanes that are split no guard or index condition does, so all lanes do the
/// same; and so do as many rows as [`Plan::even_rows`] says.
#[derive(Clone, Debug, Default)]
pub struct Grouping {
    /// The variable that runs along instructions, and its loop.
    pub lane: Option<(usize, usize)>,
    /// An output that instructions run across, and its loop. No index expression has it in a floor.
    pub row: Option<(usize, usize)>,
    /// The variables that may move from row to row: that of the rows, and those whose ranges depend on it.
    pub moving: Vec<usize>,
    /// A range of the reduction, a guard or an index condition depends on the row: groups end where they change.
    pub uneven: bool,
    /// The rows are the innermost loop of the reduction, whose lanes are outputs: some terms at a time.
    pub stacked: bool,
    /// The lane is a reduction.
    pub folded: bool,
    /// A guard or index condition depends on the lane: blocks are split where an outcome changes.
    pub split: bool,
    /// The reduction's other loops, from the outermost in.
    pub levels: Vec<usize>,
}

/// How the points of a leaf are taken in groups.
pub fn group<T: Real>(plan: &Plan<T>, leaf: &Leaf) -> Grouping {
    let target = &plan.accesses[0];
    let shifted = |access: &Access| access.buffer == target.buffer && access.place != target.place;
    let lane = leaf.lanes().filter(|p| plan.is_splittable(*p)).or_else(|| plan.innermost());
    let lane = lane.filter(|_| !plan.accesses.iter().any(shifted));
    let mut levels: Vec<usize> = plan.loops[plan.outputs..].iter().map(|l| l.variable).collect();
    let Some(lane) = lane else { return Grouping { levels, ..Grouping::default() } };
    levels.retain(|variable| *variable != plan.loops[lane].variable);
    let mut rows: Vec<usize> = leaf.rows().map(|(row, _)| row).into_iter().chain((0..plan.outputs).rev()).collect();
    rows.retain(|row| *row != lane && plan.is_row(*row, lane));
    rows.sort_by_key(|row| -plan.loops[*row].range.extent.min(cost::ENOUGH_ROWS));
    let row = rows.first().copied();
    let stacked = plan.terms_as_rows(lane, row);
    let row = stacked.or(row);
    let with_variable = |p: usize| (plan.loops[p].variable, p);
    Grouping {
        lane: Some(with_variable(lane)),
        row: row.map(with_variable),
        moving: row.map_or_else(Vec::new, |row| plan.moving(row)),
        uneven: row.is_some_and(|row| !plan.is_free(row)),
        stacked: stacked.is_some(),
        folded: lane >= plan.outputs,
        split: !plan.is_free(lane),
        levels,
    }
}

impl<T: Real> Plan<T> {
    /// The innermost output or else the innermost reduction that can be lanes; one that needs no splitting, if there is.
    fn innermost(&self) -> Option<usize> {
        let loops = || (0..self.outputs).rev().chain(self.loops.len().checked_sub(1));
        loops()
            .find(|p| self.is_free(*p) && self.is_splittable(*p))
            .or_else(|| loops().find(|p| self.is_splittable(*p)))
    }

    /// Whether a loop may be taken as lanes if these are split where a guard or condition changes.
    fn is_splittable(&self, position: usize) -> bool {
        let Some(Loop { variable, .. }) = self.loops.get(position) else { return false };
        (position < self.outputs || position + 1 == self.loops.len())
            && !self.is_repeated(position)
            && !self.loops.iter().any(|l| l.range.uses(*variable))
            && !self.conditions().any(|l| l.bends_at(*variable))
    }

    /// The innermost loop of a reduction, if its terms rather than an output are taken as rows: outputs are few.
    fn terms_as_rows(&self, lane: usize, row: Option<usize>) -> Option<usize> {
        let (extent, last) = (|p: usize| self.loops[p].range.extent, self.loops.len().checked_sub(1)?);
        let outputs = extent(lane).saturating_mul(row.map_or(1, extent));
        let straight = self.is_free(last) && self.is_straight(self.loops[last].variable);
        let fits = lane < self.outputs && last >= self.outputs && straight;
        (fits && outputs < cost::ENOUGH_OUTPUTS && extent(last) > row.map_or(1, extent)).then_some(last)
    }

    /// Whether all values of an output write to the same elements, one after the other.
    fn is_repeated(&self, position: usize) -> bool {
        position < self.outputs && !self.accesses[0].place.uses(self.loops[position].variable)
    }

    /// Whether no range, guard or index condition depends on a loop.
    pub fn is_free(&self, position: usize) -> bool {
        let variable = self.loops[position].variable;
        !self.loops.iter().any(|l| l.range.uses(variable)) && !self.conditions().any(|l| l.uses(variable))
    }

    /// Whether all places and index values are linear in a variable.
    pub fn is_straight(&self, variable: usize) -> bool {
        let mut places = self.accesses.iter().map(|access| &access.place).chain(&self.body.indices);
        places.all(|place| !place.bends_at(variable))
    }

    /// The variables that move from row to row: that of the rows, and those whose ranges depend on it.
    fn moving(&self, row: usize) -> Vec<usize> {
        let variable = self.loops[row].variable;
        let inner = self.loops[self.outputs..].iter().filter(|l| l.range.uses(variable)).map(|l| l.variable);
        std::iter::once(variable).chain(inner).collect()
    }

    /// Whether an output can be taken as rows: in some number at a time, all of them do the same.
    fn is_row(&self, position: usize, lane: usize) -> bool {
        let (variable, lane) = (self.loops[position].variable, self.loops[lane].variable);
        let (outputs, inner) = self.loops.split_at(self.outputs);
        let moving = self.moving(position);
        let of_group = |v: usize| v == lane || inner.iter().any(|l| l.variable == v);
        // Where one of several bounds moves, which of them counts must not depend on the points of a group.
        let even = |linears: &[&Linear]| {
            let fixed = !linears.iter().any(|l| moving.iter().any(|v| l.uses(*v)));
            fixed || linears.iter().all(|l| !l.bends_at(variable) && !l.variables().any(of_group))
        };
        let bounds = |l: &Loop| even(&l.range.low.iter().chain(&l.range.high).collect::<Vec<_>>());
        !self.is_repeated(position)
            && moving.iter().all(|v| self.is_straight(*v))
            && !outputs.iter().any(|l| l.range.uses(variable))
            && inner.iter().all(bounds)
            && self.conditions().all(|l| even(&[l]))
    }

    fn conditions(&self) -> impl Iterator<Item = &Linear> {
        self.guards.iter().chain(&self.body.conditions).map(|c| &c.linear)
    }

    /// How many rows from the point on, up to `most`, do the same: conditions have the same outcomes, and ranges the same
    /// number of values. `slopes` becomes what each variable adds from row to row.
    pub fn even_rows(&self, point: &mut [i64], slopes: &mut [i64], row: usize, most: usize) -> usize {
        let conditions = self.guards.iter().chain(&self.body.conditions);
        let mut rows = conditions.map(|c| c.run(point, row)).fold(most as i64, i64::min);
        let start = point[row];
        for Loop { variable, range } in self.loops[self.outputs..].iter().filter(|l| l.range.uses(row)) {
            let mut at = |r: i64| {
                point[row] = start + r;
                range.at(point)
            };
            let (first, second) = (at(0), at(1));
            let slope = second.0 - first.0;
            // A lower end is convex in the row and an upper end concave: if they lie on a line at the second and the last
            // row, then at all between.
            let on_line = |(low, high): (i64, i64), r: i64| low == first.0 + slope * r && high == first.1 + slope * r;
            while rows > 1 && !(on_line(second, 1) && on_line(at(rows - 1), rows - 1)) {
                rows = if on_line(second, 1) { rows / 2 } else { 1 };
            }
            slopes[*variable] = slope;
        }
        point[row] = start;
        rows as usize
    }
}
