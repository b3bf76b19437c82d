/* The inverse hyperbolic functions by log1p of a sum of two numbers: with a = |x|, asinh(a) = log1p(a + a^2 / (1 +
 * sqrt(1 + a^2))), acosh(x) = log1p(t + sqrt(2 t + t^2)) for t = x - 1, and atanh(a) = log1p(2 a / (1 - a)) / 2. Where
 * 1 is nothing beside a^2, the first two are log(a) + log 2. Errors below 1.3 ulp.
 */
GX_INLINE gx_v gx_if_large(gx_v x, gx_v a, gx_v b) { return gx_select(x > gx_all(GX_PICK(0x1p30, 0x1p14f)), a, b); }

GX_INLINE gx_v gx_asinh(gx_v x) {
    gx_v a = gx_abs(x), one = gx_all(1);
    gx_pair sum = gx_fast_sum(a, gx_quotient(a * a, one + gx_sqrt(gx_fma(a, a, one))));
    gx_v h = gx_if_large(a, a, sum.hi), l = gx_if_large(a, -one, sum.lo);
    return gx_signed(gx_log1p_of_sum(h, l, gx_if_large(a, one, gx_all(0))), x);
}
GX_SCALAR(asinh)

GX_INLINE gx_v gx_acosh(gx_v x) {
    gx_v one = gx_all(1), t = x - one, square = gx_fma(t, t, t + t), s = gx_sqrt(square);
    gx_pair sum = gx_two_sum(t, s);
    gx_v error = gx_remainder(square, s, s) / gx_at_least(s + s, GX_PICK(0x1p-1000, 0x1p-120f));
    gx_v h = gx_if_large(x, x, sum.hi), l = gx_if_large(x, -one, sum.lo + error);
    gx_v y = gx_log1p_of_sum(h, l, gx_if_large(x, one, gx_all(0)));
    return gx_select(x < one, gx_all(GX_NAN), y);
}
GX_SCALAR(acosh)

GX_INLINE gx_v gx_atanh(gx_v x) {
    gx_v a = gx_abs(x), q, l;
    gx_pair d = gx_fast_sum(gx_all(1), -a);
    q = (a + a) / d.hi;
    l = gx_fnma(q, d.lo, gx_remainder(a + a, q, d.hi)) / d.hi;
    return gx_signed(gx_log1p_of_sum(q, l, gx_all(0)) * gx_all(0.5), x);
}
GX_SCALAR(atanh)
