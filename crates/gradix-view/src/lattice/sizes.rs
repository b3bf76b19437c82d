//! Sizes for pictures: large enough that there is something to see, and small enough to see it.

use super::{Lattice, MAX_EXTENT, Point, Scene};
use gradix::diagnostic::Diagnostic;
use gradix::domain::sizes::{Known, choose};
use gradix::explain::AccessReport;
use gradix::program::Places;
use gradix::program::{ParamKind, Program};
use gradix::{Int, Result};

/// Sizes at which the accesses can be drawn: those that are given, and others such that indices have a handful of values and,
/// if possible, that there is the element `at`.
///
/// ```
/// let ast = gradix::syntax::parse("input x[N], w[K]\ny[i] = sum[k] x[2*i + k] * w[k]").unwrap();
/// let gradix::Resolved { program, places } = gradix::resolve(&ast, &[]).unwrap();
/// let reports = gradix::explain::explain(&program, None, None).unwrap();
/// let sizes = |given: &[(String, gradix::Int)]| gradix_view::explain::sizes(&program, &reports, given, None, &places);
/// assert_eq!(sizes(&[]).unwrap(), [16.into(), 6.into()]);
/// assert_eq!(sizes(&[("K".into(), 3.into())]).unwrap(), [14.into(), 3.into()]);
/// assert!(sizes(&[("M".into(), 3.into())]).is_err());
/// ```
pub fn sizes(
    program: &Program,
    reports: &[AccessReport],
    given: &[(String, Int)],
    at: Option<&[i64]>,
    places: &Places,
) -> Result<Vec<Int>> {
    let names = known(program, given)?;
    let open: Vec<&String> = names.iter().filter(|name| given.iter().all(|(other, _)| other != *name)).collect();
    let picture = Picture { reports: reports.iter().filter(|report| Lattice::can_draw(program, report)).collect(), at };
    let candidates = picture.candidates();
    let mut search = Search::new(program, given, places, picture)?;
    for value in &candidates {
        search.consider(open.iter().map(|name| ((*name).clone(), value.clone())).collect());
    }
    for _ in 0..ROUNDS {
        let before = search.least;
        for (name, value) in open.iter().flat_map(|name| candidates.iter().map(move |value| (*name, value))) {
            // The others as they are or, if that can't be, as they come.
            let one = (name.clone(), value.clone());
            let mut all = search.others(&open, name);
            all.push(one.clone());
            for other in &open {
                // A larger `L` in `x[i + 2*l]` wants a larger `N`.
                search.consider(all.iter().filter(|(name, _)| name != *other || *name == one.0).cloned().collect());
            }
            let _ = search.consider(all) || search.consider(vec![one]);
        }
        if search.least == before {
            break;
        }
    }
    Ok(search.best)
}

/// The best sizes so far.
struct Search<'a> {
    program: &'a Program,
    given: &'a [(String, Int)],
    places: &'a Places,
    picture: Picture<'a>,
    best: Vec<Int>,
    least: i64,
}

impl<'a> Search<'a> {
    fn new(program: &'a Program, given: &'a [(String, Int)], places: &'a Places, picture: Picture<'a>) -> Result<Self> {
        let best = choose(program, &Known { given: given.to_vec(), shapes: Vec::new() }, places)?;
        let least = picture.cost(program, &best);
        Ok(Search { program, given, places, picture, best, least })
    }

    /// Takes sizes with these values if they are better; tells whether there are any.
    fn consider(&mut self, values: Vec<(String, Int)>) -> bool {
        let known = Known { given: [self.given, &values].concat(), shapes: Vec::new() };
        let Ok(sizes) = choose(self.program, &known, self.places) else { return false };
        let cost = self.picture.cost(self.program, &sizes);
        if cost < self.least {
            (self.best, self.least) = (sizes, cost);
        }
        true
    }

