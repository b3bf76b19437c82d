//! Index expressions: affine ones, bounds of ranges, and subscripts that choose between affine pieces.

use super::advise::whole_division;
use super::{Resolver, Symbol};
use crate::diagnostic::Diagnostic;
use crate::program::affine::MAX_COEFFICIENT;
use crate::program::fold::Pieces;
use crate::program::{Affine, Fold, distinct};
use crate::syntax::ast::{BinaryOp, Expr, ExprKind, Name, Range as AstRange};
use gradix_int::Int;

/// The hint for what is no index expression.
const SUMS: &str = "index expressions are sums of indices and sizes with whole-number factors, '//' and '%'";

/// The indices at hand: names and the numbers that stand for them, innermost last.
pub(super) type Scope = [(String, usize)];

impl Resolver {
    /// An affine index expression over the indices in `scope`.
    pub(super) fn affine(&mut self, expr: &Expr, scope: &Scope) -> Result<Affine, Diagnostic> {
        let affine = match &expr.kind {
            ExprKind::Integer(value) => Affine::constant(value.clone()),
            ExprKind::Name(name) => return self.affine_name(name, expr, scope),
            ExprKind::Negate(inner) => -self.affine(inner, scope)?,
            ExprKind::Binary { op, left, right } => self.affine_binary(*op, left, right, expr, scope)?,
            ExprKind::Call { function, arguments } if matches!(function.text.as_str(), "min" | "max") => {
                let parts = arguments.iter().map(|a| self.affine(a, scope)).collect::<Result<Vec<_>, _>>()?;
                if parts.iter().any(Affine::uses_indices) {
                    let message = format!("'{}' of indices can't stand here", function.text);
                    return Err(Diagnostic::error("bad-index", message)
                        .at(expr.span)
                        .hint("it can be a whole subscript, or the bound of a range ('max' below, 'min' above)"));
                }
                self.derived_size(parts, function.text == "min")
            }
            ExprKind::Call { function, .. } if matches!(function.text.as_str(), "clamp" | "wrap" | "reflect") => {
                let message = format!("'{}' can stand only in the subscript of a tensor", function.text);
                return Err(Diagnostic::error("bad-index", message).at(expr.span));
            }
            ExprKind::Real(_) | ExprKind::Pi | ExprKind::Inf => {
                let message = "an index expression has whole numbers only";
                return Err(Diagnostic::error("bad-index", message).at(expr.span).hint(SUMS));
            }
            _ => {
                let message = "this is a value, but an index expression is needed here";
                return Err(Diagnostic::error("bad-index", message).at(expr.span).hint(SUMS));
            }
        };
        check_size(&affine, expr)?;
        Ok(affine)
    }

    fn affine_name(&mut self, name: &str, expr: &Expr, scope: &Scope) -> Result<Affine, Diagnostic> {
        if let Some((_, number)) = scope.iter().rev().find(|(n, _)| n == name) {
            return Ok(Affine::index(*number));
        }
        match self.symbols.get(name) {
            Some(Symbol::Param(id)) => Ok(Affine::param(*id)),
            Some(Symbol::Fixed(value)) => Ok(Affine::constant(value.clone())),
            Some(Symbol::Tensor(_) | Symbol::Declared(_)) => {
                if let Some(reported) = self.reported(name) {
                    return Err(reported);
                }
                let message = format!("'{name}' is a tensor, but an index expression is needed here");
                Err(Diagnostic::error("bad-index", message).at(expr.span).hint("values can't be used as subscripts"))
            }
            None => Err(self.unknown(name, expr.span, scope)),
        }
    }

