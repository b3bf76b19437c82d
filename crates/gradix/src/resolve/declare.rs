//! Params, inputs and outputs.

use super::{Resolver, Symbol};
use crate::diagnostic::{Diagnostic, Span};
use crate::domain::system;
use crate::program::{Affine, Constraint, Param, ParamId, ParamKind, Relation, Tensor, TensorId, TensorKind};
use crate::syntax::ast::{
    Ast, CompareOp, Definition, Expr, ExprKind, InputDeclaration, Name, ParamDeclaration, ReduceItem, StatementKind,
};
use crate::syntax::foreign;
use gradix_int::Int;
use std::collections::HashSet;

impl Resolver {
    /// Declares everything but the definitions' own indices, and notes the names defined further down.
    pub(super) fn declare(&mut self, ast: &Ast) {
        for statement in &ast.statements {
            match &statement.kind {
                StatementKind::Param(params) => params.iter().for_each(|p| self.declare_param(p)),
                StatementKind::Input(inputs) => inputs.iter().for_each(|i| self.declare_input(i)),
                StatementKind::Definition(definition) => {
                    self.places.definition = self.places.definition.or(Some(definition.name.span));
                    let declared = Symbol::Declared(definition.name.span);
                    self.introduce(&definition.name, declared);
                }
                StatementKind::Output(_) => {}
            }
        }
        if system::is_empty(&self.program.size_context()) {
            let places = self.places.requirements.iter().flat_map(|(_, d)| d.labels.first().map(|l| l.span));
            let diagnostic = Diagnostic::error("no-sizes", "no sizes satisfy all of the declared bounds");
            let marked = places.max().map_or(diagnostic.clone(), |span| diagnostic.at(span));
            self.report(marked);
        }
        let unknown: Vec<String> = self.fixed.iter().map(|(n, _)| n.clone()).filter(|n| !self.is_size(n)).collect();
        for name in unknown {
            let free = self.program.params.iter().filter(|param| param.kind == ParamKind::Free);
            let sizes: Vec<&str> = free.map(|param| param.name.as_str()).collect();
            let diagnostic = Diagnostic::error("unknown-param", format!("the program has no param '{name}'"));
            self.report(match nearest(&name, sizes.iter().copied()) {
                Some(near) => diagnostic.hint(format!("did you mean '{near}'?")),
                None if sizes.is_empty() => diagnostic,
                None => diagnostic.hint(format!("there is {}", sizes.join(", "))),
            });
        }
    }

    fn is_size(&self, name: &str) -> bool {
        matches!(self.symbols.get(name), Some(Symbol::Param(_) | Symbol::Fixed(_)))
    }

    fn introduce(&mut self, name: &Name, symbol: Symbol) -> bool {
        if let Some(&first) = self.declared.get(&name.text) {
            let implied = matches!(symbol, Symbol::Param(_) | Symbol::Fixed(_)) && self.implied.contains(&name.text);
            let is_size = matches!(symbol, Symbol::Param(_) | Symbol::Fixed(_)) && self.is_size(&name.text);
            let (first_text, hint) = match implied {
                true => ("this extent declares it", "move the 'param' line up, before the first use of the size"),
                false if is_size => ("declared here first", "all bounds of a size stand together: 'param N >= 3 <= 8'"),
                false => ("declared here first", "choose another name"),
            };
            let message = format!("'{}' is declared twice", name.text);
            let diagnostic = Diagnostic::error("duplicate-name", message).at(name.span).label(first, first_text);
            self.report(diagnostic.hint(hint));
            self.broken.push(name.text.clone());
            return false;
        }
        self.declared.insert(name.text.clone(), name.span);
        self.symbols.insert(name.text.clone(), symbol);
        true
    }

