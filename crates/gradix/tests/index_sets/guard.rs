//! `guard`: the cases of a condition are disjoint and cover it; what is said to hold where it holds does.

use crate::points::{all_hold, holds, of_box};
use crate::random::{Noise, Scope};
use crate::{Verdict, check_systems};
use gradix::domain::guard;
use gradix::program::build;
use gradix::program::{Cond, CondId, Exprs};

#[test]
fn cases_are_disjoint_and_cover_the_condition() {
    check_systems("guard", 2_000, |noise| {
        let mut exprs = Exprs::default();
        let condition = condition(noise, &mut exprs, 3);
        for outcome in [true, false] {
            let cases = guard::cases(&mut exprs, condition, outcome);
            let facts = guard::facts(&exprs, condition, outcome);
            let negated = build::opposite(&mut exprs, condition);
            for point in of_box(2, -3, 6) {
                let meant = truth(&exprs, condition, &point) == outcome;
                let covered = cases.iter().filter(|(guard, _)| all_hold(guard, &point, &[])).count();
                let opposite = truth(&exprs, negated, &point) == outcome;
                if covered != usize::from(meant) || meant && !all_hold(&facts, &point, &[]) || opposite == meant {
                    return Verdict::Wrong(format!("{condition:?} is {outcome} at {point:?}\n{exprs:#?}\n{cases:?}"));
                }
            }
        }
        Verdict::Right
    });
}

fn condition(noise: &mut Noise, exprs: &mut Exprs, depth: usize) -> CondId {
    let condition = match noise.below(if depth == 0 { 1 } else { 5 }) {
        0 | 1 => Cond::Index(Scope::new(0..2, 0, 2).constraint(noise)),
        2 => Cond::Not(condition(noise, exprs, depth - 1)),
        3 => Cond::And(condition(noise, exprs, depth - 1), condition(noise, exprs, depth - 1)),
        _ => Cond::Or(condition(noise, exprs, depth - 1), condition(noise, exprs, depth - 1)),
    };
    exprs.add_condition(condition)
}

pub fn truth(exprs: &Exprs, condition: CondId, point: &[i64]) -> bool {
    match &exprs[condition] {
        Cond::Index(constraint) => holds(constraint, point, &[]),
        Cond::Not(a) => !truth(exprs, *a, point),
        Cond::And(a, b) => truth(exprs, *a, point) && truth(exprs, *b, point),
        Cond::Or(a, b) => truth(exprs, *a, point) || truth(exprs, *b, point),
        Cond::Compare(..) => unreachable!("conditions on indices alone"),
    }
}
