//! Conditions on indices and sizes: `e >= 0` or `e == 0` with an affine `e`.

use super::affine::{Affine, Atom, div_floor, gcd};
use gradix_int::Int;

/// How the expression compares with zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Relation {
    /// `>= 0`
    NonNegative,
    /// `== 0`
    Zero,
}

/// One affine condition, in canonical form: divided by the common divisor of its coefficients,
/// an equation with its first coefficient positive, an inequality freed of `⌊e / c⌋` where that is exact.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Constraint {
    /// What is compared with zero.
    pub affine: Affine,
    /// How.
    pub relation: Relation,
}

impl Constraint {
    /// `affine >= 0`
    pub fn non_negative(affine: Affine) -> Self {
        let affine = without_unit_floors(affine);
        let affine = remainder_outcome(&affine).map_or(affine, Affine::constant);
        let affine = match affine.as_constant() {
            Some(c) if *c >= Int::ZERO => Affine::constant(0),
            Some(_) => Affine::constant(-1),
            None => affine,
        };
        Constraint { affine, relation: Relation::NonNegative }
    }

    /// `affine == 0`
    pub fn zero(affine: Affine) -> Self {
        let common = affine.terms().iter().fold(Int::ZERO, |g, (_, c)| gcd(&g, c));
        let negative = affine.terms().first().is_some_and(|(_, c)| *c < Int::ZERO);
        let divides = common != Int::ZERO && affine.offset() % &common == Int::ZERO;
        let affine = match (common > Int::ONE && divides, affine.as_constant()) {
            (true, _) => exact_quotient(&affine, &common),
            (false, Some(c)) if *c != Int::ZERO => Affine::constant(1),
            (false, _) => affine,
        };
        Constraint { affine: if negative { -affine } else { affine }, relation: Relation::Zero }
    }

    /// `low <= high`
    pub fn at_most(low: Affine, high: Affine) -> Self {
        Constraint::non_negative(high - low)
    }

    /// `left == right`
    pub fn equal(left: Affine, right: Affine) -> Self {
        Constraint::zero(left - right)
    }

    /// Whether it holds whatever the indices are (`Some(true)`), never (`Some(false)`), or depends.
    pub fn decided(&self) -> Option<bool> {
        self.affine.as_constant().map(|c| match self.relation {
            Relation::NonNegative => *c >= Int::ZERO,
            Relation::Zero => *c == Int::ZERO,
        })
    }

    /// Constraints that are disjoint and together say the opposite.
    pub fn negated(&self) -> Vec<Constraint> {
        let below = Constraint::non_negative(-self.affine.clone().shift(1));
        match self.relation {
            Relation::NonNegative => vec![below],
            Relation::Zero => match self.other_remainders() {
                Some(other) => vec![other],
                None => vec![below, Constraint::non_negative(self.affine.shift(-1))],
            },
        }
    }

    /// The opposite of `i % 2 == 0`, which is `i % 2 == 1`, of that, and of `i % 3 == 0`, which is `i % 3 >= 1`.
    fn other_remainders(&self) -> Option<Constraint> {
        let two = Int::from(2);
        if let Some((remainder, c)) = self.affine.as_remainder() {
            let rest = remainder.shift(-1);
            return Some(if c == two { Constraint::zero(rest) } else { Constraint::non_negative(rest) });
        }
        let ahead = [self.affine.shift(1), -self.affine.clone().shift(-1)];
        let (remainder, _) = ahead.iter().find_map(|e| e.as_remainder().filter(|(r, c)| r == e && *c == two))?;
        Some(Constraint::zero(remainder))
    }

    /// The same with the indices replaced: position `p` becomes `map[p]`.
    pub fn with_indices(&self, map: &[Affine]) -> Self {
        self.rebuilt(self.affine.with_indices(map))
    }

    /// The same relation of another expression, in canonical form.
    pub fn rebuilt(&self, affine: Affine) -> Self {
        match self.relation {
            Relation::NonNegative => Constraint::non_negative(affine),
            Relation::Zero => Constraint::zero(affine),
        }
    }

    /// Whether it holds for these values.
    pub fn holds(&self, value: &dyn Fn(&Atom) -> Int) -> bool {
        let number = self.affine.evaluate(value);
        match self.relation {
            Relation::NonNegative => number >= Int::ZERO,
            Relation::Zero => number == Int::ZERO,
        }
    }
}

/// The quotient, if the divisor divides all factors; the constant is rounded down.
pub(crate) fn exact_quotient(affine: &Affine, divisor: &Int) -> Affine {
    let constant = div_floor(affine.offset(), divisor);
    affine
        .terms()
        .iter()
        .fold(Affine::constant(constant), |sum, (atom, c)| sum.add_scaled(&(c / divisor), &Affine::atom(atom.clone())))
}

