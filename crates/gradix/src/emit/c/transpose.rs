//! What is read across the order in which it is written, as C: squares of a vector's width are turned in registers.
//!
//! A copy is a call of one function; other values are computed for a square of places, along what is read.

use super::lanes::{Place, all, combine, neutral};
use super::leaf::Writer;
use super::library;
use crate::emit::integers::larger;
use crate::emit::tree::{Callee, Head, Type, Value};
use crate::emit::values::Instances;
use crate::nest::{Leaf, Loop, Turn};
use crate::program::Expr;

/// Writes a leaf in squares.
pub fn write(w: &mut Writer, leaf: &Leaf, turn: &Turn) {
    let apart = |p: &usize| *p != turn.along_source && *p != turn.along_target;
    let opened = w.open_loops((0..leaf.outputs).filter(apart).map(|p| &leaf.loops[p]));
    w.draft.block();
    let [source, target] = [turn.along_source, turn.along_target].map(|position| &leaf.loops[position]);
    match &w.names.nest.exprs[leaf.body] {
        Expr::Access(..) if leaf.reduction.is_none() => copy(w, leaf, source, target),
        _ => squares(w, leaf, source, target),
    }
    w.draft.close(opened + 1);
}

fn copy(w: &mut Writer, leaf: &Leaf, source: &Loop, target: &Loop) {
    let Expr::Access(buffer, subscripts) = &w.names.nest.exprs[leaf.body] else {
        unreachable!("a copy reads an element");
    };
    let counts = [source, target].map(|l| {
        let ((low, high), v) = (w.range(l), w.variable(l));
        w.draft.fix(&v, low);
        high - v + 1
    });
    let to = w.names.address(leaf.target, &leaf.subscripts);
    let from = w.names.address(*buffer, subscripts);
    let to_step = w.names.step(leaf.target, &leaf.subscripts, source.variable);
    let from_step = w.names.step(*buffer, subscripts, target.variable);
    let [rows, lanes] = counts;
    let transpose = Callee::of("gx_transpose", Type::Nothing, &library::TRANSPOSE);
    w.draft.run(transpose.call([to, to_step, from, from_step, rows, lanes]));
}

/// The ends of a loop: the first value, the last, and the first one behind whole squares.
struct Ends {
    begin: Value,
    end: Value,
    whole: Value,
}

impl Ends {
    fn of(w: &mut Writer, l: &Loop) -> Ends {
        let (low, high) = w.range(l);
        let (begin, end) = (w.draft.constant("begin", low), w.draft.constant("end", high));
        let square = Value::name("GX_SQUARE", Type::Whole);
        let count = larger(0.into(), &end - &begin + 1) / &square * square;
        let whole = w.draft.constant("whole", &begin + count);
        Ends { begin, end, whole }
    }
}

/// Whole squares with the lanes along what is read, and then the places that are left, one by one.
fn squares(w: &mut Writer, leaf: &Leaf, source: &Loop, target: &Loop) {
    let (across, along) = (Ends::of(w, source), Ends::of(w, target));
    let (lane, place) = (w.variable(source), w.variable(target));
    let corner = w.draft.fresh("corner", Type::Whole);
    w.draft.open(Head::IfDefined("GX_SHUFFLES"));
    w.draft.steps(&corner, &along.begin, &along.whole, Value::width());
    w.draft.steps(&lane, &across.begin, &across.whole, Value::width());
    square(w, leaf, source, target, &corner);
    w.draft.close(3);
    w.draft.each(&place, &along.begin, &along.end, 1);
    let from = place.below(&along.whole).choose(&across.whole, &across.begin);
    w.draft.each(&lane, from, &across.end, 1);
    w.element(leaf);
    w.draft.close(2);
}

/// One square: computed row by row, turned, and stored row by row.
fn square(w: &mut Writer, leaf: &Leaf, source: &Loop, target: &Loop, corner: &Value) {
    let (lane, place) = (w.variable(source), w.variable(target));
    let square = w.draft.array("square", &Type::Vector, Value::width());
    let row = w.draft.fresh("row", Type::Int);
    let held = square.at(&row);
    if let Some(op) = leaf.reduction {
        w.draft.unrolled(&row, Value::width());
        w.draft.assign(&held, all(neutral(op, w.real)));
        w.draft.close(1);
    }
    let opened = w.open_loops(&leaf.loops[leaf.outputs..]);
    w.draft.unrolled(&row, Value::width());
    w.draft.fix(&place, corner + &row);
    w.draft.mention(&place);
    let value = w.values(Instances::lanes(source.variable, vec![lane], Vec::new())).wide(leaf.body, (0, 0));
    w.draft.assign(&held, leaf.reduction.map_or(value.clone(), |op| combine(op, &held, value, None)));
    w.draft.close(1 + opened);
    w.draft.run(Callee::of("gx_turn", Type::Nothing, &library::TURN).call([square]));
    let saved = std::mem::replace(&mut w.names.variables[target.variable], corner.clone());
    let to = w.names.address(leaf.target, &leaf.subscripts);
    let step = w.names.step(leaf.target, &leaf.subscripts, source.variable);
    w.names.variables[target.variable] = saved;
    w.draft.unrolled(&row, Value::width());
    w.draft.run(Place::dense(to + &row * step, None).store(held));
    w.draft.close(1);
}
