/* log 2 in two parts, the upper one with so few bits that its product with an exponent is exact. */
#define GX_LOG2_E GX_PICK(1.4426950408889634, 1.442695f)
#define GX_LN2_HI GX_PICK(0.693147180559663, 0.69314575f)
#define GX_LN2_LO GX_PICK(2.8235290563031577e-13, 1.4286068e-06f)

/* Adding GX_SHIFTER rounds a number of modest size to an integer, and leaves that, plus the bias, in the lowest bits.
 */
#define GX_SHIFTER ((gx_t)GX_PICK(0x1.8p52 + 1023, 0x1.8p23f + 127))

/* The integer nearest to c x, for results below 2^51 (f64) or 2^22 (f32). */
GX_INLINE gx_v gx_nearest(gx_v x, gx_t c) {
    return gx_fma(x, gx_all(c), gx_all(GX_SHIFTER)) - gx_all(GX_SHIFTER);
}

/* 2^k for an integer k in the range of exponents. */
GX_INLINE gx_v gx_exp2_of_integer(gx_v k) { return (gx_v)((gx_u)(k + gx_all(GX_SHIFTER)) << GX_MANTISSA); }

/* x 2^k for an integer k that may carry x out of the range of exponents. */
GX_INLINE gx_v gx_scale(gx_v x, gx_v k) {
#if GX_BYTES == 64
    return GX_X(scalef, scalefp)(x, k GX_ALL_ROUNDED(x));
#else
    gx_v half = gx_nearest(k, 0.5);
    return gx_rounded(x * gx_exp2_of_integer(half) * gx_exp2_of_integer(k - half));
#endif
}