/// `⌊e/c⌋ + r >= 0` is `e + c*r >= 0`, and `r - ⌊e/c⌋ >= 0` is `c*r + c - 1 - e >= 0`: both are exact. The common divisor
/// goes first, since it can hide that a coefficient is one: `-2*⌊i/2⌋ - 1 >= 0` is `-⌊i/2⌋ - 1 >= 0`, which is `-i - 1 >= 0`.
fn without_unit_floors(affine: Affine) -> Affine {
    let common = affine.terms().iter().fold(Int::ZERO, |g, (_, c)| gcd(&g, c));
    let affine = if common > Int::ONE { exact_quotient(&affine, &common) } else { affine };
    let unit = affine.terms().iter().find_map(|(atom, coefficient)| match atom {
        Atom::Floor(inner, c) if *coefficient == Int::ONE || *coefficient == Int::NEG_ONE => {
            Some((atom.clone(), coefficient.clone(), inner.clone(), c.clone()))
        }
        _ => None,
    });
    let Some((atom, coefficient, inner, c)) = unit else { return affine };
    let rest = affine.add_scaled(&-coefficient.clone(), &Affine::atom(atom)).scale(&c);
    let slack = if coefficient == Int::ONE { Int::ZERO } else { c - Int::ONE };
    without_unit_floors(rest.add_scaled(&coefficient, &inner).shift(slack))
}

/// What decides `(e % c) + r >= 0` or `r - (e % c) >= 0` for every `e`, if something does: the least value, if that is not
/// negative, or the greatest, if that is.
fn remainder_outcome(affine: &Affine) -> Option<Int> {
    affine.terms().iter().find_map(|(atom, coefficient)| {
        let Atom::Floor(inner, c) = atom else { return None };
        let remainder = || inner.remainder(c);
        let last = c - Int::ONE;
        let (least, greatest) = match *coefficient == -c {
            true => (affine.clone() - remainder()).as_constant().map(|r| (r.clone(), r + &last)),
            false if coefficient == c => (affine.clone() + remainder()).as_constant().map(|r| (r - &last, r.clone())),
            false => None,
        }?;
        if least >= Int::ZERO {
            return Some(least);
        }
        (greatest < Int::ZERO).then_some(greatest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_remainder_satisfies_is_decided() {
        let remainder = Affine::index(0).shift(1).remainder(&Int::from(4));
        for (affine, outcome) in [
            (remainder.clone(), Some(true)),
            (remainder.shift(-4), Some(false)),
            (remainder.shift(-3), None),
            ((-remainder.clone()).shift(3), Some(true)),
            ((-remainder.clone()).shift(2), None),
            ((-remainder.clone()).shift(-1), Some(false)),
        ] {
            assert_eq!(Constraint::non_negative(affine).decided(), outcome);
        }
    }

    #[test]
    fn the_opposite_of_a_divisibility_is_one_constraint() {
        for c in [2, 3] {
            let divides = Constraint::zero(Affine::index(0).shift(1).remainder(&Int::from(c)));
            let [opposite] = divides.negated().try_into().expect("one constraint");
            for i in -6..6i64 {
                let value = |_: &Atom| Int::from(i);
                assert_ne!(divides.holds(&value), opposite.holds(&value));
            }
            if c == 2 {
                assert_eq!(opposite.negated(), [divides]);
            }
        }
    }

    #[test]
    fn a_floor_with_unit_coefficient_leaves_an_inequality_without_changing_it() {
        for (sign, offset) in [(1, -2), (-1, 2), (1, 3), (-1, 0)] {
            let floor = Affine::index(0).scale(&Int::from(3)).shift(1).floor_div(&Int::from(2));
            let affine = floor.scale(&Int::from(sign)) + Affine::index(1) + Affine::constant(offset);
            let constraint = Constraint::non_negative(affine.clone());
            assert!(constraint.affine.terms().iter().all(|(a, _)| !matches!(a, Atom::Floor(..))));
            for (i, j) in (-6..6).flat_map(|i| (-6..6).map(move |j| (i, j))) {
                let value = |atom: &Atom| Int::from(if *atom == Atom::Index(0) { i } else { j });
                assert_eq!(constraint.holds(&value), affine.evaluate(&value) >= Int::ZERO);
            }
        }
    }

    #[test]
    fn a_floor_whose_coefficient_is_the_common_divisor_leaves_an_inequality() {
        let (two, three) = (Int::from(2), Int::from(3));
        let half = Affine::index(0).floor_div(&two).scale(&two);
        assert_eq!(Constraint::non_negative((-half.clone()).shift(-1)).affine, (-Affine::index(0)).shift(-1));
        // 3*⌊(2*⌊i/2⌋ + 1)/3⌋ - 3 >= 0 is 2*⌊i/2⌋ - 2 >= 0.
        let nested = half.shift(1).floor_div(&three).scale(&three).shift(-3);
        assert_eq!(Constraint::non_negative(nested).affine, Affine::index(0).shift(-2));
    }

    #[test]
    fn negation_covers_exactly_the_rest() {
        let e = Affine::index(0).scale(&Int::from(2)).shift(-3);
        for constraint in [Constraint::non_negative(e.clone()), Constraint::zero(e.shift(1))] {
            for i in -9..9i64 {
                let value = |_: &Atom| Int::from(i);
                let opposite = constraint.negated().iter().filter(|c| c.holds(&value)).count();
                assert_eq!(opposite, usize::from(!constraint.holds(&value)));
            }
        }
    }
}
