//! A schedule as text: what was decided for a program, and why, in terms of its sizes.

use super::{Group, Member, Schedule, Sums};
use crate::nest::{self, Candidate, Kernel, Kind, Leaf, Loop};
use crate::program::{Affine, Definition, Expr, Program};
use std::fmt::Write;

/// How many candidates are shown, the taken one first.
const SHOWN_CANDIDATES: usize = 3;

/// The groups of definitions, where each is kept, and the predicted operations, bytes and buffers (8 bytes a number).
pub fn print(program: &Program, schedule: &Schedule) -> String {
    let (mut text, docs) = (String::new(), crate::program::print::definitions(program));
    for (number, group) in schedule.groups.iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        describe_group(program, &docs, group, number, &mut text);
    }
    schedule.kernels.iter().for_each(|kernel| describe_loops(schedule, kernel, &mut text));
    text
}

/// The loops of a kernel, outermost first, with their kinds; and what the best few kinds cost.
fn describe_loops(schedule: &Schedule, kernel: &Kernel, text: &mut String) {
    let _ = writeln!(text, "\nloops of {}", kernel.name);
    for leaf in nest::leaves(&kernel.steps) {
        let kinds: Vec<Kind> = leaf.loops.iter().map(|l| l.kind).collect();
        let packed = if leaf.panels.is_some() { "; operands are packed" } else { "" };
        let loops = loops_in(kernel, leaf, &kinds);
        let _ = writeln!(text, "  {}: {loops}{packed}", schedule.buffers[leaf.target.0 as usize].name);
        let cost = |candidate: &Candidate| {
            format!("{} {}", loops_in(kernel, leaf, &candidate.kinds), significant(candidate.loads))
        };
        if leaf.considered.len() > 1 {
            let costs: Vec<String> = leaf.considered.iter().take(SHOWN_CANDIDATES).map(cost).collect();
            let _ = writeln!(text, "    loads for a point: {}", costs.join(" | "));
        }
    }
}

fn loops_in(kernel: &Kernel, leaf: &Leaf, kinds: &[Kind]) -> String {
    let shown = |(l, kind): (&Loop, &Kind)| format!("{}{kind}", &kernel[l.variable]);
    let loops: Vec<String> = leaf.loops.iter().zip(kinds).map(shown).collect();
    if loops.is_empty() { "one element".to_string() } else { loops.join(", ") }
}

