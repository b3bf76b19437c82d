//! Elementary functions without branches, so that loops over them become vector code; within 2 ulp.
//!
//! The algorithms and coefficients are those of `gradix::emit::c::library`, which has them in C and explains them.

use super::real::Isa;

/// Declares the functions that block instructions know, and where each type has them.
macro_rules! functions {
    ($($name:ident)*) => {
        pub trait Elementary: Sized {
            /// `sin` and `cos` are good up to here.
            const LARGEST_ANGLE: Self;
            fn pow<I: Isa>(self, exponent: Self) -> Self;
            $(fn $name<I: Isa>(self) -> Self;)*
        }
        functions! { f64 in double up to 1e9: $($name)* }
        functions! { f32 in single up to 1e5: $($name)* }
    };
    ($type:ident in $module:ident up to $angle:literal: $($name:ident)*) => {
        impl Elementary for $type {
            const LARGEST_ANGLE: $type = $angle;
            #[inline(always)]
            fn pow<I: Isa>(self, exponent: $type) -> $type {
                $module::pow::<I>(self, exponent)
            }
            $(#[inline(always)]
            fn $name<I: Isa>(self) -> $type {
                $module::$name::<I>(self)
            })*
        }
    };
}

functions! { exp expm1 log log1p sin cos tanh erf sigmoid softplus }

/// A number as the unevaluated sum of two.
#[derive(Clone, Copy)]
struct Pair<T> {
    high: T,
    low: T,
}

