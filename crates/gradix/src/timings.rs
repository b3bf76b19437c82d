//! How long the passes take, for people who wait: nothing is recorded unless [`record`] runs, and no pass reads it.

use std::cell::RefCell;
use std::time::{Duration, Instant};

/// What a pass took, in all its calls from the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lap {
    /// The pass.
    pub name: &'static str,
    /// How many others it is inside of.
    pub depth: usize,
    /// How often it ran.
    pub calls: usize,
    /// What it took, with the passes inside of it.
    pub duration: Duration,
}

/// The laps of this thread in the order in which they began, and those that are open, outermost first.
#[derive(Default)]
struct Record {
    laps: Vec<Lap>,
    open: Vec<usize>,
}

thread_local! {
    static RECORD: RefCell<Option<Record>> = const { RefCell::new(None) };
}

/// Does something, and tells what the passes in it took on this thread.
///
/// ```
/// use gradix::timings::{record, timed};
/// let (sum, laps) = record(|| timed("outer", || timed("inner", || 1) + timed("inner", || 2)));
/// let told: Vec<_> = laps.iter().map(|lap| (lap.name, lap.depth, lap.calls)).collect();
/// assert_eq!((sum, told), (3, vec![("outer", 0, 1), ("inner", 1, 2)]));
/// ```
pub fn record<T>(work: impl FnOnce() -> T) -> (T, Vec<Lap>) {
    let before = RECORD.replace(Some(Record::default()));
    let result = work();
    let record = RECORD.replace(before);
    (result, record.map(|record| record.laps).unwrap_or_default())
}

/// Does something under a name.
pub fn timed<T>(name: &'static str, work: impl FnOnce() -> T) -> T {
    let Some(place) = RECORD.with_borrow_mut(|record| record.as_mut().map(|record| record.begin(name))) else {
        return work();
    };
    let start = Instant::now();
    let result = work();
    let taken = start.elapsed();
    RECORD.with_borrow_mut(|record| record.iter_mut().for_each(|record| record.end(place, taken)));
    result
}

impl Record {
    /// Opens the lap of this name inside the one that is open, and gives its place.
    fn begin(&mut self, name: &'static str) -> usize {
        let (depth, outer) = (self.open.len(), self.open.last().map_or(0, |outer| outer + 1));
        let inside = self.laps[outer..].iter().take_while(|lap| lap.depth >= depth);
        let known = inside.enumerate().find(|(_, lap)| lap.depth == depth && lap.name == name);
        let place = known.map(|(offset, _)| outer + offset).unwrap_or_else(|| {
            // Behind all that is inside of the open one: no open lap is further back.
            let length = self.laps[outer..].iter().take_while(|lap| lap.depth >= depth).count();
            self.laps.insert(outer + length, Lap { name, depth, calls: 0, duration: Duration::ZERO });
            outer + length
        });
        self.open.push(place);
        place
    }

    fn end(&mut self, place: usize, taken: Duration) {
        self.open.pop();
        let lap = &mut self.laps[place];
        (lap.calls, lap.duration) = (lap.calls + 1, lap.duration + taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_stand_under_those_that_call_them() {
        let inner = || timed("inner", || ());
        let work = || {
            timed("first", inner);
            timed("second", || timed("middle", inner));
            timed("first", || timed("other", || ()));
        };
        let ((), laps) = record(work);
        let told: Vec<_> = laps.iter().map(|lap| (lap.depth, lap.name, lap.calls)).collect();
        let expected =
            [(0, "first", 2), (1, "inner", 1), (1, "other", 1), (0, "second", 1), (1, "middle", 1), (2, "inner", 1)];
        assert_eq!(told, expected);
    }

    #[test]
    fn nothing_is_recorded_unless_asked_for() {
        timed("before", || ());
        assert_eq!(record(|| ()), ((), vec![]));
    }
}
