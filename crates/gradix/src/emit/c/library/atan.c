/* atan(y / x) = b + atan(t), where b is 0, pi/4 or pi/2 and t is y / x, (y - x) / (y + x) or -x / y, with limits at
 * 1/2 and 2, so that |t| <= 1/2; atan(t) = t + t^3 P(t^2), of degree 27 (f64) or 13 (f32). atan2 takes the result from
 * pi where its x is negative. Errors below 1.5 ulp.
 */
/* x, y or z for a < b/2, between, and a > 2b. */
GX_INLINE gx_v gx_atan_choose(gx_v a, gx_v b, gx_v x, gx_v y, gx_v z) {
    return gx_select(a + a < b, x, gx_select(a > b + b, z, y));
}

/* count pi/4 + atan(t) */
GX_INLINE gx_v gx_atan_sum(gx_v count, gx_v t) {
    static const gx_t c[] =
#if defined(GX_F64)
        {-0.33333333333333315, 0.19999999999993767, -0.14285714284998385, 0.11111111070052869, -0.09090907705705772,
         0.07692277645983095, -0.06666225047289524, 0.05877815948090398, -0.05230047332763821, 0.04589536498531426,
         -0.03712011942126624, 0.023656134503571825, -0.008365968457784418};
#else
        {-0.33333328f, 0.19999553f, -0.14273065f, 0.10948014f, -0.08007455f, 0.03901829f};
#endif
    gx_v z = t * t, rest = t * z * GX_POLY2(z, c);
    gx_pair sum = gx_fast_sum(gx_rounded(count * gx_all(GX_PICK(0.7853981633974483, 0.785398f))), t);
    return sum.hi + (sum.lo + gx_fma(count, gx_all(GX_PICK(3.061616997868383e-17, 1.5695824e-07f)), rest));
}

GX_INLINE gx_v gx_atan(gx_v x) {
    gx_v a = gx_at_most(gx_abs(x), GX_PICK(0x1p60, 0x1p30f)), one = gx_all(1);
    gx_v top = gx_atan_choose(a, one, a, a - one, -one), bottom = gx_atan_choose(a, one, one, a + one, a);
    gx_v count = gx_atan_choose(a, one, gx_all(0), one, gx_all(2));
    return gx_signed(gx_atan_sum(count, gx_quotient(top, bottom)), x);
}
GX_SCALAR(atan)

GX_INLINE gx_v gx_atan2(gx_v y, gx_v x) {
    gx_v a = gx_abs(y), b = gx_abs(x), inf = gx_all(GX_INF), huge = gx_all(GX_PICK(0x1p1020, 0x1p120f));
    gx_i infinite = (a == inf) & (b == inf);
    gx_v scale = gx_select((a > huge) | (b > huge), gx_all(0.25), gx_all(1));
    a = gx_select(infinite, gx_all(1), a * scale);
    b = gx_select(infinite, gx_all(1), b * scale);
    gx_i left = (gx_i)x < gx_all_i(0);
    gx_v top = gx_atan_choose(a, b, a, a - b, -b), bottom = gx_atan_choose(a, b, b, a + b, a);
    gx_v count = gx_atan_choose(a, b, gx_all(0), gx_all(1), gx_all(2));
    /* atan2(0, 0) is an angle of 0 to the axis. */
    gx_i zero = bottom == gx_all(0);
    gx_v t = top / gx_select(zero, gx_all(1), bottom);
    count = gx_select(zero, gx_all(0), count);
    count = gx_select(left, gx_all(4) - count, count);
    return gx_signed(gx_atan_sum(count, gx_flip(t, x)), y);
}
GX_SCALAR2(atan2)
