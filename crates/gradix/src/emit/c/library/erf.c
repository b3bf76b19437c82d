/* erf(a) = a + a E(a^2) for a = |x| < 1, with E of degree 11 (f64) or 6 (f32). Beyond, with t = (a - c) / (a + c),
 * erfc(a) = exp(-a^2) H(t) / (1 + 2 a), where c = 3 and H has degree 11 (f64), or c = 5/2 and 5 (f32), for what is
 * subtracted from 1. erfc itself, from 1/2 on, needs 21 (f64) or 9 (f32) and sums of two numbers for the square, the
 * product and the divisor; before, it is 1 - a - a E with E of degree 8 (f64) or 4 (f32). Errors below 1.3 ulp (erf) and
 * 1.6 ulp (erfc).
 */
/* erf(a) / a - 1 for a < 1/2. */
GX_INLINE gx_v gx_erf_small(gx_v z) {
    static const gx_t c[] =
#if defined(GX_F64)
        {0.12837916709551256, -0.37612638903183027, 0.11283791670894724, -0.026866170624410053, 0.0052239772534318175,
         -0.0008548288366973788, 0.00012052920029527738, -1.4836174025064307e-05, 1.4633414023012838e-06};
#else
        {0.12837917f, -0.3761261f, 0.112828545f, -0.026758762f, 0.0047206255f};
#endif
    return GX_POLY2(z, c);
}

/* erfc(a) for a >= 1/2. */
GX_INLINE gx_v gx_erfc_large(gx_v a) {
    static const gx_t c[] =
#if defined(GX_F64)
        {0.12800805826972966, -0.1356211061245812, -0.0475622943534523, 0.12964515870276885, -0.11927366341526605,
         0.06830802734352329, -0.02377051491882895, 0.0025293918260334827, 0.0018886903516296557,
         -0.000779832384765368, -0.00010515966479597322, 0.00012510009091096612, 4.9484346926100695e-06,
         -2.010352453786976e-05, -7.268592458352796e-07, 3.4796953717027707e-06, 3.4430411962551275e-07,
         -6.272201428752411e-07, -1.2107872656877564e-07, 1.0967476798294811e-07, 2.2641878978439623e-08,
         -1.4687103971601675e-08};
#else
        {0.13983819f, -0.122356765f, -0.09902469f, 0.15763009f, -0.10296718f, 0.03275767f, 0.0009454221f, -0.004357088f,
         0.00042714877f, 0.00054610067f};
#endif
    gx_v centre = gx_all(GX_PICK(3, 2.5f));
    a = gx_at_most(a, GX_PICK(27.3, 10.2f));
    gx_pair square = gx_two_product(a, a);
    gx_v k, r = gx_exp_reduce(-square.hi, &k) - square.lo, growth = gx_fma(r * r, gx_expm1_tail(r), r);
    gx_v t = gx_quotient(a - centre, a + centre);
    gx_pair factor = gx_fast_sum(gx_all(1.125), GX_POLY2(t, c));
    gx_pair top = gx_fast_sum(factor.hi, gx_fma(factor.hi, growth, factor.lo));
    return gx_scale(gx_quotient_of_pairs(top, gx_fast_sum(a + a, gx_all(1))), k);
}

/* erf(a) / a - 1 for a < 1. */
GX_INLINE gx_v gx_erf_growth(gx_v z) {
    static const gx_t c[] =
#if defined(GX_F64)
        {0.12837916709551256, -0.3761263890318352, 0.11283791670944152, -0.026866170643108738,
         0.00522397760611163, -0.0008548325929545439, 0.0001205529359668298, -1.4924712876001809e-05,
         1.644714055559309e-06, -1.6206394260886543e-07, 1.3711369556511704e-08, -7.780257145039315e-10};
#else
        {0.12837917f, -0.37612626f, 0.11283585f, -0.026853805f, 0.005188323f, -0.00080101856f, 7.853893e-05f};
#endif
    return GX_POLY2(z, c);
}

/* 1 - erf(a) for a >= 1, with an error that is small beside 1. */
GX_INLINE gx_v gx_erf_rest(gx_v a) {
    static const gx_t c[] =
#if defined(GX_F64)
        {1.2530080582701815, -0.1356211061021781, -0.047562294198304746, 0.129645152314908,
         -0.11927381668835364, 0.06830642582785085, -0.023780442780226573, 0.002489557438172468,
         0.0017825073537887457, -0.0009656422402205856, -0.00030603155139491823, 1.4150154177918962e-05};
#else
        {1.2648375f, -0.1223866f, -0.099416785f, 0.15531138f, -0.10965753f, 0.024405275f};
#endif
    gx_v centre = gx_all(GX_PICK(3, 2.5f));
    a = gx_at_most(a, GX_PICK(6, 4));
    gx_v t = gx_quotient(a - centre, a + centre), top = gx_exp(-(a * a)) * GX_POLY2(t, c);
    return gx_quotient(top, gx_fma(a, gx_all(2), gx_all(1)));
}

GX_INLINE gx_v gx_erf(gx_v x) {
    gx_v a = gx_abs(x), small = gx_fma(a, gx_erf_growth(a * a), a);
    return gx_signed(gx_select(a < gx_all(1), small, gx_all(1) - gx_erf_rest(a)), x);
}
GX_SCALAR(erf)

GX_INLINE gx_v gx_erfc(gx_v x) {
    gx_v a = gx_abs(x), large = gx_erfc_large(a);
    gx_pair sum = gx_fast_sum(gx_all(1), -x);
    gx_v small = sum.hi + gx_fnma(x, gx_erf_small(a * a), sum.lo);
    return gx_select(a < gx_all(0.5), small, gx_select(x < gx_all(0), gx_all(2) - large, large));
}
GX_SCALAR(erfc)
