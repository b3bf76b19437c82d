//! Values for the sizes of a program: from arrays and names, or chosen for a trial run.

use crate::diagnostic::{Diagnostic, Result, counted};
use crate::domain::bounds::Open;
use crate::domain::system;
use crate::program::Places;
use crate::program::{Affine, Atom, Constraint, ParamId, ParamKind, Program, Relation, TensorId};
use gradix_int::Int;

/// What is known about sizes before a run: the shapes of arrays and values given by name.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Values by name.
    pub given: Vec<(String, Int)>,
    /// Shapes of inputs.
    pub shapes: Vec<(TensorId, Vec<usize>)>,
}

/// The value of every param, from what is known. Every declared bound, requirement and shape is checked.
pub fn bind(program: &Program, known: &Known, places: &Places) -> Result<Vec<Int>> {
    let values = infer(program, known)?;
    let missing = values.iter().zip(&program.params).find(|(v, p)| v.is_none() && p.kind == ParamKind::Free);
    if let Some((_, param)) = missing {
        let message = format!("the size '{}' is not known", param.name);
        let hint = format!(
            "give it by name (on the command line: --param {}=…), or give an array whose shape tells it",
            param.name
        );
        return Err(vec![Diagnostic::error("unknown-size", message).hint(hint)]);
    }
    let values: Vec<Int> = values.into_iter().flatten().collect();
    check_values(program, &values, known, places)?;
    let violations = Open::of(program, &places.implied).at_sizes(&values);
    if !violations.is_empty() {
        return Err(violations.iter().map(|v| v.describe(program, places)).collect());
    }
    let broken = broken_facts(program, &places.implied, &values, places);
    if broken.is_empty() { Ok(values) } else { Err(broken) }
}

/// Sizes for a trial run: those that are not known are chosen small and (as long as they are few) distinct, such
/// that every bound and requirement holds, no subscript leaves its tensor and, where possible, no tensor is empty.
pub fn choose(program: &Program, known: &Known, places: &Places) -> Result<Vec<Int>> {
    let values = infer(program, known)?;
    if values.iter().zip(&program.params).all(|(v, p)| v.is_some() || p.kind != ParamKind::Free) {
        return bind(program, known, places);
    }
    let context = program.size_context();
    let extents = program.tensors.iter().flat_map(|t| t.extents.iter());
    let filled: Vec<Constraint> = extents.map(|e| Constraint::non_negative(e.shift(-1))).collect();
    let shaped = known.shapes.iter().flat_map(|(id, shape)| {
        program[*id].extents.iter().zip(shape).map(|(e, &n)| Constraint::equal(e.clone(), Affine::constant(n)))
    });
    let context: Vec<Constraint> = context.into_iter().chain(shaped).collect();
    let full = [context.as_slice(), &filled].concat();
    let (open, mut trials) = (Open::of(program, &places.implied), MAX_TRIALS);
    for rows in [full, context] {
        if let Some(found) = search(program, &open, &rows, values.clone(), &mut trials) {
            check_values(program, &found, known, places)?;
            return Ok(found);
        }
    }
    Err(vec![
        Diagnostic::error("no-sizes", "no small sizes were found for which every subscript stays inside its tensor")
            .hint("give the sizes by name"),
    ])
}

/// The most complete assignments that [`choose`] tries.
const MAX_TRIALS: usize = 400;
/// How many sizes [`choose`] keeps apart before it repeats small values.
const MAX_DISTINCT: usize = 4;

fn search(
    program: &Program,
    open: &Open,
    rows: &[Constraint],
    values: Vec<Option<Int>>,
    trials: &mut usize,
) -> Option<Vec<Int>> {
    let rows: Vec<Constraint> = rows.iter().map(|row| partly(row, &values)).collect();
    if system::is_empty(&rows) {
        return None;
    }
    let next = (0..values.len()).find(|&i| values[i].is_none() && program.params[i].kind == ParamKind::Free);
    let Some(next) = next else {
        *trials = trials.checked_sub(1)?;
        let values = complete(program, &values)?;
        return open.at_sizes(&values).is_empty().then_some(values);
    };
    let least = system::minimum(&rows, &Atom::Param(ParamId(next as u32))).unwrap_or(Int::ZERO);
    candidates(&least, &values).into_iter().find_map(|candidate| {
        let mut values = values.clone();
        values[next] = Some(candidate);
        if *trials == 0 { None } else { search(program, open, &rows, values, trials) }
    })
}

