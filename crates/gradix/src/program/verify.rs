//! The invariants of a [`Program`], checked. A violation is a bug in the compiler, never the user's fault.

use super::{Cond, Definition, Expr, Program, TensorId, TensorKind};
use std::collections::HashMap;

/// Checks that
/// - every tensor that is not an input has one definition, before its first use, or in a circle beside it;
/// - accesses have one subscript per dimension, and mention no index beyond the definition's;
/// - a range mentions earlier indices only; outputs of a named definition run over `0..extent`;
/// - a definition has a reduction exactly if it has reduction indices;
/// - a nested tensor is read by one access node of one definition, by distinct bare indices;
/// - outputs are named definitions, and names are distinct.
pub fn verify(program: &Program) -> Result<(), String> {
    let mut readers: HashMap<TensorId, Vec<(usize, Vec<super::Affine>)>> = HashMap::new();
    let mut known: Vec<bool> = program.tensors.iter().map(|t| t.kind == TensorKind::Input).collect();
    let early = super::circles::read_before(program);
    ensure(early.is_none(), || {
        format!("{} is read before its definition", program[early.unwrap_or(TensorId(0))].name)
    })?;
    for (number, definition) in program.definitions.iter().enumerate() {
        verify_definition(program, definition)?;
        for id in program.exprs.postorder(definition.body) {
            if let Expr::Access(tensor, subscripts) = &program.exprs[id] {
                readers.entry(*tensor).or_default().push((number, subscripts.clone()));
            }
        }
        let slot = &mut known[definition.tensor.0 as usize];
        ensure(!*slot, || format!("{} is defined twice", program[definition.tensor].name))?;
        *slot = true;
    }
    for (i, tensor) in program.tensors.iter().enumerate() {
        let id = TensorId(i as u32);
        ensure(known[i], || format!("{} has no definition", tensor.name))?;
        ensure(tensor.extents.len() == tensor.rank || tensor.kind == TensorKind::Nested, || {
            format!("{} has {} extents for rank {}", tensor.name, tensor.extents.len(), tensor.rank)
        })?;
        if tensor.kind == TensorKind::Nested {
            let reads = readers.get(&id).map_or(0, Vec::len);
            ensure(reads == 1, || format!("nested {} is read {reads} times", tensor.name))?;
            let mut positions: Vec<_> = readers[&id][0].1.iter().map(|s| s.as_index()).collect();
            positions.sort();
            positions.dedup();
            ensure(positions.len() == tensor.rank && !positions.contains(&None), || {
                format!("nested {} is not read by distinct bare indices", tensor.name)
            })?;
        }
    }
    for &output in &program.outputs {
        ensure(program[output].kind == TensorKind::Defined, || format!("{} can't be a result", program[output].name))?;
    }
    let mut names: Vec<_> = program.tensors.iter().filter(|t| t.kind != TensorKind::Nested).map(|t| &t.name).collect();
    names.sort();
    let twice = names.windows(2).find(|w| w[0] == w[1]);
    twice.map_or(Ok(()), |w| Err(format!("the name {} is used twice", w[0])))
}

fn verify_definition(program: &Program, definition: &Definition) -> Result<(), String> {
    let name = &program[definition.tensor].name;
    let count = definition.indices.len();
    ensure(definition.rank == program[definition.tensor].rank, || format!("rank of {name}"))?;
    ensure(definition.reduction.is_some() == (count > definition.rank), || format!("reduction of {name}"))?;
    ensure(definition.reduction.is_some() || definition.conditions.is_empty(), || format!("conditions of {name}"))?;
    for (position, index) in definition.indices.iter().enumerate() {
        ensure(!index.range.low.is_empty() && !index.range.high.is_empty(), || {
            format!("{name}: {} is unbounded", index.name)
        })?;
        for bound in index.range.low.iter().chain(&index.range.high) {
            let mut latest = 0;
            bound.visit_indices(&mut |i| latest = latest.max(i + 1));
            ensure(latest <= position, || format!("{name}: the range of {} uses a later index", index.name))?;
        }
        if position < definition.rank && program[definition.tensor].kind == TensorKind::Defined {
            let expected = super::Range::extent(program[definition.tensor].extents[position].clone());
            ensure(index.range == expected, || format!("{name}: {} does not run over the extent", index.name))?;
        }
    }
    let mut latest = 0;
    let mut see = |affine: &super::Affine| affine.visit_indices(&mut |i| latest = latest.max(i + 1));
    program.exprs.visit_affines(definition.body, &mut see);
    definition.conditions.iter().for_each(|c| see(&c.affine));
    ensure(latest <= count, || format!("{name} uses an index that it does not have"))?;
    for id in program.exprs.postorder(definition.body) {
        match &program.exprs[id] {
            Expr::Access(tensor, subscripts) => {
                ensure(subscripts.len() == program[*tensor].rank, || {
                    format!("{name}: subscripts of {}", program[*tensor].name)
                })?;
            }
            Expr::Select(c, ..) => {
                let mut fine = true;
                program.exprs.visit_condition(*c, &mut |c| {
                    if let Cond::Compare(_, a, b) = c {
                        fine &= *a < id && *b < id;
                    }
                });
                ensure(fine, || format!("{name}: a condition is younger than its choice"))?;
            }
            Expr::Constant(_) | Expr::Index(_) | Expr::Unary(..) | Expr::Binary(..) => {}
        }
    }
    Ok(())
}

fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message()) }
}
