//! Names, ranges and bounds: `Ast` to [`Program`].
//!
//! Every definition is resolved in two walks over its expression. The first (`survey`) collects the
//! indices and where they are used as subscripts, from which `infer` finds the ranges that were not
//! written. The second (`lower`) builds the normal form: nested reductions become definitions of
//! their own over just the indices that they use, and `clamp`, `wrap`, `reflect`, `pad`, `min` and
//! `max` in subscripts become choices between affine accesses.

mod advise;
mod body;
mod circle;
mod condition;
mod declare;
mod frame;
mod index;
mod infer;
mod mean;
mod survey;

use crate::diagnostic::{Diagnostic, Result, Span};
use crate::domain::{bounds, order};
use crate::program::{Affine, Atom, Constraint, ParamId, Places, Program, TensorId, fold};
use crate::syntax::MAX_ERRORS;
use crate::syntax::ast::Ast;
use gradix_int::Int;
use std::collections::{HashMap, HashSet};

/// The most indices that can be in scope at one place.
pub const MAX_INDICES: usize = 24;

/// A program and where its parts stand in the source.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// What is computed.
    pub program: Program,
    /// Where it was written.
    pub places: Places,
}

/// Gives every name its meaning. `fixed` holds the sizes that are fixed from outside.
///
/// ```
/// let ast = gradix::syntax::parse("input x[N]\ny[i] = x[N - 1 - i]^2").unwrap();
/// let resolved = gradix::resolve(&ast, &[]).unwrap();
/// assert_eq!(resolved.program.outputs.len(), 1);
/// ```
pub fn resolve(ast: &Ast, fixed: &[(String, Int)]) -> Result<Resolved> {
    let resolved = resolve_given(ast, fixed, &[])?;
    // How small a size can be decides which of several extents is the largest: this has to be known from the start.
    let least = least_sizes(&resolved);
    if least.is_empty() { Ok(resolved) } else { resolve_given(ast, fixed, &least) }
}

/// Lower bounds of single sizes that follow from subscripts.
fn least_sizes(resolved: &Resolved) -> Vec<(String, Int)> {
    let bound = |fact: &Constraint| match fact.affine.terms() {
        [(Atom::Param(ParamId(p)), factor)] if *factor == Int::ONE => {
            Some((resolved.program.params[*p as usize].name.clone(), -fact.affine.offset().clone()))
        }
        _ => None,
    };
    resolved.places.implied.iter().filter_map(bound).collect()
}

fn resolve_given(ast: &Ast, fixed: &[(String, Int)], least: &[(String, Int)]) -> Result<Resolved> {
    let mut resolver = Resolver { fixed: fixed.to_vec(), least: least.to_vec(), ..Resolver::default() };
    resolver.declare(ast);
    for unit in circle::units(ast) {
        resolver.define_unit(&unit);
    }
    resolver.choose_outputs(ast);
    resolver.expect_definition(ast);
    if resolver.diagnostics.is_empty() {
        resolver.check_bounds();
    }
    if resolver.diagnostics.is_empty() {
        resolver.check_order();
    }
    if !resolver.diagnostics.is_empty() {
        resolver.diagnostics.sort_by_key(|d| d.labels.first().map(|l| l.span));
        resolver.diagnostics.truncate(MAX_ERRORS);
        return Err(resolver.diagnostics);
    }
    let Resolver { mut program, mut places, .. } = resolver;
    let names: Vec<String> = program.params.iter().map(|param| param.name.clone()).collect();
    tidy(&mut program, &mut places);
    // Nested definitions have their final ranges now; what only excluded cases read goes.
    fold::drop_excluded(&mut program);
    tidy(&mut program, &mut places);
    let of_name = |name: &String| program.params.iter().position(|p| p.name == *name).map(|p| ParamId(p as u32));
    for (requirement, _) in &mut places.requirements {
        let moved = requirement.affine.substitute(&mut |atom| match atom {
            Atom::Param(ParamId(p)) => of_name(&names[*p as usize]).map(Affine::param),
            Atom::Index(_) | Atom::Floor(..) => None,
        });
        *requirement = requirement.rebuilt(moved);
    }
    let known = least.iter().filter_map(|(name, least)| Some(lower_bound(of_name(name)?, least)));
    places.implied = known.collect();
    let asked = bounds::require(&mut program, &places.implied);
    places.notes.extend(asked.iter().filter_map(|asked| asked.note(&program, &places)).collect::<Vec<_>>());
    places.implied.extend(asked.into_iter().map(|asked| asked.row));
    Ok(Resolved { program, places })
}

/// Brings a program into its canonical layout; places go with it.
fn tidy(program: &mut Program, places: &mut Places) {
    let (tensors, exprs) = crate::simplify::tidy::tidy(program, false);
    let accesses = std::mem::take(&mut places.accesses).into_iter();
    places.accesses =
        accesses.filter_map(|((t, e), span)| Some(((*tensors.get(&t)?, *exprs.get(&e)?), span))).collect();
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq)]
enum Symbol {
    Param(ParamId),
    Fixed(Int),
    Tensor(TensorId),
    /// Declared further down, or with a mistake that is reported already.
    Declared(Span),
}

#[derive(Default)]
struct Resolver {
    program: Program,
    places: Places,
    fixed: Vec<(String, Int)>,
    /// Lower bounds of sizes that are known before their declaration.
    least: Vec<(String, Int)>,
    symbols: HashMap<String, Symbol>,
    /// Where each name was declared first.
    declared: HashMap<String, Span>,
    /// Sizes that were declared by an extent.
    implied: Vec<String>,
    /// The names that may be used before the line that defines them: those of the circle at hand.
    circle: HashSet<String>,
    /// The indices of reductions in this definition so far.
    reduced: Vec<(String, Span)>,
    /// Names with a mistake in their declaration: their users are not blamed.
    broken: Vec<String>,
    diagnostics: Vec<Diagnostic>,
}

impl Resolver {
    fn report(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < 2 * MAX_ERRORS && !self.diagnostics.contains(&diagnostic) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Something already reported that stands for a broken name, so that its user is dropped without a message.
    fn reported(&self, name: &str) -> Option<Diagnostic> {
        let broken = self.broken.iter().any(|b| b == name);
        broken.then(|| self.diagnostics.last().cloned().expect("a broken name has been reported"))
    }

    fn check_bounds(&mut self) {
        let context = self.program.size_context();
        for violation in bounds::certain(&self.program, &context) {
            let diagnostic = violation.describe(&self.program, &self.places);
            self.report(diagnostic);
        }
    }

    /// Every element of a recurrence comes after those that it reads.
    fn check_order(&mut self) {
        if let Err(unordered) = order::order(&self.program) {
            let diagnostic = unordered.describe(&self.program, &self.places);
            self.report(diagnostic);
        }
    }

    /// A size that is the smallest or largest of several expressions.
    fn derived_size(&mut self, parts: Vec<Affine>, smallest: bool) -> Affine {
        crate::domain::extent::extent(&mut self.program, parts, smallest)
    }
}

/// `size >= least`
fn lower_bound(size: ParamId, least: &Int) -> Constraint {
    Constraint::at_most(Affine::constant(least.clone()), Affine::param(size))
}
