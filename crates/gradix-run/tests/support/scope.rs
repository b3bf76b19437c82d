//! Index arithmetic by the letter of docs/language.md: integers, ranges, index conditions, and which
//! subscripts leave their tensors.
//!
//! An index without a range takes it from a bare use; what needs more inference than that is not for here.

use gradix::syntax::ast::{
    Ast, BinaryOp, Binder, CompareOp, Definition, Expr, ExprKind, InputDeclaration, ParamDeclaration, ReduceItem,
    StatementKind,
};
use std::collections::{BTreeMap, HashMap};

/// The indices in scope with their values, innermost last.
pub type Point = Vec<(String, i64)>;

/// Begins the message for a program that this evaluator is too simple for.
pub const OUT_OF_REACH: &str = "out of reach";

/// Sizes and the shapes of tensors.
#[derive(Default)]
pub struct Scope {
    pub sizes: BTreeMap<String, i64>,
    pub shapes: HashMap<String, Vec<i64>>,
    /// Of every dimension, 1 if its extent is written as a number: there, `wrap` goes round as often as it takes.
    pub numbers: HashMap<String, Vec<i64>>,
}

pub fn params(ast: &Ast) -> impl Iterator<Item = &ParamDeclaration> {
    let lists = ast.statements.iter().filter_map(|s| match &s.kind {
        StatementKind::Param(list) => Some(list),
        _ => None,
    });
    lists.flatten()
}

pub fn inputs(ast: &Ast) -> impl Iterator<Item = &InputDeclaration> {
    let lists = ast.statements.iter().filter_map(|s| match &s.kind {
        StatementKind::Input(list) => Some(list),
        _ => None,
    });
    lists.flatten()
}

pub fn definitions(ast: &Ast) -> impl Iterator<Item = &Definition> {
    ast.statements.iter().filter_map(|s| match &s.kind {
        StatementKind::Definition(definition) => Some(definition),
        _ => None,
    })
}

/// Which extents are written as numbers, or are those of a tensor where they are.
fn numbers(ast: &Ast) -> HashMap<String, Vec<i64>> {
    let mut found = Scope::default();
    for input in inputs(ast) {
        let flags = input.extents.iter().map(|e| i64::from(found.integer(e, &[]).is_some())).collect();
        found.shapes.insert(input.name.text.clone(), flags);
    }
    for definition in definitions(ast) {
        let flag = |binder: &Binder| match &binder.range {
            Some(range) => i64::from(found.integer(&range.high, &[]).is_some()),
            None => found.bare_use(&binder.name.text, &definition.body, false).unwrap_or(0),
        };
        let flags = definition.indices.iter().map(flag).collect();
        found.shapes.insert(definition.name.text.clone(), flags);
    }
    found.shapes
}

/// Every size, declared or first met in an extent.
pub fn size_names(ast: &Ast) -> Vec<String> {
    let mut names: Vec<String> = params(ast).map(|p| p.name.text.clone()).collect();
    for extent in inputs(ast).flat_map(|input| &input.extents) {
        visit(extent, &mut |e| {
            if let ExprKind::Name(name) = &e.kind
                && !names.contains(name)
            {
                names.push(name.clone());
            }
        });
    }
    names
}

/// Calls `each` on the expression and all its parts.
pub fn visit(expr: &Expr, each: &mut dyn FnMut(&Expr)) {
    each(expr);
    parts(expr).into_iter().for_each(|part| visit(part, each));
}

/// The expressions directly inside one.
pub fn parts(expr: &Expr) -> Vec<&Expr> {
    match &expr.kind {
        ExprKind::Integer(_) | ExprKind::Real(_) | ExprKind::Pi | ExprKind::Inf | ExprKind::Name(_) => Vec::new(),
        ExprKind::Access { subscripts, .. } => subscripts.iter().collect(),
        ExprKind::Call { arguments, .. } => arguments.iter().collect(),
        ExprKind::Negate(a) | ExprKind::Not(a) => vec![a],
        ExprKind::Binary { left, right, .. } => vec![left, right],
        ExprKind::Compare { first, rest } => std::iter::once(&**first).chain(rest.iter().map(|(_, e)| e)).collect(),
        ExprKind::If { condition, then, otherwise } => vec![condition, then, otherwise],
        ExprKind::Reduce { items, body, .. } => {
            let ends = items.iter().flat_map(|item| match item {
                ReduceItem::Binder(binder) => binder.range.iter().flat_map(|r| [&r.low, &r.high]).collect(),
                ReduceItem::Condition(condition) => vec![condition],
            });
            ends.chain([&**body]).collect()
        }
    }
}