    fn affine_binary(
        &mut self,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
        expr: &Expr,
        scope: &Scope,
    ) -> Result<Affine, Diagnostic> {
        if let Some(whole) = whole_division(op, left, right) {
            let message = "an index expression has whole numbers only";
            return Err(Diagnostic::error("bad-index", message).at(expr.span).hint(format!("write '{whole}'")));
        }
        let a = self.affine(left, scope)?;
        let b = self.affine(right, scope)?;
        match (op, a.as_constant(), b.as_constant()) {
            (BinaryOp::Add, ..) => Ok(a + b),
            (BinaryOp::Subtract, ..) => Ok(a - b),
            (BinaryOp::Multiply, Some(factor), _) => Ok(b.scale(factor)),
            (BinaryOp::Multiply, _, Some(factor)) => Ok(a.scale(factor)),
            (BinaryOp::Multiply, ..) if a.uses_indices() && b.uses_indices() => {
                let message = "the product of two indices is not an affine index expression";
                Err(Diagnostic::error("not-affine", message).at(expr.span).hint(SUMS))
            }
            (BinaryOp::Multiply, ..) => {
                let message = "a product with a size needs the value of that size";
                let factor = if a.uses_indices() { right } else { left };
                Err(Diagnostic::error("not-affine", message).at(expr.span).hint(self.fix_hint(factor)))
            }
            (BinaryOp::FloorDivide, _, Some(c)) if *c > Int::ZERO => Ok(a.floor_div(c)),
            (BinaryOp::Remainder, _, Some(c)) if *c > Int::ZERO => Ok(a.remainder(c)),
            (BinaryOp::FloorDivide | BinaryOp::Remainder, ..) => {
                let message = "'//' and '%' need a positive whole number on their right";
                let hint = match b.uses_indices() || b.as_constant().is_some() {
                    true => "write a number of at least 1".to_string(),
                    false => self.fix_hint(right),
                };
                Err(Diagnostic::error("bad-divisor", message).at(right.span).hint(hint))
            }
            (BinaryOp::Divide, ..) => {
                let diagnostic = Diagnostic::error("bad-index", "index expressions have no fractions");
                Err(diagnostic.at(expr.span).hint("for whole division write '//'"))
            }
            (BinaryOp::Power, ..) => {
                Err(Diagnostic::error("bad-index", "index expressions have no powers").at(expr.span).hint(SUMS))
            }
            (BinaryOp::And | BinaryOp::Or, ..) => {
                let message = "this is a condition, but an index expression is needed here";
                Err(Diagnostic::error("bad-index", message).at(expr.span).hint(SUMS))
            }
        }
    }

    /// How to fix the first size that an index expression names.
    fn fix_hint(&self, expr: &Expr) -> String {
        let name = self.first_size(expr).unwrap_or("N");
        format!("fix the size, as in 'param {name} = 5' (on the command line: --param {name}=5)")
    }

    fn first_size<'a>(&self, expr: &'a Expr) -> Option<&'a str> {
        match &expr.kind {
            ExprKind::Name(name) => matches!(self.symbols.get(name), Some(Symbol::Param(_))).then_some(name),
            ExprKind::Negate(inner) => self.first_size(inner),
            ExprKind::Binary { left, right, .. } => self.first_size(left).or_else(|| self.first_size(right)),
            ExprKind::Call { arguments, .. } => arguments.iter().find_map(|a| self.first_size(a)),
            _ => None,
        }
    }

    /// The pieces of a subscript of a dimension with this extent.
    pub(super) fn pieces(&mut self, expr: &Expr, extent: &Affine, scope: &Scope) -> Result<Pieces, Diagnostic> {
        match &expr.kind {
            // Of sizes alone, the smallest or largest is one size.
            ExprKind::Call { function, .. }
                if matches!(function.text.as_str(), "min" | "max") && !mentions_scope(expr, scope) =>
            {
                Ok(Pieces::Affine(self.affine(expr, scope)?))
            }
            ExprKind::Call { function, arguments } => {
                let parts = arguments.iter().map(|a| self.pieces(a, extent, scope)).collect::<Result<Vec<_>, _>>()?;
                match (function.text.as_str(), parts.as_slice()) {
                    ("clamp", [e]) => Ok(e.map(&|e| Fold::Clamp.pieces(e, extent))),
                    ("clamp", [e, low, high]) => Ok(e.clamped(low, high)),
                    ("wrap", [e]) => Ok(e.map(&|e| Fold::Wrap.pieces(e, extent))),
                    ("reflect", [e]) => Ok(e.map(&|e| Fold::Reflect.pieces(e, extent))),
                    ("min", [_, _, ..]) => Ok(parts.iter().skip(1).fold(parts[0].clone(), |a, b| a.smaller(b))),
                    ("max", [_, _, ..]) => Ok(parts.iter().skip(1).fold(parts[0].clone(), |a, b| a.larger(b))),
                    ("clamp", _) => Err(argument_count(function, "1 or 3 arguments", parts.len(), expr)),
                    ("wrap" | "reflect", _) => Err(argument_count(function, "1 argument", parts.len(), expr)),
                    ("min" | "max", _) => Err(argument_count(function, "2 or more arguments", parts.len(), expr)),
                    _ => Ok(Pieces::Affine(self.affine(expr, scope)?)),
                }
            }
            ExprKind::Negate(inner) if chooses(inner) => {
                Ok(self.pieces(inner, extent, scope)?.map(&|a| Pieces::Affine(-a.clone())))
            }
            ExprKind::Binary { op, left, right } if chooses(left) || chooses(right) => {
                let a = self.pieces(left, extent, scope)?;
                let b = self.pieces(right, extent, scope)?;
                let combined = a.combine(&b, &|a, b| match (op, b.as_constant(), a.as_constant()) {
                    (BinaryOp::Add, ..) => Pieces::Affine(a.clone() + b.clone()),
                    (BinaryOp::Subtract, ..) => Pieces::Affine(a.clone() - b.clone()),
                    (BinaryOp::Multiply, Some(c), _) => Pieces::Affine(a.scale(c)),
                    (BinaryOp::Multiply, _, Some(c)) => Pieces::Affine(b.scale(c)),
                    (BinaryOp::FloorDivide, Some(c), _) if *c > Int::ZERO => Pieces::Affine(a.floor_div(c)),
                    (BinaryOp::Remainder, Some(c), _) if *c > Int::ZERO => Pieces::Affine(a.remainder(c)),
                    _ => unaddressable(),
                });
                if contains_unaddressable(&combined) {
                    let message = "this is not a sum of indices with whole-number factors";
                    return Err(Diagnostic::error("bad-index", message).at(expr.span));
                }
                Ok(combined)
            }
            _ => Ok(Pieces::Affine(self.affine(expr, scope)?)),
        }
    }

    /// The bounds of a written range: `low` may be `max(…)`, `high` may be `min(…)`; the end is included.
    pub(super) fn range(&mut self, range: &AstRange, scope: &Scope) -> Result<crate::program::Range, Diagnostic> {
        let low = self.bounds(&range.low, "max", scope)?;
        let mut high = self.bounds(&range.high, "min", scope)?;
        if !range.inclusive {
            high.iter_mut().for_each(|h| *h = h.shift(-1));
        }
        Ok(crate::program::Range { low, high })
    }

    fn bounds(&mut self, expr: &Expr, function: &str, scope: &Scope) -> Result<Vec<Affine>, Diagnostic> {
        match &expr.kind {
            ExprKind::Call { function: name, arguments } if name.text == function => {
                let parts = arguments.iter().map(|a| self.bounds(a, function, scope)).collect::<Result<Vec<_>, _>>()?;
                Ok(distinct(parts.into_iter().flatten()))
            }
            _ => Ok(vec![self.affine(expr, scope)?]),
        }
    }
}