    fn declare_param(&mut self, declaration: &ParamDeclaration) {
        let value = self.fixed_value(declaration);
        let fresh = match value {
            Some(value) if !self.is_given(&declaration.name) => self.introduce(&declaration.name, Symbol::Fixed(value)),
            _ => self.new_param(&declaration.name),
        };
        if !fresh {
            return;
        }
        let bounds: Vec<_> = declaration.bounds.iter().map(|(op, e)| (*op, e, self.size(e))).collect();
        let mut lowest = Some(Affine::constant(0));
        for (op, expr, bound) in bounds {
            let Some(bound) = bound else { continue };
            match op {
                CompareOp::Ge => {
                    lowest = None;
                    self.require(&declaration.name, |own| Constraint::at_most(bound, own), expr.span);
                }
                CompareOp::Le => self.require(&declaration.name, |own| Constraint::at_most(own, bound), expr.span),
                CompareOp::Eq => self.fix(&declaration.name, bound, expr.span),
                CompareOp::Lt | CompareOp::Gt | CompareOp::Ne => unreachable!("the parser takes >=, <= and = only"),
            }
        }
        if let Some(lowest) = lowest {
            self.require(&declaration.name, |own| Constraint::at_most(lowest, own), declaration.name.span);
        }
    }

    fn is_given(&self, name: &Name) -> bool {
        self.fixed.iter().any(|(n, _)| *n == name.text)
    }

    /// The number in `param K = 5`, if there is one.
    fn fixed_value(&mut self, declaration: &ParamDeclaration) -> Option<Int> {
        let mut equal = declaration.bounds.iter().filter(|(op, _)| *op == CompareOp::Eq).map(|(_, e)| e);
        equal.find_map(|expr| {
            let mut names = HashSet::new();
            collect_names(expr, &mut names);
            let own = names.contains(&declaration.name.text);
            if own { None } else { self.affine(expr, &[]).ok()?.as_constant().cloned() }
        })
    }

    /// Declares a size, with the value given from outside if there is one.
    fn new_param(&mut self, name: &Name) -> bool {
        let given = self.fixed.iter().find(|(n, _)| *n == name.text).map(|(_, v)| v.clone());
        match given {
            Some(value) => self.introduce(name, Symbol::Fixed(value)),
            None => {
                let id = ParamId(self.program.params.len() as u32);
                let fresh = self.introduce(name, Symbol::Param(id));
                if fresh {
                    self.program.params.push(Param { name: name.text.clone(), kind: ParamKind::Free });
                    let known = self.least.iter().filter(|(n, _)| *n == name.text);
                    self.program.facts.extend(known.map(|(_, least)| super::lower_bound(id, least)));
                }
                fresh
            }
        }
    }

    fn own(&self, name: &Name) -> Affine {
        match &self.symbols[&name.text] {
            Symbol::Param(id) => Affine::param(*id),
            Symbol::Fixed(value) => Affine::constant(value.clone()),
            Symbol::Tensor(_) | Symbol::Declared(_) => unreachable!("just declared as a size"),
        }
    }

    fn require(&mut self, name: &Name, bound: impl FnOnce(Affine) -> Constraint, span: Span) {
        let constraint = bound(self.own(name));
        let message = format!("'{}' is outside its declared bounds", name.text);
        let diagnostic = Diagnostic::error("size-bound", message).at(span);
        let is_negative = matches!(&self.symbols[&name.text], Symbol::Fixed(value) if *value < Int::ZERO);
        let hint = "a size is at least 0, unless 'param' gives it another bound";
        self.add_fact(constraint, if is_negative { diagnostic.hint(hint) } else { diagnostic });
    }

    /// Adds a fact about sizes, or reports it if it can't hold.
    pub(super) fn add_fact(&mut self, constraint: Constraint, diagnostic: Diagnostic) {
        match constraint.decided() {
            Some(true) => {}
            Some(false) => self.report(diagnostic),
            None => {
                for part in inequalities_if_single(constraint) {
                    if !self.program.facts.contains(&part) {
                        self.program.facts.push(part.clone());
                    }
                    self.places.requirements.push((part, diagnostic.clone()));
                }
            }
        }
    }

    /// `param K = 5`: one that is given from outside must agree.
    fn fix(&mut self, name: &Name, value: Affine, span: Span) {
        match (&self.symbols[&name.text], value.as_constant()) {
            (Symbol::Fixed(given), Some(number)) if given != number && self.is_given(name) => {
                let message = format!("'{}' is fixed to {number}, but {given} is given", name.text);
                self.report(Diagnostic::error("size-bound", message).at(span));
            }
            _ => self.require(name, |own| Constraint::equal(own, value), span),
        }
    }

