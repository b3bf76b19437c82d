//! Index expressions with numbers for the sizes, in `i64`.
//!
//! That no sum overflows is checked while translating: every variable has a largest magnitude, which follows from its
//! range, and so has every expression. One past [`LIMIT`] is refused.

use super::failed;
use gradix::Int;
use gradix::diagnostic::Diagnostic;
use gradix::nest::{ByLoop, LoopId};
use gradix::program::{Affine, Atom, Constraint, ParamId, Range, Relation};

/// No intermediate result of an index expression is larger.
const LIMIT: i128 = 1 << 61;

/// `constant + Σ factor · variable + Σ factor · ⌊inner / divisor⌋`
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    pub constant: i64,
    pub terms: Vec<(LoopId, i64)>,
    pub floors: Vec<Floor>,
}

/// `factor · ⌊inner / divisor⌋`
#[derive(Clone, Debug, PartialEq)]
pub struct Floor {
    pub inner: Linear,
    pub divisor: i64,
    pub factor: i64,
}

impl Linear {
    /// The value, given the variables.
    #[inline]
    pub fn at(&self, point: &ByLoop<i64>) -> i64 {
        let straight = self.straight_at(point);
        if self.floors.is_empty() { straight } else { straight + self.floors_at(point) }
    }

    #[inline(always)]
    fn straight_at(&self, point: &ByLoop<i64>) -> i64 {
        self.terms.iter().fold(self.constant, |sum, (variable, factor)| sum + factor * point[*variable])
    }

    /// Apart from the rest, which is what most subscripts are, and then inlined.
    fn floors_at(&self, point: &ByLoop<i64>) -> i64 {
        let value = |floor: &Floor| floor.factor * floor.inner.at(point).div_euclid(floor.divisor);
        self.floors.iter().map(value).sum()
    }

    /// The factor of a variable outside all floors.
    pub fn factor(&self, variable: LoopId) -> i64 {
        self.terms.iter().find(|(v, _)| *v == variable).map_or(0, |(_, factor)| *factor)
    }

    /// How much it grows where all variables go a step in a direction; none of these is in a floor.
    #[inline]
    pub fn along(&self, direction: &ByLoop<i64>) -> i64 {
        self.terms.iter().map(|(variable, factor)| factor * direction[*variable]).sum()
    }

    /// Whether a variable occurs.
    pub fn uses(&self, variable: LoopId) -> bool {
        self.factor(variable) != 0 || self.bends_at(variable)
    }

    /// All variables that occur.
    pub fn variables(&self) -> impl Iterator<Item = LoopId> {
        let inside = self.floors.iter().flat_map(|floor| floor.inner.variables().collect::<Vec<_>>());
        self.terms.iter().map(|(variable, _)| *variable).chain(inside)
    }

    /// Whether a variable occurs in a floor, so that the value is not linear in it.
    pub fn bends_at(&self, variable: LoopId) -> bool {
        self.floors.iter().any(|floor| floor.inner.uses(variable))
    }

    /// For how many steps of a variable, counting the point, the floors stay what they are, so that it is linear.
    pub fn straight(&self, point: &ByLoop<i64>, variable: LoopId) -> i64 {
        let steps = self.floors.iter().map(|Floor { inner, divisor, .. }| {
            let (rest, step) = (inner.at(point).rem_euclid(*divisor), inner.factor(variable));
            let steps = match step {
                0 => i64::MAX,
                1.. => (divisor - 1 - rest) / step + 1,
                _ => rest / -step + 1,
            };
            steps.min(inner.straight(point, variable))
        });
        steps.min().unwrap_or(i64::MAX)
    }
}

/// A condition on variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub linear: Linear,
    pub relation: Relation,
}

impl Condition {
    /// Whether it holds.
    #[inline]
    pub fn holds(&self, point: &ByLoop<i64>) -> bool {
        let value = self.linear.at(point);
        match self.relation {
            Relation::NonNegative => value >= 0,
            Relation::Zero => value == 0,
        }
    }
}

impl Condition {
    /// How many steps of a variable that is in no floor leave the outcome as it is at this point, counting the point.
    pub fn run(&self, point: &ByLoop<i64>, variable: LoopId) -> i64 {
        let (value, step) = (self.linear.at(point), self.linear.factor(variable));
        let steps = match self.relation {
            _ if step == 0 => None,
            Relation::NonNegative if value >= 0 => (step < 0).then(|| value / -step + 1),
            Relation::NonNegative => (step > 0).then(|| (-value + step - 1) / step),
            Relation::Zero if value == 0 => Some(1),
            Relation::Zero => (value % step == 0 && (value < 0) != (step < 0)).then(|| -value / step),
        };
        steps.unwrap_or(i64::MAX)
    }
}

