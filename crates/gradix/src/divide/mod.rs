//! A program with recurrences as programs without, which are run in turn and step by step.
//!
//! ```text
//! h[t, i] = f(h[t - 1, i], x[t, i])                at the step t: h_now[i] = f(h[t - 1, i], x[t, i]), stored as h[t, i]
//! ```
//!
//! At each step of a level, the index that the level goes through is a size. What was computed at other steps, or in
//! other parts, is an input; what belongs to the same part is read from there.

mod accumulate;
mod follow;
mod launches;
pub mod levels;
mod named;
mod results;
mod segments;

pub use launches::with_fewer_launches;

use crate::diagnostic::Diagnostic;
use crate::domain::estimate::estimate;
use crate::domain::guard::{self, Guarded};
use crate::domain::order::{self, Level};
use crate::domain::{extent, system};
use crate::program::expr::{Rewriter, Rules};
use crate::program::{
    Affine, Constraint, Definition, Expr, ExprId, Exprs, Index, Param, ParamId, ParamKind, Places, Program, Tensor,
    TensorId, TensorKind, circles, distinct, names, verify,
};
use crate::simplify;
use crate::target::Target;
use gradix_int::Int;
use std::collections::{HashMap, HashSet};

/// A dimension of some tensors, and how many of its values are kept.
pub type Rings = HashMap<TensorId, (usize, i64)>;

/// A program in parts.
#[derive(Clone, Debug)]
pub struct Divided {
    /// The program, with a size for the steps of each level.
    pub whole: Program,
    /// The parts.
    pub parts: Vec<Part>,
    /// When each is run.
    pub stages: Vec<Stage>,
    /// What is stored between parts or steps, of all that the program defines.
    pub stored: Vec<TensorId>,
    /// Of some of it, only the last steps are read: the dimension, and how many of its values are kept.
    pub rings: Rings,
}

/// A program without recurrences.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its sizes are those of the whole program, and the steps of the levels around it.
    pub program: Program,
    /// For each input, the tensor of the whole program.
    pub inputs: Vec<TensorId>,
    /// For each result, the tensor of the whole program.
    pub outputs: Vec<TensorId>,
    /// The dimensions of a result, by its position, that steps give a value.
    pub fixed: Vec<Vec<(usize, ParamId)>>,
    /// For each level around it, how many of its steps it takes part in.
    pub steps: Vec<(ParamId, Affine)>,
}

/// What is run, in order.
#[derive(Clone, Debug)]
pub enum Stage {
    /// A part, by number.
    Part(usize),
    /// A level: its stages are run for each value.
    Time {
        /// The size of the whole program that takes the values.
        time: ParamId,
        /// How many there are.
        steps: Affine,
        /// Whether they fall.
        falling: bool,
        /// Which of them, if not all.
        window: Option<Window>,
        /// What is run for each.
        stages: Vec<Stage>,
    },
}

/// Some of the steps of a level: so many from `size * outer - before` on, where `outer` goes through segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The segment.
    pub outer: ParamId,
    /// The steps of a segment.
    pub size: i64,
    /// How many steps before the segment the first one is.
    pub before: i64,
    /// How many steps there are, as far as the level has them.
    pub values: i64,
}

/// The parts that a stage runs.
pub fn parts_of(stage: &Stage) -> Vec<usize> {
    match stage {
        Stage::Part(part) => vec![*part],
        Stage::Time { stages, .. } => stages.iter().flat_map(parts_of).collect(),
    }
}

/// Whether a stage goes through segments.
pub fn is_segmented(stage: &Stage) -> bool {
    let has_window = |stage: &Stage| matches!(stage, Stage::Time { window: Some(_), .. });
    matches!(stage, Stage::Time { stages, .. } if stages.iter().any(has_window))
}

impl Window {
    /// The first value, where it is one of the level.
    pub fn start(&self) -> Affine {
        Affine::param(self.outer).scale(&Int::from(self.size)).shift(-self.before)
    }

    /// The values of a level with so many steps, where sizes and steps have these values.
    pub fn range(&self, sizes: &[i64], steps: i64) -> std::ops::Range<i64> {
        let start = self.size * sizes[self.outer.0 as usize] - self.before;
        start.max(0)..(start + self.values).clamp(0, steps).max(start.max(0))
    }
}

