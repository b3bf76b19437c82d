GX_INLINE gx_v gx_sqrt(gx_v x) {
#if defined(__SSE2__)
    return GX_X(sqrt, sqrtp)(x GX_ALL_ROUNDED(x));
#elif defined(__aarch64__)
    return GX_PICK(vsqrtq_f64, vsqrtq_f32)(x);
#else
    for (int i = 0; i < GX_W; i++) x[i] = GX_PICK(__builtin_sqrt, __builtin_sqrtf)(x[i]);
    return x;
#endif
}
GX_SCALAR(sqrt)
