//! What must hold of a [`Nest`], and the proof that it does.
//!
//! What is to be proved has one form: some constraints have no solution. Where that can't be shown for all sizes, it is left
//! as a [`Check`] for the sizes at hand.

mod items;
mod lanes;
mod threads;
mod written;

use super::{FIRST, ITEM, Kernel, LAST, Leaf, LoopId, Nest, Scope, Step, Work};
use crate::domain::guard::{self, Guarded};
use crate::domain::system::{self, Facts, Found};
use crate::program::{Affine, Atom, Constraint, Expr, Exprs, ParamId, Range, Relation, TensorId};
use gradix_int::Int;
use items::Owners;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use written::Writer;

/// What could not be proved for all sizes: it is looked at again when the sizes are known.
#[derive(Clone, Debug)]
pub struct Check {
    /// The kernel.
    pub kernel: usize,
    /// The buffer that it is about.
    pub buffer: TensorId,
    /// What is asked for.
    pub rule: Rule,
    /// What holds at a point, and then that the rule is broken there: nothing may satisfy all of them.
    pub outside: Vec<Constraint>,
}

/// What is proved of the accesses of a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A subscript stays inside its buffer.
    Inside,
    /// No two items touch an element that one of them writes.
    OneItem,
    /// What is read has been written before: by the same item, or by an earlier kernel.
    WrittenBefore,
    /// Every element of a result is written.
    WrittenAtAll,
}

impl std::fmt::Display for Rule {
    /// What code does that keeps it.
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Rule::Inside => "stays inside",
            Rule::OneItem => "has one thread for each element of",
            Rule::WrittenBefore => "reads only what it has written of",
            Rule::WrittenAtAll => "writes every element of",
        })
    }
}

/// A nest of which all holds that [`verify`] asks for, with the checks that it leaves. Machines run nothing else.
#[derive(Clone, Debug)]
pub struct Verified {
    nest: Nest,
    checks: Vec<Check>,
}

impl Verified {
    /// Verifies a nest; an error says what is wrong with it.
    pub fn new(nest: Nest) -> Result<Verified, String> {
        let checks = verify(&nest)?;
        Ok(Verified { nest, checks })
    }

    /// Of parts that were verified each on its own, with the checks that they leave.
    pub(super) fn joined(nest: Nest, checks: Vec<Check>) -> Verified {
        Verified { nest, checks }
    }

    /// What is left to look at when the sizes are known.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// The nest alone.
    pub fn into_nest(self) -> Nest {
        self.nest
    }
}

impl std::ops::Deref for Verified {
    type Target = Nest;
    fn deref(&self) -> &Nest {
        &self.nest
    }
}

/// Checks that
/// - every variable is bound before it is used, and once; the ranges of the work have none;
/// - inputs are not written, and a local buffer is touched by its own kernel only;
/// - accesses have as many subscripts as their buffers have dimensions;
/// - a leaf has a reduction if and only if it has loops for it, and this combines two values at a time;
/// - lanes and unrolled loops do the same at every value, and what is packed is all that is read (see `lanes`);
/// - no two threads of an item touch an element in the same step that one of them writes (see `threads`);
/// - no subscript leaves its buffer;
/// - no two items of a kernel touch an element that one of them writes: items run in any order, and at the same time;
/// - what is read has been written before: by the same item, or by an earlier kernel;
/// - every element of a result is written.
///
/// The last four are proved here, or left to the checks that are returned.
pub fn verify(nest: &Nest) -> Result<Vec<Check>, String> {
    let (mut checks, mut whole, mut makers) = (Vec::new(), HashSet::new(), Makers::new());
    let mut exprs = nest.exprs.clone();
    for (number, kernel) in nest.kernels.iter().enumerate() {
        let mut bound = vec![false; kernel.variables.len()];
        let context: Vec<Constraint> =
            nest.context.iter().cloned().chain(kernel.work.iter().flat_map(Work::domain)).collect();
        let owners = Owners::new(nest, kernel);
        let writers = written::writers(nest, kernel);
        let mut visit = Visit {
            nest,
            number,
            kernel,
            exprs: &mut exprs,
            checks: &mut checks,
            owners,
            writers: &writers,
            done: 0,
            whole: &whole,
            makers: &makers,
        };
        visit.grid(&mut bound)?;
        visit.steps(&kernel.steps, &mut bound, &context)?;
        visit.items()?;
        let made: BTreeSet<TensorId> = writers.iter().map(|writer| writer.leaf.target).collect();
        let lasts = |buffer: &TensorId| matches!(nest[*buffer].scope, Scope::Run | Scope::Output(_));
        let starting = writers.iter().filter(|writer| writer.starts);
        starting.for_each(|writer| makers.entry(writer.leaf.target).or_default().push(*writer));
        let is_whole =
            |buffer: &TensorId| unwritten(nest, &makers, number, *buffer).is_some_and(|open| open.is_empty());
        whole.extend(made.into_iter().filter(lasts).filter(is_whole));
    }
    let last = nest.kernels.len().saturating_sub(1);
    let results = nest.buffer_ids().filter(|buffer| matches!(nest[*buffer].scope, Scope::Output(_)));
    let open =
        results.filter(|buffer| !whole.contains(buffer)).filter_map(|buffer| unwritten(nest, &makers, last, buffer));
    checks.extend(open.flatten());
    Ok(checks)
}

