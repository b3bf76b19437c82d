//! [`Program`] back to text: nested definitions return to where they are read.
//!
//! The text resolves to an equal program. A range is left out where a bare use of the index tells it.

use crate::diagnostic::{Diagnostic, Span};
use crate::program::fold::{self, Element};
use crate::program::{
    Affine, Atom, BinaryOp, Comparison, Cond, CondId, Constraint, Definition, Expr, ExprId, Exprs, Index, Param,
    ParamId, ParamKind, Program, Range, Relation, Tensor, TensorId, TensorKind, UnaryOp, circles, names,
};
use crate::syntax::ast::{self, Ast, Binder, CompareOp, ExprKind, Name, ReduceItem, Statement, StatementKind};
use gradix_int::Int;
use std::collections::{HashMap, HashSet};

/// The most nodes that a printed expression may have.
pub const MAX_PRINTED: usize = 2_000_000;

/// The program as text.
pub fn print(program: &Program) -> Result<String, Diagnostic> {
    Ok(crate::syntax::print(&ast(program, false)?))
}

/// The program as a syntax tree; with `inline`, each result as one expression without temporaries.
pub fn ast(program: &Program, inline: bool) -> Result<Ast, Diagnostic> {
    let mut statements = declarations(program);
    statements.extend(output_statement(program, inline));
    let names = Names::of(program);
    for definition in &program.definitions {
        let printed = match inline {
            true => {
                let kept = names.recurrent.contains_key(&definition.tensor);
                kept && program[definition.tensor].kind == TensorKind::Defined
                    || program.outputs.contains(&definition.tensor)
            }
            false => program[definition.tensor].kind == TensorKind::Defined,
        };
        if printed {
            statements.push(statement(StatementKind::Definition(define(program, definition, inline, &names)?)));
        }
    }
    Ok(Ast { statements, trailing_comments: Vec::new() })
}

/// An index expression as text; `names` are those of the indices.
pub fn affine(params: &[Param], names: &[&str], affine: &Affine) -> String {
    let names: Vec<String> = names.iter().map(|n| n.to_string()).collect();
    crate::syntax::print_expr(&affine_ast(params, &names, affine))
}

/// A constraint as text.
pub fn constraint(params: &[Param], names: &[&str], constraint: &Constraint) -> String {
    let names: Vec<String> = names.iter().map(|n| n.to_string()).collect();
    crate::syntax::print_expr(&constraint_ast(params, &names, constraint, false))
}

/// The definitions of a program as text, each on one line.
pub fn definitions(program: &Program) -> Vec<String> {
    let names = Names::of(program);
    let text = |definition: &Definition| {
        let Ok(defined) = define(program, definition, false, &names) else { return "…".into() };
        let statements = vec![statement(StatementKind::Definition(defined))];
        crate::syntax::print(&Ast { statements, trailing_comments: Vec::new() }).trim().to_string()
    };
    program.definitions.iter().map(text).collect()
}

/// An expression as text; `tensors` are the names of what it reads.
pub fn expression(params: &[Param], exprs: &Exprs, tensors: &[&str], names: &[&str], id: ExprId) -> String {
    let known = Names { definitions: HashMap::new(), recurrent: HashMap::new(), reserved: HashSet::new() };
    let variables: Vec<String> = names.iter().map(|n| n.to_string()).collect();
    let uses = vec![Vec::new(); variables.len()];
    let map: Vec<Affine> = (0..variables.len()).map(Affine::index).collect();
    let shown =
        |tensor: TensorId| Shown { name: tensors[tensor.0 as usize], extents: &[], tells: false, written_out: false };
    let known = &known;
    let mut printer =
        Printer { params, exprs, tensors: &shown, names: known, indices: &[], variables, uses, printed: 0 };
    let printed = printer.expr(id, &map).map(|expr| crate::syntax::print_expr(&expr));
    printed.unwrap_or_else(|_| "…".to_string())
}

fn statement(kind: StatementKind) -> Statement {
    Statement { kind, span: Span::default(), comments: Vec::new(), line_comment: None, blank_before: false }
}

fn name(text: &str) -> Name {
    Name { text: text.to_string(), span: Span::default() }
}

fn node(kind: ExprKind) -> ast::Expr {
    ast::Expr { kind, span: Span::default() }
}

