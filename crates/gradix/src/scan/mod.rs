//! Reductions over ranges that grow with an output, as recurrences: each element goes on from the one before.
//!
//! ```text
//! y[i] = sum[k in 0..=i] x[k]                           y[i] = (if i >= 1 then y[i - 1] else 0) + x[i]
//! y[i] = max[k in i..N] x[k]                            y[i] = max(if i <= N - 2 then y[i + 1] else -inf, x[i])
//! y[i] = sum[k in 0..=i] a^(i - k) * x[k]               y[i] = (if i >= 1 then a * y[i - 1] else 0) + x[i]
//! y[i, j] = sum[k in 0..=i, l in 0..=j] x[k, l]         r[i, j] = (if j >= 1 then r[i, j - 1] else 0) + x[i, j]
//!                                                       y[i, j] = (if i >= 1 then y[i - 1, j] else 0) + r[i, j]
//! ```
//!
//! Which sets grow, and what is new in them, is found by `growth`; how terms go on that depend on the output, by
//! `term`. It is done where it pays at the assumed sizes, before the program is divided into parts.
//!
//! **Exponentials of data.** The terms of `sum[k in 0..=i] exp(t[k] - t[i]) * x[k]` are multiplied by `exp(t[i - 1] - t[i])`
//! from step to step. Where `t` falls and rises again, terms may overflow on the way, or vanish and be lost, that are
//! neither in the sum as it is written. So the largest exponent `m[i]` is carried along, and the sum is relative to it:
//!
//! ```text
//! m[i] = max(m[i - 1] + (t[i - 1] - t[i]), 0)                     the largest of t[k] - t[i]
//! s[i] = exp(m[i - 1] - m[i] + (t[i - 1] - t[i])) * s[i - 1] + exp(0 - m[i]) * x[i]
//! y[i] = exp(m[i]) * s[i]
//! ```
//!
//! No exponent is positive but that of `exp(m[i])`, which is one of the exponents of the sum as written; what vanishes is
//! less than `exp(-700)` of the largest exponential. The rounding of `m[i - 1] + …` is made up for by the factor, which is computed
//! from `m[i]` as it is. Each term is rounded once for each step, as each partial sum is in either form.
//! Where the factor is the same at all steps, as in `a^(i - k)`, a term that overflows is infinite at all later steps in either
//! form, and one that vanishes stays 0, so that the sum is carried along as it is.

mod carry;
mod forms;
mod growth;
mod place;
mod term;

use crate::diagnostic::Diagnostic;
use crate::domain::{bounds, guard, order};
use crate::economise::prepared;
use crate::economise::work::{self, elements, work};
use crate::program::build;
use crate::program::expr::{Renamed, Rewriter};
use crate::program::{
    Affine, CondId, Constraint, Definition, Expr, ExprId, Exprs, Index, Program, ReduceOp, TensorId, TensorKind,
    circles, names,
};
use crate::simplify::{self, factor, settle};
use crate::target::cost;
use carry::{Carry, Recurrences};
use forms::{is_grown, pieces, turned, with_part, written_out};
use growth::{Direction, growth, pinned};
use place::{Place, place};
use std::collections::{HashMap, HashSet};
use term::{Sorted, sorted, terms};

/// More sweeps than any program is known to need: each finds what stands inside of what was found.
const MAX_SWEEPS: usize = 6;

