//! A part of a result, as a program of its own.
//!
//! Every definition says what one element is, in gather form, so that any box of elements can be computed without the
//! others: its indices are shifted to count from 0,
//!
//! ```text
//! T[i, j] = ⊕[k ∈ R(i, j)] body(i, j, k)      of which  5 <= i < 8:
//! T[i, j] = ⊕[k ∈ R(i + 5, j)] body(i + 5, j, k),   0 <= i < 3
//! ```
//!
//! and what it reads is cut down to the box that it still reads, definition after definition. The same operations are
//! done in the same order for each element that is left, so that the reference interpreter gives the same bits.

use crate::diagnostic::{Diagnostic, Result};
use crate::domain::system;
use crate::lift;
use crate::program::expr::{Rewriter, Rules};
use crate::program::print;
use crate::program::{
    Affine, Atom, Constraint, Expr, ExprId, Exprs, Program, Range, TensorId, TensorKind, circles, distinct, names,
    verify,
};
use crate::simplify::{settle, tidy};
use gradix_int::Int;

/// The program that computes nothing but a box of one result: for each of its dimensions a range of indices, or `None`
/// for all of them. The result keeps its name and counts from 0 in every dimension; the inputs and sizes stay, whether
/// or not they are still needed. That the box lies inside the result is a requirement of the new program, checked when
/// its sizes are bound.
///
/// ```
/// let ast = gradix::syntax::parse("input x[N, M]\ny[i] = sum[j in 0..=i] x[i, j]\nz[i] = y[i]^2").unwrap();
/// let program = gradix::resolve(&ast, &[]).unwrap().program;
/// let part = gradix::restrict(&program, "z", &[Some(5..8)]).unwrap();
/// let text = gradix::print(&part).unwrap();
/// assert!(text.contains("param N >= 8"), "{text}");
/// assert!(text.contains("y[i in 0..3] = sum[j in 0..i + 6] x[i + 5, j]\nz[i] = y[i]^2"), "{text}");
/// ```
pub fn restrict(program: &Program, result: &str, ranges: &[Option<std::ops::Range<u64>>]) -> Result<Program> {
    let tensor = find(program, result, ranges.len()).map_err(|error| vec![error])?;
    let mut out = program.clone();
    let mut wrong = Vec::new();
    for (dimension, range) in ranges.iter().enumerate() {
        let Some(range) = range else { continue };
        if let Err(error) = require(&mut out, tensor, dimension, range) {
            wrong.push(error);
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let tensor = apart(&mut out, tensor);
    out.outputs = vec![tensor];
    settle::drop_unread(&mut out);
    let kept: Vec<Option<Kept>> = ranges.iter().map(|range| range.as_ref().map(Kept::new)).collect();
    keep(&mut out, tensor, &kept);
    cut_unread(&mut out);
    tidy::tidy(&mut out, false);
    debug_assert_eq!(verify(&out), Ok(()));
    Ok(out)
}

/// The result itself; of a recurrence, a copy that takes over its name: all of it may be needed for a part.
fn apart(program: &mut Program, tensor: TensorId) -> TensorId {
    let recurrent = circles::recurrent(program);
    let Some(definition) = program.definition_of(tensor).filter(|_| recurrent.contains_key(&tensor)) else {
        return tensor;
    };
    let (outputs, record) = (definition.indices[..definition.rank].to_vec(), program[tensor].clone());
    let mut taken = names::taken(program);
    program.tensors[tensor.0 as usize].name = names::fresh(&record.name, &mut taken);
    let subscripts = (0..record.rank).map(Affine::index).collect();
    let body = program.exprs.access(tensor, subscripts);
    let copy = program.add_tensor(record);
    lift::define_pointwise(program, copy, outputs, Vec::new(), body);
    copy
}

/// The result of this name, which has this many dimensions.
fn find(program: &Program, name: &str, rank: usize) -> std::result::Result<TensorId, Diagnostic> {
    let Some(&tensor) = program.outputs.iter().find(|tensor| program[**tensor].name == name) else {
        let list: Vec<&str> = program.outputs.iter().map(|tensor| program[*tensor].name.as_str()).collect();
        let message = format!("the program has no result '{name}'");
        return Err(Diagnostic::error("unknown-name", message).hint(format!("there is {}", list.join(", "))));
    };
    match program[tensor].rank {
        known if known == rank => Ok(tensor),
        known => {
            let message = format!("a part of '{name}' needs {known} ranges, one for each dimension, and has {rank}");
            Err(Diagnostic::error("wrong-part", message))
        }
    }
}

/// Adds that a range lies inside a dimension to what holds for the sizes.
fn require(
    program: &mut Program,
    tensor: TensorId,
    dimension: usize,
    range: &std::ops::Range<u64>,
) -> std::result::Result<(), Diagnostic> {
    let end = range.end.max(range.start);
    // An extent may come out negative and then counts as 0.
    if end == 0 {
        return Ok(());
    }
    let extent = program[tensor].extents[dimension].clone();
    let inside = Constraint::at_most(Affine::constant(end), extent.clone());
    let mut context = program.size_context();
    if system::implies(&context, &inside) {
        return Ok(());
    }
    context.push(inside.clone());
    if system::is_empty(&context) {
        let (name, extent) = (&program[tensor].name, print::affine(&program.params, &[], &extent));
        let place = format!("dimension {} of '{name}'", dimension + 1);
        let message = format!("the range {}..{} leaves {place}, whose extent is {extent}", range.start, range.end);
        return Err(Diagnostic::error("wrong-part", message));
    }
    program.facts.retain(|fact| !system::implies(std::slice::from_ref(&inside), fact));
    program.facts.push(inside);
    Ok(())
}

/// The elements of a dimension that are kept.
#[derive(Clone)]
struct Kept {
    first: Int,
    count: Affine,
}

impl Kept {
    fn new(range: &std::ops::Range<u64>) -> Self {
        Kept { first: range.start.into(), count: Affine::constant(range.end.saturating_sub(range.start)) }
    }
}

/// Keeps a box of a tensor: its definition, and the nested ones that it reads by the same indices, count from the start
/// of the box.
fn keep(program: &mut Program, tensor: TensorId, kept: &[Option<Kept>]) {
    let place = program.definitions.iter().position(|d| d.tensor == tensor).expect("a result is defined");
    let mut definition = program.definitions[place].clone();
    let at = |position: usize| kept.get(position).and_then(Option::as_ref);
    let first = |position: usize| at(position).map_or(Int::ZERO, |kept| kept.first.clone());
    let map: Vec<Affine> = (0..definition.indices.len()).map(|p| Affine::index(p).shift(first(p))).collect();
    let context = program.size_context();
    for (position, index) in definition.indices.iter_mut().enumerate() {
        index.range = index.range.map(|bound| bound.with_indices(&map).shift(-first(position)));
        if let Some(kept) = at(position) {
            index.range = match program[tensor].kind {
                TensorKind::Nested => inside(&index.range, &kept.count, &context),
                TensorKind::Defined | TensorKind::Input => Range::extent(kept.count.clone()),
            };
        }
    }
    definition.conditions.iter_mut().for_each(|c| *c = c.with_indices(&map));
    definition.assumptions.iter_mut().for_each(|c| *c = c.with_indices(&map));
    let inner = nested_reads(program, definition.body);
    let nested: Vec<TensorId> = inner.iter().map(|(tensor, _)| *tensor).collect();
    let mut rules = Shifted { map: &map, nested: &nested };
    definition.body = Rewriter::default().rewrite(&mut program.exprs, definition.body, &mut rules);
    program.definitions[place] = definition;
    for (extent, kept) in program.tensors[tensor.0 as usize].extents.iter_mut().zip(kept) {
        if let Some(kept) = kept {
            *extent = kept.count.clone();
        }
    }
    for (tensor, positions) in inner {
        let kept: Vec<Option<Kept>> = positions.into_iter().map(|position| at(position).cloned()).collect();
        if kept.iter().any(Option::is_some) {
            keep(program, tensor, &kept);
        }
    }
}

/// The part of a range in `0..count`, without bounds that follow.
fn inside(range: &Range, count: &Affine, context: &[Constraint]) -> Range {
    let last = count.shift(-1);
    let matters =
        |low: &Affine, high: &Affine| !system::implies(context, &Constraint::at_most(low.clone(), high.clone()));
    let low = range.low.iter().filter(|low| matters(low, &Affine::constant(0))).cloned();
    let high = range.high.iter().filter(|high| matters(&last, high)).cloned();
    let low = distinct([Affine::constant(0)].into_iter().chain(low));
    Range { low, high: distinct([last.clone()].into_iter().chain(high)) }
}

/// The nested tensors that a body reads, with the positions of the indices that they are read at.
fn nested_reads(program: &Program, body: ExprId) -> Vec<(TensorId, Vec<usize>)> {
    let reads = program.exprs.postorder(body).into_iter().filter_map(|id| match &program.exprs[id] {
        Expr::Access(tensor, subscripts) if program[*tensor].kind == TensorKind::Nested => {
            Some((*tensor, subscripts.iter().filter_map(Affine::as_index).collect()))
        }
        _ => None,
    });
    reads.collect()
}

/// Shifts indices; the nested tensors are shifted themselves and are still read by bare ones.
struct Shifted<'a> {
    map: &'a [Affine],
    nested: &'a [TensorId],
}

impl Rules for Shifted<'_> {
    fn affine(&mut self, affine: &Affine) -> Affine {
        affine.with_indices(self.map)
    }

    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        match self.nested.contains(&tensor) {
            true => exprs.access(tensor, subscripts.iter().map(|s| s.shift(-s.offset().clone())).collect()),
            false => exprs.access(tensor, subscripts),
        }
    }
}

