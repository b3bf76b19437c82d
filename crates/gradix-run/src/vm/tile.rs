//! Register tiles: `c[i, j] ⊕= f(a[k, i], b[k, j])` for a few rows and vectors, with all of `c` in registers.
//!
//! `a` is packed, the values of all rows for one term after the other. A term of `b` is a row of lanes at any place, so
//! that it can be used where it lies as well as from a panel.
#![allow(unsafe_code, reason = "vector instructions, on panels and targets that the caller has checked")]

use super::real::{Baseline, Isa, Level, Real, maximum, minimum, multiply_add};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// What a term adds to an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// `c + a*b`
    Product,
    /// `c + (a - b)^2`
    SquaredDifference,
    /// `c + |a - b|`
    AbsoluteDifference,
    /// `max(c, a + b)`
    LargestSum,
    /// `min(c, a + b)`
    SmallestSum,
}

/// How many rows and vectors a tile has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Many rows, and as many vectors as fit into registers.
    Tall,
    /// Many rows, and fewer vectors.
    Narrow,
    /// One row.
    Flat,
}

/// The work of one tile.
pub struct Tile<T> {
    pub terms: usize,
    /// `terms` times the rows of the form.
    pub a: *const T,
    /// Where lanes are counted from.
    pub b: *const T,
    /// Where each term starts, from `b`.
    pub offsets: *const isize,
    /// The first element of the target.
    pub to: *mut T,
    /// Its distances from row to row and lane to lane.
    pub strides: (isize, isize),
    /// How many of the rows and lanes are written.
    pub shape: (usize, usize),
    /// The value that a reduction starts with.
    pub neutral: T,
    /// Whether the target's old value counts.
    pub combine: bool,
}

/// Code for a tile.
///
/// # Safety
/// `a` has all terms, `b` has all lanes of the form at each of `terms` offsets, and the target has its shape.
pub type TileCode<T> = unsafe fn(&Tile<T>);

/// The rows and lanes of a form, for numbers of this size.
pub fn form<T: Real>(level: Level, form: Form) -> (usize, usize) {
    let (rows, vectors) = match (level, form) {
        (_, Form::Flat) => (1, 8),
        (Level::Avx512, Form::Tall) => (8, 3),
        (Level::Avx512, Form::Narrow) => (8, 2),
        (Level::Avx2, Form::Tall) => (4, 3),
        (Level::Avx2 | Level::Baseline, Form::Tall | Form::Narrow) => (4, 2),
    };
    let bytes = match level {
        Level::Avx512 => 64,
        Level::Avx2 => 32,
        Level::Baseline => 16,
    };
    (rows, vectors * bytes / size_of::<T>())
}

/// The types of vectors for each instruction set.
pub trait Vectors: Sized {
    #[cfg(target_arch = "x86_64")]
    type Avx512: Vector<Self>;
    #[cfg(target_arch = "x86_64")]
    type Avx2: Vector<Self>;
    type Baseline: Vector<Self>;
}

impl Vectors for f64 {
    #[cfg(target_arch = "x86_64")]
    type Avx512 = __m512d;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = __m256d;
    type Baseline = Array<f64, 2>;
}

impl Vectors for f32 {
    #[cfg(target_arch = "x86_64")]
    type Avx512 = __m512;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = __m256;
    type Baseline = Array<f32, 4>;
}

/// The code for a rule and a form.
pub fn code<T: Real>(level: Level, rule: Rule, form: Form) -> TileCode<T> {
    match rule {
        Rule::Product => code_of::<T, Product>(level, form),
        Rule::SquaredDifference => code_of::<T, SquaredDifference>(level, form),
        Rule::AbsoluteDifference => code_of::<T, AbsoluteDifference>(level, form),
        Rule::LargestSum => code_of::<T, LargestSum>(level, form),
        Rule::SmallestSum => code_of::<T, SmallestSum>(level, form),
    }
}