/// The program with recurrences in place of reductions over ranges that grow, where that pays. `estimate` has an assumed value
/// for every param.
///
/// ```
/// let ast = gradix::syntax::parse("input x[N]; y[i in 0..N] = sum[k in 0..=i] x[k]").unwrap();
/// let program = gradix::resolve(&ast, &[]).unwrap().program;
/// let scanned = gradix::scan(&program, &[1e6]).unwrap();
/// assert!(gradix::print(&scanned).unwrap().contains("y[i] = x[i] + pad(y[i - 1], 0)"));
/// ```
pub fn scan(program: &Program, estimate: &[f64]) -> Result<Program, Diagnostic> {
    let named = program.params.iter().map(|param| param.name.clone());
    let assumed: HashMap<String, f64> = named.zip(estimate.iter().copied()).collect();
    if !may_grow(program, &work::sizes(program, &assumed)) {
        return Ok(program.clone());
    }
    let ties = circles::circles(program).is_empty();
    let mut next = if ties { with_named_terms(prepared(program)?)? } else { program.clone() };
    let mut found = false;
    for _ in 0..MAX_SWEEPS {
        let sizes = work::sizes(&next, &assumed);
        let mut sweep = Sweep { recurrences: Recurrences::default(), pointwise: HashSet::new(), sizes, ties };
        if !sweep.sweep(&mut next) {
            break;
        }
        found = true;
        let mut taken = names::taken(&next);
        simplify::run(&mut next, sweep.pointwise, &mut taken, false)?;
    }
    // The order of what was found is proven like that of every recurrence.
    let fine = found && order::order(&next).is_ok();
    Ok(if fine { next } else { program.clone() })
}

/// What is computed once for several reductions has a name: elements of it can be read at other steps.
fn with_named_terms(mut program: Program) -> Result<Program, Diagnostic> {
    let is_term = |d: &&Definition| program[d.tensor].kind == TensorKind::Nested && d.reduction.is_none();
    let terms: Vec<TensorId> = program.definitions.iter().filter(is_term).map(|d| d.tensor).collect();
    if !terms.is_empty() {
        settle::name_some(&mut program, terms)?;
    }
    Ok(program)
}

/// Whether there is a reduction that it might pay to look at.
fn may_grow(program: &Program, sizes: &[f64]) -> bool {
    let moves = |definition: &Definition| {
        let ranges = definition.indices[definition.rank..].iter().map(|index| &index.range);
        let bounds = ranges.flat_map(|range| range.low.iter().chain(&range.high));
        bounds.chain(definition.conditions.iter().map(|row| &row.affine)).any(Affine::uses_indices)
            || program.exprs.index_conditions(definition.body).iter().any(|row| row.affine.uses_indices())
    };
    let reductions = program.definitions.iter().filter(|d| d.reduction.is_some() && moves(d));
    reductions.into_iter().any(|d| work(&program.exprs, d, sizes).weight > cost::SCAN_STEP_ADDITIONS)
}

/// Whether a reduction is much work, also beside all else; what it reads may go with it.
fn is_much(program: &Program, definition: &Definition, weights: &HashMap<TensorId, f64>) -> bool {
    let read: HashSet<TensorId> = program.exprs.accesses(definition.body).map(|(tensor, _)| tensor).collect();
    let others = weights.iter().filter(|(tensor, _)| !read.contains(tensor)).map(|(_, weight)| weight).sum::<f64>();
    weights
        .get(&definition.tensor)
        .is_some_and(|weight| *weight > (cost::SCAN_WORK_SHARE * others).max(cost::SCAN_STEP_ADDITIONS))
}

/// A definition, and the output that its reduction may grow with.
#[derive(Clone, Debug)]
pub struct Site {
    /// A reduction over a box of outputs.
    pub definition: Definition,
    /// What is known of sizes.
    pub context: Vec<Constraint>,
    /// The same, and where the outputs are.
    pub outer: Vec<Constraint>,
    /// The output and whether it falls.
    pub direction: Direction,
    /// How many values the output has.
    pub extent: Affine,
}

impl Site {
    fn new(program: &Program, definition: &Definition, output: usize) -> Self {
        let context = program.size_context();
        let outer = [context.as_slice(), &definition.output_domain()].concat();
        let extent = program[definition.tensor].extents[output].clone();
        let direction = Direction { output, falling: false };
        Site { definition: definition.clone(), context, outer, direction, extent }
    }

    /// The same, rising and falling.
    fn directions(&self) -> [Site; 2] {
        [false, true].map(|falling| Site { direction: Direction { falling, ..self.direction }, ..self.clone() })
    }

