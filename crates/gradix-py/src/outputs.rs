//! The arrays that results are written to: new ones, or those of the caller.

#![allow(unsafe_code, reason = "an array whose elements are yet to be written")]

use gradix_run::Element;
use gradix_run::View;
use numpy::{Element as NumpyElement, IxDyn, PyArray, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyTuple};

use crate::arrays::{Given, Place, Type, data, is_writable, name_of};
use crate::errors::{Kind, error};

/// The arrays that results are written to.
pub struct Outputs<'py, T> {
    arrays: Vec<Output<'py>>,
    of: std::marker::PhantomData<T>,
}

struct Output<'py> {
    /// Dense, and used by nobody else.
    array: Bound<'py, PyUntypedArray>,
    /// The array of the caller that gets the values afterwards.
    copy_to: Option<Bound<'py, PyUntypedArray>>,
    is_own: bool,
}

impl<'py, T: Element + NumpyElement> Outputs<'py, T> {
    /// New arrays, or those of the caller.
    pub fn new(
        py: Python<'py>,
        names: &[String],
        shapes: &[Vec<usize>],
        out: Option<&Bound<'py, PyAny>>,
        inputs: &[View<'_, T>],
    ) -> PyResult<Self> {
        let targets = match out {
            Some(out) => targets(py, out, names)?,
            None => vec![None; names.len()],
        };
        let zero = T::ZERO;
        let mut taken: Vec<(usize, usize)> = Vec::new();
        let mut arrays = Vec::with_capacity(names.len());
        for ((name, shape), target) in names.iter().zip(shapes).zip(targets) {
            let Some(target) = target else {
                arrays.push(Output { array: fresh::<T>(py, shape)?, copy_to: None, is_own: true });
                continue;
            };
            check_target::<T>(&target, name, shape)?;
            let place = Place::of::<T>(&target);
            let place: View<'_, T> = place.view(&zero);
            let span = place.span();
            let overlaps = |other: (usize, usize)| span.0 < other.1 && other.0 < span.1;
            let is_free = !inputs.iter().map(View::span).chain(taken.iter().copied()).any(overlaps);
            let is_dense = place.strides.is_none();
            taken.push(span);
            arrays.push(match is_dense && is_free {
                true => Output { array: target, copy_to: None, is_own: false },
                false => Output { array: fresh::<T>(py, shape)?, copy_to: Some(target), is_own: false },
            });
        }
        Ok(Outputs { arrays, of: std::marker::PhantomData })
    }

    /// The first elements.
    pub fn pointers(&self) -> Vec<*mut T> {
        self.arrays.iter().map(|output| data(&output.array).cast()).collect()
    }

    /// The results as Python sees them: a new one without dimensions is a number.
    pub fn finish(self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mut results = Vec::with_capacity(self.arrays.len());
        for Output { array, copy_to, is_own } in self.arrays {
            results.push(match copy_to {
                Some(target) => {
                    target.set_item(py.Ellipsis(), &array)?;
                    target.into_any()
                }
                None if is_own && array.ndim() == 0 => array.get_item(PyTuple::empty(py))?,
                None => array.into_any(),
            });
        }
        PyTuple::new(py, results)
    }
}

fn fresh<'py, T: NumpyElement>(py: Python<'py>, shape: &[usize]) -> PyResult<Bound<'py, PyUntypedArray>> {
    let bytes = shape.iter().try_fold(size_of::<T>(), |bytes, &extent| bytes.checked_mul(extent));
    if bytes.is_none_or(|bytes| !gradix_run::memory::fits(bytes)) {
        return Err(error(py, Kind::Run, format!("an array of shape {} does not fit into memory", tuple(shape))));
    }
    // SAFETY: kernels write every element before anybody reads one.
    let array = unsafe { PyArray::<T, IxDyn>::new(py, shape, false) };
    Ok(array.as_untyped().clone())
}

/// The arrays given as `out`: one, a sequence of as many as there are results, or a mapping from their names.
fn targets<'py>(
    py: Python<'py>,
    out: &Bound<'py, PyAny>,
    names: &[String],
) -> PyResult<Vec<Option<Bound<'py, PyUntypedArray>>>> {
    let array = |object: &Bound<'py, PyAny>, name: &str| {
        let array = object.cast::<PyUntypedArray>().cloned();
        array
            .map_err(|_| error(py, Kind::Argument, format!("what is given as 'out' for '{name}' is no array of NumPy")))
    };
    if let ([name], Ok(out)) = (names, out.cast::<PyUntypedArray>()) {
        return Ok(vec![Some(array(out.as_any(), name)?)]);
    }
    if let Ok(mapping) = out.cast::<PyMapping>() {
        for key in mapping.keys()? {
            let key = key.str()?.to_string();
            if !names.contains(&key) {
                let known = names.join(", ");
                return Err(error(py, Kind::Argument, format!("'out' names no result '{key}'; there is {known}")));
            }
        }
        let target = |name: &String| match mapping.get_item(name) {
            Ok(object) if !object.is_none() => array(&object, name).map(Some),
            _ => Ok(None),
        };
        return names.iter().map(target).collect();
    }
    let objects = out.try_iter().and_then(|objects| objects.collect::<PyResult<Vec<_>>>());
    let objects = objects.map_err(|_| {
        error(py, Kind::Argument, "'out' is an array for each result: one, a sequence, or a mapping from names")
    })?;
    if objects.len() != names.len() {
        let message = format!("'out' has {} arrays, but there are {} results", objects.len(), names.len());
        return Err(error(py, Kind::Argument, message));
    }
    objects
        .iter()
        .zip(names)
        .map(|(object, name)| if object.is_none() { Ok(None) } else { array(object, name).map(Some) })
        .collect()
}

fn check_target<T: Element>(target: &Bound<'_, PyUntypedArray>, name: &str, shape: &[usize]) -> PyResult<()> {
    let py = target.py();
    let given = Given::new(target.as_any(), name)?;
    if !matches!(given, Given::Array(_, Type::Real(dtype)) if dtype == T::DTYPE) {
        let (given, expected) = (target.dtype().to_string(), name_of(T::DTYPE));
        let message = format!("'out' for '{name}' has elements of type {given}, but {expected} is expected");
        return Err(error(py, Kind::Dtype, message));
    }
    if target.shape() != shape {
        let (given, expected) = (tuple(target.shape()), tuple(shape));
        return Err(error(
            py,
            Kind::Shape,
            format!("'out' for '{name}' has shape {given}, but {expected} is expected"),
        ));
    }
    if !is_writable(target) {
        return Err(error(py, Kind::Argument, format!("'out' for '{name}' can't be written")));
    }
    Ok(())
}

/// A shape as Python writes it.
pub fn tuple(shape: &[usize]) -> String {
    let extents: Vec<String> = shape.iter().map(usize::to_string).collect();
    if let [extent] = &extents[..] { format!("({extent},)") } else { format!("({})", extents.join(", ")) }
}
