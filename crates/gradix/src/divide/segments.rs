//! A trajectory in segments: where it is larger than memory, only the states before each segment are kept, and the steps of one
//! segment after the other are computed again for what goes back.
//!
//! ```text
//! for t rising: h[t] = …            for segments: kept[segment] = h before it; for its t, rising: h[t] = …
//! for t falling: dh[t] reads h[t]   for segments, falling: h before it = kept[segment]; for its t, rising: h[t] = …;
//!                                       for its t, falling: dh[t] = …
//! ```
//!
//! With segments of about the square root of all steps, that is about twice as many states. Each step is computed in the same way
//! both times, so that its bits are those of the whole trajectory.

use super::{Divided, Part, Stage, Window, parts_of, with_times};
use crate::domain::{guard, system};
use crate::program::{
    Affine, Constraint, Definition, Expr, Index, Param, ParamId, ParamKind, Program, Tensor, TensorId, TensorKind,
    build, names,
};
use crate::scalar::Real;
use gradix_int::Int;

/// Levels of fewer steps stay whole.
const LEAST_STEPS: f64 = 16.0;
/// The most steps back that are read.
const MAX_BACK: i64 = 16;

/// Puts levels into segments whose trajectories take more bytes than this at these sizes.
pub fn segment(divided: &mut Divided, sizes: &[f64], bytes: i64) {
    for forth in 0..divided.stages.len() {
        for back in forth + 1..divided.stages.len() {
            if let Some(trajectory) =
                trajectory(divided, forth, back).filter(|found| found.bytes(divided, sizes) > bytes as f64)
            {
                apply(divided, (forth, back), &trajectory, sizes);
                return;
            }
        }
    }
}

/// What a level makes that is no result.
struct Trajectory {
    /// Each with the dimension that steps go through; of those after the others, only the last steps were kept anyway.
    whole: Vec<(TensorId, usize)>,
    rings: Vec<(TensorId, usize)>,
    /// How many steps back it is read, at most.
    back: i64,
    /// How many steps ahead of the one that goes back: those have been computed again for the segment before.
    ahead: i64,
}

impl Trajectory {
    fn bytes(&self, divided: &Divided, sizes: &[f64]) -> f64 {
        let elements = self.whole.iter().map(|(tensor, _)| divided.whole[*tensor].elements(sizes));
        elements.sum::<f64>() * Real::F64.bytes() as f64
    }
}

/// The trajectory of a level, if all that reads it goes back along it, or reads its end before that.
fn trajectory(divided: &Divided, forth: usize, back: usize) -> Option<Trajectory> {
    let level = |place: usize| match &divided.stages[place] {
        Stage::Time { time, falling, window: None, .. } => Some((*time, *falling)),
        Stage::Time { .. } | Stage::Part(_) => None,
    };
    let ((rising, false), (falling, true)) = (level(forth)?, level(back)?) else { return None };
    let places: Vec<Vec<usize>> = divided.stages.iter().map(parts_of).collect();
    let place = |part: usize| places.iter().position(|parts| parts.contains(&part));
    let mut found = Trajectory { whole: Vec::new(), rings: Vec::new(), back: 1, ahead: 0 };
    for &number in &places[forth] {
        let Part { outputs, fixed, .. } = &divided.parts[number];
        for (tensor, fixed) in outputs.iter().zip(fixed).filter(|(tensor, _)| !divided.whole.outputs.contains(tensor)) {
            let (dimension, _) = *fixed.iter().find(|(_, time)| *time == rising)?;
            let list = if divided.rings.contains_key(tensor) { &mut found.rings } else { &mut found.whole };
            list.push((*tensor, dimension));
        }
    }
    let all = || found.whole.iter().map(|own| (own, true)).chain(found.rings.iter().map(|own| (own, false)));
    let (mut most, mut ahead) = (1, 0);
    for (&(tensor, dimension), is_whole) in all() {
        for (number, part) in divided.parts.iter().enumerate() {
            let Some(input) = part.inputs.iter().position(|input| *input == tensor) else { continue };
            let last = divided.whole[tensor].extents[dimension].shift(-1);
            let (now, always) = match place(number)? {
                own if own == forth => (Affine::param(rising), None),
                own if own == back && is_whole => (Affine::param(falling), None),
                // A ring has its end when the last segment has been computed again.
                own if own == back => (last.clone(), Some(Constraint::at_most(last, Affine::param(falling)))),
                own if forth < own && own < back => (last, None),
                _ => return None,
            };
            let reads = Reads { program: &part.program, input: TensorId(input as u32), dimension, always };
            for (read_back, read_ahead) in reads.reaches(&now)? {
                let goes_ahead = read_ahead > 0 && place(number)? != back;
                (most, ahead) = (!goes_ahead).then(|| (most.max(read_back), ahead.max(read_ahead)))?;
            }
        }
    }
    (found.back, found.ahead) = (most, ahead);
    (!found.whole.is_empty()).then_some(found)
}

