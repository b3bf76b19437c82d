//! Terms of sums that are zero as their indices say, left out.
//!
//! ```text
//! p[i, j] = if j <= i then e[i, j] else 0
//! y[i, d] = sum[j] p[i, j] * v[j, d]                 y[i, d] = sum[j in 0..=i] p[i, j] * v[j, d]
//! ```

use crate::domain::{guard, system};
use crate::program::build::Product;
use crate::program::{Constraint, Definition, Expr, ExprId, Exprs, Program, ReduceOp, Relation};

/// Restricts sums to where no factor is zero, as far as a condition has to do with both outputs and terms, and tells whether
/// there was anything to leave out.
pub fn leave_out(program: &mut Program) -> bool {
    let sums = |d: &&mut Definition| d.reduction == Some(ReduceOp::Sum);
    let (mut definitions, context, mut found) = (program.definitions.clone(), program.size_context(), false);
    for site in definitions.iter_mut().filter(sums) {
        let mut more = restrictions(program, site);
        if !more.is_empty() {
            let known = [context.as_slice(), &site.domain()].concat();
            more.retain(|constraint| !system::implies(&known, constraint));
        }
        found |= !more.is_empty();
        site.conditions.extend(more);
    }
    program.definitions = definitions;
    found
}

fn restrictions(program: &Program, site: &Definition) -> Vec<Constraint> {
    let exprs = &program.exprs;
    let product = Product::of(exprs, site.body);
    let factors = product.parts().filter(|(_, divides)| !divides).map(|(factor, _)| factor);
    let relates = |constraint: &Constraint| {
        let (mut outputs, mut terms) = (false, false);
        constraint.affine.visit_indices(&mut |index| {
            outputs |= index < site.rank;
            terms |= index >= site.rank;
        });
        outputs && terms && constraint.relation == Relation::NonNegative && constraint.affine.is_straight()
    };
    let mut found: Vec<Constraint> = Vec::new();
    for constraint in factors.flat_map(|factor| where_not_zero(program, factor)).filter(relates) {
        if !site.conditions.contains(&constraint) && !found.contains(&constraint) {
            found.push(constraint);
        }
    }
    found
}

/// What holds wherever a factor is not zero.
fn where_not_zero(program: &Program, factor: ExprId) -> Vec<Constraint> {
    let exprs = &program.exprs;
    match &exprs[factor] {
        Expr::Access(tensor, subscripts) => {
            let maker = program.definitions.iter().find(|d| d.tensor == *tensor && d.reduction.is_none());
            let own = maker.map(|maker| chosen(exprs, maker.body)).unwrap_or_default();
            own.iter().map(|constraint| constraint.with_indices(subscripts)).collect()
        }
        _ => chosen(exprs, factor),
    }
}

/// What holds wherever a choice is not zero.
fn chosen(exprs: &Exprs, id: ExprId) -> Vec<Constraint> {
    let Expr::Select(condition, a, b) = exprs[id] else { return Vec::new() };
    let is_zero = |id: ExprId| exprs.as_constant(id) == Some(0.0);
    match (is_zero(a), is_zero(b)) {
        (false, true) => guard::facts(exprs, condition, true),
        (true, false) => guard::facts(exprs, condition, false),
        (true, true) | (false, false) => Vec::new(),
    }
}
