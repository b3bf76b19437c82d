//! Value-preserving simplification of whole programs; the local rules are in [`crate::program::build`].
//!
//! The passes are repeated until nothing changes, so simplifying twice is simplifying once.

pub mod factor;
pub mod narrow;
pub mod settle;
pub mod tidy;

use crate::diagnostic::Diagnostic;
use crate::domain::system::{self, Facts};
use crate::domain::{bounds, guard};
use crate::lift;
use crate::program::build::{self, Build};
use crate::program::expr::{Rewriter, Rules};
use crate::program::names;
use crate::program::{
    Affine, Atom, BinaryOp, Comparison, Cond, CondId, Constraint, Definition, ExprId, Exprs, Program, Range, ReduceOp,
    TensorId, TensorKind, UnaryOp, circles,
};
use crate::timings::timed;
use gradix_int::Int;
use std::collections::{HashMap, HashSet};

/// Simplifies a program. The user's own definitions stay, unless no result needs them.
///
/// ```
/// let ast = gradix::syntax::parse("input x[N]\ny[i] = sum[k in 0..3] 2 * x[i] * 1 * k + 0").unwrap();
/// let program = gradix::resolve(&ast, &[]).unwrap().program;
/// let simple = gradix::simplify(&program).unwrap();
/// assert!(gradix::print(&simple).unwrap().contains("y[i] = 2 * x[i] * sum[k in 0..3] k"));
/// ```
pub fn simplify(program: &Program) -> Result<Program, Diagnostic> {
    let mut out = program.clone();
    run(&mut out, HashSet::new(), &mut names::taken(program), false)?;
    Ok(out)
}

/// The passes in order, until nothing changes. Definitions in `generated` are the compiler's own and may
/// be put into their readers; with `prune`, inputs and sizes that nothing mentions are dropped. Gives the new ids of the
/// tensors that are left.
pub fn run(
    program: &mut Program,
    generated: HashSet<TensorId>,
    taken: &mut HashSet<String>,
    prune: bool,
) -> Result<HashMap<TensorId, TensorId>, Diagnostic> {
    timed("simplify", || rounds(program, &generated, taken))?;
    Ok(tidy::tidy(program, prune).0)
}

fn rounds(program: &mut Program, generated: &HashSet<TensorId>, taken: &mut HashSet<String>) -> Result<(), Diagnostic> {
    circles::sort(program);
    let mut known = Decisions::default();
    let mut simple = Simple::default();
    for _ in 0..MAX_ROUNDS {
        settle::drop_unread(program);
        let mut changed = simplify_each(program, &mut known, &mut simple);
        changed |= timed("share equal", || share_equal(program, generated));
        changed |= timed("settle", || settle::settle(program, generated, taken))?;
        changed |= timed("factor", || factor_sums(program))?;
        if !changed && timed("bounds", || bounds::require(program, &[])).is_empty() {
            break;
        }
    }
    Ok(())
}

/// More rounds than any program is known to need.
const MAX_ROUNDS: usize = 10;

/// Definitions that are as simple as they get on their own, and the sizes for which this was found.
#[derive(Default)]
struct Simple {
    definitions: HashMap<TensorId, Definition>,
    context: Vec<Constraint>,
}

/// Simplifies the definitions one by one, but for those that are known to be simple. Says whether one changed.
fn simplify_each(program: &mut Program, decisions: &mut Decisions, simple: &mut Simple) -> bool {
    let context = program.size_context();
    if simple.context != context {
        *simple = Simple { definitions: HashMap::new(), context: context.clone() };
    }
    let open = |definition: &Definition| simple.definitions.get(&definition.tensor) != Some(definition);
    let before = program.definitions.clone();
    let mut changed = timed("narrow", || narrow::narrow(program, &context, &open));
    changed |= timed("bodies", || simplify_bodies(program, &context, &open, decisions));
    let same = before.into_iter().zip(&program.definitions).filter(|(old, new)| old == *new);
    simple.definitions = same.map(|(old, _)| (old.tensor, old)).collect();
    changed
}

/// What is known about constraints, by the domain they are asked about.
type Decisions = HashMap<Vec<Constraint>, HashMap<Constraint, Option<bool>>>;