/// Divides a program whose sizes have about these values; one without recurrences is a single part.
pub fn divide(program: &Program, given: &[Int], target: &Target) -> Result<Divided, Diagnostic> {
    if circles::circles(program).is_empty() {
        return Ok(undivided(program));
    }
    let mut whole = named::before_levels(named::outside(program)?)?;
    results::in_place(&mut whole);
    let sizes = estimate(&whole, given);
    let sums = accumulate::nested(&whole, &sizes, target);
    if !sums.is_empty() {
        simplify::settle::name_some(&mut whole, sums)?;
    }
    let mut stages = ordered(&whole)?;
    if let Some(with_sums) = accumulate::accumulate(&whole, &stages, &sizes, target) {
        whole = with_sums;
        stages = ordered(&whole)?;
    }
    let stages = follow::follow(&whole, stages, &sizes, target);
    let mut dividing = Dividing { taken: names::taken(&whole), fixed: HashMap::new(), parts: Vec::new() };
    let stages = dividing.stages(&mut whole, &stages)?;
    let Dividing { mut parts, .. } = dividing;
    let read: HashSet<TensorId> = parts.iter().flat_map(|part| part.inputs.iter().copied()).collect();
    for part in &mut parts {
        part.program.params = with_times(&whole, &part.steps);
        let is_stored = |tensor: &TensorId| read.contains(tensor) || whole.outputs.contains(tensor);
        let kept: Vec<bool> = part.outputs.iter().map(is_stored).collect();
        retain(&mut part.outputs, &kept);
        retain(&mut part.fixed, &kept);
        retain(&mut part.program.outputs, &kept);
        debug_assert_eq!(verify(&part.program), Ok(()));
        simplify::settle::drop_unread(&mut part.program);
    }
    let mut stored: Vec<TensorId> = parts.iter().flat_map(|part| part.outputs.iter().copied()).collect();
    stored.sort();
    stored.dedup();
    let kept = |tensor: &TensorId| Some((*tensor, ring(&whole, &parts, &stages, *tensor)?));
    let rings = stored.iter().filter(|tensor| !whole.outputs.contains(tensor)).filter_map(kept).collect();
    let mut divided = Divided { whole, parts, stages, stored, rings };
    let sizes = estimate(&divided.whole, given);
    segments::segment(&mut divided, &sizes, target.memory_bytes);
    Ok(divided)
}

fn undivided(program: &Program) -> Divided {
    let (inputs, outputs) = (program.inputs().collect(), program.outputs.clone());
    let fixed = vec![Vec::new(); outputs.len()];
    let part = Part { program: program.clone(), inputs, outputs, fixed, steps: Vec::new() };
    let (stored, rings) = (program.outputs.clone(), Rings::new());
    Divided { whole: program.clone(), parts: vec![part], stages: vec![Stage::Part(0)], stored, rings }
}

/// The dimension that steps go through and how many of its values have to be kept, if every read is of one of the last few
/// steps: at the step of the reader, or after all of them.
fn ring(whole: &Program, parts: &[Part], stages: &[Stage], tensor: TensorId) -> Option<(usize, i64)> {
    let made = |part: &Part| Some(part.fixed[part.outputs.iter().position(|output| *output == tensor)?].clone());
    let (dimension, time) = *parts.iter().find_map(made)?.first()?;
    let falling = stages.iter().find_map(|stage| match stage {
        Stage::Time { time: own, falling, .. } if *own == time => Some(*falling),
        Stage::Time { .. } | Stage::Part(_) => None,
    })?;
    let last = whole[tensor].extents[dimension].shift(-1);
    let mut kept = 1;
    for part in parts {
        let Some(input) = part.inputs.iter().position(|input| *input == tensor) else { continue };
        let goes_along = part.steps.iter().any(|(own, _)| *own == time);
        let now = match (goes_along, falling) {
            (true, _) => Affine::param(time),
            (false, true) => Affine::constant(0),
            (false, false) => last.clone(),
        };
        let bodies = part.program.definitions.iter().map(|definition| definition.body);
        let reads = bodies.flat_map(|body| part.program.exprs.accesses(body));
        for (_, subscripts) in reads.filter(|(read, _)| *read == TensorId(input as u32)) {
            let back = now.clone() - subscripts[dimension].clone();
            let back = if falling { -back } else { back };
            let steps = i64::try_from(back.as_constant()?).ok().filter(|steps| (0..MAX_RING).contains(steps))?;
            kept = kept.max(steps + 1);
        }
    }
    Some((dimension, kept))
}

