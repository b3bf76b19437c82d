//! The order in which the elements of a recurrence are computed, found and proven for all sizes.
//!
//! Definitions that read each other in a circle are ordered level by level. At a level each takes one of its indices, all
//! rising or all falling, such that no read is at a later value. Reads at an earlier value are settled; what still forms
//! circles at the same value is ordered by a further index, on its own.

use crate::diagnostic::Diagnostic;
use crate::domain::guard;
use crate::domain::system::{self, Found};
use crate::program::print;
use crate::program::{
    Affine, Atom, Constraint, Definition, Expr, ExprId, Places, Program, TensorId, TensorKind, circles, distinct,
};
use gradix_int::Int;
use std::collections::HashMap;

/// The most assignments of indices that are looked at for one level.
const MAX_ASSIGNMENTS: usize = 4_096;
/// The effort spent to find elements that depend on themselves.
const SEARCH_LIMIT: usize = 20_000;

/// What is computed, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// All elements of a definition, by number, that the levels around it leave open.
    Definition(usize),
    /// A circle of definitions, value by value of one index of each.
    Level(Level),
}

/// Definitions that go through the values of an index together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Each definition, by number, with the position of its index.
    pub members: Vec<(usize, usize)>,
    /// Whether the values fall.
    pub falling: bool,
    /// What is done for each value.
    pub stages: Vec<Stage>,
    /// The reads at an earlier value, each with why it is earlier: `h[t - 1]: t - 1 < t`.
    pub reasons: Vec<String>,
}

/// The recurrences among stages as text: what each goes through, and why every read is earlier.
pub fn explained(program: &Program, stages: &[Stage]) -> Vec<String> {
    let mut lines = Vec::new();
    for stage in stages {
        let Stage::Level(Level { members, falling, stages, reasons }) = stage else { continue };
        let name = |number: &usize| program[program.definitions[*number].tensor].name.as_str();
        let names: Vec<&str> = members.iter().map(|(number, _)| name(number)).collect();
        let mut indices: Vec<&str> =
            members.iter().map(|&(number, index)| program.definitions[number].indices[index].name.as_str()).collect();
        indices.dedup();
        let direction = if *falling { "falling" } else { "rising" };
        lines.push(format!("{}: {} {direction}", names.join(", "), indices.join(", ")));
        lines.extend(reasons.iter().map(|reason| format!("  {reason}")));
        lines.extend(
            explained(program, stages).into_iter().map(|line| format!("  then {line}").replace("  then   ", "    ")),
        );
    }
    lines
}

/// The order of all named definitions of a program.
pub fn order(program: &Program) -> Result<Vec<Stage>, Unordered> {
    let mut stages = Vec::new();
    for unit in circles::units(program) {
        let named = |number: &usize| program[program.definitions[*number].tensor].kind == TensorKind::Defined;
        let named: Vec<usize> = unit.into_iter().filter(named).collect();
        stages.extend(order_circle(program, &named)?);
    }
    Ok(stages)
}

/// Whether another definition can go along with a level by one of its indices: at no point does it read what a later step
/// computes.
pub fn follows(program: &Program, level: &Level, reader: usize, index: usize) -> bool {
    let mut assignment: Assignment = level.members.iter().copied().collect();
    let numbers = assignment.keys().map(|&number| (program.definitions[number].tensor, number)).collect();
    assignment.insert(reader, index);
    let reads = reads_of(program, &[reader], numbers);
    let search = Search { program, context: program.size_context(), reads: &reads };
    (0..reads.len()).all(|read| search.is_never_later(read, &[], &assignment, level.falling))
}

/// The order of definitions that may read each other.
fn order_circle(program: &Program, members: &[usize]) -> Result<Vec<Stage>, Unordered> {
    let reads = reads_within(program, members);
    if reads.is_empty() {
        return Ok(members.iter().map(|&number| Stage::Definition(number)).collect());
    }
    let context = program.size_context();
    let mut search = Search { program, context, reads: &reads };
    let all: Vec<(usize, Vec<Constraint>)> = (0..reads.len()).map(|read| (read, Vec::new())).collect();
    let taken = HashMap::new();
    search.stages(members, &all, &taken).ok_or_else(|| search.explain())
}

