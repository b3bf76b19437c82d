//! Inputs that lie in memory otherwise than dense and row-major.
//!
//! A transposed, sliced, stepped, reversed or broadcast array is a view of a dense, row-major *storage* array: each
//! subscript of the storage is affine in the subscripts of the view. Accesses are affine too, so that a program on views
//! is a program on their storage,
//!
//! ```text
//! y[i] = sum[j] x[i, j]           for x that is transposed in memory:
//! y[i] = sum[j] x[j, i]           with  x_stored_1 >= M,  x_stored_2 >= N
//! ```
//!
//! and everything that is known about programs holds for it: it is printed, derived, scheduled and checked like any other.

use crate::domain::system;
use crate::program::expr::{Rewriter, Rules};
use crate::program::{
    Affine, Constraint, ExprId, Exprs, Param, ParamId, ParamKind, Program, TensorId, TensorKind, names, verify,
};
use crate::simplify::tidy;
use gradix_int::Int;
use std::collections::HashMap;

/// Where the elements of a tensor of shape `n_0, n_1, …` lie in its storage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Layout {
    /// For each dimension of the storage what its subscript is: the sum over pairs of a dimension `j` of the tensor and
    /// a coefficient `c` other than 0, of `c·i_j` where `c` is positive and of `|c|·(n_j - 1 - i_j)` where it is
    /// negative. Without pairs it is 0. A dimension of the tensor that occurs nowhere is broadcast, or of length 1.
    pub dimensions: Vec<Vec<(usize, i64)>>,
}

impl Layout {
    /// The least extents of the storage of a tensor of this shape. If the tensor is empty nothing of it is read, and these
    /// are large enough all the same.
    pub fn extents(&self, shape: &[usize]) -> Vec<usize> {
        let reach = |&(j, c): &(usize, i64)| (c.unsigned_abs() as usize).saturating_mul(shape[j].saturating_sub(1));
        self.dimensions.iter().map(|pairs| pairs.iter().map(reach).sum::<usize>() + 1).collect()
    }

    /// The least extents of the storage: one more than the largest subscripts.
    fn least(&self, shape: &[Affine]) -> Vec<Affine> {
        let reach = |sum: Affine, &(j, c): &(usize, i64)| sum.add_scaled(&c.unsigned_abs().into(), &shape[j].shift(-1));
        self.dimensions.iter().map(|pairs| pairs.iter().fold(Affine::constant(1), reach)).collect()
    }

    /// The subscripts of the storage.
    fn subscripts(&self, shape: &[Affine], subscripts: &[Affine]) -> Vec<Affine> {
        let place = |sum: Affine, &(j, c): &(usize, i64)| {
            let forward = sum.add_scaled(&Int::from(c), &subscripts[j]);
            if c > 0 { forward } else { forward.add_scaled(&c.unsigned_abs().into(), &shape[j].shift(-1)) }
        };
        self.dimensions.iter().map(|pairs| pairs.iter().fold(Affine::default(), place)).collect()
    }
}