    /// How many outputs there are.
    pub fn rank(&self) -> usize {
        self.definition.rank
    }

    /// The outputs.
    pub fn outputs(&self) -> &[Index] {
        &self.definition.indices[..self.definition.rank]
    }

    /// Where the body is evaluated, apart from the box of outputs.
    fn rows(&self) -> Vec<Constraint> {
        let Definition { indices, rank, conditions, .. } = &self.definition;
        let reduced = indices.iter().enumerate().skip(*rank);
        let ranges = reduced.flat_map(|(position, index)| index.range.constraints(position).collect::<Vec<_>>());
        ranges.chain(conditions.iter().cloned()).collect()
    }

    /// Every index one step before.
    pub fn before(&self) -> Vec<Affine> {
        self.direction.before(self.definition.indices.len())
    }

    /// Whether an expression depends on the output.
    pub fn moves(&self, exprs: &Exprs, id: ExprId) -> bool {
        self.direction.moves(exprs, id, self.definition.indices.len())
    }

    /// Whether it depends on what is reduced over.
    pub fn is_reduced(&self, exprs: &Exprs, id: ExprId) -> bool {
        exprs.used_indices(id, self.definition.indices.len())[self.definition.rank..].contains(&true)
    }

    /// That there is a step before.
    fn has_before(&self) -> Constraint {
        self.direction.has_before(&self.extent)
    }

    /// An expression in the outputs, one step before.
    pub fn one_before(&self, program: &mut Program, id: ExprId) -> Option<ExprId> {
        let domain = [self.outer.as_slice(), &[self.has_before()]].concat();
        let at = Place { around: self.outputs(), domain: &domain, context: &self.context };
        place(program, id, &self.before(), &at)
    }
}

/// One look at all definitions.
struct Sweep {
    recurrences: Recurrences,
    /// New definitions that may be put into their readers.
    pointwise: HashSet<TensorId>,
    sizes: Vec<f64>,
    /// Whether what is compared with its reduction is computed in one place.
    ties: bool,
}

impl Sweep {
    /// Rewrites what pays, and says whether there was any.
    fn sweep(&mut self, program: &mut Program) -> bool {
        let circles = circles::recurrent(program);
        let weight = |definition: &Definition| work(&program.exprs, definition, &self.sizes).weight;
        let weights: HashMap<TensorId, f64> = program.definitions.iter().map(|d| (d.tensor, weight(d))).collect();
        // Readers first: what they read may go on with them, and is not needed then.
        let reductions: Vec<TensorId> = program.definitions.iter().rev().map(|d| d.tensor).collect();
        let mut found = false;
        for tensor in reductions.into_iter().filter(|tensor| !circles.contains_key(tensor)) {
            let is_read = program.outputs.contains(&tensor) || program.used_tensors().contains(&tensor);
            let reduction = program.definition_of(tensor).filter(|d| is_read && d.reduction.is_some());
            if reduction.is_some_and(|definition| is_much(program, definition, &weights)) {
                found |= self.whole(program, tensor) || self.by_parts(program, tensor);
            }
        }
        found
    }

    /// The reduction itself.
    fn whole(&mut self, program: &mut Program, tensor: TensorId) -> bool {
        let mut next = program.clone();
        let known = self.recurrences.clone();
        let done = self.named(&mut next, tensor).is_some();
        match done {
            true => *program = next,
            false => self.recurrences = known,
        }
        done
    }

    /// A sum over several indices: that over one of them, for all values of the others.
    fn by_parts(&mut self, program: &mut Program, tensor: TensorId) -> bool {
        let definition = program.definition_of(tensor).expect("a defined tensor").clone();
        let reduced = definition.rank..definition.indices.len();
        if definition.reduction != Some(ReduceOp::Sum) || reduced.len() < 2 {
            return false;
        }
        reduced.rev().any(|inner| {
            let mut next = program.clone();
            let Some(part) = with_part(&mut next, &definition, inner) else { return false };
            let done = self.whole(&mut next, part);
            if done {
                self.pointwise.insert(part);
                *program = next;
            }
            done
        })
    }