    fn declare_input(&mut self, declaration: &InputDeclaration) {
        for extent in &declaration.extents {
            self.declare_sizes_in(extent);
        }
        let extents: Option<Vec<Affine>> = declaration.extents.iter().map(|e| self.size(e)).collect();
        let id = TensorId(self.program.tensors.len() as u32);
        let symbol = if extents.is_some() { Symbol::Tensor(id) } else { Symbol::Declared(declaration.name.span) };
        if !self.introduce(&declaration.name, symbol) {
            return;
        }
        match extents {
            Some(extents) => {
                let (name, rank) = (declaration.name.text.clone(), extents.len());
                self.program.tensors.push(Tensor { name, kind: TensorKind::Input, extents, rank });
            }
            None => self.broken.push(declaration.name.text.clone()),
        }
    }

    /// A name that first appears in an extent is a size.
    fn declare_sizes_in(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Name(text) if !self.symbols.contains_key(text) => {
                let name = Name { text: text.clone(), span: expr.span };
                if self.new_param(&name) {
                    self.implied.push(text.clone());
                    self.require(&name, |own| Constraint::at_most(Affine::constant(0), own), expr.span);
                }
            }
            ExprKind::Negate(inner) => self.declare_sizes_in(inner),
            ExprKind::Binary { left, right, .. } => {
                self.declare_sizes_in(left);
                self.declare_sizes_in(right);
            }
            ExprKind::Call { arguments, .. } => arguments.iter().for_each(|a| self.declare_sizes_in(a)),
            _ => {}
        }
    }

    /// An index expression in params only.
    fn size(&mut self, expr: &Expr) -> Option<Affine> {
        match self.affine(expr, &[]) {
            Ok(affine) => Some(affine),
            Err(diagnostic) => {
                self.report(diagnostic);
                None
            }
        }
    }

    /// The named results, or the definitions that no other definition uses.
    pub(super) fn choose_outputs(&mut self, ast: &Ast) {
        let mut named = Vec::new();
        let mut listed = false;
        for statement in &ast.statements {
            if let StatementKind::Output(names) = &statement.kind {
                listed = true;
                named.extend(names.iter().cloned());
            }
        }
        for name in named {
            match self.symbols.get(&name.text) {
                Some(Symbol::Tensor(id)) if self.program[*id].kind == TensorKind::Defined => {
                    let id = *id;
                    if !self.program.outputs.contains(&id) {
                        self.program.outputs.push(id);
                    }
                }
                Some(Symbol::Declared(_)) => {}
                Some(_) if self.broken.contains(&name.text) => {}
                Some(_) => {
                    let message = format!("'{}' is not defined by a definition, so it can't be a result", name.text);
                    let hint = "define another name by it, and make that the result";
                    self.report(Diagnostic::error("bad-output", message).at(name.span).hint(hint));
                }
                None => {
                    let diagnostic = self.unknown_result(&name, ast);
                    self.report(diagnostic);
                }
            }
        }
        if !listed {
            let mut used = HashSet::new();
            for definition in definitions(ast) {
                let mut names = HashSet::new();
                collect_names(&definition.body, &mut names);
                names.remove(&definition.name.text);
                used.extend(names);
            }
            let defined = self.program.definitions.iter().map(|d| d.tensor);
            let is_result =
                |t: &TensorId| self.program[*t].kind == TensorKind::Defined && !used.contains(&self.program[*t].name);
            self.program.outputs = defined.filter(is_result).collect();
            self.expect_result(ast);
        }
    }

    /// In a circle, every definition may be used by another.
    fn expect_result(&mut self, ast: &Ast) {
        let Some(last) = definitions(ast).last() else { return };
        if self.program.outputs.is_empty() && self.diagnostics.is_empty() {
            let hint = format!("name the results, as in 'output {}'", last.name.text);
            let message = "every definition is used by another one, so that none is a result";
            self.report(Diagnostic::error("bad-output", message).at(last.name.span).hint(hint));
        }
    }

    fn unknown_result(&self, name: &Name, ast: &Ast) -> Diagnostic {
        let message = format!("'{}' is not defined, so it can't be a result", name.text);
        let defined: Vec<&str> = definitions(ast).map(|definition| definition.name.text.as_str()).collect();
        let hint = match nearest(&name.text, defined.iter().copied()) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("define it, as in '{} = …'; defined are {}", name.text, defined.join(", ")),
        };
        Diagnostic::error("unknown-name", message).at(name.span).hint(hint)
    }

    /// A program is there for what it defines.
    pub(super) fn expect_definition(&mut self, ast: &Ast) {
        if definitions(ast).next().is_some() || !self.diagnostics.is_empty() {
            return;
        }
        let diagnostic = Diagnostic::error("no-definition", "the program defines nothing")
            .hint("write a definition, as in 'y[i] = 2 * x[i]'");
        let last = ast.statements.last().map(|statement| statement.span);
        self.report(last.map_or(diagnostic.clone(), |span| diagnostic.at(span)));
    }

    /// The error for a name that stands for nothing; `scope` holds the indices at hand.
    pub(super) fn unknown(&self, text: &str, span: Span, scope: &[(String, usize)]) -> Diagnostic {
        let diagnostic = Diagnostic::error("unknown-name", format!("unknown name '{text}'")).at(span);
        if let Some((_, bound)) = self.reduced.iter().find(|(name, _)| name == text) {
            let hint = "a reduction ends before '+' and '-': put what it is to contain in parentheses";
            return diagnostic.label(*bound, "bound here").hint(hint);
        }
        if foreign::is_reduction(text) {
            return diagnostic.hint(format!("write '{text}[k] …' with the indices that it runs over"));
        }
        let known = scope.iter().map(|(n, _)| n.as_str()).chain(self.symbols.keys().map(String::as_str));
        match nearest(text, known) {
            Some(near) => diagnostic.hint(format!("did you mean '{near}'?")),
            None => diagnostic.hint("declare it with 'param' or 'input', or bind it as an index"),
        }
    }
}

