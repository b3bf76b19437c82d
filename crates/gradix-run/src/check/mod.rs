//! Derivatives against numeric differentiation.
//!
//! With random inputs `x` and random upstream derivatives `df`, every derivative element `dx[β]` has to equal the slope
//! of `L = Σ df · f` along `x[β]`. The slope comes from central differences, extrapolated to step 0 by Richardson's
//! method with an estimate of its error (Ridders: *Accurate computation of F'(x)*, 1982):
//!
//! ```text
//! D(h)   = (L(x + h) - L(x - h)) / 2h  =  L' + h² L‴/6 + …
//! J(h)   = D₊(h) - D₋(h)               =  J + h L″ + …         (the slopes on both sides)
//! ```
//!
//! `J` is 0 where `L` is smooth and the height of the kink otherwise, so `|2 J(h/2) - J(h)|` is part of the error
//! estimate. An element whose error stays large with small steps is next to a kink or a pole: it is skipped and counted.
//! What is skipped depends on the function alone, never on the derivative that is checked.
//!
//! What `stop` holds stays what it is at `x`, as the derivative of `stop` is 0.
//!
//! Each element takes a few dozen evaluations. Where that is much, the vm does them, once its results were held to the oracle's;
//! the derivative itself is always the oracle's.
//!
//! Where a derivative is 0 everywhere, nothing was compared. If values are compared in the program (`if v == idx[i] then …`),
//! such derivatives are looked at again, with whole numbers for the inputs that are compared, and with others.

mod slope;
mod trials;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};

use gradix::Int;
use gradix::derive::Derived;
use gradix::diagnostic::{Diagnostic, Result};
use gradix::program::{Expr, Places, Program};
use gradix::transform::{Held, hold};

use self::slope::{Slope, slope};
use self::trials::{ENLARGEMENTS, Trials};
use crate::array::Array;
use crate::executable::{Backend, Executable};
use crate::files::Dtype;
use crate::gradient::{carried, shape};
use crate::interp::{Outcome, interp};
use crate::{interrupt, random};

/// How to check.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Where the random numbers start.
    pub seed: u64,
    /// The largest error that passes, relative to the size of the derivative; if `None`, what numeric differentiation
    /// of the function can tell apart.
    pub tolerance: Option<f64>,
    /// Whether the derivative is to be checked, too, at the sizes that are chosen: these have to suit both.
    pub second: bool,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The interval that the inputs were drawn from: the first of [`INTERVALS`] where the results are finite.
    pub interval: (f64, f64),
    /// One for every derivative.
    pub comparisons: Vec<Comparison>,
}

/// A derivative beside its numeric value.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The name of the derivative.
    pub derivative: String,
    /// The name of the argument.
    pub argument: String,
    /// The shape of both.
    pub shape: Vec<usize>,
    /// The largest error, relative to the larger of the element and the mean magnitude of the derivative.
    pub error: f64,
    /// The element with the error furthest past what passes, or nearest to it.
    pub worst: Option<Worst>,
    /// How many elements could not be measured.
    pub skipped: usize,
    /// Whether every element that could be measured agrees.
    pub passed: bool,
    /// Whether there are no elements, or all of them are 0 here, as computed and as measured, though not by their definition:
    /// a pass says nothing.
    pub vacuous: bool,
}

/// An element of a derivative.
#[derive(Clone, Debug)]
pub struct Worst {
    /// Its place.
    pub index: Vec<usize>,
    /// As computed by the derivative program.
    pub symbolic: f64,
    /// As measured.
    pub numeric: f64,
}

impl Comparison {
    /// How many elements there are.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it is right, as far as it was looked at: `ok`, `failed`, or `not checked` if nothing was found out.
    pub fn verdict(&self) -> &'static str {
        match () {
            () if !self.passed => "failed",
            () if self.vacuous || self.elements() > 0 && self.skipped == self.elements() => "not checked",
            () => "ok",
        }
    }

    /// Whether so many elements were skipped that a pass says little.
    pub fn is_doubtful(&self) -> bool {
        self.skipped * 10 > self.elements()
    }
}

/// Where inputs are drawn from, in order of preference: `log`, `sqrt` and `acosh` are not defined on all of the first.
pub const INTERVALS: [(f64, f64); 3] = [(-1.0, 1.0), (0.0, 1.0), (1.0, 2.0)];

