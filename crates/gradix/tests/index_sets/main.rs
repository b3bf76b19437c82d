//! Index sets against enumeration: whatever solves, projects, prunes or splits constraints is held to the integer
//! points themselves, on random systems with floors inside floors, equations, empty ranges, ranges of one point and
//! sizes as params.
//!
//! `GRADIX_SEED` is the first seed and `GRADIX_SYSTEMS` how many systems each test makes. A failure shows its seed.

mod algebra;
mod bounds;
mod gather;
mod guard;
mod narrow;
mod points;
mod random;
mod solve;

use random::Noise;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How it went with one system.
pub enum Verdict {
    /// As it should be.
    Right,
    /// The compiler said that it can't; never an answer, and rare.
    Refused,
    /// Not as it should be, with a report.
    Wrong(String),
}

/// Checks `count` random systems, or as many as the environment asks for.
pub fn check_systems(name: &str, count: u64, check: impl Fn(&mut Noise) -> Verdict + Sync) {
    let (first, count) = (setting("GRADIX_SEED", 1), setting("GRADIX_SYSTEMS", count));
    let next = AtomicU64::new(first);
    let tally = Mutex::new((0u64, Vec::new()));
    let workers = std::thread::available_parallelism().map_or(2, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        break;
                    }
                    match guarded(&check, seed) {
                        Verdict::Right => {}
                        Verdict::Refused => tally.lock().unwrap().0 += 1,
                        Verdict::Wrong(what) => tally.lock().unwrap().1.push((seed, what)),
                    }
                }
            });
        }
    });
    let (refused, mut wrong) = tally.into_inner().unwrap();
    wrong.sort();
    println!("{name}: {count} systems from seed {first}, {} wrong, {refused} refused", wrong.len());
    let shown = wrong.iter().take(3).map(|(seed, what)| format!("\n---- seed {seed}\n{what}"));
    assert!(wrong.is_empty(), "{name}: {} of {count} wrong{}", wrong.len(), shown.collect::<String>());
    assert!(refused * 50 <= count, "{name}: {refused} of {count} were refused");
}

fn guarded(check: &impl Fn(&mut Noise) -> Verdict, seed: u64) -> Verdict {
    let outcome = catch_unwind(AssertUnwindSafe(|| check(&mut Noise::new(seed))));
    outcome.unwrap_or_else(|_| Verdict::Wrong("a panic".to_string()))
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}
