//! What is given to a call, as arrays of one type.
//!
//! An array of the right type is used where it lies. Another one, a list, or whatever else NumPy can make an array of, is
//! converted. Numbers have no type of their own: they take that of the arrays.

use std::ffi::c_int;

use gradix_run::Dtype;
use gradix_run::View;
use numpy::npyffi::{NPY_ARRAY_ALIGNED, NPY_ARRAY_WRITEABLE, NPY_TYPES, PyArrayObject};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};

use crate::errors::{Kind, error};

/// Something that was given for an array.
pub enum Given<'py> {
    /// A number; it has the type of the other arrays.
    Number(f64),
    /// An array of NumPy's.
    Array(Bound<'py, PyUntypedArray>, Type),
}

/// What the elements of an array are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Numbers that can be used as they are.
    Real(Dtype),
    /// Numbers of another type, of which these are the nearest.
    Near(Dtype),
    /// Whole numbers, which take the type of the others.
    Whole,
}

impl<'py> Given<'py> {
    /// What an object is; `name` is for messages.
    pub fn new(value: &Bound<'py, PyAny>, name: &str) -> PyResult<Self> {
        let py = value.py();
        if let Ok(array) = value.cast::<PyUntypedArray>() {
            if !value.is_exact_instance_of::<PyUntypedArray>() && value.hasattr(intern!(py, "mask"))? {
                let message = format!("'{name}' is a masked array; fill in what is masked, or leave it out");
                return Err(error(py, Kind::Argument, message));
            }
            return Ok(Given::Array(array.clone(), type_of(array, name)?));
        }
        if value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>() {
            let number = value.extract::<f64>();
            let too_large = |_| error(py, Kind::Dtype, format!("'{name}' is too large for a floating-point number"));
            return number.map(Given::Number).map_err(too_large);
        }
        if value.is_none() {
            return Err(error(py, Kind::Argument, format!("'{name}' is None")));
        }
        let made = numpy(py)?.call_method1(intern!(py, "asarray"), (value,));
        let made = made.and_then(|made| Ok(made.cast_into::<PyUntypedArray>()?));
        let array = made.map_err(|cause| {
            let message = format!("'{name}' can't be made an array: {}", cause.value(py));
            let wrapped = error(py, Kind::Argument, message);
            wrapped.set_cause(py, Some(cause));
            wrapped
        })?;
        let kind = type_of(&array, name)?;
        Ok(Given::Array(array, kind))
    }

    /// Its shape.
    pub fn shape(&self) -> &[usize] {
        match self {
            Given::Number(_) => &[],
            Given::Array(array, _) => array.shape(),
        }
    }

    /// The same with elements of type `T`, converted if need be.
    pub fn into_type(self, py: Python<'py>, dtype: Dtype) -> PyResult<Self> {
        match self {
            Given::Array(_, Type::Real(own)) if own == dtype => Ok(self),
            Given::Array(array, _) => {
                let array = array.call_method1(intern!(py, "astype"), (name_of(dtype), "C"));
                let array =
                    array.map_err(|_| error(py, Kind::Run, "an array can't be converted for lack of memory"))?;
                Ok(Given::Array(array.cast_into::<PyUntypedArray>()?, Type::Real(dtype)))
            }
            Given::Number(_) => Ok(self),
        }
    }
}

/// The type that a call computes in: double precision, unless there are arrays of real numbers and all are single.
pub fn common_type(given: &[Given<'_>]) -> Dtype {
    let types = given.iter().filter_map(|given| match given {
        Given::Number(_) => None,
        Given::Array(_, Type::Whole) => None,
        Given::Array(_, Type::Real(dtype) | Type::Near(dtype)) => Some(*dtype),
    });
    let mut types = types.peekable();
    let single = types.peek().is_some() && types.all(|dtype| dtype == Dtype::F32);
    if single { Dtype::F32 } else { Dtype::F64 }
}

/// What NumPy calls a type.
pub fn name_of(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::F64 => "float64",
        Dtype::F32 => "float32",
    }
}

fn type_of(array: &Bound<'_, PyUntypedArray>, name: &str) -> PyResult<Type> {
    let dtype = array.dtype();
    let native = dtype.is_native_byteorder().unwrap_or(true);
    let usable = native && is_aligned(array);
    const DOUBLE: c_int = NPY_TYPES::NPY_DOUBLE as c_int;
    const FLOAT: c_int = NPY_TYPES::NPY_FLOAT as c_int;
    match (dtype.num(), dtype.kind()) {
        (DOUBLE, _) => Ok(if usable { Type::Real(Dtype::F64) } else { Type::Near(Dtype::F64) }),
        (FLOAT, _) => Ok(if usable { Type::Real(Dtype::F32) } else { Type::Near(Dtype::F32) }),
        (_, b'f') if dtype.itemsize() == 2 => Ok(Type::Near(Dtype::F32)),
        (_, b'b' | b'i' | b'u') => Ok(Type::Whole),
        _ => {
            let message = format!("'{name}' has elements of type {dtype}, but float64 or float32 is expected");
            Err(error(array.py(), Kind::Dtype, message))
        }
    }
}

/// Where an array lies: its own copy of what NumPy says, which another thread may change.
pub struct Place {
    start: *const u8,
    shape: Vec<usize>,
    strides: Vec<isize>,
}

impl Place {
    /// Where something given lies, if it is an array; it must have passed as one with elements of type `T`.
    pub fn new<T>(given: &Given<'_>) -> Self {
        match given {
            Given::Number(_) => Place { start: std::ptr::null(), shape: Vec::new(), strides: Vec::new() },
            Given::Array(array, _) => Self::of::<T>(array),
        }
    }

    /// The same of an array.
    pub fn of<T>(array: &Bound<'_, PyUntypedArray>) -> Self {
        let strides = array.strides().iter().map(|stride| stride / size_of::<T>() as isize).collect();
        Place { start: data(array), shape: array.shape().to_vec(), strides }
    }

    /// What the kernels see; `number` if it is no array.
    pub fn view<'a, T>(&'a self, number: &'a T) -> View<'a, T> {
        match self.start.is_null() {
            true => View::dense(number, &[]),
            false => View::strided(self.start.cast(), &self.shape, &self.strides),
        }
    }
}

/// The first element.
#[allow(unsafe_code, reason = "a field of NumPy's own structure")]
pub fn data(array: &Bound<'_, PyUntypedArray>) -> *mut u8 {
    // SAFETY: the pointer is to a live array.
    unsafe { (*object(array)).fields.data.cast() }
}

/// Whether the elements can be written.
pub fn is_writable(array: &Bound<'_, PyUntypedArray>) -> bool {
    flags(array) & NPY_ARRAY_WRITEABLE != 0
}

/// Whether every element, and every stride, is a multiple of its size.
fn is_aligned(array: &Bound<'_, PyUntypedArray>) -> bool {
    let size = array.dtype().itemsize() as isize;
    flags(array) & NPY_ARRAY_ALIGNED != 0 && array.strides().iter().all(|stride| stride % size == 0)
}

#[allow(unsafe_code, reason = "a field of NumPy's own structure")]
fn flags(array: &Bound<'_, PyUntypedArray>) -> c_int {
    // SAFETY: the pointer is to a live array.
    unsafe { (*object(array)).fields.flags }
}

fn object(array: &Bound<'_, PyUntypedArray>) -> *mut PyArrayObject {
    array.as_array_ptr()
}

/// The module `numpy`.
pub fn numpy(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import(intern!(py, "numpy"))
}
