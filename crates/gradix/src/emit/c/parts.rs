//! A long file in several, which compilers can read at the same time.

use super::super::print;
use super::super::tree::{Code, Operator, Routine, Value};
use super::outline::statements;
use super::{routines, text};
use crate::nest::{Nest, Real};
use std::collections::{BTreeSet, HashMap};

/// Fewer statements than this are compiled in about the time that it takes to start a compiler and to link what several make.
const MIN_STATEMENTS: usize = 400;
/// A function of the file's own that has as many is not compiled twice.
const LONG_ROUTINE: usize = 100;

/// What [`c`](super::c()) has, without its comment, in at most so many files of about the same length. Where they are several,
/// they are linked together.
pub fn parts(nest: &Nest, real: Real, most: usize) -> Vec<String> {
    let mut routines = routines(nest, real, false);
    let lengths: Vec<usize> = routines.iter().map(length).collect();
    let count = most.min(lengths.iter().sum::<usize>() / MIN_STATEMENTS);
    if count < 2 {
        return vec![text(&routines, real, false, "")];
    }
    for (routine, length) in routines.iter_mut().zip(&lengths) {
        routine.own &= *length < LONG_ROUTINE;
    }
    let files = spread(&routines, &lengths, count);
    files.iter().filter(|file| !file.is_empty()).map(|file| part(&routines, file, real)).collect()
}

fn length(routine: &Routine) -> usize {
    routine.body.iter().map(statements).sum()
}

/// Which routines each file has: the longest first, each to the file that is the shortest with it and what it calls of the
/// file's own.
fn spread(routines: &[Routine], lengths: &[usize], count: usize) -> Vec<BTreeSet<usize>> {
    let called = called(routines);
    let mut order: Vec<usize> = (0..routines.len()).filter(|&number| !routines[number].own).collect();
    order.sort_by_key(|&number| std::cmp::Reverse(lengths[number]));
    let mut files = vec![BTreeSet::new(); count];
    for number in order {
        let with = |file: &BTreeSet<usize>| {
            let mut file = file.clone();
            let mut open = vec![number];
            while let Some(number) = open.pop() {
                if file.insert(number) {
                    open.extend(called[number].iter().filter(|&&other| routines[other].own));
                }
            }
            file
        };
        let longer =
            files.iter().map(with).map(|file| (file.iter().map(|&number| lengths[number]).sum::<usize>(), file));
        let (place, (_, file)) = longer.enumerate().min_by_key(|(_, (length, _))| *length).expect("there are files");
        files[place] = file;
    }
    files
}

/// The routines that each one calls.
fn called(routines: &[Routine]) -> Vec<BTreeSet<usize>> {
    let numbers: HashMap<&str, usize> = routines.iter().enumerate().map(|(n, routine)| (&*routine.name, n)).collect();
    let of = |code: &[Code]| {
        let mut found = BTreeSet::new();
        let mut note = |value: &Value| {
            if let Value::Made(Operator::Call(callee), _) = value {
                found.extend(numbers.get(&*callee.name));
            }
        };
        code.iter().for_each(|code| code.visit(&mut note));
        found
    };
    routines.iter().map(|routine| of(&routine.body)).collect()
}

/// A file with some routines, after declarations of those that it calls in others.
fn part(routines: &[Routine], file: &BTreeSet<usize>, real: Real) -> String {
    let called = called(routines);
    let others: BTreeSet<usize> = file.iter().flat_map(|&number| &called[number]).copied().collect();
    let declarations: String = others.difference(file).map(|&number| print::declaration(&routines[number])).collect();
    let own: Vec<Routine> = file.iter().map(|&number| routines[number].clone()).collect();
    text(&own, real, false, &declarations)
}
