/* The first n numbers, 0 <= n <= GX_W, and zeros; what lies behind them is not touched. */
GX_INLINE gx_v gx_load_n(const gx_t *p, int64_t n) {
#if GX_BYTES == 64 && defined(__clang__)
    return GX_X(maskz_loadu, )((gx_bits)((1u << n) - 1), p);
#elif GX_BYTES == 64
    return GX_X(, loadup)((const void *)p, (gx_v){0}, (gx_bits)((1u << n) - 1));
#elif defined(__AVX2__) && defined(__clang__)
    return GX_X(maskload, )(p, (__m256i)(gx_iota() < gx_all((gx_t)n)));
#elif defined(__AVX2__)
    return GX_X(, maskloadp)((const void *)p, GX_LANES(gx_iota() < gx_all((gx_t)n)));
#else
    gx_v v = {0};
    for (int64_t i = 0; i < n; i++) v[i] = p[i];
    return v;
#endif
}

/* The lanes whose bits are set. */
#if GX_BYTES == 64 && defined(__clang__)
#define gx_store_m(p, v, bits) GX_X(mask_storeu, )(p, bits, v)
#elif GX_BYTES == 64
#define gx_store_m(p, v, bits) GX_X(, storeup)((void *)(p), v, bits)
#endif

GX_INLINE void gx_store_n(gx_t *p, gx_v v, int64_t n) {
#if GX_BYTES == 64
    gx_store_m(p, v, (gx_bits)((1u << n) - 1));
#elif defined(__AVX2__) && defined(__clang__)
    GX_X(maskstore, )(p, (__m256i)(gx_iota() < gx_all((gx_t)n)), v);
#elif defined(__AVX2__)
    GX_X(, maskstorep)((void *)p, GX_LANES(gx_iota() < gx_all((gx_t)n)), v);
#else
    for (int64_t i = 0; i < n; i++) p[i] = v[i];
#endif
}
