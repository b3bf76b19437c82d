//! Why a derivative looks as it does: the integer algebra behind every access, as data.
//!
//! An access `X[A·α + c]` in a definition with indices `α` contributes to `dX[β]` at the points with `A·α = β - c`. With
//! the Smith form `U A V = S` these are `α = I·(β - c) + K·z` for all integer `z`, if `C·(β - c) = 0` and `S` divides
//! `U·(β - c)` (section 4.1 of the paper); the ranges of `α` then bound `z` (section 4.2).
//!
//! ```text
//! f[i, j] = x[i - 2*j]     A = (1 -2)   I = (1 0)ᵀ   K = (2 1)ᵀ   →   i = β + 2*j,  j in max(0, …)..=min(…)
//! f[i]    = x[2*i]         A = (2)      I = (½)      K = ()       →   i = β // 2    where β % 2 == 0
//! ```
//!
//! `⌊e / d⌋` of indices is one more unknown `q`, a column of `A`, with `0 <= e - d*q <= d - 1`.

pub mod graph;

use crate::derive::gather::{Gathered, Spaces, gather};
use crate::derive::{Options, derive};
use crate::diagnostic::{Diagnostic, Result};
use crate::domain::guard::{self, Guard};
use crate::program::expr::{Renamed, Rewriter, Rules};
use crate::program::{
    Affine, Atom, Constraint, Definition, Expr, ExprId, Exprs, Program, Range, Tensor, TensorId, TensorKind, names,
};
use crate::program::{circles, print};
use crate::syntax::ast::{Ast, Statement, StatementKind};
use gradix_int::{Int, IntegerSolution, Matrix, solve};
use std::collections::HashSet;

/// What is behind the contribution of one access.
#[derive(Clone, Debug)]
pub struct AccessReport {
    /// Its number among all accesses of the program, from 1.
    pub number: usize,
    /// The tensor that is read.
    pub tensor: TensorId,
    /// What reads it: the definition, or a reduction inside of it.
    pub definition: TensorId,
    /// The subscripts, over the indices of what reads it.
    pub subscripts: Vec<Affine>,
    /// The access as text.
    pub access: String,
    /// The named definition that it stands in, as text.
    pub statement: String,
    /// `α`: the indices of what reads it, then the floors.
    pub columns: Vec<String>,
    /// The floors that are unknowns of their own.
    pub floors: Vec<Floor>,
    /// `β`: a name for each dimension of the tensor.
    pub element: Vec<String>,
    /// `A`: a row for each subscript.
    pub matrix: Matrix,
    /// `c`: what else is in each subscript, over the sizes.
    pub offset: Vec<String>,
    /// `U A V = S`, `I`, `K` and `C`.
    pub solution: IntegerSolution,
    /// `C·(β - c) = 0`, as far as it is not trivial.
    pub equations: Vec<String>,
    /// That `S` divides `U·(β - c)`, as far as it is not trivial.
    pub divisibility: Vec<String>,
    /// The points that read an element, for each way through the conditions around the access.
    pub cases: Vec<Case>,
    /// What the access adds to the derivative, as statements; the last one is that of the derivative.
    pub contribution: Vec<String>,
}

/// `⌊e / d⌋` as an unknown.
#[derive(Clone, Debug)]
pub struct Floor {
    /// Its name.
    pub name: String,
    /// What it stands for.
    pub value: String,
    /// The inequalities that define it.
    pub bounds: String,
}

/// The points that read an element under some conditions.
#[derive(Clone, Debug)]
pub struct Case {
    /// The conditions around the access.
    pub guard: Guard,
    /// The same as text.
    pub conditions: Vec<String>,
    /// The points; `None` if there are none.
    pub points: Option<Points>,
}

/// Points in terms of the element and free indices.
#[derive(Clone, Debug)]
pub struct Points {
    /// Every index that is determined, and its value.
    pub solved: Vec<(String, String)>,
    /// The free indices and their ranges.
    pub free: Vec<(String, String)>,
    /// What else restricts the free indices.
    pub conditions: Vec<String>,
    /// What the element has to satisfy.
    pub outer: Vec<String>,
}