/// Whether no two items of a kernel touch an element that one of them writes, for all sizes.
pub(super) fn items_are_apart(nest: &Nest, kernel: &Kernel) -> bool {
    fn see(nest: &Nest, steps: &[Step], known: &[Constraint], owners: &mut Owners) {
        for step in steps {
            let leaves: Vec<&Leaf> = match step {
                Step::Tile(tile) => {
                    let inner = [known, &tile.range.constraints(tile.variable).collect::<Vec<_>>()].concat();
                    see(nest, &tile.steps, &inner, owners);
                    continue;
                }
                Step::Leaf(leaf) => vec![leaf],
                Step::Together(together) => together.leaves.iter().collect(),
            };
            for leaf in leaves {
                let known = Facts::new([known, &leaf.domain()].concat());
                owners.see(leaf.target, &leaf.subscripts, &known);
                nest.exprs.accesses(leaf.body).for_each(|(buffer, at)| owners.see(buffer, at, &known));
            }
        }
    }
    let mut owners = Owners::new(nest, kernel);
    let context: Vec<Constraint> =
        nest.context.iter().cloned().chain(kernel.work.iter().flat_map(Work::domain)).collect();
    see(nest, &kernel.steps, &context, &mut owners);
    owners.finish().is_ok_and(|open| open.is_empty())
}

/// The leaves of the kernels so far that make each buffer.
type Makers<'a> = BTreeMap<TensorId, Vec<Writer<'a>>>;

/// What is not proved to be written by the kernels up to this one, of all elements of a buffer; `None` if that can't be told.
fn unwritten(nest: &Nest, makers: &Makers, kernel: usize, buffer: TensorId) -> Option<Vec<Check>> {
    // Places have variables of their own.
    let first = nest.kernels.iter().map(|kernel| kernel.variables.len()).max().unwrap_or(0);
    let extents = nest[buffer].extents.iter().enumerate();
    let all = extents.flat_map(|(d, extent)| Range::extent(extent.clone()).constraints(first + d).collect::<Vec<_>>());
    let known = Facts::new(nest.context.iter().cloned().chain(all).collect::<Vec<_>>());
    let place: Vec<Affine> = (0..nest[buffer].extents.len()).map(|d| Affine::index(first + d)).collect();
    let makers = makers.get(&buffer).map_or(&[][..], Vec::as_slice);
    let open = written::unwritten(makers, &place, &known);
    let check = |outside| Check { kernel, buffer, rule: Rule::WrittenAtAll, outside };
    Some(open?.into_iter().map(check).collect())
}

/// Whether a check holds for these sizes. Where the search was cut short, accesses count as wrong; of what is written, which
/// can't do harm outside of the nest's own buffers, only a place that was found to be missed does.
pub fn holds(check: &Check, sizes: &[Int]) -> bool {
    let rows: Vec<Constraint> = check.outside.iter().map(|c| crate::domain::bounds::at(c, sizes)).collect();
    if system::is_empty(&rows) {
        return true;
    }
    match (system::find(&rows, 20_000), check.rule) {
        (Found::Nothing, _) => true,
        (Found::Values(_), _) => false,
        (Found::Unknown, Rule::Inside | Rule::OneItem) => false,
        (Found::Unknown, Rule::WrittenBefore | Rule::WrittenAtAll) => true,
    }
}

struct Visit<'a> {
    nest: &'a Nest,
    number: usize,
    kernel: &'a Kernel,
    exprs: &'a mut Exprs,
    checks: &'a mut Vec<Check>,
    owners: Owners<'a>,
    /// All leaves of the kernel, and how many of them have been seen.
    writers: &'a [Writer<'a>],
    done: usize,
    /// Buffers of which earlier kernels have written every element.
    whole: &'a HashSet<TensorId>,
    makers: &'a Makers<'a>,
}

