/* log|Gamma(x)|, in sums of two numbers. Between 0.9 and 2.3 it is (x - 1)(x - 2) P(x); elsewhere Stirling's series,
 * from 8 on directly, and below by Gamma(x) = Gamma(x + 8) / (x (x + 1) ... (x + 7)); for negative x by the reflection
 * Gamma(x) Gamma(1 - x) = pi / sin(pi x). Error below 2 ulp, but near the roots at negative x, where the terms cancel,
 * below 2^-53 (f64) or 2^-24 (f32) times the larger term, or 1.
 */
GX_INLINE gx_pair gx_pair_sum(gx_pair a, gx_pair b) {
    gx_pair s = gx_two_sum(a.hi, b.hi);
    return gx_fast_sum(s.hi, s.lo + (a.lo + b.lo));
}

GX_INLINE gx_pair gx_pair_product(gx_pair a, gx_pair b) {
    gx_pair p = gx_two_product(a.hi, b.hi);
    return gx_fast_sum(p.hi, gx_fma(a.hi, b.lo, gx_fma(a.lo, b.hi, p.lo)));
}

GX_INLINE gx_pair gx_pair_of(gx_t hi, gx_t lo) { return (gx_pair){gx_all(hi), gx_all(lo)}; }

/* The logarithm of a sum. */
GX_INLINE gx_pair gx_log_of_pair(gx_pair x) {
    gx_pair y = gx_log_pair(x.hi);
    return gx_fast_sum(y.hi, y.lo + x.lo / x.hi);
}

/* sin(pi r) and cos(pi r) for |r| <= 1/2: those of the distance to the nearest multiple of 1/2. */
GX_INLINE void gx_sin_cos_of_pi(gx_v r, gx_pair *sine, gx_pair *cosine) {
    gx_v a = gx_abs(r);
    gx_i upper = a > gx_all(0.25);
    gx_v offset = gx_select(upper, gx_all(0.5) - a, a);
    gx_pair s, c, angle = gx_two_product(offset, gx_all(GX_PICK(3.141592653589793, 3.1415927f)));
    gx_v rest = gx_fma(offset, gx_all(GX_PICK(1.2246467991473532e-16, -8.742278e-08f)), angle.lo);
    gx_sin_cos_pairs(angle.hi, rest, &s, &c);
    *sine = (gx_pair){gx_flip(gx_select(upper, c.hi, s.hi), r), gx_flip(gx_select(upper, c.lo, s.lo), r)};
    *cosine = (gx_pair){gx_select(upper, s.hi, c.hi), gx_select(upper, s.lo, c.lo)};
}

/* x (x + 1) ... (x + 7) = u (u + 6) (u + 10) (u + 12) with u = x^2 + 7 x. */
GX_INLINE gx_pair gx_rising_product(gx_v x) {
    gx_pair u = gx_pair_sum(gx_two_product(x, gx_all(7)), gx_two_product(x, x));
    gx_pair low = gx_pair_product(u, gx_pair_sum(u, gx_pair_of(6, 0)));
    gx_pair high = gx_pair_product(gx_pair_sum(u, gx_pair_of(10, 0)), gx_pair_sum(u, gx_pair_of(12, 0)));
    return gx_pair_product(low, high);
}

/* log Gamma(x) for positive x, away from 1 and 2. */
GX_INLINE gx_pair gx_lgamma_positive(gx_v x) {
    static const gx_t c[] =
#if defined(GX_F64)
        {0.08333333333333333, -0.0027777777777638177, 0.0007936507813045568, -0.0005952331778412842,
         0.0008407099540014934, -0.0017923247779205462, -0.002180700437124121, 0.28394776187373605,
         -4.564213910951679};
#else
        {0.083333336f, -0.0027783234f, 0.00081117457f};
#endif
    gx_i small = x < gx_all(8);
    gx_pair y = gx_two_sum(x, gx_select(small, gx_all(8), gx_all(0)));
    gx_pair log = gx_log_pair(y.hi), less = gx_fast_sum(log.hi, gx_all(-1));
    gx_v factor = y.hi - gx_all(0.5), inverse = gx_all(1) / y.hi;
    gx_pair p = gx_two_product(factor, less.hi);
    gx_v rest = gx_fma(factor, less.lo + log.lo, gx_fma(y.lo, gx_fnma(inverse, gx_all(0.5), log.hi), p.lo));
    rest = gx_fma(inverse, GX_POLY2(inverse * inverse, c), rest);
    gx_pair stirling = gx_pair_sum((gx_pair){p.hi, rest}, gx_pair_of(GX_PICK(0.4189385332046727, 0.41893855f),
                                                                    GX_PICK(1.6728209650585413e-17, -1.4168145e-08f)));
    gx_pair shift = gx_log_of_pair(gx_rising_product(gx_select(small, x, gx_all(1))));
    shift.hi = gx_select(small, -shift.hi, gx_all(0));
    shift.lo = gx_select(small, -shift.lo, gx_all(0));
    return gx_pair_sum(stirling, shift);
}

