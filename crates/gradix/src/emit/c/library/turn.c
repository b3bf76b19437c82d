/* Interleaving the two halves of a list of rows, once for every doubling, turns a square. */
#ifdef GX_SHUFFLES
#define GX_SQUARE GX_W
/* Exchanges rows and lanes. */
GX_INLINE void gx_turn(gx_v *a)
{
    gx_v b[GX_W];
    GX_UNROLL
    for (int s = 1; s < GX_W; s *= 2) {
        GX_UNROLL
        for (int i = 0; i < GX_W/2; i++) {
            b[2*i] = GX_LOW(a[i], a[i + GX_W/2]);
            b[2*i + 1] = GX_HIGH(a[i], a[i + GX_W/2]);
        }
        GX_UNROLL
        for (int i = 0; i < GX_W; i++) a[i] = b[i];
    }
}
#else
/* No place is in a square. */
#define GX_SQUARE ((int64_t)1 << 62)
#endif
