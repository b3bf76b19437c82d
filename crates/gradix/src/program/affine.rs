//! Integer-affine index expressions: `2*i + 3*(k // 2) - N + 1`.
//!
//! A sum of atoms with integer coefficients and a constant, in one canonical form, so that equal
//! expressions are equal values. An atom is an index of the definition at hand, a param, or
//! `⌊e / c⌋`; `e % c` is `e - c*⌊e / c⌋`. Coefficients grow as they need to and never wrap.

use gradix_int::Int;
use std::fmt;
use std::ops::{Add, Neg, Sub};
use std::sync::Arc;

/// A param of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParamId(pub u32);

/// The largest coefficient or constant in an index expression that can be written.
pub const MAX_COEFFICIENT: i64 = 1 << 40;

/// What an index expression is a sum of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// An index, by its position in its definition (outputs first, then reduction indices).
    Index(u32),
    /// A size.
    Param(ParamId),
    /// `⌊e / c⌋` with `c >= 2`.
    Floor(Arc<Affine>, Int),
}

/// `Σ coefficient · atom + constant`; terms sorted by atom, no zero coefficient. Copies share their terms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Affine {
    terms: Arc<[(Atom, Int)]>,
    constant: Int,
}

impl Affine {
    /// A number.
    pub fn constant(value: impl Into<Int>) -> Self {
        Affine { terms: Arc::default(), constant: value.into() }
    }

    /// An atom alone.
    pub fn atom(atom: Atom) -> Self {
        Affine { terms: Arc::new([(atom, Int::ONE)]), constant: Int::ZERO }
    }

    /// An index alone.
    pub fn index(index: impl Variable) -> Self {
        Affine::atom(Atom::Index(index.number() as u32))
    }

    /// A param alone.
    pub fn param(param: ParamId) -> Self {
        Affine::atom(Atom::Param(param))
    }

    /// The terms, sorted by atom.
    pub fn terms(&self) -> &[(Atom, Int)] {
        &self.terms
    }

    /// The number beside the terms.
    pub fn offset(&self) -> &Int {
        &self.constant
    }

    /// The coefficient of an atom, zero if it is absent.
    pub fn coefficient(&self, atom: &Atom) -> Int {
        self.terms.iter().find(|(a, _)| a == atom).map_or(Int::ZERO, |(_, c)| c.clone())
    }

    /// How far it advances with an index, apart from what stands inside `⌊e / c⌋`.
    pub fn step_of(&self, index: impl Variable) -> Int {
        self.coefficient(&Atom::Index(index.number() as u32))
    }

    /// The value, if there is no atom.
    pub fn as_constant(&self) -> Option<&Int> {
        self.terms.is_empty().then_some(&self.constant)
    }

    /// The position of the index, if it is just that.
    pub fn as_index(&self) -> Option<usize> {
        match self.terms() {
            [(Atom::Index(i), c)] if *c == Int::ONE && self.constant == Int::ZERO => Some(*i as usize),
            _ => None,
        }
    }

    /// `factor * self`
    pub fn scale(&self, factor: &Int) -> Self {
        if *factor == Int::ZERO {
            return Affine::default();
        }
        Affine {
            terms: self.terms.iter().map(|(a, c)| (a.clone(), c * factor)).collect(),
            constant: &self.constant * factor,
        }
    }

    /// `self + offset`
    pub fn shift(&self, offset: impl Into<Int>) -> Self {
        Affine { terms: self.terms.clone(), constant: &self.constant + offset.into() }
    }

