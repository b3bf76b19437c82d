//! From a program to verified loops: every pass behind the derivative, in a row.
//!
//! ```text
//! Program ─scan→ Program ─economise→ Program ─arrange→ Program ─schedule→ Schedule ─lower→ Nest ─verify→ Verified
//! ```
//!
//! A program can be economised in more than one way; each way that comes into question is a candidate, made with all
//! passes. [`compile`] compares them and keeps its reason as a [`Choice`].
//!
//! A program with recurrences, its own or those that [`scan`] found, is [divided](mod@crate::divide) into parts without. Each goes this way on its own; then their nests
//! are joined.

use crate::diagnostic::Diagnostic;
use crate::divide::{self, Divided, Part, divide};
use crate::domain::estimate::estimate;
use crate::economise::{economise, economise_lean, elements_once, prepared, repeats_once};
use crate::lower::lower;
use crate::nest::join::join;
use crate::nest::verify::{Verified, holds};
use crate::nest::{self, Nest};
use crate::program::{Definition, ParamId, ParamKind, Program, Tensor, TensorId, TensorKind};
use crate::program::{circles, print};
use crate::scalar::Real;
use crate::scan::scan;
use crate::schedule::{self, Manner, Schedule, arrange, merge, name, schedule, slices};
use crate::target::{Target, cost};
use crate::timings::timed;
use crate::transform::uncoil;
use crate::waves::waves;
use gradix_int::Int;
use std::fmt;

/// Compiles a program for elements of a type on a machine, with decisions that suit the sizes in `given` (for the first params; the
/// others are assumed) and loops that are right for all sizes.
///
/// ```
/// use gradix::nest::{Real, print};
/// use gradix::target::AVX512;
/// let ast = gradix::syntax::parse("input x[N, K], w[K]; y[i] = sum[k] x[i, k] * w[k]").unwrap();
/// let program = gradix::resolve(&ast, &[]).unwrap().program;
/// let compiled = gradix::compile(&program, &[1000.into(), 100.into()], Real::F64, &AVX512).unwrap();
/// assert_eq!(compiled.nest.kernels.len(), 1);
/// assert!(print(&compiled.nest).contains("sum k in 0..=K - 1 lanes"));
/// assert!(compiled.parts[0].choice.to_string().starts_with("fewest operations: "));
/// ```
pub fn compile(program: &Program, given: &[Int], real: Real, target: &Target) -> Result<Compiled, Diagnostic> {
    let little = is_little(program, given);
    let scanned = match little {
        true => program.clone(),
        false => timed("scan", || scan(&uncoil(program), &estimate(program, given)))?,
    };
    let scanned = match target.device.is_some()
        && time_on_device(program, given, target)? < time_on_device(&scanned, given, target)?
    {
        true => program.clone(),
        false => scanned,
    };
    if circles::circles(&scanned).is_empty() {
        let (part, nest) = compile_part(&scanned, given, (real, target), little, Manner::Shared)?;
        return Ok(Compiled { scanned, parts: vec![part], nest });
    }
    let divided = timed("divide", || {
        let sizes = estimate(&scanned, given);
        let once = repeats_once(&elements_once(&scanned, &sizes), &sizes);
        divide(&waves(&once, given, target)?, given, target)
    })?;
    let short = steps_inside(&divided, target, &|time| additions_of_step(&divided, time, given));
    let outermost = levels(&divided.stages);
    let machine = (real, target);
    if target.device.is_some() {
        // A step is as many kernels as it takes to fill the machine.
        return Ok(assembled((&scanned, &divided), given, machine, little, &[])?.0);
    }
    let (tried, items) =
        assembled((&scanned, &divided), given, machine, little, &[outermost.as_slice(), &short].concat())?;
    // What an item does at a step counts, where items go through the steps on their own.
    let each = |time: ParamId| {
        let items = items.iter().find(|(own, _)| *own == time).map_or(1.0, |(_, items)| *items);
        // Outside, a step would have no more items, and threads would wait for each other after each.
        let is_best = items > 1.0 && items * cost::ITEM_POINTS >= points_of_step(&divided, time, given);
        if is_best { 0.0 } else { additions_of_step(&divided, time, given) / items }
    };
    let inside = steps_inside(&divided, target, &each);
    match outermost.iter().all(|time| inside.contains(time)) {
        true => Ok(tried),
        false => Ok(assembled((&scanned, &divided), given, machine, little, &inside)?.0),
    }
}

