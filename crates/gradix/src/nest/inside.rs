//! Steps of a recurrence inside a kernel: one item goes through all of them.
//!
//! ```text
//! for each step t: kernel 3, kernel 4           a kernel: for t = 0 to T - 1: steps of 3, steps of 4
//! ```

use super::relocate::{Relocation, relocate};
use super::{Kernel, LoopId, Nest, Scope, Stage, Step, Tile, Time, Work, leaves};
use super::{beside::beside, hold, peel, share::share};
use crate::program::{Affine, Atom, Constraint, ParamId, Range, TensorId};
use std::collections::HashMap;

/// Puts the steps of stages that go through these sizes into a kernel each. All of their kernels have a single item.
/// The first buffers, so many, are what parts or steps share; each of the others belongs to a part at one step. Sizes are about
/// as in `estimate`. Gives the levels that several items go through, and how many.
pub fn inside(nest: &mut Nest, chosen: &[ParamId], shared: usize, estimate: &[f64]) -> Vec<(ParamId, f64)> {
    let old = nest.clone();
    nest.kernels.clear();
    nest.stages.clear();
    let mut places = HashMap::new();
    let (whole, items) = (HashMap::new(), Vec::new());
    let mut moving = Moving { nest, old: &old, chosen, places: &mut places, whole, shared, estimate, items };
    let stages = old.stages.iter().map(|stage| moving.stage(stage, &old.context)).collect();
    let items = moving.items;
    nest.stages = stages;
    for buffer in &mut nest.buffers {
        if let Scope::Local(kernel) = &mut buffer.scope {
            *kernel = places[kernel];
        }
    }
    items
}

/// The stages on their way.
struct Moving<'a> {
    nest: &'a mut Nest,
    old: &'a Nest,
    chosen: &'a [ParamId],
    /// Where each kernel is.
    places: &'a mut HashMap<usize, usize>,
    /// The kernels that go through all steps of a level.
    whole: HashMap<ParamId, usize>,
    shared: usize,
    estimate: &'a [f64],
    items: Vec<(ParamId, f64)>,
}

impl Moving<'_> {
    /// A stage with other numbers of kernels, where this is known of the steps around.
    fn stage(&mut self, stage: &Stage, known: &[Constraint]) -> Stage {
        let time = match stage {
            Stage::Kernel(number, below) => return self.kernel(*number, below),
            Stage::Time(time) if self.chosen.contains(&time.param) => return self.one_kernel(time, known),
            Stage::Time(time) => time,
        };
        let value = Affine::param(time.param);
        let steps = [Constraint::non_negative(value.clone()), Constraint::at_most(value.shift(1), time.steps.clone())];
        let known = [known, &steps].concat();
        let mut stages = Vec::new();
        for stage in &time.stages {
            if !self.is_put_beside(stages.last(), stage) {
                stages.push(self.stage(stage, &known));
            }
        }
        Stage::Time(Time { stages, ..time.clone() })
    }

    /// Puts a kernel beside the one before it, if that can be done.
    fn is_put_beside(&mut self, before: Option<&Stage>, stage: &Stage) -> bool {
        let (Some(Stage::Kernel(place, same)), Stage::Kernel(number, below)) = (before, stage) else { return false };
        if same != below {
            return false;
        }
        if let Some(known) = self.places.get(number) {
            return known == place;
        }
        let first = self.nest.kernels[*place].clone();
        let Some(both) = beside(self.nest, &first, &self.old.kernels[*number]) else { return false };
        self.nest.kernels[*place] = both;
        self.places.insert(*number, *place);
        true
    }

    fn kernel(&mut self, number: usize, below: &[(ParamId, Affine)]) -> Stage {
        // Of steps that are computed again, the kernels are there.
        if let Some(place) = self.places.get(&number) {
            return Stage::Kernel(*place, below.to_vec());
        }
        self.places.insert(number, self.nest.kernels.len());
        let name = format!("kernel_{}", self.nest.kernels.len());
        self.nest.kernels.push(Kernel { name, ..self.old.kernels[number].clone() });
        Stage::Kernel(self.nest.kernels.len() - 1, below.to_vec())
    }

    /// All steps of a recurrence in one kernel.
    fn one_kernel(&mut self, time: &Time, known: &[Constraint]) -> Stage {
        if let Some(number) = self.whole.get(&time.param) {
            return Stage::Kernel(*number, Vec::new());
        }
        let number = self.nest.kernels.len();
        self.whole.insert(time.param, number);
        let variables = ["first", "last", "item"].map(String::from).to_vec();
        let name = format!("kernel_{number}");
        let mut filling = Filling {
            nest: self.nest,
            old: self.old,
            kernel: Kernel { name, doc: Vec::new(), variables, work: vec![Work::single()], steps: Vec::new() },
            times: Vec::new(),
            around: Vec::new(),
            known: known.to_vec(),
            shared: self.shared,
        };
        let places = &mut self.places;
        let steps = filling.time(time, &mut |kernel| {
            places.insert(kernel, number);
        });
        let Filling { mut kernel, .. } = filling;
        kernel.steps = steps;
        // By its old number, as all are.
        let old = self.places.iter().filter(|(_, new)| **new == number).map(|(old, _)| *old).min();
        for leaf in leaves(&kernel.steps) {
            let target = &mut self.nest[leaf.target];
            if leaf.target.0 as usize >= self.shared && target.scope == Scope::Run {
                target.scope = old.map_or(Scope::Run, Scope::Local);
            }
        }
        let shared = share(self.nest, &kernel, self.estimate);
        self.items.extend(shared.as_ref().map(|(items, _)| (time.param, *items)));
        self.nest.kernels.push(shared.map_or(kernel, |(_, kernel)| kernel));
        Stage::Kernel(number, Vec::new())
    }
}