/// Reports on every access through which the results depend on the arguments, all if `None`.
///
/// ```
/// use gradix::explain::explain;
/// let ast = gradix::syntax::parse("input x[N]\nf[i in 0..N, j in 0..2] = x[i // 2 + j // 2]").unwrap();
/// let program = gradix::resolve(&ast, &[]).unwrap().program;
/// let reports = explain(&program, None, None).unwrap();
/// assert_eq!(reports[0].columns, ["i", "j", "q1", "q2"]);
/// ```
pub fn explain(program: &Program, wrt: Option<&[String]>, of: Option<&[String]>) -> Result<Vec<AccessReport>> {
    let inputs = chosen(program, program.inputs().collect(), wrt, "input")?;
    let results = chosen(program, program.outputs.clone(), of, "result")?;
    let (active, needed) = (circles::depending(program, inputs), needed_by(program, &results));
    let mut reports = Vec::new();
    let mut number = 0;
    for definition in &program.definitions {
        for id in program.exprs.postorder(definition.body) {
            let Expr::Access(tensor, _) = &program.exprs[id] else { continue };
            if program[*tensor].kind == TensorKind::Nested {
                continue;
            }
            number += 1;
            if active.contains(tensor) && needed.contains(&definition.tensor) {
                reports.push(report(program, definition, id, number).map_err(|error| vec![error])?);
            }
        }
    }
    Ok(reports)
}

fn chosen(program: &Program, all: Vec<TensorId>, names: Option<&[String]>, what: &str) -> Result<HashSet<TensorId>> {
    let Some(names) = names else { return Ok(all.into_iter().collect()) };
    let known: Vec<&str> = all.iter().map(|&id| program[id].name.as_str()).collect();
    let unknown = names.iter().filter(|name| !known.contains(&name.as_str())).map(|name| {
        Diagnostic::error("unknown-name", format!("the program has no {what} '{name}'"))
            .hint(format!("there is {}", known.join(", ")))
    });
    let unknown: Vec<Diagnostic> = unknown.collect();
    let wanted = |id: &TensorId| names.contains(&program[*id].name);
    if unknown.is_empty() { Ok(all.into_iter().filter(wanted).collect()) } else { Err(unknown) }
}

fn needed_by(program: &Program, results: &HashSet<TensorId>) -> HashSet<TensorId> {
    let mut found = results.clone();
    let mut open: Vec<TensorId> = results.iter().copied().collect();
    while let Some(tensor) = open.pop() {
        let Some(definition) = program.definition_of(tensor) else { continue };
        open.extend(reads(program, definition).into_iter().filter(|&read| found.insert(read)));
    }
    found
}

fn reads(program: &Program, definition: &Definition) -> Vec<TensorId> {
    let nodes = program.exprs.postorder(definition.body).into_iter();
    let accesses = nodes.filter_map(|id| match &program.exprs[id] {
        Expr::Access(tensor, _) => Some(*tensor),
        _ => None,
    });
    accesses.collect()
}

fn report(program: &Program, definition: &Definition, id: ExprId, number: usize) -> Result<AccessReport, Diagnostic> {
    let Expr::Access(tensor, subscripts) = &program.exprs[id] else { unreachable!("an access") };
    let owner = owner(program, definition.tensor);
    let names: Vec<&str> = definition.indices.iter().map(|index| index.name.as_str()).collect();
    let floors = floors(subscripts);
    let element = element_names(program[*tensor].rank);
    let equations = Equations::new(definition, subscripts, &floors);
    let solution = solve(&equations.matrix);
    let (zero, divisible) = equations.conditions(program, &solution, &element);
    Ok(AccessReport {
        number,
        tensor: *tensor,
        definition: definition.tensor,
        subscripts: subscripts.clone(),
        access: access_text(program, *tensor, subscripts, &names),
        statement: statements(program, &|name| name == program[owner].name)?.concat(),
        columns: names.iter().map(|name| name.to_string()).chain((1..=floors.len()).map(|n| format!("q{n}"))).collect(),
        floors: floors.iter().enumerate().map(|(n, atom)| floor(program, &names, &floors, n, atom)).collect(),
        element: element.clone(),
        offset: equations.offset.iter().map(|affine| print::affine(&program.params, &[], affine)).collect(),
        matrix: equations.matrix,
        solution,
        equations: zero,
        divisibility: divisible,
        cases: cases(program, definition, id, *tensor, subscripts, &element)?,
        contribution: contribution(program, owner, definition.tensor, id)?,
    })
}