/// The program on the storage of some of its inputs. An input keeps its name; each of its extents is a new size,
/// `x_stored_1`, … (or the next free name), of which is known that every element of the view lies inside:
/// `extent >= Σ |c|·(n_j - 1) + 1`. Where the view is empty, any extents for which that holds will do.
///
/// All other sizes stay. Those that the shape of an input told are given by name from now on, and what is asked of them
/// is asked of the program without storage: an index that leaves the view need not leave the storage. So sizes are bound
/// for `program` first, and then, together with the extents of the storage, for the new one.
///
/// Of its storage, the program reads what it reads of the view, and code that is made of it touches nothing past the last
/// element of the view. (The single element of a storage without dimensions may be read also where the view is empty.)
///
/// ```
/// use gradix::Layout;
/// let ast = gradix::syntax::parse("input x[N]\ny[i] = x[i] * i").unwrap();
/// let program = gradix::resolve(&ast, &[]).unwrap().program;
/// // The last column of a matrix, from its end to its start.
/// let layout = Layout { dimensions: vec![vec![(0, -1)], vec![]] };
/// let text = gradix::print(&gradix::store(&program, &[(program.tensor("x").unwrap(), layout)])).unwrap();
/// assert!(text.contains("param N, x_stored_1 >= N, x_stored_2 >= 1\ninput x[x_stored_1, x_stored_2]\n"), "{text}");
/// assert!(text.contains("y[i in 0..N] = x[N - i - 1, 0] * i"), "{text}");
/// ```
pub fn store(program: &Program, layouts: &[(TensorId, Layout)]) -> Program {
    let mut out = program.clone();
    let mut taken = names::taken(program);
    for (tensor, layout) in layouts {
        debug_assert_eq!(program[*tensor].kind, TensorKind::Input);
        let least = layout.least(&program[*tensor].extents).into_iter().zip(1..);
        let name = |number: usize| format!("{}_stored_{number}", program[*tensor].name);
        let extents = least.map(|(least, number)| add_size(&mut out, names::fresh(&name(number), &mut taken), least));
        let extents: Vec<Affine> = extents.collect();
        let record = &mut out.tensors[tensor.0 as usize];
        (record.rank, record.extents) = (extents.len(), extents);
    }
    let views = layouts.iter().map(|(tensor, layout)| (*tensor, (layout, program[*tensor].extents.as_slice())));
    let mut rules = Stored { views: views.collect() };
    let mut rewriter = Rewriter::default();
    for definition in &mut out.definitions {
        definition.body = rewriter.rewrite(&mut out.exprs, definition.body, &mut rules);
    }
    tidy::tidy(&mut out, false);
    debug_assert_eq!(verify(&out), Ok(()));
    out
}

/// A new free size of at least this, and of at least 0.
fn add_size(program: &mut Program, name: String, least: Affine) -> Affine {
    let size = Affine::param(ParamId(program.params.len() as u32));
    program.params.push(Param { name, kind: ParamKind::Free });
    program.facts.push(Constraint::at_most(least, size.clone()));
    let sign = Constraint::non_negative(size.clone());
    if !system::implies(&program.size_context(), &sign) {
        program.facts.push(sign);
    }
    size
}

/// Reads views by way of their storage; each has a layout and a shape.
struct Stored<'a> {
    views: HashMap<TensorId, (&'a Layout, &'a [Affine])>,
}