/// Where a part reads an input, along a dimension.
struct Reads<'a> {
    program: &'a Program,
    input: TensorId,
    dimension: usize,
    /// What has to be known wherever it is read.
    always: Option<Constraint>,
}

impl Reads<'_> {
    /// How many steps back and ahead of one it reads; `None` if that is not known, or too far.
    fn reaches(&self, now: &Affine) -> Option<Vec<(i64, i64)>> {
        let (mut exprs, context) = (self.program.exprs.clone(), self.program.size_context());
        let mut found = Vec::new();
        for definition in &self.program.definitions {
            let domain = definition.domain();
            for (access, guards) in guard::guarded_accesses(&mut exprs, definition.body) {
                let Expr::Access(read, subscripts) = &self.program.exprs[access] else { continue };
                if *read == self.input {
                    let back = now.clone() - subscripts[self.dimension].clone();
                    let known = guards.iter().map(|guard| [context.as_slice(), &domain, guard].concat());
                    found.extend(known.map(|known| self.reach(&known, &back)).collect::<Option<Vec<_>>>()?);
                }
            }
        }
        Some(found)
    }

    fn reach(&self, known: &[Constraint], back: &Affine) -> Option<(i64, i64)> {
        let is_fine = self.always.as_ref().is_none_or(|always| system::implies(known, always));
        is_fine.then(|| reach(known, back))?
    }
}

/// Bounds of a number of steps, back and ahead, where this is known.
fn reach(known: &[Constraint], back: &Affine) -> Option<(i64, i64)> {
    if let Some(steps) = back.as_constant() {
        let steps = i64::try_from(steps).ok().filter(|steps| (-MAX_BACK..MAX_BACK).contains(steps))?;
        return Some((steps.max(0), (-steps).max(0)));
    }
    let most = |affine: &Affine| {
        let is_bound =
            |steps: &i64| system::implies(known, &Constraint::at_most(affine.shift(-*steps), Affine::constant(0)));
        (0..MAX_BACK).find(is_bound)
    };
    Some((most(back)?, most(&-back.clone())?))
}

fn apply(divided: &mut Divided, (forth, back): (usize, usize), trajectory: &Trajectory, sizes: &[f64]) {
    let (
        Stage::Time { time: rising, steps, stages: inner, .. },
        Stage::Time { time: falling, steps: other_steps, stages: back_inner, .. },
    ) = (divided.stages[forth].clone(), divided.stages[back].clone())
    else {
        return;
    };
    let count = steps.estimate(&[], sizes).max(other_steps.estimate(&[], sizes));
    if count < LEAST_STEPS {
        return;
    }
    let size = count.sqrt().ceil() as i64;
    let mut taken = names::taken(&divided.whole);
    let longest = crate::domain::extent::extent(&mut divided.whole, vec![steps.clone(), other_steps.clone()], false);
    let segments = longest.shift(size - 1).floor_div(&Int::from(size));
    let mut time = |name: &str, steps: &Affine| {
        let name = names::fresh(name, &mut taken);
        divided.whole.params.push(Param { name, kind: ParamKind::Time(steps.clone()) });
        ParamId(divided.whole.params.len() as u32 - 1)
    };
    let (segment, before) = (time("segment", &segments), time("before", &longest));
    let times =
        Times { segment, before, segments: segments.clone(), longest: longest.clone(), size, back: trajectory.back };
    let (mut saves, mut restores) = (Vec::new(), Vec::new());
    for &(tensor, dimension) in trajectory.whole.iter().chain(&trajectory.rings) {
        let all = size + trajectory.back + trajectory.ahead;
        let kept = divided.rings.get(&tensor).map_or(all, |(_, kept)| (*kept).max(trajectory.back + 1));
        divided.rings.insert(tensor, (dimension, kept));
        let states = add_states(divided, tensor, dimension, &times);
        for (part, list) in [
            (save(divided, tensor, dimension, states, &times), &mut saves),
            (restore(divided, tensor, dimension, states, &times), &mut restores),
        ] {
            divided.parts.push(part);
            list.push(Stage::Part(divided.parts.len() - 1));
        }
    }
    let own = Window { outer: segment, size, before: 0, values: size };
    let earlier = Window { before: trajectory.back, values: trajectory.back, ..own };
    let again = |stages: Vec<Stage>| Stage::Time {
        time: rising,
        steps: steps.clone(),
        falling: false,
        window: Some(own),
        stages,
    };
    let goes_back =
        Stage::Time { time: falling, steps: other_steps, falling: true, window: Some(own), stages: back_inner };
    let restored =
        Stage::Time { time: before, steps: longest, falling: false, window: Some(earlier), stages: restores };
    saves.push(again(inner.clone()));
    let outer = |falling: bool, stages: Vec<Stage>| Stage::Time {
        time: segment,
        steps: segments.clone(),
        falling,
        window: None,
        stages,
    };
    divided.stages[forth] = outer(false, saves);
    divided.stages[back] = outer(true, vec![restored, again(inner), goes_back]);
}

