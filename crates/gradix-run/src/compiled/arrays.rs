//! The arrays of a call: slices with shapes, and `ndarray`'s views of any strides.

#![allow(unsafe_code, reason = "kernels read and write arrays behind pointers")]

use std::marker::PhantomData;

use gradix::diagnostic::Diagnostic;

use super::wrong;
use crate::array::element_count;
use crate::element::Element;
use crate::function::{Bound, Function, How};
use crate::note::Note;
use crate::strided::is_dense;
use crate::view::View;

/// An array that is read.
#[derive(Debug)]
pub struct ArrayRef<'a, T> {
    start: *const T,
    pub(super) shape: Vec<usize>,
    strides: Option<Vec<isize>>,
    /// A value that all elements have, if it is no array in memory.
    constant: Option<Box<T>>,
    /// What is wrong with it.
    pub(super) fault: Option<String>,
    elements: PhantomData<&'a [T]>,
}

/// An array that is written.
#[derive(Debug)]
pub struct ArrayMut<'a, T> {
    start: *mut T,
    shape: Vec<usize>,
    strides: Vec<isize>,
    pub(super) fault: Option<String>,
    elements: PhantomData<&'a mut [T]>,
}

/// A result: dense and row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense<T> {
    /// The extents; none of a scalar.
    pub shape: Vec<usize>,
    /// The elements, last dimension fastest.
    pub data: Vec<T>,
}

/// Results by name, and what there is to tell of the call.
#[derive(Clone, Debug)]
pub struct Results<T> {
    names: Vec<String>,
    arrays: Vec<Dense<T>>,
    /// What there is to tell.
    pub notes: Vec<Note>,
}

impl<T> Results<T> {
    /// The result of this name; of those that were written into arrays of the caller there is none.
    pub fn get(&self, name: &str) -> Option<&Dense<T>> {
        self.names.iter().position(|known| known == name).map(|place| &self.arrays[place])
    }

    /// Takes a result out.
    ///
    /// # Panics
    /// If there is no result of this name.
    pub fn take(&mut self, name: &str) -> Dense<T> {
        let place = self.names.iter().position(|known| known == name);
        let place = place.unwrap_or_else(|| panic!("no result '{name}'; there is {}", self.names.join(", ")));
        self.names.remove(place);
        self.arrays.remove(place)
    }

    /// All of them, in the order of the program.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Dense<T>)> {
        self.names.iter().map(String::as_str).zip(&self.arrays)
    }
}

impl<T> std::ops::Index<&str> for Results<T> {
    type Output = Dense<T>;
    /// # Panics
    /// If there is no result of this name.
    fn index(&self, name: &str) -> &Dense<T> {
        self.get(name).unwrap_or_else(|| panic!("no result '{name}'; there is {}", self.names.join(", ")))
    }
}

/// Says so if a slice has not as many elements as a shape.
fn fault(shape: &[usize], length: usize) -> Option<String> {
    let fits = element_count(shape) == Some(length);
    (!fits).then(|| format!("has {length} elements, which is not the shape {shape:?}"))
}

impl<'a, T> ArrayRef<'a, T> {
    fn dense(elements: &'a [T], shape: Vec<usize>) -> Self {
        let fault = fault(&shape, elements.len());
        ArrayRef { start: elements.as_ptr(), shape, strides: None, constant: None, fault, elements: PhantomData }
    }

    /// The same value everywhere.
    pub(super) fn constant(value: T, shape: Vec<usize>) -> Self {
        let (strides, constant) = (Some(vec![0; shape.len()]), Some(Box::new(value)));
        ArrayRef { start: std::ptr::null(), shape, strides, constant, fault: None, elements: PhantomData }
    }

    fn view(&self) -> View<'_, T> {
        let start = self.constant.as_deref().map_or(self.start, std::ptr::from_ref);
        match &self.strides {
            Some(strides) => View::strided(start, &self.shape, strides),
            None => View::dense(start, &self.shape),
        }
    }
}