    /// `self + factor * other`
    pub fn add_scaled(&self, factor: &Int, other: &Affine) -> Self {
        if let Some(constant) = other.as_constant() {
            return self.shift(factor * constant);
        }
        if let Some(constant) = self.as_constant() {
            let scaled = if factor.is_one() { other.clone() } else { other.scale(factor) };
            return scaled.shift(constant.clone());
        }
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut left, mut right) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            match (left.peek(), right.peek()) {
                (Some((a, c)), Some((b, d))) if a == b => {
                    let sum = c + factor * d;
                    if sum != Int::ZERO {
                        terms.push((a.clone(), sum));
                    }
                    left.next();
                    right.next();
                }
                (Some((a, c)), Some((b, _))) if a < b => {
                    terms.push((a.clone(), c.clone()));
                    left.next();
                }
                (Some((a, c)), None) => {
                    terms.push((a.clone(), c.clone()));
                    left.next();
                }
                (_, Some((b, d))) => {
                    if *factor != Int::ZERO {
                        terms.push((b.clone(), factor * d));
                    }
                    right.next();
                }
                (None, None) => break,
            }
        }
        Affine { terms: terms.into(), constant: &self.constant + factor * &other.constant }
    }

    /// Whether all terms are negative; without sizes, the first is enough: `(k - i) // 2` is written with `(i - k + 1) // 2`.
    fn is_falling(&self) -> bool {
        let has_sizes = self.terms().iter().any(|(atom, _)| matches!(atom, Atom::Param(_)));
        let mut leading = self.terms().iter().take(if has_sizes { usize::MAX } else { 1 });
        !self.terms().is_empty() && leading.all(|(_, coefficient)| *coefficient < Int::ZERO)
    }

    /// `⌊self / divisor⌋` for a positive divisor, in canonical form: what divides evenly comes out, and so does the
    /// sign of what falls.
    pub fn floor_div(&self, divisor: &Int) -> Self {
        if *divisor == Int::ONE {
            return self.clone();
        }
        let is_even = |(_, coefficient): &&(Atom, Int)| (coefficient % divisor).is_zero();
        let (even, odd): (Vec<_>, Vec<_>) = self.terms().iter().partition(is_even);
        let whole = div_floor(&self.constant, divisor);
        let rest = &self.constant - &whole * divisor;
        let quotients = even.into_iter().map(|(atom, coefficient)| (atom.clone(), coefficient / divisor)).collect();
        let outside = Affine { terms: quotients, constant: whole };
        if odd.is_empty() {
            return outside;
        }
        let common = odd.iter().fold(divisor.clone(), |g, (_, c)| gcd(&g, c));
        let reduced = Affine {
            terms: odd.into_iter().map(|(a, c)| (a.clone(), c / &common)).collect(),
            constant: div_floor(&rest, &common),
        };
        let divisor = divisor / &common;
        if divisor == Int::ONE {
            return outside + reduced;
        }
        if let [(Atom::Floor(inner, c), one)] = reduced.terms()
            && *one == Int::ONE
        {
            let merged = inner.add_scaled(&Int::ONE, &Affine::constant(c * &reduced.constant));
            return outside + merged.floor_div(&(c * divisor));
        }
        if reduced.is_falling() {
            // `⌊-e / c⌋ = -⌊(e + c - 1) / c⌋`
            let negated = (-reduced).shift(&divisor - Int::ONE);
            return outside - negated.floor_div(&divisor);
        }
        outside + Affine::atom(Atom::Floor(Arc::new(reduced), divisor))
    }

    /// `self % divisor`, between 0 and `divisor - 1`.
    pub fn remainder(&self, divisor: &Int) -> Self {
        self.add_scaled(&-divisor.clone(), &self.floor_div(divisor))
    }

    /// What `self` or `-self` is the remainder of, as that remainder and its divisor: `e - c*⌊e / c⌋` and `c`.
    pub fn as_remainder(&self) -> Option<(Affine, Int)> {
        self.terms().iter().find_map(|(atom, coefficient)| match atom {
            Atom::Floor(inner, c) if coefficient == c || *coefficient == -c => {
                let remainder = inner.remainder(c);
                (remainder == *self || -remainder.clone() == *self).then(|| (remainder, c.clone()))
            }
            Atom::Floor(..) | Atom::Index(_) | Atom::Param(_) => None,
        })
    }

    /// Replaces every index and param by what `replace` gives for it, also inside `⌊e / c⌋`.
    pub fn substitute(&self, replace: &mut dyn FnMut(&Atom) -> Option<Affine>) -> Self {
        let (mut terms, mut constant) = (Vec::with_capacity(self.terms.len()), self.constant.clone());
        let mut is_same = true;
        for (atom, coefficient) in self.terms() {
            let value = match (replace(atom), atom) {
                (None, Atom::Floor(inner, c)) => {
                    let replaced = inner.substitute(replace);
                    (replaced != **inner).then(|| replaced.floor_div(c))
                }
                (value, _) => value,
            };
            is_same &= value.is_none();
            match value {
                None => terms.push((atom.clone(), coefficient.clone())),
                Some(value) => {
                    constant += coefficient * value.offset();
                    terms.extend(value.terms().iter().map(|(atom, factor)| (atom.clone(), coefficient * factor)));
                }
            }
        }
        if is_same { self.clone() } else { Affine::sum(terms, constant) }
    }

    /// A sum of terms in any order.
    fn sum(mut terms: Vec<(Atom, Int)>, constant: Int) -> Self {
        terms.sort_by(|(a, _), (b, _)| a.cmp(b));
        terms.dedup_by(|(atom, more), (kept, coefficient)| {
            let is_same = atom == kept;
            if is_same {
                *coefficient += &*more;
            }
            is_same
        });
        terms.retain(|(_, coefficient)| !coefficient.is_zero());
        Affine { terms: terms.into(), constant }
    }

    /// Replaces the indices: position `p` becomes `map[p]`.
    pub fn with_indices(&self, map: &[Affine]) -> Self {
        self.substitute(&mut |atom| match atom {
            Atom::Index(i) => Some(map[*i as usize].clone()),
            Atom::Param(_) | Atom::Floor(..) => None,
        })
    }

    /// Calls `visit` for every atom, those inside `⌊e / c⌋` included.
    pub fn visit_atoms(&self, visit: &mut dyn FnMut(&Atom)) {
        for (atom, _) in self.terms() {
            visit(atom);
            if let Atom::Floor(inner, _) = atom {
                inner.visit_atoms(visit);
            }
        }
    }

    /// Calls `visit` for every index.
    pub fn visit_indices(&self, visit: &mut dyn FnMut(usize)) {
        self.visit_atoms(&mut |atom| {
            if let Atom::Index(i) = atom {
                visit(*i as usize);
            }
        });
    }

    /// Whether an index occurs.
    pub fn uses_index(&self, index: impl Variable) -> bool {
        let mut found = false;
        self.visit_indices(&mut |i| found |= i == index.number());
        found
    }

    /// Whether any index occurs.
    pub fn uses_indices(&self) -> bool {
        let mut found = false;
        self.visit_indices(&mut |_| found = true);
        found
    }

    /// Whether it has no `⌊e / c⌋`.
    pub fn is_straight(&self) -> bool {
        !self.terms.iter().any(|(atom, _)| matches!(atom, Atom::Floor(..)))
    }

    /// Whether an index occurs inside a `⌊e / c⌋`.
    pub fn divides_index(&self, index: impl Variable) -> bool {
        self.terms.iter().any(|(atom, _)| matches!(atom, Atom::Floor(inner, _) if inner.uses_index(index)))
    }

    /// Whether every number in it is at most [`MAX_COEFFICIENT`], those inside `⌊e / c⌋` included.
    pub fn can_be_written(&self) -> bool {
        let limit = Int::from(MAX_COEFFICIENT);
        let small = |c: &Int| *c <= limit && *c >= -limit.clone();
        small(&self.constant)
            && self.terms.iter().all(|(atom, factor)| {
                let inside = match atom {
                    Atom::Floor(inner, c) => small(c) && inner.can_be_written(),
                    Atom::Index(_) | Atom::Param(_) => true,
                };
                small(factor) && inside
            })
    }

    /// About the value, at assumed values of indices and params; those that are not given count as 0.
    pub fn estimate(&self, indices: &[f64], params: &[f64]) -> f64 {
        self.terms().iter().fold(to_f64(self.offset()), |sum, (atom, factor)| {
            let atom = match atom {
                Atom::Index(i) => indices.get(*i as usize).copied().unwrap_or(0.0),
                Atom::Param(ParamId(p)) => params.get(*p as usize).copied().unwrap_or(0.0),
                Atom::Floor(inner, c) => (inner.estimate(indices, params) / to_f64(c)).floor(),
            };
            sum + to_f64(factor) * atom
        })
    }

    /// The value, given the values of indices and params.
    pub fn evaluate(&self, value: &dyn Fn(&Atom) -> Int) -> Int {
        self.terms.iter().fold(self.constant.clone(), |sum, (atom, coefficient)| {
            sum + coefficient
                * match atom {
                    Atom::Floor(inner, c) => div_floor(&inner.evaluate(value), c),
                    atom => value(atom),
                }
        })
    }
}

