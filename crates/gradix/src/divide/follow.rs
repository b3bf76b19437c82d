//! What reads the steps of a recurrence one by one, as part of these steps.
//!
//! ```text
//! for each t: h[t, s] = …; then for all t: y[t] = sum[s] c[s] * h[t, s]
//! for each t: h[t, s] = …, y[t] = sum[s] c[s] * h[t, s]
//! ```
//!
//! A step is then read while it is near, and what nothing else reads is kept for a few steps only. That pays where all steps
//! together are more than a cache holds; what has much to do with each element is better done for all steps at once.

use crate::domain::order::{self, Level, Stage};
use crate::economise::work;
use crate::program::{Definition, Program, TensorId, TensorKind, distinct};
use crate::scalar::Real;
use crate::target::{Target, cost};

/// The stages of a program with such definitions, and recurrences, inside of the levels that they read.
pub fn follow(program: &Program, stages: Vec<Stage>, sizes: &[f64], target: &Target) -> Vec<Stage> {
    let mut done: Vec<Stage> = Vec::new();
    for stage in stages {
        let found = match &stage {
            Stage::Definition(number) => {
                let outputs = 0..program.definitions[*number].rank;
                let found = followed(program, &done, *number, outputs, sizes, target);
                found.map(|followed| (followed.place, vec![(*number, followed.index)], vec![stage.clone()]))
            }
            Stage::Level(level) => merged(program, &done, level, sizes, target)
                .map(|place| (place, level.members.clone(), level.stages.clone())),
        };
        match found {
            Some((place, members, stages)) => {
                if let Stage::Level(level) = &mut done[place] {
                    level.members.extend(members);
                    level.stages.extend(stages);
                }
            }
            None => done.push(stage),
        }
    }
    done
}

/// A level that a definition can go along with.
pub struct Followed {
    /// Its place among the stages.
    pub place: usize,
    /// Whether it falls.
    pub falling: bool,
    /// About how many steps it has.
    pub steps: f64,
    /// The index of the definition that goes along.
    pub index: usize,
    /// What the definition reads of it.
    pub tensors: Vec<TensorId>,
}

/// The level that a definition follows by one of some indices, if that pays.
pub fn followed(
    program: &Program,
    done: &[Stage],
    number: usize,
    mut indices: std::ops::Range<usize>,
    sizes: &[f64],
    target: &Target,
) -> Option<Followed> {
    let definition = &program.definitions[number];
    let (place, level) = last_read(program, done, &read_by(program, definition))?;
    let index = indices.find(|&index| {
        is_computed_by_step(program, definition, index) && order::follows(program, level, number, index)
    })?;
    let tensors = of_level(program, &done[place], definition);
    let steps = definition.indices[index].range.high.first()?.shift(1).estimate(&[], sizes).max(1.0);
    pays(program, definition, (index, steps), &tensors, sizes, target).then_some(Followed {
        place,
        falling: level.falling,
        steps,
        index,
        tensors,
    })
}

/// The place of a level that all members of another one follow, if that pays for each that reads of it.
fn merged(program: &Program, done: &[Stage], level: &Level, sizes: &[f64], target: &Target) -> Option<usize> {
    let definitions = || level.members.iter().map(|&(number, index)| (number, index, &program.definitions[number]));
    let reads: Vec<TensorId> = definitions().flat_map(|(.., definition)| read_by(program, definition)).collect();
    let (place, before) = last_read(program, done, &reads)?;
    let fits = |(number, index, definition): (usize, usize, &Definition)| {
        let tensors = of_level(program, &done[place], definition);
        let steps = program[definition.tensor].extents[index].estimate(&[], sizes).max(1.0);
        order::follows(program, before, number, index)
            && (tensors.is_empty() || pays(program, definition, (index, steps), &tensors, sizes, target))
    };
    (before.falling == level.falling && definitions().all(fits)).then_some(place)
}

/// The last stage that makes some of these tensors, if it is a level.
fn last_read<'a>(program: &Program, done: &'a [Stage], reads: &[TensorId]) -> Option<(usize, &'a Level)> {
    let is_read = |stage: &Stage| made_by(program, stage).iter().any(|tensor| reads.contains(tensor));
    let place = done.iter().rposition(is_read)?;
    match &done[place] {
        Stage::Level(level) => Some((place, level)),
        Stage::Definition(_) => None,
    }
}

/// What a definition reads of a stage.
fn of_level(program: &Program, stage: &Stage, definition: &Definition) -> Vec<TensorId> {
    let made = made_by(program, stage);
    distinct(read_by(program, definition).into_iter().filter(|tensor| made.contains(tensor)))
}

/// What a definition reads, by way of nested ones, too.
fn read_by(program: &Program, definition: &Definition) -> Vec<TensorId> {
    let (mut found, mut open) = (Vec::new(), vec![definition]);
    while let Some(definition) = open.pop() {
        for (tensor, _) in program.exprs.accesses(definition.body) {
            match program.definition_of(tensor).filter(|_| program[tensor].kind == TensorKind::Nested) {
                Some(nested) => open.push(nested),
                None => found.push(tensor),
            }
        }
    }
    found
}

fn made_by(program: &Program, stage: &Stage) -> Vec<TensorId> {
    match stage {
        Stage::Definition(number) => vec![program.definitions[*number].tensor],
        Stage::Level(Level { members, .. }) => {
            members.iter().map(|(number, _)| program.definitions[*number].tensor).collect()
        }
    }
}

/// Whether what is nested in a definition has that index, too: otherwise it would be computed again at each step.
fn is_computed_by_step(program: &Program, definition: &Definition, index: usize) -> bool {
    let mut accesses = program.exprs.accesses(definition.body);
    accesses.all(|(tensor, subscripts)| {
        program[tensor].kind != TensorKind::Nested || subscripts.iter().any(|s| s.as_index() == Some(index))
    })
}

/// Whether it is better to read the steps, so many, one by one; an index of the definition goes through them.
fn pays(
    program: &Program,
    definition: &Definition,
    (index, steps): (usize, f64),
    followed: &[TensorId],
    sizes: &[f64],
    target: &Target,
) -> bool {
    let read: f64 = followed.iter().map(|tensor| program[*tensor].elements(sizes)).sum();
    let nested = program
        .exprs
        .accesses(definition.body)
        .filter_map(|(tensor, _)| program.definition_of(tensor).filter(|_| program[tensor].kind == TensorKind::Nested));
    let additions: f64 =
        nested.chain([definition]).map(|definition| work::work(&program.exprs, definition, sizes).weight).sum();
    let bytes = read * Real::F64.bytes() as f64;
    let is_better = read / steps >= cost::FOLLOWED_ELEMENTS && additions <= cost::FOLLOWER_ADDITIONS * read;
    // One number for each step ties together what items of the recurrence could do on their own.
    let is_apart = index >= definition.rank || definition.rank > 1;
    // What does not fit into memory has to be read as it goes.
    bytes > target.memory_bytes as f64 || bytes > target.l2_bytes as f64 && is_better && is_apart
}
