//! Reverse mode over the definitions of a program.

use super::adjoint::{self, Path};
use super::assemble::{self, Contribution};
use super::gather::{self, Gathered, Spaces};
use super::{names, reduction, share};
use crate::diagnostic::Diagnostic;
use crate::domain::guard;
use crate::lift;
use crate::program::build;
use crate::program::expr::{Rewriter, Rules};
use crate::program::names::{self as program_names, fresh, fresh_where};
use crate::program::{
    Affine, Constraint, Definition, Expr, ExprId, Index, Program, Range, ReduceOp, Tensor, TensorId, TensorKind,
    circles,
};
use crate::simplify::factor;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The adjoint of a result.
#[derive(Clone, Copy, Debug)]
pub enum Seed {
    /// An input.
    Input(TensorId),
    /// 1, for a scalar.
    One,
    /// 1 at the batch indices, 0 elsewhere.
    Delta,
}

/// The state of a derivation. The program is extended; what is not needed is dropped at the end.
pub struct Reverse {
    /// The program, and the derivatives so far.
    pub out: Program,
    /// Tensors made here.
    pub generated: HashSet<TensorId>,
    /// Names in use.
    pub taken: HashSet<String>,
    /// Names of sizes and tensors.
    reserved: HashSet<String>,
    context: Vec<Constraint>,
    /// The definitions of the program.
    pub forward: Rc<Vec<Definition>>,
    /// Where each tensor is defined.
    numbers: HashMap<TensorId, usize>,
    active: HashSet<TensorId>,
    read: HashSet<TensorId>,
    batch: Vec<Index>,
    contributions: HashMap<TensorId, Vec<Contribution>>,
    /// Tensors whose adjoint can be 0 because a branch was not taken.
    masked: HashSet<TensorId>,
    /// Tensors of which every element has sent its adjoint, whatever that is, to all that it reads.
    open: HashSet<TensorId>,
    /// The definitions by number, each alone or with all others of its circle.
    units: Rc<Vec<Vec<usize>>>,
}

/// The adjoint of a tensor while its definition is derived.
enum Adjoint {
    Tensor(TensorId),
    Seed(Seed),
}

impl Reverse {
    /// Starts from a program and the inputs to derive by.
    pub fn new(program: &Program, wrt: &[TensorId]) -> Self {
        Reverse {
            out: program.clone(),
            generated: HashSet::new(),
            taken: program_names::taken(program),
            context: program.size_context(),
            reserved: program_names::reserved(program),
            forward: Rc::new(program.definitions.clone()),
            numbers: program.definitions.iter().enumerate().map(|(i, d)| (d.tensor, i)).collect(),
            active: circles::varying(program, wrt.iter().copied()),
            read: program.used_tensors(),
            batch: Vec::new(),
            contributions: HashMap::new(),
            masked: HashSet::new(),
            open: HashSet::new(),
            units: Rc::new(circles::units(program)),
        }
    }

    /// Declares the input `df` for a result.
    pub fn seed_input(&mut self, f: TensorId) -> TensorId {
        let name = self.free_name(&format!("d{}", self.out[f].name));
        let (extents, rank) = (self.out[f].extents.clone(), self.out[f].rank);
        self.out.add_tensor(Tensor { name, kind: TensorKind::Input, extents, rank })
    }

    /// Takes the indices of a result as batch indices.
    pub fn batch_over(&mut self, f: TensorId) {
        let definition = &self.forward[self.numbers[&f]];
        self.batch = definition.indices[..definition.rank].to_vec();
    }

