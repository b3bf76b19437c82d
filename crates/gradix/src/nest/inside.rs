//! Steps of a recurrence inside a kernel: one item goes through all of them.
//!
//! ```text
//! for each step t: kernel 3, kernel 4           a kernel: for t = 0 to T - 1: steps of 3, steps of 4
//! ```

use super::relocate::{Relocation, relocate};
use super::{Kernel, LoopId, Nest, Scope, Stage, Step, Tile, Time, Work};
use crate::program::{Affine, Atom, ParamId, Range, TensorId};
use std::collections::HashMap;

/// Puts the steps of outermost stages that go through these sizes into a kernel each. All of their kernels have a single item.
pub fn inside(nest: &mut Nest, chosen: &[ParamId]) {
    let old = nest.clone();
    nest.kernels.clear();
    nest.stages.clear();
    let mut places = HashMap::new();
    for stage in &old.stages {
        let stage = match stage {
            Stage::Time(time) if chosen.contains(&time.param) => one_kernel(nest, &old, time, &mut places),
            stage => kept(nest, &old, stage, &mut places),
        };
        nest.stages.push(stage);
    }
    for buffer in &mut nest.buffers {
        if let Scope::Local(kernel) = &mut buffer.scope {
            *kernel = places[kernel];
        }
    }
}

/// A stage as it was, with other numbers of kernels.
fn kept(nest: &mut Nest, old: &Nest, stage: &Stage, places: &mut HashMap<usize, usize>) -> Stage {
    match stage {
        Stage::Kernel(number, below) => {
            places.insert(*number, nest.kernels.len());
            let name = format!("kernel_{}", nest.kernels.len());
            nest.kernels.push(Kernel { name, ..old.kernels[*number].clone() });
            Stage::Kernel(nest.kernels.len() - 1, below.clone())
        }
        Stage::Time(time) => {
            let stages = time.stages.iter().map(|stage| kept(nest, old, stage, places)).collect();
            Stage::Time(Time { stages, ..time.clone() })
        }
    }
}

/// All steps of a recurrence in one kernel.
fn one_kernel(nest: &mut Nest, old: &Nest, time: &Time, places: &mut HashMap<usize, usize>) -> Stage {
    let number = nest.kernels.len();
    let variables = ["first", "last", "item"].map(String::from).to_vec();
    let name = format!("kernel_{number}");
    let mut filling = Filling {
        nest,
        old,
        kernel: Kernel { name, doc: Vec::new(), variables, work: Work::single(), steps: Vec::new() },
        times: Vec::new(),
    };
    let step = filling.time(time, &mut |kernel| {
        places.insert(kernel, number);
    });
    let Filling { mut kernel, .. } = filling;
    kernel.steps.push(step);
    nest.kernels.push(kernel);
    Stage::Kernel(number, Vec::new())
}

/// A kernel that is being filled.
struct Filling<'a> {
    nest: &'a mut Nest,
    old: &'a Nest,
    kernel: Kernel,
    /// What stands for each size that takes the values of steps.
    times: Vec<(ParamId, Affine)>,
}

impl Filling<'_> {
    fn variable(&mut self, name: &str) -> LoopId {
        self.kernel.variables.push(name.to_string());
        LoopId(self.kernel.variables.len() as u32 - 1)
    }

    fn time(&mut self, time: &Time, note: &mut dyn FnMut(usize)) -> Step {
        let ParamId(own) = time.param;
        let variable = self.variable(&self.old.params[own as usize].name.clone());
        let steps = self.at_step(&time.steps);
        let value = match time.falling {
            true => steps.shift(-1) - Affine::index(variable),
            false => Affine::index(variable),
        };
        self.times.push((time.param, value));
        let inner: Vec<Step> = time.stages.iter().flat_map(|stage| self.stage(stage, note)).collect();
        self.times.pop();
        Step::Tile(Tile { variable, range: Range::extent(steps), size: 1, steps: inner })
    }

    fn stage(&mut self, stage: &Stage, note: &mut dyn FnMut(usize)) -> Vec<Step> {
        let (number, below) = match stage {
            Stage::Kernel(number, below) => (*number, below),
            Stage::Time(time) => return vec![self.time(time, note)],
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
        let last: Vec<Affine> = last.filter(|last| last.uses_indices()).collect();
        let reaches = |(time, own): &(ParamId, Affine)| {
            self.old.params[time.0 as usize].kind.parts().first().is_some_and(|steps| steps == own)
        };
        if below.iter().all(reaches) {
            return steps;
        }
        let variable = self.variable("runs");
        let high = [vec![Affine::constant(0)], last].concat();
        vec![Step::Tile(Tile { variable, range: Range { low: vec![Affine::constant(0)], high }, size: 1, steps })]
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