/// A read of one named definition by another, or itself, in the same circle.
#[derive(Clone, Debug)]
struct Read {
    /// By number.
    reader: usize,
    /// By number.
    target: usize,
    /// The tensor in whose definition it stands, which may be nested in the reader.
    owner: TensorId,
    access: ExprId,
    /// In the indices of the reader, and then those of reductions around it.
    subscripts: Vec<Affine>,
    /// Where it is evaluated.
    points: Vec<Constraint>,
    /// The names of all indices.
    names: Vec<String>,
}

fn reads_within(program: &Program, members: &[usize]) -> Vec<Read> {
    reads_of(program, members, members.iter().map(|&n| (program.definitions[n].tensor, n)).collect())
}

/// All reads of some tensors by some definitions.
fn reads_of(program: &Program, readers: &[usize], numbers: HashMap<TensorId, usize>) -> Vec<Read> {
    let mut walk = Walk { program, numbers, exprs: program.exprs.clone(), found: Vec::new(), reader: 0 };
    for &number in readers {
        let definition = &program.definitions[number];
        walk.reader = number;
        let outputs: Vec<Affine> = (0..definition.rank).map(Affine::index).collect();
        let names = definition.indices[..definition.rank].iter().map(|index| index.name.clone()).collect();
        walk.definition(definition, outputs, Vec::new(), names);
    }
    // Of a condition such as `i != 0`, one case may never happen.
    let context = program.size_context();
    walk.found.retain(|read| !system::is_empty(&[&context, read.points.as_slice()].concat()));
    walk.found
}

/// Follows reads through nested definitions.
struct Walk<'a> {
    program: &'a Program,
    numbers: HashMap<TensorId, usize>,
    exprs: crate::program::Exprs,
    found: Vec<Read>,
    reader: usize,
}

impl Walk<'_> {
    /// The reads of a definition whose outputs are given in the indices of the reader, which have these names so far.
    fn definition(
        &mut self,
        definition: &Definition,
        outputs: Vec<Affine>,
        known: Vec<Constraint>,
        mut names: Vec<String>,
    ) {
        let mut map = outputs;
        for index in &definition.indices[definition.rank..] {
            map.push(Affine::index(names.len()));
            names.push(index.name.clone());
        }
        let mut points = known;
        points.extend(definition.domain().iter().map(|row| row.with_indices(&map)));
        for (access, guards) in guard::guarded_accesses(&mut self.exprs, definition.body) {
            let Expr::Access(tensor, subscripts) = self.exprs[access].clone() else { continue };
            let subscripts: Vec<Affine> = subscripts.iter().map(|s| s.with_indices(&map)).collect();
            for guard in &guards {
                let rows = guard.iter().map(|row| row.with_indices(&map));
                let points: Vec<Constraint> = points.iter().cloned().chain(rows).collect();
                self.access((definition.tensor, access), tensor, &subscripts, points, &names);
            }
        }
    }

    fn access(
        &mut self,
        (owner, access): (TensorId, ExprId),
        tensor: TensorId,
        subscripts: &[Affine],
        points: Vec<Constraint>,
        names: &[String],
    ) {
        if self.program[tensor].kind == TensorKind::Nested {
            let nested = self.program.definition_of(tensor).expect("a nested tensor is defined");
            return self.definition(nested, subscripts.to_vec(), points, names.to_vec());
        }
        if let Some(&target) = self.numbers.get(&tensor) {
            let (reader, subscripts, names) = (self.reader, subscripts.to_vec(), names.to_vec());
            self.found.push(Read { reader, target, owner, access, subscripts, points, names });
        }
    }
}

/// The index that each definition takes at a level.
type Assignment = HashMap<usize, usize>;

struct Search<'a> {
    program: &'a Program,
    context: Vec<Constraint>,
    reads: &'a [Read],
}

