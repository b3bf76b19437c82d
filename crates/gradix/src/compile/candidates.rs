//! The ways to compile a program without recurrences, and the choice among them.
//!
//! It is economised in more than one way; each way that comes into question is a candidate, made with all passes.

use super::Goal;
use super::compiled::{Choice, CompiledPart};
use crate::diagnostic::Diagnostic;
use crate::domain::estimate::estimate;
use crate::economise::{economise, economise_lean, prepared};
use crate::lower::lower;
use crate::nest::Nest;
use crate::nest::verify::{Verified, holds};
use crate::program::{ParamKind, Program, Tensor, TensorId, TensorKind};
use crate::schedule::{Manner, Schedule, arrange, schedule};
use crate::target::cost;
use crate::timings::timed;
use gradix_int::Int;

/// Compiles a program without recurrences: with plain loops if these are asked for, and where faster ones could not be proven.
pub fn best(program: &Program, manner: Manner, goal: Goal<'_>) -> Result<(CompiledPart, Verified), Diagnostic> {
    let plain = |choice| make(Candidate::Plain, program, Manner::Plain, goal)?.verified(choice);
    let manner = match manner {
        Manner::Plain => match plain(Choice::Little) {
            Ok(plain) if stays_inside(&plain, goal.given) => return Ok(plain),
            _ => Manner::Shared,
        },
        Manner::Shared | Manner::OneItem => manner,
    };
    let chosen = by_cost(program, manner, goal)?;
    if manner == Manner::Shared && goal.target.device.is_none() && !stays_inside(&chosen, goal.given) {
        return Ok(plain(Choice::Proven).ok().filter(|plain| stays_inside(plain, goal.given)).unwrap_or(chosen));
    }
    Ok(chosen)
}

/// The candidate with the fewest operations, if that does not store too much.
fn by_cost(program: &Program, manner: Manner, goal: Goal<'_>) -> Result<(CompiledPart, Verified), Diagnostic> {
    let fast = make(Candidate::Fast, program, manner, goal)?;
    let (stored, room) = (fast.stored(goal.given), room(program, goal.given));
    if stored <= room {
        return fast.verified(Choice::Fits { stored, room });
    }
    let lean = make(Candidate::Lean, program, manner, goal)?;
    let instead = lean.stored(goal.given);
    match instead < stored {
        true => lean.verified(Choice::Leaner { stored: instead, fast: stored, room }),
        false => fast.verified(Choice::NotLeaner { stored, lean: instead, room }),
    }
}

/// A candidate by way of all passes but the last.
fn make(candidate: Candidate, program: &Program, manner: Manner, goal: Goal<'_>) -> Result<Made, Diagnostic> {
    let Goal { given, real, target, .. } = goal;
    let economised = timed("economise", || match candidate {
        Candidate::Plain => prepared(program),
        Candidate::Fast => economise(program, &estimate(program, given)),
        Candidate::Lean => economise_lean(program, &estimate(program, given)),
    })?;
    let arranged = timed("arrange", || arrange(&economised, given, (real, target), manner))?;
    if interface(&arranged) != interface(program) {
        // Callers pass sizes, arguments and results by position.
        return Err(Diagnostic::error("run", "a pass has changed the order of arguments, results or sizes"));
    }
    let schedule = timed("schedule", || schedule(&arranged, &estimate(&arranged, given), (real, target), manner));
    let nest = timed("lower", || lower(&arranged, &schedule, target));
    Ok(Made { economised, arranged, schedule, nest })
}

/// The names of the free sizes, the arguments and the results, in order.
fn interface(program: &Program) -> [Vec<&str>; 3] {
    let free = program.params.iter().filter(|param| param.kind == ParamKind::Free).map(|param| param.name.as_str());
    let names = |tensors: &mut dyn Iterator<Item = TensorId>| tensors.map(|id| program[id].name.as_str()).collect();
    [free.collect(), names(&mut program.inputs()), names(&mut program.outputs.iter().copied())]
}

/// A way to economise and lower a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Candidate {
    /// As it stands, in plain loops.
    Plain,
    /// With as few operations as possible.
    Fast,
    /// With few operations, and without new definitions that have more elements than all inputs and results.
    Lean,
}

/// A candidate before its loops are verified.
struct Made {
    economised: Program,
    arranged: Program,
    schedule: Schedule,
    nest: Nest,
}

impl Made {
    fn verified(self, choice: Choice) -> Result<(CompiledPart, Verified), Diagnostic> {
        let Made { economised, arranged, schedule, nest } = self;
        let nest = timed("verify", || Verified::new(nest)).map_err(|what| Diagnostic::error("run", what))?;
        Ok((CompiledPart { economised, arranged, schedule, choice }, nest))
    }

    /// The elements that are stored for other kernels to read, but for parts of reductions.
    fn stored(&self, given: &[Int]) -> f64 {
        let program = &self.arranged;
        let sizes = estimate(program, given);
        let members = self.schedule.groups.iter().flat_map(|group| &group.members).filter(|member| !member.local);
        let tensors = members.map(|member| program.definitions[member.definition].tensor);
        let temporaries = tensors.filter(|tensor| !program.outputs.contains(tensor));
        temporaries.map(|tensor| program[tensor].elements(&sizes)).fold(0.0, |sum, elements| sum + elements)
    }
}

/// The elements that may be stored: some in any case, as many as those of the results and the definitions that the program
/// names, and some for each of an argument.
fn room(program: &Program, given: &[Int]) -> f64 {
    let sizes = estimate(program, given);
    let factor = |tensor: &Tensor| match tensor.kind {
        TensorKind::Input => cost::ROOM_PER_ARGUMENT_ELEMENT,
        TensorKind::Defined => 1.0,
        TensorKind::Nested => 0.0,
    };
    cost::SPARE_ELEMENTS + program.tensors.iter().map(|tensor| factor(tensor) * tensor.elements(&sizes)).sum::<f64>()
}

/// Whether what `verify` could not prove for all sizes holds at the assumed ones.
fn stays_inside((CompiledPart { arranged, .. }, nest): &(CompiledPart, Verified), given: &[Int]) -> bool {
    let sizes: Vec<Int> = estimate(arranged, given).iter().map(|size| Int::from(*size as i64)).collect();
    nest.checks().iter().all(|check| holds(check, &sizes))
}