/// Simplifies bodies: local rules, and conditions that the domain decides. Says whether one changed.
fn simplify_bodies(
    program: &mut Program,
    context: &[Constraint],
    open: &dyn Fn(&Definition) -> bool,
    decisions: &mut Decisions,
) -> bool {
    let mut changed = false;
    for definition in program.definitions.iter_mut().filter(|definition| open(definition)) {
        let mut domain: Vec<Constraint> = definition.domain();
        domain.extend(context.iter().cloned());
        let known = decisions.remove(&domain).unwrap_or_default();
        let mut rules = Simplify { domain: Facts::new(domain), known };
        let body = Rewriter::default().rewrite(&mut program.exprs, definition.body, &mut rules);
        changed |= body != definition.body;
        definition.body = body;
        decisions.insert(rules.domain.known().to_vec(), rules.known);
    }
    changed
}

/// `sum[k] a * b[k]` becomes `a * sum[k] b[k]`, and `sum[k] a` a multiple of `a`. What was a sum is then
/// pointwise, and reads a new nested one. Says whether there was any.
fn factor_sums(program: &mut Program) -> Result<bool, Diagnostic> {
    let context = program.size_context();
    let mut changed = false;
    for mut definition in std::mem::take(&mut program.definitions) {
        let (rank, tensor, assumptions) = (definition.rank, definition.tensor, definition.assumptions.clone());
        let mut front = None;
        if let Some((outside, inside)) = factor::factor(program, &definition, &context) {
            (front, definition.body) = (Some(outside), inside);
        }
        let exprs = &mut program.exprs;
        let mut filled: Vec<Constraint> = Vec::new();
        while let Some((count, positive)) = factor::innermost_count(exprs, &definition, &context) {
            definition.indices.pop();
            front = Some(front.map_or(count, |front| build::multiply(exprs, front, count)));
            filled.extend(positive);
        }
        let Some(front) = front else {
            program.definitions.push(definition);
            continue;
        };
        changed = true;
        let outputs = definition.indices[..rank].to_vec();
        let rest = if definition.indices.len() == rank {
            filled.append(&mut definition.conditions);
            definition.body
        } else {
            definition.assumptions.extend(filled.iter().cloned());
            let name = program[tensor].name.clone();
            lift::add(program, definition, name, &context, &[])?.0
        };
        let exprs = &mut program.exprs;
        let (mut body, zero) = (build::multiply(exprs, front, rest), exprs.constant(0.0));
        if let Some(condition) = guard::all(exprs, &filled) {
            body = build::select(exprs, condition, body, zero);
        }
        lift::define_pointwise(program, tensor, outputs, assumptions, body);
    }
    Ok(changed)
}

/// What a definition computes, whatever it is called.
type Content = (Vec<Range>, usize, Option<ReduceOp>, Vec<Constraint>, Vec<Constraint>, ExprId);

/// Reads the first of several equal definitions instead of the later ones. Only nested ones and those in
/// `generated` are given up; what is no longer read is left for [`crate::settle`] to drop.
fn share_equal(program: &mut Program, generated: &HashSet<TensorId>) -> bool {
    let mut first: HashMap<Content, TensorId> = HashMap::new();
    let mut replaced: HashMap<TensorId, TensorId> = HashMap::new();
    let mut rewriter = Rewriter::default();
    for definition in &mut program.definitions {
        if !replaced.is_empty() {
            definition.body = rewriter.rewrite(&mut program.exprs, definition.body, &mut Replace(&replaced));
        }
        let ranges = definition.indices.iter().map(|i| i.range.clone()).collect();
        let (conditions, mut assumptions) = (definition.conditions.clone(), definition.assumptions.clone());
        assumptions.sort();
        let content = (ranges, definition.rank, definition.reduction, conditions, assumptions, definition.body);
        let tensor = definition.tensor;
        let own = program.tensors[tensor.0 as usize].kind == TensorKind::Nested || generated.contains(&tensor);
        match first.get(&content) {
            Some(&known) if own => {
                replaced.insert(tensor, known);
            }
            Some(_) => {}
            None => {
                first.insert(content, tensor);
            }
        }
    }
    // In a circle, what stands before may read it, too.
    let mut rewriter = Rewriter::default();
    for definition in program.definitions.iter_mut().filter(|_| !replaced.is_empty()) {
        definition.body = rewriter.rewrite(&mut program.exprs, definition.body, &mut Replace(&replaced));
    }
    !replaced.is_empty()
}

struct Replace<'a>(&'a HashMap<TensorId, TensorId>);

impl Rules for Replace<'_> {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        exprs.access(self.0.get(&tensor).copied().unwrap_or(tensor), subscripts)
    }
}

/// An expression where the domain holds: what that decides is decided.
pub fn assuming(exprs: &mut Exprs, root: ExprId, domain: Vec<Constraint>) -> ExprId {
    Rewriter::default().rewrite(exprs, root, &mut Simplify { domain: Facts::new(domain), known: HashMap::new() })
}

