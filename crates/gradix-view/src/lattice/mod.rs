//! The points that read one element, at fixed sizes: what the paper's lattice figures show, ready to draw.
//!
//! In the space of the indices `α` there are the domain of the definition, the lattice `I·(β - c) + K·z` of all solutions,
//! and the solutions inside of the domain. The same in the space of `z`, where the domain is bounded by half-planes. With
//! one index that says little, and there are the elements of the argument instead, each with what reads it.

mod draw;
mod elements;
mod panel;
mod sizes;

pub use draw::draw;
pub use sizes::{known, sizes};

use std::collections::BTreeMap;

use gradix::Int;
use gradix::explain::AccessReport;
use gradix::program::print;
use gradix::program::{Affine, Atom, Constraint, Definition, ParamId, Program, Relation};

/// A point with integer coordinates.
pub type Point = Vec<i64>;

/// What there is to draw for one access.
#[derive(Clone, Debug)]
pub struct Lattice {
    /// The access and the element, in words.
    pub title: String,
    /// The names of the indices.
    pub names: Vec<String>,
    /// The one or two indices that are drawn; a third one is perpendicular to the drawing.
    pub axes: Vec<usize>,
    /// Every point of the domain.
    pub domain: Vec<Point>,
    /// Points around the domain, and inside of it, that would read the element.
    pub lattice: Vec<Point>,
    /// Those that are in the domain.
    pub solutions: Vec<Point>,
    /// The kernel and where it starts; `None` if a floor is among the unknowns, or with one index.
    pub kernel: Option<Kernel>,
    /// The elements of a vector or a matrix that one index reads; `None` if there are too many.
    pub elements: Option<Elements>,
}

/// What is read of an argument.
#[derive(Clone, Debug)]
pub struct Elements {
    /// The name of the argument.
    pub tensor: String,
    /// `β`: a name for each dimension.
    pub names: Vec<String>,
    /// How long each dimension is.
    pub extents: Point,
    /// The element that the lattice is about.
    pub chosen: Point,
    /// The elements that are read, and the values of the index that read them.
    pub readers: BTreeMap<Point, Vec<i64>>,
}

/// `α = origin + Σ z_k · columns_k`
#[derive(Clone, Debug)]
pub struct Kernel {
    /// `I·(β - c)`
    pub origin: Point,
    /// Where its columns are drawn from: there, or at a solution if that is far from the domain.
    pub start: Point,
    /// The columns of `K`.
    pub columns: Vec<Point>,
    /// The solutions in the domain.
    pub points: Vec<Point>,
    /// The domain: `Σ coefficients_k · z_k + constant >= 0`.
    pub rows: Vec<(Vec<i64>, i64)>,
}

/// The most points of a domain, and the most values of an index, that can be drawn legibly.
const MAX_POINTS: usize = 20_000;
const MAX_EXTENT: i64 = 40;
/// How far the lattice is shown outside of the domain.
const MARGIN: i64 = 1;
/// How far from the domain the window may reach for the start of the kernel.
const NEAR: i64 = 3;

impl Lattice {
    /// Whether an access has one, two or three indices.
    pub fn can_draw(program: &Program, report: &AccessReport) -> bool {
        let definition = program.definition_of(report.definition).expect("an access stands in a definition");
        !report.subscripts.is_empty() && (1..=3).contains(&definition.indices.len())
    }

    /// The lattice of the element `at`, by default the one that most points read; `None` if no point reads any.
    pub fn new(
        program: &Program,
        report: &AccessReport,
        sizes: &[Int],
        at: Option<&[i64]>,
    ) -> Result<Option<Self>, String> {
        let scene = Scene::new(program, report, sizes);
        let domain = scene.domain()?;
        let element = at.map(|at| scene.checked(at)).transpose()?;
        let Some(element) = element.or_else(|| scene.most_read(&domain)) else { return Ok(None) };
        let solutions: Vec<Point> =
            domain.iter().filter(|point| scene.is_read(point) && scene.element(point) == element).cloned().collect();
        let indices = &scene.definition.indices;
        let kernel = if indices.len() > 1 { scene.kernel(&element, &domain, &solutions) } else { None };
        let elements = if indices.len() > 1 { None } else { scene.elements(&element, &domain) };
        let axes = axes(indices.len(), &solutions);
        let lattice = scene.around(&domain, &axes, kernel.as_ref()).into_iter();
        let subscripts: Vec<String> = element.iter().map(i64::to_string).collect();
        Ok(Some(Lattice {
            title: format!("{} = {}[{}]", report.access, program[report.tensor].name, subscripts.join(", ")),
            names: indices.iter().map(|index| index.name.clone()).collect(),
            axes,
            lattice: lattice.filter(|point| scene.element(point) == element).collect(),
            domain,
            solutions,
            kernel,
            elements,
        }))
    }
}