/// What a program takes on a GPU, in additions, with the launches of the kernels of recurrences.
fn time_on_device(program: &Program, given: &[Int], target: &Target) -> Result<f64, Diagnostic> {
    fn launches(stages: &[divide::Stage], estimate: &[f64]) -> f64 {
        let each = |stage: &divide::Stage| match stage {
            divide::Stage::Part(_) => 1.0,
            divide::Stage::Time { steps, stages, .. } => steps.estimate(&[], estimate) * launches(stages, estimate),
        };
        stages.iter().map(each).sum()
    }
    let work = additions(program, &estimate(program, given));
    if circles::circles(program).is_empty() {
        return Ok(work);
    }
    let divided = divide(&waves(program, given, target)?, given, target)?;
    Ok(work + launches(&divided.stages, &estimate(&divided.whole, given)) * cost::LAUNCH_ADDITIONS)
}

/// The parts of a program and their nests as one, with the steps of some levels inside kernels; and for which of these there
/// are how many items.
fn assembled(
    (scanned, divided): (&Program, &Divided),
    given: &[Int],
    machine: (Real, &Target),
    little: bool,
    inside: &[ParamId],
) -> Result<(Compiled, Vec<(ParamId, f64)>), Diagnostic> {
    let (alone, mut parts, mut nests) = (parts_inside(&divided.stages, inside), Vec::new(), Vec::new());
    for (number, part) in divided.parts.iter().enumerate() {
        let is_inside = alone.contains(&number);
        let manner = if is_inside { Manner::OneItem } else { Manner::Shared };
        let (part, nest) = compile_part(&part.program, given, machine, little && !is_inside, manner)?;
        parts.push(part);
        nests.push(nest);
    }
    let (nest, items) = timed("join", || join(divided, nests, inside, &estimate(&divided.whole, given)))
        .map_err(|what| Diagnostic::error("run", what))?;
    Ok((Compiled { scanned: scanned.clone(), parts, nest }, items))
}

/// What the outermost levels go through, inside of segments if there are any.
fn levels(stages: &[divide::Stage]) -> Vec<ParamId> {
    let each = |stage: &divide::Stage| match stage {
        divide::Stage::Time { stages, .. } if divide::is_segmented(stage) => levels(stages),
        divide::Stage::Time { time, .. } => vec![*time],
        divide::Stage::Part(_) => Vec::new(),
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
        let each = |definition: &Definition| schedule::extents(definition, &sizes).iter().product::<f64>();
        part.program.definitions.iter().map(each).fold(0.0, f64::max)
    };
    let is_inside = |part: &&Part| part.steps.iter().any(|(own, _)| *own == time);
    divided.parts.iter().filter(is_inside).map(points).fold(0.0, f64::max)
}

/// What the outermost of those stages go through whose steps are so short that one thread does all of them.
fn steps_inside(divided: &Divided, target: &Target, additions: &dyn Fn(ParamId) -> f64) -> Vec<ParamId> {
    let (mut found, mut open): (Vec<ParamId>, Vec<&divide::Stage>) = (Vec::new(), divided.stages.iter().collect());
    while let Some(stage) = open.pop() {
        let divide::Stage::Time { time, stages, .. } = stage else { continue };
        let is_short = !divide::is_segmented(stage) && additions(*time) <= target.short_step_additions as f64;
        match is_short {
            true => found.push(*time),
            false => open.extend(stages),
        }
    }
    found
}