/// From the largest of `low` to the smallest of `high`, both included.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub low: Vec<Linear>,
    pub high: Vec<Linear>,
    /// About how many values there are.
    pub extent: i64,
}

impl Bounds {
    /// The first and the last value, given the outer variables.
    #[inline]
    pub fn at(&self, point: &ByLoop<i64>) -> (i64, i64) {
        let low = self.low.iter().map(|l| l.at(point)).max().unwrap_or(0);
        let high = self.high.iter().map(|h| h.at(point)).min().unwrap_or(-1);
        (low, high)
    }

    /// Whether a variable occurs.
    pub fn uses(&self, variable: LoopId) -> bool {
        self.low.iter().chain(&self.high).any(|l| l.uses(variable))
    }
}

/// Puts numbers in for sizes, and knows how large each variable that is bound can be.
pub struct Translator<'a> {
    pub sizes: &'a [Int],
    magnitudes: ByLoop<Option<i128>>,
    /// A point about the middle of the work.
    middle: ByLoop<i64>,
    /// The variables of sizes that change from step to step.
    times: Vec<(ParamId, LoopId)>,
}

impl<'a> Translator<'a> {
    /// A translator for a kernel with so many variables, none of them bound.
    pub fn new(sizes: &'a [Int], variables: usize) -> Self {
        let (magnitudes, middle) = (ByLoop(vec![None; variables]), ByLoop(vec![0; variables]));
        Translator { sizes, magnitudes, middle, times: Vec::new() }
    }

    /// Makes a size that takes the values `0..steps` a variable.
    pub fn bind_time(&mut self, param: ParamId, variable: LoopId, steps: i64) -> Result<(), Diagnostic> {
        self.times.push((param, variable));
        self.bind(variable, i128::from(steps.max(0)), steps / 2)
    }

    /// Binds a variable that lies between two numbers of at most this magnitude, and often is about `middle`.
    pub fn bind(&mut self, variable: LoopId, magnitude: i128, middle: i64) -> Result<(), Diagnostic> {
        let magnitude = fits(magnitude)?;
        let slot = self.magnitudes.0.get_mut(variable.number()).ok_or_else(unbound)?;
        *slot = Some(magnitude);
        self.middle[variable] = middle.clamp(-magnitude as i64, magnitude as i64);
        Ok(())
    }

    /// Translates a range and binds its variable.
    pub fn range(&mut self, variable: LoopId, range: &Range) -> Result<Bounds, Diagnostic> {
        let side = |bounds: &[Affine]| -> Result<(Vec<Linear>, i128), Diagnostic> {
            let pairs = bounds.iter().map(|b| self.measured(b)).collect::<Result<Vec<_>, _>>()?;
            let magnitude = pairs.iter().map(|(_, m)| *m).min().ok_or_else(unbound)?;
            Ok((pairs.into_iter().map(|(linear, _)| linear).collect(), magnitude))
        };
        let ((low, small), (high, large)) = (side(&range.low)?, side(&range.high)?);
        let mut bounds = Bounds { low, high, extent: 0 };
        let (first, last) = bounds.at(&self.middle);
        bounds.extent = last - first + 1;
        self.bind(variable, small.max(large), first + (last - first) / 2)?;
        Ok(bounds)
    }

    /// Translates a condition.
    pub fn condition(&self, constraint: &Constraint) -> Result<Condition, Diagnostic> {
        Ok(Condition { linear: self.linear(&constraint.affine)?, relation: constraint.relation })
    }

    /// Translates an index expression.
    pub fn linear(&self, affine: &Affine) -> Result<Linear, Diagnostic> {
        self.measured(affine).map(|(linear, _)| linear)
    }

    /// The number of an expression in sizes alone.
    pub fn number(&self, affine: &Affine) -> Result<i64, Diagnostic> {
        self.linear(affine).map(|linear| linear.at(&ByLoop(Vec::new())))
    }

    /// The place of an element in a row-major array of these extents.
    pub fn place(&self, subscripts: &[Affine], extents: &[i64]) -> Result<Linear, Diagnostic> {
        let mut place = Affine::constant(0);
        for (subscript, extent) in subscripts.iter().zip(extents) {
            place = place.scale(&Int::from(*extent)) + subscript.clone();
        }
        self.linear(&place)
    }

