//! How much work a definition is, at assumed sizes.
//!
//! Operations are counted as the oracle counts them: every node once for each point at which it is evaluated, and one more
//! for each term of a reduction. Where ranges depend on other indices or conditions choose between branches, the
//! points are enumerated if they are few, and otherwise sampled at fixed places.

use super::body::Body;
use crate::program::affine::to_f64;
use crate::program::expr::Exprs;
use crate::program::{
    Affine, Atom, BinaryOp, Constraint, Definition, Expr, ExprId, ParamKind, Program, Relation, UnaryOp,
};
use crate::target::cost;
use std::collections::{BTreeMap, HashMap};

/// So many points are enumerated, at most: it bounds the time to compile.
const MAX_ENUMERATED_POINTS: usize = 4096;

/// How many points are looked at where they are too many: it bounds the time to compile.
const SAMPLED_POINTS: usize = 256;

/// The work of one definition or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Operations on values.
    pub operations: f64,
    /// The same, each as often as it takes longer than an addition.
    pub weight: f64,
}

impl std::ops::Add for Work {
    type Output = Work;
    fn add(self, other: Work) -> Work {
        Work { operations: self.operations + other.operations, weight: self.weight + other.weight }
    }
}

impl std::ops::Sub for Work {
    type Output = Work;
    fn sub(self, other: Work) -> Work {
        Work { operations: self.operations - other.operations, weight: self.weight - other.weight }
    }
}

impl Work {
    fn times(self, factor: f64) -> Work {
        Work { operations: self.operations * factor, weight: self.weight * factor }
    }
}

/// The size of every param: that of a given one is assumed, the others follow.
pub fn sizes(program: &Program, assumed: &HashMap<String, f64>) -> Vec<f64> {
    let mut sizes: Vec<f64> = Vec::new();
    for param in &program.params {
        let parts = |parts: &[Affine]| parts.iter().map(|p| p.estimate(&[], &sizes)).collect::<Vec<f64>>();
        sizes.push(match &param.kind {
            ParamKind::Free => assumed.get(&param.name).copied().unwrap_or(1.0),
            ParamKind::Time(steps) => steps.estimate(&[], &sizes) / 2.0,
            ParamKind::Fixed(number) => to_f64(number),
            ParamKind::Smallest(affines) => parts(affines).into_iter().fold(f64::INFINITY, f64::min),
            ParamKind::Largest(affines) => parts(affines).into_iter().fold(f64::NEG_INFINITY, f64::max),
        });
    }
    sizes
}

/// The work of computing every element of a definition once.
pub fn work(exprs: &Exprs, definition: &Definition, sizes: &[f64]) -> Work {
    let body = Body::of(exprs, definition.body, definition.reduction.map(|_| definition.rank));
    let reduced = f64::from(u8::from(definition.reduction.is_some()));
    let more = Work { operations: reduced, weight: reduced };
    over_points(definition, &body, more, sizes)
}

/// The work of a body and of `more` at every point of a definition.
fn over_points(definition: &Definition, body: &Body, more: Work, sizes: &[f64]) -> Work {
    if !body.chooses {
        let once = body.all + more;
        return once.times(points(definition, definition.indices.len(), sizes));
    }
    let mut total = Work::default();
    let count = definition.indices.len();
    each_point(definition, count, &tests(definition, count), sizes, &mut |point, share| {
        let outcome = |constraint: &Constraint| holds(constraint, point, sizes);
        total = total + (body.at(&outcome) + more).times(share);
    });
    total
}

/// How many operations of each kind computing every element of all definitions once takes: those that take longer than an
/// addition by their names, all others as [`SIMPLE`]. Powers are those that loops have: products, divisions, roots.
pub fn kinds(program: &Program, sizes: &[f64]) -> BTreeMap<&'static str, f64> {
    let mut counts = BTreeMap::new();
    for definition in &program.definitions {
        let exprs = &program.exprs;
        let nodes = exprs.postorder(definition.body);
        let mut names: Vec<&'static str> =
            nodes.iter().flat_map(|id| parts(exprs, *id)).map(|(name, _)| name).collect();
        names.push(SIMPLE);
        names.sort_unstable();
        names.dedup();
        for name in names {
            let count =
                |id: ExprId| parts(exprs, id).into_iter().filter(|(own, _)| *own == name).map(|(_, count)| count);
            let price = |id: ExprId| Work { operations: count(id).sum(), weight: 0.0 };
            let reduced = f64::from(u8::from(name == SIMPLE && definition.reduction.is_some()));
            let more = Work { operations: reduced, weight: 0.0 };
            let body = Body::priced(exprs, definition.body, &price);
            *counts.entry(name).or_default() += over_points(definition, &body, more, sizes).operations;
        }
    }
    counts.retain(|_, count| *count > 0.0);
    counts
}

