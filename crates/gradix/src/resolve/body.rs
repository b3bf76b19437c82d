//! The second walk over a definition: expressions into the normal form.

use super::advise::nested_call;
use super::frame::Frame;
use super::index::{argument_count, fold, mentions_scope};
use super::{Resolver, Symbol};
use crate::diagnostic::{Diagnostic, Span, counted};
use crate::domain::{bounds, guard};
use crate::lift;
use crate::program::build;
use crate::program::fold::Pieces;
use crate::program::{
    Affine, BinaryOp, Cond, CondId, Constraint, Definition, Expr, ExprId, Index, Program, Range, ReduceOp, TensorId,
    TensorKind, UnaryOp,
};
use crate::scalar::{self, Derivative, Function};
use crate::syntax::FUNCTIONS;
use crate::syntax::ast::{self, ExprKind, ReduceItem};

pub(super) type Lowered<T> = Result<T, Diagnostic>;

impl Resolver {
    pub(super) fn define(&mut self, definition: &ast::Definition) {
        if let Some(outline) = self.outline(definition) {
            self.define_outlined(definition, outline);
        }
    }

    /// The ranges of a definition. In a circle its tensor is then known to all others.
    pub(super) fn outline(&mut self, definition: &ast::Definition) -> Option<Outline> {
        let name = &definition.name.text;
        if self.symbols.get(name) != Some(&Symbol::Declared(definition.name.span)) {
            return None;
        }
        let before = self.diagnostics.len();
        self.reduced.clear();
        let Some(survey) = self.survey(definition) else {
            self.advise_brackets(definition, before);
            self.broken.push(name.clone());
            return None;
        };
        let (ranges, unknown_range) = self.infer(&survey, definition);
        let reduced = std::mem::take(&mut self.reduced);
        let tensor = self.circle.contains(name).then(|| {
            let extents: Vec<Affine> =
                ranges[..definition.indices.len()].iter().map(|range| range.high[0].shift(1)).collect();
            self.program.add_defined(name.clone(), extents)
        });
        if let Some(tensor) = tensor {
            self.symbols.insert(name.clone(), Symbol::Tensor(tensor));
        }
        Some(Outline { ranges, unknown_range, reduced, tensor })
    }

    /// The body of a definition, once all that it may read is known.
    pub(super) fn define_outlined(&mut self, definition: &ast::Definition, outline: Outline) {
        let Outline { ranges, unknown_range, reduced, tensor } = outline;
        let (before, name) = (self.diagnostics.len(), definition.name.text.clone());
        self.reduced = reduced;
        let frame = Frame {
            name: name.clone(),
            scope: Vec::new(),
            indices: Vec::new(),
            depths: vec![None; ranges.len()],
            ranges,
            next: 0,
            assumptions: Vec::new(),
            split: Vec::new(),
            accesses: Vec::new(),
            placed: Vec::new(),
            shared: Vec::new(),
            broken: None,
        };
        // A mistake in a subscript is the better message where it is also why a range is unknown.
        let lowered = self.lower_definition(definition, tensor, frame);
        let wrong = lowered.as_ref().err().cloned().or(unknown_range);
        if let Some(diagnostic) = wrong.filter(|_| lowered.is_err() || self.diagnostics.len() == before) {
            self.report(diagnostic);
        }
        self.advise_brackets(definition, before);
        match lowered {
            Ok(tensor) if self.diagnostics.len() == before => {
                self.symbols.insert(name, Symbol::Tensor(tensor));
            }
            _ => self.broken.push(name),
        }
    }

    /// Where names such as `x_i` are unknown, the line with brackets is the better hint.
    fn advise_brackets(&mut self, definition: &ast::Definition, before: usize) {
        let unknown = |diagnostic: &Diagnostic| diagnostic.code == "unknown-name";
        if !self.diagnostics[before..].iter().any(unknown) {
            return;
        }
        let Some(meant) = self.with_brackets(definition) else { return };
        for diagnostic in self.diagnostics[before..].iter_mut().filter(|diagnostic| unknown(diagnostic)) {
            diagnostic.hints = vec![format!("indices stand in brackets: write '{meant}'")];
        }
    }

