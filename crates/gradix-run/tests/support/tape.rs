//! Values that remember where they come from, and the derivative by scattering back over them.
//!
//! A node is a value and a list of (parent, partial derivative); a branch that was not taken has left no node,
//! and so contributes exactly 0. The conventions at kinks and ties are those that docs/language.md states.

use gradix::scalar;

/// A number, and its node unless it is a constant.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    pub number: f64,
    node: Option<u32>,
}

impl Value {
    pub fn constant(number: f64) -> Self {
        Value { number, node: None }
    }
}

/// Every computation so far.
#[derive(Default)]
pub struct Tape {
    /// Where the parents of each node end in `parents`.
    ends: Vec<usize>,
    parents: Vec<(u32, f64)>,
    /// Whether some number is so large, or some comparison so close, that rounding decides.
    pub delicate: bool,
    /// Whether some number or partial derivative is not finite.
    pub infinite: bool,
}

/// A derivative, and the sum of the magnitudes of its terms.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slope {
    pub value: f64,
    pub magnitude: f64,
}

impl Tape {
    pub fn input(&mut self, number: f64) -> Value {
        self.node(number, &[])
    }

    fn node(&mut self, number: f64, parents: &[(Value, f64)]) -> Value {
        let known = parents.iter().filter_map(|(value, partial)| Some((value.node?, *partial)));
        let start = self.parents.len();
        self.parents.extend(known);
        for &value in self.parents[start..].iter().map(|(_, partial)| partial).chain([&number]) {
            self.infinite |= !value.is_finite();
            self.delicate |= value.is_finite() && value.abs() > 1e8;
        }
        self.ends.push(self.parents.len());
        Value { number, node: Some(self.ends.len() as u32 - 1) }
    }

    /// Derivatives of `Σ seed · result` by every node, in the order of `wanted`.
    pub fn scatter(&self, seeds: &[(Value, f64)], wanted: &[Value]) -> Vec<Slope> {
        let mut slopes: Vec<Option<Slope>> = vec![None; self.ends.len()];
        for (value, seed) in seeds {
            if let Some(node) = value.node {
                add(&mut slopes[node as usize], *seed, seed.abs());
            }
        }
        for node in (0..self.ends.len()).rev() {
            let Some(slope) = slopes[node] else { continue };
            let start = if node == 0 { 0 } else { self.ends[node - 1] };
            for &(parent, partial) in &self.parents[start..self.ends[node]] {
                add(&mut slopes[parent as usize], slope.value * partial, slope.magnitude * partial.abs());
            }
        }
        wanted.iter().map(|v| v.node.and_then(|node| slopes[node as usize]).unwrap_or_default()).collect()
    }

    /// Compares two values, noticing when rounding could decide.
    pub fn compare(&mut self, a: f64, b: f64) -> std::cmp::Ordering {
        let gap = (a - b).abs();
        self.delicate |= gap > 0.0 && gap < 1e-11 * (1.0 + a.abs() + b.abs());
        a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Less)
    }

    pub fn binary(&mut self, op: &str, a: Value, b: Value) -> Value {
        let (x, y) = (a.number, b.number);
        let (number, by_x, by_y) = match op {
            "+" => (x + y, 1.0, 1.0),
            "-" => (x - y, 1.0, -1.0),
            "*" => (x * y, y, x),
            "/" => (x / y, 1.0 / y, -x / (y * y)),
            "pow" => (scalar::pow(x, y), power_by_base(x, y), power_by_exponent(x, y)),
            "atan2" => (scalar::atan2(x, y), y / (x * x + y * y), -x / (x * x + y * y)),
            "hypot" => {
                let root = scalar::hypot(x, y);
                if root == 0.0 { (root, 0.0, 0.0) } else { (root, x / root, y / root) }
            }
            "max" => return self.extreme(&[a, b], 1.0),
            "min" => return self.extreme(&[a, b], -1.0),
            other => panic!("no function '{other}' of two values"),
        };
        self.node(number, &[(a, by_x), (b, by_y)])
    }

    pub fn sum(&mut self, terms: &[Value]) -> Value {
        let parents: Vec<_> = terms.iter().map(|&term| (term, 1.0)).collect();
        self.node(terms.iter().fold(0.0, |sum, term| sum + term.number), &parents)
    }

    pub fn mean(&mut self, terms: &[Value]) -> Value {
        // That of nothing is NaN, and no derivative says anything.
        self.delicate |= terms.is_empty();
        let count = terms.len() as f64;
        let parents: Vec<_> = terms.iter().map(|&term| (term, 1.0 / count)).collect();
        self.node(terms.iter().map(|term| term.number).sum::<f64>() / count, &parents)
    }

    /// By the largest term and the others one after the other.
    pub fn logsumexp(&mut self, terms: &[Value]) -> Value {
        let add = |total: f64, term: &Value| match (total, term.number) {
            (a, b) if a == b => a + 2f64.ln(),
            (a, b) if a.is_infinite() || b.is_infinite() => scalar::max(a, b),
            (a, b) => scalar::max(a, b) + (-(a - b).abs()).exp().ln_1p(),
        };
        let total = terms.iter().fold(f64::NEG_INFINITY, add);
        let share = |term: &Value| if total == f64::NEG_INFINITY { 0.0 } else { (term.number - total).exp() };
        let parents: Vec<_> = terms.iter().map(|&term| (term, share(&term))).collect();
        self.node(total, &parents)
    }

    pub fn product(&mut self, factors: &[Value]) -> Value {
        let without = |skipped: Option<usize>| {
            let others = factors.iter().enumerate().filter(|(place, _)| Some(*place) != skipped);
            others.fold(1.0, |product, (_, factor)| product * factor.number)
        };
        let parents: Vec<_> = factors.iter().enumerate().map(|(place, &f)| (f, without(Some(place)))).collect();
        self.node(without(None), &parents)
    }

    /// The largest value (`direction` 1) or the smallest (-1); ties share the derivative evenly.
    pub fn extreme(&mut self, values: &[Value], direction: f64) -> Value {
        let largest = |best: f64, v: &Value| {
            let candidate = direction * v.number;
            if best.is_nan() || candidate.is_nan() { f64::NAN } else { best.max(candidate) }
        };
        let best = direction * values.iter().fold(f64::NEG_INFINITY, largest);
        let winners: Vec<Value> = values.iter().copied().filter(|v| self.compare(v.number, best).is_eq()).collect();
        let parents: Vec<_> = winners.iter().map(|&v| (v, 1.0 / winners.len() as f64)).collect();
        self.node(best, &parents)
    }

    pub fn unary(&mut self, function: &str, a: Value) -> Value {
        let x = a.number;
        if function == "stop" {
            return Value::constant(x);
        }
        let (number, slope) = unary(function, x);
        if matches!(function, "abs" | "sign" | "relu") {
            self.compare(x, 0.0);
        }
        if matches!(function, "floor" | "ceil" | "round") {
            self.compare(x * 2.0, (x * 2.0).round());
        }
        self.node(number, &[(a, slope)])
    }
}