impl Rules for Stored<'_> {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        match self.views.get(&tensor) {
            Some((layout, shape)) => exprs.access(tensor, layout.subscripts(shape, &subscripts)),
            None => exprs.access(tensor, subscripts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::sizes::{Known, bind};
    use crate::program::Places;
    use crate::program::print;

    fn resolve(text: &str) -> Program {
        let resolved = crate::syntax::parse(text).and_then(|ast| crate::resolve(&ast, &[]));
        resolved.unwrap_or_else(|errors| panic!("{errors:?}\n{text}")).program
    }

    fn stored(text: &str, dimensions: &[&[(usize, i64)]]) -> Program {
        let program = resolve(text);
        let layout = Layout { dimensions: dimensions.iter().map(|pairs| pairs.to_vec()).collect() };
        store(&program, &[(program.inputs().next().unwrap(), layout)])
    }

    /// The program with its first input stored like this as text, which means the same as the program itself.
    fn check(text: &str, dimensions: &[&[(usize, i64)]], expected: &str) {
        let stored = stored(text, dimensions);
        let printed = print::print(&stored).unwrap();
        assert_eq!(printed.trim(), expected.trim());
        assert_eq!(resolve(&printed), stored, "{printed}");
    }

    #[test]
    fn transposed_arrays_are_read_across() {
        check(
            "input x[N, M]\ny[i] = sum[j in 0..=i] x[i, j]",
            &[&[(1, 1)], &[(0, 1)]],
            "param N, M >= N, x_stored_1 >= M, x_stored_2 >= N\ninput x[x_stored_1, x_stored_2]\n\
             y[i in 0..N] = sum[j in 0..=i] x[j, i]",
        );
    }

    #[test]
    fn windows_share_a_dimension() {
        check(
            "input x[N, K]\ny[i] = max[k] x[i, k]",
            &[&[(0, 2), (1, 1)]],
            "param N, K, x_stored_1 >= 2*N + K - 2 >= 0\ninput x[x_stored_1]\n\
             y[i in 0..N] = max[k in 0..K] x[2*i + k]",
        );
    }

    #[test]
    fn what_is_broadcast_has_no_dimension() {
        check("input x[N]\ny[i] = x[i] * i", &[], "param N\ninput x\ny[i in 0..N] = x * i");
    }

    #[test]
    fn reversed_arrays_are_read_from_their_end() {
        check(
            "input x[N - 2], w[N]\ny[i] = pad(x[i - 1], 0) * w[i]",
            &[&[(0, -3)]],
            "param N, x_stored_1 >= 3*N - 8 >= 0\ninput x[x_stored_1], w[N]\n\
             y[i] = (if i >= 1 and i <= N - 2 then x[3*N - 3*i - 6] else 0) * w[i]",
        );
    }

    #[test]
    fn extents_that_follow_from_others_bound_those_of_the_storage() {
        check(
            "param N, M\ninput x[min(N, M)]\ny[i] = x[i]^2",
            &[&[(0, 1)], &[]],
            "param N, M, x_stored_1 >= 0 >= min(N, M), x_stored_2 >= 1\ninput x[x_stored_1, x_stored_2]\n\
             y[i in 0..min(N, M)] = x[i, 0]^2",
        );
    }

    #[test]
    fn names_that_are_taken_are_left_alone() {
        let text = print::print(&stored("input x[N], x_stored_1\ny[i] = x[i] * x_stored_1", &[&[(0, 1)]])).unwrap();
        assert!(text.contains("input x[x_stored_1_1], x_stored_1"), "{text}");
    }

    #[test]
    fn all_sizes_down_to_zero_can_be_bound() {
        let dimensions: [&[(usize, i64)]; 3] = [&[(0, 2), (1, -1)], &[(2, 3)], &[]];
        let program = stored("input x[N - 2, M, N]\ny = sum[i, j, k] x[i, j, k]", &dimensions);
        let layout = Layout { dimensions: dimensions.iter().map(|pairs| pairs.to_vec()).collect() };
        for (n, m) in (0..5).flat_map(|n| (0..4).map(move |m| (n, m))) {
            let extents = layout.extents(&[usize::saturating_sub(n, 2), m, n]);
            let extents = extents.iter().zip(1..).map(|(extent, number)| (format!("x_stored_{number}"), *extent));
            let given = [("N".to_string(), n), ("M".to_string(), m)].into_iter().chain(extents);
            let given = given.map(|(name, size)| (name, Int::from(size))).collect();
            let bound = bind(&program, &Known { given, shapes: Vec::new() }, &Places::default());
            assert!(bound.is_ok(), "N = {n}, M = {m}: {bound:?}");
        }
    }

    #[test]
    fn every_access_is_known_to_stay_inside() {
        let text = "input x[N, M]\ny[i] = sum[j in 0..M - 1] x[N - 1 - i, j + 1] * x[i // 2, j]";
        for dimensions in [[&[(1, 1)][..], &[(0, -1)]], [&[(0, 5), (1, 2)], &[]], [&[(0, -2)], &[(1, -3)]]] {
            let mut program = stored(text, &dimensions);
            let context = program.size_context();
            for definition in program.definitions.clone() {
                let domain = [context.as_slice(), &definition.domain()].concat();
                assert!(crate::domain::bounds::stays_inside(&mut program, definition.body, &domain), "{dimensions:?}");
            }
        }
    }
}