/// Whether an index expression mentions an index.
pub(super) fn mentions_scope(expr: &Expr, scope: &Scope) -> bool {
    match &expr.kind {
        ExprKind::Name(name) => scope.iter().any(|(n, _)| n == name),
        ExprKind::Negate(a) => mentions_scope(a, scope),
        ExprKind::Binary { left, right, .. } => mentions_scope(left, scope) || mentions_scope(right, scope),
        ExprKind::Call { arguments, .. } => arguments.iter().any(|a| mentions_scope(a, scope)),
        _ => false,
    }
}

/// Whether the value of an index expression is the same for all indices but chosen by a function.
fn chooses(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Call { .. } => true,
        ExprKind::Negate(inner) => chooses(inner),
        ExprKind::Binary { left, right, .. } => chooses(left) || chooses(right),
        _ => false,
    }
}

/// A marker for a piece that is no index expression: no index has this number.
fn unaddressable() -> Pieces {
    Pieces::Affine(Affine::index(u32::MAX as usize))
}

fn contains_unaddressable(pieces: &Pieces) -> bool {
    match pieces {
        Pieces::Affine(affine) => affine.uses_index(u32::MAX as usize),
        Pieces::If(_, a, b) => contains_unaddressable(a) || contains_unaddressable(b),
    }
}

/// The error for a call with a wrong number of arguments; `takes` says what is right.
pub(super) fn argument_count(function: &Name, takes: &str, given: usize, expr: &Expr) -> Diagnostic {
    let given = match given {
        0 => "none is".to_string(),
        1 => "1 is".to_string(),
        count => format!("{count} are"),
    };
    let message = format!("'{}' takes {takes}, and {given} given", function.text);
    Diagnostic::error("argument-count", message).at(expr.span)
}

/// The `wrap` or `reflect` that a subscript applies.
pub(super) fn fold(expr: &Expr) -> Option<Fold> {
    match &expr.kind {
        ExprKind::Call { function, .. } if function.text == "wrap" => Some(Fold::Wrap),
        ExprKind::Call { function, .. } if function.text == "reflect" => Some(Fold::Reflect),
        ExprKind::Negate(inner) => fold(inner),
        ExprKind::Binary { left, right, .. } => fold(left).or_else(|| fold(right)),
        _ => None,
    }
}

fn check_size(affine: &Affine, expr: &Expr) -> Result<(), Diagnostic> {
    if affine.can_be_written() {
        return Ok(());
    }
    let message = format!("a number in this index expression is beyond the limit of {MAX_COEFFICIENT}");
    Err(Diagnostic::error("coefficient-limit", message).at(expr.span))
}