/// The most steps that are kept in a ring.
const MAX_RING: i64 = 16;

fn retain<T>(list: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    list.retain(|_| *kept.next().unwrap_or(&true));
}

/// The sizes of the whole program, where the steps of a part are its own.
fn with_times(whole: &Program, steps: &[(ParamId, Affine)]) -> Vec<Param> {
    let mut params = whole.params.clone();
    for (ParamId(time), own) in steps {
        params[*time as usize].kind = ParamKind::Time(own.clone());
    }
    params
}

fn ordered(program: &Program) -> Result<Vec<order::Stage>, Diagnostic> {
    order::order(program).map_err(|error| error.describe(program, &Places::default()))
}

struct Dividing {
    taken: HashSet<String>,
    /// The indices of definitions, by number, that the levels around have given a value.
    fixed: HashMap<usize, Vec<(usize, ParamId)>>,
    parts: Vec<Part>,
}

impl Dividing {
    fn stages(&mut self, whole: &mut Program, stages: &[order::Stage]) -> Result<Vec<Stage>, Diagnostic> {
        let (mut divided, mut together): (Vec<Stage>, Vec<usize>) = (Vec::new(), Vec::new());
        for stage in stages {
            match stage {
                order::Stage::Definition(number) => {
                    if together.first().is_some_and(|first| self.steps(whole, *first) != self.steps(whole, *number)) {
                        divided.push(self.part(whole, std::mem::take(&mut together))?);
                    }
                    together.push(*number);
                }
                order::Stage::Level(level) => {
                    if !together.is_empty() {
                        divided.push(self.part(whole, std::mem::take(&mut together))?);
                    }
                    divided.push(self.level(whole, level)?);
                }
            }
        }
        if !together.is_empty() {
            divided.push(self.part(whole, together)?);
        }
        Ok(divided)
    }

    fn level(&mut self, whole: &mut Program, level: &Level) -> Result<Stage, Diagnostic> {
        let extents = level.members.iter().map(|&(number, index)| {
            let tensor = whole.definitions[number].tensor;
            whole[tensor].extents[index].clone()
        });
        let steps = extent::extent(whole, extents.collect(), false);
        let (first, index) = level.members[0];
        let name = names::fresh(&whole.definitions[first].indices[index].name, &mut self.taken);
        let time = ParamId(whole.params.len() as u32);
        whole.params.push(Param { name, kind: ParamKind::Time(steps.clone()) });
        for &(number, index) in &level.members {
            self.fixed.entry(number).or_default().push((index, time));
        }
        let stages = self.stages(whole, &level.stages)?;
        for (number, _) in &level.members {
            self.fixed.entry(*number).or_default().pop();
        }
        Ok(Stage::Time { time, steps, falling: level.falling, window: None, stages })
    }

    /// For each level around a definition, how many steps it has.
    fn steps(&self, whole: &Program, number: usize) -> Vec<(ParamId, Affine)> {
        let tensor = whole.definitions[number].tensor;
        let fixed = self.fixed.get(&number).map_or(&[][..], Vec::as_slice);
        fixed.iter().map(|&(index, time)| (time, whole[tensor].extents[index].clone())).collect()
    }

    fn part(&mut self, whole: &Program, members: Vec<usize>) -> Result<Stage, Diagnostic> {
        let steps = self.steps(whole, members[0]);
        let mut making = Making::new(whole, &members, &self.fixed, &steps);
        for &number in &members {
            let fixed = self.fixed.get(&number).cloned().unwrap_or_default();
            making.definition(number, &fixed, &[])?;
        }
        let Making { program, inputs, .. } = making;
        let outputs = members.iter().map(|&number| whole.definitions[number].tensor).collect();
        let fixed = members.iter().map(|number| self.fixed.get(number).cloned().unwrap_or_default()).collect();
        self.parts.push(Part { program, inputs, outputs, fixed, steps });
        Ok(Stage::Part(self.parts.len() - 1))
    }
}