impl Scope {
    /// Sizes and the shapes of all inputs and definitions.
    pub fn new(ast: &Ast, sizes: &BTreeMap<String, i64>) -> Self {
        let mut scope = Scope { sizes: sizes.clone(), numbers: numbers(ast), ..Scope::default() };
        for input in inputs(ast) {
            let extent = |e: &Expr| scope.integer(e, &[]).expect("an extent").max(0);
            let shape = input.extents.iter().map(extent).collect();
            scope.shapes.insert(input.name.text.clone(), shape);
        }
        for definition in definitions(ast) {
            let extent = |binder: &Binder| (scope.range(binder, &[&definition.body], &[]).1 + 1).max(0);
            let shape = definition.indices.iter().map(extent).collect();
            scope.shapes.insert(definition.name.text.clone(), shape);
        }
        scope
    }

    /// Whether the declared bounds of the sizes hold.
    pub fn bounds_hold(&self, ast: &Ast) -> bool {
        self.sizes.values().all(|&size| size >= 0)
            && params(ast).all(|param| {
                let own = self.sizes[&param.name.text];
                param.bounds.iter().all(|(op, side)| compare(own, *op, self.integer(side, &[]).expect("a bound")))
            })
    }

    /// The number of an index expression; `None` for any other.
    pub fn integer(&self, expr: &Expr, point: &[(String, i64)]) -> Option<i64> {
        let all = |list: &[Expr]| list.iter().map(|e| self.integer(e, point)).collect::<Option<Vec<i64>>>();
        match &expr.kind {
            ExprKind::Integer(value) => i64::try_from(value).ok(),
            ExprKind::Name(name) => {
                let index = point.iter().rev().find(|(known, _)| known == name).map(|(_, value)| *value);
                index.or_else(|| self.sizes.get(name).copied())
            }
            ExprKind::Negate(a) => Some(-self.integer(a, point)?),
            ExprKind::Binary { op, left, right } => {
                let (a, b) = (self.integer(left, point)?, self.integer(right, point)?);
                match op {
                    BinaryOp::Add => Some(a + b),
                    BinaryOp::Subtract => Some(a - b),
                    BinaryOp::Multiply => Some(a * b),
                    BinaryOp::FloorDivide => Some(a.div_euclid(b)),
                    BinaryOp::Remainder => Some(a.rem_euclid(b)),
                    BinaryOp::Divide | BinaryOp::Power | BinaryOp::And | BinaryOp::Or => None,
                }
            }
            ExprKind::Call { function, arguments } => match (function.text.as_str(), all(arguments)?.as_slice()) {
                ("min", list) => list.iter().copied().min(),
                ("max", list) => list.iter().copied().max(),
                ("clamp", &[e, low, high]) => Some(e.max(low).min(high)),
                _ => None,
            },
            _ => None,
        }
    }

    /// A subscript, in a dimension of this extent; `Err` where `wrap` or `reflect` is too far out.
    pub fn subscript(&self, expr: &Expr, point: &[(String, i64)], (extent, far): (i64, bool)) -> Result<i64, ()> {
        let ExprKind::Call { function, arguments } = &expr.kind else {
            return self.integer(expr, point).ok_or(());
        };
        let first = self.subscript(&arguments[0], point, (extent, far))?;
        let rest: Vec<i64> =
            arguments[1..].iter().map(|e| self.subscript(e, point, (extent, far))).collect::<Result<_, _>>()?;
        Ok(match (function.text.as_str(), rest.as_slice()) {
            ("clamp", []) => first.max(0).min(extent - 1),
            ("clamp", &[low, high]) => first.max(low).min(high),
            ("wrap", []) if far && extent > 0 || (-extent..2 * extent).contains(&first) => first.rem_euclid(extent),
            ("reflect", []) if first.abs() <= 2 * (extent - 1) && first > -extent => {
                let up = first.abs();
                if up < extent { up } else { 2 * (extent - 1) - up }
            }
            ("min", rest) => rest.iter().fold(first, |a, &b| a.min(b)),
            ("max", rest) => rest.iter().fold(first, |a, &b| a.max(b)),
            _ => return Err(()),
        })
    }