fn code_of<T: Real, R: Step>(level: Level, form: Form) -> TileCode<T> {
    match (level, form) {
        #[cfg(target_arch = "x86_64")]
        (Level::Avx512, Form::Tall) => avx512::<T, R, 8, 3>,
        #[cfg(target_arch = "x86_64")]
        (Level::Avx512, Form::Narrow) => avx512::<T, R, 8, 2>,
        #[cfg(target_arch = "x86_64")]
        (Level::Avx512, Form::Flat) => avx512::<T, R, 1, 8>,
        #[cfg(target_arch = "x86_64")]
        (Level::Avx2, Form::Tall) => avx2::<T, R, 4, 3>,
        #[cfg(target_arch = "x86_64")]
        (Level::Avx2, Form::Narrow) => avx2::<T, R, 4, 2>,
        #[cfg(target_arch = "x86_64")]
        (Level::Avx2, Form::Flat) => avx2::<T, R, 1, 8>,
        (_, Form::Tall | Form::Narrow) => tile::<T, T::Baseline, R, 4, 2>,
        (_, Form::Flat) => tile::<T, T::Baseline, R, 1, 8>,
    }
}

/// Code that copies lanes, term by term, from what starts at `starts` and `begin` to a panel.
///
/// # Safety
/// The panel has room for all terms, and each has all lanes of the form.
pub type CopyCode<T> = unsafe fn(*mut T, &[*const T], usize);

/// The copying for the lanes of a form.
pub fn copy<T: Real>(level: Level, form: Form) -> CopyCode<T> {
    match (level, form) {
        #[cfg(target_arch = "x86_64")]
        (Level::Avx512, Form::Tall) => copy_avx512::<T, 3>,
        #[cfg(target_arch = "x86_64")]
        (Level::Avx512, Form::Narrow) => copy_avx512::<T, 2>,
        #[cfg(target_arch = "x86_64")]
        (Level::Avx512, Form::Flat) => copy_avx512::<T, 8>,
        #[cfg(target_arch = "x86_64")]
        (Level::Avx2, Form::Tall) => copy_avx2::<T, 3>,
        #[cfg(target_arch = "x86_64")]
        (Level::Avx2, Form::Narrow) => copy_avx2::<T, 2>,
        #[cfg(target_arch = "x86_64")]
        (Level::Avx2, Form::Flat) => copy_avx2::<T, 8>,
        (_, Form::Tall | Form::Narrow) => copy_lanes::<T, T::Baseline, 2>,
        (_, Form::Flat) => copy_lanes::<T, T::Baseline, 8>,
    }
}

/// # Safety
/// As for [`CopyCode`], and the machine has these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn copy_avx512<T: Real, const N: usize>(to: *mut T, starts: &[*const T], begin: usize) {
    // SAFETY: the caller's promise.
    unsafe { copy_lanes::<T, T::Avx512, N>(to, starts, begin) }
}

/// # Safety
/// As for [`CopyCode`], and the machine has these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn copy_avx2<T: Real, const N: usize>(to: *mut T, starts: &[*const T], begin: usize) {
    // SAFETY: the caller's promise.
    unsafe { copy_lanes::<T, T::Avx2, N>(to, starts, begin) }
}

/// # Safety
/// As for [`CopyCode`], and the machine has the instructions of the vectors.
#[inline(always)]
unsafe fn copy_lanes<T: Real, V: Vector<T>, const N: usize>(to: *mut T, starts: &[*const T], begin: usize) {
    for (term, start) in starts.iter().enumerate() {
        for vector in 0..N {
            // SAFETY: the caller's promise.
            unsafe {
                let lanes = V::load(start.add(begin + vector * V::WIDTH));
                lanes.store(to.add((term * N + vector) * V::WIDTH));
            }
        }
    }
}

/// # Safety
/// As for [`TileCode`], and the machine has these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn avx512<T: Real, R: Step, const M: usize, const N: usize>(work: &Tile<T>) {
    // SAFETY: the caller's promise.
    unsafe { tile::<T, T::Avx512, R, M, N>(work) }
}

/// # Safety
/// As for [`TileCode`], and the machine has these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<T: Real, R: Step, const M: usize, const N: usize>(work: &Tile<T>) {
    // SAFETY: the caller's promise.
    unsafe { tile::<T, T::Avx2, R, M, N>(work) }
}

/// The most numbers that a tile holds.
const MOST: usize = 8 * 48;

