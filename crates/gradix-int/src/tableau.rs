//! The simplex method in exact arithmetic, over variables without sign.
//!
//! A tableau states every linear form `s_i` through as many others `y_j`, with one denominator `d > 0` for all:
//!
//! ```text
//! s_i = (Σ_j T_ij y_j + t_i) / d
//! ```
//!
//! Forms numbered below [`OBJECTIVE`] are constraints, `≥ 0`. The vertex that the tableau stands for has all `y_j = 0`.
//! A pivot exchanges an `s_i` for a `y_j`. It needs no fractions: all entries are minors of the original matrix, so the
//! division by the old `d` is exact (Edmonds). Choices are greedy at first, then follow Bland's rule, by which no tableau
//! occurs twice and every loop ends. Columns that are [`FREE`] are zero in every constraint.

use std::cmp::Ordering;

use crate::scalar::Scalar;

/// The number of the form that is not a constraint.
pub(crate) const OBJECTIVE: usize = usize::MAX - 1;
/// The number of a column that is a variable without sign.
pub(crate) const FREE: usize = usize::MAX;

/// How a minimisation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Minimum {
    /// The form is at its minimum at the tableau's vertex.
    Attained,
    /// The form is at most -1 at the tableau's vertex; reported only if asked for.
    BelowZero,
    /// The form has no minimum.
    Unbounded,
}

/// How to choose among several pivots.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// What promises the most progress.
    Greedy,
    /// The lowest number, which can't run in circles.
    Bland,
}

/// A system of forms, see above.
#[derive(Clone)]
pub(crate) struct Tableau<T> {
    /// Row after row, `T_i1, …, T_in, t_i`.
    entries: Vec<T>,
    width: usize,
    denominator: T,
    /// The number of the form in each row.
    row_forms: Vec<usize>,
    /// The number of the form in each column.
    column_forms: Vec<usize>,
}

impl<T: Scalar> Tableau<T> {
    /// The tableau of the given rows of `columns` coefficients and a constant, over variables without sign;
    /// `row_forms` numbers the rows. Pivots until no constraint depends on a free column.
    pub(crate) fn new(entries: Vec<T>, columns: usize, row_forms: Vec<usize>) -> Result<Self, T::Overflow> {
        let column_forms = vec![FREE; columns];
        let mut tableau = Tableau { entries, width: columns + 1, denominator: T::ONE, row_forms, column_forms };
        for column in 0..columns {
            if let Some(row) = tableau.smallest_in_column(column) {
                tableau.pivot(row, column)?;
                tableau.remove_row(row);
            }
        }
        Ok(tableau)
    }

    /// Moves to a vertex at which all constraints hold (rows of the objective aside); false if there is none.
    pub(crate) fn restore(&mut self) -> Result<bool, T::Overflow> {
        for step in 0.. {
            let rule = self.rule(step);
            let Some(row) = self.violated_row(rule) else { break };
            let Some(column) = self.entering_column(row, Ordering::Greater, rule) else { return Ok(false) };
            self.pivot(row, column)?;
        }
        Ok(true)
    }

    /// Minimises the form in `objective` from a vertex at which the other constraints hold, and keeps to such.
    /// With `until_below`, stops as soon as the form is at most -1.
    pub(crate) fn minimise(&mut self, objective: usize, until_below: bool) -> Result<Minimum, T::Overflow> {
        let is_free = |(column, form): (usize, &usize)| *form == FREE && !self.at(objective, column).is_zero();
        if self.column_forms.iter().enumerate().any(is_free) {
            return Ok(Minimum::Unbounded);
        }
        let mut step = 0;
        loop {
            if until_below && self.is_below_zero(objective) {
                return Ok(Minimum::BelowZero);
            }
            let Some(column) = self.entering_column(objective, Ordering::Less, self.rule(step)) else {
                return Ok(Minimum::Attained);
            };
            let Some(row) = self.blocking_row(column, Ordering::Less, Some(objective)) else {
                return Ok(Minimum::Unbounded);
            };
            self.pivot(row, column)?;
            step += 1;
        }
    }

    /// Whether the constraint `form` follows from the others, over the integers: those exclude `form ≤ -1`.
    /// Takes it out of the tableau if so. Goes from a vertex at which all constraints hold to one such.
    pub(crate) fn remove_if_implied(&mut self, form: usize) -> Result<bool, T::Overflow> {
        if let Some(column) = self.column_forms.iter().position(|&other| other == form) {
            let Some(row) = self.blocking_row(column, Ordering::Greater, None) else { return Ok(false) };
            if self.at(row, self.width - 1) >= self.at(row, column) {
                return Ok(false);
            }
            self.pivot(row, column)?;
        }
        let Some(row) = self.row_of(form) else { return Ok(false) };
        let implied = self.minimise(row, true)? == Minimum::Attained;
        if implied {
            self.remove_row(row);
        } else {
            self.restore()?;
        }
        Ok(implied)
    }

    /// The row of a form.
    pub(crate) fn row_of(&self, form: usize) -> Option<usize> {
        self.row_forms.iter().position(|&other| other == form)
    }

