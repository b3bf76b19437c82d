/* tanh(|x|) = q / (q + 2) with q = expm1(2 |x|), kept in two parts; limited to 20 (f64) or 10 (f32), where it is 1.
 * Error below 1.8 ulp.
 */
GX_INLINE gx_v gx_tanh(gx_v x) {
    gx_pair half = gx_expm1_half(gx_at_most(gx_abs(x + x), GX_PICK(40, 20)));
    gx_pair q = gx_fast_sum(half.hi, half.lo);
    gx_v divisor = q.hi + gx_all(1), y = gx_reciprocal(divisor), ratio = q.hi * y;
    gx_v rest = gx_fnma(ratio, q.lo, gx_remainder(q.hi, ratio, divisor) + q.lo);
    return gx_signed(gx_fma(rest, y, ratio), x);
}
GX_SCALAR(tanh)
