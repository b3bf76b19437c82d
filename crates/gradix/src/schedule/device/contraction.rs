//! Contractions: a block computes a tile of elements, some in the registers of each thread, from operands that its threads
//! stage in shared memory, a few terms at a time.
//!
//! ```text
//! items i by 64, j by 64:                          near[i, j] = 0              for i, j threads
//!   tile box by 16:
//!     a_near[k, i] = a[i, k]; b_near[k, j] = b[j, k]                           for k, i threads; k, j threads
//!     near[i, j] += sum of (a_near[k, i] + b_near[k, j])^2                     for i, j threads
//!   y[i, j] = near[i, j]
//! ```
//!
//! It is right for any body whose accesses each lack one of the two outputs.

use super::making::{Making, bounds, own_place};
use super::{Scheduling, power_of_two};
use crate::nest::{Interleaved, Kind, Leaf, Loop, LoopId, Step, Tile, Work};
use crate::program::expr::Rewriter;
use crate::program::{Affine, Atom, Constraint, Definition, ExprId, Range, TensorId};
use crate::schedule::loops::{Parts, operands};
use crate::target::cost::{self, TILE_SIDE_THREADS as SIDE};
use gradix_int::Int;

/// How the elements and the terms of a contraction are divided.
struct Tiling {
    /// The two outputs of a tile, by position; elements lie side by side along the second.
    sides: [usize; 2],
    /// How many values of each a thread has, and how many of these lie beside each other where they are staged: as many as one
    /// instruction loads.
    each: [i64; 2],
    beside: [i64; 2],
    /// The index whose terms are staged together, and how many of them.
    index: usize,
    terms: i64,
    /// The index along which the terms are divided among items, by position, and in how many parts.
    parts: Option<(usize, i64)>,
}