    fn lower_definition(
        &mut self,
        definition: &ast::Definition,
        declared: Option<TensorId>,
        mut frame: Frame,
    ) -> Lowered<TensorId> {
        for binder in &definition.indices {
            frame.push(&binder.name.text);
        }
        let body = self.value(&definition.body, &mut frame)?;
        let outputs = frame.indices;
        let extents = outputs.iter().map(|i| i.range.high[0].shift(1)).collect();
        let name = definition.name.text.clone();
        let tensor = declared.unwrap_or_else(|| self.program.add_defined(name, extents));
        let merged = lift::define(&mut self.program, tensor, outputs, Vec::new(), body);
        let own = frame.accesses.into_iter().map(|(access, span)| (tensor, access, span));
        for (owner, access, span) in frame.placed.into_iter().chain(own) {
            let owner = if Some(owner) == merged { tensor } else { owner };
            self.places.accesses.entry((owner, access)).or_insert(span);
        }
        Ok(tensor)
    }

    /// Lowers `⊕[items] body` on top of the indices in scope; the frame is left as it was.
    fn lower_reduction(
        &mut self,
        op: ast::ReduceOp,
        items: &[ReduceItem],
        body: &ast::Expr,
        frame: &mut Frame,
    ) -> Lowered<Reduced> {
        let (depth, assumed) = (frame.scope.len(), frame.assumptions.len());
        let binders = items.iter().filter(|i| matches!(i, ReduceItem::Binder(_))).count();
        // A product runs over one index at a time, so that the others' product is easy to state.
        let taken = if op == ast::ReduceOp::Prod { 1 } else { binders };
        for item in items.iter().filter(|i| matches!(i, ReduceItem::Binder(_))).take(taken) {
            if let ReduceItem::Binder(binder) = item {
                frame.push(&binder.name.text);
            }
        }
        if taken < binders {
            let mut first = true;
            let rest: Vec<ReduceItem> = items
                .iter()
                .filter(|i| !(matches!(i, ReduceItem::Binder(_)) && std::mem::take(&mut first)))
                .cloned()
                .collect();
            let inner =
                ast::Expr { kind: ExprKind::Reduce { op, items: rest, body: Box::new(body.clone()) }, span: body.span };
            let body = self.value(&inner, frame)?;
            let reduction = Some(ReduceOp::Prod);
            let reduced = Reduced {
                reduction,
                indices: frame.indices.clone(),
                conditions: Vec::new(),
                filters: Vec::new(),
                body,
            };
            frame.pop_to(depth, assumed);
            return Ok(reduced);
        }
        let (mut conditions, filters) = self.reduction_conditions(items, frame)?;
        frame.assumptions.extend(conditions.iter().cloned());
        let split = frame.split.len();
        frame.split.extend(&filters);
        let mut body = self.value(body, frame)?;
        frame.split.truncate(split);
        let op = op.folded();
        for &filter in &filters {
            let neutral = self.program.exprs.constant(op.neutral());
            body = self.program.exprs.add(Expr::Select(filter, body, neutral));
        }
        conditions.retain(|c| c.decided() != Some(true));
        let reduced = Reduced { reduction: Some(op), indices: frame.indices.clone(), conditions, filters, body };
        frame.pop_to(depth, assumed);
        Ok(reduced)
    }

    /// What the bracket of a reduction asks of indices, as constraints and, where it is no conjunction, as conditions.
    fn reduction_conditions(
        &mut self,
        items: &[ReduceItem],
        frame: &mut Frame,
    ) -> Lowered<(Vec<Constraint>, Vec<CondId>)> {
        let (mut conditions, mut filters) = (Vec::new(), Vec::new());
        for item in items {
            if let ReduceItem::Condition(condition) = item {
                let id = self.condition(condition, frame)?;
                if guard::has_values(&self.program.exprs, id) {
                    return Err(Diagnostic::error("value-condition", "this condition depends on values")
                        .at(condition.span)
                        .hint(
                            "in the bracket of a reduction only indices can be tested; use 'if … then … else' inside",
                        ));
                }
                match (build::decided(&self.program.exprs, id), guard::conjunction(&self.program.exprs, id)) {
                    (Some(true), _) => {}
                    (Some(false), _) => conditions.push(Constraint::non_negative(Affine::constant(-1))),
                    (None, Some(parts)) => conditions.extend(parts),
                    (None, None) => filters.push(id),
                }
            }
        }
        Ok((conditions, filters))
    }

