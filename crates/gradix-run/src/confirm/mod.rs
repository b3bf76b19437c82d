//! A derivative held to its function by enumeration: every element, at a few small sizes.
//!
//! The function is evaluated point by point on random data, and every access notes which element it has read and with which
//! partial derivative (`trace`). Scattering back along these notes gives each derivative with no index algebra at all: no
//! equation is solved, no range is inverted, nothing is simplified. What the derivative program says about the same
//! data ([`interp`](crate::interp())) has to agree in every element (`expect`).
//!
//! **What it shows**: at the sizes that were tried, the derivative reads only what exists, has the right shape, and every
//! element has exactly the contributions that it should have; one too many, one too few, or one from a wrong place changes
//! a sum of random numbers, and is found. Index sets that are wrong are mostly wrong at small sizes already.
//!
//! **What it does not show**: that the derivative is right at all sizes; that the program says what its author meant (the
//! function is taken as it was resolved; `gradix check` and the tests hold that to other evaluators). Not judged are
//! elements behind infinite or very large numbers, and data for which some comparison of values is so close that rounding
//! decides it; and a difference does not count for data at which something in the function is infinite. The tolerance is relative to the sum of the magnitudes of an element's terms. For a Hessian the gradient is
//! confirmed, and then the Hessian as the derivative of that gradient.

mod expect;
mod partial;
mod report;
mod tape;
mod trace;
mod trial;

pub use report::{Confirmed, Finding, Mismatch};

use crate::array::Array;
use crate::check::INTERVALS;
use crate::files::Dtype;
use crate::gradient::{carried, free, shape};
use crate::interp::{STACK, interp};
use crate::random;
use expect::{Expectation, Expected, expect};
use gradix::Int;
use gradix::derive::{Derived, Mode, Options, derive};
use gradix::program::{Expr, Program, TensorId, TensorKind};
use std::collections::HashMap;
use trace::{Halt, Meter, place_of};

/// The steps that one confirmation may take in all: some 50 ms.
const MAX_STEPS: usize = 1_000_000;
/// The assignments of sizes that are tried at least, as far as there are any.
const MIN_TRIALS: usize = 3;
/// The assignments of sizes that are tried at most, when some access is not reached at any, or some index has one value only.
const MAX_TRIALS: usize = 12;
/// The sets of random data that a difference is looked for in; it counts if it is found in two of them.
const SETS: u64 = 4;
/// The difference that passes, relative to the magnitude of an element's terms.
const TOLERANCE: f64 = 1e-7;
/// The difference that passes in any case: what is left where larger numbers cancel.
const NEGLIGIBLE: f64 = 1e-13;

/// An access: the definition that it stands in, and its place in the body.
type Place = (TensorId, usize);

