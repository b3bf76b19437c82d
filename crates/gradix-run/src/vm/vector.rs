//! Vectors of numbers for each instruction set, and what the terms of a reduction do to them.
#![allow(unsafe_code, reason = "vector instructions, which are only called where the machine has them")]

use super::real::{Baseline, Isa, Real, maximum, minimum, multiply_add};
use gradix::program::ReduceOp;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// A rule as code.
pub trait Step {
    /// Whether the first operand does not count.
    const SINGLE: bool;
    fn step<T: Real, V: Vector<T>>(sum: V, a: V, b: V) -> V;
    fn combine<T: Real, V: Vector<T>>(a: V, b: V) -> V;
}

macro_rules! rules {
    ($($name:ident |$sum:ident, $a:ident, $b:ident| $step:expr, $combine:ident, $single:literal;)*) => {
        /// What a term does to an element of the result.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Rule {
            $($name,)*
        }
        $(pub struct $name;
        impl Step for $name {
            const SINGLE: bool = $single;
            #[inline(always)]
            fn step<T: Real, V: Vector<T>>($sum: V, $a: V, $b: V) -> V {
                $step
            }
            #[inline(always)]
            fn combine<T: Real, V: Vector<T>>(a: V, b: V) -> V {
                a.$combine(b)
            }
        })*
    };
}

rules! {
    Sum |sum, _a, b| sum.plus(b), plus, true;
    Prod |sum, _a, b| sum.times(b), times, true;
    Largest |sum, _a, b| sum.larger(b), larger, true;
    Smallest |sum, _a, b| sum.smaller(b), smaller, true;
    Product |sum, a, b| a.multiply_add(b, sum), plus, false;
    SquaredDifference |sum, a, b| a.minus(b).multiply_add(a.minus(b), sum), plus, false;
    AbsoluteDifference |sum, a, b| sum.plus(a.minus(b).magnitude()), plus, false;
    LargestSum |sum, a, b| sum.larger(a.plus(b)), larger, false;
    SmallestSum |sum, a, b| sum.smaller(a.plus(b)), smaller, false;
}

/// Evaluates an expression with `$code` as the type of a rule.
macro_rules! with_rule {
    ($rule:expr, $code:ident => $value:expr) => {
        with_rule!($rule, $code => $value; Sum Prod Largest Smallest Product SquaredDifference AbsoluteDifference
            LargestSum SmallestSum)
    };
    ($rule:expr, $code:ident => $value:expr; $($name:ident)*) => {
        match $rule {
            $(crate::vm::vector::Rule::$name => {
                type $code = crate::vm::vector::$name;
                $value
            })*
        }
    };
}
pub(super) use with_rule;

impl Rule {
    /// That of a reduction with one operand.
    pub fn of(op: ReduceOp) -> Self {
        match op {
            ReduceOp::Sum => Rule::Sum,
            ReduceOp::Prod => Rule::Prod,
            ReduceOp::Max => Rule::Largest,
            ReduceOp::Min => Rule::Smallest,
            ReduceOp::LogSumExp => unreachable!("a verified nest combines two values at a time"),
        }
    }

    /// Combines all partial results into the first one: halves element by element, then the halves of what is left.
    pub fn combine<T: Real>(self, parts: &mut [T]) {
        with_rule!(self, Code => combine::<T, Code>(parts));
    }
}

fn combine<T: Real, R: Step>(parts: &mut [T]) {
    let one = Array::<T, 1>::all;
    let mut half = parts.len() / 2;
    while half > 0 {
        let (left, right) = parts.split_at_mut(half);
        left.iter_mut().zip(right).for_each(|(a, b)| *a = R::combine(one(*a), one(*b)).0[0]);
        half /= 2;
    }
}

/// The most numbers in a vector.
pub const WIDEST: usize = 16;