/* log Gamma(x) for x in 0.9 .. 2.3. */
GX_INLINE gx_v gx_lgamma_middle(gx_v x) {
    static const gx_t c[] =
#if defined(GX_F64)
        {-0.016871049459019113, -0.14595989591430608, 0.06291140107456623, -0.03130848750101067,
         0.016797098631057217, -0.009425622448483295, 0.0054464578500068445, -0.003212074078088686,
         0.0019229160183465857, -0.001164414419117734, 0.0007115238821266027, -0.00043799631356721854,
         0.00027126343706707296, -0.00016888042825955542, 0.00010569778101588023, -6.641147649870907e-05,
         4.152184436865087e-05, -2.596489658984593e-05, 1.7237883963857537e-05, -1.1836799812892912e-05,
         6.372276250384059e-06, -2.3223439051736927e-06, 2.277592741734745e-06, -3.370770277820377e-06,
         2.285083749652196e-06, -5.65938422196617e-07};
#else
        {-0.01687105f, -0.14595993f, 0.06291146f, -0.031306937f, 0.016795225f, -0.009445885f, 0.0054711313f,
         -0.0031078032f, 0.0017791791f, -0.0013710441f, 0.0010710565f, -0.0003918579f};
#endif
    gx_pair p = gx_fast_sum(gx_all(0.5), GX_POLY2(x - gx_all(1.5), c));
    gx_pair roots = gx_pair_product(gx_two_sum(x, gx_all(-1)), gx_two_sum(x, gx_all(-2)));
    p = gx_pair_product(p, roots);
    return p.hi + p.lo;
}

GX_INLINE gx_v gx_lgamma(gx_v x) {
    gx_v a = gx_abs(x), inf = gx_all(GX_INF), offset = x - gx_round(x);
    /* Just below 0 it is -log|x|, as just above. */
    gx_i negative = x < gx_all(GX_PICK(-0x1p-60, -0x1p-30f));
    gx_pair y = gx_lgamma_positive(a), s, c;
    gx_sin_cos_of_pi(gx_abs(offset), &s, &c);
    gx_pair reflected = gx_log_of_pair(gx_pair_product((gx_pair){a, gx_all(0)}, s));
    gx_pair log_pi = gx_pair_of(GX_PICK(1.1447298858494002, 1.1447299f),
                                GX_PICK(1.0265951162707826e-17, 3.317301e-08f));
    reflected = gx_pair_sum(log_pi, (gx_pair){-reflected.hi, -reflected.lo});
    reflected = gx_pair_sum(reflected, (gx_pair){-y.hi, -y.lo});
    gx_i middle = (x > gx_all(GX_PICK(0.9, 0.9f))) & (x < gx_all(GX_PICK(2.3, 2.3f)));
    gx_v value = gx_select(middle, gx_lgamma_middle(x), y.hi + y.lo);
    value = gx_select(negative, reflected.hi + reflected.lo, value);
    gx_i pole = (x <= gx_all(0)) & (offset == gx_all(0));
    gx_i large = a > gx_all(GX_PICK(2.5563481638716903e305, 4.0850034e36f));
    value = gx_select(pole | (large & ~negative) | (a == inf), inf, value);
    return gx_select(x != x, x, value);
}
GX_SCALAR(lgamma)