/// What operations are called that take no longer than an addition.
pub const SIMPLE: &str = "simple";

/// What a node is made of: kinds of operations, and how many of each.
fn parts(exprs: &Exprs, id: ExprId) -> Vec<(&'static str, f64)> {
    match exprs[id] {
        Expr::Binary(BinaryOp::Pow, _, exponent) => match exprs.as_constant(exponent) {
            Some(exponent) if (2.0 * exponent).fract() == 0.0 && exponent.abs() <= cost::SMALL_EXPONENT => {
                let (whole, half) = (exponent.abs().trunc(), exponent.fract() != 0.0);
                let products = whole.max(1.0).log2().ceil() + f64::from(u8::from(half && whole > 0.0));
                let (root, over) = (f64::from(u8::from(half)), f64::from(u8::from(exponent < 0.0)));
                vec![(SIMPLE, products), (UnaryOp::Sqrt.name(), root), (BinaryOp::Div.name(), over)]
            }
            _ => vec![(BinaryOp::Pow.name(), 1.0)],
        },
        _ => match (cost::operation(exprs, id), &exprs[id]) {
            (Some(weight), Expr::Unary(op, _)) if weight > 1.0 => vec![(op.name(), 1.0)],
            (Some(weight), Expr::Binary(op, ..)) if weight > 1.0 => vec![(op.name(), 1.0)],
            (Some(_), _) => vec![(SIMPLE, 1.0)],
            (None, _) => Vec::new(),
        },
    }
}

/// The number of elements of a definition.
pub fn elements(definition: &Definition, sizes: &[f64]) -> f64 {
    points(definition, definition.rank, sizes)
}

/// The number of points of the first `count` indices.
pub fn points(definition: &Definition, count: usize, sizes: &[f64]) -> f64 {
    let plain = |affine: &Affine| !affine.uses_indices();
    let ranges = || definition.indices[..count].iter().map(|index| &index.range);
    let is_box = definition.assumptions.iter().all(|c| plain(&c.affine))
        && (count == definition.rank || definition.conditions.is_empty())
        && ranges().flat_map(|range| range.low.iter().chain(&range.high)).all(plain);
    if is_box {
        return ranges().map(|range| extent(range, &[], sizes).1).product();
    }
    let tests = tests(definition, count);
    // Where nothing depends on the last index, its values are counted without a look at each.
    let counted = count.checked_sub(1).filter(|last| !tests.iter().any(|test| test.affine.uses_index(*last)));
    let mut total = 0.0;
    each_point(definition, counted.unwrap_or(count), &tests, sizes, &mut |point, share| {
        total += counted.map_or(share, |last| share * extent(&definition.indices[last].range, point, sizes).1);
    });
    total
}

/// The first value of an index and the number of its values.
fn extent(range: &crate::program::Range, point: &[f64], sizes: &[f64]) -> (f64, f64) {
    let low = range.low.iter().map(|a| a.estimate(point, sizes)).fold(f64::NEG_INFINITY, f64::max);
    let high = range.high.iter().map(|a| a.estimate(point, sizes)).fold(f64::INFINITY, f64::min);
    (low, (high - low + 1.0).max(0.0))
}

/// What else the first `count` indices have to satisfy, all outputs or also what is reduced over.
fn tests(definition: &Definition, count: usize) -> Vec<&Constraint> {
    match count == definition.rank {
        true => definition.assumptions.iter().collect(),
        false => definition.assumptions.iter().chain(&definition.conditions).collect(),
    }
}

/// Visits the points of the first `count` indices that pass the tests, or some of them, each for its share of all.
fn each_point(
    definition: &Definition,
    count: usize,
    tests: &[&Constraint],
    sizes: &[f64],
    visit: &mut dyn FnMut(&[f64], f64),
) {
    let mut found = Vec::new();
    if let Some(points) = enumerate(definition, count, sizes, &mut found) {
        let points = (0..points).map(|number| &found[number * count..(number + 1) * count]);
        for point in points.filter(|point| tests.iter().all(|test| holds(test, point, sizes))) {
            visit(point, 1.0);
        }
        return;
    }
    for sample in 0..SAMPLED_POINTS {
        let mut point = Vec::with_capacity(count);
        let mut share = 1.0 / SAMPLED_POINTS as f64;
        for (position, index) in definition.indices[..count].iter().enumerate() {
            let (low, extent) = extent(&index.range, &point, sizes);
            // An equation that this index completes leaves one value.
            if let Some(only) = tests.iter().find_map(|test| solved(test, position, &point, sizes)) {
                share *= f64::from(u8::from(only >= low && only < low + extent));
                point.push(only);
            } else {
                share *= extent;
                point.push(low + (extent * fraction(sample, position)).floor());
            }
        }
        if share > 0.0 && tests.iter().all(|test| holds(test, &point, sizes)) {
            visit(&point, share);
        }
    }
}

