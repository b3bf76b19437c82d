//! The nests of the parts of a program as one: what one part stores and another reads is one buffer.

use super::relocate::{Relocation, relocate};
use super::verify::{Check, Verified};
use super::{Buffer, LoopId, Nest, Scope, Stage, Time, for_each_expr};
use crate::divide::{self, Divided, Part, Rings};
use crate::program::{Affine, Atom, Constraint, ExprId, Exprs, Param, ParamId, ParamKind, TensorId, TensorKind};
use gradix_int::Int;
use std::collections::HashMap;

/// Joins the nests of all parts of a program, with the steps of some levels inside of kernels and for sizes near `estimate`. Each was verified for all
/// values of its steps. Also gives the levels whose steps items go through on their own, and how many there are.
pub fn join(
    divided: &Divided,
    mut nests: Vec<Verified>,
    inside: &[ParamId],
    estimate: &[f64],
) -> Result<(Verified, Vec<(ParamId, f64)>), String> {
    let whole = &divided.whole;
    if divided.stages.iter().all(|stage| matches!(stage, divide::Stage::Part(_))) && nests.len() == 1 {
        return Ok((nests.remove(0), Vec::new()));
    }
    let Some(first) = nests.first() else { return Err("there is nothing to run".into()) };
    let mut joined = Nest {
        params: whole.params.clone(),
        context: whole.size_context().into_iter().filter(|row| !mentions_time(&whole.params, &row.affine)).collect(),
        buffers: Vec::new(),
        exprs: Exprs::default(),
        kernels: Vec::new(),
        stages: Vec::new(),
        target: first.target,
        plain: nests.iter().all(|nest| nest.plain),
    };
    let buffers = shared_buffers(divided, &mut joined);
    let shared = joined.buffers.len();
    let rings = divided.rings.iter().map(|(tensor, ring)| (buffers[tensor], *ring)).collect();
    let (mut checks, mut first_kernels) = (Vec::new(), Vec::new());
    for (part, nest) in divided.parts.iter().zip(nests) {
        first_kernels.push(joined.kernels.len());
        checks.extend(Joining::new(&mut joined, part, &nest, (&buffers, &rings)).add(&nest)?);
    }
    let follows = |param: &Param| matches!(param.kind, ParamKind::Smallest(_) | ParamKind::Largest(_));
    if joined
        .params
        .iter()
        .any(|param| follows(param) && param.kind.parts().iter().any(|part| mentions_time(&joined.params, part)))
    {
        return Err("a size changes from step to step".into());
    }
    first_kernels.push(joined.kernels.len());
    joined.stages = stages(divided, &divided.stages, &first_kernels);
    let items = super::inside::inside(&mut joined, inside, shared, estimate);
    Ok((Verified::joined(joined, checks), items))
}

/// Buffers for the inputs, the results, and what parts or steps share.
fn shared_buffers(divided: &Divided, joined: &mut Nest) -> HashMap<TensorId, TensorId> {
    let whole = &divided.whole;
    let mut buffers = HashMap::new();
    for id in (0..whole.tensors.len() as u32).map(TensorId) {
        let tensor = &whole[id];
        let scope = match (tensor.kind, whole.outputs.iter().position(|output| *output == id)) {
            (TensorKind::Input, _) => Scope::Input(whole.inputs().position(|input| input == id).unwrap_or(0)),
            (_, Some(position)) => Scope::Output(position),
            (_, None) if divided.stored.contains(&id) => Scope::Run,
            (_, None) => continue,
        };
        buffers.insert(id, TensorId(joined.buffers.len() as u32));
        let (name, mut extents) = (tensor.name.clone(), tensor.extents.clone());
        if let Some((dimension, kept)) = divided.rings.get(&id) {
            extents[*dimension] = Affine::constant(*kept);
        }
        joined.buffers.push(Buffer { name, extents, scope, streamed: false, registers: false, interleaved: None });
    }
    buffers
}

fn stages(divided: &Divided, stages: &[divide::Stage], first_kernels: &[usize]) -> Vec<Stage> {
    let each = |stage: &divide::Stage| match stage {
        divide::Stage::Part(part) => {
            let limits = &divided.parts[*part].steps;
            let kernels = first_kernels[*part]..first_kernels[*part + 1];
            kernels.map(|number| Stage::Kernel(number, limits.clone())).collect()
        }
        divide::Stage::Time { time, steps, falling, window, stages: inner } => {
            let stages = self::stages(divided, inner, first_kernels);
            vec![Stage::Time(Time { param: *time, steps: steps.clone(), falling: *falling, window: *window, stages })]
        }
    };
    stages.iter().flat_map(each).collect()
}

/// One nest on its way into the whole.
struct Joining<'a> {
    joined: &'a mut Nest,
    /// Where each of its sizes is.
    params: Vec<ParamId>,
    /// Where each of its buffers is, and the dimensions that steps give a value.
    buffers: Vec<(TensorId, Vec<(usize, ParamId)>)>,
    /// The dimension of a buffer of which only the last steps are kept, and how many.
    rings: &'a Rings,
    first_kernel: usize,
}

