//! The cost model: what things cost, and from where on they pay. No other file decides speed by a number of its own.
//!
//! Unless an entry says more, its number was chosen on the ten workloads of the benchmark set, at their sizes, on a
//! machine with AVX-512 and 2 MiB of second cache for each core: it is where they ran fastest, not a law.
//!
//! Units: an *addition* is the time of one in the middle of others; a *load* is that of one vector that lies side by
//! side in memory; elements, values, terms and points are counted, and the sizes are the assumed ones. Operations of the
//! language have their weights, in additions, in the tables of [`scalar`](crate::scalar).

use crate::program::expr::Exprs;
use crate::program::{Affine, BinaryOp, Expr, ExprId, Variable};
use gradix_int::Int;

// ---- Accesses, in loads.

/// An element that is the same in all lanes: it is loaded once for many vectors.
pub const SAME_ELEMENT_LOADS: f64 = 0.2;
/// Elements side by side: the unit.
pub const NEIGHBOUR_LOADS: f64 = 1.0;
/// Elements at even distances in one row.
pub const STRIDED_LOADS: f64 = 5.0;
/// Elements of different rows, each in a line of its own.
pub const SCATTERED_LOADS: f64 = 8.0;
/// What sums in lanes cost besides, for every term: they depend on each other unless there are many.
pub const DEPENDENT_SUM_LOADS: f64 = 0.3;
/// What the lanes of a sum cost to add up, for all of its terms together.
pub const LANES_SUMMED_LOADS: f64 = 40.0;
/// Conditions on indices become masks where that takes at most this share of the loads: both branches are computed.
pub const MASKED_LOADS_SHARE: f64 = 0.5;
/// What it costs if the bounds of a reduction move with the lanes.
pub const MOVING_BOUNDS_LOADS: f64 = 0.1;

/// What an access costs with an index in the lanes, in loads.
pub fn access(subscripts: &[Affine], lanes: impl Variable) -> f64 {
    let last = subscripts.len().wrapping_sub(1);
    let factors = subscripts.iter().enumerate().map(|(d, s)| (d, s.step_of(lanes)));
    let moving: Vec<(usize, Int)> = factors.filter(|(_, c)| *c != Int::ZERO).collect();
    match moving.as_slice() {
        [] => SAME_ELEMENT_LOADS,
        [(d, one)] if *d == last && *one == Int::ONE => NEIGHBOUR_LOADS,
        [(d, _)] if *d == last => STRIDED_LOADS,
        _ => SCATTERED_LOADS,
    }
}

/// The loads and stores of one term with an index in the lanes: all that is read, and a share of what is written once
/// for so many terms.
pub fn transfers<'a>(
    reads: impl Iterator<Item = &'a [Affine]>,
    written: &[Affine],
    terms: f64,
    lanes: impl Variable,
) -> f64 {
    let loads: f64 = reads.map(|subscripts| access(subscripts, lanes)).sum();
    let stores = match written.iter().any(|subscript| subscript.uses_index(lanes)) {
        true => access(written, lanes) / terms.max(1.0),
        false => 0.0,
    };
    loads + stores
}

// ---- Operations, in additions.

/// A power with a small whole exponent is a few products.
pub const SMALL_POWER_ADDITIONS: f64 = 2.0;
/// The largest such exponent.
pub const SMALL_EXPONENT: f64 = 4.0;
/// A function in plain loops.
pub const PLAIN_FUNCTION_ADDITIONS: f64 = 8.0;

/// One node of an expression, in vectors: `None` where it is no operation.
pub fn operation(exprs: &Exprs, id: ExprId) -> Option<f64> {
    match &exprs[id] {
        Expr::Constant(_) | Expr::Index(_) | Expr::Access(..) | Expr::Select(..) => None,
        Expr::Unary(op, _) => Some(op.row().weight),
        Expr::Binary(BinaryOp::Pow, _, exponent) if is_small_exponent(exprs, *exponent) => Some(SMALL_POWER_ADDITIONS),
        Expr::Binary(op, ..) => Some(op.row().weight),
    }
}

fn is_small_exponent(exprs: &Exprs, exponent: ExprId) -> bool {
    exprs.as_constant(exponent).is_some_and(|n| n.fract() == 0.0 && n.abs() <= SMALL_EXPONENT)
}

