//! The first walk over a definition: its indices, and where they are used as subscripts.
//!
//! Indices are numbered in the order in which they are introduced; the second walk meets them in the same order.

use super::declare::collect_names;
use super::index::Scope;
use super::{Resolver, Symbol};
use crate::diagnostic::{Diagnostic, Span};
use crate::program::{Affine, Range};
use crate::syntax::ast::{Binder, Definition, Expr, ExprKind, ReduceItem};
use std::collections::HashSet;

/// An index where it is introduced.
pub(super) struct Introduced {
    pub(super) name: String,
    pub(super) span: Span,
    /// The range as written.
    pub(super) range: Option<Range>,
    /// Whether it is an index of the definition itself.
    pub(super) output: bool,
}

/// A subscript that may decide the range of an index.
pub(super) struct Use {
    pub(super) subscript: Affine,
    pub(super) extent: Affine,
    /// Inside `pad`, `clamp`, `wrap` or `reflect`.
    pub(super) weak: bool,
    /// Inside `clamp`, `wrap` or `reflect`, which bring every value into the tensor.
    pub(super) folded: bool,
    /// In a branch of a condition.
    pub(super) guarded: bool,
    pub(super) span: Span,
}

/// What stands around a subscript.
#[derive(Clone, Copy, Default)]
struct Around {
    /// `pad`
    weak: bool,
    /// A branch of a condition.
    guarded: bool,
}

#[derive(Default)]
pub(super) struct Survey {
    pub(super) indices: Vec<Introduced>,
    pub(super) uses: Vec<Use>,
    scope: Vec<(String, usize)>,
}

impl Resolver {
    /// `None` if a mistake was found (and reported).
    pub(super) fn survey(&mut self, definition: &Definition) -> Option<Survey> {
        let before = self.diagnostics.len();
        let mut survey = Survey::default();
        let binders: Vec<&Binder> = definition.indices.iter().collect();
        self.introduce_bracket(&binders, true, &mut survey);
        self.survey_expr(&definition.body, Around::default(), &mut survey);
        (self.diagnostics.len() == before).then_some(survey)
    }

    fn introduce_bracket(&mut self, binders: &[&Binder], output: bool, survey: &mut Survey) {
        let bracket = survey.scope.len();
        for (position, binder) in binders.iter().enumerate() {
            if !self.uses_later_index(binder, &binders[position + 1..], output, survey) {
                self.introduce_index(binder, output, survey, bracket);
            }
        }
    }

    /// Reports a range that uses an index which its bracket binds only later.
    fn uses_later_index(&mut self, binder: &Binder, later: &[&Binder], output: bool, survey: &Survey) -> bool {
        let Some(range) = &binder.range else { return false };
        let mut used = HashSet::new();
        collect_names(&range.low, &mut used);
        collect_names(&range.high, &mut used);
        used.retain(|name| survey.scope.iter().all(|(n, _)| n != name));
        let Some(bound) = later.iter().map(|b| &b.name).find(|name| used.contains(&name.text)) else { return false };
        let span = range.low.span.to(range.high.span);
        if output {
            self.report(depends_on_index(&binder.name.text).at(span));
        } else {
            let message = format!("the range of '{}' uses '{}', which is bound later", binder.name.text, bound.text);
            let diagnostic = Diagnostic::error("unknown-name", message).at(span).label(bound.span, "bound here");
            self.report(diagnostic.hint(format!("put '{}' before '{}'", bound.text, binder.name.text)));
        }
        true
    }

    fn introduce_index(&mut self, binder: &Binder, output: bool, survey: &mut Survey, bracket: usize) {
        let Binder { name, range } = binder;
        if let Some(Symbol::Param(_) | Symbol::Fixed(_) | Symbol::Tensor(_) | Symbol::Declared(_)) =
            self.symbols.get(&name.text)
        {
            let message = format!("the index '{}' has the name of a size or tensor", name.text);
            self.report(
                Diagnostic::error("name-clash", message).at(name.span).hint("choose another name for the index"),
            );
        }
        if let Some((_, first)) = survey.scope[bracket..].iter().find(|(n, _)| *n == name.text) {
            let message = format!("the index '{}' appears twice in one bracket", name.text);
            let diagnostic = Diagnostic::error("duplicate-index", message).at(name.span);
            let marked = diagnostic.label(survey.indices[*first].span, "bound here first");
            self.report(marked.hint("give every index of the bracket a name of its own"));
        }
        if survey.scope.len() == super::MAX_INDICES {
            let message = format!("more than {} indices are in scope here", super::MAX_INDICES);
            self.report(Diagnostic::error("too-many-indices", message).at(name.span));
        }
        let written = range.as_ref().and_then(|r| match self.range(r, &survey.scope) {
            Ok(range) => Some(range),
            Err(diagnostic) => {
                self.report(diagnostic);
                None
            }
        });
        if let (true, Some(range), Some(written)) = (output, range, &written) {
            self.check_output_range(name.text.as_str(), written, range.low.span.to(range.high.span));
        }
        if !output {
            self.reduced.push((name.text.clone(), name.span));
        }
        let number = survey.indices.len();
        survey.indices.push(Introduced { name: name.text.clone(), span: name.span, range: written, output });
        survey.scope.push((name.text.clone(), number));
    }

