//! The work of a program for a whole batch at once, as one program.
//!
//! Every definition says what one element is, so that a batch is one more index: `b`, the first of every input that
//! comes in a batch, and of all that depends on one of them,
//!
//! ```text
//! T[i, j]    = ⊕[k ∈ R(i, j)] body(x[i + k], w[j])         for a batch of x, and the same w for all:
//! T[b, i, j] = ⊕[k ∈ R(i, j)] body(x[b, i + k], w[j]),     0 <= b < B
//! ```
//!
//! Ranges, conditions and guards never mention `b`. The same operations are done in the same order for each element, so
//! that the reference interpreter gives the same bits.

use crate::program::expr::{Rewriter, Rules};
use crate::program::{
    Affine, Atom, Constraint, Definition, ExprId, Exprs, Index, Param, ParamId, ParamKind, Program, Range, TensorId,
    TensorKind, circles, names, verify,
};
use crate::simplify::tidy;
use std::collections::HashSet;

/// The program for a batch of some of its inputs, which are all the same program's. They, and the results that depend on
/// them, keep their names and get a new first dimension, whose extent is a new size: `B`, or the next free of `B_1`,
/// `B_2`, …. What does not depend on them stays as it is. Without such inputs nothing changes.
///
/// ```
/// let ast = gradix::syntax::parse("input x[N, K], w[K]\ny[i] = sum[k] x[i, k] * w[k]\ns = sum[k] w[k]").unwrap();
/// let program = gradix::resolve(&ast, &[]).unwrap().program;
/// let batch = gradix::batch(&program, &[program.tensor("x").unwrap()]);
/// let text = gradix::print(&batch).unwrap();
/// assert!(text.ends_with("input x[B, N, K], w[K]\ny[b, i] = sum[k] x[b, i, k] * w[k]\ns = sum[k] w[k]\n"), "{text}");
/// ```
pub fn batch(program: &Program, batched: &[TensorId]) -> Program {
    if batched.is_empty() {
        return program.clone();
    }
    let mut out = program.clone();
    let mut taken = names::taken(program);
    let size = Affine::param(ParamId(out.params.len() as u32));
    out.params.push(Param { name: names::fresh("B", &mut taken), kind: ParamKind::Free });
    out.facts.push(Constraint::non_negative(size.clone()));
    let index = Index { name: names::fresh("b", &mut taken), range: Range::extent(size.clone()) };
    let wide = circles::depending(program, batched.iter().copied());
    for &TensorId(number) in &wide {
        let tensor = &mut out.tensors[number as usize];
        tensor.rank += 1;
        if tensor.kind != TensorKind::Nested {
            tensor.extents.insert(0, size.clone());
        }
    }
    let mut rewriter = Rewriter::default();
    for definition in out.definitions.iter_mut().filter(|definition| wide.contains(&definition.tensor)) {
        widen(definition, &index);
        definition.body = rewriter.rewrite(&mut out.exprs, definition.body, &mut Widened { tensors: &wide });
    }
    tidy::tidy(&mut out, false);
    debug_assert_eq!(verify(&out), Ok(()));
    out
}

/// Puts an index in front of those of a definition.
fn widen(definition: &mut Definition, index: &Index) {
    for Index { range, .. } in &mut definition.indices {
        *range = range.map(shifted);
    }
    let constraints = definition.conditions.iter_mut().chain(&mut definition.assumptions);
    constraints.for_each(|constraint| *constraint = constraint.rebuilt(shifted(&constraint.affine)));
    definition.indices.insert(0, index.clone());
    definition.rank += 1;
}

/// The same with every index one place further back.
fn shifted(affine: &Affine) -> Affine {
    affine.substitute(&mut |atom| match atom {
        Atom::Index(position) => Some(Affine::index(*position as usize + 1)),
        Atom::Param(_) | Atom::Floor(..) => None,
    })
}

/// A body with one more index in front; these tensors are read at it.
struct Widened<'a> {
    tensors: &'a HashSet<TensorId>,
}