fn declarations(program: &Program) -> Vec<Statement> {
    let mut statements = Vec::new();
    let inputs: Vec<ast::InputDeclaration> = program
        .inputs()
        .map(|id| ast::InputDeclaration {
            name: name(&program[id].name),
            extents: program[id].extents.iter().map(|e| affine_ast(&program.params, &[], e)).collect(),
        })
        .collect();
    let free = |p: &ParamId| program.params[p.0 as usize].kind == ParamKind::Free;
    let all: Vec<ParamId> = (0..program.params.len() as u32).map(ParamId).filter(free).collect();
    let mut shown: Vec<ParamId> = Vec::new();
    for extent in program.inputs().flat_map(|id| program[id].extents.iter()) {
        visit_params(program, extent, &mut |p| {
            if !shown.contains(&p) {
                shown.push(p);
            }
        });
    }
    let default = |p: &ParamId| Constraint::at_most(Affine::constant(0), Affine::param(*p));
    let plain = program.facts.len() == all.len() && all.iter().all(|p| program.facts.contains(&default(p)));
    if shown != all || !plain {
        let params = all.iter().map(|p| param_declaration(program, *p)).collect::<Vec<_>>();
        if !params.is_empty() {
            statements.push(statement(StatementKind::Param(params)));
        }
    }
    if !inputs.is_empty() {
        statements.push(statement(StatementKind::Input(inputs)));
    }
    statements
}

/// Visits params in the order in which their names are written; a derived size stands for its parts.
fn visit_params(program: &Program, affine: &Affine, visit: &mut dyn FnMut(ParamId)) {
    let mut found = Vec::new();
    let mut collect = |expr: &ast::Expr| names_in(expr, &mut found);
    collect(&affine_ast(&program.params, &[], affine));
    for text in found {
        if let Some(p) = program.params.iter().position(|p| p.name == text) {
            visit(ParamId(p as u32));
        }
    }
}

fn names_in(expr: &ast::Expr, found: &mut Vec<String>) {
    match &expr.kind {
        ExprKind::Name(text) => found.push(text.clone()),
        ExprKind::Negate(a) => names_in(a, found),
        ExprKind::Binary { left, right, .. } => {
            names_in(left, found);
            names_in(right, found);
        }
        ExprKind::Call { arguments, .. } => arguments.iter().for_each(|a| names_in(a, found)),
        _ => {}
    }
}

/// A param with the facts in which it is the latest one.
fn param_declaration(program: &Program, param: ParamId) -> ast::ParamDeclaration {
    let own = Atom::Param(param);
    let mut bounds = Vec::new();
    for fact in &program.facts {
        let mut latest = None;
        visit_params(program, &fact.affine, &mut |p| latest = latest.max(Some(p)));
        if latest != Some(param) {
            continue;
        }
        let mut factor = fact.affine.coefficient(&own);
        let mut rest = fact.affine.add_scaled(&-factor.clone(), &Affine::atom(own.clone()));
        let unit = factor == Int::ONE || factor == Int::NEG_ONE;
        if factor == Int::ZERO || fact.relation == Relation::Zero && !unit {
            // It can't be solved for the size: `e >= 0` is `own <= own + e`, and `e == 0` is `own = own + e`.
            (factor, rest) = (Int::NEG_ONE, fact.affine.clone() + Affine::param(param));
        }
        let (op, bound) = match (fact.relation, factor > Int::ZERO) {
            (Relation::Zero, true) => (CompareOp::Eq, (-rest).floor_div(&factor)),
            (Relation::Zero, false) => (CompareOp::Eq, rest.floor_div(&-factor)),
            (Relation::NonNegative, true) => (CompareOp::Ge, (-rest).shift(&factor - Int::ONE).floor_div(&factor)),
            (Relation::NonNegative, false) => (CompareOp::Le, rest.floor_div(&-factor)),
        };
        let default = op == CompareOp::Ge && bound == Affine::constant(0);
        bounds.push((default, (op, affine_ast(&program.params, &[], &bound))));
    }
    let other_lower = bounds.iter().any(|(default, (op, _))| !default && *op == CompareOp::Ge);
    let kept = bounds.into_iter().filter(|(default, _)| !default || other_lower).map(|(_, b)| b).collect();
    ast::ParamDeclaration { name: name(&program.params[param.0 as usize].name), bounds: kept }
}

