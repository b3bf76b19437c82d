//! What a program becomes on its way to loops, and how it prints.

use crate::diagnostic::Diagnostic;
use crate::nest;
use crate::nest::verify::Verified;
use crate::program::Program;
use crate::program::print;
use crate::schedule::{self, Schedule};
use std::fmt;

/// What a program becomes on its way to loops.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The program with recurrences in place of reductions over ranges that grow.
    pub scanned: Program,
    /// The parts between recurrences, and those at each of their steps; a single one if there is no recurrence.
    pub parts: Vec<CompiledPart>,
    /// The loops, with the proof that no access leaves its buffer.
    pub nest: Verified,
}

/// What a program without recurrences becomes on its way to loops.
#[derive(Clone, Debug)]
pub struct CompiledPart {
    /// The same values with fewer operations.
    pub economised: Program,
    /// With copies and another order of dimensions, and without what is computed again at each use.
    pub arranged: Program,
    /// What was decided for the arranged program.
    pub schedule: Schedule,
    /// Why this and no other candidate.
    pub choice: Choice,
}

impl Compiled {
    /// One of the values on the way, as text.
    pub fn print(&self, stage: Stage) -> Result<String, Diagnostic> {
        let printed = |part: &CompiledPart| match stage {
            Stage::Scanned => print::print(&self.scanned),
            Stage::Economised => print::print(&part.economised),
            Stage::Arranged => print::print(&part.arranged),
            Stage::Schedule => {
                let (name, decisions) = (self.nest.target.name, schedule::print(&part.arranged, &part.schedule));
                Ok(format!("for {name}: {}\n\n{decisions}", part.choice))
            }
            Stage::Nest => Ok(nest::print(&self.nest)),
        };
        if matches!(stage, Stage::Scanned | Stage::Nest) {
            return printed(&self.parts[0]);
        }
        let texts: Result<Vec<String>, Diagnostic> = self.parts.iter().map(printed).collect();
        Ok(texts?.join("\n"))
    }
}

/// A value on the way from a program to loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The program with recurrences in place of reductions over ranges that grow.
    Scanned,
    /// The program with fewer operations.
    Economised,
    /// The program that is scheduled.
    Arranged,
    /// The decisions, with the choice among candidates.
    Schedule,
    /// The loops.
    Nest,
}

/// Which candidate was taken, and why; numbers are elements that are stored for other kernels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Choice {
    /// Plain loops: there is so little to do that nothing else pays.
    Little,
    /// Plain loops, of others it could not be shown that they read and write what they should.
    Proven,
    /// The fewest operations, with no more stored than there is room for.
    Fits {
        /// What is stored.
        stored: f64,
        /// What may be.
        room: f64,
    },
    /// Fewer elements, since the fewest operations would store more than there is room for.
    Leaner {
        /// What is stored.
        stored: f64,
        /// What the fewest operations would store.
        fast: f64,
        /// What may be stored.
        room: f64,
    },
    /// The fewest operations, since the lean candidate stores no less.
    NotLeaner {
        /// What is stored.
        stored: f64,
        /// What the lean candidate would store.
        lean: f64,
        /// What may be stored.
        room: f64,
    },
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Little => write!(f, "plain loops: there is little to do"),
            Choice::Proven => write!(f, "plain loops: it could not be shown that others do what they should"),
            Choice::Fits { stored, room } => {
                write!(f, "fewest operations: {stored} elements are stored between groups, {room} may be")
            }
            Choice::Leaner { stored, fast, room } => write!(
                f,
                "fewer elements: {stored} are stored between groups; with the fewest operations it would be {fast}, \
                 and {room} may be"
            ),
            Choice::NotLeaner { stored, lean, room } => write!(
                f,
                "fewest operations: {stored} elements are stored between groups, where {room} may be; \
                 to avoid large parts would store {lean}"
            ),
        }
    }
}
