//! Arrays that stay on the device, for a program that runs there again and again.

use gradix::Int;

use super::{Block, Gpu, Stream};
use crate::element::Element;
use crate::executable::Executable;
use crate::note::Note;

/// The arguments of a program on the device, and room for its results.
pub struct Arrays {
    inputs: Vec<Block>,
    outputs: Vec<Block>,
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
        let inputs = inputs.iter().map(copied).collect::<Result<_, Note>>()?;
        Ok(Arrays { inputs, outputs: outputs.iter().map(room).collect::<Result<_, Note>>()? })
    }

    /// The seconds that the device takes for one run, by its own clock. The executable was made for a GPU, and the arrays have
    /// the shapes of its program at these sizes.
    ///
    /// # Safety
    ///
    /// As for [`Executable::run_on_device`].
    pub unsafe fn seconds(&self, executable: &mut Executable, sizes: &[Int]) -> Result<f64, Note> {
        let gpu = Gpu::get()?;
        let [inputs, outputs] =
            [&self.inputs, &self.outputs].map(|blocks| blocks.iter().map(Block::address).collect::<Vec<_>>());
        gpu.driver.timed(&mut || {
            // SAFETY: as the caller promises.
            let done = unsafe { executable.run_on_device(sizes, &inputs, &outputs, Stream::default()) };
            done.map_err(|error| Note::new(error.message))
        })
    }
}