    /// The place that an access reads, if it is inside the tensor.
    pub fn place(&self, name: &str, subscripts: &[Expr], point: &[(String, i64)]) -> Result<Option<usize>, ()> {
        let mut place = Some(0usize);
        for (dimension, (subscript, &extent)) in subscripts.iter().zip(&self.shapes[name]).enumerate() {
            let far = self.numbers.get(name).is_some_and(|numbers| numbers[dimension] == 1);
            let at = self.subscript(subscript, point, (extent, far))?;
            place = place.filter(|_| (0..extent).contains(&at)).map(|place| place * extent as usize + at as usize);
        }
        Ok(place)
    }

    /// The first and the last value of an index; `uses` is where it may be used.
    pub fn range(&self, binder: &Binder, uses: &[&Expr], point: &[(String, i64)]) -> (i64, i64) {
        if let Some(range) = &binder.range {
            let low = self.integer(&range.low, point).expect("the start of a range");
            let high = self.integer(&range.high, point).expect("the end of a range");
            return (low, if range.inclusive { high } else { high - 1 });
        }
        let bare = |padded| uses.iter().find_map(|e| self.bare_use(&binder.name.text, e, padded));
        let extent = bare(false).or_else(|| bare(true)).unwrap_or_else(|| panic!("{OUT_OF_REACH}: a range to infer"));
        (0, extent - 1)
    }

    /// The extent of the dimension that the index alone subscripts.
    fn bare_use(&self, index: &str, expr: &Expr, padded: bool) -> Option<i64> {
        let hides = |item: &ReduceItem| matches!(item, ReduceItem::Binder(b) if b.name.text == index);
        match &expr.kind {
            ExprKind::Access { name, subscripts } => {
                let shape = self.shapes.get(&name.text)?;
                let bare = |e: &Expr| matches!(&e.kind, ExprKind::Name(name) if name == index);
                subscripts.iter().position(bare).map(|dimension| shape[dimension])
            }
            ExprKind::Call { function, .. } if function.text == "pad" && !padded => None,
            ExprKind::Reduce { items, .. } if items.iter().any(hides) => None,
            _ => parts(expr).into_iter().find_map(|part| self.bare_use(index, part, padded)),
        }
    }

    /// Calls `each` at every point of a reduction.
    pub fn each_point(&self, items: &[ReduceItem], body: &Expr, point: &mut Point, each: &mut dyn FnMut(&mut Point)) {
        let binders = items.iter().filter_map(|item| match item {
            ReduceItem::Binder(binder) => Some(binder),
            ReduceItem::Condition(_) => None,
        });
        let conditions: Vec<&Expr> = items
            .iter()
            .filter_map(|item| match item {
                ReduceItem::Condition(condition) => Some(condition),
                ReduceItem::Binder(_) => None,
            })
            .collect();
        self.bind(&binders.collect::<Vec<_>>(), &conditions, body, point, each);
    }

    fn bind(
        &self,
        binders: &[&Binder],
        conditions: &[&Expr],
        body: &Expr,
        point: &mut Point,
        each: &mut dyn FnMut(&mut Point),
    ) {
        let Some((binder, rest)) = binders.split_first() else {
            if conditions.iter().all(|c| self.condition(c, point).expect("an index condition")) {
                each(point);
            }
            return;
        };
        let uses: Vec<&Expr> = conditions.iter().copied().chain([body]).collect();
        let (low, high) = self.range(binder, &uses, point);
        for value in low..=high {
            point.push((binder.name.text.clone(), value));
            self.bind(rest, conditions, body, point, each);
            point.pop();
        }
    }

