//! Index expressions with floors and remainders, and conditions on them, as the generator handles them.

use super::affine::Affine;
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

/// The numbers of indices and sizes.
pub type Values = BTreeMap<String, i64>;

/// An integer made of indices and sizes.
#[derive(Clone, Debug, PartialEq)]
pub enum Whole {
    Affine(Affine),
    /// `Σ factor · part`
    Sum(Vec<(i64, Whole)>),
    Floor(Box<Whole>, i64),
    Remainder(Box<Whole>, i64),
    Least(Vec<Whole>),
    Most(Vec<Whole>),
}

impl Whole {
    pub fn number(value: i64) -> Self {
        Whole::Affine(Affine::number(value))
    }

    pub fn name(name: &str) -> Self {
        Whole::Affine(Affine::name(name))
    }

    pub fn floor(self, divisor: i64) -> Self {
        Whole::Floor(Box::new(self), divisor)
    }

    pub fn remainder(self, divisor: i64) -> Self {
        Whole::Remainder(Box::new(self), divisor)
    }

    /// `self + factor * other`
    pub fn plus(self, factor: i64, other: Whole) -> Self {
        match (self, other) {
            (Whole::Affine(a), Whole::Affine(b)) => Whole::Affine(a.plus(factor, &b)),
            (Whole::Sum(mut parts), other) => {
                parts.push((factor, other));
                Whole::Sum(parts)
            }
            (first, other) => Whole::Sum(vec![(1, first), (factor, other)]),
        }
    }

    pub fn shift(self, by: i64) -> Self {
        if by == 0 { self } else { self.plus(1, Whole::number(by)) }
    }

    pub fn at(&self, values: &Values) -> i64 {
        match self {
            Whole::Affine(affine) => affine.at(values),
            Whole::Sum(parts) => parts.iter().map(|(factor, part)| factor * part.at(values)).sum(),
            Whole::Floor(part, divisor) => part.at(values).div_euclid(*divisor),
            Whole::Remainder(part, divisor) => part.at(values).rem_euclid(*divisor),
            Whole::Least(parts) => parts.iter().map(|part| part.at(values)).min().expect("some part"),
            Whole::Most(parts) => parts.iter().map(|part| part.at(values)).max().expect("some part"),
        }
    }
}

impl Display for Whole {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Whole::Affine(affine) => write!(f, "{affine}"),
            Whole::Sum(parts) => {
                for (place, (factor, part)) in parts.iter().enumerate() {
                    let sign = match (place, *factor < 0) {
                        (0, false) => "",
                        (0, true) => "-",
                        (_, false) => " + ",
                        (_, true) => " - ",
                    };
                    match factor.abs() {
                        1 => write!(f, "{sign}({part})")?,
                        factor => write!(f, "{sign}{factor}*({part})")?,
                    }
                }
                Ok(())
            }
            Whole::Floor(part, divisor) => write!(f, "({part}) // {divisor}"),
            Whole::Remainder(part, divisor) => write!(f, "({part}) % {divisor}"),
            Whole::Least(parts) => write!(f, "min({})", listed(parts)),
            Whole::Most(parts) => write!(f, "max({})", listed(parts)),
        }
    }
}

fn listed(parts: &[Whole]) -> String {
    parts.iter().map(Whole::to_string).collect::<Vec<_>>().join(", ")
}

/// What indices have to satisfy.
#[derive(Clone, Debug)]
pub enum Condition {
    Compare(Whole, &'static str, Whole),
    Both(Box<Condition>, Box<Condition>),
    Either(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
}

impl Condition {
    pub fn both(self, other: Condition) -> Self {
        Condition::Both(Box::new(self), Box::new(other))
    }

    pub fn either(self, other: Condition) -> Self {
        Condition::Either(Box::new(self), Box::new(other))
    }

    pub fn negated(self) -> Self {
        Condition::Not(Box::new(self))
    }

    pub fn holds(&self, values: &Values) -> bool {
        match self {
            Condition::Compare(left, op, right) => {
                let (left, right) = (left.at(values), right.at(values));
                match *op {
                    "<" => left < right,
                    "<=" => left <= right,
                    ">" => left > right,
                    ">=" => left >= right,
                    "==" => left == right,
                    "!=" => left != right,
                    other => unreachable!("{other} compares nothing"),
                }
            }
            Condition::Both(a, b) => a.holds(values) && b.holds(values),
            Condition::Either(a, b) => a.holds(values) || b.holds(values),
            Condition::Not(a) => !a.holds(values),
        }
    }
}

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Condition::Compare(left, op, right) => write!(f, "{left} {op} {right}"),
            Condition::Both(a, b) => write!(f, "({a}) and ({b})"),
            Condition::Either(a, b) => write!(f, "({a}) or ({b})"),
            Condition::Not(a) => write!(f, "not ({a})"),
        }
    }
}
