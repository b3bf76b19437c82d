//! Leaves whose lanes are a reduction and whose operands are used again: `c[m, n] = ⊕[k] f(a[m, k], b[n, k])` with both
//! operands in memory along `k`. Rows and columns are taken in small tiles, with a vector of partial results for each.
#![allow(unsafe_code, reason = "hands checked pointers to the register tiles")]

use super::execute::Machine;
use super::grouping::Groups;
use super::leaf::{Access, Node, Outputs, Plan};
use super::real::Real;
use super::recognise::Recognise;
use super::tile::{self, DOTS, Dot};
use super::vector::Rule;

/// How a leaf is made of such tiles.
pub struct Dots {
    rule: Rule,
    sides: [Side; 2],
}

/// The rows or the columns.
struct Side {
    variable: usize,
    position: usize,
    /// What depends on them.
    access: usize,
}

/// The tiles of a leaf whose shape has columns, if the body is made of two accesses.
pub fn dots<T: Real>(plan: &mut Plan<T>, groups: &Groups) -> Option<Dots> {
    let (lanes, positions) = (groups.lanes?, [groups.rows?, groups.columns?]);
    let plain = plan.guards.is_empty() && plan.graph.conditions.is_empty() && !plan.reads_target();
    let folded = lanes >= plan.outputs && lanes + 1 == plan.loops.len();
    if !plain || !folded || ![lanes, positions[0], positions[1]].iter().all(|p| plan.is_free(*p)) {
        return None;
    }
    let (lane, variables) = (plan.loops[lanes].variable, positions.map(|p| plan.loops[p].variable));
    let of_side = |side: usize| {
        let is_operand = |node: &usize| match plan.graph.nodes[*node] {
            Node::Access(access) => {
                let place = &plan.accesses[access].place;
                let bends = [lane, variables[0], variables[1]].iter().any(|v| place.bends_at(*v));
                place.factor(lane) == 1 && !bends && !place.uses(variables[1 - side])
            }
            _ => false,
        };
        (0..plan.graph.nodes.len()).filter(is_operand).collect::<Vec<usize>>()
    };
    let (by_row, by_lane) = (of_side(0), of_side(1));
    let (op, body) = (plan.reduction?, plan.graph.body);
    let (rule, roots) = Recognise { nodes: &mut plan.graph.nodes, by_row, by_lane }.body(op, body)?;
    let access = |side: usize| match plan.graph.nodes[roots[side]] {
        Node::Access(access) => Some(Side { variable: variables[side], position: positions[side], access }),
        _ => None,
    };
    Some(Dots { rule, sides: [access(0)?, access(1)?] })
}

/// Runs all points of a leaf; the variables of work and tiles are set.
pub fn run<T: Real>(machine: &mut Machine<T>, plan: &Plan<T>, dots: &Dots) {
    Leaf { machine, plan, dots, counts: [0; 2], sums: [T::ZERO; DOTS] }.outputs(0);
}

struct Leaf<'a, T> {
    machine: &'a mut Machine<T>,
    plan: &'a Plan<T>,
    dots: &'a Dots,
    /// The rows and columns of the tile at hand.
    counts: [usize; 2],
    sums: [T; DOTS],
}

impl<T: Real> Outputs<T> for Leaf<'_, T> {
    fn at(&mut self) -> (&Plan<T>, &mut [i64]) {
        (self.plan, &mut self.machine.point)
    }

    fn is_grouped(&self, position: usize) -> bool {
        self.dots.sides.iter().any(|side| side.position == position)
    }

    /// All tiles at this point of the other outputs.
    fn groups(&mut self) {
        let sides = &self.dots.sides;
        let ranges = sides.each_ref().map(|side| self.plan.loops[side.position].range.at(&self.machine.point));
        let size = tile::dots(self.machine.level);
        for row in (ranges[0].0..=ranges[0].1).step_by(size[0]) {
            for column in (ranges[1].0..=ranges[1].1).step_by(size[1]) {
                let first = [row, column];
                for side in 0..2 {
                    self.machine.point[sides[side].variable] = first[side];
                    self.counts[side] = size[side].min((ranges[side].1 - first[side] + 1) as usize);
                }
                self.sums = [T::of(self.plan.reduction.map_or(0.0, |op| op.neutral())); DOTS];
                self.reduce(self.plan.outputs);
                self.store();
            }
        }
    }
}

impl<T: Real> Leaf<'_, T> {
    /// All points of the reduction's loops from this position on.
    fn reduce(&mut self, position: usize) {
        if self.tile(position) {
            return;
        }
        let l = &self.plan.loops[position];
        let (low, high) = l.range.at(&self.machine.point);
        for value in low..=high {
            self.machine.point[l.variable] = value;
            self.reduce(position + 1);
        }
    }

    /// The same at once, if the terms are at the same distances everywhere.
    fn tile(&mut self, position: usize) -> bool {
        let places = self.dots.sides.each_ref().map(|side| &self.plan.accesses[side.access]);
        let (loops, bends) = (&self.plan.loops[position..], |access: &Access, v| access.place.bends_at(v));
        let inner = |v: usize| loops.iter().any(|l| l.range.uses(v)) || places.iter().any(|access| bends(access, v));
        if loops.iter().any(|l| inner(l.variable)) || !self.machine.list(loops) {
            return false;
        }
        let lists = self.machine.list_runs(places.map(|access| Some(&access.place)));
        let Some((lanes, _)) = lists else { return true };
        let operand = |side: usize| {
            let Access { buffer, place } = places[side];
            let step = place.factor(self.dots.sides[side].variable);
            let inner = self.machine.terms.iter().map(|(variable, count)| (place.factor(*variable), *count));
            let reach = inner.chain([(step, self.counts[side])]);
            (self.machine.buffers[*buffer].at(place.at(&self.machine.point), reach), step as isize)
        };
        let operands = [operand(0), operand(1)];
        let neutral = T::of(self.plan.reduction.map_or(0.0, |op| op.neutral()));
        let dot = Dot { operands, counts: self.counts, runs: &self.machine.runs, lanes, neutral };
        // SAFETY: both operands were checked for all rows or columns, runs and lanes.
        unsafe { tile::run_dot(self.machine.level, self.dots.rule, &dot, &mut self.sums) };
        true
    }

    /// Writes the results of a tile.
    fn store(&mut self) {
        let Access { buffer, place } = &self.plan.accesses[0];
        let steps = self.dots.sides.each_ref().map(|side| place.factor(side.variable));
        let reach = [(steps[0], self.counts[0]), (steps[1], self.counts[1])];
        let target = self.machine.buffers[*buffer].at(place.at(&self.machine.point), reach);
        let (goes_on, width) = (self.machine.goes_on(self.plan), tile::dots(self.machine.level)[1]);
        for (r, c) in (0..self.counts[0]).flat_map(|r| (0..self.counts[1]).map(move |c| (r, c))) {
            // SAFETY: the whole target was checked.
            unsafe {
                let to = target.offset((r as i64 * steps[0] + c as i64 * steps[1]) as isize);
                let value = self.sums[r * width + c];
                *to = if goes_on { self.dots.rule.combined(*to, value) } else { value };
            }
        }
    }
}
