//! Which levels of steps run inside of kernels; through the others goes whoever runs the nest, and shares out each step.

use super::{Divided, Part, Stage, is_segmented, parts_of};
use crate::domain::estimate::{estimate, extents};
use crate::economise::additions;
use crate::program::{Definition, ParamId};
use crate::target::{Target, cost};
use gradix_int::Int;

/// What the levels go through that may run inside of kernels: the outermost ones, and those whose steps are short.
pub fn candidates(divided: &Divided, given: &[Int], target: &Target) -> Vec<ParamId> {
    if target.device.is_some() {
        // A step is as many kernels as it takes to fill the machine.
        return Vec::new();
    }
    let short = short(divided, target, &|time| additions_of_step(divided, time, given));
    [outermost(&divided.stages), short].concat()
}

/// Which of the candidates run inside, where items go through the steps of some levels on their own, so many for each.
pub fn chosen(
    candidates: &[ParamId],
    items: &[(ParamId, f64)],
    divided: &Divided,
    given: &[Int],
    target: &Target,
) -> Vec<ParamId> {
    // What an item does at a step counts.
    let each = |time: ParamId| {
        let items = items.iter().find(|(own, _)| *own == time).map_or(1.0, |(_, items)| *items);
        // Outside, a step would have no more items, and threads would wait for each other after each.
        let is_best = items > 1.0 && items * cost::ITEM_POINTS >= points_of_step(divided, time, given);
        if is_best { 0.0 } else { additions_of_step(divided, time, given) / items }
    };
    let inside = short(divided, target, &each);
    let are_all = target.device.is_some() || outermost(&divided.stages).iter().all(|time| inside.contains(time));
    if are_all { candidates.to_vec() } else { inside }
}

/// What the outermost levels go through, inside of segments if there are any.
fn outermost(stages: &[Stage]) -> Vec<ParamId> {
    let each = |stage: &Stage| match stage {
        Stage::Time { stages, .. } if is_segmented(stage) => outermost(stages),
        Stage::Time { time, .. } => vec![*time],
        Stage::Part(_) => Vec::new(),
    };
    stages.iter().flat_map(each).collect()
}

/// What the longest part of a step of a level takes, levels inside included, in additions.
fn additions_of_step(divided: &Divided, time: ParamId, given: &[Int]) -> f64 {
    let work = |part: &Part| {
        let program = &part.program;
        additions(program, &estimate(program, given))
    };
    let is_inside = |part: &&Part| part.steps.iter().any(|(own, _)| *own == time);
    divided.parts.iter().filter(is_inside).map(work).fold(0.0, f64::max)
}

/// The points of the largest definition of a step of a level.
fn points_of_step(divided: &Divided, time: ParamId, given: &[Int]) -> f64 {
    let points = |part: &Part| {
        let sizes = estimate(&part.program, given);
        let each = |definition: &Definition| extents(definition, &sizes).iter().product::<f64>();
        part.program.definitions.iter().map(each).fold(0.0, f64::max)
    };
    let is_inside = |part: &&Part| part.steps.iter().any(|(own, _)| *own == time);
    divided.parts.iter().filter(is_inside).map(points).fold(0.0, f64::max)
}

/// What the outermost of those stages go through whose steps are so short that one thread does all of them.
fn short(divided: &Divided, target: &Target, additions: &dyn Fn(ParamId) -> f64) -> Vec<ParamId> {
    let (mut found, mut open): (Vec<ParamId>, Vec<&Stage>) = (Vec::new(), divided.stages.iter().collect());
    while let Some(stage) = open.pop() {
        let Stage::Time { time, stages, .. } = stage else { continue };
        let is_short = !is_segmented(stage) && additions(*time) <= target.short_step_additions as f64;
        match is_short {
            true => found.push(*time),
            false => open.extend(stages),
        }
    }
    found
}

/// The parts that run at the steps of these levels.
pub fn parts_inside(stages: &[Stage], inside: &[ParamId]) -> Vec<usize> {
    let each = |stage: &Stage| match stage {
        Stage::Time { time, .. } if inside.contains(time) => parts_of(stage),
        Stage::Time { stages, .. } => parts_inside(stages, inside),
        Stage::Part(_) => Vec::new(),
    };
    stages.iter().flat_map(each).collect()
}