fn output_statement(program: &Program, inline: bool) -> Option<Statement> {
    let used = circles::used_by_others(program);
    let defined = program.definitions.iter().map(|d| d.tensor);
    let unused = defined.filter(|t| program[*t].kind == TensorKind::Defined && !used.contains(t));
    let default: Vec<TensorId> = unused.collect();
    let same_order = {
        let order = program.definitions.iter().map(|d| d.tensor).filter(|t| program.outputs.contains(t));
        order.eq(program.outputs.iter().copied())
    };
    if default == program.outputs || inline && same_order {
        return None;
    }
    let names = program.outputs.iter().map(|&t| name(&program[t].name)).collect();
    Some(statement(StatementKind::Output(names)))
}

/// What can be looked up while printing.
struct Names<'a> {
    definitions: HashMap<TensorId, &'a Definition>,
    /// What belongs to a circle: it stays a definition of its own, and tells no range of an index in its circle.
    recurrent: HashMap<TensorId, usize>,
    reserved: HashSet<&'a str>,
}

impl<'a> Names<'a> {
    fn of(program: &'a Program) -> Self {
        let tensors = program.tensors.iter().filter(|t| t.kind != TensorKind::Nested).map(|t| t.name.as_str());
        let reserved = tensors.chain(program.params.iter().map(|p| p.name.as_str())).collect();
        let definitions = program.definitions.iter().map(|d| (d.tensor, d)).collect();
        Names { definitions, recurrent: circles::recurrent(program), reserved }
    }
}

fn define(
    program: &Program,
    definition: &Definition,
    inline: bool,
    names: &Names,
) -> Result<ast::Definition, Diagnostic> {
    let tensors = |id: TensorId| {
        let Tensor { name, kind, extents, .. } = &program[id];
        let circle = names.recurrent.get(&id);
        let written_out = match kind {
            TensorKind::Nested => true,
            TensorKind::Defined => inline && circle.is_none(),
            TensorKind::Input => false,
        };
        let beside = circle.is_some() && circle == names.recurrent.get(&definition.tensor);
        Shown { name, extents, tells: !beside, written_out }
    };
    let (params, exprs) = (&program.params, &program.exprs);
    let (variables, uses) = (Vec::new(), Vec::new());
    let indices = &definition.indices;
    let mut printer = Printer { params, exprs, tensors: &tensors, names, indices, variables, uses, printed: 0 };
    let map: Vec<Affine> = (0..definition.rank).map(|i| printer.variable(&definition.indices[i].name)).collect();
    let body = printer.reduction(definition, map)?;
    let binders = (0..definition.rank).map(|i| {
        let range = &definition.indices[i].range;
        let written = (!printer.is_told(i, range)).then(|| printer.range(range));
        Binder { name: name(&printer.variables[i]), range: written }
    });
    Ok(ast::Definition { name: name(&program[definition.tensor].name), indices: binders.collect(), body })
}

/// How a tensor is shown where it is read.
struct Shown<'a> {
    name: &'a str,
    extents: &'a [Affine],
    /// Whether its bare subscripts tell ranges.
    tells: bool,
    /// Whether its definition stands in its place.
    written_out: bool,
}

/// Prints one definition. Every index that is introduced is a variable with a number and a name.
struct Printer<'a> {
    params: &'a [Param],
    exprs: &'a Exprs,
    tensors: &'a dyn Fn(TensorId) -> Shown<'a>,
    names: &'a Names<'a>,
    /// The indices of the definition at hand, by their own numbers.
    indices: &'a [Index],
    variables: Vec<String>,
    /// The extents of the dimensions that a variable is the bare subscript of.
    uses: Vec<Vec<Affine>>,
    printed: usize,
}

impl<'a> Printer<'a> {
    fn variable(&mut self, name: &str) -> Affine {
        self.variables.push(name.to_string());
        self.uses.push(Vec::new());
        Affine::index(self.variables.len() - 1)
    }

