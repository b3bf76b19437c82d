//! `verify` rejects what it should: nests that are right are broken in one place, and the rule that speaks of it says so.

use gradix::nest::verify::{Rule, holds};
use gradix::nest::{FIRST, LAST, Leaf, Nest, Real, Scope, Step, Turn, verify};
use gradix::program::{Affine, Constraint, TensorId};
use gradix::target::AVX512;
use gradix::{Int, compile, resolve, syntax};

/// The sizes at which a nest is looked at that could not be decided for all of them.
const SIZE: i64 = 100;

const PROGRAMS: [&str; 6] = [
    "input x[N, K], w[K, M]; y[i, j] = sum[k] x[i, k] * w[k, j]",
    "input x[N]; y[i in 0..N - 2] = x[i] - 2*x[i + 1] + x[i + 2]; z[i in 0..N - 2] = y[i]^2",
    "input x[N, M]; s[i] = sum[j] exp(x[i, j]); y[i, j] = exp(x[i, j]) / s[i]",
    "input x[N]; y = sum[i] x[i]^2",
    "input x[N, M]; y[i in 0..N, j in 0..M] = if i > 0 and j > 0 then x[i - 1, j - 1] else 0",
    "input x[N]; y[i in 0..2*N] = if i % 2 == 0 then x[i // 2] else 1",
];

fn nests() -> Vec<Nest> {
    let program = |text: &&str| resolve(&syntax::parse(text).unwrap(), &[]).unwrap().program;
    let compiled =
        |text| compile(&program(text), &[Int::from(2000), Int::from(2000), Int::from(2000)], Real::F64, &AVX512);
    PROGRAMS.iter().map(|text| compiled(text).unwrap().nest.into_nest()).collect()
}

/// Why a nest is not right: its form, or a rule that does not hold at some sizes.
#[derive(Debug, PartialEq)]
enum Wrong {
    Form(String),
    Rules(Vec<Rule>),
}

fn wrong(nest: &Nest) -> Option<Wrong> {
    let sizes = nest.sizes(&vec![Int::from(SIZE); nest.params.len()]);
    match verify(nest) {
        Err(what) => Some(Wrong::Form(what)),
        Ok(checks) => {
            let broken: Vec<Rule> = checks.iter().filter(|check| !holds(check, &sizes)).map(|c| c.rule).collect();
            (!broken.is_empty()).then_some(Wrong::Rules(broken))
        }
    }
}

/// Breaks every leaf of every nest in turn. `change` tells whether it did; then the nest is wrong, in the way expected.
fn check(change: &dyn Fn(&mut Leaf, Scope) -> bool, expected: &dyn Fn(&Wrong) -> bool) {
    let mut tried = 0;
    for nest in nests() {
        for number in 0..count(&nest) {
            let mut broken = nest.clone();
            let mut place = number;
            let mut leaves = broken.kernels.iter_mut().flat_map(|kernel| leaves(&mut kernel.steps));
            let leaf = leaves.find(|_| {
                place = place.wrapping_sub(1);
                place == usize::MAX
            });
            let leaf = leaf.expect("there is one");
            let scope = nest[leaf.target].scope;
            if change(leaf, scope) {
                tried += 1;
                let found = wrong(&broken);
                assert!(found.as_ref().is_some_and(expected), "{found:?} in\n{}", gradix::nest::print(&broken));
            }
        }
    }
    assert!(tried >= 3, "{tried} places to break");
}

fn count(nest: &Nest) -> usize {
    let mut copy = nest.clone();
    copy.kernels.iter_mut().map(|kernel| leaves(&mut kernel.steps).len()).sum()
}

fn leaves(steps: &mut [Step]) -> Vec<&mut Leaf> {
    let mut found = Vec::new();
    for step in steps {
        match step {
            Step::Tile(tile) => found.extend(leaves(&mut tile.steps)),
            Step::Leaf(leaf) => found.push(leaf),
            Step::Together(together) => found.extend(&mut together.leaves),
        }
    }
    found
}

fn breaks(rule: Rule) -> impl Fn(&Wrong) -> bool {
    move |wrong| matches!(wrong, Wrong::Rules(rules) if rules.contains(&rule))
}

#[test]
fn nests_that_are_made_are_right() {
    nests().iter().for_each(|nest| assert_eq!(wrong(nest), None, "{}", gradix::nest::print(nest)));
}