/// Values to try for a size that is at least `least`, the preferred ones first. The first sizes of a program get
/// distinct values; a program of many sizes rather repeats small values than take large ones.
fn candidates(least: &Int, values: &[Option<Int>]) -> Vec<Int> {
    let distinct = values.iter().flatten().count() < MAX_DISTINCT;
    let start = least.clone().max(Int::from(7));
    let small = [3, 4, 5, 2, 6].map(|value| (0, Int::from(value)));
    let large = (0..40).map(|step| (if distinct { 0 } else { 1 }, &start + Int::from(step)));
    let tiny = [1, 0].map(|value| (2, Int::from(value)));
    let mut candidates: Vec<(i32, Int)> = small.into_iter().chain(large).chain(tiny).collect();
    candidates.retain(|(_, value)| value >= least);
    candidates.sort_by_key(|(group, value)| (*group, values.contains(&Some(value.clone()))));
    candidates.into_iter().map(|(_, value)| value).collect()
}

fn partly(row: &Constraint, values: &[Option<Int>]) -> Constraint {
    row.rebuilt(row.affine.substitute(&mut |atom| match atom {
        Atom::Param(ParamId(p)) => values[*p as usize].clone().map(Affine::constant),
        Atom::Index(_) | Atom::Floor(..) => None,
    }))
}

/// Values of the free params that names and shapes tell, and of what follows from them.
fn infer(program: &Program, known: &Known) -> Result<Vec<Option<Int>>> {
    let mut values: Vec<Option<Int>> = vec![None; program.params.len()];
    for (name, value) in &known.given {
        if let Some(p) = program.params.iter().position(|p| p.name == *name) {
            values[p] = Some(value.clone());
        }
    }
    for (id, shape) in &known.shapes {
        let tensor = &program[*id];
        if shape.len() != tensor.rank {
            let message = match tensor.rank {
                0 => format!("'{}' is a scalar, but the array has {}", tensor.name, counted(shape.len(), "dimension")),
                rank => {
                    format!("'{}' has {}, but the array has {}", tensor.name, counted(rank, "dimension"), shape.len())
                }
            };
            return Err(vec![Diagnostic::error("wrong-shape", message)]);
        }
    }
    let impossible = impossible_lengths(program, known, &values);
    if !impossible.is_empty() {
        return Err(impossible);
    }
    loop {
        let before = values.iter().flatten().count();
        for (id, shape) in &known.shapes {
            for (extent, &length) in program[*id].extents.iter().zip(shape) {
                solve_extent(
                    program,
                    &partly(&Constraint::equal(extent.clone(), Affine::constant(length)), &values),
                    &mut values,
                );
            }
        }
        for fact in program.facts.iter().filter(|f| f.relation == Relation::Zero) {
            solve_extent(program, &partly(fact, &values), &mut values);
        }
        for (i, param) in program.params.iter().enumerate() {
            if values[i].is_none() {
                values[i] = derived_value(&param.kind, &values);
            }
        }
        if values.iter().flatten().count() == before {
            return Ok(values);
        }
    }
}

/// Lengths that an extent such as `2*N + 1` has for no sizes. Where all its sizes are known [`check_values`] has more to say,
/// and a plain `N` is held to its own bounds.
fn impossible_lengths(program: &Program, known: &Known, values: &[Option<Int>]) -> Vec<Diagnostic> {
    let context: Vec<Constraint> = program.size_context().iter().map(|row| partly(row, values)).collect();
    let mut found = Vec::new();
    for (id, shape) in &known.shapes {
        for (dimension, (extent, &length)) in program[*id].extents.iter().zip(shape).enumerate() {
            let plain = matches!(extent.terms(), [(Atom::Param(id), _)] if *extent == Affine::param(*id));
            if plain || value_of(extent, values).is_some() {
                continue;
            }
            let agrees = match length {
                0 => Constraint::at_most(extent.clone(), Affine::constant(0)),
                _ => Constraint::equal(extent.clone(), Affine::constant(length)),
            };
            if system::is_empty(&[context.as_slice(), &[partly(&agrees, values)]].concat()) {
                let place = format!("dimension {} of '{}'", dimension + 1, program[*id].name);
                let extent = crate::program::print::affine(&program.params, &[], extent);
                let message = format!("{place} has length {length}, but its extent {extent} can't be that");
                found.push(Diagnostic::error("wrong-shape", message));
            }
        }
    }
    found
}