    /// A reduction inside an expression: a definition of its own over the indices that it uses.
    fn lower_nested(
        &mut self,
        op: ast::ReduceOp,
        items: &[ReduceItem],
        body: &ast::Expr,
        frame: &mut Frame,
    ) -> Lowered<ExprId> {
        if let Some(diagnostic) = &frame.broken {
            return Err(diagnostic.clone());
        }
        let outer = std::mem::take(&mut frame.accesses);
        let shared = std::mem::take(&mut frame.shared);
        let rank = frame.indices.len();
        let (depth, assumed) = (frame.scope.len(), frame.assumptions.len());
        let reduced = self.lower_reduction(op, items, body, frame).inspect_err(|diagnostic| {
            frame.pop_to(depth, assumed);
            frame.broken = Some(diagnostic.clone());
        })?;
        let own = std::mem::replace(&mut frame.accesses, outer);
        frame.shared = shared;
        let full = Definition {
            tensor: TensorId(u32::MAX),
            indices: reduced.indices,
            rank,
            reduction: reduced.reduction,
            conditions: reduced.conditions,
            assumptions: frame.assumptions.clone(),
            body: reduced.body,
        };
        let name = format!("{}_{}", frame.name, op.word());
        let context = self.program.size_context();
        let points = (op == ast::ReduceOp::Mean).then(|| (full.clone(), reduced.filters));
        let full = self.under_split_conditions(full, frame, &context);
        let before = self.program.definitions.len();
        let (access, map) = lift::add_written(&mut self.program, full, name, &context, &frame.shared)?;
        if self.program.definitions.len() > before {
            frame.shared.push(access);
            let tensor = self.program.definitions[before].tensor;
            for (id, span) in own {
                let moved = lift::remap(&mut self.program.exprs, id, &map);
                frame.placed.push((tensor, moved, span));
            }
        }
        match points {
            Some((points, filters)) => self.mean(access, points, &filters, frame),
            None => Ok(access),
        }
    }

    pub(super) fn value(&mut self, expr: &ast::Expr, frame: &mut Frame) -> Lowered<ExprId> {
        if let Some(affine) = self.index_value(expr, frame)? {
            return Ok(match affine.as_constant() {
                Some(number) => {
                    let number = number.to_f64().value();
                    self.program.exprs.constant(number)
                }
                None => self.program.exprs.add(Expr::Index(affine)),
            });
        }
        match &expr.kind {
            ExprKind::Integer(value) => {
                let value = value.to_f64().value();
                Ok(self.program.exprs.constant(value))
            }
            ExprKind::Real(value) => Ok(self.program.exprs.constant(*value)),
            ExprKind::Pi => Ok(self.program.exprs.constant(std::f64::consts::PI)),
            ExprKind::Inf => Ok(self.program.exprs.constant(f64::INFINITY)),
            ExprKind::Name(name) => self.access(name, expr.span, &[], None, expr.span, frame),
            ExprKind::Access { name, subscripts } => {
                self.access(&name.text, name.span, subscripts, None, expr.span, frame)
            }
            ExprKind::Call { function, arguments } => self.call(function, arguments, expr, frame),
            ExprKind::Negate(a) => self.negate(a, frame),
            ExprKind::Binary { op, left, right } => self.binary(*op, left, right, expr.span, frame),
            ExprKind::Compare { .. } | ExprKind::Not(_) => Err(not_a_number(expr.span)),
            ExprKind::If { condition, then, otherwise } => self.conditional(condition, then, otherwise, frame),
            ExprKind::Reduce { op, items, body } => self.lower_nested(*op, items, body, frame),
        }
    }

    fn negate(&mut self, operand: &ast::Expr, frame: &mut Frame) -> Lowered<ExprId> {
        let operand = self.value(operand, frame)?;
        let exprs = &mut self.program.exprs;
        Ok(match (&exprs[operand], exprs.as_constant(operand)) {
            (_, Some(number)) => exprs.constant(0.0 - number),
            (Expr::Index(affine), None) => build::index(exprs, -affine.clone()),
            _ => exprs.add(Expr::Unary(UnaryOp::Neg, operand)),
        })
    }