pub(super) fn definitions(ast: &Ast) -> impl Iterator<Item = &Definition> {
    ast.statements.iter().filter_map(|statement| match &statement.kind {
        StatementKind::Definition(definition) => Some(definition),
        StatementKind::Param(_) | StatementKind::Input(_) | StatementKind::Output(_) => None,
    })
}

/// A fact that determines one size is kept as two bounds: it is still a size, not a number.
fn inequalities_if_single(fact: Constraint) -> Vec<Constraint> {
    if fact.relation == Relation::NonNegative || fact.affine.terms().len() != 1 {
        return vec![fact];
    }
    let opposite = Constraint::non_negative(-fact.affine.clone());
    vec![Constraint::non_negative(fact.affine), opposite]
}

/// The names that an expression mentions.
pub(super) fn collect_names(expr: &Expr, names: &mut HashSet<String>) {
    let mut each = |parts: &[Expr]| parts.iter().for_each(|p| collect_names(p, names));
    match &expr.kind {
        ExprKind::Integer(_) | ExprKind::Real(_) | ExprKind::Pi | ExprKind::Inf => {}
        ExprKind::Name(name) => drop(names.insert(name.clone())),
        ExprKind::Access { name, .. } => drop(names.insert(name.text.clone())),
        ExprKind::Call { arguments, .. } => each(arguments),
        ExprKind::Negate(a) | ExprKind::Not(a) => collect_names(a, names),
        ExprKind::Binary { left, right, .. } => {
            collect_names(left, names);
            collect_names(right, names);
        }
        ExprKind::Compare { first, rest } => {
            collect_names(first, names);
            rest.iter().for_each(|(_, side)| collect_names(side, names));
        }
        ExprKind::If { condition, then, otherwise } => {
            [condition, then, otherwise].into_iter().for_each(|part| collect_names(part, names));
        }
        ExprKind::Reduce { items, body, .. } => {
            for item in items {
                if let ReduceItem::Condition(condition) = item {
                    collect_names(condition, names);
                }
            }
            collect_names(body, names);
        }
    }
}

/// The known name that is most like `text`, if one is like it.
pub(super) fn nearest<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.map(|name| (strsim::damerau_levenshtein(text, name), name));
    let (distance, name) = scored.min()?;
    let length = text.chars().count();
    let allowed = if length == 1 { 0 } else { (length / 3).max(1) };
    (distance <= allowed || name.to_lowercase() == text.to_lowercase()).then_some(name)
}