    /// A reduction over a box of outputs by way of recurrences, if that pays.
    fn named(&mut self, program: &mut Program, tensor: TensorId) -> Option<()> {
        let definition = program.definition_of(tensor)?.clone();
        let rank = definition.rank;
        let outputs = (0..rank).filter(|&output| is_grown(&definition, &program.exprs, output));
        let outputs: Vec<usize> = outputs.filter(|&output| self.pays(program, &definition, output)).collect();
        if outputs.is_empty() {
            return None;
        }
        if program[tensor].kind == TensorKind::Nested {
            settle::name_some(program, vec![tensor]).ok()?;
            self.pointwise.insert(tensor);
        }
        let definition = program.definition_of(tensor)?.clone();
        outputs.into_iter().find_map(|output| {
            let mut forms = turned(program, &definition, output);
            forms.extend(written_out(program, &definition, output));
            let sites: Vec<Site> = forms.iter().map(|form| Site::new(program, form, output)).collect();
            sites.iter().find_map(|site| {
                let mut next = program.clone();
                let known = self.recurrences.clone();
                let done = self.rewritten(&mut next, site);
                match done {
                    Some(()) => *program = next,
                    None => self.recurrences = known,
                }
                done
            })
        })
    }

    /// Whether steps are less work than the terms of the reduction.
    fn pays(&self, program: &Program, definition: &Definition, output: usize) -> bool {
        let before = work(&program.exprs, definition, &self.sizes).weight;
        let elements = elements(definition, &self.sizes);
        let range = &definition.indices[output].range;
        let bound = |bounds: &[Affine]| bounds[0].estimate(&[], &self.sizes);
        let steps = (bound(&range.high) - bound(&range.low) + 1.0).max(1.0);
        let beside = (elements / steps).clamp(1.0, cost::SCAN_LANES);
        before > elements * cost::SCAN_STEP_ADDITIONS / beside
    }

    /// Writes the definition by way of recurrences.
    fn rewritten(&mut self, program: &mut Program, site: &Site) -> Option<()> {
        let op = site.definition.reduction?;
        let rows = site.rows();
        let body = match op {
            ReduceOp::Sum => self.sum(program, site, &rows)?,
            ReduceOp::LogSumExp => return None,
            ReduceOp::Prod | ReduceOp::Max | ReduceOp::Min => {
                let body = site.definition.body;
                let exact = self.ties || matches!(program.exprs[body], Expr::Access(..));
                let fits = exact && !site.moves(&program.exprs, body);
                let carried = |site: &Site| self.recurrences.add(program, site, (op, &rows), body, Carry::default());
                fits.then(|| site.directions().iter().find_map(carried))??
            }
        };
        let tensor = site.definition.tensor;
        let place = program.definitions.iter().position(|d| d.tensor == tensor)?;
        if self.is_all(program, site, body) {
            program.definitions.remove(place);
            self.rename_last(program, tensor);
            return Some(());
        }
        program.definitions[place] = Definition {
            indices: site.outputs().to_vec(),
            reduction: None,
            conditions: Vec::new(),
            body,
            ..site.definition.clone()
        };
        Some(())
    }

    /// Whether an expression is nothing but the recurrence that was added last.
    fn is_all(&self, program: &Program, site: &Site, body: ExprId) -> bool {
        let Expr::Access(tensor, subscripts) = &program.exprs[body] else { return false };
        let last = program.tensors.len() - 1;
        tensor.0 as usize == last
            && *subscripts == site.definition.outputs()
            && program.tensors[last].extents == program[site.definition.tensor].extents
    }