    fn binary(
        &mut self,
        op: ast::BinaryOp,
        left: &ast::Expr,
        right: &ast::Expr,
        span: Span,
        frame: &mut Frame,
    ) -> Lowered<ExprId> {
        let op = match op {
            ast::BinaryOp::Add => BinaryOp::Add,
            ast::BinaryOp::Subtract => BinaryOp::Sub,
            ast::BinaryOp::Multiply => BinaryOp::Mul,
            ast::BinaryOp::Divide => BinaryOp::Div,
            ast::BinaryOp::Power => BinaryOp::Pow,
            ast::BinaryOp::FloorDivide | ast::BinaryOp::Remainder => {
                let message = "'//' and '%' work on index expressions only";
                let hint = "for values use '/', or 'floor(a / b)'";
                return Err(Diagnostic::error("bad-index", message).at(span).hint(hint));
            }
            ast::BinaryOp::And | ast::BinaryOp::Or => return Err(not_a_number(span)),
        };
        let (a, b) = self.both(left, right, frame)?;
        let exprs = &mut self.program.exprs;
        // This is how NaN is written.
        let infinite = |id| exprs.as_constant(id) == Some(f64::INFINITY);
        if op == BinaryOp::Sub && infinite(a) && infinite(b) {
            return Ok(exprs.constant(f64::NAN));
        }
        // `2 * pi` is how that number is written.
        let is_pi = |id| exprs.as_constant(id) == Some(std::f64::consts::PI);
        if op == BinaryOp::Mul
            && is_pi(b)
            && let Some(multiple) = exprs.as_constant(a).filter(|n| n.fract() == 0.0)
        {
            return Ok(exprs.constant(multiple * std::f64::consts::PI));
        }
        // Index expressions and whole numbers combine as they would if they were written in one piece.
        let whole = |id| exprs.as_constant(id).is_some_and(|v| v.fract() == 0.0 && v.abs() < 1e15);
        let index = |id: ExprId| matches!(exprs[id], Expr::Index(_)) || whole(id);
        let combine = index(a)
            && index(b)
            && match op {
                BinaryOp::Add | BinaryOp::Sub => true,
                BinaryOp::Mul => whole(a) || whole(b),
                _ => false,
            };
        Ok(if combine { build::binary(exprs, op, a, b) } else { exprs.add(Expr::Binary(op, a, b)) })
    }

    fn conditional(
        &mut self,
        condition: &ast::Expr,
        then: &ast::Expr,
        otherwise: &ast::Expr,
        frame: &mut Frame,
    ) -> Lowered<ExprId> {
        let condition = self.condition(condition, frame)?;
        let before = (self.program.definitions.len(), frame.shared.len());
        let a = self.branch(condition, true, then, frame)?;
        let between = (self.program.definitions.len(), frame.shared.len());
        let b = self.branch(condition, false, otherwise, frame)?;
        // A branch that is never taken leaves nothing behind.
        match build::decided(&self.program.exprs, condition) {
            Some(true) => {
                self.program.definitions.truncate(between.0);
                frame.shared.truncate(between.1);
                Ok(a)
            }
            Some(false) => {
                self.program.definitions.drain(before.0..between.0);
                frame.shared.drain(before.1..between.1);
                Ok(b)
            }
            None => Ok(self.program.exprs.add(Expr::Select(condition, a, b))),
        }
    }

    /// A value where the condition has this outcome.
    fn branch(&mut self, condition: CondId, outcome: bool, value: &ast::Expr, frame: &mut Frame) -> Lowered<ExprId> {
        let (assumed, split) = (frame.assumptions.len(), frame.split.len());
        let context = self.program.size_context();
        frame.assume(&mut self.program.exprs, condition, outcome, &context);
        let value = self.value(value, frame)?;
        frame.assumptions.truncate(assumed);
        frame.split.truncate(split);
        Ok(value)
    }

    /// Two operands; mistakes in both are reported.
    fn both(&mut self, left: &ast::Expr, right: &ast::Expr, frame: &mut Frame) -> Lowered<(ExprId, ExprId)> {
        let (a, b) = (self.value(left, frame), self.value(right, frame));
        if let (Err(first), Err(_)) = (&a, &b) {
            self.report(first.clone());
        }
        match (a, b) {
            (Ok(a), Ok(b)) => Ok((a, b)),
            (_, Err(diagnostic)) | (Err(diagnostic), Ok(_)) => Err(diagnostic),
        }
    }