/// One node of an expression in plain loops, where elements and choices take time, too.
pub fn plain_operation(exprs: &Exprs, id: ExprId) -> f64 {
    match exprs[id] {
        Expr::Unary(..) => PLAIN_FUNCTION_ADDITIONS,
        Expr::Binary(op, ..) if op.is_elementary() => PLAIN_FUNCTION_ADDITIONS,
        Expr::Constant(_) | Expr::Index(_) | Expr::Access(..) | Expr::Binary(..) | Expr::Select(..) => 1.0,
    }
}

// ---- Sizes that nobody gave.

/// The size that is assumed where none is known: large enough for vectors and blocks to matter.
pub const ASSUMED_SIZE: f64 = 512.0;
/// An argument with fewer elements in a dimension makes no good example.
pub const ASSUMED_EXTENT: f64 = 16.0;

// ---- Candidates of `compile`.

/// A program that takes less time than this many additions is written as it stands, in plain loops: it runs for some
/// microseconds either way, and to compile anything better takes longer than thousands of runs.
pub const PLAIN_ADDITIONS: f64 = 131_072.0;
/// The same for each definition, where there are many.
pub const PLAIN_ADDITIONS_PER_DEFINITION: f64 = 2048.0;
/// In loops of more values than this vectors pay, however few loops there are.
pub const PLAIN_LOOP_VALUES: f64 = 64.0;
/// So many elements may be stored whatever the sizes of the program are: 4 MiB of f64.
pub const SPARE_ELEMENTS: f64 = 524_288.0;
/// How many elements may be stored for each of an argument: memory stays in proportion to what was given.
pub const ROOM_PER_ARGUMENT_ELEMENT: f64 = 2.0;

// ---- `economise`, in additions.

/// One more value that is summed up, which its reader may do on the way.
pub const SUMMED_VALUE_ADDITIONS: f64 = 1.0;
/// One more value that is kept: it is stored, and loaded again.
pub const KEPT_VALUE_ADDITIONS: f64 = 3.0;
/// What each element of a part has to save that has more of them than all inputs and results.
pub const LARGE_PART_ADDITIONS: f64 = 8.0;
/// What is less costly than this is computed again by each definition that needs it.
pub const SHARED_VALUE_ADDITIONS: f64 = 4.0;
/// A function of one element that takes as many is worth an element of its own, if it is evaluated at several places.
pub const ELEMENT_ADDITIONS: f64 = 6.0;
/// Steps with fewer elements than this are single numbers, and no vectors.
pub const VECTOR_STEP_ELEMENTS: f64 = 4.0;
/// How often it is evaluated for each element, at least.
pub const ELEMENT_USES: f64 = 1.9;
/// A choice by an index of a reduction, or an element at a remainder of it, at every term: there are no vectors then, and the choice
/// is made one term after the other.
pub const TURN_ADDITIONS: f64 = 4.0;
/// The least operation.
pub const LEAST_ADDITIONS: f64 = 1.0;
/// What has to be gained, as a share of the work of the definitions that change.
pub const GAIN_SHARE: f64 = 0.02;
/// The same for a pointwise part that is a single number: it stands before all that need it.
pub const NUMBER_GAIN_SHARE: f64 = 0.25;
/// Another order of the indices of a reduction has to go through less than this share of the values.
pub const REORDERED_VISITS_SHARE: f64 = 0.5;
/// Another way to split a sum has to cost less than this share of the best so far.
pub const SPLIT_COST_SHARE: f64 = 0.99;
/// Windows are taken apart where they are this share of all work: it makes several definitions of one.
pub const WINDOW_WORK_SHARE: f64 = 0.04;
/// Windows of fewer terms are left alone.
pub const WINDOW_TERMS: f64 = 16.0;

// ---- `scan`, in additions.

/// A step of a recurrence that waits for the one before, with all that goes with it: so many additions are done meanwhile.
pub const SCAN_STEP_ADDITIONS: f64 = 64.0;
/// Reductions that are less than this share of all work stay: what a recurrence stands between is computed apart.
pub const SCAN_WORK_SHARE: f64 = 0.02;
/// So many elements go a step at a time, where other outputs are beside each other.
pub const SCAN_LANES: f64 = 8.0;
/// What costs more than this at each step and does not depend on other steps is computed before, for all of them.
pub const SCAN_KEPT_ADDITIONS: f64 = 4.0;

