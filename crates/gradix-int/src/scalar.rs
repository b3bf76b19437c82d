//! The numbers that a tableau computes with: machine words as long as every result fits one, else exact integers.
//!
//! Every operation is exact or reports an overflow. That of [`Int`] cannot occur, which its type says.

use std::cmp::Ordering;
use std::convert::Infallible;

use dashu_int::ops::{Abs, Gcd};

use crate::Int;

/// A number whose operations are exact or fail.
pub(crate) trait Scalar: Clone + Ord {
    /// What is returned when a result can't be represented.
    type Overflow;

    const ZERO: Self;
    const ONE: Self;

    fn from_int(value: &Int) -> Result<Self, Self::Overflow>;
    fn to_int(&self) -> Int;
    fn is_zero(&self) -> bool;
    /// `-self`
    fn negate(&self) -> Result<Self, Self::Overflow>;
    /// `self - a b`
    fn minus_product(&self, a: &Self, b: &Self) -> Result<Self, Self::Overflow>;
    /// `(self p - a b) / d`, where the division is exact.
    fn cross(&self, p: &Self, a: &Self, b: &Self, d: &Self) -> Result<Self, Self::Overflow>;
    /// `self / d`, rounded towards zero.
    fn quotient(&self, d: &Self) -> Result<Self, Self::Overflow>;
    /// The magnitudes of `self` and `other` compared.
    fn compare_magnitude(&self, other: &Self) -> Ordering;
    /// `a b` and `c d` compared.
    fn compare_products(a: &Self, b: &Self, c: &Self, d: &Self) -> Ordering;
    /// The greatest common divisor, not negative.
    fn gcd(&self, other: &Self) -> Result<Self, Self::Overflow>;
}

/// The result does not fit a machine word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overflow;

impl Scalar for i64 {
    type Overflow = Overflow;

    const ZERO: i64 = 0;
    const ONE: i64 = 1;

    fn from_int(value: &Int) -> Result<i64, Overflow> {
        i64::try_from(value).map_err(|_| Overflow)
    }

    fn to_int(&self) -> Int {
        Int::from(*self)
    }

    #[inline]
    fn is_zero(&self) -> bool {
        *self == 0
    }

    #[inline]
    fn negate(&self) -> Result<i64, Overflow> {
        self.checked_neg().ok_or(Overflow)
    }

    #[inline]
    fn minus_product(&self, a: &i64, b: &i64) -> Result<i64, Overflow> {
        a.checked_mul(*b).and_then(|product| self.checked_sub(product)).ok_or(Overflow)
    }

    #[inline]
    fn cross(&self, p: &i64, a: &i64, b: &i64, d: &i64) -> Result<i64, Overflow> {
        let narrow = self.checked_mul(*p).zip(a.checked_mul(*b)).and_then(|(x, y)| x.checked_sub(y));
        match narrow {
            Some(difference) if *d == 1 => Ok(difference),
            Some(difference) => difference.checked_div(*d).ok_or(Overflow),
            None => {
                let difference = i128::from(*self) * i128::from(*p) - i128::from(*a) * i128::from(*b);
                i64::try_from(difference / i128::from(*d)).map_err(|_| Overflow)
            }
        }
    }

    #[inline]
    fn quotient(&self, d: &i64) -> Result<i64, Overflow> {
        self.checked_div(*d).ok_or(Overflow)
    }

    #[inline]
    fn compare_magnitude(&self, other: &i64) -> Ordering {
        self.unsigned_abs().cmp(&other.unsigned_abs())
    }

    #[inline]
    fn compare_products(a: &i64, b: &i64, c: &i64, d: &i64) -> Ordering {
        (i128::from(*a) * i128::from(*b)).cmp(&(i128::from(*c) * i128::from(*d)))
    }

    #[inline]
    fn gcd(&self, other: &i64) -> Result<i64, Overflow> {
        let (mut a, mut b) = (self.unsigned_abs(), other.unsigned_abs());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        i64::try_from(a).map_err(|_| Overflow)
    }
}

impl Scalar for Int {
    type Overflow = Infallible;

    const ZERO: Int = Int::ZERO;
    const ONE: Int = Int::ONE;

    fn from_int(value: &Int) -> Result<Int, Infallible> {
        Ok(value.clone())
    }

    fn to_int(&self) -> Int {
        self.clone()
    }

    fn is_zero(&self) -> bool {
        Int::is_zero(self)
    }

    fn negate(&self) -> Result<Int, Infallible> {
        Ok(-self)
    }

    fn minus_product(&self, a: &Int, b: &Int) -> Result<Int, Infallible> {
        Ok(self - a * b)
    }

    fn cross(&self, p: &Int, a: &Int, b: &Int, d: &Int) -> Result<Int, Infallible> {
        Ok((self * p - a * b) / d)
    }

    fn quotient(&self, d: &Int) -> Result<Int, Infallible> {
        Ok(self / d)
    }

    fn compare_magnitude(&self, other: &Int) -> Ordering {
        self.abs().cmp(&other.abs())
    }

    fn compare_products(a: &Int, b: &Int, c: &Int, d: &Int) -> Ordering {
        (a * b).cmp(&(c * d))
    }

    fn gcd(&self, other: &Int) -> Result<Int, Infallible> {
        Ok(if self.is_zero() && other.is_zero() { Int::ZERO } else { Gcd::gcd(self, other).into() })
    }
}
