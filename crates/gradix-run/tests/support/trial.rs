//! A program run at some sizes, beside the oracle.

#![allow(unsafe_code, reason = "kernels take raw pointers")]

use gradix::Int;
use gradix::program::Program;
use gradix_run::gradient::shape;
use gradix_run::machine::Machine;
use gradix_run::{Array, Dtype, Element, interp, random};
use std::collections::HashMap;

/// A program at some sizes, with arguments and what is expected of it.
pub struct Trial<T> {
    sizes: Vec<Int>,
    inputs: Vec<Vec<T>>,
    expected: Vec<(String, Array)>,
}

impl<T: Element> Trial<T> {
    /// With random arguments that the type can hold; results are those in double precision.
    pub fn new(program: &Program, sizes: Vec<Int>) -> Trial<T> {
        let rounded = |id| {
            let array = random::array(7, &program[id].name, shape(program, &sizes, id).unwrap()).unwrap();
            let data: Vec<T> = array.data.into_iter().map(T::from_f64).collect();
            (program[id].name.clone(), array.shape, data)
        };
        let inputs: Vec<(String, Vec<usize>, Vec<T>)> = program.inputs().map(rounded).collect();
        let wide = |data: &[T]| data.iter().map(|value| value.to_f64()).collect();
        let named =
            inputs.iter().map(|(name, shape, data)| (name.clone(), Array { shape: shape.clone(), data: wide(data) }));
        let expected = interp(program, &sizes, &named.collect::<HashMap<_, _>>(), Dtype::F64).unwrap().results;
        Trial { sizes, inputs: inputs.into_iter().map(|(_, _, data)| data).collect(), expected }
    }

    /// Every element is that of the oracle, up to a share of the largest one, and has the same bits on one thread and three.
    pub fn agrees(&self, machine: &mut Machine, tolerance: f64, what: &str) {
        let results = self.run(machine, 1, what);
        for ((name, expected), result) in self.expected.iter().zip(&results) {
            let finite = expected.data.iter().filter(|value| value.is_finite());
            let scale = finite.fold(1.0, |most: f64, value| most.max(value.abs()));
            for (place, (a, b)) in result.iter().map(|value| value.to_f64()).zip(&expected.data).enumerate() {
                let is_close = a == *b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * scale;
                let sizes = &self.sizes;
                assert!(
                    is_close,
                    "{what} at {sizes:?}: {name} is {a} and should be {b} at {place} of {:?}",
                    expected.shape
                );
            }
        }
        let bits =
            |results: &[Vec<T>]| -> Vec<u64> { results.iter().flatten().map(|v| v.to_f64().to_bits()).collect() };
        let shared = self.run(machine, 3, what);
        assert_eq!(
            bits(&shared),
            bits(&results),
            "{what} at {:?}: results depend on the number of threads",
            self.sizes
        );
    }

    fn run(&self, machine: &mut Machine, threads: usize, what: &str) -> Vec<Vec<T>> {
        let prepared = machine.prepare(&self.sizes, threads);
        prepared.unwrap_or_else(|note| panic!("{what} at {:?}: {}", self.sizes, note.message));
        let unset = |(_, array): &(String, Array)| vec![T::from_f64(f64::NAN); array.data.len()];
        let mut results: Vec<Vec<T>> = self.expected.iter().map(unset).collect();
        let inputs: Vec<*const T> = self.inputs.iter().map(|data| data.as_ptr()).collect();
        let outputs: Vec<*mut T> = results.iter_mut().map(|result| result.as_mut_ptr()).collect();
        // SAFETY: the arrays have the shapes of the program at these sizes, and don't overlap.
        unsafe { machine.run(&self.sizes, &inputs, &outputs, threads) }.unwrap();
        results
    }
}
