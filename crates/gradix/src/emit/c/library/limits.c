/* x limited to the side of a constant; NaN stays NaN. */
GX_INLINE gx_v gx_at_most(gx_v x, gx_t limit) {
#if defined(__SSE2__)
    return GX_X(min, minp)(gx_all(limit), x GX_ALL_ROUNDED(x));
#else
    return gx_select(gx_all(limit) < x, gx_all(limit), x);
#endif
}

GX_INLINE gx_v gx_at_least(gx_v x, gx_t limit) {
#if defined(__SSE2__)
    return GX_X(max, maxp)(gx_all(limit), x GX_ALL_ROUNDED(x));
#else
    return gx_select(gx_all(limit) > x, gx_all(limit), x);
#endif
}
