//! Values that remember what they were computed from, and derivatives along them.
//!
//! A record is a list of (parent, partial derivative). A branch that was not taken has left no record, and so
//! contributes exactly 0.

use super::partial::{self, Partial};
use gradix::program::{BinaryOp, ReduceOp, UnaryOp};
use gradix::scalar::{self, Kinks};

/// A number, and its record unless nothing that is derived by is behind it.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    pub number: f64,
    record: Option<u32>,
}

impl Value {
    pub fn constant(number: f64) -> Self {
        Value { number, record: None }
    }
}

/// A derivative.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slope {
    pub value: f64,
    /// The sum of the magnitudes of its terms.
    pub magnitude: f64,
    /// Whether something on the way is infinite, or so large that little is left of its digits.
    pub doubtful: bool,
}

impl Slope {
    pub fn exact(value: f64) -> Self {
        Slope { value, magnitude: value.abs(), doubtful: !is_moderate(value) }
    }

    fn add(&mut self, other: Slope) {
        self.value += other.value;
        self.magnitude += other.magnitude;
        self.doubtful |= other.doubtful;
    }

    fn times(self, partial: Partial, doubtful: bool) -> Slope {
        Slope {
            value: self.value * partial.value,
            magnitude: self.magnitude * partial.magnitude,
            doubtful: self.doubtful || doubtful,
        }
    }
}

/// Larger numbers have too few digits left for comparisons.
const LARGE: f64 = 1e8;
/// Values that differ by less than this are ordered by their rounding.
const CLOSE: f64 = 1e-11;

fn is_moderate(value: f64) -> bool {
    value.abs() <= LARGE
}

struct Record {
    /// Where its parents end.
    end: usize,
    doubtful: bool,
}

/// Every computation so far.
#[derive(Default)]
pub struct Tape {
    records: Vec<Record>,
    parents: Vec<(u32, Partial)>,
    /// Whether some comparison was so close that rounding decides it.
    pub delicate: bool,
    /// Whether some number or some partial derivative is not finite.
    pub infinite: bool,
}

impl Tape {
    pub fn len(&self) -> usize {
        self.records.len() + self.parents.len()
    }

    /// A value to derive by.
    pub fn argument(&mut self, number: f64) -> Value {
        self.record(number)
    }

    /// Records a value whose parents are the last on the list.
    fn record(&mut self, number: f64) -> Value {
        let start = self.records.last().map_or(0, |record| record.end);
        let doubtful =
            !is_moderate(number) || self.parents[start..].iter().any(|(_, partial)| !is_moderate(partial.value));
        self.records.push(Record { end: self.parents.len(), doubtful });
        Value { number, record: Some(self.records.len() as u32 - 1) }
    }

    fn value(&mut self, number: f64, parents: impl IntoIterator<Item = (Value, Partial)>) -> Value {
        let start = self.parents.len();
        self.parents.extend(parents.into_iter().filter_map(|(value, partial)| Some((value.record?, partial))));
        let own = self.parents[start..].iter().map(|(_, partial)| partial.value);
        self.infinite |= own.chain([number]).any(|value| !value.is_finite());
        if self.parents.len() == start { Value::constant(number) } else { self.record(number) }
    }

    pub fn unary(&mut self, op: UnaryOp, a: Value) -> Value {
        let x = a.number;
        if op == UnaryOp::Stop {
            return Value::constant(x);
        }
        match op.row().kinks {
            Kinks::Nowhere => {}
            Kinks::AtZero => self.compare(x, 0.0),
            Kinks::AtHalves => self.compare(2.0 * x, (2.0 * x).round()),
        }
        self.value(op.apply(x), [(a, partial::unary(op, x))])
    }