/// Cuts every named definition down to the box that the later ones read, where that is known in numbers.
fn cut_unread(program: &mut Program) {
    let recurrent = circles::recurrent(program);
    let named = |tensor: &TensorId| {
        let given = program.outputs.contains(tensor) || recurrent.contains_key(tensor);
        program[*tensor].kind == TensorKind::Defined && !given
    };
    let tensors: Vec<TensorId> = program.definitions.iter().rev().map(|d| d.tensor).filter(named).collect();
    for tensor in tensors {
        let kept = read_box(program, tensor);
        if kept.iter().all(Option::is_none) {
            continue;
        }
        keep(program, tensor, &kept);
        let mut rewriter = Rewriter::default();
        for definition in &mut program.definitions {
            let mut rules = Cut { tensor, kept: &kept };
            definition.body = rewriter.rewrite(&mut program.exprs, definition.body, &mut rules);
        }
    }
}

/// For each dimension what of it is read, if that is less than all of it.
fn read_box(program: &Program, tensor: TensorId) -> Vec<Option<Kept>> {
    let context = program.size_context();
    let mut reads: Vec<(Vec<Constraint>, Vec<Affine>)> = Vec::new();
    for definition in &program.definitions {
        let domain = [context.as_slice(), &definition.domain()].concat();
        let accesses = program.exprs.postorder(definition.body).into_iter().filter_map(|id| match &program.exprs[id] {
            Expr::Access(read, subscripts) if *read == tensor => Some((domain.clone(), subscripts.clone())),
            _ => None,
        });
        reads.extend(accesses);
    }
    reads.retain(|(domain, _)| !system::is_empty(domain));
    let extents = program[tensor].extents.iter().enumerate();
    extents.map(|(dimension, extent)| read_range(dimension, extent, &reads, &context)).collect()
}