impl<'a, T, const N: usize> From<&'a [T; N]> for ArrayRef<'a, T> {
    fn from(elements: &'a [T; N]) -> Self {
        ArrayRef::dense(elements, vec![N])
    }
}

impl<'a, T> From<&'a [T]> for ArrayRef<'a, T> {
    fn from(elements: &'a [T]) -> Self {
        ArrayRef::dense(elements, vec![elements.len()])
    }
}

impl<'a, T> From<&'a Vec<T>> for ArrayRef<'a, T> {
    fn from(elements: &'a Vec<T>) -> Self {
        ArrayRef::dense(elements, vec![elements.len()])
    }
}

/// A scalar.
impl<'a, T> From<&'a T> for ArrayRef<'a, T>
where
    T: Element,
{
    fn from(element: &'a T) -> Self {
        ArrayRef::dense(std::slice::from_ref(element), Vec::new())
    }
}

/// A scalar.
impl<T: Element> From<T> for ArrayRef<'_, T> {
    fn from(element: T) -> Self {
        ArrayRef::constant(element, Vec::new())
    }
}

impl<'a, T, E: AsRef<[T]> + ?Sized, S: AsRef<[usize]>> From<(&'a E, S)> for ArrayRef<'a, T> {
    /// Elements in C order, and their shape.
    fn from((elements, shape): (&'a E, S)) -> Self {
        ArrayRef::dense(elements.as_ref(), shape.as_ref().to_vec())
    }
}

impl<'a, T> From<&'a Dense<T>> for ArrayRef<'a, T> {
    fn from(array: &'a Dense<T>) -> Self {
        ArrayRef::dense(&array.data, array.shape.clone())
    }
}

impl<'a, T, E: AsMut<[T]> + ?Sized, S: AsRef<[usize]>> From<(&'a mut E, S)> for ArrayMut<'a, T> {
    /// Elements in C order, and their shape.
    fn from((elements, shape): (&'a mut E, S)) -> Self {
        let (elements, shape) = (elements.as_mut(), shape.as_ref().to_vec());
        let fault = fault(&shape, elements.len());
        let strides = c_order(&shape);
        ArrayMut { start: elements.as_mut_ptr(), shape, strides, fault, elements: PhantomData }
    }
}

impl<'a, T> From<&'a mut Dense<T>> for ArrayMut<'a, T> {
    fn from(array: &'a mut Dense<T>) -> Self {
        let shape = array.shape.clone();
        ArrayMut::from((&mut array.data, shape))
    }
}

/// The strides of an array in C order.
fn c_order(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1; shape.len()];
    for place in (1..shape.len()).rev() {
        strides[place - 1] = strides[place] * shape[place] as isize;
    }
    strides
}

#[cfg(feature = "ndarray")]
mod of_ndarray {
    use super::{ArrayMut, ArrayRef, Dense};
    use ndarray::{ArrayBase, ArrayD, ArrayView, ArrayViewMut, Data, DataMut, Dimension, IxDyn};
    use std::marker::PhantomData;

    impl<'a, T, D: Dimension> From<ArrayView<'a, T, D>> for ArrayRef<'a, T> {
        fn from(view: ArrayView<'a, T, D>) -> Self {
            let (shape, strides) = (view.shape().to_vec(), Some(view.strides().to_vec()));
            ArrayRef { start: view.as_ptr(), shape, strides, constant: None, fault: None, elements: PhantomData }
        }
    }

    impl<'a, T, S: Data<Elem = T>, D: Dimension> From<&'a ArrayBase<S, D>> for ArrayRef<'a, T> {
        fn from(array: &'a ArrayBase<S, D>) -> Self {
            array.view().into()
        }
    }

    impl<'a, T, D: Dimension> From<ArrayViewMut<'a, T, D>> for ArrayMut<'a, T> {
        fn from(mut view: ArrayViewMut<'a, T, D>) -> Self {
            let (shape, strides) = (view.shape().to_vec(), view.strides().to_vec());
            ArrayMut { start: view.as_mut_ptr(), shape, strides, fault: None, elements: PhantomData }
        }
    }

    impl<'a, T, S: DataMut<Elem = T>, D: Dimension> From<&'a mut ArrayBase<S, D>> for ArrayMut<'a, T> {
        fn from(array: &'a mut ArrayBase<S, D>) -> Self {
            array.view_mut().into()
        }
    }

    impl<T> From<Dense<T>> for ArrayD<T> {
        fn from(array: Dense<T>) -> Self {
            ArrayD::from_shape_vec(IxDyn(&array.shape), array.data).expect("a result has as many elements as its shape")
        }
    }
}

