//! `system`: what is solved, pruned, projected or said to follow is so at every point.

use crate::points::{all_hold, holds, of_box, over, value};
use crate::random::{Noise, Scope, shown};
use crate::{Verdict, check_systems};
use gradix::domain::system;
use gradix::program::{Affine, Atom, Constraint, Range};

/// How many indices: the first are known, the others are solved for.
const KNOWN: usize = 2;
const LOW: i64 = -2;
const HIGH: i64 = 5;

fn hull(positions: std::ops::Range<usize>) -> Vec<Constraint> {
    let range = Range { low: vec![Affine::constant(LOW)], high: vec![Affine::constant(HIGH)] };
    positions.flat_map(|p| range.constraints(p).collect::<Vec<_>>()).collect()
}

/// Constraints on the known indices, and on all.
fn system_of(noise: &mut Noise, unknown: usize) -> (Vec<Constraint>, Vec<Constraint>) {
    let floors = noise.below(5);
    let mut context = Scope::new(0..KNOWN, 0, floors.min(1)).constraints(noise, 2);
    context.extend(hull(0..KNOWN));
    let rows = Scope::new(0..KNOWN + unknown, 0, floors).constraints(noise, 4);
    (context, rows)
}

fn wrong(what: &str, context: &[Constraint], rows: &[Constraint], point: &[i64]) -> Verdict {
    Verdict::Wrong(format!("{what} at {point:?}\ncontext\n{}rows\n{}", shown(context), shown(rows)))
}

#[test]
fn solved_ranges_and_conditions_are_the_set() {
    check_systems("solve", 3_000, |noise| {
        let unknown = noise.pick(&[1, 2, 2, 3]);
        let (context, mut rows) = system_of(noise, unknown);
        rows.extend(hull(KNOWN..KNOWN + unknown));
        let positions: Vec<usize> = (KNOWN..KNOWN + unknown).collect();
        let Ok(solved) = system::solve(rows.clone(), &positions, &context) else { return Verdict::Refused };
        for known in of_box(KNOWN, LOW, HIGH).into_iter().filter(|p| all_hold(&context, p, &[])) {
            let mut expected = over(&vec![whole(); unknown], &known, &[]);
            expected.retain(|point| all_hold(&rows, point, &[]));
            let found = solved.as_ref().filter(|s| all_hold(&s.outer, &known, &[])).map(|solved| {
                let mut points = over(&solved.ranges, &known, &[]);
                points.retain(|point| all_hold(&solved.conditions, point, &[]));
                points
            });
            if found.unwrap_or_default() != expected {
                return wrong(&format!("{solved:?}"), &context, &rows, &known);
            }
        }
        Verdict::Right
    });
}

fn whole() -> Range {
    Range { low: vec![Affine::constant(LOW)], high: vec![Affine::constant(HIGH)] }
}

#[test]
fn what_is_pruned_follows_from_what_is_kept() {
    check_systems("prune", 3_000, |noise| {
        let (context, rows) = system_of(noise, 1);
        let kept = system::prune(rows.clone(), &context);
        for point in of_box(KNOWN + 1, LOW - 1, HIGH + 1).into_iter().filter(|p| all_hold(&context, p, &[])) {
            let before = all_hold(&rows, &point, &[]);
            let after = kept.as_ref().is_some_and(|kept| all_hold(kept, &point, &[]));
            if before != after {
                return wrong(&format!("{kept:?}"), &context, &rows, &point);
            }
        }
        Verdict::Right
    });
}

#[test]
fn what_is_said_to_follow_or_to_be_empty_is_so() {
    check_systems("implies", 4_000, |noise| {
        let (context, rows) = system_of(noise, 1);
        let context = [context, rows].concat();
        let asked = Scope::new(0..KNOWN + 1, 0, 2).constraint(noise);
        let (follows, empty) = (system::implies(&context, &asked), system::is_empty(&context));
        for point in of_box(KNOWN + 1, LOW - 1, HIGH + 1).into_iter().filter(|p| all_hold(&context, p, &[])) {
            if empty || follows && !holds(&asked, &point, &[]) {
                return wrong(&format!("empty {empty}, follows {follows}"), &context, &[asked], &point);
            }
        }
        Verdict::Right
    });
}

#[test]
fn projections_and_bounds_lose_no_point() {
    check_systems("project", 3_000, |noise| {
        let (context, rows) = system_of(noise, 2);
        let rows = [context, rows, hull(KNOWN..KNOWN + 2)].concat();
        let eliminated = |atom: &Atom| matches!(atom, Atom::Index(i) if *i as usize >= KNOWN);
        let target = Scope::new(0..KNOWN + 2, 0, 1).affine(noise);
        let (Ok(projected), Ok(bounds)) =
            (system::project(&rows, &eliminated), system::lower_bounds(&target, &rows, &eliminated))
        else {
            return Verdict::Refused;
        };
        let enough = system::project_inside(&rows, &eliminated);
        let inside = |known: &[i64]| {
            let mut points = over(&vec![whole(); 2], known, &[]).into_iter();
            points.any(|point| all_hold(&rows, &point, &[]))
        };
        for known in of_box(KNOWN, LOW, HIGH) {
            if enough.as_ref().is_some_and(|enough| all_hold(enough, &known, &[])) && !inside(&known) {
                return wrong(&format!("{enough:?} is not enough"), &[], &rows, &known);
            }
        }
        for point in of_box(KNOWN + 2, LOW, HIGH).into_iter().filter(|p| all_hold(&rows, p, &[])) {
            let bounded = bounds.iter().all(|bound| value(bound, &point, &[]) <= value(&target, &point, &[]));
            if !all_hold(&projected, &point[..KNOWN], &[]) || !bounded {
                return wrong(&format!("{projected:?}\nbounds of {target}: {bounds:?}"), &[], &rows, &point);
            }
        }
        Verdict::Right
    });
}
