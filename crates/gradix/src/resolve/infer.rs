//! Ranges that were not written, from the uses of an index as a subscript (SPEC: 'range inference').

use super::Resolver;
use super::survey::{Introduced, Survey, Use};
use crate::diagnostic::{Diagnostic, Span};
use crate::domain::system;
use crate::program::{Affine, Atom, Constraint, Range};
use crate::syntax::ast::Definition;
use crate::syntax::print_definition;
use gradix_int::Int;

impl Resolver {
    /// The range of every index, in the numbers of the survey; and what is wrong if one can't be inferred.
    pub(super) fn infer(&mut self, survey: &Survey, definition: &Definition) -> (Vec<Range>, Option<Diagnostic>) {
        let mut wrong = None;
        let mut ranges: Vec<Option<Range>> = survey.indices.iter().map(|i| i.range.clone()).collect();
        for (number, index) in survey.indices.iter().enumerate() {
            if let (true, Some(range)) = (index.output, &mut ranges[number])
                && range.high.len() > 1
            {
                let extents = range.high.iter().map(|h| h.shift(1)).collect();
                *range = Range::extent(self.derived_size(extents, true));
            }
        }
        while let Some(number) = ranges.iter().position(Option::is_none) {
            let found = [false, true].into_iter().find_map(|weak| {
                self.infer_bare(survey, &ranges, weak).or_else(|| self.infer_largest(survey, &ranges, weak))
            });
            let (number, inferred) =
                found.unwrap_or_else(|| (number, Err(self.cannot_infer(number, survey, definition))));
            ranges[number] = Some(inferred.unwrap_or_else(|diagnostic| {
                wrong.get_or_insert(diagnostic);
                Range::extent(Affine::constant(0))
            }));
        }
        (ranges.into_iter().flatten().collect(), wrong)
    }

    /// The first unknown index with a bare use.
    fn infer_bare(&mut self, survey: &Survey, ranges: &[Option<Range>], weak: bool) -> Option<Inferred> {
        for (number, _) in ranges.iter().enumerate().filter(|(_, r)| r.is_none()) {
            let bare =
                |u: &&Use| u.weak == weak && (u.subscript.as_index() == Some(number) || runs_over(u, number, ranges));
            let uses: Vec<&Use> = survey.uses.iter().filter(bare).collect();
            let Some(first) = uses.first() else { continue };
            for other in &uses[1..] {
                if let Err(diagnostic) = self.agree(first, other, &survey.indices[number]) {
                    return Some((number, Err(diagnostic)));
                }
            }
            return Some((number, Ok(Range::extent(first.extent.clone()))));
        }
        None
    }

    /// Two extents of one index: equal, equal for some sizes (a requirement), or in conflict.
    fn agree(&mut self, first: &Use, other: &Use, index: &Introduced) -> Result<(), Diagnostic> {
        if first.extent == other.extent {
            return Ok(());
        }
        let equal = Constraint::equal(first.extent.clone(), other.extent.clone());
        let mut context = self.program.size_context();
        if system::implies(&context, &equal) {
            return Ok(());
        }
        let diagnostic = self.extents_differ(first, other, index, &context);
        // Sizes for which the index has no values at all are no agreement.
        context.extend([equal.clone(), Constraint::non_negative(first.extent.shift(-1))]);
        if system::is_empty(&context) {
            return Err(diagnostic);
        }
        let (a, b) = (self.show(&first.extent), self.show(&other.extent));
        let note = Diagnostic { message: format!("this requires {b} = {a}"), ..diagnostic.clone().as_note() };
        let is_param = |size: &String| self.program.params.iter().any(|param| param.name == *size);
        let declared = (is_param(&a) && is_param(&b)).then(|| format!("'param {a}, {b} = {a}' declares it"));
        self.places.notes.push(Diagnostic { hints: declared.into_iter().collect(), ..note });
        self.add_fact(equal, diagnostic);
        Ok(())
    }

