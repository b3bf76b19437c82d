/* expm1(x) = 2^k (1 + q) - 1 = 2^k q + (2^k - 1), where x = k log 2 + r as in exp and q = expm1(r) = r + r^2 P(r). The
 * sum is of an upper part, 2^k - 1 + 2^k r, and all that is small beside it. Error below 1.6 ulp.
 */
/* P(r), that is (exp(r) - 1 - r) / r^2, for r in +-0.347. */
GX_INLINE gx_v gx_expm1_tail(gx_v r) {
    static const gx_t c[] =
#if defined(GX_F64)
        {0.5000000000000006, 0.16666666666666607, 0.041666666666573766, 0.008333333333377976, 0.0013888888932325092,
         0.00019841269743897658, 2.4801504504326534e-05, 2.755738545567205e-06, 2.7626307530027286e-07,
         2.5060728681140957e-08};
#else
        {0.49999997f, 0.16666543f, 0.04166754f, 0.008366541f, 0.0013860937f};
#endif
    return GX_POLY2(r, c);
}

/* expm1(x) / 2 in two parts, for x from -50 (f64) or -25 (f32) to just above where it overflows. */
GX_INLINE gx_pair gx_expm1_half(gx_v x) {
    gx_v k, r = gx_exp_reduce(x, &k), power = gx_exp2_of_integer(k - gx_all(1));
    gx_v less = power - gx_all(0.5), upper = gx_fma(power, r, less), rest = gx_fma(power, r, less - upper);
    return (gx_pair){upper, gx_fma(power * (r * r), gx_expm1_tail(r), rest)};
}

GX_INLINE gx_v gx_expm1(gx_v x) {
    gx_pair half = gx_expm1_half(gx_at_most(gx_at_least(x, GX_PICK(-50, -25)), GX_PICK(710, 89)));
    gx_v y = (half.hi + half.lo) * gx_all(2);
    return gx_select(gx_abs(x) < gx_all(GX_PICK(0x1p-60, 0x1p-30f)), x, y);
}
GX_SCALAR(expm1)