impl Search<'_> {
    /// An order for definitions of which these reads are still open, each with what holds where it is at the same values of
    /// all outer levels; `taken` are the indices of these levels.
    fn stages(
        &mut self,
        members: &[usize],
        open: &[(usize, Vec<Constraint>)],
        taken: &HashMap<usize, Vec<usize>>,
    ) -> Option<Vec<Stage>> {
        let place: HashMap<usize, usize> = members.iter().enumerate().map(|(place, &m)| (m, place)).collect();
        let mut edges = vec![Vec::new(); members.len()];
        for (read, _) in open {
            edges[place[&self.reads[*read].reader]].push(place[&self.reads[*read].target]);
        }
        let component = circles::components(&edges);
        let mut stages = Vec::new();
        for first in reading_order(&edges, &component) {
            let circle: Vec<usize> =
                (0..members.len()).filter(|&p| component[p] == first).map(|p| members[p]).collect();
            let within = |read: &usize| {
                let Read { reader, target, .. } = &self.reads[*read];
                circle.contains(reader) && circle.contains(target)
            };
            let inner: Vec<(usize, Vec<Constraint>)> = open.iter().filter(|(r, _)| within(r)).cloned().collect();
            match inner.is_empty() {
                true => stages.extend(circle.iter().map(|&number| Stage::Definition(number))),
                false => stages.push(Stage::Level(self.level(&circle, &inner, taken)?)),
            }
        }
        Some(stages)
    }

    /// The best level for a circle: the one that settles the most reads, if what is left can be ordered.
    fn level(
        &mut self,
        members: &[usize],
        open: &[(usize, Vec<Constraint>)],
        taken: &HashMap<usize, Vec<usize>>,
    ) -> Option<Level> {
        let mut candidates = Vec::new();
        for falling in [false, true] {
            let mut known = HashMap::new();
            for assignment in self.assignments(members, open, taken, falling, &mut known) {
                let settled =
                    |(read, equal): &&(usize, Vec<Constraint>)| self.is_earlier(*read, equal, &assignment, falling);
                let left: Vec<_> = open.iter().filter(|read| !settled(read)).cloned().collect();
                if left.len() < open.len() {
                    candidates.push((left, falling, assignment));
                }
            }
        }
        candidates.sort_by_key(|(left, ..)| left.len());
        candidates.into_iter().find_map(|(left, falling, assignment)| {
            let is_left = |read: usize| left.iter().any(|(other, _)| *other == read);
            let settled = open.iter().map(|(read, _)| *read).filter(|read| !is_left(*read));
            let reasons = distinct(settled.map(|read| self.reason(read, &assignment, falling)));
            let left: Vec<(usize, Vec<Constraint>)> = left
                .into_iter()
                .map(|(read, mut equal)| {
                    let (own, other) = self.values(read, &assignment);
                    equal.push(Constraint::equal(own, other));
                    (read, equal)
                })
                .collect();
            let mut taken = taken.clone();
            assignment.iter().for_each(|(&member, &index)| taken.entry(member).or_default().push(index));
            let stages = self.stages(members, &left, &taken)?;
            let members = members.iter().map(|&member| (member, assignment[&member])).collect();
            Some(Level { members, falling, stages, reasons })
        })
    }

    /// Why a read is earlier, as text.
    fn reason(&self, read: usize, assignment: &Assignment, falling: bool) -> String {
        let Read { target, subscripts, names, .. } = &self.reads[read];
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let shown = |affine: &Affine| print::affine(&self.program.params, &names, affine);
        let (own, other) = self.values(read, assignment);
        let subscripts: Vec<String> = subscripts.iter().map(shown).collect();
        let name = &self.program[self.program.definitions[*target].tensor].name;
        let sign = if falling { ">" } else { "<" };
        format!("{name}[{}]: {} {sign} {}", subscripts.join(", "), shown(&other), shown(&own))
    }

    /// Every way to give each definition an index such that no read is at a later value.
    fn assignments(
        &self,
        members: &[usize],
        open: &[(usize, Vec<Constraint>)],
        taken: &HashMap<usize, Vec<usize>>,
        falling: bool,
        known: &mut HashMap<(usize, usize, usize), bool>,
    ) -> Vec<Assignment> {
        let mut partial = vec![Assignment::new()];
        for member in self.connected(members, open) {
            let rank = self.program.definitions[member].rank;
            let free: Vec<usize> = (0..rank).filter(|i| !taken.get(&member).is_some_and(|t| t.contains(i))).collect();
            let mut extended = Vec::new();
            for assignment in &partial {
                for &index in &free {
                    let mut with = assignment.clone();
                    with.insert(member, index);
                    let fits =
                        open.iter().filter(|(read, _)| self.touches(*read, member, &with)).all(|(read, equal)| {
                            let Read { reader, target, .. } = &self.reads[*read];
                            let key = (*read, with[reader], with[target]);
                            *known.entry(key).or_insert_with(|| self.is_never_later(*read, equal, &with, falling))
                        });
                    if fits && extended.len() < MAX_ASSIGNMENTS {
                        extended.push(with);
                    }
                }
            }
            partial = extended;
        }
        partial
    }

    /// The members such that each, where that is possible, reads one before it or is read by it: so choices are ruled out early.
    fn connected(&self, members: &[usize], open: &[(usize, Vec<Constraint>)]) -> Vec<usize> {
        let mut order: Vec<usize> = Vec::new();
        while order.len() < members.len() {
            let rest = || members.iter().copied().filter(|member| !order.contains(member));
            let meets = |member: &usize| {
                open.iter().map(|(read, _)| &self.reads[*read]).any(|Read { reader, target, .. }| {
                    reader == member && order.contains(target) || target == member && order.contains(reader)
                })
            };
            let next = rest().find(meets).or_else(|| rest().next());
            order.extend(next);
        }
        order
    }

    /// Whether a read is of or by a member, and both its ends have an index.
    fn touches(&self, read: usize, member: usize, assignment: &Assignment) -> bool {
        let Read { reader, target, .. } = &self.reads[read];
        let complete = assignment.contains_key(reader) && assignment.contains_key(target);
        complete && (*reader == member || *target == member)
    }

    /// The value of the level at the reader, and at what it reads.
    fn values(&self, read: usize, assignment: &Assignment) -> (Affine, Affine) {
        let Read { reader, target, subscripts, .. } = &self.reads[read];
        (Affine::index(assignment[reader]), subscripts[assignment[target]].clone())
    }

    fn is_never_later(&self, read: usize, equal: &[Constraint], assignment: &Assignment, falling: bool) -> bool {
        let (own, other) = self.values(read, assignment);
        let later =
            if falling { Constraint::at_most(other.shift(1), own) } else { Constraint::at_most(own.shift(1), other) };
        self.is_empty(read, equal, later)
    }

    fn is_earlier(&self, read: usize, equal: &[Constraint], assignment: &Assignment, falling: bool) -> bool {
        let (own, other) = self.values(read, assignment);
        let not_earlier = if falling { Constraint::at_most(other, own) } else { Constraint::at_most(own, other) };
        self.is_empty(read, equal, not_earlier)
    }

    fn is_empty(&self, read: usize, equal: &[Constraint], row: Constraint) -> bool {
        system::is_empty(&[&self.context, &self.reads[read].points, equal, &[row]].concat())
    }

    /// What is wrong: elements that depend on themselves, or else a read for which no index will do.
    fn explain(&self) -> Unordered {
        let pairs = (0..self.reads.len())
            .flat_map(|a| std::iter::once(vec![a]).chain((0..self.reads.len()).map(move |b| vec![a, b])));
        let mut chains: Vec<Vec<usize>> = pairs.collect();
        chains.sort_by_key(Vec::len);
        if let Some((chain, elements)) =
            chains.into_iter().find_map(|chain| Some((chain.clone(), self.around(&chain)?)))
        {
            let Read { owner, access, .. } = self.reads[chain[0]];
            return Unordered { owner, access, elements };
        }
        let hopeless = |read: &usize| {
            let Read { reader, target, .. } = self.reads[*read];
            let ranks = [reader, target].map(|number| self.program.definitions[number].rank);
            let pairs = (0..ranks[0]).flat_map(|own| (0..ranks[1]).map(move |other| (own, other)));
            !pairs.into_iter().filter(|(own, other)| reader != target || own == other).any(|(own, other)| {
                let assignment = Assignment::from([(target, other), (reader, own)]);
                [false, true].into_iter().any(|falling| self.is_never_later(*read, &[], &assignment, falling))
            })
        };
        let worst = (0..self.reads.len()).find(hopeless).unwrap_or(0);
        let Read { owner, access, .. } = self.reads[worst];
        Unordered { owner, access, elements: Vec::new() }
    }

    /// Elements each of which is read by the one before, and the first by the last, along these reads.
    fn around(&self, chain: &[usize]) -> Option<Vec<(TensorId, Vec<Int>)>> {
        let closed =
            |place: usize| self.reads[chain[place]].target == self.reads[chain[(place + 1) % chain.len()]].reader;
        if !(0..chain.len()).all(closed) {
            return None;
        }
        let offsets: Vec<usize> = (0..chain.len())
            .map(|place| chain[..place].iter().map(|&read| self.reads[read].names.len()).sum())
            .collect();
        let indices = |place: usize| -> Vec<Affine> {
            (0..self.reads[chain[place]].names.len()).map(|i| Affine::index(offsets[place] + i)).collect()
        };
        let mut rows = self.context.clone();
        for (place, &read) in chain.iter().enumerate() {
            let (read, own, next) = (&self.reads[read], indices(place), indices((place + 1) % chain.len()));
            rows.extend(read.points.iter().map(|row| row.with_indices(&own)));
            let ends = read.subscripts.iter().zip(next);
            rows.extend(ends.map(|(subscript, index)| Constraint::equal(subscript.with_indices(&own), index)));
        }
        let Found::Values(values) = system::find(&rows, SEARCH_LIMIT) else { return None };
        let number = |atom: &Atom| values.get(atom).cloned().unwrap_or(Int::ZERO);
        let element = |place: usize| {
            let definition = &self.program.definitions[self.reads[chain[place]].reader];
            let at = (0..definition.rank).map(|i| number(&Atom::Index((offsets[place] + i) as u32)));
            (definition.tensor, at.collect())
        };
        Some((0..chain.len()).map(element).collect())
    }
}

