/* 1 / b to half the digits or better, where b is neither tiny nor huge nor infinite. A quotient that is computed with
 * it and then corrected by its remainder has all digits.
 */
GX_INLINE gx_v gx_reciprocal(gx_v b) {
#if GX_BYTES == 64 && defined(GX_F64)
    gx_v y = GX_X(rcp14, rcp14p)(b GX_ALL(b));
    return gx_fma(y, gx_fnma(b, y, gx_all(1)), y);
#elif GX_BYTES == 64
    return GX_X(rcp14, rcp14p)(b GX_ALL(b));
#else
    return gx_all(1) / b;
#endif
}

/* a / b to 0.6 ulp, for such b. */
GX_INLINE gx_v gx_quotient(gx_v a, gx_v b) {
#if GX_BYTES == 64
    gx_v y = gx_reciprocal(b), q = a * y;
    return gx_fma(gx_fnma(b, q, a), y, q);
#else
    return a / b;
#endif
}

/* The same of two sums. */
GX_INLINE gx_v gx_quotient_of_pairs(gx_pair a, gx_pair b) {
    gx_v y = gx_reciprocal(b.hi), q = a.hi * y;
    return gx_fma(gx_fnma(q, b.lo, gx_remainder(a.hi, q, b.hi) + a.lo), y, q);
}
