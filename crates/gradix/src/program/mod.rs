//! What is computed: no order, no storage.
//!
//! A [`Program`] is a list of definitions, each in the normal form
//!
//! ```text
//! T[α ∈ D] = ⊕[k ∈ R(α)] body            ⊕ ∈ {none, sum, prod, max, min, logsumexp}
//! ```
//!
//! with a pointwise `body` (see [`expr`]): a reduction inside an expression is a definition of its own.
//! Such a definition is *nested*: it has no name of the user's, is read at one place only, by bare
//! indices, and is printed there. [`verify`](verify()) lists the invariants.

pub mod affine;
pub mod build;
pub mod circles;
pub mod constraint;
pub mod expr;
pub mod fold;
pub mod hash;
pub mod names;
pub mod op;
pub mod places;
pub mod print;
pub mod verify;

pub use affine::{Affine, Atom, ParamId, Variable};
pub use constraint::{Constraint, Relation};
pub use expr::{Cond, CondId, Expr, ExprId, Exprs};
pub use fold::Fold;
pub use op::{BinaryOp, Comparison, ReduceOp, UnaryOp};
pub use places::Places;
pub use verify::verify;

use gradix_int::Int;

/// An input or a defined tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TensorId(pub u32);

/// A size.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name; for a derived size, a name for messages.
    pub name: String,
    /// How it gets its value.
    pub kind: ParamKind,
}

/// How a size gets its value.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamKind {
    /// By the user, or from the shape of an array.
    Free,
    /// Fixed in the program.
    Fixed(Int),
    /// The smallest of expressions in other params.
    Smallest(Vec<Affine>),
    /// The largest of expressions in other params.
    Largest(Vec<Affine>),
    /// The step at hand of so many, in other params: of a part of a program that is run step by step.
    Time(Affine),
}

impl ParamKind {
    /// What it follows from, or is bounded by.
    pub fn parts(&self) -> &[Affine] {
        match self {
            ParamKind::Free | ParamKind::Fixed(_) => &[],
            ParamKind::Smallest(parts) | ParamKind::Largest(parts) => parts,
            ParamKind::Time(steps) => std::slice::from_ref(steps),
        }
    }

    /// The same.
    pub fn parts_mut(&mut self) -> &mut [Affine] {
        match self {
            ParamKind::Free | ParamKind::Fixed(_) => &mut [],
            ParamKind::Smallest(parts) | ParamKind::Largest(parts) => parts,
            ParamKind::Time(steps) => std::slice::from_mut(steps),
        }
    }

    /// What the negative of the size follows from: `min(2, N - 1)` for `max(-2, 1 - N)`.
    pub fn opposite(&self) -> Option<ParamKind> {
        let negated = |parts: &[Affine]| parts.iter().map(|part| -part.clone()).collect();
        match self {
            ParamKind::Free | ParamKind::Fixed(_) | ParamKind::Time(_) => None,
            ParamKind::Smallest(parts) => Some(ParamKind::Largest(negated(parts))),
            ParamKind::Largest(parts) => Some(ParamKind::Smallest(negated(parts))),
        }
    }

    /// How many more terms of its parts rise with their sizes than fall.
    pub fn rising(&self) -> i64 {
        let terms = self.parts().iter().flat_map(|part| part.terms());
        terms.map(|(_, factor)| if *factor > Int::ZERO { 1 } else { -1 }).sum()
    }
}

/// What stands behind a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorKind {
    /// An argument.
    Input,
    /// Defined, under a name that is printed.
    Defined,
    /// Defined by a reduction inside an expression.
    Nested,
}

/// An array of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// What stands behind it.
    pub kind: TensorKind,
    /// The extent of each dimension, in params; a negative one counts as 0. (Of a nested tensor: unused.)
    pub extents: Vec<Affine>,
    /// How many dimensions it has.
    pub rank: usize,
}

impl Tensor {
    /// The number of elements at assumed values of the params.
    pub fn elements(&self, params: &[f64]) -> f64 {
        elements(&self.extents, params)
    }
}

/// The number of elements of a box at assumed values of the params.
pub fn elements(extents: &[Affine], params: &[f64]) -> f64 {
    extents.iter().map(|extent| extent.estimate(&[], params).max(0.0)).product()
}

/// The values an index takes: from the largest of `low` to the smallest of `high`, both included.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// Lower bounds, at least one.
    pub low: Vec<Affine>,
    /// Upper bounds (included), at least one.
    pub high: Vec<Affine>,
}

/// An index of a definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Bounds in params and earlier indices.
    pub range: Range,
}

/// `T[α] = ⊕[k] body`
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// What it defines.
    pub tensor: TensorId,
    /// The `rank` output indices, then the reduction indices from the outermost in.
    pub indices: Vec<Index>,
    /// How many of them are outputs.
    pub rank: usize,
    /// What combines the values of `body`; `None` if and only if there is no reduction index.
    pub reduction: Option<ReduceOp>,
    /// Conditions that restrict the reduction.
    pub conditions: Vec<Constraint>,
    /// Of a nested definition: what holds wherever it is read.
    pub assumptions: Vec<Constraint>,
    /// The value at one point.
    pub body: ExprId,
}

