/* sinh(a) and cosh(a) for a = |x|: half the difference and sum of exp(a) and its inverse; for a < 1, sinh(a) = a + a^3
 * P(a^2), of degree 15 (f64) or 9 (f32). Errors below 1.7 ulp.
 */
/* exp(a) / 2 and exp(-a) / 2 for a >= 0. */
GX_INLINE gx_pair gx_exp_halves(gx_v a) {
    gx_v k, r = gx_exp_reduce(gx_at_most(a, GX_PICK(712, 91)), &k), e = gx_exp_reduced(r);
    gx_v inverse = gx_quotient(gx_all(1), e);
    return (gx_pair){gx_scale(e, k - gx_all(1)), gx_scale(inverse, -gx_all(1) - k)};
}

GX_INLINE gx_v gx_sinh(gx_v x) {
    static const gx_t c[] =
#if defined(GX_F64)
        {0.16666666666666669, 0.008333333333332919, 0.00019841269841584523, 2.7557319110543236e-06,
         2.5052130284166613e-08, 1.6056720961100454e-10, 7.774599726099827e-13};
#else
        {0.16666667f, 0.0083333105f, 0.00019842891f, 2.7822748e-06f};
#endif
    gx_v a = gx_abs(x), z = a * a, small = gx_fma(a * z, GX_POLY2(z, c), a);
    gx_pair halves = gx_exp_halves(a);
    return gx_signed(gx_select(a < gx_all(1), small, halves.hi - halves.lo), x);
}
GX_SCALAR(sinh)

GX_INLINE gx_v gx_cosh(gx_v x) {
    gx_pair halves = gx_exp_halves(gx_abs(x));
    return halves.hi + halves.lo;
}
GX_SCALAR(cosh)
