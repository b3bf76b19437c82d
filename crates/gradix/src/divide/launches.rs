//! Whether recurrences pay on a GPU, where every kernel of a step is launched for each step.

use super::{Stage, divide};
use crate::diagnostic::Diagnostic;
use crate::domain::estimate::estimate;
use crate::economise::additions;
use crate::program::{Program, circles};
use crate::target::{Target, cost};
use crate::waves::waves;
use gradix_int::Int;

/// Of two programs with the same values, of which the second has more recurrences, the one that takes less time on a GPU; the second
/// where there is none.
pub fn with_fewer_launches(
    program: &Program,
    scanned: Program,
    given: &[Int],
    target: &Target,
) -> Result<Program, Diagnostic> {
    let is_slower = target.device.is_some() && time(program, given, target)? < time(&scanned, given, target)?;
    Ok(if is_slower { program.clone() } else { scanned })
}

/// What a program takes, in additions, with the launches of the kernels of recurrences.
fn time(program: &Program, given: &[Int], target: &Target) -> Result<f64, Diagnostic> {
    let work = additions(program, &estimate(program, given));
    if circles::circles(program).is_empty() {
        return Ok(work);
    }
    let divided = divide(&waves(program, given, target)?, given, target)?;
    Ok(work + launches(&divided.stages, &estimate(&divided.whole, given)) * cost::LAUNCH_ADDITIONS)
}

fn launches(stages: &[Stage], estimate: &[f64]) -> f64 {
    let each = |stage: &Stage| match stage {
        Stage::Part(_) => 1.0,
        Stage::Time { steps, stages, .. } => steps.estimate(&[], estimate) * launches(stages, estimate),
    };
    stages.iter().map(each).sum()
}
