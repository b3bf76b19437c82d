//! Leaves that copy to memory that threads share: a thread loads all of its values before it stores the first, so that all
//! loads are under way together.

use super::leaf::{Writer, count};
use crate::emit::integers::smaller;
use crate::emit::tree::{Operator, Value};
use crate::emit::values::Instances;
use crate::nest::{Leaf, Loop, Scope, leaves};
use crate::program::Affine;
use crate::program::expr::Number;
use gradix_int::Int;
use std::collections::HashSet;

impl Writer<'_> {
    /// How many values of each loop a thread has in a leaf that copies to memory that threads share, if that is known and loads can all
    /// be under way before the first of them is stored.
    pub fn staged(&self, leaf: &Leaf) -> Option<Vec<usize>> {
        let nest = self.nest();
        let is_plain = leaf.reduction.is_none() && leaf.loops.len() == leaf.subscripts.len();
        let is_shared_by_threads = matches!(nest[leaf.target].scope, Scope::Local(_)) && !nest[leaf.target].registers;
        if !is_plain || !is_shared_by_threads || leaf.reads(&nest.exprs, leaf.target) {
            return None;
        }
        let each: Option<Vec<usize>> =
            leaf.loops.iter().map(|l| Some(self.most_values(l)?.div_ceil(count(l)))).collect();
        let each = each.filter(|each| each.iter().product::<usize>() <= MAX_LOADS_UNDER_WAY)?;
        // What guards leave out is stored, too, as 0: nobody may have anything there.
        (leaf.guards.is_empty() || self.has_room(leaf, &each)).then_some(each)
    }

    /// The most values that a loop has, of which there is at least one: those of an item, or of a tile around it.
    fn most_values(&self, l: &Loop) -> Option<usize> {
        let low = l.range.low.first().filter(|_| l.range.low.len() == 1)?;
        let work = self.kernel.work.iter().find(|work| *low == Affine::index(work.first));
        let whole = |affine: &Affine| affine.as_constant().and_then(|n| usize::try_from(n).ok());
        match work {
            Some(work) if l.range.high == [Affine::index(work.last)] => whole(&work.step),
            _ => {
                let own = l.range.high.iter().filter_map(|high| whole(&(high.clone() - low.clone()).shift(1)));
                low.as_index().and(own.min())
            }
        }
    }

    /// Whether there is room for values past the ends of the loops, and only this leaf writes there: it may store them, too.
    fn has_room(&self, leaf: &Leaf, each: &[usize]) -> bool {
        let writers = leaves(&self.kernel.steps).into_iter().filter(|other| other.target == leaf.target);
        let extents = &self.nest()[leaf.target].extents;
        let places = leaf.loops.iter().zip(each).map(|(l, each)| {
            let own = Affine::index(l.variable) - l.range.low[0].clone();
            let place = leaf.subscripts.iter().position(|subscript| *subscript == own)?;
            let extent = extents[place].as_constant()?;
            (*extent >= Int::from((count(l) * each) as i64)).then_some(place)
        });
        let places: Option<HashSet<usize>> = places.collect();
        writers.count() == 1 && places.is_some_and(|places| places.len() == leaf.loops.len())
    }

    /// All that a thread loads, then all that it stores. Where its values are past the end of a loop, the last one is loaded.
    pub fn side_by_side(&mut self, leaf: &Leaf, each: &[usize]) {
        let mut places: Vec<Vec<(Value, Value, Value)>> = Vec::new();
        for (position, each) in each.iter().enumerate() {
            let l = &leaf.loops[position];
            let (low, high) = self.range(l);
            let end = self.draft.constant("end", high);
            let first = low + self.along(leaf, position);
            let first = self.draft.constant("first", first);
            let mut place = |number: usize| {
                let own = &first + count(l) * number;
                let inside = own.clone().at_most(&end);
                (self.draft.constant("v", smaller(own.clone(), end.clone())), own, inside)
            };
            places.push((0..*each).map(&mut place).collect());
        }
        let points: Vec<Vec<usize>> = points_of(each);
        let mut loaded = Vec::new();
        for point in &points {
            for ((l, places), number) in leaf.loops.iter().zip(&places).zip(point) {
                self.names.variables[l.variable] = places[*number].0.clone();
            }
            loaded.push(self.loaded(leaf));
        }
        let has_room = self.has_room(leaf, each);
        for (point, value) in points.iter().zip(loaded) {
            let mut tests = Vec::new();
            for ((l, places), number) in leaf.loops.iter().zip(&places).zip(point) {
                let (_, own, inside) = &places[*number];
                self.names.variables[l.variable] = own.clone();
                tests.push(inside.clone());
            }
            let test = Value::joined(Operator::And, tests).filter(|_| !has_room);
            let opened = test.map(|test| self.draft.when(test)).into_iter().count();
            let target = self.names.element(leaf.target, &leaf.subscripts);
            self.draft.assign(&target, value);
            self.draft.close(opened);
        }
    }

    /// A value that a thread loads; 0 where guards leave it out.
    fn loaded(&mut self, leaf: &Leaf) -> Value {
        let Some(test) = self.names.all(&leaf.guards) else {
            let value = self.values(Instances::default()).value(leaf.body, (0, 0));
            return if matches!(value, Value::Name(..)) { value } else { self.draft.constant("e", value) };
        };
        let loaded = self.draft.variable("e", Value::Real(Number::new(0.0), self.real));
        self.draft.when(test);
        let value = self.values(Instances::default()).value(leaf.body, (0, 0));
        self.draft.assign(&loaded, value);
        self.draft.close(1);
        loaded
    }
}

/// Which value of each loop a point has, for all points; the last loop goes fastest.
fn points_of(each: &[usize]) -> Vec<Vec<usize>> {
    let start = vec![Vec::new()];
    each.iter().fold(start, |points, each| {
        let with = |point: &Vec<usize>, number: usize| point.iter().copied().chain([number]).collect();
        points.iter().flat_map(|point| (0..*each).map(move |number| with(point, number))).collect()
    })
}

/// Loads that a thread has under way at the same time, each in a register.
const MAX_LOADS_UNDER_WAY: usize = 16;