impl Rules for Widened<'_> {
    fn affine(&mut self, affine: &Affine) -> Affine {
        shifted(affine)
    }

    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, mut subscripts: Vec<Affine>) -> ExprId {
        if self.tensors.contains(&tensor) {
            subscripts.insert(0, Affine::index(0));
        }
        exprs.access(tensor, subscripts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::print;

    fn resolve(text: &str) -> Program {
        let resolved = crate::syntax::parse(text).and_then(|ast| crate::resolve(&ast, &[]));
        resolved.unwrap_or_else(|errors| panic!("{errors:?}\n{text}")).program
    }

    /// The program for a batch of these inputs as text, which means the same as the program itself.
    fn check(text: &str, batched: &[&str], expected: &str) {
        let program = resolve(text);
        let tensors: Vec<TensorId> = batched.iter().map(|name| program.tensor(name).unwrap()).collect();
        let batch = batch(&program, &tensors);
        let printed = print::print(&batch).unwrap();
        assert_eq!(printed.trim(), expected.trim());
        assert_eq!(resolve(&printed), batch, "{printed}");
        crate::derive(&batch, &crate::derive::Options::default()).unwrap();
    }

    #[test]
    fn what_depends_on_a_batch_has_its_index() {
        check(
            "input x[N], w[N]\na[i] = 2 * x[i]\nc[i] = exp(w[i])\ny[i] = a[i] * c[i]\nz = sum[i] c[i]",
            &["x"],
            "param N, B\ninput x[B, N], w[N]\na[b, i] = 2 * x[b, i]\nc[i] = exp(w[i])\n\
             y[b, i] = a[b, i] * c[i]\nz = sum[i] c[i]",
        );
    }

    #[test]
    fn nested_reductions_have_the_index_where_they_need_it() {
        check(
            "input x[N], w[N]\ny[i] = x[i] / (sum[j] x[j]) + max[j in i..N] w[j]",
            &["x"],
            "param N, B\ninput x[B, N], w[N]\ny[b, i] = x[b, i] / sum[j] x[b, j] + max[j in i..N] w[j]",
        );
    }

    #[test]
    fn scalars_become_lists() {
        check("input t\ny = t^2", &["t"], "input t[B]\ny[b] = t[b]^2");
    }

    #[test]
    fn ranges_and_conditions_stay() {
        check(
            "input x[N]\ny[i in 0..N] = sum[j in 0..=i, (i + j) % 2 == 0] (if j > 0 and x[j] > 0 then x[j - 1] * j else pad(x[j + 2], 1))",
            &["x"],
            "param N, B\ninput x[B, N]\ny[b, i in 0..N] = sum[j in 0..=i, (i + j) % 2 == 0] (if j >= 1 and x[b, j] > 0 \
             then x[b, j - 1] * j else pad(x[b, j + 2], 1))",
        );
    }

    #[test]
    fn names_that_are_taken_are_left_alone() {
        check(
            "input B[b_1], x[N]\ny[b] = x[b] * sum[i] B[i]",
            &["x"],
            "param b_1, N, B_1\ninput B[b_1], x[B_1, N]\ny[b_2, b] = x[b_2, b] * sum[i] B[i]",
        );
    }

    #[test]
    fn without_inputs_nothing_changes() {
        let program = resolve("input x[N]\ny[i] = x[i]");
        assert_eq!(batch(&program, &[]), program);
    }

    #[test]
    fn a_batch_of_a_batch_has_two_indices() {
        let program = resolve("input x[N]\ny[i] = x[i] * i");
        let once = batch(&program, &[program.tensor("x").unwrap()]);
        let twice = batch(&once, &[once.tensor("x").unwrap()]);
        let text = print::print(&twice).unwrap();
        assert!(text.contains("input x[B_1, B, N]\ny[b_1, b, i] = x[b_1, b, i] * i"), "{text}");
    }
}
