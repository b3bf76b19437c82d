/* pow(x, y) = exp(y log|x|), with the logarithm and its product with y as sums of two numbers. The sign and the special
 * cases are those of IEEE 754. Error below 1.6 ulp.
 */
/* exp(y log a) for positive finite a. */
GX_INLINE gx_v gx_pow_positive(gx_v a, gx_v y) {
    gx_pair log = gx_log_pair(a);
    y = gx_at_most(gx_at_least(y, GX_PICK(-0x1p70, -0x1p40f)), GX_PICK(0x1p70, 0x1p40f));
    gx_pair w = gx_two_product(y, log.hi);
    gx_v rest = gx_fma(y, log.lo, w.lo), k;
    rest = gx_select(gx_abs(w.hi) > gx_all(GX_PICK(800, 120)), gx_all(0), rest);
    gx_v bounded = gx_at_most(gx_at_least(w.hi, GX_PICK(-747, -105)), GX_PICK(711, 90));
    gx_v r = gx_exp_reduce(bounded, &k) + rest;
    return gx_scale(gx_exp_reduced(r), k);
}

GX_INLINE gx_v gx_pow(gx_v x, gx_v y) {
    gx_v a = gx_abs(x), half = y * gx_all(0.5), zero = gx_all(0), one = gx_all(1), inf = gx_all(GX_INF);
    gx_i whole = gx_floor(y) == y, odd = whole & (gx_floor(half) != half);
    gx_v p = gx_pow_positive(a, y);
    p = gx_select((x < zero) & ~whole, gx_all(GX_NAN), p);
    gx_i upwards = (a == inf) ^ (y < zero);
    p = gx_select((a == zero) | (a == inf), gx_select(upwards, inf, zero), p);
    p = (gx_v)((gx_i)p ^ ((gx_i)x & odd & gx_all_i(GX_SIGN)));
    p = gx_select((x != x) | (y != y), x + y, p);
    return gx_select((y == zero) | (x == one), one, p);
}
GX_SCALAR2(pow)