/// A whole program.
///
/// Programs are equal if they compute the same things in the same way. What is noted about where a nested
/// definition is read (the ranges of its outputs and its assumptions) follows from its reader and does not count.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Sizes.
    pub params: Vec<Param>,
    /// What holds for the sizes: declared bounds and requirements.
    pub facts: Vec<Constraint>,
    /// Inputs and defined tensors.
    pub tensors: Vec<Tensor>,
    /// In an order in which they can be computed.
    pub definitions: Vec<Definition>,
    /// The results.
    pub outputs: Vec<TensorId>,
    /// Every expression.
    pub exprs: Exprs,
}

impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        let equal = |(a, b): (&Definition, &Definition)| match self[a.tensor].kind {
            TensorKind::Nested => {
                let names = |d: &Definition| d.indices.iter().map(|i| i.name.clone()).collect::<Vec<_>>();
                let fixed = |d: &Definition| (d.tensor, d.rank, d.reduction, d.conditions.clone(), d.body);
                fixed(a) == fixed(b) && names(a) == names(b) && a.indices[a.rank..] == b.indices[b.rank..]
            }
            TensorKind::Defined | TensorKind::Input => a == b,
        };
        (&self.params, &self.facts, &self.tensors) == (&other.params, &other.facts, &other.tensors)
            && (&self.outputs, &self.exprs) == (&other.outputs, &other.exprs)
            && self.definitions.len() == other.definitions.len()
            && self.definitions.iter().zip(&other.definitions).all(equal)
    }
}

impl std::ops::Index<TensorId> for Program {
    type Output = Tensor;
    fn index(&self, id: TensorId) -> &Tensor {
        &self.tensors[id.0 as usize]
    }
}

impl Program {
    /// The inputs in order of declaration.
    pub fn inputs(&self) -> impl Iterator<Item = TensorId> + '_ {
        let ids = (0..self.tensors.len() as u32).map(TensorId);
        ids.filter(|&id| self[id].kind == TensorKind::Input)
    }

    /// Whether it takes arguments.
    pub fn has_inputs(&self) -> bool {
        self.inputs().next().is_some()
    }

    /// The tensor of a name (nested ones have none).
    pub fn tensor(&self, name: &str) -> Option<TensorId> {
        let found = self.tensors.iter().position(|t| t.kind != TensorKind::Nested && t.name == name);
        found.map(|i| TensorId(i as u32))
    }

    /// Adds a tensor.
    pub fn add_tensor(&mut self, tensor: Tensor) -> TensorId {
        self.tensors.push(tensor);
        TensorId(self.tensors.len() as u32 - 1)
    }

    /// The tensors that some definition reads.
    pub fn used_tensors(&self) -> std::collections::HashSet<TensorId> {
        let bodies = self.definitions.iter().flat_map(|d| self.exprs.postorder(d.body));
        let accesses = bodies.filter_map(|id| match &self.exprs[id] {
            Expr::Access(tensor, _) => Some(*tensor),
            _ => None,
        });
        accesses.collect()
    }

    /// Which sizes the definitions and the extents of these tensors mention, also by way of sizes that follow from others.
    pub fn used_params(&self, tensors: impl IntoIterator<Item = TensorId>) -> Vec<bool> {
        let mut used = vec![false; self.params.len()];
        let mut see = |affine: &Affine| {
            affine.visit_atoms(&mut |atom| {
                if let Atom::Param(ParamId(p)) = atom {
                    used[*p as usize] = true;
                }
            })
        };
        tensors.into_iter().flat_map(|id| &self[id].extents).for_each(&mut see);
        for definition in &self.definitions {
            definition.indices.iter().flat_map(|i| i.range.low.iter().chain(&i.range.high)).for_each(&mut see);
            definition.conditions.iter().chain(&definition.assumptions).for_each(|c| see(&c.affine));
            self.exprs.visit_affines(definition.body, &mut see);
        }
        // A size that follows from others comes after them.
        for (place, param) in self.params.iter().enumerate().rev() {
            if used[place] {
                for part in param.kind.parts() {
                    part.visit_atoms(&mut |atom| {
                        if let Atom::Param(ParamId(p)) = atom {
                            used[*p as usize] = true;
                        }
                    });
                }
            }
        }
        used
    }

    /// A tensor with a definition, which is still to come.
    pub fn add_defined(&mut self, name: String, extents: Vec<Affine>) -> TensorId {
        self.add_tensor(Tensor { name, kind: TensorKind::Defined, rank: extents.len(), extents })
    }

    /// A tensor that is not printed under a name of its own.
    pub fn add_nested(&mut self, name: String, rank: usize) -> TensorId {
        self.add_tensor(Tensor { name, kind: TensorKind::Nested, extents: Vec::new(), rank })
    }

    /// Where each tensor is defined.
    pub fn definition_of(&self, tensor: TensorId) -> Option<&Definition> {
        self.definitions.iter().find(|d| d.tensor == tensor)
    }

    /// What holds for the sizes: facts, what their kinds say, and that they are not negative where that is so.
    pub fn size_context(&self) -> Vec<Constraint> {
        let mut context = self.facts.clone();
        for (i, param) in self.params.iter().enumerate() {
            let own = Affine::param(ParamId(i as u32));
            match &param.kind {
                ParamKind::Free => {}
                ParamKind::Fixed(value) => context.push(Constraint::equal(own, Affine::constant(value.clone()))),
                ParamKind::Smallest(parts) => {
                    context.extend(parts.iter().map(|p| Constraint::at_most(own.clone(), p.clone())));
                }
                ParamKind::Largest(parts) => {
                    context.extend(parts.iter().map(|p| Constraint::at_most(p.clone(), own.clone())));
                }
                ParamKind::Time(steps) => {
                    context.push(Constraint::at_most(own.shift(1), steps.clone()));
                    context.push(Constraint::non_negative(own));
                }
            }
        }
        context
    }
}

