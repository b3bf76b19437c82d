/* What combines rows x lanes elements of a tile with the target; a fresh target holds nothing yet. both is the operation
 * on vectors, both_1 on numbers.
 */
#define GX_PUT(name, both, both_1)                                                                                     \
    static GX_NOINLINE void gx_put_##name(gx_t *target, int64_t row_step, int64_t lane_step, const gx_t *tile,         \
        int64_t width, int64_t rows, int64_t lanes, int fresh)                                                         \
    {                                                                                                                  \
        for (int64_t u = 0; u < rows; u++) {                                                                           \
            int64_t v = 0;                                                                                             \
            for (; lane_step == 1 && v + GX_W <= lanes; v += GX_W) {                                                   \
                gx_t *const to = target + u*row_step + v;                                                              \
                const gx_t *const from = tile + u*width + v;                                                           \
                gx_store(to, fresh ? gx_load(from) : both(gx_load(to), gx_load(from)));                                \
            }                                                                                                          \
            for (; lane_step == 1 && v < lanes; v += GX_W) {                                                           \
                const int64_t n = gx_smaller(GX_W, lanes - v);                                                         \
                gx_t *const to = target + u*row_step + v;                                                              \
                const gx_t *const from = tile + u*width + v;                                                           \
                gx_store_n(to, fresh ? gx_load_n(from, n) : both(gx_load_n(to, n), gx_load_n(from, n)), n);            \
            }                                                                                                          \
            for (; lane_step == 2 && v + GX_W <= lanes; v += GX_W) {                                                   \
                gx_t *const to = target + u*row_step + 2*v;                                                            \
                const gx_t *const from = tile + u*width + v;                                                           \
                gx_store_s(to, 2, fresh ? gx_load(from) : both(gx_load_s(to, 2), gx_load(from)));                      \
            }                                                                                                          \
            for (; v < lanes; v++) {                                                                                   \
                gx_t *const to = target + u*row_step + v*lane_step;                                                    \
                const gx_t *const from = tile + u*width + v;                                                           \
                *to = fresh ? *from : both_1(*to, *from);                                                              \
            }                                                                                                          \
        }                                                                                                              \
    }