    /// The value of a definition whose outputs are `map` (in variables).
    fn reduction(&mut self, definition: &'a Definition, mut map: Vec<Affine>) -> Result<ast::Expr, Diagnostic> {
        let outside = std::mem::replace(&mut self.indices, &definition.indices);
        let Some(op) = definition.reduction else {
            let body = self.expr(definition.body, &map)?;
            self.indices = outside;
            return Ok(body);
        };
        let first = self.variables.len();
        let mut used: HashSet<String> = HashSet::new();
        for affine in &map {
            affine.visit_indices(&mut |v| {
                used.insert(self.variables[v].clone());
            });
        }
        for index in &definition.indices[definition.rank..] {
            let free = names::fresh_where(&index.name, |n| used.contains(n) || self.names.reserved.contains(n));
            used.insert(free.clone());
            map.push(self.variable(&free));
        }
        let body = self.expr(definition.body, &map)?;
        self.indices = outside;
        let mut items = Vec::new();
        for (offset, index) in definition.indices[definition.rank..].iter().enumerate() {
            let range = index.range.map(|bound| bound.with_indices(&map));
            let written = (!self.is_told(first + offset, &range)).then(|| self.range(&range));
            items.push(ReduceItem::Binder(Binder { name: name(&self.variables[first + offset]), range: written }));
        }
        for condition in &definition.conditions {
            let condition = condition.with_indices(&map);
            items.push(ReduceItem::Condition(constraint_ast(self.params, &self.variables, &condition, false)));
        }
        Ok(node(ExprKind::Reduce { op: op.written(), items, body: Box::new(body) }))
    }

    /// Whether the bare uses of a variable tell this range.
    fn is_told(&self, variable: usize, range: &Range) -> bool {
        let uses = &self.uses[variable];
        let tells = |extent: &Affine| {
            let told = Range::extent(extent.clone());
            told == *range || told.flattened(self.params) == *range
        };
        !uses.is_empty() && uses.iter().all(tells)
    }

    fn range(&self, range: &Range) -> ast::Range {
        let low: Vec<ast::Expr> = range.low.iter().map(|b| self.affine(b)).collect();
        let ends: Vec<Affine> = range.high.iter().map(|h| h.shift(1)).collect();
        let whole =
            |bounds: &[Affine]| bounds.iter().filter(|b| *b.offset() == Int::ZERO && b.as_constant().is_none()).count();
        let constant = range.high.len() == 1 && range.high[0].as_constant().is_some();
        // `0..=min(2, N - 1)` would be read as the extent `min(3, N)`.
        let chosen = range.high.len() == 1 && self.is_chosen(&range.high[0]);
        let inclusive = !chosen && !constant && whole(&ends) < whole(&range.high)
            || range.high.len() > 1 && whole(&ends) < range.high.len();
        let high = if inclusive { &range.high } else { &ends };
        let high: Vec<ast::Expr> = high.iter().map(|b| self.affine(b)).collect();
        ast::Range { low: one_or_call("max", low), high: one_or_call("min", high), inclusive }
    }

    /// Whether a bound is the smallest or largest of others and nothing else.
    fn is_chosen(&self, bound: &Affine) -> bool {
        let [(Atom::Param(ParamId(p)), _)] = bound.terms() else { return false };
        *bound.offset() == Int::ZERO && self.params[*p as usize].kind.opposite().is_some()
    }

    fn affine(&self, affine: &Affine) -> ast::Expr {
        affine_ast(self.params, &self.variables, affine)
    }

