/* exp(x) = 2^k exp(r), with k the integer nearest to x / log 2 and r = x - k log 2 in +-0.347; exp(r) = 1 + r + r^2
 * Q(r), of degree 11 (f64) or 6 (f32). Error below 1.1 ulp; limits of x make overflow infinite and underflow gradual.
 */
/* r and k for a finite x of at most a few thousand. */
GX_INLINE gx_v gx_exp_reduce(gx_v x, gx_v *k) {
    *k = gx_nearest(x, GX_LOG2_E);
    return gx_fnma(*k, gx_all(GX_LN2_LO), gx_fnma(*k, gx_all(GX_LN2_HI), x));
}

/* exp(r) for r in +-0.347. */
GX_INLINE gx_v gx_exp_reduced(gx_v r) {
    static const gx_t c[] =
#if defined(GX_F64)
        {0.5000000000000011, 0.1666666666666644, 0.041666666666526915, 0.008333333333477334,
         0.0013888888944374456, 0.00019841269542195892, 2.4801492397991005e-05, 2.755755545297086e-06,
         2.763048136001971e-07, 2.5009650925356153e-08};
#else
        {0.49999994f, 0.16666521f, 0.041668266f, 0.008368677f, 0.0013820803f};
#endif
    return gx_all(1) + gx_fma(r * r, GX_POLY2(r, c), r);
}

/* exp(x) for |x| up to a few thousand. */
GX_INLINE gx_v gx_exp_limited(gx_v x) {
    gx_v k, r = gx_exp_reduce(x, &k);
    return gx_scale(gx_exp_reduced(r), k);
}

GX_INLINE gx_v gx_exp(gx_v x) {
    return gx_exp_limited(gx_at_most(gx_at_least(x, GX_PICK(-746, -104)), GX_PICK(710, 89)));
}
GX_SCALAR(exp)
