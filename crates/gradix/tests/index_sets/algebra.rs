//! Index expressions and constraints in canonical form mean what they were made of.

use crate::points::{holds, of_box, value};
use crate::random::Scope;
use crate::{Verdict, check_systems};
use gradix::Int;
use gradix::program::{Affine, Constraint};

#[test]
fn substitution_and_canonical_forms_keep_values() {
    check_systems("algebra", 3_000, |noise| {
        let affine = Scope::new(0..2, 0, 4).affine(noise);
        let map = [Scope::new(0..2, 0, 2).affine(noise), Scope::new(0..2, 0, 1).affine(noise)];
        let divisor = noise.between(2, 6);
        let (replaced, quotient) = (affine.with_indices(&map), affine.floor_div(&Int::from(divisor)));
        let rows = [Constraint::non_negative(affine.clone()), Constraint::zero(affine.clone())];
        for point in of_box(2, -4, 6) {
            let number = value(&affine, &point, &[]);
            let moved: Vec<i64> = map.iter().map(|m: &Affine| value(m, &point, &[])).collect();
            let right = value(&replaced, &point, &[]) == value(&affine, &moved, &[])
                && value(&quotient, &point, &[]) == number.div_euclid(divisor)
                && holds(&rows[0], &point, &[]) == (number >= 0)
                && holds(&rows[1], &point, &[]) == (number == 0)
                && rows.iter().all(|row| {
                    let opposite = row.negated().iter().filter(|c| holds(c, &point, &[])).count();
                    opposite == usize::from(!holds(row, &point, &[]))
                });
            if !right {
                return Verdict::Wrong(format!("{affine} at {point:?}\n{replaced}\n{quotient}\n{rows:?}"));
            }
        }
        Verdict::Right
    });
}