/// The named definition that a reduction stands in.
fn owner(program: &Program, mut tensor: TensorId) -> TensorId {
    while program[tensor].kind == TensorKind::Nested {
        let reader = program.definitions.iter().find(|definition| reads(program, definition).contains(&tensor));
        tensor = reader.expect("a nested tensor is read").tensor;
    }
    tensor
}

fn element_names(rank: usize) -> Vec<String> {
    if rank == 1 { vec!["β".into()] } else { (1..=rank).map(|dimension| format!("β{dimension}")).collect() }
}

fn access_text(program: &Program, tensor: TensorId, subscripts: &[Affine], names: &[&str]) -> String {
    let name = &program[tensor].name;
    // Inside of brackets products are written without spaces.
    let compact = |subscript: &Affine| print::affine(&program.params, names, subscript).replace(" * ", "*");
    let subscripts: Vec<String> = subscripts.iter().map(compact).collect();
    if subscripts.is_empty() { name.clone() } else { format!("{name}[{}]", subscripts.join(", ")) }
}

/// The floors of indices in the subscripts, the inner ones of nested floors too.
fn floors(subscripts: &[Affine]) -> Vec<Atom> {
    let mut found: Vec<Atom> = Vec::new();
    for subscript in subscripts {
        subscript.visit_atoms(&mut |atom| {
            if let Atom::Floor(inner, _) = atom
                && inner.uses_indices()
                && !found.contains(atom)
            {
                found.push(atom.clone());
            }
        });
    }
    found
}

fn floor(program: &Program, names: &[&str], floors: &[Atom], number: usize, atom: &Atom) -> Floor {
    let Atom::Floor(inner, divisor) = atom else { unreachable!("a floor") };
    let name = format!("q{}", number + 1);
    // Floors inside are unknowns too, with names after those of the indices.
    let inner_unknowns = inner.substitute(&mut |inside| {
        floors.iter().position(|floor| floor == inside).map(|place| Affine::index(names.len() + place))
    });
    let remainder = inner_unknowns.add_scaled(&-divisor.clone(), &Affine::index(names.len() + number));
    let unknowns: Vec<String> = (1..=floors.len()).map(|n| format!("q{n}")).collect();
    let all: Vec<&str> = names.iter().copied().chain(unknowns.iter().map(String::as_str)).collect();
    let value = print::affine(&program.params, names, &Affine::atom(atom.clone()));
    let bounds = format!("0 <= {} <= {}", print::affine(&program.params, &all, &remainder), divisor - Int::ONE);
    Floor { name, value, bounds }
}

/// `A·α + c`
struct Equations {
    matrix: Matrix,
    offset: Vec<Affine>,
}

impl Equations {
    fn new(definition: &Definition, subscripts: &[Affine], floors: &[Atom]) -> Self {
        let indices = (0..definition.indices.len()).map(|position| Atom::Index(position as u32));
        let columns: Vec<Atom> = indices.chain(floors.iter().cloned()).collect();
        let matrix = Matrix::from_fn(subscripts.len(), columns.len(), |row, column| {
            subscripts[row].coefficient(&columns[column])
        });
        let constant = |subscript: &Affine| {
            let known = subscript.terms().iter().filter(|(atom, _)| !columns.contains(atom));
            known.fold(Affine::constant(subscript.offset().clone()), |sum, (atom, factor)| {
                sum.add_scaled(factor, &Affine::atom(atom.clone()))
            })
        };
        Equations { matrix, offset: subscripts.iter().map(constant).collect() }
    }