    fn expr(&mut self, id: ExprId, map: &[Affine]) -> Result<ast::Expr, Diagnostic> {
        self.printed += 1;
        if self.printed > MAX_PRINTED {
            let message = format!("the expression would have more than {MAX_PRINTED} parts when written out");
            return Err(Diagnostic::error("too-large", message).hint("print it with temporaries, not inline"));
        }
        let exprs = self.exprs;
        Ok(match &exprs[id] {
            Expr::Constant(number) => number_ast(number.value()),
            Expr::Index(affine) => self.affine(&affine.with_indices(map)),
            Expr::Access(tensor, subscripts) => {
                let subscripts: Vec<Affine> = subscripts.iter().map(|s| s.with_indices(map)).collect();
                self.access(*tensor, subscripts)?
            }
            Expr::Unary(UnaryOp::Neg, a) => node(ExprKind::Negate(Box::new(self.expr(*a, map)?))),
            Expr::Unary(op, a) => call(op.name(), vec![self.expr(*a, map)?]),
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.expr(*a, map)?, self.expr(*b, map)?);
                match infix(*op) {
                    Some(op) => binary(op, a, b),
                    None => call(op.name(), vec![a, b]),
                }
            }
            Expr::Select(..) => self.select(id, map)?,
        })
    }

    fn select(&mut self, id: ExprId, map: &[Affine]) -> Result<ast::Expr, Diagnostic> {
        let Expr::Select(c, a, b) = self.exprs[id] else { unreachable!("a choice") };
        if let Some(folded) = self.folded(id, map) {
            return Ok(folded);
        }
        if let Some(padded) = self.padded((c, a, b), map)? {
            return Ok(padded);
        }
        Ok(node(ExprKind::If {
            condition: Box::new(self.condition(c, map)?),
            then: Box::new(self.expr(a, map)?),
            otherwise: Box::new(self.expr(b, map)?),
        }))
    }

    fn access(&mut self, tensor: TensorId, subscripts: Vec<Affine>) -> Result<ast::Expr, Diagnostic> {
        let Shown { name: text, extents, tells, written_out } = (self.tensors)(tensor);
        if written_out {
            let definition = self.names.definitions[&tensor];
            return self.reduction(definition, subscripts);
        }
        for (subscript, extent) in subscripts.iter().zip(extents).filter(|_| tells) {
            self.see(subscript, extent);
        }
        let shown = subscripts.iter().enumerate().map(|(dimension, subscript)| {
            match extents.get(dimension).and_then(|extent| self.wrapped(subscript, extent)) {
                Some(inner) => call("wrap", vec![self.affine(&inner)]),
                None => self.affine(subscript),
            }
        });
        Ok(element(text, shown.collect()))
    }

    /// What `wrap` takes in a dimension whose extent is a number: a remainder of indices that are not much further apart.
    fn wrapped(&self, subscript: &Affine, extent: &Affine) -> Option<Affine> {
        let n = extent.as_constant()?;
        let (factor, inner, c) = find_remainder(subscript)?;
        let whole = factor.is_one() && c == *n && inner.remainder(n) == *subscript;
        let unit = inner
            .terms()
            .iter()
            .all(|(atom, step)| matches!(atom, Atom::Index(_)) && (step.is_one() || *step == Int::NEG_ONE));
        let nearest = match inner.offset() + inner.offset() > *n {
            true => inner.shift(-n.clone()),
            false => inner,
        };
        (whole && unit && nearest.as_index().is_none()).then_some(nearest)
    }

    /// Takes note of a subscript that can tell a range.
    fn see(&mut self, subscript: &Affine, extent: &Affine) {
        if let Some(variable) = subscript.as_index() {
            self.uses[variable].push(extent.clone());
        }
    }

    /// A choice between elements as one with `wrap`, `reflect` or `clamp` in its subscripts.
    fn folded(&mut self, choice: ExprId, map: &[Affine]) -> Option<ast::Expr> {
        let Shown { name: text, extents, tells, written_out } = (self.tensors)(fold::chosen(self.exprs, choice)?);
        let Element { subscripts, .. } = fold::element(self.exprs, extents, self.indices, choice)?;
        let mut printed = Vec::new();
        for ((fold, subscript), extent) in subscripts.iter().zip(extents).filter(|_| !written_out) {
            let subscript = subscript.with_indices(map);
            let shown = self.affine(&subscript);
            match fold {
                Some(fold) => printed.push(call(fold.name(), vec![shown])),
                None => printed.push(shown),
            }
            if fold.is_none() && tells {
                self.see(&subscript, extent);
            }
        }
        (!written_out).then(|| element(text, printed))
    }

    /// `pad(x[e], v)`. What is inside of it tells no range, and `v` is an element, a number or a size.
    fn padded(
        &mut self,
        (condition, access, padding): (CondId, ExprId, ExprId),
        map: &[Affine],
    ) -> Result<Option<ast::Expr>, Diagnostic> {
        let exprs = self.exprs;
        let Expr::Access(tensor, subscripts) = &exprs[access] else { return Ok(None) };
        let Shown { name: text, extents, written_out, .. } = (self.tensors)(*tensor);
        let plain = match &exprs[padding] {
            Expr::Constant(_) | Expr::Index(_) => true,
            Expr::Access(tensor, _) => !(self.tensors)(*tensor).written_out,
            Expr::Unary(..) | Expr::Binary(..) | Expr::Select(..) => false,
        };
        if written_out || !plain || !fold::is_padded(exprs, extents, self.indices, condition, subscripts) {
            return Ok(None);
        }
        let subscripts = subscripts.iter().map(|s| self.affine(&s.with_indices(map))).collect();
        let padding = self.expr(padding, map)?;
        Ok(Some(call("pad", vec![element(text, subscripts), padding])))
    }

    fn condition(&mut self, id: CondId, map: &[Affine]) -> Result<ast::Expr, Diagnostic> {
        let exprs = self.exprs;
        Ok(match &exprs[id] {
            Cond::Index(constraint) => {
                constraint_ast(self.params, &self.variables, &constraint.with_indices(map), false)
            }
            Cond::Compare(op, a, b) => {
                // A number stands on the right.
                let swapped = exprs.as_constant(*a).is_some();
                let op = match (op, swapped) {
                    (Comparison::Lt, false) => CompareOp::Lt,
                    (Comparison::Lt, true) => CompareOp::Gt,
                    (Comparison::Le, false) => CompareOp::Le,
                    (Comparison::Le, true) => CompareOp::Ge,
                    (Comparison::Eq, _) => CompareOp::Eq,
                };
                let (a, b) = if swapped && op != CompareOp::Eq { (b, a) } else { (a, b) };
                compare(op, self.expr(*a, map)?, self.expr(*b, map)?)
            }
            Cond::Not(a) => match &exprs[*a] {
                Cond::Index(constraint) if constraint.relation == Relation::Zero => {
                    constraint_ast(self.params, &self.variables, &constraint.with_indices(map), true)
                }
                Cond::Compare(Comparison::Eq, a, b) => compare(CompareOp::Ne, self.expr(*a, map)?, self.expr(*b, map)?),
                _ => node(ExprKind::Not(Box::new(self.condition(*a, map)?))),
            },
            Cond::And(a, b) => binary(ast::BinaryOp::And, self.condition(*a, map)?, self.condition(*b, map)?),
            Cond::Or(a, b) => binary(ast::BinaryOp::Or, self.condition(*a, map)?, self.condition(*b, map)?),
        })
    }
}

