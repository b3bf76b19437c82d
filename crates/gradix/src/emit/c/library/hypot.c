/* hypot(x, y) = sqrt(x^2 + y^2), with both scaled by a power of 2 where a square might leave the range of exponents;
 * infinite if either is. Error below 1.2 ulp.
 */
/* x, y or z for an a that is huge, tiny, or neither. */
GX_INLINE gx_v gx_hypot_choose(gx_v a, gx_v x, gx_v y, gx_v z) {
    gx_v other = gx_select(a < gx_all(GX_PICK(0x1p-400, 0x1p-40f)), y, z);
    return gx_select(a > gx_all(GX_PICK(0x1p500, 0x1p60f)), x, other);
}

GX_INLINE gx_v gx_hypot(gx_v x, gx_v y) {
    gx_v a = gx_abs(x), b = gx_abs(y), larger = gx_max(a, b), inf = gx_all(GX_INF), one = gx_all(1);
    gx_v down = gx_all(GX_PICK(0x1p-600, 0x1p-80f)), up = gx_all(GX_PICK(0x1p600, 0x1p80f));
    gx_v scale = gx_hypot_choose(larger, down, up, one);
    gx_v back = gx_hypot_choose(larger, up, down, one);
    a *= scale;
    b *= scale;
    gx_v h = gx_sqrt(gx_fma(a, a, b * b)) * back;
    return gx_select((a == inf) | (b == inf), inf, h);
}
GX_SCALAR2(hypot)
