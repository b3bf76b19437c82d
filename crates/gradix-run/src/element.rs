//! The two types of numbers.
#![allow(unsafe_code, reason = "passes on what callers of the vm promise")]

use crate::files::Dtype;
use crate::machine::Translated;
use crate::vm::{Real, Vm};
use std::ops::Range;

/// `f64` or `f32`.
pub trait Element: Real + sealed::Sealed {
    /// Which of the two.
    const DTYPE: Dtype;
    /// The nearest number of this type.
    fn from_f64(value: f64) -> Self;
    /// The same number in double precision.
    fn to_f64(self) -> f64;
    /// Kernels for this type, if these are.
    fn translated(kernels: &Translated) -> Option<&Vm<Self>>;
    /// [`Vm::kernel`], which is long: a function that is not generic is compiled once, and not in each crate that calls it.
    ///
    /// # Safety
    /// As for [`Vm::kernel`].
    unsafe fn run(
        vm: &Vm<Self>,
        kernel: usize,
        sizes: &[i64],
        buffers: &[*mut Self],
        local: *mut Self,
        items: Range<usize>,
    );
}

impl Element for f64 {
    const DTYPE: Dtype = Dtype::F64;
    fn from_f64(value: f64) -> Self {
        value
    }
    fn to_f64(self) -> f64 {
        self
    }
    fn translated(kernels: &Translated) -> Option<&Vm<Self>> {
        if let Translated::F64(vm) = kernels { Some(vm) } else { None }
    }
    #[inline(never)]
    unsafe fn run(
        vm: &Vm<f64>,
        kernel: usize,
        sizes: &[i64],
        buffers: &[*mut f64],
        local: *mut f64,
        items: Range<usize>,
    ) {
        // SAFETY: the caller's promise.
        unsafe { vm.kernel(kernel, sizes, buffers, local, items) }
    }
}

impl Element for f32 {
    const DTYPE: Dtype = Dtype::F32;
    fn from_f64(value: f64) -> Self {
        value as f32
    }
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    fn translated(kernels: &Translated) -> Option<&Vm<Self>> {
        if let Translated::F32(vm) = kernels { Some(vm) } else { None }
    }
    #[inline(never)]
    unsafe fn run(
        vm: &Vm<f32>,
        kernel: usize,
        sizes: &[i64],
        buffers: &[*mut f32],
        local: *mut f32,
        items: Range<usize>,
    ) {
        // SAFETY: the caller's promise.
        unsafe { vm.kernel(kernel, sizes, buffers, local, items) }
    }
}

/// Kernels exist for these two types only: another one would be read as something that it is not.
mod sealed {
    pub trait Sealed {}
    impl Sealed for f64 {}
    impl Sealed for f32 {}
}