// ---- `arrange`: what is computed again, and what is copied.

/// An index runs in lanes if it has so many vectors of f64, whatever the type of the elements.
pub const WIDE_VECTORS: f64 = 2.0;
/// What each of its elements is used for more often than this is stored.
pub const RECOMPUTED_READS: f64 = 8.0;
/// A definition of so many operations is computed again at each use, with one more element than that.
pub const RECOMPUTED_OPERATIONS: usize = 2;
/// The same for one that is used at a single place.
pub const RECOMPUTED_ONCE_OPERATIONS: usize = 3;
/// A copy pays if each of its elements is read this often.
pub const READS_PER_COPIED_ELEMENT: f64 = 16.0;
/// Up to this many elements, the rows of a buffer are close to each other: 1 KiB of f64, which one page has some of.
pub const NARROW_ROW_ELEMENTS: f64 = 128.0;
/// Vectors in a block of a copy: as many as the widest register tile has.
pub const BLOCK_VECTORS: i64 = 4;
/// Fewer blocks than this are not worth a copy.
pub const BLOCKS_PER_COPY: f64 = 4.0;
/// A reduction of so many terms runs in lanes itself where the last output is narrow.
pub const NARROW_OUTPUT_TERMS: f64 = 256.0;
/// Another order of dimensions has to cost less than this share: what makes no difference is left alone.
pub const ORDER_COST_SHARE: f64 = 0.999;
/// A reduction of so many terms is restricted to where it is read: with fewer, its loops cost more than what they leave out.
pub const DEMANDED_TERMS: f64 = 8.0;
/// What takes at least this long, and stands in a branch that values choose, is computed before: with masks it would be for all lanes.
pub const MASKED_ADDITIONS: f64 = 4.0;
/// So many times as many points as elements make that worth while.
pub const READS_PER_PART: f64 = 8.0;
/// What is no more than the work of all divided by this comes first, if it needs arguments only.
pub const WORK_PER_PRELUDE: f64 = 100.0;

// ---- `schedule`: groups, slabs and items.

/// Where indices are assumed to be when extents depend on them, as shares of their values.
pub const MIDDLE: f64 = 0.5;
/// Where else, if nothing is left there.
pub const BESIDE_MIDDLE: [f64; 2] = [0.75, 0.25];
/// The fewest terms in the middle of a turn that goes on from the sums of another, unless it has none there: each sum is read and stored
/// once more.
pub const TURN_TERMS: f64 = 8.0;
/// A border with as many vectors along it is cut again, so that they have no conditions: an edge of a field of 256 x 256 then takes a
/// tenth of the time.
pub const EDGE_VECTORS: f64 = 4.0;
/// How many points an item of work has, at least, so that sharing items out costs little beside them.
pub const ITEM_POINTS: f64 = 20_000.0;
/// Where items repeat something (operands that are packed, places beside a slab), so many of them are one.
pub const ITEMS_PER_REPEATING_ITEM: i64 = 4;
/// Elements that items read again, as a share of the points of all, that are no reason to have few items.
pub const REPEATED_SHARE: f64 = 1e-3;
/// How often each element of what is local is accessed, at least: written, and read. Past the cache, that costs as much as other
/// elements.
pub const LOCAL_ACCESSES: f64 = 2.0;
/// Results of more elements than this are reduced in few parts: all parts are written, and read again.
pub const MANY_PARTS_ELEMENTS: f64 = 32_768.0;
/// There, so many parts are one.
pub const PARTS_PER_LARGE_PART: i64 = 2;
/// The fewest parts of a sum.
pub const LEAST_PARTS: f64 = 2.0;
/// The share of the room for stored elements that parts may take.
pub const ROOM_SHARE_OF_PARTS: f64 = 0.75;
/// Parts of so many elements in all are always worth what they save.
pub const SPARE_PART_ELEMENTS: f64 = 4096.0;
/// A reduction of so many terms is split, for its operands to stay in the cache, unless it has many elements.
pub const LONG_SUM_TERMS: f64 = 4096.0;
/// What the parts of an element cost, in terms.
pub const PART_TERMS: f64 = 1024.0;
/// A reduction to so few elements is split: there is nothing else to share out.
pub const FEW_SUMS: f64 = 64.0;
/// The fewest values of an index of a reduction that is split for that reason.
pub const SPLIT_SUM_VALUES: f64 = 64.0;
/// The fewest values of an output that slabs are made of.
pub const SLAB_VALUES: f64 = 4.0;
/// Lanes of fewer values than this are not divided into slabs.
pub const DIVIDED_LANE_VALUES: f64 = 512.0;
/// Unless no other output has so many values.
pub const OTHER_SLAB_VALUES: f64 = 8.0;
/// How far beside a slab may be read, in values: what lies there is computed again, or kept.
pub const HALO_VALUES: i64 = 4;
/// A reduction is uneven if it has so many times as many terms near one end of the slab index as near the other.
pub const UNEVEN_TERMS_RATIO: f64 = 2.0;
/// Where near the ends is, as a share of the values.
pub const NEAR_END_SHARE: f64 = 0.1;
/// Slabs have a multiple of so many values: register tiles then have no rest.
pub const SLAB_MULTIPLE: f64 = 8.0;
/// Unless there are fewer values than this.
pub const ROUNDED_SLAB_VALUES: f64 = 16.0;
/// The most values of a tile.
pub const TILE_VALUES: f64 = 64.0;
/// The share of the second cache for what is local to a group; an eighth is left for all else.
pub const L2_SHARE_OF_LOCALS: f64 = 7.0 / 8.0;
/// The same where every tile is a few rows, and what it keeps from tile to tile should be close.
pub const L2_SHARE_OF_RINGS: f64 = 1.0 / 16.0;

