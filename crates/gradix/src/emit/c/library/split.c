/* m in 0.75 .. 1.5 and k with x = 2^k m, for positive finite x. */
GX_INLINE gx_v gx_split(gx_v x, gx_v *k) {
#if GX_BYTES == 64
#if defined(__clang__)
    gx_v m = GX_X(getmant, )(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src);
#else
    gx_v m = GX_X(, getmantp)(x, 3 GX_ALL_ROUNDED(x));
#endif
    *k = GX_X(getexp, getexpp)(x GX_ALL_ROUNDED(x)) - GX_X(getexp, getexpp)(m GX_ALL_ROUNDED(m));
    return m;
#else
    gx_i tiny = x < gx_all(GX_PICK(0x1p-1022, 0x1p-126f));
    gx_u bits = (gx_u)gx_select(tiny, x * gx_all(GX_PICK(0x1p54, 0x1p25f)), x);
    gx_u above = bits - (gx_u)gx_all(0.75) + (gx_u)gx_all_i((gx_int)(GX_BIAS + 1) << GX_MANTISSA);
    gx_v biased = (gx_v)((above >> GX_MANTISSA) | (gx_u)gx_all(GX_PICK(0x1p52, 0x1p23f)));
    *k = biased - gx_select(tiny, gx_all(GX_PICK(0x1p52 + 1024 + 54, 0x1p23f + 128 + 25)),
                            gx_all(GX_PICK(0x1p52 + 1024, 0x1p23f + 128)));
    gx_u exponent = (above >> GX_MANTISSA) << GX_MANTISSA;
    return (gx_v)(bits - exponent + (gx_u)gx_all_i((gx_int)(GX_BIAS + 1) << GX_MANTISSA));
#endif
}
