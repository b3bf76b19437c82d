//! Expressions in the form a person would write: constants folded, identities gone, factors and terms gathered.
//!
//! Every constructor returns an expression of the same value (up to rounding) whose operands are already in
//! this form, so that building the same thing twice gives the same id. A product is
//! `coefficient * factor * … / divisor`, a sum is a list of terms with coefficients.

use crate::program::affine::MAX_COEFFICIENT;
use crate::program::expr::Rules;
use crate::program::{Affine, BinaryOp, Comparison, Cond, CondId, Constraint, Expr, ExprId, Exprs, UnaryOp};
use gradix_int::Int;

/// The rules of this module, for rewriting whole expressions.
pub struct Build;

impl Rules for Build {
    fn index(&mut self, exprs: &mut Exprs, affine: Affine) -> ExprId {
        index(exprs, affine)
    }
    fn unary(&mut self, exprs: &mut Exprs, op: UnaryOp, a: ExprId) -> ExprId {
        unary(exprs, op, a)
    }
    fn binary(&mut self, exprs: &mut Exprs, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        binary(exprs, op, a, b)
    }
    fn compare(&mut self, exprs: &mut Exprs, op: Comparison, a: ExprId, b: ExprId) -> CondId {
        compare(exprs, op, a, b)
    }
    fn select(&mut self, exprs: &mut Exprs, c: CondId, a: ExprId, b: ExprId) -> ExprId {
        select(exprs, c, a, b)
    }
}

/// Replaces indices and builds what comes of it: position `p` becomes `map[p]`.
pub struct Placed<'a> {
    /// What becomes of each.
    pub map: &'a [Affine],
    /// Whether what is multiplied by 0 is 0, and not infinite or NaN: a distance between indices is a factor of something finite.
    pub zero: bool,
}

impl Rules for Placed<'_> {
    fn affine(&mut self, affine: &Affine) -> Affine {
        affine.with_indices(self.map)
    }
    fn index(&mut self, exprs: &mut Exprs, affine: Affine) -> ExprId {
        Build.index(exprs, affine)
    }
    fn unary(&mut self, exprs: &mut Exprs, op: UnaryOp, a: ExprId) -> ExprId {
        Build.unary(exprs, op, a)
    }
    fn binary(&mut self, exprs: &mut Exprs, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        let is_zero = |factor: &ExprId| exprs.as_constant(*factor) == Some(0.0);
        match self.zero && op == BinaryOp::Mul && [a, b].iter().any(is_zero) {
            true => exprs.constant(0.0),
            false => Build.binary(exprs, op, a, b),
        }
    }
    fn compare(&mut self, exprs: &mut Exprs, op: Comparison, a: ExprId, b: ExprId) -> CondId {
        Build.compare(exprs, op, a, b)
    }
    fn select(&mut self, exprs: &mut Exprs, c: CondId, a: ExprId, b: ExprId) -> ExprId {
        Build.select(exprs, c, a, b)
    }
}

/// The number of an index expression.
pub fn index(exprs: &mut Exprs, affine: Affine) -> ExprId {
    match affine.as_constant() {
        Some(number) => {
            let number = number.to_f64().value();
            exprs.constant(number)
        }
        None => exprs.add(Expr::Index(affine)),
    }
}

/// An operation on one value.
pub fn unary(exprs: &mut Exprs, op: UnaryOp, a: ExprId) -> ExprId {
    if op == UnaryOp::Neg {
        return negate(exprs, a);
    }
    let depends_on_nothing = matches!(exprs[a], Expr::Constant(_) | Expr::Index(_) | Expr::Unary(UnaryOp::Stop, _));
    if op == UnaryOp::Stop && depends_on_nothing {
        return a;
    }
    if let Some(value) = exprs.as_constant(a).map(|x| op.apply(x)).filter(|v| v.fract() == 0.0 && v.is_finite()) {
        return exprs.constant(value);
    }
    // The sign of a zero makes no difference here.
    if let (UnaryOp::Exp, Expr::Unary(UnaryOp::Neg, inner)) = (op, &exprs[a])
        && let Expr::Binary(BinaryOp::Sub, left, right) = exprs[*inner]
    {
        let turned = exprs.add(Expr::Binary(BinaryOp::Sub, right, left));
        return exprs.add(Expr::Unary(op, turned));
    }
    exprs.add(Expr::Unary(op, a))
}

