GX_INLINE gx_v gx_iota(void) {
    gx_v v = {0};
    GX_UNROLL
    for (int i = 0; i < GX_W; i++) v[i] = (gx_t)i;
    return v;
}
