//! `exp` with a table in registers of 64 bytes; `elementary` has it for other vectors.
//!
//! The algorithm and coefficients are those of `gradix::emit::c::library`, which has them in C and explains them.
#![allow(unsafe_code, reason = "vector instructions, which are only called where the machine has them")]

use std::arch::x86_64::*;

macro_rules! wide_exp {
    ($name:ident($vector:ident of $number:ident), log 2 = $high:literal + $low:literal, shifter = $shifter:expr,
     powers = [$($power:expr),*], polynomial = $($coefficient:literal)*,
     instructions = $all:ident $mul:ident $sub:ident $fma:ident $fnma:ident $range:ident $scale:ident,
     |$table:ident, $bits:ident| $look_up:expr) => {
        /// Only called where the machine has AVX-512 F and DQ.
        #[inline(always)]
        pub fn $name(x: $vector) -> $vector {
            const TABLE: [$number; 16] = [$($power),*];
            const POLYNOMIAL: &[$number] = &[$($coefficient),*];
            // SAFETY: the caller's promise.
            unsafe {
                let shifted = $fma(x, $all(std::$number::consts::LOG2_E), $all($shifter));
                let k = $sub(shifted, $all($shifter));
                let r = $fnma(k, $all($low), $fnma(k, $all($high), x));
                let r = $range::<2>(r, $all(0.03125));
                let ($table, $bits) = (&TABLE, shifted);
                let power = $look_up;
                let mut tail = $all(0.0);
                // No closure: that would be a function of its own, without these instructions.
                for coefficient in POLYNOMIAL.iter().rev() {
                    tail = $fma(tail, r, $all(*coefficient));
                }
                let growth = $fma($mul(r, r), tail, r);
                $scale($fma(power, growth, power), k)
            }
        }
    };
}

wide_exp! {
    exp_f64(__m512d of f64), log 2 = 0.693147180559663 + 2.8235290563031577e-13, shifter = 1.5 * (1u64 << 48) as f64,
    powers = [1.0, 1.0442737824274138, 1.0905077326652577, 1.1387886347566916, 1.189207115002721, 1.241857812073484,
        1.2968395546510096, 1.3542555469368927, std::f64::consts::SQRT_2, 1.4768261459394993, 1.5422108254079407,
        1.6104903319492543, 1.681792830507429, 1.7562521603732995, 1.8340080864093424, 1.9152065613971474],
    polynomial = 0.49999999999999606 0.16666666664413438 0.04166666669330476 0.008333472060177597 0.001388859374565889,
    instructions = _mm512_set1_pd _mm512_mul_pd _mm512_sub_pd _mm512_fmadd_pd _mm512_fnmadd_pd _mm512_range_pd
        _mm512_scalef_pd,
    |table, bits| {
        let (low, high) = (_mm512_loadu_pd(table.as_ptr()), _mm512_loadu_pd(table[8..].as_ptr()));
        _mm512_permutex2var_pd(low, _mm512_castpd_si512(bits), high)
    }
}

wide_exp! {
    exp_f32(__m512 of f32), log 2 = 0.69314575 + 1.4286068e-06, shifter = 1.5 * (1u64 << 19) as f32,
    powers = [1.0, 1.0442737, 1.0905077, 1.1387886, 1.1892071, 1.2418578, 1.2968396, 1.3542556,
        std::f32::consts::SQRT_2, 1.4768262, 1.5422108, 1.6104903, 1.6817929, 1.7562522, 1.8340081, 1.9152066],
    polynomial = 0.5000162 0.16666815,
    instructions = _mm512_set1_ps _mm512_mul_ps _mm512_sub_ps _mm512_fmadd_ps _mm512_fnmadd_ps _mm512_range_ps
        _mm512_scalef_ps,
    |table, bits| _mm512_permutexvar_ps(_mm512_castps_si512(bits), _mm512_loadu_ps(table.as_ptr()))
}
