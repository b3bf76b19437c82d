//! A [`Nest`] as text, for people and for tests.

use super::{
    Buffer, FIRST, Held, Interleaved, Kernel, Kind, Leaf, Nest, Panels, Scope, Stage, Step, Tile, Time, Together,
    Window, Work,
};
use crate::program::print;
use crate::program::{Affine, BinaryOp, Constraint, ExprId, ParamId, Range, ReduceOp, TensorId};
use crate::target::PanelSize;
use std::fmt::{self, Write};

/// What stands behind the range of a loop.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Serial => Ok(()),
            Kind::Lanes(vectors) => write!(f, " lanes x{vectors}"),
            Kind::Unrolled(count) => write!(f, " unrolled x{count}"),
            Kind::Threads(count) => write!(f, " threads x{count}"),
        }
    }
}

/// The whole nest.
pub fn print(nest: &Nest) -> String {
    let mut text = String::new();
    for Buffer { name, extents, scope, streamed, registers, interleaved } in &nest.buffers {
        let scope = match scope {
            Scope::Input(_) => "input".to_string(),
            Scope::Output(_) => "output".to_string(),
            Scope::Run => "temporary".to_string(),
            Scope::Local(kernel) => format!("local of {}", nest.kernels[*kernel].name),
        };
        let extents: Vec<String> = extents.iter().map(|e| print::affine(&nest.params, &[], e)).collect();
        let streamed = if *streamed { ", past the caches" } else { "" };
        let registers = if *registers { ", in registers of threads" } else { "" };
        let interleaved = interleaved
            .map(|Interleaved { apart, beside }| format!(", {beside} elements {apart} apart beside each other"));
        let interleaved = interleaved.unwrap_or_default();
        let _ = writeln!(text, "{scope} {name}[{}]{streamed}{registers}{interleaved}", extents.join(", "));
    }
    if nest.stages.iter().any(|stage| matches!(stage, Stage::Time(_))) {
        text.push_str("\nrun:\n");
        print_stages(nest, &nest.stages, 1, &mut text);
    }
    nest.kernels.iter().for_each(|kernel| print_kernel(nest, kernel, &mut text));
    text
}

/// When kernels run, where it is not just one after the other.
fn print_stages(nest: &Nest, stages: &[Stage], depth: usize, text: &mut String) {
    let shown = |affine: &Affine| print::affine(&nest.params, &[], affine);
    let indent = "  ".repeat(depth);
    for stage in stages {
        match stage {
            Stage::Kernel(number, below) => {
                let name = |time: &ParamId| &nest.params[time.0 as usize].name;
                let tests: Vec<String> =
                    below.iter().map(|(time, steps)| format!("{} < {}", name(time), shown(steps))).collect();
                let when = if tests.is_empty() { String::new() } else { format!(" if {}", tests.join(" and ")) };
                let _ = writeln!(text, "{indent}{}{when}", nest.kernels[*number].name);
            }
            Stage::Time(Time { param, steps, falling, window, stages }) => {
                let direction = if *falling { ", falling" } else { "" };
                let name = |param: &ParamId| &nest.params[param.0 as usize].name;
                let window = window.as_ref().map_or_else(String::new, |Window { outer, size, before, values }| {
                    let start = if *before == 0 { String::new() } else { format!(" - {before}") };
                    format!(", {values} from {size} * {}{start} on", name(outer))
                });
                let name = name(param);
                let _ = writeln!(text, "{indent}each {name} in 0..{}{direction}{window}:", shown(steps));
                print_stages(nest, stages, depth + 1, text);
            }
        }
    }
}

fn print_kernel(nest: &Nest, kernel: &Kernel, text: &mut String) {
    let shown = |affine: &Affine| print::affine(&nest.params, &[], affine);
    let _ = writeln!(text, "\nkernel {}:", kernel.name);
    for line in &kernel.doc {
        let _ = writeln!(text, "  # {line}");
    }
    let along = |work: &Work| {
        let name = if work.first == FIRST { String::new() } else { format!("{} in ", &kernel[work.first]) };
        format!("{name}{}..={} by {}", shown(&work.low), shown(&work.high), shown(&work.step))
    };
    let grid: Vec<String> = kernel.work.iter().map(along).collect();
    let _ = writeln!(text, "  work {}:", grid.join(", "));
    kernel.steps.iter().for_each(|step| print_step(nest, kernel, step, 2, text));
}