/// Whether an index moves an access from one element to the next.
pub fn is_along(subscripts: &[Affine], index: impl Variable) -> bool {
    subscripts
        .split_last()
        .is_some_and(|(last, others)| last.step_of(index) == Int::ONE && !others.iter().any(|s| s.uses_index(index)))
}

/// What an index in an [`Affine`] may stand for: one of a definition, by its position, or a variable of a kernel.
pub trait Variable: Copy {
    /// Its number among those of the definition or of the kernel.
    fn number(self) -> usize;
}

impl Variable for usize {
    fn number(self) -> usize {
        self
    }
}

/// The nearest number; those of programs are mostly small, for which that is quick.
pub fn to_f64(value: &Int) -> f64 {
    i32::try_from(value).map_or_else(|_| value.to_f64().value(), f64::from)
}

/// The greatest common divisor, not negative.
pub fn gcd(a: &Int, b: &Int) -> Int {
    if [a, b].into_iter().any(|number| number.is_one() || *number == Int::NEG_ONE) {
        return Int::ONE;
    }
    let (mut a, mut b) = (a.clone(), b.clone());
    while b != Int::ZERO {
        (a, b) = (b.clone(), a % b);
    }
    if a < Int::ZERO { -a } else { a }
}

/// `⌊a / b⌋` for positive `b`.
pub fn div_floor(a: &Int, b: &Int) -> Int {
    let quotient = a / b;
    if &quotient * b > *a { quotient - Int::ONE } else { quotient }
}