/// An access at fixed sizes.
struct Scene<'a> {
    program: &'a Program,
    definition: &'a Definition,
    report: &'a AccessReport,
    sizes: &'a [Int],
}

impl<'a> Scene<'a> {
    fn new(program: &'a Program, report: &'a AccessReport, sizes: &'a [Int]) -> Self {
        let definition = program.definition_of(report.definition).expect("an access stands in a definition");
        Scene { program, definition, report, sizes }
    }

    fn value(&self, affine: &Affine, point: &[i64]) -> i64 {
        let value = affine.evaluate(&|atom| match atom {
            Atom::Index(position) => point.get(*position as usize).copied().unwrap_or(0).into(),
            Atom::Param(ParamId(param)) => self.sizes[*param as usize].clone(),
            Atom::Floor(..) => Int::ZERO,
        });
        i64::try_from(&value).unwrap_or(i64::MAX)
    }

    fn holds(&self, constraint: &Constraint, point: &[i64]) -> bool {
        let value = self.value(&constraint.affine, point);
        match constraint.relation {
            Relation::NonNegative => value >= 0,
            Relation::Zero => value == 0,
        }
    }

    fn element(&self, point: &[i64]) -> Point {
        self.report.subscripts.iter().map(|subscript| self.value(subscript, point)).collect()
    }

    /// Whether the conditions around the access let it be evaluated.
    fn is_read(&self, point: &[i64]) -> bool {
        self.report.cases.iter().any(|case| case.guard.iter().all(|constraint| self.holds(constraint, point)))
    }

    fn domain(&self) -> Result<Vec<Point>, String> {
        let too_large = || {
            let access = &self.report.access;
            format!("the domain of {access} is too large to draw\nhelp: give smaller sizes")
        };
        let mut points: Vec<Point> = vec![Vec::new()];
        for index in &self.definition.indices {
            let mut longer = Vec::new();
            for point in &points {
                let low = index.range.low.iter().map(|bound| self.value(bound, point)).max().unwrap_or(0);
                let high = index.range.high.iter().map(|bound| self.value(bound, point)).min().unwrap_or(-1);
                if high.saturating_sub(low) >= MAX_EXTENT {
                    return Err(too_large());
                }
                longer.extend((low..=high).map(|value| [point.as_slice(), &[value]].concat()));
                if longer.len() > MAX_POINTS {
                    return Err(too_large());
                }
            }
            points = longer;
        }
        let rest = || self.definition.conditions.iter().chain(&self.definition.assumptions);
        points.retain(|point| rest().all(|constraint| self.holds(constraint, point)));
        Ok(points)
    }

    fn checked(&self, at: &[i64]) -> Result<Point, String> {
        let tensor = &self.program[self.report.tensor];
        if at.len() != tensor.rank {
            return Err(format!(
                "'{}' has {} dimensions, but the element has {} indices",
                tensor.name,
                tensor.rank,
                at.len()
            ));
        }
        let outside =
            tensor.extents.iter().zip(at).find(|(extent, index)| !(0..self.value(extent, &[])).contains(*index));
        match outside {
            Some((extent, index)) => {
                let text = print::affine(&self.program.params, &[], extent);
                Err(format!(
                    "{index} is outside of '{}', whose extent {text} is {}",
                    tensor.name,
                    self.value(extent, &[])
                ))
            }
            None => Ok(at.to_vec()),
        }
    }

    /// The extents of the tensor that is read.
    fn extents(&self) -> Point {
        self.program[self.report.tensor].extents.iter().map(|extent| self.value(extent, &[])).collect()
    }

    /// The element that most points read; of several, the one in the middle.
    fn most_read(&self, domain: &[Point]) -> Option<Point> {
        let mut counts: BTreeMap<Point, usize> = BTreeMap::new();
        for point in domain.iter().filter(|point| self.is_read(point)) {
            *counts.entry(self.element(point)).or_default() += 1;
        }
        let most = counts.values().copied().max()?;
        let mut elements: Vec<Point> = counts.into_iter().filter(|(_, count)| *count == most).map(|(e, _)| e).collect();
        Some(elements.swap_remove(elements.len() / 2))
    }

    /// What the index reads.
    fn elements(&self, chosen: &[i64], domain: &[Point]) -> Option<Elements> {
        let (extents, values) = (self.extents(), || domain.iter().map(|point| point[0]));
        let legible = match extents.as_slice() {
            // They share an axis with the index.
            [extent] => (values().max()?.max(*extent)).saturating_sub(values().min()?.min(0)) <= 2 * MAX_EXTENT,
            [_, _] => extents.iter().all(|extent| *extent <= MAX_EXTENT),
            _ => false,
        };
        let mut readers: BTreeMap<Point, Vec<i64>> = BTreeMap::new();
        for point in domain.iter().filter(|point| self.is_read(point)) {
            readers.entry(self.element(point)).or_default().push(point[0]);
        }
        let (tensor, names) = (self.program[self.report.tensor].name.clone(), self.report.element.clone());
        legible.then_some(Elements { tensor, names, extents, chosen: chosen.to_vec(), readers })
    }