/// An operation on two values.
pub fn binary(exprs: &mut Exprs, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
    match op {
        BinaryOp::Add => add(exprs, a, b),
        BinaryOp::Sub => subtract(exprs, a, b),
        BinaryOp::Mul => multiply(exprs, a, b),
        BinaryOp::Div => divide(exprs, a, b),
        BinaryOp::Pow => power(exprs, a, b),
        BinaryOp::Min | BinaryOp::Max if a == b => a,
        BinaryOp::Min | BinaryOp::Max if exprs.as_constant(a).is_some() && exprs.as_constant(b).is_some() => {
            let (x, y) = (exprs.as_constant(a).unwrap_or(0.0), exprs.as_constant(b).unwrap_or(0.0));
            exprs.constant(op.apply(x, y))
        }
        BinaryOp::Min | BinaryOp::Max | BinaryOp::Atan2 | BinaryOp::Hypot => exprs.add(Expr::Binary(op, a, b)),
    }
}

/// `-a`
pub fn negate(exprs: &mut Exprs, a: ExprId) -> ExprId {
    if let Some(number) = exprs.as_constant(a) {
        return exprs.constant(0.0 - number);
    }
    let minus_one = exprs.constant(-1.0);
    multiply(exprs, minus_one, a)
}

/// `a * b`; `(if c then a else 0) * b` is `if c then a * b else 0`.
pub fn multiply(exprs: &mut Exprs, a: ExprId, b: ExprId) -> ExprId {
    if let Some((c, inner, zero)) = as_mask(exprs, a) {
        let product = multiply(exprs, inner, b);
        return select(exprs, c, product, zero);
    }
    if let Some((c, inner, zero)) = as_mask(exprs, b) {
        let product = multiply(exprs, a, inner);
        return select(exprs, c, product, zero);
    }
    Product::of(exprs, a).times(&Product::of(exprs, b)).build(exprs)
}

/// `a / b`
pub fn divide(exprs: &mut Exprs, a: ExprId, b: ExprId) -> ExprId {
    if let Some((c, inner, zero)) = as_mask(exprs, a) {
        let quotient = divide(exprs, inner, b);
        return select(exprs, c, quotient, zero);
    }
    Product::of(exprs, a).times(&Product::of(exprs, b).inverted()).build(exprs)
}

/// `if c then a else 0`
fn as_mask(exprs: &Exprs, id: ExprId) -> Option<(CondId, ExprId, ExprId)> {
    match exprs[id] {
        Expr::Select(c, a, b) if exprs.as_constant(b) == Some(0.0) => Some((c, a, b)),
        _ => None,
    }
}

/// `factor * a`
pub fn scale(exprs: &mut Exprs, factor: f64, a: ExprId) -> ExprId {
    let factor = exprs.constant(factor);
    multiply(exprs, factor, a)
}

/// `a + b`
pub fn add(exprs: &mut Exprs, a: ExprId, b: ExprId) -> ExprId {
    let mut sum = Sum::default();
    sum.collect(exprs, 1.0, a);
    sum.collect(exprs, 1.0, b);
    sum.build(exprs)
}

/// `a - b`
pub fn subtract(exprs: &mut Exprs, a: ExprId, b: ExprId) -> ExprId {
    let mut sum = Sum::default();
    sum.collect(exprs, 1.0, a);
    sum.collect(exprs, -1.0, b);
    sum.build(exprs)
}

/// The sum of many.
pub fn total(exprs: &mut Exprs, terms: &[ExprId]) -> ExprId {
    let mut sum = Sum::default();
    terms.iter().for_each(|t| sum.collect(exprs, 1.0, *t));
    sum.build(exprs)
}

