//! Recurrences that go through two indices one after the other, as recurrences along diagonals.
//!
//! ```text
//! r[i, j] = f(r[i - 1, j], r[i, j - 1], r[i - 1, j - 1])
//! w[t, i] = if 0 <= t - i < M then f(w[t - 1, i - 1], w[t - 1, i], w[t - 2, i - 1]) else 0       r[i, j] is w[i + j, i]
//! ```
//!
//! Elements of one diagonal `t = i + j`, or `t = 2*i + j` or `t = i + 2*j`, don't read each other, so that they run in vectors.
//! That they don't is not shown here: [`order`] finds and proves an order of what comes out, and where it
//! needs more than the one level, nothing is changed.

use crate::diagnostic::Diagnostic;
use crate::domain::estimate::estimate;
use crate::domain::guard;
use crate::domain::order::{self, Level, Stage};
use crate::program::expr::{Rewriter, Rules};
use crate::program::{
    Affine, Constraint, Definition, ExprId, Exprs, Index, Places, Program, Range, Tensor, TensorId, TensorKind, build,
    names,
};
use crate::simplify::settle;
use crate::target::{Target, cost};
use gradix_int::Int;
use std::collections::HashMap;

/// The program with diagonals where they are long enough for vectors at these sizes.
pub fn waves(program: &Program, given: &[Int], target: &Target) -> Result<Program, Diagnostic> {
    let stages = order::order(program).map_err(|error| error.describe(program, &Places::default()))?;
    let mut whole = program.clone();
    for stage in stages {
        let Stage::Level(level) = stage else { continue };
        if let Some(nested) = nested(program, &level)
            && let Some(found) = skewed(&whole, &nested, given, target)
        {
            whole = found;
        }
    }
    Ok(whole)
}

/// A definition that goes through two indices, each with whether it falls, and all of whose reads of the circle are direct.
struct Nested {
    number: usize,
    indices: [(usize, bool); 2],
}

fn nested(program: &Program, outer: &Level) -> Option<Vec<Nested>> {
    let [Stage::Level(inner)] = outer.stages.as_slice() else { return None };
    let is_last = inner.stages.iter().all(|stage| matches!(stage, Stage::Definition(_)));
    let mut found = Vec::new();
    for &(number, index) in &outer.members {
        let definition = &program.definitions[number];
        let reads_nested =
            program.exprs.accesses(definition.body).any(|(read, _)| program[read].kind == TensorKind::Nested);
        let (_, second) = inner.members.iter().find(|(member, _)| *member == number)?;
        if definition.reduction.is_some() || reads_nested {
            return None;
        }
        found.push(Nested { number, indices: [(index, outer.falling), (*second, inner.falling)] });
    }
    is_last.then_some(found)
}

/// Factors of the index that is kept: the other one has the factor 1.
const FACTORS: [i64; 2] = [1, 2];

/// A circle along diagonals, if that pays and has an order.
fn skewed(whole: &Program, circle: &[Nested], given: &[Int], target: &Target) -> Option<Program> {
    let sizes = estimate(whole, given);
    let values = |position: usize| {
        let Nested { number, indices } = &circle[0];
        whole[whole.definitions[*number].tensor].extents[indices[position].0].estimate(&[], &sizes)
    };
    let (first, second) = (values(0), values(1));
    if first.min(second) < target.wide() || additions(whole, circle) < cost::DIAGONAL_ADDITIONS {
        return None;
    }
    let near = usize::from(second <= first);
    let ways = FACTORS.into_iter().flat_map(|factor| [near, 1 - near].map(|kept| (kept, factor)));
    ways.into_iter().find_map(|(kept, factor)| {
        let candidate = along(whole, circle, kept, factor)?;
        has_one_level(&candidate, circle).then_some(candidate)
    })
}

/// What one element of each definition takes, in additions.
fn additions(program: &Program, circle: &[Nested]) -> f64 {
    let bodies = circle.iter().map(|Nested { number, .. }| program.definitions[*number].body);
    let nodes = bodies.flat_map(|body| program.exprs.postorder(body));
    nodes.filter_map(|id| cost::operation(&program.exprs, id)).sum()
}

/// Whether one level is enough for definitions at these places.
fn has_one_level(program: &Program, circle: &[Nested]) -> bool {
    let Ok(stages) = order::order(program) else { return false };
    let holds = |level: &Level| circle.iter().all(|own| level.members.contains(&(own.number, 0)));
    stages.iter().any(|stage| match stage {
        Stage::Level(level) => holds(level) && level.stages.iter().all(|inner| matches!(inner, Stage::Definition(_))),
        Stage::Definition(_) => false,
    })
}

/// How the elements of a tensor lie along diagonals: the first dimension is `factor * kept + gone`, and `gone` is missing.
#[derive(Clone, Debug)]
struct Skew {
    wave: TensorId,
    kept: usize,
    gone: usize,
    factor: Int,
    /// One less than the extents, for indices that fall.
    turned: [Option<Affine>; 2],
}

impl Skew {
    fn counted(&self, which: usize, subscript: Affine) -> Affine {
        match &self.turned[which] {
            Some(last) => last.clone() - subscript,
            None => subscript,
        }
    }

