/* cbrt(x) = 2^q cbrt(a) with |x| = 2^(3q) a, a = 2^j m, j in -1 .. 1 and m in 0.75 .. 1.5. A polynomial of degree 5
 * and, in f64, a step of third order give y near 1 / cbrt(a); then t = a y^2 and t + (a - t^3) y^2 / 3, whose
 * difference is exact to rounding. Error below 0.6 ulp.
 */
GX_INLINE gx_v gx_cbrt(gx_v x) {
    static const gx_t c[] =
#if defined(GX_F64)
        {1.9602259206306383, -2.2977936452986976, 2.432979226115315, -1.5591294295056946, 0.5425965096732126,
         -0.07888016316218742};
#else
        {1.9602259f, -2.2977936f, 2.432979f, -1.559129f, 0.5425963f, -0.07888011f};
#endif
    gx_v k, m = gx_split(gx_abs(x), &k), q = gx_nearest(k, (gx_t)(1.0 / 3));
    gx_v j = gx_fnma(gx_all(3), q, k), one = gx_all(1), zero = gx_all(0);
    gx_v a = m * gx_select(j > zero, gx_all(2), gx_select(j < zero, gx_all(0.5), one));
    gx_v y = GX_POLY(m, c) * gx_select(j > zero, gx_all((gx_t)0.7937005259840998),
                                       gx_select(j < zero, gx_all((gx_t)1.2599210498948732), one));
#if defined(GX_F64)
    gx_v h = gx_fnma(a * y, y * y, one);
    y = gx_fma(y * h, gx_fma(h, gx_all(2.0 / 9), gx_all(1.0 / 3)), y);
#endif
    gx_v y2 = y * y, t = gx_rounded(a * y2);
    gx_pair t2 = gx_two_product(t, t);
    gx_v rest = gx_fnma(t2.lo, t, gx_remainder(a, t2.hi, t));
    t = gx_fma(rest * y2, gx_all((gx_t)(1.0 / 3)), t) * gx_exp2_of_integer(q);
    gx_i ordinary = (x != zero) & (gx_abs(x) < gx_all(GX_INF));
    return gx_select(ordinary, gx_signed(t, x), x + x);
}
GX_SCALAR(cbrt)
