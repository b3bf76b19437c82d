//! Sizes to check a derivative at: small ones at which every access is evaluated somewhere, and which are not too much work.
//!
//! ```text
//! y[i] = if i < 10 then x[i]^2 else x[i]^3        N = 3 is small, but the second access is evaluated from N = 11 on: N = 12
//! y[n, g, o, t] = sum[c, k] …                     all sizes small and distinct would be 10^6 operations for each of 10^3
//!                                                 elements, some twenty times: 3 for the largest of them is enough
//! ```

use gradix::Int;
use gradix::derive::Derived;
use gradix::diagnostic::Result;
use gradix::domain::coverage::Coverage;
use gradix::domain::sizes::{self, Known};
use gradix::economise::work::{elements, work};
use gradix::program::affine::to_f64;
use gradix::program::{ParamKind, Places, Program, TensorId};

use crate::array::element_count;
use crate::gradient::{carried, free, shape};

/// How often sizes are doubled, at most.
pub(super) const ENLARGEMENTS: usize = 3;
/// The most operations for all elements changed once, each of which is changed some twenty times: some seconds on the vm.
const MOST_OPERATIONS: f64 = (1u64 << 26) as f64;
/// The most operations of the derivative, which is the oracle's: about a second.
const MOST_ORACLE_OPERATIONS: f64 = (1u64 << 24) as f64;

/// A program whose sizes are chosen, but for those that are given.
pub(super) struct Trials<'a> {
    program: &'a Program,
    gradient: &'a Derived,
    given: &'a [(String, Int)],
    places: &'a Places,
    coverage: Coverage,
    /// Whether the derivative is differentiated, too.
    second: bool,
}

impl<'a> Trials<'a> {
    pub(super) fn new(
        program: &'a Program,
        gradient: &'a Derived,
        given: &'a [(String, Int)],
        places: &'a Places,
        second: bool,
    ) -> Self {
        Trials { program, gradient, given, places, coverage: Coverage::of(program), second }
    }

    /// Small sizes; larger, where more is evaluated at them, and smaller, where that is too much work.
    pub(super) fn first(&self) -> Result<Vec<Int>> {
        let known = Known { given: self.given.to_vec(), shapes: Vec::new() };
        let small = self.lightened(sizes::choose(self.program, &known, self.places)?);
        Ok(self.covering(small))
    }

    /// All sizes twice as large, unless they are given, or that is too much work.
    pub(super) fn doubled(&self, sizes: &[Int]) -> Option<Vec<Int>> {
        self.changed(sizes, &|_, size| size * Int::from(2)).filter(|found| self.share(found) <= 1.0)
    }

    /// Larger sizes while accesses are found at them that are evaluated nowhere at smaller ones.
    fn covering(&self, mut sizes: Vec<Int>) -> Vec<Int> {
        let mut trial = sizes.clone();
        for _ in 0..ENLARGEMENTS {
            let missing = self.coverage.missing(&sizes);
            let Some(all) = self.doubled(&trial).filter(|_| missing > 0) else { break };
            let single = self.names().into_iter().filter_map(|own| {
                let twice = |name: &str, size: &Int| if name == own { size * Int::from(2) } else { size.clone() };
                self.changed(&trial, &twice)
            });
            let better = |found: &Vec<Int>| self.coverage.missing(found) < missing && self.share(found) <= 1.0;
            let found = single.chain([all.clone()]).find(better);
            trial = found.clone().unwrap_or(all);
            sizes = found.unwrap_or(sizes);
        }
        sizes
    }

