//! `mean[k] e` is `(sum[k] e) / n`: how many points `n` there are.
//!
//! ```text
//! mean[k, l] x[k, l]                n = K * L
//! mean[k in 0..=i] x[k]             n = i + 1
//! mean[k in 3..i] x[k]              n = if i >= 4 then i - 3 else 0
//! mean[k, k % 2 == 0] x[k]          n = sum[k, k % 2 == 0] 1
//! ```

use super::Resolver;
use super::body::Lowered;
use super::frame::Frame;
use crate::domain::{guard, system};
use crate::lift;
use crate::program::build;
use crate::program::{BinaryOp, CondId, Constraint, Definition, Expr, ExprId};
use crate::simplify::factor;

impl Resolver {
    /// The mean of what `sum` adds up at `points`, of which the `filters` leave some out.
    pub(super) fn mean(
        &mut self,
        sum: ExprId,
        points: Definition,
        filters: &[CondId],
        frame: &mut Frame,
    ) -> Lowered<ExprId> {
        let count = self.count(points, filters, frame)?;
        Ok(self.program.exprs.add(Expr::Binary(BinaryOp::Div, sum, count)))
    }

    fn count(&mut self, mut points: Definition, filters: &[CondId], frame: &mut Frame) -> Lowered<ExprId> {
        let context = self.program.size_context();
        let exprs = &mut self.program.exprs;
        let (one, zero) = (exprs.constant(1.0), exprs.constant(0.0));
        let known = [context.as_slice(), &points.output_domain()].concat();
        points.body = filters.iter().fold(one, |body, &filter| build::select(exprs, filter, body, zero));
        let (mut count, mut filled) = (one, Vec::new());
        while let Some((own, positive)) = factor::innermost_count(exprs, &points, &context) {
            points.indices.pop();
            count = build::multiply(exprs, count, own);
            // A number of points that is never negative is right where there is none.
            let negative =
                |positive: &Constraint| !system::implies(&known, &Constraint::non_negative(positive.affine.shift(1)));
            filled.extend(positive.filter(negative));
        }
        if points.indices.len() > points.rank {
            let name = format!("{}_count", frame.name);
            points.assumptions.extend(filled.iter().cloned());
            let before = self.program.definitions.len();
            let rest = lift::add_written(&mut self.program, points, name, &context, &frame.shared)?.0;
            if self.program.definitions.len() > before {
                frame.shared.push(rest);
            }
            count = build::multiply(&mut self.program.exprs, count, rest);
        } else {
            filled.append(&mut points.conditions);
            count = build::multiply(&mut self.program.exprs, count, points.body);
        }
        let exprs = &mut self.program.exprs;
        Ok(match guard::all(exprs, &filled) {
            Some(condition) => build::select(exprs, condition, count, zero),
            None => count,
        })
    }
}
