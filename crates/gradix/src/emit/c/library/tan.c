/* tan(x) = sin(r) / cos(r) or -cos(r) / sin(r), for even or odd n, the integer nearest to x / (pi/2), and r = x - n
 * pi/2 in +-pi/4. Sine, cosine and quotient are sums of two numbers. Beyond 1e9 (f64) or 1e5 (f32) as sin. Error below
 * 2 ulp.
 */
/* a where the integer in the lowest bits of t is odd, and b where it is even. */
GX_INLINE gx_v gx_if_odd(gx_v t, gx_v a, gx_v b) { return gx_select((gx_i)gx_parity(t) < gx_all_i(0), a, b); }

GX_SLOW(tan)

GX_INLINE gx_v gx_tan(gx_v x) {
    gx_v t = gx_fma(x, gx_all(GX_PICK(0.6366197723675814, 0.63661975f)), gx_all(GX_TRIG_SHIFTER));
    gx_v r = gx_trig_reduce(x, t - gx_all(GX_TRIG_SHIFTER), GX_PICK(1.5707963267948966, 1.5707964f),
                            GX_PICK(6.123233995736766e-17, -4.371139e-08f),
                            GX_PICK(-1.4973849048591698e-33, -1.7151245e-15f));
    gx_pair s, c;
    gx_sin_cos_pairs(r, gx_all(0), &s, &c);
    gx_pair top = {gx_if_odd(t, -c.hi, s.hi), gx_if_odd(t, -c.lo, s.lo)};
    gx_pair bottom = {gx_if_odd(t, s.hi, c.hi), gx_if_odd(t, s.lo, c.lo)};
    gx_v y = gx_quotient_of_pairs(top, bottom), a = gx_abs(x);
    y = gx_select(a < gx_all(GX_PICK(0x1p-27, 0x1p-12f)), x, y);
    if (__builtin_expect(gx_any(a > gx_all(GX_TRIG_LIMIT)), 0)) y = gx_tan_huge(x, y);
    return y;
}
GX_SCALAR(tan)
