/* Sets n numbers to 0. */
GX_INLINE void gx_clear(gx_t *p, int64_t n) { __builtin_memset(p, 0, (uint64_t)n * sizeof(gx_t)); }
