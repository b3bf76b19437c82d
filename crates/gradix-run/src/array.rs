//! Arrays of numbers as programs take and return them: dense, row-major, f64.
//!
//! `data[offset]` is the element at `index` when `offset` is `index` read as a number with mixed radix `shape`, last
//! dimension fastest. A scalar has the empty shape and one element.

/// A dense row-major array; `data` has as many elements as `shape` says.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The extent of each dimension.
    pub shape: Vec<usize>,
    /// The elements, last dimension fastest.
    pub data: Vec<f64>,
}

impl Array {
    /// An array of these elements.
    ///
    /// # Panics
    ///
    /// If the number of elements is not the product of the extents.
    pub fn new(shape: Vec<usize>, data: Vec<f64>) -> Self {
        assert_eq!(element_count(&shape), Some(data.len()), "an array of shape {shape:?}");
        Array { shape, data }
    }

    /// An array of zeros; `None` if it does not fit into memory.
    pub fn zeros(shape: Vec<usize>) -> Option<Self> {
        let count = element_count(&shape)?;
        let mut data = Vec::new();
        data.try_reserve_exact(count).ok()?;
        data.resize(count, 0.0);
        Some(Array { shape, data })
    }

    /// A scalar.
    pub fn scalar(value: f64) -> Self {
        Array { shape: Vec::new(), data: vec![value] }
    }

    /// The element at `index`; `None` outside the array or for an index of another rank.
    pub fn get(&self, index: &[usize]) -> Option<f64> {
        self.offset(index).map(|offset| self.data[offset])
    }

    /// The place of the element at `index` in `data`; `None` outside the array or for an index of another rank.
    pub fn offset(&self, index: &[usize]) -> Option<usize> {
        let inside = index.len() == self.shape.len() && index.iter().zip(&self.shape).all(|(i, extent)| i < extent);
        inside.then(|| index.iter().zip(&self.shape).fold(0, |offset, (i, extent)| offset * extent + i))
    }

    /// The array of this shape whose elements are given first dimension fastest, as Fortran stores them.
    pub(crate) fn from_column_major(shape: Vec<usize>, columns: &[f64]) -> Self {
        let strides: Vec<usize> = shape
            .iter()
            .scan(1usize, |stride, &extent| Some(std::mem::replace(stride, stride.saturating_mul(extent))))
            .collect();
        let mut data = Vec::with_capacity(columns.len());
        let mut index = vec![0; shape.len()];
        for _ in 0..columns.len() {
            data.push(columns[index.iter().zip(&strides).map(|(i, stride)| i * stride).sum::<usize>()]);
            advance(&mut index, &shape);
        }
        Array::new(shape, data)
    }
}

/// The product of the extents; `None` if it overflows. Nothing overflows in an array with an extent of 0.
pub(crate) fn element_count(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) { Some(0) } else { shape.iter().try_fold(1usize, |count, &extent| count.checked_mul(extent)) }
}

/// The next index in row-major order; after the last one, the first.
fn advance(index: &mut [usize], shape: &[usize]) {
    for (i, &extent) in index.iter_mut().zip(shape).rev() {
        *i += 1;
        if *i < extent {
            return;
        }
        *i = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_dimension_is_fastest() {
        let array = Array::new(vec![2, 3], vec![0.0, 1.0, 2.0, 10.0, 11.0, 12.0]);
        assert_eq!(array.get(&[1, 2]), Some(12.0));
        assert_eq!(array.get(&[1, 0]), Some(10.0));
    }

    #[test]
    fn there_is_nothing_outside() {
        let array = Array::zeros(vec![2, 3]).unwrap();
        assert_eq!(array.get(&[1, 2]), Some(0.0));
        assert_eq!([array.get(&[2, 0]), array.get(&[0, 3]), array.get(&[0]), array.get(&[0, 0, 0])], [None; 4]);
        assert_eq!(Array::zeros(vec![0, usize::MAX, 2]).unwrap().get(&[0, 0, 0]), None);
    }

    #[test]
    fn a_scalar_has_one_element() {
        assert_eq!(Array::scalar(2.5).get(&[]), Some(2.5));
        assert_eq!(Array::zeros(vec![]), Some(Array::scalar(0.0)));
    }

    #[test]
    fn arrays_past_all_memory_are_refused() {
        assert_eq!(Array::zeros(vec![usize::MAX, 2]), None);
        assert_eq!(Array::zeros(vec![usize::MAX / 4]), None);
    }

    #[test]
    fn column_major_elements_are_reordered() {
        let array = Array::from_column_major(vec![2, 3], &[0.0, 10.0, 1.0, 11.0, 2.0, 12.0]);
        assert_eq!(array, Array::new(vec![2, 3], vec![0.0, 1.0, 2.0, 10.0, 11.0, 12.0]));
        assert_eq!(Array::from_column_major(vec![3, 0], &[]).data, []);
    }
}