/// A number with two digits that count.
fn significant(number: f64) -> String {
    let digits = (1.0 - number.abs().max(f64::MIN_POSITIVE).log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{number:.digits$}")
}

fn describe_group(program: &Program, docs: &[String], group: &Group, number: usize, text: &mut String) {
    let lead = group.members.iter().find_map(|m| m.slab.map(|p| &program.definitions[m.definition].indices[p]));
    let first = &group.members[0];
    let indices = &program.definitions[first.definition].indices;
    let further = first.grid.iter().zip(&group.grid);
    let grid: String = further.map(|(index, values)| format!(", {values} of {}", indices[*index].name)).collect();
    let how = match (lead, group.parts) {
        (None, _) => "at once, in one item of work".to_string(),
        (Some(index), None) => {
            let item = group.tile * group.tiles;
            format!("{} values of {} at a time, {item} in an item of work", group.tile, index.name) + &grid
        }
        (Some(index), Some(parts)) => {
            let height = group.tile;
            format!("{height} values of {} at a time, in {parts} parts that are combined in order", index.name) + &grid
        }
    };
    let _ = writeln!(text, "group {}: {how}", number + 1);
    describe_costs(program, group, text);
    describe_sums(program, group, text);
    for member in &group.members {
        describe_member(program, &docs[member.definition], group, member, text);
    }
}

/// What the choice of the slab index cost, beside the others: elements that items read again or store in parts, and more
/// where lanes or few values would be divided.
fn describe_costs(program: &Program, group: &Group, text: &mut String) {
    let Some(member) = group.members.first().filter(|_| group.considered.len() > 1) else { return };
    let indices = &program.definitions[member.definition].indices;
    let costs = group.considered.iter().filter_map(|(slab, cost)| Some((&indices[(*slab)?].name, cost)));
    let costs: Vec<String> = costs.map(|(name, cost)| format!("by {name} {cost:.0}")).collect();
    let _ = writeln!(text, "  costs: {}", costs.join(", "));
}

/// What the leaves of a tile load and store with one or another of its sums row by row.
fn describe_sums(program: &Program, group: &Group, text: &mut String) {
    let named = |sums: &Sums| {
        let names = sums.by_rows.iter().map(|d| program[program.definitions[*d].tensor].name.as_str());
        let names: Vec<&str> = names.collect();
        let which = if names.is_empty() { "none".to_string() } else { names.join(" and ") };
        format!("{which} {:.0}", sums.loads)
    };
    if group.sums.len() > 1 {
        let costs: Vec<String> = group.sums.iter().take(SHOWN_CANDIDATES).map(named).collect();
        let _ = writeln!(text, "  loads by sums row by row: {}", costs.join(" | "));
    }
}

fn describe_member(program: &Program, doc: &str, group: &Group, member: &Member, text: &mut String) {
    let definition = &program.definitions[member.definition];
    let tensor = &program[definition.tensor];
    let _ = writeln!(text, "  {doc}");
    let _ = writeln!(text, "    operations: {}", operations(program, definition));
    let reduces = member.slab.is_some_and(|p| p >= definition.rank);
    let (extents, why) = match (member.local, group.parts) {
        (true, _) => (slab_extents(group, member, &tensor.extents), "local: only this group reads it"),
        (false, Some(_)) if reduces => (tensor.extents.clone(), "stored in parts: it is reduced over the slabs"),
        (false, _) if program.outputs.contains(&definition.tensor) => (tensor.extents.clone(), "stored: a result"),
        (false, _) => (tensor.extents.clone(), "stored: other groups read it"),
    };
    let mut bytes = vec!["8".to_string()];
    if let (Some(parts), true) = (group.parts, reduces) {
        bytes.push(parts.to_string());
    }
    bytes.extend(factors(program, &extents));
    let _ = writeln!(text, "    {why}; bytes: {}", bytes.join("*"));
    if member.halo != (0, 0) {
        let (before, after) = member.halo;
        let kept = if group.rolling { ", and kept from slab to slab" } else { "" };
        let _ =
            writeln!(text, "    computed {before} before and {after} after the slab, where its readers need it{kept}");
    }
}

/// The slab index of a local buffer has the values of one slab only.
fn slab_extents(group: &Group, member: &Member, extents: &[Affine]) -> Vec<Affine> {
    let mut extents = extents.to_vec();
    if let Some(slab) = member.slab
        && slab < extents.len()
    {
        extents[slab] = Affine::constant(group.tile + member.halo.0 + member.halo.1);
    }
    member.grid.iter().zip(&group.grid).for_each(|(&index, &values)| extents[index] = Affine::constant(values));
    extents
}

/// Operations at a point times the number of points; where an index has several bounds, its first ones count.
fn operations(program: &Program, definition: &Definition) -> String {
    let nodes = program.exprs.postorder(definition.body);
    let own = nodes.iter().filter(|id| matches!(program.exprs[**id], Expr::Unary(..) | Expr::Binary(..))).count();
    let count = own + usize::from(definition.reduction.is_some());
    let names: Vec<&str> = definition.indices.iter().map(|i| i.name.as_str()).collect();
    let points = definition.indices.iter().map(|index| {
        let extent = (index.range.high[0].clone() - index.range.low[0].clone()).shift(1);
        factor(&crate::program::print::affine(&program.params, &names, &extent))
    });
    std::iter::once(count.to_string()).chain(points).collect::<Vec<_>>().join("*")
}

fn factors(program: &Program, extents: &[Affine]) -> Vec<String> {
    extents.iter().map(|e| factor(&crate::program::print::affine(&program.params, &[], e))).collect()
}

/// A sum in parentheses.
fn factor(text: &str) -> String {
    if text.contains(' ') { format!("({text})") } else { text.to_string() }
}