/// `a ^ b`
pub fn power(exprs: &mut Exprs, a: ExprId, b: ExprId) -> ExprId {
    let Some(exponent) = exprs.as_constant(b) else { return exprs.add(Expr::Binary(BinaryOp::Pow, a, b)) };
    if exponent == 1.0 {
        return a;
    }
    if exponent == 0.0 {
        return exprs.constant(1.0);
    }
    if let Some(base) = exprs.as_constant(a) {
        let value = libm::pow(base, exponent);
        if value.fract() == 0.0 && value.abs() < 1e15 {
            return exprs.constant(value);
        }
    }
    if let Expr::Binary(BinaryOp::Pow, base, inner) = exprs[a]
        && let Some(inner) =
            exprs.as_constant(inner).filter(|n| is_whole(*n) && is_whole(exponent) && *n > 0.0 && exponent > 0.0)
    {
        let exponent = exprs.constant(inner * exponent);
        return exprs.add(Expr::Binary(BinaryOp::Pow, base, exponent));
    }
    let exponent = exprs.constant(exponent);
    exprs.add(Expr::Binary(BinaryOp::Pow, a, exponent))
}

/// `a ^ n`
pub fn whole_power(exprs: &mut Exprs, a: ExprId, n: f64) -> ExprId {
    let n = exprs.constant(n);
    power(exprs, a, n)
}

/// `if c then a else b`
pub fn select(exprs: &mut Exprs, c: CondId, a: ExprId, b: ExprId) -> ExprId {
    if let Some(decided) = decided(exprs, c) {
        return if decided { a } else { b };
    }
    if a == b {
        return a;
    }
    if let Cond::Not(c) = exprs[c]
        && exprs.as_constant(b) != Some(0.0)
    {
        return select(exprs, c, b, a);
    }
    let a = match exprs[a] {
        Expr::Select(inner, then, _) if inner == c => then,
        Expr::Select(inner, then, otherwise) if otherwise == b && exprs.as_constant(b) == Some(0.0) => {
            let both = exprs.add_condition(Cond::And(c, inner));
            return select(exprs, both, then, b);
        }
        _ => a,
    };
    let b = match exprs[b] {
        Expr::Select(inner, _, otherwise) if inner == c => otherwise,
        _ => b,
    };
    if let Some((common, a, b)) = common_factors(exprs, a, b) {
        let choice = select(exprs, c, a, b);
        return multiply(exprs, common, choice);
    }
    exprs.add(Expr::Select(c, a, b))
}

/// `k * a` and `k * b` as `k`, `a` and `b`, where none of them is a number but `k`.
fn common_factors(exprs: &mut Exprs, a: ExprId, b: ExprId) -> Option<(ExprId, ExprId, ExprId)> {
    let is_mask = |id| as_mask(exprs, id).is_some() || exprs.as_constant(id).is_some();
    if is_mask(a) || is_mask(b) {
        return None;
    }
    let products = [Product::of(exprs, a), Product::of(exprs, b)];
    let common = Product::common(&products)?;
    let [a, b] = products.map(|product| product.divided(&common).build(exprs));
    let numbers = [a, b].iter().any(|id| exprs.as_constant(*id).is_some());
    let common = common.build(exprs);
    (!numbers).then_some((common, a, b))
}

/// A sum whose terms have factors or divisors in common as a product: `2*a*b - 2*a*c^2` is `2*a * (b - c^2)`.
pub fn factored(exprs: &mut Exprs, id: ExprId) -> ExprId {
    let mut sum = Sum::default();
    sum.collect(exprs, 1.0, id);
    let terms: Option<Vec<(ExprId, f64)>> = sum.terms.iter().map(|(term, factor)| Some(((*term)?, *factor))).collect();
    let terms = terms.filter(|terms| terms.len() >= 2 && sum.masks.is_empty() && sum.affine_at.is_none());
    let Some(terms) = terms else { return id };
    let product = |&(term, factor): &(ExprId, f64)| {
        let product = Product::of(exprs, term);
        Product { coefficient: product.coefficient * factor, ..product }
    };
    let products: Vec<Product> = terms.iter().map(product).collect();
    let Some(common) = Product::common(&products).filter(|common| !common.is_number()) else { return id };
    let rests: Vec<ExprId> = products.into_iter().map(|product| product.divided(&common).build(exprs)).collect();
    let rest = total(exprs, &rests);
    common.times(&Product::of(exprs, rest)).build(exprs)
}

