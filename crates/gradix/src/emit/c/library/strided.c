/* Numbers that are stride apart; those in between are not changed. */
GX_INLINE gx_v gx_load_s(const gx_t *p, int64_t stride) {
#ifdef GX_SHUFFLES
    if (stride == 2) return GX_EVEN(gx_load(p), gx_load(p + GX_W - 1));
#endif
    gx_v v = {0};
    GX_UNROLL
    for (int i = 0; i < GX_W; i++) v[i] = p[i * stride];
    return v;
}

GX_INLINE gx_v gx_load_sn(const gx_t *p, int64_t stride, int64_t n) {
    gx_v v = {0};
    for (int64_t i = 0; i < n; i++) v[i] = p[i * stride];
    return v;
}

GX_INLINE void gx_store_s(gx_t *p, int64_t stride, gx_v v) {
#if defined(GX_SHUFFLES) && GX_BYTES == 64
    if (stride == 2) {
        gx_store_m(p, GX_LOW(v, v), (gx_bits)0x5555);
        gx_store_m(p + GX_W, GX_HIGH(v, v), (gx_bits)0x5555);
        return;
    }
#endif
    GX_UNROLL
    for (int i = 0; i < GX_W; i++) p[i * stride] = v[i];
}

GX_INLINE void gx_store_sn(gx_t *p, int64_t stride, gx_v v, int64_t n) {
    for (int64_t i = 0; i < n; i++) p[i * stride] = v[i];
}
