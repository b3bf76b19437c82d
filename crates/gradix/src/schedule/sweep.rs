//! How instructions over many points take the points of a leaf: which loop runs along them, and which across.
//!
//! What a nest has in lanes and unrolled comes first, but for the lanes of a sum of few terms. Where it has no lanes, since conditions depend on every loop or there is
//! little to do, the innermost output is taken; and where it has no rows, the innermost other output of some length, as an
//! instruction is worth its while on many elements only. Where outputs are few, terms of a reduction take the place of rows.

use crate::nest::Leaf;
use crate::target::cost;

/// Loops of a leaf, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// The one along instructions: an output, or the innermost loop of the reduction.
    pub lanes: usize,
    /// The one across: an output, or the innermost loop of the reduction, whose terms are then summed up.
    pub rows: Option<usize>,
}

/// Whether a loop may run along instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// It can't.
    Never,
    /// Where a guard or a condition changes, an instruction ends.
    Cut,
    /// All of its values do the same.
    Whole,
}

/// What is known of the loops of a leaf, by position.
pub struct Facts<'a> {
    /// About how many values each has.
    pub extents: Vec<i64>,
    /// Whether each may run along instructions.
    pub lanes: Vec<Lanes>,
    /// Whether an output may run across, beside these lanes.
    pub rows: &'a dyn Fn(usize, usize) -> bool,
    /// Whether terms of the innermost loop of the reduction may.
    pub terms: bool,
}

/// The loops that instructions run over; none if no loop may run along them.
pub fn sweep(leaf: &Leaf, facts: &Facts) -> Option<Sweep> {
    let inner = || (0..leaf.outputs).rev().chain(leaf.loops.len().checked_sub(1));
    let may = |position: &usize| facts.lanes[*position] != Lanes::Never;
    let whole = |position: &usize| facts.lanes[*position] == Lanes::Whole;
    let named = leaf.lanes().filter(may);
    let long = (0..leaf.outputs).filter(whole).max_by_key(|output| facts.extents[*output]);
    let is_short = |lanes: usize, than: usize| {
        lanes >= leaf.outputs && facts.extents[lanes] < facts.extents[than].min(cost::FEW_FOLDED)
    };
    let long = long.filter(|long| named.is_some_and(|lanes| is_short(lanes, *long)));
    let lanes = long.or(named).or_else(|| inner().find(whole)).or_else(|| inner().find(may))?;
    let named = leaf.rows().map(|(position, _)| position).into_iter();
    let outputs = named.chain((0..leaf.outputs).rev());
    let rows = outputs.filter(|rows| *rows != lanes && (facts.rows)(*rows, lanes));
    // Of equally long ones the first.
    let rows = rows.min_by_key(|rows| -facts.extents[*rows].min(cost::ENOUGH_ROWS));
    Some(Sweep { lanes, rows: terms(leaf, facts, lanes, rows).or(rows) })
}

/// The innermost loop of the reduction, if its terms rather than an output are taken as rows.
fn terms(leaf: &Leaf, facts: &Facts, lanes: usize, rows: Option<usize>) -> Option<usize> {
    let last = leaf.loops.len() - 1;
    let height = rows.map_or(1, |rows| facts.extents[rows]);
    let few = facts.extents[lanes].saturating_mul(height) < cost::ENOUGH_OUTPUTS;
    let fits = lanes < leaf.outputs && last >= leaf.outputs && facts.terms;
    (fits && few && facts.extents[last] > height).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nest::{Kind, Loop, LoopId};
    use crate::program::{ExprId, Range, ReduceOp, TensorId};

    /// `y[i, j] = sum[k] …` with so many values of each, of which one may be named as the lanes.
    fn chosen(extents: [i64; 3], named: Option<usize>, lanes: [Lanes; 3]) -> Option<Sweep> {
        let kind = |position| if named == Some(position) { Kind::Lanes(1) } else { Kind::Serial };
        let each = |p| Loop { variable: LoopId(p as u32), range: Range { low: vec![], high: vec![] }, kind: kind(p) };
        let leaf = Leaf::pointwise(TensorId(0), Vec::new(), (0..3).map(each).collect(), ExprId(0));
        let leaf = Leaf { outputs: 2, reduction: Some(ReduceOp::Sum), ..leaf };
        let facts = Facts { extents: extents.to_vec(), lanes: lanes.to_vec(), rows: &|_, _| true, terms: true };
        sweep(&leaf, &facts)
    }

    #[test]
    fn what_the_nest_has_in_lanes_comes_first_and_else_the_innermost_output_in_one_piece() {
        let lanes = |named, lanes| chosen([64, 64, 8], named, lanes).map(|sweep| (sweep.lanes, sweep.rows));
        assert_eq!(lanes(Some(0), [Lanes::Whole; 3]), Some((0, Some(1))));
        assert_eq!(lanes(None, [Lanes::Whole; 3]), Some((1, Some(0))));
        assert_eq!(lanes(None, [Lanes::Whole, Lanes::Cut, Lanes::Never]), Some((0, Some(1))));
        assert_eq!(lanes(None, [Lanes::Never, Lanes::Cut, Lanes::Never]), Some((1, Some(0))));
        assert_eq!(lanes(None, [Lanes::Never; 3]), None);
    }

    #[test]
    fn lanes_that_are_few_terms_give_way_to_a_longer_output() {
        let lanes = |extents| chosen(extents, Some(2), [Lanes::Whole; 3]).map(|sweep| sweep.lanes);
        assert_eq!(lanes([4, 64, 16]), Some(1));
        assert_eq!(lanes([4, 8, 16]), Some(2));
        assert_eq!(lanes([4, 512, 256]), Some(2));
    }

    #[test]
    fn terms_are_rows_where_outputs_are_few() {
        let rows = |extents| chosen(extents, None, [Lanes::Whole; 3]).and_then(|sweep| sweep.rows);
        assert_eq!(rows([4, 8, 500]), Some(2));
        assert_eq!(rows([4, 8, 3]), Some(0));
        assert_eq!(rows([400, 8, 5000]), Some(0));
    }
}