/// A part that is being made.
struct Making<'a> {
    whole: &'a Program,
    program: Program,
    /// The tensors of the whole program that are its inputs.
    inputs: Vec<TensorId>,
    /// The same, by tensor.
    known: HashMap<TensorId, TensorId>,
    /// The members, by tensor: what each is at the step at hand, and which of its dimensions are fixed.
    own: HashMap<TensorId, (TensorId, Vec<(usize, ParamId)>)>,
    nested: HashMap<TensorId, usize>,
}

impl<'a> Making<'a> {
    fn new(
        whole: &'a Program,
        members: &[usize],
        fixed: &HashMap<usize, Vec<(usize, ParamId)>>,
        steps: &[(ParamId, Affine)],
    ) -> Self {
        let mut program =
            Program { params: with_times(whole, steps), facts: whole.facts.clone(), ..Program::default() };
        program.exprs = whole.exprs.clone();
        let is_nested = |(_, d): &(usize, &Definition)| whole[d.tensor].kind == TensorKind::Nested;
        let nested = whole.definitions.iter().enumerate().filter(is_nested).map(|(n, d)| (d.tensor, n)).collect();
        let mut making =
            Making { whole, program, inputs: Vec::new(), known: HashMap::new(), own: HashMap::new(), nested };
        let mut taken = names::taken(whole);
        let members = members.iter().map(|number| (whole.definitions[*number].tensor, fixed.get(number)));
        let members: Vec<(TensorId, Vec<(usize, ParamId)>)> =
            members.map(|(tensor, fixed)| (tensor, fixed.cloned().unwrap_or_default())).collect();
        for tensor in making.read(&members) {
            let input = Tensor { kind: TensorKind::Input, ..whole[tensor].clone() };
            let id = making.program.add_tensor(input);
            making.known.insert(tensor, id);
            making.inputs.push(tensor);
        }
        for (tensor, fixed) in members {
            let record = &whole[tensor];
            let free = |(dimension, _): &(usize, &Affine)| fixed.iter().all(|(index, _)| index != dimension);
            let extents: Vec<Affine> = record.extents.iter().enumerate().filter(free).map(|(_, e)| e.clone()).collect();
            let name = match fixed.is_empty() {
                true => record.name.clone(),
                false => names::fresh(&format!("{}_now", record.name), &mut taken),
            };
            let now = making.program.add_defined(name, extents);
            making.program.outputs.push(now);
            making.own.insert(tensor, (now, fixed));
        }
        making
    }

    /// All that the members read, by way of nested definitions, too: but not what they are at every step anyway.
    fn read(&self, members: &[(TensorId, Vec<(usize, ParamId)>)]) -> Vec<TensorId> {
        let (mut found, mut open): (Vec<TensorId>, Vec<TensorId>) =
            (Vec::new(), members.iter().map(|(tensor, _)| *tensor).collect());
        let without_steps = |tensor: TensorId| members.iter().any(|(own, fixed)| *own == tensor && fixed.is_empty());
        while let Some(tensor) = open.pop() {
            let definition = self.whole.definition_of(tensor).expect("it is defined");
            for (read, _) in self.whole.exprs.accesses(definition.body) {
                match self.whole[read].kind {
                    TensorKind::Nested => open.push(read),
                    TensorKind::Defined if without_steps(read) => {}
                    TensorKind::Defined | TensorKind::Input if !found.contains(&read) => found.push(read),
                    TensorKind::Defined | TensorKind::Input => {}
                }
            }
        }
        found.sort();
        found
    }

