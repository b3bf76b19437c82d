GX_INLINE gx_v gx_load(const gx_t *p) { return *(const gx_in_memory *)p; }

GX_INLINE void gx_store(gx_t *p, gx_v v) { *(gx_in_memory *)p = v; }