    /// What `β` has to satisfy for a solution to exist: equations, and divisibility.
    fn conditions(
        &self,
        program: &Program,
        solution: &IntegerSolution,
        element: &[String],
    ) -> (Vec<String>, Vec<String>) {
        let names: Vec<&str> = element.iter().map(String::as_str).collect();
        let difference: Vec<Affine> =
            self.offset.iter().enumerate().map(|(row, offset)| Affine::index(row) - offset.clone()).collect();
        let product = |row: &[Int]| {
            row.iter().zip(&difference).fold(Affine::default(), |sum, (factor, part)| sum.add_scaled(factor, part))
        };
        let open = |constraint: Constraint| {
            (constraint.decided() != Some(true)).then(|| print::constraint(&program.params, &names, &constraint))
        };
        let zero = solution.cokernel.iter_rows().filter_map(|row| open(Constraint::zero(product(row))));
        let divisors = solution.smith.divisors().enumerate();
        let divisible = divisors
            .filter_map(|(row, divisor)| open(Constraint::zero(product(solution.smith.u.row(row)).remainder(divisor))));
        (zero.collect(), divisible.collect())
    }
}

/// The points that read an element, solved as derivation does.
fn cases(
    program: &Program,
    definition: &Definition,
    access: ExprId,
    tensor: TensorId,
    subscripts: &[Affine],
    element: &[String],
) -> Result<Vec<Case>, Diagnostic> {
    let spaces = Spaces { own: definition.indices.len(), batch: 0, rank: subscripts.len() };
    let mut context = program.size_context();
    for (dimension, extent) in program[tensor].extents.iter().enumerate() {
        context.extend(Range::extent(extent.clone()).constraints(dimension));
    }
    let names: Vec<&str> = definition.indices.iter().map(|index| index.name.as_str()).collect();
    let guarded = guard::guarded_accesses(&mut program.exprs.clone(), definition.body);
    let guards = guarded.into_iter().filter(|(id, _)| *id == access).flat_map(|(_, guards)| guards);
    let mut cases = Vec::new();
    for guard in guards {
        let gathered = gather(definition, &guard, subscripts, spaces, &context)?;
        let points = gathered.map(|gathered| points(program, definition, &gathered, element));
        let conditions =
            guard.iter().map(|constraint| print::constraint(&program.params, &names, constraint)).collect();
        cases.push(Case { guard, conditions, points });
    }
    Ok(cases)
}

fn points(program: &Program, definition: &Definition, gathered: &Gathered, element: &[String]) -> Points {
    let mut taken: HashSet<String> = element.iter().cloned().collect();
    let free: Vec<String> = gathered.free.iter().map(|name| names::fresh(name, &mut taken)).collect();
    let names: Vec<&str> = element.iter().chain(&free).map(String::as_str).collect();
    let all = |constraints: &[Constraint]| -> Vec<String> {
        constraints.iter().map(|constraint| print::constraint(&program.params, &names, constraint)).collect()
    };
    let values = definition.indices.iter().zip(&gathered.map);
    let values = values.map(|(index, value)| (index.name.clone(), print::affine(&program.params, &names, value)));
    let ranges = free.iter().zip(&gathered.ranges).map(|(name, bounds)| (name.clone(), range(program, &names, bounds)));
    Points {
        solved: values.filter(|(name, value)| name != value).collect(),
        free: ranges.collect(),
        conditions: all(&gathered.conditions),
        outer: all(&gathered.outer),
    }
}

