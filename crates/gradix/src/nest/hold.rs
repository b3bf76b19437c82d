//! What a loop over steps keeps in registers: single numbers that each step computes and the next ones read.
//!
//! ```text
//! for t in 1..=T - 1: s[t] = x[t] + s[t - 1]      s[t] is at hand when the next step needs it
//! ```

use super::{Held, Leaf, Step, Tile};
use crate::domain::guard;
use crate::program::{Affine, Atom, Expr, Exprs};

/// The most values before that are kept of one target.
const MAX_HELD: usize = 4;

/// Finds what a tile holds.
pub fn hold(exprs: &mut Exprs, tile: &mut Tile) {
    let single: Vec<Leaf> = tile.steps.iter().filter_map(single).cloned().collect();
    if single.len() < tile.steps.len() || tile.size != 1 {
        return;
    }
    let is_only = |leaf: &Leaf| single.iter().filter(|other| other.target == leaf.target).count() == 1;
    for (position, leaf) in single.iter().enumerate().filter(|(_, leaf)| is_only(leaf)) {
        let reads = |back: &usize| reads_before(exprs, &single, leaf, tile, *back);
        let values = (1..=MAX_HELD).take_while(reads).count();
        if values > 0 {
            tile.held.push(Held { leaf: position, values });
        }
    }
}

/// A leaf that computes one number.
fn single(step: &Step) -> Option<&Leaf> {
    match step {
        Step::Leaf(leaf) if leaf.loops.is_empty() && leaf.guards.is_empty() => Some(leaf),
        Step::Leaf(_) | Step::Tile(_) | Step::Together(_) => None,
    }
}

/// Whether some leaf reads, whatever conditions say, what a leaf has written so many values of the tile before, and at another
/// place than it writes now.
fn reads_before(exprs: &mut Exprs, leaves: &[Leaf], leaf: &Leaf, tile: &Tile, back: usize) -> bool {
    let place = written(leaf, tile, back);
    let mut reads = |reader: &Leaf| {
        guard::guarded_accesses(exprs, reader.body).into_iter().any(|(access, guards)| {
            let always = guards.iter().any(|guard| guard.is_empty());
            always && matches!(&exprs[access], Expr::Access(read, at) if *read == leaf.target && *at == place)
        })
    };
    place != leaf.subscripts && leaves.iter().any(&mut reads)
}

/// Where a leaf has written so many values of the tile before.
pub fn written(leaf: &Leaf, tile: &Tile, back: usize) -> Vec<Affine> {
    let before = Affine::index(tile.variable).shift(-(back as i64));
    let moved = |subscript: &Affine| {
        subscript.substitute(&mut |atom| match atom {
            Atom::Index(v) if *v == tile.variable.0 => Some(before.clone()),
            Atom::Index(_) | Atom::Param(_) | Atom::Floor(..) => None,
        })
    };
    leaf.subscripts.iter().map(moved).collect()
}