    /// Derives the seeded results and defines the derivative by each of `wrt`, named by `name`; `between` names what is on the
    /// way.
    pub fn run(
        &mut self,
        seeds: Vec<(TensorId, Seed)>,
        wrt: &[TensorId],
        name: impl Fn(&str) -> String,
        between: impl Fn(&str) -> String,
    ) -> Result<Vec<TensorId>, Diagnostic> {
        self.contributions.clear();
        self.masked.clear();
        self.open.clear();
        // Results have the first choice of names.
        let names: Vec<String> = wrt.iter().map(|&x| self.free_name(&name(&self.out[x].name))).collect();
        let seed_of = |tensor: TensorId| seeds.iter().find(|(f, _)| *f == tensor).map(|(_, s)| *s);
        let forward = Rc::clone(&self.forward);
        for unit in Rc::clone(&self.units).iter().rev() {
            let definition = &forward[unit[0]];
            if unit.len() > 1 || circles::reads_itself(&self.out, definition) {
                let members: Vec<&Definition> = unit.iter().map(|&number| &forward[number]).collect();
                self.derive_circle(&members, &seed_of, &between)?;
                continue;
            }
            let tensor = definition.tensor;
            let seed = seed_of(tensor);
            let contributions = self.contributions.remove(&tensor).unwrap_or_default();
            if !self.active.contains(&tensor) || seed.is_none() && contributions.is_empty() {
                continue;
            }
            let is_open = matches!(seed, Some(Seed::Input(_))) || contributions.iter().any(|c| c.outer.is_empty());
            let adjoint = match (seed, contributions.is_empty()) {
                (Some(seed), true) => Adjoint::Seed(seed),
                (seed, _) => {
                    let tensor = self.adjoint_tensor(definition, &between);
                    self.define_adjoint(definition, tensor, seed, contributions)?;
                    Adjoint::Tensor(tensor)
                }
            };
            self.differentiate(definition, adjoint)?;
            if is_open {
                self.open.insert(tensor);
            }
        }
        wrt.iter().zip(names).map(|(&x, name)| self.define_result(x, name)).collect()
    }

    /// Derives definitions that read each other: their adjoints do so, too, in the opposite order.
    fn derive_circle(
        &mut self,
        members: &[&Definition],
        seed_of: &dyn Fn(TensorId) -> Option<Seed>,
        name: &impl Fn(&str) -> String,
    ) -> Result<(), Diagnostic> {
        let is_reached = |d: &&&Definition| seed_of(d.tensor).is_some() || self.contributions.contains_key(&d.tensor);
        let active: Vec<&Definition> = members.iter().copied().filter(|d| self.active.contains(&d.tensor)).collect();
        if active.iter().filter(is_reached).count() == 0 {
            return Ok(());
        }
        let chooses = |d: &&Definition| self.masked.contains(&d.tensor) || compares_values(&self.out, d.body);
        if active.iter().any(chooses) {
            self.masked.extend(active.iter().map(|d| d.tensor));
        }
        let mut adjoints = Vec::new();
        for definition in active.iter().rev() {
            let tensor = self.adjoint_tensor(definition, name);
            let ((outputs, assumptions), zero) = (self.adjoint_outputs(definition), self.out.exprs.constant(0.0));
            // It is known to be defined; its value follows when all contributions are there.
            lift::define_pointwise(&mut self.out, tensor, outputs, assumptions, zero);
            adjoints.push((*definition, tensor));
        }
        for &(definition, tensor) in &adjoints {
            self.differentiate(definition, Adjoint::Tensor(tensor))?;
        }
        for (definition, tensor) in adjoints {
            let contributions = self.contributions.remove(&definition.tensor).unwrap_or_default();
            self.out.definitions.retain(|d| d.tensor != tensor);
            self.define_adjoint(definition, tensor, seed_of(definition.tensor), contributions)?;
        }
        Ok(())
    }

    /// A tensor for the adjoint of an intermediate tensor.
    fn adjoint_tensor(&mut self, definition: &Definition, name: &impl Fn(&str) -> String) -> TensorId {
        let record = self.out[definition.tensor].clone();
        let wanted = name(&record.name);
        let rank = self.batch.len() + record.rank;
        let tensor = match record.kind {
            TensorKind::Nested => self.out.add_nested(wanted, rank),
            TensorKind::Defined | TensorKind::Input => {
                let name = self.free_name(&wanted);
                self.named_tensor(name, &record)
            }
        };
        self.generated.insert(tensor);
        tensor
    }

    /// Defines the adjoint of an intermediate tensor.
    fn define_adjoint(
        &mut self,
        definition: &Definition,
        tensor: TensorId,
        seed: Option<Seed>,
        mut contributions: Vec<Contribution>,
    ) -> Result<(), Diagnostic> {
        let (outputs, assumptions) = self.adjoint_outputs(definition);
        if let Some(seed) = seed {
            contributions.insert(0, self.seed_contribution(seed, definition.rank));
        }
        self.define(tensor, outputs, assumptions, contributions)
    }

    fn free_name(&mut self, wanted: &str) -> String {
        let name = fresh(wanted, &mut self.taken);
        self.reserved.insert(name.clone());
        name
    }