/// What segments are counted by.
struct Times {
    segment: ParamId,
    /// Goes through the steps before a segment that are kept.
    before: ParamId,
    segments: Affine,
    longest: Affine,
    size: i64,
    back: i64,
}

impl Times {
    /// The first step of the segment at hand.
    fn start(&self) -> Affine {
        Affine::param(self.segment).scale(&Int::from(self.size))
    }
}

/// The states before all segments: `kept[segment, which, …]`.
fn add_states(divided: &mut Divided, tensor: TensorId, dimension: usize, times: &Times) -> TensorId {
    let Tensor { name, mut extents, .. } = divided.whole[tensor].clone();
    extents.remove(dimension);
    extents.splice(0..0, [times.segments.clone(), Affine::constant(times.back)]);
    let name = names::fresh(&format!("{name}_kept"), &mut names::taken(&divided.whole));
    let states = divided.whole.add_defined(name, extents);
    divided.stored.push(states);
    states
}

/// `kept[segment, which, …] = h[start - back + which, …]`
fn save(divided: &Divided, tensor: TensorId, dimension: usize, states: TensorId, times: &Times) -> Part {
    let steps = vec![(times.segment, times.segments.clone())];
    let mut program = empty(divided, &steps);
    let source = program.add_tensor(Tensor { kind: TensorKind::Input, ..divided.whole[tensor].clone() });
    let extents = divided.whole[states].extents[1..].to_vec();
    let place = times.start().shift(-times.back) + Affine::index(0);
    let mut at: Vec<Affine> = (1..extents.len()).map(Affine::index).collect();
    at.insert(dimension, place.clone());
    let read = program.exprs.access(source, at);
    let last = divided.whole[tensor].extents[dimension].shift(-1);
    let inside = [Constraint::non_negative(place.clone()), Constraint::at_most(place, last)];
    let (condition, zero) = (guard::all(&mut program.exprs, &inside), program.exprs.constant(0.0));
    let body = condition.map_or(read, |condition| build::select(&mut program.exprs, condition, read, zero));
    define(&mut program, &format!("{}_now", divided.whole[states].name), extents, body);
    Part { program, inputs: vec![tensor], outputs: vec![states], fixed: vec![vec![(0, times.segment)]], steps }
}

/// `h[before, …] = kept[segment, before - start + back, …]`
fn restore(divided: &Divided, tensor: TensorId, dimension: usize, states: TensorId, times: &Times) -> Part {
    let last = divided.whole[tensor].extents[dimension].clone();
    let steps = vec![(times.segment, times.segments.clone()), (times.before, last)];
    let mut program = empty(divided, &[steps[0].clone(), (times.before, times.longest.clone())]);
    let which = Affine::param(times.before) - times.start().shift(-times.back);
    program.facts.push(Constraint::non_negative(which.clone()));
    program.facts.push(Constraint::at_most(which.clone(), Affine::constant(times.back - 1)));
    let source = program.add_tensor(Tensor { kind: TensorKind::Input, ..divided.whole[states].clone() });
    let mut extents = divided.whole[tensor].extents.clone();
    extents.remove(dimension);
    let at = [Affine::param(times.segment), which].into_iter().chain((0..extents.len()).map(Affine::index));
    let body = program.exprs.access(source, at.collect());
    define(&mut program, &format!("{}_before", divided.whole[tensor].name), extents, body);
    Part { program, inputs: vec![states], outputs: vec![tensor], fixed: vec![vec![(dimension, times.before)]], steps }
}

fn empty(divided: &Divided, steps: &[(ParamId, Affine)]) -> Program {
    let (params, facts) = (with_times(&divided.whole, steps), divided.whole.facts.clone());
    Program { params, facts, ..Program::default() }
}

/// Defines the one result of a program.
fn define(program: &mut Program, name: &str, extents: Vec<Affine>, body: crate::program::ExprId) {
    let indices = Index::numbered(&extents);
    let name = names::fresh(name, &mut names::taken(program));
    let tensor = program.add_defined(name, extents);
    program.outputs.push(tensor);
    program.definitions.push(Definition::pointwise(tensor, indices, body));
}