fn print_step(nest: &Nest, kernel: &Kernel, step: &Step, depth: usize, text: &mut String) {
    match step {
        Step::Tile(tile @ Tile { variable, range, size, steps, .. }) => {
            let range = print_range(nest, kernel, range);
            let held = print_held(nest, tile);
            let _ = writeln!(text, "{}tile {} in {range} by {size}{held}:", "  ".repeat(depth), &kernel[*variable]);
            steps.iter().for_each(|step| print_step(nest, kernel, step, depth + 1, text));
        }
        Step::Leaf(leaf) => print_leaf(nest, kernel, leaf, depth, text),
        Step::Together(Together { leaves, rows, unstored }) => {
            let rows = rows.map_or(String::new(), |count| format!(" rows x{count}"));
            let _ = writeln!(text, "{}together{rows}:", "  ".repeat(depth));
            let kept: Vec<&str> = unstored.iter().map(|buffer| nest[*buffer].name.as_str()).collect();
            if !kept.is_empty() {
                let _ = writeln!(text, "{}in registers only: {}", "  ".repeat(depth + 1), kept.join(", "));
            }
            leaves.iter().for_each(|leaf| print_leaf(nest, kernel, leaf, depth + 1, text));
        }
    }
}

/// What a tile keeps in registers.
fn print_held(nest: &Nest, tile: &Tile) -> String {
    let leaves = super::leaves(&tile.steps);
    let each = |held: &Held| format!(", {} back {} in registers", nest[leaves[held.leaf].target].name, held.values);
    tile.held.iter().map(each).collect()
}

fn print_leaf(nest: &Nest, kernel: &Kernel, leaf: &Leaf, depth: usize, text: &mut String) {
    let names: Vec<&str> = kernel.variables.iter().map(String::as_str).collect();
    let buffers: Vec<&str> = nest.buffers.iter().map(|buffer| buffer.name.as_str()).collect();
    let expression = |id: ExprId| print::expression(&nest.params, &nest.exprs, &buffers, &names, id);
    if let Some(panels) = &leaf.panels {
        print_panels(nest, kernel, leaf, panels, &expression, &"  ".repeat(depth), text);
    }
    if let Some(turn) = leaf.turn {
        let [source, target] =
            [turn.along_source, turn.along_target].map(|position| &kernel[leaf.loops[position].variable]);
        let _ = writeln!(text, "{}turn squares of {source} and {target}:", "  ".repeat(depth));
    }
    let mut depth = depth;
    for (position, l) in leaf.loops.iter().enumerate() {
        let kind = if position < leaf.outputs { "for" } else { reduction_name(leaf.reduction) };
        let range = print_range(nest, kernel, &l.range);
        let _ = writeln!(text, "{}{kind} {} in {range}{}:", "  ".repeat(depth), &kernel[l.variable], l.kind);
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
        (Some(op), true) => format!("{}=", op.combine().map_or(op.name(), BinaryOp::name)),
        (Some(op), false) => format!("= {} of", op.name()),
    };
    let place = print_access(nest, leaf.target, &subscripts);
    let aligned = if leaf.aligned { ", aligned" } else { "" };
    let body = expression(leaf.body);
    let _ = writeln!(text, "{}{place} {becomes} {body}{aligned}", "  ".repeat(depth));
}

/// What is packed before the register tiles run: the parts of the body by what they depend on, and how each gets there.
fn print_panels(
    nest: &Nest,
    kernel: &Kernel,
    leaf: &Leaf,
    panels: &Panels,
    expression: &dyn Fn(ExprId) -> String,
    margin: &str,
    text: &mut String,
) {
    let scratch = &nest[panels.scratch].name;
    let PanelSize { terms, rows, lanes } = panels.size;
    let _ = writeln!(text, "{margin}pack into {scratch}, {terms} terms, {rows} rows and {lanes} lanes at a time:");
    let kept = panels.kept.map(|position| format!(", kept for all {}", &kernel[leaf.loops[position].variable]));
    let rows = match (panels.rows_in_place, panels.rows_beside, panels.rows_in_lanes) {
        (true, ..) => "read in place".to_string(),
        (false, true, _) => "in vectors across the rows".to_string(),
        (false, false, true) => "in vectors along the terms".to_string(),
        (false, false, false) => "one by one".to_string(),
    };
    let ahead = panels.ahead.map(|position| format!(", the next {} ahead", &kernel[leaf.loops[position].variable]));
    let lanes = match (panels.lanes_in_place, panels.lanes_stay) {
        (true, _) => "read in place".to_string() + &ahead.unwrap_or_default(),
        (false, false) => "in vectors".to_string(),
        (false, true) => "in vectors, unless they are there".to_string(),
    };
    let how = [rows + &kept.unwrap_or_default(), lanes, "one by one".to_string()];
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
