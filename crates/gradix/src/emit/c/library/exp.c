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

/* e^c 2^(j/16) for the integer j in the lowest four bits of each lane; c is 9e-5 (f64) or -5.6e-4 (f32), which gx_exp takes
 * back. Of ten million numbers next to 0, with this one all 16 are nearest to numbers of the type (0.3 times half an epsilon,
 * where some of 2^(j/16) are 0.74 times that away), and what they are rounded by adds up to nothing: a product of many
 * exponentials of numbers all over the place does not drift.
 */
GX_INLINE gx_v gx_sixteenth(gx_v bits) {
#if defined(GX_F64)
    const gx_v low = {1.0000897155590904, 1.0443674700336478, 1.0906055681761861, 1.1388908018157446,
                      1.1893138053839178, 1.241969226041405, 1.2969559013367058, 1.3543770447304375};
    const gx_v high = {1.4143404393335166, 1.4769586402228616, 1.5423491857143776, 1.610634817989795,
                       1.6819437134914923, 1.7564097235177711, 1.834172625470191, 1.9153783852245767};
#if defined(__clang__)
    return _mm512_permutex2var_pd(low, (__m512i)bits, high);
#else
    return __builtin_shuffle(low, high, (gx_i)bits);
#endif
#else
    const gx_v all = {0.9994449f, 1.0436941f, 1.0899024f, 1.1381565f, 1.188547f, 1.2411685f, 1.2961197f, 1.3535038f,
                      1.4134285f, 1.4760064f, 1.5413548f, 1.6095964f, 1.6808593f, 1.7552773f, 1.83299f, 1.9141434f};
#if defined(__clang__)
    return _mm512_permutexvar_ps((__m512i)bits, all);
#else
    return __builtin_shuffle(all, (gx_i)bits);
#endif
#endif
}

#endif

/* On 64 bytes k is the nearest multiple of 1/16, and r in +-0.0217: exp(x) = 2^floor(k) (e^c 2^(j/16)) exp(r - c), with
 * e^c 2^(j/16) from a table in registers and exp(r - c) - 1 of degree 6 (f64) or 3 (f32). Error below 0.95 ulp in f64. Where x is
 * infinite, NaN or huge, r is anything, and k decides.
 */
GX_INLINE gx_v gx_exp(gx_v x) {
#if GX_BYTES == 64
    static const gx_t c[] =
#if defined(GX_F64)
        {-8.970751093093486e-05, 0.999910292489069, 0.4999551462445306, 0.16665171539231458, 0.041662928880346915,
         0.008332724485141666, 0.0013887347834483637};
#else
        {0.0005553903f, 1.0005554f, 0.5002939f, 0.16676071f};
#endif
    const gx_v shifter = gx_all(GX_PICK(0x1.8p48, 0x1.8p19f));
    gx_v shifted = gx_fma(x, gx_all(GX_LOG2_E), shifter), k = shifted - shifter;
    gx_v r = gx_within(gx_fnma(k, gx_all(GX_LN2_LO), gx_fnma(k, gx_all(GX_LN2_HI), x)), 0.03125);
    gx_v power = gx_sixteenth(shifted), growth = GX_POLY(r, c);
    return gx_scale(gx_fma(power, growth, power), k);
#else
    gx_v k, r = gx_exp_reduce(gx_at_most(gx_at_least(x, GX_PICK(-746, -104)), GX_PICK(710, 89)), &k);
    return gx_scale(gx_exp_reduced(r), k);
#endif
}
GX_SCALAR(exp)
