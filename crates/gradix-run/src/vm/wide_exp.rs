//! `exp` with a table in registers of 64 bytes; `elementary` has it for other vectors.
//!
//! The algorithm and coefficients are those of `gradix::emit::c::library`, which has them in C and explains them.
#![allow(unsafe_code, reason = "vector instructions, which are only called where the machine has them")]

use super::elementary::{f32_constants, f64_constants};
use std::arch::x86_64::*;

macro_rules! wide_exp {
    ($name:ident, $vector:ident, $number:ident, $constants:ident, $table:expr, $polynomial:expr, $shifter:expr,
     $all:ident, $mul:ident, $sub:ident, $fma:ident, $fnma:ident, $range:ident, $scale:ident,
     |$from:ident, $bits:ident| $look_up:expr) => {
        /// Only called where the machine has AVX-512 F and DQ.
        #[inline(always)]
        pub fn $name(x: $vector) -> $vector {
            const TABLE: [$number; 16] = $table;
            const POLYNOMIAL: &[$number] = &$polynomial;
            // SAFETY: the caller's promise.
            unsafe {
                let shifted = $fma(x, $all($constants::LOG2_E), $all($shifter));
                let k = $sub(shifted, $all($shifter));
                let r = $fnma(k, $all($constants::LN2_LOW), $fnma(k, $all($constants::LN2_HIGH), x));
                let r = $range::<2>(r, $all(0.03125));
                let ($from, $bits) = (&TABLE, shifted);
                let power = $look_up;
                let (last, others) = POLYNOMIAL.split_last().expect("not empty");
                let tail = others.iter().rev().fold($all(*last), |sum, c| $fma(sum, r, $all(*c)));
                let growth = $fma($mul(r, r), tail, r);
                $scale($fma(power, growth, power), k)
            }
        }
    };
}

wide_exp!(
    exp_f64,
    __m512d,
    f64,
    f64_constants,
    [
        1.0,
        1.0442737824274138,
        1.0905077326652577,
        1.1387886347566916,
        1.189207115002721,
        1.241857812073484,
        1.2968395546510096,
        1.3542555469368927,
        std::f64::consts::SQRT_2,
        1.4768261459394993,
        1.5422108254079407,
        1.6104903319492543,
        1.681792830507429,
        1.7562521603732995,
        1.8340080864093424,
        1.9152065613971474,
    ],
    [0.49999999999999606, 0.16666666664413438, 0.04166666669330476, 0.008333472060177597, 0.001388859374565889],
    1.5 * (1u64 << 48) as f64,
    _mm512_set1_pd,
    _mm512_mul_pd,
    _mm512_sub_pd,
    _mm512_fmadd_pd,
    _mm512_fnmadd_pd,
    _mm512_range_pd,
    _mm512_scalef_pd,
    |table, bits| {
        let (low, high) = (_mm512_loadu_pd(table.as_ptr()), _mm512_loadu_pd(table[8..].as_ptr()));
        _mm512_permutex2var_pd(low, _mm512_castpd_si512(bits), high)
    }
);

wide_exp!(
    exp_f32,
    __m512,
    f32,
    f32_constants,
    [
        1.0,
        1.0442737,
        1.0905077,
        1.1387886,
        1.1892071,
        1.2418578,
        1.2968396,
        1.3542556,
        std::f32::consts::SQRT_2,
        1.4768262,
        1.5422108,
        1.6104903,
        1.6817929,
        1.7562522,
        1.8340081,
        1.9152066,
    ],
    [0.5000162, 0.16666815],
    1.5 * (1u64 << 19) as f32,
    _mm512_set1_ps,
    _mm512_mul_ps,
    _mm512_sub_ps,
    _mm512_fmadd_ps,
    _mm512_fnmadd_ps,
    _mm512_range_ps,
    _mm512_scalef_ps,
    |table, bits| _mm512_permutexvar_ps(_mm512_castps_si512(bits), _mm512_loadu_ps(table.as_ptr()))
);
