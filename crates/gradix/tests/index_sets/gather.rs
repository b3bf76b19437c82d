//! `gather`: the points of a definition that read an element are those of the solved form, for every element.

use crate::points::{all_hold, of_definition, over, value};
use crate::random::{Noise, Scope, program, shown, sizes};
use crate::{Verdict, check_systems};
use gradix::derive::gather::{Gathered, Spaces, gather};
use gradix::program::{Affine, Constraint, Definition, ParamId, Range};

#[test]
fn the_solved_form_is_the_points_that_read_an_element() {
    check_systems("gather", 20_000, |noise| {
        let floors = noise.below(5);
        let program = program(noise, floors);
        let case = Case::random(noise, &program.definitions[0], program.params.len(), floors);
        let sizes = sizes(&program);
        case.check(&program.facts, &sizes)
    });
}

struct Case<'a> {
    definition: &'a Definition,
    guard: Vec<Constraint>,
    subscripts: Vec<Affine>,
    /// The ranges of batch indices, then those of the element.
    known: Vec<Range>,
    spaces: Spaces,
}

impl<'a> Case<'a> {
    fn random(noise: &mut Noise, definition: &'a Definition, params: usize, floors: usize) -> Self {
        let own = definition.indices.len();
        let (batch, rank) = (usize::from(noise.percent(15)), noise.pick(&[1, 1, 1, 2]));
        let guard = Scope::new(0..own + batch, params, floors).constraints(noise, 2);
        let mut scope = Scope::new(0..own, params, floors);
        let subscripts = (0..rank).map(|_| if noise.percent(20) { Affine::index(0) } else { scope.affine(noise) });
        let subscripts = subscripts.collect();
        let extent = |_| match params > 0 && noise.percent(40) {
            true => Affine::param(ParamId(0)).shift(noise.between(0, 2)),
            false => Affine::constant(noise.between(1, 6)),
        };
        let known = (0..batch + rank).map(extent).map(Range::extent).collect();
        Case { definition, guard, subscripts, known, spaces: Spaces { own, batch, rank } }
    }

    fn check(&self, facts: &[Constraint], sizes: &[Vec<i64>]) -> Verdict {
        let ranges = self.known.iter().enumerate().flat_map(|(p, r)| r.constraints(p).collect::<Vec<_>>());
        let context: Vec<Constraint> = facts.iter().cloned().chain(ranges).collect();
        let Ok(gathered) = gather(self.definition, &self.guard, &self.subscripts, self.spaces, &context) else {
            return Verdict::Refused;
        };
        for sizes in sizes {
            let points = of_definition(self.definition, sizes);
            for element in over(&self.known, &[], sizes) {
                let expected = self.readers(&points, &element, sizes);
                let found = gathered.as_ref().map_or(Ok(Vec::new()), |g| self.solved(g, &element, sizes));
                if found.as_ref() != Ok(&expected) {
                    return Verdict::Wrong(self.report(&gathered, &element, sizes, &expected, &found));
                }
            }
        }
        Verdict::Right
    }

    /// The points that read the element.
    fn readers(&self, points: &[Vec<i64>], element: &[i64], sizes: &[i64]) -> Vec<Vec<i64>> {
        let (batch, read) = element.split_at(self.spaces.batch);
        let with_batch = points.iter().map(|point| [point.as_slice(), batch].concat());
        let reads = |point: &Vec<i64>| {
            let subscripts = self.subscripts.iter().map(|s| value(s, point, sizes));
            all_hold(&self.guard, point, sizes) && subscripts.eq(read.iter().copied())
        };
        let mut readers: Vec<Vec<i64>> = with_batch.filter(reads).collect();
        readers.sort();
        readers
    }

    /// The points that the solved form gives; a message if it is not of the form that it promises.
    fn solved(&self, gathered: &Gathered, element: &[i64], sizes: &[i64]) -> Result<Vec<Vec<i64>>, &'static str> {
        let free = |c: &Constraint| (element.len()..64).any(|p| c.affine.uses_index(p));
        if gathered.outer.iter().any(free) {
            return Err("a condition on the element mentions a free index");
        }
        if !gathered.conditions.iter().all(free) {
            return Err("a condition on free indices mentions none");
        }
        if !all_hold(&gathered.outer, element, sizes) {
            return Ok(Vec::new());
        }
        let mut points = over(&gathered.ranges, element, sizes);
        points.retain(|point| all_hold(&gathered.conditions, point, sizes));
        let mapped = |point: &Vec<i64>| gathered.map.iter().map(|a| value(a, point, sizes)).collect();
        let mut points: Vec<Vec<i64>> = points.iter().map(mapped).collect();
        points.sort();
        Ok(points)
    }

    fn report(
        &self,
        gathered: &Option<Gathered>,
        element: &[i64],
        sizes: &[i64],
        expected: &[Vec<i64>],
        found: &Result<Vec<Vec<i64>>, &'static str>,
    ) -> String {
        let subscripts: Vec<String> = self.subscripts.iter().map(Affine::to_string).collect();
        format!(
            "domain\n{}guard\n{}subscripts {subscripts:?}\nelement {element:?}, sizes {sizes:?}\nexpected {expected:?}\nfound {found:?}\n{gathered:#?}",
            shown(&self.definition.domain()),
            shown(&self.guard),
        )
    }
}
