//! Arrays that stay on the device, for a program that runs there again and again.

use super::{Block, Gpu};
use crate::element::Element;
use crate::files::Dtype;
use crate::note::Note;

/// The arguments of a program on the device, and room for its results.
pub struct Arrays {
    /// The arguments, in order.
    pub inputs: Vec<Block>,
    /// The results, in order.
    pub outputs: Vec<Block>,
    /// How many elements each of the arguments has, then each of the results.
    pub elements: Vec<usize>,
    /// What the elements are.
    pub dtype: Dtype,
}

impl Arrays {
    /// Copies of arguments, and results of so many elements each.
    pub fn new<T: Element>(inputs: &[&[T]], outputs: &[usize]) -> Result<Arrays, Note> {
        let gpu = Gpu::get()?;
        let copied = |input: &&[T]| {
            let block = Block::new(&gpu, size_of_val(*input))?;
            // SAFETY: the block has as many bytes as the slice.
            unsafe { gpu.driver.upload(block.address(), input.as_ptr().cast(), size_of_val(*input))? };
            Ok(block)
        };
        let room = |count: &usize| Block::new(&gpu, count.saturating_mul(size_of::<T>()));
        let elements = inputs.iter().map(|input| input.len()).chain(outputs.iter().copied()).collect();
        let inputs = inputs.iter().map(copied).collect::<Result<_, Note>>()?;
        Ok(Arrays {
            inputs,
            outputs: outputs.iter().map(room).collect::<Result<_, Note>>()?,
            elements,
            dtype: T::DTYPE,
        })
    }
}
