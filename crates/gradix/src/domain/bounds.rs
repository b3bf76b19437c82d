//! No program reads outside a tensor: subscripts that can, with the index values that do it.

use crate::diagnostic::Diagnostic;
use crate::domain::extent;
use crate::domain::guard::{self, Guard, Guarded};
use crate::domain::system::{self, Facts, Found};
use crate::program::{
    Affine, Atom, Constraint, Definition, Expr, ExprId, Fold, ParamId, Places, Program, Relation, TensorId, TensorKind,
};
use gradix_int::Int;

/// The effort spent to find index values for a message or to rule them out.
const SEARCH_LIMIT: usize = 20_000;

/// A subscript that leaves its tensor.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The tensor in whose definition it stands.
    pub definition: TensorId,
    /// The access.
    pub access: ExprId,
    /// Which subscript.
    pub dimension: usize,
    /// Its value.
    pub value: Int,
    /// Index values for which it happens, by position.
    pub indices: Vec<(usize, Int)>,
    /// The sizes for which it happens.
    pub sizes: Vec<(ParamId, Int)>,
}

/// Subscripts that leave their tensors for all sizes that the context allows and for which no argument is empty: for those
/// that let the definition be computed at all, and for those for which no result is empty.
pub fn certain(program: &Program, context: &[Constraint]) -> Vec<Violation> {
    let mut found = Vec::new();
    let filled = |id: TensorId| program[id].extents.iter().map(|extent| Constraint::non_negative(extent.shift(-1)));
    let nonempty: Vec<Constraint> = context.iter().cloned().chain(program.inputs().flat_map(filled)).collect();
    let results = program.outputs.iter().flat_map(|id| filled(*id));
    let given: Vec<Constraint> = nonempty.iter().cloned().chain(results).collect();
    for (definition, place) in open_places(program, context) {
        for side in place.outside(program) {
            let rows = [context, &place.domain, &[side]].concat();
            if happens_always(&rows, &[nonempty.as_slice(), &place.reached].concat(), &given) {
                found.extend(witness(definition, &place, &rows));
                break;
            }
        }
    }
    found
}

/// What a subscript asks of the sizes.
#[derive(Clone, Debug)]
pub struct Requirement {
    /// What they have to satisfy.
    pub row: Constraint,
    /// The tensor in whose definition the subscript stands.
    definition: TensorId,
    access: ExprId,
}

impl Requirement {
    /// A note at its place where it keeps a size small, which is seldom meant.
    pub fn note(&self, program: &Program, places: &Places) -> Option<Diagnostic> {
        let [(Atom::Param(ParamId(size)), factor)] = self.row.affine.terms() else { return None };
        if *factor > Int::ZERO {
            return None;
        }
        let span = *places.accesses.get(&(self.definition, self.access))?;
        let most = self.row.affine.offset().clone() / -factor.clone();
        let message = format!("this subscript requires {} <= {most}", program.params[*size as usize].name);
        Some(Diagnostic::error("out-of-bounds", message).as_note().at(span).hint(STAY_INSIDE))
    }
}

const STAY_INSIDE: &str =
    "narrow the range of an index, guard the access with 'if', or use pad, clamp, wrap or reflect";

/// Adds to the facts of a program what its subscripts ask of the sizes, and gives it. `known` are facts of that kind already.
pub fn require(program: &mut Program, known: &[Constraint]) -> Vec<Requirement> {
    let found = requirements(program, &program.size_context());
    let rows: Vec<Constraint> = found.iter().map(|asked| asked.row.clone()).collect();
    add_facts(program, &[known, &rows].concat());
    found
}

