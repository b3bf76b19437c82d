/* log(x) for positive finite x as a sum of two numbers: log(m) = 2 s + s^3 (2/3 + s^2 Q(s^2)) as in log, where s, its
 * square and the term with 2/3 are such sums; good to 2^-63 (f64).
 */
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