    fn check_output_range(&mut self, name: &str, range: &Range, span: Span) {
        if range.low != [Affine::constant(0)] {
            let message = format!("the range of '{name}', an index of a definition, has to start at 0");
            self.report(Diagnostic::error("bad-range", message).at(span).hint("shift the subscripts instead"));
        }
        if range.high.iter().any(Affine::uses_indices) {
            self.report(depends_on_index(name).at(span));
        }
    }

    fn survey_expr(&mut self, expr: &Expr, around: Around, survey: &mut Survey) {
        match &expr.kind {
            ExprKind::Integer(_) | ExprKind::Real(_) | ExprKind::Pi | ExprKind::Inf | ExprKind::Name(_) => {}
            ExprKind::Access { name, subscripts } => {
                if let Some(Symbol::Tensor(id)) = self.symbols.get(&name.text)
                    && !self.circle.contains(&name.text)
                {
                    let extents = self.program[*id].extents.clone();
                    for (subscript, extent) in subscripts.iter().zip(extents) {
                        self.survey_subscript(subscript, extent, around, survey);
                    }
                }
            }
            ExprKind::Call { function, arguments } => {
                for (position, argument) in arguments.iter().enumerate() {
                    let weak = around.weak || function.text == "pad" && position == 0;
                    self.survey_expr(argument, Around { weak, ..around }, survey);
                }
            }
            ExprKind::Negate(a) | ExprKind::Not(a) => self.survey_expr(a, around, survey),
            ExprKind::Binary { left, right, .. } => {
                self.survey_expr(left, around, survey);
                self.survey_expr(right, around, survey);
            }
            ExprKind::Compare { first, rest } => {
                self.survey_expr(first, around, survey);
                rest.iter().for_each(|(_, side)| self.survey_expr(side, around, survey));
            }
            ExprKind::If { condition, then, otherwise } => {
                self.survey_expr(condition, around, survey);
                for branch in [then, otherwise] {
                    self.survey_expr(branch, Around { guarded: true, ..around }, survey);
                }
            }
            ExprKind::Reduce { items, body, .. } => {
                let depth = survey.scope.len();
                let binders = items.iter().filter_map(|item| match item {
                    ReduceItem::Binder(binder) => Some(binder),
                    ReduceItem::Condition(_) => None,
                });
                self.introduce_bracket(&binders.collect::<Vec<_>>(), false, survey);
                for item in items {
                    if let ReduceItem::Condition(condition) = item {
                        self.survey_expr(condition, around, survey);
                    }
                }
                self.survey_expr(body, around, survey);
                survey.scope.truncate(depth);
            }
        }
    }

    /// Mistakes in subscripts are reported by the second walk.
    fn survey_subscript(&mut self, expr: &Expr, extent: Affine, around: Around, survey: &mut Survey) {
        let (inner, folded) = match &expr.kind {
            ExprKind::Call { function, arguments }
                if matches!(function.text.as_str(), "clamp" | "wrap" | "reflect") && arguments.len() == 1 =>
            {
                (&arguments[0], true)
            }
            _ => (expr, false),
        };
        let scope: &Scope = &survey.scope.clone();
        if let Ok(subscript) = self.affine(inner, scope) {
            let (weak, guarded) = (around.weak || folded, around.guarded);
            survey.uses.push(Use { subscript, extent, weak, folded, guarded, span: expr.span });
        }
    }
}

fn depends_on_index(name: &str) -> Diagnostic {
    let message = format!("the extent of '{name}', an index of a definition, can depend on sizes only");
    let hint = "use the largest extent, and 'if … then … else 0' or a range inside the sum";
    Diagnostic::error("bad-range", message).hint(hint)
}
