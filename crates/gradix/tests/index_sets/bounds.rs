//! `bounds`: a subscript that leaves its tensor is found, and one that does not is not.

use crate::points::{all_hold, of_definition, value};
use crate::random::{Scope, program, shown, sizes};
use crate::{Verdict, check_systems};
use gradix::Int;
use gradix::domain::bounds::{Open, certain, requirements, stays_inside};
use gradix::program::{Affine, Expr, ParamId, TensorId};

#[test]
fn subscripts_that_leave_are_found_and_no_others() {
    check_systems("bounds", 4_000, |noise| {
        let floors = noise.below(5);
        let mut program = program(noise, floors);
        let (count, params) = (program.definitions[0].indices.len(), program.params.len());
        let extent = match params > 0 && noise.percent(50) {
            true => Affine::param(ParamId(0)).shift(noise.between(0, 3)),
            false => Affine::constant(noise.between(1, 6)),
        };
        (program.tensors[0].extents, program.tensors[0].rank) = (vec![extent.clone()], 1);
        let subscript = Scope::new(0..count, params, floors).affine(noise);
        let guard = Scope::new(0..count, params, floors.min(1)).constraints(noise, 2);
        let access = program.exprs.access(TensorId(0), vec![subscript.clone()]);
        let zero = program.exprs.constant(0.0);
        program.definitions[0].body = match gradix::domain::guard::all(&mut program.exprs, &guard) {
            Some(condition) => program.exprs.add(Expr::Select(condition, access, zero)),
            None => access,
        };
        let (body, context) = (program.definitions[0].body, program.size_context());
        let domain = [context.as_slice(), &program.definitions[0].domain()].concat();
        let never = stays_inside(&mut program, body, &domain);
        let always = !certain(&program, &context).is_empty();
        let required: Vec<_> = requirements(&program, &context).into_iter().map(|asked| asked.row).collect();
        let open = Open::of(&program, &[]);
        for sizes in sizes(&program) {
            let points = of_definition(&program.definitions[0], &sizes);
            let leaves = |point: &&Vec<i64>| {
                let inside = (0..value(&extent, &[], &sizes)).contains(&value(&subscript, point, &sizes));
                all_hold(&guard, point, &sizes) && !inside
            };
            let outside = points.iter().find(leaves);
            let found = !open.at_sizes(&sizes.iter().map(|&s| Int::from(s)).collect::<Vec<_>>()).is_empty();
            let filled = value(&extent, &[], &sizes) > 0;
            let refused = !all_hold(&required, &[], &sizes);
            let claims = never && outside.is_some() || always && filled && outside.is_none();
            if found != outside.is_some() || claims || refused && outside.is_none() {
                let text =
                    format!("{outside:?} at {sizes:?}: found {found}, never {never}, always {always}, {required:?}");
                let rows = [program.definitions[0].domain(), guard].concat();
                return Verdict::Wrong(format!("{text}\n{subscript} in {extent}\n{}", shown(&rows)));
            }
        }
        Verdict::Right
    });
}