// ---- `divide`: what goes along with the steps of a recurrence.

/// What takes more additions than this for each element of the recurrence that it reads is done for all steps at once.
pub const FOLLOWER_ADDITIONS: f64 = 64.0;
/// A step with fewer elements than this is over before it pays to read it while it is near.
pub const FOLLOWED_ELEMENTS: f64 = 256.0;

// ---- `waves`: recurrences in two ordered indices.

/// From so many additions for an element on, diagonals pay for their layout. On 1024² elements and one thread, a summed-area
/// table (3 additions) takes three times as long along diagonals, and edit distance a third of the time.
pub const DIAGONAL_ADDITIONS: f64 = 8.0;

// ---- `nest`: items that go through the steps of a recurrence.

/// From so many items on, more are not better: an outer index is taken before an inner one.
pub const ITEMS_OF_STEPS: f64 = 4.0;
/// Where items share out the lanes, how many vectors of f64 each has.
pub const VECTORS_OF_STEPS: i64 = 16;

// ---- `schedule`: which index is the slab index. Penalties in elements that are read; each outweighs the next.

/// For an index of so few values that items are too few.
pub const FEW_VALUES_PENALTY: f64 = 1e12;
/// The gain of a long reduction that is split.
pub const LONG_SUM_GAIN: f64 = 1e9;
/// For an index that runs in lanes, or that bounds divide.
pub const LANES_PENALTY: f64 = 1e5;
/// For a member that covers only some of the slabs.
pub const SOME_SLABS_PENALTY: f64 = 1.0;
/// For each index outside of it: outer ones first.
pub const INNER_INDEX_PENALTY: f64 = 1e-3;

// ---- `lower`: lanes, rows, register tiles and panels.

