//! Further dimensions of the grid of items, where the slab index has too few values to share out.
//!
//! ```text
//! s[b, h, i, j] = sum[d] q[b, h, i, d] * k[b, h, j, d]         b in 0..2, h in 0..4
//! y[b, h, i] = sum[j] exp(s[b, h, i, j])                       an item for each h and each b
//! ```
//!
//! An index of every member divides the work if members read each other at the same value of it: then nothing that is computed
//! for one value is needed for another. What is local has the values of one item only.

use super::{Grouping, MAX_CHOICES, distance, is_divided};
use crate::program::Affine;
use crate::schedule::{Member, lanes};
use crate::target::cost;

/// The most dimensions besides the slab index: machines with grids have three.
const MAX_FURTHER_DIMENSIONS: usize = 2;

/// What there is to share out.
pub struct Shares {
    /// The items that there are.
    pub items: f64,
    /// The points of all members.
    pub work: f64,
    /// The values of the slab index.
    pub slabs: f64,
    /// How many are wanted where they read nothing again, and where they do.
    pub wanted: [i64; 2],
}

/// An index of each member, and how many values of it an item has.
struct Further {
    indices: Vec<usize>,
    values: f64,
    /// The elements that items read again.
    cost: f64,
}

impl Grouping<'_> {
    /// The members with further indices, and how many values of each an item has.
    pub fn divided(&self, mut members: Vec<Member>, mut shares: Shares) -> (Vec<Member>, Vec<i64>) {
        let mut grid: Vec<i64> = Vec::new();
        while grid.len() < MAX_FURTHER_DIMENSIONS {
            let ways = self.aligned(&members).into_iter();
            let found = ways.filter_map(|indices| self.further(&members, &grid, indices, &shares));
            let Some(best) = found.min_by(|a, b| a.cost.total_cmp(&b.cost)) else { break };
            shares.items *= (self.extent(&members[0], best.indices[0]) / best.values).ceil();
            members.iter_mut().zip(&best.indices).for_each(|(member, index)| member.grid.push(*index));
            grid.push(best.values as i64);
        }
        (members, grid)
    }

    fn extent(&self, member: &Member, index: usize) -> f64 {
        self.sizes[member.definition][index]
    }

    fn lanes(&self, member: &Member) -> Option<usize> {
        lanes(self.program, &self.program.definitions[member.definition], self.estimate, self.target)
    }

    /// The elements of all that is read and does not depend on an index.
    fn independent(&self, member: &Member, index: usize) -> f64 {
        let accesses = self.program.exprs.accesses(self.program.definitions[member.definition].body);
        let fixed = accesses.filter(|(_, subscripts)| !subscripts.iter().any(|s| s.uses_index(index)));
        fixed.map(|(tensor, _)| self.program[tensor].elements(self.estimate)).sum()
    }

    /// How many values of an index of each member make an item, if it pays.
    fn further(&self, members: &[Member], grid: &[i64], indices: Vec<usize>, shares: &Shares) -> Option<Further> {
        let extent = self.extent(&members[0], indices[0]);
        let again: f64 = members.iter().zip(&indices).map(|(m, index)| self.independent(m, *index)).sum();
        let local = self.live(members, &|member| self.width(member, grid));
        let [all, few] = shares.wanted.map(|wanted| wanted as f64 / shares.items);
        let repeats = again * shares.items * all > cost::REPEATED_SHARE * shares.work;
        let for_threads = if repeats { few } else { all };
        let for_cache = local / self.target.l2_elements(cost::L2_SHARE_OF_LOCALS);
        let pays = again * for_cache <= cost::LOCAL_ACCESSES * local * shares.slabs;
        // Half of the items that are wanted are enough, and so is a cache that holds half of what is local.
        let lack = |pieces: f64| if pieces > 2.0 { pieces } else { 1.0 };
        let (for_threads, for_cache) = (lack(for_threads), if pays { lack(for_cache).ceil() } else { 1.0 });
        let room = (shares.work / shares.items / cost::ITEM_POINTS).min(extent).floor();
        let pieces = for_threads.floor().max(for_cache).min(room);
        if pieces < 2.0 {
            return None;
        }
        let values = match (extent / pieces).ceil() {
            few if extent < cost::ROUNDED_SLAB_VALUES => few,
            many => (many / cost::SLAB_MULTIPLE).ceil() * cost::SLAB_MULTIPLE,
        };
        let in_lanes = members.iter().zip(&indices).any(|(member, index)| self.lanes(member) == Some(*index));
        let across = if in_lanes { cost::LANES_PENALTY } else { 0.0 };
        let cost = again * pieces + across + indices[0] as f64 * cost::INNER_INDEX_PENALTY;
        (values < extent).then_some(Further { indices, values, cost })
    }

    /// The elements of a member for each value of its slab index, in an item.
    pub fn width(&self, member: &Member, grid: &[i64]) -> f64 {
        let values = |index: usize| match member.grid.iter().position(|own| *own == index) {
            Some(dimension) => (grid[dimension] as f64).min(self.extent(member, index)),
            None => self.extent(member, index),
        };
        let others = (0..self.program.definitions[member.definition].rank).filter(|p| Some(*p) != member.slab);
        others.map(values).product()
    }

    /// The ways to choose an output of each member, all with the same bounds, at which members read each other.
    fn aligned(&self, members: &[Member]) -> Vec<Vec<usize>> {
        let mut found: Vec<Vec<usize>> = vec![Vec::new()];
        for member in members {
            let rank = self.program.definitions[member.definition].rank;
            let longer = |taken: Vec<usize>| {
                let fits: Vec<usize> = (0..rank).filter(|p| self.aligns(members, &taken, member, *p)).collect();
                fits.into_iter().map(move |index| [taken.as_slice(), &[index]].concat())
            };
            found = found.into_iter().flat_map(longer).take(MAX_CHOICES).collect();
        }
        found
    }

    /// Whether an output of the next member can go with those that were taken of the members before.
    fn aligns(&self, members: &[Member], taken: &[usize], member: &Member, index: usize) -> bool {
        let definition = &self.program.definitions[member.definition];
        let bounds = |member: &Member, index| self.bounds(&self.program.definitions[member.definition], index);
        let own = bounds(member, index);
        let in_lanes = self.lanes(member) == Some(index);
        let is_free = member.slab != Some(index) && !member.grid.contains(&index) && !is_divided(definition, index);
        let is_short = in_lanes && self.extent(member, index) < cost::DIVIDED_LANE_VALUES;
        let same = taken.first().is_none_or(|first| bounds(&members[0], *first) == own);
        let at_index = |(producer, subscripts): &(usize, Vec<Affine>)| {
            let place = members.iter().position(|made| made.definition == *producer);
            place.is_none_or(|place| taken.get(place).is_some_and(|at| distance(&subscripts[*at], index) == Some(0)))
        };
        own.is_some() && is_free && !is_short && same && self.reads[member.definition].iter().all(at_index)
    }
}
