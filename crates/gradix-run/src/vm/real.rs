//! The two types of numbers, and the instruction sets that loops are compiled for.
#![allow(unsafe_code, reason = "passes on what callers promise")]

use super::elementary::Elementary;
use super::tile::{self, Tile};
use super::vector::{Array, Step, Vector};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m256, __m256d, __m512, __m512d};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// `f32` or `f64`.
pub trait Real:
    Copy
    + PartialOrd
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + Elementary
    + 'static
{
    /// 0
    const ZERO: Self;
    /// 1
    const ONE: Self;
    /// The largest of all.
    const INFINITY: Self;
    /// How many fill a cache line.
    const PER_LINE: usize = 64 / size_of::<Self>();
    /// The nearest number of this type.
    fn of(value: f64) -> Self;
    /// The same number in f64.
    fn wide(self) -> f64;
    /// The magnitude.
    fn abs(self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// The next integer below.
    fn floor(self) -> Self;
    /// The next integer above.
    fn ceil(self) -> Self;
    /// The nearest integer, halves away from zero.
    fn round(self) -> Self;
    /// `self*b + c`, rounded once.
    fn fused(self, b: Self, c: Self) -> Self;
    /// The vectors of an instruction set.
    type Baseline: Vector<Self>;
    /// The vectors of an instruction set.
    #[cfg(target_arch = "x86_64")]
    type Avx2: Vector<Self>;
    /// The vectors of an instruction set.
    #[cfg(target_arch = "x86_64")]
    type Avx512: Vector<Self>;
}

macro_rules! real {
    ($type:ident in $baseline:ty, $avx2:ident, $avx512:ident: $($method:ident)*) => {
        impl Real for $type {
            type Baseline = $baseline;
            #[cfg(target_arch = "x86_64")]
            type Avx2 = $avx2;
            #[cfg(target_arch = "x86_64")]
            type Avx512 = $avx512;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const INFINITY: Self = $type::INFINITY;
            #[inline(always)]
            fn of(value: f64) -> Self {
                value as $type
            }
            #[inline(always)]
            fn wide(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn fused(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
            }
            $(#[inline(always)]
            fn $method(self) -> Self {
                $type::$method(self)
            })*
        }
    };
}

real! { f32 in Array<f32, 4>, __m256, __m512: abs sqrt floor ceil round }
real! { f64 in Array<f64, 2>, __m256d, __m512d: abs sqrt floor ceil round }

/// An instruction set, as far as the code must know.
pub trait Isa: Copy {
    /// Whether `a*b + c` is one instruction.
    const FUSED: bool;
    /// Its widest vectors.
    type Vector<T: Real>: Vector<T>;
    /// Runs a register tile, of the form that fits its registers.
    ///
    /// # Safety
    /// As for [`tile::run`].
    unsafe fn tile<T: Real, R: Step>(work: &Tile<T>);
}

/// Instruction sets that are told apart at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every machine of the architecture has.
    Baseline,
    /// x86 with AVX2 and FMA.
    Avx2,
    /// x86 with AVX-512 F, BW, DQ and VL.
    Avx512,
}

impl Level {
    /// How many numbers its vectors have.
    pub fn width<T>(self) -> usize {
        let bytes = match self {
            Level::Avx512 => 64,
            Level::Avx2 => 32,
            Level::Baseline => 16,
        };
        bytes / size_of::<T>()
    }

    /// The best that this machine has.
    pub fn detect() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            let has_avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let has_avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            if has_avx2 && has_avx512 {
                return Level::Avx512;
            }
            if has_avx2 {
                return Level::Avx2;
            }
        }
        Level::Baseline
    }
}

macro_rules! isa {
    ($($name:ident: $fused:expr, $rows:literal rows of $vectors:literal vectors, $dots:literal dots;)*) => {$(
        #[derive(Clone, Copy)]
        pub struct $name;
        impl Isa for $name {
            const FUSED: bool = $fused;
            type Vector<T: Real> = T::$name;
            #[inline(always)]
            unsafe fn tile<T: Real, R: Step>(work: &Tile<T>) {
                // SAFETY: the caller's promise.
                unsafe {
                    match (work.lanes, work.vectors) {
                        (Some(lanes), _) => tile::dot::<T, T::$name, R, $dots, 4>(work, lanes),
                        (None, 1) => tile::tile::<T, T::$name, R, $rows, 1>(work),
                        (None, 2) => tile::tile::<T, T::$name, R, $rows, 2>(work),
                        (None, _) => tile::tile::<T, T::$name, R, $rows, $vectors>(work),
                    }
                }
            }
        }
    )*};
}

isa! { Baseline: cfg!(any(target_feature = "fma", target_arch = "aarch64")), 4 rows of 2 vectors, 2 dots; }

#[cfg(target_arch = "x86_64")]
isa! { Avx2: true, 4 rows of 3 vectors, 2 dots; Avx512: true, 8 rows of 3 vectors, 4 dots; }

/// Declares a function that runs `$body` as compiled for the instruction set that it is given.
macro_rules! by_level {
    ($(#[$meta:meta])* $visibility:vis $name:ident<$real:ident $(, $rule:ident: $bound:ident)?>($($argument:ident: $type:ty),*) = $body:ident) => {
        $(#[$meta])*
        #[inline]
        $visibility unsafe fn $name<$real: Real $(, $rule: $bound)?>(level: Level, $($argument: $type),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
            unsafe fn avx512<$real: Real $(, $rule: $bound)?>($($argument: $type),*) {
                // SAFETY: the caller's promise.
                unsafe { $body::<$real, crate::vm::real::Avx512 $(, $rule)?>($($argument),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            unsafe fn avx2<$real: Real $(, $rule: $bound)?>($($argument: $type),*) {
                // SAFETY: the caller's promise.
                unsafe { $body::<$real, crate::vm::real::Avx2 $(, $rule)?>($($argument),*) }
            }
            // SAFETY: the caller's promise; levels are only those that the machine has.
            unsafe {
                match level {
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx512 => avx512::<$real $(, $rule)?>($($argument),*),
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx2 => avx2::<$real $(, $rule)?>($($argument),*),
                    _ => $body::<$real, crate::vm::real::Baseline $(, $rule)?>($($argument),*),
                }
            }
        }
    };
}
pub(super) use by_level;

/// `a*b + c`, in one rounding where that is fast.
#[inline(always)]
pub fn multiply_add<T: Real, I: Isa>(a: T, b: T, c: T) -> T {
    if I::FUSED { a.fused(b, c) } else { a * b + c }
}

/// The larger number; NaN if either is, the second if they are equal.
#[inline(always)]
pub fn maximum<T: Real>(a: T, b: T) -> T {
    // Not `a.partial_cmp(&a).is_none()`: this form becomes two vector comparisons.
    #[allow(clippy::eq_op)]
    if (a > b) | (a != a) { a } else { b }
}

/// The smaller number; NaN if either is, the second if they are equal.
#[inline(always)]
pub fn minimum<T: Real>(a: T, b: T) -> T {
    #[allow(clippy::eq_op)]
    if (a < b) | (a != a) { a } else { b }
}