/// The opposite condition, with `not` only in front of comparisons of values and equations of indices.
pub fn opposite(exprs: &mut Exprs, id: CondId) -> CondId {
    let negated = match exprs[id].clone() {
        Cond::Index(constraint) => match constraint.negated().as_slice() {
            [single] => Cond::Index(single.clone()),
            _ => Cond::Not(id),
        },
        Cond::Compare(..) => Cond::Not(id),
        Cond::Not(a) => return a,
        Cond::And(a, b) => Cond::Or(opposite(exprs, a), opposite(exprs, b)),
        Cond::Or(a, b) => Cond::And(opposite(exprs, a), opposite(exprs, b)),
    };
    exprs.add_condition(negated)
}

/// Whether one condition says the opposite of another, in whatever order of its parts.
fn is_opposite(exprs: &mut Exprs, a: CondId, b: CondId) -> bool {
    let turned = opposite(exprs, b);
    if turned == a {
        return true;
    }
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let joined_alike = match (&exprs[a], &exprs[turned]) {
        (Cond::And(..), Cond::And(..)) => parts(exprs, true, a, &mut first) && parts(exprs, true, turned, &mut second),
        (Cond::Or(..), Cond::Or(..)) => parts(exprs, false, a, &mut first) && parts(exprs, false, turned, &mut second),
        _ => false,
    };
    first.sort();
    second.sort();
    joined_alike && first == second
}

/// The parts of an `and` (or else an `or`). Says whether they are all about indices.
fn parts(exprs: &Exprs, of_and: bool, id: CondId, found: &mut Vec<CondId>) -> bool {
    match exprs[id] {
        Cond::And(a, b) if of_and => parts(exprs, of_and, a, found) && parts(exprs, of_and, b, found),
        Cond::Or(a, b) if !of_and => parts(exprs, of_and, a, found) && parts(exprs, of_and, b, found),
        Cond::Compare(..) => false,
        _ => {
            found.push(id);
            true
        }
    }
}

/// Whether a condition has the same outcome everywhere.
pub fn decided(exprs: &Exprs, id: CondId) -> Option<bool> {
    match &exprs[id] {
        Cond::Index(constraint) => constraint.decided(),
        Cond::Compare(op, a, b) => {
            let (a, b) = (exprs.as_constant(*a)?, exprs.as_constant(*b)?);
            Some(op.apply(a, b))
        }
        Cond::Not(a) => decided(exprs, *a).map(|d| !d),
        Cond::And(a, b) => match (decided(exprs, *a), decided(exprs, *b)) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        },
        Cond::Or(a, b) => match (decided(exprs, *a), decided(exprs, *b)) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        },
    }
}

/// A comparison of values; of index expressions, it is decided by the indices.
pub fn compare(exprs: &mut Exprs, op: Comparison, a: ExprId, b: ExprId) -> CondId {
    if let (Some(left), Some(right)) = (as_affine(exprs, a), as_affine(exprs, b)) {
        let constraint = match op {
            Comparison::Lt => Constraint::at_most(left.shift(1), right),
            Comparison::Le => Constraint::at_most(left, right),
            Comparison::Eq => Constraint::equal(left, right),
        };
        return exprs.add_condition(Cond::Index(constraint));
    }
    // A number stands on the right of an equation.
    let (a, b) = if op == Comparison::Eq && exprs.as_constant(a).is_some() { (b, a) } else { (a, b) };
    exprs.add_condition(Cond::Compare(op, a, b))
}

fn as_affine(exprs: &Exprs, id: ExprId) -> Option<Affine> {
    match &exprs[id] {
        Expr::Index(affine) => Some(affine.clone()),
        Expr::Constant(number) => whole(number.value()).map(Affine::constant),
        _ => None,
    }
}

/// `a == b`
pub fn equal(exprs: &mut Exprs, a: ExprId, b: ExprId) -> CondId {
    compare(exprs, Comparison::Eq, a, b)
}

/// `a < b`
pub fn less(exprs: &mut Exprs, a: ExprId, b: ExprId) -> CondId {
    compare(exprs, Comparison::Lt, a, b)
}

/// A number that can stand in an index expression.
fn whole(x: f64) -> Option<Int> {
    (is_whole(x) && x.abs() <= MAX_COEFFICIENT as f64).then(|| Int::from(x as i64))
}

fn is_whole(x: f64) -> bool {
    x.fract() == 0.0 && x.abs() < 1e15
}