macro_rules! elementary {
    ($module:ident, $type:ident, $constants:ident) => {
        mod $module {
            use super::super::real::{Isa, multiply_add};
            use super::{Pair, $constants::*};
            use std::$type::consts::{FRAC_1_PI, LOG2_E, PI};

            const MANTISSA: u32 = $type::MANTISSA_DIGITS - 1;
            /// The lower bits of a factor whose upper part has products without rounding.
            const SPLIT: u32 = $type::MANTISSA_DIGITS.div_ceil(2);
            /// Numbers from here on are integers.
            const INTEGER: $type = 1.0 / $type::EPSILON;
            /// What is added to it becomes an integer.
            const ROUNDER: $type = 1.5 * INTEGER;
            /// The same, with the bias of exponents.
            const SHIFTER: $type = ROUNDER + OFFSET - 1.0;
            const OFFSET: $type = $type::MAX_EXP as $type;
            const TINY_SCALE: $type = 4.0 * INTEGER;
            const TINY_EXPONENT: $type = ($type::MANTISSA_DIGITS + 1) as $type;

            /// `c[0] + c[1] x + …`, the even and the odd powers in chains of their own.
            #[inline(always)]
            fn polynomial<I: Isa, const N: usize>(x: $type, c: [$type; N]) -> $type {
                let z = x * x;
                let (mut a, mut b) = (c[N - 1], c[N - 2]);
                let mut i = N - 2;
                while i >= 2 {
                    a = multiply_add::<$type, I>(a, z, c[i - 1]);
                    b = multiply_add::<$type, I>(b, z, c[i - 2]);
                    i -= 2;
                }
                if i == 1 {
                    a = multiply_add::<$type, I>(a, z, c[0]);
                    return multiply_add::<$type, I>(b, x, a);
                }
                multiply_add::<$type, I>(a, x, b)
            }

            /// `a + b` exactly.
            #[inline(always)]
            fn two_sum(a: $type, b: $type) -> Pair<$type> {
                let high = a + b;
                let part = high - a;
                Pair { high, low: (a - (high - part)) + (b - part) }
            }

            /// `a + b` exactly, where `a` is 0 or has no smaller exponent than `b`.
            #[inline(always)]
            fn fast_sum(a: $type, b: $type) -> Pair<$type> {
                let high = a + b;
                Pair { high, low: b - (high - a) }
            }

            /// `a b` exactly; without fused arithmetic up to half an ulp of the lower part.
            #[inline(always)]
            fn two_product<I: Isa>(a: $type, b: $type) -> Pair<$type> {
                let high = a * b;
                if I::FUSED {
                    return Pair { high, low: a.mul_add(b, -high) };
                }
                let upper = |x: $type| $type::from_bits(x.to_bits() & !((1 << SPLIT) - 1));
                let (c, d) = (upper(a), upper(b));
                let (e, f) = (a - c, b - d);
                Pair { high, low: ((c * d - high) + c * f + e * d) + e * f }
            }

            /// `c - a*b` where these nearly cancel.
            #[inline(always)]
            fn remainder<I: Isa>(c: $type, a: $type, b: $type) -> $type {
                if I::FUSED {
                    return (-a).mul_add(b, c);
                }
                let product = two_product::<I>(a, b);
                (c - product.high) - product.low
            }

            /// The quotient of two sums.
            #[inline(always)]
            fn quotient<I: Isa>(a: Pair<$type>, b: Pair<$type>) -> $type {
                let inverse = 1.0 / b.high;
                let quotient = a.high * inverse;
                let rest = remainder::<I>(a.high, quotient, b.high) + multiply_add::<$type, I>(-quotient, b.low, a.low);
                multiply_add::<$type, I>(rest, inverse, quotient)
            }

            #[inline(always)]
            fn at_most(x: $type, limit: $type) -> $type {
                if limit < x { limit } else { x }
            }

            #[inline(always)]
            fn at_least(x: $type, limit: $type) -> $type {
                if limit > x { limit } else { x }
            }

            /// The nearest integer to a number of modest size.
            #[inline(always)]
            fn nearest(x: $type) -> $type {
                (x + SHIFTER) - SHIFTER
            }

            /// `2^k` for an integer `k` in the range of exponents.
            #[inline(always)]
            fn power_of_two(k: $type) -> $type {
                $type::from_bits((k + SHIFTER).to_bits() << MANTISSA)
            }

            /// `x 2^k`, which may leave the range of exponents.
            #[inline(always)]
            fn scale(x: $type, k: $type) -> $type {
                let half = nearest(k * 0.5);
                x * power_of_two(half) * power_of_two(k - half)
            }

            /// `x = k log 2 + r`
            #[inline(always)]
            fn reduce<I: Isa>(x: $type) -> ($type, $type) {
                let k = multiply_add::<$type, I>(x, LOG2_E, SHIFTER) - SHIFTER;
                let r = multiply_add::<$type, I>(k, -LN2_HIGH, x);
                (k, multiply_add::<$type, I>(k, -LN2_LOW, r))
            }

            #[inline(always)]
            pub fn exp<I: Isa>(x: $type) -> $type {
                let (k, r) = reduce::<I>(at_most(at_least(x, EXP_LEAST), EXP_MOST));
                scale(1.0 + multiply_add::<$type, I>(r * r, polynomial::<I, _>(r, EXP), r), k)
            }

            /// `expm1(x) / 2` in two parts.
            #[inline(always)]
            fn half_expm1<I: Isa>(x: $type) -> Pair<$type> {
                let (k, r) = reduce::<I>(x);
                let power = power_of_two(k - 1.0);
                let upper = fast_sum(power - 0.5, power * r);
                let tail = r * r * polynomial::<I, _>(r, EXPM1);
                Pair { high: upper.high, low: multiply_add::<$type, I>(power, tail, upper.low) }
            }

            #[inline(always)]
            pub fn expm1<I: Isa>(x: $type) -> $type {
                let half = half_expm1::<I>(at_most(at_least(x, EXPM1_LEAST), EXP_MOST));
                let y = (half.high + half.low) * 2.0;
                if x.abs() < TINY { x } else { y }
            }

            #[inline(always)]
            pub fn tanh<I: Isa>(x: $type) -> $type {
                let half = half_expm1::<I>(at_most(x.abs(), TANH_MOST) * 2.0);
                let numerator = fast_sum(half.high, half.low);
                let mut denominator = two_sum(numerator.high, 1.0);
                denominator.low += numerator.low;
                quotient::<I>(numerator, denominator).copysign(x)
            }

            #[inline(always)]
            pub fn sigmoid<I: Isa>(x: $type) -> $type {
                let decay = exp::<I>(-x.abs());
                let numerator = Pair { high: if x < 0.0 { decay } else { 1.0 }, low: 0.0 };
                quotient::<I>(numerator, fast_sum(1.0, decay))
            }

            /// `x = 2^k m` with `m` from 0.75 to 1.5.
            #[inline(always)]
            fn split(x: $type) -> ($type, $type) {
                let tiny = x < $type::MIN_POSITIVE;
                let bits = (if tiny { x * TINY_SCALE } else { x }).to_bits();
                let one = (0.75 as $type).to_bits();
                let above = bits.wrapping_sub(one).wrapping_add((2.0 as $type).to_bits());
                let biased = $type::from_bits((above >> MANTISSA) | INTEGER.to_bits());
                let k = biased - if tiny { INTEGER + OFFSET + TINY_EXPONENT } else { INTEGER + OFFSET };
                let exponent = (above >> MANTISSA) << MANTISSA;
                ($type::from_bits(bits.wrapping_sub(exponent).wrapping_add((2.0 as $type).to_bits())), k)
            }

            /// What is left of `log(1 + f)` beside `f`, with `s = f / (2 + f)`.
            #[inline(always)]
            fn log_tail<I: Isa>(s: $type) -> $type {
                let z = s * s;
                z * polynomial::<I, _>(z, LOG)
            }

            #[inline(always)]
            fn ends(x: $type, y: $type) -> $type {
                let y = if x < $type::INFINITY { y } else { x + x };
                let below = if x == 0.0 { -$type::INFINITY } else { $type::NAN };
                if x > 0.0 { y } else { below }
            }

            #[inline(always)]
            pub fn log<I: Isa>(x: $type) -> $type {
                let (m, k) = split(x);
                let f = m - 1.0;
                let s = f / (f + 2.0);
                let below = multiply_add::<$type, I>(s, f - log_tail::<I>(s), k * -LN2_LOW);
                ends(x, multiply_add::<$type, I>(k, LN2_HIGH, f - below))
            }

            /// `log(1 + x)`: what `1 + x` loses by rounding is added as its quotient by the sum.
            #[inline(always)]
            pub fn log1p<I: Isa>(x: $type) -> $type {
                let sum = two_sum(1.0, x);
                let (m, k) = split(sum.high);
                let same = k == 0.0;
                let f = if same { x } else { m - 1.0 };
                let rest = if same { 0.0 } else { sum.low / sum.high };
                let s = f / (f + 2.0);
                let below = multiply_add::<$type, I>(k, LN2_LOW, rest);
                let below = multiply_add::<$type, I>(s, f - log_tail::<I>(s), -below);
                let y = ends(sum.high, multiply_add::<$type, I>(k, LN2_HIGH, f - below));
                if x == 0.0 { x } else { y }
            }

            #[inline(always)]
            pub fn softplus<I: Isa>(x: $type) -> $type {
                let e = exp::<I>(-x.abs());
                let s = e / (e + 2.0);
                let z = s * s;
                let rest = multiply_add::<$type, I>(-z, polynomial::<I, _>(z, SOFTPLUS), e);
                at_least(x, 0.0) + multiply_add::<$type, I>(-s, rest, e)
            }

            /// `sin(x - n π)` times a sign.
            #[inline(always)]
            fn sin_reduced<I: Isa>(x: $type, n: $type, sign: bool) -> $type {
                let r = remainder::<I>(x, n, PI);
                let r = if I::FUSED {
                    (-n).mul_add(PI_LOWEST, (-n).mul_add(PI_LOW, r))
                } else {
                    let p = two_product::<I>(n, PI_LOW);
                    let d = two_sum(r, -p.high);
                    d.high + ((d.low - p.low) - n * PI_LOWEST)
                };
                let z = r * r;
                let p = multiply_add::<$type, I>(z, polynomial::<I, _>(z, SIN), SIXTH);
                let y = at_least(at_most(multiply_add::<$type, I>(r * z, p, r), 1.0), -1.0);
                if sign { -y } else { y }
            }

            /// For `x` up to [`super::Elementary::LARGEST_ANGLE`].
            #[inline(always)]
            pub fn sin<I: Isa>(x: $type) -> $type {
                let t = multiply_add::<$type, I>(x, FRAC_1_PI, ROUNDER);
                let y = sin_reduced::<I>(x, t - ROUNDER, t.to_bits() & 1 != 0);
                if x.abs() < TINY_ANGLE { x } else { y }
            }

            /// For `x` up to [`super::Elementary::LARGEST_ANGLE`].
            #[inline(always)]
            pub fn cos<I: Isa>(x: $type) -> $type {
                let t = multiply_add::<$type, I>(x.abs(), FRAC_1_PI, -0.5) + ROUNDER;
                sin_reduced::<I>(x.abs(), (t - ROUNDER) + 0.5, t.to_bits() & 1 == 0)
            }

            /// `1 - erf(a)` for `a` from 1, with an error that is small beside 1.
            #[inline(always)]
            fn erf_rest<I: Isa>(a: $type) -> $type {
                let a = at_most(a, ERF_MOST);
                let t = (a - ERF_CENTRE) / (a + ERF_CENTRE);
                exp::<I>(-(a * a)) * polynomial::<I, _>(t, ERF_REST) / multiply_add::<$type, I>(a, 2.0, 1.0)
            }

            #[inline(always)]
            pub fn erf<I: Isa>(x: $type) -> $type {
                let a = x.abs();
                let small = multiply_add::<$type, I>(a, polynomial::<I, _>(a * a, ERF), a);
                let large = 1.0 - erf_rest::<I>(a);
                (if a < 1.0 { small } else { large }).copysign(x)
            }

            /// The logarithm of a positive finite number in two parts.
            #[inline(always)]
            fn log_pair<I: Isa>(x: $type) -> Pair<$type> {
                let (m, k) = split(x);
                let f = m - 1.0;
                let d = fast_sum(2.0, f);
                let s = f / d.high;
                let s_low = multiply_add::<$type, I>(-s, d.low, remainder::<I>(f, s, d.high)) / d.high;
                let mut z = two_product::<I>(s, s);
                z.low = multiply_add::<$type, I>(s + s, s_low, z.low);
                let mut third = two_product::<I>(z.high, TWO_THIRDS);
                third.low += multiply_add::<$type, I>(z.high, TWO_THIRDS_LOW, z.low * TWO_THIRDS);
                third.low = multiply_add::<$type, I>(z.high * z.high, polynomial::<I, _>(z.high, LOG_PAIR), third.low);
                let mut cube = two_product::<I>(s, third.high);
                cube.low += multiply_add::<$type, I>(s, third.low, s_low * third.high);
                let sum = fast_sum(s + s, cube.high);
                let all = fast_sum(k * LN2_HIGH, sum.high);
                let rest = multiply_add::<$type, I>(2.0, s_low, cube.low + sum.low);
                fast_sum(all.high, all.low + multiply_add::<$type, I>(k, LN2_LOW, rest))
            }

            #[inline(always)]
            fn pow_positive<I: Isa>(a: $type, y: $type) -> $type {
                let log = log_pair::<I>(a);
                let y = at_most(at_least(y, -POW_MOST), POW_MOST);
                let w = two_product::<I>(y, log.high);
                let rest = multiply_add::<$type, I>(y, log.low, w.low);
                let rest = if w.high.abs() > POW_BEYOND { 0.0 } else { rest };
                let (k, r) = reduce::<I>(at_most(at_least(w.high, EXP_LEAST - 1.0), EXP_MOST + 1.0));
                let r = r + rest;
                scale(1.0 + multiply_add::<$type, I>(r * r, polynomial::<I, _>(r, EXP), r), k)
            }

            #[inline(always)]
            #[allow(clippy::eq_op)]
            pub fn pow<I: Isa>(x: $type, y: $type) -> $type {
                let (a, half) = (x.abs(), y * 0.5);
                let whole = y.floor() == y;
                let odd = whole & (half.floor() != half);
                let p = pow_positive::<I>(a, y);
                let p = if (x < 0.0) & !whole { $type::NAN } else { p };
                let end = (a == 0.0) | (a == $type::INFINITY);
                let outwards = (a == $type::INFINITY) ^ (y < 0.0);
                let p = if end { if outwards { $type::INFINITY } else { 0.0 } } else { p };
                let p = if odd & x.is_sign_negative() { -p } else { p };
                let p = if (x != x) | (y != y) { x + y } else { p };
                if (y == 0.0) | (x == 1.0) { 1.0 } else { p }
            }
        }
    };
}

