//! `narrow`, `factor` and `nested`: a reduction over other ranges has the same terms, for every output.

use crate::points::{all_hold, holds, of_definition, over};
use crate::random::{Noise, Scope, program, shown, sizes};
use crate::{Verdict, check_systems};
use gradix::lift;
use gradix::program::{Affine, Cond, CondId, Constraint, Definition, Expr, ExprId, Program, Range};
use gradix::simplify::{factor, narrow};

#[test]
fn narrowed_reductions_have_the_same_terms() {
    check_systems("narrow", 3_000, |noise| {
        let before = conditional(noise);
        let mut after = before.clone();
        let context = before.size_context();
        for _ in 0..4 {
            narrow::narrow(&mut after, &context, &|_| true);
        }
        for sizes in sizes(&before) {
            for outputs in outputs(&before.definitions[0], &sizes) {
                let (expected, found) = (terms(&before, &outputs, &sizes), terms(&after, &outputs, &sizes));
                if expected != found {
                    return wrong(&before, &after, &outputs, &sizes);
                }
            }
        }
        Verdict::Right
    });
}

#[test]
fn counts_and_fullness_are_true() {
    check_systems("counts", 2_000, |noise| {
        let floors = noise.below(4);
        let mut program = program(noise, floors);
        let context = program.size_context();
        let definition = program.definitions[0].clone();
        let known = [context.as_slice(), &definition.output_domain()].concat();
        let full = factor::is_never_empty(&definition, &known);
        // The body does not depend on the innermost index.
        let last = definition.indices.len() - 1;
        let constant = Definition { body: program.exprs.constant(1.0), ..definition.clone() };
        let count = factor::innermost_count(&mut program.exprs, &constant, &context);
        for sizes in sizes(&program) {
            for outputs in outputs(&definition, &sizes) {
                let points = points_at(&definition, &outputs, &sizes);
                let shorter = Definition { indices: definition.indices[..last].to_vec(), ..definition.clone() };
                let counted = count.as_ref().map(|(count, positive)| {
                    let filled = positive.as_ref().is_none_or(|row| holds(row, &outputs, &sizes));
                    let each = number(&program, *count, &outputs, &sizes);
                    if filled { each * points_at(&shorter, &outputs, &sizes).len() as i64 } else { 0 }
                });
                if full && points.is_empty() || counted.is_some_and(|counted| counted != points.len() as i64) {
                    return wrong(&program, &program, &outputs, &sizes);
                }
            }
        }
        Verdict::Right
    });
}

#[test]
fn outputs_that_go_leave_no_point_behind() {
    check_systems("nested", 2_000, |noise| {
        let floors = noise.below(4);
        let mut program = program(noise, floors);
        let mut full = program.definitions[0].clone();
        full.assumptions = Scope::new(0..full.rank, program.params.len(), floors).constraints(noise, 2);
        let kept: Vec<usize> = (0..full.rank).filter(|_| noise.percent(60)).collect();
        let context = program.size_context();
        // Ranges and conditions of the reduction may not mention what goes.
        full.indices.truncate(full.rank);
        (full.reduction, full.conditions, full.body) = (None, Vec::new(), program.exprs.constant(1.0));
        let Ok((narrowed, _)) = lift::narrowed(&mut program, &full, &kept, &context) else {
            return Verdict::Refused;
        };
        for sizes in sizes(&program) {
            let reached = of_definition(&narrowed, &sizes);
            for point in of_definition(&full, &sizes) {
                let kept: Vec<i64> = kept.iter().map(|&p| point[p]).collect();
                if !reached.contains(&kept) {
                    let text = format!("{point:?} at {sizes:?}\n{}", shown(&full.domain()));
                    return Verdict::Wrong(format!("{text}kept {kept:?}\n{narrowed:#?}"));
                }
            }
        }
        Verdict::Right
    });
}

/// A random program whose body is often a choice with a neutral branch.
fn conditional(noise: &mut Noise) -> Program {
    let floors = noise.below(5);
    let mut program = program(noise, floors);
    let (count, params) = (program.definitions[0].indices.len(), program.params.len());
    let rows = Scope::new(0..count, params, floors).constraints(noise, 2);
    let condition = gradix::domain::guard::all(&mut program.exprs, &rows);
    let (body, zero) = (program.definitions[0].body, program.exprs.constant(0.0));
    if let Some(condition) = condition.filter(|_| noise.percent(60)) {
        program.definitions[0].body = program.exprs.add(Expr::Select(condition, body, zero));
    }
    program
}

/// The outputs at which a definition is evaluated.
fn outputs(definition: &Definition, sizes: &[i64]) -> Vec<Vec<i64>> {
    let ranges: Vec<Range> = definition.indices[..definition.rank].iter().map(|i| i.range.clone()).collect();
    let mut outputs = over(&ranges, &[], sizes);
    outputs.retain(|point| all_hold(&definition.assumptions, point, sizes));
    outputs
}

fn points_at(definition: &Definition, outputs: &[i64], sizes: &[i64]) -> Vec<Vec<i64>> {
    let ranges: Vec<Range> = definition.indices.iter().skip(definition.rank).map(|i| i.range.clone()).collect();
    let mut points = over(&ranges, outputs, sizes);
    points.retain(|point| all_hold(&definition.conditions, point, sizes));
    points
}

/// The elements of the input that are summed up for one output.
fn terms(program: &Program, outputs: &[i64], sizes: &[i64]) -> Vec<Vec<i64>> {
    let definition = &program.definitions[0];
    let points = points_at(definition, outputs, sizes);
    let mut terms: Vec<Vec<i64>> =
        points.iter().filter_map(|point| term(program, definition.body, point, sizes)).collect();
    terms.sort();
    terms
}

fn term(program: &Program, body: ExprId, point: &[i64], sizes: &[i64]) -> Option<Vec<i64>> {
    match &program.exprs[body] {
        Expr::Access(_, subscripts) => Some(subscripts.iter().map(|s| crate::points::value(s, point, sizes)).collect()),
        Expr::Select(condition, a, b) => match truth(program, *condition, point, sizes) {
            true => term(program, *a, point, sizes),
            false => term(program, *b, point, sizes),
        },
        Expr::Constant(_) => None,
        other => panic!("no such body: {other:?}"),
    }
}

fn truth(program: &Program, condition: CondId, point: &[i64], sizes: &[i64]) -> bool {
    match &program.exprs[condition] {
        Cond::Index(constraint) => holds(constraint, point, sizes),
        Cond::And(a, b) => truth(program, *a, point, sizes) && truth(program, *b, point, sizes),
        other => panic!("no such condition: {other:?}"),
    }
}

fn number(program: &Program, count: ExprId, point: &[i64], sizes: &[i64]) -> i64 {
    match &program.exprs[count] {
        Expr::Index(affine) => crate::points::value(affine, point, sizes),
        Expr::Constant(_) => program.exprs.as_constant(count).expect("a number") as i64,
        other => panic!("no such count: {other:?}"),
    }
}

fn wrong(before: &Program, after: &Program, outputs: &[i64], sizes: &[i64]) -> Verdict {
    let rows: Vec<Constraint> = before.definitions[0].domain();
    let shape: Vec<Affine> = before.definitions[0].outputs();
    Verdict::Wrong(format!(
        "outputs {outputs:?} of {}, sizes {sizes:?}\n{}\nbefore {:#?}\nafter {:#?}",
        shape.len(),
        shown(&rows),
        before.definitions[0],
        after.definitions[0]
    ))
}