/// `coefficient / divisor * factors… / divisors…`; a factor is a base and a whole positive exponent.
#[derive(Clone, Debug)]
pub struct Product {
    coefficient: f64,
    divisor: f64,
    factors: Vec<(ExprId, f64)>,
    divisors: Vec<(ExprId, f64)>,
}

impl Product {
    /// The empty product.
    pub fn one() -> Self {
        Product { coefficient: 1.0, divisor: 1.0, factors: Vec::new(), divisors: Vec::new() }
    }

    /// An expression taken apart.
    pub fn of(exprs: &Exprs, id: ExprId) -> Self {
        let one = Product::one();
        match &exprs[id] {
            Expr::Constant(number) if number.value().is_finite() => Product { coefficient: number.value(), ..one },
            Expr::Unary(UnaryOp::Neg, a) => {
                let product = Product::of(exprs, *a);
                Product { coefficient: -product.coefficient, ..product }
            }
            Expr::Binary(BinaryOp::Mul, a, b) => Product::of(exprs, *a).times(&Product::of(exprs, *b)),
            Expr::Binary(BinaryOp::Div, a, b) => Product::of(exprs, *a).times(&Product::of(exprs, *b).inverted()),
            Expr::Binary(BinaryOp::Pow, base, n) => match exprs.as_constant(*n) {
                Some(n) if is_whole(n) && n >= 2.0 => Product { factors: vec![(*base, n)], ..one },
                _ => Product { factors: vec![(id, 1.0)], ..one },
            },
            _ => Product { factors: vec![(id, 1.0)], ..one },
        }
    }

    /// What all of them have: factors, divisors, and a number if it is the same up to its sign. `None` if there is nothing.
    fn common(products: &[Product]) -> Option<Product> {
        let (first, rest) = products.split_first()?;
        let shared = |list: &[(ExprId, f64)], of: &dyn Fn(&Product) -> Vec<(ExprId, f64)>| -> Vec<(ExprId, f64)> {
            let power = |product: &Product, base| of(product).iter().find(|(b, _)| *b == base).map_or(0.0, |(_, n)| *n);
            let least = |base, n: f64| rest.iter().fold(n, |n, product| n.min(power(product, base)));
            list.iter().map(|&(base, n)| (base, least(base, n))).filter(|(_, n)| *n > 0.0).collect()
        };
        let factors = shared(&first.factors, &|product| product.factors.clone());
        let divisors = shared(&first.divisors, &|product| product.divisors.clone());
        let same = |p: &Product| p.coefficient.abs() == first.coefficient.abs() && p.divisor == first.divisor;
        let number = first.coefficient.is_finite() && first.coefficient != 0.0 && rest.iter().all(same);
        let (coefficient, divisor) = if number { (first.coefficient.abs(), first.divisor) } else { (1.0, 1.0) };
        let nothing = factors.is_empty() && divisors.is_empty() && coefficient == 1.0 && divisor == 1.0;
        (!nothing).then_some(Product { coefficient, divisor, factors, divisors })
    }

    fn is_number(&self) -> bool {
        self.factors.is_empty() && self.divisors.is_empty()
    }

    /// Without what another product has, which this one has, too.
    fn divided(mut self, common: &Product) -> Self {
        for (list, taken) in [(&mut self.factors, &common.factors), (&mut self.divisors, &common.divisors)] {
            for (base, exponent) in taken {
                list.iter_mut().filter(|(b, _)| b == base).for_each(|(_, n)| *n -= exponent);
            }
            list.retain(|(_, exponent)| *exponent > 0.0);
        }
        if common.coefficient != 1.0 || common.divisor != 1.0 {
            (self.coefficient, self.divisor) = (self.coefficient.signum(), 1.0);
        }
        self
    }

    /// Whether the number in front is 0.
    pub fn is_zero(&self) -> bool {
        self.coefficient == 0.0
    }