/// Holds a derivative, which `derive(program, options)` has given, to the program.
///
/// ```
/// let ast = gradix::syntax::parse("input x[N]\ny[i in 0..N//2] = x[2*i]").unwrap();
/// let program = gradix::resolve(&ast, &[]).unwrap().program;
/// let options = gradix::derive::Options::default();
/// let derived = gradix::derive(&program, &options).unwrap();
/// let confirmed = gradix_run::confirm(&program, &derived, &options).unwrap();
/// assert!(confirmed.unreached.is_empty());
/// // The derivative of another program: every element of `x` is read.
/// let ast = gradix::syntax::parse("input x[N], dy[N//2]\ndx[i in 0..N] = if i//2 < N//2 then dy[i//2] else 0").unwrap();
/// let wrong = gradix::derive::Derived { program: gradix::resolve(&ast, &[]).unwrap().program, ..derived };
/// assert!(gradix_run::confirm(&program, &wrong, &options).is_err());
/// ```
pub fn confirm(program: &Program, derived: &Derived, options: &Options) -> Result<Confirmed, Mismatch> {
    // Expressions may nest deeply, and the evaluation follows them by recursion.
    std::thread::scope(|scope| {
        let run = || confirm_here(program, derived, options);
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run);
        thread.expect("a thread can be started").join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn confirm_here(program: &Program, derived: &Derived, options: &Options) -> Result<Confirmed, Mismatch> {
    let mut gradient = None;
    if options.mode == Mode::Hessian {
        let first = Options { mode: Mode::Reverse, with_results: false, ..options.clone() };
        let first_order = derive(program, &first).map_err(|errors| {
            let finding = Finding::Failure(format!("there is a Hessian without a gradient: {}", errors[0].message));
            Mismatch { sizes: Vec::new(), finding }
        })?;
        confirm_here(program, &first_order, &first)?;
        gradient = Some(first_order);
    }
    Subject { program, derived, options, gradient }.confirm()
}

/// A derivative and what it should be the derivative of.
struct Subject<'a> {
    program: &'a Program,
    derived: &'a Derived,
    options: &'a Options,
    /// Of a Hessian: what it is the derivative of.
    gradient: Option<Derived>,
}

/// Which numbers data are made of.
#[derive(Clone, Copy, Debug)]
enum Grain {
    /// Any.
    Fine,
    /// Halves: zeros and ties are frequent.
    Coarse,
}

impl Grain {
    fn round(self, value: f64) -> f64 {
        match self {
            Grain::Fine => value,
            Grain::Coarse => (2.0 * value).round() / 2.0,
        }
    }
}

/// How a comparison at certain sizes ended.
enum Verdict {
    Agrees(Expectation),
    Undecided,
    Differs(Finding),
}

impl Subject<'_> {
    fn confirm(&self) -> Result<Confirmed, Mismatch> {
        let mut meter = Meter(MAX_STEPS);
        let mut confirmed = Confirmed::default();
        let mut missing = accesses(self.traced());
        let mut narrow: Vec<TensorId> = self.traced().definitions.iter().map(|definition| definition.tensor).collect();
        for sizes in trial::trials(self.program).take(MAX_TRIALS) {
            if confirmed.sizes.len() >= MIN_TRIALS && missing.is_empty() && narrow.is_empty() {
                break;
            }
            let named: Vec<(String, Int)> =
                free(self.program, &sizes).map(|(name, size)| (name.to_string(), size.clone())).collect();
            match self.at(&sizes, &mut meter) {
                Err(Halt::Work) => {
                    confirmed.cut_short = true;
                    break;
                }
                Err(Halt::Failed) | Ok(Verdict::Undecided) => confirmed.undecided.push(named),
                Ok(Verdict::Differs(finding)) => return Err(Mismatch { sizes: named, finding }),
                Ok(Verdict::Agrees(expectation)) => {
                    for coverage in &expectation.coverage {
                        missing.retain(|place| !coverage.reached.contains(place));
                        narrow.retain(|definition| !coverage.is_wide(*definition));
                    }
                    confirmed.doubtful += expectation.doubtful();
                    confirmed.sizes.push(named);
                }
            }
        }
        confirmed.unreached = missing.into_iter().map(|place| report::access(self.traced(), place)).collect();
        Ok(confirmed)
    }

    /// The program whose accesses are followed.
    fn traced(&self) -> &Program {
        self.gradient.as_ref().map_or(self.program, |gradient| &gradient.program)
    }

    fn shape(&self, sizes: &[Int], tensor: TensorId) -> Vec<usize> {
        shape(self.program, sizes, tensor).expect("what was drawn or computed has a shape")
    }

    /// Compares every element at certain sizes: on any numbers, and then on numbers with zeros and ties, which reach what a
    /// product or a largest value does with them.
    fn at(&self, sizes: &[Int], meter: &mut Meter) -> Result<Verdict, Halt> {
        let fine = self.judge(sizes, Grain::Fine, meter)?;
        let Verdict::Agrees(mut expectation) = fine else { return Ok(fine) };
        match self.judge(sizes, Grain::Coarse, meter) {
            Ok(Verdict::Differs(finding)) => return Ok(Verdict::Differs(finding)),
            Ok(Verdict::Agrees(coarse)) => expectation.coverage.extend(coarse.coverage),
            Ok(Verdict::Undecided) | Err(_) => {}
        }
        Ok(Verdict::Agrees(expectation))
    }

    /// Compares every element on random data. A difference has to show in two sets of them.
    fn judge(&self, sizes: &[Int], grain: Grain, meter: &mut Meter) -> Result<Verdict, Halt> {
        let mut found = None;
        for seed in 0..SETS {
            let (data, expectation) = self.draw(sizes, (seed, grain), meter)?;
            if expectation.delicate {
                continue;
            }
            match (self.compare(sizes, &data, &expectation), found.is_some()) {
                // Next to infinities a derivative may be 0 times one of them.
                (Some(Finding::Element { .. }), _) if expectation.infinite => {}
                (None, false) => return Ok(Verdict::Agrees(expectation)),
                (None, true) => {}
                (Some(finding), false) => found = Some(finding),
                (Some(finding), true) => return Ok(Verdict::Differs(finding)),
            }
        }
        Ok(Verdict::Undecided)
    }

    /// Random data and what is expected at it, from the interval that leaves the fewest elements in doubt.
    fn draw(
        &self,
        sizes: &[Int],
        set: (u64, Grain),
        meter: &mut Meter,
    ) -> Result<(HashMap<String, Array>, Expectation), Halt> {
        let mut best: Option<(HashMap<String, Array>, Expectation)> = None;
        let rank = |expectation: &Expectation| (expectation.delicate, expectation.doubtful());
        for interval in INTERVALS {
            let data = self.data(sizes, set, interval, meter)?;
            let expectation = expect(self, sizes, &data, meter)?;
            if best.as_ref().is_none_or(|(_, known)| rank(&expectation) < rank(known)) {
                best = Some((data, expectation));
            }
            if best.as_ref().is_some_and(|(_, known)| rank(known) == (false, 0)) {
                break;
            }
        }
        Ok(best.expect("there are intervals"))
    }

    fn data(
        &self,
        sizes: &[Int],
        (seed, grain): (u64, Grain),
        (low, high): (f64, f64),
        meter: &mut Meter,
    ) -> Result<HashMap<String, Array>, Halt> {
        let mut fill = |tensor: TensorId, name: &str, (low, high): (f64, f64)| {
            let shape = shape(self.program, sizes, tensor).ok_or(Halt::Work)?;
            let count = shape.iter().try_fold(1usize, |count, extent| count.checked_mul(*extent));
            meter.spend(count.ok_or(Halt::Work)?)?;
            let mut array = random::array(seed, name, shape).ok_or(Halt::Work)?;
            array
                .data
                .iter_mut()
                .for_each(|value| *value = grain.round((low + high) / 2.0 + (high - low) / 2.0 * *value));
            Ok::<_, Halt>((name.to_string(), array))
        };
        let inputs = self.program.inputs().map(|x| (x, self.program[x].name.as_str(), (low, high)));
        let seeds = self.derived.seeds.iter().map(|seed| (seed.of, seed.name.as_str(), (-1.0, 1.0)));
        inputs.chain(seeds).map(|(tensor, name, interval)| fill(tensor, name, interval)).collect()
    }

    /// The first element that differs, or why there is none to compare.
    fn compare(&self, sizes: &[Int], data: &HashMap<String, Array>, expectation: &Expectation) -> Option<Finding> {
        let own = match carried(self.program, sizes, &self.derived.program) {
            Ok(own) => own,
            // Where there is nothing to compute, a derivative may say more plainly why.
            Err(_) if self.is_empty(sizes) => return None,
            Err(errors) => return Some(Finding::Failure(format!("it refuses the sizes: {}", errors[0].message))),
        };
        let found = match interp(&self.derived.program, &own, data, Dtype::F64) {
            Ok(outcome) => outcome.results,
            Err(error) => return Some(Finding::Failure(error.message)),
        };
        if found.len() != expectation.results.len() {
            let count = expectation.results.len();
            return Some(Finding::Failure(format!("it has {} results and should have {count}", found.len())));
        }
        found.iter().zip(&expectation.results).find_map(|((name, array), expected)| difference(name, array, expected))
    }

    fn is_empty(&self, sizes: &[Int]) -> bool {
        let named = self.program.inputs().chain(self.program.definitions.iter().map(|definition| definition.tensor));
        named.into_iter().any(|tensor| self.shape(sizes, tensor).contains(&0))
    }
}