/// A vector of numbers. Its methods are only called where the machine has the instructions.
pub trait Vector<T>: Copy {
    const WIDTH: usize;
    /// Whether `exp` is there: it is better than number by number.
    const HAS_EXP: bool = false;
    fn exp(self) -> Self {
        self
    }
    fn all(value: T) -> Self;
    /// # Safety
    /// There are as many numbers as the vector has.
    unsafe fn load(from: *const T) -> Self;
    /// # Safety
    /// There is room for as many numbers as the vector has.
    unsafe fn store(self, to: *mut T);
    /// The same past the caches: other threads see it after a fence.
    ///
    /// # Safety
    /// There is room for as many numbers as the vector has, aligned to its size.
    #[inline(always)]
    unsafe fn stream(self, to: *mut T) {
        // SAFETY: the caller's promise.
        unsafe { self.store(to) }
    }
    /// The first numbers, fewer than the vector has, and zeros after them.
    ///
    /// # Safety
    /// There are as many.
    #[inline(always)]
    unsafe fn load_part(from: *const T, count: usize) -> Self
    where
        T: Real,
    {
        let mut values = [T::ZERO; WIDEST];
        // SAFETY: the caller's promise; no vector is wider.
        unsafe {
            std::ptr::copy_nonoverlapping(from, values.as_mut_ptr(), count);
            Self::load(values.as_ptr())
        }
    }
    /// Writes the first numbers, fewer than the vector has.
    ///
    /// # Safety
    /// There is room for as many.
    #[inline(always)]
    unsafe fn store_part(self, to: *mut T, count: usize)
    where
        T: Real,
    {
        let mut values = [T::ZERO; WIDEST];
        // SAFETY: the caller's promise; no vector is wider.
        unsafe {
            self.store(values.as_mut_ptr());
            std::ptr::copy_nonoverlapping(values.as_ptr(), to, count);
        }
    }
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn multiply_add(self, factor: Self, sum: Self) -> Self;
    fn magnitude(self) -> Self;
    /// As [`maximum`].
    fn larger(self, other: Self) -> Self;
    /// As [`minimum`].
    fn smaller(self, other: Self) -> Self;
}

/// The methods of a vector as instructions.
#[cfg(target_arch = "x86_64")]
macro_rules! vector {
    ($vector:ident of $width:literal $number:ident $(with $exp:path)?: $all:ident $load:ident $store:ident $stream:ident $fma:ident
     $(parts $load_part:ident $store_part:ident $mask:ident)?;
     $($method:ident |$a:ident $(, $b:ident)?| $value:expr;)*) => {
        impl Vector<$number> for $vector {
            const WIDTH: usize = $width;
            $(const HAS_EXP: bool = true;
            #[inline(always)]
            fn exp(self) -> Self {
                $exp(self)
            })?
            #[inline(always)]
            fn all(value: $number) -> Self {
                // SAFETY: what the trait says.
                unsafe { $all(value) }
            }
            #[inline(always)]
            unsafe fn load(from: *const $number) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $load(from) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $number) {
                // SAFETY: the caller's promise.
                unsafe { $store(to, self) }
            }
            #[inline(always)]
            unsafe fn stream(self, to: *mut $number) {
                // SAFETY: the caller's promise.
                unsafe { $stream(to, self) }
            }
            $(#[inline(always)]
            unsafe fn load_part(from: *const $number, count: usize) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $load_part(((1u32 << count) - 1) as $mask, from) }
            }
            #[inline(always)]
            unsafe fn store_part(self, to: *mut $number, count: usize) {
                // SAFETY: the caller's promise.
                unsafe { $store_part(to, ((1u32 << count) - 1) as $mask, self) }
            })?
            #[inline(always)]
            fn multiply_add(self, factor: Self, sum: Self) -> Self {
                // SAFETY: what the trait says.
                unsafe { $fma(self, factor, sum) }
            }
            $(#[inline(always)]
            fn $method(self $(, $b: Self)?) -> Self {
                let $a = self;
                // SAFETY: what the trait says.
                unsafe { $value }
            })*
        }
    };
}

