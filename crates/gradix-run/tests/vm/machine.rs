//! Runs nests on the virtual machine, in one thread or several.
#![allow(unsafe_code, reason = "kernels take raw pointers")]

use gradix::Int;
use gradix::nest::{Nest, Scope};
use gradix::program::TensorId;
use gradix_run::stages::Stages;
use gradix_run::vm::{Level, Real, Vm};
use std::collections::HashMap;

/// The sizes of a nest, from those of the program that it was made of.
pub fn sizes_of(nest: &Nest, given: &[Int]) -> Vec<Int> {
    nest.sizes(given)
}

/// The contents of all buffers but local ones after a run; `threads` share the items of each kernel.
pub fn run<T: Real>(
    nest: &Nest,
    sizes: &[Int],
    inputs: &HashMap<String, Vec<f64>>,
    threads: usize,
) -> HashMap<String, Vec<T>> {
    run_at(nest, sizes, inputs, threads, Level::Avx512)
}

/// The same with no better instruction set than this one.
pub fn run_at<T: Real>(
    nest: &Nest,
    sizes: &[Int],
    inputs: &HashMap<String, Vec<f64>>,
    threads: usize,
    level: Level,
) -> HashMap<String, Vec<T>> {
    let vm = Vm::<T>::new(nest, sizes).unwrap_or_else(|error| panic!("{error}")).limited(level);
    let mut buffers: Vec<Vec<T>> = (0..nest.buffers.len())
        .map(|b| {
            let length = nest.elements(TensorId(b as u32), sizes).unwrap();
            match inputs.get(&nest.buffers[b].name) {
                Some(values) => values.iter().map(|v| T::of(*v)).collect(),
                None => vec![T::of(f64::NAN); length],
            }
        })
        .collect();
    for (b, buffer) in buffers.iter().enumerate() {
        assert_eq!(
            buffer.len(),
            nest.elements(TensorId(b as u32), sizes).unwrap(),
            "{} in\n{}",
            nest.buffers[b].name,
            gradix::nest::print(nest)
        );
    }
    let pointers: Vec<Shared<T>> = buffers.iter_mut().map(|b| Shared(b.as_mut_ptr())).collect();
    let mut numbers: Vec<i64> = sizes.iter().map(|size| i64::try_from(size).unwrap()).collect();
    Stages::new(&nest.stages, sizes).unwrap().run(&mut numbers, &mut |kernel, numbers| {
        let count = vm.items(kernel);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (vm, pointers) = (&vm, &pointers);
                scope.spawn(move || {
                    let mut local = vec![T::of(f64::NAN); vm.local_elements(kernel)];
                    let all: Vec<*mut T> = pointers.iter().map(|p| p.0).collect();
                    let items = count * thread / threads..count * (thread + 1) / threads;
                    // SAFETY: the buffers are as long as the nest says, and no two threads have the same items.
                    unsafe { vm.kernel(kernel, numbers, &all, local.as_mut_ptr(), items) };
                });
            }
        });
        true
    });
    let kept = nest.buffers.iter().enumerate().filter(|(_, buffer)| !matches!(buffer.scope, Scope::Local(_)));
    kept.map(|(b, _)| (nest.buffers[b].name.clone(), std::mem::take(&mut buffers[b]))).collect()
}

struct Shared<T>(*mut T);

// SAFETY: the threads write different elements.
unsafe impl<T> Sync for Shared<T> {}
