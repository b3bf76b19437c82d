//! What to write instead of something wrong, written out for the very line.

use super::frame::Frame;
use super::{Resolver, Symbol};
use crate::syntax::ast::{BinaryOp, Binder, CompareOp, Definition, Expr, ExprKind, Name, ReduceItem, ReduceOp};
use crate::syntax::{foreign, print_definition, print_expr};
use gradix_int::Int;

impl Resolver {
    /// `y_i = x_i^2` with a tensor `x` is meant as `y[i] = x[i]^2`.
    pub(super) fn with_brackets(&self, definition: &Definition) -> Option<String> {
        let (mut meant, mut indices) = (definition.clone(), Vec::new());
        self.add_brackets(&mut meant.body, &mut indices);
        if indices.is_empty() {
            return None;
        }
        let mut bound = definition.indices.iter().map(|binder| binder.name.text.clone()).collect();
        reduced_indices(&definition.body, &mut bound);
        indices.retain(|index| !bound.contains(index) && !index.starts_with(|c: char| c.is_ascii_digit()));
        let own = definition
            .name
            .text
            .rsplit_once('_')
            .filter(|(base, _)| !base.is_empty() && !self.symbols.contains_key(*base));
        if let Some((base, _)) = own.filter(|(_, suffix)| foreign::indices_in(suffix) == indices) {
            meant.name.text = base.to_string();
        }
        meant.indices.extend(indices.into_iter().map(|text| Binder { name: Name { text, ..name("") }, range: None }));
        Some(print_definition(&meant))
    }

    fn add_brackets(&self, expr: &mut Expr, indices: &mut Vec<String>) {
        if let ExprKind::Name(text) = &expr.kind
            && let Some((tensor, subscripts)) = self.split_subscripts(text)
        {
            let new: Vec<_> = subscripts.iter().filter(|index| !indices.contains(index)).cloned().collect();
            indices.extend(new);
            let subscripts = subscripts.into_iter().map(|index| place(ExprKind::Name(index))).collect();
            expr.kind = ExprKind::Access { name: name(tensor), subscripts };
        }
        expr.parts_mut().into_iter().for_each(|part| self.add_brackets(part, indices));
    }

    /// The tensor and the indices in an unknown name such as `x_i` or `A_ij`.
    fn split_subscripts<'a>(&self, text: &'a str) -> Option<(&'a str, Vec<String>)> {
        let split = [text.rsplit_once('_'), text.split_once('_')].into_iter().flatten();
        let fits = |(tensor, suffix): (&'a str, &str)| {
            let Some(Symbol::Tensor(id)) = self.symbols.get(tensor) else { return None };
            let indices = foreign::indices_in(suffix);
            (indices.len() == self.program[*id].rank).then_some((tensor, indices))
        };
        let known = self.symbols.contains_key(text);
        split.filter(|_| !known).find_map(fits).filter(|(_, indices)| !indices.is_empty())
    }

    /// What the call of an unknown function is in this language.
    pub(super) fn instead_of_call(&self, function: &str, arguments: &[Expr], frame: &Frame) -> Option<String> {
        let shown: Vec<String> = arguments.iter().map(print_expr).collect();
        if let Some(own) = foreign::function(function) {
            return Some(format!("write '{own}({})'", shown.join(", ")));
        }
        if let (Some((op, indices)), [body]) = (foreign::reduction_with_indices(function), shown.as_slice()) {
            return Some(format!("the indices of a reduction stand in brackets: write '{op}[{indices}] ({body})'"));
        }
        let k = self.unused("k", frame);
        let i = frame.scope.first().map_or("i", |(index, _)| index);
        let run = |at: usize| running(&arguments[at], &k, i);
        Some(match (function, shown.as_slice()) {
            ("softmax", [_]) => {
                format!("write 'exp({0} - logsumexp[{k}] {1})' for element {2}", run(0).0, run(0).1, run(0).2)
            }
            ("log_softmax", [_]) => {
                format!("write '{0} - logsumexp[{k}] {1}' for element {2}", run(0).0, run(0).1, run(0).2)
            }
            ("logsumexp", [_]) => format!("write 'logsumexp[{k}] {}'", run(0).1),
            ("mean" | "average" | "avg", [_]) => format!("write 'mean[{k}] {}'", run(0).1),
            ("norm", [_]) => format!("write 'sqrt(sum[{k}] {}^2)'", run(0).1),
            ("dot", [_, _]) => format!("write 'sum[{k}] {} * {}'", run(0).1, run(1).1),
            ("matmul", [a, b]) => format!("write 'sum[{k}] {a}[i, {k}] * {b}[{k}, j]' for element i, j"),
            ("where" | "select" | "ifelse", [c, a, b]) => format!("write '(if {c} then {a} else {b})'"),
            ("square", [x]) => format!("write '({x})^2'"),
            ("rsqrt", [x]) => format!("write '1 / sqrt({x})'"),
            ("heaviside" | "step", [x, ..]) => format!("write '(if {x} > 0 then 1 else 0)'"),
            ("rand" | "random" | "randn" | "uniform" | "normal", _) => {
                "there are no random numbers in a program: declare an input for them, and give it values".into()
            }
            _ => return None,
        })
    }

    /// The name, or the next of `k_1`, `k_2`, … that is free.
    fn unused(&self, name: &str, frame: &Frame) -> String {
        let taken = |name: &String| self.symbols.contains_key(name) || frame.scope.iter().any(|(n, _)| n == name);
        let numbered = (1..).map(|number| format!("{name}_{number}"));
        std::iter::once(name.to_string()).chain(numbered).find(|name| !taken(name)).expect("some name is free")
    }

    /// Whether an expression reads a tensor.
    pub(super) fn reads(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Access { .. } => true,
            ExprKind::Name(name) => matches!(self.symbols.get(name), Some(Symbol::Tensor(_))),
            ExprKind::Negate(a) => self.reads(a),
            ExprKind::Binary { left, right, .. } => self.reads(left) || self.reads(right),
            _ => false,
        }
    }

    /// `x[idx[i], j]` by comparison: `sum[v] (if idx[i] == v then x[v, j] else 0)`.
    pub(super) fn by_comparison(&self, tensor: &str, subscripts: &[Expr], chosen: usize, frame: &Frame) -> String {
        let v = self.unused("v", frame);
        let index = || place(ExprKind::Name(v.clone()));
        let mut reached = subscripts.to_vec();
        reached[chosen] = index();
        let rest = vec![(CompareOp::Eq, index())];
        let condition = place(ExprKind::Compare { first: Box::new(subscripts[chosen].clone()), rest });
        let then = Box::new(place(ExprKind::Access { name: name(tensor), subscripts: reached }));
        let otherwise = Box::new(place(ExprKind::Integer(Int::ZERO)));
        let body = Box::new(place(ExprKind::If { condition: Box::new(condition), then, otherwise }));
        let items = vec![ReduceItem::Binder(Binder { name: name(&v), range: None })];
        print_expr(&place(ExprKind::Reduce { op: ReduceOp::Sum, items, body }))
    }
}

