//! Columns that a step reads again and again, as vectors of their own.
//!
//! ```text
//! at the step t: s[i] = sum[j] a[i, j] * l[j, t]        l_at[j] = l[j, t];   s[i] = sum[j] a[i, j] * l_at[j]
//! ```
//!
//! The elements of a column are far apart, and each is needed for all `i`.

use crate::domain::estimate::extents;
use crate::domain::reach::Reach;
use crate::domain::system;
use crate::program::expr::{Rewriter, Rules};
use crate::program::{
    Affine, Atom, Constraint, Definition, ExprId, Exprs, Index, ParamId, ParamKind, Program, TensorId, TensorKind,
    distinct, names,
};
use crate::target::cost;
use std::collections::HashMap;

/// An input, and the subscript of its last dimension.
type Slice = (TensorId, Affine);

/// A program at a step, with copies of such columns.
pub fn slices(program: &Program, sizes: &[f64]) -> Program {
    let mut program = program.clone();
    if !program.params.iter().any(|param| matches!(param.kind, ParamKind::Time(_))) {
        return program;
    }
    let found: Vec<Slice> =
        program.definitions.iter().flat_map(|definition| wanted(&program, definition, sizes)).collect();
    let mut taken = names::taken(&program);
    let mut copies = HashMap::new();
    let mut before = Vec::new();
    for (tensor, at) in distinct(found) {
        let record = &program[tensor];
        let extents = record.extents[..record.rank - 1].to_vec();
        let name = names::fresh(&format!("{}_at", record.name), &mut taken);
        let rank = extents.len();
        let indices = Index::numbered(&extents);
        let copy = program.add_defined(name, extents);
        let place = (0..rank).map(Affine::index).chain([at.clone()]).collect();
        let body = program.exprs.access(tensor, place);
        before.push(Definition::pointwise(copy, indices, body));
        copies.insert((tensor, at), copy);
    }
    let mut rules = Copied(copies);
    for number in 0..program.definitions.len() {
        let body = program.definitions[number].body;
        if program.definitions[number].reduction.is_some() {
            program.definitions[number].body = Rewriter::default().rewrite(&mut program.exprs, body, &mut rules);
        }
    }
    program.definitions.splice(0..0, before);
    program
}

/// The columns at a step that a reduction reads often enough to be copied. What a view leaves out is in none.
fn wanted(program: &Program, definition: &Definition, sizes: &[f64]) -> Vec<Slice> {
    if definition.reduction.is_none() {
        return Vec::new();
    }
    let points: f64 = extents(definition, sizes).iter().product();
    let reach = Reach::of(program);
    let is_column = |tensor: TensorId, subscripts: &[Affine]| {
        let [first @ .., last] = subscripts else { return false };
        let elements: f64 = program[tensor].extents[..first.len()].iter().map(|e| e.estimate(&[], sizes)).product();
        program[tensor].kind == TensorKind::Input
            && is_at_step(program, last)
            && first.iter().any(|subscript| subscript.uses_indices())
            && is_inside(program, tensor, last)
            && reach.held(program, tensor).as_ref() == Some(&program[tensor].extents)
            && points >= cost::READS_PER_COPIED_ELEMENT * elements
    };
    let columns = program.exprs.accesses(definition.body).filter(|(tensor, at)| is_column(*tensor, at));
    columns.filter_map(|(tensor, at)| Some((tensor, at.last()?.clone()))).collect()
}

/// Whether a subscript is decided by a step.
fn is_at_step(program: &Program, subscript: &Affine) -> bool {
    let is_time = |atom: &Atom| matches!(atom, Atom::Param(ParamId(p)) if matches!(program.params[*p as usize].kind, ParamKind::Time(_)));
    let mut any = false;
    subscript.visit_atoms(&mut |atom| any |= is_time(atom));
    any && !subscript.uses_indices()
}

/// Whether the last subscript is inside of its tensor at every step.
fn is_inside(program: &Program, tensor: TensorId, last: &Affine) -> bool {
    let extent = program[tensor].extents[program[tensor].rank - 1].clone();
    let rows = [Constraint::non_negative(last.clone()), Constraint::at_most(last.shift(1), extent)];
    rows.iter().all(|row| system::implies(&program.size_context(), row))
}

struct Copied(HashMap<Slice, TensorId>);

impl Rules for Copied {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, mut subscripts: Vec<Affine>) -> ExprId {
        let column = subscripts.last().and_then(|last| self.0.get(&(tensor, last.clone())));
        match column {
            Some(&copy) => {
                subscripts.pop();
                exprs.access(copy, subscripts)
            }
            None => exprs.access(tensor, subscripts),
        }
    }
}
