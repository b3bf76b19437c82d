//! Arrays on a GPU: memory that Python holds, and computations on what is there already.

#![allow(unsafe_code, reason = "memory of a GPU is given by addresses")]

use gradix_run::cuda::{Block, Gpu};
use gradix_run::{Dtype, Note};
use numpy::PyUntypedArray;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyTuple};

use crate::errors::{Kind, error, guarded};

/// An array on a GPU, dense and in C order, which frameworks read by `__cuda_array_interface__`.
#[pyclass(frozen, module = "gradix")]
pub struct DeviceArray {
    block: Block,
    shape: Vec<usize>,
    dtype: Dtype,
}

#[pymethods]
impl DeviceArray {
    /// An array whose elements are yet to be written, or a number.
    #[new]
    #[pyo3(signature = (shape, dtype, value, /))]
    fn new(py: Python<'_>, shape: Vec<usize>, dtype: &str, value: Option<f64>) -> PyResult<Self> {
        guarded(py, || {
            let (dtype, width) = type_of(py, dtype)?;
            let bytes = shape.iter().try_fold(width, |bytes, &extent| bytes.checked_mul(extent));
            let bytes = bytes.ok_or_else(|| error(py, Kind::Run, "an array is larger than all memory"))?;
            let refused = |note: Note| error(py, Kind::Run, note.to_string());
            let gpu = Gpu::get().map_err(refused)?;
            let block = Block::new(&gpu, bytes).map_err(refused)?;
            if let Some(value) = value {
                let (double, single) = (value.to_ne_bytes(), (value as f32).to_ne_bytes());
                let number: &[u8] = if dtype == Dtype::F64 { &double } else { &single };
                // SAFETY: the block has at least as many bytes.
                unsafe { gpu.driver().upload(block.address(), number.as_ptr(), number.len().min(bytes)) }
                    .map_err(refused)?;
            }
            Ok(DeviceArray { block, shape, dtype })
        })
    }

    /// Where it is, for frameworks.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("shape", self.shape(py)?)?;
        interface.set_item("typestr", if self.dtype == Dtype::F64 { "<f8" } else { "<f4" })?;
        interface.set_item("data", (self.block.address(), false))?;
        interface.set_item("version", 3)?;
        // What was started for it is on the default stream or on one that its user knows.
        interface.set_item("stream", 1)?;
        Ok(interface)
    }

    /// How long it is in each dimension.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    fn __repr__(&self) -> String {
        format!("<gradix.DeviceArray: {:?} {}>", self.shape, crate::arrays::name_of(self.dtype))
    }
}

/// The type of a name, and the bytes of an element.
pub fn type_of(py: Python<'_>, name: &str) -> PyResult<(Dtype, usize)> {
    match name {
        "float64" => Ok((Dtype::F64, size_of::<f64>())),
        "float32" => Ok((Dtype::F32, size_of::<f32>())),
        _ => Err(error(py, Kind::Dtype, format!("the type is {name}, but float64 or float32 is expected"))),
    }
}

/// Whether an object is an array on a GPU. Most objects are arrays of NumPy, numbers or lists, and are told at once.
pub fn is_on_device(value: &Bound<'_, PyAny>) -> bool {
    let is_known = value.is_instance_of::<PyUntypedArray>()
        || value.is_instance_of::<PyFloat>()
        || value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyList>();
    !is_known && value.hasattr(intern!(value.py(), "__cuda_array_interface__")).unwrap_or(true)
}