    fn named_tensor(&mut self, name: String, record: &Tensor) -> TensorId {
        let batch = self.batch.iter().map(|i| i.range.high[0].shift(1));
        let extents: Vec<Affine> = batch.chain(record.extents.iter().cloned()).collect();
        self.out.add_defined(name, extents)
    }

    /// The batch indices and the outputs of a definition, as outputs of its adjoint.
    fn adjoint_outputs(&self, definition: &Definition) -> (Vec<Index>, Vec<Constraint>) {
        let own = definition.indices[..definition.rank].iter().map(|i| Some(i.name.clone()));
        let names = names::distinct(own.collect(), &self.forward, &|n| self.is_reserved(n));
        let map: Vec<Affine> = (0..definition.rank).map(|p| Affine::index(self.batch.len() + p)).collect();
        let own = definition.indices[..definition.rank].iter().zip(names);
        let own = own.map(|(index, name)| Index { name, range: index.range.map(|b| b.with_indices(&map)) });
        let outputs = self.batch.iter().cloned().chain(own).collect();
        (outputs, definition.assumptions.iter().map(|c| c.with_indices(&map)).collect())
    }

    /// Whether an index of a derivative can't have this name: that of a size, a tensor or a batch index.
    fn is_reserved(&self, name: &str) -> bool {
        self.reserved.contains(name) || self.batch.iter().any(|i| i.name == name)
    }

    fn seed_contribution(&mut self, seed: Seed, rank: usize) -> Contribution {
        let element: Vec<Affine> = (0..rank).map(|d| Affine::index(self.batch.len() + d)).collect();
        let (outer, value) = match seed {
            Seed::Input(tensor) => (Vec::new(), self.out.exprs.access(tensor, element)),
            Seed::One => (Vec::new(), self.out.exprs.constant(1.0)),
            Seed::Delta => {
                let same = element.into_iter().enumerate().map(|(d, e)| Constraint::equal(Affine::index(d), e));
                (same.collect(), self.out.exprs.constant(1.0))
            }
        };
        Contribution { outer, free: Vec::new(), conditions: Vec::new(), value }
    }

    fn define(
        &mut self,
        tensor: TensorId,
        outputs: Vec<Index>,
        assumptions: Vec<Constraint>,
        mut contributions: Vec<Contribution>,
    ) -> Result<(), Diagnostic> {
        for contribution in &mut contributions {
            let mut used: HashSet<String> = outputs.iter().map(|i| i.name.clone()).collect();
            for index in &mut contribution.free {
                index.name = fresh_where(&index.name, |n| used.contains(n) || self.is_reserved(n));
                used.insert(index.name.clone());
            }
        }
        let body = assemble::assemble(&mut self.out, tensor, &outputs, &assumptions, contributions, &self.context)?;
        lift::define_pointwise(&mut self.out, tensor, outputs, assumptions, body);
        Ok(())
    }

    /// Sends the adjoint of a definition to everything that its body reads.
    fn differentiate(&mut self, definition: &Definition, adjoint: Adjoint) -> Result<(), Diagnostic> {
        let own = definition.indices.len();
        let batch: Vec<Affine> = (0..self.batch.len()).map(|b| Affine::index(own + b)).collect();
        let (mut guard, value) = match adjoint {
            Adjoint::Tensor(tensor) => {
                let subscripts = batch.iter().cloned().chain(definition.outputs()).collect();
                (Vec::new(), self.out.exprs.access(tensor, subscripts))
            }
            Adjoint::Seed(Seed::Input(tensor)) => (Vec::new(), self.out.exprs.access(tensor, definition.outputs())),
            Adjoint::Seed(Seed::One) => (Vec::new(), self.out.exprs.constant(1.0)),
            Adjoint::Seed(Seed::Delta) => {
                let pairs = definition.outputs().into_iter().zip(&batch);
                let same = pairs.map(|(a, b)| Constraint::equal(a, b.clone())).collect();
                (same, self.out.exprs.constant(1.0))
            }
        };
        guard.sort();
        let (open, masked) = (&self.open, &self.masked);
        let plain =
            |softmax| open.contains(&softmax) && ![softmax, definition.tensor].iter().any(|t| masked.contains(t));
        let (path, seed) = reduction::through_reduction(&mut self.out, definition, value, &self.context, &plain)?;
        // That a result is not -inf is no choice between branches.
        let tests = if definition.reduction == Some(ReduceOp::LogSumExp) { path.values.len() } else { 0 };
        let path = Path { guard, values: path.values };
        let root = self.root_value(definition);
        let active = |tensor| self.active.contains(&tensor);
        let domain = [definition.domain(), self.context.clone()].concat();
        let mut flows = adjoint::adjoint(&mut self.out.exprs, definition.body, root, (path, seed), &domain, &active)?;
        share::share(&mut self.out, definition, &self.batch, &mut flows, &self.context)?;
        let masked = self.masked.contains(&definition.tensor);
        for flow in flows {
            let Expr::Access(read, subscripts) = self.out.exprs[flow.access].clone() else { continue };
            let spaces = Spaces { own, batch: self.batch.len(), rank: subscripts.len() };
            let context = self.element_context(read);
            let Some(gathered) = gather::gather(definition, &flow.path.guard, &subscripts, spaces, &context)? else {
                continue;
            };
            let mut path = flow.path.clone();
            if masked && factor::can_be_infinite(&self.out, flow.value) {
                let zero = self.out.exprs.constant(0.0);
                let nothing = build::equal(&mut self.out.exprs, value, zero);
                path.values.insert(0, build::opposite(&mut self.out.exprs, nothing));
            }
            let term = path.masked(&mut self.out.exprs, flow.value);
            if masked || flow.path.values.len() > tests {
                self.masked.insert(read);
            }
            let term = lift::remap(&mut self.out.exprs, term, &gathered.map);
            let term = Rewriter::default().rewrite(&mut self.out.exprs, term, &mut Settled(&gathered));
            let contributions = self.contributions.entry(read).or_default();
            assemble::merge(&mut self.out.exprs, contributions, Contribution::new(&gathered, term));
        }
        Ok(())
    }