    /// Numerator and denominator of the form in `row` at the tableau's vertex.
    pub(crate) fn value(&self, row: usize) -> (&T, &T) {
        (self.at(row, self.width - 1), &self.denominator)
    }

    fn at(&self, row: usize, column: usize) -> &T {
        &self.entries[row * self.width + column]
    }

    fn is_below_zero(&self, row: usize) -> bool {
        let (value, denominator) = self.value(row);
        *value < T::ZERO && value.compare_magnitude(denominator).is_ge()
    }

    /// The constraint with the entry of smallest magnitude in a column, so that denominators stay small.
    fn smallest_in_column(&self, column: usize) -> Option<usize> {
        (0..self.row_forms.len())
            .filter(|&row| self.row_forms[row] != OBJECTIVE && !self.at(row, column).is_zero())
            .min_by(|&a, &b| self.at(a, column).compare_magnitude(self.at(b, column)))
    }

    /// Greedy choices seldom need more steps than there are rows and columns, but they may run in circles.
    fn rule(&self, step: usize) -> Rule {
        if step < self.row_forms.len() + self.width { Rule::Greedy } else { Rule::Bland }
    }

    /// The most violated constraint, or that of the lowest number.
    fn violated_row(&self, rule: Rule) -> Option<usize> {
        let constant = self.width - 1;
        let violated = (0..self.row_forms.len())
            .filter(|&row| self.row_forms[row] != OBJECTIVE && *self.at(row, constant) < T::ZERO);
        match rule {
            Rule::Greedy => violated.min_by(|&a, &b| self.at(a, constant).cmp(self.at(b, constant))),
            Rule::Bland => violated.min_by_key(|&row| self.row_forms[row]),
        }
    }

    /// Among the columns with an entry of the given sign in `row`, that with the largest entry, or of the lowest number.
    fn entering_column(&self, row: usize, sign: Ordering, rule: Rule) -> Option<usize> {
        let columns = (0..self.width - 1)
            .filter(|&column| self.column_forms[column] != FREE && self.at(row, column).cmp(&T::ZERO) == sign);
        match rule {
            Rule::Greedy => columns.max_by(|&a, &b| self.at(row, a).compare_magnitude(self.at(row, b))),
            Rule::Bland => columns.min_by_key(|&column| self.column_forms[column]),
        }
    }

    /// The constraint that is the first to become zero when the form of a column moves away from zero: up, if entries of
    /// sign `Less` are to block, or down, if those of sign `Greater`. The lowest number among equals.
    fn blocking_row(&self, column: usize, sign: Ordering, objective: Option<usize>) -> Option<usize> {
        let blocks = |row: &usize| {
            let is_constraint = self.row_forms[*row] != OBJECTIVE && Some(*row) != objective;
            is_constraint && self.at(*row, column).cmp(&T::ZERO) == sign
        };
        let last = self.width - 1;
        (0..self.row_forms.len()).filter(blocks).min_by(|&a, &b| {
            // t_a / |T_a| against t_b / |T_b|: the entries have equal signs, and that sign turns the comparison around.
            let ratios =
                T::compare_products(self.at(a, last), self.at(b, column), self.at(b, last), self.at(a, column));
            let ratios = if sign == Ordering::Less { ratios.reverse() } else { ratios };
            ratios.then(self.row_forms[a].cmp(&self.row_forms[b]))
        })
    }

    /// Exchanges the form of a row for that of a column, whose common entry is not zero.
    fn pivot(&mut self, row: usize, column: usize) -> Result<(), T::Overflow> {
        let width = self.width;
        let mut pivot_row = self.entries[row * width..(row + 1) * width].to_vec();
        // The pivot becomes the denominator, so it is made positive; what is left of the column changes sign in turn.
        let is_negative = pivot_row[column] < T::ZERO;
        if is_negative {
            for entry in &mut pivot_row {
                *entry = entry.negate()?;
            }
        }
        let signed = |value: T| if is_negative { value.negate() } else { Ok(value) };
        let pivot = pivot_row[column].clone();
        // With an equal denominator, a zero factor changes nothing.
        let is_same = pivot == self.denominator;
        for (index, target) in self.entries.chunks_exact_mut(width).enumerate() {
            if index == row || (is_same && target[column].is_zero()) {
                continue;
            }
            let factor = target[column].clone();
            for (entry, other) in target.iter_mut().zip(&pivot_row) {
                if !(is_same && other.is_zero()) {
                    *entry = entry.cross(&pivot, &factor, other, &self.denominator)?;
                }
            }
            target[column] = signed(factor)?;
        }
        let target = &mut self.entries[row * width..(row + 1) * width];
        for (entry, other) in target.iter_mut().zip(&pivot_row) {
            *entry = other.negate()?;
        }
        target[column] = signed(std::mem::replace(&mut self.denominator, pivot))?;
        std::mem::swap(&mut self.row_forms[row], &mut self.column_forms[column]);
        Ok(())
    }

    /// Drops a row; the last one takes its place.
    fn remove_row(&mut self, row: usize) {
        let (last, width) = (self.row_forms.len() - 1, self.width);
        for column in 0..width {
            self.entries.swap(row * width + column, last * width + column);
        }
        self.entries.truncate(last * width);
        self.row_forms.swap_remove(row);
    }
}
