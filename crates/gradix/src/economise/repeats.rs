//! Costly functions of what no recurrence makes, which recurrences and others evaluate at several places: once for each place.
//!
//! ```text
//! y[t] = x[t] + exp(s[t - 1] - s[t]) * y[t - 1];   dy[t] = … + dy[t + 1] * exp(s[t] - s[t + 1])
//! y_part[t] = exp(s[t] - s[t + 1]);   y[t] = x[t] + y_part[t - 1] * y[t - 1];   dy[t] = … + dy[t + 1] * y_part[t]
//! ```
//!
//! A place is the least subscript for each index. What is read from there on has to be inside of all tensors. That pays where steps are
//! a few single numbers: functions inside of them are then evaluated one after the other, and in vectors where they stand apart.

use super::elements::{is_all_there, weight};
use super::hoist::compared;
use super::work::points;
use crate::domain::{guard, order};
use crate::lift;
use crate::program::expr::Rewriter;
use crate::program::{
    Affine, Constraint, Definition, Expr, ExprId, Exprs, Index, Program, Range, TensorId, TensorKind, build, circles,
    distinct, names,
};
use crate::target::cost;
use gradix_int::Int;
use std::collections::{HashMap, HashSet};

/// A function, where it stands.
struct Use {
    reader: TensorId,
    node: ExprId,
    at: Vec<Affine>,
    function: Function,
    is_compared: bool,
}

/// A function of the elements from a place on.
#[derive(Clone, PartialEq, Eq)]
struct Function {
    value: ExprId,
    /// For each index how many places there are, and how many elements further on the last one is that is read.
    extents: Vec<(Affine, Int)>,
    names: Vec<String>,
}

/// The program with definitions for such functions.
pub fn repeats_once(program: &Program, sizes: &[f64]) -> Program {
    let mut program = program.clone();
    let recurrent: HashSet<TensorId> = circles::recurrent(&program).into_keys().collect();
    let narrow = narrow(&program, sizes);
    if narrow.is_empty() {
        return program;
    }
    let readers: Vec<TensorId> = program.definitions.iter().map(|definition| definition.tensor).collect();
    let uses: Vec<Use> = readers.into_iter().flat_map(|reader| uses(&mut program, reader, &recurrent)).collect();
    let mut taken = names::taken(&program);
    for value in distinct(uses.iter().map(|own| own.function.value)) {
        let same: Vec<&Use> = uses.iter().filter(|own| own.function.value == value).collect();
        if !pays(&program, &same, &narrow, sizes) {
            continue;
        }
        let once = add(&mut program, same[0], &mut taken);
        for Use { reader, node, at, .. } in same {
            let read = program.exprs.access(once, at.clone());
            let reader = program.definitions.iter_mut().find(|d| d.tensor == *reader).expect("it is defined");
            reader.body = Rewriter::with([(*node, read)]).copy(&mut program.exprs, reader.body);
        }
    }
    program
}

/// The members of recurrences whose steps have less elements than a vector.
fn narrow(program: &Program, sizes: &[f64]) -> HashSet<TensorId> {
    let members = |stage: order::Stage| match stage {
        order::Stage::Level(level) => level.members,
        order::Stage::Definition(_) => Vec::new(),
    };
    let few = |(number, index): (usize, usize)| {
        let definition = &program.definitions[number];
        let steps = program[definition.tensor].extents[index].estimate(&[], sizes).max(1.0);
        (points(definition, definition.rank, sizes) / steps < cost::VECTOR_STEP_ELEMENTS).then_some(definition.tensor)
    };
    order::order(program).into_iter().flatten().flat_map(members).filter_map(few).collect()
}

fn pays(program: &Program, same: &[&Use], narrow: &HashSet<TensorId>, sizes: &[f64]) -> bool {
    let steps = same.iter().filter(|own| narrow.contains(&own.reader)).count();
    let extents = &same[0].function.extents;
    if steps < 2 || same.iter().any(|own| own.is_compared || own.function.extents != *extents) {
        return false;
    }
    let places: f64 = extents.iter().map(|(extent, _)| extent.estimate(&[], sizes)).product();
    let definition = |own: &&Use| program.definition_of(own.reader);
    let all: f64 = same.iter().filter_map(definition).map(|d| points(d, d.indices.len(), sizes)).sum();
    all >= cost::ELEMENT_USES * places
}

/// The costly functions of a definition, the largest of those inside of each other.
fn uses(program: &mut Program, reader: TensorId, recurrent: &HashSet<TensorId>) -> Vec<Use> {
    let definition = program.definition_of(reader).expect("it is defined").clone();
    let compared = compared(&program.exprs, definition.body);
    let mut found: Vec<Use> = Vec::new();
    let mut order = program.exprs.postorder(definition.body);
    order.sort();
    for node in order.into_iter().rev() {
        let is_inside = |own: &Use| program.exprs.postorder(own.node).contains(&node);
        let is_costly = weight(&program.exprs, node) >= cost::ELEMENT_ADDITIONS;
        if !matches!(program.exprs[node], Expr::Unary(..)) || !is_costly || found.iter().any(is_inside) {
            continue;
        }
        if let Some((function, at)) = function(program, &definition, node, recurrent) {
            found.push(Use { reader, node, at, function, is_compared: compared.contains(&node) });
        }
    }
    found
}

