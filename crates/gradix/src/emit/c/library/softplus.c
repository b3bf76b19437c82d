/* softplus(x) = max(x, 0) + log1p(e) with e = exp(-|x|) in 0 .. 1; log1p(e) = e - s (e - R) as in log, with s = e / (2
 * + e) up to 1/3 and R of degree 11 (f64) or 5 (f32) in s^2. Error below 1.8 ulp.
 */
GX_INLINE gx_v gx_softplus(gx_v x) {
    static const gx_t c[] =
#if defined(GX_F64)
        {0.6666666666666667, 0.3999999999999536, 0.285714285723386, 0.2222222213656005, 0.18181822776699805,
         0.15384462296953466, 0.13336642064408719, 0.11717627848302313, 0.10961822734644802, 0.07033371022312619,
         0.16405816744491547};
#else
        {0.66666675f, 0.3999895f, 0.28615212f, 0.21443902f, 0.24245171f};
#endif
    gx_v e = gx_exp(gx_negative_abs(x));
    gx_v s = gx_quotient(e, e + gx_all(2)), z = s * s;
    return gx_at_least(x, 0) + gx_fnma(s, gx_fnma(z, GX_POLY2(z, c), e), e);
}
GX_SCALAR(softplus)
