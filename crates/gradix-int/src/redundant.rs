//! Removes inequalities that the others imply.

use crate::linear_program::irredundant;
use crate::polyhedron::bounds_imply;
use crate::{Polyhedron, Row};

impl Polyhedron {
    /// Removes every inequality that the remaining ones imply together with those of `context`, in the sense of
    /// [`Polyhedron::implies`]. Of rows that imply each other the earlier ones stay. Equalities stay as they are.
    ///
    /// Within `context` the set keeps exactly its integer points.
    ///
    /// # Panics
    /// If the dimensions differ.
    ///
    /// ```
    /// use gradix_int::{Polyhedron, Row};
    /// // n ≥ 1 is known; i ≥ 0, i ≤ n - 1 and i ≤ 2 n
    /// let mut context = Polyhedron::new(2);
    /// context.add_inequality(Row::from_i64(&[1, 0], -1));
    /// let mut set = Polyhedron::new(2);
    /// set.add_inequality(Row::from_i64(&[0, 1], 0));
    /// set.add_inequality(Row::from_i64(&[1, -1], -1));
    /// set.add_inequality(Row::from_i64(&[2, -1], 0));
    /// set.remove_redundant(&context);
    /// assert_eq!(set.to_string(), "x1 >= 0 and x0 - x1 - 1 >= 0");
    /// ```
    pub fn remove_redundant(&mut self, context: &Polyhedron) {
        assert_eq!(context.dimension, self.dimension, "the context has another dimension");
        if self.is_marked_empty() {
            return;
        }
        self.remove_obvious(context);
        if self.inequalities.is_empty() {
            return;
        }
        let equalities: Vec<&Row> = self.equalities.iter().chain(&context.equalities).collect();
        let inequalities: Vec<&Row> = context.inequalities.iter().chain(&self.inequalities).collect();
        let constraints = self.constraints(&equalities, &inequalities);
        match irredundant(constraints, context.inequalities.len()) {
            Some(kept) => {
                let mut kept = kept.into_iter();
                self.inequalities.retain(|_| kept.next() == Some(true));
            }
            None => self.remove_one_by_one(context),
        }
    }

    /// Removes what a parallel row or the bounds of single variables show to be redundant.
    fn remove_obvious(&mut self, context: &Polyhedron) {
        for index in (0..self.inequalities.len()).rev() {
            let row = &self.inequalities[index];
            let is_weaker = |other: &Row| other.constant <= row.constant && other.coefficients == row.coefficients;
            let is_bound = row.single().is_some();
            if context.inequalities.iter().any(is_weaker)
                || (!is_bound && bounds_imply(self.inequalities.iter(), row))
                || bounds_imply(context.inequalities.iter(), row)
            {
                self.inequalities.remove(index);
            }
        }
    }

    /// For an empty set, which no vertex of a tableau represents.
    fn remove_one_by_one(&mut self, context: &Polyhedron) {
        for index in (0..self.inequalities.len()).rev() {
            let row = self.inequalities.remove(index);
            let mut rest = self.clone();
            rest.intersect(context);
            if !rest.implies(&row) {
                self.inequalities.insert(index, row);
            }
        }
    }
}