    /// Whether an index condition holds; `None` for a value condition that the indices do not decide.
    pub fn condition(&self, expr: &Expr, point: &[(String, i64)]) -> Option<bool> {
        match &expr.kind {
            ExprKind::Not(a) => Some(!self.condition(a, point)?),
            ExprKind::Binary { op: BinaryOp::And, left, right } => {
                match (self.condition(left, point), self.condition(right, point)) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (a, b) => Some(a? && b?),
                }
            }
            ExprKind::Binary { op: BinaryOp::Or, left, right } => {
                match (self.condition(left, point), self.condition(right, point)) {
                    (Some(true), _) | (_, Some(true)) => Some(true),
                    (a, b) => Some(a? || b?),
                }
            }
            ExprKind::Compare { first, rest } => {
                let mut left = self.integer(first, point)?;
                let mut holds = true;
                for (op, side) in rest {
                    let right = self.integer(side, point)?;
                    holds &= compare(left, *op, right);
                    left = right;
                }
                Some(holds)
            }
            _ => None,
        }
    }

    /// An access that can leave its tensor at these sizes, as text; values are not looked at.
    pub fn violation(&self, ast: &Ast) -> Option<String> {
        for definition in definitions(ast) {
            let mut found = None;
            self.each_element(definition, &mut |point| {
                if found.is_none() {
                    found = self.violation_in(&definition.body, point);
                }
            });
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Calls `each` at every element of a definition.
    pub fn each_element(&self, definition: &Definition, each: &mut dyn FnMut(&mut Point)) {
        let mut point = Point::new();
        self.elements(definition, 0, &mut point, each);
    }

    fn elements(&self, definition: &Definition, rank: usize, point: &mut Point, each: &mut dyn FnMut(&mut Point)) {
        let Some(binder) = definition.indices.get(rank) else { return each(point) };
        for value in 0..self.shapes[&definition.name.text][rank] {
            point.push((binder.name.text.clone(), value));
            self.elements(definition, rank + 1, point, each);
            point.pop();
        }
    }

    fn violation_in(&self, expr: &Expr, point: &mut Point) -> Option<String> {
        match &expr.kind {
            ExprKind::Access { name, subscripts } => match self.place(&name.text, subscripts, point) {
                Ok(Some(_)) => None,
                _ => Some(format!("{} at {point:?}", gradix::syntax::print_expr(expr))),
            },
            // The value beside it is evaluated where the element is outside of its tensor, and nowhere else.
            ExprKind::Call { function, arguments } if function.text == "pad" => {
                let ExprKind::Access { name, subscripts } = &arguments[0].kind else { panic!("pad of an access") };
                match self.place(&name.text, subscripts, point) {
                    Ok(Some(_)) => None,
                    Ok(None) => self.violation_in(&arguments[1], point),
                    Err(_) => Some(format!("{} at {point:?}", gradix::syntax::print_expr(expr))),
                }
            }
            ExprKind::Binary { op: op @ (BinaryOp::And | BinaryOp::Or), left, right } => {
                let decided = self.condition(left, point) == Some(*op == BinaryOp::Or);
                let first = self.violation_in(left, point);
                first.or_else(|| if decided { None } else { self.violation_in(right, point) })
            }
            ExprKind::If { condition, then, otherwise } => {
                let outcome = self.condition(condition, point);
                let mut found = self.violation_in(condition, point);
                if outcome != Some(false) {
                    found = found.or_else(|| self.violation_in(then, point));
                }
                if outcome != Some(true) {
                    found = found.or_else(|| self.violation_in(otherwise, point));
                }
                found
            }
            ExprKind::Reduce { items, body, .. } => {
                let mut found = None;
                self.each_point(items, body, point, &mut |point| {
                    if found.is_none() {
                        found = self.violation_in(body, point);
                    }
                });
                found
            }
            _ => parts(expr).into_iter().find_map(|part| self.violation_in(part, point)),
        }
    }
}

/// Whether a comparison of two numbers holds.
pub fn compare<T: PartialOrd>(a: T, op: CompareOp, b: T) -> bool {
    match op {
        CompareOp::Lt => a < b,
        CompareOp::Le => a <= b,
        CompareOp::Gt => a > b,
        CompareOp::Ge => a >= b,
        CompareOp::Eq => a == b,
        CompareOp::Ne => a != b,
    }
}