    /// Where a reduction reads elements that only a condition such as `i != 1` around it excuses, the condition is made a
    /// part of its body.
    fn under_split_conditions(&mut self, full: Definition, frame: &Frame, context: &[Constraint]) -> Definition {
        let Some(op) = full.reduction.filter(|_| !frame.split.is_empty()) else { return full };
        let domain = [context, &full.domain()].concat();
        if !leaves(&mut self.program, full.body, &domain) {
            return full;
        }
        let whole = self.under(&frame.split, full.body, op);
        if !leaves(&mut self.program, whole, &domain) {
            return Definition { body: whole, ..full };
        }
        // Some sizes still let it leave. Those at which only conditions that test them keep it from that are not to blame.
        let exprs = &mut self.program.exprs;
        if !frame.split.iter().any(|&condition| guard::tests_sizes(exprs, condition)) {
            return full;
        }
        let neutral = exprs.constant(op.neutral());
        let beyond = frame.split.iter().rev().fold(neutral, |rest, &c| exprs.add(Expr::Select(c, rest, full.body)));
        let is_excused = bounds::leaves_alone(&mut self.program, beyond, whole, &domain);
        if is_excused { Definition { body: whole, ..full } } else { full }
    }

    /// The body where all conditions hold, and what a reduction begins with elsewhere.
    fn under(&mut self, conditions: &[CondId], body: ExprId, op: ReduceOp) -> ExprId {
        let exprs = &mut self.program.exprs;
        let neutral = exprs.constant(op.neutral());
        conditions.iter().rev().fold(body, |body, &condition| exprs.add(Expr::Select(condition, body, neutral)))
    }

    /// The affine expression, if this is an index expression that mentions an index or a size.
    pub(super) fn index_value(&mut self, expr: &ast::Expr, frame: &Frame) -> Lowered<Option<Affine>> {
        if !self.is_index_like(expr, frame) {
            return Ok(None);
        }
        match self.affine(expr, &frame.scope) {
            Ok(affine) => Ok(Some(affine)),
            // A product of indices or sizes, and a number that is too large for an index expression, are values like any other.
            Err(diagnostic) if matches!(diagnostic.code, "not-affine" | "coefficient-limit") => Ok(None),
            Err(diagnostic) => Err(diagnostic),
        }
    }

    fn is_index_like(&self, expr: &ast::Expr, frame: &Frame) -> bool {
        match &expr.kind {
            ExprKind::Integer(_) => true,
            ExprKind::Name(name) => {
                let size = matches!(self.symbols.get(name), Some(Symbol::Param(_) | Symbol::Fixed(_)));
                size || frame.scope.iter().any(|(n, _)| n == name)
            }
            ExprKind::Negate(a) => self.is_index_like(a, frame),
            ExprKind::Call { function, arguments } => {
                let of_sizes = |a: &ast::Expr| self.is_index_like(a, frame) && !mentions_scope(a, &frame.scope);
                matches!(function.text.as_str(), "min" | "max")
                    && arguments.len() >= 2
                    && arguments.iter().all(of_sizes)
            }
            ExprKind::Binary { op, left, right } => {
                let whole = match op {
                    ast::BinaryOp::Add | ast::BinaryOp::Subtract | ast::BinaryOp::Multiply => true,
                    ast::BinaryOp::FloorDivide | ast::BinaryOp::Remainder => true,
                    ast::BinaryOp::Divide | ast::BinaryOp::Power | ast::BinaryOp::And | ast::BinaryOp::Or => false,
                };
                whole && self.is_index_like(left, frame) && self.is_index_like(right, frame)
            }
            _ => false,
        }
    }

