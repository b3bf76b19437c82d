/* asin(a) = s + s z P(z) with s = a and z = a^2 for a = |x| up to 1/2; beyond, asin(a) = pi/2 - 2 asin(s) with s =
 * sqrt(z) and z = (1 - a) / 2. P has degree 12 (f64) or 5 (f32). acos(x) is pi/2, 0 or pi less one or two such. The
 * leading part and the square root are sums of two numbers. Errors below 0.7 ulp.
 */
#define GX_PI_2_HI GX_PICK(1.5707963267948966, 1.5707964f)
#define GX_PI_2_LO GX_PICK(6.123233995736766e-17, -4.371139e-08f)

/* asin(a) for a up to 1/2, and asin(sqrt((1 - a) / 2)) beyond: a leading part, and the rest. */
GX_INLINE gx_pair gx_asin_parts(gx_v a) {
    static const gx_t c[] =
#if defined(GX_F64)
        {0.1666666666666676, 0.07499999999970823, 0.04464285717462881, 0.03038194270565945, 0.02237221507576205,
         0.01735161001775105, 0.013980848682399268, 0.011398651806049232, 0.0107818646195913, 0.0036997947657673187,
         0.02172472460317876, -0.021025083059852918, 0.032645823294744976};
#else
        {0.1666666f, 0.07500517f, 0.044514854f, 0.03182275f, 0.014388696f, 0.037579197f};
#endif
    gx_v z = gx_select(a > gx_all(0.5), gx_fnma(a, gx_all(0.5), gx_all(0.5)), a * a);
    gx_v root = gx_sqrt(z), s = gx_select(a > gx_all(0.5), root, a);
    gx_v error = gx_remainder(z, root, root) / gx_at_least(root + root, GX_PICK(0x1p-1000, 0x1p-120f));
    return (gx_pair){s, gx_fma(s * z, GX_POLY2(z, c), gx_select(a > gx_all(0.5), error, gx_all(0)))};
}

GX_INLINE gx_v gx_asin(gx_v x) {
    gx_v a = gx_abs(x);
    gx_pair s = gx_asin_parts(a), d = gx_fast_sum(gx_all(GX_PI_2_HI), -(s.hi + s.hi));
    gx_v y = d.hi + (d.lo + gx_fnma(s.lo, gx_all(2), gx_all(GX_PI_2_LO)));
    return gx_signed(gx_select(a > gx_all(0.5), y, s.hi + s.lo), x);
}
GX_SCALAR(asin)

GX_INLINE gx_v gx_acos(gx_v x) {
    gx_v a = gx_abs(x);
    gx_pair s = gx_asin_parts(a);
    gx_v factor = gx_select(a > gx_all(0.5), gx_signed(gx_all(2), -x), gx_signed(gx_all(1), x));
    gx_v count = gx_select(a > gx_all(0.5), gx_select(x < gx_all(0), gx_all(2), gx_all(0)), gx_all(1));
    gx_pair d = gx_fast_sum(gx_rounded(count * gx_all(GX_PI_2_HI)), gx_rounded(-factor * s.hi));
    return d.hi + (d.lo + gx_fnma(factor, s.lo, count * gx_all(GX_PI_2_LO)));
}
GX_SCALAR(acos)