/// The parts that run at the steps of these levels.
fn parts_inside(stages: &[divide::Stage], inside: &[ParamId]) -> Vec<usize> {
    let each = |stage: &divide::Stage| match stage {
        divide::Stage::Time { time, .. } if inside.contains(time) => divide::parts_of(stage),
        divide::Stage::Time { stages, .. } => parts_inside(stages, inside),
        divide::Stage::Part(_) => Vec::new(),
    };
    stages.iter().flat_map(each).collect()
}

/// Compiles a program without recurrences; with plain loops if there is little to do, and where faster ones could not be proven.
fn compile_part(
    program: &Program,
    given: &[Int],
    (real, target): (Real, &Target),
    little: bool,
    manner: Manner,
) -> Result<(CompiledPart, Verified), Diagnostic> {
    if little
        && let Ok(plain) =
            make(Candidate::Plain, program, given, (real, target), Manner::Plain)?.verified(Choice::Little)
        && stays_inside(&plain, given)
    {
        return Ok(plain);
    }
    let chosen = by_cost(program, given, (real, target), manner)?;
    if manner == Manner::Shared && target.device.is_none() && !stays_inside(&chosen, given) {
        let plain = make(Candidate::Plain, program, given, (real, target), Manner::Plain)?.verified(Choice::Proven);
        return Ok(plain.ok().filter(|plain| stays_inside(plain, given)).unwrap_or(chosen));
    }
    Ok(chosen)
}

/// The candidate with the fewest operations, if that does not store too much.
fn by_cost(
    program: &Program,
    given: &[Int],
    (real, target): (Real, &Target),
    manner: Manner,
) -> Result<(CompiledPart, Verified), Diagnostic> {
    let fast = make(Candidate::Fast, program, given, (real, target), manner)?;
    let (stored, room) = (fast.stored(given), room(program, given));
    if stored <= room {
        return fast.verified(Choice::Fits { stored, room });
    }
    let lean = make(Candidate::Lean, program, given, (real, target), manner)?;
    let instead = lean.stored(given);
    match instead < stored {
        true => lean.verified(Choice::Leaner { stored: instead, fast: stored, room }),
        false => fast.verified(Choice::NotLeaner { stored, lean: instead, room }),
    }
}

/// A candidate by way of all passes but the last, for a type on a machine.
fn make(
    candidate: Candidate,
    program: &Program,
    given: &[Int],
    (real, target): (Real, &Target),
    manner: Manner,
) -> Result<Made, Diagnostic> {
    let economised = timed("economise", || match candidate {
        Candidate::Plain => prepared(program),
        Candidate::Fast => economise(program, &estimate(program, given)),
        Candidate::Lean => economise_lean(program, &estimate(program, given)),
    })?;
    let mut named = name(&economised)?;
    // On a device the items of a kernel are the same at all steps.
    if manner != Manner::Plain && target.device.is_none() {
        named = slices(&named, &estimate(&named, given));
    }
    if interface(&named) != interface(program) {
        // Callers pass sizes, arguments and results by position.
        return Err(Diagnostic::error("run", "a pass has changed the order of arguments, results or sizes"));
    }
    let sizes = estimate(&named, given);
    let arranged = match target.device {
        Some(_) => timed("arrange", || merge(&named, &sizes)),
        None => timed("arrange", || arrange(&named, &sizes, real, target)),
    };
    let schedule = timed("schedule", || schedule(&arranged, &sizes, (real, target), manner));
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

/// What a program becomes on its way to loops.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The program with recurrences in place of reductions over ranges that grow.
    pub scanned: Program,
    /// The parts between recurrences, and those at each of their steps; a single one if there is no recurrence.
    pub parts: Vec<CompiledPart>,
    /// The loops, with the proof that no access leaves its buffer.
    pub nest: Verified,
}

/// What a program without recurrences becomes on its way to loops.
#[derive(Clone, Debug)]
pub struct CompiledPart {
    /// The same values with fewer operations.
    pub economised: Program,
    /// With copies and another order of dimensions, and without what is computed again at each use.
    pub arranged: Program,
    /// What was decided for the arranged program.
    pub schedule: Schedule,
    /// Why this and no other candidate.
    pub choice: Choice,
}

