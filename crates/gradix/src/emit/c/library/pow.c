/* pow(x, y) = exp(y log|x|), with the logarithm and its product with y as sums of two numbers: log(m) = 2 s + s^3 (2/3
 * + s^2 Q(s^2)) as in log, where s, its square and the term with 2/3 are such sums; good to 2^-63 (f64). The sign and
 * the special cases are those of IEEE 754. Error below 1.6 ulp.
 */
/* log(x) for positive finite x. */
GX_INLINE gx_pair gx_log_pair(gx_v x) {
    static const gx_t c[] =
#if defined(GX_F64)
        {0.39999999999999725, 0.28571428571577323, 0.2222222219124633, 0.18181821526272268, 0.15384406629062203,
         0.13341145368848448, 0.11592340181246555, 0.12571573331872135};
#else
        {0.4000039f, 0.28525653f, 0.23871897f};
#endif
    gx_v k, f = gx_split(x, &k) - gx_all(1);
    gx_pair d = gx_fast_sum(gx_all(2), f);
    gx_v inverse = gx_reciprocal(d.hi), s = gx_rounded(gx_quotient(f, d.hi));
    gx_v s_lo = gx_fnma(s, d.lo, gx_remainder(f, s, d.hi)) * inverse;
    gx_pair z = gx_two_product(s, s);
    z.lo = gx_fma(s + s, s_lo, z.lo);
    /* 2/3 z, then the cube of s times the sum with all higher terms. */
    gx_pair third = gx_two_product(z.hi, gx_all(GX_PICK(0.6666666666666666, 0.6666667f)));
    third.lo += gx_fma(z.hi, gx_all(GX_PICK(3.700743415417188e-17, -1.9868216e-08f)),
                       z.lo * gx_all(GX_PICK(0.6666666666666666, 0.6666667f)));
    third.lo = gx_fma(z.hi * z.hi, GX_POLY2(z.hi, c), third.lo);
    gx_pair cube = gx_two_product(s, third.hi);
    cube.lo += gx_fma(s, third.lo, s_lo * third.hi);
    gx_pair sum = gx_fast_sum(s + s, cube.hi), all = gx_fast_sum(gx_rounded(k * gx_all(GX_LN2_HI)), sum.hi);
    gx_v rest = gx_fma(k, gx_all(GX_LN2_LO), gx_fma(gx_all(2), s_lo, cube.lo + sum.lo));
    return gx_fast_sum(all.hi, all.lo + rest);
}

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