/// A range as text; `names` are those of the indices.
pub(crate) fn range(program: &Program, names: &[&str], range: &Range) -> String {
    let one = |bound: &Affine| print::affine(&program.params, names, bound);
    let several = |bounds: &[Affine]| bounds.iter().map(one).collect::<Vec<_>>().join(", ");
    let low = if let [low] = &*range.low { one(low) } else { format!("max({})", several(&range.low)) };
    match &*range.high {
        [high] if high.as_index().is_none() => format!("{low}..{}", one(&high.shift(1))),
        [high] => format!("{low}..={}", one(high)),
        highs => format!("{low}..=min({})", several(highs)),
    }
}

/// Definitions as text, those whose names pass.
fn statements(program: &Program, pass: &dyn Fn(&str) -> bool) -> Result<Vec<String>, Diagnostic> {
    let passes = |statement: &Statement| match &statement.kind {
        StatementKind::Definition(definition) => pass(&definition.name.text),
        StatementKind::Param(_) | StatementKind::Input(_) | StatementKind::Output(_) => false,
    };
    let statements = print::ast(program, false)?.statements.into_iter().filter(passes);
    let single = |statement| Ast { statements: vec![statement], trailing_comments: Vec::new() };
    Ok(statements.map(|statement| crate::syntax::print(&single(statement)).trim_end().to_string()).collect())
}

/// What one access adds: the derivative of the named definition by a copy of the tensor that only this access reads.
fn contribution(
    program: &Program,
    owner: TensorId,
    holder: TensorId,
    access: ExprId,
) -> Result<Vec<String>, Diagnostic> {
    let Expr::Access(read, subscripts) = program.exprs[access].clone() else { unreachable!("an access") };
    let mut part = only(program, owner);
    // The mark is no letter, so that the name can't be taken.
    let marked = format!("{}'", program[read].name);
    let copy = part.add_tensor(Tensor { name: marked.clone(), kind: TensorKind::Input, ..program[read].clone() });
    let Program { definitions, exprs, .. } = &mut part;
    let reader = definitions.iter_mut().find(|one| one.tensor == holder).expect("part of its owner");
    reader.body = Rewriter::default().rewrite(exprs, reader.body, &mut Redirect { read, subscripts, copy });
    without_circle(&mut part, owner);
    let options = Options { wrt: Some(vec![marked]), ..Options::default() };
    let mut derivative = derive(&part, &options).map_err(|mut errors| errors.remove(0))?.program;
    for tensor in &mut derivative.tensors {
        tensor.name = tensor.name.replace('\'', "");
    }
    let result = derivative[derivative.outputs[0]].name.clone();
    let texts = statements(&derivative, &|name| program.tensor(name).is_none() || name == result)?;
    let adds = |text: String| if text.starts_with(&result) { text.replacen(" = ", " += ", 1) } else { text };
    Ok(texts.into_iter().map(adds).collect())
}

/// The program of one definition; whatever else it reads is an input.
fn only(program: &Program, owner: TensorId) -> Program {
    let mut part = program.clone();
    let mut kept = HashSet::from([owner]);
    for definition in program.definitions.iter().rev() {
        if kept.contains(&definition.tensor) {
            kept.extend(reads(program, definition).into_iter().filter(|&id| program[id].kind == TensorKind::Nested));
        }
    }
    part.definitions.retain(|definition| kept.contains(&definition.tensor));
    for (position, tensor) in part.tensors.iter_mut().enumerate() {
        if !kept.contains(&TensorId(position as u32)) {
            if tensor.kind == TensorKind::Nested {
                tensor.rank = 0;
            }
            tensor.kind = TensorKind::Input;
        }
    }
    part.outputs = vec![owner];
    part
}

/// What is left of the reads of a definition by itself are reads of an input.
fn without_circle(part: &mut Program, owner: TensorId) {
    if circles::circles(part).is_empty() {
        return;
    }
    let name = format!("{}''", part[owner].name);
    let copy = part.add_tensor(Tensor { name, kind: TensorKind::Input, ..part[owner].clone() });
    let mut rewriter = Rewriter::default();
    for definition in &mut part.definitions {
        definition.body = rewriter.rewrite(&mut part.exprs, definition.body, &mut Renamed { from: owner, to: copy });
    }
}