/// A kernel that is being filled.
struct Filling<'a> {
    nest: &'a mut Nest,
    old: &'a Nest,
    kernel: Kernel,
    /// What stands for each size that takes the values of steps.
    times: Vec<(ParamId, Affine)>,
    /// The variables of the loops over steps around, and what is known there.
    around: Vec<LoopId>,
    known: Vec<Constraint>,
    /// How many buffers parts or steps share.
    shared: usize,
}

impl Filling<'_> {
    fn variable(&mut self, name: &str) -> LoopId {
        self.kernel.variables.push(name.to_string());
        LoopId(self.kernel.variables.len() as u32 - 1)
    }

    fn time(&mut self, time: &Time, note: &mut dyn FnMut(usize)) -> Vec<Step> {
        let ParamId(own) = time.param;
        let variable = self.variable(&self.old.params[own as usize].name.clone());
        let steps = self.at_step(&time.steps);
        let ((range, value), outside) = (self.values(time, steps, variable), self.known.len());
        self.times.push((time.param, value));
        self.around.push(variable);
        self.known.extend(range.constraints(variable));
        let inner: Vec<Step> = time.stages.iter().flat_map(|stage| self.stage(stage, note)).collect();
        self.times.pop();
        self.around.pop();
        self.known.truncate(outside);
        self.pieces(Tile::each(variable, range, inner))
    }

    /// The values of a variable, and the step at each of them.
    fn values(&self, time: &Time, steps: Affine, variable: LoopId) -> (Range, Affine) {
        let (zero, own) = (Affine::constant(0), Affine::index(variable));
        let Some(window) = time.window else {
            let value = if time.falling { steps.shift(-1) - own } else { own };
            return (Range::extent(steps), value);
        };
        let start = self.at_step(&window.start());
        let end = start.shift(window.values);
        match time.falling {
            false => (Range { low: vec![zero, start], high: vec![steps.shift(-1), end.shift(-1)] }, own),
            true => {
                let (low, high) =
                    (vec![zero, end.clone() - steps], vec![Affine::constant(window.values - 1), end.shift(-1)]);
                (Range { low, high }, end.shift(-1) - own)
            }
        }
    }

    /// A loop over steps in pieces, each of which has a variable of its own.
    fn pieces(&mut self, tile: Tile) -> Vec<Step> {
        let shared = self.shared;
        let is_own = |buffer: TensorId| buffer.0 as usize >= shared;
        let place = peel::Place { known: self.known.clone(), around: self.around.clone(), is_own: &is_own };
        let mut pieces = peel::peel(&mut self.nest.exprs, tile, &place);
        pieces.iter_mut().for_each(|piece| hold::hold(&mut self.nest.exprs, piece));
        pieces.into_iter().map(Step::Tile).collect()
    }

    fn stage(&mut self, stage: &Stage, note: &mut dyn FnMut(usize)) -> Vec<Step> {
        let (number, below) = match stage {
            Stage::Kernel(number, below) => (*number, below),
            Stage::Time(time) => return self.time(time, note),
        };
        note(number);
        let Kernel { variables, steps, doc, .. } = self.old.kernels[number].clone();
        let map: Vec<Affine> = (0..variables.len()).map(|_| Affine::constant(0)).collect();
        let mut moved = Moved { map, variables: HashMap::new(), times: self.times.clone() };
        for (place, name) in variables.iter().enumerate().skip(3) {
            let variable = self.variable(name);
            moved.map[place] = Affine::index(variable);
            moved.variables.insert(LoopId(place as u32), variable);
        }
        let mut steps = steps;
        relocate(&mut steps, &mut self.nest.exprs, &moved);
        self.kernel.doc.extend(doc);
        // A loop of one value, or of none where the step is none of this kernel's.
        let last = below.iter().map(|(time, own)| self.at_step(&(own.clone() - Affine::param(*time))).shift(-1));
        let last: Vec<Affine> = last.collect();
        let reaches = |(time, own): &(ParamId, Affine)| {
            self.old.params[time.0 as usize].kind.parts().first().is_some_and(|steps| steps == own)
        };
        if below.iter().all(reaches) {
            return steps;
        }
        let variable = self.variable("runs");
        let high = [vec![Affine::constant(0)], last].concat();
        vec![Step::Tile(Tile::each(variable, Range { low: vec![Affine::constant(0)], high }, steps))]
    }

    fn at_step(&self, affine: &Affine) -> Affine {
        substituted(affine, &self.times)
    }
}

fn substituted(affine: &Affine, times: &[(ParamId, Affine)]) -> Affine {
    affine.substitute(&mut |atom| match atom {
        Atom::Param(param) => times.iter().find(|(time, _)| time == param).map(|(_, value)| value.clone()),
        Atom::Index(_) | Atom::Floor(..) => None,
    })
}

/// Where the variables of a kernel and the steps go.
struct Moved {
    map: Vec<Affine>,
    variables: HashMap<LoopId, LoopId>,
    times: Vec<(ParamId, Affine)>,
}

impl Relocation for Moved {
    fn affine(&self, affine: &Affine) -> Affine {
        substituted(&affine.with_indices(&self.map), &self.times)
    }

    fn variable(&self, variable: LoopId) -> LoopId {
        self.variables[&variable]
    }

    fn place(&self, buffer: TensorId, _: &mut Vec<Affine>) -> TensorId {
        buffer
    }
}
