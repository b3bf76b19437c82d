//! A [`Nest`] as text, for people and for tests.

use super::{Buffer, Kernel, Leaf, Nest, Panels, Scope, Step, Tile};
use crate::program::print;
use crate::program::{Affine, Constraint, ExprId, Range, ReduceOp, TensorId};
use crate::target::cost::{PANEL_LANES, PANEL_ROWS, PANEL_TERMS};
use std::fmt::Write;

/// The whole nest.
pub fn print(nest: &Nest) -> String {
    let mut text = String::new();
    for Buffer { name, extents, scope, streamed } in &nest.buffers {
        let scope = match scope {
            Scope::Input(_) => "input".to_string(),
            Scope::Output(_) => "output".to_string(),
            Scope::Run => "temporary".to_string(),
            Scope::Local(kernel) => format!("local of {}", nest.kernels[*kernel].name),
        };
        let extents: Vec<String> = extents.iter().map(|e| print::affine(&nest.params, &[], e)).collect();
        let streamed = if *streamed { ", past the caches" } else { "" };
        let _ = writeln!(text, "{scope} {name}[{}]{streamed}", extents.join(", "));
    }
    nest.kernels.iter().for_each(|kernel| print_kernel(nest, kernel, &mut text));
    text
}

fn print_kernel(nest: &Nest, kernel: &Kernel, text: &mut String) {
    let shown = |affine: &Affine| print::affine(&nest.params, &[], affine);
    let _ = writeln!(text, "\nkernel {}:", kernel.name);
    for line in &kernel.doc {
        let _ = writeln!(text, "  # {line}");
    }
    let work = &kernel.work;
    let (low, high, step) = (shown(&work.low), shown(&work.high), shown(&work.step));
    let _ = writeln!(text, "  work {low}..={high} by {step}:");
    kernel.steps.iter().for_each(|step| print_step(nest, kernel, step, 2, text));
}

fn print_step(nest: &Nest, kernel: &Kernel, step: &Step, depth: usize, text: &mut String) {
    match step {
        Step::Tile(Tile { variable, range, size, steps }) => {
            let range = print_range(nest, kernel, range);
            let _ = writeln!(text, "{}tile {} in {range} by {size}:", "  ".repeat(depth), kernel.variables[*variable]);
            steps.iter().for_each(|step| print_step(nest, kernel, step, depth + 1, text));
        }
        Step::Leaf(leaf) => print_leaf(nest, kernel, leaf, depth, text),
        Step::Together(leaves) => {
            let _ = writeln!(text, "{}together:", "  ".repeat(depth));
            leaves.iter().for_each(|leaf| print_leaf(nest, kernel, leaf, depth + 1, text));
        }
    }
}

fn print_leaf(nest: &Nest, kernel: &Kernel, leaf: &Leaf, depth: usize, text: &mut String) {
    let names: Vec<&str> = kernel.variables.iter().map(String::as_str).collect();
    let buffers: Vec<&str> = nest.buffers.iter().map(|buffer| buffer.name.as_str()).collect();
    let expression = |id: ExprId| print::expression(&nest.params, &nest.exprs, &buffers, &names, id);
    if let Some(panels) = &leaf.shape.panels {
        print_panels(nest, leaf, panels, &names, &expression, &"  ".repeat(depth), text);
    }
    let mut depth = depth;
    for (position, l) in leaf.loops.iter().enumerate() {
        let mut how = String::new();
        if leaf.shape.lanes == Some(position) {
            let _ = write!(how, " lanes x{}", leaf.shape.vectors);
        }
        if let Some((_, count)) = leaf.shape.rows.filter(|(p, _)| *p == position) {
            let _ = write!(how, " rows x{count}");
        }
        if let Some((_, count)) = leaf.shape.columns.filter(|(p, _)| *p == position) {
            let _ = write!(how, " columns x{count}");
        }
        let kind = if position < leaf.outputs { "for" } else { reduction_name(leaf.reduction) };
        let range = print_range(nest, kernel, &l.range);
        let _ = writeln!(text, "{}{kind} {} in {range}{how}:", "  ".repeat(depth), names[l.variable]);
        depth += 1;
    }
    if !leaf.guards.is_empty() {
        let shown: Vec<String> = leaf.guards.iter().map(|g| print_constraint(nest, &names, g)).collect();
        let _ = writeln!(text, "{}if {}:", "  ".repeat(depth), shown.join(" and "));
        depth += 1;
    }
    let subscripts: Vec<String> = leaf.subscripts.iter().map(|s| print::affine(&nest.params, &names, s)).collect();
    let becomes = match (leaf.reduction, leaf.accumulate) {
        (None, _) => "=".to_string(),
        (Some(op), true) => format!("{}=", op.combine().name()),
        (Some(op), false) => format!("= {} of", op.name()),
    };
    let place = print_access(nest, leaf.target, &subscripts);
    let body = expression(leaf.body);
    let _ = writeln!(text, "{}{place} {becomes} {body}", "  ".repeat(depth));
}

/// What is packed before the register tiles run: the parts of the body by what they depend on, and how each gets there.
fn print_panels(
    nest: &Nest,
    leaf: &Leaf,
    panels: &Panels,
    names: &[&str],
    expression: &dyn Fn(ExprId) -> String,
    margin: &str,
    text: &mut String,
) {
    let scratch = &nest[panels.scratch].name;
    let rows = if panels.kept.is_some() { PANEL_ROWS } else { leaf.shape.rows.map_or(1, |(_, count)| count) };
    let _ = writeln!(
        text,
        "{margin}pack into {scratch}, {PANEL_TERMS} terms, {rows} rows and {PANEL_LANES} lanes at a time:"
    );
    let kept = panels.kept.map(|position| format!(", kept for all {}", names[leaf.loops[position].variable]));
    let rows = match (panels.rows_in_place, panels.rows_beside, panels.rows_in_lanes) {
        (true, ..) => "read in place".to_string(),
        (false, true, _) => "in vectors across the rows".to_string(),
        (false, false, true) => "in vectors along the terms".to_string(),
        (false, false, false) => "one by one".to_string(),
    };
    let lanes = if panels.lanes_in_place { "read in place" } else { "in vectors" };
    let how = [rows + &kept.unwrap_or_default(), lanes.to_string(), "one by one".to_string()];
    for ((what, parts), how) in
        [("rows", &panels.by_row), ("lanes", &panels.by_lane), ("terms", &panels.by_term)].iter().zip(how)
    {
        for part in *parts {
            let _ = writeln!(text, "{margin}  by {what}: {}, {how}", expression(*part));
        }
    }
}

fn reduction_name(op: Option<ReduceOp>) -> &'static str {
    op.map_or("for", ReduceOp::name)
}

fn print_access(nest: &Nest, buffer: TensorId, subscripts: &[String]) -> String {
    let name = &nest[buffer].name;
    if subscripts.is_empty() { name.clone() } else { format!("{name}[{}]", subscripts.join(", ")) }
}

fn print_constraint(nest: &Nest, names: &[&str], constraint: &Constraint) -> String {
    print::constraint(&nest.params, names, constraint)
}

fn print_range(nest: &Nest, kernel: &Kernel, range: &Range) -> String {
    let names: Vec<&str> = kernel.variables.iter().map(String::as_str).collect();
    let each = |bounds: &[Affine], function: &str| {
        let shown: Vec<String> = bounds.iter().map(|b| print::affine(&nest.params, &names, b)).collect();
        if shown.len() == 1 { shown[0].clone() } else { format!("{function}({})", shown.join(", ")) }
    };
    format!("{}..={}", each(&range.low, "max"), each(&range.high, "min"))
}