    /// The range that the hint proposes is the larger one where a condition stands around the other use, else the smaller.
    fn extents_differ(&self, first: &Use, other: &Use, index: &Introduced, context: &[Constraint]) -> Diagnostic {
        let (a, b) = (self.show(&first.extent), self.show(&other.extent));
        let message = format!("the index '{}' runs over {a} here and over {b} there", index.name);
        let at_most = |low: &Use, high: &Use| {
            system::implies(context, &Constraint::at_most(low.extent.clone(), high.extent.clone()))
        };
        let proposed = match (at_most(first, other), at_most(other, first)) {
            (true, _) if first.guarded => &b,
            (false, true) if !other.guarded => &b,
            _ => &a,
        };
        Diagnostic::error("extents-differ", message)
            .label(first.span, format!("extent {a}"))
            .label(other.span, format!("extent {b}"))
            .hint(format!("write its range, as in '{} in 0..{proposed}'", index.name))
    }

    /// The first unknown index that is the only unknown one in some subscript: the largest range from 0
    /// that keeps all such subscripts inside their tensors.
    fn infer_largest(&mut self, survey: &Survey, ranges: &[Option<Range>], weak: bool) -> Option<Inferred> {
        for (number, _) in ranges.iter().enumerate().filter(|(_, r)| r.is_none()) {
            let alone = |u: &&Use| u.weak == weak && only_unknown(&u.subscript, number, ranges);
            let uses: Vec<&Use> = survey.uses.iter().filter(alone).collect();
            match self.largest_range(number, &uses, survey, ranges) {
                Ok(Some(range)) => return Some((number, Ok(range))),
                Ok(None) => {}
                Err(diagnostic) => return Some((number, Err(diagnostic))),
            }
        }
        None
    }

    fn largest_range(
        &mut self,
        number: usize,
        uses: &[&Use],
        survey: &Survey,
        ranges: &[Option<Range>],
    ) -> Result<Option<Range>, Diagnostic> {
        let context = self.program.size_context();
        let known = ranges.iter().enumerate().filter_map(|(i, r)| r.as_ref().map(|r| (i, r)));
        let mut domain: Vec<Constraint> = known.flat_map(|(i, r)| r.constraints(i).collect::<Vec<_>>()).collect();
        domain.extend(context.iter().cloned());
        let atom = Atom::Index(number as u32);
        let mut highest: Vec<Affine> = Vec::new();
        let mut late: Option<(&Use, Affine)> = None;
        for used in uses {
            let inside = [used.subscript.clone(), used.extent.shift(-1) - used.subscript.clone()];
            for row in inside.map(Constraint::non_negative) {
                let factor = row.affine.coefficient(&atom);
                let rest = row.affine.add_scaled(&-factor.clone(), &Affine::atom(atom.clone()));
                if rest.uses_index(number) || factor == Int::ZERO {
                    continue;
                }
                let bounds = system::lower_bounds(&rest, &domain, &|a| matches!(a, Atom::Index(_)))?;
                if bounds.is_empty() {
                    continue;
                }
                let smallest = self.derived_size(bounds, false);
                if factor < Int::ZERO {
                    let high = smallest.floor_div(&-factor);
                    if !highest.contains(&high) {
                        highest.push(high);
                    }
                } else if system::implies(&context, &Constraint::at_most(smallest.clone(), Affine::constant(-1))) {
                    late.get_or_insert((used, (-smallest).shift(&factor - Int::ONE).floor_div(&factor)));
                }
            }
        }
        if let Some((used, low)) = late {
            return Err(self.cannot_start(&survey.indices[number], used, &low, &highest));
        }
        if highest.is_empty() {
            return Ok(None);
        }
        let extents = highest.into_iter().map(|h| h.shift(1)).collect();
        let extent = self.derived_size(extents, true);
        self.note_few_values(&extent, number, uses, survey);
        Ok(Some(Range::extent(extent)))
    }

    /// That an index has at most one value, where a tensor of any size is read, is hardly meant.
    fn note_few_values(&mut self, extent: &Affine, number: usize, uses: &[&Use], survey: &Survey) {
        let Some(count) = extent.as_constant().filter(|count| **count <= Int::ONE) else { return };
        let is_open = |used: &&&Use| *count <= Int::ZERO || used.extent.as_constant().is_none();
        let Some(used) = uses.iter().find(is_open) else { return };
        let name = &survey.indices[number].name;
        let values = if *count == Int::ONE { "only the value 0" } else { "no value" };
        let message = format!("the index '{name}' has {values}: with others this subscript would leave its tensor");
        let mut note = Diagnostic::error("no-range", message).at(used.span).as_note();
        if used.subscript == -Affine::index(number) {
            note = note.hint(format!("to read backwards, write '{} - {name}'", self.show(&used.extent.shift(-1))));
        }
        self.places.notes.push(note);
    }

