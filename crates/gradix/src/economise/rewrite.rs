//! One way to write a definition by way of others.

use super::part::Part;
use crate::domain::bounds;
use crate::lift;
use crate::program::expr::{Rewriter, Rules};
use crate::program::{Affine, Constraint, Definition, Expr, ExprId, Exprs, Index, Program, TensorId};
use crate::simplify::factor;

/// A definition written by way of parts.
#[derive(Clone, Debug)]
pub struct Rewrite {
    /// What is computed apart; later ones may read earlier ones.
    pub parts: Vec<Part>,
    /// The definition, which reads them.
    pub main: Definition,
    /// Factors that are now evaluated where a part may be an empty sum.
    pub risks: Vec<Risk>,
}

/// A factor (or with `divides` a divisor) beside a part, and where it is evaluated.
#[derive(Clone, Debug)]
pub struct Risk {
    pub factor: ExprId,
    pub divides: bool,
    pub domain: Vec<Constraint>,
    pub part: usize,
}

/// Tensors that stand for parts have ids from here on.
const FIRST_PART_ID: u32 = 1 << 30;

/// Ids for parts, each once.
#[derive(Default)]
pub struct Ids(u32);

impl Ids {
    /// The next one.
    pub fn next(&mut self) -> TensorId {
        self.0 += 1;
        TensorId(FIRST_PART_ID + self.0)
    }
}

/// Whether a tensor stands for a part.
pub fn is_part(tensor: TensorId) -> bool {
    tensor.0 >= FIRST_PART_ID
}

impl Rewrite {
    /// Whether everything that is computed can be, and is finite where the definition was.
    pub fn is_valid(&self, program: &mut Program, context: &[Constraint]) -> bool {
        let inside = self.parts.iter().all(|part| self.stays_inside(program, part, context));
        inside && self.risks.iter().all(|risk| self.is_safe(program, risk, context))
    }

    fn is_safe(&self, program: &mut Program, risk: &Risk, context: &[Constraint]) -> bool {
        let part = &self.parts[risk.part].definition;
        let outer = [context, &part.output_domain()].concat();
        let domain = [context, &risk.domain].concat();
        factor::is_never_empty(part, &outer) || !factor::is_risky(program, risk.factor, risk.divides, &domain)
    }

    /// Whether a part stays inside the tensors that it reads, and inside the other parts.
    fn stays_inside(&self, program: &mut Program, part: &Part, context: &[Constraint]) -> bool {
        let domain = [context, &part.definition.domain()].concat();
        let reads = |tensor: TensorId| self.parts.iter().find(|p| p.definition.tensor == tensor);
        for id in program.exprs.postorder(part.definition.body) {
            if let Expr::Access(tensor, subscripts) = &program.exprs[id]
                && let Some(read) = reads(*tensor)
            {
                let needed = read.definition.output_domain();
                if !needed.iter().all(|c| crate::domain::system::implies(&domain, &c.with_indices(subscripts))) {
                    return false;
                }
            }
        }
        let body = Rewriter::default().rewrite(&mut program.exprs, part.definition.body, &mut WithoutParts);
        bounds::stays_inside(program, body, &domain)
    }
}

struct WithoutParts;

impl Rules for WithoutParts {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        if is_part(tensor) { exprs.constant(1.0) } else { exprs.access(tensor, subscripts) }
    }
}

/// The definition without the reduction indices in `gone`, with a body in its old indices.
pub fn without(program: &mut Program, site: &Definition, gone: &[usize], body: ExprId) -> Definition {
    let kept: Vec<usize> = (0..site.indices.len()).filter(|i| !gone.contains(i)).collect();
    let mut map = vec![Affine::default(); site.indices.len()];
    kept.iter().enumerate().for_each(|(new, &old)| map[old] = Affine::index(new));
    let moved = |&i: &usize| {
        let Index { name, range } = &site.indices[i];
        Index { name: name.clone(), range: range.map(|b| b.with_indices(&map)) }
    };
    let uses_gone = |c: &&Constraint| gone.iter().any(|&i| c.affine.uses_index(i));
    let conditions = site.conditions.iter().filter(|c| !uses_gone(c)).map(|c| c.with_indices(&map)).collect();
    Definition {
        tensor: site.tensor,
        indices: kept.iter().map(moved).collect(),
        rank: site.rank,
        reduction: site.reduction.filter(|_| kept.len() > site.rank),
        conditions,
        assumptions: site.assumptions.clone(),
        body: lift::remap(&mut program.exprs, body, &map),
    }
}

/// Whether a condition of a reduction depends on outputs alone.
pub fn asks_for_outputs(site: &Definition) -> bool {
    site.conditions.iter().any(|c| (site.rank..site.indices.len()).all(|i| !c.affine.uses_index(i)))
}

/// Where the body of a definition is evaluated, apart from the indices in `gone`.
pub fn domain_without(site: &Definition, gone: &[usize]) -> Vec<Constraint> {
    let uses_gone = |c: &Constraint| gone.iter().any(|&i| c.affine.uses_index(i));
    site.domain().into_iter().filter(|c| !uses_gone(c)).collect()
}
