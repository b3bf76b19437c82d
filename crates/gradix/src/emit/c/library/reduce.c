/* Reductions of the lanes: always lane i with lane i + half, then the halves again. */
#define GX_REDUCE(name, combine)                                                                                       \
    GX_INLINE gx_t gx_##name(gx_v v) {                                                                                 \
        gx_t lane[GX_W];                                                                                               \
        gx_store(lane, v);                                                                                             \
        GX_UNROLL                                                                                                      \
        for (int half = GX_W / 2; half > 0; half /= 2) {                                                               \
            GX_UNROLL                                                                                                  \
            for (int i = 0; i < half; i++) {                                                                           \
                gx_t a = lane[i], b = lane[i + half];                                                                  \
                lane[i] = combine;                                                                                     \
            }                                                                                                          \
        }                                                                                                              \
        return lane[0];                                                                                                \
    }
GX_REDUCE(hsum, a + b)
GX_REDUCE(hprod, a * b)
GX_REDUCE(hmax, a > b || a != a ? a : b)
GX_REDUCE(hmin, a < b || a != a ? a : b)
