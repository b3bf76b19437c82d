/* log(x) = k log 2 + log(m) with x = 2^k m and m in 0.75 .. 1.5. With f = m - 1 and s = f / (2 + f), log(m) = 2
 * atanh(s) = f - s (f - R), where R = s^2 P(s^2) has degree 8 (f64) or 3 (f32) in s^2. log1p, log2 and log10 need the
 * logarithm of a sum of two numbers, or more digits than one number holds. Errors below 1 ulp (log1p as well) and 1.5
 * ulp (log2, log10).
 */
/* f - R for s = f / (2 + f). */
GX_INLINE gx_v gx_log_tail(gx_v f, gx_v s) {
    static const gx_t c[] =
#if defined(GX_F64)
        {0.666666666666666, 0.4000000000005646, 0.2857142855590879, 0.22222224285347805, 0.18181666621902595,
         0.15391085765383378, 0.13174061387187702, 0.1383980107904757};
#else
        {0.6666695f, 0.39957717f, 0.30362463f};
#endif
    gx_v z = s * s;
    return gx_fnma(z, GX_POLY2(z, c), f);
}

/* What log(x) is at the ends of its domain and beyond them, and y elsewhere. */
GX_INLINE gx_v gx_log_ends(gx_v x, gx_v y) {
#if GX_BYTES == 64 && defined(__clang__)
    return GX_X(fixupimm, )(y, x, GX_PICK(_mm512_set1_epi64, _mm512_set1_epi32)(0x03530422), 0);
#elif GX_BYTES == 64
    return GX_X(, fixupimmp)(y, x, GX_LANES(gx_all_i(0x03530422)), 0 GX_ROUNDED);
#else
    y = gx_select(x < gx_all(GX_INF), y, x + x);
    return gx_select(x > gx_all(0), y, gx_select(x == gx_all(0), gx_all(-GX_INF), x * gx_all(GX_NAN)));
#endif
}

GX_INLINE gx_v gx_log(gx_v x) {
    gx_v k, f = gx_split(x, &k) - gx_all(1), s = gx_quotient(f, f + gx_all(2));
    gx_v below = gx_fma(s, gx_log_tail(f, s), k * gx_all(-GX_LN2_LO));
    return gx_log_ends(x, gx_fma(k, gx_all(GX_LN2_HI), f - below));
}
GX_SCALAR(log)