impl Add for Affine {
    type Output = Affine;
    fn add(self, other: Affine) -> Affine {
        self.add_scaled(&Int::ONE, &other)
    }
}

impl Sub for Affine {
    type Output = Affine;
    fn sub(self, other: Affine) -> Affine {
        self.add_scaled(&Int::NEG_ONE, &other)
    }
}

impl Neg for Affine {
    type Output = Affine;
    fn neg(self) -> Affine {
        self.scale(&Int::NEG_ONE)
    }
}

impl fmt::Display for Affine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (atom, coefficient) in self.terms() {
            match atom {
                Atom::Index(i) => write!(f, "{coefficient}*i{i} + ")?,
                Atom::Param(ParamId(p)) => write!(f, "{coefficient}*p{p} + ")?,
                Atom::Floor(inner, c) => write!(f, "{coefficient}*(({inner}) // {c}) + ")?,
            }
        }
        write!(f, "{}", self.constant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn i() -> Affine {
        Affine::index(0)
    }

    #[test]
    fn what_divides_evenly_comes_out_of_a_floor() {
        let two = Int::from(2);
        assert_eq!(i().scale(&two).shift(1).floor_div(&two), i());
        assert_eq!(i().shift(3).floor_div(&two), i().shift(1).floor_div(&two).shift(1));
        assert_eq!(i().scale(&two).shift(3).floor_div(&Int::from(4)), i().shift(1).floor_div(&two));
    }

    #[test]
    fn the_sign_of_what_falls_comes_out_of_a_floor() {
        let (two, six) = (Int::from(2), Int::from(6));
        assert_eq!((-i()).floor_div(&two), -i().shift(1).floor_div(&two));
        let mirrored = Affine::constant(5) - (-i()).shift(1).remainder(&six);
        assert_eq!(mirrored, i().shift(4).remainder(&six));
    }

    #[test]
    fn nested_floors_merge() {
        let nested = i().floor_div(&Int::from(2)).shift(1).floor_div(&Int::from(3));
        assert_eq!(nested, i().shift(2).floor_div(&Int::from(6)));
    }

    #[test]
    fn floors_and_remainders_evaluate_like_integers() {
        for value in -20..20i64 {
            for divisor in 2..6i64 {
                for (scale, offset) in [(1, 0), (-1, 2), (2, 1), (3, -4), (6, 5), (-4, 3)] {
                    let e = i().scale(&Int::from(scale)).shift(offset);
                    let at = |a: &Affine| a.evaluate(&|_| Int::from(value));
                    let plain = scale * value + offset;
                    assert_eq!(at(&e.floor_div(&Int::from(divisor))), Int::from(plain.div_euclid(divisor)));
                    assert_eq!(at(&e.remainder(&Int::from(divisor))), Int::from(plain.rem_euclid(divisor)));
                    let twice = e.floor_div(&Int::from(divisor)).shift(offset).floor_div(&Int::from(3));
                    let plain = (plain.div_euclid(divisor) + offset).div_euclid(3);
                    assert_eq!(at(&twice), Int::from(plain));
                }
            }
        }
    }
}