/// Adds facts about sizes. Of `N >= 2` and `N >= 1` the first is enough, and that a size is not negative goes without saying
/// where another lower bound says so.
fn add_facts(program: &mut Program, new: &[Constraint]) {
    program.facts.extend(new.iter().cloned());
    program.facts.sort();
    program.facts.dedup();
    let all = program.facts.clone();
    let is_weaker = |fact: &Constraint, other: &Constraint| {
        [fact, other].iter().all(|row| row.relation == Relation::NonNegative)
            && fact.affine.terms() == other.affine.terms()
            && fact.affine.offset() > other.affine.offset()
    };
    program.facts.retain(|fact| !all.iter().any(|other| is_weaker(fact, other)));
    for id in (0..program.params.len()).map(|p| ParamId(p as u32)) {
        let sign = Constraint::non_negative(Affine::param(id));
        let others: Vec<Constraint> = program.facts.iter().filter(|f| **f != sign).cloned().collect();
        let bounded = others.iter().any(|fact| new.contains(fact) && is_lower_bound(fact, id));
        if bounded && system::implies(&others, &sign) {
            program.facts = others;
        }
    }
}

/// Whether a fact bounds this size from below by sizes declared before it.
fn is_lower_bound(fact: &Constraint, id: ParamId) -> bool {
    let mut latest = None;
    fact.affine.visit_atoms(&mut |atom| {
        if let Atom::Param(p) = atom {
            latest = latest.max(Some(*p));
        }
    });
    latest == Some(id) && fact.affine.coefficient(&Atom::Param(id)) > Int::ZERO
}

/// What the sizes have to satisfy lest a subscript leave its tensor, as far as single constraints can say it.
///
/// ```text
/// f[i in 0..M] = g[2 - 2*i]          with g[3]: M <= 2
/// y[i in 0..N] = x[i + 1]            with x[M]: M >= N + 1 or N <= 0, which is no constraint
/// ```
pub fn requirements(program: &Program, context: &[Constraint]) -> Vec<Requirement> {
    let (mut known, mut found) = (context.to_vec(), Vec::new());
    // What one place requires can leave a single constraint of what another does.
    loop {
        let before = found.len();
        require_each(program, &mut known, &mut found);
        if found.len() == before {
            return found;
        }
    }
}

fn require_each(program: &Program, known: &mut Vec<Constraint>, found: &mut Vec<Requirement>) {
    for (definition, place) in open_places(program, known) {
        for side in place.outside(program) {
            let rows = [known.as_slice(), &place.domain, std::slice::from_ref(&side)].concat();
            if let Some(row) = single_requirement(&rows, known)
                // Rows say only a part of what a size is that is the smallest or largest of others.
                && !extent::mentions_derived_size(program, &row.affine)
                && !system::is_empty(&[known.as_slice(), std::slice::from_ref(&row)].concat())
            {
                known.push(row.clone());
                found.push(Requirement { row, definition: definition.tensor, access: place.access });
            }
        }
    }
}

/// The one constraint on sizes that is the opposite of 'there are indices for which the rows hold'.
fn single_requirement(rows: &[Constraint], known: &[Constraint]) -> Option<Constraint> {
    let is_index = |atom: &Atom| matches!(atom, Atom::Index(_));
    let needed = system::prune(system::project(rows, &is_index).ok()?, known)?;
    let [single] = needed.as_slice() else { return None };
    let enough = system::project_inside(rows, &is_index)?;
    let given = Facts::new([known, &needed].concat());
    let exact = single.relation == Relation::NonNegative && enough.iter().all(|row| given.implies(row));
    exact.then(|| single.negated().remove(0))
}

/// The subscripts of a program that leave their tensors for some sizes, as far as can be told without knowing them.
pub struct Open<'a> {
    program: &'a Program,
    places: Vec<(&'a Definition, Place)>,
}

impl Open<'_> {
    /// Those of a program, but for what is known of its sizes only because of its subscripts.
    pub fn of<'a>(program: &'a Program, implied: &[Constraint]) -> Open<'a> {
        let context: Vec<Constraint> = program.size_context().into_iter().filter(|c| !implied.contains(c)).collect();
        Open { program, places: open_places(program, &context) }
    }

    /// Subscripts that leave their tensors for these sizes, one for each param.
    pub fn at_sizes(&self, sizes: &[Int]) -> Vec<Violation> {
        let mut found = Vec::new();
        for (definition, place) in &self.places {
            for side in place.outside(self.program) {
                let rows: Vec<Constraint> = place.domain.iter().chain([&side]).map(|c| at(c, sizes)).collect();
                if let Some(mut violation) = witness(definition, place, &rows) {
                    violation.sizes = sizes.iter().enumerate().map(|(i, v)| (ParamId(i as u32), v.clone())).collect();
                    found.push(violation);
                    break;
                }
            }
        }
        found
    }
}