impl Range {
    /// `0..extent`
    pub fn extent(extent: Affine) -> Self {
        Range { low: vec![Affine::constant(0)], high: vec![extent.shift(-1)] }
    }

    /// The constraints on the index at `position`.
    pub fn constraints<V: Variable>(&self, position: V) -> impl Iterator<Item = Constraint> + use<'_, V> {
        let low = self.low.iter().map(move |l| Constraint::at_most(l.clone(), Affine::index(position)));
        let high = self.high.iter().map(move |h| Constraint::at_most(Affine::index(position), h.clone()));
        low.chain(high)
    }

    /// The same with every bound rewritten.
    pub fn map(&self, mut rewrite: impl FnMut(&Affine) -> Affine) -> Self {
        let mut each = |bounds: &[Affine]| distinct(bounds.iter().map(&mut rewrite));
        let low = each(&self.low);
        Range { low, high: each(&self.high) }
    }

    /// The same where a bound that is the smallest or largest of sizes is several.
    pub fn flattened(&self, params: &[Param]) -> Self {
        let each = |bounds: &[Affine], smallest| distinct(bounds.iter().flat_map(|b| flattened(params, b, smallest)));
        Range { low: each(&self.low, false), high: each(&self.high, true) }
    }
}

/// `min(a, b) + c` as parts of a `min`: `a + c` and `b + c`; other parts as they are.
pub fn flattened(params: &[Param], part: &Affine, smallest: bool) -> Vec<Affine> {
    let [(Atom::Param(ParamId(p)), sign)] = part.terms() else { return vec![part.clone()] };
    let kind = &params[*p as usize].kind;
    let kind = if sign.is_one() { Some(kind.clone()) } else { kind.opposite().filter(|_| *sign == Int::NEG_ONE) };
    let moved = |parts: &[Affine]| parts.iter().map(|of| of.shift(part.offset().clone())).collect();
    match kind {
        Some(ParamKind::Smallest(parts)) if smallest => moved(&parts),
        Some(ParamKind::Largest(parts)) if !smallest => moved(&parts),
        _ => vec![part.clone()],
    }
}

/// Each once, in order.
pub fn distinct<T: PartialEq>(bounds: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for bound in bounds {
        if !kept.contains(&bound) {
            kept.push(bound);
        }
    }
    kept
}

impl Index {
    /// `i0`, `i1`, … for the dimensions of a tensor.
    pub fn numbered(extents: &[Affine]) -> Vec<Index> {
        let index = |(number, extent): (usize, &Affine)| {
            let name = format!("i{number}");
            Index { name, range: Range::extent(extent.clone()) }
        };
        extents.iter().enumerate().map(index).collect()
    }
}

impl Definition {
    /// `tensor[indices] = body`
    pub fn pointwise(tensor: TensorId, indices: Vec<Index>, body: ExprId) -> Self {
        let (rank, conditions, assumptions) = (indices.len(), Vec::new(), Vec::new());
        Definition { tensor, indices, rank, reduction: None, conditions, assumptions, body }
    }

    /// Whether no range of an output depends on another one.
    pub fn is_box(&self) -> bool {
        let ranges = self.indices[..self.rank].iter().map(|index| &index.range);
        !ranges.flat_map(|range| range.low.iter().chain(&range.high)).any(Affine::uses_indices)
    }

    /// What holds for the output indices alone.
    pub fn output_domain(&self) -> Vec<Constraint> {
        let outputs = self.indices[..self.rank].iter().enumerate();
        let ranges = outputs.flat_map(|(position, index)| index.range.constraints(position));
        ranges.chain(self.assumptions.iter().cloned()).collect()
    }

    /// What holds for all indices wherever the body is evaluated.
    pub fn domain(&self) -> Vec<Constraint> {
        let reduced = self.indices.iter().enumerate().skip(self.rank);
        let ranges = reduced.flat_map(|(position, index)| index.range.constraints(position));
        let mut domain = self.output_domain();
        domain.extend(ranges);
        domain.extend(self.conditions.iter().cloned());
        domain
    }

    /// The output indices as bare subscripts.
    pub fn outputs(&self) -> Vec<Affine> {
        (0..self.rank).map(Affine::index).collect()
    }
}