/// Of what a function of another language takes as a whole: its element, what is reduced over `k`, and the element's index.
/// They are `x[i]`, `x[k]` and `i` for `x` as for `x[i]`.
fn running(argument: &Expr, k: &str, i: &str) -> (String, String, String) {
    let shown = print_expr(argument);
    match &argument.kind {
        ExprKind::Access { name, subscripts } if !subscripts.is_empty() => {
            let (mut others, last) = (subscripts.clone(), subscripts.len() - 1);
            let index = print_expr(&std::mem::replace(&mut others[last], place(ExprKind::Name(k.to_string()))));
            (shown, print_expr(&place(ExprKind::Access { name: name.clone(), subscripts: others })), index)
        }
        ExprKind::Name(_) => (format!("{shown}[{i}]"), format!("{shown}[{k}]"), i.to_string()),
        _ => (format!("({shown})"), format!("({shown})"), i.to_string()),
    }
}

/// `max(a, b, c)` as calls with two arguments each.
pub(super) fn nested_call(function: &str, arguments: &[Expr]) -> String {
    match arguments {
        [last] => print_expr(last),
        [first, rest @ ..] => format!("{function}({}, {})", print_expr(first), nested_call(function, rest)),
        [] => String::new(),
    }
}

/// `0.5*i` in whole numbers: `i // 2`.
pub(super) fn whole_division(op: BinaryOp, left: &Expr, right: &Expr) -> Option<String> {
    let (factor, rest) = match (&left.kind, &right.kind) {
        (ExprKind::Real(factor), _) => (*factor, right),
        (_, ExprKind::Real(factor)) => (*factor, left),
        _ => return None,
    };
    let divisor = match op {
        BinaryOp::Multiply => (1.0 / factor).round(),
        BinaryOp::Divide if std::ptr::eq(rest, left) => factor,
        _ => return None,
    };
    let exact = op == BinaryOp::Divide || 1.0 / divisor == factor;
    let whole = divisor.fract() == 0.0 && (1.0..1e9).contains(&divisor);
    let shown = match &rest.kind {
        ExprKind::Binary { .. } => format!("({})", print_expr(rest)),
        _ => print_expr(rest),
    };
    (exact && whole).then(|| format!("{shown} // {divisor}"))
}

/// The indices that reductions in an expression bind.
fn reduced_indices(expr: &Expr, names: &mut Vec<String>) {
    if let ExprKind::Reduce { items, .. } = &expr.kind {
        names.extend(items.iter().filter_map(|item| match item {
            ReduceItem::Binder(binder) => Some(binder.name.text.clone()),
            ReduceItem::Condition(_) => None,
        }));
    }
    expr.clone().parts_mut().into_iter().for_each(|part| reduced_indices(part, names));
}

fn name(text: &str) -> Name {
    Name { text: text.to_string(), span: Default::default() }
}

fn place(kind: ExprKind) -> Expr {
    Expr { kind, span: Default::default() }
}