/// The constraint with numbers for the params.
pub fn at(constraint: &Constraint, sizes: &[Int]) -> Constraint {
    constraint.rebuilt(constraint.affine.substitute(&mut |atom| match atom {
        Atom::Param(ParamId(p)) => Some(Affine::constant(sizes[*p as usize].clone())),
        Atom::Index(_) | Atom::Floor(..) => None,
    }))
}

/// A subscript and where it is evaluated.
struct Place {
    access: ExprId,
    dimension: usize,
    tensor: TensorId,
    subscript: Affine,
    domain: Guard,
    /// The domain of the definition, whatever conditions stand around the access.
    reached: Guard,
}

impl Place {
    fn outside(&self, program: &Program) -> [Constraint; 2] {
        let extent = program[self.tensor].extents[self.dimension].clone();
        [
            Constraint::at_most(self.subscript.clone(), Affine::constant(-1)),
            Constraint::at_most(extent, self.subscript.clone()),
        ]
    }
}

/// The subscripts that are not known to stay inside for all sizes.
fn open_places<'a>(program: &'a Program, context: &[Constraint]) -> Vec<(&'a Definition, Place)> {
    let mut open = Vec::new();
    let mut exprs = program.exprs.clone();
    for definition in &program.definitions {
        let mut domain: Option<(Guard, Guarded)> = None;
        for (access, guards) in guard::guarded_accesses(&mut exprs, definition.body) {
            let Expr::Access(tensor, subscripts) = &program.exprs[access] else { continue };
            if program[*tensor].kind == TensorKind::Nested {
                continue;
            }
            for (dimension, subscript) in subscripts.iter().enumerate() {
                if runs_over_extent(program, definition, *tensor, dimension, subscript) {
                    continue;
                }
                let (reached, known) = domain.get_or_insert_with(|| {
                    let reached = definition.domain();
                    let known = Guarded::new([context, &reached].concat());
                    (reached, known)
                });
                let needed = inside(subscript, &program[*tensor].extents[dimension]);
                for guard in &guards {
                    if needed.iter().all(|row| known.under(guard).implies(row)) {
                        continue;
                    }
                    let (domain, reached) = ([reached.as_slice(), guard].concat(), reached.clone());
                    let (tensor, subscript) = (*tensor, subscript.clone());
                    open.push((definition, Place { access, dimension, tensor, subscript, domain, reached }));
                }
            }
        }
    }
    open
}

/// What a subscript has to satisfy.
pub fn inside(subscript: &Affine, extent: &Affine) -> [Constraint; 2] {
    [Constraint::non_negative(subscript.clone()), Constraint::at_most(subscript.clone(), extent.shift(-1))]
}

/// Whether every access in an expression stays inside its tensor wherever the domain holds.
pub fn stays_inside(program: &mut Program, root: ExprId, domain: &[Constraint]) -> bool {
    let accesses = guard::guarded_accesses(&mut program.exprs, root);
    accesses.iter().all(|(access, guards)| {
        let Expr::Access(tensor, subscripts) = &program.exprs[*access] else { return true };
        let needed: Vec<Constraint> = match program[*tensor].kind {
            TensorKind::Nested => {
                let definition = program.definition_of(*tensor).expect("a nested tensor is defined");
                definition.output_domain().iter().map(|c| c.with_indices(subscripts)).collect()
            }
            TensorKind::Input | TensorKind::Defined => {
                let pairs = subscripts.iter().zip(&program[*tensor].extents);
                pairs.flat_map(|(subscript, extent)| inside(subscript, extent)).collect()
            }
        };
        let holds = |guard: &Guard| {
            let known = Facts::new([domain, guard].concat());
            needed.iter().all(|row| known.implies(row))
        };
        guards.iter().all(holds)
    })
}