/// Computes results, into new arrays or those of the caller.
pub(super) fn run<T: Element>(
    function: &Function,
    bound: &Bound,
    how: How,
    inputs: &[&ArrayRef<'_, T>],
    mut names: Vec<String>,
    mut given: Vec<(String, ArrayMut<'_, T>)>,
) -> Result<Results<T>, Vec<Diagnostic>> {
    let mut arrays = Vec::new();
    for (name, shape) in names.iter().zip(&bound.outputs) {
        let target = given.iter().find(|(known, _)| known == name).map(|(_, target)| target);
        if let Some(target) = target.filter(|target| target.shape != *shape) {
            return Err(wrong(format!("'{name}' has the shape {:?}, and should have {shape:?}", target.shape)));
        }
        let in_place = target.is_some_and(|target| is_dense(shape, &target.strides));
        let elements = if in_place { Some(0) } else { element_count(shape) };
        let mut data = Vec::new();
        let reserved = elements.and_then(|elements| data.try_reserve_exact(elements).ok().map(|()| elements));
        let elements = reserved.ok_or_else(|| wrong(format!("there is no memory for '{name}' of shape {shape:?}")))?;
        data.resize(elements, T::from_f64(0.0));
        arrays.push(Dense { shape: shape.clone(), data });
    }
    let place = |(name, array): (&String, &mut Dense<T>)| {
        let target = given.iter().find(|(known, _)| known == name).map(|(_, target)| target);
        let in_place = target.filter(|target| is_dense(&array.shape, &target.strides));
        in_place.map_or(array.data.as_mut_ptr(), |target| target.start)
    };
    let outputs: Vec<*mut T> = names.iter().zip(&mut arrays).map(place).collect();
    let views: Vec<View<'_, T>> = inputs.iter().map(|array| array.view()).collect();
    // SAFETY: views and outputs are borrowed arrays of the shapes of `bound`, all of which were compared; outputs are new or
    // borrowed for writing, so that nothing else refers to them, and those in place are dense.
    let notes = unsafe { function.run(bound, how, &views, &outputs) }.map_err(|error| vec![error])?;
    for (name, target) in &mut given {
        let Some(place) = names.iter().position(|known| known == name) else { continue };
        let array = arrays.remove(place);
        names.remove(place);
        if !is_dense(&array.shape, &target.strides) {
            // SAFETY: the target is borrowed for writing and has the shape of the array.
            unsafe { scatter(&array.data, target.start, &array.shape, &target.strides) };
        }
    }
    Ok(Results { names, arrays, notes })
}

/// Writes elements in C order to an array of any strides.
///
/// # Safety
/// The array has these elements, which can be written.
unsafe fn scatter<T: Copy>(from: &[T], to: *mut T, shape: &[usize], strides: &[isize]) {
    // SAFETY: the caller's promise; only elements of the array are pointed to.
    unsafe {
        match (shape, strides) {
            ([extent, shape @ ..], [stride, strides @ ..]) if *extent > 0 => {
                for (place, part) in from.chunks_exact((from.len() / extent).max(1)).enumerate().take(*extent) {
                    scatter(part, to.wrapping_offset(place as isize * stride), shape, strides);
                }
            }
            ([], []) => *to = from[0],
            _ => {}
        }
    }
}