    /// The sizes as they are, but for one.
    fn others(&self, open: &[&String], but: &String) -> Vec<(String, Int)> {
        let sizes = self.program.params.iter().zip(&self.best);
        let sizes = sizes.filter(|(param, _)| open.contains(&&param.name) && param.name != *but);
        sizes.map(|(param, size)| (param.name.clone(), size.clone())).collect()
    }
}

/// How often every size is looked at, at most.
const ROUNDS: usize = 4;
/// What is tried for a size.
const VALUES: [i64; 15] = [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 24, 32];
/// Few enough values of an index, or elements in a row, to count them, and enough to see how they go on.
const HANDFUL: std::ops::RangeInclusive<i64> = 6..=8;
const MANY: i64 = 16;
/// The cost of an element that isn't there, and of a picture that can't be drawn.
const OUTSIDE: i64 = 1_000;
const IMPOSSIBLE: i64 = 1_000_000;

/// The names of all sizes that can be given; refuses others.
pub fn known(program: &Program, given: &[(String, Int)]) -> Result<Vec<String>> {
    let free = program.params.iter().filter(|param| param.kind == ParamKind::Free);
    let names: Vec<String> = free.map(|param| param.name.clone()).collect();
    let list = if names.is_empty() { "none".into() } else { names.join(", ") };
    let unknown = given.iter().filter(|(name, _)| !names.contains(name)).map(|(name, _)| {
        Diagnostic::error("unknown-name", format!("the program has no size '{name}'")).hint(format!("there is {list}"))
    });
    let unknown: Vec<Diagnostic> = unknown.collect();
    if unknown.is_empty() { Ok(names) } else { Err(unknown) }
}

/// What is to be drawn.
struct Picture<'a> {
    reports: Vec<&'a AccessReport>,
    at: Option<&'a [i64]>,
}

impl Picture<'_> {
    fn candidates(&self) -> Vec<Int> {
        let enough = self.at.unwrap_or_default().iter().map(|index| index.saturating_add(1));
        let enough = enough.filter(|size| (1..=2 * MAX_EXTENT).contains(size));
        VALUES.into_iter().chain(enough).filter(|_| !self.reports.is_empty()).map(Int::from).collect()
    }

    /// How little can be seen at some sizes. Of equal sizes, one may be mistaken for the other.
    fn cost(&self, program: &Program, sizes: &[Int]) -> i64 {
        let free: Vec<&Int> = program
            .params
            .iter()
            .zip(sizes)
            .filter(|(param, _)| param.kind == ParamKind::Free)
            .map(|(_, size)| size)
            .collect();
        let equal = (0..free.len()).filter(|&p| free[..p].contains(&free[p])).count() as i64;
        let cost = |report: &&AccessReport| cost(&Scene::new(program, report, sizes), self.at);
        self.reports.iter().map(cost).sum::<i64>() + equal
    }
}

fn cost(scene: &Scene, at: Option<&[i64]>) -> i64 {
    let Ok(domain) = scene.domain() else { return IMPOSSIBLE };
    let extents = scene.extents();
    let beyond =
        at.unwrap_or_default().iter().zip(&extents).map(|(index, extent)| match index.saturating_sub(*extent) {
            inside if inside < 0 => 0,
            beyond => beyond.saturating_add(OUTSIDE).min(IMPOSSIBLE / 10),
        });
    let indices = (0..scene.definition.indices.len()).map(|index| unfit(length(&domain, index)));
    let elements = extents.iter().map(|extent| (extent - MANY).max(0));
    // With more indices than one, elements are not drawn.
    beyond.sum::<i64>() + indices.sum::<i64>() + if scene.definition.indices.len() == 1 { elements.sum() } else { 0 }
}

/// From the least to the greatest value of an index.
fn length(domain: &[Point], index: usize) -> i64 {
    let values = || domain.iter().map(|point| point[index]);
    values().max().map_or(0, |high| high + 1 - values().min().unwrap_or(high))
}

/// Squares, because two small steps in opposite directions are better than a large one.
fn unfit(length: i64) -> i64 {
    let off = (HANDFUL.start() - length).max(length - HANDFUL.end()).max(0);
    off * off
}