/// What is read of one dimension. Conditions in bodies are not looked at: the range may be larger than what is read.
fn read_range(
    dimension: usize,
    extent: &Affine,
    reads: &[(Vec<Constraint>, Vec<Affine>)],
    context: &[Constraint],
) -> Option<Kept> {
    let least = |sign: i64| -> Option<Int> {
        let each = reads.iter().map(|(domain, read)| least(&read[dimension].scale(&sign.into()), domain));
        Some(each.collect::<Option<Vec<Int>>>()?.into_iter().min().unwrap_or(Int::ZERO))
    };
    let first = least(1).unwrap_or(Int::ZERO).max(Int::ZERO);
    let end = least(-1).map(|last| Affine::constant(Int::ONE - last));
    let end = end.filter(|end| system::implies(context, &Constraint::at_most(end.clone(), extent.clone())));
    let count = end.unwrap_or_else(|| extent.clone()).shift(-first.clone());
    (first != Int::ZERO || count != *extent).then_some(Kept { first, count })
}

/// A number that an index expression is never below.
fn least(affine: &Affine, domain: &[Constraint]) -> Option<Int> {
    let bounds = system::lower_bounds(affine, domain, &|atom| matches!(atom, Atom::Index(_))).ok()?;
    bounds.iter().filter_map(Affine::as_constant).max().cloned()
}

/// Reads a tensor of which a box is kept.
struct Cut<'a> {
    tensor: TensorId,
    kept: &'a [Option<Kept>],
}

