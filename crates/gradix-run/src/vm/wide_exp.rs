//! `exp` with a table in registers of 64 bytes; `elementary` has it for other vectors.
//!
//! The algorithm and coefficients are those of `gradix::emit::c::library`, which has them in C and explains them.
#![allow(unsafe_code, reason = "vector instructions, which are only called where the machine has them")]

use std::arch::x86_64::*;

macro_rules! wide_exp {
    ($name:ident($vector:ident of $number:ident), log 2 = $high:literal + $low:literal, shifter = $shifter:expr,
     powers = [$($power:expr),*], polynomial = $($coefficient:literal)*,
     instructions = $all:ident $sub:ident $fma:ident $fnma:ident $range:ident $scale:ident,
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
                let mut growth = $all(0.0);
                // No closure: that would be a function of its own, without these instructions.
                for coefficient in POLYNOMIAL.iter().rev() {
                    growth = $fma(growth, r, $all(*coefficient));
                }
                $scale($fma(power, growth, power), k)
            }
        }
    };
}

wide_exp! {
    exp_f64(__m512d of f64), log 2 = 0.693147180559663 + 2.8235290563031577e-13, shifter = 1.5 * (1u64 << 48) as f64,
    powers = [1.0000897155590904, 1.0443674700336478, 1.0906055681761861, 1.1388908018157446, 1.1893138053839178, 1.241969226041405, 1.2969559013367058, 1.3543770447304375, 1.4143404393335166, 1.4769586402228616, 1.5423491857143776, 1.610634817989795, 1.6819437134914923, 1.7564097235177711, 1.834172625470191, 1.9153783852245767],
    polynomial = -8.970751093093486e-05 0.999910292489069 0.4999551462445306 0.16665171539231458 0.041662928880346915
        0.008332724485141666 0.0013887347834483637,
    instructions = _mm512_set1_pd _mm512_sub_pd _mm512_fmadd_pd _mm512_fnmadd_pd _mm512_range_pd
        _mm512_scalef_pd,
    |table, bits| {
        let (low, high) = (_mm512_loadu_pd(table.as_ptr()), _mm512_loadu_pd(table[8..].as_ptr()));
        _mm512_permutex2var_pd(low, _mm512_castpd_si512(bits), high)
    }
}

wide_exp! {
    exp_f32(__m512 of f32), log 2 = 0.69314575 + 1.4286068e-06, shifter = 1.5 * (1u64 << 19) as f32,
    powers = [0.9994449, 1.0436941, 1.0899024, 1.1381565, 1.188547, 1.2411685, 1.2961197, 1.3535038, 1.4134285, 1.4760064, 1.5413548, 1.6095964, 1.6808593, 1.7552773, 1.83299, 1.9141434],
    polynomial = 0.0005553903 1.0005554 0.5002939 0.16676071,
    instructions = _mm512_set1_ps _mm512_sub_ps _mm512_fmadd_ps _mm512_fnmadd_ps _mm512_range_ps
        _mm512_scalef_ps,
    |table, bits| _mm512_permutexvar_ps(_mm512_castps_si512(bits), _mm512_loadu_ps(table.as_ptr()))
}