/// Whether indices and sizes are found, or at least not ruled out, for which an access to an argument or a definition
/// leaves its tensor.
pub fn can_leave(program: &mut Program, root: ExprId, domain: &[Constraint]) -> bool {
    let rows = leaving(program, root, domain);
    rows.iter().any(|rows| !matches!(system::find(rows, SEARCH_LIMIT), Found::Nothing))
}

/// Whether an access below `root` leaves its tensor at sizes at which none below `other` does; a few of these sizes are tried.
pub fn leaves_alone(program: &mut Program, root: ExprId, other: ExprId, domain: &[Constraint]) -> bool {
    leaving(program, root, domain).iter().take(MAX_SIZES_TRIED).any(|rows| {
        let Found::Values(values) = system::find(rows, SEARCH_LIMIT) else { return false };
        let of_size = |(atom, value): (&Atom, &Int)| {
            matches!(atom, Atom::Param(_))
                .then(|| Constraint::equal(Affine::atom(atom.clone()), Affine::constant(value.clone())))
        };
        let mut sizes: Vec<Constraint> = values.iter().filter_map(of_size).collect();
        sizes.sort();
        !can_leave(program, other, &[domain, &sizes].concat())
    })
}

/// The most sizes at which [`leaves_alone`] compares.
const MAX_SIZES_TRIED: usize = 6;

/// For each side of each subscript of an access to an argument or a definition, and each case in which it is evaluated, the rows
/// that say that it leaves its tensor there.
fn leaving(program: &mut Program, root: ExprId, domain: &[Constraint]) -> Vec<Vec<Constraint>> {
    let mut found = Vec::new();
    for (access, guards) in guard::guarded_accesses(&mut program.exprs, root) {
        let Expr::Access(tensor, subscripts) = &program.exprs[access] else { continue };
        let needed = subscripts.iter().zip(&program[*tensor].extents).flat_map(|(s, extent)| inside(s, extent));
        let outside: Vec<Constraint> = needed.flat_map(|row| row.negated()).collect();
        for guard in &guards {
            found.extend(outside.iter().map(|row| [domain, guard, std::slice::from_ref(row)].concat()));
        }
    }
    found
}

fn runs_over_extent(
    program: &Program,
    definition: &Definition,
    tensor: TensorId,
    dimension: usize,
    subscript: &Affine,
) -> bool {
    let Some(position) = subscript.as_index() else { return false };
    let range = &definition.indices[position].range;
    range.low.contains(&Affine::constant(0)) && range.high.contains(&program[tensor].extents[dimension].shift(-1))
}

/// Whether there are indices for which the rows hold: for all sizes for which there are some in the domain, and for all
/// that are `given`.
fn happens_always(rows: &[Constraint], domain: &[Constraint], given: &[Constraint]) -> bool {
    let is_index = |atom: &Atom| matches!(atom, Atom::Index(_));
    let (Some(enough), Ok(reached)) = (system::project_inside(rows, &is_index), system::project(domain, &is_index))
    else {
        return false;
    };
    let holds = |row: &Constraint| system::implies(&reached, row) && system::implies(given, row);
    !system::is_empty(given) && !system::is_empty(rows) && enough.iter().all(holds)
}

fn witness(definition: &Definition, place: &Place, rows: &[Constraint]) -> Option<Violation> {
    let Found::Values(values) = system::find(rows, SEARCH_LIMIT) else { return None };
    let number = |atom: &Atom| values.get(atom).cloned().unwrap_or(Int::ZERO);
    let indices = (0..definition.indices.len()).filter(|&i| place.subscript.uses_index(i));
    let mut sizes = Vec::new();
    for (atom, value) in &values {
        if let Atom::Param(p) = atom {
            sizes.push((*p, value.clone()));
        }
    }
    sizes.sort();
    Some(Violation {
        definition: definition.tensor,
        access: place.access,
        dimension: place.dimension,
        value: place.subscript.evaluate(&number),
        indices: indices.map(|i| (i, number(&Atom::Index(i as u32)))).collect(),
        sizes,
    })
}

