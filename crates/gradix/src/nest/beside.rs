//! Kernels of a step as one, where neither touches what the other writes: their items are shared out once.
//!
//! ```text
//! each t: kernel 0: u[t % 2, i] = f(u[(t + 1) % 2, …], v[(t + 1) % 2, …])     kernel 1: v[t % 2, i] = g(…)
//! ```

use super::relocate::{Relocation, relocate};
use super::{Kernel, LoopId, Nest, Scope, Work, leaves};
use crate::domain::system;
use crate::program::{Affine, Constraint, TensorId};

/// Two kernels of a step as one, if they have the same items and don't meet.
pub fn beside(nest: &mut Nest, first: &Kernel, second: &Kernel) -> Option<Kernel> {
    if !have_same_items(first, second) || meet(nest, first, second) || meet(nest, second, first) {
        return None;
    }
    let mut both = first.clone();
    let mut places: Vec<LoopId> = Vec::new();
    let variables = |kernel: &Kernel| kernel.work.iter().flat_map(Work::variables).collect::<Vec<_>>();
    let (own, other) = (variables(first), variables(second));
    for (number, name) in second.variables.iter().enumerate() {
        let of_work = other.iter().position(|variable| variable.number() == number);
        places.push(of_work.map_or(LoopId(both.variables.len() as u32), |position| own[position]));
        if of_work.is_none() {
            both.variables.push(name.clone());
        }
    }
    let map = places.iter().map(|&place| Affine::index(place)).collect();
    let mut steps = second.steps.clone();
    relocate(&mut steps, &mut nest.exprs, &Renamed { places, map });
    both.steps.extend(steps);
    both.doc.extend(second.doc.iter().cloned());
    Some(both)
}

fn have_same_items(first: &Kernel, second: &Kernel) -> bool {
    let same = |(a, b): (&Work, &Work)| a.low == b.low && a.high == b.high && a.step == b.step && a.parts == b.parts;
    let several = first.work.iter().any(|work| !work.is_single());
    several && first.work.len() == second.work.len() && first.work.iter().zip(&second.work).all(same)
}

/// Whether one may write an element that the other reads or writes.
fn meet(nest: &Nest, writer: &Kernel, other: &Kernel) -> bool {
    let others = leaves(&other.steps);
    let lasts = |buffer: TensorId| !matches!(nest[buffer].scope, Scope::Local(_));
    leaves(&writer.steps).into_iter().filter(|leaf| lasts(leaf.target)).any(|leaf| {
        others.iter().any(|reader| {
            let reads = nest.exprs.accesses(reader.body);
            let mut accesses = reads.chain([(reader.target, reader.subscripts.as_slice())]);
            accesses.any(|(buffer, at)| buffer == leaf.target && !are_apart(&leaf.subscripts, at))
        })
    })
}

/// Whether the step tells two places apart: in some dimension it alone decides both subscripts, and they are never equal.
fn are_apart(a: &[Affine], b: &[Affine]) -> bool {
    a.iter().zip(b).any(|(a, b)| {
        !a.uses_indices() && !b.uses_indices() && system::is_empty(&[Constraint::equal(a.clone(), b.clone())])
    })
}

/// Variables with other numbers.
struct Renamed {
    places: Vec<LoopId>,
    map: Vec<Affine>,
}

impl Relocation for Renamed {
    fn affine(&self, affine: &Affine) -> Affine {
        affine.with_indices(&self.map)
    }

    fn variable(&self, variable: LoopId) -> LoopId {
        self.places[variable.number()]
    }

    fn place(&self, buffer: TensorId, _: &mut Vec<Affine>) -> TensorId {
        buffer
    }
}