fn element(text: &str, subscripts: Vec<ast::Expr>) -> ast::Expr {
    match subscripts.is_empty() {
        true => node(ExprKind::Name(text.to_string())),
        false => node(ExprKind::Access { name: name(text), subscripts }),
    }
}

fn infix(op: BinaryOp) -> Option<ast::BinaryOp> {
    match op {
        BinaryOp::Add => Some(ast::BinaryOp::Add),
        BinaryOp::Sub => Some(ast::BinaryOp::Subtract),
        BinaryOp::Mul => Some(ast::BinaryOp::Multiply),
        BinaryOp::Div => Some(ast::BinaryOp::Divide),
        BinaryOp::Pow => Some(ast::BinaryOp::Power),
        BinaryOp::Min | BinaryOp::Max | BinaryOp::Atan2 | BinaryOp::Hypot => None,
    }
}

fn binary(op: ast::BinaryOp, left: ast::Expr, right: ast::Expr) -> ast::Expr {
    node(ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) })
}

fn call(function: &str, arguments: Vec<ast::Expr>) -> ast::Expr {
    node(ExprKind::Call { function: name(function), arguments })
}

fn one_or_call(function: &str, mut arguments: Vec<ast::Expr>) -> ast::Expr {
    if arguments.len() == 1 { arguments.remove(0) } else { call(function, arguments) }
}

fn compare(op: CompareOp, left: ast::Expr, right: ast::Expr) -> ast::Expr {
    node(ExprKind::Compare { first: Box::new(left), rest: vec![(op, right)] })
}

fn number_ast(value: f64) -> ast::Expr {
    if value.is_sign_negative() && !value.is_nan() {
        return node(ExprKind::Negate(Box::new(number_ast(-value))));
    }
    if value == std::f64::consts::PI {
        return node(ExprKind::Pi);
    }
    if let Some(multiple) = (2..=12).find(|multiple| value == f64::from(*multiple) * std::f64::consts::PI) {
        return binary(ast::BinaryOp::Multiply, integer_ast(&Int::from(multiple)), node(ExprKind::Pi));
    }
    if value.is_infinite() {
        return node(ExprKind::Inf);
    }
    if value.fract() == 0.0 && value < 1e15 {
        return node(ExprKind::Integer(Int::from(value as i64)));
    }
    node(ExprKind::Real(value))
}

