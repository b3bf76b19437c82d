/* tan(x) = tan(r) or -1 / tan(r), for even or odd n, the integer nearest to x / (pi/2), and r = x - n pi/2 in +-pi/4.
 * tan(r) = r (1 + w) with w = z P(z) / Q(z) and z = r^2, so that -1 / tan(r) = -1/r (1 - z P / (Q + z P)); in f32
 * both shares are polynomials. Beyond 1e9 (f64) or 1e5 (f32) as sin. Error below 2 ulp.
 */
/* a where the integer in the lowest bits of t is odd, and b where it is even. */
GX_INLINE gx_v gx_if_odd(gx_v t, gx_v a, gx_v b) { return gx_select((gx_i)gx_parity(t) < gx_all_i(0), a, b); }

GX_SLOW(tan)

/* How much more than r tan(r) is, or less than 1 / r its reciprocal, as a share; for even or odd t. */
GX_INLINE gx_v gx_tan_share(gx_v r, gx_v t) {
    gx_v z = r * r;
#if defined(GX_F64)
    static const gx_t p[] = {0.33333333333333137, -0.0205386028455896, 0.00020094955918188368};
    static const gx_t q[] = {1, -0.4616158085369447, 0.023344410189297844, -0.00020843211927866245};
    gx_v top = z * GX_POLY(z, p), bottom = GX_POLY(z, q);
    return gx_quotient(gx_if_odd(t, -top, top), gx_if_odd(t, bottom + top, bottom));
#else
    static const gx_t more[] = {0.3333335f, 0.13332674f, 0.05405882f, 0.021287447f, 0.010823076f, 0.00010471476f,
                                0.0043691983f};
    static const gx_t less[] = {-0.33333305f, -0.022226429f, -0.002096621f, -0.00024787302f};
    return z * gx_if_odd(t, GX_POLY(z, less), GX_POLY(z, more));
#endif
}

GX_INLINE gx_v gx_tan(gx_v x) {
    gx_v t = gx_fma(x, gx_all(GX_PICK(0.6366197723675814, 0.63661975f)), gx_all(GX_TRIG_SHIFTER));
    gx_v r = gx_trig_reduce(x, t - gx_all(GX_TRIG_SHIFTER), GX_PICK(1.5707963267948966, 1.5707964f),
                            GX_PICK(6.123233995736766e-17, -4.371139e-08f),
                            GX_PICK(-1.4973849048591698e-33, -1.7151245e-15f));
    gx_v over = gx_quotient(gx_all(-1), r), rest = over * gx_remainder(gx_all(1), -over, r);
    gx_v share = gx_tan_share(r, t), a = gx_abs(x);
    gx_v y = gx_if_odd(t, over + gx_fma(over, share, rest), gx_fma(r, share, r));
    y = gx_select(a < gx_all(GX_PICK(0x1p-27, 0x1p-12f)), x, y);
    if (__builtin_expect(gx_any(a > gx_all(GX_TRIG_LIMIT)), 0)) y = gx_tan_huge(x, y);
    return y;
}
GX_SCALAR(tan)