impl Visit<'_> {
    /// Binds the variables of the work, whose bounds are sizes.
    fn grid(&self, bound: &mut [bool]) -> Result<(), String> {
        for work in &self.kernel.work {
            [&work.low, &work.high, &work.step].into_iter().try_for_each(|affine| self.bound(affine, &[]))?;
            work.variables().into_iter().try_for_each(|variable| self.bind(variable, bound))?;
        }
        let outermost = self.kernel.work.first().map(Work::variables);
        if outermost == Some([FIRST, LAST, ITEM]) { Ok(()) } else { Err(self.wrong("work without a first dimension")) }
    }

    fn steps(&mut self, steps: &[Step], bound: &mut [bool], context: &[Constraint]) -> Result<(), String> {
        for step in steps {
            match step {
                Step::Tile(tile) => {
                    self.range(&tile.range, bound)?;
                    if tile.size < 1 {
                        return Err(self.wrong("a tile that does not advance"));
                    }
                    self.bind(tile.variable, bound)?;
                    let rows = tile.range.constraints(tile.variable);
                    let inner: Vec<Constraint> = context.iter().cloned().chain(rows).collect();
                    self.steps(&tile.steps, bound, &inner)?;
                    bound[tile.variable.number()] = false;
                }
                Step::Leaf(leaf) => self.leaf(leaf, bound, context)?,
                Step::Together(together) => {
                    lanes::together(self.nest, self.number, together).map_err(|what| self.wrong(what))?;
                    together.leaves.iter().try_for_each(|leaf| self.leaf(leaf, bound, context))?;
                }
            }
        }
        Ok(())
    }

    fn leaf(&mut self, leaf: &Leaf, bound: &mut [bool], context: &[Constraint]) -> Result<(), String> {
        if leaf.reduction.is_some() != (leaf.loops.len() > leaf.outputs) {
            return Err(self.wrong("a reduction without loops, or loops without a reduction"));
        }
        if leaf.reduction.is_some_and(|op| op.combine().is_none()) {
            return Err(self.wrong("a reduction that takes all values at once"));
        }
        for l in &leaf.loops {
            self.range(&l.range, bound)?;
            self.bind(l.variable, bound)?;
        }
        leaf.guards.iter().try_for_each(|g| self.bound(&g.affine, bound))?;
        lanes::kinds(self.nest, self.number, leaf).map_err(|what| self.wrong(what))?;
        threads::apart(self.exprs, leaf, context).map_err(|what| self.wrong(what))?;
        let mut domain = Guarded::new([context, &leaf.domain()].concat());
        let kind = self.nest[leaf.target].scope;
        let number = self.number;
        let foreign = |kind: Scope| matches!(kind, Scope::Local(k) if k != number);
        if matches!(kind, Scope::Input(_)) || foreign(kind) {
            return Err(self.wrong("a buffer is written that is not this kernel's to write"));
        }
        self.access(leaf.target, &leaf.subscripts, bound, domain.under(&[]))?;
        if leaf.accumulate {
            self.written(leaf.target, &leaf.subscripts, domain.under(&[]));
        }
        for (access, guards) in guard::guarded_accesses(self.exprs, leaf.body) {
            let Expr::Access(buffer, subscripts) = self.exprs[access].clone() else { continue };
            if foreign(self.nest[buffer].scope) {
                return Err(self.wrong("a local buffer of another kernel is read"));
            }
            for guard in &guards {
                self.access(buffer, &subscripts, bound, domain.under(guard))?;
                self.written(buffer, &subscripts, domain.under(guard));
            }
        }
        self.done += 1;
        leaf.loops.iter().for_each(|l| bound[l.variable.number()] = false);
        Ok(())
    }

    /// What has been made is there when it is read.
    fn written(&mut self, buffer: TensorId, subscripts: &[Affine], known: &Facts) {
        let nest = self.nest;
        let open = match nest[buffer].scope {
            Scope::Input(_) => return,
            Scope::Output(_) | Scope::Run if !self.writers.iter().any(|writer| writer.makes(buffer)) => {
                if self.whole.contains(&buffer) {
                    return;
                }
                let makers = self.makers.get(&buffer).map_or(&[][..], Vec::as_slice);
                written::unwritten(makers, subscripts, known)
            }
            Scope::Output(_) | Scope::Run | Scope::Local(_) => {
                let before: Vec<Writer> =
                    self.writers[..self.done].iter().filter(|w| w.makes(buffer)).copied().collect();
                written::uncovered(&before, subscripts, known)
            }
        };
        let number = self.number;
        let check = |outside| Check { kernel: number, buffer, rule: Rule::WrittenBefore, outside };
        self.checks.extend(open.into_iter().flatten().map(check));
    }

    /// Items share nothing that one of them writes.
    fn items(self) -> Result<(), String> {
        let (number, name) = (self.number, &self.kernel.name);
        let shared = |buffer| format!("{name}: items share elements of '{}'", self.nest[buffer].name);
        let open = self.owners.finish().map_err(shared)?;
        let check = |(buffer, outside)| Check { kernel: number, buffer, rule: Rule::OneItem, outside };
        self.checks.extend(open.into_iter().map(check));
        Ok(())
    }

    fn access(
        &mut self,
        buffer: TensorId,
        subscripts: &[Affine],
        bound: &[bool],
        domain: &Facts,
    ) -> Result<(), String> {
        let extents = &self.nest[buffer].extents;
        if subscripts.len() != extents.len() {
            return Err(self.wrong("an access with the wrong number of subscripts"));
        }
        self.owners.see(buffer, subscripts, domain);
        for (subscript, extent) in subscripts.iter().zip(extents) {
            self.bound(subscript, bound)?;
            let room = (extent.clone() - subscript.clone()).shift(-1);
            for inside in [subscript.clone(), room] {
                let rule = Constraint::non_negative(inside.clone());
                if !domain.implies(&rule) && !self.rounded(subscript, domain).is_some_and(|more| more.implies(&rule)) {
                    let outside = [domain.known(), &[Constraint::at_most(inside, Affine::constant(-1))]].concat();
                    self.checks.push(Check { kernel: self.number, buffer, rule: Rule::Inside, outside });
                }
            }
        }
        Ok(())
    }

    /// The domain, with what it says of each floor in a subscript by itself. That is rounded: from `4*q <= f < 4*G` follows
    /// `q <= G - 1`, which all rows at once, without rounding, do not say. `None` without floors.
    fn rounded(&self, subscript: &Affine, domain: &Facts) -> Option<Facts<'static>> {
        let fresh = self.kernel.variables.len();
        let mut more = Vec::new();
        for (atom, _) in subscript.terms() {
            let Atom::Floor(inner, size) = atom else { continue };
            let rest = (**inner).clone() - Affine::index(fresh).scale(size);
            let above = Affine::constant(size.clone()).shift(-1) - rest.clone();
            // Built directly, as what follows: the canonical form would have the floor in it here, and none there.
            let own = [rest, above].map(|affine| Constraint { affine, relation: Relation::NonNegative });
            let rows = [domain.known(), &own].concat();
            let others = |atom: &Atom| matches!(atom, Atom::Index(v) if *v as usize != fresh);
            let floor = inner.floor_div(size);
            let places: Vec<Affine> = (0..fresh).map(Affine::index).chain([floor]).collect();
            let found = system::project(&rows, &others).unwrap_or_default();
            let stated = |row: &Constraint| Constraint { affine: row.affine.with_indices(&places), ..row.clone() };
            more.extend(found.iter().map(stated));
        }
        (!more.is_empty()).then(|| Facts::new([domain.known(), &more].concat()))
    }

    fn range(&self, range: &crate::program::Range, bound: &[bool]) -> Result<(), String> {
        range.low.iter().chain(&range.high).try_for_each(|b| self.bound(b, bound))
    }

    fn bound(&self, affine: &Affine, bound: &[bool]) -> Result<(), String> {
        let mut fine = true;
        affine.visit_atoms(&mut |atom| {
            fine &= match atom {
                Atom::Index(v) => bound.get(*v as usize) == Some(&true),
                Atom::Param(ParamId(p)) => (*p as usize) < self.nest.params.len(),
                Atom::Floor(..) => true,
            };
        });
        if fine { Ok(()) } else { Err(self.wrong("a variable is used outside its loop")) }
    }

    fn bind(&self, variable: LoopId, bound: &mut [bool]) -> Result<(), String> {
        match bound.get_mut(variable.number()) {
            Some(bound @ false) => {
                *bound = true;
                Ok(())
            }
            Some(true) | None => Err(self.wrong("a variable is bound twice")),
        }
    }

    fn wrong(&self, what: &str) -> String {
        format!("{}: {what}", self.kernel.name)
    }
}
