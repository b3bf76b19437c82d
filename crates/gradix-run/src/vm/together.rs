//! Leaves with the same loops, which run side by side: a part of the loops at a time, of which what one leaf writes is
//! still in the cache when the next one reads it.

use super::leaf::{Frame, Loop, Plan, clip, plan};
use super::linear::Bounds;
use super::real::Real;
use super::{execute::Machine, run_leaf};
use gradix::diagnostic::Diagnostic;
use gradix::nest::Leaf;

/// Leaves that run together, and their loops as the nest has them.
pub struct Together<T> {
    leaves: Vec<(Plan<T>, Vec<Loop>)>,
    /// How many variables the kernel has.
    variables: usize,
    /// How many loops are common to all leaves and may be taken in parts.
    clips: usize,
}

/// More loops than these are not taken in parts.
const MOST_CLIPS: usize = 8;
/// The variables that limit loops.
pub const CLIP_VARIABLES: usize = 2 * MOST_CLIPS;
/// The values of one leaf in a part.
const PART_BYTES: usize = 32 << 10;
/// No limit at all.
const WHOLE: [i64; 2] = [i64::MIN, i64::MAX];

impl<T: Real> Together<T> {
    pub fn new(frame: &mut Frame<'_, '_>, leaves: &[Leaf]) -> Result<Self, Diagnostic> {
        let clips = leaves.iter().map(|leaf| leaf.loops.len()).min().unwrap_or(0).min(MOST_CLIPS);
        let both = |leaf: &Leaf, frame: &mut Frame<'_, '_>| {
            let ranges = leaf.loops.iter().map(|l| frame.translator.range(l.variable.number(), &l.range));
            let ranges = ranges.collect::<Result<Vec<Bounds>, _>>()?;
            let loops = leaf.loops.iter().zip(ranges).map(|(l, range)| Loop { variable: l.variable.number(), range });
            Ok((plan(frame, leaf, clips)?, loops.collect()))
        };
        let leaves = leaves.iter().map(|leaf| both(leaf, frame)).collect::<Result<_, Diagnostic>>()?;
        Ok(Together { leaves, variables: frame.translator.variables(), clips })
    }

    /// Runs all points; the variables of work and tiles are set.
    pub fn run(&self, machine: &mut Machine<T>) {
        (0..self.clips).for_each(|position| self.limit(machine, position, WHOLE));
        self.parts(machine, 0);
        machine.resumed = 0;
    }

    /// All points of the loops from this position on: some values of the loop at a time, or one if there is much inside.
    fn parts(&self, machine: &mut Machine<T>, position: usize) {
        let [low, high] = self.range(machine, position);
        let resumed = machine.resumed;
        if position == self.clips || low > high {
            return self.leaves.iter().for_each(|(plan, _)| run_leaf(plan, machine));
        }
        self.set(machine, position, low);
        let inside = self.points(machine, position + 1);
        let most = (PART_BYTES / size_of::<T>()) as i64;
        let step = (most / inside.max(1)).max(1);
        for value in (low..=high).step_by(step as usize) {
            self.limit(machine, position, [value, value.saturating_add(step - 1)]);
            if inside > most {
                self.set(machine, position, value);
                self.parts(machine, position + 1);
            } else {
                self.leaves.iter().for_each(|(plan, _)| run_leaf(plan, machine));
            }
            machine.resumed = resumed.max(position + 1);
        }
        machine.resumed = resumed;
        self.limit(machine, position, WHOLE);
    }

    fn limit(&self, machine: &mut Machine<T>, position: usize, values: [i64; 2]) {
        for (variable, value) in clip(self.variables, position).into_iter().zip(values) {
            machine.point[variable] = value;
        }
    }

    /// Sets the loop's variable in all leaves.
    fn set(&self, machine: &mut Machine<T>, position: usize, value: i64) {
        self.leaves.iter().for_each(|(_, loops)| machine.point[loops[position].variable] = value);
    }

    /// The values of a loop in any of the leaves.
    fn range(&self, machine: &Machine<T>, position: usize) -> [i64; 2] {
        let ranges = self.leaves.iter().filter_map(|(_, loops)| loops.get(position));
        let ranges = ranges.map(|l| l.range.at(&machine.point)).filter(|(low, high)| low <= high);
        ranges.fold([i64::MAX, i64::MIN], |all, (low, high)| [all[0].min(low), all[1].max(high)])
    }

    /// Roughly how many points the loops from this position on have.
    fn points(&self, machine: &mut Machine<T>, position: usize) -> i64 {
        let mut points = 1i64;
        for position in position..self.clips {
            let [low, high] = self.range(machine, position);
            if low > high {
                return 0;
            }
            self.set(machine, position, low);
            points = points.saturating_mul(high - low + 1);
        }
        points
    }
}
