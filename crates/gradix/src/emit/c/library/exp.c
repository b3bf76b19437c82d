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

#if GX_BYTES == 64
/* x with a magnitude of at most that of a limit; NaN becomes the limit. */
GX_INLINE gx_v gx_within(gx_v x, gx_t limit) { return GX_X(range, rangep)(x, gx_all(limit), 2 GX_ALL_ROUNDED(x)); }

/* 2^(j/16) for the integer j in the lowest four bits of each lane. */
GX_INLINE gx_v gx_sixteenth(gx_v bits) {
#if defined(GX_F64)
    const gx_v low = {1.0, 1.0442737824274138, 1.0905077326652577, 1.1387886347566916, 1.189207115002721,
                      1.241857812073484, 1.2968395546510096, 1.3542555469368927};
    const gx_v high = {1.4142135623730951, 1.4768261459394993, 1.5422108254079407, 1.6104903319492543,
                       1.681792830507429, 1.7562521603732995, 1.8340080864093424, 1.9152065613971474};
#if defined(__clang__)
    return _mm512_permutex2var_pd(low, (__m512i)bits, high);
#else
    return __builtin_shuffle(low, high, (gx_i)bits);
#endif
#else
    const gx_v all = {1.0f, 1.0442737f, 1.0905077f, 1.1387886f, 1.1892071f, 1.2418578f, 1.2968396f, 1.3542556f,
                      1.4142135f, 1.4768262f, 1.5422108f, 1.6104903f, 1.6817929f, 1.7562522f, 1.8340081f, 1.9152066f};
#if defined(__clang__)
    return _mm512_permutexvar_ps((__m512i)bits, all);
#else
    return __builtin_shuffle(all, (gx_i)bits);
#endif
#endif
}

#endif

/* On 64 bytes k is the nearest multiple of 1/16, and r in +-0.0217: exp(x) = 2^floor(k) 2^(j/16) exp(r), with the power
 * of 2^(1/16) from a table in registers and exp(r) of degree 6 (f64) or 3 (f32). Where x is infinite, NaN or huge, r is
 * anything, and k decides.
 */
GX_INLINE gx_v gx_exp(gx_v x) {
#if GX_BYTES == 64
    static const gx_t c[] =
#if defined(GX_F64)
        {0.49999999999999606, 0.16666666664413438, 0.04166666669330476, 0.008333472060177597, 0.001388859374565889};
#else
        {0.5000162f, 0.16666815f};
#endif
    const gx_v shifter = gx_all(GX_PICK(0x1.8p48, 0x1.8p19f));
    gx_v shifted = gx_fma(x, gx_all(GX_LOG2_E), shifter), k = shifted - shifter;
    gx_v r = gx_within(gx_fnma(k, gx_all(GX_LN2_LO), gx_fnma(k, gx_all(GX_LN2_HI), x)), 0.03125);
    gx_v power = gx_sixteenth(shifted), growth = gx_fma(r * r, GX_POLY(r, c), r);
    return gx_scale(gx_fma(power, growth, power), k);
#else
    gx_v k, r = gx_exp_reduce(gx_at_most(gx_at_least(x, GX_PICK(-746, -104)), GX_PICK(710, 89)), &k);
    return gx_scale(gx_exp_reduced(r), k);
#endif
}
GX_SCALAR(exp)
