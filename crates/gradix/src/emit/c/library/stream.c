/* The vector at p past the caches, if it lies on a boundary of vectors. gx_streamed() comes before other threads read. */
#if defined(__clang__) && defined(__SSE2__)
#define GX_STREAM(p, v) __builtin_nontemporal_store(v, (gx_v *)(void *)(p))
#elif defined(__SSE2__) && GX_BYTES == 64
#define GX_STREAM(p, v) GX_PICK(__builtin_ia32_movntpd512, __builtin_ia32_movntps512)(p, v)
#elif defined(__SSE2__) && GX_BYTES == 32
#define GX_STREAM(p, v) GX_PICK(__builtin_ia32_movntpd256, __builtin_ia32_movntps256)(p, v)
#elif defined(__SSE2__)
#define GX_STREAM(p, v) GX_PICK(__builtin_ia32_movntpd, __builtin_ia32_movntps)(p, v)
#else
#define GX_STREAM(p, v) gx_store(p, v)
#endif

GX_INLINE void gx_stream(gx_t *p, gx_v v) {
    if ((uintptr_t)p % GX_BYTES == 0) GX_STREAM(p, v);
    else gx_store(p, v);
}

GX_INLINE void gx_streamed(void) {
#ifdef __SSE2__
    __builtin_ia32_sfence();
#endif
}
