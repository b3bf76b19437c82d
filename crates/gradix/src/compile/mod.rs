//! From a program to verified loops: every pass behind the derivative, in a row.
//!
//! ```text
//! Program ─scan→ Program ─waves→ Program ─divide→ parts ─join→ Verified
//!                                                 │
//!                                                 └─economise→ Program ─arrange→ Program ─schedule→ Schedule ─lower→ Nest ─verify→ Verified
//! ```
//!
//! A program without recurrences is a single part. Each part is made in the ways that come into question, its
//! candidates; what was chosen has its reason as a [`Choice`].

mod candidates;
mod compiled;

pub use compiled::{Choice, Compiled, CompiledPart, Stage};

use crate::diagnostic::Diagnostic;
use crate::divide::{Divided, divide, levels, with_fewer_launches};
use crate::domain::estimate::estimate;
use crate::economise::{elements_once, is_little, repeats_once};
use crate::nest::join::join;
use crate::nest::verify::Verified;
use crate::program::{ParamId, Program};
use crate::scalar::Real;
use crate::scan::scan;
use crate::schedule::Manner;
use crate::target::Target;
use crate::timings::timed;
use crate::transform::uncoil;
use crate::waves::waves;
use candidates::best;
use gradix_int::Int;

/// Compiles a program for elements of a type on a machine, with decisions that suit the sizes in `given` (for the first params; the
/// others are assumed) and loops that are right for all sizes.
///
/// ```
/// use gradix::nest::{Real, print};
/// use gradix::target::AVX512;
/// let ast = gradix::syntax::parse("input x[N, K], w[K]; y[i] = sum[k] x[i, k] * w[k]").unwrap();
/// let program = gradix::resolve(&ast, &[]).unwrap().program;
/// let compiled = gradix::compile(&program, &[1000.into(), 100.into()], Real::F64, &AVX512).unwrap();
/// assert_eq!(compiled.nest.kernels.len(), 1);
/// assert!(print(&compiled.nest).contains("sum k in 0..=K - 1 lanes"));
/// assert!(compiled.parts[0].choice.to_string().starts_with("fewest operations: "));
/// ```
pub fn compile(program: &Program, given: &[Int], real: Real, target: &Target) -> Result<Compiled, Diagnostic> {
    let little = is_little(program, given);
    let scanned = match little {
        true => program.clone(),
        false => timed("scan", || scan(&uncoil(program), &estimate(program, given)))?,
    };
    let scanned = with_fewer_launches(program, scanned, given, target)?;
    let divided = timed("divide", || {
        let sizes = estimate(&scanned, given);
        let once = repeats_once(&elements_once(&scanned, &sizes), &sizes);
        divide(&waves(&once, given, target)?, given, target)
    })?;
    let goal = Goal { given, real, target, little };
    let candidates = levels::candidates(&divided, given, target);
    let (made, items) = made(&divided, &candidates, goal)?;
    let inside = levels::chosen(&candidates, &items, &divided, given, target);
    let (parts, nest) = if inside == candidates { made } else { self::made(&divided, &inside, goal)?.0 };
    Ok(Compiled { scanned, parts, nest })
}

/// What code is made for.
#[derive(Clone, Copy)]
struct Goal<'a> {
    /// The first sizes.
    given: &'a [Int],
    real: Real,
    target: &'a Target,
    /// There is next to nothing to do.
    little: bool,
}

/// The parts, and their nests as one.
type Made = (Vec<CompiledPart>, Verified);

/// All parts, with the steps of some levels inside of kernels; and for which of these levels there are how many items.
fn made(divided: &Divided, inside: &[ParamId], goal: Goal<'_>) -> Result<(Made, Vec<(ParamId, f64)>), Diagnostic> {
    let (alone, mut parts, mut nests) = (levels::parts_inside(&divided.stages, inside), Vec::new(), Vec::new());
    for (number, part) in divided.parts.iter().enumerate() {
        let manner = match alone.contains(&number) {
            true => Manner::OneItem,
            false if goal.little => Manner::Plain,
            false => Manner::Shared,
        };
        let (part, nest) = best(&part.program, manner, goal)?;
        parts.push(part);
        nests.push(nest);
    }
    let (nest, items) = timed("join", || join(divided, nests, inside, &estimate(&divided.whole, goal.given)))
        .map_err(|what| Diagnostic::error("run", what))?;
    Ok(((parts, nest), items))
}
