//! Which of the proposed ways are taken.
//!
//! A part that several definitions can use is made once, so ways are valued by their parts: all that use one together,
//! less what it costs.

use super::canon::{Form, Key};
use super::rewrite::Rewrite;
use super::share::Known;
use super::work::{Work, elements};
use crate::program::{Constraint, Program};
use crate::target::cost;
use std::collections::{BTreeMap, HashMap};

/// A way to write one definition, and what it saves if the parts cost nothing.
pub struct Way {
    pub place: usize,
    pub rewrite: Rewrite,
    pub forms: Vec<Form>,
    pub costs: Vec<Work>,
    pub before: Work,
    pub saved: Work,
}

/// A definition that computes a part, or computes it where a condition on its outputs holds.
pub struct Provider {
    pub known: Known,
    pub place: usize,
    pub masked: bool,
}

/// What can be chosen from, and what decides.
pub struct Choices {
    pub program: Program,
    pub context: Vec<Constraint>,
    pub sizes: Vec<f64>,
    pub existing: HashMap<Key, Provider>,
    pub ways: Vec<Way>,
    /// The elements of all inputs and results.
    pub room: f64,
    /// What each element has to save of a part that has more.
    pub large: f64,
    pub valid: HashMap<usize, bool>,
}

impl Choices {
    /// Ways that together save something: for each part in turn, all that use it, beginning with the part that saves most.
    pub fn choose(&mut self) -> BTreeMap<usize, usize> {
        let mut parts: Vec<Key> = Vec::new();
        let mut users: HashMap<Key, Vec<(usize, usize)>> = HashMap::new();
        for (number, way) in self.ways.iter().enumerate() {
            for (part, form) in way.forms.iter().enumerate() {
                let list = users.entry(form.key.clone()).or_default();
                if list.is_empty() {
                    parts.push(form.key.clone());
                }
                list.push((number, part));
            }
        }
        let mut ranked: Vec<(f64, usize)> = Vec::new();
        for (rank, key) in parts.iter().enumerate() {
            if let Some((gain, _)) = self.gain(key, &users[key], &BTreeMap::new(), false) {
                ranked.push((gain, rank));
            }
        }
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut chosen = BTreeMap::new();
        for (_, rank) in ranked {
            let key = &parts[rank];
            if let Some((_, ways)) = self.gain(key, &users[key], &chosen, true) {
                chosen.extend(ways.into_iter().map(|way| (self.ways[way].place, way)));
            }
        }
        chosen
    }

    /// What is gained if all definitions that can use a part do, and how they do it; `None` if nothing is.
    fn gain(
        &mut self,
        key: &Key,
        users: &[(usize, usize)],
        taken: &BTreeMap<usize, usize>,
        checked: bool,
    ) -> Option<(f64, Vec<usize>)> {
        let mut best: BTreeMap<usize, (Work, usize, usize)> = BTreeMap::new();
        for &(number, part) in users {
            let way = &self.ways[number];
            let gain = way.saved - self.others(way, part);
            let better = best.get(&way.place).is_none_or(|(known, ..)| gain.weight > known.weight);
            let free = !taken.contains_key(&way.place) && self.existing.get(key).is_none_or(|p| p.place != way.place);
            if gain.weight > 0.0 && better && free && (!checked || self.is_valid(number)) {
                best.insert(self.ways[number].place, (gain, number, part));
            }
        }
        // The first one makes the part; it has to cover what the others need of it.
        let mut known: Option<Known> = None;
        let mut gained = Work::default();
        let mut ways = Vec::new();
        let mut before = 0.0;
        let mut size: f64 = 0.0;
        let mut scalar = false;
        for (place, (gain, number, part)) in best {
            let way = &self.ways[number];
            let own = Known::new(&way.rewrite.parts[part].definition, &way.forms[part]);
            if known.as_ref().is_some_and(|first| checked && !first.covers(&own, &self.context)) {
                continue;
            }
            if known.is_none() && !self.exists(key, &own, place) {
                gained = gained - way.costs[part];
                size = elements(&way.rewrite.parts[part].definition, &self.sizes);
            }
            scalar = own.outputs.is_empty()
                && way.rewrite.main.indices.len() == self.program.definitions[place].indices.len();
            known.get_or_insert(own);
            gained = gained + gain;
            before += way.before.weight;
            ways.push(number);
        }
        let large = size > self.room && gained.weight < self.large * size;
        let share = if scalar { cost::NUMBER_GAIN_SHARE } else { cost::GAIN_SHARE };
        let enough = gained.weight > share * before && gained.operations >= 0.0;
        (enough && !large).then_some((gained.weight, ways))
    }

    /// What the parts of a way cost, but for one.
    fn others(&self, way: &Way, part: usize) -> Work {
        let cost = |other: usize| {
            let form = &way.forms[other];
            let own = Known::new(&way.rewrite.parts[other].definition, form);
            let twice = way.forms[..other].iter().any(|earlier| earlier.key == form.key);
            let free =
                other == part || twice || form.key == way.forms[part].key || self.exists(&form.key, &own, way.place);
            if free { Work::default() } else { way.costs[other] }
        };
        (0..way.forms.len()).map(cost).fold(Work::default(), std::ops::Add::add)
    }

    /// Whether a part is computed already, or by a later definition that will read it instead.
    fn exists(&self, key: &Key, part: &Known, place: usize) -> bool {
        self.existing.get(key).is_some_and(|Provider { known, place: other, masked }| match other.cmp(&place) {
            std::cmp::Ordering::Less => known.covers(part, &self.context),
            std::cmp::Ordering::Equal => false,
            std::cmp::Ordering::Greater => !masked && part.covers(known, &self.context),
        })
    }

    fn is_valid(&mut self, way: usize) -> bool {
        if let Some(&known) = self.valid.get(&way) {
            return known;
        }
        let valid = self.ways[way].rewrite.is_valid(&mut self.program, &self.context);
        self.valid.insert(way, valid);
        valid
    }
}
