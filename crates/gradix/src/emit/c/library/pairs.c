/* A number as the unevaluated sum of two. */
typedef struct {
    gx_v hi, lo;
} gx_pair;

/* a + b exactly. */
GX_INLINE gx_pair gx_two_sum(gx_v a, gx_v b) {
    gx_v s = a + b, t = s - a;
    return (gx_pair){s, (a - (s - t)) + (b - t)};
}

/* a + b exactly, where a is 0 or has no smaller exponent than b. */
GX_INLINE gx_pair gx_fast_sum(gx_v a, gx_v b) {
    gx_v s = a + b;
    return (gx_pair){s, b - (s - a)};
}

/* a b exactly; without fused arithmetic up to 1/2 ulp of the lower part. */
GX_INLINE gx_pair gx_two_product(gx_v a, gx_v b) {
    gx_v p = gx_rounded(a * b);
#if defined(GX_FUSED)
    return (gx_pair){p, gx_fma(a, b, -p)};
#else
    gx_i upper = gx_all_i(-((gx_int)1 << GX_PICK(27, 12)));
    gx_v c = (gx_v)((gx_i)a & upper), d = (gx_v)((gx_i)b & upper);
    gx_v e = a - c, f = b - d;
    return (gx_pair){p, ((c * d - p) + c * f + e * d) + e * f};
#endif
}

/* c - a b, rounded once, where c and a b nearly cancel. */
GX_INLINE gx_v gx_remainder(gx_v c, gx_v a, gx_v b) {
#if defined(GX_FUSED)
    return gx_fnma(a, b, c);
#else
    gx_pair p = gx_two_product(a, b);
    return (c - p.hi) - p.lo;
#endif
}
