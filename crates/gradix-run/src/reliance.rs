//! What code relies on about the sizes.
//!
//! Small sizes, such as those of a window or the number of channels, become part of the code, as in code written by
//! hand. One that changes from run to run is not one of them: from then on it is a variable. Sizes that only say where
//! the elements of arguments lie are never relied on: they are no measure of the work, and arrays that are views of larger
//! ones have them.

use gradix::program::ParamKind;
use gradix::{Assumed, Int, Program, assume, is_little};

/// Sizes up to this are small.
const SMALL: i64 = 64;

/// What is relied on about each size.
#[derive(Clone)]
pub struct Reliance {
    /// The sizes that code was made for.
    sizes: Vec<Int>,
    assumed: Vec<Assumed>,
    /// Which sizes have changed.
    changing: Vec<bool>,
    /// Which sizes definitions mention.
    mentioned: Vec<bool>,
}

impl Reliance {
    /// For the first sizes that are seen.
    pub fn on(program: &Program, sizes: &[Int]) -> Self {
        let (changing, mentioned) = (vec![false; sizes.len()], program.used_params([]));
        let mut reliance = Reliance { sizes: Vec::new(), assumed: Vec::new(), changing, mentioned };
        reliance.renew(program, sizes);
        reliance
    }

    /// For other sizes.
    pub fn renew(&mut self, program: &Program, sizes: &[Int]) {
        for (number, assumed) in self.assumed.iter().enumerate() {
            self.changing[number] |= matches!(assumed, Assumed::Exactly(value) if *value != sizes[number]);
        }
        // Code for little work is made quickly, and for all sizes.
        let is_little = is_little(program, sizes);
        let small = Int::from(SMALL);
        let assume = |((size, changes), mentioned): ((&Int, &bool), &bool)| match *size >= Int::ONE {
            _ if !mentioned => Assumed::Nothing,
            true if !is_little && !changes && *size <= small => Assumed::Exactly(size.clone()),
            true => Assumed::Positive,
            false => Assumed::Nothing,
        };
        self.assumed = sizes.iter().zip(&self.changing).zip(&self.mentioned).map(assume).collect();
        self.sizes = sizes.to_vec();
    }

    /// Whether it is true of these sizes. Code for a size of zero would be right for others, and slow.
    pub fn holds(&self, program: &Program, sizes: &[Int]) -> bool {
        let holds = |assumed: &Assumed, size: &Int| match assumed {
            Assumed::Nothing => *size < Int::ONE,
            Assumed::Positive => *size >= Int::ONE,
            Assumed::Exactly(value) => size == value,
        };
        let mut pairs = program.params.iter().zip(&self.mentioned).zip(self.assumed.iter().zip(sizes));
        // Sizes that follow from others are not relied on either.
        pairs.all(|((param, mentioned), (assumed, size))| {
            param.kind != ParamKind::Free || !mentioned || holds(assumed, size)
        })
    }

    /// The sizes that code was made for.
    pub fn sizes(&self) -> &[Int] {
        &self.sizes
    }

    /// The program for such sizes.
    pub fn program(&self, program: &Program) -> Program {
        assume(program, &self.assumed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradix::program::{Affine, ParamId};

    const TEXT: &str = "input x[N, K], w[K]; y[i] = sum[k] x[i, k] * w[k]";

    fn program() -> Program {
        gradix::syntax::parse(TEXT).and_then(|ast| gradix::resolve(&ast, &[])).unwrap().program
    }

    fn sizes(values: [i64; 2]) -> Vec<Int> {
        values.map(Int::from).to_vec()
    }

    #[test]
    fn small_sizes_are_part_of_the_code() {
        let program = program();
        let reliance = Reliance::on(&program, &sizes([5000, 7]));
        assert_eq!(reliance.assumed, [Assumed::Positive, Assumed::Exactly(7.into())]);
        let holds = |values| reliance.holds(&program, &sizes(values));
        assert!(holds([1, 7]) && !holds([5000, 8]) && !holds([0, 7]));
        let text = gradix::print(&reliance.program(&program)).unwrap();
        assert!(text.contains("input x[N, 7], w[7]"), "{text}");
    }

    #[test]
    fn a_size_that_changes_is_a_variable_from_then_on() {
        let program = program();
        let mut reliance = Reliance::on(&program, &sizes([5000, 7]));
        for next in [[5000, 8], [5000, 7]] {
            reliance.renew(&program, &sizes(next));
            assert_eq!(reliance.assumed, [Assumed::Positive, Assumed::Positive]);
        }
    }

    #[test]
    fn sizes_that_follow_from_others_are_not_relied_on() {
        let mut program = program();
        let shorter = Affine::param(ParamId(0)).shift(-4990);
        program.params[1].kind = ParamKind::Smallest(vec![shorter]);
        let reliance = Reliance::on(&program, &sizes([5000, 10]));
        assert!(reliance.holds(&program, &sizes([5001, 11])));
    }

    #[test]
    fn sizes_that_only_say_where_elements_lie_are_not_relied_on() {
        let text = "param N, E >= N, F; input x[E, F]; y[i in 0..N] = sum[k in 0..500] x[i, 0] * k";
        let program = gradix::syntax::parse(text).and_then(|ast| gradix::resolve(&ast, &[])).unwrap().program;
        let sizes = |values: [i64; 3]| values.map(Int::from).to_vec();
        let reliance = Reliance::on(&program, &sizes([5000, 6000, 3]));
        assert_eq!(reliance.assumed, [Assumed::Positive, Assumed::Nothing, Assumed::Nothing]);
        assert!(reliance.holds(&program, &sizes([5000, 7000, 4])) && !reliance.holds(&program, &sizes([0, 7000, 4])));
    }

    #[test]
    fn code_for_little_work_is_for_all_sizes() {
        let reliance = Reliance::on(&program(), &sizes([3, 7]));
        assert_eq!(reliance.assumed, [Assumed::Positive, Assumed::Positive]);
    }
}