#[test]
fn a_shifted_subscript_leaves_its_buffer() {
    let shift = |leaf: &mut Leaf, _| {
        let Some(first) = leaf.subscripts.first_mut() else { return false };
        *first = first.shift(SIZE + 1000);
        true
    };
    check(&shift, &breaks(Rule::Inside));
}

#[test]
fn an_item_that_reaches_into_the_next_shares_its_elements() {
    let overlap = |leaf: &mut Leaf, _| {
        let outputs =
            leaf.loops[..leaf.outputs].iter_mut().filter(|l| leaf.subscripts.contains(&Affine::index(l.variable)));
        // Where another bound counts as well, it may be what ends the loop.
        let mut highs = outputs.map(|l| &mut l.range.high).filter(|high| high.len() == 1);
        let high = highs.find(|high| **high == [Affine::index(LAST)]);
        high.map(|high| high[0] = high[0].shift(1)).is_some()
    };
    check(&overlap, &|wrong| breaks(Rule::OneItem)(wrong));
}

#[test]
fn items_without_parts_of_their_own_share_elements() {
    let mut tried = 0;
    for nest in nests() {
        for number in 0..nest.kernels.len() {
            let mut broken = nest.clone();
            let kernel = &mut broken.kernels[number];
            let work = kernel.work[0].clone();
            if work.is_single() || work.parts.is_some() {
                continue;
            }
            let whole = (work.low, work.high);
            let mut changed = false;
            for l in leaves(&mut kernel.steps).into_iter().flat_map(|leaf| &mut leaf.loops) {
                if l.range.low == [Affine::index(FIRST)] && l.range.high == [Affine::index(LAST)] {
                    (l.range.low, l.range.high) = (vec![whole.0.clone()], vec![whole.1.clone()]);
                    changed = true;
                }
            }
            if changed {
                tried += 1;
                let found = wrong(&broken);
                let shared = match &found {
                    Some(Wrong::Form(what)) => what.contains("items share"),
                    Some(wrong) => breaks(Rule::OneItem)(wrong),
                    None => false,
                };
                assert!(shared, "{found:?} in\n{}", gradix::nest::print(&broken));
            }
        }
    }
    assert!(tried >= 3, "{tried} places to break");
}

#[test]
fn a_piece_that_is_left_out_is_missed() {
    let skip = |leaf: &mut Leaf, scope| {
        let Some(output) = leaf.loops[..leaf.outputs].last_mut() else { return false };
        output.range.low = output.range.low.iter().map(|low| low.shift(1)).collect();
        // What lies behind the last element of a copy in blocks is read by nothing.
        !leaf.accumulate && scope != Scope::Run
    };
    check(&skip, &|wrong| match wrong {
        Wrong::Rules(rules) => rules.contains(&Rule::WrittenAtAll) || rules.contains(&Rule::WrittenBefore),
        Wrong::Form(_) => false,
    });
}

#[test]
fn what_is_read_before_it_is_written_is_found() {
    let mut tried = 0;
    for nest in nests() {
        let mut broken = nest.clone();
        for kernel in &mut broken.kernels {
            kernel.steps.reverse();
            for step in &mut kernel.steps {
                if let Step::Tile(tile) = step {
                    tile.steps.reverse();
                }
            }
        }
        if nest.buffers.iter().any(|buffer| matches!(buffer.scope, Scope::Local(_)) && buffer.name != "panels") {
            tried += 1;
            assert!(
                wrong(&broken).as_ref().is_some_and(breaks(Rule::WrittenBefore)),
                "{}",
                gradix::nest::print(&broken)
            );
        }
    }
    assert!(tried >= 1);
}

#[test]
fn a_guard_that_is_dropped_lets_an_access_out() {
    let text = "input x[N]; y[i in 0..N] = sum[k in 0..5, (i + k) % 3 == 0 and i + k < N] x[i + k]";
    let program = resolve(&syntax::parse(text).unwrap(), &[]).unwrap().program;
    let nest = compile(&program, &[Int::from(2000)], Real::F64, &AVX512).unwrap().nest.into_nest();
    assert_eq!(wrong(&nest), None);
    let mut broken = nest.clone();
    for leaf in broken.kernels.iter_mut().flat_map(|kernel| leaves(&mut kernel.steps)) {
        leaf.guards.clear();
        for l in &mut leaf.loops[leaf.outputs..] {
            l.range.high.truncate(1);
            l.range.high[0] = Affine::constant(4);
        }
    }
    assert!(wrong(&broken).as_ref().is_some_and(breaks(Rule::Inside)), "{}", gradix::nest::print(&broken));
}