    /// Adds a definition of the whole program in which some outputs have values; of a nested one, `known` holds for the
    /// outputs that are left wherever it is read.
    fn definition(
        &mut self,
        number: usize,
        fixed: &[(usize, ParamId)],
        known: &[Constraint],
    ) -> Result<(), Diagnostic> {
        let old = &self.whole.definitions[number];
        let map = renumbered(old, fixed);
        let is_free = |position: &usize| fixed.iter().all(|(index, _)| index != position);
        let kept: Vec<usize> = (0..old.indices.len()).filter(is_free).collect();
        let moved = |rows: &[Constraint]| rows.iter().map(|row| row.with_indices(&map)).collect::<Vec<_>>();
        let indices = kept.iter().map(|&position| {
            let Index { name, range } = &old.indices[position];
            Index { name: name.clone(), range: range.map(|bound| bound.with_indices(&map)) }
        });
        let tensor = match self.own.get(&old.tensor) {
            Some((now, _)) => *now,
            None => self.known[&old.tensor],
        };
        let mut definition = Definition {
            tensor,
            indices: indices.collect(),
            rank: old.rank - fixed.len(),
            reduction: old.reduction,
            conditions: distinct(moved(&old.conditions)),
            assumptions: [moved(&old.assumptions), known.to_vec()].concat(),
            body: old.body,
        };
        let reads = self.reads(old, &definition, fixed, &map)?;
        let mut rules = Stepped { map: &map, reads: &reads };
        definition.body = Rewriter::default().rewrite(&mut self.program.exprs, old.body, &mut rules);
        self.program.definitions.push(definition);
        Ok(())
    }

    /// What becomes of each element that a definition reads; nested definitions are added on the way.
    fn reads(
        &mut self,
        old: &Definition,
        new: &Definition,
        fixed: &[(usize, ParamId)],
        map: &[Affine],
    ) -> Result<HashMap<(TensorId, Vec<Affine>), Source>, Diagnostic> {
        let mut sources = HashMap::new();
        let mut known = Guarded::new([self.program.size_context(), new.domain()].concat());
        for (access, guards) in guard::guarded_accesses(&mut self.program.exprs, old.body) {
            let Expr::Access(tensor, subscripts) = self.program.exprs[access].clone() else { continue };
            let guards: Vec<Vec<Constraint>> =
                guards.iter().map(|guard| guard.iter().map(|row| row.with_indices(map)).collect()).collect();
            let moved: Vec<Affine> = subscripts.iter().map(|s| s.with_indices(map)).collect();
            let source = if self.whole[tensor].kind == TensorKind::Nested {
                let dropped: Vec<(usize, ParamId)> = subscripts
                    .iter()
                    .enumerate()
                    .filter_map(|(dimension, subscript)| {
                        let position = subscript.as_index()?;
                        fixed.iter().find(|(index, _)| *index == position).map(|(_, time)| (dimension, *time))
                    })
                    .collect();
                self.nested(tensor, &dropped, &moved, &guards)?
            } else {
                match self.own.get(&tensor) {
                    Some((now, fixed)) => {
                        now_or_before(*now, self.known.get(&tensor).copied(), fixed, &moved, &guards, &mut known)
                    }
                    None => {
                        Source { now: None, before: Some(self.known[&tensor]), when: Vec::new(), dropped: Vec::new() }
                    }
                }
            };
            sources.insert((tensor, moved), source);
        }
        Ok(sources)
    }

    /// Adds a nested definition that is read at these subscripts, under one of these guards.
    fn nested(
        &mut self,
        tensor: TensorId,
        dropped: &[(usize, ParamId)],
        subscripts: &[Affine],
        guards: &[Vec<Constraint>],
    ) -> Result<Source, Diagnostic> {
        if !self.known.contains_key(&tensor) {
            let rank = self.whole[tensor].rank - dropped.len();
            let id = self.program.add_nested(self.whole[tensor].name.clone(), rank);
            self.known.insert(tensor, id);
            // What the reader's guard says, in the outputs of the nested definition.
            let free = subscripts.iter().enumerate().filter(|(d, _)| dropped.iter().all(|(drop, _)| drop != d));
            let places: HashMap<usize, usize> =
                free.enumerate().filter_map(|(new, (_, subscript))| Some((subscript.as_index()?, new))).collect();
            let rows = match guards {
                [guard] => guard.iter().filter_map(|row| in_outputs(row, &places)).collect(),
                _ => Vec::new(),
            };
            self.definition(self.nested[&tensor], dropped, &rows)?;
        }
        let dropped = dropped.iter().map(|(dimension, _)| *dimension).collect();
        Ok(Source { now: Some(self.known[&tensor]), before: None, when: Vec::new(), dropped })
    }
}

