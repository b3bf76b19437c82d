/* digamma and trigamma of positive x: the asymptotic series from 8 on, and below by the recurrence, eight terms of
 * which are summed as sums of two numbers; of negative x by reflection, with pi cot(pi x) and (pi / sin(pi x))^2.
 * Errors below 2 ulp, but near the roots of digamma, where the terms cancel, below 2^-53 (f64) or 2^-24 (f32) times
 * the larger term, or 1.
 */
/* a / b */
GX_INLINE gx_pair gx_pair_quotient(gx_pair a, gx_pair b) {
    gx_v q = gx_rounded(a.hi / b.hi);
    gx_v rest = gx_fnma(q, b.lo, gx_remainder(a.hi, q, b.hi) + a.lo);
    return gx_fast_sum(q, rest / b.hi);
}

/* The sum of 1 / (x + j)^power for j = 0 .. 7, and 0 where x is 8 or more; power is 1 or 2. */
GX_INLINE gx_pair gx_recurrence(gx_pair x, int power) {
    gx_pair sum = {gx_all(0), gx_all(0)};
    gx_i small = x.hi < gx_all(8);
    for (int j = 7; j >= 0; j--) {
        gx_pair d = gx_two_sum(x.hi, gx_all((gx_t)j));
        d.lo += x.lo;
        sum = gx_pair_sum(sum, gx_pair_quotient(gx_pair_of(1, 0), power == 1 ? d : gx_pair_product(d, d)));
    }
    return (gx_pair){gx_select(small, sum.hi, gx_all(0)), gx_select(small, sum.lo, gx_all(0))};
}

/* x + 8 where x is below 8, and x elsewhere. */
GX_INLINE gx_pair gx_asymptotic(gx_pair x) {
    gx_pair y = gx_two_sum(x.hi, gx_select(x.hi < gx_all(8), gx_all(8), gx_all(0)));
    return gx_fast_sum(y.hi, y.lo + x.lo);
}

/* log y - 1/(2y) - V(1/y^2) / y^2, less the recurrence. */
GX_INLINE gx_pair gx_digamma_positive(gx_pair x) {
    static const gx_t c[] =
#if defined(GX_F64)
        {0.08333333333333333, -0.0083333333333237, 0.003968253961368762, -0.004166664274077228, 0.007575294033716388,
         -0.021039777393665776, 0.07972491603727572, -0.30280495308716865, 0.23053220753300294};
#else
        {0.08333333f, -0.008331747f, 0.0038228142f};
#endif
    gx_pair y = gx_asymptotic(x), log = gx_log_pair(y.hi), sum = gx_recurrence(x, 1);
    gx_v inverse = gx_all(1) / y.hi, w = inverse * inverse;
    gx_pair half = gx_pair_quotient(gx_pair_of(0.5, 0), y);
    log.lo += gx_fnma(w, GX_POLY2(w, c), y.lo * inverse) - half.lo;
    log = gx_pair_sum(log, (gx_pair){-half.hi, gx_all(0)});
    return gx_pair_sum(log, (gx_pair){-sum.hi, -sum.lo});
}

/* 1/y + 1/(2y^2) + T(1/y^2) / y^3 and the recurrence. */
GX_INLINE gx_pair gx_trigamma_positive(gx_pair x) {
    static const gx_t c[] =
#if defined(GX_F64)
        {0.16666666666666666, -0.03333333333331209, 0.02380952379264558, -0.03333332672452615, 0.07575610297687732,
         -0.2529135370138179, 1.1496617222960082, -6.190977378912532, 26.17675806552732};
#else
        {0.16666664f, -0.033324193f, 0.022826407f};
#endif
    gx_pair y = gx_asymptotic(x), inverse = gx_pair_quotient(gx_pair_of(1, 0), y);
    gx_v w = inverse.hi * inverse.hi;
    inverse.lo = gx_fma(w, gx_fma(inverse.hi, GX_POLY2(w, c), gx_all(0.5)), inverse.lo);
    return gx_pair_sum(inverse, gx_recurrence(x, 2));
}

/* x where that is positive, and 1 - x elsewhere. */
GX_INLINE gx_pair gx_positive_side(gx_v x) {
    gx_i positive = x > gx_all(0);
    return gx_two_sum(gx_select(positive, gx_all(0), gx_all(1)), gx_abs(x));
}

GX_INLINE gx_v gx_digamma(gx_v x) {
    gx_v offset = x - gx_round(x), zero = gx_all(0), pi = gx_all(GX_PICK(3.141592653589793, 3.1415927f));
    gx_pair y = gx_digamma_positive(gx_positive_side(x)), s, c;
    gx_sin_cos_of_pi(offset, &s, &c);
    gx_pair cot = gx_pair_quotient(c, s), product = gx_two_product(pi, cot.hi);
    gx_v rest = gx_fma(cot.hi, gx_all(GX_PICK(1.2246467991473532e-16, -8.742278e-08f)), gx_fma(pi, cot.lo, product.lo));
    gx_pair reflected = gx_pair_sum(y, (gx_pair){-product.hi, -rest});
    gx_v value = gx_select(x < zero, reflected.hi + reflected.lo, y.hi + y.lo);
    value = gx_select((x < zero) & (offset == zero), gx_all(GX_NAN), value);
    value = gx_select(gx_abs(x) < gx_all(GX_PICK(0x1p-60, 0x1p-30f)), gx_all(-1) / x, value);
    return gx_select(x == gx_all(GX_INF), x, value);
}
GX_SCALAR(digamma)

/* 1 / x^2 */
GX_INLINE gx_v gx_inverse_square(gx_v x) {
    gx_v q = gx_rounded(gx_all(1) / x), error = gx_remainder(gx_all(1), q, x) * q;
    gx_pair square = gx_two_product(q, q);
    return gx_select(square.hi < gx_all(GX_INF), square.hi + gx_fma(q + q, error, square.lo), square.hi);
}

GX_INLINE gx_v gx_trigamma(gx_v x) {
    gx_v offset = x - gx_round(x), zero = gx_all(0);
    gx_pair y = gx_trigamma_positive(gx_positive_side(x)), s, c;
    gx_sin_cos_of_pi(offset, &s, &c);
    gx_pair ratio = gx_pair_quotient(gx_pair_of(GX_PICK(3.141592653589793, 3.1415927f),
                                               GX_PICK(1.2246467991473532e-16, -8.742278e-08f)), s);
    gx_pair reflected = gx_pair_sum(gx_pair_product(ratio, ratio), (gx_pair){-y.hi, -y.lo});
    gx_v value = gx_select(x < zero, reflected.hi + reflected.lo, y.hi + y.lo);
    value = gx_select((x < zero) & (offset == zero), gx_all(GX_INF), value);
    value = gx_select(gx_abs(x) < gx_all(GX_PICK(0x1p-28, 0x1p-14f)), gx_inverse_square(x), value);
    return gx_select(x == gx_all(GX_INF), zero, value);
}
GX_SCALAR(trigamma)
