/* Rounding to integers: exact. round takes halves away from zero: adding the number just below 1/2 carries everything
 * from a half on, and nothing less, over the next integer. Without SSE4.1 and its like, adding 2^52 (f64) or 2^23
 * (f32) rounds; what is larger is an integer already.
 */
GX_INLINE gx_v gx_floor(gx_v x) {
#if GX_BYTES == 64 && defined(__clang__)
    return GX_X(roundscale, )(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
#elif GX_BYTES == 64
    return GX_PICK(__builtin_ia32_rndscalepd_mask, __builtin_ia32_rndscaleps_mask)(x, 9 GX_ALL_ROUNDED(x));
#elif defined(__SSE4_1__) && defined(__clang__)
    return GX_X(floor, )(x);
#elif defined(__SSE4_1__)
    return GX_X(, roundp)(x, 9);
#elif defined(__aarch64__)
    return GX_PICK(vrndmq_f64, vrndmq_f32)(x);
#else
    gx_v large = gx_all(GX_PICK(0x1p52, 0x1p23f)), a = gx_abs(x);
    gx_v nearest = gx_flip((a + large) - large, x);
    gx_v y = gx_signed(gx_abs(nearest - gx_select(nearest > x, gx_all(1), gx_all(0))), x);
    return gx_select(a < large, y, x);
#endif
}
GX_SCALAR(floor)

GX_INLINE gx_v gx_ceil(gx_v x) { return -gx_floor(-x); }
GX_SCALAR(ceil)

GX_INLINE gx_v gx_round(gx_v x) {
    return gx_flip(gx_floor(gx_abs(x) + gx_all(GX_PICK(0x1.fffffffffffffp-2, 0x1.fffffep-2f))), x);
}
GX_SCALAR(round)