/// The components of a graph, by their first nodes, each after those it reads.
fn reading_order(edges: &[Vec<usize>], component: &[usize]) -> Vec<usize> {
    let (mut order, mut done) = (Vec::new(), vec![false; edges.len()]);
    while let Some(next) = (0..edges.len()).find(|&node| {
        let ready = |own: usize| {
            let nodes = (0..edges.len()).filter(|&n| component[n] == own);
            nodes.flat_map(|n| &edges[n]).all(|&to| component[to] == own || done[component[to]])
        };
        component[node] == node && !done[node] && ready(node)
    }) {
        done[next] = true;
        order.push(next);
    }
    order
}

/// A circle for which no order was found.
#[derive(Clone, Debug)]
pub struct Unordered {
    /// The tensor in whose definition the read at fault stands.
    owner: TensorId,
    access: ExprId,
    /// Elements that depend on themselves, if some were found: each reads the next one, and the last the first.
    elements: Vec<(TensorId, Vec<Int>)>,
}

impl Unordered {
    /// The message, at its place in the source if that is known.
    pub fn describe(&self, program: &Program, places: &Places) -> Diagnostic {
        let Expr::Access(tensor, _) = program.exprs[self.access] else { unreachable!("an access") };
        let element = |(tensor, at): &(TensorId, Vec<Int>)| {
            let at: Vec<String> = at.iter().map(Int::to_string).collect();
            let name = &program[*tensor].name;
            if at.is_empty() { name.clone() } else { format!("{name}[{}]", at.join(", ")) }
        };
        let shown: Vec<String> = self.elements.iter().map(element).collect();
        let diagnostic = match shown.as_slice() {
            [] => {
                let message = format!(
                    "no order is found in which this element of '{}' comes before it is read",
                    program[tensor].name
                );
                Diagnostic::error("no-order", message)
                    .hint("some index has to rise or fall with every read, as in 'h[t - 1]'; a condition on indices or 'pad' excuses a read")
            }
            [first] => Diagnostic::error("no-order", format!("{first} depends on itself"))
                .hint("read an earlier element, as in 'h[t - 1]'"),
            [first, rest @ ..] => {
                let chain: Vec<String> = rest.iter().chain([first]).map(|e| format!("reads {e}")).collect();
                Diagnostic::error("no-order", format!("{first} {}", chain.join(", which ")))
                    .hint("every element has to depend on elements that come earlier")
            }
        };
        match places.accesses.get(&(self.owner, self.access)) {
            Some(&span) => diagnostic.at(span),
            None => diagnostic,
        }
    }
}
