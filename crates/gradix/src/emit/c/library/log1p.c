/* log1p(x) = log(u) + (1 + x - u) / u with u = 1 + x as rounded, as in log. Where u has the exponent 0, f = x itself
 * takes the place of u - 1. Error below 1 ulp.
 */
/* log(1 + h + l) + extra log 2, where l is small beside 1 + h. */
GX_INLINE gx_v gx_log1p_of_sum(gx_v h, gx_v l, gx_v extra) {
    gx_pair u = gx_two_sum(gx_all(1), h);
    gx_v k, m = gx_split(u.hi, &k);
    gx_v f = gx_select(k == gx_all(0), h, m - gx_all(1));
    gx_v rest = gx_quotient(gx_select(k == gx_all(0), l, u.lo + l), u.hi);
    k += extra;
    gx_v s = gx_quotient(f, f + gx_all(2));
    gx_v below = gx_fma(s, gx_log_tail(f, s), -gx_fma(k, gx_all(GX_LN2_LO), rest));
    return gx_log_ends(u.hi, gx_fma(k, gx_all(GX_LN2_HI), f - below));
}

GX_INLINE gx_v gx_log1p(gx_v x) {
    return gx_select(x == gx_all(0), x, gx_log1p_of_sum(x, gx_all(0), gx_all(0)));
}
GX_SCALAR(log1p)