    fn cannot_infer(&self, number: usize, survey: &Survey, definition: &Definition) -> Diagnostic {
        let Introduced { name, span, output, .. } = &survey.indices[number];
        let same_name = |other: &&Introduced| !other.output && other.name == *name;
        if let Some(inner) = survey.indices.iter().find(same_name).filter(|_| *output) {
            return hidden(definition, name, *span, inner);
        }
        let used = survey.uses.iter().find(|u| u.subscript.uses_index(number));
        let end = match (used, self.program.params.first()) {
            (Some(used), _) => self.show(&used.extent),
            (None, Some(param)) => param.name.clone(),
            (None, None) => "3".to_string(),
        };
        let message = format!("the range of '{name}' can't be inferred");
        Diagnostic::error("no-range", message).at(*span).hint(format!("write it, as in '{name} in 0..{end}'"))
    }

    /// The error for an index that has to start at `low` to stay inside a tensor.
    fn cannot_start(&self, index: &Introduced, used: &Use, low: &Affine, highest: &[Affine]) -> Diagnostic {
        let (name, extent) = (&index.name, self.show(&used.extent));
        let end = highest.first().map_or(extent.clone(), |high| self.show(&high.shift(1)));
        let hint = match (used.weak, used.guarded, index.output) {
            (true, ..) => format!("write it, as in '{name} in 0..{extent}'"),
            (false, true, _) => {
                let ends = highest.iter().map(|high| high.shift(1)).chain([used.extent.clone()]).collect();
                let end = self.show(&self.smallest(ends));
                format!("conditions take no part in inference: write the range, as in '{name} in 0..{end}'")
            }
            (false, false, true) => {
                format!(
                    "write a range from 0, as in '{name} in 0..{extent}', and shift the subscript or use pad or 'if'"
                )
            }
            (false, false, false) => format!("write it, as in '{name} in {}..{end}'", self.show(low)),
        };
        let message = format!("the range of '{name}' can't be inferred: it can't start at 0");
        Diagnostic::error("no-range", message)
            .at(index.span)
            .label(used.span, "this subscript would leave its tensor")
            .hint(hint)
    }

    /// One of these that is at most all others, or the first.
    fn smallest(&self, mut sizes: Vec<Affine>) -> Affine {
        let context = self.program.size_context();
        let at_most = |a: &Affine, b: &Affine| system::implies(&context, &Constraint::at_most(a.clone(), b.clone()));
        let found = sizes.iter().position(|a| sizes.iter().all(|b| at_most(a, b)));
        sizes.swap_remove(found.unwrap_or(0))
    }

    pub(super) fn show(&self, affine: &Affine) -> String {
        crate::program::print::affine(&self.program.params, &[], affine)
    }
}

/// The error for an index of a definition that nothing but a reduction's own index of that name uses.
fn hidden(definition: &Definition, name: &str, span: Span, inner: &Introduced) -> Diagnostic {
    let mut without = definition.clone();
    without.indices.retain(|binder| binder.name.text != name);
    let message = format!("the '{name}' of this reduction hides the '{name}' of '{}'", definition.name.text);
    let hint = format!("an index that is reduced is none of the result: write '{}'", print_definition(&without));
    Diagnostic::error("no-range", message).at(inner.span).label(span, "so that nothing gives this a range").hint(hint)
}

/// Whether the index takes the extent of a use such as `x[clamp(i + k - 1)]`, in which nothing else is unknown.
fn runs_over(used: &Use, number: usize, ranges: &[Option<Range>]) -> bool {
    let atom = Atom::Index(number as u32);
    let factor = used.subscript.coefficient(&atom);
    let rest = used.subscript.add_scaled(&-factor.clone(), &Affine::atom(atom));
    let single = factor == Int::ONE || factor == -Int::ONE;
    used.folded && single && !rest.uses_index(number) && only_unknown(&used.subscript, number, ranges)
}

/// The number of an index, and its range or what is wrong with it.
type Inferred = (usize, Result<Range, Diagnostic>);

fn only_unknown(subscript: &Affine, number: usize, ranges: &[Option<Range>]) -> bool {
    let (mut own, mut others) = (false, false);
    subscript.visit_indices(&mut |i| match i == number {
        true => own = true,
        false => others |= ranges[i].is_none(),
    });
    own && !others
}
