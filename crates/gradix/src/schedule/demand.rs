//! Reductions where something reads them.
//!
//! ```text
//! s[i, j] = sum[d] q[i, d] * k[j, d]                  s[i, j] = sum[d, j <= i] q[i, d] * k[j, d]
//! y[i] = max[j in 0..=i] s[i, j]
//! ```
//!
//! What holds for two outputs wherever a definition is read, holds wherever it has to be computed.

use crate::domain::estimate::extents;
use crate::domain::guard;
use crate::domain::system::Facts;
use crate::program::{Affine, Constraint, Definition, Expr, Program, Relation, TensorId};
use crate::target::cost;
use std::collections::HashMap;

/// Restricts long reductions to where they are read.
pub fn demand(program: &mut Program, estimate: &[f64]) {
    let mut demands: HashMap<TensorId, Vec<Constraint>> = HashMap::new();
    let mut readers: HashMap<TensorId, Vec<usize>> = HashMap::new();
    for (position, definition) in program.definitions.iter().enumerate() {
        for (tensor, _) in program.exprs.accesses(definition.body) {
            let known = readers.entry(tensor).or_default();
            if known.last() != Some(&position) {
                known.push(position);
            }
        }
    }
    for position in (0..program.definitions.len()).rev() {
        let definition = program.definitions[position].clone();
        if definition.rank < 2 || program.outputs.contains(&definition.tensor) {
            continue;
        }
        let readers = readers.get(&definition.tensor).map_or(&[][..], Vec::as_slice);
        let wanted = demanded(program, definition.tensor, readers, &demands);
        let terms: f64 = extents(&definition, estimate)[definition.rank..].iter().product();
        if definition.reduction.is_some() && terms >= cost::DEMANDED_TERMS {
            let known = &definition.conditions;
            let more: Vec<Constraint> = wanted.iter().filter(|row| !known.contains(row)).cloned().collect();
            program.definitions[position].conditions.extend(more);
        }
        demands.insert(definition.tensor, wanted);
    }
}

/// What holds for the outputs of a definition wherever it is read.
fn demanded(
    program: &mut Program,
    made: TensorId,
    readers: &[usize],
    demands: &HashMap<TensorId, Vec<Constraint>>,
) -> Vec<Constraint> {
    let mut found: Option<Vec<Constraint>> = None;
    for &reader in readers {
        let reader = program.definitions[reader].clone();
        for (access, guards) in guard::guarded_accesses(&mut program.exprs, reader.body) {
            let Expr::Access(tensor, subscripts) = &program.exprs[access] else { continue };
            if *tensor != made {
                continue;
            }
            for guard in guards {
                let known = domain(&reader, demands).chain(guard).collect::<Vec<_>>();
                let rows = match &found {
                    None => {
                        let mut rows: Vec<Constraint> = Vec::new();
                        for row in known.iter().filter_map(|row| of_outputs(row, subscripts)) {
                            if !rows.contains(&row) {
                                rows.push(row);
                            }
                        }
                        rows
                    }
                    Some(rows) => {
                        let facts = Facts::new(known.as_slice());
                        let holds = |row: &&Constraint| facts.implies(&row.with_indices(subscripts));
                        rows.iter().filter(holds).cloned().collect()
                    }
                };
                found = Some(rows);
            }
            if found.as_ref().is_some_and(Vec::is_empty) {
                return Vec::new();
            }
        }
    }
    found.unwrap_or_default()
}

/// What holds at the points of a definition that are computed.
fn domain<'a>(
    reader: &'a Definition,
    demands: &'a HashMap<TensorId, Vec<Constraint>>,
) -> impl Iterator<Item = Constraint> + 'a {
    let ranges =
        reader.indices.iter().enumerate().flat_map(|(i, index)| index.range.constraints(i).collect::<Vec<_>>());
    let wanted = demands.get(&reader.tensor).into_iter().flatten();
    ranges.chain(reader.conditions.iter().chain(wanted).cloned())
}

/// A condition on two or more indices of a reader, each of which is a subscript, as one on the outputs that are read there.
fn of_outputs(row: &Constraint, subscripts: &[Affine]) -> Option<Constraint> {
    let mut used: Vec<usize> = Vec::new();
    row.affine.visit_indices(&mut |index| used.push(index));
    used.sort_unstable();
    used.dedup();
    let mut map = vec![Affine::default(); used.last()? + 1];
    for index in &used {
        let place = subscripts.iter().position(|subscript| subscript.as_index() == Some(*index))?;
        map[*index] = Affine::index(place);
    }
    let fits = used.len() > 1 && row.relation == Relation::NonNegative && row.affine.is_straight();
    fits.then(|| row.with_indices(&map))
}
