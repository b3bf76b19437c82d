//! How much there is to do, in plain loops.

use crate::domain::estimate::{estimate, extents};
use crate::program::{Definition, Program};
use crate::target::cost;
use gradix_int::Int;

/// Whether there is so little to do at these sizes that plain loops are made.
pub fn is_little(program: &Program, sizes: &[Int]) -> bool {
    let estimate = &estimate(program, sizes);
    let mut extents = program.definitions.iter().flat_map(|d| extents(d, estimate));
    if extents.any(|extent| extent > cost::PLAIN_LOOP_VALUES) {
        return false;
    }
    let each = cost::PLAIN_ADDITIONS_PER_DEFINITION * program.definitions.len() as f64;
    additions(program, estimate) < cost::PLAIN_ADDITIONS.max(each)
}

/// What all definitions take in plain loops, in additions.
pub fn additions(program: &Program, estimate: &[f64]) -> f64 {
    let exprs = &program.exprs;
    let of_definition = |definition: &Definition| {
        let points: f64 = extents(definition, estimate).iter().product();
        points * exprs.postorder(definition.body).into_iter().map(|id| cost::plain_operation(exprs, id)).sum::<f64>()
    };
    program.definitions.iter().map(of_definition).sum()
}