/// A constraint on indices of a reader in those of what it reads, if it is about these alone.
fn in_outputs(row: &Constraint, places: &HashMap<usize, usize>) -> Option<Constraint> {
    let (mut inside, mut highest) = (true, 0);
    row.affine.visit_indices(&mut |index| {
        inside &= places.contains_key(&index);
        highest = highest.max(index + 1);
    });
    let map: Vec<Affine> = (0..highest).map(|i| Affine::index(places.get(&i).copied().unwrap_or(0))).collect();
    inside.then(|| row.with_indices(&map))
}

/// Where the indices of a definition go: some have values, the others move up.
fn renumbered(definition: &Definition, fixed: &[(usize, ParamId)]) -> Vec<Affine> {
    let mut next = 0;
    let place = |position: usize| match fixed.iter().find(|(index, _)| *index == position) {
        Some((_, time)) => Affine::param(*time),
        None => {
            next += 1;
            Affine::index(next - 1)
        }
    };
    (0..definition.indices.len()).map(place).collect()
}

/// Where an element of a tensor is read.
#[derive(Debug)]
struct Source {
    /// What the part computes itself.
    now: Option<TensorId>,
    /// What was computed before.
    before: Option<TensorId>,
    /// When it is `now`, where that is not clear.
    when: Vec<Constraint>,
    /// The dimensions that `now` does not have.
    dropped: Vec<usize>,
}

/// Where an element of a member is read: at the step at hand, earlier, or now one and now the other.
fn now_or_before(
    now: TensorId,
    before: Option<TensorId>,
    fixed: &[(usize, ParamId)],
    subscripts: &[Affine],
    guards: &[Vec<Constraint>],
    known: &mut Guarded,
) -> Source {
    let dropped = fixed.iter().map(|(dimension, _)| *dimension).collect();
    let known_rows = known.known().to_vec();
    if guards.iter().all(|guard| system::is_empty(&[known_rows.as_slice(), guard].concat())) {
        return Source { now: None, before: None, when: Vec::new(), dropped };
    }
    let equal: Vec<Constraint> = fixed
        .iter()
        .map(|&(dimension, time)| Constraint::equal(subscripts[dimension].clone(), Affine::param(time)))
        .collect();
    if guards.iter().all(|guard| equal.iter().all(|row| known.under(guard).implies(row))) {
        return Source { now: Some(now), before: None, when: Vec::new(), dropped };
    }
    let never = |guard: &Vec<Constraint>| system::is_empty(&[known_rows.as_slice(), guard, &equal].concat());
    if guards.iter().all(never) {
        return Source { now: None, before, when: Vec::new(), dropped };
    }
    Source { now: Some(now), before, when: equal, dropped }
}

/// A body at a step.
struct Stepped<'a> {
    map: &'a [Affine],
    reads: &'a HashMap<(TensorId, Vec<Affine>), Source>,
}

impl Rules for Stepped<'_> {
    fn affine(&mut self, affine: &Affine) -> Affine {
        affine.with_indices(self.map)
    }

    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        let Source { now, before, when, dropped } = &self.reads[&(tensor, subscripts.clone())];
        let free = subscripts.iter().enumerate().filter(|(dimension, _)| !dropped.contains(dimension));
        let free: Vec<Affine> = free.map(|(_, subscript)| subscript.clone()).collect();
        match (*now, *before) {
            (Some(now), None) => exprs.access(now, free),
            (None, Some(before)) => exprs.access(before, subscripts),
            (Some(now), Some(before)) => {
                let (now, before) = (exprs.access(now, free), exprs.access(before, subscripts));
                let condition = guard::all(exprs, when).expect("there is something to tell them apart");
                exprs.add(Expr::Select(condition, now, before))
            }
            // It is never read.
            (None, None) => exprs.constant(0.0),
        }
    }
}
