//! Functions of single elements that a recurrence needs at several places, once for each element.
//!
//! ```text
//! r[i, j] = c[i, j] - log(exp(-r[i - 1, j]) + exp(-r[i, j - 1]) + exp(-r[i - 1, j - 1]))
//! e[i, j] = exp(-r[i, j]);   r[i, j] = c[i, j] - log(e[i - 1, j] + e[i, j - 1] + e[i - 1, j - 1])
//! ```

use super::hoist::compared;
use super::work::elements;
use crate::domain::reach::Reach;
use crate::program::expr::{Rewriter, Rules};
use crate::program::{
    Affine, Definition, Expr, ExprId, Exprs, Index, Program, Range, Tensor, TensorId, TensorKind, circles, distinct,
    names,
};
use crate::target::cost;

/// A function of one element, where it stands.
struct Use {
    /// Whose definition it is.
    reader: TensorId,
    node: ExprId,
    /// The element.
    tensor: TensorId,
    at: Vec<Affine>,
    /// The same with the indices of the tensor as subscripts.
    value: ExprId,
    /// Whether a condition compares it: it then has to stay the same to the last bit wherever else it stands.
    is_compared: bool,
}

/// The program with definitions for the functions that recurrences evaluate about twice or more for each element of a tensor, at
/// several places.
pub fn elements_once(program: &Program, sizes: &[f64]) -> Program {
    let mut program = program.clone();
    let recurrent = circles::recurrent(&program);
    let tensors = program.definitions.iter().map(|definition| definition.tensor);
    let readers: Vec<TensorId> = tensors.filter(|tensor| recurrent.contains_key(tensor)).collect();
    let uses: Vec<Use> = readers.into_iter().flat_map(|reader| uses(&mut program, reader)).collect();
    let mut taken = names::taken(&program);
    for value in distinct(uses.iter().map(|own| own.value)) {
        let same: Vec<&Use> = uses.iter().filter(|own| own.value == value).collect();
        let points: f64 = same.iter().filter_map(|own| Some(elements(program.definition_of(own.reader)?, sizes))).sum();
        let tensor = same[0].tensor;
        if same.len() < 2
            || same.iter().any(|own| own.is_compared)
            || points < cost::ELEMENT_USES * program[tensor].elements(sizes)
            || !is_all_there(&program, tensor)
        {
            continue;
        }
        let once = add(&mut program, tensor, value, &mut taken);
        for Use { reader, node, at, .. } in same {
            let read = program.exprs.access(once, at.clone());
            let reader = program.definitions.iter_mut().find(|d| d.tensor == *reader).expect("it is defined");
            reader.body = Rewriter::with([(*node, read)]).copy(&mut program.exprs, reader.body);
        }
    }
    program
}

/// Whether all elements of a tensor can be read: of a view, only what the program reads is there.
pub fn is_all_there(program: &Program, tensor: TensorId) -> bool {
    let Tensor { kind, extents, .. } = &program[tensor];
    *kind != TensorKind::Input || Reach::of(program).held(program, tensor).as_ref() == Some(extents)
}

/// The costly functions of single elements of a definition, the largest of those inside of each other.
fn uses(program: &mut Program, reader: TensorId) -> Vec<Use> {
    let body = program.definition_of(reader).expect("it is defined").body;
    let compared = compared(&program.exprs, body);
    let mut found: Vec<Use> = Vec::new();
    let mut order = program.exprs.postorder(body);
    order.sort();
    for node in order.into_iter().rev() {
        let is_function = matches!(program.exprs[node], Expr::Unary(..));
        let is_inside = |own: &Use| program.exprs.postorder(own.node).contains(&node);
        if !is_function || found.iter().any(is_inside) || weight(&program.exprs, node) < cost::ELEMENT_ADDITIONS {
            continue;
        }
        let Some((tensor, at)) = only_element(&program.exprs, node) else { continue };
        if program[tensor].kind == TensorKind::Nested {
            continue;
        }
        let own: Vec<Affine> = (0..program[tensor].rank).map(Affine::index).collect();
        let value = Rewriter::default().rewrite(&mut program.exprs, node, &mut At(own));
        found.push(Use { reader, node, tensor, at, value, is_compared: compared.contains(&node) });
    }
    found
}

pub fn weight(exprs: &Exprs, node: ExprId) -> f64 {
    exprs.postorder(node).into_iter().filter_map(|id| cost::operation(exprs, id)).sum()
}

/// The one element that a node depends on, if it depends on nothing else.
fn only_element(exprs: &Exprs, node: ExprId) -> Option<(TensorId, Vec<Affine>)> {
    let order = exprs.postorder(node);
    let is_plain = |id: &ExprId| !matches!(exprs[*id], Expr::Index(_) | Expr::Select(..));
    let mut accesses = exprs.accesses(node);
    let (tensor, at) = accesses.next()?;
    (order.iter().all(is_plain) && accesses.next().is_none()).then(|| (tensor, at.to_vec()))
}

/// A definition of a function of all elements of a tensor.
fn add(
    program: &mut Program,
    tensor: TensorId,
    value: ExprId,
    taken: &mut std::collections::HashSet<String>,
) -> TensorId {
    let record = program[tensor].clone();
    let name = names::fresh(&format!("{}_part", record.name), taken);
    let index = |(dimension, extent): (usize, &Affine)| {
        let name = program
            .definition_of(tensor)
            .map_or_else(|| format!("i{dimension}"), |d| d.indices[dimension].name.clone());
        Index { name, range: Range::extent(extent.clone()) }
    };
    let indices = record.extents.iter().enumerate().map(index).collect();
    let once = program.add_defined(name, record.extents);
    let first = program.definitions.iter().position(|d| program.exprs.reads(d.body, tensor) && d.tensor != tensor);
    let own = program.definitions.iter().position(|d| d.tensor == tensor);
    let place = own.map_or(first.unwrap_or(0), |own| own + 1);
    program.definitions.insert(place, Definition::pointwise(once, indices, value));
    once
}

/// Another element in place of the one that is read.
struct At(Vec<Affine>);

impl Rules for At {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, _: Vec<Affine>) -> ExprId {
        exprs.access(tensor, self.0.clone())
    }
}