impl Scheduling<'_> {
    /// A kernel with tiles, if there is anything to use again.
    pub fn contraction(
        &mut self,
        definition: &Definition,
        last: Option<&Definition>,
        sizes: &[f64],
        doc: &[String],
    ) -> bool {
        let Some((op, tiling)) = definition.reduction.zip(self.tiling(definition, sizes)) else { return false };
        let parts = tiling.parts.map(|(_, parts)| (parts, self.buffer_of_parts(definition, parts)));
        let mut making = self.start(if parts.is_some() { doc[..1].to_vec() } else { doc.to_vec() });
        let part = tiling.parts.and_then(|(position, parts)| {
            let unit = if position == tiling.index { tiling.terms } else { 1 };
            Some((position, making.part(definition, position, unit, parts)?))
        });
        let (mut map, sides) = Self::grid(&mut making, definition, &tiling);
        let own = map.clone();
        let place: Vec<Affine> = sides.iter().map(own_place).collect();
        let near = self.local("near", &tiling.each.map(|each| each * SIDE), true);
        let neutral = self.exprs.constant(op.neutral());
        making.leaf(Leaf::pointwise(near, place.clone(), sides.clone(), neutral));
        let (tiles, term, guards) = Self::tiles(&mut making, definition, (&tiling, &sides, part.as_ref()), &mut map);
        let body = self.mapped(definition.body, &map);
        let (mut steps, staged) = self.stage(body, &sides, (&term, &guards), &tiling);
        let body = Rewriter::with(staged).copy(&mut self.exprs, body);
        let loops = sides.iter().cloned().chain([term]).collect();
        let leaf = Leaf::pointwise(near, place.clone(), loops, body);
        steps.push(Step::Leaf(Leaf { outputs: 2, reduction: Some(op), accumulate: true, guards, ..leaf }));
        for tile in tiles.into_iter().rev() {
            steps = vec![Step::Tile(Tile { steps, ..tile })];
        }
        making.kernel.steps.extend(steps);
        let value = self.exprs.access(near, place);
        match part.zip(parts) {
            None => {
                self.store(&mut making, definition, last, (&own, sides), value);
                self.finish(making);
            }
            Some(((_, work), (parts, buffer))) => {
                let at = std::iter::once(Affine::index(work.item)).chain(own).collect();
                making.leaf(Leaf::pointwise(buffer, at, sides, value));
                self.finish(making);
                self.combined(definition, last, buffer, parts);
            }
        }
        true
    }

    /// The grid of tiles: what stands for the outputs, and the loops of a tile.
    fn grid(making: &mut Making, definition: &Definition, tiling: &Tiling) -> (Vec<Affine>, Vec<Loop>) {
        let (mut map, mut sides): (Vec<Affine>, [Option<Loop>; 2]) = (Vec::new(), [None, None]);
        for position in 0..definition.rank {
            let side = tiling.sides.iter().position(|side| *side == position);
            let (threads, each) = side.map_or((1, 1), |side| (SIDE, tiling.each[side]));
            let place = making.output(definition, position, &map, threads, each);
            map.push(place.value);
            if let Some(side) = side {
                sides[side] = place.inside;
            }
        }
        (map, sides.into_iter().flatten().collect())
    }

    /// The loops around what is staged, from the outermost in, the one over the terms that are, and conditions where ranges of terms
    /// depend on a side: their loops are over all terms that any element of the tile has.
    ///
    /// ```text
    /// y[v] = sum[q in max(0, 1 - v)..=2] …         q in max(0, 1 - last_v)..=2, where q >= 1 - v
    /// ```
    fn tiles(
        making: &mut Making,
        definition: &Definition,
        (tiling, sides, part): (&Tiling, &[Loop], Option<&(usize, Work)>),
        map: &mut Vec<Affine>,
    ) -> (Vec<Tile>, Loop, Vec<Constraint>) {
        let (mut tiles, mut term, mut guards) = (Vec::new(), None, Vec::new());
        let outermost = |bound: &Affine, is_low: bool, map: &[Affine]| {
            let mut map = map.to_vec();
            for (position, side) in tiling.sides.iter().zip(sides) {
                let is_first = (bound.step_of(*position) > Int::ZERO) == is_low;
                map[*position] = if is_first { side.range.low[0].clone() } else { side.range.high[0].clone() };
            }
            bound.with_indices(&map)
        };
        for (position, index) in definition.indices.iter().enumerate().skip(definition.rank) {
            let variable = making.variable(&index.name);
            let range = match part.filter(|(divided, _)| position == *divided) {
                Some((_, work)) => Range { low: vec![Affine::index(work.first)], high: vec![Affine::index(work.last)] },
                None => Range {
                    low: index.range.low.iter().map(|bound| outermost(bound, true, map)).collect(),
                    high: index.range.high.iter().map(|bound| outermost(bound, false, map)).collect(),
                },
            };
            let own = Affine::index(variable);
            let moves = |bound: &&Affine| tiling.sides.iter().any(|side| bound.uses_index(*side));
            let lows = index.range.low.iter().filter(moves).map(|low| (low.with_indices(map), own.clone()));
            let highs = index.range.high.iter().filter(moves).map(|high| (own.clone(), high.with_indices(map)));
            guards.extend(lows.chain(highs).map(|(low, high)| Constraint::at_most(low, high)));
            map.push(own.clone());
            if position != tiling.index {
                tiles.push(Tile::each(variable, range, Vec::new()));
                continue;
            }
            let first = making.variable("box");
            let end = Affine::index(first).shift(tiling.terms - 1);
            let high = std::iter::once(end).chain(range.high.iter().cloned()).collect();
            let inside = Range { low: vec![Affine::index(first)], high };
            term = Some(Loop { variable, range: inside, kind: Kind::Serial });
            tiles.push(Tile { size: tiling.terms, ..Tile::each(first, range, Vec::new()) });
        }
        (tiles, term.expect("one index is staged"), guards)
    }

    /// The steps that stage all operands, and what then stands for each.
    fn stage(
        &mut self,
        body: ExprId,
        sides: &[Loop],
        (term, guards): (&Loop, &[Constraint]),
        tiling: &Tiling,
    ) -> (Vec<Step>, Vec<(ExprId, ExprId)>) {
        let mut parts = Parts::default();
        operands(&self.exprs, body, (sides[0].variable, sides[1].variable), &mut parts);
        let k = Affine::index(term.variable) - term.range.low[0].clone();
        let (mut steps, mut staged) = (Vec::new(), Vec::new());
        let along = [(parts.by_row, Some(0)), (parts.by_lane, Some(1)), (parts.by_term, None)];
        for (value, side) in along.into_iter().flat_map(|(values, side)| values.into_iter().map(move |v| (v, side))) {
            let values = side.map(|side| tiling.each[side] * SIDE);
            // Rows start in different banks, and where vectors can be loaded.
            let aside = side.map_or(1, |side| tiling.beside[side]);
            let extents: Vec<i64> = std::iter::once(tiling.terms).chain(values.map(|values| values + aside)).collect();
            let room = self.local(&format!("{}_near", self.stem(value)), &extents, false);
            let interleaved = |side: usize| Interleaved { apart: SIDE, beside: tiling.beside[side] };
            self.buffers[room.0 as usize].interleaved = side.map(interleaved).filter(|layout| layout.beside > 1);
            let at: Vec<Affine> = std::iter::once(k.clone()).chain(side.map(|side| own_place(&sides[side]))).collect();
            let loops = self.staging_loops(value, term, side.map(|side| &sides[side]), tiling.terms);
            // What no element of the tile asks for need not exist.
            let other = side.map(|side| sides[1 - side].variable);
            let is_own = |guard: &&Constraint| side.is_some() && !other.is_some_and(|v| guard.affine.uses_index(v));
            let guards = guards.iter().filter(is_own).cloned().collect();
            steps.push(Step::Leaf(Leaf { guards, ..Leaf::pointwise(room, at.clone(), loops, value) }));
            staged.push((value, self.exprs.access(room, at)));
        }
        (steps, staged)
    }

    /// The loops of what is staged: neighbouring threads have elements that lie side by side.
    fn staging_loops(&self, value: ExprId, term: &Loop, side: Option<&Loop>, terms: i64) -> Vec<Loop> {
        let shared = |l: &Loop, threads: i64| Loop { kind: Kind::Threads(threads as usize), ..l.clone() };
        let Some(side) = side else { return vec![shared(term, terms)] };
        let loads =
            |variable: LoopId| -> f64 { self.exprs.accesses(value).map(|(_, at)| cost::access(at, variable)).sum() };
        let rest = self.device.block_threads / terms;
        match loads(term.variable) < loads(side.variable) {
            true => vec![shared(side, rest), shared(term, terms)],
            false => {
                let warp = cost::WARP_VALUES as i64;
                vec![shared(term, self.device.block_threads / warp), shared(side, warp)]
            }
        }
    }

    /// What an operand is called after: the first tensor that it reads.
    fn stem(&self, value: ExprId) -> String {
        let first = self.exprs.accesses(value).map(|(tensor, _)| tensor).next();
        first.map_or_else(|| "index".to_string(), |tensor: TensorId| self.name_of(tensor))
    }

    /// How a contraction is divided, if it is one and is worth it.
    fn tiling(&self, definition: &Definition, sizes: &[f64]) -> Option<Tiling> {
        definition.reduction?.combine()?;
        let rank = definition.rank;
        let sides = self.sides(definition, sizes)?;
        let free = |position: &usize| {
            !(position + 1..definition.indices.len()).any(|later| is_used(definition, *position, later))
        };
        let longest = (rank..definition.indices.len()).filter(free).max_by(|a, b| sizes[*a].total_cmp(&sizes[*b]));
        let index = longest.filter(|index| definition.conditions.is_empty() && sizes[*index] >= 1.0)?;
        if sides.iter().any(|side| is_used(definition, *side, index)) {
            return None;
        }
        let terms: f64 = sizes[rank..].iter().product();
        if terms < cost::STAGED_TERMS {
            return None;
        }
        let most = self.most_parts(definition, sizes, index);
        let (each, tiles) = self.values_of_thread(&sizes[..rank], sides, most.map_or(1.0, |(_, most)| most));
        let divided = most.map(|(position, most)| (position, (self.resident_blocks() / tiles).ceil().min(most) as i64));
        let divided = divided.filter(|(_, parts)| *parts >= 2);
        let mut parts = Parts::default();
        let (row, column) = (LoopId(sides[0] as u32), LoopId(sides[1] as u32));
        operands(&self.exprs, definition.body, (row, column), &mut parts);
        let beside = each.map(|each| each.min(self.device.vector_bytes / self.real.bytes()));
        let values = parts.by_row.len() as i64 * (each[0] * SIDE + beside[0])
            + parts.by_lane.len() as i64 * (each[1] * SIDE + beside[1])
            + parts.by_term.len() as i64;
        let room = self.device.shared_bytes / self.real.bytes() / values;
        let at_a_time = if sizes[index] >= cost::LONG_TERMS { cost::TERMS_OF_LONG_BOX } else { cost::TERMS_OF_BOX };
        let most = power_of_two(sizes[index], at_a_time);
        let fitting = std::iter::successors(Some(most), |terms| Some(terms / 2)).take_while(|terms| *terms > 0);
        let terms = fitting.filter(|terms| *terms <= room).max()?;
        Some(Tiling { sides, each, beside, index, terms, parts: divided })
    }

    /// The index along which the terms of a tile can be divided, and in how many parts at most.
    fn most_parts(&self, definition: &Definition, sizes: &[f64], index: usize) -> Option<(usize, f64)> {
        let rank = definition.rank;
        let is_plain = |position: &usize| {
            bounds(&definition.indices[*position].range, &self.times).is_some()
                && !(rank..definition.indices.len()).any(|by| is_used(definition, *position, by))
        };
        let all = (sizes[rank..].iter().product::<f64>() / cost::PART_TERMS_OF_TILE).floor();
        let of = |position: usize| {
            let own = if position == index { sizes[position] / cost::PART_TERMS_OF_TILE } else { sizes[position] };
            (position, own.floor().min(all).min(cost::MAX_TILE_PARTS))
        };
        let found = (rank..definition.indices.len()).filter(is_plain).map(of);
        found.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).filter(|(_, most)| *most >= 2.0)
    }

    /// The two outputs of which every access lacks one: those with the most elements, the one that runs along the memory of
    /// the result last.
    fn sides(&self, definition: &Definition, sizes: &[f64]) -> Option<[usize; 2]> {
        let is_long = |p: &usize| {
            sizes[*p] >= cost::STAGED_VALUES && bounds(&definition.indices[*p].range, &self.times).is_some()
        };
        let long: Vec<usize> = (0..definition.rank).filter(is_long).collect();
        let pairs = long.iter().flat_map(|a| long.iter().filter(move |b| a < b).map(move |b| [*a, *b]));
        // One bound may depend on one of them, and then goes one way with it.
        let are_apart = |pair: &[usize; 2]| {
            let ranges = definition.indices[definition.rank..].iter().map(|index| &index.range);
            ranges.flat_map(|range| range.low.iter().chain(&range.high)).all(|bound| {
                let used = pair.iter().filter(|side| bound.uses_index(**side)).count();
                let known = pair.iter().filter(|side| bound.step_of(**side) != Int::ZERO).count();
                used == known && used <= 1 && (used == 0 || !has_floors(bound))
            })
        };
        let is_pair = |pair: &[usize; 2]| {
            let mut parts = Parts::default();
            let [row, column] = pair.map(|position| LoopId(position as u32));
            let known = operands(&self.exprs, definition.body, (row, column), &mut parts);
            let count = parts.by_row.len() + parts.by_lane.len() + parts.by_term.len();
            known
                && are_apart(pair)
                && !parts.by_row.is_empty()
                && !parts.by_lane.is_empty()
                && count <= cost::STAGED_OPERANDS
        };
        let used = |pair: &[usize; 2]| pair.map(|p| sizes[p].min(128.0)).iter().product::<f64>();
        pairs.filter(is_pair).max_by(|a, b| used(a).total_cmp(&used(b)).then(a[1].cmp(&b[1])))
    }

    /// How many values of both outputs a thread has, and how many tiles that makes: as many values as its registers hold, but
    /// few enough that there are tiles for the whole machine, each in at most so many parts.
    fn values_of_thread(&self, sizes: &[f64], sides: [usize; 2], parts: f64) -> ([i64; 2], f64) {
        let most = cost::MAX_TILE_VALUES_OF_THREAD * 4 / self.real.bytes();
        let mut each = sides.map(|side| power_of_two(sizes[side] / SIDE as f64, most));
        let other = |(position, size): (usize, &f64)| if sides.contains(&position) { 1.0 } else { *size };
        let others: f64 = sizes.iter().enumerate().map(other).product();
        let tiles = |each: [i64; 2]| {
            let along = |n: usize| (sizes[sides[n]] / (each[n] * SIDE) as f64).ceil();
            others * along(0) * along(1)
        };
        while tiles(each) * parts < self.resident_blocks() && each != [1, 1] {
            let larger = if each[0] >= each[1] { 0 } else { 1 };
            each[larger] /= 2;
        }
        (each, tiles(each))
    }

    /// How many blocks of tiles are resident at the same time: their threads have twice as many registers as others.
    fn resident_blocks(&self) -> f64 {
        (self.device.resident_threads / self.device.block_threads) as f64 * cost::TILES_PER_RESIDENT_BLOCK
    }
}

fn has_floors(bound: &Affine) -> bool {
    bound.terms().iter().any(|(atom, _)| matches!(atom, Atom::Floor(..)))
}

/// Whether the range of one index depends on another one.
fn is_used(definition: &Definition, position: usize, by: usize) -> bool {
    let range = &definition.indices[by].range;
    range.low.iter().chain(&range.high).any(|bound| bound.uses_index(position))
}