/// Lets one access read another tensor.
struct Redirect {
    read: TensorId,
    subscripts: Vec<Affine>,
    copy: TensorId,
}

impl Rules for Redirect {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        let hit = tensor == self.read && subscripts == self.subscripts;
        exprs.access(if hit { self.copy } else { tensor }, subscripts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reports(text: &str) -> Vec<AccessReport> {
        let program = crate::resolve(&crate::syntax::parse(text).unwrap(), &[]).unwrap().program;
        explain(&program, None, None).unwrap()
    }

    fn solved(report: &AccessReport) -> Vec<String> {
        let points = report.cases[0].points.as_ref().unwrap();
        points.solved.iter().map(|(name, value)| format!("{name} = {value}")).collect()
    }

    #[test]
    fn the_first_lattice_figure_of_the_paper() {
        let report = reports("input x[N]\nf[i in 0..7, j in 0..5] = if i - 2*j >= 0 then x[i - 2*j] else 0").remove(0);
        assert_eq!(report.matrix, Matrix::from_rows(&[&[1, -2]]));
        assert_eq!(report.solution.kernel, Matrix::from_rows(&[&[2], &[1]]));
        assert_eq!(report.solution.pseudo_inverse.numerators, Matrix::from_rows(&[&[1], &[0]]));
        assert_eq!((report.access.as_str(), report.columns.join(" ")), ("x[i - 2*j]", "i j".to_string()));
        assert_eq!(solved(&report), ["i = β + 2 * j"]);
    }

    #[test]
    fn a_stride_needs_divisibility() {
        let report = reports("input x[N]\nf[i in 0..(N - 1) // 2] = x[2*i + 1]").remove(0);
        assert_eq!(
            (report.offset[0].as_str(), report.divisibility.as_slice()),
            ("1", &["(β + 1) % 2 == 0".to_string()][..])
        );
        assert_eq!(solved(&report), ["i = β // 2"]);
    }

    #[test]
    fn a_diagonal_needs_equal_indices() {
        let report = reports("input x[N, N]\nf[i] = x[i, i]").remove(0);
        assert_eq!(report.equations, ["β1 == β2"]);
        assert_eq!(report.contribution, ["dx[i, j in 0..N] += if i == j then df[i] else 0"]);
    }

    #[test]
    fn floors_are_unknowns() {
        let report = reports("input x[N]\nf[i in 0..2*N] = x[i // 2]").remove(0);
        assert_eq!(report.columns, ["i", "q1"]);
        assert_eq!(
            (report.floors[0].value.as_str(), report.floors[0].bounds.as_str()),
            ("i // 2", "0 <= i - 2 * q1 <= 1")
        );
    }

    #[test]
    fn each_access_has_its_own_contribution() {
        let reports = reports("input x[N]\nf[i in 0..N - 1] = x[i] * x[i + 1]");
        let texts: Vec<&str> = reports.iter().map(|report| report.contribution[0].as_str()).collect();
        assert_eq!(texts.len(), 2);
        assert!(texts.iter().all(|text| text.starts_with("dx[i") && text.contains(" += ")), "{texts:?}");
        assert_ne!(texts[0], texts[1]);
    }

    #[test]
    fn restrictions_keep_the_numbers() {
        let ast = crate::syntax::parse("input x[N], y[N]\nf[i] = x[i] + y[i]").unwrap();
        let program = crate::resolve(&ast, &[]).unwrap().program;
        let numbers = |wrt: &str| {
            let reports = explain(&program, Some(&[wrt.to_string()]), None).unwrap();
            reports.iter().map(|report| report.number).collect::<Vec<_>>()
        };
        assert_eq!((numbers("x"), numbers("y")), (vec![1], vec![2]));
        assert!(explain(&program, Some(&["z".to_string()]), None).is_err());
    }
}