    /// An element of a tensor; outside of it `padding`, if that is given.
    fn access(
        &mut self,
        name: &str,
        name_span: Span,
        subscripts: &[ast::Expr],
        padding: Option<ExprId>,
        span: Span,
        frame: &mut Frame,
    ) -> Lowered<ExprId> {
        if frame.scope.iter().any(|(n, _)| n == name) {
            let message = format!("'{name}' is an index and has no elements");
            return Err(Diagnostic::error("not-a-tensor", message).at(name_span));
        }
        if let Some(reported) = self.reported(name) {
            return Err(reported);
        }
        let later = self.declared.get(name).filter(|declared| declared.start > name_span.start);
        let tensor = match self.symbols.get(name) {
            Some(Symbol::Tensor(id))
                if later.is_some() && self.program[*id].kind == TensorKind::Defined && !self.circle.contains(name) =>
            {
                return Err(used_before_definition(name, name_span, self.declared[name]));
            }
            Some(Symbol::Tensor(id)) => *id,
            Some(Symbol::Param(_) | Symbol::Fixed(_)) => {
                let message = format!("'{name}' is a size and has no elements");
                return Err(Diagnostic::error("not-a-tensor", message).at(name_span));
            }
            Some(Symbol::Declared(declared)) => return Err(used_before_definition(name, name_span, *declared)),
            None => return Err(self.unknown(name, name_span, &frame.scope)),
        };
        let extents = self.program[tensor].extents.clone();
        if extents.len() != subscripts.len() {
            return Err(self.subscript_count(name, &extents, subscripts.len()).at(span));
        }
        let mut pieces = Vec::new();
        for (dimension, (subscript, extent)) in subscripts.iter().zip(&extents).enumerate() {
            let chosen =
                self.pieces(subscript, extent, &frame.scope).map_err(|diagnostic| match self.reads(subscript) {
                    true if diagnostic.code == "bad-index" => {
                        let comparison = self.by_comparison(name, subscripts, dimension, frame);
                        diagnostic.hint(format!("to choose by a value, compare it: '{comparison}'"))
                    }
                    _ => diagnostic,
                })?;
            pieces.push(chosen);
            if let Some(fold) = fold(subscript) {
                self.places.folded.insert((span, dimension), fold);
            }
        }
        Ok(self.choose(tensor, &pieces, &mut Vec::new(), padding, span, frame))
    }

    fn subscript_count(&self, name: &str, extents: &[Affine], given: usize) -> Diagnostic {
        let given = match given {
            0 => "no subscript is".to_string(),
            1 => "1 subscript is".to_string(),
            count => format!("{count} subscripts are"),
        };
        let (message, hint) = match extents.len() {
            0 => (format!("'{name}' is a scalar and takes no subscripts"), format!("write '{name}' alone")),
            rank => {
                let shown: Vec<String> = extents.iter().map(|e| self.show(e)).collect();
                (
                    format!("'{name}' has {}, but {given} given", counted(rank, "dimension")),
                    format!("give one subscript for each dimension of {name}[{}]", shown.join(", ")),
                )
            }
        };
        Diagnostic::error("subscript-count", message).hint(hint)
    }

    /// One access for each combination of pieces.
    fn choose(
        &mut self,
        tensor: TensorId,
        pieces: &[Pieces],
        subscripts: &mut Vec<Affine>,
        padding: Option<ExprId>,
        span: Span,
        frame: &mut Frame,
    ) -> ExprId {
        match pieces.split_first() {
            Some((Pieces::Affine(affine), rest)) => {
                subscripts.push(affine.clone());
                let chosen = self.choose(tensor, rest, subscripts, padding, span, frame);
                subscripts.pop();
                chosen
            }
            Some((Pieces::If(condition, a, b), rest)) => {
                let [a, b] = [a, b].map(|branch| {
                    let mut pieces = vec![(**branch).clone()];
                    pieces.extend_from_slice(rest);
                    self.choose(tensor, &pieces, subscripts, padding, span, frame)
                });
                let condition = self.program.exprs.add_condition(Cond::Index(condition.clone()));
                self.program.exprs.add(Expr::Select(condition, a, b))
            }
            None => {
                let access = self.program.exprs.access(tensor, subscripts.clone());
                frame.accesses.push((access, span));
                match padding {
                    Some(padding) => {
                        let extents = self.program[tensor].extents.clone();
                        guard::inside(&mut self.program.exprs, subscripts, &extents, access, padding)
                    }
                    None => access,
                }
            }
        }
    }

    fn call(
        &mut self,
        function: &ast::Name,
        arguments: &[ast::Expr],
        expr: &ast::Expr,
        frame: &mut Frame,
    ) -> Lowered<ExprId> {
        let name = function.text.as_str();
        if name == "pad" {
            return self.pad(arguments, expr, frame);
        }
        match scalar::function(name) {
            Some(Function::One(row)) => {
                expect_arguments(function, arguments, 1, expr)?;
                if matches!(row.derivative, Derivative::Missing(_)) {
                    self.places.underived.push((row.name, expr.span));
                }
                let a = self.value(&arguments[0], frame)?;
                return Ok(self.program.exprs.add(Expr::Unary(row.op, a)));
            }
            Some(Function::Two(row)) => {
                expect_arguments(function, arguments, 2, expr)?;
                let (a, b) = self.both(&arguments[0], &arguments[1], frame)?;
                return Ok(self.program.exprs.add(Expr::Binary(row.op, a, b)));
            }
            None => {}
        }
        if matches!(name, "clamp" | "wrap" | "reflect") {
            let message = format!("'{name}' can stand only in the subscript of a tensor");
            return Err(Diagnostic::error("bad-call", message).at(expr.span));
        }
        if let Some(diagnostic) = self.not_a_function(name, frame) {
            return Err(diagnostic.at(function.span));
        }
        let diagnostic = Diagnostic::error("unknown-function", format!("unknown function '{name}'")).at(function.span);
        let near =
            || super::declare::nearest(name, FUNCTIONS.iter().copied()).map(|near| format!("did you mean '{near}'?"));
        Err(match self.instead_of_call(name, arguments, frame).or_else(near) {
            Some(hint) => diagnostic.hint(hint),
            None => diagnostic.hint(format!("the functions are {}", FUNCTIONS.join(", "))),
        })
    }