    /// Smaller sizes while these are too much work: step by step what saves most, without empty tensors, and with all that is
    /// evaluated at these where that is possible.
    fn lightened(&self, mut sizes: Vec<Int>) -> Vec<Int> {
        while self.share(&sizes) > 1.0 {
            let key = |found: &Vec<Int>| (self.coverage.missing(found), self.share(found));
            let single = self.names().into_iter().filter_map(|own| {
                let less = |name: &str, size: &Int| if name == own { size - Int::ONE } else { size.clone() };
                self.changed(&sizes, &less)
            });
            // Of sizes that have to agree, none gets smaller alone.
            let all = || self.changed(&sizes, &|_, size| if *size > Int::ONE { size - Int::ONE } else { size.clone() });
            let mut smaller: Vec<Vec<Int>> = single.filter(|found| self.is_filled(found)).collect();
            if smaller.is_empty() {
                smaller.extend(all().filter(|found| self.is_filled(found)));
            }
            let found =
                smaller.into_iter().min_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal));
            match found {
                Some(found) => sizes = found,
                None => break,
            }
        }
        sizes
    }

    /// The sizes that may be chosen.
    fn names(&self) -> Vec<&'a str> {
        let free = self.program.params.iter().filter(|param| param.kind == ParamKind::Free);
        free.map(|param| param.name.as_str()).filter(|name| !self.is_given(name)).collect()
    }

    fn is_given(&self, name: &str) -> bool {
        self.given.iter().any(|(known, _)| known == name)
    }

    /// Other sizes, if the program can have them.
    fn changed(&self, sizes: &[Int], change: &dyn Fn(&str, &Int) -> Int) -> Option<Vec<Int>> {
        let new = |(name, size): (&str, &Int)| {
            (name.to_string(), if self.is_given(name) { size.clone() } else { change(name, size) })
        };
        let given = free(self.program, sizes).map(new).collect();
        let found = sizes::bind(self.program, &Known { given, shapes: Vec::new() }, self.places).ok()?;
        (found != sizes).then_some(found)
    }

    /// Whether no tensor is empty.
    fn is_filled(&self, sizes: &[Int]) -> bool {
        let mut tensors = (0..self.program.tensors.len() as u32).map(TensorId);
        tensors.all(|id| shape(self.program, sizes, id).is_some_and(|shape| !shape.contains(&0)))
    }

    /// The work at these sizes as a part of what is allowed.
    fn share(&self, sizes: &[Int]) -> f64 {
        let derivative = &self.gradient.program;
        let Ok(carried) = carried(self.program, sizes, derivative) else { return f64::INFINITY };
        let arguments = self.gradient.wrt.iter().map(|&id| count(self.program, sizes, id)).sum::<f64>();
        let first = arguments * operations(self.program, sizes) / MOST_OPERATIONS;
        let oracle = operations(derivative, &carried);
        let all = first.max(oracle / MOST_ORACLE_OPERATIONS);
        if !self.second {
            return all;
        }
        let arguments = derivative.inputs().map(|id| count(derivative, &carried, id)).sum::<f64>();
        all.max(arguments * oracle / MOST_OPERATIONS)
    }
}

/// About how many operations one evaluation takes; to read or write an element is one, too.
fn operations(program: &Program, sizes: &[Int]) -> f64 {
    let estimate: Vec<f64> = sizes.iter().map(to_f64).collect();
    let inputs = program.inputs().map(|id| count(program, sizes, id)).sum::<f64>();
    let each = program
        .definitions
        .iter()
        .map(|definition| work(&program.exprs, definition, &estimate).operations + elements(definition, &estimate));
    inputs + each.sum::<f64>()
}

/// The number of elements of a tensor.
fn count(program: &Program, sizes: &[Int], id: TensorId) -> f64 {
    let elements = shape(program, sizes, id).and_then(|shape| element_count(&shape));
    elements.map_or(f64::INFINITY, |elements| elements as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradix::derive::{Options, derive};

    /// The sizes by name.
    fn chosen(text: &str, given: &[(&str, i64)]) -> Vec<(String, i64)> {
        let ast = gradix::syntax::parse(text).unwrap();
        let gradix::Resolved { program, places } = gradix::resolve(&ast, &[]).unwrap();
        let gradient = derive(&program, &Options::default()).unwrap();
        let given: Vec<(String, Int)> = given.iter().map(|(name, size)| (name.to_string(), Int::from(*size))).collect();
        let sizes = Trials::new(&program, &gradient, &given, &places, false).first().unwrap();
        free(&program, &sizes).map(|(name, size)| (name.to_string(), i64::try_from(size).unwrap())).collect()
    }

    #[test]
    fn sizes_reach_what_small_ones_do_not() {
        let sizes = chosen("input x[N], w[M]; y[i in 0..N] = (if i < 10 then x[i]^2 else x[i]^3) * sum[m] w[m]", &[]);
        assert!(sizes[0].1 > 10 && sizes[1].1 < 10, "{sizes:?}");
    }

    #[test]
    fn sizes_are_small_where_there_is_much_to_do() {
        let text = "input x[B, G, C, H, W], w[G, O, C, K, L]\n\
            y[b, g, o, h, v] = sum[c, k, l] x[b, g, c, h + k, v + l] * w[g, o, c, k, l]";
        let sizes = chosen(text, &[]);
        let product = sizes.iter().map(|(_, size)| *size as f64).product::<f64>();
        assert!(product < 1e6 && sizes.iter().all(|(_, size)| *size >= 1), "{sizes:?}");
    }

    #[test]
    fn sizes_that_are_given_stay() {
        assert_eq!(
            chosen("input x[N]; y[i in 0..N] = if i < 10 then x[i]^2 else x[i]^3", &[("N", 4)]),
            [("N".into(), 4)]
        );
    }
}
