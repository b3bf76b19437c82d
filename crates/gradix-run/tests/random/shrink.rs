//! Makes a failing program smaller: as long as some smaller program fails in the same way, that one.

use gradix::Int;
use gradix::diagnostic::Span;
use gradix::syntax::ast::{Ast, Expr, ExprKind, ReduceItem, StatementKind};

/// The smallest program found, within a number of trials, for which `fails` holds.
pub fn shrink(ast: &Ast, mut trials: usize, fails: &dyn Fn(&str) -> bool) -> String {
    let mut best = ast.clone();
    'again: loop {
        for candidate in candidates(&best) {
            if trials == 0 {
                break 'again;
            }
            trials -= 1;
            if fails(&gradix::syntax::print(&candidate)) {
                best = candidate;
                continue 'again;
            }
        }
        break;
    }
    gradix::syntax::print(&best)
}

fn candidates(ast: &Ast) -> Vec<Ast> {
    let mut found = Vec::new();
    for number in (0..ast.statements.len()).rev() {
        let mut smaller = ast.clone();
        smaller.statements.remove(number);
        found.push(smaller);
        for item in 0..8 {
            let mut smaller = ast.clone();
            let removed = match &mut smaller.statements[number].kind {
                StatementKind::Param(list) => {
                    list.len() > 1 && item < list.len() && {
                        list.remove(item);
                        true
                    }
                }
                StatementKind::Input(list) => {
                    list.len() > 1 && item < list.len() && {
                        list.remove(item);
                        true
                    }
                }
                StatementKind::Output(list) => {
                    list.len() > 1 && item < list.len() && {
                        list.remove(item);
                        true
                    }
                }
                StatementKind::Definition(_) => false,
            };
            if removed {
                found.push(smaller);
            }
        }
        let StatementKind::Definition(definition) = &ast.statements[number].kind else { continue };
        for body in smaller_expressions(&definition.body) {
            let mut smaller = ast.clone();
            if let StatementKind::Definition(definition) = &mut smaller.statements[number].kind {
                definition.body = body;
            }
            found.push(smaller);
        }
        for index in 0..definition.indices.len() {
            let mut smaller = ast.clone();
            if let StatementKind::Definition(definition) = &mut smaller.statements[number].kind {
                definition.indices.remove(index);
            }
            found.push(smaller);
        }
    }
    found
}

/// The expression with one part replaced by a part of it, or by a number; large steps first.
fn smaller_expressions(expr: &Expr) -> Vec<Expr> {
    let plain = |kind: ExprKind| Expr { kind, span: Span::default() };
    let mut found: Vec<Expr> = super::super::support::scope::parts(expr).into_iter().cloned().collect();
    if !matches!(expr.kind, ExprKind::Integer(_)) {
        found.push(plain(ExprKind::Integer(Int::from(1))));
    }
    match &expr.kind {
        ExprKind::Integer(value) if *value > Int::from(2) => found.push(plain(ExprKind::Integer(Int::from(2)))),
        ExprKind::Reduce { op, items, body } => {
            for number in 0..items.len() {
                let mut items = items.clone();
                items.remove(number);
                if !items.is_empty() {
                    found.push(plain(ExprKind::Reduce { op: *op, items, body: body.clone() }));
                }
            }
        }
        ExprKind::Compare { first, rest } if rest.len() > 1 => {
            found.push(plain(ExprKind::Compare { first: first.clone(), rest: rest[..1].to_vec() }));
        }
        _ => {}
    }
    for position in 0.. {
        let mut copy = expr.clone();
        let Some(part) = part_mut(&mut copy, position) else { break };
        let smaller = smaller_expressions(part);
        for replacement in smaller {
            let mut copy = expr.clone();
            *part_mut(&mut copy, position).expect("the same part") = replacement;
            found.push(copy);
        }
    }
    found
}

fn part_mut(expr: &mut Expr, position: usize) -> Option<&mut Expr> {
    let mut parts: Vec<&mut Expr> = match &mut expr.kind {
        ExprKind::Integer(_) | ExprKind::Real(_) | ExprKind::Pi | ExprKind::Inf | ExprKind::Name(_) => Vec::new(),
        ExprKind::Access { subscripts, .. } => subscripts.iter_mut().collect(),
        ExprKind::Call { arguments, .. } => arguments.iter_mut().collect(),
        ExprKind::Negate(a) | ExprKind::Not(a) => vec![a],
        ExprKind::Binary { left, right, .. } => vec![left, right],
        ExprKind::Compare { first, rest } => {
            std::iter::once(&mut **first).chain(rest.iter_mut().map(|(_, e)| e)).collect()
        }
        ExprKind::If { condition, then, otherwise } => vec![condition, then, otherwise],
        ExprKind::Reduce { items, body, .. } => {
            let mut parts: Vec<&mut Expr> = vec![body];
            for item in items {
                match item {
                    ReduceItem::Binder(binder) => {
                        parts.extend(binder.range.iter_mut().flat_map(|r| [&mut r.low, &mut r.high]))
                    }
                    ReduceItem::Condition(condition) => parts.push(condition),
                }
            }
            parts
        }
    };
    (position < parts.len()).then(|| parts.swap_remove(position))
}