    /// The error for the call of a name that stands for something else.
    fn not_a_function(&self, name: &str, frame: &Frame) -> Option<Diagnostic> {
        let is_index = frame.scope.iter().any(|(n, _)| n == name);
        let product = format!("for a product write '{name} * (…)'");
        let (kind, hint) = match self.symbols.get(name) {
            _ if is_index => ("an index", product),
            Some(Symbol::Param(_) | Symbol::Fixed(_)) => ("a size", product),
            Some(Symbol::Tensor(id)) if self.program[*id].rank == 0 => ("a scalar", product),
            Some(Symbol::Tensor(_) | Symbol::Declared(_)) => {
                ("a tensor", format!("brackets hold indices, parentheses hold values: write '{name}[…]'"))
            }
            None => return None,
        };
        Some(Diagnostic::error("bad-call", format!("'{name}' is {kind}, not a function")).hint(hint))
    }

    fn pad(&mut self, arguments: &[ast::Expr], expr: &ast::Expr, frame: &mut Frame) -> Lowered<ExprId> {
        match arguments {
            [ast::Expr { kind: ExprKind::Access { name, subscripts }, .. }, value] => {
                let value = self.value(value, frame)?;
                self.access(&name.text, name.span, subscripts, Some(value), arguments[0].span, frame)
            }
            _ => Err(Diagnostic::error("bad-call", "'pad' takes an element of a tensor and a value")
                .at(expr.span)
                .hint("as in 'pad(x[i - 1], 0)'")),
        }
    }
}

/// Whether an access may leave its tensor.
fn leaves(program: &mut Program, root: ExprId, domain: &[Constraint]) -> bool {
    !bounds::stays_inside(program, root, domain) && bounds::can_leave(program, root, domain)
}

/// What is known of a definition before its body.
pub(super) struct Outline {
    ranges: Vec<Range>,
    unknown_range: Option<Diagnostic>,
    /// The indices of its reductions.
    reduced: Vec<(String, Span)>,
    /// Its tensor, if it is in a circle.
    tensor: Option<TensorId>,
}

/// A reduction (or none) with the indices of everything around it.
struct Reduced {
    reduction: Option<ReduceOp>,
    indices: Vec<Index>,
    conditions: Vec<Constraint>,
    /// Conditions that are a part of the body, each with the neutral value.
    filters: Vec<CondId>,
    body: ExprId,
}

fn expect_arguments(function: &ast::Name, arguments: &[ast::Expr], count: usize, expr: &ast::Expr) -> Lowered<()> {
    if arguments.len() == count {
        return Ok(());
    }
    let takes = if count == 1 { "1 argument".to_string() } else { format!("{count} arguments") };
    let diagnostic = argument_count(function, &takes, arguments.len(), expr);
    Err(match function.text.as_str() {
        name @ ("min" | "max") if arguments.len() > 2 => {
            diagnostic.hint(format!("write '{}'", nested_call(name, arguments)))
        }
        name @ ("min" | "max") => diagnostic.hint(format!("of the elements of a tensor, it is '{name}[k] x[k]'")),
        _ => diagnostic,
    })
}

fn used_before_definition(name: &str, used: Span, defined: Span) -> Diagnostic {
    Diagnostic::error("used-before-definition", format!("'{name}' is used before its definition"))
        .at(used)
        .label(defined, "defined here")
        .hint("move the definition up")
}

fn not_a_number(span: Span) -> Diagnostic {
    Diagnostic::error("not-a-number", "a condition is not a number")
        .at(span)
        .hint("use 'if … then 1 else 0' to count where it holds")
}
