/* The sine and cosine of h + l, where |h| <= pi/4 and l is small beside h; s and c are sums of an upper and a lower
 * part.
 */
GX_INLINE void gx_sin_cos_pairs(gx_v h, gx_v l, gx_pair *s, gx_pair *c) {
    static const gx_t sine[] =
#if defined(GX_F64)
        {-0.1666666666666663, 0.00833333333332175, -0.0001984126982924399, 2.7557313488777967e-06,
         -2.5050725435393e-08, 1.5894860885023577e-10};
#else
        {-0.16666654f, 0.008332114f, -0.00019509462f};
#endif
    static const gx_t cosine[] =
#if defined(GX_F64)
        {0.041666666666666595, -0.0013888888888873318, 2.4801587288963617e-05, -2.755731419822933e-07,
         2.0875701766627357e-09, -1.1358506647981717e-11};
#else
        {0.041666646f, -0.0013887307f, 2.4431827e-05f};
#endif
    gx_pair z = gx_two_product(h, h), d = gx_fast_sum(gx_all(1), gx_rounded(z.hi * gx_all(-0.5)));
    gx_v rest = gx_fma(z.hi * z.hi, GX_POLY2(z.hi, cosine), z.lo * gx_all(-0.5));
    *c = gx_fast_sum(d.hi, d.lo + gx_fnma(h, l, rest));
    *s = gx_fast_sum(h, gx_fma(h * z.hi, GX_POLY2(z.hi, sine), l * d.hi));
}
