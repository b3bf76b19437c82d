//! The compiled part of the Python package: programs, and calls on arrays of NumPy.
//!
//! What users see is written in Python, in the folder `python`; here is what needs the compiler, the arrays' memory, or
//! speed. The type hints of this module are in `python/gradix/_gradix.pyi`.

mod arrays;
mod device;
mod errors;
mod function;
mod outputs;
mod plan;
mod signals;
mod xla;

/// The compiled part of gradix.
#[pyo3::pymodule]
mod _gradix {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::device::DeviceArray;
    #[pymodule_export]
    use super::function::Function;
    #[pymodule_export]
    use super::plan::Plan;

    #[allow(non_upper_case_globals, reason = "as Python calls it")]
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// The address of the function that XLA calls.
    #[pyfunction]
    fn xla_handler() -> usize {
        super::xla::handler as *const () as usize
    }

    /// The address of the function that XLA calls for arrays on a GPU.
    #[pyfunction]
    fn xla_device_handler() -> usize {
        super::xla::device_handler as *const () as usize
    }

    /// Forgets the programs that XLA has called, and tells how many there were.
    #[pyfunction]
    fn xla_clear() -> usize {
        super::xla::clear()
    }
}