struct Simplify {
    domain: Facts<'static>,
    known: HashMap<Constraint, Option<bool>>,
}

/// More index conditions beside each other are left as they are.
const MAX_PRUNED: usize = 12;

impl Simplify {
    fn decide(&mut self, constraint: &Constraint) -> Option<bool> {
        if let Some(known) = self.known.get(constraint) {
            return *known;
        }
        let never = || match constraint.negated().as_slice() {
            [opposite] => self.domain.implies(opposite),
            _ => system::is_empty(&[self.domain.known(), std::slice::from_ref(constraint)].concat()),
        };
        let outcome = if self.domain.implies(constraint) {
            Some(true)
        } else if never() {
            Some(false)
        } else {
            None
        };
        self.known.insert(constraint.clone(), outcome);
        outcome
    }

    /// `i >= j and i > j` becomes `i > j`; `Err(false)` if nothing satisfies it.
    fn pruned(&self, exprs: &mut Exprs, id: CondId) -> Result<CondId, bool> {
        let Some(rows) = guard::conjunction(exprs, id).filter(|rows| rows.len() <= MAX_PRUNED) else { return Ok(id) };
        let Some(kept) = system::prune(rows.clone(), self.domain.known()) else { return Err(false) };
        Ok(if kept.len() < rows.len() { guard::all(exprs, &kept).unwrap_or(id) } else { id })
    }
    /// The condition without the parts that the domain decides: `Ok` if something is left.
    fn reduce(&mut self, exprs: &mut Exprs, id: CondId) -> Result<CondId, bool> {
        match exprs[id].clone() {
            Cond::Index(constraint) => self.decide(&constraint).map_or(Ok(id), Err),
            Cond::Compare(..) => build::decided(exprs, id).map_or(Ok(id), Err),
            Cond::Not(a) => match self.reduce(exprs, a) {
                Ok(a) => Ok(build::opposite(exprs, a)),
                Err(outcome) => Err(!outcome),
            },
            Cond::And(a, b) => match (self.reduce(exprs, a), self.reduce(exprs, b)) {
                (Err(false), _) | (_, Err(false)) => Err(false),
                (Err(true), other) | (other, Err(true)) => other,
                (Ok(a), Ok(b)) if a == b => Ok(a),
                (Ok(a), Ok(b)) => {
                    let both = exprs.add_condition(Cond::And(a, b));
                    self.pruned(exprs, both)
                }
            },
            Cond::Or(a, b) => match (self.reduce(exprs, a), self.reduce(exprs, b)) {
                (Err(true), _) | (_, Err(true)) => Err(true),
                (Err(false), other) | (other, Err(false)) => other,
                (Ok(a), Ok(b)) if a == b => Ok(a),
                (Ok(a), Ok(b)) => Ok(exprs.add_condition(Cond::Or(a, b))),
            },
        }
    }
}

impl Rules for Simplify {
    /// `⌊e / c⌋` is 0 where the domain says `0 <= e < c`.
    fn affine(&mut self, affine: &Affine) -> Affine {
        affine.substitute(&mut |atom| match atom {
            Atom::Floor(inner, c) => {
                let below = Constraint::non_negative((**inner).clone());
                let above = Constraint::at_most((**inner).clone(), Affine::constant(c - Int::ONE));
                let inside = self.decide(&below) == Some(true) && self.decide(&above) == Some(true);
                inside.then(Affine::default)
            }
            Atom::Index(_) | Atom::Param(_) => None,
        })
    }
    fn index(&mut self, exprs: &mut Exprs, affine: Affine) -> ExprId {
        Build.index(exprs, affine)
    }
    fn unary(&mut self, exprs: &mut Exprs, op: UnaryOp, a: ExprId) -> ExprId {
        Build.unary(exprs, op, a)
    }
    fn binary(&mut self, exprs: &mut Exprs, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        Build.binary(exprs, op, a, b)
    }
    fn compare(&mut self, exprs: &mut Exprs, op: Comparison, a: ExprId, b: ExprId) -> CondId {
        Build.compare(exprs, op, a, b)
    }
    fn select(&mut self, exprs: &mut Exprs, c: CondId, a: ExprId, b: ExprId) -> ExprId {
        match self.reduce(exprs, c) {
            Ok(c) => Build.select(exprs, c, a, b),
            Err(outcome) => {
                if outcome {
                    a
                } else {
                    b
                }
            }
        }
    }
}