    /// The tensor that was added last becomes this one, which it is equal to.
    fn rename_last(&mut self, program: &mut Program, tensor: TensorId) {
        let last = TensorId(program.tensors.len() as u32 - 1);
        program.tensors.pop();
        let mut rules = Renamed { from: last, to: tensor };
        for definition in &mut program.definitions {
            definition.body = Rewriter::default().rewrite(&mut program.exprs, definition.body, &mut rules);
            if definition.tensor == last {
                definition.tensor = tensor;
            }
        }
        self.recurrences.rename(last, tensor);
        self.pointwise.remove(&tensor);
    }

    /// A sum, piece by piece and term by term.
    fn sum(&mut self, program: &mut Program, site: &Site, rows: &[Constraint]) -> Option<ExprId> {
        let mut total = program.exprs.constant(0.0);
        let mut found = false;
        for (rows, body) in pieces(program, site, rows)? {
            let grows = |site: &&Site| growth(&rows, &site.outer, site.direction, &site.extent).is_some();
            let value = match site.directions().iter().find(grows) {
                Some(site) => {
                    found = true;
                    self.piece(program, site, &rows, body)?
                }
                None => few(program, site, &rows, body)?,
            };
            total = build::add(&mut program.exprs, total, value);
        }
        found.then_some(total)
    }

    /// A sum over a set that grows.
    fn piece(&mut self, program: &mut Program, site: &Site, rows: &[Constraint], body: ExprId) -> Option<ExprId> {
        let mut total = program.exprs.constant(0.0);
        for term in terms(&mut program.exprs, site, body)? {
            let sorted = sorted(program, site, rows, &term)?;
            let sum = self.recurrences.sum(program, site, rows, &sorted)?;
            let value = outside(program, site, &sorted, sum)?;
            total = build::add(&mut program.exprs, total, value);
        }
        Some(total)
    }
}

/// A sum over a set that has one point only, if any.
fn few(program: &mut Program, site: &Site, rows: &[Constraint], body: ExprId) -> Option<ExprId> {
    let pinned = pinned(&site.definition.indices, site.rank(), rows.to_vec(), &site.outer)?;
    pinned.left.is_empty().then(|| carry::reduced(program, site, (ReduceOp::Sum, 0.0), rows, &pinned, body))?
}

/// A term with what is the same for all of its points.
fn outside(program: &mut Program, site: &Site, sorted: &Sorted, sum: ExprId) -> Option<ExprId> {
    let factors = &sorted.outside;
    let beside = product(&mut program.exprs, factors);
    let excuses: Vec<Constraint> =
        sorted.outer_masks.iter().flat_map(|mask| guard::facts(&program.exprs, *mask, true)).collect();
    let domain = [site.outer.as_slice(), &excuses].concat();
    if !bounds::stays_inside(program, beside, &domain) {
        return None;
    }
    let risky = factors.iter().any(|&(divides, id)| factor::is_risky(program, id, divides, &domain));
    let masked_inside = !sorted.inner_masks.is_empty() && program.exprs.as_constant(beside).is_none();
    let exprs = &mut program.exprs;
    let mut value = build::multiply(exprs, beside, sum);
    if masked_inside || risky && !factor::is_never_empty(&site.definition, &site.outer) {
        // Nothing is summed, so that nothing is multiplied.
        let zero = exprs.constant(0.0);
        let nothing = build::equal(exprs, sum, zero);
        value = build::select(exprs, nothing, zero, value);
    }
    Some(masked(exprs, &sorted.outer_masks, value))
}

/// The product of factors and (with `true`) divisors.
pub fn product(exprs: &mut Exprs, factors: &[(bool, ExprId)]) -> ExprId {
    let one = exprs.constant(1.0);
    factors.iter().rev().fold(one, |product, &(divides, factor)| {
        let combine = if divides { build::divide } else { build::multiply };
        combine(exprs, product, factor)
    })
}

/// A value where all of these hold, and 0 elsewhere.
pub fn masked(exprs: &mut Exprs, masks: &[CondId], value: ExprId) -> ExprId {
    let zero = exprs.constant(0.0);
    masks.iter().rev().fold(value, |value, &mask| build::select(exprs, mask, value, zero))
}
