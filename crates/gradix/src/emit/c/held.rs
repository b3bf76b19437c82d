//! A loop over steps that keeps some of what it computes in registers.

use super::leaf::Writer;
use crate::emit::tree::Value;
use crate::emit::values::Instances;
use crate::nest::hold::written;
use crate::nest::{Leaf, Tile, leaves};
use crate::program::{Affine, Expr, TensorId};

/// An element that is at hand: where it is in memory, and the name of its value.
struct Known {
    target: TensorId,
    subscripts: Vec<Affine>,
    value: Value,
}

/// Writes a tile whose steps are leaves without loops.
pub fn write(w: &mut Writer, tile: &Tile) {
    let (low, high) = (w.names.low(&tile.range), w.names.high(&tile.range));
    let v = w.names.variables[tile.variable].clone();
    let [low, high] = [("low", low), ("high", high)].map(|(stem, value)| w.draft.constant(stem, value));
    w.draft.when(low.at_most(&high));
    w.names.variables[tile.variable] = low.clone();
    let leaves = leaves(&tile.steps);
    let mut registers: Vec<Vec<Known>> = Vec::new();
    for held in &tile.held {
        registers.push((1..=held.values).map(|back| start(w, leaves[held.leaf], tile, back)).collect());
    }
    w.names.variables[tile.variable] = v.clone();
    w.draft.each(&v, low, &high, 1);
    let mut made: Vec<Known> = Vec::new();
    for leaf in &leaves {
        // What several leaves write is not known by its place.
        let is_only = |known: &&Known| leaves.iter().filter(|leaf| leaf.target == known.target).count() == 1;
        let known: Vec<&Known> = registers.iter().flatten().chain(made.iter().filter(is_only)).collect();
        let now = statement(w, leaf, &known);
        made.push(now);
    }
    for (held, registers) in tile.held.iter().zip(&registers) {
        let values = std::iter::once(&made[held.leaf]).chain(registers);
        let moves: Vec<(Value, Value)> =
            registers.iter().zip(values).map(|(to, from)| (to.value.clone(), from.value.clone())).collect();
        moves.into_iter().rev().for_each(|(to, from)| w.draft.assign(&to, from));
    }
    w.draft.close(2);
}

/// What a leaf has written so many values before the first one.
fn start(w: &mut Writer, leaf: &Leaf, tile: &Tile, back: usize) -> Known {
    let subscripts = written(leaf, tile, back);
    let element = w.names.element(leaf.target, &subscripts);
    let value = w.draft.variable("held", element);
    Known { target: leaf.target, subscripts, value }
}

/// Computes what a leaf writes, from what is at hand.
fn statement(w: &mut Writer, leaf: &Leaf, known: &[&Known]) -> Known {
    let exprs = &w.names.nest.exprs;
    let mut given = Vec::new();
    for id in exprs.postorder(leaf.body) {
        let Expr::Access(read, at) = &exprs[id] else { continue };
        let is_same = |known: &&Known| known.target == *read && known.subscripts == *at;
        given.extend(known.iter().copied().find(is_same).map(|known| (id, known.value.clone())));
    }
    let mut values = w.values(Instances::default());
    values.given.extend(given.into_iter().map(|(id, value)| ((id, (0, 0)), value)));
    let value = values.value(leaf.body, (0, 0));
    let value = w.draft.constant("now", value);
    let element = w.names.element(leaf.target, &leaf.subscripts);
    w.draft.assign(&element, value.clone());
    Known { target: leaf.target, subscripts: leaf.subscripts.clone(), value }
}
