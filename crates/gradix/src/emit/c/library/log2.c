/* log2(x) = k + L log(m) and log10(x) = k log10(2) + L log(m), with k and m as in log and L = log2(e) or log10(e) in
 * two parts. The leading part of log(m) is f = m - 1, and L f is exact as a sum of two numbers. Errors below 1.5 ulp.
 */
GX_INLINE gx_v gx_log_to_base(gx_v x, gx_t unit_hi, gx_t unit_lo, gx_t hi, gx_t lo) {
    gx_v k, f = gx_split(x, &k) - gx_all(1), s = gx_quotient(f, f + gx_all(2));
    gx_v below = s * gx_log_tail(f, s);
    gx_pair product = gx_two_product(f, gx_all(hi)), sum = gx_fast_sum(gx_rounded(k * gx_all(unit_hi)), product.hi);
    gx_v rest = gx_fma(f, gx_all(lo), gx_fma(k, gx_all(unit_lo), product.lo + sum.lo));
    return gx_log_ends(x, sum.hi + gx_fnma(below, gx_all(hi), rest));
}

GX_INLINE gx_v gx_log2(gx_v x) {
    return gx_log_to_base(x, 1, 0, GX_LOG2_E, GX_PICK(2.0355273740931033e-17, 1.925963e-08f));
}
GX_SCALAR(log2)

GX_INLINE gx_v gx_log10(gx_v x) {
    return gx_log_to_base(x, GX_PICK(0.30102999566383914, 0.3010254f), GX_PICK(1.42050232272661e-13, 4.605039e-06f),
                          GX_PICK(0.4342944819032518, 0.4342945f), GX_PICK(1.098319650216765e-17, -1.010305e-08f));
}
GX_SCALAR(log10)