#[test]
fn lanes_that_do_different_things_are_refused() {
    let depend = |leaf: &mut Leaf, _| {
        let Some(lanes) = leaf.lanes() else { return false };
        leaf.guards.push(Constraint::non_negative(Affine::index(leaf.loops[lanes].variable).shift(-3)));
        true
    };
    check(&depend, &|wrong| matches!(wrong, Wrong::Form(what) if what.contains("depends on lanes")));
}

#[test]
fn operands_that_do_not_fit_where_they_are_packed_are_refused() {
    let mut nest = nests().remove(0);
    let panels = nest.buffers.iter_mut().find(|buffer| buffer.name == "panels").expect("a product packs its operands");
    panels.extents[0] = panels.extents[0].shift(-1);
    assert!(matches!(wrong(&nest), Some(Wrong::Form(what)) if what.contains("don't fit")));
    let mut nest = nests().remove(0);
    let leaf = nest.kernels.iter_mut().flat_map(|kernel| leaves(&mut kernel.steps)).find(|l| l.panels.is_some());
    leaf.and_then(|leaf| leaf.panels.as_mut()).expect("panels").by_row.clear();
    assert!(matches!(wrong(&nest), Some(Wrong::Form(what)) if what.contains("no panel has")));
    let mut nest = nests().remove(0);
    let leaf = nest.kernels.iter_mut().flat_map(|kernel| leaves(&mut kernel.steps)).find(|l| l.panels.is_some());
    leaf.and_then(|leaf| leaf.panels.as_mut()).expect("panels").size.lanes = 1;
    assert!(matches!(wrong(&nest), Some(Wrong::Form(what)) if what.contains("don't fit")));
}

#[test]
fn stores_that_would_miss_or_repeat_something_are_refused() {
    let align = |leaf: &mut Leaf, _| {
        leaf.aligned = leaf.reduction.is_some();
        leaf.aligned
    };
    check(&align, &|wrong| matches!(wrong, Wrong::Form(what) if what.contains("computed twice")));
    let turn = |leaf: &mut Leaf, _| {
        leaf.turn = (leaf.outputs > 0).then_some(Turn { along_target: 0, along_source: 0 });
        leaf.turn.is_some()
    };
    check(&turn, &|wrong| matches!(wrong, Wrong::Form(what) if what.contains("square")));
}

#[test]
fn results_that_are_read_elsewhere_are_stored() {
    let text = "input x[N, M]; e[i, j] = exp(x[i, j]); s[i] = sum[j] e[i, j]; z[i] = max[j] e[i, j] / s[i]";
    let program = resolve(&syntax::parse(text).unwrap(), &[]).unwrap().program;
    let compiled = compile(&program, &[Int::from(2000), Int::from(2000)], Real::F64, &AVX512).unwrap();
    let mut nest = compiled.nest.into_nest();
    assert_eq!(wrong(&nest), None);
    let read = nest.buffers.iter().position(|buffer| buffer.name == "e").expect("e is kept");
    let mut moved = nest.clone();
    let made = TensorId(read as u32);
    for leaf in moved.kernels.iter_mut().flat_map(|kernel| leaves(&mut kernel.steps)).filter(|l| l.target == made) {
        leaf.subscripts[1] = leaf.subscripts[1].shift(1);
    }
    assert!(matches!(wrong(&moved), Some(Wrong::Form(what)) if what.contains("at another point")));
    let steps = nest.kernels.iter_mut().flat_map(|kernel| &mut kernel.steps);
    let inner = steps
        .flat_map(|step| if let Step::Tile(tile) = step { &mut tile.steps[..] } else { std::slice::from_mut(step) });
    let together = inner.filter_map(|step| if let Step::Together(together) = step { Some(together) } else { None });
    together.for_each(|together| together.unstored.push(TensorId(read as u32)));
    assert!(matches!(wrong(&nest), Some(Wrong::Form(what)) if what.contains("not stored")));
}