/// The relative error that passes even if numeric differentiation seems to be more accurate.
const FLOOR: f64 = 1e-7;
/// How far the error may exceed the estimated error of the numeric derivative.
const MARGIN: f64 = 10.0;
/// An element is measured if the relative error is estimated below this.
const MEASURABLE: f64 = 1e-5;
/// The most operations, for all elements changed once, that are left to the oracle: about a second in all.
const ORACLE_OPERATIONS: u64 = 1 << 20;
/// How far other backends may differ from the oracle, relative to the largest element of a result.
const ROUNDING: f64 = 1e-9;
/// Derivatives are not expected to be resolved below this part of the results.
const NEGLIGIBLE: f64 = 1e-6;

/// Compares the reverse-mode derivatives of `program` at `sizes`. `progress` is called with the elements done so far, and all.
pub fn check(
    program: &Program,
    gradient: &Derived,
    sizes: &[Int],
    settings: Settings,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Report> {
    let mut report = check_with(program, gradient, sizes, settings, &[], progress)?;
    let compared = compared_inputs(program);
    let other = Settings { seed: settings.seed.wrapping_add(1), ..settings };
    for (settings, whole) in [(settings, compared.as_slice()), (other, &[]), (other, &compared)] {
        if compared.is_empty() || !report.comparisons.iter().any(|row| row.vacuous) {
            break;
        }
        let again = check_with(program, gradient, sizes, settings, whole, progress)?;
        let says_more = |row: &Comparison| !row.vacuous && row.skipped < row.elements();
        let pairs = report.comparisons.iter_mut().zip(again.comparisons);
        pairs.filter(|(row, other)| row.vacuous && says_more(other)).for_each(|(row, other)| *row = other);
    }
    Ok(report)
}

/// Compares at sizes of which those not `given` are chosen: small, and larger where something is not evaluated or a derivative
/// is 0 at small ones, as far as the work allows.
pub fn check_at_chosen(
    program: &Program,
    gradient: &Derived,
    given: &[(String, Int)],
    places: &Places,
    settings: Settings,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<(Vec<Int>, Report)> {
    let trials = Trials::new(program, gradient, given, places, settings.second);
    let mut sizes = trials.first()?;
    let mut report = check(program, gradient, &sizes, settings, progress)?;
    let vacuous = |report: &Report| report.comparisons.iter().filter(|row| row.vacuous).count();
    let mut trial = sizes.clone();
    for _ in 0..ENLARGEMENTS {
        match trials.doubled(&trial) {
            Some(larger) if vacuous(&report) > 0 => trial = larger,
            _ => break,
        }
        let again = check(program, gradient, &trial, settings, progress)?;
        if vacuous(&again) < vacuous(&report) {
            (sizes, report) = (trial.clone(), again);
        }
    }
    Ok((sizes, report))
}

/// Inputs whose elements are compared with something.
fn compared_inputs(program: &Program) -> Vec<String> {
    let exprs = &program.exprs;
    let bodies = program.definitions.iter().flat_map(|definition| exprs.postorder(definition.body));
    let conditions = bodies.filter_map(|id| if let Expr::Select(c, ..) = exprs[id] { Some(c) } else { None });
    let inputs = conditions.flat_map(|c| exprs.compared(c)).filter_map(|id| match exprs[id] {
        Expr::Access(tensor, _) if program.inputs().any(|input| input == tensor) => Some(program[tensor].name.clone()),
        _ => None,
    });
    inputs.collect::<BTreeSet<String>>().into_iter().collect()
}

/// The same, where the inputs named have whole numbers.
fn check_with(
    program: &Program,
    gradient: &Derived,
    sizes: &[Int],
    settings: Settings,
    whole: &[String],
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Report> {
    let derivative_sizes = carried(program, sizes, &gradient.program)?;
    let held = hold(program);
    let subject = Subject::new(&held, gradient, sizes, settings.seed, whole).map_err(|error| vec![error])?;
    let given = subject.inputs.iter().chain(&subject.weights).map(|(name, array)| (name.clone(), array.clone()));
    let symbolic = interp(&gradient.program, &derivative_sizes, &given.collect(), Dtype::F64);
    let symbolic = symbolic.map_err(|error| vec![error])?.results;
    let arguments = gradient.wrt.iter().map(|&x| program[x].name.as_str());
    let elements: Vec<(&str, usize)> =
        arguments.clone().flat_map(|x| (0..subject.inputs[x].data.len()).map(move |position| (x, position))).collect();
    let subject = subject.hastened(elements.len());
    let slopes = subject.slopes(&elements, progress).map_err(|error| vec![error])?;
    let mut rest = slopes.as_slice();
    let comparisons = arguments.zip(symbolic).map(|(argument, (derivative, array))| {
        let (own, others) = rest.split_at(array.data.len());
        rest = others;
        let is_zero = is_zero(&gradient.program, &derivative);
        let row = compare(derivative, argument.into(), &array, own, subject.magnitude, settings.tolerance);
        Comparison { vacuous: row.vacuous && !is_zero, ..row }
    });
    Ok(Report { interval: subject.interval, comparisons: comparisons.collect() })
}

/// Whether a result is defined as 0.
fn is_zero(program: &Program, result: &str) -> bool {
    let mut definitions = program.definitions.iter().filter(|definition| program[definition.tensor].name == result);
    definitions.all(|definition| program.exprs.as_constant(definition.body) == Some(0.0))
}

fn compare(
    derivative: String,
    argument: String,
    symbolic: &Array,
    slopes: &[Slope],
    magnitude: f64,
    tolerance: Option<f64>,
) -> Comparison {
    let finite = || slopes.iter().map(|slope| slope.value.abs()).filter(|value| value.is_finite());
    let mean = finite().sum::<f64>() / finite().count().max(1) as f64;
    let scale = mean.max(NEGLIGIBLE * magnitude).max(f64::MIN_POSITIVE);
    let (mut error, mut worst, mut furthest, mut skipped) = (0.0f64, None, -1.0, 0);
    for (offset, (slope, &value)) in slopes.iter().zip(&symbolic.data).enumerate() {
        let reference = scale.max(slope.value.abs());
        let measured = slope.error <= MEASURABLE * reference;
        if !measured {
            skipped += 1;
            continue;
        }
        let difference = (value - slope.value).abs();
        let difference = if difference.is_nan() { f64::INFINITY } else { difference };
        let allowed = tolerance.map_or((FLOOR * reference).max(MARGIN * slope.error), |part| part * reference);
        error = error.max(difference / reference);
        if difference / allowed > furthest {
            furthest = difference / allowed;
            let index = index_of(offset, &symbolic.shape);
            worst = Some(Worst { index, symbolic: value, numeric: slope.value });
        }
    }
    let vacuous = slopes.iter().all(|slope| slope.value == 0.0) && symbolic.data.iter().all(|value| *value == 0.0);
    let (shape, passed) = (symbolic.shape.clone(), furthest <= 1.0);
    Comparison { derivative, argument, shape, error, worst, skipped, passed, vacuous }
}

fn index_of(mut offset: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (place, extent) in index.iter_mut().zip(shape).rev() {
        *place = offset % extent;
        offset /= extent;
    }
    index
}

/// A program at one point.
struct Subject<'a> {
    /// What `stop` holds is computed from inputs that are never changed.
    program: &'a Program,
    sizes: &'a [Int],
    interval: (f64, f64),
    inputs: HashMap<String, Array>,
    /// The upstream derivatives, by their names.
    weights: HashMap<String, Array>,
    /// The results with their weights; `None` for results that are not derived.
    base: Vec<(Array, Option<Array>)>,
    /// `Σ |df · f|`
    magnitude: f64,
    /// How many operations it takes.
    operations: u64,
    /// What computes in place of the oracle.
    fast: Option<Executable>,
}

impl<'a> Subject<'a> {
    fn new(
        Held { program, inputs: held }: &'a Held,
        gradient: &Derived,
        sizes: &'a [Int],
        seed: u64,
        whole: &[String],
    ) -> Result<Self, Diagnostic> {
        let fill = |tensor, name: &str| {
            let array = shape(program, sizes, tensor).and_then(|shape| random::array(seed, name, shape));
            array.ok_or_else(|| Diagnostic::error("run", format!("'{name}' does not fit into memory")))
        };
        let mut drawn = HashMap::new();
        for id in program.inputs() {
            drawn.insert(program[id].name.clone(), fill(id, &program[id].name)?);
        }
        let mut weights = HashMap::new();
        for seed in &gradient.seeds {
            weights.insert(seed.name.clone(), fill(seed.of, &seed.name)?);
        }
        let mut best: Option<Subject> = None;
        for interval in INTERVALS {
            let place = |name: &String, array: &Array| match whole.contains(name) {
                true => whole_numbers(array),
                false => moved(array, interval),
            };
            let mut inputs: HashMap<String, Array> =
                drawn.iter().map(|(name, array)| (name.clone(), place(name, array))).collect();
            for (name, held) in held {
                inputs.insert(held.clone(), inputs[name].clone());
            }
            let Outcome { results, operations } = interp(program, sizes, &inputs, Dtype::F64)?;
            let base: Vec<(Array, Option<Array>)> = program
                .outputs
                .iter()
                .zip(results)
                .map(|(id, (_, array))| {
                    let upstream = gradient.seeds.iter().find(|seed| seed.of == *id);
                    (array, upstream.map(|seed| weights[&seed.name].clone()))
                })
                .collect();
            let parts = base.iter().filter_map(|(f, df)| Some(f.data.iter().zip(&df.as_ref()?.data)));
            let magnitude = parts.flatten().map(|(f, df)| (f * df).abs()).sum::<f64>();
            let weights = weights.clone();
            let subject =
                Subject { program, sizes, interval, inputs, weights, base, magnitude, operations, fast: None };
            if magnitude.is_finite() {
                return Ok(subject);
            }
            best.get_or_insert(subject);
        }
        best.ok_or_else(|| Diagnostic::error("run", "there is nothing to check"))
    }

    /// The same, computed by the vm if the oracle had too much to do, and if the vm gives what the oracle gave.
    fn hastened(mut self, elements: usize) -> Self {
        if self.operations.saturating_mul(elements as u64) <= ORACLE_OPERATIONS {
            return self;
        }
        let mut fast = Executable::new(self.program, self.sizes, Dtype::F64, Backend::Vm, Some(1));
        let Ok(results) = fast.evaluate(self.sizes, &self.inputs) else { return self };
        let is_near = |((_, new), (old, _)): (&(String, Array), &(Array, Option<Array>))| {
            let largest = old.data.iter().fold(0.0f64, |most, value| most.max(value.abs()));
            new.data.iter().zip(&old.data).all(|(new, old)| (new - old).abs() <= ROUNDING * largest)
        };
        if results.iter().zip(&self.base).all(is_near) {
            self.base.iter_mut().zip(results).for_each(|((old, _), (_, new))| *old = new);
            self.fast = Some(fast);
        }
        self
    }

    /// The slope along each element, measured by as many threads as there are cores.
    fn slopes(
        &self,
        elements: &[(&str, usize)],
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Vec<Slope>, Diagnostic> {
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = |mut fast: Option<Executable>| {
            let mut inputs = self.inputs.clone();
            let mut found = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(&(name, position)) = elements.get(number) else { return found };
                let mut change = |step| self.change(&mut fast, &mut inputs, name, position, step);
                let slope = slope(&mut change, self.magnitude);
                if slope.is_err() || interrupt::is_due() {
                    // Nobody goes on.
                    next.store(elements.len(), Ordering::Relaxed);
                }
                found.push((number, slope));
                progress(done.fetch_add(1, Ordering::Relaxed) + 1, elements.len());
            }
        };
        let fork = || self.fast.as_ref().map(Executable::fork);
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(elements.len());
        let mut found: Vec<(usize, Result<Slope, Diagnostic>)> = std::thread::scope(|scope| {
            let others = (1..workers).map(|_| (fork(), &work)).map(|(fast, work)| scope.spawn(move || work(fast)));
            let others: Vec<_> = others.collect();
            let own = work(fork());
            let joined = others.into_iter().flat_map(|thread| thread.join().expect("measuring does not panic"));
            own.into_iter().chain(joined).collect()
        });
        found.sort_by_key(|(number, _)| *number);
        let all = found.len() == elements.len();
        let found: Vec<Slope> = found.into_iter().map(|(_, slope)| slope).collect::<Result<_, _>>()?;
        if all { Ok(found) } else { Err(interrupt::stopped()) }
    }

    /// `L(x + step) - L(x)` along one element; results that do not change cancel exactly.
    fn change(
        &self,
        fast: &mut Option<Executable>,
        inputs: &mut HashMap<String, Array>,
        name: &str,
        position: usize,
        step: f64,
    ) -> Result<f64, Diagnostic> {
        let start = self.inputs[name].data[position];
        inputs.get_mut(name).expect("an input").data[position] = start + step;
        let results = match fast {
            Some(fast) => fast.evaluate(self.sizes, inputs),
            None => interp(self.program, self.sizes, inputs, Dtype::F64).map(|outcome| outcome.results),
        }?;
        inputs.get_mut(name).expect("an input").data[position] = start;
        let mut change = 0.0;
        for ((_, new), (old, weights)) in results.iter().zip(&self.base) {
            let Some(weights) = weights else { continue };
            let parts = new.data.iter().zip(&old.data).zip(&weights.data);
            change += parts.map(|((new, old), weight)| weight * (new - old)).sum::<f64>();
        }
        Ok(change)
    }
}

/// The same numbers on another interval.
fn moved(array: &Array, (low, high): (f64, f64)) -> Array {
    let data = array.data.iter().map(|value| (low + high) / 2.0 + (high - low) / 2.0 * value).collect();
    Array { shape: array.shape.clone(), data }
}

/// Numbers from 0 to 3 in place of those between -1 and 1.
fn whole_numbers(array: &Array) -> Array {
    Array { shape: array.shape.clone(), data: array.data.iter().map(|value| (2.0 * value + 2.0).floor()).collect() }
}