    fn kernel(&self, element: &[i64], domain: &[Point], solutions: &[Point]) -> Option<Kernel> {
        if !self.report.floors.is_empty() {
            return None;
        }
        let solution = &self.report.solution;
        let offset = self.element(&vec![0; self.definition.indices.len()]);
        let right: Vec<Int> =
            element.iter().zip(&offset).map(|(element, offset)| Int::from(element - offset)).collect();
        let origin = small(&solution.particular(&right)?)?;
        let columns = (0..solution.kernel.columns()).map(|k| small(&solution.kernel.column(k)));
        let columns: Vec<Point> = columns.collect::<Option<_>>()?;
        let inverse = gradix_int::solve(&solution.kernel);
        let within = |point: &Point| {
            let offset: Vec<Int> = point.iter().zip(&origin).map(|(a, b)| Int::from(a - b)).collect();
            small(&inverse.particular(&offset)?)
        };
        let points = solutions.iter().map(within).collect::<Option<_>>()?;
        let rows = self.inequalities().iter().map(|row| self.in_kernel(row, &origin, &columns)).collect();
        let start = if is_near(&origin, domain) { &origin } else { solutions.first()? };
        Some(Kernel { start: start.clone(), origin, columns, points, rows })
    }

    /// The inequalities of the domain, and of the conditions around the access if they are one case.
    fn inequalities(&self) -> Vec<Constraint> {
        let guard = if let [case] = &*self.report.cases { case.guard.clone() } else { Vec::new() };
        let linear = |constraint: &Constraint| {
            let floors = constraint.affine.terms().iter().any(|(atom, _)| match atom {
                Atom::Floor(inner, _) => inner.uses_indices(),
                Atom::Index(_) | Atom::Param(_) => false,
            });
            constraint.relation == Relation::NonNegative && !floors
        };
        self.definition.domain().into_iter().chain(guard).filter(linear).collect()
    }

    fn in_kernel(&self, row: &Constraint, origin: &[i64], columns: &[Point]) -> (Vec<i64>, i64) {
        let constant = self.value(&row.affine, origin);
        let moved = |column: &Point| {
            let point: Point = origin.iter().zip(column).map(|(a, b)| a + b).collect();
            self.value(&row.affine, &point) - constant
        };
        (columns.iter().map(moved).collect(), constant)
    }

    /// The points of the window that is drawn; a perpendicular index runs somewhat further.
    fn around(&self, domain: &[Point], axes: &[usize], kernel: Option<&Kernel>) -> Vec<Point> {
        let near: Vec<&Point> = domain.iter().chain(kernel.map(|kernel| &kernel.start)).collect();
        let mut points: Vec<Point> = vec![Vec::new()];
        for position in 0..self.definition.indices.len() {
            let values = || near.iter().map(|point| point[position]);
            let (low, high) = (values().min().unwrap_or(0), values().max().unwrap_or(0));
            let margin = if axes.contains(&position) { MARGIN } else { high - low + MARGIN };
            let longer = points.iter().flat_map(|point| {
                (low - margin..=high + margin).map(move |value| [point.as_slice(), &[value]].concat())
            });
            points = longer.collect();
        }
        points
    }
}

/// Whether a point is inside of the box around the others, or a few steps away.
fn is_near(point: &[i64], others: &[Point]) -> bool {
    point.iter().enumerate().all(|(position, value)| {
        let values = || others.iter().map(|other| other[position]);
        let (low, high) = (values().min().unwrap_or(0), values().max().unwrap_or(0));
        (low - NEAR..=high + NEAR).contains(value)
    })
}

fn small(values: &[Int]) -> Option<Point> {
    values.iter().map(|value| i64::try_from(value).ok()).collect()
}

/// The two indices that keep most solutions apart, or the only one.
fn axes(count: usize, solutions: &[Point]) -> Vec<usize> {
    let apart = |axes: &Vec<usize>| {
        let mut seen: Vec<Point> =
            solutions.iter().map(|point| axes.iter().map(|&axis| point[axis]).collect()).collect();
        seen.sort();
        seen.dedup();
        seen.len()
    };
    let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| vec![a, b])).collect::<Vec<_>>();
    pairs.into_iter().rev().max_by_key(apart).unwrap_or_else(|| vec![0])
}