    /// The translation, and the largest magnitude that any part of it can have.
    fn measured(&self, affine: &Affine) -> Result<(Linear, i128), Diagnostic> {
        let mut linear = Linear { constant: 0, terms: Vec::new(), floors: Vec::new() };
        let mut constant = number(affine.offset())?;
        let mut magnitude = constant.abs();
        for (atom, factor) in affine.terms() {
            let factor = number(factor)?;
            let size = match atom {
                Atom::Index(v) => self.variable(LoopId(*v), factor, &mut linear)?,
                Atom::Param(param) if let Some((_, variable)) = self.times.iter().find(|(time, _)| time == param) => {
                    self.variable(*variable, factor, &mut linear)?
                }
                Atom::Param(ParamId(p)) => {
                    let size = number(self.sizes.get(*p as usize).ok_or_else(unbound)?)?;
                    constant = fits(constant + fits(factor * size)?)?;
                    size.abs()
                }
                Atom::Floor(inner, divisor) => {
                    let (inner, size) = self.measured(inner)?;
                    let divisor = number(divisor)?;
                    linear.floors.push(Floor { inner, divisor: divisor.max(1) as i64, factor: factor as i64 });
                    size + 1
                }
            };
            magnitude = fits(magnitude + fits(factor.abs() * size)?)?;
        }
        linear.constant = constant as i64;
        Ok((linear, magnitude))
    }

    /// Adds a variable, and gives its magnitude.
    fn variable(&self, variable: LoopId, factor: i128, linear: &mut Linear) -> Result<i128, Diagnostic> {
        linear.terms.push((variable, factor as i64));
        self.magnitudes.0.get(variable.number()).copied().flatten().ok_or_else(unbound)
    }
}

fn number(value: &Int) -> Result<i128, Diagnostic> {
    i64::try_from(value).map_err(|_| too_large()).and_then(|value| fits(i128::from(value)))
}

fn fits(value: i128) -> Result<i128, Diagnostic> {
    if value.abs() <= LIMIT { Ok(value) } else { Err(too_large()) }
}

fn too_large() -> Diagnostic {
    failed("the numbers in an index expression are too large")
}

fn unbound() -> Diagnostic {
    failed("a variable or size is used that has no value")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_become_numbers_and_places_row_major() {
        let sizes = [Int::from(5)];
        let mut translator = Translator::new(&sizes, 2);
        let n = Affine::param(ParamId(0));
        let bounds = translator.range(LoopId(0), &Range::extent(n.clone())).unwrap();
        assert_eq!(bounds.at(&ByLoop(Vec::new())), (0, 4));
        translator.range(LoopId(1), &Range::extent(n.clone())).unwrap();
        let floor = Affine::index(LoopId(1)).shift(1).floor_div(&Int::from(2));
        let place = translator.place(&[n - Affine::index(LoopId(0)), floor], &[6, 3]).unwrap();
        assert_eq!(
            (
                place.at(&ByLoop(vec![2, 3])),
                place.factor(LoopId(0)),
                place.bends_at(LoopId(1)),
                place.bends_at(LoopId(0))
            ),
            (11, -3, true, false)
        );
    }

    #[test]
    fn an_outcome_stays_as_long_as_its_run() {
        for (step, offset) in (-3..4).flat_map(|step| (-9..10).map(move |offset| (step, offset))) {
            for relation in [Relation::NonNegative, Relation::Zero] {
                let terms = if step == 0 { Vec::new() } else { vec![(LoopId(0), step)] };
                let condition = Condition { linear: Linear { constant: offset, terms, floors: Vec::new() }, relation };
                for start in -5..5 {
                    let now = condition.holds(&ByLoop(vec![start]));
                    let run =
                        (start..start + 50).take_while(|v| condition.holds(&ByLoop(vec![*v])) == now).count() as i64;
                    assert_eq!(condition.run(&ByLoop(vec![start]), LoopId(0)).min(50), run);
                }
            }
        }
    }

    #[test]
    fn what_could_overflow_is_refused() {
        let sizes = [Int::from(1i64 << 40)];
        let mut translator = Translator::new(&sizes, 1);
        translator.range(LoopId(0), &Range::extent(Affine::param(ParamId(0)))).unwrap();
        assert!(translator.linear(&Affine::index(LoopId(0)).scale(&Int::from(1 << 20))).is_ok());
        assert!(translator.linear(&Affine::index(LoopId(0)).scale(&Int::from(1 << 22))).is_err());
    }
}
