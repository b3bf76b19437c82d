//! Equal definitions are computed once, whatever their indices are called.

use super::canon::{Canon, Form};
use super::hoist::{Reached, reached};
use crate::domain::{guard, system};
use crate::program::expr::{Rewriter, Rules};
use crate::program::{Affine, Constraint, Definition, Expr, ExprId, Exprs, Program, TensorId, TensorKind};
use std::collections::{HashMap, HashSet};

/// A definition that can be read instead of equal ones.
pub struct Known {
    pub tensor: TensorId,
    /// Its outputs in canonical ones.
    pub outputs: Vec<Affine>,
    /// Where it is computed, in canonical outputs.
    pub domain: Vec<Constraint>,
}

impl Known {
    /// A definition with its form.
    pub fn new(definition: &Definition, form: &Form) -> Self {
        let domain = definition.output_domain().iter().map(|c| c.with_indices(&form.outputs)).collect();
        Known { tensor: definition.tensor, outputs: form.outputs.clone(), domain }
    }

    /// Whether it is computed wherever the other one is.
    pub fn covers(&self, other: &Known, context: &[Constraint]) -> bool {
        let known = [context, &other.domain].concat();
        self.domain.iter().all(|row| other.domain.contains(row) || system::implies(&known, row))
    }

    /// The subscripts to read it at, for those at which a definition of this form would be read.
    pub fn subscripts(&self, form: &Form, subscripts: &[Affine]) -> Vec<Affine> {
        let canonical: Vec<Affine> = form.canonical.iter().map(|c| c.with_indices(subscripts)).collect();
        self.outputs.iter().map(|o| o.with_indices(&canonical)).collect()
    }
}

/// A definition without the conditions on its outputs, beyond which it is 0; where they hold it can be read as well.
pub fn unmasked(exprs: &Exprs, definition: &Definition) -> Option<Definition> {
    let mut open = definition.clone();
    match (definition.reduction, &exprs[definition.body]) {
        (None, Expr::Select(c, a, b)) if exprs.as_constant(*b) == Some(0.0) => {
            open.assumptions.extend(guard::conjunction(exprs, *c)?);
            open.body = *a;
        }
        (None, _) => return None,
        (Some(_), _) => {
            let inner = |c: &Constraint| (open.rank..open.indices.len()).any(|i| c.affine.uses_index(i));
            let (kept, outer) = definition.conditions.iter().cloned().partition(inner);
            open.conditions = kept;
            open.assumptions.extend::<Vec<Constraint>>(outer);
        }
    }
    (open != *definition).then_some(open)
}

/// Reads the first of several equal definitions instead of the later ones; says whether there were any.
pub fn share(program: &mut Program, context: &[Constraint]) -> bool {
    let mut canon = Canon::default();
    let mut known: HashMap<super::canon::Key, Known> = HashMap::new();
    let mut replaced: HashMap<TensorId, (Vec<Affine>, TensorId)> = HashMap::new();
    let mut copied = false;
    let lazy = lazy(program);
    let mut rewriter = Rewriter::default();
    for place in 0..program.definitions.len() {
        let body = program.definitions[place].body;
        let body = rewriter.rewrite(&mut program.exprs, body, &mut Replace(&replaced));
        program.definitions[place].body = body;
        let definition = program.definitions[place].clone();
        let form = canon.learn(&program.exprs, &definition);
        let own = Known::new(&definition, &form);
        let trivial = definition.reduction.is_none() && crate::simplify::settle::is_trivial(&program.exprs, body);
        match known.get(&form.key) {
            Some(first) if !trivial && first.covers(&own, context) => {
                let subscripts = first.subscripts(&form, &definition.outputs());
                if program.outputs.contains(&definition.tensor) {
                    let body = program.exprs.access(first.tensor, subscripts);
                    let indices = definition.indices[..definition.rank].to_vec();
                    let (reduction, conditions) = (None, Vec::new());
                    program.definitions[place] = Definition { indices, reduction, conditions, body, ..definition };
                    copied = true;
                } else {
                    replaced.insert(definition.tensor, (subscripts, first.tensor));
                }
            }
            Some(_) => {}
            None if lazy.contains(&definition.tensor) => {}
            None => {
                known.insert(form.key.clone(), own);
            }
        }
    }
    copied || !replaced.is_empty()
}

/// Reads another tensor, at subscripts that are given in the outputs of the one that was read.
pub struct Replace<'a>(pub &'a HashMap<TensorId, (Vec<Affine>, TensorId)>);

impl Rules for Replace<'_> {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        match self.0.get(&tensor) {
            Some((others, other)) => {
                let moved = others.iter().map(|s| s.with_indices(&subscripts)).collect();
                exprs.access(*other, moved)
            }
            None => exprs.access(tensor, subscripts),
        }
    }
}

/// Nested definitions that are computed only where values say so.
pub fn lazy(program: &Program) -> HashSet<TensorId> {
    let mut lazy = HashSet::new();
    for definition in program.definitions.iter().rev() {
        let reached = reached(&program.exprs, definition.body);
        for (id, place) in reached {
            if let Expr::Access(tensor, _) = &program.exprs[id]
                && program[*tensor].kind == TensorKind::Nested
                && (place == Reached::Sometimes || lazy.contains(&definition.tensor))
            {
                lazy.insert(*tensor);
            }
        }
    }
    lazy
}
