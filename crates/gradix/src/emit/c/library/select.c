/* a where the mask is set, b elsewhere; in the form that the compiler turns into one blend. */
GX_INLINE gx_v gx_select(gx_i mask, gx_v a, gx_v b) {
#if GX_BYTES == 64 && !defined(__clang__)
    return (gx_v)((mask & (gx_i)a) | ((mask == 0) & (gx_i)b));
#else
    return (gx_v)((mask & (gx_i)a) | (~mask & (gx_i)b));
#endif
}