    /// The factors, and (with `true`) the divisors.
    pub fn parts(&self) -> impl Iterator<Item = (ExprId, bool)> + '_ {
        let factors = self.factors.iter().map(|(base, _)| (*base, false));
        factors.chain(self.divisors.iter().map(|(base, _)| (*base, true)))
    }

    /// The product of both.
    pub fn times(mut self, other: &Product) -> Self {
        self.coefficient = short(self.coefficient * other.coefficient);
        self.divisor = short(self.divisor * other.divisor);
        for (list, more) in [(&mut self.factors, &other.factors), (&mut self.divisors, &other.divisors)] {
            for (base, exponent) in more {
                match list.iter_mut().find(|(b, _)| b == base) {
                    Some((_, known)) => *known += exponent,
                    None => list.push((*base, *exponent)),
                }
            }
        }
        self
    }

    /// Whether a factor stands there once.
    pub fn is_simple(&self, factor: ExprId) -> bool {
        self.factors.iter().any(|(base, exponent)| *base == factor && *exponent == 1.0)
    }

    /// The product without one factor or (with `true`) divisor of this kind.
    pub fn without(mut self, part: ExprId, divides: bool) -> Self {
        let list = if divides { &mut self.divisors } else { &mut self.factors };
        list.iter_mut().filter(|(base, _)| *base == part).for_each(|(_, exponent)| *exponent -= 1.0);
        list.retain(|(_, exponent)| *exponent > 0.0);
        self
    }

    fn inverted(self) -> Self {
        if self.coefficient == 0.0 {
            // Dividing by 0 is multiplying by infinity.
            let Product { divisors, factors, .. } = self;
            return Product { coefficient: f64::INFINITY, divisor: 1.0, factors: divisors, divisors: factors };
        }
        Product { coefficient: self.divisor, divisor: self.coefficient, factors: self.divisors, divisors: self.factors }
    }

    /// The part that satisfies a test, and the rest; numbers go with the rest. The test gets a factor or
    /// (with `true`) a divisor.
    pub fn split(self, mut test: impl FnMut(ExprId, bool) -> bool) -> (Product, Product) {
        let (factors, other_factors) = self.factors.into_iter().partition(|(base, _)| test(*base, false));
        let (divisors, other_divisors) = self.divisors.into_iter().partition(|(base, _)| test(*base, true));
        let passed = Product { coefficient: 1.0, divisor: 1.0, factors, divisors };
        let rest = Product {
            factors: other_factors,
            divisors: other_divisors,
            coefficient: self.coefficient,
            divisor: self.divisor,
        };
        (passed, rest)
    }

    /// `x^0.5 / (x^1.5)^2` becomes `1 / x^2.5`: powers of one base as one, if its exponent is no whole number, so that it is
    /// of positive numbers only as before.
    fn gather_powers(&mut self, exprs: &mut Exprs) {
        let bases: Vec<ExprId> = self.parts().filter_map(|(id, _)| Some(broken_power(exprs, id)?.0)).collect();
        for base in bases {
            let exponent = |&(id, n): &(ExprId, f64)| match broken_power(exprs, id) {
                Some((own, exponent)) if own == base => Some(n * exponent),
                _ => (id == base).then_some(n),
            };
            let above: Vec<f64> = self.factors.iter().filter_map(exponent).collect();
            let below: Vec<f64> = self.divisors.iter().filter_map(exponent).collect();
            let whole = short(above.iter().sum::<f64>() - below.iter().sum::<f64>());
            let is_one_power =
                |(id, n): &(ExprId, f64)| *n == 1.0 && broken_power(exprs, *id).is_some_and(|p| p.0 == base);
            let single = above.len() + below.len() == 1 && self.factors.iter().chain(&self.divisors).any(is_one_power);
            if single || is_whole(whole) {
                continue;
            }
            let kept = |list: &[(ExprId, f64)]| list.iter().filter(|part| exponent(part).is_none()).copied().collect();
            (self.factors, self.divisors) = (kept(&self.factors), kept(&self.divisors));
            let exponent = exprs.constant(whole.abs());
            let power = power(exprs, base, exponent);
            if whole > 0.0 { &mut self.factors } else { &mut self.divisors }.push((power, 1.0));
        }
    }

    /// Back to an expression.
    pub fn build(mut self, exprs: &mut Exprs) -> ExprId {
        if self.coefficient == 0.0 {
            // There is no negative zero in the language.
            self.coefficient = 0.0;
        }
        if self.divisor < 0.0 {
            (self.coefficient, self.divisor) = (-self.coefficient, -self.divisor);
        }
        let quotient = self.coefficient / self.divisor;
        if self.divisor != 1.0 && (is_whole(quotient) || is_power_of_two(self.divisor)) {
            (self.coefficient, self.divisor) = (quotient, 1.0);
        }
        self.gather_powers(exprs);
        let numerator = build_factors(exprs, self.coefficient, &self.factors);
        if self.divisor == 1.0 && self.divisors.is_empty() {
            return numerator;
        }
        let denominator = build_factors(exprs, self.divisor, &self.divisors);
        exprs.add(Expr::Binary(BinaryOp::Div, numerator, denominator))
    }
}