impl Compiled {
    /// One of the values on the way, as text.
    pub fn print(&self, stage: Stage) -> Result<String, Diagnostic> {
        let printed = |part: &CompiledPart| match stage {
            Stage::Scanned => print::print(&self.scanned),
            Stage::Economised => print::print(&part.economised),
            Stage::Arranged => print::print(&part.arranged),
            Stage::Schedule => {
                let (name, decisions) = (self.nest.target.name, schedule::print(&part.arranged, &part.schedule));
                Ok(format!("for {name}: {}\n\n{decisions}", part.choice))
            }
            Stage::Nest => Ok(nest::print(&self.nest)),
        };
        if matches!(stage, Stage::Scanned | Stage::Nest) {
            return printed(&self.parts[0]);
        }
        let texts: Result<Vec<String>, Diagnostic> = self.parts.iter().map(printed).collect();
        Ok(texts?.join("\n"))
    }
}

/// A value on the way from a program to loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The program with recurrences in place of reductions over ranges that grow.
    Scanned,
    /// The program with fewer operations.
    Economised,
    /// The program that is scheduled.
    Arranged,
    /// The decisions, with the choice among candidates.
    Schedule,
    /// The loops.
    Nest,
}

/// Which candidate was taken, and why; numbers are elements that are stored for other kernels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Choice {
    /// Plain loops: there is so little to do that nothing else pays.
    Little,
    /// Plain loops, of others it could not be shown that they read and write what they should.
    Proven,
    /// The fewest operations, with no more stored than there is room for.
    Fits {
        /// What is stored.
        stored: f64,
        /// What may be.
        room: f64,
    },
    /// Fewer elements, since the fewest operations would store more than there is room for.
    Leaner {
        /// What is stored.
        stored: f64,
        /// What the fewest operations would store.
        fast: f64,
        /// What may be stored.
        room: f64,
    },
    /// The fewest operations, since the lean candidate stores no less.
    NotLeaner {
        /// What is stored.
        stored: f64,
        /// What the lean candidate would store.
        lean: f64,
        /// What may be stored.
        room: f64,
    },
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Little => write!(f, "plain loops: there is little to do"),
            Choice::Proven => write!(f, "plain loops: it could not be shown that others do what they should"),
            Choice::Fits { stored, room } => {
                write!(f, "fewest operations: {stored} elements are stored between groups, {room} may be")
            }
            Choice::Leaner { stored, fast, room } => write!(
                f,
                "fewer elements: {stored} are stored between groups; with the fewest operations it would be {fast}, \
                 and {room} may be"
            ),
            Choice::NotLeaner { stored, lean, room } => write!(
                f,
                "fewest operations: {stored} elements are stored between groups, where {room} may be; \
                 to avoid large parts would store {lean}"
            ),
        }
    }
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

/// Whether there is so little to do at these sizes that plain loops are made.
pub fn is_little(program: &Program, sizes: &[Int]) -> bool {
    let estimate = &estimate(program, sizes);
    let mut extents = program.definitions.iter().flat_map(|d| schedule::extents(d, estimate));
    if extents.any(|extent| extent > cost::PLAIN_LOOP_VALUES) {
        return false;
    }
    let each = cost::PLAIN_ADDITIONS_PER_DEFINITION * program.definitions.len() as f64;
    additions(program, estimate) < cost::PLAIN_ADDITIONS.max(each)
}

/// What all definitions take in plain loops, in additions.
fn additions(program: &Program, estimate: &[f64]) -> f64 {
    let exprs = &program.exprs;
    let of_definition = |definition: &Definition| {
        let points: f64 = schedule::extents(definition, estimate).iter().product();
        points * exprs.postorder(definition.body).into_iter().map(|id| cost::plain_operation(exprs, id)).sum::<f64>()
    };
    program.definitions.iter().map(of_definition).sum()
}
