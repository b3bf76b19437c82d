//! Which loops of a leaf are taken in groups: as the lanes of instructions, and as rows of these.
//!
//! [`sweep`](gradix::schedule::sweep) chooses them among those that may be at the sizes at hand, which are found here.

use super::leaf::{Loop, Plan};
use super::linear::Linear;
use super::real::Real;
use gradix::nest::{ByLoop, Leaf, LoopId};
use gradix::schedule::sweep::{Facts, Lanes, Sweep, sweep};

/// Which variables run over vectors.
///
/// No range depends on the lanes, and apart from lanes that are split no guard or index condition does, so all lanes do the
/// same; and so do as many rows as [`Plan::even_rows`] says.
#[derive(Clone, Debug, Default)]
pub struct Grouping {
    /// The variable that runs along instructions, and its loop.
    pub lane: Option<(LoopId, usize)>,
    /// An output that instructions run across, and its loop. No index expression has it in a floor.
    pub row: Option<(LoopId, usize)>,
    /// The variables that may move from row to row: that of the rows, and those whose ranges depend on it.
    pub moving: Vec<LoopId>,
    /// A range of the reduction, a guard or an index condition depends on the row: groups end where they change.
    pub uneven: bool,
    /// The rows are the innermost loop of the reduction, whose lanes are outputs: some terms at a time.
    pub stacked: bool,
    /// The lane is a reduction.
    pub folded: bool,
    /// A guard or index condition depends on the lane: blocks are split where an outcome changes.
    pub split: bool,
    /// The reduction's other loops, from the outermost in.
    pub levels: Vec<LoopId>,
}

/// How the points of a leaf are taken in groups.
pub fn group<T: Real>(plan: &Plan<T>, leaf: &Leaf) -> Grouping {
    let mut levels: Vec<LoopId> = plan.loops[plan.outputs..].iter().map(|l| l.variable).collect();
    let Some(Sweep { lanes, rows }) = sweep(leaf, &plan.facts(&|row, lanes| plan.is_row(row, lanes))) else {
        return Grouping { levels, ..Grouping::default() };
    };
    levels.retain(|variable| *variable != plan.loops[lanes].variable);
    let with_variable = |p: usize| (plan.loops[p].variable, p);
    Grouping {
        lane: Some(with_variable(lanes)),
        row: rows.map(with_variable),
        moving: rows.map_or_else(Vec::new, |row| plan.moving(row)),
        uneven: rows.is_some_and(|row| !plan.is_free(row)),
        stacked: rows.is_some_and(|row| row >= plan.outputs),
        folded: lanes >= plan.outputs,
        split: !plan.is_free(lanes),
        levels,
    }
}

impl<T: Real> Plan<T> {
    /// What its loops allow; `rows` says which may be rows beside which lanes.
    fn facts<'a>(&self, rows: &'a dyn Fn(usize, usize) -> bool) -> Facts<'a> {
        let target = &self.accesses[0];
        let shifted = self.accesses.iter().any(|a| a.is_own && a.place != target.place);
        let lanes = |position: usize| match self.is_splittable(position) && !shifted {
            false => Lanes::Never,
            true if self.is_free(position) => Lanes::Whole,
            true => Lanes::Cut,
        };
        let straight = |last: usize| self.is_free(last) && self.is_straight(self.loops[last].variable);
        Facts {
            extents: self.loops.iter().map(|l| l.range.extent).collect(),
            lanes: (0..self.loops.len()).map(lanes).collect(),
            rows,
            terms: self.loops.len().checked_sub(1).is_some_and(straight),
        }
    }

    /// Whether a loop may be taken as lanes if these are split where a guard or condition changes.
    fn is_splittable(&self, position: usize) -> bool {
        let Some(Loop { variable, .. }) = self.loops.get(position) else { return false };
        (position < self.outputs || position + 1 == self.loops.len())
            && !self.is_repeated(position)
            && !self.loops.iter().any(|l| l.range.uses(*variable))
            && !self.conditions().any(|l| l.bends_at(*variable))
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
    pub fn is_straight(&self, variable: LoopId) -> bool {
        let mut places = self.accesses.iter().map(|access| &access.place).chain(&self.body.indices);
        places.all(|place| !place.bends_at(variable))
    }

    /// The variables that move from row to row: that of the rows, and those whose ranges depend on it.
    fn moving(&self, row: usize) -> Vec<LoopId> {
        let variable = self.loops[row].variable;
        let inner = self.loops[self.outputs..].iter().filter(|l| l.range.uses(variable)).map(|l| l.variable);
        std::iter::once(variable).chain(inner).collect()
    }

    /// Whether an output can be taken as rows: in some number at a time, all of them do the same.
    fn is_row(&self, position: usize, lane: usize) -> bool {
        let (variable, lane) = (self.loops[position].variable, self.loops[lane].variable);
        let (outputs, inner) = self.loops.split_at(self.outputs);
        let moving = self.moving(position);
        let of_group = |v: LoopId| v == lane || inner.iter().any(|l| l.variable == v);
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
    pub fn even_rows(&self, point: &mut ByLoop<i64>, slopes: &mut ByLoop<i64>, row: LoopId, most: usize) -> usize {
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
