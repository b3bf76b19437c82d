/* The first n lanes. */
GX_INLINE gx_i gx_below(int64_t n) { return (gx_i)(gx_iota() < gx_all((gx_t)n)); }

/* All lanes true or false. */
GX_INLINE gx_i gx_truth(int c) { return (gx_i){0} - (c != 0); }