impl Violation {
    /// The message, at its place in the source if that is known.
    pub fn describe(&self, program: &Program, places: &Places) -> Diagnostic {
        let diagnostic = self.diagnostic(program);
        let Some(&span) = places.accesses.get(&(self.definition, self.access)) else { return diagnostic };
        if matches!(&program.exprs[self.access], Expr::Access(tensor, _) if *tensor == self.definition) {
            let hint =
                "a recurrence needs its first elements: 'if t == 0 then … else … h[t - 1] …', or 'pad(h[t - 1], …)'";
            return Diagnostic { hints: vec![hint.to_string()], ..diagnostic.at(span) };
        }
        let hint = match places.folded.get(&(span, self.dimension)) {
            Some(Fold::Wrap) => {
                "'wrap' reaches one extent far: for an extent n that is not fixed, its argument stays in -n..2*n"
            }
            Some(Fold::Reflect) => {
                "'reflect' mirrors once: for an extent n, its argument stays in -(n - 1)..=2*(n - 1)"
            }
            Some(Fold::Clamp) | None => return diagnostic.at(span),
        };
        Diagnostic { hints: vec![hint.to_string()], ..diagnostic.at(span) }
    }

    fn diagnostic(&self, program: &Program) -> Diagnostic {
        let definition = program.definition_of(self.definition).expect("the violation is in a definition");
        let Expr::Access(tensor, subscripts) = &program.exprs[self.access] else { unreachable!("an access") };
        let name = &program[*tensor].name;
        let names: Vec<&str> = definition.indices.iter().map(|i| i.name.as_str()).collect();
        let subscript = crate::program::print::affine(&program.params, &names, &subscripts[self.dimension]);
        let extent = &program[*tensor].extents[self.dimension];
        if let Some(number) = subscripts[self.dimension].as_constant().filter(|number| **number < Int::ZERO) {
            let from_end = crate::program::print::affine(&program.params, &[], &extent.shift(number.clone()));
            let message =
                format!("subscript {} of '{name}' is {number}, and subscripts begin at 0", self.dimension + 1);
            return Diagnostic::error("out-of-bounds", message)
                .hint(format!("counted from the end, write '{from_end}'"));
        }
        let at = |atom: &Atom| match atom {
            Atom::Param(p) => self.sizes.iter().find(|(q, _)| q == p).map_or(Int::ZERO, |(_, v)| v.clone()),
            Atom::Index(_) | Atom::Floor(..) => Int::ZERO,
        };
        let mut values: Vec<String> = self.indices.iter().map(|(i, v)| format!("{} = {v}", names[*i])).collect();
        values.extend(
            self.sizes
                .iter()
                .filter(|(p, _)| relevant(extent, subscripts, *p))
                .map(|(p, v)| format!("{} = {v}", program.params[p.0 as usize].name)),
        );
        let place = if values.is_empty() { String::new() } else { format!(" for {}", values.join(", ")) };
        let message = format!(
            "subscript {} of '{name}', {subscript}, is {}{place}, outside its extent {}",
            self.dimension + 1,
            self.value,
            match extent.as_constant() {
                Some(number) => number.to_string(),
                None => format!(
                    "{} = {}",
                    crate::program::print::affine(&program.params, &[], extent),
                    extent.evaluate(&at)
                ),
            },
        );
        Diagnostic::error("out-of-bounds", message).hint(STAY_INSIDE)
    }
}

fn relevant(extent: &Affine, subscripts: &[Affine], param: ParamId) -> bool {
    let mut found = false;
    for affine in subscripts.iter().chain([extent]) {
        affine.visit_atoms(&mut |atom| found |= *atom == Atom::Param(param));
    }
    found
}