fn integer_ast(value: &Int) -> ast::Expr {
    if *value < Int::ZERO {
        return node(ExprKind::Negate(Box::new(integer_ast(&-value.clone()))));
    }
    node(ExprKind::Integer(value.clone()))
}

/// A sum with a positive term first where there is one; `e - c*(e // c)` is written `e % c`.
fn affine_ast(params: &[Param], names: &[String], affine: &Affine) -> ast::Expr {
    let mut parts: Vec<(Int, ast::Expr)> = Vec::new();
    let mut rest = affine.clone();
    while let Some((factor, inner, c)) = find_remainder(&rest).or_else(|| find_remainder_of_quotient(&rest)) {
        rest = rest.add_scaled(&-factor.clone(), &inner.remainder(&c));
        let remainder = binary(ast::BinaryOp::Remainder, affine_ast(params, names, &inner), integer_ast(&c));
        parts.push((factor, remainder));
    }
    // `min(2, N - 1)` rather than `-max(-2, 1 - N)`, where nothing stands before it.
    let leads = parts.is_empty() && *rest.offset() <= Int::ZERO && rest.terms().len() == 1;
    let own = rest.terms().iter().map(|(atom, factor)| match opposite_ast(params, names, atom) {
        Some(opposite) if leads && *factor == Int::NEG_ONE => (Int::ONE, opposite),
        _ => (factor.clone(), atom_ast(params, names, atom)),
    });
    let mut parts: Vec<(Int, ast::Expr)> = own.chain(parts).collect();
    parts.sort_by_key(|(factor, _)| *factor < Int::ZERO);
    // Negative terms keep their order but stand after a positive constant if nothing else is positive.
    let positive = parts.iter().filter(|(factor, _)| *factor > Int::ZERO).count();
    let constant = rest.offset().clone();
    let mut sum: Option<ast::Expr> = None;
    let mut constant_done = constant == Int::ZERO;
    if positive == 0 && constant > Int::ZERO {
        sum = Some(integer_ast(&constant));
        constant_done = true;
    }
    for (factor, part) in parts {
        let magnitude = if factor < Int::ZERO { -factor.clone() } else { factor.clone() };
        let term = match magnitude == Int::ONE {
            true => part,
            false => binary(ast::BinaryOp::Multiply, integer_ast(&magnitude), part),
        };
        sum = Some(match (sum, factor < Int::ZERO) {
            (None, false) => term,
            (None, true) => node(ExprKind::Negate(Box::new(term))),
            (Some(sum), false) => binary(ast::BinaryOp::Add, sum, term),
            (Some(sum), true) => binary(ast::BinaryOp::Subtract, sum, term),
        });
    }
    match (sum, constant_done) {
        (None, _) => integer_ast(&constant),
        (Some(sum), true) => sum,
        (Some(sum), false) if constant < Int::ZERO => binary(ast::BinaryOp::Subtract, sum, integer_ast(&-constant)),
        (Some(sum), false) => binary(ast::BinaryOp::Add, sum, integer_ast(&constant)),
    }
}

/// `(m, e, c)` such that taking `m * (e % c)` out leaves fewer terms.
fn find_remainder(affine: &Affine) -> Option<(Int, Affine, Int)> {
    affine.terms().iter().find_map(|(atom, factor)| match atom {
        Atom::Floor(inner, c) if factor % c == Int::ZERO => {
            let multiple = -(factor / c);
            let rest = affine.add_scaled(&-multiple.clone(), &inner.remainder(c));
            let shorter = |rest: &Affine| rest.terms().len() < affine.terms().len();
            // `5 - (i + 4) % 6` is `(1 - i) % 6`: of both, that beside the smaller number.
            let falling = (-(**inner).clone()).shift(c - Int::ONE);
            let beside = affine.add_scaled(&multiple, &falling.remainder(c));
            let is_nearer = multiple < Int::ZERO && magnitude(beside.offset()) < magnitude(rest.offset());
            if is_nearer && shorter(&beside) {
                return Some((-multiple, falling, c.clone()));
            }
            shorter(&rest).then(|| (multiple, (**inner).clone(), c.clone()))
        }
        Atom::Floor(..) | Atom::Index(_) | Atom::Param(_) => None,
    })
}

