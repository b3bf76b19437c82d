GX_INLINE int gx_any(gx_i mask) {
#if GX_BYTES == 64 && defined(__clang__)
    return GX_PICK(_mm512_movepi64_mask, _mm512_movepi32_mask)((__m512i)mask) != 0;
#elif GX_BYTES == 64
    return GX_PICK(__builtin_ia32_cvtq2mask512, __builtin_ia32_cvtd2mask512)(GX_LANES(mask)) != 0;
#elif defined(__SSE2__)
    return GX_X(movemask, movmskp)((gx_v)mask) != 0;
#else
    gx_int any = 0;
    for (int i = 0; i < GX_W; i++) any |= mask[i];
    return any != 0;
#endif
}