/// The share of the registers that hold the sums of a tile; the others are for operands.
pub const TILE_SHARE_OF_REGISTERS: f64 = 13.0 / 16.0;
/// The same beside lanes over a reduction, where more of the operands are vectors.
pub const COLUMN_SHARE_OF_REGISTERS: f64 = 3.0 / 4.0;
/// The most vectors of a register tile.
pub const TILE_VECTORS: usize = 4;
/// The rows that a register tile may have.
pub const TILE_ROWS: [usize; 8] = [4, 5, 6, 7, 8, 10, 12, 14];
/// The tile where none fits: vectors and rows.
pub const PLAIN_TILE: (usize, usize) = (1, 8);
/// With fewer sums than this under way, additions wait for each other: about the units that add times how long one takes.
pub const SUMS_UNDER_WAY: f64 = 10.0;
/// What a load costs in a register tile, in products.
pub const TILE_LOAD_PRODUCTS: f64 = 0.6;
/// A vector, which may not be aligned, in loads of one number for all lanes.
pub const UNALIGNED_VECTOR_LOADS: f64 = 1.5;
/// The rows of a tile whose lanes run over a reduction.
pub const REDUCED_TILE_ROWS: usize = 4;
/// The columns beside them, where more than [`ALL_COLUMNS`] share operands.
pub const REDUCED_TILE_COLUMNS: usize = 4;
/// So many columns are all taken at once.
pub const ALL_COLUMNS: f64 = 8.0;
/// The most vectors of sums that share nothing.
pub const SUM_VECTORS: usize = 8;
/// The fewest values of an output that is unrolled.
pub const UNROLLED_VALUES: f64 = 2.0;
/// The fewest values of rows whose operands are packed.
pub const PACKED_ROW_VALUES: f64 = 4.0;
/// The fewest values of an output that is kept whole because it would best be rows.
pub const PREFERRED_ROW_VALUES: f64 = 8.0;
/// The rows of a stair, for a range that moves with them: what is left at the ends is a small share of long ranges, and what is
/// packed is used for as many rows. A multiple of most numbers of rows that register tiles have.
pub const STAIR_ROWS: f64 = 48.0;
/// The vectors of a stair, for a range that moves with the lanes: the most that a register tile has.
pub const STAIR_VECTORS: f64 = TILE_VECTORS as f64;
/// Steps of up to so many elements stay in a line or go to the next.
pub const CLOSE_ELEMENTS: i64 = 4;
/// From so many rows on, what they share is packed.
pub const PACKED_ROWS: f64 = 40.0;
/// From so many vectors of lanes on, what they share is packed.
pub const PACKED_VECTORS: f64 = 12.0;
/// The most operands of a contraction that are packed.
pub const PACKED_OPERANDS: usize = 6;
/// The terms that are packed at a time: a row of them is so much of the first cache, and those of a tile stay in it.
pub const L1_SHARE_OF_ROW: f64 = 1.0 / 16.0;
/// The lanes that are packed at a time: with all terms so much of the second cache.
pub const L2_SHARE_OF_LANES: f64 = 3.0 / 8.0;
/// The rows that are packed at a time, where they are kept: with all terms so much of the second cache, beside the lanes.
pub const L2_SHARE_OF_ROWS: f64 = 9.0 / 64.0;
/// Panels have a multiple of so many terms and rows, and at least as many: more than a register tile has.
pub const PANEL_MULTIPLE: i64 = 32;
/// The same for lanes: as many as the widest register tile has.
pub const PANEL_LANES_MULTIPLE: i64 = 64;
/// Rows of a multiple of so many elements fall into the same few lines of the cache; a gap keeps them apart.
pub const ALIASED_ROW_ELEMENTS: f64 = 256.0;
/// The gap, in lines of f64.
pub const ROW_GAP_LINES: i64 = 2;
/// Vectors that are taken at a time where leaves run together and something is reduced: sums don't wait for each other.
pub const TOGETHER_VECTORS: usize = 2;
/// Rows that are taken at a time where leaves run together and something adds to one element for each of them.
pub const TOGETHER_ROWS: usize = 4;
/// More statements than this don't share registers well.
pub const STATEMENTS_TOGETHER: usize = 6;
/// Residue classes that an output is taken apart into, at most: each has loops of its own.
pub const RESIDUE_CLASSES: i64 = 8;

// ---- The virtual machine: an instruction works on a block of rows and lanes.