/// An equation with one free size and no floor tells that size.
fn solve_extent(program: &Program, equation: &Constraint, values: &mut [Option<Int>]) {
    if let [(Atom::Param(ParamId(p)), factor)] = equation.affine.terms() {
        let rest = -equation.affine.offset().clone();
        let free = program.params[*p as usize].kind == ParamKind::Free;
        if free && &rest % factor == Int::ZERO && values[*p as usize].is_none() {
            values[*p as usize] = Some(rest / factor);
        }
    }
}

fn derived_value(kind: &ParamKind, values: &[Option<Int>]) -> Option<Int> {
    let parts = |parts: &[Affine]| parts.iter().map(|p| value_of(p, values)).collect::<Option<Vec<Int>>>();
    match kind {
        ParamKind::Free | ParamKind::Time(_) => None,
        ParamKind::Fixed(value) => Some(value.clone()),
        ParamKind::Smallest(of) => parts(of)?.into_iter().min(),
        ParamKind::Largest(of) => parts(of)?.into_iter().max(),
    }
}

fn value_of(affine: &Affine, values: &[Option<Int>]) -> Option<Int> {
    let mut known = true;
    affine.visit_atoms(&mut |atom| {
        if let Atom::Param(ParamId(p)) = atom {
            known &= values[*p as usize].is_some();
        }
    });
    known.then(|| affine.evaluate(&|atom| at_atom(atom, values)))
}

fn at_atom(atom: &Atom, values: &[Option<Int>]) -> Int {
    match atom {
        Atom::Param(ParamId(p)) => values[*p as usize].clone().unwrap_or(Int::ZERO),
        Atom::Index(_) | Atom::Floor(..) => Int::ZERO,
    }
}

fn complete(program: &Program, values: &[Option<Int>]) -> Option<Vec<Int>> {
    let mut values = values.to_vec();
    for (i, param) in program.params.iter().enumerate() {
        if values[i].is_none() {
            values[i] = derived_value(&param.kind, &values);
        }
    }
    values.into_iter().collect()
}

/// Checks shapes, declared bounds and requirements.
fn check_values(program: &Program, values: &[Int], known: &Known, places: &Places) -> Result<()> {
    let number = |atom: &Atom| at_atom(atom, &values.iter().cloned().map(Some).collect::<Vec<_>>());
    let mut found = Vec::new();
    for (id, shape) in &known.shapes {
        let tensor = &program[*id];
        for (dimension, (extent, &length)) in tensor.extents.iter().zip(shape).enumerate() {
            let expected = extent.evaluate(&number).max(Int::ZERO);
            if expected != Int::from(length) {
                let place = format!("dimension {} of '{}'", dimension + 1, tensor.name);
                let extent = match extent.as_constant() {
                    Some(_) => "extent".to_string(),
                    None => format!("extent {}", crate::program::print::affine(&program.params, &[], extent)),
                };
                let message = format!("{place} has length {length}, but its {extent} is {expected}");
                found.push(with_sizes(Diagnostic::error("wrong-shape", message), program, values));
            }
        }
    }
    // What fails because a subscript leaves its tensor is told at the subscript.
    let stated: Vec<Constraint> = program.facts.iter().filter(|f| !places.implied.contains(f)).cloned().collect();
    found.extend(broken_facts(program, &stated, values, places));
    if found.is_empty() { Ok(()) } else { Err(found) }
}

/// The facts that do not hold for these sizes.
fn broken_facts(program: &Program, facts: &[Constraint], values: &[Int], places: &Places) -> Vec<Diagnostic> {
    let number = |atom: &Atom| at_atom(atom, &values.iter().cloned().map(Some).collect::<Vec<_>>());
    let broken = facts.iter().filter(|fact| !fact.holds(&number));
    let told = broken.map(|fact| {
        let asked = places.requirements.iter().find(|(c, _)| c == fact).map(|(_, d)| d.clone());
        let plain = || {
            let text = crate::program::print::constraint(&program.params, &[], fact);
            Diagnostic::error("size-bound", format!("these sizes do not satisfy {text}"))
        };
        with_sizes(asked.unwrap_or_else(plain), program, values)
    });
    told.collect()
}

/// The same with a hint what the sizes are.
fn with_sizes(diagnostic: Diagnostic, program: &Program, values: &[Int]) -> Diagnostic {
    let free = program.params.iter().zip(values).filter(|(p, _)| p.kind == ParamKind::Free);
    let shown: Vec<String> = free.map(|(p, v)| format!("{} = {v}", p.name)).collect();
    if shown.is_empty() { diagnostic } else { diagnostic.hint(format!("the sizes are {}", shown.join(", "))) }
}