/// # Safety
/// As for [`TileCode`], and the machine has the instructions of the vectors.
#[inline(always)]
unsafe fn tile<T: Real, V: Vector<T>, R: Step, const M: usize, const N: usize>(work: &Tile<T>) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[V::all(work.neutral); N]; M];
        for term in 0..work.terms {
            let row = work.b.offset(*work.offsets.add(term));
            let mut lanes = [V::all(T::ZERO); N];
            for (j, lane) in lanes.iter_mut().enumerate() {
                *lane = V::load(row.add(j * V::WIDTH));
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let a = V::all(*work.a.add(term * M + i));
                for (sum, lane) in sums.iter_mut().zip(lanes) {
                    *sum = R::step(*sum, a, lane);
                }
            }
        }
        if work.shape == (M, N * V::WIDTH) && work.strides.1 == 1 {
            for (i, sums) in sums.iter().enumerate() {
                let line = work.to.offset(i as isize * work.strides.0);
                for (j, sum) in sums.iter().enumerate() {
                    let to = line.add(j * V::WIDTH);
                    let value = if work.combine { R::combine(V::load(to), *sum) } else { *sum };
                    value.store(to);
                }
            }
        } else {
            let mut values = [T::ZERO; MOST];
            for (i, sums) in sums.iter().enumerate() {
                for (j, sum) in sums.iter().enumerate() {
                    sum.store(values.as_mut_ptr().add((i * N + j) * V::WIDTH));
                }
            }
            write::<T, R>(work, &values, N * V::WIDTH);
        }
    }
}

/// Writes a part of a tile, or one whose lanes are apart.
///
/// # Safety
/// The target has its shape.
unsafe fn write<T: Real, R: Step>(work: &Tile<T>, values: &[T; MOST], width: usize) {
    for i in 0..work.shape.0 {
        for j in 0..work.shape.1 {
            // SAFETY: the caller's promise.
            unsafe {
                let to = work.to.offset(i as isize * work.strides.0 + j as isize * work.strides.1);
                let value = values[i * width + j];
                *to = if work.combine { R::combine_one(*to, value) } else { value };
            }
        }
    }
}

/// A rule as code.
pub trait Step {
    fn step<T: Real, V: Vector<T>>(sum: V, a: V, b: V) -> V;
    fn combine<T: Real, V: Vector<T>>(a: V, b: V) -> V;
    fn combine_one<T: Real>(a: T, b: T) -> T;
}

macro_rules! rules {
    ($($name:ident |$sum:ident, $a:ident, $b:ident| $step:expr, $combine:ident $one:expr;)*) => {$(
        pub struct $name;
        impl Step for $name {
            #[inline(always)]
            fn step<T: Real, V: Vector<T>>($sum: V, $a: V, $b: V) -> V {
                $step
            }
            #[inline(always)]
            fn combine<T: Real, V: Vector<T>>(a: V, b: V) -> V {
                a.$combine(b)
            }
            #[inline(always)]
            fn combine_one<T: Real>(a: T, b: T) -> T {
                let combine: fn(T, T) -> T = $one;
                combine(a, b)
            }
        }
    )*};
}

rules! {
    Product |sum, a, b| a.multiply_add(b, sum), plus |a, b| a + b;
    SquaredDifference |sum, a, b| a.minus(b).multiply_add(a.minus(b), sum), plus |a, b| a + b;
    AbsoluteDifference |sum, a, b| sum.plus(a.minus(b).magnitude()), plus |a, b| a + b;
    LargestSum |sum, a, b| sum.larger(a.plus(b)), larger maximum;
    SmallestSum |sum, a, b| sum.smaller(a.plus(b)), smaller minimum;
    Sum |sum, a, _b| sum.plus(a), plus |a, b| a + b;
    Prod |sum, a, _b| sum.times(a), times |a, b| a * b;
    Largest |sum, a, _b| sum.larger(a), larger maximum;
    Smallest |sum, a, _b| sum.smaller(a), smaller minimum;
}