/// Declares what the types don't have in common, first for `f64`, then for `f32`: numbers, and the coefficients of
/// polynomials from the constant on.
macro_rules! constants {
    ({ $($name:ident $double:literal $single:literal;)* } { $($polynomial:ident [$($f64:literal)*] [$($f32:literal)*];)* }) => {
        mod double_constants {
            $(pub const $name: f64 = $double;)*
            $(pub const $polynomial: [f64; [$($f64),*].len()] = [$($f64),*];)*
        }
        mod single_constants {
            $(pub const $name: f32 = $single;)*
            $(pub const $polynomial: [f32; [$($f32),*].len()] = [$($f32),*];)*
        }
    };
}

constants! {
    {
        LN2_HIGH 0.693147180559663 0.69314575;
        LN2_LOW 2.8235290563031577e-13 1.4286068e-06;
        EXP_LEAST -746.0 -104.0;
        EXP_MOST 710.0 89.0;
        EXPM1_LEAST -50.0 -25.0;
        TANH_MOST 20.0 10.0;
        TINY 8.673617379884035e-19 9.313226e-10;
        PI_LOW 1.2246467991473532e-16 -8.742278e-08;
        PI_LOWEST -2.9947698097183397e-33 -3.430249e-15;
        SIXTH -0.16666666666666666 -0.16666667;
        TINY_ANGLE 7.450580596923828e-9 0.00024414063;
        ERF_MOST 6.0 4.0;
        ERF_CENTRE 3.0 2.5;
        TWO_THIRDS 0.6666666666666666 0.6666667;
        TWO_THIRDS_LOW 3.700743415417188e-17 -1.9868216e-08;
        POW_MOST 1180591620717411303424.0 1099511627776.0;
        POW_BEYOND 800.0 120.0;
    }
    {
        SIN [0.008333333333333205 -0.00019841269841211405 2.755731921132757e-06 -2.5052106878097294e-08
            1.6058939507075678e-10 -7.642976691735137e-13 2.720936008361852e-15]
            [0.0083333505 -0.000198431 2.762775e-06 -2.5523942e-08];
        SOFTPLUS [0.6666666666666667 0.3999999999999536 0.285714285723386 0.2222222213656005 0.18181822776699805
            0.15384462296953466 0.13336642064408719 0.11717627848302313 0.10961822734644802 0.07033371022312619
            0.16405816744491547]
            [0.66666675 0.3999895 0.28615212 0.21443902 0.24245171];
        ERF [0.12837916709551256 -0.3761263890318352 0.11283791670944152 -0.026866170643108738 0.00522397760611163
            -0.0008548325929545439 0.0001205529359668298 -1.4924712876001809e-05 1.644714055559309e-06
            -1.6206394260886543e-07 1.3711369556511704e-08 -7.780257145039315e-10]
            [0.12837917 -0.37612626 0.11283585 -0.026853805 0.005188323 -0.00080101856 7.853893e-05];
        ERF_REST [1.2530080582701815 -0.1356211061021781 -0.047562294198304746 0.129645152314908 -0.11927381668835364
            0.06830642582785085 -0.023780442780226573 0.002489557438172468 0.0017825073537887457 -0.0009656422402205856
            -0.00030603155139491823 1.4150154177918962e-05]
            [1.2648375 -0.1223866 -0.099416785 0.15531138 -0.10965753 0.024405275];
        LOG_PAIR [0.39999999999999725 0.28571428571577323 0.2222222219124633 0.18181821526272268 0.15384406629062203
            0.13341145368848448 0.11592340181246555 0.12571573331872135]
            [0.4000039 0.28525653 0.23871897];
        EXP [0.5000000000000011 0.1666666666666644 0.041666666666526915 0.008333333333477334 0.0013888888944374456
            0.00019841269542195892 2.4801492397991005e-05 2.755755545297086e-06 2.763048136001971e-07
            2.5009650925356153e-08]
            [0.49999994 0.16666521 0.041668266 0.008368677 0.0013820803];
        EXPM1 [0.5 0.16666666666666677 0.04166666666666663 0.008333333333321463 0.001388888888891117
            0.00019841269886488173 2.4801587263149614e-05 2.755724388363666e-06 2.7557331182446107e-07
            2.5109141644065396e-08 2.0896077973221846e-09]
            [0.5 0.16666666 0.04166649 0.008333555 0.0013932622 0.00019753461];
        LOG [0.666666666666666 0.4000000000005646 0.2857142855590879 0.22222224285347805 0.18181666621902595
            0.15391085765383378 0.13174061387187702 0.1383980107904757]
            [0.6666695 0.39957717 0.30362463];
    }
}

elementary!(double, f64, double_constants);
elementary!(single, f32, single_constants);
