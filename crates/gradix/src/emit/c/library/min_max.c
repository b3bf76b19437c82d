/* The smaller and the larger: y where they are equal, and NaN where either is. */
GX_INLINE gx_v gx_min(gx_v x, gx_v y) {
#if defined(__SSE2__)
    return gx_select(x != x, x, GX_X(min, minp)(x, y GX_ALL_ROUNDED(x)));
#else
    return gx_select((x < y) | (x != x), x, y);
#endif
}
GX_SCALAR2(min)

GX_INLINE gx_v gx_max(gx_v x, gx_v y) {
#if defined(__SSE2__)
    return gx_select(x != x, x, GX_X(max, maxp)(x, y GX_ALL_ROUNDED(x)));
#else
    return gx_select((x > y) | (x != x), x, y);
#endif
}
GX_SCALAR2(max)