    /// What stands for the value of the body: the tensor itself where that saves computing a sum again.
    fn root_value(&mut self, definition: &Definition) -> ExprId {
        let sums = |id: &ExprId| match &self.out.exprs[*id] {
            Expr::Access(tensor, _) => self.out[*tensor].kind == TensorKind::Nested,
            _ => false,
        };
        let costly = self.out.exprs.postorder(definition.body).iter().any(sums);
        if definition.reduction.is_none() && (costly || self.read.contains(&definition.tensor)) {
            return self.out.exprs.access(definition.tensor, definition.outputs());
        }
        definition.body
    }

    /// What is known of the batch indices and those of an element of a tensor, in the space of its adjoint.
    fn element_context(&self, tensor: TensorId) -> Vec<Constraint> {
        let mut context = self.context.clone();
        let first = self.batch.len();
        context.extend(self.batch.iter().enumerate().flat_map(|(p, i)| i.range.constraints(p).collect::<Vec<_>>()));
        match self.out[tensor].kind {
            TensorKind::Nested => {
                let definition = &self.forward[self.numbers[&tensor]];
                let map: Vec<Affine> = (0..definition.rank).map(|p| Affine::index(first + p)).collect();
                context.extend(definition.output_domain().iter().map(|c| c.with_indices(&map)));
            }
            TensorKind::Input | TensorKind::Defined => {
                let ranges = self.out[tensor].extents.iter().cloned().map(Range::extent);
                let rows = ranges.enumerate().flat_map(|(d, r)| r.constraints(first + d).collect::<Vec<_>>());
                context.extend(rows);
            }
        }
        context
    }

    /// Defines the derivative by an input.
    fn define_result(&mut self, x: TensorId, name: String) -> Result<TensorId, Diagnostic> {
        let record = self.out[x].clone();
        let tensor = self.named_tensor(name, &record);
        let names = names::dimensions(&self.out, &self.forward, x, &|n| self.is_reserved(n));
        let own = names.into_iter().zip(&record.extents);
        let own = own.map(|(name, extent)| Index { name, range: Range::extent(extent.clone()) });
        let outputs: Vec<Index> = self.batch.iter().cloned().chain(own).collect();
        let contributions = self.contributions.remove(&x).unwrap_or_default();
        self.define(tensor, outputs, Vec::new(), contributions)?;
        Ok(tensor)
    }
}

struct Settled<'a>(&'a Gathered);

impl Rules for Settled<'_> {
    fn affine(&mut self, affine: &Affine) -> Affine {
        self.0.settled(affine)
    }
}

/// Whether some choice in an expression depends on values.
fn compares_values(program: &Program, root: ExprId) -> bool {
    program.exprs.postorder(root).into_iter().any(|id| match &program.exprs[id] {
        Expr::Select(condition, ..) => guard::has_values(&program.exprs, *condition),
        _ => false,
    })
}
