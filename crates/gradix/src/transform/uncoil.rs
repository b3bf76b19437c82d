//! Subscripts that go around once, as a choice between straight ones.
//!
//! ```text
//! x[(i + 255) % 256]    with 0 <= i < 256    is    if i >= 1 then x[i - 1] else x[i + 255]
//! ```
//!
//! What is cut into an interior and a border afterwards then has no division in the interior, as where the size is no number.

use crate::program::expr::{Rewriter, Rules};
use crate::program::{Affine, Atom, Cond, Constraint, Definition, Expr, ExprId, Exprs, Program, TensorId, build};
use crate::target::cost;
use gradix_int::Int;

/// The program with choices in place of quotients that take two or three values.
pub fn uncoil(program: &Program) -> Program {
    let mut program = program.clone();
    for number in 0..program.definitions.len() {
        let definition = &program.definitions[number];
        let mut rules = Uncoil { limits: limits(definition) };
        let body = definition.body;
        if has_quotient(&program.exprs, body, &rules) {
            program.definitions[number].body = Rewriter::default().rewrite(&mut program.exprs, body, &mut rules);
        }
    }
    program
}

/// The least and the largest value of each index, where they are numbers.
fn limits(definition: &Definition) -> Vec<Option<(Int, Int)>> {
    let numbers =
        |bounds: &[Affine]| bounds.iter().filter_map(|bound| bound.as_constant().cloned()).collect::<Vec<_>>();
    let of_index = |index: &crate::program::Index| {
        let (low, high) = (numbers(&index.range.low).into_iter().max()?, numbers(&index.range.high).into_iter().min()?);
        (low <= high).then_some((low, high))
    };
    definition.indices.iter().map(of_index).collect()
}

fn has_quotient(exprs: &Exprs, body: ExprId, rules: &Uncoil) -> bool {
    exprs.accesses(body).any(|(_, subscripts)| subscripts.iter().any(|subscript| rules.quotient(subscript).is_some()))
}

/// The most values of a quotient: before the first element, among all, and after the last.
const MOST_VALUES: i64 = 3;

struct Uncoil {
    limits: Vec<Option<(Int, Int)>>,
}

/// `⌊inner / size⌋`, from `least` on, for so many values.
struct Quotient {
    atom: Atom,
    inner: Affine,
    size: Int,
    least: Int,
    values: Int,
}

impl Uncoil {
    /// The first quotient of a subscript that goes around.
    fn quotient(&self, subscript: &Affine) -> Option<Quotient> {
        subscript.terms().iter().find_map(|(atom, _)| {
            let Atom::Floor(inner, size) = atom else { return None };
            let (low, high) = self.span(inner)?;
            let (least, most) =
                (crate::program::affine::div_floor(&low, size), crate::program::affine::div_floor(&high, size));
            let values = most - least.clone() + Int::ONE;
            let goes_around = *size > Int::from(cost::RESIDUE_CLASSES) && values <= Int::from(MOST_VALUES);
            goes_around.then(|| Quotient {
                atom: atom.clone(),
                inner: (**inner).clone(),
                size: size.clone(),
                least,
                values,
            })
        })
    }

    /// The least and the largest value, as far as the bounds of indices alone say.
    fn span(&self, affine: &Affine) -> Option<(Int, Int)> {
        let mut span = (affine.offset().clone(), affine.offset().clone());
        for (atom, factor) in affine.terms() {
            let Atom::Index(index) = atom else { return None };
            let (low, high) = self.limits.get(*index as usize)?.as_ref()?;
            let (low, high) = if *factor > Int::ZERO { (low, high) } else { (high, low) };
            span = (span.0 + factor * low, span.1 + factor * high);
        }
        Some(span)
    }
}

impl Rules for Uncoil {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        let Some(quotient) = subscripts.iter().find_map(|subscript| self.quotient(subscript)) else {
            return exprs.access(tensor, subscripts);
        };
        let Quotient { atom, inner, size, least, values } = quotient;
        let with = |value: &Int| -> Vec<Affine> {
            let replaced = |subscript: &Affine| {
                subscript.substitute(&mut |own| (*own == atom).then(|| Affine::constant(value.clone())))
            };
            subscripts.iter().map(replaced).collect()
        };
        let mut value = least;
        let mut chosen = self.access(exprs, tensor, with(&value));
        let mut left = values - Int::ONE;
        while left > Int::ZERO {
            value += Int::ONE;
            left -= Int::ONE;
            let here = self.access(exprs, tensor, with(&value));
            let start = Affine::constant(&size * &value);
            let condition = exprs.add_condition(Cond::Index(Constraint::at_most(start, inner.clone())));
            chosen = build::select(exprs, condition, here, chosen);
        }
        chosen
    }

    fn select(&mut self, exprs: &mut Exprs, c: crate::program::CondId, a: ExprId, b: ExprId) -> ExprId {
        exprs.add(Expr::Select(c, a, b))
    }
}
