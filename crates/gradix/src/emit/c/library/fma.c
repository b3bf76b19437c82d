/* a b + c, and c - a b: rounded once where GX_FUSED is defined, twice elsewhere. */
#if defined(__FMA__) || GX_BYTES == 64
#define GX_FUSED
GX_INLINE gx_v gx_fma(gx_v a, gx_v b, gx_v c) { return GX_X(fmadd, vfmaddp)(a, b, c GX_ROUNDED); }
GX_INLINE gx_v gx_fnma(gx_v a, gx_v b, gx_v c) { return GX_X(fnmadd, vfnmaddp)(a, b, c GX_ROUNDED); }
#elif defined(__aarch64__)
#define GX_FUSED
GX_INLINE gx_v gx_fma(gx_v a, gx_v b, gx_v c) { return GX_PICK(vfmaq_f64, vfmaq_f32)(c, a, b); }
GX_INLINE gx_v gx_fnma(gx_v a, gx_v b, gx_v c) { return GX_PICK(vfmsq_f64, vfmsq_f32)(c, a, b); }
#else
GX_INLINE gx_v gx_fma(gx_v a, gx_v b, gx_v c) { return a * b + c; }
GX_INLINE gx_v gx_fnma(gx_v a, gx_v b, gx_v c) { return c - a * b; }
#endif