fn add(slot: &mut Option<Slope>, value: f64, magnitude: f64) {
    let slope = slot.get_or_insert_default();
    slope.value += value;
    slope.magnitude += magnitude;
}

fn power_by_base(x: f64, y: f64) -> f64 {
    if y == 0.0 { 0.0 } else { y * scalar::pow(x, y - 1.0) }
}

fn power_by_exponent(x: f64, y: f64) -> f64 {
    if x == 0.0 && y > 0.0 { 0.0 } else { scalar::pow(x, y) * x.ln() }
}

/// The value and the derivative.
fn unary(function: &str, x: f64) -> (f64, f64) {
    use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10};
    match function {
        "-" => (-x, -1.0),
        "exp" => (scalar::exp(x), x.exp()),
        "expm1" => (scalar::expm1(x), x.exp()),
        "log" => (scalar::log(x), 1.0 / x),
        "log1p" => (scalar::log1p(x), 1.0 / (1.0 + x)),
        "log2" => (scalar::log2(x), 1.0 / (x * LN_2)),
        "log10" => (scalar::log10(x), 1.0 / (x * LN_10)),
        "sqrt" => (scalar::sqrt(x), 0.5 / x.sqrt()),
        "cbrt" => (scalar::cbrt(x), 1.0 / (3.0 * x.cbrt() * x.cbrt())),
        "sin" => (scalar::sin(x), x.cos()),
        "cos" => (scalar::cos(x), -x.sin()),
        "tan" => (scalar::tan(x), 1.0 / (x.cos() * x.cos())),
        "asin" => (scalar::asin(x), 1.0 / ((1.0 - x) * (1.0 + x)).sqrt()),
        "acos" => (scalar::acos(x), -1.0 / ((1.0 - x) * (1.0 + x)).sqrt()),
        "atan" => (scalar::atan(x), 1.0 / (1.0 + x * x)),
        "sinh" => (scalar::sinh(x), x.cosh()),
        "cosh" => (scalar::cosh(x), x.sinh()),
        "tanh" => (scalar::tanh(x), 1.0 / (x.cosh() * x.cosh())),
        "asinh" => (scalar::asinh(x), 1.0 / (x * x + 1.0).sqrt()),
        "acosh" => (scalar::acosh(x), 1.0 / (x * x - 1.0).sqrt()),
        "atanh" => (scalar::atanh(x), 1.0 / (1.0 - x * x)),
        "erf" => (scalar::erf(x), FRAC_2_SQRT_PI * (-x * x).exp()),
        "erfc" => (scalar::erfc(x), -FRAC_2_SQRT_PI * (-x * x).exp()),
        "sigmoid" => (scalar::sigmoid(x), 1.0 / ((1.0 + x.exp()) * (1.0 + (-x).exp()))),
        "relu" => (scalar::relu(x), if x > 0.0 { 1.0 } else { 0.0 }),
        "softplus" => (scalar::softplus(x), scalar::sigmoid(x)),
        "abs" => (x.abs(), scalar::sign(x)),
        "sign" => (scalar::sign(x), 0.0),
        "floor" => (x.floor(), 0.0),
        "ceil" => (x.ceil(), 0.0),
        "round" => (x.round(), 0.0),
        "lgamma" => (scalar::lgamma(x), scalar::digamma(x)),
        "digamma" => (scalar::digamma(x), scalar::trigamma(x)),
        "trigamma" => (scalar::trigamma(x), f64::NAN),
        other => panic!("no function '{other}' of one value"),
    }
}