/// The decimal that rounding hides, if there is one: `0.68` for the sum `1 - 0.32` and `0.01` for the product `0.1 * 0.1`.
fn short(x: f64) -> f64 {
    if is_whole(x) || !x.is_finite() {
        return x;
    }
    let near: f64 = format!("{x:.12e}").parse().unwrap_or(x);
    if (near - x).abs() <= 2.0 * f64::EPSILON * x.abs() { near } else { x }
}

/// The base and the exponent of a power with a number as exponent that is not whole.
fn broken_power(exprs: &Exprs, id: ExprId) -> Option<(ExprId, f64)> {
    let Expr::Binary(BinaryOp::Pow, base, exponent) = exprs[id] else { return None };
    Some((base, exprs.as_constant(exponent).filter(|n| n.is_finite() && !is_whole(*n))?))
}

fn is_power_of_two(x: f64) -> bool {
    x.to_bits() & ((1 << 52) - 1) == 0 && x.is_normal()
}

fn build_factors(exprs: &mut Exprs, coefficient: f64, factors: &[(ExprId, f64)]) -> ExprId {
    let mut parts: Vec<ExprId> = factors.iter().map(|&(base, n)| whole_power(exprs, base, n)).collect();
    if parts.is_empty() {
        return exprs.constant(coefficient);
    }
    // An index expression takes a whole coefficient in, as the parser would read it.
    let scaled = match &exprs[parts[0]] {
        Expr::Index(affine) if coefficient != 1.0 => whole(coefficient).map(|factor| affine.scale(&factor)),
        _ => None,
    };
    if let Some(affine) = scaled.filter(Affine::can_be_written) {
        parts[0] = index(exprs, affine);
    } else if coefficient == -1.0 {
        parts[0] = exprs.add(Expr::Unary(UnaryOp::Neg, parts[0]));
    } else if coefficient != 1.0 {
        let number = exprs.constant(coefficient);
        parts.insert(0, number);
    }
    let (first, rest) = parts.split_first().expect("at least one part");
    rest.iter().fold(*first, |product, &part| exprs.add(Expr::Binary(BinaryOp::Mul, product, part)))
}

/// `-a + b` is `b - a`.
fn lead_with_positive(terms: &mut [(Option<ExprId>, f64)]) {
    let first = terms.iter().position(|(_, coefficient)| *coefficient != 0.0);
    let positive = terms.iter().position(|(_, coefficient)| *coefficient > 0.0);
    if let (Some(first), Some(positive)) = (first, positive)
        && first < positive
    {
        terms[first..=positive].rotate_right(1);
    }
}

/// Terms with coefficients, in order of first appearance; `None` stands for the constant.
#[derive(Default)]
struct Sum {
    terms: Vec<(Option<ExprId>, f64)>,
    /// The index expressions among the terms, as one.
    affine: Affine,
    affine_at: Option<usize>,
    /// `if c then a else 0` and `if not c then b else 0`, the latter as `b`.
    masks: Vec<(CondId, Option<ExprId>, Option<ExprId>)>,
}

impl Sum {
    fn collect(&mut self, exprs: &mut Exprs, factor: f64, id: ExprId) {
        match exprs[id].clone() {
            Expr::Binary(BinaryOp::Add, a, b) => {
                self.collect(exprs, factor, a);
                self.collect(exprs, factor, b);
            }
            Expr::Binary(BinaryOp::Sub, a, b) => {
                self.collect(exprs, factor, a);
                self.collect(exprs, -factor, b);
            }
            Expr::Index(affine) if self.with_affine(factor, &affine).is_some() => {
                self.affine = self.with_affine(factor, &affine).expect("just found");
                self.affine_at.get_or_insert(self.terms.len());
                if self.affine_at == Some(self.terms.len()) {
                    self.terms.push((None, 0.0));
                }
            }
            Expr::Constant(number) if number.value().is_finite() => self.term(None, factor * number.value()),
            Expr::Select(c, a, b) if exprs.as_constant(b) == Some(0.0) => {
                let part = scale(exprs, factor, a);
                self.mask(exprs, c, part);
            }
            _ => {
                let product = Product::of(exprs, id);
                let coefficient = product.coefficient;
                if coefficient == 1.0 || coefficient == 0.0 || !coefficient.is_finite() {
                    return self.term(Some(id), factor);
                }
                let rest = Product { coefficient: 1.0, ..product }.build(exprs);
                self.term(Some(rest), factor * coefficient);
            }
        }
    }