/// A node as a function of several elements from a place on, and that place.
fn function(
    program: &mut Program,
    definition: &Definition,
    node: ExprId,
    recurrent: &HashSet<TensorId>,
) -> Option<(Function, Vec<Affine>)> {
    let exprs = &program.exprs;
    let is_plain = |id: &ExprId| !matches!(exprs[*id], Expr::Index(_) | Expr::Select(..));
    let accesses: Vec<(TensorId, Vec<Affine>)> = exprs.accesses(node).map(|(t, s)| (t, s.to_vec())).collect();
    let is_made_before = |tensor: TensorId| program[tensor].kind != TensorKind::Nested && !recurrent.contains(&tensor);
    let fits = accesses.len() > 1
        && exprs.postorder(node).iter().all(is_plain)
        && accesses.iter().all(|(tensor, _)| is_made_before(*tensor) && is_all_there(program, *tensor));
    let places = fits.then(|| places(program, &accesses))??;
    let mut map: Vec<Affine> = (0..definition.indices.len()).map(Affine::index).collect();
    for (own, place) in places.iter().enumerate() {
        map[place.index] = Affine::index(own).shift(-place.least.clone());
    }
    let value = lift::remap(&mut program.exprs, node, &map);
    let name = |place: &Place| definition.indices[place.index].name.clone();
    let names = places.iter().map(name).collect();
    let at = places.iter().map(|place| Affine::index(place.index).shift(place.least.clone())).collect();
    let extents = places.into_iter().map(|place| (place.extent, place.most - place.least)).collect();
    Some((Function { value, extents, names }, at))
}

/// Where elements are read along an index: from `index + least` to `index + most`, of as many as `extent`.
struct Place {
    index: usize,
    least: Int,
    most: Int,
    extent: Affine,
}

/// The places of accesses whose subscripts are an index and a number each, in the order of the first one.
fn places(program: &Program, accesses: &[(TensorId, Vec<Affine>)]) -> Option<Vec<Place>> {
    let mut found: Vec<Place> = Vec::new();
    let mut known: HashMap<usize, usize> = HashMap::new();
    for (tensor, subscripts) in accesses {
        for (subscript, extent) in subscripts.iter().zip(&program[*tensor].extents) {
            let offset = subscript.offset().clone();
            let index = subscript.shift(-offset.clone()).as_index()?;
            let own = *known.entry(index).or_insert(found.len());
            if own == found.len() {
                found.push(Place { index, least: offset.clone(), most: offset.clone(), extent: extent.clone() });
            }
            let place = &mut found[own];
            if place.extent != *extent {
                return None;
            }
            place.least = offset.clone().min(place.least.clone());
            place.most = offset.max(place.most.clone());
        }
    }
    (!found.is_empty()).then_some(found)
}

/// A definition of a function at all places.
fn add(program: &mut Program, first: &Use, taken: &mut HashSet<String>) -> TensorId {
    let Use { reader, function: Function { value, extents, names }, .. } = first;
    let name = names::fresh(&format!("{}_part", program[*reader].name), taken);
    let shape: Vec<Affine> = extents.iter().map(|(extent, _)| extent.clone()).collect();
    let tensor = program.add_defined(name, shape.clone());
    let inside = |(index, (extent, further)): (usize, &(Affine, Int))| {
        let last = Affine::index(index).shift(further.clone() + Int::ONE);
        (*further > Int::ZERO).then(|| Constraint::at_most(last, extent.clone()))
    };
    let inside: Vec<Constraint> = extents.iter().enumerate().filter_map(inside).collect();
    let body = under(&mut program.exprs, &inside, *value);
    let index = |(name, extent): (&String, Affine)| Index { name: name.clone(), range: Range::extent(extent) };
    let indices = names.iter().zip(shape).map(index).collect();
    let reads: Vec<TensorId> = program.exprs.accesses(*value).map(|(read, _)| read).collect();
    let made = program.definitions.iter().rposition(|definition| reads.contains(&definition.tensor));
    let definition = Definition::pointwise(tensor, indices, body);
    program.definitions.insert(made.map_or(0, |made| made + 1), definition);
    tensor
}

/// A value where conditions hold, and 0 elsewhere.
fn under(exprs: &mut Exprs, conditions: &[Constraint], value: ExprId) -> ExprId {
    let zero = exprs.constant(0.0);
    guard::all(exprs, conditions).map_or(value, |condition| build::select(exprs, condition, value, zero))
}
