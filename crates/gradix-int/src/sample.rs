//! Integer points of polyhedra, by branch and bound over one variable after the other.
//!
//! A variable is set to its least value (over the rationals, rounded up); where no point follows, it is restricted to
//! larger values, of which the least is found anew. In a bounded set this visits points in lexicographic order.

use crate::linear_program::Optimum;
use crate::{Int, Polyhedron, Row};

/// The outcome of a search for an integer point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sample {
    /// A point of the set.
    Point(Vec<Int>),
    /// There is no integer point.
    Empty,
    /// The search was given up.
    Unknown,
}

impl Polyhedron {
    /// An integer point: the lexicographically smallest, if every variable is bounded from below. Otherwise one near
    /// zero. Gives up after solving `limit` linear programs.
    ///
    /// ```
    /// use gradix_int::{Polyhedron, Row, Sample};
    /// // 3 x = 5 y + 1 with x ≥ 0, y ≥ 0
    /// let mut set = Polyhedron::new(2);
    /// set.add_equality(Row::from_i64(&[3, -5], -1));
    /// set.add_inequality(Row::from_i64(&[1, 0], 0));
    /// set.add_inequality(Row::from_i64(&[0, 1], 0));
    /// assert_eq!(set.sample(100), Sample::Point(vec![2.into(), 1.into()]));
    /// ```
    pub fn sample(&self, limit: usize) -> Sample {
        let mut search = Search { budget: limit, points: Vec::new(), wanted: 1 };
        match search.visit(self.clone(), &mut Vec::new()) {
            Ok(()) => search.points.pop().map_or(Sample::Empty, Sample::Point),
            Err(Stop::Enough) => search.points.pop().map_or(Sample::Unknown, Sample::Point),
            Err(Stop::GaveUp) => Sample::Unknown,
        }
    }

    /// All integer points in lexicographic order; nothing if the set is unbounded or has more than `limit` points,
    /// or if its points are so sparse that the search was given up.
    pub fn points(&self, limit: usize) -> Option<Vec<Vec<Int>>> {
        let is_bounded = |variable| {
            let (least, greatest) = self.bounds(variable);
            least.is_some() && greatest.is_some()
        };
        if self.is_empty() {
            return Some(Vec::new());
        }
        if !(0..self.dimension).all(is_bounded) {
            return None;
        }
        let budget = limit.saturating_add(100).saturating_mul(4 * (self.dimension + 1));
        let mut search = Search { budget, points: Vec::new(), wanted: limit.saturating_add(1) };
        search.visit(self.clone(), &mut Vec::new()).ok().map(|()| search.points)
    }
}

/// Why a search ends early.
enum Stop {
    Enough,
    GaveUp,
}

struct Search {
    /// The linear programs that may still be solved.
    budget: usize,
    points: Vec<Vec<Int>>,
    /// The number of points to stop at.
    wanted: usize,
}

impl Search {
    /// Collects the points of `set`, in which the variables before `prefix.len()` are fixed to `prefix`.
    fn visit(&mut self, mut set: Polyhedron, prefix: &mut Vec<Int>) -> Result<(), Stop> {
        let variable = prefix.len();
        if variable == set.dimension {
            return self.finish(&set, prefix);
        }
        let form = Row::variable(set.dimension, variable);
        loop {
            let value = match self.minimum(&set, &form)? {
                Optimum::Empty => return Ok(()),
                Optimum::Value(least) => least,
                Optimum::Unbounded => return self.visit_unbounded(set, prefix),
            };
            self.visit_value(&set, prefix, value.clone())?;
            set.add_inequality(at_least(&form, value + Int::ONE));
        }
    }

    /// Visits the values of a variable without a least one: from zero, or else from the greatest, downwards, having
    /// tried those above zero.
    fn visit_unbounded(&mut self, set: Polyhedron, prefix: &mut Vec<Int>) -> Result<(), Stop> {
        let form = Row::variable(set.dimension, prefix.len());
        let is_positive = at_least(&form, Int::ZERO);
        let mut negative = set.clone();
        negative.add_inequality(is_positive.complement());
        let mut positive = set;
        positive.add_inequality(is_positive);
        // A search that is infinite on one side must not keep the other side from being tried.
        let total = self.budget;
        self.budget = total / 2;
        match self.visit(positive, prefix) {
            Err(Stop::Enough) => return Err(Stop::Enough),
            Ok(()) => self.budget += total - total / 2,
            Err(Stop::GaveUp) => {
                self.budget = total - total / 2;
                self.visit_downwards(negative, prefix)?;
                return Err(Stop::GaveUp);
            }
        }
        self.visit_downwards(negative, prefix)
    }

    fn visit_downwards(&mut self, mut set: Polyhedron, prefix: &mut Vec<Int>) -> Result<(), Stop> {
        let form = Row::variable(set.dimension, prefix.len());
        loop {
            let value = match self.minimum(&set, &form.negated())? {
                Optimum::Empty => return Ok(()),
                Optimum::Value(least) => -least,
                Optimum::Unbounded => return Err(Stop::GaveUp),
            };
            self.visit_value(&set, prefix, value.clone())?;
            set.add_inequality(at_least(&form, value).complement());
        }
    }

    fn visit_value(&mut self, set: &Polyhedron, prefix: &mut Vec<Int>, value: Int) -> Result<(), Stop> {
        let mut fixed = set.clone();
        let mut row = Row::variable(set.dimension, prefix.len());
        row.constant = -&value;
        fixed.add_equality(row);
        prefix.push(value);
        let outcome = self.visit(fixed, prefix);
        prefix.pop();
        outcome
    }

    fn finish(&mut self, set: &Polyhedron, point: &[Int]) -> Result<(), Stop> {
        if !set.contains(point) {
            return Ok(());
        }
        self.points.push(point.to_vec());
        if self.points.len() < self.wanted { Ok(()) } else { Err(Stop::Enough) }
    }

    fn minimum(&mut self, set: &Polyhedron, form: &Row) -> Result<Optimum, Stop> {
        self.budget = self.budget.checked_sub(1).ok_or(Stop::GaveUp)?;
        Ok(set.optimum(form))
    }
}

/// `form ≥ value`
fn at_least(form: &Row, value: Int) -> Row {
    Row::new(form.coefficients.clone(), &form.constant - value)
}
