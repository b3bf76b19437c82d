//! Which definitions are computed together, slab by slab.
//!
//! Definitions are taken in order. One joins a group if it can use one of its own indices as the group's slab index:
//! an output, or an index of its reduction where the parts of the result take no more room than what it reads
//! would. What it reads from the group must be read at the slab, or a few places beside it; then that is computed
//! a little beyond the slab. Where several indices would do, all are carried along until something decides.

mod grid;

use super::{Group, Member, lanes};
use crate::domain::estimate::{extents, extents_at};
use crate::domain::system;
use crate::program::{Affine, Atom, Constraint, Definition, Expr, ExprId, Exprs, Program, TensorId};
use crate::scalar::Real;
use crate::target::{Target, cost};
use gradix_int::Int;
use grid::Shares;
use std::collections::{HashMap, HashSet};

/// The most choices of indices that are carried along: it bounds the time to compile.
const MAX_CHOICES: usize = 16;
/// The most values of a tile: it bounds what numbers have to hold, whatever sizes are assumed.
const MAX_TILE_VALUES: f64 = 1e9;

/// A group that may still grow.
struct Draft {
    members: Vec<usize>,
    choices: Vec<Choice>,
}

/// For each member its slab index.
#[derive(Clone)]
struct Choice {
    slabs: Vec<usize>,
    low: Affine,
    high: Affine,
    parts: i64,
    cost: f64,
    /// The elements of rows that are cut short.
    split: f64,
}

/// Groups all definitions.
pub fn group(program: &Program, estimate: &[f64], target: &Target) -> Vec<Group> {
    let sizes: Vec<Vec<f64>> = program.definitions.iter().map(|d| extents(d, estimate)).collect();
    let places: HashMap<TensorId, usize> = program.definitions.iter().enumerate().map(|(i, d)| (d.tensor, i)).collect();
    let place = |(tensor, subscripts): (TensorId, &[Affine])| Some((*places.get(&tensor)?, subscripts.to_vec()));
    let reads = |d: &Definition| program.exprs.accesses(d.body).filter_map(place).collect();
    let always = |d: &Definition| always_read(&program.exprs, d.body).into_iter().filter_map(place).collect();
    let reads = program.definitions.iter().map(reads).collect();
    let always = program.definitions.iter().map(always).collect();
    let context = program.size_context();
    let mut grouping = Grouping { program, estimate, target, context, sizes, reads, always, drafts: Vec::new() };
    let mut home: HashMap<usize, usize> = HashMap::new();
    for position in 0..program.definitions.len() {
        let earliest = grouping.reads[position].iter().filter_map(|(p, _)| home.get(p)).max().copied();
        home.insert(position, grouping.place(position, earliest));
    }
    let readers = grouping.readers();
    let drafts = std::mem::take(&mut grouping.drafts);
    drafts.into_iter().flat_map(|draft| grouping.settle(draft, &readers)).collect()
}

/// Each definition on its own, in one item.
pub fn alone(program: &Program) -> Vec<Group> {
    (0..program.definitions.len()).map(undivided).collect()
}

fn undivided(definition: usize) -> Group {
    Group::alone(Member::new(definition, None), 1, None)
}

struct Grouping<'a> {
    program: &'a Program,
    estimate: &'a [f64],
    target: &'a Target,
    context: Vec<Constraint>,
    sizes: Vec<Vec<f64>>,
    /// The definitions that each reads, with the subscripts.
    reads: Vec<Vec<(usize, Vec<Affine>)>>,
    /// Those that it reads at every point.
    always: Vec<Vec<(usize, Vec<Affine>)>>,
    drafts: Vec<Draft>,
}

/// The elements that a body reads whatever conditions say.
fn always_read(exprs: &Exprs, body: ExprId) -> Vec<(TensorId, &[Affine])> {
    let (mut found, mut open, mut seen) = (Vec::new(), vec![body], HashSet::new());
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        match &exprs[id] {
            Expr::Access(tensor, subscripts) => found.push((*tensor, subscripts.as_slice())),
            Expr::Unary(_, a) => open.push(*a),
            Expr::Binary(_, a, b) => open.extend([*a, *b]),
            Expr::Constant(_) | Expr::Index(_) | Expr::Select(..) => {}
        }
    }
    found
}

