//! The two types of numbers, and the instruction sets that loops are compiled for.

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
    + super::elementary::Elementary
    + super::tile::Vectors
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
    /// The nearest number of this type.
    fn of_index(value: i64) -> Self;
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
}

macro_rules! real {
    ($type:ident) => {
        impl Real for $type {
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
            fn of_index(value: i64) -> Self {
                value as $type
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $type::abs(self)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $type::sqrt(self)
            }
            #[inline(always)]
            fn floor(self) -> Self {
                $type::floor(self)
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                $type::ceil(self)
            }
            #[inline(always)]
            fn round(self) -> Self {
                $type::round(self)
            }
            #[inline(always)]
            fn fused(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
            }
        }
    };
}

real!(f32);
real!(f64);

/// An instruction set, as far as the code must know.
pub trait Isa: Copy {
    /// Whether `a*b + c` is one instruction.
    const FUSED: bool;
    /// Its widest vectors.
    type Vector<T: Real>: super::tile::Vector<T>;
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
    ($($name:ident $fused:expr, $vector:ident;)*) => {$(
        #[derive(Clone, Copy)]
        pub struct $name;
        impl Isa for $name {
            const FUSED: bool = $fused;
            type Vector<T: Real> = T::$vector;
        }
    )*};
}

isa! {
    Baseline cfg!(any(target_feature = "fma", target_arch = "aarch64")), Baseline;
}

#[cfg(target_arch = "x86_64")]
isa! {
    Avx2 true, Avx2;
    Avx512 true, Avx512;
}

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