impl Rules for Cut<'_> {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        if tensor != self.tensor {
            return exprs.access(tensor, subscripts);
        }
        let first = |kept: &Option<Kept>| kept.as_ref().map_or(Int::ZERO, |kept| kept.first.clone());
        let moved = subscripts.iter().zip(self.kept).map(|(subscript, kept)| subscript.shift(-first(kept)));
        exprs.access(tensor, moved.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str) -> Program {
        let resolved = crate::syntax::parse(text).and_then(|ast| crate::resolve(&ast, &[]));
        resolved.unwrap_or_else(|errors| panic!("{errors:?}\n{text}")).program
    }

    /// The part of the last result as text, which means the same as the part itself.
    fn check(text: &str, ranges: &[Option<std::ops::Range<u64>>], expected: &str) {
        let program = resolve(text);
        let name = &program[*program.outputs.last().unwrap()].name;
        let part = restrict(&program, name, ranges).unwrap();
        let printed = print::print(&part).unwrap();
        assert_eq!(printed.trim(), expected.trim());
        assert_eq!(resolve(&printed), part, "{printed}");
    }

    fn refused(text: &str, name: &str, ranges: &[Option<std::ops::Range<u64>>]) -> String {
        let errors = restrict(&resolve(text), name, ranges).unwrap_err();
        errors.iter().map(|error| format!("{}: {}", error.code, error.message)).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn indices_are_shifted_wherever_they_stand() {
        check(
            "input x[N]\ny[i] = if i > 2 then x[i] * i else sum[j in i..N] x[j]",
            &[Some(2..6)],
            "param N >= 6\ninput x[N]\ny[i in 0..4] = if i >= 1 then x[i + 2] * (i + 2) else sum[j in i + 2..N] x[j]",
        );
    }

    #[test]
    fn what_is_read_is_cut_down_too() {
        check(
            "input x[N]\na[i] = exp(x[i])\nb[i in 0..N - 2] = a[i] + a[i + 2]",
            &[Some(3..5)],
            "param N >= 7\ninput x[N]\na[i in 0..4] = exp(x[i + 3])\nb[i in 0..2] = a[i] + a[i + 2]",
        );
    }

    #[test]
    fn what_is_read_in_whole_stays() {
        check(
            "input x[N]\na[i] = exp(x[i])\nb[i] = a[i] / sum[j] a[j]",
            &[Some(3..5)],
            "param N >= 5\ninput x[N]\na[i] = exp(x[i])\nb[i in 0..2] = a[i + 3] / sum[j] a[j]",
        );
    }

    #[test]
    fn other_results_go_and_whole_dimensions_stay() {
        check(
            "input x[N, M]\nz[i] = x[i, 0]\ny[i, j] = x[i, j]^2",
            &[None, Some(1..2)],
            "param N, M >= 2\ninput x[N, M]\ny[i, j in 0..1] = x[i, j + 1]^2",
        );
    }

    #[test]
    fn a_part_may_be_empty() {
        check("input x[N]\ny[i] = x[i]^2", &[Some(0..0)], "input x[N]\ny[i in 0..0] = x[i]^2");
    }

    #[test]
    fn sizes_that_are_too_small_are_refused() {
        let part = restrict(&resolve("input x[N]\ny[i in 0..N - 1] = x[i]"), "y", &[Some(2..4)]).unwrap();
        let bind = |size: i64| {
            let given = vec![("N".to_string(), Int::from(size))];
            let known = crate::domain::sizes::Known { given, shapes: Vec::new() };
            crate::domain::sizes::bind(&part, &known, &crate::program::Places::default())
        };
        assert_eq!(bind(5).unwrap(), [5.into()]);
        assert_eq!(bind(4).unwrap_err()[0].message, "these sizes do not satisfy N >= 5");
    }

    #[test]
    fn a_part_that_there_can_not_be_is_refused() {
        let text = "input x[3]\ny[i] = x[i]";
        assert_eq!(
            refused(text, "y", &[Some(1..4)]),
            "wrong-part: the range 1..4 leaves dimension 1 of 'y', whose extent is 3"
        );
        assert_eq!(
            refused(text, "y", &[]),
            "wrong-part: a part of 'y' needs 1 ranges, one for each dimension, and has 0"
        );
        assert_eq!(refused(text, "x", &[None]), "unknown-name: the program has no result 'x'");
    }
}