/// All points of the ranges, one after the other, and how many they are, if they are few.
fn enumerate(definition: &Definition, count: usize, sizes: &[f64], found: &mut Vec<f64>) -> Option<usize> {
    let (mut points, mut steps) = (1, 1);
    for (position, index) in definition.indices[..count].iter().enumerate() {
        let outer = std::mem::take(found);
        let mut more = 0;
        for number in 0..points {
            let point = &outer[number * position..(number + 1) * position];
            let (low, extent) = extent(&index.range, point, sizes);
            more += extent as usize;
            if steps + more > MAX_ENUMERATED_POINTS {
                return None;
            }
            for step in 0..extent as usize {
                found.extend_from_slice(point);
                found.push(low + step as f64);
            }
        }
        (points, steps) = (more, steps + more);
    }
    Some(points)
}

/// The value of the index at `position` by an equation in it and earlier indices.
fn solved(test: &Constraint, position: usize, point: &[f64], sizes: &[f64]) -> Option<f64> {
    let mut latest = 0;
    test.affine.visit_indices(&mut |i| latest = latest.max(i + 1));
    let own = to_f64(&test.affine.coefficient(&Atom::Index(position as u32)));
    if test.relation != Relation::Zero || latest != position + 1 || own.abs() != 1.0 {
        return None;
    }
    let mut zero = point.to_vec();
    zero.push(0.0);
    let at_zero = test.affine.estimate(&zero, sizes);
    zero[position] = 1.0;
    let straight = test.affine.estimate(&zero, sizes) - at_zero == own;
    straight.then_some(-at_zero * own)
}

/// A number between 0 and 1, spread evenly over the samples.
fn fraction(sample: usize, position: usize) -> f64 {
    const ROOTS: [f64; 8] = [2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0];
    let step = (ROOTS[position % ROOTS.len()] + (position / ROOTS.len()) as f64 * 20.0).sqrt();
    ((sample as f64 + 0.5) * step).fract()
}

fn holds(constraint: &Constraint, point: &[f64], sizes: &[f64]) -> bool {
    let number = constraint.affine.estimate(point, sizes);
    match constraint.relation {
        Relation::NonNegative => number >= 0.0,
        Relation::Zero => number == 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The operations of the last definition with all sizes 20.
    fn operations(text: &str) -> f64 {
        let program = crate::resolve(&crate::syntax::parse(text).unwrap(), &[]).unwrap().program;
        let definition = program.definitions.last().unwrap();
        work(&program.exprs, definition, &vec![20.0; program.params.len()]).operations
    }

    #[test]
    fn every_point_counts_its_operations() {
        assert_eq!(operations("input x[N], y[M]\nf[i] = sum[j] x[i]*y[j]"), 800.0);
    }

    #[test]
    fn triangles_are_counted_exactly_while_they_are_small() {
        assert_eq!(operations("input x[N]\nf[i in 0..N] = sum[j in 0..=i] x[j]"), 210.0);
    }

    #[test]
    fn branches_count_where_they_are_taken() {
        assert_eq!(operations("input x[N]\nf[i in 0..N] = if i < 3 then exp(x[i]) else 0"), 3.0);
    }

    #[test]
    fn operations_are_counted_by_kind() {
        let text = "input x[N], y[N]\nf = sum[i] exp(x[i]) * y[i]^-1.5 / x[i]\ng[i] = sin(x[i])^2 + 2^y[i]";
        let program = crate::resolve(&crate::syntax::parse(text).unwrap(), &[]).unwrap().program;
        let found: Vec<_> = kinds(&program, &[20.0]).into_iter().collect();
        let expected = [("/", 40.0), ("^", 20.0), ("exp", 20.0), ("simple", 100.0), ("sin", 20.0), ("sqrt", 20.0)];
        assert_eq!(found, expected);
    }

    #[test]
    fn large_triangles_are_counted_nearly() {
        let text = "input x[N,M]\nf[i in 0..N] = sum[k in 0..M, j in 0..=i] x[j,k]";
        let found = operations(&text.replace("0..M", "0..20*M").replace("x[N,M]", "x[N,20*M]"));
        assert!((found - 210.0 * 400.0).abs() < 2000.0, "{found}");
    }
}
