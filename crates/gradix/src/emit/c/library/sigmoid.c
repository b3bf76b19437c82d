/* sigmoid(x) = 1 / (1 + e) for x >= 0 and e / (1 + e) for x < 0, with e = exp(-|x|). Error below 1.5 ulp. */
GX_INLINE gx_v gx_sigmoid(gx_v x) {
    gx_v e = gx_exp(gx_negative_abs(x));
    gx_pair divisor = gx_fast_sum(gx_all(1), e);
    gx_v top = gx_select(x < gx_all(0), e, gx_all(1)), y = gx_reciprocal(divisor.hi), q = top * y;
    return gx_fma(gx_fnma(q, divisor.lo, gx_remainder(top, q, divisor.hi)), y, q);
}
GX_SCALAR(sigmoid)
