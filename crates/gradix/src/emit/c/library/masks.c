/* Not GX_INLINE: at -O1, GCC 12 breaks down over some callers if it has to inline them early. */
#define GX_MASK static inline __attribute__((unused)) gx_i

/* The first n lanes. */
GX_MASK gx_below(int64_t n) { return (gx_i)(gx_iota() < gx_all((gx_t)n)); }

/* All lanes true or false. */
GX_MASK gx_truth(int c) { return (gx_i){0} - (c != 0); }