/// The same for a remainder of a quotient: `j // 2 - 2*(j // 4)` is `j // 2 % 2`.
fn find_remainder_of_quotient(affine: &Affine) -> Option<(Int, Affine, Int)> {
    let quotients = affine.terms().iter().filter(|(atom, _)| matches!(atom, Atom::Floor(..)));
    quotients.clone().find_map(|(atom, factor)| {
        let quotient = Affine::atom(atom.clone());
        quotients.clone().filter(|(_, other)| other % factor == Int::ZERO).find_map(|(_, other)| {
            let parts = Some(-(other / factor)).filter(|parts| *parts > Int::ONE)?;
            let rest = affine.add_scaled(&-factor.clone(), &quotient.remainder(&parts));
            (rest.terms().len() + 2 == affine.terms().len()).then(|| (factor.clone(), quotient.clone(), parts))
        })
    })
}

fn magnitude(number: &Int) -> Int {
    if *number < Int::ZERO { -number.clone() } else { number.clone() }
}

fn atom_ast(params: &[Param], names: &[String], atom: &Atom) -> ast::Expr {
    match atom {
        Atom::Index(i) => {
            let fallback = || format!("i{i}");
            node(ExprKind::Name(names.get(*i as usize).cloned().unwrap_or_else(fallback)))
        }
        Atom::Param(ParamId(p)) => size_ast(params, names, &params[*p as usize].name, &params[*p as usize].kind),
        Atom::Floor(inner, c) => binary(ast::BinaryOp::FloorDivide, affine_ast(params, names, inner), integer_ast(c)),
    }
}

fn size_ast(params: &[Param], names: &[String], name: &str, kind: &ParamKind) -> ast::Expr {
    let parts = |parts: &[Affine]| parts.iter().map(|a| affine_ast(params, names, a)).collect::<Vec<_>>();
    match kind {
        ParamKind::Free | ParamKind::Time(_) => node(ExprKind::Name(name.to_string())),
        ParamKind::Fixed(value) => integer_ast(value),
        ParamKind::Smallest(of) => call("min", parts(of)),
        ParamKind::Largest(of) => call("max", parts(of)),
    }
}

/// The negative of a size that follows from others, if its text stands for the same as that with a sign.
fn opposite_ast(params: &[Param], names: &[String], atom: &Atom) -> Option<ast::Expr> {
    let Atom::Param(ParamId(p)) = atom else { return None };
    let Param { name, kind } = &params[*p as usize];
    let opposite = kind.opposite().filter(|opposite| opposite.rising() < 0)?;
    Some(size_ast(params, names, name, &opposite))
}

/// `e >= 0` with negative terms moved over: `i < N`, `i + k >= 2`, `i == j`, `i % 2 == 0`.
fn constraint_ast(params: &[Param], names: &[String], constraint: &Constraint, negated: bool) -> ast::Expr {
    let mut left = Affine::default();
    let mut right = Affine::default();
    let mut rest = constraint.affine.clone();
    while let Some((factor, inner, c)) = find_remainder(&rest).or_else(|| find_remainder_of_quotient(&rest)) {
        let part = inner.remainder(&c).scale(&factor);
        rest = rest - part.clone();
        match factor > Int::ZERO {
            true => left = left + part,
            false => right = right - part,
        }
    }
    for (atom, factor) in rest.terms() {
        let part = Affine::atom(atom.clone());
        match *factor > Int::ZERO {
            true => left = left.add_scaled(factor, &part),
            false => right = right.add_scaled(&-factor.clone(), &part),
        }
    }
    let constant = rest.offset().clone();
    let affine = |a: &Affine| affine_ast(params, names, a);
    if constraint.relation == Relation::Zero {
        let op = if negated { CompareOp::Ne } else { CompareOp::Eq };
        let (left, right) =
            if left.terms().is_empty() { (right, left.shift(constant)) } else { (left, right.shift(-constant)) };
        return compare(op, affine(&left), affine(&right));
    }
    // left + constant >= right
    let index_left = left.uses_indices() || !right.uses_indices() && !left.terms().is_empty();
    match (index_left, constant == Int::NEG_ONE && !left.terms().is_empty() && !right.terms().is_empty()) {
        (true, true) => compare(CompareOp::Gt, affine(&left), affine(&right)),
        (true, false) => compare(CompareOp::Ge, affine(&left), affine(&right.shift(-constant))),
        (false, true) => compare(CompareOp::Lt, affine(&right), affine(&left)),
        (false, false) => compare(CompareOp::Le, affine(&right), affine(&left.shift(constant))),
    }
}
