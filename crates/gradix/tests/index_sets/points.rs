//! The integer points of ranges and constraints, one by one.

use gradix::program::affine::div_floor;
use gradix::program::{Affine, Atom, Constraint, Definition, ParamId, Range, Relation};

/// The value at a point.
pub fn value(affine: &Affine, point: &[i64], sizes: &[i64]) -> i64 {
    let number = affine.evaluate(&|atom| match atom {
        Atom::Index(i) => point[*i as usize].into(),
        Atom::Param(ParamId(p)) => sizes[*p as usize].into(),
        Atom::Floor(inner, c) => div_floor(&value(inner, point, sizes).into(), c),
    });
    i64::try_from(&number).expect("a small number")
}

pub fn holds(constraint: &Constraint, point: &[i64], sizes: &[i64]) -> bool {
    let number = value(&constraint.affine, point, sizes);
    match constraint.relation {
        Relation::NonNegative => number >= 0,
        Relation::Zero => number == 0,
    }
}

pub fn all_hold(constraints: &[Constraint], point: &[i64], sizes: &[i64]) -> bool {
    constraints.iter().all(|c| holds(c, point, sizes))
}

/// Every way to go on from `start` by one value for each range, each in terms of what comes before it.
pub fn over(ranges: &[Range], start: &[i64], sizes: &[i64]) -> Vec<Vec<i64>> {
    let mut points = vec![start.to_vec()];
    for range in ranges {
        let mut longer = Vec::new();
        for point in &points {
            let low = range.low.iter().map(|b| value(b, point, sizes)).max().expect("a lower bound");
            let high = range.high.iter().map(|b| value(b, point, sizes)).min().expect("an upper bound");
            longer.extend((low..=high).map(|v| [point.as_slice(), &[v]].concat()));
        }
        points = longer;
    }
    points
}

/// The points of a definition, its conditions included.
pub fn of_definition(definition: &Definition, sizes: &[i64]) -> Vec<Vec<i64>> {
    let ranges: Vec<Range> = definition.indices.iter().map(|i| i.range.clone()).collect();
    let mut points = over(&ranges, &[], sizes);
    points.retain(|p| all_hold(&definition.conditions, p, sizes) && all_hold(&definition.assumptions, p, sizes));
    points
}

/// Every point of a box.
pub fn of_box(rank: usize, low: i64, high: i64) -> Vec<Vec<i64>> {
    let range = Range { low: vec![Affine::constant(low)], high: vec![Affine::constant(high)] };
    over(&vec![range; rank], &[], &[])
}
