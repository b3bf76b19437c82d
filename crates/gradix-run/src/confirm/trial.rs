//! Small sizes to try a program at.

use crate::gradient;
use gradix::Int;
use gradix::domain::sizes::{Known, bind, choose};
use gradix::program::Places;
use gradix::program::{ParamKind, Program};

/// Sizes that the program accepts, each once: equal and distinct ones up to 6; then, for programs that want certain sizes,
/// each size in turn from 1 to 4 with others that go with it; and last what [`choose`] takes by
/// itself, and a little more.
///
/// They are found one by one, as they are asked for.
pub fn trials(program: &Program) -> impl Iterator<Item = Vec<Int>> {
    let free: Vec<&str> =
        program.params.iter().filter(|p| p.kind == ParamKind::Free).map(|p| p.name.as_str()).collect();
    let count = free.len();
    let names = free.clone();
    let patterns = PATTERNS.iter().map(move |pattern| {
        let given = names.iter().zip(pattern.iter().cycle());
        given.map(|(name, size)| (name.to_string(), Int::from(*size))).collect::<Vec<_>>()
    });
    let bound = patterns.filter_map(|given| bind(program, &known(given), &Places::default()).ok());
    let single = (1..=4).flat_map(move |size| (0..count).map(move |place| (place, size)));
    let chosen = single.map(move |(place, size)| vec![(free[place].to_string(), Int::from(size))]);
    let chosen = chosen.filter_map(|given| choose(program, &known(given), &Places::default()).ok());
    let usual = std::iter::once_with(move || choose(program, &Known::default(), &Places::default()).ok()).flatten();
    let grown = usual.flat_map(move |sizes| {
        let more = move |by: i64| {
            let given = gradient::free(program, &sizes).map(|(name, size)| (name.to_string(), size + Int::from(by)));
            bind(program, &known(given.collect()), &Places::default()).ok()
        };
        (0..3).filter_map(more)
    });
    let mut seen = Vec::new();
    bound.chain(chosen).chain(grown).filter(move |sizes| {
        let new = !seen.contains(sizes);
        seen.push(sizes.clone());
        new
    })
}

/// Values that the sizes take in turn.
const PATTERNS: [&[i64]; 9] = [&[1], &[2], &[2, 3, 4], &[4, 2, 3], &[3, 4, 2], &[5, 2], &[2, 2, 6], &[4], &[6, 5, 4]];

fn known(given: Vec<(String, Int)>) -> Known {
    Known { given, shapes: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(text: &str) -> Vec<Vec<i64>> {
        let program = gradix::resolve(&gradix::syntax::parse(text).unwrap(), &[]).unwrap().program;
        let numbers = |sizes: Vec<Int>| sizes.iter().map(|size| i64::try_from(size).unwrap()).collect();
        trials(&program).map(numbers).collect()
    }

    #[test]
    fn sizes_are_small_and_distinct() {
        let all = tried("input x[N, M]; y[i, j] = x[i, j]");
        assert_eq!(all[..4], [[1, 1], [2, 2], [2, 3], [4, 2]]);
        assert!((0..all.len()).all(|a| (0..a).all(|b| all[a] != all[b])));
    }

    #[test]
    fn sizes_go_with_what_a_program_asks_for() {
        let large = tried("param N >= 8; input x[N]; y[i] = x[i]");
        assert!(large.len() >= 3 && large.iter().all(|sizes| (8..=20).contains(&sizes[0])), "{large:?}");
        assert_eq!(tried("input x[3]; y[i] = x[i]"), [Vec::<i64>::new()]);
    }
}