    /// The sum of index expressions so far and a multiple of another, if that can be written as one.
    fn with_affine(&self, factor: f64, affine: &Affine) -> Option<Affine> {
        Some(self.affine.add_scaled(&whole(factor)?, affine)).filter(Affine::can_be_written)
    }

    /// Joins what is chosen by the same condition or its opposite.
    fn mask(&mut self, exprs: &mut Exprs, c: CondId, part: ExprId) {
        let same = self.masks.iter().position(|(known, ..)| *known == c);
        let place = same.or_else(|| self.masks.iter().position(|(known, ..)| is_opposite(exprs, *known, c)));
        let place = place.unwrap_or_else(|| {
            self.masks.push((c, None, None));
            self.masks.len() - 1
        });
        let (known, a, b) = &mut self.masks[place];
        let slot = if *known == c { a } else { b };
        *slot = Some(match *slot {
            Some(sum) => add(exprs, sum, part),
            None => part,
        });
    }

    fn term(&mut self, id: Option<ExprId>, coefficient: f64) {
        let affine_at = self.affine_at;
        let known = self.terms.iter_mut().enumerate().find(|(i, (t, _))| *t == id && Some(*i) != affine_at);
        match known {
            Some((_, (_, known))) => *known = short(*known + coefficient),
            None => self.terms.push((id, coefficient)),
        }
    }

    fn build(mut self, exprs: &mut Exprs) -> ExprId {
        if let Some(at) = self.affine_at {
            let constant = self.terms.iter().enumerate().position(|(i, (t, _))| t.is_none() && i != at);
            if let Some(constant) = constant
                && let Some(sum) = self.with_affine(self.terms[constant].1, &Affine::constant(1))
            {
                self.affine = sum;
                self.terms[constant].1 = 0.0;
            }
            let affine = std::mem::take(&mut self.affine);
            let id = index(exprs, affine);
            self.terms[at] = match exprs.as_constant(id) {
                Some(number) => (None, number),
                None => (Some(id), 1.0),
            };
        }
        let zero = exprs.constant(0.0);
        for (c, a, b) in std::mem::take(&mut self.masks) {
            // Subtracting is one operation, adding what is negated two.
            let is_negative = |part: Option<ExprId>| part.is_none_or(|id| Product::of(exprs, id).coefficient < 0.0);
            let leads = self.terms.iter().all(|(_, coefficient)| *coefficient == 0.0);
            let turned = !leads && is_negative(a) && is_negative(b);
            let [a, b] = [a, b].map(|part| match part {
                Some(part) if turned => negate(exprs, part),
                part => part.unwrap_or(zero),
            });
            let choice = select(exprs, c, a, b);
            self.terms.push((Some(choice), if turned { -1.0 } else { 1.0 }));
        }
        lead_with_positive(&mut self.terms);
        let mut sum: Option<ExprId> = None;
        for (id, coefficient) in self.terms.into_iter().filter(|(_, c)| *c != 0.0) {
            let magnitude = coefficient.abs();
            let negative = coefficient < 0.0 && sum.is_some();
            let number = exprs.constant(if negative { magnitude } else { coefficient });
            let term = match id {
                None => number,
                Some(id) if coefficient == 1.0 => id,
                Some(id) => multiply(exprs, number, id),
            };
            sum = Some(match sum {
                None => term,
                Some(sum) => {
                    let op = if negative { BinaryOp::Sub } else { BinaryOp::Add };
                    exprs.add(Expr::Binary(op, sum, term))
                }
            });
        }
        sum.unwrap_or_else(|| exprs.constant(0.0))
    }
}