impl Grouping<'_> {
    /// Puts a definition into a group, and tells which.
    fn place(&mut self, position: usize, earliest: Option<usize>) -> usize {
        let first = earliest.unwrap_or(self.drafts.len().saturating_sub(1));
        for number in first..self.drafts.len() {
            let draft = &self.drafts[number];
            let related = self.reads[position].iter().any(|(p, _)| draft.members.contains(p));
            if !related && !self.meets(position, draft) || self.is_copy(draft.members[0]) != self.is_copy(position) {
                continue;
            }
            let mut choices: Vec<Choice> =
                draft.choices.iter().flat_map(|choice| self.extended(draft, choice, position, related)).collect();
            choices.sort_by(|a, b| a.cost.total_cmp(&b.cost));
            choices.truncate(MAX_CHOICES);
            if choices.first().is_some_and(|joined| self.pays(draft, joined, position)) {
                let draft = &mut self.drafts[number];
                draft.members.push(position);
                draft.choices = choices;
                return number;
            }
        }
        let choices = self.alone(position);
        self.drafts.push(Draft { members: vec![position], choices });
        self.drafts.len() - 1
    }

    /// Whether a group and one more definition cut rows short for no more elements than would be stored if they stood apart.
    /// What is little to do goes wherever that is best for the others.
    fn pays(&self, draft: &Draft, joined: &Choice, position: usize) -> bool {
        let points = |p: usize| self.sizes[p].iter().product::<f64>();
        let split = |points: f64, choice: Option<&Choice>| match choice {
            Some(choice) if points >= cost::ITEM_POINTS => choice.split,
            _ => 0.0,
        };
        let before = split(draft.members.iter().map(|p| points(*p)).sum(), draft.choices.first());
        let alone = split(points(position), self.alone(position).first());
        let elements = |p: &usize| self.program[self.tensor(*p)].elements(self.estimate);
        let read = draft.members.iter().filter(|p| self.reads[position].iter().any(|(read, _)| read == *p));
        joined.split <= before + alone + cost::LOCAL_ACCESSES * read.map(elements).sum::<f64>()
    }

    /// Whether something reads both a definition and a member of a group.
    fn meets(&self, position: usize, draft: &Draft) -> bool {
        self.reads.iter().any(|reads| {
            reads.iter().any(|(p, _)| *p == position) && reads.iter().any(|(p, _)| draft.members.contains(p))
        })
    }

    /// Whether everything that reads a definition, and members of a group, reads them at one slab: then it can be in the
    /// group too.
    fn meets_at(&self, draft: &Draft, choice: &Choice, position: usize, slab: usize) -> bool {
        let at = |p: usize| match draft.members.iter().position(|m| *m == p) {
            Some(member) => Some(choice.slabs[member]),
            None => (p == position).then_some(slab),
        };
        let readers = self.reads.iter().zip(&self.program.definitions);
        readers.filter(|(reads, _)| reads.iter().any(|(p, _)| *p == position)).all(|(reads, reader)| {
            (0..reader.indices.len()).any(|index| {
                reads.iter().all(|(p, subscripts)| match at(*p).and_then(|slab| subscripts.get(slab)) {
                    Some(subscript) => distance(subscript, index).is_some(),
                    None => at(*p).is_none(),
                })
            })
        })
    }

    /// Whether a definition has more elements than all arguments and results.
    fn is_large(&self, position: usize) -> bool {
        let size = |affine: &Affine| affine.estimate(&[], self.estimate).max(0.0);
        let elements = |id: TensorId| self.program[id].extents.iter().map(size).product::<f64>();
        let given = self.program.inputs().chain(self.program.outputs.iter().copied());
        elements(self.tensor(position)) > given.map(elements).sum()
    }

    /// Whether a definition only brings elements into another order: those that read it want all of it.
    fn is_copy(&self, position: usize) -> bool {
        let (definition, exprs) = (&self.program.definitions[position], &self.program.exprs);
        let is_element = |id: ExprId| matches!(exprs[id], Expr::Access(..));
        let copies = match exprs[definition.body] {
            Expr::Select(_, inside, outside) => is_element(inside) && exprs.as_constant(outside).is_some(),
            _ => is_element(definition.body),
        };
        copies && definition.reduction.is_none()
    }

    /// Every way in which a definition can start a group.
    fn alone(&self, position: usize) -> Vec<Choice> {
        let definition = &self.program.definitions[position];
        let (sizes, rank) = (&self.sizes[position], definition.rank);
        let work: f64 = sizes.iter().product();
        let elements: f64 = sizes[..rank].iter().product();
        let mut choices = Vec::new();
        let lanes = lanes(self.program, definition, self.estimate, self.target).filter(|_| rank > 1);
        let others = |lanes: usize| {
            sizes[..rank].iter().enumerate().any(|(p, size)| p != lanes && *size >= cost::OTHER_SLAB_VALUES)
        };
        let whole = lanes.filter(|&lanes| sizes[lanes] < cost::DIVIDED_LANE_VALUES && others(lanes));
        for (slab, &size) in sizes.iter().enumerate().filter(|(slab, _)| Some(*slab) != whole) {
            let Some((low, high)) = self.bounds(definition, slab) else { continue };
            let reduced = slab >= rank;
            let few = elements <= cost::FEW_SUMS && work >= cost::ITEM_POINTS && size >= cost::SPLIT_SUM_VALUES;
            let terms = work / elements.max(1.0);
            let many = self.target.sum_parts;
            let long = terms >= cost::LONG_SUM_TERMS && elements * cost::PART_TERMS <= work && size >= many as f64;
            if reduced && !few && !long || !reduced && size < cost::SLAB_VALUES {
                continue;
            }
            let parts = if reduced { many } else { 0 };
            let gain = if reduced && long { cost::LONG_SUM_GAIN } else { 0.0 };
            // What every item reads again; outer indices first; later, what runs in lanes.
            let items = self.target.few_items() as f64;
            let few = if size < items { cost::FEW_VALUES_PENALTY } else { 0.0 };
            let divided = rank > 1 && is_divided(definition, slab);
            let across = if divided || lanes == Some(slab) { cost::LANES_PENALTY } else { 0.0 };
            let again = self.shared(definition, slab) * size.min(items);
            let split = self.split_lines(position, slab, &[]);
            let rows = if definition.reduction.is_none() { split } else { 0.0 };
            let outer = slab as f64 * cost::INNER_INDEX_PENALTY;
            let cost = few + across + again + outer + elements * parts as f64 + rows - gain;
            choices.push(Choice { slabs: vec![slab], low, high, parts, cost, split });
        }
        choices.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        choices
    }

    /// The elements of all that is read and does not depend on an index.
    fn shared(&self, definition: &Definition, index: usize) -> f64 {
        // The range of a reduction index may move with it.
        let moves = |position: usize| {
            let range = &definition.indices[position].range;
            range.low.iter().chain(&range.high).any(|bound| bound.uses_index(index))
        };
        let mut moving: Vec<usize> = (definition.rank..definition.indices.len()).filter(|&p| moves(p)).collect();
        moving.push(index);
        let depends = |s: &Affine| moving.iter().any(|&m| s.uses_index(m));
        let accesses = self.program.exprs.accesses(definition.body);
        let shared = accesses.filter(|(_, subscripts)| !subscripts.iter().any(depends));
        shared.map(|(tensor, _)| self.program[tensor].elements(self.estimate)).sum()
    }

    /// The elements of rows past the cache that are cut short, as slabs have a few neighbours each: lines are read again, or
    /// rows are no streams. What the group itself makes is at hand, and what is no result need not be stored.
    fn split_lines(&self, position: usize, slab: usize, members: &[usize]) -> f64 {
        let (definition, size) = (&self.program.definitions[position], self.sizes[position][slab]);
        let line = (self.target.line_bytes / Real::F64.bytes()) as f64;
        // What is copied is read and written in blocks.
        if self.is_copy(position) {
            return 0.0;
        }
        let again = match size {
            few if few < cost::ROUNDED_SLAB_VALUES => few.min(line) - 1.0,
            some if some < cost::DIVIDED_LANE_VALUES => 1.0,
            _ => return 0.0,
        };
        let made = |tensor: TensorId| members.iter().any(|member| self.tensor(*member) == tensor);
        let beside = |s: &[Affine]| s.len() > 1 && s.last().is_some_and(|last| last.uses_index(slab));
        let accesses = self.program.exprs.accesses(definition.body);
        let read =
            accesses.filter(|(tensor, s)| beside(s) && !made(*tensor)).map(|(tensor, s)| self.reached(tensor, s));
        let is_row = slab + 1 == definition.rank && slab > 0 && self.program.outputs.contains(&definition.tensor);
        let written = is_row.then(|| self.program[definition.tensor].elements(self.estimate));
        let past = |elements: &f64| *elements > self.target.l2_elements(1.0);
        again * read.chain(written).filter(past).sum::<f64>()
    }

    /// The elements that an access reaches in all: those of one step, of a recurrence.
    fn reached(&self, tensor: TensorId, subscripts: &[Affine]) -> f64 {
        let dimensions = self.program[tensor].extents.iter().zip(subscripts).filter(|(_, s)| s.uses_indices());
        dimensions.map(|(extent, _)| extent.estimate(&[], self.estimate).max(0.0)).product()
    }

    /// The bounds of an index in sizes, if it has one of each; an index of a reduction may have others besides.
    fn bounds(&self, definition: &Definition, slab: usize) -> Option<(Affine, Affine)> {
        let range = &definition.indices[slab].range;
        let reduced = slab >= definition.rank;
        let bound = |bounds: &[Affine]| {
            let plain: Vec<&Affine> = bounds.iter().filter(|b| !b.uses_indices()).collect();
            match plain.as_slice() {
                [one] if reduced || bounds.len() == 1 => Some((*one).clone()),
                _ => None,
            }
        };
        Some((bound(&range.low)?, bound(&range.high)?))
    }

    /// The ways in which a definition can join a group with this choice.
    fn extended(&self, draft: &Draft, choice: &Choice, position: usize, related: bool) -> Vec<Choice> {
        let definition = &self.program.definitions[position];
        let rank = definition.rank;
        let mut found = Vec::new();
        for slab in 0..definition.indices.len() {
            let reduced = slab >= rank;
            // What it reads of the group exactly at the slab index, and under no condition, bounds that, too.
            let at_slab = |(producer, subscripts): &(usize, Vec<Affine>)| {
                let member = draft.members.iter().position(|m| m == producer);
                member.is_some_and(|m| subscripts.get(choice.slabs[m]).and_then(|s| distance(s, slab)) == Some(0))
            };
            let is_bound = reduced && self.always[position].iter().any(at_slab);
            let group = || is_bound.then(|| (choice.low.clone(), choice.high.clone()));
            let Some((low, high)) = self.bounds(definition, slab).or_else(group) else { continue };
            let same = low == choice.low && high == choice.high;
            if !related && (reduced || !same) || !same && !self.covers(choice, &low, &high) {
                continue;
            }
            let in_lanes = rank > 1 && lanes(self.program, definition, self.estimate, self.target) == Some(slab);
            if in_lanes && self.sizes[position][slab] < cost::DIVIDED_LANE_VALUES
                || !self.fits(draft, choice, position, slab)
            {
                continue;
            }
            if !related && self.is_large(position) && !self.meets_at(draft, choice, position, slab) {
                continue;
            }
            let mut next = choice.clone();
            next.slabs.push(slab);
            if reduced {
                let elements: f64 = self.sizes[position][..rank].iter().product();
                let saved = self.largest_read(draft, position);
                let Some(parts) = self.parts(elements, saved.max(cost::SPARE_PART_ELEMENTS)) else { continue };
                next.parts = if next.parts == 0 { parts } else { next.parts.min(parts) };
                next.cost += elements * parts as f64;
            }
            next.split += self.split_lines(position, slab, &draft.members);
            if !same {
                next.cost += cost::SOME_SLABS_PENALTY;
            }
            found.push(next);
        }
        found
    }

    /// In how many parts to reduce to so many elements, to save that many others.
    fn parts(&self, elements: f64, saved: f64) -> Option<i64> {
        let few = self.target.few_parts();
        let room = cost::ROOM_SHARE_OF_PARTS * self.room();
        let most = match elements <= cost::MANY_PARTS_ELEMENTS {
            true => self.target.sum_parts,
            false => (room / elements).clamp(cost::LEAST_PARTS, few as f64) as i64,
        };
        let fits = |parts: &i64| *parts as f64 * elements <= saved;
        Some(most).filter(fits).or(Some(few).filter(|parts| *parts < most && fits(parts)))
    }

    /// How many elements may be stored: as many as there are results, and some for each of an argument.
    fn room(&self) -> f64 {
        let elements = |id: TensorId| self.program[id].elements(self.estimate);
        let outputs = self.program.outputs.iter().map(|id| elements(*id)).sum::<f64>();
        outputs + cost::ROOM_PER_ARGUMENT_ELEMENT * self.program.inputs().map(elements).sum::<f64>()
    }

    fn covers(&self, choice: &Choice, low: &Affine, high: &Affine) -> bool {
        let rows = [
            Constraint::at_most(choice.low.clone(), low.clone()),
            Constraint::at_most(high.clone(), choice.high.clone()),
        ];
        rows.iter().all(|row| system::implies(&self.context, row))
    }

    /// The size of the largest member that a definition reads.
    fn largest_read(&self, draft: &Draft, position: usize) -> f64 {
        let members = self.reads[position].iter().filter(|(p, _)| draft.members.contains(p));
        let size = |p: usize| self.sizes[p][..self.program.definitions[p].rank].iter().product::<f64>();
        members.map(|(p, _)| size(*p)).fold(0.0, f64::max)
    }

    /// Whether all that is read from the group is read at the slab or close to it.
    fn fits(&self, draft: &Draft, choice: &Choice, position: usize, slab: usize) -> bool {
        self.reads[position].iter().all(|(producer, subscripts)| {
            let Some(member) = draft.members.iter().position(|m| m == producer) else { return true };
            let at = choice.slabs[member];
            at < self.program.definitions[*producer].rank
                && distance(&subscripts[at], slab).is_some_and(|d| {
                    d == 0 || d.abs() <= cost::HALO_VALUES && !self.program.outputs.contains(&self.tensor(*producer))
                })
        })
    }

    fn tensor(&self, position: usize) -> TensorId {
        self.program.definitions[position].tensor
    }

    fn readers(&self) -> HashMap<usize, HashSet<usize>> {
        let mut readers: HashMap<usize, HashSet<usize>> = HashMap::new();
        for (reader, reads) in self.reads.iter().enumerate() {
            for (p, _) in reads {
                readers.entry(*p).or_default().insert(reader);
            }
        }
        readers
    }

    /// The decisions for a group that no longer grows. It falls apart if something would have to be stored that is
    /// computed beyond the slab.
    fn settle(&self, draft: Draft, readers: &HashMap<usize, HashSet<usize>>) -> Vec<Group> {
        let none = HashSet::new();
        let inside = |p: &usize| {
            let readers = readers.get(p).unwrap_or(&none);
            !self.program.outputs.contains(&self.tensor(*p)) && readers.iter().all(|r| draft.members.contains(r))
        };
        for choice in &draft.choices {
            let mut halos = self.halos(&draft, choice);
            self.level(&draft, choice, &inside, &mut halos);
            let is_output = |m: usize| choice.slabs[m] < self.program.definitions[draft.members[m]].rank;
            let sound =
                (0..draft.members.len()).all(|m| halos[m] == (0, 0) || inside(&draft.members[m]) && is_output(m));
            if !sound {
                continue;
            }
            let members = draft.members.iter().enumerate().map(|(m, &definition)| Member {
                halo: halos[m],
                local: inside(&definition) && is_output(m),
                ..Member::new(definition, Some(choice.slabs[m]))
            });
            let considered = considered(&draft, choice);
            return vec![Group { considered, ..self.sized(members.collect(), choice) }];
        }
        if draft.members.len() == 1 {
            return vec![undivided(draft.members[0])];
        }
        let apart = draft.members.iter().map(|&p| Draft { members: vec![p], choices: self.alone(p) });
        apart.flat_map(|draft| self.settle(draft, readers)).collect()
    }

    /// How far before and after the slab each member is needed.
    fn halos(&self, draft: &Draft, choice: &Choice) -> Vec<(i64, i64)> {
        let mut halos = vec![(0i64, 0i64); draft.members.len()];
        for reader in (0..draft.members.len()).rev() {
            for (producer, subscripts) in &self.reads[draft.members[reader]] {
                let Some(member) = draft.members.iter().position(|m| m == producer) else { continue };
                let by = distance(&subscripts[choice.slabs[member]], choice.slabs[reader]).unwrap_or(0);
                let (before, after) = halos[reader];
                halos[member] = (halos[member].0.max(before - by), halos[member].1.max(after + by));
            }
        }
        halos
    }

    /// Pointwise members that could go as far beyond the slab as others do: with the same loops, they run together.
    fn level(&self, draft: &Draft, choice: &Choice, inside: &dyn Fn(&usize) -> bool, halos: &mut [(i64, i64)]) {
        let before = halos.iter().map(|h| h.0).max().unwrap_or(0);
        let after = halos.iter().map(|h| h.1).max().unwrap_or(0);
        for m in 0..draft.members.len() {
            let position = draft.members[m];
            let definition = &self.program.definitions[position];
            let fits = self.reads[position].iter().all(|(producer, subscripts)| {
                let Some(member) = draft.members.iter().position(|p| p == producer) else { return true };
                let by = distance(&subscripts[choice.slabs[member]], choice.slabs[m]);
                by == Some(0) && halos[member] == (before, after)
            });
            if definition.reduction.is_none() && inside(&position) && fits {
                halos[m] = (before, after);
            }
        }
    }

    /// Whether a reduction has far more terms at one end of the slab index than at the other.
    fn is_uneven(&self, member: &Member) -> bool {
        let definition = &self.program.definitions[member.definition];
        let Some(slab) = member.slab.filter(|&p| p < definition.rank) else { return false };
        let terms = |share: f64| {
            let at = |position: usize| if position == slab { share } else { 0.5 };
            let extents = extents_at(definition, self.estimate, &at);
            extents[definition.rank..].iter().map(|extent| extent.max(1.0)).product::<f64>()
        };
        let (start, end) = (terms(cost::NEAR_END_SHARE), terms(1.0 - cost::NEAR_END_SHARE));
        start.max(end) > cost::UNEVEN_TERMS_RATIO * start.min(end)
    }

    /// Whether members are needed beside the slab, and none of them has the slab index in the lanes of vectors.
    fn is_rolling(&self, members: &[Member]) -> bool {
        let across = |m: &Member| m.slab.is_some_and(|slab| slab + 1 < self.program.definitions[m.definition].rank);
        let mut beside = members.iter().filter(|m| m.halo != (0, 0)).peekable();
        beside.peek().is_some() && beside.all(across)
    }

    /// Reductions over the slab index run as far after the slab as all that they read of the group.
    fn moved_ahead(&self, mut members: Vec<Member>) -> Vec<Member> {
        for m in 0..members.len() {
            let Some(slab) =
                members[m].slab.filter(|slab| *slab >= self.program.definitions[members[m].definition].rank)
            else {
                continue;
            };
            let of_group = |producer: &usize| members.iter().find(|made| made.definition == *producer);
            let reads = self.reads[members[m].definition].iter();
            let reads = reads.filter_map(|(producer, subscripts)| of_group(producer).map(|made| (made, subscripts)));
            let after = reads.map(|(made, subscripts)| {
                let at_slab = made.slab.and_then(|at| distance(&subscripts[at], slab)) == Some(0);
                if at_slab { made.halo.1 } else { 0 }
            });
            members[m].ahead = after.min().unwrap_or(0);
        }
        members
    }

    /// The most that is local at a time, for each value of the slab index.
    fn live(&self, members: &[Member], width: &dyn Fn(&Member) -> f64) -> f64 {
        let reads = |reader: &Member, made: &Member| {
            self.reads[reader.definition].iter().any(|(producer, _)| *producer == made.definition)
        };
        let last = |made: &Member| members.iter().rposition(|reader| reads(reader, made)).unwrap_or(0);
        let spans: Vec<(usize, usize, f64)> = members
            .iter()
            .enumerate()
            .filter(|(_, member)| member.local)
            .map(|(place, member)| (place, last(member), width(member)))
            .collect();
        let at =
            |place: usize| spans.iter().filter(|(from, to, _)| (*from..=*to).contains(&place)).map(|(.., w)| w).sum();
        (0..members.len()).map(at).fold(0.0, f64::max)
    }

    /// Chooses the height of a slab: what is local stays in the second cache.
    fn sized(&self, members: Vec<Member>, choice: &Choice) -> Group {
        let rows = members.iter().map(|m| self.sizes[m.definition][m.slab.unwrap_or(0)]).fold(1.0, f64::max);
        let work: f64 = members.iter().map(|m| self.sizes[m.definition].iter().product::<f64>()).sum();
        let least = (rows * cost::ITEM_POINTS / work.max(1.0)).ceil().min(rows.max(1.0));
        let parts = (choice.parts > 0).then_some(choice.parts);
        // Products of matrices pack their operands once for each item, and halos are computed again; what is uneven
        // needs many items.
        let is_product = |m: &Member| {
            let definition = &self.program.definitions[m.definition];
            definition.reduction.is_some() && definition.rank > 1
        };
        let uneven = members.iter().any(|m| self.is_uneven(m));
        let repeats = members.iter().any(|m| is_product(m) || m.halo != (0, 0));
        let items = if repeats && !uneven { self.target.few_items() } else { self.target.items };
        let share = match rows / parts.unwrap_or(items) as f64 {
            few if rows < cost::ROUNDED_SLAB_VALUES || self.is_copy(members[0].definition) => few.ceil(),
            many => (many / cost::SLAB_MULTIPLE).ceil() * cost::SLAB_MULTIPLE,
        };
        let items = parts.map_or((rows / share.max(least)).ceil(), |parts| parts as f64);
        let wanted = match parts {
            Some(_) => [self.target.sum_parts, self.target.few_parts()],
            None if rows >= self.target.items as f64 => [0; 2],
            None if uneven => [self.target.items; 2],
            None => [self.target.items, self.target.few_items()],
        };
        let (members, grid) = self.divided(members, Shares { items, work, slabs: rows, wanted });
        let local = self.live(&members, &|member| self.width(member, &grid));
        if local == 0.0 && parts.is_none() {
            // Where the least decides, in equal items: threads that wait for each other have as much to do.
            let height = if least > share { (rows / (rows / least).ceil()).ceil() } else { share };
            let tile = height.clamp(1.0, MAX_TILE_VALUES) as i64;
            return Group { grid, ..Group::new(members, tile, parts) };
        }
        let rolling = self.is_rolling(&members);
        let cached = if rolling { cost::L2_SHARE_OF_RINGS } else { cost::L2_SHARE_OF_LOCALS };
        let tile = match self.target.l2_elements(cached) / local.max(1.0) {
            few if few < cost::SLAB_MULTIPLE => few.floor(),
            many => (many / cost::SLAB_MULTIPLE).floor() * cost::SLAB_MULTIPLE,
        };
        let tile = tile.min(cost::TILE_VALUES).min(share).max(1.0);
        // The height of an item, in equal tiles: so the last one has as much to do.
        let height = if parts.is_some() { share } else { share.max(least) };
        let tiles = (height / tile).ceil().max(1.0);
        let tile = ((height / tiles / cost::SLAB_MULTIPLE).ceil() * cost::SLAB_MULTIPLE).min(tile);
        let rolling = rolling && (tiles > 1.0 || parts.is_some());
        let members = if rolling { self.moved_ahead(members) } else { members };
        Group { tiles: tiles as i64, grid, rolling, ..Group::new(members, tile as i64, parts) }
    }
}

/// The slab index of the first member in the choice that was taken, and in others, each with the least cost.
fn considered(draft: &Draft, taken: &Choice) -> Vec<(Option<usize>, f64)> {
    let mut found: Vec<(Option<usize>, f64)> = Vec::new();
    for choice in std::iter::once(taken).chain(&draft.choices) {
        let slab = choice.slabs.first().copied();
        if !found.iter().any(|(known, _)| *known == slab) {
            found.push((slab, choice.cost));
        }
    }
    found
}

/// Whether the bounds of a reduction divide an index: its residue classes run in lanes, each with a start and an end.
fn is_divided(definition: &Definition, index: usize) -> bool {
    let terms = definition.indices[definition.rank..].iter();
    let mut bounds = terms.flat_map(|term| term.range.low.iter().chain(&term.range.high));
    bounds.any(|bound| bound.divides_index(index))
}

/// `d` where a subscript is the slab index plus `d`.
fn distance(subscript: &Affine, slab: usize) -> Option<i64> {
    match subscript.terms() {
        [(Atom::Index(i), one)] if *i as usize == slab && *one == Int::ONE => i64::try_from(subscript.offset()).ok(),
        _ => None,
    }
}