/// The bytes of a block: several of them stay in the first cache.
pub const BLOCK_BYTES: usize = 16 * 1024;
/// Bodies of up to so many nodes have blocks that are so many times smaller: each node may have a block of its own.
pub const BLOCKS_OF_NODES: [(usize, usize); 3] = [(4, 1), (24, 2), (usize::MAX, 4)];
/// Blocks lie so many bytes further apart, so that they don't fall into the same places of the first cache, where loads would
/// wait for stores of another block.
pub const BLOCK_GAP_BYTES: usize = 320;
/// Rows of a block with fewer lines of the cache than this lie side by side, so that they run as one.
pub const SHORT_ROW_LINES: usize = 8;
/// More rows than this are not better.
pub const ENOUGH_ROWS: i64 = 32;
/// So many outputs at a time are worth an instruction; with fewer, terms are the rows of a block.
pub const ENOUGH_OUTPUTS: i64 = 256;
/// The rows of a block whose lanes are summed up: few, so that their lanes stay in the first cache.
pub const FOLDED_ROWS: usize = 4;
/// Fewer terms than this don't pay for summing up partial sums: lanes are an output then.
pub const FEW_FOLDED: i64 = 32;
/// The vectors of partial sums of each of them, which don't wait for each other.
pub const FOLDED_VECTORS: usize = 4;
/// The rows that are packed at a time where the nest has those of one register tile: packing is a call.
pub const PACKED_ROWS_OF_VM: usize = 96;
/// Register tiles of one vector, two, and three load more for each product, in units of the last.
pub const NARROW_TILE_COSTS: [f64; 3] = [1.2, 1.08, 1.0];
/// Copies of no more elements are no calls: the vectors of a register tile.
pub const SHORT_LINE_ELEMENTS: usize = 48;
/// The width of the squares in which blocks are turned.
pub const SQUARE_ELEMENTS: usize = 16;

// ---- `schedule`: GPUs. Estimates from the facts of the machine, unless an entry says what was measured.

/// Threads that run in step: with fewer neighbours than these, some of them idle or read lines of their own.
pub const WARP_VALUES: f64 = 32.0;
/// The fewest terms for each thread of a part of a sum.
pub const PART_TERMS_OF_THREAD: f64 = 8.0;
/// The most parts of a sum, which another kernel reads again.
pub const MAX_DEVICE_PARTS: f64 = 1024.0;
/// What a step of a tree costs a thread besides, with its barrier, in loads.
pub const TREE_STEP_LOADS: f64 = 4.0;
/// The fewest terms for which operands are staged.
pub const STAGED_TERMS: f64 = 8.0;
/// The fewest rows and columns of a tile: with fewer, what is staged is hardly used again.
pub const STAGED_VALUES: f64 = 8.0;
/// Threads along each side of a tile.
pub const TILE_SIDE_THREADS: i64 = 16;
/// The most rows and columns that a thread has, for numbers of four bytes; half as many for those of eight.
pub const MAX_TILE_VALUES_OF_THREAD: i64 = 8;
/// Blocks of tiles that are resident at the same time, for each one that there could be: their threads have four times the registers.
pub const TILES_PER_RESIDENT_BLOCK: f64 = 0.25;
/// So many blocks have to find room on a multiprocessor at the same time, with 128 registers for each thread: while one waits for
/// memory, the other computes. Of the products of 4096 x 4096 matrices in a gradient in f32, one with 137 registers took 5.3 ms, others with 128 took 3.4
/// (H200).
pub const LEAST_BLOCKS_OF_MULTIPROCESSOR: usize = 2;
/// The most terms of a tile that are staged at a time.
pub const TERMS_OF_BOX: i64 = 16;
/// The same for long sums. With 32 instead of 16, on an H200: products of 4096 x 4096 matrices in f32 0.98 of the time, in f64 0.93;
/// convolutions over 128 channels 0.93 and 0.99; a product of weights of attention with values (8192 terms, 64 columns) 1.09 and 0.95.
pub const TERMS_OF_LONG_BOX: i64 = 32;
/// The fewest terms of a long sum: four boxes.
pub const LONG_TERMS: f64 = 128.0;
/// The fewest terms of a part of a tile: what is stored of it is read again.
pub const PART_TERMS_OF_TILE: f64 = 128.0;
/// The most parts of a tile.
pub const MAX_TILE_PARTS: f64 = 64.0;
/// A launch of a kernel that waits for another one, in additions: some 3 µs at a third of 60 TFLOP/s.
pub const LAUNCH_ADDITIONS: f64 = 6e7;
/// How many operations take as long as an element that comes from memory or goes there: 60 TFLOP/s and 4.3 TB/s, f32.
pub const OPERATIONS_PER_ELEMENT: f64 = 50.0;
/// A load that finds its element in a cache, in elements from memory.
pub const CACHED_LOAD: f64 = 0.15;
/// Pointwise elements that a thread has, if there are enough for all threads.
pub const ELEMENTS_OF_THREAD: i64 = 4;
/// Tiles of a long sum whose loads are under way at the same time.
pub const TILES_AT_ONCE: i64 = 4;
/// The most operands of a contraction that are staged.
pub const STAGED_OPERANDS: usize = 4;