// The instructions for the larger and the smaller give the second number where one is NaN; so a first one that is NaN
// is put back.
#[cfg(target_arch = "x86_64")]
vector! {
    __m512d of 8 f64 with super::wide_exp::exp_f64: _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_stream_pd _mm512_fmadd_pd
        parts _mm512_maskz_loadu_pd _mm512_mask_storeu_pd __mmask8;
    plus |a, b| _mm512_add_pd(a, b);
    minus |a, b| _mm512_sub_pd(a, b);
    times |a, b| _mm512_mul_pd(a, b);
    magnitude |a| _mm512_abs_pd(a);
    larger |a, b| _mm512_mask_mov_pd(_mm512_max_pd(a, b), _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(a, a), a);
    smaller |a, b| _mm512_mask_mov_pd(_mm512_min_pd(a, b), _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(a, a), a);
}
#[cfg(target_arch = "x86_64")]
vector! {
    __m512 of 16 f32 with super::wide_exp::exp_f32: _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_stream_ps _mm512_fmadd_ps
        parts _mm512_maskz_loadu_ps _mm512_mask_storeu_ps __mmask16;
    plus |a, b| _mm512_add_ps(a, b);
    minus |a, b| _mm512_sub_ps(a, b);
    times |a, b| _mm512_mul_ps(a, b);
    magnitude |a| _mm512_abs_ps(a);
    larger |a, b| _mm512_mask_mov_ps(_mm512_max_ps(a, b), _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a), a);
    smaller |a, b| _mm512_mask_mov_ps(_mm512_min_ps(a, b), _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a), a);
}
#[cfg(target_arch = "x86_64")]
vector! {
    __m256d of 4 f64: _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_stream_pd _mm256_fmadd_pd;
    plus |a, b| _mm256_add_pd(a, b);
    minus |a, b| _mm256_sub_pd(a, b);
    times |a, b| _mm256_mul_pd(a, b);
    magnitude |a| _mm256_andnot_pd(_mm256_set1_pd(-0.0), a);
    larger |a, b| _mm256_blendv_pd(_mm256_max_pd(a, b), a, _mm256_cmp_pd::<_CMP_UNORD_Q>(a, a));
    smaller |a, b| _mm256_blendv_pd(_mm256_min_pd(a, b), a, _mm256_cmp_pd::<_CMP_UNORD_Q>(a, a));
}
#[cfg(target_arch = "x86_64")]
vector! {
    __m256 of 8 f32: _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_stream_ps _mm256_fmadd_ps;
    plus |a, b| _mm256_add_ps(a, b);
    minus |a, b| _mm256_sub_ps(a, b);
    times |a, b| _mm256_mul_ps(a, b);
    magnitude |a| _mm256_andnot_ps(_mm256_set1_ps(-0.0), a);
    larger |a, b| _mm256_blendv_ps(_mm256_max_ps(a, b), a, _mm256_cmp_ps::<_CMP_UNORD_Q>(a, a));
    smaller |a, b| _mm256_blendv_ps(_mm256_min_ps(a, b), a, _mm256_cmp_ps::<_CMP_UNORD_Q>(a, a));
}

/// What every machine has: the compiler makes small vectors of it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Array<T, const N: usize, I = Baseline>(pub [T; N], PhantomData<I>);

impl<T: Real, const N: usize, I: Isa> Array<T, N, I> {
    #[inline(always)]
    fn map2(self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        Array(std::array::from_fn(|i| f(self.0[i], other.0[i])), PhantomData)
    }
}

impl<T: Real, const N: usize, I: Isa> Vector<T> for Array<T, N, I> {
    const WIDTH: usize = N;
    #[inline(always)]
    fn all(value: T) -> Self {
        Array([value; N], PhantomData)
    }
    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: the caller's promise.
        Array(std::array::from_fn(|i| unsafe { *from.add(i) }), PhantomData)
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: the caller's promise.
        (0..N).for_each(|i| unsafe { *to.add(i) = self.0[i] });
    }
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.map2(other, |a, b| a + b)
    }
    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        self.map2(other, |a, b| a - b)
    }
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        self.map2(other, |a, b| a * b)
    }
    #[inline(always)]
    fn multiply_add(self, factor: Self, sum: Self) -> Self {
        let product = |i: usize| multiply_add::<T, I>(self.0[i], factor.0[i], sum.0[i]);
        Array(std::array::from_fn(product), PhantomData)
    }
    #[inline(always)]
    fn magnitude(self) -> Self {
        Array(self.0.map(T::abs), PhantomData)
    }
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        self.map2(other, maximum)
    }
    #[inline(always)]
    fn smaller(self, other: Self) -> Self {
        self.map2(other, minimum)
    }
}
