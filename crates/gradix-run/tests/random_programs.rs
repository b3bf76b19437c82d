//! Random programs, each held to everything that must be true of any program.
//!
//! `GRADIX_SEED` sets the first seed and `GRADIX_COUNT` how many programs there are. A failure shows its seed, the
//! program made as small as was easy, and its derivative; `GRADIX_SHOWN` programs of every kind of failure.

mod random;
mod support;

use random::floors::floors;
use random::generate::generate;
use random::recurrences::recurrences;
use random::shrink::shrink;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use support::check::{Failure, Plan, Verdict, check};
use support::scope::OUT_OF_REACH;

#[test]
fn random_programs_keep_every_promise() {
    keep_every_promise(generate, plan, 1, 500);
}

#[test]
fn random_floors_keep_every_promise() {
    let small = |seed| Plan { small: true, runs: 5, ..plan(seed) };
    keep_every_promise(floors, small, 1, 400);
}

#[test]
fn random_recurrences_keep_every_promise() {
    let small = |seed| Plan { small: true, ..plan(seed) };
    keep_every_promise(recurrences, small, 1, 300);
}

/// What is printed about panics is the same for all threads, so one test at a time.
static TURN: Mutex<()> = Mutex::new(());

fn keep_every_promise(generate: fn(u64) -> String, plan: fn(u64) -> Plan, first: u64, count: u64) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (first, count) = (setting("GRADIX_SEED", first), setting("GRADIX_COUNT", count));
    std::panic::set_hook(Box::new(|_| {}));
    let next = AtomicU64::new(first);
    let tally = Mutex::new(Tally::default());
    let workers = std::thread::available_parallelism().map_or(2, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        break;
                    }
                    let started = std::time::Instant::now();
                    let text = generate(seed);
                    let outcome = guarded(&text, plan(seed));
                    tally.lock().unwrap().add(seed, text, outcome, started.elapsed().as_secs_f64());
                }
            });
        }
    });
    let tally = tally.into_inner().unwrap();
    let report = tally.report(plan);
    let _ = std::panic::take_hook();
    println!("{}", tally.summary());
    assert!(tally.failures.is_empty(), "{report}");
    assert!(tally.refused.len() * 10 <= count as usize * 3, "too many programs were refused");
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn plan(seed: u64) -> Plan {
    let (jacobian, second) = (seed.is_multiple_of(2), !seed.is_multiple_of(2));
    Plan { seed, special: seed.is_multiple_of(3), small: false, runs: 3, infinities: false, jacobian, second }
}

/// A panic is a failure like the others.
fn guarded(text: &str, plan: Plan) -> Result<Verdict, Vec<Failure>> {
    catch_unwind(AssertUnwindSafe(|| check(text, plan))).unwrap_or_else(|payload| {
        let message = payload.downcast_ref::<String>().cloned();
        let detail = message.or_else(|| payload.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default();
        match detail.starts_with(OUT_OF_REACH) {
            true => Ok(Verdict::Refused(detail)),
            false => Err(vec![Failure { kind: "nothing panics", detail, derivative: String::new() }]),
        }
    })
}

#[derive(Default)]
struct Tally {
    held: usize,
    runs: usize,
    delicate: usize,
    refused: Vec<(u64, String)>,
    failures: Vec<(u64, String, Vec<Failure>)>,
    slowest: (f64, u64),
}

impl Tally {
    fn add(&mut self, seed: u64, text: String, outcome: Result<Verdict, Vec<Failure>>, seconds: f64) {
        if seconds > self.slowest.0 {
            self.slowest = (seconds, seed);
        }
        match outcome {
            Ok(Verdict::Held { runs, delicate }) => {
                self.held += 1;
                self.runs += runs;
                self.delicate += delicate;
            }
            Ok(Verdict::Refused(message)) => self.refused.push((seed, message)),
            Err(failures) => self.failures.push((seed, text, failures)),
        }
    }

    fn summary(&self) -> String {
        let mut codes: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
        for (seed, message) in &self.refused {
            let slot = codes.entry(message.split(':').next().unwrap_or_default()).or_insert((0, *seed));
            slot.0 += 1;
        }
        format!(
            "{} held ({} runs, {} delicate), {} failed, refused (count, first seed): {codes:?}, slowest (s, seed): {:?}",
            self.held,
            self.runs,
            self.delicate,
            self.failures.len(),
            self.slowest,
        )
    }

    /// The first failures of every kind, made smaller.
    fn report(&self, plan: fn(u64) -> Plan) -> String {
        let mut kinds: BTreeMap<&str, Vec<(u64, &str)>> = BTreeMap::new();
        for (seed, text, failures) in &self.failures {
            for failure in failures {
                kinds.entry(failure.kind).or_default().push((*seed, text));
            }
        }
        let mut report = String::new();
        for (kind, mut programs) in kinds {
            programs.sort_by_key(|(seed, text)| (text.len(), *seed));
            report += &format!("\n\n######## {kind}: {} programs", programs.len());
            for (seed, text) in programs.into_iter().take(setting("GRADIX_SHOWN", 1) as usize) {
                report += &smallest(kind, text, plan(seed));
            }
        }
        report
    }
}

fn smallest(kind: &str, text: &str, plan: Plan) -> String {
    let seed = plan.seed;
    let failure = |text: &str| {
        let failures = guarded(text, plan).err()?;
        failures.into_iter().find(|failure| failure.kind == kind)
    };
    let ast = gradix::syntax::parse(text).expect("parsed before");
    let small = shrink(&ast, 500, &|text| failure(text).is_some());
    let Some(failure) = failure(&small) else { return format!("\n---- seed {seed} fails no more:\n{small}") };
    format!("\n---- seed {seed}:\n{small}\n# {}\n\n{}", failure.detail, failure.derivative)
}