    pub fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        let (x, y) = (a.number, b.number);
        if op.row().chooses {
            self.compare(x, y);
        }
        let [by_x, by_y] = partial::binary(op, x, y);
        self.value(op.apply(x, y), [(a, by_x), (b, by_y)])
    }

    /// All terms of a reduction at once.
    pub fn reduce(&mut self, op: ReduceOp, terms: &[Value]) -> Value {
        let numbers = terms.iter().map(|term| term.number);
        let total = match op.combine() {
            Some(combine) => numbers.clone().fold(op.neutral(), |total, number| combine.apply(total, number)),
            None => logsumexp(&numbers.clone().collect::<Vec<_>>()),
        };
        let partials: Vec<f64> = match op {
            ReduceOp::Sum => vec![1.0; terms.len()],
            ReduceOp::LogSumExp if total == f64::NEG_INFINITY => vec![0.0; terms.len()],
            ReduceOp::LogSumExp => numbers.map(|number| (number - total).exp()).collect(),
            ReduceOp::Prod => products_of_others(terms),
            ReduceOp::Max | ReduceOp::Min => {
                terms.iter().for_each(|term| self.compare(term.number, total));
                let winners = terms.iter().filter(|term| term.number == total).count();
                terms.iter().map(|term| if term.number == total { 1.0 / winners as f64 } else { 0.0 }).collect()
            }
        };
        self.value(total, terms.iter().copied().zip(partials.into_iter().map(Partial::from)))
    }

    /// Notices when rounding could decide how two values compare.
    pub fn compare(&mut self, a: f64, b: f64) {
        let gap = (a - b).abs();
        self.delicate |= gap.is_nan() && a != b || gap > 0.0 && gap < CLOSE * (1.0 + a.abs() + b.abs());
    }

    /// Derivatives of `Σ seed · result` by each of `wanted`, from the last record to the first.
    pub fn scatter(&self, seeds: &[(Value, f64)], wanted: &[Value]) -> Vec<Slope> {
        let mut slopes: Vec<Option<Slope>> = vec![None; self.records.len()];
        for (result, seed) in seeds {
            if let Some(record) = result.record {
                slopes[record as usize].get_or_insert_default().add(Slope::exact(*seed));
            }
        }
        for record in (0..self.records.len()).rev() {
            let Some(slope) = slopes[record] else { continue };
            for &(parent, partial) in self.parents_of(record) {
                let contribution = slope.times(partial, self.records[record].doubtful);
                slopes[parent as usize].get_or_insert_default().add(contribution);
            }
        }
        wanted.iter().map(|x| x.record.and_then(|record| slopes[record as usize]).unwrap_or_default()).collect()
    }

    /// Derivatives of each of `wanted` along `tangents`, from the first record to the last.
    pub fn push(&self, tangents: &[(Value, f64)], wanted: &[Value]) -> Vec<Slope> {
        let mut slopes = vec![Slope::default(); self.records.len()];
        for (argument, tangent) in tangents {
            if let Some(record) = argument.record {
                slopes[record as usize] = Slope::exact(*tangent);
            }
        }
        for record in 0..self.records.len() {
            for &(parent, partial) in self.parents_of(record) {
                let contribution = slopes[parent as usize].times(partial, self.records[record].doubtful);
                slopes[record].add(contribution);
            }
        }
        wanted.iter().map(|f| f.record.map(|record| slopes[record as usize]).unwrap_or_default()).collect()
    }

    fn parents_of(&self, record: usize) -> &[(u32, Partial)] {
        let start = if record == 0 { 0 } else { self.records[record - 1].end };
        &self.parents[start..self.records[record].end]
    }
}

/// The largest number, and how much the others add to it.
fn logsumexp(numbers: &[f64]) -> f64 {
    let largest = numbers.iter().copied().fold(f64::NEG_INFINITY, scalar::max);
    let others = numbers.iter().map(|number| (number - largest).exp()).sum::<f64>();
    if largest.is_infinite() { largest } else { largest + others.ln() }
}

/// For each factor, what stands before it times what stands after it.
fn products_of_others(factors: &[Value]) -> Vec<f64> {
    let mut products = Vec::with_capacity(factors.len());
    let mut before = 1.0;
    for factor in factors {
        products.push(before);
        before *= factor.number;
    }
    let mut after = 1.0;
    for (product, factor) in products.iter_mut().zip(factors).rev() {
        *product *= after;
        after *= factor.number;
    }
    products
}