impl<'a> Joining<'a> {
    fn new(
        joined: &'a mut Nest,
        part: &Part,
        nest: &Nest,
        (shared, rings): (&HashMap<TensorId, TensorId>, &'a Rings),
    ) -> Self {
        let first_kernel = joined.kernels.len();
        let params = join_params(&mut joined.params, &nest.params);
        let mut joining = Joining { joined, params, buffers: Vec::new(), rings, first_kernel };
        for buffer in &nest.buffers {
            let place = match buffer.scope {
                Scope::Input(position) => (shared[&part.inputs[position]], Vec::new()),
                Scope::Output(position) => (shared[&part.outputs[position]], part.fixed[position].clone()),
                Scope::Run | Scope::Local(_) => (joining.add_buffer(buffer), Vec::new()),
            };
            joining.buffers.push(place);
        }
        joining
    }

    fn add_buffer(&mut self, buffer: &Buffer) -> TensorId {
        let scope = match buffer.scope {
            Scope::Local(kernel) => Scope::Local(kernel + self.first_kernel),
            scope => scope,
        };
        let extents = buffer.extents.iter().map(|extent| Relocation::affine(self, extent)).collect();
        self.joined.buffers.push(Buffer {
            name: buffer.name.clone(),
            extents,
            scope,
            streamed: false,
            registers: buffer.registers,
            interleaved: buffer.interleaved,
        });
        TensorId(self.joined.buffers.len() as u32 - 1)
    }

    /// Adds all kernels, and gives what is left to check.
    fn add(self, nest: &Verified) -> Result<Vec<Check>, String> {
        let (mut exprs, mut kernels) = (nest.exprs.clone(), nest.kernels.clone());
        for (number, kernel) in kernels.iter_mut().enumerate() {
            kernel.name = format!("kernel_{}", self.first_kernel + number);
            relocate(&mut kernel.steps, &mut exprs, &self);
            for affine in kernel.work.iter_mut().flat_map(|work| [&mut work.low, &mut work.high, &mut work.step]) {
                *affine = Relocation::affine(&self, affine);
                if mentions_time(&self.joined.params, affine) {
                    return Err("the items of a kernel change from step to step".into());
                }
            }
        }
        let all = self.joined.buffer_ids().map(|buffer| (buffer, buffer)).collect();
        let mut moved = HashMap::new();
        for kernel in &mut kernels {
            let mut copy = |id: &mut ExprId| *id = exprs.copy_into(*id, &all, &mut self.joined.exprs, &mut moved);
            for_each_expr(&mut kernel.steps, &mut copy);
        }
        let checks = nest.checks().iter().map(|check| self.check(check)).collect();
        self.joined.kernels.extend(kernels);
        Ok(checks)
    }

    /// A check at any step: what takes the steps' values is then an unknown like any other.
    fn check(&self, check: &Check) -> Check {
        let times = self.joined.params.iter().enumerate();
        let times: Vec<(u32, &Affine)> = times
            .filter_map(|(number, param)| match &param.kind {
                ParamKind::Time(steps) => Some((number as u32, steps)),
                _ => None,
            })
            .collect();
        let unknown = |affine: &Affine| {
            affine.substitute(&mut |atom| match atom {
                Atom::Param(ParamId(p)) if times.iter().any(|(time, _)| time == p) => {
                    Some(Affine::atom(Atom::Index(FIRST_UNKNOWN + p)))
                }
                _ => None,
            })
        };
        let mut outside: Vec<Constraint> =
            check.outside.iter().map(|row| row.rebuilt(unknown(&Relocation::affine(self, &row.affine)))).collect();
        for (time, steps) in &times {
            let value = Affine::atom(Atom::Index(FIRST_UNKNOWN + time));
            outside.push(Constraint::non_negative(value.clone()));
            outside.push(Constraint::at_most(value.shift(1), unknown(steps)));
        }
        let buffer = self.buffers[check.buffer.0 as usize].0;
        Check { kernel: check.kernel + self.first_kernel, buffer, outside, ..check.clone() }
    }
}

fn mentions_time(params: &[Param], affine: &Affine) -> bool {
    let mut found = false;
    affine.visit_atoms(&mut |atom| {
        if let Atom::Param(ParamId(p)) = atom {
            found |= matches!(params[*p as usize].kind, ParamKind::Time(_));
        }
    });
    found
}

/// Beyond the variables of any kernel.
const FIRST_UNKNOWN: u32 = 1 << 24;

impl Relocation for Joining<'_> {
    fn affine(&self, affine: &Affine) -> Affine {
        affine.substitute(&mut |atom| match atom {
            Atom::Param(ParamId(p)) => Some(Affine::param(self.params[*p as usize])),
            Atom::Index(_) | Atom::Floor(..) => None,
        })
    }

    fn variable(&self, variable: LoopId) -> LoopId {
        variable
    }

    fn place(&self, buffer: TensorId, subscripts: &mut Vec<Affine>) -> TensorId {
        let (place, fixed) = &self.buffers[buffer.0 as usize];
        let mut fixed = fixed.clone();
        fixed.sort();
        fixed.into_iter().for_each(|(dimension, time)| subscripts.insert(dimension, Affine::param(time)));
        if let Some((dimension, kept)) = self.rings.get(place) {
            subscripts[*dimension] = subscripts[*dimension].remainder(&Int::from(*kept));
        }
        *place
    }
}

/// Where the sizes of a part are among those of the whole: free ones and steps are there, others may be new.
fn join_params(whole: &mut Vec<Param>, part: &[Param]) -> Vec<ParamId> {
    let mut places: Vec<ParamId> = Vec::new();
    for param in part {
        let is_given = matches!(param.kind, ParamKind::Free | ParamKind::Time(_));
        let mut kind = param.kind.clone();
        for affine in kind.parts_mut() {
            *affine = affine.substitute(&mut |atom| match atom {
                Atom::Param(ParamId(p)) => places.get(*p as usize).map(|place| Affine::param(*place)),
                Atom::Index(_) | Atom::Floor(..) => None,
            });
        }
        let known = whole.iter().position(|other| match is_given {
            true => other.name == param.name && matches!(other.kind, ParamKind::Free | ParamKind::Time(_)),
            false => other.kind == kind,
        });
        let place = known.unwrap_or_else(|| {
            whole.push(Param { name: param.name.clone(), kind });
            whole.len() - 1
        });
        places.push(ParamId(place as u32));
    }
    places
}