    /// Where an element is.
    fn place(&self, subscripts: &[Affine]) -> Vec<Affine> {
        let kept = self.counted(0, subscripts[self.kept].clone());
        let time = self.counted(1, subscripts[self.gone].clone()).add_scaled(&self.factor, &kept);
        let others = subscripts.iter().enumerate().filter(|(dimension, _)| *dimension != self.gone);
        std::iter::once(time).chain(others.map(|(_, subscript)| subscript.clone())).collect()
    }

    /// The old indices in the new ones: of those, the first is the diagonal.
    fn indices(&self, rank: usize) -> Vec<Affine> {
        let own = |dimension: usize| Affine::index(1 + dimension - usize::from(dimension > self.gone));
        let kept = self.counted(0, own(self.kept));
        let gone = self.counted(1, Affine::index(0).add_scaled(&-self.factor.clone(), &kept));
        (0..rank).map(|dimension| if dimension == self.gone { gone.clone() } else { own(dimension) }).collect()
    }
}

/// A circle along these diagonals.
fn along(whole: &Program, circle: &[Nested], kept: usize, factor: i64) -> Option<Program> {
    let mut program = whole.clone();
    let mut taken = names::taken(whole);
    let mut skews = HashMap::new();
    for Nested { number, indices } in circle {
        let tensor = whole.definitions[*number].tensor;
        let Tensor { name, extents, .. } = &whole[tensor];
        let last = |(index, falls): (usize, bool)| falls.then(|| extents[index].shift(-1));
        let (near, far) = (indices[kept], indices[1 - kept]);
        let span = extents[far.0].add_scaled(&Int::from(factor), &extents[near.0].shift(-1));
        let others = extents.iter().enumerate().filter(|(dimension, _)| *dimension != far.0);
        let extents = std::iter::once(span).chain(others.map(|(_, extent)| extent.clone())).collect::<Vec<_>>();
        let name = names::fresh(&format!("{name}_wave"), &mut taken);
        let wave = program.add_defined(name, extents);
        let turned = [last(near), last(far)];
        skews.insert(tensor, Skew { wave, kept: near.0, gone: far.0, factor: Int::from(factor), turned });
    }
    let diagonal = names::fresh("diagonal", &mut taken);
    let mut rewriting = Rewriting { skews: &skews, map: None };
    for number in 0..program.definitions.len() {
        let tensor = program.definitions[number].tensor;
        let body = program.definitions[number].body;
        match skews.get(&tensor) {
            Some(skew) => {
                let moved = moved(&mut program, &whole.definitions[number], skew, &mut rewriting, &diagonal)?;
                program.definitions[number] = moved;
            }
            None => {
                rewriting.map = None;
                let body = Rewriter::default().rewrite(&mut program.exprs, body, &mut rewriting);
                program.definitions[number].body = body;
            }
        }
    }
    for Nested { number, .. } in circle {
        let old = &whole.definitions[*number];
        let subscripts: Vec<Affine> = (0..old.rank).map(Affine::index).collect();
        let skew = &skews[&old.tensor];
        let body = program.exprs.access(skew.wave, skew.place(&subscripts));
        program.definitions.push(Definition { body, ..old.clone() });
    }
    settle::drop_unread(&mut program);
    Some(program)
}

/// A definition along its diagonals: 0 where a diagonal leaves the tensor.
fn moved(
    program: &mut Program,
    old: &Definition,
    skew: &Skew,
    rewriting: &mut Rewriting,
    diagonal: &str,
) -> Option<Definition> {
    let map = skew.indices(old.rank);
    rewriting.map = Some(map.clone());
    let body = Rewriter::default().rewrite(&mut program.exprs, old.body, rewriting);
    let Range { low, high } = &old.indices[skew.gone].range;
    let gone = &map[skew.gone];
    let rows: Vec<Constraint> = low
        .iter()
        .map(|low| Constraint::at_most(low.with_indices(&map), gone.clone()))
        .chain(high.iter().map(|high| Constraint::at_most(gone.clone(), high.with_indices(&map))))
        .collect();
    let zero = program.exprs.constant(0.0);
    let condition = guard::all(&mut program.exprs, &rows)?;
    let body = build::select(&mut program.exprs, condition, body, zero);
    let span = Range::extent(program[skew.wave].extents[0].clone());
    let first = Index { name: diagonal.to_string(), range: span };
    let others = old.indices.iter().enumerate().filter(|(position, _)| *position != skew.gone);
    let indices: Vec<Index> = std::iter::once(first).chain(others.map(|(_, index)| index.clone())).collect();
    Some(Definition::pointwise(skew.wave, indices, body))
}

/// Reads of tensors that lie along diagonals.
struct Rewriting<'a> {
    skews: &'a HashMap<TensorId, Skew>,
    /// The indices of the definition, if they change.
    map: Option<Vec<Affine>>,
}

impl Rules for Rewriting<'_> {
    fn affine(&mut self, affine: &Affine) -> Affine {
        self.map.as_ref().map_or_else(|| affine.clone(), |map| affine.with_indices(map))
    }

    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        match self.skews.get(&tensor) {
            Some(skew) => exprs.access(skew.wave, skew.place(&subscripts)),
            None => exprs.access(tensor, subscripts),
        }
    }
}
