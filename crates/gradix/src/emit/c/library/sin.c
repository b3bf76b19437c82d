/* sin(x) = (-1)^n sin(r), with n the integer nearest to x / pi, and r = x - n pi in +-pi/2 from pi in three parts;
 * with half-integers for n this is cos. sin(r) = r + r^3 S(r^2), of degree 17 (f64) or 11 (f32). Beyond 1e9 (f64) or
 * 1e5 (f32) lanes go through the library one by one. Errors below 2 ulp, and no value beyond +-1.
 */
#define GX_TRIG_LIMIT GX_PICK(1e9, 1e5f)

/* x - n (p1 + p2 + p3), rounded about once, where p1 is the nearest number to a multiple of pi and n p1 is near x. */
GX_INLINE gx_v gx_trig_reduce(gx_v x, gx_v n, gx_t p1, gx_t p2, gx_t p3) {
#if defined(GX_FUSED)
    return gx_fnma(n, gx_all(p3), gx_fnma(n, gx_all(p2), gx_fnma(n, gx_all(p1), x)));
#else
    gx_pair q = gx_two_product(n, gx_all(p1)), r = gx_two_sum(x - q.hi, -q.lo);
    gx_pair p = gx_two_product(n, gx_all(p2)), d = gx_two_sum(r.hi, -p.hi);
    return d.hi + ((r.lo + (d.lo - p.lo)) - n * gx_all(p3));
#endif
}

/* sin(x - n pi) times the sign of s. */
GX_INLINE gx_v gx_sin_reduced(gx_v x, gx_v n, gx_v s) {
    static const gx_t c[] =
#if defined(GX_F64)
        {0.008333333333333205, -0.00019841269841211405, 2.755731921132757e-06,
         -2.5052106878097294e-08, 1.6058939507075678e-10, -7.642976691735137e-13, 2.720936008361852e-15};
#else
        {0.0083333505f, -0.000198431f, 2.762775e-06f, -2.5523942e-08f};
#endif
    gx_v r = gx_trig_reduce(x, n, GX_PICK(3.141592653589793, 3.1415927f),
                            GX_PICK(1.2246467991473532e-16, -8.742278e-08f),
                            GX_PICK(-2.9947698097183397e-33, -3.430249e-15f));
    gx_v z = r * r, p = gx_fma(z, GX_POLY2(z, c), gx_all(GX_PICK(-0.16666666666666666, -0.16666667f)));
    return gx_flip(gx_at_least(gx_at_most(gx_fma(r * z, p, r), 1), -1), s);
}

#define GX_SLOW(name)                                                                                                  \
    static __attribute__((noinline, unused)) gx_v gx_##name##_huge(gx_v x, gx_v y) {                                   \
        for (int i = 0; i < GX_W; i++)                                                                                 \
            if (x[i] > GX_TRIG_LIMIT || x[i] < -GX_TRIG_LIMIT) y[i] = (gx_t)__builtin_##name(x[i]);                      \
        return y;                                                                                                      \
    }
GX_SLOW(sin)
GX_SLOW(cos)

/* The lowest bit of an integer-valued t - 1.5 2^52 (f64), as the sign. */
GX_INLINE gx_v gx_parity(gx_v t) { return (gx_v)((gx_u)t << (GX_PICK(64, 32) - 1)); }

#define GX_TRIG_SHIFTER GX_PICK(0x1.8p52, 0x1.8p23f)

GX_INLINE gx_v gx_sin(gx_v x) {
    gx_v t = gx_fma(x, gx_all(GX_PICK(0.3183098861837907, 0.31830987f)), gx_all(GX_TRIG_SHIFTER));
    gx_v y = gx_sin_reduced(x, t - gx_all(GX_TRIG_SHIFTER), gx_parity(t)), a = gx_abs(x);
    y = gx_select(a < gx_all(GX_PICK(0x1p-27, 0x1p-12f)), x, y);
    if (__builtin_expect(gx_any(a > gx_all(GX_TRIG_LIMIT)), 0)) y = gx_sin_huge(x, y);
    return y;
}
GX_SCALAR(sin)

GX_INLINE gx_v gx_cos(gx_v x) {
    gx_v a = gx_abs(x), q = gx_fma(a, gx_all(GX_PICK(0.3183098861837907, 0.31830987f)), gx_all(-0.5));
    gx_v t = q + gx_all(GX_TRIG_SHIFTER), n = (t - gx_all(GX_TRIG_SHIFTER)) + gx_all(0.5);
    gx_v y = gx_sin_reduced(a, n, (gx_v) ~(gx_u)gx_parity(t));
    if (__builtin_expect(gx_any(a > gx_all(GX_TRIG_LIMIT)), 0)) y = gx_cos_huge(x, y);
    return y;
}
GX_SCALAR(cos)
