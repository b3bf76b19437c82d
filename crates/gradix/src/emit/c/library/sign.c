/* -1, 0 or 1; 0 at both zeros, NaN at NaN. */
GX_INLINE gx_v gx_sign(gx_v x) {
    gx_v one = gx_signed(gx_all(1), x);
    return gx_select(gx_abs(x) > gx_all(0), one, x + gx_all(0));
}
GX_SCALAR(sign)