fn difference(name: &str, found: &Array, expected: &Expected) -> Option<Finding> {
    let derivative = name.to_string();
    if found.shape != expected.shape {
        let (found, expected) = (found.shape.clone(), expected.shape.clone());
        return Some(Finding::Shape { derivative, found, expected });
    }
    let pairs = found.data.iter().zip(&expected.slopes);
    let wrong = pairs.enumerate().find(|(_, (found, slope))| {
        let allowed = TOLERANCE * slope.magnitude + NEGLIGIBLE;
        let close = (*found - slope.value).abs() <= allowed;
        !close && !slope.doubtful && slope.magnitude.is_finite()
    });
    wrong.map(|(number, (&value, slope))| {
        let index = place_of(number, &found.shape);
        Finding::Element { derivative, index, found: value, expected: slope.value }
    })
}

/// Every access of a program, less those of nested definitions, whose own accesses tell whether they are read.
fn accesses(program: &Program) -> Vec<Place> {
    let mut places = Vec::new();
    for definition in &program.definitions {
        let nodes = program.exprs.postorder(definition.body).into_iter().enumerate();
        let named = |id| matches!(program.exprs[id], Expr::Access(read, _) if program[read].kind != TensorKind::Nested);
        let reads = nodes.filter(|(_, id)| named(*id));
        places.extend(reads.map(|(place, _)| (definition.tensor, place)));
    }
    places
}