/// A vector of numbers. Its methods are only called where the machine has the instructions.
pub trait Vector<T>: Copy {
    const WIDTH: usize;
    /// `exp`, where it has a better way than number by number.
    const EXP: Option<fn(Self) -> Self> = None;
    fn all(value: T) -> Self;
    /// # Safety
    /// There are as many numbers as the vector has.
    unsafe fn load(from: *const T) -> Self;
    /// # Safety
    /// There is room for as many numbers as the vector has.
    unsafe fn store(self, to: *mut T);
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

#[cfg(target_arch = "x86_64")]
macro_rules! vector {
    ($vector:ident, $number:ident, $width:literal, $exp:expr, $all:ident, $load:ident, $store:ident, $add:ident, $sub:ident,
     $mul:ident, $fma:ident, $max:ident, $min:ident, |$x:ident| $abs:expr, |$m:ident, $a:ident| $keep:expr) => {
        impl Vector<$number> for $vector {
            const WIDTH: usize = $width;
            const EXP: Option<fn(Self) -> Self> = $exp;
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
            fn plus(self, other: Self) -> Self {
                // SAFETY: what the trait says.
                unsafe { $add(self, other) }
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                // SAFETY: what the trait says.
                unsafe { $sub(self, other) }
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                // SAFETY: what the trait says.
                unsafe { $mul(self, other) }
            }
            #[inline(always)]
            fn multiply_add(self, factor: Self, sum: Self) -> Self {
                // SAFETY: what the trait says.
                unsafe { $fma(self, factor, sum) }
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                let $x = self;
                // SAFETY: what the trait says.
                unsafe { $abs }
            }
            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                // SAFETY: what the trait says.
                unsafe {
                    let ($m, $a) = ($max(self, other), self);
                    $keep
                }
            }
            #[inline(always)]
            fn smaller(self, other: Self) -> Self {
                // SAFETY: what the trait says.
                unsafe {
                    let ($m, $a) = ($min(self, other), self);
                    $keep
                }
            }
        }
    };
}

// The instructions for the larger and the smaller give the second number where one is NaN; so a first one that is NaN
// is put back.
#[cfg(target_arch = "x86_64")]
vector!(
    __m512d,
    f64,
    8,
    Some(super::wide_exp::exp_f64),
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_add_pd,
    _mm512_sub_pd,
    _mm512_mul_pd,
    _mm512_fmadd_pd,
    _mm512_max_pd,
    _mm512_min_pd,
    |x| _mm512_abs_pd(x),
    |m, a| _mm512_mask_mov_pd(m, _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(a, a), a)
);
#[cfg(target_arch = "x86_64")]
vector!(
    __m512,
    f32,
    16,
    Some(super::wide_exp::exp_f32),
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_add_ps,
    _mm512_sub_ps,
    _mm512_mul_ps,
    _mm512_fmadd_ps,
    _mm512_max_ps,
    _mm512_min_ps,
    |x| _mm512_abs_ps(x),
    |m, a| _mm512_mask_mov_ps(m, _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a), a)
);
#[cfg(target_arch = "x86_64")]
vector!(
    __m256d,
    f64,
    4,
    None,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_add_pd,
    _mm256_sub_pd,
    _mm256_mul_pd,
    _mm256_fmadd_pd,
    _mm256_max_pd,
    _mm256_min_pd,
    |x| _mm256_andnot_pd(_mm256_set1_pd(-0.0), x),
    |m, a| _mm256_blendv_pd(m, a, _mm256_cmp_pd::<_CMP_UNORD_Q>(a, a))
);
#[cfg(target_arch = "x86_64")]
vector!(
    __m256,
    f32,
    8,
    None,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_add_ps,
    _mm256_sub_ps,
    _mm256_mul_ps,
    _mm256_fmadd_ps,
    _mm256_max_ps,
    _mm256_min_ps,
    |x| _mm256_andnot_ps(_mm256_set1_ps(-0.0), x),
    |m, a| _mm256_blendv_ps(m, a, _mm256_cmp_ps::<_CMP_UNORD_Q>(a, a))
);

/// What every machine has: the compiler makes small vectors of it.
#[derive(Clone, Copy)]
pub struct Array<T, const N: usize, I = Baseline>([T; N], PhantomData<I>);

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
