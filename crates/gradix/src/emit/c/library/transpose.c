/* to[r*to_step + l] = from[l*from_step + r] */
static GX_NOINLINE void gx_transpose(gx_t *restrict to, int64_t to_step, const gx_t *restrict from, int64_t from_step,
    int64_t rows, int64_t lanes)
{
#ifdef GX_SHUFFLES
    const int64_t done = rows / GX_W * GX_W, whole = lanes / GX_W * GX_W;
    for (int64_t r = 0; r < done; r += GX_W) {
        for (int64_t l = 0; l < whole; l += GX_W) {
            gx_v a[GX_W];
            GX_UNROLL
            for (int i = 0; i < GX_W; i++) a[i] = gx_load(from + (l + i)*from_step + r);
            gx_turn(a);
            GX_UNROLL
            for (int i = 0; i < GX_W; i++) gx_store(to + (r + i)*to_step + l, a[i]);
        }
        for (int64_t l = whole; l < lanes; l++) {
            for (int i = 0; i < GX_W; i++) to[(r + i)*to_step + l] = from[l*from_step + r + i];
        }
    }
#else
    const int64_t done = 0;
#endif
    for (int64_t r = done; r < rows; r++) {
        for (int64_t l = 0; l < lanes; l++) to[r*to_step + l] = from[l*from_step + r];
    }
}
