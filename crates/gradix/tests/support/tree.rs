//! Walking syntax trees: to compare them up to spans, and to look at every span.

use gradix::diagnostic::Span;
use gradix::syntax::Ast;
use gradix::syntax::ast::*;

/// The tree with all spans empty.
pub fn without_spans(ast: &Ast) -> Ast {
    let mut ast = ast.clone();
    for statement in &mut ast.statements {
        statement.span = Span::default();
    }
    names(&mut ast, &mut |name| name.span = Span::default());
    exprs(&mut ast, &mut |expr| expr.span = Span::default());
    ast
}

/// Calls `visit` with every expression, parts before the whole.
pub fn exprs(ast: &mut Ast, visit: &mut dyn FnMut(&mut Expr)) {
    walk(ast, &mut |_| {}, visit);
}

/// Calls `visit` with every name that has a place of its own.
pub fn names(ast: &mut Ast, visit: &mut dyn FnMut(&mut Name)) {
    walk(ast, visit, &mut |_| {});
}

type OnName<'a> = &'a mut dyn FnMut(&mut Name);
type OnExpr<'a> = &'a mut dyn FnMut(&mut Expr);

fn walk(ast: &mut Ast, on_name: OnName, on_expr: OnExpr) {
    for statement in &mut ast.statements {
        match &mut statement.kind {
            StatementKind::Param(params) => {
                for param in params {
                    on_name(&mut param.name);
                    param.bounds.iter_mut().for_each(|(_, side)| walk_expr(side, on_name, on_expr));
                }
            }
            StatementKind::Input(inputs) => {
                for input in inputs {
                    on_name(&mut input.name);
                    input.extents.iter_mut().for_each(|extent| walk_expr(extent, on_name, on_expr));
                }
            }
            StatementKind::Output(outputs) => {
                for name in outputs {
                    on_name(name);
                }
            }
            StatementKind::Definition(definition) => {
                on_name(&mut definition.name);
                definition.indices.iter_mut().for_each(|binder| walk_binder(binder, on_name, on_expr));
                walk_expr(&mut definition.body, on_name, on_expr);
            }
        }
    }
}

fn walk_binder(binder: &mut Binder, on_name: OnName, on_expr: OnExpr) {
    on_name(&mut binder.name);
    if let Some(range) = &mut binder.range {
        walk_expr(&mut range.low, on_name, on_expr);
        walk_expr(&mut range.high, on_name, on_expr);
    }
}

fn walk_expr(expr: &mut Expr, on_name: OnName, on_expr: OnExpr) {
    match &mut expr.kind {
        ExprKind::Integer(_) | ExprKind::Real(_) | ExprKind::Pi | ExprKind::Inf | ExprKind::Name(_) => {}
        ExprKind::Access { name, subscripts: parts } | ExprKind::Call { function: name, arguments: parts } => {
            on_name(name);
            parts.iter_mut().for_each(|part| walk_expr(part, on_name, on_expr));
        }
        ExprKind::Negate(operand) | ExprKind::Not(operand) => walk_expr(operand, on_name, on_expr),
        ExprKind::Binary { left, right, .. } => {
            walk_expr(left, on_name, on_expr);
            walk_expr(right, on_name, on_expr);
        }
        ExprKind::Compare { first, rest } => {
            walk_expr(first, on_name, on_expr);
            rest.iter_mut().for_each(|(_, side)| walk_expr(side, on_name, on_expr));
        }
        ExprKind::If { condition, then, otherwise } => {
            for part in [condition, then, otherwise] {
                walk_expr(part, on_name, on_expr);
            }
        }
        ExprKind::Reduce { items, body, .. } => {
            for item in items {
                match item {
                    ReduceItem::Binder(binder) => walk_binder(binder, on_name, on_expr),
                    ReduceItem::Condition(condition) => walk_expr(condition, on_name, on_expr),
                }
            }
            walk_expr(body, on_name, on_expr);
        }
    }
    on_expr(expr);
}
